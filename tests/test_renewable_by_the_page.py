"""`RenewableFSAClassifier` and Algorithm 5 are what the page says, in slow steps.

The pages are docs/explain/own_methods.md ("Two classes that are nearly separable"),
docs/explain/averages.md, the docstrings and the dissertation, 3.2.5. [code] marks what, when this
was written, only the code told. The page does not give the order of exchanges, so the choice of k
features is held to what it is for: the least loss of k features.
"""

from itertools import combinations

import naive
import numpy as np
import pytest
import scipy.sparse as sp
from estimators import accepted
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import expit
from sklearn.exceptions import ConvergenceWarning

import ofslib
from ofslib import RenewableFSAClassifier, RunningAverages

# Logistic regression on rows near the boundary and on expansions of the others


def minimum(Z, y, weight, Q, r, ridge):
    """Of the rows' losses, w'Qw / 2 - r'w and w'diag(ridge)w / 2, by Newton's method."""

    def loss(w):
        return weight @ np.logaddexp(0, -y * (Z @ w)) + w @ (Q + np.diag(ridge)) @ w / 2 - r @ w

    w = np.zeros(Z.shape[1])
    for _ in range(100):
        p = expit(Z @ w)
        slope = Z.T @ (weight * (p - (y > 0))) + Q @ w - r + ridge * w
        step = np.linalg.solve((Z.T * (weight * p * (1 - p))) @ Z + Q + np.diag(ridge), slope)
        while loss(w - step) > loss(w) and np.abs(step).max() > 1e-9:
            step /= 2
        w = w - step
        if np.abs(step).max() <= 1e-9 * np.abs(w).max():
            break
    return w


def margins(near, X, y, weight, l2, centre):
    """Of kept rows, by least squares on the labels of all so far, its length fitted to the kept.

    To the standardised moments p / n is added, and a ridge of a thousandth to the fit [code].
    """
    S, c, scale, mean, level = naive.moments(X, y, weight, centre)
    n, p = X.shape
    w = np.linalg.solve(S + np.eye(p) * (p / n + 1e-5 * (n - centre <= p)), c)
    one = (X[near] - mean) / scale @ w + level
    size = np.sqrt(np.mean(one**2))
    A = np.column_stack([one / size, np.full(len(one), float(centre))])
    ridge = np.array([max(l2 * w @ w / size**2, 1e-3), 1e-3])
    return A @ minimum(A, y[near], weight[near], np.zeros((2, 2)), np.zeros(2), ridge)


class Problem:
    """The loss of the rows that are kept, of the expansions of the others, and the ridge.

    Of `max_rows` that are kept a tenth goes before another comes.
    """

    def __init__(self, X, y, weight, max_rows, l2, centre):
        X, y, weight = X[weight > 0], y[weight > 0], weight[weight > 0]
        near, far = np.arange(0), []
        for i in range(len(y)):
            if len(near) == max_rows:
                m = margins(near, X[:i], y[:i], weight[:i], l2, centre)
                stay, go = np.split(np.argsort(np.abs(m), kind="stable"), [int(0.9 * max_rows)])
                for j in go:
                    p = expit(m[j])
                    working = p * (1 - p)
                    if working >= 0.02:
                        response = m[j] + ((y[near[j]] > 0) - p) / working
                        far.append((near[j], weight[near[j]] * working, response))
                near = near[np.sort(stay)]
            near = np.append(near, i)
        _, _, self.scale, self.mean, _ = naive.moments(X, y, weight, centre)
        Z = np.column_stack([(X - self.mean) / self.scale, np.full(len(X), float(centre))])
        self.Z, self.y, self.weight, self.centre = Z[near], y[near], weight[near], centre
        self.Q, self.r = np.zeros((Z.shape[1], Z.shape[1])), np.zeros(Z.shape[1])
        for i, working, response in far:
            self.Q += working * np.outer(Z[i], Z[i])
            self.r += working * response * Z[i]
        self.ridge = np.append(np.full(X.shape[1], l2), 1e-9)

    def fit(self, features):
        """Coefficients and intercept in units of the rows, and the loss."""
        own = np.append(np.sort(list(features)), len(self.r) - 1).astype(int)
        Q, r, ridge = self.Q[np.ix_(own, own)], self.r[own], self.ridge[own]
        w = minimum(self.Z[:, own], self.y, self.weight, Q, r, ridge)
        loss = self.weight @ np.logaddexp(0, -self.y * (self.Z[:, own] @ w))
        loss += w @ (Q + np.diag(ridge)) @ w / 2 - r @ w
        coef = np.zeros(len(self.r) - 1)
        coef[own[:-1]] = w[:-1] / self.scale[own[:-1]]
        return coef, self.centre * (w[-1] - self.mean @ coef), loss

    def eliminated(self, k):
        """Backward elimination: what raises the loss least, all others fitted anew, goes."""
        left = set(range(len(self.r) - 1))
        while len(left) > k:
            left.remove(min(left, key=lambda j: self.fit(left - {j})[2]))
        return self.fit(left)[2]


