"""The exact samplers against rows that are really generated, and against what theory says.

`rejected` compares two samples of moments by many Kolmogorov-Smirnov tests. Seeds are fixed, so
that a pass stays a pass.
"""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import f as fisher
from scipy.stats import ks_2samp, kstest

from ofslib import RunningAverages, wishart
from ofslib.wishart import (
    LowRank,
    sample_averages,
    sample_extreme_eigenvalues,
    sample_moments,
    sample_ols,
)

P, NOISE, REPLICATES = 8, 0.7, 1500
# At most one in a thousand that this file, of fewer than 1000 such tests, rejects a right sampler.
LEVEL = 1e-3 / 1000
BETA = np.array([0.0, 0.6, 0.0, -0.5, 0.0, 0.4, 0.0, 0.0])
TASKS = ("regression", "classification")
LOW_RANK = LowRank(
    np.linspace(0.5, 2, P), np.column_stack([np.ones(P), np.linspace(-1, 1, P) ** 2])
)
_half = np.random.default_rng(5).normal(size=(P, P))
FULL = _half @ _half.T / 4 + np.eye(P) / 2


def dense(covariance):
    if isinstance(covariance, LowRank):
        return np.diag(covariance.diagonal) + covariance.factor @ covariance.factor.T
    return covariance


# Two ways to the same law, each as (means (R, p + 1), symmetric co-moments (R, p + 1, p + 1))


def from_rows(n, covariance, task, seed=0, replicates=REPLICATES):
    """Honestly: rows of x and y, which lose their mean and are multiplied out."""
    rng = np.random.default_rng([seed, n])
    if isinstance(covariance, LowRank):
        X = rng.normal(size=(replicates, n, P)) * np.sqrt(covariance.diagonal)
        X += rng.normal(size=(replicates, n, covariance.factor.shape[1])) @ covariance.factor.T
    else:
        X = rng.multivariate_normal(np.zeros(P), covariance, size=(replicates, n), method="eigh")
    y = X @ BETA + NOISE * rng.normal(size=(replicates, n))
    z = np.concatenate([X, (y if task == "regression" else np.sign(y))[:, :, None]], axis=2)
    mean = z.mean(axis=1)
    z -= mean[:, None]
    return mean, np.einsum("rni,rnj->rij", z, z)


def symmetric(upper):
    upper = np.triu(upper)
    return upper + np.triu(upper, 1).T


def from_sampler(n, covariance, task, seed=1, replicates=REPLICATES, sampler=sample_moments):
    rng = np.random.default_rng([seed, n])
    drawn = [sampler(n, covariance, BETA, NOISE, task, rng) for _ in range(replicates)]
    means, comoments = zip(*drawn, strict=True)
    return np.array(means), np.array([symmetric(C) for C in comoments])


def detected(score):
    """How many true features are among as many with the largest score, of equals the first."""
    order = np.argsort(-np.abs(score).round(9), axis=1, kind="stable")
    return (BETA[order[:, : np.count_nonzero(BETA)]] != 0).sum(axis=1)


def functionals(n, mean, C):
    """About 20 numbers of each replicate; {name: (R,)}."""
    C_xx, C_xy, C_yy = C[:, :P, :P], C[:, :P, P], C[:, P, P]
    rank = min(n - 1, P)
    values = np.linalg.eigvalsh(C_xx)
    found = {f"mean {j}": mean[:, j] for j in (0, 3, P)}
    found |= {f"C {i} {j}": C[:, i, j] for i, j in ((0, 0), (0, 3), (1, 2), (0, P), (3, P), (6, P))}
    found |= {f"raw {j}": C[:, 1, j] + n * mean[:, 1] * mean[:, j] for j in (1, 3, P)}
    found |= {
        "mean of y times C": mean[:, P] * C[:, 1, P],
        "yy": C_yy,
        "largest": values[:, -1],
        "smallest that is not 0": values[:, P - rank],
        "ones": C_xx.sum(axis=(1, 2)),
        "fitted by the truth": C_yy - 2 * C_xy @ BETA + np.einsum("i,rij,j->r", BETA, C_xx, BETA),
        "detected": detected(C_xy),
        "detected, standardised": detected(C_xy**2 / np.diagonal(C_xx, axis1=1, axis2=2)),
    }
    if n > P + 1:
        ols = np.linalg.solve(C_xx, C_xy[:, :, None])[:, :, 0]
        residual = C_yy - np.einsum("ri,ri->r", C_xy, ols)
        found |= {"ols 1": ols[:, 1], "residual": residual, "detected by ols": detected(ols)}
    return found


