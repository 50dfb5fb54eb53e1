"""SFSA and OFSA, gradient descent with annealing: Sun (2019), dissertation, how they converge.

Lemmas 1 and 2, Propositions 1, 4 and 7, Corollaries 1 and 3, Theorems 1 and 3.
"""

from math import floor, log, sqrt

import numpy as np
from numpy.typing import ArrayLike

from ofslib.bounds.statements import Recovery, Sides, check, is_printed, require

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


def _contraction(eta, m, M, printed):
    """1.62 rho of Theorems 1 and 3, which must be below 1."""
    check(m=m, M=M)
    require(M / m < LARGEST_CONDITION, f"M/m = {M / m:.4g} >= {LARGEST_CONDITION}")
    factor = EXPANSION * _rho(eta, m, M)
    if not printed:
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
) -> Sides:
    """A gradient step brings two sparse points nearer to each other; if eta < 2 m / M^2.

    Parameters
    ----------
    point, other, gradient, other_gradient : array-like of shape (p,)
        The points and the gradients there.
    m, M : float
        On the union of the two supports.
    variant
        Whether the gradients are restricted to that union, or (printed) whole.
    """
    rho = _rho(eta, m, M)
    point, other = np.asarray(point, float), np.asarray(other, float)
    step = np.subtract(gradient, other_gradient)
    if not is_printed(variant):
        step = np.where((point != 0) | (other != 0), step, 0)
    apart = np.linalg.norm(point - other)
    return Sides(float(np.linalg.norm(point - other - eta * step)), float(rho * apart))


def dissertation_lemma_2(k: int, k_true: int, d: int) -> float:
    """sqrt(nu) in ||Theta_k(y) - x|| <= sqrt(nu) ||y - x||, at most the golden ratio.

    k, k_true and d are the entries kept, nonzero entries of x, and entries in all; if
    k_true <= k <= d.
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
) -> Sides:
    """One step of SFSA (2.1), or with the loss of all rows, of OFSA (Proposition 4).

    Applies if no true feature was removed, and eta < 2 m / M^2.

    Parameters
    ----------
    before, after, truth : array-like of shape (p,)
        Coefficients before and after the step, and the true ones.
    gradient : array-like of shape (p,)
        Of the step's loss, at `truth`.
    kept : array-like of bool, shape (p,)
        The features not yet removed before the step.
    m, M : float
        Of the step's loss.
    variant
        Printed: that no true feature was removed is not required.
    """
    rho = _rho(eta, m, M)
    truth, kept = np.asarray(truth, float), np.asarray(kept, bool)
    removed = np.flatnonzero((truth != 0) & ~kept)
    if not is_printed(variant):
        require(not len(removed), f"true features {removed.tolist()} were removed")
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

    Applies if M / m < 1.26, eta < 2 m / M^2 and (corrected) 1.62 rho < 1.

    Parameters
    ----------
    t : int
        Steps.
    norm : float
        ||beta*||, Euclidean.
    G : float
        Largest ||grad f_t||_inf at beta*. (Printed: anywhere, which no strongly convex loss has.)
    variant
        Whether 1.62 rho < 1 is required, which M / m < 1.26 does not imply.
    """
    check({"t": t, "p": p}, norm=norm, G=G)
    factor = _contraction(eta, m, M, is_printed(variant))
    return factor**t * norm + EXPANSION * eta * sqrt(p) * G / (1 - factor)


def dissertation_corollary_1(
    p: int, G: float, eta: float, m: float, M: float, norm_ratio: float, variant: str = "corrected"
) -> Recovery:
    """Coefficients that SFSA finds, and the steps that it takes; if Theorem 1 applies.

    Parameters
    ----------
    norm_ratio : float
        ||beta*|| over the smallest true |coefficient|; sqrt(k) if all are equal.
    variant
        Corrected: 3.24 in place of 2 in the threshold, the logarithm of the iterations to the base
        1 / (1.62 rho), and no feature may be removed before so many steps.
    """
    check({"p": p}, G=G)
    _check_norm_ratio(norm_ratio)
    printed = is_printed(variant)
    factor = _contraction(eta, m, M, printed)
    beta_min = (2 if printed else 2 * EXPANSION) * eta * sqrt(p) * G / (1 - factor)
    return Recovery(beta_min, 1.0, _iterations(2 * norm_ratio, factor, printed))


def _check_norm_ratio(norm_ratio):
    check(norm_ratio=norm_ratio)
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

    Theorem 1, whose arguments these are, with G = 2 sigma sqrt(log(p) / n); C1 = 2 / C, where
    C < 2 bounds the mean squares of the columns.
    """
    check({"n": n, "p": p}, sigma=sigma)
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
    """Coefficients that OFSA finds, and the steps that it takes; if Theorem 1 applies and C1 > 1.

    Parameters
    ----------
    norm_ratio
        As in `dissertation_corollary_1`.
    C1 : float, default=2.0
        2 / C, C as in `dissertation_theorem_3`.
    variant
        Corrected: the logarithm to the base 1 / (1.62 rho), and no feature may be removed before.
    """
    check({"n": n, "p": p}, sigma=sigma)
    _check_norm_ratio(norm_ratio)
    require(C1 > 1, f"C1 = {C1:g} <= 1")
    printed = is_printed(variant)
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

    Applies if Corollary 3 does, and (printed) square_bound < 2.

    Parameters
    ----------
    square_bound : float
        M of `dissertation_proposition_6`.
    variant
        Corrected: sqrt(square_bound) times the threshold, with probability 1 - 2 / p; and the
        iterations of Corollary 3.
    """
    check(square_bound=square_bound)
    if is_printed(variant):
        require(square_bound < 2, f"M = {square_bound:g} >= 2")
        C1, scale = 2 / square_bound, 1.0
    else:
        C1, scale = 2.0, sqrt(square_bound)
    return dissertation_corollary_3(n, p, scale * sigma, eta, m, M, norm_ratio, C1, variant)
