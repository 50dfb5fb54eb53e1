"""Weights far apart, forgetting and merging of averages; closed forms of what a model misses.

The pages are the dissertation, (3.1) to (3.3), (3.11) and Section 5.4, (5.1), (5.2); sfsa, Section
5.1, (6) and (7); docs/explain/drift.md (a row of weight w under
adaptation r has the share max(min(1, w r), w / (W + w)), after which W is min(W + w, 1 / r)); the
docstrings. All moments are those of exact fractions, all integrals those of a fine grid.
"""

import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose
from scipy.stats import norm

import ofslib
from ofslib import RunningAverages
from ofslib.metrics import detection_rate
from ofslib.simulate import Changing, Drifting, Equicorrelated


def shares_after(weights, rate, W):
    """The share of what was before (first) and of each row in the averages, and W, exactly."""
    shares = [Fraction(1)]
    for w in map(Fraction, weights):
        if not w:
            shares.append(Fraction(0))
            continue
        new = w / (W + w) if rate is None else max(min(1, w * rate), w / (W + w))
        shares = [s * (1 - new) for s in shares] + [new]
        W = W + w if rate is None else min(W + w, 1 / rate)
    return shares, W


def moments(rows, shares):
    """Means and central moments of exact rows with shares that add up to 1."""
    p = len(rows[0])
    mean = [sum(s * r[i] for r, s in zip(rows, shares, strict=True)) for i in range(p)]
    C = np.zeros((p, p))
    for i in range(p):
        for j in range(i, p):
            second = sum(s * r[i] * r[j] for r, s in zip(rows, shares, strict=True))
            C[i, j] = C[j, i] = float(second - mean[i] * mean[j])
    return np.array([float(m) for m in mean]), C


def exact(X, y):
    return [[Fraction(float(v)) for v in r] for r in np.column_stack([X, y])]


def assert_moments(averages, rows, shares, weight, tol):
    """Means in deviations about them, co-moments in products of deviations."""
    mean, C = moments(rows, shares)
    size = np.sqrt(np.diag(C))
    found = averages.standardized()
    assert_allclose(
        np.append(averages.mean_x, averages.mean_y) / size, mean / size, rtol=0, atol=tol
    )
    assert_allclose(found.scale / size[:-1], 1, rtol=0, atol=tol)
    assert_allclose(found.S_xx, C[:-1, :-1] / np.outer(size[:-1], size[:-1]), rtol=0, atol=tol)
    assert_allclose(found.S_xy / size[-1], C[:-1, -1] / size[:-1] / size[-1], rtol=0, atol=tol)
    assert_allclose(found.S_yy / size[-1] ** 2, 1, rtol=0, atol=tol)
    assert_allclose(averages.weight, float(weight), rtol=1e-13)


def drawn(seed, n=40, p=3):
    draw = np.random.default_rng(seed)
    X = draw.standard_normal((n, p)) @ (np.eye(p) + 0.4) * (draw.random((n, p)) < 0.7)
    return draw, X, X.sum(axis=1) + draw.standard_normal(n)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("order", ["mixed", "light first", "heavy first"])
def test_weights_that_differ_by_a_factor_of_a_trillion(seed, order):
    """In calls of any length, CSR as well, and merged from parts."""
    draw, X, y = drawn(seed)
    weights = 10.0 ** draw.uniform(-6, 6, len(y))
    weights = {"mixed": weights, "light first": np.sort(weights)}.get(order, -np.sort(-weights))
    weights[draw.random(len(y)) < 0.1] = 0
    rows, ends = exact(X, y), [0, *np.sort(draw.integers(1, len(y), 3)), len(y)]
    whole, parts = RunningAverages(3), RunningAverages(3)
    for i, j in pairwise(ends):
        if i < j:
            block = sp.csr_array(X[i:j]) if draw.random() < 0.5 else X[i:j]
            whole.update(block, y[i:j], weights[i:j])
            part = RunningAverages(3).update(block, y[i:j], weights[i:j])
            parts = part + parts if draw.random() < 0.5 else parts + part
    shares, W = shares_after(weights, None, Fraction(0))
    for averages in (whole, parts):
        assert_moments(averages, rows, shares[1:], W, 1e-12)
    coef = np.linalg.lstsq(
        np.column_stack([X, np.ones(len(y))]) * np.sqrt(weights)[:, None],
        y * np.sqrt(weights),
        rcond=None,
    )[0]
    if (weights > 1e-3 * weights.max()).sum() > 6:
        model = ofslib.OLSRegressor().fit(X, y, weights)
        assert_allclose([*model.coef_, model.intercept_], coef, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("rate", [0.5, 0.05, 0.01])
@pytest.mark.parametrize("weighted", [False, True])
def test_old_rows_fade_by_3_11_also_when_it_is_switched_and_merged(seed, rate, weighted):
    """Without a rate, then with one, with averages merged in between, and without again."""
    draw, X, y = drawn(seed, 60)
    weights = 10.0 ** draw.uniform(-6, 6, 60) if weighted else np.ones(60)
    rows, averages, own = exact(X, y), RunningAverages(3), Fraction(rate)
    first, second, third, fourth = (slice(0, 15), slice(15, 30), slice(30, 45), slice(45, 60))
    averages.update(X[first], y[first], weights[first])
    averages.adapt(rate).update(X[second], y[second], weights[second])
    other = RunningAverages(3).update(X[third], y[third], weights[third])
    averages.merge(other)
    shares, W = shares_after(weights[first], None, Fraction(0))
    known = shares[1:]
    shares, W = shares_after(weights[second], own, W)
    known = [shares[0] * s for s in known] + shares[1:]
    shares, more = shares_after(weights[third], None, Fraction(0))
    known = [s * W / (W + more) for s in known] + [s * more / (W + more) for s in shares[1:]]
    W += more
    assert_moments(averages, rows[:45], known, W, 1e-12)
    averages.update(X[fourth][:8], y[fourth][:8], weights[fourth][:8])
    shares, W = shares_after(weights[fourth][:8], own, W)
    known = [shares[0] * s for s in known] + shares[1:]
    averages.adapt(None).update(X[fourth][8:], y[fourth][8:], weights[fourth][8:])
    shares, W = shares_after(weights[fourth][8:], None, W)
    known = [shares[0] * s for s in known] + shares[1:]
    if max(known) < 0.999:  # else one row has all the weight
        assert_moments(averages, rows, known, W, 1e-12)
    assert averages.n == 60


@pytest.mark.parametrize("cls", [ofslib.OLSthClassifier, ofslib.OLSthRegressor])
def test_a_model_that_forgets_is_least_squares_with_the_shares_as_weights(cls):
    """(3.11) from an estimator: rows in calls of any length."""
    for seed in range(3):
        _, X, y = drawn(seed, 120, 6)
        y = np.where(y > 0, 1.0, -1.0) if "Classifier" in cls.__name__ else y
        model = cls(k=6, adaptation=0.02)
        for i, j in pairwise([0, 1, 50, 51, 120]):
            more = ([-1.0, 1.0],) if "Classifier" in cls.__name__ else ()
            model.partial_fit(X[i:j], y[i:j], *more)
        shares, _ = shares_after(np.ones(120), Fraction(0.02), Fraction(0))
        root = np.sqrt([float(s) for s in shares[1:]])
        A = np.column_stack([X, np.ones(120)]) * root[:, None]
        w = np.linalg.lstsq(A, y * root, rcond=None)[0]
        assert_allclose([*model.coef_, model.intercept_], w, rtol=0, atol=1e-10)


# What a model misses


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
