"""What a scale will cost, from what was measured: the work of each setting at fitted rates.

The work of a setting is counted by kind: values that are drawn, values that each method reads,
squares of averages, repetitions of a study. How long a unit of each takes is fitted to the settings
that were measured, at any scale, by least squares of relative errors.
"""

import json
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import nnls

from ofslib.reproduction import archive, project, provenance
from ofslib.reproduction.entries import Setting, width

START, FIT = "start", "fit"
# How much an unmeasured difference between like kinds of work weighs, in roots of seconds.
NEAR = 1.0


class Measured(NamedTuple):
    """A setting that was run: where, what it took, and its work."""

    file: str
    seconds: float
    memory_mb: float
    work: dict[str, float]


# -------------------------------------------------- work


def work_of(spec: Mapping[str, Any], row: Mapping[str, Any] | None = None) -> dict[str, float]:
    """How much of each kind of work a setting is; `row` is its data set in the registry."""
    if spec["study"]:
        return {START: 1, f"{spec['experiment']} {spec['name']}": spec["replicates"]}
    data, found = spec["data"], defaultdict(float, {START: 1})
    sampled, split = "averages" in data, data.get("split")
    p = row["n_features"] if row else data["p"]
    n = split["train"] if split else row["n_train"] if row else data["n"]
    values = _row_values(row) if row else width(data)
    tunings, most = _tunings(spec), 0.0
    for method in spec["methods"].values():
        replicates = min(spec["replicates"], method.get("replicates", math.inf))
        runs = replicates * _count(method.get("sweep", spec["sweep"]))
        found[FIT] += runs + tunings * (1 if row and not split else replicates)
        if sampled and "replicates" not in method:
            found[f"{method['class']} on averages"] += runs * p**2
            continue
        if row and not split:  # in memory: tuned once, on all rows
            rows = n * runs * _passes(spec, n, p, values, "run_values")
            rows += n * tunings * _passes(spec, n, p, values, "tune_values")
        else:  # in blocks: each replicate is tuned on the first rows
            rows = n * runs + replicates * tunings * min(n, spec["tune"].get("rows", 10_000))
            most = max(most, n * replicates)
        found[_kind(method, values < p / 2, bool(row and not split))] += rows * values
    if sampled:
        found["averages"] = spec["replicates"] * p**2
    if most:
        found[f"rows of {data.get('simulate') or data['dataset']}"] = most * values
    return dict(found)


def _row_values(row: Mapping[str, Any]) -> float:
    """Nonzeros of a row; where the registry does not count them, a guess: 100 of many columns."""
    if row["train_nonzeros"]:
        return row["train_nonzeros"] / row["n_train"]
    return row["n_features"] if row["n_features"] <= 10_000 else 100


def _kind(method: Mapping[str, Any], sparse: bool, in_memory: bool) -> str:
    where = " in memory" * in_memory
    return f"{method['class']} on {'sparse' if sparse else 'dense'} rows{where}"


def _count(sweep: Mapping[str, Any]) -> int:
    return math.prod(len(values) for values in sweep.values())


def _tunings(spec: Mapping[str, Any]) -> int:
    grid = _count(spec["tune"]["grid"]) if spec["tune"] else 0
    return min(grid, spec.get("tune_points", grid))


def _passes(spec: Mapping[str, Any], n: int, p: int, values: float, cap: str) -> int:
    """As `experiment.number_of_passes`, from what the registry says of the data set."""
    asked = math.ceil(2 * p / n) if spec["passes"] == "2d/n" else spec["passes"]
    return asked if spec[cap] is None else max(1, min(asked, int(spec[cap] / (n * values))))


# -------------------------------------------------- what was measured


def measured(work: project.Project) -> list[Measured]:
    """What the runs took whose figures came with the checkout, or whose results are here."""
    took: dict[str, tuple[float, float]] = {}
    for file in sorted(Path(work.root, "figures").glob("**/PROVENANCE.json")):
        for facts in provenance.read(file).values():
            took |= facts.get("took", {})
    for file in sorted(Path(work.root, "results").glob("*/*/*.json")):
        record = json.loads(file.read_text(encoding="utf-8"))
        result = file.relative_to(work.root).with_suffix(".csv").as_posix()
        took[result] = record["cpu_s"], record["memory_mb"]
    scales = {file.split("/")[1] for file in took} & {*project.scales(work.root)}
    found = []
    for scale in sorted(scales):
        for file, setting in archive.results(project.load(work.root, scale=scale)):
            if file in took and took[file][0]:
                found.append(Measured(file, *took[file], _work(work, setting)))
    return found


def _work(work: project.Project, setting: Setting) -> dict[str, float]:
    return work_of(setting.spec, work.row(setting.dataset) if setting.dataset else None)


# -------------------------------------------------- rates


