"""One setting of a table or figure, or several whose rows are the same -> tidy rows.

A setting is what `project` makes of an entry of config/experiments: a dict with the data, the
methods and their parameters, the number of replicates and the seed. Equal settings give equal
results, whatever else runs and in whatever order; several at once give what each gives alone.
"""

import hashlib
import itertools
import json
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import fields
from numbers import Integral
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
from tqdm import tqdm

from ofslib import wishart
from ofslib.metrics import (
    METRICS,
    SAID,
    SCORES,
    NotFinite,
    check_finite,
    detection_rate,
    said,
    selected_features,
)
from ofslib.reproduction import identity, store, tracking, tuning
from ofslib.reproduction.methods import (
    build,
    find_class,
    fit,
    guarded,
    installed,
    learn,
    model_key,
    models_of,
    named,
    points,
    shuffles,
    stacked,
)
from ofslib.simulate import DESIGNS

# What a method of a user's may lack: a metric that needs it is left out.
LEARNED = ("predict", "decision_function", "coef_", "intercept_", "support_")

# Metrics of a model where the law of new rows is known, without test rows.
EXPECTED = {
    "DR": lambda model, design: detection_rate(selected_features(model), design.support),
    "selected": lambda model, design: len(selected_features(model)),
    # scikit-learn's classifiers have coefficients of shape (1, p).
    "RMSE": lambda model, design: design.rmse(np.ravel(model.coef_), *np.ravel(model.intercept_)),
    "AUC": lambda model, design: design.auc(np.ravel(model.coef_)),
}

# What stands for the replicate where methods are tuned.
_TUNING = -1 % 2**32

# Coefficients of all models that are shown the same rows at once; with more, one model after the
# other is, so that memory is that of one.
AT_ONCE = 10**7


def run(setting: dict[str, Any], data: Any = None, progress: bool = True) -> pd.DataFrame:
    """All replicates and methods of a setting, or of the settings that are its `parts`.

    Of these, the replicates from `first` on that the setting has.

    Parameters
    ----------
    setting : dict
        As `project.Setting.spec`.
    data : datasets.Dataset or splits.Split, optional
        The real data set that the setting names, in memory, or split by a rule of the entry; None
        if the setting simulates its data.
    progress : bool, default=True
        Whether to show how many replicates remain.

    Returns
    -------
    DataFrame
        Columns: experiment, the setting's axes, method, the swept parameters, replicate, metric,
        value; note, why a value is missing; empty, 1 where a model selects nothing, and beyond, 1
        where one keeps more features than the k of the data, or, on a data set in memory, than the
        k that the setting gives to it; own_passes, 1 where others pass several times over a data
        set in memory and a class without `n_passes` decides that itself; each only if there is such
        a model. Metric time_s is the processor time that learning took, without generating or
        reading data.
    """
    found, parts = rows(setting, data, progress), setting.get("parts", [setting])
    told, axes = [], ["experiment", *parts[0]["axes"]]
    for part, own in zip(parts, found, strict=True):
        for label, reason in installed(part)[1].items() if setting.get("first", 0) == 0 else ():
            own += absent(part, reason, label)
        at = {"experiment": part["experiment"], **part["axes"]}
        told += [at | {name: v for name, v in row.items() if name != "step"} for row in own]
    return pd.DataFrame(told, columns=None if told else axes)


def run_stored(setting: dict[str, Any], data: Any = None, lacking: str = "") -> pd.DataFrame:
    """As `run`, but what is stored is not run, and what is new is stored.

    Parameters
    ----------
    setting, data
        As in `run`.
    lacking : str, optional
        Why the data set could not be had: rows that say so stand for what is not stored.
    """
    here, parts = store.folder(), setting.get("parts", [setting])
    new, gaps = [], defaultdict(list)
    for result in identity.results(setting):
        part, label = parts[result.part], result.label
        if here.has(result):
            continue
        if reason := lacking or installed(part)[1].get(label):
            gaps[result.part] += absent(part, reason, label)
        else:
            new.append(result._replace(first=here.missing(result)))
    if new:
        first = {(result.part, result.label): result.first for result in new}
        store.keep(setting, rows(setting, data, first=first), new)
    return store.assemble(setting, store.folder(), gaps)


