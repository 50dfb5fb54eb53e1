"""What least squares finds at least, by unions over pairs of features: docs/bounds.md.

The error of a sum or a difference of two estimates has Student's law with the scale that the
inverse covariance gives it, so that every term is exact. As the rows go on, such an error moves as
Brownian motion in its variance, backwards: n rows and all later ones fail at most twice as often.
"""

from math import comb, sqrt

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import cho_factor, cho_solve
from scipy.optimize import brentq, minimize_scalar
from scipy.stats import t as student

from ofslib.bounds.statements import (
    check,
    check_delta,
    check_sizes,
    degrees_of_freedom,
    read,
    require,
)


def olsth_beta_min_closed_form(
    n: int,
    p: int,
    k: int,
    sigma: float = 1.0,
    smallest: float = 1.0,
    delta: float = 0.05,
    fit_intercept: bool = True,
    anytime: bool = False,
) -> float:
    """A coefficient that suffices for any covariance and any signs: quantiles of Student's t.

    The smaller of two union bounds: over all pairs of a true and a false feature, or over all
    errors, of which true and false ones have the best shares of `delta` without quantiles below 0
    (of scales only the largest is known). Other arguments: as `olsth_recovery_probability`.

    Parameters
    ----------
    smallest : float, default=1.0
        Smallest eigenvalue of the covariance of the features, in units of a squared feature; 1 for
        I + spike 11'.
    delta : float, default=0.05
        Probability of missing a feature, in (0, 1).
    anytime : bool, default=False
        Whether all k shall be found at n rows and, of the same stream, at every larger number of
        rows. (By Levy's inequality that takes no more than half of `delta` does at n alone.)

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
    0.0835
    >>> round(olsth_beta_min_closed_form(10_000, 1000, 100, delta=0.002, anytime=True), 4)
    0.0852
    """
    check_sizes(n, p, k)
    freedom = degrees_of_freedom(n, p, fit_intercept)
    check(sigma=sigma, smallest=smallest)
    check_delta(delta)
    delta = delta / (1 + bool(anytime))
    false = 2 * (p - k)

    def split(share):
        tails = np.array([share / k, (1 - share) / false])
        return float(student.isf(delta * tails, freedom).sum())

    threshold = minimize_scalar(split, bounds=(0, min(1.0, k / (2 * delta))), method="bounded").fun
    pairs = sqrt(2) * _quantile(delta, k * false, freedom)
    return sigma * min(threshold, pairs) / sqrt(smallest * freedom)


def olsth_failure_bound(
    beta: ArrayLike,
    covariance: ArrayLike,
    n: int,
    sigma: float = 1.0,
    fit_intercept: bool = True,
    anytime: bool = False,
) -> float:
    """Bound on the probability that OLSth misses a feature, for any covariance and coefficients.

    The sum, over all pairs of a true and a false feature and both signs, of the exact probability
    that their errors differ by more than the true coefficient: a tail of Student's t.

    Parameters
    ----------
    beta : array-like of shape (p,)
        True coefficients, label over feature; features are false where it is 0.
    covariance : array-like of shape (p, p)
        Of the features, which are Gaussian.
    n : int
        Rows.
    sigma : float, default=1.0
        Standard deviation of the noise, in the unit of the labels.
    fit_intercept : bool, default=True
        Whether an intercept was fitted, as by centring.
    anytime : bool, default=False
        Whether to bound the probability of missing one at n or, of the same stream, at any larger
        number of rows.

    Returns
    -------
    float
        In [0, 1].

    Raises
    ------
    DoesNotApply
        Unless n exceeds the number of fitted coefficients.
    ValueError, TypeError
        Unless there are true and false features and the covariance is symmetric and positive
        definite; and as in `ofslib.bounds`.

    Examples
    --------
    >>> covariance = 0.5 ** np.abs(np.subtract.outer(np.arange(50), np.arange(50)))
    >>> beta = np.where(np.arange(50) % 10 == 0, 0.4, 0.0)
    >>> round(olsth_failure_bound(beta, covariance, 500), 4)
    0.0012
    """
    beta = read("beta", beta, None)
    true = beta != 0
    if true.all() or not true.any():
        raise ValueError("beta must have entries that are 0 and others")
    freedom, spread = _pairs(true, covariance, n, sigma, fit_intercept)
    tails = student.sf(np.abs(beta[true])[:, None] / spread, freedom)
    return min(1.0, (1 + bool(anytime)) * float(tails.sum()))


