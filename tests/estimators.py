"""The one table of estimators, found by what they inherit from, and what is asked of all."""

import warnings

import pytest
from sklearn.utils.estimator_checks import check_estimator

import ofslib
from ofslib.beyond.knockoffs import Knockoffs
from ofslib.streams.average_stream import AverageStream


def public(*bases):
    """All public classes that inherit from all of these, each a class or a tuple of them."""
    names = [name for names in ofslib.ESTIMATORS.values() for name in names]
    classes = [getattr(ofslib, name) for name in sorted(names)]
    return [cls for cls in classes if all(issubclass(cls, base) for base in bases)]


def every(classes):
    """A test for each class."""
    return pytest.mark.parametrize("cls", classes, ids=lambda cls: cls.__name__)


# Knockoffs need more rows than twice the features, all of equal weight: tests/test_knockoffs.py.
AVERAGES = [cls for cls in public(AverageStream) if not issubclass(cls, Knockoffs)]


def accepted(model, must=(), may=()):
    """scikit-learn's checks hold, but for those that must fail, and those that may."""
    failing = dict.fromkeys([*must, *may], "see the test")
    results = check_estimator(model, expected_failed_checks=failing, on_skip=None, on_fail="raise")
    found = {
        s: {r["check_name"] for r in results if r["status"] == s} for s in ("skipped", "xfail")
    }
    assert found["skipped"] <= {"check_array_api_input"}  # needs SCIPY_ARRAY_API=1
    assert found["xfail"] - {*may} == {*must}


def said(act, *given, **known):
    """The warnings of a call."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        act(*given, **known)
    return [str(one.message) for one in caught]


def wide(X):
    """A sparse matrix, its indices of 64 bits."""
    X.indices, X.indptr = X.indices.astype("int64"), X.indptr.astype("int64")
    return X
