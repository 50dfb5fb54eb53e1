"""As many features as a bound on false discoveries allows: knockoffs from running averages.

A knockoff copy of a feature has its correlations with all other features and nothing to do with y.
Of n >= 2 p + 1 rows with Gaussian noise the fixed-X copies of Barber and Candes (2015) leave the
averages of y and the copies with a law that depends on the running averages only: the copies are
never made, their moments are drawn. With features of a known law the copies of Candes et al. (2018)
are made of each row instead. None of this is of the five papers.
"""

from collections.abc import Iterable, Iterator
from functools import partial
from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.linalg import LinAlgError, cholesky, solve_triangular
from scipy.linalg.lapack import dpotri
from sklearn.utils import check_random_state

from ofslib.averages import RunningAverages, Standardized
from ofslib.kernels.gram import coordinate_path
from ofslib.kernels.penalties import Penalty
from ofslib.streams.average_stream import AverageStream
from ofslib.streams.parameters import AT_LEAST_ONE, estimator, number, param
from ofslib.streams.selector import Classifier, Regressor, target_and_weight, warn

_LEVELS = 20  # penalties on the way to the one that decides, each begun with the one before
_EPS = float(np.finfo(np.float64).eps)
_TOL, _SWEEPS = 1e-9, 1000  # of the Lasso, in units of the largest covariance


class KnockoffSelection(NamedTuple):
    """What `select_by_knockoffs` chose, and by what."""

    support: np.ndarray  # features, ascending
    statistics: np.ndarray  # (draws, p): W, positive where the feature won against its copy
    e_values: np.ndarray  # (p,), the means over the draws


def select_by_knockoffs(
    averages: RunningAverages, fdr: float = 0.1, draws: int = 1, random_state: Any = None
) -> KnockoffSelection:
    """Features of which a share of at most `fdr` is expected to be false.

    W of a feature is the size of its coefficient less that of its copy, in the Lasso of y on all
    features and copies with the penalty sigma sqrt(2 log(2 p) / n), sigma from least squares on
    these, but at least 1/1000 of the largest covariance with y.

    The expected share of false ones is at most `fdr`, whatever n >= 2 p + 1 and the rows x are, if
    y = x . coef + noise with independent Gaussian noise of one variance and rows of equal weight.
    For labels, or other noise, this holds in the limit of many rows, if the rows x are Gaussian and
    y depends on them by one linear combination. At least 1 / fdr features have to stand out, 2 /
    fdr of several draws, or none is chosen.

    Parameters
    ----------
    averages : RunningAverages
        Of n >= 2 p + 1 rows, p the features that are not constant; read only.
    fdr : float, default=0.1
        Bound q on the false discovery rate, between 0 and 1.
    draws : int, default=1
        So many times the copies are drawn. With several the choice depends less on chance: the
        e-values of the draws, each at the level q / 2, are averaged (Ren and Barber 2024), at the
        price of power where few features are true.
    random_state : int, RandomState or None, default=None
        What the draws follow from.

    Returns
    -------
    KnockoffSelection
        `support`, `statistics` of shape (draws, p), `e_values` of shape (p,). If none is chosen,
        `support` is empty.

    Raises
    ------
    TypeError
        If these are no running averages.
    ValueError
        If there are too few rows, or weights that do not add up to their number (averages do not
        tell whether they are equal), or features that depend on each other linearly, as far as
        the precision of the averages tells, or a parameter is not allowed.

    References
    ----------
    Barber and Candes (2015), Annals of Statistics 43: fixed-X copies and the filter. Gimenez and
    Zou (2019), AISTATS: copies of maximal entropy. He et al. (2022), Nature Communications 13:
    copies of summary statistics. Ren and Barber (2024), JRSS B 86: e-values.
    """
    if not isinstance(averages, RunningAverages):
        raise TypeError(f"averages must be RunningAverages, not {type(averages).__name__}")
    _check_level(fdr)
    if isinstance(draws, bool) or not isinstance(draws, Integral) or draws < 1:
        raise ValueError(f"draws={draws!r} must be a whole number of at least 1")
    standard = averages.standardized()
    return _selected(standard, averages.weight, True, fdr, draws, random_state)


