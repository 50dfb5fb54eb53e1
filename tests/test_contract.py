"""One contract for every estimator that learns from rows; a new one joins by being there.

The estimators and the values of their parameters are discovered, none is listed here. The methods
on averages, for more than two classes and with weights, join in test_everyday.py.
"""

import copy
import inspect
import json
import os
import pickle
import re
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_equal
from sklearn.base import ClassifierMixin, clone, is_classifier
from sklearn.datasets import make_blobs
from sklearn.exceptions import NotFittedError
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.estimator_checks import check_estimator

import ofslib
from ofslib.streams import row_stream
from ofslib.streams.penalised import Penalised
from ofslib.streams.row_stream import RowStream

K = 4
PUBLIC = {name: getattr(ofslib, name) for name in dir(ofslib)}
ESTIMATORS = {
    name: cls
    for name, cls in PUBLIC.items()
    if isinstance(cls, type) and issubclass(cls, RowStream)
}
SKIPPED = {"check_array_api_input"}  # needs SCIPY_ARRAY_API=1


def parameters(cls):
    return cls().get_params()


def variants(cls):
    """Parameters that take the estimator through its states within 98 rows, one change each."""
    defaults = parameters(cls)
    wanted = {"k": K, "random_state": 0, "batch_size": 7, "maturity": 63, "warmup": 14}
    wanted |= {"n_penalties": 25, "epoch_size": 2, "period": 2, "first_maturity": 63}
    # With learning_rate='auto', one of the changes, there is one optimizer only.
    wanted |= {"learning_rate": 0.01} if "optimizer" in defaults else {}
    base = {name: value for name, value in wanted.items() if name in defaults}
    changes = [{}, {"fit_intercept": False}]
    for name, allowed in cls._parameter_constraints.items():
        options = {o for a in allowed if isinstance(a, StrOptions) for o in a.options}
        options -= {"balanced"}  # not for partial_fit
        changes += [{name: option} for option in sorted(options - {(defaults | base)[name]})]
        if name in base and None in allowed and name != "random_state":
            changes.append({name: None})
    return [base | change for change in changes]


def has_budget(cls, own, exactly=False):
    """Whether k bounds the number of features, or says exactly how many there are."""
    return own["k"] is not None and not (exactly and issubclass(cls, Penalised))


def named(cls, own):
    return "-".join([cls.__name__, *map(str, own.values())])


BASES = [pytest.param(cls, variants(cls)[0], id=name) for name, cls in ESTIMATORS.items()]
every_class = pytest.mark.parametrize(("cls", "own"), BASES)
every_case = pytest.mark.parametrize(
    ("cls", "own"),
    [pytest.param(c, own, id=named(c, own)) for c in ESTIMATORS.values() for own in variants(c)],
)
only_classifiers = pytest.mark.parametrize(
    ("cls", "own"), [case for case in BASES if issubclass(case.values[0], ClassifierMixin)]
)
either_form = pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix], ids=["dense", "csr"])


