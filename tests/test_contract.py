"""One contract for every estimator that learns from rows; a new one joins by being there.

The estimators and the values of their parameters are discovered, none is listed here.
"""

import copy
import inspect
import json
import os
import pickle
import pkgutil
import re
import subprocess
import sys
import warnings
from importlib import import_module
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_equal
from sklearn.base import ClassifierMixin, RegressorMixin, clone, is_classifier
from sklearn.datasets import make_blobs
from sklearn.exceptions import NotFittedError
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.estimator_checks import check_estimator

import ofslib
import ofslib.algorithms
from ofslib.streams import row_stream
from ofslib.streams.penalised import Penalised
from ofslib.streams.row_stream import RowStream

K = 4


def discover():
    """The public estimators of row streams: {name: class}."""
    public = {name: getattr(ofslib, name) for name in dir(ofslib)}
    return {
        name: cls
        for name, cls in public.items()
        if isinstance(cls, type) and issubclass(cls, RowStream)
    }


ESTIMATORS = discover()

# Methods that predict by the last iterate while they learn and show the mean of the iterates.
AVERAGED = {"RADARRegressor"}

# What the method's rule does not promise. SOFS keeps what it has seen best, whatever the
# coefficient; with k, proximal steps keep what the last mini-batch moved most; and B-AMD holds on
# to what moved most once, with a step that does not fall (hinge). The steps of SADMM go through
# all p features and hold the rows of a mini-batch.
DO_NOT_RANK = {"SOFSClassifier", "OPGClassifier", "OPGRegressor", "AdaFobosClassifier"}
DO_NOT_RANK |= {"BAMDClassifier", "TruncatedGradientClassifier", "TruncatedGradientRegressor"}
DENSE_STEPS = {"SADMMRegressor"}

# Of 200 penalties they learn each row by itself, and predict sparse ones by the model chosen last.
CHOSEN_LATER = {"ARDAClassifier", "AdaFobosClassifier"}

# One pass over fifty rows with weights of 1000 and .0001 and features with a spread of 20: a step
# overshoots and the last ones decide. With features of a hundredth they do what the check asks for
# (test_heavy_rows_decide).
LEAP_WITH_HEAVY_ROWS = {"ARDAClassifier", "AdaFobosClassifier"}
LEAP_WITH_HEAVY_ROWS |= {"RDAClassifier", "SGDTClassifier"}

# {estimator: {check of scikit-learn: why it cannot pass}}. No others are wanted.
EXPECTED_FAILURES = {
    name: {
        f"check_sample_weight_equivalence_on_{form}_data": "a row twice is two places in the stream"
        for form in ("dense", "sparse")
    }
    | (
        {"check_class_weight_classifiers": "its steps are too large for these weights and rows"}
        if name in LEAP_WITH_HEAVY_ROWS
        else {}
    )
    for name in ESTIMATORS
    # Of so few rows they have only observed: no model.
    if not name.startswith("Anytime")
}
SKIPPED = {"check_array_api_input"}  # needs SCIPY_ARRAY_API=1


def variants(cls):
    """Parameters that take the estimator through its states within 98 rows, one change each."""
    defaults = cls().get_params()
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


def label(change):
    return "-".join(str(value) for value in change.values())


CASES = [
    pytest.param(cls, own, id=f"{name}-{label(own)}")
    for name, cls in ESTIMATORS.items()
    for own in variants(cls)
]
BASES = [pytest.param(cls, variants(cls)[0], id=name) for name, cls in ESTIMATORS.items()]

every_case = pytest.mark.parametrize(("cls", "own"), CASES)
every_class = pytest.mark.parametrize(("cls", "own"), BASES)
only_classifiers = pytest.mark.parametrize(
    ("cls", "own"), [case for case in BASES if issubclass(case.values[0], ClassifierMixin)]
)


