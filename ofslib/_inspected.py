"""What `ofslib inspect` says of the labels of a file, and of the memory that learning takes."""

from typing import Any

import numpy as np

from ofslib._printing import SHOWN, cell
from ofslib.algorithms.sfsa import SFSAClassifier


def about_labels(y) -> dict[str, Any]:
    """How often each occurs, and from where to where numbers go; None where that says nothing."""
    found = dict(zip(*np.unique(y, return_counts=True), strict=True))
    without, words = y[0] != y[0], y.dtype.kind == "U"
    counts = {cell(k): int(n) for k, n in found.items()} if len(found) <= 100 else None
    if without:
        return {"labels": None, "label_range": None}
    return {"labels": counts, "label_range": None if words else [y.min(), y.max()]}


def labels_said(about, y) -> str:
    """The same to a reader."""
    if y[0] != y[0]:
        return "none, unless --label says which column"
    if about["labels"] and len(about["labels"]) <= SHOWN:
        return ", ".join(f"{k} ({100 * n / len(y):.1f} %)" for k, n in about["labels"].items())
    if about["label_range"] is None:
        return f"{len(set(y.tolist())):,} different words"
    return f"numbers from {y.min():g} to {y.max():g}, mean {y.mean():g}: --task regression"


def state_bytes(width: int) -> int:
    """Memory of what SFSA learns, twice: a block that is refused must leave no trace."""

    def held(part) -> int:
        return sum(map(held, part)) if isinstance(part, tuple) else np.asarray(part).nbytes

    return 2 * held(SFSAClassifier()._new_state(1000)) * width // 1000
