"""The step size that suits the features in the model: the inverse of a Lipschitz constant.

Each row's loss lies below a parabola that touches it at the row's margin; a is its curvature and c
the largest one. Descent with the mean gradient of b rows is stable while the step is below two over
norm + c trace / b: the norm of the mean of a x x' and the trace of that of x x', of the features in
the model. Both are estimated from some of the rows as the stream runs: the norm by the power
iteration, the trace from the mean squares. A row x of weight w counts as sqrt(w) x. The trace
bounds the noise of the mean gradient, whose variance grows with w^2: it is multiplied by the mean
of w^2 over the squared mean of w.
"""

from typing import NamedTuple

import numpy as np

from ofslib._jit import REORDERED_SUMS, generic, kernel
from ofslib.kernels.losses import curvature, majorant, slope, weight
from ofslib.kernels.rows import (
    ROWS,
    Moments,
    accumulate,
    axpy,
    dots,
    in_batch,
    new_moments,
    row,
    squares,
    swept,
    touch,
    update_moments,
)

# Once steps are made, only every so many mini-batches are observed, and count with this weight;
# where each touches few features, fewer from the mini-batch SETTLED on.
PERIOD, WEIGHT = 4, 0.2
RARELY, SETTLED = 16, 256
FEW = 4  # rows that are observed at a time: they are still in the processor's cache


class StepSize(NamedTuple):
    """What is known of the mean of a x x' and of x x', of the features in the model."""

    direction: np.ndarray  # (p + 1,) the estimated leading eigenvector
    size: np.ndarray  # (1,) its length
    image: np.ndarray  # (p + 1,) its product with the sum of a x x' over the open mini-batch
    moments: Moments  # rows observed, and the weighted sums of their entries and squares
    inside: np.ndarray  # (p,) bool: in the model
    energy: np.ndarray  # (1,) the sum of the weighted squares of these
    norm: np.ndarray  # (1,) the estimated largest eigenvalue of the one
    trace: np.ndarray  # (1,) the estimated trace of the other
    curvature: np.ndarray  # (1,) sum of a over all rows observed
    slopes: np.ndarray  # (1,) sum of the weighted squared slopes of the mini-batch
    weight: np.ndarray  # (1,) sum of the weights of all rows observed
    weight_squares: np.ndarray  # (1,) sum of their squares
    batches: np.ndarray  # (1,) int64: mini-batches observed
    rows: np.ndarray  # (1,) int64: rows observed of the open mini-batch

    def mean_row(self) -> np.ndarray:
        """The weighted mean of the rows observed."""
        return self.moments.total / max(self.weight[0], np.finfo(float).tiny)


def new_step_size(p: int) -> StepSize:
    """Nothing is known yet; p = 0 for one that is not used."""
    direction, image = np.zeros((2, p + 1))
    moments, inside = new_moments(max(p, 1)), np.ones(max(p, 1), bool)
    sums, counts = np.zeros((7, 1)), np.zeros((2, 1), np.int64)
    return StepSize(direction, np.ones(1), image, moments, inside, *sums, *counts)


@kernel(allocates=False)
def add_slopes(step_size, y, rows, margins, loss):
    """Take in the slopes of these rows, with these margins."""
    for i in range(len(rows)):
        s = slope(loss, margins[i], y[rows[i]])
        step_size.slopes[0] += s * s / weight(y[rows[i]])


@kernel(allocates=False)
def observe(step_size, X, y, rows, margins, loss, batch, active, factors):
    """Take these rows of the mini-batch, with these margins, into the estimate.

    `factors` takes a number for each; what it holds says nothing.
    """
    image, direction, observed = step_size.image, step_size.direction, step_size.rows
    for r in rows:
        step_size.weight[0] += weight(y[r])
        step_size.weight_squares[0] += weight(y[r]) * weight(y[r])
        step_size.energy[0] += weight(y[r]) * squares(row(X, r), step_size.inside)
        # The first row that is not zero points, on average, where the variance is.
        known = step_size.batches[0] > 0 or observed[0] > 0
        if not known:
            axpy(direction, row(X, r), 1.0)
            known = normalise(direction, active)
        observed[0] += known
    update_moments(step_size.moments, X, rows, y, True, active)
    dots(X, rows, direction, active, factors)
    for i, r in enumerate(rows):
        a = majorant(loss, margins[i])
        step_size.curvature[0] += a
        factors[i] = weight(y[r]) * a * factors[i] / step_size.size[0]
        if slope(loss, margins[i], y[r]) == 0.0:
            touch(batch, row(X, r), active)
    accumulate(image, X, rows, factors, active)


@kernel(allocates=False)
def normalise(v, active):
    """Give v, on the active features, length one; returns whether it is not zero."""
    square = 0.0
    for j in active.index[: active.size[0]]:
        square += v[j] * v[j]
    shorten(v, active, square)
    return square > 0.0


