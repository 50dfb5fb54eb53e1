"""The smallest coefficient with which least squares finds the true features.

Dissertation, Figures 5.2 and 5.3. An estimate that selects the largest entries of
beta on the true features plus an error succeeds from an exact value of beta on, which the error
alone determines: no search over beta is needed, and all beta share the random numbers.
"""

from collections.abc import Iterator, Sequence
from functools import cache, partial
from math import floor, log, sqrt
from typing import Any

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


def least_squares(
    setting: dict[str, Any],
    seeds: np.random.SeedSequence,
    data: None,
    *,
    against: str,
    values: Sequence[int],
    runs: int,
) -> Iterator[dict[str, Any]]:
    """The bounds, the exact law, and an experiment, all without an intercept.

    Features of correlation 1/2, a tenth of them true, noise 1. The experiment looks for the
    smallest beta on the grid from the corrected (3.12) down that finds all true features in each of
    its runs. The exact law is at the probability 1 - 2 / p, that of (3.12) with standardised
    features (Remark 2), where the smallest eigenvalue is half of that of the features.

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
        rng = np.random.default_rng(seeds)
        for curve, height in _experiment(**size, runs=runs, rng=rng).items():
            yield point(panel, x, curve, height)
        for variant in VARIANTS:
            unit = {"sigma": 1.0, "smallest": 1.0, "variance": 2.0}
            theorem = partial(bounds.dissertation_theorem_2, **size, **unit, variant=variant)
            yield point(panel, x, f"(3.14), {variant}", number(theorem, "beta_min"))
        yield point(panel, x, "exact law", _exact(**size))


def _experiment(n, p, runs, rng):
    law = LowRank(np.ones(p), np.ones((p, 1)))
    errors = sample_ols(n, law, np.zeros(p), 1.0, rng, runs, fit_intercept=False)
    smallest, _ = sample_extreme_eigenvalues(n, p, 1.0, rng, centred=False)
    heights = {}
    for variant in VARIANTS:
        # With standardised features, of variance 1 instead of 2: as printed the promise is empty
        # for others (C1 = 2 / C), and as corrected it is the same.
        found = bounds.dissertation_corollary_2(n, p, 1.0, smallest / (2 * n), variant=variant)
        heights[f"(3.12), {variant}"] = found.beta_min / sqrt(2)
    start = heights["(3.12), corrected"]
    return heights | {"experiment": on_grid(least_beta(errors, p // 10), start)}


@cache
def _exact(n, p):
    return bounds.olsth_beta_min(n, p, p // 10, 1.0, 1.0, 2 / p, fit_intercept=False)
