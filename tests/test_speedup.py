"""The model of workers that wait for one central machine, and how times to an error are read."""

import numpy as np
import pytest

from ofslib import AsyncOnlineSubstitution, OnlineSubstitution
from ofslib.reproduction.studies import speedup
from ofslib.reproduction.studies.speedup import Costs, added, first_reached, over_network, traced


def test_one_worker_does_one_thing_after_the_other():
    times, staleness = added(3, 1, Costs(compute=5.0, service=2.0, delay=1.0))
    # 5 + 1 + 2 until the first is added, then 1 + 5 + 1 + 2 each
    assert times.tolist() == [8.0, 17.0, 26.0]
    assert staleness == 0.0


def test_two_workers_by_hand():
    # Both arrive at 3; the second waits until 4. The first is back at 4 + 3, the second at 5 + 3.
    times, staleness = added(4, 2, Costs(compute=3.0, service=1.0, delay=0.0))
    assert times.tolist() == [4.0, 5.0, 8.0, 9.0]
    assert staleness == 3 / 4


def test_workers_that_wait_for_nothing_are_q_times_as_fast():
    costs = Costs(compute=1.0, service=0.0, delay=0.0)
    for q in (1, 2, 5):
        times, staleness = added(20 * q, q, costs)
        assert times.tolist() == np.repeat(np.arange(1.0, 21.0), q).tolist()
        assert abs(staleness - (q - 1)) <= (q - 1) / 20


def test_a_busy_central_machine_adds_one_change_per_service():
    costs = Costs(compute=1.0, service=0.5, delay=0.25)
    # One round takes 2: from four workers on it is never idle.
    for q, rate in ((1, 0.5), (2, 1.0), (4, 2.0), (8, 2.0)):
        times, _ = added(1000, q, costs)
        assert 900 / (times[-1] - times[99]) == pytest.approx(rate, rel=0.01)


def test_more_workers_are_never_slower_and_dearer_messages_never_faster():
    ends = [added(500, q, Costs(1.0, 0.1, 0.2))[0][-1] for q in (1, 2, 4, 8, 16, 32)]
    assert ends == sorted(ends, reverse=True)
    for dearer in (Costs(1.1, 0.1, 0.2), Costs(1.0, 0.2, 0.2), Costs(1.0, 0.1, 0.3)):
        assert added(500, 3, dearer)[0][-1] > added(500, 3, Costs(1.0, 0.1, 0.2))[0][-1]


def test_a_network_is_added_to_the_messages_once():
    here = Costs(compute=1.0, service=2e-6, delay=5e-6)
    slow = over_network(here, n=1000, latency=1e-5, bandwidth=1e8)
    assert slow.compute == 1.0
    assert slow.service == pytest.approx(8e-5)
    assert slow.service + 2 * slow.delay == pytest.approx(2e-6 + 2 * (8e-5 + 1e-5))


def test_levels_are_interpolated():
    at, errors = np.array([0.0, 1.0, 2.0, 3.0]), np.array([50.0, 30.0, 10.0, 12.0])
    assert first_reached(at, errors, 60.0) == 0.0
    assert first_reached(at, errors, 25.0) == 1.25
    assert first_reached(at, errors, 5.0) is None
    assert first_reached(at, np.full(4, np.nan), 5.0) is None


@pytest.mark.parametrize("pieces", [1, 3])
def test_looking_changes_nothing(pieces):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((500, 1100))
    y = X[:, :5].sum(axis=1)
    known = {"k": 8, "fit_intercept": False, "refit": False, "random_state": 0}
    for model in (OnlineSubstitution(**known), AsyncOnlineSubstitution(**known)):
        plain = type(model)(**known).fit(X, y)
        trace = traced(model, X, y, pieces)
        assert np.array_equal(model.coef_, plain.coef_)
        assert (np.diff(trace[:, speedup.SECONDS]) >= 0).all()
        assert trace[:, speedup.SHOWN].sum() == 2 * 1100
        # Five blocks of 2^18 / 500 columns in two scans: 3 each
        assert len(trace) == 1 + 6 * pieces
        assert trace[0, speedup.ERROR] == 100.0
        assert trace[-1, speedup.ERROR] == pytest.approx(200 * model.objective_ / np.mean(y**2))


def rows_of():
    small = {
        "n": 100,
        "p": 1200,
        "n_scans": 1,
        "tasks": {"squared_error": {"s": 4, "levels": [60, 1e-9]}},
        "measured": [2],
        "modelled": [1, 4, 8],
        "network": {"latency": 1e-4, "bandwidth": 1e8},
    }
    seeds = np.random.SeedSequence(0)
    rows = speedup.time_to_error({}, seeds, None, **small)
    return [row for row in rows if row["metric"] == "time_s"]


def test_without_mpi_the_rows_say_so(monkeypatch):
    monkeypatch.setattr(speedup, "_lacking", lambda: "mpi4py is not installed")
    rows = rows_of()
    without = {r["method"] for r in rows if r["note"] == "mpi4py is not installed"}
    assert without == {"processes", "model", "model, network"}
    assert all(r["value"] is None for r in rows if r["method"] in without)
    assert {r["note"] for r in rows if r["level"] == 1e-9 and r["method"] == "OS"} == {
        "not reached"
    }
    assert all(r["value"] > 0 for r in rows if r["level"] == 60 and r["method"] not in without)


@pytest.mark.skipif(speedup._lacking() is not None, reason="the group mpi is not installed")
def test_processes_and_the_model_reach_the_error():
    rows = rows_of()
    found = {(r["method"], r["n_workers"]): r["value"] for r in rows if r["level"] == 60}
    # Of eight workers none could keep half a column.
    workers = {"OS": [1], "threads": [2], "processes": [2], "model": [1, 4]}
    workers["model, network"] = workers["model"]
    assert set(found) == {(method, q) for method, qs in workers.items() for q in qs}
    assert all(value > 0 for value in found.values())
    assert found["model, network", 1] > found["model", 1]
