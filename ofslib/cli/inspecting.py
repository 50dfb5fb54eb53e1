"""ofslib inspect: what is in a file, and what to learn from it needs."""

import os
import pickle
import shlex
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import psutil

import ofslib
from ofslib._options import text_table
from ofslib.cli.printing import SHOWN, Report, cell, few, size_of
from ofslib.cli.rows import ANY_WIDTH, opened, read_once

# Whole numbers as labels are classes if there are not more different ones.
CLASSES = 300
# Features up to which a method without scales is proposed: it keeps p^2 numbers, here 200 MB.
SCALE_FREE = 5000
_COLUMNS = 50  # of a table that are shown one by one, if nothing is the matter with them
_LENGTH = 20  # letters of an example
# A table is looked at as it is, whatever options say that `select` makes of it.
_AS_IT_IS = {"ignore": None, "missing": "refuse", "categorical": None, "standardize": False}


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

    kept = opened(args, **_AS_IT_IS)  # as `select` opens it where rows are read again
    form, look, lines = format_of(Path(args.file), args.format), None, []
    if form in (*DELIMITED, *ARROW) and os.path.isfile(args.file):
        look, seen = _of_table(args)
        lines = _columns(args, look)
    else:
        seen = _of_rows(args)
    rows, width, values, _, _, seconds, scales, learned = seen
    size, data = kept.text_bytes, {"file": args.file, "rows": rows, "features": width}
    about, labels_said, several = _labels(*seen.labels, seen.spread)
    density, cached = values / max(1, rows * width), 12 * (values + rows)
    needs = {"sfsa_bytes": several * _state_bytes(learned), "averages_bytes": 8 * learned**2}
    data |= {"values": values, "density": density, **about}
    data["names"] = None if kept.feature_names is None else kept.feature_names.tolist()
    data |= {"seconds": seconds, "rows_per_second": rows / seconds, "bytes": size}
    free = psutil.virtual_memory().available
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
            pairs["scales"] += f": --standardize{_without_scales(about, learned)}"
    if look:
        if look.ragged:
            pairs["wrong"] = f"rows {few(look.ragged)} have another number of cells: correct them"
        data["ragged"] = look.ragged
        data["columns"] = [_column(look, j) for j in range(len(look.names))]
        data["select"] = _command(args, look, bool(scales and scales.unlike))
        pairs["select"] = data["select"]
    elif names := data["names"]:
        pairs["names"] = few(names)
    return [f"{name:10}{text}" for name, text in pairs.items()] + lines, data


def _of_rows(args) -> _Seen:
    """One pass over rows of numbers."""
    from ofslib.streams.checkpoint import reading
    from ofslib.streams.diagnostics import scales

    stream = read_once(args, **_AS_IT_IS)
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


