"""Rows of a data matrix, dense or sparse, behind one set of verbs.

A dense matrix is a C-ordered array and its row an array; a sparse one is a `CSR` and its row a
`SparseRow`. Values are float64 or float32, what is computed of them is float64: rows of either give
the same. Kernels are written once with the verbs below.
"""

from typing import NamedTuple

import numpy as np

from ofslib._jit import REORDERED_SUMS, generic, kernel, static_type
from ofslib.kernels.losses import weight


class CSR(NamedTuple):
    """Compressed sparse rows."""

    data: np.ndarray  # (nnz,) float64 or float32
    indices: np.ndarray  # (nnz,) uint32: numba need not test for negative ones
    indptr: np.ndarray  # (n + 1,) int64


class SparseRow(NamedTuple):
    """The nonzero entries of one row."""

    values: np.ndarray  # (m,) float64 or float32
    indices: np.ndarray  # (m,) uint32


class Block(NamedTuple):
    """Rows that are shown to a method, and what it predicts for them before it learns them."""

    X: np.ndarray | CSR  # (n, p) float64 or float32
    y: np.ndarray  # (n,) float64: numbers, or -1 and +1; or records (WEIGHTED) of these
    order: np.ndarray  # (m,) int64: the rows of X that are shown, in this order
    margins: np.ndarray  # (m,) float64: the predictions; to be written


class Active(NamedTuple):
    """The features that are still in the model."""

    # (p,) uint32; the first `size[0]` are in the model, in ascending order. Features that were
    # dropped from a queue (`pruning_queue`) stand among them until it is closed.
    index: np.ndarray
    size: np.ndarray  # (1,) int64
    untouched: np.ndarray  # (p,) bool: in the model and not yet touched by the open mini-batch
    cut: np.ndarray  # (1,) the importance at which the last pruning cut

    def within(self, p: int) -> bool:
        """Whether kernels stay within the arrays, of p features."""
        return within(self.index, self.size, p)


# Positions in `Batch.count`
TOUCHED, ROWS, DENSE_ROWS, ENTRIES, ENTRIES_BEFORE, DENSE_THRESHOLD = range(6)


class Batch(NamedTuple):
    """The gradient of the mini-batch that is being filled.

    Rows can thus be shown in blocks of any size without changing the result.
    """

    gradient: np.ndarray  # (p + 1,) sum over rows of slope * x; the last entry is the intercept's
    touched: np.ndarray  # (p + 1,) uint32; `count[TOUCHED]` active features of sparse rows
    # (6,) int64: touched features, rows, rows taken as dense, entries of sparse rows, these of the
    # mini-batch before, and the dense threshold: where it times the entries before exceeds the
    # features in the model, sparse rows are taken as dense
    count: np.ndarray
    # (3,) of all rows so far: sum of the losses' curvatures, number of rows, sum of squared slopes
    curvature: np.ndarray

    def within(self, p: int) -> bool:
        """Whether kernels stay within the arrays, of p features."""
        return within(self.touched, self.count[..., TOUCHED], p)


class Moments(NamedTuple):
    """Sums from which the running variance of each feature follows."""

    rows: np.ndarray  # (1,) int64
    total: np.ndarray  # (p,) sum of x, or (1,) when not needed
    square: np.ndarray  # (p,) sum of x**2, or (1,)


def within(index: np.ndarray, size, p: int) -> bool:
    """Whether all indices are below p, and no more in use than there are."""
    used = (0 <= size) & (size <= index.shape[-1])
    return bool(np.all((index >= 0) & (index < p)) and np.all(used))


def new_active(p: int, size: int | None = None) -> Active:
    """All of `p` features in the model, or none with `size=0`."""
    size = p if size is None else size
    index = np.arange(p, dtype=np.uint32)
    return Active(index, np.array([size]), np.full(p, size > 0), np.zeros(1))


def new_batch(p: int, dense_threshold: int = 0) -> Batch:
    """An empty mini-batch; without a `dense_threshold` sparse rows are never taken as dense."""
    count = np.array([0, 0, 0, 0, 0, dense_threshold])
    return Batch(np.zeros(p + 1), np.zeros(p + 1, np.uint32), count, np.zeros(3))


def new_moments(p: int) -> Moments:
    """Moments of no rows."""
    return Moments(np.zeros(1, np.int64), np.zeros(p), np.zeros(p))


