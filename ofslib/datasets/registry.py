"""The table of data sets, checked."""

import csv
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

SHIPPED = Path(__file__).with_name("datasets.csv")
READERS = "ar_mat ecml_mat ecml_mat_sparse esl_text idx libsvm skfeature_mat vw".split()


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
_COUNTS = ("n_train", "n_test", "n_features")


def registry(path: str | os.PathLike | None = None) -> "pd.DataFrame":
    """Read and check the table of data sets.

    Parameters
    ----------
    path : path-like, optional
        A table of further data sets, with the columns of `ofslib/datasets/datasets.csv`.

    Returns
    -------
    pandas.DataFrame
        One row per data set, those of ofslib first, indexed by its name.

    Raises
    ------
    ValueError
        Naming the row and column of a wrong cell and what is allowed there.
    """
    import pandas as pd

    return pd.DataFrame(read_rows(path).values()).set_index("name")


def read_rows(path: str | os.PathLike | None = None) -> dict[str, dict[str, Any]]:
    """The rows of `registry` by name, each as {column: cell}, without importing pandas."""
    rows: dict[str, dict[str, Any]] = {}
    for table in [SHIPPED] if path is None else [SHIPPED, Path(path)]:
        for number, row in enumerate(_read(table), start=1):
            where = f"{table}, row {number} ({row['name']}), column"
            _check(where, row)
            if row["name"] in rows:
                raise ValueError(f"{where} name: another data set has this name")
            rows[row["name"]] = row | {count: int(row[count] or 0) for count in _COUNTS}
    return rows


def find_row(name: str, path: str | os.PathLike | None = None) -> dict[str, Any]:
    """The row of one data set; a ValueError names the data sets there are."""
    rows = read_rows(path)
    if name not in rows:
        raise ValueError(f"no data set {name!r}; the registry knows {', '.join(rows)}")
    return rows[name]


def splits(row: dict[str, Any], split: str | None = None) -> list[str]:
    """The splits that a data set has, or the one asked for."""
    there = ["train", "test"] if row["test"] else ["train"]
    if split not in (None, *there):
        known = " or ".join(there)
        raise ValueError(f"{row['name']}: expected split None, {known}; got {split!r}")
    return [split] if split else there


def _read(path):
    if not path.is_file():
        raise FileNotFoundError(f"{path}: no table of data sets; give its path (registry_path)")
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            table = csv.DictReader(file, restval="")
            found, rows = table.fieldnames, list(table)
    except (UnicodeDecodeError, csv.Error) as error:
        raise ValueError(
            f"{path}: expected a table in UTF-8 with commas between ({error})"
        ) from error
    if found != list(_COLUMNS):
        raise ValueError(
            f"{path}: expected columns {list(_COLUMNS)}, with commas between; got {found}"
        )
    return rows


def _check(where, row):
    if None in row:
        raise ValueError(f"{where} notes: expected no cell after it; got {row[None]}")
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
