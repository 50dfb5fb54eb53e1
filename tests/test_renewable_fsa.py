"""Logistic regression on k features from the rows near the boundary and averages of the others."""

import numpy as np
import pytest
from scipy.special import expit
from sklearn.utils.estimator_checks import check_estimator

from ofslib import OFSAClassifier, RenewableFSAClassifier
from ofslib.simulate import Equicorrelated


def noisy(n=3000, p=60, k=6, strength=0.4, seed=0):
    """Rows whose labels are drawn by log odds of medium size: no row is far from the boundary."""
    rng = np.random.default_rng(seed)
    X, true = rng.standard_normal((n, p)) + 0.5, np.arange(k) * (p // k)
    odds = strength * X[:, true].sum(axis=1) - 1.0
    return X, np.where(rng.random(n) < expit(odds), 1, -1), true


def nearly_separable(n=3000, p=300, k=30, seed=0):
    design = Equicorrelated(p=p, k=k, task="classification")
    return *next(design.stream(n, np.random.default_rng(seed), n)), design.support


def share_found(model, true):
    return np.isin(true, model.support_).mean()


def test_nearly_separable_classes_need_the_rows_near_the_boundary():
    X, y, true = nearly_separable()
    model = RenewableFSAClassifier(k=30, max_rows=1000).fit(X, y)
    assert share_found(model, true) >= 0.9
    assert share_found(OFSAClassifier(k=30).fit(X, y), true) <= 0.8


def test_noisy_classes_need_the_averages_of_the_rows_that_went():
    found, without = [], []
    for seed in range(4):
        X, y, true = noisy(n=2000, p=100, k=20, strength=0.15, seed=seed)
        model = RenewableFSAClassifier(k=20, max_rows=300).fit(X, y)
        found.append(share_found(model, true))
        every = RenewableFSAClassifier(k=20, max_rows=2001).fit(X, y)
        without.append(share_found(every, true) - found[-1])
        state = model._state.models[0]
        assert state.gone.n > 1000
    assert np.mean(found) >= 0.75
    assert np.mean(without) <= 0.05


@pytest.mark.filterwarnings("ignore:k=.*is greater than n_features")
def test_scikit_learn_accepts_it():
    check_estimator(RenewableFSAClassifier(), on_skip=None, on_fail="raise")
