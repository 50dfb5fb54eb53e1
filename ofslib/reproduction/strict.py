"""What is wrong with a configuration, found before any run and told in one message.

`project.load` refuses a wrong key or value. This module checks what entries say of each other, of
methods and of files, and it imports what they name: Snakemake calls it when it starts.
"""

import inspect
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import pandas as pd

from ofslib.metrics import METRICS, TASKS
from ofslib.reproduction import identity
from ofslib.reproduction.configuration import AtScale, ConfigurationError, alike
from ofslib.reproduction.entries import Entry, as_list
from ofslib.reproduction.experiment import EXPECTED
from ofslib.reproduction.methods import find_class, models_of
from ofslib.reproduction.project import Project
from ofslib.simulate import DESIGNS


def check(work: Project) -> None:
    """Raise ConfigurationError if a run of the project would fail for what is known before it.

    Raises
    ------
    ConfigurationError
        All faults, one a line: the file, the entry, the key, and what is wrong with it.
    """
    faults = [
        f"config/datasets.csv, {name}, reader: {why}"
        for name, row in work.registry.items()
        for why in (_why_not(find_class, row["reader"]) if ":" in row["reader"] else ())
    ]
    faults += _of_notebook(work, "notebooks/run.ipynb")
    for name, entry in work.entries.items():
        found = []
        try:
            found += _of_entry(work, entry)
        except ConfigurationError as error:
            found += str(error).splitlines()
        faults += [f"{work.files[name]}, {name}: {why.removeprefix(f'{name}: ')}" for why in found]
    if faults:
        raise ConfigurationError("\n".join(dict.fromkeys(faults)))


def _why_not(call: Callable, *given: Any, **named: Any) -> list[str]:
    """Why a call fails, if it does: a module of a user may raise anything."""
    try:
        call(*given, **named)
    except (Exception, SystemExit) as error:
        return [f"{error or 'it cannot be used'} ({type(error).__name__})"]
    return []


def _of_entry(work: Project, entry: Entry) -> Iterator[str]:
    spec, name = entry.spec, entry.name
    able = sorted(k for k, e in work.entries.items() if e.spec["methods"] or e.spec["study"])
    if spec["results"] and spec["results"] not in able:
        yield f"results={spec['results']!r} is none of {able}"
        return
    yield from _of_notebook(work, work.notebook(name))
    for key, named, known in _named(work, entry):
        for axis, values in named.items():
            if axis not in known:
                yield f"{key}: {axis!r} is none of the axes {sorted(known)}"
            for value in values if axis in known else ():
                if value not in known[axis]:
                    able = ", ".join(dict.fromkeys(map(repr, known[axis])))
                    yield f"{key}: {axis}={value!r} is none of {able}"
    for setting, count in Counter(setting.name for setting in entry.settings).items():
        if count > 1:
            yield f"grid has {count} points that are called {setting!r}"
    for setting in entry.settings:
        wrong = [*_of_data(work, setting.spec), *_of_calls(work, setting.spec)]
        yield from wrong
        if not (wrong or setting.skipped):
            yield from _why_not(identity.results, setting.spec)  # which asks for versions
    for file in (work.published(name), spec["parameters"].get("measured")):
        if isinstance(file, str) and not (work.root / file).is_file():
            yield f"there is no {file}"
        elif file and file == work.published(name):
            yield from _of_numbers(work, entry)


def _of_notebook(work: Project, file: str) -> Iterator[str]:
    if not (work.root / file).is_file():
        yield f"there is no {file}"
        return
    text = (work.root / file).read_text(encoding="utf-8", errors="replace")
    if not re.search(r'"tags": *\[[^]]*"parameters"', text):
        yield f"{file}: no cell has the tag `parameters`; tag its first code cell"


Axes = dict[str, Iterable[Any]]


def _named(work: Project, entry: Entry) -> Iterator[tuple[str, Axes, Axes]]:
    """What an entry says of axes, methods and metrics: a key, the values named, those known."""
    spec, source = entry.spec, work.source(entry.name)
    run, own = spec["at_scale"], {"method": spec["methods"]}
    timed = ([*spec["readings"]] or [True]) * (spec["form"] == "table" and not spec["results"])
    yield "time", {"time": [spec["time"]]}, {"time": [None, *timed]}
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


