"""Online substitution: Yang et al. 2016 (`os`), Theorems 1 to 3 and Lemma 4."""

from math import sqrt
from numbers import Integral

import numpy as np
from numpy.typing import ArrayLike

from ofslib.bounds.statements import Inequality, check, check_numbers, is_printed, read, require

# Up to which m our proof of Theorem 2 reaches: m^2 <= 4 m - 1.
LARGEST_DIVISOR = 2 + sqrt(3)


def _mean_square(squared_steps, losses):
    squared_steps = read("squared_steps", squared_steps, None)
    losses = read("losses", losses, len(squared_steps) + 1)
    if np.any(squared_steps < 0):
        raise ValueError("squared_steps must not be negative")
    return squared_steps.mean(), (losses[0] - losses[-1]) / len(squared_steps)


def _check_share(c):
    check_numbers(c=c)
    require(0 < c <= 1, f"c = {c} is not in (0, 1]")


def os_theorem_1(
    squared_steps: ArrayLike, losses: ArrayLike, eta: float, L_F: float, c: float
) -> Inequality:
    """Mean squared step of OS over eta^2 against the decrease of the loss (8).

    Parameters
    ----------
    squared_steps : array-like of shape (K,)
        ||w^(k+1) - w^k||^2.
    losses : array-like of shape (K + 1,)
        f(w^1) .. f(w^(K+1)).
    eta : float
        Step size, of the unit of 1 / L_F.
    L_F, c : float
        Smoothness of Assumption 1, and share of the decrease asked for.

    Returns
    -------
    Inequality
        In units of a squared gradient of the loss.

    Raises
    ------
    DoesNotApply
        Unless eta < 1 / L_F and 0 < c <= 1.
    ValueError, TypeError
        If there is no step, or `losses` is not one longer; and as in `ofslib.bounds`.

    Examples
    --------
    >>> os_theorem_1([1.0, 3.0], [5.0, 3.0, 1.0], eta=0.5, L_F=1.0, c=0.5)
    Inequality(left=8.0, right=32.0)
    """
    check(eta=eta, L_F=L_F)
    _check_share(c)
    require(eta < 1 / L_F, f"eta = {eta:.4g} >= 1 / L_F = {1 / L_F:.4g}")
    step, decrease = _mean_square(squared_steps, losses)
    right = 2 * decrease / (c * (1 - eta * L_F) * eta)
    return Inequality(float(step / eta**2), float(right))