def is_sparse(x) -> bool:
    """Whether `x` (a value or a numba type) is sparse."""
    return static_type(x) in (CSR, SparseRow)


@kernel
def ascend(indptr, indices, width):
    """Whether the indices of each row ascend, none twice, from at least 0 to less than `width`."""
    # Unsigned: numba need not test for places below 0, and the comparisons become vectors.
    wrong, start, one = False, np.uint64(indptr[0]), np.uint64(1)
    for i in range(len(indptr) - 1):
        stop = np.uint64(indptr[i + 1])
        if start < stop:
            # Those between the first and the last need no look.
            wrong |= (indices[start] < 0) | (indices[stop - one] >= width)
            for j in range(start + one, stop):
                wrong |= indices[j] <= indices[j - one]
        start = stop
    return not wrong


@generic(inline=True, allocates=True)
def row(X, i):
    """Row i of X."""
    return _sparse_row if is_sparse(X) else lambda X, i: X[i]


def _sparse_row(X, i):
    start, stop = X.indptr[i], X.indptr[i + 1]
    return SparseRow(X.data[start:stop], X.indices[start:stop])


@generic
def length(x):
    """How many entries `entry` gives of the row x."""
    return (lambda x: len(x.values)) if is_sparse(x) else (lambda x: len(x))


@generic
def entry(x, i):
    """The i-th entry of the row x: its feature and its value, float64 (which may be zero)."""
    if is_sparse(x):
        return lambda x, i: (x.indices[i], np.float64(x.values[i]))
    return lambda x, i: (i, np.float64(x[i]))


@generic(**REORDERED_SUMS)
def dot(x, w, active):
    """x . w, where w is zero outside the active features; not finite if a value of x is not."""
    return _sparse_dot if is_sparse(x) else _dense_dot


def _dense_dot(x, w, active):
    total = 0.0
    m = active.size[0]
    # Picking columns pays only when most cache lines of the row can be left alone.
    if 4 * m < x.shape[0]:
        for j in range(x.shape[0]):
            total += 0.0 * x[j]
        for a in range(m):
            j = active.index[a]
            total += x[j] * w[j]
    else:
        for j in range(x.shape[0]):
            total += x[j] * w[j]
    return total


def _sparse_dot(x, w, active):
    total = 0.0
    for i in range(x.values.shape[0]):
        total += x.values[i] * w[x.indices[i]]
    return total


@generic(**REORDERED_SUMS)
def dots(X, rows, w, active, products):
    """Write the `dot` of each of these rows of X to `products`."""
    return _sparse_dots if is_sparse(X) else _dense_dots


def _dense_dots(X, rows, w, active, products):
    last = len(rows) - 1
    if 4 * active.size[0] < X.shape[1]:
        for i in range(last + 1):
            products[i] = dot(X[rows[i]], w, active)
        return
    # Two rows at a time, so that w is read half as often. An odd one goes with itself: sums in
    # another order would depend on where a stream is cut.
    for i in range(0, last + 1, 2):
        a, b, s, t = X[rows[i]], X[rows[min(i + 1, last)]], 0.0, 0.0
        for j in range(X.shape[1]):
            s += a[j] * w[j]
            t += b[j] * w[j]
        products[i], products[min(i + 1, last)] = s, t


def _sparse_dots(X, rows, w, active, products):
    for i in range(len(rows)):
        products[i] = dot(row(X, rows[i]), w, active)


@generic
def add(batch, X, rows, slopes, active):
    """Add slopes[i] * X[rows[i]], on the active features, to the gradient of the batch."""
    return _add_sparse_rows if is_sparse(X) else _add_dense_rows


def _add_dense_rows(batch, X, rows, slopes, active):
    batch.count[ROWS] += len(rows)
    batch.count[DENSE_ROWS] += len(rows)
    accumulate(batch.gradient, X, rows, slopes, active)


def _add_sparse_rows(batch, X, rows, slopes, active):
    gradient, touched, count, untouched = (
        batch.gradient,
        batch.touched,
        batch.count,
        active.untouched,
    )
    # To walk through all active features once is then faster than to list the touched ones.
    sweep = count[DENSE_THRESHOLD] * count[ENTRIES_BEFORE] > active.size[0]
    count[ROWS] += len(rows)
    count[DENSE_ROWS] += len(rows) if sweep else 0
    n = count[TOUCHED]
    for r in range(len(rows)):
        x, slope = row(X, rows[r]), slopes[r]
        count[ENTRIES] += len(x.values)
        if sweep:
            for i in range(len(x.values)):
                gradient[x.indices[i]] += slope * x.values[i]
        elif slope != 0.0:
            for i in range(len(x.values)):
                j = x.indices[i]
                # Without branches, which a processor could not foresee here. What a feature outside
                # the model gathers is never read.
                touched[n] = j
                n += untouched[j]
                untouched[j] = False
                gradient[j] += slope * x.values[i]
    count[TOUCHED] = n


