"""What a classifier is asked for every day: probabilities, more than two classes, weights."""

import re

import numpy as np
import pytest
import scipy.sparse as sp
from estimators import AVERAGES, every, public, said
from scipy.special import expit
from sklearn.base import ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import log_loss

from ofslib import (
    BARDAClassifier,
    OFSAClassifier,
    OLSthClassifier,
    OnlineSubstitution,
    SFSAClassifier,
    SGDTClassifier,
)
from ofslib.streams.average_stream import AverageStream
from ofslib.streams.row_stream import RowStream

X = np.random.default_rng(0).standard_normal((300, 8))
F = X[:, :3] @ [2.0, -1.5, 1.0] + np.random.default_rng(1).logistic(size=300)
Y = np.where(F > 0, "yes", "no")
TIMES = np.random.default_rng(2).integers(0, 4, 300)


# -------------------------------------------------- probabilities


def test_probabilities_are_the_sigmoid_of_the_margins():
    for model in (SGDTClassifier(k=3), OnlineSubstitution(k=3, loss="log_loss")):
        found = model.fit(X, Y).predict_proba(X)
        margins = model.decision_function(X)
        np.testing.assert_allclose(found, np.transpose([expit(-margins), expit(margins)]))
        np.testing.assert_allclose(found.sum(axis=1), 1.0)
        np.testing.assert_allclose(np.exp(model.predict_log_proba(X)), found)
        assert np.array_equal(model.classes_[found.argmax(axis=1)], model.predict(X))
        assert np.isfinite(model.predict_log_proba(1e6 * X)).all()


@pytest.mark.parametrize(
    "model", [BARDAClassifier(k=3), OLSthClassifier(k=3), OnlineSubstitution()]
)
def test_no_probabilities_where_margins_are_no_log_odds(model):
    assert not hasattr(model, "predict_proba") and not hasattr(model, "predict_log_proba")


@pytest.mark.parametrize("own", [{}, {"multiclass": "joint"}], ids=str)
@pytest.mark.parametrize("rare", [False, True], ids=["small", "rare"])
def test_probabilities_are_right_where_those_that_leave_are_small_or_rare(rare, own):
    """Those that stay have more variance than the average had, which must not shrink them."""
    rng = np.random.default_rng(5)
    X = rng.standard_normal((30_000, 200))
    X[:, 5:] *= rng.random((30_000, 195)) < 0.05 if rare else 1 / 3
    truth = expit(X[:, :5].sum(axis=1) - 3.0)
    y = (rng.random(30_000) < truth).astype(int)
    learned, new = slice(20_000), slice(20_000, None)
    shown = sp.csr_array(X[learned]) if rare else X[learned]
    model = SFSAClassifier(k=5, random_state=0, **own).fit(shown, y[learned])
    assert list(model.support_) == [0, 1, 2, 3, 4]
    told = model.predict_proba(X[new])[:, 1]
    assert log_loss(y[new], told) < 1.02 * log_loss(y[new], truth[new])
    assert abs(told.mean() - truth[new].mean()) < 0.02


# -------------------------------------------------- more than two classes

LABELS = np.array(["a", "b", "c"])[np.argmax(X[:, :3] + 0.3 * X[:, 3:6], axis=1)]
CLASSES = np.unique(LABELS)
WEIGHTED = [cls for cls in (*public(RowStream), *AVERAGES) if issubclass(cls, ClassifierMixin)]


def made(cls, **own):
    """A small one, with a mini-batch that does not divide the rows."""
    own = {"k": 3, "n_penalties": 4, "batch_size": 7, "random_state": 0, "first_maturity": 63} | own
    return cls(**{name: own[name] for name in own if name in cls().get_params()})


