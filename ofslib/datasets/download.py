"""Files of data sets: checked and whole, or not there."""

import hashlib
import json
import os
import shutil
import threading
import warnings
from collections.abc import Iterator
from concurrent.futures import Future, wait
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from tqdm import tqdm

from ofslib._files import CorruptFile, whole_file, write_whole
from ofslib.datasets.registry import find_row, splits

MIRROR = "OFSLIB_DATA_MIRROR"
SOURCE = "https://raw.githubusercontent.com"
# Of a file whose size neither the registry nor the answer says; no file in a repository of the
# public source is larger.
MOST_BYTES = 100 * 2**20
CHUNK = 1 << 13  # bytes that are written at once
# Bytes a second, over so many seconds: a server that sends a byte now and then would never end.
LEAST_RATE, PATIENCE = 2000, 60


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
    `<name>/<file>`) or, with a warning if the mirror lacks it, from the public source. Nothing is
    kept of a download that breaks off. A path of one's own is used where it lies.

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
    row, place = find_row(name, registry_path), lock_of(name, folder, registry_path)
    known, paths = read_lock(place), []
    for part in splits(row, split):
        remotes = list(remote_files(row, part, known))
        there = [remote.path(folder) for remote in remotes]
        for remote, path in zip(remotes, there, strict=True):
            _obtain(remote, path, timeout)
        if new := [r for r in remotes if not (r.checksum or r.own)]:
            # Only what has no checksum is read when it comes, and only this needs what reads files.
            facts = import_module("ofslib.datasets.facts")
            found = facts.of(row, there)
            facts.check(row, part, found)
            known |= {part: found}
            known["files"] |= {r.name: _pin(r, r.path(folder)) for r in new}
            write_whole(place, json.dumps(known, indent=2, sort_keys=True) + "\n")
        paths += there
    return paths


def verify(
    name: str,
    folder: str | os.PathLike = "resources",
    registry_path: str | os.PathLike | None = None,
) -> dict[Path, str]:
    """Check the files of a data set that are there; nothing is fetched, removed or changed.

    The parameters are those of `fetch`. Each path is said to be "whole", "missing", "damaged", or
    "unpinned": no checksum is known of it, neither from the registry nor from a first use.
    """
    found = {}
    for remote, path, _ in _files(name, folder, registry_path):
        if not path.is_file():
            found[path] = "missing"
        elif not remote.checksum:
            found[path] = "whole" if remote.own else "unpinned"
        else:
            found[path] = "damaged" if _difference(path, remote) else "whole"
    return found


def pins(
    name: str,
    folder: str | os.PathLike = "resources",
    registry_path: str | os.PathLike | None = None,
) -> dict[Path, str]:
    """What the files of a data set are checked against: a checksum, and who gave it."""
    files = _files(name, folder, registry_path)
    return {path: f"{r.checksum} ({by})" if r.checksum else "" for r, path, by in files}


def _files(name, folder, registry_path):
    """The files of a data set, where they are or will be, and who gave their checksums."""
    row, place = find_row(name, registry_path), lock_of(name, folder, registry_path)
    known = read_lock(place)
    for remote in [r for part in splits(row) for r in remote_files(row, part, known)]:
        by = f"first use, {place}" if remote.name in known["files"] else "registry"
        yield remote, remote.path(folder), by


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


# -------------------------------------------------- what was found at the first use


def lock_of(name: str, folder: str | os.PathLike, registry_path: str | os.PathLike | None) -> Path:
    """The lock of a data set: beside the table of its registry, else beside the files.

    A file of its own, `<table>.lock/<name>.json`, so that several sets may be fetched at once.
    """
    table = Path(folder, "datasets.csv") if registry_path is None else Path(registry_path)
    return table.with_suffix(".lock") / f"{name}.json"


def read_lock(path: Path) -> dict[str, Any]:
    """`files`, each with checksum, bytes and address, and the facts of the splits.

    Raises
    ------
    CorruptFile
        If it is there, and not what `fetch` writes.
    """
    if not path.is_file():
        return {"files": {}}
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        for pin in found["files"].values():
            pin["checksum"].startswith("sha256:"), int(pin["bytes"])
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise CorruptFile(
            f"{path}: no lock of a data set ({error}); put it back, or remove it to trust the "
            "files that are there"
        ) from error
    return found


