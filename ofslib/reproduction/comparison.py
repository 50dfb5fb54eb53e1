"""Whether the results that were made here are those of an archive, value by value.

Random numbers follow from the data of a setting and the number of a replicate, so that a scale with
fewer replicates makes some of the values of one with more: the same up to the rounding of another
machine. Times, and what is measured with the machine to itself, are never the same.
"""

import hashlib
import io
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ofslib._printing import cell
from ofslib.reproduction import archive
from ofslib.reproduction.project import Project
from ofslib.reproduction.records import files_of

# Relative difference up to which two values are the same but for the rounding of sums; and the
# share of the largest value of a metric below which a value is nothing but rounding.
ROUNDING, NOTHING = 1e-6, 1e-9
# What does not say which values a run has, but how many of them; methods are told one by one.
_NOT_OF_THE_RUN = {"name", "asked", "replicates", "first", "metrics", "methods", "parts"}
# No names of a value; the others may be: which method, swept parameter, replicate, metric, place.
_NO_KEYS = {"value", "note", "empty", "beyond", "experiment"}
COUNTS = ("values", "compared", "equal", "rounding", "differ")


def compare(work: Project, file: str | Path) -> tuple[pd.DataFrame, dict[str, int]]:
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
        of equal settings, data and replicates; of these `equal` to the last bit, `rounding`, up to
        1e-6 of the larger one, and `differ`; `largest`, the largest of these differences (infinite:
        one has no value), and `where` it is.
    dict
        Why results that are here were left out -> how many: that they are those of the
        archive themselves, as after `ofslib papers --unpack`, or are not to be trusted.

    Raises
    ------
    FileNotFoundError, CorruptFile, ValueError
        As `archive.opened`; ValueError if no result of the scale is here, too.
    """
    index, content = archive.opened(file)
    records, rows, left_out = index["results"], [], Counter()
    for name, entry in work.entries.items():
        if entry.spec["alone"]:
            continue
        here = []
        for setting in entry.to_run:
            if (result := work.result(name, setting.name)).is_file():
                record, why = archive.recorded(str(result))
                if not why and record["missing"]:
                    why = "made without its data set"
                elif not why and record == records.get(f"{name}/{result.name}"):
                    why = "it is the one in the archive"
                if why:
                    left_out[why] += 1
                else:
                    here.append((record, result.read_bytes()))
        there = [
            (record, content[member])
            for member, record in records.items()
            if member.startswith(f"{name}/") and not record["missing"]
        ]
        if len(values := _values(here)):
            rows.append({"entry": name, **compared(values, _values(there))})
    if not rows:
        why = "".join(f"; {number} left out: {why}" for why, number in left_out.items())
        raise ValueError(f"no results of scale {work.scale} to compare: snakemake makes them{why}")
    return pd.DataFrame(rows), dict(left_out)


def _values(results: list[tuple[dict[str, Any], bytes]]) -> pd.DataFrame:
    """All values but times, with what identifies the setting and the method that gave each."""
    tables = [
        identified(record["spec"], files_of(record["data"]), content) for record, content in results
    ]
    table = pd.concat(tables, ignore_index=True) if tables else pd.DataFrame(columns=["metric"])
    return table[table["metric"] != "time_s"]


def identified(spec: dict[str, Any], data: dict[str, str], content: bytes) -> pd.DataFrame:
    """The rows of a result, and in a column `run` what each is made of.

    Parameters
    ----------
    spec, data : dict
        Of its record: the setting, or several as its parts, and the sha256 of the data set's files.
    content : bytes
        The CSV.

    Returns
    -------
    DataFrame
        `value` is a number, all other columns are text: a number in the same form in all files.
    """
    table = pd.read_csv(io.BytesIO(content), dtype=str, keep_default_na=False)
    for column in table.columns.difference(["value"]):
        table[column] = table[column].map({text: _plain(text) for text in table[column].unique()})
    table["value"], table["run"] = pd.to_numeric(table["value"]), ""
    for part in spec.get("parts", [spec]):
        own = np.ones(len(table), bool)
        for axis, at in part["axes"].items():
            own &= (table[axis] == _plain("" if at is None else str(at))).to_numpy()
        # Of a study all methods take part; what is followed besides models has none.
        table.loc[own, "run"] = _run(part, data, part["methods"] if part["study"] else {})
        for label, method in ({} if part["study"] else part["methods"]).items():
            mine = own & (table["method"] == _plain(label)).to_numpy()
            table.loc[mine, "run"] = _run(part, data, {label: method})
    # A method that could not be run here tells nothing of its values.
    lacking = table["note"].str.endswith("is not installed") if "note" in table else False
    return table[(table["run"] != "") & ~lacking]


def _plain(text: str) -> str:
    """A number as it is written in all tables: an axis has gaps, and is not whole, in some."""
    try:
        return repr(float(text))
    except ValueError:
        return text


def _run(part: dict[str, Any], data: dict[str, str], methods: dict[str, Any]) -> str:
    """Equal for runs that are the same but for how often they are repeated."""
    left_out, of_method = set(_NOT_OF_THE_RUN), {"replicates", "timed"}
    if not part["study"]:
        # Swept values stand in the rows. Limits change nothing but the passes: see
        # `experiment.number_of_passes`.
        left_out, of_method = left_out | {"sweep"}, of_method | {"sweep"}
        left_out |= {"run_values", "tune_values"} if part["passes"] == 1 else set()
    left_out |= set() if "dataset" in part["data"] else {"run_values"}
    left_out |= set() if part["tune"] else {"tune_values", "tune_points"}
    same = {name: value for name, value in part.items() if name not in left_out}
    same["methods"] = {
        label: {name: value for name, value in method.items() if name not in of_method}
        for label, method in methods.items()
    }
    text = json.dumps([same, data], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def compared(here: pd.DataFrame, there: pd.DataFrame) -> dict[str, Any]:
    """The counts, and the largest difference, of two tables of `identified`: see `compare`."""
    keys = sorted({*here.columns, *there.columns} - _NO_KEYS)
    both = _numbered(here, keys).merge(_numbered(there, keys), on=[*keys, "nth"])
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
    table = table.reindex(columns=[*keys, "value"])
    table = table.fillna(dict.fromkeys(keys, "")).astype({"value": float})
    return table.assign(nth=table.groupby(keys, sort=False).cumcount())


def _named(both: pd.DataFrame, relative: pd.Series, keys: list[str]) -> str:
    """What identifies the value with the largest difference."""
    row = both.loc[relative.idxmax()]
    told = {key: row[key] for key in keys if key != "run" and row[key] != ""}
    return ", ".join(f"{key} {_short(text)}" for key, text in told.items())


def _short(text: str) -> str:
    try:
        return cell(float(text))
    except ValueError:
        return text


def lines(found: pd.DataFrame) -> Iterator[list[Any]]:
    """The cells of each row as they are read, the sums last."""
    for row in found.to_dict("records"):
        largest = f"{row['largest']:.1e}" if row["largest"] else ""
        yield [row["entry"], *(row[name] for name in COUNTS), largest, row["where"]]
    yield ["all", *(int(found[name].sum()) for name in COUNTS), "", ""]
