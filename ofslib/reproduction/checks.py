"""What the entries of a project say of each other, of methods and of files: faults, one a line."""

import csv
import math
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from ofslib.reproduction.configuration import AtScale, ConfigurationError, is_by
from ofslib.reproduction.entries import Entry, Setting, as_list, mappings
from ofslib.simulate import DESIGNS

if TYPE_CHECKING:
    from ofslib.reproduction.project import Project

KINDS = {"classification": "Classifier", "regression": "Regressor"}


def faults(work: "Project") -> Iterator[str]:
    """The faults of all entries: file, entry, key, and what is wrong."""
    # Those that show the runs of others come last: a fault is that of the entry it stands in.
    for name in sorted(work.entries, key=lambda name: bool(work.entries[name].spec["results"])):
        try:
            found = [*_of_entry(work, work.entries[name])]
        except ConfigurationError as error:
            found = str(error).splitlines()
        yield from dict.fromkeys(f"{work.files[name]}, {name}: {why}" for why in found)


def _of_entry(work: "Project", entry: Entry) -> Iterator[str]:
    spec, name = entry.spec, entry.name
    able = sorted(k for k, e in work.entries.items() if e.spec["methods"] or e.spec["study"])
    if spec["results"] and spec["results"] not in able:
        yield f"results={spec['results']!r} is none of {able}"
        return
    measured = spec["parameters"].get("measured")
    for file in (work.notebook(name), work.published(name), measured):
        if isinstance(file, str) and not (work.root / file).is_file():
            yield f"there is no {file}"
    is_own_table = spec["form"] == "table" and not spec["results"]
    allowed = ([*spec["readings"]] or [True]) if is_own_table else []
    if spec["time"] not in (None, *allowed):
        yield f"time={spec['time']!r} must be one of {allowed}"
    for key, named, known in _named(work, entry):
        for axis, values in named.items():
            if axis not in known:
                yield f"{key}: {axis!r} is none of the axes {sorted(known)}"
                continue
            for value in values:
                if value not in known[axis]:
                    able = ", ".join(dict.fromkeys(map(repr, known[axis])))
                    yield f"{key}: {axis}={value!r} is none of {able}"
    for setting, count in Counter(setting.name for setting in entry.settings).items():
        if count > 1:
            yield f"grid has {count} points that are called {setting!r}"
    for setting in entry.settings:
        yield from _of_setting(work, setting)
    if work.published(name) and (work.root / work.published(name)).is_file():
        yield from _of_numbers(work, entry)


Axes = dict[str, Iterable[Any]]


def _named(work: "Project", entry: Entry) -> Iterator[tuple[str, Axes, Axes]]:
    """What an entry says of axes, methods and metrics: a key, the values named, those known."""
    spec, source = entry.spec, work.source(entry.name)
    run, own = spec["at_scale"], {"method": spec["methods"]}
    axes = {key: values for key, values in run.items() if key not in AtScale.model_fields}
    yield "at_scale", axes, entry.values | spec["sweep"]
    yield "at_scale.methods", {"method": run.get("methods", ())}, own
    for reading, change in spec["readings"].items():
        yield f"readings.{reading}", {"method": change.get("methods", ())}, own
    yield "unavailable", spec["unavailable"], entry.values
    yield "only", spec["only"], source.values
    # The methods of a study are known to its function only.
    known = {} if source.spec["study"] else {"method": source.spec["methods"]}
    shown = source.values | known | {"metric": source.spec["metrics"]}
    for item in spec["discussed"]:
        yield "discussed", {axis: as_list(v) for axis, v in item.items() if axis != "why"}, shown
    if known:
        yield "weak_baselines", {"method": spec["weak_baselines"]}, known
        for reading, counts in work.fitted(entry.name).items():
            yield f"readings.{reading}.fitted", {"method": counts}, known
        for claim in spec["time_claims"]:
            for key in claim.keys() - {"says", "note"}:
                yield f"time_claims.{key}", {"method": as_list(claim[key])}, known
    # Entries share what is `by` an axis: a value that another entry has is no slip.
    for parts in mappings({key: part for key, part in spec.items() if key != "parameters"}):
        # A method or a study may have a parameter of this name.
        if is_by(parts) and not parts.keys() & {"class", "function"}:
            axis = parts["by"]
            values = [v for other in work.entries.values() for v in other.values.get(axis, ())]
            yield f"by: {axis}", {axis: parts.keys() - {"by"}}, {axis: values}


def _of_setting(work: "Project", setting: Setting) -> Iterator[str]:
    data, name, runs = setting.spec["data"], setting.dataset, setting.spec["methods"]
    row = work.row(name) if name else None
    if row and (rule := data.get("split")):
        asked = rule["train"] + rule.get("test", 1)
        if row["n_train"] and asked > row["n_train"]:
            has = f"{name} has {row['n_train']}"
            yield f"data.split: train and test are {asked} rows, and {has}"
    elif "split" not in data and data.keys() & {"products", "standardized"}:
        yield "data: products and standardized need split"
    elif row and runs and not setting.spec["study"] and not row["test"]:
        yield f"dataset={name!r} has no test rows; say how to split it, as split: {{train: 1000}}"
    design = DESIGNS.get(data.get("simulate"))
    task = row["task"] if row else data.get("task", getattr(design, "task", None))
    right = KINDS.get(task)
    for label, method in runs.items() if right else ():
        [wrong] = {*KINDS.values()} - {right}
        if method["class"].endswith(wrong) and ":" not in method["class"]:
            other = method["class"].removesuffix(wrong) + right
            yield f"methods.{label}: the data are for {task}: {other}, if any"


def _of_numbers(work: "Project", entry: Entry) -> Iterator[str]:
    """Where printed numbers do not say, once each, of which cell they are."""
    file, source = work.published(entry.name), work.source(entry.name)
    with open(work.root / file, encoding="utf-8-sig", errors="replace", newline="") as text:
        rows = [*csv.DictReader(text)]
    # What a study measures is known to its function only; orders of growth are words.
    words, study = entry.spec["notebook"] == "complexities", source.spec["study"]
    needed = {"metric", "value", "note"} | (set() if study else {"method"})
    known = {axis: {str(value) for value in values} for axis, values in source.values.items()}
    columns = {column for row in rows for column in row}
    for column in needed - columns | columns - needed - known.keys() - {"method"}:
        yield f"{file}: the column {column!r} is missing, or none of an axis of the entry"
    if not (words or study):
        known |= {"method": {*source.spec["methods"]}}
        known |= {"metric": {*source.spec["metrics"], "time_s"}}
    for line, row in enumerate(rows, 2):
        for column in row.keys() & known.keys():
            if row[column] not in known[column]:
                able = sorted(known[column])
                yield f"{file}, line {line}: {column} {row[column]!r} is none of {able}"
        if not (words or _is_number(row.get("value"))):
            yield f"{file}, line {line}: value {row['value']!r} is no number"
    cells = Counter(
        ", ".join(f"{v}" for k, v in row.items() if k not in ("value", "note")) for row in rows
    )
    yield from (f"{file}: {n} lines are of the cell {cell}" for cell, n in cells.items() if n > 1)


def _is_number(text: str | None) -> bool:
    """Whether a value is one finite number, or empty."""
    try:
        return not text or math.isfinite(float(text))
    except ValueError:
        return False
