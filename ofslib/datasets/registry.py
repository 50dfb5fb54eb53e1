"""The table of data sets, checked."""

import re
from pathlib import Path

import numpy as np
import pandas as pd

from ofslib.datasets.readers import READERS

REGISTRY = Path(__file__).parents[1] / "config" / "datasets.csv"


def _several(pattern):
    return f"{pattern}( {pattern})*"


_PATH, _SUM = r"[\w-][\w./-]*", r"(sha256:[0-9a-f]{64}|git:[0-9a-f]{40})"
_SUMS_TEXT = "sha256:<64 digits> or git:<40 digits> for each file, single spaces between"
_SIZES = (f"({_several('[0-9]+')})?", "the size of each file, or nothing beside git: checksums")
_COLUMNS = {  # column: (pattern of the whole cell, what is allowed in words)
    "name": ("[a-z0-9_]+", "small letters, digits and _"),
    "title": (".+", "the name to show"),
    "reader": ("|".join(READERS), "one of " + ", ".join(READERS)),
    "repository": (r"[\w.-]+/[\w.-]+", "owner/repository"),
    "commit": ("[0-9a-f]{40}", "a commit of 40 hexadecimal digits"),
    "train": (_several(_PATH), "paths in the repository, single spaces between"),
    "train_checksum": (_several(_SUM), _SUMS_TEXT),
    "train_bytes": _SIZES,
    "test": (f"({_several(_PATH)})?", "paths in the repository, single spaces between, or nothing"),
    "test_checksum": (f"({_several(_SUM)})?", _SUMS_TEXT),
    "test_bytes": _SIZES,
    "n_train": ("[0-9]+", "a number of rows"),
    "n_test": ("[0-9]*", "a number of rows, or nothing"),
    "n_features": ("[0-9]+", "a number of columns without the label"),
    "task": ("classification|regression", "classification or regression"),
    "licence": (".+", "what is known of the licence"),
    "citation": (".+", "authors, title, venue, year"),
    "notes": (".*", "any words"),
}


def registry(path=None):
    """Read and check the table of data sets.

    Parameters
    ----------
    path : path-like, optional
        The table; `config/datasets.csv` of the source checkout when not given.

    Returns
    -------
    pandas.DataFrame
        One row per data set, indexed by its name.

    Raises
    ------
    ValueError
        Naming the row and column of a wrong cell and what is allowed there.
    """
    path = Path(path or REGISTRY)
    if not path.is_file():
        raise FileNotFoundError(f"{path}: no table of data sets; give its path (registry_path)")
    table = pd.read_csv(path, dtype=str, keep_default_na=False)
    if list(table.columns) != list(_COLUMNS):
        raise ValueError(f"{path}: expected columns {list(_COLUMNS)}, got {list(table.columns)}")
    seen = set()
    for number, row in enumerate(table.to_dict("records"), start=1):
        _check_row(f"{path}, row {number} ({row['name']}), column", row)
        if row["name"] in seen:
            raise ValueError(f"{path}, row {number}, column name: {row['name']!r} is there twice")
        seen.add(row["name"])
    counts = ["n_train", "n_test", "n_features"]
    table[counts] = table[counts].replace("", "0").astype(np.int64)
    return table.set_index("name")


def _check_row(where, row):
    for column, (pattern, allowed) in _COLUMNS.items():
        if not re.fullmatch(pattern, row[column]):
            raise ValueError(f"{where} {column}: expected {allowed}; got {row[column]!r}")
    for split in ("train", "test"):
        files, sums, sizes = (row[split + end].split() for end in ("", "_checksum", "_bytes"))
        if len(sums) != len(files):
            raise ValueError(f"{where} {split}_checksum: expected {len(files)}, got {len(sums)}")
        if len(sizes) != len(files) and (sizes or "sha256:" in row[f"{split}_checksum"]):
            raise ValueError(f"{where} {split}_bytes: expected {len(files)}, got {len(sizes)}")
        if bool(files) != (row[f"n_{split}"] not in ("", "0")):
            raise ValueError(f"{where} n_{split}: expected rows exactly where there are files")


def row_of(name, registry_path, what="no data set"):
    table = registry(registry_path)
    if name not in table.index:
        raise ValueError(f"{what} {name!r}; the registry knows {', '.join(table.index)}")
    return table.loc[name]


def splits_of(row, split):
    there = ["train", "test"] if row["test"] else ["train"]
    if split not in (None, *there):
        raise ValueError(f"{row.name}: expected split None, {' or '.join(there)}; got {split!r}")
    return [split] if split else there
