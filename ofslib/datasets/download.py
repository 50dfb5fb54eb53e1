"""Files of data sets: checked and whole, or not there."""

import hashlib
import os
import shutil
import socket
import threading
import urllib.request
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import pooch

from ofslib._files import CorruptFile, whole_file
from ofslib.datasets.registry import find_row, splits

MIRROR = "OFSLIB_DATA_MIRROR"
SOURCE = "https://raw.githubusercontent.com"
# Of a file whose size is not pinned; no file in a repository of the public source is larger.
MOST_BYTES = 100 * 2**20


class NotObtainable(Exception):
    """A file is in none of the places where it was looked for, or they do not answer."""


def fetch(
    name: str,
    folder: str | os.PathLike = "resources",
    registry_path: str | os.PathLike | None = None,
    timeout: float = 10,
    split: str | None = None,
) -> list[Path]:
    """Bring the files of a data set, each checked against the registry, and return their paths.

    The paths are in the order of the registry, train before test.

    A file already there is checked and kept. Otherwise it comes from the mirror named by the
    environment variable `OFSLIB_DATA_MIRROR` (a folder or an http address that holds
    `<name>/<file>`) or, with a warning if the mirror lacks it, from the public source.

    Parameters
    ----------
    name : str
        A name of the registry.
    folder : path-like
        Files are kept as `<folder>/<name>/<file>`.
    registry_path : path-like, optional
        A table of further data sets, as in `registry`.
    timeout : float
        Seconds to wait for the next bytes; a connection is given at most 5.
    split : {"train", "test"}, optional
        Bring the files of this split only.

    Raises
    ------
    NotObtainable
        Neither mirror nor source gives the file.
    CorruptFile
        What came is not what the registry pins.
    """
    row = find_row(name, registry_path)
    paths = []
    for remote in [r for part in splits(row, split) for r in remote_files(row, part)]:
        paths.append(Path(folder) / remote.name)
        _obtain(remote, paths[-1], timeout)
    return paths


def verify(
    name: str,
    folder: str | os.PathLike = "resources",
    registry_path: str | os.PathLike | None = None,
) -> dict[Path, str]:
    """Check the files of a data set that are there; nothing is fetched, removed or changed.

    The parameters are those of `fetch`. Each path is said to be "whole", "missing" or "damaged".
    """
    row, found = find_row(name, registry_path), {}
    for remote in [r for part in splits(row) for r in remote_files(row, part)]:
        path = Path(folder) / remote.name
        try:
            found[path] = "whole" if path.is_file() else "missing"
            if path.is_file():
                _verify(path, remote)
        except CorruptFile:
            found[path] = "damaged"
    return found


class RemoteFile(NamedTuple):
    """One file of a data set, and what the registry pins of it."""

    name: str  # <data set>/<file>: in mirrors and in the local folder alike
    url: str
    checksum: str
    size: int | None


def remote_files(row: dict[str, Any], split: str) -> Iterator[RemoteFile]:
    """The files of one split of a data set."""
    base = f"{SOURCE}/{row['repository']}/{row['commit']}"
    paths, sums = row[split].split(), row[f"{split}_checksum"].split()
    sizes = [int(s) for s in row[f"{split}_bytes"].split()] or [None] * len(paths)
    for path, checksum, size in zip(paths, sums, sizes, strict=True):
        yield RemoteFile(f"{row['name']}/{Path(path).name}", f"{base}/{path}", checksum, size)


def _obtain(remote, target, timeout):
    damaged = ""
    if target.is_file():
        try:
            return _verify(target, remote)
        except CorruptFile:
            target.unlink()
            damaged = f"{target} was damaged and is removed; "
    mirror, failures = os.environ.get(MIRROR, "").rstrip("/"), []
    for source in [f"{mirror}/{remote.name}", remote.url] if mirror else [remote.url]:
        try:
            with whole_file(target) as part:
                _copy(source, _Limited(part, remote), timeout)
                part.flush()
                return _verify(Path(part.name), remote)
        except NotObtainable as error:
            failures.append(str(error))
            if source != remote.url:
                message = f"not in the mirror ({MIRROR}): {error}; trying {remote.url}"
                warnings.warn(message, stacklevel=3)
    raise NotObtainable(
        f"{damaged}{remote.name} could not be had from {' nor from '.join(failures)}. Connect to "
        f"the network, or set {MIRROR} to a folder or an address that holds {remote.name}"
    )


class _Limited:
    """A file that takes no more bytes than the registry pins, however many a source sends."""

    def __init__(self, file, remote):
        self.file, self.remote = file, remote
        self.most = MOST_BYTES if remote.size is None else remote.size

    def write(self, piece):
        if self.file.tell() + len(piece) > self.most:
            unpinned = ", the limit where no size is pinned" if self.remote.size is None else ""
            raise _corrupt(self.remote, f"more than {self.most} bytes{unpinned}")
        return self.file.write(piece)

    def flush(self):
        self.file.flush()


def _copy(source, part, timeout):
    web = source.startswith(("http://", "https://"))
    connecting = min(5, timeout)
    try:
        if web:
            _connect(source, connecting)
            get = pooch.HTTPDownloader(timeout=(connecting, timeout), chunk_size=1 << 16)
            get(source, part, None)
        else:
            with open(source, "rb") as held:
                shutil.copyfileobj(held, part)
    except (OSError, ValueError) as error:  # what requests raises, and a port that is no number
        if "IncompleteRead" in str(error):
            message = f"{source}: cut short ({error}). Nothing was kept: run it again"
            raise CorruptFile(message) from error
        reason = getattr(error, "strerror", None) or error
        raise NotObtainable(f"{source} ({error if web else reason})") from error


def _connect(url, seconds):
    """Fail within `seconds` where nobody answers.

    In a thread, because the system's resolver knows no time limit, and each of a host's many
    addresses would be given the whole of it.
    """
    parts = urlsplit(url)
    host, port = parts.hostname, parts.port or {"http": 80, "https": 443}[parts.scheme]
    if parts.scheme in urllib.request.getproxies() and not urllib.request.proxy_bypass(host):
        return
    outcome = []

    def attempt():
        try:
            socket.create_connection((host, port), seconds).close()
            outcome.append("")
        except (OSError, ValueError) as error:  # ValueError: a host that is no name
            outcome.append(str(error))

    thread = threading.Thread(target=attempt, daemon=True)
    thread.start()
    thread.join(seconds)
    if reason := "".join(outcome) if outcome else f"no answer within {seconds:g} s":
        raise NotObtainable(f"{url} ({reason})")


def _corrupt(remote, got):
    wanted = "" if remote.size is None else f"{remote.size} bytes, "
    return CorruptFile(
        f"{remote.name}: expected {wanted}{remote.checksum}; got {got}. Nothing was kept: run it "
        f"again, and if that does not help, look whether {MIRROR} or a proxy gives another file"
    )


def _verify(path, remote):
    size = path.stat().st_size
    kind, _, expected = remote.checksum.partition(":")
    digest = hashlib.sha256() if kind == "sha256" else hashlib.sha1(b"blob %d\0" % size)
    with open(path, "rb") as file:
        while piece := file.read(1 << 20):
            digest.update(piece)
    if remote.size not in (None, size) or digest.hexdigest() != expected:
        raise _corrupt(remote, f"{size} bytes, {kind}:{digest.hexdigest()}")
