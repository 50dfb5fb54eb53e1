"""Rows in several parts: what `fit_parts` and `fit_dask` make of them, on which scheduler ever."""

import os
from functools import partial

import dask
import distributed
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from dask import array, dataframe
from estimators import public
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import is_classifier
from test_averages import assert_same_averages, learned
from test_averages import rows as averaged_rows

import ofslib
from ofslib import RunningAverages, SFSAClassifier, SFSARegressor, fit_dask, fit_parts
from ofslib.simulate import Equicorrelated
from ofslib.streams.row_stream import RowStream

N, P, K = 1200, 40, 4


def rows(n=N, seed=0, task="classification"):
    return Equicorrelated(P, K, task=task).sample(n, np.random.default_rng(seed))


def cut(X, y, *ends):
    """The parts that end there."""
    return [(X[i:j], y[i:j]) for i, j in zip((0, *ends), (*ends, len(y)), strict=True)]


def everything(model):
    """All numbers that a model has learned."""
    # `online_loss_` is a sum by blocks: equal up to rounding.
    return model.coef_, model.intercept_, round(model.online_loss_, 12), model.n_samples_seen_


def assert_same(one, other, compare=assert_array_equal):
    for a, b in zip(everything(one), everything(other), strict=True):
        compare(a, b)


# -------------------------------------------------- one part


def lazily(blocks, form=np.asarray):
    """X and y as lists of delayed blocks."""
    return [dask.delayed(form)(x) for x, _ in blocks], [dask.delayed(y) for _, y in blocks]


ON_ROWS = public(RowStream)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    "cls, form",
    [(cls, np.asarray) for cls in ON_ROWS] + [(cls, sp.csr_array) for cls in ON_ROWS[-2:]],
)
def test_one_part_is_the_method_itself(cls, form):
    X, y = rows(task="classification" if is_classifier(cls()) else "regression")
    own = {"k": K, "n_passes": 2, "random_state": 0}
    alone = cls(**own, shuffle=False).fit(form(X), y)
    model = fit_parts(cls(**own), [(form(X), y)])
    assert_same(model, alone)
    with dask.config.set(scheduler="sync"):
        model = fit_dask(cls(**own), *lazily(cut(X, y, 300, 301, 301, 900), form))
    assert_array_equal(model.coef_, alone.coef_)
    assert_array_equal(model.intercept_, alone.intercept_)
    assert_allclose(model.online_loss_, alone.online_loss_, rtol=1e-12)


# -------------------------------------------------- several parts


@pytest.mark.parametrize(
    "own",
    [
        {"optimizer": "adam", "learning_rate": 0.01},
        {"importance": "scaled_root", "class_weight": {1.0: 2.0}},
        {"n_passes": 3, "maturity": 2000, "warmup": 500, "batch_size": 7},
        {},
    ],
    ids=str,
)
def test_sparse_rows_uneven_parts_and_their_order(own):
    X, y = rows()
    dense, sparse = (
        fit_parts(SFSAClassifier(k=K, **own), cut(form(X), y, 200, 900))
        for form in (np.asarray, sp.csr_array)
    )
    assert_same(dense, sparse, partial(assert_allclose, rtol=1e-7))
    assert dense.n_samples_seen_ == N * own.get("n_passes", 1)
    assert dense.score(X, y) > 0.8
    first, *others = cut(X, y, 200, 900)
    turned = fit_parts(SFSAClassifier(k=K, **own), [*others, first])
    assert own or assert_same(dense, turned, partial(assert_allclose, rtol=1e-7)) is None


# -------------------------------------------------- what is refused


DIVERGES = SFSARegressor(learning_rate=9.0, batch_size=1)


