"""Stochastic iterative hard thresholding: Fan et al. 2018; TSGD of the dissertation's chapter 5.

A gradient step, after each of which only the k largest coefficients stay.
"""

from typing import NamedTuple

import numpy as np

from ofslib._jit import kernel
from ofslib.kernels.hard_threshold import new_truncated, truncated_step
from ofslib.kernels.losses import CLASSIFICATION_LOSSES, Loss
from ofslib.kernels.minibatch import gather
from ofslib.streams.parameters import AT_LEAST_ONE, POSITIVE, estimator, one_of, param
from ofslib.streams.row_stream import RowClassifier, RowRegressor, RowStream


class Hyper(NamedTuple):
    k: int
    loss: Loss
    learning_rate: float
    batch_size: int
    intercept: float  # 1.0 or 0.0


@kernel
def fold(state, X, y, order, hp, margins):
    """Show the rows `order` of X, as `RowStream` asks for."""
    w, kept, every, batch, i = state.w, state.kept, state.every, state.batch, 0
    while i < len(order):
        i = gather(batch, X, y, order, i, hp.batch_size, w, kept, every, hp, margins)
        if batch.count[1] >= hp.batch_size:
            truncated_step(state, hp.k, hp.learning_rate, 0.0, np.inf)
        elif i < len(order):
            break
    return i


@estimator
class SIHT(RowStream):
    """Stochastic iterative hard thresholding."""

    about = "Cost: O(entries of the row + k / batch_size) per row."

    learning_rate: float = param(
        "Step size eta of a mini-batch's mean gradient.", POSITIVE, default=0.01
    )
    batch_size: int = param(
        "Rows of a mini-batch; the dissertation takes 1.", AT_LEAST_ONE, default=1
    )

    fold, hyper = fold, Hyper

    def _init(self, n_features):
        return new_truncated(n_features)

    def _finish(self, state, hp):
        if state.batch.count[1]:
            truncated_step(state, hp.k, hp.learning_rate, 0.0, np.inf)

    def _model(self, state, hyper):
        return state.w[:-1].copy(), float(state.w[-1])


@estimator
class SIHTClassifier(SIHT, RowClassifier):
    """Stochastic iterative hard thresholding for two classes (Fan et al. 2018)."""

    loss: str = param("Name of the loss.", one_of(*CLASSIFICATION_LOSSES), default="log_loss")


@estimator
class SIHTRegressor(SIHT, RowRegressor):
    """Stochastic iterative hard thresholding for regression (Fan et al. 2018).

    TSGD of the dissertation's chapter 5.
    """

    loss: str = param("Half the squared error.", one_of("squared_error"), default="squared_error")
