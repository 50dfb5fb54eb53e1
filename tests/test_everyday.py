"""What a classifier is asked for every day: probabilities, more than two classes, weights."""

import numpy as np
import pytest
from scipy.special import expit
from sklearn.calibration import CalibratedClassifierCV
from sklearn.metrics import log_loss

import ofslib
from ofslib import BARDAClassifier, OLSthClassifier, OnlineSubstitution, SGDTClassifier

X = np.random.default_rng(0).standard_normal((300, 8))
F = X[:, :3] @ [2.0, -1.5, 1.0] + np.random.default_rng(1).logistic(size=300)
Y = np.where(F > 0, "yes", "no")


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


def test_the_loss_that_was_learned_with_decides():
    model = SGDTClassifier(k=3).fit(X, Y)
    before = model.predict_proba(X)
    assert np.array_equal(model.set_params(loss="hinge").predict_proba(X), before)
    with pytest.raises(AttributeError, match="predict_proba"):
        model.fit(X, Y).predict_proba(X)


def test_other_losses_are_calibrated_through_scikit_learn():
    """Better than the share of each label, which is what a constant would say."""
    model = CalibratedClassifierCV(BARDAClassifier(k=3, random_state=0), cv=3).fit(X[:200], Y[:200])
    constant = np.full(100, np.mean(Y[:200] == "yes"))
    said = model.predict_proba(X[200:])[:, 1]
    assert log_loss(Y[200:], said) < 0.8 * log_loss(Y[200:], constant)
