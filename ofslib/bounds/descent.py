"""SFSA and OFSA, gradient descent with annealing: Sun (2019), dissertation, how they converge.

Lemmas 1 and 2, Propositions 1, 4 and 7, Corollaries 1 and 3, Theorems 1 and 3.
"""

from math import floor, log, sqrt

import numpy as np
from numpy.typing import ArrayLike

from ofslib.bounds.statements import (
    Inequality,
    Recovery,
    check,
    check_numbers,
    is_printed,
    read,
    require,
)

# The papers' rounding of the golden ratio, the largest expansion by hard thresholding.
EXPANSION = 1.62

# Theorems 1 and 3.
LARGEST_CONDITION = 1.26


def _rho(eta, m, M):
    """Contraction of a gradient step, sqrt(1 - 2 eta m + eta^2 M^2)."""
    check(eta=eta, m=m, M=M)
    if m > M:
        raise ValueError(f"m={m} exceeds M={M}")
    require(eta < 2 * m / M**2, f"eta = {eta:.4g} >= 2 m / M^2 = {2 * m / M**2:.4g}")
    return sqrt(1 - 2 * eta * m + (eta * M) ** 2)


def _contraction(eta, m, M, checked):
    """1.62 rho of Theorems 1 and 3; if `checked`, it must be below 1."""
    check(m=m, M=M)
    require(M / m < LARGEST_CONDITION, f"M/m = {M / m:.4g} >= {LARGEST_CONDITION}")
    factor = EXPANSION * _rho(eta, m, M)
    if checked:
        half = sqrt(m**2 - (1 - EXPANSION**-2) * M**2)
        ends = f"{(m - half) / M**2:.4g}, {(m + half) / M**2:.4g}"
        require(factor < 1, f"1.62 rho = {factor:.4g} >= 1, eta = {eta:.4g} is not in ({ends})")
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
) -> Inequality:
    """A gradient step brings two sparse points nearer to each other.

    Parameters
    ----------
    point, other, gradient, other_gradient : array-like of shape (p,)
        The points and the gradients there.
    eta : float
        Step size, of the unit of 1 / M.
    m, M : float
        Restricted convexity and smoothness, on the union of the two supports.
    variant : {"corrected", "printed"}, default="corrected"
        Whether the gradients are restricted to that union, or whole.

    Returns
    -------
    Inequality
        Distances after and before the step, the latter times rho; in units of a coefficient.

    Raises
    ------
    DoesNotApply
        Unless eta < 2 m / M^2.
    ValueError, TypeError
        If the arrays are not of one length, or m > M; and as in `ofslib.bounds`.

    Examples
    --------
    >>> dissertation_lemma_1([1.0, 0], [0, 0], [1.0, 0.5], [0, 0], eta=0.5, m=1.0, M=1.0)
    Inequality(left=0.5, right=0.5)
    """
    rho, printed = _rho(eta, m, M), is_printed(variant)
    point = read("point", point, None)
    p = len(point)
    other = read("other", other, p)
    step = read("gradient", gradient, p) - read("other_gradient", other_gradient, p)
    if not printed:
        step = np.where((point != 0) | (other != 0), step, 0)
    apart = np.linalg.norm(point - other)
    return Inequality(float(np.linalg.norm(point - other - eta * step)), float(rho * apart))


