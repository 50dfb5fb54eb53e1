"""Entries of config/experiments, and the settings that their grids and readings multiply to."""

import itertools
import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

from ofslib.simulate import DESIGNS, check_kinds

# What is left of an entry's keys, if it does not give them.
DEFAULTS = {
    "data": {},
    "grid": {},
    "explanation": "",
    "readings": {},
    "methods": {},
    "sweep": {},
    "tune": {},
    "track": {},
    "study": {},
    "passes": 1,
    "metrics": [],
    "replicates": 1,
    "test_rows": 1000,
    "time": None,
    "parameters": {},
    "only": {},
    "unavailable": {},  # axis -> value -> why its cells cannot be had
    "weak_baselines": {},
    "discussed": [],
    "time_claims": [],
    # Of the scale that is run: axis, swept parameter, methods -> those run; replicates -> at most;
    # data, study, methods -> what it changes
    "at_scale": {},
    "alone": False,  # whether a run needs the machine to itself
}


# Under `at_scale`, what is no axis.
CHANGED_AT_SCALE = {"methods", "data", "study", "replicates"}

# What a setting may say of the rows of a data set, see `splits.Split`.
RULE = {"split", "products", "standardized"}

NOT_RUN, NOT_TIMED = "not run at this scale", "not timed at this scale"

# Learning from sampled running averages takes about as long as generating so many numbers for each
# entry of their matrix.
AVERAGES_COST = 10

# Numbers that a run of several settings draws at most; its replicates are else divided among runs.
# With 200 penalties, or with averages of 10,000 features, these are half an hour to an hour.
LONGEST = 5e10


class PlainError(Exception):
    """An error whose message says all that helps: a notebook shows it without a traceback."""

    def _render_traceback_(self) -> list[str]:
        return [str(self)]


class ConfigurationError(PlainError):
    """A configuration file says something that is not allowed."""


@dataclass(frozen=True)
class Setting:
    """One grid point of an entry; or several that are run at once, which `spec` has as `parts`."""

    name: str
    spec: dict[str, Any]  # what experiment.run takes
    skipped: str = ""  # why it is not run at this scale

    @property
    def parts(self) -> list[dict[str, Any]]:
        """The specs of all grid points: its own, if it is one."""
        return self.spec.get("parts", [self.spec])

    @property
    def dataset(self) -> str | None:
        """Name of the real data set that the setting reads, if any."""
        return self.spec["data"].get("dataset")

    def mem_mb(self, row: Mapping[str, Any] | None = None) -> int:
        """Memory to reserve for the run; `row` is its data set in the registry."""
        data, MB = self.spec["data"], 2**20
        p = row["n_features"] if row else data.get("p", 0)
        if self.dataset and self.spec["run_values"] is None:
            least = 4500  # ofs Figure 1 on all rows of MNIST took 4.0 GB
        elif "split" in data or p >= 10**6:
            least = 4000  # News20 twice, averages of 4185 columns, or models of a million features
        elif self.dataset:
            least = 2500  # five copies of the rows of MNIST that a limited scale reads
        else:
            paths = 3 * 200 * 8 * p / MB  # methods that learn 200 penalties at once
            squares = 4 * 8 * p**2 / MB if "averages" in data else 0
            least = 500 + 5 * 8 * 1000 * width(data) / MB + paths + squares
        # On webspam's stand-in, of 16.6 million features, models and rows took 11.5 GB.
        return math.ceil(max(least, 800 * p / 10**6))


