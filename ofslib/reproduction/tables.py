"""Results beside the published numbers, as tables."""

from collections.abc import Iterable, Sequence

import numpy as np
import pandas as pd

from ofslib._files import write_whole
from ofslib.reproduction.looks import TITLES, in_order

# Differences without practical meaning, and whether they are a share of the published value.
TOLERANCE = {"DR": (5.0, False), "RMSE": (0.05, True), "AUC": (0.02, False)}
TOLERANCE |= {"accuracy": (2.0, False)}
LOWER_IS_BETTER = {"RMSE", "time_s"}
_SUMMARY = ("ours", "sd", "median", "replicates", "se")
_DIGITS = {"DR": 1, "RMSE": 2, "AUC": 3, "accuracy": 1, "selected": 1, "time_s": 3}
_MARKS = {"agrees": "", "better": "+", "worse": "-", "not comparable": "?"}

RULE = (
    "A cell agrees if it differs from the paper's by no more than the practical tolerance "
    "(DR 5 points, RMSE 5 %, AUC 0.02, accuracy 2 points) or by no more than two standard errors "
    "of the difference, where the paper's runs are taken to vary as ours do; else it is better "
    "(+) or worse (-). Without a number on either side, or for times, which belong to a machine, "
    "it is not comparable (?)."
)


# -------------------------------------------------- files


def read_results(files: Sequence[str]) -> pd.DataFrame:
    """All results in one table; a column `note` tells why a value is missing."""
    if not files:
        return pd.DataFrame(columns=["method", "replicate", "metric", "value", "note"])
    # Where nothing was obtained, both are empty, and would be numbers.
    words = {"method": str, "metric": str}
    table = pd.concat([pd.read_csv(file, dtype=words) for file in files], ignore_index=True)
    return table if "note" in table else table.assign(note=np.nan)


def read_published(file: str | None) -> pd.DataFrame:
    """The numbers that a paper prints; no rows if there are none."""
    if file is None:
        return pd.DataFrame(columns=["method", "metric", "value", "note"]).astype({"value": float})
    return pd.read_csv(file)


def save_csv(table: pd.DataFrame, stem: str) -> None:
    """Write stem.csv with ten significant digits."""
    write_whole(stem + ".csv", table.to_csv(index=False, float_format="%.10g"))


# -------------------------------------------------- over the replicates


def summarise(results: pd.DataFrame) -> pd.DataFrame:
    """Mean, standard deviation, median, standard error and number over the replicates."""
    results = results[results["value"].notna()]
    by = [c for c in results if c not in ("experiment", "replicate", "value", "note")]
    groups = results.groupby(by, dropna=False, sort=False)["value"]
    table = groups.agg(ours="mean", sd="std", median="median", replicates="count").reset_index()
    return table.assign(se=table["sd"] / np.sqrt(table["replicates"]))


def spread(table: pd.DataFrame, by: Sequence[str], column: str) -> pd.DataFrame:
    """Median of a column over the replicates, and its middle 80 % from `low` to `high`.

    Columns: `by`, low, median, high, replicates.
    """
    groups = table.dropna(subset=column).groupby(list(by), sort=False)[column]
    parts = {"low": groups.quantile(0.1), "median": groups.median(), "high": groups.quantile(0.9)}
    return pd.DataFrame({**parts, "replicates": groups.count()}).reset_index()


def missing(results: pd.DataFrame) -> pd.Series:
    """The data sets of which there is no result at all -> why."""
    known = results.groupby("dataset")["value"].transform("count") > 0
    return results[~known].groupby("dataset")["note"].first()


def varied(summary: pd.DataFrame, x: str) -> dict[str, pd.DataFrame]:
    """Rows of a summary by the axis on which they vary: `x`, n_scans or n_workers.

    Online substitution goes by one name on all of them.
    """
    summary = summary.reindex(columns=list(dict.fromkeys([*summary, "n_scans", "n_workers"])))
    own = {axis: summary[axis].notna() for axis in ("n_scans", "n_workers")}
    rows = {x: ~own["n_scans"] & ~own["n_workers"], **own}
    plain = {"method": {"OS by scans": "OS"}}
    return {axis: summary[chosen].replace(plain) for axis, chosen in rows.items()}


def times_as_fast(times: pd.DataFrame, reference: pd.DataFrame, on: Sequence[str]) -> pd.DataFrame:
    """Times with a column `ratio`: how many times as fast as the reference with the same `on`."""
    ratio = reference.set_index(list(on))["value"].rename("ratio")
    times = times.drop(columns="ratio", errors="ignore").join(ratio, on=list(on))
    return times.assign(ratio=times["ratio"] / times["value"])


