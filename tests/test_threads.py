"""Learning in several threads: a kernel holds no lock that Python needs; results stay the same."""

from threading import Thread

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_equal
from sklearn.model_selection import GridSearchCV
from threadpoolctl import threadpool_info, threadpool_limits

from ofslib import OPGClassifier, SFSAClassifier, SGDTClassifier
from ofslib._blas import one_blas_thread
from ofslib.streams.row_stream import _blocks

joblib = pytest.importorskip("joblib", reason="scikit-learn brings it")
X = np.random.default_rng(0).standard_normal((400, 60))
Y = np.where(X[:, 0] > 0, 1.0, -1.0)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_python_runs_while_a_kernel_does(form):
    """Predictions are seen half written, which a kernel that held the lock would not let happen."""
    model = SFSAClassifier(k=5).partial_fit(form(X), Y)  # compiles
    (block,) = _blocks(form(X), Y[None], np.tile(np.arange(400), 100))
    order = np.tile(block.order, 100)
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


@pytest.mark.parametrize("cls", [SFSAClassifier, SGDTClassifier, OPGClassifier])
def test_a_grid_searched_in_threads_is_that_of_one(cls):
    found = []
    for n_jobs in (1, 4):
        grid = {"k": [1, 5, 20], "loss": ["log_loss", "hinge"]}
        search = GridSearchCV(cls(random_state=0), grid, cv=3, n_jobs=n_jobs)
        with joblib.parallel_config("threading"):
            found.append(search.fit(X, Y))
    one, four = (search.cv_results_ for search in found)
    assert_equal(one["mean_test_score"], four["mean_test_score"])
    assert_equal(found[0].best_estimator_.coef_, found[1].best_estimator_.coef_)
    assert found[0].best_params_ == found[1].best_params_
