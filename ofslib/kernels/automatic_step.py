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
from ofslib.kernels import mean_iterate
from ofslib.kernels.losses import Loss, curvature, majorant, slope, weight
from ofslib.kernels.rows import (
    ROWS,
    Moments,
    accumulate,
    axpy,
    descend,
    descend_touched,
    dots,
    in_batch,
    is_dense,
    new_moments,
    row,
    squares,
    touch,
    update_moments,
)
from ofslib.kernels.selection import PATH

# Mini-batches from one that is observed to the next, once steps are made: the norm changes slowly.
PERIOD = 4
# The same where mini-batches touch few features, so that to observe one takes longer than to learn
# it; from the mini-batch SETTLED on, when the estimate has had 64 observations to converge in.
PERIOD_IF_SPARSE, SETTLED = 16, 256
# The share of an observed mini-batch in the estimate of the norm, a mean of about the last five.
WEIGHT = 0.2
FEW = 4  # rows that are observed at a time: they are still in the processor's cache
# The share of the iterates that the mean is of: the last eighth.
LAST = 8.0
# A mean is written, and deferred anew, when its scale or the inverse of the direction's length is
# below this number: far from the least that float64 can hold, 1e-308.
TINY = 1e-100


class StepSize(NamedTuple):
    """Estimates of the mean of a x x' and of x x', of the features in the model."""

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
    """Estimates before the first row; p = 0 for one that is not used."""
    direction, image = np.zeros((2, p + 1))
    moments, inside = new_moments(max(p, 1)), np.ones(max(p, 1), bool)
    sums, counts = np.zeros((7, 1)), np.zeros((2, 1), np.int64)
    return StepSize(direction, np.ones(1), image, moments, inside, *sums, *counts)


@kernel(allocates=False)
def add_slopes(step_size, y, rows, margins, loss):
    """Add the weighted squared slopes of these rows, which have these margins."""
    for i in range(len(rows)):
        s = slope(loss, margins[i], y[rows[i]])
        step_size.slopes[0] += s * s / weight(y[rows[i]])


@kernel(allocates=False)
def observe(step_size, X, y, rows, margins, loss, batch, active, factors):
    """Add these rows of the mini-batch, which have these margins, to the estimates.

    `factors` is a buffer of a number for each.
    """
    image, direction, observed = step_size.image, step_size.direction, step_size.rows
    for r in rows:
        step_size.weight[0] += weight(y[r])
        step_size.weight_squares[0] += weight(y[r]) * weight(y[r])
        step_size.energy[0] += weight(y[r]) * squares(row(X, r), step_size.inside)
        # The first row that is not zero points, on average, where the variance is.
        has_direction = step_size.batches[0] > 0 or observed[0] > 0
        if not has_direction:
            axpy(direction, row(X, r), 1.0)
            has_direction = normalise(direction, active)
        observed[0] += has_direction
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
    """Scale v, on the active features, to length one; returns whether it is not zero."""
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
    """A step of the power iteration, if the mini-batch was observed.

    In the burn-in each mini-batch replaces the estimate of the one before.
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
    if is_dense(batch) or old == 0.0:
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
    """The mean weight of the rows observed."""
    return step_size.weight[0] / step_size.moments.rows[0]


@kernel(allocates=False)
def inequality(step_size):
    """The mean of the squared weights over the squared mean weight: 1 without weights."""
    weight = step_size.weight[0]
    return step_size.weight_squares[0] * step_size.moments.rows[0] / (weight * weight)


@kernel(allocates=False)
def measure(step_size, active):
    """Recompute the trace: the sum over the active features of their mean squares.

    Scales the direction to length one, and returns the square of the length that it had.
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
def rescale(step_size, active):
    """Scale the direction to length one, as `drop_features` and dense rows need it."""
    for j in active.index[: active.size[0]]:
        step_size.direction[j] /= step_size.size[0]
    step_size.size[0] = 1.0


@kernel(allocates=False)
def drop_features(step_size, active, dropped):
    """Update the estimates after these features were dropped."""
    rescale(step_size, active)
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
    # A sum in any order is faster; most often it is far enough from the limit.
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


