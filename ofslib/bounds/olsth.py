"""The exact law of what OLSth selects, which is in none of the papers: docs/bounds.md."""

from functools import lru_cache
from math import exp, log, sqrt

import numpy as np
from numpy.polynomial.hermite_e import hermegauss
from numpy.polynomial.legendre import leggauss
from scipy.interpolate import CubicSpline
from scipy.optimize import brentq
from scipy.special import comb, ndtr
from scipy.stats import chi2
from scipy.stats import t as student

from ofslib.bounds.statements import check, check_numbers, require

# Below so many features `_selection_curve` needs more nodes for v, and fewer for m.
FEW = 10


def _degrees_of_freedom(n, p, k, fit_intercept):
    check({"n": n, "p": p, "k": k})
    if not k < p:
        raise ValueError(f"k={k} must be below p={p}")
    fitted = p + bool(fit_intercept)
    require(n > fitted, f"n = {n} <= {fitted} fitted coefficients")
    return n - fitted + 1


@lru_cache(maxsize=8)
def _selection_curve(p, k, spike):
    """P(all k selected) as a function of the coefficient over the scale of its error, on [0, 18].

    The errors w have covariance I - c 11': as if w = z + i sqrt(c) v 1, z and v standard normal, of
    which the product over the independent z is averaged over v. The integral is over the largest
    |w| of the others, m. Two features of strong correlation have errors of nearly the same size,
    for which no quadrature is fine enough: |r + w_1| > |w_2| where the sum and the difference of
    r + w_1 and w_2, which are independent, have the same sign.
    """
    c = spike / (1 + spike * p)
    if p == 2:

        def selected_of_two(ratio):
            add, subtract = ndtr(ratio / sqrt(2 / (1 + 2 * spike))), ndtr(ratio / sqrt(2))
            return add * subtract + (1 - add) * (1 - subtract)

        return selected_of_two
    v, weight_v = hermegauss((48 if p < FEW else 24) if c else 1)
    v, weight_v = v[v >= 0], np.where(v > 0, 2, 1)[v >= 0] * weight_v[v >= 0] / sqrt(2 * np.pi)
    m, weight_m = leggauss(120 if p < FEW else 200)
    m, weight_m = 4.5 * (m + 1), 4.5 * weight_m
    shift = 1j * sqrt(c) * v[:, None]
    below = 2 * ndtr(m + shift).real - 1
    density = 2 * np.exp(-((m + shift) ** 2) / 2).real / sqrt(2 * np.pi)
    largest = (p - k) * below ** (p - k - 1) * density * weight_m * weight_v[:, None]
    ratio = np.linspace(0, 18, 181)
    selected = [(ndtr(r - m + shift) + ndtr(-r - m - shift)) ** k for r in ratio]
    return CubicSpline(ratio, [(s.real * largest).sum() for s in selected])


def olsth_recovery_probability(
    beta: float,
    n: int,
    p: int,
    k: int,
    sigma: float = 1.0,
    spike: float = 0.0,
    fit_intercept: bool = True,
) -> float:
    """Probability that the k largest least-squares estimates are the k true features.

    Exact, from the law of the error (docs/wishart.md: multivariate t); by quadrature, to about
    1e-6, above p = 2. The rows are N(0, I + spike 11').

    Parameters
    ----------
    beta : float
        True coefficient, equal on all k features, positive; label over feature.
    n, p, k : int
        Rows, features, true features; k < p.
    sigma : float, default=1.0
        Standard deviation of the noise, in the unit of the labels.
    spike : float, default=0.0
        Covariance of any two features, at least 0 (alpha^2 of the papers' generator).
    fit_intercept : bool, default=True
        Whether an intercept was fitted, as by centring.

    Returns
    -------
    float
        In [0, 1].

    Raises
    ------
    DoesNotApply
        Unless n exceeds the number of fitted coefficients.
    ValueError, TypeError
        If k >= p or spike < 0; and as in `ofslib.bounds`.

    Examples
    --------
    >>> round(olsth_recovery_probability(0.1, 10_000, 1000, 100, spike=1.0), 4)
    1.0
    >>> round(olsth_recovery_probability(0.07, 10_000, 1000, 100, spike=1.0), 4)
    0.9018
    """
    freedom = _degrees_of_freedom(n, p, k, fit_intercept)
    check(beta=beta, sigma=sigma)
    check_numbers(spike=spike)
    if spike < 0:
        raise ValueError(f"spike={spike} must be at least 0 and finite")
    ends = np.log(chi2.ppf(1e-15, freedom)), np.log(chi2.isf(1e-15, freedom))
    log_square = np.linspace(*ends, 513)
    weight = np.exp(chi2.logpdf(np.exp(log_square), freedom) + log_square)
    ratio = np.minimum(beta / sigma * np.exp(log_square / 2), 18)
    selected = _selection_curve(int(p), int(k), float(spike))(ratio)
    return float(np.clip(weight @ selected / weight.sum(), 0, 1))


