"""What goes wrong in a stream of rows is said: divergence, empty models, one class only."""

import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from estimators import every, public
from sklearn.base import ClassifierMixin, clone
from sklearn.datasets import load_breast_cancer
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import roc_auc_score
from test_experiment import setting

from ofslib import (
    BARDAClassifier,
    FOFSClassifier,
    OPGClassifier,
    RDAClassifier,
    SFSAClassifier,
    SFSARegressor,
    SGDTClassifier,
    SGDTRegressor,
    SIHTClassifier,
)
from ofslib.algorithms.ofsa import anneal
from ofslib.datasets import Dataset
from ofslib.kernels.losses import WEIGHTED, Loss, value
from ofslib.reproduction import experiment
from ofslib.simulate import Equicorrelated
from ofslib.streams import diagnostics
from ofslib.streams.diagnostics import least_of_constants, scales, worse_than_nothing
from ofslib.streams.online import Sums
from ofslib.streams.row_stream import RowStream


def correlated(n=1000, p=1000):
    return Equicorrelated(p, 10).sample(n, np.random.default_rng(0))


def few(n=60, p=8):
    X = np.random.default_rng(0).standard_normal((n, p))
    return X, np.sign(X[:, :3].sum(axis=1))


def unequal(n=20_000, p=1000, share=0.2, others=(0.01, 0.2)):
    """Sparse binary rows, a share of them of the class +1; the first 40 features tell the class.

    `others`: how often the other features occur.
    """
    rng = np.random.default_rng(0)
    y = np.where(rng.random(n) < share, 1, -1)
    X = rng.random((n, p)) < rng.uniform(*others, p)
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
    assert "learning_rate=0.01" in one
    assert model.online_score_ < 0 and np.isfinite(model.coef_).all()
    half = [said(model.partial_fit, X[:3], y[:3]) for model in [SGDTRegressor(k=10).fit(X, y)] * 2]
    assert half == [[], []]
    advised = 1 / np.square(X).sum(axis=1).mean()
    assert not said(SGDTRegressor(k=10, learning_rate=advised, random_state=0).fit, X, y)
    assert not said(SFSARegressor(k=10, random_state=0).fit, X, y)


@every(public(RowStream, ClassifierMixin))
def test_a_returned_model_that_is_no_better_than_a_constant_is_said(cls):
    X, y = load_breast_cancer(return_X_y=True)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    model = cls(k=5, random_state=0)
    found = [one for one in said(model.fit, X, y) if "no better than a constant" in one]
    assert len(found) == (model.score(X, y) < 0.7)
    assert all("best intercept" in one and "over the last 569 rows" in one for one in found)
    early = said(clone(model).partial_fit, X[:100], y[:100], classes=[0, 1])
    assert not any("returns" in one for one in early)


def test_a_returned_model_is_judged_by_its_own_rows_and_weights():
    rng = np.random.default_rng(0)
    signal, labels = rng.standard_normal(500), np.repeat([-1.0, 1.0], [400, 100])
    judge = diagnostics.no_better_than_constant
    assert judge("log_loss", 3 * labels + signal, labels) == ""
    assert "0.8 of the labels are right, and 0.8 " in judge("log_loss", -9 + labels, labels)
    assert "(1 with the same" in judge("log_loss", -9 + labels, labels)
    # A model of a rare label that never predicts it, but has a smaller loss
    rare = np.repeat([-1.0, 1.0], [970, 30])
    margins = -3.5 + 0.5 * rng.standard_normal(1000) + (rare > 0)
    assert judge("log_loss", margins, rare) == "" != judge("log_loss", 9 * margins, rare)
    assert judge("hinge", np.ones(30), np.repeat([-1.0, 1.0], 15)) == ""  # too few rows
    weighted = np.zeros(500, WEIGHTED)
    weighted["target"], weighted["weight"] = labels, np.where(labels > 0, 4.0, 1.0)
    assert "0.5 with a constant" in judge("squared_hinge", -np.ones(500), weighted)
    y = signal + 5.0
    assert judge("squared_error", y + 0.1, y) == ""
    assert "with the mean of y" in judge("squared_error", 0.0 * y, y)


@pytest.mark.parametrize(
    ("model", "rate"),
    [
        (SFSAClassifier(loss="log_loss"), 1e3),
        (SGDTClassifier(), 1e9),
        (SIHTClassifier(), 1e3),
        (FOFSClassifier(), 1e9),
        (BARDAClassifier(), 1e3),
    ],
)
def test_steps_far_too_large_for_labels_are_said(model, rate):
    """By chance it is right about more rows than a constant; or it is, with losses of any size."""
    rng = np.random.default_rng(3)
    X = rng.standard_normal((4000, 200))
    for y in (rng.random(4000) < 0.5, X[:, :5].sum(axis=1) + rng.standard_normal(4000) > 0):
        one, *_ = said(clone(model).set_params(k=10, learning_rate=rate, random_state=0).fit, X, y)
        assert "than a model without features" in one and f"learning_rate={rate}" in one


