"""Running averages, and what is learned from them, are what the page says, in slow steps.

The pages are docs/explain/averages.md, the docstrings and the dissertation, 3.1 to 3.2.8. [code]
marks what, when this was written, only the code or a test told.
"""

from fractions import Fraction

import naive
import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

import ofslib
from ofslib import RunningAverages


class Exact:
    """(3.1) and (3.11) for the moments of z = (1, x, y): the corner of `moments` stays 1."""

    def __init__(self, p):
        self.n, self.weight, self.rate, self.per = 0, Fraction(0), None, "observation"
        self.moments = np.full((p + 2, p + 2), Fraction(0))

    def enter(self, moments, share, weight):
        self.moments = (1 - share) * self.moments + share * moments
        self.weight = weight

    def update(self, X, y, weights):
        Z = np.column_stack([np.ones(len(y)), X, y])
        Z = np.array([[Fraction(float(v)) for v in z] for z in Z])[weights > 0]
        weights = [Fraction(float(w)) for w in weights if w > 0]
        self.n += len(Z)
        if self.rate is not None and self.per == "block" and len(Z):
            share = max(self.rate, 1 / (self.weight + 1))
            return self.enter((Z.T * weights) @ Z / sum(weights), share, 1 / share)
        for w, z in zip(weights, Z, strict=True):
            share, weight = w / (self.weight + w), self.weight + w
            if self.rate is not None:  # The share of a row of weight w: w rate, at most 1 [code]
                share, weight = min(1, max(w * self.rate, share)), min(weight, 1 / self.rate)
            self.enter(np.outer(z, z), share, weight)

    def merge(self, other):
        self.n, total = self.n + other.n, self.weight + other.weight
        self.enter(other.moments, other.weight / total, total)


def assert_exact(averages, exact, tol):
    """Moments in units of root mean squares, standardised ones in those of deviations."""
    assert averages.n == exact.n
    assert_allclose(averages.weight, float(exact.weight), rtol=1e-13)
    M = exact.moments
    S = np.block([[averages.S_xx, averages.S_xy[:, None]], [averages.S_xy, averages.S_yy]])
    C = (M[1:, 1:] - np.outer(M[0, 1:], M[0, 1:])).astype(float)
    size = np.sqrt(np.maximum(np.diag(M)[1:].astype(float), 1e-300))
    means = np.append(averages.mean_x, averages.mean_y)
    assert_allclose(means / size, M[0, 1:].astype(float) / size, rtol=0, atol=tol)
    S, expected = S / np.outer(size, size), M[1:, 1:].astype(float) / np.outer(size, size)
    assert_allclose(S, expected, rtol=0, atol=tol)
    if exact.n > 1:
        standard, deviation = averages.standardized(), np.sqrt(np.diag(C))
        constant = deviation[:-1] == 0
        assert_array_equal(np.isinf(standard.scale), constant)
        unit = np.where(constant, 1, deviation[:-1])
        assert_allclose(standard.scale[~constant], unit[~constant], rtol=tol)
        own = C[:-1, :-1] / np.outer(unit, unit) + np.diag(constant)
        assert_allclose(standard.S_xx, own, rtol=0, atol=tol)
        assert_allclose(standard.S_xy, C[:-1, -1] / unit, rtol=0, atol=tol * deviation[-1])
        assert_allclose(standard.S_yy, C[-1, -1], rtol=tol, atol=tol * size[-1] ** 2)


