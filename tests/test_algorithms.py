"""Each algorithm is what its paper prints: equal to the slow transcription in naive.py."""

from contextlib import nullcontext

import naive
import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose

from ofslib import (
    BAMDClassifier,
    BARDAClassifier,
    FOFSClassifier,
    SFSAClassifier,
    SFSARegressor,
    SGDTClassifier,
    SGDTRegressor,
    SIHTClassifier,
    SIHTRegressor,
    SOFSClassifier,
)

LOSSES = ["log_loss", "hinge", "squared_hinge"]

# The papers have no intercept
BOTH = pytest.mark.parametrize("intercept", [True, False], ids=["intercept", "none"])


def data(kind, n=173, p=31, seed=0, classify=True):
    """Rows whose features have different scales and, except for dense ones, mostly zeros."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p)) * rng.uniform(0.2, 2, p)
    if kind != "dense":
        X *= rng.random((n, p)) < 0.2
    if kind == "counts":
        X = np.round(np.abs(X))
    if kind in ("twins", "counts"):  # pairs of equal columns: only the tie rule tells them apart
        X = np.repeat(X, 2, axis=1)
    f = X[:, :10].sum(axis=1) + 0.5 * rng.standard_normal(n)
    return X, np.where(f > np.median(f), 1.0, -1.0) if classify else f + 1


def assert_agrees(model, expected, X, y):
    """The model learns what the oracle learns, from dense and sparse rows."""
    coef, intercept, margins = expected
    assert model.fit_intercept or intercept == 0
    for form in (X, sp.csr_matrix(X)):
        model.fit(form, y)
        assert_allclose(model.coef_, coef, rtol=0, atol=1e-12 * max(1, np.abs(coef).max()))
        assert_allclose(model.intercept_, intercept, rtol=1e-12, atol=1e-12)
        assert np.array_equal(model.support_, np.flatnonzero(coef))
        losses = [naive.loss(model.loss, m, t) for m, t in zip(margins, y, strict=True)]
        assert_allclose(model.online_loss_, np.mean(losses), rtol=1e-10)
    assert 0 < len(model.support_) <= min(model.k or np.inf, X.shape[1])


def with_and_without_intercept(oracle, classifier, regressor, kind, own):
    """All losses."""
    for loss in (*LOSSES, "squared_error"):
        classify = loss != "squared_error"
        X, y = data(kind, classify=classify)
        for intercept in (True, False):
            model = (classifier if classify else regressor)(
                **own, loss=loss, fit_intercept=intercept, shuffle=False
            )
            assert_agrees(model, oracle(X, y, **own, loss=loss, intercept=intercept), X, y)


@pytest.mark.parametrize("kind", ["dense", "sparse", "twins"])
@pytest.mark.parametrize("optimizer", ["sgd", "momentum", "nesterov", "adam"])
@pytest.mark.parametrize("importance", ["coef", "scaled_coef", "scaled_root"])
def test_sfsa(kind, optimizer, importance):
    own = {"k": 6, "learning_rate": 0.02, "batch_size": 5, "optimizer": optimizer, "mu": 4.0}
    own |= {"warmup": 20, "importance": importance}
    with_and_without_intercept(naive.sfsa, SFSAClassifier, SFSARegressor, kind, own)


@pytest.mark.parametrize("optimizer", ["sgd", "nesterov"])
@pytest.mark.parametrize(("warmup", "maturity"), [(0, 60), (23, 111), (24, 112)])
def test_sfsa_in_mini_batches_that_warm_up_and_maturity_do_not_fill(optimizer, warmup, maturity):
    """And the rows after maturity."""
    own = {"k": 6, "learning_rate": 0.02, "batch_size": 5, "optimizer": optimizer, "mu": 4.0}
    own |= {"warmup": warmup, "maturity": maturity, "importance": "coef"}
    with_and_without_intercept(naive.sfsa, SFSAClassifier, SFSARegressor, "dense", own)


@pytest.mark.parametrize("kind", ["dense", "sparse", "twins"])
@pytest.mark.parametrize("maturity", [60, 173])
@pytest.mark.parametrize("importance", ["coef", "scaled_coef", "scaled_root"])
def test_sgdt(kind, maturity, importance):
    own = {"k": 6, "learning_rate": 0.05, "batch_size": 4, "maturity": maturity}
    own |= {"importance": importance}
    with_and_without_intercept(naive.sgdt, SGDTClassifier, SGDTRegressor, kind, own)


@pytest.mark.parametrize("kind", ["dense", "sparse", "counts"])
@pytest.mark.parametrize("batch_size", [1, 5])
@pytest.mark.parametrize("alpha", [0.0, 0.01, 1.0])
@pytest.mark.parametrize("loss", LOSSES)
@BOTH
def test_fofs(kind, batch_size, alpha, loss, intercept):
    own = {"k": 6, "learning_rate": 0.3, "alpha": alpha, "batch_size": batch_size, "loss": loss}
    X, y = data(kind)
    model = FOFSClassifier(**own, fit_intercept=intercept, shuffle=False)
    assert_agrees(model, naive.fofs(X, y, **own, intercept=intercept), X, y)


@pytest.mark.parametrize("batch_size", [1, 5])
@pytest.mark.parametrize("alpha", [0.0, 1e-3, 0.1, 1.0])
@pytest.mark.parametrize("k", [1, 20, 150])
def test_fofs_and_siht_on_wide_rows(k, alpha, batch_size):
    """Of most of many features the step alone tells that they do not come to the k.

    The first row takes the coefficients almost exactly to the edge of the ball; later ones have all
    features, or few; a feature may have the one large value of its neighbourhood.
    """
    rng = np.random.default_rng(k)
    X = rng.standard_normal((80, 333)) * (
        rng.random((80, 333)) < rng.choice([0.01, 0.3, 1], (80, 1))
    )
    X[::7, 200] = 9.0
    X[20:23] = 0.0
    y = np.where(X[:, :30].sum(axis=1) + rng.standard_normal(80) > 0, 1.0, -1.0)
    own = {"k": k, "learning_rate": 0.1, "batch_size": batch_size, "loss": "hinge"}
    for edge in (1 - 1e-7, 1 + 1e-7, 1 + 1e-9, 1.5):
        X[:batch_size] = rng.standard_normal(333)
        X[:batch_size] *= edge * max(alpha, 0.01) ** -0.5 / 0.1 / np.linalg.norm(X[0])
        y[:batch_size] = 1.0
        expected = naive.fofs(X, y, **own, alpha=alpha, intercept=False)
        model = FOFSClassifier(**own, alpha=alpha, fit_intercept=False, shuffle=False)
        assert_agrees(model, expected, X, y)
        model = SIHTClassifier(**own, fit_intercept=False, shuffle=False)
        assert_agrees(model, naive.siht(X, y, **own, intercept=False), X, y)


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("k", [1, 7, 40])
def test_wide_rows_of_which_each_brings_many(k, ties):
    """Each row is larger than all before: most features come, and a few of them stay.

    One of them is far larger. With ties all numbers are exact, and the lower index stays. The
    second row takes the first one back, whose entries are then the largest and bring nothing; the
    third has other features, for SOFS, which has no second row, seen as well as these.
    """
    rng = np.random.default_rng(k)
    X = rng.standard_normal((24, 400))
    X = (np.sign(X) if ties else X) * 2.0 ** np.arange(24)[:, None]
    X[4::5, 300] *= 1024
    X[[0, 2]] = 0.0
    X[:2, 100 : 100 + k] = X[2, 20 : 20 + k] = 64.0
    y = rng.choice([-1.0, 1.0], 24)
    y[:3] = 1, -1, 1
    own = {"k": k, "learning_rate": 0.125, "loss": "hinge"}
    for batch_size in (1, 4):
        batches = own | {"batch_size": batch_size}
        model = SIHTClassifier(**batches, fit_intercept=False, shuffle=False)
        assert_agrees(model, naive.siht(X, y, **batches, intercept=False), X, y)
        for alpha in (0.0, 2.0**-30):
            model = FOFSClassifier(**batches, alpha=alpha, fit_intercept=False, shuffle=False)
            assert_agrees(model, naive.fofs(X, y, **batches, alpha=alpha, intercept=False), X, y)
    if not ties:
        own |= {"alpha": 0.01, "delta": 0.01}
        model = BAMDClassifier(**own, fit_intercept=False, shuffle=False)
        assert_agrees(model, naive.bamd(X, y, **own, intercept=False), X, y)
    own, X, y = {"k": k, "gamma": 2.0**20}, np.delete(X, 1, axis=0), np.delete(y, 1)
    model = SOFSClassifier(**own, fit_intercept=False, shuffle=False)
    assert_agrees(model, naive.sofs(X, y, **own, intercept=False), X, y)


def test_a_tiny_row_of_single_numbers_stays_in_the_ball():
    """The squares of its values are nothing in float32."""
    X = (1e-24 * np.random.default_rng(0).standard_normal((1, 50))).astype(np.float32)
    own = {"k": 5, "alpha": 1.0, "learning_rate": 0.9e24, "fit_intercept": False}
    model = FOFSClassifier(**own).partial_fit(X, [1], classes=[-1, 1])
    assert 0 < np.linalg.norm(model.coef_) <= 1


@pytest.mark.parametrize("kind", ["dense", "sparse", "counts"])
@pytest.mark.parametrize("alpha", [0.0, 1e-3, 0.3])
@pytest.mark.parametrize("k", [1, 6, 100])
@pytest.mark.parametrize("loss", LOSSES)
@BOTH
def test_barda(kind, alpha, k, loss, intercept):
    own = {"k": k, "learning_rate": 0.5, "alpha": alpha, "delta": 0.01, "loss": loss}
    X, y = data(kind)
    model = BARDAClassifier(**own, fit_intercept=intercept, shuffle=False)
    with pytest.warns(UserWarning, match="greater") if k > X.shape[1] else nullcontext():
        assert_agrees(model, naive.barda(X, y, **own, intercept=intercept), X, y)


def test_lazy_barda_needs_the_refresh_of_stale_bounds():
    """With a strong penalty the ranking of untouched features changes by itself.

    The gradients of feature 0 were large and of both signs (large H), feature 1 had one of medium
    size (small H): as t grows the penalty shrinks feature 1 faster, and feature 0 must come back.
    """
    X = np.zeros((60, 3))
    X[:3, :2] = [[3, 0], [2, 0], [0, 0.8]]
    X[3:, 2] = 1e-9
    y = np.ones(60)
    y[1] = -1
    own = {"k": 1, "learning_rate": 1.0, "alpha": 0.1, "delta": 0.01, "loss": "hinge"}
    supports = []
    for n in (3, 60):
        coef, *_ = naive.barda(X[:n], y[:n], **own, intercept=False)
        model = BARDAClassifier(**own, fit_intercept=False)
        model.partial_fit(sp.csr_matrix(X[:n]), y[:n], classes=[-1, 1])
        assert_allclose(model.coef_, coef, rtol=0, atol=1e-14)
        supports.append(model.support_.tolist())
    assert supports == [[1], [0]]


@pytest.mark.parametrize("kind", ["dense", "sparse", "counts"])
@pytest.mark.parametrize("batch_size", [1, 5])
def test_siht(kind, batch_size):
    # With the hinge and counts all sums are exact, and no margin is 1: no last digit decides.
    own = {"k": 6, "learning_rate": 65 / 4096, "batch_size": batch_size}
    with_and_without_intercept(naive.siht, SIHTClassifier, SIHTRegressor, kind, own)


@pytest.mark.parametrize("kind", ["dense", "sparse", "counts"])
@pytest.mark.parametrize("alpha", [0.0, 1e-3, 0.3])
@pytest.mark.parametrize("loss", LOSSES)
@BOTH
def test_bamd(kind, alpha, loss, intercept):
    own = {"k": 6, "learning_rate": 0.5, "alpha": alpha, "delta": 0.01, "loss": loss}
    X, y = data(kind)
    model = BAMDClassifier(**own, fit_intercept=intercept, shuffle=False)
    assert_agrees(model, naive.bamd(X, y, **own, intercept=intercept), X, y)


@pytest.mark.parametrize("kind", ["dense", "sparse", "twins"])
@pytest.mark.parametrize("k", [1, 6, 25])
@pytest.mark.parametrize("gamma", [0.01, 1.0, 100.0])
@BOTH
def test_sofs(kind, k, gamma, intercept):
    own = {"k": k, "gamma": gamma}
    X, y = data(kind)
    model = SOFSClassifier(**own, fit_intercept=intercept, shuffle=False)
    assert_agrees(model, naive.sofs(X, y, **own, intercept=intercept), X, y)


def test_sofs_of_two_rows_by_hand():
    """Wu et al. 2017, Algorithm 2: mu = (1/3, 1/3) and 1 / Sigma = (2, 2) after the first row.

    Then v = 1/2 and 1 - y m = 2/3, so that mu_1 = 1/3 + (2/3) / (3/2) / 2 = 5/9, 1 / Sigma_11 = 3.
    """
    model = SOFSClassifier(k=2, gamma=1, fit_intercept=False)
    model.partial_fit([[1.0, 1.0]], [1], classes=[-1, 1])
    assert_allclose(model.coef_, [1 / 3, 1 / 3], rtol=1e-15)
    model.partial_fit([[1.0, 0.0]], [1])
    assert_allclose(model.coef_, [5 / 9, 1 / 3], rtol=1e-15)
    assert_allclose(model._state.sigma[:2], [1 / 3, 1 / 2], rtol=1e-15)
