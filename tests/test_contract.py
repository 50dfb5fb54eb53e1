"""One contract for every estimator that learns from rows; a new one joins by being there.

The estimators and the values of their parameters are discovered, none is listed here. The methods
on averages, for more than two classes and with weights, join in test_everyday.py.
"""

import copy
import inspect
import itertools
import os
import pickle
import re
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from estimators import accepted, public, wide
from numpy.testing import assert_allclose, assert_equal
from sklearn.base import ClassifierMixin, is_classifier
from sklearn.utils._param_validation import StrOptions

from ofslib.streams import row_stream
from ofslib.streams.penalised import Penalised
from ofslib.streams.row_stream import RowStream

K = 4
ESTIMATORS = {cls.__name__: cls for cls in public(RowStream)}


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


@pytest.mark.filterwarnings("ignore:k=.*is greater than n_features")
@every_class
def test_scikit_learn_accepts_it(cls, own):
    # A row twice is two places in the stream. Of so few rows methods at any time have only
    # observed: no model.
    forms = ("dense", "sparse") if "first_maturity" not in own else ()
    must = [f"check_sample_weight_equivalence_on_{form}_data" for form in forms]
    # One pass over fifty rows with weights of 1000 and .0001 and a spread of 20: a step of some
    # methods overshoots, and the last ones decide.
    may = ["check_class_weight_classifiers"]
    for given in ({}, {"k": 2}) if issubclass(cls, Penalised) else ({},):
        accepted(cls(**given), must, may)


# A stream may be cut anywhere, and its rows come in any form


@every_case
@either_form
def test_blocks_of_any_size_and_files_between_them_give_the_same_model(cls, own, form, tmp_path):
    X, y = labelled(cls, n=75)
    X, model = form(X), show(cls(**own), form(X), y)
    assert len(model.support_) == K or not has_budget(cls, own, exactly=True)
    assert_same(show(cls(**own), X, y, 1), model)
    resumed = cls(**own)
    for i in range(0, 75, 40):
        show(resumed, X[i : i + 40], y[i : i + 40]).save(tmp_path / "model")
        resumed = cls.load(tmp_path / "model")
    assert_same(pickle.loads(pickle.dumps(resumed)), model)


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


def readonly(X, kind=float):
    X = X.astype(kind)
    X.flags.writeable = False
    return X


def unaligned(X):
    room = np.zeros(X.nbytes + 1, np.uint8)
    view = room[1:].view(X.dtype).reshape(X.shape)
    view[...] = X
    return view


def scattered(X):
    """CSR with each entry in two halves, in no order, that cannot be written to."""
    rng = np.random.default_rng(1)
    indices = [rng.permutation(np.repeat(np.flatnonzero(x), 2)) for x in X]
    data = [x[j] / 2 for x, j in zip(X, indices, strict=True)]
    indptr = np.cumsum([0, *map(len, indices)])
    parts = np.concatenate(data), np.concatenate(indices), indptr
    for part in parts:
        part.flags.writeable = False
    return sp.csr_matrix(parts, shape=X.shape)


# Forms of the same numbers: those of one group give the same bits.
DENSE = {
    "readonly": readonly,
    "float32": lambda X: readonly(X, np.float32),
    "big_endian": lambda X: X.astype(">f8"),
    "fortran": np.asfortranarray,
    "strided": strided,
    "unaligned": unaligned,
    "objects": lambda X: X.astype(object),
    "frame": lambda X: pd.DataFrame(X, columns=[f"x{j}" for j in range(X.shape[1])]),
}
SPARSE = {
    "csr_array": sp.csr_array,
    "csc_matrix": sp.csc_matrix,
    "coo_matrix": sp.coo_matrix,
    "float32": lambda X: sp.csr_matrix(X.astype(np.float32)),
    "long_indices": lambda X: wide(sp.csr_matrix(X)),
    "scattered": scattered,
}


def stored(X):
    """The arrays that hold a matrix."""
    names = ("data", "indices", "indptr")
    return [np.array(getattr(X, name, 0)) for name in names] if sp.issparse(X) else [np.array(X)]


@every_class
def test_the_layout_of_the_data_does_not_matter(cls, own, monkeypatch):
    """Whole, or so large that they are shown in pieces; for what is learned and predicted."""
    X, y = labelled(cls)
    dense, sparse = cls(**own).fit(X, y), cls(**own).fit(sp.csr_matrix(X), y)
    for labels in (np.repeat(y, 3)[::3], pd.Series(y, index=np.arange(len(y))[::-1])):
        assert_same(cls(**own).fit(X, labels), dense)
    margins = X @ dense.coef_ + dense.intercept_
    for per_block, per_copy in ((2**24, 2**18), (200, 50)):
        monkeypatch.setattr(row_stream, "_VALUES_PER_BLOCK", per_block)
        monkeypatch.setattr(row_stream, "_VALUES_PER_COPY", per_copy)
        for model, forms in ((dense, DENSE), (sparse, SPARSE)):
            for form in forms.values():
                given = form(X)
                before = stored(given)
                assert_same(cls(**own).fit(given, y), model)
                with warnings.catch_warnings():
                    warnings.filterwarnings("ignore", "X has feature names")
                    ask = dense.decision_function if is_classifier(dense) else dense.predict
                    assert_allclose(ask(given), margins, atol=1e-12)
                assert_equal(stored(given), before)
    counts = np.round(np.abs(4 * X))
    for kind in (np.int8, np.uint16, bool):
        for form in (np.asarray, sp.csr_matrix):
            given = counts.astype(kind)
            assert_same(cls(**own).fit(form(given), y), cls(**own).fit(form(given * 1.0), y))


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
    coef[:] = 77.0  # a copy
    assert not (model.coef_ == 77.0).any()


