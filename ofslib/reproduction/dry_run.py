"""What a configuration names is imported, and models are asked for as a run does it.

Run by `strict.check`: prints each name before it is imported, and then a list of what is wrong.
"""

import inspect
import json
import os
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from ofslib import ESTIMATORS
from ofslib.metrics import METRICS, TASKS
from ofslib.reproduction import identity, project
from ofslib.reproduction.configuration import alike
from ofslib.reproduction.entries import Entry, Setting
from ofslib.reproduction.experiment import EXPECTED
from ofslib.reproduction.methods import class_of, find_class, models_of
from ofslib.simulate import DESIGNS


def _main(changes: str) -> None:
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what a module prints is no answer
    work = project.load(**json.loads(changes))
    named, wrong = [*_named(work)], {}
    for _, kind, name in named:
        if name not in wrong:
            print(name, file=answers, flush=True)
            wrong[name] = _why_not(kind, name)
    faults = [f"{place}: {wrong[name]}" for place, _, name in named if wrong[name]]
    faults += _of_notebook("notebooks/run.ipynb")
    usable = {name for name in wrong if not wrong[name]}
    for entry in work.entries.values():
        start = f"{work.files[entry.name]}, {entry.name}, "
        faults += [f"{start}notebook: {why}" for why in _of_notebook(work.notebook(entry.name))]
        faults += [start + why for why in _of_tuning(entry, usable)]
        for setting in entry.settings:
            faults += [start + why for why in _of_setting(work, setting, usable)]
        for label, place in _places(work, entry).items():
            own = [s for s in entry.settings if label in s.spec["methods"]]
            if entry.spec["methods"][label]["class"] in usable:
                faults += [f"{place}{why}" for s in own for why in _of_method(work, s, label)]
    json.dump(list(dict.fromkeys(faults)), answers)


def _places(work: project.Project, entry: Entry) -> dict[str, str]:
    """Where each method of an entry stands: added ones in a file of their own."""
    start = f"{work.files[entry.name]}, {entry.name}, methods."
    files = {label: work.files.get(f"{entry.name}.{label}") for label in entry.spec["methods"]}
    return {label: f"{file}, {label}" if file else start + label for label, file in files.items()}


def _named(work: project.Project) -> Iterator[tuple[str, str, str]]:
    """What is named, where, and whether as a class, a study or a reader."""
    for name, row in work.registry.items():
        if ":" in row["reader"]:
            yield f"config/datasets.csv, {name}, reader", "reader", row["reader"]
    for entry in work.entries.values():
        for label, place in _places(work, entry).items():
            yield f"{place}.class", "class", entry.spec["methods"][label]["class"]
        start = f"{work.files[entry.name]}, {entry.name}, study"
        for study in (setting.spec["study"] for setting in entry.settings):
            if study:
                yield f"{start}.function", "study", study["function"]
                yield from ((f"{start}.class", "class", name) for name in identity.classes(study))


def _why_not(kind: str, name: str) -> str:
    """Why what is named cannot be used, if so."""
    module, _, member = name.rpartition(":")
    place, _, own = name.rpartition(".")
    classes = [known for names in ESTIMATORS.values() for known in names]
    if module.partition(".")[0] in sys.stdlib_module_names:
        return f"{module!r} is a part of Python; give a module of yours another name"
    if not module and member not in classes:
        hint = f"; one of your own is written {place}:{own}" if place else alike(name, classes)
        return f"ofslib has no {name!r}{hint}"
    try:
        found = class_of({"class": name}) if kind == "class" else find_class(name)
    except (Exception, SystemExit) as error:
        return f"{name!r} cannot be used ({type(error).__name__}: {error})"
    return "" if kind == "class" or callable(found) else f"{name!r} is no function"


def _of_notebook(file: str) -> list[str]:
    text = Path(file).read_text(encoding="utf-8", errors="replace")
    if re.search(r'"tags": *\[[^]]*"parameters"', text):
        return []
    return [f"{file} is no notebook with a cell of the tag `parameters`; tag its first code cell"]


