"""The command ofslib: from a file to features, a model and predictions."""

import codecs
import csv
import json
import os
import pickle
import sys
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

import ofslib
from ofslib._files import refuse_places, whole_file
from ofslib._options import MISUSED, Misused, estimator, known_methods, parser, text_table

FAILED, INTERRUPTED = 1, 130
SHOWN = 10  # features or labels in a summary
_ANY_WIDTH = 2**31 - 1  # with it, no pass over the file looks for its largest index


Report = tuple[list[str], dict[str, Any]]  # lines to a reader, and what --json shows


# -------------------------------------------------- what is printed and written


def few(values: Any, form: str = "") -> str:
    """The first of a list."""
    shown = [format(value, form) for value in values[:SHOWN]]
    return ", ".join(shown) + " ..." * (len(values) > SHOWN)


def size_of(n_bytes: float) -> str:
    """A number of bytes."""
    return tqdm.format_sizeof(n_bytes, "B")


def cell(value: Any) -> str:
    """A label or number as text that is read as the same again."""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


@contextmanager
def csv_table(path: str | None, *head: str) -> Iterator[Any]:
    """A writer of rows to stdout, or to a file, which is whole or not there."""
    with whole_file(path) if path else nullcontext() as file:
        text = codecs.getwriter("utf-8")(file) if file else sys.stdout
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(head)
        yield writer


def say(text: str) -> None:
    """A line on stderr, above a progress bar if there is one."""
    tqdm.write(f"ofslib: {text}", file=sys.stderr)


@contextmanager
def warnings_told() -> Iterator[list[str]]:
    """Show warnings as lines on stderr, each once; gives them as a list, too."""
    told: list[str] = []

    def show(message, *where):
        if str(message) not in told:
            told.append(str(message))
            say(f"warning: {message}")

    with warnings.catch_warnings():
        warnings.simplefilter("always", UserWarning)
        warnings.showwarning = show
        yield told


# -------------------------------------------------- methods


def methods(args) -> Report:
    """The methods: which stream each reads, for which task, and what it costs."""
    found = known_methods()
    rows = [[name, m.stream, ", ".join(m.classes), m.cost] for name, m in found.items()]
    order = ["rows", "averages", "columns", "all at once"]
    rows.sort(key=lambda row: order.index(row[1]))
    data = {name: m._asdict() for name, m in found.items()}
    return text_table(["method", "stream", "task", "cost"], rows), {"methods": data}


# -------------------------------------------------- files of rows


def _opened(args, **own):
    from ofslib.datasets import open_stream
    from ofslib.datasets.tables import TABLES, format_of

    names = signature(open_stream).parameters
    given = {name: getattr(args, name) for name in names if hasattr(args, name)}
    table = format_of(Path(args.file), args.format) in TABLES
    if table and args.label is None and args.command is not select:
        given["label"] = False
    return open_stream(args.file, **given | own)


def _once(args):
    """The blocks of a file that is read once; without a known width any index is allowed."""
    stream = _opened(args, cache=False)
    return stream if stream.n_columns else _opened(args, cache=False, n_features=_ANY_WIDTH)


def _refuse_places(args, *options: str) -> None:
    """Say, before any row is read, which files could not be written or would undo each other."""
    from ofslib.datasets.cache import cache_of

    cache = cache_of(Path(args.file), getattr(args, "cache", None) or True)
    read = {"FILE": args.file, "the cache of FILE": cache, "--registry": args.registry_path}
    read |= {"--model": args.model}
    refuse_places({f"--{name}": getattr(args, name) for name in options}, read)


