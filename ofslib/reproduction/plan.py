"""What a scale will cost, from what was measured: the work of each setting at fitted rates.

The work of a setting is counted by kind: values that are drawn, values that each method reads,
squares of averages, repetitions of a study. How long a unit of each takes is fitted to the settings
that were measured, at any scale, near to the learning times of single methods, by least squares of
relative errors.
"""

import csv
import json
import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import nnls

from ofslib.reproduction import archive, project, provenance, records
from ofslib.reproduction.entries import Setting, width
from ofslib.reproduction.methods import class_of, find_class, identity

START, FIT, DRAWN, SUMMED = "start", "fit", "averages", "averages of rows"
SUMS = "ofslib.averages:RunningAverages"
# Power of p that a model of averages takes: more than to read the moments, 2, less than to factor
# them, 3. From p = 1000 to 10,000 those of dissertation Table A.1 take 200 to 680 times as long.
MODEL = 2.5
# How much a difference between like kinds of work weighs, in roots of seconds, and one between the
# learning times of a method and what it takes in runs.
NEAR, FIRM = 1.0, 10.0


class Measured(NamedTuple):
    """A setting that was run, or one of its methods: where, what it took, and its work."""

    file: str
    seconds: float
    memory_mb: float
    work: dict[str, float]


# -------------------------------------------------- work


def work_of(spec: Mapping[str, Any], row: Mapping[str, Any] | None = None) -> dict[str, float]:
    """How much of each kind of work a run is; `row` is its data set in the registry."""
    if spec["study"]:
        cap = spec.get("run_values")
        # A study of a data set takes as many of its rows as the scale allows.
        share = min(1.0, cap / (row["n_train"] * row["n_features"])) if row and cap else 1.0
        return {START: 1, f"{spec['experiment']} {spec['name']}": spec["replicates"] * share}
    found, counted = defaultdict(float, {START: 1}), defaultdict(lambda: spec.get("first", 0))

    def more(replicates: int, *key: Any) -> int:
        """Those of this run that no setting of more rows has shown already."""
        new = max(0, min(replicates, spec["replicates"]) - counted[key])
        counted[key] += new
        return new

    parts = spec.get("parts", [spec])
    for part in sorted(parts, key=lambda part: -part["data"].get("n", 0)):
        same = _models(part) if len(parts) > 1 else {}
        for kind, amount in _work_of(part, row, same, more).items():
            found[kind] += amount
    return dict(found)


def _models(spec: Mapping[str, Any]) -> dict[str, tuple]:
    """Equal for methods, of one or several settings, that are the same while rows are shown."""
    data, found = spec["data"], {}
    for label, method in spec["methods"].items():
        cls, own = class_of(method, k=data.get("k"), maturity=data["n"])
        sweep = repr(method.get("sweep", spec["sweep"]))
        found[label] = (*identity(cls, own, data["n"]), sweep)
    return found


def _work_of(spec, row, same: dict[str, tuple], more: Callable) -> dict[str, float]:
    """The same of one setting, as far as others of more rows have not done it already."""
    data, found = spec["data"], defaultdict(float)
    sampled, split = "averages" in data, data.get("split")
    p = row["n_features"] if row else data["p"]
    n = split["train"] if split else row["n_train"] if row else data["n"]
    values = _row_values(row) if row else width(data)
    if data.get("products"):
        p = values = p + p * (p + 1) // 2
    tunings, shown = _tunings(spec), 0
    for label, method in spec["methods"].items():
        asked = min(spec["replicates"], method.get("replicates", math.inf))
        key = same.get(label, label)
        swept = _count(method.get("sweep", spec["sweep"]))
        found[FIT] += more(asked, FIT, key, n) * swept
        replicates = more(asked, key)
        runs = replicates * swept
        found[FIT] += tunings * (1 if row and not split else replicates)
        summed = split and hasattr(find_class(method["class"]), "fit_averages")
        if method["class"] == SUMS or summed:  # all methods learn from the same
            found[SUMMED] = max(found[SUMMED], n * replicates * p**2)
            shown = max(shown, asked)
        if summed or (sampled and "replicates" not in method):
            found[f"{method['class']} on averages"] += runs * p**MODEL
        if method["class"] == SUMS or f"{method['class']} on averages" in found:
            continue
        if row and not split:  # in memory: tuned once, on all rows
            rows = n * runs * _passes(spec, n, p, values, "run_values")
            rows += n * tunings * _passes(spec, n, p, values, "tune_values")
        else:  # in blocks: each replicate is tuned on the first rows
            rows = n * runs + replicates * tunings * min(n, spec["tune"].get("rows", 10_000))
            shown = max(shown, asked)
        learned = rows * values * _models_at_once(method, data)
        found[_kind(method, values < p / 2, bool(row and not split))] += learned
    if sampled:
        found[DRAWN] = more(spec["replicates"], DRAWN, n) * p**2
    if shown:
        rows = n * more(shown, "rows") * values
        found[f"rows of {data.get('simulate') or data['dataset']}"] = rows
    return found


