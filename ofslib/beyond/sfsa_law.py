"""What SFSA needs, as if each feature met the mean of many others: docs/theory.

A coefficient descends on its own, among gradients whose noise is that of all that are left, and is
lost where it is below a cut, which leaves as many false features as the schedule has. The laws of
true and false coefficients, as distribution functions on a grid, follow from step to step.
"""

from math import ceil, sqrt

import numpy as np
from numpy.polynomial.hermite_e import hermegauss
from scipy.special import ndtr

from ofslib.beyond.sgdt_law import stable_step
from ofslib.bounds.limits import least, near_floor
from ofslib.bounds.statements import check, check_numbers, check_sizes, check_spike, require

# Places of the grid, at least and at most, so that there is one in so many standard deviations of
# the noise; steps that are followed one by one, or as many stages of several.
PLACES, MOST_PLACES, APART, STAGES = 601, 40_001, 0.6, 300
# Beyond it squares may exceed the numbers there are.
MOST_RATIO = 1e100


def sfsa_recovery_probability(
    beta: float,
    n: int,
    p: int,
    k: int,
    learning_rate: float,
    batch_size: int = 25,
    sigma: float = 1.0,
    spike: float = 0.0,
    mu: float = 10.0,
    warmup: int = 0,
) -> float:
    """Probability that one pass of SFSA keeps the k true features: a mean-field approximation.

    For `SFSARegressor(importance="coef", fit_intercept=False)`, which ranks by |beta|, with a
    constant step and k features left after the last row. The rows are N(0, I + spike 11').
    docs/theory says how far off it was found. With a spike all coefficients must have the same
    sign; with mixed signs SFSA fails far more often. Features of other variances are not covered.

    Parameters
    ----------
    beta : float
        True coefficient, equal and of one sign on all k features, positive; label over feature.
    n, p, k : int
        Rows, features, true features; k < p.
    learning_rate : float
        Constant step size eta.
    batch_size : int, default=25
        Rows of a mini-batch.
    sigma : float, default=1.0
        Standard deviation of the noise, in the unit of the labels.
    spike : float, default=0.0
        Covariance of any two features, at least 0.
    mu : float, default=10.0
        Of the annealing, at least 0: the larger, the earlier features go.
    warmup : int, default=0
        Rows before the first feature goes, fewer than n.

    Returns
    -------
    float
        In [0, 1].

    Raises
    ------
    DoesNotApply
        If with all features the mean squared error grows without bound, or `learning_rate` is 1 or
        more; if beta / sigma is so large that the grid does not show the noise beside it.
    ValueError, TypeError
        If k >= p, spike < 0, mu < 0 or warmup is not in [0, n); and as in `ofslib.bounds`.

    Examples
    --------
    >>> round(sfsa_recovery_probability(0.3, 4000, 100, 10, 0.02), 1)
    0.5
    """
    check(beta=beta, sigma=sigma)
    left = _schedule(n, p, k, learning_rate, batch_size, spike, mu, warmup)
    return _kept(beta / sigma, left, p, k, learning_rate, batch_size, spike)


def sfsa_beta_min(
    n: int,
    p: int,
    k: int,
    learning_rate: float,
    batch_size: int = 25,
    sigma: float = 1.0,
    spike: float = 0.0,
    mu: float = 10.0,
    warmup: int = 0,
    delta: float = 0.05,
) -> float:
    """Smallest coefficient, equal on k features, with which one pass of SFSA keeps all k.

    With probability 1 - `delta`, by `sfsa_recovery_probability`, whose other arguments and
    conditions these are: an approximation.

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
        If `learning_rate` is too large; if no coefficient suffices, or none below which the grid
        shows the noise; if 1 - `delta` is near the level of chance.
    ValueError, TypeError
        As `sfsa_recovery_probability`; and if delta >= 1.

    Examples
    --------
    >>> round(sfsa_beta_min(4000, 100, 10, 0.02, warmup=2000, delta=0.5), 2)
    0.08
    """
    check(sigma=sigma)
    left = _schedule(n, p, k, learning_rate, batch_size, spike, mu, warmup)

    def probability(ratio):
        return _kept(ratio, left, p, k, learning_rate, batch_size, spike)

    return sigma * least(probability, p, k, delta, near_floor(n, p))


