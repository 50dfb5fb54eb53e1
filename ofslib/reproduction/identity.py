"""What a result is: some rows, one method, and the versions of the code that makes its numbers.

All functions work in the root of the project.
"""

import ast
import hashlib
import importlib.metadata
import importlib.util
import json
import os
from collections.abc import Iterator, Mapping
from functools import lru_cache
from modulefinder import ModuleFinder
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from ofslib.datasets.registry import splits
from ofslib.reproduction import records

VERSIONS = Path("config/versions.yaml")
# What names a setting, or says how often it is run: no value depends on it.
_NOT_OF_A_VALUE = {"experiment", "name", "asked", "replicates", "first", "parts", "methods"}
# Keys of a method that change no value; `sweep` does, and stands in the key by itself.
_NOT_OF_A_METHOD = {"replicates", "timed", "sweep"}
# The rows of what should be learned, beside those of models that are watched while they learn.
TRUTH = "truth"


class UnknownVersion(LookupError):
    """config/versions.yaml has no line for a part of ofslib, or is wrong."""


class Result(NamedTuple):
    """What one method gives on the rows of a setting: the unit that is stored.

    Its key depends on everything that its values depend on, but not on the number of replicates.
    It is None while the checksum of the data set is not known.
    """

    key: str | None
    made_of: dict[str, Any]
    part: int  # place of its setting among the parts of the run
    label: str | None  # of the method; None: a study
    first: int  # the first replicate
    end: int  # the one after the last


def results(spec: Mapping[str, Any], versioned: bool = True) -> list[Result]:
    """The results that a run consists of.

    Parameters
    ----------
    spec : mapping
        As `entries.Setting.spec`.
    versioned : bool, default=True
        Whether keys depend on the versions; if not, they say which results are alike.
    """
    found = []
    for place, part in enumerate(spec.get("parts", [spec])):
        first, end = spec.get("first", 0), min(spec["replicates"], part["replicates"])
        labels = [None] if part["study"] else [*part["methods"]]
        # Only a design that changes has rows of its own, so that they are looked for there alone.
        labels = [TRUTH] * ("every" in part["track"] and "level" not in part["track"]) + labels
        for label in labels:
            method = part["methods"].get(label, {})
            last = min(end, method.get("replicates", end))
            if last > first:
                made_of, known = _made_of(part, label, method, versioned)
                key = digest(made_of) if known else None
                found.append(Result(key, made_of, place, label, first, last))
    return found


def canonical(spec: Mapping[str, Any]) -> dict[str, Any]:
    """A specification with its keys in order: no result depends on how an entry is written."""
    return json.loads(json.dumps(spec, sort_keys=True))


def digest(made_of: Mapping[str, Any]) -> str:
    """The key of a result."""
    # As text, as seeds are drawn from it: 1 and 1.0 are two settings.
    return hashlib.sha256(json.dumps(made_of, sort_keys=True).encode()).hexdigest()[:24]


def _made_of(part, label, method, versioned) -> tuple[dict[str, Any], bool]:
    """What the values of a result depend on, and whether all of it is known."""
    data, left_out = part["data"], set(_NOT_OF_A_VALUE)
    # Limits of a scale count where they can limit something.
    left_out |= {"run_values"} if "dataset" not in data else set()
    left_out |= {"run_values"} if part["passes"] == 1 and not part["study"] else set()
    left_out |= {"tune_values", "tune_points"} if not part["tune"] else set()
    left_out |= set() if part["study"] else {"axes", "sweep"}
    made_of = {name: value for name, value in part.items() if name not in left_out}
    if part["study"]:
        made_of["methods"] = {name: _plain(spec) for name, spec in part["methods"].items()}
    elif label != TRUTH:
        made_of["method"] = _plain(method)
        made_of["sweep"] = method.get("sweep", part["sweep"])
    made_of["versions"] = dict(_versions(part, method)) if versioned else {}
    known = True
    if dataset := data.get("dataset"):
        made_of["files"] = checksums(dataset)
        made_of["row"] = records.row_digest(dataset)
        known = made_of["files"] is not None
    return json.loads(json.dumps(made_of)), known


