"""Files of rows that are no LIBSVM text: CSV and TSV, Parquet and Arrow, and those of numpy."""

import csv
import io
import itertools
import warnings
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from ofslib._files import CorruptFile
from ofslib.datasets.compressed import open_text, whole
from ofslib.datasets.encoding import BUCKETS, Encoding
from ofslib.datasets.first_look import TRUTHS, FirstLook, looked_at
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
DELIMITED, ARROW = {"csv": ",", "tsv": "\t"}, ("parquet", "arrow")
_MARKS = ",;\t|"  # that separate cells, if the one of the format does not


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


class Raw(NamedTuple):
    """What `open_stream` was told of a table that is to be read as it is."""

    ignore: Sequence | None = None
    columns: Sequence[str] | None = None
    encoding: Encoding | None = None
    missing: str = "refuse"
    categorical: str | None = None
    standardize: bool = False
    buckets: int | None = None


_PLAIN = Raw()


def open_table(path: Path, form: str, label, weight, header, dtype, delimiter=None, raw=_PLAIN):
    """The rows of a file of one of the formats that are no text of LIBSVM or Vowpal Wabbit."""
    if form in DELIMITED:
        return DelimitedRows(path, form, delimiter, label, weight, header, dtype, raw)
    if form in ARROW:
        if delimiter is not None:
            raise ValueError(f"delimiter (--delimiter) is not for {path}, read as {form}")
        return ArrowRows(path, form, label, weight, dtype, raw)
    return _npz(path, label, weight, dtype) if form == "npz" else _npy(path, label, weight, dtype)


class _TableRows(FileRows):
    """Rows of a file that comes as frames of pandas, a part of it at a time."""

    roles: Roles
    encoding: Encoding | None = None
    wanted: np.ndarray | None = None  # which of the encoded features are read
    ragged: list[int]  # rows with another number of cells, as a first look has found

    def _known(self, names, width, label, weight, raw):
        """Find the columns that are read; without a header those of an encoding are counted."""
        learns = raw.missing != "refuse" or raw.categorical or raw.standardize
        if names is None and (learns or raw.encoding):
            names = [f"column {j + 1}" for j in range(width)]
        if raw.encoding and not raw.encoding.names:
            raise ValueError(f"{self.path}: encoding: it is of a text, not of a table")
        only = raw.columns
        if raw.encoding:
            only = raw.encoding.sources(raw.encoding.features if only is None else only)
        self.roles = Roles.of(self.path, names, width, label, weight, raw.ignore, only)
        self.names, self.columns = self.roles.names, len(self.roles.features)
        self.weighted, self.chosen = weight is not None, bool(raw.ignore) or only is not None
        if raw.encoding:
            self._encode(raw.encoding.only(only), raw.columns)
        elif learns:
            how = raw.missing, raw.categorical, raw.standardize, raw.buckets or BUCKETS
            self._encode(Encoding.learned(self.path, self.first_look(), *how))

    def _encode(self, encoding, wanted=None):
        names = encoding.features
        if wanted is not None:
            places = {name: j for j, name in enumerate(names)}
            self.wanted = np.array([places[name] for name in wanted])
        self.encoding, self.names = encoding, np.array(names if wanted is None else wanted, object)
        self.columns = len(self.names)

    def first_look(self) -> FirstLook:
        """What is in each column that is no label or weight."""
        self.ragged, features = [], self.roles.features
        names = self.roles.names
        if names is None:
            names = [f"column {j + 1}" for j in features]
        look = looked_at(names, (frame[features] for frame in self._raw_frames(strict=False)))
        look.ragged = self.ragged
        return look

    def _chosen(self) -> list:
        """What the rows depend on, if they are not those of all columns as they are."""
        found = [self.roles.features] if self.chosen else []
        return found + ([self.encoding.digest(), self.names.tolist()] if self.encoding else [])

    def _frames(self) -> Iterator:
        """Frames of consecutive rows, beginning with the first one."""
        raise NotImplementedError

    def _raw_frames(self, strict=True) -> Iterator:
        """The same with all cells as they are; if not strict, also rows of other lengths."""
        return self._frames()

    def pieces(self, start=0, width=None):
        """The rows from `start` on."""
        refuse_narrow(self.path, self.columns, width)
        first, own = 0, (self.encoding, self.wanted)
        for frame in self._raw_frames() if self.encoding else self._frames():
            piece = table_piece(frame, self.roles, self.worded, self.dtype, self.where, first, *own)
            self._tell(first + len(frame))
            if start < first + len(frame):
                yield piece.rows(max(0, start - first), len(frame))
            first += len(frame)


# -------------------------------------------------- CSV and TSV


