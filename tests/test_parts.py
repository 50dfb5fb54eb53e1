"""Rows in several parts: what `fit_parts` and `fit_dask` make of them, on which scheduler ever."""

import contextlib
import os
import random
from functools import partial
from itertools import pairwise

import dask
import distributed
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from dask import array, dataframe
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import is_classifier
from test_averages import assert_same_averages, learned
from test_averages import rows as averaged_rows

import ofslib
from ofslib import RunningAverages, SFSAClassifier, SFSARegressor, fit_dask, fit_parts
from ofslib.beyond import parts as module
from ofslib.beyond.parts import InTurn
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


ON_ROWS = [
    cls
    for cls in (getattr(ofslib, name) for name in ofslib.__all__)
    if isinstance(cls, type) and issubclass(cls, RowStream)
]


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


def plainly(parts, k, rate, size, mu, warm):
    """Rounds of descent on half the squared error, as the module says, in plain steps."""
    p, rows = parts[0][0].shape[1], [len(y) for _, y in parts]
    mean, weights = sum(rows) // len(rows), np.array(rows) / sum(rows)
    w, left, t, T = np.zeros(p), np.arange(p), 0, -(-mean // size)

    def features(t):
        s, S = t - warm, T - warm
        return p if s <= 0 else k + round((p - k) * (S - s) / (s * mu + S)) if s < S else k

    while t < T:
        goal = max(k, 0.75 * len(left)) if len(left) > k else 0
        end = next(s for s in range(t + 1, T + 1) if s == T or features(s) <= goal)
        found = []
        for X, y in parts:
            own = w.copy()
            first, last = (len(y) * min(s * size, mean) // mean for s in (t, end))
            for s in range(first, last, size):
                x, target = X[s : min(s + size, last)], y[s : min(s + size, last)]
                own[left] -= rate * (x.T @ (x @ own - target))[left] / len(target)
            found.append(own)
        w, t = weights @ np.array(found), end
        left = left[np.sort(np.argsort(-np.abs(w[left]), kind="stable")[: features(t)])]
        w[np.setdiff1d(np.arange(p), left)] = 0.0
    return w


@pytest.mark.parametrize("warm", [0, 5])
def test_several_parts_are_rounds_of_descent_and_averages(warm):
    """The warm-up counts the rows of all three."""
    parts = cut(*rows(task="regression"), 210, 790)  # 210, 580 and 410 rows
    own = {"k": K, "learning_rate": 0.01, "fit_intercept": False, "batch_size": 20, "mu": 3.0}
    model = fit_parts(SFSARegressor(**own, warmup=3 * 20 * warm), parts)
    assert_allclose(model.coef_, plainly(parts, K, 0.01, 20, 3.0, warm), rtol=1e-9)


@pytest.mark.parametrize(
    "own",
    [
        {"optimizer": "adam", "learning_rate": 0.01},
        {"optimizer": "nesterov", "learning_rate": 0.1, "importance": "scaled_coef"},
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


def test_many_workers_find_what_one_finds():
    design = Equicorrelated(300, 20, task="classification")
    X, y = design.sample(8000, np.random.default_rng(1))
    one = fit_parts(SFSAClassifier(k=20), [(X, y)])
    many = fit_parts(SFSAClassifier(k=20), cut(X, y, *range(1000, 8000, 1000)))
    found = [np.isin(design.support, model.support_).mean() for model in (one, many)]
    assert found[1] >= found[0] - 0.05 and found[0] >= 0.9
    assert design.auc(many.coef_) > design.auc(one.coef_) - 0.002


class Counting(InTurn):
    """Keeps what workers send."""

    def __init__(self):
        self.told = []

    def call(self, function, *arguments):
        found = function(*arguments)
        if getattr(function, "func", None) is module._descend:
            self.told.append(found.models)
        return found


def test_what_is_sent_shrinks_with_the_features():
    p, k, seen = 4000, 10, Counting()
    X = sp.random_array((600, p), density=0.01, rng=np.random.default_rng(0), format="csr")
    y = np.where(X @ np.ones(p) > 20.0, 1, -1)
    fit_parts(SFSAClassifier(k=k), [(X, y), (X, y)], scheduler=seen)
    left = [len(models[0].index) for models in seen.told[::2]]
    assert left[0] == p and sum(left) <= p / module.SHARE + 2 * k
    assert all(after <= 0.75 * before or after == k for before, after in pairwise(left))
    (message,) = seen.told[0]
    # Coefficients, their mean, the direction of the largest eigenvalue, mean and mean square of x
    # among the rows observed, and its mean square in all rows
    assert sum(len(part) > 1 for part in message.means + message.sums) == 6


# -------------------------------------------------- what is refused


DIVERGES = SFSARegressor(learning_rate=9.0, batch_size=1)
LEARNED = ofslib.OLSthRegressor(k=K).fit(*rows(task="regression"))


@pytest.mark.parametrize(
    "model, parts, error, message",
    [
        (SFSAClassifier(), lambda X, y: [], ValueError, "parts must be one or more"),
        (SFSAClassifier(), lambda X, y: [(X, y), (X, y, y)], TypeError,
         r"parts\[1\] must be a pair \(X, y\), got 3 items: weights are not taken"),
        (ofslib.Grafting(), lambda X, y: [(X, y)], TypeError, "learns from rows or averages"),
        (ofslib.SGDTClassifier(), lambda X, y: cut(X, y, 9), TypeError, "learn in parts, got SGDT"),
        (SFSAClassifier(forget=99), lambda X, y: cut(X, y, 9), ValueError, "forget=99"),
        (SFSAClassifier(k=0), lambda X, y: cut(X, y, 9), ValueError, "'k' parameter"),
        (SFSAClassifier(class_weight="balanced"), lambda X, y: cut(X, y, 9), ValueError, "bala"),
        (SFSAClassifier(), lambda X, y: cut(X, y, 9, 9), ValueError, "part 1 has none"),
        (SFSAClassifier(), lambda X, y: [(X[:0], y[:0])], ValueError, "part 0 has none"),
        (LEARNED, lambda X, y: [(X[:0], y[:0])], ValueError, "part 0 has none"),
        (SFSAClassifier(), lambda X, y: cut(X, 0 * y, 9), ValueError, "y has 1 class"),
        (SFSAClassifier(), lambda X, y: [(X, y), (X[:, 1:], y)], ValueError, "features"),
        (SFSAClassifier(), lambda X, y: [(X, y), (X[1:], y)], ValueError, "as many rows"),
        (SFSARegressor(), lambda X, y: cut(X, y * np.inf, 9), ValueError, "infinity"),
        (DIVERGES, lambda X, y: cut(X, y, 9), FloatingPointError, "diverged"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused_and_the_model_stays(model, parts, error, message):
    before = dict(vars(model))
    with pytest.raises(error, match=message):
        fit_parts(model, parts(*rows()))
    assert vars(model) == before


def test_blocks_of_labels_that_weigh_nothing_are_passed_over():
    """Wherever they stand; but their columns are those of the others."""
    X, y = rows()
    y[:300] = y[600:900] = 0
    own = {"k": K, "shuffle": False, "class_weight": {0: 0.0}}
    model = SFSAClassifier(**own).fit(X, y)
    blocks = cut(X, y, 300, 600, 900)
    found = fit_dask(SFSAClassifier(**own), *lazily(blocks))
    assert_array_equal(found.coef_, model.coef_)
    assert found.n_samples_seen_ == model.n_samples_seen_ == 600
    blocks[2] = blocks[2][0][:, 1:], blocks[2][1]
    with pytest.raises(ValueError, match="as many columns in each block, got 40, 39"):
        fit_dask(SFSAClassifier(**own), *lazily(blocks))
    with pytest.raises(ValueError, match="part 0 has none"):
        fit_parts(SFSAClassifier(**own), cut(X, y, 300))


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
        "as many rows in each block, got 0 and 200": [(X[:200], y[:200]), (X[none], y[:200])],
        "as many columns in each block, got 5, 40": [(X[none, :5], y[none]), (X, y)],
        "as many columns in each block": [(X, y), (X[none, :5], y[none])],
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


class AnyOrder:
    """Computes as late as it can, in random order, and some things twice."""

    def __init__(self, seed):
        self._random = random.Random(seed)

    def call(self, function, *arguments):
        return function, arguments, []

    def keep(self, later):
        return later

    def get(self, later):
        return self._all(later)

    def _all(self, items):
        places, found = list(range(len(items))), {}
        self._random.shuffle(places)
        for place in places:
            found[place] = self._one(items[place])
        return [found[place] for place in range(len(items))]

    def _one(self, item):
        if isinstance(item, list):
            return self._all(item)
        if not (type(item) is tuple and len(item) == 3 and type(item[2]) is list):
            return item
        function, arguments, done = item
        if not done or self._random.random() < 0.2:
            done[:] = [function(*self._all(list(arguments)))]
        return done[0]


@pytest.mark.parametrize("seed", range(3))
def test_neither_order_nor_repetition_changes_a_bit(seed):
    parts = cut(*rows(), 100, 500, 800)
    expected = fit_parts(SFSAClassifier(k=K), parts)
    assert_same(fit_parts(SFSAClassifier(k=K), parts, scheduler=AnyOrder(seed)), expected)


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
        unknown = frame.to_dask_array(lengths=None), series.to_dask_array(lengths=None)
        assert_same(fit_dask(SFSAClassifier(k=K), *unknown, 2), expected)
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


@contextlib.contextmanager
def processes():
    """A client of two."""
    own = {"processes": True, "n_workers": 2, "threads_per_worker": 1}
    cluster = distributed.LocalCluster(**own, dashboard_address=None, host="127.0.0.1")
    with cluster, distributed.Client(cluster) as client:
        yield client


def no_block():
    raise OSError("no such block")


def test_blocks_that_nobody_holds_are_computed_again_or_say_why(monkeypatch):
    X, y = rows()
    (*blocks, _), targets = lazily(cut(X, y, 300, 900))
    who_has, asked = distributed.Client.who_has, []

    def forgetful(client):
        """As after the death of a worker."""
        asked.append(client)
        return who_has(client) if len(asked) > 1 else {}

    with distributed.Client(processes=False, n_workers=1, dashboard_address=None):
        with pytest.raises(OSError, match="no such block"):
            fit_dask(SFSAClassifier(k=K), [*blocks, dask.delayed(no_block)()], targets, None)
        monkeypatch.setattr(distributed.Client, "who_has", forgetful)
        found = fit_dask(SFSAClassifier(k=K), blocks, targets[:2], None)
    assert found.n_samples_seen_ == 900 and len(asked) == 2


@pytest.mark.slow
def test_processes_one_of_which_dies(tmp_path, monkeypatch):
    death = tmp_path / "died"
    monkeypatch.setenv("OFSLIB_DEATH", str(death))
    monkeypatch.setenv("PYTHONPATH", os.path.dirname(__file__), prepend=os.pathsep)
    X, y = rows()
    expected = fit_parts(SFSAClassifier(k=K), cut(X, y, 600))
    with processes() as client:
        chunked = array.from_array(X, chunks=(300, 7)), array.from_array(y, chunks=200)
        assert_same(fit_dask(Mortal(k=K), *chunked, 2), expected)
        assert death.exists()
        client.wait_for_workers(2)  # one is new
        assert_same(fit_dask(SFSAClassifier(k=K), *chunked, 2), expected)
        lying = client.persist([*map(dask.delayed, np.array_split(X, 5))])
        distributed.wait(distributed.futures_of(lying))
        holders = [min(client.who_has()[block.key]) for block in lying]
        own = [[i for i in range(5) if holders[i] == at] for at in dict.fromkeys(holders)]
        labels = [*map(dask.delayed, np.array_split(y, 5))]
        found = fit_dask(SFSAClassifier(k=K), lying, labels, None)
        blocks = np.array_split(np.arange(N), 5)
        order = [np.concatenate([blocks[i] for i in part]) for part in own]
        expected = fit_parts(SFSAClassifier(k=K), [(X[part], y[part]) for part in order])
        assert_array_equal(found.coef_, expected.coef_)
        assert_array_equal(found.intercept_, expected.intercept_)
        chunked = array.from_array(X, chunks=(300, 7)), array.from_array(y, chunks=200)
        assert fit_dask(SFSAClassifier(k=K), *chunked, None).n_samples_seen_ == N
        Z, z = averaged_rows(5000, 20, mean=5.0)
        chunked = array.from_array(Z, chunks=(300, 7)), array.from_array(z, chunks=300)
        assert_same_averages(RunningAverages.from_dask(*chunked), learned(Z, z))
