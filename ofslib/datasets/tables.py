"""Files of rows that are no LIBSVM text: CSV and TSV, Parquet and Arrow, and those of numpy."""

import bisect
import csv
import io
import itertools
import warnings
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from ofslib._files import CorruptFile
from ofslib.datasets.formats import (
    ArrayRows,
    Roles,
    _array,
    _Columns,
    as_rows,
    refuse_narrow,
    rows_at_once,
)
from ofslib.datasets.packed import open_text, unreadable
from ofslib.datasets.text import FileRows

# Ending of a file -> format; a packed text has one more ending.
ENDINGS = {".csv": "csv", ".tsv": "tsv", ".tab": "tsv", ".parquet": "parquet", ".pq": "parquet"}
ENDINGS |= {".arrow": "arrow", ".feather": "arrow", ".ipc": "arrow", ".npy": "npy", ".npz": "npz"}
TEXTS, TABLES = ("libsvm", "vw"), ("csv", "tsv", "parquet", "arrow", "npy")
FORMATS = (*TEXTS, *TABLES, "npz")
_PACKED = (".gz", ".bz2", ".xz", ".zst")
_TRUTHS = {"true": 1.0, "false": 0.0}


def format_of(path: Path, wanted: str | None = None) -> str | None:
    """The format that is wanted or that the ending of a name tells; None: LIBSVM or VW text."""
    if wanted is not None:
        if wanted not in FORMATS:
            raise ValueError(
                f"format (--format): expected one of {', '.join(FORMATS)}, got {wanted!r}"
            )
        return wanted
    endings = [ending.lower() for ending in path.suffixes]
    while endings and endings[-1] in _PACKED:
        endings.pop()
    return ENDINGS.get(endings[-1]) if endings else None


def open_table(path: Path, form: str, label, weight, header: bool, dtype):
    """The rows of a file of one of the formats that are no text of LIBSVM or Vowpal Wabbit."""
    if form in ("csv", "tsv"):
        return DelimitedRows(path, "," if form == "csv" else "\t", label, weight, header, dtype)
    if form in ("parquet", "arrow"):
        return ArrowRows(path, form, label, weight, dtype)
    return _npz(path, label, weight, dtype) if form == "npz" else _npy(path, label, weight, dtype)


# -------------------------------------------------- CSV and TSV


