"""Rows of LIBSVM and Vowpal Wabbit texts of any size, in blocks, with a binary cache."""

import bz2
import csv
import gzip
import io
import json
import lzma
import os
import re
import struct
import uuid
import zlib
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd
import scipy.sparse as sp

# From 3.1 on pandas always rounds exactly, and warns when it is asked to.
_OLD_PANDAS = tuple(map(int, pd.__version__.split(".")[:2])) < (3, 1)
_EXACT = {"float_precision": "round_trip"} if _OLD_PANDAS else {}


class CorruptFile(Exception):
    """A file is not the one that was asked for: wrong size or checksum, or cut short."""


@contextmanager
def whole_or_nothing(target):
    """Give a temporary name that becomes `target` if all goes well, and vanishes otherwise."""
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_name(f".{target.name}.{uuid.uuid4().hex[:12]}.part")
    try:
        yield part
        with open(part, "rb+") as file:
            os.fsync(file.fileno())
        os.replace(part, target)
    finally:
        part.unlink(missing_ok=True)


# -------------------------------------------------- LIBSVM and Vowpal Wabbit lines

_CHUNK = 8 << 20  # bytes of text parsed at once; memory is a small multiple of it
_TO_LINES = bytes.maketrans(b" \t\r\f\v:", b"\n" * 6)
_NUMBER = rb"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?"


def open_text(path):
    """Open a text for reading bytes, unpacked if it is compressed."""
    openers = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
    return openers.get(Path(path).suffix, open)(path, "rb")


def numbers_of(text):
    """All numbers of a text, blanks or colons between, as a float64 array.

    pandas' C parser is several times faster than scikit-learn's or numpy's, and as exact.
    """
    text = io.BytesIO(text.translate(_TO_LINES))
    options = {"header": None, "names": ["number"], "sep": "\t", "quoting": csv.QUOTE_NONE}
    table = pd.read_csv(text, dtype=np.float64, na_filter=False, **options, **_EXACT)
    return table["number"].to_numpy()


def _structure(text):
    """Which words are features (the others are labels), and which word begins each row."""
    byte = np.frombuffer(text, np.uint8)
    blank = byte <= ord(" ")
    words = np.flatnonzero(~blank & np.concatenate(([True], blank[:-1])))
    ends = np.searchsorted(words, np.flatnonzero(byte == ord("\n")))
    starts = np.concatenate(([0], ends[:-1]))
    labels = starts[starts < ends]  # an empty line has none
    feature = np.ones(len(words), bool)
    feature[labels] = False
    colons = np.flatnonzero(byte == ord(":"))
    stops = np.append(words[1:], byte.size)[feature]
    each_one = len(colons) == len(stops)
    if not (each_one and (colons > words[feature]).all() and (colons < stops).all()):
        raise ValueError("a feature is not `index:value`")
    return feature, labels


def _parse(text, zero_based, n_features, dtype):
    """Whole lines as (X, y); without `n_features` X is as wide as its largest index needs."""
    feature, labels = _structure(text)
    numbers = np.zeros(0) if text.isspace() else numbers_of(text)
    if len(numbers) != len(feature) + feature.sum() or not np.isfinite(numbers).all():
        raise ValueError("a label or value is not a finite number")
    row = np.arange(len(labels))
    first = 2 * labels - row  # a feature is two numbers, a label one
    index, value = np.delete(numbers, first).reshape(-1, 2).T
    lowest = 0 if zero_based else 1
    highest = (n_features or np.iinfo(np.int32).max) + lowest - 1
    wrong = (index < lowest) | (index > highest) | (index != np.floor(index))
    if wrong.any():
        raise ValueError(
            f"feature index {index[wrong][0]:.15g} is not a whole number from {lowest} to "
            f"{highest}; see zero_based and n_features"
        )
    column = (index - lowest).astype(np.int32)
    pointer = np.append(labels - row, len(column)).astype(np.int32)
    width = n_features or int(column.max(initial=-1)) + 1
    X = sp.csr_array((value.astype(dtype), column, pointer), shape=(len(labels), width))
    X.sort_indices()
    if not X.has_canonical_format:
        raise ValueError("a feature index occurs twice in the row")
    return X, numbers[first]


def _without_namespace(line):
    label, _, rest = line.partition(b"|")
    name, _, features = rest.partition(b" ")
    # A bar that stays (a second namespace, or one with a weight) is found by the parser.
    return line if b":" in name else b"%s %s\n" % (label, features)


