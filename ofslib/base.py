"""The streams that feature selectors learn from, as scikit-learn estimators.

`Selector` is what all share, `Stream` what those share that learn a linear model. `RowStream` is
the base of the methods that see observations one by one: a method adds its hyper-parameters
(`param`), its `State`, and a kernel that folds rows into the state. `AverageStream` is the base of
those that see only first and second moments of the rows: a method adds its hyper-parameters, and
how it gets coefficients from the moments.
"""

import contextlib
import copy
import inspect
import re
import sys
import textwrap
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, fields
from enum import EnumType
from functools import cache
from numbers import Integral, Real
from typing import Any, ClassVar, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, is_classifier
from sklearn.feature_selection import SelectorMixin
from sklearn.utils import assert_all_finite, check_random_state
from sklearn.utils._param_validation import Interval, StrOptions, make_constraint
from sklearn.utils.extmath import safe_sparse_dot
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import check_is_fitted, validate_data
from threadpoolctl import ThreadpoolController

from ofslib.averages import RunningAverages, Standardized
from ofslib.gram import least_squares
from ofslib.losses import LOSSES, Loss, total
from ofslib.path import Path, hold, new_path
from ofslib.rows import CSR

# Values read between two looks at the keyboard, and values copied at a time when the data are not
# in the layout that kernels read (the copy then stays in the processor's cache).
_VALUES_PER_FOLD = 2**24
_VALUES_PER_COPY = 2**18


@cache
def _blas() -> ThreadpoolController:
    """The loaded libraries, numpy's and scipy's among them; to look for them takes 2 ms."""
    return ThreadpoolController().select(user_api="blas")


def one_blas_thread() -> contextlib.AbstractContextManager:
    """While it lasts, BLAS uses one thread: how it rounds may depend on the number of threads."""
    return _blas().limit(limits=1)


def param(default: Any, doc: str, *allowed: Any) -> Any:
    """A hyper-parameter: its default, what it means, and the values it may take."""
    return field(default=default, metadata={"doc": doc, "allowed": list(allowed)})


def number(kind: type, low: float, high: float | None = None, closed: str = "left"):
    """Numbers of `kind` between `low` and `high`."""
    return Interval(kind, low, high, closed=closed)


def one_of(*names: str) -> StrOptions:
    """One of these words."""
    return StrOptions(set(names))


POSITIVE = number(Real, 0, closed="neither")
NOT_NEGATIVE = number(Real, 0)
AT_LEAST_ONE = number(Integral, 1)
WHOLE = number(Integral, 0)


def estimator(cls: type) -> type:
    """Make a class whose parameters are declared with `param` a scikit-learn estimator.

    Writes `__init__` (by dataclass), the constraints that `fit` checks, and the section
    "Parameters" of the docstring, all from one declaration. Before it the docstring goes on with
    `about`, which a method declares once for its classifier and its regressor.
    """
    cls = dataclass(eq=False, repr=False, kw_only=True)(cls)
    declared = [f for f in fields(cls) if "doc" in f.metadata]
    cls._parameter_constraints = {f.name: f.metadata["allowed"] for f in declared}
    lines = [
        f"{f.name} : {_kinds(f.metadata['allowed'])}, default={f.default!r}\n"
        + textwrap.fill(f.metadata["doc"], 92, initial_indent="    ", subsequent_indent="    ")
        for f in declared
    ]
    parameters = "\n".join(["Parameters", "----------", *lines])
    attributes = "\n".join(["Attributes", "----------", *_attributes(cls), _ATTRIBUTES])
    text = "\n\n".join([textwrap.fill(getattr(cls, "about", ""), 92), parameters, attributes])
    cls.__doc__ = f"{cls.__doc__.rstrip()}\n\n{_indent(text.lstrip())}\n    "
    return cls


