"""Hard thresholding: only the k largest coefficients stay after every step.

FOFS and SIHT are this step, the one with shrinkage and projection to a ball, the other without.
"""

from typing import NamedTuple

import numpy as np

from ofslib._jit import kernel
from ofslib.kernels.losses import Loss
from ofslib.kernels.minibatch import gather, pace
from ofslib.kernels.rows import ROWS, Active, Batch, clear, in_batch, new_active, new_batch
from ofslib.kernels.selection import keep_top


class Hyper(NamedTuple):
    k: int
    loss: Loss
    learning_rate: float
    alpha: float  # of the shrinkage by alpha/2 |w|**2
    radius: float  # of the ball that the coefficients are projected to
    batch_size: int
    intercept: float  # 1.0 or 0.0
    least: float  # of the intercept's steps, in steps eta


class State(NamedTuple):
    w: np.ndarray  # (p + 1,) coefficients and intercept
    value: np.ndarray  # (p,) what the features of the support are ranked by
    support: Active  # features with a coefficient; `untouched` tells them from the others
    all_features: Active
    batch: Batch
    steps: np.ndarray  # (1,) int64
    scratch: np.ndarray  # (2, p + 1) of the selection
    row_scale: np.ndarray  # (4,) `RowSizes`, for an automatic step


def new_state(p: int) -> State:
    """The model without coefficients."""
    support, all_features, steps = new_active(p, size=0), new_active(p), np.zeros(1, np.int64)
    arrays = steps, np.zeros((2, p + 1)), np.zeros(4)
    return State(np.zeros(p + 1), np.zeros(p), support, all_features, new_batch(p), *arrays)


@kernel
def step(state, hp):
    """w <- the k largest of the projection to the ball of (1 - eta alpha) w - eta gradient.

    The gradient is that of the open mini-batch.
    """
    w, value, batch, g = state.w, state.value, state.batch, state.batch.gradient
    support, inside, size = state.support.index, state.support.untouched, state.support.size
    touched, m = in_batch(batch, state.all_features), size[0]
    rate, norm = hp.learning_rate / batch.count[ROWS], 0.0
    # What is less than all of k features cannot be among the k largest.
    least = 0.0 if m < hp.k else np.inf
    for j in support[:m]:
        w[j] = (1.0 - hp.learning_rate * hp.alpha) * w[j] - rate * g[j]
        norm += w[j] * w[j]
        least = min(least, abs(w[j]))
    if hp.radius < np.inf:
        for j in touched:
            norm += 0.0 if inside[j] else (rate * g[j]) ** 2
    shrink = 1.0 if norm <= hp.radius * hp.radius else hp.radius / np.sqrt(norm)
    state.steps[0] += 1
    w[-1] -= rate * pace(hp, state.steps[0], batch.curvature, hp.least) * g[-1]
    for j in support[:m]:
        w[j] *= shrink
        value[j] = abs(w[j])
    for j in touched:
        new = -rate * g[j] * shrink
        # What is not a number stays, so that it is seen.
        if not abs(new) < least * shrink and new != 0.0 and not inside[j]:
            support[m], value[j], w[j] = j, abs(new), new
            m += 1
    keep_largest(w, value, support, inside, size, m, hp.k, state.scratch)
    clear(batch, state.all_features)


@kernel
def keep_largest(w, value, support, inside, size, m, k, scratch):
    """Keep the k most valued features of support[:m]; of equals the lower index.

    Those of support[:size[0]] are marked already.
    """
    if m > k:
        values, work = scratch[0], scratch[1]
        for i in range(m):
            values[i] = value[support[i]]
        keep_top(support, values, m, k, work, np.inf)
        for j in support[k:m]:
            w[j] = 0.0
            inside[j] = False
    if m != size[0]:
        for j in support[: min(m, k)]:
            inside[j] = True
    size[0] = min(m, k)


@kernel
def learn(state, block, hp):
    """Learn the rows of the block; returns how many, as `RowStream` asks for."""
    i = 0
    while i < len(block.order):
        i = gather(state.batch, block, i, hp, state.w, state.support, state.all_features)
        if state.batch.count[ROWS] < hp.batch_size:
            break
        step(state, hp)
    return i