@pytest.mark.parametrize("right, says", [(1, True), (94, True), (96, False), (-1, True)])
def test_a_score_that_chance_gives_excuses_no_loss(right, says):
    """Half of 4000 labels: 95 rows more than these are three standard errors."""
    model = SGDTClassifier().partial_fit(np.eye(2), [0, 1])
    sums = Sums._make(np.zeros(len(Sums._fields)))._replace(rows=4000.0, total=4000.0)
    sums = sums._replace(loss=2 * 4000 * np.log(2), score=2000.0 + right, weight=4000.0)
    sums = sums._replace(positive=2000.0, negative=2000.0)
    assert bool(worse_than_nothing(model, sums)) == says
    assert worse_than_nothing(model, sums._replace(score=4000.0)) == ""
    far = worse_than_nothing(model, sums._replace(score=4000.0, loss=6 * sums.loss))
    assert "has a far larger loss than a model without features" in far


def test_joint_steps_of_ofsa_that_overflow_are_an_error_without_a_warning_first():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((120, 60))
    S, b = np.asfortranarray(X.T @ X / 120), rng.standard_normal((60, 3))
    with warnings.catch_warnings(action="error"):
        for covariances in (b, b[:, 0]):
            with pytest.raises(FloatingPointError, match="steps are too large with a rate of 50"):
                anneal(S, covariances, 8, 5.0, 50.0, 500)


@pytest.mark.parametrize(
    "model",
    [
        SFSARegressor(k=2, importance="scaled_coef"),
        SGDTRegressor(k=2, importance="scaled_root"),
        SFSARegressor(k=2, learning_rate="auto"),
    ],
)
def test_values_whose_squares_overflow_are_not_charged_to_the_steps(model):
    X, y = few()
    X[-1, 3] = 1e200
    with pytest.raises(FloatingPointError, match=r"squares of X overflow.*scale the features"):
        model.partial_fit(X, y)


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


def test_a_model_without_features_says_so():
    X, y = load_breast_cancer(return_X_y=True)
    X = (X - X.mean(0)) / X.std(0)
    (one,) = said(OPGClassifier(l1=1e3, random_state=0).fit, X, y)
    assert "no feature" in one and "l1=1e+03" in one
    (one,) = said(OPGClassifier(k=3, l1_range=(1e3, 1e4), random_state=0).fit, X, y)
    assert "l1_range below 1e+03" in one


@pytest.mark.parametrize("share", [0.2, 0.01])
def test_the_intercept_knows_the_share_of_a_class_whatever_the_method(share):
    """Mean probability within a factor of the truth; the loss is not above that of a constant."""
    X, y = unequal(p=500, share=share)
    spectral = SFSAClassifier(k=40, learning_rate="auto")
    models = [RDAClassifier(k=40, n_penalties=20), RDAClassifier(), spectral]
    for model in models:
        margins = model.partial_fit(X, y).decision_function(X)
        probability = 1 / (1 + np.exp(-margins))
        assert np.mean(y > 0) / 1.4 < probability.mean() < 1.4 * np.mean(y > 0)
        loss = np.logaddexp(0, -y * margins).sum()
        assert loss < 1.01 * least_of_constants("log_loss", (y > 0).sum(), (y < 0).sum())
        assert roc_auc_score(y, margins) > 0.8


def test_a_right_model_of_a_rare_class_is_not_scolded():
    """No row has a probability above 1/2: the best model predicts one class."""
    rng = np.random.default_rng(0)
    for n in (1500, 20_000):
        X = rng.standard_normal((n, 8))
        y = np.where(rng.random(n) < 1 / (1 + np.exp(3.4 - 0.45 * X[:, 0])), 1, -1)
        for own in ({"learning_rate": 0.5}, {"learning_rate": "auto"}):
            model = SFSAClassifier(k=1, random_state=0, **own)
            assert not said(model.fit, X, y)
            assert (model.predict(X) == -1).mean() > 0.99


@pytest.mark.parametrize("loss", ["log_loss", "hinge", "squared_hinge"])
def test_the_best_constant_is_the_best(loss):
    labels, grid = np.repeat([1.0, -1.0], [30, 90]), np.linspace(-3, 3, 601)
    least = min(sum(value(int(Loss[loss]), m, y) for y in labels) for m in grid)
    assert least_of_constants(loss, 30, 90) == pytest.approx(least, rel=1e-4)


def test_late_divergence_is_said_though_the_whole_is_good():
    X, y = few(40_000)
    model = SGDTClassifier(k=3, learning_rate=0.1)
    assert not said(model.partial_fit, X, y)
    (one,) = said(model.partial_fit, X[:2000], -y[:2000])
    assert "over the last 2000 of 42000 rows" in one and model.online_score_ > 0.8
    # It is over, and begins again
    assert not said(model.partial_fit, X, y)
    assert len(said(model.partial_fit, X[:2000], -y[:2000])) == 1


