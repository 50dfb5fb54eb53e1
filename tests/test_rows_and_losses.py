"""The verbs on rows, the running variance and the losses, against plain NumPy."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_equal

from ofslib._jit import kernel
from ofslib.kernels import losses, rows
from ofslib.kernels.losses import LOSSES, Loss
from ofslib.kernels.rows import (
    ENTRIES_BEFORE,
    ROWS,
    new_active,
    new_batch,
    new_moments,
    variance,
)
from ofslib.streams.row_stream import kernel_csr

# The verbs as kernels run them; test_jit.py says that Python computes the same


add = kernel(lambda batch, X, which, slopes, active: rows.add(batch, X, which, slopes, active))
update_squares = kernel(lambda m, X, which, active: rows.update_squares(m, X, which, active))


@kernel
def update_moments(moments, X, which, y, weighted, active):
    rows.update_moments(moments, X, which, y, weighted, active)


def matrices(n=40, p=23, seed=0):
    """The same numbers as the two kinds of matrix that kernels read."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p)) * (rng.random((n, p)) < 0.3)
    X[3] = 0.0  # a row without entries
    return X, kernel_csr(sp.csr_matrix(X))


def some_active(p, members):
    active = new_active(p)
    members = np.array(members, np.uint32)
    active.index[:] = np.concatenate([members, np.setdiff1d(np.arange(p), members)])
    active.size[0] = len(members)
    active.untouched[:] = np.isin(np.arange(p), members)
    return active


SETS = {"all": range(23), "most": range(0, 20, 2), "few": [1, 5, 22], "one": [7], "none": []}
every_set = pytest.mark.parametrize("members", SETS.values(), ids=SETS)


@pytest.mark.parametrize("weighted", [False, True])
def test_moments_are_sums_over_rows(weighted):
    """Of float32 rows as of these as float64, by fours and by ones; of few features only these."""
    rng, p = np.random.default_rng(0), 37
    X = rng.standard_normal((11, p)).astype(np.float32)
    y = np.zeros(11, losses.WEIGHTED)
    y["weight"] = rng.random(11)
    total, square = np.zeros((2, p))
    for x, w in zip(X.astype(float), y["weight"] if weighted else np.ones(11), strict=True):
        total += w * x
        square += w * x * x
    for members in (range(p), range(0, p, 2), range(0, p, 6)):
        for of in (np.asarray, lambda X: kernel_csr(sp.csr_matrix(X))):
            for form in (of(X), of(X.astype(np.float64))):
                moments, active = new_moments(p), some_active(p, members)
                update_moments(moments, form, np.arange(11), y, weighted, active)
                assert moments.rows[0] == 11
                assert_equal(moments.total[list(members)], total[list(members)])
                assert_equal(moments.square[list(members)], square[list(members)])
                if not weighted:  # the same without the means
                    squares = new_moments(p)
                    update_squares(squares, form, np.arange(11), active)
                    assert squares.rows[0] == 11
                    assert_equal(squares.square[list(members)], square[list(members)])


@every_set
@pytest.mark.parametrize("dense_rows", [range(40), (), range(0, 40, 3)])
def test_a_batch_is_a_sum_of_rows(members, dense_rows):
    X, S = matrices()
    active, batch = some_active(23, members), new_batch(23)
    slopes = np.random.default_rng(2).standard_normal(len(X))
    slopes[5] = 0.0
    for first in (0, 20):  # two batches, one after the other
        for i in range(first, first + 20):
            form = X if i in dense_rows else S
            add(batch, form, np.array([i]), slopes[i : i + 1], active)
        part = slice(first, first + 20)
        expected = slopes[part] @ X[part]
        listed = np.array(rows.in_batch(batch, active))
        assert len(set(listed)) == len(listed) and set(listed) <= set(members)
        touched = (X[part] * slopes[part, None] != 0).any(axis=0)
        assert set(np.flatnonzero(touched)) & set(members) <= set(listed)
        if not dense_rows:  # what has no entry costs nothing
            entered = (X[part] != 0)[slopes[part] != 0].any(axis=0)
            assert set(listed) == set(np.flatnonzero(entered)) & set(members)
        assert_allclose(batch.gradient[listed], expected[listed], atol=1e-13)
        assert batch.count[ROWS] == 20
        batch.gradient[-1] = 5.0
        rows.clear(batch, active)
        assert_equal(batch.gradient[list(members)], 0.0)
        assert batch.gradient[-1] == 0.0 and not batch.count[:ENTRIES_BEFORE].any()
        assert_equal(active.untouched, np.isin(np.arange(23), list(members)))


@pytest.mark.parametrize("offset", [0.0, 1.0, 100.0, 1e4])
def test_the_running_variance_is_the_variance(offset):
    rng = np.random.default_rng(0)
    X = (rng.standard_normal((200, 6)) + offset) * [1e-3, 0.1, 1, 1, 10, 1e3]
    X[:, 3] *= rng.random(200) < 0.1
    X[:, 4] = offset  # constant
    S = kernel_csr(sp.csr_matrix(X))
    dense, sparse, y = new_moments(6), new_moments(6), np.zeros(200)
    for i in range(len(X)):
        update_moments(dense, X, np.array([i]), y, False, new_active(6))
        update_moments(sparse, S, np.array([i]), y, False, new_active(6))
        for moments in (dense, sparse):
            got = np.array([variance(moments, j) for j in range(6)])
            seen = X[: i + 1]
            error = 1e-13 * np.square(seen).mean(axis=0)  # cancellation of s_j - mean_j**2
            assert (got >= 0).all()
            assert (np.abs(got - seen.var(axis=0)) <= error).all()
    assert dense.rows[0] == sparse.rows[0] == 200


# Losses


MARGINS = np.concatenate([np.linspace(-4, 4, 33) + 0.03125, [-30.5, 30.5, -700.5, 700.5]])


@pytest.mark.parametrize("name", LOSSES)
def test_the_slope_is_the_derivative_of_the_value(name):
    loss, h = int(Loss[name]), 2.0**-16
    for y in (-1.0, 1.0) if name != "squared_error" else (-2.5, 0.0, 1.0, 10.0):
        for m in MARGINS:
            rise = losses.value(loss, m + h, y) - losses.value(loss, m - h, y)
            assert_allclose(losses.slope(loss, m, y), rise / (2 * h), rtol=1e-5, atol=1e-6)


def test_small_differences_survive():
    """log(1 + exp(-40)) is not 0, and the slope there not either."""
    assert_allclose(losses.value(int(Loss.log_loss), 40.0, 1.0), np.exp(-40.0), rtol=1e-14)
    assert_allclose(losses.slope(int(Loss.log_loss), 40.0, 1.0), -np.exp(-40.0), rtol=1e-14)


@pytest.mark.parametrize("name", LOSSES)
def test_the_loss_of_what_is_not_a_number_is_not_a_number(name):
    """A model that ran away must not look like a good one."""
    assert np.isnan(losses.value(int(Loss[name]), np.nan, 1.0))
    assert np.isnan(losses.total(int(Loss[name]), np.array([0.5, np.nan]), np.ones(2)))
