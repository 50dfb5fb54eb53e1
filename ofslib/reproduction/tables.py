"""Results beside the published numbers, as tables."""

import io
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ofslib._files import write_whole
from ofslib.reproduction import store
from ofslib.reproduction.entries import Setting
from ofslib.reproduction.project import Project

# Differences without practical meaning: the lesser of a number and a share of the published value.
TOLERANCE = {"DR": (5.0, 0.25), "RMSE": (np.inf, 0.05), "AUC": (0.02, np.inf)}
TOLERANCE |= {"accuracy": (2.0, np.inf), "R2": (0.02, np.inf)}
# How the note of a published number begins that our text of the paper does not have as it is.
PRINTED = ("repaired", "inferred", "unreadable", "dash")
BY_THE_TEXT, RECONSTRUCTED = "by the text", "reconstructed"
# What the note of a run says that found nothing at any height, or did not get so far.
NOT_FOUND = "not found in|^not reached$"
LOWER_IS_BETTER = {"RMSE", "time_s"}
# Of runs: their model selects nothing; it keeps more features than k; its class decides itself how
# often it passes over the rows.
MARKS = ("empty", "beyond", "own_passes")
SUMMARY = ("ours", "sd", "median", "replicates", "se", "no_value")
# How much farther 2, 3, ... numbers lie from the median of all than from their own (Croux and
# Rousseeuw 1992)
_FEW = np.array([1.196, 1.495, 1.363, 1.206, 1.2, 1.14, 1.129, 1.107])
VERDICTS = ("agrees", "better", "worse", "unresolved", "not comparable")
NO_VERDICT = VERDICTS[-1]

RULE = (
    "A cell is unresolved (~) if it differs from the paper's by no more than two standard errors "
    "of the difference, where the paper's runs are taken to vary as ours do, and these are wider "
    "than the practical tolerance (DR 5 points, or a quarter of a rate below 20 %; RMSE 5 %, AUC "
    "0.02, R2 0.02, accuracy 2 points), or if it rests on one run. Else it agrees if it differs by"
    " no more than the tolerance, and is better (+) or worse (-) if by more; the reason says where"
    " it is better because the paper's baseline is weaker than a correct one, or where the errata "
    "discuss it. Without a number on either side, or for times, which belong to a machine, or if "
    "half of our runs or more have no value, it is not comparable (?); of fewer such runs the "
    "reason says how many. The stricter verdict (column strict) asks the same of two standard "
    "errors alone, and allows for the rounding of the printed digits. Column fitted: how many "
    "values of a method were chosen to match its cells. By the text are those of its readings in "
    "which the fewest were chosen, if fewer than in the last one, or none; all others are "
    "reconstructed. Column printed: whether the paper's number stands so in our text of it, or was"
    " repaired there, inferred from another table, or is unreadable."
)

# What is counted of the runs of a cell, in the order in which it is told.
_COUNTED = {"no_value": "runs without a value", "empty": "runs select nothing"}
_COUNTED |= {"beyond": "runs keep more than k features"}
_COUNTED |= {"own_passes": "runs choose their own number of passes"}
NOT_PRINTED = "not in the paper's table"
# How a reason begins -> its kind.
_WEAK, _KNOWN = "weaker baseline", "discussed"
NOT_DOWNLOADED = "not downloaded"
_REASONS = {
    _WEAK: "weaker baseline in the paper",
    _KNOWN: "see the errata",
    "one run": "one run",
    "two standard errors": "wide standard errors",
    "unreadable": "unreadable in our text of the paper",
    "dash": "dash in the paper",
    NOT_PRINTED: "our own method",
    "another machine": "time",
    "another data set": "another data set",
    "not yet run": "not yet run",
    "not run": "not run at this scale",
    "not timed": "not run at this scale",
    NOT_DOWNLOADED: f"{NOT_DOWNLOADED}: no network where the figures were made",
    "no result": "not run at this scale",
    "a bound": "words or a bound",
    "a property": "words or a bound",
    "measured": "measured for another table",
    "not public": "not public",
    "no product": "words or a bound",
    "not one of": "not one of our methods",
    **{f".*{words}": words for words in _COUNTED.values() if words != "runs select nothing"},
    r"\d": "runs that select nothing",
}


# -------------------------------------------------- files


