"""Stochastic iterative hard thresholding: Fan et al. 2018; TSGD of the dissertation's chapter 5.

A gradient step, after each of which only the k largest coefficients stay.
"""

import numpy as np

from ofslib.kernels.hard_threshold import Hyper, learn, new_state, step
from ofslib.streams.automatic import STEP, RowScale
from ofslib.streams.parameters import AT_LEAST_ONE, estimator, param
from ofslib.streams.row_stream import MiniBatches, RowClassifier, RowRegressor


@estimator
class SIHT(MiniBatches):
    """Stochastic iterative hard thresholding."""

    sources = "fan2018statistical"
    description = "Cost: O(entries of the row + k / batch_size) per row."

    learning_rate: float | str = STEP
    batch_size: int = param("Rows of a mini-batch, 1 in the dissertation.", AT_LEAST_ONE, default=1)

    learn, step, hyper = learn, step, Hyper
    _new_state, row_scale = staticmethod(new_state), RowScale()

    def _read_hyper(self, n_rows):
        return super()._read_hyper(n_rows, alpha=0.0, radius=np.inf)


@estimator
class SIHTClassifier(RowClassifier, SIHT):
    """Stochastic iterative hard thresholding for classification (Fan et al. 2018)."""


@estimator
class SIHTRegressor(RowRegressor, SIHT):
    """Stochastic iterative hard thresholding for regression (Fan et al. 2018).

    TSGD of the dissertation's chapter 5.
    """
