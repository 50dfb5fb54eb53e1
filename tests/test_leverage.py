"""Selection of columns without a model: online leverage scores and what they are compared with."""

import copy
import itertools
import pickle

import naive
import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.utils.estimator_checks import check_estimator
from test_contract import SKIPPED

import ofslib
from ofslib import bounds
from ofslib.datasets import Dataset
from ofslib.metrics import clustering_accuracy
from ofslib.reproduction.studies import clustering
from ofslib.streams.column_stream import ColumnModel, ColumnStream, ScoredSelector

PUBLIC = {name: getattr(ofslib, name) for name in dir(ofslib)}
PUBLIC = {name: cls for name, cls in PUBLIC.items() if isinstance(cls, type)}
STREAMS = {
    name: cls
    for name, cls in PUBLIC.items()
    if issubclass(cls, ColumnStream) and not issubclass(cls, ColumnModel)
}
BATCH = {name: cls for name, cls in PUBLIC.items() if issubclass(cls, ScoredSelector)}
CLASSES = {**STREAMS, **BATCH, "SparseEmbedding": ofslib.SparseEmbedding}
VARIANTS = ("printed", "span", "ridge")
CASES = [pytest.param(cls, {}, id=name) for name, cls in CLASSES.items()]
CASES += [
    pytest.param(ofslib.OnlineLeverageSelector, {"variant": "ridge"}, id="leverage-ridge"),
    pytest.param(ofslib.OnlineLeverageSelector, {"k": 2}, id="leverage-k"),
    pytest.param(ofslib.RidgeLeverageSelector, {"sample": False}, id="ridge-largest"),
]

every_stream = pytest.mark.parametrize("cls", STREAMS.values(), ids=STREAMS)
every_variant = pytest.mark.parametrize("variant", VARIANTS)


def features(n=12, p=60, rank=12, seed=0):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((n, rank)) @ rng.standard_normal((rank, p))
    return A * rng.lognormal(0, 0.7, p)


def leverage(variant, **own):
    return ofslib.OnlineLeverageSelector(variant=variant, random_state=0, **own)


def draws(p):
    seed = np.random.RandomState(0).randint(2**31)
    return np.random.default_rng(seed).random(p)


def new(cls, **own):
    known = cls().get_params()
    wanted = {"random_state": 0, "rate": 0.7}
    return cls(**{name: value for name, value in wanted.items() if name in known} | own)


def test_the_methods_are_there():
    assert set(STREAMS) == {"OnlineLeverageSelector", "AlphaInvesting"}
    assert set(BATCH) == {"RidgeLeverageSelector", "LaplacianScoreSelector", "UniformSelector"}


@pytest.mark.filterwarnings("ignore:k=.*is greater than n_features", "ignore:No features were")
@pytest.mark.parametrize(("cls", "own"), CASES)
def test_scikit_learn_accepts_it(cls, own):
    results = check_estimator(cls(**own), on_skip=None, on_fail="raise")
    skipped = {r["check_name"] for r in results if r["status"] == "skipped"}
    assert skipped <= SKIPPED
    assert all(r["status"] == "passed" for r in results if r["check_name"] not in skipped)


# Online leverage scores


@every_variant
@pytest.mark.parametrize("rank", [12, 7])
@pytest.mark.parametrize("n_initial", [0, 4])
def test_it_is_algorithm_1(variant, rank, n_initial):
    A = features(rank=rank)
    A[:, [0, 30]] = 0.0
    own = {"eps": 0.3, "n_initial": n_initial}
    model = leverage(variant, rate=3.0, ridge=0.5, **own).partial_fit_columns(A)
    expected = naive.online_leverage(A, draws(60), 3.0, variant=variant, ridge=0.5, **own)
    assert_allclose(model.scores_, expected[0], rtol=1e-9, atol=1e-12)
    assert_array_equal(model.support_, expected[1])
    assert_allclose(model.weights_, expected[2], rtol=1e-9)
    assert 0 < len(expected[1]) < 60 or (variant == "printed" and n_initial == 0)


@every_variant
def test_the_rate_is_that_of_the_paper(variant):
    model = leverage(variant, eps=0.25, n_initial=3).fit(features())
    assert model.rate_ == 8 * np.log(12) / 0.25**2
    assert_array_equal(model.weights_ >= 1, True)


