"""Texts that are compressed, read as bytes; what is damaged or cut short is an error."""

import bz2
import gzip
import io
import lzma
import sys
import zlib
from contextlib import contextmanager, nullcontext
from importlib import import_module
from pathlib import Path

from ofslib._files import CorruptFile

_AT_ONCE = 1 << 16  # bytes of a compressed file
# How files begin that are no text, and what to do about it. Words of a text never begin so.
_RENAMED, _SAVED = "give it the ending {}", "save it in UTF-8"
_NO_TEXT = {
    b"\x1f\x8b": ("compressed by gzip", _RENAMED.format(".gz")),
    b"BZh91AY&SY": ("compressed by bzip2", _RENAMED.format(".bz2")),
    b"\xfd7zXZ\x00": ("compressed by xz", _RENAMED.format(".xz")),
    b"\x28\xb5\x2f\xfd": ("compressed by zstd", _RENAMED.format(".zst")),
    b"PK\x03\x04": ("a zip archive or a spreadsheet", "unpack it, or save it as a text"),
    b"PAR1\x15": ("a table in Parquet", _RENAMED.format(".parquet")),
    b"\xff\xfe": ("a text in UTF-16", _SAVED),
    b"\xfe\xff": ("a text in UTF-16", _SAVED),
}


def open_text(path, compressed=None):
    """Open a text for reading bytes, unpacked if it is compressed.

    `compressed` is the file of this path, if it is open already; it is then left open.

    Raises
    ------
    ValueError
        If by its ending it is no compressed file, and by its first bytes it is no text.
    """
    source = compressed or path
    match Path(path).suffix.lower():
        case ".gz":
            return gzip.open(source, "rb")
        case ".bz2":
            return io.BufferedReader(_Streams(source, bz2.BZ2Decompressor))
        case ".xz":
            return io.BufferedReader(_Streams(source, lzma.LZMADecompressor))
        case ".zst":
            return _zstd(path).open(source, "rb")
    plain = compressed or open(path, "rb")
    begin = plain.peek(16)
    for first, (found, remedy) in _NO_TEXT.items():
        if begin.startswith(first):
            if plain is not compressed:
                plain.close()
            raise ValueError(f"{path}: by its first bytes it is {found}: {remedy}")
    return nullcontext(compressed) if compressed else plain


@contextmanager
def whole(path):
    """CorruptFile, naming the file, if a compressed one is damaged or cut short."""
    try:
        yield
    except (EOFError, OSError, zlib.error, lzma.LZMAError, _zstd_error()) as error:
        message = f"{path}: expected a whole file, got an unreadable one ({error})"
        raise CorruptFile(f"{message}; get it again") from error


def _zstd_error() -> type:
    return getattr(sys.modules.get("backports.zstd"), "ZstdError", EOFError)


def _zstd(path):
    try:
        return import_module("backports.zstd")
    except ImportError as error:
        raise ImportError(
            f"{path}: to read .zst, install the package backports.zstd, or unpack the file"
        ) from error


class _Streams(io.RawIOBase):
    """What the streams in a file hold, one after the other, as parallel compressors write them.

    The readers of Python's bz2 and lzma take whatever begins no stream for the end of the file: a
    bit that flips behind the first stream would cut the rows, and nobody would know. Zeros may
    follow a stream.
    """

    def __init__(self, source, decompressor):
        self.owned = False  # also if there is no such file
        self.file = source if hasattr(source, "read") else open(source, "rb")
        self.owned = self.file is not source
        self.decompressor = decompressor
        self.current = decompressor()  # None at the end

    def readable(self):
        return True

    def close(self):
        if self.owned:
            self.file.close()
        super().close()

    def readinto(self, buffer):
        data = b""
        while not data and self.current:
            more = b""
            if self.current.eof:
                more = self._behind()
                self.current = self.decompressor() if more else None
            elif self.current.needs_input and not (more := self.file.read(_AT_ONCE)):
                raise EOFError("it ends within a stream")
            if self.current:
                data = self.current.decompress(more, len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def _behind(self):
        """What follows a stream, without zeros that may fill it up; nothing at the end."""
        more = self.current.unused_data.lstrip(b"\0")
        while not more and (piece := self.file.read(_AT_ONCE)):
            more = piece.lstrip(b"\0")
        return more
