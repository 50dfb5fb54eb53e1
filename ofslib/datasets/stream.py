"""Files of any size as blocks of rows, as often as they are asked for."""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from ofslib._files import refuse_device
from ofslib._sparse import NamedRows
from ofslib.datasets.cache import CachedRows, cache_of
from ofslib.datasets.download import fetch
from ofslib.datasets.encoding import Encoding, of_scales
from ofslib.datasets.first_look import FirstLook
from ofslib.datasets.formats import BlockRows, as_rows, frame_rows, is_frame
from ofslib.datasets.pieces import LARGEST, as_matrix, check_whole, joined
from ofslib.datasets.readers import label_of, rows_of
from ofslib.datasets.registry import BY_BLOCKS, read_rows
from ofslib.datasets.tables import ARROW, DELIMITED, TEXTS, Raw, format_of, open_table
from ofslib.datasets.text import TextRows


def open_stream(
    source: Any,
    block_rows: int = 10_000,
    cache: bool | str | os.PathLike = True,
    n_features: int | None = None,
    folder: str | os.PathLike = "resources",
    dtype: npt.DTypeLike = np.float64,
    start_row: int = 0,
    zero_based: bool = False,
    split: str = "train",
    registry_path: str | os.PathLike | None = None,
    n_jobs: int = 1,
    format: str | None = None,
    label: str | int | bool | None = None,
    weight: str | int | bool | None = None,
    header: bool = True,
    word_labels: bool = False,
    hashed: bool = False,
    ignore: Sequence[str | int] | None = None,
    delimiter: str | None = None,
    missing: str = "refuse",
    categorical: str | None = None,
    standardize: bool = False,
    encoding: Encoding | None = None,
    columns: Sequence[str] | None = None,
) -> "Stream":
    """Go through the rows of a file, or of what is in memory, in blocks of sparse rows."""
    dtype = _float_type(dtype)
    own = {"word_labels": word_labels, "hashed": hashed}
    raw = Raw(ignore, columns, encoding, missing, categorical, standardize, n_features)
    of_tables = _given(raw) | {"delimiter": delimiter}
    if not isinstance(source, str | os.PathLike):
        if source is None:
            raise TypeError(f"source must be a file, a name, rows or blocks, not {source!r}")
        own |= of_tables | {"standardize": standardize, "encoding": bool(encoding)}
        _refuse("rows in memory", format=format, **own)
        return Stream(_in_memory(source, label, weight, dtype), block_rows, n_features, start_row)
    path = Path(source)
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder: give a file, or a name of a data set")
    if not path.is_file():
        refuse_device(path)
        name, row = str(source), _row_of(str(source), registry_path)
        paths = fetch(name, folder, registry_path, split=split)
        if row["reader"] not in TEXTS:
            _refuse(name, format=format, label=label, weight=weight, **own)
            label = label_of(row)
        if row["reader"] not in BY_BLOCKS:
            _refuse(name, **of_tables)
            stream = Stream(rows_of(row, paths, dtype), block_rows, n_features, start_row)
            return _scaled(stream, standardize, encoding)
        [path], format = paths, format or row["reader"]
        n_features = n_features or row["n_features"] or None
    form = format_of(path, format)
    if form in (*DELIMITED, *ARROW):
        _refuse(f"{path}, read as {form}, but for libsvm and vw", **own)
        rows = open_table(path, form, label, weight, header, dtype, delimiter, raw)
        if cache is not False and form in DELIMITED:
            rows = CachedRows(rows, cache_of(path, cache))
        buckets = encoding or categorical == "hash"  # are so many features, beside others
        return Stream(rows, block_rows, None if buckets else n_features, start_row)
    _refuse(f"{path}, read as {form or 'libsvm'}, but for csv, tsv, parquet, arrow", **of_tables)
    if form in (None, *TEXTS):
        _refuse(f"{path}, read as {form or 'libsvm'}; format (--format) names another", label=label)
        width = n_features if cache is False or hashed else None
        rows = _text(path, dtype, width, form, zero_based, n_jobs, weight, **own)
    else:
        _refuse(f"{path}, read as {form}, but for libsvm and vw", **own)
        rows = open_table(path, form, label, weight, header, dtype)
    if cache is not False and form in (None, *TEXTS):
        rows = CachedRows(rows, cache_of(path, cache))
    return _scaled(Stream(rows, block_rows, n_features, start_row), standardize, encoding)