def _kinds(allowed: list) -> str:
    """What a parameter may be, in words."""
    words = []
    for kind in allowed:
        if isinstance(kind, StrOptions):
            words.append("{" + ", ".join(repr(word) for word in sorted(kind.options)) + "}")
        elif isinstance(kind, Interval):
            words.append(re.sub(r"an? (\w+) in the range", r"\1 in", str(make_constraint(kind))))
        else:
            named = {"boolean": "bool", "random_state": "int or RandomState"}
            words.append(getattr(kind, "__name__", None) or named.get(kind, str(kind)))
    return " or ".join(words)


def _indent(text: str) -> str:
    return "\n".join("    " + line if line else line for line in text.split("\n"))


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
feature_names_in_ : ndarray of shape (n_features_in_,)
    Names of the features, if they were shown with names.
classes_ : ndarray of shape (2,)
    The labels; the second one is the positive class (classifiers only)."""


def read_parameters(model: BaseEstimator, kind: type, **own) -> NamedTuple:
    """The parameters of a model as kernels read them: numbers, None as 0, words as their codes.

    `kind` is a NamedTuple: its fields are the parameters of these names, but for those in `own`,
    and are annotated with what they become, int, float, or the enumeration of the codes.
    """

    def read(name, becomes):
        value = own[name] if name in own else getattr(model, name)
        if isinstance(becomes, EnumType):
            return int(becomes[value])
        return becomes() if value is None else becomes(value)

    return kind(**{name: read(name, becomes) for name, becomes in kind.__annotations__.items()})


def batches(rows: int | None, batch_size: int) -> int:
    """Mini-batches that so many rows make, the last one perhaps not full; 0 if not known."""
    return -(-int(rows or 0) // int(batch_size))


class Blocks(NamedTuple):
    """Validated data: a matrix, targets as the kernels read them, and the order of its rows."""

    X: Any  # (n, p) ndarray or CSR matrix
    y: np.ndarray  # (n,) float64
    order: np.ndarray  # (m,) int64


def _kernel_blocks(data: Blocks) -> Iterator[Blocks]:
    """The rows in their order, in the layout that kernels read and in handy pieces."""
    X, y, order = data
    if sp.issparse(X):
        X = _kernel_csr(X)
        size = max(1, _VALUES_PER_FOLD * len(order) // max(1, len(X.data)))
        for i in range(0, len(order), size):
            yield Blocks(X, y, order[i : i + size])
        return
    ready = X.dtype == np.float64 and X.flags.c_contiguous and X.flags.writeable
    size = max(1, (_VALUES_PER_FOLD if ready else _VALUES_PER_COPY) // X.shape[1])
    for i in range(0, len(order), size):
        part = order[i : i + size]
        if ready:
            yield Blocks(X, y, part)
        else:
            copied = np.array(X[part], dtype=np.float64, order="C")
            yield Blocks(copied, y[part], np.arange(len(part)))


def _kernel_csr(X) -> CSR:
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    data = np.require(X.data, np.float64, "CW")
    indices = np.require(X.indices, np.int32, "CW").view(np.uint32)
    return CSR(data, indices, np.require(X.indptr, np.int64, "CW"))


def _frames_to_caller() -> int:
    """How many frames above its caller the first one outside this file is, as warnings count."""
    frame, level = sys._getframe(1), 1
    while frame.f_back and frame.f_code.co_filename in (__file__, contextlib.__file__):
        frame, level = frame.f_back, level + 1
    return level


class Selector(SelectorMixin, BaseEstimator):
    """What all selectors of features share: parameters, and data that are checked on the way in.

    A family defines `_start` and `_learn`, what it selects, and whether it needs targets.
    """

    # What the docstring says after its first line.
    about: ClassVar[str] = ""
    # Parameters that the state was made for: they cannot change while it learns.
    frozen: ClassVar[tuple[str, ...]] = ()
    # Whether X is searched for values that are not finite before it is learned from.
    looks_first: ClassVar[bool] = True
    # How sparse X is read.
    sparse_form: ClassVar[str] = "csr"
    # Whether it learns from targets; else they are not looked at.
    supervised: ClassVar[bool] = True

    def _start(self, n_features: int) -> None:
        """Forget all data."""

    def _learn(self, X, y) -> None:
        """Take in the data of `fit`."""
        raise NotImplementedError

    def _targets(self, y, **known) -> np.ndarray:
        """Targets as they are learned from: numbers, or -1 and +1."""
        return np.require(y, np.float64, "CW")

    def fit(self, X, y=None):
        """Learn from X, and from nothing that was shown before.

        Parameters
        ----------
        X : {ndarray, DataFrame, sparse matrix or array} of shape (n_samples, n_features)
            Observations.
        y : array-like of shape (n_samples,)
            Targets: numbers, or two different labels. Not read by a method that needs none.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If a parameter or the data are not allowed; the message names it and says what is.
        """
        self._validate_params()
        with self._unless_it_fails():
            X, y = self._read(X, y, reset=True)
            self._begin(X.shape[1])
            self._learn(X, y)
        return self

    def _begin(self, n_features: int) -> None:
        k = getattr(self, "k", None)
        if isinstance(k, Integral) and k > n_features:
            message = f"k={k} is greater than n_features={n_features}: all features are kept."
            warnings.warn(message, stacklevel=_frames_to_caller())
        self._begin_anew(n_features)

    def _begin_anew(self, n_features: int) -> None:
        self._frozen = {name: getattr(self, name) for name in self.frozen}
        self._start(n_features)

    def _refuse_changes(self) -> None:
        for name, old in self._frozen.items():
            if getattr(self, name) != old:
                raise ValueError(
                    f"{name}={getattr(self, name)!r} differs from {name}={old!r}, with which "
                    "learning began: set it back, or begin anew by fit."
                )

    @contextlib.contextmanager
    def _unless_it_fails(self):
        before = dict(self.__dict__)
        try:
            yield
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(before)
            raise

    def _read(self, X, y, reset: bool, **known):
        form = {
            "reset": reset,
            "accept_sparse": self.sparse_form,
            "dtype": [np.float64, np.float32],
            "ensure_all_finite": self.looks_first,
        }
        if not self.supervised:
            return validate_data(self, X, **form), None
        X, y = validate_data(self, X, y, y_numeric=not is_classifier(self), **form)
        return X, self._targets(y, **known)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.required = self.supervised
        return tags


class Stream(Selector):
    """What the streams share that learn a linear model.

    A family also defines `_learn_more` (how more rows become its state), `_current` (the model of
    that state) and `__sklearn_is_fitted__`.
    """

    def _learn_more(self, X, y) -> None:
        """Take in the rows of `partial_fit`."""
        raise NotImplementedError

    def _current(self) -> tuple[np.ndarray, float]:
        """Coefficients, shape (p,), and intercept of the model as it stands; the caller's own."""
        raise NotImplementedError

    def _partial_fit(self, X, y, **known):
        self._validate_params()
        first = not self.__sklearn_is_fitted__()
        with self._unless_it_fails():
            X, y = self._read(X, y, reset=first, **known)
            if first:
                self._begin(X.shape[1])
            self._refuse_changes()
            self._learn_more(X, y)
        return self

    @property
    def coef_(self) -> np.ndarray:
        """ndarray of shape (n_features_in_,)
        Coefficients of the model as it stands; if there is a `k`, at most k are not zero."""
        check_is_fitted(self)
        return self._current()[0]

    @property
    def intercept_(self) -> float:
        """float
        The model's constant; 0.0 without `fit_intercept`."""
        check_is_fitted(self)
        return self._current()[1]

    @property
    def support_(self) -> np.ndarray:
        """ndarray of int
        Features with a nonzero coefficient, in ascending order."""
        return np.flatnonzero(self.coef_)

    def _get_support_mask(self) -> np.ndarray:
        return self.coef_ != 0

    def _margins(self, X) -> np.ndarray:
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, accept_sparse="csr", dtype=[np.float64, np.float32])
        coef, intercept = self._current()
        return safe_sparse_dot(X, coef) + intercept


