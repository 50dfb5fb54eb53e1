"""One setting -> rows: equal settings give equal rows, methods are strangers to each other."""

import copy
import math
import sys
import time
from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import shipped
from numpy.testing import assert_allclose, assert_array_equal
from pandas.testing import assert_frame_equal
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Lasso, LogisticRegression, SGDRegressor
from sklearn.model_selection import cross_val_score
from sklearn.svm import l1_min_c

from ofslib import FOFSClassifier, SGDTRegressor
from ofslib.datasets import Dataset
from ofslib.metrics import METRICS, detection_rate, selected_features
from ofslib.reproduction import experiment, methods, peers, tuning
from ofslib.simulate import DESIGNS, Equicorrelated

HERE = __name__


class BatchLasso(Lasso):
    """A user's method without `partial_fit`."""

    shapes = []

    def fit(self, X, y):
        BatchLasso.shapes.append((X.shape, y.shape, float(X.sum()), float(y.sum())))
        return super().fit(X, y)


class Streaming(SGDRegressor):
    """A user's method with `partial_fit` and a parameter that the experiment fills in."""

    seen = []

    def __init__(self, k=1, maturity=None, random_state=None):
        self.k, self.maturity = k, maturity
        super().__init__(eta0=1e-4, random_state=random_state)

    def fit(self, X, y):
        raise AssertionError("a method with partial_fit sees the stream")

    def partial_fit(self, X, y):
        Streaming.seen.append((len(X), self.k, self.maturity))
        return super().partial_fit(X, y)


class Averaged(BaseEstimator):
    """A user's method that learns from running averages only."""

    seen = []

    def partial_fit(self, X, y):
        raise AssertionError("a method with fit_averages sees no row")

    def fit_averages(self, averages, copy=True):
        Averaged.seen.append(averages.n)
        self.coef_, self.intercept_ = averages.S_xy.copy(), 0.0
        return self


class Absent:
    """A user's method whose package is not there."""

    requires = "no_such_package"

    def fit(self, X, y):
        raise NotImplementedError


class Screen(BaseEstimator):
    """A user's method that has `support_` and `predict` only."""

    def __init__(self, keep=4):
        self.keep = keep

    def fit(self, X, y):
        self.support_ = np.argsort(-abs(y @ X))[: self.keep]
        return self

    def predict(self, X):
        return np.zeros(len(X))


class Keeps(Screen):
    """Keeps as many features as it likes, whatever `k` says."""

    def __init__(self, k=1, keep=4):
        self.k, self.keep = k, keep

    def predict(self, X):
        return np.ones(len(X))


def busy(seconds):
    """Take that much time of the processor."""
    start = time.process_time()
    while time.process_time() - start < seconds:
        pass


class Busy(BaseEstimator):
    """Learning takes a known time; predictions are nothing."""

    def partial_fit(self, X, y):
        busy(0.02)
        self.coef_ = np.zeros(X.shape[1])
        return self


class BusyBatch(BaseEstimator):
    """The same without `partial_fit`."""

    def fit(self, X, y):
        return Busy.partial_fit(self, X, y)


class Scored(ClassifierMixin, BaseEstimator):
    """Predicts from the first column; its scores are a known function of the parameters."""

    calls = []

    def __init__(self, a=0, b=0, k=1, n_passes=1, random_state=None):
        self.a, self.b, self.k, self.n_passes, self.random_state = a, b, k, n_passes, random_state

    def fit(self, X, y):
        self.online_score_ = -((self.a - 2) ** 2) - (self.b - 1) ** 2 + (self.k == 3)
        self.classes_ = np.unique(y)
        call = {"a": self.a, "b": self.b, "k": self.k, "n_passes": self.n_passes, "rows": len(y)}
        Scored.calls.append(call)
        return self

    def score(self, X, y):
        return -self.online_score_

    def predict(self, X):
        return np.where(X[:, 0] > 0, 1, -1)

    def decision_function(self, X):
        return X[:, 0]


class FirstRows(ClassifierMixin, BaseEstimator):
    """Learns from the first ten rows alone; may put the rows in an order of its own before."""

    seen = []

    def __init__(self, k=1):
        self.k = k

    def fit(self, X, y):
        FirstRows.seen.append((y.copy(), float(X.sum())))
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


@pytest.fixture(autouse=True)
def forget(monkeypatch):
    """Make this module importable by name, as a user's module is, and empty what was noted."""
    monkeypatch.setitem(sys.modules, "methods_of_the_tests", sys.modules[HERE])
    everything = (BatchLasso.shapes, Streaming.seen, Averaged.seen, Scored.calls, FirstRows.seen)
    for noted in everything:
        noted.clear()


def mine(name, **parameters):
    return {"class": f"methods_of_the_tests:{name}", **parameters}


SGDT = {"class": "SGDTRegressor", "learning_rate": 1e-3, "fit_intercept": False}
SFSA = {"class": "SFSARegressor", "learning_rate": 1e-3, "fit_intercept": False}


def setting(**changes):
    spec = {
        "experiment": "one",
        "name": "plain_300",
        "axes": {"reading": "plain", "n": 300},
        "data": {"simulate": "equicorrelated", "p": 60, "k": 4, "n": 300, "alpha": 0.5},
        "methods": {"SGDT": SGDT, "SFSA": SFSA},
        "seed": 5,
        "sweep": {},
        "track": {},
        "study": {},
        "tune": {},
        "passes": 1,
        "metrics": ["DR", "RMSE"],
        "test_rows": 50,
        "replicates": 3,
        "run_values": None,
        "tune_values": None,
    }
    return copy.deepcopy({**spec, **changes})


def run(dataset=None, **changes):
    return experiment.run(setting(**changes), dataset, progress=False)


def of(table, method):
    return table[table["method"] == method].reset_index(drop=True)


# -------------------------------------------------- simulated streams


def test_rows_are_tidy():
    table = run()
    assert list(table.columns[:3]) == ["experiment", "reading", "n"]
    assert list(table.columns[3:]) == ["method", "replicate", "metric", "value"]
    assert len(table) == 2 * 3 * 2
    assert not table.duplicated(["method", "replicate", "metric"]).any()
    assert set(table["replicate"]) == {0, 1, 2}
    assert (table["experiment"] == "one").all() and (table["reading"] == "plain").all()
    assert table["value"].notna().all()


def test_a_model_that_selects_nothing_is_marked():
    """So that an RMSE near the standard deviation of y is not taken for a result."""
    none = {"class": "RDARegressor", "k": 2, "rho": 1e9, "fit_intercept": False}
    with pytest.warns(ConvergenceWarning, match="no feature"):
        table = run(methods={"SGDT": SGDT, "none": none})
    assert (of(table, "none")["empty"] == 1).all() and (table["metric"] == "DR").any()
    assert of(table, "SGDT")["empty"].isna().all()
    assert "empty" not in run(methods={"SGDT": SGDT})


