"""Files of data sets: checked and whole, or not there."""

import hashlib
import os
import re
import shutil
import socket
import threading
import time
import urllib.request
import warnings
from collections.abc import Iterator
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from tqdm import tqdm

from ofslib._files import CorruptFile, resumable_file, whole_file, write_whole
from ofslib.datasets import lock
from ofslib.datasets.registry import find_row, splits

MIRROR = "OFSLIB_DATA_MIRROR"
SOURCE = "https://raw.githubusercontent.com"
# Of a file whose size neither the registry nor the answer says; no file in a repository of the
# public source is larger.
MOST_BYTES = 100 * 2**20
# Bytes that are kept of a download that broke off, and after which it goes on by itself.
WORTH_KEEPING = 2**20
PAUSE = 1.0  # seconds until it does
CHUNK = 1 << 16  # bytes that are written at once


class NotObtainable(Exception):
    """A file is in none of the places where it was looked for, or they do not answer."""


class NoSuchFile(NotObtainable):
    """A file of the user's own is not where the table of data sets says."""


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
    `<name>/<file>`) or, with a warning if the mirror lacks it, from the public source. A download
    that breaks off goes on where it was, in this call or in the next. A path of one's own is used
    where it lies.

    Where an address has no published checksum, what comes is counted (rows, nonzeros, labels) and
    compared with what the registry says is published; then its sha256 is written to a lock beside
    the registry (beside the files without `registry_path`), and from then on it is pinned.

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
    row, place = find_row(name, registry_path), lock.path_of(name, folder, registry_path)
    known, paths = lock.read(place), []
    for part in splits(row, split):
        remotes = list(remote_files(row, part, known))
        for remote in remotes:
            _obtain(remote, remote.path(folder), timeout)
        there = [remote.path(folder) for remote in remotes]
        if new := [r for r in remotes if not (r.checksum or r.own)]:
            # Only what has no checksum is read when it comes, and only this needs what reads files.
            facts = import_module("ofslib.datasets.facts")
            found = facts.of(row, there)
            facts.check(row, part, found)
            known |= {part: found}
            known["files"] |= {r.name: _pin(r, folder) for r in new}
            lock.write(place, known)
        paths += there
    return paths


def _pin(remote, folder):
    path = remote.path(folder)
    size = path.stat().st_size
    return {"checksum": _digest(path, "sha256", size), "bytes": size, "address": remote.url}


def verify(
    name: str,
    folder: str | os.PathLike = "resources",
    registry_path: str | os.PathLike | None = None,
) -> dict[Path, str]:
    """Check the files of a data set that are there; nothing is fetched, removed or changed.

    The parameters are those of `fetch`. Each path is said to be "whole", "missing", "damaged", or
    "unpinned": no checksum is known of it, neither from the registry nor from a first use.
    """
    row, found = find_row(name, registry_path), {}
    known = lock.read(lock.path_of(name, folder, registry_path))
    for remote in [r for part in splits(row) for r in remote_files(row, part, known)]:
        path = remote.path(folder)
        try:
            found[path] = "whole" if path.is_file() else "missing"
            if path.is_file() and remote.checksum:
                _verify(path, remote)
            elif path.is_file() and not remote.own:
                found[path] = "unpinned"
        except CorruptFile:
            found[path] = "damaged"
    return found


def pins(
    name: str,
    folder: str | os.PathLike = "resources",
    registry_path: str | os.PathLike | None = None,
) -> dict[Path, str]:
    """What the files of a data set are checked against: a checksum, and who gave it."""
    row, place = find_row(name, registry_path), lock.path_of(name, folder, registry_path)
    known, said = lock.read(place), {}
    for split in splits(row):
        for remote in remote_files(row, split, known):
            by = f"first use, {place}" if remote.name in known["files"] else "registry"
            said[remote.path(folder)] = f"{remote.checksum} ({by})" if remote.checksum else ""
    return said