def rows(n=98, p=12, seed=0, zeros=0.4):
    """Rows whose values are exact in float32, `zeros` of them zero, and a noisy linear target."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p)) * np.linspace(0.5, 1.5, p)
    X *= rng.random((n, p)) >= zeros
    X = X.astype(np.float32).astype(np.float64)
    return X, X[:, :3].sum(axis=1) - X[:, 5] + 0.3 * rng.standard_normal(n) + 0.1


def target(cls, f):
    return (f > 0).astype(int) if issubclass(cls, ClassifierMixin) else f


def labelled(cls, **how):
    X, f = rows(**how)
    return X, target(cls, f)


def show(model, X, y, size=None):
    """partial_fit in blocks of `size` rows."""
    known = {"classes": [0, 1]} if is_classifier(model) else {}
    if is_classifier(model) and not set(np.unique(y)) <= {0, 1}:
        known = {"classes": np.unique(y)}
    for i in range(0, X.shape[0], size or X.shape[0]):
        part = slice(i, i + (size or X.shape[0]))
        model.partial_fit(X[part], y[part], **known)
    return model


def assert_same(one, two):
    """The same model, to the last bit; sums of losses over blocks may be rounded differently."""
    assert one.coef_.tobytes() == two.coef_.tobytes()
    assert one.intercept_ == two.intercept_
    assert one.n_samples_seen_ == two.n_samples_seen_
    assert_allclose(one.online_loss_, two.online_loss_, rtol=1e-12)
    assert_allclose(one.online_score_, two.online_score_, rtol=1e-12)


def assert_close(one, two):
    """The same model but for rounding, on the same features."""
    rounding = 1e-6 if getattr(one, "dtype", "") == "float32" else 1e-12
    size = rounding * max(1.0, np.abs(one.coef_).max(), abs(one.intercept_))
    assert_allclose(two.coef_, one.coef_, rtol=0, atol=size)
    assert_allclose(two.intercept_, one.intercept_, rtol=0, atol=size)
    # With sparse rows, and mini-batches of one, a penalty is chosen only when it must be known.
    waits = isinstance(one, Penalised) and one.k and not hasattr(one, "batch_size")
    assert_allclose(two.online_loss_, one.online_loss_, rtol=0.01 if waits else rounding)
    assert_equal(two.support_, one.support_)


# scikit-learn


TWICE = "a row twice is two places in the stream"


@pytest.mark.filterwarnings("ignore:k=.*is greater than n_features")
@every_class
def test_scikit_learn_accepts_it(cls, own):
    # Of so few rows methods at any time have only observed: no model.
    forms = ("dense", "sparse") if "first_maturity" not in own else ()
    must = {f"check_sample_weight_equivalence_on_{form}_data": TWICE for form in forms}
    # One pass over fifty rows with weights of 1000 and .0001 and a spread of 20: a step of some
    # methods overshoots, and the last ones decide (test_heavy_rows_decide).
    may = {"check_class_weight_classifiers": "its steps are too large for these rows and weights"}
    for given in ({}, {"k": 2}) if issubclass(cls, Penalised) else ({},):
        results = check_estimator(
            cls(**given), expected_failed_checks=must | may, on_skip=None, on_fail="raise"
        )
        status = {s: {r["check_name"] for r in results if r["status"] == s} for s in
                  ("passed", "skipped", "xfail")}  # fmt: skip
        assert len(status["passed"]) > 40 and status["skipped"] <= SKIPPED
        assert status["xfail"] - set(may) == set(must)


@only_classifiers
def test_heavy_rows_decide(cls, own):
    """scikit-learn's check of class_weight, with features of a hundredth."""
    if "first_maturity" in own:
        pytest.skip("of so few rows it has only observed")
    # An automatic step grows as the features shrink.
    given = {"learning_rate": 0.01} if parameters(cls).get("learning_rate") == "auto" else {}
    for centers in (2, 3):
        X, y = make_blobs(centers=centers, random_state=0, cluster_std=20)
        weights = {label: 1000.0 if label == 0 else 1e-4 for label in range(centers)}
        model = cls(class_weight=weights, random_state=0, **given).fit(X[:50] / 100, y[:50])
        assert np.mean(model.predict(X[50:] / 100) == 0) > 0.87


# A stream may be cut anywhere, and its rows come in any form


@every_case
@either_form
def test_blocks_of_any_size_and_pickles_between_them_give_the_same_model(cls, own, form):
    X, y = labelled(cls, n=75)
    X, model = form(X), show(cls(**own), form(X), y)
    assert len(model.support_) == K or not has_budget(cls, own, exactly=True)
    for size in (1, 50):
        assert_same(show(cls(**own), X, y, size), model)
    resumed = cls(**own)
    for i in range(0, 75, 7):
        show(resumed, X[i : i + 7], y[i : i + 7])
        resumed = pickle.loads(pickle.dumps(resumed))
        assert resumed.n_samples_seen_ == min(i + 7, 75)
    assert_same(resumed, model)


@every_case
def test_a_copy_learns_by_itself(cls, own):
    X, y = labelled(cls)
    model = show(cls(**own), X[:70], y[:70])
    before, coef = copy.deepcopy(model), model.coef_
    show(copy.deepcopy(model), X[70:], y[70:])
    coef[:] = 77.0
    assert_same(model, before)
    coef = model.coef_
    show(model, X[70:], y[70:])
    assert coef.tobytes() == before.coef_.tobytes()
    assert not hasattr(clone(model), "coef_")


@every_case
def test_dense_and_sparse_blocks_give_the_same_model_and_may_alternate(cls, own):
    X, y = labelled(cls)
    dense, mixed = show(cls(**own), X, y), cls(**own)
    assert_close(dense, show(cls(**own), sp.csr_matrix(X), y))
    for i in range(0, len(X), 5):  # 5 does not divide the mini-batch
        show(mixed, (sp.csr_array if i % 2 else np.asarray)(X[i : i + 5]), y[i : i + 5])
    assert_close(dense, mixed)


