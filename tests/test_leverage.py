"""Online leverage scores, their calibration and what they are compared with in the experiments.

Scores, weights and choices against plain numpy: test_leverage_by_the_page.py.
"""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import ofslib
from ofslib import bounds
from ofslib.datasets import Dataset
from ofslib.metrics import clustering_accuracy
from ofslib.reproduction.studies import clustering

every_variant = pytest.mark.parametrize("variant", ["printed", "span", "ridge"])


def features(n=12, p=60, rank=12, seed=0):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((n, rank)) @ rng.standard_normal((rank, p))
    return A * rng.lognormal(0, 0.7, p)


def leverage(variant, **own):
    return ofslib.OnlineLeverageSelector(variant=variant, random_state=0, **own)


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


def test_a_size_that_is_missed_is_told():
    """The printed form starts from nothing and never leaves its span: no rate samples 5."""
    A = features(20, 30, 20)
    with pytest.warns(UserWarning, match="k=5, but 0 features were sampled"):
        leverage("printed", k=5).fit(A)
    A[:, 3:] = 0.0
    with pytest.warns(UserWarning, match="k=6, but 3 features were sampled"):
        assert_array_equal(leverage("span", k=6).fit(A).support_, [0, 1, 2])
    with pytest.raises(ValueError, match="n_initial=12 must be at most k=5"):
        leverage("span", k=5, n_initial=12).fit(A)


def test_clustering_accuracy_is_that_of_the_best_assignment():
    labels, clusters = np.array(list("aabbcc")), np.array([5, 5, 9, 5, 1, 1])
    assert clustering_accuracy(labels, clusters) == pytest.approx(500 / 6)
    # More clusters than classes, and fewer.
    assert clustering_accuracy(np.repeat([0, 1], 5), np.arange(10)) == 20.0
    assert clustering_accuracy(np.arange(4) % 3, np.arange(4) % 2) == 50.0


# The experiments


def test_all_features_are_clustered_as_k_means_does():
    """Three classes that the first two of eight features tell apart; some rows are for testing."""
    rng, y = np.random.default_rng(0), np.arange(60) % 3
    X = rng.standard_normal((60, 8))
    X[:, :2] += 20 * np.array([[0, 0], [0, 1], [1, 0]])[y]
    leverage = {"class": "OnlineLeverageSelector", "variant": "ridge", "ridge": 1e-9}
    methods = {
        "random": {"class": "UniformSelector"},
        "OFS": leverage,
        "best": {"class": "RidgeLeverageSelector", "ridge": 1.0, "sample": False},
        "Alpha": {"class": "AlphaInvesting"},
        "all": {**leverage, "k": None},
    }
    rows = clustering.accuracy(
        {"run_values": None, "methods": methods},
        np.random.SeedSequence(0),
        Dataset("blobs", X[:40], y[:40], X[40:], y[40:]),
        k=[2, 8, 9],
    )
    found = {(row.get("method"), row.get("k"), row["metric"]): row["value"] for row in rows}
    whole = found["k-means", None, "accuracy"]
    for method in ("random", "OFS", "OFS, unweighted", "all"):
        assert found[method, 8, "accuracy"] == whole
    assert found["all", 8, "selected"] == 8
    assert ("random", 9, "accuracy") not in found
    [(k, accepted)] = [(key[1], found[key]) for key in found if key[::2] == ("Alpha", "selected")]
    assert k == accepted
    assert found["best", 2, "accuracy"] == 100.0
    assert [found[None, None, name] for name in ("points", "features", "rows")] == [60, 8, 60]
