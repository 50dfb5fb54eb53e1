"""What a version of config/versions.yaml stands for, made again on small data: numbers by case.

Parameters stand in config/proof.yaml. The data are small, and have a shape for each path of a
kernel; their signal is clear, so that rounding does not change which features are selected.
"""

import re
import tempfile
import warnings
from collections.abc import Iterator
from functools import cache
from itertools import chain, product
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import scipy.sparse as sp
import yaml
from sklearn.base import BaseEstimator
from sklearn.datasets import dump_svmlight_file
from sklearn.utils import get_tags
from threadpoolctl import threadpool_limits

import ofslib
from ofslib import datasets, simulate, wishart
from ofslib.datasets.registry import READERS
from ofslib.metrics import METRICS
from ofslib.reproduction import experiment, splits, tracking
from ofslib.reproduction.experiment import EXPECTED
from ofslib.reproduction.methods import build, find_class, fit, installed, show
from ofslib.reproduction.statements import STATEMENTS
from ofslib.streams.row_stream import RowStream

PARAMETERS = "config/proof.yaml"
SUMS = "ofslib.averages:RunningAverages"
# Rows, features and the share of them that is filled. Features take three tiles of 64. The rows
# that are rare touch few features, which some kernels go through alone; those that are thin
# are added to averages at once (`averages._is_thin`).
FORMS = {
    "dense": (400, 150, 1.0),
    "sparse": (400, 150, 0.1),
    "rare": (600, 3000, 0.0007),
    "thin": (2400, 300, 0.004),
}
# Keys of a case that are no parameters of the class.
ABOUT_THE_ROWS = ("rows", "classes", "blocks", "form", "adapt", "merge")
LEARNED = "coef_ intercept_ scores_ weights_ online_score_ l1_".split()
LEARNED += "n weight mean_x mean_y S_xx S_xy S_yy peak_features_".split()
TASKS = ("regression", "classification")
NOTHING = "nothing to compute", {"witnesses": 0}
TIMES = re.compile("time_s|.*_s|cores")  # metrics that no two runs share

Numbers = dict[str, Any]


def known() -> dict[str, list[str]]:
    """Names that must have a version, by the sections of config/versions.yaml."""
    # Entries name classes and functions of ofslib.reproduction in one form only.
    texts = [file.read_text("utf-8") for file in sorted(Path("config/experiments").glob("*.yaml"))]
    named = set(re.findall(r"\b(class|function): [\"']?(ofslib\.[\w.]+:\w+)", "\n".join(texts)))
    peers = sorted({SUMS, *(name for key, name in named if key == "class")})
    return {
        "methods": [*sorted(chain(*ofslib.ESTIMATORS.values())), *peers],
        "rows": ["experiment", *simulate.DESIGNS, "averages", "split", *sorted(READERS)],
        "metrics": [*dict.fromkeys((*METRICS, *EXPECTED)), "tracking"],
        "studies": sorted(name for key, name in named if key == "function"),
        "statements": [f"{s.paper} {s.item}" for s in STATEMENTS],
    }


def lacking(section: str, name: str) -> str:
    """Why a method cannot be run here, or nothing."""
    methods = {name: {"class": name}} if section == "methods" else {}
    return installed({"methods": methods})[1].get(name, "")


def numbers(section: str, name: str) -> Iterator[tuple[str, Numbers]]:
    """Each case of a name, and what it gives: numbers and arrays by quantity."""
    # So few rows converge to nothing; for such small matrices threads wait more than they work.
    with warnings.catch_warnings(action="ignore"), threadpool_limits(1):
        yield from _SECTIONS[section](name)


@cache
def _parameters() -> dict[str, dict[str, list]]:
    return yaml.safe_load(Path(PARAMETERS).read_text("utf-8"))


def _cases(section: str, name: str) -> list[dict[str, Any]]:
    found = _parameters()[section].get(name, [])
    return [*chain(*(case if isinstance(case, list) else [case] for case in found))]


def _words(given: dict[str, Any]) -> str:
    return ", ".join(f"{key}={value}" for key, value in given.items()) or "defaults"


# ------------------------------------------------------------------------------------- methods


@cache
def example(form: str, target: str) -> tuple[Any, np.ndarray]:
    """Rows of a form, and targets: "number", "sign" or "three" classes."""
    n, p, share = FORMS[form]
    rng, true = np.random.default_rng(5), np.linspace(3, p - 1, 5).astype(int)
    X = (rng.standard_normal((n, p)) + 0.3) * rng.uniform(0.7, 1.5, p)
    if share < 1:
        X *= rng.random((n, p)) < np.where(np.isin(np.arange(p), true), max(0.4, share), share)
    margins = X[:, true] @ [3.0, -2.5, 2.2, -2.0, 1.8] + 0.3 * rng.standard_normal(n)
    if target == "number":
        y = margins + 1.0
    elif target == "sign":
        y = np.where(margins > np.median(margins) - 0.2, 1.0, -1.0)
    else:
        y = np.argmax(X[:, true] @ np.eye(5, 3) + 0.1 * rng.standard_normal((n, 3)), axis=1) * 1.0
    return (sp.csr_array(X) if form != "dense" else X), y