def read_results(files: Sequence[str | Path | io.BytesIO]) -> pd.DataFrame:
    """All results in one table.

    A column `note` tells why a value is missing; `empty` is 1 where a model selects nothing. If
    any has them, `beyond` is 1 where it keeps more features than k, and `own_passes` where its
    class has no `n_passes` and others pass several times over the rows.
    """
    if not files:
        return pd.DataFrame(columns=["method", "replicate", "metric", "value", "note", "empty"])
    # Where nothing was obtained, both are empty, and would be numbers.
    words = {"method": str, "metric": str}
    table = pd.concat([pd.read_csv(file, dtype=words) for file in files], ignore_index=True)
    return table.assign(**{c: np.nan for c in ("note", "empty") if c not in table})


def results(work: Project, entry: str, kind: str = "") -> pd.DataFrame:
    """The results that an entry shows, those of this folder or of the shipped archive.

    Parameters
    ----------
    work : Project
        As `project.made` gives it.
    entry : str
    kind : {"", "time"}
        "time": the learning times.
    """
    runs = dict(work.runs(work.source(entry).name))
    files = [Path(file) for file in work.inputs(entry, kind)]
    table = read_results([f if f.is_file() else _shipped(work, runs[str(f)]) for f in files])
    absent = table["note"].astype(str).str.startswith(NOT_DOWNLOADED)
    if absent.any():
        table.loc[absent, "note"] += f" ({work.command(entry)} fills it)"
    return table


def _shipped(work: Project, setting: Setting) -> io.BytesIO:
    return io.BytesIO(store.as_csv(store.assemble(setting.spec, work.archive)))


def read_published(file: str | None) -> pd.DataFrame:
    """The numbers that a paper prints; no rows if there are none."""
    if file is None:
        return pd.DataFrame(columns=["method", "metric", "value", "note"]).astype({"value": float})
    return pd.read_csv(file)


def save_csv(table: pd.DataFrame, stem: str) -> None:
    """Write stem.csv with ten significant digits."""
    write_whole(stem + ".csv", table.to_csv(index=False, float_format="%.10g"))


def as_saved(table: pd.DataFrame) -> pd.DataFrame:
    """The table as `save_csv` has it: what is made of either is then the same to the last digit."""
    floats = table.select_dtypes("float")
    return table.assign(**floats.map("{:.10g}".format).astype(float))


# -------------------------------------------------- over the replicates


def never_found(results: pd.DataFrame) -> pd.DataFrame:
    """The results with infinity for what a run did not find or reach, as its note tells.

    Left out it would make a method better, the fewer of its runs succeed.
    """
    never = results["value"].isna() & results["note"].astype(str).str.contains(NOT_FOUND)
    return results.assign(value=results["value"].mask(never, np.inf))


def summarise(results: pd.DataFrame) -> pd.DataFrame:
    """Mean, standard deviation, median, standard error and number over the replicates.

    The standard error is that of the mean, for times that of the median. Of `MARKS` the number of
    replicates, where any has one.
    """
    results = results[results["value"].notna()]
    by = _what_is_repeated(results)
    median = results.groupby(by, dropna=False, sort=False)["value"].transform("median")
    results = results.assign(away=(results["value"] - median).abs())
    shown = {"ours": "mean", "sd": "std", "median": "median", "replicates": "count"}
    columns = {name: ("value", how) for name, how in shown.items()} | {"away": ("away", "median")}
    columns |= {m: (m, "sum") for m in MARKS if m in results and results[m].any()}
    table = results.groupby(by, dropna=False, sort=False).agg(**columns).reset_index()
    of_median = median_error(table.pop("away"), table["replicates"])
    of_mean = table["sd"] / np.sqrt(table["replicates"])
    return table.assign(se=np.where(table.get("metric") == "time_s", of_median, of_mean))


def _what_is_repeated(results: pd.DataFrame) -> list[str]:
    """The columns that are equal in all replicates of a cell, at one point of a sweep."""
    return [c for c in results if c not in ("experiment", "replicate", "value", "note", *MARKS)]


def _without_value(results: pd.DataFrame) -> pd.Series:
    """How many replicates of what each row repeats have no value."""
    lost, by = results["value"].isna(), _what_is_repeated(results)
    return lost.groupby([results[c] for c in by], dropna=False).transform("sum")


def median_error(distance: Any, n: Any) -> np.ndarray:
    """Standard error of medians of n values, from the median distance of the values from them.

    That of normal numbers; one slow run of three or more cannot make it large. Missing for one
    value.
    """
    larger = np.where(n < 2 + len(_FEW), _FEW[np.clip(n - 2, 0, len(_FEW) - 1)], n / (n - 0.8))
    error = np.sqrt(np.pi / 2 / n) * 1.4826 * larger * distance
    return np.where(n > 1, error, np.nan)