def strided(X):
    """A view whose rows and columns lie apart."""
    wide = np.full((2 * X.shape[0], 3 * X.shape[1]), np.nan)
    wide[::2, ::3] = X
    return wide[::2, ::3]


def readonly(X):
    X = X.copy()
    X.flags.writeable = False
    return X


def unaligned(X):
    room = np.zeros(X.nbytes + 1, np.uint8)
    view = room[1:].view(X.dtype).reshape(X.shape)
    view[...] = X
    return view


def long_indices(X):
    X = sp.csr_matrix(X)
    X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    return X


def scattered(X):
    """CSR with each entry in two halves, in no order."""
    rng = np.random.default_rng(1)
    indices = [rng.permutation(np.repeat(np.flatnonzero(x), 2)) for x in X]
    data = [x[j] / 2 for x, j in zip(X, indices, strict=True)]
    indptr = np.cumsum([0, *map(len, indices)])
    return sp.csr_matrix((np.concatenate(data), np.concatenate(indices), indptr), shape=X.shape)


def zeros_stored(X):
    """CSR with an entry for each number."""
    n, p = X.shape
    return sp.csr_matrix((X.ravel(), np.tile(np.arange(p), n), np.arange(n + 1) * p), shape=(n, p))


def frozen(X):
    X = sp.csr_matrix(X)
    for part in (X.data, X.indices, X.indptr):
        part.flags.writeable = False
    return X


# Forms of the same numbers: those of one group give the same bits.
DENSE = {
    "float64": np.ascontiguousarray,
    "float32": lambda X: X.astype(np.float32),
    "longdouble": lambda X: X.astype(np.longdouble),
    "big_endian": lambda X: X.astype(">f8"),
    "fortran": np.asfortranarray,
    "fortran32": lambda X: np.asfortranarray(X, np.float32),
    "readonly": readonly,
    "strided": strided,
    "backwards": lambda X: X[::-1, ::-1].copy()[::-1, ::-1],
    "unaligned": unaligned,
    "objects": lambda X: X.astype(object),
    "list": lambda X: X.tolist(),
    "frame": lambda X: pd.DataFrame(X, columns=[f"x{j}" for j in range(X.shape[1])]),
    "frame32": lambda X: pd.DataFrame(X.astype(np.float32)),
}
SPARSE = {
    "csr_matrix": sp.csr_matrix,
    "csr_array": sp.csr_array,
    "csc_matrix": sp.csc_matrix,
    "csc_array": sp.csc_array,
    "coo_matrix": sp.coo_matrix,
    "float32": lambda X: sp.csr_matrix(X.astype(np.float32)),
    "long_indices": long_indices,
    "scattered": scattered,
    "frozen": frozen,
}
TARGETS = {
    "readonly": readonly,
    "strided": lambda y: np.repeat(y, 3)[::3],
    "unaligned": unaligned,
    "list": lambda y: y.tolist(),
    "series": lambda y: pd.Series(y, index=np.arange(len(y))[::-1]),
}
COUNTS = (np.int64, np.int8, np.uint16)


@every_class
def test_the_layout_of_the_data_does_not_matter(cls, own, monkeypatch):
    """Whole, or so large that they are shown in pieces; for what is learned and predicted."""
    X, y = labelled(cls)
    dense, sparse = cls(**own).fit(X, y), cls(**own).fit(sp.csr_matrix(X), y)
    assert_close(dense, cls(**own).fit(zeros_stored(X), y))
    for form in TARGETS.values():
        assert_same(cls(**own).fit(X, form(y)), dense)
    margins = X @ dense.coef_ + dense.intercept_
    for per_block, per_copy in ((2**24, 2**18), (200, 50)):
        monkeypatch.setattr(row_stream, "_VALUES_PER_BLOCK", per_block)
        monkeypatch.setattr(row_stream, "_VALUES_PER_COPY", per_copy)
        for model, forms in ((dense, DENSE), (sparse, SPARSE)):
            for name, form in forms.items():
                given = form(X)
                before = copy.deepcopy(given)
                assert_same(cls(**own).fit(given, y), model)
                with warnings.catch_warnings():
                    warnings.filterwarnings("ignore", "X has feature names")
                    ask = dense.decision_function if is_classifier(dense) else dense.predict
                    assert_allclose(ask(given), margins, atol=1e-12)
                if sp.issparse(given) and name != "coo_matrix":
                    for part in ("data", "indices", "indptr"):
                        assert_equal(getattr(given, part), getattr(before, part))
                elif not sp.issparse(given):
                    assert_equal(np.asarray(given), np.asarray(before))
    assert_equal((X, y), labelled(cls))


