"""What is known of one item of a paper, and the function that shows it."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ofslib import bounds

KINDS = "algorithm assumption corollary definition lemma proposition remark theorem".split()


class Shown(NamedTuple):
    """What a witness finds.

    Each of the first three is None where there is nothing to decide.
    """

    true: bool | None
    """Whether the printed form holds, here and wherever else it was tried or proved."""
    informative: bool | None
    """Whether it applies, and excludes anything, at the sizes of the paper's experiments."""
    corrected: bool | None
    """Whether the corrected form holds where the printed one fails."""
    numbers: dict[str, float]
    """What decides, by name."""


class Statement(NamedTuple):
    """An item of a paper: a theorem, a remark, a definition, an algorithm."""

    paper: str
    item: str
    kind: str
    printed: str  # what it says, in short
    true: bool | None = None  # as printed; None: nothing is claimed
    informative: bool | None = None  # at the papers' sizes; None: there are none for it
    applies: str = ""  # what must hold
    corrected: str = ""  # the nearest form that we could prove, where it is not the printed one
    by: tuple[str, ...] = ()  # functions of ofslib.bounds
    figure: str = ""  # entry that draws theory and experiment side by side
    witness: Callable[[], Shown] | None = None  # None: nothing to compute

    @property
    def evidence(self) -> str:
        """What the witness shows, in words: its docstring, as one line."""
        return " ".join((self.witness.__doc__ or "").split()) if self.witness else ""


class Paper:
    """The statements of a paper, or of a chapter, in their order."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.statements: list[Statement] = []

    def states(self, item: str, printed: str, **more) -> Callable:
        """Register the function that follows as the witness of an item; `more` as `Statement`."""

        def register(witness: Callable[[], Shown]) -> Callable[[], Shown]:
            self._add(item, printed, witness=witness, **more)
            return witness

        return register

    def skips(self, item: str, printed: str, **more) -> None:
        """Register an item that has nothing to compute."""
        self._add(item, printed, **more)

    def _add(self, item: str, printed: str, **more) -> None:
        """Its kind, and the function of ofslib.bounds that it is `by`, follow from its name."""
        kind, number = [*item.lower().split(), ""][:2]
        function = f"{self.name}_{kind}_{number.replace('.', '_')}"
        named = {"kind": kind if kind in KINDS else "definition"}
        named["by"] = (function,) if hasattr(bounds, function) else ()
        self.statements.append(Statement(self.name, item, printed=printed, **named | more))


def shown(true=None, informative=None, corrected=None, **numbers) -> Shown:
    """A `Shown` of plain numbers."""
    verdicts = (None if each is None else bool(each) for each in (true, informative, corrected))
    return Shown(*verdicts, {name: float(value) for name, value in numbers.items()})


def applies(function: Callable, *args, **kwargs) -> bool:
    """Whether a statement of ofslib.bounds applies; `variant` is "printed"."""
    try:
        function(*args, **kwargs, variant="printed")
    except bounds.DoesNotApply:
        return False
    return True


def selects(estimates: np.ndarray, k: int) -> np.ndarray:
    """In which rows the k largest entries in size are the first k; bool, one a row."""
    sizes = np.abs(estimates)
    return sizes[:, :k].min(axis=1) > sizes[:, k:].max(axis=1)
