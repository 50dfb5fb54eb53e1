"""Whether results are those of an archive, value by value.

Random numbers follow from the data of a setting and the number of a replicate. A scale with fewer
replicates therefore makes some of the values of one with more: the same up to the rounding of
another machine. Times, and what is measured with the machine to itself, are never the same.
"""

from collections import Counter
from typing import Any

import numpy as np
import pandas as pd

from ofslib.reproduction import identity
from ofslib.reproduction.project import Project
from ofslib.reproduction.store import STEP, Store
from ofslib.reproduction.tables import MARKS

# Relative difference up to which two values are the same but for the rounding of sums; and the
# share of the largest value of a metric below which a value is nothing but rounding.
ROUNDING, NOTHING = 1e-6, 1e-9
# No names of a value; swept parameters, replicate, metric and place are.
_NO_KEYS = {"value", "note", STEP, *MARKS}
COUNTS = ("values", "compared", "equal", "rounding", "differ")


def compare(work: Project, here: Store, there: Store) -> tuple[pd.DataFrame, dict[str, int]]:
    """How many values of a scale, made here, are there too, and how many are the same.

    Returns
    -------
    DataFrame
        A row for each entry of which something is here: `entry`; `values` here; `compared`, those
        of equal results and replicates; of these `equal` to the last bit, `rounding`, up to 1e-6 of
        the larger one, and `differ`; `largest`, the largest of these differences (infinite: one has
        no value), and `where` it is.
    dict
        Why results that are here were left out -> how many.
    """
    rows, left_out = [], Counter()
    for name, entry in work.entries.items():
        tables = []
        for run in [] if entry.spec["alone"] else entry.to_run:
            for result in identity.results(run.spec):
                records = here.records_of(result)
                if records and records == there.records_of(result):
                    left_out["it is the one in the archive"] += 1
                elif records and result.made_of["metrics"] != ["time_s"]:
                    tables.append((result, here.rows(result), there.rows(result)))
        if tables:
            rows.append({"entry": name, **_sum(tables)})
    return pd.DataFrame(rows), dict(left_out)


def _sum(tables: list[tuple]) -> dict[str, Any]:
    """The counts of all results of an entry, and its largest difference."""
    found, total = [], Counter()
    for result, a, b in tables:
        found.append((result.label, compared(a, b)))
        total += Counter({name: found[-1][1][name] for name in COUNTS})
    label, worst = max(found, key=lambda pair: pair[1]["largest"])
    named = ", ".join(filter(None, [f"method {label}" * bool(label), worst["where"]]))
    where = named if worst["largest"] else ""
    return {n: total[n] for n in COUNTS} | {"largest": worst["largest"], "where": where}


def compared(here: pd.DataFrame, there: pd.DataFrame) -> dict[str, Any]:
    """The counts, and the largest difference, of the rows of one result: see `compare`.

    Times are left out.
    """
    keys = sorted({*here.columns, *there.columns} - _NO_KEYS)
    here, there = _numbered(here, keys), _numbered(there, keys)
    both = here.merge(there, on=[*keys, "nth"])
    a, b = both["value_x"], both["value_y"]
    equal = (a == b) | (a.isna() & b.isna())
    size = np.maximum(a.abs(), b.abs())
    least = NOTHING * size.groupby(both["metric"]).transform("max")
    relative = ((a - b).abs() / np.maximum(size, least)).fillna(np.inf).mask(equal, 0.0)
    differ, largest = relative > ROUNDING, float(relative.max()) if len(relative) else 0.0
    counts = (len(here), len(both), equal.sum(), (~equal & ~differ).sum(), differ.sum())
    found = dict(zip(COUNTS, map(int, counts), strict=True))
    return found | {"largest": largest, "where": _named(both, relative, keys) if largest else ""}


def _numbered(table: pd.DataFrame, keys: list[str]) -> pd.DataFrame:
    """The values by their keys; `nth` tells apart those that share all of them."""
    table = table.reindex(columns=[*keys, "value"]).fillna(dict.fromkeys(keys, ""))
    table = table[table["metric"] != "time_s"]
    table["value"] = pd.to_numeric(table["value"])
    return table.assign(nth=table.groupby(keys, sort=False).cumcount())


def _named(both: pd.DataFrame, relative: pd.Series, keys: list[str]) -> str:
    """What identifies the value with the largest difference."""
    row = both.loc[relative.idxmax()]
    return ", ".join(f"{key} {row[key]}" for key in keys if row[key] != "")