def knockoff_filter(statistics: np.ndarray, fdr: float = 0.1) -> np.ndarray:
    """Features whose statistics W exceed the threshold T of knockoffs+ (Barber and Candes 2015).

    T is the least size of a W at which (1 + #{W <= -T}) / #{W >= T} is at most `fdr`.

    Parameters
    ----------
    statistics : array-like of shape (p,)
        W: for true features large; for the others the sign is that of a fair coin.
    fdr : float, default=0.1
        Bound on the false discovery rate, between 0 and 1.

    Returns
    -------
    ndarray of int
        Ascending; empty if there is no such T.

    Raises
    ------
    ValueError
        If the statistics are not finite numbers in one dimension, or `fdr` is not allowed.
    """
    _check_level(fdr)
    W = _numbers("statistics", statistics)
    if W.ndim != 1:
        raise ValueError(f"statistics must be finite and of shape (p,), got shape {W.shape}")
    return np.flatnonzero(W >= _threshold(W, fdr))


def _check_level(fdr):
    if isinstance(fdr, bool) or not isinstance(fdr, Real) or not 0 < fdr < 1:
        raise ValueError(f"fdr={fdr!r} must be a number between 0 and 1")


def _threshold(W, fdr):
    sizes = np.sort(np.abs(W[W != 0]))
    losses, wins = np.sort(-W[W < 0]), np.sort(W[W > 0])
    false = 1 + len(losses) - np.searchsorted(losses, sizes)
    found = len(wins) - np.searchsorted(wins, sizes)
    fitting = sizes[false <= fdr * found * (1 + 1e-12)]  # also a share that is the bound
    return fitting[0] if len(fitting) else np.inf


def _e_values(W, fdr):
    T = _threshold(W, fdr)
    return len(W) * (W >= T) / (1.0 + np.count_nonzero(W <= -T))


def _discoveries(e_values, fdr):
    """The e-BH procedure: the largest m with m e-values of at least p / (fdr m)."""
    p, order = len(e_values), np.argsort(-e_values, kind="stable")
    enough = np.arange(1, p + 1) * e_values[order] * fdr >= p * (1 - 1e-12)
    return np.sort(order[: np.flatnonzero(enough).max(initial=-1) + 1])


# -------------------------------------------------- moments of the copies


def largest_distances(S: np.ndarray, eps: float = _EPS) -> np.ndarray:
    """How far the copies may be from their features: s with 2 S - diag(s) positive definite.

    A copy has the covariance S_jj - s_j with its feature. The s are at most the diagonal of S, and
    maximise log det of the covariance of features and copies (Gimenez and Zou 2019), that is
    sum log s_j + log det(2 S - diag(s)): the best value of each s_j given the others is the mean
    of itself and 1 / [(2 S - diag(s))^-1]_jj. The ascent ends where a step adds less
    than p / 10,000, some percent from the largest: the law of the copies is right with any.

    Parameters
    ----------
    S : ndarray of shape (p, p)
        Positive definite.
    eps : float
        Relative precision of S.

    Returns
    -------
    ndarray of shape (p,)

    Raises
    ------
    ValueError
        If S is singular to its precision.
    """
    p, diagonal = len(S), np.diagonal(S)
    least = np.linalg.eigvalsh(S / _products(np.sqrt(diagonal)))[0]
    if not least > 10 * p * eps:
        raise ValueError(
            "features depend on each other linearly: the least eigenvalue of their correlations is "
            f"{least:.2g}; leave out what the others make up"
        )
    s = min(1.0, least) * diagonal
    value, factor = _entropy(S, s)
    while True:
        inverse = np.diagonal(dpotri(factor, lower=1)[0])
        aim, length = np.minimum((s + 1.0 / inverse) / 2.0, diagonal), 1.0
        while True:
            tried = s + length * (aim - s)
            better, factor = _entropy(S, tried)
            if better > value:
                break
            length /= 2.0
            if length < 1e-3:
                return s
        gain, s, value = better - value, tried, better
        if gain < 1e-4 * p:
            return s