def test_rows_sorted_by_label_end_in_one_class_and_it_is_said():
    X, y = unequal(4000)
    model = SFSAClassifier(k=40, learning_rate=1e-4)
    (one,) = said(model.partial_fit, *(part[np.argsort(y, kind="stable")] for part in (X, y)))
    assert "sorted by label: 1 of 3999 rows" in one and (model.predict(X) > 0).all()


def test_a_tuning_all_points_of_which_diverge_is_no_choice_of_defaults():
    X, y = few()
    data = Dataset("few", X, y, X, y)
    spec = setting(
        methods={"mad": {"class": "SGDTRegressor"}},
        metrics=["RMSE", "selected"],
        tune={"grid": {"learning_rate": [1e200, 1e300]}, "score": "online", "at": {}},
        replicates=2,
    )
    table = experiment.run(spec, data, progress=False)
    assert table["metric"].tolist() == ["RMSE", "selected"] and table["value"].isna().all()
    assert table["note"].str.startswith("tuning: all 2 points diverged").all()


# -------------------------------------------------- features unlike the others; more of them


def with_a_date(n=4000, p=60):
    rng = np.random.default_rng(7)
    X = rng.standard_normal((n, p))
    y = np.where(X[:, :3].sum(axis=1) + rng.logistic(size=n) > 0, 1, -1)
    X[:, 20] = 20260101 + rng.integers(0, 900, n)
    return X, y


FORMS = {
    "array": np.asfortranarray,
    "sparse": sp.csr_array,
    "frame": lambda X: pd.DataFrame(X).rename(columns=lambda j: "date" if j == 20 else f"v{j}"),
}


@pytest.mark.parametrize("kind", [SFSAClassifier, BARDAClassifier, SIHTClassifier])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.filterwarnings("ignore:.*(predict|loss|label)")
def test_a_feature_far_larger_than_the_others_is_named(form, kind):
    X, y = with_a_date()
    name = "'date'" if form == "frame" else r"20 \(counted from 0\)"
    for learn, n in ((kind.fit, 4000), (kind.partial_fit, 50)):
        with pytest.warns(ConvergenceWarning, match=f"feature {name} are about 2.03e[+]07 .* stan"):
            learn(kind(k=3), FORMS[form](X[:n]), y[:n])


def test_standardised_it_is_learned_and_nothing_is_said():
    X, y = with_a_date()
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    with warnings.catch_warnings(action="error"):
        assert SFSAClassifier(k=3).fit(X, y).support_.tolist() == [0, 1, 2]


def test_sizes_of_features_are_those_of_their_values_that_are_not_zero():
    """So that a rare word is as large as a frequent one."""
    X = np.zeros((100, 5))
    X[:, 0], X[3, 1], X[4:6, 2], X[7, 3] = 2.0, -3.0, (6.0, 8.0), 1e-3
    for form in (np.asarray, sp.csr_array):
        for large in (899.0, 901.0):  # the middle one of the five sizes is 3
            X[:, 4] = large
            found = scales(form(X), np.arange(100))
            assert (found.usual, found.largest) == pytest.approx((3.0, large))
            assert found.feature == 4 and found.unlike == (large > 900.0)
        assert scales(form(X * 0), np.arange(100)) is None


def test_sizes_of_few_rows_are_chance_and_a_later_block_tells():
    X, y = with_a_date()
    model = SFSAClassifier(k=3)
    with warnings.catch_warnings(action="error"):
        for i in range(0, 40, 10):
            model.partial_fit(X[i : i + 10], y[i : i + 10])
    for rows, times in ((slice(40, 90), 1), (slice(90, 140), 0)):
        told = said(model.partial_fit, X[rows], y[rows])
        assert sum("counted from 0" in each for each in told) == times


@pytest.mark.parametrize("kind", [SFSAClassifier, SGDTRegressor])
def test_more_features_than_are_left_are_not_to_be_had(kind):
    X, y = few(n=400, p=12)
    own = {"learning_rate": 0.01} if kind is SGDTRegressor else {}
    model = kind(k=3, **own).fit(X, y).set_params(k=5)
    with pytest.warns(ConvergenceWarning, match=r"k=5, but .* only 3 features left.*with k=3.*fit"):
        model.partial_fit(X, y)
    with warnings.catch_warnings(action="error"):
        model.set_params(k=2).partial_fit(X, y)
        assert len(model.support_) == 2
        early = kind(k=3, maturity=10**6, **own).partial_fit(X, y).set_params(k=5)
        assert len(early.partial_fit(X, y).support_) == 5, "none was dropped yet"
