"""How many of the features that are chosen are false, and how many of the true ones are found."""

from collections.abc import Callable

import numpy as np
from scipy import stats

from ofslib import OLSthRegressor, RunningAverages, select_by_knockoffs
from ofslib.averages import Standardized
from ofslib.reproduction.studies import tidy
from ofslib.wishart import LowRank, sample_averages

Rule = Callable[[RunningAverages, np.random.RandomState], np.ndarray]


def discoveries(setting, seeds, data, *, p, fdr, runs, usual, values):
    """Mean over runs of the share of false ones among the chosen, and of found among the true.

    Features have variance 1 and equal correlations; a tenth of them have the same coefficient;
    noise 1. The averages of the rows are drawn, all rules see the same. Rows have
    columns x, method, metric ("FDR" or "power", in percent) and value.

    Parameters
    ----------
    p : int
        Features.
    fdr : float
        The bound on the false discovery rate.
    runs : int
        Runs that a replicate is the mean of.
    usual : mapping
        n, beta and correlation where they are not varied.
    values : sequence of float
        Of what is varied, which is an axis of the entry.
    """
    rules = _rules(fdr)
    true = np.arange(0, p, 10)
    for x in values:
        now = {**usual, setting["data"]["varied"]: x}
        rng = np.random.default_rng(seeds)
        rho, beta = float(now["correlation"]), np.zeros(p)
        beta[true] = now["beta"]
        law = LowRank(np.full(p, 1.0 - rho), np.full((p, 1), np.sqrt(rho)))
        scores = {name: [] for name in rules}
        for _ in range(runs):
            averages = sample_averages(int(now["n"]), law, beta, 1.0, random_state=rng)
            draw = np.random.RandomState(rng.integers(2**32))
            for name, rule in rules.items():
                scores[name].append(shares(rule(averages, draw), true))
        for name, both in scores.items():
            false, found = 100.0 * np.mean(both, axis=0)
            yield from tidy({"FDR": false, "power": found}, x=x, method=name)


def shares(chosen: np.ndarray, true: np.ndarray) -> tuple[float, float]:
    """The share of false ones among the chosen (0 of none), and of chosen among the true."""
    found = np.intersect1d(chosen, true).size
    return (len(chosen) - found) / max(1, len(chosen)), found / len(true)


def _rules(fdr) -> dict[str, Rule]:
    return {
        "knockoffs": lambda a, draw: select_by_knockoffs(a, fdr, 1, draw).support,
        "knockoffs, 10 draws": lambda a, draw: select_by_knockoffs(a, fdr, 10, draw).support,
        "least squares, BH": lambda a, draw: benjamini_hochberg(a.standardized(), fdr),
        "OLSth, AIC": lambda a, draw: _by("aic", a),
        "OLSth, BIC": lambda a, draw: _by("bic", a),
        "OLSth, extended BIC": lambda a, draw: _by("ebic", a),
    }


def _by(criterion, averages):
    return OLSthRegressor(k=criterion).fit_averages(averages, copy=False).support_


def benjamini_hochberg(standard: Standardized, fdr: float) -> np.ndarray:
    """Features by the p-values of least squares and the procedure of Benjamini and Hochberg."""
    S, free = standard.S_xx, standard.n - 1 - len(standard.scale)
    inverse = np.linalg.inv(S)
    coef = inverse @ standard.S_xy
    variance = (standard.S_yy - coef @ standard.S_xy) / free
    t = coef / np.sqrt(variance * np.diagonal(inverse))
    return np.flatnonzero(stats.false_discovery_control(2 * stats.t.sf(np.abs(t), free)) <= fdr)
