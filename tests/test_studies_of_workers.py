"""What many workers find and cost: the study, and the model of its times."""

import numpy as np
import pytest

from ofslib.reproduction.studies import workers
from ofslib.reproduction.studies.workers import Costs, on_workers, predicted

COSTS = Costs(row=1e-3, round=0.01, task=0.001, rounds=5, sent=1e4)
SMALL = {"p": 40, "k": 4, "beta": 1.0, "rows": [400], "workers": [1, 3]}


def test_times_by_hand():
    assert predicted(1000, 1, COSTS, 9.0, 1.0) == 1.0  # one worker asks nobody
    # 4 workers learn 250 rows each; a round takes .01 + 3 * .001; 8 e4 bytes take .08 s
    assert predicted(1000, 4, COSTS, 0.0, 1e6) == pytest.approx(0.25 + 5 * 0.013 + 0.08)
    assert predicted(1000, 4, COSTS, 0.1, np.inf) == pytest.approx(0.25 + 5 * 0.213)


def test_many_rows_are_worth_as_many_workers():
    ratio = predicted(10**12, 1, COSTS, 1e-4, 1e8) / predicted(10**12, 64, COSTS, 1e-4, 1e8)
    assert ratio == pytest.approx(64, rel=1e-3)


def test_what_is_found_and_sent():
    rows = list(on_workers({}, np.random.SeedSequence(0), None, processes=None, **SMALL))
    found = {(r["task"], r["n_workers"], r["metric"]): r["value"] for r in rows}
    assert found["regression", 1, "DR"] == found["regression", 3, "DR"] == 100.0
    assert found["regression", 3, "RMSE"] < 1.5 and found["classification", 3, "AUC"] > 0.9
    rounds, sent = (found["regression", 3, metric] for metric in ("rounds", "sent"))
    # Five arrays of float64 and one index of uint32, of all features in the first round and of at
    # least k in the others; sums of the losses and single numbers besides.
    assert 44 * (40 + 4 * (rounds - 1)) < sent < 44 * 40 * 4 + 400 * rounds


def test_without_dask_the_rows_say_so(monkeypatch):
    monkeypatch.setattr(workers.importlib.util, "find_spec", lambda name: None)
    (row,) = on_workers({}, np.random.SeedSequence(0), None, processes={}, **SMALL)
    assert row["value"] is None and row["note"] == "no dask"
