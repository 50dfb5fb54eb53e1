"""Orders of growth and shapes: what is measured, and how it stands beside what is printed."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from ofslib.reproduction import orders
from ofslib.reproduction.studies import growth as module
from ofslib.reproduction.studies.growth import growth
from ofslib.reproduction.studies.shapes import shape

SIZES = {
    "rows": {"n": 60, "p": 40, "k": 5, "nonzeros": 4},
    "averages": {"n": 60, "p": 20, "k": 3},
    "columns": {"n": 30, "p": 40, "k": 4},
}
ONE_OF_EACH = {
    "SGDT": {"class": "SGDTClassifier"},
    "running averages": {"class": "ofslib.averages:RunningAverages"},
    "OLSth": {"class": "OLSthClassifier"},
    "OLS": {"class": "OLSClassifier"},
    "LapS": {"class": "LaplacianScoreSelector"},
}


def test_each_method_is_measured_at_each_size_that_it_knows(monkeypatch):
    monkeypatch.setattr(module, "_REPEATS", 1)
    setting = {"methods": ONE_OF_EACH, "sweep": {"factor": [1, 2]}}
    table = pd.DataFrame(growth(setting, np.random.SeedSequence(0), None, SIZES))
    assert (table["value"] > 0).all()
    sizes = {label: own for label, own in table.groupby("method")["varied"].agg(set).items()}
    assert sizes["SGDT"] == set(module.VARIED)
    assert sizes["OLSth"] == sizes["LapS"] == {"n", "p", "k"}
    assert sizes["running averages"] == sizes["OLS"] == {"n", "p"}
    assert len(table) == 2 * 2 * sum(map(len, sizes.values()))
    # Of running averages the bytes are those of p^2 numbers, and of the rows that wait.
    averages = table[(table["method"] == "running averages") & (table["metric"] == "bytes")]
    least, most = averages.loc[averages["varied"] == "p", "value"]
    assert most - least > 8 * (40**2 - 20**2)


def test_rows_are_drawn_with_as_many_nonzeros():
    sizes = {"n": 50, "p": 30, "k": 3, "nonzeros": 7}
    X, y = module._drawn(sizes, True, np.random.default_rng(0))
    assert X.shape == (50, 30) and (np.diff(X.indptr) == 7).all() and X.has_canonical_format
    assert set(y) == {-1.0, 1.0}


def results(powers, noise=0.0):
    """Two runs of value = size^power."""
    rows = [
        {"method": method, "metric": metric, "varied": varied, "size": size, "replicate": run}
        | {"value": float(size) ** (power + noise * (run - 0.5))}
        for (method, metric, varied), power in powers.items()
        for size in (10, 20, 40)
        for run in (0, 1)
    ]
    return pd.DataFrame(rows, columns=["method", "metric", "varied", "size", "replicate", "value"])


def test_exponents_are_the_slopes_with_their_intervals():
    table = orders.exponents(results({("A", "time_s", "n"): 1.5, ("A", "bytes", "p"): 2.0}, 0.2))
    assert table["slope"].tolist() == pytest.approx([1.5, 2.0])
    # Slopes of 1.4 and 1.6: Student's quantile 12.706 times a standard error of 0.1
    assert table["high"].to_numpy() - table["slope"].to_numpy() == pytest.approx(1.2706, rel=1e-4)
    assert orders.exponents(results({})).empty


@pytest.mark.parametrize(
    ("order", "powers"),
    [
        ("O(n p^2)", {"n": 1, "p": 2}),
        ("O(p)", {"n": 0, "p": 1}),
        ("O(nnz(A))", {"n": 1, "p": 1}),
        ("O(n d)", {"n": 1, "p": 1}),
        ("O(n log(n))", None),
        ("O(k p)", None),
        ("Slow", None),
        (np.nan, None),
    ],
)
def test_powers_of_a_printed_order(order, powers):
    assert orders.powers(order, ["n", "p"]) == powers


@pytest.mark.parametrize(
    ("low", "high", "word"),
    [
        (0.8, 1.2, "agrees"),
        (1.3, 1.4, "worse"),
        (0.1, 0.7, "better"),
        (1.2, 1.3, "unresolved"),
        (0.7, 0.8, "unresolved"),
    ],
)
def test_an_order_is_told_by_a_quarter(low, high, word):
    assert orders.verdict(1.0, low, high) == word


def test_printed_words_stand_beside_what_is_measured():
    cells = [
        ("X", "time", "O(n p)", ""),
        ("X", "memory", "O(p)", ""),
        ("X", "regret", "Slow", ""),
        ("Y", "time", "O(n)", ""),
        ("Z", "time", "O(n)", ""),
        ("X", "update", np.nan, "dash"),
    ]
    published = pd.DataFrame(cells, columns=["method", "metric", "value", "note"])
    powers = {("A", "time_s", "n"): 1.0, ("A", "time_s", "p"): 2.0, ("A", "bytes", "p"): 1.0}
    time = {"metric": "time_s", "sizes": ["n", "p"]}
    columns = {"time": time, "update": time, "memory": {"metric": "bytes", "sizes": ["p"]}}
    ours, elsewhere = {"X": ["A"], "Z": ["B"]}, {"regret": "a bound"}
    measured = orders.exponents(results(powers))
    table = orders.beside(published, measured, ours, columns, elsewhere)
    assert table["verdict"].tolist() == ["worse", "agrees", *["not comparable"] * 4]
    assert table["measured"].tolist()[:2] == ["n^1.00 p^2.00", "p^1.00"]
    assert table["why"].tolist()[2:] == [
        *("a bound", "not one of our methods", "no result at this scale", "dash")
    ]
    wide = orders.layout(table)
    assert wide.index.tolist() == [("X", "paper"), ("X", "ours"), ("Y", "paper"), ("Z", "paper")]
    assert wide.loc[("X", "paper")].tolist() == ["O(n p)", "O(p)", "Slow", "–"]
    assert wide.loc[("X", "ours")].tolist() == ["n^1.00 p^2.00⁻", "p^1.00", "", ""]
    assert list(wide) == ["Time", "Memory", "Regret", "Update"]
    assert orders.caption("It", table) == "It. ⁻ worse, no mark: agrees, or nothing to compare"


def test_what_is_measured_of_several_methods_has_its_interval_and_a_row_each():
    published = pd.DataFrame(
        [("X", "time", "words", "")], columns=["method", "metric", "value", "note"]
    )
    powers = {("A", "time_s", "n"): 1.5, ("B", "time_s", "n"): -0.001}
    measured = orders.exponents(results(powers, 0.2))
    columns = {"time": {"metric": "time_s", "sizes": ["n"]}}
    table = orders.beside(published, measured, {"X": ["A", "B"]}, columns, {})
    # As above: Student's quantile 12.706 times a standard error of 0.1
    assert table["measured"].tolist() == ["A: n^1.50±1.27; B: n^0.00±1.27"]
    assert orders.layout(table)["Time"].to_dict() == {
        ("X", "paper"): "words",
        ("X", "A"): "n^1.50±1.27",
        ("X", "B"): "n^0.00±1.27",
    }
    assert orders.caption("It", table) == "It. ±: half of the 95 % interval"


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_the_density_is_that_of_the_fullest_training_row(form):
    X = form(np.array([[0.0, 1, 2, 0], [0, 0, 0, 3]]))
    rows = shape({}, None, SimpleNamespace(X_train=X, X_test=X[:1]))
    found = {row["metric"]: row["value"] for row in rows}
    assert found == {"n_train": 2, "n_test": 1, "n_features": 4, "density": 50.0}


def test_an_exponent_is_expected_of_the_methods_and_sizes_that_are_given():
    columns = ["method", "metric", "varied"]
    rows = [("a", "time_s", "n"), ("a", "bytes", "p"), ("b", "time_s", "n")]
    given = [{"methods": ["a"], "time_s": {"n": 1}, "bytes": {"p": 2}}]
    expected = orders.expected(pd.DataFrame(rows, columns=columns), given)
    assert expected[:2].tolist() == [1, 2] and np.isnan(expected[2])
