"""Learning with many l1 penalties at once, so that one pass gives a model with at most k features.

Column q of the coefficients belongs to penalty q. The predictions and the step of a mini-batch deal
with some features at a time, whose coefficients stay in the processor's cache: of dense rows by
products of matrices, of sparse ones by sums over their entries. What a step does
to a feature that does not occur in it waits until it occurs, or until the model is chosen. That is
after each step, unless few features occur in one: then as often as is less work than the steps.
"""

from typing import NamedTuple

import numpy as np

from ofslib._jit import generic, kernel
from ofslib.kernels.losses import Loss, curvature_at, slope, target, weight
from ofslib.kernels.rows import (
    Active,
    dot,
    entry,
    is_sparse,
    length,
    new_active,
    overwrite,
    row,
)
from ofslib.kernels.selection import kth_largest

# Features that are dealt with at once.
TILE = 64
# Positions in `PenaltyGrid.count`: features of the step; those that may have coefficients; of how
# many there were steps since the model was chosen; whether it is to be chosen after this step, and
# whether it should have been; entries of sparse rows that are held; whether the rows are dense
LISTED, KNOWN, WORK, DUE, PENDING, ENTRIES, DENSE = range(7)


class AdaptiveHyper(NamedTuple):
    """What the methods read that have a step size per feature."""

    k: int
    loss: Loss
    l1: float
    learning_rate: float
    delta: float
    intercept: float  # 1.0 or 0.0


class PenaltyGrid(NamedTuple):
    """Models of all penalties, and the mini-batch that is being filled.

    `number` is the kind of floating-point number that the models are kept in.
    """

    W: np.ndarray  # (p + 1, m) number: coefficients; the last row holds the intercepts
    l1: np.ndarray  # (m,) number: penalties, descending; all zero until they are set
    # (batch_size, p + 1) number: the mini-batch, if its rows are dense; the last column is the
    # intercept's
    rows: np.ndarray
    targets: np.ndarray  # (batch_size,)
    weights: np.ndarray  # (batch_size,)
    # (2, batch_size, m) number: predictions, then slopes of the loss / rows; what some features add
    slopes: np.ndarray
    # (p + 1,) uint32: the first `count[LISTED]` are those that the step is about, ascending
    features: np.ndarray
    count: np.ndarray  # (7,) int64
    met: np.ndarray  # (p + 1,) bool: whether the feature occurs in the mini-batch
    known: np.ndarray  # (p + 1,) bool: whether it may have a coefficient for some penalty
    # Of the entries of sparse rows, from 1 on: the last one of each feature, (p + 1,); of each its
    # row, and the one of its feature before it (0: none), (batch_size * p // 4 + 2, 2); and its
    # value. Rows with more entries count as dense.
    newest: np.ndarray
    links: np.ndarray
    values: np.ndarray
    had: np.ndarray  # (p + 1,) int64: steps, or shrinkages, that its coefficients have had
    tile: np.ndarray  # (TILE, batch_size) number: some columns of `rows`
    g: np.ndarray  # (TILE, m) number: gradient by the coefficients of these
    coefs: np.ndarray  # (TILE, m) number: these coefficients, or those of one that are to be kept
    # (2, m) of the losses of all rows so far, and how many rows these are: the intercepts' pace
    curvature: np.ndarray
    w: np.ndarray  # (p + 1,) the chosen model
    # (2,) int64: how many coefficients the model has whose k largest w holds (0: w holds all of a
    # model's), and the place of its penalty
    truncated: np.ndarray
    memory: np.ndarray  # (arrays, p + 1, m) number: what else a method knows of each coefficient
    all_features: Active
    held: np.ndarray  # (1,) int64: rows held
    steps: np.ndarray  # (1,) int64: begun
    unit: np.ndarray  # (4,) what an automatic step is taken from

    def within(self, p: int) -> bool:
        """Whether kernels stay within the arrays, of p features."""
        return 0 <= self.held[0] <= len(self.rows)


