"""The step size that suits the features in the model: the inverse of a spectral norm.

Each row's loss lies below a parabola that touches it at the row's margin; a is its curvature and c
the largest one. Descent with the mean gradient of b rows is stable while the step is below two over
norm + c trace / b: the norm of the mean of a x x' and the trace of that of x x', of the features in
the model. Both are estimated from some of the rows as the stream runs: the norm by the power
iteration, the trace from the mean squares.
"""

from typing import NamedTuple

import numpy as np

from ofslib._jit import kernel
from ofslib.kernels.losses import curvature, majorant
from ofslib.kernels.rows import Moments, axpy, dot, in_batch, new_moments, row, watch

# Of the later mini-batches every which is looked at, and the weight of what it shows.
EVERY, WEIGHT = 4, 0.2


class Spectrum(NamedTuple):
    """What is known of the mean of a x x' and of x x', of the features in the model."""

    direction: np.ndarray  # (p + 1,) unit vector, the estimated leading eigenvector
    image: np.ndarray  # (p + 1,) its product with the sum of a x x' over the rows being looked at
    squares: Moments
    norm: np.ndarray  # (1,) the estimated largest eigenvalue of the one
    trace: np.ndarray  # (1,) the estimated trace of the other
    bend: np.ndarray  # (1,) sum of a over all rows looked at
    residual: np.ndarray  # (1,) sum of the squared slopes of the mini-batch
    looks: np.ndarray  # (2,) int64: mini-batches looked at, rows of the one being looked at


def new_spectrum(p: int) -> Spectrum:
    """Nothing is known yet; p = 0 for one that is not used."""
    return Spectrum(
        np.zeros(p + 1),
        np.zeros(p + 1),
        new_moments(max(p, 1)),
        np.zeros(1),
        np.zeros(1),
        np.zeros(1),
        np.zeros(1),
        np.zeros(2, np.int64),
    )


@kernel
def look(spectrum, X, rows, margins, loss, active):
    """Take these rows, with these margins, into the estimate."""
    image, direction, looks = spectrum.image, spectrum.direction, spectrum.looks
    for i in range(len(rows)):
        x, a = row(X, rows[i]), majorant(loss, margins[i])
        spectrum.bend[0] += a
        if looks[0] == 0 and looks[1] == 0:
            # The first row that is not zero points, on average, where the variance is.
            axpy(direction, x, 1.0)
            if not normalise(direction, active):
                continue
        axpy(image, x, a * dot(x, direction, active))
        looks[1] += 1
    watch(spectrum.squares, X, rows)


@kernel
def normalise(v, active):
    """Give v, on the active features, length one; returns whether it is not zero."""
    size = 0.0
    for j in active.index[: active.size[0]]:
        size += v[j] * v[j]
    if size > 0.0:
        for j in active.index[: active.size[0]]:
            v[j] /= np.sqrt(size)
    return size > 0.0


@kernel
def conclude(spectrum, active, first):
    """End of a mini-batch that was looked at: one step of the power iteration.

    `first` mini-batches are looked at before the first step; what was seen until then is forgotten.
    """
    v, u, norm, looks = spectrum.direction, spectrum.image, spectrum.norm, spectrum.looks
    n = looks[1]
    if n == 0:
        return
    new = 1.0 if looks[0] < first else WEIGHT
    product = 0.0
    for j in active.index[: active.size[0]]:
        product += v[j] * u[j] / n
    norm[0] += new * (max(product, 0.0) - norm[0])
    for j in active.index[: active.size[0]]:
        v[j] = (1.0 - new) * norm[0] * v[j] + new * u[j] / n
        u[j] = 0.0
    normalise(v, active)
    spectrum.trace[0] = trace(spectrum, active)
    looks[0] += 1
    looks[1] = 0


@kernel
def trace(spectrum, active):
    """The sum over the active features of their mean squares."""
    total, squares = 0.0, spectrum.squares
    for j in active.index[: active.size[0]]:
        total += squares.square[j]
    return total / squares.rows[0]


@kernel
def forget(spectrum, active, gone):
    """The features `gone` leave the model."""
    v, left = spectrum.direction, 0.0
    for j in gone:
        v[j] = 0.0
    for j in active.index[: active.size[0]]:
        left += v[j] * v[j]
    spectrum.norm[0] *= left
    normalise(v, active)
    spectrum.trace[0] = trace(spectrum, active)


@kernel
def rate_of_batch(spectrum, batch, active, loss):
    """The largest step at which this mini-batch's own slopes do not overshoot.

    A step changes its slopes s by - rate c X X' s / n; beyond this rate their product with s falls
    below - |s|^2. Rows much heavier than most, of which the means know nothing, bind it.
    """
    square, g = 0.0, batch.gradient
    for j in in_batch(batch, active):
        square += g[j] * g[j]
    n, residual = batch.count[1], spectrum.residual[0]
    return 2.0 * n * residual / (curvature(loss) * square) if square > 0.0 else np.inf


@kernel
def stable_rate(spectrum, active, n, loss):
    """The step size for the mean gradient of n rows; 0 while all features are zero."""
    trace = curvature(loss) * spectrum.trace[0]
    norm = max(spectrum.norm[0], trace / max(active.size[0], 1)) + trace / n
    return 1.0 / norm if norm > 0.0 else 0.0
