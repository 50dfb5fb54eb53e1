"""Tables of cells as notebooks, the report, LaTeX and the console show them.

A table is a frame of cells, one text a row: the axes that name a row of the table, `side` (ours,
paper), `column`, `text`, `verdict`, `why`, and marks of the scoreboard (`COUNTED`). `wide` lays it
out; `styled` is its pandas Styler, of which HTML and LaTeX are made.
"""

import html
import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from pandas.io.formats.style import Styler

from ofslib.reproduction.looks import TITLES, in_order
from ofslib.reproduction.tables import NOT_PRINTED, RECONSTRUCTED, VERDICTS

DIGITS = {"DR": 1, "RMSE": 2, "R2": 3, "AUC": 3, "accuracy": 1, "selected": 1, "time_s": 3}
MARKS = dict(zip(VERDICTS, ["", "⁺", "⁻", "˜", "ˀ"], strict=True))
# Of the paper's numbers that our text of it does not have so.
SOURCES = {"repaired": "ʳ", "inferred": "ⁱ", "unreadable": "ᵘ"}
# Where the scoreboard counts a cell: as reconstructed, by the text.
COUNTED = ("as_reconstructed", "by_the_text")
NO_NUMBER = "–"
_COLOURS = {"agrees": "#2e8b5733", "better": "#2474b533", "worse": "#cf4a2033"}
_COLOURS = {word: f"background: {c}" for word, c in _COLOURS.items()}
_SIZES = {"points": "Data points", "features": "Features", "n_features": "Features"}
_SIZES |= {"n_train": "Training rows", "n_test": "Test rows", "density": "Density (%)"}
_UNLIKE = {"beyond": "More than k features, in some runs"}
_UNLIKE |= {"own_passes": "Their own number of passes over the rows"}
_GREEK = {"eps": "ε", "delta": "δ", "alpha": "α", "||": "‖"}  # of formulas in words

# A power in words: n^2, n^(-1/2), n^1.02±0.03.
POWER = re.compile(r"\^\(([^()]*)\)|\^([-A-Za-z\d./]+(?:±[\d.]+)?)")


class Block(NamedTuple):
    """One table of cells."""

    caption: str
    said: list[str]  # what is said of it as a whole
    axes: list[str]
    columns: list[str]
    cells: pd.DataFrame
    is_time: bool = False


def blocks(table: pd.DataFrame, title: str, titles: Mapping[str, str]) -> list[Block]:
    """The blocks of a file of cells, whichever it is; none of another file.

    Parameters
    ----------
    table : DataFrame
        From `tables.compare`, `orders.beside`, of sizes of data sets, or a summary by budgets.
    title : str
        Of the entry: the caption of a table that is one block.
    titles : mapping
        Data set -> its title.
    """
    table = table.copy()
    if "dataset" in table:
        table["dataset"] = table["dataset"].map(lambda name: titles.get(name, name))
    if "measured" in table:
        columns = [*table["metric"].unique()]
        return [Block(title, _signs(table["measured"]), ["method"], columns, _orders(table))]
    if "same" in table:
        columns = [*table["metric"].map(_SIZES).unique()]
        return [Block(title, [], ["data set"], columns, _sizes(table))]
    if "strict" in table:
        by = [column for column in ("reading", "metric") if column in table]
        table["digits"] = table["metric"].map(_digits(table))
        return [_measured(part) for _, part in table.groupby(by, sort=False)]
    if {"dataset", "k", "metric"} <= set(table):
        summary = table[table["metric"].notna()]
        return [_budgets(name, part) for name, part in summary.groupby("dataset", sort=False)]
    return []


# -------------------------------------------------- the cells of each kind of table


def caption(metric: str) -> str:
    """What is shown of a metric; few times, of which one may be an outlier, have a median."""
    return f"{TITLES[metric]}, {'median' if metric == 'time_s' else 'mean (standard error)'}"


def _digits(table: pd.DataFrame) -> dict[str, int]:
    """Metric -> as many digits as the paper prints, of which some numbers end in a zero."""
    known = table.dropna(subset="paper")
    decimals = known["paper"].map(lambda value: len(f"{value:g}".partition(".")[2]))
    usual = decimals[decimals > 0].groupby(known["metric"]).quantile(0.9, interpolation="higher")
    return {metric: int(usual.get(metric, DIGITS[metric])) for metric in table["metric"].unique()}


