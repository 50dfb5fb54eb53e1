"""Rows of a data matrix, dense or sparse, behind one set of verbs.

A dense matrix is a C-ordered float64 array and its row an array; a sparse one is a `CSR` and its
row a `SparseRow`. Kernels are written once with the verbs below.
"""

from typing import NamedTuple

import numpy as np

from ofslib._jit import REORDERED_SUMS, generic, kernel, kind


class CSR(NamedTuple):
    """Compressed sparse rows."""

    data: np.ndarray  # (nnz,) float64
    indices: np.ndarray  # (nnz,) uint32: numba need not test for negative ones
    indptr: np.ndarray  # (n + 1,) int64


class SparseRow(NamedTuple):
    """The nonzero entries of one row."""

    values: np.ndarray  # (m,) float64
    indices: np.ndarray  # (m,) uint32


class Active(NamedTuple):
    """The features that are still in the model."""

    index: np.ndarray  # (p,) uint32; the first `size[0]` are in the model, in ascending order
    size: np.ndarray  # (1,) int64
    fresh: np.ndarray  # (p,) bool: in the model and not yet touched by the open mini-batch
    cut: np.ndarray  # (1,) the importance at which the last pruning cut


class Batch(NamedTuple):
    """The gradient of the mini-batch that is being filled.

    Rows can thus be shown in blocks of any size without changing the result.
    """

    gradient: np.ndarray  # (p + 1,) sum over rows of slope * x; the last entry is the intercept's
    touched: np.ndarray  # (p + 1,) uint32; `count[0]` active features of these (sparse) rows
    count: np.ndarray  # (3,) int64: touched features, rows, dense rows


class Moments(NamedTuple):
    """Sums from which the running variance of each feature follows."""

    rows: np.ndarray  # (1,) int64
    total: np.ndarray  # (p,) sum of x, or (1,) when not needed
    square: np.ndarray  # (p,) sum of x**2, or (1,)


def new_active(p: int, size: int | None = None) -> Active:
    """All of `p` features in the model, or none with `size=0`."""
    size = p if size is None else size
    index = np.arange(p, dtype=np.uint32)
    return Active(index, np.array([size]), np.full(p, size > 0), np.zeros(1))


def new_batch(p: int) -> Batch:
    """An empty mini-batch."""
    return Batch(np.zeros(p + 1), np.zeros(p + 1, np.uint32), np.zeros(3, np.int64))


def new_moments(p: int) -> Moments:
    """Moments of no rows."""
    return Moments(np.zeros(1, np.int64), np.zeros(p), np.zeros(p))


def is_sparse(x) -> bool:
    """Whether `x` (a value or a numba type) is sparse."""
    return kind(x) in (CSR, SparseRow)


@generic
def row(X, i):
    """Row i of X."""
    return _sparse_row if is_sparse(X) else _dense_row


def _dense_row(X, i):
    return X[i]


def _sparse_row(X, i):
    start, stop = X.indptr[i], X.indptr[i + 1]
    return SparseRow(X.data[start:stop], X.indices[start:stop])


@generic
def length(x):
    """How many entries `entry` gives of the row x."""
    return _sparse_length if is_sparse(x) else _dense_length


def _dense_length(x):
    return x.shape[0]


def _sparse_length(x):
    return x.values.shape[0]


@generic
def entry(x, i):
    """The i-th entry of the row x: its feature and its value (which may be zero)."""
    return _sparse_entry if is_sparse(x) else _dense_entry


def _dense_entry(x, i):
    return i, x[i]


def _sparse_entry(x, i):
    return x.indices[i], x.values[i]


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


@generic
def add(batch, x, slope, active):
    """Add slope * x, on the active features, to the gradient of the batch."""
    return _sparse_add if is_sparse(x) else _dense_add


def _dense_add(batch, x, slope, active):
    gradient, m = batch.gradient, active.size[0]
    batch.count[1] += 1
    batch.count[2] += 1
    if slope == 0.0:
        return
    if 4 * m < x.shape[0]:
        for a in range(m):
            j = active.index[a]
            gradient[j] += slope * x[j]
    else:
        for j in range(x.shape[0]):
            gradient[j] += slope * x[j]


def _sparse_add(batch, x, slope, active):
    batch.count[1] += 1
    if slope == 0.0:
        return
    touched = batch.count[0]
    for i in range(x.values.shape[0]):
        j = x.indices[i]
        # Without branches, which a processor could not foresee here. What a feature outside the
        # model gathers is never read.
        batch.touched[touched] = j
        touched += active.fresh[j]
        active.fresh[j] = False
        batch.gradient[j] += slope * x.values[i]
    batch.count[0] = touched


@kernel
def in_batch(batch, active):
    """The active features that can have a nonzero gradient in the batch."""
    if batch.count[2] > 0:
        return active.index[: active.size[0]]
    return batch.touched[: batch.count[0]]


@kernel
def clear(batch, active):
    """Empty the batch."""
    for j in in_batch(batch, active):
        batch.gradient[j] = 0.0
        active.fresh[j] = True
    batch.gradient[-1] = 0.0
    batch.count[:] = 0


@generic
def watch(moments, x):
    """Take x into the running moments."""
    return _sparse_watch if is_sparse(x) else _dense_watch


def _dense_watch(moments, x):
    moments.rows[0] += 1
    for j in range(x.shape[0]):
        moments.total[j] += x[j]
        moments.square[j] += x[j] * x[j]


def _sparse_watch(moments, x):
    moments.rows[0] += 1
    for i in range(x.values.shape[0]):
        j, value = x.indices[i], x.values[i]
        moments.total[j] += value
        moments.square[j] += value * value


@kernel
def variance(moments, j):
    """Running variance s_j - mean_j**2 of feature j (sfsa, Remark 4.1)."""
    n = moments.rows[0]
    mean = moments.total[j] / n
    return max(moments.square[j] / n - mean * mean, 0.0)
