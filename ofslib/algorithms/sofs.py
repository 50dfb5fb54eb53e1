"""Second-order Online Feature Selection: Wu et al. 2017, Algorithm 2; SOFS in sfsa and barda.

AROW with a diagonal covariance: where y m < 1, with v = x' Sigma x before the step,
mu += (1 - y m) / (v + gamma) y Sigma x and 1 / sigma_j += x_j**2 / gamma. Then the k features with
the smallest variance, those that the model is surest of, keep their coefficient. Variances only
fall, so that the k smallest are kept in a heap with the largest of them on top.
"""

from typing import NamedTuple

import numpy as np

from ofslib._jit import kernel
from ofslib.kernels.heap import offer, sift
from ofslib.kernels.rows import entry, length, row
from ofslib.streams.parameters import POSITIVE, estimator, one_of, param
from ofslib.streams.row_stream import RowClassifier, coef_and_intercept


class Hyper(NamedTuple):
    gamma: float
    intercept: float  # 1.0 or 0.0


class State(NamedTuple):
    mu: np.ndarray  # (p + 1,) mean of the coefficients; the last entry is the intercept's
    squares: np.ndarray  # (p + 1,) sum of the squares of what the model stepped on
    sigma: np.ndarray  # (p + 1,) variance gamma / (gamma + squares): equal counts tie exactly
    heap: np.ndarray  # (k,) int32: features with a coefficient, the least sure one first
    place: np.ndarray  # (p,) int32: i + 1 at heap[i], 0 without a coefficient
    size: np.ndarray  # (1,) int64


@kernel
def step(state, x, y, hp):
    """Show one observation; returns the prediction made before it."""
    mu, squares, sigma, heap, place = state.mu, state.squares, state.sigma, state.heap, state.place
    margin, spread, m = hp.intercept * mu[-1], hp.intercept * sigma[-1], state.size[0]
    for i in range(length(x)):
        j, v = entry(x, i)
        margin += v * mu[j]
        spread += v * v * sigma[j]
    if not np.isfinite(spread):
        return spread
    if not np.isfinite(margin) or y * margin >= 1.0:
        return margin
    alpha = (1.0 - y * margin) / (spread + hp.gamma) * y
    for i in range(length(x)):
        j, v = entry(x, i)
        mu[j] += alpha * sigma[j] * v
        squares[j] += v * v
        sigma[j] = hp.gamma / (hp.gamma + squares[j])
        if place[j] > 0:
            sift(heap, place, sigma, False, place[j] - 1, m)
    for i in range(length(x)):
        j, v = entry(x, i)
        if place[j] > 0 or v == 0.0:
            continue
        if m == len(heap) and sigma[j] > sigma[heap[0]]:
            mu[j] = 0.0
            continue
        out = offer(heap, place, sigma, j, m, len(heap))
        m = min(m + 1, len(heap))
        if out >= 0:
            mu[out] = 0.0
    state.size[0] = m
    mu[-1] += hp.intercept * alpha * sigma[-1]
    squares[-1] += hp.intercept
    sigma[-1] = hp.gamma / (hp.gamma + squares[-1])
    return margin


@kernel
def fold(state, block, hp):
    """Show the rows of the block, as `RowStream` asks for."""
    X, y, order, margins = block
    for i in range(len(order)):
        margins[i] = step(state, row(X, order[i]), y[order[i]], hp)
        if not np.isfinite(margins[i]):
            return i
    return len(order)


@estimator
class SOFSClassifier(RowClassifier):
    """Second-order Online Feature Selection for two classes (Wu et al. 2017, Algorithm 2).

    The step size of a feature falls with what has been seen of it; the k features that have been
    seen best are kept, whatever their coefficient. Cost: O(entries of the row * log k) per row.
    """

    loss: str = param("The loss of AROW.", one_of("squared_hinge"), default="squared_hinge")
    gamma: float = param(
        "Regularisation r: the larger, the smaller the steps.", POSITIVE, default=1.0
    )

    fold, step_parameter, hyper = fold, "gamma", Hyper
    frozen = ("k",)

    def _new_state(self, n_features):
        return State(
            mu=np.zeros(n_features + 1),
            squares=np.zeros(n_features + 1),
            sigma=np.ones(n_features + 1),
            heap=np.zeros(min(self.k, n_features), np.int32),
            place=np.zeros(n_features, np.int32),
            size=np.zeros(1, np.int64),
        )

    def _model(self, state):
        return coef_and_intercept(state.mu)