def test_a_model_of_more_features_than_the_others_have_is_marked():
    """All true ones are among all features: that is no detection rate beside those of k."""
    table = run(methods={"SGDT": SGDT, "all": SGDT | {"k": 5}, "fewer": SGDT | {"k": 1}})
    assert (of(table, "all")["beyond"] == 1).all()
    assert of(table, "SGDT")["beyond"].isna().all() and of(table, "fewer")["beyond"].isna().all()
    assert "beyond" not in run(methods={"SGDT": SGDT})


def test_equal_settings_give_equal_tables():
    assert_frame_equal(run(), run(), check_exact=True)


def test_setting_is_not_changed():
    spec = setting()
    experiment.run(spec, progress=False)
    assert spec == setting()


def test_seed_decides():
    same, other = run(seed=5), run(seed=6)
    wide = pd.DataFrame({"same": same["value"], "other": other["value"], "metric": same["metric"]})
    errors = wide[wide["metric"] == "RMSE"]
    assert (errors["same"] != errors["other"]).all()


def test_replicates_differ_and_do_not_depend_on_their_number():
    three, two = run(), run(replicates=2)
    assert_frame_equal(three[three["replicate"] < 2].reset_index(drop=True), two)
    errors = of(three, "SGDT").query("metric == 'RMSE'")["value"]
    assert errors.nunique() == 3


@pytest.mark.parametrize("others", [["SFSA"], [], ["Adam", "SFSA", "batch"]])
def test_a_method_does_not_depend_on_its_company(others):
    company = {"SFSA": SFSA, "Adam": SFSA | {"optimizer": "adam"}, "batch": mine("BatchLasso")}
    before = {name: company[name] for name in others}
    alone = run(methods={"SGDT": SGDT})
    last = run(methods={**before, "SGDT": SGDT})
    first = run(methods={"SGDT": SGDT, **before})
    assert_frame_equal(of(last, "SGDT"), alone, check_exact=True)
    assert_frame_equal(of(first, "SGDT"), alone, check_exact=True)


def test_readings_with_equal_data_see_equal_data():
    plain = run(methods={"batch": mine("BatchLasso"), "SGDT": SGDT})
    seen = list(BatchLasso.shapes)
    changed = run(
        methods={"batch": mine("BatchLasso"), "SGDT": SGDT},
        axes={"reading": "other", "n": 300},
        name="other_300",
        experiment="two",
        metrics=["RMSE", "DR"],
    )
    assert BatchLasso.shapes == seen * 2
    pairs = [t.sort_values(["method", "replicate", "metric"])["value"] for t in (plain, changed)]
    assert pairs[0].tolist() == pairs[1].tolist()
    run(methods={"batch": mine("BatchLasso")}, data=setting()["data"] | {"alpha": 0})
    assert not set(BatchLasso.shapes[6:]) & set(seen)


def test_order_of_the_keys_of_the_data_does_not_matter():
    data = setting()["data"]
    turned = dict(reversed(data.items()))
    assert_frame_equal(run(), run(data=turned), check_exact=True)


def test_train_and_test_rows_are_different():
    run(methods={"batch": mine("BatchLasso")}, replicates=1)
    (((n, p), _, total, _),) = BatchLasso.shapes
    assert (n, p) == (300, 60)
    design = DESIGNS["equicorrelated"](p=60, k=4, alpha=0.5)
    train, test, _ = experiment._seeds(setting(), 0, rows=True).spawn(3)
    X = np.concatenate([X for X, _ in design.stream(300, np.random.default_rng(train))])
    assert X.sum() == pytest.approx(total)
    held_out, _ = design.sample(50, np.random.default_rng(test))
    assert not np.isin(held_out, X).any()


def test_whole_stream_reaches_a_users_streaming_class():
    table = run(methods={"mine": mine("Streaming")}, replicates=1)
    assert [seen[1:] for seen in Streaming.seen] == [(4, 300)] * len(Streaming.seen)
    assert sum(seen[0] for seen in Streaming.seen) == 300
    assert of(table, "mine").query("metric == 'RMSE'")["value"].iloc[0] > 0


def test_users_batch_class_gives_what_it_gives_by_hand():
    table = run(methods={"mine": mine("BatchLasso", alpha=0.1)}, replicates=1)
    design = DESIGNS["equicorrelated"](p=60, k=4, alpha=0.5)
    train, test, _ = experiment._seeds(setting(), 0, rows=True).spawn(3)
    model = Lasso(alpha=0.1).fit(*design.sample(300, np.random.default_rng(train)))
    X, y = design.sample(50, np.random.default_rng(test))
    rmse = math.sqrt(np.square(y - model.predict(X)).mean())
    found = dict(zip(table["metric"], table["value"], strict=True))
    assert found["RMSE"] == pytest.approx(rmse, rel=1e-9)
    assert found["DR"] == 25.0 * np.count_nonzero(model.coef_[[9, 19, 29, 39]])


def test_a_class_with_dots_and_without():
    assert methods.find_class("SGDTRegressor") is SGDTRegressor
    assert methods.find_class("sklearn.linear_model:Lasso") is Lasso
    with pytest.raises(AttributeError, match="SGDTRegresor"):
        methods.find_class("SGDTRegresor")


def test_unknown_parameter_is_named_with_the_known_ones():
    with pytest.raises(ValueError) as error:
        run(methods={"SGDT": SGDT | {"learning_rte": 1}})
    message = str(error.value)
    assert "SGDTRegressor" in message and "['learning_rte']" in message
    assert "learning_rate" in message


def test_configured_values_win_over_those_filled_in():
    model = methods.build(SGDT | {"k": 7}, k=4, maturity=30, nothing=1)
    assert (model.k, model.maturity) == (7, 30)


def test_swept_parameters_are_columns():
    table = run(methods={"SFSA": SFSA}, sweep={"k": [2, 4], "mu": [1, 5]}, replicates=1)
    points = table[["k", "mu"]].drop_duplicates().to_numpy().tolist()
    assert points == [[2, 1], [2, 5], [4, 1], [4, 5]]
    assert len(table) == 4 * 2
    alone = run(methods={"SFSA": SFSA | {"k": 4, "mu": 5}}, replicates=1)
    found = table.query("k == 4 and mu == 5")["value"].tolist()
    assert found == alone["value"].tolist()


def test_a_method_may_have_fewer_replicates_and_points_of_its_own():
    few = SGDT | {"replicates": 1}
    own = {"class": "OPGRegressor", "fit_intercept": False, "sweep": {"l1": [0.1, 1.0]}}
    table = run(methods={"few": few, "none": SGDT | {"replicates": 0}, "own": own, "SFSA": SFSA})
    assert set(of(table, "few")["replicate"]) == {0} and of(table, "none").empty
    assert set(of(table, "SFSA")["replicate"]) == {0, 1, 2}
    assert set(of(table, "own")["l1"]) == {0.1, 1.0} and len(of(table, "own")) == 12
    plain = run(methods={"few": SGDT})
    numbers = of(plain, "few")[plain["replicate"] == 0]["value"].to_list()
    assert of(table, "few")["value"].to_list() == numbers


