"""PROVENANCE.json beside the figures: from what, with what, where and when they were made."""

import datetime
import json
import platform
import subprocess
from importlib.metadata import version
from typing import Any

from ofslib._files import write_whole
from ofslib.reproduction import machine, records

PACKAGES = ("numpy", "scipy", "numba", "pandas", "scikit-learn", "matplotlib", "snakemake")


def commit() -> str:
    """The commit of the sources, marked if they (not the figures) were changed since."""
    changed = ["status", "--porcelain", "--untracked-files=no", "--", ".", ":!figures"]
    try:
        return _git("rev-parse", "HEAD") + ("-dirty" if _git(*changed) else "")
    except (OSError, subprocess.SubprocessError):
        return "unknown (no git checkout)"


def _git(*words: str) -> str:
    done = subprocess.run(["git", *words], capture_output=True, text=True, check=True, timeout=20)
    return done.stdout.strip()


def collect(scale: str, seed: int, real_data: str, files: list[str]) -> dict[str, Any]:
    """All facts; the machine by its kind only. `files` are the records of the data sets."""
    found = [record for record in map(records.read, files) if record["status"] != "fetched"]
    now = datetime.datetime.now(datetime.UTC)
    return {
        "scale": scale,
        "seed": seed,
        "real_data": real_data,
        "missing": {r["name"]: f"{r['status']} ({r['reason']})" for r in found},
        "commit": commit(),
        "date": now.isoformat(timespec="seconds"),
        "machine": machine.kind(),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        **{name: version(name) for name in PACKAGES},
    }


if "snakemake" in globals():
    call = globals()["snakemake"]
    facts = collect(**call.params.facts, files=list(call.input.records))
    write_whole(call.output[0], json.dumps(facts, indent=2) + "\n")
