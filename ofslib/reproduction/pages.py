"""Pages of docs/ with tables that are made of results, between marks that name them.

`python -m ofslib.reproduction.pages` writes docs/algorithms.md anew; all other words of it stay.
"""

import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pandas as pd

from ofslib._files import write_whole
from ofslib.datasets import registry

UNTUNED, PAGE = Path("figures/untuned_one_pass.csv"), Path("docs/algorithms.md")


def filled(text: str, made: Mapping[str, Callable[[], str]]) -> str:
    """The page with these tables between its marks.

    Raises
    ------
    ValueError
        If a mark names no table, or a table has no mark.
    """
    mark = re.compile(r"(<!-- measured: (\w+) -->\n).*?(<!-- end -->)", re.S)
    named = [found[2] for found in mark.finditer(text)]
    if sorted(named) != sorted(made):
        wrong = sorted({*named} ^ made.keys()) or "one twice"
        raise ValueError(f"marks and tables differ: {wrong}")
    return mark.sub(lambda found: f"{found[1]}{made[found[2]]()}\n{found[3]}", text)


def table_lines(rows: list[list[str]]) -> list[str]:
    """A table in Markdown; the first row is its head."""
    rows = [rows[0], ["---"] * len(rows[0]), *rows[1:]]
    return ["| " + " | ".join(row) + " |" for row in rows]


def untuned(shown: pd.DataFrame) -> str:
    """The figures of the entry `untuned_one_pass`: a line a method, a column a data set."""
    sets = registry().loc[shown["dataset"].unique()].sort_values("n_train", ascending=False)
    counts = shown["k"].dropna().sort_values().unique()
    lines = [["AUC, k = " + ", ".join(f"{k:g}" for k in counts)]]
    lines[0] += [f"{row.title}, {row.n_train:,} rows" for row in sets.itertuples()]
    at = dict([*shown.groupby(["method", "dataset", "metric"])])
    for method in sorted(shown["method"].unique(), key=str.lower):
        cells = []
        for name in sets.index:
            own = at[method, name, "AUC"].sort_values("k")
            said = " ".join(f"{value:.3f}".removeprefix("0") for value in own["ours"])
            if own["k"].isna().all():
                said += f" ({at[method, name, 'selected']['ours'].item():,.0f})"
            cells.append(said)
        lines.append([method, *cells])
    return "\n".join(table_lines(lines))


if __name__ == "__main__":
    made = {"untuned": lambda: untuned(pd.read_csv(UNTUNED))}
    write_whole(PAGE, filled(PAGE.read_text(encoding="utf-8"), made))
    sys.stdout.write(f"{PAGE}\n")
