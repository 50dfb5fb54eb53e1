"""Laws beyond the papers: union bounds of least squares, the floor, SGDT, SFSA and the Lasso.

That they hold for the public estimators, test_bounds_against_estimators.py says.
"""

from itertools import product
from math import log, sqrt

import numpy as np
import pytest
from pytest import approx
from scipy.stats import t as student

from ofslib import bounds
from ofslib.beyond import sgdt_law
from ofslib.bounds import DoesNotApply

# -------------------------------------------------- unions


def decaying(p, correlation):
    """Features of unequal variances, neighbours alike."""
    scale = np.linspace(0.5, 2, p)
    place = np.arange(p)
    return correlation ** np.abs(place[:, None] - place) * np.outer(scale, scale)


def test_the_closed_form_takes_the_better_of_two_unions():
    """Against a search over shares of delta, and by hand. One of the two is better in each case."""
    for n, p, k, delta in ((10_000, 1000, 1, 0.05), (300, 200, 20, 0.49), (10**6, 10**5, 1, 0.05)):
        freedom = n - p
        shares = np.linspace(1e-3, 1, 2000, endpoint=False)
        true = student.isf(delta * shares / k, freedom)
        split = np.min(true + student.isf(delta * (1 - shares) / (2 * (p - k)), freedom))
        pairs = sqrt(2) * student.isf(delta / (2 * k * (p - k)), freedom)
        found = bounds.olsth_beta_min_closed_form(n, p, k, 3.0, 0.25, delta, ranking="raw")
        assert found == approx(3 / sqrt(0.25 * freedom) * min(split, pairs), rel=1e-5)
        equal = 2 * student.isf(delta / (2 * p - k), freedom)
        assert min(split, pairs) < 0.95 * equal
        assert (pairs < split) == (p == 1000)
        twice = bounds.olsth_beta_min_closed_form(
            n, p, k, 3.0, 0.25, 2 * delta, anytime=True, ranking="raw"
        )
        assert twice == approx(found)


def test_the_bound_on_failure_is_the_sum_over_pairs():
    p, n, beta = 6, 15, np.array([0.0, 1.0, 0.0, -0.7, 0.0, 0.0])
    covariance = decaying(p, 0.6)
    inverse, total = np.linalg.inv(covariance), 0.0
    for i, j, sign in product((1, 3), (0, 2, 4, 5), (1, -1)):
        contrast = np.eye(p)[i] + sign * np.eye(p)[j]
        scale = 0.2 * sqrt(contrast @ inverse @ contrast / 9)
        total += student.sf(abs(beta[i]) / scale, 9)
    assert total < 0.4
    size, raw = (covariance, n, 0.2), {"ranking": "raw"}
    assert bounds.olsth_failure_bound(beta, *size, **raw) == approx(total)
    assert bounds.olsth_failure_bound(beta, *size, anytime=True, **raw) == approx(2 * total)
    assert bounds.olsth_failure_bound(beta / 100, *size, **raw) == 1.0


def test_the_bound_of_standardised_ranking_is_the_least_sum_with_a_limit_on_ratios():
    """By hand, over limits u: each pair has two errors and the ratio of standard deviations."""
    p, n, beta = 4, 25, np.array([0.0, 1.0, 0.0, -0.7])
    covariance = decaying(p, 0.6)
    inverse, s, sums = np.linalg.inv(covariance), np.sqrt(np.diag(covariance)), []
    for h in np.linspace(0.1, 1.5, 300):
        total = 0.0
        for i, j in product((1, 3), (0, 2)):
            alone = sqrt(1 - (covariance[i, j] / s[i] / s[j]) ** 2)
            q = s[j] / s[i] * np.exp(np.arcsinh(alone * np.sinh(h)))
            total += student.sf(sqrt(n - 1) * np.sinh(h), n - 1)
            for sign in (1, -1):
                contrast = np.eye(p)[i] + sign * q * np.eye(p)[j]
                scale = 0.1 * sqrt(contrast @ inverse @ contrast / (n - p))
                total += student.sf(abs(beta[i]) / scale, n - p)
        sums.append(total)
    found = bounds.olsth_failure_bound(beta, covariance, n, 0.1)
    assert found == approx(min(sums), rel=1e-3) and found < 0.4
    # Nothing changes with the units of features.
    units = np.array([1e-3, 10.0, 1.0, 0.2])
    other = covariance * np.outer(units, units)
    assert bounds.olsth_failure_bound(beta / units, other, n, 0.1) == approx(found)
    assert bounds.olsth_failure_bound(beta, covariance, n, 0.1, anytime=True) == approx(2 * found)
    assert bounds.olsth_failure_bound(1e-300 * beta, covariance, n, 0.1) == 1.0
    assert bounds.olsth_failure_bound(1e300 * beta, covariance, n, 0.1) == 0.0


