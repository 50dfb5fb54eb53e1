"""Knockoffs are what docs/explain/knockoffs.md says.

The references make the copies as rows, by Barber and Candes (2015, (1.4)) and Candes et al. (2018,
(3.2)), and use numpy and scikit-learn's Lasso, nothing of ofslib but the distances s, which are
compared for themselves. [code] marks what only the code told.
"""

from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from estimators import said
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.linear_model import Lasso

import ofslib
from ofslib import RunningAverages, select_by_knockoffs
from ofslib.beyond.knockoffs import (
    KnockoffCopies,
    doubled,
    knockoff_filter,
    largest_distances,
)


def rows(rng, n, p, noise=1.0):
    X = rng.standard_normal((n, p)) @ (np.eye(p) + 0.4 * rng.standard_normal((p, p)))
    X = X * 10.0 ** rng.integers(-2, 3, p) + rng.standard_normal(p)
    true = 3 * (rng.random(p) < 0.7) / X.std(axis=0)
    return X, X @ true + noise * rng.standard_normal(n) + 2


def averages(X, y, weight=None):
    return RunningAverages(X.shape[1]).update(X, y, weight)


# -------------------------------------------------- distances and the filter


def entropy(S, s):
    return np.log(s).sum() + np.linalg.slogdet(2 * S - np.diag(s))[1]


@pytest.mark.parametrize("p", [1, 2, 4, 7])
def test_the_distances_have_nearly_the_largest_entropy(p):
    """Each is the best given the others; the ascent ends where p gain 1e-4 of entropy [code]."""
    rng = np.random.default_rng(p)
    for _ in range(5):
        S = np.cov(rows(rng, 5 * p + 20, p)[0].T, bias=True).reshape(p, p)
        s, best = largest_distances(S), 0.1 * np.diag(S) * np.linalg.eigvalsh(S / S.max())[0]
        for _ in range(400):
            for j in range(p):
                best[j] = (best[j] + 1 / np.linalg.inv(2 * S - np.diag(best))[j, j]) / 2
        assert np.linalg.eigvalsh(2 * S - np.diag(s))[0] > 0
        assert (s <= np.diag(S) * (1 + 1e-12)).all()
        assert -1e-9 < entropy(S, best) - entropy(S, s) < 1e-3 * p
        assert_allclose(s, best, rtol=0.05)


def threshold(W, fdr):
    """The definition, in exact fractions."""
    for T in sorted({abs(w) for w in W} - {0.0}):
        found = sum(w >= T for w in W)
        if found and Fraction(1 + sum(w <= -T for w in W), found) <= fdr:
            return T
    return np.inf


@pytest.mark.parametrize("ties", [True, False])
def test_the_filter_is_its_definition(ties):
    rng = np.random.default_rng(0)
    for _ in range(500):
        p = int(rng.integers(0, 14))
        W = rng.integers(-2, 6, p).astype(float) if ties else rng.standard_normal(p) + 1
        fdr = rng.choice([0.125, 0.25, 0.5, 0.9])
        assert_array_equal(knockoff_filter(W, fdr), np.flatnonzero(W >= threshold(W, fdr)))


@pytest.mark.parametrize(("false", "found"), [(29, 100), (7, 12)])
def test_the_filter_takes_a_share_that_is_the_bound(false, found):
    """At most fdr: a share of 29 in 100 fits fdr=0.29, whatever 0.29 * 100 rounds to."""
    W = np.append(np.ones(found), -np.ones(false - 1))
    assert len(knockoff_filter(W, false / found)) == found


def test_statistics_that_are_no_numbers_in_a_line_are_refused():
    for W in ([np.nan, 1], [[1, 2]]):
        with pytest.raises(ValueError, match="statistics must be finite"):
            knockoff_filter(W, 0.5)


# -------------------------------------------------- copies in the averages


