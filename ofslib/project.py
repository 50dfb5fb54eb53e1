"""The reproduction as configured: entries, their settings, and where their files are.

An *entry* of config/experiments is one table or figure. Its grid and its readings multiply to
*settings*; one setting is one run of notebooks/run.ipynb and one file of results. The Snakefile
and the notebooks both read the project through this module, which imports no numba.
"""

import ast
import csv
import importlib.util
import itertools
import math
import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import jsonschema
import yaml

PACKAGE = Path(__file__).parent
# What is left of an entry's keys, if it does not give them.
_DEFAULTS = {
    "data": {},
    "grid": {},
    "readings": {},
    "methods": {},
    "sweep": {},
    "tune": {},
    "passes": 1,
    "metrics": [],
    "replicates": 1,
    "test_rows": 1000,
    "time": False,
    "parameters": {},
    "needs": [],
}
_AS_GIVEN = {None: {}}


class ConfigurationError(Exception):
    """A configuration file says something that is not allowed."""


@dataclass(frozen=True)
class Setting:
    """One grid point of an entry: one run, one file of results."""

    name: str
    spec: dict[str, Any]  # what experiment.run takes
    skipped: str = ""  # why it is not run at this scale

    @property
    def dataset(self) -> str | None:
        """Name of the real data set that the setting reads, if any."""
        return self.spec["data"].get("dataset")

    @property
    def mem_mb(self) -> int:
        """Memory to reserve for the run."""
        blocks = 8 * self.spec["data"].get("p", 0) * 1000 / 2**20
        return 1500 if self.dataset else math.ceil(500 + 5 * blocks)

    @property
    def classes(self) -> list[str]:
        """The classes of its methods, as configured."""
        return sorted({method["class"] for method in self.spec["methods"].values()})


@dataclass(frozen=True)
class Entry:
    """One table or figure of a paper."""

    name: str
    spec: dict[str, Any]
    scale: dict[str, Any]
    seed: int

    @cached_property
    def settings(self) -> list[Setting]:
        """All grid points, in the order of the configuration."""
        grids = self.spec["grid"]
        points = [
            p for grid in (grids if isinstance(grids, list) else [grids]) for p in _grid(grid)
        ]
        if not self.spec["methods"]:
            return []
        return [
            self._setting(reading, change, point)
            for reading, change in (self.spec["readings"] or _AS_GIVEN).items()
            for point in points
        ]

    @property
    def to_run(self) -> list[Setting]:
        """The settings that this scale runs."""
        return [setting for setting in self.settings if not setting.skipped]

    @property
    def timed(self) -> list[Setting]:
        """Settings whose times are measured: those of the reading named by `time`."""
        chosen = [s for s in self.to_run if s.spec["axes"].get("reading") == self.spec["time"]]
        return [self._timed(s) for s in chosen if self._size(s.spec) <= self.scale["timing_values"]]

    def _timed(self, setting: Setting) -> Setting:
        change = {"metrics": ["time_s"], "replicates": self.scale["timing_repeats"]}
        return Setting(setting.name, setting.spec | change)

    @property
    def outputs(self) -> list[str]:
        """Endings of the files that its notebook makes, after the name of the entry."""
        table = [".csv", ".tex"]
        if self.spec["form"] == "figure":
            return [".csv", ".svg", ".pdf"]
        return table + [f"_time{end}" for end in table] if self.timed else table

    def _setting(self, reading: str | None, change: dict, point: dict[str, Any]) -> Setting:
        axes = point if reading is None else {"reading": reading, **point}
        data = point | _resolved(self.spec["data"] | change.get("data", {}), axes)
        methods = {
            label: _resolved(method | change.get("methods", {}).get(label, {}), axes)
            for label, method in self.spec["methods"].items()
        }
        spec = {
            "experiment": self.name,
            "name": _slug(axes.values()),
            "axes": axes,
            "data": data,
            "methods": methods,
            "seed": self.seed,
            **{key: self.spec[key] for key in ("sweep", "tune", "passes", "metrics", "test_rows")},
            **{key: self.scale[key] for key in ("run_values", "tune_values")},
        }
        size, skipped = self._size(spec), ""
        spec["replicates"] = min(self.spec["replicates"], self.scale["replicates"])
        if size and self.scale["values"] is not None:
            spec["replicates"] = min(spec["replicates"], int(self.scale["values"] / size))
            if spec["replicates"] < 2:
                skipped = "not run at this scale"
        return Setting(spec["name"], spec, skipped)

    @staticmethod
    def _size(spec: dict[str, Any]) -> int:
        """Numbers that one replicate generates."""
        return spec["data"].get("n", 0) * spec["data"].get("p", 0)


