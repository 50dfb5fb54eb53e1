"""Regularized Dual Averaging: Xiao 2010, Algorithm 2 (l2 = 0); RDA in sfsa and dissertation.

    G = 0
    for mini-batch t = 1, 2, ...:
        G <- G + mean gradient                                                       `step`
        w <- -soft(G / t, l1 + gamma rho / sqrt(t)) / (l2 + gamma / sqrt(t))         `catch_up`

`catch_up` multiplies numerator and denominator by t. It computes w_j only when it is needed, as w_j
follows from G_j and t alone. The intercept, which has no penalty, takes steps of its own.
"""

from typing import NamedTuple

import numpy as np

from ofslib._jit import kernel
from ofslib.kernels import grid
from ofslib.kernels.grid import Grid, like
from ofslib.kernels.losses import Loss
from ofslib.kernels.penalties import soft
from ofslib.streams.parameters import NOT_NEGATIVE, POSITIVE, estimator, param
from ofslib.streams.penalised import BATCH_SIZE, Penalised
from ofslib.streams.row_stream import RowClassifier, RowRegressor


class Hyper(NamedTuple):
    k: int
    loss: Loss
    l2: float
    gamma: float
    rho: float
    batch_size: int
    intercept: float  # 1.0 or 0.0


class State(NamedTuple):
    grid: Grid
    G: np.ndarray  # (p + 1, m) sum of mean gradients, for each penalty


@kernel(allocates=False)
def dual_average(G, l1, t, scale, enhanced, w):
    """Write the coefficients of one feature, for each penalty: -scale soft(G, t l1 + enhanced)."""
    scale, enhanced, t = like(G, scale), like(G, enhanced), like(G, t)  # float32 if G is
    for q in range(len(w)):
        w[q] = -scale * soft(G[q], t * l1[q] + enhanced)


@kernel(allocates=False)
def catch_up(state, features, hp):
    """Take the coefficients of these features from their sums of gradients."""
    models, G = state
    W, last_update, t = models.W, models.last_update, models.steps[0]
    gamma_t = hp.gamma * np.sqrt(t)
    scale, enhanced = 1.0 / (t * hp.l2 + gamma_t), gamma_t * hp.rho
    for j in features:
        if last_update[j] < t:
            dual_average(G[j], models.l1, t, scale, enhanced, W[j])
            last_update[j] = t


@kernel(allocates=False)
def step(state, hp):
    """Add the mean gradient of the mini-batch; returns whether all is finite."""
    (models, G), n = state, state.grid.held[0]
    if not grid.begin_step(models, hp):
        return False
    for j in grid.in_step(models):
        grid.add_times(G[j], models.gradient[j], 1.0 / n)
    grid.move_intercepts(models, 1.0 / (hp.gamma * np.sqrt(models.steps[0])))
    if grid.end_step(models, hp):  # whether the penalty is chosen now, which takes all of W
        catch_up(state, grid.known_features(models), hp)
        grid.choose(models, models.W, hp.k)
    return True


@kernel
def learn(state, block, hp):
    """Learn the rows of the block; returns how many, as `RowStream` asks for."""
    return grid.learn(state, block, hp, catch_up, step)


@estimator
class RDA(Penalised):
    """Regularized Dual Averaging."""

    sources = "xiao2010dual"

    l2: float = param("Weight of the penalty w**2 / 2.", NOT_NEGATIVE, default=0.0)
    gamma: float = param("The larger, the smaller the steps.", POSITIVE, default=10.0)
    rho: float = param(
        "Adds gamma * rho / sqrt(t) to l1 in step t (enhanced l1-RDA).", NOT_NEGATIVE, default=0.0
    )
    batch_size: int = BATCH_SIZE

    learn, step, catch_up, hyper, state = learn, step, catch_up, Hyper, State
    step_parameter, frozen = "gamma", ("batch_size",)


@estimator
class RDAClassifier(RowClassifier, RDA):
    """Regularized Dual Averaging for classification (Xiao 2010)."""


@estimator
class RDARegressor(RowRegressor, RDA):
    """Regularized Dual Averaging for regression (Xiao 2010)."""