def _method(name: str) -> Iterator[tuple[str, Numbers]]:
    cls = find_class(name)
    model = build({"class": name}, n_features=1, design=None)
    tags = get_tags(model) if isinstance(model, BaseEstimator) else None
    cases: list[dict[str, Any]] = [{}]
    cases += [{"n_passes": 3}] if hasattr(model, "n_passes") else []
    cases += [{"blocks": 70}] if hasattr(cls, "partial_fit") else []
    if tags and tags.classifier_tags and tags.classifier_tags.multi_class:
        cases.append({"classes": 3})
    forms = ["dense", "sparse"] if tags is None or tags.input_tags.sparse else ["dense"]
    forms += ["rare"] if issubclass(cls, RowStream) else []
    for given in cases + _cases("methods", name):
        for form in [given["form"]] if "form" in given else forms:
            # Vowpal Wabbit has numbers of single precision.
            single = ", float32" if getattr(cls, "requires", "") == "vowpalwabbit" else ""
            yield f"{form}, {_words(given)}{single}", _learned(name, form, given)


def _learned(name: str, form: str, given: dict[str, Any]) -> Numbers:
    own = {key: value for key, value in given.items() if key not in ABOUT_THE_ROWS}
    design = simulate.AvazuShaped(p=FORMS[form][1], k=5)
    known = {"k": 5, "random_state": 0, "n_features": design.p, "design": design}
    model = build({"class": name, **own}, **known)
    X, y = example(form, _target(model, given))
    X, y = X[: given.get("rows")], y[: given.get("rows")]
    if name == SUMS:
        _sum_up(model.adapt(given.get("adapt")), X, y, given)
    elif "blocks" in given:
        classes = {"classes": np.unique(y)} if hasattr(model, "decision_function") else {}
        for start in range(0, len(y), given["blocks"]):
            part = slice(start, start + given["blocks"])
            # As columns lie in memory, which is a path of its own
            rows = X[part] if sp.issparse(X) else np.asfortranarray(X[part])
            model.partial_fit(rows, y[part], **classes)
    else:
        (fit if hasattr(model, "fit") else show)(model, X, y)
    wanted = LEARNED if hasattr(model, "coef_") else [*LEARNED, "support_"]
    found = {each: getattr(model, each) for each in wanted if hasattr(model, each)}
    for method in ("decision_function", "predict", "transform"):
        if hasattr(model, method):
            return found | {method: splits._dense(getattr(model, method)(X[:50]))}
    return found


def _target(model: Any, given: dict[str, Any]) -> str:
    if "classes" in given:
        return "three"
    of_numbers = getattr(model, "loss", "") == "squared_error" or "Regressor" in repr(type(model))
    return "number" if of_numbers or hasattr(model, "standardized") else "sign"


def _sum_up(model, X, y, given) -> None:
    half = len(y) // 2
    for part in slice(half), slice(half, None):
        if "merge" in given:
            model.merge(type(model)(X.shape[1]).update(X[part], y[part]))
        else:
            model.update(X[part], y[part])


# ---------------------------------------------------------------------------------------- rows


def _row_maker(name: str) -> Iterator[tuple[str, Numbers]]:
    if name in simulate.DESIGNS:
        for given in _cases("rows", name):
            own = {key: value for key, value in given.items() if key != "n"}
            yield _words(given), _drawn(simulate.DESIGNS[name](**own), given["n"])
    elif name in READERS:
        yield NOTHING  # tests/test_datasets.py holds what each reads against what was written
    else:
        yield from {"averages": _sampled, "experiment": _run, "split": _split}[name]()


def _drawn(design: Any, n: int) -> Numbers:
    found = {f"stream, {key}": value for key, value in _stacked(design.stream(n, _rng())).items()}
    for call in ("sample", "test_stream"):
        if hasattr(design, call):
            drawn = getattr(design, call)(50, _rng())
            drawn = _stacked([drawn] if call == "sample" else drawn)
            found |= {f"{call}, {key}": value for key, value in drawn.items()}
    law, w = design.at(7) if hasattr(design, "at") else design, np.linspace(-1, 1, design.p)
    found |= {key: getattr(law, key) for key in ("support", "coef") if hasattr(law, key)}
    if isinstance(design, simulate.Drifting):
        return found | {"coef_at": design.coef_at(7), "rmse": design.rmse(w, 0.5, 7)}
    if getattr(law, "task", "classification") == "regression":
        return found | {"rmse": law.rmse(w, 0.5)}
    return found | ({"auc": law.auc(w)} if hasattr(law, "auc") else {})


