"""What no method can find, and what OLSth, SGDT, OFSA and the Lasso need beside it."""

from itertools import combinations
from math import log, sqrt

import numpy as np
import pandas as pd
import pytest
from pytest import approx
from scipy.integrate import quad
from scipy.stats import norm

from ofslib import OFSARegressor, OnlineLassoRegressor, SGDTRegressor, bounds
from ofslib.beyond import sgdt_law
from ofslib.bounds import DoesNotApply
from ofslib.reproduction.theory import limits, steps
from ofslib.wishart import LowRank, sample_averages


def features(n, p, rng, spike=0.0, runs=1):
    return rng.standard_normal((runs, n, p)) + sqrt(spike) * rng.standard_normal((runs, n, 1))


# -------------------------------------------------- the floor


@pytest.mark.parametrize("spike", [0.0, 4.0])
def test_the_best_of_all_supports_is_not_above_the_floor(spike):
    """It knows the coefficient, and no method is better; here the floor is .02 to .06 above it."""
    n, p, k, beta, runs = 12, 6, 2, 0.8, 4000
    rng = np.random.default_rng(3)
    X, noise = features(n, p, rng, spike, runs), rng.standard_normal((runs, n))
    y = beta * X[:, :, :k].sum(axis=2) + noise
    losses = [
        np.sum((y - beta * X[:, :, list(chosen)].sum(axis=2)) ** 2, axis=1)
        for chosen in combinations(range(p), k)
    ]
    found = np.mean(np.argmin(losses, axis=0) == 0)
    floor = bounds.information_floor_probability(beta, n, p, k)
    error = sqrt(found * (1 - found) / runs)
    assert found < floor + 3 * error
    assert floor < found + 0.08


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


def test_the_floor_is_near_that_of_all_exchanges():
    """What is lost by looking at one pair of features: 9 % of the coefficient here."""
    n, p, k, runs = 90, 60, 6, 1500
    rng, least = np.random.default_rng(2), []
    for _ in range(runs):
        X, noise = rng.standard_normal((n, p)), rng.standard_normal(n)
        S, g = X.T @ X, X.T @ noise
        apart = np.diag(S)[:k, None] + np.diag(S)[k:] - 2 * S[:k, k:]
        least.append(np.max(2 * (g[k:] - g[:k, None]) / apart))
    for delta in (0.5, 0.1):
        ratio = np.quantile(least, 1 - delta) / bounds.information_floor(n, p, k, delta=delta)
        assert 0.99 < ratio < 1.1


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


def test_olsth_over_the_floor_tends_to_what_p_over_n_makes_of_it():
    """Three rows for two features: sqrt(3)."""
    ratios = []
    for p in (100, 1000, 10_000):
        n, k = 3 * p // 2, 10
        needed = bounds.olsth_beta_min(n, p, k, spike=1.0, delta=0.1)
        ratios.append(needed / bounds.information_floor(n, p, k, delta=0.1) / sqrt(3))
    assert ratios == sorted(ratios, reverse=True)
    assert 1 < ratios[-1] < 1.05


def test_ofsa_is_near_the_floor_where_olsth_and_the_lasso_are_not():
    n, p, k, beta, runs = 150, 100, 10, 0.45, 40
    truth, law = np.arange(p) < k, LowRank(np.ones(p), np.ones((p, 1)))
    drawn = [sample_averages(n, law, beta * truth, 1.0, random_state=i) for i in range(runs)]
    ofsa, lasso = (
        np.mean([np.array_equal(m(k=k).fit_averages(one).coef_ != 0, truth) for one in drawn])
        for m in (OFSARegressor, OnlineLassoRegressor)
    )
    assert 0.7 < ofsa <= bounds.information_floor_probability(beta, n, p, k) + 0.05
    assert lasso < 0.2 and n < bounds.lasso_rows(p, k, spike=1.0).upper
    assert bounds.olsth_recovery_probability(beta, n, p, k, spike=1.0) < 0.2


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


# -------------------------------------------------- SGDT


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


def test_the_probability_of_normal_errors_is_that_of_an_integral_by_hand():
    """Two true N(.5, 1), three false N(0, 1 / 4), all independent: no moment is shared."""
    law = np.array([-0.5, 0.0]), np.array([0, 0, 0.25, 0, 0]), np.array([1, 0.25, 0, 0, 0])

    def found(m):
        false, density = 2 * norm.cdf(2 * m) - 1, 4 * norm.pdf(2 * m)
        return 3 * false**2 * density * (norm.sf(m - 0.5) + norm.cdf(-m - 0.5)) ** 2

    assert sgdt_law._kept(1.0, law, 5, 2) == approx(quad(found, 0, 8)[0], abs=1e-7)


def test_the_law_of_sgdt_is_that_of_the_estimator():
    """Up to .1, of which .05 are the chance of so few runs: the law takes errors for normal."""
    n, p, k, eta, runs = 1010, 40, 4, 0.01, 100
    rng = np.random.default_rng(1)
    for beta in (0.13, 0.18):
        kept = 0
        for _ in range(runs):
            X = features(n, p, rng, 1.0)[0]
            y = beta * X[:, :k].sum(axis=1) + rng.standard_normal(n)
            model = SGDTRegressor(k=k, learning_rate=eta, fit_intercept=False, shuffle=False)
            model.fit(X, y)
            kept += set(np.flatnonzero(model.coef_)) == set(range(k))
        law = bounds.sgdt_recovery_probability(beta, n, p, k, eta, spike=1.0)
        assert 0.1 < law < 0.99 and law == approx(kept / runs, abs=0.1)


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


