"""Results in one file, to be taken to another machine or another day: results-<scale>.zip.

It holds results with their records (see `provenance`). Only those are packed, and unpacked, whose
setting, sources and data are those of this checkout; times of files play no part. All functions
work in the root of the project.
"""

import csv
import hashlib
import io
import json
import lzma
import re
import struct
import subprocess
import sys
import warnings
import zipfile
import zlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from ofslib import __version__
from ofslib._files import CorruptFile, write_whole
from ofslib.reproduction import machine, project, provenance, records
from ofslib.reproduction.entries import Setting

INDEX, FORMAT = "index.json", 1
EDITS = "config/edits.csv"
MEMBER = r"[a-z][a-z0-9_]*/[A-Za-z0-9_-]+(\.time)?\.csv"
LARGEST = 2**31  # bytes that an archive may hold, unpacked: far more than all results are
OWNER = Path(".snakemake/owner.json")
KINDS = {"spec": dict, "sources": dict, "data": dict, "missing": dict, "sha256": str}
# What reading a damaged archive may raise; zlib: of one that was packed again.
_DAMAGED = (zipfile.BadZipFile, lzma.LZMAError, zlib.error, struct.error, EOFError)
_DATE = (1980, 1, 1, 0, 0, 0)  # of all members, so that equal results make equal archives


# -------------------------------------------------- a result and its setting


def results(work: project.Project) -> Iterator[tuple[str, Setting]]:
    """All files of results of a scale and their settings."""
    for name, entry in work.entries.items():
        for kind, settings in {"": entry.to_run, "time": entry.timed}.items():
            for setting in settings:
                yield work.result(name, setting.name, kind).as_posix(), setting


def state(file: str, setting: Setting) -> str:
    """Why a file of results is not that of its setting as it is now; nothing if it is."""
    if not Path(file).is_file():
        return "not made"
    record, why = recorded(file)
    return why or differs(setting, record)


def recorded(file: str) -> tuple[dict[str, Any], str]:
    """The record of a file of results, and why it is not to be trusted; nothing if it is."""
    try:
        record = json.loads(Path(provenance.record_of(file)).read_text(encoding="utf-8"))
        _check_record(record)
    except (OSError, ValueError):
        return {}, "its record is missing or damaged"
    same = hashlib.sha256(Path(file).read_bytes()).hexdigest() == record["sha256"]
    return record, "" if same else "changed after it was made"


def differs(setting: Setting, record: dict[str, Any]) -> str:
    """Why a result with this record is not that of a setting as it is now; nothing if it is."""
    # As text, as seeds are drawn from it: 1 and 1.0 are two settings.
    asked, had = (json.dumps(spec, sort_keys=True) for spec in (setting.spec, record["spec"]))
    if asked != had:
        return "of another setting"
    here = {}
    for file in (*sources_of(setting), provenance.NOTEBOOK):
        here |= _digest(file)
    there = record["sources"]
    names = sorted(here.keys() | there.keys())
    if changed := [n for n in names if here.get(n, "") not in _alike(n, there.get(n, ""))]:
        return f"made by another {changed[0]}" + ", and others" * (len(changed) > 1)
    if record["missing"]:
        return "made without its data set"
    if setting.dataset and record["data"].get(records.ROW) != records.row_digest(setting.dataset):
        return f"read by another row of {setting.dataset} in the table of data sets"
    if setting.dataset and _pinned(setting.dataset) not in ({}, records.files_of(record["data"])):
        return f"made from another file of {setting.dataset}"
    return ""


def sources_of(setting: Setting) -> list[str]:
    """The files that a run of a setting is made of, the notebook aside."""
    return project.sources(*setting.needs, *records.own_readers(setting.dataset))


def _alike(name: str, digest: str) -> list[str]:
    """The digest of a source, and those that declared edits, which change no result, made of it."""
    found = [digest]
    while (digest := _edits().get((name, digest))) not in [None, *found]:
        found.append(digest)
    return found


@cache
def _edits() -> dict[tuple[str, str], str]:
    """Sources, and their sha256 before an edit that changes no result -> that after it.

    Nothing stands for the digest of a source that was not there before, or is not any more.
    """
    if not Path(EDITS).is_file():
        return {}
    with open(EDITS, newline="", encoding="utf-8") as lines:
        return {(row["source"], row["before"]): row["after"] for row in csv.DictReader(lines)}


@cache
def _digest(file: str) -> dict[str, str]:
    return provenance.digests([file])


def _pinned(dataset: str) -> dict[str, str]:
    """The files of a data set that was fetched here, and their sha256."""
    try:
        return records.files_of(records.read(records.path(dataset)).get("sha256", {}))
    except FileNotFoundError:
        return {}


def _check_record(record: Any) -> None:
    """Raise ValueError if this is no record of a result."""
    for key, kind in KINDS.items():
        if not (isinstance(record, dict) and isinstance(record.get(key), kind)):
            raise ValueError(f"no record of a result: {key} must be a {kind.__name__}")


# -------------------------------------------------- pack


def pack(work: project.Project, file: str | Path) -> dict[str, str]:
    """Write the results of a scale into an archive.

    Returns
    -------
    dict
        Every file of results that the scale has -> why it was not packed; nothing if it was.

    Raises
    ------
    ValueError
        If there is nothing to pack; the file stays as it is.
    """
    found = {result: state(result, setting) for result, setting in results(work)}
    index = {"format": FORMAT, "ofslib": __version__, "scale": work.scale, "results": {}}
    content = {}
    for result in sorted(result for result, why in found.items() if not why):
        name = _member(work, result)
        record = Path(provenance.record_of(result)).read_text(encoding="utf-8")
        index["results"][name] = json.loads(record)
        content[name] = Path(result).read_bytes()
    if not content:
        raise ValueError(f"no results of scale {work.scale} to pack: {_counted(found)}")
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name, text in {INDEX: json.dumps(index), **content}.items():
            member = zipfile.ZipInfo(name, _DATE)
            # Two thirds of what deflate leaves of values that are followed along a stream.
            archive.writestr(member, text, zipfile.ZIP_LZMA)
    write_whole(file, packed.getvalue())
    return found