def rows(n=98, p=12, seed=0, zeros=0.4):
    """Rows whose values are exact in float32, `zeros` of them zero, and a noisy linear target."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p)) * np.linspace(0.5, 1.5, p)
    X *= rng.random((n, p)) >= zeros
    X = X.astype(np.float32).astype(np.float64)
    return X, X[:, :3].sum(axis=1) - X[:, 5] + 0.3 * rng.standard_normal(n) + 0.1


def target(cls, f):
    return (f > 0).astype(int) if issubclass(cls, ClassifierMixin) else f


def show(model, X, y, size=None):
    """partial_fit in blocks of `size` rows."""
    known = {"classes": np.unique(y)} if is_classifier(model) else {}
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


def assert_close(one, two, tolerance=1e-12):
    """The same model but for rounding, on the same features."""
    size = max(1.0, np.abs(one.coef_).max(), abs(one.intercept_))
    assert_allclose(two.coef_, one.coef_, rtol=0, atol=tolerance * size)
    assert_allclose(two.intercept_, one.intercept_, rtol=0, atol=tolerance * size)
    # With sparse rows a penalty is chosen only when the model is asked for or must be known.
    waits = type(one).__name__ in CHOSEN_LATER and one.k is not None
    assert_allclose(two.online_loss_, one.online_loss_, rtol=0.01 if waits else tolerance)
    assert_equal(two.support_, one.support_)


# Discovery


def test_what_is_public_is_what_the_algorithm_files_define():
    defined = set()
    for module in pkgutil.iter_modules(ofslib.algorithms.__path__, "ofslib.algorithms."):
        for name, cls in vars(import_module(module.name)).items():
            if isinstance(cls, type) and cls.__module__ == module.name:
                usable = issubclass(cls, ClassifierMixin | RegressorMixin)
                defined |= {name} if usable and issubclass(cls, RowStream) else set()
    assert len(defined) >= 6
    assert set(ESTIMATORS) == defined
    assert all(name.endswith(("Classifier", "Regressor")) for name in ESTIMATORS)


@every_class
def test_a_name_tells_what_it_is(cls, own):
    assert issubclass(cls, ClassifierMixin) == cls.__name__.endswith("Classifier")
    assert issubclass(cls, RegressorMixin) == cls.__name__.endswith("Regressor")


# scikit-learn


@pytest.mark.filterwarnings("ignore:k=.*is greater than n_features")
@every_class
def test_scikit_learn_accepts_it(cls, own):
    for parameters in ({}, {"k": 2}):
        results = check_estimator(
            cls(**parameters),
            expected_failed_checks=EXPECTED_FAILURES.get(cls.__name__, {}),
            on_skip=None,
            on_fail="raise",
        )
        by_status = {
            s: {r["check_name"] for r in results if r["status"] == s}
            for s in ("passed", "skipped", "xfail")
        }
        assert len(by_status["passed"]) > 40
        assert by_status["skipped"] <= SKIPPED
        assert by_status["xfail"] == set(EXPECTED_FAILURES.get(cls.__name__, {}))


@pytest.mark.parametrize("name", sorted(LEAP_WITH_HEAVY_ROWS))
def test_heavy_rows_decide(name):
    """scikit-learn's check of class_weight, with features of a hundredth."""
    # An automatic step grows as the features shrink.
    own = {"learning_rate": 0.01} if name == "OPGClassifier" else {}
    for centers in (2, 3):
        X, y = make_blobs(centers=centers, random_state=0, cluster_std=20)
        weights = {label: 1000.0 if label == 0 else 1e-4 for label in range(centers)}
        model = ESTIMATORS[name](class_weight=weights, random_state=0, **own).fit(
            X[:50] / 100, y[:50]
        )
        assert np.mean(model.predict(X[50:] / 100) == 0) > 0.87


# A stream may be cut anywhere


@every_case
@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix], ids=["dense", "csr"])
def test_blocks_of_any_size_give_the_same_model(cls, own, form):
    X, f = rows(n=75)
    X, y = form(X), target(cls, f)
    whole = show(cls(**own), X, y)
    assert len(whole.support_) == K or not has_budget(cls, own, exactly=True)
    for size in (1, 7, 50):
        assert_same(show(cls(**own), X, y, size), whole)