def _of_table(args) -> tuple[Any, _Seen]:
    """A first look at all columns of a table, whatever their cells hold."""
    from ofslib.streams.checkpoint import reading
    from ofslib.streams.diagnostics import Scales

    stream = opened(args, **_AS_IT_IS, label=False, weight=None, cache=False)
    began = time.monotonic()
    with reading(stream, not args.quiet):
        look = stream.first_look()
    seconds = time.monotonic() - began
    if not look.rows:
        raise ValueError(f"{args.file}: expected rows, got none")
    labels, spread = (np.empty(0), np.empty(0, int)), (0.0, 0.0, 0.0)
    if args.label is not None:
        j = _place(look, args.label)
        counts = np.array([*look.levels[j].values()])
        number = look.kinds[j] == "numbers"
        values = np.array([*look.levels[j]], float if number else str)
        order = np.argsort(values)
        labels, spread = (values[order], counts[order]), (look.low[j], look.high[j], look.mean[j])
    others = _features(args, look)
    numbers = np.array([j for j in others if look.kinds[j] == "numbers" and look.size[j]], int)
    found = None
    if len(numbers):
        sizes = look.size[numbers]
        usual, largest = np.sort(sizes)[(len(sizes) - 1) // 2], int(sizes.argmax())
        feature = others.index(numbers[largest])
        found = Scales(float(usual), float(sizes[largest]), feature)
    columns = [len(look.levels[j]) if look.kinds[j] == "words" else 1 for j in others]
    counted = len(others), int(look.nonzero[others].sum()), labels, spread
    return look, _Seen(look.rows, *counted, seconds, found, sum(columns))


def _place(look, column) -> int:
    """The position of a column that is named, or counted."""
    return range(len(look.names))[column] if isinstance(column, int) else look.names.index(column)


def _features(args, look) -> list[int]:
    """The columns that are no labels and no weights."""
    roles = {_place(look, column) for column in (args.label, args.weight) if column is not None}
    return [j for j in range(len(look.names)) if j not in roles]


def _column(look, j) -> dict[str, Any]:
    """What there is to say of a column, for --json."""
    numbers = bool(np.isfinite(look.low[j]))
    about = {"name": look.names[j], "type": look.kinds[j], "missing": int(look.missing[j])}
    about |= {"distinct": None if look.many[j] else len(look.levels[j])}
    about |= {"range": [look.low[j], look.high[j]] if numbers else None}
    return about | {"examples": [*look.levels[j]][:3], "lacks": look.lacks(j)}


def _columns(args, look) -> list[str]:
    """A table of the columns."""
    from ofslib.datasets.first_look import LEVELS, REMEDIES

    shown, features = [], _features(args, look)
    for j, name in enumerate(look.names):
        about, use = _column(look, j), ""
        if j in features:
            typed = [REMEDIES[reason].split("(")[1].split(")")[0] for reason in about["lacks"]]
            use = "; ".join(typed)
            use = use or ("--standardize" if about["type"] != "numbers" else "as it is")
        elif args.label is not None:
            use = "labels" if j == _place(look, args.label) else "weights"
        if use == "as it is" and len(look.names) > _COLUMNS:
            continue
        span = about["range"] if about["type"] in ("numbers", "per cent") else None
        examples = [_plain(text) for text in about["examples"]]
        values = f"{span[0]:g} to {span[1]:g}" if span else ", ".join(examples)
        many = f"over {LEVELS:,}" if about["distinct"] is None else f"{about['distinct']:,}"
        shown.append([_plain(name), about["type"], f"{about['missing']:,}", many, values, use])
    left = len(look.names) - len(shown)
    head = ["column", "type", "missing", "distinct", "values", "to use it"]
    more = [f"and {left:,} columns of numbers; --json has all"] * (left > 0)
    return ["", *text_table(head, shown), *more]


def _plain(text: str) -> str:
    text = text if text.isprintable() else ascii(text)
    return text if len(text) <= _LENGTH else text[:_LENGTH] + "..."


def _command(args, look, unlike: bool) -> str:
    """What to type to learn from the table."""
    out, words, gaps, per_cent = [], "", False, False
    for j in _features(args, look):
        reasons = [*look.lacks(j)]
        kinds = " ".join(reasons)
        if "no value" in kinds or "each row" in kinds or "dates" in kinds:
            name = look.names[j]
            out.append(name if name.isidentifier() else str(j))
            continue
        if "words" in kinds:
            words = "hash" if "more than" in kinds or words == "hash" else "onehot"
        gaps |= "missing" in kinds
        per_cent |= look.kinds[j] in ("per cent", "truth values")
    label = "COLUMN" if args.label is None else str(args.label)
    typed = ["ofslib", "select", args.file, "--label", label]
    typed += ["--no-header"] * (not args.header)
    for option in ("format", "delimiter", "weight"):
        given = getattr(args, option)
        typed += [] if given is None else [f"--{option}", str(given)]
    typed += ["--ignore", ",".join(out)] if out else []
    typed += ["--categorical", words] if words else []
    typed += ["--missing", "mean"] if gaps else []
    plain = per_cent and not (words or gaps)
    return shlex.join(typed + ["--standardize"] * (unlike or plain) + ["-k", "10"])


def _without_scales(about, width: int) -> str:
    """A method for features of unlike scales, where there are few enough."""
    classes = about["labels"]
    if width > SCALE_FREE or (classes is not None and len(classes) != 2):
        return ""
    return ", or --method " + ("renewable-fsa" if classes else "olsth --task regression")


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


def _state_bytes(width: int) -> int:
    """Memory of what SFSA learns, twice: a block that is refused must leave no trace."""
    state = ofslib.SFSAClassifier()._new_state(1000)
    return 2 * len(pickle.dumps(state)) * width // 1000
