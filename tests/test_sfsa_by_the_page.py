"""SFSA by default is what docs/algorithms.md says, step by step, in plain numpy.

The reference here is as slow as it is short: the step that SFSA finds itself, intercept, schedule,
weights and sparse rows, from "A step size without tuning" and "Details that the papers leave open",
the docstrings of the parameters and the sfsa paper (Algorithm 1). [code] marks what, when it was
written, only the code told. It uses nothing of ofslib.
"""

from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

from ofslib import SFSAClassifier, SFSARegressor

# The largest curvature c of each loss; the hinge, which has none, counts as 1 [code]
CURVATURE = {"squared_error": 1.0, "log_loss": 0.25, "hinge": 1.0, "squared_hinge": 2.0}


def slope(loss, m, y):
    """The derivative of the loss of each row by its margin; of the hinge 0 where y m = 1."""
    gap = np.maximum(0.0, 1.0 - y * m)
    return {
        "squared_error": m - y,
        "log_loss": -y / (1.0 + np.exp(np.minimum(y * m, 700.0))),
        "hinge": -y * (gap > 0.0),
        "squared_hinge": -2.0 * y * gap,
    }[loss]


def parabola(loss, m):
    """a: the curvature of the parabola that touches the row's loss at m and lies above it."""
    a = np.full(len(m), CURVATURE[loss])
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