def rows(
    setting: dict[str, Any],
    data: Any = None,
    progress: bool = True,
    first: Mapping[tuple[int, str | None], int] | None = None,
) -> list[list[dict[str, Any]]]:
    """The rows of each part of a setting, as dicts, without those that are not installed.

    Key step: where a row stands among those of other methods in its replicate. Times do not contain
    the compilation of kernels: where they are measured, each method is first run on a few rows.

    Parameters
    ----------
    setting, data, progress
        As in `run`.
    first : mapping, optional
        (place of a part, label of a method or None) -> the replicate from which on it is run. What
        is not named is not run; but running averages are, where a named method learns from them.
        None: all methods, all replicates.
    """
    parts = setting.get("parts", [setting])
    here = [installed(part)[0] for part in parts]
    start = setting.get("first", 0)
    if first is not None:
        here = [_only(part, place, first) for place, part in enumerate(here)]
        start = min(first.values(), default=setting["replicates"])
    if "time_s" in setting["metrics"]:
        warm_up({**setting, "methods": here[0]["methods"]})
    in_memory = data is not None and not (setting["study"] or hasattr(data, "train"))
    tuned = {
        label: _tuned(here[0], _rows_for(here[0], data, spec, _TUNING), spec)
        for label, spec in (here[0]["methods"].items() if in_memory else ())
    }  # once for all replicates
    found = [[] for _ in parts]
    replicates = range(start, setting["replicates"])
    for replicate in tqdm(replicates, disable=not progress, desc=setting["name"]):
        if setting["study"]:
            found[0] += _studied(here[0], replicate, data)
        elif setting["track"]:
            found[0] += _tracked(here[0], replicate)
        elif in_memory:
            found[0] += _in_memory(here[0], replicate, data, tuned)
        else:
            for place, row in _in_blocks(here, replicate, data or _Drawn(setting)):
                found[place].append(row)
    return found


def _only(part: dict[str, Any], place: int, first: Mapping) -> dict[str, Any]:
    """A part with the methods that are to be run, each from its replicate on."""
    from_ = {label: at for (where, label), at in first.items() if where == place}
    methods = {
        label: spec | {"first_replicate": from_[label]}
        for label, spec in part["methods"].items()
        if label in from_
    }
    if any(hasattr(find_class(spec["class"]), "fit_averages") for spec in methods.values()):
        methods = {
            label: {**spec, "first_replicate": min(from_.values())} | methods.get(label, {})
            for label, spec in part["methods"].items()
            if label in methods or hasattr(find_class(spec["class"]), "standardized")
        }
    return part if part["study"] else {**part, "methods": methods}


def absent(setting: dict[str, Any], reason: str, label: str | None = None) -> list[dict[str, Any]]:
    """Rows without a value that say why there is none: data or a package that are not here.

    Of one method, or of all.
    """
    methods = {k: spec for k, spec in setting["methods"].items() if label in (None, k)}
    return [
        {"method": name, **point, "replicate": 0, "metric": metric, "value": None, "note": reason}
        for name, spec in (methods or {None: {}}).items()
        for point in points(spec.get("sweep", setting["sweep"]))
        for metric in setting["metrics"] or [None]
    ]


def _seeds(setting: dict[str, Any], replicate: int, rows: bool = False) -> np.random.SeedSequence:
    """Seeds by the data, not by the place in the configuration: equal data in every reading.

    `rows`: those of rows in blocks, which do not depend on n: fewer rows are the first of more.
    """
    data = {name: value for name, value in setting["data"].items() if not (rows and name == "n")}
    text = json.dumps(data, sort_keys=True)
    digest = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8])
    return np.random.SeedSequence([setting["seed"], digest, replicate])


def _generator(seed: np.random.SeedSequence) -> np.random.Generator:
    """The same for the same seed, also if others have been spawned from it meanwhile."""
    return np.random.default_rng(np.random.SeedSequence(seed.entropy, spawn_key=seed.spawn_key))


def _design(data: dict[str, Any]):
    """The design that the data of a setting name, with those of its entries that it knows."""
    cls = DESIGNS[data["simulate"]]
    known = {f.name for f in fields(cls)}
    return cls(**{name: value for name, value in data.items() if name in known})


def _having(methods: dict[str, Any], replicate: int) -> dict[str, Any]:
    """The methods that this replicate has."""
    return {
        label: spec
        for label, spec in methods.items()
        if spec.get("first_replicate", 0) <= replicate < spec.get("replicates", np.inf)
    }


