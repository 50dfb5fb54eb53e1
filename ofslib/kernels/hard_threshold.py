"""Hard thresholding: only the k largest coefficients stay after every step.

FOFS and SIHT are this step, the one with shrinkage and projection to a ball, the other without.
"""

from typing import NamedTuple

import numpy as np

from ofslib._jit import kernel
from ofslib.kernels.losses import Loss
from ofslib.kernels.minibatch import gather, pace
from ofslib.kernels.rows import (
    ROWS,
    Active,
    Batch,
    clear,
    dot,
    entry,
    in_batch,
    new_active,
    new_batch,
    swept,
)
from ofslib.kernels.selection import keep_top

SUMS_DIFFER = 1e-6  # at most so much, relatively, by the order that they are added in
TOGETHER = 64  # so many features are looked at together, as vectors


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
    support: Active  # features with a coefficient; `fresh` tells them from the others
    all_features: Active
    batch: Batch
    steps: np.ndarray  # (1,) int64
    scratch: np.ndarray  # (2, p + 1) of the selection
    unit: np.ndarray  # (4,) what an automatic step is taken from


def new_state(p: int) -> State:
    """The model without coefficients."""
    support, all_features, steps = new_active(p, size=0), new_active(p), np.zeros(1, np.int64)
    arrays = steps, np.zeros((2, p + 1)), np.zeros(4)
    return State(np.zeros(p + 1), np.zeros(p), support, all_features, new_batch(p), *arrays)


@kernel
def step(state, hp):
    """w <- the k largest of the projection to the ball of (1 - eta alpha) w - eta gradient."""
    w, value, batch, g = state.w, state.value, state.batch, state.batch.gradient
    support, inside, size = state.support.index, state.support.fresh, state.support.size
    touched, rate = in_batch(batch, state.all_features), hp.learning_rate / batch.count[ROWS]
    norm, radius = 0.0, hp.radius
    for j in support[: size[0]]:
        w[j] = (1.0 - hp.learning_rate * hp.alpha) * w[j] - rate * g[j]
        norm += w[j] * w[j]
    every = swept(batch)
    # A sum that is quick, of more features and in another order, tells whether the ball is far.
    far = radius == np.inf
    if every and not far:
        squares = dot(g[:-1], g[:-1], state.all_features)
        far = norm + rate * rate * squares < (1.0 - SUMS_DIFFER) * radius * radius
    if not far:
        for j in touched:
            if not inside[j]:
                norm += (rate * g[j]) ** 2
    state.steps[0] += 1
    w[-1] -= rate * pace(hp, state.steps[0], batch.curvature, hp.least) * g[-1]
    shrink = 1.0 if far or norm <= radius * radius else radius / np.sqrt(norm)
    for j in support[: size[0]]:
        w[j] *= shrink
        value[j] = abs(w[j])
    least = least_value(value, support, size[0], hp.k)
    m = size[0]
    for start in range(0, len(touched), TOGETHER):
        stop = min(start + TOGETHER, len(touched))
        if every and coming(g, start, stop, -rate, shrink, least) == 0:
            continue
        for j in touched[start:stop]:
            if not inside[j]:
                new = -rate * g[j] * shrink
                # What is not a number stays, so that it is seen.
                if not abs(new) < least and new != 0.0:
                    support[m], value[j], w[j] = j, abs(new), new
                    m += 1
    keep_largest(w, value, support, inside, size, m, hp.k, state.scratch)
    clear(batch, state.all_features)


@kernel(allocates=False)
def coming(g, start, stop, factor, shrink, least):
    """How many of these entries of a row or gradient can come to the k, without a look at each."""
    count = 0
    for i in range(start, stop):
        _, v = entry(g, i)
        count += not abs(factor * v * shrink) < least
    return count


@kernel
def least_value(value, support, m, k):
    """Features of a smaller value than this cannot be among the k that are kept."""
    if m < k:
        return 0.0
    least = value[support[0]]
    for j in support[1:m]:
        least = min(least, value[j])
    return least


@kernel
def keep_largest(w, value, support, inside, size, m, k, scratch):
    """Keep the k most valued features of support[:m]; of equals the lower index."""
    if m > k:
        values, work = scratch[0], scratch[1]
        for i in range(m):
            values[i] = value[support[i]]
        keep_top(support, values, m, k, work, np.inf)
        for j in support[k:m]:
            w[j] = 0.0
            inside[j] = False
    for j in support[: min(m, k)]:
        inside[j] = True
    size[0] = min(m, k)


@kernel
def fold(state, block, hp):
    """Show the rows of the block, as `RowStream` asks for."""
    i = 0
    while i < len(block.order):
        i = gather(state.batch, block, i, hp, state.w, state.support, state.all_features)
        if state.batch.count[ROWS] < hp.batch_size:
            break
        step(state, hp)
    return i