open_stream.__doc__ += """
    A file goes by its ending: .csv and .tsv; .parquet, .arrow and .feather (the extra `arrow`);
    .npz with X (or the parts of a sparse matrix of scipy) and y; .npy, mapped; any other is a
    LIBSVM or Vowpal Wabbit text. Texts may be compressed (.gz, .bz2, .xz; .zst with the package
    backports.zstd). Memory is constant but for .npz. In memory, `source` is a data frame (pandas,
    polars, Arrow), a tuple (X, y) or (X, y, weight) of arrays or sparse matrices, or blocks of
    such: a list, another iterable, or a function that returns a new iterator for each pass.

    A bar in the first line of a text means Vowpal Wabbit's: one namespace, `index:value`. A `#`
    begins a comment, but not after a bar. What is wrong is a ValueError with file and line, or row
    and column; a file that is cut short a CorruptFile, one that is not there a FileNotFoundError.
    A missing value is an error.

    Parameters
    ----------
    source : path-like, data frame, tuple or iterable
        A file, the name of a data set of the registry, or rows in memory.
    block_rows : int
        Rows per block; the last block may have fewer.
    cache : bool or path-like
        Of a text (CSV, too): parse once, at the first use, into a binary file from which all passes
        read (`CachedRows`): beside the text, or in the folder given (12 bytes per nonzero). It is
        made anew if the bytes of the text or the options change, or if it is damaged. With False
        each pass parses.
    n_features : int, optional
        Width of every block; else the number of columns, or the largest index, from the cache or a
        scan that does not parse.
    folder, split, registry_path
        As in `fetch`, for a data set of the registry.
    dtype : float64 or float32
        Of the values; labels are float64, or words.
    start_row : int
        Begin here, to go on where an earlier run stopped; behind the last row there are no blocks.
    zero_based : bool
        Whether the smallest index is 0. It is never guessed; an unexpected 0 is an error.
    n_jobs : int
        Threads that parse a LIBSVM or Vowpal Wabbit text; the blocks are the same.
    format : str, optional
        libsvm, vw, csv, tsv, parquet, arrow, npy or npz, whatever the ending says.
    label : str, int or False
        Of a table: the column of labels, by name or by position (-1: the last); False: it has none,
        and labels are NaN. Of .npz the name of an array, "y" unless said. Labels of a table are
        words if the first one is.
    weight : str, int or True, optional
        The column, or the array, of weights; of a Vowpal Wabbit text True: the importance after the
        label, 1 where there is none. Blocks are then (X, y, weight).
    header : bool
        Whether the first line of a CSV or TSV text names its columns.
    word_labels : bool
        Of a LIBSVM or Vowpal Wabbit text: labels are words, of any kind without blanks.
    hashed : bool
        Of such a text: names are words. Each, after its namespace and a `^` if it has one, goes to
        the column abs(MurmurHash3) modulo `n_features`, as FeatureHasher(alternate_sign=False) of
        scikit-learn counts. Names that meet in one column add up: of d names a share of about
        d / n_features meets another one.
    ignore : sequence of str or int, optional
        Columns of a table, by name or position, that are no features.
    delimiter : str, optional
        Between the cells of a CSV or TSV text; else found in the first line: , ; tab or |.
    missing : {"refuse", "mean", "indicator"}
        What becomes of a missing value of a table; "indicator": the mean, and a feature beside it.
    categorical : {"onehot", "hash"}, optional
        Columns of words: a feature for each, as `city=Rome`, or `n_features` (4096) for all.
    standardize : bool
        Numbers of a table to mean 0 and variance 1; of other files without centering.
    encoding : Encoding, optional
        What the last three learned of another file: `encoding` of its stream, or of a model.
    columns : sequence of str, optional
        The features of a table that are read, in this order; the file need not have others.
    """


def _given(raw: Raw) -> dict[str, Any]:
    """The options of tables alone that are given; ValueError if one is none."""
    known = {"missing": ("refuse", "mean", "indicator"), "categorical": (None, "onehot", "hash")}
    for name, values in (known | {"standardize": (False, True)}).items():
        if (value := getattr(raw, name)) not in values:
            raise ValueError(f"{name} (--{name}): expected one of {values}, got {value!r}")
    given = {"ignore": raw.ignore, "columns": raw.columns, "categorical": raw.categorical}
    return given | {"missing": None if raw.missing == "refuse" else raw.missing}


def _scaled(stream, standardize, encoding):
    """A stream of numbers, of which the scales may be known or have to be learned."""
    if encoding and encoding.names:
        names = ", ".join(map(repr, encoding.names[:8]))
        raise ValueError(f"encoding: it is of a table with the columns {names}; give such a file")
    if standardize and not encoding:
        # In blocks of one size, as the last bits of a sum depend on it.
        encoding = of_scales(Stream(stream._source, 10_000, stream._n_features))
    stream.encoding = encoding
    return stream