@dataclass(frozen=True)
class Entry:
    """One table or figure of a paper, at one scale."""

    name: str
    spec: dict[str, Any]
    scale: dict[str, Any]
    seed: int

    @cached_property
    def settings(self) -> list[Setting]:
        """All grid points, in the order of the configuration."""
        if not (self.spec["methods"] or self.spec["study"]):
            return []
        return [
            setting
            for reading, change in (self.spec["readings"] or {None: {}}).items()
            for setting in self._first([self._setting(reading, change, p) for p in self.points])
        ]

    def _first(self, settings: list[Setting]) -> Iterator[Setting]:
        """The settings of a reading; of those that simulate no more than the scale runs."""
        left = self.scale.get("settings") or math.inf
        for setting in settings:
            counts = not (setting.dataset or setting.skipped)
            yield replace(setting, skipped=NOT_RUN) if counts and left == 0 else setting
            left -= counts and left > 0

    @property
    def points(self) -> list[dict[str, Any]]:
        """The points of its grid, or of all its grids."""
        grids = self.spec["grid"] if isinstance(self.spec["grid"], list) else [self.spec["grid"]]
        return [point for grid in grids for point in _multiplied(grid)]

    @cached_property
    def values(self) -> dict[str, list]:
        """Its axes, and the values that each has."""
        values = {"reading": [*self.spec["readings"]]} if self.spec["readings"] else {}
        for axis, value in (pair for point in self.points for pair in point.items()):
            values.setdefault(axis, []).append(value)
        return values

    @cached_property
    def to_run(self) -> list[Setting]:
        """What this scale runs, each with one file of results.

        A setting, or at once those whose rows are the first of one stream; or some replicates of
        these.
        """
        streams: dict[str, list[Setting]] = {}
        for setting in self.settings:
            if not setting.skipped:
                streams.setdefault(_stream(setting.spec), []).append(setting)
        return [run for group in streams.values() for run in _at_once(group)]

    @property
    def timed(self) -> list[Setting]:
        """What measures times: of the `times` those that are not too big."""
        return [setting for setting in self.times if not setting.skipped]

    @property
    def times(self) -> list[Setting]:
        """Settings of the reading `time`, or all if it is true and the entry has no readings.

        With the reason why they are not timed at this scale.
        """
        return [
            self._timing(setting)
            for setting in self.settings
            if self.spec["time"] == setting.spec["axes"].get("reading", True)
        ]

    def _timing(self, setting: Setting) -> Setting:
        """What measures the times of a setting, slow methods once.

        Where averages are sampled they are here too: how long it takes to learn from them does not
        depend on where they came from, and to sum up rows takes a hundred times as long.
        """
        methods = {
            label: method | {"replicates": min(1, method["replicates"])}
            if "replicates" in method
            else method
            for label, method in self._methods(setting.spec["axes"], timed=True).items()
        }
        repeats = self.scale["timing_repeats"]
        changes = {"metrics": ["time_s"], "replicates": repeats, "methods": methods}
        rows = {key: value for key, value in setting.spec["data"].items() if key != "averages"}
        too_big = _size({"data": rows}) > self.scale["timing_values"]
        return Setting(setting.name, setting.spec | changes, setting.skipped or NOT_TIMED * too_big)

    def outputs(self, timed: bool) -> list[str]:
        """Endings of the files that its notebook makes; `timed`: whether it shows times."""
        table = [".csv", ".tex"]
        if self.spec["form"] == "figure":
            return [".csv", ".svg", ".pdf"]
        table += [f"_time{end}" for end in table] if timed else []
        return [*table, "_claims.csv"] if self.spec["time_claims"] else table

    def _methods(self, axes: dict[str, Any], timed: bool = False) -> dict[str, Any]:
        """The methods of a setting, or those of which it measures the times."""
        change = self.spec["readings"].get(axes.get("reading"), {}).get("methods", {})
        return {
            label: _resolved(method | change.get(label, {}), axes)
            for label, method in self.spec["methods"].items()
            if change.get(label, {}) is not None
            and method.get("timed", True) in ((True, "only") if timed else (True, False))
        }

    def _setting(self, reading: str | None, change: dict, point: dict[str, Any]) -> Setting:
        axes = point if reading is None else {"reading": reading, **point}
        run, methods = self.spec["at_scale"], self._methods(axes)
        # A list says which methods are run; a mapping changes some, or leaves them out: not those
        # that are added later.
        changes = run.get("methods", {})
        if isinstance(changes, list):
            changes = {label: {} if label in changes else None for label in methods}
        methods = {
            label: method | _resolved(changes.get(label, {}), axes)
            for label, method in methods.items()
            if changes.get(label, {}) is not None
        }
        data = self.spec["data"] | change.get("data", {}) | run.get("data", {})
        data = point | _resolved(data, axes)
        _check_numbers(data)
        sweep = {
            name: [value for value in values if value in run.get(name, values)]
            for name, values in self.spec["sweep"].items()
        }
        spec = {
            "experiment": self.name,
            "name": _slug(axes.values()),
            "axes": axes,
            "data": data,
            "methods": methods,
            "study": _resolved(
                self.spec["study"] | change.get("study", {}) | run.get("study", {}), axes
            ),
            "seed": self.seed,
            "tune": self.spec["tune"] | change.get("tune", {}),
            "sweep": sweep,
            **{key: self.spec[key] for key in ("track", "passes", "metrics", "test_rows")},
            **{key: self.scale[key] for key in ("run_values", "tune_values")},
            **{key: self.scale[key] for key in ("tune_points",) if key in self.scale},
        }
        asked = _resolved({"replicates": self.spec["replicates"]}, axes)["replicates"]
        most = self.scale["replicates"]
        if self.spec["study"]:
            most = self.scale.get("study_replicates", most)
        if _size(spec) and self.scale["values"] is not None:
            most = min(most, int(self.scale["values"] / _size(spec)))
        most = min(most, run.get("replicates", asked))
        spec |= {"asked": asked, "replicates": min(asked, most)}
        # Methods with replicates of their own are slow: at least one, if the setting is run at all.
        dense = spec["data"].get("n", 0) * spec["data"].get("p", 0)
        for method in methods.values():
            if "replicates" in method and dense and self.scale["values"] is not None:
                limit = max(1, int(self.scale["values"] / dense))
                method["replicates"] = min(method["replicates"], limit)
        least = self.scale.get("least_replicates", 2)
        least = min(least, asked, self.scale["replicates"], run.get("replicates", asked))
        too_few = spec["replicates"] < least
        left_out = any(axes[axis] not in run[axis] for axis in run.keys() & axes.keys())
        gaps = self.spec["unavailable"]
        why = next((gaps[axis][axes[axis]] for axis in gaps if axes.get(axis) in gaps[axis]), "")
        return Setting(spec["name"], spec, why or (NOT_RUN if too_few or left_out else ""))

    def check(self) -> None:
        """Raise ConfigurationError, naming the key, if the entry does not make sense."""
        spec = self.spec
        is_own_table = spec["form"] == "table" and not spec.get("results")
        allowed = ([*spec["readings"]] or [True]) if is_own_table else []
        if spec["time"] not in (None, *allowed):
            raise ConfigurationError(f"time={spec['time']!r} must be one of {allowed}")
        run = {axis: v for axis, v in spec["at_scale"].items() if axis not in CHANGED_AT_SCALE}
        check_values("at_scale", run, self.values | spec["sweep"])
        check_values("unavailable", spec["unavailable"], self.values)
        for label in {*spec["at_scale"].get("methods", [])} - spec["methods"].keys():
            raise ConfigurationError(f"at_scale: there is no method {label!r}")
        for reading, change in spec["readings"].items():
            for label in change.get("methods", {}).keys() - spec["methods"].keys():
                raise ConfigurationError(f"reading {reading!r} changes no method {label!r}")
        names = Counter(setting.name for setting in self.settings)
        for name, count in names.items():
            if count > 1:
                raise ConfigurationError(f"grid has {count} points that are called {name!r}")
        for setting in self.settings:
            self._check_data(setting)
            if not setting.skipped and setting.spec["replicates"] < 1:
                raise ConfigurationError(f"replicates of {setting.name!r} must be at least 1")

    def _check_data(self, setting: Setting) -> None:
        data, axes = setting.spec["data"], setting.spec["axes"]
        if "simulate" in data and data["simulate"] not in DESIGNS:
            raise ConfigurationError(f"simulate={data['simulate']!r} is none of {sorted(DESIGNS)}")
        design = DESIGNS.get(data.get("simulate"))
        for key, ability in _asked_of_design(setting.spec).items():
            if not hasattr(design, ability):
                able = sorted(name for name, cls in DESIGNS.items() if hasattr(cls, ability))
                raise ConfigurationError(f"{key} needs data with `simulate` one of {able}")
        parameters = {f.name for f in fields(design)} if design else set()
        known = {"simulate", "n", "averages", *parameters} if design else {"dataset", "k", *RULE}
        used = {axis for value in mappings(self.spec) if (axis := _axis(value))}
        for key in data.keys() - known - (axes.keys() & used):
            raise ConfigurationError(f"{key!r} is no part of the data, and nothing is `by` it")
        k = data.get("k", 1)
        if not design and not (isinstance(k, int) and not isinstance(k, bool) and k >= 1):
            raise ConfigurationError(f"data: k={k!r} must be a whole number of at least 1")
        if "split" in data:
            _check_split(data["split"])
        elif RULE & data.keys():
            raise ConfigurationError(f"{', '.join(sorted(RULE & data.keys()))}: needs split")
        if design and setting.spec["methods"] and not setting.spec["study"] and "n" not in data:
            raise ConfigurationError("data: n, the number of rows, is needed")
        if design:
            try:
                design(**{key: data[key] for key in parameters & data.keys()})
            except (TypeError, ValueError) as error:
                raise ConfigurationError(f"data: {error}") from error