@kernel(allocates=False)
def is_observed(state, hp):
    """Whether the open mini-batch is observed."""
    t = state.steps[0]
    rarely = state.iterates.deferred[0] and t >= SETTLED
    return t < hp.burn_in or t % (PERIOD_IF_SPARSE if rarely else PERIOD) == 0


@kernel(allocates=False)
def step(state, hp):
    """A step of the stable size, after the burn-in; the new iterate is added to their mean."""
    step_size, batch, active, t = state.step_size, state.batch, state.active, state.steps[0] + 1
    # The mean begins anew at maturity: from then on steps are larger and converge faster.
    weight = min(1.0, LAST / (t - hp.maturity if 0 < hp.maturity < t else t))
    if weight == 1.0 or is_dense(batch):
        write_mean(state)
    elif not state.iterates.deferred[0]:
        mean_iterate.defer(state.iterates, state.w, active)
    elif state.iterates.scale[0] < TINY or step_size.size[0] > 1.0 / TINY:
        write_mean(state)
        mean_iterate.defer(state.iterates, state.w, active)
    end_batch(step_size, batch, active, hp.burn_in)
    if t > hp.burn_in:
        move(state, hp)
    step_size.slopes[0] = 0.0
    mean_iterate.add_iterate(state.iterates, state.w, active, weight)


@kernel(allocates=False)
def write_mean(state):
    """Write the mean of the iterates, and scale the direction to length one."""
    if state.iterates.deferred[0]:
        mean_iterate.write(state.iterates, state.w, state.active)
        rescale(state.step_size, state.active)


@kernel(allocates=False)
def move(state, hp):
    """Change the coefficients by the mean gradient of the mini-batch."""
    w, batch, active, step_size = state.w, state.batch, state.active, state.step_size
    g, n = batch.gradient, batch.count[ROWS]
    stable = stable_rate(step_size, active, n, hp.loss)
    rate = rate_of_batch(step_size, batch, active, hp.loss, stable)
    if hp.intercept > 0.0:
        # Features and intercept, each at its own rate; together they are stable at half of it.
        own = intercept_rate(step_size, n, hp.loss)
        # Where heavy rows shorten the step of the features, that of the intercept shortens too:
        # else it alone would follow all rows in full.
        own *= rate / stable if stable > 0.0 else 1.0
        rate *= 0.5
        if rate > 0.0:
            g[-1] *= 0.5 * own / rate
        else:
            w[-1] -= 0.5 * own * g[-1] / n
    state.noise[0, PATH] += rate
    if state.iterates.deferred[0]:
        descend_touched(w, state.iterates.offset, state.iterates.scale[0], batch, active, rate)
    else:
        descend(w, batch, active, rate)


@kernel(allocates=False)
def drop(state, dropped, before, hp):
    """Features were dropped, before which the step of a whole mini-batch had the size `before`.

    Scales the coefficients as if all steps had been as large as they are now. A coefficient is
    about the sum of all mini-batches' gradients by it over the inverse of the step and the
    curvature in them, as with a ridge penalty. Without scaling, the late rows alone would tell
    which features stay. All have one factor, by the curvature of those that stay: by its own a rare
    feature would outgrow what is known of it. With the squared error, whose descent forgets where
    it began, there is nothing to scale.
    """
    step_size, active = state.step_size, state.active
    drop_features(step_size, active, dropped)
    for j in dropped:
        state.iterates.mean[j] = 0.0
    after = stable_rate(step_size, active, hp.batch_size, hp.loss)
    if hp.loss == Loss.squared_error or before == 0.0 or after in (0.0, before):
        return
    mean_curvature = step_size.curvature[0] / step_size.moments.rows[0]
    curved = state.steps[0] * mean_curvature * step_size.trace[0] / active.size[0]
    factor = (1.0 / before + curved) / (1.0 / after + curved)
    state.noise[0, PATH] *= after / before
    for j in active.index[: active.size[0]]:
        state.w[j] *= factor
        state.iterates.mean[j] *= factor