@dataclass(frozen=True)
class Project:
    """Everything that the configuration in `root` names, at one scale."""

    root: Path
    scale: str
    real_data: str
    seed: int
    entries: dict[str, Entry] = field(repr=False)

    def result(self, entry: str, setting: str, kind: str = "") -> Path:
        """File of results of a setting; `kind` is "" or "time"."""
        return Path("results", self.scale, entry, setting + (f".{kind}" if kind else "") + ".csv")

    def setting(self, entry: str, name: str, kind: str = "") -> Setting:
        """A setting by its name; kind "time" for what measures its learning times."""
        settings = self.entries[entry].timed if kind else self.entries[entry].to_run
        return next(s for s in settings if s.name == name)

    def inputs(self, entry: str, kind: str = "") -> list[str]:
        """Files of results that the notebook of an entry reads."""
        source = self.source(entry)
        settings = source.timed if kind else source.to_run
        return [str(self.result(source.name, s.name, kind)) for s in settings]

    def source(self, entry: str) -> Entry:
        """The entry whose runs an entry shows: itself, or the one that it names in `results`."""
        return self.entries[self.entries[entry].spec.get("results", entry)]

    def published(self, entry: str) -> str | None:
        """File of the numbers that the paper prints, if any."""
        name = self.entries[entry].spec.get("published")
        return f"config/published/{name}.csv" if name else None

    def figures(self, entry: str) -> list[str]:
        """Files that the notebook of an entry makes."""
        return [f"figures/{entry}{end}" for end in self.entries[entry].outputs]

    def row(self, dataset: str) -> dict[str, str]:
        """What config/datasets.csv says of a data set."""
        with (self.root / "config/datasets.csv").open(encoding="utf-8", newline="") as table:
            rows = {row["name"]: row for row in csv.DictReader(table)}
        if dataset not in rows:
            raise ConfigurationError(f"config/datasets.csv has no {dataset!r}, only {list(rows)}")
        return rows[dataset]

    @property
    def datasets(self) -> list[str]:
        """Real data sets that any entry reads."""
        used = {s.dataset for e in self.entries.values() for s in e.to_run if s.dataset}
        return sorted(used)


def load(root: str | os.PathLike = ".", **changes: Any) -> Project:
    """Read and check the configuration below `root`; `changes` override config.yaml.

    Raises
    ------
    ConfigurationError
        If a file has a key or a value that its schema does not allow; names both.
    """
    root = Path(root)
    given = {key: value for key, value in changes.items() if value is not None}
    config = _read(root, "config/config.yaml", "config") | given
    _check(root, config, "config", "config/config.yaml with its changes")
    scales = _read(root, "config/scales.yaml", "scales")
    if config["scale"] not in scales:
        raise ConfigurationError(f"scale={config['scale']!r} must be one of {sorted(scales)}")
    entries = {}
    for file in sorted((root / "config/experiments").glob("*.yaml")):
        for name, spec in _read(root, f"config/experiments/{file.name}", "entries").items():
            if name in entries:
                raise ConfigurationError(f"{file.name}: entry {name} is there twice")
            entries[name] = Entry(name, _DEFAULTS | spec, scales[config["scale"]], config["seed"])
    for name, entry in entries.items():
        if entry.spec.get("results", name) not in entries:
            raise ConfigurationError(f"{name}: results names no entry: {entry.spec['results']}")
    return Project(root, config["scale"], config["real_data"], config["seed"], entries)


