"""Truncated gradient: Langford, Li and Zhang 2009, with mini-batches.

Gradient descent; after every `period` steps, coefficients of size at most `theta` move towards
zero by period * eta * l1.
"""

import numpy as np

from ofslib.kernels.fobos import Hyper, fold, new_proximal, settled, step, step_all
from ofslib.kernels.losses import CLASSIFICATION_LOSSES
from ofslib.streams.parameters import AT_LEAST_ONE, POSITIVE, estimator, one_of, param
from ofslib.streams.penalised import PenalisedBatches
from ofslib.streams.row_stream import RowClassifier, RowRegressor


@estimator
class TruncatedGradient(PenalisedBatches):
    """Truncated gradient."""

    learning_rate: float = param(0.01, "Step size eta of a mini-batch's mean gradient.", POSITIVE)
    theta: float | None = param(
        None, "Largest coefficient that is truncated; None: all are.", POSITIVE, None
    )
    period: int = param(10, "Steps K between two truncations.", AT_LEAST_ONE)
    batch_size: int = param(1, "Rows of a mini-batch; the paper takes 1.", AT_LEAST_ONE)

    fold, step, step_all, hyper = fold, step, step_all, Hyper
    frozen = (*PenalisedBatches.frozen, "learning_rate", "theta", "period")

    def _init(self, n_features):
        return new_proximal(n_features) if self.k is None else self._new_path(n_features)

    def _hyper(self, n_rows):
        theta = np.inf if self.theta is None else self.theta
        return super()._hyper(n_rows, factor=1.0, theta=theta)

    def _one(self, state, hyper):
        return settled(state, hyper)


@estimator
class TruncatedGradientClassifier(TruncatedGradient, RowClassifier):
    """Truncated gradient for two classes (Langford et al. 2009)."""

    loss: str = param("log_loss", "Name of the loss.", one_of(*CLASSIFICATION_LOSSES))


@estimator
class TruncatedGradientRegressor(TruncatedGradient, RowRegressor):
    """Truncated gradient for regression (Langford et al. 2009)."""

    loss: str = param("squared_error", "Half the squared error.", one_of("squared_error"))
