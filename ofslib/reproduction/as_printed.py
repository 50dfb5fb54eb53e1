"""Tables as the papers print them: marks of verdicts, captions, as many digits as the paper has."""

from collections.abc import Iterable

import numpy as np
import pandas as pd

from ofslib.reproduction.looks import TITLES, in_order
from ofslib.reproduction.tables import NOT_PRINTED, PRINTED, RECONSTRUCTED, VERDICTS

DIGITS = {"DR": 1, "RMSE": 2, "R2": 3, "AUC": 3, "accuracy": 1, "selected": 1, "time_s": 3}
_MARKS = dict(zip(VERDICTS, ["", "+", "-", "~", "?"], strict=True))
# How reasons begin that are known without a look at ours -> what they mean for the paper's column.
_OF_THE_PAPER = {"dash": "printed so", "unreadable": "unreadable in our text of the paper"}
_OF_THE_PAPER[NOT_PRINTED] = NOT_PRINTED
_NEITHER = "no number in the paper either"
# Of the paper's numbers, by what they are in our text of it; its dashes have none.
_SOURCES = {word: word[0] for word in PRINTED if word != "dash"}
# Marks are raised. A verdict that has none in `_MARKS` is marked by a letter.
RAISED = str.maketrans("+-?~()abcdefriu", "⁺⁻ˀ˜⁽⁾ᵃᵇᶜᵈᵉᶠʳⁱᵘ")


def blocks(table: pd.DataFrame, source: str, published: str | None) -> dict[str, pd.DataFrame]:
    """The `layout` of each metric and reading of a table of cells, by its caption.

    `source` says which table it is, `published` is the file of the numbers that the paper prints.
    """
    printed = None if published is None else pd.read_csv(published, dtype={"value": str})
    readings = table["reading"].unique() if "reading" in table else [None]
    found = {}
    for metric in table["metric"].unique():
        for reading in readings:
            part = _part(table, metric, reading)
            if len(part):
                what = caption(metric) if part["ours"].notna().any() else TITLES[metric]
                words = [", ".join(filter(None, (source, reading))), what, legend(part)]
                found[". ".join(filter(None, words))] = layout(table, metric, reading, printed)
    return found


def caption(metric: str) -> str:
    """What `layout` shows of a metric; few times, of which one may be an outlier, have a median."""
    return f"{TITLES[metric]}, {'median' if metric == 'time_s' else 'mean (standard error)'}"


def runs(replicates: pd.Series) -> list[str]:
    """Over how many runs means are, from the fewest to the most; nothing if of none."""
    known = replicates.dropna()
    ends = dict.fromkeys(f"{n:.0f}" for n in (known.min(), known.max()))
    return [f"Runs: {' to '.join(ends)}"] if len(known) else []


def legend(part: pd.DataFrame) -> str:
    """Of cells of one metric: over how many runs, what the marks mean, why some have no number.

    Methods that have none at all, which `layout` leaves out, are named; and those that keep more
    than k features, whose numbers are not those of k; and of how many methods how many values were
    chosen to match.
    """
    marks, said = _marks(part), [*fitted(part), *runs(part["replicates"])]
    alone = bool((part["ours"].notna() & part["paper"].isna()).any())
    if any(marks.values()):
        unmarked = [word for word, mark in marks.items() if not mark]
        unmarked += ["nothing to compare"] * alone
        words = [f"{mark} {word}" for word, mark in marks.items() if mark]
        words += [f"no mark: {', or '.join(unmarked)}"] * bool(unmarked)
        said.append(", ".join(words))
    elif marks:
        compared = part.dropna(subset=["ours", "paper"])
        why = compared["why"].fillna("").unique()
        every = "Every cell with both numbers" if alone else "Every cell"
        common = filter(None, why if len(why) == 1 else [])
        said.append(f"{every}: {', '.join([*marks, *common])}")
    said += source_legend(part.get("printed", ()))
    said += _gaps(part)
    if "beyond" in part and (beyond := part["beyond"] > 0).any():
        kept = ", ".join(in_order(part.loc[beyond, "method"]))
        said.append(f"More than k features, in some runs: {kept}")
    if "own_passes" in part and (own := part["own_passes"] > 0).any():
        named = ", ".join(in_order(part.loc[own, "method"]))
        said.append(f"Their own number of passes over the rows: {named}")
    return ". ".join(said)


