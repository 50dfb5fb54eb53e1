"""The command ofslib: from a file to features, a model and predictions."""

import json
import os
import sys
import time
from contextlib import nullcontext
from pathlib import Path
from typing import Any, NamedTuple

import ofslib
from ofslib._files import refuse_places, shared_file
from ofslib._options import MISUSED, Misused, estimator, known_methods, parser
from ofslib._printing import (
    about_labels,
    cell,
    csv_table,
    duration,
    few,
    labels_said,
    memory_size,
    say,
    text_table,
    warnings_told,
)

FAILED, INTERRUPTED = 1, 130
_ANY_WIDTH = 2**31 - 1  # with it, no pass over the file looks for its largest index


class Report(NamedTuple):
    """What a command has to say."""

    lines: list[str]  # to a reader
    data: dict[str, Any]  # with --json
    code: int = 0


# -------------------------------------------------- methods


def methods(args) -> Report:
    """The methods: which stream each reads, for which task, and what it costs."""
    found = known_methods()
    rows = [[name, m.stream, ", ".join(m.classes), m.cost] for name, m in found.items()]
    order = ["rows", "averages", "columns", "all at once"]
    rows.sort(key=lambda row: order.index(row[1]))
    data = {name: m._asdict() for name, m in found.items()}
    return Report(text_table(["method", "stream", "task", "cost"], rows), {"methods": data})


# -------------------------------------------------- files of rows


def _opened(args, **own):
    from ofslib.datasets import open_stream
    from ofslib.datasets.tables import TABLES, format_of

    names = ("block_rows", "n_features", "n_jobs", "zero_based", "folder", "format", "label")
    names += ("weight", "header", "word_labels", "hashed")
    given = {name: getattr(args, name) for name in names}
    table = format_of(Path(args.file), args.format) in TABLES
    if table and args.label is None and args.command is not select:
        given["label"] = False
    return open_stream(args.file, **given | {"registry_path": args.registry} | own)


def _once(args, **own):
    """The blocks of a file that is read once; without a known width any index is allowed."""
    stream = _opened(args, cache=False, **own)
    wide = own | {"n_features": _ANY_WIDTH}
    return stream if stream.n_columns else _opened(args, cache=False, **wide)


def _refuse_places(args, *options: str) -> None:
    """Say, before any row is read, which files could not be written or would undo each other."""
    from ofslib.datasets.cache import cache_of

    cache = cache_of(Path(args.file), getattr(args, "cache", None) or True)
    read = {"FILE": args.file, "the cache of FILE": cache, "--registry": args.registry}
    places = {f"--{name}": getattr(args, name) for name in ("model", *options)}
    if stdout := [name for name, place in places.items() if place == "-"]:
        raise Misused(f"{stdout[0]} -: expected a file; - is neither stdin nor stdout here")
    written = {f"--{name}": places[f"--{name}"] for name in options}
    if pair := shared_file(written, read | places):
        path = (read | places)[pair[1]]
        raise Misused(f"{pair[0]} and {pair[1]}: both are the file {path}; give each its own")
    refuse_places(*written.values())


def select(args) -> Report:
    """The k best features of a file, or as many as a bound on false ones allows, and a model."""
    method, given = _wanted(args)
    if options := [name for name, _ in args.set if name in given]:
        raise Misused(f"--set {options[0]}: give it by its own option")
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
        with csv_table(args.out, "feature", *head) as writer:
            writer.writerows(chosen)
    speed = ((stream.n_rows - stream.start_row) * args.passes - resumed) / seconds
    data = {"file": args.file, "rows": stream.n_rows, "features": stream.n_features}
    data |= {"estimator": type(model).__name__, **given}
    data["intercept"] = getattr(model.intercept_, "tolist", lambda: model.intercept_)()
    data["selected"] = [dict(zip(["feature", *head], row, strict=True)) for row in chosen]
    data |= {"resumed_at": resumed, "seconds": seconds, "rows_per_second": speed}
    data |= {name: getattr(args, name) for name in ("out", "model", "checkpoint")}
    largest = few(
        [f"{name} ({few([f'{value:+.3g}' for value in values])})" for name, *values in chosen]
    )
    intercepts = data["intercept"] if labels else [data["intercept"]]
    lines = [
        f"{args.file}: {stream.n_rows:,} rows of {stream.n_features:,} features",
        f"{type(model).__name__}: {len(chosen):,} feature{'s' * (len(chosen) != 1)} selected"
        + f" for the labels {few(labels)}" * bool(labels),
        *([f"largest coefficients: {largest}"] if chosen else []),
        f"intercept: {few([f'{value:+.3g}' for value in intercepts])}",
        f"{duration(seconds)}, {speed:,.0f} rows a second",
    ]
    if condition := getattr(model, "fdr_condition", ""):
        data["fdr_condition"] = condition
        lines.append(f"false ones: a share of at most {model.fdr:g} is expected {condition}")
    if hasattr(model, "online_score_"):
        data |= {"online_score": float(model.online_score_), "online_loss": model.online_loss_}
        what = "of the labels" if args.task == "classification" else "of the mean square of y"
        share = f"{100 * model.online_score_:.1f} % {what} predicted"
        around = " (around 0, not around its mean)" * (args.task == "regression")
        lines.insert(2, f"{share}{around}, each row before it was learned")
    if resumed:
        lines.append(f"went on from {args.checkpoint}, with {resumed:,} rows learned before")
    return Report(lines + _written(args.out, args.model), data)


