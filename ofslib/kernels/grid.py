"""Models of m penalties that are learned from the same mini-batches; one penalty is m = 1.

A method calls `learn` with two kernels of its own. `catch_up(state, features, hyper)` brings the
coefficients of some features up to date: what a step does to a feature that does not occur in its
mini-batch waits until the feature occurs, or until the model is read. `step(state, hyper)` learns
the mini-batch: it calls `begin_step`, moves the coefficients, and calls `end_step`. The state of a
method has a `Grid` in its field `grid`.
"""

from typing import NamedTuple

import numpy as np

from ofslib._jit import REORDERED_SUMS, generic, kernel
from ofslib.kernels.losses import Loss, curvature_at, derivative, target, weight
from ofslib.kernels.minibatch import own_step
from ofslib.kernels.rows import entry, is_sparse, length, row, within
from ofslib.kernels.selection import kth_largest


class AdaptiveHyper(NamedTuple):
    """What the methods read that have a step size per feature; a mini-batch of theirs is a row."""

    k: int
    loss: Loss
    learning_rate: float  # eta
    delta: float
    batch_size: int  # 1
    intercept: float  # 1.0 or 0.0


class Grid(NamedTuple):
    """Models of all penalties, and the open mini-batch; `number` is float64 or float32."""

    W: np.ndarray  # (p + 1, m) number: coefficients; the last row holds the intercepts
    l1: np.ndarray  # (m,) number: penalties, descending; all zero until they are set
    last_update: np.ndarray  # (p + 1,) int64: the step after which the coefficients stand in W
    steps: np.ndarray  # (1,) int64: begun
    curvature: np.ndarray  # (m, 2) sum of the losses' curvatures at all rows so far, and of rows
    # The mini-batch: its rows are added to the gradient at once; or, if there are several penalties
    # and its first row has many entries, they are kept until products of matrices are taken of all.
    gradient: np.ndarray  # (p + 1, m) number: sum of slope * x
    held: np.ndarray  # (1,) int64: its rows
    entries: np.ndarray  # (1,) int64: entries of its rows
    keeps: np.ndarray  # (1,) bool: whether its rows are kept
    whole: np.ndarray  # (1,) bool: whether it has a dense row, which touches all features
    touched: np.ndarray  # (p + 1,) uint32: the first `n_touched` features occur in it
    is_touched: np.ndarray  # (p,) bool
    n_touched: np.ndarray  # (1,) int64
    rows: np.ndarray  # (batch_size or 0, p + 1) number: kept rows; the last column is intercepts'
    targets: np.ndarray  # (batch_size or 0, 2) their targets and weights
    slopes: np.ndarray  # (batch_size or 1, m) number: predictions, then slopes of the loss
    # The choice of a penalty
    w: np.ndarray  # (p + 1,) the chosen model; empty if the only one predicts
    truncated: np.ndarray  # (2,) int64: features of a model that was cut to k, or 0; its penalty
    known: np.ndarray  # (p,) uint32: the first `n_known` may have a coefficient for some penalty
    is_known: np.ndarray  # (p,) bool
    n_known: np.ndarray  # (1,) int64
    work: np.ndarray  # (1,) int64: features touched by the steps since the last choice
    pending: np.ndarray  # (1,) bool: whether there were such steps
    features: np.ndarray  # (p,) uint32: all

    def within(self, p: int) -> bool:
        """Whether kernels stay within the arrays, of p features."""
        kept = not self.keeps[0] or 0 <= self.held[0] <= len(self.rows)
        listed = within(self.touched, self.n_touched, p + 1) and within(self.known, self.n_known, p)
        counts = (self.is_touched.sum(), self.is_known.sum())
        counted = counts == (self.n_touched[0], self.n_known[0])
        return bool(kept and listed and counted and within(self.features, np.array([p]), p))


# What changes when the model is read.
CHOSEN = ("W", "last_update", "w", "truncated", "known", "is_known", "n_known", "work", "pending")


