"""Writing files so that they are whole or not there."""

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO


class CorruptFile(Exception):
    """A file is not the one that was asked for: wrong size or checksum, or cut short."""


@contextmanager
def whole_file(path: str | os.PathLike) -> Iterator[BinaryIO]:
    """Give a temporary file beside `path`; flush it to the disk and rename it if all goes well.

    The name ends in ``.part``, and nothing is left of it if something fails. Whoever reads
    `path` sees the old file or the new one, even if the machine stops in between.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    try:
        with open(temporary, "x+b") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)  # Windows renames only what is closed
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def write_whole(path: str | os.PathLike, content: str | bytes) -> None:
    """Write all of a file at once, by `whole_file`; text as UTF-8."""
    with whole_file(path) as file:
        file.write(content.encode("utf-8") if isinstance(content, str) else content)
