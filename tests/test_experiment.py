"""One setting -> rows: equal settings give equal rows, methods are strangers to each other."""

import copy
import math
import sys
import time
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import shipped
from numpy.testing import assert_allclose, assert_array_equal
from pandas.testing import assert_frame_equal
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import Lasso, SGDRegressor

from ofslib import FOFSClassifier, SGDTRegressor
from ofslib.datasets import Dataset
from ofslib.metrics import METRICS, detection_rate, selected_features
from ofslib.reproduction import experiment, methods, peers
from ofslib.simulate import DESIGNS, Equicorrelated

SEEN = []  # what the methods below note, in each test anew


class BatchLasso(Lasso):
    """A user's method without `partial_fit`."""

    def fit(self, X, y):
        SEEN.append((X.shape, y.shape, float(X.sum()), float(y.sum())))
        return super().fit(X, y)


class Streaming(SGDRegressor):
    """A user's method with `partial_fit` and a parameter that the experiment fills in."""

    def __init__(self, k=1, maturity=None, random_state=None):
        self.k, self.maturity = k, maturity
        super().__init__(eta0=1e-4, random_state=random_state)

    def fit(self, X, y):
        raise AssertionError("a method with partial_fit sees the stream")

    def partial_fit(self, X, y):
        SEEN.append((len(X), self.k, self.maturity))
        return super().partial_fit(X, y)


class Keeps(BaseEstimator):
    """A user's method that has `support_` and `predict` only, and keeps as many as it likes."""

    def __init__(self, k=1, keep=4):
        self.k, self.keep = k, keep

    def fit(self, X, y):
        self.support_ = np.argsort(-abs(y @ X))[: self.keep]
        return self

    def predict(self, X):
        return np.ones(len(X))


def busy(seconds):
    """Take that much time of the processor."""
    start = time.process_time()
    while time.process_time() - start < seconds:
        pass


class BusyBatch(BaseEstimator):
    """Learning takes a known time; predictions are nothing."""

    def fit(self, X, y):
        busy(0.02)
        self.coef_ = np.zeros(X.shape[1])
        return self


class Busy(BusyBatch):
    """The same for each block."""

    partial_fit = BusyBatch.fit


class Scored(ClassifierMixin, BaseEstimator):
    """Predicts from the first column; its scores are a known function of the parameters."""

    def __init__(self, a=0, b=0, k=1, n_passes=1, random_state=None):
        self.a, self.b, self.k, self.n_passes, self.random_state = a, b, k, n_passes, random_state

    def fit(self, X, y):
        self.online_score_ = -((self.a - 2) ** 2) - (self.b - 1) ** 2 + (self.k == 3)
        self.classes_ = np.unique(y)
        SEEN.append({"a": self.a, "b": self.b, "k": self.k, "n_passes": self.n_passes})
        return self

    def score(self, X, y):
        return -self.online_score_

    def predict(self, X):
        return np.where(_dense(X)[:, 0] > 0, 1, -1)


class FirstRows(ClassifierMixin, BaseEstimator):
    """Learns from the first ten rows alone; may put the rows in an order of its own before."""

    def __init__(self, k=1):
        self.k = k

    def fit(self, X, y):
        SEEN.append((X, y.copy()))
        self.classes_, self.coef_ = np.unique(y), np.ravel(X.T[:, :10] @ y[:10])
        return self

    def predict(self, X):
        return np.where(X @ self.coef_ > 0, 1, -1)

    def score(self, X, y):
        return float(self.predict(X) @ y)


class Shuffles(FirstRows):
    """The same with the parameters of a class that shuffles by a seed."""

    def __init__(self, k=1, shuffle=True, random_state=None, n_passes=1):
        self.k, self.shuffle, self.random_state, self.n_passes = k, shuffle, random_state, n_passes


class Broken(BaseEstimator):
    """A user's method whose model is no model, in one place of three."""

    def __init__(self, k=1, where="coef_", support=False):
        self.k, self.where, self.support = k, where, support

    def fit(self, X, y):
        self.coef_, self.intercept_, self.said = np.ones(X.shape[1]), 0.0, 0.0
        setattr(self, self.where, getattr(self, self.where) * np.nan)
        if self.support:
            self.support_ = np.arange(X.shape[1])
        return self

    def decision_function(self, X):
        return np.ones(len(X)) * self.intercept_ + self.said

    predict = decision_function