def _entropy(S, s):
    matrix = 2.0 * S
    matrix[np.diag_indices(len(S))] -= s
    try:
        factor = cholesky(matrix, lower=True, overwrite_a=True, check_finite=False)
    except LinAlgError:
        return -np.inf, None
    return np.log(s).sum() + 2.0 * np.log(np.diagonal(factor)).sum(), factor


class _Copies(NamedTuple):
    """How copies follow from their features: x~ = x - (x - mean) S^-1 diag(s) + noise."""

    shrink: np.ndarray  # (p, p): S^-1 diag(s)
    factor: np.ndarray  # (p, p): F with F F' = 2 diag(s) - diag(s) S^-1 diag(s)
    s: np.ndarray  # (p,)


def _products(v):
    return np.outer(v, v)


def _copies_of(S, eps=_EPS):
    s = largest_distances(S, eps)
    L = cholesky(S, lower=True)
    half = solve_triangular(L, np.diag(s), lower=True)
    shrink = solve_triangular(L, half, lower=True, trans=1)
    V = 2.0 * np.diag(s) - half.T @ half
    # V = diag(s) S^-1 (2 S - diag(s)) >= 0; what rounding takes from it is given back.
    V[np.diag_indices(len(S))] += 1e-12 * s
    return _Copies(shrink, cholesky(V, lower=True), s)


def _selected(standard: Standardized, weight, centred, fdr, draws, random_state):
    p, rng = len(standard.scale), _generator(random_state)
    there = np.flatnonzero(np.isfinite(standard.scale))
    statistics = np.zeros((draws, p))
    n, m = standard.n, len(there)
    if n < 2 * m + centred:
        raise ValueError(
            f"n_samples={n} is too few for knockoffs of {m} features: at least {2 * m + centred} "
            "rows are needed; choose among fewer features"
        )
    _check_weight(weight, n)
    if m and standard.S_yy > 0:
        S = np.asarray(standard.S_xx[np.ix_(there, there)], dtype=np.float64)
        drawn = _statistics(S, standard, there, n - centred, rng)
        statistics[:, there] = [drawn() for _ in range(draws)]
    level = fdr if draws == 1 else fdr / 2
    e_values = np.mean([_e_values(W, level) for W in statistics], axis=0)
    return KnockoffSelection(_discoveries(e_values, fdr), statistics, e_values)


def _check_weight(weight, n):
    if abs(weight - n) > 1e-9 * n:
        raise ValueError(f"sample_weight sums up to {weight:.6g} for {n} rows; they must weigh 1")


def _generator(random_state):
    try:
        return check_random_state(random_state)
    except ValueError as error:
        allowed = "a whole number of at least 0, a RandomState or None"
        raise ValueError(f"random_state={random_state!r} must be {allowed}") from error


def _statistics(S, standard, there, n_free, rng):
    """What draws the moments of copies, and gives the statistics W of the Lasso on them."""
    n, m, z = standard.n, len(there), standard.S_xy[there]
    copies = _copies_of(S, np.finfo(standard.S_xx.dtype).eps)
    D = np.diag(copies.s)
    G = np.asfortranarray(np.block([[S, S - D], [S - D, S]]))
    rest = max(standard.S_yy - z @ np.linalg.solve(S, z), 0.0)

    def draw():
        of_copies, left = _of_copies(copies, z, rest, n_free - m, rng)
        # Of features and copies together: where a feature and its copy change places, W may change
        # its sign only, so that the penalty has to stay.
        sigma = np.sqrt(left * n / max(n_free - 2 * m, 1))
        b = np.append(z, of_copies)
        top, last = np.abs(b).max(), sigma * np.sqrt(2.0 * np.log(2 * m) / n)
        if not last < top:
            return np.zeros(m)
        levels = np.geomspace(top, max(last, 1e-3 * top), _LEVELS)
        kind = int(Penalty.elastic_net)
        W, converged = coordinate_path(G, b, levels, kind, 0.0, 2 * m, _TOL * top, _SWEEPS)
        if not converged:
            warn(f"the Lasso of features and copies has not converged in {_SWEEPS} sweeps")
        size = np.abs(W[-1])
        return size[:m] - size[m:]

    return draw


