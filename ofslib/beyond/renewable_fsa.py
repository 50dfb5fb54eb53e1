"""Logistic regression on k features in one pass: rows near the boundary, averages of the others.

Least squares on labels loses what the labels say wherever classes are nearly separable: all rows
count alike, and those far from the boundary say nothing of single coefficients. Here running
averages of all rows tell how far a row is from the boundary. A bounded number of rows, the
nearest, is kept; of a row that goes the quadratic approximation of its loss stays, as running
averages with working weights and working responses (renewable estimation: Luo and Song 2020).
The model comes from both, by backward elimination. None of this is of the five papers.
"""

from numbers import Integral
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.linalg import cho_factor, cho_solve
from scipy.linalg.blas import dsyrk
from scipy.special import expit

from ofslib.averages import RunningAverages
from ofslib.kernels.gram import least_squares
from ofslib.streams.parameters import AT_LEAST_ONE, POSITIVE, estimator, number, param
from ofslib.streams.selector import (
    Classifier,
    LinearModel,
    one_vs_rest,
    predict_log_proba,
    predict_proba,
    target_and_weight,
)

_LEFT = 0.9  # share of the kept rows that stay when there is no room
# Least working weight of a row of which something stays, |log odds| < 3.9. Those of others hardly
# count, but their responses may be far off where the margin is.
_LEAST = 0.02
_NEWTON = 30  # steps, each of which is halved up to _HALVINGS times
_HALVINGS = 30
_ROUNDS = 10  # in which dropped features may come back
_BACK = 0.3  # share of k that does in the first round


class _Rows(NamedTuple):
    """What is known of the rows of one label against the others."""

    seen: RunningAverages  # of all rows, y = -1 or +1
    gone: RunningAverages  # of those that were not kept: working weights and responses
    X: np.ndarray  # (m, p), the rows that are kept
    y: np.ndarray  # (m,), -1 or +1
    weight: np.ndarray  # (m,)

    def within(self, p: int) -> bool:
        """Whether all are of the same rows and features."""
        return self.X.shape == (len(self.y), p) and len(self.y) == len(self.weight)


class _State(NamedTuple):
    models: tuple[_Rows, ...]


class _Problem(NamedTuple):
    """The loss in standardised features, and a last one that is 1 if there is an intercept."""

    Z: np.ndarray  # (m, p + 1), the kept rows
    y: np.ndarray
    weight: np.ndarray
    Q: np.ndarray  # (p + 1, p + 1) and (p + 1,): w'Qw / 2 - w'r is the loss of the others
    r: np.ndarray
    l2: np.ndarray  # (p + 1,)


# -------------------------------------------------- rows come and go


def _with_rows(rows: _Rows, X, y, weight, max_rows: int, centre: bool, l2: float) -> _Rows:
    """The state after a block; it does not depend on how the rows are cut into blocks."""
    at = 0
    while at < len(y):
        if len(rows.y) == max_rows:
            rows = _without_the_farthest(rows, centre, l2)
        part = slice(at, at + max_rows - len(rows.y))
        at = part.stop
        new = X[part].toarray() if sp.issparse(X) else np.asarray(X[part], dtype=np.float64)
        rows.seen.update(new, y[part], weight[part])
        rows = rows._replace(
            X=np.concatenate([rows.X, new]),
            y=np.concatenate([rows.y, y[part]]),
            weight=np.concatenate([rows.weight, weight[part]]),
        )
    return rows


def _without_the_farthest(rows: _Rows, centre: bool, l2: float) -> _Rows:
    margins = _margins(rows, centre, l2)
    order = np.argsort(np.abs(margins), kind="stable")
    stay, go = np.split(order, [int(_LEFT * len(order))])
    stay, go = np.sort(stay), np.sort(go)
    p = expit(margins)
    working = p * (1.0 - p)
    go = go[working[go] >= _LEAST]
    if len(go):
        response = margins[go] + ((rows.y[go] > 0) - p[go]) / working[go]
        rows.gone.update(rows.X[go], response, rows.weight[go] * working[go])
    return rows._replace(X=rows.X[stay], y=rows.y[stay], weight=rows.weight[stay])


