"""Models watched while they learn: regret against its definition, coefficients against (5.1)."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

from ofslib import OFSARegressor, OLSRegressor, OLSthRegressor, SIHTRegressor
from ofslib.averages import RunningAverages
from ofslib.reproduction import tracking
from ofslib.simulate import Drifting, Equicorrelated

DESIGN = Equicorrelated(p=30, k=3, beta=2.0)
ENDS = [20, 50, 90]
DRIFT = Drifting(p=20, k=2, a=0.4, b=0.6, period=40, step_rows=30)


def table(rows):
    return pd.DataFrame(rows).set_index(["key", "rows"])["value"]


def squared_regret(X, y, predictions):
    """(3.16), with the best model in hindsight on the true features."""
    own = X[:, DESIGN.support]
    best = own @ np.linalg.lstsq(own, y, rcond=None)[0]
    return np.mean((y - predictions) ** 2) - np.mean((y - best) ** 2)


@pytest.mark.parametrize("block_rows", [30, 1000])
def test_regret_from_rows_is_that_of_each_prediction(monkeypatch, block_rows):
    monkeypatch.setattr(Equicorrelated.stream, "__defaults__", (block_rows,))
    models = {"SIHT": SIHTRegressor(k=3, learning_rate=1e-3)}
    found = table(tracking.regret_from_rows(DESIGN, models, ENDS, np.random.default_rng(0)))
    blocks = list(DESIGN.stream(ENDS[-1], np.random.default_rng(0)))
    assert len(blocks) == (3 if block_rows == 30 else 1)
    X, y = map(np.concatenate, zip(*blocks, strict=True))
    model, predictions = SIHTRegressor(k=3, learning_rate=1e-3), []
    for i in range(len(y)):
        predictions.append(model.predict(X[i : i + 1])[0] if i else 0.0)
        model.partial_fit(X[i : i + 1], y[i : i + 1])
    for end in ENDS:
        expected = squared_regret(X[:end], y[:end], np.array(predictions[:end]))
        assert_allclose(found["SIHT", end], expected, rtol=1e-9)


def test_regret_from_averages_is_that_of_the_rows_they_stand_for(monkeypatch):
    ((X, y),) = DESIGN.stream(ENDS[-1], np.random.default_rng(0))
    given = iter(np.split(np.column_stack([X, y]), ENDS[:-1]))

    def averages_of_rows(n, *law):
        block = next(given)
        assert len(block) == n
        return RunningAverages(DESIGN.p).update(block[:, :-1], block[:, -1])

    monkeypatch.setattr(tracking, "sample_averages", averages_of_rows)
    models = {"OLSth": OLSthRegressor(k=3), "OFSA": OFSARegressor(k=3)}
    found = table(tracking.regret_from_averages(DESIGN, models, ENDS, None))
    for key, model in models.items():
        predictions = np.zeros(len(y))
        for start, end in ((20, 50), (50, 90)):
            fresh = type(model)(k=3).fit(X[:start], y[:start])
            predictions[start:end] = fresh.predict(X[start:end])
        for end in ENDS:
            expected = squared_regret(X[:end], y[:end], predictions[:end])
            assert_allclose(found[key, end], expected, rtol=1e-8)


def test_drift_shows_what_was_learned_after_each_step():
    models = {"OLS": OLSRegressor(), "forgets": OLSRegressor(adaptation=0.01)}
    rng = np.random.default_rng
    rows = pd.DataFrame(tracking.drift(DRIFT, models, 240, rng(0), every=4, last=3))
    alone = OLSRegressor()
    for t, (X, y) in enumerate(DRIFT.stream(240, rng(0)), 1):
        alone.partial_fit(X, y)
        mine = rows[(rows["key"] == "OLS") & (rows["t"] == t)].set_index("metric")["value"]
        assert len(mine) == (3 if t % 4 == 0 else 0)
        if len(mine):
            assert_allclose(mine[["coef 1", "coef 2"]], alone.coef_[DRIFT.support])
            expected = DRIFT.rmse(alone.coef_, alone.intercept_, t + 1)
            assert_allclose(mine["RMSE at t"], expected)
    truth = rows[rows["key"].isna() & (rows["metric"] == "coef 2")]
    assert_allclose(truth["value"], [DRIFT.coef_at(t)[19] for t in (4, 8)])


def test_rmse_at_the_end_is_over_the_last_steps():
    def final(every, last):
        rng, models = np.random.default_rng(0), {"OLS": OLSRegressor()}
        rows = pd.DataFrame(tracking.drift(DRIFT, models, 240, rng, every, last))
        each = rows.loc[rows["metric"] == "RMSE at t", "value"]
        return each, rows.loc[rows["metric"] == "RMSE", "value"].item()

    each, _ = final(every=1, last=1)
    for every, last in ((1, 3), (5, 3), (8, 1)):
        expected = np.sqrt(np.mean(np.square(each[-last:])))
        assert_allclose(final(every, last)[1], expected)
