"""What least squares finds at least, by unions over pairs of features: docs/theory/own.md.

The error of a sum or a difference of two estimates has Student's law with the scale that the
inverse covariance gives it. The ratio of two sample standard deviations has Student's law, too.
As the rows go on, both errors move as Brownian motion in their variance, backwards: n rows and all
later ones fail at most twice as often.
"""

from functools import partial
from math import asinh, comb, exp, log, sinh, sqrt
from typing import NamedTuple

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


class _Pairs(NamedTuple):
    """All pairs of a true and a false feature, in the units in which features are ranked."""

    freedom: int  # degrees of freedom of the errors
    rows: int  # and of the standard deviations; 0: coefficients are ranked as they are
    unit: np.ndarray  # (k, 1) standard deviations of the true features
    noise: float  # sigma over the root of `freedom`
    true: np.ndarray  # (k, 1) and (1, p - k) diagonals of the inverse
    false: np.ndarray
    shared: np.ndarray  # (k, p - k) of the inverse, as the next
    alone: np.ndarray  # sqrt(1 - squared correlation)

    def scales(self, h: float = 0.0) -> np.ndarray:
        """Scales of the errors b_i -+ q b_j, q = exp(asinh(alone sinh(h))), over those of b_i."""
        q = np.exp(np.arcsinh(self.alone * sinh(h)))
        both, shared = self.true + q**2 * self.false, 2 * q * self.shared
        return self.noise * np.sqrt(np.stack([both - shared, both + shared])) / self.unit


def olsth_beta_min_closed_form(
    n: int,
    p: int,
    k: int,
    sigma: float = 1.0,
    smallest: float = 1.0,
    delta: float = 0.05,
    fit_intercept: bool = True,
    anytime: bool = False,
    ranking: str = "standardized",
) -> float:
    """A coefficient that suffices for any covariance and any signs: quantiles of Student's t.

    A union bound over all pairs of a true and a false feature; for `ranking="raw"`, or over all
    errors, of which true and false ones have the best shares of `delta`, if that is smaller. Other
    arguments: as `olsth_recovery_probability`.

    Parameters
    ----------
    smallest : float, default=1.0
        Smallest eigenvalue of the correlations of the features; for `ranking="raw"`, of their
        covariance, in units of a squared feature: 1 for I + spike 11'.
    delta : float, default=0.05
        Probability of missing a feature, in (0, 1).
    anytime : bool, default=False
        Whether all k shall be found at n rows and, of the same stream, at every larger number.
    ranking : {"standardized", "raw"}, default="standardized"
        That of `OLSthRegressor`.

    Returns
    -------
    float
        A coefficient times the standard deviation of its feature, in the unit of the labels; for
        `ranking="raw"` a coefficient, label over feature.

    Raises
    ------
    DoesNotApply
        Unless n exceeds the number of fitted coefficients.
    ValueError, TypeError
        If k >= p or delta >= 1; and as in `ofslib.bounds`.

    Examples
    --------
    >>> round(olsth_beta_min_closed_form(10_000, 1000, 100, delta=0.002), 4)
    0.0862
    >>> round(olsth_beta_min_closed_form(10_000, 1000, 100, delta=0.002, ranking="raw"), 4)
    0.0835
    """
    check_sizes(n, p, k)
    freedom = degrees_of_freedom(n, p, fit_intercept)
    check(sigma=sigma, smallest=smallest)
    check_delta(delta)
    delta, false = delta / (1 + bool(anytime)), 2 * (p - k)
    rows = _freedom_of_scales(n, fit_intercept, ranking)
    threshold = _of_pairs(delta, k * (p - k), k * false, rows, freedom)
    if not rows:
        threshold = min(threshold, _of_errors(delta, k, false, freedom))
    return sigma * threshold / sqrt(smallest * freedom)


