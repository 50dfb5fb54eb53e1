"""Gradient steps, each or every so many followed by shrinkage: what OPG and its kin share.

With one penalty the shrinkage of a feature waits until the feature occurs again, so that a sparse
row costs its nonzeros only. With a grid of penalties, the model is chosen after a shrinkage.
"""

from typing import NamedTuple

import numpy as np

from ofslib._jit import kernel
from ofslib.kernels import rows
from ofslib.kernels.losses import Loss
from ofslib.kernels.minibatch import gather, pace
from ofslib.kernels.penalties import shrunk
from ofslib.kernels.penalty_grid import (
    DUE,
    LISTED,
    PENDING,
    TILE,
    begin_step,
    choose,
    gradient,
    like,
    list_known,
    settle_features,
)


class Hyper(NamedTuple):
    k: int
    loss: Loss
    learning_rate: float
    l1: float
    factor: float  # of the shrinkage by an l2 penalty
    theta: float  # coefficients larger than this are not shrunk
    period: int  # steps between two shrinkages
    batch_size: int
    intercept: float  # 1.0 or 0.0
    least: float  # of the intercept's steps, in steps eta


class State(NamedTuple):
    """The model of one penalty."""

    w: np.ndarray  # (p + 1,) coefficients and intercept
    had: np.ndarray  # (p,) int64: how many shrinkages the feature has had
    all_had: np.ndarray  # (1,) int64: how many all features have had
    shrinkages: np.ndarray  # (1,) int64: so far
    steps: np.ndarray  # (1,) int64
    all_features: rows.Active
    batch: rows.Batch
    unit: np.ndarray  # (4,) what an automatic step is taken from


def new_state(p: int) -> State:
    """The model without coefficients."""
    w, had, counts = np.zeros(p + 1), np.zeros(p, np.int64), np.zeros((3, 1), np.int64)
    return State(w, had, *counts, rows.new_active(p), rows.new_batch(p), np.zeros(4))


@kernel
def shrink(w, times, hp):
    """w after so many shrinkages."""
    threshold = hp.period * hp.learning_rate * hp.l1
    return w if abs(w) > hp.theta else shrunk(w, times, threshold, hp.factor)


@kernel
def catch_up(state, X, order, hp):
    """Make up for the shrinkages of the features of these rows."""
    w, had, all_had, now = state.w, state.had, state.all_had, state.shrinkages[0]
    for r in order:
        if all_had[0] == now:
            return
        x = rows.row(X, r)
        for i in range(rows.length(x)):
            j, _ = rows.entry(x, i)
            if had[j] < now:
                w[j] = shrink(w[j], now - had[j], hp)
                had[j] = now
        if rows.length(x) == len(had):
            all_had[0] = now


@kernel
def step(state, hp):
    """One step with the rows of the batch."""
    w, had, shrinkages, batch = state.w, state.had, state.shrinkages, state.batch
    rate = hp.learning_rate / batch.count[rows.ROWS]
    state.steps[0] += 1
    due = state.steps[0] % hp.period == 0
    shrinkages[0] += due
    if batch.count[rows.DENSE_ROWS] > 0:
        state.all_had[0] = shrinkages[0]
    for j in rows.in_batch(batch, state.all_features):
        w[j] -= rate * batch.gradient[j]
        if due:
            w[j] = shrink(w[j], 1, hp)
        had[j] = shrinkages[0]
    w[-1] -= rate * pace(hp, state.steps[0], batch.curvature, hp.least) * batch.gradient[-1]
    rows.clear(batch, state.all_features)


@kernel
def coefficients(state, hp):
    """Coefficients and intercept after all shrinkages so far."""
    w = state.w.copy()
    for j in range(len(state.had)):
        w[j] = shrink(w[j], state.shrinkages[0] - state.had[j], hp)
    return w