def test_peers_use_their_k_largest_coefficients():
    sgd = {"class": "ofslib.reproduction.peers:TopKSGDRegressor", "penalty": "l1", "eta0": 1e-3}
    table = run(methods={"sgd": sgd}, metrics=["DR", "selected"])
    assert set(table.loc[table["metric"] == "selected", "value"]) == {4}
    model = methods.build(sgd, k=4)
    X, y = Equicorrelated(p=60, k=4).sample(300, np.random.default_rng(0))
    model.partial_fit(X, y)
    largest = np.sort(np.argsort(-np.abs(model.inner.coef_))[:4])
    assert np.flatnonzero(model.coef_).tolist() == largest.tolist()
    expected = X[:, largest] @ model.inner.coef_[largest] + model.inner.intercept_
    np.testing.assert_allclose(model.predict(X), expected)


def test_one_pass_of_scikit_learn():
    data = dataset(n=200)
    model = peers.TopKSGDClassifier(k=None, penalty="l1", random_state=0)
    coef = model.fit(data.X_train, data.y_train).coef_
    assert model.inner.t_ == 201 and np.array_equal(coef, model.inner.coef_[0])


@pytest.mark.parametrize("sparse", [False, True])
def test_liblinear_chooses_its_penalty_by_the_folds(sparse):
    X = dataset(n=60, d=30, sparse=sparse).X_train
    y = np.where(np.asarray(X[:, :6].sum(axis=1)).ravel() > 0, 1, -1)
    free, few = (peers.LiblinearClassifier(k).fit(X, y) for k in (None, 3))
    C = np.geomspace(1.5, 1500, 7) * l1_min_c(X, y, loss="log")
    models = [clone(free.inner).set_params(C=c) for c in C]
    score = [cross_val_score(m, X, y, scoring="roc_auc", cv=5).mean() for m in models]
    assert free.inner.C == C[np.argmax(score)]
    assert 0 < np.count_nonzero(few.inner.coef_) <= 3 < np.count_nonzero(free.inner.coef_)


PEERS = ["sfsa_table_1", "sfsa_table_2", "sfsa_table_3"]


@pytest.mark.parametrize("entry", PEERS)
def test_two_equal_runs_give_equal_bits_of_all_methods_peers_too(entry):
    spec = shipped.load(scale="smoke").entries[entry].to_run[-1].parts[-1]
    small = {"p": 60, "k": 4, "n": 600, "warmup": 50, "maturity": 500, "nonzeros": 9}
    few = {
        label: method
        | {"replicates": 2}
        | {key: small[key] for key in method.keys() & small.keys()}
        for label, method in spec["methods"].items()
    }
    assert sum(method["class"].startswith("ofslib.reproduction.peers:") for method in few.values())
    data = spec["data"] | {key: small[key] for key in spec["data"].keys() & small.keys()}
    spec = spec | {"data": data, "methods": few, "replicates": 2, "test_rows": 50}
    first, second = (experiment.run(spec, progress=False) for _ in range(2))
    assert set(few) == set(first["method"])
    assert_frame_equal(first, second, check_exact=True)


@dataclass(frozen=True)
class SlowDesign(Equicorrelated):
    """Rows that are long in coming."""

    def stream(self, n, rng, block_rows=1000):
        for block in super().stream(n, rng, block_rows):
            busy(0.3)
            yield block


def test_time_is_that_of_learning_only(monkeypatch):
    spec = setting(
        methods={"busy": mine("Busy"), "batch": mine("BusyBatch"), "SGDT": SGDT},
        metrics=["time_s"],
        data={"simulate": "equicorrelated", "p": 60, "k": 4, "n": 2500},
        replicates=1,
    )
    experiment.warm_up(spec)
    monkeypatch.setitem(experiment.DESIGNS, "equicorrelated", SlowDesign)
    table = experiment.run(spec, progress=False)
    times = dict(zip(table["method"], table["value"], strict=True))
    assert 0.06 <= times["busy"] < 0.3  # three blocks of 0.02 s
    assert 0.02 <= times["batch"] < 0.3
    assert 0 < times["SGDT"] < 0.3


def test_warm_up_is_possible_for_every_timed_setting():
    """It shows a few rows to the methods of the setting, whatever their parameters are."""
    work = shipped.load(scale="paper")
    timed = [s for entry in work.entries.values() for s in entry.timed]
    assert timed
    failures = {}
    for one in timed:
        try:
            experiment.warm_up(one.spec)
        except ValueError as error:
            failures[one.spec["experiment"], one.name] = str(error)
    assert failures == {}


def test_warm_up_is_short():
    spec = setting(methods={"mine": mine("Streaming")}, metrics=["time_s"], replicates=9)
    data = spec["data"] | {"n": 300_000, "p": 10_000, "k": 100}
    experiment.warm_up(spec | {"data": data})
    assert 0 < sum(seen[0] for seen in Streaming.seen) <= 1000
    assert {k for _, k, _ in Streaming.seen} == {10}, "fewer features too"


def test_absent_rows_have_a_reason_and_no_value():
    spec = setting(sweep={"k": [2, 4]}, metrics=["accuracy", "selected"])
    table = pd.DataFrame(experiment.absent(spec, "not fetched (no network)"))
    assert len(table) == 2 * 2 * 2
    assert table["value"].isna().all()
    assert (table["note"] == "not fetched (no network)").all()
    assert set(table["method"]) == {"SGDT", "SFSA"} and set(table["k"]) == {2, 4}
    whole = experiment.run(spec | {"metrics": ["DR", "RMSE"]}, progress=False)
    assert set(table.columns) - {"note"} < set(whole.columns)


def studied(setting, seeds, data, scale):
    """A study of the tests: a random number, and what it was given."""
    drawn = np.random.default_rng(seeds).random()
    yield {"metric": "drawn", "value": scale * drawn, "p": setting["data"]["p"]}
    rows = np.nan if data is None else len(data.y_test)
    yield {"method": "bound", "metric": "rows", "value": rows}


