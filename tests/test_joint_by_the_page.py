"""Several classes with the same features, at any time and in parts, by SFSA's own step.

The pages are docs/algorithms.md ("Probabilities, classes and weights", "A step size without
tuning"), docs/parallel.md and the docstrings. A mini-batch of one class is that of
test_sfsa_by_the_page.py, in plain NumPy. [code] marks what, when this was written, only the code or
a test told.
"""

import copy
from itertools import pairwise

import naive
import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from test_sfsa_by_the_page import (
    begin,
    chance,
    descend,
    growth,
    is_observed,
    lower_bound,
    observe,
    parabola,
    plan,
    slope,
    stable,
    take_noise,
    top,
)

import ofslib
from ofslib import SFSAClassifier, SFSARegressor, fit_parts

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
NEVER = 10**9  # mini-batches


def left_after(t, s):
    """M_t; no feature leaves in the mini-batches that are only observed."""
    a, whole = t - s.q, s.T - s.q
    if a <= 0 or t <= s.first:
        return s.p
    return s.k + (round((s.p - s.k) * (whole - a) / (a * s.mu + whole)) if a < whole else 0)


def importance(models, kind, seen):
    """Ranked by the l2 norm over the classes of the means, times the scale; no weights in it.

    What is there by chance is the l2 norm over the classes, too.
    """
    values = np.sqrt(sum(s.mean**2 for s in models))
    variance = np.maximum(np.mean(seen**2, axis=0) - np.mean(seen, axis=0) ** 2, 0)
    by_chance = np.sqrt(sum(chance(s) ** 2 for s in models)) if models[0].seen else 0.0 * values
    values = {
        "noise_aware": lower_bound(values, by_chance),
        "coef": values,
        "scaled_coef": np.sqrt(variance) * values,
        "scaled_root": np.sqrt(variance * values),
    }[kind]
    return np.where(models[0].model, values, -2.0)


def drop(models, left, kind, seen):
    """All drop the same; each has a step, and so a growth, of its own."""
    keep = top(importance(models, kind, seen), left)
    for s in models:
        before, s.model = stable(s, s.b), keep
        s.w, s.mean = s.w * keep, s.mean * keep
        if s.direction is not None:
            part = np.linalg.norm(s.direction * keep)
            s.lam, s.direction = s.lam * part**2, s.direction * keep / (part or 1.0)
        grown = growth(s, before)
        s.w, s.mean = s.w * grown, s.mean * grown
        s.few = False


def learn(models, x, targets, weight):
    for s, y in zip(models, targets.T, strict=True):
        margins = x @ s.w + s.w0
        take_noise(s, x, weight, slope(s.loss, margins, y), margins)
        if is_observed(s):
            observe(s, x, weight, parabola(s.loss, margins))
        if s.t >= s.first:
            descend(s, x, weight, slope(s.loss, margins, y))
        s.t += 1
        newest = min(1.0, 8.0 / (s.t - s.T if s.t > s.T else s.t))
        s.mean, s.mean0 = s.mean + newest * (s.w - s.mean), s.mean0 + newest * (s.w0 - s.mean0)
        s.few, s.entries = s.sparse and newest < 1 and s.entries <= s.model.sum(), np.sum(x != 0)


def step(models, x, targets, weight, kind, seen):
    learn(models, x, targets, weight)
    s, now = models[0], models[0].model.sum()
    left = min(left_after(s.t, s), now)
    if left < now and (not s.few or left == s.k or 16 * (now - left) >= now):
        drop(models, left, kind, seen)


def assert_shown(model, models, kind, seen):
    keep = top(importance(models, kind, seen), models[0].k)
    coef = np.array([s.mean * keep for s in models])
    rest = [(s.mean - c) @ s.sums / s.weights for s, c in zip(models, coef, strict=True)]
    constant = [s.intercept * (s.mean0 + r) for s, r in zip(models, rest, strict=True)]
    tol = {"rtol": 1e-9, "atol": 1e-10 * np.abs(coef).max()}
    assert_allclose(np.atleast_2d(model.coef_), coef, **tol)
    assert_allclose(np.atleast_1d(model.intercept_), constant, **tol)


