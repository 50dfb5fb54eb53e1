"""What the statements of the papers promise, and how their assumptions are checked."""

from math import inf
from numbers import Integral, Real
from typing import NamedTuple

import numpy as np


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


def check(counts: dict | None = None, **positive: float) -> None:
    """TypeError or ValueError unless `counts` are integers >= 1 and the others numbers > 0."""
    for name, value in {**(counts or {}), **positive}.items():
        kind, what = (Integral, "an integer") if name in (counts or {}) else (Real, "a number")
        if isinstance(value, bool) or not isinstance(value, kind):
            raise TypeError(f"{name}={value!r} must be {what}")
        if not 0 < value < inf:
            raise ValueError(f"{name}={value} must be positive and finite")


def require(condition: bool, why: str) -> None:
    """DoesNotApply, with the reason, unless the condition holds."""
    if not condition:
        raise DoesNotApply(f"does not apply: {why}")


def is_printed(variant: str) -> bool:
    """Whether the printed form is asked for, not the corrected one; ValueError for another."""
    if variant not in ("printed", "corrected"):
        raise ValueError(f"variant={variant!r} must be 'printed' or 'corrected'")
    return variant == "printed"
