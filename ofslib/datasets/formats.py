"""Rows of tables, arrays and iterables, each as a source of pieces of sparse rows.

What is no finite number is named by row, counted from 1, and column.
"""

import itertools
import operator
from collections import Counter
from collections.abc import Callable, Iterable
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from ofslib._sparse import checked, plain_words, refuse_masked
from ofslib.datasets.pieces import LONGEST_LABEL, Piece, Rows, refuse_narrow
from ofslib.kernels.rows import ascend

_RAW = "; `ofslib inspect FILE` lists all columns, and --categorical, --missing, --ignore take them"
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
    def of(cls, where, names, width: int, label, weight, ignore=None, only=None) -> "Roles":
        """Check the names, and find the columns of labels and weights, which are asked for.

        Features are all other columns but those that are ignored, or `only` these in their order.
        """
        if label is None:
            raise ValueError(
                f"{where}: label (--label): say which column holds the labels, by name or position "
                f"from 0 (in Python also False, if none does); there are {_listed(names, width)}"
            )
        label = None if label is False else _position(where, "label", label, names, width)
        weight = None if weight is None else _position(where, "weight", weight, names, width)
        if label is not None and label == weight:
            raise ValueError(f"{where}: label (--label) and weight (--weight) are the same column")
        if isinstance(ignore, str):
            raise ValueError(f"ignore: expected a list of columns, got {ignore!r}")
        ignored = {_position(where, "ignore", name, names, width) for name in ignore or ()}
        if ignored & {label, weight}:
            raise ValueError(f"{where}: ignore (--ignore) has the column of labels or weights")
        features = [j for j in range(width) if j not in {label, weight} | ignored]
        if only is not None:
            found = {names[j]: j for j in features} if names is not None else {}
            if absent := [repr(name) for name in only if name not in found]:
                raise ValueError(f"{where}: columns: there is no {', '.join(absent[:10])}, which "
                                 f"is needed; there are {_listed(names, width)}")  # fmt: skip
            features = [found[name] for name in only]
        if not features:
            raise ValueError(
                f"{where}: expected features beside the labels, got {_listed(names, width)}"
            )
        if names is None:
            return cls(features, label, weight, None)
        _check_names(where, names, {*features, label, weight} - {None})
        return cls(features, label, weight, np.array([names[j] for j in features], object))


def _check_names(where, names, used):
    """ValueError if a column that is read has no name of its own."""
    counts = Counter(names)
    for j in sorted(used):
        name = names[j]
        if not isinstance(name, str) or not name.strip():
            raise ValueError(f"{where}: column {j + 1} has the name {name!r}; expected words (the "
                             "index of a data frame is written without by to_csv(index=False), or "
                             f"left out by ignore (--ignore {j}))")  # fmt: skip
        if counts[name] > 1:
            raise ValueError(f"{where}: two columns have the name {name!r}")


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


# -------------------------------------------------- cells to numbers, labels and sparse rows


def _numbers(cells, where: str, first: int, column: str, hint: str = "") -> np.ndarray:
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
        from pandas import isna  # slow to import, and needed for errors only

        cell, row = cells[wrong[0]], first + wrong[0] + 1
        plain = cell.item() if isinstance(cell, np.generic) else cell
        what = "a missing value" if isna(cell) or str(cell) == "" else f"{plain!r:.80}"
        raise ValueError(f"{where}, row {row}, column {column}: expected a finite number, got "
                         f"{what}{hint}")  # fmt: skip
    return values


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
    if long := [i for i, cell in enumerate(cells) if len(cell) > LONGEST_LABEL]:
        raise ValueError(f"{where}, row {first + long[0] + 1}: expected a label of at most "
                         f"{LONGEST_LABEL} letters, got {len(cells[long[0]])}")  # fmt: skip
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
        X = sp.csr_array(table.astype(dtype, copy=False))
    return _from_matrix(X, y, weight, dtype, where, first)


def _from_matrix(X, y, weight, dtype, where: str, first: int) -> Piece:
    """Rows of a sparse matrix."""
    if X.shape[1] > np.iinfo(np.int32).max or X.dtype.kind not in "biuf":
        raise ValueError(
            f"{where}: expected numbers in at most 2**31 - 1 columns, got {X.dtype} in {X.shape[1]}"
        )
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    with np.errstate(over="ignore"):
        data = X.data.astype(dtype, copy=False)
    if len(wrong := np.flatnonzero(~np.isfinite(data))):
        row, most = np.searchsorted(X.indptr, wrong[0], "right"), np.finfo(data.dtype).max
        raise ValueError(f"{where}, row {first + row}: a value is not a finite number of "
                         f"{data.dtype} (at most {most:.2g})")  # fmt: skip
    return Piece(data, X.indices.astype(np.int32, copy=False), X.indptr, y, weight, X.shape[1])


def table_piece(
    frame, roles: Roles, worded: bool, dtype, where: str, first: int, encoding=None, wanted=None
) -> Piece:
    """Some rows of a table, which also holds labels and weights, in a frame by their positions.

    With an encoding the features are those that it makes, or the `wanted` ones of them.
    """
    y, weight = np.full(len(frame), np.nan), None
    if roles.label is not None:
        y = _labels(frame[roles.label].to_numpy(), where, first, worded)
    if roles.weight is not None:
        weight = _weights(frame[roles.weight].to_numpy(), where, first)
    features = frame[roles.features]
    if encoding is None:
        table = _table(features, where, first, roles.names, roles.features, _RAW)
        return _sparse(table, y, weight, dtype, where, first)
    X = encoding.matrix(features, where, first)
    X = X if wanted is None else X[:, wanted]
    return _from_matrix(X, y, weight, dtype, where, first)


