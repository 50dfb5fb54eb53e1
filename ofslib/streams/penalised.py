"""Row streams with penalties."""

from collections.abc import Callable
from typing import ClassVar, NamedTuple

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ofslib.kernels.penalty_grid import Path, hold, new_path
from ofslib.streams.parameters import AT_LEAST_ONE, NOT_NEGATIVE, estimator, param
from ofslib.streams.row_stream import Blocks, RowStream
from ofslib.streams.selector import one_blas_thread


@estimator
class Penalised(RowStream):
    """Base of the methods that select features by an l1 penalty.

    With `k`, a grid of penalties is learned in one pass, and the model is that with the most
    features, but not more than `k`. `fold` is then not called: a subclass sets `step_all`, a kernel
    `step_all(state, hyper)` that makes a step for all penalties with the rows that `hold` put into
    the mini-batch, and returns whether all is finite.
    """

    k: int | None = param(
        "Number of features to keep. It takes the place of `l1`: `n_penalties` penalties are "
        "learned at once, and the model with the most features, but not more than k, is shown.",
        AT_LEAST_ONE,
        None,
        default=None,
    )
    l1: float = param("Weight of the penalty |w|, if k is None.", NOT_NEGATIVE, default=1e-3)
    n_penalties: int = param(
        "Number of penalties that are learned at once.", AT_LEAST_ONE, default=200
    )
    l1_range: tuple[float, float] | list[float] | None = param(
        "Least and largest of these penalties, which are evenly spaced in the logarithm. None: "
        "from 1/1000 of the largest gradient of the first mini-batch to this gradient.",
        tuple,
        list,
        None,
        default=None,
    )

    step_all: ClassVar[Callable]
    frozen = ("k", "l1", "n_penalties", "l1_range")

    @property
    def path_(self) -> tuple[np.ndarray, np.ndarray]:
        """tuple of ndarray
        The penalties, shape (n_penalties,), and the coefficients of their models, shape
        (n_penalties, n_features_in_); learned if `k` is given."""
        check_is_fitted(self)
        if self._frozen["k"] is None:
            raise AttributeError("path_ is learned only if k is given")
        return self._path(self._state).l1.copy(), self._columns(self._state)[:-1].T.copy()

    def _show(self, data: Blocks) -> None:
        if self._path(self._state) is None:
            super()._show(data)
            return
        with one_blas_thread():
            super()._show(data)

    def _fold(self, X, y, order, hyper, margins):
        path, done = self._path(self._state), 0
        if path is None:
            return super()._fold(X, y, order, hyper, margins)
        while done < len(order):
            done = hold(path, X, y, order, done, hyper.intercept, margins)
            if path.count[0] < len(path.rows):
                break
            if not type(self).step_all(self._state, hyper):
                return done - 1
        return done

    def _new_path(self, n_features: int) -> Path:
        bounds = self.l1_range
        if bounds is not None and (len(bounds) != 2 or not 0 < bounds[0] <= bounds[1] < np.inf):
            raise ValueError(f"l1_range={bounds} must be two positive numbers, the lesser first.")
        rows = int(getattr(self, "batch_size", 1))
        return new_path(n_features, rows, int(self.n_penalties), bounds)

    def _path(self, state: NamedTuple) -> Path | None:
        """The part of the state that holds the models of all penalties, if these are learned."""
        return state if isinstance(state, Path) else getattr(state, "path", None)

    def _columns(self, state: NamedTuple) -> np.ndarray:
        """Coefficients and intercept of all penalties, shape (p + 1, n_penalties)."""
        return self._path(state).W

    def _one(self, state: NamedTuple, hyper: NamedTuple) -> np.ndarray:
        """Coefficients and intercept of the model of one penalty, shape (p + 1,)."""
        raise NotImplementedError

    def _model(self, state, hyper):
        path = self._path(state)
        w = self._one(state, hyper) if path is None else path.w
        return w[:-1].copy(), float(w[-1])


@estimator
class PenalisedBatches(Penalised):
    """Base of those that learn in mini-batches.

    A subclass sets the kernel `step`, which does for one penalty what `step_all` does for all.
    """

    about = (
        "Cost: O(entries of the row) per row with one penalty; O(p * n_penalties) per row with `k`."
    )

    batch_size: int = param("Rows of a mini-batch.", AT_LEAST_ONE, default=25)

    step: ClassVar[Callable]
    frozen = (*Penalised.frozen, "batch_size")

    def _finish(self, state, hyper):
        path = self._path(state)
        held = state.batch.count[1] if path is None else path.count[0]
        step = type(self).step if path is None else type(self).step_all
        with one_blas_thread():
            if held and not step(state, hyper):
                raise self._diverged()
