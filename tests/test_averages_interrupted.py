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
from ofslib._interrupts import interrupts_held
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


def interrupted(call, after):
    """Whether Ctrl-C, so many seconds after its beginning, ended the call."""
    timer = threading.Timer(after, signal.raise_signal, [signal.SIGINT])
    # From a thread the signal goes to the process, and Python's answer to the main thread.
    timer.function, timer.args = os.kill, [os.getpid(), signal.SIGINT]
    came = False
    try:
        timer.start()
        call()
        timer.join()
        time.sleep(0.001)
    except KeyboardInterrupt:
        came = True
    return came


def moments(call, count=30):
    start = time.perf_counter()
    call()
    length = time.perf_counter() - start
    return np.random.default_rng(1).uniform(0, length, count)


CHANGES = {
    "update": lambda a: a.update(X, Y),
    "sparse": lambda a: a.update(THIN, Y),
    "merge": lambda a: a.merge(RunningAverages(a.n_features).update(THIN[:900], Y[:900])),
}


@pytest.mark.parametrize("change", CHANGES)
def test_an_interrupt_leaves_all_or_nothing(change):
    p, act = (P if change == "update" else 400), CHANGES[change]
    first = X[:500] if p == P else THIN[:500].toarray()
    known = RunningAverages(p).update(first, Y[:500])
    known_before, after = state(known), state(act(known.copy()))
    seen = set()
    for moment in moments(lambda: act(known.copy())):
        one = known.copy()
        interrupted(lambda one=one: act(one), moment)
        seen.add(state(one) == after)
        assert state(one) in (known_before, after)
    assert True in seen


def test_an_interrupt_of_the_first_rows_leaves_empty_averages():
    early = 0
    for moment in moments(lambda: RunningAverages(P).update(X, Y)):
        one = RunningAverages(P)
        interrupted(lambda one=one: one.update(X, Y), moment)
        early += one.n == 0
        one = one if one.n else one.update(X, Y)
        assert state(one) == state(RunningAverages(P).update(X, Y))
    assert early


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
    one, other = (RunningAverages(P).update(X[:200], Y[:200]) for _ in range(2))
    model = ofslib.OLSRegressor().fit_averages(one)
    for change in (one.update, model.partial_fit):
        with pytest.raises(KeyboardInterrupt):
            change(X, Y)
    impatient.undo()
    assert state(one) == state(model.averages_) == state(other.update(X, Y))


def test_a_handler_of_the_user_is_called_and_nothing_else_is_raised(impatient):
    """As of a server that ends when the work in hand is done, or asyncio.run."""
    one, empty, stop = RunningAverages(P).update(X[:200], Y[:200]), RunningAverages(P), []
    usual = signal.signal(signal.SIGINT, lambda number, frame: stop.append(number))
    try:
        one.update(X, Y)
        assert stop == [signal.SIGINT] and one.n == 6200
        empty.update(X, Y)
        assert len(stop) > 2 and empty.n == 6000
    finally:
        signal.signal(signal.SIGINT, usual)


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


def test_ctrl_c_is_as_before_afterwards():
    usual = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt), interrupts_held():
        with interrupts_held():
            signal.raise_signal(signal.SIGINT)
        held = True
    assert held and signal.getsignal(signal.SIGINT) is usual
    found = []
    thread = threading.Thread(target=lambda: found.append(RunningAverages(P).update(X, Y).n))
    thread.start()
    thread.join()
    assert found == [6000]


@pytest.mark.parametrize("cls", [ofslib.OLSthRegressor, ofslib.OLSClassifier])
def test_an_interrupted_partial_fit_has_learned_all_or_nothing(cls):
    y = np.where(Y > 0, 1, -1) if issubclass(cls, ofslib.OLSClassifier) else Y
    known = cls().partial_fit(X[:500], y[:500])
    _ = known.coef_

    def facts(model):
        return model.n_samples_seen_, state(model.averages_), model.coef_.tobytes()

    def copied():
        return pickle.loads(pickle.dumps(known))

    before, after, seen = facts(known), facts(copied().partial_fit(X, y)), set()
    for moment in moments(lambda: copied().partial_fit(X, y)):
        model = copied()
        interrupted(lambda model=model: model.partial_fit(X, y), moment)
        seen.add(facts(model) == after)
        assert facts(model) in (before, after)
    assert True in seen
    for moment in moments(lambda: copied().fit(X, y), 10):
        model = copied()
        if interrupted(lambda model=model: model.fit(X, y), moment):
            assert facts(model) in (before, facts(cls().fit(X, y)))


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


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_what_waits_is_counted_as_if_it_were_folded_in(dtype, monkeypatch):
    monkeypatch.setattr(module, "_LEAST_ROWS", 8)
    waiting = RunningAverages(4, dtype).update(X[:13, :4] + 7, Y[:13])
    folded = waiting.copy()._settled(spend=True)
    assert waiting._filled == 5 and folded._filled == 0
    for name in ("mean_x", "mean_y", "S_xx", "S_xy", "S_yy"):
        assert np.array_equal(getattr(waiting, name), getattr(folded, name))
    for one, two in zip(waiting.standardized(), folded.standardized(), strict=True):
        assert np.array_equal(one, two)


def test_a_model_read_between_blocks_is_the_same_model():
    quiet, read = ofslib.OFSARegressor(k=3), ofslib.OFSARegressor(k=3)
    for start in range(0, 1000, 70):
        for model in (quiet, read):
            model.partial_fit(X[start : start + 70], Y[start : start + 70])
        _ = read.coef_, read.predict(X[:3])
    assert state(read.averages_) == state(quiet.averages_)
    assert read.coef_.tobytes() == quiet.coef_.tobytes()
