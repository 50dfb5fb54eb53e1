"""Adaptive FOBOS: Duchi et al. 2011; Ada-Fobos in barda.

A gradient step with a step size per feature, then shrinkage in the same scale:
w_j <- soft(w_j - eta g_j / H_j, eta l1 / H_j) with H_j = delta + (sum of squared gradients)**(1/2).
The shrinkage of a feature waits until the feature occurs again, so that a row costs what its
nonzeros cost.
"""

from typing import NamedTuple

import numpy as np

from ofslib._jit import kernel
from ofslib.kernels.losses import CLASSIFICATION_LOSSES, Loss, slope
from ofslib.kernels.penalties import shrunk, soft
from ofslib.kernels.penalty_grid import TILE, Path, begin_step, end_step, gradient
from ofslib.kernels.rows import entry, length, row
from ofslib.streams.parameters import POSITIVE, estimator, one_of, param
from ofslib.streams.penalised import Penalised
from ofslib.streams.row_stream import RowClassifier


class Hyper(NamedTuple):
    k: int
    loss: Loss
    l1: float
    learning_rate: float
    delta: float
    intercept: float  # 1.0 or 0.0


class State(NamedTuple):
    # (p + 1, 4) coefficient, sum of squared gradients, 1 / H, row up to which it has been shrunk
    features: np.ndarray
    rows: np.ndarray  # (1,) int64


class PathState(NamedTuple):
    path: Path
    squares: np.ndarray  # (p + 1, m) sum of squared gradients


@kernel
def step(state, x, y, hp):
    """Show one observation; returns the prediction made before it."""
    features, now, threshold = state.features, state.rows[0], hp.learning_rate * hp.l1
    margin = hp.intercept * features[-1, 0]
    for i in range(length(x)):
        j, v = entry(x, i)
        missed = now - features[j, 3]
        if missed > 0.0:
            features[j, 0] = shrunk(features[j, 0], missed, threshold * features[j, 2], 1.0)
            features[j, 3] = now
        margin += v * features[j, 0]
    if not np.isfinite(margin):
        return margin
    state.rows[0] += 1
    s = slope(hp.loss, margin, y)
    if s == 0.0:
        return margin
    for i in range(length(x)):
        j, v = entry(x, i)
        learn(features, j, s * v, threshold, hp)
        features[j, 3] = now + 1.0
    learn(features, len(features) - 1, s * hp.intercept, 0.0, hp)
    return margin


@kernel
def learn(features, j, g, threshold, hp):
    """Take in the gradient g by coefficient j, and shrink it."""
    features[j, 1] += g * g
    features[j, 2] = 1.0 / (hp.delta + np.sqrt(features[j, 1]))
    moved = features[j, 0] - hp.learning_rate * g * features[j, 2]
    features[j, 0] = soft(moved, threshold * features[j, 2])


@kernel
def settled(state, hp):
    """The coefficients, all shrunk up to now."""
    w, features, threshold = state.features[:, 0].copy(), state.features, hp.learning_rate * hp.l1
    for j in range(len(w) - 1):
        missed = state.rows[0] - features[j, 3]
        w[j] = shrunk(w[j], missed, threshold * features[j, 2], 1.0)
    return w


@kernel
def step_all(state, hp):
    """One step for each penalty; returns whether all is finite."""
    path, squares, eta = state.path, state.squares, hp.learning_rate
    if not begin_step(path, hp.loss):
        return False
    W, l1, used, last = path.W, path.l1, path.used, len(path.w) - 1
    for start in range(0, len(W), TILE):
        gradients = gradient(path, start)
        for j in range(start, start + len(gradients)):
            w, square, g = W[j], squares[j], gradients[j - start]
            for q in range(len(l1)):
                square[q] += g[q] * g[q]
                rate = eta / (hp.delta + np.sqrt(square[q]))
                w[q] = soft(w[q] - rate * g[q], rate * l1[q] if j < last else 0.0)
                used[q] += w[q] != 0.0 and j < last
    end_step(path, W, hp.k)
    return True


@kernel
def fold(state, X, y, order, hp, margins):
    """Show the rows `order` of X, as `RowStream` asks for."""
    for i in range(len(order)):
        margins[i] = step(state, row(X, order[i]), y[order[i]], hp)
        if not np.isfinite(margins[i]):
            return i
    return len(order)


@estimator
class AdaFobosClassifier(Penalised, RowClassifier):
    """Adaptive FOBOS, with an l1 penalty, for two classes (Duchi et al. 2011).

    Frequent features learn slowly and rare ones fast. Cost: O(entries of the row) per row with
    one penalty; O(p * n_penalties) per row with `k`.
    """

    loss: str = param("The barda paper's.", one_of(*CLASSIFICATION_LOSSES), default="squared_hinge")
    learning_rate: float = param("Step size eta.", POSITIVE, default=0.1)
    delta: float = param("What the paper adds to the adaptive scale H.", POSITIVE, default=0.01)

    fold, step_all, hyper = fold, step_all, Hyper
    frozen = (*Penalised.frozen, "learning_rate", "delta")

    def _init(self, n_features):
        if self.k is not None:
            path = self._new_path(n_features)
            return PathState(path, np.zeros_like(path.W))
        features = np.zeros((n_features + 1, 4))
        features[:, 2] = 1.0 / self.delta
        return State(features, np.zeros(1, np.int64))

    def _one(self, state, hyper):
        return settled(state, hyper)