def new_grid(p: int, l1: np.ndarray, batch_size: int, chooses: bool) -> Grid:
    """Models without coefficients, of the kind of number of the penalties."""
    m, kept = len(l1), batch_size if len(l1) > 1 else 0
    number = l1.dtype
    return Grid(
        W=np.zeros((p + 1, m), number),
        l1=l1,
        last_update=np.zeros(p + 1, np.int64),
        steps=np.zeros(1, np.int64),
        curvature=np.zeros((m, 2)),
        gradient=np.zeros((p + 1, m), number),
        held=np.zeros(1, np.int64),
        entries=np.zeros(1, np.int64),
        keeps=np.zeros(1, bool),
        whole=np.zeros(1, bool),
        touched=np.zeros(p + 1, np.uint32),
        is_touched=np.zeros(p, bool),
        n_touched=np.zeros(1, np.int64),
        rows=np.zeros((kept, p + 1), number),
        targets=np.zeros((kept, 2)),
        slopes=np.zeros((max(kept, 1), m), number),
        w=np.zeros(p + 1 if chooses else 0),
        truncated=np.zeros(2, np.int64),
        known=np.zeros(p, np.uint32),
        is_known=np.zeros(p, bool),
        n_known=np.zeros(1, np.int64),
        work=np.zeros(1, np.int64),
        pending=np.zeros(1, bool),
        features=np.arange(p, dtype=np.uint32),
    )


@generic
def like(array, value):
    """A number of the kind of the array's: else all arithmetic with these would be in float64."""
    single = str(array.dtype) == "float32"
    return (lambda array, value: np.float32(value)) if single else (lambda array, value: value)


@kernel(allocates=False)
def add_times(total, values, times):
    """Add the values, so many times each, to the total."""
    times = like(total, times)
    for q in range(len(total)):
        total[q] += times * values[q]


@kernel(allocates=False)
def clear(values):
    """Write zeros; numba would compile `values[:] = 0` with the text of an error, which is slow."""
    for q in range(len(values)):
        values[q] = 0


# -------------------------------------------------- rows


@kernel(inline=True)
def learn(state, block, hp, catch_up, step):
    """Learn the rows of the block; returns how many, and writes the prediction before each.

    It is that of the chosen model, if there is one, or of the only one.
    """
    X, y, order, margins = block
    grid = state.grid
    for i in range(len(order)):
        x, t = row(X, order[i]), y[order[i]]
        if grid.held[0] == 0:
            grid.keeps[0] = len(grid.rows) > 0 and 4 * length(x) > len(grid.W)
        features = outdated(grid, x)
        if len(features) > 0:
            catch_up(state, features, hp)
        if len(grid.w) > 0:
            margins[i] = product(x, grid.w) + hp.intercept * grid.w[-1]
        if grid.keeps[0]:
            keep(grid, x, t, hp)
        else:
            slopes = grid.slopes[0]
            predict(x, grid.W, slopes, hp.intercept)
            if len(grid.w) == 0:
                margins[i] = slopes[0]
            if not to_slopes(slopes, target(t), weight(t), hp.loss, grid.curvature):
                return i
            add_gradient(grid.gradient, x, slopes, hp.intercept)
        if not np.isfinite(margins[i]):
            return i
        touch(x, grid.touched, grid.is_touched, grid.n_touched)
        grid.held[0] += 1
        grid.entries[0] += length(x)
        if grid.held[0] >= hp.batch_size and not step(state, hp):
            return i
    return len(order)


@generic(inline=True, allocates=True)
def outdated(grid, x):
    """The features to settle before a row: those in it, or all, once in a mini-batch."""
    return _of_sparse if is_sparse(x) else _of_dense


def _of_sparse(grid, x):
    if grid.keeps[0]:
        return grid.features[: len(grid.features) if grid.held[0] == 0 else 0]
    return x.indices