@every_class
def test_whole_numbers_are_numbers(cls, own):
    X, y = labelled(cls)
    counts = np.round(np.abs(4 * X))
    for form, kinds in ((np.asarray, (*COUNTS, np.float16)), (sp.csr_matrix, COUNTS)):
        model = cls(**own).fit(form(counts), y)
        for kind in kinds:
            assert_same(cls(**own).fit(form(counts.astype(kind)), y), model)
        flags = cls(**own).fit(form(X > 0), y)
        assert_same(flags, cls(**own).fit(form((X > 0).astype(float)), y))


# The selection


@every_case
@either_form
def test_at_most_k_coefficients_at_any_time(cls, own, form):
    X, y = labelled(cls, n=70)
    X, model = form(X), cls(**own)
    for i in range(X.shape[0]):
        coef = show(model, X[i : i + 1], y[i : i + 1]).coef_
        assert coef.shape == (X.shape[1],) and coef.dtype == np.float64
        assert np.isfinite(coef).all()
        assert np.count_nonzero(coef) <= K or not has_budget(cls, own)
        assert_equal(model.support_, np.flatnonzero(coef))
        assert isinstance(model.intercept_, float)
        assert model.n_samples_seen_ == i + 1
    assert (model.intercept_ != 0.0) == own.get("fit_intercept", True)


@every_class
def test_transform_picks_the_support(cls, own):
    X, y = labelled(cls)
    names = np.array([f"x{j}" for j in range(X.shape[1])], dtype=object)
    frame = pd.DataFrame(X, columns=names)
    model = cls(**own).fit(frame, y)
    support = model.support_
    assert 0 < len(support) <= K and np.all(np.diff(support) > 0)
    assert_equal(model.get_support(), np.isin(np.arange(X.shape[1]), support))
    assert_equal(model.get_support(indices=True), support)
    assert_equal(model.feature_names_in_, names)
    assert_equal(model.get_feature_names_out(), names[support])
    assert_equal(model.transform(frame), X[:, support])
    model = cls(**own).fit(X, y)
    assert_equal(model.transform(X), X[:, support])
    assert_equal(model.transform(sp.csr_matrix(X)).toarray(), X[:, support])
    assert_equal(model.inverse_transform(X[:, support])[:, support], X[:, support])


@every_class
def test_more_features_wanted_than_there_are(cls, own):
    X, y = labelled(cls)
    for learn in (cls.fit, show):
        with pytest.warns(UserWarning, match="k=13 is greater than n_features=12") as caught:
            many = learn(cls(**own | {"k": 13}), X, y)
        # A model of so few rows may also be no better than a constant, which is another warning.
        of_k = [w.filename for w in caught if "k=13" in str(w.message)]
        assert of_k == [__file__], "the warning points at the caller"
        assert_same(many, learn(cls(**own | {"k": 12}), X, y))
        assert len(many.support_) == 12 or not has_budget(cls, own, exactly=True)


@every_case
@either_form
def test_the_order_of_the_columns_does_not_matter(cls, own, form):
    X, y = labelled(cls, zeros=0.0)  # no ties
    order = np.random.default_rng(5).permutation(X.shape[1])
    one, two = cls(**own).fit(form(X), y), cls(**own).fit(form(X[:, order]), y)
    rounding = 1e-6 if own.get("dtype") == "float32" else 1e-10
    size = rounding * max(1.0, np.abs(one.coef_).max())
    assert_allclose(two.coef_, one.coef_[order], rtol=0, atol=size)
    assert_allclose(two.intercept_, one.intercept_, rtol=0, atol=size)
    assert_equal(np.sort(order[two.support_]), one.support_)


@every_case
def test_the_strong_features_are_found(cls, own):
    if not cls.ranks:
        pytest.skip("which features it keeps is not promised")
    if own.get("warmup", 0) is None:
        pytest.skip("with a constant step and no warm-up features leave before they are learned")
    rng = np.random.default_rng(3)
    X = rng.standard_normal((3000, 20))
    f = X[:, [3, 8, 15]] @ [2.0, -2.0, 2.0] + 0.1 * rng.standard_normal(3000)
    own = own | {"k": 3} | {name: 1000 for name in ("maturity",) if own.get(name)}
    y = np.where(f > 0, "up", "down") if issubclass(cls, ClassifierMixin) else f
    model = cls(**own).fit(X, y)
    assert np.sort(np.argsort(np.abs(model.coef_))[-3:]).tolist() == [3, 8, 15]
    assert len(model.support_) == 3 or not has_budget(cls, own)
    assert_equal(np.sign(model.coef_[[3, 8, 15]]), [1, -1, 1])
    if is_classifier(model):  # the second label is the positive one
        assert_equal(model.predict(X), np.where(model.decision_function(X) > 0, "up", "down"))


