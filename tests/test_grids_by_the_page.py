"""The penalties that `k` learns at once are what docs/explain/own_methods.md says, in plain numpy.

A slow reference of the whole mode: the penalties, the model of each (as in naive.py), which of them
is chosen when and predicts meanwhile, weights, steps in units of the rows. Its source is the page
("k instead of a penalty") and naive.py; [code] marks what
only the code told. It uses nothing of ofslib.
"""

import warnings

import naive
import numpy as np
import pytest
import scipy.sparse as sp
from estimators import every, public, said
from numpy.testing import assert_allclose
from sklearn.base import ClassifierMixin

import ofslib
from ofslib.streams.penalised import Penalised

METHODS = {
    "OPG": ({"learning_rate": 0.02, "l2": 0.1}, {"learning_rate": "auto"}),
    "TruncatedGradient": (
        {"learning_rate": 0.02, "theta": 0.2, "period": 3},
        {"learning_rate": "auto", "period": 1},
    ),
    "RDA": ({"gamma": 8.0, "rho": 0.01, "l2": 0.1}, {"gamma": 20.0, "rho": 0.0, "l2": 0.0}),
    "SADMM": ({"learning_rate": 0.03, "rho": 0.5},),
    "ARDA": ({"learning_rate": 0.3, "delta": 0.1},),
    "AdaFobos": ({"learning_rate": 0.3, "delta": 0.1},),
}