def dissertation_lemma_2(k: int, k_true: int, d: int) -> float:
    """sqrt(nu) in ||Theta_k(y) - x|| <= sqrt(nu) ||y - x||.

    Parameters
    ----------
    k, k_true, d : int
        Entries kept, nonzero entries of x, and entries in all.

    Returns
    -------
    float
        From 1 to the golden ratio, 1.618; without a unit.

    Raises
    ------
    DoesNotApply
        Unless k_true <= k <= d.
    ValueError, TypeError
        As in `ofslib.bounds`.

    Examples
    --------
    >>> round(dissertation_lemma_2(1, 1, 2), 4)
    1.618
    """
    check({"k": k, "k_true": k_true, "d": d})
    require(k_true <= k <= d, f"k* = {k_true} <= k = {k} <= d = {d} is wrong")
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
) -> Inequality:
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
        Step size, and restricted convexity and smoothness of the step's loss.
    variant : {"corrected", "printed"}, default="corrected"
        Printed: that no true feature was removed is not required.

    Returns
    -------
    Inequality
        Distances to the truth, in units of a coefficient.

    Raises
    ------
    DoesNotApply
        Unless eta < 2 m / M^2 and (corrected) no true feature was removed.
    ValueError, TypeError
        If the arrays are not of one length, or m > M; and as in `ofslib.bounds`.

    Examples
    --------
    >>> sides = dissertation_proposition_1(
    ...     [0.0, 0], [0.5, 0], [1.0, 0], [0.0, 0], [True, True], eta=0.5, m=1.0, M=1.0
    ... )
    >>> sides.left, round(sides.right, 2)
    (0.5, 0.81)
    """
    rho, printed = _rho(eta, m, M), is_printed(variant)
    truth = read("truth", truth, None)
    p = len(truth)
    kept = read("kept", kept, p) != 0
    before, after = read("before", before, p), read("after", after, p)
    removed = np.flatnonzero((truth != 0) & ~kept)
    if not printed:
        require(not len(removed), f"true features {removed.tolist()} were removed")
    size = np.count_nonzero((truth != 0) | kept)
    steepest = np.max(np.abs(read("gradient", gradient, p)))
    right = rho * np.linalg.norm(before - truth) + eta * sqrt(size) * steepest
    return Inequality(float(np.linalg.norm(after - truth)), float(EXPANSION * right))


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
        Steps, features.
    norm : float
        ||beta*||, Euclidean.
    G : float
        Largest ||grad f_t||_inf at beta*. (Printed: anywhere, which no strongly convex loss has.)
    eta, m, M : float
        Step size, and restricted convexity and smoothness of the losses.
    variant : {"corrected", "printed"}, default="corrected"
        Whether 1.62 rho < 1 is required, which M / m < 1.26 does not imply.

    Returns
    -------
    float
        In units of a coefficient. Printed it is no bound where 1.62 rho >= 1, and may be negative.

    Raises
    ------
    DoesNotApply
        Unless M / m < 1.26, eta < 2 m / M^2 and (corrected) 1.62 rho < 1.
    ValueError, TypeError
        If m > M; and as in `ofslib.bounds`.

    Examples
    --------
    >>> round(dissertation_theorem_1(2, p=9, norm=2.0, G=0.1, eta=0.75, m=1.0, M=1.0), 3)
    0.941
    """
    check({"t": t, "p": p}, norm=norm, G=G)
    factor = _contraction(eta, m, M, checked=not is_printed(variant))
    require(factor != 1, "1.62 rho = 1, where the second term is infinite")
    return factor**t * norm + EXPANSION * eta * sqrt(p) * G / (1 - factor)


def dissertation_corollary_1(
    p: int, G: float, eta: float, m: float, M: float, norm_ratio: float, variant: str = "corrected"
) -> Recovery:
    """Coefficients that SFSA finds, and the steps that it takes.

    For a constant step and ranking by |beta|: `SFSARegressor(importance="coef")`. Its warm-up must
    last for these steps, as nothing may be removed before.

    Parameters
    ----------
    p : int
        Features.
    G, eta, m, M : float
        As in `dissertation_theorem_1`.
    norm_ratio : float
        ||beta*|| over the smallest true |coefficient|; sqrt(k) if all are equal.
    variant : {"corrected", "printed"}, default="corrected"
        Corrected: 3.24 in place of 2 in the threshold, the logarithm of the iterations to the base
        1 / (1.62 rho), and no feature may be removed before so many steps.

    Returns
    -------
    Recovery
        `beta_min` in units of a coefficient, for certain.

    Raises
    ------
    DoesNotApply
        Unless Theorem 1 does; and, printed too, unless 1.62 rho < 1: else the threshold is
        negative.
    ValueError, TypeError
        If norm_ratio < 1 or m > M; and as in `ofslib.bounds`.

    Examples
    --------
    >>> found = dissertation_corollary_1(9, G=0.1, eta=0.75, m=1.0, M=1.0, norm_ratio=10.0)
    >>> round(found.beta_min, 3), found.iterations
    (1.225, 4)
    """
    check({"p": p}, G=G)
    _check_norm_ratio(norm_ratio)
    printed = is_printed(variant)
    factor = _contraction(eta, m, M, checked=True)
    beta_min = (2 if printed else 2 * EXPANSION) * eta * sqrt(p) * G / (1 - factor)
    return Recovery(beta_min, 1.0, _iterations(2 * norm_ratio, factor, printed))


