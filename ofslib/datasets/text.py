"""Rows of LIBSVM and Vowpal Wabbit texts."""

import re
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property

import numpy as np

from ofslib.datasets.compressed import open_text, whole
from ofslib.datasets.pieces import (
    LARGEST,
    LONGEST_LABEL,
    FileRows,
    Piece,
    Rows,
    as_matrix,
    check_whole,
)  # fmt: skip
from ofslib.kernels.numbers import HARD, INDEX, LABEL, LONG, LONGEST_NUMBER
from ofslib.kernels.text import PADDING, extent, parse_rows

_CHUNK = 1 << 18  # bytes of text parsed at once: what a processor keeps at hand
_SHARED = 8  # times as much for several threads, which then rarely wait for each other
_LONGEST_LINE = 1 << 28
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_NUMBER = re.compile(rb"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_WORD = re.compile(rb"[^ \t\r\f\v\n]*")
_SEVERAL = re.compile(rb"[+-]?[0-9.]+(,[+-]?[0-9.]+)+")  # labels, or a number with a comma
_UNLABELLED = re.compile(rb"\||[0-9]+:")  # what a row begins with that has features only


class _Wrong(Exception):
    """What is wrong with a text, and the number of lines before."""

    def __init__(self, reason, line):
        self.reason, self.line = reason, line


class TextRows(FileRows):
    """The rows of a text file, parsed anew in each pass, in pieces of about `_CHUNK` bytes.

    `form` is "libsvm" or "vw"; None: "vw" if the first line has a bar. With `buckets` names are
    hashed to so many columns (`_bucket` of the kernels), and values of names that meet in one
    column add up. With `worded` labels are words, with `weighted` rows have weights.
    """

    def __init__(
        self, path, dtype, n_features=None, form=None, zero_based=False, n_jobs=1,
        buckets=0, worded=False, weighted=False,
    ):  # fmt: skip
        super().__init__(path, dtype)
        self.zero_based, self.n_features, self.n_jobs = zero_based, n_features, n_jobs
        self.buckets, self.worded, self.weighted = buckets, worded, weighted
        self.columns = buckets or None
        check_whole(n_jobs=(n_jobs, 1))
        for name, value in {"zero_based": zero_based, "word_labels": worded}.items():
            if not isinstance(value, bool | np.bool_):
                raise ValueError(f"{name}: expected True or False, got {value!r}")
        with open_text(path) as file:
            begin = self._read(file, 1 << 16).removeprefix(_BYTE_ORDER_MARK)
        lines = (line.split(b"#")[0] for line in begin.split(b"\n"))
        self.is_vw = form == "vw" if form else b"|" in next(filter(bytes.strip, lines), b"")

    @property
    def numbering(self) -> str:
        """How the text has its columns."""
        return "hashed" if self.buckets else "from 0" if self.zero_based else "from 1"

    def options(self) -> list:
        """What else the rows depend on."""
        own = [self.buckets, bool(self.worded), bool(self.weighted)]
        own = own if any(own) else []
        return [bool(self.is_vw), bool(self.zero_based), self.dtype.str, *own]

    @cached_property
    def size(self):
        """Number of rows and of columns, if possible without parsing; faults show when it is."""
        if self.buckets or self.worded or self.weighted:
            return Rows.size.func(self)
        rows, largest = 0, -1
        for more, index in self._each(self._extent):
            rows, largest = rows + more, max(largest, index)
            self._tell(rows)
        return rows, max(0, min(largest + int(self.zero_based), LARGEST))

    @np.errstate(over="ignore")  # of kernels that are not compiled
    def _extent(self, text):
        text = text or b"\n" * (PADDING + 1)
        return extent(np.frombuffer(text, np.uint8), len(text) - PADDING, self.is_vw)

    def pieces(self, start=0, width=None):
        """The rows from `start` on; an index beyond the width is an error."""
        before, rows, width = 0, 0, self.n_features or width
        for piece, lines in self._each(lambda text: self._parse(text, width)):
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
            yield from map(function, self._chunks(_CHUNK))
            return
        with ThreadPoolExecutor(self.n_jobs) as pool:
            ahead = deque()
            for text in self._chunks(_SHARED * _CHUNK):
                ahead.append(pool.submit(function, text))
                if len(ahead) > 2 * self.n_jobs:
                    yield ahead.popleft().result()
            while ahead:
                yield ahead.popleft().result()

    def _chunks(self, size):
        """The text in chunks of whole lines, each with its padding; None for a line too long."""
        held, more, first = [], b"\n", True  # the begin of a line, and what follows
        with open(self.path, "rb") as compressed, open_text(self.path, compressed) as file:
            while more:
                more = self._read(file, size)
                self._at = compressed.tell()
                end = more.rfind(b"\n") + 1
                if more and not end:
                    held.append(more)
                    if sum(map(len, held)) > _LONGEST_LINE:
                        yield None
                        return
                    continue
                if not more and any(held):
                    held.append(b"\n")
                text = bytearray().join([*held, memoryview(more)[:end], bytes(PADDING)])
                held = [more[end:]]
                if first and text.startswith(_BYTE_ORDER_MARK):
                    text[: len(_BYTE_ORDER_MARK)] = b"   "
                if len(text) > PADDING:
                    first = False
                    yield text

    def _read(self, file, size):
        with whole(self.path):
            return file.read(size)

    @np.errstate(over="ignore")  # of kernels that are not compiled, and of what is looked for below
    def _parse(self, text, width):
        """The rows and the number of lines; or what is wrong and the number of lines before."""
        if text is None:
            return _Wrong(f"expected at most {_LONGEST_LINE} bytes in a line, got more", 0), 0
        lowest = int(not self.zero_based)
        highest = LARGEST + lowest - 1 if self.buckets or not width else width + lowest - 1
        limits = np.uint64(lowest), np.uint64(highest)
        own = np.uint64(self.buckets), bool(self.worded), bool(self.weighted)
        array, stop = np.frombuffer(text, np.uint8), len(text) - PADDING
        n, nnz, ascend, rows, (fault, begin, line) = parse_rows(
            array, stop, bool(self.is_vw), *limits, *own
        )
        try:
            if fault > HARD:
                if not self.n_features:  # the width is what another pass has found
                    highest = LARGEST + lowest - 1
                raise _Wrong(_complaint(text, fault, begin, self, lowest, highest), line)
            _read_hard(text, rows)
            piece = Piece(
                rows.data[:nnz].astype(self.dtype, copy=False),
                rows.indices[:nnz],
                rows.indptr[: n + 1],
                _decoded(rows.labels[:n], text) if self.worded else rows.y[:n],
                rows.weights[:n].copy() if self.weighted else None,
                int(rows.indices[:nnz].max(initial=-1)) + 1,
            )
            piece = piece if ascend else self._sorted(piece, text)
            # What else the kernel gives is finite.
            if rows.hard[0, 0] or self.dtype != np.float64 or self.buckets or self.weighted:
                self._check(piece, text)
        except _Wrong as wrong:
            begin = text.split(b"\n", wrong.line + 1)[wrong.line][:50]
            said = f"The line begins {begin.decode(errors='replace').strip()!r}"
            return _Wrong(f"{wrong.reason}. {said}: correct it or leave it out", 0), wrong.line
        return piece.without_zeros(), line

    def _sorted(self, piece, text):
        """A piece with the entries of each row in order; those of one column add up if hashed."""
        X, _ = as_matrix(piece, self.buckets or piece.columns)
        X.sum_duplicates()
        if not self.buckets and len(X.data) < len(piece.data):
            row = np.flatnonzero(X.indptr != piece.indptr)[0] - 1
            raise _Wrong("a feature index occurs twice in the row", _line_of(text, row))
        return piece._replace(data=X.data, indices=X.indices, indptr=X.indptr)

    def _check(self, piece, text):
        numbers = [(piece.data, self.dtype)]
        numbers += [] if self.worded else [(piece.y, np.dtype(np.float64))]
        for values, of in numbers:
            wrong = np.flatnonzero(~np.isfinite(values))
            if len(wrong):
                row = wrong[0]
                if values is piece.data:
                    row = np.searchsorted(piece.indptr, row, "right") - 1
                most = f"{np.finfo(of).max:.2g}"
                reason = f"a label or value is not a finite number of {of} (at most {most})"
                raise _Wrong(reason, _line_of(text, row))
        if piece.weight is not None:
            wrong = np.flatnonzero(~((piece.weight >= 0) & np.isfinite(piece.weight)))
            if len(wrong):
                reason = f"the weight {piece.weight[wrong[0]]} is not a finite number from 0 on"
                raise _Wrong(reason, _line_of(text, wrong[0]))


def _read_hard(text, rows):
    """Read the numbers that the kernel has left out."""
    for place, begin in rows.hard[1 : rows.hard[0, 0] + 1].tolist():
        number, room = float(_NUMBER.match(text, begin)[0]), len(rows.data)
        if place < 0:
            rows.y[-1 - place] = number
        elif place < room:
            rows.data[place] = number
        else:
            rows.weights[place - room] = number


def _decoded(places, text):
    """The words between some places; each different one is decoded once."""
    raw, words = [bytes(text[begin:end]) for begin, end in places.tolist()], {}
    for row, word in enumerate(raw):
        if word not in words:
            if len(word) > LONGEST_LABEL:
                reason = f"the label has {len(word)} bytes, more than {LONGEST_LABEL}"
                raise _Wrong(reason, _line_of(text, row))
            if _SEVERAL.fullmatch(word):
                raise _Wrong(_several(word.decode()), _line_of(text, row))
            try:
                words[word] = word.decode()
            except UnicodeDecodeError:
                raise _Wrong(f"the label {word!r} is not UTF-8", _line_of(text, row)) from None
    return np.array([words[word] for word in raw], str)


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
        said = "the row has no label: write its label, or any number if it is only predicted"
        if rows.is_vw or not re.fullmatch(r"[0-9.]+:[0-9.]+", word):
            return said
        return (
            f"{said}. If {word!r} is a label with a weight: LIBSVM has no weights, Vowpal Wabbit "
            "has: `label weight | features`, read by weight (--format vw --weight)"
        )
    if fault == LABEL and _SEVERAL.fullmatch(whole):
        return _several(word)
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
        if int(index) >= LARGEST + lowest:
            return f"{said}; names of any size are hashed (--hashed --n-features 1048576)"
        return f"{said}; see n_features (--n-features)"
    if word.startswith("qid:"):
        return f"{word!r} names a query of a ranking, which is not read"
    if late:
        return f"{word!r} is not `index:value` with finite numbers; see format (--format vw)"
    return f"{word!r} {_about_feature(word, rows)}"


def _several(word):
    return f"the label {word!r} is several labels, or a number with a comma: a row has one label"


def _about_feature(word, rows):
    """What is wrong with a word where a feature is expected, and which option would take it."""
    name, colon, _ = word.partition(":")
    said = "is not `index:value` with finite numbers"
    plain = not (rows.buckets or rows.worded or rows.weighted)
    if rows.is_vw and word.startswith("|"):
        if colon:
            return "is a namespace with a weight, which is not read"
        return said if rows.buckets else "is a further namespace; see hashed (--hashed)"
    if rows.is_vw and word.startswith("'") and not colon and plain:
        return "is a tag, which is left out only with weight (--weight)"
    if rows.is_vw and not colon and _NUMBER.match(name.encode()):
        if rows.weighted:
            return "is an initial prediction, which is not read"
        return f"{said}; see weight (--weight)"
    is_index = rows.buckets or _NUMBER.fullmatch(name.encode())
    return said if is_index else f"{said}; see hashed (--hashed)"