@every(public(RowStream, ClassifierMixin))
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array, np.float32], ids=lambda f: f.__name__)
def test_one_against_the_rest_is_a_model_for_each_class(cls, form):
    """Bit for bit, though the rows are read once for all of them."""
    rows = form(X)
    model = made(cls, n_passes=2).fit(rows, LABELS)
    each = [made(cls, n_passes=2).fit(rows, label == LABELS) for label in CLASSES]
    assert np.array_equal(model.coef_, [one.coef_ for one in each])
    assert np.array_equal(model.intercept_, [one.intercept_ for one in each])
    assert np.array_equal(model.support_, np.unique(np.concatenate([m.support_ for m in each])))
    margins = np.transpose([one.decision_function(rows) for one in each])
    np.testing.assert_allclose(model.decision_function(rows), margins, rtol=1e-12, atol=1e-12)
    assert np.array_equal(model.predict(rows), CLASSES[margins.argmax(axis=1)])
    assert model.transform(rows).shape == (300, len(model.support_))
    mean = np.mean([one.online_loss_ for one in each])
    np.testing.assert_allclose(model.online_loss_, mean, rtol=1e-12)
    assert 0.4 < model.online_score_ <= 1
    if hasattr(model, "predict_proba"):
        found, own = model.predict_proba(rows), expit(model.decision_function(rows))
        np.testing.assert_allclose(found, own / own.sum(axis=1, keepdims=True))


@every([cls for cls in WEIGHTED if issubclass(cls, AverageStream)])
@pytest.mark.parametrize("own", [{}, {"fit_intercept": False}, {"adaptation": 0.01}], ids=str)
def test_classes_share_the_moments_of_the_features(cls, own):
    """The models are those of each class, up to rounding; their averages are p^2 once."""
    for rows in (X, sp.csr_array(X * (np.abs(X) > 1))):
        model = made(cls, **own).fit(rows, LABELS)
        each = [made(cls, **own).fit(rows, label == LABELS) for label in CLASSES]
        coefs, intercepts = [m.coef_ for m in each], [m.intercept_ for m in each]
        np.testing.assert_allclose(model.coef_, coefs, atol=1e-12)
        np.testing.assert_allclose(model.intercept_, intercepts, atol=1e-12)
        assert np.array_equal(model.coef_ != 0, np.array(coefs) != 0)
        assert model.averages_.n_features == 8 + 2 and model.n_features_in_ == 8
        assert model.score(rows, LABELS) > 0.4


def test_a_class_that_has_not_come_yet_is_predicted_once_it_has():
    for model in (SGDTClassifier(k=3, learning_rate=1), OLSthClassifier(k=3)):
        early = LABELS != "c"
        model.partial_fit(X[early], LABELS[early], classes=CLASSES)
        assert set(model.predict(X)) == {"a", "b"}
        model.partial_fit(X[~early], LABELS[~early])
        assert set(model.predict(X)) > {"c"}


def test_the_online_score_is_the_share_of_rows_whose_label_was_foretold():
    """By all models together; the loss is the mean of theirs."""
    model, right, loss = SGDTClassifier(k=8, batch_size=1, learning_rate=0.1), [], []
    model.partial_fit(X[:1], LABELS[:1], classes=CLASSES)
    for i in range(1, 80):
        margins = model.decision_function(X[[i]])[0]
        right.append(CLASSES[margins.argmax()] == LABELS[i])
        loss.append(np.logaddexp(0, np.where(LABELS[i] == CLASSES, -margins, margins)).mean())
        model.partial_fit(X[[i]], LABELS[[i]])
    first = LABELS[0] == CLASSES[0]  # without coefficients
    assert model.online_score_ == (sum(right) + first) / 80
    np.testing.assert_allclose(model.online_loss_, (sum(loss) + np.log(2)) / 80)


def test_what_is_wrong_is_said_once_for_all_classes():
    """Where labels are noise, and the steps large."""
    model = SGDTClassifier(k=8, learning_rate=100.0, random_state=0)
    with pytest.warns(ConvergenceWarning) as caught:
        model.fit(X, np.random.default_rng(0).permutation(LABELS))
    (one,) = caught
    named = r"Labels \['a', 'b', 'c'\] against the others, .* worse than a model without features"
    assert re.match(named, str(one.message)) and one.filename == __file__


@pytest.mark.parametrize(
    ("labels", "told"),
    [(range(100), False), (range(101), True), ([f"word {i}" for i in range(101)], False)],
)
def test_numbers_that_look_like_amounts_are_told(labels, told):
    found = said(SGDTClassifier(k=2).partial_fit, X, np.resize(np.array(labels), 300))
    assert told == any("101 different numbers" in one for one in found)


def test_forgetting_learns_the_last_rows():
    model = SFSAClassifier(k=3, forget=100, batch_size=10).fit(X, LABELS)
    alone = SFSAClassifier(k=3, maturity=100, batch_size=10)
    assert_same(model, alone.partial_fit(X[200:], LABELS[200:], classes=CLASSES))