def olsth_beta_min(
    n: int,
    p: int,
    k: int,
    sigma: float = 1.0,
    spike: float = 0.0,
    delta: float = 0.05,
    fit_intercept: bool = True,
) -> float:
    """Smallest coefficient, equal on k features, with which OLSth finds all k.

    With probability 1 - `delta`, by `olsth_recovery_probability`, whose other arguments these are.
    It is sharp: with less, OLSth fails more often.

    Parameters
    ----------
    delta : float, default=0.05
        Probability of missing a feature, in (0, 1).

    Returns
    -------
    float
        In units of a coefficient, label over feature. Its probability is 1 - `delta` to about 1e-6:
        a `delta` as small as that gives no more than an order of magnitude.

    Raises
    ------
    DoesNotApply
        Unless n exceeds the number of fitted coefficients; if any choice of k features is right
        with that probability.
    ValueError, TypeError
        If k >= p, delta >= 1 or spike < 0; and as in `ofslib.bounds`.

    Examples
    --------
    >>> round(olsth_beta_min(10_000, 1000, 100, spike=1.0, delta=0.002), 4)
    0.0827
    """
    upper = olsth_beta_min_closed_form(n, p, k, sigma, 1.0, delta, fit_intercept)
    chance = 1 / comb(p, k)
    require(1 - delta > chance, f"1 - delta = {1 - delta:g} <= {chance:.3g}, the chance level")
    settings = n, p, k, sigma, spike, fit_intercept

    def excess(log_beta):
        return olsth_recovery_probability(exp(log_beta), *settings) - (1 - delta)

    lower = log(upper)
    while excess(lower) > 0:
        lower -= 1
    return exp(brentq(excess, lower, log(upper) + 1e-6, xtol=1e-9))


def olsth_beta_min_closed_form(
    n: int,
    p: int,
    k: int,
    sigma: float = 1.0,
    inverse_diagonal: float = 1.0,
    delta: float = 0.05,
    fit_intercept: bool = True,
) -> float:
    """A coefficient that suffices for any covariance and any signs: a quantile of Student's t.

    The other arguments are those of `olsth_recovery_probability`.

    Parameters
    ----------
    inverse_diagonal : float, default=1.0
        Largest diagonal entry of the inverse covariance of the features, at most one over its
        smallest eigenvalue, in units of one over a squared feature; 1 suffices for I + spike 11'.
    delta : float, default=0.05
        Probability of missing a feature, in (0, 1).

    Returns
    -------
    float
        In units of a coefficient, label over feature.

    Raises
    ------
    DoesNotApply
        Unless n exceeds the number of fitted coefficients.
    ValueError, TypeError
        If k >= p or delta >= 1; and as in `ofslib.bounds`.

    Examples
    --------
    >>> round(olsth_beta_min_closed_form(10_000, 1000, 100, delta=0.002), 4)
    0.1001
    """
    freedom = _degrees_of_freedom(n, p, k, fit_intercept)
    check(sigma=sigma, inverse_diagonal=inverse_diagonal, delta=delta)
    if not delta < 1:
        raise ValueError(f"delta={delta} must be below 1")
    quantile = student.isf(delta / (2 * p - k), freedom)
    return float(2 * sigma * sqrt(inverse_diagonal / freedom) * quantile)