def _measured(part: pd.DataFrame) -> Block:
    """The cells of one metric and reading: a row of the paper's table a row, a method a column."""
    metric = part["metric"].iloc[0]
    is_time = metric == "time_s"
    axes = [c for c in part.columns[: part.columns.get_loc("method")] if c != "reading"]
    digits = part["digits"].iloc[0]
    ours, paper = [], []
    for cell in part.itertuples():
        mark = "" if is_time or np.isnan(cell.paper) else MARKS[cell.verdict]
        error = np.nan if is_time else cell.se
        ours.append(_number(cell.median if is_time else cell.ours, error, digits, mark))
        printed = NO_NUMBER if np.isnan(cell.paper) else f"{cell.paper:g}"
        paper.append(printed + SOURCES.get(cell.printed, ""))
    if part["paper"].isna().all():  # of no paper, which need not be said of each cell
        part = part.assign(verdict="", why=part["why"].astype(object).replace(NOT_PRINTED, ""))
    reading = [*part["reading"].unique()] if "reading" in part else []
    columns = in_order(part["method"])
    part = part.assign(column=part["method"])
    if not axes:  # methods are rows
        axes, columns = ["method"], [TITLES[metric]]
        part = part.assign(column=TITLES[metric])
    return Block(
        ": ".join([*reading, caption(metric)]),
        [*fitted(part), *runs(part["replicates"]), *unlike(part)],
        axes,
        columns,
        _two_sides(part, axes, ours, paper),
        is_time,
    )


def _two_sides(part: pd.DataFrame, axes: list[str], ours, paper) -> pd.DataFrame:
    """Ours above the paper's; the verdict is that of ours."""
    marks = [column for column in COUNTED if column in part]
    above = part[[*axes, "column", "verdict", *marks]]
    above = above.assign(why=part["why"].astype(object).fillna(""))
    above, below = above.assign(side="ours", text=ours), above.assign(side="paper", text=paper)
    below = below.assign(verdict="", why="", **dict.fromkeys(marks, False))
    return pd.concat([above, below]).sort_index(kind="stable")


def _number(value: float, error: float, digits: int, mark: str = "") -> str:
    """A number with its error, which is not shown as 0 if it is none."""
    if np.isnan(value):
        return NO_NUMBER
    least = 10.0**-digits
    shown = f"<{least:.{digits}f}" if 0 < error < least / 2 else f"{error:.{digits}f}"
    return f"{value:.{digits}f}{mark}" + ("" if np.isnan(error) else f" ({shown})")


def _orders(table: pd.DataFrame) -> pd.DataFrame:
    """Orders of growth, the paper's above; several of our methods of one row are several sides."""
    rows = []
    marks = [column for column in COUNTED if column in table]
    for cell in table.astype(object).fillna({"measured": "", "why": ""}).to_dict("records"):
        own = {"method": cell["method"], "column": cell["metric"], "verdict": "", "why": ""}
        paper = cell["paper"] if isinstance(cell["paper"], str) else NO_NUMBER
        for word, letter in _GREEK.items():
            paper = paper.replace(word, letter)
        rows.append(own | {"side": "paper", "text": paper + SOURCES.get(cell["printed"], "")})
        own |= {"verdict": cell["verdict"], "why": cell["why"]} | {m: cell[m] for m in marks}
        for words in cell["measured"].split("; "):
            label, _, shown = words.rpartition(": ")
            mark = MARKS[cell["verdict"]] if shown and cell["verdict"] in VERDICTS[1:4] else ""
            rows.append(own | {"side": label or "ours", "text": shown + mark})
            own |= dict.fromkeys(marks, False)  # a cell counts once
    return pd.DataFrame(rows)


def _signs(measured: pd.Series) -> list[str]:
    is_measured = any("±" in words for words in measured.fillna(""))
    return ["n^1.02±0.03: exponent of n, and half of its 95 % interval"] * is_measured


def _sizes(table: pd.DataFrame) -> pd.DataFrame:
    shown = table.assign(column=table["metric"].map(_SIZES), **{"data set": table["title"]})
    same = table["same"].eq(True)
    shown["verdict"] = np.where(same, VERDICTS[0], VERDICTS[-1])
    ours, paper = (
        [NO_NUMBER if np.isnan(value) else f"{value:,.10g}" for value in table[side].round(2)]
        for side in ("ours", "paper")
    )
    return _two_sides(shown, ["data set"], ours, paper)


def _budgets(name: str, part: pd.DataFrame) -> Block:
    """Methods by their budget k; what has none says how many features it took."""
    taken = part[part["metric"] == "selected"].set_index("method")["ours"]
    part = part[part["metric"] == "AUC"]
    budgets = {k: f"k = {k:.0f}" for k in sorted(part["k"].dropna().unique())}
    rows = []
    for cell in part.itertuples():
        free = np.isnan(cell.k)
        size = f", {taken[cell.method]:.0f}" if free else ""
        column = "any k" if free else budgets[cell.k]
        rows.append([cell.method, column, _number(cell.ours, cell.se, DIGITS["AUC"]) + size])
    cells = pd.DataFrame(rows, columns=["method", "column", "text"])
    cells = cells.assign(side="ours", verdict="", why="")
    said = [*runs(part["replicates"]), "Any k: what takes no k, with the features it keeps"]
    return Block(f"{name}: {caption('AUC')}", said, ["method"], [*budgets.values(), "any k"], cells)


# -------------------------------------------------- what is said of a table


def runs(replicates: pd.Series) -> list[str]:
    """Over how many runs means are, from the fewest to the most; nothing if of none."""
    known = replicates.dropna()
    ends = dict.fromkeys(f"{n:.0f}" for n in (known.min(), known.max()))
    return [f"Runs: {' to '.join(ends)}"] if len(known) else []


