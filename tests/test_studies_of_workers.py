"""What many workers find and cost: the study, and the model of its times."""

import numpy as np
import pandas as pd
import pytest

from ofslib.reproduction.studies.workers import Costs, on_workers, predicted

COSTS = Costs(row=1e-3, round=0.01, task=0.001, rounds=5, sent=1e4)
SMALL = {"p": 40, "k": 4, "beta": 1.0, "rows": [400], "workers": [1, 3]}


def test_times_by_hand():
    assert predicted(1000, 1, COSTS, 9.0, 1.0) == 1.0  # one worker asks nobody
    # 4 workers learn 250 rows each; a round takes .01 + 3 * .001; 8 e4 bytes take .08 s
    assert predicted(1000, 4, COSTS, 0.0, 1e6) == pytest.approx(0.25 + 5 * 0.013 + 0.08)
    assert predicted(1000, 4, COSTS, 0.1, np.inf) == pytest.approx(0.25 + 5 * 0.213)


def test_what_is_found_and_sent():
    rows = list(on_workers({}, np.random.SeedSequence(0), None, processes=None, **SMALL))
    found = {(r["task"], r["n_workers"], r["metric"]): r["value"] for r in rows}
    assert found["regression", 1, "DR"] == found["regression", 3, "DR"] == 100.0
    assert found["regression", 3, "RMSE"] < 1.5 and found["classification", 3, "AUC"] > 0.9
    rounds, sent = (found["regression", 3, metric] for metric in ("rounds", "sent"))
    # Five arrays of float64 and one index of uint32, of all features in the first round and of at
    # least k in the others; sums of the losses and single numbers besides.
    assert 44 * (40 + 4 * (rounds - 1)) < sent < 44 * 40 * 4 + 400 * rounds


@pytest.mark.slow
def test_processes_learn_what_workers_that_take_turns_learn():
    pytest.importorskip("distributed")
    times = {"n": 300, "n_passes": 2, "repeats": 1, "measured": [2], "modelled": [10**6]}
    times |= {"latency": 1e-4, "bandwidth": 1e8}
    table = pd.DataFrame(on_workers({}, np.random.SeedSequence(0), None, processes=times, **SMALL))
    values = table.set_index("metric")["value"]
    assert values["same bits"] == 1.0 and (values.drop("same bits") >= 0).all()
    speedups = table[table["metric"] == "speed-up"]
    assert set(speedups["method"]) == {"processes", "model", "model, network"}
