"""Bounds and laws of recovery hold for the public estimators, over random designs.

The papers' own theorems are held against runs by their witnesses: test_statements.py.
"""

from math import sqrt

import numpy as np
import pytest
from pytest import approx

from ofslib import (
    OFSARegressor,
    OLSthRegressor,
    OnlineLassoRegressor,
    OnlineMCPRegressor,
    RunningAverages,
    SFSARegressor,
    SGDTRegressor,
    bounds,
)
from ofslib.wishart import LowRank, sample_averages

RANKINGS = ("standardized", "raw")


def random_covariance(rng, p, scales=1.0):
    """Random correlations, and standard deviations that differ by factors up to exp(2 scales)."""
    factors = rng.standard_normal((p, max(1, p // 3)))
    covariance = factors @ factors.T + np.diag(rng.uniform(0.5, 2, p))
    unit = np.exp(rng.uniform(-scales, scales, p)) / np.sqrt(np.diag(covariance))
    return covariance * np.outer(unit, unit)


def random_signs(rng, p, k):
    return rng.permutation(np.arange(p) < k) * rng.choice([-1.0, 1.0], p)


def failures(model, beta, draws):
    """Share of the draws, of running averages or of rows and labels, in which features differ."""
    failed = []
    for one in draws:
        one = (one,) if isinstance(one, RunningAverages) else one
        (model.fit_averages if len(one) == 1 else model.fit)(*one)
        failed.append(not np.array_equal(model.coef_ != 0, beta != 0))
    return np.mean(failed)


def averages(n, covariance, beta, runs, sigma=1.0):
    return (sample_averages(n, covariance, beta, sigma, random_state=i) for i in range(runs))


def at_most(delta, runs):
    """A share that runs with this probability of a failure hardly exceed."""
    return delta + 3 * sqrt(delta / runs)


# -------------------------------------------------- OLSth, any covariance


@pytest.mark.parametrize("ranking", RANKINGS)
@pytest.mark.parametrize(("n", "p", "k"), [(60, 25, 4), (40, 8, 2)])
def test_olsth_fails_no_more_often_than_the_bounds_for_any_covariance(n, p, k, ranking):
    delta, runs = 0.1, 250
    for seed in range(2):
        rng = np.random.default_rng(seed)
        covariance, true = random_covariance(rng, p), random_signs(rng, p, k)
        own = {"fit_intercept": bool(seed), "ranking": ranking}
        least = bounds.olsth_beta_min_any_covariance(true, covariance, n, 3.0, delta, **own)
        assert bounds.olsth_failure_bound(least * true, covariance, n, 3.0, **own) == approx(
            delta, rel=1e-4
        )
        for beta in (least * true, least * true * rng.uniform(0.8, 1.5, p)):
            bound = bounds.olsth_failure_bound(beta, covariance, n, 3.0, **own)
            draws = averages(n, covariance, beta, runs, 3.0)
            assert failures(OLSthRegressor(k=k, **own), beta, draws) < at_most(bound, runs)


@pytest.mark.parametrize("ranking", RANKINGS)
def test_olsth_fails_no_more_often_than_the_closed_form(ranking):
    """With standardised features the smallest eigenvalue is that of their correlations."""
    n, p, k, delta, runs = 80, 12, 3, 0.1, 300
    for seed in range(2):
        rng = np.random.default_rng(seed)
        covariance, true = random_covariance(rng, p), random_signs(rng, p, k)
        unit = np.sqrt(np.diag(covariance)) if ranking == "standardized" else np.ones(p)
        smallest = np.linalg.eigvalsh(covariance / np.outer(unit, unit))[0]
        least = bounds.olsth_beta_min_closed_form(n, p, k, 1.0, smallest, delta, ranking=ranking)
        beta = least / unit * true
        assert bounds.olsth_failure_bound(beta, covariance, n, ranking=ranking) <= delta
        draws = averages(n, covariance, beta, runs)
        assert failures(OLSthRegressor(k=k, ranking=ranking), beta, draws) < at_most(delta, runs)


@pytest.mark.parametrize("ranking", RANKINGS)
def test_olsth_keeps_the_features_at_any_later_number_of_rows(ranking):
    start, p, k, delta, runs = 40, 6, 2, 0.2, 100
    rng = np.random.default_rng(2)
    covariance, true = random_covariance(rng, p), random_signs(rng, p, k)
    own = {"delta": delta, "anytime": True, "ranking": ranking}
    beta = true * bounds.olsth_beta_min_any_covariance(true, covariance, start, **own)
    model, lost = OLSthRegressor(k=k, ranking=ranking), 0
    for i in range(runs):
        shown = sample_averages(start, covariance, beta, random_state=i)
        for j in range(30):
            if failures(model, beta, [shown]):
                lost += 1
                break
            shown.merge(sample_averages(3 + j, covariance, beta, random_state=1000 * i + j))
    assert lost / runs < at_most(delta, runs)


@pytest.mark.parametrize("ranking", RANKINGS)
def test_the_last_step_by_olsth_keeps_the_features_in_all_sets_that_can_be_left(ranking):
    n, p, k, delta, runs = 30, 8, 2, 0.1, 150
    rng = np.random.default_rng(3)
    covariance, true = random_covariance(rng, p), np.arange(p) < k
    unit = np.sqrt(np.diag(covariance)) if ranking == "standardized" else np.ones(p)
    smallest = np.linalg.eigvalsh(covariance / np.outer(unit, unit))[0]
    least = bounds.ofsa_last_step_beta_min(n, p, k, 1.0, smallest, delta, ranking=ranking)
    root, lost = np.linalg.cholesky(covariance), 0
    for _ in range(runs):
        X = rng.standard_normal((n, p)) @ root.T
        y = X @ (true * least / unit) + rng.standard_normal(n)
        sets = [[*range(k), j] for j in range(k, p)]
        model, kept = OLSthRegressor(k=k, ranking=ranking), np.arange(k + 1) < k
        lost += any(failures(model, kept, [(X[:, some], y)]) for some in sets)
    assert lost / runs < at_most(delta, runs)


# -------------------------------------------------- OLSth, theorems of the dissertation


def test_proposition_3_is_not_about_standardised_ranking():
    """A true feature of small scale beside a pair of large scale that is nearly the same."""
    n, p, runs, scale = 4000, 3, 100, np.array([1.0, 30.0, 30.0])
    correlation = np.array([[1, 0, 0], [0, 1, 0.999], [0, 0.999, 1]])
    covariance = correlation * np.outer(scale, scale)
    smallest = np.linalg.eigvalsh(covariance)[0]
    promise = bounds.dissertation_proposition_3(n, p, 1.0, 0.9 * smallest, C1=4.0)
    beta = np.array([promise.beta_min, 0, 0])
    raw, standardized = (
        failures(OLSthRegressor(k=1, ranking=each), beta, averages(n, covariance, beta, runs))
        for each in ("raw", "standardized")
    )
    assert raw <= at_most(1 - promise.probability, runs) < 0.3 < standardized


# -------------------------------------------------- exact laws and the floor, equal correlations


def equal(p, spike):
    return LowRank(np.ones(p), sqrt(spike) * np.ones((p, 1)))


@pytest.mark.parametrize(("n", "p", "k", "spike"), [(40, 12, 3, 0.4)])
def test_the_law_of_olsth_is_exact_for_raw_and_near_for_standardised_ranking(n, p, k, spike):
    delta, runs, true = 0.3, 800, np.arange(p) < k
    beta = bounds.olsth_beta_min(n, p, k, 2.0, spike, delta) * true
    for ranking, near in (("raw", 0.0), ("standardized", 0.02)):
        draws = averages(n, equal(p, spike), beta, runs, 2.0)
        failed = failures(OLSthRegressor(k=k, ranking=ranking), beta, draws)
        assert failed == approx(delta, abs=near + 3 * sqrt(delta * (1 - delta) / runs))


@pytest.mark.parametrize(
    "estimator", [OLSthRegressor, OFSARegressor, OnlineLassoRegressor, OnlineMCPRegressor]
)
@pytest.mark.parametrize(("n", "p", "k", "spike"), [(60, 25, 3, 0.0), (100, 30, 5, 0.8)])
def test_no_estimator_is_above_the_floor(estimator, n, p, k, spike):
    runs, true = 100, np.arange(p) < k
    beta = bounds.information_floor(n, p, k, delta=0.5) * true
    failed = failures(estimator(k=k), beta, averages(n, equal(p, spike), beta, runs))
    assert failed > 0.5 - 3 * sqrt(0.25 / runs)


def test_the_lasso_needs_the_rows_of_its_limit():
    """Half of them are too few however large coefficients are, three times as many are enough."""
    p, k, runs = 300, 8, 30
    rows, true = bounds.lasso_rows(p, k), np.arange(p) < k
    few, many = (
        failures(OnlineLassoRegressor(k=k), true, averages(int(n), np.eye(p), true, runs, 1e-2))
        for n in (rows.lower / 2, 3 * rows.upper)
    )
    assert few > 0.8 and many < 0.2


# -------------------------------------------------- approximations: equal correlations, one sign


@pytest.mark.parametrize(("n", "p", "k", "spike"), [(300, 40, 5, 0.0), (200, 40, 4, 0.7)])
def test_ofsa_is_near_its_law_in_standardised_units(n, p, k, spike):
    """Scales do not matter: it is about coefficients times standard deviations of own parts."""
    rng, runs, delta = np.random.default_rng(6), 100, 0.3
    unit = np.exp(rng.uniform(-1, 1, p))
    covariance = (np.eye(p) + spike) * np.outer(unit, unit)
    beta = bounds.ofsa_beta_min(n, p, k, delta=delta) / unit * (np.arange(p) < k)
    failed = failures(OFSARegressor(k=k), beta, averages(n, covariance, beta, runs))
    assert failed == approx(delta, abs=0.2)


LAWS = [
    (SGDTRegressor, bounds.sgdt_beta_min, {}),
    (SFSARegressor, bounds.sfsa_beta_min, {"warmup": 500}),
    (SFSARegressor, bounds.sfsa_beta_min, {}),
]


@pytest.mark.parametrize(("estimator", "law", "own"), LAWS)
@pytest.mark.parametrize(("spike", "eta", "both"), [(0.0, 0.05, True), (0.3, 0.02, False)])
def test_sgdt_and_sfsa_are_near_their_laws(estimator, law, own, spike, eta, both):
    """By |beta|; of both signs, where features are independent."""
    n, p, k, delta, runs = 1000, 40, 4, 0.4, 120
    rng = np.random.default_rng(7)
    beta = random_signs(rng, p, k) * law(n, p, k, eta, spike=spike, delta=delta, **own)
    beta = beta if both else np.abs(beta)

    def rows():
        for _ in range(runs):
            X = rng.standard_normal((n, p)) + sqrt(spike) * rng.standard_normal((n, 1))
            yield X, X @ beta + rng.standard_normal(n)

    given = {"learning_rate": eta, "importance": "coef", "fit_intercept": False, **own}
    assert failures(estimator(k=k, **given), beta, rows()) == approx(delta, abs=0.17)