def labels_and_signs(
    y, owner: str, classes=None, advice: str = ""
) -> tuple[np.ndarray, np.ndarray]:
    """The two labels, and y as -1 and +1; `owner` is who is to be named if y is not allowed."""
    check_classification_targets(y)
    unknown = () if classes is None else np.setdiff1d(y, classes)
    classes = two_labels(y, owner, advice) if classes is None else classes
    if len(unknown):
        allowed = classes.tolist()
        raise ValueError(f"y holds labels {unknown[:5].tolist()}; allowed are {allowed}")
    return classes, np.where(y == classes[1], 1.0, -1.0)


def two_labels(y, owner: str, advice: str = "") -> np.ndarray:
    """The labels in y, which have to be two; `advice`: what to do if there is one."""
    classes = np.unique(np.asarray(y))
    if len(classes) > 2:
        raise ValueError(
            "Only binary classification is supported. The type of the target is "
            f"{type_of_target(y)}: {owner} takes 2 classes, y has {len(classes)}."
        )
    if len(classes) < 2:
        raise ValueError(f"{owner} needs 2 classes, y has 1 class: {classes.tolist()}.{advice}")
    return classes


class Classifier(ClassifierMixin):
    """Two classes, predicted by the sign of x . coef_ + intercept_."""

    def partial_fit(self, X, y, classes=None):
        """Learn from more rows; the same as having shown all rows so far in one block.

        Parameters
        ----------
        X : {ndarray, DataFrame, sparse matrix or array} of shape (n_samples, n_features)
            Observations.
        y : array-like of shape (n_samples,)
            Labels.
        classes : array-like of shape (2,), default=None
            The two labels; needed in the first call if `y` does not hold both.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If a parameter or the data are not allowed; nothing has been learned then.
        """
        known = self.classes_ if self.__sklearn_is_fitted__() else None
        if classes is not None:
            classes = two_labels(classes, type(self).__name__)
            if known is not None and not np.array_equal(classes, known):
                raise ValueError(
                    f"classes={classes.tolist()} differs from earlier calls: {known.tolist()}"
                )
        return self._partial_fit(X, y, classes=classes if known is None else known)

    def decision_function(self, X) -> np.ndarray:
        """x . coef_ + intercept_ for each row, shape (n_samples,)."""
        return self._margins(X)

    def predict(self, X) -> np.ndarray:
        """The label of each row, shape (n_samples,)."""
        positive = self._margins(X) > 0
        return self.classes_[positive.astype(int)]

    def _targets(self, y, classes=None):
        advice = " partial_fit can be told both by classes=[...]."
        self.classes_, signs = labels_and_signs(y, type(self).__name__, classes, advice)
        return signs

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags


