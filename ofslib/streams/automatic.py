"""Steps in units of the rows, so that no learning rate has to be found."""

from typing import Any, ClassVar, NamedTuple

import numpy as np

from ofslib.kernels.losses import curvature
from ofslib.kernels.rows import row_sizes
from ofslib.streams.parameters import POSITIVE, estimator, one_of, param
from ofslib.streams.row_stream import Adaptive
from ofslib.streams.selector import target_and_weight

STEP = param(
    "Step size eta of the mean gradient. auto: the inverse of the largest curvature of the loss "
    "times the mean squared norm of the rows so far, with which no row overshoots; the unit of X "
    "does not matter then.",
    POSITIVE,
    one_of("auto"),
    default="auto",
)

# Positions in the array `unit` of a state: rows, the sum of their |x|^2, its mean as it is in use,
# and the largest |x|^2 of the open mini-batch
ROWS, SUM, MEAN, HEAVIEST = range(4)
# Rows that are searched at once for a heavy one.
_MOST = 1024


class Automatic:
    """What the methods share whose step may be "auto"; stands before the `RowStream`.

    With c the largest curvature of the loss, descent with single rows is stable below a step of
    2 / (c T), T the mean of |x|^2; half of this limit is taken. T is taken anew at 1, 2, 4, 8, ...
    rows. Where a mini-batch of b rows has one so heavy that its own loss could rise, as c |x|^2 / b
    times the step is above 2, the step is the largest at which it cannot; b is the number of rows
    that it has, in the last one of `fit` too. A row x of weight w counts as sqrt(w) x, as in the
    squared error: the scale of all weights does not matter then.
    """

    # Whether the mean is that of |x|^2, else of |x|_1.
    squared: ClassVar[bool] = True
    # How many times the mean a row may be, in mini-batches of one row.
    heavy: ClassVar[float] = 2.0

    def _in_units(self, hyper: NamedTuple, mean: float, heaviest: float) -> NamedTuple:
        """The hyper-parameters for rows of this mean of |x|^2, and the largest |x|^2 / (2 b)."""
        step = 1.0 / (curvature(hyper.loss) * max(mean, heaviest))
        return hyper._replace(learning_rate=step)

    def _settle(self, state: NamedTuple, mean: float) -> None:
        """Prepare for another step, and this mean of |x|^2."""

    @property
    def _automatic(self) -> bool:
        # The parameter may have changed since it last learned.
        return self._learned_with[self.step_parameter] == "auto"

    def _remedy(self):
        own = f"take {self.step_parameter}='auto'"
        return super()._remedy() if self._automatic else own

    def _read_hyper(self, n_rows: int | None, **own: Any) -> NamedTuple:
        own = {"least": 1.0} | own
        if self._automatic:
            own |= {self.step_parameter: 0.0, "least": 0.0}
        return super()._read_hyper(n_rows, **own)

    def _hyper_at(self, state):
        hyper = super()._hyper_at(state)
        if not self._automatic:
            return hyper
        mean, heaviest = state.unit[MEAN:]
        binds = heaviest > self._limit(mean)
        share = heaviest / (self.heavy * self._rows_of_a_batch) if binds else 0.0
        # Before the first row that is not zero any mean will do.
        return self._in_units(hyper, mean or 1.0, share)

    def _learn_block(self, state, block):
        if not self._automatic:
            return super()._learn_block(state, block)
        if self._held(state) >= self._rows_of_a_batch:  # it had more rows before
            self._finish(state)
        sizes, done = row_sizes(block.X, block.order, self.squared), 0
        _, weight = target_and_weight(block.y[block.order])
        if weight is not None and self.squared:
            sizes *= weight
        while done < len(sizes):
            stop = self._same_step(state, sizes, done)
            part = slice(done, stop)
            piece = block._replace(order=block.order[part], margins=block.margins[part])
            learned = super()._learn_block(state, piece)
            if learned < stop - done:
                return done + learned
            done = stop
        return done

    def _same_step(self, state, sizes, start) -> int:
        """Take the unit for the row at `start`; the place of the first row that needs another.

        It depends on the rows alone, not on the blocks that they come in.
        """
        unit, batch, held = state.unit, self._rows_of_a_batch, self._held(state)
        seen, total, mean, heaviest = int(unit[ROWS]), *unit[SUM:]
        before = mean, heaviest * (heaviest > self._limit(mean))
        if seen & (seen - 1) == 0 or mean == 0.0:
            mean = total / seen if total else sizes[start]
        heaviest, limit = max(heaviest if held else 0.0, sizes[start]), self._limit(mean)
        binds = heaviest > limit
        if (mean, heaviest * binds) != before:
            self._settle(state, mean)
        stop = start + min((1 << seen.bit_length()) - seen, _MOST)
        if binds:
            stop = min(stop, start + batch - held)
        heavier = sizes[start + 1 : stop] > max(limit, heaviest)
        if heavier.any():
            stop = start + 1 + int(np.argmax(heavier))
        stop = min(stop, len(sizes))
        if not binds:  # the rest of a mini-batch may be missing
            last = (held + stop - start) % batch
            heaviest = heaviest if last > stop - start else 0.0
            heaviest = max(heaviest, sizes[max(stop - last, start) : stop].max(initial=0.0))
        # One after the other, so that blocks do not change a bit
        unit[:] = seen + stop - start, np.cumsum([total, *sizes[start:stop]])[-1], mean, heaviest
        return stop

    def _limit(self, mean: float) -> float:
        """The |x|^2 beyond which a row of a full mini-batch binds its step."""
        return self.heavy * self._rows_of_a_batch * mean if mean > 0.0 else 0.0

    def _finish(self, state):
        if self._automatic and (held := self._held(state)):
            # Each of these rows has another share in the step than one of a full mini-batch.
            unit, limit = state.unit, self._limit(state.unit[MEAN])
            heaviest = unit[HEAVIEST] * self._rows_of_a_batch / held
            if max(limit, heaviest) != max(limit, unit[HEAVIEST]):
                self._settle(state, unit[MEAN])
            unit[HEAVIEST] = heaviest
        super()._finish(state)

    @property
    def _rows_of_a_batch(self) -> int:
        return int(getattr(self, "batch_size", 1))


@estimator
class AutomaticAdaptive(Adaptive, Automatic):
    """The same for steps per feature: the unit is the mean of |x|_1.

    What is learned from a row moves each coefficient of its by about the step, and so its margin by
    |x|_1 times it, whatever the weights: these do not count in the mean.
    """

    learning_rate: float | str = param(
        "Step size eta, by which a coefficient moves when its feature is first seen. auto: the "
        "inverse of the mean of |x|_1 over the rows so far (B-ARDA: twice that), so that the first "
        "row's own margin moves by 1; the unit of X does not matter then, but for `delta` and "
        "`alpha`.",
        POSITIVE,
        one_of("auto"),
        default="auto",
    )

    squared, heavy = False, np.inf

    def _in_units(self, hyper, mean, heaviest):
        return hyper._replace(learning_rate=1.0 / mean)