def best_of_sweep(summary: pd.DataFrame, cell: Sequence[str]) -> pd.DataFrame:
    """Of the points of a sweep the one with the best mean, in each cell that `cell` names.

    Of those whose runs have a value the most: a mean of the few that did not diverge says little.
    """
    if set(summary) <= {*cell, *SUMMARY, *MARKS}:
        return summary
    worse = summary["ours"].where(summary["metric"].isin(LOWER_IS_BETTER), -summary["ours"])
    ranked = summary.assign(worse=worse).sort_values(["no_value", "worse"], kind="stable")
    return ranked.drop_duplicates(list(cell)).sort_index()[list(summary)]


def spread(table: pd.DataFrame, by: Sequence[str], column: str) -> pd.DataFrame:
    """Median of a column over the replicates, and its middle 80 % from `low` to `high`.

    Columns: `by`, low, median, high, replicates.
    """
    groups = table.dropna(subset=column).groupby(list(by), sort=False)[column]
    # Between two infinite values pandas finds none.
    low, high = (groups.quantile(share).fillna(np.inf) for share in (0.1, 0.9))
    parts = {"low": low, "median": groups.median(), "high": high, "replicates": groups.count()}
    return pd.DataFrame(parts).reset_index()


def missing(results: pd.DataFrame, settings: Iterable = ()) -> pd.Series:
    """The data sets of which there is no result at all -> why.

    `settings` are those of an entry (`entries.Setting`): some are not run at this scale.
    """
    known = results.groupby("dataset")["value"].transform("count") > 0
    reasons = results[~known].groupby("dataset")["note"].first().to_dict()
    seen = set(results["dataset"])
    reasons |= {s.dataset: s.skipped for s in settings if s.skipped and s.dataset not in seen}
    return pd.Series(reasons, name="note", dtype=object).rename_axis("dataset")


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


def cells(
    settings: Iterable,
    metrics: Sequence[str],
    fitted: Mapping[str, Mapping[str, int]] | None = None,
) -> pd.DataFrame:
    """The cells of a table, one a row: axes, skipped, runs, fitted, method, metric.

    `settings` are those of an entry (`entries.Setting`); `skipped` says why one was not run, `runs`
    over how many the paper averages. `fitted`, as `Project.fitted` has it: reading -> method -> how
    many values were chosen to match.
    """
    fitted = fitted or {}
    return pd.DataFrame(
        {
            **s.spec["axes"],
            "skipped": s.skipped,
            "runs": s.spec["asked"],
            "fitted": fitted.get(s.spec["axes"].get("reading"), {}).get(method, 0),
            "method": method,
            "metric": metric,
        }
        for s in settings
        for metric in metrics
        for method in s.spec["methods"]
    )


def compare(
    results: pd.DataFrame,
    published: pd.DataFrame,
    table: pd.DataFrame,
    weak: Mapping[str, str] | None = None,
    discussed: Sequence[Mapping] = (),
) -> pd.DataFrame:
    """One row a cell: ours, the paper's, and the verdicts with their reason.

    Of parameters that are swept the best ones stand in a cell, as the papers that sweep do it.

    Parameters
    ----------
    results : DataFrame
        From `read_results`.
    published : DataFrame
        From `read_published`; its columns name cells, except value and note.
    table : DataFrame
        From `cells`.
    weak : mapping, optional
        Methods of which the paper's numbers are weaker than a correct one's -> why that is known.
    discussed : sequence of mappings, optional
        Of cells that do not agree: `why`, and which, column -> value or values; the first fits.

    Returns
    -------
    DataFrame
        Axes, method, metric; ours, se (of the mean; of a time, of the median), median and number
        of replicates; `runs`, the paper's; `empty`, how many of ours select nothing; if any,
        `beyond`, how many keep more than k features, `own_passes`, how many choose their number of
        passes, and `no_value`, how many have no value; `fitted`, how many values were chosen to
        match; `basis`, by the text or reconstructed; paper; `printed`, what its number is in our
        text of it (`PRINTED`, or "printed"); verdict, strict, why.
    """
    axes = [c for c in table if c not in ("skipped", "runs", "fitted", "method", "metric")]
    key = [*axes, "method", "metric"]
    missing = results[results["value"].isna()]
    results = results.assign(no_value=_without_value(results))
    best = best_of_sweep(summarise(results), [c for c in key if c in results])
    best = best.assign(**{mark: best.get(mark, 0) for mark in MARKS})
    for part, columns in ((best, [*SUMMARY, *MARKS]), (missing, ["note"])):
        # A reason may be given by several replicates; there is one cell.
        part = part.reindex(columns=[*key, *columns]).drop_duplicates(key)
        if part.empty:
            part = part.astype(table.dtypes[key].to_dict())
        table = table.merge(part, "left", key)
    return beside_paper(table, published, key, weak, discussed)