class RemoteFile(NamedTuple):
    """One file of a data set, and what the registry or the lock pins of it."""

    name: str  # <data set>/<file>: in mirrors and in the local folder alike
    url: str  # or a path
    checksum: str  # nothing where none is known
    size: int | None
    own: bool = False  # a path of the user's: used where it lies

    def path(self, folder: str | os.PathLike) -> Path:
        """Where the file is, or will be."""
        return Path(self.url) if self.own else Path(folder) / self.name


def remote_files(
    row: dict[str, Any], split: str, known: dict[str, Any] | None = None
) -> Iterator[RemoteFile]:
    """The files of one split of a data set; `known` is what its lock says."""
    locked = {} if known is None else known["files"]
    base = f"{SOURCE}/{row['repository']}/{row['commit']}/" if row["repository"] else ""
    files = row[split].split()
    sums = row[f"{split}_checksum"].split() or [""] * len(files)
    sizes = [int(s) for s in row[f"{split}_bytes"].split()] or [None] * len(files)
    for file, checksum, size in zip(files, sums, sizes, strict=True):
        own = not base and "://" not in file
        name = f"{row['name']}/{Path(urlsplit(file).path if '://' in file else file).name}"
        if not checksum and name in locked:
            checksum, size = locked[name]["checksum"], locked[name]["bytes"]
        yield RemoteFile(name, base + file, checksum, size, own)


def _obtain(remote, target, timeout):
    damaged = ""
    if remote.own and not target.is_file():
        raise NoSuchFile(f"{remote.name}: there is no file {os.path.abspath(target)}")
    if target.is_file():
        try:
            return remote.checksum and _verify(target, remote)
        except CorruptFile:
            if remote.own:
                raise
            target.unlink()
            damaged = f"{target} was damaged and is removed; "
    mirror, failures = os.environ.get(MIRROR, "").rstrip("/"), []
    for source in [f"{mirror}/{remote.name}", remote.url] if mirror else [remote.url]:
        try:
            return _bring(source, remote, target, timeout)
        except NotObtainable as error:
            failures.append(str(error))
            if source != remote.url:
                message = f"not in the mirror ({MIRROR}): {error}; trying {remote.url}"
                warnings.warn(message, stacklevel=3)
    raise NotObtainable(
        f"{damaged}{remote.name} could not be had from {' nor from '.join(failures)}. Connect to "
        f"the network, or set {MIRROR} to a folder or an address that holds {remote.name}"
    )


def _bring(source, remote, target, timeout):
    if source.startswith(("http://", "https://")):
        try:
            _connect(source, min(5, timeout))
        except ValueError as error:  # a port that is no number
            raise NotObtainable(f"{source} ({error})") from error
        try:
            with resumable_file(target, WORTH_KEEPING) as part:
                _download(source, part, remote, timeout)
                _finished(part, remote)
        finally:
            if not Path(part.name).is_file():
                _beside(part).unlink(missing_ok=True)
        return
    with whole_file(target) as part:
        try:
            with open(source, "rb") as held:
                shutil.copyfileobj(held, _Limited(part, remote))
        except (OSError, ValueError) as error:
            raise NotObtainable(
                f"{source} ({getattr(error, 'strerror', None) or error})"
            ) from error
        _finished(part, remote)


def _finished(part, remote):
    part.flush()
    if remote.checksum:
        _verify(Path(part.name), remote)


class _Limited:
    """A file that takes no more bytes than are expected, however many a source sends."""

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


