"""Ctrl-C at any moment of a change: all of a block is known, or none."""

import itertools
import os
import pickle
import signal

import numpy as np
import pytest
import scipy.sparse as sp
from test_files import before_line

import ofslib
from ofslib import _comoments as module
from ofslib import _interrupts, averages
from ofslib.averages import RunningAverages
from ofslib.streams import average_stream

P = 20
RNG = np.random.default_rng(0)
X, Y = RNG.standard_normal((2000, P)), RNG.standard_normal(2000)
THIN = sp.random_array((2000, 100), density=0.008, rng=0, format="csr")
SOURCES = {part.__file__ for part in (module, averages, average_stream, _interrupts)}

pytestmark = pytest.mark.skipif(os.name != "posix", reason="sends signals")


@pytest.fixture(autouse=True)
def ctrl_c():
    # A shell starts what runs in the background with Ctrl-C ignored.
    usual = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, usual)


def facts(one):
    """All that later results depend on."""
    if not isinstance(one, RunningAverages):
        return one.n_samples_seen_, facts(one.averages_), one.coef_.tobytes()
    parts = one.__getstate__()
    names = ("_C", "_mean", "_rest", "_rows", "_weights", "_decays")
    return one.n, one.weight, *(parts[name].tobytes() for name in names)


def fed(p):
    rows = X[:500] if p == P else THIN[:500].toarray()
    return RunningAverages(p).update(rows, Y[:500])


def interrupt():
    signal.raise_signal(signal.SIGINT)
    signal.raise_signal(signal.SIGINT)  # where the first one has to wait


PART = fed(100)
CHANGES = {  # what is known before, and the change
    "first rows": (lambda: RunningAverages(P), lambda a: a.update(X[:150], Y[:150])),
    "update": (lambda: fed(P), lambda a: a.update(X[:150], Y[:150])),
    "sparse": (lambda: fed(100), lambda a: a.update(THIN, Y)),
    "merge": (lambda: fed(100), lambda a: a.merge(PART)),
    "partial_fit": (
        lambda: ofslib.OLSthRegressor().partial_fit(X[:99], Y[:99]),
        lambda model: model.partial_fit(X[:100], Y[:100]),
    ),
}


@pytest.mark.parametrize("change", CHANGES)
def test_an_interrupt_before_any_line_leaves_all_or_nothing(change, monkeypatch):
    monkeypatch.setattr(module, "_LEAST_ROWS", 64)
    make, act = CHANGES[change]
    known = make()
    before, after = facts(known), facts(act(pickle.loads(pickle.dumps(known))))
    for line in itertools.count():
        one = pickle.loads(pickle.dumps(known))
        try:
            before_line(line, SOURCES, interrupt, lambda one=one: act(one))
        except KeyboardInterrupt:
            assert facts(one) in (before, after)
        else:
            break
    assert line > 30 and facts(one) == after


@pytest.mark.parametrize("known", [0, 500])
def test_an_error_half_way_is_never_silent(known, monkeypatch):
    one = fed(P) if known else RunningAverages(P)
    before, calls = facts(one), itertools.count()

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
        assert facts(one) == before