def _of_dense(grid, x):
    features = grid.features[: 0 if grid.whole[0] else len(grid.features)]
    grid.whole[0] = True
    return features


@kernel(allocates=False)
def keep(grid, x, t, hp):
    """Keep a row until the mini-batch is full."""
    n = grid.held[0]
    kept = grid.rows[n]
    clear(kept)
    kept[-1] = hp.intercept
    for e in range(length(x)):
        j, v = entry(x, e)
        kept[j] = v
    grid.targets[n, 0], grid.targets[n, 1] = target(t), weight(t)


@generic(**REORDERED_SUMS)
def product(x, w):
    """x . w"""
    return _product


def _product(x, w):
    total = 0.0
    for e in range(length(x)):
        j, v = entry(x, e)
        total += v * w[j]
    return total


@kernel
def predict(x, W, margins, intercept):
    """Write the predictions of all penalties for a row."""
    if len(margins) == 1:  # one column is a vector, which is several times as fast
        margins[0] = product(x, W.reshape(W.size)) + intercept * W[-1, 0]
        return
    for q in range(len(margins)):
        margins[q] = like(W, intercept) * W[-1, q]
    for e in range(length(x)):
        j, v = entry(x, e)
        add_times(margins, W[j], v)


@kernel(allocates=False)
def to_slopes(margins, y, weight, loss, curvature):
    """Turn the predictions for a row into slopes; returns whether they are finite."""
    for q in range(len(margins)):
        if not np.isfinite(margins[q]):
            return False
        s = derivative(loss, margins[q], y)
        curvature[q, 0] += weight * curvature_at(loss, s)
        curvature[q, 1] += 1.0
        margins[q] = weight * s
    return True


@kernel
def add_gradient(gradient, x, slopes, intercept):
    """Add slope * x to the gradients of all penalties."""
    if len(slopes) == 1:
        vector, s = gradient.reshape(gradient.size), np.float64(slopes[0])
        for e in range(length(x)):
            j, v = entry(x, e)
            vector[j] += s * v
    else:
        for e in range(length(x)):
            j, v = entry(x, e)
            add_times(gradient[j], slopes, v)
    add_times(gradient[-1], slopes, intercept)


@generic
def touch(x, touched, is_touched, n_touched):
    """Count the features of a sparse row among those of the mini-batch; a dense one has all."""
    return _touch if is_sparse(x) else lambda x, touched, is_touched, n_touched: None


def _touch(x, touched, is_touched, n_touched):
    n = n_touched[0]
    for e in range(len(x.values)):
        j = x.indices[e]
        occurs = x.values[e] != 0.0
        touched[n] = j  # without branches, which a processor could not foresee here
        n += occurs and not is_touched[j]
        is_touched[j] |= occurs
    n_touched[0] = n


# -------------------------------------------------- steps


@kernel
def begin_step(grid, hp):
    """Complete the gradient of the mini-batch; returns whether all predictions are finite."""
    n = grid.held[0]
    if grid.keeps[0]:
        rows, slopes = grid.rows[:n], grid.slopes[:n]
        np.dot(rows, grid.W, slopes)
        for i in range(n):
            y, weight = grid.targets[i, 0], grid.targets[i, 1]
            if not to_slopes(slopes[i], y, weight, hp.loss, grid.curvature):
                return False
        np.dot(rows.T, slopes, grid.gradient)
    if hp.k > 0 and grid.l1[0] == 0.0:
        set_penalties(grid)
    grid.steps[0] += 1
    return True


@kernel(allocates=False)
def set_penalties(grid):
    """Set the penalties: from the largest mean gradient to 1/1000 of it.

    Without a gradient, which moves nothing, they are left to the next mini-batch.
    """
    high, m = 0.0, len(grid.l1)
    for j in in_step(grid):
        high = max(high, np.float64(abs(grid.gradient[j, 0])))
    for q in range(m):
        grid.l1[q] = high / grid.held[0] * 1e-3 ** (q / max(m - 1, 1))