def check_values(key: str, asked: Mapping[str, Iterable], values: Mapping[str, list]) -> None:
    """Raise ConfigurationError if `key` names what is no axis, or no value of one."""
    for axis, chosen in asked.items():
        if axis not in values:
            raise ConfigurationError(f"{key}: {axis!r} is none of the axes {sorted(values)}")
        for value in chosen:
            if value not in values[axis]:
                able = ", ".join(dict.fromkeys(map(repr, values[axis])))
                raise ConfigurationError(f"{key}: {axis}={value!r} is none of {able}")


def _stream(spec: dict[str, Any]) -> str:
    """What settings have in common whose rows are the first of one stream."""
    data = spec["data"]
    single = spec["study"] or spec["track"] or spec["tune"] or "time_s" in spec["metrics"]
    if single or "simulate" not in data or not spec["methods"]:
        return spec["name"]
    # The last bits of what a method learns may depend on the blocks: all see the same whole ones.
    whole = getattr(DESIGNS[data["simulate"]], "whole", None)
    if whole is None or data["n"] % whole:
        return spec["name"]
    return json.dumps({name: value for name, value in data.items() if name != "n"}, sort_keys=True)


def _at_once(group: list[Setting]) -> Iterator[Setting]:
    """The run of these settings: that of the most rows, with all of them as `parts`.

    Or several, each of the replicates from `first` on and before `replicates`.
    """
    if len(group) == 1:
        yield from group
        return
    parts = [setting.spec for setting in group]
    most = max(parts, key=lambda part: part["data"]["n"])
    replicates = max(part["replicates"] for part in parts)
    runs = math.ceil(replicates * most["data"]["n"] * width(most["data"]) / LONGEST)
    size = math.ceil(replicates / runs)
    for first in range(0, replicates, size):
        end = min(first + size, replicates)
        name = f"{group[0].name}-and-{len(group) - 1}-more"
        name += f"_{first}-{end - 1}" if runs > 1 else ""
        own = {"first": first, "replicates": end, "parts": parts}
        yield Setting(name, most | {"name": name} | own)


