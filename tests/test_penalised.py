"""The methods with an l1 penalty: equal to their slow transcription, and all penalties at once."""

import pickle

import naive
import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from test_algorithms import BOTH, LOSSES, assert_agrees, data

import ofslib
from ofslib import (
    AdaFobosClassifier,
    ARDAClassifier,
    OPGClassifier,
    OPGRegressor,
    RADARRegressor,
    RDAClassifier,
    RDARegressor,
    SADMMRegressor,
    TruncatedGradientClassifier,
    TruncatedGradientRegressor,
)
from ofslib.streams.penalised import Penalised

KINDS = pytest.mark.parametrize("kind", ["dense", "sparse", "counts"])


@KINDS
@pytest.mark.parametrize("batch_size", [1, 5])
@pytest.mark.parametrize("l2", [0.0, 0.3])
@pytest.mark.parametrize("loss", LOSSES)
@BOTH
def test_opg(kind, batch_size, l2, loss, intercept):
    own = {"l1": 0.05, "l2": l2, "learning_rate": 0.05, "batch_size": batch_size, "loss": loss}
    X, y = data(kind)
    model = OPGClassifier(**own, fit_intercept=intercept, shuffle=False)
    assert_agrees(model, naive.opg(X, y, **own, intercept=intercept), X, y)


@KINDS
@pytest.mark.parametrize("own", [{}, {"l2": 0.2}, {"rho": 0.02}, {"l2": 0.2, "rho": 0.02}])
@pytest.mark.parametrize("loss", LOSSES)
@BOTH
def test_rda(kind, own, loss, intercept):
    own = {"l1": 0.03, "l2": 0.0, "rho": 0.0, "gamma": 3.0, "batch_size": 5, "loss": loss} | own
    X, y = data(kind)
    model = RDAClassifier(**own, fit_intercept=intercept, shuffle=False)
    assert_agrees(model, naive.rda(X, y, **own, intercept=intercept), X, y)


@KINDS
@pytest.mark.parametrize("theta", [0.04, None])
@pytest.mark.parametrize("period", [1, 4])
@BOTH
def test_truncated_gradient(kind, theta, period, intercept):
    own = {"l1": 0.1, "theta": theta, "period": period, "learning_rate": 0.05}
    own |= {"batch_size": 3, "loss": "log_loss"}
    X, y = data(kind)
    bound = {"theta": np.inf if theta is None else theta}
    expected = naive.truncated_gradient(X, y, **own | bound, intercept=intercept)
    model = TruncatedGradientClassifier(**own, fit_intercept=intercept, shuffle=False)
    assert_agrees(model, expected, X, y)


def test_truncated_gradient_of_period_one_is_opg():
    X, y = data("sparse")
    own = {"l1": 0.02, "learning_rate": 0.05, "batch_size": 3, "shuffle": False}
    one = TruncatedGradientClassifier(**own, period=1).fit(X, y)
    assert_allclose(one.coef_, OPGClassifier(**own).fit(X, y).coef_, rtol=0, atol=1e-14)


@KINDS
@pytest.mark.parametrize("l1", [0.0, 0.02])
@pytest.mark.parametrize("loss", LOSSES)
@BOTH
def test_arda(kind, l1, loss, intercept):
    own = {"l1": l1, "learning_rate": 0.3, "delta": 0.01, "loss": loss}
    X, y = data(kind)
    model = ARDAClassifier(**own, fit_intercept=intercept, shuffle=False)
    assert_agrees(model, naive.arda(X, y, **own, intercept=intercept), X, y)


@KINDS
@pytest.mark.parametrize("l1", [0.0, 0.02])
@pytest.mark.parametrize("loss", LOSSES)
@BOTH
def test_ada_fobos(kind, l1, loss, intercept):
    own = {"l1": l1, "learning_rate": 0.3, "delta": 0.01, "loss": loss}
    X, y = data(kind)
    model = AdaFobosClassifier(**own, fit_intercept=intercept, shuffle=False)
    assert_agrees(model, naive.ada_fobos(X, y, **own, intercept=intercept), X, y)


