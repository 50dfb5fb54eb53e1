"""Sizes, durations, labels, tables and warnings as the command line shows them."""

import csv
import io
import re
import sys
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from ofslib._files import whole_file

SHOWN = 10  # features or labels in a summary


def few(words: list[str]) -> str:
    """The first of a list."""
    return ", ".join(words[:SHOWN]) + " ..." * (len(words) > SHOWN)


def memory_size(n_bytes: float) -> str:
    """A number of bytes."""
    for unit in ("B", "kB", "MB", "GB"):
        if n_bytes < 1000:
            return f"{n_bytes:.3g} {unit}"
        n_bytes /= 1000
    return f"{n_bytes:,.3g} TB"


def duration(seconds: float) -> str:
    """A number of seconds."""
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, seconds = divmod(round(seconds), 60)
    return (
        f"{minutes // 60} h {minutes % 60} min" if minutes >= 60 else f"{minutes} min {seconds} s"
    )


def cell(value: Any) -> str:
    """A label or number, so that it is read as the same again."""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def text_table(head: Iterable[str], rows: Iterable[Iterable[Any]]) -> list[str]:
    """The lines of a table, in columns as wide as they need."""
    cells = [[str(value) for value in row] for row in (head, *rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return ["  ".join(map(str.ljust, row, widths)).rstrip() for row in cells]


@contextmanager
def csv_table(path: str | None, *head: str) -> Iterator[Any]:
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
        text.detach()


def with_options(text: str) -> str:
    """A message as the command says it: of `label='y' (--label)` only `--label 'y'`.

    Only where the option is that of the parameter: others stay beside the words they explain.
    """

    def option(found):
        name, value, given = found.groups()
        named = given.split()[0].removeprefix("no-").replace("-", "_")
        if named != name.removesuffix("_path"):
            return found[0]
        shown = f" {value}" * (" " not in given and value not in (None, "True", "False"))
        return f"--{given}{shown}"

    return re.sub(r"(\w+)(?:=('[^']*'|[^\s()]+))? \(--([^()]+)\)", option, text)


def say(text: str) -> None:
    """A line of the command on stderr."""
    from tqdm import tqdm

    # Above a bar, if there is one.
    tqdm.write(f"ofslib: {with_options(text)}", file=sys.stderr)


@contextmanager
def warnings_told() -> Iterator[list[str]]:
    """Warnings as lines on stderr; gives them as a list, too."""
    told: list[str] = []

    def show(message, *where):
        if str(message) not in told:  # one for each block, if it is of the columns
            told.append(str(message))
            say(f"warning: {message}")

    with warnings.catch_warnings():
        warnings.simplefilter("always", UserWarning)
        warnings.showwarning = show
        yield told


def about_labels(y) -> dict[str, Any]:
    """How often each occurs, and from where to where numbers go; None where that says nothing."""
    import numpy as np

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