def _check_numbers(data: dict[str, Any]) -> None:
    """Raise ConfigurationError, naming the key, where a design is given no number."""
    if not isinstance(data.get("simulate", ""), str):
        raise ConfigurationError(f"simulate={data['simulate']!r} is none of {sorted(DESIGNS)}")
    if design := DESIGNS.get(data.get("simulate")):
        try:
            check_kinds(design, data, n=int)
        except ValueError as error:
            raise ConfigurationError(f"data: {error}") from error


def _check_split(rule: Any) -> None:
    """Raise ConfigurationError, naming the key, where a rule is none."""
    wrong = rule if not isinstance(rule, dict) else rule.keys() - {"train", "test", "order"}
    if wrong or "train" not in rule:
        raise ConfigurationError(f"split={rule!r} must have train, and may have test and order")
    for key in ("train", "test"):
        if type(rule.get(key, 1)) is not int or rule.get(key, 1) < 1:
            raise ConfigurationError(f"split: {key}={rule[key]!r} must be a number of rows")
    if rule.get("order", "file") not in ("file", "random"):
        raise ConfigurationError(f"split: order={rule['order']!r} must be file or random")


def _asked_of_design(spec: dict[str, Any]) -> dict[str, str]:
    """What a setting says -> the attribute that its design needs for that."""
    asked = {}
    if "averages" in spec["data"]:
        asked["averages=sampled"] = "low_rank"
    if "level" in spec["track"]:
        asked["track.level"] = "at"
    elif "every" in spec["track"]:
        asked["track.every"] = "coef_at"
    elif spec["track"]:
        asked["track.first"] = "low_rank"
    elif spec["test_rows"] is None:
        asked["test_rows=null"] = "low_rank"
    return asked


