"""States of several classes as one: no copy is made, and their number is no type of its own."""

import sys
from typing import NamedTuple

import naive
import numba
import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_equal
from sklearn.base import clone

from ofslib import AnytimeSFSAClassifier, SFSAClassifier, SGDTClassifier
from ofslib._jit import _nth_type, kernel, nth
from ofslib.algorithms import sfsa, sgdt
from ofslib.kernels.together import stack, unstack

compiled = pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="nothing is compiled")


class Inner(NamedTuple):
    a: np.ndarray
    grid: np.ndarray


class Outer(NamedTuple):
    count: np.ndarray
    inner: Inner
    name: np.ndarray


def state(c):
    grid = np.arange(12.0).reshape(3, 4) + 100 * c
    return Outer(np.array([c]), Inner(np.arange(5.0) - c, grid), np.array([(c, 0.5)], "f8,f8"))


def parts(nested):
    return [a for part in nested for a in parts(part)] if isinstance(nested, tuple) else [nested]


STATES = [state(c) for c in range(6)]


@kernel(allocates=False)
def scale(one, factor):
    for j in range(len(one.inner.a)):
        one.inner.a[j] *= factor
    one.inner.grid[-1, -1] = factor
    one.count[0] += 1


@kernel(allocates=False)
def scale_nth(states, c, factor):
    scale(nth(states, c), factor)


@kernel
def read_nth(states, c):
    one = nth(states, c)
    return one.inner.a[0] + nth(states.inner, c).grid.sum() + nth(states.inner.grid, c)[0, 1]


def test_what_is_stacked_and_taken_apart_is_what_it_was():
    stacked = stack(STATES)
    assert type(stacked) is Outer and type(stacked.inner) is Inner
    assert [a.shape for a in parts(stacked)] == [(6, 1), (6, 5), (6, 3, 4), (6, 1)]
    for one, before in zip(unstack(stacked), STATES, strict=True):
        assert type(one) is Outer and type(one.inner) is Inner
        assert_equal(parts(one), parts(before))
        assert [a.dtype for a in parts(one)] == [a.dtype for a in parts(before)]
    assert_equal(parts(stack(unstack(stacked))), parts(stacked))


def test_one_of_them_is_no_copy():
    stacked = stack(STATES)
    for c, one in enumerate(unstack(stacked)):
        for part, whole in zip(parts(one), parts(stacked), strict=True):
            assert np.shares_memory(part, whole[c]) and part.flags.c_contiguous
            assert part.strides == whole.strides[1:]
    unstack(stacked)[3].inner.a[2] = 77.0
    assert stacked.inner.a[3, 2] == 77.0 and (stacked.inner.a == 77.0).sum() == 1


@pytest.mark.parametrize("c", [0, np.int64(2), np.uint32(5)])
def test_a_kernel_writes_to_the_stack_and_to_one_state_only(c):
    stacked, expected = stack(STATES), [state(c) for c in range(6)]
    scale_nth(stacked, c, 3.0)
    scale(expected[c], 3.0)
    assert_equal(parts(stacked), parts(stack(expected)))


def test_a_kernel_reads_each_state_as_python_does():
    stacked = stack(STATES)
    for c, one in enumerate(STATES):
        found = one.inner.a[0] + one.inner.grid.sum() + one.inner.grid[0, 1]
        assert read_nth(stacked, c) == found


@compiled
def test_references_are_given_back():
    arrays = parts(stacked := stack(STATES))
    before = [sys.getrefcount(array) for array in arrays]
    for c in range(6):
        read_nth(stacked, c)
        scale_nth(stacked, c, 1.0)
    assert [sys.getrefcount(array) for array in arrays] == before


@compiled
def test_one_of_them_has_the_type_of_a_state_of_its_own():
    """Else all kernels were compiled once more for it."""
    # Not by what was compiled: that may come from the disk.
    assert _nth_type(numba.typeof(stack(STATES))) == numba.typeof(state(0))


# The models

X = np.random.default_rng(0).standard_normal((350, 12))
LABELS = np.argmax(X[:, :7] + 0.5 * np.random.default_rng(1).standard_normal((350, 7)), axis=1)
FAMILIES = [
    SFSAClassifier(learning_rate=0.05, batch_size=9),
    SFSAClassifier(),
    SFSAClassifier(learning_rate=0.01, optimizer="adam", importance="scaled_coef"),
    SFSAClassifier(forget=100),
    AnytimeSFSAClassifier(first_maturity=60),
    SGDTClassifier(maturity=200),
]
every_family = pytest.mark.parametrize("model", FAMILIES, ids=str)


@every_family
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("weight", [None, np.linspace(0.5, 2.0, 350)])
def test_classes_that_keep_all_features_learn_as_if_each_were_alone(model, form, weight):
    """Bit for bit, as nothing is left of what they do together."""
    own = {"k": 12, "random_state": 0}
    together, alone = (
        clone(model).set_params(multiclass=multiclass, **own).fit(form(X), LABELS, weight)
        for multiclass in ("joint", "ovr")
    )
    for name in ("coef_", "intercept_", "online_loss_", "online_score_"):
        assert_equal(getattr(together, name), getattr(alone, name))
    for one, other in zip(together._states, alone._states, strict=True):
        assert_equal(parts(one), parts(other))


@compiled
@every_family
def test_another_number_of_classes_compiles_nothing(model):
    """With tuples of states, ten classes took a minute and a hundred never ended."""

    def compiled_by(n_classes):
        one = clone(model).set_params(k=3, multiclass="joint", random_state=0)
        one.fit(X, LABELS % n_classes)
        module = sgdt if isinstance(one, SGDTClassifier) else sfsa
        return [len(found.signatures) for found in (module.fold_together, module.step_together)]

    first = compiled_by(3)
    assert first[0] > 0 and compiled_by(7) == compiled_by(5) == first


@pytest.mark.parametrize("importance", ["coef", "scaled_coef", "scaled_root"])
@pytest.mark.parametrize("cls", [SFSAClassifier, SGDTClassifier])
def test_features_are_ranked_by_their_norm_over_the_classes(cls, importance):
    """Equal to the slow transcription of the definition."""
    own = {"learning_rate": 0.05, "batch_size": 9, "loss": "log_loss", "importance": importance}
    model = cls(k=4, multiclass="joint", shuffle=False, maturity=300, **own)
    targets = np.where(LABELS == np.arange(7)[:, None], 1.0, -1.0)

    def left(t):
        if cls is SFSAClassifier:
            return naive.schedule(t, 34, 0, 12, 4, model.mu)
        return 12 if t < 34 else 4

    # Of several scales: else their squares, times those, would rank features as norms do.
    rows = X * np.linspace(0.3, 1.5, 12)
    coef, intercept = naive.joint(rows, targets, left, **own)
    for form in (np.asarray, sp.csr_array):
        model.fit(form(rows), LABELS)
        assert_allclose(model.coef_, coef, rtol=0, atol=1e-12)
        assert_allclose(model.intercept_, intercept, rtol=1e-11)
        assert model.support_.tolist() == np.flatnonzero(coef.any(axis=0)).tolist()
        assert len(model.support_) == 4