def copies_of(Z, v, g, s):
    """Fixed-X copies of the columns of Z (Z'Z = n S), of which g says how they go with residuals.

    The residuals of v have the direction e; g is what the orthonormal directions of the copies have
    in common with e.
    """
    n, p = Z.shape
    S, D = Z.T @ Z / n, np.diag(s)
    rest = v - Z @ np.linalg.solve(Z.T @ Z, Z.T @ v)
    e = rest / np.linalg.norm(rest)
    others = np.column_stack([np.ones(n), Z, e]) if abs(Z.sum()) < 1e-8 * n else np.c_[Z, e]
    outside = np.linalg.svd(others.T)[2][others.shape[1] :].T  # orthonormal to all of these
    values, vectors = np.linalg.eigh(np.eye(p) - np.outer(g, g))  # one value is 1 - |g|^2
    part = (vectors * np.sqrt(np.maximum(values, 0)))[:, ::-1][:, : outside.shape[1]]
    U = np.outer(e, g) + outside[:, : part.shape[1]] @ part.T
    C = np.linalg.cholesky(2 * D - D @ np.linalg.solve(S, D))
    return Z - Z @ np.linalg.solve(S, D) + np.sqrt(n) * U @ C.T


def statistics(X, y, centred, draws, seed):
    (n, p), rng, W = X.shape, np.random.RandomState(seed), []
    Z, v = (X - X.mean(axis=0), y - y.mean()) if centred else (X, y)
    Z = Z / np.sqrt((Z**2).mean(axis=0))
    s, free = largest_distances(Z.T @ Z / n), n - centred - 2 * p
    for _ in range(draws):
        u = rng.standard_normal(p)  # then the square of all other coordinates [code]
        g = u / np.sqrt(u @ u + (rng.chisquare(free) if free else 0))
        both = np.hstack([Z, copies_of(Z, v, g, s)])
        left = ((v - both @ np.linalg.lstsq(both, v, rcond=None)[0]) ** 2).sum()
        penalty = np.sqrt(left / max(free, 1)) * np.sqrt(2 * np.log(2 * p) / n)
        top = np.abs(both.T @ v).max() / n
        penalty = max(penalty, 1e-3 * top)  # [code]
        size = np.zeros(2 * p)
        if penalty < top:
            lasso = Lasso(alpha=penalty, fit_intercept=False, tol=1e-14, max_iter=200_000)
            size = np.abs(lasso.fit(both, v).coef_)
        W.append(size[:p] - size[p:])
    return np.array(W)


@pytest.mark.parametrize("more", [0, 1, 2, 15])
@pytest.mark.parametrize("noise", [1.0, 0.05])
@pytest.mark.parametrize("centred", [True, False])
def test_statistics_are_those_of_copies_made_of_rows(more, noise, centred):
    rng = np.random.default_rng(more)
    for p in (1, 2, 4):
        X, y = rows(rng, 2 * p + centred + more, p, noise)
        model = ofslib.KnockoffsRegressor(fit_intercept=centred, draws=3, fdr=0.5, random_state=p)
        found = model._selection(averages(X, y).standardized(centred), len(X)).statistics
        expected = statistics(X, y, centred, 3, p)
        assert_allclose(found, expected, rtol=0, atol=2e-5 * max(1, np.abs(expected).max()))
        if centred:
            assert_array_equal(select_by_knockoffs(averages(X, y), 0.5, 3, p).statistics, found)


@pytest.mark.parametrize("draws", [1, 2, 5])
def test_what_is_chosen_follows_from_the_statistics(draws):
    """The filter, or e-BH of the mean e-values at q / 2; least squares on these; path by means."""
    rng, some = np.random.default_rng(draws), 0
    for seed in range(15):
        X, y = rows(rng, 40, 6)
        fdr = [0.25, 0.5, 0.9][seed % 3]
        chosen = select_by_knockoffs(averages(X, y), fdr, draws, seed)
        W = chosen.statistics
        e = np.zeros(6)
        for w in W:
            T = threshold(w, fdr if draws == 1 else fdr / 2)
            e += 6 * (w >= T) / (1 + (w <= -T).sum()) / draws
        assert_allclose(chosen.e_values, e, rtol=1e-12)
        order = np.sort(e)[::-1]
        m = max((i for i in range(1, 7) if order[i - 1] * i * fdr >= 6 - 1e-9), default=0)
        support = np.flatnonzero(e >= 6 / (fdr * m) - 1e-9) if m else []
        assert_array_equal(chosen.support, support)
        some += len(support) > 0

        model = ofslib.KnockoffsRegressor(fdr=fdr, draws=draws, random_state=seed).fit(X, y)
        told = said(lambda model=model: model.support_)
        assert_array_equal(model.support_, support)
        assert ("no feature stands out" in str(told)) == (m == 0)
        A = np.column_stack([np.ones(40), X[:, support].reshape(40, -1)])
        b = np.linalg.lstsq(A, y, rcond=None)[0]
        assert_allclose(np.append(model.intercept_, model.coef_[support]), b, rtol=1e-8)
        ranked = np.argsort(-W.mean(axis=0), kind="stable")
        for k, coef in enumerate(model.path(averages(X, y), range(1, 7)), 1):
            assert_array_equal(np.flatnonzero(coef), np.sort(ranked[:k]))
    assert 0 < some < 15


