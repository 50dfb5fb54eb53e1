"""What came of the attempts to fetch data sets: resources/<name>.json."""

import hashlib
import json
import os
import re
import warnings
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

from ofslib._files import CorruptFile, write_whole
from ofslib.datasets.download import remote_files
from ofslib.datasets.registry import read_rows, splits

FOLDER = Path("resources")
TABLE = "config/datasets.csv"
# What `mend` does with a file that has changed, for who only asks what would be done.
WHAT_CHANGES = "it is fetched again or, if it is your own, what reads it is made again"
_WHENCE = """
name title repository commit train_checksum train_bytes test_checksum test_bytes licence citation
notes
""".split()


def path(name: str) -> str:
    """The record of a data set."""
    return f"{FOLDER}/{name}.json"


def read(file: str | os.PathLike) -> dict[str, Any]:
    """A record.

    Raises
    ------
    CorruptFile
        If it is cut short, or was never one.
    """
    try:
        record = json.loads(Path(file).read_text(encoding="utf-8"))
        if record["status"] == "fetched" or {"name", "reason", "detail"} <= record.keys():
            return record
    except (ValueError, TypeError, KeyError):
        pass
    raise CorruptFile(f"{file} is no whole record of a data set; remove it to fetch the set again")


def row_digest(name: str) -> str:
    """The sha256 of what the table of data sets says of how the files of one are read."""
    read = {column: cell for column, cell in row(name).items() if column not in _WHENCE}
    return hashlib.sha256(json.dumps(read, sort_keys=True).encode()).hexdigest()


def sums(name: str) -> dict[str, str]:
    """The sha256 of the files of a data set that was fetched here, by their names."""
    known = _known(name).get("sha256", {})
    return {Path(file).name: digest for file, digest in known.items()}


def _known(name: str) -> dict[str, Any]:
    """The record of a data set, empty if it was never tried."""
    return read(path(name)) if Path(path(name)).exists() else {}


def of_archive(name: str, told: Mapping[str, str]) -> dict[str, Any]:
    """The record of a data set whose results come from an archive, as if it had been fetched.

    One that was fetched here stays as it is. The files are those that the table of data sets names;
    `told` is what the archive says of their sha256.

    Raises
    ------
    CorruptFile
        If the archive tells of other files, or of other sums than the table pins.
    """
    if (known := _known(name)).get("status") == "fetched":
        return known
    own = row(name)
    files = {Path(f.name).name: f for part in splits(own) for f in remote_files(own, part)}
    for file, digest in told.items():
        pinned = files[file].checksum if file in files else None
        wrong = pinned is None or (pinned.startswith("sha256:") and pinned != f"sha256:{digest}")
        if wrong or not re.fullmatch("[0-9a-f]{64}", str(digest)):
            raise CorruptFile(f"the archive has results of a file {file!r} that is not of {name}")
    digests = {str(files[file].path(FOLDER)): digest for file, digest in told.items()}
    return {"name": name, "status": "fetched", "sha256": digests}


def row(name: str) -> dict[str, Any]:
    """What the table of data sets says of one."""
    return _rows(Path(TABLE).absolute(), os.stat(TABLE).st_mtime_ns)[name]


@lru_cache(maxsize=1)
def _rows(table: Path, _changed: int) -> dict[str, dict[str, Any]]:
    return read_rows(table)


def missing(names: Iterable[str]) -> list[dict[str, Any]]:
    """The records of those data sets that could not be fetched."""
    return [record for name in names if (record := _known(name)).get("status") == "not fetched"]


def mend(names: Iterable[str]) -> list[str]:
    """Look for damaged records and data files: what was found, and what is done about it.

    A record is removed, and thus made again. A file is fetched anew; if that fails its record
    stays, so that what was made of the right file stays too, and what needs it now fails. A file of
    the user's own, which nothing pins, may change: its record says so, and runs that read it are
    made again.
    """
    said = []
    for name in names:
        try:
            damaged, pinned = changed([name]), _known(name).get("sha256")
        except CorruptFile as error:
            Path(path(name)).unlink()
            said.append(f"{error}: done")
            continue
        if damaged and (now := _tried(name)):
            outcome = "fetched again" if now["status"] == "fetched" else now["detail"]
            if now.get("sha256", pinned) != pinned:
                write(now)
                outcome = "a file of your own, whose runs are made again"
            said.append(f"{', '.join(damaged)}: not what was fetched any more; {outcome}")
    return said


def changed(names: Iterable[str]) -> list[str]:
    """The data files that are not what was fetched any more, which `mend` looks after."""
    found = []
    for name in names:
        with suppress(CorruptFile):  # which `mend` names
            pinned = _known(name).get("sha256", {})
            found += [f for f in pinned if Path(f).is_file() and _sha256(Path(f)) != pinned[f]]
    return found


def _sha256(file: Path) -> str:
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


def obtain(name: str, mode: str) -> dict[str, Any]:
    """Fetch a data set: its record, which may say why it could not be had.

    With mode "require" an obstacle is an error; with "none" nothing is tried. That a file of the
    user's own is not where the table says is an error in any case: what was made of it stays.
    """
    # Slow to import, and not needed to plan a run.
    from ofslib import datasets
    from ofslib.datasets.download import NoSuchFile

    if mode == "none":
        return {"name": name, "status": "not fetched", "reason": "real_data is none", "detail": ""}
    try:
        files = datasets.fetch(name, FOLDER, registry_path=TABLE)
    except (datasets.NotObtainable, datasets.CorruptFile) as error:
        if isinstance(error, NoSuchFile):
            raise NoSuchFile(f"{error}: correct the path in {TABLE}") from error
        if mode == "require":
            raise
        damaged = isinstance(error, datasets.CorruptFile)
        reason = "what came is not the pinned file" if damaged else _whence(str(error))
        return {"name": name, "status": "not fetched", "reason": reason, "detail": str(error)}
    digests = {str(file): _sha256(file) for file in files}
    return {"name": name, "status": "fetched", "sha256": digests}


def _whence(failures: str) -> str:
    """Why no source gave a file: one that answers says so by a status of HTTP."""
    answered = re.search(r"\d{3} (Client|Server) Error|status \d{3}", failures)
    return "its sources refuse it" if answered else "no network where the figures were made"


def why(record: dict[str, Any]) -> str:
    """Why a data set is missing, as tables and figures say it."""
    return f"not downloaded: {record['reason']}"


def write(record: dict[str, Any]) -> None:
    """Write the record of a data set."""
    write_whole(path(record["name"]), json.dumps(record, indent=2) + "\n")


def try_again(names: Iterable[str]) -> None:
    """Try once more to fetch what is missing, and write down what has changed.

    A record stays as it is where the attempt fails for the same reason: nothing that depends on it
    is made again.
    """
    before = missing(names)
    # What is not in the mirror was said when the record was made, and stands in it.
    with (
        warnings.catch_warnings(action="ignore", category=UserWarning),
        ThreadPoolExecutor() as pool,
    ):
        now = list(pool.map(_tried, [record["name"] for record in before]))
    for old, new in zip(before, now, strict=True):
        if new and (new["status"], new.get("reason")) != (old["status"], old["reason"]):
            write(new)


def _tried(name: str) -> dict[str, Any] | None:
    from ofslib.datasets.download import NoSuchFile

    try:
        return obtain(name, "auto")
    except NoSuchFile:
        Path(path(name)).unlink()  # so that the job says what is wrong
        return None