@every_class
def test_transform_picks_the_support(cls, own):
    X, y = labelled(cls)
    frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(X.shape[1])])
    model = cls(**own).fit(frame, y)
    support = model.support_
    assert 0 < len(support) <= K and np.all(np.diff(support) > 0)
    assert_equal(model.get_support(), np.isin(np.arange(X.shape[1]), support))
    assert_equal(model.get_feature_names_out(), frame.columns[support])
    assert_equal(model.transform(frame), X[:, support])
    model = cls(**own).fit(X, y)
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
    **dict.fromkeys(("k", "batch_size", "n_passes", "maturity", "period"), (0, 1.5)),
    **dict.fromkeys(("epoch_size", "n_penalties"), (0, 1.5)),
    **dict.fromkeys(("learning_rate", "delta", "gamma", "theta", "radius"), (0.0, np.nan)),
    **dict.fromkeys(("momentum", "mu", "alpha", "l1", "l2", "rho"), (-1.0, np.nan)),
    **dict.fromkeys(("loss", "optimizer", "importance", "dtype", "shuffle"), (2, None)),
    "fit_intercept": [2, None],
    "warmup": [-1, 63],
    "random_state": [-1, 1.5],
    "l1_range": [(1.0,), (0.0, 1.0), (2.0, 1.0), (1.0, np.inf)],
}


def assert_refuses(model, call, match):
    before = copy.deepcopy(model)
    with pytest.raises(ValueError, match=match):
        call(model)
    assert_equal(vars(model), vars(before))


@every_class
def test_parameters_that_are_refused(cls, own):
    """No parameter takes any string, a set of none or a list of one."""
    X, y = labelled(cls)
    model = cls(**own).fit(X, y)
    for name, allowed in cls._parameter_constraints.items():
        old = getattr(model, name)
        for value in [*REFUSED.get(name, []), "nonsense", {}, [1]]:
            if value is not None or None not in allowed:
                model.set_params(**{name: value})
                assert_refuses(model, lambda m: m.fit(X[:, :5], y), name)
                assert_refuses(model, lambda m: m.partial_fit(X, y), name)
        model.set_params(**{name: old})
    assert_same(model, cls(**own).fit(X, y))


@every_class
def test_a_parameter_changed_midway_is_refused_or_acts(cls, own):
    """A kernel that wrote beyond its state would end the process."""
    X, y = sparse_rows(60, 2000, 8), target(cls, np.sin(np.arange(60.0)))
    few = {"n_penalties": 3} if issubclass(cls, Penalised) else {}
    for name, allowed in cls._parameter_constraints.items():
        words = sorted(o for a in allowed if isinstance(a, StrOptions) for o in a.options)
        for before, after in itertools.permutations(words, 2) if words else ((5, 1), (5, 1000)):
            model = cls(**{"k": 5, **few, name: before})
            try:
                show(model, X[:30], y[:30]).set_params(**{name: after})
            except ValueError:  # 5 is not for this one
                continue
            try:
                show(show(model, X, y), X, y)
            except (ValueError, FloatingPointError) as error:
                assert name in str(error)
            else:
                assert len(model.support_) <= model.k and np.isfinite(model.coef_).all()


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


# Labels


@only_classifiers
def test_labels_of_any_kind(cls, own):
    X, y = labelled(cls)
    model = cls(**own).fit(X, y)
    assert 0.3 < model.online_score_ <= 1.0 and model.score(X, y) > 0.4
    words = np.where(y > 0, "no", "a")
    for labels in (words.astype(object), words.tolist(), pd.Series(words).astype("category"),
                   y > 0, np.where(y > 0, 7, -300)):  # fmt: skip
        other = cls(**own).fit(X, labels)
        assert_same(other, model)
        assert_equal(other.classes_, np.unique(np.asarray(labels)))
        assert_equal(other.predict(X), other.classes_[model.predict(X)])
        assert other.score(X, labels) == model.score(X, y)
    order = np.argsort(y, kind="stable")  # the first block has one label
    sorted_ = cls(**own).partial_fit(X[order[:5]], words[order[:5]], classes=["no", "a"])
    assert sorted_.classes_.tolist() == ["a", "no"] and set(sorted_.predict(X)) <= {"a", "no"}
    assert_same(show(sorted_, X[order[5:]], words[order[5:]]), show(cls(**own), X[order], y[order]))


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


@every_class
def test_the_docstring_explains_everything(cls, own):
    """As numpydoc has it: `name : type`, then an indented text."""
    explained = re.findall(r"^(\w+) : .+\n    \S+ \S", inspect.getdoc(cls), re.M)
    X, y = labelled(cls)
    model = cls(**own).fit(pd.DataFrame(X).add_prefix("x"), y)
    attributes = {n for n in dir(model) if n.endswith("_") and not n.startswith("_")}
    # One text serves classifiers and regressors
    assert {*explained, "classes_"} == {*parameters(cls), *attributes, "classes_"}
