"""Online leverage scores: Wang, Shen and Li 2018 (`ofs`), Algorithm 1.

A feature is sampled on arrival with a probability that grows with its leverage score among the
features that were sampled before it. No targets are needed.
"""

import copy
from numbers import Integral, Real
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.linalg.blas import dger
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from ofslib._blas import one_blas_thread
from ofslib.streams.column_stream import ColumnStream
from ofslib.streams.parameters import (
    AT_LEAST_ONE,
    POSITIVE,
    WHOLE,
    estimator,
    number,
    one_of,
    param,
)
from ofslib.streams.selector import warn

# A feature is in the span if no more than this share of it is outside: the square of a smaller one
# would be lost in the moments.
_OUTSIDE = 1e-6
# The inverse is computed anew when, times the moments, it misses a vector by more than this share.
_DRIFT = 1e-11
# Passes over the features that look for the sampling rate of k features.
_PASSES = 12


class State(NamedTuple):
    """What is known of the matrix A~ of the sampled features; Q is a basis of their span."""

    basis: np.ndarray  # (n, r) Q, orthonormal
    moments: np.ndarray  # (r, r) Q' A~ A~' Q, plus the ridge on the diagonal
    inverse: np.ndarray  # (r, r) the inverse of the moments
    age: np.ndarray  # (1,) int64, updates of the inverse since it was computed anew
    rng: np.random.Generator  # draws a number for each feature
    rate: float  # c
    scores: list[float]  # l_i of all features
    index: list[int]  # the sampled features
    weights: list[float]  # theta_i = p_i^(-1/2) of these


def split(basis, a):
    """Coordinates of `a` in the basis, what of `a` is outside of its span, and how long that is."""
    inside = basis.T @ a
    if basis.shape[1] == len(a):
        return inside, a, 0.0
    outside = a - basis @ inside
    # Once more, so that what is left is orthogonal, however short.
    more = basis.T @ outside
    outside -= basis @ more
    return inside + more, outside, float(np.linalg.norm(outside))


def inverted(moments, j: int):
    """The inverse of the moments, computed anew before column j is learned."""
    try:
        return np.linalg.inv(moments)
    except np.linalg.LinAlgError:
        raise ValueError(
            f"X: the columns before column {j} differ too much in size for leverage scores: "
            "give them in units that make their sizes alike"
        ) from None


def plus_outer(matrix, x, factor: float):
    """matrix + factor x x' of a symmetric matrix, in its place."""
    return dger(factor, x, x, a=matrix.T, overwrite_a=True).T if len(x) else matrix


def updated(state: State, z, solution) -> State:
    """A~ gets a column z of its span, which the inverse takes to `solution` (Sherman, Morrison)."""
    return state._replace(
        moments=plus_outer(state.moments, z, 1.0),
        inverse=plus_outer(state.inverse, solution, -1 / (1 + z @ solution)),
        age=state.age + 1,
    )


def appended(state: State, z, solution, direction, length: float, ridge: float) -> State:
    """A~ gets a column with coordinates z and so much along a new direction of the basis."""
    r, column = len(z), np.append(z, length)
    moments, inverse = np.zeros((2, r + 1, r + 1))
    moments[:r, :r], inverse[:r, :r] = state.moments, state.inverse
    state = state._replace(basis=np.column_stack([state.basis, direction]))
    if ridge > 0:
        moments[r, r], inverse[r, r] = ridge, 1 / ridge
        state = state._replace(moments=moments, inverse=inverse)
        return updated(state, column, np.append(solution, length / ridge))
    # Meyer 1973: the pseudo-inverse after a column from outside of the range.
    inverse[r, :r] = inverse[:r, r] = -solution / length
    inverse[r, r] = (1 + z @ solution) / length**2
    moments = plus_outer(moments, column, 1.0)
    return state._replace(moments=moments, inverse=inverse, age=state.age + 1)


