"""What no method can find, and what single methods need beside it: docs/bounds.md."""

from functools import lru_cache
from math import exp, log, sqrt
from typing import NamedTuple

import numpy as np
from numpy.polynomial.hermite_e import hermegauss
from numpy.polynomial.legendre import leggauss
from scipy.interpolate import CubicSpline
from scipy.optimize import brentq
from scipy.special import comb, log_ndtr, ndtr
from scipy.stats import chi2

from ofslib.bounds.statements import check, check_delta, check_sizes, check_spike, require

# Of the quadratures of `_kept`: good to 1e-8, but for runs of so few steps that 0 is not forgotten.
NODES = 10
# Found once for each number of nodes: they take as long as all else of a quadrature.
_legendre, _hermite = lru_cache(leggauss), lru_cache(hermegauss)


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
    support that the proof names (docs/bounds.md): a bound, not the best method's own probability.

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
    _check_sizes(n, p, k)
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
    _check_sizes(n, p, k)
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
    _check_sizes(n, p, k)
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
    _check_sizes(2, p, k)
    check_spike(spike)
    # Of the k true features: eigenvalues. Of the others, given these: variance and half
    # that of a difference. 1 - ||Sigma_(false, true) Sigma_true^-1||_inf: incoherence.
    most, given, incoherence = 1 + spike * k, 1 + spike / (1 + spike * k), 1 / (1 + spike * k)
    smallest, needed = most if k == 1 else 1, 2 * k * log(p - k)
    lower = needed / (most * (2 - incoherence) ** 2)
    return Thresholds(lower, needed * given / (smallest * incoherence**2))


def sgdt_recovery_probability(
    beta: float,
    n: int,
    p: int,
    k: int,
    learning_rate: float,
    batch_size: int = 25,
    sigma: float = 1.0,
    spike: float = 0.0,
) -> float:
    """Probability that one pass of SGDT keeps the k true features, without an intercept.

    For `SGDTRegressor(importance="coef", fit_intercept=False)`, which ranks by |beta|. The mean and
    the second moments of its errors are exact, for rows N(0, I + spike 11'): by symmetry they are
    two and five numbers, which a step maps linearly. Their law is taken for normal, which it is not
    exactly: docs/bounds.md says how far off it was found. With a spike all coefficients must have
    the same sign; with mixed signs SGDT fails more often. Features of other variances are not
    covered: each descends at a pace of its own.

    Parameters
    ----------
    beta : float
        True coefficient, equal and of one sign on all k features, positive; label over feature.
    n, p, k : int
        Rows, features, true features; k < p.
    learning_rate : float
        Constant step size eta.
    batch_size : int, default=25
        Rows of a mini-batch; the last one has what is left.
    sigma : float, default=1.0
        Standard deviation of the noise, in the unit of the labels.
    spike : float, default=0.0
        Covariance of any two features, at least 0.

    Returns
    -------
    float
        In [0, 1].

    Raises
    ------
    DoesNotApply
        If the mean squared error grows without bound: `learning_rate` is too large.
    ValueError, TypeError
        If k >= p or spike < 0; and as in `ofslib.bounds`.

    Examples
    --------
    >>> round(sgdt_recovery_probability(0.05, 10_000, 100, 10, 0.003), 3)
    0.751
    """
    _check_sizes(2, p, k)
    check({"n": n, "batch_size": batch_size}, beta=beta, learning_rate=learning_rate, sigma=sigma)
    check_spike(spike)
    law = _descent_law(n, p, k, learning_rate, batch_size, float(spike))
    return _kept(beta / sigma, law, p, k)


def sgdt_beta_min(
    n: int,
    p: int,
    k: int,
    learning_rate: float,
    batch_size: int = 25,
    sigma: float = 1.0,
    spike: float = 0.0,
    delta: float = 0.05,
) -> float:
    """Smallest coefficient, equal on k features, with which one pass of SGDT keeps all k.

    With probability 1 - `delta`, by `sgdt_recovery_probability`, whose other arguments and
    conditions these are.

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
        If `learning_rate` is too large; if no coefficient suffices, as with correlated features
        and too few steps; if 1 - `delta` is near the level of chance.
    ValueError, TypeError
        If k >= p, delta >= 1 or spike < 0; and as in `ofslib.bounds`.

    Examples
    --------
    >>> round(sgdt_beta_min(10_000, 100, 10, 0.003, delta=0.5), 4)
    0.0447
    """
    _check_sizes(2, p, k)
    check({"n": n, "batch_size": batch_size}, learning_rate=learning_rate, sigma=sigma)
    check_spike(spike)
    law = _descent_law(n, p, k, learning_rate, batch_size, float(spike))
    return sigma * least(lambda beta: _kept(beta, law, p, k), p, k, delta, near_floor(n, p))