@every_class
def test_the_online_loss_is_that_of_the_model_before_each_row(cls, own):
    """Row by row, with mini-batches of one row: the loss of coef_ as it stood. Holds while no
    feature but the k most important is used, which is so from maturity on."""
    if "epoch_size" in own:
        pytest.skip("rows are predicted by the iterate, and coef_ is the mean of many")
    X, y = labelled(cls)
    one = {"batch_size": 1} if "batch_size" in own else {}
    model = show(cls(**own | one), X[:70], y[:70])
    start, losses = model.online_loss_ * 70, []
    for x, t in zip(X[70:], y[70:], strict=True):
        m = x @ model.coef_ + model.intercept_
        s = (2 * t - 1) * m
        hinge = max(0, 1 - s)
        of = {"squared_error": (m - t) ** 2 / 2, "hinge": hinge, "squared_hinge": hinge**2}
        losses.append((of | {"log_loss": np.logaddexp(0, -s)})[model.loss])
        show(model, x[None], np.array([t]))
    assert_allclose(model.online_loss_ * len(X), start + sum(losses), rtol=1e-9)


# Chance and passes


@every_case
def test_a_seed_fixes_the_model(cls, own):
    X, y = labelled(cls, n=95)  # the last mini-batch of a pass is open
    model = cls(**own, n_passes=2).fit(X, y)
    assert_same(
        cls(**own | {"random_state": np.random.RandomState(0)}, n_passes=2).fit(X, y), model
    )
    again = show(cls(**own, n_passes=2), X[:, ::-1], y).fit(X, y)  # what it learned is forgotten
    assert_same(again, model)
    draw = np.random.RandomState(0)  # the order is new in each pass
    order = np.concatenate([draw.permutation(95), draw.permutation(95)])
    repeated = cls(**own, shuffle=False).fit(X[order], y[order])
    if own.get("importance") != "noise_aware":  # later passes tell nothing new of the noise
        assert_same(repeated, model)
    plain = [cls(**own | {"random_state": s}, shuffle=False).fit(X, y) for s in (0, 1)]
    assert_same(*plain)
    assert plain[0].online_loss_ != cls(**own | {"random_state": 1}).fit(X, y).online_loss_


# What is refused


REFUSED = {
    "k": [0, -1, 1.5, "3", None, np.nan],
    "loss": ["quadratic", "", None, 1, "LOG_LOSS"],
    "learning_rate": [0, 0.0, -0.1, np.nan, "0.1", None],
    "batch_size": [0, -1, 2.5, None],
    "n_passes": [0, -1, 1.5, None],
    "maturity": [0, -5, 10.5],
    "warmup": [-1, 0.5, None],
    "mu": [-1.0, np.nan, None],
    "momentum": [-0.1, None],
    "alpha": [-1e-9, None, np.nan],
    "delta": [0, -1.0, np.nan],
    "fit_intercept": ["yes", None, 2],
    "shuffle": ["yes", None, 2],
    "random_state": [-1, 1.5, "0"],
    "optimizer": ["SGD", None, 0],
    "importance": ["size", None, 0],
    "l1": [-1e-9, None, np.nan],
    "l2": [-1e-9, None, np.nan],
    "gamma": [0, -1.0, None],
    "rho": [-1.0, None],
    "theta": [0, -1.0, None],
    "radius": [0, -1.0, None],
    "period": [0, 1.5, None],
    "epoch_size": [0, 1.5, None],
    "n_penalties": [0, 1.5, None],
    "dtype": ["float16", np.float32, None],
    "l1_range": [(1.0,), (0.0, 1.0), (2.0, 1.0), (1.0, np.inf), 3.0],
}


def refusals(cls, own):
    """(parameters, name) of what must be refused; no parameter takes a string or a set of none."""
    for name in parameters(cls):
        for value in [*REFUSED.get(name, []), "nonsense", {}, [1]]:
            if value is not None or None not in cls._parameter_constraints[name]:
                yield {name: value}, name
    if "warmup" in own:
        yield {"warmup": 63}, "warmup"
        yield {"warmup": 62, "maturity": 20}, "warmup"


def assert_refuses(model, call, match):
    before = copy.deepcopy(model)
    with pytest.raises(ValueError, match=match):
        call(model)
    assert_equal(vars(model), vars(before))


