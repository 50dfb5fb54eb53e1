"""B-ARDA and B-AMD against Theorems 1 and 2 of barda: cumulative regret on real data."""

from functools import partial

import numpy as np
from scipy.optimize import minimize
from sklearn.svm import LinearSVC

from ofslib import BAMDClassifier, BARDAClassifier, bounds
from ofslib.reproduction.theory.curve import VARIANTS, number, point

THEOREMS = {
    "Theorem 1, B-ARDA": (BARDAClassifier, bounds.barda_theorem_1),
    "Theorem 2, B-AMD": (BAMDClassifier, bounds.barda_theorem_2),
}


def regret(setting, seeds, data, *, k, alpha, learning_rates, values):
    """Both sides of the theorems after so many rows, in random order.

    The comparator is the best vector of k entries that is found with all these rows at hand.
    delta is 0.01 as in the paper, or ten times the largest entry of a row. The step size is the one
    with which the loss on all rows is least.

    Parameters
    ----------
    k : int
        Budget B.
    alpha : float
        Weight lambda of the penalty.
    learning_rates : sequence of float
        Step sizes eta.
    values : sequence of int
        Numbers of rows.
    """
    order = np.random.default_rng(seeds).permutation(len(data.y_train))[: max(values)]
    X = data.X_train[order]
    X = X.toarray() if hasattr(X, "toarray") else X
    X = X[:, np.any(X != 0, axis=0)].astype(float)
    y = np.where(data.y_train[order] == data.y_train.max(), 1.0, -1.0)
    comparators = {T: _best(X[:T], y[:T], k, alpha) for T in values}
    # Theorem 1 needs delta not below any gradient.
    enough = 10 * float(np.abs(X).max())
    for title, (method, theorem) in THEOREMS.items():
        for name, delta in (("0.01", 0.01), ("10 max |x|", enough)):
            runs = [
                _Run(method, X, y, {"k": k, "alpha": alpha, "delta": delta, "learning_rate": eta})
                for eta in learning_rates
            ]
            run = min(runs, key=lambda run: run.losses.sum())
            for T, comparator in comparators.items():
                sides = partial(run.sides, theorem, T, comparator)
                panel = f"{title}, δ = {name}"
                for variant in VARIANTS:
                    yield point(panel, T, variant, number(partial(sides, variant), "right"))
                regret = run.losses[:T].sum() - _losses(X[:T], y[:T], comparator, alpha).sum()
                yield point(panel, T, "experiment", float(regret))


def _losses(X, y, w, alpha):
    """Squared hinge and penalty of each row, of one w or of one for each row."""
    margins = y * np.sum(X * w, axis=1)
    return np.maximum(1 - margins, 0) ** 2 + alpha / 2 * np.sum(w**2, axis=-1)


class _Run:
    """What the theorems need to know of a run: rows w_t, z_t and g_t from 0."""

    def __init__(self, method, X, y, parameters):
        model = method(fit_intercept=False, **parameters)
        T, d = X.shape
        eta, self.alpha, self.delta = (parameters[n] for n in ("learning_rate", "alpha", "delta"))
        self.X, self.y, self.eta = X, y, eta
        self.played = np.zeros((T + 1, d))
        for t in range(T):
            model.partial_fit(X[t : t + 1], y[t : t + 1], classes=[-1.0, 1.0])
            self.played[t + 1] = model.coef_
        w = self.played[:-1]
        self.losses = _losses(X, y, w, self.alpha)
        slope = -2 * y * np.maximum(1 - y * np.sum(X * w, axis=1), 0)
        self.gradients = slope[:, None] * X
        self.untruncated = np.zeros((T + 1, d))
        mirror = method is BAMDClassifier
        if mirror:
            self.gradients += self.alpha * w
        H = self.delta + np.sqrt(np.cumsum(self.gradients**2, axis=0))
        if mirror:
            self.untruncated[1:] = w - eta * self.gradients / H
        else:
            shrink = self.alpha * eta * np.arange(1, T + 1)[:, None]
            self.untruncated[1:] = -eta * np.cumsum(self.gradients, axis=0) / (shrink + H)

    def sides(self, theorem, T, comparator, variant):
        best = _losses(self.X[:T], self.y[:T], comparator, self.alpha)
        return theorem(
            self.gradients[:T], self.untruncated[: T + 1], self.played[: T + 1], comparator,
            self.losses[:T], best, self.eta, self.delta, variant,
        )  # fmt: skip


def _best(X, y, k, alpha):
    """The vector of k entries with the least loss, fitted to features that other fits choose."""
    d = X.shape[1]
    candidates = [np.zeros(d)]
    for penalty, C in (("l2", 0.01), ("l1", 0.01), ("l1", 0.1)):
        own = {"penalty": penalty, "C": C, "fit_intercept": False, "dual": False}
        chooser = LinearSVC(**own, random_state=0).fit(X, y)
        chosen = np.argsort(-np.abs(chooser.coef_[0]), kind="stable")[:k]
        part = X[:, chosen]

        def loss(w, part=part):
            gap = np.maximum(1 - y * (part @ w), 0)
            slope = alpha * len(y) * w - 2 * part.T @ (y * gap)
            return gap @ gap + alpha * len(y) / 2 * w @ w, slope

        w = np.zeros(d)
        w[chosen] = minimize(loss, np.zeros(len(chosen)), jac=True, method="L-BFGS-B").x
        candidates.append(w)
    return min(candidates, key=lambda w: _losses(X, y, w, alpha).sum())