def _table(block, where, first, names, features, hint="") -> np.ndarray:
    """Some rows of an array or a frame of pandas as finite float64."""
    is_array = not hasattr(block, "iloc")
    block = np.asarray(block) if is_array else block
    if all(kind.kind in "biuf" for kind in ([block.dtype] if is_array else block.dtypes)):
        if is_array:
            table = block.astype(np.float64)
        else:
            table = block.to_numpy(np.float64, na_value=np.nan)
        if np.isfinite(table).all():
            return table
    columns = []
    for j in range(block.shape[1]):
        place = 1 + (j if features is None else features[j])
        name = str(place) if names is None else repr(names[j])
        cells = block[:, j] if is_array else block.iloc[:, j].to_numpy()
        columns.append(_numbers(cells, where, first, name, hint))
    return np.column_stack(columns)


# -------------------------------------------------- rows in memory


class ArrayRows(Rows):
    """Rows of an array, perhaps mapped, of a sparse matrix or a data frame, and their labels.

    `features`, if given, are the columns that are read of an array or a data frame.
    """

    def __init__(self, X, y, dtype, weight=None, where="X", names=None, features=None):
        self.where, self.names, self.dtype = where, names, np.dtype(dtype)
        self.X = checked(sp.csr_array(checked(X)), ascend) if sp.issparse(X) else X
        if len(self.X.shape) != 2:
            raise ValueError(f"{where}: expected two axes, rows and columns, got {self.X.shape}")
        n, p = self.X.shape
        self.features = features
        self.columns = int(p) if features is None else len(features)
        self.size = int(n), self.columns
        y = np.full(n, np.nan) if y is False else y
        y = y if isinstance(y, np.ndarray) else np.asarray(y, object)
        for what, array in (("y", y), ("weight", weight)):
            if array is not None and np.shape(array) != self.size[:1]:
                raise ValueError(f"{where}: expected {what} of shape ({n},), got {np.shape(array)}")
        self.worded, self.weighted = _are_words(y), weight is not None
        without = y.dtype.kind == "f" and np.isnan(y).all()
        self.y = y.astype(np.float64) if without else _labels(y, where, 0, self.worded)
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
            features = slice(None) if self.features is None else self.features
            is_array = isinstance(self.X, np.ndarray)
            block = self.X[part][:, features] if is_array else self.X.iloc[part, features]
            table = _table(block, self.where, a, self.names, self.features)
            own = None if weight is None else weight[part]
            yield _sparse(table, self.y[part], own, self.dtype, self.where, a)


def _are_words(cells) -> bool:
    """Whether labels are words, as the first of them is."""
    return len(cells) > 0 and isinstance(cells[0], str)


def is_frame(data: Any) -> bool:
    """Whether these are rows and columns with names: of pandas, polars or Arrow."""
    return hasattr(data, "iloc") or (hasattr(data, "to_pandas") and hasattr(data, "slice"))


def _as_pandas(frame):
    """A data frame as one of pandas, and the names of its columns; None of numbers."""
    if not hasattr(frame, "iloc"):
        # Else pandas takes a column of an Arrow table for the index that it once was.
        own = {"ignore_metadata": True} if hasattr(frame, "column_names") else {}
        frame = frame.to_pandas(**own)
    names = list(frame.columns)
    return frame, names if any(isinstance(name, str) for name in names) else None


def frame_rows(frame, label, weight, dtype) -> ArrayRows:
    """Rows of a data frame of pandas, polars or Arrow, which also holds labels and weights."""
    (frame, names), where = _as_pandas(frame), "the data frame"
    roles = Roles.of(where, names, frame.shape[1], label, weight)
    label, weight = (
        None if j is None else frame.iloc[:, j].to_numpy() for j in (roles.label, roles.weight)
    )
    y = False if label is None else label
    return ArrayRows(frame, y, dtype, weight, where, roles.names, roles.features)


def as_rows(X, y, dtype, weight=None, where="X") -> ArrayRows:
    """X and y in memory: arrays, perhaps mapped, sparse matrices, or a frame and its labels."""
    refuse_masked(X=X, y=y, weight=weight)
    names = None
    if is_frame(X):
        X, names = _as_pandas(X)
        if names and all(isinstance(name, str) for name in names):
            names = np.array(names, object)
        else:
            names = None
    elif not sp.issparse(X) and not isinstance(X, np.ndarray):
        X = np.asarray(X)
    y, weight = (a.to_numpy() if hasattr(a, "to_numpy") else a for a in (y, weight))
    return ArrayRows(X, plain_words(y), dtype, weight, where, names)


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
        return Rows.size.func(self)

    def pieces(self, start=0, width=None):
        """The rows from `start` on."""
        refuse_narrow(self.where, self.columns, width)
        blocks = self.left if self.once else self._opened()
        if blocks is None:
            raise ValueError(
                "this iterator gave its blocks already: for a second pass give a list or a "
                "function that returns a new iterator"
            )
        self.left = None
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
