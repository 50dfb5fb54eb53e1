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
from ofslib.kernels.penalties import shrunk, shrunk_by, soft
from ofslib.kernels.penalty_grid import (
    DUE,
    LISTED,
    PENDING,
    TILE,
    begin_step,
    choose,
    gradient,
    list_known,
    put,
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


@kernel
def caught_up(w, l1, times, hp, new):
    """Write the coefficients w of a feature after so many shrinkages."""
    power, unit = hp.factor**times, hp.period * hp.learning_rate
    for q in range(len(new)):
        small = shrunk_by(w[q], times, unit * l1[q], hp.factor, power)
        new[q] = w[q] if abs(w[q]) > hp.theta else small


@kernel
def late(grid, features, hp, keep):
    """Make up for the shrinkages of these features; kept in any case."""
    had, now = grid.had, grid.steps[0] // hp.period
    for c, j in enumerate(features):
        times, w, new = float(now - had[j]), grid.W[j], grid.coefs[0 if keep else c]
        if times > 0.0 and j < len(had) - 1:
            had[j] = now
            caught_up(w, grid.l1, times, hp, new)
            put(w, new, grid.nonzeros)
        elif not keep:
            new[:] = w


@kernel
def descend(w, g, l1, due, hp, new):
    """Write the coefficients w of a feature after a step, and a shrinkage if it is due."""
    rate = hp.learning_rate
    for q in range(len(new)):
        new[q] = w[q] - rate * g[q]
    if due:
        for q in range(len(new)):
            small = hp.factor * soft(new[q], hp.period * rate * l1[q])
            new[q] = new[q] if abs(new[q]) > hp.theta else small


@kernel
def step_all(grid, hp):
    """One step for each penalty; returns whether all is finite."""
    if not begin_step(grid, hp, True, late):
        return False
    W, rate, count, new = grid.W, hp.learning_rate, grid.count, grid.coefs[0]
    due, last, now = grid.steps[0] % hp.period == 0, len(W) - 1, grid.steps[0] // hp.period
    if hp.period > 1:
        # Between two shrinkages there is nothing to choose.
        count[DUE], count[PENDING] = due, 0
    for start in range(0, count[LISTED], TILE):
        features, G = gradient(grid, start)
        for i, j in enumerate(features):
            w, g, grid.had[j] = W[j], G[i], now
            if j < last:
                descend(w, g, grid.l1, due, hp, new)
                put(w, new, grid.nonzeros)
                continue
            for q in range(len(w)):
                g[q] *= pace(hp, grid.steps[0], grid.curvature[:, q], hp.least)
                w[q] -= rate * g[q]
    if count[DUE]:
        late(grid, list_known(grid), hp, True)
        choose(grid, W, hp.k)
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