def test_a_study_does_the_runs_of_its_entry():
    study = {"function": "methods_of_the_tests:studied", "scale": 10}
    table = run(study=study, methods={}, replicates=3)
    assert list(table["replicate"]) == [0, 0, 1, 1, 2, 2]
    drawn = table[table["metric"] == "drawn"]
    assert drawn["value"].nunique() == 3 and drawn["value"].max() > 1
    assert drawn["method"].isna().all() and (drawn["p"] == 60).all()
    assert set(table["n"]) == {300} and set(table["experiment"]) == {"one"}
    assert table[table["metric"] == "rows"]["value"].isna().all()
    assert_frame_equal(table[:2], run(study=study, methods={}, replicates=1))
    other = run(study=study, methods={}, replicates=1, seed=6)
    assert other["value"][0] != table["value"][0]
    on_data = run(dataset(n=7), study=study, data={"dataset": "tiny", "p": 1}, methods={})
    assert set(on_data.loc[on_data["metric"] == "rows", "value"]) == {7}


def test_a_study_whose_data_are_absent_has_rows_with_the_reason():
    table = pd.DataFrame(
        experiment.absent(setting(methods={}, metrics=[], study={"function": "a:b"}), "why")
    )
    assert list(table["note"]) == ["why"] and table["value"].isna().all()


# -------------------------------------------------- real data sets


def dataset(n=40, d=9, seed=0, sparse=False):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(2 * n, d)) * (rng.random((2 * n, d)) < 0.5)
    y = np.where(X[:, 0] + 0.1 * rng.normal(size=2 * n) > 0, 1, -1)
    make = sp.csr_array if sparse else np.ascontiguousarray
    return Dataset("tiny", make(X[:n]), y[:n], make(X[n:]), y[n:])


REAL = {"data": {"dataset": "tiny"}, "axes": {"dataset": "tiny"}, "metrics": ["accuracy"]}
OFS = {"class": "FOFSClassifier", "learning_rate": 0.1, "k": 2}
TUNE = {"score": "online", "at": {"k": 3}, "grid": {"a": [0, 1, 2, 3], "b": [0, 1, 2]}}


def real(data, **changes):
    return run(data, **{**REAL, "methods": {"OFS": OFS}, **changes})


def test_real_rows():
    table = real(dataset(), sweep={"k": [1, 3]}, metrics=["accuracy", "AUC", "selected"])
    assert list(table.columns) == [
        "experiment", "dataset", "method", "k", "replicate", "metric", "value",
    ]  # fmt: skip
    assert len(table) == 2 * 3 * 3
    picked = table[table["metric"] == "selected"]
    assert (picked["value"] <= picked["k"]).all() and (picked["value"] > 0).all()
    assert_frame_equal(
        table, real(dataset(), sweep={"k": [1, 3]}, metrics=["accuracy", "AUC", "selected"])
    )


@pytest.mark.parametrize(("keep", "marks"), [(0, {"empty"}), (2, set()), (3, {"beyond"})])
def test_on_real_rows_nothing_selected_or_too_much_is_marked_too(keep, marks):
    """A curve against the number of features shows a score of that many, or says that it is not."""
    table = real(dataset(), methods={"it": mine("Keeps", keep=keep), "OFS": OFS}, sweep={"k": [2]})
    assert marks == {"empty", "beyond"} & set(table)
    for mark in marks:
        assert (of(table, "it")[mark] == 1).all() and of(table, "OFS")[mark].isna().all()
    wide = real(dataset(), methods={"it": mine("Keeps", keep=3)}, sweep={"k": [2, 3]})
    assert wide.groupby("k")["beyond"].sum().to_dict() == {2: 3, 3: 0}
    by_criterion = {"class": "OLSthRegressor", "k": "bic", "max_k": 5}
    assert "beyond" not in real(dataset(), methods={"it": by_criterion}, metrics=["R2"])


def test_real_company_and_replicates():
    other = {"class": "SGDTClassifier", "k": 2}
    alone = real(dataset(), replicates=2)
    beside = real(dataset(), methods={"other": other, "OFS": OFS})
    shown = of(beside, "OFS")
    assert_frame_equal(shown[shown["replicate"] < 2], of(alone, "OFS"))


def test_a_method_on_real_rows_may_have_fewer_replicates_too():
    table = real(dataset(), methods={"OFS": OFS, "few": OFS | {"replicates": 1}}, replicates=2)
    assert table.groupby("method")["replicate"].max().to_dict() == {"OFS": 1, "few": 0}


@pytest.mark.parametrize("sparse", [False, True])
def test_rows_come_in_another_order_in_each_replicate_for_a_class_that_does_not_shuffle(sparse):
    """Else all replicates of a method that depends on the order are the same: no standard error."""
    data = dataset(sparse=sparse)
    one, two, three = real(data, methods={"it": mine("FirstRows")})["value"]
    assert one != two != three
    orders = [tuple(y) for y, _ in FirstRows.seen]
    assert len({*orders, tuple(data.y_train)}) == 4
    for y, total in FirstRows.seen:  # the same rows
        assert sorted(y) == sorted(data.y_train) and np.isclose(total, data.X_train.sum())
    again = real(data, methods={"OFS": OFS, "it": mine("FirstRows")}, sweep={"k": [1, 2]})
    by_k = of(again, "it").groupby("k")["value"].apply(list)
    assert by_k[1] == by_k[2] == [one, two, three]


def test_rows_and_labels_stay_together(monkeypatch):
    pairs = []
    monkeypatch.setattr(FirstRows, "fit", lambda self, X, y: pairs.append((X, y)) or self)
    monkeypatch.setattr(FirstRows, "predict", lambda self, X: np.ones(len(X)), raising=True)
    data = dataset()
    real(data, methods={"it": mine("FirstRows")}, metrics=["accuracy"])
    label = {tuple(x): y for x, y in zip(data.X_train, data.y_train, strict=True)}
    for X, y in pairs:
        assert [label[tuple(x)] for x in X] == y.tolist()


@pytest.mark.parametrize("own", [mine("Shuffles"), mine("Shuffles", shuffle=False)])
def test_a_class_that_can_shuffle_gets_the_rows_as_they_are(own):
    data = dataset()
    real(data, methods={"it": own})
    assert all((y == data.y_train).all() for y, _ in FirstRows.seen)


def test_our_own_classes_and_peers_get_the_very_rows(monkeypatch):
    """Their published results do not move."""
    work, data, seen = shipped.load(), dataset(), []
    entries = [e for e in work.entries.values() if not e.spec["study"]]
    memory = [s for e in entries for s in e.settings if s.dataset and "split" not in s.spec["data"]]
    specs = [spec for s in memory for spec in s.spec["methods"].values()]
    assert len({spec["class"] for spec in specs}) > 10
    assert all(experiment._rows_for(setting(), data, spec, 0) is data for spec in specs)
    monkeypatch.setattr(experiment, "fit", lambda model, X, y: seen.append(X) or model.fit(X, y))
    real(data)
    assert all(X is data.X_train for X in seen) and len(seen) == 3


def test_tuning_shuffles_for_a_class_too_and_once():
    tune = {"score": "final", "at": {}, "grid": {"k": [1, 2]}}
    data = dataset()
    real(data, methods={"it": mine("FirstRows")}, tune=tune, replicates=1)
    (one, _), (two, _), (run, _) = FirstRows.seen
    assert (one == two).all() and (one != data.y_train).any() and (one != run).any()


