"""What a file of rows holds, counted in one pass, beside what is published of it."""

from pathlib import Path
from typing import Any

import numpy as np

from ofslib._files import CorruptFile
from ofslib.datasets.readers import rows_of

_SHOWN = 8  # values of the first row
_LABELS = 100  # different labels that are counted


def of(row: dict[str, Any], paths: list[Path]) -> dict[str, Any]:
    """Rows, columns, nonzeros, how often each label occurs, and how the first row begins."""
    rows = nonzeros = columns = 0
    labels: dict[str, int] | None = {}
    first = ""
    for piece in rows_of(row, paths).pieces():
        if not rows and len(piece.y):
            first = _begin(piece)
        rows, nonzeros = rows + len(piece.y), nonzeros + len(piece.data)
        columns = max(columns, piece.columns)
        if labels is not None:
            for label, count in zip(*np.unique(piece.y, return_counts=True), strict=True):
                labels[_word(label)] = labels.get(_word(label), 0) + int(count)
            labels = labels if len(labels) <= _LABELS else None
    found = {"rows": rows, "columns": columns, "nonzeros": nonzeros, "first": first}
    return found | ({} if labels is None else {"labels": dict(sorted(labels.items()))})


def check(row: dict[str, Any], split: str, found: dict[str, Any]) -> None:
    """Raise CorruptFile, naming all that differs, unless `of` found what the registry says."""
    asked = {
        "rows": row[f"n_{split}"],
        "nonzeros": row[f"{split}_nonzeros"],
        "labels": {k: int(n) for k, _, n in _pairs(row[f"{split}_labels"])},
        "first": row[f"{split}_first"],
    }
    wrong = {name: value for name, value in asked.items() if value and found.get(name) != value}
    if "first" in wrong and found["first"].startswith(wrong["first"]):
        del wrong["first"]
    if row["n_features"] and found["columns"] > row["n_features"]:
        wrong["columns"] = row["n_features"]
    if wrong:
        told = "; ".join(f"{name}: expected {wrong[name]}, got {found.get(name)}" for name in wrong)
        raise CorruptFile(
            f"{row['name']}, {split}: not what is published of it ({told}). The file stays and is "
            "not used: remove it to fetch it again, or correct the row of the registry"
        )


def _pairs(text):
    return (pair.rpartition(":") for pair in text.split())


def _begin(piece):
    """The first row as a text of LIBSVM, six digits a value."""
    end = piece.indptr[1] - piece.indptr[0]
    values = list(zip(piece.indices[:end], piece.data[:end], strict=True))[:_SHOWN]
    return " ".join([_word(piece.y[0]), *(f"{j + 1}:{value:.6g}" for j, value in values)])


def _word(label):
    return label if isinstance(label, str) else f"{label:g}"
