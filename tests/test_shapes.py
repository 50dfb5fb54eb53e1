"""The stand-ins for large public sets: their law, and that blocks and starts do not matter."""

import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.metrics import roc_auc_score

from ofslib import simulate

# The shapes, small: rows of a day, days and features in proportion
SMALL = {
    "URL": simulate.URLShaped(p=20_000, k=60, nonzeros=40, day_rows=700, days=12, train_days=9),
    "Avazu": simulate.AvazuShaped(p=5000, k=50),
    "webspam": simulate.WebspamShaped(p=30_000, k=200, nonzeros=150),
}
shapes = pytest.mark.parametrize("design", SMALL.values(), ids=SMALL)
DESIGNS = SMALL | {
    "equicorrelated": simulate.Equicorrelated(
        p=57, k=5, alpha=1.0, beta=(0.05, 1), task="classification"
    ),
    "independent": simulate.Equicorrelated(p=57, k=5, alpha=0.0),
    "sparse": simulate.SparseRows(p=300, k=10, nonzeros=20),
    "sparse, dense support": simulate.SparseRows(p=300, k=10, nonzeros=20, dense_support=True),
}


def drawn(design, n, seed=0, **how):
    blocks = list(design.stream(n, np.random.default_rng(seed), **how))
    X = sp.vstack([sp.csr_array(X) for X, _ in blocks])
    return X, np.concatenate([y for _, y in blocks]), blocks


def assert_same_rows(one, other):
    for part in ("indptr", "indices", "data"):
        assert_array_equal(getattr(one[0], part), getattr(other[0], part))
    assert_array_equal(one[1], other[1])


# ---------------------------------------- the same rows, however they are asked for


@pytest.mark.parametrize("design", DESIGNS.values(), ids=DESIGNS)
@pytest.mark.parametrize("block_rows", [1, 7, 699, 5000])
def test_rows_do_not_depend_on_the_blocks(design, block_rows):
    n = 30 if block_rows == 1 else 2500
    whole, parts = drawn(design, n), drawn(design, n, block_rows=block_rows)
    assert_same_rows(whole, parts)
    sizes = [X.shape[0] for X, _ in parts[2]]
    # A setting with fewer rows shares the first ones.
    fewer = n // 2
    assert_same_rows((whole[0][:fewer], whole[1][:fewer]), drawn(design, fewer))
    assert sum(sizes) == n and set(sizes[:-1]) <= {block_rows} and sizes[-1] <= block_rows


@shapes
@pytest.mark.parametrize("start", [1, 699, 700, 1873])
def test_a_stream_that_starts_later_has_the_later_rows(design, start):
    X, y, _ = drawn(design, 2000)
    assert_same_rows((X[start:], y[start:]), drawn(design, 2000, start=start, block_rows=300))
    assert_same_rows((X[:start], y[:start]), drawn(design, start))
    assert drawn(design, 800, seed=1)[0].indices[:50].tolist() != X.indices[:50].tolist()


# ---------------------------------------- the law


