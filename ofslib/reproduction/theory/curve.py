"""Rows of a figure that draws bounds (notebook bound_curves)."""

from collections.abc import Callable
from typing import Any

from ofslib.bounds import DoesNotApply
from ofslib.reproduction.studies import tidy

VARIANTS = ("printed", "corrected")


def point(panel: str, x: float, method: str, height: float | Callable[[], float]) -> dict[str, Any]:
    """One place of one curve.

    Parameters
    ----------
    panel, method : str
        Panel and curve.
    x : float
        Place on the horizontal axis.
    height : float or callable
        What is drawn, or what computes it; where that raises `DoesNotApply`, there is no value, and
        the row says why.
    """
    note = None
    if callable(height):
        try:
            height = height()
        except DoesNotApply as reason:
            height, note = None, str(reason)
    return tidy({"height": height}, panel=panel, x=x, method=method)[0] | {"note": note}


def points(panel, x, **heights):
    """One place of several curves of a panel, by their names; as `point`."""
    return [point(panel, x, method, height) for method, height in heights.items()]


def number(theorem: Callable[[], Any], name: str, unit: float = 1.0) -> Callable[[], float]:
    """What computes one of the numbers that a theorem gives, for `point`.

    Parameters
    ----------
    theorem : callable
        Gives them all.
    name : str
        Of the attribute.
    unit : float
        What the number is divided by.
    """
    return lambda: getattr(theorem(), name) / unit
