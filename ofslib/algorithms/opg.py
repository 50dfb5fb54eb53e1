"""Online Proximal Gradient, also called FOBOS: Duchi and Singer 2009; OPG in sfsa, dissertation.

A gradient step, then shrinkage by the penalty l1 |w| + l2/2 w**2. With one penalty the shrinkage
of a feature waits until the feature occurs again, so that a sparse row costs its nonzeros only.
"""

from typing import NamedTuple

import numpy as np

from ofslib._jit import generic, kernel, kind
from ofslib.base import (
    NOT_NEGATIVE,
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
from ofslib.path import Path, begin_step, end_step, gradient, hold
from ofslib.penalties import shrunk, soft
from ofslib.rows import Active, Batch, clear, entry, in_batch, length, new_active, new_batch, row


class Hyper(NamedTuple):
    k: int
    loss: int
    learning_rate: float
    l1: float
    factor: float  # 1 / (1 + learning_rate * l2)
    batch_size: int
    intercept: float  # 1.0 or 0.0


class State(NamedTuple):
    w: np.ndarray  # (p + 1,) coefficients and intercept
    seen: np.ndarray  # (p,) int64: the step up to which the feature has been shrunk
    steps: np.ndarray  # (2,) int64: gradient steps made; the step up to which all are shrunk
    every: Active  # all features
    batch: Batch


@kernel
def settle(state, X, rows, hp):
    """Make up for the shrinkage of the features of these rows."""
    w, seen, steps, now = state.w, state.seen, state.steps, state.steps[0]
    threshold = hp.learning_rate * hp.l1
    for r in rows:
        if steps[1] == now:
            return
        x = row(X, r)
        for i in range(length(x)):
            j, _ = entry(x, i)
            if seen[j] < now:
                w[j] = shrunk(w[j], now - seen[j], threshold, hp.factor)
                seen[j] = now
        if length(x) == len(seen):
            steps[1] = now


@kernel
def step(state, hp):
    """One proximal step with the rows of the batch; returns True."""
    w, seen, steps, batch = state.w, state.seen, state.steps, state.batch
    rate, threshold = hp.learning_rate / batch.count[1], hp.learning_rate * hp.l1
    steps[0] += 1
    if batch.count[2] > 0:
        steps[1] = steps[0]
    for j in in_batch(batch, state.every):
        w[j] = hp.factor * soft(w[j] - rate * batch.gradient[j], threshold)
        seen[j] = steps[0]
    w[-1] -= rate * batch.gradient[-1]
    clear(batch, state.every)
    return True


@kernel
def settled(state, hp):
    """The coefficients, all shrunk up to now."""
    w, threshold = state.w.copy(), hp.learning_rate * hp.l1
    for j in range(len(w) - 1):
        w[j] = shrunk(w[j], state.steps[0] - state.seen[j], threshold, hp.factor)
    return w


@kernel
def step_all(path, hp):
    """One proximal step for each penalty; returns whether all is finite."""
    if not begin_step(path, hp.loss):
        return False
    W, l1, used, rate = path.W, path.l1, path.used, hp.learning_rate
    for j in range(len(W) - 1):
        w, g = W[j], gradient(path, j)
        for q in range(len(l1)):
            w[q] = hp.factor * soft(w[q] - rate * g[q], rate * l1[q])
            used[q] += w[q] != 0.0
    W[-1] -= rate * gradient(path, len(W) - 1)
    end_step(path, W, hp.k)
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


@estimator
class OPG(PenalisedBatches):
    """Online Proximal Gradient."""

    l2: float = param(0.0, "Weight of the penalty w**2 / 2.", NOT_NEGATIVE)
    learning_rate: float = param(0.01, "Step size eta of a mini-batch's mean gradient.", POSITIVE)

    fold, step, step_all = fold, step, step_all
    frozen = (*PenalisedBatches.frozen, "l2", "learning_rate")

    def _init(self, n_features):
        if self.k is not None:
            return self._new_path(n_features)
        return State(
            w=np.zeros(n_features + 1),
            seen=np.zeros(n_features, np.int64),
            steps=np.zeros(2, np.int64),
            every=new_active(n_features),
            batch=new_batch(n_features),
        )

    def _hyper(self, n_rows):
        return Hyper(
            k=int(self.k or 0),
            loss=int(Loss[self.loss]),
            learning_rate=float(self.learning_rate),
            l1=float(self.l1),
            factor=float(1.0 / (1.0 + self.learning_rate * self.l2)),
            batch_size=int(self.batch_size),
            intercept=float(self.fit_intercept),
        )

    def _one(self, state, hyper):
        return settled(state, hyper)


@estimator
class OPGClassifier(OPG, RowClassifier):
    """Online Proximal Gradient (FOBOS) for two classes (Duchi and Singer 2009).

    Cost: O(entries of the row) per row with one penalty; O(p * n_penalties) per row with `k`.
    """

    loss: str = param("log_loss", "Name of the loss.", one_of(*CLASSIFICATION_LOSSES))


@estimator
class OPGRegressor(OPG, RowRegressor):
    """Online Proximal Gradient (FOBOS) for regression (Duchi and Singer 2009).

    Cost: O(entries of the row) per row with one penalty; O(p * n_penalties) per row with `k`.
    """

    loss: str = param("squared_error", "Half the squared error.", one_of("squared_error"))