@pytest.mark.parametrize(
    ("name", "wrong", "says"),
    [
        ("information_floor", {"k": 20}, "k=20 must be below p=20"),
        ("information_floor", {"n": 1}, "n=1 must be at least 2"),
        ("information_floor", {"delta": 1.0}, "delta=1.0 must be below 1"),
        ("sgdt_beta_min", {"spike": -1.0}, "spike=-1.0 must be at least 0"),
        ("sgdt_beta_min", {"batch_size": 0}, "batch_size=0 must be positive"),
        ("information_floor", {"sigma": True}, "sigma=True must be a number"),
    ],
)
def test_arguments_that_cannot_be(name, wrong, says):
    own = {"learning_rate": 0.01} if name.startswith("sgdt") else {}
    with pytest.raises((ValueError, TypeError), match=says):
        getattr(bounds, name)(**{"n": 100, "p": 20, "k": 2, **own, **wrong})


# -------------------------------------------------- the figure


def test_the_study_has_every_curve_above_the_floor():
    study = limits.recovery(
        {}, np.random.SeedSequence(4), None, against="n", fixed=20, values=[22, 500], runs=15
    )
    rows = list(study)
    found = {(row["method"], row["x"]): row for row in rows if row["panel"] == "p = 20"}
    curves = {name for name, _ in found}
    assert curves >= {"OFSA", "Lasso", "MCP", "SFSA", "SGDT", "OLSth", "information floor"}
    floor = found["information floor", 500]["value"]
    for name in curves - {"information floor"}:
        assert found[name, 500]["value"] > 0.8 * floor, name  # which 15 runs tell so well
    over = [row for row in rows if (row["method"], row["x"]) == ("OFSA", 500)]
    assert over[1]["panel"] == "Over the floor, p = 20"
    assert over[1]["value"] == approx(over[0]["value"] / floor)
    missing = found["SFSA", 22]
    assert missing["value"] is None and "not found in half of the runs" in missing["note"]


def test_a_warm_up_and_a_fitting_step_need_smaller_coefficients_as_their_laws_say():
    """Medians of few runs, on a small design; the floor is below all laws."""
    sizes = {"n": 1000, "p": 40, "rates": [0.01, 0.1], "shares": [0, 0.5]}
    runs = [
        list(steps.descent({}, np.random.SeedSequence(s), None, correlation=0.0, **sizes))
        for s in range(25)
    ]
    middle = {}
    for same in zip(*runs, strict=True):
        heights = [np.inf if row["value"] is None else row["value"] for row in same]
        middle[same[0]["panel"], same[0]["x"], same[0]["method"]] = np.median(heights)
    step, warmup = "Step, correlation 0", "Warm-up, correlation 0"
    for rate in sizes["rates"]:
        for curve in ("SGDT", "SFSA, warm-up of half"):
            law = middle[step, rate, f"{curve}, law"]
            assert middle[step, rate, curve] == approx(law, rel=0.15), (rate, curve)
            assert law > middle[step, rate, "information floor"]
    assert middle[step, 0.1, "SGDT"] > 1.3 * middle[step, 0.01, "SGDT"]
    curve = "SFSA, step of SGDT"
    assert middle[warmup, 0, curve] > 1.5 * middle[warmup, 0.5, curve]
    assert middle[warmup, 0.5, curve] == middle[step, 0.01, "SFSA, warm-up of half"]


@pytest.mark.parametrize(
    "study",
    [
        lambda seeds: limits.recovery(
            {}, seeds, None, against="n", fixed=20, values=[100, 500], runs=2
        ),
        lambda seeds: steps.descent(
            {}, seeds, None, correlation=0.5, n=500, p=20, rates=[0.01], shares=[0, 0.5]
        ),
    ],
)
def test_the_same_seed_gives_the_same_heights(study):
    once, again = (pd.DataFrame(study(np.random.SeedSequence(4))) for _ in range(2))
    pd.testing.assert_frame_equal(once, again, check_exact=True)


def test_a_step_that_diverges_finds_nothing():
    sizes = {"n": 500, "p": 20, "rates": [0.01, 1.5], "shares": [0.5]}
    rows = list(steps.descent({}, np.random.SeedSequence(0), None, correlation=0.5, **sizes))
    found = {(row["x"], row["method"]): row for row in rows}
    assert "not found in this run" in found[1.5, "SGDT"]["note"]
    assert "grows" in found[1.5, "SGDT, law"]["note"]
    assert found[0.01, "SGDT"]["value"] > 0


def test_bisection_finds_where_a_method_begins_to_succeed():
    truth = np.array([True, False])
    found = limits.least_found(lambda beta: truth * (beta > 0.37), truth, 0.1)
    assert 0.37 < found < 0.37 * limits.ACCURACY
    assert limits.least_found(lambda beta: ~truth, truth, 0.1) == np.inf