@every_variant
def test_scores_stay_exact_over_ten_thousand_features(variant):
    """At the end, of features that were never shown: against the inverse computed anew."""
    n, p = 20, 10_000
    A = features(n, p, n, seed=1) * np.geomspace(1, 1e-2, n)[:, None]
    model = leverage(variant, ridge=1e-2, n_initial=n, rate=20.0).partial_fit_columns(A)
    sampled = A[:, model.support_] * model.weights_
    gram = sampled @ sampled.T + (1e-2 * np.eye(n) if variant == "ridge" else 0.0)
    new = 1e-3 * features(n, 50, n, seed=2) * np.geomspace(1, 1e-2, n)[:, None]
    model.set_params(eps=0.5).partial_fit_columns(new)
    expected = [1.5 * a @ np.linalg.solve(gram, a) for a in new.T]
    # None of the new ones is sampled; else the next score would not be that of `gram`.
    assert model.support_[-1] < p
    assert max(expected) < 1
    assert_allclose(model.scores_[p:], expected, rtol=1e-9)
    assert len(model.support_) > 500


def test_a_drifted_inverse_is_computed_anew(monkeypatch):
    A = features(12, 400)
    model = leverage("span", rate=20.0).partial_fit_columns(A)
    model._state.inverse[...] *= 1.01
    spoilt = pickle.loads(pickle.dumps(model))
    spoilt.partial_fit_columns(features(12, 400, seed=3))
    state = spoilt._state
    assert_allclose(state.moments @ state.inverse, np.eye(12), atol=1e-9)
    monkeypatch.setattr("ofslib.algorithms.online_leverage._DRIFT", np.inf)
    model.partial_fit_columns(features(12, 400, seed=3))
    state = model._state
    assert np.abs(state.moments @ state.inverse - np.eye(12)).max() > 1e-4


@every_variant
def test_copies_go_on_apart(variant):
    """What one learns is not seen by the other."""
    A, more = features(40, 60, 40), features(40, 30, 40, seed=5)
    model = leverage(variant, rate=5.0, n_initial=20).partial_fit_columns(A[:, :30])
    same = [copy.deepcopy(model), pickle.loads(pickle.dumps(model)), model]
    other = copy.deepcopy(model).partial_fit_columns(more)
    assert len(other.support_) > 20
    for each in same:
        each.partial_fit_columns(A[:, 30:])
    for each in same[:2]:
        assert_array_equal(each.scores_, model.scores_)
        assert each._state.basis.tobytes() == model._state.basis.tobytes()
        assert each._state.inverse.tobytes() == model._state.inverse.tobytes()


def test_the_printed_form_never_leaves_the_span():
    """docs/errata.md: five features, then as many as one likes that are orthogonal to them."""
    A = np.zeros((20, 205))
    A[:10, :5] = features(10, 5, 5)
    A[10:, 5:] = features(10, 200, 10)
    printed = leverage("printed", n_initial=5).fit(A)
    assert_array_equal(printed.support_, np.arange(5))
    deviation = bounds.ofs_theorem_1(A, A[:, :5], 0.5)
    assert deviation.left == pytest.approx(1.0)
    assert not deviation.holds
    assert len(leverage("printed").fit(A).support_) == 0
    for variant in ("span", "ridge"):
        model = leverage(variant, n_initial=5).fit(A)
        sampled = model.transform(A) * model.weights_
        assert bounds.ofs_theorem_1(A, sampled, 0.5).holds


def test_with_independent_features_the_span_form_is_uniform():
    A = features(40, 15, 15)
    assert_array_equal(leverage("span", rate=0.5).fit(A).scores_, 1.0)
    scores = leverage("ridge", rate=0.5, ridge=50.0).fit(A).scores_
    assert np.ptp(scores) > 0.1


