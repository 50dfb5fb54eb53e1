"""Columns of a data matrix as they are learned from: one after the other, on one scale."""

import math

import numpy as np

from ofslib._jit import kernel

# Rows of which columns are copied at once: what of them comes into the processor's cache with one
# column is still there for the next ones.
_ROWS = 64


@kernel
def copy_columns(X, order, out):
    """Write the columns `order` of X into the rows of `out`."""
    for start in range(0, out.shape[1], _ROWS):
        for c in range(len(order)):
            for i in range(start, min(start + _ROWS, out.shape[1])):
                out[c, i] = X[i, order[c]]


@kernel
def short_sum(v):
    """The sum of up to 128 numbers, of each eighth one by itself."""
    n, total = len(v), 0.0
    if n >= 8:
        a, b, c, d, e, f, g, h = v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7]
        for i in range(8, n - n % 8, 8):
            a, b, c, d = a + v[i], b + v[i + 1], c + v[i + 2], d + v[i + 3]
            e, f, g, h = e + v[i + 4], f + v[i + 5], g + v[i + 6], h + v[i + 7]
        total = ((a + b) + (c + d)) + ((e + f) + (g + h))
    for i in range(n - n % 8, n):
        total += v[i]
    return total


@kernel
def pairwise_sum(v):
    """The sum of all numbers, as the sum of two halves; in NumPy's order, so with its rounding."""
    length, right, left_sum = np.empty(64, np.int64), np.zeros(64, np.bool_), np.empty(64)
    depth, start, length[0] = 0, 0, len(v)
    while True:
        while length[depth] > 128:
            half = length[depth] // 2
            depth += 1
            length[depth], right[depth] = half - half % 8, False
        total = short_sum(v[start : start + length[depth]])
        start += length[depth]
        while right[depth]:
            depth -= 1
            total = left_sum[depth] + total
        if depth == 0:
            return total
        left_sum[depth - 1], right[depth] = total, True
        length[depth] = length[depth - 1] - length[depth]


@kernel
def standardise(values, centre, shift, scale):
    """Scale each row to mean square 1, after its mean was subtracted if asked for.

    Writes what was subtracted, and by what was then divided; 0 for a constant.
    """
    n = values.shape[1]
    squares = np.empty(n)
    for c in range(len(values)):
        v, most = values[c], np.uint64(0)
        for i in range(n):
            # Whole numbers are in the same order, and compared several at once.
            most = max(most, np.float64(abs(v[i])).view(np.uint64))
        largest = np.uint64(most).view(np.float64)
        # By a power of two, which changes no digit, lest the sum, or the smallest of squares, be
        # lost.
        unit = math.ldexp(1.0, min(max(math.frexp(largest)[1], -1000), 1000))
        inverse = 1.0 / unit
        largest /= unit
        for i in range(n):
            v[i] *= inverse
        mean = pairwise_sum(v) / n if centre else 0.0
        divisor = largest if largest > 0.0 else 1.0
        for i in range(n):
            v[i] = (v[i] - mean) / divisor
            squares[i] = v[i] * v[i]
        root = np.sqrt(pairwise_sum(squares) / n)
        # A constant leaves rounding errors behind.
        if root <= 16 * 2.0**-52:
            root = 0.0
        divisor = root if root > 0.0 else 1.0
        for i in range(n):
            v[i] /= divisor
        shift[c], scale[c] = mean * unit, root * largest * unit
