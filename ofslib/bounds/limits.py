"""What no method can find, and what the Lasso needs beside it: docs/theory."""

from functools import lru_cache
from math import exp, log, sqrt
from typing import NamedTuple

import numpy as np
from numpy.polynomial.legendre import leggauss
from scipy.interpolate import CubicSpline
from scipy.optimize import brentq
from scipy.special import comb, log_ndtr
from scipy.stats import chi2

from ofslib.bounds.statements import check, check_delta, check_sizes, check_spike, require

# Found once for each number of nodes: they take as long as all else of a quadrature.
legendre = lru_cache(leggauss)


class Thresholds(NamedTuple):
    """Numbers of rows: the Lasso fails below `lower` and succeeds above `upper`."""

    lower: float
    upper: float


def information_floor_probability(beta: float, n: int, p: int, k: int, sigma: float = 1.0) -> float:
    """Probability of finding the support that no method exceeds, the coefficients being known.

    The rows are N(0, I + spike 11'), for any spike: the floor does not depend on it. A method is
    any function of the rows, and may know beta, sigma, k, the covariance and that the intercept is
    0; its probability is the mean over all supports, which for a method that treats features alike
    is that of each. It is the exact probability, to about 1e-6, with which the truth beats one
    support that the proof names (docs/theory): a bound, not the best method's own probability.

    Parameters
    ----------
    beta : float
        True coefficient, equal on all k features, positive; label over feature. The part of a
        feature that is its own has variance 1.
    n, p, k : int
        Rows, at least 2, features, true features; k < p.
    sigma : float, default=1.0
        Standard deviation of the noise, in the unit of the labels.

    Returns
    -------
    float
        In [0, 1].

    Raises
    ------
    ValueError, TypeError
        If k >= p or n < 2; and as in `ofslib.bounds`.

    Examples
    --------
    >>> round(information_floor_probability(0.3, 300, 200, 20), 3)
    0.85
    """
    check_sizes_of_rows(n, p, k)
    check(beta=beta, sigma=sigma)
    return _floor_probability(beta / sigma, n, p, k)


def information_floor(n: int, p: int, k: int, sigma: float = 1.0, delta: float = 0.05) -> float:
    """Smallest coefficient, equal on k features, with which any method can find all k.

    With probability 1 - `delta`, by `information_floor_probability`, whose other arguments these
    are. With less, every method fails more often.

    Parameters
    ----------
    delta : float, default=0.05
        Probability of missing a feature, in (0, 1).

    Returns
    -------
    float
        In units of a coefficient, label over feature.

    Raises
    ------
    DoesNotApply
        If the bound is met by coefficients of 0: 1 - `delta` is near the level of chance.
    ValueError, TypeError
        If k >= p, n < 2 or delta >= 1; and as in `ofslib.bounds`.

    Examples
    --------
    >>> round(information_floor(10_000, 1000, 100, delta=0.5), 4)
    0.0566
    """
    check_sizes_of_rows(n, p, k)
    check(sigma=sigma)
    about = near_floor(n, p)
    return sigma * least(lambda beta: _floor_probability(beta, n, p, k), p, k, delta, about)


def information_floor_asymptotic(n: int, p: int, k: int, sigma: float = 1.0) -> float:
    """The limit of `information_floor` for many rows and features, whatever the probability.

    sigma (sqrt(2 log(p - k)) + sqrt(2 log k)) / sqrt(n): the threshold of exact recovery of Ndaoud
    and Tsybakov (2020), for independent features of variance 1.

    Parameters
    ----------
    n, p, k : int
        Rows, at least 2, features, true features; k < p.
    sigma : float, default=1.0
        Standard deviation of the noise, in the unit of the labels.

    Returns
    -------
    float
        In units of a coefficient, label over feature.

    Raises
    ------
    ValueError, TypeError
        If k >= p or n < 2; and as in `ofslib.bounds`.

    Examples
    --------
    >>> round(information_floor_asymptotic(10_000, 1000, 100), 4)
    0.0672
    """
    check_sizes_of_rows(n, p, k)
    check(sigma=sigma)
    return sigma * (sqrt(2 * log(p - k)) + sqrt(2 * log(k))) / sqrt(n)


