"""Which k features `RenewableFSAClassifier` takes, against every subset and exact elimination.

The page is docs/algorithms.md, "Two classes that are nearly separable": "logistic regression with
a small l2 penalty on both [the kept rows and the expansions], by backward elimination from p to k
features and exchanges". Which order exchanges take is not said, so that the choice is held to what
it is for: the least loss of k features. The kept rows and expansions are those of
test_renewable_by_the_page.py.
"""

from itertools import combinations

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose
from scipy.special import expit
from test_renewable_by_the_page import margins, minimum, standard

from ofslib import RenewableFSAClassifier


class Problem:
    """The loss of the rows that are kept, of the expansions of the others, and the ridge."""

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
        self.mean, self.scale = standard(X, weight, centre)
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


def assert_fitted(model, problem, X):
    """The minimum of the loss on the features that were chosen; its value."""
    coef, intercept, loss = problem.fit(model.support_)
    size = np.abs(X).max(axis=0)
    tol = 1e-5 * max(1, np.abs(coef * size).max(), abs(intercept))  # of its Newton's method
    assert_allclose(model.coef_ * size, coef * size, rtol=0, atol=tol)
    assert_allclose(model.intercept_, intercept, rtol=0, atol=tol)
    return loss


def test_of_few_features_nearly_always_the_best_subset_is_chosen():
    """In 9 of 699 such designs it was another, by up to 3 % of what features gain."""
    missed = []
    for seed in range(45):
        X, y, weight, k, own = drawn(seed, 7)
        model, problem = learned(X, y, weight, k, own, seed)
        assert len(model.support_) == k
        loss = assert_fitted(model, problem, X)
        every = combinations(range(X.shape[1]), k)
        best, none = min(problem.fit(subset)[2] for subset in every), problem.fit([])[2]
        if loss > best + 1e-7 * abs(best):
            missed.append((loss - best) / (none - best))
    assert len(missed) <= 2
    assert max(missed, default=0) < 0.05


def test_of_many_features_the_choice_is_no_worse_than_by_elimination_one_by_one():
    """In 2 of 60 such designs it was, by 2 % of what features gain."""
    for seed in range(8):
        X, y, weight, k, own = drawn(seed, 40)
        model, problem = learned(X, y, weight, k, own, seed)
        loss, other = assert_fitted(model, problem, X), problem.eliminated(k)
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
        coef, intercept, _ = problem.fit(np.flatnonzero(model.coef_[c]))
        assert np.count_nonzero(coef) == 2
        assert_allclose(model.coef_[c], coef, rtol=0, atol=1e-5 * max(1, np.abs(coef).max()))
        assert_allclose(model.intercept_[c], intercept, rtol=0, atol=1e-5 * max(1, abs(intercept)))
