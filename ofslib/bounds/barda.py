"""Online learning with a budget (`barda`): the regret of B-ARDA (Theorem 1) and of B-AMD (2)."""

from math import sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ofslib.bounds.statements import Sides, check, is_printed, require


class _Run(NamedTuple):
    """Record of T steps in d features, as `barda_theorem_1` explains."""

    gradients: np.ndarray  # (T, d)
    gaps: np.ndarray  # (T + 1, d) truncated away before step t
    scales: np.ndarray  # (T + 1, d) s_0 .. s_T
    played: np.ndarray  # (T + 1, d)
    comparator: np.ndarray  # (d,)
    regret: float


def _run(gradients, untruncated, played, comparator, losses, comparator_losses, eta, delta):
    check(eta=eta, delta=delta)
    gradients, untruncated, played, comparator = (
        np.asarray(array, float) for array in (gradients, untruncated, played, comparator)
    )
    T, d = gradients.shape
    for name, array in (("untruncated", untruncated), ("played", played)):
        if array.shape != (T + 1, d):
            raise ValueError(f"{name} has shape {array.shape}, must have {(T + 1, d)}")
        require(not array[0].any(), f"{name} does not start at 0")
    scales = np.zeros((T + 1, d))
    scales[1:] = np.sqrt(np.cumsum(gradients**2, axis=0))
    regret = float(np.sum(losses) - np.sum(comparator_losses))
    return _Run(gradients, played - untruncated, scales, played, comparator, regret)


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
    run = _run(gradients, untruncated, played, comparator, losses, comparator_losses, eta, delta)
    largest = np.max(np.abs(run.gradients))
    require(largest <= delta, f"max ||g_t||_inf = {largest:.4g} > delta = {delta:g}")
    size, total = np.max(np.abs(run.comparator)), run.scales[-1].sum()
    gaps = np.einsum("ij,ij->i", run.gaps[:-1] ** 2, delta + run.scales[:-1])
    right = delta / (2 * eta) * run.comparator @ run.comparator
    right += ((size if is_printed(variant) else size**2) / (2 * eta) + eta) * total
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
    run = _run(gradients, untruncated, played, comparator, losses, comparator_losses, eta, delta)
    truncated = np.sum(np.abs(run.gaps[1:]) * (delta + run.scales[1:]))
    distance = np.max(np.abs(run.comparator - run.played[:-1]))
    right = np.max(np.abs(run.comparator)) * truncated / eta
    right += (distance**2 / (2 * eta) + eta) * run.scales[-1].sum()
    if not is_printed(variant):
        right += delta / (2 * eta) * run.comparator @ run.comparator
    return Sides(run.regret, float(right))


def barda_passes(n: int, d: int) -> int:
    """Passes over n rows of d features in the experiments, ceil(2 d / n)."""
    check({"n": n, "d": d})
    return -(-2 * d // n)
