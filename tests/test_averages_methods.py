"""The methods on running averages: equal to slow transcriptions on the rows themselves."""

import copy
import inspect
import math
import pickle
import warnings

import naive
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone, is_classifier
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.linear_model import ElasticNet, Lasso
from sklearn.utils.estimator_checks import check_estimator
from test_contract import REFUSED, SKIPPED, section

import ofslib
from ofslib.averages import RunningAverages
from ofslib.beyond.knockoffs import Knockoffs
from ofslib.kernels.gram import compact, dismiss, largest_eigenvalue, least_squares, newton_step
from ofslib.kernels.penalties import Penalty, proximal
from ofslib.simulate import Equicorrelated
from ofslib.streams.average_stream import AverageSelector, AverageStream

K = 4
PUBLIC = {name: getattr(ofslib, name) for name in dir(ofslib)}
# Of knockoffs tests/test_knockoffs.py: they need many rows, of equal weight.
CLASSES = {
    name: cls
    for name, cls in PUBLIC.items()
    if isinstance(cls, type) and issubclass(cls, AverageStream) and not issubclass(cls, Knockoffs)
}
SELECTORS = {name: cls for name, cls in CLASSES.items() if issubclass(cls, AverageSelector)}
METHODS = ("OLS", "OLSth", "OFSA", "OnlineLasso", "OnlineElasticNet", "OnlineMCP", "OnlineSCAD")
PENALISED = ("OnlineLasso", "OnlineElasticNet", "OnlineMCP", "OnlineSCAD")

every_class = pytest.mark.parametrize("cls", CLASSES.values(), ids=CLASSES)
every_selector = pytest.mark.parametrize("cls", SELECTORS.values(), ids=SELECTORS)
every_penalised = pytest.mark.parametrize(
    "cls", [CLASSES[f"{name}Regressor"] for name in PENALISED], ids=PENALISED
)


