"""Adaptive Regularized Dual Averaging: Duchi, Hazan and Singer 2011, (24); l1-ARDA in barda.

    G = squares = 0
    for row t = 1, 2, ...:
        G <- G + gradient, squares <- squares + gradient**2                     `step`
        H = delta + squares**(1/2)
        w <- -eta soft(G, t l1) / H                                             `catch_up`

The intercept is a coefficient without a penalty.
"""

from typing import NamedTuple

import numpy as np

from ofslib._jit import kernel
from ofslib.kernels import grid
from ofslib.kernels.grid import AdaptiveHyper, Grid, like
from ofslib.kernels.penalties import soft
from ofslib.streams.parameters import estimator
from ofslib.streams.penalised import Penalised
from ofslib.streams.row_stream import (
    DELTA,
    SQUARED_HINGE,
    STEP_PER_FEATURE,
    RowClassifier,
)


class State(NamedTuple):
    grid: Grid
    G: np.ndarray  # (p + 1, m) sum of gradients, for each penalty
    squares: np.ndarray  # (p + 1, m) sum of their squares


@kernel(allocates=False)
def dual_average(G, squares, l1, t, eta, delta, w):
    """Write the coefficients of one feature, for each penalty."""
    t, eta, delta = like(G, t), like(G, eta), like(G, delta)
    for q in range(len(w)):
        w[q] = -eta * soft(G[q], t * l1[q]) / (delta + np.sqrt(squares[q]))


@kernel(allocates=False)
def catch_up(state, features, hp):
    """Take the coefficients of these features from their sums of gradients."""
    models, G, squares, eta = state.grid, state.G, state.squares, hp.learning_rate
    W, last_update, t = models.W, models.last_update, models.steps[0]
    for j in features:
        if last_update[j] < t:
            dual_average(G[j], squares[j], models.l1, t, eta, hp.delta, W[j])
            last_update[j] = t


@kernel(allocates=False)
def add(G, squares, g, features):
    """Add the gradients by these features to their sums."""
    for j in features:
        for q in range(g.shape[1]):
            G[j, q] += g[j, q]
            squares[j, q] += g[j, q] * g[j, q]


@kernel(allocates=False)
def step(state, hp):
    """Learn a row; returns whether all is finite."""
    models, G, squares = state.grid, state.G, state.squares
    if not grid.begin_step(models, hp):
        return False
    add(G, squares, models.gradient, grid.in_step(models))
    add(G[-1:], squares[-1:], models.gradient[-1:], models.features[:1])
    dual_average(G[-1], squares[-1], models.l1, 0, hp.learning_rate, hp.delta, models.W[-1])
    if grid.end_step(models, hp):
        catch_up(state, grid.known_features(models), hp)
        grid.choose(models, models.W, hp.k)
    return True


@kernel
def learn(state, block, hp):
    """Learn the rows of the block; returns how many, as `RowStream` asks for."""
    return grid.learn(state, block, hp, catch_up, step)


@estimator
class ARDAClassifier(RowClassifier, Penalised):
    """Adaptive Regularized Dual Averaging with an l1 penalty for classes (Duchi et al. 2011).

    Frequent features learn slowly and rare ones fast. Cost: O(entries of the row) per row with
    one penalty; O(entries * n_penalties + p) with `k`.
    """

    sources = "duchi2011adaptive"

    loss: str = SQUARED_HINGE
    learning_rate: float = STEP_PER_FEATURE
    delta: float = DELTA

    learn, step, catch_up, hyper, state = learn, step, catch_up, AdaptiveHyper, State
    frozen = ("delta",)
