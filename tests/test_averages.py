"""Running averages: equal bits however the rows come, and what is promised of the object.

What the moments are, test_averages_by_the_page.py says; arguments are refused in test_bad_input.py.
"""

import copy
import itertools
import pickle
import sys

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from ofslib import OLSRegressor, RunningAverages
from ofslib import _comoments as module

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


def learned(X, y, *cuts, dtype=np.float64, sample_weight=None, read=None, **adapt):
    """Averages of rows that come in calls cut at `cuts`, and are read after each."""
    new = RunningAverages(X.shape[1], dtype)
    if adapt:
        new.adapt(**adapt)
    for start, stop in itertools.pairwise([0, *cuts, len(y)]):
        part = slice(start, stop)
        new.update(X[part], y[part], None if sample_weight is None else sample_weight[part])
        if read and new.n > 1:
            read(new)
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


# -------------------------------------------------- rows

READS = [
    None,
    lambda a: (a.mean_x, a.mean_y),
    lambda a: (a.S_xx, a.S_xy, a.S_yy),
    lambda a: a.standardized(),
    lambda a: RunningAverages(a.n_features, a.dtype).merge(a) + a,
    lambda a: OLSRegressor().fit_averages(a).coef_,
]


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_the_cuts_between_calls_do_not_matter(data):
    """Not in one bit: not with weights, in float32, while old rows fade, or if it is read."""
    X, y = rows(5 * BLOCK + 3, 3, mean=100.0)
    weights = np.random.default_rng(2).integers(0, 3, len(y)) * 0.3
    own = {
        "dtype": data.draw(st.sampled_from([np.float64, np.float32])),
        "sample_weight": data.draw(st.sampled_from([None, weights])),
        **data.draw(st.sampled_from([{}, {"rate": 0.03}, {"rate": 0.4}, {"rate": 1.0}])),
    }
    cuts = sorted(data.draw(st.sets(st.integers(1, len(y) - 1))))
    read = data.draw(st.sampled_from(READS))
    assert facts(learned(X, y, *cuts, read=read, **own)) == facts(learned(X, y, **own))


@pytest.mark.parametrize("form", [sp.csr_matrix, sp.csc_array, sp.coo_array, pd.DataFrame])
@pytest.mark.parametrize("dtype", [np.float32, np.int64])
def test_the_form_of_X_does_not_matter(form, dtype):
    X = (rows(60)[0] * 3).astype(dtype)
    X[np.random.default_rng(0).random(X.shape) < 0.7] = 0
    y = np.arange(60)
    expected = facts(learned(X.astype(np.float64), y, 7))
    a = RunningAverages(4).update(form(X), y)
    assert facts(a) == expected
    found = a.standardized()  # what is read is not the state
    for array in (a.mean_x, a.S_xx, a.S_xy, found.S_xx, found.S_xy, found.scale, found.mean_x, X):
        array[:] = 7
    assert facts(a) == expected


@DTYPES
@pytest.mark.parametrize(
    "case", ["plain", "weighted", "a filled column", "a heavy column", "fading"]
)
def test_sparse_rows_are_the_dense_ones(case, dtype, monkeypatch):
    """Of which most entries are zero; a sparse product is taken where it loses no digits."""
    monkeypatch.setattr(module, "_THIN_ROWS", 64)
    monkeypatch.setattr(module, "_THIN_PAIRS", 1000)
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 100)) + 1
    X[rng.random(X.shape) > 0.008] = 0
    y, weights = X[:, :10].sum(axis=1) + rng.standard_normal(200) + 1e6, np.ones(200)
    if case == "weighted":
        weights = rng.random(200) + 0.1
    elif "column" in case:
        X[: 200 if case == "a filled column" else 20, 3] += 1e6 + rng.standard_normal()
        weights += 1e3 * (X[:, 3] > 1e5) * (case == "a heavy column")
    own = {"dtype": dtype, "sample_weight": weights, **({"rate": 0.1} if case == "fading" else {})}
    sparse, dense = (learned(form(X), y, 70, 75, **own) for form in (sp.csr_array, np.array))
    assert_allclose(sparse.weight, dense.weight, rtol=1e-13)
    one, other = sparse.standardized(), dense.standardized()
    tolerance = 1e-13 if dtype == np.float64 else 1e-5
    assert_array_equal(one.scale == np.inf, other.scale == np.inf)
    for a, b in ((one.mean_x, other.mean_x), (one.S_xx, other.S_xx), (one.S_xy, other.S_xy)):
        assert_allclose(a, b, atol=tolerance, rtol=tolerance)
    assert_allclose([one.S_yy, one.mean_y], [other.S_yy, other.mean_y], rtol=tolerance)


# -------------------------------------------------- standardised