def test_constant_features_and_units_change_nothing():
    X, y = rows(np.random.default_rng(2), 50, 5)
    X[np.random.default_rng(3).random(X.shape) < 0.4] = 0
    alone = select_by_knockoffs(averages(X, y), 0.5, 2, 7).statistics
    constant = np.insert(X, 2, 7.0, axis=1)
    with_it = select_by_knockoffs(averages(constant, y), 0.5, 2, 7).statistics
    assert_array_equal(with_it[:, 2], 0)
    assert_allclose(np.delete(with_it, 2, axis=1), alone, rtol=0, atol=1e-12)
    other = averages(X * 2.0 ** np.arange(5) - 4, 8 * y + 1)
    assert_allclose(select_by_knockoffs(other, 0.5, 2, 7).statistics / 8, alone, rtol=0, atol=1e-9)


# -------------------------------------------------- what is refused


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("kind", ["a sum", "all levels"])
def test_features_that_make_each_other_up_are_refused(dtype, kind):
    for seed in range(8):
        X, y = rows(np.random.default_rng(seed), 100, 6)
        X[:, 5] = X[:, 0] + X[:, 1]
        if kind == "all levels":
            X = np.eye(6)[np.random.default_rng(seed).integers(0, 6, 100)]
        known = RunningAverages(6, dtype).update(X, y)
        with pytest.raises(ValueError, match="depend on each other linearly"):
            select_by_knockoffs(known, 0.3)


def test_weights_and_few_rows_are_refused():
    X, y = rows(np.random.default_rng(5), 12, 4)
    model = ofslib.KnockoffsRegressor(fdr=0.5, random_state=0)
    heavy = averages(X, y, np.append(np.ones(11), 3.0))
    for known, why in ((averages(X[:8], y[:8]), "at least 9 rows"), (heavy, "weight")):
        for read in (lambda a: model.path(a, [2]), lambda a: model.fit_averages(a).coef_):
            with pytest.raises(ValueError, match=why):
                read(known)
    with pytest.raises(ValueError, match="sample_weight and class_weight must be 1"):
        model.fit(X, y, np.append(np.ones(10), [0.5, 1.5]))


# -------------------------------------------------- copies of rows


@pytest.mark.parametrize("p", [1, 3, 6])
def test_copies_of_rows_have_the_law_of_the_paper(p):
    rng = np.random.default_rng(p)
    X = rows(rng, 30, p)[0]
    mean, S = X.mean(axis=0), np.cov(X.T, bias=True).reshape(p, p)
    D, copies = np.diag(largest_distances(S)), KnockoffCopies.from_averages(averages(X, X[:, 0]))
    noise = copies.draw(np.tile(mean, (30, 1)), 4) - mean
    moved = copies.draw(X, 4) - mean - noise
    kept = np.eye(p) - np.linalg.solve(S, D)
    assert_allclose(moved / X.std(axis=0), (X - mean) @ kept / X.std(axis=0), rtol=0, atol=1e-8)
    normal = np.random.RandomState(4).standard_normal((30, p))  # [code]
    F = np.linalg.lstsq(normal, noise, rcond=None)[0].T
    scale = np.sqrt(np.outer(np.diag(S), np.diag(S)))
    assert_allclose(F @ F.T / scale, (2 * D - D @ np.linalg.solve(S, D)) / scale, rtol=0, atol=1e-8)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array, pd.DataFrame])
def test_without_copies_the_rows_of_a_block_are_shuffled(form):
    X = np.random.default_rng(0).standard_normal((6, 6))
    ((both, y, w),) = doubled([(form(X), "y", "w")], random_state=0)
    both = both.toarray() if sp.issparse(both) else both
    assert (y, w) == ("y", "w")
    assert_array_equal(both[:, :6], X)
    assert sorted(map(tuple, both[:, 6:])) == sorted(map(tuple, X))