def assert_fitted(coef, intercept, problem, X, features):
    """The minimum of the loss on these features; its value."""
    expected, level, loss = problem.fit(features)
    size = np.abs(X).max(axis=0)
    tol = 1e-5 * max(1, np.abs(expected * size).max(), abs(level))  # of its Newton's method
    assert_allclose(coef * size, expected * size, rtol=0, atol=tol)
    assert_allclose(intercept, level, rtol=0, atol=tol)
    return loss


@pytest.mark.parametrize("kind", ["plain", "weights", "constant", "shifted", "separable", "one"])
@pytest.mark.parametrize("centre", [True, False])
@pytest.mark.parametrize("max_rows", [8, 15, 30])
def test_rows_near_the_boundary_and_expansions_of_the_others(kind, centre, max_rows, tmp_path):
    """All features are kept; blocks of several sizes, and a file in the middle."""
    for seed in range(2):
        draw = np.random.default_rng(seed)
        n, p = 40, 2 + seed
        X = draw.standard_normal((n, p)) * draw.uniform(0.1, 10, p) + (kind == "shifted") * 20
        X = np.column_stack([X, np.full(n, 3.0)]) if kind == "constant" else X
        noise = (kind != "separable") * draw.standard_normal(n)
        y = np.where((X[:, 0] - X[:, 0].mean()) / X[:, 0].std() + noise > 0, 1.0, -1.0)
        if kind == "one":
            y[:10] = 1.0
        weight = draw.choice([0, 0.5, 1, 3], n) if kind == "weights" else np.ones(n)
        own = {"k": X.shape[1], "max_rows": max_rows, "l2": 0.5, "fit_intercept": centre}
        model = RenewableFSAClassifier(**own)
        for i, j in ((0, 9), (9, 10), (10, 32), (32, n)):
            model.partial_fit(X[i:j], y[i:j], [-1.0, 1.0], weight[i:j])
            if j == 32:
                model.save(tmp_path / "model.ofs")
                model = RenewableFSAClassifier.load(tmp_path / "model.ofs")
        problem = Problem(X, y, weight, max_rows, 0.5, centre)
        assert_fitted(model.coef_, model.intercept_, problem, X, range(X.shape[1]))


@pytest.mark.filterwarnings("ignore:k=.*is greater than n_features")
def test_scikit_learn_accepts_it():
    accepted(RenewableFSAClassifier())


# Which k features