def select(args) -> Report:
    """The k best features of a file, or as many as a bound on false ones allows, and a model."""
    bounded = args.fdr is not None
    if bounded and args.method not in (None, "knockoffs"):
        raise Misused(f"--fdr: --method {args.method} keeps -k features; leave one out")
    given = {"fdr": args.fdr, "random_state": 0} if bounded else {"k": args.k}
    given["n_passes"] = args.passes
    if options := [name for name, _ in args.set if name in given]:
        raise Misused(f"--set {options[0]}: give it by its own option")
    method = args.method or ("knockoffs" if bounded else "sfsa")
    model = estimator(method, args.task, given | dict(args.set))
    _refuse_places(args, "out", "model", "checkpoint")
    from ofslib.streams.checkpoint import fit_stream, read_checkpoint

    again = args.passes > 1 or args.checkpoint is not None  # which is worth the disk
    cache, resumed = again if args.cache is None else args.cache, 0
    if args.checkpoint and os.path.exists(args.checkpoint):
        resumed = read_checkpoint(args.checkpoint, model).rows
    stream, began = _opened(args, cache=cache), time.monotonic()
    fit_stream(model, stream, args.checkpoint, args.every, not args.quiet, args.classes)
    seconds = time.monotonic() - began
    labels, head, chosen = _chosen(model, int(not (args.zero_based or args.hashed)))
    if args.model:
        model.save(args.model)
    if args.out:
        with csv_table(args.out, *head) as writer:
            writer.writerows(chosen)
    speed = ((stream.n_rows - stream.start_row) * args.passes - resumed) / seconds
    data = {"file": args.file, "rows": stream.n_rows, "features": stream.n_features}
    data |= {"estimator": type(model).__name__, **given}
    data["intercept"] = np.asarray(model.intercept_).tolist()
    data["selected"] = [dict(zip(head, row, strict=True)) for row in chosen]
    data |= {"resumed_at": resumed, "seconds": seconds, "rows_per_second": speed}
    data |= {name: getattr(args, name) for name in ("out", "model", "checkpoint")}
    lines = [f"{args.file}: {stream.n_rows:,} rows of {stream.n_features:,} features"]
    if hasattr(model, "online_score_"):
        data |= {"online_score": float(model.online_score_), "online_loss": model.online_loss_}
        what = "of the mean square of y predicted (around 0, not around its mean)"
        if args.task == "classification":
            what = "of the labels predicted"
        lines.append(f"{100 * model.online_score_:.1f} % {what}, each row before it was learned")
    many = f" for the labels {few(labels)}" * bool(labels)
    count = f"{len(chosen):,} feature{'s' * (len(chosen) != 1)} selected{many}"
    lines.append(f"{type(model).__name__}: {count}")
    if chosen:
        largest = [f"{name} ({few(values, '+.3g')})" for name, *values in chosen[: SHOWN + 1]]
        lines.append(f"largest coefficients: {few(largest)}")
    lines.append(f"intercept: {few(np.atleast_1d(model.intercept_), '+.3g')}")
    lines.append(f"{seconds:,.1f} s, {speed:,.0f} rows a second")
    if condition := getattr(model, "fdr_condition", ""):
        data["fdr_condition"] = condition
        lines.append(f"false ones: a share of at most {model.fdr:g} is expected {condition}")
    if resumed:
        lines.append(f"went on from {args.checkpoint}, with {resumed:,} rows learned before")
    return lines, data


def _chosen(model, first: int) -> tuple[list[str], list[str], list[tuple]]:
    """The labels, if there are several models; the head and lines of a table of the features."""
    coef, support = np.atleast_2d(model.coef_), model.support_
    names = getattr(model, "feature_names_in_", range(first, coef.shape[1] + first))
    size = np.abs(coef[0]) if len(coef) == 1 else np.linalg.norm(coef, axis=0)
    order = support[np.lexsort((support, -size[support]))]
    labels = list(map(cell, model.classes_.tolist())) if len(coef) > 1 else []
    head = [f"coefficient of {label}" for label in labels] or ["coefficient"]
    return labels, ["feature", *head], [(str(names[j]), *coef[:, j].tolist()) for j in order]


def _numbered_as(model, args):
    """The rows to predict, with the columns numbered or hashed as the model learned them."""
    learned, p = model._numbering, model.n_features_in_
    if args.hashed:
        args.n_features = args.n_features or p
    if learned and _opened(args, cache=False).numbering:  # a text
        option = "--hashed" * args.hashed or "--zero-based" * args.zero_based
        if option and learned != {"--hashed": "hashed"}.get(option, "from 0"):
            how = "numbered " * (learned != "hashed") + f"{learned}: give a file of such"
            raise Misused(f"{option}: {args.model} learned from columns {how}")
        args.hashed, args.zero_based = learned == "hashed", learned == "from 0"
        if args.hashed and (args.n_features or p) != p:
            message = f"{args.model} learned from names hashed to {p} columns"
            raise Misused(f"--n-features {args.n_features}: {message}")
        if args.hashed:
            args.n_features = p
    return _once(args)