def _margins(rows: _Rows, centre: bool, l2: float) -> np.ndarray:
    """Log odds of the kept rows by least squares on the labels of all rows, stretched to fit them.

    The direction of least squares is that of logistic regression if the rows are Gaussian; its
    length is not. It is fitted under the penalty of the model: without one no length is too much
    for separable classes, and of no row would anything stay.
    """
    standard = rows.seen.standardized(centre=centre)
    S = standard.S_xx.copy(order="F")
    # Of p / n, as the eigenvalues that n rows cannot tell from 0 are.
    S[np.diag_indices(len(S))] += len(S) / standard.n
    own = least_squares(S, standard.S_xy, standard.n, 1e-5)
    coef = own / standard.scale
    one = rows.X @ coef + (standard.intercept(coef) if centre else 0.0)
    scale = np.sqrt(np.mean(one**2)) or 1.0
    Z = np.column_stack([one / scale, np.full(len(one), float(centre))])
    none, weak = np.zeros((2, 2)), np.array([max(l2 * (own @ own) / scale**2, 1e-3), 1e-3])
    w, _, _ = _minimum(_Problem(Z, rows.y, rows.weight, none, np.zeros(2), weak), np.arange(1))
    return Z @ w


# -------------------------------------------------- the model


def _problem(rows: _Rows, centre: bool, l2: float) -> _Problem:
    standard = rows.seen.standardized(centre=centre)
    mean, scale, p = standard.mean_x, standard.scale, len(standard.scale)
    Q, r = np.zeros((p + 1, p + 1)), np.zeros(p + 1)
    if rows.gone.n:
        gone = rows.gone
        its_mean, mean_y = gone.mean_x, gone.mean_y
        far, W = (its_mean - mean) / scale, gone.weight
        spread = gone.S_xx - np.outer(its_mean, its_mean)
        Q[:p, :p] = W * (spread / np.outer(scale, scale) + np.outer(far, far))
        Q[:p, p] = Q[p, :p] = W * far
        Q[p, p] = W
        shared = gone.S_xy - its_mean * mean_y
        r[:p] = W * (shared / scale + far * mean_y)
        r[p] = W * mean_y
    if not centre:
        Q[p], Q[:, p], r[p] = 0.0, 0.0, 0.0
    ones = np.full(len(rows.y), float(centre))
    Z = np.column_stack([(rows.X - mean) / scale, ones])
    return _Problem(Z, rows.y, rows.weight, Q, r, np.append(np.full(p, l2), 1e-9))


def _loss(problem: _Problem, margins, own, w) -> float:
    losses = np.logaddexp(0.0, -problem.y * margins) @ problem.weight
    quadratic = 0.5 * w @ (problem.Q[np.ix_(own, own)] @ w) - w @ problem.r[own]
    return float(losses + quadratic + 0.5 * problem.l2[own] @ w**2)


def _minimum(problem: _Problem, features, start=None, steps: int = _NEWTON):
    """Newton's method on some features and the intercept; coefficients, Hessian and loss."""
    own = np.append(features, len(problem.r) - 1)
    Z = np.asfortranarray(problem.Z[:, own])
    w = np.zeros(len(own)) if start is None else start
    Q, l2, margins = problem.Q[np.ix_(own, own)], problem.l2[own], Z @ w
    value = _loss(problem, margins, own, w)
    for _ in range(steps):
        p = expit(margins)
        pull = problem.weight * (p - (problem.y > 0))
        gradient = Z.T @ pull + Q @ w - problem.r[own] + l2 * w
        root = np.sqrt(problem.weight * p * (1.0 - p))
        H = dsyrk(1.0, Z * root[:, None], trans=1, lower=1)
        H += np.tril(Q)
        H[np.diag_indices(len(own))] += l2
        step = cho_solve(cho_factor(H, lower=True), gradient)
        along, length = Z @ step, 1.0
        for _ in range(_HALVINGS):
            tried = w - length * step
            better = _loss(problem, margins - length * along, own, tried)
            if better <= value - 1e-4 * length * (gradient @ step):
                break
            length /= 2.0
        else:
            break
        gain, w, value, margins = value - better, tried, better, margins - length * along
        if gain <= 1e-8 * abs(value):
            break
    return w, H, value