@generic
def accumulate(target, X, rows, factors, active):
    """target += factors[i] * X[rows[i]] for each i; of dense rows the active features only."""
    return _accumulate_sparse if is_sparse(X) else _accumulate_dense


def _accumulate_dense(target, X, rows, factors, active):
    m, done = active.size[0], 0
    if 4 * m < X.shape[1]:
        for i in range(len(rows)):
            x, s = X[rows[i]], factors[i]
            for a in range(m):
                j = active.index[a]
                target[j] += s * x[j]
        return
    # Four rows at a time pass the target through the processor once; the sums stay the same.
    while done + 4 <= len(rows):
        a, b, c, d = X[rows[done]], X[rows[done + 1]], X[rows[done + 2]], X[rows[done + 3]]
        s, t, u, v = factors[done], factors[done + 1], factors[done + 2], factors[done + 3]
        for j in range(X.shape[1]):
            target[j] = (((target[j] + s * a[j]) + t * b[j]) + u * c[j]) + v * d[j]
        done += 4
    for i in range(done, len(rows)):
        x, s = X[rows[i]], factors[i]
        for j in range(X.shape[1]):
            target[j] += s * x[j]


def _accumulate_sparse(target, X, rows, factors, active):
    for i in range(len(rows)):
        axpy(target, row(X, rows[i]), factors[i])


@generic
def touch(batch, x, active):
    """Count the active features of the row x, if it is sparse, among those of the batch.

    `add` has counted them unless the slope was 0.
    """
    return _touch_sparse if is_sparse(x) else lambda batch, x, active: None


def _touch_sparse(batch, x, active):
    for j in x.indices:
        batch.touched[batch.count[TOUCHED]] = j
        batch.count[TOUCHED] += active.untouched[j]
        active.untouched[j] = False


@generic
def squares(x, inside):
    """Sum of the squares of the sparse row x on the features marked in `inside`.

    Dense rows go through all features; who asks for less has none, and 0.
    """
    return _sparse_squares if is_sparse(x) else lambda x, inside: 0.0


def _sparse_squares(x, inside):
    total = 0.0
    for i in range(len(x.values)):
        v = np.float64(x.values[i])
        total += v * v * inside[x.indices[i]]
    return total


@kernel
def row_sizes(X, rows, squared):
    """|x|^2 of these rows of X, or |x|_1."""
    sizes = np.zeros(len(rows))
    for i in range(len(rows)):
        x = row(X, rows[i])
        for e in range(length(x)):
            _, v = entry(x, e)
            sizes[i] += v * v if squared else abs(v)
    return sizes


@kernel(allocates=False)
def overwrite(target, values):
    """Write the values over those of the target, which are as many."""
    # For target[:] = values numba compiles a message with both sizes in it, which takes longer
    # than most kernels.
    for i in range(len(target)):
        target[i] = values[i]


@kernel(allocates=False)
def axpy(target, x, s):
    """target += s * x"""
    for i in range(length(x)):
        j, v = entry(x, i)
        target[j] += s * v


@kernel(allocates=False)
def is_dense(batch):
    """Whether all active features count as touched."""
    return batch.count[DENSE_ROWS] > 0


@kernel(inline=True)
def in_batch(batch, active):
    """The active features that can have a nonzero gradient in the batch."""
    if is_dense(batch):
        return active.index[: active.size[0]]
    return batch.touched[: batch.count[TOUCHED]]


@kernel(allocates=False)
def clear(batch, active):
    """Empty the batch."""
    if _whole(batch, active):
        batch.gradient[:] = 0.0
        active.untouched[:] = True
    else:
        for j in in_batch(batch, active):
            batch.gradient[j] = 0.0
            active.untouched[j] = True
        batch.gradient[-1] = 0.0
    batch.count[ENTRIES_BEFORE] = batch.count[ENTRIES]
    batch.count[:ENTRIES_BEFORE] = 0


