"""What the statements of the papers promise, and how their assumptions are checked."""

from math import inf
from numbers import Integral, Real
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike


class DoesNotApply(ValueError):
    """An assumption of the statement is violated; the message names it, with the numbers."""


class Inequality(NamedTuple):
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


class TailBound(NamedTuple):
    """A quantity is at most `threshold` with at most this `probability`."""

    threshold: float
    probability: float


def check(counts: dict | None = None, **positive: float) -> None:
    """TypeError or ValueError unless `counts` are integers >= 1 and the others numbers > 0."""
    for name, value in {**(counts or {}), **positive}.items():
        _of_kind(name, value, Integral if name in (counts or {}) else Real)
        if not 0 < value < inf:
            raise ValueError(f"{name}={value} must be positive and finite")


def check_numbers(**values: float) -> None:
    """TypeError or ValueError unless they are finite numbers, of any sign."""
    for name, value in values.items():
        _of_kind(name, value, Real)
        if not -inf < value < inf:
            raise ValueError(f"{name}={value} must be finite")


def _of_kind(name, value, kind):
    if isinstance(value, bool) or not isinstance(value, kind):
        what = "an integer" if kind is Integral else "a number"
        raise TypeError(f"{name}={value!r} must be {what}")


def check_sizes(n: int, p: int, k: int) -> None:
    """TypeError or ValueError unless they are rows, features and fewer true features."""
    check({"n": n, "p": p, "k": k})
    if not k < p:
        raise ValueError(f"k={k} must be below p={p}")


def check_delta(delta: float) -> None:
    """TypeError or ValueError unless it is a probability in (0, 1)."""
    check(delta=delta)
    if not delta < 1:
        raise ValueError(f"delta={delta} must be below 1")


def check_spike(spike: float) -> None:
    """TypeError or ValueError unless it is a number >= 0."""
    check_numbers(spike=spike)
    if spike < 0:
        raise ValueError(f"spike={spike} must be at least 0 and finite")


def read(name: str, array: ArrayLike, *shape: int | None) -> np.ndarray:
    """The array as floats; ValueError, or TypeError, unless it is finite and of the shape.

    None in `shape` is any length but 0.
    """
    try:
        found = np.asarray(array, float)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{name} must be an array of numbers: {error}") from None
    fits = zip(found.shape, shape, strict=False)
    if found.ndim != len(shape) or not all(n == m if m is not None else n for n, m in fits):
        wanted = str(tuple("any" if each is None else each for each in shape)).replace("'", "")
        raise ValueError(f"{name} has shape {found.shape}, must have {wanted}")
    if not np.all(np.isfinite(found)):
        raise ValueError(f"{name} must be finite")
    return found


def require(condition: bool, why: str) -> None:
    """DoesNotApply, with the reason, unless the condition holds."""
    if not condition:
        raise DoesNotApply(f"does not apply: {why}")


def degrees_of_freedom(n: int, features: int, fit_intercept: bool) -> int:
    """Of the scale of least squares errors of Gaussian rows; DoesNotApply with too few of them."""
    fitted = features + bool(fit_intercept)
    require(n > fitted, f"n = {n} <= {fitted} fitted coefficients")
    return n - fitted + 1


def is_printed(variant: str) -> bool:
    """Whether the printed form is asked for, not the corrected one; ValueError for another."""
    if variant not in ("printed", "corrected"):
        raise ValueError(f"variant={variant!r} must be 'printed' or 'corrected'")
    return variant == "printed"
