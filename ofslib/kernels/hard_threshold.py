"""Hard thresholding: only the k largest coefficients stay after every step.

FOFS and SIHT are this step, the one with shrinkage and projection to a ball, the other without.
"""

from typing import NamedTuple

import numpy as np

from ofslib._jit import REORDERED_SUMS, generic, kernel
from ofslib.kernels.losses import Loss
from ofslib.kernels.minibatch import gather, pace, predict
from ofslib.kernels.rows import (
    ROWS,
    Active,
    Batch,
    clear,
    entry,
    in_batch,
    is_sparse,
    new_active,
    new_batch,
    swept,
)
from ofslib.kernels.selection import keep_top

SUMS_DIFFER = 1e-6  # at most so much, relatively, by the order that they are added in
TOGETHER = 64  # so many features are looked at together, as vectors
# Bounds that are tried: each so many times the one before, down to so much of the largest value
CLOSER, FAR = 0.8, 0.1


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
    """The step of the open mini-batch."""
    batch, own = state.batch, state.batch.gradient[-1]
    touched, rows = in_batch(batch, state.all_features), batch.count[ROWS]
    descend_to_top(state, batch.gradient, 1.0, touched, swept(batch), rows, own, hp)
    clear(batch, state.all_features)


@kernel
def descend_to_top(state, g, s, touched, every, rows, own, hp):
    """w <- the k largest of the projection to the ball of (1 - eta alpha) w - eta gradient.

    The gradient is s times that in g, which is not 0 at the `touched` features, `every` one or
    some, and `own` for the intercept.
    """
    w, value, rate = state.w, state.value, hp.learning_rate / rows
    support, inside, size = state.support.index, state.support.fresh, state.support.size
    norm, radius, least = 0.0, hp.radius, np.inf
    for j in support[: size[0]]:
        w[j] = (1.0 - hp.learning_rate * hp.alpha) * w[j] - rate * (s * g[j])
        norm += w[j] * w[j]
        least = min(least, abs(w[j]))
    # A sum that is quick, of more features and in another order, tells whether the ball is far.
    far = radius == np.inf
    if every and not far:
        far = norm + squared(g, s, rate, len(value)) < (1.0 - SUMS_DIFFER) * radius * radius
    if not far:
        for j in touched:
            if not inside[j]:
                norm += (rate * (s * g[j])) ** 2
    state.steps[0] += 1
    w[-1] -= rate * pace(hp, state.steps[0], state.batch.curvature, hp.least) * own
    shrink = 1.0 if far or norm <= radius * radius else radius / np.sqrt(norm)
    m, n, least = size[0], len(touched), 0.0 if size[0] < hp.k else least * shrink
    if shrink != 1.0:
        for j in support[:m]:
            w[j] *= shrink
    if every:
        least = raised(g, s, n, -rate, shrink, least, inside, m, hp.k) if s != 0.0 else -1.0
        n = 0 if least < 0.0 else n
    if n > 0 or m > hp.k:
        for j in support[:m]:
            value[j] = abs(w[j])
    for start in range(0, n, TOGETHER):
        stop = min(start + TOGETHER, n)
        if every and coming(g, s, start, stop, -rate, shrink, least) == 0:
            continue
        for j in touched[start:stop]:
            if not inside[j]:
                new = -rate * (s * g[j]) * shrink
                # What is not a number stays, so that it is seen.
                if not abs(new) < least and new != 0.0:
                    support[m], value[j], w[j] = j, abs(new), new
                    m += 1
    keep_largest(w, value, support, inside, size, m, hp.k, state.scratch)


@kernel(allocates=False)
def coming(g, s, start, stop, factor, shrink, least):
    """How many of these entries of a row or gradient can come to the k, without a look at each."""
    count = 0
    for i in range(start, stop):
        _, v = entry(g, i)
        count += not abs(factor * (s * v) * shrink) < least
    return count


@kernel(allocates=False)
def raised(g, s, n, factor, shrink, least, inside, size, k):
    """A larger bound than `least` that leaves the k the same, if one is found soon.

    `size` features are inside. Negative if none of the n entries comes to `least`.
    """
    count, largest = coming(g, s, 0, n, factor, shrink, least), 0.0
    if count <= size + 2 * k:
        return least if count > 0 else -1.0
    for i in range(n):
        _, v = entry(g, i)
        largest = max(largest, abs(factor * (s * v) * shrink))
    bound = CLOSER * largest
    # A number of turns that is known would be written out by the compiler, and the rest slower.
    while least < bound < np.inf and bound > FAR * largest:
        # Those inside have other values.
        count = 0
        for i in range(n):
            j, v = entry(g, i)
            count += (not inside[j]) & (not abs(factor * (s * v) * shrink) < bound)
        if count >= k:
            return bound
        bound *= CLOSER
    return least


@generic(**REORDERED_SUMS)
def squared(g, s, rate, n):
    """Sum of the squares of rate s g, of the first n entries."""
    return _squared


def _squared(g, s, rate, n):
    total = 0.0
    for i in range(n):
        _, v = entry(g, i)
        total += (rate * (s * v)) ** 2
    return total


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
def fold(state, block, hp):
    """Show the rows of the block, as `RowStream` asks for."""
    i = 0
    if hp.batch_size == 1 and state.batch.count[ROWS] == 0:
        i = learn_alone(state, block.X, block, hp)
    while i < len(block.order):
        i = gather(state.batch, block, i, hp, state.w, state.support, state.all_features)
        if state.batch.count[ROWS] < hp.batch_size:
            break
        step(state, hp)
    return i


@generic
def learn_alone(state, X, block, hp):
    """Learn dense rows one by one: a row is its gradient, up to a factor. Of sparse ones none.

    Returns the number of rows that were learned.
    """
    return (lambda state, X, block, hp: 0) if is_sparse(X) else _learn_alone


def _learn_alone(state, X, block, hp):
    order, slopes, n = block.order, state.scratch[0], len(state.value)
    for i in range(len(order)):
        if predict(state.batch, block, i, i + 1, hp, state.w, state.support, slopes) == i:
            return i
        s, touched = slopes[0], state.all_features.index[:n]
        descend_to_top(state, X[order[i]], s, touched, True, 1, s * hp.intercept, hp)
    return len(order)