def new_grid(
    p: int, batch_size: int, penalties: int, bounds, arrays: int, number: str
) -> PenaltyGrid:
    """Models without coefficients; penalties between `bounds`, or to be set by the first step."""
    l1 = np.zeros(penalties) if bounds is None else np.geomspace(*bounds[::-1], penalties)
    entries = batch_size * p // 4 + 2
    return PenaltyGrid(
        W=np.zeros((p + 1, penalties), number),
        l1=l1.astype(number),
        rows=np.zeros((batch_size, p + 1), number),
        targets=np.zeros(batch_size),
        weights=np.zeros(batch_size),
        slopes=np.zeros((2, batch_size, penalties), number),
        features=np.zeros(p + 1, np.uint32),
        count=np.zeros(7, np.int64),
        met=np.zeros(p + 1, bool),
        known=np.zeros(p + 1, bool),
        had=np.zeros(p + 1, np.int64),
        newest=np.zeros(p + 1, np.uint32),
        links=np.zeros((entries, 2), np.uint32),
        values=np.zeros(entries, number),
        tile=np.zeros((TILE, batch_size), number),
        g=np.zeros((TILE, penalties), number),
        coefs=np.zeros((TILE, penalties), number),
        curvature=np.zeros((2, penalties)),
        w=np.zeros(p + 1),
        truncated=np.zeros(2, np.int64),
        memory=np.zeros((arrays, p + 1, penalties), number),
        all_features=new_active(p),
        held=np.zeros(1, np.int64),
        steps=np.zeros(1, np.int64),
        unit=np.zeros(4),
    )


@generic
def like(array, value):
    """A number of the kind of the array's: else all arithmetic with these would be in float64."""
    single = str(array.dtype) == "float32"
    return (lambda array, value: np.float32(value)) if single else (lambda array, value: value)


# -------------------------------------------------- rows


@generic
def has_room(grid, x):
    """Whether the entries of a row can be linked."""
    return _has_room if is_sparse(x) else lambda grid, x: False


def _has_room(grid, x):
    return grid.count[ENTRIES] + length(x) < len(grid.links)


@kernel
def spread(grid, intercept):
    """Write the held rows, whose entries were linked, as dense ones."""
    rows, links = grid.rows, grid.links
    grid.count[DENSE] = 1
    for i in range(grid.held[0]):
        rows[i] = 0
        rows[i, -1] = intercept
    for j in range(len(grid.newest)):
        e = grid.newest[j]
        while e > 0:
            rows[links[e, 0], j] = grid.values[e]
            e = links[e, 1]


@kernel
def hold(grid, block, start, intercept):
    """Take the block's rows from `start` on into the mini-batch until it is full.

    Writes the predictions of the chosen model and returns the place in the block's order that was
    reached; stops before a row that has no finite one.
    """
    X, y, order, margins = block
    held, w, count, links, newest = grid.held, grid.w, grid.count, grid.links, grid.newest
    stop = min(start + len(grid.rows) - held[0], len(order))
    if held[0] == 0:
        grid.met[:] = False
        newest[:] = count[ENTRIES] = count[DENSE] = 0
    for i in range(start, stop):
        x = row(X, order[i])
        margins[i] = dot(x, w, grid.all_features) + intercept * w[-1]
        if not np.isfinite(margins[i]):
            return i
        if not (count[DENSE] or has_room(grid, x)):
            spread(grid, intercept)
        if count[DENSE]:
            values = grid.rows[held[0]]
            values[:] = 0
            values[-1] = intercept
            for e in range(length(x)):
                j, v = entry(x, e)
                values[j] = v
                grid.met[j] |= v != 0.0
        else:
            for e in range(length(x)):
                j, v = entry(x, e)
                count[ENTRIES] += 1
                n = count[ENTRIES]
                links[n, 0], links[n, 1] = held[0], newest[j]
                grid.values[n], newest[j] = v, n
                grid.met[j] |= v != 0.0
        grid.targets[held[0]], grid.weights[held[0]] = target(y[order[i]]), weight(y[order[i]])
        held[0] += 1
    return stop


