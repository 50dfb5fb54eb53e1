"""Adaptive FOBOS: Duchi et al. 2011; Ada-Fobos in barda.

A gradient step with a step size per feature, then shrinkage in the same scale:
w_j <- soft(w_j - eta g_j / H_j, eta l1 / H_j) with H_j = delta + (sum of squared gradients)**(1/2).
The shrinkage of a feature waits until the feature occurs again, so that a row costs what its
nonzeros cost.
"""

from typing import NamedTuple

import numpy as np

from ofslib._jit import kernel
from ofslib.kernels.losses import slope
from ofslib.kernels.penalties import shrunk, soft
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
    settle_features,
)
from ofslib.kernels.rows import entry, length, row
from ofslib.streams.parameters import estimator
from ofslib.streams.penalised import Penalised
from ofslib.streams.row_stream import Adaptive, RowClassifier

# Columns of `State.features`
COEF, SQUARES, INVERSE, SHRUNK = range(4)


class State(NamedTuple):
    # (p + 1, 4) coefficient, sum of squared gradients, 1 / H, row up to which it has been shrunk
    features: np.ndarray
    rows: np.ndarray  # (1,) int64


@kernel
def fold(state, block, hp):
    """Show the rows of the block, as `RowStream` asks for."""
    X, y, order, margins = block
    features, threshold = state.features, hp.learning_rate * hp.l1
    for r in range(len(order)):
        x, now, margin = row(X, order[r]), state.rows[0], hp.intercept * features[-1, COEF]
        for i in range(length(x)):
            j, v = entry(x, i)
            missed = now - features[j, SHRUNK]
            if missed > 0.0:
                w = shrunk(features[j, COEF], missed, threshold * features[j, INVERSE], 1.0)
                features[j, COEF], features[j, SHRUNK] = w, now
            margin += v * features[j, COEF]
        margins[r] = margin
        if not np.isfinite(margin):
            return r
        state.rows[0] += 1
        s = slope(hp.loss, margin, y[order[r]])
        if s != 0.0:
            for i in range(length(x)):
                j, v = entry(x, i)
                learn(features, j, s * v, threshold, hp)
                features[j, SHRUNK] = now + 1.0
            learn(features, len(features) - 1, s * hp.intercept, 0.0, hp)
    return len(order)


@kernel
def learn(features, j, g, threshold, hp):
    """Take in the gradient g by coefficient j, and shrink it."""
    features[j, SQUARES] += g * g
    features[j, INVERSE] = 1.0 / (hp.delta + np.sqrt(features[j, SQUARES]))
    moved = features[j, COEF] - hp.learning_rate * g * features[j, INVERSE]
    features[j, COEF] = soft(moved, threshold * features[j, INVERSE])


@kernel
def coefficients(state, hp):
    """The coefficients, all shrunk up to now."""
    features, threshold = state.features, hp.learning_rate * hp.l1
    w = features[:, COEF].copy()
    for j in range(len(w) - 1):
        missed = state.rows[0] - features[j, SHRUNK]
        w[j] = shrunk(w[j], missed, threshold * features[j, INVERSE], 1.0)
    return w


@kernel(allocates=False)
def caught_up(grid, j, times, hp, new):
    """Write the coefficients of feature j after so many shrinkages."""
    w, square, l1 = grid.W[j], grid.memory[0, j], grid.l1
    total, delta = like(w, times * hp.learning_rate), like(w, hp.delta)
    for q in range(len(new)):
        new[q] = soft(w[q], total / (delta + np.sqrt(square[q])) * l1[q])


@kernel(allocates=False)
def late(grid, features, hp, keep):
    """Make up for the shrinkages of these features."""
    settle_features(grid, features, hp, keep, grid.steps[0], caught_up)


@kernel(allocates=False)
def learn_all(w, square, g, l1, eta, delta):
    """Take in the gradients g by the coefficients w of a feature, and shrink these."""
    eta, delta, zero = like(w, eta), like(w, delta), like(w, 0.0)
    for q in range(len(w)):
        square[q] += g[q] * g[q]
        rate = eta / (delta + np.sqrt(square[q]))
        # soft(w - rate g, rate l1), the small parts first, as in `fobos.descend`
        part, cut = rate * g[q], rate * l1[q]
        moved = w[q] - part
        new = w[q] - (part + (cut if moved > zero else -cut))
        w[q] = new if abs(moved) > cut else zero


@kernel
def step_all(grid, hp):
    """One step for each penalty; returns whether all is finite."""
    squares, last, none = grid.memory[0], len(grid.w) - 1, np.zeros_like(grid.l1)
    if not begin_step(grid, hp, True, late):
        return False
    for start in range(0, grid.count[LISTED], TILE):
        features, gradients = gradient(grid, start, hp.intercept)
        settle_features(grid, features, hp, True, grid.steps[0] - 1, caught_up)
        for i, j in enumerate(features):
            l1 = grid.l1 if j < last else none
            learn_all(grid.W[j], squares[j], gradients[i], l1, hp.learning_rate, hp.delta)
            grid.had[j] = grid.steps[0]
    if grid.count[DUE]:
        late(grid, list_known(grid), hp, True)
        choose(grid, grid.W, hp.k)
    return True


@estimator
class AdaFobosClassifier(Adaptive, RowClassifier, Penalised):
    """Adaptive FOBOS, with an l1 penalty, for classification (Duchi et al. 2011).

    Frequent features learn slowly and rare ones fast. With a small `k` the features are those that
    the last rows moved most, whatever the step: `ARDAClassifier` shrinks the mean of all gradients
    instead. Cost: O(entries of the row) per row with one penalty; O(entries * n_penalties + p)
    with `k`.
    """

    fold, step_all, late, coefficients = fold, step_all, late, coefficients
    arrays, hyper = 1, AdaptiveHyper
    frozen = ("learning_rate", "delta")

    def _new_one(self, n_features):
        features = np.zeros((n_features + 1, 4))
        features[:, INVERSE] = 1.0 / self.delta
        return State(features, np.zeros(1, np.int64))