class _Answer(_Limited):
    """What a server sends: the rest of a file that was begun, or all of it anew."""

    def __init__(self, part, remote, begun):
        super().__init__(part, remote)
        self.begun, self.total, self.bar = begun, None, None

    def arrived(self, response, *args, **options):
        """Look at the head of an answer before its bytes are written."""
        if response.status_code == 206:
            where = response.headers.get("Content-Range", "")
            found = re.fullmatch(r"bytes (\d+)-\d+/(\d+|\*)", where)
            if found is None:
                said = f"the Content-Range {where!r}" if where else "no Content-Range"
                raise _corrupt(self.remote, f"a part of it (206) with {said}")
            begin, total = found.groups()
            if int(begin) != self.begun:
                raise _corrupt(self.remote, f"bytes from {begin} on, not from {self.begun}")
        elif response.status_code == 200:
            self.file.truncate(0)
            self.begun, total = 0, response.headers.get("Content-Length", "*")
            mark = response.headers.get("ETag") or response.headers.get("Last-Modified") or ""
            write_whole(_beside(self.file), mark if not mark.startswith("W/") else "")
        else:
            return
        if total != "*":
            self._expect(int(total))
        self.bar = tqdm(
            total=self.total, initial=self.begun, desc=self.remote.name, unit="B", unit_scale=True,
            leave=False, delay=0.5, disable=None,
        )  # fmt: skip

    def _expect(self, total):
        self.total, left = total, total - self.begun
        # An address of which nothing is pinned is believed as to its size.
        if self.remote.size is None and not self.remote.checksum:
            self.most = total
        free = shutil.disk_usage(Path(self.file.name).parent).free
        if self.most >= total and left > free:
            raise NotObtainable(f"{self.remote.name}: {left} bytes more, and {free} are free")

    def write(self, piece):
        written = super().write(piece)
        self.bar.update(written)
        return written


def _beside(part):
    """What the server calls the version of a file of which a part is here."""
    return Path(part.name + ".version")


def _download(source, part, remote, timeout):
    """Write what an address holds after what is there of it; go on as long as something comes."""
    while True:
        begun, version = part.seek(0, os.SEEK_END), ""
        with suppress(OSError):
            version = _beside(part).read_text(encoding="utf-8")
        # Without a version only a checksum can tell whether both parts are of one file.
        if begun and not (version or remote.checksum):
            begun = part.truncate(0)
        headers = {"Accept-Encoding": "identity"}
        if begun:
            headers |= {"Range": f"bytes={begun}-"} | ({"If-Range": version} if version else {})
        answer = _Answer(part, remote, begun)
        from pooch import HTTPDownloader  # files that are here need none

        try:
            get = HTTPDownloader(
                timeout=(min(5, timeout), timeout),
                chunk_size=CHUNK,
                headers=headers,
                hooks={"response": answer.arrived},
            )
            get(source, answer, None)
            return
        except (OSError, ValueError) as error:  # what requests raises
            size = part.seek(0, os.SEEK_END)
            if size - answer.begun >= WORTH_KEEPING:
                time.sleep(PAUSE)
                continue
            if begun and answer.bar is None and " 416 " in f" {error} ":  # there is no more of it
                part.truncate(0)
                continue
            raise _broken(source, error, size) from error
        finally:
            if answer.bar is not None:
                answer.bar.close()


def _broken(source, error, size):
    if size >= WORTH_KEEPING:
        return NotObtainable(f"{source}: broke off ({error}); {size} bytes are kept to go on from")
    if "IncompleteRead" in str(error):
        return CorruptFile(f"{source}: cut short ({error}). Nothing was kept: run it again")
    return NotObtainable(f"{source} ({error})")


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
    wanted = [] if remote.size is None else [f"{remote.size} bytes"]
    wanted = ", ".join([*wanted, remote.checksum or "no more than the server says"])
    return CorruptFile(
        f"{remote.name}: expected {wanted}; got {got}. Nothing was kept: run it "
        f"again, and if that does not help, look whether {MIRROR} or a proxy gives another file"
    )


def _verify(path, remote):
    size, kind = path.stat().st_size, remote.checksum.partition(":")[0]
    found = _digest(path, kind, size)
    if remote.size not in (None, size) or found != remote.checksum:
        raise _corrupt(remote, f"{size} bytes, {found}")


def _digest(path, kind, size):
    digest = hashlib.sha256() if kind == "sha256" else hashlib.sha1(b"blob %d\0" % size)
    with open(path, "rb") as file:
        while piece := file.read(1 << 20):
            digest.update(piece)
    return f"{kind}:{digest.hexdigest()}"
