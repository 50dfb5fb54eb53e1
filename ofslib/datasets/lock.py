"""What was found of files without a published checksum when they first came; enforced since."""

import json
import os
from pathlib import Path
from typing import Any

from ofslib._files import CorruptFile, write_whole


def path_of(name: str, folder: str | os.PathLike, registry_path: str | os.PathLike | None) -> Path:
    """The lock of a data set: beside the table of its registry, else beside the files.

    A file of its own, `<table>.lock/<name>.json`, so that several sets may be fetched at once.
    """
    table = Path(folder, "datasets.csv") if registry_path is None else Path(registry_path)
    return table.with_suffix(".lock") / f"{name}.json"


def read(path: Path) -> dict[str, Any]:
    """`files`, each with checksum, bytes and address, and the facts of the splits.

    Raises
    ------
    CorruptFile
        If it is there, and not what `write` writes.
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


def write(path: Path, known: dict[str, Any]) -> None:
    """Write a lock, whole."""
    write_whole(path, json.dumps(known, indent=2, sort_keys=True) + "\n")