@pytest.mark.parametrize("shape", [(12, 80), (80, 40)])
@pytest.mark.parametrize("k", [5, 20])
def test_the_rate_is_calibrated(shape, k):
    A = features(*shape, min(shape), seed=4)
    model = leverage("ridge", k=k, ridge=5.0).fit(A)
    assert abs(len(model.support_) - k) <= 1
    own = {"rate": model.rate_, "ridge": 5.0}
    again = leverage("ridge", **own).partial_fit_columns(A)
    assert_array_equal(again.support_, model.support_)
    assert_allclose(again.scores_, model.scores_, rtol=1e-9)
    more = features(shape[0], 30, min(shape), seed=5)
    later = [m.partial_fit_columns(more).support_ for m in (model, again)]
    assert_array_equal(*later)
    with pytest.raises(ValueError, match="k=5: the rate is calibrated on all features, by fit"):
        leverage("ridge", k=5).partial_fit_columns(A)


def test_more_features_than_k_asks_for_may_not_exist():
    A = np.repeat(features(12, 3, 3), 4, axis=1)
    A[:, 3:] = 0.0
    with pytest.warns(UserWarning, match="k=6, but 3 features were sampled"):
        assert_array_equal(leverage("span", k=6).fit(A).support_, [0, 1, 2])


# Alpha-investing


@pytest.mark.parametrize(("n", "p"), [(60, 40), (12, 40)])
def test_wealth_and_choice_are_those_of_the_paper(n, p):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, p)) * np.geomspace(1e-3, 1e3, p) + 5.0
    X[:, 7], X[:, 8] = X[:, 2], 1.0
    y = (X - 5.0)[:, [2, 11, 30]] @ (
        np.array([3.0, 2.0, 2.0]) / np.geomspace(1e-3, 1e3, p)[[2, 11, 30]]
    )
    y += 0.1 * rng.standard_normal(n)
    expected, course = naive.alpha_investing(X, y, 0.4, 0.6)
    model = ofslib.AlphaInvesting(initial_wealth=0.4, payout=0.6)
    for j in range(p):
        model.partial_fit_columns(X[:, [j]], y)
        assert model.wealth_ == pytest.approx(course[j + 1], rel=1e-12)
    assert_array_equal(model.support_, expected)
    assert {2, 11} <= set(expected) or n < p


def test_no_more_is_accepted_than_leave_a_degree_of_freedom():
    """Four rows: a constant and two features leave one, a third would leave none."""
    rng = np.random.default_rng(7)
    X = rng.standard_normal((4, 8))
    y = 1e3 * X[:, 1] + X[:, 3] + 1e-6 * rng.standard_normal(4)
    expected, course = naive.alpha_investing(X, y)
    assert expected == [1, 3]
    model = ofslib.AlphaInvesting()
    for j in range(8):
        model.partial_fit_columns(X[:, [j]], y)
        assert model.wealth_ == pytest.approx(course[j + 1], rel=1e-12)
    assert_array_equal(model.support_, expected)


# Batch baselines


@pytest.mark.parametrize("shape", [(12, 30), (30, 12)])
def test_ridge_leverage_scores(shape):
    A = features(*shape, 9)
    inverse = np.linalg.inv(A @ A.T + 0.3 * np.eye(shape[0]))
    expected = np.array([a @ inverse @ a for a in A.T])
    model = ofslib.RidgeLeverageSelector(k=4, ridge=0.3, sample=False).fit(A)
    assert_allclose(model.scores_, expected, rtol=1e-9)
    assert_array_equal(model.support_, np.sort(np.argsort(-expected)[:4]))


def test_ridge_leverage_draws_by_the_scores():
    """k = 1 in 2000 draws: the shares of the features are the scores over their sum."""
    A = features(6, 5, 5)
    model = ofslib.RidgeLeverageSelector(k=1, ridge=2.0).fit(A)
    shares = model.scores_ / model.scores_.sum()
    rng = np.random.RandomState(0)
    model.random_state = rng
    counts = np.bincount([model._ranks(model.scores_).argmax() for _ in range(2000)], minlength=5)
    assert np.all(np.abs(counts - 2000 * shares) < 4 * np.sqrt(2000 * shares * (1 - shares)))
    assert np.ptp(shares) > 0.05


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_laplacian_scores_are_those_of_the_paper(form):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((15, 6))
    X[:, 1] += 8 * (np.arange(15) > 7)
    own = {"n_neighbors": 3, "bandwidth": 4.0, "k": 1}
    model = ofslib.LaplacianScoreSelector(**own).fit(form(X))
    assert_allclose(-model.scores_, naive.laplacian_scores(X, 3, 4.0), rtol=1e-9)
    assert_array_equal(model.support_, [1])
    X[:, 3] = 0.7
    constant = ofslib.LaplacianScoreSelector(**own).fit(form(X)).scores_
    assert constant[3] == -np.inf
    assert np.all(np.isfinite(np.delete(constant, 3)))