@KINDS
@BOTH
def test_regression(kind, intercept):
    X, y = data(kind, classify=False)
    own = {"l1": 0.05, "l2": 0.1, "batch_size": 4, "loss": "squared_error"}
    same = {"fit_intercept": intercept, "shuffle": False}
    expected = naive.opg(X, y, **own, learning_rate=0.01, intercept=intercept)
    assert_agrees(OPGRegressor(**own, learning_rate=0.01, **same), expected, X, y)
    expected = naive.rda(X, y, **own, gamma=30, rho=0, intercept=intercept)
    assert_agrees(RDARegressor(**own, gamma=30, **same), expected, X, y)
    del own["l2"]
    expected = naive.truncated_gradient(
        X, y, **own, learning_rate=0.01, theta=np.inf, period=2, intercept=intercept
    )
    model = TruncatedGradientRegressor(**own, learning_rate=0.01, period=2, **same)
    assert_agrees(model, expected, X, y)


@KINDS
@BOTH
def test_sadmm(kind, intercept):
    X, y = data(kind, classify=False)
    own = {"l1": 0.4, "rho": 0.7, "learning_rate": 0.01, "batch_size": 4}
    coef, constant = naive.sadmm(X, y, **own, intercept=intercept)
    assert 0 < np.count_nonzero(coef) < len(coef) and (constant != 0) == intercept
    for form in (X, sp.csr_array(X)):
        model = SADMMRegressor(**own, fit_intercept=intercept, shuffle=False).fit(form, y)
        assert_allclose(model.coef_, coef, rtol=0, atol=1e-12)
        assert_allclose(model.intercept_, constant, rtol=1e-12)


@KINDS
@pytest.mark.parametrize(("radius", "rate", "least"), [(3.0, 0.2, 0), (1.0, 5.0, 12)])
@BOTH
def test_radar(kind, radius, rate, least, intercept):
    """Within the ball, and on it in many of the 44 steps."""
    X, y = data(kind, classify=False)
    own = {"k": 7, "l1": 0.1, "radius": radius, "learning_rate": rate}
    own |= {"epoch_size": 3, "batch_size": 4}
    coef, constant, bound = naive.radar(X, y, **own, intercept=intercept)
    assert bound >= least and (constant != 0) == intercept
    for form in (X, sp.csr_array(X)):
        model = RADARRegressor(**own, fit_intercept=intercept, shuffle=False).fit(form, y)
        assert_allclose(model.coef_, coef, rtol=0, atol=1e-12)
        assert_allclose(model.intercept_, constant, rtol=1e-12)


# All penalties at once

PATHS = [cls for name in dir(ofslib) if isinstance(cls := getattr(ofslib, name), type)]
PATHS = [cls for cls in PATHS if issubclass(cls, Penalised)]


@pytest.mark.parametrize("cls", PATHS)
@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix], ids=["dense", "csr"])
@pytest.mark.parametrize("rows", [173, 170])
def test_a_path_is_the_models_of_its_penalties(cls, form, rows):
    X, y = data("sparse", n=rows, classify=cls.__name__.endswith("Classifier"))
    own = {"batch_size": 5, "learning_rate": 0.02, "shuffle": False, "period": 1}
    own = {name: value for name, value in own.items() if name in cls().get_params()}
    path = cls(**own, k=6, n_penalties=15, l1_range=(1e-3, 30.0)).fit(form(X), y)
    penalties, coefs = path.path_
    assert_allclose(penalties, np.geomspace(30, 1e-3, 15))
    assert coefs.shape == (15, X.shape[1])
    for l1, coef in zip(penalties, coefs, strict=True):
        single = cls(**own, l1=l1).fit(form(X), y)
        assert_allclose(coef, single.coef_, rtol=0, atol=1e-12)
    sizes = np.count_nonzero(coefs, axis=1)
    chosen = np.flatnonzero(sizes == sizes[sizes <= 6].max())[-1]
    assert_array_equal(path.coef_, coefs[chosen])
    assert len(set(sizes)) > 2