class Careless(BaseEstimator):
    """A user's method that changes the rows that it is shown, where it is told to."""

    def __init__(self, where="fit"):
        self.where = where

    def fit(self, X, y, classes=None):
        if self.where == "fit":
            X *= 0.0
        elif self.where == "targets":
            y *= -1.0
        self.classes_, self.coef_ = np.unique(y), np.ones(X.shape[1])
        return self

    partial_fit = fit

    def predict(self, X):
        if self.where == "predict":
            X *= 0.0
        return np.ones(X.shape[0])

    decision_function = predict


@pytest.fixture(autouse=True)
def forget(monkeypatch):
    """Make this module importable by name, as a user's module is, and empty what was noted."""
    monkeypatch.setitem(sys.modules, "methods_of_the_tests", sys.modules[__name__])
    SEEN.clear()


def mine(name, **parameters):
    return {"class": f"methods_of_the_tests:{name}", **parameters}


SGDT = {"class": "SGDTRegressor", "learning_rate": 1e-3, "fit_intercept": False}
SFSA = {"class": "SFSARegressor", "learning_rate": 1e-3, "fit_intercept": False}
DATA = {"simulate": "equicorrelated", "p": 60, "k": 4, "n": 300, "alpha": 0.5}
SETTING = {"experiment": "one", "name": "plain_300", "axes": {"reading": "plain", "n": 300}}
SETTING |= {"data": DATA, "methods": {"SGDT": SGDT, "SFSA": SFSA}, "seed": 5, "replicates": 3}
SETTING |= {"passes": 1, "run_values": None, "tune_values": None, "metrics": ["DR", "RMSE"]}
SETTING |= {"test_rows": 50, **{key: {} for key in ("sweep", "track", "study", "tune")}}


def setting(**changes):
    return copy.deepcopy({**SETTING, **changes})


def run(dataset=None, **changes):
    return experiment.run(setting(**changes), dataset, progress=False)


def of(table, method):
    return table[table["method"] == method].reset_index(drop=True)


# -------------------------------------------------- simulated streams


def test_rows_are_tidy_and_follow_from_the_setting_alone():
    spec = setting()
    table = experiment.run(spec, progress=False)
    assert spec == setting(), "it is not changed"
    assert [*table] == ["experiment", "reading", "n", "method", "replicate", "metric", "value"]
    assert len(table) == 2 * 3 * 2 and table["value"].notna().all()
    assert not table.duplicated(["method", "replicate", "metric"]).any()
    turned = dict(reversed(DATA.items()))
    two = table[table["replicate"] < 2].reset_index(drop=True)
    assert_frame_equal(two, run(data=turned, replicates=2), check_exact=True)
    errors = table["metric"] == "RMSE"
    assert (run(seed=6)["value"] != table["value"])[errors].all()
    assert table[errors].groupby("method")["value"].nunique().tolist() == [3, 3]


def test_users_classes_see_the_stream_and_are_scored_as_by_hand():
    """On training and test rows that are drawn by seeds of their own."""
    own = {"mine": mine("BatchLasso", alpha=0.1), "in blocks": mine("Streaming")}
    table = run(methods=own, replicates=1)
    assert SEEN.pop()[0] == (300, 60)
    assert {seen[1:] for seen in SEEN} == {(4, 300)} and sum(seen[0] for seen in SEEN) == 300
    design = DESIGNS["equicorrelated"](p=60, k=4, alpha=0.5)
    train, test, _ = experiment._seeds(setting(), 0, rows=True).spawn(3)
    model = Lasso(alpha=0.1).fit(*design.sample(300, np.random.default_rng(train)))
    X, y = design.sample(50, np.random.default_rng(test))
    rmse = math.sqrt(np.square(y - model.predict(X)).mean())
    found = of(table, "mine").set_index("metric")["value"]
    assert found["RMSE"] == pytest.approx(rmse, rel=1e-9)
    assert found["DR"] == 25.0 * np.count_nonzero(model.coef_[[9, 19, 29, 39]])


