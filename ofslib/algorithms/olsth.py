"""Online least squares with thresholding: dissertation, Algorithm 3.

The k standardised features with the largest coefficients of least squares are kept, and least
squares on these is the model.
"""

import numpy as np

from ofslib.streams.average_stream import AverageSelector
from ofslib.streams.parameters import estimator
from ofslib.streams.selector import Classifier, Regressor


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
class OLSthClassifier(Classifier, OLSth):
    """Online least squares with thresholding for two classes (dissertation, Algorithm 3)."""


@estimator
class OLSthRegressor(Regressor, OLSth):
    """Online least squares with thresholding for regression (dissertation, Algorithm 3)."""
