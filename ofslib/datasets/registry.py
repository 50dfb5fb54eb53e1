"""The table of data sets, checked."""

import csv
import os
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

SHIPPED = Path(__file__).with_name("datasets.csv")
READERS = """
ar_mat arrow csv ecml_mat ecml_mat_sparse esl_text idx libsvm npy npz parquet skfeature_mat tsv vw
""".split()
# Those that need to be told which column holds the labels, and those that may be.
LABELLED, MAY_BE_LABELLED = {"arrow", "csv", "npy", "parquet", "tsv"}, {"npz"}
# Of whose files a split has one: it is read block by block.
BY_BLOCKS = LABELLED | MAY_BE_LABELLED | {"libsvm", "vw"}


def _several(pattern):
    return f"{pattern}( {pattern})*"


_PATH, _SUM = r"[\w-][\w./-]*", r"(sha256:[0-9a-f]{64}|git:[0-9a-f]{40})"
_URL = r"https?://[^\s/]+/\S*[^\s/]"
_SUMS = (f"({_several(_SUM)})?", "sha256:<64 digits> or git:<40 digits> for each file, single "
         "spaces between, or nothing for a file of your own or of an address")  # fmt: skip
_SIZES = (f"({_several('[0-9]+')})?", "the size of each file, or nothing beside git: checksums")
_FILES = (f"({_several('[^ ]+')})?", "paths or addresses, single spaces between")
_COUNT, _COUNTED = "[0-9]*", "nothing where it is not known"
_LABELS = (
    f"({_several('[^ :]+:[0-9]+')})?",
    "label:count for each label, as -1:56 1:44, or nothing",
)
_FIRST = (r"(\S+( [0-9]+:\S+)*)?", "how the first row begins, as 1 3:0.5 7:2, or nothing")
_COLUMNS = {  # column: (pattern of the whole cell, what is allowed in words)
    "name": ("[a-z0-9_]+", "small letters, digits and _"),
    "title": (".*", "the name to show, or nothing"),
    "reader": ("|".join([*READERS, r"[A-Za-z_][\w.]*:[A-Za-z_]\w*"]),
               "one of " + ", ".join(READERS) + ", or module:function of your own"),
    "label": (r"\S*", "name or position (from 0) of the column with the labels, or nothing"),
    "repository": (r"([\w.-]+/[\w.-]+)?", "owner/repository, or nothing"),
    "commit": ("([0-9a-f]{40})?", "a commit of 40 hexadecimal digits"),
    "train": (f"{_several('[^ ]+')}", _FILES[1]),
    "train_checksum": _SUMS,
    "train_bytes": _SIZES,
    "test": (_FILES[0], _FILES[1] + ", or nothing"),
    "test_checksum": _SUMS,
    "test_bytes": _SIZES,
    "n_train": (_COUNT, f"a number of rows, or {_COUNTED}"),
    "n_test": (_COUNT, f"a number of rows, or {_COUNTED}"),
    "n_features": (_COUNT, f"a number of columns without the label, or {_COUNTED}"),
    "train_nonzeros": (_COUNT, f"a number of values that are not 0, or {_COUNTED}"),
    "test_nonzeros": (_COUNT, f"a number of values that are not 0, or {_COUNTED}"),
    "train_labels": _LABELS,
    "test_labels": _LABELS,
    "train_first": _FIRST,
    "test_first": _FIRST,
    "task": ("classification|regression", "classification or regression"),
    "licence": (".*", "what is known of the licence"),
    "citation": (".*", "authors, title, venue, year"),
    "notes": (".*", "any words"),
}  # fmt: skip
_NEEDED = ("name", "reader", "train", "task")
_COUNTS = ("n_train", "n_test", "n_features", "train_nonzeros", "test_nonzeros")


def registry(path: str | os.PathLike | None = None) -> "pd.DataFrame":
    """Read and check the table of data sets.

    Parameters
    ----------
    path : path-like, optional
        A table of further data sets, with columns of `ofslib/datasets/datasets.csv`: name, reader,
        train and task, and of the others those that are needed.

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
            row["title"] = row["title"] or row["name"]
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
        raise FileNotFoundError(
            f"{path}: no table of data sets; give its path by registry_path (--registry)"
        )
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            table = csv.DictReader(file, restval="")
            found, rows = table.fieldnames, list(table)
    except (UnicodeDecodeError, csv.Error) as error:
        raise ValueError(
            f"{path}: expected a table in UTF-8 with commas between ({error})"
        ) from error
    found = found or []
    missing = [column for column in _NEEDED if column not in found]
    unknown = [column for column in found if column not in _COLUMNS or found.count(column) > 1]
    if missing or unknown:
        wrong = f"{', '.join(missing)} missing" if missing else f"{unknown[0]!r} is none, or twice"
        raise ValueError(
            f"{path}: expected columns of {list(_COLUMNS)}, with commas between, {_NEEDED} among "
            f"them; got {found}: {wrong}"
        )
    return [dict.fromkeys(_COLUMNS, "") | row for row in rows]


def _check(where, row):
    if None in row:
        raise ValueError(f"{where} notes: expected no cell after it; got {row[None]}")
    for column, (pattern, allowed) in _COLUMNS.items():
        if not re.fullmatch(pattern, row[column]):
            raise ValueError(f"{where} {column}: expected {allowed}; got {row[column]!r}")
    if bool(row["repository"]) != bool(row["commit"]):
        raise ValueError(f"{where} commit: expected one exactly where there is a repository")
    for split in ("train", "test"):
        _check_files(where, row, split)
    reader, label = row["reader"], row["label"]
    if ":" in reader and re.split("[.:]", reader)[0] in sys.stdlib_module_names:
        raise ValueError(f"{where} reader: expected a function of your own; got {reader!r}")
    if reader in LABELLED and not label:
        raise ValueError(
            f"{where} label: expected the column with the labels, which {reader} needs"
        )
    if label and reader in READERS and reader not in LABELLED | MAY_BE_LABELLED:
        raise ValueError(f"{where} label: expected nothing, {reader} knows it; got {label!r}")


def _check_files(where, row, split):
    files, sums, sizes = (row[split + end].split() for end in ("", "_checksum", "_bytes"))
    pinned = bool(row["repository"])
    for file in files:
        if pinned and not re.fullmatch(_PATH, file):
            raise ValueError(
                f"{where} {split}: expected paths in the repository, single spaces between; got "
                f"{file!r}"
            )
        if not pinned and "://" in file and not re.fullmatch(_URL, file):
            raise ValueError(
                f"{where} {split}: expected a path, or an address of a file as "
                f"https://host/file; got {file!r}"
            )
    if len(sums) != len(files) and (pinned or sums):
        raise ValueError(f"{where} {split}_checksum: expected {len(files)}, got {len(sums)}")
    if len(sizes) != len(files) and (sizes or (pinned and "sha256:" in row[f"{split}_checksum"])):
        raise ValueError(f"{where} {split}_bytes: expected {len(files)}, got {len(sizes)}")
    if bool(files) != (row[f"n_{split}"] not in ("", "0")) and (pinned or not files):
        raise ValueError(f"{where} n_{split}: expected rows exactly where there are files")
    if pinned and row["n_features"] in ("", "0"):
        raise ValueError(f"{where} n_features: expected a number of columns without the label")
    if row["reader"] in BY_BLOCKS and len(files) > 1:
        raise ValueError(
            f"{where} {split}: expected one file for {row['reader']}; got {len(files)} (a path "
            "must not have blanks)"
        )
    if len({file.rpartition("/")[2] for file in files}) < len(files):
        raise ValueError(f"{where} {split}: expected files of different names; got {files}")
