"""With what, where and when results and figures were made.

The stamp of a drawn entry is the record of its figures; PROVENANCE.json beside the figures holds
those of all entries, each with its own scale.
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
from ofslib.reproduction import machine

PACKAGES = ("numpy", "scipy", "numba", "pandas", "scikit-learn", "matplotlib", "snakemake")
# What is the same for all that one machine makes between two upgrades.
COMMON = ("machine", "blas", "system", "python", *PACKAGES)
# What each record of figures has.
_WHOLE = {"scale", "commit", "date", "with", "missing"}


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


def of_figure(
    scale: str,
    runs: Iterable[dict[str, Any]],
    missing: Mapping[str, str],
    figures: Iterable[str],
    **asked: Any,
) -> dict[str, Any]:
    """The record of the figures of an entry that were just drawn.

    Parameters
    ----------
    scale : str
    runs : iterable of dict
        The records of the results that they show.
    missing : mapping
        Data sets that could not be had, and why.
    figures : iterable of str
        Their own files, of which the names and the sha256 are kept.
    **asked : Any
        What else the configuration was asked for: seed, real_data.
    """
    facts = {"scale": scale, **asked, **_split(here()), "figures": _contents(figures)}
    facts["missing"], runs = dict(missing), list(runs)
    if runs:
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
    return facts


def _contents(files: Iterable[str | os.PathLike]) -> dict[str, str]:
    """The sha256 of files, by their names without folders."""
    return {Path(f).name: hashlib.sha256(Path(f).read_bytes()).hexdigest() for f in files}


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
        content = json.loads(Path(file).read_text(encoding="utf-8"))
        common = content["environments"]
        for facts in content["entries"].values():
            facts["with"] = common[facts["with"]]
            if "runs" in facts:
                facts["runs"]["with"] = [common[number] for number in facts["runs"]["with"]]
        return content["entries"]
    except FileNotFoundError:
        return {}
    except (ValueError, TypeError, KeyError, IndexError, AttributeError) as error:
        raise CorruptFile(
            f"{file} does not say from what each entry was made; take it from the repository "
            "again, or remove it and draw the figures anew"
        ) from error


def later(
    file: str | os.PathLike,
    stamps: Mapping[str, str | os.PathLike],
    figures: Mapping[str, Iterable[str | os.PathLike]],
) -> dict[str, str | os.PathLike]:
    """The stamps of what was drawn after a PROVENANCE.json was written: by a run that was killed.

    Of figures only whose content is that which the stamp tells: they may have changed since, as by
    git, and a stamp may be of a scale that drew into another folder.

    Parameters
    ----------
    file : str or path
        The PROVENANCE.json.
    stamps, figures : mapping
        Entry -> its stamp; the files that its notebook makes.
    """
    drawn = {entry: _drawn(stamp, figures[entry]) for entry, stamp in stamps.items()}
    known = read(file) if any(drawn.values()) else {}
    dates = {entry: facts["date"] for entry, facts in known.items()}
    return {entry: stamps[entry] for entry, date in drawn.items() if date > dates.get(entry, "")}


def _drawn(stamp: str | os.PathLike, figures: Iterable[str | os.PathLike]) -> str:
    """When these figures were drawn, as text that sorts by time; nothing if not by this stamp."""
    try:
        facts = json.loads(Path(stamp).read_text(encoding="utf-8"))
        same = facts["figures"] == _contents(figures) and _WHOLE <= facts.keys()
    except (OSError, ValueError, TypeError, KeyError):
        return ""
    return facts["date"] if same else ""


def update(file: str | os.PathLike, stamps: Mapping[str, str | os.PathLike]) -> None:
    """Take the records of these entries, by their stamps, into a PROVENANCE.json."""
    known = read(file)
    for entry, stamp in stamps.items():
        known[entry] = json.loads(Path(stamp).read_text(encoding="utf-8"))
    common: list[dict[str, str]] = []

    def number(environment: dict[str, str]) -> int:
        if environment not in common:
            common.append(environment)
        return common.index(environment)

    for entry, facts in sorted(known.items()):
        facts = known[entry] = facts | {"with": number(facts["with"])}
        if "runs" in facts:
            together = [number(one) for one in facts["runs"]["with"]]
            facts["runs"] = facts["runs"] | {"with": together}
    content = {"environments": common, "entries": dict(sorted(known.items()))}
    text = json.dumps(content, indent=1) + "\n"
    # What depends on it is not made again where it stays the same.
    if not (Path(file).is_file() and Path(file).read_text(encoding="utf-8") == text):
        write_whole(file, text)