class Regressor(RegressorMixin):
    """A number, predicted by x . coef_ + intercept_."""

    def partial_fit(self, X, y):
        """Learn from more rows; the same as having shown all rows so far in one block.

        Parameters
        ----------
        X : {ndarray, DataFrame, sparse matrix or array} of shape (n_samples, n_features)
            Observations.
        y : array-like of shape (n_samples,)
            Targets.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If a parameter or the data are not allowed; nothing has been learned then.
        """
        return self._partial_fit(X, y)

    def predict(self, X) -> np.ndarray:
        """The prediction for each row, shape (n_samples,)."""
        return self._margins(X)


@estimator
class RowStream(Stream):
    """Base of the methods that learn from rows, all features of which are known.

    A subclass sets `fold`, a kernel `fold(state, X, y, order, hyper, margins)` that shows the rows
    `order` of X to the state, writes the prediction made before each of them into `margins`, and
    returns how many it showed: it stops before a row whose prediction is not finite. A row with a
    value that is not finite must give such a prediction. It also sets `hyper`, and defines `_init`
    and `_model`.
    """

    k: int = param(10, "Number of features kept.", AT_LEAST_ONE)
    loss: str = param("squared_error", "Name of the loss.", one_of(*LOSSES))
    fit_intercept: bool = param(
        True, "Learn a constant, which is not counted among the k features.", "boolean"
    )
    n_passes: int = param(1, "Times that `fit` shows the rows.", AT_LEAST_ONE)
    shuffle: bool = param(
        True, "Whether `fit` shows them in random order, new in each pass.", "boolean"
    )
    random_state: int | None = param(
        None, "Seed or generator (as in scikit-learn) of that order.", "random_state"
    )

    fold: ClassVar[Callable]
    # NamedTuple of the hyper-parameters that `fold` reads.
    hyper: ClassVar[type]
    # The parameter that sets how large the steps are.
    pace: ClassVar[str] = "learning_rate"
    # The kernels look at each value anyway.
    looks_first: ClassVar[bool] = False

    def _init(self, n_features: int) -> NamedTuple:
        """The state before the first row."""
        raise NotImplementedError

    def _hyper(self, n_rows: int | None, **own) -> NamedTuple:
        """The hyper-parameters as the kernel reads them; `n_rows`: the stream's length if known.

        A subclass hands over as `own` what is no parameter.
        """
        return read_parameters(self, self.hyper, intercept=self.fit_intercept, **own)

    def _model(self, state: NamedTuple, hyper: NamedTuple) -> tuple[np.ndarray, float]:
        """Coefficients, at most k of them not zero, and intercept."""
        raise NotImplementedError

    def _finish(self, state: NamedTuple, hyper: NamedTuple) -> None:
        """Take in what is still held back when the stream of `fit` ends."""

    def _start(self, n_features: int) -> None:
        self._state = self._init(n_features)
        self._online = np.zeros(3)  # sums of loss, of score and of its weight
        self.n_samples_seen_ = 0

    def _learn(self, X, y) -> None:
        n, rng = X.shape[0], check_random_state(self.random_state)
        self._learned = self._hyper(n * self.n_passes)
        for _ in range(self.n_passes):
            order = rng.permutation(n) if self.shuffle else np.arange(n)
            self._show(Blocks(X, y, order))
        self._finish(self._state, self._learned)

    def _learn_more(self, X, y) -> None:
        # What stood before stays, should the rows be refused.
        self._state, self._online = copy.deepcopy((self._state, self._online))
        self._learned = self._hyper(None)
        self._show(Blocks(X, y, np.arange(X.shape[0])))

    def _show(self, data: Blocks) -> None:
        loss, hyper = int(Loss[self.loss]), self._learned
        for X, y, order in _kernel_blocks(data):
            margins = np.empty(len(order))
            done = self._fold(X, y, order, hyper, margins)
            if done < len(order):
                self._refuse(X, order[done])
            shown = y[order]
            self._online += (total(loss, margins, shown), *self._scored(margins, shown))
            self.n_samples_seen_ += len(order)

    def _fold(self, X, y, order, hyper: NamedTuple, margins) -> int:
        """Show rows to the state, as `fold` does."""
        return type(self).fold(self._state, X, y, order, hyper, margins)

    def _refuse(self, X, i: int) -> None:
        """Say why row i of X has no finite prediction."""
        values = X[i] if isinstance(X, np.ndarray) else X.data[X.indptr[i] : X.indptr[i + 1]]
        assert_all_finite(values, estimator_name=type(self).__name__, input_name="X")
        raise self._diverged()

    def _diverged(self) -> FloatingPointError:
        return FloatingPointError(
            f"{type(self).__name__} diverged after {self.n_samples_seen_} rows or soon after: its "
            f"steps are too large for these data with {self.pace}={getattr(self, self.pace)}."
        )

    @property
    def online_loss_(self) -> float:
        """float
        Mean loss of each row under the model that stood before that row was shown."""
        check_is_fitted(self)
        return self._online[0] / self.n_samples_seen_

    @property
    def online_score_(self) -> float:
        """float
        Share of rows that this model classified rightly (classifiers), or the share of the
        variance around zero that it explained (regressors)."""
        check_is_fitted(self)
        return self._online[1] / self._online[2]

    def _current(self) -> tuple[np.ndarray, float]:
        return self._model(self._state, self._learned)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_state")