def beside_paper(
    table: pd.DataFrame,
    published: pd.DataFrame,
    key: Sequence[str],
    weak: Mapping[str, str] | None = None,
    discussed: Sequence[Mapping] = (),
) -> pd.DataFrame:
    """The last step of `compare`: our cells, which `key` names, with the paper's and the verdicts.

    `table` has the columns of `cells`, ours, se, median, replicates, `MARKS`, no_value, and note,
    why a value is missing.
    """
    paper = published.rename(columns={"value": "paper", "note": "paper_note"})
    on = [c for c in paper if c in key]
    _check_cells(published, on, key)
    table = table.merge(paper[[*on, "paper", "paper_note"]], "left", on)
    table["printed"] = printed(table["paper"], table["paper_note"])
    table["basis"] = _basis(table, key)
    table["known"] = _known_of(table, discussed)
    # Each by two standard errors, and strictly.
    table["verdict"], table["strict"] = (
        verdict(table, strict).where(~(table["no_value"] >= table["replicates"]), NO_VERDICT)
        for strict in (False, True)
    )
    noise = two_errors(table)
    table["why"] = [_why(*cell, weak or {}) for cell in zip(table.itertuples(), noise, strict=True)]
    some = [c for c in ("beyond", "own_passes", "no_value") if (table[c] > 0).any()]
    columns = [*key, "ours", "se", "median", "replicates", "runs", "empty", *some, "fitted"]
    return table[[*columns, "basis", "paper", "printed", "verdict", "strict", "why"]]


def _basis(table: pd.DataFrame, key: Sequence[str]) -> np.ndarray:
    """Whether cells are by the text: of the readings of a method those with the fewest values.

    Where something was chosen in its only reading, or in all alike, none is.
    """
    groups = table.groupby([c for c in key if c != "reading"], sort=False, dropna=False)["fitted"]
    fewest = table["fitted"] == groups.transform("min")
    by_the_text = fewest & ((table["fitted"] < groups.transform("last")) | (table["fitted"] == 0))
    return np.where(by_the_text, BY_THE_TEXT, RECONSTRUCTED)


def printed(values: pd.Series, notes: pd.Series) -> pd.Series:
    """What published numbers are in our text of the paper: as their notes begin, or "printed".

    Nothing where there is no number, and no note says why.
    """
    begin = notes.astype(str).str.extract(rf"^({'|'.join(PRINTED)})\b")[0]
    return begin.fillna(values.notna().map({True: "printed", False: ""}))


def _check_cells(published: pd.DataFrame, on: Sequence[str], key: Sequence[str]) -> None:
    """Raise ValueError if numbers do not say of which cell they are, or several are of one."""
    needed = {"method", "metric", "value", "note"}
    wrong = [*needed.difference(published), *published.columns.difference([*on, "value", "note"])]
    if wrong:
        raise ValueError(
            f"published: {wrong} are wrong or missing; needed are {sorted(needed)}, and allowed "
            f"{[*key, 'value', 'note']}"
        )
    twice = published.loc[published.duplicated(on), on]
    if len(twice):
        cell = ", ".join(f"{axis} {value}" for axis, value in twice.iloc[0].items())
        raise ValueError(f"published: several numbers of {cell}")


def _why_not(cell) -> str:
    """Why a cell cannot be compared, if so; what the paper lacks comes before what we do."""
    for said in (cell.paper_note if np.isnan(cell.paper) else "", cell.skipped, cell.note):
        if isinstance(said, str) and said:
            return said
    if np.isnan(cell.paper):
        return NOT_PRINTED
    return "another machine" if cell.metric == "time_s" else "no result at this scale"


def _known_of(table: pd.DataFrame, discussed: Sequence[Mapping]) -> pd.Series:
    """What is known of each cell should it not agree, or nothing."""
    known = pd.Series("", index=table.index)
    for item in reversed(discussed):
        named = {axis: value for axis, value in item.items() if axis != "why"}
        fits = [table[a].isin(v if isinstance(v, list) else [v]) for a, v in named.items()]
        known[np.logical_and.reduce(fits)] = item["why"]
    return known