class DelimitedRows(_Columns, FileRows):
    """The rows of a CSV or TSV text, read by pandas' C parser, exact to the last bit.

    Labels are words if the first one is no number.
    """

    def __init__(self, path, delimiter, label, weight, header, dtype):
        super().__init__(path, dtype)
        self.where, self.delimiter, self.header = str(path), delimiter, header
        if not isinstance(header, bool | np.bool_):
            raise ValueError(f"header: expected True or False, got {header!r}")
        with self._cells() as cells:
            rows = list(itertools.islice(cells, 2))
        names = rows.pop(0) if header and rows else None
        if names and all(map(_is_number, names)):
            raise ValueError(f"{path}: the first line holds numbers only: with header=False "
                             "(--no-header) it is a row")  # fmt: skip
        if not names and not rows:
            raise ValueError(f"{path}: expected rows, got an empty file")
        self.width, first = len(names or rows[0]), (names or rows[0])[0]
        if self.width == 1 and (found := [mark for mark in (",", ";", "\t") if mark in first]):
            ends = {
                ",": "give format='csv' (--format csv)",
                "\t": "give format='tsv' (--format tsv)",
            }
            what = ends.get(found[0], "write it with commas or tabs")
            raise ValueError(
                f"{path}: its first line has no {delimiter!r} but {found[0]!r}: {what}"
            )
        self.roles = Roles.of(path, names, self.width, label, weight)
        self.names, self.columns = self.roles.names, len(self.roles.features)
        self.weighted = weight is not None
        at = self.roles.label
        short = at is None or not rows or at >= len(rows[0])
        self.worded = not short and not _is_number(rows[0][at])

    def options(self) -> list:
        """What else the rows depend on."""
        roles = [self.roles.label, self.roles.weight, bool(self.header), self.delimiter]
        return [*roles, self.dtype.str]

    @contextmanager
    def _cells(self):
        """Its rows that are not blank, as lists of words, by a slow reader."""
        with self._named(), open_text(self.path) as file:
            text = io.TextIOWrapper(file, encoding="utf-8-sig", newline="")
            rows = csv.reader(text, delimiter=self.delimiter, skipinitialspace=True)
            yield (row for row in rows if len(row) > 1 or "".join(row).strip())

    @contextmanager
    def _named(self):
        try:
            yield
        except UnicodeDecodeError as error:
            raise ValueError(f"{self.path}: expected UTF-8, got other bytes ({error})") from error
        except csv.Error as error:
            raise ValueError(f"{self.path}: {error}") from error
        except unreadable() as error:
            message = f"{self.path}: expected a whole file, got an unreadable one ({error})"
            raise CorruptFile(f"{message}; get it again") from error

    def pieces(self, start=0, width=None):
        """The rows from `start` on."""
        import pandas as pd

        refuse_narrow(self.path, self.columns, width)
        types = dict.fromkeys(range(self.width), np.float64)
        if self.worded:
            types[self.roles.label] = str
        step, first = rows_at_once(self.width), 0
        with self._named(), open(self.path, "rb") as packed, open_text(self.path, packed) as file:
            try:
                chunks = pd.read_csv(
                    file, sep=self.delimiter, header=0 if self.header else None,
                    names=range(self.width), index_col=False, dtype=types, chunksize=step,
                    engine="c", na_filter=False, **_exact(pd),
                    skipinitialspace=True, encoding="utf-8",
                )  # fmt: skip
                while (chunk := self._next(chunks)) is not None:
                    cells = chunk.to_numpy().T
                    if self.worded:
                        cells = [chunk[j].to_numpy() for j in range(self.width)]
                    piece = self._piece(cells, first)
                    self._at = packed.tell()
                    self._tell(first + len(chunk))
                    if start < first + len(chunk):
                        yield piece.rows(max(0, start - first), len(chunk))
                    first += len(chunk)
            except pd.errors.EmptyDataError:
                return
            except ValueError as error:
                self._refuse(first, step, error)

    def _next(self, chunks):
        """The next chunk, None at the end; a first row that is too long is more than a warning."""
        from pandas.errors import ParserWarning

        with warnings.catch_warnings():
            warnings.simplefilter("error", ParserWarning)
            try:
                return next(chunks, None)
            except ParserWarning as warning:
                raise ValueError(str(warning)) from None

    def _refuse(self, first, step, error):
        """Raise an error that names the cell which the fast parser could not read."""
        if str(error).startswith(str(self.path)):  # it is named
            raise error
        begin = first + int(self.header)
        with self._cells() as rows:
            rows = list(itertools.islice(rows, begin, begin + step))
        whole = list(itertools.takewhile(lambda row: len(row) == self.width, rows))
        columns = [np.array(column, object) for column in zip(*whole, strict=True)]
        own = self.roles.label if self.worded else None
        for j, column in enumerate(columns):
            column[:] = column if j == own else _read(column)
        if columns:
            self._piece(columns, first)
        if len(whole) < len(rows):
            got, row = len(rows[len(whole)]), first + len(whole) + 1
            message = f"{self.path}, row {row}: expected {self.width} cells, got {got}"
            raise ValueError(message) from error
        where = f"rows {first + 1} to {first + len(rows)}"
        raise ValueError(f"{self.path}, {where}: {error}") from error


def _exact(pd) -> dict:
    """What makes pandas' parser exact: nothing from 3.1 on, where it always is."""
    version = tuple(map(int, pd.__version__.split(".")[:2]))
    return {"float_precision": "round_trip"} if version < (3, 1) else {}


def _read(cells) -> list:
    """Cells of a column as the fast parser takes them: truth values are numbers where all are."""
    if all(cell.lower() in _TRUTHS for cell in cells):
        return [_TRUTHS[cell.lower()] for cell in cells]
    return [float(cell) if _is_number(cell) else cell for cell in cells]


def _is_number(cell: str) -> bool:
    """Whether the fast parser takes it for one; Python reads 1_000 and other digits, too."""
    try:
        float(cell)
    except ValueError:
        return False
    return cell.isascii() and "_" not in cell


# -------------------------------------------------- Parquet and Arrow


def _arrow(path):
    try:
        return import_module("pyarrow")
    except ImportError as error:
        raise ImportError(
            f"{path}: to read Parquet and Arrow files, install the extra: pip install "
            "'ofslib[arrow]' (it brings pyarrow)"
        ) from error


