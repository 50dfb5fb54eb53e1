"""Selection from streams of columns: Yang et al. 2016 (`os`), Section 5, Figures 1, 2 and 4."""

from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.linear_model import lasso_path
from sklearn.svm import LinearSVC

from ofslib.reproduction.methods import build, find_class, points
from ofslib.reproduction.studies import tidy
from ofslib.streams.column_stream import REFITS

_RATIO = 0.93  # of a penalty to the one before
_STEPS = 200


def synthetic(p: int, n: int, s: int, loss: str, rng: np.random.Generator) -> tuple:
    """The paper's data: independent standard normal features, of which s matter.

    Parameters
    ----------
    p, n, s : int
        Number of features, of rows, and of coefficients that are not 0; these are standard normal.
    loss : {"squared_error", "squared_hinge"}
        y is X w with noise of standard deviation 0.1, or the sign of X w.
    rng : numpy.random.Generator

    Returns
    -------
    X, y, w : ndarrays of shape (2 n, p), (2 n,), (p,)
        The rows from n on are for the test.
    """
    X, w = rng.standard_normal((2 * n, p)), np.zeros(p)
    w[rng.permutation(p)[:s]] = rng.standard_normal(s)
    y = X @ w
    if loss == "squared_error":
        return X, y + 0.1 * rng.standard_normal(2 * n), w
    return X, np.where(y > 0, 1.0, -1.0), w


class BatchL1(BaseEstimator):
    """LASSO or the l1 hinge with the largest penalty that leaves k features or more.

    By scikit-learn, on columns of mean square 1. The penalties are those of a geometric path. The
    k features with the largest coefficients are fitted again, as all methods of the paper do.
    """

    def __init__(self, k: int = 10, loss: str = "squared_error"):
        self.k = k
        self.loss = loss

    def fit(self, X, y):
        """Learn; `l1_` is the penalty |w| of the mean loss, `support_` the features."""
        scale = np.sqrt(np.mean(np.square(X), axis=0))
        scaled = np.asfortranarray(X / np.where(scale > 0, scale, 1.0))
        path = self._lasso if self.loss == "squared_error" else self._hinge
        self.l1_, w = path(scaled, y)
        self.n_selected_ = np.count_nonzero(w)
        self.support_ = np.sort(np.argsort(-np.abs(w), kind="stable")[: self.k])
        again = REFITS[self.loss](fit_intercept=False).fit(scaled[:, self.support_], y)
        self.coef_ = np.zeros(X.shape[1])
        self.coef_[self.support_] = again.coef_.ravel() / scale[self.support_]
        return self

    def _lasso(self, X, y):
        largest, w = np.abs(X.T @ y).max() / len(y), None
        for step in range(1, _STEPS):
            l1 = largest * _RATIO**step
            start = {} if w is None else {"coef_init": w}
            w = lasso_path(X, y, alphas=[l1], **start)[1][:, 0]
            if np.count_nonzero(w) >= self.k:
                break
        return l1, w

    def _hinge(self, X, y):
        largest = 2.0 * np.abs(X.T @ y).max() / len(y)

        @cache
        def solve(step):
            C = 1.0 / (len(y) * largest * _RATIO**step)
            svc = LinearSVC(penalty="l1", dual=False, C=C, fit_intercept=False, random_state=0)
            return svc.fit(X, y).coef_.ravel()

        # Nothing can be carried over from one penalty to the next: halve the path instead. It is
        # doubled before, as the longest take the longest to solve.
        few, many = 0, 16
        while many < _STEPS and np.count_nonzero(solve(many)) < self.k:
            few, many = many, min(2 * many, _STEPS)
        while many - few > 1:
            middle = (few + many) // 2
            if np.count_nonzero(solve(middle)) >= self.k:
                many = middle
            else:
                few = middle
        return largest * _RATIO**many, solve(many)


def on_synthetic(setting, seeds, data, loss, n, s):
    """Figures 1 and 2: how much of the truth each method finds, in percent, and its error.

    The axis p of the setting is the number of features. The l1 methods get the penalty of the batch
    method, which is the one with class `BatchL1`.
    """
    draw, order = seeds.spawn(2)
    X, y, w = synthetic(setting["axes"]["p"], n, s, loss, np.random.default_rng(draw))
    seed, support = int(order.generate_state(1)[0]), np.flatnonzero(w)
    for row, model in _fitted(setting["methods"], X[:n], y[:n], seed, k=s, loss=loss):
        found = {"recall": 100.0 * np.isin(support, model.support_).mean()}
        if loss == "squared_error":
            found["recovery error"] = np.linalg.norm(model.coef_ - w) / np.linalg.norm(w)
        else:
            found["test error"] = 100.0 * np.mean((X[n:] @ model.coef_ > 0) != (y[n:] > 0))
        yield from tidy(found | _memory(model), **row)


def on_images(setting, seeds, data, sizes, s, train_rows, classes=None):
    """Figure 4: test error, in percent, of s features chosen on few rows, split at random.

    Features are centred by the rows of training. Methods that have a `sweep` keep `s` features, the
    others each of the `sizes`. `classes`: the two labels of the data set that are told apart, if it
    has more.
    """
    X = np.concatenate([data.X_train, data.X_test])
    y = np.concatenate([data.y_train, data.y_test])
    wanted = np.isin(y, classes) if classes else np.full(len(y), True)
    X, y = X[wanted].astype(float), np.where(y[wanted] == y[wanted].max(), 1.0, -1.0)
    split, order = seeds.spawn(2)
    places, seed = np.random.default_rng(split).permutation(len(y)), order.generate_state(1)[0]
    train, test = places[:train_rows], places[train_rows:]
    # Instead of an intercept
    X -= X[train].mean(axis=0)
    sweeping = {label: spec for label, spec in setting["methods"].items() if "sweep" in spec}
    others = {label: spec for label, spec in setting["methods"].items() if label not in sweeping}
    runs = [(others, k) for k in sizes] + [(sweeping, s)]
    for methods, k in runs:
        own = {"k": k, "loss": "squared_hinge"}
        for row, model in _fitted(methods, X[train], y[train], int(seed), **own):
            wrong = np.mean((X[test] @ model.coef_ > 0) != (y[test] > 0))
            yield from tidy({"test error": 100.0 * wrong}, **row, s=k)


def _fitted(methods, X, y, seed, **known) -> Iterator[tuple[dict[str, Any], Any]]:
    """Each method at each point of its sweep, fitted; the l1 methods with the batch penalty."""
    own = {"random_state": seed, "fit_intercept": False, **known}
    # The batch method comes first, wherever it stands among the others.
    for label in sorted(methods, key=lambda label: find_class(methods[label]["class"]) != BatchL1):
        spec = methods[label]
        for point in points(spec.get("sweep", {})):
            model = build({**spec, **point}, **own).fit(X, y)
            if isinstance(model, BatchL1):
                own["l1"] = model.l1_
            yield {"method": label, **point}, model


def _memory(model) -> dict[str, float]:
    """What a model says of its memory and its lateness."""
    found = {"features kept": getattr(model, "peak_features_", None)}
    found["staleness"] = getattr(model, "staleness_", None)
    return {name: float(value) for name, value in found.items() if value is not None}
