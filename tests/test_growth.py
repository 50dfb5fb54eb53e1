"""Orders of growth and shapes: what is measured, and how it stands beside what is printed."""

from itertools import product
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


def test_exponents_are_the_slopes_with_their_intervals():
    columns = ["method", "metric", "varied", "size", "replicate", "value"]
    rows = [
        ("A", *what, size, run, size ** (power + 0.2 * (run - 0.5)))
        for what, power in ((("time_s", "n"), 1.5), (("bytes", "p"), 2.0))
        for size, run in product((10.0, 20.0, 40.0), (0, 1))
    ]
    table = orders.exponents(pd.DataFrame(rows, columns=columns))
    assert table["slope"].tolist() == pytest.approx([1.5, 2.0])
    # Slopes of 1.4 and 1.6: Student's quantile 12.706 times a standard error of 0.1
    assert table["high"].to_numpy() - table["slope"].to_numpy() == pytest.approx(1.2706, rel=1e-4)
    assert orders.exponents(pd.DataFrame([], columns=columns)).empty


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_the_density_is_that_of_the_fullest_training_row(form):
    X = form(np.array([[0.0, 1, 2, 0], [0, 0, 0, 3]]))
    rows = shape({}, None, SimpleNamespace(X_train=X, X_test=X[:1]))
    found = {row["metric"]: row["value"] for row in rows}
    assert found == {"n_train": 2, "n_test": 1, "n_features": 4, "density": 50.0}
