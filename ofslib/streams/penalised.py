"""Row streams with penalties."""

from collections.abc import Callable
from numbers import Integral, Real
from typing import ClassVar, NamedTuple

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ofslib._blas import one_blas_thread
from ofslib.kernels.grid import CHOSEN, Grid, choose, new_grid
from ofslib.kernels.rows import Block
from ofslib.streams import diagnostics
from ofslib.streams.parameters import AT_LEAST_ONE, NOT_NEGATIVE, estimator, number, one_of, param
from ofslib.streams.row_stream import RowStream, coef_and_intercept

BATCH_SIZE = param("Rows of a mini-batch.", AT_LEAST_ONE, default=25)


@estimator
class Penalised(RowStream):
    """Base of the methods that select features by an l1 penalty.

    With `k`, a grid of penalties is learned in one pass, and the model is that with the most
    features, but not more than `k`; if none has from 1 to `k`, the `k` largest coefficients of that
    with the fewest, with a warning. A subclass sets the kernels `learn`, `step` and `catch_up`,
    which `ofslib.kernels.grid` explains, and `state`: of the grid, and of arrays like its `W`.
    """

    description = (
        "Cost: O(entries) per row with one penalty, O(entries * n_penalties + p) with `k`."
    )

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

    step: ClassVar[Callable]
    catch_up: ClassVar[Callable]
    state: ClassVar[type]
    # Whether with one penalty too the model that predicts is `w` of the grid.
    chooses: ClassVar[bool] = False
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
        states = list(map(self._up_to_date, self._states))
        levels = np.array([state.grid.l1 for state in states])
        coefs = np.array([self._coefs(state)[:-1].T for state in states])
        return (levels, coefs) if len(states) > 1 else (levels[0], coefs[0])

    def _learn_block(self, state: NamedTuple, block: Block) -> int:
        with one_blas_thread():
            return super()._learn_block(state, block)

    def _new_state(self, n_features):
        chooses = self.chooses or self.k is not None
        grid = new_grid(n_features, self._penalties(), self._rows_of_a_batch, chooses)
        return self._state_of(grid)

    def _state_of(self, grid: Grid) -> NamedTuple:
        return self.state(grid, *(np.zeros_like(grid.W) for _ in self.state._fields[1:]))

    def _read_hyper(self, n_rows, **own):
        return super()._read_hyper(n_rows, **{"batch_size": self._rows_of_a_batch} | own)

    def _penalties(self) -> np.ndarray:
        """The penalties, descending; zeros if the first mini-batch sets them."""
        bounds, limits, m = self.l1_range, np.finfo(self.dtype), int(self.n_penalties)
        if self.k is None:
            return np.array([float(self.l1)])
        if bounds is None:
            return np.zeros(m, self.dtype)
        if not (
            len(bounds) == 2
            and all(isinstance(bound, Real) for bound in bounds)
            and float(limits.tiny) <= bounds[0] <= bounds[1] <= float(limits.max)
        ):
            raise ValueError(
                f"l1_range={bounds} must be two positive numbers that {self.dtype} can hold, the "
                "lesser first."
            )
        return np.geomspace(*bounds[::-1], m).astype(self.dtype)

    def _coefs(self, state: NamedTuple) -> np.ndarray:
        """Coefficients and intercepts of all penalties, shape (p + 1, m)."""
        return state.grid.W

    def _up_to_date(self, state: NamedTuple) -> NamedTuple:
        """A copy in which no feature waits, and the model is chosen."""
        copies = {name: getattr(state.grid, name).copy() for name in CHOSEN}
        state = state._replace(grid=state.grid._replace(**copies))
        self._catch_up_all(state)
        if state.grid.pending[0] and self._frozen["k"] is not None:
            choose(state.grid, self._coefs(state), int(self._frozen["k"]))
        return state

    def _catch_up_all(self, state: NamedTuple) -> None:
        """Bring all features up to date."""
        type(self).catch_up(state, state.grid.features, self._hyper_at(state))

    def _model(self, state):
        if self._frozen["k"] is None:
            return coef_and_intercept(self._coefs(self._up_to_date(state))[:, 0])
        return coef_and_intercept(self._chosen(state).w)

    def _chosen(self, state: NamedTuple) -> Grid:
        """The grid with the model of the rows so far."""
        return (self._up_to_date(state) if state.grid.pending[0] else state).grid

    def _held(self, state):
        return int(state.grid.held[0])

    def _finish(self, state):
        if self._held(state):
            with one_blas_thread():
                finite = type(self).step(state, self._hyper_at(state))
            if not finite:
                raise diagnostics.diverged(self)

    def _watch(self, at_end):
        enough = super()._watch(at_end)
        # A few rows tell nothing yet.
        if at_end or self.n_samples_seen_ >= 10 * self._rows_of_a_batch:
            diagnostics.warn_while(self, "truncated", list(map(self._truncated, self._states)))
            diagnostics.warn_while(self, "empty", diagnostics.without_features(self))
        return enough

    def _truncated(self, state: NamedTuple) -> str:
        """What to say if the model is cut to k features, or nothing."""
        if self._frozen["k"] is None or not (grid := self._chosen(state)).truncated[0]:
            return ""
        size, place = grid.truncated
        low, high = grid.l1[place], grid.l1[place - 1] if place else 1000 * grid.l1[0]
        return (
            f"{type(self).__name__} has no penalty that leaves from 1 to k={self.k} features: "
            f"shown are the {self.k} largest of the {size} coefficients with l1={low:.3g}. "
            f"l1_range=({low:.3g}, {high:.3g}) may hold such a penalty."
        )

    def _advice_if_empty(self, state):
        least = state.grid.l1[-1]
        if self._frozen["k"] is None:
            return f"Its penalty l1={self.l1:.3g} is too large, or X is zero."
        if not least:
            return (
                "No mini-batch had a gradient by its coefficients: X is zero, or a constant fits y."
            )
        return f"Its penalties are too large: give an l1_range below {least:.3g}."