def test_rows_that_do_not_fit_into_memory_are_refused_before_they_are_held(monkeypatch):
    """And before other methods have learned, where one after the other sees the rows."""
    # 300 rows of 60 features, and their copy
    own = {"other": mine("Streaming"), "mine": mine("BatchLasso", alpha=0.1)}
    monkeypatch.setattr(experiment, "AT_ONCE", 0)
    monkeypatch.setattr(methods, "free_bytes", lambda: 2 * 300 * 60 * 8 - 1)
    with pytest.raises(MemoryError, match=r"BatchLasso without partial_fit gets all 300 rows"):
        run(methods=own, replicates=1)
    assert not SEEN
    monkeypatch.setattr(methods, "free_bytes", lambda: 2 * 300 * 60 * 8)
    run(methods=own, replicates=1)


def test_classes_are_found_by_name_and_get_what_the_entry_says():
    assert methods.find_class("SGDTRegressor") is SGDTRegressor
    assert methods.find_class("sklearn.linear_model:Lasso") is Lasso
    model = methods.build(SGDT | {"k": 7}, k=4, maturity=30, nothing=1)
    assert (model.k, model.maturity) == (7, 30), "what is filled in comes after"
    with pytest.raises(ValueError, match=r"no parameter 'learning_rte'; .* 'learning_rate'"):
        run(methods={"SGDT": SGDT | {"learning_rte": 1}})


@pytest.mark.parametrize("name", ["os:system", "os:PathLike"])
def test_what_is_no_class_of_a_method_is_not_called(name, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(TypeError, match=f"class: {name} is no class of a method"):
        methods.build({"class": name, "command": "touch was_run"})
    assert list(tmp_path.iterdir()) == []


def test_swept_parameters_are_columns_and_a_method_may_have_points_and_replicates_of_its_own():
    table = run(methods={"SFSA": SFSA}, sweep={"k": [2, 4], "mu": [1, 5]}, replicates=1)
    points = table[["k", "mu"]].drop_duplicates().to_numpy().tolist()
    assert points == [[2, 1], [2, 5], [4, 1], [4, 5]] and len(table) == 4 * 2
    alone = run(methods={"SFSA": SFSA | {"k": 4, "mu": 5}}, replicates=1)
    assert table.query("k == 4 and mu == 5")["value"].tolist() == alone["value"].tolist()
    few, none = SGDT | {"replicates": 1}, SGDT | {"replicates": 0}
    own = SGDT | {"sweep": {"maturity": [10, 100]}}
    table = run(methods={"few": few, "none": none, "own": own, "SGDT": SGDT})
    assert set(of(table, "few")["replicate"]) == {0} and of(table, "none").empty
    assert set(of(table, "own")["maturity"]) == {10, 100} and len(of(table, "own")) == 12
    first = of(table, "SGDT").query("replicate == 0")["value"]
    assert of(table, "few")["value"].tolist() == first.tolist()


@pytest.mark.parametrize(("keep", "marks"), [(0, {"empty"}), (2, set()), (3, {"beyond"})])
def test_a_model_of_no_feature_or_of_more_than_k_is_marked(keep, marks):
    """An RMSE near the deviation of y, or a detection rate of all features, is no result."""
    own = mine("Keeps", keep=keep)
    for table, others in (
        (run(methods={"it": own, "OFS": SGDT}, data=DATA | {"k": 2}, metrics=["DR"]), "OFS"),
        (real(dataset(), methods={"it": own, "OFS": OFS}, sweep={"k": [2]}), "OFS"),
    ):
        assert marks == {"empty", "beyond"} & set(table)
        for mark in marks:
            assert (of(table, "it")[mark] == 1).all() and of(table, others)[mark].isna().all()
    by_criterion = {"class": "OLSthRegressor", "k": "bic", "max_k": 5}
    assert "beyond" not in real(dataset(), methods={"it": by_criterion}, metrics=["R2"])


def test_what_lacks_data_leaves_rows_that_say_so():
    spec = setting(sweep={"k": [2, 4]}, metrics=["accuracy", "selected"])
    spec["methods"]["SFSA"]["sweep"] = {"mu": [1, 2, 3]}
    table = pd.DataFrame(experiment.absent(spec, "not fetched (no network)"))
    assert table["value"].isna().all() and set(table["note"]) == {"not fetched (no network)"}
    assert of(table, "SGDT")["k"].tolist() == [2, 2, 4, 4]
    assert of(table, "SFSA")["mu"].tolist() == [1, 1, 2, 2, 3, 3]
    study = setting(methods={}, metrics=[], study={"function": "a:b"})
    assert [row["note"] for row in experiment.absent(study, "why")] == ["why"]


def studied(setting, seeds, data, scale):
    """A study of the tests: a random number, and what it was given."""
    drawn = np.random.default_rng(seeds).random()
    yield {"metric": "drawn", "value": scale * drawn, "p": setting["data"]["p"]}
    rows = np.nan if data is None else len(data.y_test)
    yield {"method": "bound", "metric": "rows", "value": rows}


def test_a_study_does_the_runs_of_its_entry():
    study = {"function": "methods_of_the_tests:studied", "scale": 10}
    table = run(study=study, methods={})
    assert list(table["replicate"]) == [0, 0, 1, 1, 2, 2]
    drawn = table[table["metric"] == "drawn"]
    assert drawn["value"].nunique() == 3 and drawn["value"].max() > 1
    assert drawn["method"].isna().all() and (drawn["p"] == 60).all() and set(table["n"]) == {300}
    assert_frame_equal(table[:2], run(study=study, methods={}, replicates=1))
    on_data = run(dataset(n=7), study=study, data={"dataset": "tiny", "p": 1}, methods={})
    assert set(on_data.loc[on_data["metric"] == "rows", "value"]) == {7}


# -------------------------------------------------- times


def test_time_is_that_of_learning_only(monkeypatch):
    own = {"busy": mine("Busy"), "batch": mine("BusyBatch"), "SGDT": SGDT}
    spec = setting(methods=own, metrics=["time_s"], data=DATA | {"n": 2500}, replicates=1)
    experiment.warm_up(spec)
    stream = Equicorrelated.stream

    def slow(*known, **own):
        for block in stream(*known, **own):
            busy(0.3)
            yield block

    monkeypatch.setattr(Equicorrelated, "stream", slow)
    table = experiment.run(spec, progress=False)
    times = dict(zip(table["method"], table["value"], strict=True))
    assert 0.06 <= times["busy"] < 0.3  # three blocks of 0.02 s
    assert 0.02 <= times["batch"] < 0.3 and 0 < times["SGDT"] < 0.3


def test_warm_up_is_short_and_possible_for_every_timed_setting():
    """It shows a few rows to the methods of the setting, whatever their parameters are."""
    timed = [s for entry in shipped.load(scale="paper").entries.values() for s in entry.timed]
    assert timed
    for one in timed:
        experiment.warm_up(one.spec)
    spec = setting(methods={"mine": mine("Streaming")}, metrics=["time_s"], replicates=9)
    experiment.warm_up(spec | {"data": DATA | {"n": 300_000, "p": 10_000, "k": 100}})
    assert 0 < sum(seen[0] for seen in SEEN) <= 1000 and {k for _, k, _ in SEEN} == {10}


# -------------------------------------------------- real data sets


def dataset(n=40, d=9, seed=0, sparse=False):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(2 * n, d)) * (rng.random((2 * n, d)) < 0.5)
    y = np.where(X[:, 0] + 0.1 * rng.normal(size=2 * n) > 0, 1, -1)
    make = sp.csr_array if sparse else np.ascontiguousarray
    return Dataset("tiny", make(X[:n]), y[:n], make(X[n:]), y[n:])