@pytest.mark.parametrize("seed", range(25))
@pytest.mark.parametrize(
    "dtype, mean, tol", [("float64", 0, 1e-13), ("float64", 1e8, 1e-13), ("float32", 1e4, 1e-5)]
)
def test_any_sequence_of_calls_is_exact_but_for_rounding(seed, dtype, mean, tol):
    draw = np.random.default_rng(seed)
    p, dtype = int(draw.integers(1, 5)), np.dtype(dtype).type
    averages, exact, means = RunningAverages(p, dtype), Exact(p), mean * (draw.random(p) < 0.7)

    def rows(n):
        X = (draw.standard_normal((n, p)) * (draw.random((n, p)) < 0.6) + means).astype(dtype)
        return X, X.sum(axis=1, dtype=float) + draw.standard_normal(n)

    for _ in range(8):
        X, y = rows(draw.choice([1, 7, 30]))
        weights = np.ones(len(y))
        act = draw.choice(["rows", "weights", "far weights", "sparse", "merge", "adapt"])
        if act == "adapt":
            rate = draw.choice([None, 0.5, 0.02])
            exact.per = str(draw.choice(["observation", "block"])) if rate else "observation"
            exact.rate = rate and Fraction(rate)
            averages.adapt(rate, exact.per)
        elif act == "merge":
            part, known = RunningAverages(p, dtype).update(X, y), Exact(p)
            known.update(X, y, weights)
            averages = averages + part if draw.random() < 0.5 else averages.merge(part)
            exact.merge(known)
        else:
            weights = draw.choice([0, 0.5, 1, 3], len(y)) if act == "weights" else weights
            weights = 10.0 ** draw.uniform(-6, 6, len(y)) if act == "far weights" else weights
            averages.update(sp.csr_array(X) if act == "sparse" else X, y, weights)
            exact.update(X, y, weights)
        if exact.n:
            assert_exact(averages, exact, tol)


def design(kind, seed):
    """Averages and their rows, with weights (where old rows fade, the shares of 3.11)."""
    draw = np.random.default_rng(seed)
    n, p = {"p > n": (12, 20), "n < k": (5, 12), "p + 1": (13, 12)}.get(kind, (50, 12))
    X = draw.standard_normal((n, p)) @ (np.eye(p) + 0.4) * draw.uniform(0.1, 10, p)
    X += 5 * draw.standard_normal(p)
    y = (X / X.std(axis=0))[:, :4] @ draw.choice([-1, 1, 2], 4) + draw.standard_normal(n) + 3
    if kind == "constant":
        X[:, [1, 5]] = [3.0, 0.0]
    y = np.where(y > np.median(y), 1.0, -1.0) if kind == "labels" else y
    w = draw.choice([0, 0.5, 1, 3], n) if kind == "weights" else np.ones(n)
    averages = RunningAverages(p).adapt(0.05 if kind == "adapt" else None).update(X, y, w)
    return averages, (X, y, naive.fading(w, 0.05) if kind == "adapt" else w)


def assert_model(model, w, scale, mean, level, centre, tol=1e-8):
    coef = w / scale
    assert_array_equal(model.support_, np.flatnonzero(coef))
    assert_allclose(model.coef_, coef, rtol=0, atol=tol * np.abs(coef).max(initial=1e-9))
    assert_allclose(model.intercept_, centre * (level - mean @ coef), rtol=tol, atol=tol)


KINDS = ("plain", "p > n", "n < k", "p + 1", "constant", "weights", "adapt", "labels")
SHAPES = {"Lasso": {}, "ElasticNet": {"l2": 0.05}, "MCP": {"b": 3.0}, "SCAD": {"a": 3.7}}
by_kind = pytest.mark.parametrize("kind", KINDS)
by_centre = pytest.mark.parametrize("centre", [True, False])


@by_kind
@by_centre
def test_olsth_and_ofsa_are_algorithms_3_and_4_also_of_few_rows(kind, centre):
    for seed, mu in enumerate((0.0, 5.0, 300.0)):
        averages, (X, y, w) = design(kind, seed)
        S, c, *others = naive.moments(X, y, w, centre)
        free, p = (w > 0).sum() - centre, len(c)
        own, shown = {"fit_intercept": centre}, w
        if kind == "adapt":
            own["adaptation"], shown = 0.05, None
        told, rate = {"mu": mu, "n_iter": 60}, 1.2 / np.linalg.eigvalsh(S).max()
        for k in (1, 3, 11):
            full = naive.solved(S, c, np.arange(p), free)
            annealed = naive.ofsa(S, c[:, None], k=k, rate=rate, **told)
            descending = ofslib.OFSARegressor(k=k, learning_rate=rate, **told, **own)
            for model, features in (
                (ofslib.OLSthRegressor(k=k, **own), naive.top(np.abs(full), k)),
                (descending, annealed),
            ):
                expected = naive.solved(S, c, features, free) * np.isfinite(others[0])
                for learned in (model.fit(X, y, shown), model.fit_averages(averages)):
                    assert_model(learned, expected, *others, centre)