def _refuse(what, **options):
    """ValueError for options that these rows do not know."""
    for name, value in options.items():
        if value is not None and value is not False:
            option = name.replace("_", "-")
            raise ValueError(f"{name}={value!r} (--{option}) is not for {what}")


def _text(path, dtype, n_features, form, zero_based, n_jobs, weight, word_labels, hashed):
    """The rows of a LIBSVM or Vowpal Wabbit text."""
    if not isinstance(hashed, bool | np.bool_):
        raise ValueError(f"hashed: expected True or False, got {hashed!r}")
    if hashed and n_features is None:
        raise ValueError(
            "hashed (--hashed): say to how many columns, such as n_features=2**20 "
            "(--n-features 1048576)"
        )
    if weight not in (None, False, True):
        raise ValueError(
            f"weight={weight!r} (--weight): a text names no columns; "
            "weight=True (--weight) takes its weights"
        )
    buckets = n_features if hashed else 0
    own = {"buckets": buckets, "worded": word_labels, "weighted": bool(weight)}
    rows = TextRows(path, dtype, n_features, form, zero_based, n_jobs, **own)
    if weight and not rows.is_vw:
        raise ValueError(
            f"weight={weight!r} (--weight): {rows.path} is a LIBSVM text, which has no weights"
        )
    return rows


def _in_memory(source, label, weight, dtype):
    """The rows of a frame, of arrays, or of blocks."""
    if is_frame(source):
        return frame_rows(source, label, weight, dtype)
    _refuse("(X, y) or blocks, which hold labels and weights", label=label, weight=weight)
    if isinstance(source, tuple):
        if len(source) not in (2, 3):
            raise ValueError(f"source: expected (X, y) or (X, y, weight), got {len(source)} parts")
        X, y, *weights = source
        return as_rows(X, y, dtype, *weights)
    if (
        isinstance(source, np.ndarray)
        or sp.issparse(source)
        or not (callable(source) or isinstance(source, Iterable))
    ):
        kind = type(source).__name__
        raise TypeError(f"source must be a file, a name, (X, y) or blocks of these, not {kind}")
    return BlockRows(source, dtype)


def _row_of(name, registry_path):
    rows = read_rows(registry_path)
    if name not in rows:
        raise FileNotFoundError(
            f"no file {os.path.abspath(name)}, and no data set {name!r}: the registry knows "
            f"{', '.join(rows)}"
        )
    return rows[name]


def _float_type(dtype):
    with suppress(TypeError):
        if np.dtype(dtype) in (np.float32, np.float64):
            return np.dtype(dtype)
    raise ValueError(f"dtype: expected float32 or float64, got {dtype!r}")