@every_class
def test_parameters_that_are_refused(cls, own):
    X, y = labelled(cls)
    model = cls(**own).fit(X, y)
    for change, name in refusals(cls, own):
        old = {name: getattr(model, name) for name in change}
        model.set_params(**change)
        assert_refuses(model, lambda m: m.fit(X[:, :5], y), match=name)
        assert_refuses(model, lambda m: m.partial_fit(X, y), match=name)
        model.set_params(**old)
        new = cls(**own | change)
        assert_refuses(new, lambda m: m.fit(X, y), match=name)
        with pytest.raises(NotFittedError):
            new.predict(X)
    assert_same(model, cls(**own).fit(X, y))


@every_class
def test_a_parameter_acts_when_the_model_learns_and_not_before(cls, own):
    X, y = labelled(cls)
    model = cls(**own).fit(X, y)
    before = copy.deepcopy(model)
    for name, value in parameters(cls).items():
        old = getattr(model, name)
        for new in (value, 1, 0.5, "nonsense"):
            model.set_params(**{name: new})
            assert_same(model, before)
            assert_equal(model.predict(X), before.predict(X))
        model.set_params(**{name: old})


def wrong_data(X, y):
    """(X, y, words of the message): data that no estimator takes."""
    nan, inf, hole = X.copy(), X.copy(), np.arange(len(y)) == 3
    nan[3, 2], inf[3, 2] = np.nan, np.inf
    return [
        (nan, y, "X contains NaN"),
        (sp.csr_matrix(nan), y, "X contains NaN"),
        (inf, y, "X contains infinity"),
        (X, y[:-1], "inconsistent numbers of samples"),
        (X[:-1], y, "inconsistent numbers of samples"),
        (X, np.column_stack([y, y]), "y should be a 1d array|Multioutput target"),
        (X, None, "requires y"),
        (X, np.where(hole, np.nan, y), "y contains NaN"),
        (X, np.where(hole, np.inf, y), "y contains infinity"),
        (X[:0], y[:0], r"0 sample\(s\)"),
        (X[0], y[:1], "Expected 2D array"),
        (np.full(X.shape, "word"), y, "could not convert|dtype='numeric'"),
        (X * 1j, y, "Complex data"),
    ]


@every_class
def test_data_that_are_refused(cls, own):
    X, y = labelled(cls)
    for model in (cls(**own), show(cls(**own), X[:70], y[:70])):
        for wrong_X, wrong_y, match in wrong_data(X, y):
            assert_refuses(model, lambda m: m.fit(wrong_X, wrong_y), match)  # noqa: B023
            assert_refuses(model, lambda m: m.partial_fit(wrong_X, wrong_y), match)  # noqa: B023
    frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(X.shape[1])])
    for learned, other, match in (
        (X, X[:, :5], "5 features"),
        (X, sp.csr_matrix(X[:, :5]), "5 features"),
        (X, np.hstack([X, X]), "24 features"),
        (frame, frame.rename(columns={"x0": "new"}), "feature names"),
        (frame, frame[frame.columns[::-1]], "feature names"),
    ):
        model = cls(**own).partial_fit(learned, y)
        assert_refuses(model, lambda m: m.partial_fit(other, y), match)  # noqa: B023
        assert_refuses(model, lambda m: m.predict(other), match)  # noqa: B023
        assert_refuses(model, lambda m: m.transform(other), match)  # noqa: B023


@every_class
def test_one_wrong_value_anywhere_is_found(cls, own):
    """Also in a feature that is no longer in the model, and in the last row of a block."""
    X, y = labelled(cls)
    model = show(cls(**own | {"k": 1}), X, y)
    for i, j in [*((3, j) for j in range(X.shape[1])), (0, 0), (len(X) - 1, 5)]:
        number, match = ((np.nan, "X contains NaN"), (-np.inf, "X contains infinity"))[j % 2]
        wrong = X.copy()
        wrong[i, j] = number
        forms = (np.asarray, sp.csr_matrix) if i == 3 else (np.asfortranarray, np.float32)
        for form in forms:
            assert_refuses(model, lambda m: m.partial_fit(form(wrong), y), match)  # noqa: B023
        assert_refuses(model, lambda m: m.fit(wrong, y), match)  # noqa: B023
        assert_refuses(model, lambda m: m.predict(wrong), match)  # noqa: B023


