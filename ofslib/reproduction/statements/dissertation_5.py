"""Sun (2019), dissertation, Chapter 5, and Appendix B: rows that need not be Gaussian."""

from math import log, sqrt

import numpy as np
from scipy.linalg import hadamard
from scipy.stats import binom

from ofslib import bounds
from ofslib.reproduction.statements.dissertation_2 import (
    CONDITION,
    ETA,
    RHO,
    ROWS,
    SETTING,
    TRUTH,
    steps_printed,
)
from ofslib.reproduction.statements.dissertation_3 import shares_found
from ofslib.reproduction.statements.statement import Paper, applies, selects, shown

CHAPTER_5 = Paper("dissertation")


@CHAPTER_5.states(
    "Lemma 5",
    "P(|sum D_i| >= t) <= 2 exp(-t^2 / (2 sum sigma_i^2)) for a martingale (Azuma)",
    true=True,
    informative=True,
)
def lemma_5():
    """Against the exact law of a sum of 400 signs: never below it, and below 1 from t = 24 on."""
    t = np.arange(2, 402, 2)
    tail, bound = 2 * binom.sf((400 + t) / 2 - 1, 400, 0.5), 2 * np.exp(-(t**2) / 800)
    ours = bounds.dissertation_lemma_5(100.0, np.ones(400))
    return shown(
        np.all(tail <= bound), bound[49] < 1, abs(ours - bound[49]) < 1e-12, at_100=bound[49]
    )


@CHAPTER_5.states(
    "Proposition 6",
    "(3.12) for rows that need not be Gaussian, with probability 1 - 2 p^(1 - 2 / M)",
    true=False,
    informative=False,
    applies="features below sqrt(M), M < 2",
    corrected="raw coefficients are ranked; the threshold is 4 (sigma / lambda) "
    "sqrt(M p log(p) / n), the probability 1 - 2 / p",
)
def proposition_6():
    """100 columns of a Hadamard matrix of 128 rows, k = 10, M just above 1: found in .547 of the
    runs (exactly; here of 4000), .98 claimed. Gaussian features exceed any M."""
    n, p, k, M = 128, 100, 10, 1.001
    X, rng = hadamard(n)[:, :p], np.random.default_rng(0)
    errors = rng.normal(size=(4000, n)) @ X / n
    ours = bounds.dissertation_proposition_6(n, p, 1.0, 1.0, M)
    found = [
        np.mean(selects(errors + beta * (np.arange(p) < k), k))
        for beta in (2 * sqrt(log(p) / n), ours.beta_min)
    ]
    claimed = 1 - 2 * p ** (1 - 2 / M)
    return shown(
        true=found[0] >= claimed,
        informative=np.max(np.abs(rng.normal(size=1000))) ** 2 < 2,
        corrected=found[1] >= ours.probability,
        claimed=claimed,
        found=found[0],
        corrected_finds=found[1],
    )


@CHAPTER_5.states(
    "Proposition 7",
    "Corollary 3 for rows that need not be Gaussian, with probability 1 - 2 p^(1 - 2 / M)",
    true=False,
    informative=False,
    applies="Corollary 3, and features below sqrt(M), M < 2",
    corrected="sqrt(M) times the threshold, probability 1 - 2 / p, and as Corollary 3",
)
def proposition_7():
    """40 rows of signs whose X'X / n is that of Proposition 1, noise 1e-4, the paper's schedule
    (mu = 10) in the printed 6 steps: found in 0 of 200 runs, at least .33 claimed; corrected, in
    all."""
    M, ratio, n = 1.001, float(np.linalg.norm(TRUTH)) / 0.05, len(ROWS)
    rng = np.random.default_rng(0)
    moments = [
        (ROWS.T @ ROWS / n, 1e-4 * ROWS.T @ noise / n) for noise in rng.normal(size=(200, n))
    ]
    rest = {"norm_ratio": ratio, "square_bound": M}
    ours = bounds.dissertation_proposition_7(n, 3, 1e-4, **SETTING, **rest)
    found = shares_found(moments, steps_printed(10 * ratio), ours.iterations)
    least = 4e-4 * ETA / (1 - 1.62 * RHO) * sqrt(3 * log(3) / n)
    claimed = 1 - 2 * 3 ** (1 - 2 / M)
    large = 10**6, 1000, 1.0, 1e-6, 1.0, CONDITION, 10.0, M
    return shown(
        true=found[0] >= claimed or least >= 0.05,
        informative=applies(bounds.dissertation_proposition_7, *large),
        corrected=found[1] >= ours.probability and 0.05 > ours.beta_min,
        claimed=claimed,
        found=found[0],
        corrected_finds=found[1],
        threshold=least,
    )


@CHAPTER_5.states(
    "Eq. (5.1)",
    "beta_tj = a sin(2 pi (t - 100 j) / T) + b, j = 1 .. 10, gives Table 5.5",
    true=False,
)
def equation_5_1():
    """The phases spread evenly over the period: the expected error of the average model is at most
    1.51 at any time, and Table 5.5 has 2.280 for "the last few hundred steps". With all
    coefficients in phase it is 2.26 over the last 150 steps, 3.55 over 300."""
    t, j = np.arange(1, 1001)[:, None], np.arange(1, 11)
    errors = []
    for phase in (100 * j, 0 * j):
        beta = 0.4 * np.sin(2 * np.pi * (t - phase) / 1000) + 0.6
        away = beta - np.cumsum(beta, axis=0) / t
        errors.append(np.sqrt(1 + np.sum(away**2, axis=1) + np.sum(away, axis=1) ** 2))
    return shown(
        true=errors[0].max() >= 2.28,
        largest=errors[0].max(),
        in_phase_last_150=errors[1][-150:].mean(),
        in_phase_last_300=errors[1][-300:].mean(),
    )
