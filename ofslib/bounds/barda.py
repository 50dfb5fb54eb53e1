"""Online learning with a budget (`barda`): the regret of B-ARDA (Theorem 1) and of B-AMD (2)."""

from math import sqrt

import numpy as np
from numpy.typing import ArrayLike

from ofslib.bounds.statements import Inequality, check, is_printed, read, require


def _run(gradients, untruncated, played, comparator, losses, comparator_losses, eta, delta):
    """Arrays of the run, the gaps that truncation left, the scales s_0 .. s_T, and the regret."""
    check(eta=eta, delta=delta)
    gradients = read("gradients", gradients, None, None)
    T, d = gradients.shape
    untruncated = read("untruncated", untruncated, T + 1, d)
    played = read("played", played, T + 1, d)
    comparator = read("comparator", comparator, d)
    losses = read("losses", losses, T)
    comparator_losses = read("comparator_losses", comparator_losses, T)
    for name, array in (("untruncated", untruncated), ("played", played)):
        require(not array[0].any(), f"{name} does not start at 0")
    scales = np.zeros((T + 1, d))
    scales[1:] = np.sqrt(np.cumsum(gradients**2, axis=0))
    regret = float(np.sum(losses) - np.sum(comparator_losses))
    return gradients, played, comparator, played - untruncated, scales, regret


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
) -> Inequality:
    """Regret of B-ARDA with a penalty least at 0 that no entry set to 0 makes larger, as l1 or l2.

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
    eta : float
        Step size.
    delta : float
        Parameter of the algorithm.
    variant : {"corrected", "printed"}, default="corrected"
        Whether the largest |w*| is squared.

    Returns
    -------
    Inequality
        The regret and its bound, sums of losses over T rows.

    Raises
    ------
    DoesNotApply
        If the run does not start at 0, or an entry of a gradient exceeds delta.
    ValueError, TypeError
        If an array has another shape, or as in `ofslib.bounds`.

    Examples
    --------
    >>> barda_theorem_1([[-1.0]], [[0], [0.5]], [[0], [0.5]], [1.0], [0.0], [-1.0], 1.0, 1.0)
    Inequality(left=1.0, right=2.0)
    """
    gradients, _, comparator, gaps, scales, regret = _run(
        gradients, untruncated, played, comparator, losses, comparator_losses, eta, delta
    )
    printed = is_printed(variant)
    largest = np.max(np.abs(gradients))
    require(largest <= delta, f"max ||g_t||_inf = {largest:.4g} > delta = {delta:g}")
    size, total = np.max(np.abs(comparator)), scales[-1].sum()
    weighted = np.einsum("ij,ij->i", gaps[:-1] ** 2, delta + scales[:-1])
    right = delta / (2 * eta) * comparator @ comparator
    right += ((size if printed else size**2) / (2 * eta) + eta) * total
    right += sqrt(weighted.max() * 2 * len(gradients) * total)
    return Inequality(regret, float(right))


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
) -> Inequality:
    """Regret of B-AMD.

    The arguments are those of `barda_theorem_1`, but the gradients are of the loss with the
    penalty; corrected, delta ||w*||^2 / (2 eta) is added to the right side.

    Returns
    -------
    Inequality
        The regret and its bound, sums of losses over T rows.

    Raises
    ------
    DoesNotApply
        If the run does not start at 0.
    ValueError, TypeError
        If an array has another shape, or as in `ofslib.bounds`.

    Examples
    --------
    >>> barda_theorem_2([[-1.0]], [[0], [0.5]], [[0], [0.5]], [1.0], [0.0], [-1.0], 1.0, 1.0)
    Inequality(left=1.0, right=2.0)
    """
    _, played, comparator, gaps, scales, regret = _run(
        gradients, untruncated, played, comparator, losses, comparator_losses, eta, delta
    )
    truncated = np.sum(np.abs(gaps[1:]) * (delta + scales[1:]))
    distance = np.max(np.abs(comparator - played[:-1]))
    right = np.max(np.abs(comparator)) * truncated / eta
    right += (distance**2 / (2 * eta) + eta) * scales[-1].sum()
    if not is_printed(variant):
        right += delta / (2 * eta) * comparator @ comparator
    return Inequality(regret, float(right))


def barda_passes(n: int, d: int) -> int:
    """Passes over n rows of d features in the experiments, ceil(2 d / n).

    Parameters
    ----------
    n, d : int
        Rows and features.

    Returns
    -------
    int
        At least 1.

    Raises
    ------
    ValueError, TypeError
        As in `ofslib.bounds`.

    Examples
    --------
    >>> barda_passes(100, 10_000)
    200
    """
    check({"n": n, "d": d})
    return -(-2 * d // n)
