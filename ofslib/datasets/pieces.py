"""What all sources of rows share: pieces of consecutive rows, and the base classes of sources."""

import hashlib
import os
import time
from collections.abc import Callable, Iterator
from functools import cached_property
from numbers import Integral
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

# Letters of a label: each label of a block takes as much memory as the longest one.
LONGEST_LABEL = 1000
LARGEST = np.iinfo(np.int32).max  # columns, and entries of a block
_TICK = 0.02  # seconds: file systems count time in steps, of 0.01 at most where they are local


class Piece(NamedTuple):
    """Consecutive rows: the parts of a CSR matrix, the labels, and the weights if there are any."""

    data: np.ndarray
    indices: np.ndarray  # int32, ascending in each row
    indptr: np.ndarray  # int32; it may begin anywhere, `data` and `indices` with the first row
    y: np.ndarray  # float64, or words
    weight: np.ndarray | None = None  # float64
    columns: int = 0  # how many the rows need; zeros are not stored but count

    @property
    def arrays(self) -> list[np.ndarray]:
        """Those that it has, in their order."""
        return [array for array in self[:5] if array is not None]

    def without_zeros(self) -> "Piece":
        """The same rows, with values only that are not 0."""
        kept = self.data != 0
        if kept.all():
            return self
        ends = np.zeros(len(kept) + 1, np.int32)
        np.cumsum(kept, out=ends[1:])
        data, indices, indptr = self.data[kept], self.indices[kept], ends[self.indptr]
        return self._replace(data=data, indices=indices, indptr=indptr)

    def rows(self, start: int, stop: int) -> "Piece":
        """Some of the rows, in the same memory."""
        ends = self.indptr[start : stop + 1]
        entries = slice(ends[0] - self.indptr[0], ends[-1] - self.indptr[0])
        weight = None if self.weight is None else self.weight[start:stop]
        parts = self.data[entries], self.indices[entries], ends, self.y[start:stop], weight
        return Piece(*parts, self.columns)


def joined(pieces: list[Piece]) -> Piece:
    """All rows of some pieces, in memory of their own."""
    counts = [np.diff(p.indptr) for p in pieces]
    indptr = np.concatenate(([0], np.cumsum(np.concatenate(counts), dtype=np.int64)))
    if indptr[-1] > LARGEST:
        raise ValueError(
            f"a block has {indptr[-1]} entries, more than an int32 counts: read fewer rows at once "
            "by block_rows (--block-rows)"
        )
    *arrays, columns = zip(*pieces, strict=True)
    data, indices, _, y, weight = (a[0] if a[0] is None else np.concatenate(a) for a in arrays)
    return Piece(data, indices, indptr.astype(np.int32), y, weight, max(columns))


def as_matrix(piece: Piece, width: int) -> tuple[sp.csr_array, np.ndarray]:
    """The rows as `(X, y)`."""
    parts = (piece.data, piece.indices, piece.indptr - piece.indptr[0])
    return sp.csr_array(parts, shape=(len(piece.y), width)), piece.y


def check_whole(**values: tuple[Integral, int]) -> None:
    """ValueError unless each is a whole number from the least that stands beside it."""
    for name, (value, least) in values.items():
        if not isinstance(value, Integral) or value < least:
            raise ValueError(f"{name}: expected a whole number from {least}, got {value!r}")


def refuse_narrow(what, columns: int, width: int | None) -> None:
    """ValueError if there are more columns than the width that was given."""
    if width is not None and columns > width:
        raise ValueError(
            f"{what}: expected n_features (--n-features) of at least {columns}, got {width}"
        )


class Rows:
    """A source of rows: their size, and their pieces as often as they are asked for."""

    where = "the data"  # how an error names them
    names: np.ndarray | None = None  # of the columns
    columns: int | None = None  # how many, where this is known without reading the rows
    weighted = worded = False  # whether rows have weights, and whether labels are words
    saw: Callable[[int, int], object] | None = None  # told the bytes read of a file, and the rows

    @cached_property
    def size(self) -> tuple[int, int]:
        """Number of rows and of columns: one pass."""
        rows = columns = 0
        for piece in self.pieces():
            rows, columns = rows + len(piece.y), max(columns, piece.columns)
        return rows, self.columns or columns

    def pieces(self, start: int = 0, width: int | None = None) -> Iterator[Piece]:
        """The rows from `start` on; an index beyond the width is an error."""
        raise NotImplementedError

    def version(self) -> Any:
        """What changes if the rows do, at no cost; None of rows in memory."""
        return None

    def identity(self) -> list:
        """What tells these rows from others: a digest of all."""
        found = hashlib.sha256(repr(None if self.names is None else self.names.tolist()).encode())
        for piece in self.pieces():
            y = "\0".join(piece.y) if self.worded else piece.y
            parts = (piece.data, piece.indices, np.diff(piece.indptr), y, piece.weight)
            for part in parts:
                found.update(part.tobytes() if isinstance(part, np.ndarray) else f"{part}".encode())
        return [found.hexdigest()]


class FileRows(Rows):
    """Rows of a file, read anew in each pass."""

    def __init__(self, path, dtype):
        self.path, self.dtype, self.where = Path(path), np.dtype(dtype), str(path)
        self._at = 0
        self._content: tuple[list[int], str] = ([], "")

    def version(self) -> Any:
        """The state of the file."""
        return state_of(self.path)

    def content(self) -> tuple[list[int], str]:
        """State of the file and digest of its bytes, read anew only if its state has changed."""
        state = state_of(self.path)
        if self._content[0] != state:
            # A change within the same tick as the last one would not show in the state.
            time.sleep(min(max(0, state[2] / 1e9 + _TICK - time.time()), _TICK))
            with open(self.path, "rb") as file:
                self._content = (state, hashlib.file_digest(file, "sha256").hexdigest())
        return self._content

    def options(self) -> list:
        """What else the rows depend on."""
        raise NotImplementedError

    def identity(self) -> list:
        """What tells these rows from others."""
        return [self.content()[1], *self.options()]

    def _tell(self, rows):
        if self.saw:
            self.saw(self._at, rows)


def state_of(path: str | os.PathLike) -> list[int]:
    """What changes when a file does: size, times of content and of any change, number."""
    found = os.stat(path)
    return [found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino]