def _complaint(line):
    label, *features = line.split(b"#")[0].split() or [b""]
    if not re.fullmatch(_NUMBER, label):
        return f"the label {label.decode(errors='replace')!r} is not a number"
    for word in features:
        if not re.fullmatch(rb"\d+:" + _NUMBER, word):
            return f"{word.decode(errors='replace')!r} is not `index:value`"


class TextRows:
    """The rows of a text file, parsed anew in each pass, in pieces of about `_CHUNK` bytes."""

    def __init__(self, path, *options):
        self.path, self.options = Path(path), options
        with open_text(path) as file:
            begin = (line.split(b"#")[0] for line in self._lines(file, 1 << 16))
            self.is_vw = b"|" in next(filter(bytes.strip, begin), b"")

    @cached_property
    def size(self):
        """Number of rows and of columns."""
        shapes = np.array([(0, 0)] + [X.shape for X, _ in self.pieces()])
        return int(shapes[:, 0].sum()), int(shapes[:, 1].max())

    def pieces(self, start=0):
        """The rows from `start` on, as pairs (X, y) of any length."""
        before = 0
        with open_text(self.path) as file:
            while lines := self._lines(file, _CHUNK):
                try:
                    X, y = self._rows(lines)
                except ValueError:
                    raise self._located(lines, before) from None
                if start < len(y):
                    yield (X[start:], y[start:]) if start else (X, y)
                start = max(0, start - len(y))
                before += len(lines)

    def _lines(self, file, size):
        try:
            return file.readlines(size)
        except (EOFError, OSError, zlib.error, lzma.LZMAError) as error:
            message = f"{self.path}: expected a whole file, got an unreadable one ({error})"
            raise CorruptFile(f"{message}; get it again") from error

    def _rows(self, lines):
        text = b"".join([*(map(_without_namespace, lines) if self.is_vw else lines), b"\n"])
        return _parse(re.sub(rb"#[^\n]*", b"", text) if b"#" in text else text, *self.options)

    def _located(self, lines, before):
        """The error of the first wrong line, found by halving."""
        good, bad, reason = 0, len(lines), ""
        while good < bad - 1 or not reason:
            middle = max(good + 1, (good + bad) // 2)
            try:
                self._rows(lines[good:middle])
                good = middle
            except ValueError as error:
                bad, reason = middle, str(error)
        line = _without_namespace(lines[good]) if self.is_vw else lines[good]
        return ValueError(
            f"{self.path}, line {before + bad}: {_complaint(line) or reason}. The line begins "
            f"{line[:50].decode(errors='replace').strip()!r}: correct it or leave it out"
        )


# -------------------------------------------------- blocks of rows


class ArrayRows:
    """Rows that are in memory."""

    def __init__(self, X, y, dtype):
        self.X, self.y = sp.csr_array(X, dtype=dtype), y.astype(np.float64)
        self.size = self.X.shape

    def pieces(self, start=0):
        """The rows from `start` on, as one pair (X, y)."""
        yield self.X[start:], self.y[start:]


class CachedRows:
    """The parsed rows of a text file in one binary file, made whole or not at all.

    The arrays y, data, indptr, indices of one piece after the other; then, as JSON, what the file
    was made from and each piece's rows, columns, nonzeros and CRC; then that JSON's length and CRC.
    """

    TRAILER, VERSION = struct.Struct("<II"), 1

    def __init__(self, text, path):
        self.text, self.path = text, path
        self.dtype = np.dtype(text.options[-1])

    @property
    def size(self):
        """Number of rows and of columns."""
        file, index = self._ready()
        file.close()
        return int(index[:, 0].sum()), int(index[:, 1].max(initial=0))

    def pieces(self, start=0, rebuilt=False):
        """The rows from `start` on, as pairs (X, y) of any length."""
        file, index = self._ready()
        rows, columns, nnz, crc = index.T
        lengths = 12 * rows + 4 + (4 + self.dtype.itemsize) * nnz
        with file:
            for i in range(np.searchsorted(rows.cumsum(), start, side="right"), len(rows)):
                before = rows[:i].sum()
                file.seek(lengths[:i].sum())
                raw = np.fromfile(file, np.uint8, lengths[i])
                if zlib.crc32(raw) != crc[i]:
                    break
                X, y = self._arrays(raw, rows[i], columns[i], nnz[i])
                skip = max(0, start - before)
                yield (X[skip:], y[skip:]) if skip else (X, y)
            else:
                return
        if rebuilt:
            raise CorruptFile(f"{self.path}: damaged as soon as written; is the disk sound?")
        self._build()
        yield from self.pieces(max(start, before), rebuilt=True)

    def _arrays(self, raw, rows, columns, nnz):
        ends = np.cumsum([8 * rows, self.dtype.itemsize * nnz, 4 * (rows + 1)])
        y, data, pointer, column = np.split(raw, ends)
        X = data.view(self.dtype), column.view(np.int32), pointer.view(np.int32)
        return sp.csr_array(X, shape=(rows, columns)), y.view(np.float64)

    def _key(self):
        about, zero_based = self.text.path.stat(), bool(self.text.options[0])
        made_from = [about.st_size, about.st_mtime_ns, self.text.is_vw, zero_based, self.dtype.str]
        return [self.VERSION, *made_from]

    def _ready(self):
        """The open file and what it says of its pieces; made first if need be."""
        for build in (True, False):
            if self.path.is_file():
                file = open(self.path, "rb")
                if (index := self._index(file)) is not None:
                    return file, index
                file.close()
            if build:
                self._build()
        raise CorruptFile(f"{self.path}: the text it is made from changes; wait until it is whole")

    def _index(self, file):
        try:
            file.seek(-self.TRAILER.size, os.SEEK_END)
            length, crc = self.TRAILER.unpack(file.read())
            file.seek(-self.TRAILER.size - length, os.SEEK_END)
            raw = file.read(length)
            key, index = json.loads(raw) if zlib.crc32(raw) == crc else (None, None)
        except (OSError, ValueError):  # too short, or not ours
            return None
        return np.array(index, np.int64).reshape(-1, 4) if key == self._key() else None

    def _build(self):
        key, index = self._key(), []
        with whole_or_nothing(self.path) as part, open(part, "wb") as file:
            for X, y in self.text.pieces():
                crc = 0
                for array in (y, X.data, X.indptr, X.indices):
                    file.write(array)
                    crc = zlib.crc32(array, crc)
                index.append([*X.shape, X.nnz, crc])
            raw = json.dumps([key, index]).encode()
            file.write(raw + self.TRAILER.pack(len(raw), zlib.crc32(raw)))


class Stream:
    """Blocks of rows `(X_block, y_block)`, as often as it is iterated; made by `open_stream`.

    Attributes
    ----------
    n_rows, n_features : int
        Size of the whole source. Where neither given nor cached this costs a pass over it, once.
    block_rows, start_row : int
        Rows of a block (the last may have fewer), and the row that the first block begins with.
    """

    def __init__(self, source, block_rows, n_features=None, start_row=0):
        for name, value, least in (("block_rows", block_rows, 1), ("start_row", start_row, 0)):
            if value < least:
                raise ValueError(f"{name}: expected at least {least}, got {value}")
        self.block_rows, self.start_row = block_rows, start_row
        self._source, self._n_features = source, n_features

    @property
    def n_rows(self):
        """Number of rows of the whole file."""
        return self._source.size[0]

    @property
    def n_features(self):
        """Width of every block."""
        return self._source.size[1] if self._n_features is None else self._n_features

    def skip(self, rows):
        """The same stream without its first rows: to go on where an earlier run stopped."""
        return Stream(self._source, self.block_rows, self._n_features, self.start_row + rows)

    def __iter__(self):
        width, held, missing = self.n_features, [], self.block_rows
        for X, y in self._source.pieces(self.start_row):
            if X.shape[1] > width:
                raise ValueError(f"expected n_features of at least {X.shape[1]}, got {width}")
            at = 0
            while at < len(y):
                block = X[at : at + missing]
                block.resize(block.shape[0], width)
                held.append((block, y[at : at + missing]))
                at += missing
                missing -= block.shape[0]
                if not missing:
                    yield _joined(held)
                    held, missing = [], self.block_rows
        if held:
            yield _joined(held)


def _joined(held):
    """One block with memory of its own: who keeps it must not keep the pieces it was cut from."""
    X, y = zip(*held, strict=True)
    return X[0].copy() if len(X) == 1 else sp.vstack(X, format="csr"), np.concatenate(y)