def _member(work: project.Project, result: str) -> str:
    """The name of a result in an archive."""
    return result.removeprefix(f"results/{work.scale}/")


def _counted(found: dict[str, str]) -> str:
    reasons = list(found.values())
    return "; ".join(f"{reasons.count(why)} {why}" for why in dict.fromkeys(reasons) if why)


# -------------------------------------------------- unpack


def unpack(file: str | Path) -> tuple[project.Project, dict[str, str]]:
    """Take the results of an archive that fit, and let Snakemake know that they are made.

    A result that is here already, and fits, stays.

    Returns
    -------
    Project
        At the scale of the archive.
    dict
        Every file of results in the archive -> why it was left there; nothing if it is here now.

    Raises
    ------
    CorruptFile
        If the archive is damaged, or is none; ValueError, if it is of another format or of an
        unknown scale; machine.FolderInUse, if a run works here. Nothing is changed then.
    """
    index, content = opened(file)
    known = project.scales()
    if index["scale"] not in known:
        raise ValueError(f"{file} is of scale {index['scale']!r}; here are {known}")
    work = project.load(scale=index["scale"])
    settings, found = dict(results(work)), _reasons(work, index)
    new = [result for result, why in found.items() if not why and state(result, settings[result])]
    with machine.claim(OWNER):
        for result in new:
            name = _member(work, result)
            record, dataset = index["results"][name], settings[result].dataset
            if dataset and not _pinned(dataset):
                records.write({"name": dataset, "status": "fetched", "sha256": record["data"]})
            elif dataset and _pinned(dataset) != records.files_of(record["data"]):
                found[result] = f"made from another file of {dataset}"
                continue
            write_whole(result, content[name])
            write_whole(provenance.record_of(result), json.dumps(record, indent=1) + "\n")
        _let_know(work, [result for result in new if not found[result]])
    return work, found


def shipped(work: project.Project) -> str:
    """The archive that comes with the checkout, of the results that `figures/` shows."""
    return f"figures/results-{work.committed}.zip"


def to_be_had(work: project.Project) -> set[str]:
    """The results of a scale that come with the checkout and fit; some may be here already.

    A warning, and none, if their archive is damaged or of another format.
    """
    file = Path(shipped(work))
    if work.scale != work.committed or not file.is_file():
        return set()
    try:
        index, _ = opened(file)
    except (CorruptFile, _OtherFormat) as error:
        warnings.warn(f"{error}; its results are not counted", stacklevel=2)
        return set()
    return {result for result, why in _reasons(work, index).items() if not why}


def _reasons(work: project.Project, index: dict[str, Any]) -> dict[str, str]:
    """Every result of an archive -> why it does not fit; nothing if it does."""
    settings = dict(results(work))
    found = {f"results/{work.scale}/{name}": record for name, record in index["results"].items()}
    return {
        result: differs(settings[result], record)
        if result in settings
        else "no setting of this scale"
        for result, record in found.items()
    }


def opened(file: str | Path) -> tuple[dict[str, Any], dict[str, bytes]]:
    """The index of an archive and the results that it holds, all of it checked.

    CorruptFile if it is damaged, or is none; ValueError if it is of another format.
    """
    whole = io.BytesIO(Path(file).read_bytes())
    try:
        with zipfile.ZipFile(whole) as archive:
            members = archive.infolist()
            names = [member.filename for member in members]
            if wrong := [n for n in names if n != INDEX and not re.fullmatch(MEMBER, n)]:
                raise CorruptFile(f"{file}: {wrong[0]!r} is no place of a result")
            if sum(member.file_size for member in members) > LARGEST:
                raise CorruptFile(f"{file}: unpacked it has more than {LARGEST} bytes")
            index = json.loads(archive.read(INDEX))
            if index["format"] != FORMAT:
                raise _OtherFormat(
                    f"{file} is of format {index['format']!r}, by ofslib {index.get('ofslib')}; "
                    f"this is ofslib {__version__}, which reads format {FORMAT}"
                )
            if sorted(names) != sorted([INDEX, *index["results"]]):
                raise CorruptFile(f"{file}: its index names other results than it holds")
            content = {name: archive.read(name) for name in index["results"]}
            for name, record in index["results"].items():
                _check_record(record)
                if hashlib.sha256(content[name]).hexdigest() != record["sha256"]:
                    raise CorruptFile(f"{file}: {name} is not what its record says")
            str.strip(index["scale"])
    except (CorruptFile, _OtherFormat):
        raise
    except (*_DAMAGED, OSError, KeyError, ValueError) as error:
        raise CorruptFile(f"{file} is no whole archive of results: {error}") from error
    except (TypeError, AttributeError, NotImplementedError, RuntimeError) as error:
        raise CorruptFile(f"{file} is no archive of results: {error}") from error
    return index, content


class _OtherFormat(ValueError):
    """An archive that another version of ofslib wrote."""


def _let_know(work: project.Project, made: list[str]) -> None:
    """Let Snakemake take these results as made of what is here now, whatever the times of files."""
    if not made:
        return
    command = [sys.executable, "-m", "snakemake", *made, "--touch", "--force", "--nolock"]
    command += ["--cores", "1", "--config", f"scale={work.scale}"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"unpacked, but Snakemake failed:\n{done.stdout}{done.stderr}")
