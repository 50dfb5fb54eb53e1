"""Streams that nobody thought of: any cuts, saves, and the ends of what numbers may be.

Hypothesis draws them, always the same few. Many others are tried by

    OFSLIB_EXAMPLES=500 python -m pytest tests/test_any_stream.py
"""

import itertools
import os
import pickle
import re
import tempfile
import warnings
from typing import NamedTuple

import numpy as np
import pytest
import scipy.sparse as sp
from estimators import AVERAGES, every, public, wide
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.base import is_classifier

import ofslib
from ofslib import _comoments as module
from ofslib.streams.column_stream import ColumnStream
from ofslib.streams.row_stream import RowStream

ROWS, COLUMNS = public(RowStream), public(ColumnStream)
AVERAGES = [*AVERAGES, ofslib.RenewableFSAClassifier]
MANY = os.environ.get("OFSLIB_EXAMPLES")


def examples(few=10):
    """So many streams a method; the same in each run, unless many are asked for."""
    return settings(
        max_examples=int(MANY or few),
        derandomize=MANY is None,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )


# Kinds of features, from standard normal numbers. The square of 1e-310 is 0, that of 1e150 is none
# in single precision.
TAME = {
    "normal": lambda z: z,
    "counts": lambda z: np.round(2 * z),
    "zero": lambda z: 0 * z,
    "constant": lambda z: 0 * z + 3,
    "duplicate": None,
}
EXTREME = TAME | {
    "subnormal": lambda z: 1e-310 * z,
    "tiny": lambda z: 1e-150 * z,
    "huge": lambda z: 1e100 * z,
}


class Data(NamedTuple):
    """Rows, numbers to learn, where these are cut to labels, and weights."""

    X: np.ndarray
    y: np.ndarray
    edges: list
    weight: np.ndarray | None = None

    def target(self, model):
        return np.digitize(self.y, self.edges) if is_classifier(model) else self.y