def rates(known: Iterable[Measured]) -> dict[str, float]:
    """Seconds that a unit of each kind of work takes.

    Methods that are always run together cannot be told apart: each is taken to be as its like
    ("on dense rows") as far as the measured times allow.
    """
    known = list(known)
    likes = [{_like(kind): 0.0 for kind in one.work} for one in known]
    for like, one in zip(likes, known, strict=True):
        for kind, amount in one.work.items():
            like[_like(kind)] += amount
    took = [one.seconds for one in known]
    common = _fitted(likes, took, {})
    start = {kind: common[_like(kind)] for one in known for kind in one.work}
    return common | _fitted([one.work for one in known], took, start)


def _fitted(works: list[dict], took: list[float], about: dict[str, float]) -> dict[str, float]:
    """Rates of at least 0, by squared errors as shares of the root of the time; near `about`."""
    kinds = sorted({kind for work in works for kind in work})
    unit = {kind: max(work.get(kind, 0.0) for work in works) or 1.0 for kind in kinds}
    A = np.array([[work.get(kind, 0.0) / unit[kind] for kind in kinds] for work in works])
    weight, target = 1 / np.sqrt(took), np.sqrt(took)
    A = A * weight[:, None]
    known = [about[kind] * unit[kind] for kind in kinds if about.get(kind)]
    near = [kinds.index(kind) for kind in kinds if about.get(kind)]
    pull = np.zeros((len(near), len(kinds)))
    pull[range(len(near)), near] = NEAR / np.array(known)
    found, _ = nnls(np.vstack([A, pull]), np.concatenate([target, np.full(len(near), NEAR)]))
    return {kind: rate / unit[kind] for kind, rate in zip(kinds, found.tolist(), strict=True)}


def _like(kind: str) -> str:
    """What kinds of work are alike: methods on the same rows, designs, settings of a study."""
    first, on, rows = kind.partition(" on ")
    return f"on {rows}" if on else "rows of" if first.startswith("rows of") else first.split()[0]


def seconds(work: Mapping[str, float], rate: Mapping[str, float]) -> float:
    """What some work takes; a kind that was never measured, as its like."""
    return sum(a * rate.get(kind, rate.get(_like(kind), 0.0)) for kind, a in work.items())


def is_known(work: Mapping[str, float], rate: Mapping[str, float]) -> bool:
    """Whether each kind of some work, or its like, was measured."""
    return all(kind in rate or _like(kind) in rate for kind in work)


def errors(known: list[Measured]) -> tuple[float, float]:
    """Each half of the settings predicted from the other half.

    Returns the factor that half of the predictions are within, and the ratio of the sums.
    """
    halves = [known[half::2] for half in (0, 1)]
    told = [
        (seconds(one.work, rate), one.seconds)
        for part, other in (halves, halves[::-1])
        for rate in [rates(other)]
        for one in part
    ]
    ratios = np.array([predicted / took for predicted, took in told])
    factor = np.exp(np.median(np.abs(np.log(np.maximum(ratios, 1e-3)))))
    return float(factor), sum(p for p, _ in told) / sum(t for _, t in told)


# -------------------------------------------------- the plan


def plan(work: project.Project) -> tuple[list[dict[str, Any]], list[Measured]]:
    """What each entry with runs of its own will cost at a scale, and what that is told from.

    Keys of an entry: entry, settings (runs, those that measure times among them), here (made
    already, and still right), replicates (the fewest and the most), core_hours, left_hours (of
    those not here), memory_mb (the most that one of its settings took, or reserves) and unknown
    (settings of which nothing alike was measured, so that their hours are not counted).

    Raises
    ------
    ValueError
        If no run was measured.
    """
    known = measured(work)
    if len(known) < 2:
        raise ValueError(
            "nothing that was run here or came with the figures says what a run takes: run a part "
            "first, as snakemake --cores 8 --config scale=smoke"
        )
    rate, took = rates(known), {one.file: one.memory_mb for one in known}
    rows: dict[str, dict[str, Any]] = {}
    for file, setting in archive.results(work):
        new = {"settings": 0, "here": 0, "replicates": [], "core_hours": 0.0, "left_hours": 0.0}
        row = rows.setdefault(setting.spec["experiment"], new | {"memory_mb": 0, "unknown": 0})
        there, own = not archive.state(file, setting), _work(work, setting)
        hours = seconds(own, rate) / 3600
        row["settings"] += 1
        row["unknown"] += not is_known(own, rate)
        row["here"] += there
        row["replicates"] += [setting.spec["replicates"]]
        row["core_hours"] += hours
        row["left_hours"] += 0.0 if there else hours
        row["memory_mb"] = max(row["memory_mb"], took.get(file) or setting.mem_mb)
    for row in rows.values():
        row["replicates"] = [min(row["replicates"]), max(row["replicates"])]
    return [{"entry": name, **row} for name, row in rows.items()], known