def lasso_rows(p: int, k: int, spike: float = 0.0) -> Thresholds:
    """Rows that the Lasso needs to find k features, however large their coefficients are.

    Wainwright (2009), Theorems 3 and 4, for rows N(0, I + spike 11') and coefficients of one sign:
    2 theta k log(p - k) rows, where theta has a lower and an upper value that agree for independent
    features. A limit for large p and k: the probability tends to 0 below, and to 1 above if the
    coefficients are large enough besides.

    Parameters
    ----------
    p, k : int
        Features, true features; k < p.
    spike : float, default=0.0
        Covariance of any two features, at least 0.

    Returns
    -------
    Thresholds
        In rows.

    Raises
    ------
    ValueError, TypeError
        If k >= p or spike < 0; and as in `ofslib.bounds`.

    Examples
    --------
    >>> rows = lasso_rows(1000, 100, spike=1.0)
    >>> round(rows.lower), round(rows.upper)
    (3, 14015654)
    """
    check_sizes_of_rows(2, p, k)
    check_spike(spike)
    # Of the k true features: eigenvalues. Of the others, given these: variance and half
    # that of a difference. 1 - ||Sigma_(false, true) Sigma_true^-1||_inf: incoherence.
    most, given, incoherence = 1 + spike * k, 1 + spike / (1 + spike * k), 1 / (1 + spike * k)
    smallest, needed = most if k == 1 else 1, 2 * k * log(p - k)
    lower = needed / (most * (2 - incoherence) ** 2)
    return Thresholds(lower, needed * given / (smallest * incoherence**2))


def check_sizes_of_rows(n, p, k):
    """As `check_sizes`; ValueError for fewer than two rows too."""
    check_sizes(n, p, k)
    if n < 2:
        raise ValueError(f"n={n} must be at least 2")


def near_floor(n, p):
    """Where `least` may begin, for errors of the size that n rows give."""
    return (sqrt(2 * log(p)) + 1) / sqrt(n)


def least(probability, p, k, delta, about):
    """The coefficient, over sigma, at which a probability crosses 1 - delta, nearest to `about`.

    The smallest that has it, where the probability rises with the coefficient.
    """
    check_delta(delta)
    chance = 1 / comb(p, k)
    require(1 - delta > chance, f"1 - delta = {1 - delta:g} <= {chance:.3g}, the chance level")

    def excess(log_beta):
        return probability(exp(log_beta)) - (1 - delta)

    start = lower = upper = log(about)
    while excess(lower) > 0:
        lower -= 0.5
        require(lower > start - 20, f"any coefficient has a probability of {1 - delta:g}")
    while excess(upper) < 0:
        upper += 0.5
        require(upper <= start + 7, f"no coefficient has a probability of {1 - delta:g}")
    return exp(brentq(excess, lower, upper, xtol=1e-9))


# The floor


@lru_cache(maxsize=8)
def _extremes(p, k):
    """Distribution function of the largest of p - k plus the largest of k normal numbers."""
    m, h = np.linspace(-9, 12, 2101), np.linspace(-18, 24, 841)
    log_density = log(p - k) + (p - k - 1) * log_ndtr(m) - m**2 / 2 - log(2 * np.pi) / 2
    below = np.exp(k * log_ndtr(h[:, None] - m) + log_density)
    return CubicSpline(h, below.sum(axis=1) * (m[1] - m[0]))


def _floor_probability(ratio, n, p, k):
    """P(ratio (h^2 + 2 q) > 2 r h), h as in `_extremes`, r^2 and q chi^2: n and n - 1 degrees."""
    below = _extremes(int(p), int(k))
    (r_square, r_weight), (q, q_weight) = (_chi_square(freedom) for freedom in (n, n - 1))
    gap = r_square[:, None] - 2 * ratio**2 * q
    root = np.sqrt(np.maximum(gap, 0))
    h = (np.sqrt(r_square)[:, None] + np.array([-root, root])) / ratio
    first, second = np.clip(below(np.clip(h, -18, 24)), 0, 1)
    found = np.where(gap > 0, first + 1 - second, 1.0)
    return float(r_weight @ found @ q_weight)


@lru_cache(maxsize=32)
def _chi_square(freedom):
    """Nodes and weights for the law of chi^2."""
    node, weight = legendre(96)
    low, high = np.log(chi2.ppf(1e-12, freedom)), np.log(chi2.isf(1e-12, freedom))
    log_square = low + (high - low) * (node + 1) / 2
    weight = weight * np.exp(chi2.logpdf(np.exp(log_square), freedom) + log_square)
    return np.exp(log_square), weight / weight.sum()