def _check_sizes(n, p, k):
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
    node, weight = _legendre(96)
    low, high = np.log(chi2.ppf(1e-12, freedom)), np.log(chi2.isf(1e-12, freedom))
    log_square = low + (high - low) * (node + 1) / 2
    weight = weight * np.exp(chi2.logpdf(np.exp(log_square), freedom) + log_square)
    return np.exp(log_square), weight / weight.sum()


# SGDT: A step is e <- e - eta A e + eta g, A = X'X / m and g = X'noise / m of m rows. The second
# moments of e are diag(d) + U C U', where U tells the k true features from the others.


@lru_cache(maxsize=64)
def _descent_law(n, p, k, eta, batch, spike):
    """What one pass leaves: mean error for beta = 1, and d, C for beta = 1 and for sigma = 1."""
    sizes = np.array([k, p - k])
    steps, rest = divmod(n, batch)
    whole, last = stable_step(eta, batch, sizes, spike), _step(eta, rest or batch, sizes, spike)
    moved = np.linalg.matrix_power(whole, steps)
    mean = np.eye(2) - eta * (np.eye(2) + spike * np.ones((2, 1)) * sizes)
    moved = (last @ moved) if rest else moved
    mean = np.linalg.matrix_power(mean, steps + bool(rest)) @ [-1.0, 0.0]
    return mean, moved[:5, 2], moved[:5, 5]


def stable_step(eta, rows, sizes, spike):
    """As `_step`; DoesNotApply if by repeating it the squared error would grow without bound."""
    step = _step(eta, rows, sizes, spike)
    radius = np.abs(np.linalg.eigvals(step[:5, :5])).max()
    require(radius < 1, f"learning_rate = {eta}: the squared error grows {radius:.4g} times a step")
    return step


def _step(eta, rows, sizes, spike):
    """The map of (d_1, d_2, C_11, C_12, C_22, sigma^2) by one step, as a matrix."""
    images = []
    for d_1, d_2, c_11, c_12, c_22, noise in np.eye(6):
        d, C = np.array([d_1, d_2]), np.array([[c_11, c_12], [c_12, c_22]])
        # Sigma S and Sigma S Sigma, of which the diagonal part is d; E[A S A] of Gaussian rows.
        once = C + spike * (d + sizes @ C)
        twice = once + spike * (d + once @ sizes)[:, None]
        trace = sizes @ (d + np.diag(once))
        by_rows = eta**2 * (trace + noise) / rows
        d = d * (1 - 2 * eta + eta**2 * (1 + 1 / rows)) + by_rows
        C = C - eta * (once + once.T) + eta**2 * (1 + 1 / rows) * twice + by_rows * spike
        images.append([*d, C[0, 0], (C[0, 1] + C[1, 0]) / 2, C[1, 1], noise])
    return np.array(images).T


def _kept(ratio, law, p, k):
    """P(the k true features have the largest |coefficient|), the law taken for normal."""
    bias, signal, noise = law
    mean = ratio * (bias + np.array([1.0, 0.0]))
    moments = ratio**2 * signal + noise
    deviation = np.sqrt(moments[:2])
    shared = moments[[2, 3, 3, 4]].reshape(2, 2) - ratio**2 * np.outer(bias, bias)
    # As in olsth.py: what all errors share is averaged over, an imaginary shift where the
    # covariance is negative; then the integral is over the largest false coefficient.
    values, vectors = np.linalg.eigh(shared)
    node, weight = _hermite(NODES)
    root = vectors * np.sqrt(values if values[0] >= 0 else values.astype(complex))
    shifts = [each.ravel() for each in np.meshgrid(node, node)]
    true, false = (mean[:, None] + root @ shifts)[:, :, None]
    weight = np.outer(weight, weight).ravel() / (2 * np.pi)
    m, dm = _legendre(10 * NODES)
    half = 9 * sqrt(moments[1] + max(shared[1, 1], 0.0))
    low, high = max(0.0, abs(mean[1]) - half), abs(mean[1]) + half
    m, dm = low + (high - low) * (m + 1) / 2, (high - low) * dm / 2

    def at_most(shift, spread):
        return ndtr((m - shift) / spread) - ndtr((-m - shift) / spread)

    both = [np.exp(-(((side * m - false) / deviation[1]) ** 2) / 2) for side in (1, -1)]
    density = (both[0] + both[1]) / (sqrt(2 * np.pi) * deviation[1])
    largest = (p - k) * at_most(false, deviation[1]) ** (p - k - 1) * density
    found = largest * (1 - at_most(true, deviation[0])) ** k
    return float(np.clip((weight @ found @ dm).real, 0, 1))
