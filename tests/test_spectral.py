"""The step size without tuning, and the sets of features at any time."""

import warnings

import naive
import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import norm
from sklearn.exceptions import ConvergenceWarning

from ofslib import AnytimeSFSAClassifier, AnytimeSFSARegressor, SFSAClassifier, SFSARegressor
from ofslib.kernels.automatic_step import end_batch, new_step_size, observe, stable_rate
from ofslib.kernels.losses import CLASSIFICATION_LOSSES, Loss, majorant, value
from ofslib.kernels.rows import DENSE_ROWS, new_active, new_batch
from ofslib.metrics import detection_rate
from ofslib.simulate import Equicorrelated


@pytest.mark.parametrize("alpha", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("size", [60, 300])
def test_the_estimated_norm_is_the_norm(alpha, size):
    """Of the features in the model, the first `size`: 1 + alpha^2 size, and the trace over 25."""
    design = Equicorrelated(300, 20, alpha=alpha)
    step_size, active, batch = new_step_size(300), new_active(300), new_batch(300)
    batch.count[DENSE_ROWS] = 25
    active.size[0] = size
    active.untouched[size:] = False
    step_size.direction[size:] = 0.0
    X, _ = design.sample(10_000, np.random.default_rng(0))
    for start in range(0, len(X), 25):
        observed = np.arange(start, start + 25)
        numbers = np.zeros(25), 0, batch, active, np.empty(25)
        observe(step_size, X, np.zeros(len(X)), observed, *numbers)
        end_batch(step_size, batch, active, 8)
    exact = 1 + alpha**2 * size + (1 + alpha**2) * size / 25
    assert_allclose(1 / stable_rate(step_size, active, 25, 0), exact, rtol=0.25)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
@pytest.mark.parametrize("loss", ["squared_error", *CLASSIFICATION_LOSSES])
def test_it_is_its_definition(form, loss):
    classify = loss != "squared_error"
    design = Equicorrelated(60, 5, task="classification" if classify else "regression")
    X, y = design.sample(1500, np.random.default_rng(0))
    own = {"k": 5, "batch_size": 10, "mu": 5, "warmup": 300, "maturity": 1200, "loss": loss}
    known = {"classes": [-1, 1]} if classify else {}
    cls = SFSAClassifier if classify else SFSARegressor
    model = cls(fit_intercept=False, importance="coef", **own)
    assert_allclose(
        model.partial_fit(form(X), y, **known).coef_, naive.spectral_sfsa(X, y, **own), rtol=1e-8
    )


@pytest.mark.parametrize("loss", ["squared_error", "log_loss", "hinge"])
def test_it_is_its_definition_where_rows_touch_few_features(loss):
    """Also where the mean begins anew, and where rows touch many of the features that are left."""
    rng, classify = np.random.default_rng(0), loss != "squared_error"
    X = np.where(rng.random((3000, 400)) < 0.02, rng.standard_normal((3000, 400)), 0.0)
    y = X[:, :10].sum(axis=1) + 0.1 * rng.standard_normal(3000)
    y = np.where(y > 0, 1.0, -1.0) if classify else y
    own = {"k": 20, "batch_size": 5, "mu": 5, "warmup": 600, "maturity": 2400, "loss": loss}
    known = {"classes": [-1, 1]} if classify else {}
    cls = SFSAClassifier if classify else SFSARegressor
    model = cls(fit_intercept=False, importance="coef", **own)
    expected = naive.spectral_sfsa(X, y, **own, rare=True)
    few = []
    for block in np.array_split(np.arange(len(y)), 17):
        model.partial_fit(sp.csr_array(X[block]), y[block], **known)
        few.append(model._state.iterates.deferred[0])
    assert sum(few) > 3 and not few[-1]
    assert_allclose(model.coef_, expected, rtol=1e-8)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
@pytest.mark.parametrize("kind", [SFSAClassifier, SFSARegressor])
def test_the_unit_of_the_features_does_not_matter(form, kind):
    X, y = Equicorrelated(300, 10).sample(1000, np.random.default_rng(1))
    y = y if kind is SFSARegressor else y > 0
    own = {"k": 10, "fit_intercept": False, "random_state": 0}
    one, other = (kind(**own).fit(form(c * X), y) for c in (1.0, 2.0**10))
    assert_array_equal(one.coef_, other.coef_ * 2.0**10)


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_features_of_any_scale_do_not_make_it_diverge(scale):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((3000, 50)) * scale * np.geomspace(1, 100, 50) + scale
    y = X[:, 40] / scale + rng.standard_normal(3000)
    model = SFSARegressor(k=5, random_state=0).fit(X, y)
    assert 40 in model.support_ and model.score(X, y) > 0.9
    SFSAClassifier(k=5, random_state=0).fit(X, y > 0)


@pytest.mark.parametrize("loss", ["squared_error", "squared_hinge"])
def test_a_row_much_heavier_than_all_others_does_no_harm(loss):
    """Nothing was known of it when its turn came."""
    design = Equicorrelated(100, 5, alpha=0.0, task="classification")
    X, y = design.sample(4000, np.random.default_rng(0))
    X[3000::100] *= 300
    kind = SFSARegressor if loss == "squared_error" else SFSAClassifier
    model = kind(k=5, loss=loss, fit_intercept=False, maturity=2000)
    known = {} if loss == "squared_error" else {"classes": [-1, 1]}
    model.partial_fit(X, y, **known)
    assert np.abs(X[:3000] @ model.coef_).max() < 10


def test_it_finds_all_features_where_the_constant_step_does_not():
    """The design of sfsa Table 1 at a tenth of its size."""
    design = Equicorrelated(1000, 20)
    X, y = design.sample(3000, np.random.default_rng(2))
    X_test, y_test = design.sample(1000, np.random.default_rng(3))
    model = SFSARegressor(k=20, fit_intercept=False, random_state=0).fit(X, y)
    assert detection_rate(model.support_, design.support) == 100
    assert np.sqrt(np.mean((model.predict(X_test) - y_test) ** 2)) < 1.2


@pytest.mark.parametrize("touch", [-30.0, -2.0, 1e-4, 0.5, 8.0])
def test_the_majorant_touches_the_loss_and_lies_above_it(touch):
    """The parabola is even around m = 0 but for the loss's linear part, -m / 2 for the label 1."""
    m, code = np.linspace(-40, 40, 4001), int(Loss.log_loss)
    loss = np.array([value(code, s, 1.0) for s in m])
    offset = value(code, touch, 1.0) + touch / 2
    parabola = offset - m / 2 + majorant(code, touch) * (m**2 - touch**2) / 2
    assert np.all(parabola >= loss - 1e-9)


def test_it_finds_as_many_features_as_the_best_screening():
    """A common factor settles most labels, and only the rows near its zero tell of the features.

    The best screening knows the factor and its weight: the score of each feature where the
    coefficients of the features themselves are 0.
    """
    design, found, bound = Equicorrelated(2000, 20, task="classification"), [], []
    for seed in range(8):
        X, y = design.sample(1500, np.random.default_rng(seed))
        model = SFSAClassifier(k=20, fit_intercept=False, random_state=0).fit(X, y)
        found.append(detection_rate(model.support_, design.support))
        factor = X.mean(axis=1)
        t = y * 20 * factor / np.sqrt(21)
        score = (y * np.exp(norm.logpdf(t) - norm.logcdf(t))) @ (X - factor[:, None])
        bound.append(detection_rate(np.argsort(-np.abs(score))[:20], design.support))
    assert np.mean(found) > np.mean(bound) - 8


@pytest.mark.parametrize(
    ("kind", "n", "own", "size"),
    [
        (SFSAClassifier, 1300, {}, 5),  # 260 steps
        (SFSARegressor, 1300, {}, 3),  # 325, until three quarters of the rows
        (SFSAClassifier, 1300, {"maturity": 500}, 2),
        (SFSAClassifier, 120, {}, 1),
        (SFSAClassifier, 6400, {}, 25),
        (SFSAClassifier, 1300, {"forget": 600}, 2),
        (SFSAClassifier, 1300, {"learning_rate": 0.01}, 25),
        (AnytimeSFSAClassifier, 1300, {"first_maturity": 400}, 25),
    ],
)
def test_few_rows_are_cut_to_many_mini_batches(kind, n, own, size):
    X, y = Equicorrelated(50, 5).sample(n, np.random.default_rng(0))
    y = y if kind is SFSARegressor else y > 0
    own |= {"k": 5, "random_state": 0}
    found, expected = (kind(**own, batch_size=b).fit(X, y) for b in (None, size))
    assert_array_equal(found.coef_, expected.coef_)
    assert found.intercept_ == expected.intercept_ and found.batch_size is None


def test_few_rows_give_a_model_that_predicts():
    """Mini-batches of 25 would be one, which tells the step only."""
    design = Equicorrelated(30, 3, task="classification")
    X, y = design.sample(1020, np.random.default_rng(0))
    for n in (20, 100):
        model = SFSAClassifier(k=3, random_state=0).fit(X[:n], y[:n])
        assert model.score(X[20:], y[20:]) > 0.7


def test_few_rows_find_as_much_as_many_steps_do():
    """The design of sfsa Table 1 at a tenth of its size, and few rows."""
    found = []
    for seed in range(3):
        design = Equicorrelated(500, 10)
        X, y = design.sample(500, np.random.default_rng(seed))
        model = SFSARegressor(k=10, fit_intercept=False, random_state=0).fit(X, y)
        found.append(detection_rate(model.support_, design.support))
    assert np.mean(found) > 90


@pytest.mark.parametrize("multiclass", ["ovr", "joint"])
@pytest.mark.parametrize(
    ("kind", "own", "rows"),
    [
        (SFSAClassifier, {}, 225),
        (SFSAClassifier, {"batch_size": 3}, 27),
        (AnytimeSFSAClassifier, {"first_maturity": 800}, 75),
    ],
)
def test_who_asks_too_early_is_told_once(kind, own, rows, multiclass):
    """What is shown first tells how large the steps may be; only a model that is asked for says."""
    X, y = np.random.default_rng(0).standard_normal((rows, 9)), np.arange(rows) % 3
    model = kind(k=2, multiclass=multiclass, **own)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.partial_fit(X[:20], y[:20])
    with pytest.warns(ConvergenceWarning, match=f"first {rows} rows .* and 20 were shown"):
        assert not model.coef_.any()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.predict(X)
        assert not model.partial_fit(X[20:-1], y[20:-1]).coef_.any()
        assert model.partial_fit(X[-1:], y[-1:]).coef_.any()


@pytest.mark.parametrize("kind", [SFSAClassifier, AnytimeSFSAClassifier])
def test_it_begins_and_ends_by_fit_only(kind):
    """Another constant step may be taken at any time."""
    X, y = np.random.default_rng(0).standard_normal((300, 5)), np.arange(300) % 2
    model = kind(k=2).fit(X, y)
    assert model.get_params()["learning_rate"] == "auto"
    with pytest.raises(ValueError, match=r"learning_rate=0\.1 differs from learning_rate='auto'"):
        model.set_params(learning_rate=0.1).partial_fit(X, y)
    model.fit(X, y).set_params(learning_rate=0.2).partial_fit(X, y)
    with pytest.raises(ValueError, match=r"learning_rate='auto' differs from learning_rate=0\.2"):
        model.set_params(learning_rate="auto").partial_fit(X, y)


def test_the_intercept_is_learned_where_all_features_are_zero():
    y = np.random.default_rng(0).normal(5, 1, 3000)
    model = SFSARegressor(k=2, random_state=0).fit(np.zeros((3000, 3)), y)
    assert model.intercept_ == pytest.approx(y.mean(), abs=0.2)


def test_it_goes_with_sgd():
    with pytest.raises(ValueError, match="optimizer='adam' has no learning_rate='auto'"):
        SFSARegressor(k=2, optimizer="adam").fit(np.eye(5), np.arange(5.0))


@pytest.mark.parametrize("rate", [0.01, "auto"])
@pytest.mark.parametrize("classify", [False, True])
def test_a_set_at_any_time_is_that_of_sfsa_with_its_maturity(rate, classify):
    """Maturities 903, 1806, 3612: each begins to prune at the one before."""
    design = Equicorrelated(60, 5, task="classification" if classify else "regression")
    X, y = design.sample(3700, np.random.default_rng(0))
    own = {"k": 5, "batch_size": 7, "learning_rate": rate}
    known = {"classes": [-1, 1]} if classify else {}
    anytime, single = (
        (AnytimeSFSAClassifier, SFSAClassifier)
        if classify
        else (AnytimeSFSARegressor, SFSARegressor)
    )
    model, shown = anytime(**own, first_maturity=900), 0
    for warmup, maturity in ((0, 903), (903, 1806), (1806, 3612)):
        for stop in (maturity - 13, maturity, maturity + 40):
            model.partial_fit(X[shown:stop], y[shown:stop], **known)
            assert len(model.support_) == 5
            shown = stop
            if stop >= maturity:
                expected = single(**own, warmup=warmup, maturity=maturity)
                expected.partial_fit(X[:stop], y[:stop], **known)
                assert_array_equal(model.coef_, expected.coef_)
                assert model.intercept_ == expected.intercept_
