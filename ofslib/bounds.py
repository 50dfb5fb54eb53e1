"""The theorems of the five papers as functions, and a bound for OLSth that is sharp.

A function is named after its paper and item. It takes the quantities that the statement names,
raises `DoesNotApply` where an assumption fails, and returns what the statement promises: a number,
a `Recovery`, or, for an inequality along a run, the two `Sides` computed from the record of the
run. Where the printed form is wrong, `variant` is "printed" or "corrected". Derivations,
counterexamples, and what became of all 71 items: docs/bounds.md. Logarithms are natural.
"""

from functools import lru_cache
from math import ceil, exp, floor, inf, log, sqrt
from numbers import Integral, Real
from typing import NamedTuple

import numpy as np
from numpy.polynomial.hermite_e import hermegauss
from numpy.polynomial.legendre import leggauss
from numpy.typing import ArrayLike
from scipy.interpolate import CubicSpline
from scipy.optimize import brentq
from scipy.special import comb, ndtr
from scipy.stats import chi2
from scipy.stats import t as student

# The papers' rounding of the golden ratio, the largest expansion by hard thresholding.
EXPANSION = 1.62
# Dissertation, Theorems 1 and 3.
LARGEST_CONDITION = 1.26


class DoesNotApply(ValueError):
    """An assumption of the statement is violated; the message names it, with the numbers."""


class Sides(NamedTuple):
    """Both sides of an inequality left <= right, numbers or arrays with one entry per step."""

    left: float | np.ndarray
    right: float | np.ndarray

    @property
    def holds(self) -> bool:
        """Whether left <= right, in every entry, up to rounding."""
        slack = 1e-9 * np.maximum(np.abs(self.left), np.abs(self.right))
        return bool(np.all(np.asarray(self.left) <= np.asarray(self.right) + slack))


class Recovery(NamedTuple):
    """A promise to find the true features."""

    beta_min: float  # the smallest true |coefficient| must exceed it
    probability: float  # of finding them; at or below 0 it promises nothing
    iterations: int | None = None  # after which it holds; None where nothing iterates


class Tail(NamedTuple):
    """A quantity is at most `threshold` with at most this `probability`."""

    threshold: float
    probability: float


def _check(counts: dict | None = None, **positive: float) -> None:
    """TypeError or ValueError unless `counts` are integers >= 1 and the others numbers > 0."""
    for name, value in {**(counts or {}), **positive}.items():
        kind = Integral if counts and name in counts else Real
        if isinstance(value, bool) or not isinstance(value, kind):
            raise TypeError(
                f"{name}={value!r} must be {'an integer' if kind is Integral else 'a number'}"
            )
        if not 0 < value < inf:
            raise ValueError(f"{name}={value} must be positive and finite")


def _require(condition: bool, why: str) -> None:
    if not condition:
        raise DoesNotApply(f"does not apply: {why}")


def _printed(variant: str) -> bool:
    if variant not in ("printed", "corrected"):
        raise ValueError(f"variant={variant!r} must be 'printed' or 'corrected'")
    return variant == "printed"


# dissertation: support recovery by least squares (OLSth)


def dissertation_lemma_3(t: float, sigma: float) -> float:
    """Bound 2 exp(-t^2 / (2 sigma^2)) on P(|X| >= t), X ~ N(0, sigma^2).

    Parameters
    ----------
    t, sigma : float
        Threshold and standard deviation, positive. Bounds above 1 say nothing.
    """
    _check(t=t, sigma=sigma)
    return 2 * exp(-(t**2) / (2 * sigma**2))


def dissertation_lemma_4(n: int, smallest: float, trace: float, t: float, p: int) -> Tail:
    """Lower tail of the smallest singular value of n Gaussian rows, over sqrt(n).

    Parameters
    ----------
    n, p : int
        Rows and features, n > p.
    smallest, trace : float
        Smallest eigenvalue and trace of the covariance.
    t : float
        Relative deviation, positive.

    Returns
    -------
    Tail
        sqrt(smallest) (1 - t) - sqrt(trace / n), which may be negative, and exp(-n t^2 / 2).

    Raises
    ------
    DoesNotApply
        If n <= p.
    """
    _check({"n": n, "p": p}, smallest=smallest, trace=trace, t=t)
    _require(n > p, f"n = {n} <= p = {p}")
    return Tail(sqrt(smallest) * (1 - t) - sqrt(trace / n), exp(-n * t**2 / 2))


def dissertation_proposition_3(
    n: int,
    p: int,
    sigma: float,
    eigenvalue: float,
    alpha: float = 1.0,
    C1: float = 2.0,
    variant: str = "corrected",
) -> Recovery:
    """Coefficients that OLSth finds: the k largest least-squares estimates are the true features.

    Parameters
    ----------
    n, p : int
        Rows and features.
    sigma : float
        Standard deviation of the noise.
    eigenvalue : float
        lambda, at most the smallest eigenvalue of X'X / n.
    alpha : float, default=1.0
        Exponent of n, in (0, 1].
    C1 : float, default=2.0
        Exponent in the probability 1 - 2 p^(1 - C1 n^(1 - alpha)), above 1. Printed: 2 / C, where
        every column has a mean square of at most C (2 if standardised); corrected: free.
    variant : {"corrected", "printed"}
        2 sigma sqrt(2 C1 log(p) / (lambda n^alpha)), or (2 sigma / lambda) sqrt(log(p) / n^alpha)
        of (3.12), which has no factor 2 for separation and bounds the inverse by its 2-norm.

    Raises
    ------
    DoesNotApply
        If alpha or C1 is out of its range.
    """
    _check({"n": n, "p": p}, sigma=sigma, eigenvalue=eigenvalue)
    _require(0 < alpha <= 1, f"alpha = {alpha} is not in (0, 1]")
    _require(C1 > 1, f"C1 = {C1:g} <= 1")
    if _printed(variant):
        beta_min = 2 * sigma / eigenvalue * sqrt(log(p) / n**alpha)
    else:
        beta_min = 2 * sigma * sqrt(2 * C1 * log(p) / (eigenvalue * n**alpha))
    return Recovery(beta_min, 1 - 2 * float(p) ** (1 - C1 * n ** (1 - alpha)))


def dissertation_corollary_2(
    n: int,
    p: int,
    sigma: float,
    eigenvalue: float,
    C1: float = 2.0,
    variant: str = "corrected",
) -> Recovery:
    """Proposition 3 with alpha = 1 (3.13), whose arguments these are.

    With the eigenvalue of the correlations it is Remark 2, and `beta_min` is that of the
    coefficients times the standard deviations of their features.
    """
    return dissertation_proposition_3(n, p, sigma, eigenvalue, 1.0, C1, variant)


