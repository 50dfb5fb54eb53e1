"""What goes wrong in a stream of rows is said: divergence, empty models, one class only."""

import copy
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.exceptions import ConvergenceWarning
from test_experiment import setting

from ofslib import (
    AdaFobosClassifier,
    ARDAClassifier,
    BARDAClassifier,
    OPGClassifier,
    OPGRegressor,
    SFSAClassifier,
    SFSARegressor,
    SGDTClassifier,
    SGDTRegressor,
)
from ofslib.reproduction import experiment
from ofslib.simulate import Equicorrelated


def correlated(n=1000, p=1000):
    return Equicorrelated(p, 10).sample(n, np.random.default_rng(0))


def few(n=60, p=8):
    X = np.random.default_rng(0).standard_normal((n, p))
    return X, np.sign(X[:, :3].sum(axis=1))


def unequal(n=20_000, p=1000):
    """Sparse binary rows, a fifth of them of the class +1; the first 40 features tell the class."""
    rng = np.random.default_rng(0)
    y = np.where(rng.random(n) < 0.2, 1, -1)
    X = rng.random((n, p)) < rng.uniform(0.01, 0.2, p)
    X[:, :40] = rng.random((n, 40)) < np.where((y[:, None] > 0) == (np.arange(40) < 20), 0.2, 0.1)
    return sp.csr_matrix(X, dtype=float), y