@DTYPES
@pytest.mark.parametrize("value", [0.0, 0.1, -1e9 / 3, 1e6 / 7])
def test_a_constant_feature_is_out(value, dtype):
    X, y = rows(300)
    X[:, 1] = value
    a = learned(X, y, dtype=dtype)
    both = learned(X[:100], y[:100], dtype=dtype, rate=0.1) + learned(X[100:], y[100:], dtype=dtype)
    for found in (a.standardized(), both.standardized()):
        assert_array_equal(found.scale == np.inf, [False, True, False, False])
        assert_array_equal(found.S_xx[1], [0, 1, 0, 0])
        assert_array_equal(found.S_xx[:, 1], [0, 1, 0, 0])
        assert found.S_xy[1] == 0
    assert (a.standardized(centre=False).scale[1] == np.inf) == (value == 0)


@pytest.mark.parametrize(("deviation", "constant"), [(1e-10, True), (1e-8, False)])
def test_rounding_is_no_variance_and_a_small_variance_is_one(deviation, constant):
    """A mean of 1e6 is rounded by 1e-10."""
    comoments = np.diag([100 * deviation**2, 100.0])
    found = RunningAverages.from_moments(100, [1e6, 0], comoments).standardized()
    assert_allclose(found.scale, np.inf if constant else deviation)


@DTYPES
@pytest.mark.parametrize("centre", [True, False])
@pytest.mark.parametrize("p", [1, 300])
def test_overwriting_gives_the_same_and_spends_the_object(p, centre, dtype):
    X, y = rows(50, p, mean=1.0)
    a, b = learned(X, y, dtype=dtype), learned(X, y, dtype=dtype)
    kept, memory = a.standardized(centre), a._C
    given_up = a.standardized(centre, overwrite=True)
    assert np.shares_memory(given_up.S_xx, memory) and given_up.S_xx.flags.f_contiguous
    for one, other in zip(kept, given_up, strict=True):
        assert_array_equal(one, other)
    uses = [lambda: a.S_xx, lambda: a.mean_x, a.standardized, a.copy, lambda: a.update(X, y)]
    uses += [lambda: a.adapt(0.1), lambda: a.merge(b), lambda: b.merge(a), lambda: a.save("never")]
    for use in uses:
        with pytest.raises(RuntimeError, match="of no use since standardized"):
            use()
    assert facts(b) == facts(learned(X, y, dtype=dtype))


# -------------------------------------------------- merging, copies, known moments


def test_addition_changes_neither():
    X, y = rows(100)
    a, b, none = learned(X[:41], y[:41]), learned(X[41:], y[41:]), RunningAverages(4)
    before = facts(a), facts(b)
    _ = a + b, sum([a, b]), b + a, none + a
    assert (facts(a), facts(b)) == before and facts(a + none) == facts(a)
    assert a.merge(b) is a and a.n == 100 and facts(b) == before[1]
    for add in (lambda: a + 1, lambda: 0.0 + a):
        with pytest.raises(TypeError):
            add()
    with pytest.raises(ValueError, match="dtype=float64, got dtype=float32"):
        a.merge(RunningAverages(4, np.float32))


def read_only(a):
    """As joblib does with a map of a file."""
    buffers = []
    text = pickle.dumps(a, protocol=5, buffer_callback=buffers.append)
    return pickle.loads(text, buffers=[b.raw().toreadonly() for b in buffers])


def from_file(a, folder):
    a.save(folder / "some folder" / "averages")
    assert [file.name for file in (folder / "some folder").iterdir()] == ["averages"]
    return RunningAverages.load(folder / "some folder" / "averages")


COPIES = {
    "copy": lambda a, _: a.copy(),
    "deepcopy": lambda a, _: copy.deepcopy(a),
    "pickle": lambda a, _: read_only(a),
    "file": from_file,
}


@pytest.mark.parametrize("how", COPIES)
@DTYPES
@pytest.mark.parametrize("adapt", [{}, {"rate": 0.05}, {"rate": 0.05, "per": "block"}])
def test_a_copy_goes_on_as_the_original(how, adapt, dtype, tmp_path):
    X, y = rows(100, mean=7.0)
    for stop in (1, BLOCK, 53):
        a = learned(X[:stop], y[:stop], dtype=dtype, **adapt)
        b, before = COPIES[how](a, tmp_path), facts(a)
        assert facts(b) == before and b.dtype == dtype
        b.update(X[stop:], y[stop:])
        assert facts(a) == before
        assert facts(b) == facts(a.update(X[stop:], y[stop:]))
    assert COPIES[how](RunningAverages(3), tmp_path).n == 0


