"""Data sets split by a rule of an entry, and read block by block."""

import bz2
import tracemalloc
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import dump_svmlight_file
from sklearn.metrics import roc_auc_score

from ofslib import SGDTClassifier
from ofslib.reproduction import experiment, splits

ROWS, P = 3500, 40
METHODS = {
    "SGDT": {"class": "SGDTClassifier", "learning_rate": 0.1},
    "SOFS": {"class": "SOFSClassifier"},
}
SEEDS = list(np.random.SeedSequence(3).spawn(2))


@pytest.fixture(scope="module")
def made():
    rng = np.random.default_rng(0)
    X = rng.integers(-3, 4, (ROWS, P)) * (rng.random((ROWS, P)) < 0.3)
    return X.astype(float), np.where(X[:, :5].sum(axis=1) + rng.standard_normal(ROWS) > 0, 7, 2)


@pytest.fixture
def table(made, tmp_path, monkeypatch):
    """A packed text of these rows, named by one line of a table; a block has 1000 rows."""
    monkeypatch.chdir(tmp_path)
    dump_svmlight_file(*made, "rows.svm", zero_based=False)
    with open("rows.svm", "rb") as text, bz2.open("rows.svm.bz2", "wb") as packed:
        packed.write(text.read())
    return listed(
        "mine,libsvm,rows.svm.bz2,classification,40", "numbers,libsvm,rows.svm,regression,40"
    )


def listed(*rows):
    Path("datasets.csv").write_text("\n".join(["name,reader,train,task,n_features", *rows, ""]))
    return "datasets.csv"


def opened(table, dataset="mine", **data):
    return splits.read({"dataset": dataset, **data}, registry_path=table)


def whole(blocks):
    X, y = zip(*blocks, strict=True)
    return np.vstack([splits._dense(part) for part in X]), np.concatenate(y)


def run(table, data, **changes):
    setting = {
        "experiment": "one", "name": "it", "axes": {"set": "mine"}, "data": data, "seed": 1,
        "methods": METHODS, "sweep": {}, "tune": {}, "track": {}, "study": {}, "passes": 1,
        "metrics": ["AUC", "accuracy"], "test_rows": 1000, "replicates": 1, "run_values": None,
        "tune_values": None,
    } | changes  # fmt: skip
    return experiment.run(setting, splits.read(data, registry_path=table), progress=False)


def test_in_the_order_of_the_file_tests_follow_what_is_learned(made, table):
    X, y = made
    split = opened(table, split={"train": 2300, "test": 900})
    assert split.sizes == {"n": 2300, "p": P}
    for _ in range(2):  # also after the other part was read, and before
        for part, rows in ((split.train, slice(2300)), (split.tests, slice(2300, 3200))):
            got = whole(part(SEEDS))
            np.testing.assert_array_equal(got[0], X[rows])
            np.testing.assert_array_equal(got[1], np.where(y[rows] == 7, 1.0, -1.0))
    rest = whole(opened(table, split={"train": 2300}).tests(SEEDS))
    np.testing.assert_array_equal(rest[0], X[2300:])
    with pytest.raises(ValueError, match="expected rows 0 to 4000 of mine, got 3500 rows"):
        whole(opened(table, split={"train": 4000}).train(SEEDS))


def test_at_random_each_row_is_learned_or_predicted_once(made, table):
    split = opened(table, split={"train": 3000, "order": "random"})
    parts = [whole(part(SEEDS)) for part in (split.train, split.tests)]
    again = whole(split.train(SEEDS))
    np.testing.assert_array_equal(again[0], parts[0][0])
    other = whole(split.train([np.random.SeedSequence(4)] * 2))
    assert (other[0] != again[0]).any()
    rows = np.column_stack([np.vstack([X for X, _ in parts]), np.hstack([y for _, y in parts])])
    wanted = np.column_stack([made[0], np.where(made[1] == 7, 1.0, -1.0)])
    assert sorted(map(tuple, rows)) == sorted(map(tuple, wanted))


def test_products_and_standardised_columns(made, table):
    """Products in the order of the pairs; mean and deviation are those of the training rows."""
    X = made[0].copy()
    pairs = [X[:, i] * X[:, j] for i in range(P) for j in range(i, P)]
    wide = np.column_stack([X, *pairs])
    given = {"dataset": "numbers", "products": True, "split": {"train": 2500}}
    split = opened(table, **given)
    assert split.sizes["p"] == wide.shape[1] == P + P * (P + 1) // 2
    np.testing.assert_array_equal(whole(split.train(SEEDS))[0], wide[:2500])
    split = opened(table, **given, standardized=True)
    mean, sd = wide[:2500].mean(axis=0), wide[:2500].std(axis=0)
    got, y = whole(split.tests(SEEDS))
    np.testing.assert_allclose(got, (wide[2500:] - mean) / sd, atol=1e-12)
    labels = made[1].astype(float)
    expected = (labels[2500:] - labels[:2500].mean()) / labels[:2500].std()
    np.testing.assert_allclose(y, expected, atol=1e-12)
    assert 90 + 90 * 91 // 2 == 4185, "the dissertation's"


