"""Orders of growth: what the papers print, beside the exponents that are measured."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from ofslib.reproduction import tables
from ofslib.reproduction.claims import bound_slopes, in_order

# Half-way to the next half power: what caches, small sizes and logarithms do is less.
TOLERANCE = 0.25
_ALL = 99  # decades: all sizes count


def exponents(results: pd.DataFrame) -> pd.DataFrame:
    """Slope of log(value) against log(size), with its 95 % interval by Student's law over the runs.

    Columns: method, metric, varied, slope, low, high.
    """
    by = ["method", "metric", "varied"]
    table = bound_slopes(results, by, "size", decades=_ALL)
    for column in ("metric", "method"):
        table = in_order(table, column, [*results[column].unique()])
    return table.reset_index(drop=True)


def powers(order: Any, sizes: Sequence[str]) -> dict[str, float] | None:
    """The power of each of these sizes in "O(n p^2)"; None of what is no product of powers.

    nnz(A) is n p where A has no zeros, and d is another name of p.
    """
    product = re.fullmatch(r"O\((.*)\)", str(order).replace("nnz(A)", "n p"))
    factors = (
        [re.fullmatch(r"([a-z])(?:\^(\d+))?", word) for word in product[1].split()]
        if product
        else [None]
    )
    if None in factors:
        return None
    found = {{"d": "p"}.get(f[1], f[1]): float(f[2] or 1) for f in factors}
    return {size: found.get(size, 0.0) for size in sizes} if set(found) <= set(sizes) else None


def verdict(power: float, low: float, high: float) -> str:
    """Whether what lies between low and high is that power, less (better) or more (worse)."""
    if power - TOLERANCE <= low and high <= power + TOLERANCE:
        return "agrees"
    if low > power + TOLERANCE:
        return "worse"
    return "better" if high < power - TOLERANCE else "unresolved"


def beside(
    published: pd.DataFrame,
    measured: pd.DataFrame,
    ours: Mapping[str, Sequence[str]],
    columns: Mapping[str, Mapping[str, Any]],
    elsewhere: Mapping[str, str],
) -> pd.DataFrame:
    """One row a printed cell: what is measured of it, and the verdict with its reason.

    Parameters
    ----------
    published : DataFrame
        Columns method, metric (the column of the table), value (its words), note.
    measured : DataFrame
        From `exponents`.
    ours : mapping
        Printed method -> labels of ours.
    columns : mapping
        Column of the table -> metric, sizes, and, if it is not that of each method, of: the label
        of what is measured.
    elsewhere : mapping
        Other columns of the table -> where that is seen to.

    Returns
    -------
    DataFrame
        Columns method, metric, paper, measured (powers, ± half of their 95 % interval), verdict,
        why, printed (as `tables.printed`).
    """
    rows = []
    for cell in published.itertuples():
        column, row = columns.get(cell.metric), {"measured": "", "verdict": "not comparable"}
        labels = ours.get(cell.method, [])
        if column is None:
            row["why"] = elsewhere[cell.metric]
        elif not labels:
            row["why"] = "not one of our methods"
        else:
            row = _judged(cell, measured, [column["of"]] if "of" in column else labels, column)
        if not isinstance(cell.value, str):
            seen = "" if cell.note.startswith("dash") else row["measured"]
            row |= {"measured": seen, "verdict": "not comparable", "why": cell.note}
        rows.append({"method": cell.method, "metric": cell.metric, "paper": cell.value, **row})
    return pd.DataFrame(rows).assign(printed=tables.printed(published["value"], published["note"]))


def _judged(cell, measured, labels, column):
    own = measured[measured["metric"] == column["metric"]].set_index(["method", "varied"])
    sizes, words, verdicts = column["sizes"], [], []
    expected = powers(cell.value, sizes)
    for label in labels:
        seen = own.loc[[(label, size) for size in sizes if (label, size) in own.index]]
        name = f"{label}: " if len(labels) > 1 else ""
        words.append(name + " ".join(_power(at[1], one) for at, one in seen.iterrows()))
        if expected and len(seen) == len(sizes):
            verdicts += [verdict(expected[at[1]], one.low, one.high) for at, one in seen.iterrows()]
    row = {"measured": "; ".join(words)}
    if not verdicts:
        reason = "no result at this scale" if expected else "no product of powers is printed"
        return row | {"verdict": "not comparable", "why": reason}
    order = ("worse", "unresolved", "better", "agrees")
    return row | {"verdict": next(word for word in order if word in verdicts), "why": ""}


def _power(size: str, one: pd.Series) -> str:
    """A size with its exponent and half of the interval, which is none where bytes are counted."""
    half = (one.high - one.low) / 2
    return f"{size}^{one.slope:z.2f}" + (f"±{half:.2f}" if half > 1e-6 else "")
