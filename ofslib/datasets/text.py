"""Rows of LIBSVM and Vowpal Wabbit texts."""

import bz2
import csv
import gzip
import io
import lzma
import re
import zlib
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd
import scipy.sparse as sp

from ofslib._files import CorruptFile

# From 3.1 on pandas always rounds exactly, and warns when it is asked to.
_OLD_PANDAS = tuple(map(int, pd.__version__.split(".")[:2])) < (3, 1)
_EXACT = {"float_precision": "round_trip"} if _OLD_PANDAS else {}

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
    if len(colons) != len(stops) or not ((words[feature] < colons) & (colons < stops)).all():
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
    lowest = int(not zero_based)
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

    def __init__(self, path, zero_based, n_features, dtype):
        self.path, self.zero_based, self.dtype = Path(path), zero_based, np.dtype(dtype)
        self.n_features = n_features
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
        text = re.sub(rb"#[^\n]*", b"", text) if b"#" in text else text
        return _parse(text, self.zero_based, self.n_features, self.dtype)

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