def _check_norm_ratio(norm_ratio):
    check(norm_ratio=norm_ratio)
    if norm_ratio < 1:
        raise ValueError(f"norm_ratio={norm_ratio} must be at least 1: no entry exceeds the norm")


def _iterations(ratio, factor, printed):
    """Steps until factor^t ratio < 1; as printed, with 1 / factor for 1 / log(1 / factor)."""
    require(not printed or factor > 0, "1.62 rho = 0 divides the printed number of steps")
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

    Theorem 1, whose other arguments these are, with G = 2 sigma sqrt(log(p) / n); C1 = 2 / C, where
    C < 2 bounds the mean squares of the columns. So it is for features in units in which they are
    about 1.

    Parameters
    ----------
    n : int
        Rows.
    sigma : float
        Standard deviation of the noise.

    Returns
    -------
    float
        In units of a coefficient. Printed it is no bound where 1.62 rho >= 1, and may be negative.

    Raises
    ------
    DoesNotApply, ValueError, TypeError
        As `dissertation_theorem_1`; and DoesNotApply unless p >= 2.

    Examples
    --------
    >>> round(dissertation_theorem_3(2, 100, 9, 0.5, 2.0, eta=0.75, m=1.0, M=1.0), 3)
    1.236
    """
    check({"n": n, "p": p}, sigma=sigma)
    require(p > 1, f"p = {p} <= 1")
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

    `OFSARegressor` descends on standardised features. For it m and M are eigenvalues of the
    correlations, and `beta_min` is that of the coefficients times the standard deviations of their
    features.

    Parameters
    ----------
    n, p : int
        Rows and features.
    sigma, eta, m, M : float
        As in `dissertation_theorem_3`.
    norm_ratio : float
        As in `dissertation_corollary_1`.
    C1 : float, default=2.0
        2 / C, C as in `dissertation_theorem_3`.
    variant : {"corrected", "printed"}, default="corrected"
        Corrected: the logarithm to the base 1 / (1.62 rho), and no feature may be removed before.

    Returns
    -------
    Recovery
        `beta_min` in units of a coefficient, with probability 1 - 2 p^(1 - C1).

    Raises
    ------
    DoesNotApply
        Unless Theorem 1 does, p >= 2 and C1 > 1; and, printed too, unless 1.62 rho < 1: else the
        threshold is negative.
    ValueError, TypeError
        If norm_ratio < 1 or m > M; and as in `ofslib.bounds`.

    Examples
    --------
    >>> found = dissertation_corollary_3(100, 9, 0.5, eta=0.75, m=1.0, M=1.0, norm_ratio=10.0)
    >>> round(found.beta_min, 3), round(found.probability, 3), found.iterations
    (1.121, 0.778, 6)
    """
    check({"n": n, "p": p}, sigma=sigma)
    check_numbers(C1=C1)
    _check_norm_ratio(norm_ratio)
    require(p > 1, f"p = {p} <= 1")
    require(C1 > 1, f"C1 = {C1:g} <= 1")
    printed = is_printed(variant)
    factor = _contraction(eta, m, M, checked=True)
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

    The other arguments are those of `dissertation_corollary_3`.

    Parameters
    ----------
    square_bound : float
        M of `dissertation_proposition_6`.
    variant : {"corrected", "printed"}, default="corrected"
        Corrected: sqrt(square_bound) times the threshold, with probability 1 - 2 / p; and the
        iterations of Corollary 3.

    Returns
    -------
    Recovery
        `beta_min` in units of a coefficient.

    Raises
    ------
    DoesNotApply
        Unless Corollary 3 does, and (printed) square_bound < 2.
    ValueError, TypeError
        As `dissertation_corollary_3`.

    Examples
    --------
    >>> found = dissertation_proposition_7(100, 9, 0.5, 0.75, 1.0, 1.0, 10.0, square_bound=1.44)
    >>> round(found.beta_min, 3), round(found.probability, 3)
    (1.345, 0.778)
    """
    check(square_bound=square_bound)
    if is_printed(variant):
        require(square_bound < 2, f"M = {square_bound:g} >= 2")
        C1, scale = 2 / square_bound, 1.0
    else:
        C1, scale = 2.0, sqrt(square_bound)
    check(sigma=sigma)
    return dissertation_corollary_3(n, p, scale * sigma, eta, m, M, norm_ratio, C1, variant)