@every_case
def test_stopping_anywhere_and_going_on_gives_the_same_model(cls, own):
    X, f = rows()
    y = target(cls, f)
    whole, resumed = show(cls(**own), X, y), cls(**own)
    for i in range(0, len(X), 5):
        show(resumed, X[i : i + 5], y[i : i + 5]) if not is_classifier(resumed) else (
            resumed.partial_fit(X[i : i + 5], y[i : i + 5], classes=[0, 1])
        )
        left = pickle.dumps(resumed)
        resumed = pickle.loads(left)
        assert resumed.n_samples_seen_ == min(i + 5, len(X))
    assert_same(resumed, whole)


@every_case
def test_a_copy_learns_by_itself(cls, own):
    X, f = rows()
    y = target(cls, f)
    model = show(cls(**own), X[:70], y[:70])
    before, coef = copy.deepcopy(model), model.coef_
    show(copy.deepcopy(model), X[70:], y[70:])
    assert_same(model, before)
    coef[:] = 77.0
    assert_same(model, before)
    coef = model.coef_
    show(model, X[70:], y[70:])
    assert coef.tobytes() == before.coef_.tobytes()
    assert not hasattr(clone(model), "coef_")


@every_case
def test_dense_and_sparse_blocks_may_alternate(cls, own):
    X, f = rows()
    y = target(cls, f)
    mixed = cls(**own)
    for i in range(0, len(X), 5):  # 5 does not divide the mini-batch
        form = sp.csr_array if i % 2 else np.asarray
        known = {"classes": [0, 1]} if is_classifier(mixed) else {}
        mixed.partial_fit(form(X[i : i + 5]), y[i : i + 5], **known)
    assert_close(show(cls(**own), X, y), mixed)


# Data in any layout


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


def canonical(X):
    return sp.csr_matrix(X)


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
    "csr_matrix": canonical,
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
    "array": np.ascontiguousarray,
    "readonly": readonly,
    "strided": lambda y: np.repeat(y, 3)[::3],
    "unaligned": unaligned,
    "list": lambda y: y.tolist(),
    "series": lambda y: pd.Series(y, index=np.arange(len(y))[::-1]),
}


@every_case
def test_the_layout_of_the_data_does_not_matter(cls, own):
    X, f = rows()
    y = target(cls, f)
    dense, sparse = cls(**own).fit(X, y), cls(**own).fit(canonical(X), y)
    assert_close(dense, sparse)
    assert_close(dense, cls(**own).fit(zeros_stored(X), y))
    for form in DENSE.values():
        assert_same(cls(**own).fit(form(X), y), dense)
    for form in SPARSE.values():
        assert_same(cls(**own).fit(form(X), y), sparse)
    for form in TARGETS.values():
        assert_same(cls(**own).fit(X, form(y)), dense)
        assert_same(cls(**own).fit(canonical(X), form(y)), sparse)


@every_class
def test_large_data_are_shown_in_pieces(cls, own, monkeypatch):
    X, f = rows()
    y, forms = target(cls, f), (np.asarray, np.asfortranarray, np.float32, canonical)
    whole = [cls(**own).fit(form(X), y) for form in forms]
    monkeypatch.setattr(row_stream, "_VALUES_PER_BLOCK", 200)
    monkeypatch.setattr(row_stream, "_VALUES_PER_COPY", 50)
    for model, form in zip(whole, forms, strict=True):
        assert_same(cls(**own).fit(form(X), y), model)


@every_class
def test_whole_numbers_are_numbers(cls, own):
    X, f = rows()
    y, counts = target(cls, f), np.round(np.abs(4 * X))
    dense, sparse = cls(**own).fit(counts, y), cls(**own).fit(canonical(counts), y)
    for kind in (np.int64, np.int8, np.uint16, np.float16):
        assert_same(cls(**own).fit(counts.astype(kind), y), dense)
    for kind in (np.int64, np.int8, np.uint16):
        assert_same(cls(**own).fit(canonical(counts.astype(kind)), y), sparse)
    flags = X > 0
    assert_same(cls(**own).fit(flags, y), cls(**own).fit(flags.astype(float), y))
    assert_same(
        cls(**own).fit(canonical(flags), y), cls(**own).fit(canonical(flags.astype(float)), y)
    )


