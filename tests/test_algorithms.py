"""Each method on rows is what its paper prints: equal to the slow transcription in naive.py.

A weight multiplies the loss of its row: its slope, and its curvature in the intercept's own step; a
mini-batch still divides by its rows; rows of weight 0 are left out. Variances of `importance` have
no weights, `online_loss_` and `online_score_` are weighted means (docs/explain/).
"""

from itertools import product

import naive
import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import is_classifier

import ofslib
from ofslib import BAMDClassifier, BARDAClassifier, FOFSClassifier, SIHTClassifier, SOFSClassifier

pytestmark = pytest.mark.filterwarnings(
    "ignore::sklearn.exceptions.ConvergenceWarning", "ignore:k=100 is greater"
)
LOSSES = ["log_loss", "hinge", "squared_hinge"]
FORMS = (np.asarray, sp.csr_matrix)
SLOPE = naive.slope


def data(kind, n=173, p=31, seed=0, classify=True):
    """Rows whose features have different scales and, except for dense ones, mostly zeros."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p)) * rng.uniform(0.2, 2, p)
    if kind != "dense":
        X *= rng.random((n, p)) < 0.2
    if kind == "counts":
        X = np.round(np.abs(X))
    if kind in ("twins", "counts"):  # pairs of equal columns: only the tie rule tells them apart
        X = np.repeat(X, 2, axis=1)
    f = X[:, :10].sum(axis=1) + 0.5 * rng.standard_normal(n)
    return X, np.where(f > np.median(f), 1.0, -1.0) if classify else f + 1


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


def weights(n, seed=1):
    """None, tiny, ordinary and large ones."""
    rng = np.random.default_rng(seed)
    weight = np.where(rng.random(n) < 0.1, 1e-9, rng.uniform(0.2, 2, n))
    return np.where(rng.random(n) < 0.04, 6.0, weight) * (rng.random(n) < 0.75)


@pytest.fixture
def page(monkeypatch):
    """page(reference, X, y, weight, ...): with weighted slopes and curvatures, if there are any."""

    def run(reference, X, y, weight, **own):
        if reference in (naive.sadmm, naive.radar, naive.sofs):
            del own["loss"]
        if weight is None:
            return reference(X, y, **own)
        used = weight[weight > 0]
        if reference is naive.sofs:
            return reference(X[weight > 0], y[weight > 0], weight=used, **own)

        def own_step(loss, eta, t, margins):
            return max(
                eta, 1 / (np.mean(naive.curvatures(loss, margins) * used[: len(margins)]) * t)
            )

        with monkeypatch.context() as patch:
            patch.setattr(naive, "slope", lambda loss, m, y: y.weight * SLOPE(loss, m, y.y))
            patch.setattr(naive, "own_step", own_step)
            return reference(X[weight > 0], Labels(y[weight > 0], used), **own)

    return run


def grid(**axes):
    return [dict(zip(axes, values, strict=True)) for values in product(*axes.values())]


# Method -> its reference, what all have, what varies, and which rows show how ties are broken.
STEP, ADAPTIVE = {"learning_rate": 0.02, "batch_size": 5}, {"learning_rate": 0.3, "delta": 0.01}
RANKED = ["coef", "scaled_coef", "scaled_root"]
OPTIMIZERS = ["sgd", "momentum", "nesterov", "adam"]
SPANS = [{"warmup": w, "maturity": T} for w, T in ((20, 120), (0, 60), (23, 111), (24, 112))]
METHODS = {
    "SFSA": (
        naive.sfsa,
        STEP | {"k": 6, "mu": 4.0},
        # Also where mini-batches do not fill warm-up and maturity, and rows after it
        [own | SPANS[i % 4] for i, own in enumerate(grid(optimizer=OPTIMIZERS, importance=RANKED))],
        "twins",
    ),
    "SGDT": (
        naive.sgdt,
        {"k": 6, "learning_rate": 0.02, "batch_size": 4},
        grid(maturity=[60, 120], importance=RANKED),
        "twins",
    ),
    # With the hinge and counts all sums are exact, and no margin is 1: no last digit decides.
    "SIHT": (
        naive.siht,
        {"k": 6, "learning_rate": 65 / 4096},
        grid(batch_size=[1, 5]),
        "counts",
    ),
    "FOFS": (
        naive.fofs,
        {"k": 6, "learning_rate": 0.3},
        grid(batch_size=[1, 5], alpha=[0.0, 0.01, 1.0]),
        "counts",
    ),
    "SOFS": (naive.sofs, {}, grid(k=[1, 6, 25], gamma=[0.01, 1.0, 100.0]), "twins"),
    "BARDA": (
        naive.barda,
        {"learning_rate": 0.5, "delta": 0.01},
        grid(alpha=[0.0, 1e-3, 0.3], k=[1, 6, 100]),
        "counts",
    ),
    "BAMD": (naive.bamd, ADAPTIVE | {"k": 6}, grid(alpha=[0.0, 1e-3, 0.3]), "counts"),
    "OPG": (
        naive.opg,
        {"learning_rate": 0.02, "l1": 0.0513},
        grid(batch_size=[1, 5], l2=[0.0, 0.3]),
        "counts",
    ),
    "TruncatedGradient": (
        naive.truncated_gradient,
        {"learning_rate": 0.02, "batch_size": 3, "l1": 0.05},
        grid(theta=[0.04, None], period=[1, 4]),
        "counts",
    ),
    "RDA": (
        naive.rda,
        {"l1": 0.03, "gamma": 20.0, "batch_size": 5},
        grid(l2=[0.0, 0.2], rho=[0.0, 0.02]),
        "counts",
    ),
    "ARDA": (naive.arda, ADAPTIVE, grid(l1=[0.0, 0.02]), "counts"),
    "AdaFobos": (naive.ada_fobos, ADAPTIVE, grid(l1=[0.0, 0.02]), "counts"),
    "SADMM": (
        naive.sadmm,
        {"learning_rate": 0.01, "batch_size": 4, "rho": 0.7},
        grid(l1=[0.1, 0.4]),
        "counts",
    ),
    # Within the ball, and on it in many of the 44 steps
    "RADAR": (
        naive.radar,
        {"k": 7, "l1": 0.1, "epoch_size": 3, "batch_size": 4},
        [{"radius": 3.0, "learning_rate": 0.1}, {"radius": 1.0, "learning_rate": 5.0}],
        "counts",
    ),
}


def found(name, loss):
    return getattr(ofslib, name + ("Regressor" if loss == "squared_error" else "Classifier"), None)


CASES = [
    pytest.param(name, loss, own, id=f"{name}-{loss}-{'-'.join(map(str, own.values()))}")
    for name, (_, _, varied, _) in METHODS.items()
    for loss in (*LOSSES, "squared_error")
    if found(name, loss) and (name != "SOFS" or loss == "squared_hinge")
    for own in varied
]


def assert_agrees(model, expected, X, y, weight=None):
    """The model learns what the reference learns, from dense and from sparse rows."""
    coef, intercept, *margins = expected
    size, used = max(1, np.abs(coef).max()), np.ones(len(y)) if weight is None else weight
    for form in FORMS:
        model.fit(form(X), y, **({} if weight is None else {"sample_weight": weight}))
        assert_allclose(model.coef_, coef, rtol=0, atol=1e-12 * size)
        assert_allclose(model.intercept_, intercept, rtol=1e-11, atol=1e-12)
        assert_array_equal(model.support_, np.flatnonzero(coef))
        if margins and np.ndim(margins[0]):
            m, y_used, w = np.array(margins[0]), y[used > 0], used[used > 0]
            loss = np.average(naive.loss(model.loss, m, y_used), weights=w)
            assert_allclose(model.online_loss_, loss, rtol=1e-10)
            right = (m > 0) == (y_used > 0)
            if not is_classifier(model):
                right, w = 1 - (1 - m / y_used) ** 2, w * y_used**2
            assert_allclose(model.online_score_, np.average(right, weights=w), atol=1e-10)
    assert 0 < len(model.support_) <= min(model.k or np.inf, X.shape[1])


@pytest.mark.parametrize(("name", "loss", "own"), CASES)
def test_it_is_the_page(page, name, loss, own):
    """The papers have no intercept."""
    reference, common, _, ties = METHODS[name]
    own = common | own
    bound = {"theta": np.inf} if own.get("theta", 0) is None else {}
    for kind, weighted, intercept in (
        ("dense", False, False),
        ("sparse", False, True),
        (ties, False, True),
        ("dense", True, True),
        ("sparse", True, False),
    ):
        X, y = data(kind, classify=loss in LOSSES)
        weight = weights(len(y)) if weighted else None
        given = own | bound | {"loss": loss, "intercept": intercept}
        model = found(name, loss)(**own, loss=loss, fit_intercept=intercept, shuffle=False)
        assert_agrees(model, page(reference, X, y, weight, **given), X, y, weight)


@pytest.mark.parametrize("batch_size", [1, 5])
@pytest.mark.parametrize("k", [1, 20, 150])
def test_fofs_and_siht_on_wide_rows(k, batch_size):
    """Of most of many features the step alone tells that they do not come to the k.

    The first row takes the coefficients almost exactly to the edge of the ball; later ones have all
    features, or few; a feature may have the one large value of its neighbourhood.
    """
    rng = np.random.default_rng(k)
    X = rng.standard_normal((80, 333)) * (
        rng.random((80, 333)) < rng.choice([0.01, 0.3, 1], (80, 1))
    )
    X[::7, 200] = 9.0
    X[20:23] = 0.0
    y = np.where(X[:, :30].sum(axis=1) + rng.standard_normal(80) > 0, 1.0, -1.0)
    own = {"k": k, "learning_rate": 0.1, "batch_size": batch_size, "loss": "hinge"}
    for alpha, edge in product([0.0, 1e-3, 1.0], [1 - 1e-7, 1 + 1e-7, 1 + 1e-9, 1.5]):
        X[:batch_size] = rng.standard_normal(333)
        X[:batch_size] *= edge * max(alpha, 0.01) ** -0.5 / 0.1 / np.linalg.norm(X[0])
        y[:batch_size] = 1.0
        expected = naive.fofs(X, y, **own, alpha=alpha, intercept=False)
        model = FOFSClassifier(**own, alpha=alpha, fit_intercept=False, shuffle=False)
        assert_agrees(model, expected, X, y)
        model = SIHTClassifier(**own, fit_intercept=False, shuffle=False)
        assert_agrees(model, naive.siht(X, y, **own, intercept=False), X, y)


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("k", [1, 7, 40])
def test_wide_rows_of_which_each_brings_many(k, ties):
    """Each row is larger than all before: most features come, and a few of them stay.

    One of them is far larger. With ties all numbers are exact, and the lower index stays. The
    second row takes the first one back, whose entries are then the largest and bring nothing; the
    third has other features, for SOFS, which has no second row, seen as well as these.
    """
    rng = np.random.default_rng(k)
    X = rng.standard_normal((24, 400))
    X = (np.sign(X) if ties else X) * 2.0 ** np.arange(24)[:, None]
    X[4::5, 300] *= 1024
    X[[0, 2]] = 0.0
    X[:2, 100 : 100 + k] = X[2, 20 : 20 + k] = 64.0
    y = rng.choice([-1.0, 1.0], 24)
    y[:3] = 1, -1, 1
    own, none = (
        {"k": k, "learning_rate": 0.125, "loss": "hinge"},
        {"fit_intercept": False, "shuffle": False},
    )
    for b in (1, 4):
        expected = naive.siht(X, y, **own, batch_size=b, intercept=False)
        assert_agrees(SIHTClassifier(**own, **none, batch_size=b), expected, X, y)
        for alpha in (0.0, 2.0**-30):
            expected = naive.fofs(X, y, **own, batch_size=b, alpha=alpha, intercept=False)
            model = FOFSClassifier(**own, **none, batch_size=b, alpha=alpha)
            assert_agrees(model, expected, X, y)
    if not ties:
        own |= {"alpha": 0.01, "delta": 0.01}
        expected = naive.bamd(X, y, **own, intercept=False)
        assert_agrees(BAMDClassifier(**own, **none), expected, X, y)
    own, X, y = {"k": k, "gamma": 2.0**20}, np.delete(X, 1, axis=0), np.delete(y, 1)
    expected = naive.sofs(X, y, **own, intercept=False)
    assert_agrees(SOFSClassifier(**own, **none), expected, X, y)


def test_a_tiny_row_of_single_numbers_stays_in_the_ball():
    """The squares of its values are nothing in float32."""
    X = (1e-24 * np.random.default_rng(0).standard_normal((1, 50))).astype(np.float32)
    own = {"k": 5, "alpha": 1.0, "learning_rate": 0.9e24, "fit_intercept": False}
    model = FOFSClassifier(**own).partial_fit(X, [1], classes=[-1, 1])
    assert 0 < np.linalg.norm(model.coef_) <= 1


def test_lazy_barda_needs_the_refresh_of_stale_bounds():
    """With a strong penalty the ranking of untouched features changes by itself.

    The gradients of feature 0 were large and of both signs (large H), feature 1 had one of medium
    size (small H): as t grows the penalty shrinks feature 1 faster, and feature 0 must come back.
    """
    X = np.zeros((60, 3))
    X[:3, :2] = [[3, 0], [2, 0], [0, 0.8]]
    X[3:, 2] = 1e-9
    y = np.ones(60)
    y[1] = -1
    own = {"k": 1, "learning_rate": 1.0, "alpha": 0.1, "delta": 0.01, "loss": "hinge"}
    supports = []
    for n in (3, 60):
        coef, *_ = naive.barda(X[:n], y[:n], **own, intercept=False)
        model = BARDAClassifier(**own, fit_intercept=False)
        model.partial_fit(sp.csr_matrix(X[:n]), y[:n], classes=[-1, 1])
        assert_allclose(model.coef_, coef, rtol=0, atol=1e-14)
        supports.append(model.support_.tolist())
    assert supports == [[1], [0]]


def test_sofs_of_two_rows_by_hand():
    """Wu et al. 2017, Algorithm 2: mu = (1/3, 1/3) and 1 / Sigma = (2, 2) after the first row.

    Then v = 1/2 and 1 - y m = 2/3, so that mu_1 = 1/3 + (2/3) / (3/2) / 2 = 5/9, 1 / Sigma_11 = 3.
    """
    model = SOFSClassifier(k=2, gamma=1, fit_intercept=False)
    model.partial_fit([[1.0, 1.0]], [1], classes=[-1, 1])
    assert_allclose(model.coef_, [1 / 3, 1 / 3], rtol=1e-15)
    model.partial_fit([[1.0, 0.0]], [1])
    assert_allclose(model.coef_, [5 / 9, 1 / 3], rtol=1e-15)
    assert_allclose(model._state.sigma[:2], [1 / 3, 1 / 2], rtol=1e-15)


# The step that follows the size of the rows


def siht_in_units(X, y, *, loss, k, batch_size, intercept):
    """learning_rate="auto": T is the mean of weight |x|^2 at the last power of two of rows."""
    y, weight = (y.y, y.weight) if isinstance(y, Labels) else (y, np.ones(len(y)))
    w, b, margins, curved = np.zeros(X.shape[1]), 0.0, [], []
    squares, c = weight * (X**2).sum(axis=1), naive.LARGEST[loss]
    for t, start in enumerate(range(0, len(y), batch_size), 1):
        part, seen = slice(start, start + batch_size), min(start + batch_size, len(y)) - 1
        T = squares[: 1 << max(seen.bit_length() - 1, 0)].mean()
        eta = 1 / c / max(T, squares[part].max() / 2 / len(y[part]))
        margins.extend(X[part] @ w + b)
        curved.extend(weight[part] * naive.curvatures(loss, margins[start:]))
        slopes = weight[part] * SLOPE(loss, np.array(margins[start:]), y[part]) / len(y[part])
        w, b = (
            w - eta * slopes @ X[part],
            b - intercept * slopes.sum() / (np.mean(curved) * t),
        )
        w = naive.truncated(w, np.abs(w), k)
    return w, b, margins


@pytest.mark.parametrize("loss", [*LOSSES, "squared_error"])
@pytest.mark.parametrize("size", [1, 5, 7])
def test_the_unit_of_the_step_counts_a_row_as_its_root(page, loss, size):
    """Rows differ in size, and the last mini-batch has fewer, of which one is heavy."""
    X, y = data("dense", classify=loss in LOSSES)
    X *= np.random.default_rng(1).lognormal(0, 0.7, len(y))[:, None]
    X[-1] *= 5
    for weight in (None, weights(len(y))):
        for intercept in (True, False):
            own = {"k": 6, "loss": loss, "batch_size": size}
            expected = page(siht_in_units, X, y, weight, **own, intercept=intercept)
            model = found("SIHT", loss)(**own, fit_intercept=intercept, shuffle=False)
            assert_agrees(model, expected, X, y, weight)