def test_the_last_step_of_all_features_is_the_union_over_pairs():
    """One set only can be left: that of all. Of one of three false ones there are three sets."""
    for left, events in ((3, 2 * 2 * 3), (1, 2 * 2 * 3), (2, 2 * 2 * 2 * 3)):
        found = bounds.ofsa_last_step_beta_min(20, 5, 2, 3.0, 0.5, 0.1, left=left, ranking="raw")
        freedom = 20 - 2 - left
        wanted = 3 * sqrt(2 / (0.5 * freedom)) * student.isf(0.1 / events, freedom)
        assert found == approx(wanted)


def test_the_law_of_ofsa_is_that_of_olsth_with_fewer_coefficients():
    assert bounds.ofsa_beta_min(150, 100, 10) == approx(bounds.olsth_beta_min(239, 100, 10))
    assert bounds.information_floor(150, 100, 10) < bounds.ofsa_beta_min(150, 100, 10)
    with pytest.raises(DoesNotApply, match="n = 12 <= 12 fitted"):
        bounds.ofsa_beta_min(12, 100, 10)


# -------------------------------------------------- the floor


def features(n, p, rng, spike=0.0, runs=1):
    return rng.standard_normal((runs, n, p)) + sqrt(spike) * rng.standard_normal((runs, n, 1))


def test_the_floor_is_the_probability_that_it_says():
    """Of its proof: the truth beats the support with the worst feature of each kind exchanged."""
    n, p, k, runs = 15, 30, 4, 100_000
    rng = np.random.default_rng(5)
    h = rng.standard_normal((runs, p - k)).max(axis=1) + rng.standard_normal((runs, k)).max(axis=1)
    r, q = np.sqrt(rng.chisquare(n, runs)), rng.chisquare(n - 1, runs)
    for beta in (0.3, 0.8, 1.6):
        found = np.mean(beta * (h**2 + 2 * q) > 2 * r * h)
        exact = bounds.information_floor_probability(beta * 3, n, p, k, sigma=3.0)
        assert found == approx(exact, abs=4 * sqrt(found * (1 - found) / runs))


def test_the_floor_is_where_its_probability_is_and_tends_to_its_limit():
    for delta in (0.5, 0.01):
        least = bounds.information_floor(300, 200, 20, 2.0, delta)
        found = bounds.information_floor_probability(least, 300, 200, 20, 2.0)
        assert found == approx(1 - delta, abs=1e-6)
    sizes = [(100 * p, p, 10) for p in (100, 10_000, 1_000_000)]
    ratios = [
        bounds.information_floor(*size, delta=0.5) / bounds.information_floor_asymptotic(*size)
        for size in sizes
    ]
    assert ratios == sorted(ratios) and 0.75 < ratios[0] < ratios[2] < 1
    assert bounds.information_floor_asymptotic(50, 12, 2, 3.0) == approx(
        3 * (sqrt(2 * log(10)) + sqrt(2 * log(2))) / sqrt(50)
    )


def test_rows_of_the_lasso_by_hand():
    assert bounds.lasso_rows(110, 10) == approx([20 * log(100)] * 2)
    # Largest eigenvalue 21, incoherence 1 / 21, variance of a false feature given the true 22 / 21
    lower, upper = bounds.lasso_rows(120, 20, spike=1.0)
    assert lower == approx(40 * log(100) / (21 * (2 - 1 / 21) ** 2))
    assert upper == approx(40 * log(100) * 22 * 21)
    # A single true feature of variance 3: its only eigenvalue; incoherence 1 / 3, variance 5 / 3.
    lower, upper = bounds.lasso_rows(101, 1, spike=2.0)
    assert lower == approx(2 * log(100) / (3 * (2 - 1 / 3) ** 2))
    assert upper == approx(2 * log(100) * 5 / 3 * 3**2 / 3)


# -------------------------------------------------- SGDT and SFSA


def test_the_moments_of_sgdt_are_those_of_its_errors():
    n, p, k, beta, eta, batch, spike, runs = 53, 9, 3, 0.5, 0.03, 5, 0.7, 20_000
    rng, w = np.random.default_rng(0), 0.0
    truth = beta * (np.arange(p) < k)
    w = np.zeros((runs, p))
    for start in range(0, n, batch):
        rows = min(batch, n - start)
        X = features(rows, p, rng, spike, runs)
        residual = np.einsum("irp,ip->ir", X, w - truth) - rng.standard_normal((runs, rows))
        w -= eta / rows * np.einsum("irp,ir->ip", X, residual)
    error = w - truth
    S = error.T @ error / runs
    bias, signal, noise = sgdt_law._descent_law(n, p, k, eta, batch, spike)
    d_1, d_2, c_11, c_12, c_22 = beta**2 * signal + noise
    seen = [error[:, :k].mean(), error[:, k:].mean(), S[0, 1], S[:k, k:].mean(), S[-1, -2]]
    assert seen == approx([*(beta * bias), c_11, c_12, c_22], abs=2e-3)
    assert np.diag(S) == approx([d_1 + c_11] * k + [d_2 + c_22] * (p - k), rel=0.05)
    kept = np.mean(np.abs(w[:, :k]).min(axis=1) > np.abs(w[:, k:]).max(axis=1))
    found = bounds.sgdt_recovery_probability(2 * beta, n, p, k, eta, batch, 2.0, spike)
    assert found == approx(kept, abs=0.03)


