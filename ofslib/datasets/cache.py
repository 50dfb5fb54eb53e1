"""The parsed rows of a text in a binary file."""

import hashlib
import json
import os
import struct
import zlib
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import numpy as np

from ofslib._files import CorruptFile, whole_file
from ofslib.datasets.pieces import Piece, Rows, joined, refuse_narrow, state_of

_PIECE = 1 << 20  # bytes that are read at once


class CachedRows(Rows):
    """The parsed rows of a text in one binary file, made whole or not at all.

    The file has one piece after the other, each the arrays y, weight (if there are weights), data,
    indptr and indices. Then follows as JSON what the file was made from, for each piece its rows,
    entries, columns and CRC, and the words that labels count; then the length and CRC of this JSON.

    A cache belongs to the text whose bytes have its digest. These are read again only if size,
    number or times of the text have changed, also the time of its last change, which on POSIX
    systems no program can set.
    """

    END, VERSION = struct.Struct("<II"), 6

    def __init__(self, text, path):
        self.text, self.path = text, path
        self.names, self.columns = text.names, text.columns
        self.weighted, self.worded = text.weighted, text.worded

    @property
    def size(self):
        """Number of rows and of columns."""
        made = self._end()
        return sum(rows for rows, *_ in made["pieces"]), self.columns or _width(made)

    def version(self):
        """Digest of the text that the cache was made from."""
        return self._end()["content"]

    def identity(self):
        """What tells these rows from others."""
        return [self.version(), *self.text.options()]

    def pieces(self, start=0, width=None, rebuilt=False) -> Iterator[Piece]:
        """The rows from `start` on; a damaged file is made anew."""
        file, made = self._opened()
        with file:
            refuse_narrow(self.text.path, _width(made), width)
            before = at = 0
            for rows, entries, columns, crc in made["pieces"]:
                layout = self._layout(rows, entries)
                length = sum(kind.itemsize * count for kind, count in layout)
                if before + rows > start:
                    raw = self._read(file, at, length)
                    if zlib.crc32(raw) != crc:
                        break
                    piece = self._piece(raw, layout, columns, made["words"])
                    yield piece.rows(max(0, start - before), rows)
                before, at = before + rows, at + length
            else:
                return
        if rebuilt:
            raise CorruptFile(f"{self.path}: damaged as soon as written; is the disk sound?")
        self._build()
        if self.text.content()[1] != made["content"]:
            raise self._changing()
        yield from self.pieces(max(start, before), width, rebuilt=True)

    def _layout(self, rows, entries):
        """Type and length of each array of a piece: the wider ones first, so that all align."""
        double, whole = np.dtype(np.float64), np.dtype(np.int32)
        ends = [(self.text.dtype, entries), (whole, rows + 1), (whole, entries)]
        return [(double, rows)] * (1 + self.weighted) + ends

    def _read(self, file, at, length):
        file.seek(at)
        return np.fromfile(file, np.uint8, length)

    def _piece(self, raw, layout, columns, words):
        """The arrays of a piece, in the memory of its bytes."""
        ends = np.cumsum([kind.itemsize * count for kind, count in layout])
        parts = np.split(raw, ends[:-1])
        arrays = [part.view(kind) for part, (kind, _) in zip(parts, layout, strict=True)]
        y, *weight, data, indptr, indices = arrays
        if self.worded:
            y = np.array(words, str)[y.astype(np.int64)]
        return Piece(data, indices, indptr, y, weight[0] if weight else None, columns)

    def _opened(self):
        """The open file, and what its end says."""
        for build in (True, False):
            if self.path.is_file():
                file = open(self.path, "rb")
                if (made := self._made(file)) is not None:
                    return file, made
                file.close()
            if build:
                self._build()
        raise self._changing()

    def _end(self):
        """What the end of the file says."""
        file, made = self._opened()
        file.close()
        return made

    def _changing(self):
        return CorruptFile(f"{self.path}: the text it is made from changes; wait until it is whole")

    def _made(self, file):
        """What the end of the file says, if it is whole and of this text."""
        with suppress(OSError, ValueError, LookupError, TypeError):  # too short, or not ours
            end = file.seek(-self.END.size, os.SEEK_END)
            length, crc = self.END.unpack(file.read())
            file.seek(end - length)
            raw = file.read(length)
            made = json.loads(raw)
            if zlib.crc32(raw) == crc and made["options"] == self._options():
                same = made["state"] == state_of(self.text.path)
                return made if same or made["content"] == self.text.content()[1] else None
        return None

    def _options(self):
        return [self.VERSION, *self.text.options()]

    def _build(self):
        (state, content), pieces, words = self.text.content(), [], {}
        with whole_file(self.path) as file:
            for piece in _gathered(self.text.pieces()):
                pieces.append(self._write(file, piece, words))
            if state_of(self.text.path) != state:
                raise self._changing()
            made = {"options": self._options(), "state": state, "content": content}
            raw = json.dumps(made | {"pieces": pieces, "words": [*words]}).encode()
            file.write(raw + self.END.pack(len(raw), zlib.crc32(raw)))

    def _write(self, file, piece, words):
        y, crc = piece.y, 0
        if self.worded:
            y = np.array([words.setdefault(word, len(words)) for word in y.tolist()], np.float64)
        weight = [piece.weight] if self.weighted else []
        for array in (y, *weight, piece.data, piece.indptr, piece.indices):
            file.write(array)
            crc = zlib.crc32(array, crc)
        return [len(piece.y), len(piece.data), piece.columns, crc]


def _gathered(pieces):
    """The same rows in pieces of about `_PIECE` bytes."""
    held, size = [], 0
    for piece in pieces:
        held.append(piece)
        size += sum(array.nbytes for array in piece.arrays)
        if size > _PIECE:
            yield joined(held)
            held, size = [], 0
    if held:
        yield joined(held)


def _width(made):
    return max((columns for _, _, columns, _ in made["pieces"]), default=0)


def cache_of(path: Path, cache) -> Path:
    """Where the parsed rows of a text are kept."""
    if cache is True:
        return path.parent / f"{path.name}.ofscache"
    try:
        folder = Path(cache)
    except TypeError:
        raise ValueError(f"cache: expected True, False or a folder, got {cache!r}") from None
    if folder.is_file():
        raise NotADirectoryError(f"cache (--cache): {folder} is a file: give a folder")
    # Texts of one name may stand in several folders.
    place = hashlib.sha256(os.fsencode(path.resolve().parent)).hexdigest()[:12]
    return folder / f"{path.name}.{place}.ofscache"