def begin(p, b, T, q, k, mu, loss, intercept, sparse):
    """No model yet."""
    return SimpleNamespace(
        p=p, b=b, T=T, q=q, k=min(k, p), mu=mu, loss=loss, c=CURVATURE[loss], sparse=sparse,
        intercept=intercept, first=min(8, max(1, T // 16)), t=0,
        w=np.zeros(p), w0=0.0, mean=np.zeros(p), mean0=0.0, model=np.ones(p, bool),
        direction=None, lam=0.0, observed=0, rows=0, weights=0.0, curvatures=0.0,
        weight_squares=0.0, kind=None, path=0.0, seen=0, mean_squares=np.zeros(p), slopes=0.0,
        curved=0.0, shown=0, different=None,
        sums=np.zeros(p), squares=np.zeros(p), few=False, entries=0,
    )  # fmt: skip


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


def features_left(s):
    """M_t: rounded to the nearest number, halves to the even one [code]."""
    t, T = s.t - s.q, s.T - s.q
    if t <= 0 or s.t <= s.first:
        return s.model.sum()
    rest = round((s.p - s.k) * (T - t) / (t * s.mu + T)) if t < T else 0
    return min(s.k + rest, s.model.sum())


def growth(s, before):
    """Of all coefficients, which are the sums of their gradients over 1 / rate + t h."""
    after = stable(s, s.b)  # not halved, nor held back by a row [code]
    if s.loss == "squared_error" or not before or not after:
        return 1.0
    s.path *= after / before
    th = s.t * (s.curvatures / s.rows) * trace(s) / s.model.sum()
    return (1.0 / before + th) / (1.0 / after + th)


def top(values, k):
    """The k largest; of equals the lower index."""
    return np.isin(np.arange(len(values)), np.argsort(-values, kind="stable")[:k])


def curvature_at(loss, m):
    """The second derivative of the loss; of the others the largest there is [code]."""
    p = 1.0 / (1.0 + np.exp(-np.clip(m, -700.0, 700.0)))
    return p * (1.0 - p) if loss == "log_loss" else np.full(len(m), CURVATURE[loss])


def take_noise(s, x, weight, slopes, margins):
    """What the standard errors are made of: mean squares and slopes of different rows only."""
    s.curved, s.shown = s.curved + weight @ curvature_at(s.loss, margins), s.shown + len(x)
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


def values(s):
    """What the features in the model are ranked by, and the others by less."""
    size = np.abs(s.mean)
    value = size if s.kind == "coef" else lower_bound(size, chance(s))
    return np.where(s.model, value, -2.0)


def prune(s, left):
    before = stable(s, s.b)
    s.model = top(values(s), left)
    s.w, s.mean = s.w * s.model, s.mean * s.model
    if s.direction is not None:
        # The part of the direction that stays says how much of lambda does [code]
        s.direction = s.direction * s.model
        part = np.linalg.norm(s.direction)
        s.lam *= part**2
        s.direction = s.direction / part if part > 0.0 else s.direction
    grown = growth(s, before)
    s.w, s.mean = s.w * grown, s.mean * grown


def is_observed(s):
    """The first mini-batches, then those numbered 1 more than a multiple of 4 [code], or of 16."""
    seldom = 16 if s.few and s.t >= 256 else 4
    return s.t < s.first or s.t % seldom == 0


def step(s, x, y, weight):
    """One mini-batch."""
    margins = x @ s.w + s.w0
    slopes = slope(s.loss, margins, y)
    take_noise(s, x, weight, slopes, margins)
    if is_observed(s):
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
    left, now = features_left(s), s.model.sum()
    if left < now and (not s.few or left == s.k or 16 * (now - left) >= now):
        prune(s, left)
        s.few = False  # the next mini-batch is observed as one of four [code]


def shown(s):
    """The k most important coefficients; the intercept takes over what the others say of the mean
    row, that of the rows observed [code]."""
    coef = s.mean * top(values(s), s.k)
    others = (s.mean - coef) @ s.sums / s.weights if s.intercept and s.weights else 0.0
    return np.flatnonzero(coef), coef, s.mean0 + others


def sfsa(X, y, *, k=10, loss="log_loss", mu=None, weight=None, n_passes=1, seed=None,
         intercept=True, sparse=False, finish=True, **given):  # fmt: skip
    """Features selected, coefficients and intercept after each pass; y of labels is -1 and +1.

    `seed`: of the order, new in each pass; None: rows in their own. Rows of weight 0 are not shown.
    `given`: maturity, warmup and batch_size. `sparse`: as a sparse matrix is learned. `finish`: the
    last mini-batch counts, as in `fit`, also if it is not full.
    """
    weight = np.ones(len(y)) if weight is None else np.asarray(weight, float)
    X, y, weight = X[weight > 0.0], y[weight > 0.0], weight[weight > 0.0]
    n, p = X.shape
    mu = (10.0 if loss == "squared_error" else 5.0) if mu is None else mu
    s = begin(p, *plan(n * n_passes, loss, **given), k, mu, loss, intercept, sparse)
    s.different = n if finish else None  # `partial_fit` takes all rows as new
    draw, open_rows, models = np.random.RandomState(seed), [], []
    for i in range(n_passes):
        order = np.arange(n) if seed is None else draw.permutation(n)
        open_rows = [*open_rows, *order]
        while len(open_rows) >= s.b or (open_rows and finish and i == n_passes - 1):
            rows, open_rows = open_rows[: s.b], open_rows[s.b :]
            step(s, X[rows], y[rows], weight[rows])
        models.append(shown(s))
    return models


FORMS = {"array": np.asarray, "csr": sp.csr_matrix}
LOSSES = list(CURVATURE)
everywhere = [pytest.mark.parametrize("loss", LOSSES), pytest.mark.parametrize("form", FORMS)]


def on_all(test):
    """Each loss, rows as an array and as a sparse matrix."""
    for mark in everywhere:
        test = mark(test)
    return test


def rows(n, p, loss, filled=1.0, heavy=0.0):
    """Correlated features off the origin, a share `filled` of them not zero; unequal classes."""
    draw = np.random.default_rng(0)
    X = draw.standard_normal((n, p)) + 0.7 * draw.standard_normal((n, 1)) + 0.2
    X[draw.random(n) < heavy] *= 30.0
    X = np.where(draw.random((n, p)) < filled, X, 0.0)
    y = X[:, :5].sum(axis=1) + draw.standard_normal(n) + 0.5
    return X, y if loss == "squared_error" else np.where(y > 1.5, 1.0, -1.0)


def estimator(loss, **own):
    return (SFSARegressor if loss == "squared_error" else SFSAClassifier)(loss=loss, **own)


def assert_same(model, expected):
    support, coef, constant = expected
    assert_array_equal(model.support_, support)
    # Sums in another order: rounding, of the largest coefficient
    assert_allclose(model.coef_, coef, rtol=1e-9, atol=1e-10 * np.abs(coef).max())
    assert_allclose(model.intercept_, constant, rtol=1e-9, atol=1e-10 * np.abs(coef).max())


@on_all
def test_it_is_the_page_by_default(loss, form):
    """One shuffled pass of rows of 30 features, some heavy, the last mini-batch not full."""
    X, y = rows(503, 30, loss, heavy=0.02)
    expected = sfsa(X, y, loss=loss, seed=0, sparse=form == "csr")
    assert_same(estimator(loss, random_state=0).fit(FORMS[form](X), y), expected[-1])


@on_all
def test_it_is_the_page_where_rows_have_few_entries(loss, form):
    """Fewer than there are features in the model, or more; also beyond 256 mini-batches."""
    X, y = rows(490, 60, loss, filled=0.35)
    # Weights of all kinds: else the intercept alone has margins of 1, the kink of the hinge, but
    # for rounding, which then decides the slope
    weight = 0.5 + np.random.default_rng(1).random(len(y))
    own = {"loss": loss, "k": 21}
    expected = sfsa(X, y, weight=weight, seed=1, sparse=form == "csr", **own)
    model = estimator(random_state=1, **own).fit(FORMS[form](X), y, sample_weight=weight)
    assert_same(model, expected[-1])


@on_all
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
        assert_same(model.partial_fit(FORMS[form](X), y, sample_weight=weight), after)


@on_all
def test_it_is_the_page_without_an_intercept(loss, form):
    """With no warm-up, too: features leave from the first step on, but none before it.

    Rows without zeros are learned as sparse ones do where they have as many entries as features.
    """
    X, y = rows(400, 50, loss)
    own = {"loss": loss, "k": 5, "warmup": 0}
    expected = sfsa(X, y, intercept=False, sparse=form == "csr", **own)
    model = estimator(fit_intercept=False, shuffle=False, **own).fit(FORMS[form](X), y)
    assert_same(model, expected[-1])
    assert model.intercept_ == 0.0


@on_all
def test_it_is_the_page_where_rows_are_many(loss, form):
    """So many passes that mini-batches have 25 rows."""
    X, y = rows(503, 12, loss)
    weight = 0.3 + np.random.default_rng(2).random(len(y))
    own = {"loss": loss, "k": 3, "n_passes": 17}
    expected = sfsa(X, y, weight=weight, seed=2, sparse=form == "csr", **own)
    model = estimator(random_state=2, **own).fit(FORMS[form](X), y, sample_weight=weight)
    assert_same(model, expected[-1])


@on_all
def test_it_is_the_page_where_pruning_begins_within_8_mini_batches(loss, form):
    """The direction of lambda is of length one, too, before the mean of the iterates is a mean."""
    X, y = rows(20, 40, loss)
    expected = sfsa(X, y, loss=loss, sparse=form == "csr")
    assert_same(estimator(loss, shuffle=False).fit(FORMS[form](X), y), expected[-1])
