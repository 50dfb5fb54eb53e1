"""Weights of rows are what docs/algorithms.md says: the references of naive.py, weighted.

A weight multiplies the loss of its row: its slope, and its curvature in the intercept's own step; a
mini-batch still divides by its rows; rows of weight 0 are left out. Variances of `importance` have
no weights, `online_loss_` and `online_score_` are weighted means.
"""

import naive
import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import is_classifier
from test_algorithms import LOSSES, data

import ofslib
from ofslib import OLSRegressor, OPGRegressor, RenewableFSAClassifier

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
FORMS, SLOPE = (np.asarray, sp.csr_matrix), naive.slope


class Labels:
    """Labels that carry weights: `margins - labels` is the weighted slope of the squared error."""

    __array_ufunc__ = None

    def __init__(self, y, weight):
        self.y, self.weight = y, weight

    def __len__(self):
        return len(self.y)

    def __getitem__(self, rows):
        return Labels(self.y[rows], self.weight[rows])

    def __rsub__(self, margins):
        return self.weight * (margins - self.y)


def curvatures(loss, margins):
    p = 1 / (1 + np.exp(-np.asarray(margins)))
    return p * (1 - p) if loss == "log_loss" else 1.0 + (loss == "squared_hinge") + 0 * p


@pytest.fixture
def weighted(monkeypatch):
    """weighted(reference, X, y, weight, ...): with weighted slopes and curvatures."""

    def run(reference, X, y, weight, **own):
        used = weight[weight > 0]
        if reference in (naive.sadmm, naive.radar):
            del own["loss"]

        def own_step(loss, eta, t, margins):
            margins = margins or np.zeros(min(len(used), t * own["batch_size"]))  # SADMM has none
            return max(eta, 1 / (np.mean(curvatures(loss, margins) * used[: len(margins)]) * t))

        monkeypatch.setattr(naive, "slope", lambda loss, m, y: y.weight * SLOPE(loss, m, y.y))
        monkeypatch.setattr(naive, "own_step", own_step)
        return reference(X[weight > 0], Labels(y[weight > 0], used), **own)

    return run


def weights(n, seed=1):
    """None, tiny, ordinary and large ones."""
    rng = np.random.default_rng(seed)
    weight = np.where(rng.random(n) < 0.1, 1e-9, rng.uniform(0.2, 2, n))
    return np.where(rng.random(n) < 0.04, 6.0, weight) * (rng.random(n) < 0.75)


def in_blocks(model, X, y, weight):
    known = {"classes": [-1, 1]} if is_classifier(model) else {}
    for start in range(0, len(y), 23):
        part = slice(start, start + 23)
        model.partial_fit(X[part], y[part], sample_weight=weight[part], **known)
    return model


def assert_same(model, expected, y, weight):
    assert_allclose(model.coef_, expected[0], rtol=0, atol=1e-11 * np.abs(expected[0]).max())
    assert_allclose(model.intercept_, expected[1], rtol=1e-11, atol=1e-12)
    assert_array_equal(model.support_, np.flatnonzero(expected[0]))
    if np.ndim(expected[-1]):  # margins
        y, weight, margins = y[weight > 0], weight[weight > 0], np.array(expected[-1])
        loss = np.average(naive.loss(model.loss, margins, y), weights=weight)
        assert_allclose(model.online_loss_, loss, rtol=1e-10)
        right = (margins > 0) == (y > 0) if model.loss in LOSSES else 1 - (1 - margins / y) ** 2
        weight = weight if model.loss in LOSSES else weight * y**2
        assert_allclose(model.online_score_, np.average(right, weights=weight), rtol=0, atol=1e-10)


def sofs(X, labels, *, k, gamma, intercept, loss):
    """That of naive.py with gamma divided by the weight of the row."""
    (mu, squares), b, steps, margins = np.zeros((2, X.shape[1])), 0.0, 0.0, []
    for x, y, a in zip(X, labels.y, labels.weight, strict=True):
        margins.append(mu @ x + b)
        violation = max(0, 1 - y * margins[-1])
        if violation:
            sigma, variance = 1 / (1 + squares / gamma), 1 / (1 + steps / gamma)
            mu = mu + violation / (x**2 @ sigma + gamma / a) * y * sigma * x
            squares, steps = squares + a * x**2, steps + a
            mu = naive.truncated(mu, squares, k)
            b += intercept * violation / (variance + gamma / a) * y * variance
    return mu, b, margins


