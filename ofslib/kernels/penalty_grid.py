"""Learning with many l1 penalties at once, so that one pass gives a model with at most k features.

Column q of the coefficients belongs to penalty q. Two products of matrices per mini-batch give
the predictions and the gradients of all columns.
"""

from typing import NamedTuple

import numpy as np

from ofslib._jit import generic, kernel
from ofslib.kernels.losses import slope
from ofslib.kernels.rows import Active, dot, is_sparse, new_active, row

# Features whose gradients are computed at once: they stay in the processor's cache.
TILE = 64


class Path(NamedTuple):
    """Models of all penalties, and the mini-batch that is being filled."""

    W: np.ndarray  # (p + 1, m) coefficients; the last row holds the intercepts
    l1: np.ndarray  # (m,) penalties, descending; all zero until they are set
    rows: np.ndarray  # (batch_size, p + 1) of the mini-batch, the last column for the intercept
    targets: np.ndarray  # (batch_size,)
    slopes: np.ndarray  # (batch_size, m) predictions, then slopes of the loss / rows
    tile: np.ndarray  # (TILE, batch_size) some columns of `rows`
    g: np.ndarray  # (TILE, m) gradient by the coefficients of these
    used: np.ndarray  # (m,) int64: coefficients that are not zero
    w: np.ndarray  # (p + 1,) the chosen model
    every: Active  # all features
    count: np.ndarray  # (2,) int64: rows held, steps made


def new_path(p, batch_size, penalties, bounds=None):
    """Models without coefficients; penalties between `bounds`, or to be set by the first step."""
    return Path(
        W=np.zeros((p + 1, penalties)),
        l1=np.zeros(penalties) if bounds is None else np.geomspace(*bounds[::-1], penalties),
        rows=np.zeros((batch_size, p + 1)),
        targets=np.zeros(batch_size),
        slopes=np.zeros((batch_size, penalties)),
        tile=np.zeros((TILE, batch_size)),
        g=np.zeros((TILE, penalties)),
        used=np.zeros(penalties, np.int64),
        w=np.zeros(p + 1),
        every=new_active(p),
        count=np.zeros(2, np.int64),
    )


@generic
def spread(x, target):
    """Write the row x to target[:p]."""
    return _spread_sparse if is_sparse(x) else _spread_dense


def _spread_dense(x, target):
    for j in range(x.shape[0]):
        target[j] = x[j]


def _spread_sparse(x, target):
    target[:-1] = 0.0
    for i in range(x.values.shape[0]):
        target[x.indices[i]] = x.values[i]


@kernel
def hold(path, X, y, order, start, intercept, margins):
    """Take the rows order[start:] into the mini-batch until it is full; returns the place reached.

    Writes the predictions of the chosen model into `margins`; stops before a row that has no
    finite one.
    """
    rows, count, w = path.rows, path.count, path.w
    stop = min(start + len(rows) - count[0], len(order))
    for i in range(start, stop):
        x, held = row(X, order[i]), count[0]
        margins[i] = dot(x, w, path.every) + intercept * w[-1]
        if not np.isfinite(margins[i]):
            return i
        spread(x, rows[held])
        rows[held, -1] = intercept
        path.targets[held] = y[order[i]]
        count[0] += 1
    return stop


@kernel
def begin_step(path, loss):
    """Turn the held rows into slopes; returns whether all predictions are finite."""
    n, m, slopes = path.count[0], len(path.l1), path.slopes
    np.dot(path.rows, path.W, slopes)
    slopes[n:] = 0.0
    for i in range(n):
        for q in range(m):
            if not np.isfinite(slopes[i, q]):
                return False
            slopes[i, q] = slope(loss, slopes[i, q], path.targets[i]) / n
    if path.l1[0] == 0.0:
        span(path)
    path.used[:] = 0
    return True


@kernel
def span(path):
    """Set the penalties: from the largest gradient of the first mini-batch to 1/1000 of it."""
    high, m, last = 0.0, len(path.l1), len(path.w) - 1
    for start in range(0, last, TILE):
        for g in gradient(path, start)[: last - start]:
            high = max(high, abs(g[0]))
    for q in range(m):
        path.l1[q] = (high if high > 0.0 else 1.0) * 1e-3 ** (q / max(m - 1, 1))


@kernel
def gradient(path, start):
    """The mean gradient of the mini-batch by the TILE coefficients from `start` on.

    One row for each of them, or for those that there are.
    """
    rows, tile = path.rows, path.tile[: min(TILE, path.rows.shape[1] - start)]
    for i in range(len(rows)):
        for c in range(len(tile)):
            tile[c, i] = rows[i, start + c]
    np.dot(tile, path.slopes, path.g[: len(tile)])
    return path.g[: len(tile)]


@kernel
def end_step(path, W, k):
    """Choose the model among the columns of W, and empty the mini-batch."""
    choose(path, W, k)
    empty(path)


@kernel
def empty(path):
    """Empty the mini-batch, which has been learned."""
    path.count[0] = 0
    path.count[1] += 1


@kernel
def choose(path, W, k):
    """Take the column of W with the most coefficients that are not zero, but not more than k.

    Of equals the one of the smallest penalty.
    """
    chosen = -1
    for q in range(len(path.l1)):
        if path.used[q] <= k and (chosen < 0 or path.used[q] >= path.used[chosen]):
            chosen = q
    for j in range(len(path.w)):
        path.w[j] = W[j, chosen] if chosen >= 0 else 0.0
