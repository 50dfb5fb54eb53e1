"""What a scale will cost, from the seconds that stand in the records of stored results."""

import math
import re
from collections import defaultdict
from collections.abc import Mapping
from statistics import fmean
from typing import Any

import pandas as pd

from ofslib.reproduction import identity, machine, records, store
from ofslib.reproduction.identity import Result
from ofslib.reproduction.project import Project

START = 4.0  # seconds in which a notebook starts and ends
# Of the plan of an entry, and how they are put together from those of its results.
COLUMNS = dict.fromkeys(["results", "here", "shipped"], "sum") | {"fewest": "min", "most": "max"}
COLUMNS |= dict.fromkeys(["core_hours", "left_hours", "without_data"], "sum")
COLUMNS |= {"memory_mb": "max", "unknown": "sum"}
COLUMNS["missing"] = lambda names: ", ".join(sorted({*names} - {""}))


class Seconds:
    """What results take, told from those that are stored here and in the shipped archive."""

    def __init__(self, work: Project):
        self.work, self.here, self.there = work, store.folder(), work.archive
        self._rates = defaultdict(list)  # of a result, or of what is like it
        for each in filter(None, (self.here, self.there)):
            for key, spans in each.spans.items():
                for first, end, name in spans:
                    record = each.record(name)
                    if record["seconds"] is not None:
                        seconds = self._seconds_here(record) / (end - first)
                        rate = seconds / self._amount(record["made_of"])
                        for like in (key, *_likes(record["place"], record["made_of"])):
                            self._rates[like].append(rate)

    def of(self, result: Result, place: list[str | None], replicates: int) -> float | None:
        """Seconds of some replicates of a result; None if nothing alike was ever run.

        What was never run takes as long as the same method at another scale or in another setting
        of the entry, else as the other methods of the entry.
        """
        for like in (result.key, *_likes(place, result.made_of)):
            if rates := self._rates.get(like):
                return replicates * self._amount(result.made_of) * fmean(rates)
        return None

    def _seconds_here(self, record: Mapping[str, Any]) -> float:
        """The seconds of a record; what needs a machine alone uses all cores that there are."""
        entry = self.work.entries.get(record["place"][0])
        if entry is None or not entry.spec["alone"]:
            return record["seconds"]
        there = int(re.search(r"(\d+) cores", record["machine"])[1])
        return record["seconds"] * machine.cores() / there

    def _amount(self, made_of: Mapping[str, Any]) -> float:
        """What the seconds of a replicate are taken to be proportional to: values that are read."""
        data, limit = made_of["data"], made_of.get("run_values") or math.inf
        if "dataset" not in data:
            return data.get("n", 1) * data.get("p", 1)
        row = self.work.row(data["dataset"])
        n, p = row["n_train"], row["n_features"]
        if made_of["study"]:
            return min(limit, n * p)
        once = row["train_nonzeros"] or n * (p if p <= 10_000 else 100) or 1
        passes = made_of["passes"]
        values = once * (math.ceil(2 * p / n) if passes == "2d/n" else passes)
        tune = made_of["tune"]
        points = math.prod(map(len, tune["grid"].values())) if tune else 0
        points = min(points, made_of.get("tune_points", points))
        tuned = max(once, min(values, made_of.get("tune_values") or math.inf))
        return max(once, min(values, limit)) + points * tuned


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


def plan(work: Project) -> pd.DataFrame:
    """What each entry with runs of its own will cost at a scale.

    Columns: entry, results (those that measure times among them), here (stored here), shipped (not
    here, but in the archive that comes with the checkout), fewest and most (replicates of its
    settings), core_hours (of all), left_hours (of those neither here nor shipped), without_data
    (hours of what needs missing data, in no other column), memory_mb (the most that a run took, or
    reserves), unknown (results of which nothing alike was ever run: their hours are not counted)
    and missing (data sets that could not be had when they were last tried).
    """
    known, lacking = Seconds(work), {record["name"] for record in records.missing(work.datasets)}
    rows = []
    for _, setting in work.runs():
        replicates = [part["replicates"] for part in setting.parts]
        for result in identity.results(setting.spec):
            here, stored = known.here.has(result), [known.here, *filter(None, [known.there])]
            shipped = not here and any(each.has(result) for each in stored)
            lacks = setting.dataset in lacking and not (here or shipped)
            count, place = result.end - result.first, store.place_of(setting.spec, result)
            seconds = known.of(result, place, count)
            hours = (seconds or 0) / 3600
            todo = (result.end - known.here.missing(result)) / count
            took = [r["memory_mb"] or 0 for each in stored for r in each.records_of(result)]
            left = 0 if here or shipped else hours * todo
            counts = [1, here, shipped, min(replicates), max(replicates)]
            costs = [0.0, 0.0, hours] if lacks else [hours, left, 0.0]
            memory, unknown = max(took, default=work.mem_mb(setting)), seconds is None and not lacks
            rest = [*costs, memory, unknown, setting.dataset if lacks else ""]
            rows.append([setting.spec["experiment"], *counts, *rest])
    table = pd.DataFrame(rows, columns=["entry", *COLUMNS])
    return table.groupby("entry", sort=False, as_index=False).agg(COLUMNS)