def _wanted(args) -> tuple[str, dict[str, Any]]:
    """Method and parameters by how many features there shall be."""
    usual, size = "sfsa", {"k": args.k}
    if args.fdr is not None:
        usual, size = "knockoffs", {"fdr": args.fdr, "random_state": 0}
    if args.fdr is not None and args.method not in (None, usual):
        raise Misused(f"--fdr: --method {args.method} keeps -k features; leave one out")
    return args.method or usual, size | {"n_passes": args.passes}


def _chosen(model, first: int) -> tuple[list[str], list[str], list[tuple]]:
    """The labels, if there are several models; the head and lines of a table of the features."""
    import numpy as np

    coef, support = np.atleast_2d(model.coef_), model.support_
    names = getattr(model, "feature_names_in_", range(first, coef.shape[1] + first))
    size = np.abs(coef[0]) if len(coef) == 1 else np.linalg.norm(coef, axis=0)
    order = support[np.lexsort((support, -size[support]))]
    labels = list(map(cell, model.classes_.tolist())) if len(coef) > 1 else []
    head = [f"coefficient of {label}" for label in labels] or ["coefficient"]
    return labels, head, [(str(names[j]), *coef[:, j].tolist()) for j in order]


def _written(*paths: str | None) -> list[str]:
    there = [path for path in paths if path]
    return [f"written: {', '.join(there)}"] if there else []


def _numbered_as(model, args):
    """The rows to predict, with the columns numbered or hashed as the model learned them."""
    learned, p = model._numbering, model.n_features_in_
    width = {"n_features": args.n_features or p}
    stream = _once(args, **width if args.hashed else {})
    if None in (learned, stream.numbering):
        return stream
    if learned != stream.numbering:
        if option := "--hashed" * args.hashed or "--zero-based" * args.zero_based:
            how = "numbered " * (learned != "hashed") + f"{learned}: give a file of such"
            raise Misused(f"{option}: {args.model} learned from columns {how}")
        own = width | {"hashed": True} if learned == "hashed" else {"zero_based": True}
        stream = _once(args, **own)
    if learned == "hashed" and stream.n_columns != p:
        said = f"{args.model} learned from names hashed to {p} columns"
        raise Misused(f"--n-features {args.n_features}: {said}")
    return stream


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
            said = model.predict(known)
            margins = model.decision_function(known) if labels else said
            margins = margins.reshape(len(y), -1)
            if writer:
                columns = [map(cell, said.tolist()), *margins.T.tolist()][: len(head)]
                writer.writerows(zip(*columns, strict=True))
            n += len(y)
            scores.add(y, said, margins)
    found, seconds = scores.found(), time.monotonic() - began
    data = {"file": args.file, "rows": n, "estimator": name, "seconds": seconds}
    data |= {"unknown_values": unknown, "out": args.out, **found}
    lines = [f"{args.file}: {n:,} rows, {duration(seconds)}"]
    told = [f"{score} {value:.4f}" for score, value in found.items()]
    lines.append(", ".join(told) or f"no score: {scores.reason}")
    if unknown:
        lines.append(f"not read: {unknown:,} values of features beyond the {p:,} of the model")
    lines += _written(args.out)
    if not (args.out or args.json):  # stdout is for the predictions
        for line in lines:
            say(line)
        lines = []
    return Report(lines, data)


