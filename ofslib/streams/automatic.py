"""Steps in units of the rows, so that no learning rate has to be found.

With c the largest curvature of the loss, descent with single rows is stable below a step of
2 / (c T), T the mean of |x|^2; half of this limit is taken. T is taken anew at 1, 2, 4, 8, ...
rows. Where a mini-batch of b rows has one so heavy that its own loss could rise, as c |x|^2 / b
times the step is above 2, the step is the largest at which it cannot; b is the number of rows
that it has, in the last one of `fit` too. A row x of weight w counts as sqrt(w) x, as in the
squared error: the scale of all weights does not matter then.

With steps per feature the unit is the mean of |x|_1. What is learned from a row moves each
coefficient of its by about the step, and so its margin by |x|_1 times it, whatever the weights:
these do not count in the mean.

A method that has such steps sets `row_scale` and keeps an array of this name in its state. It may
define `_scaled_hyper` (the hyper-parameters for a mean) and `_rescale` (what another mean changes).
"""

from typing import NamedTuple

import numpy as np

from ofslib.kernels.losses import curvature
from ofslib.kernels.rows import row_sizes
from ofslib.streams.parameters import POSITIVE, one_of, param
from ofslib.streams.selector import target_and_weight

STEP = param(
    "Step size eta of the mean gradient. auto: the inverse of the largest curvature of the loss "
    "times the mean squared norm of the rows so far, with which no row overshoots; the unit of X "
    "does not matter then.",
    POSITIVE,
    one_of("auto"),
    default="auto",
)


class RowSizes(NamedTuple):
    """What the array `row_scale` of a state holds."""

    rows: float
    total: float  # the sum of their |x|^2 (or |x|_1, also below)
    mean: float  # in use: it is taken anew at 1, 2, 4, 8, ... rows
    heaviest: float  # of the open mini-batch


# Rows that are searched at once for a heavy one.
_MOST = 1024


class RowScale(NamedTuple):
    """What the size of a row is."""

    squared: bool = True  # |x|^2, else |x|_1
    clip_factor: float = 2.0  # how many times the mean a row may be, in mini-batches of one row


PER_FEATURE = RowScale(squared=False, clip_factor=np.inf)
AUTOMATIC_STEP_PER_FEATURE = param(
    "Step size eta, by which a coefficient moves when its feature is first seen. auto: the "
    "inverse of the mean of |x|_1 over the rows so far (B-ARDA: twice that), so that the first "
    "row's own margin moves by 1; the unit of X does not matter then, but for `delta` and "
    "`alpha`.",
    POSITIVE,
    one_of("auto"),
    default="auto",
)


def scaled_hyper(model, hyper: NamedTuple, mean: float, heaviest: float) -> NamedTuple:
    """The hyper-parameters for rows of this mean size, and the largest |x|^2 / (2 b)."""
    if not model.row_scale.squared:
        return hyper._replace(learning_rate=1.0 / mean)
    return hyper._replace(learning_rate=1.0 / (curvature(hyper.loss) * max(mean, heaviest)))


def hyper_at(model, state: NamedTuple) -> NamedTuple:
    """The hyper-parameters as the kernel reads them in this state."""
    if not model._automatic:
        return model._hyper
    _, _, mean, heaviest = RowSizes(*state.row_scale)
    is_clipped = heaviest > _limit(model, mean)
    share = heaviest / (model.row_scale.clip_factor * model._rows_of_a_batch) if is_clipped else 0.0
    # Before the first row that is not zero any mean will do.
    return model._scaled_hyper(model._hyper, mean or 1.0, share)


def learn(model, state: NamedTuple, block) -> int:
    """Learn a block, in pieces of rows that have the same step; returns how many were learned."""
    if model._held(state) >= model._rows_of_a_batch:  # it had more rows before
        prepare_last(model, state)
        model._finish(state)
    squared = model.row_scale.squared
    sizes, done = row_sizes(block.X, block.order, squared), 0
    _, weight = target_and_weight(block.y[block.order])
    if weight is not None and squared:
        sizes *= weight
    while done < len(sizes):
        stop = _same_step(model, state, sizes, done)
        part = slice(done, stop)
        piece = block._replace(order=block.order[part], margins=block.margins[part])
        learned = type(model).learn(state, piece, hyper_at(model, state))
        if learned < stop - done:
            return done + learned
        done = stop
    return done


def _same_step(model, state, sizes, start) -> int:
    """Take the unit for the row at `start`; the place of the first row that needs another.

    It depends on the rows alone, not on the blocks that they come in.
    """
    row_scale, batch, held = state.row_scale, model._rows_of_a_batch, model._held(state)
    rows, total, mean, heaviest = RowSizes(*row_scale)
    seen = int(rows)
    before = mean, heaviest * (heaviest > _limit(model, mean))
    if seen & (seen - 1) == 0 or mean == 0.0:
        mean = total / seen if total else sizes[start]
    heaviest, limit = max(heaviest if held else 0.0, sizes[start]), _limit(model, mean)
    is_clipped = heaviest > limit
    if (mean, heaviest * is_clipped) != before:
        model._rescale(state, mean)
    stop = start + min((1 << seen.bit_length()) - seen, _MOST)
    if is_clipped:
        stop = min(stop, start + batch - held)
    heavier = sizes[start + 1 : stop] > max(limit, heaviest)
    if heavier.any():
        stop = start + 1 + int(np.argmax(heavier))
    stop = min(stop, len(sizes))
    if not is_clipped:  # the rest of a mini-batch may be missing
        last = (held + stop - start) % batch
        heaviest = heaviest if last > stop - start else 0.0
        heaviest = max(heaviest, sizes[max(stop - last, start) : stop].max(initial=0.0))
    # One after the other, so that blocks do not change a bit
    total = np.cumsum([total, *sizes[start:stop]])[-1]
    row_scale[:] = RowSizes(seen + stop - start, total, mean, heaviest)
    return stop


def _limit(model, mean: float) -> float:
    """The |x|^2 beyond which a row of a full mini-batch binds its step."""
    return model.row_scale.clip_factor * model._rows_of_a_batch * mean if mean > 0.0 else 0.0


def prepare_last(model, state: NamedTuple) -> None:
    """Take the unit for the last mini-batch, which may have fewer rows than others."""
    if held := model._held(state):
        # Each of these rows has another share in the step than one of a full mini-batch.
        sizes = RowSizes(*state.row_scale)
        limit = _limit(model, sizes.mean)
        heaviest = sizes.heaviest * model._rows_of_a_batch / held
        if max(limit, heaviest) != max(limit, sizes.heaviest):
            model._rescale(state, sizes.mean)
        state.row_scale[:] = sizes._replace(heaviest=heaviest)