def find_root(start: str | os.PathLike = ".") -> Path:
    """The project folder at or above `start`: the one that holds config/config.yaml."""
    start = Path(start).resolve()
    for folder in (start, *start.parents):
        if (folder / "config/config.yaml").is_file():
            return folder
    raise ConfigurationError(f"no config/config.yaml in {start} or above: open the project folder")


def _read(root: Path, file: str, schema: str) -> dict[str, Any]:
    try:
        content = yaml.safe_load((root / file).read_text(encoding="utf-8"))
    except yaml.YAMLError as error:
        raise ConfigurationError(f"{file} is no YAML: {error}") from error
    _check(root, content, schema, file)
    return content


def _check(root: Path, content: Any, schema: str, file: str) -> None:
    rules = yaml.safe_load((root / f"workflow/schemas/{schema}.schema.yaml").read_text("utf-8"))
    error = jsonschema.exceptions.best_match(
        jsonschema.Draft202012Validator(rules).iter_errors(content)
    )
    if error:
        place = ".".join(map(str, error.absolute_path)) or "top level"
        raise ConfigurationError(f"{file}, {place}: {error.message}")


def _grid(grid: dict[str, Any]) -> Iterator[dict[str, Any]]:
    values = [value if isinstance(value, list) else [value] for value in grid.values()]
    for point in itertools.product(*values):
        yield dict(zip(grid, point, strict=True))


def _resolved(spec: dict[str, Any], axes: dict[str, Any]) -> dict[str, Any]:
    """Replace {by: axis, value: ...} by what holds at these axes."""
    result = {}
    for key, value in spec.items():
        if isinstance(value, dict) and "by" in value:
            at = axes[value["by"]]
            if at not in value:
                raise ConfigurationError(f"{key} has no value for {value['by']}={at}")
            value = value[at]
        result[key] = value
    return result


def _slug(values: Iterable[Any]) -> str:
    return "_".join(re.sub(r"[^A-Za-z0-9]+", "-", str(value)) for value in values)


# --- which sources a run depends on


def sources(*names: str) -> list[str]:
    """Files of ofslib, and of the user, that the named modules or classes are made of.

    A name is "experiment" (a module of ofslib), "SFSARegressor" (a class of ofslib) or
    "package.module:Class" (a user's class). Imports are followed by reading, not by running.
    """
    todo, found = [file for name in names for file in _files(name)], set()
    while todo:
        file = todo.pop()
        if file not in found:
            found.add(file)
            todo += _imports(file)
    return sorted(os.path.relpath(file) for file in found)


def _files(name: str) -> list[Path]:
    if ":" in name:
        spec = importlib.util.find_spec(name.partition(":")[0])
        return [Path(spec.origin)] if spec and spec.origin else []
    if (PACKAGE / f"{name}.py").exists():
        return [PACKAGE / f"{name}.py"]
    from ofslib import _home_of_estimators

    homes = _home_of_estimators()
    if name not in homes:
        raise ConfigurationError(f"class {name!r} is not in ofslib; it has {sorted(homes)}")
    return [PACKAGE / "algorithms" / f"{homes[name].rpartition('.')[2]}.py"]


@cache
def _imports(file: Path) -> list[Path]:
    """Modules of ofslib that a file imports by name."""
    modules = []
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("ofslib"):
            modules += [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        elif isinstance(node, ast.Import):
            modules += [alias.name for alias in node.names]
    paths = [PACKAGE.parent / f"{module.replace('.', '/')}.py" for module in modules]
    return [path for path in paths if path.is_file() and PACKAGE in path.parents]