STEP = {"learning_rate": 0.02, "batch_size": 5}
ADAPTIVE = {"learning_rate": 0.3, "delta": 0.01}
SFSA = STEP | {"k": 6, "mu": 4.0, "warmup": 20, "maturity": 90, "importance": "coef"}
RADAR = {"k": 7, "l1": 0.1, "radius": 3.0, "learning_rate": 0.1, "epoch_size": 3, "batch_size": 4}
METHODS = {
    "SFSA": (naive.sfsa, SFSA | {"optimizer": "nesterov"}),
    "SFSA adam": (naive.sfsa, SFSA | {"optimizer": "adam", "importance": "scaled_coef"}),
    "SGDT": (naive.sgdt, STEP | {"k": 6, "maturity": 90, "importance": "scaled_root"}),
    "SIHT": (naive.siht, STEP | {"k": 6}),
    "FOFS": (naive.fofs, STEP | {"k": 6, "alpha": 0.3}),
    "SOFS": (sofs, {"k": 6, "gamma": 3.0}),
    "BARDA": (naive.barda, ADAPTIVE | {"k": 6, "alpha": 1e-3}),
    "BAMD": (naive.bamd, ADAPTIVE | {"k": 6, "alpha": 0.01}),
    "OPG": (naive.opg, STEP | {"l1": 0.02, "l2": 0.1}),
    "TruncatedGradient": (naive.truncated_gradient, STEP | {"l1": 0.02, "theta": 0.3, "period": 3}),
    "RDA": (naive.rda, {"l1": 0.02, "l2": 0.1, "gamma": 20.0, "rho": 0.01, "batch_size": 5}),
    "ARDA": (naive.arda, ADAPTIVE | {"l1": 0.01}),
    "AdaFobos": (naive.ada_fobos, ADAPTIVE | {"l1": 0.01}),
    "SADMM": (naive.sadmm, STEP | {"l1": 0.4, "rho": 0.7}),
    "RADAR": (naive.radar, RADAR),
}


def found(name, loss):
    name = name.split()[0] + ("Regressor" if loss == "squared_error" else "Classifier")
    return getattr(ofslib, name, None)


CASES = [(name, loss) for name in METHODS for loss in (*LOSSES, "squared_error")]
CASES = [case for case in CASES if found(*case) and ("SOFS" not in case or LOSSES[2] in case)]


@pytest.mark.parametrize(("name", "loss"), CASES)
@pytest.mark.parametrize("intercept", [True, False], ids=["intercept", "none"])
@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_a_weight_multiplies_the_loss_of_its_row(weighted, name, loss, intercept, kind):
    (reference, own), (X, y) = METHODS[name], data(kind, classify=loss in LOSSES)
    weight, own = weights(len(y)), own | {"loss": loss}
    expected = weighted(reference, X, y, weight, **own, intercept=intercept)
    for form in FORMS:
        model = found(name, loss)(**own, fit_intercept=intercept, shuffle=False)
        assert_same(model.fit(form(X), y, sample_weight=weight), expected, y, weight)


