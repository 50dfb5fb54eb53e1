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


def test_processes_are_measured_up_to_the_cores_and_two_in_any_case(monkeypatch):
    """Of the seconds that they take, the medians: the model of two must predict two."""
    asked = {"n": 600, "n_passes": 2, "repeats": 3, "measured": [3, 4], "modelled": [1e6]}
    asked |= {"latency": 0.0, "bandwidth": 1e9}

    def on_processes(design, seed, shares, n_passes, repeats):
        assert {q: {n for n, _ in own} for q, own in shares.items()} == {2: {300}, 3: {200}}
        assert all(len({s for _, s in own}) == q for q, own in shares.items())
        seconds = {("rows", q): [1.5 / q, 0.1, 99.0] for q in shares} | {("alone", 1): [1.0, 9, 0]}
        rows = [workers._drawn(design, *one) for one in shares[2]]
        parts = fit_parts(SFSARegressor(k=design.k, n_passes=n_passes), rows)
        return seconds | {("few", 2): [0.0], ("few", 8): [0.0]}, parts

    monkeypatch.setattr(workers.machine, "cores", lambda: 3)
    monkeypatch.setattr(workers, "_on_processes", on_processes)
    rows = list(on_workers({}, np.random.SeedSequence(0), None, processes=asked, **SMALL))
    shown = {(r["method"], r["n"], r["n_workers"]): r["value"] for r in rows if "n_workers" in r}
    measured = {where: value for where, value in shown.items() if where[0] == "processes"}
    assert measured == {("processes", 1200, 2): 1 / 0.75, ("processes", 1200, 3): 1 / 0.5}
    assert shown["model", 1e6, 3] == pytest.approx(3)
    # The median of the single process, over 600 rows shown twice.
    assert [r["value"] for r in rows if r["metric"] == "row"] == [pytest.approx(1 / 1200)]
    assert [r["value"] for r in rows if r["metric"] in ("same bits", "cores")] == [3, 1.0]


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