@every_class
@either_form
def test_a_model_that_would_run_away_stays_as_it_is(cls, own, form):
    X, y = labelled(cls, p=200)
    one = {"batch_size": 1} if "batch_size" in own else {}
    model = show(cls(**own | one), form(X), y)
    for n in (2, 5, 98):
        before, few = copy.deepcopy(model), np.zeros((n, 200))
        size = (n, len(model.support_))
        few[:, model.support_] = 1e200 * np.random.default_rng(n).uniform(1, 2, size)
        try:
            model.partial_fit(form(few), y[:n])
        except FloatingPointError as error:
            assert "diverged" in str(error)
            assert_equal(vars(model), vars(before))
        else:
            assert np.isfinite(model.coef_).all() and np.isfinite(model.online_loss_)
            model = before


# A parameter may be changed between two blocks: it is refused or it acts. In a process of its own,
# which a kernel that writes past its state may end. Lines: what is tried, then what happened.
CHANGE_MIDWAY = """
import json
import numpy as np
import scipy.sparse as sp
from sklearn.base import is_classifier
from test_contract import ESTIMATORS, Penalised, StrOptions

rng = np.random.default_rng(0)
p = 2000
dense = np.hstack([rng.standard_normal((60, 8)), np.zeros((60, 8))])
X = sp.csr_matrix(dense)
X = sp.csr_matrix((X.data, X.indices + rng.integers(0, p - 8, X.nnz), X.indptr), shape=(60, p))
for cls in ESTIMATORS.values():
    y = dense[:, 0] > 0 if is_classifier(cls()) else dense[:, 0]
    for name, allowed in cls._parameter_constraints.items():
        words = sorted(o for a in allowed if isinstance(a, StrOptions) for o in a.options)
        for before in words or [5]:
            for after in [word for word in words if word != before] or [1, 1000]:
                case = [cls.__name__, name, before, after]
                print(json.dumps(case), flush=True)
                few = {"n_penalties": 3} if issubclass(cls, Penalised) else {}
                model = cls(**{"k": 5, **few, name: before})
                try:
                    model.partial_fit(X[:30], y[:30])
                    model.set_params(**{name: after})
                except ValueError:  # 5 is not for this one
                    print(json.dumps([*case, "refused"]), flush=True)
                    continue
                try:
                    model.partial_fit(X, y)
                    model.partial_fit(X, y)
                    ok = len(model.support_) <= model.k and np.isfinite(model.coef_).all()
                    outcome = "acts" if ok else f"{len(model.support_)} features, k={model.k}"
                except ValueError as error:
                    outcome = "refused" if name in str(error) else f"ValueError: {error}"
                except FloatingPointError as error:  # a learning rate of 1000 does act
                    outcome = "acts" if name in str(error) else repr(error)
                except Exception as error:
                    outcome = repr(error)
                print(json.dumps([*case, outcome]), flush=True)
"""


def test_a_parameter_changed_midway_is_refused_or_acts():
    folders = os.pathsep.join([str(Path(__file__).parent), *sys.path])
    done = subprocess.run(
        [sys.executable, "-c", CHANGE_MIDWAY], capture_output=True, text=True, check=False,
        env=os.environ | {"PYTHONPATH": folders},
    )  # fmt: skip
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.returncode == 0, f"ended in {lines[-1:]}: {done.stderr[-500:]}"
    outcomes = [line for line in lines if len(line) == 5]
    assert 2 * len(outcomes) == len(lines) and {line[0] for line in outcomes} == set(ESTIMATORS)
    assert [line for line in outcomes if line[-1] not in ("acts", "refused")] == []


# Labels


@only_classifiers
def test_labels_that_are_refused(cls, own):
    X, f = rows()
    y = target(cls, f)
    three, one, model = np.arange(len(y)) % 3, np.ones(len(y)), cls(**own).fit(X, y)
    for each in (cls(**own), model):
        assert_refuses(each, lambda m: m.fit(X, one), "y has 1")
        assert_refuses(each, lambda m: m.fit(X, f), "continuous")
        assert_refuses(each, lambda m: m.partial_fit(X, three, classes=[0, 1]), r"y holds.*\[2\]")
        assert_refuses(each, lambda m: m.partial_fit(X, y, classes=[1]), "classes")
    assert_refuses(cls(**own), lambda m: m.partial_fit(X, one), "y has 1")
    assert_refuses(cls(**own), lambda m: m.partial_fit(X, y, classes=[0, 2]), r"y holds.*\[1\]")
    for classes in ([0, 2], [0, 1, 2]):
        named = rf"classes={re.escape(str(classes))}"
        assert_refuses(model, lambda m: m.partial_fit(X, y, classes=classes), named)  # noqa: B023
    for wrong in (three, np.where(y > 0, "1", "0"), 2 * y - 1):
        assert_refuses(model, lambda m: m.partial_fit(X, wrong), "y holds labels")  # noqa: B023


