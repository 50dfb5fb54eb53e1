"""Row streams with penalties."""

from collections.abc import Callable
from numbers import Integral, Real
from typing import ClassVar, NamedTuple

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ofslib._blas import one_blas_thread
from ofslib.kernels.penalty_grid import PENDING, PenaltyGrid, choose, hold, list_known, new_grid
from ofslib.kernels.rows import Block
from ofslib.streams import diagnostics
from ofslib.streams.parameters import AT_LEAST_ONE, NOT_NEGATIVE, estimator, number, one_of, param
from ofslib.streams.row_stream import MiniBatches, RowStream, coef_and_intercept

# What changes in a `PenaltyGrid` when nothing waits any longer.
_CHANGED = ("W", "w", "had", "coefs", "known", "features", "count", "truncated")


@estimator
class Penalised(RowStream):
    """Base of the methods that select features by an l1 penalty.

    With `k`, a grid of penalties is learned in one pass, and the model is that with the most
    features, but not more than `k`; if none has from 1 to `k`, the `k` largest coefficients of that
    with the fewest, with a warning. `fold` is then not called: a subclass sets `step_all`, a kernel
    `step_all(grid, hyper)` that makes a step for all penalties with the rows that `hold` put into
    the mini-batch, and returns whether all is finite; `late`, a kernel `late(grid, features, hyper,
    keep)` that does to some features what has waited as they did not occur; and `arrays`, how many
    arrays of the shape of the coefficients it needs beside them. For one penalty it defines
    `_new_one` and a function `coefficients(state, hyper)`, which gives these and the intercept.
    """

    k: int | None = param(
        "Number of features to keep. It takes the place of `l1`: `n_penalties` penalties are "
        "learned at once, and the model with the most features, but not more than k, is shown; if "
        "none has from 1 to k, the k largest coefficients of that with the fewest.",
        AT_LEAST_ONE,
        None,
        default=None,
    )
    l1: float = param("Weight of the penalty |w|, if k is None.", NOT_NEGATIVE, default=1e-3)
    n_penalties: int = param(
        "Penalties that are learned at once.", number(Integral, 1, 10**6), default=200
    )
    l1_range: tuple[float, float] | list[float] | None = param(
        "Least and largest of these penalties, which are evenly spaced in the logarithm. None: "
        "from g / 1000 to g, the largest gradient of the first mini-batch in which it is not zero.",
        tuple,
        list,
        None,
        default=None,
    )
    dtype: str = param(
        "In which numbers the models of these penalties are learned. float32 takes half of the "
        "time and memory. It is for rows, gradients and steps of ordinary size: what a step moves "
        "by less than 3e-8 of a coefficient is lost, and what is beyond 1e38 overflows.",
        one_of("float64", "float32"),
        default="float64",
    )

    step_all: ClassVar[Callable]
    late: ClassVar[Callable]
    coefficients: ClassVar[Callable]
    arrays: ClassVar[int] = 0
    frozen = ("k", "l1", "n_penalties", "l1_range", "dtype")

    @property
    def path_(self) -> tuple[np.ndarray, np.ndarray]:
        """tuple of ndarray
        The penalties, shape (n_penalties,), the largest first (0 before a mini-batch had a
        gradient), and the coefficients of their models, shape (n_penalties, n_features_in_);
        learned if `k` is given. With more than two classes both
        have a first axis for these."""
        check_is_fitted(self)
        if self._frozen["k"] is None:
            raise AttributeError("path_ is learned only if k is given")
        grids = map(self._up_to_date, self._states)
        paths = [(grid.l1, self._columns(grid)[:-1].T) for grid in grids]
        levels, coefs = (np.array(parts) for parts in zip(*paths, strict=True))
        return (levels, coefs) if len(paths) > 1 else (levels[0], coefs[0])

    def _learn_block(self, state: NamedTuple, block: Block) -> int:
        if not isinstance(state, PenaltyGrid):
            return super()._learn_block(state, block)
        done, hp = 0, self._hyper_at(state)
        with one_blas_thread():
            while done < len(block.order):
                done = hold(state, block, done, hp.intercept)
                if state.held[0] < len(state.rows):
                    break
                if not type(self).step_all(state, hp):
                    return done - 1
        return done

    def _new_one(self, n_features: int) -> NamedTuple:
        """The state before the first data, if there is one penalty."""
        raise NotImplementedError

    def _new_state(self, n_features):
        if self.k is None:
            return self._new_one(n_features)
        bounds, limits = self.l1_range, np.finfo(self.dtype)
        if bounds is not None and not (
            len(bounds) == 2
            and all(isinstance(bound, Real) for bound in bounds)
            and float(limits.tiny) <= bounds[0] <= bounds[1] <= float(limits.max)
        ):
            raise ValueError(
                f"l1_range={bounds} must be two positive numbers that {self.dtype} can hold, the "
                "lesser first."
            )
        rows = int(getattr(self, "batch_size", 1))
        return new_grid(n_features, rows, int(self.n_penalties), bounds, self.arrays, self.dtype)

    def _up_to_date(self, grid: PenaltyGrid) -> PenaltyGrid:
        """The grid in which no feature waits, and the model is chosen: a copy of what changes."""
        grid = grid._replace(**{name: getattr(grid, name).copy() for name in _CHANGED})
        type(self).late(grid, list_known(grid), self._hyper_at(grid), True)
        if grid.count[PENDING]:
            choose(grid, self._columns(grid), self._frozen["k"])
        return grid

    def _truncated(self, grid: NamedTuple) -> str:
        """What to say if the model is cut to k features, or nothing."""
        if not isinstance(grid, PenaltyGrid) or not grid.truncated[0]:
            return ""
        size, place = grid.truncated
        low, high = grid.l1[place], grid.l1[place - 1] if place else 1000 * grid.l1[0]
        return (
            f"{type(self).__name__} has no penalty that leaves from 1 to k={self.k} features: "
            f"shown are the {self.k} largest of the {size} coefficients with l1={low:.3g}. "
            f"l1_range=({low:.3g}, {high:.3g}) may hold such a penalty."
        )

    def _advice_if_empty(self, state):
        if isinstance(state, PenaltyGrid) and not state.l1[-1]:
            return (
                "No mini-batch had a gradient by its coefficients: X is zero, or a constant fits y."
            )
        if isinstance(state, PenaltyGrid):
            return f"Its penalties are too large: give an l1_range below {state.l1[-1]:.3g}."
        return f"Its penalty l1={self.l1:.3g} is too large, or X is zero."

    def _columns(self, grid: PenaltyGrid) -> np.ndarray:
        """Coefficients and intercept of all penalties, shape (p + 1, n_penalties)."""
        return grid.W

    def _watch(self, at_end):
        super()._watch(at_end)
        # A few rows tell nothing yet.
        if at_end or self.n_samples_seen_ >= 10 * getattr(self, "batch_size", 1):
            diagnostics.warn_while(
                self, "truncated", [self._truncated(self._newest(one)) for one in self._states]
            )
            diagnostics.warn_while(self, "empty", diagnostics.without_features(self))

    def _newest(self, state: NamedTuple) -> NamedTuple:
        """The state with the model that is shown."""
        pending = isinstance(state, PenaltyGrid) and state.count[PENDING]
        return self._up_to_date(state) if pending else state

    def _model(self, state):
        if isinstance(state, PenaltyGrid):
            return coef_and_intercept(self._newest(state).w)
        return coef_and_intercept(type(self).coefficients(state, self._hyper_at(state)))


@estimator
class PenalisedBatches(Penalised, MiniBatches):
    """Base of those that learn in mini-batches: `step` for one penalty, `step_all` for all."""

    about = "Cost: O(entries) per row with one penalty, O(entries * n_penalties + p) with `k`."

    frozen = ("batch_size",)

    def _held(self, state):
        return int(state.held[0]) if isinstance(state, PenaltyGrid) else super()._held(state)

    def _finish(self, state):
        if not isinstance(state, PenaltyGrid):
            super()._finish(state)
        elif state.held[0]:
            with one_blas_thread():
                finite = type(self).step_all(state, self._hyper_at(state))
            if not finite:
                raise diagnostics.diverged(self)
