"""Whether the results that were made here are those of an archive, value by value.

Random numbers follow from the data of a setting and the number of a replicate, so that a scale with
fewer replicates makes some of the values of one with more: the same up to the rounding of another
machine. Times, and what is measured with the machine to itself, are never the same.
"""

import hashlib
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from pandas.api.types import is_numeric_dtype

from ofslib._printing import cell
from ofslib.reproduction import archive, provenance
from ofslib.reproduction.project import Project

# Relative difference up to which two values are the same but for the rounding of sums.
ROUNDING = 1e-6
# What says how often, under which name and for which scores a setting is run, not what is run.
_NOT_OF_THE_RUN = {"name", "asked", "replicates", "first", "metrics", "methods", "parts"}
_NO_KEYS = {"value", "note", "empty", "experiment"}


def compare(work: Project, file: str | Path) -> pd.DataFrame:
    """How many values of a scale, made here, an archive has too, and how many are the same.

    Parameters
    ----------
    work : Project
        At the scale whose results are here.
    file : path
        The archive, of any scale.

    Returns
    -------
    DataFrame
        A row for each entry of which something is here: `entry`; `values` here; `compared`, those
        of equal settings and replicates; of these `equal` to the last bit, `rounding`, up to
        1e-6 of the larger one, and `differ`; `largest`, the largest of these differences, and
        `where` it is.

    Raises
    ------
    FileNotFoundError, CorruptFile, ValueError
        As `archive.opened`; ValueError if no result of the scale is here, too.
    """
    index, content = archive.opened(file)
    there = {
        name: (record["spec"], content[name])
        for name, record in index["results"].items()
        if not name.endswith(".time.csv")
    }
    rows = []
    for name, entry in work.entries.items():
        if entry.spec["alone"]:
            continue
        files = [work.result(name, setting.name) for setting in entry.to_run]
        made = [_made(file) for file in files if file.is_file()]
        if here := list(filter(None, made)):
            own = [pair for member, pair in there.items() if member.startswith(f"{name}/")]
            rows.append({"entry": name, **_compared(_values(here), _values(own))})
    if not rows:
        raise ValueError(f"no results of scale {work.scale} to compare: snakemake makes them")
    return pd.DataFrame(rows)


def _made(file: Path) -> tuple[dict[str, Any], bytes] | None:
    """The setting that made a result, and the result; None if it has no record."""
    try:
        record = json.loads(Path(provenance.record_of(str(file))).read_text(encoding="utf-8"))
        return record["spec"], file.read_bytes()
    except (OSError, ValueError, KeyError):
        return None


def _values(results: list[tuple[dict[str, Any], bytes]]) -> pd.DataFrame:
    """All values but times, with what identifies the setting and the method that gave each."""
    tables = [_identified(*result) for result in results]
    table = pd.concat(tables, ignore_index=True) if tables else pd.DataFrame(columns=["metric"])
    return table[table["metric"] != "time_s"]


def _identified(spec: dict[str, Any], content: bytes) -> pd.DataFrame:
    table = pd.read_csv(io.BytesIO(content), dtype={"method": str, "metric": str})
    table["run"] = None
    for part in spec.get("parts", [spec]):
        own = np.ones(len(table), bool)
        for axis, value in part["axes"].items():
            own &= table[axis].isna() if value is None else table[axis] == value
        # The methods of a study take part together.
        labels = [None] if part["study"] else part["methods"]
        for label in labels:
            mine = own if label is None else own & (table["method"] == label)
            table.loc[mine, "run"] = _run(part, label)
    return table


def _run(part: dict[str, Any], label: str | None) -> str:
    """Equal for runs that are the same but for how often they are repeated."""
    methods = part["methods"] if label is None else {label: part["methods"][label]}
    left_out = set(_NOT_OF_THE_RUN)
    # Limits that mean nothing to it
    left_out |= set() if "dataset" in part["data"] else {"run_values"}
    left_out |= set() if part["tune"] else {"tune_values", "tune_points"}
    same = {name: value for name, value in part.items() if name not in left_out}
    same["methods"] = {
        name: {key: value for key, value in method.items() if key not in ("replicates", "timed")}
        for name, method in methods.items()
    }
    return hashlib.sha256(json.dumps(same, sort_keys=True).encode()).hexdigest()


def _compared(here: pd.DataFrame, there: pd.DataFrame) -> dict[str, Any]:
    keys = sorted({*here.columns, *there.columns} - _NO_KEYS)
    here, there = (_numbered(table, keys) for table in (here, there))
    both = here.merge(there, on=[*keys, "nth"], suffixes=("", "_there"))
    a, b = both["value"].astype(float), both["value_there"].astype(float)
    equal = (a == b) | (a.isna() & b.isna())
    relative = (a - b).abs() / np.maximum(a.abs(), b.abs())
    relative = relative.mask(equal, 0.0).fillna(np.inf)  # a value beside none
    differ, largest = relative > ROUNDING, float(relative.max()) if len(relative) else 0.0
    found = {"values": len(here), "compared": len(both), "equal": int(equal.sum())}
    found |= {"rounding": int((~equal & ~differ).sum()), "differ": int(differ.sum())}
    return found | {"largest": largest, "where": _named(both, relative, keys) if largest else ""}


def _numbered(table: pd.DataFrame, keys: list[str]) -> pd.DataFrame:
    """The values by their keys; `nth` tells apart those that share all of them."""
    table = table.reindex(columns=[*keys, "value"])
    # An axis is of whole numbers in one table, and has gaps in another.
    table = table.astype({key: float for key in keys if is_numeric_dtype(table[key])})
    return table.assign(nth=table.groupby(keys, dropna=False, sort=False).cumcount())


def _named(both: pd.DataFrame, relative: pd.Series, keys: list[str]) -> str:
    """What identifies the value with the largest difference."""
    row = both.loc[relative.idxmax()]
    told = {key: row[key] for key in keys if key != "run" and not pd.isna(row[key])}
    return ", ".join(f"{key} {cell(value)}" for key, value in told.items())


def lines(found: pd.DataFrame) -> Iterator[list[Any]]:
    """The cells of each row as they are read, the sums last."""
    counts = ["values", "compared", "equal", "rounding", "differ"]
    for row in found.to_dict("records"):
        largest = f"{row['largest']:.1e}" if row["largest"] else ""
        yield [row["entry"], *(row[c] for c in counts), largest, row["where"]]
    yield ["all", *(int(found[c].sum()) for c in counts), "", ""]