class DelimitedRows(_TableRows):
    """The rows of a CSV or TSV text, read by pandas' C parser, exact to the last bit.

    Labels are words if the first one is no number.
    """

    def __init__(self, path, form, delimiter, label, weight, header, dtype, raw):
        super().__init__(path, dtype)
        self.delimiter, self.header = delimiter or DELIMITED[form], header
        if delimiter is not None and (len(delimiter) != 1 or delimiter in '"\r\n'):
            raise ValueError(f"delimiter (--delimiter): expected a character, got {delimiter!r}")
        if not isinstance(header, bool | np.bool_):
            raise ValueError(f"header: expected True or False, got {header!r}")
        rows = self._begin()
        if delimiter is None and rows and len(rows[0]) == 1 and set(_MARKS) & set(rows[0][0]):
            self.delimiter = max(_MARKS, key=rows[0][0].count)
            rows = self._begin()
        names = rows.pop(0) if header and rows else None
        if names and all(map(_is_number, names)):
            raise ValueError(f"{path}: the first line holds numbers only: with header=False "
                             "(--no-header) it is a row")  # fmt: skip
        if not names and not rows:
            raise ValueError(f"{path}: expected rows, got an empty file")
        self.width = len(names or rows[0])
        self._known(names, self.width, label, weight, raw)
        at = self.roles.label
        short = at is None or not rows or at >= len(rows[0])
        self.worded = not short and not _is_number(rows[0][at])

    def options(self) -> list:
        """What else the rows depend on."""
        roles = [self.roles.label, self.roles.weight, bool(self.header), self.delimiter]
        return [*roles, self.dtype.str, *self._chosen()]

    def _begin(self):
        with self._cells() as (cells, _):
            return list(itertools.islice(cells, 2))

    @contextmanager
    def _cells(self):
        """Its rows that are not blank, as lists of words, by a slow reader; and the file."""
        with self._named(), open(self.path, "rb") as raw, open_text(self.path, raw) as file:
            text = io.TextIOWrapper(file, encoding="utf-8-sig", newline="")
            rows = csv.reader(text, delimiter=self.delimiter, skipinitialspace=True)
            yield (row for row in rows if len(row) > 1 or "".join(row).strip()), raw

    def _raw_frames(self, strict=True):
        import pandas as pd

        first, step, width = 0, rows_at_once(self.width), self.width
        with self._cells() as (cells, file):
            cells = itertools.islice(cells, int(self.header), None)
            while rows := list(itertools.islice(cells, step)):
                for i, row in enumerate(rows):
                    if len(row) != width:
                        if strict:
                            raise self._ragged(first + i, row)
                        self.ragged.append(first + i + 1)
                        rows[i] = row[:width] + [""] * (width - len(row))
                frame = pd.DataFrame(rows, columns=range(width), dtype=object)
                for j in {self.roles.weight, None if self.worded else self.roles.label} - {None}:
                    frame[j] = _read(frame[j])
                first, self._at = first + len(rows), file.tell()
                yield frame

    def _ragged(self, i, row):
        return ValueError(f"{self.path}, row {i + 1}: expected {self.width} cells, got {len(row)}")

    @contextmanager
    def _named(self):
        try:
            with whole(self.path):
                yield
        except UnicodeDecodeError as error:
            raise ValueError(f"{self.path}: expected UTF-8, got other bytes ({error})") from error
        except csv.Error as error:
            raise ValueError(f"{self.path}: {error}") from error

    def _frames(self):
        import pandas as pd

        # Of others a letter is kept: with usecols pandas would not see that a row is too long.
        types = dict.fromkeys(range(self.width), "S1")
        if self.worded:
            types[self.roles.label] = str
        types |= dict.fromkeys(self._numbers(), np.float64)
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

    def _numbers(self):
        """The columns that hold numbers."""
        label = None if self.worded else self.roles.label
        return {*self.roles.features, label, self.roles.weight} - {None}

    def _refuse(self, first, step, error):
        """Raise an error that names the cell which the fast parser could not read."""
        import pandas as pd

        begin = first + int(self.header)
        with self._cells() as (rows, _):
            rows = list(itertools.islice(rows, begin, begin + step))
        whole = list(itertools.takewhile(lambda row: len(row) == self.width, rows))
        frame = pd.DataFrame(whole, columns=range(self.width), dtype=object)
        for j in self._numbers():
            frame[j] = _read(frame[j])
        if whole:
            table_piece(frame, self.roles, self.worded, self.dtype, self.where, first)
        if len(whole) < len(rows):
            raise self._ragged(first + len(whole), rows[len(whole)]) from error
        where = f"rows {first + 1} to {first + len(rows)}"
        raise ValueError(f"{self.path}, {where}: {error}") from error


def _read(cells) -> list:
    """Cells of a column as the fast parser takes them: truth values are numbers where all are."""
    if all(cell.lower() in TRUTHS for cell in cells):
        return [TRUTHS[cell.lower()] for cell in cells]
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

    def __init__(self, path, form, label, weight, dtype, raw):
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
            self._rows, names = self.data.count_rows(), self.data.schema.names
        self._places = {name: j for j, name in enumerate(names)}
        self._known(names, len(names), label, weight, raw)
        self.size = self._rows, self.columns
        if self.roles.label is not None:
            kind = self.data.schema.types[self.roles.label]
            self.worded = str(getattr(kind, "value_type", kind)) in ("string", "large_string")

    def options(self) -> list:
        """What else the rows depend on."""
        return [self.form, self.roles.label, self.roles.weight, self.dtype.str, *self._chosen()]

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
            used = {*self.roles.features, *self.roles[1:3]}
            own["columns"] = [name for name, j in self._places.items() if j in used]
            for batch in self.data.to_batches(batch_size=rows_at_once(len(used)), **own):
                end += batch.num_rows
                self._at = whole * end // max(1, self._rows)
                frame = batch.to_pandas(ignore_metadata=True)
                yield frame.set_axis([self._places[name] for name in frame], axis=1)


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