def slope(penalty, w, level, shape):
    """P'(w) of (3.4), w not zero. MCP: Zhang 2010; SCAD: Fan and Li 2001, (2.7)."""
    a = np.abs(w)
    pull = {
        "Lasso": np.full(len(w), level),
        "ElasticNet": level + shape * a,
        "MCP": np.maximum(level - a / shape, 0),
        "SCAD": np.where(a <= level, level, np.maximum(shape * level - a, 0) / (shape - 1)),
    }
    return np.sign(w) * pull[penalty]


@by_kind
@by_centre
@pytest.mark.parametrize("penalty", SHAPES)
def test_a_path_is_stationary_and_models_are_chosen_on_it(penalty, kind, centre):
    """The largest model before the first with more than k, of equals the last [code]."""
    averages, (X, y, w) = design(kind, 1)
    S, c, *others = naive.moments(X, y, w, centre)
    free, p, finite, top = (w > 0).sum() - centre, len(c), np.isfinite(others[0]), np.abs(c).max()
    own = {"fit_intercept": centre, "n_penalties": 40, "tol": 1e-11, **SHAPES[penalty]}
    cls = getattr(ofslib, f"Online{penalty}Regressor")
    levels, coefs = cls(k=p, **own).solution_path(averages)
    assert_allclose(levels, top * 0.001 ** (np.arange(len(levels)) / 39), rtol=1e-12)
    path = coefs * np.where(finite, others[0], 0)
    for level, v in zip(levels, path, strict=True):
        g, on = S @ v - c, v != 0
        shape = next(iter(SHAPES[penalty].values()), 3.0)
        assert np.abs(g[on] + slope(penalty, v[on], level, shape)).max(initial=0) < 1e-9 * top
        assert np.abs(g[~on]).max(initial=0) < level + 1e-9 * top
    sizes = (path != 0).sum(axis=1)
    for k in (1, 4, 11):
        end = np.argmax(sizes > k) if (sizes > k).any() else len(sizes)
        best = path[end - 1 - np.argmax(sizes[:end][::-1])]
        refitted = naive.solved(S, c, np.flatnonzero(best), free)
        for refit, expected in ((True, refitted), (False, best)):
            model = cls(k=k, refit=refit, **own).fit_averages(averages)
            assert_model(model, expected, *others, centre)


def test_exact_twins_have_the_ridge():
    for seed in range(40):
        draw = np.random.default_rng(seed)
        X = draw.standard_normal((60, 10)) * draw.uniform(0.1, 10, 10) + draw.standard_normal(10)
        X[:, 7], y = X[:, 0], X[:, 0] + X[:, 1] + draw.standard_normal(60)
        coef = ofslib.OLSRegressor().fit(X, y).coef_
        assert_allclose(coef[7], coef[0], rtol=1e-6)


def test_correlated_features_have_no_ridge_in_single_precision():
    """Correlations .99 ** |i - j|: the ridge, or more, would be off by a hundredth."""
    draw, p, n = np.random.default_rng(0), 400, 4000
    X = draw.standard_normal((n, p))
    for j in range(1, p):
        X[:, j] = 0.99 * X[:, j - 1] + np.sqrt(1 - 0.99**2) * X[:, j]
    y = X @ draw.standard_normal(p)
    one, other = (ofslib.OLSRegressor(dtype=t).fit(X, y).coef_ for t in ("float64", "float32"))
    assert_allclose(other, one, rtol=0, atol=1e-3 * np.abs(one).max())


@pytest.mark.parametrize("seed", range(4))
def test_rows_of_dask_are_counted_as_rows(seed):
    """(3.1) of all rows, whatever the blocks: of one row, of none, more than are merged at once."""
    dask = pytest.importorskip("dask")
    draw = np.random.default_rng(seed)
    n, p = 60, int(draw.integers(1, 6))
    X = draw.standard_normal((n, p)) * draw.uniform(0.1, 9, p) + draw.choice([0, 1e4], p)
    y = X @ draw.standard_normal(p) + draw.standard_normal(n)
    exact = Exact(p)
    exact.update(X, y, np.ones(n))
    cuts = np.sort(np.concatenate([draw.integers(0, n + 1, 20), [5, 5, 6]]))
    pieces = [slice(a, b) for a, b in zip([0, *cuts], [*cuts, n], strict=True)]
    given = [[dask.delayed(part[piece]) for piece in pieces] for part in (X, y)]
    assert_exact(RunningAverages.from_dask(*given), exact, 1e-11)
    assert_exact(RunningAverages.from_dask(*given, np.float32), exact, 1e-5)
