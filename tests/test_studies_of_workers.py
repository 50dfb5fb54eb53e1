"""What many workers find and cost: the study, and the model of its times."""

import numpy as np
import pytest

from ofslib import SFSARegressor, fit_dask, fit_parts
from ofslib.reproduction.studies import workers
from ofslib.reproduction.studies.workers import Costs, on_workers, predicted
from ofslib.simulate import Equicorrelated

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


def test_each_number_of_processes_learns_its_own_shares(monkeypatch):
    """Workers of dask are threads here: where rows lie, the turns and the model are as always."""
    distributed = pytest.importorskip("distributed")
    cluster, asked = distributed.LocalCluster, []

    def in_threads(**own):
        asked.append((own["n_workers"], own["processes"]))
        return cluster(**(own | {"processes": False, "host": None}))

    def learn(model, X, y, n_parts):
        """Notes the number of parts, and with how many workers their rows lie."""
        blocks = distributed.futures_of(X)
        distributed.wait(blocks)
        places = distributed.default_client().who_has(blocks).values()
        learned.append((n_parts, len(X), len({place for (place,) in places})))
        return fit_dask(model, X, y, n_parts)

    learned = []
    monkeypatch.setattr(distributed, "LocalCluster", in_threads)
    monkeypatch.setattr(workers, "fit_dask", learn)
    design = Equicorrelated(40, 4, beta=1.0, task="regression")
    shares = {q: [(120 // q, 7 + i) for i in range(q)] for q in (2, 3)}
    seconds, found = workers._on_processes(design, 7, shares, 2, 1)
    assert asked == [(3, True)]
    assert learned[:4] == [(2, 2, 2), (3, 3, 3), (2, 2, 2), (8, 8, 2)]
    assert [one[0] for one in learned[4:]] == [2, 3, 2, 8]  # the first turn compiles
    cases = {("alone", 1), ("rows", 2), ("rows", 3), ("few", 2), ("few", 8)}
    assert seconds.keys() == cases and {len(each) for each in seconds.values()} == {1}
    rows = [workers._drawn(design, *one) for one in shares[2]]
    expected = fit_parts(SFSARegressor(k=4, n_passes=2), rows)
    np.testing.assert_array_equal(found.coef_, expected.coef_)