def _of_data(work: Project, spec: dict[str, Any]) -> Iterator[str]:
    """Where the rows of a setting do not suit what is measured of them."""
    data, able = spec["data"], {*(METRICS if spec["test_rows"] else EXPECTED), "time_s"}
    task = data.get("task", getattr(DESIGNS.get(data.get("simulate")), "task", None))
    if data.get("dataset"):
        row = work.row(data["dataset"])
        task, able = row["task"], {*METRICS, "time_s"} - {"DR"}
        if not ("split" in data or row["test"] or spec["study"]):
            yield f"{data['dataset']} has no test rows; say how to split it, as split: {{train: 9}}"
        split, rows = data.get("split", {}), row["n_train"]
        if rows and (asked := split.get("train", 0) + split.get("test", 0)) > rows:
            yield f"data.split: {data['dataset']} has {rows} rows, and the split asks for {asked}"
    for metric in [] if spec["study"] or spec["track"] else spec["metrics"]:
        if metric not in able:
            yield f"metrics: {metric} is not known of these data; allowed are {sorted(able)}"
        elif task and TASKS.get(metric, task) != task:
            yield f"metrics: {metric} is for {TASKS[metric]}, and the data are for {task}"


def _of_calls(work: Project, spec: dict[str, Any]) -> Iterator[str]:
    """Where the study or the models of a setting cannot be called as a run does it."""
    if spec["study"]:
        yield from (f"study: {why}" for why in _why_not(_study, **spec["study"]))
    p = work.row(name)["n_features"] if (name := spec["data"].get("dataset")) else None
    p = spec["data"].get("p") or p or math.inf
    p += p * (p + 1) / 2 if spec["data"].get("products") else 0
    wrong = {label: _why_not(_models, spec, label, p) for label in spec["methods"]}
    for label, reasons in wrong.items():
        file = work.files.get(f"{spec['experiment']}.{label}")
        yield from (f"methods.{label}{f' of {file}' if file else ''}: {why}" for why in reasons)
    if any(wrong.values()):
        return
    classes = [find_class(method["class"]) for method in spec["methods"].values()]
    found = [each for cls in classes for each in inspect.signature(cls).parameters.values()]
    known = {each.name for each in found}
    if not any(each.kind == each.VAR_KEYWORD for each in found):
        for key in spec["tune"].get("grid", {}).keys() - known:
            yield f"tune.grid: no method has the parameter {key!r}{alike(key, known)}"


def _study(function: str, **given: Any) -> None:
    """Hold a study against its signature, and find the classes of methods that it is given."""
    inspect.signature(find_class(function)).bind(*(None,) * 3, **given)
    for name in identity.classes(given):
        find_class(name)


def _models(spec: dict[str, Any], label: str, p: float) -> None:
    """Hold all models of a method against their signature, with what a run fills in.

    `p` is the number of columns.
    """
    method = spec["methods"][label]
    known = inspect.signature(find_class(method["class"])).parameters
    tried = {key: values[0] for key, values in spec["tune"].get("grid", {}).items() if key in known}
    filled = dict.fromkeys(("random_state", "n_passes", "maturity", "n_features", "design"), 1)
    filled |= {"k": spec["data"]["k"]} if "k" in spec["data"] else {}
    one = spec | {"methods": {label: method | tried}} | ({"sweep": {}} if spec["study"] else {})
    for cls, own in models_of(one, **filled).values():
        if not spec["study"]:  # which makes its models itself, with parameters of its own
            inspect.signature(cls).bind(**own)
            if isinstance(own.get("k"), int) and own["k"] > p:  # not a criterion, as ebic
                raise ValueError(f"k={own['k']} is more than the {p:.0f} columns of the data")


def _of_numbers(work: Project, entry: Entry) -> Iterator[str]:
    """Where printed numbers do not say, once each, of which cell they are."""
    file, source = work.published(entry.name), work.source(entry.name)
    table = pd.read_csv(work.root / file, dtype=str, keep_default_na=False)
    needed = {"metric", "value", "note"} | (set() if source.spec["study"] else {"method"})
    known = {axis: {*map(str, values)} for axis, values in source.values.items()}
    for column in needed - {*table} | {*table} - needed - known.keys() - {"method"}:
        yield f"{file}: the column {column!r} is missing, or none of an axis of the entry"
    # What a study measures is known to its function only; orders of growth are words.
    if entry.spec["notebook"] != "complexities":
        numbers = table.get("value", pd.Series(dtype=str)).replace("", "0")
        if len(words := numbers[~np.isfinite(pd.to_numeric(numbers, errors="coerce"))]):
            yield f"{file}: value {words.iloc[0]!r} is no number"
        if not source.spec["study"]:
            known |= {"method": {*source.spec["methods"]}}
            known |= {"metric": {*source.spec["metrics"], "time_s"}}
    for column in known.keys() & {*table}:
        if wrong := {*table[column]} - known[column]:
            yield f"{file}: {column} {sorted(wrong)} is none of {sorted(known[column])}"
    cells = table.drop(columns=["value", "note"], errors="ignore")
    for cell in cells[cells.duplicated()].to_numpy():
        yield f"{file}: several lines are of the cell {', '.join(cell)}"