@pytest.mark.parametrize(("name", "loss"), dict(CASES).items())
def test_in_passes_and_in_blocks(weighted, name, loss):
    """Rows of weight 0 have no place in the order, nor in a mini-batch."""
    (reference, own), (X, y) = METHODS[name], data("sparse", classify=loss in LOSSES)
    own, weight, draw = own | {"loss": loss}, weights(len(y), 2), np.random.RandomState(7)
    used = np.flatnonzero(weight)
    order = used[np.concatenate([draw.permutation(len(used)) for _ in range(2)])]
    expected = weighted(reference, X[order], y[order], weight[order], **own, intercept=True)
    model = found(name, loss)(**own, n_passes=2, random_state=7).fit(X, y, sample_weight=weight)
    assert_same(model, expected, y[order], weight[order])
    full = used[: len(used) // 20 * 20]  # of all sizes of mini-batches
    X, y, weight = (rows[: full[-1] + 1] for rows in (X, y, weight))
    expected = weighted(reference, X, y, weight, **own, intercept=True)
    assert_same(in_blocks(found(name, loss)(**own), X, y, weight), expected, y, weight)


def siht_in_units(X, labels, *, loss, k, batch_size):
    """learning_rate="auto": T is the mean of weight |x|^2 at the last power of two of rows."""
    y, weight, w, b, margins, curved = labels.y, labels.weight, np.zeros(X.shape[1]), 0.0, [], []
    squares, c = weight * (X**2).sum(axis=1), {"log_loss": 0.25, "squared_hinge": 2}.get(loss, 1)
    for t, start in enumerate(range(0, len(y), batch_size), 1):
        part, seen = slice(start, start + batch_size), min(start + batch_size, len(y)) - 1
        T = squares[: 1 << max(seen.bit_length() - 1, 0)].mean()
        eta = 1 / c / max(T, squares[part].max() / 2 / len(y[part]))
        margins.extend(X[part] @ w + b)
        curved.extend(weight[part] * curvatures(loss, margins[start:]))
        slopes = weight[part] * SLOPE(loss, np.array(margins[start:]), y[part]) / len(y[part])
        w, b = w - eta * slopes @ X[part], b - slopes.sum() / (np.mean(curved) * t)
        w = naive.truncated(w, np.abs(w), k)
    return w, b, margins


@pytest.mark.parametrize("loss", [*LOSSES, "squared_error"])
@pytest.mark.parametrize("size", [1, 5])
def test_the_unit_of_the_step_counts_a_row_as_its_root(weighted, loss, size):
    X, y = data("dense", classify=loss in LOSSES)
    weight, own = weights(len(y)), {"k": 6, "loss": loss, "batch_size": size}
    expected = weighted(siht_in_units, X, y, weight, **own)
    for form in FORMS:
        model = found("SIHT", loss)(**own, shuffle=False).fit(form(X), y, sample_weight=weight)
        assert_same(model, expected, y, weight)


def test_no_row_of_a_last_mini_batch_that_is_not_full_overshoots():
    X = np.vstack([np.tile(np.eye(5), (5, 1)), np.full((1, 5), 2.0)])
    y, own = X.sum(axis=1), {"l1": 0.0, "fit_intercept": False, "shuffle": False}
    before, after = (OPGRegressor(**own).fit(X[:n], y[:n]).predict(X[25:]) for n in (25, 26))
    assert abs(after - y[25:]) <= abs(before - y[25:])


def least_squares(X, y, weight, support):
    root, rows = np.sqrt(weight)[:, None], np.column_stack([X, np.ones(len(y))])
    return naive.least_squares(root * rows, root[:, 0] * y, [*support, -1], centre=False)[0]


@pytest.mark.parametrize("method", ["OLS", "OLSth", "OFSA", "OnlineLasso"])
@pytest.mark.parametrize("loss", ["log_loss", "squared_error"], ids=["classes", "numbers"])
@pytest.mark.parametrize(("dtype", "tol"), [("float64", 1e-9), ("float32", 1e-4)])
@pytest.mark.parametrize("form", FORMS)
def test_averages_of_weighted_rows(method, loss, dtype, tol, form):
    X, y = data("dense", p=15, classify=loss in LOSSES)
    weight, own = weights(len(y)), {} if method == "OLS" else {"k": 6}
    model = in_blocks(found(method, loss)(dtype=dtype, **own), form(X), y, weight)
    expected = least_squares(X, y, weight, model.support_)
    assert_allclose([*model.coef_, model.intercept_], expected, rtol=tol, atol=tol / 100)
    if method == "OLSth":
        whole, variances = least_squares(X, y, weight, range(15)), np.cov(X.T, aweights=weight)
        assert_array_equal(model.support_, naive.top(whole[:-1] ** 2 * np.diag(variances), 6))


def test_a_row_enters_adapted_averages_with_its_weight_times_the_rate():
    """At most with a share of 1; the averages hold at most 1 / rate rows."""
    X, y = data("dense", p=5, classify=False)
    weight, rate, held, moments = weights(len(y)), 0.1, 0.0, 0.0
    for z, w in zip(np.column_stack([np.ones(len(y)), X, y]), weight, strict=True):
        share = max(min(1, w * rate), w / (held + w)) if w else 0.0
        held = min(held + w, 1 / rate)
        moments = (1 - share) * moments + share * np.outer(z, z)
    model = OLSRegressor(adaptation=rate).fit(X, y, sample_weight=weight)
    expected = np.linalg.solve(moments[:6, :6], moments[:6, 6])
    assert_allclose([model.intercept_, *model.coef_], expected, rtol=1e-8)
    assert_allclose(model.averages_.weight, held)


def test_renewable_logistic_regression_sums_weighted_losses():
    """With all rows and features; the penalty is that of features of weighted scale."""
    X, y = data("dense", p=8)
    weight, A, w = weights(len(y)), np.column_stack([X, np.ones(len(y))]), np.zeros(9)
    penalty = np.append(np.diag(np.cov(X.T, ddof=0, aweights=weight)), 0)
    for _ in range(50):
        p = 1 / (1 + np.exp(y * (A @ w)))
        hessian = (A.T * (weight * p * (1 - p))) @ A + np.diag(penalty)
        w = w - np.linalg.solve(hessian, penalty * w - A.T @ (weight * y * p))
    model = RenewableFSAClassifier(k=8).fit(X, y, sample_weight=weight)
    assert_allclose([*model.coef_, model.intercept_], w, rtol=1e-5, atol=1e-7)