@every_class
def test_the_data_are_not_changed(cls, own):
    X, f = rows()
    y = target(cls, f)
    for data in (X, np.asfortranarray(X), canonical(X), scattered(X), long_indices(X)):
        before = copy.deepcopy(data)
        show(cls(**own).fit(data, y), data, y).predict(data)
        if sp.issparse(data):
            for name in ("data", "indices", "indptr"):
                now, then = getattr(data, name), getattr(before, name)
                assert now.dtype == then.dtype and now.tobytes() == then.tobytes()
        else:
            assert_equal(data, before)
    assert_equal(y, target(cls, f))


@every_class
def test_predictions_do_not_depend_on_the_layout(cls, own):
    X, f = rows()
    model = cls(**own).fit(X, target(cls, f))
    margins = X @ model.coef_ + model.intercept_
    forms = [*DENSE.values(), *SPARSE.values()]
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "X has feature names")
        for form in forms:
            if is_classifier(model):
                assert_allclose(model.decision_function(form(X)), margins, atol=1e-12)
                assert_equal(model.predict(form(X)), model.classes_[(margins > 0).astype(int)])
            else:
                assert_allclose(model.predict(form(X)), margins, atol=1e-12)


# The selection


@every_case
@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix], ids=["dense", "csr"])
def test_at_most_k_coefficients_at_any_time(cls, own, form):
    X, f = rows(n=70)
    X, y, model = form(X), target(cls, f), cls(**own)
    for i in range(X.shape[0]):
        known = {"classes": [0, 1]} if is_classifier(model) else {}
        model.partial_fit(X[i : i + 1], y[i : i + 1], **known)
        coef = model.coef_
        assert coef.shape == (X.shape[1],) and coef.dtype == np.float64
        assert np.isfinite(coef).all()
        assert np.count_nonzero(coef) <= K or not has_budget(cls, own)
        assert_equal(model.support_, np.flatnonzero(coef))
        assert isinstance(model.intercept_, float)
        assert model.n_samples_seen_ == i + 1
    assert own.get("fit_intercept", True) or model.intercept_ == 0.0
    assert not own.get("fit_intercept", True) or model.intercept_ != 0.0


@every_class
def test_transform_picks_the_support(cls, own):
    X, f = rows()
    names = np.array([f"x{j}" for j in range(X.shape[1])], dtype=object)
    frame = pd.DataFrame(X, columns=names)
    model = cls(**own).fit(frame, target(cls, f))
    support = model.support_
    assert 0 < len(support) <= K and np.all(np.diff(support) > 0)
    assert len(support) == K or not has_budget(cls, own, exactly=True)
    assert_equal(model.get_support(), np.isin(np.arange(X.shape[1]), support))
    assert_equal(model.get_support(indices=True), support)
    assert_equal(model.feature_names_in_, names)
    assert_equal(model.get_feature_names_out(), names[support])
    assert_equal(model.transform(frame), X[:, support])
    model = cls(**own).fit(X, target(cls, f))
    assert_equal(model.transform(X), X[:, support])
    assert_equal(model.transform(canonical(X)).toarray(), X[:, support])
    assert_equal(model.get_feature_names_out(), names[support])
    assert_equal(model.inverse_transform(X[:, support])[:, support], X[:, support])


@every_class
def test_more_features_wanted_than_there_are(cls, own):
    X, f = rows()
    y = target(cls, f)
    for learn in (cls.fit, show):
        with pytest.warns(UserWarning, match="k=13 is greater than n_features=12") as caught:
            many = learn(cls(**own | {"k": 13}), X, y)
        # A model of so few rows may also be no better than a constant, which is another warning.
        of_k = [w.filename for w in caught if "k=13" in str(w.message)]
        assert of_k == [__file__], "the warning points at the caller"
        all_of_them = learn(cls(**own | {"k": 12}), X, y)
        assert_same(many, all_of_them)
        assert len(many.support_) == 12 or not has_budget(cls, own, exactly=True)


@every_case
@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix], ids=["dense", "csr"])
def test_the_order_of_the_columns_does_not_matter(cls, own, form):
    X, f = rows(zeros=0.0)  # no ties
    y, order = target(cls, f), np.random.default_rng(5).permutation(X.shape[1])
    one, two = cls(**own).fit(form(X), y), cls(**own).fit(form(X[:, order]), y)
    rounding = 1e-6 if own.get("dtype") == "float32" else 1e-10
    size = rounding * max(1.0, np.abs(one.coef_).max())
    assert_allclose(two.coef_, one.coef_[order], rtol=0, atol=size)
    assert_allclose(two.intercept_, one.intercept_, rtol=0, atol=size)
    assert_equal(np.sort(order[two.support_]), one.support_)