def test_a_class_without_passes_is_marked_where_others_have_several():
    methods = {"OFS": OFS, "it": mine("FirstRows"), "able": mine("Shuffles")}
    table = real(dataset(), methods=methods, passes=3)
    assert (of(table, "it")["own_passes"] == 1).all()
    for label in ("OFS", "able"):
        assert of(table, label)["own_passes"].isna().all()
    for alike in ({"passes": 1}, {"passes": 3, "run_values": 1}):
        assert "own_passes" not in real(dataset(), methods=methods, **alike)


def test_accuracy_is_that_of_the_test_rows():
    data = dataset()
    found = real(data, methods={"it": mine("Scored")}, replicates=1)["value"].iloc[0]
    assert found == 100 * np.mean(np.where(data.X_test[:, 0] > 0, 1, -1) == data.y_test)


def test_sparse_and_dense_agree():
    assert_frame_equal(real(dataset(sparse=True)), real(dataset(sparse=False)))


def test_tuning_by_an_online_score_needs_one():
    screened = {"class": "methods_of_the_tests:Screen"}
    tune = {"score": "online", "at": {}, "grid": {"keep": [2, 3]}}
    with pytest.raises(TypeError, match=r"online_score_, which .*:Screen does not have .* final"):
        real(dataset(), methods={"it": screened}, tune=tune)


@pytest.mark.parametrize(
    ("score", "values"), [("online", {"a": 2, "b": 1}), ("final", {"a": 0, "b": 0})]
)
def test_tuning_takes_the_best_point_of_the_whole_grid(score, values):
    table = real(dataset(), methods={"it": mine("Scored", b=9)}, tune=TUNE | {"score": score})
    tuned = table[table["metric"].str.startswith("tuned")]
    assert dict(zip(tuned["metric"].str[6:], tuned["value"], strict=True)) == values
    grid = Scored.calls[:12]
    assert sorted((c["a"], c["b"]) for c in grid) == [(a, b) for a in range(4) for b in range(3)]
    assert {c["k"] for c in grid} == {3}, "tuned at the point that the entry names"
    runs = Scored.calls[12:]
    assert [{k: c[k] for k in values} for c in runs] == [values] * 3
    assert {c["k"] for c in runs} == {1}, "and run with the parameters of the method"


def test_tuning_of_our_own_by_brute_force():
    data, rates = dataset(n=80, d=30), [1e-6, 0.01, 0.3, 30.0]
    tune = {
        "score": "online",
        "at": {"k": 5},
        "grid": {"learning_rate": rates, "alpha": [0.0, 1.0]},
    }
    method = {"class": "FOFSClassifier", "batch_size": 1}
    table = real(data, methods={"OFS": method}, tune=tune, replicates=1, sweep={"k": [5]})
    tuned = table[table["metric"].str.startswith("tuned")]
    found = dict(zip(tuned["metric"].str[6:], tuned["value"], strict=True))
    spec = setting(**REAL)
    seed = int(experiment._seeds(spec, 2**32 - 1).generate_state(1)[0])
    scores = {}
    for rate in rates:
        for alpha in (0.0, 1.0):
            model = FOFSClassifier(
                k=5, learning_rate=rate, alpha=alpha, batch_size=1, random_state=seed
            )
            scores[rate, alpha] = model.fit(data.X_train, data.y_train).online_score_
    assert len(set(scores.values())) > 2
    assert (found["learning_rate"], found["alpha"]) == max(scores, key=scores.get)


def test_a_point_that_is_a_little_better_than_those_before_is_chosen():
    """By less than what the last of 20 passes could still change: the bound must be no narrower."""
    data, passes = dataset(n=80, d=30), 20
    spec = setting(**REAL, passes=passes)
    seed = int(experiment._seeds(spec, 2**32 - 1).generate_state(1)[0])
    given = {"k": 5, "batch_size": 1, "n_passes": passes, "random_state": seed}
    scores = {}
    for rate in (1e-3, 0.003, 0.01, 0.03, 0.1, 0.3):
        model = FOFSClassifier(**given, learning_rate=rate).fit(data.X_train, data.y_train)
        scores[rate] = model.online_score_
    grid = sorted(scores, key=scores.get)  # each better than the last
    assert 0 < scores[grid[-1]] - scores[grid[-2]] < 1 / passes / 2
    spec["tune"] = {"score": "online", "at": {"k": 5}, "grid": {"learning_rate": grid}}
    _, chosen = experiment._tuned(spec, data, {"class": "FOFSClassifier", "batch_size": 1})
    assert chosen == {"learning_rate": grid[-1]}


@pytest.mark.parametrize("grid", [[1e-6, 1e-6], [30.0, 1.0, 1e-6, 0.3, 0.1, 1e-5, 3.0, 0.03]])
def test_what_can_no_longer_be_the_best_is_not_learned_to_its_end(monkeypatch, grid):
    """The best is the same; of equals it is the first."""
    data, passes, shown = dataset(n=80, d=30), 8, []
    learn = FOFSClassifier._learn_rows

    def noted(self, X, y, order):
        shown.append(self.learning_rate)
        learn(self, X, y, order)

    monkeypatch.setattr(FOFSClassifier, "_learn_rows", noted)
    spec = setting(**REAL, passes=passes)
    spec["tune"] = {"score": "online", "at": {"k": 5}, "grid": {"learning_rate": grid}}
    method = {"class": "FOFSClassifier", "batch_size": 1}
    _, chosen = experiment._tuned(spec, data, method)
    asked, seed = len(shown), int(experiment._seeds(spec, 2**32 - 1).generate_state(1)[0])
    given = {"k": 5, "batch_size": 1, "n_passes": passes, "random_state": seed}
    models = [FOFSClassifier(**given, learning_rate=rate) for rate in grid]
    scores = [model.fit(data.X_train, data.y_train).online_score_ for model in models]
    assert chosen == {"learning_rate": grid[int(np.argmax(scores))]}
    most = passes * len(grid)
    assert len(shown) - asked == most and (asked == most if len({*grid}) == 1 else asked < most)


def test_a_method_is_tuned_by_the_parameters_that_it_has():
    tune = {"score": "final", "at": {"k": 3}, "grid": {"learning_rate": [0.1, 1.0], "b": [1]}}
    table = real(dataset(), methods={"OFS": OFS, "it": mine("Scored")}, tune=tune, replicates=1)
    tuned = table[table["metric"].str.startswith("tuned")]
    assert set(zip(tuned["method"], tuned["metric"], strict=True)) == {
        ("OFS", "tuned learning_rate"),
        ("it", "tuned b"),
    }