@estimator
class Penalised(RowStream):
    """Base of the methods that select features by an l1 penalty.

    With `k`, a grid of penalties is learned in one pass, and the model is that with the most
    features, but not more than `k`. `fold` is then not called: a subclass sets `step_all`, a kernel
    `step_all(state, hyper)` that makes a step for all penalties with the rows that `hold` put into
    the mini-batch, and returns whether all is finite.
    """

    k: int | None = param(
        None,
        "Number of features to keep. It takes the place of `l1`: `n_penalties` penalties are "
        "learned at once, and the model with the most features, but not more than k, is shown.",
        AT_LEAST_ONE,
        None,
    )
    l1: float = param(1e-3, "Weight of the penalty |w|, if k is None.", NOT_NEGATIVE)
    n_penalties: int = param(200, "Number of penalties that are learned at once.", AT_LEAST_ONE)
    l1_range: tuple[float, float] | None = param(
        None,
        "Least and largest of these penalties, which are evenly spaced in the logarithm. None: "
        "from 1/1000 of the largest gradient of the first mini-batch to this gradient.",
        tuple,
        list,
        None,
    )

    step_all: ClassVar[Callable]
    frozen = ("k", "l1", "n_penalties", "l1_range")

    @property
    def path_(self) -> tuple[np.ndarray, np.ndarray]:
        """tuple of ndarray
        The penalties, shape (n_penalties,), and the coefficients of their models, shape
        (n_penalties, n_features_in_); learned if `k` is given."""
        check_is_fitted(self)
        if self._frozen["k"] is None:
            raise AttributeError("path_ is learned only if k is given")
        return self._path(self._state).l1.copy(), self._columns(self._state)[:-1].T.copy()

    def _show(self, data: Blocks) -> None:
        if self._path(self._state) is None:
            super()._show(data)
            return
        with one_blas_thread():
            super()._show(data)

    def _fold(self, X, y, order, hyper, margins):
        path, done = self._path(self._state), 0
        if path is None:
            return super()._fold(X, y, order, hyper, margins)
        while done < len(order):
            done = hold(path, X, y, order, done, hyper.intercept, margins)
            if path.count[0] < len(path.rows):
                break
            if not type(self).step_all(self._state, hyper):
                return done - 1
        return done

    def _new_path(self, n_features: int) -> Path:
        bounds = self.l1_range
        if bounds is not None and (len(bounds) != 2 or not 0 < bounds[0] <= bounds[1] < np.inf):
            raise ValueError(f"l1_range={bounds} must be two positive numbers, the lesser first.")
        rows = int(getattr(self, "batch_size", 1))
        return new_path(n_features, rows, int(self.n_penalties), bounds)

    def _path(self, state: NamedTuple) -> Path | None:
        """The part of the state that holds the models of all penalties, if these are learned."""
        return state if isinstance(state, Path) else getattr(state, "path", None)

    def _columns(self, state: NamedTuple) -> np.ndarray:
        """Coefficients and intercept of all penalties, shape (p + 1, n_penalties)."""
        return self._path(state).W

    def _one(self, state: NamedTuple, hyper: NamedTuple) -> np.ndarray:
        """Coefficients and intercept of the model of one penalty, shape (p + 1,)."""
        raise NotImplementedError

    def _model(self, state, hyper):
        path = self._path(state)
        w = self._one(state, hyper) if path is None else path.w
        return w[:-1].copy(), float(w[-1])