def _size(spec: dict[str, Any]) -> int:
    """Numbers that one replicate generates."""
    if "averages" in spec["data"]:
        return AVERAGES_COST * spec["data"].get("p", 0) ** 2
    return spec["data"].get("n", 0) * width(spec["data"])


def width(data: dict[str, Any]) -> int:
    """Numbers of a row."""
    design = DESIGNS.get(data.get("simulate"))
    nonzeros = data.get("nonzeros", getattr(design, "nonzeros", None))
    if nonzeros is None:
        return data.get("p", 0)
    return nonzeros + (data.get("k", 0) if hasattr(design, "dense_support") else 0)


def _multiplied(grid: dict[str, Any]) -> Iterator[dict[str, Any]]:
    values = [value if isinstance(value, list) else [value] for value in grid.values()]
    for point in itertools.product(*values):
        yield dict(zip(grid, point, strict=True))


def _resolved(spec: dict[str, Any], axes: dict[str, Any]) -> dict[str, Any]:
    """Replace {axis: name} by its value, and {by: name, value: ...} by what holds at that value.

    One may stand in another.
    """
    result = {}
    for key, value in spec.items():
        while (axis := _axis(value)) is not None:
            if axis not in axes:
                raise ConfigurationError(f"{key}: {axis!r} is none of the axes {sorted(axes)}")
            at = axes[axis]
            if "by" in value and at not in value:
                raise ConfigurationError(f"{key} has no value for {axis}={at!r}")
            value = value[at] if "by" in value else at
        result[key] = value
    return result


def _axis(value: Any) -> str | None:
    """The axis that a value depends on, if any."""
    if not isinstance(value, dict):
        return None
    if "by" in value:
        return value["by"]
    name = value.get("axis")
    return name if isinstance(name, str) and len(value) == 1 else None


def mappings(spec: Any) -> Iterator[dict[str, Any]]:
    """All dicts within a specification."""
    if isinstance(spec, dict):
        yield spec
        for inner in spec.values():
            yield from mappings(inner)


def _slug(values: Iterable[Any]) -> str:
    words = [re.sub(r"[^A-Za-z0-9]+", "-", str(value)) for value in values]
    return "_".join(words) or "all"