def _plain(method: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in method.items() if name not in _NOT_OF_A_METHOD}


# -------------------------------------------------- versions


def _versions(part: Mapping[str, Any], method: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """The versions of all that takes part in a result, by section and name."""
    data, named = part["data"], [("rows", "experiment")]
    named += [("rows", data["simulate"])] if "simulate" in data else []
    if "dataset" in data:
        named.append(("rows", records.row(data["dataset"])["reader"]))
    named += [("rows", name) for name in ("averages", "split") if name in data]
    metrics = [] if part["study"] else ["tracking"] if part["track"] else part["metrics"]
    # A time is measured: it is no number that code decides.
    named += [("metrics", metric) for metric in metrics if metric != "time_s"]
    named += [("methods", method["class"])] if method else []
    if part["study"]:
        named.append(("studies", part["study"]["function"]))
        named += [("methods", name) for name in classes([part["study"], part["methods"]])]
    for section, name in named:
        yield f"{section}: {name}", version(section, name)


def version(section: str, name: str) -> int | str:
    """The version of a part of ofslib; of a user's module the digest of its code.

    Raises
    ------
    UnknownVersion
        If config/versions.yaml has no line for it.
    """
    module = name.partition(":")[0]
    if ":" in name and module.partition(".")[0] != "ofslib":
        return code_of(module)
    known = versions()
    if name not in known.get(section, {}):
        raise UnknownVersion(f"{VERSIONS}: add a line `{name}: 1` to {section}")
    return known[section][name]


def versions() -> dict[str, dict[str, int]]:
    """What config/versions.yaml says."""
    return _read_versions(VERSIONS.absolute(), os.stat(VERSIONS).st_mtime_ns)


@lru_cache(maxsize=1)
def _read_versions(file: Path, _changed: int) -> dict[str, dict[str, int]]:
    try:
        found = yaml.safe_load(file.read_text(encoding="utf-8"))
        if all(type(number) is int for names in found.values() for number in names.values()):
            return found
    except (yaml.YAMLError, AttributeError) as error:
        raise UnknownVersion(f"{VERSIONS}: {error}") from error
    raise UnknownVersion(f"{VERSIONS}: a version must be a whole number")


def classes(given: Any) -> list[str]:
    """The classes of the methods that stand anywhere in what a study is given."""
    found = []
    if isinstance(given, Mapping):
        found += [given["class"]] if isinstance(given.get("class"), str) else []
        given = list(given.values())
    if isinstance(given, list):
        found += [name for value in given for name in classes(value)]
    return sorted(set(found))


def code_of(module: str) -> str:
    """What a module outside ofslib is: the version of its package, or the digest of its code.

    Of a module that is not installed as a package the modules that it imports count too, if they
    are in its own folder or below.
    """
    file = home(module)
    if "site-packages" in file.parts:
        package = module.partition(".")[0]
        names = importlib.metadata.packages_distributions().get(package, [package])
        return f"{names[0]} {importlib.metadata.version(names[0])}"
    finder = ModuleFinder([str(file.parents[module.count(".") + (file.name == "__init__.py")])])
    finder.import_hook(module)  # which compiles modules and runs none
    files = sorted(each.__file__ for each in finder.modules.values() if each.__file__)
    code = [ast.dump(ast.parse(Path(each).read_text(encoding="utf-8"))) for each in files]
    return hashlib.sha256("".join(code).encode()).hexdigest()[:16]


def home(module: str) -> Path:
    """The file of a module outside ofslib; LookupError if there is none."""
    try:
        spec = importlib.util.find_spec(module)
    except ModuleNotFoundError:
        spec = None
    if not (spec and spec.origin):
        raise LookupError(f"no module {module!r} can be imported")
    return Path(spec.origin)


# -------------------------------------------------- data sets


def checksums(dataset: str) -> list[str] | None:
    """What pins the files of a data set: the table of data sets, else the record of what came.

    None where neither does.
    """
    row = records.row(dataset)
    pinned = [row[f"{split}_checksum"].split() for split in splits(row)]
    if all(pinned):
        return [checksum for each in pinned for checksum in each]
    return [f"sha256:{digest}" for _, digest in sorted(records.sums(dataset).items())] or None