REAL = {"data": {"dataset": "tiny"}, "axes": {"dataset": "tiny"}, "metrics": ["accuracy"]}
OFS = {"class": "FOFSClassifier", "learning_rate": 0.1, "k": 2}


def real(data, **changes):
    return run(data, **{**REAL, "methods": {"OFS": OFS}, **changes})


def test_rows_of_a_data_set_do_not_depend_on_company_replicates_or_form():
    asked = {"sweep": {"k": [1, 3]}, "metrics": ["accuracy", "AUC", "selected"]}
    table = real(dataset(), **asked)
    columns = ["experiment", "dataset", "method", "k", "replicate", "metric", "value"]
    assert [*table] == columns and len(table) == 2 * 3 * 3
    picked = table[table["metric"] == "selected"]
    assert (picked["value"] <= picked["k"]).all() and (picked["value"] > 0).all()
    assert_frame_equal(real(dataset(sparse=True), **asked), table)
    others = {"it": mine("Scored"), "few": OFS | {"replicates": 1}}
    beside = real(dataset(), methods={"OFS": OFS, **others})
    shown = of(beside, "OFS")
    assert_frame_equal(shown[shown["replicate"] < 2], real(dataset(), replicates=2))
    assert beside.groupby("method")["replicate"].max().to_dict() == {"OFS": 2, "few": 0, "it": 2}
    data = dataset()
    right = np.where(data.X_test[:, 0] > 0, 1, -1) == data.y_test
    assert set(of(beside, "it")["value"]) == {100 * right.mean()}, "that of the test rows"