class Grid:
    """Models of all penalties, one a row of W; `sparse`: rows are shown as sparse ones."""

    def __init__(self, name, p, sparse, *, k, m, loss, intercept, b=1, bounds=None, **own):
        self.name, self.p, self.sparse, self.k, self.m, self.loss = name, p, sparse, k, m, loss
        self.intercept, self.b, self.own = intercept, b, own
        # Descending; one penalty is the largest [code]
        self.l1 = None if bounds is None else np.geomspace(*bounds[::-1], m)
        self.W, self.G, self.S, self.B, self.U = np.zeros((5, m, p))
        self.w0, self.GI, self.SI, self.curvature = np.zeros((4, m))
        self.t = self.rows = self.work = self.entries = 0
        self.norms = self.unit = self.heaviest = self.loss_sum = self.weight = 0.0
        self.known, self.batch, self.model, self.cut = (
            np.zeros(p, bool),
            [],
            (np.zeros(p), 0.0),
            False,
        )

    def show(self, x, y, weight=1.0, entries=0):
        """A row; `entries`: how many a sparse row has, zeros too."""
        if weight == 0.0:
            return
        self.loss_sum += weight * naive.loss(self.loss, self.model[0] @ x + self.model[1], y)
        self.weight += weight
        square = weight * (x @ x)
        if self.rows & (self.rows - 1) == 0:  # the mean before this row, but for the first [code]
            self.unit = self.norms / self.rows if self.rows else square
        self.heaviest = max(self.heaviest if self.batch else 0.0, square)
        self.rows, self.norms = self.rows + 1, self.norms + square
        self.entries += entries
        # More entries than this count as dense rows [code]
        self.dense = not self.sparse or self.entries >= self.b * self.p // 4 + 2
        self.batch.append((x, y, weight))
        if len(self.batch) == self.b:
            self.step()

    def step(self):
        if not self.batch:
            return
        (X, y, w), own = (np.array(part) for part in zip(*self.batch, strict=True)), self.own
        self.batch, n, loss, self.t = [], len(y), self.loss, (t := self.t + 1)
        high = np.abs((w * naive.slope(loss, np.full(n, self.w0[0]), y)) @ X / n).max()
        if self.l1 is None and high > 0:
            self.l1 = np.geomspace(high, high / 1000, self.m)
        l1 = np.zeros((self.m, 1)) if self.l1 is None else self.l1[:, None]
        M = X @ (self.B if self.name == "SADMM" else self.W).T + self.w0
        slopes = naive.slope(loss, M, y[:, None]) * w[:, None]
        g, gi = slopes.T @ X / n, slopes.mean(axis=0) * self.intercept
        self.curvature += w @ naive.curvatures(loss, M)  # with the weights [code]
        eta = own.get("learning_rate")
        scale = own.get("gamma", np.inf) / np.sqrt(t)
        least = 1 / scale / t if self.name == "RDA" else 0.0 if eta == "auto" else eta
        if eta == "auto":
            eta = 1 / (naive.LARGEST[loss] * max(self.unit, self.heaviest / (2 * n)))
        w0 = self.w0 - np.maximum(least, self.rows / (self.curvature * t)) * gi
        if self.name == "OPG":
            self.W = naive.soft(self.W - eta * g, eta * l1) / (1 + eta * own.get("l2", 0.0))
        elif self.name == "TruncatedGradient":
            self.W, K, theta = self.W - eta * g, own["period"], own.get("theta", np.inf)
            if t % K == 0:
                small = np.abs(self.W) <= theta
                self.W = np.where(small, naive.soft(self.W, eta * K * l1), self.W)
        elif self.name == "RDA":
            self.G = self.G + g
            self.W = -naive.soft(self.G / t, l1 + scale * own["rho"]) / (own["l2"] + scale)
        elif self.name == "SADMM":
            rho = own["rho"]
            self.B = (rho * (self.W + self.U) + self.B / eta - g) / (rho + 1 / eta)
            self.W = naive.soft(self.B - self.U, l1 / rho)
            self.U = self.U - (self.B - self.W)
        else:
            self.S, self.SI, self.G, self.GI = (
                self.S + g**2, self.SI + gi**2, self.G + g, self.GI + gi
            )  # fmt: skip
            rate, rate_i = (eta / (own["delta"] + np.sqrt(s)) for s in (self.S, self.SI))
            if self.name == "ARDA":
                self.W, w0 = -rate * t * naive.soft(self.G / t, l1), -rate_i * self.GI
            else:
                self.W, w0 = naive.soft(self.W - rate * g, rate * l1), self.w0 - rate_i * gi
        self.w0 = w0
        if self.due((X != 0).any(axis=0), n):
            self.model = self.choice()
            # What has no coefficient for any penalty is not known any more [code]
            self.known, self.work = (self.W != 0).any(axis=0), 0
        self.entries = 0

    def due(self, occurs, n):
        """Whether the model is chosen after this step: half of what is known, or four times."""
        self.known |= occurs
        known = self.known.sum() + 1  # and the constant, also where there is none [code]
        touched = known if self.name == "SADMM" else occurs.sum() + 1
        self.work += touched
        if self.name == "TruncatedGradient" and self.own["period"] > 1:
            return self.t % self.own["period"] == 0  # only what was shrunk is chosen from [code]
        dense = self.dense or 4 * self.entries > n * (self.p + 1)  # [code]
        return dense or 2 * touched >= known or self.work >= 4 * known

    def choice(self):
        sizes, penalties = np.count_nonzero(self.W, axis=1), range(self.m)
        right, more = ([q for q in penalties if low < sizes[q] <= high]
                       for low, high in ((0, self.k), (self.k, self.p)))  # fmt: skip
        self.cut = not right and bool(more)
        q = max(right or penalties, key=lambda q: (sizes[q], q))
        if self.cut:  # of equals the largest penalty [code]
            q = min(more, key=lambda q: (sizes[q], q))
        return naive.truncated(self.W[q], np.abs(self.W[q]), self.k), self.w0[q]

    def shown(self):
        rests = self.name == "TruncatedGradient" and self.own["period"] > 1  # [code]
        return self.model if rests else self.choice()