# -------------------------------------------------- beside the paper


def cells(settings: Iterable, metrics: Sequence[str]) -> pd.DataFrame:
    """The cells of a table, one a row: axes, skipped, runs, method, metric.

    `settings` are those of an entry (`entries.Setting`); `skipped` says why one was not run, `runs`
    over how many the paper averages.
    """
    return pd.DataFrame(
        {
            **s.spec["axes"],
            "skipped": s.skipped,
            "runs": s.spec["asked"],
            "method": method,
            "metric": metric,
        }
        for s in settings
        for metric in metrics
        for method in s.spec["methods"]
    )


def compare(results: pd.DataFrame, published: pd.DataFrame, table: pd.DataFrame) -> pd.DataFrame:
    """One row a cell: ours, the paper's, and the verdict with its reason.

    Parameters
    ----------
    results : DataFrame
        From `read_results`.
    published : DataFrame
        From `read_published`; its columns name cells, except value and note.
    table : DataFrame
        From `cells`.
    """
    axes = [c for c in table if c not in ("skipped", "runs", "method", "metric")]
    key = [*axes, "method", "metric"]
    missing = results[results["value"].isna()]
    for part, columns in ((summarise(results), _SUMMARY), (missing, ["note"])):
        # A reason may be given by several replicates; there is one cell.
        part = part.reindex(columns=[*key, *columns]).drop_duplicates(key)
        if part.empty:
            part = part.astype(table.dtypes[key].to_dict())
        table = table.merge(part, "left", key)
    paper = published.rename(columns={"value": "paper", "note": "paper_note"})
    on = [c for c in paper if c in key]
    table = table.merge(paper[[*on, "paper", "paper_note"]], "left", on)
    table["verdict"] = [
        verdict(r.metric, r.ours, r.sd, r.replicates, r.paper, r.runs) for r in table.itertuples()
    ]
    table["why"] = [_why(r) for r in table.itertuples()]
    columns = [*key, "ours", "se", "median", "replicates", "paper", "verdict", "why"]
    return table[columns]


def _why(cell) -> str:
    for reason in (cell.skipped, cell.note):
        if isinstance(reason, str) and reason:
            return reason
    if cell.verdict != "not comparable":
        return ""
    if np.isnan(cell.paper):
        return cell.paper_note if isinstance(cell.paper_note, str) else "not in the paper's table"
    return "another machine" if cell.metric == "time_s" else "no result at this scale"


def verdict(metric: str, ours: float, sd: float, n: int, paper: float, runs: int) -> str:
    """`RULE` for one cell: our mean and standard deviation over n runs, the paper's over `runs`."""
    if metric not in TOLERANCE or np.isnan(ours) or np.isnan(paper):
        return "not comparable"
    tolerance, relative = TOLERANCE[metric]
    noise = 2.0 * sd * np.sqrt(1.0 / n + 1.0 / runs) if n > 1 else 0.0
    difference = ours - paper
    if abs(difference) <= max(tolerance * (abs(paper) if relative else 1.0), noise):
        return "agrees"
    return "better" if (difference < 0) == (metric in LOWER_IS_BETTER) else "worse"