@pytest.mark.parametrize("sparse", [False, True])
def test_rows_come_in_another_order_in_each_replicate_for_a_class_that_does_not_shuffle(sparse):
    """Else all replicates of a method that depends on the order are the same: no standard error."""
    data = dataset(sparse=sparse)
    whole = {tuple(x): y for x, y in zip(_dense(data.X_train), data.y_train, strict=True)}
    own = {"OFS": OFS, "it": mine("FirstRows")}
    by_k = of(real(data, methods=own, sweep={"k": [1, 2]}), "it").groupby("k")["value"].apply(list)
    assert by_k[1] == by_k[2] and len({*by_k[1]}) > 1
    assert len({tuple(y) for _, y in SEEN} | {tuple(data.y_train)}) == 4
    for X, y in SEEN:  # the same rows, each with its label
        assert [whole[tuple(x)] for x in _dense(X)] == y.tolist()
    SEEN.clear()
    real(data, methods={"it": mine("Shuffles"), "not": mine("Shuffles", shuffle=False)})
    assert all((y == data.y_train).all() for _, y in SEEN), "it can shuffle itself"


def _dense(X):
    return X.toarray() if sp.issparse(X) else X


def test_a_class_without_passes_is_marked_where_others_have_several():
    own = {"OFS": OFS, "it": mine("FirstRows"), "able": mine("Shuffles")}
    table = real(dataset(), methods=own, passes=3)
    assert (of(table, "it")["own_passes"] == 1).all()
    assert table.loc[table["method"] != "it", "own_passes"].isna().all()
    for alike in ({"passes": 1}, {"passes": 3, "run_values": 1}):
        assert "own_passes" not in real(dataset(), methods=own, **alike)


# -------------------------------------------------- tuning


TUNE = {"score": "online", "at": {"k": 3}, "grid": {"a": [0, 1, 2, 3], "b": [0, 1, 2]}}


def tuned(table, method="it"):
    own = of(table, method)
    own = own[own["metric"].str.startswith("tuned")]
    return dict(zip(own["metric"].str[6:], own["value"], strict=True))


@pytest.mark.parametrize(
    ("score", "values"), [("online", {"a": 2, "b": 1}), ("final", {"a": 0, "b": 0})]
)
def test_tuning_takes_the_best_point_of_the_whole_grid(score, values):
    own = {"it": mine("Scored", b=9), "OFS": OFS}
    tune = TUNE | {"score": score, "grid": TUNE["grid"] | {"learning_rate": [0.1]}}
    table = real(dataset(), methods=own, tune=tune)
    assert tuned(table) == values and tuned(table, "OFS") == {"learning_rate": 0.1}
    grid, runs = SEEN[:12], SEEN[12:]
    assert sorted((c["a"], c["b"]) for c in grid) == [(a, b) for a in range(4) for b in range(3)]
    assert {c["k"] for c in grid} == {3}, "tuned at the point that the entry names"
    assert [{k: c[k] for k in values} for c in runs] == [values] * 3
    assert {c["k"] for c in runs} == {1}, "and run with the parameters of the method"


def test_a_scale_may_try_some_points_and_a_method_may_be_tuned_elsewhere():
    tune = {"score": "online", "at": {"k": 5}, "grid": {"a": [0, 1, 2, 3, 4]}}
    asked = {"tune": tune, "replicates": 1, "tune_points": 3, "sweep": {"k": [7]}}
    real(dataset(), methods={"it": mine("Scored", at={"k": 3}), "other": mine("Scored")}, **asked)
    assert [c["k"] for c in SEEN] == [3] * 3 + [5] * 3 + [7] * 2
    assert [c["a"] for c in SEEN[:6]] == [0, 2, 4] * 2


