"""Settings with the same rows are run at once: each has what it has alone, and less is done."""

import json
import sys

import numpy as np
import pandas as pd
import pytest
import shipped
from estimators import public
from pandas.testing import assert_frame_equal
from sklearn.base import BaseEstimator
from test_experiment import setting

from ofslib.reproduction import entries, experiment, methods
from ofslib.reproduction.entries import Setting, _at_once
from ofslib.simulate import Equicorrelated
from ofslib.streams.row_stream import RowStream


class Counting(BaseEstimator):
    """A user's method: notes how many rows it is shown, and diverges after so many."""

    shown = []

    def __init__(self, most=10**9, maturity=None):
        self.most, self.maturity = most, maturity
        self.seen_ = 0

    def partial_fit(self, X, y, classes=None):
        self.seen_ += len(y)
        Counting.shown.append(len(y))
        if self.seen_ > self.most:
            raise FloatingPointError("too many rows")
        self.coef_, self.intercept_ = np.full(X.shape[1], float(self.seen_)), 0.0
        return self


class Absent:
    """A user's method whose package is not there."""

    requires = "no_such_package"

    def fit(self, X, y):
        raise NotImplementedError


@pytest.fixture(autouse=True)
def named(monkeypatch):
    """Make this module importable by name, as a user's module is."""
    monkeypatch.setitem(sys.modules, "methods_of_the_tests", sys.modules[__name__])
    Counting.shown.clear()


def mine(name, **parameters):
    return {"class": f"methods_of_the_tests:{name}", **parameters}


DATA = {"simulate": "equicorrelated", "p": 40, "k": 3, "alpha": 0.5, "task": "regression"}
PEER = "ofslib.reproduction.peers:"


def part(n, own, reading="plain", replicates=1, **changes):
    axes = {"reading": reading, "n": n}
    own = {"methods": own, "axes": axes, "replicates": replicates, "data": DATA | {"n": n}}
    return setting(name=f"{reading}_{n}", **own | changes)


def run(spec):
    return experiment.run(spec, progress=False)


def at_once(parts):
    (one,) = _at_once([Setting(one["name"], one) for one in parts])
    return one.spec


def check_equal(parts):
    """At once as alone, to the last bit; the table, which it returns."""
    table = run(at_once(parts))
    alone = pd.concat([run(one) for one in parts], ignore_index=True)
    assert_frame_equal(table, alone[list(table)], check_exact=True)
    return table


# -------------------------------------------------- the same results


def test_what_is_run_at_once_gives_what_each_gives_alone():
    """Other numbers of rows and replicates, two readings, models of rows, of all rows, of averages,
    swept, slow and cut at n: so that what else is in the run plays no part."""
    own = {
        "SGDT": {"class": "SGDTRegressor", "learning_rate": 1e-3, "maturity": None},
        "SFSA": {"class": "SFSARegressor", "learning_rate": 1e-3, "sweep": {"mu": [1, 5]}},
        "OPG": {"class": "OPGRegressor", "k": 3, "learning_rate": 1e-3, "replicates": 2},
        "scikit-learn": {"class": PEER + "TopKSGDRegressor", "penalty": "l1", "eta0": 1e-3},
        "ridge": {"class": "sklearn.linear_model:Ridge", "alpha": 1.0},
        "OLSth": {"class": "OLSthRegressor"},
    }
    other = own | {"SFSA": own["SFSA"] | {"warmup": 500}, "ridge": own["ridge"] | {"alpha": 9.0}}
    del other["OPG"]
    parts = [
        part(n, shown, reading, replicates, data=DATA | {"n": n, "averages": "sampled"})
        for reading, shown in {"plain": own, "other": other}.items()
        for n, replicates in {3000: 1, 1000: 3, 2000: 2}.items()
    ]
    table = check_equal(parts)
    counts = table.groupby(["n", "reading"])["replicate"].nunique()
    assert counts[1000].tolist() == [3, 3] and counts[3000].tolist() == [1, 1]
    errors = table[(table["metric"] == "RMSE") & (table["replicate"] == 0)]
    errors = errors.set_index(["method", "reading", "n"])["value"]
    assert errors["OLSth"].nunique() == 3
    assert errors["SFSA"].nunique() == 12 and errors["ridge"].nunique() == 6
    assert errors["SGDT"].nunique() == 3


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("task", ["Regressor", "Classifier"])
def test_to_be_scored_on_the_way_changes_no_model(task):
    """Every method of rows, and a peer: with penalties that wait, with means of iterates."""
    names = [cls.__name__ for cls in public(RowStream) if cls.__name__.endswith(task)]
    known = {name: methods.build({"class": name}).get_params() for name in names}
    # As where the end is not known, so that they go on
    own = {name: {"class": name} for name in names}
    own |= {name: own[name] | {"maturity": None} for name in names if "maturity" in known[name]}
    grids = [name for name in names if "n_penalties" in known[name]]
    own |= {f"{name}, one penalty": {"class": name, "k": None} for name in grids}
    own["peer"] = {"class": f"{PEER}TopKSGD{task}"}
    assert len(grids) >= 3 and len(own) >= 12
    data = DATA | {"task": "classification" if task == "Classifier" else "regression"}
    more = {"test_rows": None, "metrics": ["DR", "AUC" if task == "Classifier" else "RMSE"]}
    parts = [part(n, own, data=data | {"n": n}, **more) for n in (1000, 2000)]
    table = check_equal(parts)
    assert {*table["method"]} == {*own} and table["value"].notna().any()


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_sparse_rows_are_shared_too():
    """Where features wait until they occur again, unless the model is read."""
    own = {"SOFS": {"class": "SOFSClassifier"}, "OPG": {"class": "OPGClassifier"}}
    own["SFSA"] = {"class": "SFSAClassifier", "maturity": None}
    own["RDA"] = {"class": "RDAClassifier", "n_penalties": 50}
    data = {"simulate": "sparse_rows", "p": 400, "k": 40, "nonzeros": 40}
    parts = [part(n, own, data=data | {"n": n}, metrics=["DR", "AUC"]) for n in (1000, 2000)]
    check_equal(parts)