def _of_tuning(entry: Entry, usable: set[str]) -> Iterator[str]:
    classes = {method["class"] for method in entry.spec["methods"].values()} & usable
    found = [p for c in classes for p in inspect.signature(find_class(c)).parameters.values()]
    if any(p.kind == p.VAR_KEYWORD for p in found):
        return
    known, readings = {p.name for p in found}, entry.spec["readings"].values()
    for tune in [entry.spec["tune"], *(change.get("tune", {}) for change in readings)]:
        for key in tune.get("grid", {}).keys() - known:
            yield f"tune.grid: no method has the parameter {key!r}{alike(key, known)}"


def _of_setting(work: project.Project, setting: Setting, usable: set[str]) -> Iterator[str]:
    spec, data, row = setting.spec, setting.spec["data"], work.row_of(setting)
    design = DESIGNS.get(data.get("simulate"))
    if study := spec["study"].get("function"):
        given = {key: value for key, value in spec["study"].items() if key != "function"}
        if study in usable and (why := _not_called(find_class(study), *(None,) * 3, **given)):
            yield f"study: {study}: {why}"
    elif not spec["track"] and (row or design):
        yield from _of_metrics(spec, row, data.get("task", getattr(design, "task", None)))
    used = {*identity.classes([spec["study"], spec["methods"]])} | ({study} if study else set())
    try:
        if used <= usable and not setting.skipped:
            identity.results(spec)
    except identity.UnknownVersion as error:
        yield str(error)


def _of_metrics(spec: dict[str, Any], row: dict | None, task: str | None) -> Iterator[str]:
    able = {*METRICS, "time_s"} if spec["test_rows"] or row else {*EXPECTED, "time_s"}
    if row:
        able, task = able - ({"DR"} if "split" in spec["data"] else {"DR", "time_s"}), row["task"]
    for metric in spec["metrics"]:
        if metric not in able:
            what = "of a data set" if row else "without test rows"
            yield f"metrics: {metric} is not known {what}; allowed are {sorted(able)}"
        elif task and TASKS.get(metric, task) != task:
            yield f"metrics: {metric} is for {TASKS[metric]}, and the data are for {task}"


def _of_method(work: project.Project, setting: Setting, label: str) -> Iterator[str]:
    """Where the models that a run would make of a method cannot be."""
    spec, data, row = setting.spec, setting.spec["data"], work.row_of(setting)
    design, method, tune = DESIGNS.get(data.get("simulate")), spec["methods"][label], spec["tune"]
    p = row["n_features"] if row else data.get("p", getattr(design, "p", None))
    p = p + p * (p + 1) // 2 if p and data.get("products") else p
    filled = {"random_state": 0, "n_passes": 1}
    if design or "split" in data:
        filled = {"random_state": 0, "maturity": 1, "n_features": p, "design": design}
    filled |= {"k": data["k"]} if "k" in data else {}
    known, grid = inspect.signature(find_class(method["class"])).parameters, tune.get("grid", {})
    tried = {name: values[0] for name, values in grid.items() if name in known}
    asked = [spec | {"methods": {label: method | tried}}]
    if tune:
        at = method.get("at", tune.get("at", {}))
        asked += [spec | {"methods": {label: method | tried | at | {"sweep": {}}}}]
    if spec["study"]:
        asked = [spec | {"methods": {label: method | {"sweep": {}}}}]
    try:
        models = [model for each in asked for model in models_of(each, **filled).values()]
    except ValueError as error:
        yield f": {error}"
        return
    for cls, own in models:
        if not spec["study"] and (why := _not_called(cls, **own)):
            yield f": {method['class']}: {why}"
        if p and isinstance(own.get("k"), int) and own["k"] > p:
            yield f".k: k={own['k']} is above the {p} columns of the data"


def _not_called(called: Callable, *known: Any, **given: Any) -> str:
    """Why a class or function cannot be called so."""
    try:
        inspect.signature(called).bind(*known, **given)
    except TypeError as error:
        return str(error)
    return ""


if __name__ == "__main__":
    _main(sys.argv[1])