@st.composite
def data(draw, kinds=TAME):
    """From one row and one feature on, with duplicates of the first feature, and empty rows."""
    n, p = draw(st.integers(1, 12)), draw(st.integers(1, 6))
    Z = np.random.default_rng(draw(st.integers(0, 2**32))).standard_normal((n, p + 1))
    X, y = Z[:, :p], Z[:, p] + Z[:, 0]
    names = draw(st.lists(st.sampled_from(list(kinds)), min_size=p, max_size=p))
    for j, name in enumerate(names):
        X[:, j] = X[:, 0] if name == "duplicate" else kinds[name](X[:, j])
    X[sorted(draw(st.sets(st.integers(0, n - 1), max_size=n // 2)))] = 0
    return Data(X, y, [0.0])


def cuts(draw, n):
    """Pairs (start, stop) that make up n."""
    places = sorted(draw(st.sets(st.integers(1, n - 1)))) if n > 1 else []
    return list(itertools.pairwise([0, *places, n]))


MORE = [
    {"multiclass": "joint"},
    {"forget": 8},
    {"learning_rate": 0.01, "optimizer": "adam"},
    {"multiclass": "joint", "importance": "scaled_coef", "class_weight": {1: 2.0}},
]


def made(draw, cls, p, more=()):
    """A method with 1, p, or any number of features, and few penalties."""
    own = {"random_state": 0, "n_penalties": 5, "maturity": 6, "batch_size": 3, "n_workers": 1}
    own["refit"] = False  # least squares would hide what was learned
    own["k"] = draw(st.sampled_from([1, p, max(1, p - 1)]))
    own |= draw(st.sampled_from([{}, *more])) if more else {}
    if cls is ofslib.OnlineLeverageSelector:
        # With k the rate is found by `fit` only; with this one features are sampled, and not all.
        own |= {"k": None, "rate": draw(st.sampled_from([0.5, 2.0]))}
    return cls(**{name: value for name, value in own.items() if name in cls().get_params()})


FORMS = {
    "rows": {"sparse": sp.csr_array, "wide": lambda X: wide(sp.csr_array(X)), "dense": np.array},
    "columns": {"sparse": sp.csc_array, "wide": lambda X: wide(sp.csc_array(X)), "dense": np.array},
}


def from_file(model):
    """The model, saved and loaded."""
    with tempfile.TemporaryDirectory() as folder:
        model.save(f"{folder}/model")
        return type(model).load(f"{folder}/model")


def show_rows(model, given, parts, form=np.array):
    y = given.target(model)
    known = {"classes": range(len(given.edges) + 1)} if is_classifier(model) else {}
    for start, stop in parts:
        model = pickle.loads(pickle.dumps(from_file(model)))
        if given.weight is not None:
            known["sample_weight"] = given.weight[start:stop]
        model.partial_fit(form(given.X[start:stop]), y[start:stop], **known)
    return model


def show_columns(model, given, parts, form=np.array):
    for start, stop in parts:
        model = from_file(model)
        model.partial_fit_columns(form(given.X[:, start:stop]), given.y)
    return model


def outcome(show, model, *how):
    """The model that was learned, in bytes; or what refused to learn it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            model = show(model, *how)
            facts = [model.support_.tolist(), model.n_samples_seen_]
            for name in ("coef_", "intercept_", "scores_", "weights_", "wealth_"):
                facts += [np.array(getattr(model, name)).tobytes()] if hasattr(model, name) else []
            return facts
        except (FloatingPointError, ValueError) as error:
            return type(error)


# -------------------------------------------------- cuts and saves


@pytest.fixture(autouse=True)
def _small_buffer(monkeypatch):
    """So that a dozen rows fill the buffer of the averages several times."""
    monkeypatch.setattr(module, "_LEAST_ROWS", 4)


@pytest.fixture(autouse=True)
def _no_crash_of_the_machine(monkeypatch):
    """Files need not be flushed to the disk."""
    monkeypatch.setattr(os, "fsync", lambda number: None)


def cuts_make_no_difference(cls, show, axis):
    """Of most examples a model comes out: two that refuse to learn agree as well."""
    models, forms = [], FORMS[axis]

    @examples()
    @given(st.data())
    def check(drawn):
        shown = drawn.draw(data())
        if axis == "rows" and drawn.draw(st.booleans()):
            shown = Data(shown.X, shown.y, [-0.5, 0.5], np.linspace(0.5, 2.0, len(shown.y)))
        n, p = shown.X.shape
        model, length = made(drawn.draw, cls, p, MORE), n if axis == "rows" else p
        kinds = drawn.draw(st.sampled_from([("sparse", "wide"), ("dense", "dense")]))
        whole = outcome(show, model, shown, [(0, length)], forms[kinds[0]])
        assert outcome(show, model, shown, cuts(drawn.draw, length), forms[kinds[1]]) == whole
        models.append(isinstance(whole, list))

    check()
    assert 2 * sum(models) > len(models) > 0


@every([*ROWS, *AVERAGES])
def test_rows_in_any_cuts_and_saved_between_them_give_the_same_bits(cls):
    cuts_make_no_difference(cls, show_rows, "rows")


@every(COLUMNS)
def test_columns_in_any_cuts_and_saved_between_them_give_the_same_bits(cls):
    cuts_make_no_difference(cls, show_columns, "columns")


# -------------------------------------------------- extremes


@every([*ROWS, *AVERAGES, *COLUMNS])
@examples()
@given(st.data())
def test_what_numbers_can_be_is_learned_or_refused(cls, drawn):
    """A finite model of at most k features; or an error, and nothing has changed."""
    given = drawn.draw(data(EXTREME))
    n, p = given.X.shape
    model = made(drawn.draw, cls, p)
    form = FORMS["columns" if cls in COLUMNS else "rows"][
        drawn.draw(st.sampled_from(["dense", "sparse"]))
    ]
    before = pickle.dumps(vars(model))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            model.fit(form(given.X), given.target(model))
        except (FloatingPointError, ValueError) as error:
            assert re.search("diverged|1 class|unit", str(error))
            assert pickle.dumps(vars(model)) == before
            return
        if cls in AVERAGES and n == 1:
            with pytest.raises(ValueError, match="at least 2 rows"):
                model.predict(given.X)
            return
        most = getattr(model, "k", None) or p
        assert len(set(model.support_.tolist()) & set(range(p))) == len(model.support_) <= most
        if hasattr(model, "coef_"):
            assert np.isfinite(model.coef_).all() and np.isfinite(model.intercept_)