def _why(cell, noise: float, weak: Mapping[str, str]) -> str:
    """The reason for a verdict other than agreement, and what is counted of the runs."""
    why = []
    if cell.verdict == NO_VERDICT:
        why = [_why_not(cell)]
    elif cell.verdict == "unresolved":
        why = ["one run" if np.isnan(noise) else f"two standard errors are {noise:.3g}"]
    elif cell.verdict == "better" and cell.method in weak:
        why = [f"{_WEAK}: {weak[cell.method]}"]
    elif cell.verdict != "agrees" and cell.known:
        why = [f"{_KNOWN}: {cell.known}"]
    for column, words in _COUNTED.items():
        if (count := getattr(cell, column)) > 0:
            runs = cell.replicates + (cell.no_value if column == "no_value" else 0)
            said = f"{count:.0f} of {runs:.0f} {words}"
            # What is judged anew may say so already.
            why += [said] * (said not in "; ".join(why))
    return "; ".join(why)


def two_errors(cells: pd.DataFrame) -> pd.Series:
    """Two standard errors of the difference from the paper's mean over `runs` runs.

    Missing for one run.
    """
    n = cells["replicates"].astype(float)
    sd = cells["se"].astype(float) * np.sqrt(n)
    return (2.0 * sd * np.sqrt(1.0 / n + 1.0 / cells["runs"])).where(n > 1)


def verdict(cells: pd.DataFrame, strict: bool = False) -> pd.Series:
    """`RULE` for each cell, of which metric, ours, se, replicates, paper and runs are known.

    `strict`: by two standard errors alone, where the paper's numbers are rounded.
    """
    metric, paper = cells["metric"], cells["paper"].astype(float)
    difference, noise = cells["ours"].astype(float) - paper, two_errors(cells)
    away, unknown = difference.abs(), difference.isna() | ~metric.isin(TOLERANCE)
    if strict:
        margin, unresolved = noise + metric.map(_printed_step(cells)) / 2, noise.isna()
    else:
        number, share = (metric.map({m: own[i] for m, own in TOLERANCE.items()}) for i in (0, 1))
        margin = np.fmin(number.astype(float), share.astype(float) * paper.abs())
        unresolved = noise.isna() | ((margin < noise) & (away <= noise))
    better = (difference < 0) == metric.isin(LOWER_IS_BETTER)
    rule = [unknown, unresolved, away <= margin, better]
    words = np.select(rule, [NO_VERDICT, "unresolved", "agrees", "better"], "worse")
    return pd.Series(words, cells.index, dtype=object)


def _printed_step(cells: pd.DataFrame) -> dict[str, float]:
    """Metric -> one unit of the last digit that the paper prints of it."""
    known = cells.dropna(subset="paper")
    decimals = known["paper"].map(lambda value: len(f"{value:g}".partition(".")[2]))
    return (10.0 ** -decimals.groupby(known["metric"]).max()).to_dict()


def reason(why: Any) -> str:
    """The kind of the reason for a verdict; none for none."""
    if not isinstance(why, str) or not why:
        return ""
    kinds = (kind for start, kind in _REASONS.items() if re.match(start, why))
    return next(kinds, "no result for another reason")


def tally(table: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    """Number of cells per verdict, how many agree of those that are resolved, and how sharply.

    Columns: `by`, the verdicts; agreement (%), the share of agreeing cells; agreement, strict (%);
    wrong pairs that agree (%), of those of ours and another method's published value in the same
    row of the printed table; select nothing, the cells with runs that do (missing where that was
    not counted).
    """
    groups = table.groupby(list(by), sort=False)
    counts = groups["verdict"].value_counts().unstack(fill_value=0)
    counts = counts.reindex(columns=VERDICTS, fill_value=0)
    row = [*table.columns[: table.columns.get_loc("method")], "metric"]
    pairs = table[table["verdict"] != NO_VERDICT]
    pairs = pairs.merge(pairs[[*row, "method", "paper"]], on=row, suffixes=("", "_other"))
    pairs = pairs[pairs["method"] != pairs["method_other"]]
    for name, cells, words in (
        ("agreement (%)", table, table["verdict"]),
        ("agreement, strict (%)", table, table["strict"]),
        ("wrong pairs that agree (%)", pairs, verdict(pairs.assign(paper=pairs["paper_other"]))),
    ):
        if cells is table:
            words = words[~words.isin([NO_VERDICT, "unresolved"])]
        share = words.eq("agrees").groupby([cells[axis] for axis in by]).mean()
        counts[name] = (100.0 * share).astype(float).round(1)
    empty = table.assign(empty=table["empty"].gt(0).astype(float).where(table["empty"].notna()))
    counts["select nothing"] = empty.groupby(list(by))["empty"].sum(min_count=1)
    return counts.reset_index().rename_axis(columns=None)
