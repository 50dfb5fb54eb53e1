"""The model of workers that wait for one central machine, and how times to an error are read."""

import numpy as np
import pytest

from ofslib import AsyncOnlineSubstitution, OnlineSubstitution
from ofslib.reproduction.studies import speedup
from ofslib.reproduction.studies.speedup import Costs, added, first_reached, traced


def test_workers_by_hand():
    # One worker: 5 + 1 + 2 until the first is added, then 1 + 5 + 1 + 2 each.
    times, staleness = added(3, 1, Costs(compute=5.0, service=2.0, delay=1.0))
    assert (times.tolist(), staleness) == ([8.0, 17.0, 26.0], 0.0)
    # Both arrive at 3; the second waits until 4. The first is back at 4 + 3, the second at 5 + 3.
    times, staleness = added(4, 2, Costs(compute=3.0, service=1.0, delay=0.0))
    assert times.tolist() == [4.0, 5.0, 8.0, 9.0]
    assert staleness == 3 / 4


def test_a_busy_central_machine_adds_one_change_per_service():
    costs = Costs(compute=1.0, service=0.5, delay=0.25)
    # One round takes 2: from four workers on it is never idle.
    for q, rate in ((1, 0.5), (2, 1.0), (4, 2.0), (8, 2.0)):
        times, _ = added(1000, q, costs)
        assert 900 / (times[-1] - times[99]) == pytest.approx(rate, rel=0.01)


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
