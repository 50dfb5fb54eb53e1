"""The smallest coefficient that any method could find, and those that single methods find."""

import warnings
from collections.abc import Callable
from functools import cache, partial
from math import inf, sqrt

import numpy as np
from sklearn.exceptions import ConvergenceWarning

import ofslib
from ofslib import bounds
from ofslib.bounds import DoesNotApply
from ofslib.reproduction.theory.curve import point
from ofslib.reproduction.theory.recovery import least_beta
from ofslib.wishart import LowRank, sample_averages, sample_ols

# Covariance of any two features, whose own part has variance 1: correlation 1/2. Noise 1.
SPIKE = 1.0
# Coefficients are found to so much, from half of the asymptotic floor up to so many times that.
ACCURACY, MOST = 1.02, 12.0
RATES = np.geomspace(2e-4, 0.2, 16)


def recovery(setting, seeds, data, *, against, fixed, values, runs):
    """The coefficient with which each method finds all true features in half of the runs.

    Features of correlation 1/2, whose own part has variance 1, a tenth of them true with the same
    coefficient; noise 1. Beside it the information floor, its asymptotic form, and the laws of
    OLSth and SGDT, all at probability 1/2. In the panels "Over the floor" all are divided by it.

    A run keeps its random numbers while the coefficient is bisected; the height is the median over
    the runs. SGDT has the step that is best by its law, SFSA its automatic one; both see each row
    once, and fit no intercept. All are told k.

    Parameters
    ----------
    against : {"n", "p"}
        What `values` are: numbers of rows, or of features.
    fixed : int
        The other one.
    values : sequence of int
    runs : int
        Of which the median is drawn.
    """
    other = {"n": "p", "p": "n"}[against]
    panel = f"{other} = {fixed:,}"
    for x, child in zip(values, seeds.spawn(len(values)), strict=True):
        size = {against: x, other: fixed}
        n, p, k = size["n"], size["p"], size["p"] // 10
        heights, floor = _laws(n, p, k), bounds.information_floor(n, p, k, delta=0.5)
        found = [_found(n, p, k, seed) for seed in child.spawn(runs)]
        for curve in found[0]:
            middle = float(np.median([run[curve] for run in found]))
            heights[curve] = partial(within, middle, n, p, k, "half of the runs")
        for curve, height in heights.items():
            yield point(panel, x, curve, height)
            yield point(f"Over the floor, {panel}", x, curve, partial(_over, floor, height))


def _laws(n, p, k):
    """By curve: what computes it."""
    half = {"delta": 0.5}
    return {
        "information floor": partial(bounds.information_floor, n, p, k, **half),
        "floor, asymptotic": partial(bounds.information_floor_asymptotic, n, p, k),
        "OLSth, law": partial(bounds.olsth_beta_min, n, p, k, spike=SPIKE, **half),
        "OFSA, law": partial(bounds.ofsa_beta_min, n, p, k, **half),
        "SGDT, law": lambda: _best_descent(n, p, k)[0],
        "SFSA, step of SGDT, law": lambda: _annealed(n, p, k),
    }


def _annealed(n, p, k):
    rate = _best_descent(n, p, k)[1]
    return bounds.sfsa_beta_min(n, p, k, rate, spike=SPIKE, warmup=n // 2, delta=0.5)


def _best_descent(n, p, k):
    """The least coefficient of SGDT, and the step with which it has it."""
    found = _descents(n, p, k)
    bounds.statements.require(bool(found), "no step of SGDT finds the features")
    return min(found)


@cache
def _descents(n, p, k):
    """The least coefficients of SGDT, each with its step; none where no step will do."""
    found = []
    for rate in RATES:
        try:
            beta = bounds.sgdt_beta_min(n, p, k, float(rate), spike=SPIKE, delta=0.5)
        except DoesNotApply:
            continue
        found.append((beta, float(rate)))
    return found


def _over(floor, height):
    return height() / floor


def within(height: float, n: int, p: int, k: int, where: str) -> float:
    """The coefficient, if one was found; else DoesNotApply, which says in what none was."""
    most = MOST * bounds.information_floor_asymptotic(n, p, k)
    bounds.statements.require(height < inf, f"not found in {where} up to {most:.3g}")
    return height


def _found(n, p, k, seed):
    """The least coefficient that each method finds in this run; inf where none does."""
    truth = np.arange(p) < k
    law = LowRank(np.ones(p), np.ones((p, 1)))
    moments, rows = seed.spawn(2)

    @cache
    def averages(beta):
        return sample_averages(n, law, beta * truth, 1.0, random_state=moments)

    rng = np.random.default_rng(rows)
    X = rng.standard_normal((n, p)) + sqrt(SPIKE) * rng.standard_normal((n, 1))
    signal, noise = X[:, :k].sum(axis=1), rng.standard_normal(n)

    def of_averages(method, beta):
        return method(k=k).fit_averages(averages(beta), copy=False).coef_

    def of_rows(model, beta):
        return model.fit(X, beta * signal + noise).coef_

    learners = {
        "OFSA": partial(of_averages, ofslib.OFSARegressor),
        "Lasso": partial(of_averages, ofslib.OnlineLassoRegressor),
        "MCP": partial(of_averages, ofslib.OnlineMCPRegressor),
        "SFSA": partial(of_rows, ofslib.SFSARegressor(k=k, fit_intercept=False, shuffle=False)),
    }
    try:
        rate = _best_descent(n, p, k)[1]
    except DoesNotApply:
        pass
    else:
        own = {"k": k, "learning_rate": rate, "fit_intercept": False, "shuffle": False}
        learners["SGDT"] = partial(of_rows, ofslib.SGDTRegressor(**own))
        annealing = ofslib.SFSARegressor(**own, warmup=n // 2)
        learners["SFSA, step of SGDT"] = partial(of_rows, annealing)
    start = bounds.information_floor_asymptotic(n, p, k) / 2
    found = {name: least_found(learn, truth, start) for name, learn in learners.items()}
    if n > p + 1:
        errors = sample_ols(n, law, np.zeros(p), 1.0, rng, 1)
        found["OLSth"] = least_beta(errors, k)
    return found


def least_found(learn: Callable[[float], np.ndarray], truth, start):
    """By bisection of the logarithm: a coefficient that is found, and one a little less is not."""

    def succeeds(beta):
        with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
            return np.array_equal(learn(beta) != 0, truth)

    low, high = start, 2 * MOST * start
    if not succeeds(high):
        return inf
    while high > ACCURACY * low:
        middle = sqrt(low * high)
        low, high = (low, middle) if succeeds(middle) else (middle, high)
    return high