class Stream:
    """Blocks `(X_block, y_block)`, as often as it is iterated; made by `open_stream`.

    X_block is a CSR array with int32 indices, y_block an array; where rows have weights, these are
    a third. All may be written to: a change stays in the block. If columns have names, X_block has
    `feature_names`, which estimators learn and compare as they do those of a data frame.

    Attributes
    ----------
    n_rows, n_features : int
        Size of the whole source. Where neither given nor cached this costs a scan of it, once.
    feature_names : ndarray of str or None
        Names of the columns; None without.
    weighted : bool
        Whether a block holds weights, too.
    encoding : Encoding or None
        What a first look learned to make features of raw columns; `fit_stream` gives it to the
        model, whose file keeps it.
    numbering : str or None
        "from 1", "from 0" or "hashed" of a LIBSVM or Vowpal Wabbit text; None of others.
    n_columns : int or None
        Width of the blocks, if it is known without reading the rows.
    name : str
        The file that is read.
    block_rows, start_row : int
        Rows of a block (the last may have fewer), and the row that the first block begins with.
    cache_path : Path or None
        Where the cache lies or will lie; None without one.
    cache_bytes : int
        Its size; 0 as long as it is not made.

    Examples
    --------
    >>> import numpy as np
    >>> from ofslib.datasets import open_stream
    >>> stream = open_stream((np.eye(5), np.arange(5)), block_rows=2)
    >>> [X.shape for X, y in stream]
    [(2, 5), (2, 5), (1, 5)]
    """

    def __init__(self, source, block_rows: int, n_features: int | None = None, start_row: int = 0):
        width = 1 if n_features is None else n_features
        check_whole(block_rows=(block_rows, 1), start_row=(start_row, 0), n_features=(width, 1))
        if width > LARGEST:
            raise ValueError(f"n_features (--n-features): expected at most 2**31 - 1, got {width}")
        self.block_rows, self.start_row = block_rows, start_row
        names, columns = source.names, source.columns
        if names is not None and n_features not in (None, columns):
            given = f"n_features={n_features} (--n-features)"
            raise ValueError(f"{given}: there are {columns} columns with names")
        self.feature_names, self.weighted = names, source.weighted
        self.n_columns = n_features or columns
        self._source, self._n_features = source, n_features
        self.encoding = getattr(self._text, "encoding", None)
        self.reached = 0  # columns that the rows read so far need, also those of zeros

    @property
    def n_rows(self) -> int:
        """Number of rows of the whole file."""
        return self._source.size[0]

    @property
    def n_features(self) -> int:
        """Width of every block."""
        return self.n_columns or self._source.size[1]

    @property
    def cache_path(self) -> Path | None:
        """The file of the parsed rows."""
        return self._source.path if isinstance(self._source, CachedRows) else None

    @property
    def cache_bytes(self) -> int:
        """Size of the file of the parsed rows."""
        path = self.cache_path
        return path.stat().st_size if path and path.is_file() else 0

    @property
    def _text(self):
        return getattr(self._source, "text", self._source)

    @property
    def numbering(self) -> str | None:
        """How a LIBSVM or Vowpal Wabbit text has its columns: "from 1", "from 0" or "hashed"."""
        return getattr(self._text, "numbering", None)

    @property
    def name(self) -> str:
        """The file of the rows, as an error names it."""
        return str(getattr(self._text, "path", "the rows in memory"))

    @property
    def text_bytes(self) -> int:
        """Size of the file of the text, as it lies there; 0 for rows that are in memory."""
        path = getattr(self._text, "path", None)
        return path.stat().st_size if path else 0

    @property
    def _scales(self) -> Encoding | None:
        """The encoding, if it consists of scales, by which the values of all rows are divided."""
        return self.encoding if self.encoding and not self.encoding.names else None

    def __repr__(self):
        kept = ""
        if self.cache_path:
            kept = f", cache {self.cache_path} of {self.cache_bytes:,} bytes"
        begin = f"from row {self.start_row} on, {self.block_rows} at a time"
        return f"<Stream of {self.name} {begin}{kept}>"

    def identity(self) -> dict[str, Any]:
        """What tells these rows in these blocks from others, as a checkpoint keeps it.

        The bytes of a text are read for it, but not parsed; where it lies does not matter.
        """
        sizes = {name: getattr(self, name) for name in ("n_rows", "n_features")}
        cuts = {"block_rows": self.block_rows, "start_row": self.start_row}
        content = [*self._source.identity(), *([self._scales.digest()] if self._scales else [])]
        return {"content": content, **sizes, **cuts}

    def version(self) -> Any:
        """What changes if the rows of a file do; None of rows in memory."""
        return self._source.version()

    @contextmanager
    def watched(self, saw: Callable[[int, int], object]) -> Iterator[None]:
        """Meanwhile, `saw` is told how many bytes of the text and rows were read in this pass."""
        self._text.saw = saw
        try:
            yield
        finally:
            self._text.saw = None

    def skip(self, rows: int) -> "Stream":
        """The same stream without its first rows: to go on where an earlier run stopped.

        If there are no more rows than are left out, there are no blocks.
        """
        check_whole(rows=(rows, 0))
        later = Stream(self._source, self.block_rows, self._n_features, self.start_row + rows)
        later.encoding = self.encoding
        return later

    def first_look(self) -> FirstLook:
        """What is in each feature of a CSV, TSV, Parquet or Arrow file, whatever its cells hold."""
        return self._text.first_look()

    def __iter__(self) -> Iterator[tuple]:
        width, parts, missing = self.n_features, [], self.block_rows
        for piece in self._source.pieces(self.start_row, width):
            at, self.reached = 0, max(self.reached, piece.columns)
            while at < len(piece.y):
                part = piece.rows(at, at + missing)
                parts.append(part)
                at += len(part.y)
                missing -= len(part.y)
                if not missing:
                    yield self._block(parts, width)
                    missing = self.block_rows
        if parts:
            yield self._block(parts, width)

    def _block(self, parts, width):
        """One block; who keeps it must not keep the pieces in memory that it was cut from."""
        piece = joined(parts)
        parts.clear()
        X, y = as_matrix(piece, width)
        if self._scales:  # of features that were not there then it knows none
            scale = self._scales.scale
            known = X.indices < len(scale)
            X.data[known] /= scale[X.indices[known]]
        if self.feature_names is not None:
            X = NamedRows(X)
            X.feature_names = self.feature_names
        return (X, y) if piece.weight is None else (X, y, piece.weight)