@kernel(inline=True)
def in_step(grid):
    """The features that the mini-batch has a gradient by."""
    return grid.features if grid.whole[0] or grid.keeps[0] else grid.touched[: grid.n_touched[0]]


@kernel(allocates=False)
def move_intercepts(grid, rate):
    """The step of the intercepts, which have a pace of their own; `rate` is the features'."""
    w, g, share = grid.W[-1], grid.gradient[-1], 1.0 / grid.held[0]
    for q in range(len(w)):
        w[q] -= own_step(rate, grid.steps[0], grid.curvature[q]) * share * g[q]


@kernel(allocates=False)
def end_step(grid, hp):
    """Empty the mini-batch; returns whether a model is to be chosen now.

    It is if half of the known features were touched, or since the last choice four times as many
    as are known. A mini-batch with entries in a quarter of its places touches all.
    """
    full = grid.whole[0] or 4 * grid.entries[0] > grid.held[0] * len(grid.W)
    touched = grid.n_touched[0] + 1  # with the intercept
    if hp.k > 0:
        for j in grid.features if grid.whole[0] else grid.touched[: grid.n_touched[0]]:
            if not grid.is_known[j]:
                grid.is_known[j] = True
                grid.known[grid.n_known[0]] = j
                grid.n_known[0] += 1
    for j in in_step(grid):
        clear(grid.gradient[j])
    clear(grid.gradient[-1])
    for j in grid.touched[: grid.n_touched[0]]:
        grid.is_touched[j] = False
    grid.held[0] = grid.entries[0] = grid.n_touched[0] = 0
    grid.whole[0] = grid.keeps[0] = False
    known, grid.work[0] = grid.n_known[0] + 1, grid.work[0] + touched
    grid.pending[0] = not (full or 2 * touched >= known or grid.work[0] >= 4 * known)
    return hp.k > 0 and not grid.pending[0]


# -------------------------------------------------- the choice of a penalty


@kernel(inline=True)
def known_features(grid):
    """The features that may have a coefficient for some penalty."""
    return grid.known[: grid.n_known[0]]


@kernel
def choose(grid, W, k):
    """Take the column of W with the most coefficients that are not zero, but not more than k.

    Of equals the one of the smallest penalty. If none has from 1 to k of them, the k largest
    coefficients (of equals the lower index) of the column with the fewest more are taken. All
    known features are settled.
    """
    m, w, chosen, nearest, n = len(grid.l1), grid.w, -1, -1, 0
    nonzeros = np.zeros(m, np.int64)
    for j in known_features(grid):
        for q in range(m):
            nonzeros[q] += W[j, q] != 0
    for q in range(m):
        if nonzeros[q] <= k:
            if chosen < 0 or nonzeros[q] >= nonzeros[chosen]:
                chosen = q
        elif nearest < 0 or nonzeros[q] < nonzeros[nearest]:
            nearest = q
    truncate = nearest >= 0 and (chosen < 0 or nonzeros[chosen] == 0)
    column = nearest if truncate else chosen
    grid.truncated[0], grid.truncated[1] = nonzeros[nearest] if truncate else 0, nearest
    for j in known_features(grid):
        w[j] = W[j, column]
        # Of the least penalties first: they leave most coefficients.
        q = m - 1
        while q >= 0 and grid.W[j, q] == 0:
            q -= 1
        grid.is_known[j] = q >= 0
        grid.known[n] = j
        n += q >= 0
    w[-1] = W[-1, column]
    grid.n_known[0], grid.work[0], grid.pending[0] = n, 0, False
    if truncate:
        sizes = np.abs(w[:-1])
        cut, above = kth_largest(sizes.copy(), len(sizes), k), 0
        for size in sizes:
            above += size > cut
        for j in range(len(sizes)):
            if sizes[j] == cut and above < k:
                above += 1
            elif not sizes[j] > cut:
                w[j] = 0.0