@kernel(allocates=False)
def shorten(v, active, square):
    """Divide v, the sum of whose squares is `square`, by its length, unless this is 0."""
    for j in active.index[: active.size[0] if square > 0.0 else 0]:
        v[j] /= np.sqrt(square)


@kernel(allocates=False)
def end_batch(step_size, batch, active, burn_in):
    """End of a mini-batch that was observed: one step of the power iteration.

    What was seen before is forgotten in the mini-batches of the burn-in, before the first step.
    """
    v, u, norm, n = step_size.direction, step_size.image, step_size.norm, step_size.rows[0]
    if n == 0:
        return
    new, size = 1.0 if step_size.batches[0] < burn_in else WEIGHT, step_size.size
    product, square = 0.0, 0.0
    for j in in_batch(batch, active):
        product += v[j] * u[j] / n
        square += u[j] * u[j]
    product /= size[0]
    norm[0] += new * (max(product, 0.0) - norm[0])
    old = (1.0 - new) * norm[0]
    if swept(batch) or old == 0.0:
        # Rows that have nothing in common with the direction leave it as it is.
        for j in active.index[: active.size[0] if square > 0.0 else 0]:
            v[j] = old / size[0] * v[j] + new * u[j] / n
            u[j] = 0.0
        size[0] = 1.0
        measure(step_size, active)
    else:
        # The same over `old`: only touched entries change. The length follows from the products.
        ratio = new / (old * n)
        for j in in_batch(batch, active):
            v[j] += ratio * size[0] * u[j]
            u[j] = 0.0
        size[0] *= np.sqrt(1.0 + 2.0 * ratio * n * product + ratio * ratio * square)
        step_size.trace[0] = step_size.energy[0] / step_size.moments.rows[0]
    step_size.batches[0] += 1
    step_size.rows[0] = 0


@kernel(allocates=False)
def mean_weight(step_size):
    """That of the rows observed."""
    return step_size.weight[0] / step_size.moments.rows[0]


@kernel(allocates=False)
def inequality(step_size):
    """The mean of the squared weights over the squared mean weight: 1 without weights."""
    weight = step_size.weight[0]
    return step_size.weight_squares[0] * step_size.moments.rows[0] / (weight * weight)


@kernel(allocates=False)
def measure(step_size, active):
    """Take the trace anew, the sum over the active features of their mean squares.

    Gives the direction length one, and returns the square of the length that it had.
    """
    v, moments, square, total = step_size.direction, step_size.moments, 0.0, 0.0
    for j in active.index[: active.size[0]]:
        square += v[j] * v[j]
        total += moments.square[j]
    shorten(v, active, square)
    step_size.energy[0] = total
    step_size.trace[0] = total / moments.rows[0]
    return square


@kernel(allocates=False)
def settle(step_size, active):
    """Give the direction length one, as `drop_features` and dense rows ask for."""
    for j in active.index[: active.size[0]]:
        step_size.direction[j] /= step_size.size[0]
    step_size.size[0] = 1.0


@kernel(allocates=False)
def drop_features(step_size, active, dropped):
    """The features `dropped` leave the model."""
    settle(step_size, active)
    for j in dropped:
        step_size.direction[j] = 0.0
        step_size.inside[j] = False
    step_size.norm[0] *= measure(step_size, active)


@kernel(allocates=False)
def rate_of_batch(step_size, batch, active, loss, rate):
    """The rate, or the largest one at which this mini-batch's own slopes do not overshoot.

    A step changes its slopes s by - rate c X X' s / n; beyond that one their product with s falls
    below - |s|^2. Rows much heavier than most, of which the means know nothing, bind it.
    """
    g, features, square = batch.gradient, in_batch(batch, active), 0.0
    most = 2.0 * batch.count[ROWS] * step_size.slopes[0]
    # Most often far from it, which a sum in any order tells, and that is the faster one.
    if most > 1.001 * rate * curvature(loss) * about_squares(g, features):
        return rate
    for j in features:
        square += g[j] * g[j]
    return min(rate, most / (curvature(loss) * square)) if square > 0.0 else rate


@generic(**REORDERED_SUMS)
def about_squares(v, places):
    """The sum of the squares of v at these places."""
    return _about_squares


def _about_squares(v, places):
    total = 0.0
    for j in places:
        total += v[j] * v[j]
    return total


@kernel(allocates=False)
def stable_rate(step_size, active, n, loss):
    """The step size for the mean gradient of n rows; 0 while all features are zero."""
    trace = curvature(loss) * step_size.trace[0]
    norm = max(step_size.norm[0], trace / max(active.size[0], 1))
    norm += inequality(step_size) * trace / n if trace > 0.0 else 0.0
    return 1.0 / norm if norm > 0.0 else 0.0


@kernel(allocates=False)
def intercept_rate(step_size, n, loss):
    """The same for the intercept, the feature of which is 1 in every row."""
    noise = inequality(step_size) / n
    return 1.0 / (curvature(loss) * mean_weight(step_size) * (1.0 + noise))
