"""Least squares against Proposition 5 and Theorem 4 of the dissertation: regret over a stream."""

from functools import partial
from math import log

import numpy as np

from ofslib import bounds
from ofslib.averages import RunningAverages
from ofslib.reproduction.theory.curve import VARIANTS, number, point, points
from ofslib.reproduction.theory.recovery import least_beta, on_grid
from ofslib.reproduction.tracking import checkpoints
from ofslib.wishart import LowRank, sample_averages

FOUND = "Theorem 4: features kept"
# Rows from which the regret of Proposition 5 counts, n_0; features there.
FIRST, FEATURES = 50, 5


def least_squares(setting, seeds, data, *, rows, sizes, p, k, runs):
    """Both sides of Proposition 5; the threshold of Theorem 4 and what is never lost.

    Proposition 5 on 5 features of correlation 1/2, from row 50 on. Theorem 4 on independent ones:
    the smallest coefficient on a grid with which the true features are found in all runs at each of
    10 sizes a decade between n_0 and n, and that of our own which is enough at any time from n_0
    on, with the probability of the theorem.

    Parameters
    ----------
    rows : sequence of int
        Ends of the stream of Proposition 5.
    sizes : sequence of int
        Ends of the streams of Theorem 4, n.
    p, k : int
        Features and true features of Theorem 4.
    runs : int
        Runs, all of which must find them.
    """
    stream, many = (np.random.default_rng(child) for child in seeds.spawn(2))
    yield from _regret(rows, stream)
    yield from _coefficients(sizes, p, k, runs, many)


def _regret(rows, rng):
    n, p = max(rows), FEATURES
    X = rng.standard_normal((n, p)) + rng.standard_normal((n, 1))
    y = X @ np.ones(p) + rng.standard_normal(n)
    gram = np.cumsum(X[:, :, None] * X[:, None, :], axis=0)
    target = np.cumsum(X * y[:, None], axis=0)
    path = np.zeros((n + 1, p))
    path[p + 1 :] = np.linalg.solve(gram[p:], target[p:, :, None])[:, :, 0]
    scale = None
    for end in rows:
        sides = bounds.dissertation_proposition_5(X[:end], y[:end], path[: end + 1], FIRST)
        # The proof has log(n) for log(n / n_0).
        yield from points("Proposition 5", end, corrected=sides.right, experiment=sides.left)
        # What the rate is of, with the same value at the first end.
        scale = scale or sides.left * end / log(end)
        yield point("Proposition 5", end, "log(n) / n", scale * log(end) / end)


def _coefficients(sizes, p, k, runs, rng):
    found = {}
    for n in sizes:
        theorem = partial(bounds.dissertation_theorem_4, n, p, 1.0, 1.0, 1.0)
        found[n] = {variant: partial(theorem, variant=variant) for variant in VARIANTS}
    starts = {n: found[n]["corrected"]().iterations for n in sizes}
    ends = sorted({*starts.values(), *checkpoints(min(starts.values()), max(sizes), 10)})
    least = dict.fromkeys(ends, 0.0)
    design = LowRank(np.ones(p), np.zeros((p, 1)))
    for _ in range(runs):
        averages = RunningAverages(p)
        for end in ends:
            new = sample_averages(end - averages.n, design, np.zeros(p), 1.0, "regression", rng)
            averages.merge(new)
            error = np.linalg.solve(averages.S_xx, averages.S_xy)
            least[end] = max(least[end], least_beta(error[None], k))
    for n in sizes:
        for variant in VARIANTS:
            yield point(FOUND, n, variant, number(found[n][variant], "beta_min"))
        needed = max(value for end, value in least.items() if starts[n] <= end <= n)
        corrected = found[n]["corrected"]()
        same = {"delta": 1 - corrected.probability, "fit_intercept": False, "anytime": True}
        enough = bounds.olsth_beta_min_closed_form(starts[n], p, k, **same, ranking="raw")
        yield point(FOUND, n, "at any time", enough)
        yield point(FOUND, n, "experiment", on_grid(needed, corrected.beta_min))
