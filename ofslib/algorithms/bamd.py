"""Budgeted Adaptive Mirror Descent: barda, Algorithm 2 with phi = alpha/2 |w|^2.

A gradient step with a step size per feature, after which the k features with the largest
H_j |w_j| keep their coefficient; H_j = delta + (sum of squared gradients)**(1/2).
"""

from typing import NamedTuple

import numpy as np

from ofslib._jit import kernel
from ofslib.kernels.hard_threshold import keep, least_kept
from ofslib.kernels.losses import CLASSIFICATION_LOSSES, Loss, slope
from ofslib.kernels.rows import entry, length, row
from ofslib.streams.parameters import NOT_NEGATIVE, POSITIVE, estimator, one_of, param
from ofslib.streams.row_stream import RowClassifier


class Hyper(NamedTuple):
    k: int
    loss: Loss
    learning_rate: float
    alpha: float
    delta: float
    intercept: float  # 1.0 or 0.0


class State(NamedTuple):
    w: np.ndarray  # (p + 1,) coefficients and intercept
    squares: np.ndarray  # (p + 1,) sum of squared gradients; the last entry is the intercept's
    value: np.ndarray  # (p,) H_j |w_j| of the features with a coefficient
    seen: np.ndarray  # (p,) int64: the last row in which the feature had a coefficient and occurred
    kept: np.ndarray  # (p,) uint32: features with a coefficient
    inside: np.ndarray  # (p,) bool: whether the feature has one
    size: np.ndarray  # (1,) int64: how many have one
    rows: np.ndarray  # (1,) int64
    room: np.ndarray  # (2, p + 1) scratch of the selection


@kernel
def move(w, squares, value, j, g, hp):
    """Gradient step of one coefficient, the squares of whose gradients are known."""
    H = hp.delta + np.sqrt(squares[j])
    w[j] -= hp.learning_rate * g / H
    value[j] = H * abs(w[j])


@kernel
def predict(x, w):
    """x . w"""
    total = 0.0
    for i in range(length(x)):
        j, v = entry(x, i)
        total += v * w[j]
    return total


@kernel
def step(state, x, y, hp):
    """Show one observation; returns the prediction made before it."""
    w, squares, value, seen = state.w, state.squares, state.value, state.seen
    kept, inside, size, rows = state.kept, state.inside, state.size, state.rows
    margin = predict(x, w) + hp.intercept * w[-1]
    if not np.isfinite(margin):
        return margin
    s = slope(hp.loss, margin, y)
    rows[0] += 1
    for i in range(length(x)):
        j, v = entry(x, i)
        g = s * v + hp.alpha * w[j]
        squares[j] += g * g
        if inside[j]:
            seen[j] = rows[0]
            move(w, squares, value, j, g, hp)
    for j in kept[: size[0]]:
        if seen[j] < rows[0]:
            g = hp.alpha * w[j]
            squares[j] += g * g
            move(w, squares, value, j, g, hp)
    least, m = least_kept(value, kept, size[0], hp.k) * (1.0 - 1e-12), size[0]
    for i in range(length(x)):
        j, v = entry(x, i)
        g = s * v
        # The value of a new coefficient is eta |g|, but for rounding.
        if not inside[j] and g != 0.0 and hp.learning_rate * abs(g) >= least:
            move(w, squares, value, j, g, hp)
            kept[m] = j
            m += 1
    keep(w, value, kept, inside, size, m, hp.k, state.room)
    g = s * hp.intercept
    squares[-1] += g * g
    w[-1] -= hp.learning_rate * g / (hp.delta + np.sqrt(squares[-1]))
    return margin


@kernel
def fold(state, X, y, order, hp, margins):
    """Show the rows `order` of X, as `RowStream` asks for."""
    for i in range(len(order)):
        margins[i] = step(state, row(X, order[i]), y[order[i]], hp)
        if not np.isfinite(margins[i]):
            return i
    return len(order)


@estimator
class BAMDClassifier(RowClassifier):
    """Budgeted Adaptive Mirror Descent for two classes (barda, Algorithm 2).

    Frequent features learn slowly and rare ones fast. Cost: O(entries of the row + k) per row.
    """

    loss: str = param("The paper's loss.", one_of(*CLASSIFICATION_LOSSES), default="squared_hinge")
    learning_rate: float = param("Step size eta.", POSITIVE, default=0.1)
    alpha: float = param("Weight lambda of the penalty lambda/2 |w|^2.", NOT_NEGATIVE, default=1e-5)
    delta: float = param("What the paper adds to the adaptive scale H.", POSITIVE, default=0.01)

    fold, hyper = fold, Hyper
    frozen = ("delta",)

    def _init(self, n_features):
        p = n_features
        return State(
            w=np.zeros(p + 1),
            squares=np.zeros(p + 1),
            value=np.zeros(p),
            seen=np.zeros(p, np.int64),
            kept=np.zeros(p, np.uint32),
            inside=np.zeros(p, bool),
            size=np.zeros(1, np.int64),
            rows=np.zeros(1, np.int64),
            room=np.empty((2, p + 1)),
        )

    def _model(self, state, hyper):
        return state.w[:-1].copy(), float(state.w[-1])
