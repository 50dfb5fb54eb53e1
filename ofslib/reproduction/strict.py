"""Faults of a configuration that are known before a run: all of them, in one message.

`project.load` checks what the files say. What they name is imported here, by one process of its
own: a module that crashes or hangs harms nothing, and the parameters of its classes are known.
"""

import difflib
import inspect
import json
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator, Set
from pathlib import Path
from typing import Any, NamedTuple

from ofslib import ESTIMATORS
from ofslib.metrics import METRICS, TASKS
from ofslib.reproduction import identity
from ofslib.reproduction.entries import ConfigurationError, Entry, Setting
from ofslib.reproduction.experiment import EXPECTED
from ofslib.reproduction.methods import ABOUT_THE_METHOD, class_of, find_class
from ofslib.reproduction.project import Project
from ofslib.simulate import DESIGNS

LIMIT_S = 120  # that importing all classes may take
# Parameters that a run fills in where a class has them.
_IN_MEMORY = {"n_passes", "random_state"}
_IN_BLOCKS = {"design", "k", "maturity", "n_features", "random_state"}


class _Use(NamedTuple):
    """A place of the configuration that names a class, a study or a reader."""

    place: str
    kind: str
    name: str
    given: dict[str, str] = {}  # parameter -> the key that gives it
    filled: Set[str] | None = None  # parameters that a run fills in; None: that is not known


def check(work: Project) -> None:
    """Raise ConfigurationError if a run of the project would fail for what is known before it.

    Imports every class, study and reader that the configuration names, in one child process.

    Raises
    ------
    ConfigurationError
        All faults, one a line: the file, the entry, the key, and what is wrong with it.
    """
    uses = [*_uses(work)]
    members = _examined(work.root, [*dict.fromkeys((use.kind, use.name) for use in uses)])
    faults = [fault for use in uses for fault in _member_faults(use, members)]
    faults += _notebook_faults(work.root, "notebooks/run.ipynb")
    for name, entry in work.entries.items():
        found = [("notebook", why) for why in _notebook_faults(work.root, work.notebook(name))]
        found += _tuning_faults(entry, members)
        for setting in entry.settings:
            if not setting.spec["study"]:
                found += [*_metric_faults(work, setting), *_k_faults(work, setting)]
            try:
                identity.results(setting.spec)
            except identity.UnknownVersion as error:
                found.append(("version", str(error)))
            except LookupError:
                pass  # of a module that cannot be imported, which is told above
        faults += [f"{work.files[name]}, {name}, {key}: {why}" for key, why in found]
    if faults:
        raise ConfigurationError("\n".join(dict.fromkeys(faults)))


# -------------------------------------------------- what is named, and its parameters


def _uses(work: Project) -> Iterator[_Use]:
    for name, row in work.registry.items():
        if ":" in row["reader"]:
            yield _Use(f"config/datasets.csv, {name}, reader", "reader", row["reader"])
    for entry in work.entries.values():
        start = f"{work.files[entry.name]}, {entry.name}"
        # Added methods stand in a file of their own.
        added = {label: work.files.get(f"{entry.name}.{label}") for label in entry.spec["methods"]}
        places = {
            m: f"{file}, {m}" if file else f"{start}, methods.{m}" for m, file in added.items()
        }
        for label, method in entry.spec["methods"].items():  # also what a scale leaves out
            yield _Use(places[label], "class", method["class"])
        for setting in entry.settings:
            if study := setting.spec["study"]:
                yield from (
                    _Use(f"{start}, study", "class", name) for name in identity.classes(study)
                )
                given = {key: key for key in study if key != "function"}
                yield _Use(f"{start}, study", "study", study["function"], given, set())
            for label, method in setting.spec["methods"].items():
                yield _Use(places[label], "class", method["class"], *_given(setting, method))


def _given(setting: Setting, method: dict[str, Any]) -> tuple[dict[str, str], Set[str] | None]:
    """Parameters that a method is given, by what; and those that a run fills in."""
    spec, given = setting.spec, {key: key for key in method if key not in ABOUT_THE_METHOD}
    if spec["study"]:
        return given, None
    given |= {key: f"sweep.{key}" for key in method.get("sweep", spec["sweep"])}
    given |= {key: f"at.{key}" for key in method.get("at", ())}
    in_memory = setting.dataset and "split" not in spec["data"]
    filled = _IN_MEMORY if in_memory else _IN_BLOCKS
    return given, filled | spec["tune"].get("grid", {}).keys()


def _member_faults(use: _Use, members: dict[tuple[str, str], dict]) -> Iterator[str]:
    member = members.get((use.kind, use.name), {})
    if "fault" in member:
        key = {"class": ".class", "study": ".function", "reader": ""}[use.kind]
        yield f"{use.place}{key}: {member['fault']}"
    if "parameters" not in member:
        return
    known = {*member["parameters"]}
    for key in [] if member["takes_all"] else use.given.keys() - known:
        why = f"{use.name} has no parameter {key!r}{_alike(key, known)}"
        yield f"{use.place}.{use.given[key]}: {why}"
    if use.filled is not None:
        for key in sorted({*member["required"]} - use.given.keys() - use.filled):
            yield f"{use.place}: {use.name} needs the parameter {key!r}, which nothing gives"