def _rng() -> np.random.Generator:
    return np.random.default_rng(3)


def _stacked(blocks) -> Numbers:
    X, y = zip(*(block[:2] for block in blocks), strict=True)
    return {"X": np.vstack([splits._dense(part) for part in X]), "y": np.concatenate(y)}


def _sampled() -> Iterator[tuple[str, Numbers]]:
    """For few rows, for more, and for more than are drawn at once."""
    p, beta = 60, np.linspace(-1, 1, 60)
    factor = np.linspace(0.5, 1, p)[:, None]
    low_rank = wishart.LowRank(np.linspace(1, 2, p), factor)
    laws = {"low rank": low_rank, "full": np.diag(low_rank.diagonal) + factor @ factor.T}
    for n, law, task in product((15, 45, 300, 3 * wishart.ROWS), laws, TASKS):
        drawn = wishart.sample_averages(n, laws[law], beta, 0.5, task, _rng())
        found = {key: getattr(drawn, key) for key in LEARNED if hasattr(drawn, key)}
        yield f"{law}, {task}, n={n}", found


def _table() -> tuple[np.ndarray, np.ndarray]:
    """Values that all formats can hold."""
    rng = _rng()
    X = rng.integers(0, 200, (1500, 8)) * (rng.random((1500, 8)) < 0.7)
    return X.astype(float), np.where(X[:, 0] > X[:, 1], 7, 2)


class Given(BaseEstimator):
    """The mean of y x times what a run gives to a method, in the order in which it comes."""

    def __init__(self, scale=1.0, k=1, maturity=0, n_passes=1, random_state=0):
        self.scale, self.k, self.maturity = scale, k, maturity
        self.n_passes, self.random_state, self.coef_ = n_passes, random_state, 0.0
        self.intercept_ = random_state % 1000 / 1000

    def fit(self, X, y):
        self.coef_, self.online_score_ = 0.0, 1.0 / (1.0 + abs(self.scale - 2.0))
        return self.partial_fit(X, y)

    def partial_fit(self, X, y, classes=None):
        known = self.scale * (1 + self.n_passes + self.k / 10 + self.maturity / 1e4)
        self.coef_ = 0.9 * self.coef_ + known * (y @ X) / len(y)
        return self

    def predict(self, X):
        return X @ self.coef_ + self.intercept_


def _run() -> Iterator[tuple[str, Numbers]]:
    """Seeds, tuning, passes and sweeps of reproduction/experiment.py."""
    (spec,), (X, y) = _cases("rows", "experiment"), _table()
    data = SimpleNamespace(X_train=X[:5], y_train=y[:5], X_test=X[5:50], y_test=y[5:50])
    for asked in ({}, {"tune": {}, "passes": 1}):
        for place, own in {"blocks": {}, "memory": {"data": {"dataset": "proof", "k": 2}}}.items():
            told = experiment.run(spec | asked | own, data if own else None, progress=False)
            rows = told.astype(object).where(told.notna(), None).to_dict("records")
            yield f"{place} {sorted(asked)}", _columns(rows, "metric")


def _split() -> Iterator[tuple[str, Numbers]]:
    X, y = _table()
    with tempfile.TemporaryDirectory() as folder:
        file, table = Path(folder, "rows.svm"), Path(folder, "datasets.csv")
        dump_svmlight_file(X / 8, y, str(file), zero_based=False)
        head, start = "name,reader,train,task,n_features", f"libsvm,{file}"
        tasks = f"labels,{start},classification,8\nnumbers,{start},regression,8"
        table.write_text(f"{head}\n{tasks}\n")
        for data in _cases("rows", "split"):
            split, seeds = splits.read(data, folder, table), np.random.SeedSequence(3).spawn(2)
            found = {}
            for part in ("train", "tests"):
                drawn = _stacked(getattr(split, part)(seeds))
                found |= {f"{part}, {key}": value for key, value in drawn.items()}
            yield _words(data), found


# ------------------------------------------------------------------------------------- metrics