# -------------------------------------------------- weights

NUMBERS = X[:, 0] - X[:, 1] + 0.1 * np.random.default_rng(3).standard_normal(300)


def target(cls):
    return LABELS if issubclass(cls, ClassifierMixin) else NUMBERS


def assert_same(one, two, **tolerance):
    for name in ("coef_", "intercept_"):
        found, expected = getattr(one, name), getattr(two, name)
        if tolerance:
            np.testing.assert_allclose(found, expected, **tolerance)
        assert tolerance or np.array_equal(found, expected)


@every(public((RowStream, AverageStream)))
def test_weights_of_one_are_none_and_of_zero_no_rows(cls):
    """Bit for bit."""
    y, used = target(cls), TIMES > 0
    assert_same(made(cls).fit(X, y, sample_weight=np.ones(300)), made(cls).fit(X, y))
    model = made(cls).fit(X, y, sample_weight=used)
    model.partial_fit(X, y, sample_weight=np.zeros(300))
    assert_same(model, made(cls).fit(X[used], y[used]))
    assert model.n_samples_seen_ == used.sum()
    sparse = made(cls).partial_fit(sp.csr_array(X), y, sample_weight=used.tolist())
    assert_same(sparse, made(cls).partial_fit(sp.csr_array(X[used]), y[used]))


@every(WEIGHTED)
def test_class_weights_are_weights_of_the_rows(cls):
    own = {"a": 2.0, "c": 0.5}
    rows = np.array([own.get(label, 1.0) for label in LABELS])
    one = made(cls).fit(X, LABELS, sample_weight=rows)
    assert_same(made(cls, class_weight=own).fit(X, LABELS), one)
    both = made(cls, class_weight=own).partial_fit(X, LABELS, sample_weight=TIMES)
    assert_same(both, made(cls).partial_fit(X, LABELS, sample_weight=TIMES * rows))
    of_label = {label: 300 / (3 * np.sum(label == LABELS)) for label in CLASSES}
    balanced = made(cls, class_weight="balanced").fit(X, LABELS)
    assert_same(balanced, made(cls, class_weight=of_label).fit(X, LABELS), rtol=1e-9)
    with pytest.raises(ValueError, match="class_weight='balanced' is not for partial_fit"):
        balanced.partial_fit(X, LABELS)


@pytest.mark.parametrize("in_order", [False, True])
def test_a_rare_class_is_not_sorted_because_it_is_heavy(in_order):
    rng = np.random.default_rng(2)
    x = rng.standard_normal((20_000, 3))
    y = (rng.random(20_000) < 0.008).astype(int)
    order = np.argsort(y, kind="stable") if in_order else np.arange(20_000)
    for weight in (None, "balanced"):
        model = SGDTClassifier(k=3, shuffle=False, class_weight=weight)
        found = said(model.fit, x[order], y[order])
        assert any("sorted by label" in one for one in found) == in_order


def test_what_is_said_does_not_go_by_the_scale_of_the_weights():
    """Of a model that runs away, and of one that says the same of all rows."""

    def told(rate, weight):
        model = SGDTClassifier(k=8, learning_rate=rate, fit_intercept=False, random_state=0)
        found = said(model.fit, np.abs(X), rare, sample_weight=np.full(300, weight))
        return [re.sub("learning_rate=[^,:]*", "", one) for one in found]

    rare = np.random.default_rng(0).random(300) < 0.2
    for rate, word in ((64.0, "worse than a model"), (2.0**-20, "predicted the same label")):
        (one,) = told(rate, 1.0)
        assert word in one and told(rate / 1024, 1024.0) == [one]


# -------------------------------------------------- one set of features for all classes


@pytest.mark.parametrize("learn", ["fit", "partial_fit"])
def test_a_criterion_is_of_one_model(learn):
    with pytest.raises(ValueError, match="k='ebic' must be a number with multiclass='joint'"):
        getattr(OFSAClassifier(k="ebic", multiclass="joint"), learn)(X, LABELS)


def test_joint_is_of_more_than_two_classes():
    one, two = (SFSAClassifier(k=3, random_state=0, multiclass=m) for m in ("ovr", "joint"))
    assert_same(two.fit(X, Y), one.fit(X, Y))
