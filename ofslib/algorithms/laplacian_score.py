"""Laplacian score: He, Cai and Niyogi 2005, Laplacian score for feature selection, Section 2; LapS
of Wang et al. 2018 (`ofs`).
"""

import numpy as np
import scipy.sparse as sp
from sklearn.neighbors import kneighbors_graph
from sklearn.utils.extmath import safe_sparse_dot

from ofslib.streams.column_stream import ScoredSelector
from ofslib.streams.parameters import AT_LEAST_ONE, POSITIVE, estimator, param


@estimator
class LaplacianScoreSelector(ScoredSelector):
    """Features that vary little between neighbouring rows (He, Cai and Niyogi 2005).

    With weights S_ij = exp(-|x_i - x_j|^2 / bandwidth) between rows of which one is a nearest
    neighbour of the other, D = diag(S 1), L = D - S and f a feature minus its mean under the
    weights D, the Laplacian score is f' L f / f' D f; it is smallest for the best feature.
    `scores_` holds it with the opposite sign; a constant feature has -inf. A bandwidth that makes
    all weights 0 is refused, and so is a single row.

    Cost: that of the neighbours, O(n^2 p) at most, and O(n p n_neighbors); memory
    O(n n_neighbors + n p).
    """

    sources = "he2005laplacian"

    n_neighbors: int = param(
        "Nearest neighbours of a row; as in the paper.", AT_LEAST_ONE, default=5
    )
    bandwidth: float | None = param(
        "A squared distance; None: the mean one of neighbours.", POSITIVE, None, default=None
    )

    def _scores(self, X):
        S = self._weights(X)
        degrees = np.asarray(S.sum(axis=1)).ravel()
        if not degrees.any():
            raise ValueError(
                f"bandwidth={self.bandwidth} is too small for these rows: the weights "
                "exp(-|x_i - x_j|^2 / bandwidth) of all neighbours are 0; None takes the mean "
                "squared distance of neighbours"
            )
        means = safe_sparse_dot(X.T, degrees) / degrees.sum()
        F = (X.toarray() if sp.issparse(X) else X) - means
        spread = degrees @ F**2
        uneven = spread - np.einsum("ij,ij->j", F, S @ F)
        scores = np.full(X.shape[1], -np.inf)
        # A constant leaves rounding errors behind.
        varies = spread > degrees.sum() * (16 * np.finfo(X.dtype).eps * np.abs(means)) ** 2
        scores[varies] = -uneven[varies] / spread[varies]
        return scores

    def _weights(self, X) -> sp.csr_array:
        """S, shape (n, n)."""
        n_neighbors = min(self.n_neighbors, X.shape[0] - 1)
        if not n_neighbors:
            raise ValueError("n_samples=1 is too few: a row needs a neighbour")
        near = sp.csr_array(kneighbors_graph(X, n_neighbors, mode="distance"))
        squares = near.data**2
        bandwidth = self.bandwidth or squares.mean() or 1.0
        near.data = np.exp(-squares / bandwidth)
        return near.maximum(near.T).tocsr()