def fitted(part: pd.DataFrame) -> list[str]:
    """Whether cells are by the text or fitted, and how many values were chosen, by method."""
    part = part[part["metric"] != "time_s"]
    if part["paper"].isna().all():
        return []
    counts = part[part["fitted"] > 0].groupby("method")["fitted"].max()
    named = ", ".join(f"{method} {counts[method]}" for method in in_order(counts.index))
    what = "Fitted" if RECONSTRUCTED in set(part["basis"]) else "By the text"
    return [f"{what}; values chosen to match: {named}" if named else what]


def unlike(part: pd.DataFrame) -> Iterator[str]:
    """Which methods keep more than k features, or choose their passes: their numbers are others."""
    for column, words in _UNLIKE.items():
        if column in part and (part[column] > 0).any():
            methods = in_order(part.loc[part[column] > 0, "method"])
            yield f"{words}: {', '.join(methods)}"


def legend(block: Block) -> list[str]:
    """What the marks mean that are shown."""
    shown = "".join(block.cells["text"])
    marks = {mark: word for word, mark in MARKS.items() if mark and mark in shown}
    said = [", ".join(f"{mark} {word}" for mark, word in marks.items())] * bool(marks)
    said = [f"{said[0]}, no mark: {VERDICTS[0]}, or nothing to compare"] if said else []
    sources = ", ".join(f"{mark} {word}" for word, mark in SOURCES.items() if mark in shown)
    return said + [f"The paper's numbers in our text of it: {sources}"] * bool(sources)


def reasons(block: Block) -> Iterator[tuple[str, str, list[str]]]:
    """Of what does not agree: the verdict, why, and which columns."""
    told = block.cells[block.cells["why"] != ""]
    told = told.assign(why=told["why"].str.split("; ")).explode("why")
    # What differs from cell to cell stands in the CSV file.
    told["why"] = told["why"].str.replace(r"^\d+ of \d+ | are [\d.e+-]+$", "", regex=True)
    for (word, why), own in told.groupby(["verdict", "why"], sort=False):
        yield word, why, [*dict.fromkeys(own["column"])]


# -------------------------------------------------- as it is laid out


def wide(block: Block, values: str = "text", empty: Any = "") -> pd.DataFrame:
    """Rows by axes and side, a column a column; rows and columns without any text are left out."""
    own, by = block.cells, [*block.axes, "side"]
    has_text = own["text"].str.strip(NO_NUMBER) != ""
    if has_text.any():
        rows = has_text.groupby([own[name] for name in by]).transform("any")
        own = own[rows & has_text.groupby(own["column"]).transform("any")]
    table = own.pivot_table(values, by, "column", aggfunc="first", sort=False)
    table = table[[name for name in block.columns if name in table]]
    table = table.rename_axis(columns=None, index=[*block.axes, ""]).astype(object).fillna(empty)
    return table.droplevel(-1) if {*own["side"]} == {"ours"} else table


def styled(block: Block, flat: bool = False) -> Styler:
    """The table with its verdicts as classes; `flat`: the axes in one column, as the report."""
    texts, classes = wide(block), wide(block, "verdict").map(lambda word: word.replace(" ", "-"))
    for mark in COUNTED:
        if mark in block.cells:
            counted = wide(block, mark, False).astype(bool)
            classes = classes.mask(counted, classes + f" {mark}")
    if flat:
        n = len(block.axes)
        keys = [key if isinstance(key, tuple) else (key,) for key in texts.index]
        keys = [(", ".join(map(shown, key[:n])), *key[n:]) for key in keys]
        names = [", ".join(block.axes), *texts.index.names[n:]]
        texts.index = pd.MultiIndex.from_tuples(keys, names=names)
        classes.index = texts.index
        return plain(texts).set_td_classes(classes)
    looks = [{"selector": f".{word}", "props": look} for word, look in _COLOURS.items()]
    return plain(texts).set_td_classes(classes).set_table_styles(looks)


def plain(table: pd.DataFrame) -> Styler:
    """A table as it is, in the one style of all; names are no HTML."""
    table = table.astype(object).where(table.notna(), "")
    table = table.rename_axis(index=lambda name: name and html.escape(name))
    style = Styler(table, precision=4, escape="html", cell_ids=False)
    for axis in (0, 1):
        style = style.format_index(shown, escape="html", axis=axis)
    return style


def shown(value: Any) -> str:
    """The name of a row: of a number with its thousands apart."""
    return f"{value:,}" if isinstance(value, int | np.integer) else str(value)


def above(block: Block) -> str:
    """What stands above a block in a notebook, in Markdown."""
    return ". ".join([f"**{block.caption}**", *block.said, *legend(block)])


def below(block: Block) -> str:
    """What stands below it: what does not agree, and why."""
    return "\n".join(f"- {word}: {why} ({', '.join(at)})" for word, why, at in reasons(block))
