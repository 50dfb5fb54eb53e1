"""Online least squares with thresholding: dissertation, Algorithm 3.

The k standardised features with the largest coefficients of least squares are kept, and least
squares on these is the model.
"""

import numpy as np

from ofslib.streams.average_stream import AverageClassifier, AverageRegressor, AverageSelector
from ofslib.streams.parameters import estimator


@estimator
class OLSth(AverageSelector):
    """Online least squares with thresholding."""

    about = "Cost: O(p^3) per model."

    def _coefs(self, standard, ks):
        coef = self._refit(standard, np.arange(len(standard.scale)))
        # Stable: of two equal features the one with the lower index is kept.
        order = np.argsort(-np.abs(coef), kind="stable")
        return np.array([self._refit(standard, np.sort(order[:k])) for k in ks])


@estimator
class OLSthClassifier(OLSth, AverageClassifier):
    """Online least squares with thresholding for two classes (dissertation, Algorithm 3)."""


@estimator
class OLSthRegressor(OLSth, AverageRegressor):
    """Online least squares with thresholding for regression (dissertation, Algorithm 3)."""