def _of_copies(copies: _Copies, z, rest, n_left, rng):
    """Covariances of copies with y, given those of the features and the residual variance.

    The residuals of least squares have a direction that is uniform in n_left dimensions, of which
    the copies have as many as there are of them. Also what they leave of the variance.
    """
    u = rng.standard_normal(len(z))
    others = rng.chisquare(n_left - len(z)) if n_left > len(z) else 0.0
    part = rest / (u @ u + others)
    return z - copies.shrink.T @ z + copies.factor @ (np.sqrt(part) * u), part * others


# -------------------------------------------------- copies of rows


class KnockoffCopies:
    """Copies of Gaussian rows, made row by row: Candes, Fan, Janson and Lv (2018), (3.2).

    For streams that are learned by rows: `doubled` shows a method each feature and its copy, and
    `knockoff_filter` chooses by the sizes of their coefficients. The false discovery rate is held
    whatever y is, if the rows have this mean and covariance and are Gaussian; if these are learned
    from rows, up to what was not learned of them.

    Parameters
    ----------
    mean : array-like of shape (p,)
        Of the rows.
    covariance : array-like of shape (p, p)
        Of the rows; positive definite.

    Raises
    ------
    ValueError
        If the shapes do not fit, or the covariance is singular.
    """

    sources = "candes2018panning"

    def __init__(self, mean, covariance):
        self.mean, S = _numbers("mean", mean), _numbers("covariance", covariance)
        if self.mean.ndim != 1 or not self.mean.size or S.shape != 2 * self.mean.shape:
            raise ValueError(
                "covariance must have the shape (p, p) of mean, p at least 1, got "
                f"{S.shape} and {self.mean.shape}"
            )
        if not (np.diagonal(S) > 0).all():
            raise ValueError("covariance must have a diagonal above 0: leave out what is constant")
        if (abs(S - S.T) > 1e-5 * _products(np.sqrt(np.diagonal(S)))).any():
            raise ValueError("covariance must be symmetric")
        self._copies = _copies_of(S)

    @classmethod
    def from_averages(cls, averages: RunningAverages) -> "KnockoffCopies":
        """Of the mean and covariance of the rows that averages have seen."""
        if not isinstance(averages, RunningAverages):
            raise TypeError(f"averages must be RunningAverages, not {type(averages).__name__}")
        standard = averages.standardized()
        if not np.isfinite(standard.scale).all():
            j = int(np.flatnonzero(~np.isfinite(standard.scale))[0])
            raise ValueError(f"averages: feature {j} is constant and has no copy")
        return cls(standard.mean_x, standard.S_xx * _products(standard.scale))

    def draw(self, X, random_state=None) -> np.ndarray:
        """Copies of rows, of the shape of X."""
        X = _numbers("X", X.toarray() if sp.issparse(X) else X)
        if X.ndim != 2 or X.shape[1] != len(self.mean):
            raise ValueError(f"X must have {len(self.mean)} features, got shape {X.shape}")
        noise = _generator(random_state).standard_normal(X.shape)
        return X - (X - self.mean) @ self._copies.shrink + noise @ self._copies.factor.T