def test_the_least_coefficient_of_sgdt_has_its_probability():
    least = bounds.sgdt_beta_min(2000, 50, 5, 0.005, sigma=2.0, spike=1.0, delta=0.2)
    found = bounds.sgdt_recovery_probability(least, 2000, 50, 5, 0.005, sigma=2.0, spike=1.0)
    assert found == approx(0.8, abs=1e-6)
    assert least > bounds.information_floor(2000, 50, 5, sigma=2.0, delta=0.2)
    with pytest.raises(DoesNotApply, match="squared error grows"):
        bounds.sgdt_beta_min(2000, 50, 5, 1.0)
    # Two steps tell correlated features from each other with no coefficient.
    with pytest.raises(DoesNotApply, match="no coefficient"):
        bounds.sgdt_beta_min(50, 50, 5, 0.001, spike=1.0)


def test_the_least_coefficient_of_sfsa_has_its_probability_and_the_best_warm_up_is_some():
    """Without one the first rows decide; with a long one all features make noise to the end."""
    size = 4000, 60, 6, 0.02
    least = [
        bounds.sfsa_beta_min(*size, sigma=2.0, spike=1.0, warmup=rows, delta=0.4)
        for rows in (0, 1000, 3000)
    ]
    found = bounds.sfsa_recovery_probability(least[1], *size, sigma=2.0, spike=1.0, warmup=1000)
    assert found == approx(0.6, abs=1e-6)
    assert least[1] < 0.95 * least[2] < 0.7 * least[0]
    assert least[1] > bounds.information_floor(4000, 60, 6, sigma=2.0, delta=0.4)


def test_where_features_go_early_no_coefficient_is_large_enough():
    """The noise of the first gradients grows with the coefficients."""
    few, many = (bounds.sfsa_recovery_probability(b, 4000, 100, 10, 0.02) for b in (1.0, 100.0))
    assert few == approx(many, abs=0.05) and many < 0.9
    with pytest.raises(DoesNotApply, match="no coefficient"):
        bounds.sfsa_beta_min(4000, 100, 10, 0.02, delta=0.05)


ONE = [1, 0, 0, 0, 0]
ROUND = np.eye(5)


@pytest.mark.parametrize(
    ("name", "args", "says"),
    [
        ("ofsa_last_step_beta_min", (50, 20, 2, 1.0, 1.0, 0.1, True, 19), "left=19 must be at mo"),
        ("ofsa_last_step_beta_min", (3000, 2000, 10, 1.0, 1.0, 0.1, True, 900), "exceeds 1e200"),
        ("olsth_beta_min_closed_form", (50, 20, 2, 1.0, 1.0, 1.0), "delta=1.0 must be below 1"),
        ("olsth_failure_bound", (np.ones(5), ROUND, 20), "beta must have entries that are 0 and"),
        ("olsth_failure_bound", (ONE, -ROUND, 20), "must be positive definite"),
        ("olsth_failure_bound", ([1, 0, 0], ROUND, 20), r"covariance has shape \(5, 5\), must"),
        ("olsth_failure_bound", (ONE, 1e-9 * np.triu(ROUND + 1), 20), "be symmetric"),
        ("olsth_failure_bound", (ONE, ROUND, 20, 1.0, True, False, "sd"), "ranking='sd'"),
        ("olsth_failure_bound", (ONE, ROUND, 6), "n = 6 <= 6 fitted coefficients"),
        ("information_floor", (1, 20, 2), "n=1 must be at least 2"),
        ("information_floor", (100, 20, 20), "k=20 must be below p=20"),
        ("sfsa_beta_min", (1000, 40, 4, 0.01, 25, 1.0, 0.0, -1.0), "mu=-1.0 must be at least 0"),
        ("sfsa_beta_min", (1000, 40, 4, 0.9), "learning_rate = 0.9: the squared error grows"),
        ("sfsa_beta_min", (1000, 40, 4, 1.2, 500), "learning_rate = 1.2 >= 1"),
    ],
)
def test_what_cannot_be_is_refused(name, args, says):
    with pytest.raises(ValueError, match=says):
        getattr(bounds, name)(*args)


@pytest.mark.parametrize(
    ("beta", "n", "p", "k", "eta", "spike"),
    [(0.06, 4000, 60, 6, 0.01, 0.0), (0.07, 4000, 60, 6, 0.01, 1.0), (0.3, 500, 20, 10, 0.3, 0.0)],
)
def test_sfsa_that_drops_all_features_in_its_last_step_is_sgdt(beta, n, p, k, eta, spike):
    sgdt = bounds.sgdt_recovery_probability(beta, n, p, k, eta, spike=spike)
    sfsa = bounds.sfsa_recovery_probability(beta, n, p, k, eta, spike=spike, warmup=n - 25)
    assert 0.2 < sgdt < 0.99 and sfsa == approx(sgdt, abs=0.03)