@pytest.mark.parametrize("cls", PATHS)
@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix], ids=["dense", "csr"])
def test_float32_is_the_same_but_for_its_rounding(cls, form):
    X, y = data("sparse", n=170, classify=cls.__name__.endswith("Classifier"))
    own = {"batch_size": 5, "learning_rate": 0.02, "shuffle": False, "period": 1}
    own = {name: value for name, value in own.items() if name in cls().get_params()}
    own |= {"k": 6, "n_penalties": 15, "l1_range": (1e-3, 30.0)}
    exact, single = (cls(**own, dtype=dtype).fit(form(X), y) for dtype in ("float64", "float32"))
    (_, expected), (penalties, coefs) = exact.path_, single.path_
    assert coefs.dtype == penalties.dtype == np.float32
    largest = np.abs(expected).max()
    assert 0 < np.abs(coefs - expected).max() < 1e-4 * largest
    assert len(pickle.dumps(single)) < 0.65 * len(pickle.dumps(exact))


def test_rows_that_come_densely_into_a_sparse_mini_batch_are_the_same():
    """Entries of sparse rows are linked until there are too many, then all rows are dense."""
    rng = np.random.default_rng(1)
    X = sp.random_array((60, 40), density=0.02, rng=rng).toarray()
    X[3::7] = rng.standard_normal(X[3::7].shape)  # full rows between nearly empty ones
    y = np.where(X @ rng.standard_normal(40) + rng.standard_normal(60) > 0, 1.0, -1.0)
    own = {"k": 9, "n_penalties": 4, "l1_range": (1e-3, 0.1), "shuffle": False, "batch_size": 8}
    for cls in (OPGClassifier, RDAClassifier):
        sparse, dense = (cls(**own).fit(form(X), y) for form in (sp.csr_array, np.asarray))
        assert_allclose(sparse.path_[1], dense.path_[1], rtol=0, atol=1e-13)
        mixed = cls(**own)
        for start in range(0, 60, 3):  # mini-batches of rows of both forms
            form = sp.csr_array if start % 2 else np.asarray
            mixed.partial_fit(form(X[start : start + 3]), y[start : start + 3], classes=[-1, 1])
        whole = cls(**own).partial_fit(X, y, classes=[-1, 1])
        assert_allclose(mixed.path_[1], whole.path_[1], rtol=0, atol=1e-13)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("cls", PATHS)
def test_a_path_with_weights_cuts_forms_and_files_is_that_of_single_penalties(cls, dtype, tmp_path):
    """Rows of both forms, a file in the middle of a mini-batch, shrinkage of all kinds."""
    rng = np.random.default_rng(2)
    X = sp.random_array((75, 60), density=0.05, rng=rng).toarray()
    X[5::11] = rng.standard_normal(X[5::11].shape)
    classifies = cls.__name__.endswith("Classifier")
    y = X @ rng.standard_normal(60) + rng.standard_normal(75)
    y, known = (np.sign(y), {"classes": [-1, 1]}) if classifies else (y, {})
    weights = rng.uniform(0.2, 2.0, 75)
    own = {"batch_size": 4, "learning_rate": 0.05, "period": 3, "l2": 0.2, "shuffle": False}
    own = {name: value for name, value in own.items() if name in cls().get_params()}
    path = cls(**own, k=6, n_penalties=4, l1_range=(1e-3, 0.3), dtype=dtype)
    for place, start in enumerate(range(0, 75, 5)):
        part, form = slice(start, start + 5), (sp.csr_array, np.asarray)[place % 2]
        path.partial_fit(form(X[part]), y[part], sample_weight=weights[part], **known)
        path.save(tmp_path / "path.npz")
        path = cls.load(tmp_path / "path.npz")
    penalties, coefs = path.path_
    for l1, coef in zip(penalties, coefs, strict=True):
        single = cls(**own, l1=l1).partial_fit(X, y, sample_weight=weights, **known)
        rounding = 1e-12 if dtype == "float64" else 1e-5
        assert_allclose(coef, single.coef_, rtol=0, atol=rounding)
    assert 0 < np.count_nonzero(coefs) < coefs.size


