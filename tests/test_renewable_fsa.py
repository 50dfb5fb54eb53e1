"""Logistic regression on k features from the rows near the boundary and averages of the others."""

from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import expit
from sklearn.linear_model import LogisticRegression
from sklearn.utils.estimator_checks import check_estimator

from ofslib import OFSAClassifier, RenewableFSAClassifier
from ofslib.beyond import renewable_fsa
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


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_with_all_rows_kept_it_is_penalised_logistic_regression(fit_intercept):
    X, y, true = noisy()
    model = RenewableFSAClassifier(k=6, l2=3.0, max_rows=4000, fit_intercept=fit_intercept)
    model.fit(X, y)
    assert not fit_intercept or np.array_equal(model.support_, true)
    true = model.support_
    scale = X.std(axis=0) if fit_intercept else np.sqrt((X**2).mean(axis=0))
    reference = LogisticRegression(C=1 / 3.0, fit_intercept=fit_intercept, tol=1e-10)
    reference.fit(X[:, true] / scale[true], y)
    assert_allclose(model.coef_[true], reference.coef_[0] / scale[true], rtol=1e-4)
    assert_allclose(model.intercept_, reference.intercept_ if fit_intercept else 0.0, rtol=1e-4)
    assert_allclose(model.predict_proba(X)[:, 1], expit(model.decision_function(X)))


@pytest.mark.parametrize("rows", [1, 7, 450, 1000])
def test_no_cut_into_blocks_changes_a_bit(rows):
    X, y, _ = noisy(n=1000, p=12)
    weight = np.random.default_rng(1).integers(1, 4, 1000).astype(float)
    one = RenewableFSAClassifier(k=4, max_rows=200).fit(X, y, weight)
    other = RenewableFSAClassifier(k=4, max_rows=200)
    for i in range(0, 1000, rows):
        part = slice(i, i + rows)
        other.partial_fit(X[part], y[part], [-1, 1], weight[part])
        assert len(other._state.models[0].y) <= 200
    assert_array_equal(other.coef_, one.coef_)
    assert other.intercept_ == one.intercept_


def test_of_a_row_that_goes_stays_the_second_order_expansion_of_its_loss():
    X, y, _ = noisy(n=400, p=5, k=2, strength=0.3)
    model = RenewableFSAClassifier(k=5, max_rows=300).fit(X[:299], y[:299])
    (before,) = model._state.models
    before.seen.update(X[299:300], y[299:300])
    full = before._replace(X=X[:300], y=1.0 * y[:300], weight=np.ones(300))
    margins = renewable_fsa._margins(full, True, 1.0)
    left = renewable_fsa._without_the_farthest(full, True, 1.0)
    gone = ~np.isin(X[:300, 0], left.X[:, 0])
    assert gone.sum() == 30 and np.abs(margins[gone]).min() >= np.abs(margins[~gone]).max()
    gone &= expit(margins) * expit(-margins) >= 0.02  # of the others nothing stays
    assert left.gone.n == gone.sum() > 10
    problem = renewable_fsa._problem(left, True, 1.0)
    # The same in the units of the rows, from its definition: loss, slope and curvature at a margin
    standard = left.seen.standardized()
    m, sign, p = margins[gone], y[:300][gone], expit(margins[gone])
    slope, curvature = p - (sign > 0), p * (1 - p)
    rng, expanded, kept = np.random.default_rng(0), [], []
    for _ in range(4):
        w = rng.standard_normal(6)
        change = (X[:300][gone] - standard.mean_x) / standard.scale @ w[:5] + w[5] - m
        expanded.append((slope * change + curvature * change**2 / 2).sum())
        kept.append(w @ problem.Q @ w / 2 - w @ problem.r)
    assert_allclose(np.diff(kept), np.diff(expanded), rtol=1e-9)


def test_nearly_separable_classes_need_the_rows_near_the_boundary():
    X, y, true = nearly_separable()
    model = RenewableFSAClassifier(k=30, max_rows=1000).fit(X, y)
    assert share_found(model, true) >= 0.9
    assert share_found(OFSAClassifier(k=30).fit(X, y), true) <= 0.8


