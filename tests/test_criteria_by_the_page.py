"""AIC, BIC and extended BIC choose what the page says, from the residuals of the rows themselves.

The page is docs/explain/averages.md: `k="ebic"` is Chen and Chen 2008,
gamma = 1: n log(RSS / n) + m log n + 2 log binomial(p, m) for m features; `aic` and `bic` (Akaike
1974, Schwarz 1978) have 2 m and m log n. The sum W of the weights is the number of rows; from 1 to
`max_k` features, at most n - 1 (with an intercept n - 2), by `ebic` min(n, W) / 2; what rounding
leaves of a perfect fit, in which differences of RSS tell nothing, counts alike.
"""

import math

import naive
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import ofslib
from ofslib import RunningAverages


def value(rule, X, y, weight, coef, centre):
    """Of the rows' weighted residuals, the constant being the best for these coefficients."""
    rest, W, p = y - X @ coef, weight.sum(), X.shape[1]
    spread = y - centre * (weight @ y) / W
    rest = rest - centre * (weight @ rest) / W
    mean = max(weight @ rest**2 / W, 2.0**-52 * (weight @ spread**2) / W)
    m = np.count_nonzero(coef)
    price = {
        "aic": 2 * m,
        "bic": m * math.log(W),
        "ebic": m * math.log(W) + 2 * math.log(math.comb(p, m)),
    }[rule]
    return W * math.log(mean) + price


def most(rule, weight, centre, max_k, p):
    n = int((weight > 0).sum())
    rows = min(n, weight.sum()) // 2 if rule == "ebic" else n - 1 - centre
    return max(1, int(min(rows, max_k, p)))


def drawn(seed):
    draw = np.random.default_rng(seed)
    p = int(draw.integers(3, 25))
    n = int(draw.choice([6, 12, 20, 60, 200]))
    X = draw.standard_normal((n, p)) @ (np.eye(p) + draw.choice([0, 0.4]) / np.sqrt(p))
    X = X * draw.uniform(0.1, 10, p) + draw.choice([0, 3])
    true = int(draw.integers(0, 5))
    y = (X / X.std(axis=0))[:, :true] @ draw.choice([-1.0, 0.5], min(true, p))
    y = y + draw.choice([0.3, 1, 3]) * draw.standard_normal(n) + draw.choice([0, 5])
    weight = draw.choice([0.25, 1, 2], n) if seed % 3 == 0 else np.ones(n)
    return X, y, weight, int(draw.choice([4, 100])), bool(seed % 2)


METHODS = {
    "OLSth": {},
    "OFSA": {"n_iter": 100},
    "OnlineLasso": {"n_penalties": 60, "tol": 1e-10},
    "OnlineElasticNet": {"n_penalties": 60, "tol": 1e-10, "l2": 0.2},
    "OnlineMCP": {"n_penalties": 60, "tol": 1e-10},
    "OnlineSCAD": {"n_penalties": 60, "tol": 1e-10},
    "OnlineLasso, tisp": {"n_penalties": 30, "n_iter": 300, "solver": "tisp"},
    "OnlineElasticNet, tisp": {"n_penalties": 30, "n_iter": 300, "solver": "tisp", "l2": 0.2},
    "OnlineMCP, tisp": {"n_penalties": 30, "n_iter": 300, "solver": "tisp"},
    "OnlineSCAD, tisp": {"n_penalties": 30, "n_iter": 300, "solver": "tisp"},
}


@pytest.mark.filterwarnings("ignore")  # of steps that were too few, and of too many features
@pytest.mark.parametrize("refit", [True, False])
@pytest.mark.parametrize("name", METHODS)
def test_a_criterion_takes_the_least_value_of_the_models_of_all_sizes(name, refit):
    """The models of the sizes are those of k = 1, 2, ..., of which others have a reference.

    Where old rows are forgotten those left choose: 1 / rate rows, at most.
    """
    kind, own = getattr(ofslib, name.split(",")[0] + "Regressor"), dict(METHODS[name])
    if name not in ("OLSth", "OFSA"):
        own["refit"] = refit
    elif not refit:
        return
    for seed, rate in enumerate((None, None, None, 0.02, 0.2, None, 0.02, 0.2)):
        X, y, weight, max_k, own["fit_intercept"] = drawn(seed)
        averages = RunningAverages(X.shape[1]).adapt(rate).update(X, y, weight)
        left, centre = naive.fading(weight, rate) if rate else weight, own["fit_intercept"]
        sizes = range(1, 1 + most("aic", left, centre, max_k, X.shape[1]))
        # One for each k, each learned by itself
        known = [kind(k=m, **own).fit_averages(averages).coef_ for m in sizes]
        for rule in ("aic", "bic", "ebic"):
            tried = known[: most(rule, left, centre, max_k, X.shape[1])]
            tried = [coef for coef in tried if coef.any()] or known[:1]
            values = [value(rule, X, y, left, coef, centre) for coef in tried]
            expected = tried[int(np.argmin(values))]  # of equal values the fewer features
            model = kind(k=rule, max_k=max_k, **own).fit_averages(averages)
            tol = 1e-8 * np.abs(expected).max()
            assert_allclose(model.coef_, expected, rtol=0, atol=tol)


@pytest.mark.parametrize("rule", ["aic", "bic", "ebic"])
@pytest.mark.parametrize("solver", [None, "coordinate", "tisp"])
def test_of_models_that_fit_perfectly_the_one_with_the_fewest_features_is_chosen(rule, solver):
    """Their RSS is rounding. (In a fifth of such designs one more feature was taken.)"""
    for seed in range(20):
        draw = np.random.default_rng(seed)
        X = draw.standard_normal((80, 10))
        if solver is None:  # the path of a Lasso has false features there
            X += draw.choice([0, 1, 10]) * draw.standard_normal((80, 1))
        X *= draw.uniform(0.1, 10, 10)
        y = (X / X.std(axis=0))[:, [2, 5, 7]] @ draw.choice([-1, 1, 2], 3) + 3
        if solver is None:
            model = ofslib.OLSthRegressor(k=rule)
        else:
            model = ofslib.OnlineLassoRegressor(k=rule, solver=solver)
        assert_array_equal(model.fit(X, y).support_, [2, 5, 7])


@pytest.mark.parametrize("name", ["OLSth", "OnlineLasso"])
def test_weights_blocks_parts_and_labels_choose_as_the_rows_do(name):
    """Whole weights are rows as often; classes of three labels choose each for itself."""
    draw = np.random.default_rng(0)
    X = draw.standard_normal((90, 8)) + 2
    labels = draw.permutation(np.arange(90) % 3)
    X[:, :3] += 0.6 * np.eye(3)[labels]
    weight = draw.integers(0, 4, 90)
    more = np.repeat(np.arange(90), weight)
    for rule in ("aic", "bic", "ebic"):
        model = getattr(ofslib, name + "Classifier")(k=rule)
        for i, j in ((0, 30), (30, 31), (31, 90)):
            model.partial_fit(X[i:j], labels[i:j], [0, 1, 2], weight[i:j])
        for c in range(3):
            y = np.where(labels == c, 1.0, -1.0)
            parts = RunningAverages(8).update(X[more[:70]], y[more[:70]])
            parts = parts + RunningAverages(8).update(X[more[70:]], y[more[70:]])
            one = getattr(ofslib, name + "Regressor")(k=rule).fit_averages(parts)
            assert_allclose(model.coef_[c], one.coef_, rtol=0, atol=1e-7 * np.abs(one.coef_).max())