def test_tuning_never_looks_at_the_test_rows():
    clean = dataset(n=80, d=30)
    poisoned = Dataset("tiny", clean.X_train, clean.y_train, 1e3 * clean.X_test, -clean.y_test)
    tune = {"score": "online", "at": {"k": 5}, "grid": {"learning_rate": [0.001, 0.01, 0.1, 1.0]}}
    for score in ("online", "final"):
        tables = [real(data, tune=tune | {"score": score}) for data in (clean, poisoned)]
        chosen = [t[t["metric"].str.startswith("tuned")]["value"].tolist() for t in tables]
        assert chosen[0] == chosen[1] != []
        accuracy = [t[t["metric"] == "accuracy"]["value"].mean() for t in tables]
        assert accuracy[0] != accuracy[1], "the poison was there"


def test_tuning_does_not_depend_on_the_number_of_replicates_or_company():
    tune = {"score": "online", "at": {"k": 5}, "grid": {"learning_rate": [0.001, 0.01, 0.1, 1.0]}}
    few = real(dataset(), tune=tune, replicates=1)
    many = real(dataset(), tune=tune, methods={"it": mine("Scored"), "OFS": OFS})
    assert_frame_equal(of(few, "OFS"), of(many, "OFS").query("replicate == 0"))


@pytest.mark.parametrize(
    ("passes", "n", "d", "cap", "expected"),
    [
        ("2d/n", 40, 100, None, 5),
        ("2d/n", 40, 101, None, 6),
        ("2d/n", 300, 3, None, 1),
        (4, 40, 100, None, 4),
        ("2d/n", 40, 100, 10**9, 5),
        ("2d/n", 40, 100, 2 * 4000, 2),
        ("2d/n", 40, 100, 3 * 4000 - 1, 2),
        ("2d/n", 40, 100, 10, 1),
    ],
)
@pytest.mark.parametrize("sparse", [False, True])
def test_passes(passes, n, d, cap, expected, sparse):
    X = sp.csr_array(np.ones((n, d))) if sparse else np.ones((n, d))
    data = SimpleNamespace(X_train=X)
    assert tuning.number_of_passes(setting(passes=passes), data, cap) == expected


def test_caps_count_what_is_read():
    """A zero of a sparse set is not read; runs and tuning have limits of their own."""
    data = dataset(n=40, d=100, sparse=True)
    caps = {"run_values": 3 * data.X_train.nnz, "tune_values": 2 * data.X_train.nnz}
    table = real(
        Dataset("tiny", data.X_train.toarray(), data.y_train, data.X_test.toarray(), data.y_test),
        methods={"it": mine("Scored")},
        tune={"score": "online", "at": {}, "grid": {"a": [1, 2]}},
        passes="2d/n",
        replicates=1,
        **caps,
    )
    assert len(table)
    assert [c["n_passes"] for c in Scored.calls] == [2, 2, 3]


# -------------------------------------------------- what is measured, by hand


class Fixed:
    """A model that was not learned."""

    def __init__(self, coef, **more):
        self.coef_ = np.asarray(coef)
        self.__dict__.update(more)

    def decision_function(self, X):
        return X @ np.ravel(self.coef_)

    def predict(self, X):
        return np.where(self.decision_function(X) > 0, 1.0, -1.0)


def test_detection_rate():
    support = np.array([9, 19, 29, 39])
    assert detection_rate(np.array([9, 19]), support) == 50
    assert detection_rate(np.array([9, 19, 29, 39, 40]), support) == 100
    assert detection_rate(np.array([], dtype=int), support) == 0
    assert METRICS["DR"](Fixed([0, 1.0, 2.0, 0]), None, None, np.array([2, 3])) == 50


def test_selected_features():
    assert selected_features(Fixed([0, 2.0, 0, -1e-300])).tolist() == [1, 3]
    assert selected_features(Fixed([[0, 2.0, 0, 1]])).tolist() == [1, 3]
    assert selected_features(Fixed([1, 1, 1], support_=[2])).tolist() == [2]
    assert METRICS["selected"](Fixed([0, 1, 1]), None, None, None) == 2


def test_scores_by_hand():
    X = np.array([[0.1], [0.4], [0.35], [0.8], [-1.0]])
    y = np.array([-1.0, -1.0, 1.0, 1.0, -1.0])
    model = Fixed([1.0])
    # Of the 2 x 3 pairs only (0.35, 0.4) is in the wrong order; 3 of 5 signs are right.
    assert METRICS["AUC"](model, X, y, None) == pytest.approx(5 / 6)
    assert METRICS["accuracy"](model, X, y, None) == pytest.approx(60)
    number = SimpleNamespace(predict=lambda X: np.array([1.0, 2.0, 3.0, 4.0, 5.0]))
    target = np.array([1.0, 2.0, 3.0, 2.0, 4.0])
    assert METRICS["RMSE"](number, X, target, None) == pytest.approx(1.0)


# -------------------------------------------------- one cell of the paper


def test_table_1_strong_5000_is_the_papers():
    """sfsa, Table 1: SGDT 98.05, SFSA 56.75 (the reading that was fitted to the table)."""
    work = shipped.load(scale="paper")
    names = {s.name: s for s in work.entries["sfsa_table_1"].settings}
    spec = copy.deepcopy(names["reconstructed_strong_5000"].spec)
    methods = {name: spec["methods"][name] for name in ("SFSA", "SGDT")}
    spec |= {"methods": methods, "replicates": 3, "metrics": ["DR"], "test_rows": 1}
    table = experiment.run(spec, progress=False)
    rates = table.groupby("method")["value"].agg(["mean", "sem"])
    assert rates.loc["SGDT", "mean"] == pytest.approx(98.05, abs=5)
    assert rates.loc["SFSA", "mean"] == pytest.approx(56.75, abs=5 + 5 * rates.loc["SFSA", "sem"])


# -------------------------------------------------- without test rows, without rows, while learning


@pytest.mark.parametrize(
    ("task", "metrics"),
    [("regression", ["DR", "selected", "RMSE"]), ("classification", ["DR", "selected", "AUC"])],
)
def test_what_is_expected_is_what_many_test_rows_show(task, metrics):
    design = Equicorrelated(p=60, k=4, alpha=0.5, task=task)
    model = Fixed(design.coef * ([-1, 1] * 30) + [0.3, *[0] * 59], intercept_=2.0)
    model.predict = lambda X: X @ model.coef_ + model.intercept_
    X, y = design.sample(100_000, np.random.default_rng(0))
    assert set(metrics) <= set(experiment.EXPECTED) <= set(METRICS)
    for metric in metrics:
        observed = METRICS[metric](model, X, y, design.support)
        assert_allclose(experiment.EXPECTED[metric](model, design), observed, rtol=0.02)


