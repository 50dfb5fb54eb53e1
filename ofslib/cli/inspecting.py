"""ofslib inspect: what is in a file, and what to learn from it needs."""

import os
import shlex
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import ofslib
from ofslib._options import text_table
from ofslib.cli.printing import SHOWN, Report, cell, few, size_of
from ofslib.cli.rows import ANY_WIDTH, AS_IT_IS, AVERAGES_UP_TO, opened, read_once

# Whole numbers as labels are classes if there are not more different ones.
CLASSES = 300
_COLUMNS = 50  # of a table that are shown one by one, if nothing is the matter with them
_LENGTH = 20  # letters of an example


class _Seen(NamedTuple):
    """What a pass over the rows has found."""

    rows: int
    width: int
    values: int  # that are not 0
    labels: tuple[np.ndarray, np.ndarray]  # the different ones, and how often each occurs
    spread: tuple[float, float, float]  # least, largest and mean label, if these are numbers
    seconds: float
    scales: Any
    learned: int  # features that a model of all columns would have


def inspect(args) -> Report:
    """What is in a file, how fast it is read, and what to learn from it would need."""
    from ofslib.datasets.tables import ARROW, DELIMITED, format_of
    from ofslib.streams.resources import free_bytes, state_bytes

    kept = opened(args, **AS_IT_IS)  # as `select` opens it where rows are read again
    form, look, lines = format_of(Path(args.file), args.format), None, []
    if form in (*DELIMITED, *ARROW) and os.path.isfile(args.file):
        look, seen, lines = _of_table(args)
    else:
        seen = _of_rows(args)
    rows, width, values, _, _, seconds, scales, learned = seen
    size, data = kept.text_bytes, {"file": args.file, "rows": rows, "features": width}
    about, labels_said, several = _labels(*seen.labels, seen.spread)
    density, cached = values / max(1, rows * width), 12 * (values + rows)
    needs = {
        "sfsa_bytes": state_bytes(ofslib.SFSAClassifier(), learned, several),
        "averages_bytes": state_bytes(ofslib.OLSthClassifier(), learned, several),
    }
    data |= {"values": values, "density": density, **about}
    data["names"] = None if kept.feature_names is None else kept.feature_names.tolist()
    data |= {"seconds": seconds, "rows_per_second": rows / seconds, "bytes": size}
    free = free_bytes()
    data["needs"] = needs | {"cache_bytes": cached, "available_bytes": free}
    data["cache"] = {"path": str(kept.cache_path or ""), "bytes": kept.cache_bytes}
    speed = f", {size_of(size / seconds)} a second" if size else ""
    sfsa, averages = (size_of(n) + ", too much," * (n > free) for n in needs.values())
    disk = f"{size_of(cached)} for a cache of the parsed rows"
    if kept.cache_bytes:
        disk = f"{size_of(kept.cache_bytes)} in the cache {kept.cache_path}"
    pairs = {
        "rows": f"{rows:,}",
        "features": f"{width:,}",
        "values": f"{values:,}, {values / rows:.1f} a row, density {100 * density:.3g} %",
        "labels": labels_said,
        "reading": f"{seconds:,.1f} s: {rows / seconds:,.0f} rows a second{speed}",
        "memory": f"{sfsa} for sfsa, {averages} for averages; {size_of(free)} are free here",
        "disk": disk,
    }
    data["scales"] = scales and scales._asdict()
    if scales:
        pairs["scales"] = scales.message(data["names"], first=not (args.zero_based or args.hashed))
        if scales.unlike:
            free_of = "renewable-fsa" if about["labels"] else "olsth --task regression"
            able = learned <= AVERAGES_UP_TO and len(about["labels"] or "ab") == 2
            pairs["scales"] += ": --standardize" + f", or --method {free_of}" * able
    if look:
        data |= {"columns": lines, "ragged": look.ragged}
        data["select"] = pairs["select"] = _command(args, lines, bool(scales and scales.unlike))
        if look.ragged:
            pairs["wrong"] = f"rows {few(look.ragged)} have another number of cells: correct them"
        lines = _shown(lines)
    elif names := data["names"]:
        pairs["names"] = few(names)
    return [f"{name:10}{text}" for name, text in pairs.items()] + lines, data


def _of_rows(args) -> _Seen:
    """One pass over rows of numbers."""
    from ofslib.streams.checkpoint import reading
    from ofslib.streams.diagnostics import scales

    stream = read_once(args, **AS_IT_IS)
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
    if not len(y):
        raise ValueError(f"{args.file}: expected rows, got none")
    width = max(width, stream.reached)
    spread = (0, 0, 0) if y.dtype.kind == "U" else (y.min(), y.max(), y.mean())
    # Without the columns that have no values, as there may be 2**31.
    used, first.indices = np.unique(first.indices, return_inverse=True)
    if found := scales(first, range(first.shape[0])):
        found = found._replace(feature=int(used[found.feature]))
    counted = np.unique(y[y == y], return_counts=True)
    return _Seen(len(y), width, values, counted, spread, seconds, found, width)