def test_scores_are_those_of_a_model_that_saw_these_rows(made, table):
    X, y = made[0], np.where(made[1] == 7, 1.0, -1.0)
    found = run(table, {"dataset": "mine", "k": 5, "split": {"train": 2300, "test": 900}})
    model = SGDTClassifier(k=5, learning_rate=0.1, maturity=2300)
    for start in range(0, 2300, 1000):
        stop = min(start + 1000, 2300)
        model.partial_fit(X[start:stop], y[start:stop], classes=[-1.0, 1.0])
    expected = roc_auc_score(y[2300:3200], model.decision_function(X[2300:3200]))
    assert found.loc[0, ["method", "metric"]].tolist() == ["SGDT", "AUC"]
    assert found.loc[0, "value"] == pytest.approx(expected, abs=1e-12) and expected > 0.9


def test_one_model_after_the_other_gives_what_all_at_once_give(table, monkeypatch):
    """Tuned on the first training rows only, and without a trace of the test rows."""
    data = {"dataset": "mine", "k": 5, "split": {"train": 2300, "order": "random"}}
    tune = {"score": "online", "rows": 500, "at": {}, "grid": {"learning_rate": [1e-4, 0.1]}}
    together = run(table, data, tune=tune, replicates=2)
    tuned = together[together["metric"] == "tuned learning_rate"]
    assert tuned["value"].tolist() == [0.1, 0.1] and set(tuned["method"]) == {"SGDT"}
    monkeypatch.setattr(experiment, "AT_ONCE", 0)
    pd.testing.assert_frame_equal(run(table, data, tune=tune, replicates=2), together)


def test_averages_are_learned_once_for_all_models(table, monkeypatch):
    """They are those of the rows: a sweep over k costs no pass of its own."""
    data = {"dataset": "numbers", "split": {"train": 3000}, "standardized": True}
    shown = []
    update = experiment.find_class("ofslib.averages:RunningAverages").update
    monkeypatch.setattr(
        "ofslib.averages.RunningAverages.update",
        lambda self, X, y, *more: shown.append(len(y)) or update(self, X, y, *more),
    )
    methods = {
        name: {"class": f"{name}Regressor", "sweep": {"k": [5, P]}} for name in ("OLSth", "OFSA")
    }
    found = run(table, data, methods=methods, metrics=["R2"])
    assert sum(shown) == 3000
    rows = opened(table, **data)
    (A, b), (Z, t) = whole(rows.train(SEEDS)), whole(rows.tests(SEEDS))
    coef = np.linalg.lstsq(A, b, rcond=None)[0]
    expected = 1 - ((t - Z @ coef) ** 2).sum() / ((t - t.mean()) ** 2).sum()
    all_columns = found[(found["k"] == P) & (found["method"] == "OLSth")]["value"].item()
    assert all_columns == pytest.approx(expected, abs=1e-6) and expected > 0.3


def test_memory_is_that_of_a_block(tmp_path, monkeypatch):
    """Whatever the number of rows: 13,000 rows more would be 9 MB."""
    monkeypatch.chdir(tmp_path)
    line = b"1 " + b" ".join(b"%d:1" % j for j in range(1, 60)) + b"\n"
    with bz2.open("rows.svm.bz2", "wb", 1) as file:
        file.write((line + b"-1" + line[1:]) * 10_000)
    listed("mine,libsvm,rows.svm.bz2,classification,60")
    data = {"dataset": "mine", "k": 2}
    run("datasets.csv", data | {"split": {"train": 1000, "test": 1000}})  # compiled before
    most = []
    for rows in (3000, 16_000):
        tracemalloc.start()
        run("datasets.csv", data | {"split": {"train": rows, "test": 3000}})
        most.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert abs(most[1] - most[0]) < 2**20, most


def test_labels_are_two(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rows.svm").write_text("1 1:1\n2 1:2\n3 1:1\n")
    split = opened(listed("mine,libsvm,rows.svm,classification,"), split={"train": 3})
    with pytest.raises(ValueError, match=r"mine must have two labels, got \[1\.0, 2\.0, 3\.0\]"):
        whole(split.train(SEEDS))
