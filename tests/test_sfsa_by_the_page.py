"""SFSA by default is what docs/explain/steps.md says, step by step, in plain numpy.

The reference here is as slow as it is short: the step that SFSA finds itself, intercept, schedule,
weights, sparse rows, several classes with the same features, at any time and in parts. Its pages
in docs/explain are steps, annealing, ranking, weights_and_classes and own_methods, with the
docstrings of the parameters and the sfsa paper (Algorithm 1).
[code] marks what, when it was written, only the code told. It uses nothing of ofslib.
"""

import copy
from itertools import pairwise
from types import SimpleNamespace

import naive
import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

import ofslib
from ofslib import AnytimeSFSAClassifier, SFSAClassifier, SFSARegressor, SGDTClassifier, fit_parts

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
NEVER = 10**9  # mini-batches


def parabola(loss, m):
    """a: the curvature of the parabola that touches the row's loss at m and lies above it."""
    a = np.full(len(m), naive.LARGEST[loss])
    far = np.abs(m) > 1e-3 if loss == "log_loss" else np.zeros(len(m), bool)  # 1e-3 [code]
    a[far] = np.tanh(m[far] / 2.0) / (2.0 * m[far])
    return a


def plan(n_rows, loss, maturity=None, warmup=None, batch_size=None):
    """Rows of a mini-batch, and the mini-batches T until k features are left and q before pruning.

    `n_rows`: those of all passes. T counts the mini-batch that maturity ends in, q does not.
    """
    if maturity is None:
        maturity = 3 * n_rows // 4 if loss == "squared_error" else n_rows
    warmup = maturity // 3 if warmup is None else warmup
    b = batch_size or min(25, max(1, maturity // 250))
    return b, -(-maturity // b), warmup // b


def begin(p, b, T, q, k, mu, loss, intercept=True, sparse=False, kind="noise_aware", classes=1):
    """No models yet: one, or one of each class, that keep the same features."""
    one = SimpleNamespace(
        p=p, b=b, T=T, q=q, k=min(k, p), mu=mu, loss=loss, c=naive.LARGEST[loss], sparse=sparse,
        intercept=intercept, first=min(8, max(1, T // 16)), t=0, kind=kind, seen_rows=[],
        w=np.zeros(p), w0=0.0, mean=np.zeros(p), mean0=0.0, model=np.ones(p, bool),
        direction=None, lam=0.0, observed=0, rows=0, weights=0.0, curvatures=0.0,
        weight_squares=0.0, path=0.0, seen=0, mean_squares=np.zeros(p), slopes=0.0,
        curved=0.0, shown=0, different=None,
        sums=np.zeros(p), squares=np.zeros(p), few=False, entries=0,
    )  # fmt: skip
    return [copy.deepcopy(one) for _ in range(classes)]


def observe(s, x, weight, a):
    """Take a mini-batch into what the step is made of: only these rows count there [code]."""
    s.rows += len(x)
    s.weights += weight.sum()
    s.weight_squares += (weight**2).sum()
    s.curvatures += a.sum()  # without the weights [code]
    s.sums += weight @ x
    s.squares += weight @ x**2
    x = x * s.model
    if s.direction is None:
        # The power iteration begins with the first row that is not zero [code]
        rows = np.flatnonzero(x.any(axis=1))
        if not len(rows):
            return
        s.direction, x = x[rows[0]] / np.linalg.norm(x[rows[0]]), x[rows[0] :]
        weight, a = weight[rows[0] :], a[rows[0] :]
    new = 1.0 if s.observed < s.first else 0.2
    image = x.T @ (weight * a * (x @ s.direction)) / len(x)
    s.lam += new * (max(0.0, s.direction @ image) - s.lam)  # the mean of Rayleigh quotients [code]
    if image.any():
        v = (1.0 - new) * s.lam * s.direction + new * image
        s.direction = v / np.linalg.norm(v)
    s.observed += 1


def trace(s):
    return s.squares[s.model].sum() / s.rows


def inequality(s):
    """The mean of the squared weights over the squared mean weight."""
    return (s.weight_squares / s.rows) / (s.weights / s.rows) ** 2


def stable(s, n):
    """Half of the limit below which descent with n rows is stable."""
    tr = s.c * trace(s)
    norm = max(s.lam, tr / s.model.sum()) + inequality(s) * tr / n
    return 1.0 / norm if norm > 0.0 else 0.0


def descend(s, x, weight, slopes):
    """A step of features and intercept by the mean gradient, each at half of its own rate."""
    n, half = len(x), 0.5 if s.intercept else 1.0
    g = (weight * slopes) @ x * s.model
    whole, square = stable(s, n), g @ g
    rate = min(whole, 2.0 * n * (weight @ slopes**2) / (s.c * square)) if square > 0.0 else whole
    s.path += half * rate
    s.w = s.w - half * rate * g / n
    if s.intercept:
        # The mean weight is that of the rows, `sample_weight`: 1 without [code; the page: parabola]
        own = 1.0 / (s.c * (s.weights / s.rows) * (1.0 + inequality(s) / n))
        own *= rate / whole if whole else 1.0
        s.w0 -= half * own * (weight @ slopes) / n


def left_after(t, s):
    """M_t; while it only observes no feature leaves."""
    return s.p if t <= s.first else naive.schedule(t, s.T, s.q, s.p, s.k, s.mu)


def growth(s, before):
    """Of all coefficients, which are the sums of their gradients over 1 / rate + t h."""
    after = stable(s, s.b)  # not halved, nor held back by a row [code]
    if s.loss == "squared_error" or not before or not after:
        return 1.0
    s.path *= after / before
    th = s.t * (s.curvatures / s.rows) * trace(s) / s.model.sum()
    return (1.0 / before + th) / (1.0 / after + th)


def most(values, k):
    return np.isin(np.arange(len(values)), naive.top(values, k))


def take_noise(s, x, weight, slopes, margins):
    """What the standard errors are made of: mean squares and slopes of different rows only."""
    s.curved, s.shown = s.curved + weight @ naive.curvatures(s.loss, margins), s.shown + len(x)
    new = len(x) if s.different is None else max(0, min(len(x), s.different - s.seen))
    s.mean_squares = s.mean_squares + np.square(x[:new]).sum(axis=0)
    s.slopes, s.seen = s.slopes + np.square(weight * slopes)[:new].sum(), s.seen + new


def chance(s):
    """What k of p coefficients exceed by chance: sqrt(2 log(p / k)) standard errors."""
    m2, A, S = s.mean_squares / s.seen, s.curved / s.shown, s.slopes / s.seen
    error = np.sqrt(S * m2 / s.seen) / (1.0 / s.path + A * m2) if s.path else np.zeros(s.p)
    return np.sqrt(2.0 * np.log(s.p / s.k)) * error


def lower_bound(size, by_chance):
    """The size less what it has by chance; if that is more, their ratio less 1: all below 0."""
    ratio = np.divide(size, by_chance, out=np.zeros(len(size)), where=by_chance > 0.0)
    return np.where(size > by_chance, size - by_chance, ratio - 1.0)


def importance(models):
    """What the features in the models are ranked by, and the others by less.

    It is of the l2 norm over the classes of the means, and there are no weights in its scale; what
    is there by chance is the l2 norm over the classes, too.
    """
    size, s = np.sqrt(sum(s.mean**2 for s in models)), models[0]
    if s.kind == "noise_aware":
        by_chance = np.sqrt(sum(chance(s) ** 2 for s in models)) if s.seen else 0.0 * size
        size = lower_bound(size, by_chance)
    elif s.kind != "coef":
        size = naive.measure(s.kind, size, np.vstack(s.seen_rows))
    return np.where(s.model, size, -2.0)


def prune(models, left):
    """All drop the same features; each has a step, and so a growth, of its own."""
    keep = most(importance(models), left)
    for s in models:
        before, s.model = stable(s, s.b), keep
        s.w, s.mean = s.w * keep, s.mean * keep
        if s.direction is not None:
            # The part of the direction that stays says how much of lambda does [code]
            s.direction = s.direction * keep
            part = np.linalg.norm(s.direction)
            s.lam *= part**2
            s.direction = s.direction / part if part > 0.0 else s.direction
        grown = growth(s, before)
        s.w, s.mean = s.w * grown, s.mean * grown
        s.few = False  # the next mini-batch is observed as one of four [code]


def learn(models, x, targets, weight):
    for s, y in zip(models, targets.reshape(len(x), -1).T, strict=True):
        margins = x @ s.w + s.w0
        slopes = naive.slope(s.loss, margins, y)
        take_noise(s, x, weight, slopes, margins)
        s.seen_rows.append(x)
        # The first mini-batches, then those numbered 1 more than a multiple of 4 [code], or of 16
        if s.t < s.first or s.t % (16 if s.few and s.t >= 256 else 4) == 0:
            observe(s, x, weight, parabola(s.loss, margins))
        if s.t >= s.first:
            descend(s, x, weight, slopes)
        s.t += 1
        # A mean in which about the last eighth counts, begun anew after maturity; 8 / t [code]
        newest = min(1.0, 8.0 / (s.t - s.T if s.t > s.T else s.t))
        s.mean = s.mean + newest * (s.w - s.mean)
        s.mean0 += newest * (s.w0 - s.mean0)
        # Sparse rows change numbers of few features where the mini-batch before had no more entries
        # than there are features in the model, but while the mean is the newest iterate [code]
        s.few = s.sparse and newest < 1.0 and s.entries <= s.model.sum()
        s.entries = np.count_nonzero(x)


def step(models, x, targets, weight):
    """One mini-batch."""
    learn(models, x, targets, weight)
    s, now = models[0], models[0].model.sum()
    left = min(left_after(s.t, s), now)
    if left < now and (not s.few or left == s.k or 16 * (now - left) >= now):
        prune(models, left)


def shown(models):
    """The k most important coefficients; the intercept takes over what the others say of the mean
    row, that of the rows observed [code]."""
    keep = most(importance(models), models[0].k)
    coef = np.array([s.mean * keep for s in models])
    rest = [
        (s.mean - c) @ s.sums / s.weights if s.weights else 0.0
        for s, c in zip(models, coef, strict=True)
    ]
    return coef, [s.intercept * (s.mean0 + r) for s, r in zip(models, rest, strict=True)]


def sfsa(X, y, *, k=10, loss="log_loss", mu=None, weight=None, n_passes=1, seed=None, kind=None,
         intercept=True, sparse=False, finish=True, **given):  # fmt: skip
    """Coefficients and intercept after each pass; y of labels is -1 and +1, a column a class.

    `seed`: of the order, new in each pass; None: rows in their own. Rows of weight 0 are not shown.
    `given`: maturity, warmup and batch_size. `sparse`: as a sparse matrix is learned. `finish`: the
    last mini-batch counts, as in `fit`, also if it is not full.
    """
    weight = np.ones(len(y)) if weight is None else np.asarray(weight, float)
    X, y, weight = X[weight > 0.0], y[weight > 0.0], weight[weight > 0.0]
    n, p = X.shape
    mu = (10.0 if loss == "squared_error" else 5.0) if mu is None else mu
    b, T, q = plan(n * n_passes, loss, **given)
    classes, kind = y.size // n, kind or "noise_aware"
    models = begin(p, b, T, q, k, mu, loss, intercept, sparse, kind, classes)
    for s in models:
        s.different = n if finish else None  # `partial_fit` takes all rows as new
    draw, open_rows, found = np.random.RandomState(seed), [], []
    for i in range(n_passes):
        order = np.arange(n) if seed is None else draw.permutation(n)
        open_rows = [*open_rows, *order]
        while len(open_rows) >= b or (open_rows and finish and i == n_passes - 1):
            rows, open_rows = open_rows[:b], open_rows[b:]
            step(models, X[rows], y[rows], weight[rows])
        found.append(shown(models))
    return found


FORMS = {"array": np.asarray, "csr": sp.csr_matrix}
LOSSES = list(naive.LARGEST)
KINDS = ["noise_aware", "coef", "scaled_coef", "scaled_root"]
by_loss = pytest.mark.parametrize("loss", LOSSES)
by_label_loss = pytest.mark.parametrize("loss", LOSSES[1:])
by_form = pytest.mark.parametrize("form", FORMS)
by_kind = pytest.mark.parametrize("kind", KINDS)


def rows(n, p, loss, filled=1.0, heavy=0.0):
    """Correlated features off the origin, a share `filled` of them not zero; unequal classes."""
    draw = np.random.default_rng(0)
    X = draw.standard_normal((n, p)) + 0.7 * draw.standard_normal((n, 1)) + 0.2
    X[draw.random(n) < heavy] *= 30.0
    X = np.where(draw.random((n, p)) < filled, X, 0.0)
    y = X[:, :5].sum(axis=1) + draw.standard_normal(n) + 0.5
    return X, y if loss == "squared_error" else np.where(y > 1.5, 1.0, -1.0)


def several(n, p, seed):
    draw = np.random.default_rng(seed)
    X = draw.standard_normal((n, p)) + 0.5 * draw.standard_normal((n, 1)) + 0.2
    y = (X[:, :6] @ draw.standard_normal((6, 4)) + draw.standard_normal((n, 4))).argmax(axis=1)
    names = np.array(["a", "b", "c", "d"])
    return X, names[y], np.where(y[:, None] == np.arange(4), 1.0, -1.0), draw


def estimator(loss, **own):
    return (SFSARegressor if loss == "squared_error" else SFSAClassifier)(loss=loss, **own)


def assert_shown(model, expected):
    coef, constant = expected
    assert_array_equal(model.support_, np.flatnonzero(coef.any(axis=0)))
    # Sums in another order: rounding, of the largest coefficient
    tol = {"rtol": 1e-9, "atol": 1e-10 * np.abs(coef).max()}
    assert_allclose(np.atleast_2d(model.coef_), coef, **tol)
    assert_allclose(np.atleast_1d(model.intercept_), constant, **tol)


# The rows, what the page is told, and how the model differs. The last mini-batch is not full.
SITUATIONS = {
    "by default": ((503, 30, 1.0, 0.02), {"seed": 0}),
    # Fewer entries than features in the model, or more; also beyond 256 mini-batches. Weights:
    # else the intercept alone has margins of 1, the kink of the hinge, but for rounding.
    "few entries": ((490, 60, 0.35), {"seed": 1, "k": 21, "weight": 0.5}),
    "rare features": ((2400, 300, 0.02), {"k": 20, "weight": 0.5, "batch_size": 5, "kind": "coef"}),
    # No warm-up, too: features leave from the first step on, but none before it.
    "without an intercept": ((400, 50), {"k": 5, "warmup": 0, "intercept": False}),
    "mini-batches of 25": ((503, 12), {"k": 3, "n_passes": 17, "seed": 2, "weight": 0.3}),
    "pruning within 8 mini-batches": ((20, 40), {}),
    "scaled_coef": ((310, 20, 0.7), {"k": 4, "kind": "scaled_coef"}),
    "scaled_root": ((310, 20, 0.7), {"k": 4, "kind": "scaled_root", "maturity": 200}),
}


@by_loss
@by_form
@pytest.mark.parametrize("situation", SITUATIONS)
def test_it_is_the_page(loss, form, situation):
    size, told = SITUATIONS[situation]
    (X, y), own = rows(*size[:2], loss, *size[2:]), dict(told)
    if "weight" in own:
        own["weight"] = own["weight"] + np.random.default_rng(1).random(len(y))
    expected = sfsa(X, y, loss=loss, sparse=form == "csr", **own)[-1]
    weight, seed = own.pop("weight", None), own.pop("seed", None)
    own |= {"fit_intercept": own.pop("intercept", True), "importance": own.pop("kind", None)}
    model = estimator(loss, shuffle=seed is not None, random_state=seed, **own)
    assert_shown(model.fit(FORMS[form](X), y, sample_weight=weight), expected)
    assert own["fit_intercept"] or model.intercept_ == 0.0


@by_loss
@by_form
def test_it_is_the_page_with_weights_after_each_of_several_passes(loss, form):
    """Rows in their own order; a quarter of them have the weight 0, which `maturity` knows not.

    The last mini-batch of each pass is full: rows of an open one count in the mean row already.
    """
    X, y = rows(400, 12, loss, filled=0.7)
    weight = np.random.default_rng(1).permutation(np.tile([0.0, 0.3, 1.1, 2.0], 100))
    n = np.count_nonzero(weight) * 3
    own = {"loss": loss, "k": 4, "maturity": 3 * n // 4 if loss == "squared_error" else n}
    expected = sfsa(X, y, weight=weight, n_passes=3, sparse=form == "csr", finish=False, **own)
    model = estimator(**own)
    for after in expected:
        assert_shown(model.partial_fit(FORMS[form](X), y, sample_weight=weight), after)


# Several classes with the same features


@by_label_loss
@by_kind
@by_form
def test_all_classes_have_the_same_features_by_steps_of_their_own(loss, kind, form):
    X, y, targets, draw = several(300, 12, 0)
    X, weight = np.where(draw.random(X.shape) < 0.6, X, 0.0), draw.choice([0.5, 1.0, 2.0], 300)
    own = {"k": 3, "loss": loss}
    model = SFSAClassifier(importance=kind, multiclass="joint", shuffle=False, **own)
    model.fit(FORMS[form](X), y, sample_weight=weight)
    assert_shown(model, sfsa(X, targets, weight=weight, kind=kind, sparse=form == "csr", **own)[-1])
    margins = X @ model.coef_.T + model.intercept_
    assert_allclose(model.decision_function(FORMS[form](X)), margins, rtol=1e-9, atol=1e-12)
    assert_array_equal(model.predict(X), np.array(list("abcd"))[margins.argmax(axis=1)])
    if loss == "log_loss":
        P = 1 / (1 + np.exp(-margins))
        assert_allclose(model.predict_proba(X), P / P.sum(axis=1, keepdims=True), rtol=1e-9)


@pytest.mark.parametrize("kind", KINDS[1:])
@pytest.mark.parametrize("cls", [SFSAClassifier, SGDTClassifier])
def test_with_a_constant_step_features_are_ranked_by_their_norm_over_the_classes(cls, kind):
    X, labels, targets, _ = several(350, 12, 7)
    own = {"learning_rate": 0.05, "batch_size": 9, "loss": "log_loss", "importance": kind}
    model = cls(k=4, multiclass="joint", shuffle=False, maturity=300, **own)

    def left(t):
        if cls is SFSAClassifier:
            return naive.schedule(t, 34, 0, 12, 4, model.mu)
        return 12 if t < 34 else 4

    # Of several scales: else their squares, times those, would rank features as norms do.
    X = X * np.linspace(0.3, 1.5, 12)
    coef, intercept, _ = naive.joint(X, targets.T, left, **own)
    for form in FORMS.values():
        model.fit(form(X), labels)
        assert_allclose(model.coef_, coef, rtol=0, atol=1e-12)
        assert_allclose(model.intercept_, intercept, rtol=1e-11)
        assert model.support_.tolist() == np.flatnonzero(coef.any(axis=0)).tolist()


def arrays(nested):
    return [a for one in nested for a in arrays(one)] if isinstance(nested, tuple) else [nested]


@by_form
@pytest.mark.parametrize(
    "model",
    [
        SFSAClassifier(learning_rate=0.05, batch_size=9),
        SFSAClassifier(),
        SFSAClassifier(learning_rate=0.01, optimizer="adam", importance="scaled_coef"),
        SFSAClassifier(forget=100),
        AnytimeSFSAClassifier(first_maturity=60),
        SGDTClassifier(maturity=200),
    ],
    ids=str,
)
def test_classes_that_keep_all_features_learn_as_if_each_were_alone(model, form):
    """Bit for bit, as nothing is left of what they do together."""
    X, y, _, _ = several(350, 12, 8)
    for weight in (None, np.linspace(0.5, 2.0, 350)):
        together, alone = (
            clone(model)
            .set_params(multiclass=multiclass, k=12, random_state=0)
            .fit(FORMS[form](X), y, weight)
            for multiclass in ("joint", "ovr")
        )
        for name in ("coef_", "intercept_", "online_loss_", "online_score_"):
            assert_array_equal(getattr(together, name), getattr(alone, name))
        for one, other in zip(together._states, alone._states, strict=True):
            for mine, its in zip(arrays(one), arrays(other), strict=True):
                assert_array_equal(mine, its)


# At any time


@by_label_loss
@pytest.mark.parametrize("first, growth", [(64, 2.0), (90, 1.05)])
def test_at_any_time_also_by_their_own_step(loss, first, growth):
    """25 rows a mini-batch, also in `fit`; those that are only observed by the first maturity."""
    X, y, targets, _ = several(420, 8, 1)
    own = {"k": 2, "loss": loss, "multiclass": "joint", "first_maturity": first, "growth": growth}
    model = AnytimeSFSAClassifier(**own)
    T = -(-first // 25)
    base, making = (
        begin(8, 25, end, start, 2, 5.0, loss, classes=4)
        for end, start in ((NEVER, NEVER - 1), (T, 0))
    )
    for s in base + making:
        s.first = min(8, max(1, T // 16))
    ready, place, following = None, 0, T
    for t, i in enumerate(range(0, 400, 25), 1):
        part = slice(i, i + 25)
        for models in (base, making, ready):
            if models:
                step(models, X[part], targets[part], np.ones(25))
        if t == following:
            place, ready, making = place + 1, making, copy.deepcopy(base)
            following = max(t + 1, round(T * growth**place))
            for s in making:
                s.T, s.q = following, t
        model.partial_fit(X[part], y[part], classes=list("abcd"))
        assert_shown(model, shown(ready or making))


@pytest.mark.parametrize("name", ["SFSA", "AnytimeSFSA", "SGDT"])
def test_rows_of_an_open_mini_batch_change_no_coefficient(name):
    """Until it is full the model does not change, but for the mean row of the intercept."""
    X, y, _, draw = several(90, 8, 2)
    X[75:] *= draw.permutation([1, 1, 1, 1, 9, 9, 9, 9])  # other variances
    own = {"k": 3, "importance": "coef", "batch_size": 25, "learning_rate": 0.02}
    model = getattr(ofslib, f"{name}Classifier")(**own)
    before = model.partial_fit(X[:75], y[:75], classes=list("abcd")).coef_.copy()
    assert_array_equal(model.partial_fit(X[75:], y[75:]).coef_, before)


# In parts


def in_parts(parts, k, loss, mu, b, T, q, m, kind):
    """Parts of rows, targets and weights; the mean length m is rounded [code]."""
    p, classes = parts[0][0].shape[1], parts[0][1].shape[1]
    common = begin(p, b, T, q, k, mu, loss, kind=kind, classes=classes)
    t, steps, sizes = 0, -(-m // b), np.array([len(part[0]) for part in parts])
    while t < steps:
        now = common[0].model.sum()
        goal = max(common[0].k, 0.75 * now) if now > common[0].k else -1
        later = range(t + 1, steps + 1)
        end = next(s for s in later if s == steps or left_after(s, common[0]) <= goal)
        found = []
        for X, targets, weight in parts:
            found.append(copy.deepcopy(common))
            i, j = (len(X) * min(s * b, m) // m for s in (t, end))
            for a in range(i, j, b):
                part = slice(a, min(a + b, j))
                learn(found[-1], X[part], targets[part], weight[part])
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
            known = len(s.seen_rows)
            s.seen_rows = sum([o.seen_rows[known:] for o in told], s.seen_rows)
            known = [(a, o.direction) for a, o in zip(share, told, strict=True)
                     if o.direction is not None]  # fmt: skip
            mean = sum(a * v * (1 if v @ known[0][1] >= 0 else -1) for a, v in known)
            s.direction, s.t = mean / np.linalg.norm(mean), end
        t = end
        if (left := left_after(t, common[0])) < now:
            prune(common, left)
    return shown(common)


@by_kind
@by_loss
@pytest.mark.parametrize("sizes", [(191, 208, 239), (60, 20, 3, 150)], ids=str)
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
    model = estimator(loss, k=4, importance=kind, batch_size=5, **given)
    model = fit_parts(model, [(X[c], y[c]) for c in cuts])
    m = round(sum(sizes) / len(sizes))
    b, T, q = plan(m, loss, batch_size=5)
    parts = [(X[c], targets[c], weight[c]) for c in cuts]
    mu = 10.0 if regression else 5.0
    assert_shown(model, in_parts(parts, 4, loss, mu, b, T, q, m, kind))


@pytest.mark.parametrize("optimizer", ["sgd", "momentum", "nesterov", "adam"])
def test_of_optimizers_the_memory_is_averaged_too(optimizer):
    """Kingma and Ba's t is that of the schedule at the begin of a round [code]."""
    X, _, _, draw = several(300, 10, 6)
    y, sizes = X[:, :3].sum(axis=1) + draw.standard_normal(300) + 1.0, (70, 130)
    parts, alive, t, rate = [(X[:70], y[:70]), (X[70:200], y[70:200])], np.ones(10, bool), 0, 0.02
    own = {"k": 3, "learning_rate": rate, "batch_size": 10, "mu": 2.0}
    model = fit_parts(SFSARegressor(optimizer=optimizer, **own), parts)
    w, v, s, constant = *np.zeros((3, 10)), 0.0
    left = [naive.schedule(i, 10, 0, 10, 3, 2.0) if i else 10 for i in range(11)]
    while t < 10:
        goal = max(3, 0.75 * alive.sum()) if alive.sum() > 3 else -1
        end, found = next(i for i in range(t + 1, 11) if i == 10 or left[i] <= goal), []
        for x, target in parts:
            a, b, c, a0 = w.copy(), v.copy(), s.copy(), constant
            i, j = (len(x) * e * 10 // 100 for e in (t, end))
            for place, (z, u) in enumerate(naive.minibatches(10, x[i:j], target[i:j]), t + 1):
                at = a + 0.9 * b if optimizer == "nesterov" else a
                slopes = (z @ at + a0 - u) / len(u)
                g, a0 = slopes @ z * alive, a0 - max(rate, 1 / place) * slopes.sum()
                a, b, c = naive.moved(optimizer, a, b, c, g, place, rate)
            found.append((np.array([a, b, c]), a0))
        shares = [n / 200 for n in sizes]
        w, v, s = sum(share * one for share, (one, _) in zip(shares, found, strict=True))
        constant = sum(share * a0 for share, (_, a0) in zip(shares, found, strict=True))
        t, alive = end, most(np.where(alive, np.abs(w), -1), left[end])
        w, v, s = w * alive, v * alive, s * alive
    assert_allclose(model.coef_, w, rtol=1e-9, atol=1e-12)
    assert_allclose(model.intercept_, constant, rtol=1e-9)


def test_a_part_that_comes_late_may_stand_first():
    """Of three rows none is shown in the first round: what is not known turns no direction."""
    X, _, _, draw = several(803, 20, 4)
    y = X[:, :5].sum(axis=1) + draw.standard_normal(803)
    small, *large = ((X[i:j], y[i:j]) for i, j in ((0, 3), (3, 403), (403, 803)))
    orders = [small, *large], [large[0], small, large[1]]
    one, other = (fit_parts(SFSARegressor(k=5, batch_size=4), order).coef_ for order in orders)
    assert_allclose(one, other, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("own", [{"learning_rate": 0.05, "batch_size": 5}, {}], ids=str)
@pytest.mark.parametrize("ends", [[], [60, 200]], ids=str)
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


def test_a_warmup_counts_the_rows_of_all_parts_also_by_default(tmp_path):
    X, y = rows(600, 12, "squared_error")
    parts = [(X[i : i + 120], y[i : i + 120]) for i in range(0, 600, 120)]
    own = {"k": 3, "learning_rate": 0.02, "warmup": 150}
    given = fit_parts(SFSARegressor(**own, maturity=600), parts)
    model = fit_parts(SFSARegressor(**own), parts)
    assert_array_equal(model.coef_, given.coef_)
    # A file holds the parameters, of all parts, and how many rows these had.
    model.save(tmp_path / "model.ofs")
    again = SFSARegressor.load(tmp_path / "model.ofs")
    assert_array_equal(again.partial_fit(X, y).coef_, model.partial_fit(X, y).coef_)
    few = [(X[:2], y[:2]), (X[2:5], y[2:5])]  # it may take all rows but one
    assert len(fit_parts(model.set_params(warmup=4), few).support_) == 3
    with pytest.raises(ValueError, match="warmup=5 rows must be less than maturity=5 rows"):
        fit_parts(model.set_params(warmup=5), few)
