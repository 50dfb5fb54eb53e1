"""Ctrl-C at any moment of a change, and reading at any moment: all of a block is known, or none."""

import itertools
import os
import pickle
import signal
import threading
import time

import numpy as np
import pytest
import scipy.sparse as sp

import ofslib
from ofslib import _comoments as module
from ofslib.averages import RunningAverages

P = 60
RNG = np.random.default_rng(0)
X, Y = RNG.standard_normal((6000, P)), RNG.standard_normal(6000)
THIN = sp.random_array((6000, 400), density=0.002, rng=0, format="csr")

pytestmark = pytest.mark.skipif(os.name != "posix", reason="sends signals")


@pytest.fixture(autouse=True)
def ctrl_c():
    # A shell starts what runs in the background with Ctrl-C ignored.
    usual = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, usual)


def state(averages):
    """All that later results depend on."""
    parts = averages.__getstate__()
    names = ("_C", "_mean", "_rest", "_rows", "_weights", "_decays")
    return averages.n, averages.weight, *(parts[name].tobytes() for name in names)


def copied(one):
    return pickle.loads(pickle.dumps(one))


def interrupted(call, after):
    """Whether Ctrl-C, so many seconds after its beginning, ended the call."""
    # From a thread the signal goes to the process, and Python's answer to the main thread.
    timer = threading.Timer(after, os.kill, [os.getpid(), signal.SIGINT])
    try:
        timer.start()
        call()
        timer.join()
        time.sleep(0.001)
    except KeyboardInterrupt:
        return True
    return False


def facts(one):
    if isinstance(one, RunningAverages):
        return state(one)
    return one.n_samples_seen_, state(one.averages_), one.coef_.tobytes()


def fed(a):
    return a.update(X[:500] if a.n_features == P else THIN[:500].toarray(), Y[:500])


CHANGES = {  # what is known before, and the change
    "update": (lambda: fed(RunningAverages(P)), lambda a: a.update(X, Y)),
    "sparse": (lambda: fed(RunningAverages(400)), lambda a: a.update(THIN, Y)),
    "merge": (
        lambda: fed(RunningAverages(400)),
        lambda a: a.merge(RunningAverages(400).update(THIN[:900], Y[:900])),
    ),
    "partial_fit": (
        lambda: ofslib.OLSthRegressor().partial_fit(X[:500], Y[:500]),
        lambda model: model.partial_fit(X, Y),
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("change", CHANGES)
def test_an_interrupt_leaves_all_or_nothing(change):
    make, act = CHANGES[change]
    known = make()
    before, start = facts(known), time.perf_counter()
    after, seen = facts(act(copied(known))), set()
    length = time.perf_counter() - start
    for moment in np.random.default_rng(1).uniform(0, length, 30):
        one = copied(known)
        interrupted(lambda one=one: act(one), moment)
        seen.add(facts(one) == after)
        assert facts(one) in (before, after)
    assert True in seen


@pytest.fixture
def impatient(monkeypatch):
    """Ctrl-C at each fold."""
    fold = RunningAverages._fold

    def folded(self):
        fold(self)
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(RunningAverages, "_fold", folded)
    return monkeypatch


def test_however_many_interrupts_come_nothing_that_was_known_is_lost(impatient):
    """And first rows leave empty averages, or all."""
    one, other = (RunningAverages(P).update(X[:200], Y[:200]) for _ in range(2))
    model, empty = ofslib.OLSRegressor().fit_averages(one), RunningAverages(P)
    for change in (one.update, model.partial_fit, empty.update):
        with pytest.raises(KeyboardInterrupt):
            change(X, Y)
    impatient.undo()
    assert state(one) == state(model.averages_) == state(other.update(X, Y))
    assert empty.n in (0, 6000)
    empty = empty if empty.n else empty.update(X, Y)
    assert state(empty) == state(RunningAverages(P).update(X, Y))


@pytest.mark.parametrize("known", [0, 500])
def test_an_error_half_way_is_never_silent(known, monkeypatch):
    one = RunningAverages(P)
    one = one.update(X[:known], Y[:known]) if known else one
    before, calls = state(one), itertools.count()

    def short_of_memory(*args, **own):
        if next(calls) == 2:
            raise MemoryError
        return dsyrk(*args, **own)

    dsyrk = module._SYRK["float64"]
    monkeypatch.setitem(module._SYRK, "float64", short_of_memory)
    with pytest.raises(MemoryError):
        one.update(X, Y)
    if known:
        with pytest.raises(RuntimeError, match="half-way"):
            one.update(X, Y)
    else:
        assert state(one) == before


READS = {
    "mean": lambda a: (a.mean_x, a.mean_y),
    "moments": lambda a: (a.S_xx, a.S_xy, a.S_yy),
    "standardized": lambda a: a.standardized() if a.n > 1 else None,
    "merged into another": lambda a: RunningAverages(a.n_features, a.dtype).merge(a),
    "added": lambda a: a + a,
    "model": lambda a: ofslib.OLSthRegressor(k=2).fit_averages(a).coef_ if a.n > 1 else None,
}


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("read", READS)
def test_reading_changes_nothing(read, dtype, monkeypatch):
    """What waits is counted as if it were folded in."""
    monkeypatch.setattr(module, "_LEAST_ROWS", 8)
    one, other = RunningAverages(4, dtype), RunningAverages(4, dtype)
    for start in range(0, 60, 5):
        block = X[start : start + 5, :4] + 100, Y[start : start + 5]
        one.update(*block)
        other.update(*block)
        before = state(one)
        READS[read](one)
        assert state(one) == before
    assert state(one) == state(other)
    waiting = RunningAverages(4, dtype).update(X[:13, :4] + 7, Y[:13])
    folded = waiting.copy()._settled(spend=True)
    assert waiting._filled == 5 and folded._filled == 0
    for name in ("mean_x", "mean_y", "S_xx", "S_xy", "S_yy"):
        assert np.array_equal(getattr(waiting, name), getattr(folded, name))
    for a, b in zip(waiting.standardized(), folded.standardized(), strict=True):
        assert np.array_equal(a, b)