# Chance and passes


@every_case
def test_a_seed_fixes_the_model(cls, own):
    X, f = rows()
    y, own = target(cls, f), own | {"n_passes": 2}
    model = cls(**own).fit(X, y)
    assert_same(cls(**own).fit(X, y), model)
    assert_same(cls(**own | {"random_state": np.random.RandomState(0)}).fit(X, y), model)
    other = cls(**own | {"random_state": 1}).fit(X, y)
    assert other.online_loss_ != model.online_loss_
    again = show(cls(**own), X[:, ::-1], y).fit(X, y)  # what was learned before is forgotten
    assert_same(again, model)


@every_class
def test_no_pass_is_like_the_one_before(cls, own):
    """The order of the rows is new in each pass, and random_state has no effect without it."""
    X, f = rows()
    y = target(cls, f)
    plain = [cls(**own | {"shuffle": False, "random_state": s}).fit(X, y) for s in (0, 1)]
    assert_same(*plain)
    order = np.random.RandomState(0)
    order = np.concatenate([order.permutation(len(X)), order.permutation(len(X))])
    twice = cls(**own | {"n_passes": 2}).fit(X, y)
    assert_same(twice, cls(**own | {"shuffle": False}).fit(X[order], y[order]))


@every_case
def test_two_passes_are_one_pass_over_the_rows_twice(cls, own):
    X, f = rows(n=95)  # the last mini-batch of a pass is open
    y, own = target(cls, f), own | {"shuffle": False}
    repeated = cls(**own).fit(np.vstack([X, X]), np.concatenate([y, y]))
    assert_same(cls(**own | {"n_passes": 2}).fit(X, y), repeated)
    assert repeated.n_samples_seen_ == 2 * len(X)


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
    for name in cls().get_params():
        for value in [*REFUSED.get(name, []), "nonsense", {}, [1]]:
            if value is not None or None not in cls._parameter_constraints[name]:
                yield {name: value}, name
    if "warmup" in own:
        yield {"warmup": 63}, "warmup"
        yield {"warmup": 62, "maturity": 20}, "warmup"


def assert_untouched(model, before):
    """Nothing that the estimator knows has changed."""
    assert_equal(vars(model), vars(before))
    assert_same(model, before)
    assert model.n_features_in_ == before.n_features_in_


def assert_refuses(model, call, match):
    before = copy.deepcopy(model)
    with pytest.raises(ValueError, match=match):
        call(model)
    assert_equal(vars(model), vars(before))


@every_class
def test_parameters_that_are_refused(cls, own):
    X, f = rows()
    y = target(cls, f)
    model = cls(**own).fit(X, y)
    before, fewer = copy.deepcopy(model), X[:, :5]
    labels = np.where(y > 0, "b", "a") if is_classifier(model) else y
    for change, name in refusals(cls, own):
        for call in (
            lambda m: m.fit(fewer, labels),
            lambda m: m.partial_fit(X, y),
        ):
            model.set_params(**change)
            assert_refuses(model, call, match=name)
            model.set_params(**{name: getattr(before, name) for name in change})
            assert_untouched(model, before)
            new = cls(**own | change)
            assert_refuses(new, call, match=name)
            with pytest.raises(NotFittedError):
                new.predict(X)


@every_class
def test_a_parameter_acts_when_the_model_learns_and_not_before(cls, own):
    X, f = rows()
    model = cls(**own).fit(X, target(cls, f))
    before = copy.deepcopy(model)
    for name, value in cls().get_params().items():
        old = getattr(model, name)
        for new in (value, 1, 0.5, "nonsense"):
            model.set_params(**{name: new})
            assert_same(model, before)
            assert_equal(model.predict(X), before.predict(X))
        model.set_params(**{name: old})


