"""Truncated gradient: Langford, Li and Zhang 2009, with mini-batches.

Gradient descent; after every `period` steps, coefficients of size at most `theta` move towards
zero by period * eta * l1.
"""

import numpy as np

from ofslib.kernels.fobos import (
    Hyper,
    coefficients,
    fold,
    late,
    new_state,
    settle,
    step,
    step_all,
)
from ofslib.kernels.penalty_grid import PenaltyGrid
from ofslib.streams.automatic import STEP, Automatic
from ofslib.streams.parameters import AT_LEAST_ONE, POSITIVE, estimator, param
from ofslib.streams.penalised import PenalisedBatches
from ofslib.streams.row_stream import RowClassifier, RowRegressor


@estimator
class TruncatedGradient(Automatic, PenalisedBatches):
    """Truncated gradient."""

    about = (
        "With a small `k` the features are those that the last rows moved most, whatever the step: "
        "take a `batch_size` of 25 or more. "
    ) + PenalisedBatches.about

    learning_rate: float | str = STEP
    theta: float | None = param(
        "Largest coefficient that is truncated; None: all are.", POSITIVE, None, default=None
    )
    period: int = param("Steps K between two truncations.", AT_LEAST_ONE, default=10)
    batch_size: int = param("Rows of a mini-batch; the paper takes 1.", AT_LEAST_ONE, default=1)

    fold, step, step_all, late, hyper = fold, step, step_all, late, Hyper
    coefficients, _new_one = coefficients, staticmethod(new_state)
    frozen = ("learning_rate", "theta", "period")

    def _read_hyper(self, n_rows):
        theta = np.inf if self.theta is None else self.theta
        return super()._read_hyper(n_rows, factor=1.0, theta=theta)

    def _advice_if_empty(self, state):
        if isinstance(state, PenaltyGrid) and state.l1[-1]:
            return (
                f"With k a model is chosen after each truncation, every period={self.period} "
                f"mini-batches; there were {state.steps[0]}. Give a smaller period or batch_size, "
                f"more rows, or an l1_range below {state.l1[-1]:.3g}."
            )
        return super()._advice_if_empty(state)

    def _settle(self, state, mean):
        settle(state, self._hyper_at(state))


@estimator
class TruncatedGradientClassifier(RowClassifier, TruncatedGradient):
    """Truncated gradient for classification (Langford et al. 2009)."""


@estimator
class TruncatedGradientRegressor(RowRegressor, TruncatedGradient):
    """Truncated gradient for regression (Langford et al. 2009)."""