@kernel(allocates=False)
def _whole(batch, active):
    """Whether no feature is left out: then there is no need to look up which ones are meant."""
    return is_dense(batch) and active.size[0] == len(active.index)


@kernel(allocates=False)
def descend(w, batch, active, rate):
    """w -= rate * mean gradient of the batch."""
    g, rate = batch.gradient, rate / batch.count[ROWS]
    if _whole(batch, active):
        for j in range(len(w)):
            w[j] -= rate * g[j]
    else:
        for j in in_batch(batch, active):
            w[j] -= rate * g[j]
        w[-1] -= rate * g[-1]


@kernel(allocates=False)
def descend_touched(w, offset, scale, batch, active, rate):
    """`descend` on the features that rows touched, where w + scale * offset stays as it is.

    Clears their gradients, which are then read once. Of the intercept w alone changes.
    """
    g, other_rate, rate = batch.gradient, -rate / scale, rate / batch.count[ROWS]
    other_rate /= batch.count[ROWS]
    for j in batch.touched[: batch.count[TOUCHED]]:
        w[j] -= rate * g[j]
        offset[j] -= other_rate * g[j]
        g[j] = 0.0
        active.untouched[j] = True
    w[-1] -= rate * g[-1]
    batch.count[TOUCHED] = 0


@generic
def update_moments(moments, X, rows, y, weighted, active):
    """Take these rows of X, with the weights of y if `weighted`, into the running moments.

    Dense rows go through the active features only.
    """
    return _update_sparse if is_sparse(X) else _update_dense


def _update_dense(moments, X, rows, y, weighted, active):
    total, square, m, done = moments.total, moments.square, active.size[0], 0
    moments.rows[0] += len(rows)
    while 4 * m >= X.shape[1] and done + 4 <= len(rows):
        e, f, g, h = rows[done], rows[done + 1], rows[done + 2], rows[done + 3]
        a, b, c, d = X[e], X[f], X[g], X[h]
        s = t = u = v = np.float64(1.0)
        if weighted:
            s, t, u, v = weight(y[e]), weight(y[f]), weight(y[g]), weight(y[h])
        for j in range(X.shape[1]):
            total[j] = (((total[j] + s * a[j]) + t * b[j]) + u * c[j]) + v * d[j]
            more = ((square[j] + s * a[j] * a[j]) + t * b[j] * b[j]) + u * c[j] * c[j]
            square[j] = more + v * d[j] * d[j]
        done += 4
    for r in rows[done:]:
        x, s = X[r], weight(y[r]) if weighted else np.float64(1.0)
        for j in active.index[:m]:
            total[j] += s * x[j]
            square[j] += s * x[j] * x[j]


def _update_sparse(moments, X, rows, y, weighted, active):
    total, square = moments.total, moments.square
    moments.rows[0] += len(rows)
    for r in rows:
        x, s = row(X, r), weight(y[r]) if weighted else np.float64(1.0)
        for e in range(length(x)):
            j, v = entry(x, e)
            total[j] += s * v
            square[j] += s * v * v


@generic
def update_squares(moments, X, rows, active):
    """Take these rows of X into the sums of squares; dense ones go through the active features."""
    return _squares_of_sparse if is_sparse(X) else _squares_of_dense


def _squares_of_dense(moments, X, rows, active):
    square, m, done = moments.square, active.size[0], 0
    moments.rows[0] += len(rows)
    while 4 * m >= X.shape[1] and done + 4 <= len(rows):
        a, b, c, d = X[rows[done]], X[rows[done + 1]], X[rows[done + 2]], X[rows[done + 3]]
        for j in range(X.shape[1]):
            s, t, u, v = np.float64(a[j]), np.float64(b[j]), np.float64(c[j]), np.float64(d[j])
            square[j] = (((square[j] + s * s) + t * t) + u * u) + v * v
        done += 4
    for r in rows[done:]:
        x = X[r]
        for j in active.index[:m]:
            square[j] += np.float64(x[j]) * x[j]


def _squares_of_sparse(moments, X, rows, active):
    square = moments.square
    moments.rows[0] += len(rows)
    for r in rows:
        x = row(X, r)
        for e in range(length(x)):
            j, v = entry(x, e)
            square[j] += v * v


@kernel(allocates=False)
def variance(moments, j):
    """Running variance s_j - mean_j**2 of feature j (sfsa, Remark 4.1)."""
    n = moments.rows[0]
    mean = moments.total[j] / n
    return max(moments.square[j] / n - mean * mean, 0.0)
