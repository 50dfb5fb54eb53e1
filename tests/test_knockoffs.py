"""Knockoffs from running averages: the share of false features that they promise.

Their copies, their filter and what it chooses: test_knockoffs_by_the_page.py.
"""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy import stats
from sklearn.utils.estimator_checks import check_estimator

import ofslib
from ofslib import RunningAverages, select_by_knockoffs
from ofslib.beyond.knockoffs import KnockoffCopies, doubled
from ofslib.reproduction.studies.knockoffs import benjamini_hochberg, shares

TRUE = np.arange(0, 100, 4)


def drawn(n, p, rho, beta, rng):
    X = np.sqrt(rho) * rng.standard_normal((n, 1)) + np.sqrt(1 - rho) * rng.standard_normal((n, p))
    return X, beta * X[:, TRUE].sum(axis=1) + rng.standard_normal(n)


@pytest.mark.parametrize(("rho", "draws"), [(0.0, 1), (0.5, 4)])
def test_the_bound_is_held_and_what_is_true_is_found(rho, draws):
    rng, p, found = np.random.default_rng(5), 100, []
    for run in range(20):
        X, y = drawn(400, p, rho, 0.35, rng)
        chosen = select_by_knockoffs(RunningAverages(p).update(X, y), 0.2, draws, run)
        found.append(shares(chosen.support, TRUE))
    false, power = np.array(found).T
    assert false.mean() <= 0.2 + 2 * false.std() / np.sqrt(20)
    assert power.mean() > 0.8


# The estimators


@pytest.mark.filterwarnings("ignore:no feature stands out")
@pytest.mark.parametrize("cls", [ofslib.KnockoffsClassifier, ofslib.KnockoffsRegressor])
def test_scikit_learn_accepts_it_but_for_weights_and_the_few_features_of_one_check(cls):
    results = check_estimator(cls(), on_skip=None, on_fail=None)
    failed = {result["check_name"] for result in results if result["status"] == "failed"}
    assert all("_weight" in name or name.endswith("s_train") for name in failed)


# What is not allowed

X, Y = drawn(300, 100, 0.2, 0.3, np.random.default_rng(12))


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda a: select_by_knockoffs(a, True), "fdr=True must be"),
        (lambda a: select_by_knockoffs(a, draws=0), "draws=0 must be"),
        (lambda a: KnockoffCopies([0, 0], np.eye(3)), r"covariance must have the shape \(p, p\)"),
        (lambda a: KnockoffCopies([0, 0], [[1, 1], [1, 1]]), "depend on each other linearly"),
        (lambda a: KnockoffCopies([0], [[1]]).draw(np.ones((2, 2))), "X must have 1 features"),
        (lambda a: KnockoffCopies([0, 0], [[1e-9, 5e-10], [0, 1e-9]]), "must be symmetric"),
        (lambda a: KnockoffCopies([0], [[1]]).draw([[np.nan]]), "X must be finite"),
        (lambda a: doubled([], random_state="a"), "random_state='a' must be"),
        (lambda a: next(doubled([(np.ones(3), 0)])), "X must be of shape"),
        (lambda a: ofslib.KnockoffsRegressor(adaptation=0.1).fit(X, Y), "adaptation=0.1 must be 0"),
    ],
)
def test_what_is_not_allowed_is_said(call, said):
    with pytest.raises(ValueError, match=said):
        call(RunningAverages(100).update(X, Y))
    with pytest.raises(TypeError, match="averages must be RunningAverages, not ndarray"):
        select_by_knockoffs(X)


def test_units_far_apart_are_no_linear_dependence():
    for scale in ([1.0, 1e-300], [1e300, 1.0]):
        copies = KnockoffCopies([0, 0], np.diag(scale)).draw(np.zeros((2, 2)), 0)
        assert np.isfinite(copies).all() and copies.all()


# What the entry compares with


def test_benjamini_hochberg_is_that_of_the_rows():
    rng = np.random.default_rng(13)
    X, y = drawn(400, 100, 0.5, 0.2, rng)
    Z = np.column_stack([X, np.ones(400)])
    coef, rss, *_ = np.linalg.lstsq(Z, y, rcond=None)
    error = np.sqrt(rss[0] / (400 - 101) * np.diagonal(np.linalg.inv(Z.T @ Z)))
    p = 2 * stats.t.sf(np.abs(coef / error), 400 - 101)[:-1]
    order = np.sort(p)
    last = np.flatnonzero(order <= 0.1 * np.arange(1, 101) / 100).max()
    found = benjamini_hochberg(RunningAverages(100).update(X, y).standardized(), 0.1)
    assert_array_equal(found, np.flatnonzero(p <= order[last]))