def source_mark(printed: str | None) -> str:
    """The mark of a paper's number that does not stand so in our text of it."""
    return _SOURCES.get(printed, "").translate(RAISED)


def source_legend(printed: Iterable[str]) -> list[str]:
    """What the marks of `source_mark` mean, of those that are there."""
    printed = set(printed)
    seen = [f"{source_mark(word)} {word}" for word in _SOURCES if word in printed]
    return [f"The paper's numbers in our text of it: {', '.join(seen)}"] * bool(seen)


def fitted(part: pd.DataFrame) -> list[str]:
    """Whether cells are by the text or fitted, and how many values were chosen, by method."""
    part = part[part["metric"] != "time_s"]
    if "fitted" not in part or part["paper"].isna().all():
        return []
    counts = part[part["fitted"] > 0].groupby("method")["fitted"].max()
    named = ", ".join(f"{method} {counts[method]}" for method in in_order(counts.index))
    what = "Fitted" if RECONSTRUCTED in set(part["basis"]) else "By the text"
    return [f"{what}; values chosen to match: {named}" if named else what]


def _gaps(part: pd.DataFrame) -> list[str]:
    """Why a column that `layout` shows has dashes, and why others are not shown."""
    axes, said = _axes(part), []
    known = {side: part[side].notna() for side in ("ours", "paper")}
    either = (known["ours"] | known["paper"]).groupby(part["method"]).transform("any")
    rows = part[axes].drop_duplicates().shape[0] if axes else 1
    for side, is_there in known.items():
        has = is_there.groupby(part["method"]).transform("any")
        # Without axes a method is a row, and both columns are there if any row has a number.
        shown = has if axes else either & is_there.any()
        here = part[shown & ~is_there]
        if side == "paper" and "printed" in part:  # what is unreadable has a mark
            here = here[here["printed"] != "unreadable"]
        why = [_gap(side, cell) for cell in here.itertuples()]
        methods = part.loc[shown, "method"]
        why += ["not asked for"] * int(len(methods) < rows * methods.nunique())
        if why := list(dict.fromkeys(filter(None, why))):
            few = ", or ".join(why) if len(why) < 5 else "see the column why of the CSV file"
            said.append(f"– under {side}: {few}")
    without = part[either & ~known["ours"].groupby(part["method"]).transform("any")]
    if axes and len(without):
        why = list(dict.fromkeys(_gap("ours", cell) for cell in without.itertuples()))
        why = [w for w in why if w != _NEITHER] or why
        every = without["method"].nunique() == part.loc[either, "method"].nunique()
        named = "" if every else f" of {', '.join(in_order(without['method']))}"
        said.append(f"None of ours{named}: {', or '.join(why)}")
    if either.any() and not either.all():
        said.append(f"Without a number: {', '.join(in_order(part.loc[~either, 'method']))}")
    return said


def _gap(side: str, cell) -> str:
    """Why a cell has no number on a side, of which its reason tells the paper's first."""
    why = cell.why.split("; ")[0] if isinstance(cell.why, str) else ""
    start = why.partition(":")[0]
    if side == "ours":
        return _NEITHER if np.isnan(cell.paper) and start in _OF_THE_PAPER else why
    return _OF_THE_PAPER.get(start, NOT_PRINTED)


def _axes(part: pd.DataFrame) -> list[str]:
    return [c for c in part.columns[: part.columns.get_loc("method")] if c != "reading"]


def _part(table: pd.DataFrame, metric: str, reading: str | None) -> pd.DataFrame:
    part = table[table["metric"] == metric]
    return part if reading is None else part[part["reading"] == reading]


def _marks(part: pd.DataFrame) -> dict[str, str]:
    """Verdicts of the cells that have both numbers -> their marks; none if all have the same."""
    words = set(part.dropna(subset=["ours", "paper"])["verdict"])
    unknown = dict(zip(sorted(words - set(_MARKS)), "abcdef", strict=False))
    marks = {word: mark.translate(RAISED) for word, mark in {**_MARKS, **unknown}.items()}
    return {word: mark if len(words) > 1 else "" for word, mark in marks.items() if word in words}


