"""The features that are pruned from a queue are those that rank last among all."""

import time

import naive
import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

from ofslib import SFSAClassifier, SFSARegressor
from ofslib.kernels import pruning_queue
from ofslib.kernels.rows import new_active


def last(w, alive, keep):
    """Those of `alive` beyond the `keep` first by |w|, of equals the lower index first."""
    value = np.where(np.isnan(w), np.inf, abs(w))
    return sorted(alive, key=lambda j: (-value[j], j))[keep:]


@pytest.mark.parametrize("values", [[0.0, 1.0, -1.0, 2.0], [0.0, np.nan, np.inf, -0.5], None])
def test_the_least_important_are_dropped_first(values):
    """Many equals, what is not a number, or no two alike; often closed and begun again."""
    draw, p = np.random.default_rng(0), 300
    for _ in range(5):
        w, active, queue = np.zeros(p + 1), new_active(p), pruning_queue.new_queue(p, np.empty(p))
        alive, work, keep = set(range(p)), np.empty(p), p
        while keep > 3:
            changed = draw.choice(sorted(alive), min(len(alive), draw.integers(1, 40)), False)
            new = (
                draw.choice(values, len(changed)) if values else draw.standard_normal(len(changed))
            )
            w[changed] = new
            pruning_queue.update_keys(queue, w, changed.astype(np.uint32))
            keep = max(3, keep - draw.integers(0, 5))
            gone, least = last(w, alive, keep), active.cut[0]
            if gone:
                least = max(np.inf if np.isnan(w[j]) else abs(w[j]) for j in gone)
            pruning_queue.prune(queue, w, active, keep, work)
            alive -= set(gone)
            assert not np.any(w[gone]) and not active.untouched[gone].any()
            assert active.cut[0] == least
            if draw.random() < 0.1:
                pruning_queue.close(queue, active)
                assert not queue.place.any()
        pruning_queue.close(queue, active)
        assert_array_equal(active.index[: active.size[0]], sorted(alive))
        assert_array_equal(np.sort(active.index), np.arange(p))


def long_rows(loss, n=240, p=6000):
    """Of p features a row has 2 of the first 40, some of equal columns, and none to 30 others.

    So some mini-batches touch few of the features that are left, and others many.
    """
    draw = np.random.default_rng(1)
    X = sp.lil_array((n, p))
    for i in range(n):
        X[i, draw.choice(40, 2, False)] = draw.choice([1.0, 2.0], 2)
        X[i, 40 + draw.choice(p - 40, draw.integers(0, 31), False)] = 1.0
    y = X[:, [1, 3, 5]].sum(axis=1) - X[:, [2, 4, 6]].sum(axis=1) + 0.1 * draw.standard_normal(n)
    return X.tocsr(), y if loss == "squared_error" else np.where(y > 0.0, 1.0, -1.0)


@pytest.mark.parametrize(
    ("mu", "maturity", "importance"),
    [
        (0.0, 220, "coef"),
        (5.0, 220, "coef"),
        (200.0, 220, "coef"),
        (1.0, 300, "coef"),
        (5.0, 220, "scaled_coef"),
    ],
)
@pytest.mark.parametrize("optimizer", ["sgd", "nesterov"])
@pytest.mark.parametrize("loss", ["squared_error", "hinge"])
def test_the_model_is_that_of_the_page(loss, optimizer, mu, maturity, importance):
    """Rows in one block, for which there is a queue, and one at a time, for which there is none."""
    X, y = long_rows(loss)
    own = {"k": 6, "learning_rate": 0.05, "batch_size": 2, "mu": mu, "warmup": 20}
    own |= {"maturity": maturity, "importance": importance, "optimizer": optimizer}
    make = SFSARegressor if loss == "squared_error" else SFSAClassifier
    known = {} if loss == "squared_error" else {"classes": [-1, 1]}
    at_once, in_two, one_by_one = (make(loss=loss, **own) for _ in range(3))
    at_once.partial_fit(X, y, **known)
    for part in (slice(0, 101), slice(101, 240)):  # within a mini-batch
        in_two.partial_fit(X[part], y[part], **known)
    for i in range(len(y)):
        one_by_one.partial_fit(X[[i]], y[[i]], **known)
        assert np.count_nonzero(one_by_one.coef_) <= 6
    if maturity <= len(y):  # else more than k features are left on the page
        page = {"loss": loss, "intercept": True}
        coef, intercept, _ = naive.sfsa(X.toarray(), y, **page, **own)
        assert_allclose(at_once.coef_.ravel(), coef, rtol=1e-11, atol=1e-14)
        assert_allclose(at_once.intercept_, intercept, rtol=1e-11)
    assert len(at_once.support_) == 6
    for other in (in_two, one_by_one):
        assert_array_equal(at_once.coef_, other.coef_)
        assert_array_equal(at_once.intercept_, other.intercept_)
        mine, its = at_once._state.active, other._state.active
        assert_array_equal(mine.index[: mine.size[0]], its.index[: its.size[0]])
        assert mine.cut == its.cut


def test_plain_steps_do_not_go_through_all_features():
    """A block of rows of 300,000 features, beside the same in parts too short for a queue."""
    draw, n, p = np.random.default_rng(2), 1500, 300_000
    columns = np.sort(draw.choice(p // 5, (n, 5), replace=False) * 5 + np.arange(5))
    X = sp.csr_array((np.ones(5 * n), columns.ravel(), np.arange(0, 5 * n + 1, 5)), shape=(n, p))
    y, parts = draw.standard_normal(n), [slice(i, i + 30) for i in range(0, n, 30)]

    def seconds(blocks):
        own = {"learning_rate": 0.01, "batch_size": 2, "maturity": n}
        model = SFSARegressor(k=5, **own)
        began = time.process_time()
        for rows in blocks:
            model.partial_fit(X[rows], y[rows])
        return time.process_time() - began, model.coef_

    seconds([slice(0, 32), slice(32, 34)])  # compiled from here on
    (in_parts, expected), (at_once, found) = seconds(parts), seconds([slice(0, n)])
    assert_array_equal(found, expected)
    assert at_once < in_parts / 3