def predict(args) -> Report:
    """What a model says of the rows of a file, and how often it is right."""
    from sklearn.base import is_classifier

    from ofslib._model_files import class_of, read
    from ofslib.datasets.formats import refuse_columns
    from ofslib.metrics import Scores
    from ofslib.streams.checkpoint import reading

    _refuse_places(args, "out")
    name, _ = class_of(args.model)
    if ofslib.home_of(name) is None or not hasattr(getattr(ofslib, name), "predict"):
        raise ValueError(f"{args.model}: it holds a {name}, which predicts nothing")
    model = read(getattr(ofslib, name), args.model)
    p = model.n_features_in_
    stream, began = _numbered_as(model, args), time.monotonic()
    refuse_columns(stream.name, stream.feature_names, getattr(model, "feature_names_in_", None))
    labels = model.classes_.tolist() if is_classifier(model) else []
    decisions = [f"decision of {cell(label)}" for label in labels] if len(labels) > 2 else []
    head = ["prediction", *(decisions or ["decision"] * bool(labels))]
    unknown, n, scores = 0, 0, Scores(model.classes_ if labels else None)
    shown = nullcontext() if args.json and not args.out else csv_table(args.out, *head)
    with shown as writer, reading(stream, not args.quiet):
        for X, y, *_ in stream:
            known = X
            if X.shape[1] != p and stream.feature_names is None:
                known = X[:, :p]
                known.resize(len(y), p)
            unknown += X.nnz - known.nnz
            predicted = model.predict(known)
            margins = model.decision_function(known) if labels else predicted
            margins = margins.reshape(len(y), -1)
            if writer:
                columns = [map(cell, predicted.tolist()), *margins.T.tolist()][: len(head)]
                writer.writerows(zip(*columns, strict=True))
            n += len(y)
            scores.add(y, predicted, margins)
    found, seconds = scores.found(), time.monotonic() - began
    data = {"file": args.file, "rows": n, "estimator": name, "seconds": seconds}
    data |= {"unknown_values": unknown, "out": args.out, **found}
    lines = [f"{args.file}: {n:,} rows, {seconds:,.1f} s"]
    told = [f"{score} {value:.4f}" for score, value in found.items()]
    lines.append(", ".join(told) or f"no score: {scores.reason}")
    if unknown:
        lines.append(f"not read: {unknown:,} values of features beyond the {p:,} of the model")
    if not (args.out or args.json):  # stdout is for the predictions
        say("\nofslib: ".join(lines))
        lines = []
    return lines, data


def inspect(args) -> Report:
    """What is in a file, how fast it is read, and what to learn from it would need."""
    from ofslib.streams.checkpoint import reading
    from ofslib.streams.diagnostics import scales

    stream = _once(args)
    # What reads it may have to be compiled or imported first.
    first = next((X for X, *_ in stream), None)
    began = time.monotonic()
    width = 0 if stream.n_columns == _ANY_WIDTH else stream.n_columns
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
    kept = _opened(args)  # as `select` opens it where rows are read again
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


# -------------------------------------------------- data sets and papers


def datasets(args) -> Report:
    """The data sets of the papers and of one's own table: list, fetch, verify."""
    from ofslib.datasets.download import fetch, pins, verify
    from ofslib.datasets.registry import read_rows

    rows = read_rows(args.registry_path)
    if unknown := [name for name in args.names if name not in rows]:
        raise Misused(f"no data set {unknown[0]!r}; the registry knows {', '.join(rows)}")
    if args.action == "fetch":
        if not args.names:
            raise Misused(f"datasets fetch: say which; the registry knows {', '.join(rows)}")
        came = {n: list(map(str, fetch(n, args.folder, args.registry_path))) for n in args.names}
        return [path for paths in came.values() for path in paths], {"fetched": came}
    found = {name: verify(name, args.folder, args.registry_path) for name in args.names or rows}
    if args.action == "list":
        sets = [
            rows[name] | {"here": " and ".join(sorted({*files.values()}))}
            for name, files in found.items()
        ]
        keys = ("name", "task", "n_train", "n_test", "n_features", "here")
        cells = [[format(row[k], "," * (k[:2] == "n_")) for k in keys] for row in sets]
        return text_table(keys, cells), {"datasets": sets}
    if not args.names:  # those of which something is here
        found = {name: files for name, files in found.items() if {*files.values()} != {"missing"}}
    files = [
        (str(path), state, pins(name, args.folder, args.registry_path)[path])
        for name, states in found.items()
        for path, state in states.items()
    ]
    lines = [f"{state:8} {path}  {pin}".rstrip() for path, state, pin in files]
    args.code = FAILED * any(state != "whole" for _, state, _ in files)
    data = {"files": {p: state for p, state, _ in files}, "pinned": {p: pin for p, _, pin in files}}
    return lines or [f"{args.folder}: no data set"], data


# -------------------------------------------------- the command line


def main(argv: list[str] | None = None) -> int:
    """Run a command; returns 0, 1 if it failed, 2 if it was misused, 130 after Ctrl-C."""
    args = parser(select, predict, inspect, datasets, methods).parse_args(argv)
    try:
        with warnings_told() as told:
            lines, data = args.command(args)
        text = "\n".join(lines)
        if args.json:
            text = json.dumps(data | {"warnings": told}, default=lambda value: value.item())
        sys.stdout.write(text + "\n" * bool(text))
        sys.stdout.flush()
    except KeyboardInterrupt:
        path = getattr(args, "checkpoint", None)
        say("stopped" + (f"; the same command goes on from {path}" if path else ""))
        return INTERRUPTED
    except BrokenPipeError:  # as `head` does it; Python itself must not find it at its end
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    except Exception as error:
        if args.debug:
            raise
        message = " ".join(str(error).split()) or type(error).__name__
        bug = LookupError, AttributeError, TypeError, AssertionError
        if isinstance(error, bug) and not isinstance(error, ValueError):
            message = f"{type(error).__name__}: {message} (--debug shows where)"
        say(message)
        return MISUSED if isinstance(error, Misused) else FAILED
    return args.code


if __name__ == "__main__":
    sys.exit(main())