@estimator
class PenalisedBatches(Penalised):
    """Base of those that learn in mini-batches.

    A subclass sets the kernel `step`, which does for one penalty what `step_all` does for all.
    """

    about = (
        "Cost: O(entries of the row) per row with one penalty; O(p * n_penalties) per row with `k`."
    )

    batch_size: int = param(25, "Rows of a mini-batch.", AT_LEAST_ONE)

    step: ClassVar[Callable]
    frozen = (*Penalised.frozen, "batch_size")

    def _finish(self, state, hyper):
        path = self._path(state)
        held = state.batch.count[1] if path is None else path.count[0]
        step = type(self).step if path is None else type(self).step_all
        with one_blas_thread():
            if held and not step(state, hyper):
                raise self._diverged()


class RowClassifier(Classifier, RowStream):
    """Two classes, learned from rows."""

    def _scored(self, margins, y):
        return np.count_nonzero((margins > 0) == (y > 0)), len(y)


class RowRegressor(Regressor, RowStream):
    """A number, learned from rows."""

    def _scored(self, margins, y):
        weight = np.square(y).sum()
        return weight - np.square(margins - y).sum(), weight

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        # One pass over the few hundred rows of scikit-learn's checks is no time to converge.
        tags.regressor_tags.poor_score = True
        return tags


