"""Sparse embedding: Liu, Shen and Tsang 2017, Sparse embedded k-means clustering, Section 3; SEC of
Wang et al. 2018 (`ofs`). It projects features and selects none.
"""

import numpy as np
import scipy.sparse as sp
from sklearn.utils import check_random_state
from sklearn.utils.extmath import safe_sparse_dot
from sklearn.utils.validation import check_is_fitted

from ofslib._model_files import Saved, plain
from ofslib._sparse import validated
from ofslib.streams.bases import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from ofslib.streams.parameters import AT_LEAST_ONE, estimator, param

_FORM = {"accept_sparse": True, "dtype": [np.float64, np.float32]}


@estimator
class SparseEmbedding(Saved, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """k sums of features with random signs (Liu, Shen and Tsang 2017, Section 3).

    Each feature is in one of the sums, drawn uniformly, with a sign drawn uniformly.
    `components_`, shape (k, n_features), sparse, holds the signs.

    Cost: O(nonzeros of X); memory O(n_features).
    """

    sources = "liu2017sparse"
    example = """
        >>> {name}(k=3, random_state=0).fit_transform(X).shape
        (1000, 3)
    """

    k: int = param("Number of sums.", AT_LEAST_ONE, default=10)
    random_state: int | np.random.RandomState | None = param(
        "Seed or generator (as in scikit-learn) of the draw.", "random_state", default=None
    )

    def fit(self, X, y=None):
        """Draw the sums; of X only the number of features is read, and y is not. Returns self."""
        self._validate_params()
        X = validated(self, X, **_FORM)
        self.n_samples_seen_, p = X.shape
        rng = check_random_state(self.random_state)
        sums, signs = rng.randint(self.k, size=p), 2.0 * rng.randint(2, size=p) - 1
        self.components_ = sp.csr_array((signs, (sums, np.arange(p))), shape=(self.k, p))
        return self

    def transform(self, X) -> np.ndarray:
        """The sums for each row, shape (n_samples, k)."""
        check_is_fitted(self)
        X = validated(self, X, reset=False, **_FORM)
        sums = safe_sparse_dot(X, self.components_.T.astype(X.dtype), dense_output=True)
        if not np.isfinite(sums).all():
            i, j = np.argwhere(~np.isfinite(sums))[0]
            raise ValueError(f"X: in row {i} the features of sum {j} add up to more than a number.")
        return sums

    def _parts(self):
        parts = super()._parts()
        if "components_" in parts:
            signs = parts["components_"]
            parts["components_"] = signs.data, signs.indices, signs.indptr
        return parts

    def _restore(self, parts, model=None):
        default, found = type(self)().get_params(), plain(parts)
        vars(self).update(default | found)
        self._validate_params()
        if "components_" in found:
            shape = (len(found["components_"][2]) - 1, self.n_features_in_)
            self.components_ = sp.csr_array(found["components_"], shape=shape)
            self.components_.check_format(full_check=True)
        elif found.keys() - default.keys():
            raise ValueError(f"it holds {', '.join(found)}")

    @property
    def _n_features_out(self) -> int:
        return self.components_.shape[0]

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
