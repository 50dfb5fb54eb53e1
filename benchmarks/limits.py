"""What is measured beside methods: to read the rows, and to predict each and add its gradient.

No method is faster than to read float64 rows. The loop takes one row at a time; a method that takes
several dense rows together may be faster than it.

Sums are in any order, as in `ofslib.kernels.rows.dot`: one after the other they would wait for
each addition, and would be slower than what they limit.
"""

import numpy as np

from ofslib._jit import REORDERED_SUMS, generic, kernel


@generic(**REORDERED_SUMS)
def total(values):
    """The sum of an array."""
    return _total


def _total(values):
    found = 0.0
    for i in range(len(values)):
        found += values[i]
    return found


@generic(**REORDERED_SUMS)
def dense_margin(x, w):
    """The product of a row and w."""
    return _dense_margin


def _dense_margin(x, w):
    found = 0.0
    for j in range(len(x)):
        found += w[j] * x[j]
    return found


@generic(**REORDERED_SUMS)
def sparse_margin(indices, data, w):
    """As `dense_margin`, of a row of these entries."""
    return _sparse_margin


def _sparse_margin(indices, data, w):
    found = 0.0
    for at in range(len(indices)):
        found += w[indices[at]] * data[at]
    return found


@kernel(allocates=False)
def read(values):
    """The sum of an array: what it costs to read it."""
    return total(values)


@kernel(allocates=False)
def sparse_loop(indptr, indices, data, y, w, rate):
    """Prediction and gradient of each row, least squares, and nothing else."""
    for i in range(len(y)):
        first, last = indptr[i], indptr[i + 1]
        step = rate * (y[i] - sparse_margin(indices[first:last], data[first:last], w))
        for at in range(first, last):
            w[indices[at]] += step * data[at]


@kernel(allocates=False)
def dense_loop(X, y, w, rate):
    """As `sparse_loop`, of dense rows."""
    for i in range(len(y)):
        step = rate * (y[i] - dense_margin(X[i], w))
        for j in range(X.shape[1]):
            w[j] += step * X[i, j]


def bare_loop(X, y, rate=1e-6):
    """What is timed of the loop over these rows; gives its coefficients."""
    w = np.zeros(X.shape[1])

    def run():
        if isinstance(X, np.ndarray):
            dense_loop(X, y, w, rate)
        else:
            sparse_loop(X.indptr, X.indices, X.data, y, w, rate)
        return w

    return run