def said(learn, *arguments, **known):
    """The warnings of a call, which are charged to this file."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        learn(*arguments, **known)
    assert all(w.category is ConvergenceWarning and w.filename == __file__ for w in caught)
    return [str(w.message) for w in caught]


def test_a_run_that_diverges_says_so_once_and_what_to_do():
    X, y = correlated()
    model = SGDTRegressor(k=10)
    one, *more = said(model.fit, X, y)
    assert not more and "worse than a model without features" in one
    assert all(word in one for word in ("learning_rate=0.01", "smaller", "step='spectral'"))
    assert model.online_score_ < 0 and np.isfinite(model.coef_).all()
    half = [said(model.partial_fit, X[:3], y[:3]) for model in [SGDTRegressor(k=10).fit(X, y)] * 2]
    assert half == [[], []]
    assert said(SFSARegressor(k=5).fit, *load_diabetes(return_X_y=True, scaled=False))
    assert not said(SGDTRegressor(k=10, learning_rate=1e-4, random_state=0).fit, X, y)
    assert not said(SFSARegressor(k=10, step="spectral", random_state=0).fit, X, y)


def test_it_is_an_error_before_anything_is_infinite():
    X, y = correlated(5000, 300)
    model = SGDTRegressor(k=10, learning_rate=10.0).partial_fit(X[:50], y[:50])
    before = copy.deepcopy(model)
    with pytest.raises(FloatingPointError, match=r"diverged.*learning_rate=10\.0"):
        model.partial_fit(X, y)
    assert np.array_equal(model.coef_, before.coef_) and model.n_samples_seen_ == 50


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
def test_the_last_row_is_watched_too(form):
    """No later row would show what it has done."""
    X, y = few()
    model = BARDAClassifier(k=3).partial_fit(form(X), y)
    before, wrong = model.coef_, X.copy()
    wrong[-1] = -1e155 * y[-1] * np.where(before == 0, 1.0, np.sign(before))
    with pytest.raises(FloatingPointError, match="diverged"):
        model.partial_fit(form(wrong), y)
    assert np.array_equal(model.coef_, before) and model.n_samples_seen_ == 60


def test_with_k_a_grid_that_keeps_more_gives_the_k_largest():
    X, y = few(2000, 30)
    model = OPGClassifier(k=4, l1_range=(1e-4, 1e-3), shuffle=False)
    (one,) = said(model.fit, X, y)
    penalties, coefs = model.path_
    assert "from 1 to k=4" in one and f"l1_range=({penalties[0]:.3g}" in one
    sizes = np.count_nonzero(coefs, axis=1)
    nearest = coefs[np.argmin(sizes)]
    assert sizes.min() > 4 and len(model.support_) == 4
    assert set(model.support_) == set(np.argsort(-np.abs(nearest))[:4])
    assert np.array_equal(model.coef_[model.support_], nearest[model.support_])
    fits = OPGClassifier(k=4, shuffle=False)
    assert not said(fits.fit, X, y) and 0 < len(fits.support_) <= 4


def test_a_path_that_jumps_over_k_gives_the_k_largest():
    """Equal columns enter at once; of equals the lower index stays."""
    x = np.random.default_rng(0).standard_normal(500)
    X, y = np.tile(x[:, None], 12), np.sign(x)
    for cls in (ARDAClassifier, AdaFobosClassifier, OPGClassifier):
        model = cls(k=5, random_state=0)
        assert any("5 largest of the 12" in message for message in said(model.fit, X, y))
        assert model.support_.tolist() == [0, 1, 2, 3, 4] and model.score(X, y) > 0.5


def test_a_model_without_features_says_so():
    X, y = load_breast_cancer(return_X_y=True)
    X = (X - X.mean(0)) / X.std(0)
    (one,) = said(OPGClassifier(l1=1e3, random_state=0).fit, X, y)
    assert "no feature" in one and "l1=1e+03" in one
    (one,) = said(OPGClassifier(k=3, l1_range=(1e3, 1e4), random_state=0).fit, X, y)
    assert "l1_range below 1e+03" in one


@pytest.mark.parametrize("cls", [SFSAClassifier, SGDTClassifier])
def test_the_intercept_learns_at_a_pace_of_its_own(cls):
    """Else all coefficients are negative, and half of those that tell the class are not found."""
    X, y = unequal()
    model = cls(k=40, random_state=0, mu=5) if cls is SFSAClassifier else cls(k=40, random_state=0)
    (one,) = said(model.fit, X, y)
    assert np.mean(model.support_ < 40) > 0.9
    assert "the same label" in one and "learning_rate=0.01" in one
    assert not said(cls(k=40, learning_rate=1.0, random_state=0).fit, X, y)


@pytest.mark.parametrize("optimizer", ["sgd", "momentum", "nesterov", "adam"])
def test_a_mean_far_from_zero_is_learned_within_a_few_steps(optimizer):
    X, y = load_diabetes(return_X_y=True, scaled=False)
    X = (X - X.mean(0)) / X.std(0)
    assert SFSARegressor(k=5, optimizer=optimizer, random_state=0).fit(X, y).score(X, y) > 0


def test_the_intercept_alone_is_the_mean():
    y = np.random.default_rng(0).normal(5, 1, 90)
    for cls in (SFSARegressor, SGDTRegressor, OPGRegressor):
        model = cls(batch_size=9).partial_fit(np.zeros((90, 3)), y)
        assert model.intercept_ == pytest.approx(y.mean())


def test_rows_sorted_by_label_end_in_one_class_and_it_is_said():
    X, y = unequal(4000)
    model = SFSAClassifier(k=40, learning_rate=1e-4)
    (one,) = said(model.partial_fit, *(part[np.argsort(y, kind="stable")] for part in (X, y)))
    assert "do not sort rows by label" in one


def test_loss_cannot_change_while_it_learns():
    X, y = load_breast_cancer(return_X_y=True)
    model = SGDTClassifier(k=3, learning_rate=1e-8, random_state=0).fit(X, y)
    model.set_params(loss="hinge")
    with pytest.raises(ValueError, match="loss='hinge' differs from loss='log_loss'"):
        model.partial_fit(X, y)


@pytest.mark.parametrize(
    ("own", "match"),
    [
        ({"k": 2**63}, "'k'"),
        ({"random_state": 2**63}, "'random_state'"),
        ({"maturity": 2**63}, "'maturity'"),
        ({"batch_size": 2**64}, "'batch_size'"),
        ({"warmup": 2**63, "maturity": 2**62}, "'warmup'"),
        ({"learning_rate": 10**400}, "learning_rate=1000"),
    ],
)
def test_numbers_beyond_64_bits_are_refused_by_name(own, match):
    X, y = few()
    with pytest.raises(ValueError, match=match):
        SFSARegressor(**own).fit(X, y)


@pytest.mark.parametrize("wrong", [("a", "b"), (None, 1.0), (1, 10**400), (1.0, float("nan"))])
def test_a_range_of_penalties_that_is_none_is_refused_by_name(wrong):
    X, y = few()
    with pytest.raises(ValueError, match="l1_range="):
        OPGRegressor(k=2, l1_range=wrong).fit(X, y)


def test_a_method_that_diverges_has_a_reason_in_the_table():
    spec = setting(
        methods={
            "mad": {"class": "SGDTRegressor", "learning_rate": 1e30},
            "sane": {"class": "SGDTRegressor", "learning_rate": 1e-3},
        },
        metrics=["DR", "RMSE", "time_s"],
    )
    table = experiment.run(spec, progress=False)
    mad = table["method"] == "mad"
    assert table.loc[mad, "value"].isna().all() and table.loc[~mad, "value"].notna().all()
    assert table.loc[mad, "note"].str.contains("diverged.*learning_rate").all()