def tally(table: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    """Number of cells per verdict, and the share of the comparable ones that agree (%)."""
    counts = table.groupby(list(by), sort=False)["verdict"].value_counts().unstack(fill_value=0)
    counts = counts.reindex(columns=list(_MARKS), fill_value=0)
    comparable = counts.drop(columns="not comparable").sum(axis=1)
    counts["agreement (%)"] = (100.0 * counts["agrees"] / comparable).round(1)
    return counts.reset_index().rename_axis(columns=None)


def statements(papers: dict[str, dict[str, dict]]) -> pd.DataFrame:
    """What became of each item of the papers that states something, one a row."""
    return pd.DataFrame(
        {
            "paper": paper,
            "item": item,
            "printed form": said.get("status", "nothing to compute"),
            "computed by": ", ".join(said.get("by", [])),
            "note": said.get("note", ""),
            "reasons": "docs/bounds.md" if "status" in said else "",
            "theory and experiment": f"figures/{said['figure']}.svg" if "figure" in said else "",
        }
        for paper, items in papers.items()
        for item, said in items.items()
    )


# -------------------------------------------------- as printed

# Marks are raised. A verdict that has none in `_MARKS` is marked by a letter.
RAISED = str.maketrans("+-?~()abcdef", "⁺⁻ˀ˜⁽⁾ᵃᵇᶜᵈᵉᶠ")


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
                words = [", ".join(filter(None, (source, reading))), caption(metric), legend(part)]
                found[". ".join(filter(None, words))] = layout(table, metric, reading, printed)
    return found


def caption(metric: str) -> str:
    """What `layout` shows of a metric; few times, of which one may be an outlier, have a median."""
    return f"{TITLES[metric]}, {'median' if metric == 'time_s' else 'mean (standard error)'}"


def legend(part: pd.DataFrame) -> str:
    """Of cells of one metric: over how many runs, what the marks mean, why some have no number."""
    runs, marks = part["replicates"].dropna(), _marks(part)
    ends = dict.fromkeys(f"{n:.0f}" for n in (runs.min(), runs.max()))
    said = [f"Runs: {' to '.join(ends)}"] if len(runs) else []
    if any(marks.values()):
        words = sorted(marks, key=lambda word: not marks[word])
        said.append(", ".join(f"{marks[word] or 'no mark:'} {word}" for word in words))
    elif marks:
        compared = part.dropna(subset=["ours", "paper"])
        why = [reason for reason in compared["why"].dropna().unique() if reason]
        said.append(f"Every cell: {', '.join([*marks, *(why if len(why) == 1 else [])])}")
    absent = part.loc[part["ours"].isna() & part["paper"].notna(), "why"].dropna().unique()
    if 0 < len(absent) < 3:
        said.append(f"–: {', or '.join(absent)}")
    return ". ".join(said)


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
    axes = [c for c in part.columns[: part.columns.get_loc("method")] if c != "reading"]
    if printed is None:
        texts = part["paper"].map("{:g}".format, na_action="ignore")
    else:
        on = [c for c in printed if c in part]
        texts = part[on].merge(printed, "left", on)["value"].set_axis(part.index)
    decimals = [len(t.partition(".")[2]) if isinstance(t, str) else 0 for t in texts]
    usual = pd.Series([n for n in decimals if n]).mode()
    usual = _DIGITS[metric] if printed is None or usual.empty else int(usual.iloc[0])
    is_time, marks = metric == "time_s", _marks(part)
    centre = "median" if is_time else "ours"
    rows = {}
    for cell, text, own in zip(part.to_dict("records"), texts, decimals, strict=True):
        row = rows.setdefault(tuple(cell[a] for a in axes), {})
        is_printed = isinstance(text, str)
        digits = max(usual, own if is_printed and printed is not None else _DIGITS[metric])
        mark = marks.get(cell["verdict"], "") if is_printed else ""
        se = "" if is_time or np.isnan(cell["se"]) else f" ({_rounded(cell['se'], digits)})"
        ours = "–" if np.isnan(cell[centre]) else f"{cell[centre]:.{digits}f}{mark}{se}"
        row[cell["method"], "ours"] = ours
        row[cell["method"], "paper"] = text if is_printed else "–"
    wide = pd.DataFrame(list(rows.values())).fillna("–")
    wide.index = pd.MultiIndex.from_tuples(rows, names=axes) if axes else [""]
    columns = [(m, side) for m in in_order(part["method"]) for side in ("ours", "paper")]
    columns = [column for column in columns if (wide[column] != "–").any()] or columns
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
    """Data sets as the paper prints them: points and features, ours beside the paper's."""
    names = {"points": "Data points", "features": "Features"}
    shown = table.assign(metric=table["metric"].map(names))
    columns = [(names[metric], side) for metric in names for side in ("ours", "paper")]
    wide = shown.pivot_table(["ours", "paper"], "title", "metric", sort=False, dropna=False)
    wide = wide.swaplevel(axis=1)[columns].map("{:,.0f}".format, na_action="ignore")
    wide = wide.astype(object).fillna("–")
    return wide.rename_axis(columns=["", ""], index="Data set")


def by_budget(summary: pd.DataFrame, metric: str, methods: Iterable[str]) -> pd.DataFrame:
    """Methods by their budget k: mean (standard error) of a metric, of the rows of a summary.

    What has no budget stands in a column of its own, with the number of features that it took.
    """
    shown, digits = summary[summary["metric"] == metric], _DIGITS[metric]
    taken = summary[summary["metric"] == "selected"].set_index(["method", "k"])["ours"]
    budgets = {k: f"k = {k:.0f}" for k in sorted(shown["k"].dropna().unique())}
    table = pd.DataFrame("–", index=list(methods), columns=[*budgets.values(), "any k"])
    for cell in shown.itertuples():
        error = "" if np.isnan(cell.se) else f" ({cell.se:.{digits}f})"
        free = np.isnan(cell.k)
        size = f", {taken[cell.method].item():.0f}" if free else ""
        place = cell.method, "any k" if free else budgets[cell.k]
        table.loc[place] = f"{cell.ours:.{digits}f}{error}{size}"
    return table
