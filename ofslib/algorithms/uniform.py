"""Uniform random selection: the control that the papers on unsupervised selection lack."""

import numpy as np
from sklearn.utils import check_random_state

from ofslib.streams.column_stream import ScoredSelector
from ofslib.streams.parameters import estimator, param


@estimator
class UniformSelector(ScoredSelector):
    """k features, all sets of k equally likely.

    Cost: O(p log p), of the data nothing is read.
    """

    sources = ""
    example = """
        >>> {name}(k=3, random_state=0).fit_transform(X).shape
        (1000, 3)
    """

    random_state: int | np.random.RandomState | None = param(
        "Seed or generator (as in scikit-learn) of the draw.", "random_state", default=None
    )

    def _scores(self, X):
        return check_random_state(self.random_state).uniform(size=X.shape[1])
