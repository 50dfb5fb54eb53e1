"""What the mini-batch methods share: learning a row, and the step of the intercept."""

import numpy as np

from ofslib._jit import kernel
from ofslib.kernels.losses import curvature_at, slope, weight
from ofslib.kernels.rows import ROWS, add, dots


@kernel
def gather(batch, block, start, hp, point, support, active):
    """Add the gradients at `point` of the block's rows from `start` on, until the batch is full.

    Writes the predictions and returns the place in the block's order that was reached. With a batch
    that is not full it is the end, or that of a row which has no finite prediction.

    `point` is zero outside the features of `support`; the gradient is taken on those of `active`.
    """
    return gather_with(batch, block, start, hp, point, support, active, np.empty(4))


@kernel(allocates=False)
def gather_with(batch, block, start, hp, point, support, active, slopes):
    """As `gather`, with a buffer for four slopes."""
    X, order, size = block.X, block.order, hp.batch_size
    gradient, count, i, finite = batch.gradient, batch.count, start, True
    while finite and i < len(order) and count[ROWS] < size:
        stop = min(i + 4, i + size - count[ROWS], len(order))
        n = predict(batch, block, i, stop, hp, point, support, slopes)
        finite = n == stop
        add(batch, X, order[i:n], slopes, active)
        for r in range(n - i):
            gradient[-1] += slopes[r] * hp.intercept
        i = n
    return i


@kernel(allocates=False)
def predict(batch, block, start, stop, hp, point, support, slopes):
    """Write the predictions of the block's rows from `start` to `stop`, and the losses' slopes.

    Returns `stop`, or the place of a row which has no finite prediction.
    """
    (X, y, order, margins), n, finite = block, start, True
    dots(X, order[start:stop], point, support, margins[start:stop])
    while n < stop and finite:
        margins[n] += hp.intercept * point[-1]
        slopes[n - start] = slope(hp.loss, margins[n], y[order[n]])
        finite = np.isfinite(margins[n])
        n += finite
    for i in range(start, n):
        s, w = slopes[i - start], weight(y[order[i]])
        batch.curvature[0] += w * curvature_at(hp.loss, s / w)
        batch.curvature[2] += s * s
    batch.curvature[1] += n - start
    return n


@kernel(allocates=False)
def pace(hp, t, curvature, least=1.0):
    """How many times eta the intercept's own step 1 / (c t) is in step t; at least so many.

    `curvature` has the sum of the losses' (weighted) curvatures at all rows' margins so far, and
    the number of rows: c is their mean. With the squared error the intercept is then the mean of
    the residuals so far; with the log loss a rare class, whose losses hardly curve, needs the
    longer steps. With the step of the features, which is small where these are many, it would stay
    at 0 meanwhile; all coefficients would make up for it, and those that tell the classes apart
    would not stand out.
    """
    return max(least, 1.0 / (curvature[0] / curvature[1] * t * hp.learning_rate))


@kernel(allocates=False)
def own_step(rate, t, curvature):
    """The same, as a step, where the features have no constant one: `rate` is theirs in step t."""
    return max(rate, curvature[1] / (curvature[0] * t))