def wrong_data(X, y):
    """{what: (X, y, words of the message)}: data that no estimator takes."""
    nan, inf = X.copy(), X.copy()
    nan[3, 2], inf[3, 2] = np.nan, np.inf
    return {
        "nan": (nan, y, "X contains NaN"),
        "sparse nan": (sp.csr_matrix(nan), y, "X contains NaN"),
        "inf": (inf, y, "X contains infinity"),
        "short y": (X, y[:-1], "inconsistent numbers of samples"),
        "long y": (X[:-1], y, "inconsistent numbers of samples"),
        "y in columns": (X, np.column_stack([y, y]), "y should be a 1d array|Multioutput target"),
        "no y": (X, None, "requires y"),
        "nan in y": (X, np.where(np.arange(len(y)) == 3, np.nan, y), "y contains NaN"),
        "inf in y": (X, np.where(np.arange(len(y)) == 3, np.inf, y), "y contains infinity"),
        "no rows": (X[:0], y[:0], r"0 sample\(s\)"),
        "a row": (X[0], y[:1], "Expected 2D array"),
        "words": (np.full(X.shape, "word"), y, "could not convert|dtype='numeric'"),
        "complex": (X * 1j, y, "Complex data"),
    }


@every_class
def test_data_that_are_refused(cls, own):
    X, f = rows()
    y = target(cls, f)
    for model in (cls(**own), cls(**own).fit(X, y), show(cls(**own), X[:70], y[:70])):
        for wrong_X, wrong_y, match in wrong_data(X, y).values():
            assert_refuses(model, lambda m: m.fit(wrong_X, wrong_y), match)  # noqa: B023
            assert_refuses(model, lambda m: m.partial_fit(wrong_X, wrong_y), match)  # noqa: B023
            # Also as first data with another number of features
            if sp.issparse(wrong_X) or wrong_X.shape != X.shape:
                continue
            assert_refuses(model, lambda m: m.fit(wrong_X[:, :5], wrong_y), match)  # noqa: B023


@every_class
def test_one_wrong_value_anywhere_is_found(cls, own):
    """Also in a feature that is no longer in the model, and in the last row of a block."""
    X, f = rows()
    y, own = target(cls, f), own | {"k": 1}
    model = show(cls(**own), X, y)
    for i, j in [*((3, j) for j in range(X.shape[1])), (0, 0), (len(X) - 1, 5)]:
        for number, match in ((np.nan, "X contains NaN"), (-np.inf, "X contains infinity")):
            wrong = X.copy()
            wrong[i, j] = number
            for form in (np.asarray, np.asfortranarray, np.float32, sp.csr_matrix):
                data = form(wrong)
                assert_refuses(model, lambda m: m.partial_fit(data, y), match)  # noqa: B023
            assert_refuses(model, lambda m: m.fit(wrong, y), match)  # noqa: B023
            assert_refuses(model, lambda m: m.predict(wrong), match)  # noqa: B023


@every_class
@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix], ids=["dense", "csr"])
def test_a_model_that_would_run_away_stays_as_it_is(cls, own, form):
    X, f = rows(p=200)
    y = target(cls, f)
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
            assert_untouched(model, before)
        else:
            assert np.isfinite(model.coef_).all() and np.isfinite(model.online_loss_)
            model = before


@every_class
def test_features_that_do_not_fit_the_model(cls, own):
    X, f = rows()
    y = target(cls, f)
    frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(X.shape[1])])
    for learned, other, match in (
        (X, X[:, :5], "5 features"),
        (X, sp.csr_matrix(X[:, :5]), "5 features"),
        (X, np.hstack([X, X]), "24 features"),
        (frame, frame.rename(columns={"x0": "new"}), "feature names"),
        (frame, frame[frame.columns[::-1]], "feature names"),
    ):
        model = show(cls(**own), learned, y)
        assert_refuses(model, lambda m: m.partial_fit(other, y), match)  # noqa: B023
        assert_refuses(model, lambda m: m.predict(other), match)  # noqa: B023
        assert_refuses(model, lambda m: m.transform(other), match)  # noqa: B023


