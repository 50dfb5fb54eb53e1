"""Stochastic ADMM: Ouyang et al. 2013, Suzuki 2013 (OPG-ADMM); SADMM in dissertation, chapter 5.

Minimises loss(b) + l1 |w| subject to b = w with a linearised step for b:
b = (rho (w + u) + b / eta - gradient) / (rho + 1 / eta), w = soft(b - u, l1 / rho), u += w - b.
"""

from typing import NamedTuple

import numpy as np

from ofslib._jit import kernel
from ofslib.kernels import rows
from ofslib.kernels.losses import Loss
from ofslib.kernels.minibatch import gather, pace
from ofslib.kernels.penalties import soft
from ofslib.kernels.penalty_grid import (
    DUE,
    LISTED,
    TILE,
    begin_step,
    choose,
    gradient,
    like,
    never_late,
)
from ofslib.streams.parameters import POSITIVE, estimator, param
from ofslib.streams.penalised import PenalisedBatches
from ofslib.streams.row_stream import RowRegressor


class Hyper(NamedTuple):
    k: int
    loss: Loss
    l1: float
    learning_rate: float
    rho: float
    batch_size: int
    intercept: float  # 1.0 or 0.0


class State(NamedTuple):
    """The model of one penalty."""

    b: np.ndarray  # (p + 1,) coefficients and intercept, at which the gradient is taken
    w: np.ndarray  # (p + 1,) the sparse ones, and the intercept
    u: np.ndarray  # (p + 1,) sum of w - b
    steps: np.ndarray  # (1,) int64
    all_features: rows.Active
    batch: rows.Batch


# Positions in `PenaltyGrid.memory`, whose W holds b: the sparse coefficients, and the sum of w - b
SPARSE, DUAL = range(2)


@kernel
def update(b, w, u, g, l1, eta, rho):
    """The step of one coefficient with the mean gradient g."""
    b = (rho * (w + u) + b / eta - g) / (rho + 1 / eta)
    w = soft(b - u, l1 / rho)
    return b, w, u + (w - b)


@kernel(allocates=False)
def update_all(b, w, u, g, l1, eta, rho):
    """The same for all penalties; g becomes b.

    In loops of a few arrays each: with more of them a compiler makes no vectors. b moves by what is
    small beside it: as a mean of b and w + u it would shrink by the rounding of the two weights.
    """
    total, inverse = rho + 1 / eta, like(b, 1 / rho)
    pull, step = like(b, rho / total), like(b, 1 / total)
    for q in range(len(b)):
        g[q] = b[q] + (pull * (w[q] + u[q] - b[q]) - step * g[q])
    for q in range(len(b)):
        w[q] = soft(g[q] - u[q], inverse * l1[q])
    for q in range(len(b)):
        u[q] += w[q] - g[q]
        b[q] = g[q]


@kernel
def step(state, hp):
    """One step with the rows of the batch."""
    (b, w, u, steps, all_features, batch), eta, l1, rho = state, hp.learning_rate, hp.l1, hp.rho
    g, n, last = batch.gradient, batch.count[rows.ROWS], len(state.w) - 1
    steps[0] += 1
    for j in range(last):
        b[j], w[j], u[j] = update(b[j], w[j], u[j], g[j] / n, l1, eta, rho)
    b[last] -= eta * pace(hp, steps[0], batch.curvature) * (g[last] / n)
    w[last] = b[last]
    rows.clear(batch, all_features)


@kernel
def step_all(grid, hp):
    """One step for each penalty; returns whether all is finite."""
    eta, W, U = hp.learning_rate, grid.memory[SPARSE], grid.memory[DUAL]
    if not begin_step(grid, hp, False, never_late):
        return False
    for start in range(0, grid.count[LISTED], TILE):
        features, gradients = gradient(grid, start, hp.intercept)
        for i, j in enumerate(features):
            b, w, u, g = grid.W[j], W[j], U[j], gradients[i]
            if j == len(grid.W) - 1:
                b -= eta * pace(hp, grid.steps[0], grid.curvature[:, 0]) * g
                rows.overwrite(w, b)
                continue
            update_all(b, w, u, g, grid.l1, eta, hp.rho)
    if grid.count[DUE]:
        choose(grid, W, hp.k)
    return True


@kernel
def fold(state, block, hp):
    """Show the rows of the block, as `RowStream` asks for."""
    X, _, order, margins = block
    batch, all_features, i = state.batch, state.all_features, 0
    while i < len(order):
        stop = gather(batch, block, i, hp, state.b, all_features, all_features)
        # The sparse coefficients are those that predict.
        for r in range(i, stop):
            margins[r] = rows.dot(rows.row(X, order[r]), state.w, all_features)
            margins[r] += hp.intercept * state.w[-1]
        i = stop
        if batch.count[rows.ROWS] < hp.batch_size:
            break
        step(state, hp)
    return i


def coefficients(state, hp):
    """Coefficients and intercept after the steps so far."""
    return state.w


@estimator
class SADMMRegressor(RowRegressor, PenalisedBatches):
    """Stochastic ADMM for regression (OPG-ADMM, Suzuki 2013)."""

    about = (
        "Cost: O(entries of the row + p / batch_size) per row with one penalty; "
        "O(p * n_penalties) per row with `k`."
    )

    learning_rate: float = param("Step size eta of the mean gradient.", POSITIVE, default=1e-3)
    rho: float = param("Weight of the difference between b and w.", POSITIVE, default=1.0)

    fold, step, step_all, late = fold, step, step_all, never_late
    arrays, hyper = 2, Hyper
    coefficients, frozen = coefficients, ("learning_rate", "rho")

    def _new_one(self, n_features):
        vectors, steps = np.zeros((3, n_features + 1)), np.zeros(1, np.int64)
        return State(*vectors, steps, rows.new_active(n_features), rows.new_batch(n_features))

    def _columns(self, grid):
        return grid.memory[SPARSE]
