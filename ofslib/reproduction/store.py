"""Results in a folder or in an archive, each under its key, and put together for a setting.

A stored result is a CSV file of one method's rows, `<key>.<first>-<last>.csv`, for a span of
replicates. Its first line is its record, in JSON. An archive holds the same files, compressed, and
an index of the records. All functions work in the root of the project.
"""

import hashlib
import io
import json
import lzma
import os
import re
import struct
import subprocess
import sys
import zipfile
from collections import defaultdict
from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ofslib import __version__
from ofslib._files import CorruptFile, write_whole
from ofslib.reproduction import identity, provenance, records
from ofslib.reproduction.identity import TRUTH, Result

try:
    import resource
except ImportError:  # Windows
    resource = None

FOLDER = Path("results/store")
INDEX, FORMAT = "index.json.xz", 2
_NAME = re.compile(r"([0-9a-f]{24})\.(\d{1,6})-(\d{1,6})\.csv")
# What an archive may hold at most, unpacked, in bytes: five times what all results are. It is
# counted as it is read, whatever the archive says of itself.
LARGEST, LARGEST_INDEX = 256 * 2**20, 16 * 2**20
MEMORY = 128 * 2**20  # that one compressed file may take to be read
_DATE = (1980, 1, 1, 0, 0, 0)  # of all members, so that equal results make equal archives
_DAMAGED = (zipfile.BadZipFile, struct.error, EOFError, OSError, RuntimeError, NotImplementedError)
_WRONG = (ValueError, KeyError, TypeError, AttributeError, RecursionError)
# Within a replicate, before the methods of a setting: what should be learned.
_FIRST = -1
# What each row has.
ALWAYS = ("replicate", "metric", "value")
# In stored rows: the place of a row among those of other methods in the same replicate.
STEP = "step"


class Store:
    """Stored results by key, wherever they are: see `folder` and `archive`."""

    def __init__(self, names: Iterable[str], record, read):
        self.names, self.record, self.read = names, record, read
        self.spans: dict[str, list[tuple[int, int, str]]] = defaultdict(list)
        for name in names:
            key, first, last = _NAME.fullmatch(name).groups()
            self.spans[key].append((int(first), int(last) + 1, name))

    def missing(self, result: Result) -> int:
        """The first replicate of a result that is not here; its end if all are."""
        at = result.first
        for first, end, _ in sorted(self.spans.get(result.key or "", ())):
            at = max(at, end) if first <= at else at
        return min(at, result.end)

    def has(self, result: Result) -> bool:
        """Whether all replicates of a result are here."""
        return self.missing(result) == result.end

    def records_of(self, result: Result) -> list[dict[str, Any]]:
        """The records of the stored files that hold a part of a result."""
        spans = self.spans.get(result.key or "", ())
        return [self.record(name) for a, b, name in spans if a < result.end and b > result.first]

    def rows(self, result: Result) -> pd.DataFrame:
        """The rows of a result as text, in the order in which they were made."""
        found, at = [], result.first
        for first, end, name in sorted(self.spans.get(result.key or "", ())):
            if first <= at < min(end, result.end):
                table = pd.read_csv(io.BytesIO(self.read(name)), dtype=str, keep_default_na=False)
                replicate = table["replicate"].astype(int)
                found.append(table[(replicate >= at) & (replicate < result.end)])
                at = min(end, result.end)
        return pd.concat(found, ignore_index=True) if found else pd.DataFrame()


def folder(place: Path = FOLDER) -> Store:
    """The results that were made here, or unpacked."""
    names = {file.name for file in place.glob("*.csv") if _NAME.fullmatch(file.name)}
    record = lru_cache(None)(lambda name: _split(place / name)[0])
    return Store(names, record, lambda name: _split(place / name)[1])


def _split(file: Path) -> tuple[dict[str, Any], bytes]:
    """The record and the rows of a stored file; CorruptFile if one is not that of the other."""
    head, _, body = file.read_bytes().partition(b"\n")
    try:
        record = json.loads(head.removeprefix(b"#"))
        check(record, file.name, body)
    except _WRONG as error:
        raise CorruptFile(f"{file} is no stored result ({error}): remove it") from error
    return record, body


def check(record: Mapping[str, Any], name: str, body: bytes) -> None:
    """Raise ValueError if a record is not that of a stored file."""
    key, first, last = _NAME.fullmatch(name).groups()
    kinds = {"made_of": dict, "sha256": str, "place": list, "files": dict}
    for field, kind in kinds.items():
        if not isinstance(record[field], kind):
            raise ValueError(f"{name}: {field} must be a {kind.__name__}")
    if identity.digest(record["made_of"]) != key:
        raise ValueError(f"{name}: its record is of another key")
    if hashlib.sha256(body).hexdigest() != record["sha256"]:
        raise ValueError(f"{name}: changed after it was made")
    if int(first) > int(last):
        raise ValueError(f"{name}: a span without replicates")


# -------------------------------------------------- a run