@pytest.mark.parametrize(
    "cls, own",
    [
        (SADMMRegressor, {"learning_rate": 1e-5, "batch_size": 1}),
        (OPGRegressor, {"learning_rate": 1e-5, "l2": 0.01, "batch_size": 1}),
        (AdaFobosClassifier, {"learning_rate": 1e-3}),
    ],
)
def test_float32_does_not_lose_what_many_small_steps_add_up_to(cls, own):
    """A weight that is rounded in each step, as 1 / (1 + eta l2), would shrink by its error."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((30_000, 4))
    y = X @ [1.0, 0.7, 0.5, 0.3] + rng.standard_normal(len(X))
    y = np.sign(y) if cls is AdaFobosClassifier else y
    own |= {"k": 4, "n_penalties": 2, "l1_range": (1e-4, 1e-3), "fit_intercept": False}
    exact, single = (
        cls(**own, dtype=dtype, shuffle=False).fit(X, y).path_[1]
        for dtype in ("float64", "float32")
    )
    assert_allclose(single, exact, rtol=0, atol=3e-5 * np.abs(exact).max())


@pytest.mark.parametrize("cls", PATHS)
def test_what_waits_on_sparse_rows_is_done_when_it_is_read(cls):
    """Few features occur in a step; the model is the choice among those of single penalties."""
    rng = np.random.default_rng(0)
    X = sp.random_array((150, 300), density=0.01, rng=rng, format="csr")
    y = np.asarray(X @ rng.standard_normal(300))
    y = np.where(y > 0, 1, -1) if cls.__name__.endswith("Classifier") else y
    own = {"batch_size": 5, "learning_rate": 0.2, "gamma": 2.0, "shuffle": False, "period": 1}
    own = {name: value for name, value in own.items() if name in cls().get_params()}
    path = cls(**own, k=20, n_penalties=4, l1_range=(1e-3, 0.1))
    read, waits = cls(**path.get_params()), 0
    for start in range(0, 150, 25):
        part = slice(start, start + 25)
        known = {"classes": [-1, 1]} if cls.__name__.endswith("Classifier") else {}
        path.partial_fit(X[part], y[part], **known)
        waits += path._state.grid.pending[0]
        penalties, coefs = read.partial_fit(X[part], y[part], **known).path_
        single = [cls(**own, l1=l1).fit(X[: part.stop], y[: part.stop]).coef_ for l1 in penalties]
        assert_allclose(coefs, single, rtol=0, atol=1e-12)
        sizes = np.count_nonzero(coefs, axis=1)
        if 0 < (fits := sizes[sizes <= 20]).max(initial=0):
            assert_array_equal(read.coef_, coefs[np.flatnonzero(sizes == fits.max())[-1]])
    assert_array_equal(path.path_[1], coefs)
    assert waits or cls is SADMMRegressor


def test_one_penalty_of_sadmm_holds_no_rows():
    X, y = sp.csr_array(np.eye(30, 2000)), np.arange(30.0)
    model = SADMMRegressor(l1=0.01, batch_size=25).partial_fit(X, y)
    assert len(pickle.dumps(model)) <= 80 * 2000


@pytest.mark.parametrize("cls", PATHS)
def test_the_range_of_penalties_comes_from_the_first_mini_batch(cls):
    X, y = data("dense", classify=cls.__name__.endswith("Classifier"))
    model = cls(k=6, n_penalties=4, shuffle=False, fit_intercept=False).fit(X, y)
    first = slice(0, model.get_params().get("batch_size", 1))
    slopes = [naive.slope(model.loss, 0.0, t) for t in y[first]]
    high = np.abs(slopes @ X[first] / len(slopes)).max()
    assert_allclose(model.path_[0], high * np.geomspace(1, 1e-3, 4))


def test_penalties_that_are_refused():
    X, y = data("dense")
    for wrong in ((1e-3, 1e300), (1e-42, 1.0)):
        with pytest.raises(ValueError, match=r"l1_range=.*float32 can hold"):
            OPGClassifier(k=3, l1_range=wrong, dtype="float32").fit(X, y)
    for wrong in ((1.0,), (0.0, 1.0), (2.0, 1.0), (1.0, np.inf)):
        with pytest.raises(ValueError, match=r"l1_range=.*two positive numbers"):
            OPGClassifier(k=3, l1_range=wrong).fit(X, y)
    with pytest.raises(AttributeError, match="only if k is given"):
        OPGClassifier(l1=0.1).fit(X, y).path_  # noqa: B018