def _row_values(row: Mapping[str, Any]) -> float:
    """Nonzeros of a row; where the registry does not count them, a guess: 100 of many columns."""
    if row["train_nonzeros"]:
        return row["train_nonzeros"] / row["n_train"]
    return row["n_features"] if row["n_features"] <= 10_000 else 100


def _kind(method: Mapping[str, Any], sparse: bool, in_memory: bool) -> str:
    where = " in memory" * in_memory
    return f"{method['class']} on {'sparse' if sparse else 'dense'} rows{where}"


def _models_at_once(method: Mapping[str, Any], data: Mapping[str, Any]) -> float:
    """How many models of other methods take as long: a penalty of many, a tenth of one."""
    cls, own = class_of(method, k=data.get("k"))
    if not hasattr(cls, "step_all") or own.get("k") is None:
        return 1.0
    return max(1.0, cls(**own).n_penalties / 10)


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
    ran: dict[str, dict[str, Any]] = {}
    lacking: set[tuple[str, str, str]] = set()
    for file in sorted(Path(work.root, "figures").glob("**/PROVENANCE.json")):
        for entry, facts in provenance.read(file).items():
            took |= facts.get("took", {})
            lacking |= {(facts["scale"], entry, dataset) for dataset in facts["missing"]}
    for file in sorted(Path(work.root, "results").glob("*/*/*.json")):
        record = json.loads(file.read_text(encoding="utf-8"))
        result = file.relative_to(work.root).with_suffix(".csv").as_posix()
        took[result] = record["cpu_s"], record["memory_mb"]
        ran[result] = record["spec"]
        if record["missing"]:
            del took[result]
    scales = {file.split("/")[1] for file in took} & {*project.scales(work.root)}
    found = []
    for scale in sorted(scales):
        made = project.load(work.root, scale=scale)
        # Those too that were runs of their own when the figures were made
        each = {
            made.result(name, setting.name).as_posix(): setting
            for name, entry in made.entries.items()
            for setting in entry.settings
        }
        for file, setting in (each | dict(archive.results(made))).items():
            # Without its data set a run takes no time
            absent = (scale, setting.spec["experiment"], setting.dataset) in lacking
            if file in took and took[file][0] and (file in ran or not absent):
                # The work of the run as it was, which the setting may not be any more
                of_run = work_of(ran.get(file, setting.spec), work.row_of(setting))
                found.append(Measured(file, *took[file], of_run))
    return found


def times(work: project.Project) -> list[Measured]:
    """What single methods took: the learning times beside results, and those shown in figures."""
    tables = {
        (facts["scale"], name): file.with_name(f"{name}_time.csv")
        for file in sorted(Path(work.root, "figures").glob("**/PROVENANCE.json"))
        for name, facts in provenance.read(file).items()
    }
    scales = {scale for scale, _ in tables} | {p.name for p in Path(work.root).glob("results/*")}
    found = []
    for scale in sorted(scales & {*project.scales(work.root)}):
        made = project.load(work.root, scale=scale)
        for file, setting in archive.results(made):
            shown = Path(work.root, file)
            if not shown.is_file():
                shown = tables.get((scale, setting.spec["experiment"]))
            if file.endswith(".time.csv") and shown and shown.is_file():
                found += _times(file, setting, shown)
    return found


def _times(file: str, setting: Setting, shown: Path) -> Iterator[Measured]:
    """The learning times of a setting in a table, of results or as it is shown."""
    took: dict[str, list[float]] = defaultdict(list)
    with shown.open(newline="", encoding="utf-8") as lines:
        for row in csv.DictReader(lines):
            value = row.get("value") or row.get("ours")
            here = all(row[axis] == str(at) for axis, at in setting.spec["axes"].items())
            if here and row["metric"] == "time_s" and value:
                took[row["method"]] += [float(value)] * int(row.get("replicates") or 1)
    for label in took.keys() & setting.spec["methods"].keys():
        method, runs = setting.spec["methods"][label], {"replicates": len(took[label])}
        method = method | runs if "replicates" in method else method
        own = work_of(setting.spec | runs | {"methods": {label: method}})
        learning = {k: a for k, a in own.items() if k == SUMMED or " on " in k}
        if seconds := sum(took[label]):
            yield Measured(f"{file} {label}", seconds, 0, learning)


def _work(work: project.Project, setting: Setting) -> dict[str, float]:
    return work_of(setting.spec, work.row_of(setting))


# -------------------------------------------------- rates


def rates(known: Iterable[Measured], times: Iterable[Measured] = ()) -> dict[str, float]:
    """Seconds that a unit of each kind of work takes.

    A method whose learning times are known takes about these. Others that are always run together
    are each taken to be as their like ("on dense rows"), as far as the measured runs allow.
    """
    known = list(known)
    likes = [{_like(kind): 0.0 for kind in one.work} for one in known]
    for like, one in zip(likes, known, strict=True):
        for kind, amount in one.work.items():
            like[_like(kind)] += amount
    took = [one.seconds for one in known]
    common = _fitted(likes, took, {}, {})
    start = {kind: common[_like(kind)] for one in known for kind in one.work}
    total: dict[str, np.ndarray] = defaultdict(lambda: np.zeros(2))
    for one in times:
        for kind, amount in one.work.items():
            total[kind] += one.seconds, amount
    firm = {kind: float(seconds / amount) for kind, (seconds, amount) in total.items()}
    return common | firm | _fitted([one.work for one in known], took, start, firm)


