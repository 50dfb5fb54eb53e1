"""`partial_fit` learns in a copy of the state, so that threads may share an estimator."""

import copy
import itertools
import pickle

import numpy as np
import pytest
from numpy.testing import assert_equal
from sklearn.model_selection import GridSearchCV
from threadpoolctl import threadpool_info, threadpool_limits

from ofslib import AnytimeSFSAClassifier, BARDAClassifier, SFSAClassifier
from ofslib._blas import one_blas_thread
from ofslib.streams import online

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
    """A shallow copy of the estimator shares the state; a call that fails leaves no trace."""
    whole, model = learned(model, n_classes, PARTS), learned(model, n_classes, PARTS[:3])
    other, coef = copy.copy(model), model.coef_
    held = [array.copy() for array in states(other._state)]
    for part in PARTS[3:]:
        before, bad = [array.copy() for array in states(model._state)], X[part].copy()
        bad[2, 7] = np.nan
        with pytest.raises(ValueError, match="NaN"):
            model.partial_fit(bad, np.minimum(Y[part], n_classes))
        assert_equal(states(model._state), before)
        model.partial_fit(X[part], np.minimum(Y[part], n_classes))
    assert_equal(states(model._state), states(whole._state))
    assert (model.coef_ != coef).any()
    assert_equal(other.coef_, coef)
    assert_equal(states(other._state), held)


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


FORMS = [({}, 2), ({"multiclass": "joint", "forget": 20}, 3), ({"optimizer": "adam"}, 2)]


@pytest.mark.parametrize("one, other", [*itertools.permutations(FORMS, 2)])
def test_after_a_fit_of_another_form_it_learns_as_if_new(one, other):
    (before, few), (given, many) = one, other
    plain = {"multiclass": "ovr", "forget": None, "optimizer": "sgd"}
    new = SFSAClassifier(k=5, learning_rate=0.1, batch_size=3, shuffle=False)
    model = learned(copy.deepcopy(new).set_params(**before), few, PARTS)
    for each in (model, new):
        each.set_params(**plain | given).fit(X, np.minimum(Y, many))
        for part in PARTS[:4]:
            each.partial_fit(X[part], np.minimum(Y[part], many))
    assert_equal(states(model._state), states(new._state))


def test_blas_has_one_thread_as_long_as_any_fit_needs_it():
    """The limit is one of the process: of two fits that overlap, neither may end it early."""
    seen, first, second = [], one_blas_thread(), one_blas_thread()
    with threadpool_limits(2, "blas"):
        for step in (first.__enter__, second.__enter__, lambda: first.__exit__(None, None, None),
                     lambda: second.__exit__(None, None, None)):  # fmt: skip
            step()
            libraries = [lib for lib in threadpool_info() if lib["user_api"] == "blas"]
            seen.append({lib["num_threads"] for lib in libraries})
    assert seen == [{1}, {1}, {1}, {2}]


def test_a_grid_searched_in_threads_is_that_of_one():
    joblib, found = pytest.importorskip("joblib"), []
    for n_jobs in (1, 4):
        grid = {"k": [1, 5, 20], "loss": ["log_loss", "hinge"]}
        search = GridSearchCV(SFSAClassifier(random_state=0), grid, cv=3, n_jobs=n_jobs)
        with joblib.parallel_config("threading"):
            found.append(search.fit(X, Y > 1))
    one, four = (search.cv_results_ for search in found)
    assert_equal(one["mean_test_score"], four["mean_test_score"])
    assert_equal(found[0].best_estimator_.coef_, found[1].best_estimator_.coef_)