def _asked(
    setting: dict[str, Any], seed: int, replicate: int = 0
) -> dict[tuple, tuple[type, dict]]:
    """Class and parameters of all models of a replicate, by label and swept parameters."""
    own = {**setting, "methods": _having(setting["methods"], replicate)}
    data = setting["data"]
    design = _design(data) if "simulate" in data else None
    rows = {"k": data.get("k"), "maturity": data["n"], "n_features": data["p"]}
    return models_of(own, random_state=seed, design=design, **rows)


class _Drawn:
    """Rows in blocks, drawn from the design that the data of a setting name."""

    averages = None  # that all methods learn from which learn from averages: each has its own

    def __init__(self, setting: dict[str, Any]):
        self.design, self.sizes = _design(setting["data"]), {}
        self.n, self.test_rows = setting["data"].get("n"), setting["test_rows"]

    def train(self, seeds):
        return self.design.stream(self.n, _generator(seeds[0]))

    def tests(self, seeds):
        rng = _generator(seeds[1])
        if self.test_rows is None:
            return None
        if hasattr(self.design, "test_stream"):
            return self.design.test_stream(self.test_rows, rng)
        return [self.design.sample(self.test_rows, rng)]


def _in_blocks(parts, replicate: int, source) -> Iterator[tuple[int, dict[str, Any]]]:
    """One replicate on rows in blocks: of a design, or of a data set that is split by a rule.

    All parts see the same rows, each as many as it has; a model that several ask for learns once.
    `source` has `train` and `tests`, which give the blocks for the seeds of a replicate, `design`
    or None, and `sizes`, what is known of n and p beyond the setting. Yields the place of a part,
    and a row of it.
    """
    *seeds, order, _ = _seeds(parts[0], replicate, rows=True).spawn(4)
    seed, models, wanted = int(order.generate_state(1)[0]), {}, []
    for place, part in enumerate(parts):
        if replicate >= part["replicates"]:
            continue
        if part["tune"]:
            tuned = {
                label: _tuned(part, _first(source.train(seeds), part["tune"]), spec)
                for label, spec in _having(part["methods"], replicate).items()
            }
            yield from ((place, row) for row in _tuning_told(part, replicate, tuned))
            methods = {label: spec for label, (spec, found) in tuned.items() if type(found) is dict}
            part = {**part, "methods": methods}
        part = {**part, "data": part["data"] | source.sizes}
        n = part["data"]["n"]
        for name, (cls, own) in _asked(part, seed, replicate).items():
            key = model_key(cls, own, n)
            models[key] = models[key] if key in models else cls(**own)
            wanted.append((place, name, (key, n)))
    scores = _scores(models, {at for *_, at in wanted}, part, replicate, source, seeds)
    for place, (label, point), at in wanted:
        # After what tuning found for any method.
        step = {"step": 1} if parts[place]["tune"] else {}
        for row in scores[at]:
            yield place, {"method": label, **dict(point), "replicate": replicate, **row, **step}


def _scores(models, wanted, setting, replicate, source, seeds) -> dict[tuple, list[dict[str, Any]]]:
    """What models score after so many rows, by `wanted`: pairs of a key and a number of rows."""
    data, averages, found = setting["data"], None, defaultdict(list)
    if data.get("averages") == "sampled":
        design = source.design
        law = wishart.LowRank(*design.low_rank()), design.coef, design.noise, design.task

        def averages(n):
            own = {**setting, "data": data | {"n": n}}
            return wishart.sample_averages(n, *law, _seeds(own, replicate).spawn(4)[3])

    wide = data["p"] * len(models) > AT_ONCE
    # First what holds all rows, so that it is refused before others have learned for hours.
    models = dict(sorted(models.items(), key=lambda item: hasattr(item[1], "partial_fit")))
    while models:
        group = {key: models.pop(key) for key in list(models)[: 1 if wide else None]}
        ends = {key: {n for own, n in wanted if own == key} for key in group}
        if source.averages and any(hasattr(model, "fit_averages") for model in group.values()):
            ends[None] = set().union(*ends.values())
            group[None] = build(source.averages, n_features=data["p"])
        for n, seconds in learn(group, ends, source.train(seeds), averages):
            here = {key: model for key, model in group.items() if (key, n) in wanted}
            for key, row in _scored(setting, here, source, seeds, seconds):
                found[key, n].append(row)
            del here  # the next averages may need its memory
    return found