@pytest.mark.parametrize("at_once_most", [10**7, 0], ids=["narrow", "wide"])
def test_a_method_that_diverges_or_cannot_be_has_a_reason(monkeypatch, at_once_most):
    monkeypatch.setattr(experiment, "AT_ONCE", at_once_most)
    own = {"mad": mine("Counting", most=1500), "sane": mine("Counting"), "absent": mine("Absent")}
    own["empty"] = {"class": "RDARegressor", "k": 2, "rho": 1e9}
    parts = [part(n, own, test_rows=None) for n in (1000, 2000, 3000)]
    with pytest.warns(UserWarning, match="no feature"):
        table = check_equal(parts)
    assert table.groupby("n")["empty"].sum().tolist() == [2] * 3
    mad = table[(table["method"] == "mad") & (table["metric"] == "DR")].set_index("n")
    assert mad["value"].notna().tolist() == [True, False, False]
    assert mad["note"].tolist()[1:] == ["too many rows"] * 2


def test_replicates_divided_among_runs_are_those_of_one_run(monkeypatch):
    own = {"SGDT": {"class": "SGDTRegressor"}, "absent": mine("Absent")}
    own["few"] = own["SGDT"] | {"replicates": 2}
    parts = [part(n, own, replicates=r) for n, r in {2000: 3, 1000: 5}.items()]
    whole = at_once(parts)
    monkeypatch.setattr(entries, "LONGEST", 2000 * 40 * 2)
    runs = [run.spec for run in _at_once([Setting(one["name"], one) for one in parts])]
    assert [(one["first"], one["replicates"]) for one in runs] == [(0, 2), (2, 4), (4, 5)]
    assert [one["name"][-4:] for one in runs] == ["_0-1", "_2-3", "_4-4"]
    by = ["n", "method", "replicate", "metric"]
    tables = [pd.concat(map(run, specs)).sort_values(by) for specs in ([whole], runs)]
    tables = [table.reset_index(drop=True) for table in tables]
    assert_frame_equal(tables[1][list(tables[0])], tables[0], check_exact=True)


# -------------------------------------------------- less work


def test_models_learn_once():
    own = {"it": mine("Counting", maturity=7), "by n": mine("Counting")}
    other = {"it": own["it"], "again": own["it"]}
    parts = [part(n, own, replicates=r, test_rows=None) for n, r in {3000: 2, 1000: 3}.items()]
    parts += [part(2000, other, "other", 2, test_rows=None)]
    run(at_once(parts))
    # maturity=7 is the same model everywhere; where it is n there is one for each n.
    assert sum(Counting.shown) == (2 * 3000 + 1000) + (2 * 3000 + 3 * 1000)


# -------------------------------------------------- one stream


def test_a_block_that_goes_on_after_an_end_is_refused():
    X, y = Equicorrelated(p=40, k=3).sample(30, np.random.default_rng(0))
    models = {"it": Counting(), "other": Counting()}
    with pytest.raises(ValueError, match="a block ends after row 30, and none after row 20"):
        list(methods.learn(models, {"it": {20, 30}, "other": {30}}, [(X, y)]))


# -------------------------------------------------- what is run at once


@pytest.mark.parametrize("scale", ["smoke", "standard", "paper"])
def test_every_setting_that_a_scale_runs_is_in_one_run(scale):
    work = shipped.load(scale=scale)
    for name, entry in work.entries.items():
        shown = [
            (one["name"], replicate)
            for run in entry.to_run
            for one in run.parts
            for replicate in range(run.spec.get("first", 0), run.spec["replicates"])
            if replicate < one["replicates"]
        ]
        asked = [(s.name, r) for s in entry.settings for r in range(s.spec["replicates"])]
        skipped = {s.name for s in entry.settings if s.skipped}
        assert sorted(shown) == sorted(pair for pair in asked if pair[0] not in skipped)
        assert len({run.name for run in entry.to_run}) == len(entry.to_run)
        for run in entry.to_run:
            assert work.setting(name, run.name) == run and json.loads(json.dumps(run.spec))
            data = [one["data"] | {"n": 0} for one in run.parts]
            assert data == data[:1] * len(data)
    assert all(len(run.parts) == 1 for entry in work.entries.values() for run in entry.timed)
    assert max(len(run.parts) for run in work.entries["sfsa_table_1"].to_run) > 1
