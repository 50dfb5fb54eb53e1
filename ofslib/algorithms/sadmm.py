"""Stochastic ADMM: Ouyang et al. 2013, Suzuki 2013 (OPG-ADMM); SADMM in dissertation, chapter 5.

Minimises loss(b) + l1 |w| subject to b = w, with a linearised step for b:

    for mini-batch t = 1, 2, ...:                                               `step`
        b <- (rho (w + u) + b / eta - mean gradient at b) / (rho + 1 / eta)
        w <- soft(b - u, l1 / rho)
        u <- u + w - b
"""

from typing import NamedTuple

import numpy as np

from ofslib._jit import kernel
from ofslib.kernels import grid
from ofslib.kernels.grid import Grid, like
from ofslib.kernels.losses import Loss
from ofslib.kernels.penalties import soft
from ofslib.kernels.rows import overwrite
from ofslib.streams.parameters import POSITIVE, estimator, param
from ofslib.streams.penalised import BATCH_SIZE, Penalised
from ofslib.streams.row_stream import RowRegressor


class Hyper(NamedTuple):
    k: int
    loss: Loss
    learning_rate: float  # eta
    rho: float
    batch_size: int
    intercept: float  # 1.0 or 0.0


class State(NamedTuple):
    grid: Grid  # whose W holds b
    w: np.ndarray  # (p + 1, m) the sparse coefficients, and the intercepts
    u: np.ndarray  # (p + 1, m) sum of w - b


@kernel(allocates=False)
def update(b, w, u, g, l1, n, eta, rho):
    """The step of one feature, for each penalty, with n times the mean gradient g.

    In loops of a few arrays each: with more of them a compiler makes no vectors. b moves by what is
    small beside it: as a mean of b and w + u it would shrink by the rounding of the two weights.
    """
    total, inverse = rho + 1 / eta, like(b, 1 / rho)
    pull, rate = like(b, rho / total), like(b, 1 / total / n)
    for q in range(len(b)):
        g[q] = b[q] + (pull * (w[q] + u[q] - b[q]) - rate * g[q])
    for q in range(len(b)):
        w[q] = soft(g[q] - u[q], inverse * l1[q])
    for q in range(len(b)):
        u[q] += w[q] - g[q]
        b[q] = g[q]


@kernel(allocates=False)
def catch_up(state, features, hp):
    """No feature waits: each step goes through all."""


@kernel(allocates=False)
def step(state, hp):
    """Learn the mini-batch; returns whether all is finite."""
    (models, W, U), n = state, state.grid.held[0]
    b, g, models.whole[0] = models.W, models.gradient, True
    if not grid.begin_step(models, hp):
        return False
    for j in models.features:
        update(b[j], W[j], U[j], g[j], models.l1, n, hp.learning_rate, hp.rho)
    grid.move_intercepts(models, hp.learning_rate)
    overwrite(W[-1], b[-1])
    if grid.end_step(models, hp):
        grid.choose(models, W, hp.k)
    if hp.k == 0:
        overwrite(models.w, W[:, 0])
    return True


@kernel
def learn(state, block, hp):
    """Learn the rows of the block; returns how many, as `RowStream` asks for."""
    return grid.learn(state, block, hp, catch_up, step)


@estimator
class SADMMRegressor(RowRegressor, Penalised):
    """Stochastic ADMM for regression (OPG-ADMM, Suzuki 2013)."""

    sources = "ouyang2013stochastic, suzuki2013dual"
    description = (
        "Cost: O(entries of the row + p / batch_size) per row with one penalty; "
        "O(p * n_penalties) per row with `k`."
    )

    learning_rate: float = param("Step size eta of the mean gradient.", POSITIVE, default=1e-3)
    rho: float = param("Weight of the difference between b and w.", POSITIVE, default=1.0)
    batch_size: int = BATCH_SIZE

    learn, step, catch_up, hyper, state = learn, step, catch_up, Hyper, State
    sparse_steps = False
    chooses = True  # the sparse coefficients are those that predict
    frozen = ("learning_rate", "rho", "batch_size")

    def _coefs(self, state):
        return state.w
