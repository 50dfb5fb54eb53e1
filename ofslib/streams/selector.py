"""What all selectors of features share, as scikit-learn estimators."""

import contextlib
import copy
import sys
import warnings
from functools import cache
from numbers import Integral
from typing import ClassVar

import numpy as np
from sklearn.base import is_classifier
from sklearn.utils.extmath import safe_sparse_dot
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import check_is_fitted, validate_data
from threadpoolctl import ThreadpoolController

from ofslib._model_files import Saved, refuse_unlike
from ofslib._sparse import checked
from ofslib.kernels.rows import ascend
from ofslib.streams.bases import BaseEstimator, ClassifierMixin, RegressorMixin, SelectorMixin


@cache
def _blas() -> ThreadpoolController:
    """The loaded libraries, numpy's and scipy's among them; to find them takes 2 ms."""
    return ThreadpoolController().select(user_api="blas")


def one_blas_thread() -> contextlib.AbstractContextManager:
    """While it lasts, BLAS uses one thread: how it rounds may depend on the number of threads."""
    return _blas().limit(limits=1)


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn; charged to the line of the first caller outside of ofslib."""
    frame, level = sys._getframe(1), 2
    while frame.f_back and frame.f_globals.get("__name__", "").startswith(_INNER):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


_INNER = (__name__.partition(".")[0] + ".", "contextlib")


# What is compared, after reading a file, with an object that has just begun to learn.
_CHECKED = {"_state", "_online", "_warned", "n_samples_seen_"}


class Selector(Saved, SelectorMixin, BaseEstimator):
    """What all selectors of features share: parameters, and data that are checked on the way in.

    A family defines `_start` and `_learn`, what it selects, and whether it needs targets.
    """

    # What the docstring says after its first line.
    about: ClassVar[str] = ""
    # Parameters that the state was made for, beside those of the bases: they cannot change while
    # it learns.
    frozen: ClassVar[tuple[str, ...]] = ()
    # Whether X is searched for values that are not finite before it is learned from.
    ensure_all_finite: ClassVar[bool] = True
    # How sparse X is read.
    sparse_form: ClassVar[str] = "csr"
    # Whether it learns from targets; else they are not read.
    supervised: ClassVar[bool] = True

    def _start(self, n_features: int) -> None:
        """Forget all data."""

    def _learn(self, X, y) -> None:
        """Take in the data of `fit`."""
        raise NotImplementedError

    def _targets(self, y, **known) -> np.ndarray:
        """Targets as they are learned from: numbers, or -1 and +1."""
        y = np.require(y, np.float64, "CW")
        if np.isnan(y).any():  # None, until now
            raise ValueError(f"y contains no number in row {np.flatnonzero(np.isnan(y))[0]}")
        return y

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
            warn(f"k={k} is greater than n_features={n_features}: all features are kept.")
        self._begin_anew(n_features)

    def _begin_anew(self, n_features: int) -> None:
        kinds = [vars(kind).get("frozen", ()) for kind in type(self).__mro__]
        self._frozen = {name: getattr(self, name) for names in kinds for name in names}
        self._start(n_features)

    def _refuse_changes(self) -> None:
        for name, old in self._frozen.items():
            if getattr(self, name) != old:
                raise ValueError(
                    f"{name}={getattr(self, name)!r} differs from {name}={old!r}, with which "
                    "learning began: set it back, or begin anew by fit."
                )

    def _restore(self, parts):
        own, p = type(self)().get_params(deep=False), parts.get("n_features_in_", 0)
        super()._restore(parts | {name: own[name] for name in own if name not in parts})
        self._validate_params()
        names = parts.get("feature_names_in_")
        if type(p) is not int or p < 0 or (names is not None and np.shape(names) != (p,)):
            raise ValueError(f"it has {p} features, and names of the shape {np.shape(names)}")
        if is_classifier(self) and "classes_" in parts and np.shape(self.classes_) != (2,):
            raise ValueError(f"it has the classes {self.classes_}")
        if "_state" not in parts:
            return
        learned, frozen = (parts.get(name, {}) for name in ("_learned_with", "_frozen"))
        refuse_unlike((learned, frozen), ({}, {}), p, "what it learned with")
        learned = self.get_params(deep=False) | learned | frozen
        if unknown := [name for name in learned if name not in own]:
            raise ValueError(f"it has parameters that are not known: {', '.join(unknown)}")
        # A copy, as a random generator may be used.
        fresh = type(self)(**copy.deepcopy(learned))
        fresh._validate_params()
        fresh._begin_like(parts)
        for name in _CHECKED & vars(fresh).keys():
            refuse_unlike(parts.get(name), vars(fresh)[name], p, name)
        self._frozen = fresh._frozen
        if "_learned_with" in parts:
            self._learned_with |= learned
        if hasattr(fresh, "_hyper"):
            self._hyper = fresh._hyper

    def _parts(self):
        self._validate_params()
        return super()._parts()

    def _begin_like(self, parts: dict) -> None:
        """Begin anew with as much data as an object of these parts, which come from a file.

        ValueError if these cannot be what was learned.
        """
        raise NotImplementedError

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
            "ensure_all_finite": self.ensure_all_finite,
        }
        refuse_times(X=X, y=y)
        if not self.supervised:
            return validate_data(self, checked(X, ascend), **form), None
        X, y = validate_data(self, checked(X, ascend), y, y_numeric=not is_classifier(self), **form)
        return X, self._targets(y, **known)

    def transform(self, X):
        """The selected columns of X, shape (n_samples, number of selected features)."""
        return super().transform(checked(X))

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.required = self.supervised
        return tags


class LinearModel(Selector):
    """What the streams share that learn a linear model.

    A family also defines `_learn_more`, `_model` and `__sklearn_is_fitted__`; its `_state` is what
    has been learned.
    """

    # Rows that `partial_fit` will show in all passes, where that is known.
    _n_rows_in_all: int | None = None

    def _learn_more(self, X, y) -> None:
        """Take in the rows of `partial_fit`."""
        raise NotImplementedError

    def _end(self) -> None:
        """Take in what is still held back when the stream ends."""

    def _model(self, state) -> tuple[np.ndarray, float]:
        """Coefficients, shape (p,), and intercept of a state; the caller's own."""
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
        return self._model(self._state)[0]

    @property
    def intercept_(self) -> float:
        """float
        The model's constant; 0.0 without `fit_intercept`."""
        check_is_fitted(self)
        return self._model(self._state)[1]

    @property
    def support_(self) -> np.ndarray:
        """ndarray of int
        Features with a nonzero coefficient, in ascending order."""
        return np.flatnonzero(self.coef_)

    def _get_support_mask(self) -> np.ndarray:
        return self.coef_ != 0

    def _margins(self, X) -> np.ndarray:
        check_is_fitted(self)
        X = checked(X)
        X = validate_data(self, X, reset=False, accept_sparse="csr", dtype=[np.float64, np.float32])
        coef, intercept = self._model(self._state)
        return safe_sparse_dot(X, coef) + intercept


