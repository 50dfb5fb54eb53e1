"""ofslib inspect: what is in a file, and what to learn from it needs."""

import pickle
import time
from typing import Any

import numpy as np

import ofslib
from ofslib.cli.printing import SHOWN, Report, cell, few, size_of
from ofslib.cli.rows import ANY_WIDTH, opened, read_once


def inspect(args) -> Report:
    """What is in a file, how fast it is read, and what to learn from it would need."""
    from ofslib.streams.checkpoint import reading
    from ofslib.streams.diagnostics import scales

    stream = read_once(args)
    # What reads it may have to be compiled or imported first.
    first = next((X for X, *_ in stream), None)
    began = time.monotonic()
    width = 0 if stream.n_columns == ANY_WIDTH else stream.n_columns
    values, labels = 0, []
    with reading(stream, not args.quiet):
        for X, y, *_ in stream:
            values, width = values + X.nnz, max(width, int(X.indices.max(initial=-1)) + 1)
            labels.append(y)
    seconds, y = time.monotonic() - began, np.concatenate(labels or [[]])
    rows, size, width = len(y), stream.text_bytes, max(width, stream.reached)
    if not rows:
        raise ValueError(f"{args.file}: expected rows, got none")
    about, labels_said = _labels(y)
    kept = opened(args)  # as `select` opens it where rows are read again
    density, cached = values / max(1, rows * width), 12 * (values + rows)
    needs = {"sfsa_bytes": _state_bytes(width), "averages_bytes": 8 * width**2}
    data = {"file": args.file, "rows": rows, "features": width, "values": values}
    data |= {"density": density, **about}
    data["names"] = None if stream.feature_names is None else stream.feature_names.tolist()
    data |= {"seconds": seconds, "rows_per_second": rows / seconds, "bytes": size}
    data["needs"] = needs | {"cache_bytes": cached}
    data["cache"] = {"path": str(kept.cache_path or ""), "bytes": kept.cache_bytes}
    speed = f", {size_of(size / seconds)} a second" if size else ""
    sfsa, averages = map(size_of, needs.values())
    disk = f"{size_of(cached)} for a cache of the parsed rows"
    if kept.cache_bytes:
        disk = f"{size_of(kept.cache_bytes)} in the cache {kept.cache_path}"
    pairs = {
        "rows": f"{rows:,}",
        "features": f"{width:,}",
        "values": f"{values:,}, {values / rows:.1f} a row, density {100 * density:.3g} %",
        "labels": labels_said,
        "reading": f"{seconds:,.1f} s: {rows / seconds:,.0f} rows a second{speed}",
        "memory": f"{sfsa} for sfsa, {averages} for averages",
        "disk": disk,
    }
    data["scales"] = None
    if found := scales(first, range(first.shape[0])):
        data["scales"] = found._asdict()
        message = found.message(data["names"], first=not (args.zero_based or args.hashed))
        pairs["scales"] = message + found.unlike * ": standardise the features"
    if names := data["names"]:
        pairs["names"] = few(names)
    return [f"{name:10}{text}" for name, text in pairs.items()], data


def _labels(y) -> tuple[dict[str, Any], str]:
    """How often each label occurs, and the range of numbers: for --json, and for a reader."""
    values, counts = np.unique(y, return_counts=True)
    words = y.dtype.kind == "U"
    if y[0] != y[0]:
        none = {"labels": None, "label_range": None}
        return none, "none, unless --label says which column"
    listed = dict(zip(map(cell, values[:100].tolist()), counts.tolist(), strict=False))
    about = {
        "labels": listed if len(values) <= 100 else None,
        "label_range": None if words else [values[0], values[-1]],
    }
    if len(values) <= SHOWN:
        return about, ", ".join(f"{k} ({100 * n / len(y):.1f} %)" for k, n in listed.items())
    if words:
        return about, f"{len(values):,} different words"
    span = f"numbers from {values[0]:g} to {values[-1]:g}, mean {y.mean():g}"
    return about, f"{span}: --task regression"


def _state_bytes(width: int) -> int:
    """Memory of what SFSA learns, twice: a block that is refused must leave no trace."""
    state = ofslib.SFSAClassifier()._new_state(1000)
    return 2 * len(pickle.dumps(state)) * width // 1000
