"""What the papers say of their figures and theorems, judged by our runs."""

from collections.abc import Iterable, Sequence
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import stdtrit

from ofslib.reproduction.tables import as_saved, spread, times_as_fast

WORDS = ("holds", "fails", "unresolved")
REPRODUCED = ("reproduced", "not reproduced", "unresolved")
DIRECTIONS = ("higher", "lower", "no difference")
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


def claim_whole(comparisons: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    """One verdict at each point of `by`: fails if any comparison does, holds if all do."""

    def whole(verdicts):
        told = set(verdicts)
        return "fails" if "fails" in told else "unresolved" if "unresolved" in told else "holds"

    return comparisons.groupby(list(by), sort=False)["verdict"].agg(whole).reset_index()


def claim_less(gaps: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    """Check that the differences of `claim_highest` are less in the last row of each group.

    Columns: `by`, difference (how much less than in the first row), se, verdict.
    """
    groups = gaps.groupby(list(by))[["difference", "se"]]
    first, last = groups.first(), groups.last()
    table = first[["difference"]] - last[["difference"]]
    table["se"] = np.hypot(first["se"], last["se"])
    return table.assign(verdict=judged(table["difference"], table["se"])).reset_index()


def claim_constant(
    summary: pd.DataFrame, x: str, by: Sequence[str], tolerance: float
) -> pd.DataFrame:
    """Check that the mean changes by no more than the tolerance from the least to the largest x.

    Columns: `by`, change, se, verdict; one row a curve.
    """
    curves = summary.sort_values(x).groupby(list(by))[["ours", "se"]]
    first, last = curves.first(), curves.last()
    table = pd.DataFrame({"change": last["ours"] - first["ours"]})
    table["se"] = np.hypot(first["se"], last["se"])
    return table.assign(
        verdict=judged(tolerance - table["change"].abs(), table["se"])
    ).reset_index()


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
        has are columns of the result.
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
        one, other = (_replicates(results, row.pop(side)) for side in ("one", "other"))
        gaps = (one - other).dropna()
        mean, se = gaps.mean(), gaps.std() / np.sqrt(len(gaps))
        said = {"higher": mean, "lower": -mean, "small": tolerance - abs(mean)}
        verdict = str(judged(said[row.pop("expected")], se, words))
        rows.append(row | {"difference": mean, "se": se, "verdict": verdict})
    return pd.DataFrame(rows)


def _replicates(results, at):
    """Values of these rows by their replicate."""
    for column, value in at.items():
        results = results[results[column] == value]
    return results.set_index("replicate")["value"]


def _pair(at, what, one, other, expected, **own):
    """A pair of `claim_pairs`; `at` holds for both sides."""
    sides = {"one": {**at, **one}, "other": {**at, **other}}
    return {**own, **at, "what": what, "expected": expected, **sides}


_SCANS = {k: {"method": "OS by scans", "n_scans": k} for k in (2, 3, 5)}
_STALE = {q: {"method": "Asy-OS", "n_workers": q} for q in (1, 12)}
_FRESH = {q: {"method": "Asy-OS, not stale", "n_workers": q} for q in (1, 12)}


def substitution_claims(recall: pd.DataFrame, regression: bool) -> pd.DataFrame:
    """Figures 1 and 2 of Yang et al.: the differences in recall that the text tells of.

    A difference is small within 2 points. Claim 2 is made of regression only.

    Columns: claim, p, what, difference, se, verdict (reproduced, not reproduced, unresolved).
    """
    pairs, at = [], {"p": recall["p"].min()}
    higher = [
        ("1", "higher", *both) for both in product(("OS", "Proj-GD"), ("L1 batch", "Grafting"))
    ]
    for p in sorted(recall["p"].unique()):
        like_batch = [("2", "small", "OS", "Proj-GD")] if regression else []
        for claim, expected, *methods in [*higher, *like_batch]:
            sides = ({"method": method} for method in methods)
            pairs.append(_pair({"p": p}, " - ".join(methods), *sides, expected, claim=claim))
    for k in (2, 3):
        what = f"5 scans - {k} scans"
        pairs.append(_pair(at, what, _SCANS[5], _SCANS[k], "small", claim="3"))
    for claim, what, one, other in (
        ("4", "12 workers - 1", _STALE[12], _STALE[1]),
        ("4, control", "12 workers - 1, not stale", _FRESH[12], _FRESH[1]),
        ("4, control", "stale - not stale, 12 workers", _STALE[12], _FRESH[12]),
    ):
        pairs.append(_pair(at, what, one, other, "lower", claim=claim))
    return claim_pairs(recall, pairs, REPRODUCED, tolerance=2.0)


def image_claims(errors: pd.DataFrame, least: int) -> pd.DataFrame:
    """Figure 4 of Yang et al.: the differences in test error that the text tells of.

    `least` is the least number of features, s.

    Columns: dataset, what, difference, se, verdict (higher, lower, no difference).
    """
    few = {name: {"method": name, "s": least} for name in ("L1 batch", "OS", "Proj-GD")}
    pairs = [
        _pair({"dataset": dataset}, what, one, other, "higher")
        for dataset in errors["dataset"].unique()
        for what, one, other in (
            (f"L1 batch - OS, s = {least}", few["L1 batch"], few["OS"]),
            (f"L1 batch - Proj-GD, s = {least}", few["L1 batch"], few["Proj-GD"]),
            ("2 scans - 5", _SCANS[2], _SCANS[5]),
            ("12 workers - 1", _STALE[12], _STALE[1]),
            ("12 workers - 1, not stale", _FRESH[12], _FRESH[1]),
        )
    ]
    return claim_pairs(errors, pairs, DIRECTIONS)


def worst(errors: pd.DataFrame, method: str, x: str) -> str:
    """Say where the paper's method has the highest mean error of all methods."""
    table = errors.pivot(index=x, columns="method", values="ours")
    highest = table.idxmax(axis=1) == method if len(table.columns) > 1 else pd.Series(dtype=bool)
    count = "all" if highest.all() else highest.sum()
    said = f"{method}, the paper's method, is worst\nat {count} of {len(table)} values of {x}"
    return said if highest.any() else ""


def speedup_claims(speedups: pd.DataFrame) -> pd.DataFrame:
    """Figure 3 of Yang et al.: two claims on how many times as fast several workers are.

    1 is above their number, against OS and against one worker; 2 is 16 workers against 8, said to
    be next to nothing: below 1.1. Claim 1 is judged by the middle 80 % of the replicates. Times are
    compared as multiples of what OS took in the same run.

    Parameters
    ----------
    speedups : DataFrame
        From `tables.times_as_fast` against OS.

    Returns
    -------
    DataFrame
        Columns of `tables.spread`, and claim, against, verdict.
    """
    n, by = speedups["n_workers"], ["loss", "method", "n_workers"]
    run = ["loss", "method", "replicate"]
    # One and several workers are timed in two runs, of other data and maybe on other machines.
    times = speedups.assign(value=1 / speedups["ratio"])
    alone, of_eight = (
        times_as_fast(times[chosen], times[n == q], run) for chosen, q in ((n > 1, 1), (n == 16, 8))
    )
    compared = ((1, "OS", speedups[n > 1]), (1, "1 worker", alone), (2, "8 workers", of_eight))
    table = pd.concat(
        [spread(own, by, "ratio").assign(claim=claim, against=q) for claim, q, own in compared],
        ignore_index=True,
    )
    linear, little = table["claim"] == 1, 1.1 - table["median"]
    low, high = ((table[end] - table["n_workers"]).where(linear, little) for end in ("low", "high"))
    return table.assign(verdict=judged_interval(low, high, REPRODUCED))


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
    times = times.set_index("method")[[*axes, "log", "error", "log_paper"]]
    columns = ["says", *axes, "what", "ours", "paper", "se", "verdict", "note"]
    parts = [pd.DataFrame(columns=columns)]
    for claim in claims:
        rows = _faster(times, axes, claim) if "fast" in claim else _growth(times, axes, claim)
        parts.append(rows.assign(says=claim["says"], note=claim.get("note", "")))
    parts = [part for part in parts if len(part)] or parts
    return pd.concat(parts, ignore_index=True).reindex(columns=columns)


def _faster(times, axes, claim):
    """How many times as long each of the other methods takes, at each setting."""
    one, rows = times.loc[[claim["fast"]]], []
    for other in claim["than"]:
        both = one.merge(times.loc[[other]], on=axes, suffixes=("", "_other"))
        both = both.dropna(subset=["log", "log_other"])
        ratio = both["log_other"] - both["log"]
        printed = np.exp(both["log_paper_other"] - both["log_paper"])
        both["se"] = np.hypot(both["error"], both["error_other"])
        both["verdict"] = judged(ratio, both["se"])
        both["what"] = f"{other} / {claim['fast']}"
        rows.append(both.assign(ours=np.exp(ratio), paper=printed))
    return pd.concat(rows)


def _growth(times, axes, claim):
    """The exponent in n of the time of each method, at equal other axes."""
    sign, names = (1, claim["grows"]) if "grows" in claim else (-1, claim["constant"])
    by, rows = [*(axis for axis in axes if axis != "n"), "method"], []
    for at, own in times.loc[names].reset_index().sort_values("n").groupby(by, sort=False):
        ours, printed = own.dropna(subset="log"), own.dropna(subset="log_paper")
        row = dict(zip(by, at, strict=True)) | {"what": f"exponent in n of {at[-1]}"}
        if len(ours) < 2:
            continue
        row["ours"], span = _exponent(ours["n"], ours["log"])
        row["paper"], _ = _exponent(printed["n"], printed["log_paper"])
        row["se"] = np.hypot(*ours["error"].iloc[[0, -1]]) / span
        rows.append(row | {"verdict": str(judged(sign * (row["ours"] - 0.5), row["se"]))})
    return pd.DataFrame(rows)


def _exponent(n, log):
    """From the first to the last n, and the logarithm of their ratio; missing if they are one."""
    if len(n) < 2:
        return np.nan, np.nan
    span = np.log(n.iloc[-1] / n.iloc[0])
    return (log.iloc[-1] - log.iloc[0]) / span, span


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


def bound_slopes(results: pd.DataFrame, decades: float = 2) -> pd.DataFrame:
    """Mean of the `slopes` of each curve over the runs, with its 95 % interval by Student's law.

    Columns: panel, method, slope, low, high.
    """
    rows, by = [], ["panel", "method"]
    for curve, runs in slopes(results, by, "x", decades).groupby(by):
        slope = runs["slope"].to_numpy()
        if len(slope) > 1:
            half = stdtrit(len(slope) - 1, 0.975) * slope.std(ddof=1) / np.sqrt(len(slope))
            rows.append([*curve, slope.mean(), slope.mean() - half, slope.mean() + half])
    return pd.DataFrame(rows, columns=[*by, "slope", "low", "high"])
