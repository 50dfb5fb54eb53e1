"""Regularized Dual Averaging: Xiao 2010; RDA in sfsa and dissertation.

The coefficients follow from the sum G of the t mean gradients so far:
w = -soft(G / t, l1 + gamma rho / sqrt(t)) / (l2 + gamma / sqrt(t)).
The intercept, which has no penalty, takes steps of its own.
"""

from typing import NamedTuple

import numpy as np

from ofslib._jit import REORDERED_SUMS, generic, kernel
from ofslib.kernels import rows
from ofslib.kernels.losses import Loss, curvature_at, slope, weight
from ofslib.kernels.minibatch import own_step
from ofslib.kernels.penalties import soft
from ofslib.kernels.penalty_grid import (
    DUE,
    LISTED,
    TILE,
    add_times,
    begin_step,
    choose,
    gradient,
    like,
    list_known,
)
from ofslib.streams.parameters import NOT_NEGATIVE, POSITIVE, estimator, param
from ofslib.streams.penalised import PenalisedBatches
from ofslib.streams.row_stream import RowClassifier, RowRegressor


class Hyper(NamedTuple):
    k: int
    loss: Loss
    l1: float
    l2: float
    gamma: float
    rho: float
    batch_size: int
    intercept: float  # 1.0 or 0.0


class State(NamedTuple):
    G: np.ndarray  # (p + 1,) sum of mean gradients; the last entry is the intercept itself
    steps: np.ndarray  # (1,) int64
    all_features: rows.Active
    batch: rows.Batch


@kernel
def scales(t, l2, hp):
    """What w = -scale * soft(G, t * l1 + more) takes after t steps: scale and more."""
    if t == 0:
        return 0.0, 0.0
    return 1.0 / (t * l2 + hp.gamma * np.sqrt(t)), hp.gamma * hp.rho * np.sqrt(t)


@generic(**REORDERED_SUMS)
def product(x, G, threshold):
    """x . soft(G, threshold)."""
    return _product


def _product(x, G, threshold):
    total = 0.0
    for i in range(rows.length(x)):
        j, v = rows.entry(x, i)
        total += v * soft(G[j], threshold)
    return total


@kernel
def step(state, hp):
    """Take in the mean gradient of the batch."""
    G, batch = state.G, state.batch
    for j in rows.in_batch(batch, state.all_features):
        G[j] += batch.gradient[j] / batch.count[rows.ROWS]
    state.steps[0] += 1
    t = state.steps[0]
    rate = own_step(scales(t, 0.0, hp)[0], t, batch.curvature)
    G[-1] -= rate * batch.gradient[-1] / batch.count[rows.ROWS]
    rows.clear(batch, state.all_features)


@kernel(allocates=False)
def coefs_of(total, l1, t, scale, more, new):
    """Write the coefficients of a feature with these sums of gradients."""
    scale, t, more = like(total, scale), like(total, t), like(total, more)
    for q in range(len(new)):
        new[q] = -scale * soft(total[q], t * l1[q] + more)


@kernel(allocates=False)
def late(grid, features, hp, keep):
    """Take the coefficients of these features from their sums of gradients."""
    G, had, t = grid.memory[0], grid.had, grid.steps[0]
    scale, more = scales(t, hp.l2, hp)
    for c in range(len(features)):
        j = features[c]
        new = grid.coefs[0 if keep else c]
        if had[j] < t and j < len(had) - 1:
            coefs_of(G[j], grid.l1, t, scale, more, new)
            if keep:
                had[j] = t
                rows.overwrite(grid.W[j], new)
        elif not keep:
            rows.overwrite(new, grid.W[j])


@kernel(allocates=False)
def learn(grid, features, gradients, hp):
    """Add the mean gradients by these features to their sums."""
    G, t, last = grid.memory[0], grid.steps[0], len(grid.w) - 1
    for c in range(len(features)):
        j, g = features[c], gradients[c]
        if j < last:
            add_times(G[j], g, like(g, 1.0))
            continue
        for q in range(len(g)):
            rate = own_step(scales(t, 0.0, hp)[0], t, grid.curvature[:, q])
            grid.W[j, q] -= rate * g[q]


@kernel
def step_all(grid, hp):
    """One step for each penalty; returns whether all is finite."""
    if not begin_step(grid, hp, True, late):
        return False
    for start in range(0, grid.count[LISTED], TILE):
        features, gradients = gradient(grid, start, hp.intercept)
        learn(grid, features, gradients, hp)
        if grid.count[DUE]:
            late(grid, features, hp, True)
    if grid.count[DUE]:
        late(grid, list_known(grid), hp, True)
        choose(grid, grid.W, hp.k)
    return True


@kernel
def fold(state, block, hp):
    """Show the rows of the block, as `RowStream` asks for."""
    X, y, order, margins = block
    G, batch, all_features, slopes = state.G, state.batch, state.all_features, np.empty(1)
    for i in range(len(order)):
        t = state.steps[0]
        scale, more = scales(t, hp.l2, hp)
        margins[i] = -scale * product(rows.row(X, order[i]), G, t * hp.l1 + more)
        margins[i] += hp.intercept * G[-1]
        if not np.isfinite(margins[i]):
            return i
        slopes[0] = slope(hp.loss, margins[i], y[order[i]])
        rows.add(batch, X, order[i : i + 1], slopes, all_features)
        batch.gradient[-1] += slopes[0] * hp.intercept
        w = weight(y[order[i]])
        batch.curvature[0] += w * curvature_at(hp.loss, slopes[0] / w)
        batch.curvature[1] += 1.0
        if batch.count[rows.ROWS] >= hp.batch_size:
            step(state, hp)
    return len(order)


def coefficients(state, hp):
    """Coefficients and intercept after the steps so far."""
    t, G = state.steps[0], state.G
    scale, more = scales(t, hp.l2, hp)
    threshold = t * hp.l1 + more
    w = -scale * (G - np.clip(G, -threshold, threshold))
    w[-1] = G[-1]
    return w


@estimator
class RDA(PenalisedBatches):
    """Regularized Dual Averaging."""

    l2: float = param("Weight of the penalty w**2 / 2.", NOT_NEGATIVE, default=0.0)
    gamma: float = param("The larger, the smaller the steps.", POSITIVE, default=10.0)
    rho: float = param(
        "Adds gamma * rho / sqrt(t) to l1 in step t (enhanced l1-RDA).", NOT_NEGATIVE, default=0.0
    )

    fold, step, step_all, late, hyper = fold, step, step_all, late, Hyper
    coefficients, arrays, step_parameter = coefficients, 1, "gamma"

    def _new_one(self, n_features):
        G, steps = np.zeros(n_features + 1), np.zeros(1, np.int64)
        return State(G, steps, rows.new_active(n_features), rows.new_batch(n_features))


@estimator
class RDAClassifier(RowClassifier, RDA):
    """Regularized Dual Averaging for classification (Xiao 2010)."""


@estimator
class RDARegressor(RowRegressor, RDA):
    """Regularized Dual Averaging for regression (Xiao 2010)."""