def olsth_beta_min_any_covariance(
    true: ArrayLike,
    covariance: ArrayLike,
    n: int,
    sigma: float = 1.0,
    delta: float = 0.05,
    fit_intercept: bool = True,
    anytime: bool = False,
) -> float:
    """A coefficient, equal in size on the true features, at which `olsth_failure_bound` is `delta`.

    Parameters
    ----------
    true : array-like of shape (p,)
        Not 0 where the feature is true.
    covariance : array-like of shape (p, p)
        Of the features, which are Gaussian.
    n : int
        Rows.
    sigma : float, default=1.0
        Standard deviation of the noise, in the unit of the labels.
    delta : float, default=0.05
        Bound on the probability of missing a feature, in (0, 1).
    fit_intercept, anytime : bool
        As in `olsth_failure_bound`.

    Returns
    -------
    float
        In units of a coefficient, label over feature.

    Raises
    ------
    DoesNotApply, ValueError, TypeError
        As `olsth_failure_bound`; and if delta >= 1.

    Examples
    --------
    >>> covariance = 0.5 ** np.abs(np.subtract.outer(np.arange(50), np.arange(50)))
    >>> round(olsth_beta_min_any_covariance(np.arange(50) % 10 == 0, covariance, 500), 4)
    0.3203
    """
    true = read("true", true, None) != 0
    if true.all() or not true.any():
        raise ValueError("true must have entries that are 0 and others")
    check_delta(delta)
    freedom, spread = _pairs(true, covariance, n, sigma, fit_intercept)
    delta = delta / (1 + bool(anytime))
    # If all pairs had the least or the largest spread.
    most = _quantile(delta, spread.size, freedom)
    ratios, unit = spread / spread.max(), float(spread.max())
    least = most * float(ratios.min())
    if least * (1 + 1e-9) >= most:
        return unit * most
    return unit * brentq(lambda b: student.sf(b / ratios, freedom).sum() - delta, least, most)


def _quantile(delta, events, freedom):
    """Of Student's t, for each of so many events that have `delta` in all."""
    require(events < 1e200 * delta, "1 / delta times the number of events exceeds 1e200")
    return float(student.isf(delta / events, freedom))


def _pairs(true, covariance, n, sigma, fit_intercept):
    """Degrees of freedom of errors; scales of differences and sums of true and false ones."""
    p = len(true)
    covariance = read("covariance", covariance, p, p)
    check({"n": n}, sigma=sigma)
    freedom = degrees_of_freedom(n, p, fit_intercept)
    if np.abs(covariance - covariance.T).max() > 1e-6 * np.abs(covariance).max():
        raise ValueError("covariance must be symmetric")
    try:
        inverse = cho_solve(cho_factor(covariance), np.eye(p))
    except np.linalg.LinAlgError:
        raise ValueError("covariance must be positive definite") from None
    own, shared = np.diag(inverse), 2 * inverse[np.ix_(true, ~true)]
    both = own[true][:, None] + own[~true]
    return freedom, sigma * np.sqrt(np.stack([both - shared, both + shared]) / freedom)


def ofsa_last_step_beta_min(
    n: int,
    p: int,
    k: int,
    sigma: float = 1.0,
    smallest: float = 1.0,
    delta: float = 0.05,
    fit_intercept: bool = True,
    left: int = 1,
) -> float:
    """A coefficient that the last step of an elimination by least squares does not lose.

    If the true features are among the last k + `left`, and the k largest of the coefficients that
    least squares gives these are kept, then with probability 1 - `delta` all true ones are. For any
    covariance, and though the features that are left were chosen by the same rows: a union over
    all pairs and all sets of `left` false features.

    Parameters
    ----------
    n, p, k : int
        Rows, features, true features; k < p.
    sigma : float, default=1.0
        Standard deviation of the noise, in the unit of the labels.
    smallest : float, default=1.0
        Smallest eigenvalue of the covariance of the features, in units of a squared feature.
    delta : float, default=0.05
        Probability of losing a feature in this step, in (0, 1).
    fit_intercept : bool, default=True
        Whether an intercept was fitted, as by centring.
    left : int, default=1
        False features left before the step, at most p - k.

    Returns
    -------
    float
        In units of a coefficient, label over feature.

    Raises
    ------
    DoesNotApply
        Unless n exceeds k + `left` and the intercept; if the sets are too many to compute with.
    ValueError, TypeError
        If k >= p, left > p - k or delta >= 1; and as in `ofslib.bounds`.

    Examples
    --------
    >>> round(ofsa_last_step_beta_min(300, 200, 20, delta=0.1), 3)
    0.361
    """
    check_sizes(n, p, k)
    check({"left": left}, sigma=sigma, smallest=smallest)
    check_delta(delta)
    if left > p - k:
        raise ValueError(f"left={left} must be at most p - k = {p - k}")
    freedom = degrees_of_freedom(n, k + left, fit_intercept)
    cases = 2 * k * left * comb(p - k, left)
    return sigma * sqrt(2 / (smallest * freedom)) * _quantile(delta, cases, freedom)
