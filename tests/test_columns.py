"""Streams of columns: equal to slow transcriptions of the `os` paper, and what they promise.

What arguments are refused, test_bad_input.py says.
"""

import pickle

import naive
import numpy as np
import pandas as pd
import pytest
import scipy.linalg
import scipy.sparse as sp
from estimators import accepted, public
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import ConvergenceWarning

import ofslib
from ofslib.kernels.working_set import IN_USE
from ofslib.streams import column_stream
from ofslib.streams.column_stream import ColumnModel, ColumnStream, ScoredSelector

LOSSES = ("squared_error", "squared_hinge", "log_loss")
CLASSES = {cls.__name__: cls for cls in public(ColumnModel)}
OTHERS = {  # those without a model
    cls.__name__: cls
    for cls in public((ColumnStream, ScoredSelector))
    if cls.__name__ not in CLASSES
}
every_loss = pytest.mark.parametrize("loss", LOSSES)


def columns(n=40, p=24, seed=0, common=0.5):
    """Correlated columns in many units, three of which matter."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p)) + common * rng.standard_normal((n, 1))
    y = X[:, [2, 9, 17]] @ [1.0, -1.5, 1.2] + 0.3 * rng.standard_normal(n) + 1.0
    return X * np.geomspace(0.01, 100, p) + np.linspace(-3, 3, p), y


def target(loss, y):
    return y if loss == "squared_error" else np.where(y > np.median(y), 1.0, -1.0)


def scaled(X):
    """Columns as they are kept without an intercept."""
    return X / np.sqrt(np.mean(X**2, axis=0))


def half(loss, l1):
    """The paper's penalty: its squared hinge (3) is half of ours."""
    return l1 / 2 if loss == "squared_hinge" else l1


def new(cls, **own):
    """With few features, all that is random fixed."""
    wanted = {"k": 4, "random_state": 0, "l1": 0.05}
    return cls(**{a: v for a, v in wanted.items() if a in cls().get_params()} | own)


def raw(cls, **own):
    """The coefficients of the algorithm itself."""
    return new(cls, refit=False, fit_intercept=False, **own)


def assert_same(one, two):
    assert one.coef_.tobytes() == two.coef_.tobytes()
    assert one.intercept_ == two.intercept_
    assert one.objective_ == two.objective_


@pytest.mark.filterwarnings("ignore:k=.*is greater than n_features", "ignore:No features were")
@pytest.mark.parametrize(
    ("cls", "own"),
    [
        *((cls, {}) for cls in (*CLASSES.values(), *OTHERS.values(), ofslib.SparseEmbedding)),
        (ofslib.OnlineSubstitution, {"loss": "squared_hinge"}),
        (ofslib.OnlineLeverageSelector, {"variant": "ridge"}),
        (ofslib.OnlineLeverageSelector, {"k": 2}),
        (ofslib.RidgeLeverageSelector, {"sample": False}),
    ],
)
def test_scikit_learn_accepts_it(cls, own):
    accepted(cls(**own))


# The algorithms as printed


@every_loss
@pytest.mark.parametrize(
    ("k", "common", "own"),
    [
        *((5, 1.5, own) for own in ({}, {"m": 5.0, "c": 1.0}, {"step": 1.6})),
        # Lines 12 to 16: small steps of kept features, so that a larger newcomer may be no gain
        (3, 3.0, {"m": 20.0, "c": 1.0, "step": 0.3}),
        (3, 3.0, {"m": 100.0, "c": 0.5, "step": 0.3}),
        (5, 1.5, {"m": 100.0, "c": 1.0, "step": 0.5}),
    ],
)
def test_substitution_is_algorithm_1(loss, k, common, own):
    X, y = columns(common=common)
    X, y = scaled(X), target(loss, y)
    printed = {"m": 1.0, "c": 0.1, "step": 0.98} | own | {"k": k, "loss": loss}
    expected, refused = naive.online_substitution(X, y, orders=[range(24)] * 3, **printed)
    assert refused or own.get("m", 0) < 20
    model = raw(ofslib.OnlineSubstitution, n_scans=3, shuffle=False, **printed).fit(X, y)
    assert_allclose(model.coef_, expected, rtol=1e-8, atol=1e-12)


@pytest.mark.parametrize(
    ("weights", "support"),
    [
        ([8, 4, 1, 1.75], [0, 1, 2]),  # that of 2 is 1 - .75^2 = .4375 when 3 comes, with 1.75 / 4
        ([16, 3.5, 4.625, 16], [0, 2, 3]),  # those of 1 and 2 are equal then, after 3 and 2 steps
    ],
)
def test_of_equal_coefficients_the_newcomer_goes_or_the_one_in_the_first_place(weights, support):
    """Orthogonal columns, and eta = step / L_F = 1/4: no number is rounded."""
    X = scipy.linalg.hadamard(16)[:, 1:].astype(float)
    y = X[:, :4] @ weights
    own = {"k": 3, "step": 0.5625, "m": 1.0, "c": 0.1, "loss": "squared_error"}
    expected, _ = naive.online_substitution(X, y, orders=[range(15)], **own)
    model = raw(ofslib.OnlineSubstitution, n_scans=1, shuffle=False, **own).fit(X, y)
    assert_array_equal(model.coef_, expected)
    assert_array_equal(model.support_, support)


