"""Entries of config/experiments, and the settings that their grids and readings multiply to."""

import itertools
import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

from ofslib.reproduction import configuration
from ofslib.reproduction.configuration import ConfigurationError, alike, is_axis, is_by
from ofslib.simulate import DESIGNS

NOT_RUN, NOT_TIMED = "not run at this scale", "not timed at this scale"

# Learning from sampled running averages takes about as long as generating so many numbers for each
# entry of their matrix.
AVERAGES_COST = 10

# Numbers that a run of several settings draws at most; its replicates are else divided among runs.
# With 200 penalties, or with averages of 10,000 features, these are half an hour to an hour.
LONGEST = 5e10


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


@dataclass(frozen=True)
class Entry:
    """One table or figure of a paper, at one scale."""

    name: str
    spec: dict[str, Any]  # the keys of `configuration.EntryKeys`; `at_scale` is that of the scale
    scale: dict[str, Any]
    seed: int

    @cached_property
    def settings(self) -> list[Setting]:
        """All grid points, in the order of the configuration."""
        if not (self.spec["methods"] or self.spec["study"]):
            return []
        try:
            return [
                setting
                for reading, change in (self.spec["readings"] or {None: {}}).items()
                for setting in self._first([self._setting(reading, change, p) for p in self.points])
            ]
        except ConfigurationError as error:
            lines = str(error).splitlines()
            raise ConfigurationError("\n".join(f"{self.name}: {line}" for line in lines)) from None

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
        return [
            dict(zip(grid, point, strict=True))
            for grid in grids
            for point in itertools.product(*map(as_list, grid.values()))
        ]

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

        With the reason why they are not timed at this scale. Slow methods are timed once. Where
        averages are sampled they are here too: how long it takes to learn from them does not
        depend on where they came from, and to sum up rows takes a hundred times as long.
        """
        found = []
        for setting in self.settings:
            spec = setting.spec
            if self.spec["time"] != spec["axes"].get("reading", True):
                continue
            methods = self._methods(spec["axes"], timed=True)
            for label, method in methods.items():
                if "replicates" in method:
                    methods[label] = method | {"replicates": min(1, method["replicates"])}
            repeats = self.scale["timing_repeats"]
            changes = {"metrics": ["time_s"], "replicates": repeats, "methods": methods}
            rows = {key: value for key, value in spec["data"].items() if key != "averages"}
            skipped = setting.skipped or NOT_TIMED * (_size(rows) > self.scale["timing_values"])
            found.append(Setting(setting.name, spec | changes, skipped))
        return found

    def _methods(self, axes: dict[str, Any], timed: bool = False) -> dict[str, Any]:
        """The methods of a setting, or those of which it measures the times."""
        change = self.spec["readings"].get(axes.get("reading"), {}).get("methods", {})
        wanted = (True, "only") if timed else (True, False)
        shown = {
            label: method
            for label, method in self.spec["methods"].items()
            if method.get("timed", True) in wanted
        }
        return _changed(shown, change, axes)

    def _setting(self, reading: str | None, change: dict, point: dict[str, Any]) -> Setting:
        axes = point if reading is None else {"reading": reading, **point}
        run, scale = self.spec["at_scale"], self.scale
        # A list says which methods are run; a mapping changes some, or leaves them out: not those
        # that are added later.
        methods, changes = self._methods(axes), run.get("methods", {})
        if isinstance(changes, list):
            changes = {label: {} if label in changes else None for label in methods}
        methods = _changed(methods, changes, axes)
        data, study = (
            resolved(self.spec[key] | change.get(key, {}) | run.get(key, {}), axes)
            for key in ("data", "study")
        )
        data = point | data
        self._check_data(data, axes)
        spec = {
            "experiment": self.name,
            "name": _slug(axes.values()),
            "axes": axes,
            "data": data,
            "methods": methods,
            "study": study,
            "seed": self.seed,
            "tune": self.spec["tune"] | change.get("tune", {}),
            "sweep": {
                name: [value for value in values if value in run.get(name, values)]
                for name, values in self.spec["sweep"].items()
            },
            **{key: self.spec[key] for key in ("track", "passes", "metrics", "test_rows")},
            **{key: scale[key] for key in ("run_values", "tune_values")},
            **{key: scale[key] for key in ("tune_points",) if key in scale},
        }
        asked = resolved({"replicates": self.spec["replicates"]}, axes)["replicates"]
        wanted = min(asked, run.get("replicates", asked))
        most, limit = scale["replicates"], scale["values"]
        if study:
            most = scale.get("study_replicates", most)
        if limit is not None and _size(data):
            most = min(most, int(limit / _size(data)))
        spec |= {"asked": asked, "replicates": min(wanted, most)}
        # Methods with replicates of their own are slow: at least one, if the setting is run at all.
        dense = data.get("n", 0) * data.get("p", 0)
        if limit is not None and dense:
            for method in methods.values():
                if "replicates" in method:
                    few = max(1, int(limit / dense))
                    method["replicates"] = min(method["replicates"], few)
        least = min(scale.get("least_replicates", 2), scale["replicates"], wanted)
        left_out = any(axes[axis] not in run[axis] for axis in run.keys() & axes.keys())
        gaps = self.spec["unavailable"]
        why = next((gaps[axis][axes[axis]] for axis in gaps if axes.get(axis) in gaps[axis]), "")
        left_out |= spec["replicates"] < least
        return Setting(spec["name"], spec, why or NOT_RUN * left_out)

    # -------------------------------------------------- what the data of a setting may be

    def _check_data(self, data: dict[str, Any], axes: dict[str, Any]) -> None:
        """Raise ConfigurationError, naming the key, where the data of a setting make no sense."""
        used = {axis for value in mappings(self.spec) if (axis := _axis(value))}
        simulated, real = configuration.Simulated, configuration.RealData
        model = simulated if "simulate" in data else real
        own = data.keys() - (axes.keys() & used) | data.keys() & model.model_fields.keys()
        configuration.check({key: data[key] for key in own}, model, "data", ".")
        design = DESIGNS.get(data.get("simulate"))
        for key, ability in self._asked_of_design(data).items():
            if not hasattr(design, ability):
                able = sorted(name for name, cls in DESIGNS.items() if hasattr(cls, ability))
                raise ConfigurationError(f"{key} needs data with `simulate` one of {able}")
        if design is None:
            return
        known = {f.name for f in fields(design)}
        for key in own - known - simulated.model_fields.keys():
            raise ConfigurationError(f"data: there is no key {key!r}{alike(key, known)}")
        if self.spec["methods"] and not self.spec["study"] and "n" not in data:
            raise ConfigurationError("data.n: is missing, the number of rows")
        try:
            design(**{key: data[key] for key in known & data.keys()})
        except (TypeError, ValueError) as error:
            raise ConfigurationError(f"data: {error}") from error

    def _asked_of_design(self, data: dict[str, Any]) -> dict[str, str]:
        """What a setting says -> the attribute that its design needs for that."""
        asked = {"averages=sampled": "low_rank"} if "averages" in data else {}
        tracked = {"level": "at", "every": "coef_at", "first": "low_rank"}
        for key in [key for key in tracked if key in self.spec["track"]][:1]:
            return asked | {f"track.{key}": tracked[key]}
        return asked | ({} if self.spec["test_rows"] else {"test_rows=null": "low_rank"})


def _changed(methods: dict[str, Any], changes: Mapping[str, Any], axes: dict) -> dict[str, Any]:
    """Methods with what is changed of some, without those that are mapped to None."""
    return {
        label: resolved(method | changes.get(label, {}), axes)
        for label, method in methods.items()
        if changes.get(label, {}) is not None
    }


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


def _size(data: dict[str, Any]) -> int:
    """Numbers that one replicate generates."""
    if "averages" in data:
        return AVERAGES_COST * data.get("p", 0) ** 2
    return data.get("n", 0) * width(data)


def width(data: dict[str, Any]) -> int:
    """Numbers of a row."""
    design = DESIGNS.get(data.get("simulate"))
    nonzeros = data.get("nonzeros", getattr(design, "nonzeros", None))
    if nonzeros is None:
        return data.get("p", 0)
    return nonzeros + (data.get("k", 0) if hasattr(design, "dense_support") else 0)


def resolved(spec: dict[str, Any], axes: dict[str, Any]) -> dict[str, Any]:
    """Replace {axis: name} by its value, and {by: name, value: ...} by what holds at that value.

    One may stand in another.
    """
    result = {}
    for key, value in spec.items():
        while (axis := _axis(value)) is not None:
            if axis not in axes:
                raise ConfigurationError(f"{key}: {axis!r} is none of the axes {sorted(axes)}")
            at = axes[axis]
            if is_by(value) and at not in value:
                raise ConfigurationError(f"{key} has no value for {axis}={at!r}")
            value = value[at] if is_by(value) else at
        result[key] = value
    return result


def _axis(value: Any) -> str | None:
    """The axis that a value depends on, if any."""
    return value["by"] if is_by(value) else value["axis"] if is_axis(value) else None


def mappings(spec: Any) -> Iterator[dict[str, Any]]:
    """All dicts within a specification."""
    if isinstance(spec, dict):
        yield spec
        for inner in spec.values():
            yield from mappings(inner)


def as_list(value: Any) -> list:
    """One value as a list; a list as it is."""
    return value if isinstance(value, list) else [value]


def _slug(values: Iterable[Any]) -> str:
    words = [re.sub(r"[^A-Za-z0-9]+", "-", str(value)) for value in values]
    return "_".join(words) or "all"
