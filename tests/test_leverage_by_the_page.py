"""What selects columns without a model is what the docstrings and the papers say, in plain numpy.

Online and ridge leverage scores, Laplacian scores, sparse embedding, uniform choice, and
alpha-investing. Which columns a sampler drew is taken from it; the rest follows. Nothing of ofslib
is used by the references; [code] marks what only the code told.
"""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

from ofslib import (
    AlphaInvesting,
    LaplacianScoreSelector,
    OnlineLeverageSelector,
    RidgeLeverageSelector,
    SparseEmbedding,
    UniformSelector,
)

KINDS = ["normal", "whole", "equal", "zeros", "constant"]


def columns(rng, n, p, kind):
    X = rng.standard_normal((n, p))
    if kind == "whole":
        X = rng.integers(-1, 2, (n, p)).astype(float)
    elif kind == "equal":
        X = X[:, rng.integers(0, max(1, p // 2), p)]
    elif kind == "zeros":
        X *= rng.random(p) < 0.6
    elif kind == "constant":
        X[:, rng.random(p) < 0.4] = 3.0
    return X


def in_blocks(model, X, rng, y=None):
    """Show columns in blocks of random sizes, dense in either order and sparse."""
    start = 0
    while start < X.shape[1]:
        end = start + int(rng.integers(1, X.shape[1] + 1))
        form = [np.asfortranarray, sp.csc_array, sp.csr_array, np.array][end % 4]
        model.partial_fit_columns(form(X[:, start:end]), y)
        start = end
    return model


# -------------------------------------------------- online leverage scores


def online_scores(X, drawn, *, eps, variant, ridge, n_initial, rate):
    """Algorithm 1 with the columns that were drawn: scores, and weights of these."""
    n, A, scores, weights = len(X), np.zeros((len(X), 0)), [], []
    for j, a in enumerate(X.T):
        if variant == "ridge":
            score = a @ np.linalg.solve(A @ A.T + ridge * np.eye(n), a)
        else:
            U, values, _ = np.linalg.svd(A, full_matrices=False)
            rank = int((values > 1e-10 * values.max(initial=1e-300)).sum())
            z = U[:, :rank].T @ a
            score = ((z / values[:rank]) ** 2).sum()
            outside = np.linalg.norm(a - U[:, :rank] @ z)
            if variant == "span" and outside > 1e-8 * np.linalg.norm(a):
                score = np.inf
        scores.append(min((1 + eps) * score, 1.0))
        if j in drawn:
            weights.append(1.0 if j < n_initial else min(rate * scores[-1], 1.0) ** -0.5)
            A = np.column_stack([A, weights[-1] * a])
    return np.array(scores), np.array(weights)


@pytest.mark.parametrize("variant", ["span", "printed", "ridge"])
@pytest.mark.parametrize("kind", KINDS)
def test_online_scores_and_weights_are_those_of_algorithm_1(kind, variant):
    rng, expected, drawn, spread = np.random.default_rng(1), 0.0, 0, 0.0
    for seed in range(40):
        n, p = int(rng.integers(2, 9)), int(rng.integers(1, 16))
        X = columns(rng, n, p, kind) * 10.0 ** rng.integers(-2, 3)
        own = {"eps": float(rng.choice([0.1, 0.5, 0.9])), "variant": variant, "ridge": 2.0}
        own["n_initial"] = int(rng.choice([0, 1, 3, 20]))
        rate = [None, 0.1, 0.5, 1.5][seed % 4]
        model = OnlineLeverageSelector(rate=rate, random_state=seed, **own)
        model = model.fit(X) if seed % 3 else in_blocks(model, X, rng)
        rate = 8 * np.log(n) / own["eps"] ** 2 if rate is None else rate
        assert_allclose(model.rate_, rate, rtol=1e-12)
        scores, weights = online_scores(X, set(model.support_), rate=rate, **own)
        assert_allclose(model.scores_, scores, rtol=0, atol=1e-8)
        assert_allclose(model.weights_, weights, rtol=1e-7)
        assert_array_equal(model.transform(X), X[:, model.support_])
        chance = np.minimum(rate * scores, 1.0)[own["n_initial"] :]
        there = model.get_support()[own["n_initial"] :]
        assert there[chance == 1].all() and not there[chance == 0].any()
        assert model.get_support()[: own["n_initial"]].all()
        drawn, expected = drawn + there.sum(), expected + chance.sum()
        spread += (chance * (1 - chance)).sum()
    assert abs(drawn - expected) < 3.5 * np.sqrt(spread) + 1e-9


# -------------------------------------------------- batch scores


@pytest.mark.parametrize("kind", KINDS)
def test_ridge_scores_and_those_kept(kind):
    rng = np.random.default_rng(4)
    for seed in range(30):
        n, p = int(rng.integers(1, 9)), int(rng.integers(1, 12))
        X, ridge, k = columns(rng, n, p, kind), 10.0 ** rng.integers(-3, 4), rng.integers(1, p + 1)
        scores = np.einsum("ij,ij->j", X, np.linalg.solve(X @ X.T + ridge * np.eye(n), X))
        model = RidgeLeverageSelector(k=int(k), ridge=ridge, random_state=seed)
        model.set_params(sample=seed % 2 == 0).fit(X if seed % 3 else sp.csc_array(X))
        assert_allclose(model.scores_, scores, rtol=0, atol=1e-11)
        kept = model.get_support(indices=True)
        assert len(kept) == k  # of zero columns so many as k needs [code]
        assert (scores[kept] > 1e-12).sum() == min(k, (scores > 1e-12).sum())
        if not model.sample:
            assert_allclose(scores[kept].sum(), np.sort(scores)[::-1][:k].sum(), rtol=0, atol=1e-9)


def test_ridge_scores_are_drawn_in_proportion_without_replacement():
    X = np.diag([1.0, 2.0, 4.0])
    scores = np.diag(X) ** 2 / (np.diag(X) ** 2 + 5)
    share = scores / scores.sum()
    chance = [share[j] * (1 + sum(share[i] / (1 - share[i]) for i in range(3) if i != j))
              for j in range(3)]  # fmt: skip
    drawn = sum(
        RidgeLeverageSelector(k=2, ridge=5.0, random_state=s).fit(X).get_support()
        for s in range(800)
    )
    assert_allclose(drawn / 800, chance, rtol=0, atol=3.5 * 0.5 / np.sqrt(800))


def laplacian_scores(X, n_neighbors, bandwidth):
    squares = ((X[:, None] - X) ** 2).sum(axis=2)
    near = np.zeros(squares.shape, bool)
    for i, row in enumerate(squares):
        near[i, [j for j in np.argsort(row) if j != i][:n_neighbors]] = True
    # The mean over each row's neighbours: two that are each other's count twice [code].
    bandwidth = squares[near].mean() if bandwidth is None else bandwidth
    S = np.exp(-squares / bandwidth) * (near | near.T)
    D, scores = S.sum(axis=1), []
    for f in X.T:
        f = f - D @ f / D.sum()
        flat = np.ptp(f) < 1e-12
        scores.append(-np.inf if flat else -(f @ (np.diag(D) - S) @ f) / (f @ (D * f)))
    return np.array(scores)


@pytest.mark.parametrize("bandwidth", [None, 5.0])
@pytest.mark.parametrize("kind", ["normal", "zeros", "constant"])
def test_laplacian_scores(kind, bandwidth):
    rng = np.random.default_rng(5)
    for seed in range(25):
        n, p = int(rng.integers(3, 15)), int(rng.integers(2, 8))
        X, near = columns(rng, n, p, kind), int(rng.integers(1, n))
        X[:, 0] = rng.standard_normal(n)  # no two rows are equal
        model = LaplacianScoreSelector(k=int(rng.integers(1, p + 1)), n_neighbors=near)
        model.set_params(bandwidth=bandwidth).fit(sp.csr_array(X) if seed % 2 else X)
        assert_allclose(model.scores_, laplacian_scores(X, near, bandwidth), rtol=0, atol=1e-11)
        kept = np.sort(np.argsort(-model.scores_, kind="stable")[: model.k])
        assert_array_equal(model.get_support(indices=True), kept)


def test_rows_too_far_apart_for_the_bandwidth_are_not_called_constant():
    """-inf is the score of a constant feature; where all weights vanish there is no score."""
    X = np.random.default_rng(6).standard_normal((20, 4)) * 100
    with pytest.raises(ValueError, match="bandwidth"):
        LaplacianScoreSelector(k=1, bandwidth=1.0).fit(X)


def test_each_feature_is_in_one_sum_and_all_sets_are_equally_likely():
    rng, sums, sets = np.random.default_rng(7), np.zeros((3, 2)), {}
    for seed in range(300):
        p, k = int(rng.integers(1, 9)), int(rng.integers(1, 12))
        X = rng.standard_normal((4, p))
        model = SparseEmbedding(k=k, random_state=seed).fit(X)
        R = model.components_.toarray()
        assert R.shape == (k, p) and (np.abs(R).sum(axis=0) == 1).all()
        assert_allclose(
            model.transform(sp.csr_array(X) if seed % 2 else X), X @ R.T, rtol=0, atol=1e-12
        )
        R = SparseEmbedding(k=3, random_state=seed).fit(np.zeros((1, 6))).components_.toarray()
        sums += np.column_stack([(R == 1).sum(axis=1), (R == -1).sum(axis=1)])
        chosen = UniformSelector(k=2, random_state=seed).fit(np.zeros((2, 4))).get_support()
        sets[tuple(chosen)] = sets.get(tuple(chosen), 0) + 1
    assert_allclose(sums, 300, rtol=0, atol=3.5 * np.sqrt(300))
    assert len(sets) == 6
    assert_allclose(list(sets.values()), 50, rtol=0, atol=3.5 * np.sqrt(50))


# -------------------------------------------------- alpha-investing


def accepted(X, y, wealth, payout):
    A, index = np.ones((len(y), 1)), []
    for i, x in enumerate(X.T, 1):
        level, B, p_value = wealth / (2 * i), np.column_stack([A, x]), 1.0
        freedom = len(y) - B.shape[1]
        lengths = np.maximum(np.linalg.norm(B, axis=0), 1e-12)
        if freedom > 0 and np.linalg.matrix_rank(B / lengths, tol=1e-8) == B.shape[1]:
            b = np.linalg.lstsq(B, y, rcond=None)[0]
            rest = y - B @ b
            error = np.sqrt(rest @ rest / freedom * np.linalg.inv(B.T @ B)[-1, -1])
            p_value = 2 * stats.t.sf(abs(b[-1]) / error, freedom)
        wealth -= level
        if p_value < level:
            A, wealth, index = B, wealth + payout, [*index, i - 1]
    return index, wealth


@pytest.mark.parametrize("kind", KINDS)
def test_alpha_investing_accepts_what_passes_its_level(kind):
    rng = np.random.default_rng(8)
    for seed in range(60):
        n, p = int(rng.integers(4, 40)), int(rng.integers(1, 25))
        X = columns(rng, n, p, kind) * 10.0 ** rng.integers(-3, 4, p) + 50 * (seed % 5 == 0)
        y = X[:, :3].sum(axis=1) / 10 + 0.3 * rng.standard_normal(n)
        wealth, payout = float(rng.choice([0.05, 0.5])), float(rng.choice([0.05, 0.5, 1]))
        model = AlphaInvesting(initial_wealth=wealth, payout=payout)
        model = model.fit(X, y) if seed % 2 else in_blocks(model, X, rng, y)
        index, left = accepted(X, y, wealth, payout)
        assert_array_equal(model.support_, index)
        assert_allclose(model.wealth_, left, rtol=1e-9)


@pytest.mark.parametrize("mean", [0.0, 1e5, 3e6, 1e8])
def test_alpha_investing_sees_a_column_far_from_0(mean):
    """A constant is in the model: what is added to a column does not matter."""
    rng = np.random.default_rng(9)
    x = rng.standard_normal(200)
    y = x + 0.1 * rng.standard_normal(200)
    assert_array_equal(AlphaInvesting().fit(x[:, None] + mean, y).support_, [0])


def test_alpha_investing_accepts_nothing_by_what_rounding_leaves():
    """After columns that make up y exactly there is nothing left to test."""
    rng = np.random.default_rng(10)
    for _ in range(100):
        X = rng.standard_normal((40, 30))
        assert_array_equal(AlphaInvesting().fit(X, 2 * X[:, 0]).support_, [0])