@every_loss
def test_naive_baselines_step_on_one_coordinate(loss):
    X, y = columns()
    X, y, orders = scaled(X), target(loss, y), [range(24)] * 2
    own = {"loss": loss, "shuffle": False}
    projected = raw(ofslib.OnlineCoordinateDescent, **own)
    shrunk = raw(ofslib.OnlineProximal, l1=0.1, k=None, **own)
    for model, k, l1 in ((projected, 4, 0.0), (shrunk, None, half(loss, 0.1))):
        expected = naive.proximal_coordinates(X, y, k=k, l1=l1, loss=loss, orders=orders)
        assert_allclose(model.fit(X, y).coef_, expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("loss", LOSSES[:2])
def test_grafting_is_optimal_after_each_arrival(loss):
    X, y = columns()
    X, y = scaled(X), target(loss, y)
    own = {"loss": loss, "l1": 0.15, "k": None, "shuffle": False, "n_scans": 1, "tol": 1e-9}
    expected = naive.grafting(X, y, l1=half(loss, 0.15), loss=loss, orders=[range(24)])
    model = raw(ofslib.Grafting, **own).fit(X, y)
    assert_allclose(model.coef_, expected, rtol=0, atol=1e-8)
    assert 0 < len(model.support_) <= model.peak_features_


def test_projected_gradient_ends_where_no_step_leads_on():
    X, y = columns(n=200)
    X = scaled(X)
    model = raw(ofslib.ProjectedGradientSelector, n_iter=5000, tol=1e-12).fit(X, y)
    w, S = model.coef_, model.support_
    g = naive.mean_gradient("squared_error", X, w, y)
    assert len(S) == 4
    assert_allclose(g[S], 0, atol=1e-8)
    # The largest eigenvalue bounds L_F: a shorter step leads nowhere either.
    top = np.linalg.eigvalsh(X.T @ X / len(y)).max()
    assert np.abs(np.delete(g, S)).max() / top <= np.abs(w[S]).min()


# What is promised


@every_loss
@pytest.mark.parametrize("common", [0.0, 3.0])
def test_the_objective_never_rises(loss, common):
    """Theorem 1 for any columns, since the step size follows the curvature."""
    X, y = columns(p=60, common=common)
    y, last = target(loss, y), np.inf
    model = new(ofslib.OnlineSubstitution, k=6, loss=loss)
    for _ in range(3):
        for j in range(60):
            model.partial_fit_columns(X[:, [j]], y)
            assert model.objective_ <= last * (1 + 1e-12)
            last = model.objective_


# Asynchronous


@every_loss
def test_one_worker_is_the_sequential_algorithm(loss):
    X, y = columns(p=100)
    y = target(loss, y)
    one = new(ofslib.OnlineSubstitution, loss=loss, refit=False).fit(X, y)
    for backend, tau in (("simulate", 0), ("simulate", 3), ("threads", None)):
        own = {"loss": loss, "n_workers": 1, "backend": backend, "tau": tau, "refit": False}
        assert_same(new(ofslib.AsyncOnlineSubstitution, **own).fit(X, y), one)


def correlated(seed=0, n=500, p=400, s=24):
    """Columns of correlation 1/2, of which s matter."""
    rng = np.random.default_rng(seed)
    X = (rng.standard_normal((n, p)) + rng.standard_normal((n, 1))) / np.sqrt(2)
    return X, X[:, :s] @ rng.standard_normal(s) + 0.1 * rng.standard_normal(n)


@pytest.mark.parametrize("backend", ["simulate", "threads"])
def test_staleness_never_raises_the_objective(backend):
    """What is late, with every step as long as it may be, diverges unless it is checked."""
    X, y = correlated()
    model = ofslib.AsyncOnlineSubstitution(k=24, n_workers=8, backend=backend, random_state=0)
    last = np.var(y) / 2
    for i in range(0, 400, 20):
        model.partial_fit_columns(X[:, i : i + 20], y)
        assert model.objective_ <= last * (1 + 1e-12)
        last = model.objective_
    assert model.converged_ and last < 0.5 * np.var(y) / 2


def test_without_the_check_it_is_told_that_steps_diverge():
    X, y = correlated()
    model = ofslib.AsyncOnlineSubstitution(k=24, n_workers=8, c=0, random_state=0)
    said = r"diverged \(c=0, step=0\.98\): with c > 0 and step"
    with pytest.warns(ConvergenceWarning, match=said):
        model.fit(X, y)
    assert not model.converged_ and model.objective_ > 1e20


@pytest.mark.parametrize("seed", range(4))
def test_what_is_refused_is_tried_once_more_so_that_no_place_stays_empty(seed):
    """Each worker to whom a column comes keeps as many as without refusals."""
    X, y = correlated(seed, n=60, p=40, s=12)
    own = {"k": 12, "n_workers": 12, "n_scans": 1, "random_state": seed}
    models = [ofslib.AsyncOnlineSubstitution(**own, c=c).fit(X, y) for c in (0, 0.1, 1)]
    kept, *checked = [len(model.support_) for model in models]
    assert checked == [kept, kept] and models[-1].converged_


@every_loss
@pytest.mark.parametrize(
    ("tau", "common", "own"),
    [
        *((tau, 0.5, {"step": 0.9, "m": 2.0, "c": 0.0}) for tau in (0, 1, None)),
        (5, 0.5, {"step": 0.9, "m": 2.0, "c": 0.5}),
        # Here the check of Algorithm 1 refuses some that are larger than what they would replace.
        (0, 1.5, {"step": 0.3, "m": 100.0, "c": 1.0}),
        (5, 1.5, {"step": 0.3, "m": 100.0, "c": 1.0}),
        (5, 1.5, {"step": 1.6, "m": 20.0, "c": 0.5}),
    ],
)
def test_the_simulation_is_algorithms_2_and_3(loss, tau, common, own):
    X, y = columns(p=60, common=common)
    X, y, own = scaled(X), target(loss, y), own | {"loss": loss}
    seed = np.random.RandomState(0).randint(2**31)
    given = {"capacities": [3, 2, 2], "tau": 3 if tau is None else tau, "orders": [range(60)] * 2}
    rng = np.random.default_rng(seed)
    expected, refused = naive.asynchronous_substitution(X, y, rng=rng, **given, **own)
    assert refused or common == 0.5
    own |= {"k": 7, "n_workers": 3, "tau": tau, "shuffle": False}
    model = raw(ofslib.AsyncOnlineSubstitution, **own).fit(X, y)
    assert_allclose(model.coef_, expected, rtol=1e-8, atol=1e-12)


@pytest.mark.parametrize("backend", ["simulate", "threads"])
def test_no_change_of_the_margins_is_lost(backend):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 600))
    y = X[:, :10].sum(axis=1) + 0.1 * rng.standard_normal(300)
    own = {"k": 14, "n_workers": 4, "backend": backend, "step": 0.5, "fit_intercept": False}
    model = new(ofslib.AsyncOnlineSubstitution, **own, refit=False).fit(X, y)
    assert_allclose(model._state.margins, X @ model.coef_, atol=1e-9)
    assert [worker.size[IN_USE] for worker in model._state.workers] == [4, 4, 3, 3]
    assert len(model.support_) == model.peak_features_ == 14