@only_classifiers
def test_labels_that_are_refused(cls, own):
    X, f = rows()
    y = target(cls, f)
    three, one = np.arange(len(y)) % 3, np.ones(len(y))
    words = np.where(y > 0, "1", "0")
    for model in (cls(**own), cls(**own).fit(X, y)):
        assert_refuses(model, lambda m: m.fit(X, one), "y has 1")
        assert_refuses(model, lambda m: m.fit(X, f), "continuous")
        assert_refuses(model, lambda m: m.partial_fit(X, three, classes=[0, 1]), r"y holds.*\[2\]")
        assert_refuses(model, lambda m: m.partial_fit(X, y, classes=[1]), "classes")
    assert_refuses(cls(**own), lambda m: m.partial_fit(X, one), "y has 1")
    assert_refuses(cls(**own), lambda m: m.partial_fit(X, y, classes=[0, 2]), r"y holds.*\[1\]")
    model = cls(**own).fit(X, y)
    assert_refuses(model, lambda m: m.partial_fit(X, y, classes=[0, 2]), r"classes=\[0, 2\]")
    assert_refuses(model, lambda m: m.partial_fit(X, y, classes=[0, 1, 2]), r"classes=\[0, 1, 2\]")
    assert_refuses(model, lambda m: m.partial_fit(X, three), r"y holds labels \[2\]")
    assert_refuses(model, lambda m: m.partial_fit(X, words), "y holds labels")
    assert_refuses(model, lambda m: m.partial_fit(X, 2 * y - 1), "y holds labels")


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
        numbers = [1, 1000]
        for before in words or [5]:
            for after in [word for word in words if word != before] or numbers:
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
    done = subprocess.run(
        [sys.executable, "-c", CHANGE_MIDWAY],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *sys.path])},
    )
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.returncode == 0, f"ended in {lines[-1:]}: {done.stderr[-500:]}"
    outcomes = [line for line in lines if len(line) == 5]
    assert 2 * len(outcomes) == len(lines) and {line[0] for line in outcomes} == set(ESTIMATORS)
    assert [line for line in outcomes if line[-1] not in ("acts", "refused")] == []


# Labels


@only_classifiers
def test_labels_of_any_kind(cls, own):
    X, f = rows()
    y = target(cls, f)
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
    X, f = rows()
    y = target(cls, f)
    order = np.argsort(y, kind="stable")
    X, y = X[order], np.where(y[order] > 0, "no", "yes")  # "no" is the lower label
    for classes in (["no", "yes"], ["yes", "no"], np.array(["yes", "no"], dtype=object)):
        model = cls(**own).partial_fit(X[:5], y[:5], classes=classes)
        assert model.classes_.tolist() == ["no", "yes"]
        assert set(model.predict(X)) <= {"no", "yes"}
        model.partial_fit(X[5:], y[5:])
        assert_same(model, show(cls(**own), X, y))


@only_classifiers
def test_the_second_label_is_the_positive_one(cls, own):
    if cls.__name__ in DO_NOT_RANK:
        pytest.skip("which feature it keeps is not promised")
    rng = np.random.default_rng(0)
    X = rng.standard_normal((400, 6))
    y = np.where(X[:, 2] > 0, "up", "down")
    model = cls(**own | {"k": 1}).fit(X, y)
    assert model.support_.tolist() == [2] and model.coef_[2] > 0
    assert_equal(model.predict(X), np.where(model.decision_function(X) > 0, "up", "down"))
    assert model.score(X, y) > 0.7


# What is learned


@every_case
def test_the_strong_features_are_found(cls, own):
    if cls.__name__ in DO_NOT_RANK:
        pytest.skip("which features it keeps is not promised")
    if own.get("warmup", 0) is None:
        pytest.skip("with a constant step and no warm-up features leave before they are learned")
    rng = np.random.default_rng(3)
    X = rng.standard_normal((3000, 20))
    f = X[:, [3, 8, 15]] @ [2.0, -2.0, 2.0] + 0.1 * rng.standard_normal(3000)
    own = own | {"k": 3} | {name: 1000 for name in ("maturity",) if own.get(name)}
    model = cls(**own).fit(X, target(cls, f))
    largest = np.sort(np.argsort(np.abs(model.coef_))[-3:])
    assert largest.tolist() == [3, 8, 15]
    assert len(model.support_) == 3 or not has_budget(cls, own)
    assert_equal(np.sign(model.coef_[[3, 8, 15]]), [1, -1, 1])