def test_sparse_embedding_keeps_lengths_on_average():
    X = np.random.default_rng(0).standard_normal((1, 50))
    models = [ofslib.SparseEmbedding(k=20, random_state=seed).fit(X) for seed in range(400)]
    assert all(abs(model.components_).sum() == 50 for model in models)
    squares = [np.sum(model.transform(X) ** 2) for model in models]
    error = np.std(squares) / 20
    assert abs(np.mean(squares) - np.sum(X**2)) < 4 * error
    assert models[0].transform(sp.csr_array(X)).tobytes() == models[0].transform(X).tobytes()


# What is promised of all


@every_stream
def test_blocks_of_any_size_give_the_same_selection(cls):
    A, y = features(15, 40, 15), np.random.default_rng(1).standard_normal(15)
    whole = new(cls).partial_fit_columns(A, y)
    for size in (1, 7):
        parts = new(cls)
        for i in range(0, 40, size):
            parts = pickle.loads(pickle.dumps(parts)).partial_fit_columns(A[:, i : i + size], y)
        assert_array_equal(parts.support_, whole.support_)
        for one, two in zip(parts._state, whole._state, strict=True):
            if isinstance(one, np.ndarray):
                assert one.tobytes() == two.tobytes()


@every_stream
@pytest.mark.parametrize("form", [sp.csc_array, sp.csr_array, np.asfortranarray])
def test_the_layout_does_not_matter(cls, form):
    A = features(15, 40, 15)
    y = A[:, 4] - A[:, 9]
    A[np.abs(A) < 0.5] = 0.0
    model, other = new(cls).fit(A, y), new(cls).fit(form(A), y)
    assert 0 < len(model.support_) < 40
    assert_array_equal(other.support_, model.support_)
    assert_array_equal(model.transform(A), A[:, model.support_])


@pytest.mark.parametrize("cls", BATCH.values(), ids=BATCH)
def test_exactly_k_are_kept(cls):
    A = features(15, 40, 15)
    model = new(cls, k=6).fit(A)
    assert len(model.support_) == len(set(model.support_)) == 6
    assert_array_equal(new(cls, k=6).fit(A).support_, model.support_)
    with pytest.warns(UserWarning, match="k=41 is greater than n_features=40"):
        assert len(new(cls, k=41).fit(A).support_) == 40


def test_columns_that_are_refused_leave_no_trace():
    A = features()
    model = leverage("span").partial_fit_columns(A)
    before = pickle.dumps(model._state)
    for bad, match in ((A[1:], "11 rows"), (np.where(A > 1, np.nan, A), "NaN")):
        with pytest.raises(ValueError, match=match):
            model.partial_fit_columns(bad)
    with pytest.raises(ValueError, match=r"rate=2\.0 differs"):
        model.set_params(rate=2.0).partial_fit_columns(A)
    assert pickle.dumps(model._state) == before
    with pytest.raises(ValueError, match="needs the targets"):
        ofslib.AlphaInvesting().partial_fit_columns(A)


def test_clustering_accuracy_is_that_of_the_best_assignment():
    labels, clusters = np.array(list("aabbcc")), np.array([5, 5, 9, 5, 1, 1])
    best = max(
        np.mean(
            [
                dict(zip((1, 5, 9), names, strict=True))[c] == y
                for y, c in zip(labels, clusters, strict=True)
            ]
        )
        for names in itertools.permutations("abc")
    )
    assert clustering_accuracy(labels, clusters) == pytest.approx(100 * best)
    assert clustering_accuracy(labels, np.arange(6)) == 50.0
    # More clusters than classes, and fewer.
    assert clustering_accuracy(np.repeat([0, 1], 5), np.arange(10)) == 20.0
    assert clustering_accuracy(np.arange(4) % 3, np.arange(4) % 2) == 50.0