def dissertation_proposition_2(X: ArrayLike, y: ArrayLike, beta: ArrayLike) -> Sides:
    """Half the mean squared error of all rows, and the same from their averages.

    Parameters
    ----------
    X, y : array-like of shape (n, p) and (n,)
        The rows.
    beta : array-like of shape (p,)
        Coefficients.

    Returns
    -------
    Sides
        ||y - X beta||^2 / (2 n) and beta'S_xx beta / 2 - beta'S_xy + S_yy / 2, which are equal. The
        printed right side has no S_yy / 2, which does not depend on beta.
    """
    X, y, beta = (np.asarray(array, float) for array in (X, y, beta))
    n = len(y)
    left = np.sum((y - X @ beta) ** 2) / (2 * n)
    right = beta @ (X.T @ X / n) @ beta / 2 - beta @ (X.T @ y / n) + y @ y / (2 * n)
    return Sides(float(left), float(right))


def _check_covariance(smallest, variance):
    _check(smallest=smallest, variance=variance)
    if smallest > variance:
        raise ValueError(
            f"smallest={smallest} must be at most variance={variance}: the smallest eigenvalue of "
            "a covariance is not above its diagonal entries"
        )


def _eigenvalue_bound(n, p, smallest, spread):
    """lambda of Theorem 2: (0.8 sqrt(smallest) - spread sqrt(p / n))^2."""
    _require(n > p, f"n = {n} <= p = {p}")
    root = 0.8 * sqrt(smallest) - spread * sqrt(p / n)
    least = (spread / (0.8 * sqrt(smallest))) ** 2
    _require(root > 0, f"n/p = {n / p:.4g} <= {least:.4g}, where the bound on the eigenvalue is 0")
    return root**2


def dissertation_theorem_2(
    n: int,
    p: int,
    sigma: float,
    smallest: float,
    variance: float,
    alpha: float = 1.0,
    C1: float = 2.0,
    variant: str = "corrected",
) -> Recovery:
    """Proposition 3 in terms of the covariance of the features (3.14).

    Parameters
    ----------
    n, p, sigma, alpha, C1
        As in `dissertation_proposition_3`.
    smallest, variance : float
        Smallest eigenvalue of the covariance, and its largest diagonal entry.
    variant : {"corrected", "printed"}
        The spread rho of the features is the root of `variance`, or (printed) `variance` itself;
        and as in Proposition 3.

    Raises
    ------
    DoesNotApply
        If n <= p or n / p <= (rho / (0.8 sqrt(smallest)))^2, and as Proposition 3.
    """
    _check({"n": n, "p": p}, sigma=sigma)
    _check_covariance(smallest, variance)
    spread = variance if _printed(variant) else sqrt(variance)
    eigenvalue = _eigenvalue_bound(n, p, smallest, spread)
    found = dissertation_proposition_3(n, p, sigma, eigenvalue, alpha, C1, variant)
    return Recovery(found.beta_min, found.probability - exp(-n / 50))


def dissertation_theorem_4(
    n: int,
    p: int,
    sigma: float,
    smallest: float,
    variance: float,
    C1: float = 2.0,
    start: int | None = None,
    variant: str = "corrected",
) -> Recovery:
    """Coefficients for which OLSth keeps the true features at all sample sizes from n_0 to n.

    By that the proof of Theorem 4 (3.28) gives OLSth the regret of least squares on the true
    features, O(n_0 / n + log(n) / n). (The regret is of the order printed without it, see
    docs/bounds.md.)

    Parameters
    ----------
    n, p, sigma, smallest, variance, C1
        As in `dissertation_theorem_2`.
    start : int or None, default=None
        n_0, at least max(p + 1, 100 log(n), ((2 log(n) / log(p) + 1) / C1)^2), which None takes.
    variant : {"corrected", "printed"}
        Printed: n in place of n_0 in the threshold, no rho beside sqrt(p / n_0), and as
        Proposition 3.

    Returns
    -------
    Recovery
        `probability` is 1 - 3 / n, `iterations` is n_0.

    Raises
    ------
    DoesNotApply
        If n_0 is too small for the eigenvalue bound, is below the least one, or exceeds n.
    """
    _check({"n": n, "p": p}, sigma=sigma)
    _check_covariance(smallest, variance)
    _require(C1 > 1, f"C1 = {C1:g} <= 1")
    _require(p > 1, f"p = {p} <= 1")
    printed = _printed(variant)
    least = ceil(max(p + 1, 100 * log(n), ((2 * log(n) / log(p) + 1) / C1) ** 2))
    start = least if start is None else start
    _require(least <= start <= n, f"n_0 = {start} is not in [{least}, n = {n}]")
    eigenvalue = _eigenvalue_bound(start, p, smallest, 1.0 if printed else sqrt(variance))
    rows = n if printed else start
    found = dissertation_proposition_3(rows, p, sigma, eigenvalue, 0.5, C1, variant)
    return Recovery(found.beta_min, 1 - 3 / n, start)


def dissertation_lemma_5(t: float, sigmas: ArrayLike) -> float:
    """Bound 2 exp(-t^2 / (2 sum sigma_i^2)) on P(|sum of D_i| >= t) (Azuma).

    Parameters
    ----------
    t : float
        Threshold, positive.
    sigmas : array-like of float
        Sub-Gaussian parameters of the martingale differences D_i.
    """
    sigmas = np.asarray(sigmas, dtype=float)
    _check(t=t)
    if not np.all(sigmas > 0):
        raise ValueError("sigmas must be positive")
    return 2 * exp(-(t**2) / (2 * float(sigmas @ sigmas)))


def dissertation_proposition_6(
    n: int,
    p: int,
    sigma: float,
    eigenvalue: float,
    square_bound: float,
    variant: str = "corrected",
) -> Recovery:
    """Proposition 3 for rows that need not be independent or Gaussian (Appendix B).

    Parameters
    ----------
    n, p, sigma, eigenvalue
        As in `dissertation_proposition_3`.
    square_bound : float
        M: features are below sqrt(M) in size, and feature times noise is sub-Gaussian with
        parameter sqrt(M) sigma.
    variant : {"corrected", "printed"}
        4 (sigma / lambda) sqrt(M p log(p) / n) with probability 1 - 2 / p, or
        2 (sigma / lambda) sqrt(log(p) / n) with 1 - 2 p^(1 - 2 / M).

    Raises
    ------
    DoesNotApply
        If printed and M >= 2, where the probability would be negative.
    """
    _check({"n": n, "p": p}, sigma=sigma, eigenvalue=eigenvalue, square_bound=square_bound)
    if _printed(variant):
        _require(square_bound < 2, f"M = {square_bound:g} >= 2")
        beta_min = 2 * sigma / eigenvalue * sqrt(log(p) / n)
        return Recovery(beta_min, 1 - 2 * float(p) ** (1 - 2 / square_bound))
    beta_min = 4 * sigma / eigenvalue * sqrt(square_bound * p * log(p) / n)
    return Recovery(beta_min, 1 - 2 / p)