def settle(state, hp):
    """Make up for all shrinkages, before the step becomes another."""
    if isinstance(state, State):
        state.w[:] = coefficients(state, hp)
        state.had[:] = state.all_had[:] = state.shrinkages[0]
    elif (state.had < state.steps // hp.period)[state.known].any():
        late(state, list_known(state), hp, True)


@kernel(allocates=False)
def caught_up(grid, j, times, hp, new):
    """Write the coefficients of feature j after so many shrinkages: as `shrunk`."""
    w, l1, lost, total = grid.W[j], grid.l1, 0.0, hp.period * hp.learning_rate * times
    if hp.factor < 1.0:
        lost = 1.0 - hp.factor**times
        total *= hp.factor * lost / ((1.0 - hp.factor) * times)
    lost, total, theta, zero = like(w, lost), like(w, total), like(w, hp.theta), like(w, 0.0)
    for q in range(len(new)):
        size = max(abs(w[q]) - (lost * abs(w[q]) + total * l1[q]), zero)
        small = size if w[q] > zero else -size
        new[q] = w[q] if abs(w[q]) > theta else small


@kernel(allocates=False)
def late(grid, features, hp, keep):
    """Make up for the shrinkages of these features."""
    settle_features(grid, features, hp, keep, grid.steps[0] // hp.period, caught_up)


@kernel(allocates=False)
def descend(w, g, l1, due, hp):
    """Change the coefficients w of a feature by a step, and a shrinkage if it is due."""
    factor, decay, unit = hp.factor, 1.0 - hp.factor, hp.period * hp.learning_rate
    if not due:
        rate = like(w, hp.learning_rate)
        for q in range(len(w)):
            w[q] -= rate * g[q]
        return
    # factor * soft(w - rate g, unit l1), in small parts that are summed up first: one after the
    # other they would be lost in float32, whose digits end with those of w.
    rate, decay, theta = like(w, factor * hp.learning_rate), like(w, decay), like(w, hp.theta)
    unit, zero = like(w, factor * unit), like(w, 0.0)
    for q in range(len(w)):
        part, cut = rate * g[q] + decay * w[q], unit * l1[q]
        moved = w[q] - part
        new = w[q] - (part + (cut if moved > zero else -cut))
        new = new if abs(moved) > cut else zero
        w[q] = moved if abs(moved) > theta else new


@kernel(allocates=False)
def learn(grid, features, G, due, hp):
    """Let these features, of which none waits, take a step against their gradients."""
    W, steps, last = grid.W, grid.steps[0], len(grid.W) - 1
    for c in range(len(features)):
        j = features[c]
        w, g, grid.had[j] = W[j], G[c], steps // hp.period
        if j < last:
            descend(w, g, grid.l1, due, hp)
            continue
        for q in range(len(w)):
            times = pace(hp, steps, grid.curvature[:, q], hp.least)
            w[q] -= hp.learning_rate * (g[q] * times)


@kernel
def step_all(grid, hp):
    """One step for each penalty; returns whether all is finite."""
    if not begin_step(grid, hp, True, late):
        return False
    count, due, before = grid.count, grid.steps[0] % hp.period == 0, grid.steps[0] - 1
    if hp.period > 1:
        # Between two shrinkages there is nothing to choose.
        count[DUE], count[PENDING] = due, 0
    for start in range(0, count[LISTED], TILE):
        features, G = gradient(grid, start, hp.intercept)
        settle_features(grid, features, hp, True, before // hp.period, caught_up)
        learn(grid, features, G, due, hp)
    if count[DUE]:
        late(grid, list_known(grid), hp, True)
        choose(grid, grid.W, hp.k)
    return True


@kernel
def fold(state, block, hp):
    """Show the rows of the block, as `RowStream` asks for."""
    batch, all_features, i = state.batch, state.all_features, 0
    while i < len(block.order):
        catch_up(state, block.X, block.order[i : i + hp.batch_size - batch.count[rows.ROWS]], hp)
        i = gather(batch, block, i, hp, state.w, all_features, all_features)
        if batch.count[rows.ROWS] < hp.batch_size:
            break
        step(state, hp)
    return i
