"""Steps in units of the rows, so that no learning rate has to be found."""

from typing import Any, NamedTuple

import numpy as np

from ofslib.kernels.losses import curvature
from ofslib.kernels.rows import squared_norms
from ofslib.streams.parameters import POSITIVE, one_of, param

STEP = param(
    "Step size eta of the mean gradient. auto: the inverse of the largest curvature of the loss "
    "times the largest squared norm of a row so far, with which no row overshoots; the unit of X "
    "does not matter then.",
    POSITIVE,
    one_of("auto"),
    default="auto",
)


class Automatic:
    """What the methods share whose step may be "auto"; stands before the `RowStream`.

    The step is then taken from R, the largest squared norm |x|^2 of a row so far: with c the largest
    curvature of the loss, each row's loss has a gradient of Lipschitz constant c R, and with a step
    of 1 / (c R) no row's own loss can rise by its step. (With it averaged descent converges: Bach and
    Moulines, Non-strongly-convex smooth stochastic approximation, NIPS 2013.) A state holds R in
    `unit`, and a subclass defines `_in_units`, and `_settle` if it holds what depends on R.
    """

    def _in_units(self, hyper: NamedTuple, unit: float) -> NamedTuple:
        """The hyper-parameters for rows of at most this squared norm."""
        return hyper._replace(learning_rate=1.0 / (curvature(hyper.loss) * unit))

    def _settle(self, state: NamedTuple, unit: float) -> None:
        """Prepare for this unit."""

    @property
    def _automatic(self) -> bool:
        return getattr(self, self.step_parameter) == "auto"

    def _read_hyper(self, n_rows: int | None, **own: Any) -> NamedTuple:
        own = {"least": 1.0} | own
        if self._automatic:
            own |= {self.step_parameter: 0.0, "least": 0.0}
        return super()._read_hyper(n_rows, **own)

    def _hyper_at(self, state):
        hyper = super()._hyper_at(state)
        # Before the first row that is not zero any unit will do.
        return self._in_units(hyper, state.unit[0] or 1.0) if self._automatic else hyper

    def _learn_block(self, state, block):
        if not self._automatic:
            return super()._learn_block(state, block)
        sizes, done, n = squared_norms(block.X, block.order), 0, len(block.order)
        while done < n:
            if sizes[done] > state.unit[0]:
                self._settle(state, sizes[done])
                state.unit[0] = sizes[done]
            larger = sizes[done:] > state.unit[0]
            stop = done + int(np.argmax(larger)) if larger.any() else n
            part = slice(done, stop)
            block_part = block._replace(order=block.order[part], margins=block.margins[part])
            learned = super()._learn_block(state, block_part)
            if learned < stop - done:
                return done + learned
            done = stop
        return n