@estimator
class OnlineLeverageSelector(ColumnStream):
    """Online leverage scores (Wang, Shen and Li 2018, Algorithm 1).

    Feature a_i is sampled with probability p_i = min(c l_i, 1), where
    l_i = min((1 + eps) a_i' (A~ A~')^+ a_i, 1) and A~ holds the features sampled before, each times
    theta_i = p_i^(-1/2). After learning, A~ is `transform(X) * weights_`.

    `variant` says how the inverse is meant. "printed": the pseudo-inverse. A feature outside of the
    span of A~ then has the score of its projection, 0 where A~ is empty, and may never be sampled,
    however much it differs: Theorem 1 does not hold. "span": such a feature has l_i = 1, if
    more than a millionth of its length is outside. "ridge":
    (A~ A~' + ridge I)^-1, as in the proof of Lemma 2. With more rows than features that are
    linearly independent, "span" is uniform sampling; the ridge still tells them apart.

    `fit` with more rows than features turns the rows so that only as many are left as there are
    features: the scores stay.

    Cost: O(n r + r^2) per feature, r <= min(n, number sampled); memory O(n r).
    """

    sources = "wang2018provable"
    example = """
        >>> X[:, design.support] *= 1000
        >>> model = {name}(rate=1.0, variant="ridge", ridge=1e6, random_state=0)
        >>> model.partial_fit_columns(X).support_
        array([ 9, 19, 29])
    """

    eps: float = param("Accuracy epsilon.", number(Real, 0, 1, closed="neither"), default=0.5)
    k: int | None = param(
        "Number of features to sample: `fit` calibrates the rate c, by several passes with the "
        "same random numbers, until as many are sampled, and warns if none samples as many. None: "
        "the rate is `rate`.",
        AT_LEAST_ONE,
        None,
        default=None,
    )
    rate: float | None = param(
        "Sampling rate c; None: 8 log(n) / eps^2 as in Algorithm 1.", POSITIVE, None, default=None
    )
    variant: str = param("The inverse.", one_of("printed", "span", "ridge"), default="span")
    ridge: float = param(
        'lambda of variant "ridge", in the squared unit of the features.', POSITIVE, default=1.0
    )
    n_initial: int = param(
        "So many features are taken in any case, with theta = 1: the initial A_0.", WHOLE, default=0
    )
    random_state: int | np.random.RandomState | None = param(
        "Seed or generator (as in scikit-learn) of the sampling.", "random_state", default=None
    )

    frozen = ("eps", "k", "rate", "variant", "ridge", "n_initial")

    def _new_state(self, n):
        seed = check_random_state(self.random_state).randint(2**31)
        rate = 8 * np.log(n) / self.eps**2 if self.rate is None else self.rate
        none = np.zeros((0, 0)), np.zeros((0, 0)), np.zeros(1, np.int64)
        return State(np.zeros((n, 0)), *none, np.random.default_rng(seed), rate, [], [], [])

    def _learn_block(self, state, block):
        for a, j in zip(block.values, block.index, strict=True):
            state = self._step(state, a, int(j))
        return state

    def _step(self, state: State, a, j: int) -> State:
        """Algorithm 1, lines 2-5."""
        z, outside, length = split(state.basis, a)
        is_new = length**2 > _OUTSIDE**2 * (a @ a)
        ridge = float(self.ridge) if self.variant == "ridge" else 0.0
        solution = state.inverse @ z
        score = z @ solution
        if is_new and self.variant != "printed":
            score = score + length**2 / ridge if ridge else 1.0
        leverage = min((1 + self.eps) * score, 1.0)
        p = 1.0 if len(state.scores) < self.n_initial else min(state.rate * leverage, 1.0)
        state.scores.append(float(leverage))
        if state.rng.random() >= p:
            return state
        theta = p**-0.5
        state.index.append(j)
        state.weights.append(float(theta))
        missed = state.moments @ solution - z
        # At most once in r updates, so that it costs O(r^2) for each.
        if state.age[0] >= len(z) and missed @ missed > _DRIFT**2 * (z @ z):
            state = state._replace(inverse=inverted(state.moments, j), age=np.zeros(1, np.int64))
            solution = state.inverse @ z
        z, solution = theta * z, theta * solution
        if is_new:
            return appended(state, z, solution, outside / length, theta * length, ridge)
        return updated(state, z, solution)

    def _learn(self, X, y):
        n, p = X.shape
        if self.k is not None and self.n_initial > self.k:
            raise ValueError(f"n_initial={self.n_initial} must be at most k={self.k}")
        self._open(n, y)
        rows = None
        if n > p and not sp.issparse(X):
            with one_blas_thread():
                rows, X = np.linalg.qr(X.astype(np.float64, copy=False))
            self._state = self._state._replace(basis=np.zeros((p, 0)))
        best = self._calibrated(X) if self.k else self._pass(X, self._state)
        self._state = best if rows is None else best._replace(basis=rows @ best.basis)

    def _pass(self, X, state: State) -> State:
        self._state = copy.deepcopy(state)
        self._receive(X, np.arange(X.shape[1]), np.arange(X.shape[1]))
        return self._state

    def _calibrated(self, X) -> State:
        """The state after a pass that samples k features, or as near to k as was found."""
        start, best = self._state, None
        draws = copy.deepcopy(start.rng).random(X.shape[1])
        draws[: self.n_initial] = 0.0
        for _ in range(_PASSES):
            state = self._pass(X, start)
            misses = abs(len(state.index) - self.k)
            if best is None or misses < abs(len(best.index) - self.k):
                best = state
            # The rate that would have sampled k features with the scores of this pass.
            with np.errstate(divide="ignore", invalid="ignore"):
                needed = np.sort(np.nan_to_num(draws / state.scores, posinf=np.inf))
            around = needed[self.k - 1 : self.k + 1]
            if misses == 0 or not np.all(np.isfinite(around)) or len(around) < 2:
                break
            start = start._replace(rate=float(np.mean(around)))
        if len(best.index) != self.k:
            warn(f"k={self.k}, but {len(best.index)} features were sampled: no rate found for k")
        return best

    def partial_fit_columns(self, X_new, y=None, names=None):
        """As in `ColumnStream`; with `k`, only after `fit` has found the rate."""
        if isinstance(self.k, Integral) and not self.__sklearn_is_fitted__():
            raise ValueError(
                f"k={self.k}: the rate is calibrated on all features, by fit; without fit give "
                "rate, or eps, and k=None"
            )
        return super().partial_fit_columns(X_new, y, names)

    @property
    def scores_(self) -> np.ndarray:
        """ndarray of shape (n_features,)
        The online leverage scores l_i."""
        check_is_fitted(self)
        return np.array(self._state.scores)

    @property
    def weights_(self) -> np.ndarray:
        """ndarray of shape (number of selected features,)
        theta_i of the features of `support_`."""
        check_is_fitted(self)
        return np.array(self._state.weights)

    @property
    def rate_(self) -> float:
        """float
        The sampling rate c."""
        check_is_fitted(self)
        return float(self._state.rate)
