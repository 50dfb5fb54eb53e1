"""What the papers say of their figures and theorems, judged by our runs."""

from collections.abc import Iterable, Sequence
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import stdtrit

from ofslib.reproduction.tables import as_saved

WORDS = ("holds", "fails", "unresolved")
REPRODUCED = ("reproduced", "not reproduced", "unresolved")
NO_BOUND = "does not apply"


# -------------------------------------------------- the rule


def judged(difference: Any, se: Any, words: Sequence[str] = WORDS) -> np.ndarray:
    """Whether a difference is above 0, by two standard errors: holds, fails, unresolved."""
    return judged_interval(difference - 2.0 * se, difference + 2.0 * se, words)


def judged_interval(low: Any, high: Any, words: Sequence[str] = WORDS) -> np.ndarray:
    """Whether what lies between low and high is above 0; unresolved if 0 lies between, too."""
    above, below, unresolved = words
    return np.where(low > 0, above, np.where(high < 0, below, unresolved))


# -------------------------------------------------- means of methods


def claim_highest(summary: pd.DataFrame, best: str, by: Sequence[str]) -> pd.DataFrame:
    """Check at each point of `by` that method `best` has a higher mean than each other method.

    Columns: `by`, against, difference, se, verdict (holds, fails, unresolved).
    """
    columns = [*by, "ours", "se"]
    winner = summary.loc[summary["method"] == best, columns]
    others = summary.loc[summary["method"] != best, [*columns, "method"]]
    table = others.merge(winner, on=list(by), suffixes=("_other", "_best"))
    table["difference"] = table["ours_best"] - table["ours_other"]
    table["se"] = np.hypot(table["se_best"], table["se_other"])
    table["verdict"] = judged(table["difference"], table["se"])
    return table.rename(columns={"method": "against"})[
        [*by, "against", "difference", "se", "verdict"]
    ]


def claim_better(
    summary: pd.DataFrame, claims: Sequence[dict[str, Any]], by: Sequence[str]
) -> pd.DataFrame:
    """Check claims of a text at each point of `by`, which names dataset and k.

    Each claim is a dict: `says`, the words; `better`, methods each of which is said to have a
    higher mean than each of the methods `than`; `least`, if given, the least k that it is about,
    or data set -> the least k, and then of no other data set.

    Columns: says, `by`, method, and those of `claim_highest`; one row a comparison.
    """
    tables = [claim_highest(summary.iloc[:0], "", by).assign(says="", method="")]
    for claim in claims:
        least = claim.get("least", 0)
        least = least if isinstance(least, dict) else dict.fromkeys(summary["dataset"], least)
        # Of no data at all, what is looked up of their names would be words.
        about = summary[summary["k"] >= summary["dataset"].map(least).astype(float)]
        for best in claim["better"]:
            pairs = about[about["method"].isin([best, *claim["than"]])]
            table = claim_highest(pairs, best, by).assign(says=claim["says"], method=best)
            tables.append(table)
    tables = [table for table in tables if len(table)] or tables
    columns = ["says", *by, "method", "against", "difference", "se", "verdict"]
    return pd.concat(tables, ignore_index=True)[columns]


def claim_above(summary: pd.DataFrame, pairs: Iterable[tuple[str, str]], x: str) -> pd.DataFrame:
    """Check that the curve of one method lies above the points of another, in each data set.

    Parameters
    ----------
    summary : DataFrame
        Columns dataset, method, x, ours, se.
    pairs : iterable of (method, other method)
        The first is said to be higher. Its curve is linear in log(x), and ends where its points do.
    x : str
        Column; the methods need not have the same values of it.

    Returns
    -------
    DataFrame
        Columns dataset, method, against, x, difference, se, verdict; one row a point of the other.
    """
    columns = ["dataset", "method", "against", x, "difference", "se"]
    tables = []
    for (best, other), name in product(pairs, summary["dataset"].unique()):
        own = summary[summary["dataset"] == name].sort_values(x)
        curve, points = (own[own["method"] == method] for method in (best, other))
        if curve.empty or points.empty:
            continue
        points = points[points[x].between(*curve[x].iloc[[0, -1]])]
        at, grid = np.log(points[x]), np.log(curve[x])
        difference = np.interp(at, grid, curve["ours"]) - points["ours"]
        se = np.hypot(points["se"], np.interp(at, grid, curve["se"]))
        cells = [name, best, other, points[x], difference, se]
        tables.append(pd.DataFrame(dict(zip(columns, cells, strict=True))))
    table = pd.concat(tables) if tables else pd.DataFrame(columns=columns)
    return table.assign(verdict=judged(table["difference"], table["se"]))


