"""Running averages: exact moments, however the rows come, are weighted, merged and kept."""

import copy
import itertools
import pickle
import sys
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from ofslib import OLSRegressor, RunningAverages
from ofslib import _comoments as module
from ofslib.beyond import dask_blocks

DTYPES = pytest.mark.parametrize("dtype", [np.float64, np.float32])
BLOCK = 8  # so that a few dozen rows fill the buffer several times


@pytest.fixture(autouse=True)
def _small_buffer(monkeypatch):
    monkeypatch.setattr(module, "_LEAST_ROWS", BLOCK)


def rows(n=100, p=4, mean=0.0, seed=0):
    """Correlated rows of about unit variance; y has a mean, too."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p)) + 0.5 * rng.standard_normal((n, 1)) + mean
    return X, X[:, 0] - 2 * X[:, -1] + rng.standard_normal(n) + 3


def learned(X, y, *cuts, dtype=np.float64, sample_weight=None, **adapt):
    """Averages of rows that come in calls cut at `cuts`."""
    new = RunningAverages(X.shape[1], dtype)
    if adapt:
        new.adapt(**adapt)
    for start, stop in itertools.pairwise([0, *cuts, len(y)]):
        part = slice(start, stop)
        new.update(X[part], y[part], None if sample_weight is None else sample_weight[part])
    return new


def facts(averages):
    """All that can be read, as bytes."""
    a = averages
    moments = (a.mean_x, a.mean_y, a.S_xx, a.S_xy, a.S_yy) if a.n else ()
    return a.n, a.weight, *(np.asarray(m).tobytes() for m in moments)


def assert_same_averages(one, other, rtol=1e-12):
    assert one.n == other.n
    assert_allclose(one.weight, other.weight, rtol=rtol)
    for name in ("mean_x", "mean_y", "S_xx", "S_xy", "S_yy"):
        assert_allclose(getattr(one, name), getattr(other, name), rtol=rtol, atol=rtol)


def exact_comoments(X, y):
    """sum (z - m)(z - m)' in rational numbers."""
    Z = [[Fraction(float(v)) for v in row] for row in np.column_stack([X, y])]
    means = [sum(column) / len(Z) for column in zip(*Z, strict=True)]
    D = np.array([[v - m for v, m in zip(row, means, strict=True)] for row in Z], dtype=object)
    return np.array(D.T @ D, dtype=np.float64)


# -------------------------------------------------- what the averages are


def test_the_averages_are_those_of_section_3_1():
    X, y = rows(mean=2.0)
    a = learned(X, y)
    assert a.n == a.weight == len(y) and isinstance(a.n, int)
    assert_allclose(a.mean_x, X.mean(axis=0), rtol=1e-14)
    assert_allclose(a.mean_y, y.mean(), rtol=1e-14)
    assert_allclose(a.S_xx, X.T @ X / len(y), rtol=1e-13)
    assert_allclose(a.S_xy, X.T @ y / len(y), rtol=1e-13)
    assert_allclose(a.S_yy, y @ y / len(y), rtol=1e-13)
    assert_array_equal(a.S_xx, a.S_xx.T)


@DTYPES
@pytest.mark.parametrize("mean", [0.0, 1e3, 1e6, 1e9])
def test_a_large_mean_costs_no_digits(mean, dtype):
    """The raw moments (3.1) would lose all of them in float32, and 12 of 16 in float64."""
    X, y = rows(60, 3, mean)
    exact = exact_comoments(X, y)
    s = np.sqrt(np.diag(exact))
    a = learned(X, y, dtype=dtype)
    correlation = exact[:-1, :-1] / np.outer(s[:-1], s[:-1])
    found = a.standardized()
    eps = np.finfo(dtype).eps
    assert_allclose(found.S_xx, correlation, atol=4 * eps, rtol=0)
    assert_allclose(found.scale, s[:-1] / np.sqrt(len(y)), rtol=4 * eps)
    assert_allclose(found.S_yy, exact[-1, -1] / len(y), rtol=4 * eps)
    assert_allclose(found.S_xy, exact[:-1, -1] / s[:-1] / np.sqrt(len(y)), rtol=20 * eps)
    assert found.S_xx.dtype == dtype and a.S_xx.dtype == dtype


