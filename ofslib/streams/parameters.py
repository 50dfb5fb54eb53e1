"""Parameters of estimators: declared once, checked by `fit`, listed in the docstring."""

import inspect
import re
import textwrap
from dataclasses import Field, dataclass, field, fields
from enum import EnumType
from numbers import Integral, Real
from typing import Any, NamedTuple, TypeVar, dataclass_transform

from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils._param_validation import Interval, StrOptions, make_constraint

from ofslib import home_of


def param(doc: str, *allowed: Any, default: Any) -> Any:
    """A hyper-parameter: what it means, the values it may take, and its default."""
    if not allowed:
        raise TypeError(f"param({doc!r}, ...) does not say which values are allowed")
    return field(default=default, metadata={"doc": doc, "allowed": list(allowed)})


def number(kind: type, low: float, high: float | None = None, closed: str = "left"):
    """Numbers of `kind` between `low` and `high`; of whole ones those that kernels can hold."""
    if kind is Integral and high is None:
        high, closed = _LARGEST, "both"
    return Interval(kind, low, high, closed=closed)


def one_of(*names: str) -> StrOptions:
    """One of these words."""
    return StrOptions(set(names))


_T = TypeVar("_T")
_LARGEST = 2**63 - 1

POSITIVE = number(Real, 0, closed="neither")
NOT_NEGATIVE = number(Real, 0)
AT_LEAST_ONE = number(Integral, 1)
WHOLE = number(Integral, 0)


@dataclass_transform(kw_only_default=True, eq_default=False, field_specifiers=(param,))
def estimator(cls: type[_T]) -> type[_T]:
    """Make a class whose parameters are declared with `param` a scikit-learn estimator.

    Writes `__init__` (by dataclass), the constraints that `fit` checks, and the section
    "Parameters" of the docstring, all from one declaration. Before it the docstring goes on with
    `description`, which a method declares once for its classifier and its regressor. It ends with
    the `example` of the method or of its family, if ofslib shows the class.
    """
    cls = dataclass(eq=False, repr=False, kw_only=True)(cls)
    declared = [f for f in fields(cls) if "doc" in f.metadata]
    cls._parameter_constraints = {f.name: f.metadata["allowed"] for f in declared}
    parameters = "\n".join(["Parameters", "----------", *map(_described, declared)])
    attributes = "\n".join(["Attributes", "----------", *_attributes(cls), _ATTRIBUTES])
    about = textwrap.fill(getattr(cls, "description", ""), 92)
    text = "\n\n".join([about, parameters, attributes, _example(cls)]).strip()
    cls.__doc__ = f"{cls.__doc__.rstrip()}\n\n{textwrap.indent(text, '    ')}\n    "
    return cls


# Each example has these rows; its last lines are the `example` of the class.
_ROWS = """\
>>> import numpy as np
>>> from ofslib import {name}, simulate
>>> design = simulate.Equicorrelated(p=50, k=3, alpha=0.0{task})
>>> X, y = design.sample(1000, np.random.default_rng(0))
"""


def _example(cls: type) -> str:
    """The section "Examples" of a class that ofslib shows."""
    if home_of(cls.__name__) != cls.__module__:
        return ""
    task = ', task="classification"' if issubclass(cls, ClassifierMixin) else ""
    lines = (_ROWS + inspect.cleandoc(cls.example)).format(name=cls.__name__, task=task)
    return f"Examples\n--------\n{lines}"


def _described(f: Field) -> str:
    """A parameter as numpydoc has it."""
    doc = textwrap.fill(f.metadata["doc"], 92, initial_indent="    ", subsequent_indent="    ")
    return f"{f.name} : {_kinds(f.metadata['allowed'])}, default={f.default!r}\n{doc}"


def _kinds(allowed: list) -> str:
    """What a parameter may be, in words."""
    named, words = {"boolean": "bool", "random_state": "int or RandomState"}, []
    for kind in allowed:
        if isinstance(kind, StrOptions):
            words.append("{" + ", ".join(repr(word) for word in sorted(kind.options)) + "}")
        elif isinstance(kind, Interval):
            text = str(make_constraint(kind)).replace(f"{_LARGEST}]", "2**63)")
            words.append(re.sub(r"an? (\w+) in the range", r"\1 in", text))
        else:
            words.append(getattr(kind, "__name__", None) or named.get(kind, str(kind)))
    return " or ".join(words)


def _attributes(cls: type) -> list[str]:
    """What the properties of a class are, by their own docstrings."""
    return [
        f"{name} : " + inspect.cleandoc(getattr(cls, name).__doc__).replace("\n", "\n    ")
        for name in dir(cls)
        if name[0] != "_" and name.endswith("_") and isinstance(getattr(cls, name), property)
    ]


_ATTRIBUTES = """\
n_samples_seen_ : int
    Rows shown so far, once for each pass over them; of a stream of columns, its rows.
n_features_in_ : int
    Number of features.
feature_names_in_ : ndarray of shape (n_features,)
    Names of the features, if they were shown with names.
classes_ : ndarray of shape (n_classes,)
    The labels, ascending; of two the second one is the positive class (classifiers only)."""


def read_parameters(model: BaseEstimator, kind: type, **own) -> NamedTuple:
    """The parameters of a model as kernels read them: numbers, None as 0, words as their codes.

    `kind` is a NamedTuple: its fields are the parameters of these names, but for those in `own`,
    and are annotated with what they become, int, float, or the enumeration of the codes.
    """

    values = []
    for name, becomes in kind.__annotations__.items():
        value = own[name] if name in own else getattr(model, name)
        if isinstance(becomes, EnumType):
            values.append(int(becomes[value]))
        else:
            try:
                values.append(becomes() if value is None else becomes(value))
            except OverflowError:
                raise ValueError(f"{name}={value} is larger than any float") from None
    return kind(*values)