# -------------------------------------------------- the same replicates


def claim_pairs(
    results: pd.DataFrame,
    pairs: Iterable[dict[str, Any]],
    words: Sequence[str] = WORDS,
    tolerance: float = 0.0,
) -> pd.DataFrame:
    """Check what is said of the difference between two methods in the same replicates.

    Parameters
    ----------
    results : DataFrame
        Of one metric.
    pairs : iterable of dict
        `one` and `other`, dicts of column: value that name the rows; `expected`, what is said of
        one - other: higher or lower (than 0) or small (within the tolerance). What else a pair
        has are columns of the result, and of both sides where the results have them.
    words : sequence of str
        For what holds, fails, and is unresolved.
    tolerance : float

    Returns
    -------
    DataFrame
        Own columns of the pairs, difference, se, verdict; one row a pair.
    """
    rows = []
    for pair in pairs:
        row = dict(pair)
        sides = [row.pop(side) for side in ("one", "other")]
        expected, both = row.pop("expected"), {c: v for c, v in row.items() if c in results}
        one, other = (_replicates(results, both | side) for side in sides)
        gaps = (one - other).dropna()
        mean, se = gaps.mean(), gaps.std() / np.sqrt(len(gaps))
        said = {"higher": mean, "lower": -mean, "small": tolerance - abs(mean)}[expected]
        rows.append(row | {"difference": mean, "se": se, "verdict": str(judged(said, se, words))})
    return pd.DataFrame(rows)


def _replicates(results, at):
    """Values of these rows by their replicate."""
    same = (results[[*at]] == pd.Series(at)).all(axis="columns")
    return results[same].set_index("replicate")["value"]


# -------------------------------------------------- times


def claim_times(times: pd.DataFrame, claims: Sequence[dict[str, Any]]) -> pd.DataFrame:
    """Check what is said of times by ratios of times of the same run.

    Parameters
    ----------
    times : DataFrame
        From `tables.compare`, of metric time_s and one reading.
    claims : sequence of dict
        `says`, the words, and either `fast`, a method that takes less time than each of the methods
        `than` at each setting; or `grows` or `constant`, methods whose time does so with n: its
        exponent, from the least to the largest n, is above or below 1/2. `note`, if given, goes
        along.

    Returns
    -------
    DataFrame
        Columns says, the axes, what, ours and paper (the ratio or the exponent), se (of the
        logarithm of our ratio, or of our exponent), verdict (holds, fails, unresolved), note.
        One run is taken to vary by the same share of every time of the table, the root of the mean
        square over what was timed several times: a few runs tell little of their own error.
    """
    axes = [c for c in times.columns[: times.columns.get_loc("method")] if c != "reading"]
    # Where nothing was timed, as at a small scale, they are no numbers.
    times = times.astype(dict.fromkeys(["median", "se", "replicates", "paper"], float))
    times = as_saved(times)
    shares = times["se"] / times["median"] * np.sqrt(times["replicates"])
    error = np.sqrt((shares**2).mean() / times["replicates"])
    times = times.assign(log=np.log(times["median"]), error=error)
    times["log_paper"] = np.log(times["paper"])
    times = times[[*axes, "method", "log", "error", "log_paper"]]
    columns = ["says", *axes, "what", "ours", "paper", "se", "verdict", "note"]
    parts = [pd.DataFrame(columns=columns)]
    for claim in claims:
        rows = _faster(times, axes, claim) if "fast" in claim else _growth(times, axes, claim)
        parts.append(rows.assign(says=claim["says"], note=claim.get("note", "")))
    parts = [part for part in parts if len(part)] or parts
    return pd.concat(parts, ignore_index=True).reindex(columns=columns)


def _faster(times, axes, claim):
    """How many times as long each of the other methods takes, at each setting."""
    known = times.dropna(subset="log")
    one, others = (known[known["method"].isin(m)] for m in ([claim["fast"]], claim["than"]))
    both = one.merge(others, on=axes, suffixes=("", "_other"))
    both = in_order(both, "method_other", claim["than"])
    ratio, se = both["log_other"] - both["log"], np.hypot(both["error"], both["error_other"])
    return both.assign(
        ours=np.exp(ratio),
        paper=np.exp(both["log_paper_other"] - both["log_paper"]),
        se=se,
        verdict=judged(ratio, se),
        what=both["method_other"] + f" / {claim['fast']}",
    )


