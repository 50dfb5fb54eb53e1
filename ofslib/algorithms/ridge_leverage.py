"""Ridge leverage scores: Alaoui and Mahoney 2015; (2.1) and LevS of Wang et al. 2018 (`ofs`)."""

import numpy as np
import scipy.sparse as sp
from sklearn.utils import check_random_state

from ofslib.streams.column_stream import ScoredSelector
from ofslib.streams.parameters import POSITIVE, estimator, param


@estimator
class RidgeLeverageSelector(ScoredSelector):
    """Features by their ridge leverage scores a_i' (A A' + ridge I)^-1 a_i (Alaoui and Mahoney).

    The batch form of the online scores. `scores_` holds them.

    Cost: O(n p min(n, p)); memory O(n p).
    """

    sources = "alaoui2015fast"
    example = """
        >>> X[:, design.support] *= 5
        >>> {name}(k=3, ridge=1000.0, sample=False).fit(X).support_
        array([ 9, 19, 29])
    """

    ridge: float = param("lambda, in the squared unit of the features.", POSITIVE, default=1.0)
    sample: bool = param(
        "Draw the features, without replacement, with probabilities in proportion to the scores; "
        "else those with the largest scores are kept.",
        "boolean",
        default=True,
    )
    random_state: int | np.random.RandomState | None = param(
        "Seed or generator (as in scikit-learn) of the draw.", "random_state", default=None
    )

    def _scores(self, X):
        dense = X.toarray() if sp.issparse(X) else X
        _, singular, directions = np.linalg.svd(dense.astype(np.float64), full_matrices=False)
        return (singular**2 / (singular**2 + self.ridge)) @ directions**2

    def _ranks(self, scores):
        if not self.sample:
            return scores
        # The k largest u^(1 / score) are such a draw (Efraimidis and Spirakis 2006).
        draws = check_random_state(self.random_state).uniform(size=len(scores))
        with np.errstate(divide="ignore"):
            return np.log(draws) / scores
