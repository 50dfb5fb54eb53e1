"""What no method can be faster than: to read the rows, and to predict each and add its gradient."""

import numpy as np

from ofslib._jit import kernel


@kernel
def read(values):
    """The sum of an array: what it costs to read it."""
    total = 0.0
    for value in values:
        total += value
    return total


@kernel
def sparse_loop(indptr, indices, data, y, w, rate):
    """Prediction and gradient of each row, least squares, and nothing else."""
    for i in range(len(y)):
        margin = 0.0
        for at in range(indptr[i], indptr[i + 1]):
            margin += w[indices[at]] * data[at]
        step = rate * (y[i] - margin)
        for at in range(indptr[i], indptr[i + 1]):
            w[indices[at]] += step * data[at]


@kernel
def dense_loop(X, y, w, rate):
    """As `sparse_loop`, of dense rows."""
    for i in range(len(y)):
        margin = 0.0
        for j in range(X.shape[1]):
            margin += w[j] * X[i, j]
        step = rate * (y[i] - margin)
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
