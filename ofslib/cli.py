"""The command ``ofslib``: from a file to features, a model and predictions."""

import argparse
import csv
import io
import json
import os
import re
import sys
import time
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import ofslib
from ofslib._files import whole_file

FAILED, MISUSED, INTERRUPTED = 1, 2, 130
_ANY_WIDTH = 2**31 - 1  # with it, no pass over the file looks for its largest index
_SHOWN = 10  # features or labels in a summary


class Report(NamedTuple):
    """What a command has to say."""

    lines: list[str]  # to a reader
    data: dict[str, Any]  # with --json
    code: int = 0


class _Misused(Exception):
    """An option, or what goes with it, that is not there."""


# -------------------------------------------------- numbers and tables for readers


def _count(number: float, unit: str = "") -> str:
    return f"{number:,.0f}{' ' * bool(unit)}{unit}"


def _size(n_bytes: float) -> str:
    for unit in ("B", "kB", "MB", "GB"):
        if n_bytes < 1000:
            return f"{n_bytes:.3g} {unit}"
        n_bytes /= 1000
    return f"{n_bytes:,.3g} TB"


def _duration(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, seconds = divmod(round(seconds), 60)
    return (
        f"{minutes // 60} h {minutes % 60} min" if minutes >= 60 else f"{minutes} min {seconds} s"
    )


def _cell(value: Any) -> str:
    """A label or number, so that it is read as the same again."""
    value = value.item() if hasattr(value, "item") else value
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _table(head: Iterable[str], rows: Iterable[Iterable[Any]]) -> list[str]:
    cells = [[str(cell) for cell in row] for row in (head, *rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return ["  ".join(map(str.ljust, row, widths)).rstrip() for row in cells]


@contextmanager
def _csv(path: str | None, *head: str) -> Iterator[Any]:
    """A writer of rows to a file, which is whole or not there, or to stdout."""
    if path is None:
        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerow(head)
        yield writer
        return
    with whole_file(path) as file:
        text = io.TextIOWrapper(file, encoding="utf-8", newline="")
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(head)
        yield writer
        text.flush()
        text.detach()


# -------------------------------------------------- methods


class Method(NamedTuple):
    """What there is to say of a method without running it."""

    stream: str
    classes: dict[str, str]  # task -> estimator
    cost: str
    about: str


def _methods() -> dict[str, Method]:
    """All methods by the names that the command gives them."""
    from sklearn.base import is_classifier, is_regressor

    from ofslib.streams.average_stream import AverageStream
    from ofslib.streams.column_stream import ScoredSelector
    from ofslib.streams.row_stream import RowStream

    found: dict[str, Method] = {}
    for name in sorted(name for names in ofslib.ESTIMATORS.values() for name in names):
        cls = getattr(ofslib, name)
        bare = re.sub("(Classifier|Regressor|Selector)$", "", name)
        short = re.sub("(?<=[a-z])(?=[A-Z])", "-", bare).lower()
        kinds = {RowStream: "rows", AverageStream: "averages", ScoredSelector: "all at once"}
        stream = next((word for kind, word in kinds.items() if issubclass(cls, kind)), "columns")
        if stream in ("rows", "averages"):
            kinds_of_task = {"classification": is_classifier, "regression": is_regressor}
            tasks = [task for task, fits in kinds_of_task.items() if fits(cls())]
        else:
            tasks = ["classification", "regression"] if hasattr(cls, "coef_") else ["without y"]
        words = " ".join(cls.__doc__.split("Parameters\n")[0].split())
        cost = re.search(r"Cost: (.*?)(?=\.( |$))", words)
        method = Method(stream, {}, cost[1] if cost else "", cls.__doc__.splitlines()[0])
        found.setdefault(short, method).classes.update(dict.fromkeys(tasks, name))
    return found


def _estimator(name: str, task: str, given: dict[str, Any]):
    """A new estimator of a method that is shown rows."""
    known = {short: m for short, m in _methods().items() if m.stream in ("rows", "averages")}
    if name not in known:
        able = ", ".join(sorted(short for short, m in known.items() if task in m.classes))
        raise _Misused(
            f"--method {name}: no method that reads row by row; for {task} there are {able}"
        )
    if task not in known[name].classes:
        raise _Misused(f"--task {task}: {name} is for {', '.join(known[name].classes)}")
    cls = getattr(ofslib, known[name].classes[task])
    able = cls().get_params()
    if given["n_passes"] == 1 and "n_passes" not in able:
        del given["n_passes"]
    options = {"k": "-k", "n_passes": "--passes"}
    for parameter in set(given) - set(able):
        option = options.get(parameter, f"--set {parameter}")
        raise _Misused(f"{option}: {cls.__name__} has only the parameters {', '.join(able)}")
    return cls(**given)


def methods(args) -> Report:
    """What there is, which stream it reads, and what it costs."""
    found = _methods()
    rows = [[name, m.stream, ", ".join(m.classes), m.cost] for name, m in found.items()]
    order = ["rows", "averages", "columns", "all at once"]
    rows.sort(key=lambda row: order.index(row[1]))
    data = {name: m._asdict() for name, m in found.items()}
    return Report(_table(["method", "stream", "task", "cost"], rows), {"methods": data})


# -------------------------------------------------- files of rows


def _opened(args, **own):
    from ofslib.datasets import open_stream

    given = {name: getattr(args, name) for name in ("block_rows", "cache", "n_features", "n_jobs")}
    given |= {"zero_based": args.zero_based, "registry_path": args.registry, "folder": args.folder}
    return open_stream(args.file, **given | own)


def _names(model, args) -> list[str]:
    """The features as the file names them."""
    names = getattr(model, "feature_names_in_", None)
    if names is not None:
        return [str(name) for name in names]
    return [str(j + (not args.zero_based)) for j in range(model.n_features_in_)]


def select(args) -> Report:
    """The k best features of a file, and a model on them."""
    given = {"k": args.k, "n_passes": args.passes} | dict(args.set)
    model = _estimator(args.method, args.task, given)
    from ofslib.streams.checkpoint import Checkpoint, fit_stream

    resumed = 0
    if args.checkpoint and os.path.exists(args.checkpoint):
        resumed = Checkpoint.load(args.checkpoint).rows
        _say(f"{args.checkpoint}: {_count(resumed)} rows are learned already; going on from there")
    began, stream = time.monotonic(), _opened(args)
    fit_stream(model, stream, args.checkpoint, args.every, not args.quiet)
    seconds = time.monotonic() - began
    coef, names = model.coef_, _names(model, args)
    order = sorted(model.support_, key=lambda j: (-abs(coef[j]), j))
    chosen = [{"feature": names[j], "coefficient": float(coef[j])} for j in order]
    if args.model:
        model.save(args.model)
    if args.out:
        with _csv(args.out, "feature", "coefficient") as writer:
            writer.writerows([row["feature"], repr(row["coefficient"])] for row in chosen)
    rows, shown = stream.n_rows, model.n_samples_seen_ - resumed
    data = {"file": args.file, "rows": rows, "features": stream.n_features}
    data |= {"method": args.method, "estimator": type(model).__name__, "k": args.k}
    data |= {"resumed_at": resumed, "seconds": seconds, "rows_per_second": shown / seconds}
    data |= {"intercept": model.intercept_, "selected": chosen}
    data |= {"model": args.model, "out": args.out, "checkpoint": args.checkpoint}
    lines = [
        f"{args.file}: {_count(rows)} rows of {_count(stream.n_features)} features",
        f"{type(model).__name__}: {_count(len(chosen))} features selected",
    ]
    if hasattr(model, "online_score_"):
        data |= {"online_score": float(model.online_score_), "online_loss": model.online_loss_}
        what = "of the labels" if args.task == "classification" else "of the variance of y"
        share = f"{100 * model.online_score_:.1f} % {what} foretold, each row before it was learned"
        lines.append(share)
    largest = ", ".join(f"{r['feature']} ({r['coefficient']:+.3g})" for r in chosen[:_SHOWN])
    lines.append(f"largest coefficients: {largest}{' ...' * (len(chosen) > _SHOWN)}")
    lines.append(f"{_duration(seconds)}, {_count(shown / seconds)} rows a second")
    written = [name for name in (args.out, args.model) if name]
    return Report(lines + [f"written: {', '.join(written)}"] * bool(written), data)


def predict(args) -> Report:
    """What a model says of the rows of a file, and how often it is right."""
    import numpy as np
    from sklearn.base import is_classifier
    from sklearn.metrics import r2_score, roc_auc_score

    from ofslib._model_files import class_of
    from ofslib.streams.checkpoint import reading

    name = class_of(args.model)
    if ofslib.home_of(name) is None or not hasattr(getattr(ofslib, name), "predict"):
        raise ValueError(f"{args.model}: it holds a {name}, which predicts nothing")
    model = getattr(ofslib, name).load(args.model)
    stream = _opened(args, n_features=args.n_features or _ANY_WIDTH, cache=False)
    began, unknown, parts = time.monotonic(), 0, []
    head = ["prediction", *["decision"] * is_classifier(model)]
    target = os.devnull if args.json and not args.out else args.out
    with _csv(target, *head) as writer, reading(stream, not args.quiet):
        for X, y in stream:
            p = model.n_features_in_
            known = X[:, :p] if X.shape[1] >= p else _widened(X, p)
            unknown += X.nnz - known.nnz
            said = model.predict(known)
            cells = [map(_cell, said)]
            margins = model.decision_function(known) if is_classifier(model) else said
            if is_classifier(model):
                cells.append(map(repr, margins.tolist()))
            writer.writerows(zip(*cells, strict=True))
            parts.append((y, said, margins))
    if not parts:
        raise ValueError(f"{args.file}: expected rows, got none")
    y, said, margins = map(np.concatenate, zip(*parts, strict=True))
    seconds = time.monotonic() - began
    data = {"file": args.file, "rows": len(y), "estimator": name, "seconds": seconds}
    data |= {"unknown_features": unknown, "out": args.out}
    lines = [f"{args.file}: {_count(len(y))} rows, {_duration(seconds)}"]
    if not is_classifier(model):
        data["r2"] = float(r2_score(y, said))
        lines.append(f"R^2 {data['r2']:.4f}")
    elif np.isin(y, model.classes_).all():
        data["accuracy"] = float((said == y).mean())
        lines.append(f"accuracy {data['accuracy']:.4f}")
        if len(np.unique(y)) == 2:
            data["auc"] = float(roc_auc_score(y, margins))
            lines[-1] += f", area under the curve {data['auc']:.4f}"
    else:
        classes = ", ".join(map(_cell, model.classes_))
        lines.append(f"no score: the file has labels that the model has not ({classes})")
    if unknown:
        many = _count(unknown, "values")
        lines.append(f"not read: {many} of features beyond the {_count(p)} that the model knows")
    lines += [f"written: {args.out}"] * bool(args.out)
    if not (args.out or args.json):  # stdout is for the predictions
        for line in lines:
            _say(line)
        lines = []
    return Report(lines, data)


def _widened(X, width: int):
    import scipy.sparse as sp

    return sp.csr_array((X.data, X.indices, X.indptr), shape=(X.shape[0], width))


def inspect(args) -> Report:
    """What is in a file, how fast it is read, and what to learn from it would need."""
    import numpy as np

    from ofslib.streams.checkpoint import reading

    stream = _opened(args, n_features=args.n_features or _ANY_WIDTH, cache=False)
    began, rows, values, width = time.monotonic(), 0, 0, 0
    labels: dict[float, int] | None = {}
    low, high, total = np.inf, -np.inf, 0.0
    with reading(stream, not args.quiet):
        for X, y in stream:
            rows, values = rows + len(y), values + X.nnz
            width = max(width, int(X.indices.max(initial=-1)) + 1)
            low, high, total = min(low, y.min()), max(high, y.max()), total + y.sum()
            if labels is not None:
                for label, count in zip(*np.unique(y, return_counts=True), strict=True):
                    labels[float(label)] = labels.get(float(label), 0) + int(count)
                labels = labels if len(labels) <= 1000 else None
    if not rows:
        raise ValueError(f"{args.file}: expected rows, got none")
    seconds, size = time.monotonic() - began, stream.text_bytes
    width = args.n_features or width
    density = values / max(1, rows * width)
    state = _state_bytes(width)
    data = {"file": args.file, "rows": rows, "features": width, "values": values}
    data |= {
        "density": density,
        "bytes": size,
        "seconds": seconds,
        "rows_per_second": rows / seconds,
    }
    data |= {"labels": None if labels is None else {_cell(y): n for y, n in sorted(labels.items())}}
    data |= {"label_range": [float(low), float(high)], "label_mean": float(total / rows)}
    data |= {"needs": {"cache_bytes": 12 * values + 12 * rows, "sfsa_bytes": state}}
    data["needs"]["averages_bytes"] = 8 * width * width
    if labels is None or len(labels) > _SHOWN:
        said = f"numbers from {low:g} to {high:g}, mean {total / rows:g}: --task regression"
    else:
        said = ", ".join(f"{_cell(y)} ({100 * n / rows:.1f} %)" for y, n in sorted(labels.items()))
    speed = f", {size / seconds / 1e6:.0f} MB/s" if size else ""
    pairs = {
        "rows": _count(rows),
        "features": _count(width),
        "values": f"{_count(values)}, {values / rows:.1f} a row, density {100 * density:.3g} %",
        "labels": said,
        "reading": f"{_duration(seconds)}: {_count(rows / seconds)} rows a second{speed}",
        "needed": f"{_size(state)} of memory by sfsa, {_size(8 * width * width)} by averages; "
        f"{_size(12 * values + 12 * rows)} of disk by the cache of the parsed rows",
    }
    return Report([f"{name:9}{text}" for name, text in pairs.items()], data)


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
    from ofslib.datasets.download import fetch, verify
    from ofslib.datasets.registry import read_rows

    rows = read_rows(args.registry)
    if unknown := [name for name in args.names if name not in rows]:
        raise _Misused(f"no data set {unknown[0]!r}; the registry knows {', '.join(rows)}")
    if args.action == "fetch":
        if not args.names:
            raise _Misused(f"datasets fetch: say which; the registry knows {', '.join(rows)}")
        came = {n: list(map(str, fetch(n, args.folder, args.registry))) for n in args.names}
        return Report([path for paths in came.values() for path in paths], {"fetched": came})
    found = {name: verify(name, args.folder, args.registry) for name in args.names or rows}
    if args.action == "list":
        data = [rows[name] | {"here": _together(files)} for name, files in found.items()]
        keys = {
            "name": "",
            "task": "",
            "n_train": ",",
            "n_test": ",",
            "n_features": ",",
            "here": "",
        }
        cells = [[format(row[key], form) for key, form in keys.items()] for row in data]
        return Report(_table(keys, cells), {"datasets": data})
    if not args.names:  # those of which something is here
        found = {name: files for name, files in found.items() if _together(files) != "missing"}
    states = {str(path): state for files in found.values() for path, state in files.items()}
    lines = [f"{state:8} {path}" for path, state in states.items()]
    wrong = any(state != "whole" for state in states.values())
    return Report(lines or [f"{args.folder}: no data set"], {"files": states}, FAILED * wrong)


def _together(files: dict[Path, str]) -> str:
    states = set(files.values())
    return states.pop() if len(states) == 1 else "damaged" if "damaged" in states else "partly"


def papers(args) -> Report:
    """The papers' tables and figures: what makes each, and whether it is made."""
    from ofslib.reproduction import project

    try:
        work = project.load(project.find_root())
    except project.ConfigurationError as error:
        raise _Misused(
            f"papers: works in a checkout of ofslib's repository only: {error}"
        ) from error
    data = []
    for name, entry in work.entries.items():
        made = all((work.root / file).is_file() for file in work.figures(name))
        runs = [(work.root / file).is_file() for file in work.inputs(name)]
        row = {"source": entry.spec["source"], "target": f"figure_{name}"}
        row |= {"notebook": work.notebook(name), "status": "made" if made else "not made"}
        data.append(row | {"runs": len(runs), "runs_made": sum(runs)})
    cells = [[*list(row.values())[:4], f"{row['runs_made']} of {row['runs']}"] for row in data]
    head = ["table or figure", "snakemake target", "notebook", work.scale, "runs here"]
    return Report(_table(head, cells), {"scale": work.scale, "papers": data})


# -------------------------------------------------- the command line


class _Parser(argparse.ArgumentParser):
    def error(self, message):
        self.exit(MISUSED, f"{self.prog}: {message} (see {self.prog} --help)\n")


def _setting(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not (name and equals):
        raise argparse.ArgumentTypeError(f"expected NAME=VALUE, got {text!r}")
    try:
        return name, json.loads(value)
    except ValueError:  # a word
        return name, value


def _parser() -> argparse.ArgumentParser:
    always = argparse.ArgumentParser(add_help=False)
    always.add_argument("--json", action="store_true", help="one JSON object on stdout")
    always.add_argument("--debug", action="store_true", help="show the traceback of an error")
    always.add_argument("--registry", metavar="CSV", help="a table of further data sets")
    always.add_argument("--folder", default="resources", help="of the data sets' files")
    rows = argparse.ArgumentParser(add_help=False)
    add = rows.add_argument
    add("file", metavar="FILE", help="LIBSVM or Vowpal Wabbit text, or a data set's name")
    add("--zero-based", action="store_true", help="the smallest index is 0")
    add("--n-features", type=int, metavar="P", help="width; else the largest index")
    add("--block-rows", type=int, default=10_000, metavar="N", help="rows read at a time")
    add("--n-jobs", type=int, default=1, metavar="N", help="threads that parse")
    add("--quiet", action="store_true", help="show no progress")
    parser = _Parser(prog="ofslib", description=__doc__.splitlines()[0], allow_abbrev=False)
    parser.add_argument("--version", action="version", version=f"ofslib {ofslib.__version__}")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")

    def command(function, *parents):
        said = function.__doc__.splitlines()[0]
        sub = commands.add_parser(
            function.__name__, help=said, description=said, parents=[*parents, always]
        )
        sub.set_defaults(command=function)
        return sub.add_argument

    add = command(select, rows)
    add("-k", type=int, required=True, help="features to keep")
    add("--method", default="sfsa", help="see `ofslib methods`")
    add("--task", choices=["classification", "regression"], default="classification")
    add("--passes", type=int, default=1, help="times that the rows are shown")
    add("--set", type=_setting, action="append", default=[], metavar="NAME=VALUE", help="parameter")
    add("--checkpoint", metavar="CKPT", help="go on from this file, and write it while learning")
    add("--every", type=float, default=30.0, metavar="SECONDS", help="between checkpoints")
    add("--out", metavar="CSV", help="write the features and their coefficients")
    add("--model", metavar="NPZ", help="write the model, for `predict` or Python")
    add("--cache", default=True, metavar="FOLDER", help="of the parsed rows; else beside FILE")
    add("--no-cache", dest="cache", action="store_false", help="parse in each pass")
    add = command(predict, rows)
    add("--model", required=True, metavar="NPZ", help="from `ofslib select` or save()")
    add("--out", metavar="CSV", help="write the predictions here, not to stdout")
    command(inspect, rows)
    add = command(datasets)
    add("action", choices=["list", "fetch", "verify"])
    add("names", nargs="*", metavar="NAME")
    command(methods)
    command(papers)
    return parser


def _say(text: str) -> None:
    from tqdm import tqdm

    tqdm.write(f"ofslib: {text}", file=sys.stderr)  # above a bar, if there is one


@contextmanager
def _warnings_told() -> Iterator[list[str]]:
    """Warnings as lines on stderr; gives them as a list, too."""
    told: list[str] = []

    def show(message, *where):
        told.append(str(message))
        _say(f"warning: {message}")

    with warnings.catch_warnings():
        warnings.showwarning = show
        yield told


def main(argv: list[str] | None = None) -> int:
    """Run a command; returns 0, 1 if it failed, 2 if it was misused, 130 after Ctrl-C."""
    args = _parser().parse_args(argv)
    try:
        with _warnings_told() as told:
            report = args.command(args)
        text = "\n".join(report.lines)
        if args.json:
            text = json.dumps(report.data | {"warnings": told}, default=lambda value: value.item())
        sys.stdout.write(text + "\n" * bool(text))
        sys.stdout.flush()
    except KeyboardInterrupt:
        path = getattr(args, "checkpoint", None)
        _say("stopped" + (f"; the same command goes on from {path}" if path else ""))
        return INTERRUPTED
    except BrokenPipeError:  # as `head` does it; Python itself must not find it at its end
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    except Exception as error:
        if args.debug:
            raise
        said = " ".join(str(error).split()) or type(error).__name__
        if isinstance(error, LookupError | AttributeError | TypeError | AssertionError):
            said = f"{type(error).__name__}: {said} (--debug shows where)"
        _say(said)
        return MISUSED if isinstance(error, _Misused) else FAILED
    return report.code


if __name__ == "__main__":
    sys.exit(main())
