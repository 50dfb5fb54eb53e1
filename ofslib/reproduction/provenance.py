"""With what, where and when results and figures were made.

PROVENANCE.json beside the figures has a record of each drawn entry, with its own scale.
"""

import datetime
import hashlib
import json
import os
import platform
import subprocess
from collections.abc import Iterable, Mapping
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_info

from ofslib._files import CorruptFile, write_whole
from ofslib.reproduction import machine, records
from ofslib.reproduction.project import Project

PACKAGES = ("numpy", "scipy", "numba", "pandas", "scikit-learn", "matplotlib", "snakemake")
# What is the same for all that one machine makes between two upgrades.
COMMON = ("machine", "blas", "system", "python", *PACKAGES)


# -------------------------------------------------- here and now


def here() -> dict[str, str]:
    """The commit, the time, and with what and on what kind of machine things are made here."""
    now = datetime.datetime.now(datetime.UTC)
    return {
        "commit": _commit(),
        "date": now.isoformat(timespec="seconds"),
        "machine": machine.kind(),
        "blas": _blas(),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        **{name: version(name) for name in PACKAGES},
    }


def _blas() -> str:
    """Which of its kernels BLAS takes here: they differ in speed, and in the last digits."""
    import_module("numpy")  # which loads its BLAS
    found = (one for one in threadpool_info() if one["user_api"] == "blas")
    names = {f"{b['internal_api']} {b.get('architecture') or ''}".strip() for b in found}
    return ", ".join(sorted(names)) or "unknown"  # as threadpoolctl knows no Accelerate


def _commit() -> str:
    """The commit of the sources, marked if they (not what is drawn) were changed since."""
    drawn = [":!figures", ":!report.html"]
    changed = ["status", "--porcelain", "--untracked-files=no", "--", ".", *drawn]
    try:
        return _git("rev-parse", "HEAD") + ("-dirty" if _git(*changed) else "")
    except (OSError, subprocess.SubprocessError):
        return "unknown (no git checkout)"


def _git(*words: str) -> str:
    done = subprocess.run(["git", *words], capture_output=True, text=True, check=True, timeout=20)
    return done.stdout.strip()


# -------------------------------------------------- figures


def note(work: Project, entry: str, runs: Iterable[Mapping[str, Any]]) -> None:
    """Write down from what the figures of an entry were drawn just now: its only writer.

    Parameters
    ----------
    work : Project
    entry : str
    runs : iterable of mapping
        The records of the results that they show.
    """
    shown = (*work.shown(entry), *work.shown(entry, "time"))
    facts: dict[str, Any] = {"scale": work.scale, "real_data": work.real_data, "seed": work.seed}
    facts |= _split(here())
    facts["figures"] = {
        Path(file).name: hashlib.sha256((work.root / file).read_bytes()).hexdigest()
        for file in work.figures(entry)
    }
    lacking = records.missing({run.dataset for run in shown if run.dataset})
    facts["missing"] = {record["name"]: records.why(record) for record in lacking}
    if runs := list(runs):
        dates = sorted(run["date"] for run in runs)
        environments = [_split(run)["with"] for run in runs]
        facts["runs"] = {
            "number": len(runs),
            "commit": sorted({run["commit"] for run in runs}),
            "from": dates[0],
            "to": dates[-1],
            "cpu_hours": round(sum(run["seconds"] or 0 for run in runs) / 3600, 4),
            "memory_mb": max(run["memory_mb"] or 0 for run in runs),
            "with": [e for n, e in enumerate(environments) if e not in environments[:n]],
        }
    file = work.root / work.provenance
    with machine.locked(work.root / ".snakemake/provenance.lock"):  # by other jobs
        write(file, read(file) | {entry: facts})


def _split(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Commit and date, and what is common to many results as one item, "with"."""
    own = {key: facts[key] for key in ("commit", "date")}
    return own | {"with": {key: facts[key] for key in COMMON if key in facts}}


def read(file: str | os.PathLike) -> dict[str, dict[str, Any]]:
    """The records of all entries in a PROVENANCE.json; none if there is no such file.

    Each has scale, commit and date (of the drawing), with (the machine and the packages), figures
    (file -> sha256; not if drawn by an early version), missing (data sets) and runs, if it shows
    any: number of results, commit (all of theirs), from, to (dates), cpu_hours, memory_mb and with
    (a list).

    Raises
    ------
    CorruptFile
        If it is not such a file.
    """
    try:
        entries = json.loads(Path(file).read_text(encoding="utf-8"))
        if all({"scale", "commit", "date", "with"} <= facts.keys() for facts in entries.values()):
            return entries
    except FileNotFoundError:
        return {}
    except (ValueError, AttributeError):
        pass
    raise CorruptFile(
        f"{file} does not say from what each entry was made; take it from the repository "
        "again, or remove it and draw the figures anew"
    )


def write(file: str | os.PathLike, entries: Mapping[str, dict[str, Any]]) -> None:
    """Write a PROVENANCE.json of these records."""
    write_whole(file, json.dumps(dict(sorted(entries.items())), indent=1) + "\n")