def test_without_test_rows_the_expectation_is_shown():
    shown, expected = run(test_rows=100_000), run(test_rows=None)
    keys = ["method", "replicate", "metric"]
    assert_frame_equal(shown[keys], expected[keys])
    assert_allclose(expected["value"], shown["value"], rtol=0.02)
    rmse = shown["metric"] == "RMSE"
    assert (expected["value"] == shown["value"])[~rmse].all()
    assert (expected["value"] != shown["value"])[rmse].all()


@pytest.mark.parametrize(
    ("task", "cls", "metric", "test_rows", "lacks"),
    [
        ("regression", "SGDTRegressor", "RMSE", None, "coef_"),
        ("classification", "SGDTClassifier", "AUC", None, "coef_"),
        ("classification", "SGDTClassifier", "AUC", 50, "decision_function"),
    ],
)
def test_a_metric_that_a_method_cannot_have_leaves_rows_that_say_so(
    task, cls, metric, test_rows, lacks
):
    data = setting()["data"] | {"task": task}
    common = {"data": data, "metrics": ["DR", metric], "test_rows": test_rows}
    ours = {"SGDT": SGDT | {"class": cls}}
    table = run(methods=ours | {"screen": mine("Screen")}, **common)
    screen = of(table, "screen")
    assert screen.loc[screen["metric"] == "DR", "value"].notna().all()
    lost = screen[screen["metric"] == metric]
    assert lost["value"].isna().all()
    assert set(lost["note"]) == {f"{metric} needs {lacks}, which Screen lacks"}
    assert_frame_equal(of(table, "SGDT").drop(columns="note"), run(methods=ours, **common))


class Broken(BaseEstimator):
    """A user's method whose model is no model, in one place of three."""

    def __init__(self, k=1, where="coef_", bad=np.nan, support=False):
        self.k, self.where, self.bad, self.support = k, where, bad, support

    def fit(self, X, y):
        self.coef_, self.intercept_, self.said = np.ones(X.shape[1]), 0.0, 0.0
        if self.where == "coef_":
            self.coef_ *= self.bad
        else:
            setattr(self, self.where, self.bad)
        if self.support:
            self.support_ = np.arange(X.shape[1])
        return self

    def decision_function(self, X):
        return np.ones(len(X)) * self.intercept_ + self.said

    predict = decision_function


@pytest.mark.parametrize("test_rows", [50, None])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("where", ["coef_", "intercept_", "said"])
def test_a_model_that_is_not_finite_has_no_score_but_a_reason(where, bad, test_rows):
    """Not a number is not zero: all features would count as selected, and DR would be 100 %."""
    if where == "said" and test_rows is None:
        return  # nothing is asked of it there
    broken = mine("Broken", where=where, bad=bad)
    methods = {"broken": broken, "with support": broken | {"support": True}}
    for task, scores in {"regression": ["RMSE"], "classification": ["AUC", "accuracy"]}.items():
        data = setting()["data"] | {"task": task}
        own = [metric for metric in scores if test_rows or metric in experiment.EXPECTED]
        metrics = own if where == "said" else ["DR", "selected", *own]
        table = run(methods=methods, data=data, metrics=metrics, test_rows=test_rows)
        assert len(table) == 2 * 3 * len(metrics) and table["value"].isna().all()
        assert table["note"].str.contains("of Broken is not finite").all()
        if where != "said":
            assert table["note"].str.startswith(f"{where} of Broken").all()


def test_a_value_that_is_not_finite_is_told_too():
    assert METRICS["DR"](Fixed([0, 1.0]), None, None, np.array([1])) == 100
    with pytest.raises(ValueError, match=r"coef_ of Fixed is not finite \(1 of 2 values\)"):
        METRICS["DR"](Fixed([0, np.nan]), None, None, np.array([1]))
    design = Equicorrelated(p=60, k=4)
    large = Fixed(np.full(60, 1e308), intercept_=0.0)
    row = experiment._measured("RMSE", experiment.EXPECTED["RMSE"], large, design)
    assert row == {"metric": "RMSE", "value": None, "note": "RMSE is not finite (inf)"}


def test_a_slip_in_a_users_own_code_is_an_error():
    class Slip:
        def predict(self, X):
            return self.wieghts

    with pytest.raises(AttributeError, match="wieghts"):
        experiment._measured("RMSE", METRICS["RMSE"], Slip(), np.ones((2, 1)), np.ones(2), None)


class Careless(BaseEstimator):
    """A user's method that changes the rows that it is shown, where it is told to."""

    def __init__(self, where="fit"):
        self.where = where

    def fit(self, X, y):
        if self.where == "fit":
            X *= 0.0
        elif self.where == "targets":
            y *= -1.0
        self.classes_, self.coef_ = np.unique(y), np.ones(X.shape[1])
        return self

    def predict(self, X):
        if self.where == "predict":
            X *= 0.0
        return np.ones(X.shape[0])

    decision_function = predict


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("where", ["fit", "targets", "predict"])
def test_rows_that_others_are_shown_can_only_be_read(where, sparse):
    methods = {"it": mine("Careless", where=where), "OFS": OFS}
    with pytest.raises(ValueError, match="read-only") as raised:
        real(dataset(sparse=sparse), methods=methods)
    assert "Careless" in raised.value.__notes__[0]


class CarelessInBlocks(Careless):
    """The same, shown block by block."""

    def partial_fit(self, X, y, classes=None):
        return self.fit(X, y)


@pytest.mark.parametrize("where", ["fit", "targets"])
def test_blocks_that_others_are_shown_can_only_be_read(where):
    data = setting()["data"] | {"task": "classification"}
    methods = {"it": mine("CarelessInBlocks", where=where)}
    with pytest.raises(ValueError, match="read-only"):
        run(methods=methods, data=data, metrics=["accuracy"])


def test_rows_of_the_tuning_can_only_be_read():
    tune = {"score": "final", "at": {}, "grid": {"where": ["fit"]}}
    with pytest.raises(ValueError, match="read-only"):
        real(dataset(), methods={"it": mine("Careless")}, tune=tune)


class Logistic(LogisticRegression):
    """scikit-learn's, whose coefficients have the shape (1, p)."""


def test_the_coefficients_of_scikit_learns_classifiers_have_the_auc_of_their_law():
    data = setting()["data"] | {"task": "classification"}
    table = run(methods={"it": mine("Logistic")}, data=data, metrics=["AUC"], test_rows=None)
    assert table["value"].between(0.6, 1.0).all()


class Named(Scored):
    """Predicts names of labels that are not those of y."""

    def predict(self, X):
        return (X[:, 0] > 0).astype(int)


def test_labels_that_are_none_are_refused_by_the_name_of_their_method():
    with pytest.raises(ValueError, match=r"the labels, -1 and 1, and says \[0, 1\]") as raised:
        real(dataset(), methods={"it": mine("Named")}, replicates=1)
    assert "Named as its accuracy was measured" in raised.value.__notes__[0]


