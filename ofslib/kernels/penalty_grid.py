"""Learning with many l1 penalties at once, so that one pass gives a model with at most k features.

Column q of the coefficients belongs to penalty q. Two products of matrices per mini-batch give
the predictions and the gradients of all columns, of sparse rows sums over their entries. What a
step does to a feature that does not occur in it waits until it occurs, or until the model is
chosen. That is after each step, unless few features occur in one: then as often as is less work
than the steps.
"""

from typing import NamedTuple

import numpy as np

from ofslib._jit import generic, kernel
from ofslib.kernels.losses import Loss, curvature_at, slope, target, weight
from ofslib.kernels.rows import Active, dot, entry, is_sparse, length, new_active, row
from ofslib.kernels.selection import kth_largest

# Features whose gradients are computed at once: they stay in the processor's cache.
TILE = 64
# Positions in `PenaltyGrid.count`: features of the step; those that may have coefficients; of how
# many there were steps since the model was chosen; whether it is to be chosen after this step, and
# whether it should have been; entries of sparse rows that are held; whether the rows count as dense
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
    """Models of all penalties, and the mini-batch that is being filled."""

    W: np.ndarray  # (p + 1, m) coefficients; the last row holds the intercepts
    l1: np.ndarray  # (m,) penalties, descending; all zero until they are set
    rows: np.ndarray  # (batch_size, p + 1) of the mini-batch, the last column for the intercept
    targets: np.ndarray  # (batch_size,)
    weights: np.ndarray  # (batch_size,)
    slopes: np.ndarray  # (batch_size, m) predictions, then slopes of the loss / rows
    # (p + 1,) uint32: the first `n_features[0]` are those that the step is about, ascending
    features: np.ndarray
    count: np.ndarray  # (7,) int64
    met: np.ndarray  # (p + 1,) bool: whether the feature occurs in the mini-batch
    known: np.ndarray  # (p + 1,) bool: whether it may have a coefficient for some penalty
    # Of the entries of sparse rows, from 1 on, as long as they are so few that the rows do not
    # count as dense: the last one of each feature, (p + 1,); of each its row, and the one of its
    # feature before it (0: none), (batch_size * p // 4 + 2, 2)
    newest: np.ndarray
    links: np.ndarray
    had: np.ndarray  # (p + 1,) int64: steps, or shrinkages, that its coefficients have had
    tile: np.ndarray  # (TILE, batch_size) some columns of `rows`
    g: np.ndarray  # (TILE, m) gradient by the coefficients of these
    coefs: np.ndarray  # (TILE, m) these coefficients, if they are not kept
    # (2, m) of the losses of all rows so far, and how many rows these are: the intercepts' pace
    curvature: np.ndarray
    nonzeros: np.ndarray  # (m,) int64: coefficients that are not zero
    w: np.ndarray  # (p + 1,) the chosen model
    # (2,) int64: how many coefficients the model has whose k largest w holds (0: w holds all of a
    # model's), and the place of its penalty
    truncated: np.ndarray
    memory: np.ndarray  # (arrays, p + 1, m) what else a method knows of each coefficient
    all_features: Active
    held: np.ndarray  # (1,) int64: rows held
    steps: np.ndarray  # (1,) int64: begun
    unit: np.ndarray  # (4,) what an automatic step is taken from


