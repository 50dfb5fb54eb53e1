"""Truncated gradient: Langford, Li and Zhang 2009, (4) to (6), with mini-batches.

for mini-batch t = 1, 2, ...:
    w <- w - eta * mean gradient
    if t is a multiple of the period K:
        w <- soft(w, K eta l1), unless |w| > theta                              `fobos`
"""

import numpy as np

from ofslib.kernels.fobos import Hyper, catch_up, learn, new_state, step
from ofslib.streams.automatic import STEP, RowScale
from ofslib.streams.parameters import AT_LEAST_ONE, POSITIVE, estimator, param
from ofslib.streams.penalised import Penalised
from ofslib.streams.row_stream import RowClassifier, RowRegressor


@estimator
class TruncatedGradient(Penalised):
    """Truncated gradient."""

    sources = "langford2009sparse"
    description = (
        "With a small `k` the features are those that the last rows moved most, whatever the step: "
        "take a `batch_size` of 25 or more. "
    ) + Penalised.description
    example = """
        >>> model = {name}(k=3, batch_size=100, period=1, n_passes=10, random_state=0)
        >>> model.fit(X, y).support_
        array([ 9, 19, 29])
    """

    learning_rate: float | str = STEP
    theta: float | None = param(
        "Largest coefficient that is truncated; None: all are.", POSITIVE, None, default=None
    )
    period: int = param("Steps K between two truncations.", AT_LEAST_ONE, default=10)
    batch_size: int = param("Rows of a mini-batch; the paper takes 1.", AT_LEAST_ONE, default=1)

    learn, step, catch_up, hyper = learn, step, catch_up, Hyper
    ranks = False
    _state_of, row_scale = staticmethod(new_state), RowScale()
    frozen = ("learning_rate", "theta", "period", "batch_size")

    def _read_hyper(self, n_rows):
        theta = np.inf if self.theta is None else self.theta
        return super()._read_hyper(n_rows, factor=1.0, theta=theta)

    def _rescale(self, state, mean):
        self._catch_up_all(state)

    def _advice_if_empty(self, state):
        if self.k is not None and (least := state.grid.l1[-1]):
            return (
                f"With k a model is chosen after each truncation, every period={self.period} "
                f"mini-batches; there were {state.grid.steps[0]}. Give a smaller period or "
                f"batch_size, more rows, or an l1_range below {least:.3g}."
            )
        return super()._advice_if_empty(state)


@estimator
class TruncatedGradientClassifier(RowClassifier, TruncatedGradient):
    """Truncated gradient for classification (Langford et al. 2009)."""


@estimator
class TruncatedGradientRegressor(RowRegressor, TruncatedGradient):
    """Truncated gradient for regression (Langford et al. 2009)."""