@pytest.mark.parametrize("sparse", [False, True])
def test_runs_and_tuning_have_limits_of_their_own_that_count_what_is_read(sparse):
    """A zero is not read; 2d/n is rounded up."""
    data = dataset(n=40, d=101, sparse=sparse)
    values = np.count_nonzero(_dense(data.X_train))
    caps = {"run_values": 3 * values, "tune_values": 2 * values, "passes": "2d/n"}
    tune = {"score": "online", "at": {}, "grid": {"a": [1, 2]}}
    for limited in (caps, {"passes": "2d/n"}):
        real(data, methods={"it": mine("Scored")}, tune=tune, replicates=1, **limited)
    assert [c["n_passes"] for c in SEEN] == [2, 2, 3, 6, 6, 6]


def test_rows_are_tuned_in_one_order_for_a_class_that_does_not_shuffle():
    tune, data = {"score": "final", "at": {}, "grid": {"k": [1, 2]}}, dataset()
    real(data, methods={"it": mine("FirstRows")}, tune=tune, replicates=1)
    (_, one), (_, two), (_, run) = SEEN
    assert (one == two).all() and (one != data.y_train).any() and (one != run).any()
    with pytest.raises(TypeError, match=r"online_score_, which .*:Keeps does not have .* final"):
        real(data, methods={"it": mine("Keeps")}, tune=tune | {"score": "online"})


@pytest.mark.parametrize("grid", [[1e-6, 1e-6], [30.0, 1.0, 1e-6, 0.3, 0.1, 1e-5, 3.0, 0.03]])
def test_what_can_no_longer_be_the_best_is_not_learned_on(monkeypatch, grid):
    """The best is that of brute force, of equals the first."""
    data, shown, learn = dataset(n=80, d=30), [], FOFSClassifier._learn_rows

    def noted(self, X, y, order):
        shown.append(self.learning_rate)
        learn(self, X, y, order)

    monkeypatch.setattr(FOFSClassifier, "_learn_rows", noted)
    spec = setting(**REAL, passes=8)
    spec["tune"] = {"score": "online", "at": {"k": 5}, "grid": {"learning_rate": grid}}
    seed = int(experiment._seeds(spec, 2**32 - 1).generate_state(1)[0])
    _, chosen = experiment._tuned(spec, data, {"class": "FOFSClassifier", "batch_size": 1})
    assert (len(shown) < 8 * len(grid)) == (len(grid) == 8)
    given = {"k": 5, "batch_size": 1, "n_passes": 8, "random_state": seed}
    models = [FOFSClassifier(**given, learning_rate=rate) for rate in grid]
    scores = [model.fit(data.X_train, data.y_train).online_score_ for model in models]
    assert chosen == {"learning_rate": grid[int(np.argmax(scores))]}


def test_tuning_sees_no_test_rows():
    clean = dataset(n=80, d=30)
    poisoned = Dataset("tiny", clean.X_train, clean.y_train, 1e3 * clean.X_test, -clean.y_test)
    tune = {"score": "online", "at": {"k": 5}, "grid": {"learning_rate": [0.001, 0.01, 0.1, 1.0]}}
    for score in ("online", "final"):
        tables = [real(data, tune=tune | {"score": score}) for data in (clean, poisoned)]
        assert tuned(tables[0], "OFS") == tuned(tables[1], "OFS") != {}
        accuracy = [t[t["metric"] == "accuracy"]["value"].mean() for t in tables]
        assert accuracy[0] != accuracy[1], "the poison was there"


# -------------------------------------------------- what is measured


class Fixed:
    """A model that was not learned."""

    def __init__(self, coef, **more):
        self.coef_ = np.asarray(coef)
        self.__dict__.update(more)

    def decision_function(self, X):
        return X @ np.ravel(self.coef_)

    def predict(self, X):
        return np.where(self.decision_function(X) > 0, 1.0, -1.0)