def test_known_moments_are_those_and_are_taken_over_where_they_can_be():
    X, y = rows(100, mean=3.0)
    Z = np.column_stack([X, y])
    upper = np.triu((Z - Z.mean(axis=0)).T @ (Z - Z.mean(axis=0)))
    upper[np.tril_indices(5, -1)] = np.nan
    a = RunningAverages.from_moments(100, Z.mean(axis=0), upper)
    assert_same_averages(a, learned(X, y))
    assert_same_averages(a.update(X, y), learned(np.vstack([X, X]), np.append(y, y)))
    C = np.asfortranarray(learned(X, y)._C)
    for own, taken in (({}, True), ({"copy": True}, False), ({"dtype": np.float32}, False)):
        a = RunningAverages.from_moments(100, np.zeros(5), C, **{"copy": False} | own)
        assert np.shares_memory(a._C, C) == taken
        assert_array_equal(np.triu(a._C), np.triu(C).astype(a.dtype))
    with pytest.raises(ValueError, match=r"in float32, got 1e\+39 at \(0, 1\)"):
        RunningAverages.from_moments(5, [0, 0], [[1, 1e39], [0, 1]], np.float32)
    with pytest.raises(ValueError, match=r"mean must have the shape \(p \+ 1,\), got \(1,\)"):
        RunningAverages.from_moments(5, [0], np.eye(1))


# -------------------------------------------------- what does not fit

X_GOOD, Y_GOOD = rows(3 * BLOCK)


def spoilt(value):
    X = X_GOOD.copy()
    X[-1, 2] = value
    return X


def last(value, others=1.0):
    return np.where(np.arange(24) == 23, value, others)


X64, X32, WEIGHT = (
    "X is too large for float64",
    "X is too large for float32",
    "sample_weight must be",
)
UNFIT = [
    (np.float64, X_GOOD, Y_GOOD, np.full(24, 1e308), f"{WEIGHT} 0 or at least 2e-308"),
    (np.float64, X_GOOD, Y_GOOD, np.full(24, 1e-310), f"{WEIGHT} 0 or at least 2e-308"),
    (np.float64, 9 * X_GOOD, Y_GOOD, last(1e307), X64),
    (np.float64, spoilt(1e160), Y_GOOD, None, f"{X64}: .* of feature 2 sum"),
    (np.float64, sp.csr_array(spoilt(1e160)), Y_GOOD, None, X64),
    (np.float64, X_GOOD, last(1e160, Y_GOOD), None, "mean of y sum"),
    (np.float64, sp.csr_array(spoilt(np.nan)), Y_GOOD, None, "NaN"),
    (np.float32, spoilt(1e20), Y_GOOD, None, f"{X32}: .* of feature 2 sum"),
    (np.float32, X_GOOD, Y_GOOD, np.full(24, 1e-40), f"{WEIGHT} 0 or at least 1e-38"),
]


@pytest.mark.parametrize(("dtype", "X", "y", "weights", "message"), UNFIT)
@pytest.mark.parametrize("rate", [None, 0.1])
def test_what_does_not_fit_is_refused_and_changes_nothing(dtype, X, y, weights, message, rate):
    a = learned(X_GOOD, Y_GOOD, BLOCK - 1, dtype=dtype).adapt(rate)
    before = facts(a)
    with pytest.raises(ValueError, match=message):
        a.update(X, y, weights)
    assert facts(a) == before


@DTYPES
def test_a_large_mean_is_not_too_large(dtype):
    """Its square does not fit into float32, the distances from it do."""
    X, y = X_GOOD + 0.0, Y_GOOD
    X[:, 1] = 2.0**70 * (1 + np.round(64 * X[:, 1]) / 2**18)
    a, b = learned(X, y, 5, dtype=dtype), learned(X, y, dtype=dtype)
    expected = np.corrcoef(np.column_stack([X, y]).T)[:-1, :-1]
    for averages in (a, a.copy().merge(b)):
        assert_allclose(averages.standardized().S_xx, expected, atol=1e-5)
    if dtype == np.float32:
        with pytest.raises(OverflowError, match="do not fit into float32"):
            _ = a.S_xx


def test_what_does_not_fit_into_memory_is_refused(monkeypatch):
    monkeypatch.setattr(module, "_MEMORY", 6 * 6 * 8 * 3 // 2)
    assert RunningAverages(5).copy().n == RunningAverages(6, np.float32).n == 0
    for too_large in (lambda: RunningAverages(6), lambda: OLSRegressor().fit(np.eye(6), range(6))):
        with pytest.raises(MemoryError, match="n_features=6"):
            too_large()
    monkeypatch.setitem(sys.modules, "dask", None)
    with pytest.raises(ImportError, match=r"ofslib\[dask\]"):
        RunningAverages.from_dask(None, None)