@kernel
def list_features(grid, may_rest):
    """List the features that the step is about: those with a value in the mini-batch.

    Unless they may rest, those that may have coefficients too.
    """
    features, met, known, count, n = grid.features, grid.met, grid.known, grid.count, 0
    met[-1] = True
    for j in range(len(met)):
        features[n] = j
        count[KNOWN] += met[j] and not known[j]
        n += met[j] or (known[j] and not may_rest)
        known[j] |= met[j]
    count[LISTED] = n
    count[WORK] += n
    often = count[DENSE] or 2 * n >= count[KNOWN]
    count[DUE] = often or count[WORK] >= 4 * count[KNOWN]
    count[PENDING] = not count[DUE]


@kernel
def list_known(grid):
    """List, and return, the features that may have coefficients."""
    n = 0
    for j in range(len(grid.known)):
        grid.features[n] = j
        n += grid.known[j]
    return grid.features[:n]


@kernel(allocates=False)
def take_columns(tile, rows, features):
    """Write the values of some features in the rows that are held, a row for each feature."""
    for i in range(len(rows)):
        for c in range(len(features)):
            tile[c, i] = rows[i, features[c]]


@kernel(allocates=False)
def add_times(total, values, times):
    """Add the values, so many times each, to the total."""
    for q in range(len(total)):
        total[q] += times * values[q]


# -------------------------------------------------- steps


@kernel(allocates=False)
def add_linked(grid, features, intercept):
    """Add to `slopes` what features of sparse rows predict, whose coefficients are in `coefs`."""
    slopes, coefs, links = grid.slopes[0], grid.coefs, grid.links
    for c in range(len(features)):
        e = grid.newest[features[c]]
        while e > 0:
            add_times(slopes[links[e, 0]], coefs[c], grid.values[e])
            e = links[e, 1]
    if features[-1] == len(grid.met) - 1:
        for i in range(grid.held[0]):
            add_times(slopes[i], coefs[len(features) - 1], like(slopes, intercept))


@kernel(inline=True)
def predict(grid, hp, late):
    """Write the predictions of all penalties for the held rows into `slopes`."""
    slopes, more, tile = grid.slopes[0], grid.slopes[1], grid.tile
    slopes[:] = 0
    for start in range(0, grid.count[LISTED], TILE):
        features = grid.features[start : min(start + TILE, grid.count[LISTED])]
        late(grid, features, hp, False)
        if grid.count[DENSE]:
            take_columns(tile, grid.rows, features)
            np.dot(tile[: len(features)].T, grid.coefs[: len(features)], more)
            slopes += more
        else:
            add_linked(grid, features, hp.intercept)


@kernel(allocates=False)
def never_late(grid, features, hp, keep):
    """Of a method in which no feature waits."""
    for c in range(0 if keep else len(features)):
        overwrite(grid.coefs[c], grid.W[features[c]])


@kernel(inline=True, allocates=False)
def settle_features(grid, features, hp, keep, now, caught_up):
    """Make up for the shrinkages of these features, of which there were `now`.

    A kernel `caught_up(grid, j, times, hyper, new)` writes the coefficients of feature j after so
    many of them.
    """
    had = grid.had
    for c in range(len(features)):
        j = features[c]
        times, new = now - had[j], grid.coefs[0 if keep else c]
        if times > 0 and j < len(had) - 1:
            caught_up(grid, j, times, hp, new)
            if keep:
                had[j] = now
                overwrite(grid.W[j], new)
        elif not keep:
            overwrite(new, grid.W[j])


@kernel(inline=True)
def begin_step(grid, hp, may_rest, late):
    """Turn the held rows into slopes, and hold none; returns whether all predictions are finite.

    `may_rest`: whether a feature that does not occur can wait. What it has waited for a kernel
    `late(grid, features, hyper, keep)` does, in W, or, for TILE features, in `coefs` only.
    """
    n, m, slopes, loss = grid.held[0], len(grid.l1), grid.slopes[0], hp.loss
    # To pass all features through the processor pays only if the rows hold much of them.
    if not grid.count[DENSE] and 4 * grid.count[ENTRIES] > n * len(grid.met):
        spread(grid, hp.intercept)
    list_features(grid, may_rest)
    if grid.count[DENSE]:
        grid.rows[n:] = 0
    predict(grid, hp, late)
    for i in range(n):
        for q in range(m):
            if not np.isfinite(slopes[i, q]):
                return False
            s, w = slope(loss, slopes[i, q], grid.targets[i]), grid.weights[i]
            grid.curvature[0, q] += w * curvature_at(loss, s)
            slopes[i, q] = w * s / n
    for q in range(m):
        grid.curvature[1, q] += n
    if grid.l1[0] == 0.0:
        set_penalties(grid, hp.intercept)
    grid.held[0] = 0
    grid.steps[0] += 1
    return True