# The experiments


def blobs():
    """Three classes that the first two of eight features tell apart; some rows are for testing."""
    rng = np.random.default_rng(0)
    y = np.arange(60) % 3
    X = rng.standard_normal((60, 8))
    X[:, :2] += 20 * np.array([[0, 0], [0, 1], [1, 0]])[y]
    return Dataset("blobs", X[:40], y[:40], X[40:], y[40:])


def clustered(run_values=None, **methods):
    setting = {"run_values": run_values, "methods": methods}
    rows = clustering.accuracy(setting, np.random.SeedSequence(0), blobs(), k=[2, 8, 9])
    return {(row.get("method"), row.get("k"), row["metric"]): row["value"] for row in rows}


def test_scores_of_a_data_set_are_computed_once_for_all_orders_of_its_features(monkeypatch):
    setting = {
        "run_values": None,
        "methods": {
            "LapS": {"class": "LaplacianScoreSelector"},
            "uniform": {"class": "UniformSelector"},
        },
    }
    computed = []
    whole = ofslib.LaplacianScoreSelector._scores
    monkeypatch.setattr(
        ofslib.LaplacianScoreSelector,
        "_scores",
        lambda self, X: computed.append(1) or whole(self, X),
    )

    def shown(replicate, data):
        return list(clustering.accuracy(setting, np.random.SeedSequence(replicate), data, [3, 5]))

    data = blobs()
    together = [shown(replicate, data) for replicate in range(4)]
    assert len(computed) == 1
    assert together == [shown(replicate, blobs()) for replicate in range(4)]
    assert len(computed) == 5


def test_all_features_are_clustered_as_k_means_does():
    leverage = {"class": "OnlineLeverageSelector", "variant": "ridge", "ridge": 1e-9}
    found = clustered(
        random={"class": "UniformSelector"},
        OFS=leverage,
        best={"class": "RidgeLeverageSelector", "ridge": 1.0, "sample": False},
        Alpha={"class": "AlphaInvesting"},
        all={**leverage, "k": None},
    )
    whole = found["k-means", None, "accuracy"]
    for method in ("random", "OFS", "OFS, unweighted", "all"):
        assert found[method, 8, "accuracy"] == whole
    assert found["all", 8, "selected"] == 8
    assert ("random", 9, "accuracy") not in found
    [(k, accepted)] = [(key[1], found[key]) for key in found if key[::2] == ("Alpha", "selected")]
    assert k == accepted
    assert found["best", 2, "accuracy"] == 100.0
    assert [found[None, None, name] for name in ("points", "features", "rows")] == [60, 8, 60]


def test_features_are_clustered_with_their_weights_and_without(monkeypatch):
    monkeypatch.setattr(clustering, "_clustered", lambda task, X: np.sum(X**2))
    found = clustered(OFS={"class": "OnlineLeverageSelector", "rate": 0.4, "k": None})
    [k] = [key[1] for key in found if key[::2] == ("OFS", "selected")]
    # Independent features: all have p = rate.
    weighted, plain = found["OFS", k, "accuracy"], found["OFS, unweighted", k, "accuracy"]
    assert weighted == pytest.approx(plain / 0.4)


def test_rows_are_left_out_where_the_scale_says_so():
    assert clustered(30 * 8 * 3)[None, None, "rows"] == 30
    assert clustered(1)[None, None, "rows"] == 15


def test_every_method_is_timed():
    setting = {"run_values": None, "methods": {"a": {"class": "SparseEmbedding"}}}
    [row] = clustering.seconds(setting, np.random.SeedSequence(0), blobs(), k=2)
    assert (row["method"], row["metric"]) == ("a", "time_s")
    assert row["value"] > 0


def test_a_size_that_is_missed_is_told():
    """The printed form starts from nothing and never leaves its span: no rate samples 5."""
    X = np.random.default_rng(0).standard_normal((20, 30))
    with pytest.warns(UserWarning, match="k=5, but 0 features were sampled"):
        ofslib.OnlineLeverageSelector(k=5, variant="printed").fit(X)
    with pytest.raises(ValueError, match="n_initial=12 must be at most k=5"):
        ofslib.OnlineLeverageSelector(k=5, n_initial=12).fit(X)
