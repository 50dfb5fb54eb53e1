"""Selection and the annealing schedule, against sorting and against the paper's formula."""

import time
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_equal

from ofslib.kernels.rows import Active, Moments, new_active
from ofslib.kernels.selection import (
    Importance,
    annealed,
    best_model,
    keep_top,
    kth_largest,
    prune,
)

settings.register_profile("same", derandomize=True, database=None, deadline=None, max_examples=150)
settings.load_profile("same")

# Few different numbers, so that most draws have ties
NUMBERS = st.sampled_from([0.0, 0.5, 1.0, 2.0, 1e-300, 1e300]) | st.floats(0, 10)
WITH_INF = NUMBERS | st.just(np.inf)
WITH_NAN = WITH_INF | st.just(np.nan)
ANY = st.floats(allow_nan=False)


def shapes(size):
    """Inputs that make a careless quickselect slow or wrong."""
    ramp = np.arange(float(size))
    noise = np.random.default_rng(0).standard_normal(size)
    return {
        "ascending": ramp,
        "descending": ramp[::-1].copy(),
        "constant": np.ones(size),
        "two values": ramp % 2,
        "three values": ramp % 3,
        "organ pipe": np.minimum(ramp, ramp[::-1]),
        "valley": np.maximum(ramp, ramp[::-1]),
        "saw": ramp % 17,
        "halves": np.concatenate([ramp[::2], ramp[1::2]]),
        "one large": (ramp == size // 3).astype(float),
        "mostly zero": np.where(ramp % 50 == 0, ramp, 0.0),
        "infinite": np.where(ramp % 3 == 0, np.inf, noise),
        "noise": noise,
    }


# kth_largest


@given(st.lists(WITH_INF | ANY, min_size=1, max_size=40), st.data())
def test_kth_largest_is_that_of_sorting(values, data):
    k = data.draw(st.integers(1, len(values)))
    m = data.draw(st.integers(k, len(values)))
    v = np.array(values)
    assert kth_largest(v, m, k) == sorted(values[:m], reverse=True)[k - 1]
    assert sorted(v[:m]) == sorted(values[:m])
    assert_equal(v[m:], values[m:])


@given(st.lists(WITH_NAN, min_size=1, max_size=30), st.data())
def test_kth_largest_ends_and_loses_nothing_with_nan(values, data):
    v = np.array(values)
    kth_largest(v, len(v), data.draw(st.integers(1, len(v))))
    assert_equal(np.sort(v), np.sort(values))


@pytest.mark.parametrize("name", shapes(10))
def test_kth_largest_is_right_in_linear_time(name):
    values = shapes(300_000)[name]
    ascending = np.sort(values)
    kth_largest(np.ones(1), 1, 1)
    for k in (1, 1000, 150_000, 300_000):
        v = values.copy()
        start = time.process_time()
        assert kth_largest(v, len(v), k) == ascending[-k]
        assert time.process_time() - start < 0.5


# keep_top


def kept_by_sorting(index, value, k):
    """The k most valued, then the others, each in the order they had; and the largest that goes."""
    value = np.where(np.isnan(value), np.inf, value)
    ranked = sorted(range(len(index)), key=lambda i: (-value[i], index[i]))
    keep, drop = sorted(ranked[:k]), sorted(ranked[k:])
    return index[keep + drop], value[ranked[k]]


def check_keep_top(index, value, k, guess):
    m = len(index)
    tail = np.array([7, 7, 7], np.uint32)
    got = np.concatenate([index, tail])
    numbers = np.concatenate([value, [99.0] * 3])
    cut = keep_top(got, numbers, m, k, np.full(m, -5.0), guess)
    expected, largest_gone = kept_by_sorting(index, value, k)
    assert_equal(got[:m], expected)
    assert cut == largest_gone
    assert_equal(got[m:], tail)
    assert_equal(numbers[m:], [99.0] * 3)
    return cut


@given(st.lists(WITH_NAN, min_size=2, max_size=30), st.data())
def test_keep_top_is_what_sorting_keeps_whatever_the_guess(values, data):
    k = data.draw(st.integers(1, len(values) - 1))
    index = np.array(data.draw(st.permutations(range(len(values)))), np.uint32)
    index += data.draw(st.sampled_from([0, 2**31, 2**32 - 30]))
    cut = check_keep_top(index, np.array(values), k, np.inf)
    guesses = st.floats(allow_nan=True) | st.sampled_from([*values, cut, 1.5 * cut])
    check_keep_top(index, np.array(values), k, data.draw(guesses))


# prune and best_model


@given(st.lists(st.floats(-5, 5), min_size=2, max_size=20), st.data())
def test_pruning_again_and_again_is_keeping_the_top_of_each(values, data):
    p = len(values)
    w, active = np.append(np.array(values), 3.25), new_active(p)
    scratch, none = np.empty((2, p + 1)), Moments(np.zeros(1, np.int64), np.zeros(0), np.zeros(0))
    alive = np.arange(p)
    sizes = data.draw(st.lists(st.integers(1, p), min_size=1, max_size=4))
    for keep in sizes:
        if keep < len(alive):
            alive = kept_by_sorting(alive, np.abs(np.array(values))[alive], keep)[0][:keep]
        prune(w, active, none, int(Importance.coef), keep, scratch, np.zeros((1, 3)))
        m = active.size[0]
        assert m == len(alive)
        assert_equal(active.index[:m], alive)
        assert_equal(np.sort(active.index), np.arange(p))
        assert_equal(np.flatnonzero(active.untouched), alive)
        assert_equal(w[:-1], np.where(np.isin(np.arange(p), alive), values, 0.0))
        assert w[-1] == 3.25


def test_best_model_changes_nothing():
    w, active = np.array([1.0, -4.0, 3.0, 2.0, 0.5]), new_active(4)
    moments = Moments(np.zeros(1, np.int64), np.zeros(0), np.zeros(0))
    before = w.copy(), Active(*(part.copy() for part in active))
    coef, intercept = best_model(w, active, moments, Importance.coef, 2)
    assert coef.tolist() == [0.0, -4.0, 3.0, 0.0] and intercept == 0.5
    assert_equal(w, before[0])
    assert_equal(tuple(active), tuple(before[1]))
    for k in (4, 9):
        assert_equal(best_model(w, active, moments, Importance.coef, k)[0], w[:-1])


# annealed: M_t = k + (p - k) max(0, (T - t) / (t mu + T)), sfsa Section 3.1


@given(
    st.integers(1, 60),
    st.integers(1, 60),
    st.integers(1, 5000),
    st.integers(1, 5000),
    st.sampled_from([0.0, 0.5, 1.0, 5.0, 10.0, 300.0]),
)
def test_annealed_is_the_formula_rounded(t, maturity, p, k, mu):
    k = min(p, k)
    exact = k + (p - k) * max(
        Fraction(0), Fraction(maturity - t) / (t * Fraction(mu) + Fraction(maturity))
    )
    kept = annealed(t, maturity, p, k, mu)
    assert abs(kept - exact) <= Fraction(1, 2) + Fraction(1, 10**9)
    assert k <= kept <= p
    assert kept == getattr(annealed, "__wrapped__", annealed)(t, maturity, p, k, mu)
