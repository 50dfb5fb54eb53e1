"""Gradient steps followed by shrinkage: what OPG and truncated gradient share.

for mini-batch t = 1, 2, ...:
    w <- w - eta * mean gradient
    if t is a multiple of the period:
        w <- factor * soft(w, period eta l1), unless |w| > theta
"""

from typing import NamedTuple

import numpy as np

from ofslib._jit import kernel
from ofslib.kernels import grid
from ofslib.kernels.grid import Grid, like
from ofslib.kernels.losses import Loss


class Hyper(NamedTuple):
    k: int
    loss: Loss
    learning_rate: float  # eta
    factor: float  # 1 / (1 + eta l2)
    theta: float  # coefficients larger than this are not shrunk
    period: int  # steps between two shrinkages
    batch_size: int
    intercept: float  # 1.0 or 0.0
    least: float  # of the intercept's steps, in steps eta


class State(NamedTuple):
    grid: Grid  # `last_update` counts shrinkages
    row_scale: np.ndarray  # (4,) `RowSizes`, for an automatic step


def new_state(grid: Grid) -> State:
    """Nothing is learned."""
    return State(grid, np.zeros(4))


@kernel(allocates=False)
def move(w, g, l1, rate, times, hp):
    """Move the coefficients w of a feature by -rate g, then shrink them so many times.

    The parts that are small beside w are summed up first: one after the other they would be lost in
    float32, whose digits end with those of w.
    """
    keep, threshold = 1.0, hp.period * hp.learning_rate * times
    if hp.factor < 1.0 and times > 0:
        keep = hp.factor**times
        threshold *= hp.factor * (1.0 - keep) / ((1.0 - hp.factor) * times)
    rate, decay, threshold = like(w, keep * rate), like(w, 1.0 - keep), like(w, threshold)
    theta, zero = like(w, hp.theta if times > 0 else 0.0), like(w, 0.0)
    for q in range(len(w)):
        part, cut = rate * g[q] + decay * w[q], threshold * l1[q]
        moved = w[q] - part
        shrunk = w[q] - (part + (cut if moved > zero else -cut))
        shrunk = shrunk if abs(moved) > cut else zero
        w[q] = moved if abs(moved) > theta else shrunk


@kernel(allocates=False)
def catch_up(state, features, hp):
    """Make up for the shrinkages of these features since they last occurred."""
    W, l1, last_update = state.grid.W, state.grid.l1, state.grid.last_update
    now = state.grid.steps[0] // hp.period
    for j in features:
        if last_update[j] < now:
            move(W[j], W[j], l1, 0.0, now - last_update[j], hp)
            last_update[j] = now


@kernel(allocates=False)
def step(state, hp):
    """Learn the mini-batch; returns whether all is finite."""
    models, rate = state.grid, hp.learning_rate / state.grid.held[0]
    if not grid.begin_step(models, hp):
        return False
    truncates = models.steps[0] % hp.period == 0
    for j in grid.in_step(models):
        move(models.W[j], models.gradient[j], models.l1, rate, int(truncates), hp)
        models.last_update[j] = models.steps[0] // hp.period
    grid.move_intercepts(models, hp.least * hp.learning_rate)
    choose = grid.end_step(models, hp)
    if hp.period > 1:  # between two shrinkages there is nothing to choose
        choose, models.pending[0] = truncates and hp.k > 0, False
    if choose:
        catch_up(state, grid.known_features(models), hp)
        grid.choose(models, models.W, hp.k)
    return True


@kernel
def learn(state, block, hp):
    """Learn the rows of the block; returns how many, as `RowStream` asks for."""
    return grid.learn(state, block, hp, catch_up, step)