def test_metrics_by_hand():
    support = np.array([9, 19, 29, 39])
    for selected, rate in ([[9, 19], 50], [[9, 19, 29, 39, 40], 100], [[], 0]):
        assert detection_rate(np.array(selected, dtype=int), support) == rate
    assert METRICS["DR"](Fixed([0, 1.0, 2.0, 0]), None, None, np.array([2, 3])) == 50
    assert selected_features(Fixed([[0, 2.0, 0, -1e-300]])).tolist() == [1, 3]
    assert selected_features(Fixed([1, 1, 1], support_=[2])).tolist() == [2]
    assert METRICS["selected"](Fixed([0, 1, 1]), None, None, None) == 2
    X, y = np.array([[0.1], [0.4], [0.35], [0.8], [-1.0]]), np.array([-1.0, -1.0, 1.0, 1.0, -1.0])
    # Of the 2 x 3 pairs only (0.35, 0.4) is in the wrong order; 3 of 5 signs are right.
    assert METRICS["AUC"](Fixed([1.0]), X, y, None) == pytest.approx(5 / 6)
    assert METRICS["accuracy"](Fixed([1.0]), X, y, None) == pytest.approx(60)
    number = SimpleNamespace(predict=lambda X: np.array([1.0, 2.0, 3.0, 4.0, 5.0]))
    target = np.array([1.0, 2.0, 3.0, 2.0, 4.0])
    assert METRICS["RMSE"](number, X, target, None) == pytest.approx(1.0)
    with pytest.raises(ValueError, match=r"the labels, -1 and 1, and says \[1\.0"):
        METRICS["accuracy"](number, X, y, None)


@pytest.mark.parametrize(
    ("task", "metrics"),
    [("regression", ["DR", "selected", "RMSE"]), ("classification", ["DR", "selected", "AUC"])],
)
def test_what_is_expected_is_what_many_test_rows_show(task, metrics):
    design = Equicorrelated(p=60, k=4, alpha=0.5, task=task)
    model = Fixed(design.coef * ([-1, 1] * 30) + [0.3, *[0] * 59], intercept_=2.0)
    model.predict = lambda X: X @ model.coef_ + model.intercept_
    X, y = design.sample(100_000, np.random.default_rng(0))
    for metric in metrics:
        observed = METRICS[metric](model, X, y, design.support)
        assert_allclose(experiment.EXPECTED[metric](model, design), observed, rtol=0.02)
        model.coef_ = model.coef_[None]  # as that of scikit-learn's classifiers
        assert_allclose(experiment.EXPECTED[metric](model, design), observed, rtol=0.02)
        model.coef_ = model.coef_[0]


@pytest.mark.parametrize(
    ("task", "metric", "test_rows", "lacks"),
    [
        ("regression", "RMSE", None, "coef_"),
        ("classification", "AUC", 50, "decision_function"),
    ],
)
def test_a_metric_that_a_method_cannot_have_leaves_rows_that_say_so(task, metric, test_rows, lacks):
    asked = {"data": DATA | {"task": task}, "metrics": ["DR", metric], "test_rows": test_rows}
    table = run(methods={"it": mine("Keeps")}, **asked)
    lost = table["metric"] == metric
    assert table.loc[~lost, "value"].notna().all() and table.loc[lost, "value"].isna().all()
    assert set(table.loc[lost, "note"]) == {f"{metric} needs {lacks}, which Keeps lacks"}


@pytest.mark.parametrize("test_rows", [50, None])
@pytest.mark.parametrize("where", ["coef_", "intercept_", "said"])
def test_a_model_that_is_not_finite_has_no_score_but_a_reason(where, test_rows):
    """Not a number is not zero: all features would count as selected, and DR would be 100 %."""
    if where == "said" and test_rows is None:
        return  # nothing is asked of it there
    broken = mine("Broken", where=where)
    own = {"broken": broken, "with support": broken | {"support": True}}
    for task, score in {"regression": "RMSE", "classification": "AUC"}.items():
        asked = [score] if where == "said" else ["DR", "selected", score]
        data = DATA | {"task": task}
        table = run(methods=own, data=data, metrics=asked, test_rows=test_rows)
        assert len(table) == 2 * 3 * len(asked) and table["value"].isna().all()
        assert table["note"].str.contains("of Broken is not finite").all()
    large = Fixed(np.full(60, 1e308), intercept_=0.0)
    known = "RMSE", experiment.EXPECTED["RMSE"], large, Equicorrelated(p=60, k=4)
    assert experiment._measured(*known)["note"] == "RMSE is not finite (inf)"


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("where", ["fit", "targets", "predict"])
def test_rows_that_others_are_shown_can_only_be_read(where, sparse):
    """What a user's method raises names its class, and where it was used."""
    own, used = {"it": mine("Careless", where=where), "OFS": OFS}, "as it learned"
    with pytest.raises(ValueError, match="read-only") as raised:
        real(dataset(sparse=sparse), methods=own)
    used = "as its accuracy was measured" if where == "predict" else used
    assert f"{__name__}:Careless {used}" in raised.value.__notes__[0]
    if where != "predict":
        tune = {"score": "final", "at": {}, "grid": {"where": [where]}}
        with pytest.raises(ValueError, match="read-only"):
            real(dataset(sparse=sparse), methods={"it": mine("Careless")}, tune=tune)
        with pytest.raises(ValueError, match="read-only"):
            run(methods=own, data=DATA | {"task": "classification"}, metrics=["accuracy"])