def rows(n=120, p=15, seed=0):
    """Correlated features in many units, four of which matter."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p)) + 0.7 * rng.standard_normal((n, 1))
    y = X[:, [1, 4, 8, 11]] @ [1.0, -1.5, 0.8, 1.2] + 0.5 * rng.standard_normal(n) + 3.0
    return X * np.geomspace(0.01, 100, p) + np.linspace(-5, 5, p), y


def target(cls, y):
    return np.where(y > np.median(y), 1.0, -1.0) if is_classifier(cls()) else y


def averages(X, y, **own):
    return RunningAverages(X.shape[1], **own).update(X, y)


def budget(cls, k=K):
    return {"k": k} if "k" in cls().get_params() else {}


def fitted(cls, X, y, **own):
    return cls(**budget(cls) | own).fit(X, target(cls, y))


def assert_same(one, two, rtol=1e-9):
    assert_array_equal(one.support_, two.support_)
    assert_allclose(two.coef_, one.coef_, rtol=rtol)
    assert_allclose(two.intercept_, one.intercept_, rtol=rtol)


def test_the_methods_are_there():
    assert set(CLASSES) == {f"{m}{task}" for m in METHODS for task in ("Classifier", "Regressor")}


@pytest.mark.filterwarnings("ignore:k=.*is greater than n_features")
@every_class
def test_scikit_learn_accepts_it(cls):
    for own in [{}, budget(cls, 2)][: 1 + issubclass(cls, AverageSelector)]:
        # 9 rows, and up to 10 features: whether least squares needs its ridge goes by the number of
        # rows, whatever their weights.
        few = "penalty_ratio" in cls().get_params() and not own
        ridged = {f"check_sample_weight_equivalence_on_{form}_data" for form in ("dense", "sparse")}
        results = check_estimator(
            cls(**own),
            on_skip=None,
            on_fail="raise",
            expected_failed_checks=dict.fromkeys(ridged if few else (), "its ridge"),
        )
        skipped = {r["check_name"] for r in results if r["status"] == "skipped"}
        failed = {r["check_name"] for r in results if r["status"] == "xfail"}
        assert skipped <= SKIPPED and failed <= ridged


# The algorithms as printed, on the rows (Proposition 2)


@pytest.mark.parametrize("centre", [True, False])
def test_ols_is_least_squares_on_the_rows(centre):
    X, y = rows()
    model = ofslib.OLSRegressor(fit_intercept=centre).fit(X, y)
    coef, intercept = naive.least_squares(X, y, range(X.shape[1]), centre)
    assert_allclose(model.coef_, coef, rtol=1e-8)
    assert_allclose(model.intercept_, intercept, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("centre", [True, False])
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("k", [1, 4, 14])
def test_olsth_is_algorithm_3(k, seed, centre):
    X, y = rows(seed=seed)
    model = ofslib.OLSthRegressor(k=k, fit_intercept=centre).fit(X, y)
    coef, intercept = naive.olsth(X, y, k=k, centre=centre)
    assert_array_equal(model.support_, np.flatnonzero(coef))
    assert_allclose(model.coef_, coef, rtol=1e-8)
    assert_allclose(model.intercept_, intercept, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("centre", [True, False])
@pytest.mark.parametrize("mu", [0.0, 5.0, 300.0])
@pytest.mark.parametrize(("n", "p", "k"), [(120, 15, 4), (120, 15, 15), (60, 200, 20)])
def test_ofsa_is_algorithm_4(n, p, k, mu, centre):
    X, y = rows(n, p)
    own = {"k": k, "mu": mu, "n_iter": 90}
    model = ofslib.OFSARegressor(**own, learning_rate=0.02, fit_intercept=centre).fit(X, y)
    coef, intercept = naive.ofsa(X, y, **own, rate=0.02, centre=centre)
    assert_array_equal(model.support_, np.flatnonzero(coef))
    assert_allclose(model.coef_, coef, rtol=1e-7)
    assert_allclose(model.intercept_, intercept, rtol=1e-7, atol=1e-8)


def test_ofsa_takes_its_step_from_the_spectrum():
    X, y = rows()
    top = np.linalg.eigvalsh(naive.standardise(X, y)[0].T @ naive.standardise(X, y)[0]).max()
    own = {"k": 3, "n_iter": 40}
    same = ofslib.OFSARegressor(**own, learning_rate=1.2 / (top / len(X))).fit(X, y)
    assert_same(ofslib.OFSARegressor(**own, step=1.2).fit(X, y), same)
    with pytest.raises(FloatingPointError, match="diverged"):
        _ = ofslib.OFSARegressor(k=3, learning_rate=9.0).fit(X, y).coef_


@pytest.mark.parametrize("penalty", ["lasso", "mcp", "scad"])
def test_tisp_is_algorithm_5(penalty):
    X, y = rows()
    shape = {"lasso": 0.0, "mcp": 3.0, "scad": 3.7}[penalty]
    printed = {} if penalty == "lasso" else {"threshold": "printed"}
    name = {"lasso": "Lasso", "mcp": "MCP", "scad": "SCAD"}[penalty]
    cls = PUBLIC[f"Online{name}Regressor"]
    own = {"n_iter": 25, "n_penalties": 6, "penalty_ratio": 0.05, "learning_rate": 0.1}
    model = cls(solver="tisp", tol=1e-300, k=15, refit=False, **own, **printed)
    Z, t, scale = naive.standardise(X, y)
    levels = np.abs(Z.T @ t / len(y)).max() * np.geomspace(1, 0.05, 6)
    paths = [
        naive.thresholded(X, y, penalty=penalty, shape=shape, level=v, rate=0.1, n_iter=25)
        for v in levels
    ]
    sizes = [np.count_nonzero(coef) for coef in paths]
    assert len(set(sizes)) > 2
    for k in (3, 6, 15):
        before = next((q for q, size in enumerate(sizes) if size > k), len(sizes))
        best = max(range(before), key=lambda q: (sizes[q], q))
        expected = paths[best] / scale
        assert_allclose(model.path(averages(X, y), [k])[0], expected, rtol=1e-9)
        refitted = clone(model).set_params(refit=True, k=k).fit(X, y)
        coef, intercept = naive.least_squares(X, y, np.flatnonzero(expected))
        assert_allclose(refitted.coef_, coef, rtol=1e-8)
        assert_allclose(refitted.intercept_, intercept, rtol=1e-8)


@pytest.mark.parametrize("l2", [0.0, 0.3])
@pytest.mark.parametrize(("n", "p"), [(120, 15), (40, 80)])
def test_lasso_and_elastic_net_are_those_of_scikit_learn(n, p, l2):
    X, y = rows(n, p)
    Z, t, _ = naive.standardise(X, y)
    cls = ofslib.OnlineElasticNetRegressor if l2 else ofslib.OnlineLassoRegressor
    ratio, m = 0.02, 30
    model = cls(
        n_penalties=m, penalty_ratio=ratio, refit=False, tol=1e-12, **{"l2": l2} if l2 else {}
    )
    levels = np.abs(Z.T @ t / n).max() * np.geomspace(1, ratio, m)
    solved = []
    for level in levels:
        exact = {"fit_intercept": False, "tol": 1e-14, "max_iter": 10**6}
        peer = (
            ElasticNet(alpha=level + l2, l1_ratio=level / (level + l2), **exact)
            if l2
            else Lasso(alpha=level, **exact)
        )
        solved.append(peer.fit(Z, t).coef_)
    W = model._path(averages(X, y).standardized(), p)
    assert_allclose(W, solved, rtol=0, atol=1e-9)


# Penalties


SHAPES = {"elastic_net": 0.4, "mcp": 2.5, "scad": 3.3}


@settings(max_examples=40, deadline=None)
@given(
    penalty=st.sampled_from(sorted(SHAPES)),
    v=st.floats(-6, 6),
    level=st.floats(0.1, 2),
    step=st.floats(0.05, 1),
)
def test_the_proximal_map_minimises(penalty, v, level, step):
    shape = SHAPES[penalty]

    def value(w):
        return (w - v) ** 2 / 2 + step * naive.penalty_value(penalty, w, level, shape)

    found = proximal(int(Penalty[penalty]), shape, v, level, step)
    others = np.concatenate([np.linspace(-7, 7, 281), found + np.array([-1e-3, 1e-3]), [0.0]])
    assert value(found) <= min(map(value, others)) + 1e-12


@pytest.mark.parametrize("penalty", ["mcp", "scad"])
def test_a_unit_step_is_the_printed_operator(penalty):
    for v in np.linspace(-9, 9, 301):
        expected = naive.theta(penalty, v, 1.3, SHAPES[penalty])
        assert_allclose(proximal(int(Penalty[penalty]), SHAPES[penalty], v, 1.3, 1.0), expected)


def piece_slope(penalty, w, level, shape):
    small = 1e-5
    values = [naive.penalty_value(penalty, w + d, level, shape) for d in (small, -small)]
    return (values[0] - values[1]) / (2 * small)


@every_penalised
@pytest.mark.parametrize("solver", ["coordinate", "tisp"])
@pytest.mark.parametrize(("n", "p"), [(80, 12), (25, 40)])
def test_models_of_the_path_are_stationary(cls, n, p, solver):
    X, y = rows(n, p, seed=7)
    standard = averages(X, y).standardized()
    own = {"n_penalties": 12, "penalty_ratio": 0.05, "n_iter": 20000, "tol": 1e-10}
    model = cls(solver=solver, **own)
    S, b, shape = standard.S_xx, standard.S_xy, model._shape()
    levels = np.abs(b).max() * np.geomspace(1, 0.05, 12)
    name = {"OnlineMCPRegressor": "mcp", "OnlineSCADRegressor": "scad"}
    penalty = name.get(cls.__name__, "elastic_net")
    W = model._path(standard, p)
    assert not W[0].any() and np.count_nonzero(W[-1]) > 3
    for w, level in zip(W, levels, strict=True):
        g = b - S @ w
        assert np.all(np.abs(g[w == 0]) <= level * (1 + 1e-6))
        slopes = [piece_slope(penalty, v, level, shape) for v in w[w != 0]]
        assert_allclose(g[w != 0], slopes, atol=1e-4 * levels[0])


@pytest.mark.parametrize("penalty", ["MCP", "SCAD"])
def test_two_features_reach_the_least_value(penalty):
    """Against all points of a grid; with this correlation the objective is convex."""
    rng = np.random.default_rng(2)
    X = rng.standard_normal((200, 2)) @ np.array([[1.0, 0.3], [0.0, 1.0]])
    y = X @ [1.0, 0.3] + 0.3 * rng.standard_normal(200)
    standard = averages(X, y).standardized()
    own = {"n_penalties": 5, "penalty_ratio": 0.1, "tol": 1e-10}
    model = PUBLIC[f"Online{penalty}Regressor"](**own)
    levels = np.abs(standard.S_xy).max() * np.geomspace(1, 0.1, 5)
    grid = np.linspace(-0.5, 1.5, 81)
    for w, level in zip(model._path(standard, 2), levels, strict=True):

        def value(w, level=level):
            price = [naive.penalty_value(penalty.lower(), v, level, model._shape()) for v in w]
            return w @ standard.S_xx @ w / 2 - w @ standard.S_xy + sum(price)

        least = min(value(np.array([u, v])) for u in grid for v in grid)
        assert value(w) <= least + 1e-6


def test_too_few_sweeps_are_reported():
    X, y = rows(n=40, p=60)
    model = ofslib.OnlineLassoRegressor(n_iter=1, tol=1e-12).fit(X, y)
    with pytest.warns(ConvergenceWarning, match="n_iter=1"):
        _ = model.coef_


# Solvers


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_largest_eigenvalue(dtype):
    rng = np.random.default_rng(0)
    for n, p, alpha in (
        (50, 1, 0.0),
        (500, 5, 1.0),
        (30, 60, 0.0),
        (800, 400, 0.0),
        (900, 300, 1.0),
    ):
        X = rng.standard_normal((n, p)) + alpha * rng.standard_normal((n, 1))
        S = np.asfortranarray(np.corrcoef(X.T).reshape(p, p), dtype)
        top = np.linalg.eigvalsh(S.astype(float)).max()
        assert 0.99 * top <= largest_eigenvalue(S) <= top * (1 + 1e-5)
    flipped = np.array([[1.0, -0.9], [-0.9, 1.0]], dtype, order="F")
    assert_allclose(largest_eigenvalue(flipped), 1.9, rtol=1e-5)


@given(kept=st.sets(st.integers(0, 7), min_size=1).map(sorted))
@settings(max_examples=30, deadline=None)
def test_moments_move_together_also_in_place(kept):
    S = np.asfortranarray(np.arange(64.0).reshape(8, 8))
    expected, m = np.triu(S[np.ix_(kept, kept)]), len(kept)
    for room in (np.empty(m * m), S.ravel(order="K")):
        compact(S, np.array(kept), room)
        assert_array_equal(np.triu(room[: m * m].reshape(m, m, order="F")), expected)


@pytest.mark.parametrize("m", [1, 3, 4, 9])
def test_a_newton_step_solves_its_piece_or_ends_where_that_does(m):
    """Lasso: S w = b - level sign(w), as long as no sign changes; zeros stay."""
    rng = np.random.default_rng(m)
    X = rng.standard_normal((60, m + 2))
    S, level, scratch = np.corrcoef(X.T), 0.1, np.empty((4, m + 2))
    w = np.append(rng.choice([-3.0, 3.0], m), [0.0, 0.0])
    for size in (0.1, 100.0):
        new, g = w.copy(), size * rng.standard_normal(m + 2)
        rest = g - level * np.sign(w)
        after = g.copy()
        length = newton_step(S, new, after, 0, 0.0, level, scratch)
        assert_allclose(after, g - S @ (new - w), atol=1e-12 * size)
        assert not new[m:].any() and (new * w >= -1e-12).all()
        left = after - level * np.sign(w) - (1 - length) * rest
        assert np.linalg.norm(left[:m]) <= 1e-3 * np.linalg.norm(rest[:m])
        assert length == 1.0 if size < 1 else 0 < length < 1 and np.abs(new[:m]).min() < 1e-12


def test_dismissed_features_leave_the_moments_of_the_others():
    rng = np.random.default_rng(0)
    S, active = rng.standard_normal((12, 12)), np.array([7, 2, 9, 4, 0, 11, -1])
    w, inside, K = np.zeros(12), np.zeros(12, bool), np.full((7, 7), np.nan)
    w[[2, 4, 11]], inside[active[:6]] = 1.0, True
    K[:6, :6] = S[np.ix_(active[:6], active[:6])]
    assert dismiss(w, active, 6, inside, K) == 3
    assert_array_equal(active[:3], [2, 4, 11])
    assert_array_equal(K[:3, :3], S[np.ix_([2, 4, 11], [2, 4, 11])])
    assert_array_equal(np.flatnonzero(inside), [2, 4, 11])


def test_a_singular_matrix_gets_the_ridge():
    # Singular; singular but for rounding; not singular, but of as many rows as features
    for correlation, n_free in ((1.0, 100), (1 - 2**-53, 100), (0.5, 2)):
        S = np.array([[1.0, correlation], [correlation, 1.0]], order="F")
        before, b = S.copy(), np.array([1.0, 0.2])
        solved = least_squares(S, b, n_free, 0.5)
        assert_allclose(solved, np.linalg.solve(S + 0.5 * np.eye(2), b))
        assert_array_equal(S, before)
    S = np.array([[1.0, 0.5], [0.5, 1.0]], order="F")
    assert_allclose(least_squares(S, np.array([1.0, 0.0]), 3, 9.0), [4 / 3, -2 / 3])
    with pytest.raises(np.linalg.LinAlgError, match="negative"):
        least_squares(np.array([[1.0, 2.0], [2.0, 1.0]], order="F"), np.ones(2), 9, 0.1)


def test_fewer_rows_than_features_are_ridge_regression():
    X, y = rows(n=20, p=30)
    Z, t, scale = naive.standardise(X, y)
    full = np.linalg.solve(Z.T @ Z / 20 + 1e-2 * np.eye(30), Z.T @ t / 20)
    model = ofslib.OLSRegressor(ridge=1e-2).fit(X, y)
    assert_allclose(model.coef_ * scale, full, rtol=1e-7)
    model = ofslib.OLSthRegressor(k=3, ridge=1e-2).fit(X, y)
    kept = naive.top(np.abs(full), 3)
    assert_allclose(model.coef_, naive.least_squares(X, y, kept)[0], rtol=1e-7)


@pytest.mark.parametrize("centre", [True, False])
def test_centring_costs_a_row(centre):
    """Averages of 31 rows have rank 31, or centred 30: these count as too few for 30 features."""
    X, y = rows(n=31, p=30)
    Z, t, scale = naive.standardise(X, y, centre)
    expected = np.linalg.solve(Z.T @ Z / 31 + 1e-2 * centre * np.eye(30), Z.T @ t / 31)
    model = ofslib.OLSRegressor(ridge=1e-2, fit_intercept=centre).fit(X, y)
    assert_allclose(model.coef_ * scale, expected, rtol=1e-5)


# Criteria


@every_selector
@pytest.mark.parametrize("k", ["aic", "bic", "ebic"])
def test_a_criterion_chooses_among_the_sizes(cls, k):
    X, y = rows()
    y, few = target(cls, y), {"max_k": 12}
    model = cls(k=k, **few).fit(X, y)
    price = 2.0 if k == "aic" else np.log(len(y))
    subsets = [2 * np.log(math.comb(15, m)) * (k == "ebic") for m in range(13)]
    path = cls(**few).path(averages(X, y), range(1, 13))
    intercepts = y.mean() - path @ X.mean(axis=0)
    values = [
        naive.information_criterion(X, y, coef, intercept, price) + subsets[np.count_nonzero(coef)]
        for coef, intercept in zip(path, intercepts, strict=True)
    ]
    assert_allclose(model.coef_, path[np.argmin(values)], rtol=1e-10)
    assert len(model.support_) < 12


def test_a_criterion_finds_the_true_size():
    rng = np.random.default_rng(1)
    X = rng.standard_normal((2000, 20))
    y = X[:, [2, 5, 7]] @ [1.0, -1.0, 1.0] + rng.standard_normal(2000)
    for cls in SELECTORS.values():
        model = cls(k="bic").fit(X, target(cls, y))
        assert {2, 5, 7} <= set(model.support_.tolist()) and len(model.support_) <= 4
    few = ofslib.OLSthRegressor(k="aic").fit(X[:5], y[:5])
    with pytest.warns(UserWarning, match="k='ebic' is made for few rows"):
        assert 1 <= len(few.support_) <= 3


@pytest.mark.parametrize("shape", [(60, 60), (60, 200)])
@pytest.mark.parametrize("name", ["OFSA", "OnlineLasso"])
def test_the_extended_bic_does_not_fill_the_rows(name, shape):
    """Chen and Chen 2008; aic and bic take nearly as many features as rows, and say so."""
    rng, cls = np.random.default_rng(0), CLASSES[f"{name}Regressor"]
    X = rng.standard_normal(shape)
    y = X[:, :4] @ [1.5, -1.5, 1.5, 1.5] + rng.standard_normal(60)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        support = cls(k="ebic").fit(X, y).support_.tolist()
    assert support[:4] == [0, 1, 2, 3] and len(support) <= 6
    for k in ("aic", "bic"):
        with pytest.warns(UserWarning, match=f"k='{k}' chose 5. features with a weight of 60 rows"):
            assert len(cls(k=k).fit(X, y).support_) > 50
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert len(cls(k="ebic").fit(X[:9], y[:9]).support_) <= 4


@pytest.mark.parametrize("k", ["aic", "bic", "ebic"])
def test_weights_that_are_no_numbers_of_rows_are_refused_by_a_criterion(k):
    """The logarithm of their sum would be a reward for features."""
    X = np.random.default_rng(0).standard_normal((300, 20))
    y = X[:, 3] + np.random.default_rng(1).standard_normal(300)
    shares = ofslib.RunningAverages(20).update(X, y, np.full(300, 1 / 300))
    model = ofslib.OLSthRegressor(k=k)
    with pytest.raises(ValueError, match="and they sum up to 1: give weights with a mean"):
        _ = model.fit_averages(shares).coef_
    ones = ofslib.RunningAverages(20).update(X, y, np.ones(300))
    assert 3 in model.fit_averages(ones).support_


def test_where_no_criterion_holds_it_is_said():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((30, 20))
    model = ofslib.OLSthRegressor(k="ebic").fit(X, X @ np.ones(20))
    with pytest.warns(UserWarning, match="k='ebic' chose 15 .* no criterion .* give k a number"):
        assert len(model.support_) == 15


# Paths


@every_class
def test_a_path_holds_the_models_of_each_k(cls):
    X, y = rows()
    y = target(cls, y)
    moments, ks = averages(X, y), [3, 1, 7, 15, 3]
    model = cls(**budget(cls, 2)).fit(X, y)
    before = model.coef_
    path = model.path(moments, ks)
    assert path.shape == (5, 15) and path.dtype == np.float64
    for k, coef in zip(ks, path, strict=True):
        assert_array_equal(coef, cls(**budget(cls, k)).fit_averages(moments).coef_)
        assert np.count_nonzero(coef) <= k or cls not in SELECTORS.values()
    assert_array_equal(model.coef_, before)
    for wrong in ([], [0], [16], [1.5], ["3"]):
        with pytest.raises(ValueError, match="ks="):
            model.path(moments, wrong)
    with pytest.raises(TypeError, match="averages"):
        model.path(X, [1])


@pytest.mark.parametrize("method", ["OLSth", "OFSA"])
def test_exactly_k_features(method):
    X, y = rows()
    for task in ("Classifier", "Regressor"):
        for k in (1, 5, 14, 15):
            assert len(fitted(CLASSES[method + task], X, y, k=k).support_) == k


# Rows and averages


@every_class
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array, pd.DataFrame])
def test_blocks_give_the_model_of_all_rows(cls, form):
    X, y = rows()
    y = target(cls, y)
    whole, parts = cls(**budget(cls)).fit(X, y), cls(**budget(cls))
    known = {"classes": [-1, 1]} if is_classifier(parts) else {}
    for i in range(0, len(X), 17):
        parts.partial_fit(form(X[i : i + 17]), y[i : i + 17], **known)
        assert parts.n_samples_seen_ == parts.averages_.n == min(i + 17, len(X))
    assert_same(whole, parts, rtol=1e-8)
    assert_same(whole, cls(**budget(cls)).fit(form(X), y), rtol=1e-8)
    moments = averages(X, y)
    same = cls(**budget(cls)).fit_averages(moments)
    assert_same(whole, same, rtol=1e-12)
    assert same.n_features_in_ == 15 and same.n_samples_seen_ == 120
    assert_allclose(same.predict(X), whole.predict(X))


@every_class
def test_the_model_is_extracted_once_and_when_asked(cls, monkeypatch):
    X, y = rows()
    y, calls = target(cls, y), []
    coefs = cls._coefs
    monkeypatch.setattr(cls, "_coefs", lambda *own: calls.append(1) or coefs(*own))
    model = cls(**budget(cls)).fit(X, y)
    assert calls == []
    before = copy.deepcopy(vars(model))
    model.predict(X), model.coef_, model.intercept_, model.support_
    assert calls == [1] and set(vars(model)) == set(before)
    model.coef_[:] = 7.0
    assert not np.any(model.coef_ == 7.0)
    model.partial_fit(X[:20], y[:20])
    model.predict(X)
    assert calls == [1, 1]


@every_class
def test_a_parameter_acts_when_rows_come(cls):
    X, y = rows()
    y = target(cls, y)
    model = cls(**budget(cls)).fit(X, y)
    model.set_params(ridge=7.0, fit_intercept=False, **budget(cls, 2))
    assert_same(model, cls(**budget(cls)).fit(X, y))
    model.partial_fit(X, y)
    twice = [np.concatenate([part, part]) for part in (X, y)]
    assert_same(model, cls(**model.get_params()).fit(*twice), rtol=1e-8)
    model.set_params(dtype="float32")
    with pytest.raises(ValueError, match="dtype='float32' differs"):
        model.partial_fit(X, y)
    for name, value in {"k": "cp", "adaptation": 1.0, "dtype": "float16", "ridge": 0.0}.items():
        if name in model.get_params():
            with pytest.raises(ValueError, match=name):
                cls(**{name: value}).fit(X, y)


@every_class
def test_parameters_that_are_refused(cls):
    X, y = rows()
    model = fitted(cls, X, y)
    before = model.coef_
    for name in set(REFUSED) & set(cls().get_params()) - {"random_state"}:
        for value in REFUSED[name]:
            if value is None and None in cls._parameter_constraints[name]:
                continue
            wrong = cls(**budget(cls) | {name: value})
            with pytest.raises(ValueError, match=name):
                wrong.fit(X, target(cls, y))
            with pytest.raises(ValueError, match=name):
                wrong.fit_averages(model.averages_)
            with pytest.raises(NotFittedError):
                _ = wrong.coef_
    assert_array_equal(model.coef_, before)


@every_class
def test_the_given_averages_and_the_model_go_their_own_ways(cls):
    X, y = rows()
    y = target(cls, y)
    moments = averages(X, y)
    model = cls(**budget(cls)).fit_averages(moments)
    moments.update(X[:30], -y[:30])
    assert_same(cls(**budget(cls)).fit(X, y), model)
    moments = averages(X, y)
    model.partial_fit(X[:30], y[:30])
    assert moments.n == 120 and model.n_samples_seen_ == 150
    again = pickle.loads(pickle.dumps(model))
    assert_same(model.partial_fit(X, y), again.partial_fit(X, y), rtol=1e-14)
    with pytest.raises(TypeError, match="averages must be RunningAverages, not ndarray"):
        cls().fit_averages(X)
    if is_classifier(model):
        assert model.classes_.tolist() == [-1, 1]
        with pytest.raises(ValueError, match="S_yy"):
            cls().fit_averages(averages(X, 3 * y))


@every_class
def test_old_rows_are_forgotten(cls):
    X, y = rows()
    y = target(cls, y)
    model = cls(**budget(cls), adaptation=0.05).fit(X, y)
    moments = RunningAverages(15)
    moments.adapt(0.05)
    assert_same(model, cls(**budget(cls)).fit_averages(moments.update(X, y)), rtol=1e-12)
    assert np.abs(model.coef_ - fitted(cls, X, y).coef_).max() > 1e-6


# Invariances


@every_class
def test_units_and_order_of_the_features_do_not_matter(cls):
    X, y = rows()
    y, rng = target(cls, y), np.random.default_rng(3)
    model = cls(**budget(cls)).fit(X, y)
    units = rng.choice([-1, 1], 15) * rng.uniform(1e-3, 1e3, 15)
    other = cls(**budget(cls)).fit(X * units + rng.standard_normal(15), y)
    assert_array_equal(other.support_, model.support_)
    assert_allclose(other.coef_ * units, model.coef_, rtol=1e-6)
    order = rng.permutation(15)
    other = cls(**budget(cls)).fit(X[:, order], y)
    assert_array_equal(np.sort(order[other.support_]), model.support_)
    assert_allclose(other.coef_, model.coef_[order], rtol=1e-8)


@pytest.mark.parametrize("method", METHODS)
def test_a_shift_of_y_moves_the_intercept_and_its_unit_all(method):
    X, y = rows()
    cls = CLASSES[f"{method}Regressor"]
    model, moved = fitted(cls, X, y), fitted(cls, X, -100.0 * y + 7.0)
    assert_array_equal(moved.support_, model.support_)
    assert_allclose(moved.coef_, -100.0 * model.coef_, rtol=1e-7)
    assert_allclose(moved.intercept_, -100.0 * model.intercept_ + 7.0, rtol=1e-7)


@pytest.mark.parametrize("method", METHODS)
def test_a_classifier_is_least_squares_on_the_labels(method):
    X, y = rows()
    y = np.where(y > 3, "up", "down")
    cls = CLASSES[f"{method}Classifier"]
    model = cls(**budget(cls)).fit(X, y)
    same = fitted(CLASSES[f"{method}Regressor"], X, np.where(y == "up", 1.0, -1.0))
    assert_same(same, model, rtol=1e-12)
    assert model.classes_.tolist() == ["down", "up"] and model.score(X, y) > 0.85
    assert_allclose(model.decision_function(X), same.predict(X))


@every_class
def test_constant_features_and_a_constant_y(cls):
    X, y = rows()
    X[:, [0, 4]] = 3.25
    model = fitted(cls, X, y)
    assert not model.coef_[[0, 4]].any() and np.isfinite(model.coef_).all()
    assert len(model.support_) >= 3
    if not is_classifier(model):
        flat = cls(**budget(cls)).fit(X, np.full(len(y), 2.5))
        assert not flat.coef_.any() and flat.intercept_ == 2.5
        one = cls(**budget(cls)).fit(X[:1], [1.0])
        with pytest.raises(ValueError, match="at least 2 rows, got n=1"):
            _ = one.coef_


@every_class
def test_twins_share_or_one_of_them_goes(cls):
    """Two equal features: the moments are singular, the predictions are not."""
    X, y = rows()
    X = np.hstack([X, X[:, [4]]])
    model = fitted(cls, X, y)
    assert np.isfinite(model.coef_).all()
    assert (
        np.corrcoef(model.decision_function(X) if is_classifier(model) else model.predict(X), y)[
            0, 1
        ]
        > 0.8
    )


@every_class
def test_single_precision(cls):
    X, y = rows(n=400)
    model, single = fitted(cls, X, y), fitted(cls, X, y, dtype="float32")
    assert_array_equal(single.support_, model.support_)
    assert_allclose(single.coef_, model.coef_, rtol=2e-3)
    assert single.coef_.dtype == np.float64


@every_class
def test_the_docstring_explains_everything(cls):
    doc = inspect.getdoc(cls)
    assert sorted(section(doc, "Parameters")) == sorted(cls().get_params())
    X, y = rows()
    model = fitted(cls, pd.DataFrame(X).add_prefix("x"), y)
    attributes = {n for n in dir(model) if n.endswith("_") and not n.startswith("_")}
    assert attributes - set(section(doc, "Attributes")) == set()
    assert set(section(doc, "Attributes")) - attributes <= {"classes_"}
    assert "(dissertation" in doc.splitlines()[0]


def test_a_path_of_correlated_features_takes_few_sweeps():
    """Sweeps alone would need thousands for some of these penalties."""
    X, y = Equicorrelated(p=300, k=30).sample(900, np.random.default_rng(0))
    moments = averages(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        for name in PENALISED:
            CLASSES[f"{name}Regressor"](n_iter=60).path(moments, [30])


@pytest.mark.parametrize("max_k", [3, 8])
def test_a_criterion_that_ends_at_max_k_says_so(max_k):
    X, y = Equicorrelated(p=60, k=5, beta=1.0).sample(2000, np.random.default_rng(0))
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        model = ofslib.OLSthRegressor(k="bic", max_k=max_k).fit(X, y)
        chosen = len(model.support_)
    told = [str(one.message) for one in said if "as many as max_k=3 allows" in str(one.message)]
    assert (chosen, len(told) > 0) == ((3, True) if max_k == 3 else (5, False))


@pytest.mark.parametrize("classes", [1, 3])
def test_olsth_ranks_raw_or_standardised_coefficients(classes):
    """Of one model their size, of a joint choice for several labels their norm."""
    rng, k = np.random.default_rng(0), 3
    X = rng.standard_normal((400, 8)) * np.geomspace(0.1, 10, 8)
    y = np.digitize((X / X.std(axis=0))[:, :4] @ np.ones(4) + rng.standard_normal(400), [-1, 1])
    if classes == 1:
        cls, own, targets = ofslib.OLSthRegressor, {}, [y]
    else:
        cls, own = ofslib.OLSthClassifier, {"multiclass": "joint"}
        targets = [np.where(y == c, 1, -1) for c in range(3)]
    coefs = np.array([ofslib.OLSRegressor().fit(X, target).coef_ for target in targets])
    chosen = []
    for ranking, unit in (("raw", 1.0), ("standardized", X.std(axis=0))):
        order = np.argsort(-np.linalg.norm(coefs * unit, axis=0))
        chosen.append(cls(k=k, ranking=ranking, **own).fit(X, y).support_.tolist())
        assert chosen[-1] == sorted(order[:k].tolist())
    assert chosen[0] != chosen[1]


@pytest.mark.parametrize("name", ["OLSth", "OFSA", "OnlineLasso", "OLS"])
@pytest.mark.parametrize("still", ["X", "y"])
def test_a_model_without_a_feature_says_so(name, still):
    X = np.random.default_rng(0).standard_normal((50, 4))
    X, y = (np.ones((50, 4)), X[:, 0]) if still == "X" else (X, np.zeros(50))
    with pytest.warns(UserWarning, match=f"{name}Regressor has selected no feature: none is c"):
        assert not CLASSES[f"{name}Regressor"]().fit(X, y).coef_.any()


@pytest.mark.slow
def test_the_dissertation_table_5_1():
    """n = p = 1000, k = 100: OFSA finds 99.81 % of the features, the Lasso 32.14 %."""
    design, found = Equicorrelated(p=1000, k=100, alpha=1.0, beta=1.0), []
    for seed in range(2):
        X, y = design.sample(1000, np.random.default_rng(seed))
        moments = averages(X, y)
        # With the settings of the entry, which are not the defaults.
        ofsa = ofslib.OFSARegressor(k=100, n_iter=1000, mu=5)
        models = [m.fit_averages(moments) for m in (ofsa, ofslib.OnlineLassoRegressor(k=100))]
        found.append([len(np.intersect1d(m.support_, design.support)) for m in models])
        error = models[0].coef_ - design.coef
        assert 1.0 < np.sqrt(1 + error @ error + error.sum() ** 2) < 1.3
        assert 80 < len(models[1].support_) <= 100
    ofsa, lasso = np.mean(found, axis=0)
    assert ofsa >= 98 and 24 <= lasso <= 42


@pytest.mark.parametrize("unit", [2.0**-160, 2.0**130])
def test_the_unit_of_y_decides_nothing(unit):
    """Nor where it does not fit into single precision, in which OFSA descends."""
    X, y = rows(60, 200)
    one = ofslib.OFSARegressor(k=20).fit(X, y)
    same = ofslib.OFSARegressor(k=20).fit(X, unit * y)
    assert_array_equal(same.support_, one.support_)
    assert_allclose(same.coef_ / unit, one.coef_, rtol=1e-12)
