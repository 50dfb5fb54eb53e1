"""What a scale will cost, from the seconds that stand in the records of stored results."""

import math
from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from ofslib.reproduction import identity, records, store
from ofslib.reproduction.entries import Setting
from ofslib.reproduction.identity import Result
from ofslib.reproduction.project import Project

START = 4.0  # seconds in which a notebook starts and ends


class Seconds:
    """What results take, told from those that are stored here and in the shipped archive."""

    def __init__(self, work: Project):
        self.work, self.here, self.there = work, store.folder(), work.archive
        self._by_key, self._like = defaultdict(list), defaultdict(list)
        for each in filter(None, (self.here, self.there)):
            for key, spans in each.spans.items():
                for first, end, name in spans:
                    record = each.records[name]
                    if record["seconds"] is not None:
                        each_takes = record["seconds"] / (end - first)
                        self._by_key[key].append(each_takes)
                        rate = each_takes / self._amount(record["made_of"])
                        for like in _likes(record["place"], record["made_of"]):
                            self._like[like].append(rate)

    def of(self, result: Result, place: list[str | None], replicates: int) -> float | None:
        """Seconds of some replicates of a result; None if nothing alike was ever run.

        What was never run takes as long as the same method at another scale or in another setting
        of the entry, else as the other methods of the entry.
        """
        if known := self._by_key.get(result.key):
            return replicates * sum(known) / len(known)
        for like in _likes(place, result.made_of):
            if rates := self._like.get(like):
                return replicates * self._amount(result.made_of) * sum(rates) / len(rates)
        return None

    def _amount(self, made_of: Mapping[str, Any]) -> float:
        """What the seconds of a replicate are taken to be proportional to: values that are read."""
        data, limit = made_of["data"], made_of.get("run_values")
        if "dataset" not in data:
            return data.get("n", 1) * data.get("p", 1)
        row = self.work.row(data["dataset"])
        p = row["n_features"]
        values = row["train_nonzeros"] or row["n_train"] * (p if p <= 10_000 else 100) or 1
        if made_of["study"]:
            return min(limit or math.inf, row["n_train"] * p)
        passes = made_of["passes"]
        passes = math.ceil(2 * p / row["n_train"]) if passes == "2d/n" else passes

        def read(cap):
            return values * max(1, min(passes, (cap or math.inf) / values))

        tune = made_of["tune"]
        points = math.prod(map(len, tune["grid"].values())) if tune else 0
        points = min(points, made_of.get("tune_points", points))
        return read(limit) + points * read(made_of.get("tune_values"))


def _likes(place: list[str | None], made_of: Mapping[str, Any]) -> list[tuple]:
    """What results are alike, from the closest on; those that measure times stand apart."""
    entry, setting, label = place
    timed = made_of.get("metrics") == ["time_s"]
    return [(entry, setting, label, timed), (entry, label, timed), (entry, timed)]


def expected(work: Project) -> dict[str, float]:
    """Seconds that each run of a scale takes, as far as stored results tell."""
    known, found = Seconds(work), {}
    for file, setting in work.runs():
        seconds = [
            known.of(result, store.place_of(setting.spec, result), result.end - first)
            for result in identity.results(setting.spec)
            if (first := known.here.missing(result)) < result.end
        ]
        if None not in seconds:
            found[file] = START + sum(seconds)
    return found


def plan(work: Project) -> list[dict[str, Any]]:
    """What each entry with runs of its own will cost at a scale.

    Keys of an entry: entry, results (those that measure times among them), here (stored here),
    shipped (not here, but in the archive that comes with the checkout), replicates (of its
    settings: the fewest and the most), core_hours (of all), left_hours (of those neither here nor
    shipped), memory_mb (the most that a run took, or reserves), unknown (results of which nothing
    alike was ever run: their hours are not counted), missing (data sets that could not be had when
    they were last tried) and without_data (hours of what needs these, in no other count of hours).
    """
    known, lacking = Seconds(work), {record["name"] for record in records.missing(work.datasets)}
    rows: dict[str, dict[str, Any]] = {}
    for _, setting in work.runs():
        row = rows.setdefault(setting.spec["experiment"], _new_row())
        row["replicates"] += [part["replicates"] for part in setting.parts]
        for result in identity.results(setting.spec):
            _add(row, known, setting, result, setting.dataset in lacking)
        row["memory_mb"] = row["memory_mb"] or work.mem_mb(setting)
    for row in rows.values():
        row["replicates"] = [min(row["replicates"]), max(row["replicates"])]
    return [{"entry": name, **row} for name, row in rows.items()]


def _add(row: dict, known: Seconds, setting: Setting, result: Result, lacking: bool) -> None:
    here = known.here.has(result)
    shipped = not here and bool(known.there and known.there.has(result))
    seconds = known.of(result, store.place_of(setting.spec, result), result.end - result.first)
    hours = (seconds or 0) / 3600
    row["results"] += 1
    row["here"] += here
    row["shipped"] += shipped
    found = (each.records_of(result) for each in (known.here, known.there) if each)
    row["memory_mb"] = max(row["memory_mb"], *(r["memory_mb"] or 0 for o in found for r in o), 0)
    if lacking and not (here or shipped):
        row["without_data"] += hours
        row["missing"] = sorted({*row["missing"], setting.dataset})
        return
    row["unknown"] += seconds is None
    row["core_hours"] += hours
    if not (here or shipped):
        left = result.end - known.here.missing(result)
        row["left_hours"] += hours * left / (result.end - result.first)


def _new_row() -> dict[str, Any]:
    """An entry of which no result is counted yet."""
    numbers = dict.fromkeys(["results", "here", "shipped", "memory_mb", "unknown"], 0)
    hours = dict.fromkeys(["core_hours", "left_hours", "without_data"], 0.0)
    return {**numbers, "replicates": [], **hours, "missing": []}
