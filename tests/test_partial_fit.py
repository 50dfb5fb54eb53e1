"""`partial_fit` learns in a copy of the state, so that threads may share an estimator."""

import contextlib
import copy
import itertools
import pickle
from threading import Thread

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_equal
from sklearn.model_selection import GridSearchCV
from threadpoolctl import threadpool_info, threadpool_limits

from ofslib import AnytimeSFSAClassifier, BARDAClassifier, SFSAClassifier, _model_files
from ofslib._blas import one_blas_thread
from ofslib.streams import online
from ofslib.streams.row_stream import _blocks

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


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_python_runs_while_a_kernel_does(form):
    """Predictions are seen half written, which a kernel that held the lock would not let happen."""
    model, y = SFSAClassifier(k=5).partial_fit(form(X), Y > 1), np.where(Y > 1, 1.0, -1.0)
    (block,) = _blocks(form(X), y[None], np.tile(np.arange(60), 100))
    order = np.tile(block.order, 500)
    block = block._replace(y=block.y[0], order=order, margins=np.full(len(order), np.nan))
    learning = Thread(target=model._learn_block, args=(model._state, block))
    learning.start()
    half_written = False
    while learning.is_alive() and not half_written:
        half_written = not np.isnan(block.margins[0]) and np.isnan(block.margins[-1])
    learning.join()
    assert half_written and np.isfinite(block.margins).all()


def test_blas_has_one_thread_as_long_as_any_fit_needs_it():
    """The limit is one of the process: of two fits that overlap, neither may end it early."""

    def limits():
        return {lib["num_threads"] for lib in threadpool_info() if lib["user_api"] == "blas"}

    with threadpool_limits(2, "blas"):
        first, second = one_blas_thread(), one_blas_thread()
        first.__enter__()
        assert limits() == {1}
        second.__enter__()
        first.__exit__(None, None, None)
        assert limits() == {1}, "the second one is still learning"
        second.__exit__(None, None, None)
        assert limits() == {2}
        with pytest.raises(KeyboardInterrupt), one_blas_thread():
            raise KeyboardInterrupt
        assert limits() == {2}


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
