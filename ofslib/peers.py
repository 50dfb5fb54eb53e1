"""What users would try first, in the form of our estimators: for comparison in the tables."""

from typing import Any

import numpy as np
from sklearn.linear_model import SGDClassifier, SGDRegressor


class _TopK:
    """A linear model of scikit-learn, of which only the k largest coefficients are used."""

    def __init__(self, k: int = 10, **parameters: Any):
        self.k = k
        self.inner = self.cls(**parameters)

    def partial_fit(self, X, y, **known):
        """As that of the model."""
        self.inner.partial_fit(X, y, **known)
        return self

    @property
    def coef_(self) -> np.ndarray:
        """The k largest coefficients; the others are zero."""
        coef = np.ravel(self.inner.coef_).copy()
        coef[np.argsort(-np.abs(coef), kind="stable")[self.k :]] = 0.0
        return coef

    def _margins(self, X) -> np.ndarray:
        return X @ self.coef_ + float(np.ravel(self.inner.intercept_)[0])


class TopKSGDRegressor(_TopK):
    """scikit-learn's SGDRegressor, of which only the k largest coefficients are used."""

    cls = SGDRegressor
    predict = _TopK._margins


class TopKSGDClassifier(_TopK):
    """scikit-learn's SGDClassifier, of which only the k largest coefficients are used."""

    cls = SGDClassifier
    _estimator_type = "classifier"
    decision_function = _TopK._margins
