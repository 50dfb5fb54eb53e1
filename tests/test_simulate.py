"""The papers' data generators against the moments and closed forms that theory gives them.

The pages of the closed forms are the dissertation, Section 5.4, (5.1), (5.2); sfsa, Section 5.1,
(6) and (7); the docstrings. All integrals are those of a fine grid.
"""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import norm
from sklearn.metrics import roc_auc_score

from ofslib.metrics import detection_rate
from ofslib.simulate import Changing, Drifting, Equicorrelated, SparseRows


def rows(design, n, seed=0, block_rows=1000):
    blocks = list(design.stream(n, np.random.default_rng(seed), block_rows=block_rows))
    return [np.concatenate(parts) for parts in zip(*blocks, strict=True)]


@pytest.mark.parametrize("alpha", [0.0, 0.5, 1.0, 2.0])
def test_moments_of_the_features(alpha):
    X, _ = rows(Equicorrelated(p=30, k=3, alpha=alpha), 100_000)
    variance = 1 + alpha**2
    # The common factor moves all means together: sd alpha / sqrt(n), and 5 of them are allowed.
    assert np.abs(X.mean(axis=0)).max() < 5 * np.sqrt(variance / len(X))
    assert_allclose(X.var(axis=0), variance, rtol=5 * np.sqrt(2 / len(X)))
    correlation = np.corrcoef(X, rowvar=False)
    off = correlation[~np.eye(30, dtype=bool)]
    rho = alpha**2 / (1 + alpha**2)
    assert_allclose(off, rho, atol=6 * (1 - rho**2) / np.sqrt(len(X)))


def test_coefficients_stand_at_every_tenth_feature():
    design = Equicorrelated(p=1000, k=100, beta=(0.05, 1))
    assert_array_equal(design.support + 1, np.arange(10, 1001, 10))
    assert_array_equal(np.flatnonzero(design.coef), design.support)
    found = design.coef[design.support]
    assert found[0] == 0.05 and found[-1] == 1
    assert_allclose(np.diff(found), 0.95 / 99)
    assert_array_equal(Equicorrelated(p=55, k=5, beta=2).coef[[9, 19, 29, 39, 49]], 2.0)


# What a model is worth on new rows, in closed form


def models(design):
    """The truth, one near it, one of other features, one turned around."""
    rng = np.random.default_rng(4)
    other = np.zeros(design.p)
    other[:3] = 1, -2, 0.5
    return [design.coef, design.coef + 0.3 * rng.normal(size=design.p), other, -design.coef]


@pytest.mark.parametrize("alpha", [0.0, 0.7])
def test_error_of_a_model_is_that_on_many_rows(alpha):
    design = Equicorrelated(p=30, k=3, alpha=alpha, beta=(0.5, 1), noise=0.8)
    X, y = design.sample(200_000, np.random.default_rng(0))
    for coef in models(design):
        for intercept in (0.0, 0.6):
            squares = np.square(y - X @ coef - intercept)
            error = squares.std() / np.sqrt(len(y))
            assert abs(design.rmse(coef, intercept) ** 2 - squares.mean()) < 5 * error
    assert design.rmse(design.coef) == 0.8


@pytest.mark.parametrize(("alpha", "noise"), [(0.0, 0.8), (0.7, 2.0), (0.7, 0.0)])
def test_auc_of_a_model_is_that_on_many_rows(alpha, noise):
    design = Equicorrelated(
        p=30, k=3, alpha=alpha, beta=(0.5, 1), noise=noise, task="classification"
    )
    X, y = design.sample(100_000, np.random.default_rng(1))
    for coef in models(design):
        # Of ranks, its standard error is at most 1 / sqrt(rows) when the classes are equal.
        ranked = roc_auc_score(y, X @ coef)
        assert design.auc(coef) == pytest.approx(ranked, abs=5 / np.sqrt(len(y)))
        assert design.auc(3 * coef) == pytest.approx(design.auc(coef))
        assert design.auc(-coef) == pytest.approx(1 - design.auc(coef))
    if noise == 0:
        assert design.auc(design.coef) == pytest.approx(1)
    assert design.auc(np.zeros(30)) == 0.5


def test_models_whose_squares_overflow_have_their_error_and_auc():
    """One that ran away, but is finite: (d'Sigma d)^1/2 is of the size of its coefficients."""
    number, label = (Equicorrelated(p=20, k=2, task=t) for t in ("regression", "classification"))
    other = np.linspace(-1, 2, 20)
    far, d = 2.0**900, other - number.coef / 2.0**900
    with np.errstate(all="raise", under="ignore"):
        error = number.rmse(far * other)
        assert error == pytest.approx(far * np.sqrt(d @ d + d.sum() ** 2))
        assert number.rmse(number.coef, far) == far
        assert label.auc(far * other) == label.auc(other)


def test_best_auc_of_table_5_3():
    """The paper's .834 at beta = .01, p = 1000."""
    design = Equicorrelated(p=1000, k=100, beta=0.01, task="classification")
    assert design.auc(design.coef) == pytest.approx(0.834, abs=6e-4)