# What does not matter, and what is refused


@pytest.mark.parametrize("cls", CLASSES.values(), ids=CLASSES)
def test_the_layout_the_units_and_the_blocks_do_not_matter(cls, monkeypatch):
    X, y = columns()
    X[:, 5] = 0.1
    X[X[:, 3] < 0, 3] = 0.0
    model = new(cls).fit(X, y)
    frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(24)])
    assert 5 not in model.support_
    assert_array_equal(model.transform(X), X[:, model.support_])
    for most in (12, 950):  # then the squares, or their inverses, are no numbers
        units = 2.0 ** np.arange(-most, most, most / 12)
        other = new(cls).fit(X * units, y)
        assert_allclose(other.coef_ * units, model.coef_, rtol=1e-9)
        assert_allclose(other.intercept_, model.intercept_, rtol=1e-9)
    monkeypatch.setattr(column_stream, "_VALUES_PER_BLOCK", 100)
    for form in (np.asfortranarray(X), sp.csc_matrix(X), sp.csr_array(X), frame):
        assert_same(new(cls).fit(form, y), model)
    assert_array_equal(new(cls).fit(frame, y).feature_names_in_, frame.columns)


def test_names_come_with_the_columns():
    X, y = columns()
    names = [f"x{j}" for j in range(24)]
    model = new(ofslib.OnlineSubstitution).partial_fit_columns(X[:, :9], y, names=names[:9])
    model.partial_fit_columns(pd.DataFrame(X[:, 9:], columns=names[9:]))
    assert list(model.feature_names_in_) == names
    assert list(model.get_feature_names_out()) == [names[j] for j in model.support_]


def test_other_labels_and_other_parameters_of_the_same_rows_are_refused():
    X, y = columns()
    labels = target("log_loss", y)
    model = new(ofslib.OnlineSubstitution, loss="log_loss")
    model.partial_fit_columns(X[:, :12], labels)
    before = pickle.dumps(model)
    for other, said in ((-labels, "y differs"), (2 * labels, r"labels \[-2.0, 2.0\]")):
        with pytest.raises(ValueError, match=said):
            model.partial_fit_columns(X, other)
        assert pickle.dumps(model) == before
    with pytest.raises(ValueError, match=r"k=.* differs"):
        model.set_params(k=5).partial_fit_columns(X)


@pytest.mark.parametrize("cls", OTHERS.values(), ids=OTHERS)
def test_columns_whose_squares_are_no_numbers_are_refused_by_name(cls):
    X, y = columns()
    X[:, 9] *= 2.0**1000
    said = "column 9, 'x9', has the largest absolute value .*another unit"
    with pytest.raises(ValueError, match=said):
        new(cls).fit(pd.DataFrame(X).add_prefix("x"), y)
