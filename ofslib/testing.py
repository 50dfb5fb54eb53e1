"""The contract that every method of ofslib keeps, checked on a class of yours.

`check_method` returns a report. `method_checks` has the same checks as cases for pytest::

    @pytest.mark.parametrize(("name", "check"), method_checks(MyClassifier, k=5))
    def test_contract(name, check):
        check()
"""

import copy
import inspect
import pickle
import tempfile
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple
from unittest import SkipTest

import numpy as np
import pandas as pd
import scipy.sparse as sp
from sklearn.base import is_classifier

from ofslib.averages import RunningAverages

STREAMS = ("rows", "averages", "columns")
_LEARNED = ("support_", "coef_", "intercept_")
_TWICE = "a row twice is two places in the stream"
_ROUNDING = 1e-9


class _Case(NamedTuple):
    """A class under test, and data for it."""

    cls: type
    stream: str
    parameters: dict[str, Any]
    X: np.ndarray
    y: np.ndarray

    def new(self):
        return self.cls(**self.parameters)

    def learn(self, model, X, y, part: slice = slice(None)):
        """Learn a part of the stream: rows, or columns."""
        if self.stream == "columns":
            return model.partial_fit_columns(X[:, part], y)
        known = {"classes": np.unique(self.y)} if is_classifier(model) else {}
        return model.partial_fit(X[part], y[part], **known)

    def parts(self) -> list[slice]:
        """The stream in pieces of many sizes; methods on averages need two rows to begin with."""
        length = self.X.shape[self.stream == "columns"]
        cuts = [0, 3, 4, length // 2, length]
        return [slice(a, b) for a, b in pairwise(cuts)]


def method_checks(
    cls: type, stream: str = "rows", **parameters: Any
) -> Iterator[tuple[str, Callable[[], None]]]:
    """The checks of a class: pairs of a name and a function, which raises if the check fails.

    A check that does not apply raises `unittest.SkipTest`, which pytest shows as skipped.

    Parameters
    ----------
    cls : type
        An estimator of scikit-learn's kind, with `partial_fit`, or `partial_fit_columns`.
    stream : {'rows', 'averages', 'columns'}
        What the method learns from.
    **parameters
        Parameters of the class. k=4 and random_state=0 are set where the class has them.
    """
    if stream not in STREAMS:
        raise ValueError(f"stream={stream!r} is none of {', '.join(STREAMS)}")
    rng = np.random.default_rng(0)
    X = rng.standard_normal((120, 12)) * (rng.random((120, 12)) < 0.6)
    f = X[:, :3].sum(axis=1) - X[:, 5] + 0.3 * rng.standard_normal(120)
    known = {"k": 4, "random_state": 0}
    known = {name: known[name] for name in known if name in cls().get_params()}
    y = np.where(f > 0, 1.0, -1.0) if is_classifier(cls()) else f
    case = _Case(cls, stream, known | parameters, X, y)
    for name, check in _CHECKS.items():
        yield name, partial(_quietly, check, case)


def check_method(cls: type, stream: str = "rows", **parameters: Any) -> pd.DataFrame:
    """A report on a class: a line for each check, with its status and why it failed.

    Parameters
    ----------
    cls, stream, **parameters
        As in `method_checks`.

    Returns
    -------
    DataFrame
        Columns check, status (passed, failed or skipped) and reason.

    Examples
    --------
    >>> from ofslib import OLSthRegressor
    >>> from ofslib.testing import check_method
    >>> report = check_method(OLSthRegressor, stream="averages")
    >>> set(report["status"])
    {'passed'}
    """
    lines = []
    for name, check in method_checks(cls, stream, **parameters):
        status, reason = "passed", ""
        try:
            check()
        except SkipTest as skip:
            status, reason = "skipped", str(skip)
        except Exception as error:  # whatever a class of someone else raises
            status, reason = "failed", f"{type(error).__name__}: {error}"
        lines.append((name, status, reason))
    return pd.DataFrame(lines, columns=["check", "status", "reason"])


def _quietly(check: Callable[[_Case], None], case: _Case) -> None:
    """Without the warnings of models of few rows: too large a k, no better than a constant."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        check(case)


def _scikit_learn(case: _Case) -> None:
    from sklearn.utils.estimator_checks import check_estimator

    names = [f"check_sample_weight_equivalence_on_{form}_data" for form in ("dense", "sparse")]
    known = dict.fromkeys([*names, "check_class_weight_classifiers"], _TWICE)
    check_estimator(case.new(), expected_failed_checks=known, on_skip=None, on_fail="raise")


def _dense_equals_sparse(case: _Case) -> None:
    form = sp.csc_matrix if case.stream == "columns" else sp.csr_matrix
    models = [case.new().fit(X, case.y) for X in (case.X, form(case.X))]
    _assert_equal(*models, "sparse and dense X give different models", _ROUNDING)


def _pieces_equal_one_block(case: _Case) -> None:
    whole, pieces = case.learn(case.new(), case.X, case.y), case.new()
    for part in case.parts():
        case.learn(pieces, case.X, case.y, part)
    _assert_equal(whole, pieces, "pieces and one block give different models", _ROUNDING)


def _saved_goes_on(case: _Case) -> None:
    *first, last = case.parts()
    model = case.new()
    for part in first:
        case.learn(model, case.X, case.y, part)
    models = [copy.deepcopy(model), pickle.loads(pickle.dumps(model))]  # noqa: S301  our own
    if hasattr(model, "save"):
        with tempfile.TemporaryDirectory() as folder:
            model.save(Path(folder) / "model")
            models.append(case.cls.load(Path(folder) / "model"))
    for one in [model, *models]:
        case.learn(one, case.X, case.y, last)
    for one in models:
        _assert_equal(model, one, "a model from a copy, a pickle or a file goes on otherwise")


def _zero_weights(case: _Case) -> None:
    if "sample_weight" not in inspect.signature(case.cls.fit).parameters:
        raise SkipTest("fit takes no sample_weight")
    weight = np.random.default_rng(1).integers(3, size=len(case.y)) / 2
    shown = weight > 0
    one = case.new().fit(case.X, case.y, sample_weight=weight)
    two = case.new().fit(case.X[shown], case.y[shown], sample_weight=weight[shown])
    _assert_equal(one, two, "a row of weight 0 is not as if it were not shown", _ROUNDING)


def _at_most_k(case: _Case) -> None:
    if case.parameters.get("k") is None:
        raise SkipTest("the class has no k, or k is None")
    model = case.new()
    for part in case.parts():
        support = case.learn(model, case.X, case.y, part).support_
        assert len(support) <= model.k, f"{len(support)} features, and k={model.k}"
        if hasattr(model, "coef_"):
            used = np.flatnonzero(np.atleast_2d(model.coef_).any(axis=0))
            assert set(used) <= set(support), f"coef_ uses {used}, support_ is {support}"


def _bad_input(case: _Case) -> None:
    nan, inf = case.X.copy(), case.X.copy()
    nan[3, 2], inf[3, 2] = np.nan, np.inf
    bad = {"NaN": (nan, case.y), "infinity": (inf, case.y)}
    if case.stream != "columns":
        bad |= {"short y": (case.X, case.y[:-1]), "too few features": (case.X[:, :-1], case.y)}
    model = case.learn(case.new(), case.X, case.y)
    before = copy.deepcopy(model)
    for what, (X, y) in bad.items():
        try:
            case.learn(model, X, y)
        except ValueError:
            _assert_equal(before, model, f"{what}: refused, and the model has changed")
        else:
            raise AssertionError(f"{what}: no ValueError")


def _running_averages(case: _Case) -> None:
    if case.stream != "averages":
        raise SkipTest("the method does not learn from running averages")
    averages = RunningAverages(case.X.shape[1]).update(case.X, case.y)
    models = case.new().fit(case.X, case.y), case.new().fit_averages(averages)
    _assert_equal(*models, "fit and fit_averages give different models", _ROUNDING)


_CHECKS: dict[str, Callable[[_Case], None]] = {
    "scikit-learn accepts it": _scikit_learn,
    "dense equals sparse": _dense_equals_sparse,
    "pieces equal one block": _pieces_equal_one_block,
    "saved, it goes on to the bit": _saved_goes_on,
    "weight 0 is not shown": _zero_weights,
    "at most k features": _at_most_k,
    "bad input is refused and changes nothing": _bad_input,
    "fit equals fit_averages": _running_averages,
}


def _assert_equal(one, two, message: str, rounding: float = 0.0) -> None:
    """The same model: to the bit, or but for rounding."""
    for name in _LEARNED:
        if hasattr(one, name):
            expected, found = np.asarray(getattr(one, name)), np.asarray(getattr(two, name))
            size = rounding * max(1.0, np.abs(expected).max(initial=0.0))
            same = expected.shape == found.shape and (np.abs(found - expected) <= size).all()
            assert same, f"{message}: {name} is {found}, not {expected}"
