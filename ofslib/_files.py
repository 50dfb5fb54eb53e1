"""Writing files so that they are whole or not there."""

import errno
import itertools
import os
import re
import secrets
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

try:
    import fcntl
except ImportError:  # Windows, where a file that is open cannot be removed
    fcntl = None  # type: ignore[assignment]


class CorruptFile(Exception):
    """A file is not the one that was asked for: wrong size or checksum, or cut short."""


def refuse_places(written: dict[str, Any], read: dict[str, Any]) -> None:
    """OSError, before any work, for a file that could not be written after it.

    The dicts hold paths, or None, by what a message calls them. No written file may be another of
    these, unless it is a device such as /dev/null.
    """
    given = {name: Path(path) for name, path in (read | written).items() if path}
    real = {name: os.path.realpath(path) for name, path in given.items() if not _is_device(path)}
    for (one, path), (other, place) in itertools.combinations(real.items(), 2):
        there = os.path.exists(path) and os.path.exists(place)
        same = os.path.samefile(path, place) if there else path == place
        if same and not written.keys().isdisjoint({one, other}):
            raise OSError(f"{one} and {other}: both are the file {given[other]}; give two")
    for name in written.keys() & real.keys():
        if str(given[name]) == "-":
            raise OSError(f"{name} -: expected a file; - is not stdout here")
        target = Path(real[name])  # which is written, if it is a link
        try:
            os.lstat(_temporary(target))
        except OSError as error:
            if error.errno == errno.ENAMETOOLONG:
                raise OSError(f"{name}: the name {target.name} is too long") from None
        if target.is_dir():
            raise IsADirectoryError(f"{given[name]} is a folder: give a file")
        folder = next(parent for parent in target.parents if parent.exists())
        if not (folder.is_dir() and os.access(folder, os.W_OK)):
            raise OSError(f"{given[name]}: {folder} is no folder that may be written to")


def refuse_device(path: str | os.PathLike) -> None:
    """OSError if what is to be read is a pipe or a device, or `-`, which elsewhere names one."""
    path = Path(path)
    if _is_device(path) or (str(path) == "-" and not path.exists()):
        raise OSError(
            f"{path}: a pipe or device is not read, for it would be gone through more than once: "
            "give a file"
        )


def _is_device(path: Path) -> bool:
    """Whether it is there and neither a file nor a folder, as /dev/null or a pipe."""
    return os.path.realpath(path) == os.path.realpath(os.devnull) or (
        path.exists() and not (path.is_file() or path.is_dir())
    )


@contextmanager
def whole_file(path: str | os.PathLike) -> Iterator[BinaryIO]:
    """Give a temporary file beside `path`; flush it to the disk and rename it if all goes well.

    The name ends in ``.part``, and nothing is left of it if something fails. Whoever reads
    `path` sees the old file or the new one, even if the machine stops in between. Such files of
    killed processes are removed when the next file is written into the folder. A link stays one:
    what it points to is written. A file that is there keeps its mode. A device is written to and
    stays what it is.
    """
    path = Path(os.path.realpath(path))
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder: give a file")
    if _is_device(path):  # to rename something to its name would remove it
        with tempfile.TemporaryFile() as file:
            yield file
            file.seek(0)
            with open(path, "wb") as device:
                shutil.copyfileobj(file, device)
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    for left in path.parent.glob(".*.part"):
        if re.fullmatch(r"\..+\.[0-9a-f]{8}\.part", left.name, re.DOTALL):
            _remove_dead(left)
    temporary = _temporary(path)
    try:
        with _locked(temporary) as file:
            yield file
            _put(file, temporary, path)
        if not fcntl:  # Windows renames only what is closed
            os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _temporary(path: Path) -> Path:
    """Where a file is written before it is renamed; `whole_file` says what becomes of it."""
    return path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")


def _put(file, temporary: Path, path: Path) -> None:
    """Flush a file to the disk, and rename it where that can be done while it is locked."""
    file.flush()
    os.fsync(file.fileno())
    if path.exists():
        shutil.copymode(path, temporary)
    if fcntl:
        os.replace(temporary, path)


def _locked(temporary):
    """A new file that is locked as long as it is open."""
    while True:
        file = open(temporary, "x+b")
        if fcntl:
            with suppress(OSError):  # a file system without locks
                fcntl.flock(file, fcntl.LOCK_EX)
        # Another writer may have taken it for a dead one's before it was locked.
        if not fcntl or os.fstat(file.fileno()).st_nlink:
            return file
        file.close()


def _remove_dead(temporary):
    """Remove a temporary file unless a living process has it: a lock ends with its process."""
    with suppress(OSError):
        if fcntl:
            with open(temporary, "rb") as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        temporary.unlink()


def write_whole(path: str | os.PathLike, content: str | bytes) -> None:
    """Write all of a file at once, by `whole_file`; text as UTF-8."""
    with whole_file(path) as file:
        file.write(content.encode("utf-8") if isinstance(content, str) else content)