def new_grid(p: int, batch_size: int, penalties: int, bounds, arrays: int) -> PenaltyGrid:
    """Models without coefficients; penalties between `bounds`, or to be set by the first step."""
    return PenaltyGrid(
        W=np.zeros((p + 1, penalties)),
        l1=np.zeros(penalties) if bounds is None else np.geomspace(*bounds[::-1], penalties),
        rows=np.zeros((batch_size, p + 1)),
        targets=np.zeros(batch_size),
        weights=np.zeros(batch_size),
        slopes=np.zeros((batch_size, penalties)),
        features=np.zeros(p + 1, np.uint32),
        count=np.zeros(7, np.int64),
        met=np.zeros(p + 1, bool),
        known=np.zeros(p + 1, bool),
        had=np.zeros(p + 1, np.int64),
        newest=np.zeros(p + 1, np.uint32),
        links=np.zeros((batch_size * p // 4 + 2, 2), np.uint32),
        tile=np.zeros((TILE, batch_size)),
        g=np.zeros((TILE, penalties)),
        coefs=np.zeros((TILE, penalties)),
        curvature=np.zeros((2, penalties)),
        nonzeros=np.zeros(penalties, np.int64),
        w=np.zeros(p + 1),
        truncated=np.zeros(2, np.int64),
        memory=np.zeros((arrays, p + 1, penalties)),
        all_features=new_active(p),
        held=np.zeros(1, np.int64),
        steps=np.zeros(1, np.int64),
        unit=np.zeros(4),
    )


@generic
def link(grid, x, r):
    """Enter row r of the mini-batch with its features, if it is sparse."""
    return _link_sparse if is_sparse(x) else _link_dense


def _link_dense(grid, x, r):
    grid.count[DENSE] = 1


def _link_sparse(grid, x, r):
    n, newest, links = grid.count[ENTRIES], grid.newest, grid.links
    if n + length(x) >= len(links):
        grid.count[DENSE] = 1
        return
    for e in range(length(x)):
        j, _ = entry(x, e)
        n += 1
        links[n, 0], links[n, 1], newest[j] = r, newest[j], n
    grid.count[ENTRIES] = n


@kernel
def hold(grid, block, start, intercept):
    """Take the block's rows from `start` on into the mini-batch until it is full.

    Writes the predictions of the chosen model and returns the place in the block's order that was
    reached; stops before a row that has no finite one.
    """
    X, y, order, margins = block
    rows, held, w, all_features = grid.rows, grid.held, grid.w, grid.all_features
    stop = min(start + len(rows) - held[0], len(order))
    if held[0] == 0:
        grid.met[:] = False
        grid.newest[:] = grid.count[ENTRIES] = grid.count[DENSE] = 0
    for i in range(start, stop):
        x = row(X, order[i])
        margins[i] = dot(x, w, all_features) + intercept * w[-1]
        if not np.isfinite(margins[i]):
            return i
        values = rows[held[0]]
        values[:] = 0.0
        for e in range(length(x)):
            j, v = entry(x, e)
            values[j] = v
            grid.met[j] |= v != 0.0
        link(grid, x, held[0])
        values[-1] = intercept
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
    # To pass all coefficients through the processor pays only if the rows hold much of them.
    count[DENSE] |= 4 * count[ENTRIES] > grid.held[0] * len(met)
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


@kernel(inline=True)
def predict_all(grid, hp, late):
    """Write the predictions of all penalties for the held rows into `slopes`."""
    slopes, links = grid.slopes, grid.links
    features = grid.features[: grid.count[LISTED]]
    if grid.count[DENSE]:
        late(grid, features, hp, True)
        np.dot(grid.rows, grid.W, slopes)
        return
    slopes[:] = 0.0
    for start in range(0, len(features), TILE):
        part = features[start : start + TILE]
        late(grid, part, hp, False)
        for c in range(len(part)):
            e = grid.newest[part[c]]
            while e > 0:
                i = links[e, 0]
                v = grid.rows[i, part[c]]
                for q in range(slopes.shape[1]):
                    slopes[i, q] += v * grid.coefs[c, q]
                e = links[e, 1]
    # The intercept is the last of them.
    slopes[: grid.held[0]] += grid.rows[0, -1] * grid.coefs[(len(features) - 1) % TILE]


@kernel
def put(w, new, nonzeros):
    """Make `new` the coefficients w of a feature, and count those that are not zero."""
    for q in range(len(w)):
        nonzeros[q] += np.int64(new[q] != 0.0) - np.int64(w[q] != 0.0)
        w[q] = new[q]


@kernel
def never_late(grid, features, hp, keep):
    """Of a method in which no feature waits."""
    for c in range(0 if keep else len(features)):
        grid.coefs[c] = grid.W[features[c]]


@kernel(inline=True)
def begin_step(grid, hp, may_rest, late):
    """Turn the held rows into slopes, and hold none; returns whether all predictions are finite.

    `may_rest`: whether a feature that does not occur can wait. What it has waited for a kernel
    `late(grid, features, hyper, keep)` does, in W, or, for TILE features, in `coefs` only.
    """
    n, m, slopes, loss = grid.held[0], len(grid.l1), grid.slopes, hp.loss
    list_features(grid, may_rest)
    predict_all(grid, hp, late)
    slopes[n:] = 0.0
    for i in range(n):
        for q in range(m):
            if not np.isfinite(slopes[i, q]):
                return False
            s, w = slope(loss, slopes[i, q], grid.targets[i]), grid.weights[i]
            grid.curvature[0, q] += w * curvature_at(loss, s)
            slopes[i, q] = w * s / n
    grid.curvature[1] += n
    if grid.l1[0] == 0.0:
        set_penalties(grid)
    grid.held[0] = 0
    grid.steps[0] += 1
    return True


@kernel
def set_penalties(grid):
    """Set the penalties: from the largest gradient of the first mini-batch to 1/1000 of it."""
    high, m, last = 0.0, len(grid.l1), grid.count[LISTED] - 1
    for start in range(0, last, TILE):
        _, G = gradient(grid, start)
        for g in G[: last - start]:
            high = max(high, abs(g[0]))
    for q in range(m):
        grid.l1[q] = (high if high > 0.0 else 1.0) * 1e-3 ** (q / max(m - 1, 1))


@kernel
def gradient(grid, start):
    """The mean gradient of the mini-batch by TILE of the listed features, from place `start` on.

    Returns these features, or those that there are, and one row for each of them.
    """
    rows, features = grid.rows, grid.features[start : min(start + TILE, grid.count[LISTED])]
    g = grid.g[: len(features)]
    if not grid.count[DENSE]:
        slopes, links = grid.slopes, grid.links
        g[:] = 0.0
        for c in range(len(features)):
            e = grid.newest[features[c]]
            while e > 0:
                i = links[e, 0]
                v = rows[i, features[c]]
                for q in range(g.shape[1]):
                    g[c, q] += v * slopes[i, q]
                e = links[e, 1]
        if features[-1] == len(grid.met) - 1:
            for i in range(len(rows)):
                for q in range(g.shape[1]):
                    g[len(features) - 1, q] += rows[i, -1] * slopes[i, q]
        return features, g
    tile = grid.tile[: len(features)]
    for i in range(len(rows)):
        for c in range(len(tile)):
            tile[c, i] = rows[i, features[c]]
    np.dot(tile, grid.slopes, g)
    return features, g


@kernel
def choose(grid, W, k):
    """Take the column of W with the most coefficients that are not zero, but not more than k.

    Of equals the one of the smallest penalty. If none has from 1 to k of them, the k largest
    coefficients (of equals the lower index) of the column with the fewest more are taken. None of
    the known features may be late.
    """
    nonzeros, chosen, nearest, w = grid.nonzeros, -1, -1, grid.w
    for q in range(len(grid.l1)):
        if nonzeros[q] <= k:
            if chosen < 0 or nonzeros[q] >= nonzeros[chosen]:
                chosen = q
        elif nearest < 0 or nonzeros[q] < nonzeros[nearest]:
            nearest = q
    truncate = nearest >= 0 and (chosen < 0 or nonzeros[chosen] == 0)
    grid.truncated[0], grid.truncated[1] = nonzeros[nearest] if truncate else 0, nearest
    features, count = list_known(grid), grid.count
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
