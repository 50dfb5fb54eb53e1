"""Adaptive Regularized Dual Averaging with an l1 penalty: Duchi et al. 2011; l1-ARDA in barda.

After t rows w_j = -eta soft(G_j, t l1) / H_j, where G_j is the sum of the gradients and
H_j = delta + (sum of their squares)**(1/2). A row costs what its nonzeros cost.
"""

from typing import NamedTuple

import numpy as np

from ofslib._jit import kernel
from ofslib.kernels.losses import slope
from ofslib.kernels.penalties import soft
from ofslib.kernels.penalty_grid import (
    DUE,
    LISTED,
    TILE,
    AdaptiveHyper,
    begin_step,
    choose,
    gradient,
    like,
    list_known,
)
from ofslib.kernels.rows import entry, length, overwrite, row
from ofslib.streams.parameters import estimator
from ofslib.streams.penalised import Penalised
from ofslib.streams.row_stream import Adaptive, RowClassifier

# Columns of `State.sums`
GRADIENTS, SQUARES, INVERSE = range(3)


class State(NamedTuple):
    sums: np.ndarray  # (p + 1, 3) sum of gradients, of their squares, and 1 / H; last: intercept
    rows: np.ndarray  # (1,) int64


@kernel
def fold(state, block, hp):
    """Show the rows of the block, as `RowStream` asks for."""
    X, y, order, margins = block
    sums = state.sums
    for r in range(len(order)):
        x, threshold, total = row(X, order[r]), hp.l1 * state.rows[0], 0.0
        for i in range(length(x)):
            j, v = entry(x, i)
            total += v * soft(sums[j, GRADIENTS], threshold) * sums[j, INVERSE]
        total += hp.intercept * sums[-1, GRADIENTS] * sums[-1, INVERSE]
        margins[r] = -hp.learning_rate * total
        if not np.isfinite(margins[r]):
            return r
        s = slope(hp.loss, margins[r], y[order[r]])
        state.rows[0] += 1
        if s != 0.0:
            for i in range(length(x)):
                j, v = entry(x, i)
                learn(sums, j, s * v, hp.delta)
            learn(sums, len(sums) - 1, s * hp.intercept, hp.delta)
    return len(order)


@kernel
def learn(sums, j, g, delta):
    """Take in the gradient g by coefficient j."""
    sums[j, GRADIENTS] += g
    sums[j, SQUARES] += g * g
    sums[j, INVERSE] = 1.0 / (delta + np.sqrt(sums[j, SQUARES]))


@kernel(allocates=False)
def coefs_of(total, square, l1, t, eta, delta, new):
    """Write the coefficients of a feature with these sums."""
    t, eta, delta = like(total, t), like(total, eta), like(total, delta)
    for q in range(len(new)):
        new[q] = -eta * soft(total[q], t * l1[q]) / (delta + np.sqrt(square[q]))


@kernel(allocates=False)
def late(grid, features, hp, keep):
    """Take the coefficients of these features from their sums of gradients."""
    G, squares, had = grid.memory[0], grid.memory[1], grid.had
    t, last = grid.steps[0], len(had) - 1
    for c in range(len(features)):
        j = features[c]
        new = grid.coefs[0 if keep else c]
        if had[j] < t:
            coefs_of(
                G[j], squares[j], grid.l1, t if j < last else 0, hp.learning_rate, hp.delta, new
            )
            if keep:
                had[j] = t
                overwrite(grid.W[j], new)
        elif not keep:
            overwrite(new, grid.W[j])


@kernel(allocates=False)
def learn_all(total, square, g):
    """Take in the gradients g by the coefficients of a feature."""
    for q in range(len(g)):
        total[q] += g[q]
        square[q] += g[q] * g[q]


@kernel
def step_all(grid, hp):
    """One step for each penalty; returns whether all is finite."""
    G, squares = grid.memory[0], grid.memory[1]
    if not begin_step(grid, hp, True, late):
        return False
    for start in range(0, grid.count[LISTED], TILE):
        features, gradients = gradient(grid, start, hp.intercept)
        for i, j in enumerate(features):
            learn_all(G[j], squares[j], gradients[i])
        if grid.count[DUE]:
            late(grid, features, hp, True)
    if grid.count[DUE]:
        late(grid, list_known(grid), hp, True)
        choose(grid, grid.W, hp.k)
    return True


def coefficients(state, hp):
    """Coefficients and intercept after the rows so far."""
    G, threshold = state.sums[:, GRADIENTS].copy(), hp.l1 * state.rows[0]
    G[:-1] -= np.clip(G[:-1], -threshold, threshold)
    return -hp.learning_rate * G * state.sums[:, INVERSE]


@estimator
class ARDAClassifier(Adaptive, RowClassifier, Penalised):
    """Adaptive Regularized Dual Averaging with an l1 penalty for classes (Duchi et al. 2011).

    Frequent features learn slowly and rare ones fast. Cost: O(entries of the row) per row with
    one penalty; O(entries * n_penalties + p) with `k`.
    """

    fold, step_all, late, coefficients = fold, step_all, late, coefficients
    arrays, hyper = 2, AdaptiveHyper
    frozen = ("delta",)

    def _new_one(self, n_features):
        sums = np.zeros((n_features + 1, 3))
        sums[:, INVERSE] = 1.0 / self.delta
        return State(sums, np.zeros(1, np.int64))