def layout(
    table: pd.DataFrame,
    metric: str,
    reading: str | None = None,
    printed: pd.DataFrame | None = None,
) -> pd.DataFrame:
    """The cells of one metric and reading as the paper prints them, ours beside the paper's.

    Verdicts are marked on ours, as `legend` says. `printed`, the published numbers as texts, gives
    both as many digits as the paper does. A column without any number is left out.
    """
    part = _part(table, metric, reading)
    axes = _axes(part)
    if printed is None:
        texts = part["paper"].map("{:g}".format, na_action="ignore")
    else:
        on = [c for c in printed if c in part]
        texts = part[on].merge(printed, "left", on)["value"].set_axis(part.index)
    decimals = [len(t.partition(".")[2]) if isinstance(t, str) else 0 for t in texts]
    usual = pd.Series([n for n in decimals if n]).mode()
    usual = DIGITS[metric] if printed is None or usual.empty else int(usual.iloc[0])
    is_time, marks = metric == "time_s", _marks(part)
    centre = "median" if is_time else "ours"
    rows = {}
    for cell, text, own in zip(part.to_dict("records"), texts, decimals, strict=True):
        row = rows.setdefault(tuple(cell[a] for a in axes), {})
        is_printed = isinstance(text, str)
        digits = max(usual, own if is_printed and printed is not None else DIGITS[metric])
        mark = marks.get(cell["verdict"], "") if is_printed else ""
        se = "" if is_time or np.isnan(cell["se"]) else f" ({_rounded(cell['se'], digits)})"
        ours = "–" if np.isnan(cell[centre]) else f"{cell[centre]:.{digits}f}{mark}{se}"
        row[cell["method"], "ours"] = ours
        source = source_mark(cell.get("printed"))
        row[cell["method"], "paper"] = (text if is_printed else "–") + source
    wide = pd.DataFrame(list(rows.values())).fillna("–")
    wide.index = pd.MultiIndex.from_tuples(rows, names=axes) if axes else [""]
    columns = [(m, side) for m in in_order(part["method"]) for side in ("ours", "paper")]
    columns = [c for c in columns if (wide[c].str.strip("–ᵘ") != "").any()] or columns
    wide = wide[columns].set_axis(pd.MultiIndex.from_tuples(columns, names=["", ""]), axis=1)
    if not axes:  # one row: a line for each method
        wide = wide.iloc[0].unstack(fill_value="–").reindex(wide.columns.unique(0))
        wide.columns = pd.MultiIndex.from_product([[""], wide.columns])
    return wide


def _rounded(error: float, digits: int) -> str:
    """An error that is not 0 is not shown as 0."""
    least = 10.0**-digits
    return f"<{least:.{digits}f}" if 0 < error < least / 2 else f"{error:.{digits}f}"


def sizes(table: pd.DataFrame) -> pd.DataFrame:
    """Data sets as the paper prints them: their sizes, ours beside the paper's."""
    names = {"points": "Data points", "features": "Features", "n_features": "Features"}
    names |= {"n_train": "Training rows", "n_test": "Test rows", "density": "Density (%)"}
    shown = table.assign(metric=table["metric"].map(names))
    columns = [(name, side) for name in shown["metric"].unique() for side in ("ours", "paper")]
    wide = shown.pivot_table(["ours", "paper"], "title", "metric", sort=False, dropna=False)
    wide = wide.swaplevel(axis=1)[columns].round(2).map("{:,.10g}".format, na_action="ignore")
    wide = wide.astype(object).fillna("–")
    return wide.rename_axis(columns=["", ""], index="Data set")


def by_budget(summary: pd.DataFrame, metric: str, methods: Iterable[str]) -> pd.DataFrame:
    """Methods by their budget k: mean (standard error) of a metric, of the rows of a summary.

    What has no budget stands in a column of its own, with the number of features that it took.
    """
    shown, digits = summary[summary["metric"] == metric], DIGITS[metric]
    taken = summary[summary["metric"] == "selected"].set_index(["method", "k"])["ours"]
    budgets = {k: f"k = {k:.0f}" for k in sorted(shown["k"].dropna().unique())}
    table = pd.DataFrame("–", index=list(methods), columns=[*budgets.values(), "any k"])
    for cell in shown.itertuples():
        error = "" if np.isnan(cell.se) else f" ({_rounded(cell.se, digits)})"
        free = np.isnan(cell.k)
        size = f", {taken[cell.method].item():.0f}" if free else ""
        place = cell.method, "any k" if free else budgets[cell.k]
        table.loc[place] = f"{cell.ours:.{digits}f}{error}{size}"
    return table
