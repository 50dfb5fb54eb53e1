"""The law of what one pass of SGDT selects: docs/theory."""

from functools import lru_cache
from math import sqrt

import numpy as np
from numpy.polynomial.hermite_e import hermegauss
from scipy.special import ndtr

from ofslib.bounds.limits import check_sizes_of_rows, least, legendre, near_floor
from ofslib.bounds.statements import check, check_spike, require

# Of the quadratures of `_kept`: good to 1e-8, but for runs of so few steps that 0 is not forgotten.
NODES = 10
_hermite = lru_cache(hermegauss)


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
    exactly: docs/theory says how far off it was found. With a spike all coefficients must have
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
    check_sizes_of_rows(2, p, k)
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
    check_sizes_of_rows(2, p, k)
    check({"n": n, "batch_size": batch_size}, learning_rate=learning_rate, sigma=sigma)
    check_spike(spike)
    law = _descent_law(n, p, k, learning_rate, batch_size, float(spike))
    return sigma * least(lambda beta: _kept(beta, law, p, k), p, k, delta, near_floor(n, p))


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
    m, dm = legendre(10 * NODES)
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