@shapes
def test_features_are_as_frequent_as_the_law_says(design):
    n, day = 20_000, design.days - 1 if design.train_days is None else design.train_days
    X, _ = design.sample(n, np.random.default_rng(3))
    expected, found = n * design.frequency(day), np.bincount(X.indices, minlength=design.p)
    # Whole rows and features, then groups of features in each of which a hundred entries are due
    assert found.sum() / n == pytest.approx(design.nonzeros, rel=0.02)
    group = (np.cumsum(expected) // 100).astype(int)
    due, seen = np.bincount(group, expected), np.bincount(group, found)
    error = np.sqrt(np.maximum(due, 1.0))
    assert np.abs(seen - due).max() < 6 * error[np.abs(seen - due).argmax()]
    assert np.mean(((seen - due) / error) ** 2) < 1.2
    assert found[expected == 0].sum() == 0


@shapes
def test_share_of_labels_and_spread_of_the_margin(design):
    X, y = design.sample(20_000, np.random.default_rng(1))
    margin = X @ design.coef
    # The scale is that of 4000 rows of several days.
    assert margin.std() == pytest.approx(design.signal, rel=0.1)
    assert (y > 0).mean() == pytest.approx(design.positive, abs=0.03)
    # Of rows of about equal margin as many are +1 as the law says.
    p = 1 / (1 + np.exp(-margin - design.intercept))
    for part in np.array_split(np.argsort(p), 20):
        spread = np.sqrt((p[part] * (1 - p[part])).sum())
        assert abs((y[part] > 0).sum() - p[part].sum()) < 5 * spread + 1e-6


@shapes
def test_true_features_and_the_best_auc(design):
    coef = design.coef
    assert_array_equal(np.flatnonzero(coef), design.support)
    assert len(design.support) == design.k and not np.isin(np.arange(9), design.support).any()
    X, y = design.sample(20_000, np.random.default_rng(5))
    best = design.auc(coef)
    assert best == pytest.approx(roc_auc_score(y, X @ coef), abs=0.01)
    assert design.auc(np.zeros(design.p)) == pytest.approx(0.5)
    noisy = coef + np.random.default_rng(0).normal(size=design.p) * np.abs(coef).max() / 3
    assert design.auc(noisy) < best
    assert design.auc(-coef) == pytest.approx(1 - best)


def test_entries_of_each_shape():
    """Of URL most are 1; of Avazu one of each field; webspam's rows have the norm 1."""
    X, _ = SMALL["URL"].sample(2000, np.random.default_rng(0))
    assert (X.data == 1).mean() == pytest.approx(0.9, abs=0.02)
    assert np.diff(X.indptr).std() > 3
    X, _ = SMALL["Avazu"].sample(2000, np.random.default_rng(0))
    assert (np.diff(X.indptr) == 15).all() and (X.data == 1).all()
    ends = X.indices.reshape(-1, 15).max(axis=0)
    assert (X.indices.reshape(-1, 15)[:, 1:] > ends[:-1]).all()
    X, _ = SMALL["webspam"].sample(2000, np.random.default_rng(0))
    assert_allclose(np.sqrt(X.multiply(X).sum(axis=1)), 1)
    lengths = np.diff(X.indptr) / 150
    assert lengths.min() < 0.5 and lengths.max() > 1.5


def test_vocabulary_grows_by_a_cohort_a_day_and_old_features_fade():
    design = SMALL["URL"]
    days, first, fresh = design.days, 4000, 16_000 // design.days
    of_day = [X for X, _ in drawn(design, days * 700, block_rows=700)[2]]
    for day, X in enumerate(of_day):
        live = first + round(16_000 * (day + 1) / days)
        assert live - fresh <= X.indices.max() < live
    # A cohort loses a tenth of its entries a day, but for what the sum over all loses meanwhile.
    third = slice(first + round(16_000 * 2 / days), first + round(16_000 * 3 / days))
    frequency = [design.frequency(day)[third].sum() for day in range(days)]
    entries = [np.isin(X.indices, np.r_[third]).sum() for X in of_day]
    assert entries[:2] == [0, 0] and frequency[:2] == [0, 0]
    assert_allclose(entries[2:], 700 * np.array(frequency[2:]), rtol=0.1)
    whole = [(0.9 ** np.arange(day + 1)).sum() for day in range(days)]
    faded = np.array(frequency[2:]) * whole[2:]
    assert_allclose(faded[1:] / faded[:-1], 0.9, rtol=0.06)  # strata end between features


@pytest.mark.slow
@pytest.mark.parametrize("cls", [simulate.URLShaped, simulate.AvazuShaped, simulate.WebspamShaped])
def test_at_full_size_memory_is_that_of_the_truth_and_a_block(cls):
    design = cls()
    tracemalloc.start()
    blocks = design.stream(10**6, np.random.default_rng(0), start=600_000)
    for _ in range(2):
        X, _ = next(blocks)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert X.shape[1] == design.p and 1e6 < X.nnz < 4e6
    assert peak < 2 * 4 * design.p + 200e6


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ({"p": 99}, "k=10"),
        ({"nonzeros": 600, "least": 0.1}, "nonzeros=600"),
        ({"days": 3}, "day_rows=None"),
        ({"lasting": 0.5}, "changing=0"),
        ({"fading": 0.0}, "fading=0"),
    ],
)
def test_a_law_that_cannot_be(given, name):
    with pytest.raises(ValueError, match=name):
        simulate.PowerLawRows(**{"p": 1000, "k": 10, "nonzeros": 20} | given)