def olsth_failure_bound(
    beta: ArrayLike,
    covariance: ArrayLike,
    n: int,
    sigma: float = 1.0,
    fit_intercept: bool = True,
    anytime: bool = False,
    ranking: str = "standardized",
) -> float:
    """Bound on the probability that OLSth misses a feature, for any covariance and coefficients.

    The sum, over all pairs of a true and a false feature and both signs, of the probability that
    their errors differ by more than the true coefficient: tails of Student's t, exact for
    `ranking="raw"`. For `ranking="standardized"` there is one more tail for each pair: that the
    ratio of the two *sample* standard deviations exceeds a limit. The best limit is taken.

    Parameters
    ----------
    beta : array-like of shape (p,)
        True coefficients, label over feature; features are false where it is 0.
    covariance : array-like of shape (p, p)
        Of the features, which are Gaussian.
    n, sigma
        Rows, and the standard deviation of the noise, in the unit of the labels.
    fit_intercept : bool, default=True
        Whether an intercept was fitted, as by centring. Without one, features have mean 0.
    anytime : bool, default=False
        Whether to count misses at any larger number of rows of the same stream, too.
    ranking : {"standardized", "raw"}, default="standardized"
        That of `OLSthRegressor`.

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
    0.0097
    >>> round(olsth_failure_bound(beta, covariance, 500, ranking="raw"), 4)
    0.0012
    """
    beta = read("beta", beta, None)
    true = beta != 0
    if true.all() or not true.any():
        raise ValueError("beta must have entries that are 0 and others")
    pairs = _pairs(true, covariance, n, sigma, fit_intercept, ranking)
    return min(1.0, (1 + bool(anytime)) * _failure(np.abs(beta[true])[:, None], pairs))


