"""The options of the command ofslib, the methods that they name, and tables of text."""

import argparse
import json
import os
import re
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import ofslib

MISUSED = 2
# Parameters that have an option of their own.
OWN = {"k": "-k", "n_passes": "--passes", "fdr": "--fdr", "class_weight": "--class-weight"}
CRITERIA = ("aic", "bic", "ebic")  # by which methods on averages choose how many features


class Misused(Exception):
    """An option, or what goes with it, that is not there."""


class Method(NamedTuple):
    """What there is to say of a method without running it."""

    stream: str
    classes: dict[str, str]  # task -> estimator
    cost: str
    about: str


def _short(name: str) -> str:
    """How the command names the method of an estimator."""
    bare = re.sub("(Classifier|Regressor|Selector)$", "", name)
    return re.sub("(?<=[a-z])(?=[A-Z])", "-", bare).lower()


def known_methods(wanted: str | None = None) -> dict[str, Method]:
    """All methods, or the one wanted, by the names that the command gives them."""
    from sklearn.base import is_classifier, is_regressor

    found: dict[str, Method] = {}
    for name in sorted(name for names in ofslib.ESTIMATORS.values() for name in names):
        if wanted not in (None, _short(name)):
            continue
        cls = getattr(ofslib, name)
        stream = "columns" if hasattr(cls, "partial_fit_columns") else "all at once"
        if hasattr(cls, "partial_fit"):
            stream = "averages" if hasattr(cls, "averages_") else "rows"
        tests = {"classification": is_classifier, "regression": is_regressor}
        tasks = [task for task, is_for in tests.items() if is_for(cls())]
        if stream == "columns" and hasattr(cls, "coef_"):  # whose loss decides
            tasks = [*tests]
        words = " ".join(cls.__doc__.split("Parameters\n")[0].split())
        cost = re.search(r"Cost: (.*?)(?=\.( |$))", words)
        method = Method(stream, {}, cost[1] if cost else "", cls.__doc__.splitlines()[0])
        tasks = tasks or ["selection only"]
        found.setdefault(_short(name), method).classes.update(dict.fromkeys(tasks, name))
    return found


def estimator(name: str, task: str, given: dict[str, Any]):
    """A new estimator of a method that is shown rows."""
    method = known_methods(name).get(name)
    if method is None or method.stream not in ("rows", "averages"):
        known = {k: m for k, m in known_methods().items() if m.stream in ("rows", "averages")}
        able = ", ".join(k for k, m in known.items() if task in m.classes)
        what = "it does not exist" if method is None else f"it reads {method.stream}, no rows"
        raise Misused(f"--method {name}: {what}; for {task} there are {able}")
    if task not in method.classes:
        raise Misused(f"--task {task}: {name} is for {', '.join(method.classes)}")
    cls = getattr(ofslib, method.classes[task])
    able = cls().get_params()
    if given.get("n_passes") == 1 and "n_passes" not in able:
        del given["n_passes"]
    for parameter in sorted(set(given) - set(able)):
        option = OWN.get(parameter, f"--set {parameter}")
        only = f"has only the parameters {', '.join(able)}"
        lacks = "does not choose k features" if option == "-k" else only
        raise Misused(f"{option}: {cls.__name__} {lacks}")
    if given.get("k") in CRITERIA and "max_k" not in able:
        others = "olsth, ofsa, online-lasso and others that read averages choose by a criterion"
        raise Misused(f"-k {given['k']}: {cls.__name__} keeps a number of features; {others}")
    return cls(**given)