def refuse_times(**given) -> None:
    """ValueError for dates and durations: as numbers they depend on the unit they are kept in."""
    for name, values in given.items():
        types = getattr(values, "dtypes", getattr(values, "dtype", None))
        if any(getattr(kind, "kind", "") in ("m", "M") for kind in np.atleast_1d(types)):
            raise ValueError(f"{name} holds dates or durations: give numbers, in a unit you choose")


def labels_and_signs(y, owner: str, classes=None, advice="") -> tuple[np.ndarray, np.ndarray]:
    """The two labels, and y as -1 and +1; `owner` is who is to be named if y is not allowed."""
    try:
        check_classification_targets(y)
        unknown = [] if classes is None else np.setdiff1d(y, classes)[:5].tolist()
    except TypeError as error:
        raise ValueError(f"y holds labels of several kinds: {error}") from None
    if classes is None:
        classes = two_labels(y, owner, advice)
    elif unknown:
        raise ValueError(f"y holds labels {unknown}; allowed are {classes.tolist()}")
    return classes, np.where(y == classes[1], 1.0, -1.0)


def two_labels(y, owner: str, advice: str = "", name: str = "y") -> np.ndarray:
    """The labels in y, which have to be two; `advice`: what to do if there is one."""
    try:
        classes = np.unique(np.asarray(y))
    except TypeError as error:
        raise ValueError(f"{name} holds labels of several kinds: {error}") from None
    if (classes != classes).any():
        raise ValueError(f"{name} contains NaN: {classes.tolist()}")
    if len(classes) > 2:
        raise ValueError(
            "Only binary classification is supported. The type of the target is "
            f"{type_of_target(y)}: {owner} takes 2 classes, {name} has {len(classes)}."
        )
    if len(classes) < 2:
        raise ValueError(
            f"{owner} needs 2 classes, {name} has 1 class: {classes.tolist()}.{advice}"
        )
    return classes


class Classifier(ClassifierMixin):
    """Two classes, predicted by the sign of x . coef_ + intercept_."""

    def partial_fit(self, X, y, classes=None):
        """Learn from more rows; the same as having shown all rows so far in one block.

        If it raises an error, nothing has been learned.

        Parameters
        ----------
        X, y
            Observations and labels, as for `fit`.
        classes : array-like of shape (2,), default=None
            The two labels; needed in the first call if `y` does not hold both.
        """
        owner = type(self).__name__
        given = None if classes is None else two_labels(classes, owner, name="classes")
        known = self.classes_ if self.__sklearn_is_fitted__() else given
        if given is not None and not np.array_equal(given, known):
            message = f"classes={given.tolist()} differs from earlier calls: {known.tolist()}"
            raise ValueError(message)
        return self._partial_fit(X, y, classes=known)

    def decision_function(self, X) -> np.ndarray:
        """x . coef_ + intercept_ for each row, shape (n_samples,)."""
        return self._margins(X)

    def predict(self, X) -> np.ndarray:
        """The label of each row, shape (n_samples,)."""
        # Before the labels are looked up: it says so if nothing has been learned.
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

        X and y are as for `fit`. If it raises an error, nothing has been learned.
        """
        return self._partial_fit(X, y)

    def predict(self, X) -> np.ndarray:
        """The prediction for each row, shape (n_samples,)."""
        return self._margins(X)


class DeferredModel(LinearModel):
    """Base of the families that compute the model when it is first asked for.

    It is made with the parameters that held when the estimator last learned; a family calls
    `_defer` then and defines `_compute`.
    """

    def _compute(self, state) -> tuple[np.ndarray, float]:
        """Coefficients and intercept of the model of a state."""
        raise NotImplementedError

    def _defer(self) -> None:
        self._learned_with, self._computed = self.get_params(), []

    def _as_learned(self):
        """The estimator with the parameters with which it last learned."""
        return copy.copy(self).set_params(**self._learned_with)

    def _model(self, state):
        # In a list, so that a prediction leaves the attributes of the estimator as they are.
        if not self._computed:
            self._computed.append(self._as_learned()._compute(state))
        coef, intercept = self._computed[0]
        return coef.copy(), intercept
