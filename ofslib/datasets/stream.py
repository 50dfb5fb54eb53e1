"""Files of any size as blocks of rows, as often as they are asked for, and their binary cache."""

import json
import os
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from ofslib._files import CorruptFile, whole_file
from ofslib.datasets.download import fetch
from ofslib.datasets.readers import load
from ofslib.datasets.registry import read_rows
from ofslib.datasets.text import TextRows


def open_stream(
    path_or_name: str | os.PathLike,
    block_rows: int = 10_000,
    cache: bool | str | os.PathLike = True,
    n_features: int | None = None,
    folder: str | os.PathLike = "resources",
    dtype: npt.DTypeLike = np.float64,
    start_row: int = 0,
    zero_based: bool = False,
    split: str = "train",
    registry_path: str | os.PathLike | None = None,
) -> "Stream":
    """Go through a LIBSVM or Vowpal Wabbit text in blocks of rows, in constant memory.

    The text may be compressed (.gz, .bz2, .xz). A bar in its first line means Vowpal Wabbit's: one
    namespace, `index:value`, no importance weights. While iterating, a wrong line is a ValueError
    with file and number, and a text that is cut short a CorruptFile.

    Parameters
    ----------
    path_or_name : path-like
        A text file, or a data set of the registry (one that is not a text is parts in memory).
    block_rows : int
        Rows per block; the last block may have fewer.
    cache : bool or path-like
        Parse once, at the first use, into a binary file from which all passes read:
        `<file>.ofscache` beside the text or in the folder given (12 bytes per nonzero). It is made
        anew if text or options change, or if it is damaged. With False each pass parses.
    n_features : int, optional
        Width of every block; else the largest index, from the cache or from one more pass.
    folder, split, registry_path
        As in `fetch`, for a data set of the registry.
    dtype : float64 or float32
        Of the values; labels are float64.
    start_row : int
        Begin here, to go on where an earlier run stopped.
    zero_based : bool
        Whether the smallest index is 0. It is never guessed; an unexpected 0 is an error.
    """
    path, dtype = Path(path_or_name), _float_type(dtype)
    if not path.is_file():
        name, rows = str(path_or_name), read_rows(registry_path)
        if name not in rows:
            known = ", ".join(rows)
            raise FileNotFoundError(f"no file and no data set {name!r}; the registry knows {known}")
        if rows[name]["reader"] not in ("libsvm", "vw"):
            arrays = vars(load(name, folder, split, registry_path))
            source = ArrayRows(arrays[f"X_{split}"], arrays[f"y_{split}"], dtype)
            return Stream(source, block_rows, n_features, start_row)
        [path] = fetch(name, folder, registry_path, split=split)
        n_features = n_features or rows[name]["n_features"]
    source = TextRows(path, zero_based, None if cache else n_features, dtype)
    if cache:
        beside = path.parent if cache is True else Path(cache)
        source = CachedRows(source, beside / f"{path.name}.ofscache")
    return Stream(source, block_rows, n_features, start_row)


def _float_type(dtype):
    if np.dtype(dtype) not in (np.float32, np.float64):
        raise ValueError(f"expected dtype float32 or float64, got {np.dtype(dtype)}")
    return np.dtype(dtype)


class Stream:
    """Blocks `(X_block, y_block)`, as often as it is iterated; made by `open_stream`.

    X_block is a CSR array with int32 indices, y_block an array.

    Attributes
    ----------
    n_rows, n_features : int
        Size of the whole source. Where neither given nor cached this costs a pass over it, once.
    block_rows, start_row : int
        Rows of a block (the last may have fewer), and the row that the first block begins with.
    """

    def __init__(self, source, block_rows: int, n_features: int | None = None, start_row: int = 0):
        for name, value, least in (("block_rows", block_rows, 1), ("start_row", start_row, 0)):
            if value < least:
                raise ValueError(f"{name}: expected at least {least}, got {value}")
        self.block_rows, self.start_row = block_rows, start_row
        self._source, self._n_features = source, n_features

    @property
    def n_rows(self) -> int:
        """Number of rows of the whole file."""
        return self._source.size[0]

    @property
    def n_features(self) -> int:
        """Width of every block."""
        return self._source.size[1] if self._n_features is None else self._n_features

    def skip(self, rows: int) -> "Stream":
        """The same stream without its first rows: to go on where an earlier run stopped."""
        return Stream(self._source, self.block_rows, self._n_features, self.start_row + rows)

    def __iter__(self) -> Iterator[tuple[sp.csr_array, np.ndarray]]:
        width, parts, missing = self.n_features, [], self.block_rows
        for X, y in self._source.pieces(self.start_row):
            if X.shape[1] > width:
                raise ValueError(f"expected n_features of at least {X.shape[1]}, got {width}")
            at = 0
            while at < len(y):
                block = X[at : at + missing]
                block.resize(block.shape[0], width)
                parts.append((block, y[at : at + missing]))
                at += missing
                missing -= block.shape[0]
                if not missing:
                    yield _joined(parts)
                    parts, missing = [], self.block_rows
        if parts:
            yield _joined(parts)


def _joined(parts):
    """One block with memory of its own: who keeps it must not keep the pieces it was cut from."""
    X, y = zip(*parts, strict=True)
    return X[0].copy() if len(X) == 1 else sp.vstack(X, format="csr"), np.concatenate(y)


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
        lengths = 12 * rows + 4 + (4 + self.text.dtype.itemsize) * nnz
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
        ends = np.cumsum([8 * rows, self.text.dtype.itemsize * nnz, 4 * (rows + 1)])
        y, data, pointer, column = np.split(raw, ends)
        X = data.view(self.text.dtype), column.view(np.int32), pointer.view(np.int32)
        return sp.csr_array(X, shape=(rows, columns)), y.view(np.float64)

    def _key(self):
        file, text = self.text.path.stat(), self.text
        options = [text.is_vw, bool(text.zero_based), text.dtype.str]
        return [self.VERSION, file.st_size, file.st_mtime_ns, *options]

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
        with whole_file(self.path) as file:
            for X, y in self.text.pieces():
                crc = 0
                for array in (y, X.data, X.indptr, X.indices):
                    file.write(array)
                    crc = zlib.crc32(array, crc)
                index.append([*X.shape, X.nnz, crc])
            raw = json.dumps([key, index]).encode()
            file.write(raw + self.TRAILER.pack(len(raw), zlib.crc32(raw)))
