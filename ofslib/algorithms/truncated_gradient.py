"""Truncated gradient: Langford, Li and Zhang 2009, with mini-batches.

Gradient descent; after every `period` steps, coefficients of size at most `theta` move towards
zero by period * eta * l1. A feature's truncations wait until it occurs again. With `k`, the model
is chosen after a truncation.
"""

from typing import NamedTuple

import numpy as np

from ofslib._jit import generic, kernel, kind
from ofslib.base import (
    AT_LEAST_ONE,
    POSITIVE,
    PenalisedBatches,
    RowClassifier,
    RowRegressor,
    estimator,
    one_of,
    param,
)
from ofslib.descent import gather
from ofslib.losses import CLASSIFICATION_LOSSES, Loss
from ofslib.path import Path, begin_step, choose, empty, gradient, hold
from ofslib.penalties import soft
from ofslib.rows import Active, Batch, clear, entry, in_batch, length, new_active, new_batch, row


class Hyper(NamedTuple):
    k: int
    loss: int
    l1: float
    learning_rate: float
    theta: float
    period: int
    batch_size: int
    intercept: float  # 1.0 or 0.0


class State(NamedTuple):
    w: np.ndarray  # (p + 1,) coefficients and intercept
    seen: np.ndarray  # (p,) int64: truncations that the feature has had
    count: np.ndarray  # (3,) int64: steps, truncations, truncations that all features have had
    every: Active  # all features
    batch: Batch


@kernel
def truncated(w, times, l1, hp):
    """w after so many truncations."""
    if abs(w) > hp.theta:
        return w
    return soft(w, times * hp.period * hp.learning_rate * l1)


@kernel
def settle(state, X, rows, hp):
    """Make up for the truncations of the features of these rows."""
    w, seen, count, now = state.w, state.seen, state.count, state.count[1]
    for r in rows:
        if count[2] == now:
            return
        x = row(X, r)
        for i in range(length(x)):
            j, _ = entry(x, i)
            w[j] = truncated(w[j], now - seen[j], hp.l1, hp)
            seen[j] = now
        if length(x) == len(seen):
            count[2] = now


@kernel
def step(state, hp):
    """One gradient step with the rows of the batch; returns True."""
    w, batch, count = state.w, state.batch, state.count
    rate = hp.learning_rate / batch.count[1]
    for j in in_batch(batch, state.every):
        w[j] -= rate * batch.gradient[j]
    w[-1] -= rate * batch.gradient[-1]
    clear(batch, state.every)
    count[0] += 1
    count[1] += count[0] % hp.period == 0
    return True


@kernel
def step_all(path, hp):
    """One step for each penalty; returns whether all is finite."""
    if not begin_step(path, hp.loss):
        return False
    W, l1, used, rate = path.W, path.l1, path.used, hp.learning_rate
    times = 1 if (path.count[1] + 1) % hp.period == 0 else 0
    for j in range(len(W) - 1):
        w, g = W[j], gradient(path, j)
        for q in range(len(l1)):
            w[q] = truncated(w[q] - rate * g[q], times, l1[q], hp)
            used[q] += w[q] != 0.0
    W[-1] -= rate * gradient(path, len(W) - 1)
    if times > 0:
        choose(path, W, hp.k)
    empty(path)
    return True


@kernel
def fold(state, X, y, order, hp, margins):
    """Show the rows `order` of X, as `RowStream` asks for."""
    return learn(state, X, y, order, hp, margins)


@generic
def learn(state, X, y, order, hp, margins):
    """What `fold` does with one penalty, or with all."""
    return _learn_all if kind(state) is Path else _learn


def _learn(state, X, y, order, hp, margins):
    w, every, batch, i = state.w, state.every, state.batch, 0
    while i < len(order):
        settle(state, X, order[i : i + hp.batch_size - batch.count[1]], hp)
        i = gather(batch, X, y, order, i, hp.batch_size, w, every, every, hp, margins)
        if batch.count[1] >= hp.batch_size:
            step(state, hp)
        elif i < len(order):
            break
    return i


def _learn_all(path, X, y, order, hp, margins):
    for i in range(len(order)):
        margins[i] = hold(path, row(X, order[i]), y[order[i]], hp.intercept)
        full = path.count[0] >= hp.batch_size
        if not np.isfinite(margins[i]) or (full and not step_all(path, hp)):
            return i
    return len(order)


@kernel
def settled(state, hp):
    """The coefficients after all truncations so far."""
    w = state.w.copy()
    for j in range(len(state.seen)):
        w[j] = truncated(w[j], state.count[1] - state.seen[j], hp.l1, hp)
    return w


@estimator
class TruncatedGradient(PenalisedBatches):
    """Truncated gradient."""

    learning_rate: float = param(0.01, "Step size eta of a mini-batch's mean gradient.", POSITIVE)
    theta: float | None = param(
        None, "Largest coefficient that is truncated; None: all are.", POSITIVE, None
    )
    period: int = param(10, "Steps K between two truncations.", AT_LEAST_ONE)
    batch_size: int = param(1, "Rows of a mini-batch; the paper takes 1.", AT_LEAST_ONE)

    fold, step, step_all = fold, step, step_all
    frozen = (*PenalisedBatches.frozen, "learning_rate", "theta", "period")

    def _init(self, n_features):
        if self.k is not None:
            return self._new_path(n_features)
        return State(
            w=np.zeros(n_features + 1),
            seen=np.zeros(n_features, np.int64),
            count=np.zeros(3, np.int64),
            every=new_active(n_features),
            batch=new_batch(n_features),
        )

    def _hyper(self, n_rows):
        return Hyper(
            k=int(self.k or 0),
            loss=int(Loss[self.loss]),
            l1=float(self.l1),
            learning_rate=float(self.learning_rate),
            theta=float(np.inf if self.theta is None else self.theta),
            period=int(self.period),
            batch_size=int(self.batch_size),
            intercept=float(self.fit_intercept),
        )

    def _one(self, state, hyper):
        return settled(state, hyper)


@estimator
class TruncatedGradientClassifier(TruncatedGradient, RowClassifier):
    """Truncated gradient for two classes (Langford et al. 2009).

    Cost: O(entries of the row) per row with one penalty; O(p * n_penalties) per row with `k`.
    """

    loss: str = param("log_loss", "Name of the loss.", one_of(*CLASSIFICATION_LOSSES))


@estimator
class TruncatedGradientRegressor(TruncatedGradient, RowRegressor):
    """Truncated gradient for regression (Langford et al. 2009).

    Cost: O(entries of the row) per row with one penalty; O(p * n_penalties) per row with `k`.
    """

    loss: str = param("squared_error", "Half the squared error.", one_of("squared_error"))