def _fitted(works: list[dict], took: list[float], about: dict, firm: dict) -> dict[str, float]:
    """Rates of at least 0, by squared errors as shares of the root of the time.

    Near `about`, and nearer to those that are `firm`.
    """
    kinds = sorted({kind for work in works for kind in work})
    unit = {kind: max(work.get(kind, 0.0) for work in works) or 1.0 for kind in kinds}
    A = np.array([[work.get(kind, 0.0) / unit[kind] for kind in kinds] for work in works])
    weight, target = 1 / np.sqrt(took), np.sqrt(took)
    A = A * weight[:, None]
    about = {kind: rate for kind, rate in (about | firm).items() if rate and kind in unit}
    near = np.array([FIRM if kind in firm else NEAR for kind in about])
    pull = np.zeros((len(about), len(kinds)))
    for i, (kind, rate) in enumerate(about.items()):
        pull[i, kinds.index(kind)] = near[i] / (rate * unit[kind])
    found, _ = nnls(np.vstack([A, pull]), np.concatenate([target, near]))
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


def errors(known: list[Measured], times: list[Measured]) -> tuple[float, float]:
    """Each half of the settings predicted from the other half, and from times of single methods.

    Returns the factor that half of the predictions are within, and the ratio of the sums.
    """
    halves = [known[half::2] for half in (0, 1)]
    told = [
        (seconds(one.work, rate), one.seconds)
        for part, other in (halves, halves[::-1])
        for rate in [rates(other, times)]
        for one in part
    ]
    ratios = np.array([predicted / took for predicted, took in told])
    factor = np.exp(np.median(np.abs(np.log(np.maximum(ratios, 1e-3)))))
    return float(factor), sum(p for p, _ in told) / sum(t for _, t in told)


# -------------------------------------------------- the plan


def plan(
    work: project.Project,
) -> tuple[list[dict[str, Any]], list[Measured], list[Measured]]:
    """What each entry with runs of its own will cost at a scale, and what that is told from.

    That are runs (`measured`), and learning times of single methods (`times`).

    Keys of an entry: entry, runs (those that measure times among them), here (made already, and
    still right), shipped (not here, but to be had of the archive that comes with the checkout),
    replicates (of its settings: the fewest and the most), core_hours (what a run took that is here
    or shipped; else at the rates), left_hours (of those neither here nor shipped), memory_mb (the
    most that one of its runs took, or reserves), unknown (runs of which nothing alike was measured,
    so that their hours are not counted), missing (data sets that could not be had when they were
    last tried for) and without_data (hours of the runs that need these, which are in no other count
    of hours; sets that were never tried for are taken as there).

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
    single, packed = times(work), archive.to_be_had(work)
    lacking = {record["name"] for record in records.missing(work.datasets)}
    rate, took = rates(known, single), {one.file: one for one in known}
    rows: dict[str, dict[str, Any]] = {}
    for file, setting in archive.results(work):
        row = rows.setdefault(setting.spec["experiment"], _new_row())
        here, own = not archive.state(file, setting), _work(work, setting)
        there, same = here or file in packed, took.get(file)
        hours = (same.seconds if there and same else seconds(own, rate)) / 3600
        row["runs"] += 1
        row["here"] += here
        row["shipped"] += there and not here
        row["replicates"] += [part["replicates"] for part in setting.parts]
        row["memory_mb"] = max(row["memory_mb"], same.memory_mb if same else work.mem_mb(setting))
        if setting.dataset in lacking and not there:
            row["without_data"] += hours
            row["missing"] = sorted({*row["missing"], setting.dataset})
            continue
        row["unknown"] += not is_known(own, rate)
        row["core_hours"] += hours
        row["left_hours"] += 0.0 if there else hours
    for row in rows.values():
        row["replicates"] = [min(row["replicates"]), max(row["replicates"])]
    return [{"entry": name, **row} for name, row in rows.items()], known, single


def expected(work: project.Project) -> dict[str, float]:
    """Seconds that each file of results of a scale takes, as far as what was measured tells."""
    known = measured(work)
    if len(known) < 2:
        return {}
    rate, found = rates(known, times(work)), {}
    lacking = {record["name"] for record in records.missing(work.datasets)}
    lacking |= {*work.datasets} if work.real_data == "none" else set()
    for file, setting in archive.results(work):
        own = {START: 1} if setting.dataset in lacking else _work(work, setting)
        if is_known(own, rate):
            found[file] = seconds(own, rate)
    return found


def _new_row() -> dict[str, Any]:
    """An entry of which no run is counted yet."""
    numbers = dict.fromkeys(["runs", "here", "shipped", "memory_mb", "unknown"], 0)
    hours = dict.fromkeys(["core_hours", "left_hours", "without_data"], 0.0)
    return {**numbers, "replicates": [], **hours, "missing": []}
