"""Rows of LIBSVM and Vowpal Wabbit texts."""

import hashlib
import os
import re
import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from numbers import Integral
from pathlib import Path
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from ofslib._files import CorruptFile
from ofslib.datasets.packed import open_text, unreadable
from ofslib.kernels.text import (
    HARD,
    INDEX,
    LABEL,
    LONG,
    LONGEST_NUMBER,
    PADDING,
    extent,
    parse_rows,
)

_CHUNK = 1 << 18  # bytes of text parsed at once: what a processor keeps at hand
_SHARED = 8  # times as much for several threads, which then rarely wait for each other
_LONGEST_LINE = 1 << 28
_LARGEST = np.iinfo(np.int32).max  # columns, and entries of a block
_TICK = 0.02  # seconds: file systems count time in steps, of 0.01 at most where they are local
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_NUMBER = re.compile(rb"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_WORD = re.compile(rb"[^ \t\r\f\v\n]*")
_UNLABELLED = re.compile(rb"\||[0-9]+:")  # what a row begins with that has features only


def state_of(found: os.stat_result) -> list[int]:
    """What changes when a file does: size, times of content and of any change, number."""
    return [found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino]


class Piece(NamedTuple):
    """Consecutive rows: the parts of a CSR matrix, the labels, and the weights if there are any."""

    data: np.ndarray
    indices: np.ndarray  # int32, ascending in each row
    indptr: np.ndarray  # int32; it may begin anywhere, `data` and `indices` with the first row
    y: np.ndarray  # float64, or words
    weight: np.ndarray | None = None  # float64
    zeros: int = 0  # columns up to the last 0 of a text, for it is not stored but counts

    @property
    def arrays(self) -> list[np.ndarray]:
        """Those that it has, in their order."""
        return [array for array in self[:5] if array is not None]

    @property
    def columns(self) -> int:
        """How many columns the rows need."""
        return max(self.zeros, int(self.indices.max(initial=-1)) + 1)

    def without_zeros(self) -> "Piece":
        """The same rows, with values only that are not 0."""
        kept = self.data != 0
        if kept.all():
            return self
        ends = np.zeros(len(kept) + 1, np.int32)
        np.cumsum(kept, out=ends[1:])
        data, indices, indptr = self.data[kept], self.indices[kept], ends[self.indptr]
        return self._replace(data=data, indices=indices, indptr=indptr, zeros=self.columns)

    def rows(self, start: int, stop: int) -> "Piece":
        """Some of the rows, in the same memory."""
        ends = self.indptr[start : stop + 1]
        entries = slice(ends[0] - self.indptr[0], ends[-1] - self.indptr[0])
        weight = None if self.weight is None else self.weight[start:stop]
        parts = self.data[entries], self.indices[entries], ends, self.y[start:stop], weight
        return Piece(*parts, self.zeros)


def joined(pieces: list[Piece]) -> Piece:
    """All rows of some pieces, in memory of their own."""
    counts = [np.diff(p.indptr) for p in pieces]
    indptr = np.concatenate(([0], np.cumsum(np.concatenate(counts), dtype=np.int64)))
    if indptr[-1] > _LARGEST:
        raise ValueError(
            f"a block has {indptr[-1]} entries, more than an int32 counts: read fewer rows at once "
            "by block_rows (--block-rows)"
        )
    *columns, zeros = zip(*pieces, strict=True)
    data, indices, _, y, weight = (a[0] if a[0] is None else np.concatenate(a) for a in columns)
    return Piece(data, indices, indptr.astype(np.int32), y, weight, max(zeros))


def as_matrix(piece: Piece, width: int) -> tuple[sp.csr_array, np.ndarray]:
    """The rows as `(X, y)`."""
    parts = (piece.data, piece.indices, piece.indptr - piece.indptr[0])
    return sp.csr_array(parts, shape=(len(piece.y), width)), piece.y


def check_whole(**values: tuple[Integral, int]) -> None:
    """ValueError unless each is a whole number from the least that stands beside it."""
    for name, (value, least) in values.items():
        if not isinstance(value, Integral) or value < least:
            raise ValueError(f"{name}: expected a whole number from {least}, got {value!r}")


class _Wrong(Exception):
    """What is wrong with a text, and the number of lines before."""

    def __init__(self, reason, line):
        self.reason, self.line = reason, line


class FileRows:
    """Rows of a file, read anew in each pass; what else `Stream` asks for stands in `formats`."""

    shared = False  # blocks must not be views, or they would keep whole pieces
    names: np.ndarray | None = None  # of the columns
    columns: int | None = None  # how many, where this is known without reading the rows
    weighted = worded = False  # whether rows have weights, and whether labels are words

    def __init__(self, path, dtype):
        self.path, self.dtype = Path(path), np.dtype(dtype)
        # Told the bytes of the file read so far, and the rows
        self.saw: Callable[[int, int], object] | None = None
        self._at = 0
        self._content: tuple[list[int], str] = ([], "")

    def content(self) -> tuple[list[int], str]:
        """State of the file and digest of its bytes, read anew only if its state has changed."""
        state = state_of(self.path.stat())
        if self._content[0] != state:
            # A change within the same tick as the last one would not show in the state.
            time.sleep(min(max(0, state[2] / 1e9 + _TICK - time.time()), _TICK))
            with open(self.path, "rb") as file:
                self._content = (state, hashlib.file_digest(file, "sha256").hexdigest())
        return self._content

    @cached_property
    def size(self):
        """Number of rows and of columns: one pass over the file."""
        rows = columns = 0
        for piece in self.pieces():
            rows, columns = rows + len(piece.y), max(columns, piece.columns)
        return rows, self.columns or columns

    def pieces(self, start: int = 0, width: int | None = None) -> Iterator[Piece]:
        """The rows from `start` on; an index beyond the width is an error."""
        raise NotImplementedError

    def options(self) -> list:
        """What else the rows depend on."""
        raise NotImplementedError

    def identity(self) -> list:
        """What tells these rows from others."""
        return [self.content()[1], *self.options()]

    def _tell(self, rows):
        if self.saw:
            self.saw(self._at, rows)


class TextRows(FileRows):
    """The rows of a text file, parsed anew in each pass, in pieces of about `_CHUNK` bytes."""

    def __init__(self, path, zero_based, n_features, dtype, n_jobs=1):
        super().__init__(path, dtype)
        self.zero_based, self.n_features, self.n_jobs = zero_based, n_features, n_jobs
        check_whole(n_jobs=(n_jobs, 1))
        if not isinstance(zero_based, bool | np.bool_):
            raise ValueError(f"zero_based: expected True or False, got {zero_based!r}")
        with open_text(path) as file:
            buffer = bytearray(1 << 16)
            size = self._read(file, buffer)
        begin = bytes(buffer[:size]).removeprefix(_BYTE_ORDER_MARK).split(b"\n")
        lines = (line.split(b"#")[0] for line in begin)
        self.is_vw = b"|" in next(filter(bytes.strip, lines), b"")

    @property
    def numbering(self) -> str:
        """How the text has its columns."""
        return "from 0" if self.zero_based else "from 1"

    def options(self) -> list:
        """What else the rows depend on."""
        return [self.is_vw, bool(self.zero_based), self.dtype.str]

    @cached_property
    def size(self):
        """Number of rows and of columns, without parsing: what is wrong is said when it is read."""
        rows, largest = 0, -1
        for more, index in self._each(self._extent):
            rows, largest = rows + more, max(largest, index)
            self._tell(rows)
        columns = min(largest + int(self.zero_based), _LARGEST)
        return rows, max(0, columns)

    @np.errstate(over="ignore")  # of kernels that are not compiled
    def _extent(self, chunk):
        text, stop = chunk
        return extent(np.frombuffer(text, np.uint8), stop, self.is_vw)

    def pieces(self, start: int = 0, width: int | None = None) -> Iterator[Piece]:
        """The rows from `start` on; an index beyond the width is an error."""
        before, rows, width = 0, 0, self.n_features or width
        for piece, lines in self._each(lambda chunk: self._parse(chunk, width)):
            if isinstance(piece, _Wrong):
                raise ValueError(f"{self.path}, line {before + lines + 1}: {piece.reason}")
            rows += len(piece.y)
            self._tell(rows)
            if start < len(piece.y):
                yield piece.rows(start, len(piece.y)) if start else piece
            start = max(0, start - len(piece.y))
            before += lines

    def _each(self, function):
        """`function` of each chunk, in their order, in `n_jobs` threads."""
        if self.n_jobs == 1:
            yield from map(function, self._chunks())
            return
        with ThreadPoolExecutor(self.n_jobs) as pool:
            ahead = deque()
            for text in self._chunks():
                ahead.append(pool.submit(function, text))
                if len(ahead) > 2 * self.n_jobs:
                    yield ahead.popleft().result()
            while ahead:
                yield ahead.popleft().result()

    def _chunks(self):
        """The text in pieces of whole lines, the last one ended if it is not.

        Each is a buffer, used again when 2 `n_jobs` + 1 others were given, and where the lines end.
        """
        buffers, rest, at, piece = deque([bytearray()] * (2 * self.n_jobs + 2)), b"", 0, 1
        size = _CHUNK if self.n_jobs == 1 else _SHARED * _CHUNK
        with open(self.path, "rb") as packed, open_text(self.path, packed) as file:
            while piece:
                begin, room = len(rest), len(rest) + max(len(rest), size)
                if len(buffers[0]) < room + PADDING:
                    buffers[0] = bytearray(room + PADDING)
                buffer = buffers[0]
                buffer[:begin] = rest
                piece = self._read(file, memoryview(buffer)[begin:room])
                self._at = packed.tell()
                stop = begin + piece
                if at == 0 and buffer.startswith(_BYTE_ORDER_MARK):
                    buffer[: len(_BYTE_ORDER_MARK)] = b"   "
                at += piece
                if not piece and begin:
                    buffer[begin] = 10
                    stop += 1
                end = buffer.rfind(b"\n", 0, stop) + 1
                rest = bytes(memoryview(buffer)[end:stop])
                if len(rest) > _LONGEST_LINE:
                    raise ValueError(
                        f"{self.path}, line {1 + self._lines_before(at)}: expected at most "
                        f"{_LONGEST_LINE} bytes in a line, got more"
                    )
                if end:
                    buffers.rotate(-1)
                    yield buffer, end

    def _lines_before(self, stop):
        lines = 0
        with open_text(self.path) as file:
            while stop > 0 and (piece := file.read(min(_CHUNK, stop))):
                lines, stop = lines + piece.count(b"\n"), stop - len(piece)
        return lines

    def _read(self, file, buffer):
        try:
            return file.readinto(buffer)
        except unreadable() as error:
            message = f"{self.path}: expected a whole file, got an unreadable one ({error})"
            raise CorruptFile(f"{message}; get it again") from error

    @np.errstate(over="ignore")  # of kernels that are not compiled, and of what is looked for below
    def _parse(self, chunk, width):
        """The rows and the number of lines; or what is wrong and the number of lines before."""
        lowest = int(not self.zero_based)
        highest = min(width or np.inf, _LARGEST) + lowest - 1
        limits = np.uint64(lowest), np.uint64(highest)
        text, stop = chunk
        array = np.frombuffer(text, np.uint8)
        n, nnz, ascend, rows, (fault, begin, line) = self._kernel(array, stop, *limits)
        try:
            if fault > HARD:
                if not self.n_features:  # the width is what another pass has found
                    highest = _LARGEST + lowest - 1
                raise _Wrong(_complaint(text, fault, begin, self, lowest, highest), line)
            for place, begin in rows.hard[1 : rows.hard[0, 0] + 1].tolist():
                number = float(_NUMBER.match(text, begin)[0])
                (rows.data if place >= 0 else rows.y)[place if place >= 0 else -1 - place] = number
            data = rows.data[:nnz].astype(self.dtype, copy=False)
            piece = Piece(data, rows.indices[:nnz], rows.indptr[: n + 1], rows.y[:n])
            if rows.hard[0, 0] or self.dtype != np.float64:
                self._check_finite(piece, text)
            piece = self._finished(piece, ascend, rows, text).without_zeros()
        except _Wrong as wrong:
            begin = text.split(b"\n", wrong.line + 1)[wrong.line][:50]
            said = f"The line begins {begin.decode(errors='replace').strip()!r}"
            return _Wrong(f"{wrong.reason}. {said}: correct it or leave it out", 0), wrong.line
        return piece, line

    def _kernel(self, text, stop, lowest, highest):
        return parse_rows(text, stop, self.is_vw, lowest, highest)

    def _finished(self, piece, ascend, rows, text):
        """A piece as its arrays say, with the entries of each row in order."""
        if not ascend:
            _sort(piece, text)
        return piece

    def _check_finite(self, piece, text):
        for values, of in ((piece.data, self.dtype), (piece.y, np.dtype(np.float64))):
            wrong = np.flatnonzero(~np.isfinite(values))
            if len(wrong):
                row = np.searchsorted(piece.indptr, wrong[0], "right") - 1
                row = row if values is piece.data else wrong[0]
                most = f"{np.finfo(of).max:.2g}"
                reason = f"a label or value is not a finite number of {of} (at most {most})"
                raise _Wrong(reason, _line_of(text, row))


def _sort(piece, text):
    """Bring the entries of each row in order, in place."""
    parts = (piece.data, piece.indices, piece.indptr)
    width = int(piece.indices.max(initial=0)) + 1
    sorted_rows = sp.csr_array(parts, shape=(len(piece.y), width))
    sorted_rows.sort_indices()
    # Of a part of a larger array scipy makes a copy.
    piece.data[:], piece.indices[:] = sorted_rows.data, sorted_rows.indices
    twice = np.flatnonzero(piece.indices[1:] == piece.indices[:-1]) + 1
    twice = twice[~np.isin(twice, piece.indptr)]
    if len(twice):
        row = np.searchsorted(piece.indptr, twice[0], "right") - 1
        raise _Wrong("a feature index occurs twice in the row", _line_of(text, row))


def _line_of(text, row):
    """The number, from 0, of the line on which a row stands."""
    lines = enumerate(text.split(b"\n"))
    return [number for number, line in lines if line.split(b"#")[0].strip()][row]


def _complaint(text, fault, begin, rows, lowest, highest):
    whole = _WORD.match(text, begin)[0]
    word = whole[:50].decode(errors="replace")
    rest = text[begin : text.index(b"\n", begin)].partition(b"#")[0]
    late = b"|" in rest and not rows.is_vw  # a bar, and the first line was not seen to have one
    if fault == LABEL and _UNLABELLED.match(whole):
        return "the row has no label: write one in front, 0 if it is to be predicted"
    if fault == LABEL:
        hint = "format (--format vw)" if late else "word_labels (--word-labels)"
        return f"the label {word!r} is not a number; see {hint}"
    if fault == LONG:
        return f"a number of {word[:20]!r}... is longer than {LONGEST_NUMBER} characters"
    if fault == INDEX:
        index = word.partition(":")[0]
        said = f"feature index {index} is not a whole number from {lowest} to {highest}"
        if int(index) < lowest:
            return f"{said}; see zero_based (--zero-based)"
        return said + "; see n_features (--n-features)" * (highest < _LARGEST + lowest - 1)
    if word.startswith("qid:"):
        return f"{word!r} names a query of a ranking, which is not read"
    if late:
        return f"{word!r} is not `index:value` with finite numbers; see format (--format vw)"
    return f"{word!r} {_about_feature(word, rows)}"


def _about_feature(word, rows):
    """What is wrong with a word where a feature is expected, and which option would take it."""
    name, colon, _ = word.partition(":")
    said, hashed = "is not `index:value` with finite numbers", getattr(rows, "buckets", 0)
    if rows.is_vw and word.startswith("|"):
        if colon:
            return "is a namespace with a weight, which is not read"
        return said if hashed else "is a further namespace; see hashed (--hashed)"
    if (
        rows.is_vw
        and word.startswith("'")
        and not (colon or hashed or rows.worded or rows.weighted)
    ):
        return "is a tag, which is left out only with weight (--weight)"
    if rows.is_vw and not colon and _NUMBER.match(name.encode()):
        if rows.weighted:
            return "is an initial prediction, which is not read"
        return f"{said}; see weight (--weight)"
    return said if hashed or _NUMBER.fullmatch(name.encode()) else f"{said}; see hashed (--hashed)"