def os_theorem_2_step_size(
    L_F: float, L_f: float, c: float, m: float, q: int, p: int, s: int, staleness: int
) -> float:
    """The step size below which Theorem 2 applies.

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

    Returns
    -------
    float
        Of the unit of 1 / L_F.

    Raises
    ------
    DoesNotApply
        Unless 0 < c <= 1, m >= 1 and s < p.
    ValueError, TypeError
        If the staleness is negative; and as in `ofslib.bounds`.

    Examples
    --------
    >>> os_theorem_2_step_size(2.0, 2.0, 0.5, 2, q=1, p=5, s=1, staleness=0)
    0.25
    """
    check({"q": q, "p": p, "s": s}, L_F=L_F, L_f=L_f, m=m)
    if isinstance(staleness, bool) or not isinstance(staleness, Integral) or staleness < 0:
        raise ValueError(f"staleness={staleness!r} must be an integer, 0 or more")
    require(m >= 1, f"m = {m:g} < 1")
    _check_share(c)
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
) -> Inequality:
    """Theorem 1 for asynchronous workers, in expectation over their order.

    The arguments after eta are those of `os_theorem_2_step_size`.

    Parameters
    ----------
    squared_steps, losses : array-like of shape (K,) and (K + 1,)
        As in `os_theorem_1`, of one run, or means over runs.
    eta : float
        Step size.
    variant : {"corrected", "printed"}, default="corrected"
        Whether the right side is divided by c.

    Returns
    -------
    Inequality
        In units of a squared gradient of the loss.

    Raises
    ------
    DoesNotApply
        Unless eta is below `os_theorem_2_step_size`, where that applies; corrected, if
        something is stale and m > 2 + sqrt(3), up to which it is proved (docs/theory/os.md).
    ValueError, TypeError
        As `os_theorem_1`.

    Examples
    --------
    >>> os_theorem_2([1.0], [1.0, 0.5], 0.25, 1.0, 1.0, 0.5, m=2, q=1, p=9, s=1, staleness=0)
    Inequality(left=16.0, right=16.0)
    """
    check(eta=eta)
    largest = os_theorem_2_step_size(L_F, L_f, c, m, q, p, s, staleness)
    require(eta < largest, f"eta = {eta:.4g} >= {largest:.4g}, where Delta is 0")
    printed = is_printed(variant)
    proved = printed or staleness == 0 or m <= LARGEST_DIVISOR
    require(proved, f"m = {m:g} > 2 + sqrt(3): the corrected form is proved up to there only")
    slack = 1 / (2 * eta) - 1 / (2 * largest)
    step, decrease = _mean_square(squared_steps, losses)
    return Inequality(
        float(step / eta**2), float(decrease / (eta**2 * (1 if printed else c) * slack))
    )


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
        A vector and the gradient there.
    s : int
        Entries that may be nonzero.
    convexity : float
        rho, restricted to s-sparse vectors (Assumption 3).
    variant : {"corrected", "printed"}, default="corrected"
        Corrected: s counts one more for each selected feature whose gradient is not 0.

    Returns
    -------
    float
        In units of the loss.

    Raises
    ------
    DoesNotApply
        If more than s weights are nonzero.
    ValueError, TypeError
        If the arrays are not of one length; and as in `ofslib.bounds`.

    Examples
    --------
    >>> os_lemma_4(1.0, [0.0, 1.0], [-1.0, 1.0], s=1, convexity=1.0)
    0.0
    """
    check({"s": s}, convexity=convexity)
    check_numbers(loss=loss)
    weights = read("weights", weights, None)
    gradient = read("gradient", gradient, len(weights))
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
) -> Inequality:
    """Loss of a local optimum of OS over that of the best sparse vector.

    Parameters
    ----------
    losses : tuple of three float
        f at 0, at the local optimum, at the best vector with as many features.
    weights, gradient : array-like of shape (p,)
        The local optimum and the gradient there.
    eta : float
        Step size.
    convexity : float
        rho as in `os_lemma_4`; eta rho is at most 1, as rho <= L_F and eta < 1 / L_F.
    tolerance : float, default=1e-8
        Of the gradient and of the step, absolute.

    Returns
    -------
    Inequality
        In units of the loss.

    Raises
    ------
    DoesNotApply
        If it is no local optimum: the gradient of a selected feature is not 0, or a step of
        another exceeds the smallest weight; or if eta rho > 1.
    ValueError, TypeError
        If no weight is nonzero, or the best loss is above another; and as in `ofslib.bounds`.

    Examples
    --------
    >>> os_theorem_3((2.0, 1.0, 0.5), [1.0, 0.0], [0.0, 1.5], eta=1.0, convexity=1.0, tolerance=1.0)
    Inequality(left=0.5, right=0.75)
    """
    check(eta=eta, convexity=convexity, tolerance=tolerance)
    at_zero, found, best = (float(loss) for loss in read("losses", losses, 3))
    weights = read("weights", weights, None)
    gradient = np.abs(read("gradient", gradient, len(weights)))
    selected = weights != 0
    if not selected.any():
        raise ValueError("weights must have a nonzero entry")
    # Up to rounding: a search for the best may end at the same vector.
    if best > min(at_zero, found) + 1e-9 * max(abs(at_zero), abs(found)):
        raise ValueError(f"losses: the best, {best:.4g}, is above {min(at_zero, found):.4g}")
    product = convexity * eta
    require(product <= 1, f"rho eta = {product:.4g} > 1, but rho <= L_F and eta < 1 / L_F")
    slope, step = np.max(gradient[selected]), eta * np.max(gradient[~selected], initial=0)
    smallest = np.min(np.abs(weights[selected]))
    require(slope <= tolerance, f"a selected feature has gradient {slope:.4g}")
    require(step <= smallest + tolerance, f"a step {step:.4g} > smallest weight {smallest:.4g}")
    alpha = product**-2
    return Inequality(found - best, alpha / (1 + alpha) * (at_zero - best))