def rejected(n, one, other):
    """The functionals whose laws differ, with their p-values."""
    one, other = functionals(n, *one), functionals(n, *other)
    # What is 0 but for the rounding is 0 in both, or the ranks of the rounding are compared.
    p_values = {f: ks_2samp(one[f].round(9), other[f].round(9), method="asymp").pvalue for f in one}
    return {f: p for f, p in p_values.items() if p < LEVEL}


CASES = [
    *((n, LOW_RANK) for n in (2, 4, P, P + 2, 30)),
    *((n, FULL) for n in (3, P - 1, P + 1, P + 3, 25)),
]
every_case = pytest.mark.parametrize(
    ("n", "covariance"), CASES, ids=lambda v: str(v) if isinstance(v, int) else type(v).__name__
)


@pytest.mark.parametrize("task", TASKS)
@every_case
def test_law_is_that_of_rows(n, covariance, task):
    rows, drawn = (law(n, covariance, task) for law in (from_rows, from_sampler))
    assert not rejected(n, rows, drawn)


# Exact statements


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("covariance", [LOW_RANK, FULL], ids=["low rank", "full"])
@pytest.mark.parametrize("n", [1, 2, 3, P, P + 1, P + 2, 40])
def test_comoments_are_semidefinite_of_the_rank_of_the_rows(n, covariance, task):
    _, C = sample_moments(n, covariance, BETA, NOISE, task, random_state=4)
    values = np.linalg.eigvalsh(symmetric(C))
    scale = max(values[-1], 1.0)
    assert values[0] > -1e-12 * scale
    assert (values > 1e-10 * scale).sum() == min(n - 1, P + 1)


@pytest.mark.parametrize("n", [5, 40])
@pytest.mark.parametrize("task", TASKS)
def test_what_the_rows_of_the_labels_say_exactly(n, task):
    """Without noise y is x . beta; labels are -1 and 1, so that their squares sum to n."""
    mean, C = sample_moments(n, FULL, BETA, 0.0, task, random_state=6)
    C = symmetric(C)
    if task == "regression":
        assert_allclose(C[P], np.append(C[P, :P], C[P, :P] @ BETA), atol=1e-12)
        assert_allclose(C[:P, P], C[:P, :P] @ BETA, atol=1e-12)
        assert mean[P] == pytest.approx(mean[:P] @ BETA)
    else:
        assert C[P, P] + n * mean[P] ** 2 == pytest.approx(n)
        assert (n * (mean[P] + 1) / 2) % 1 == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize("n", [3, 3 * wishart.ROWS])
@pytest.mark.parametrize("task", TASKS)
def test_generator_alone_decides_and_averages_are_the_moments(n, task):
    one, same, other = (
        sample_moments(n, LOW_RANK, BETA, NOISE, task, seed)
        for seed in (1, np.random.default_rng(1), 2)
    )
    for a, b, c in zip(one, same, other, strict=True):
        assert_array_equal(a, b)
        assert not np.array_equal(a, c)
    known = RunningAverages.from_moments(n, *one)
    found = sample_averages(n, LOW_RANK, BETA, NOISE, task, 1)
    assert_array_equal(found.S_xx, known.S_xx)
    assert_array_equal(found.mean_x, known.mean_x)