def _tuning_faults(entry: Entry, members: dict) -> Iterator[tuple[str, str]]:
    found = [members.get(("class", m["class"]), {}) for m in entry.spec["methods"].values()]
    if any(member.get("takes_all", True) for member in found):
        return
    known = {name for member in found for name in member["parameters"]}
    readings = entry.spec["readings"].items()
    tunes = {f"readings.{name}.tune": change.get("tune", {}) for name, change in readings}
    tunes["tune"] = entry.spec["tune"]
    for place, tune in tunes.items():
        for part in ("grid", "at"):
            for key in tune.get(part, {}).keys() - known:
                yield f"{place}.{part}.{key}", f"no method has it as parameter{_alike(key, known)}"


def _alike(name: str, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(name, known, 1)
    return f"; did you mean {near[0]!r}?" if near else f"; known are {sorted(known)}"


# -------------------------------------------------- what the data and the notebooks allow


def _notebook_faults(root: Path, file: str) -> Iterator[str]:
    try:
        cells = json.loads((root / file).read_text(encoding="utf-8"))["cells"]
        tagged = any("parameters" in cell["metadata"].get("tags", ()) for cell in cells)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        tagged = False
    if not tagged:
        yield f"{file} is no notebook with a cell of the tag `parameters`; tag its first code cell"


def _metric_faults(work: Project, setting: Setting) -> Iterator[tuple[str, str]]:
    spec, data, row = setting.spec, setting.spec["data"], work.row_of(setting)
    design = DESIGNS.get(data.get("simulate"))
    if spec["track"] or not (design or row):
        return
    able = {*METRICS, "time_s"}
    if row:
        able -= {"DR"} if "split" in data else {"DR", "time_s"}
    elif spec["test_rows"] is None:
        able = {*EXPECTED, "time_s"}
    task = row["task"] if row else data.get("task", getattr(design, "task", None))
    for metric in spec["metrics"]:
        if metric not in able:
            what = "of a data set" if row else "without test rows"
            yield "metrics", f"{metric} is not known {what}; allowed are {sorted(able)}"
        elif task and TASKS.get(metric, task) != task:
            yield "metrics", f"{metric} is for {TASKS[metric]}, and the data are for {task}"


def _k_faults(work: Project, setting: Setting) -> Iterator[tuple[str, str]]:
    """Where k is above the number of columns."""
    spec, data, row = setting.spec, setting.spec["data"], work.row_of(setting)
    usual = getattr(DESIGNS.get(data.get("simulate")), "p", None)
    p = row["n_features"] if row else data.get("p", usual)
    if p and data.get("products"):
        p += p * (p + 1) // 2
    places = {"data": data, "sweep": spec["sweep"]}
    places |= {f"tune.{part}": given for part, given in spec["tune"].items()}
    for label, method in spec["methods"].items():
        places |= {f"methods.{label}": method}
        places |= {f"methods.{label}.{part}": method.get(part, {}) for part in ("sweep", "at")}
    for place, given in places.items():
        k = given.get("k") if isinstance(given, dict) else None
        for value in k if isinstance(k, list) else [k]:
            if p and isinstance(value, int) and value > p:
                yield f"{place}.k", f"k={value} is above the {p} columns of the data"


# -------------------------------------------------- the child process


def _examined(root: Path, asked: list[tuple[str, str]]) -> dict[tuple[str, str], dict]:
    """What a child process finds out of each kind and name."""
    # A user's own modules may stand beside the Snakefile.
    options = {"cwd": root, "env": os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}}
    command, given = [sys.executable, "-m", __name__], json.dumps(asked).encode()
    try:
        child = subprocess.run(
            command, input=given, capture_output=True, timeout=LIMIT_S, **options
        )
        said, end = child.stdout, f"ends Python with status {child.returncode}"
    except subprocess.TimeoutExpired as late:
        said, end = late.stdout or b"", f"takes more than {LIMIT_S} s"
    told = [json.loads(line) for line in said.splitlines()]
    if len(told) < len(asked):
        why = f"importing {asked[len(told)][1]!r} {end}; what comes after it was not looked at"
        told.append({"fault": why})
    return dict(zip(asked, told, strict=False))


def _main() -> None:
    # What a module prints is no answer.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for kind, name in json.load(sys.stdin):
        try:
            told = _look(kind, name)
        except (Exception, SystemExit) as error:
            told = {"fault": f"{name!r} cannot be used ({type(error).__name__}: {error})"}
        print(json.dumps(told), file=answers, flush=True)


def _look(kind: str, name: str) -> dict[str, Any]:
    """The parameters of a class or a function, or why there are none."""
    module, _, member = name.rpartition(":")
    place, _, own = name.rpartition(".")
    classes = [known for names in ESTIMATORS.values() for known in names]
    if module.partition(".")[0] in sys.stdlib_module_names:
        return {"fault": f"{module!r} is a part of Python; give a module of yours another name"}
    if not module and member not in classes:
        hint = f"; one of your own is written {place}:{own}" if place else _alike(name, classes)
        return {"fault": f"ofslib has no {name!r}{hint}"}
    found = find_class(name)
    if kind == "class":
        class_of({"class": name})
    elif not callable(found):
        return {"fault": f"{name!r} is no function"}
    known = inspect.signature(found).parameters.values()
    named = [p for p in known if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    named = named[3:] if kind == "study" else named  # after the setting, the seeds and the data
    return {
        "parameters": [p.name for p in named],
        "required": [p.name for p in named if p.default is p.empty],
        "takes_all": any(p.kind == p.VAR_KEYWORD for p in known),
    }


if __name__ == "__main__":
    _main()
