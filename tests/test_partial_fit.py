"""`partial_fit` learns in a copy of the state."""

import contextlib
import copy
import itertools
import pickle

import numpy as np
import pytest
from numpy.testing import assert_equal
from sklearn.base import BaseEstimator

from ofslib import AnytimeSFSAClassifier, BARDAClassifier, SFSAClassifier, _model_files
from ofslib.streams import online, selector

X = np.random.default_rng(0).standard_normal((60, 30))
Y = np.where(X[:, 0] > 0, 1, np.where(X[:, 1] > 0, 2, 3))
PARTS = [slice(i, i + 4) for i in range(0, 60, 4)]
CASES = [
    (SFSAClassifier(k=5, batch_size=1), 3),
    (SFSAClassifier(k=5, learning_rate=0.1, optimizer="adam", batch_size=3), 2),
    (AnytimeSFSAClassifier(k=5, first_maturity=20, batch_size=1), 2),
    (BARDAClassifier(k=5), 2),
    (SFSAClassifier(k=5, multiclass="joint", learning_rate=0.1), 3),
]


def states(state):
    return [state] if isinstance(state, np.ndarray) else [a for s in state for a in states(s)]


def learned(model, n_classes, parts):
    model = copy.deepcopy(model)
    for part in parts:
        model.partial_fit(X[part], np.minimum(Y[part], n_classes), [1, 2, 3][:n_classes])
    return model


@pytest.mark.parametrize("model, n_classes", CASES)
def test_what_others_hold_of_a_state_stays(model, n_classes):
    """A shallow copy of the estimator, or another thread that predicts, shares the state."""
    model = learned(model, n_classes, PARTS[:3])
    other, coef = copy.copy(model), model.coef_
    held = [array.copy() for array in states(other._state)]
    for part in PARTS[3:7]:
        model.partial_fit(X[part], np.minimum(Y[part], n_classes))
    assert (model.coef_ != coef).any()
    assert_equal(other.coef_, coef)
    assert_equal(states(other._state), held)


def test_a_state_is_not_written_to_while_its_classes_are_read(monkeypatch):
    """What is read are parts of its arrays, which do not tell that somebody needs the whole."""
    model, later = learned(CASES[-1][0], 3, PARTS[:5]), iter(PARTS[5:])
    coef, shown = model.coef_, SFSAClassifier._exposed

    def shown_late(self, state):
        for part in later:  # as another thread may do
            self.partial_fit(X[part], Y[part])
        return shown(self, state)

    monkeypatch.setattr(SFSAClassifier, "_exposed", shown_late)
    assert_equal(model.coef_, coef)
    assert (model.coef_ != coef).any()


@pytest.mark.parametrize("model, n_classes", CASES)
def test_what_others_see_meanwhile_is_the_model_before(model, n_classes, monkeypatch, tmp_path):
    """Threads that predict or save while a third one learns, which needs no lock to do so."""
    model, sums = learned(model, n_classes, PARTS[:3]), online.sums_of
    before, seen = (model.coef_, model.online_loss_, model.n_samples_seen_), []

    def look(*block):
        model.save(tmp_path / "model")
        saved = type(model).load(tmp_path / "model")
        for one in (model, saved, pickle.loads(pickle.dumps(model)), copy.copy(model)):
            seen.append((one.coef_, one.online_loss_, one.n_samples_seen_))
        return sums(*block)

    monkeypatch.setattr(online, "sums_of", look)
    model.partial_fit(X[12:], np.minimum(Y[12:], n_classes))
    assert seen and (model.coef_ != before[0]).any()
    for each in seen:
        assert_equal(each, before)