def _eliminated(problem: _Problem, features, k: int, share: float, steps: int):
    """k of some features: those with the least change of the loss go, a share at a time."""
    w = np.zeros(len(features) + 1)
    while True:
        last = len(features) <= k
        w, H, value = _minimum(problem, features, w, _NEWTON if last else steps)
        if last:
            return features, w, value
        m = len(features)
        keep = max(k, int(share * m))
        factor, lower = cho_factor(H, lower=True)
        inverse = cho_solve((factor, lower), np.eye(m + 1))
        cost = w[:-1] ** 2 / np.diagonal(inverse)[:-1]
        stay = np.sort(np.argsort(-cost, kind="stable")[:keep])
        features, w = features[stay], w[np.append(stay, m)]


def _chosen(problem: _Problem, k: int):
    """The features, their coefficients and the intercept: elimination, then exchanges."""
    p = len(problem.r) - 1
    best = _eliminated(problem, np.arange(p), min(k, p), 0.8, 5)
    back = int(np.ceil(_BACK * k))
    for _ in range(_ROUNDS if k < p else 0):
        features, w, value = best
        own = np.append(features, p)
        margins = problem.Z[:, own] @ w
        probability = expit(margins)
        pull = problem.weight * (probability - (problem.y > 0))
        curvature = problem.weight * probability * (1.0 - probability)
        gradient = problem.Z.T @ pull + problem.Q[:, own] @ w - problem.r
        size = (problem.Z**2).T @ curvature + np.diagonal(problem.Q) + problem.l2
        gain = gradient**2 / size
        gain[own] = -1.0
        added = np.argsort(-gain[:p], kind="stable")[: min(back, p - len(features))]
        tried = _eliminated(problem, np.sort(np.append(features, added)), k, 0.95, 3)
        if tried[2] < value - 1e-9 * abs(value):
            best = tried
        elif back == 1:
            break
        back = max(1, back // 2)
    return best


# -------------------------------------------------- the estimator


@estimator
class RenewableFSAClassifier(Classifier, LinearModel):
    """Logistic regression on k features: rows near the boundary, and averages of the others."""

    sources = "luo2020renewable"
    description = (
        "For up to some thousand features. Cost: O(p^2) per row, O(p^3 + max_rows p^2) per model, "
        "and O(p^3) each time that max_rows / 10 rows have come."
    )

    k: int = param("Number of features kept.", AT_LEAST_ONE, default=10)
    max_rows: int = param(
        "Most rows that are kept. With at least as many as are shown the model is logistic "
        "regression on all rows.",
        number(Integral, 8),
        default=5000,
    )
    l2: float = param(
        "Weight of l2/2 w**2, w of a standardised feature, beside the sum of the rows' losses.",
        POSITIVE,
        default=1.0,
    )
    fit_intercept: bool = param("Learn a constant, not counted in k.", "boolean", default=True)

    frozen = ("max_rows", "fit_intercept")
    loss = "log_loss"
    predict_log_proba, predict_proba = predict_log_proba, predict_proba

    def _start(self, n_features):
        empty = np.zeros((0, n_features)), np.zeros(0), np.zeros(0)
        self._state = _State(
            tuple(
                _Rows(RunningAverages(n_features), RunningAverages(n_features), *empty)
                for _ in range(self._n_models)
            )
        )
        self.n_samples_seen_ = 0

    def _learn(self, X, y):
        known = [
            rows._replace(seen=rows.seen.copy(), gone=rows.gone.copy())
            for rows in self._state.models
        ]
        for c, target in enumerate(one_vs_rest(y, self._n_models)):
            labels, weight = target_and_weight(target)
            weight = np.ones(len(labels)) if weight is None else weight
            own = int(self.max_rows), self.fit_intercept, float(self.l2)
            known[c] = _with_rows(known[c], X, labels, weight, *own)
        self._state = _State(tuple(known))
        self.n_samples_seen_ += X.shape[0]
        self._defer()

    _learn_more = _learn

    def _compute(self, state):
        found = [self._one(rows) for rows in state.models]
        coefs, intercepts = map(np.array, zip(*found, strict=True))
        return (coefs, intercepts) if len(found) > 1 else (coefs[0], float(intercepts[0]))

    def _one(self, rows):
        standard = rows.seen.standardized(centre=self.fit_intercept)
        coef = np.zeros(len(standard.scale))
        there = _problem(rows, self.fit_intercept, float(self.l2))
        features, w, _ = _chosen(there, int(self.k))
        coef[features] = w[:-1] / standard.scale[features]
        return coef, float(w[-1] - standard.mean_x @ coef) if self.fit_intercept else 0.0

    def __sklearn_is_fitted__(self):
        return hasattr(self, "_state")
