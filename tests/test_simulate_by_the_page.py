"""Closed forms of what a model misses, and how many true features it has, are what the page says.

The pages are the dissertation, Section 5.4, (5.1), (5.2); sfsa, Section 5.1, (6) and (7); the
docstrings. All integrals are those of a fine grid. Old rows fade in test_averages_by_the_page.py.
"""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import norm

from ofslib.metrics import detection_rate
from ofslib.simulate import Changing, Drifting, Equicorrelated


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