def area(design, coef):
    """P(a score of +1 is above one of -1), on a grid of scores; labels +1 have share 1 / 2."""
    Sigma = np.eye(design.p) + design.alpha**2
    spread = math.sqrt(design.coef @ Sigma @ design.coef + design.noise**2)
    rho = coef @ Sigma @ design.coef / spread / math.sqrt(coef @ Sigma @ coef)
    s = np.linspace(-9, 9, 40001)
    positive = norm.pdf(s) * norm.cdf(rho * s / math.sqrt(1 - rho**2)) * 2
    below = np.cumsum(negative := norm.pdf(s) * 2 - positive) - negative / 2
    return (positive @ below) * (s[1] - s[0]) ** 2


@pytest.mark.parametrize("alpha, noise", [(0.0, 0.3), (0.5, 1.0), (2.0, 4.0)])
def test_auc_of_scores_is_the_integral_over_both_classes(alpha, noise):
    for seed in range(20):
        draw = np.random.default_rng(seed)
        own = {"p": 40, "k": int(draw.integers(1, 5)), "alpha": alpha, "noise": noise}
        design = Equicorrelated(**own, beta=(0.2, 1.5), task="classification")
        coef = draw.standard_normal(40) * (draw.random(40) < 0.5) + draw.random() * design.coef
        assert_allclose(design.auc(coef), area(design, coef), rtol=0, atol=1e-7)


def test_the_error_of_a_model_is_its_moments():
    """Uniform price with its mean and variance; the others equally correlated; (5.1), (5.2)."""
    for seed in range(20):
        draw = np.random.default_rng(seed)
        alpha, noise = draw.uniform(0, 2), draw.uniform(0.1, 2)
        priced = {"price": (2.0, 7.0), "price_coef": -0.5, "constant": 3.0} if seed % 2 else {}
        drift = Drifting(
            p=30, k=3, a=1.5, b=0.3, period=50, step_rows=1, alpha=alpha, noise=noise, **priced
        )
        coef, intercept, t = draw.standard_normal(30), draw.standard_normal(), seed * 7 + 1
        angle = [2 * math.pi * (t - 100 * j) / 50 for j in (1, 2, 3)]
        truth = np.zeros(30)
        truth[[9, 19, 29]] = [1.5 * math.sin(v) + 0.3 for v in angle]
        if priced:
            truth[9], truth[0] = 0, -0.5
        assert_allclose(drift.coef_at(t), truth, rtol=0, atol=1e-12)
        Sigma, mean = np.eye(30) + alpha**2, np.zeros(30)
        if priced:
            Sigma[0], Sigma[:, 0] = 0, 0
            Sigma[0, 0], mean[0] = 25 / 12, 4.5
        d, level = coef - truth, intercept - (3.0 if priced else 0.0)
        expected = math.sqrt(noise**2 + d @ Sigma @ d + (d @ mean + level) ** 2)
        assert_allclose(drift.rmse(coef, intercept, t), expected, rtol=1e-10)
        changing = Changing(p=30, k=3, alpha=alpha, noise=noise, period=2, step_rows=5)
        law = changing.at(t)
        d, Sigma = coef - law.coef, np.eye(30) + alpha**2
        expected = math.sqrt(noise**2 + d @ Sigma @ d + intercept**2)
        assert_allclose(law.rmse(coef, intercept), expected, rtol=1e-10)


def test_detection_rate_counts_true_features_once():
    """In percent of the true ones, whatever else is selected, in any order and however often."""
    for seed in range(50):
        draw = np.random.default_rng(seed)
        true = draw.choice(30, int(draw.integers(1, 10)), replace=False)
        selected = draw.choice(30, int(draw.integers(0, 31)), replace=seed % 2 == 0)
        expected = 100 * len(set(true.tolist()) & set(selected.tolist())) / len(true)
        assert detection_rate(selected, true) == pytest.approx(expected, abs=1e-12)


# Sparse rows


def test_where_the_entries_of_sparse_rows_are():
    n, free = 4000, SparseRows(p=200, k=10, nonzeros=20)
    X, y = free.sample(n, np.random.default_rng(1))
    assert_array_equal(y, np.where(X @ free.coef > 0, 1, -1))
    share = np.asarray((X != 0).mean(axis=0)).ravel()
    assert np.abs(share - 0.1).max() < 5 * np.sqrt(0.1 * 0.9 / n)
    assert abs(X.data.mean()) < 5 / np.sqrt(len(X.data)) and abs(X.data.std() - 1) < 0.01
    fixed = SparseRows(p=200, k=10, nonzeros=19, dense_support=True)
    X, _ = fixed.sample(n, np.random.default_rng(1))
    share = np.asarray((X != 0).mean(axis=0)).ravel()
    assert share[fixed.support].min() > 1 - 1e-12
    assert np.abs(np.delete(share, fixed.support) - 0.1).max() < 5 * np.sqrt(0.1 * 0.9 / n)
    assert (np.diff(X.indptr) == 19 + 10).all() and X.has_canonical_format


def test_training_labels_may_come_from_equal_coefficients():
    design = SparseRows(p=200, k=20, nonzeros=5, dense_support=True, equal_when_training=True)
    X, y = next(design.stream(500, np.random.default_rng(2)))
    assert_array_equal(y, np.where(X[:, design.support].sum(axis=1).A1 > 0, 1, -1))
    X, y = design.sample(500, np.random.default_rng(2))
    assert_array_equal(y, np.where(X @ design.coef > 0, 1, -1))
    assert_array_equal(design.coef, SparseRows(p=200, k=20).coef)
    assert ((design.coef[design.support] > 0) & (design.coef[design.support] < 1)).all()
