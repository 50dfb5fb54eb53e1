"""Bring a data set and record what came of it: resources/<name>.json."""

import hashlib
import json
import sys
from pathlib import Path
from typing import Any

from ofslib import datasets
from ofslib._files import write_whole


def obtain(name: str, folder: str, mode: str) -> dict[str, Any]:
    """The record of a data set: fetched, or the reason why not.

    With mode "require" an obstacle is an error; with "none" nothing is tried.
    """
    if mode == "none":
        return {"name": name, "status": "not fetched", "reason": "real_data is none", "detail": ""}
    try:
        paths = datasets.fetch(name, folder)
    except (datasets.NotObtainable, datasets.CorruptFile) as error:
        if mode == "require":
            raise
        damaged = isinstance(error, datasets.CorruptFile)
        reason = "what came is not the pinned file" if damaged else "not to be had from its sources"
        return {"name": name, "status": "not fetched", "reason": reason, "detail": str(error)}
    sums = {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in paths}
    return {"name": name, "status": "fetched", "sha256": sums}


if "snakemake" in globals():
    call = globals()["snakemake"]
    try:
        folder = str(Path(call.output[0]).parent)
        found = obtain(call.wildcards.dataset, folder, call.params.mode)
    except Exception as error:
        Path(call.log[0]).write_text(f"{error}\n", encoding="utf-8")
        sys.exit(f"{call.wildcards.dataset}: {error}")
    Path(call.log[0]).write_text(f"{found['status']}\n", encoding="utf-8")
    found["attempt"] = call.params.attempt
    write_whole(call.output[0], json.dumps(found, indent=2) + "\n")