def inspect(args) -> Report:
    """What is in a file, how fast it is read, and what to learn from it would need."""
    import numpy as np

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
    density = values / max(1, rows * width)
    needs = {"sfsa_bytes": _state_bytes(width), "averages_bytes": 8 * width**2}
    kept = _opened(args)  # as `select` opens it where rows are read again
    disk = f"{memory_size(12 * (values + rows))} for a cache of the parsed rows"
    if kept.cache_bytes:
        disk = f"{memory_size(kept.cache_bytes)} in the cache {kept.cache_path}"
    data = {"file": args.file, "rows": rows, "features": width, "values": values}
    data |= {"density": density, **about_labels(y)}
    data["names"] = None if stream.feature_names is None else stream.feature_names.tolist()
    data |= {"seconds": seconds, "rows_per_second": rows / seconds, "bytes": size}
    data["needs"] = needs | {"cache_bytes": 12 * (values + rows)}
    data["cache"] = {"path": str(kept.cache_path or ""), "bytes": kept.cache_bytes}
    speed = f", {memory_size(size / seconds)} a second" if size else ""
    memory = [memory_size(needs[name]) for name in ("sfsa_bytes", "averages_bytes")]
    pairs = {
        "rows": f"{rows:,}",
        "features": f"{width:,}",
        "values": f"{values:,}, {values / rows:.1f} a row, density {100 * density:.3g} %",
        "labels": labels_said(data, y),
        "reading": f"{duration(seconds)}: {rows / seconds:,.0f} rows a second{speed}",
        "memory": "{} for sfsa, {} for averages".format(*memory),
        "disk": disk,
    }
    data["scales"] = None
    if found := scales(first, range(first.shape[0])):
        data["scales"] = found._asdict()
        said = found.message(data["names"], first=not (args.zero_based or args.hashed))
        pairs["scales"] = said + found.unlike * ": standardise the features"
    if names := data["names"]:
        pairs["names"] = few(names)
    return Report([f"{name:10}{text}" for name, text in pairs.items()], data)


def _state_bytes(width: int) -> int:
    """Memory of what SFSA learns, twice: a block that is refused must leave no trace."""
    import numpy as np

    from ofslib import SFSAClassifier

    def held(part) -> int:
        return sum(map(held, part)) if isinstance(part, tuple) else np.asarray(part).nbytes

    return 2 * held(SFSAClassifier()._new_state(1000)) * width // 1000


# -------------------------------------------------- data sets and papers


def datasets(args) -> Report:
    """The data sets of the papers and of one's own table: list, fetch, verify."""
    from ofslib.datasets.download import fetch, pins, verify
    from ofslib.datasets.registry import read_rows

    rows = read_rows(args.registry)
    if unknown := [name for name in args.names if name not in rows]:
        raise Misused(f"no data set {unknown[0]!r}; the registry knows {', '.join(rows)}")
    if args.action == "fetch":
        if not args.names:
            raise Misused(f"datasets fetch: say which; the registry knows {', '.join(rows)}")
        came = {n: list(map(str, fetch(n, args.folder, args.registry))) for n in args.names}
        return Report([path for paths in came.values() for path in paths], {"fetched": came})
    found = {name: verify(name, args.folder, args.registry) for name in args.names or rows}
    if args.action == "list":
        data = [rows[name] | {"here": _together(files)} for name, files in found.items()]
        keys = ("name", "task", "n_train", "n_test", "n_features", "here")
        cells = [[format(row[k], "," * (k[:2] == "n_")) for k in keys] for row in data]
        return Report(text_table(keys, cells), {"datasets": data})
    if not args.names:  # those of which something is here
        found = {name: files for name, files in found.items() if _together(files) != "missing"}
    states = {str(path): state for files in found.values() for path, state in files.items()}
    pinned = [pins(name, args.folder, args.registry) for name in found]
    by = {str(path): pin for files in pinned for path, pin in files.items()}
    lines = [f"{state:8} {path}  {by[path]}".rstrip() for path, state in states.items()]
    wrong = any(state != "whole" for state in states.values())
    data = {"files": states, "pinned": by}
    return Report(lines or [f"{args.folder}: no data set"], data, FAILED * wrong)


def _together(files: dict[Path, str]) -> str:
    states = set(files.values())
    return states.pop() if len(states) == 1 else "damaged" if "damaged" in states else "partly"


# -------------------------------------------------- the command line


def main(argv: list[str] | None = None) -> int:
    """Run a command; returns 0, 1 if it failed, 2 if it was misused, 130 after Ctrl-C."""
    args = parser(select, predict, inspect, datasets, methods).parse_args(argv)
    try:
        with warnings_told() as told:
            report = args.command(args)
        text = "\n".join(report.lines)
        if args.json:
            text = json.dumps(report.data | {"warnings": told}, default=lambda value: value.item())
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
        said = " ".join(str(error).split()) or type(error).__name__
        bug = LookupError, AttributeError, TypeError, AssertionError
        if isinstance(error, bug) and not isinstance(error, ValueError):
            said = f"{type(error).__name__}: {said} (--debug shows where)"
        say(said)
        return MISUSED if isinstance(error, Misused) else FAILED
    return report.code


if __name__ == "__main__":
    sys.exit(main())