def in_order(table, column, names):
    """Rows in the order of these names of a column."""
    return table.sort_values(column, key=lambda own: own.map(names.index), kind="stable")


def _growth(times, axes, claim):
    """The exponent in n of the time of each method, from the first n to the last."""
    sign, names = (1, claim["grows"]) if "grows" in claim else (-1, claim["constant"])
    by = [*(axis for axis in axes if axis != "n"), "method"]
    own = in_order(times[times["method"].isin(names)], "method", names)
    own = own.assign(log_n=np.log(own["n"])).sort_values("n")
    found = {}
    for side, log in (("ours", "log"), ("paper", "log_paper")):
        curves = own[["log_n", log, "error"]].where(own[log].notna())
        curves = curves.groupby([own[axis] for axis in by], sort=False)
        first, last = curves.first(), curves.last()
        span = (last["log_n"] - first["log_n"]).replace(0.0, np.nan)
        found[side] = (last[log] - first[log]) / span
        found.setdefault("se", np.hypot(first["error"], last["error"]) / span)
    table = pd.DataFrame(found).dropna(subset="ours").reset_index()
    table["verdict"] = judged(sign * (table["ours"] - 0.5), table["se"])
    return table.assign(what="exponent in n of " + table["method"])


# -------------------------------------------------- theorems


def bound_verdicts(results: pd.DataFrame, reference: str) -> pd.DataFrame:
    """Each bound at each x: whether it exists, and is not below the reference of the same run.

    Returns
    -------
    DataFrame
        Columns panel, x, method; applies, the share of the runs, and holds, of those where it
        applies; ratio, the smallest of bound and reference; note, why it does not apply; verdict.
    """
    on = ["panel", "x", "replicate"]
    seen = results.loc[results["method"] == reference, [*on, "value"]]
    named = results["method"].astype(str).str
    sides = results[named.endswith(("printed", "corrected"))]
    sides = sides.merge(seen, on=on, suffixes=("", "_seen"))
    # Up to rounding, as bounds.Sides.
    holds = sides["value"] >= sides["value_seen"] - 1e-9 * sides["value_seen"].abs()
    sides = sides.assign(
        applies=sides["value"].notna(),
        holds=holds.where(sides["value"].notna()).astype(float),
        ratio=sides["value"] / sides["value_seen"],
    )
    wanted = {"applies": "mean", "holds": "mean", "ratio": "min", "note": "first"}
    table = sides.groupby(["panel", "x", "method"], sort=False)[[*wanted]].agg(wanted)
    fails = np.where(table["holds"] < 1, "is violated", "holds")
    return table.assign(verdict=np.where(table["applies"] < 1, NO_BOUND, fails)).reset_index()


def slopes(results: pd.DataFrame, by: Sequence[str], x: str, decades: float) -> pd.DataFrame:
    """Slope of log(value) against log(x) in each run, over the last decades of each curve.

    Columns: `by`, replicate, slope.
    """
    results = results[results["value"] > 0]
    last = results.groupby(list(by))[x].transform("max")
    late = results[results[x] >= last / 10**decades * (1 - 1e-9)]
    columns = [*by, "replicate"]
    rows = [
        [*run, np.polyfit(np.log(own[x]), np.log(own["value"]), 1)[0]]
        for run, own in late.groupby(columns)
        if own[x].nunique() > 1
    ]
    return pd.DataFrame(rows, columns=[*columns, "slope"])


def bound_slopes(
    results: pd.DataFrame, by: Sequence[str] = ("panel", "method"), x: str = "x", decades: float = 2
) -> pd.DataFrame:
    """Mean of the `slopes` of each curve over the runs, with its 95 % interval by Student's law.

    Columns: `by`, slope, low, high.
    """
    runs = slopes(results, by, x, decades).groupby(list(by))["slope"]
    table = runs.agg(slope="mean", sd="std", n="count").astype(float)
    table = table[table["n"] > 1]
    half = stdtrit(table["n"] - 1, 0.975) * table["sd"] / np.sqrt(table["n"])
    table = table.assign(low=table["slope"] - half, high=table["slope"] + half)
    return table[["slope", "low", "high"]].reset_index()