def text_table(head: Iterable[str], rows: Iterable[Iterable[Any]]) -> list[str]:
    """The lines of a table."""
    cells = [[str(value) for value in row] for row in (head, *rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return ["  ".join(map(str.ljust, row, widths)).rstrip() for row in cells]


def visible(text: str) -> str:
    """The text with control characters as escapes: in a terminal they could act or mislead."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def one_line(message: object) -> str:
    """A message on one line, in which very long words are shortened."""
    words = " ".join(str(message).split())
    return visible(re.sub(r"\S{1000,}", lambda word: f"{word[0][:60]}...", words))


class _Parser(argparse.ArgumentParser):
    def error(self, message):
        self.exit(MISUSED, f"{self.prog}: {one_line(message)} (see {self.prog} --help)\n")


class _Settings(argparse.Action):
    """Pairs of names and values, each name once."""

    def __call__(self, parser, namespace, pair, option=None):
        given = getattr(namespace, self.dest)
        if pair[0] in dict(given):
            raise argparse.ArgumentError(self, f"{pair[0]} is given twice")
        setattr(namespace, self.dest, [*given, pair])


def setting(text: str) -> tuple[str, Any]:
    """NAME=VALUE; a value that is no JSON is a word."""
    name, sign, value = text.partition("=")
    if not sign:
        raise argparse.ArgumentTypeError(f"expected NAME=VALUE, got {text!r}")
    try:
        return name, json.loads(value)
    except RecursionError as error:
        raise argparse.ArgumentTypeError(f"the value of {name} has too many brackets") from error
    except ValueError:
        return name, value


def _count(text: str) -> int:
    if not (re.fullmatch("[0-9]{1,18}", text) and int(text)):
        raise argparse.ArgumentTypeError(f"expected a whole number from 1, got {text!r}")
    return int(text)


def _sizes(text: str) -> list[int | str]:
    return [text] if text in CRITERIA else list(dict.fromkeys(map(_count, text.split(","))))


def _weights(text: str) -> str | dict[Any, float]:
    if text == "balanced":
        return text
    pairs = [pair.rpartition(":") for pair in text.split(",")]
    try:
        weights = [float(weight) for _, _, weight in pairs]
    except ValueError:
        message = f"expected balanced, or LABEL:WEIGHT,LABEL:WEIGHT, got {text!r}"
        raise argparse.ArgumentTypeError(message) from None
    labels = _labels(",".join(label for label, _, _ in pairs))
    if len({*labels}) < len(labels):
        raise argparse.ArgumentTypeError(f"a label is given twice in {text!r}")
    return dict(zip(labels, weights, strict=True))


def _share(text: str) -> float:
    try:
        share = float(text)
    except ValueError:
        share = -1.0
    if not 0 <= share < 1:
        raise argparse.ArgumentTypeError(f"expected a share from 0 to below 1, got {text!r}")
    return share


def _labels(text: str) -> list[Any]:
    labels = text.split(",")
    try:
        return list(map(float, labels))
    except ValueError:  # words
        return labels


def _column(text: str) -> str | int:
    return int(text) if re.fullmatch("-?[0-9]{1,18}", text) else text


def _rows(add) -> None:
    add("file", metavar="FILE", help="text, table or arrays, by its ending; or a data set's name")
    add("--format", help="libsvm, vw, csv, tsv, parquet, arrow, npy or npz, whatever the ending")
    add("--label", type=_column, metavar="COLUMN", help="name or position (from 0) of the labels")
    add("--weight", type=_column, nargs="?", const=True, metavar="COLUMN", help="that of weights")
    add("--no-header", dest="header", action="store_false", help="CSV without names of columns")
    add("--word-labels", action="store_true", help="labels of the text are words")
    add("--hashed", action="store_true", help="names of the text are words: see --n-features")
    add("--zero-based", action="store_true", help="the smallest index is 0")
    add("--n-features", type=_count, metavar="P", help="number of features; else as in the file")
    _raw(add)
    add("--block-rows", type=_count, default=10_000, metavar="N", help="rows read at a time")
    message = "threads that parse: 2, if there are as many cores"
    add("--n-jobs", type=_count, default=min(2, os.cpu_count() or 1), metavar="N", help=message)
    add("--quiet", action="store_true", help="show no progress")


def _raw(add) -> None:
    """What becomes of the columns of a table."""
    message = "columns of a table that are no features, by name or position"
    add("--ignore", type=lambda text: [*map(_column, text.split(","))], metavar="A,B", help=message)
    add("--delimiter", type=_delimiter, metavar="CHARACTER", help="between cells; else found")
    ways = ["refuse", "mean", "indicator"]
    add(
        "--missing",
        choices=ways,
        default="refuse",
        help="cells without a value: an error if unsaid",
    )
    message = "columns of words: a feature for each word, or hashed; an error if unsaid"
    add("--categorical", choices=["onehot", "hash"], help=message)
    add("--standardize", action="store_true", help="features to one scale, learned in a first look")


def _delimiter(text: str) -> str:
    return "\t" if text in ("\\t", "tab") else text


def parser(*commands: Callable) -> argparse.ArgumentParser:
    """What reads the command line; the command that is called is `command` of what it gives."""
    about = "The command ofslib: from a file to features, a model and predictions."
    whole = _Parser(prog="ofslib", description=about, allow_abbrev=False)
    whole.add_argument("--version", action="version", version=f"ofslib {ofslib.__version__}")
    places = whole.add_subparsers(title="commands", required=True, metavar="COMMAND")
    for function in commands:
        name, message = function.__name__, function.__doc__.splitlines()[0]
        sub = places.add_parser(name, help=message, description=message)
        sub.set_defaults(command=function, code=0)
        add = sub.add_argument
        if name in ("select", "predict", "inspect"):
            _rows(add)
        if name == "select":
            _select(add, sub.add_mutually_exclusive_group(required=True).add_argument)
        if name == "predict":
            add("--model", required=True, metavar="NPZ", help="from `ofslib select` or save()")
            add("--out", metavar="CSV", help="write the predictions here, not to stdout")
            add("--proba", action="store_true", help="write probabilities, not decisions")
        if name == "datasets":
            add("action", choices=["list", "fetch", "verify"])
            add("names", nargs="*", metavar="NAME")
        add("--json", action="store_true", help="one JSON object on stdout")
        add("--debug", action="store_true", help="show the traceback of an error")
        add("--registry", dest="registry_path", metavar="CSV", help="of further data sets")
        add("--folder", default="resources", help="of the data sets' files")
    return whole


def _select(add, how_many) -> None:
    message = "features to keep in all; several, as 10,50,200, to compare; or aic, bic or ebic"
    how_many("-k", type=_sizes, default=[], metavar="K", help=message)
    how_many("--fdr", type=float, metavar="Q", help="largest expected share of false ones")
    add("--method", help="see `ofslib methods`, or auto; else sfsa, with --fdr knockoffs")
    tasks = ["classification", "regression"]
    add("--task", choices=tasks, default=tasks[0], help="the first, if it is not said")
    add("--classes", type=_labels, metavar="A,B", help="all labels, if the first rows lack one")
    message = "keep k features for each of more than two labels, not k in all"
    add("--per-class", action="store_true", help=message)
    message = "balanced, or LABEL:WEIGHT,... of the rows of each label"
    add("--class-weight", type=_weights, metavar="W", help=message)
    message = "share of the rows not to learn, but to score on: 0.1, without --test"
    add("--holdout", type=_share, metavar="SHARE", help=message)
    add("--test", metavar="FILE", help="score on the rows of this file, read as FILE is")
    add("--plot", metavar="PNG", help="draw the score by k; also as .svg or .pdf")
    add("--passes", type=_count, default=1, help="times that all rows are shown: 1")
    message = "a parameter of the method, such as learning_rate=0.1"
    add("--set", type=setting, action=_Settings, default=[], metavar="NAME=VALUE", help=message)
    add("--checkpoint", metavar="CKPT", help="write this file while learning, and go on from it")
    add("--every", type=float, default=30.0, metavar="SECONDS", help="between two checkpoints: 30")
    add("--out", metavar="CSV", help="write the features and their coefficients")
    add("--model", metavar="NPZ", help="write the model, for `predict` or Python")
    add("--cache", metavar="FOLDER", help="keep parsed rows here, not beside FILE")
    add("--no-cache", dest="cache", action="store_false", help="parse in each pass")
