"""The law of what OLSth selects; of our own: docs/theory/own.md."""

from functools import lru_cache
from math import sqrt

import numpy as np
from numpy.polynomial.hermite_e import hermegauss
from numpy.polynomial.legendre import leggauss
from scipy.interpolate import CubicSpline
from scipy.special import ndtr
from scipy.stats import chi2
from scipy.stats import t as student

from ofslib.bounds.limits import least
from ofslib.bounds.statements import (
    check,
    check_delta,
    check_sizes,
    check_spike,
    degrees_of_freedom,
)

# Below so many features `_selection_curve` needs more nodes for v, and fewer for m.
FEW = 10


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


def probability_selected(ratio, freedom, p, k, spike):
    """P(all k selected), the coefficient over sigma being `ratio`: the mean over chi."""
    ends = np.log(chi2.ppf(1e-15, freedom)), np.log(chi2.isf(1e-15, freedom))
    log_square = np.linspace(*ends, 513)
    weight = np.exp(chi2.logpdf(np.exp(log_square), freedom) + log_square)
    ratio = np.minimum(ratio * np.exp(log_square / 2), 18)
    selected = _selection_curve(int(p), int(k), float(spike))(ratio)
    return float(np.clip(weight @ selected / weight.sum(), 0, 1))


def least_selected(freedom, p, k, spike, delta):
    """The coefficient, over sigma, with which all are selected with probability 1 - delta."""
    # By the union bound: half of it for each error.
    enough = 2 * sqrt(1 / freedom) * student.isf(delta / (2 * p - k), freedom)
    return least(
        lambda ratio: probability_selected(ratio, freedom, p, k, spike), p, k, delta, enough
    )


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

    Exact for `OLSthRegressor(ranking="raw")`, from the law of the error (docs/explain/averages.md:
    multivariate t); by quadrature, to about 1e-6, above p = 2. The rows are N(0, I + spike 11'). As
    all variances are equal, the default `ranking="standardized"` has nearly the same probability:
    from 15 to 300 rows at most .02 less was found.

    Parameters
    ----------
    beta : float
        True coefficient, equal and of one sign on all k features, positive; label over feature.
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
    check_sizes(n, p, k)
    freedom = degrees_of_freedom(n, p, fit_intercept)
    check(beta=beta, sigma=sigma)
    check_spike(spike)
    return probability_selected(beta / sigma, freedom, p, k, spike)


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

    With probability 1 - `delta`, by `olsth_recovery_probability`, whose other arguments and
    conditions these are. It is sharp: with less, OLSth fails more often.

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
    check_sizes(n, p, k)
    freedom = degrees_of_freedom(n, p, fit_intercept)
    check(sigma=sigma)
    check_spike(spike)
    check_delta(delta)
    return sigma * least_selected(freedom, p, k, spike, delta)
