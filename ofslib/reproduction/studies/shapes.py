"""Shapes of the data sets as the papers print them."""

import numpy as np

from ofslib.reproduction.studies import tidy


def shape(setting, seeds, data):
    """Rows, features and density of a data set (Zhai et al. 2018, Table 2).

    The density is the paper's: the largest number of nonzeros in a training row, in percent of the
    features.
    """
    X = data.X_train
    nonzeros = np.diff(X.indptr) if hasattr(X, "indptr") else np.count_nonzero(X, axis=1)
    counts = {"n_train": X.shape[0], "n_test": data.X_test.shape[0], "n_features": X.shape[1]}
    return tidy({**counts, "density": 100.0 * nonzeros.max() / X.shape[1]})