@kernel
def set_penalties(grid, intercept):
    """Set the penalties: from the largest gradient of the mini-batch to 1/1000 of it.

    Without a gradient, which moves nothing, they are left to the next one.
    """
    high, m, last = 0.0, len(grid.l1), grid.count[LISTED] - 1
    for start in range(0, last, TILE):
        _, G = gradient(grid, start, intercept)
        for g in G[: last - start]:
            high = max(high, abs(g[0]))
    for q in range(m):
        grid.l1[q] = high * 1e-3 ** (q / max(m - 1, 1))


@kernel(allocates=False)
def linked_gradient(grid, features, intercept):
    """Write the gradients by features of sparse rows into `g`."""
    g, slopes, links = grid.g, grid.slopes[0], grid.links
    for c in range(len(features)):
        e = grid.newest[features[c]]
        for q in range(g.shape[1]):
            g[c, q] = 0
        while e > 0:
            add_times(g[c], slopes[links[e, 0]], grid.values[e])
            e = links[e, 1]
    if features[-1] == len(grid.met) - 1:
        for i in range(len(slopes)):
            add_times(g[len(features) - 1], slopes[i], like(g, intercept))


@kernel
def gradient(grid, start, intercept):
    """The mean gradient of the mini-batch by TILE of the listed features, from place `start` on.

    Returns these features, or those that there are, and one row for each of them.
    """
    features = grid.features[start : min(start + TILE, grid.count[LISTED])]
    g = grid.g[: len(features)]
    if grid.count[DENSE]:
        take_columns(grid.tile, grid.rows, features)
        np.dot(grid.tile[: len(features)], grid.slopes[0], g)
    else:
        linked_gradient(grid, features, intercept)
    return features, g


@kernel(allocates=False)
def count_nonzeros(W, features, nonzeros):
    """Count the coefficients of these features that are not zero, for each penalty."""
    for c in range(len(features)):
        w = W[features[c]]
        for q in range(len(w)):
            nonzeros[q] += np.int64(w[q] != 0)


@kernel
def choose(grid, W, k):
    """Take the column of W with the most coefficients that are not zero, but not more than k.

    Of equals the one of the smallest penalty. If none has from 1 to k of them, the k largest
    coefficients (of equals the lower index) of the column with the fewest more are taken. None of
    the known features may be late.
    """
    features, count, w, chosen, nearest = list_known(grid), grid.count, grid.w, -1, -1
    nonzeros = np.zeros(len(grid.l1), np.int64)
    count_nonzeros(W, features[:-1], nonzeros)  # the last one is the intercept
    for q in range(len(grid.l1)):
        if nonzeros[q] <= k:
            if chosen < 0 or nonzeros[q] >= nonzeros[chosen]:
                chosen = q
        elif nearest < 0 or nonzeros[q] < nonzeros[nearest]:
            nearest = q
    truncate = nearest >= 0 and (chosen < 0 or nonzeros[chosen] == 0)
    grid.truncated[0], grid.truncated[1] = nonzeros[nearest] if truncate else 0, nearest
    count[WORK] = count[PENDING] = 0
    for j in features:
        w[j] = W[j, nearest if truncate else chosen]
        # Of the least penalties first: they leave most coefficients.
        q = len(grid.l1) - 1
        while q >= 0 and grid.W[j, q] == 0.0:
            q -= 1
        grid.known[j] = q >= 0 or j == len(w) - 1
        count[KNOWN] -= not grid.known[j]
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
