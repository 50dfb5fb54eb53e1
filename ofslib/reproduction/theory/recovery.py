"""The smallest coefficient with which least squares finds the true features.

Dissertation, Figures 5.2 and 5.3. An estimate that selects the largest entries of
beta on the true features plus an error succeeds from an exact value of beta on, which the error
alone determines: no search over beta is needed, and all beta share the random numbers.
"""

from functools import cache, partial
from math import floor, log, sqrt

import numpy as np

from ofslib import bounds
from ofslib.reproduction.theory.curve import VARIANTS, number, point
from ofslib.wishart import LowRank, sample_extreme_eigenvalues, sample_ols

# The dissertation looks for the smallest beta on the grid beta_0 * 0.9^i.
GRID = 0.9


def least_beta(errors: np.ndarray, k: int) -> float:
    """Smallest beta that finds the first k features in every run, all k having this coefficient.

    Parameters
    ----------
    errors : ndarray of shape (runs, p)
        Of the estimate.
    k : int
        True features.
    """
    return float(np.max(np.abs(errors[:, k:]).max(axis=1) - errors[:, :k].min(axis=1)))


def on_grid(beta: float, start: float) -> float:
    """The smallest number of the grid start * 0.9^i that is not below beta."""
    return start * GRID ** floor(log(start / beta) / -log(GRID) + 1e-9)


def least_squares(setting, seeds, data, *, against, values, runs):
    """The bounds, the exact law, and an experiment, all without an intercept.

    Features of correlation 1/2 and variance 2, a tenth of them true, noise 1. The experiment looks
    for the smallest beta on the grid from the corrected (3.12) down that finds all true features
    in each of its runs. "exact law, all runs" is where that has probability 1/2: where one run
    succeeds with 2^(-1 / runs). With less than "information floor" no method that treats features
    alike does so as often: it is for the same probability, and for one that knows the coefficient.

    (3.12) is drawn literally, and as Remark 2 has it, for standardised features: their smallest
    eigenvalue is half as large, the coefficients are sqrt(2) times, so that it is sqrt(2) times the
    literal one. Only Remark 2 promises anything here: mean squares near 2 make (3.12) a promise of
    probability 1 - 2 p^0. Corrected over Remark 2 is 2 sqrt(lambda), lambda the smallest
    eigenvalue of the standardised features, which grows from 0 to 1/2 with the rows: they cross
    where it is 1/4, near 12 rows a feature.

    In the panels "Over the law" all are divided by the exact law at their own probability:
    that of the experiment and the floor, and 1 - 2 / p, which Remark 2 claims, for bounds. In those
    "Linear" are 6 to 100 rows a feature, as in the left part of Figure 5.3.

    Parameters
    ----------
    against : {"p", "n"}
        What `values` are: numbers of features or of rows. The other one is an axis of the entry.
    values : sequence of int
    runs : int
        Runs of an experiment, all of which must succeed.
    """
    other = "n" if against == "p" else "p"
    for x in values:
        size = {against: x, other: setting["data"][other]}
        panel = f"{other} = {size[other]:,}"
        # The same random numbers for all n: the errors differ by their scale only.
        heights = _heights(**size, runs=runs, rng=np.random.default_rng(seeds))
        of_all, of_bounds = 0.5 ** (1 / runs), 1 - 2 / size["p"]
        heights["information floor"] = _floor(**size, probability=of_all)
        laws = {level: _exact(**size, probability=level) for level in (of_all, of_bounds)}
        for curve, height in heights.items():
            yield point(panel, x, curve, height)
            law = laws[of_all if curve in ("experiment", "information floor") else of_bounds]
            yield point(f"Over the law, {panel}", x, curve, _divided(height, law))
            if against == "n" and 6 <= x / size["p"] <= 100:
                yield point(f"Linear, {panel}", x, curve, height)
        yield point(panel, x, "exact law, all runs", laws[of_all])
        yield point(f"Over the law, {panel}", x, "exact law", 1.0)


def _divided(height, law):
    return (lambda: height() / law) if callable(height) else height / law


def _heights(n, p, runs, rng):
    """The experiment and the bounds, by curve: a number, or what computes it."""
    law = LowRank(np.ones(p), np.ones((p, 1)))
    errors = sample_ols(n, law, np.zeros(p), 1.0, rng, runs, fit_intercept=False)
    smallest = sample_extreme_eigenvalues(n, p, 1.0, rng, centred=False)[0] / n
    literal = bounds.dissertation_corollary_2(n, p, 1.0, smallest, variant="printed").beta_min
    standard = {
        variant: bounds.dissertation_corollary_2(n, p, 1.0, smallest / 2, variant=variant)
        for variant in VARIANTS
    }
    start = standard["corrected"].beta_min / sqrt(2)
    heights = {
        "experiment": on_grid(least_beta(errors, p // 10), start),
        "(3.12), literal": literal,
        "Remark 2, printed": standard["printed"].beta_min / sqrt(2),
        "(3.12), corrected": start,
    }
    unit = {"sigma": 1.0, "smallest": 1.0, "variance": 2.0}
    theorem = partial(bounds.dissertation_theorem_2, n, p, **unit)
    return heights | {
        "(3.14), literal": partial(_literal_3_14, n, p),
        "(3.14), corrected": number(theorem, "beta_min"),
    }


def _literal_3_14(n, p):
    """(3.12) with the eigenvalue that (3.14) has for a covariance I + 11'."""
    root = 0.8 - 2 * sqrt(p / n)
    if root <= 0:
        raise bounds.DoesNotApply(f"does not apply: n/p = {n / p:.4g} <= 6.25")
    return bounds.dissertation_corollary_2(n, p, 1.0, root**2, variant="printed").beta_min


@cache
def _exact(n, p, probability):
    return bounds.olsth_beta_min(n, p, p // 10, 1.0, 1.0, 1 - probability, fit_intercept=False)


@cache
def _floor(n, p, probability):
    return bounds.information_floor(n, p, p // 10, delta=1 - probability)