def keep(spec: Mapping[str, Any], rows: list[list[dict[str, Any]]], made: list[Result]) -> None:
    """Store the results that a run has just made.

    Parameters
    ----------
    spec : mapping
        Of the run, as `entries.Setting.spec`.
    rows : list of list of dict
        As `experiment.rows` gives them.
    made : list of Result
        Those to keep, from the first replicate on that was missing.
    """
    took, common = sum(os.times()[:4]), {"memory_mb": _peak_mb(), **provenance.here()}
    # What methods on the same rows take is not told apart; more rows take longer.
    weights = [(r.end - r.first) * r.made_of["data"].get("n", 1) for r in made]
    now = {(result.part, result.label): result.key for result in identity.results(spec)}
    for result, weight in zip(made, weights, strict=True):
        if now[result.part, result.label] != result.key:
            raise RuntimeError("a version or the code of a method changed while it ran: run again")
        own = [row for row in rows[result.part] if result.label in (None, row["method"])]
        facts = {"seconds": round(took * weight / sum(weights), 3), **common}
        write(result, own, place_of(spec, result), facts)


def _peak_mb() -> int | None:
    """The most memory that this process has had."""
    if resource is None:
        return None
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 2 ** (
        20 if sys.platform == "darwin" else 10
    )


def place_of(spec: Mapping[str, Any], result: Result) -> list[str | None]:
    """Where a result was first asked for: entry, setting, method."""
    part = spec.get("parts", [spec])[result.part]
    return [part["experiment"], part["name"], result.label]


def write(result: Result, rows: list[dict[str, Any]], place: list, facts: Mapping) -> None:
    """Write a result into the folder, with the record that says of what it was made, and how."""
    body = as_text(rows, result.label).to_csv(index=False).encode()
    dataset = result.made_of["data"].get("dataset")
    record = {"made_of": result.made_of, "sha256": hashlib.sha256(body).hexdigest(), "place": place}
    record |= {"files": records.sums(dataset) if dataset else {}, **facts}
    head = b"#" + json.dumps(record, sort_keys=True).encode() + b"\n"
    write_whole(FOLDER / f"{result.key}.{result.first}-{result.end - 1}.csv", head + body)


def as_text(rows: list[dict[str, Any]], label: str | None) -> pd.DataFrame:
    """Rows as they are stored: all cells as text, without the name of the method."""
    left_out = {"method"} if label is not None else set()
    columns = list(dict.fromkeys(name for row in rows for name in row if name not in left_out))
    return pd.DataFrame([[_cell(row.get(c)) for c in columns] for row in rows], columns=columns)


def _cell(value: Any) -> str:
    """A value as text: numbers with all their digits."""
    if value is None or value != value:
        return ""
    return f"{value:.17g}" if isinstance(value, float | np.floating) else str(value)


# -------------------------------------------------- a setting


def assemble(
    spec: Mapping[str, Any], store: Store, absent: Mapping[int, list[dict]] | None = None
) -> pd.DataFrame:
    """The rows of a run from its stored results, as one table.

    Parameters
    ----------
    spec : mapping
        As `entries.Setting.spec`.
    store : Store
        That has all of its results.
    absent : mapping, optional
        Place of a part -> rows that stand for results which cannot be had.
    """
    spec = identity.canonical(spec)
    told, wanted = [], defaultdict(list)
    for result in identity.results(spec):
        wanted[result.part].append(result)
    for place, part in enumerate(spec.get("parts", [spec])):
        order = {label: i for i, label in enumerate([None, *part["methods"]])} | {TRUTH: _FIRST}
        rows = []
        for result in wanted[place]:
            for row in store.rows(result).to_dict("records"):
                at = int(row["replicate"]), int(row.pop(STEP, 0) or 0), order[result.label]
                if result.label is not None:
                    row = {k: v for k, v in row.items() if v or k in ALWAYS}
                    row = {"method": result.label, **row}
                rows.append((at, row))
        rows.sort(key=lambda pair: pair[0])
        own = [row for _, row in rows] + (absent or {}).get(place, [])
        told += [{"experiment": part["experiment"], **part["axes"], **row} for row in own]
    return pd.DataFrame(told)


def as_csv(table: pd.DataFrame) -> bytes:
    """A table of results as it stands in a file."""
    return table.to_csv(index=False, float_format="%.17g").encode()


def put_together(spec: Mapping[str, Any], output: str | Path, here: Store) -> bool:
    """Write the file of results of a run, if all of its results are stored; whether they are."""
    if not all(map(here.has, identity.results(spec))):
        return False
    content, file = as_csv(assemble(spec, here)), Path(output)
    if not (file.is_file() and file.read_bytes() == content):
        write_whole(file, content)
    return True


def shown(work: Any, entry: str, here: Store) -> list[dict[str, Any]]:
    """The records of the stored results that an entry of a `project.Project` shows."""
    files = {*work.inputs(entry), *work.inputs(entry, "time")}
    runs = [run for file, run in work.runs(work.source(entry).name) if file in files]
    wanted = [result for run in runs for result in identity.results(run.spec)]
    found = {(one.key, r["sha256"]): r for one in wanted for r in here.records_of(one)}
    return list(found.values())


# -------------------------------------------------- an archive