@pytest.mark.parametrize(
    "model, parts, error, message",
    [
        (SFSAClassifier(), lambda X, y: [], ValueError, "parts must be one or more"),
        (SFSAClassifier(), lambda X, y: [(X, y), (X, y, y)], TypeError,
         r"parts\[1\] must be a pair \(X, y\), got 3 items: weights are not taken"),
        (ofslib.Grafting(), lambda X, y: [(X, y)], TypeError, "learns from rows or averages"),
        (ofslib.SGDTClassifier(), lambda X, y: cut(X, y, 9), TypeError, "learn in parts, got SGDT"),
        (SFSAClassifier(forget=99), lambda X, y: cut(X, y, 9), ValueError, "forget=99"),
        (SFSAClassifier(class_weight="balanced"), lambda X, y: cut(X, y, 9), ValueError, "bala"),
        (SFSAClassifier(), lambda X, y: cut(X, y, 9, 9), ValueError, "part 1 has none"),
        (SFSAClassifier(), lambda X, y: cut(X, 0 * y, 9), ValueError, "y has 1 class"),
        (SFSAClassifier(), lambda X, y: [(X, y), (X[:, 1:], y)], ValueError, "features"),
        (SFSAClassifier(), lambda X, y: [(X, y), (X[1:], y)], ValueError, "as many rows"),
        (DIVERGES, lambda X, y: cut(X, y, 9), FloatingPointError, "diverged"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused_and_the_model_stays(model, parts, error, message):
    before = dict(vars(model))
    with pytest.raises(error, match=message):
        fit_parts(model, parts(*rows()))
    assert vars(model) == before


AND_AVERAGES = [
    partial(fit_dask, SFSARegressor(k=2)),
    lambda X, y: fit_dask(SFSARegressor(k=2), 2 * X, 2 * y, n_parts=2),
    RunningAverages.from_dask,
]


@pytest.mark.parametrize("learn", AND_AVERAGES, ids=["alone", "together", "averages"])
def test_blocks_that_cannot_be_of_the_same_rows_are_refused(learn):
    X, y = rows(task="regression")
    frame, none = pd.DataFrame(X[:, :2], columns=["a", "b"]), slice(0)
    refused = {
        "as many rows in each block, got 200 and 0": [(X[:200], y[none]), (X[:200], y[:200])],
        "as many columns in each block, got 5, 40": [(X[none, :5], y[none]), (X, y)],
        "in the same order in each block": [
            (frame, y), (frame[none][["b", "a"]], y[none])
        ],
    }  # fmt: skip
    with dask.config.set(scheduler="sync"):
        for message, blocks in refused.items():
            with pytest.raises(ValueError, match=message):
                learn(*lazily(blocks, lambda x: x))
        learn(*lazily([(X[none], y[none]), (X, y), (X[none], y[none])]))


# -------------------------------------------------- schedulers


@pytest.mark.parametrize("scheduler", ["sync", "threads"])
def test_collections_of_dask_are_the_same_rows(scheduler):
    X, y = rows()
    expected = fit_parts(SFSAClassifier(k=K), cut(X, y, 600))
    names = [f"x{j}" for j in range(P)]
    frame = dataframe.from_array(array.from_array(X, chunks=(300, P)), columns=names)
    labels = array.from_array(y, chunks=200)
    with dask.config.set(scheduler=scheduler):
        found = fit_dask(SFSAClassifier(k=K), array.from_array(X, chunks=(300, 7)), labels, 2)
        assert_same(found, expected)
        series = dataframe.from_array(labels.rechunk(300))
        found = fit_dask(SFSAClassifier(k=K), frame, series, 2)
        assert_same(found, expected)
        assert found.feature_names_in_.tolist() == names
        averages = RunningAverages.from_dask(frame, series)
        least = fit_dask(ofslib.OLSthClassifier(k=K), frame, series)
    assert_same_averages(averages, learned(X, y))
    assert_allclose(least.coef_, ofslib.OLSthClassifier(k=K).fit(X, y).coef_, rtol=1e-10)


class Mortal(SFSAClassifier):
    """The first worker that comes so far dies."""

    def ranked_by(state, hyper):
        if state.steps[0] > 9 and "OFSLIB_DEATH" in os.environ:
            try:
                os.close(os.open(os.environ["OFSLIB_DEATH"], os.O_CREAT | os.O_EXCL))
            except FileExistsError:
                pass
            else:
                os._exit(1)
        return SFSAClassifier.ranked_by(state, hyper)


@pytest.mark.slow
def test_processes_one_of_which_dies(tmp_path, monkeypatch):
    death = tmp_path / "died"
    monkeypatch.setenv("OFSLIB_DEATH", str(death))
    monkeypatch.setenv("PYTHONPATH", os.path.dirname(__file__), prepend=os.pathsep)
    X, y = rows()
    expected = fit_parts(SFSAClassifier(k=K), cut(X, y, 600))
    own = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None}
    with distributed.Client(**own, host="127.0.0.1") as client:
        chunked = array.from_array(X, chunks=(300, 7)), array.from_array(y, chunks=200)
        assert_same(fit_dask(Mortal(k=K), *chunked, 2), expected)
        assert death.exists()
        client.wait_for_workers(2)  # one is new
        assert_same(fit_dask(SFSAClassifier(k=K), *chunked, 2), expected)
        assert fit_dask(SFSAClassifier(k=K), *chunked, None).n_samples_seen_ == N
        Z, z = averaged_rows(5000, 20, mean=5.0)
        chunked = array.from_array(Z, chunks=(300, 7)), array.from_array(z, chunks=300)
        assert_same_averages(RunningAverages.from_dask(*chunked), learned(Z, z))