def several(n, p, seed):
    draw = np.random.default_rng(seed)
    X = draw.standard_normal((n, p)) + 0.5 * draw.standard_normal((n, 1)) + 0.2
    y = (X[:, :6] @ draw.standard_normal((6, 4)) + draw.standard_normal((n, 4))).argmax(axis=1)
    names = np.array(["a", "b", "c", "d"])
    return X, names[y], np.where(y[:, None] == np.arange(4), 1.0, -1.0), draw


KINDS = ("coef", "scaled_coef", "scaled_root", "noise_aware")
by_kind = pytest.mark.parametrize("kind", KINDS)
by_loss = pytest.mark.parametrize("loss", ["log_loss", "hinge", "squared_hinge"])


@by_loss
@by_kind
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_all_classes_have_the_same_features_by_steps_of_their_own(loss, kind, form):
    X, y, targets, draw = several(300, 12, 0)
    X, weight = np.where(draw.random(X.shape) < 0.6, X, 0.0), draw.choice([0.5, 1.0, 2.0], 300)
    own = {"k": 3, "loss": loss, "importance": kind, "multiclass": "joint", "shuffle": False}
    model = SFSAClassifier(**own).fit(form(X), y, sample_weight=weight)
    b, T, q = plan(300, loss)
    models = [begin(12, b, T, q, 3, 5.0, loss, True, form is not np.asarray) for _ in range(4)]
    for i in range(0, 300, b):
        rows = slice(i, i + b)
        step(models, X[rows], targets[rows], weight[rows], kind, X[: i + b])
    assert_shown(model, models, kind, X)
    margins = X @ model.coef_.T + model.intercept_
    assert_allclose(model.decision_function(form(X)), margins, rtol=1e-9, atol=1e-12)
    assert_array_equal(model.predict(X), np.array(list("abcd"))[margins.argmax(axis=1)])
    if loss == "log_loss":
        P = 1 / (1 + np.exp(-margins))
        assert_allclose(model.predict_proba(X), P / P.sum(axis=1, keepdims=True), rtol=1e-9)


