"""Files of rows that are no LIBSVM text: CSV and TSV, Parquet and Arrow, and those of numpy."""

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
from ofslib.datasets.compressed import open_text, unreadable
from ofslib.datasets.formats import (
    ArrayRows,
    Roles,
    as_rows,
    rows_at_once,
    table_piece,
)
from ofslib.datasets.pieces import FileRows, refuse_narrow

# Ending of a file -> format; a packed text has one more ending.
ENDINGS = {".csv": "csv", ".tsv": "tsv", ".tab": "tsv", ".parquet": "parquet", ".pq": "parquet"}
ENDINGS |= {".arrow": "arrow", ".feather": "arrow", ".ipc": "arrow", ".npy": "npy", ".npz": "npz"}
TEXTS, TABLES = ("libsvm", "vw"), ("csv", "tsv", "parquet", "arrow", "npy")
FORMATS = (*TEXTS, *TABLES, "npz")
_PACKED = (".gz", ".bz2", ".xz", ".zst")
_DELIMITERS = {"csv": ",", "tsv": "\t"}
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
    if form in _DELIMITERS:
        return DelimitedRows(path, _DELIMITERS[form], label, weight, header, dtype)
    if form in ("parquet", "arrow"):
        return ArrowRows(path, form, label, weight, dtype)
    return _npz(path, label, weight, dtype) if form == "npz" else _npy(path, label, weight, dtype)


class _TableRows(FileRows):
    """Rows of a file that comes as frames of pandas, a part of it at a time."""

    roles: Roles

    def _known(self, names, width, label, weight):
        self.roles = Roles.of(self.path, names, width, label, weight)
        self.names, self.columns = self.roles.names, len(self.roles.features)
        self.weighted = weight is not None

    def _frames(self) -> Iterator:
        """Frames of consecutive rows, beginning with the first one."""
        raise NotImplementedError

    def pieces(self, start=0, width=None):
        """The rows from `start` on."""
        refuse_narrow(self.path, self.columns, width)
        first = 0
        for frame in self._frames():
            piece = table_piece(frame, self.roles, self.worded, self.dtype, self.where, first)
            self._tell(first + len(frame))
            if start < first + len(frame):
                yield piece.rows(max(0, start - first), len(frame))
            first += len(frame)


# -------------------------------------------------- CSV and TSV


class DelimitedRows(_TableRows):
    """The rows of a CSV or TSV text, read by pandas' C parser, exact to the last bit.

    Labels are words if the first one is no number.
    """

    def __init__(self, path, delimiter, label, weight, header, dtype):
        super().__init__(path, dtype)
        self.delimiter, self.header = delimiter, header
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
        self._known(names, self.width, label, weight)
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

    def _frames(self):
        import pandas as pd

        types = dict.fromkeys(range(self.width), np.float64)
        if self.worded:
            types[self.roles.label] = str
        # From pandas 3.1 on its parser always is exact.
        version = tuple(map(int, pd.__version__.split(".")[:2]))
        exact = {"float_precision": "round_trip"} if version < (3, 1) else {}
        step, first = rows_at_once(self.width), 0
        with (
            self._named(),
            open(self.path, "rb") as raw,
            open_text(self.path, raw) as file,
        ):
            try:
                chunks = pd.read_csv(
                    file, sep=self.delimiter, header=0 if self.header else None,
                    names=range(self.width), index_col=False, dtype=types, chunksize=step,
                    engine="c", na_filter=False, **exact,
                    skipinitialspace=True, encoding="utf-8",
                )  # fmt: skip
                while True:
                    with warnings.catch_warnings():
                        # That the first row is too long is more than a warning.
                        warnings.simplefilter("error", pd.errors.ParserWarning)
                        frame = next(chunks, None)
                    if frame is None:
                        return
                    self._at = raw.tell()
                    yield frame
                    first += len(frame)
            except pd.errors.EmptyDataError:
                return
            except (ValueError, pd.errors.ParserWarning) as error:
                self._refuse(first, step, error)

    def _refuse(self, first, step, error):
        """Raise an error that names the cell which the fast parser could not read."""
        import pandas as pd

        begin = first + int(self.header)
        with self._cells() as rows:
            rows = list(itertools.islice(rows, begin, begin + step))
        whole = list(itertools.takewhile(lambda row: len(row) == self.width, rows))
        frame = pd.DataFrame(whole, columns=range(self.width), dtype=object)
        for j in range(self.width):
            if not (self.worded and j == self.roles.label):
                frame[j] = _read(frame[j])
        if whole:
            table_piece(frame, self.roles, self.worded, self.dtype, self.where, first)
        if len(whole) < len(rows):
            got, row = len(rows[len(whole)]), first + len(whole) + 1
            message = f"{self.path}, row {row}: expected {self.width} cells, got {got}"
            raise ValueError(message) from error
        where = f"rows {first + 1} to {first + len(rows)}"
        raise ValueError(f"{self.path}, {where}: {error}") from error


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