def drawn(seed, largest):
    """Rows, their labels and weights, and what the model is told."""
    draw = np.random.default_rng(seed)
    p = int(draw.integers(3, largest + 1))
    n, k = int(draw.integers(max(20, p), 150)), int(draw.integers(1, min(p, 6)))
    X = draw.standard_normal((n, p)) @ (np.eye(p) + 0.5 * draw.random((p, p)) / np.sqrt(p))
    X = (X * draw.uniform(0.1, 10, p) + draw.choice([0, 5])) * (draw.random((n, p)) < 0.7)
    margin = ((X - X.mean(axis=0)) / X.std(axis=0))[:, :k] @ draw.choice([-1.0, 1.0], k)
    y = np.where(margin + draw.choice([0.0, 0.5, 2]) * draw.standard_normal(n) > 0, 1.0, -1.0)
    weight = draw.choice([0, 0.5, 1, 3], n) if seed % 3 == 0 else np.ones(n)
    own = {
        "max_rows": int(draw.choice([n, max(8, n // 2), max(8, n // 4)])),
        "l2": float(draw.choice([0.1, 1.0, 5.0])),
        "fit_intercept": bool(seed % 2),
    }
    return X, y, weight, k, own


def learned(X, y, weight, k, own, seed):
    """In one call or three, dense or CSR; a weight of labels is one more of rows."""
    labels = {1.0: 2.0} if seed % 4 == 0 else None
    model = RenewableFSAClassifier(k=k, class_weight=labels, **own)
    rows = sp.csr_array(X) if seed % 5 < 2 else X
    if seed % 2:
        model.fit(rows, y, weight)
    else:
        for i, j in ((0, 5), (5, len(y) // 2), (len(y) // 2, len(y))):
            model.partial_fit(rows[i:j], y[i:j], [-1.0, 1.0], weight[i:j])
    weight = weight * np.where(y > 0, 2.0, 1.0) if labels else weight
    return model, Problem(X, y, weight, own["max_rows"], own["l2"], own["fit_intercept"])


def test_of_few_features_nearly_always_the_best_subset_is_chosen():
    """In 9 of 699 such designs it was another, by up to 3 % of what features gain."""
    missed = []
    for seed in range(25):
        X, y, weight, k, own = drawn(seed, 7)
        model, problem = learned(X, y, weight, k, own, seed)
        assert len(model.support_) == k
        loss = assert_fitted(model.coef_, model.intercept_, problem, X, model.support_)
        every = combinations(range(X.shape[1]), k)
        best, none = min(problem.fit(subset)[2] for subset in every), problem.fit([])[2]
        if loss > best + 1e-7 * abs(best):
            missed.append((loss - best) / (none - best))
    assert len(missed) <= 1
    assert max(missed, default=0) < 0.05


def test_of_many_features_the_choice_is_no_worse_than_by_elimination_one_by_one():
    """In 2 of 60 such designs it was, by 2 % of what features gain."""
    for seed in range(5):
        X, y, weight, k, own = drawn(seed, 40)
        model, problem = learned(X, y, weight, k, own, seed)
        loss = assert_fitted(model.coef_, model.intercept_, problem, X, model.support_)
        other = problem.eliminated(k)
        assert loss <= other + 1e-7 * abs(other)


@pytest.mark.parametrize("late", [False, True])
def test_each_class_has_its_own_rows_and_features(late):
    """Against all others; also of a class all of whose rows are the last ones."""
    draw = np.random.default_rng(2)
    labels = draw.integers(0, 3, 120)
    labels = labels[np.argsort(labels == 2, kind="stable")] if late else labels
    X = draw.standard_normal((120, 6)) + 1.5 * np.eye(3, 6)[labels] + 1.0
    model = RenewableFSAClassifier(k=2, max_rows=40)
    for i, j in ((0, 50), (50, 110), (110, 120)):
        model.partial_fit(X[i:j], labels[i:j], [0, 1, 2])
    for c in range(3):
        problem = Problem(X, np.where(labels == c, 1.0, -1.0), np.ones(120), 40, 1.0, True)
        chosen = np.flatnonzero(model.coef_[c])
        assert len(chosen) == 2
        assert_fitted(model.coef_[c], model.intercept_[c], problem, X, chosen)


# Algorithm 5


def proximal(penalty, v, level, shape, eta):
    """The w that minimises (w - v)^2 / 2 + eta P(w); MCP: Zhang 2010; SCAD: Fan and Li 2001."""
    small, size = naive.soft(v, eta * level), np.abs(v)
    if penalty == "ElasticNet":
        return small / (1 + eta * shape)
    if penalty == "MCP":
        return np.where(size <= shape * level, small / (1 - eta / shape), v)
    if penalty == "SCAD":
        middle = ((shape - 1) * v - np.sign(v) * eta * shape * level) / (shape - 1 - eta)
        middle = np.where(size <= (1 + eta) * level, small, middle)
        return np.where(size <= shape * level, middle, v)
    return small


def printed(penalty, v, level, shape, eta):
    """Theta(v; eta lambda): (3.10), and for SCAD Fan and Li 2001, (2.8): the map of a step 1."""
    return proximal(penalty, v, eta * level, shape, 1.0)


SHAPES = {"Lasso": [{}], "ElasticNet": [{"l2": 0.5}],
          "MCP": [{"b": 1.001}, {"b": 3.0}], "SCAD": [{"a": 2.001}, {"a": 3.7}]}  # fmt: skip
MAPS = [(p, s, m) for p in SHAPES for s in SHAPES[p] for m in (proximal, printed)
        if m is proximal or p in ("MCP", "SCAD")]  # fmt: skip


@pytest.mark.parametrize("penalty, shape, threshold", MAPS)
@pytest.mark.parametrize("kind", ["plain", "p > n", "constant", "equal", "weights"])
def test_tisp_takes_each_penalty_from_zero(penalty, shape, threshold, kind):
    """The path ends with the first model of more than k features."""
    cls, given = getattr(ofslib, f"Online{penalty}Regressor"), dict(shape)
    if penalty in ("MCP", "SCAD"):
        given["threshold"] = {proximal: "proper", printed: "printed"}[threshold]
    for seed in range(6):
        draw, centre = np.random.default_rng(seed), bool(seed % 2)
        n, p = (9, 15) if kind == "p > n" else (40, 7)
        X = draw.standard_normal((n, p)) @ (np.eye(p) + 0.3) * draw.uniform(0.1, 10, p) + 2
        y = (X / X.std(axis=0))[:, :3] @ [1, -1, 2] + draw.standard_normal(n)
        if kind in ("constant", "equal"):
            X[:, 5] = 3.0 if kind == "constant" else X[:, 0]
        weight = draw.choice([0, 0.5, 1, 3], n) if kind == "weights" else np.ones(n)
        S, c, scale, _, _ = naive.moments(X, y, weight, centre)
        eta, paths = draw.choice([0.02, 0.1]), []
        for level in np.abs(c).max() * np.geomspace(1, 0.01, 6):
            w = np.zeros(p)
            for _ in range(30):
                v = w - eta * (S @ w - c)
                w = threshold(penalty, v, level, next(iter(shape.values()), 0.0), eta)
            paths.append(w / scale)
        sizes = np.count_nonzero(paths, axis=1)
        own = {"n_iter": 30, "n_penalties": 6, "penalty_ratio": 0.01, "tol": 1e-300}
        model = cls(solver="tisp", k=4, learning_rate=eta, fit_intercept=centre, **own, **given)
        averages = RunningAverages(p).update(X, y, weight)
        levels, coefs = model.solution_path(averages)
        end = np.argmax(sizes > 4) + 1 if (sizes > 4).any() else 6
        assert len(levels) == end
        size = np.where(np.isinf(scale), 0, scale)
        tol = 1e-9 * max(1, np.abs(np.array(paths) * size).max())
        assert_allclose(coefs * size, np.array(paths[:end]) * size, rtol=0, atol=tol)
        assert_array_equal(coefs != 0, np.array(paths[:end]) != 0)


@pytest.mark.parametrize("n_iter", [50, 1000])
def test_a_step_beyond_the_limit_is_said(n_iter):
    """As OFSA says it; a path of 1e60, or of what is no number, is no model."""
    draw = np.random.default_rng(0)
    X = draw.standard_normal((200, 20)) @ (np.eye(20) + 0.9)
    own = {"solver": "tisp", "learning_rate": 1.0, "n_iter": n_iter, "n_penalties": 5}
    model = ofslib.OnlineLassoRegressor(k=20, refit=False, **own).fit(X, X[:, 0])
    with pytest.raises(FloatingPointError, match="diverged"):
        _ = model.coef_


def test_steps_that_were_too_few_are_said():
    """As coordinate descent says it."""
    draw = np.random.default_rng(0)
    X = draw.standard_normal((200, 20)) @ (np.eye(20) + 0.9)
    model = ofslib.OnlineLassoRegressor(k=5, solver="tisp", n_iter=5).fit(X, X[:, 0])
    with pytest.warns(ConvergenceWarning, match="too few"):
        _ = model.coef_
