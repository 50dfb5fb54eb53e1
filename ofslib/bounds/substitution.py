"""Online substitution: Yang et al. 2016 (`os`), Theorems 1 to 3 and Lemma 4."""

from numbers import Integral

import numpy as np
from numpy.typing import ArrayLike

from ofslib.bounds.statements import Sides, check, is_printed, require


def _mean_square(squared_steps, losses):
    squared_steps, losses = np.asarray(squared_steps, float), np.asarray(losses, float)
    if len(losses) != len(squared_steps) + 1:
        raise ValueError(f"losses: {len(losses)} given, one more than {len(squared_steps)} steps")
    return squared_steps.mean(), (losses[0] - losses[-1]) / len(squared_steps)


def os_theorem_1(
    squared_steps: ArrayLike, losses: ArrayLike, eta: float, L_F: float, c: float
) -> Sides:
    """Mean squared step of OS over eta^2 against the decrease of the loss (8).

    Applies if eta < 1 / L_F and 0 < c <= 1.

    Parameters
    ----------
    squared_steps : array-like of shape (K,)
        ||w^(k+1) - w^k||^2.
    losses : array-like of shape (K + 1,)
        f(w^1) .. f(w^(K+1)).
    L_F, c : float
        Smoothness of Assumption 1, and share of the decrease asked for.
    """
    check(eta=eta, L_F=L_F)
    require(0 < c <= 1, f"c = {c} is not in (0, 1]")
    require(eta < 1 / L_F, f"eta = {eta:.4g} >= 1 / L_F = {1 / L_F:.4g}")
    step, decrease = _mean_square(squared_steps, losses)
    right = 2 * decrease / (c * (1 - eta * L_F) * eta)
    return Sides(float(step / eta**2), float(right))


def os_theorem_2_step_size(
    L_F: float, L_f: float, c: float, m: float, q: int, p: int, s: int, staleness: int
) -> float:
    """The step size below which Theorem 2 applies; if 0 < c <= 1, m >= 1 and s < p.

    Parameters
    ----------
    L_F, L_f : float
        Smoothness of Assumption 1, (6) and (7).
    c, m : float
        Share of the decrease asked for, and divisor of the step of selected features.
    q, p, s : int
        Workers, features, features kept.
    staleness : int
        tau_max, at least 0.
    """
    check({"q": q, "p": p, "s": s}, L_F=L_F, L_f=L_f, m=m)
    if isinstance(staleness, bool) or not isinstance(staleness, Integral) or staleness < 0:
        raise ValueError(f"staleness={staleness!r} must be an integer, 0 or more")
    require(m >= 1, f"m = {m:g} < 1")
    require(0 < c <= 1, f"c = {c} is not in (0, 1]")
    require(s < p, f"s = {s} >= p = {p}")
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

    Applies if eta is below `os_theorem_2_step_size`, whose arguments follow eta. Steps and losses
    are those of one run, or means over runs. Printed: the right side is not divided by c.
    """
    check(eta=eta)
    largest = os_theorem_2_step_size(L_F, L_f, c, m, q, p, s, staleness)
    require(eta < largest, f"eta = {eta:.4g} >= {largest:.4g}, where Delta is 0")
    slack = 1 / (2 * eta) - 1 / (2 * largest)
    step, decrease = _mean_square(squared_steps, losses)
    share = 1.0 if is_printed(variant) else c
    return Sides(float(step / eta**2), float(decrease / (eta**2 * share * slack)))


def os_lemma_4(
    loss: float,
    weights: ArrayLike,
    gradient: ArrayLike,
    s: int,
    convexity: float,
    variant: str = "corrected",
) -> float:
    """Lower bound on the loss of any s-sparse vector, from that of `weights`, if that is s-sparse.

    Parameters
    ----------
    loss : float
        f at `weights`.
    weights, gradient : array-like of shape (p,)
        A vector and the gradient there.
    convexity : float
        rho, restricted to s-sparse vectors (Assumption 3).
    variant
        Corrected: s counts one more for each selected feature whose gradient is not 0.
    """
    check({"s": s}, convexity=convexity)
    weights, gradient = np.asarray(weights, float), np.asarray(gradient, float)
    nonzero = np.count_nonzero(weights)
    require(nonzero <= s, f"{nonzero} nonzero weights > s = {s}")
    free = 0 if is_printed(variant) else np.count_nonzero(gradient[weights != 0])
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

    Applies if it is one: the gradient of a selected feature is 0, and no step of another exceeds
    the smallest weight.

    Parameters
    ----------
    losses : tuple of three float
        f at 0, at the local optimum, at the best vector with as many features.
    weights, gradient : array-like of shape (p,)
        The local optimum and the gradient there.
    convexity : float
        rho as in `os_lemma_4`.
    tolerance : float, default=1e-8
        Of the gradient, absolute.
    """
    check(eta=eta, convexity=convexity)
    weights, gradient = np.asarray(weights, float), np.abs(np.asarray(gradient, float))
    selected = weights != 0
    slope, step = np.max(gradient[selected]), eta * np.max(gradient[~selected], initial=0)
    smallest = np.min(np.abs(weights[selected]))
    require(slope <= tolerance, f"a selected feature has gradient {slope:.4g}")
    require(step <= smallest + tolerance, f"a step {step:.4g} > smallest weight {smallest:.4g}")
    at_zero, found, best = losses
    alpha = (convexity * eta) ** -2
    return Sides(found - best, alpha / (1 + alpha) * (at_zero - best))