@DTYPES
def test_many_blocks_keep_the_accuracy(dtype):
    X, y = rows(20_000, 3, mean=1e6, seed=1)
    found = learned(X, y, dtype=dtype).standardized()
    Z = X.astype(np.longdouble) - X.astype(np.longdouble).mean(axis=0)
    s = np.sqrt((Z**2).mean(axis=0))
    expected = (Z.T @ Z / len(y) / np.outer(s, s)).astype(float)
    assert_allclose(found.S_xx, expected, atol=1e-14 if dtype == np.float64 else 2e-5, rtol=0)


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_the_cuts_between_calls_do_not_matter(data):
    """Not in one bit: not with weights, in float32, or while old rows fade."""
    X, y = rows(5 * BLOCK + 3, 3, mean=100.0)
    weights = np.random.default_rng(2).integers(0, 3, len(y)) * 0.3
    own = {
        "dtype": data.draw(st.sampled_from([np.float64, np.float32])),
        "sample_weight": data.draw(st.sampled_from([None, weights])),
        **data.draw(st.sampled_from([{}, {"rate": 0.03}, {"rate": 0.4}, {"rate": 1.0}])),
    }
    cuts = sorted(data.draw(st.sets(st.integers(1, len(y) - 1))))
    assert facts(learned(X, y, *cuts, **own)) == facts(learned(X, y, **own))


def test_row_by_row_is_the_same():
    X, y = rows(50)
    assert facts(learned(X, y, *range(1, 50))) == facts(learned(X, y))


def test_what_is_read_counts_all_rows():
    X, y = rows(50, mean=10.0)
    a = RunningAverages(4)
    for i in range(50):
        a.update(X[i : i + 1], y[i : i + 1])
        assert_allclose(a.mean_x, X[: i + 1].mean(axis=0), rtol=1e-14)
        assert_allclose(a.S_xy, X[: i + 1].T @ y[: i + 1] / (i + 1), rtol=1e-13)
    assert facts(a) == facts(learned(X, y))


@pytest.mark.parametrize(
    "form", [sp.csr_matrix, sp.csr_array, sp.csc_matrix, sp.coo_array, pd.DataFrame]
)
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64])
def test_the_form_of_X_does_not_matter(form, dtype):
    X = (rows(60)[0] * 3).astype(dtype)
    X[np.random.default_rng(0).random(X.shape) < 0.7] = 0
    y = np.arange(60)
    assert facts(learned(X.astype(np.float64), y, 7)) == facts(learned(X, y))
    a = RunningAverages(4).update(form(X), y)
    assert facts(a) == facts(learned(X, y))