def _pin(remote, path):
    size = path.stat().st_size
    return {"checksum": _digest(path, "sha256", size), "bytes": size, "address": remote.url}


# -------------------------------------------------- one file


def _obtain(remote, target, timeout):
    damaged = ""
    if target.is_file():
        wrong = remote.checksum and _difference(target, remote)
        if not wrong:
            return
        if remote.own:
            raise _corrupt(remote, wrong)
        target.unlink()
        damaged = f"{target} was damaged and is removed; "
    if remote.own:
        raise NoSuchFile(f"{remote.name}: there is no file {os.path.abspath(target)}")
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
    with whole_file(target) as part:
        # tqdm asks for a total, which the download corrects; 0 where the server says none.
        with tqdm(
            total=1, desc=remote.name, unit="B", unit_scale=True, leave=False, delay=0.5,
            disable=None,
        ) as bar:  # fmt: skip
            try:
                if source.startswith(("http://", "https://")):
                    _download(source, _Limited(part, remote, bar), bar, timeout)
                else:
                    with open(source, "rb") as held:
                        shutil.copyfileobj(held, part)
            except (OSError, ValueError) as error:  # also what requests raises
                raise NotObtainable(f"{source} ({_cause(error)})") from error
        part.flush()
        if remote.checksum and (wrong := _difference(Path(part.name), remote)):
            raise _corrupt(remote, wrong)


def _cause(error):
    """What went wrong first: requests wraps it three times, with the address in each."""
    while error.__context__ and type(error).__module__.startswith(("requests", "urllib3")):
        error = error.__context__
    return getattr(error, "strerror", None) or error


def _download(source, target, bar, timeout):
    from pooch import HTTPDownloader  # files that are here need none

    get = HTTPDownloader(
        progressbar=bar,
        chunk_size=CHUNK,
        timeout=(min(5, timeout), timeout),
        headers={"Accept-Encoding": "identity"},
        hooks={"response": _refuse_odd},
    )
    done: Future = Future()

    def work():
        try:
            done.set_result(get(source, target, None))
        except BaseException as error:
            done.set_exception(error)

    # What waits for the next byte cannot be interrupted. It ends when it finds the file closed.
    threading.Thread(target=work, daemon=True).start()
    before = 0
    while not wait([done], PATIENCE).done:
        if target.file.tell() - before < LEAST_RATE * PATIENCE:
            raise ValueError(f"it sends less than {LEAST_RATE} bytes a second")
        before = target.file.tell()
    done.result()


def _refuse_odd(answer, **_):
    """ValueError for an answer that is neither the file, nor a redirection, nor a known error."""
    if answer.ok and answer.status_code != 200 and not answer.is_redirect:
        raise ValueError(f"it answers with status {answer.status_code}")


class _Limited:
    """A file that takes no more bytes than are expected, however many a server sends."""

    def __init__(self, file, remote, bar):
        self.file, self.remote, self.bar, self.flush = file, remote, bar, file.flush

    def write(self, piece):
        # An address of which nothing is pinned is believed as to its size.
        told = 0 if self.remote.checksum else self.bar.total
        most = self.remote.size if self.remote.size is not None else told or MOST_BYTES
        if self.file.tell() + len(piece) > most:
            unpinned = ", the limit where no size is pinned" if self.remote.size is None else ""
            raise _corrupt(self.remote, f"more than {most} bytes{unpinned}")
        return self.file.write(piece)


def _corrupt(remote, got):
    wanted = [] if remote.size is None else [f"{remote.size} bytes"]
    wanted = ", ".join([*wanted, remote.checksum or "no more than the server says"])
    return CorruptFile(
        f"{remote.name}: expected {wanted}; got {got}. Nothing was kept: run it "
        f"again, and if that does not help, look whether {MIRROR} or a proxy gives another file"
    )


def _difference(path, remote):
    """What a file is that is not the pinned one; nothing if it is."""
    size, kind = path.stat().st_size, remote.checksum.partition(":")[0]
    found = _digest(path, kind, size)
    right = remote.size in (None, size) and found == remote.checksum
    return "" if right else f"{size} bytes, {found}"


def _digest(path, kind, size):
    digest = hashlib.sha256() if kind == "sha256" else hashlib.sha1(b"blob %d\0" % size)
    with open(path, "rb") as file:
        while piece := file.read(1 << 20):
            digest.update(piece)
    return f"{kind}:{digest.hexdigest()}"