# Least squares


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("covariance", [LOW_RANK, FULL], ids=["low rank", "full"])
@pytest.mark.parametrize("n", [P + 2, 1000])
def test_error_of_least_squares_is_fishers_f(n, covariance, fit_intercept):
    """d' Sigma d / p over noise^2 / freedom is F(p, freedom); another freedom is another law."""
    d = sample_ols(n, covariance, BETA, NOISE, 2, 20_000, fit_intercept) - BETA
    quadratic = np.einsum("ri,ij,rj->r", d, dense(covariance), d) / NOISE**2

    def p_value(freedom):
        return kstest(quadratic * freedom / P, fisher(P, freedom).cdf).pvalue

    freedom = n - P + (not fit_intercept)
    assert p_value(freedom) > LEVEL
    if n < 20:
        assert max(p_value(freedom - 1), p_value(freedom + 1)) < LEVEL


def test_one_least_squares_estimate_has_no_axis_of_draws():
    one, several = (sample_ols(50, LOW_RANK, BETA, NOISE, 3, size) for size in (None, 1))
    assert one.shape == (P,)
    assert_array_equal(one, several[0])
    assert_array_equal(sample_ols(50, FULL, BETA, 0.0, 3), BETA)


# Extreme eigenvalues


def extremes(n, p, spike, centred, draws=2000):
    rng = np.random.default_rng(7)
    return np.transpose(
        [sample_extreme_eigenvalues(n, p, spike, rng, centred) for _ in range(draws)]
    )


@pytest.mark.parametrize("centred", [True, False])
@pytest.mark.parametrize(
    ("n", "p", "spike"), [(30, 8, 0.0), (30, 8, 1.0), (9, 8, 1.0), (8, 8, 0.5), (5, 8, 1.0)]
)
def test_law_of_extreme_eigenvalues(n, p, spike, centred):
    rng = np.random.default_rng(8)
    X = rng.normal(size=(2000, n, p)) + np.sqrt(spike) * rng.normal(size=(2000, n, 1))
    X -= centred * X.mean(axis=1, keepdims=True)
    values = np.linalg.svd(X, compute_uv=False) ** 2
    smallest, largest = extremes(n, p, spike, centred)
    assert ks_2samp(values[:, 0], largest).pvalue > LEVEL
    if n - centred < p:
        assert (smallest == 0).all()
    else:
        assert ks_2samp(values[:, -1], smallest).pvalue > LEVEL


def test_smallest_eigenvalue_is_accurate_beside_a_huge_one():
    """As the spike grows the smallest eigenvalue tends to a limit, the largest to infinity."""
    near, far = (sample_extreme_eigenvalues(40, 30, spike, 9) for spike in (1e14, 1e22))
    assert near[0] == pytest.approx(far[0], rel=1e-10)
    assert far[1] / near[1] == pytest.approx(1e8, rel=1e-10)


# Arguments

GIVEN = {"n": 30, "covariance": LOW_RANK, "beta": BETA, "noise": NOISE, "random_state": 0}


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"covariance": FULL + np.triu(FULL)}, "covariance must be symmetric"),
        ({"covariance": LowRank(LOW_RANK[0][1:], LOW_RANK[1])}, r"\(p, r\)"),
        ({"beta": 0 * BETA, "noise": 0.0, "task": "classification"}, "beta and noise"),
        ({"noise": -1.0}, "noise"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_drawn(wrong, words):
    rng = np.random.default_rng(0)
    with pytest.raises(ValueError, match=words):
        sample_moments(**GIVEN | wrong | {"random_state": rng})
    assert rng.integers(1 << 60) == np.random.default_rng(0).integers(1 << 60)


def test_too_few_rows_for_least_squares():
    for fit_intercept, least in ((True, P + 2), (False, P + 1)):
        sample_ols(**GIVEN | {"n": least}, fit_intercept=fit_intercept)
        with pytest.raises(ValueError, match=f"n == {least - 1}"):
            sample_ols(**GIVEN | {"n": least - 1}, fit_intercept=fit_intercept)