def olsth_beta_min_any_covariance(
    true: ArrayLike,
    covariance: ArrayLike,
    n: int,
    sigma: float = 1.0,
    delta: float = 0.05,
    fit_intercept: bool = True,
    anytime: bool = False,
    ranking: str = "standardized",
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
    fit_intercept, anytime, ranking
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
    0.3562
    """
    true = read("true", true, None) != 0
    if true.all() or not true.any():
        raise ValueError("true must have entries that are 0 and others")
    check_delta(delta)
    pairs = _pairs(true, covariance, n, sigma, fit_intercept, ranking)
    delta = delta / (1 + bool(anytime))
    if not pairs.rows:
        return _root(pairs.scales(), delta, pairs.freedom)

    def enough(share):
        h = _limit(delta * share, pairs.shared.size, pairs.rows)
        return _root(pairs.scales(h), delta * (1 - share), pairs.freedom)

    return float(minimize_scalar(enough, bounds=(0, 1), method="bounded").fun)


def _failure(size, pairs):
    """The least sum of tails over the limits of the ratios; `size` of true coefficients."""

    def failure(h):
        errors = float(student.sf(size / pairs.scales(h), pairs.freedom).sum())
        return errors + pairs.shared.size * _ratio_exceeds(h, pairs.rows)

    if not pairs.rows:
        return failure(0.0)
    # Beyond it no error is small beside a coefficient.
    most = log(1 + min(1e40, float(np.max(size / pairs.scales()))))
    sought = partial(minimize_scalar, bounds=(0, most), method="bounded")
    return failure(sought(lambda h: log(max(failure(h), 1e-300))).x)


def _root(scales, delta, freedom):
    """What errors of these scales exceed with probabilities that sum to `delta`."""
    # If all had the least or the largest scale.
    most = _quantile(delta, scales.size, freedom)
    ratios, unit = scales / scales.max(), float(scales.max())
    least = most * float(ratios.min())
    if least * (1 + 1e-9) >= most:
        return unit * most
    return unit * brentq(lambda b: student.sf(b / ratios, freedom).sum() - delta, least, most)


def _quantile(delta, events, freedom):
    """Of Student's t, for each of so many events that have `delta` in all."""
    require(events < 1e200 * float(delta), "1 / delta times the number of events exceeds 1e200")
    return float(student.isf(delta / events, freedom))


def _of_pairs(delta, ratios, errors, rows, freedom):
    """What errors of independent features of scale 1 exceed with probability `delta`, by pairs.

    Of so many ratios of standard deviations, with `rows` degrees of freedom, and so many errors.
    """
    if not rows:
        return sqrt(2) * _quantile(delta, errors, freedom)

    def enough(share):
        q = exp(_limit(delta * share, ratios, rows))
        return sqrt(1 + q**2) * _quantile(delta * (1 - share), errors, freedom)

    return float(minimize_scalar(enough, bounds=(0, 1), method="bounded").fun)


def _of_errors(delta, k, false, freedom):
    """The same of raw coefficients by all errors: true and false ones have the best shares.

    Of scales only the largest is known, so that no quantile may be below 0.
    """

    def split(share):
        tails = np.array([share / k, (1 - share) / false])
        return float(student.isf(delta * tails, freedom).sum())

    ends = 0, min(1.0, k / (2 * delta))
    return float(minimize_scalar(split, bounds=ends, method="bounded").fun)


def _ratio_exceeds(h, rows):
    """P(s_j / s_i > exp(h) times that of the features), the features being uncorrelated."""
    return float(student.sf(sqrt(rows) * sinh(h), rows)) if rows else 0.0


def _limit(delta, events, rows):
    """The h that `_ratio_exceeds` of so many pairs, with `delta` in all."""
    return asinh(_quantile(delta, events, rows) / sqrt(rows))


def _freedom_of_scales(n, fit_intercept, ranking):
    """Degrees of freedom of the standard deviations that features are ranked by; 0: by none."""
    if ranking not in ("standardized", "raw"):
        raise ValueError(f"ranking={ranking!r} must be 'standardized' or 'raw'")
    return n - bool(fit_intercept) if ranking == "standardized" else 0


def _pairs(true, covariance, n, sigma, fit_intercept, ranking):
    p = len(true)
    covariance = read("covariance", covariance, p, p)
    check({"n": n}, sigma=sigma)
    freedom = degrees_of_freedom(n, p, fit_intercept)
    rows = _freedom_of_scales(n, fit_intercept, ranking)
    if np.abs(covariance - covariance.T).max() > 1e-6 * np.abs(covariance).max():
        raise ValueError("covariance must be symmetric")
    positive = "covariance must be positive definite"
    if not np.all(np.diag(covariance) > 0):
        raise ValueError(positive)
    unit = np.sqrt(np.diag(covariance)) if rows else np.ones(p)
    scaled = covariance / np.outer(unit, unit)
    try:
        inverse = cho_solve(cho_factor(scaled), np.eye(p))
    except np.linalg.LinAlgError:
        raise ValueError(positive) from None
    own, block = np.diag(inverse), np.ix_(true, ~true)
    alone = np.sqrt(np.maximum(1 - scaled[block] ** 2, 0)) if rows else np.ones((1, 1))
    return _Pairs(
        freedom=freedom,
        rows=rows,
        unit=unit[true][:, None],
        noise=sigma / sqrt(freedom),
        true=own[true][:, None],
        false=own[~true][None],
        shared=inverse[block],
        alone=alone,
    )


def ofsa_last_step_beta_min(
    n: int,
    p: int,
    k: int,
    sigma: float = 1.0,
    smallest: float = 1.0,
    delta: float = 0.05,
    fit_intercept: bool = True,
    left: int = 1,
    ranking: str = "standardized",
) -> float:
    """A coefficient that the last step of an elimination by least squares does not lose.

    If the true features are among the last k + `left`, and the k largest of the coefficients that
    least squares gives these are kept, then with probability 1 - `delta` all true ones are. For any
    covariance, and though the features that are left were chosen by the same rows: a union over
    all pairs and all sets of `left` false features. The step is that of `OLSthRegressor` on these
    features; `OFSARegressor` ranks by gradient descent, which need not have converged.

    Parameters
    ----------
    n, p, k : int
        Rows, features, true features; k < p.
    sigma, smallest, fit_intercept, ranking
        As in `olsth_beta_min_closed_form`.
    delta : float, default=0.05
        Probability of losing a feature in this step, in (0, 1).
    left : int, default=1
        False features left before the step, at most p - k.

    Returns
    -------
    float
        As `olsth_beta_min_closed_form`.

    Raises
    ------
    DoesNotApply
        Unless n exceeds k + `left` and the intercept; if the sets are too many to compute with.
    ValueError, TypeError
        If k >= p, left > p - k or delta >= 1; and as in `ofslib.bounds`.

    Examples
    --------
    >>> round(ofsa_last_step_beta_min(300, 200, 20, delta=0.1), 3)
    0.421
    >>> round(ofsa_last_step_beta_min(300, 200, 20, delta=0.1, ranking="raw"), 3)
    0.361
    """
    check_sizes(n, p, k)
    check({"left": left}, sigma=sigma, smallest=smallest)
    check_delta(delta)
    if left > p - k:
        raise ValueError(f"left={left} must be at most p - k = {p - k}")
    freedom = degrees_of_freedom(n, k + left, fit_intercept)
    rows = _freedom_of_scales(n, fit_intercept, ranking)
    errors = 2 * k * left * comb(p - k, left)
    threshold = _of_pairs(delta, k * (p - k), errors, rows, freedom)
    return sigma * threshold / sqrt(smallest * freedom)