@pytest.mark.parametrize("model, n_classes", CASES)
def test_a_file_is_of_the_moment_when_it_was_begun(model, n_classes, monkeypatch, tmp_path):
    """Its arrays are written long after they were gathered."""
    model, whole_file = learned(model, n_classes, PARTS[:3]), _model_files.whole_file
    held = [array.copy() for array in states(model._state)]

    @contextlib.contextmanager
    def learn_and_write(path):
        for part in PARTS[3:7]:  # as another thread may do
            model.partial_fit(X[part], np.minimum(Y[part], n_classes))
        with whole_file(path) as file:
            yield file

    monkeypatch.setattr(_model_files, "whole_file", learn_and_write)
    model.save(tmp_path / "model")
    assert_equal(states(type(model).load(tmp_path / "model")._state), held)


FORMS = {
    "two": ({}, 2),
    "three": ({}, 3),
    "three, joint": ({"multiclass": "joint"}, 3),
    "two, forgetting": ({"forget": 20}, 2),
    "three, joint, forgetting": ({"multiclass": "joint", "forget": 20}, 3),
    "two, Adam": ({"optimizer": "adam"}, 2),
}


@pytest.mark.parametrize("one, other", [*itertools.permutations(FORMS, 2)])
def test_after_a_fit_of_another_form_it_learns_as_if_new(one, other):
    (before, few), (given, many) = FORMS[one], FORMS[other]
    plain = {"multiclass": "ovr", "forget": None, "optimizer": "sgd"}
    new = SFSAClassifier(k=5, learning_rate=0.1, batch_size=3, shuffle=False)
    model = learned(copy.deepcopy(new).set_params(**before), few, PARTS)
    for each in (model, new):
        each.set_params(**plain | given).fit(X, np.minimum(Y, many))
        for part in PARTS[:4]:
            each.partial_fit(X[part], np.minimum(Y[part], many))
    assert_equal(states(model._state), states(new._state))


@pytest.mark.parametrize("model, n_classes", CASES)
def test_a_call_that_fails_between_others_leaves_no_trace(model, n_classes):
    whole = learned(model, n_classes, PARTS)
    model = learned(model, n_classes, PARTS[:3])
    for part in PARTS[3:]:
        before, bad = [array.copy() for array in states(model._state)], X[part].copy()
        bad[2, 7] = np.nan
        with pytest.raises(ValueError, match="NaN"):
            model.partial_fit(bad, np.minimum(Y[part], n_classes))
        assert_equal(states(model._state), before)
        model.partial_fit(X[part], np.minimum(Y[part], n_classes))
    assert_equal(states(model._state), states(whole._state))


def test_parameters_and_labels_that_were_checked_are_not_checked_again(monkeypatch):
    """It took longer than to learn a row of ten thousand values; what is new is looked at."""
    calls, check, targets = (
        [],
        BaseEstimator._validate_params,
        selector.check_classification_targets,
    )

    def counted(self):
        calls.append("parameters")
        check(self)

    monkeypatch.setattr(BaseEstimator, "_validate_params", counted)

    def noted(y):
        calls.append("labels")
        targets(y)

    monkeypatch.setattr(selector, "check_classification_targets", noted)
    model = learned(CASES[0][0], 3, PARTS[:1])
    assert calls == ["parameters"]
    model.partial_fit(X[PARTS[1]], Y[PARTS[1]])
    assert calls == ["parameters"]
    for labels in ([1, 2, 3, 4], [1.0, 2.0, 3.0, 2.5], [1, 2, 3, np.inf]):
        with pytest.raises(ValueError, match=r"Unknown label type|y holds labels|infinity"):
            model.partial_fit(X[PARTS[2]], labels)
    calls.clear()
    for given in ({"k": 7}, {"batch_size": 2}):
        model.set_params(**given).partial_fit(X[PARTS[2]], Y[PARTS[2]])
    assert calls == ["parameters"] * 2
    for given in ({"k": 0}, {"n_passes": 0}, {"learning_rate": -1.0}, {"fit_intercept": None}):
        with pytest.raises(ValueError, match=f"{next(iter(given))!r} parameter"):
            copy.deepcopy(model).set_params(**given).partial_fit(X[PARTS[2]], Y[PARTS[2]])
