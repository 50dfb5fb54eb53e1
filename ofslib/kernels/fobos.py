"""Gradient steps, each or every so many followed by shrinkage: what OPG and its kin share.

With one penalty the shrinkage of a feature waits until the feature occurs again, so that a sparse
row costs its nonzeros only. With many (`path`), the model is chosen after a shrinkage.
"""

from typing import NamedTuple

import numpy as np

from ofslib._jit import kernel
from ofslib.kernels.losses import Loss
from ofslib.kernels.minibatch import gather
from ofslib.kernels.penalties import shrunk, soft
from ofslib.kernels.penalty_grid import TILE, begin_step, choose, empty, gradient
from ofslib.kernels.rows import (
    Active,
    Batch,
    clear,
    entry,
    in_batch,
    length,
    new_active,
    new_batch,
    row,
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


class Proximal(NamedTuple):
    """The model of one penalty."""

    w: np.ndarray  # (p + 1,) coefficients and intercept
    seen: np.ndarray  # (p,) int64: shrinkages that the feature has had
    count: np.ndarray  # (3,) int64: steps, shrinkages, shrinkages that all features have had
    every: Active  # all features
    batch: Batch


def new_proximal(p: int) -> Proximal:
    """The model without coefficients."""
    return Proximal(
        w=np.zeros(p + 1),
        seen=np.zeros(p, np.int64),
        count=np.zeros(3, np.int64),
        every=new_active(p),
        batch=new_batch(p),
    )


@kernel
def shrink(w, times, hp):
    """w after so many shrinkages."""
    if abs(w) > hp.theta:
        return w
    return shrunk(w, times, hp.period * hp.learning_rate * hp.l1, hp.factor)


@kernel
def settle(model, X, rows, hp):
    """Make up for the shrinkages of the features of these rows."""
    w, seen, count, now = model.w, model.seen, model.count, model.count[1]
    for r in rows:
        if count[2] == now:
            return
        x = row(X, r)
        for i in range(length(x)):
            j, _ = entry(x, i)
            if seen[j] < now:
                w[j] = shrink(w[j], now - seen[j], hp)
                seen[j] = now
        if length(x) == len(seen):
            count[2] = now


@kernel
def step(model, hp):
    """One step with the rows of the batch; returns True."""
    w, seen, count, batch = model.w, model.seen, model.count, model.batch
    rate = hp.learning_rate / batch.count[1]
    count[0] += 1
    due = count[0] % hp.period == 0
    count[1] += due
    if batch.count[2] > 0:
        count[2] = count[1]
    for j in in_batch(batch, model.every):
        w[j] -= rate * batch.gradient[j]
        if due:
            w[j] = shrink(w[j], 1, hp)
        seen[j] = count[1]
    w[-1] -= rate * batch.gradient[-1]
    clear(batch, model.every)
    return True


@kernel
def settled(model, hp):
    """The coefficients after all shrinkages so far."""
    w = model.w.copy()
    for j in range(len(model.seen)):
        w[j] = shrink(w[j], model.count[1] - model.seen[j], hp)
    return w


@kernel
def step_all(path, hp):
    """One step for each penalty; returns whether all is finite."""
    if not begin_step(path, hp.loss):
        return False
    W, l1, used, rate = path.W, path.l1, path.used, hp.learning_rate
    due, last = (path.count[1] + 1) % hp.period == 0, len(W) - 1
    for start in range(0, len(W), TILE):
        G = gradient(path, start)
        for j in range(start, start + len(G)):
            w, g = W[j], G[j - start]
            for q in range(len(l1)):
                w[q] -= rate * g[q]
                if due and j < last:
                    small = hp.factor * soft(w[q], hp.period * rate * l1[q])
                    w[q] = w[q] if abs(w[q]) > hp.theta else small
                    used[q] += w[q] != 0.0
    if due:
        choose(path, W, hp.k)
    empty(path)
    return True


@kernel
def fold(model, X, y, order, hp, margins):
    """Show the rows `order` of X, as `RowStream` asks for."""
    w, every, batch, i = model.w, model.every, model.batch, 0
    while i < len(order):
        settle(model, X, order[i : i + hp.batch_size - batch.count[1]], hp)
        i = gather(batch, X, y, order, i, hp.batch_size, w, every, every, hp, margins)
        if batch.count[1] >= hp.batch_size:
            step(model, hp)
        elif i < len(order):
            break
    return i
