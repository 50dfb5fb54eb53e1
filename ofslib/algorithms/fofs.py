"""First-order Online Feature Selection: Wang et al. 2014; FOFS in sfsa, OFS in barda.

A gradient step with shrinkage, projection to a ball, and truncation to the k largest coefficients
after every step.
"""

from typing import NamedTuple

import numpy as np

from ofslib._jit import kernel
from ofslib.base import (
    AT_LEAST_ONE,
    NOT_NEGATIVE,
    POSITIVE,
    RowClassifier,
    estimator,
    one_of,
    param,
)
from ofslib.losses import CLASSIFICATION_LOSSES, Loss, slope
from ofslib.rows import Active, Batch, add, clear, dot, in_batch, new_active, new_batch, row
from ofslib.select import keep_top


class Hyper(NamedTuple):
    k: int
    loss: int
    learning_rate: float
    alpha: float
    batch_size: int
    intercept: float  # 1.0 or 0.0


class State(NamedTuple):
    w: np.ndarray  # (p + 1,) coefficients and intercept
    kept: Active  # features with a coefficient
    every: Active  # all features
    batch: Batch
    candidates: np.ndarray  # (p + 1,) uint32
    room: np.ndarray  # (2, p + 1) scratch of the selection


@kernel
def gather(state):
    """List the features that can have a coefficient after the step; returns how many."""
    batch, candidates = state.batch, state.candidates
    m = 0
    for j in in_batch(batch, state.every):
        candidates[m] = j
        m += 1
    if batch.count[2] == 0:
        for j in state.kept.index[: state.kept.size[0]]:
            if state.every.fresh[j]:
                candidates[m] = j
                m += 1
    return m


@kernel
def advance(state, hp):
    """Gradient step, projection and truncation with the rows of the batch."""
    w, kept, batch = state.w, state.kept, state.batch
    rate, k = hp.learning_rate / batch.count[1], min(hp.k, len(w) - 1)
    m = gather(state)
    norm = 0.0
    for i in range(m):
        j = state.candidates[i]
        w[j] = (1.0 - hp.learning_rate * hp.alpha) * w[j] - rate * batch.gradient[j]
        norm += w[j] * w[j]
    w[-1] -= rate * batch.gradient[-1]
    clear(batch, state.every)
    # Radius 1 / sqrt(alpha): the ball that holds the minimiser of the penalised loss.
    shrink = 1.0 / np.sqrt(norm * hp.alpha) if norm * hp.alpha > 1.0 else 1.0
    for i in range(m):
        j = state.candidates[i]
        w[j] *= shrink
        state.room[0, i] = abs(w[j])
    if m > k:
        keep_top(state.candidates, state.room[0], m, k, state.room[1], np.inf)
    for j in state.candidates[k:m]:
        w[j] = 0.0
    kept.size[0] = min(k, m)
    kept.index[: kept.size[0]] = state.candidates[: kept.size[0]]


@kernel
def step(state, x, y, hp):
    """Show one observation; returns the prediction made before it."""
    margin = dot(x, state.w, state.kept) + hp.intercept * state.w[-1]
    slope_y = slope(hp.loss, margin, y)
    add(state.batch, x, slope_y, state.every)
    state.batch.gradient[-1] += slope_y * hp.intercept
    if state.batch.count[1] == hp.batch_size:
        advance(state, hp)
    return margin


@kernel
def fold(state, X, y, order, hp, margins):
    for i in range(len(order)):
        margins[i] = step(state, row(X, order[i]), y[order[i]], hp)


@estimator
class FOFSClassifier(RowClassifier):
    """First-order Online Feature Selection for two classes (Wang et al. 2014; OFS in barda).

    The coefficients lie in a ball of radius `radius_` = 1 / sqrt(alpha), and after each mini-batch
    the k largest are kept. Cost: O(entries of the row + k / batch_size) per row.
    """

    loss: str = param("hinge", "The papers use hinge.", one_of(*CLASSIFICATION_LOSSES))
    learning_rate: float = param(0.2, "Step size eta.", POSITIVE)
    alpha: float = param(0.01, "Weight lambda of the penalty lambda/2 |w|^2.", NOT_NEGATIVE)
    batch_size: int = param(1, "Rows of a mini-batch; the sfsa paper uses 25.", AT_LEAST_ONE)

    fold = fold

    @property
    def radius_(self) -> float:
        return np.inf if self.alpha == 0 else self.alpha**-0.5

    def _init(self, n_features):
        return State(
            w=np.zeros(n_features + 1),
            kept=new_active(n_features, size=0),
            every=new_active(n_features),
            batch=new_batch(n_features),
            candidates=np.empty(n_features + 1, np.uint32),
            room=np.empty((2, n_features + 1)),
        )

    def _hyper(self, n_rows):
        return Hyper(
            k=int(self.k),
            loss=int(Loss[self.loss]),
            learning_rate=float(self.learning_rate),
            alpha=float(self.alpha),
            batch_size=int(self.batch_size),
            intercept=float(self.fit_intercept),
        )

    def _finish(self, state, hyper):
        if state.batch.count[1]:
            advance(state, hyper)

    def _model(self, state):
        return state.w[:-1].copy(), float(state.w[-1])
