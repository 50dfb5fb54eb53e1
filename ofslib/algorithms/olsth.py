"""Online least squares with thresholding: dissertation, Algorithm 3.

The k features with the largest coefficients of least squares are kept, and least squares on these
is the model. Coefficients are ranked in standardised units, or as they are.
"""

import numpy as np

from ofslib.streams.average_stream import MULTICLASS, AverageSelector
from ofslib.streams.parameters import estimator, one_of, param
from ofslib.streams.selector import Classifier, Regressor


@estimator
class OLSth(AverageSelector):
    """Online least squares with thresholding."""

    sources = "sun2019online, sun2024novel"
    description = "Cost: O(p^3) per model."

    ranking: str = param(
        "What features are ranked by: standardized is sd * |beta|, raw is |beta|. The choice "
        "matters where standard deviations differ. Each bound in ofslib.bounds names its ranking.",
        one_of("standardized", "raw"),
        default="standardized",
    )

    def _coefs(self, standard, ks):
        order = self._order([standard])
        return np.array([self._refit(standard, np.sort(order[:k])) for k in ks])

    def _joint_support(self, standards, k):
        return np.sort(self._order(standards)[:k])

    def _order(self, standards):
        every = np.arange(len(standards[0].scale))
        coefs = np.array([self._refit(standard, every) for standard in standards])
        if self.ranking == "raw":
            coefs /= standards[0].scale
        size = np.abs(coefs[0]) if len(coefs) == 1 else np.linalg.norm(coefs, axis=0)
        # Stable: of two equal features the one with the lower index is kept.
        return np.argsort(-size, kind="stable")


@estimator
class OLSthClassifier(Classifier, OLSth):
    """Online least squares with thresholding for classification (dissertation, Algorithm 3)."""

    multiclass: str = MULTICLASS


@estimator
class OLSthRegressor(Regressor, OLSth):
    """Online least squares with thresholding for regression (dissertation, Algorithm 3)."""
