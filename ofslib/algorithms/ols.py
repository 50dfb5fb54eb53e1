"""Online least squares: dissertation, Section 3.2.2."""

import numpy as np

from ofslib.streams.average_stream import AverageStream
from ofslib.streams.parameters import estimator
from ofslib.streams.selector import Classifier, Regressor


@estimator
class OLS(AverageStream):
    """Online least squares."""

    sources = "sun2019online, sun2024novel"
    example = """
        >>> largest = np.abs({name}().partial_fit(X, y).coef_).argsort()[-3:]
        >>> np.sort(largest)
        array([ 9, 19, 29])
    """
    description = (
        "All features have a coefficient, also those of `path`, whatever the ks. Cost: O(p^3) "
        "per model."
    )

    def _coefs(self, standard, ks):
        coef = self._refit(standard, np.arange(len(standard.scale)))
        return np.tile(coef, (len(ks), 1))


@estimator
class OLSClassifier(Classifier, OLS):
    """Online least squares for classification (dissertation, 3.2.2)."""


@estimator
class OLSRegressor(Regressor, OLS):
    """Online least squares for regression (dissertation, 3.2.2)."""