def rows(kind, n, p, seed):
    """X, y; rare features, one that never occurs, one that comes late, empty rows."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p))
    if kind != "dense":
        X *= rng.random((n, p)) < (0.1 if kind == "rare" else 0.5)
        X[:, 1], X[: n // 2, 2], X[rng.random(n) < 0.1], X[0, 3] = 0, 0, 0, 1
    return X, X[:, 3:6] @ [2, -1, 1] + 0.7 + 0.5 * rng.standard_normal(n)


def with_zeros(X, seed):
    """As CSR, with some zeros as entries."""
    mask = (X != 0) | (np.random.default_rng(seed).random(X.shape) < 0.05)
    _, column = np.nonzero(mask)
    return sp.csr_array((X[mask], column, np.r_[0, mask.sum(axis=1).cumsum()]), X.shape)


def settings():
    for name, owns in METHODS.items():
        for seed in range(14):
            task = "squared_error" if name == "SADMM" else ["log_loss", "squared_hinge"][seed % 2]
            if name in ("OPG", "RDA", "TruncatedGradient") and seed % 3 == 0:
                task = "squared_error"
            yield name, owns[seed // 2 % len(owns)], task, seed


@pytest.mark.parametrize(("name", "own", "loss", "seed"), list(settings()))
def test_a_grid_is_that_of_the_page(name, own, loss, seed):
    rng = np.random.default_rng(seed)
    kind, p = ["dense", "rare", "half", "rare"][seed % 4], [12, 40, 9][seed % 3]
    X, y = rows(kind, n := 83, p, seed)
    k, m, b = int(rng.integers(1, p + 1)), [1, 2, 7, 50][seed // 2 % 4], [3, 1, 25][seed % 3]
    bounds, intercept = (None, (1e-3, 1.0))[seed // 3 % 2], seed % 5 > 0
    A = X if kind == "dense" or seed == 2 else with_zeros(X, seed)
    entries = np.diff(A.indptr) if sp.issparse(A) else np.zeros(n, int)
    w = rng.choice([0.0, 0.5, 2.0], n) if seed % 4 > 1 else np.ones(n)
    w[0] = 1.0
    regression = loss == "squared_error"
    labels = y if regression else np.digitize(y, [0.0, 1.5] if seed % 3 == 2 else [0.7])
    classes = np.unique(labels)[1 if len(np.unique(labels)) == 2 else 0 :]
    targets = [y] if regression else [np.where(labels == c, 1.0, -1.0) for c in classes]
    cls = getattr(ofslib, name + ("Regressor" if regression else "Classifier"))
    batch = {} if name in ("ARDA", "AdaFobos") else {"batch_size": b}
    shuffle, cuts = seed % 7 == 5, seed % 7 == 6
    model = cls(
        k=k, n_penalties=m, l1_range=bounds, fit_intercept=intercept, loss=loss, n_passes=2,
        shuffle=shuffle, random_state=seed, **batch, **own
    )  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if cuts:
            known = {} if regression else {"classes": np.unique(labels)}
            for i, j in ((0, 1), (1, 30), (30, 31), (31, n)):
                model.partial_fit(A[i:j], labels[i:j], sample_weight=w[i:j], **known)
                _ = model.coef_  # changes nothing
        else:
            model.fit(A, labels, sample_weight=w)
    order, random = np.flatnonzero(w), np.random.RandomState(seed)
    passes = [order[random.permutation(len(order))] if shuffle else order for _ in range(2 - cuts)]
    grids = []
    for y in targets:
        grid = Grid(name, p, sp.issparse(A), k=k, m=m, b=batch.get("batch_size", 1), loss=loss,
                    intercept=float(intercept), bounds=bounds, **own)  # fmt: skip
        for i in np.concatenate(passes):
            grid.show(X[i], y[i], w[i], entries[i])
        if not cuts:
            grid.step()
        grids.append(grid)
    l1, coefs = (part if len(grids) > 1 else [part] for part in model.path_)
    assert_allclose(l1, [grid.l1 for grid in grids], rtol=1e-12)
    assert_allclose(coefs, [grid.W for grid in grids], rtol=0, atol=1e-10)
    shown, constants = zip(*(grid.shown() for grid in grids), strict=True)
    assert_allclose(np.atleast_2d(model.coef_), shown, rtol=0, atol=1e-10)
    assert_allclose(np.atleast_1d(model.intercept_), constants, rtol=0, atol=1e-10)
    assert_allclose(model.online_loss_, np.mean([g.loss_sum / g.weight for g in grids]), rtol=1e-9)


@pytest.mark.parametrize("method", ["fit", "partial_fit"])
def test_what_is_said_of_a_cut_is_said_of_the_model_that_is_shown(method):
    """`partial_fit` says so from ten mini-batches on."""
    rng, more = np.random.default_rng(0), {} if method == "fit" else {"classes": [-1, 1]}
    n, cuts = 6 if method == "fit" else 11, 0
    for _ in range(300):
        X, y = rng.standard_normal((n, 6)) * (rng.random((n, 6)) < 0.2), np.resize([1, -1], n)
        model = ofslib.ARDAClassifier(k=1, n_penalties=2, l1_range=(0.01, 0.3), shuffle=False)
        told = " ".join(said(getattr(model, method), sp.csr_array(X), y, **more))
        sizes = np.count_nonzero(model.path_[1], 1)
        cut = 1 not in sizes and sizes.max() > 1
        least = min(sizes[sizes > 1], default=0)
        words = "has no penalty that leaves", f"shown are the 1 largest of the {least} coefficients"
        assert [part in told for part in words] == [cut, cut]
        cuts += cut
    assert 0 < cuts < 300


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("name", METHODS)
def test_penalties_wait_for_a_gradient(name, form):
    """Rows of zeros say nothing: neither of the penalties nor, without an intercept, of a model."""
    X, y = rows("dense", 60, 12, 1)
    X[:8], own = 0, METHODS[name][0] | {"fit_intercept": False, "shuffle": False}
    own |= {} if name in ("ARDA", "AdaFobos") else {"batch_size": 4}
    regression = name == "SADMM"
    cls = getattr(ofslib, name + ("Regressor" if regression else "Classifier"))
    target, known = (y, {}) if regression else (y > 0, {"classes": [False, True]})
    early = cls(k=3, n_penalties=5, **own).partial_fit(form(X[:8]), target[:8], **known)
    assert not early.path_[0].any() and not early.path_[1].any()
    model = cls(k=3, n_penalties=5, **own).fit(form(X), target)
    signs = target if regression else np.where(target, 1.0, -1.0)
    grid = Grid(name, 12, form is sp.csr_array, k=3, m=5, b=own.get("batch_size", 1),
                loss=model.loss if hasattr(model, "loss") else "squared_error", intercept=0.0,
                **METHODS[name][0])  # fmt: skip
    for x, t in zip(X, signs, strict=True):
        grid.show(x, t, entries=np.count_nonzero(x))
    grid.step()
    assert_allclose(model.path_[0], grid.l1, rtol=1e-12)
    assert_allclose(model.path_[1], grid.W, rtol=0, atol=1e-10)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@every(public(Penalised))
def test_a_path_is_that_of_single_penalties(cls, dtype):
    """Shrinkage of all kinds; what else varies is on the page."""
    rng = np.random.default_rng(2)
    X = sp.random_array((75, 60), density=0.05, rng=rng).toarray()
    X[5::11] = rng.standard_normal(X[5::11].shape)
    y = X @ rng.standard_normal(60) + rng.standard_normal(75)
    y = np.sign(y) if issubclass(cls, ClassifierMixin) else y
    own = {"batch_size": 4, "learning_rate": 0.05, "period": 3, "l2": 0.2, "shuffle": False}
    own = {name: value for name, value in own.items() if name in cls().get_params()}
    path = cls(**own, k=6, n_penalties=4, l1_range=(1e-3, 0.3), dtype=dtype)
    penalties, coefs = path.fit(sp.csr_array(X), y).path_
    assert coefs.dtype == penalties.dtype == dtype
    for l1, coef in zip(penalties, coefs, strict=True):
        rounding = 1e-12 if dtype == "float64" else 1e-5
        assert_allclose(coef, cls(**own, l1=l1).fit(X, y).coef_, rtol=0, atol=rounding)
    assert 0 < np.count_nonzero(coefs) < coefs.size


@pytest.mark.parametrize(
    "cls, own",
    [
        (ofslib.SADMMRegressor, {"learning_rate": 1e-5, "batch_size": 1}),
        (ofslib.OPGRegressor, {"learning_rate": 1e-5, "l2": 0.01, "batch_size": 1}),
        (ofslib.AdaFobosClassifier, {"learning_rate": 1e-3}),
    ],
)
def test_float32_does_not_lose_what_many_small_steps_add_up_to(cls, own):
    """A weight that is rounded in each step, as 1 / (1 + eta l2), would shrink by its error."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((30_000, 4))
    y = X @ [1.0, 0.7, 0.5, 0.3] + rng.standard_normal(len(X))
    y = np.sign(y) if issubclass(cls, ClassifierMixin) else y
    own |= {"k": 4, "n_penalties": 2, "l1_range": (1e-4, 1e-3), "fit_intercept": False}
    exact, single = (
        cls(**own, dtype=dtype, shuffle=False).fit(X, y).path_[1]
        for dtype in ("float64", "float32")
    )
    assert_allclose(single, exact, rtol=0, atol=3e-5 * np.abs(exact).max())


def test_a_heavy_row_in_the_last_mini_batch_is_not_made_worse():
    X = np.random.default_rng(0).standard_normal((26, 50))
    X[25] *= 4
    model = ofslib.OPGRegressor(l1=1e-6, shuffle=False, fit_intercept=False)
    before = model.partial_fit(X, X[:, 0]).predict(X[25:]) - X[25, 0]
    assert abs(model.fit(X, X[:, 0]).predict(X[25:]) - X[25, 0]) <= 1.01 * abs(before)