@every_class
def test_the_online_loss_is_that_of_the_model_before_each_row(cls, own):
    """Row by row, with mini-batches of one row: the loss of coef_ as it stood. Holds while no
    feature but the k most important is used, which is so from maturity on."""
    if cls.__name__ in AVERAGED:
        pytest.skip("rows are predicted by the iterate, and coef_ is the mean of many")
    X, f = rows()
    y = target(cls, f)
    one = {"batch_size": 1} if "batch_size" in own else {}
    model = show(cls(**own | one), X[:70], y[:70])
    start, losses = model.online_loss_ * 70, []
    name = model.loss
    for x, t in zip(X[70:], y[70:], strict=True):
        m = x @ model.coef_ + model.intercept_
        s = (2 * t - 1) * m
        losses.append(
            {
                "squared_error": (m - t) ** 2 / 2,
                "log_loss": np.logaddexp(0, -s),
                "hinge": max(0, 1 - s),
                "squared_hinge": max(0, 1 - s) ** 2,
            }[name]
        )
        show(model, x[None], np.array([t])) if not is_classifier(model) else (
            model.partial_fit(x[None], [t])
        )
    assert_allclose(model.online_loss_ * len(X), start + sum(losses), rtol=1e-9)


# Millions of features


def sparse_rows(n, p, nonzeros=30):
    rng = np.random.default_rng(0)
    entries = rng.standard_normal(n * nonzeros), rng.integers(p, size=n * nonzeros)
    return sp.csr_matrix((*entries, np.arange(n + 1) * nonzeros), shape=(n, p))


@every_case
def test_a_model_takes_little_room(cls, own):
    y = target(cls, np.arange(20.0) - 9.5)
    small, large = (
        len(pickle.dumps(show(cls(**own), sparse_rows(20, p), y))) for p in (10_000, 20_000)
    )
    # Four numbers for each penalty that is learned at once
    penalties = own["n_penalties"] if issubclass(cls, Penalised) and own["k"] else 0
    models = 3 if "growth" in own | cls().get_params() else 1
    assert 8 <= (large - small) / 10_000 <= 120 * models + 32 * penalties


@every_class
def test_millions_of_features_are_fast(cls, own):
    if cls.__name__ in DENSE_STEPS:
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
    assert sorted(section(doc, "Parameters")) == sorted(cls().get_params())
    X, f = rows()
    model = cls(**own).fit(pd.DataFrame(X).add_prefix("x"), target(cls, f))
    attributes = {n for n in dir(model) if n.endswith("_") and not n.startswith("_")}
    missing = attributes - set(section(doc, "Attributes"))
    assert not missing
    # One text serves classifiers and regressors
    assert set(section(doc, "Attributes")) - attributes <= {"classes_"}


@every_class
def test_the_first_line_names_method_and_paper(cls, own):
    first = cls.__doc__.strip().splitlines()[0]
    papers = r"sfsa|dissertation|barda|\bofs\b|\bos\b|[12][09]\d\d"
    assert re.fullmatch(rf"[A-Z].{{15,}} \([^)]*({papers})[^)]*\)\.", first), first
    module = import_module(cls.__module__).__doc__.splitlines()[0]
    assert re.search(papers, module), module


@every_class
def test_defaults_are_in_the_docstring(cls, own):
    for name, value in cls().get_params().items():
        assert re.search(rf"^    {name} : .+, default={re.escape(repr(value))}$", cls.__doc__, re.M)


@every_class
def test_words_that_a_parameter_may_be_are_in_the_docstring(cls, own):
    for name, allowed in cls._parameter_constraints.items():
        for words in (kind.options for kind in allowed if isinstance(kind, StrOptions)):
            line = re.search(rf"^    {name} : (.+), default=", cls.__doc__, re.M)[1]
            assert all(repr(word) in line for word in words)


def test_names_that_are_not_there():
    with pytest.raises(AttributeError, match="NoSuchClassifier"):
        ofslib.NoSuchClassifier  # noqa: B018


def test_discovery_imports_nothing(tmp_path):
    code = "import sys, ofslib; dir(ofslib); sys.exit('numba' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True, env=dict(os.environ))