def _schedule(n, p, k, learning_rate, batch_size, spike, mu, warmup):
    """Features left after each step."""
    check_sizes(n, p, k)
    check({"batch_size": batch_size}, learning_rate=learning_rate)
    check_spike(spike)
    check_numbers(mu=mu, warmup=warmup)
    if mu < 0:
        raise ValueError(f"mu={mu} must be at least 0 and finite")
    if not 0 <= warmup < n:
        raise ValueError(f"warmup={warmup} must be at least 0 and below n={n}")
    stable_step(learning_rate, batch_size, np.array([k, p - k]), spike)
    require(learning_rate < 1, f"learning_rate = {learning_rate} >= 1: a step goes past its goal")
    steps, first = -(-n // batch_size), warmup // batch_size
    t = np.maximum(np.arange(1, steps + 1) - first, 0)
    over = steps - first
    return k + np.rint((p - k) * (over - t) / (t * mu + over)).astype(int)


def _kept(ratio, schedule, p, k, eta, batch, spike):
    """P(the k true features stay), the coefficient over sigma being `ratio`."""
    _see_noise(ratio < MOST_RATIO, ratio)
    steps, count, target = len(schedule), np.array([k, p - k]), np.array([ratio, 0.0])
    stops = np.arange(1, steps + 1)
    if steps > STAGES:
        early = STAGES // 5
        stops = np.unique(np.rint(np.geomspace(early, steps, STAGES - early)).astype(int))
        stops = np.concatenate([np.arange(1, early), stops])
    node, weight = hermegauss(16)
    weight = weight / weight.sum()
    # The mass of each coefficient that is at or below each place; all are 0 at first.
    x, below, shift, variance = None, None, 0.0, 0.0
    mass, mean, square = np.ones(2), np.zeros(2), ratio**2 * k
    for t, before in zip(stops, [0, *stops[:-1]], strict=True):
        repeats, left = t - before, schedule[before - 1] if before else p
        rest = (1 - eta) ** repeats
        error = count @ (mean - target * mass)
        drift = -error * (rest - (1 - eta * (1 + spike * left)) ** repeats) / left if spike else 0.0
        noise = eta**2 * (1 + square + spike * error**2) / batch
        spread = sqrt(noise * (1 - rest**2) / (1 - (1 - eta) ** 2))
        shift, variance = rest * shift + drift, rest**2 * variance + spread**2
        half = ratio * (1 - (1 - eta) ** t) + abs(shift) + 7 * sqrt(variance)
        new, last = half * _places(half / sqrt(variance), ratio), below
        centre = (new - drift - (1 - rest) * target[:, None]) / rest
        if x is None:
            below = ndtr(centre * rest / spread)
        else:
            # To draw lines between places adds a sixth of their squared distance to the variance.
            added = (x[1] - x[0]) ** 2 / 6
            from_where = centre[:, :, None] + node * sqrt(max((spread / rest) ** 2 - added, 0))
            below = np.stack(
                [np.interp(from_where[i], x, last[i], 0.0, mass[i]) @ weight for i in (0, 1)]
            )
        x = new
        if schedule[t - 1] > k:
            outside = _outside(below)
            share = (schedule[t - 1] - k) / (p - k)
            if share < outside[1, 0]:
                cut = np.interp(share, outside[1, ::-1], x[len(x) // 2 :][::-1])
                low, high = (
                    np.array([np.interp(end, x, each) for each in below]) for end in (-cut, cut)
                )
                inner = np.clip(below, low[:, None], high[:, None])
                below = below - (inner - low[:, None])
        mass, middle, each = below[:, -1], (x[1:] + x[:-1]) / 2, np.diff(below)
        mean = each @ middle
        square = count @ np.sum(each * (middle - target[:, None]) ** 2, axis=1)
    true, false = np.clip(_outside(below), 0, 1)
    none = (1 - false) ** (p - k)
    larger = true**k
    found = none[0] * larger[0] + np.diff(none) @ (larger[1:] + larger[:-1]) / 2
    return float(np.clip(found, 0, 1))


def _places(reach, ratio):
    """From -1 to 1, of which one is 0; `reach` is how many standard deviations 1 is."""
    _see_noise(2 * reach < MOST_PLACES * APART, ratio)
    aside = max(PLACES // 2, ceil(reach / APART))
    return np.linspace(-1, 1, 2 * aside + 1)


def _see_noise(fits, ratio):
    require(fits, f"beta / sigma = {ratio:.3g} is too large: the noise is not seen beside it")


def _outside(below):
    """The mass that is larger in size, from the place 0 on."""
    middle = below.shape[1] // 2
    return below[:, middle::-1] + below[:, -1:] - below[:, middle:]