@estimator
class AverageStream(Stream):
    """Base of the methods that learn from running averages: dissertation, chapter 3.

    Rows only update the averages; the model is extracted when it is first asked for. A subclass
    defines `_coefs`.
    """

    fit_intercept: bool = param(
        True, "Centre the averages; else the model has no constant.", "boolean"
    )
    adaptation: float | None = param(
        None,
        "Least weight alpha_n of a new row in the averages, by which old rows are forgotten "
        "(3.11). None: all rows have the same weight.",
        number(Real, 0, 1, closed="neither"),
        None,
    )
    dtype: str = param(
        "float64", "Precision in which the second moments are kept.", one_of("float32", "float64")
    )
    ridge: float = param(
        1e-5,
        "Added to the diagonal of the standardised second moments wherever least squares has no "
        "unique solution, as with too few rows.",
        POSITIVE,
    )

    frozen = ("dtype",)

    def _coefs(self, standard: Standardized, ks: Sequence[int]) -> np.ndarray:
        """Coefficients of the standardised features for each k, shape (len(ks), p)."""
        raise NotImplementedError

    def _extract(self, averages: RunningAverages) -> tuple[np.ndarray, float]:
        """Coefficients and intercept in the units of the rows."""
        standard = averages.standardized(centre=self.fit_intercept)
        coef = self._chosen(standard, averages.weight) / standard.scale
        if not self.fit_intercept:
            return coef, 0.0
        return coef, float(averages.mean_y - averages.mean_x @ coef)

    def _chosen(self, standard: Standardized, weight: float) -> np.ndarray:
        """The model's coefficients of the standardised features."""
        return self._coefs(standard, [len(standard.scale)])[0]

    def _refit(self, standard: Standardized, support) -> np.ndarray:
        """Least squares on some features: (3.6)."""
        coef = np.zeros(len(standard.scale))
        if len(support) == 0:
            return coef
        S, b = standard.S_xx, standard.S_xy[support]
        if len(support) < len(coef):
            S = S[np.ix_(support, support)]
        coef[support] = least_squares(S, b, standard.n - self.fit_intercept, self.ridge)
        return coef

    def fit_averages(self, averages: RunningAverages, copy: bool = True):
        """Learn from averages instead of rows.

        Parameters
        ----------
        averages : RunningAverages
            For a classifier y is -1 or +1, which are then `classes_`.
        copy : bool, default=True
            Learn from a copy. If False, later rows of either are rows of both.

        Returns
        -------
        self

        Raises
        ------
        TypeError
            If these are no running averages.
        ValueError
            If a parameter is not allowed, or the averages do not suit the parameters.
        """
        self._validate_params()
        with self._unless_it_fails():
            self._accept(averages)
            self.n_features_in_ = len(averages.mean_x)
            self.__dict__.pop("feature_names_in_", None)
            if isinstance(self, ClassifierMixin):
                self.classes_ = np.array([-1, 1])
            self._begin(self.n_features_in_)
            self._averages = averages.copy() if copy else averages
            self._updated()
        return self

    def path(self, averages: RunningAverages, ks: Sequence[int]) -> np.ndarray:
        """The models of several sizes from the same averages; the estimator stays as it is.

        Parameters
        ----------
        averages : RunningAverages
            As for `fit_averages`; not copied.
        ks : sequence of int
            Numbers of features, from 1 to n_features; each takes the place of the parameter k.

        Returns
        -------
        ndarray of shape (len(ks), n_features)
            Coefficients in the units of the rows. With an intercept that of the model `coef` is
            `averages.standardized().intercept(coef)`.

        Raises
        ------
        TypeError
            If these are no running averages.
        ValueError
            If a parameter or one of the ks is not allowed.
        """
        self._validate_params()
        self._accept(averages)
        p, ks = len(averages.mean_x), list(ks)
        if not ks or not all(isinstance(k, Integral) and 1 <= k <= p for k in ks):
            raise ValueError(f"ks={ks} must be whole numbers from 1 to n_features={p}")
        standard = averages.standardized(centre=self.fit_intercept)
        return self._coefs(standard, [int(k) for k in ks]) / standard.scale

    def _accept(self, averages: RunningAverages) -> None:
        if not isinstance(averages, RunningAverages):
            raise TypeError(f"averages must be RunningAverages, not {type(averages).__name__}")
        if isinstance(self, ClassifierMixin) and abs(averages.S_yy - 1.0) > 1e-3:
            raise ValueError(
                f"averages have S_yy={averages.S_yy}; for a classifier y must be -1 or +1, S_yy 1"
            )

    def _start(self, n_features):
        self._averages = RunningAverages(n_features, dtype=np.dtype(self.dtype))

    def _learn(self, X, y):
        self._averages.adapt(self.adaptation)
        self._averages.update(X, y)
        self._updated()

    _learn_more = _learn

    def _updated(self) -> None:
        """Note what the next model is to be made with; a later change of a parameter waits."""
        self._asked = self.get_params()
        self._extracted = []
        self.n_samples_seen_ = self._averages.n

    def _current(self):
        # In a list, so that a prediction leaves the attributes of the estimator as they are.
        if not self._extracted:
            self._extracted.append(type(self)(**self._asked)._extract(self._averages))
        coef, intercept = self._extracted[0]
        return coef.copy(), intercept

    @property
    def averages_(self) -> RunningAverages:
        """RunningAverages
        The averages of the rows so far; to be read, not to be updated."""
        check_is_fitted(self)
        return self._averages

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_averages")