@by_loss
@pytest.mark.parametrize("first, growth", [(64, 2.0), (90, 1.05)])
def test_at_any_time_also_by_their_own_step(loss, first, growth):
    """25 rows a mini-batch, also in `fit`; those that are only observed by the first maturity."""
    X, y, targets, _ = several(420, 8, 1)
    own = {"k": 2, "loss": loss, "multiclass": "joint", "first_maturity": first, "growth": growth}
    model = ofslib.AnytimeSFSAClassifier(**own)
    T = -(-first // 25)
    base, making = (
        [begin(8, 25, end, start, 2, 5.0, loss, True, False) for _ in range(4)]
        for end, start in ((NEVER, NEVER - 1), (T, 0))
    )
    for s in base + making:
        s.first = min(8, max(1, T // 16))
    ready, place, following = None, 0, T
    for t, i in enumerate(range(0, 400, 25), 1):
        rows = slice(i, i + 25)
        for models in (base, making, ready):
            if models:
                step(models, X[rows], targets[rows], np.ones(25), "noise_aware", X[: i + 25])
        if t == following:
            place, ready, making = place + 1, making, copy.deepcopy(base)
            following = max(t + 1, round(T * growth**place))
            for s in making:
                s.T, s.q = following, t
        model.partial_fit(X[rows], y[rows], classes=list("abcd"))
        assert_shown(model, ready or making, "noise_aware", X[: i + 25])


@pytest.mark.parametrize("name", ["SFSA", "AnytimeSFSA", "SGDT"])
def test_rows_of_an_open_mini_batch_change_no_coefficient(name):
    """Until it is full the model does not change, but for the mean row of the intercept."""
    X, y, _, draw = several(90, 8, 2)
    X[75:] *= draw.permutation([1, 1, 1, 1, 9, 9, 9, 9])  # other variances
    own = {"k": 3, "importance": "coef", "batch_size": 25, "learning_rate": 0.02}
    model = getattr(ofslib, f"{name}Classifier")(**own)
    before = model.partial_fit(X[:75], y[:75], classes=list("abcd")).coef_.copy()
    assert_array_equal(model.partial_fit(X[75:], y[75:]).coef_, before)


def in_parts(parts, k, loss, mu, b, T, q, m, kind):
    """Parts of rows, targets and weights; the mean length m is rounded [code]."""
    p, classes = parts[0][0].shape[1], parts[0][1].shape[1]
    common = [begin(p, b, T, q, k, mu, loss, True, False) for _ in range(classes)]
    t, steps, sizes = 0, -(-m // b), np.array([len(part[0]) for part in parts])
    seen = [[] for _ in parts]
    while t < steps:
        now = common[0].model.sum()
        goal = max(common[0].k, 0.75 * now) if now > common[0].k else -1
        later = range(t + 1, steps + 1)
        end = next(s for s in later if s == steps or left_after(s, common[0]) <= goal)
        found = []
        for place, (X, targets, weight) in enumerate(parts):
            found.append(copy.deepcopy(common))
            i, j = (len(X) * min(s * b, m) // m for s in (t, end))
            for a in range(i, j, b):
                rows = slice(a, min(a + b, j))
                learn(found[-1], X[rows], targets[rows], weight[rows])
            seen[place].append(X[i:j])
        for c, s in enumerate(common):
            told, share = [models[c] for models in found], sizes / sizes.sum()
            for name in ("w", "w0", "mean", "mean0", "lam", "path"):
                mean = [a * getattr(o, name) for a, o in zip(share, told, strict=True)]
                setattr(s, name, sum(mean))
            # What counts rows or mini-batches adds up; also how many were observed [code]
            counts = ("rows", "weights", "weight_squares", "curvatures", "sums", "squares")
            noise = ("curved", "shown", "mean_squares", "slopes", "seen")
            for name in (*counts, *noise, "observed"):
                old = getattr(s, name)
                setattr(s, name, old + sum(getattr(o, name) - old for o in told))
            known = [(a, o.direction) for a, o in zip(share, told, strict=True)
                     if o.direction is not None]  # fmt: skip
            mean = sum(a * v * (1 if v @ known[0][1] >= 0 else -1) for a, v in known)
            s.direction, s.t = mean / np.linalg.norm(mean), end
        t = end
        if (left := left_after(t, common[0])) < now:
            drop(common, left, kind, np.vstack([x for part in seen for x in part]))
    return common, np.vstack([x for part in seen for x in part])


@by_kind
@pytest.mark.parametrize("loss", ["squared_error", "log_loss", "hinge", "squared_hinge"])
@pytest.mark.parametrize("sizes", [(100, 100), (191, 208, 239), (60, 20, 3, 150)], ids=str)
def test_parts_by_their_own_step(loss, kind, sizes):
    """Without `maturity` a worker's is that of m rows [code], of which a third is the warm-up."""
    X, y, targets, _ = several(sum(sizes), 16, 3)
    regression, ends = loss == "squared_error", np.cumsum([0, *sizes])
    cuts = [slice(i, j) for i, j in pairwise(ends)]
    if regression:
        y = X[:, :4].sum(axis=1) + np.sin(np.arange(len(y)))
        targets = y[:, None]
    given = {} if regression else {"class_weight": {"b": 0.5}, "multiclass": "joint"}
    weight = np.ones(len(y)) if regression else np.where(y == "b", 0.5, 1.0)
    cls = SFSARegressor if regression else SFSAClassifier
    model = cls(k=4, loss=loss, importance=kind, batch_size=5, **given)
    model = fit_parts(model, [(X[c], y[c]) for c in cuts])
    m = round(sum(sizes) / len(sizes))
    b, T, q = plan(m, loss, batch_size=5)
    parts = [(X[c], targets[c], weight[c]) for c in cuts]
    common, seen = in_parts(parts, 4, loss, (5.0, 10.0)[regression], b, T, q, m, kind)
    assert_shown(model, common, kind, seen)


def test_a_part_that_comes_late_may_stand_first():
    """Of three rows none is shown in the first round: what is not known turns no direction."""
    X, _, _, draw = several(803, 20, 4)
    y = X[:, :5].sum(axis=1) + draw.standard_normal(803)
    small, *large = ((X[i:j], y[i:j]) for i, j in ((0, 3), (3, 403), (403, 803)))
    orders = [small, *large], [large[0], small, large[1]]
    one, other = (fit_parts(SFSARegressor(k=5, batch_size=4), order).coef_ for order in orders)
    assert_allclose(one, other, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("own", [{"learning_rate": 0.05, "batch_size": 5}, {}], ids=str)
@pytest.mark.parametrize("ends", [[], [120], [60, 200]], ids=str)
def test_labels_of_weight_zero_are_not_shown_in_parts_either(own, ends):
    X, y, _, _ = several(240, 8, 5)
    keep, cuts = y != "d", zip([0, *ends], [*ends, 240], strict=True)
    parts = [(X[i:j], y[i:j], keep[i:j]) for i, j in cuts]
    model = SFSAClassifier(k=3, class_weight={"d": 0.0}, **own)
    given = fit_parts(model, [(x, labels) for x, labels, _ in parts])
    left = [(x[there], labels[there]) for x, labels, there in parts]
    without = fit_parts(SFSAClassifier(k=3, **own), left, classes=list("abcd"))
    assert given.n_samples_seen_ == without.n_samples_seen_ == keep.sum()
    assert_array_equal(given.coef_, without.coef_)


@pytest.mark.parametrize("optimizer", ["momentum", "nesterov", "adam"])
def test_of_optimizers_the_memory_is_averaged_too(optimizer):
    """Kingma and Ba's t is that of the schedule at the begin of a round [code]."""
    X, _, _, draw = several(300, 10, 6)
    y, sizes = X[:, :3].sum(axis=1) + draw.standard_normal(300), (70, 130)
    parts, alive, t, rate = [(X[:70], y[:70]), (X[70:200], y[70:200])], np.ones(10, bool), 0, 0.02
    own = {"k": 3, "learning_rate": rate, "batch_size": 10, "mu": 2.0, "fit_intercept": False}
    model = fit_parts(SFSARegressor(optimizer=optimizer, **own), parts)
    w, v, s = np.zeros((3, 10))
    left = [naive.schedule(i, 10, 0, 10, 3, 2.0) if i else 10 for i in range(11)]
    while t < 10:
        goal = max(3, 0.75 * alive.sum()) if alive.sum() > 3 else -1
        end, found = next(i for i in range(t + 1, 11) if i == 10 or left[i] <= goal), []
        for x, target in parts:
            a, b, c = w.copy(), v.copy(), s.copy()
            i, j = (len(x) * e * 10 // 100 for e in (t, end))
            for place, (z, u) in enumerate(naive.minibatches(x[i:j], target[i:j], 10), t + 1):
                at = a + 0.9 * b if optimizer == "nesterov" else a
                g = (z @ at - u) @ z / len(u) * alive
                if optimizer == "adam":
                    b, c = 0.9 * b + 0.1 * g, 0.999 * c + 0.001 * g**2
                    root = np.sqrt(c / (1 - 0.999**place)) + 1e-8
                    a = a - rate * b / (1 - 0.9**place) / root
                else:
                    b = 0.9 * b - 0.1 * rate * g
                    a = a + b
            found.append(np.array([a, b, c]))
        w, v, s = sum(n / 200 * one for n, one in zip(sizes, found, strict=True))
        t, alive = end, top(np.where(alive, np.abs(w), -1), left[end])
        w, v, s = w * alive, v * alive, s * alive
    assert_allclose(model.coef_, w, rtol=1e-9, atol=1e-12)