class ArrowRows(_Columns, FileRows):
    """The rows of a Parquet file, or of an Arrow (Feather) file, by groups of rows."""

    def __init__(self, path, form, label, weight, dtype):
        super().__init__(path, dtype)
        self.where, self.form, self.pa = str(path), form, _arrow(path)
        with self._opened() as (schema, counts, _):
            self.counts = counts
        names, types, kinds = list(schema.names), schema.types, self.pa.types
        self.roles = Roles.of(path, names, len(names), label, weight)
        self.names, self.columns = self.roles.names, len(self.roles.features)
        self.size, self.weighted = (sum(self.counts), self.columns), weight is not None
        roles = {*self.roles.features, self.roles.weight} - {None}
        for j in sorted(roles):
            kind = types[j]
            tests = (kinds.is_integer, kinds.is_floating, kinds.is_boolean, kinds.is_decimal)
            if not any(test(kind) for test in tests):
                raise ValueError(f"{path}: column {names[j]!r} holds {kind}: expected numbers")
        if self.roles.label is not None:
            kind = types[self.roles.label]
            kind = kind.value_type if kinds.is_dictionary(kind) else kind
            self.worded = kinds.is_string(kind) or kinds.is_large_string(kind)

    def options(self) -> list:
        """What else the rows depend on."""
        return [self.form, self.roles.label, self.roles.weight, self.dtype.str]

    @contextmanager
    def _opened(self):
        """Its columns, how many rows each group has, and a function that reads one in parts."""
        try:
            if self.form == "parquet":
                with import_module("pyarrow.parquet").ParquetFile(self.path) as file:
                    about = file.metadata
                    counts = [about.row_group(i).num_rows for i in range(about.num_row_groups)]
                    yield (
                        file.schema_arrow,
                        counts,
                        lambda i, rows: file.iter_batches(rows, row_groups=[i]),
                    )
            else:
                with self.pa.memory_map(str(self.path)) as memory:
                    file = import_module("pyarrow.ipc").open_file(memory)
                    groups = range(file.num_record_batches)
                    counts = [file.get_batch(i).num_rows for i in groups]
                    yield file.schema, counts, lambda i, rows: _cut(file.get_batch(i), rows)
        except (self.pa.ArrowInvalid, OSError) as error:
            raise CorruptFile(f"{self.path}: expected a whole file of the format {self.form}, got "
                              f"one that is not ({error})") from error  # fmt: skip

    def pieces(self, start=0, width=None):
        """The rows from `start` on."""
        refuse_narrow(self.path, self.columns, width)
        step, whole = rows_at_once(self.columns), self.path.stat().st_size
        ends = list(itertools.accumulate(self.counts))
        begin = bisect.bisect_right(ends, start)
        first = ends[begin - 1] if begin else 0
        with self._opened() as (_, _, read):
            for group in range(begin, len(ends)):
                for batch in read(group, step):
                    piece = self._piece([_array(column) for column in batch.columns], first)
                    end = first + batch.num_rows
                    self._at = whole * end // ends[-1]
                    self._tell(end)
                    if start < end:
                        yield piece.rows(max(0, start - first), batch.num_rows)
                    first = end


def _cut(batch, rows) -> Iterator:
    return (batch.slice(at, rows) for at in range(0, batch.num_rows, rows))


# -------------------------------------------------- files of numpy


def _npy(path, label, weight, dtype):
    """The rows of an array, mapped; its columns are features, labels and weights."""
    X = _loaded(path, mmap_mode="r")
    if X.ndim != 2:
        raise ValueError(f"{path}: expected rows and columns, got an array of shape {X.shape}")
    roles = Roles.of(path, None, X.shape[1], label, weight)
    y = False if roles.label is None else X[:, roles.label]
    weight = None if roles.weight is None else X[:, roles.weight]
    return ArrayRows(X, y, dtype, weight, str(path), features=roles.features)


def _npz(path, label, weight, dtype):
    """X, or the parts of a sparse matrix as scipy saves them, and y, in memory."""
    with _loaded(path) as arrays:
        label = "y" if label is None else label
        missing = [name for name in (label, weight) if name and name not in arrays]
        if missing or not {"X", "data"} & set(arrays):
            raise ValueError(
                f"{path}: expected X, or the parts of a sparse matrix of scipy, and "
                f"{' and '.join(map(str, missing or [label]))}; there are {', '.join(arrays)}"
            )
        y = label and arrays[label]
        weight = weight and arrays[weight]
        if "X" in arrays:
            return as_rows(arrays["X"], y, dtype, weight, str(path))
    return as_rows(sp.load_npz(path), y, dtype, weight, str(path))


def _loaded(path, **options):
    try:
        return np.load(path, allow_pickle=False, **options)
    except (ValueError, EOFError, OSError, zipfile.BadZipFile) as error:
        raise CorruptFile(f"{path}: expected arrays as numpy saves them, got others ({error})"
                          ) from error  # fmt: skip
