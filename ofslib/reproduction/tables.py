"""Results beside the published numbers, as tables."""

import re
from collections.abc import Iterable, Sequence

import numpy as np
import pandas as pd

from ofslib._files import write_whole
from ofslib.reproduction.looks import TITLES, in_order

# Differences without practical meaning, and whether they are a share of the published value.
TOLERANCE = {"DR": (5.0, False), "RMSE": (0.05, True), "AUC": (0.02, False)}
TOLERANCE |= {"accuracy": (2.0, False), "R2": (0.02, False)}
LOWER_IS_BETTER = {"RMSE", "time_s"}
_SUMMARY = ("ours", "sd", "median", "replicates", "se")
_DIGITS = {"DR": 1, "RMSE": 2, "R2": 3, "AUC": 3, "accuracy": 1, "selected": 1, "time_s": 3}
_MARKS = {"agrees": "", "better": "+", "worse": "-", "not comparable": "?"}

RULE = (
    "A cell agrees if it differs from the paper's by no more than the practical tolerance "
    "(DR 5 points, RMSE 5 %, AUC and R2 0.02, accuracy 2 points) or by no more than two standard "
    "errors of the difference, where the paper's runs are taken to vary as ours do; else it is "
    "better (+) or worse (-). Without a number on either side, or for times, which belong to a "
    "machine, it is not comparable (?)."
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


def best_of_sweep(summary: pd.DataFrame, cell: Sequence[str]) -> pd.DataFrame:
    """Of the points of a sweep the one with the best mean, in each cell that `cell` names."""
    if set(summary) <= {*cell, *_SUMMARY}:
        return summary
    worse = summary["ours"].where(summary["metric"].isin(LOWER_IS_BETTER), -summary["ours"])
    ranked = summary.assign(worse=worse).sort_values("worse", kind="stable")
    return ranked.drop_duplicates(list(cell)).sort_index()[list(summary)]


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

    Of parameters that are swept the best ones stand in a cell, as the papers that sweep do it.

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
    best = best_of_sweep(summarise(results), [c for c in key if c in results])
    for part, columns in ((best, _SUMMARY), (missing, ["note"])):
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


def caption(metric: str) -> str:
    """What `layout` shows of a metric; few times, of which one may be an outlier, have a median."""
    return f"{TITLES[metric]}, {'median' if metric == 'time_s' else 'mean (standard error)'}"


def layout(table: pd.DataFrame, metric: str, reading: str | None = None) -> pd.DataFrame:
    """The cells of one metric and reading as the paper prints them, ours beside the paper's."""
    part = table[table["metric"] == metric]
    if reading is not None:
        part = part[part["reading"] == reading]
    axes = [c for c in part.columns[: part.columns.get_loc("method")] if c != "reading"]
    digits, is_time = _DIGITS[metric], metric == "time_s"
    centre = "median" if is_time else "ours"
    rows = {}
    for cell in part.to_dict("records"):
        row = rows.setdefault(tuple(cell[a] for a in axes), {})
        own = "–" if np.isnan(cell[centre]) else f"{cell[centre]:.{digits}f}"
        spread = "" if is_time or np.isnan(cell["se"]) else f" ({cell['se']:.{digits}f})"
        paper = "–" if np.isnan(cell["paper"]) else f"{cell['paper']:g}"
        row[cell["method"], "ours"] = own + spread
        row[cell["method"], "paper"] = paper + _MARKS[cell["verdict"]]
    wide = pd.DataFrame.from_dict(rows, orient="index")
    wide.index = pd.MultiIndex.from_tuples(wide.index, names=axes) if axes else [""]
    columns = [(m, side) for m in in_order(part["method"]) for side in ("ours", "paper")]
    return wide[columns].rename_axis(columns=["", ""])


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


def to_latex(layouts: dict[str, pd.DataFrame]) -> str:
    """Booktabs tables, each with its caption."""
    tables = []
    for caption, wide in layouts.items():
        wide = wide.rename_axis(index=[_escaped(name or "") for name in wide.index.names])
        shown = wide.style.format(escape="latex")
        shown = shown.format_index(escape="latex").format_index(escape="latex", axis=1)
        tables.append(
            shown.to_latex(
                hrules=True,
                caption=_escaped(caption),
                multicol_align="c",
                column_format="l" * wide.index.nlevels + "r" * wide.shape[1],
                position="tbp",
            )
        )
    return "\n".join(tables)


def _escaped(text: str) -> str:
    words = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
    return re.sub(r"[&%$#_{}\\~^]", lambda found: words.get(found[0], "\\" + found[0]), str(text))