# OLSth: the exact law. Not in the papers.


def _degrees_of_freedom(n, p, k, fit_intercept):
    _check({"n": n, "p": p, "k": k})
    if not k < p:
        raise ValueError(f"k={k} must be below p={p}")
    fitted = p + bool(fit_intercept)
    _require(n > fitted, f"n = {n} <= {fitted} fitted coefficients")
    return n - fitted + 1


@lru_cache(maxsize=8)
def _selection_curve(p, k, spike):
    """P(all k selected) as a spline of the coefficient over the scale of its error, on [0, 18].

    The errors w have covariance I - c 11': as if w = z + i sqrt(c) v 1, z and v standard normal, of
    which the product over the independent z is averaged over v. The integral is over the largest
    |w| of the others, m.
    """
    c = spike / (1 + spike * p)
    v, weight_v = hermegauss(24 if c else 1)
    v, weight_v = v[v >= 0], np.where(v > 0, 2, 1)[v >= 0] * weight_v[v >= 0] / sqrt(2 * np.pi)
    m, weight_m = leggauss(200)
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
    1e-6. The k true coefficients equal beta, the rows are N(0, I + spike 11').

    Parameters
    ----------
    beta : float
        True coefficient, positive.
    n, p, k : int
        Rows, features, and true features; k < p.
    sigma : float, default=1.0
        Standard deviation of the noise.
    spike : float, default=0.0
        Covariance of any two features, at least 0 (alpha^2 of the papers' generator).
    fit_intercept : bool, default=True
        Whether an intercept was fitted, as by centring.

    Raises
    ------
    DoesNotApply
        If there are no more rows than fitted coefficients.
    """
    freedom = _degrees_of_freedom(n, p, k, fit_intercept)
    _check(beta=beta, sigma=sigma)
    if not 0 <= spike < inf:
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
    It is sharp: with less, OLSth fails more often. Raises `DoesNotApply` where any choice of k
    features is right with that probability.
    """
    chance = 1 / comb(p, k)
    upper = olsth_beta_min_closed_form(n, p, k, sigma, 1.0, delta, fit_intercept)
    _require(1 - delta > chance, f"1 - delta = {1 - delta:g} <= {chance:.3g}, the chance level")
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

    Parameters
    ----------
    n, p, k, sigma, fit_intercept
        As in `olsth_recovery_probability`.
    inverse_diagonal : float, default=1.0
        Largest diagonal entry of the inverse covariance of the features, at most one over its
        smallest eigenvalue; 1 suffices for I + spike 11'.
    delta : float, default=0.05
        Probability of missing a feature, in (0, 1).
    """
    freedom = _degrees_of_freedom(n, p, k, fit_intercept)
    _check(sigma=sigma, inverse_diagonal=inverse_diagonal, delta=delta)
    if not delta < 1:
        raise ValueError(f"delta={delta} must be below 1")
    quantile = student.isf(delta / (2 * p - k), freedom)
    return float(2 * sigma * sqrt(inverse_diagonal / freedom) * quantile)


# dissertation: convergence of SFSA and OFSA


def _rho(eta, m, M):
    """Contraction of a gradient step, sqrt(1 - 2 eta m + eta^2 M^2)."""
    _check(eta=eta, m=m, M=M)
    if m > M:
        raise ValueError(f"m={m} exceeds M={M}")
    _require(eta < 2 * m / M**2, f"eta = {eta:.4g} >= 2 m / M^2 = {2 * m / M**2:.4g}")
    return sqrt(1 - 2 * eta * m + (eta * M) ** 2)


def _contraction(eta, m, M, printed):
    """1.62 rho of Theorems 1 and 3, which must be below 1."""
    _check(m=m, M=M)
    _require(M / m < LARGEST_CONDITION, f"M/m = {M / m:.4g} >= {LARGEST_CONDITION}")
    factor = EXPANSION * _rho(eta, m, M)
    if not printed:
        half = sqrt(m**2 - (1 - EXPANSION**-2) * M**2)
        ends = f"{(m - half) / M**2:.4g}, {(m + half) / M**2:.4g}"
        _require(factor < 1, f"1.62 rho = {factor:.4g} >= 1, eta = {eta:.4g} is not in ({ends})")
    return factor


def dissertation_lemma_1(
    point: ArrayLike,
    other: ArrayLike,
    gradient: ArrayLike,
    other_gradient: ArrayLike,
    eta: float,
    m: float,
    M: float,
    variant: str = "corrected",
) -> Sides:
    """A gradient step brings two sparse points nearer to each other.

    Parameters
    ----------
    point, other, gradient, other_gradient : array-like of shape (p,)
        The points and the gradients there.
    eta : float
        Step size, below 2 m / M^2.
    m, M : float
        Restricted convexity and smoothness on the union of the two supports.
    variant : {"corrected", "printed"}
        Whether the gradients are restricted to that union, or (printed) whole.

    Raises
    ------
    DoesNotApply
        If eta >= 2 m / M^2.
    """
    rho = _rho(eta, m, M)
    point, other = np.asarray(point, float), np.asarray(other, float)
    step = np.subtract(gradient, other_gradient)
    if not _printed(variant):
        step = np.where((point != 0) | (other != 0), step, 0)
    apart = np.linalg.norm(point - other)
    return Sides(float(np.linalg.norm(point - other - eta * step)), float(rho * apart))


def dissertation_lemma_2(k: int, k_true: int, d: int) -> float:
    """sqrt(nu) in ||Theta_k(y) - x|| <= sqrt(nu) ||y - x||, at most the golden ratio.

    Parameters
    ----------
    k, k_true, d : int
        Entries kept, nonzero entries of x, and entries in all; k_true <= k <= d.
    """
    _check({"k": k, "k_true": k_true, "d": d})
    _require(k_true <= k <= d, f"k* = {k_true} <= k = {k} <= d = {d} is wrong")
    lost = min(k_true, d - k)
    gamma = lost / (k - k_true + lost) if lost else 0.0
    return sqrt(1 + (gamma + sqrt((4 + gamma) * gamma)) / 2)


def dissertation_proposition_1(
    before: ArrayLike,
    after: ArrayLike,
    truth: ArrayLike,
    gradient: ArrayLike,
    kept: ArrayLike,
    eta: float,
    m: float,
    M: float,
    variant: str = "corrected",
) -> Sides:
    """One step of SFSA (2.1), or with the loss of all rows, of OFSA (Proposition 4).

    Parameters
    ----------
    before, after, truth : array-like of shape (p,)
        Coefficients before and after the step, and the true ones.
    gradient : array-like of shape (p,)
        Of the step's loss, at `truth`.
    kept : array-like of bool, shape (p,)
        The features not yet removed before the step.
    eta, m, M : float
        Step size, restricted convexity and smoothness of the step's loss.
    variant : {"corrected", "printed"}
        Whether it is required that no true feature was removed.

    Raises
    ------
    DoesNotApply
        If a true feature was removed, or eta >= 2 m / M^2.
    """
    rho = _rho(eta, m, M)
    truth, kept = np.asarray(truth, float), np.asarray(kept, bool)
    removed = np.flatnonzero((truth != 0) & ~kept)
    if not _printed(variant):
        _require(not len(removed), f"true features {removed.tolist()} were removed")
    size = np.count_nonzero((truth != 0) | kept)
    right = rho * np.linalg.norm(before - truth) + eta * sqrt(size) * np.max(np.abs(gradient))
    return Sides(float(np.linalg.norm(after - truth)), float(EXPANSION * right))


def dissertation_theorem_1(
    t: int,
    p: int,
    norm: float,
    G: float,
    eta: float,
    m: float,
    M: float,
    variant: str = "corrected",
) -> float:
    """Bound on ||beta(t) - beta*|| of SFSA, as long as no true feature is removed.

    Parameters
    ----------
    t, p : int
        Steps and features.
    norm : float
        ||beta*||, Euclidean.
    G : float
        Largest ||grad f_t||_inf at beta*. (Printed: anywhere, which no strongly convex loss has.)
    eta, m, M : float
        Step size, restricted convexity and smoothness, M / m < 1.26.
    variant : {"corrected", "printed"}
        Whether 1.62 rho < 1 is required, which M / m < 1.26 does not imply.

    Raises
    ------
    DoesNotApply
        If M / m >= 1.26, eta >= 2 m / M^2, or (corrected) 1.62 rho >= 1.
    """
    _check({"t": t, "p": p}, norm=norm, G=G)
    factor = _contraction(eta, m, M, _printed(variant))
    return factor**t * norm + EXPANSION * eta * sqrt(p) * G / (1 - factor)


def dissertation_corollary_1(
    p: int,
    G: float,
    eta: float,
    m: float,
    M: float,
    norm_ratio: float,
    variant: str = "corrected",
) -> Recovery:
    """Coefficients that SFSA finds, and the steps that it takes.

    Parameters
    ----------
    p, G, eta, m, M
        As in `dissertation_theorem_1`.
    norm_ratio : float
        ||beta*|| over the smallest true |coefficient|; sqrt(k) if all are equal.
    variant : {"corrected", "printed"}
        Corrected: 3.24 in place of 2 in the threshold, the logarithm of the iterations to the base
        1 / (1.62 rho), and no feature may be removed before so many steps.

    Raises
    ------
    DoesNotApply
        As `dissertation_theorem_1`.
    """
    _check({"p": p}, G=G)
    _check_norm_ratio(norm_ratio)
    printed = _printed(variant)
    factor = _contraction(eta, m, M, printed)
    beta_min = (2 if printed else 2 * EXPANSION) * eta * sqrt(p) * G / (1 - factor)
    return Recovery(beta_min, 1.0, _iterations(2 * norm_ratio, factor, printed))


def _check_norm_ratio(norm_ratio):
    _check(norm_ratio=norm_ratio)
    if norm_ratio < 1:
        raise ValueError(f"norm_ratio={norm_ratio} must be at least 1: no entry exceeds the norm")


def _iterations(ratio, factor, printed):
    """Steps until factor^t ratio < 1; as printed, with 1 / factor for 1 / log(1 / factor)."""
    if factor == 0:
        return 1
    return floor(log(ratio) / (factor if printed else -log(factor))) + 1


def dissertation_theorem_3(
    t: int,
    n: int,
    p: int,
    sigma: float,
    norm: float,
    eta: float,
    m: float,
    M: float,
    variant: str = "corrected",
) -> float:
    """Bound on ||beta(t) - beta*|| of OFSA, with probability 1 - 2 p^(1 - C1).

    Theorem 1 with G = 2 sigma sqrt(log(p) / n); C1 = 2 / C, where C < 2 bounds the mean squares of
    the columns.

    Parameters
    ----------
    n : int
        Rows.
    sigma : float
        Standard deviation of the noise.
    t, p, norm, eta, m, M, variant
        As in `dissertation_theorem_1`.

    Raises
    ------
    DoesNotApply
        As `dissertation_theorem_1`.
    """
    _check({"n": n, "p": p}, sigma=sigma)
    noise = 2 * sigma * sqrt(log(p) / n)
    return dissertation_theorem_1(t, p, norm, noise, eta, m, M, variant)


def dissertation_corollary_3(
    n: int,
    p: int,
    sigma: float,
    eta: float,
    m: float,
    M: float,
    norm_ratio: float,
    C1: float = 2.0,
    variant: str = "corrected",
) -> Recovery:
    """Coefficients that OFSA finds, and the steps that it takes.

    Parameters
    ----------
    n, p, sigma, eta, m, M
        As in `dissertation_theorem_3`.
    norm_ratio : float
        As in `dissertation_corollary_1`.
    C1 : float, default=2.0
        2 / C, above 1.
    variant : {"corrected", "printed"}
        Corrected: the logarithm to the base 1 / (1.62 rho), and no feature may be removed before.

    Raises
    ------
    DoesNotApply
        If C1 <= 1, and as `dissertation_theorem_1`.
    """
    _check({"n": n, "p": p}, sigma=sigma)
    _check_norm_ratio(norm_ratio)
    _require(C1 > 1, f"C1 = {C1:g} <= 1")
    printed = _printed(variant)
    factor = _contraction(eta, m, M, printed)
    beta_min = 4 * sigma * eta * sqrt(p * log(p) / n) / (1 - factor)
    steps = _iterations(10 * norm_ratio, factor, printed)
    return Recovery(beta_min, 1 - 2 * float(p) ** (1 - C1), steps)


def dissertation_proposition_7(
    n: int,
    p: int,
    sigma: float,
    eta: float,
    m: float,
    M: float,
    norm_ratio: float,
    square_bound: float,
    variant: str = "corrected",
) -> Recovery:
    """Corollary 3 for rows that need not be independent or Gaussian (Appendix B).

    Parameters
    ----------
    n, p, sigma, eta, m, M, norm_ratio
        As in `dissertation_corollary_3`.
    square_bound : float
        M of `dissertation_proposition_6`.
    variant : {"corrected", "printed"}
        Corrected: sqrt(square_bound) times the threshold, with probability 1 - 2 / p; and the
        iterations of Corollary 3.

    Raises
    ------
    DoesNotApply
        If printed and square_bound >= 2, and as `dissertation_theorem_1`.
    """
    _check(square_bound=square_bound)
    if _printed(variant):
        _require(square_bound < 2, f"M = {square_bound:g} >= 2")
        C1, scale = 2 / square_bound, 1.0
    else:
        C1, scale = 2.0, sqrt(square_bound)
    return dissertation_corollary_3(n, p, scale * sigma, eta, m, M, norm_ratio, C1, variant)


def dissertation_proposition_5(X: ArrayLike, y: ArrayLike, path: ArrayLike, start: int) -> Sides:
    """Regret of least squares after `start` rows, per row, in half the square loss.

    (G^2 log(n / n_0) / m + M n_0 D^2) / (2 n), where the printed proof has log(n).

    Parameters
    ----------
    X, y : array-like of shape (n, p) and (n,)
        The rows.
    path : array-like of shape (n + 1, p)
        path[i] is the least-squares fit to the first i rows; the first `start` are not used.
    start : int
        n_0.

    Raises
    ------
    DoesNotApply
        If X'X of the first `start` rows is singular.
    """
    X, y, path = np.asarray(X, float), np.asarray(y, float), np.asarray(path, float)
    _check({"start": start})
    n = len(X)
    if start >= n:
        raise ValueError(f"start={start} must be below the number of rows, {n}")
    gram = X[:start].T @ X[:start]
    ends = np.linalg.eigvalsh(gram / start)
    M, smallest = ends[-1], []
    _require(ends[0] > 1e-12 * M, f"X'X of the first n_0 = {start} rows is singular")
    for i in range(start, n):
        gram += np.outer(X[i], X[i])
        smallest.append(np.linalg.eigvalsh(gram)[0] / (i + 1))
    used = path[start:]
    errors = np.einsum("ij,ij->i", X[start:], used[:-1]) - y[start:]
    regret = errors @ errors / 2 - np.sum((X[start:] @ used[-1] - y[start:]) ** 2) / 2
    G = np.max(np.abs(errors) * np.linalg.norm(X[start:], axis=1))
    D = max(np.max(np.linalg.norm(used - row, axis=1)) for row in used)
    bound = (G**2 * log(n / start) / min(smallest) + M * start * D**2) / (2 * n)
    return Sides(float(regret / n), float(bound))


# sfsa: convergence of stochastic gradient descent


def sfsa_proposition_4_1(
    path: ArrayLike,
    gradients: ArrayLike,
    population_gradients: ArrayLike,
    truth: ArrayLike,
    eta: float,
    convexity: float,
    G: float,
) -> Sides:
    """The squared error after each step against that before it.

    Parameters
    ----------
    path : array-like of shape (T + 1, p)
        beta_1 .. beta_(T+1).
    gradients, population_gradients : array-like of shape (T, p)
        Of the step's loss and of its expectation, at beta_1 .. beta_T.
    truth : array-like of shape (p,)
        Minimiser of the expected loss.
    eta, convexity, G : float
        Step size, lambda, and the bound on the norms of the gradients.

    Returns
    -------
    Sides
        With one entry per step.

    Raises
    ------
    DoesNotApply
        If a gradient exceeds G, or the expected loss is less convex along the path.
    """
    before, gains, errors = _descent(path, gradients, population_gradients, truth, convexity, G)
    _check(eta=eta)
    right = (1 - 2 * convexity * eta) * before[:-1] + (eta * G) ** 2 + 2 * eta * gains
    return Sides(errors, right)


def _descent(path, gradients, population_gradients, truth, convexity, G):
    """Squared errors before and after steps and the noise towards the truth; Assumptions 2, 3."""
    _check(convexity=convexity, G=G)
    path, gradients, mean = (np.asarray(a, float) for a in (path, gradients, population_gradients))
    away = path - np.asarray(truth, float)
    squared = np.einsum("ij,ij->i", away, away)
    largest = np.max(np.linalg.norm(gradients, axis=1))
    _require(largest <= G * (1 + 1e-9), f"a gradient has norm {largest:.4g} > G = {G:.4g}")
    slack = np.einsum("ij,ij->i", away[:-1], mean) - convexity * squared[:-1]
    _require(np.min(slack) >= -1e-9, f"the loss is not {convexity:.4g}-strongly convex on the path")
    gains = -np.einsum("ij,ij->i", away[:-1], gradients - mean)
    return squared, gains, squared[1:]


def _sfsa_step(T, alpha, convexity, printed):
    """Step size T^-alpha and contraction 1 - 2 lambda eta, which must not be negative."""
    _check({"T": T}, convexity=convexity)
    _require(0.5 < alpha < 1, f"alpha = {alpha} is not in (1/2, 1)")
    eta = T**-alpha
    shrink = 1 - 2 * convexity * eta
    if not printed:
        _require(shrink >= 0, f"2 lambda eta = {1 - shrink:.4g} > 1")
    return eta, shrink


def sfsa_theorem_4_1(
    path: ArrayLike,
    gradients: ArrayLike,
    population_gradients: ArrayLike,
    truth: ArrayLike,
    alpha: float,
    convexity: float,
    G: float,
    variant: str = "corrected",
) -> Sides:
    """Squared error after T steps of size T^-alpha from 0 (5).

    Parameters
    ----------
    path, gradients, population_gradients, truth, convexity, G
        As in `sfsa_proposition_4_1`.
    alpha : float
        In (1/2, 1).
    variant : {"corrected", "printed"}
        Whether the noise of step t counts (1 - 2 lambda eta)^(T - t) times, or (printed) fully.

    Raises
    ------
    DoesNotApply
        If alpha is out of its range, (corrected) 2 lambda eta > 1, or as Proposition 4.1.
    """
    squared, gains, _ = _descent(path, gradients, population_gradients, truth, convexity, G)
    T, printed = len(gains), _printed(variant)
    eta, shrink = _sfsa_step(T, alpha, convexity, printed)
    weights = 1.0 if printed else shrink ** np.arange(T)[::-1]
    right = (
        shrink**T * squared[0] + eta * G**2 / (2 * convexity) + 2 * eta * np.sum(weights * gains)
    )
    return Sides(float(squared[-1]), float(right))


def sfsa_limit_4_1(T: int, alpha: float, convexity: float, variant: str = "corrected") -> float:
    """Equivalent of (1 - 2 lambda / T^alpha)^T for large T, after Theorem 4.1.

    exp(-2 lambda T^(1 - alpha)), or (printed) exp(-T^(1 - alpha)).
    """
    _sfsa_step(T, alpha, convexity, printed=True)
    return exp(-(1.0 if _printed(variant) else 2 * convexity) * T ** (1 - alpha))


def sfsa_corollary_4_1(
    T: int,
    alpha: float,
    convexity: float,
    G: float,
    R: float,
    norm: float,
    omega: float,
    variant: str = "corrected",
) -> Recovery:
    """Coefficients that T steps of size T^-alpha find, with probability 1 - exp(-omega).

    Parameters
    ----------
    T, alpha, convexity, G
        As in `sfsa_theorem_4_1`.
    R : float
        Bound on ||beta_t - beta*||.
    norm : float
        ||beta*||.
    omega : float
        Positive.
    variant : {"corrected", "printed"}
        sqrt(2 B), B the bound on the squared error, or (printed) B itself. The corrected B weights
        the noise as Theorem 4.1 does, and so is the smaller one.

    Raises
    ------
    DoesNotApply
        If alpha is out of its range or (corrected) 2 lambda eta > 1.
    """
    _check(G=G, R=R, norm=norm, omega=omega)
    printed = _printed(variant)
    eta, shrink = _sfsa_step(T, alpha, convexity, printed)
    squares = T if printed else (1 - shrink ** (2 * T)) / (1 - shrink**2)
    noise = 4 * eta * G * R * sqrt(2 * omega * squares)
    bound = shrink**T * norm**2 + eta * G**2 / (2 * convexity) + noise
    return Recovery(bound if printed else sqrt(2 * bound), 1 - exp(-omega))


# os: online substitution


def _mean_square(squared_steps, losses):
    squared_steps, losses = np.asarray(squared_steps, float), np.asarray(losses, float)
    if len(losses) != len(squared_steps) + 1:
        raise ValueError(f"losses: {len(losses)} given, one more than {len(squared_steps)} steps")
    return squared_steps.mean(), (losses[0] - losses[-1]) / len(squared_steps)


def os_theorem_1(
    squared_steps: ArrayLike, losses: ArrayLike, eta: float, L_F: float, c: float
) -> Sides:
    """Mean squared step of OS over eta^2 against the decrease of the loss (8).

    Parameters
    ----------
    squared_steps : array-like of shape (K,)
        ||w^(k+1) - w^k||^2.
    losses : array-like of shape (K + 1,)
        f(w^1) .. f(w^(K+1)).
    eta, L_F, c : float
        Step size, smoothness of Assumption 1, and share of the decrease asked for, in (0, 1].

    Raises
    ------
    DoesNotApply
        If eta >= 1 / L_F or c is out of its range.
    """
    _check(eta=eta, L_F=L_F)
    _require(0 < c <= 1, f"c = {c} is not in (0, 1]")
    _require(eta < 1 / L_F, f"eta = {eta:.4g} >= 1 / L_F = {1 / L_F:.4g}")
    step, decrease = _mean_square(squared_steps, losses)
    right = 2 * decrease / (c * (1 - eta * L_F) * eta)
    return Sides(float(step / eta**2), float(right))


def os_theorem_2_step_size(
    L_F: float, L_f: float, c: float, m: float, q: int, p: int, s: int, staleness: int
) -> float:
    """The step size below which Theorem 2 applies.

    Parameters
    ----------
    L_F, L_f : float
        Smoothness of Assumption 1, (6) and (7).
    c, m : float
        Share of the decrease asked for, in (0, 1], and divisor of the step of selected features.
    q, p, s : int
        Workers, features, features kept; s < p.
    staleness : int
        tau_max, at least 0.

    Raises
    ------
    DoesNotApply
        If c is not in (0, 1], m < 1 or s >= p.
    """
    _check({"q": q, "p": p, "s": s}, L_F=L_F, L_f=L_f, m=m)
    if isinstance(staleness, bool) or not isinstance(staleness, Integral) or staleness < 0:
        raise ValueError(f"staleness={staleness!r} must be an integer, 0 or more")
    _require(m >= 1, f"m = {m:g} < 1")
    _require(0 < c <= 1, f"c = {c} is not in (0, 1]")
    _require(s < p, f"s = {s} >= p = {p}")
    stale = (1 / (2 * m**2 * q) + 1 / (2 * (p - s))) * L_f**2 / (c * L_F) * staleness**2
    return 1 / (2 * (L_F + stale))


def os_theorem_2(
    squared_steps: ArrayLike,
    losses: ArrayLike,
    eta: float,
    L_F: float,
    L_f: float,
    c: float,
    m: float,
    q: int,
    p: int,
    s: int,
    staleness: int,
    variant: str = "corrected",
) -> Sides:
    """Theorem 1 for asynchronous workers, in expectation over their order.

    Parameters
    ----------
    squared_steps, losses, eta
        As in `os_theorem_1`; of one run, or means over runs.
    L_F, L_f, c, m, q, p, s, staleness
        As in `os_theorem_2_step_size`.
    variant : {"corrected", "printed"}
        Whether the right side is divided by c.

    Raises
    ------
    DoesNotApply
        If eta is not below `os_theorem_2_step_size`.
    """
    _check(eta=eta)
    largest = os_theorem_2_step_size(L_F, L_f, c, m, q, p, s, staleness)
    _require(eta < largest, f"eta = {eta:.4g} >= {largest:.4g}, where Delta is 0")
    slack = 1 / (2 * eta) - 1 / (2 * largest)
    step, decrease = _mean_square(squared_steps, losses)
    share = 1.0 if _printed(variant) else c
    return Sides(float(step / eta**2), float(decrease / (eta**2 * share * slack)))


def os_lemma_4(
    loss: float,
    weights: ArrayLike,
    gradient: ArrayLike,
    s: int,
    convexity: float,
    variant: str = "corrected",
) -> float:
    """Lower bound on the loss of any s-sparse vector, from that of `weights`.

    Parameters
    ----------
    loss : float
        f at `weights`.
    weights, gradient : array-like of shape (p,)
        An s-sparse vector and the gradient there.
    s : int
        Features kept.
    convexity : float
        rho, restricted to s-sparse vectors (Assumption 3).
    variant : {"corrected", "printed"}
        Corrected: s counts one more for each selected feature whose gradient is not 0.

    Raises
    ------
    DoesNotApply
        If `weights` has more than s nonzero entries.
    """
    _check({"s": s}, convexity=convexity)
    weights, gradient = np.asarray(weights, float), np.asarray(gradient, float)
    nonzero = np.count_nonzero(weights)
    _require(nonzero <= s, f"{nonzero} nonzero weights > s = {s}")
    free = 0 if _printed(variant) else np.count_nonzero(gradient[weights != 0])
    return float(loss - (s + free) / (2 * convexity) * np.max(np.abs(gradient)) ** 2)


def os_theorem_3(
    losses: tuple[float, float, float],
    weights: ArrayLike,
    gradient: ArrayLike,
    eta: float,
    convexity: float,
    tolerance: float = 1e-8,
) -> Sides:
    """Loss of a local optimum of OS over that of the best sparse vector.

    Parameters
    ----------
    losses : tuple of three float
        f at 0, at the local optimum, at the best vector with as many features.
    weights, gradient : array-like of shape (p,)
        The local optimum and the gradient there.
    eta, convexity : float
        Step size; rho as in `os_lemma_4`.
    tolerance : float, default=1e-8
        Of the gradient, absolute.

    Raises
    ------
    DoesNotApply
        If `weights` is no local optimum: the gradient of a selected feature is not 0, or the
        step of another exceeds the smallest weight.
    """
    _check(eta=eta, convexity=convexity)
    weights, gradient = np.asarray(weights, float), np.abs(np.asarray(gradient, float))
    selected = weights != 0
    slope, step = np.max(gradient[selected]), eta * np.max(gradient[~selected], initial=0)
    smallest = np.min(np.abs(weights[selected]))
    _require(slope <= tolerance, f"a selected feature has gradient {slope:.4g}")
    _require(step <= smallest + tolerance, f"a step {step:.4g} > smallest weight {smallest:.4g}")
    at_zero, found, best = losses
    alpha = (convexity * eta) ** -2
    return Sides(found - best, alpha / (1 + alpha) * (at_zero - best))


# ofs: online leverage scores


def ofs_theorem_1(A: ArrayLike, sampled: ArrayLike, epsilon: float) -> Sides:
    """How well the scaled sample approximates the spectrum of all features.

    Parameters
    ----------
    A, sampled : array-like of shape (n, d) and (n, selected)
        All features as columns, and the selected ones over the roots of their probabilities.
    epsilon : float
        In (0, 1).

    Returns
    -------
    Sides
        The largest |x'(sampled sampled' - A A')x| over x'A A'x, and epsilon.
    """
    A, sampled = np.asarray(A, float), np.asarray(sampled, float)
    _epsilon(epsilon)
    U, singular, _ = np.linalg.svd(A, full_matrices=False)
    rank = np.count_nonzero(singular > singular[0] * max(A.shape) * np.finfo(float).eps)
    white = (U[:, :rank] / singular[:rank]).T @ sampled
    deviation = white @ white.T - np.eye(rank)
    return Sides(float(np.max(np.abs(np.linalg.eigvalsh(deviation)))), epsilon)


def _epsilon(epsilon):
    _check(epsilon=epsilon)
    _require(epsilon < 1, f"epsilon = {epsilon:g} is not in (0, 1)")


def ofs_theorem_1_failure(
    n: int,
    epsilon: float,
    ridge: float = 0.0,
    smallest: float | None = None,
    variant: str = "corrected",
) -> float:
    """Bound on the probability that Theorem 1 fails, with c = 8 log(n) / epsilon^2.

    For scores that are not too small: those of Algorithm 1 if its first matrix has full row rank,
    those that are 1 outside the span of the sampled features, and those with a small ridge.

    Parameters
    ----------
    n : int
        Rows, at least 2.
    epsilon : float
        In (0, 1).
    ridge : float, default=0.0
        lambda in a'(sampled sampled' + lambda I)^-1 a.
    smallest : float or None, default=None
        Smallest singular value of all features that is not 0; needed if there is a ridge.
    variant : {"corrected", "printed"}
        2 n^(1 - 4 / ((1 + x) (1 + epsilon / 3))), x = lambda / ((1 + epsilon) smallest^2): without
        a ridge at most 2 / n^2; or 1 / n, which takes no ridge into account.

    Raises
    ------
    DoesNotApply
        If epsilon is not in (0, 1) or n < 2, or if corrected and x > 1 / 2.
    """
    _check({"n": n})
    _epsilon(epsilon)
    _require(n > 1, f"n = {n} <= 1")
    if _printed(variant):
        return 1 / n
    x = 0.0
    if ridge != 0:
        if smallest is None:
            raise ValueError(f"smallest must be given with ridge={ridge}")
        _check(ridge=ridge, smallest=smallest)
        most = (1 + epsilon) * smallest**2 / 2
        _require(ridge <= most, f"ridge = {ridge:g} > (1 + epsilon) smallest^2 / 2 = {most:.4g}")
        x = ridge / (2 * most)
    return 2 * float(n) ** (1 - 4 / ((1 + x) * (1 + epsilon / 3)))


def ofs_lemma_1(scores: ArrayLike, n: int, epsilon: float, variant: str = "corrected") -> float:
    """Expected number of features that are sampled with probabilities min(c scores, 1).

    Parameters
    ----------
    scores : array-like of shape (d,)
        Leverage scores or more.
    n : int
        Rows.
    epsilon : float
        In (0, 1).
    variant : {"corrected", "printed"}
        c = 8 log(n) / epsilon^2 as in Algorithm 1, or 1 / epsilon.
    """
    _check({"n": n})
    _epsilon(epsilon)
    c = 1 / epsilon if _printed(variant) else 8 * log(n) / epsilon**2
    return float(np.minimum(c * np.asarray(scores, float), 1).sum())


def ofs_lemma_2(
    n: int, norm: float, epsilon: float, ridge: float, variant: str = "corrected"
) -> float:
    """Bound on the sum of the online leverage scores.

    Parameters
    ----------
    n : int
        Rows, at least 2.
    norm : float
        Largest singular value of the features.
    epsilon, ridge : float
        Accuracy in (0, 1); lambda in a'(sampled sampled' + lambda I)^-1 a.
    variant : {"corrected", "printed"}
        8 n + 8 n log(1 + (1 + epsilon) norm^2 / ridge), where Theorem 1 holds, else with
        probability at most exp(-n) exceeded; or 8 n + 8 n log(norm^2).
    """
    _check({"n": n}, norm=norm, ridge=ridge)
    _epsilon(epsilon)
    _require(n > 1, f"n = {n} <= 1")
    growth = norm**2 if _printed(variant) else 1 + (1 + epsilon) * norm**2 / ridge
    return 8 * n + 8 * n * log(growth)


def ofs_selected_features(
    n: int, norm: float, epsilon: float, ridge: float, d: int, variant: str = "corrected"
) -> float:
    """Bound on the expected number of selected features (Section 3.1).

    Parameters
    ----------
    n, norm, epsilon, ridge
        As in `ofs_lemma_2`.
    d : int
        Features seen, at least 2.
    variant : {"corrected", "printed"}
        8 log(n) / epsilon^2 times Lemma 2; or n log(d) log(norm) / epsilon^2, an order of growth
        that is printed with log(n) too.

    Raises
    ------
    DoesNotApply
        If epsilon is not in (0, 1), n < 2 or d < 2.
    """
    _check({"n": n, "d": d}, norm=norm, ridge=ridge)
    _epsilon(epsilon)
    _require(min(n, d) > 1, f"n = {n} or d = {d} is below 2")
    if _printed(variant):
        return n * log(d) * log(norm) / epsilon**2
    return 8 * log(n) / epsilon**2 * ofs_lemma_2(n, norm, epsilon, ridge)


def _cluster_cost(A, labels):
    A = np.asarray(A, float)
    residual = A.copy()
    for label in np.unique(labels):
        members = np.asarray(labels) == label
        residual[members] -= A[members].mean(axis=0)
    return float(np.sum(residual**2))


def ofs_lemma_3(A: ArrayLike, sampled: ArrayLike, labels: ArrayLike, epsilon: float) -> Sides:
    """Relative change of the k-means cost of a clustering by the selection of features.

    Parameters
    ----------
    A, sampled, epsilon
        As in `ofs_theorem_1`.
    labels : array-like of shape (n,)
        Cluster of every row.

    Raises
    ------
    DoesNotApply
        If the inequality of Theorem 1 does not hold.
    """
    deviation, _ = theorem = ofs_theorem_1(A, sampled, epsilon)
    _require(theorem.holds, f"deviation {deviation:.4g} > epsilon = {epsilon:g} in Theorem 1")
    cost = _cluster_cost(A, labels)
    return Sides(abs(_cluster_cost(sampled, labels) - cost), epsilon * cost)


def ofs_theorem_2(
    A: ArrayLike,
    sampled: ArrayLike,
    labels: ArrayLike,
    best_labels: ArrayLike,
    epsilon: float,
) -> Sides:
    """k-means cost of the clustering that is best for the selected features.

    Parameters
    ----------
    A, sampled, epsilon
        As in `ofs_theorem_1`.
    labels, best_labels : array-like of shape (n,)
        The best clusterings by the selected features and by all.

    Raises
    ------
    DoesNotApply
        If `labels` is not the better one by the selected features, and as Lemma 3.
    """
    costs = [_cluster_cost(sampled, each) for each in (labels, best_labels)]
    _require(costs[0] <= costs[1], f"labels cost {costs[0]:.4g} > {costs[1]:.4g} = best_labels")
    ofs_lemma_3(A, sampled, labels, epsilon)
    factor = (1 + epsilon) / (1 - epsilon)
    return Sides(_cluster_cost(A, labels), factor * _cluster_cost(A, best_labels))


def ofs_lemma_4(
    epsilon: float, variation: float, size: float, d: int, variant: str = "corrected"
) -> float:
    """Matrix Freedman inequality: bound on the probability that a martingale's norm is large.

    Parameters
    ----------
    epsilon, variation, size : float
        Norm of the martingale; bounds on its predictable quadratic variation and on its steps.
    d : int
        Rows of the matrices.
    variant : {"corrected", "printed"}
        2 d, or d, times exp(-(epsilon^2 / 2) / (variation + size epsilon / 3)).
    """
    _check({"d": d}, epsilon=epsilon, variation=variation, size=size)
    factor = d if _printed(variant) else 2 * d
    return factor * exp(-(epsilon**2) / 2 / (variation + size * epsilon / 3))


# barda: regret


class _Run(NamedTuple):
    """Record of T steps in d features, as `barda_theorem_1` explains."""

    gradients: np.ndarray  # (T, d)
    gaps: np.ndarray  # (T + 1, d) truncated away before step t
    scales: np.ndarray  # (T + 1, d) s_0 .. s_T
    played: np.ndarray  # (T + 1, d)
    regret: float


def _run(gradients, untruncated, played, losses, comparator_losses):
    gradients, untruncated, played = (
        np.asarray(array, float) for array in (gradients, untruncated, played)
    )
    T, d = gradients.shape
    for name, array in (("untruncated", untruncated), ("played", played)):
        if array.shape != (T + 1, d):
            raise ValueError(f"{name} has shape {array.shape}, must have {(T + 1, d)}")
        _require(not array[0].any(), f"{name} does not start at 0")
    scales = np.zeros((T + 1, d))
    scales[1:] = np.sqrt(np.cumsum(gradients**2, axis=0))
    regret = float(np.sum(losses) - np.sum(comparator_losses))
    return _Run(gradients, played - untruncated, scales, played, regret)


def barda_theorem_1(
    gradients: ArrayLike,
    untruncated: ArrayLike,
    played: ArrayLike,
    comparator: ArrayLike,
    losses: ArrayLike,
    comparator_losses: ArrayLike,
    eta: float,
    delta: float,
    variant: str = "corrected",
) -> Sides:
    """Regret of B-ARDA.

    Parameters
    ----------
    gradients : array-like of shape (T, d)
        g_1 .. g_T, of the loss without the penalty.
    untruncated, played : array-like of shape (T + 1, d)
        z_1 .. z_(T+1) and w_1 .. w_(T+1), from 0.
    comparator : array-like of shape (d,)
        w*.
    losses, comparator_losses : array-like of shape (T,)
        Of w_t and of w*, with the penalty.
    eta, delta : float
        Parameters of the algorithm.
    variant : {"corrected", "printed"}
        Whether the largest |w*| is squared.

    Raises
    ------
    DoesNotApply
        If an entry of a gradient exceeds delta, or the run does not start at 0.
    """
    _check(eta=eta, delta=delta)
    run = _run(gradients, untruncated, played, losses, comparator_losses)
    largest = np.max(np.abs(run.gradients))
    _require(largest <= delta, f"max ||g_t||_inf = {largest:.4g} > delta = {delta:g}")
    comparator = np.asarray(comparator, float)
    size, total = np.max(np.abs(comparator)), run.scales[-1].sum()
    gaps = np.einsum("ij,ij->i", run.gaps[:-1] ** 2, delta + run.scales[:-1])
    right = delta / (2 * eta) * comparator @ comparator
    right += ((size if _printed(variant) else size**2) / (2 * eta) + eta) * total
    right += sqrt(gaps.max() * 2 * len(run.gradients) * total)
    return Sides(run.regret, float(right))


def barda_theorem_2(
    gradients: ArrayLike,
    untruncated: ArrayLike,
    played: ArrayLike,
    comparator: ArrayLike,
    losses: ArrayLike,
    comparator_losses: ArrayLike,
    eta: float,
    delta: float,
    variant: str = "corrected",
) -> Sides:
    """Regret of B-AMD.

    Parameters
    ----------
    gradients
        As in `barda_theorem_1`, but of the loss with the penalty.
    untruncated, played, comparator, losses, comparator_losses, eta, delta
        As in `barda_theorem_1`.
    variant : {"corrected", "printed"}
        Whether delta ||w*||^2 / (2 eta) is added.

    Raises
    ------
    DoesNotApply
        If the run does not start at 0.
    """
    _check(eta=eta, delta=delta)
    run = _run(gradients, untruncated, played, losses, comparator_losses)
    comparator = np.asarray(comparator, float)
    truncated = np.sum(np.abs(run.gaps[1:]) * (delta + run.scales[1:]))
    distance = np.max(np.abs(comparator - run.played[:-1]))
    right = np.max(np.abs(comparator)) * truncated / eta
    right += (distance**2 / (2 * eta) + eta) * run.scales[-1].sum()
    if not _printed(variant):
        right += delta / (2 * eta) * comparator @ comparator
    return Sides(run.regret, float(right))


def barda_passes(n: int, d: int) -> int:
    """Passes over n rows of d features in the experiments, ceil(2 d / n)."""
    _check({"n": n, "d": d})
    return -(-2 * d // n)
