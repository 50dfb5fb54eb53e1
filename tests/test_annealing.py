"""The mean-field law of SFSA, against the estimator and against the law of SGDT."""

from math import sqrt

import numpy as np
import pytest
from pytest import approx

from ofslib import SFSARegressor, bounds
from ofslib.beyond import sfsa_law
from ofslib.bounds import DoesNotApply


def test_after_a_warm_up_no_coefficient_is_too_large_to_be_found():
    """As in one pass of the estimator. The places of the grid lie as near as the noise asks."""
    n, p, k, eta, own = 10_000, 200, 20, 0.022, {"warmup": 5000}
    law = [bounds.sfsa_recovery_probability(b, n, p, k, eta, **own) for b in (1.0, 10.0, 50.0)]
    assert law == approx([1, 1, 1], abs=1e-4)
    rng = np.random.default_rng(1)
    X = rng.standard_normal((n, p))
    y = 50.0 * X[:, :k].sum(axis=1) + rng.standard_normal(n)
    model = SFSARegressor(k=k, learning_rate=eta, batch_size=25, fit_intercept=False, **own)
    assert np.array_equal(model.fit(X, y).support_, np.arange(k))
    assert bounds.sfsa_beta_min(n, p, k, eta, delta=0.5, **own) == approx(0.0774, abs=2e-3)
    for beta in (1e6, 1e160, 1e300):
        with pytest.raises(DoesNotApply, match="the noise is not seen beside it"):
            bounds.sfsa_recovery_probability(beta, 5000, 20, 2, 0.3, warmup=2500)


def test_small_steps_need_no_finer_grid(monkeypatch):
    """Lines between places add to the variance, at each step; 30 runs of 30 found .092."""
    size, own = (10_000, 1000, 100, 0.0008), {"spike": 1.0, "warmup": 5000}

    def laws():
        return [bounds.sfsa_recovery_probability(b, *size, **own) for b in (0.06, 0.071, 0.092)]

    coarse = laws()
    monkeypatch.setattr(sfsa_law, "PLACES", 2401)
    assert coarse == approx(laws(), abs=0.003)
    assert coarse == approx([0.124, 0.647, 0.981], abs=0.005)
    large = [bounds.sfsa_recovery_probability(b, *size, **own) for b in (10.0, 50.0, 300.0)]
    assert large == approx([1, 1, 1], abs=1e-4)


@pytest.mark.parametrize(
    ("beta", "spike", "eta", "mu", "warmup"),
    [
        (0.25, 0.0, 0.05, 10.0, 0),
        (0.25, 1.0, 0.01, 10.0, 0),
        (0.14, 1.0, 0.02, 10.0, 500),
        (0.17, 0.0, 0.05, 0.0, 0),
    ],
)
def test_the_law_of_sfsa_is_that_of_the_estimator(beta, spike, eta, mu, warmup):
    """Up to .15, of which .1 are the chance of so few runs; docs/bounds.md has more."""
    n, p, k, runs = 1000, 40, 4, 100
    rng, kept = np.random.default_rng(3), 0
    for _ in range(runs):
        X = rng.standard_normal((n, p)) + sqrt(spike) * rng.standard_normal((n, 1))
        y = 3 * (beta * X[:, :k].sum(axis=1) + rng.standard_normal(n))
        model = SFSARegressor(k=k, learning_rate=eta, mu=mu, warmup=warmup, fit_intercept=False)
        kept += set(np.flatnonzero(model.fit(X, y).coef_)) == set(range(k))
    law = bounds.sfsa_recovery_probability(3 * beta, n, p, k, eta, 25, 3.0, spike, mu, warmup)
    assert 0.2 < law < 0.97 and law == approx(kept / runs, abs=0.15)


@pytest.mark.parametrize("spike", [0.0, 1.0])
def test_sfsa_that_drops_all_features_in_its_last_step_is_sgdt(spike):
    for beta in (0.06, 0.07):
        size = beta, 4000, 60, 6, 0.01
        sgdt = bounds.sgdt_recovery_probability(*size, spike=spike)
        sfsa = bounds.sfsa_recovery_probability(*size, spike=spike, warmup=3975)
        assert 0.2 < sgdt < 0.99 and sfsa == approx(sgdt, abs=0.03)


def test_errors_of_many_features_are_the_noise_of_large_steps():
    sgdt = bounds.sgdt_recovery_probability(0.3, 500, 20, 10, 0.3)
    sfsa = bounds.sfsa_recovery_probability(0.3, 500, 20, 10, 0.3, warmup=475)
    assert 0.4 < sgdt < 0.5 and sfsa == approx(sgdt, abs=0.03)


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


def test_stages_of_several_steps_change_little(monkeypatch):
    size = 0.05, 20_000, 80, 8, 0.004
    coarse = bounds.sfsa_recovery_probability(*size, spike=1.0)
    monkeypatch.setattr(sfsa_law, "STAGES", 800)
    monkeypatch.setattr(sfsa_law, "PLACES", 1201)
    assert coarse == approx(bounds.sfsa_recovery_probability(*size, spike=1.0), abs=0.01)
    assert 0.1 < coarse < 0.9


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"mu": -1.0}, "mu=-1.0 must be at least 0"),
        ({"warmup": 1000}, "warmup=1000 must be at least 0 and below n=1000"),
        ({"spike": -1.0}, "spike=-1.0 must be at least 0"),
        ({"learning_rate": 0.9}, "learning_rate = 0.9: the squared error grows"),
        ({"learning_rate": 1.2, "batch_size": 500}, "learning_rate = 1.2 >= 1"),
        ({"k": 40}, "k=40 must be below p=40"),
    ],
)
def test_arguments_that_cannot_be(wrong, says):
    size = {"n": 1000, "p": 40, "k": 4, "learning_rate": 0.01}
    with pytest.raises(ValueError, match=says):
        bounds.sfsa_beta_min(**size | wrong)