def test_sampled_averages_stand_for_the_rows(monkeypatch):
    """No row is generated unless a method wants it."""
    data = {"simulate": "equicorrelated", "p": 60, "k": 4, "n": 3000, "averages": "sampled"}
    methods = {"it": mine("Averaged"), "OLSth": {"class": "OLSthRegressor"}}
    both = run(methods=methods | {"SFSA": SFSA}, data=data, replicates=2, test_rows=None)
    assert (of(both, "OLSth").query("metric == 'DR'")["value"] == 100).all()
    assert Averaged.seen == [3000, 3000]

    def no_stream(*args):
        yield pytest.fail("rows were generated")

    monkeypatch.setattr(Equicorrelated, "stream", no_stream)
    alone = run(methods=methods, data=data, replicates=2, test_rows=None)
    for method in methods:
        assert_frame_equal(of(alone, method), of(both, method))


def test_what_sums_up_rows_may_be_timed_less_often_than_what_learns_from_the_sums(monkeypatch):
    drawn, stream = [], Equicorrelated.stream

    def counted(*known):
        drawn.append(known)
        yield from stream(*known)

    monkeypatch.setattr(Equicorrelated, "stream", counted)
    data = {"simulate": "equicorrelated", "p": 60, "k": 4, "n": 3000, "averages": "sampled"}
    sums = {"class": "ofslib.averages:RunningAverages", "replicates": 1}
    methods = {"RAVE": sums, "it": mine("Averaged")}
    table = run(methods=methods, data=data, replicates=3, test_rows=None, metrics=["time_s"])
    assert len(of(table, "RAVE")) == 1 and len(of(table, "it")) == 3
    # Beside the few rows on which kernels are compiled.
    assert [design.p for design, *_ in drawn].count(60) == 1
    assert Averaged.seen[-3:] == [3000] * 3


def test_regret_is_tracked_of_rows_and_of_averages():
    methods = {"SGDT": SGDT, "OLSth": {"class": "OLSthRegressor"}}
    tracked = {"track": {"first": 30, "per_decade": 2}, "metrics": ["regret"]}
    both = run(methods=methods, **tracked)
    assert set(zip(both["method"], both["replicate"], strict=True)) == {
        (method, replicate) for method in methods for replicate in range(3)
    }
    assert sorted(set(both["rows"])) == [30, 95, 300] and set(both["metric"]) == {"regret"}
    for method in methods:
        alone = run(methods={method: methods[method]}, **tracked)
        assert_frame_equal(of(alone, method), of(both, method))


def test_drift_is_tracked_beside_the_truth():
    data = {"simulate": "drifting", "p": 60, "k": 2, "n": 300, "a": 0.4, "b": 0.6}
    data |= {"period": 40, "step_rows": 30}
    methods = {"SGDT": SGDT, "two": {**SGDT, "sweep": {"learning_rate": [1e-3, 1e-2]}}}
    table = run(data=data, methods=methods, track={"every": 5, "last": 2}, metrics=["RMSE"])
    assert set(table["method"]) == {"truth", "SGDT", "two"}
    assert set(table.loc[table["method"] == "truth", "metric"]) == {"coef 1", "coef 2"}
    late = table[table["metric"] == "RMSE"]
    assert late.groupby("method").size().to_dict() == {"SGDT": 3, "two": 6}
    same = of(late, "two").query("learning_rate == 0.001")["value"]
    assert same.tolist() == of(late, "SGDT")["value"].tolist()


def test_a_scale_may_try_every_other_point_of_a_tuning_grid():
    tune = {"score": "online", "at": {"k": 5}, "grid": {"a": [0, 1, 2, 3, 4]}}
    real(dataset(), methods={"it": mine("Scored")}, tune=tune, replicates=1, tune_points=3)
    assert [call["a"] for call in Scored.calls[:-1]] == [0, 2, 4]


def test_a_method_may_be_tuned_at_a_point_of_its_own():
    tune = {"score": "online", "at": {"k": 5}, "grid": {"a": [1, 2]}}
    methods = {"it": mine("Scored", at={"k": 3}), "other": mine("Scored")}
    real(dataset(), methods=methods, tune=tune, replicates=1, sweep={"k": [7]})
    assert [call["k"] for call in Scored.calls] == [3, 3, 5, 5, 7, 7]


def test_absent_rows_are_those_of_the_methods_own_sweep():
    methods = {"one": {"class": "SGDTRegressor", "sweep": {"mu": [1, 2, 3]}}, "two": SGDT}
    table = pd.DataFrame(
        experiment.absent(setting(methods=methods, sweep={"k": [5]}, metrics=["DR"]), "gone")
    )
    assert table["method"].tolist() == ["one"] * 3 + ["two"]
    assert table["mu"].tolist()[:3] == [1, 2, 3] and table["k"].tolist()[3] == 5


def test_a_method_whose_package_is_missing_leaves_rows_that_say_so():
    table = run(methods={"SGDT": SGDT, "absent": mine("Absent")})
    lost = table[table["method"] == "absent"]
    assert lost["value"].isna().all()
    assert set(lost["note"]) == {"no_such_package is not installed"}
    alone = run(methods={"SGDT": SGDT})
    assert_frame_equal(table[table["method"] == "SGDT"].drop(columns="note"), alone)


@pytest.mark.parametrize("name", ["VowpalWabbitRegressor", "VowpalWabbitClassifier"])
def test_vowpal_wabbit_predicts_by_the_weights_that_it_shows(name):
    rng = np.random.default_rng(0)
    X, coef = rng.standard_normal((2000, 30)), np.repeat([1.0, 0.0], [3, 27])
    y = X @ coef
    model = getattr(peers, name)(k=3)
    labels = np.where(y > 0, 1.0, -1.0)
    for part in (slice(0, 700), slice(700, None)):
        rows = sp.csr_matrix(X[part]) if part.start else X[part]
        model.partial_fit(rows, y[part] if name.endswith("Regressor") else labels[part])
    assert_array_equal(np.flatnonzero(model.coef_), [0, 1, 2])
    text = "1 | " + " ".join(f"{j}:{value}" for j, value in enumerate(X[0].tolist()))
    margin = X[0] @ model._linear()[0]
    assert_allclose(model.workspace.predict(text), margin, rtol=1e-4)


class Breaks:
    """A method of a user with a fault."""

    def partial_fit(self, X, y):
        raise KeyError("width")


def test_what_a_users_method_raises_names_it_and_its_class():
    models = {("mine", None): Breaks()}
    with pytest.raises(KeyError, match="width") as raised:
        methods.guarded(models, ("mine", None), methods.show, np.zeros((2, 3)), np.zeros(2))
    [note] = raised.value.__notes__
    assert note.startswith(f"This is of {__name__}:Breaks, the method 'mine',")