def thin_rows(n=200, p=100, density=0.008, seed=0):
    """Rows of which most entries are zero, too few of them to be worth a dense product."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p)) + 1
    X[rng.random((n, p)) > density] = 0
    return X, X[:, :10].sum(axis=1) + rng.standard_normal(n) + 1e6


@pytest.fixture
def thin_calls(monkeypatch):
    """Row counts of the calls that took the sparse product."""
    calls, real = [], RunningAverages._add_thin
    note = lambda self, X, y, w: (calls.append(len(y)), real(self, X, y, w))  # noqa: E731
    monkeypatch.setattr(RunningAverages, "_add_thin", note)
    monkeypatch.setattr(module, "_THIN_ROWS", 64)
    return calls


@DTYPES
@pytest.mark.parametrize("weighted", [False, True])
def test_the_sparse_product_is_the_dense_one(thin_calls, weighted, dtype):
    X, y = thin_rows()
    weights = np.random.default_rng(1).random(200) + 0.1 if weighted else None
    own = {"dtype": dtype, "sample_weight": weights}
    sparse, dense = (learned(form(X), y, 70, 75, **own) for form in (sp.csr_array, np.array))
    assert thin_calls == [70, 125]
    assert_allclose(sparse.weight, dense.weight, rtol=1e-13)
    one, other = sparse.standardized(), dense.standardized()
    tolerance = 1e-13 if dtype == np.float64 else 1e-5
    assert_allclose(one.mean_x, other.mean_x, atol=tolerance, rtol=0)
    assert_array_equal(one.scale == np.inf, other.scale == np.inf)
    assert_allclose(one.S_xx, other.S_xx, atol=tolerance, rtol=0)
    assert_allclose(one.S_xy, other.S_xy, atol=tolerance, rtol=0)
    assert_allclose([one.S_yy, one.mean_y], [other.S_yy, other.mean_y], rtol=tolerance)
    more = sparse.update(X[:30], y[:30]), dense.update(X[:30], y[:30])
    assert_allclose(more[0].S_xx, more[1].S_xx, rtol=tolerance, atol=tolerance)


def test_the_sparse_product_is_taken_only_where_it_is_good(thin_calls):
    X, y = thin_rows()
    filled = X.copy()
    filled[:, 3] = 1e6
    for rejected in (X[:63], filled, thin_rows(density=0.1)[0]):
        a = RunningAverages(100).update(sp.csr_array(rejected), y[: len(rejected)])
        assert facts(a) == facts(RunningAverages(100).update(rejected, y[: len(rejected)]))
    assert facts(learned(sp.csr_array(X), y, rate=0.1)) == facts(learned(X, y, rate=0.1))
    heavy = np.where(X[:, 3] != 0, 1e3, 1.0)
    assert facts(learned(sp.csr_array(X), y, sample_weight=heavy)) == facts(
        learned(X, y, sample_weight=heavy)
    )
    assert thin_calls == []


def test_what_is_read_is_not_the_state():
    X, y = rows()
    a = learned(X, y)
    before = facts(a)
    for name in ("mean_x", "S_xx", "S_xy"):
        getattr(a, name)[:] = 7
    found = a.standardized()
    for array in (found.S_xx, found.S_xy, found.scale, found.mean_x):
        array[:] = 7
    X[:], y[:] = 0, 0
    assert facts(a) == before


# -------------------------------------------------- weights


@DTYPES
@pytest.mark.parametrize("rate", [None, 0.001])
def test_a_weight_is_a_number_of_repetitions(rate, dtype):
    """As long as nothing fades; and a weight of zero is no row at all."""
    X, y = rows(60)
    times = np.random.default_rng(0).integers(0, 4, len(y))
    own = {"dtype": dtype} | ({} if rate is None else {"rate": rate})
    weighted = learned(X, y, 20, sample_weight=times, **own)
    repeated = learned(np.repeat(X, times, axis=0), np.repeat(y, times), **own)
    assert weighted.n == (times > 0).sum() and weighted.weight == times.sum() == repeated.n
    weighted.n = repeated.n
    assert_same_averages(weighted, repeated, 1e-13 if dtype == np.float64 else 1e-6)


def test_the_scale_of_the_weights_does_not_matter():
    X, y = rows(60)
    weights = np.random.default_rng(0).random(60)
    one, other = (learned(X, y, sample_weight=c * weights) for c in (1.0, 2.0**-20))
    assert_array_equal(one.S_xx, other.S_xx)
    assert one.weight == other.weight * 2.0**20


def test_rows_of_weight_zero_are_not_shown():
    X, y = rows(3)
    a = RunningAverages(4).update(X, y, np.zeros(3))
    assert a.n == a.weight == 0
    a.adapt(0.1, per="block").update(X, y, np.zeros(3))
    assert a.n == a.weight == 0


# -------------------------------------------------- adaptation


def literal(blocks, rate, per, n=0, moments=None):
    """(3.11) word for word, for the moments of (1, x, y): its corner stays 1."""
    for X, y in blocks:
        Z = np.column_stack([np.ones(len(y)), X, y])
        terms = [Z.T @ Z / len(y)] if per == "block" else [np.outer(z, z) for z in Z]
        for term in terms:
            alpha = max(rate, 1 / (n + 1))
            moments = term if moments is None else (1 - alpha) * moments + alpha * term
            n += 1
    return moments


def assert_moments(a, expected, rtol=1e-12):
    assert_allclose(expected[0, 0], 1)
    assert_allclose(np.append(a.mean_x, a.mean_y), expected[0, 1:], rtol=rtol)
    assert_allclose(a.S_xx, expected[1:-1, 1:-1], rtol=rtol)
    assert_allclose(a.S_xy, expected[1:-1, -1], rtol=rtol)
    assert_allclose(a.S_yy, expected[-1, -1], rtol=rtol)


@pytest.mark.parametrize("per", ["observation", "block"])
@pytest.mark.parametrize("rate", [1e-9, 0.01, 0.3, 1.0])
@pytest.mark.parametrize("before", [0, 7, 70])
def test_adaptation_is_3_11(rate, per, before):
    """Also when it begins after rows of equal weight."""
    X, y = rows(200, mean=2.0)
    ends = sorted({before, 71, 72, 90, 91, 150, 200})
    blocks = [(X[i:j], y[i:j]) for i, j in itertools.pairwise(ends)]
    a = RunningAverages(4)
    start = {}
    if before:
        a.update(X[:before], y[:before])
        start = {"n": before, "moments": literal([(X[:before], y[:before])], 0, "observation")}
    a.adapt(rate, per=per)
    for block in blocks:
        a.update(*block)
    assert a.n == 200
    assert_moments(a, literal(blocks, rate, per, **start))
    terms = len(blocks) if per == "block" else 200 - before
    assert_allclose(a.weight, min(before + terms, 1 / rate))


def test_after_adaptation_rows_are_equal_again():
    X, y = rows(300)
    a = learned(X[:200], y[:200], rate=0.05)
    a.adapt(None).update(X[200:], y[200:])
    known = literal([(X[:200], y[:200])], 0.05, "observation")
    assert_moments(a, literal([(X[200:], y[200:])], 0, "observation", 20, known))
    assert_allclose(a.weight, 120)


def test_a_heavy_row_has_a_larger_share():
    """max(w rate, w / (W + w)) of the average, at most all of it."""
    a = RunningAverages(1).adapt(0.1)
    for _ in range(20):
        a.update([[0.0]], [0.0])
    assert_allclose(a.copy().update([[1.0]], [0.0], [3.0]).mean_x, 0.3)
    assert_allclose(a.update([[1.0]], [0.0], [30.0]).mean_x, 1.0)
    assert a.weight == 10


def test_weights_within_a_block_only_share_it_out():
    X, y = rows(40)
    weights = np.random.default_rng(0).random(40) + 0.1
    a = learned(X, y, 20, sample_weight=weights, rate=0.25, per="block")
    halves = [np.average(X[i], axis=0, weights=weights[i]) for i in (slice(20), slice(20, 40))]
    assert_allclose(a.mean_x, 0.5 * halves[0] + 0.5 * halves[1], rtol=1e-13)
    assert_allclose(a.weight, 2)


def test_what_is_forgotten_leaves_no_trace():
    X, y = rows(300)
    a = learned(1e8 * X[:100], y[:100], rate=0.5).update(X[100:], y[100:])
    b = learned(X[100:], y[100:], rate=0.5)
    assert_allclose(a.S_xx, b.S_xx, rtol=1e-13)


# -------------------------------------------------- standardised


@pytest.mark.parametrize("mean", [0.0, 5.0])
def test_standardised_averages_are_those_of_standardised_rows(mean):
    X, y = rows(200, mean=mean)
    found = learned(X, y).standardized()
    Z, c = (X - X.mean(axis=0)) / X.std(axis=0), y - y.mean()
    assert_allclose(found.S_xx, Z.T @ Z / 200, rtol=1e-12)
    assert_allclose(found.S_xy, Z.T @ c / 200, rtol=1e-12)
    assert_allclose(found.S_yy, c @ c / 200, rtol=1e-12)
    assert_allclose(found.scale, X.std(axis=0), rtol=1e-12)
    assert_array_equal(np.diag(found.S_xx), 1)
    assert_array_equal(found.S_xx, found.S_xx.T)
    assert found.S_xx.flags.f_contiguous and found.n == 200
    coef = np.arange(4.0)
    assert_allclose(found.intercept(coef), np.mean(y - X @ coef), rtol=1e-12)


def test_without_centring_only_the_scale_is_taken():
    X, y = rows(200, mean=5.0)
    found = learned(X, y).standardized(centre=False)
    scale = np.sqrt((X**2).mean(axis=0))
    assert_allclose(found.scale, scale, rtol=1e-13)
    assert_allclose(found.S_xx, (X / scale).T @ (X / scale) / 200, rtol=1e-13)
    assert_allclose(found.S_xy, (X / scale).T @ y / 200, rtol=1e-12)
    assert_allclose(found.S_yy, y @ y / 200, rtol=1e-13)
    assert not found.mean_x.any() and found.intercept(np.ones(4)) == 0


@DTYPES
@pytest.mark.parametrize("value", [0.0, 1.0, 0.1, -1e9 / 3])
def test_a_constant_feature_is_out(value, dtype):
    X, y = rows(100)
    X[:, 1] = value
    a = learned(X, y, dtype=dtype)
    found = a.standardized()
    assert_array_equal(found.scale == np.inf, [False, True, False, False])
    assert_array_equal(found.S_xx[1], [0, 1, 0, 0])
    assert_array_equal(found.S_xx[:, 1], [0, 1, 0, 0])
    assert found.S_xy[1] == 0
    assert (a.standardized(centre=False).scale[1] == np.inf) == (value == 0)


def test_a_constant_feature_is_out_after_merging_and_fading():
    X, y = rows(300)
    X[:, 1] = 1e6 / 7
    a = learned(X[:100], y[:100], rate=0.1) + learned(X[100:], y[100:])
    assert a.standardized().scale[1] == np.inf


@pytest.mark.parametrize(("deviation", "constant"), [(1e-10, True), (1e-8, False)])
def test_rounding_is_no_variance(deviation, constant):
    """A mean of 1e6 is rounded by 1e-10."""
    comoments = np.diag([100 * deviation**2, 100.0])
    found = RunningAverages.from_moments(100, [1e6, 0], comoments).standardized()
    assert_allclose(found.scale, np.inf if constant else deviation)


def test_a_small_variance_is_not_taken_for_none():
    X, y = rows(100, mean=1e6)
    assert np.isfinite(learned(1e6 + 1e-7 * (X - 1e6), y).standardized().scale).all()


@DTYPES
@pytest.mark.parametrize("centre", [True, False])
@pytest.mark.parametrize("p", [1, 2, 5, 300])
def test_overwriting_gives_the_same_and_spends_the_object(p, centre, dtype):
    X, y = rows(50, p, mean=1.0)
    a = learned(X, y, dtype=dtype)
    kept, memory = a.standardized(centre), a._C
    given_up = a.standardized(centre, overwrite=True)
    assert np.shares_memory(given_up.S_xx, memory) and given_up.S_xx.flags.f_contiguous
    for one, other in zip(kept, given_up, strict=True):
        assert_array_equal(one, other)
    b = learned(X, y, dtype=dtype)
    uses = [
        lambda: a.S_xx,
        lambda: a.mean_x,
        a.standardized,
        a.copy,
        lambda: a.update(X, y),
        lambda: a.adapt(0.1),
        lambda: a.merge(b),
        lambda: b.merge(a),
        lambda: a.save("never"),
    ]
    for use in uses:
        with pytest.raises(RuntimeError, match="of no use since standardized"):
            use()
    assert facts(b) == facts(learned(X, y, dtype=dtype))


def test_too_few_rows_and_too_large_values():
    a = RunningAverages(2)
    with pytest.raises(ValueError, match="no rows"):
        _ = a.S_xx
    a.update([[1.0, 2.0]], [3.0])
    with pytest.raises(ValueError, match="at least 2 rows, got n=1"):
        a.standardized()
    a.update([[1.0, 2.0]], [1e100])
    with pytest.raises(ValueError, match="the mean of feature 0 sum up"):
        a.update([[1e200, 2.0]], [3.0])
    assert a.standardized().S_yy == 1e200 / 4


# -------------------------------------------------- merging, copies


@pytest.mark.parametrize("order", list(itertools.permutations(range(4))))
def test_merging_in_any_order(order):
    X, y = rows(200, mean=1e3)
    parts = [learned(X[i:j], y[i:j]) for i, j in itertools.pairwise([0, 1, 30, 31, 200])]
    assert_same_averages(sum(parts[i] for i in order), learned(X, y))
    a, b, c, d = (parts[i] for i in order)
    assert_same_averages((a + b) + (c + d), learned(X, y))


def test_merging_far_means_loses_nothing():
    X, y = rows(60, 2)
    X[30:] += 1e6
    exact = exact_comoments(X, y)
    s = np.sqrt(np.diag(exact))
    for a in (learned(X, y), learned(X[:30], y[:30]) + learned(X[30:], y[30:])):
        assert_allclose(a.standardized().scale, s[:-1] / np.sqrt(60), rtol=1e-14)


def test_merging_many_parts_loses_nothing():
    """The means of the parts are known better than float64 can say."""
    X, y = rows(60, 2, mean=1e9)
    s = np.sqrt(np.diag(exact_comoments(X, y)))
    merged = sum(learned(X[i : i + 3], y[i : i + 3]) for i in range(0, 60, 3))
    assert_allclose(merged.standardized().scale, s[:-1] / np.sqrt(60), rtol=1e-14)


def test_addition_changes_neither():
    X, y = rows(100)
    a, b = learned(X[:41], y[:41]), learned(X[41:], y[41:])
    before = facts(a), facts(b)
    _ = a + b, sum([a, b]), b + a, a + RunningAverages(4), RunningAverages(4) + a
    assert (facts(a), facts(b)) == before
    assert facts(a + RunningAverages(4)) == facts(a)
    assert_same_averages(RunningAverages(4) + a, a, 1e-15)
    assert a.merge(b) is a and a.n == 100 and facts(b) == before[1]


def test_weights_and_adaptation_are_merged():
    X, y = rows(100)
    a, b = learned(X[:50], y[:50], rate=0.1), learned(X[50:], y[50:])
    merged = a + b
    assert_allclose(merged.weight, 60)
    assert_allclose(merged.mean_x, (10 * a.mean_x + 50 * b.mean_x) / 60, rtol=1e-13)
    merged.update(X[:1], y[:1])
    assert_allclose(merged.weight, 10)


def test_only_the_same_kind_is_merged():
    a = RunningAverages(3)
    with pytest.raises(ValueError, match="other must have n_features=3, got n_features=4"):
        a.merge(RunningAverages(4))
    with pytest.raises(ValueError, match="other must have dtype=float64, got dtype=float32"):
        a.merge(RunningAverages(3, np.float32))
    with pytest.raises(TypeError, match="other must be a RunningAverages, got int"):
        a.merge(1)
    with pytest.raises(TypeError):
        a + 1
    with pytest.raises(TypeError):
        1 + a


COPIES = {
    "copy": RunningAverages.copy,
    "deepcopy": copy.deepcopy,
    "pickle": lambda a: pickle.loads(pickle.dumps(a)),
}


@pytest.mark.parametrize("how", COPIES)
@pytest.mark.parametrize("adapt", [{}, {"rate": 0.05}, {"rate": 0.05, "per": "block"}])
def test_a_copy_goes_on_as_the_original(how, adapt):
    X, y = rows(100, mean=7.0)
    a = learned(X[:53], y[:53], 20, **adapt)
    b = COPIES[how](a)
    before = facts(a)
    b.update(X[53:], y[53:])
    assert facts(a) == before
    assert facts(b) == facts(a.update(X[53:], y[53:]))


def test_known_moments():
    X, y = rows(100, mean=3.0)
    Z = np.column_stack([X, y])
    upper = np.triu((Z - Z.mean(axis=0)).T @ (Z - Z.mean(axis=0)))
    upper[np.tril_indices(5, -1)] = np.nan
    a = RunningAverages.from_moments(100, Z.mean(axis=0), upper)
    assert_same_averages(a, learned(X, y))
    a.standardized()
    both = a.update(X, y)
    assert_same_averages(both, learned(np.vstack([X, X]), np.append(y, y)))
    single = RunningAverages.from_moments(100, Z.mean(axis=0), upper, dtype=np.float32)
    assert single.S_xx.dtype == np.float32


def test_known_moments_are_taken_over_where_they_can_be():
    X, y = rows(100)
    mean, C = np.zeros(5), np.asfortranarray(learned(X, y)._C)
    fixed = C.copy(order="F")
    fixed.flags.writeable = False
    cases = [
        (C, {}, True),
        (C, {"copy": True}, False),
        (C, {"dtype": np.float32}, False),
        (C.copy(order="C"), {}, False),
        (fixed, {}, False),
    ]
    for shown, own, taken in cases:
        a = RunningAverages.from_moments(100, mean, shown, **{"copy": False} | own)
        assert np.shares_memory(a._C, shown) == taken
        assert_array_equal(np.triu(a._C), np.triu(shown).astype(a.dtype))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0, [0, 0], np.eye(2)), "n must be an int of 1 or more, got 0"),
        ((2.5, [0, 0], np.eye(2)), "n must be an int of 1 or more, got 2.5"),
        ((5, [0], np.eye(1)), r"mean must have the shape \(p \+ 1,\), got \(1,\)"),
        ((5, [0, 0], np.eye(3)), r"comoments must have the shape \(2, 2\), got \(3, 3\)"),
        ((5, [0, np.nan], np.eye(2)), "mean must be finite"),
        ((5, [0, 0], [[1, np.nan], [0, 1]]), r"comoments must be finite in float64, got nan at"),
        ((5, [0, 0], [[1, 1e39], [0, 1]], np.float32), r"in float32, got 1e\+39 at \(0, 1\)"),
        ((5, [0, 0], [[1e39, 0], [0, 1]], np.float32), r"in float32, got 1e\+39 at \(0, 0\)"),
        ((5, [0, 0], -np.eye(2)), "comoments must have finite diagonal entries"),
        ((5, [0, 0], np.full((2, 2), np.inf)), "comoments must have finite diagonal entries"),
    ],
)
def test_wrong_moments_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        RunningAverages.from_moments(*arguments)


@pytest.mark.parametrize("kind", [str, object])
def test_targets_of_words_are_refused_as_such(kind):
    a = RunningAverages(2).update(np.eye(2), [1.0, 2.0])
    before = a.S_yy
    with pytest.raises(ValueError, match=r"y must be numbers .*words are labels"):
        a.update(np.eye(2), np.array(["yes", "no"], kind))
    with pytest.raises(ValueError, match="y must be numbers"):
        a.update(np.eye(2), [10**400, 1])
    with pytest.raises(ValueError, match="y holds dates"):
        a.update(np.eye(2), np.array(["2026-01-01", "2026-01-02"], "datetime64[D]"))
    assert (a.n, a.S_yy) == (2, before)


# -------------------------------------------------- files


@DTYPES
@pytest.mark.parametrize("adapt", [{}, {"rate": 0.05}, {"rate": 0.05, "per": "block"}])
@pytest.mark.parametrize("stop", [1, BLOCK, 53])
def test_going_on_from_a_file_is_never_having_stopped(tmp_path, stop, adapt, dtype):
    X, y = rows(100, mean=7.0)
    a = learned(X[:stop], y[:stop], dtype=dtype, **adapt)
    a.save(tmp_path / "some folder" / "averages")
    b = RunningAverages.load(tmp_path / "some folder" / "averages")
    assert [file.name for file in (tmp_path / "some folder").iterdir()] == ["averages"]
    assert b.dtype == dtype and facts(b) == facts(a)
    assert facts(b.update(X[stop:], y[stop:])) == facts(a.update(X[stop:], y[stop:]))


def test_averages_of_no_rows_are_kept(tmp_path):
    RunningAverages(3).save(tmp_path / "a")
    assert RunningAverages.load(tmp_path / "a").n == 0


def test_what_does_not_fit_into_memory_is_refused(monkeypatch):
    with pytest.raises(MemoryError, match=r"take 8,000.0 GB, .* of this machine: .*method on rows"):
        RunningAverages(10**6)
    monkeypatch.setattr(module, "_MEMORY", 6 * 6 * 8 * 3 // 2)
    assert RunningAverages(5).copy().n == RunningAverages(6, np.float32).n == 0
    with pytest.raises(MemoryError, match="n_features=6"):
        RunningAverages(6)
    with pytest.raises(MemoryError, match="n_features=6"):
        OLSRegressor().fit(np.eye(6), np.arange(6.0))


# -------------------------------------------------- errors


X_GOOD, Y_GOOD = rows(3 * BLOCK)


def spoilt(row, value):
    X = X_GOOD.copy()
    X[row, 2] = value
    return X


@pytest.mark.parametrize(
    ("X", "y", "weights", "message"),
    [
        (spoilt(-1, np.nan), Y_GOOD, None, "NaN"),
        (spoilt(0, np.inf), Y_GOOD, None, "infinity"),
        (sp.csr_array(spoilt(-1, np.nan)), Y_GOOD, None, "NaN"),
        (X_GOOD, np.where(np.arange(24) == 23, np.nan, Y_GOOD), None, "NaN"),
        (X_GOOD[:, :3], Y_GOOD, None, "X has 3 features, but .* expecting 4"),
        (X_GOOD, Y_GOOD[1:], None, "inconsistent numbers of samples"),
        (X_GOOD[:0], Y_GOOD[:0], None, "0 sample"),
        (X_GOOD[0], Y_GOOD[:1], None, "2D array"),
        (X_GOOD, X_GOOD, None, "y should be a 1d array"),
        (X_GOOD, ["a"] * 24, None, "could not convert"),
        (X_GOOD + 1j, Y_GOOD, None, "[Cc]omplex"),
        (X_GOOD, Y_GOOD, -np.ones(24), "sample_weight must be 0 or more, got -1"),
        (X_GOOD, Y_GOOD, np.full(24, np.nan), "NaN"),
        (X_GOOD, Y_GOOD, np.ones(23), "sample_weight must have the shape"),
        (X_GOOD, Y_GOOD, np.full(24, 1e308), "sample_weight must be 0 or at least 2e-308, and sum"),
        (X_GOOD, Y_GOOD, np.full(24, 1e-310), "sample_weight must be 0 or at least 2e-308"),
        (9 * X_GOOD, Y_GOOD, np.where(np.arange(24) == 23, 1e307, 1), "X is too large for float64"),
        (spoilt(-1, 1e160), Y_GOOD, None, "X is too large for float64: .* of feature 2 sum"),
        (sp.csr_array(spoilt(-1, 1e160)), Y_GOOD, None, "X is too large for float64"),
        (X_GOOD, np.where(np.arange(24) == 23, 1e160, Y_GOOD), None, "mean of y sum"),
    ],
)
@pytest.mark.parametrize("rate", [None, 0.1])
def test_bad_rows_are_refused_and_change_nothing(X, y, weights, message, rate):
    a = learned(X_GOOD, Y_GOOD, BLOCK - 1).adapt(rate)
    before = facts(a)
    with pytest.raises(ValueError, match=message):
        a.update(X, y, weights)
    assert facts(a) == before


@pytest.mark.parametrize(
    ("X", "weights", "message"),
    [
        (spoilt(-1, 1e20), None, "X is too large for float32: .* of feature 2 sum"),
        (spoilt(-1, 1e39), None, "X is too large for float32"),
        (X_GOOD, np.full(24, 1e39), "sample_weight must be 0 or at least 1e-38, and sum up to 9e"),
        (X_GOOD, np.full(24, 1e-40), "sample_weight must be 0 or at least 1e-38"),
    ],
)
def test_what_single_precision_cannot_hold_is_refused(X, weights, message):
    a = learned(X_GOOD, Y_GOOD, dtype=np.float32)
    before = facts(a)
    with pytest.raises(ValueError, match=message):
        a.update(X, Y_GOOD, weights)
    assert facts(a) == before


@DTYPES
def test_a_large_mean_is_not_too_large(dtype):
    """Its square does not fit into float32, the distances from it do."""
    X, y = X_GOOD + 0.0, Y_GOOD
    X[:, 1] = 2.0**70 * (1 + np.round(64 * X[:, 1]) / 2**18)
    a, b = learned(X, y, 5, dtype=dtype), learned(X, y, dtype=dtype)
    expected = np.corrcoef(np.column_stack([X, y]).T)[:-1, :-1]
    assert_allclose(a.standardized().S_xx, expected, atol=1e-5)
    assert a.merge(b).n == 48
    assert_allclose(a.standardized().S_xx, expected, atol=1e-5)
    if dtype == np.float32:
        with pytest.raises(OverflowError, match="do not fit into float32"):
            _ = a.S_xx


def test_averages_that_are_too_large_together_are_refused():
    half = RunningAverages.from_moments(2, [0, 0], np.eye(2) * 3e307)
    far = RunningAverages.from_moments(2, [1e154, 0], np.eye(2))
    for a, message in (
        (half, "other is too large"),
        (far, "feature 0"),
    ):
        b = a if a is not far else RunningAverages.from_moments(2, [-1e154, 0], np.eye(2))
        before = facts(a)
        with pytest.raises(ValueError, match=message):
            a.merge(b)
        assert facts(a) == before


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"rate": 0}, ValueError, "rate must be above 0 and at most 1, got 0"),
        ({"rate": 1.5}, ValueError, "rate must be above 0 and at most 1, got 1.5"),
        ({"rate": np.nan}, ValueError, "rate must be above 0 and at most 1, got nan"),
        ({"rate": True}, TypeError, "rate must be a number or None, got True"),
        ({"rate": "fast"}, TypeError, "rate must be a number or None, got 'fast'"),
        ({"rate": 0.1, "per": "row"}, ValueError, 'per must be "observation" or "block"'),
    ],
)
def test_wrong_rates_are_refused_and_change_nothing(arguments, error, message):
    a = learned(X_GOOD, Y_GOOD, rate=0.1)
    with pytest.raises(error, match=message):
        a.adapt(**arguments)
    same = learned(X_GOOD, Y_GOOD, rate=0.1)
    assert facts(a.update(X_GOOD, Y_GOOD)) == facts(same.update(X_GOOD, Y_GOOD))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_features": 0}, "n_features must be an int of 1 or more, got 0"),
        ({"n_features": 2.0}, "n_features must be an int of 1 or more, got 2.0"),
        ({"n_features": 2, "dtype": np.int64}, "dtype must be float64 or float32, got .*int64"),
        ({"n_features": 2, "memory_map": "/tmp"}, "memory_map='/tmp': .* no longer"),
    ],
)
def test_wrong_parameters_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        RunningAverages(**arguments)


# -------------------------------------------------- many machines


def test_without_dask_the_error_names_the_group(monkeypatch):
    monkeypatch.setitem(sys.modules, "dask", None)
    with pytest.raises(ImportError, match=r"ofslib\[dask\]"):
        RunningAverages.from_dask(None, None)


def test_dask_arrays_in_this_process(monkeypatch):
    from dask import array

    monkeypatch.setattr(dask_blocks, "_FAN_IN", 2)
    X, y = rows(100, mean=5.0)
    chunked = array.from_array(X, chunks=((40, 1, 0, 59), (3, 1)))
    found = RunningAverages.from_dask(chunked, array.from_array(y, chunks=30))
    assert_same_averages(found, learned(X, y))


def test_goes_on_from_read_only_memory():
    X, y = np.random.default_rng(0).standard_normal((40, 5)), np.arange(40.0)
    averages, buffers = RunningAverages(5).update(X[:20], y[:20]), []
    assert averages.mean_y == y[:20].mean()
    text = pickle.dumps(averages, protocol=5, buffer_callback=buffers.append)
    # As joblib does with a map of a file.
    again = pickle.loads(text, buffers=[b.raw().toreadonly() for b in buffers])
    for one in (averages, again):
        one.update(X[20:], y[20:])
    assert_array_equal(again.S_xx, averages.S_xx)
