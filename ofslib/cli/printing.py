"""What the command ofslib prints and writes."""

import codecs
import csv
import re
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from types import SimpleNamespace
from typing import Any

from tqdm import tqdm

from ofslib._files import whole_file
from ofslib._options import one_line, visible

SHOWN = 10  # features or labels in a summary

Report = tuple[list[str], dict[str, Any]]  # lines to a reader, and what --json shows


def few(values: Any) -> str:
    """The first of a list."""
    return ", ".join(map(str, values[:SHOWN])) + " ..." * (len(values) > SHOWN)


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
        text: Any = codecs.getwriter("utf-8")(file) if file else sys.stdout
        if not file and text.isatty():
            text = SimpleNamespace(write=lambda row: sys.stdout.write(visible(row[:-1]) + "\n"))
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(head)
        yield writer


def say(text: str) -> None:
    """Lines on stderr, above a progress bar if there is one."""
    shown = "\n".join(map(visible, text.split("\n")))
    tqdm.write(f"ofslib: {shown}", file=sys.stderr)


def warn_formulas(path: str | None, names: Any) -> None:
    """Warn if a table that is written has names which a spreadsheet would run as formulas."""
    begins = re.compile(r"(?![+-]?[0-9.]+(e[+-]?[0-9]+)?$)[=+@-]")  # and is no number
    if path and (found := list(filter(begins.match, map(str, names)))):
        warnings.warn(
            f"{path}: a spreadsheet takes {found[0]!r} for a formula; import the column as text",
            stacklevel=2,
        )


@contextmanager
def warnings_told() -> Iterator[list[str]]:
    """Show warnings as lines on stderr, each once; gives them as a list, too."""
    told: list[str] = []

    def show(message, *where):
        if str(message) not in told:
            told.append(str(message))
            say(f"warning: {one_line(message)}")

    with warnings.catch_warnings():
        warnings.simplefilter("always", UserWarning)
        warnings.showwarning = show
        yield told