def _first(blocks, tune: dict[str, Any]) -> SimpleNamespace:
    """The first training rows, on which methods are tuned."""
    parts, left = [], tune.get("rows", 10_000)
    for X, y in blocks:
        parts.append((X[:left], y[:left]))
        left -= len(y)
        if left <= 0:
            break
    X, y = stacked(parts)
    return SimpleNamespace(X_train=X, y_train=y)


def _tuning_told(setting, replicate, tuned) -> Iterator[dict[str, Any]]:
    """Rows that say what tuning found, or why it found nothing."""
    for label, (spec, found) in tuned.items():
        if isinstance(found, str):
            for row in absent({**setting, "methods": {label: spec}}, found):
                yield row | {"replicate": replicate}
        else:
            for name, value in found.items():
                row = {"method": label, "replicate": replicate, "metric": f"tuned {name}"}
                yield row | {"value": value}


def _scored(setting, models, source, seeds, seconds) -> Iterator[tuple[tuple, dict[str, Any]]]:
    """The metrics of models that have learned; one pass over the test rows for all of them."""
    tests, design = source.tests(seeds), source.design
    metrics, k = setting["metrics"], setting["data"].get("k")
    support = getattr(design, "support", None)
    heard: dict[Any, list] = {(key, m): [] for key in models for m in metrics if m in SAID}
    targets: list = []
    for X, y in tests or ():
        targets.append(y)
        for (key, metric), parts in heard.items():
            parts.append(_tried(metric, said, models[key], SAID[metric], X))
    for key, model in models.items():
        marks = _marks(model, k)
        for metric in metrics:
            if metric == "time_s":
                row = _measured(metric, lambda _, key=key: seconds[key], model)
            elif tests is None:
                row = _measured(metric, EXPECTED[metric], model, design)
            elif metric not in SAID:
                row = _measured(metric, METRICS[metric], model, None, None, support)
            elif note := next((why for _, why in heard[key, metric] if why), ""):
                row = {"metric": metric, "value": None, "note": note}
            else:
                found = np.concatenate([part for part, _ in heard[key, metric]])
                known = SCORES[metric], np.concatenate(targets), found
                row = _measured(metric, lambda _, score, *parts: score(*parts), model, *known)
            yield key, marks | row


def _marks(model, k: Any) -> dict[str, int]:
    """What makes scores of a model no scores of a method that keeps k features.

    Those without features tell of the data; of more than k features a method finds more easily.
    Where k is no number, a criterion chooses.
    """
    kept = _measured("selected", EXPECTED["selected"], model, None)["value"]
    given = isinstance(k, Integral)
    marks = {"empty": kept == 0, "beyond": bool(given and kept and kept > k)}
    return {mark: 1 for mark, given in marks.items() if given}


def _measured(metric: str, measure, model, *known) -> dict[str, Any]:
    """A metric of a model; a note instead of a value if it is not finite or lacks an attribute."""
    value, note = _tried(metric, measure, model, *known)
    if note:
        return {"metric": metric, "value": None, "note": note}
    return _finite({"metric": metric, "value": value})


def _tried(metric: str, measure, model, *known) -> tuple[Any, str]:
    """What is measured of a model, or None and why it cannot be."""
    try:
        check_finite(model)
        return measure(model, *known), ""
    except NotFinite as error:
        return None, str(error)
    except AttributeError as error:
        if error.obj is not model or error.name not in LEARNED:
            raise
        return None, f"{metric} needs {error.name}, which {type(model).__name__} lacks"
    except Exception as error:
        error.add_note(f"This is of {named(model)} as its {metric} was measured.")
        raise


def _finite(row: dict[str, Any], reason: str | None = None) -> dict[str, Any]:
    """The row, with a note, `reason` if known, instead of a value that is no number."""
    value = row["value"]
    if np.isfinite(value):
        return row
    return {**row, "value": None, "note": reason or f"{row['metric']} is not finite ({value})"}


