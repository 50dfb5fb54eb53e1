"""Rows of a stream that are held out, and what a model that did not learn them says of them."""

import pickle
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import cached_property
from typing import Any

import numpy as np

from ofslib._sparse import NamedRows
from ofslib.metrics import Scores

_AT_ONCE = 1 << 20  # row numbers that are hashed together


def held_out(first: int, count: int, share: float) -> np.ndarray:
    """Whether each of so many rows from `first` on is held out.

    A hash of the row's number decides (splitmix64), so that it is the same in every pass.
    """
    z = np.arange(first, first + count, dtype=np.uint64) + np.uint64(1)
    z *= np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return (z ^ (z >> np.uint64(31))).astype(np.float64) < share * 2.0**64


class Part:
    """The rows of a stream that are learned, or those that are held out; else as the stream.

    Where the text would have to be parsed again, the rows that are held out are kept in a
    temporary file while the others are read.
    """

    start_row = 0

    def __init__(self, stream, share: float, held: "Part | None" = None):
        self._stream, self._share, self._held = stream, share, held  # held: of the part learned
        self._kept: Any = None  # a temporary file, of the part that is held out

    def __getattr__(self, name):
        return getattr(self._stream, name)

    @cached_property
    def n_rows(self) -> int:
        """Number of rows of this part."""
        return sum(map(np.count_nonzero, self._masks()))

    def _masks(self) -> Iterator[np.ndarray]:
        for first in range(self._stream.start_row, self._stream.n_rows, _AT_ONCE):
            yield self._mask(first, min(_AT_ONCE, self._stream.n_rows - first))

    def _mask(self, first: int, count: int) -> np.ndarray:
        return held_out(first, count, self._share) ^ (self._held is not None)

    def identity(self) -> dict[str, Any]:
        """What tells these rows from others."""
        return self._stream.identity() | {"holdout": self._share}

    def skip(self, rows: int) -> "Part":
        """This part without its first rows."""
        passed = 0  # rows of the stream
        for mask in self._masks() if rows else ():
            here = np.flatnonzero(mask)
            if rows <= len(here):
                passed += int(here[rows - 1]) + 1
                break
            passed, rows = passed + len(mask), rows - len(here)
        if not passed:
            return self
        # The rest of a block that only has rows of the other part: blocks are cut as before.
        rest = -passed % self._stream.block_rows
        if not self._mask(self._stream.start_row + passed, rest).any():
            passed += rest
        return Part(self._stream.skip(passed), self._share, self._held and Part(None, self._share))

    def __iter__(self) -> Iterator[tuple]:
        if self._kept:
            yield from _loaded(self._kept)
            return
        row, file = self._stream.start_row, None
        held = self._held
        if held and held._stream and not (held._kept or self._stream.cache_path):
            with suppress(OSError):
                file = tempfile.TemporaryFile()
        for block in self._stream:
            mask = self._mask(row, len(block[1]))
            row += len(mask)
            if file and not _dumped(_rows(block, ~mask), file):
                file = None  # there is no room: the text is parsed again
            if mask.any():
                yield _rows(block, mask)
        if file:
            self._held._kept = file


def _rows(block: tuple, mask: np.ndarray) -> tuple:
    X, *rest = block
    chosen = X[mask]
    if (names := getattr(X, "feature_names", None)) is not None:
        chosen = NamedRows(chosen)
        chosen.feature_names = names
    return chosen, *(part[mask] for part in rest)


def _dumped(block: tuple, file) -> bool:
    """Whether a block could be added to a temporary file, which else is closed."""
    try:
        pickle.dump(block, file)
        file.flush()
    except OSError:
        with suppress(OSError):  # of what is not yet written
            file.close()
        return False
    return True


def _loaded(file) -> Iterator[tuple]:
    file.seek(0)
    while True:
        try:
            block = pickle.load(file)  # noqa: S301 - of this process, and of no name
        except EOFError:
            return
        if len(block[1]):
            yield block


def split(stream, share: float) -> tuple[Part, Part]:
    """The rows to learn from, and those that are held out: about this share of all."""
    if not 0 < share < 1:
        raise ValueError(f"holdout (--holdout): expected a share between 0 and 1, got {share}")
    held = Part(stream, share)
    return Part(stream, share, held), held


def evaluate(model, blocks: Iterable[tuple]) -> dict[str, Any]:
    """The scores of a model on rows, and those of each label; `reason` why there are none."""
    scores, rows = Scores(getattr(model, "classes_", None)), 0
    for X, y, *_ in blocks:
        scores.add(y, *said_of(model, X))
        rows += len(y)
    found: dict[str, Any] = {"rows": rows, **scores.found()}
    found |= {"per_class": scores.per_class()} if found.keys() > {"rows"} else {}
    return found | ({"reason": scores.reason} if scores.reason else {})


def said_of(model, X) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """Predictions, decisions (n, .), and logarithms of probabilities, if the model has any."""
    predicted = model.predict(X)
    if not hasattr(model, "classes_"):
        return predicted, predicted[:, None], None
    margins = model.decision_function(X).reshape(len(predicted), -1)
    proba = getattr(model, "predict_log_proba", None)
    return predicted, margins, proba and proba(X)