@estimator
class AverageSelector(AverageStream):
    """Base of those that keep k features, or as many as a criterion says.

    With weight n of the averages (the number of rows, unless old rows are forgotten), m features
    and the residual sum of squares RSS of a Gaussian model, AIC is n log(RSS / n) + 2 m and BIC is
    n log(RSS / n) + m log n.
    """

    k: int | str = param(
        10,
        "Number of features kept, or the criterion by which it is chosen from 1, ..., max_k.",
        AT_LEAST_ONE,
        one_of("aic", "bic"),
    )
    max_k: int = param(
        100,
        "Largest number of features that a criterion may choose; it stays below the number of "
        "rows in any case.",
        AT_LEAST_ONE,
    )

    def _chosen(self, standard, weight):
        p = len(standard.scale)
        if not isinstance(self.k, str):
            return self._coefs(standard, [min(int(self.k), p)])[0]
        most = max(1, min(int(self.max_k), p, standard.n - 1 - self.fit_intercept))
        coefs = self._coefs(standard, range(1, most + 1))
        values = [self._criterion(standard, weight, coef) for coef in coefs]
        return coefs[int(np.argmin(values))]

    def _criterion(self, standard: Standardized, weight: float, coef: np.ndarray) -> float:
        support = np.flatnonzero(coef)
        w, S = coef[support], standard.S_xx[np.ix_(support, support)]
        variance = standard.S_yy - 2 * w @ standard.S_xy[support] + w @ S @ w
        # What rounding leaves of a perfect fit has no logarithm.
        least = np.finfo(standard.S_xx.dtype).eps * standard.S_yy
        price = 2.0 if self.k == "aic" else np.log(weight)
        return weight * np.log(max(variance, least, np.finfo(float).tiny)) + price * len(support)


class AverageClassifier(Classifier, AverageStream):
    """Two classes, by least squares on -1 and +1: dissertation, 3.2.6."""


class AverageRegressor(Regressor, AverageStream):
    """A number, by least squares."""
