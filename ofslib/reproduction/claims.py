"""What the papers say of their figures and theorems, judged by our runs."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import t as student


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
    table["verdict"] = judged(table)
    return table.rename(columns={"method": "against"})[
        [*by, "against", "difference", "se", "verdict"]
    ]


def claim_better(
    summary: pd.DataFrame, claims: Sequence[dict[str, Any]], by: Sequence[str]
) -> pd.DataFrame:
    """Check claims of a text at each point of `by`, which names dataset and k.

    Each claim is a dict: `says`, the words; `better`, methods each of which is said to have a
    higher mean than each of the methods `than`; `least`, if given, data set -> the least k that
    it is about, and then of no other data set.

    Columns: says, `by`, method, and those of `claim_highest`; one row a comparison.
    """
    tables = [claim_highest(summary.iloc[:0], "", by).assign(says="", method="")]
    for claim in claims:
        least = claim.get("least", dict.fromkeys(summary["dataset"], 0))
        about = summary[summary["k"] >= summary["dataset"].map(least)]
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
    return table.assign(verdict=judged(table)).reset_index()


def judged(table: pd.DataFrame) -> np.ndarray:
    """Whether a difference is above 0, by two standard errors: holds, fails, unresolved."""
    clear = table["difference"].abs() > 2.0 * table["se"]
    return np.where(clear, np.where(table["difference"] > 0, "holds", "fails"), "unresolved")


NO_BOUND = "does not apply"


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


def bound_slopes(results: pd.DataFrame, decades: float = 2) -> pd.DataFrame:
    """Slope of log(value) against log(x) over the last decades of x, with its 95 % interval.

    Least squares for each run, then Student's interval of the mean over the runs.
    """
    rows = []
    for (panel, curve), own in results[results["value"] > 0].groupby(["panel", "method"]):
        late = own[own["x"] >= own["x"].max() / 10**decades * (1 - 1e-9)]
        runs = [np.polyfit(np.log(r["x"]), np.log(r["value"]), 1)[0]
                for _, r in late.groupby("replicate") if r["x"].nunique() > 1]  # fmt: skip
        if len(runs) > 1:
            half = student.ppf(0.975, len(runs) - 1) * np.std(runs, ddof=1) / np.sqrt(len(runs))
            slope = np.mean(runs)
            rows.append([panel, curve, slope, slope - half, slope + half])
    return pd.DataFrame(rows, columns=["panel", "method", "slope", "low", "high"])