def _numbers(name, given) -> np.ndarray:
    """As finite float64; ValueError, with the name, if it is none."""
    try:
        if np.iscomplexobj(given) or sp.issparse(given):
            raise TypeError
        found = np.array(given, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must be an array of numbers, not {given!r}") from error
    if not np.isfinite(found).all():
        raise ValueError(f"{name} must be finite")
    return found


def doubled(
    blocks: Iterable[tuple], copies: KnockoffCopies | None = None, random_state: Any = None
) -> Iterator[tuple]:
    """Blocks of rows with p more columns: the copies of the p features.

    Without `copies` those of a block are its rows in another order: a control, not knockoffs. It
    holds the false discovery rate only where features do not depend on each other; otherwise a
    false feature that goes with a true one wins against its shuffled copy.

    Parameters
    ----------
    blocks : iterable of (X, y)
        Rows, dense or sparse; what follows X is handed on.
    copies : KnockoffCopies, optional
        What makes the copies. None: the rows of each block, shuffled.
    random_state : int, RandomState or None, default=None
        What the copies follow from.

    Yields
    ------
    (X, y)
        X of shape (b, 2 p), sparse if it was and `copies` is None.

    Raises
    ------
    TypeError, ValueError
        If a parameter is not allowed; where a block comes, if it is no matrix of the features.
    """
    if not (copies is None or isinstance(copies, KnockoffCopies)):
        raise TypeError(f"copies must be KnockoffCopies or None, not {type(copies).__name__}")
    return _doubled(blocks, copies, _generator(random_state))


def _doubled(blocks, copies, rng):
    for X, *more in blocks:
        X = sp.csr_array(X) if sp.issparse(X) else np.asarray(X)
        if X.ndim != 2:
            raise ValueError(f"X must be of shape (rows, features), got {X.shape}")
        made = X[rng.permutation(X.shape[0])] if copies is None else copies.draw(X, rng)
        X = X.toarray() if sp.issparse(X) and copies is not None else X
        stack = partial(sp.hstack, format="csr") if sp.issparse(X) else np.hstack
        yield stack([X, made]), *more


# -------------------------------------------------- estimators


@estimator
class Knockoffs(AverageStream):
    """Least squares on the features that knockoffs choose."""

    sources = (
        "barber2015controlling, gimenez2019improving, he2022ghostknockoff, ren2024derandomised"
    )
    description = (
        "As many features as a bound on the share of false ones allows: `select_by_knockoffs`, "
        "which says on what conditions; it needs n >= 2 p + 1 rows, and chooses none or at least "
        "1 / fdr features, 2 / fdr with several draws. Those of `path` are the k with the largest "
        "statistics, by their means over the draws. "
        "Cost: O(p^3) per model."
    )
    example = """
        >>> {name}(fdr=0.34, random_state=0).partial_fit(X, y).support_
        array([ 9, 19, 29])
    """

    fdr: float = param(
        "Bound on the false discovery rate.",
        number(Real, 0, 1, closed="neither"),
        default=0.1,
    )
    draws: int = param("Times that the copies are drawn.", AT_LEAST_ONE, default=1)
    random_state: int | np.random.RandomState | None = param(
        "What the copies follow from.", "random_state", default=None
    )

    def _validate_params(self):
        super()._validate_params()
        if self.adaptation:
            raise ValueError(
                f"adaptation={self.adaptation!r} must be 0: knockoffs are of rows of equal weight"
            )

    def _accept(self, averages):
        super()._accept(averages)
        _check_weight(averages.weight, averages.n)

    def _learn_block(self, state, block):
        _, weight = target_and_weight(block[1])
        if weight is not None and (weight != 1).any():
            raise ValueError(
                "sample_weight and class_weight must be 1: knockoffs are of equal rows"
            )
        return super()._learn_block(state, block)

    def _selection(self, standard, weight):
        own = (float(self.fdr), int(self.draws), self.random_state)
        return _selected(standard, weight, self.fit_intercept, *own)

    def _chosen_coef(self, standard, weight):
        support = self._selection(standard, weight).support
        if not len(support):
            least = int(np.ceil((1 if self.draws == 1 else 2) / self.fdr * (1 - 1e-12)))
            warn(
                f"no feature stands out at fdr={self.fdr}: the model has none. At least {least} "
                "have to be better than their copies."
            )
        return self._refit(standard, support)

    def _coefs(self, standard, ks):
        W = self._selection(standard, standard.n).statistics.mean(axis=0)
        order = np.argsort(-W, kind="stable")
        return np.array([self._refit(standard, np.sort(order[:k])) for k in ks])


@estimator
class KnockoffsClassifier(Classifier, Knockoffs):
    """Knockoffs from running averages for classification."""

    fdr_condition = (
        "in the limit of many rows, if the rows x are Gaussian and the label depends on x by one "
        "linear combination"
    )


@estimator
class KnockoffsRegressor(Regressor, Knockoffs):
    """Knockoffs from running averages for regression."""

    fdr_condition = "if y = x . coef + independent Gaussian noise of one variance"