class _Means:
    """The mean of y x: so plain a model that no method has a part in what is measured of it."""

    def __init__(self, p: int, signs: bool = False) -> None:
        self.p, self.signs, self.sums = p, signs, np.zeros(p)
        self.n_samples_seen_, self.losses, self.intercept_ = 0, 0.0, 0.25

    @property
    def coef_(self) -> np.ndarray:
        w = self.sums / max(1, self.n_samples_seen_)
        return np.where(np.abs(w) > np.median(np.abs(w)), w, 0.0)

    @property
    def online_loss_(self) -> float:
        return self.losses / self.n_samples_seen_

    def partial_fit(self, X, y, classes=None):
        self.losses += 0.5 * np.sum((y - self.decision_function(X)) ** 2)
        self.sums, self.n_samples_seen_ = self.sums + X.T @ y, self.n_samples_seen_ + len(y)

    def fit_averages(self, averages, copy=True):
        self.sums, self.n_samples_seen_ = averages.S_xy, 1
        return self

    def decision_function(self, X) -> np.ndarray:
        return X @ self.coef_ + self.intercept_

    def predict(self, X) -> np.ndarray:
        found = self.decision_function(X)
        return np.where(found > 0, 1.0, -1.0) if self.signs else found


def _metric(name: str) -> Iterator[tuple[str, Numbers]]:
    if name == "tracking":
        yield from _tracked()
        return
    of_one = {"RMSE": TASKS[:1], "R2": TASKS[:1], "AUC": TASKS[1:], "accuracy": TASKS[1:]}
    for task in of_one.get(name, TASKS):
        design = simulate.Equicorrelated(60, 6, task=task, beta=(0.2, 1.0))
        model = _Means(60, task == "classification")
        X, y = design.sample(300, _rng())
        model.partial_fit(X, y)
        found = {"of the law": EXPECTED[name](model, design)} if name in EXPECTED else {}
        if name in METRICS:
            found["of rows"] = METRICS[name](model, *design.sample(200, _rng()), design.support)
        yield task, found


def _tracked() -> Iterator[tuple[str, Numbers]]:
    yield "checkpoints", {"rows": tracking.checkpoints(10, 3000, 4)}
    model, law = {"m": _Means(30)}, {"p": 30, "k": 3}
    design = simulate.Drifting(**law, a=0.4, b=0.6, period=10, step_rows=20)
    yield "drift", _columns(tracking.drift(design, model, 400, _rng(), 4, 5), "metric")
    for task in TASKS:
        design = simulate.Changing(**law, task=task, period=5, step_rows=20)
        seen = tracking.recovery(design, {"m": _Means(30)}, 400, _rng(), 2, 60)
        yield f"recovery, {task}", _columns(seen, "metric")
    design, ends = simulate.Equicorrelated(**law), [10, 40, 200]
    for regret in (tracking.regret_from_averages, tracking.regret_from_rows):
        seen = regret(design, {"m": _Means(30)}, ends, _rng())
        yield regret.__name__, _columns(seen, "metric")


# -------------------------------------------------------------------------- studies, statements


@cache
def _data(name: str) -> datasets.Dataset:
    """Three classes of images, or two of texts."""
    rng, n = _rng(), 120
    labels = rng.integers(0, 3 if name == "images" else 2, n)
    if name == "images":
        X = rng.uniform(0, 9, (n, 30)) + 5 * np.eye(3, 30)[labels]
    else:
        filled = rng.random((n, 40)) < 0.15 + 0.5 * (np.arange(40) % 7 == labels[:, None])
        X = sp.csr_array(filled * rng.integers(1, 5, (n, 40)) * 1.0)
    return datasets.Dataset(name, X[:80], labels[:80], X[80:], labels[80:])


def _study(name: str) -> Iterator[tuple[str, Numbers]]:
    if not (cases := _cases("studies", name)):
        yield NOTHING  # it measures times
    for number, given in enumerate(cases):
        own = {key: value for key, value in given.items() if key not in ("data", "setting")}
        data = _data(given["data"]) if "data" in given else None
        rows = find_class(name)(given.get("setting", {}), np.random.SeedSequence(7), data, **own)
        yield f"{number}", _columns(rows, "metric", "panel", "method")


def _columns(rows, *keys: str) -> Numbers:
    """Values by their metric; those that are times are only counted."""
    found: dict[str, list[float]] = {}
    for row in rows:
        label = ", ".join(str(row[key]) for key in keys if row.get(key) is not None)
        is_time = TIMES.fullmatch(row.get("metric", ""))
        value = 1.0 if is_time else np.inf if row["value"] is None else row["value"]
        found.setdefault(label, []).append(value)
    return {label: np.array(values, float) for label, values in found.items()}


def _statement(name: str) -> Iterator[tuple[str, Numbers]]:
    statement = next(s for s in STATEMENTS if f"{s.paper} {s.item}" == name)
    if statement.witness is None:
        yield NOTHING
        return
    shown = statement.witness()
    verdicts = (-1 if each is None else int(each) for each in shown[:3])
    yield "witness", dict(zip(shown._fields, verdicts, strict=False)) | shown.numbers


_SECTIONS = {
    "methods": _method,
    "rows": _row_maker,
    "metrics": _metric,
    "studies": _study,
    "statements": _statement,
}
