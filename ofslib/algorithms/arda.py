"""Adaptive Regularized Dual Averaging with an l1 penalty: Duchi et al. 2011; l1-ARDA in barda.

After t rows w_j = -eta soft(G_j, t l1) / H_j, where G_j is the sum of the gradients and
H_j = delta + (sum of their squares)**(1/2). A row costs what its nonzeros cost.
"""

from typing import NamedTuple

import numpy as np

from ofslib._jit import kernel
from ofslib.kernels.losses import CLASSIFICATION_LOSSES, Loss, slope
from ofslib.kernels.penalties import soft
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
    sums: np.ndarray  # (p + 1, 3) sum of gradients, of their squares, and 1 / H; last: intercept
    rows: np.ndarray  # (1,) int64


class PathState(NamedTuple):
    path: Path
    G: np.ndarray  # (p + 1, m) sum of gradients
    squares: np.ndarray  # (p + 1, m) sum of squared gradients


@kernel
def step(state, x, y, hp):
    """Show one observation; returns the prediction made before it."""
    sums, threshold, total = state.sums, hp.l1 * state.rows[0], 0.0
    for i in range(length(x)):
        j, v = entry(x, i)
        total += v * soft(sums[j, 0], threshold) * sums[j, 2]
    margin = -hp.learning_rate * (total + hp.intercept * sums[-1, 0] * sums[-1, 2])
    if not np.isfinite(margin):
        return margin
    s = slope(hp.loss, margin, y)
    state.rows[0] += 1
    if s == 0.0:
        return margin
    for i in range(length(x)):
        j, v = entry(x, i)
        learn(sums, j, s * v, hp.delta)
    learn(sums, len(sums) - 1, s * hp.intercept, hp.delta)
    return margin


@kernel
def learn(sums, j, g, delta):
    """Take in the gradient g by coefficient j."""
    sums[j, 0] += g
    sums[j, 1] += g * g
    sums[j, 2] = 1.0 / (delta + np.sqrt(sums[j, 1]))


@kernel
def step_all(state, hp):
    """One step for each penalty; returns whether all is finite."""
    path, G, squares, eta = state.path, state.G, state.squares, hp.learning_rate
    if not begin_step(path, hp.loss):
        return False
    W, l1, used, t, last = path.W, path.l1, path.used, path.count[1] + 1, len(path.w) - 1
    for start in range(0, len(W), TILE):
        gradients = gradient(path, start)
        for j in range(start, start + len(gradients)):
            w, total, square, g = W[j], G[j], squares[j], gradients[j - start]
            for q in range(len(l1)):
                total[q] += g[q]
                square[q] += g[q] * g[q]
                threshold = t * l1[q] if j < last else 0.0
                w[q] = -eta * soft(total[q], threshold) / (hp.delta + np.sqrt(square[q]))
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
class ARDAClassifier(Penalised, RowClassifier):
    """Adaptive Regularized Dual Averaging with an l1 penalty for two classes (Duchi et al. 2011).

    Frequent features learn slowly and rare ones fast. Cost: O(entries of the row) per row with
    one penalty; O(p * n_penalties) per row with `k`.
    """

    loss: str = param("The barda paper's.", one_of(*CLASSIFICATION_LOSSES), default="squared_hinge")
    learning_rate: float = param("Step size eta.", POSITIVE, default=0.1)
    delta: float = param("What the paper adds to the adaptive scale H.", POSITIVE, default=0.01)

    fold, step_all, hyper = fold, step_all, Hyper
    frozen = (*Penalised.frozen, "delta")

    def _init(self, n_features):
        if self.k is not None:
            path = self._new_path(n_features)
            return PathState(path, np.zeros_like(path.W), np.zeros_like(path.W))
        sums = np.zeros((n_features + 1, 3))
        sums[:, 2] = 1.0 / self.delta
        return State(sums, np.zeros(1, np.int64))

    def _one(self, state, hyper):
        G, threshold = state.sums[:, 0].copy(), hyper.l1 * state.rows[0]
        G[:-1] -= np.clip(G[:-1], -threshold, threshold)
        return -hyper.learning_rate * G * state.sums[:, 2]
