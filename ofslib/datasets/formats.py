"""Rows of tables, arrays and iterables, each as a source of pieces of sparse rows.

A source has `size` (rows, columns), `columns` and `names` where they are known without reading the
rows, `weighted` and `worded`, and gives its `pieces` from a row on as often as it is asked; see
`FileRows`. What is no finite number is named by row, counted from 1, and column.
"""

import hashlib
import itertools
import operator
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from ofslib._sparse import checked
from ofslib.datasets.text import Piece
from ofslib.kernels.rows import ascend

_VALUES = 1 << 20  # of a table that are held at once, or more where it is wide


def rows_at_once(width: int) -> int:
    """Rows of a table that are read together: of many columns more, as each costs its time."""
    return max(1, _VALUES // width, min(1000, 8 * _VALUES // width))


class Roles(NamedTuple):
    """What the columns of a table are, by their positions."""

    features: list[int]
    label: int | None
    weight: int | None
    names: np.ndarray | None  # of the features

    @classmethod
    def of(cls, where, names: Sequence | None, width: int, label, weight) -> "Roles":
        """Check the names, and find the columns of labels and weights, which are asked for."""
        if names is not None:
            for j, name in enumerate(names):
                if not isinstance(name, str) or not name.strip():
                    raise ValueError(
                        f"{where}: column {j + 1} has the name {name!r}; expected words (the index "
                        "of a data frame is written without by to_csv(index=False))"
                    )
            if len(set(names)) < len(names):
                twice = next(name for name, count in Counter(names).items() if count > 1)
                raise ValueError(f"{where}: two columns have the name {twice!r}")
        if label is None:
            raise ValueError(
                f"{where}: label (--label): say which column holds the labels, by name or position "
                f"from 0 (in Python also False, if none does); there are {_listed(names, width)}"
            )
        label = None if label is False else _position(where, "label", label, names, width)
        weight = None if weight is None else _position(where, "weight", weight, names, width)
        if label is not None and label == weight:
            raise ValueError(f"{where}: label (--label) and weight (--weight) are the same column")
        features = [j for j in range(width) if j not in (label, weight)]
        if not features:
            raise ValueError(
                f"{where}: expected features beside the labels, got {_listed(names, width)}"
            )
        own = None if names is None else np.array([names[j] for j in features], object)
        return cls(features, label, weight, own)

    def name(self, j: int) -> str:
        """How a message calls a feature."""
        return f"{j + 1}" if self.names is None else repr(self.names[j])


def _listed(names, width):
    if names is None:
        return f"{width} columns without names"
    return ", ".join(map(repr, names[:8])) + (f" ... of {width}" if width > 8 else "")


def _position(where, what, wanted, names, width):
    if isinstance(wanted, str):
        if names is not None and wanted in names:
            return list(names).index(wanted)
        raise ValueError(f"{where}: {what}={wanted!r} (--{what}) is no column; there are "
                         f"{_listed(names, width)}")  # fmt: skip
    try:
        place = operator.index(wanted)
    except TypeError:
        place = width
    if isinstance(wanted, bool) or not -width <= place < width:
        raise ValueError(f"{where}: {what} (--{what}): expected a name or a position from {-width} "
                         f"to {width - 1}, got {wanted!r}")  # fmt: skip
    return place % width


def refuse_columns(where: str, names, known) -> None:
    """ValueError unless columns with names are those that a model knows, in whatever order."""
    if names is None or known is None:
        return
    pairs = {"unknown to the model": (names, known), "missing": (known, names)}
    said = []
    for what, (these, those) in pairs.items():
        if others := sorted(set(these) - set(those), key=list(these).index):
            said.append(f"{what}: {', '.join(map(repr, map(str, others[:10])))}")
            said[-1] += f" and {len(others) - 10:,} more" * (len(others) > 10)
    if said:
        hint = "; label (--label) and weight (--weight) say which columns are no features"
        hint *= said[0].startswith("unk")
        raise ValueError(f"{where}: columns {'; '.join(said)}{hint}")


# -------------------------------------------------- cells to numbers, labels and sparse rows


def _missing(cells) -> np.ndarray:
    import pandas as pd

    return np.asarray(pd.isna(cells))


def _numbers(cells, where: str, first: int, column: str) -> np.ndarray:
    """One column as float64, finite; ValueError names the first cell that is not."""
    cells = np.asarray(cells)
    if cells.dtype.kind in "biuf":
        values = cells.astype(np.float64)
    elif cells.dtype.kind in "cmM":  # dates depend on the unit they are kept in
        values = np.full(len(cells), np.nan)
    else:
        values = np.array([_number(cell) for cell in cells.tolist()], np.float64)
    wrong = np.flatnonzero(~np.isfinite(values))
    if len(wrong):
        cell, row = cells[wrong[0]], first + wrong[0] + 1
        what = "a missing value" if _missing([cell])[0] or str(cell) == "" else repr(_plain(cell))
        raise ValueError(f"{where}, row {row}, column {column}: expected a finite number, got "
                         f"{what}")  # fmt: skip
    return values


def _plain(cell):
    return cell.item() if isinstance(cell, np.generic) else cell


def _number(cell) -> float:
    """A cell of an array of objects; NaN if it is no number: words and dates are none."""
    if isinstance(cell, str | bytes) or not hasattr(cell, "__float__"):
        return np.nan
    return float(cell)


def _labels(cells, where: str, first: int, worded: bool) -> np.ndarray:
    """Labels as float64 or, where they are words, as these."""
    if not worded:
        return _numbers(cells, where, first, "of labels")
    cells = np.asarray(cells, object)
    wrong = [i for i, cell in enumerate(cells) if not (isinstance(cell, str) and cell)]
    if wrong:
        raise ValueError(f"{where}, row {first + wrong[0] + 1}: expected a word as label, as in "
                         f"row 1, got {cells[wrong[0]]!r}")  # fmt: skip
    return cells.astype(str)


def _weights(cells, where: str, first: int) -> np.ndarray:
    weights = _numbers(cells, where, first, "of weights")
    if (weights < 0).any():
        i = int(np.argmax(weights < 0))
        raise ValueError(f"{where}, row {first + i + 1}: expected a weight from 0 on, got "
                         f"{weights[i]}")  # fmt: skip
    return weights


def _sparse(table: np.ndarray, y, weight, dtype, where: str, first: int) -> Piece:
    """Rows of an array without their zeros."""
    with np.errstate(over="ignore"):
        table = np.ascontiguousarray(table, dtype)
    places = np.flatnonzero(table)
    data = table.reshape(-1)[places]
    rows, columns = np.divmod(places, table.shape[1])
    _refuse_large(data, rows, where, first)
    indptr = np.zeros(len(table) + 1, np.int32)
    np.cumsum(np.bincount(rows, minlength=len(table)), out=indptr[1:])
    return Piece(data, columns.astype(np.int32), indptr, y, weight)


def _refuse_large(data, rows, where, first):
    wrong = np.flatnonzero(~np.isfinite(data))
    if len(wrong):
        most = f"{np.finfo(data.dtype).max:.2g}"
        raise ValueError(f"{where}, row {first + rows[wrong[0]] + 1}: a value is not a finite "
                         f"number of {data.dtype} (at most {most})")  # fmt: skip


def _from_matrix(X, y, weight, dtype, where: str, first: int) -> Piece:
    """Rows of a sparse matrix."""
    if X.shape[1] > np.iinfo(np.int32).max or X.dtype.kind not in "biuf":
        raise ValueError(
            f"{where}: expected numbers in at most 2**31 - 1 columns, got {X.dtype} in {X.shape[1]}"
        )
    # X.has_canonical_format is what somebody once said of these arrays; they may have changed.
    if not ascend(X.indptr, X.indices, X.shape[1]):
        X = sp.csr_array((X.data, X.indices, X.indptr), shape=X.shape, copy=True)
        X.sum_duplicates()
    with np.errstate(over="ignore"):
        data = X.data.astype(dtype, copy=False)
    if not np.isfinite(data).all():
        rows = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
        _refuse_large(data, rows, where, first)
    return Piece(data, X.indices.astype(np.int32, copy=False), X.indptr, y, weight)


def refuse_narrow(what, columns: int, width: int | None) -> None:
    """ValueError if there are more columns than the width that was given."""
    if width is not None and columns > width:
        raise ValueError(
            f"{what}: expected n_features (--n-features) of at least {columns}, got {width}"
        )


class Rows:
    """Rows that are in memory or are handed over, not read from a file."""

    shared = False
    saw: Callable[[int, int], object] | None = None
    where = "the data"
    names: np.ndarray | None = None
    columns: int | None = None
    weighted = worded = False

    def pieces(self, start: int = 0, width: int | None = None) -> Iterator[Piece]:
        """The rows from `start` on."""
        raise NotImplementedError

    def identity(self) -> list:
        """What tells these rows from others: a digest of all."""
        found = hashlib.sha256(repr(None if self.names is None else self.names.tolist()).encode())
        for piece in self.pieces():
            y = "\0".join(piece.y) if self.worded else piece.y
            parts = (piece.data, piece.indices, np.diff(piece.indptr), y, piece.weight)
            for part in parts:
                found.update(part.tobytes() if isinstance(part, np.ndarray) else f"{part}".encode())
        return [found.hexdigest()]


class ArrayRows(Rows):
    """Rows of an array, perhaps mapped, or of a sparse matrix, and labels of any kind.

    `features`, if given, are the columns that are read of an array.
    """

    def __init__(self, X, y, dtype, weight=None, where="X", names=None, features=None):
        self.where, self.names, self.dtype = where, names, np.dtype(dtype)
        self.features = slice(None) if features is None else features
        self.X = sp.csr_array(checked(X)) if sp.issparse(X) else X
        if len(self.X.shape) != 2:
            raise ValueError(f"{where}: expected two axes, rows and columns, got {self.X.shape}")
        self.columns = int(self.X.shape[1]) if features is None else len(features)
        self.size = int(self.X.shape[0]), self.columns
        y = np.full(self.size[0], np.nan) if y is False else y
        y = y if isinstance(y, np.ndarray) else np.asarray(y, object)
        for what, array in (("y", y), ("weight", weight)):
            if array is not None and np.shape(array) != self.size[:1]:
                raise ValueError(f"{where}: expected {what} of shape ({self.size[0]},), got "
                                 f"{np.shape(array)}")  # fmt: skip
        self.worded = _are_words(y)
        without = y.dtype.kind == "f" and np.isnan(y).all()
        self.y = y.astype(np.float64) if without else _labels(y, where, 0, self.worded)
        self.weighted = weight is not None
        self.weight = None if weight is None else _weights(weight, where, 0)

    def pieces(self, start=0, width=None):
        """The rows from `start` on."""
        (n, p), weight = self.size, self.weight
        refuse_narrow(self.where, p, width)
        if sp.issparse(self.X):
            yield _from_matrix(self.X, self.y, weight, self.dtype, self.where, 0).rows(start, n)
            return
        step = rows_at_once(max(1, p))
        for a in range(start, n, step):
            part = slice(a, min(n, a + step))
            own = None if weight is None else weight[part]
            table = _table(self.X[part][:, self.features], self.where, a, self.names)
            yield _sparse(table, self.y[part], own, self.dtype, self.where, a)


def _are_words(cells) -> bool:
    """Whether labels are words, as the first of them is."""
    return len(cells) > 0 and isinstance(cells[0], str)


def _table(block, where, first, names) -> np.ndarray:
    """Some rows of an array as finite float64."""
    block = np.asarray(block)
    if block.dtype.kind in "biuf":
        table = block.astype(np.float64)
        if np.isfinite(table).all():
            return table
    columns = [str(j + 1) if names is None else repr(names[j]) for j in range(block.shape[1])]
    cells = [_numbers(block[:, j], where, first, columns[j]) for j in range(block.shape[1])]
    return np.column_stack(cells)


# -------------------------------------------------- tables with columns of several types


class _Columns:
    """What files and frames share whose rows come as columns: `_chunks(start)`, `_types`."""

    roles: Roles
    where: str
    dtype: np.dtype
    worded: bool

    def _piece(self, columns: Sequence, first: int) -> Piece:
        roles, where = self.roles, self.where
        table = np.empty((len(columns[0]), len(roles.features)))
        for j, column in enumerate(roles.features):
            table[:, j] = _numbers(columns[column], where, first, roles.name(j))
        y = np.full(len(table), np.nan)
        if roles.label is not None:
            y = _labels(columns[roles.label], where, first, self.worded)
        weight = None
        if roles.weight is not None:
            weight = _weights(columns[roles.weight], where, first)
        return _sparse(table, y, weight, self.dtype, where, first)


class FrameRows(_Columns, Rows):
    """Rows of a data frame of pandas or polars, or of a table of Arrow."""

    def __init__(self, frame, label, weight, dtype):
        self.frame, self.dtype = _Frame.of(frame), np.dtype(dtype)
        self.where = "the data frame"
        names = self.frame.names
        if names is not None and not any(isinstance(name, str) for name in names):
            names = None  # numbers, as pandas counts columns
        width = self.frame.shape[1]
        self.roles = Roles.of(self.where, names, width, label, weight)
        self.names, self.columns = self.roles.names, len(self.roles.features)
        self.size, self.weighted = (self.frame.shape[0], self.columns), weight is not None
        if self.roles.label is not None:
            self.worded = _are_words(self.frame.cells(self.roles.label, 0, 1))

    def pieces(self, start=0, width=None):
        """The rows from `start` on."""
        refuse_narrow(self.where, self.columns, width)
        n, p = self.frame.shape
        step = rows_at_once(max(1, p))
        for a in range(start, n, step):
            b = min(n, a + step)
            yield self._piece([self.frame.cells(j, a, b) for j in range(p)], a)


class _Frame(NamedTuple):
    """What is asked of a data frame, whoever made it."""

    shape: tuple[int, int]
    names: list
    cells: Callable[[int, int, int], np.ndarray]  # of a column, from a row up to another

    @classmethod
    def of(cls, frame) -> "_Frame":
        if hasattr(frame, "iloc"):  # pandas
            return cls(frame.shape, list(frame.columns), lambda j, a, b: _array(frame.iloc[a:b, j]))
        if hasattr(frame, "get_column"):  # polars
            names = list(frame.columns)
            return cls(frame.shape, names, lambda j, a, b: _array(frame.get_column(names[j])[a:b]))
        names = list(frame.column_names)  # Arrow
        return cls(frame.shape, names, lambda j, a, b: _array(frame.column(j).slice(a, b - a)))


def is_frame(data: Any) -> bool:
    """Whether these are rows and columns with names: of pandas, polars or Arrow."""
    kinds = (("iloc", "columns"), ("get_column", "columns"), ("column_names", "slice"))
    return any(all(hasattr(data, name) for name in kind) for kind in kinds)


def _array(column) -> np.ndarray:
    """Cells of a column of pandas, polars or Arrow; what is missing is None, NA or NaN."""
    if not hasattr(column, "dictionary_encode"):
        return column.to_numpy()
    if hasattr(column.type, "value_type") and hasattr(column.type, "index_type"):
        column = column.cast(column.type.value_type)
    return column.to_numpy(zero_copy_only=False)


# -------------------------------------------------- blocks that others give


class BlockRows(Rows):
    """Rows of an iterable of blocks (X, y) or (X, y, weight), or of a function that returns one."""

    where = "the blocks"

    def __init__(self, blocks: Iterable | Callable[[], Iterable], dtype):
        self.blocks, self.dtype = blocks, np.dtype(dtype)
        self.once = not callable(blocks) and iter(blocks) is blocks
        opening, begun, found = self._opened(), [], None
        for block in opening:
            begun.append(block)
            found = self._source(block, len(begun))
            if found.size[0]:  # labels of no rows are neither words nor numbers
                break
        if found is None:
            raise ValueError("blocks: expected at least one block (X, y), got none")
        self.begun, self.columns, self.names = len(begun), found.columns, found.names
        self.weighted, self.worded = found.weighted, found.worded
        self.left = itertools.chain(begun, opening) if self.once else None

    def _opened(self):
        return iter(self.blocks() if callable(self.blocks) else self.blocks)

    def _source(self, block, number) -> ArrayRows:
        where = f"block {number}"
        if not isinstance(block, tuple | list) or len(block) not in (2, 3):
            raise ValueError(f"{where}: expected (X, y) or (X, y, weight), got {type(block)}")
        X, y, *weight = block
        return as_rows(X, y, self.dtype, *weight, where=where)

    @cached_property
    def size(self):
        """Number of rows and columns: one pass over the blocks."""
        if self.once:
            raise ValueError(
                "this iterator gives its blocks once, and its rows would have to be counted first: "
                "give a list or a function that returns a new iterator, or show the blocks to "
                "partial_fit"
            )
        return sum(len(piece.y) for piece in self.pieces()), self.columns

    def pieces(self, start=0, width=None):
        """The rows from `start` on."""
        refuse_narrow(self.where, self.columns, width)
        if self.once:
            if self.left is None:
                raise ValueError(
                    "this iterator gave its blocks already: for a second pass give a list or a "
                    "function that returns a new iterator"
                )
            blocks, self.left = self.left, None
        else:
            blocks = self._opened()
        for number, block in enumerate(blocks, 1):
            source = self._source(block, number)
            for what in ("columns", "weighted", "worded", "names"):
                is_now, was = getattr(source, what), getattr(self, what)
                if source.size[0] and not np.array_equal(is_now, was):
                    raise ValueError(f"block {number}: {what}: expected {was} as in block "
                                     f"{self.begun}, got {is_now}")  # fmt: skip
            if start < source.size[0]:
                yield from source.pieces(start)
            start = max(0, start - source.size[0])


def as_rows(X, y, dtype, weight=None, where="X") -> ArrayRows:
    """X and y in memory: arrays, perhaps mapped, sparse matrices, or a frame and its labels."""
    names = None
    if is_frame(X):
        frame = _Frame.of(X)
        if frame.names and all(isinstance(name, str) for name in frame.names):
            names = np.array(frame.names, object)
        p = frame.shape[1]
        X = np.column_stack([frame.cells(j, 0, frame.shape[0]) for j in range(p)])
    elif not sp.issparse(X) and not isinstance(X, np.ndarray):
        X = np.asarray(X)
    return ArrayRows(X, _array(y) if hasattr(y, "to_numpy") else y, dtype, weight, where, names)