@only_classifiers
def test_labels_of_any_kind(cls, own):
    X, y = labelled(cls)
    model = cls(**own).fit(X, y)
    assert 0.3 < model.online_score_ <= 1.0 and model.score(X, y) > 0.4
    words = np.where(y > 0, "b", "a")
    for labels in (
        words,
        words.astype(object),
        words.tolist(),
        pd.Series(words),
        pd.Series(words).astype("category"),
        y > 0,
        2 * y - 1,
        y.astype(float),
        y.astype(np.uint8),
        np.where(y > 0, 7, -300),
        pd.Series(y),
    ):
        other = cls(**own).fit(X, labels)
        assert_same(other, model)
        assert_equal(other.classes_, np.unique(np.asarray(labels)))
        assert_equal(other.predict(X), other.classes_[model.predict(X)])
        assert other.score(X, labels) == model.score(X, y)


@only_classifiers
def test_both_labels_may_be_told_beforehand(cls, own):
    X, y = labelled(cls)
    order = np.argsort(y, kind="stable")
    X, y = X[order], np.where(y[order] > 0, "no", "yes")  # "no" is the lower label
    for classes in (["no", "yes"], ["yes", "no"], np.array(["yes", "no"], dtype=object)):
        model = cls(**own).partial_fit(X[:5], y[:5], classes=classes)
        assert model.classes_.tolist() == ["no", "yes"]
        assert set(model.predict(X)) <= {"no", "yes"}
        model.partial_fit(X[5:], y[5:])
        assert_same(model, show(cls(**own), X, y))


# Millions of features


def sparse_rows(n, p, nonzeros=30):
    rng = np.random.default_rng(0)
    entries = rng.standard_normal(n * nonzeros), rng.integers(p, size=n * nonzeros)
    return sp.csr_matrix((*entries, np.arange(n + 1) * nonzeros), shape=(n, p))


@every_case
def test_a_model_takes_little_room(cls, own):
    """Some numbers for each feature; four for each penalty that is learned at once."""
    y = target(cls, np.arange(20.0) - 9.5)
    small, large = (
        len(pickle.dumps(show(cls(**own), sparse_rows(20, p), y))) for p in (10_000, 20_000)
    )
    penalties = own["n_penalties"] if issubclass(cls, Penalised) and own["k"] else 0
    models = 3 if "growth" in parameters(cls) else 1
    assert 8 <= (large - small) / 10_000 <= 120 * models + 32 * penalties


@every_class
def test_millions_of_features_are_fast(cls, own):
    if not cls.sparse_steps:
        pytest.skip("each step goes through all features")
    X, y = sparse_rows(100, 3_000_000), target(cls, np.sin(np.arange(100.0)))
    model = show(cls(), X[:50], y[:50])
    # Without what the system takes to hand out memory, most of it where other programs run
    start = os.times().user
    show(model, X[50:], y[50:])
    assert model.k is None or len(model.support_) <= 10
    assert os.times().user - start < 1.0


# What the documentation says


def section(doc, title):
    """Names that a numpydoc section explains."""
    found = re.search(rf"^{title}\n-{{{len(title)}}}\n(.*?)(?=^\w+\n-+\n|\Z)", doc, re.M | re.S)
    assert found, f"no section {title}"
    entries = re.split(r"^(?=\S)", found.group(1).strip("\n"), flags=re.M)
    explained = dict(re.match(r"(\w+) : .*\n((?:    .+\n?)+)", e).groups() for e in entries if e)
    assert all(len(text.split()) >= 2 for text in explained.values())
    return list(explained)


@every_class
def test_the_docstring_explains_everything(cls, own):
    doc = inspect.getdoc(cls)
    assert sorted(section(doc, "Parameters")) == sorted(parameters(cls))
    X, y = labelled(cls)
    model = cls(**own).fit(pd.DataFrame(X).add_prefix("x"), y)
    attributes = {n for n in dir(model) if n.endswith("_") and not n.startswith("_")}
    # One text serves classifiers and regressors
    assert set(section(doc, "Attributes")) | {"classes_"} == attributes | {"classes_"}


def test_names_that_are_not_there():
    with pytest.raises(AttributeError, match="NoSuchClassifier"):
        ofslib.NoSuchClassifier  # noqa: B018
    code = "import sys, ofslib; dir(ofslib); sys.exit('numba' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True, env=dict(os.environ))