def test_separable_classes_leave_enough_of_the_rows_that_went():
    """One feature decides. (Half of the labels were right where nothing stayed of far rows.)"""
    for n, rows in ((300, 30), (3000, 100)):
        X = np.random.default_rng(0).standard_normal((n, 6))
        y = X[:, 2] > 0
        model = RenewableFSAClassifier(k=1, max_rows=rows).fit(X, y)
        assert_array_equal(model.support_, [2])
        assert model.score(X, y) > 0.97


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


def test_what_is_far_from_the_boundary_leaves_nothing():
    X, y, _ = nearly_separable(n=2000, p=50, k=5)
    (state,) = RenewableFSAClassifier(k=5, max_rows=1000).fit(X, y)._state.models
    assert state.gone.n < 100 and state.seen.n == 2000


def test_each_of_several_classes_has_rows_of_its_own():
    rng = np.random.default_rng(0)
    centres = 2.0 * np.eye(3, 20)
    labels = rng.integers(0, 3, 900)
    X = centres[labels] + rng.standard_normal((900, 20))
    model = RenewableFSAClassifier(k=3, max_rows=300).fit(X, np.array(["a", "b", "c"])[labels])
    assert model.coef_.shape == (3, 20)
    assert_array_equal(model.support_, [0, 1, 2])
    one = RenewableFSAClassifier(k=3, max_rows=300).fit(X, labels == 1)
    assert_array_equal(model.coef_[1], one.coef_)


def test_the_share_that_the_page_claims_has_the_conditions_that_it_states():
    """Gaussian rows; in rows with heavy tails the nearest ones say little of coefficients."""
    rng, (n, p, k) = np.random.default_rng(0), (10_000, 1000, 100)
    X, noise = rng.standard_normal((n, p)), rng.standard_normal(n)
    X += rng.standard_normal((n, 1))
    found = []
    for rows in (X, X / np.sqrt(rng.chisquare(3, n) / 3)[:, None]):
        y = rows[:, :k].sum(axis=1) + noise > 0
        found.append(
            share_found(RenewableFSAClassifier(k=k, max_rows=n // 3).fit(rows, y), range(k))
        )
    assert found[0] > 0.93 and found[1] < 0.85
    page = (Path(__file__).parent.parent / "docs" / "algorithms.md").read_text()
    section = page.split("nearly separable\n")[1].split("### ")[0]
    assert "need Gaussian rows" in section and "multivariate t3" in section


def test_sparse_rows_are_the_same_rows():
    X, y, _ = noisy(n=600, p=20)
    X[np.random.default_rng(0).random(X.shape) < 0.7] = 0.0
    dense, sparse = (
        RenewableFSAClassifier(k=4, max_rows=200).fit(rows, y) for rows in (X, sp.csr_array(X))
    )
    assert_array_equal(sparse.coef_, dense.coef_)


def test_from_a_file_it_goes_on_bit_for_bit(tmp_path):
    X, y, _ = noisy(n=900, p=20)
    model = RenewableFSAClassifier(k=4, max_rows=200).fit(X, y)
    half = RenewableFSAClassifier(k=4, max_rows=200).partial_fit(X[:450], y[:450])
    half.save(tmp_path / "half.npz")
    half = RenewableFSAClassifier.load(tmp_path / "half.npz").partial_fit(X[450:], y[450:])
    assert_array_equal(half.coef_, model.coef_)


@pytest.mark.filterwarnings("ignore:k=.*is greater than n_features")
def test_scikit_learn_accepts_it():
    check_estimator(RenewableFSAClassifier(), on_skip=None, on_fail="raise")


@pytest.mark.parametrize(
    ("given", "said"), [({"k": 0}, "'k'"), ({"max_rows": 3}, "'max_rows'"), ({"l2": 0}, "'l2'")]
)
def test_what_is_not_allowed_is_said(given, said):
    with pytest.raises(ValueError, match=said):
        RenewableFSAClassifier(**given).fit(np.eye(4), [0, 1, 0, 1])