def test_a_slip_in_a_users_method_is_no_attribute_that_it_lacks():
    slip = SimpleNamespace(predict=lambda X: X.wieghts)
    with pytest.raises(AttributeError, match="wieghts"):
        experiment._measured("RMSE", METRICS["RMSE"], slip, np.ones((2, 1)), np.ones(2), None)


# -------------------------------------------------- averages, and models that are watched


def test_sampled_averages_stand_for_the_rows(monkeypatch):
    """No row is generated unless a method wants it."""
    drawn, stream = [], Equicorrelated.stream

    def counted(design, *known):
        drawn.append(design.p)
        yield from stream(design, *known)

    monkeypatch.setattr(Equicorrelated, "stream", counted)
    data, own = DATA | {"n": 3000, "averages": "sampled"}, {"OLSth": {"class": "OLSthRegressor"}}
    asked = {"data": data, "replicates": 2, "test_rows": None}
    alone = run(methods=own, **asked)
    assert not drawn and (alone.query("metric == 'DR'")["value"] == 100).all()
    assert_frame_equal(of(run(methods=own | {"SFSA": SFSA}, **asked), "OLSth"), alone)
    drawn.clear()
    sums = {"class": "ofslib.averages:RunningAverages", "replicates": 1}
    table = run(methods={"RAVE": sums, **own}, **asked | {"metrics": ["time_s"]})
    assert len(of(table, "RAVE")) == 1 and len(of(table, "OLSth")) == 2
    assert drawn.count(60) == 1, "beside the few rows on which kernels are compiled"


def test_regret_is_tracked_of_rows_and_of_averages():
    own = {"SGDT": SGDT, "OLSth": {"class": "OLSthRegressor"}}
    tracked = {"track": {"first": 30, "per_decade": 2}, "metrics": ["regret"]}
    both = run(methods=own, **tracked)
    assert both.groupby(["method", "replicate"]).ngroups == 2 * 3
    assert sorted(set(both["rows"])) == [30, 95, 300] and set(both["metric"]) == {"regret"}
    for method in own:
        alone = run(methods={method: own[method]}, **tracked)
        assert_frame_equal(of(alone, method), of(both, method))


# -------------------------------------------------- peers


def test_scikit_learn_makes_one_pass_and_uses_its_k_largest_coefficients():
    model = methods.build({"class": "ofslib.reproduction.peers:TopKSGDRegressor"}, k=4)
    X, y = Equicorrelated(p=60, k=4).sample(300, np.random.default_rng(0))
    model.partial_fit(X, y)
    largest = np.sort(np.argsort(-np.abs(model.inner.coef_))[:4])
    expected = X[:, largest] @ model.inner.coef_[largest] + model.inner.intercept_
    assert_allclose(model.predict(X), expected)
    data = dataset(n=200)
    model = peers.TopKSGDClassifier(k=None, penalty="l1", random_state=0)
    coef = model.fit(data.X_train, data.y_train).coef_
    assert model.inner.t_ == 201 and np.array_equal(coef, model.inner.coef_[0])


@pytest.mark.parametrize("name", ["VowpalWabbitRegressor", "VowpalWabbitClassifier"])
def test_vowpal_wabbit_predicts_by_the_weights_that_it_shows(name):
    rng = np.random.default_rng(0)
    X, coef = rng.standard_normal((2000, 30)), np.repeat([1.0, 0.0], [3, 27])
    y = X @ coef if name.endswith("Regressor") else np.where(X @ coef > 0, 1.0, -1.0)
    model = getattr(peers, name)(k=3)
    model.partial_fit(X[:700], y[:700]).partial_fit(sp.csr_matrix(X[700:]), y[700:])
    assert_array_equal(np.flatnonzero(model.coef_), [0, 1, 2])
    text = "1 | " + " ".join(f"{j}:{value}" for j, value in enumerate(X[0].tolist()))
    margin = X[0] @ model._linear()[0]
    assert_allclose(model.workspace.predict(text), margin, rtol=1e-4)