def pack(wanted: Iterable[Result], scale: str, file: str | Path) -> int:
    """Write those of the wanted results that are here into an archive; how many files it has.

    Raises
    ------
    ValueError
        If none is here; the archive stays as it is.
    """
    here, index, content = folder(), {}, {}
    for result in wanted:
        for _, _, name in here.spans.get(result.key or "", ()):
            index[name], content[name] = here.record(name), here.read(name)
    if not content:
        raise ValueError(f"no results of scale {scale} to pack: snakemake makes them")
    text = json.dumps({"format": FORMAT, "ofslib": __version__, "scale": scale, "results": index})
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_STORED) as whole:
        whole.writestr(zipfile.ZipInfo(INDEX, _DATE), lzma.compress(text.encode()))
        for name in sorted(content):
            whole.writestr(zipfile.ZipInfo(f"{name}.xz", _DATE), lzma.compress(content[name]))
    write_whole(file, packed.getvalue())
    return len(content)


class Archive(Store):
    """The results of an archive; `scale` is that of its figures.

    An archive is not trusted: its files are stored as they are, each is an xz stream that is read
    with little memory, and what comes out is counted. Its numbers are the sender's.

    Raises
    ------
    CorruptFile
        If it is none, is damaged or is of another format.
    """

    def __init__(self, file: str | Path):
        self.file, self._sizes = file, {}
        try:
            self._zip = zipfile.ZipFile(io.BytesIO(Path(file).read_bytes()))
            index = json.loads(self._inflated(INDEX))
            if index["format"] != FORMAT:
                raise CorruptFile(f"{file} is of format {index['format']!r}; this reads {FORMAT}")
            self.scale, names = str(index["scale"]), {*self._zip.namelist()}
            if names != {INDEX, *(f"{name}.xz" for name in index["results"])}:
                raise CorruptFile(f"{file}: its index names other results than it holds")
            if wrong := [name for name in index["results"] if not _NAME.fullmatch(name)]:
                raise CorruptFile(f"{file}: {wrong[0]!r} is no name of a result")
            super().__init__(index["results"], index["results"].__getitem__, self._checked)
        except FileNotFoundError:
            raise
        except (*_DAMAGED, *_WRONG) as error:
            raise CorruptFile(f"{file} is no whole archive of results: {error}") from error

    def _checked(self, name: str) -> bytes:
        try:
            body = self._inflated(f"{name}.xz")
            check(self.record(name), name, body)
        except (*_DAMAGED, *_WRONG) as error:
            raise CorruptFile(f"{self.file}: {name}: {error}") from error
        return body

    def _inflated(self, name: str) -> bytes:
        """A file of the archive; what all reads take together is limited."""
        info = self._zip.getinfo(name)
        if info.compress_type != zipfile.ZIP_STORED or info.file_size != info.compress_size:
            raise ValueError(f"{name} is not stored as this version writes it")
        stream = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=MEMORY)
        others = sum(size for other, size in self._sizes.items() if other != name)
        left = LARGEST_INDEX if name == INDEX else LARGEST - others
        try:
            content = stream.decompress(self._zip.read(info), max_length=left + 1)
        except lzma.LZMAError as error:
            raise ValueError(f"{name}: {error}") from error
        self._sizes[name] = len(content)
        if len(content) > left or not stream.eof:
            raise ValueError(f"{name} is cut short, or larger than the {left} bytes that it may be")
        return content


@lru_cache(maxsize=2)
def _opened(file: Path, _changed: int) -> Archive:
    return Archive(file)


def archive(file: str | Path) -> Archive:
    """An archive, opened once as long as it does not change."""
    return _opened(Path(file).absolute(), Path(file).stat().st_mtime_ns)


def unpack(wanted: Iterable[Result], there: Archive) -> dict[str, str]:
    """Take the wanted results of an archive that are not here.

    Every file is read and checked before the first is written.

    Returns
    -------
    dict
        Name of each file in the archive -> why it was not taken; nothing if it is here now.
    """
    here, sets, new = folder(), {}, {}
    found = dict.fromkeys(there.names, "no result of this checkout: other versions or settings")
    for result in wanted:
        for _, _, name in there.spans.get(result.key or "", ()):
            found[name] = ""
            if name not in here.names:
                new[name] = there.read(name)
                if dataset := result.made_of["data"].get("dataset"):
                    sets[dataset] = records.of_archive(dataset, there.record(name)["files"])
    for record in sets.values():
        records.write(record)
    for name, body in new.items():
        head = b"#" + json.dumps(there.record(name), sort_keys=True).encode() + b"\n"
        write_whole(FOLDER / name, head + body)
    return found


def put_all_together(work: Any) -> list[str]:
    """Write all files of results of a `project.Project` whose results are stored: their names.

    Snakemake takes note of what they were made of: without it, no later change of an entry shows.
    """
    here = folder()
    made = [file for file, run in work.runs() if put_together(run.spec, file, here)]
    if made:
        command = [sys.executable, "-m", "snakemake", *made, "--touch", "--force", "--nolock"]
        command += ["--cores", "1", "--config", f"scale={work.scale}"]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"unpacked, but Snakemake failed:\n{done.stdout}{done.stderr}")
    return made