class ArrowRows(_TableRows):
    """The rows of a Parquet file, or of an Arrow (Feather) file."""

    def __init__(self, path, form, label, weight, dtype):
        super().__init__(path, dtype)
        self.form = form
        try:
            arrow = import_module("pyarrow.dataset")
        except ImportError as error:
            raise ImportError(
                f"{path}: to read Parquet and Arrow files, install the extra: pip install "
                "'ofslib[arrow]' (it brings pyarrow)"
            ) from error
        with self._named():
            self.data = arrow.dataset(str(path), format=form)
            rows, names = self.data.count_rows(), self.data.schema.names
        self._known(names, len(names), label, weight)
        self.size = rows, self.columns
        if self.roles.label is not None:
            kind = self.data.schema.types[self.roles.label]
            self.worded = str(getattr(kind, "value_type", kind)) in ("string", "large_string")

    def options(self) -> list:
        """What else the rows depend on."""
        return [self.form, self.roles.label, self.roles.weight, self.dtype.str]

    @contextmanager
    def _named(self):
        try:
            yield
        except (OSError, ValueError) as error:  # pyarrow's errors are one or the other
            raise CorruptFile(f"{self.path}: expected a whole file of the format {self.form}, got "
                              f"one that is not ({error})") from error  # fmt: skip

    def _frames(self):
        whole, end = self.path.stat().st_size, 0
        # Else pyarrow holds all that it has read of the file, and reads ahead in threads.
        own = {"batch_readahead": 0, "fragment_readahead": 0, "use_threads": False}
        if self.form == "parquet":
            options = import_module("pyarrow.dataset").ParquetFragmentScanOptions
            own["fragment_scan_options"] = options(pre_buffer=False, use_buffered_stream=True)
        with self._named():
            for batch in self.data.to_batches(batch_size=rows_at_once(self.columns), **own):
                end += batch.num_rows
                self._at = whole * end // max(1, self.size[0])
                yield batch.to_pandas(ignore_metadata=True)


# -------------------------------------------------- files of numpy


def _npy(path, label, weight, dtype):
    """The rows of an array, mapped; its columns are features, labels and weights."""
    X = _loaded(path, mmap_mode="r")
    if X.ndim != 2:
        raise ValueError(f"{path}: expected rows and columns, got an array of shape {X.shape}")
    roles = Roles.of(path, None, X.shape[1], label, weight)
    y, weight = (None if j is None else X[:, j] for j in (roles.label, roles.weight))
    return ArrayRows(X, False if y is None else y, dtype, weight, str(path), None, roles.features)


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
        X = arrays["X"] if "X" in arrays else sp.load_npz(path)
        return as_rows(X, label and arrays[label], dtype, weight and arrays[weight], str(path))


def _loaded(path, **options):
    try:
        return np.load(path, allow_pickle=False, **options)
    except (ValueError, EOFError, OSError, zipfile.BadZipFile) as error:
        raise CorruptFile(f"{path}: expected arrays as numpy saves them, got others ({error})"
                          ) from error  # fmt: skip