def _tracked(setting: dict[str, Any], replicate: int) -> Iterator[dict[str, Any]]:
    """What is seen of models while they learn; in rows of method "truth" what they should learn."""
    data, design, track = setting["data"], _design(setting["data"]), setting["track"]
    train, order, moments = _seeds(setting, replicate).spawn(3)
    asked = _asked(setting, int(order.generate_state(1)[0]), replicate)
    models = {key: cls(**own) for key, (cls, own) in asked.items()}
    watched = [models]
    rows, drawn = np.random.default_rng(train), np.random.default_rng(moments)
    if "every" in track:
        follow = tracking.recovery if "level" in track else tracking.drift
        seen = follow(design, models, data["n"], rows, **track)
    else:
        ends = tracking.checkpoints(last=data["n"], **track)
        averaged = {key: m for key, m in models.items() if hasattr(m, "fit_averages")}
        others = {key: m for key, m in models.items() if key not in averaged}
        watched = [averaged, others]
        seen = itertools.chain(
            tracking.regret_from_averages(design, averaged, ends, drawn) if averaged else (),
            tracking.regret_from_rows(design, others, ends, rows) if others else (),
        )
    for row in seen:
        key = row.pop("key")
        label, point = ("truth", ()) if key is None else key
        reason = next((getattr(m[key], "reason", None) for m in watched if key in m), None)
        yield {"method": label, **dict(point), "replicate": replicate, **_finite(row, reason)}


def warm_up(setting: dict[str, Any]) -> None:
    """Compile what the setting needs, on small data, so that no time measures compilation.

    A study sees to that itself.
    """
    if setting["study"]:
        return
    few = {**installed(setting)[0], "data": {**setting["data"], "k": 10, "p": 100}}
    few["methods"] = {
        label: {**spec, "k": 10} if spec.get("k") else spec
        for label, spec in few["methods"].items()
    }
    models = {key: cls(**own) for key, (cls, own) in _asked(few, 0).items()}
    blocks = _design(few["data"]).stream(50, np.random.default_rng(0))
    for _ in learn(models, {key: {50} for key in models}, blocks):
        pass


def _studied(setting: dict[str, Any], replicate: int, data: Any) -> Iterator[dict[str, Any]]:
    """The rows of the function that the entry names."""
    parameters = dict(setting["study"])
    function = find_class(parameters.pop("function"))
    for row in function(setting, _seeds(setting, replicate), data, **parameters):
        yield {"method": None, "replicate": replicate, **row}


def _in_memory(setting, replicate: int, data, tuned) -> Iterator[dict[str, Any]]:
    """One replicate on a data set in memory."""
    seed = int(_seeds(setting, replicate).generate_state(1)[0])
    passes = tuning.number_of_passes(setting, data, setting["run_values"])
    for label, (spec, chosen) in tuned.items():
        if replicate == 0 and (type(chosen) is str or _having({label: spec}, 0)):
            yield from _tuning_told(setting, 0, {label: (spec, chosen)})
        if type(chosen) is str or not _having({label: spec}, replicate):
            continue
        rows = _rows_for(setting, data, spec, replicate)
        one = {**setting, "methods": {label: spec}}
        for (_, point), (cls, own) in models_of(one, n_passes=passes, random_state=seed).items():
            models = {None: cls(**own)}
            guarded(models, None, fit, rows.X_train, rows.y_train)
            row = {"method": label, **dict(point), "replicate": replicate}
            row |= _marks(models[None], own.get("k"))
            if passes > 1 and "n_passes" not in own:
                row["own_passes"] = 1
            for metric in setting["metrics"]:
                test = data.X_test, data.y_test, None
                yield row | _measured(metric, METRICS[metric], models[None], *test)


def _rows_for(setting: dict[str, Any], data, spec: dict[str, Any], replicate: int):
    """The training rows, in an order of the replicate for a class that does not shuffle them."""
    if shuffles(find_class(spec["class"])):
        return data
    order = np.random.default_rng(_seeds(setting, replicate)).permutation(len(data.y_train))
    return SimpleNamespace(X_train=data.X_train[order], y_train=data.y_train[order])


def _tuned(setting: dict[str, Any], data, spec: dict[str, Any]) -> tuple[dict, dict | str]:
    """As `tuning.tuned`, by a seed of its own."""
    seed = int(_seeds(setting, _TUNING).generate_state(1)[0])
    return tuning.tuned(setting, data, spec, seed)
