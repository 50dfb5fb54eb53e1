"""The one table of estimators: those that `ofslib` shows, found by what they inherit from."""

import pytest

import ofslib


def public(*bases):
    """All public classes that inherit from all of these, each a class or a tuple of them."""
    names = [name for names in ofslib.ESTIMATORS.values() for name in names]
    classes = [getattr(ofslib, name) for name in sorted(names)]
    return [cls for cls in classes if all(issubclass(cls, base) for base in bases)]


def every(classes):
    """A test for each class."""
    return pytest.mark.parametrize("cls", classes, ids=lambda cls: cls.__name__)