def _of_table(args) -> tuple[Any, _Seen, list[dict]]:
    """A first look at all columns of a table, whatever their cells hold."""
    from ofslib.datasets.first_look import REMEDIES
    from ofslib.streams.checkpoint import reading
    from ofslib.streams.diagnostics import Scales

    stream = opened(args, **AS_IT_IS, label=False, weight=None, cache=False)
    began = time.monotonic()
    with reading(stream, not args.quiet):
        look = stream.first_look()
    seconds = time.monotonic() - began
    if not look.rows:
        raise ValueError(f"{args.file}: expected rows, got none")
    label, weight = (_place(look.names, column) for column in (args.label, args.weight))
    columns = []
    for j, name in enumerate(look.names):
        kind, role = look.kind(j), {label: "labels", weight: "weights"}.get(j)
        use = [role] if role else [REMEDIES[reason] for reason in look.lacks(j)]
        columns.append({
            "name": name, "type": kind, "missing": int(look.missing[j]),
            "distinct": None if look.many[j] else len(look.levels[j]),
            "range": [look.low[j], look.high[j]] if look.high[j] >= look.low[j] else None,
            "examples": [*look.levels[j]][:3], "role": role or "feature",
            "use": use or ["--standardize"] * (kind != "numbers"),
        })  # fmt: skip
    labels, spread = (np.empty(0), np.empty(0, int)), (0.0, 0.0, 0.0)
    if label is not None:
        truths = {"True": "1", "False": "0"}  # which count as numbers
        numbers = columns[label]["type"] == "numbers"
        values = [truths.get(word, word) if numbers else word for word in look.levels[label]]
        values = np.array(values, float if numbers else str)
        order, counts = np.argsort(values), np.array([*look.levels[label].values()])
        labels = values[order], counts[order]
        spread = look.low[label], look.high[label], look.mean[label]
    features = [j for j, column in enumerate(columns) if column["role"] == "feature"]
    numbers = np.array([columns[j]["type"] == "numbers" for j in features])
    sizes = look.size[features] * numbers
    known, found = np.sort(sizes[sizes > 0]), None
    if len(known):
        feature = int(sizes.argmax())
        found = Scales(float(known[(len(known) - 1) // 2]), float(known[-1]), feature)
    learned = sum(len(look.levels[j]) if columns[j]["type"] == "words" else 1 for j in features)
    counted = len(features), int(look.nonzero[features].sum()), labels, spread
    return look, _Seen(look.rows, *counted, seconds, found, learned), columns


def _place(names, column) -> int | None:
    """The position of a column that is named, or counted."""
    return range(len(names))[column] if isinstance(column, int) else column and names.index(column)


def _shown(columns: list[dict]) -> list[str]:
    """A table of the columns; of many only those that need something."""
    from ofslib.datasets.first_look import LEVELS

    rows = []
    for about in columns if len(columns) <= _COLUMNS else [c for c in columns if c["use"]]:
        values = ", ".join(map(_plain, about["examples"]))
        if about["type"] in ("numbers", "per cent") and about["range"]:
            values = "{:g} to {:g}".format(*about["range"])
        many = f"over {LEVELS:,}" if about["distinct"] is None else f"{about['distinct']:,}"
        use = "; ".join(about["use"]) or "as it is"
        missing = f"{about['missing']:,}"
        rows.append([_plain(about["name"]), about["type"], missing, many, values, use])
    left = len(columns) - len(rows)
    head = ["column", "type", "missing", "distinct", "values", "to use it"]
    more = [f"and {left:,} columns of numbers; --json has all"] * (left > 0)
    return ["", *text_table(head, rows), *more]


def _plain(text: str) -> str:
    text = text if text.isprintable() else ascii(text)
    return text if len(text) <= _LENGTH else text[:_LENGTH] + "..."


def _command(args, columns: list[dict], unlike: bool) -> str:
    """What to type to learn from the table."""
    ignored, options = [], {"--standardize"} if unlike else set()
    for j, about in enumerate(columns):
        if "--ignore" in about["use"]:
            ignored.append(about["name"] if about["name"].isidentifier() else str(j))
        elif about["role"] == "feature":
            options |= set(about["use"])
    if "--categorical hash" in options:
        options -= {"--categorical onehot"}
    label = "COLUMN" if args.label is None else str(args.label)
    typed = ["ofslib", "select", args.file, "--label", label] + ["--no-header"] * (not args.header)
    for option in ("format", "delimiter", "weight"):
        given = getattr(args, option)
        typed += [] if given is None else [f"--{option}", str(given)]
    typed += ["--ignore", ",".join(ignored)] if ignored else []
    return shlex.join([*typed, *" ".join(sorted(options)).split(), "-k", "10"])


def _labels(values, counts, spread) -> tuple[dict[str, Any], str, int]:
    """How often each label occurs, and the range of numbers: for --json, and for a reader.

    Third, how many models a classifier would be.
    """
    if not len(values):
        return {"labels": None, "label_range": None}, "none, unless --label says which column", 1
    many, words = len(values), values.dtype.kind == "U"
    whole = words or bool((values == np.rint(values)).all())
    listed = dict(zip(map(cell, values.tolist()), counts.tolist(), strict=True))
    about = {
        "labels": listed if many <= (CLASSES if whole else SHOWN) else None,
        "label_range": None if words else [*map(float, spread[:2])],
    }
    if about["labels"]:
        each = few([f"{k} ({100 * n / counts.sum():.1f} %)" for k, n in listed.items()])
        said = f"{many:,} classes: {each}" if many > SHOWN else each
        hint = "; to predict them as numbers: --task regression"
        return about, said + hint * (not words and many > SHOWN), many if many > 2 else 1
    if words:
        return about, f"{many:,} different words", many
    span = f"numbers from {spread[0]:g} to {spread[1]:g}, mean {spread[2]:g}"
    return about, f"{span}: --task regression", 1
