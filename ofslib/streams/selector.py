"""What all selectors of features share, as scikit-learn estimators."""

import contextlib
import copy
import sys
import warnings
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from scipy.special import log_expit, logsumexp
from sklearn.base import is_classifier
from sklearn.utils.extmath import safe_sparse_dot
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import check_is_fitted

from ofslib import _model_files
from ofslib._model_files import longest
from ofslib._sparse import checked, checked_targets, checked_weights, refuse_misread, validated
from ofslib.kernels.losses import WEIGHTED
from ofslib.kernels.rows import ascend
from ofslib.streams.bases import (
    BaseEstimator,
    ClassifierMixin,
    RegressorMixin,
    SelectorMixin,
)
from ofslib.streams.parameters import estimator, one_of, param
from ofslib.streams.restored import Kept, model_alone, parts_of, restore, restore_model


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn; charged to the line of the first caller outside of ofslib."""
    frame, level = sys._getframe(1), 2
    while frame.f_back and frame.f_globals.get("__name__", "").startswith(_INNER):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


_INNER = (__name__.partition(".")[0] + ".", "contextlib")


# Numbers in y that are more likely amounts than labels, if there are more of them.
MANY = 100


class Selector(SelectorMixin, BaseEstimator):
    """What all selectors of features share: parameters, and data that are checked on the way in.

    A family defines `_start` and `_learn`, what it selects, and whether it needs targets.
    """

    # What the docstring says after its first line.
    description: ClassVar[str] = ""
    # How its example ends, which begins with rows X, y of a `design` (parameters.py).
    example: ClassVar[str] = """
        >>> {name}(k=3).fit(X, y).support_
        array([ 9, 19, 29])
    """
    # Keys of CITATION.bib, with commas: what to cite for the method; empty if no paper has it.
    sources: ClassVar[str]
    # Parameters that the state was made for, beside those of the bases: they cannot change while
    # it learns.
    frozen: ClassVar[tuple[str, ...]] = ()
    # Whether X is searched for values that are not finite before it is learned from.
    ensure_all_finite: ClassVar[bool] = True
    # How sparse X is read.
    sparse_form: ClassVar[str] = "csr"
    # Whether it learns from targets; else they are not read.
    supervised: ClassVar[bool] = True

    # How a text that it learned from has its columns (`Stream.numbering`), if who read it said so.
    _numbering: str | None = None
    # What a first look learned of the raw columns of its stream (`Stream.encoding`).
    _encoding: Any = None

    save = _model_files.save

    @classmethod
    def load(cls, path) -> Self:
        """Read what `save` of this class wrote; nothing in the file is unpickled or run.

        OSError if the file cannot be opened. ValueError if it is not whole, if a bit of it has
        changed, or if it holds another class or is of a newer version. Parameters that it lacks,
        as it is of an older version, have their defaults. If another version of ofslib wrote it,
        and kept there what it learned in another way, the model predicts, and raises ValueError
        when it is to go on learning.
        """
        return _model_files.read(cls, path)

    def _start(self, n_features: int) -> None:
        """Forget all data."""

    def _learn(self, X, y) -> None:
        """Take in the data of `fit`."""
        raise NotImplementedError

    def _targets(self, y, **known) -> np.ndarray:
        """Targets as they are learned from: numbers, or -1 and +1."""
        return checked_targets(y)

    def fit(self, X, y=None):
        """Learn from X, and from nothing that was shown before.

        Parameters
        ----------
        X : {ndarray, DataFrame, sparse matrix or array} of shape (n_samples, n_features)
            Observations.
        y : array-like of shape (n_samples,)
            Targets: numbers, or labels. Not read by a method that needs none.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If a parameter or the data are not allowed; the message names it and says what is.
        """
        return self._fit(X, y)

    def _fit(self, X, y, sample_weight=None):
        self._validate_params()
        with self._unless_it_fails():
            X, y = self._read(X, y, reset=True)
            X, y = self._weigh(X, y, sample_weight, first=True)
            self._begin(X.shape[1])
            self._learn(X, y)
        return self

    def _weigh(self, X, y, sample_weight, first: bool):
        """The rows whose weight is not 0, and their targets with the weights, if there are any."""
        return X, y

    def _begin(self, n_features: int, warns: bool = True) -> None:
        """Begin to learn from data of so many features."""
        k = getattr(self, "k", None)
        if warns and isinstance(k, Integral) and k > n_features:
            warn(f"k={k} is greater than n_features={n_features}: at most these can be kept.")
        bases = type(self).__mro__
        self._frozen = {n: getattr(self, n) for base in bases for n in vars(base).get("frozen", ())}
        for name in ("_numbering", "_encoding", "held_out_"):  # of data that are forgotten now
            vars(self).pop(name, None)
        self._start(n_features)

    def _refuse_changes(self) -> None:
        if isinstance(self._state, Kept):
            raise ValueError(
                f"this {type(self).__name__} was read from a file to predict, and does not go on "
                f"learning: {self._state.reason}. Begin anew by fit."
            )
        for name, old in self._frozen.items():
            if getattr(self, name) != old:
                raise ValueError(
                    f"{name}={getattr(self, name)!r} differs from {name}={old!r}, with which "
                    "learning began: set it back, or begin anew by fit."
                )

    _parts, _model_alone, _restore, _restore_model = parts_of, model_alone, restore, restore_model

    def _begin_like(self, parts: dict) -> None:
        """Begin anew with as much data as an object of these parts, which come from a file.

        ValueError if these cannot be what was learned.
        """
        p, state = parts.get("n_features_in_", 0), parts["_state"]
        if not 1 <= p <= longest(state):  # before memory is taken for them
            raise ValueError(f"its arrays are not those of {p} features")
        self.n_features_in_ = p
        self._begin(p, warns=False)

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
        refuse_misread(X=X, y=y)
        form = self._form() | {"ascend": ascend, "reset": reset}
        if not self.supervised:
            return validated(self, X, **form), None
        X, y = validated(self, X, y, **form)
        return X, self._targets(y, **known)

    def _form(self) -> dict[str, Any]:
        """How X is read, as scikit-learn's checks ask for it."""
        return {
            "accept_sparse": self.sparse_form,
            "dtype": [np.float64, np.float32],
            "ensure_all_finite": self.ensure_all_finite,
        }

    def _get_support_mask(self) -> np.ndarray:
        check_is_fitted(self)
        return np.isin(np.arange(self.n_features_in_), self.support_)

    def transform(self, X):
        """The selected columns of X, shape (n_samples, number of selected features)."""
        refuse_misread(X=X)
        return super().transform(checked(X))

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.required = self.supervised
        return tags


class LinearModel(Selector):
    """What the streams share that learn a linear model.

    A family also defines `_learn_more`, `_compute` and `__sklearn_is_fitted__`; its `_state` is
    what has been learned: with more than two classes a tuple, the state of each class against the
    others, unless these share one from which `_compute` gives what belongs to each.

    The model is computed when it is first asked for, with the parameters that held when `_defer`
    was last called. A family that has the model at hand defines `_model`, and is not `deferred`.
    """

    deferred: ClassVar[bool] = True
    # Whether several models keep the same features; then `_joint_models` gives them.
    _joint = False

    # Rows that `partial_fit` will show in all passes, where that is known.
    _n_rows_in_all: int | None = None

    def _restore_model(self, parts, model, reason):
        super()._restore_model(parts, model, reason)
        coef, intercept = self._checked(model)
        self._state = self._state._replace(coef=coef, intercept=intercept)

    def _checked(self, model: dict[str, Any]) -> tuple[np.ndarray, float | np.ndarray]:
        """Coefficients and intercept of a file; ValueError if they are not of so many features."""
        coef, intercept = model["coef_"], model["intercept_"]
        models = () if self._n_models == 1 else (self._n_models,)
        constant = np.shape(intercept) == models if models else isinstance(intercept, float)
        if (coef.dtype, coef.shape) != (np.float64, (*models, self.n_features_in_)) or not constant:
            raise ValueError(f"its coefficients are not those of {self.n_features_in_} features")
        return coef, intercept

    def _restore(self, parts, model=None):
        super()._restore(parts, model)
        if self.deferred:
            self._computed = [self._checked(model)] if model else []

    def _learn_more(self, X, y) -> None:
        """Take in the rows of `partial_fit`."""
        raise NotImplementedError

    def _end(self) -> None:
        """Take in what is still held back when the stream ends."""

    def _compute(self, state) -> tuple[np.ndarray, float]:
        """Coefficients, shape (p,), and intercept of the model of a state."""
        raise NotImplementedError

    def _defer(self) -> None:
        self._learned_with, self._computed = self.get_params(), []

    def _as_learned(self):
        """The estimator with the parameters with which it last learned."""
        return copy.copy(self).set_params(**self._learned_with)

    def _model(self, state) -> tuple[np.ndarray, float]:
        """Coefficients, shape (p,), and intercept of a state; the caller's own."""
        # In a list, so that a prediction leaves the attributes of the estimator as they are.
        if not self._computed:
            self._computed.append(self._as_learned()._compute(state))
        return copy.deepcopy(self._computed[0])

    def _may_have_changed(self) -> bool:
        """Whether a parameter is perhaps not the one with which it last learned."""
        return True

    def fit(self, X, y, sample_weight=None):
        """Learn from X, and from nothing that was shown before.

        Parameters
        ----------
        X : {ndarray, DataFrame, sparse matrix or array} of shape (n_samples, n_features)
            Observations.
        y : array-like of shape (n_samples,)
            Targets: numbers, or labels.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows, 0 or more: each multiplies the row's loss. 1 each if None; a row
            of weight 0 counts as not shown.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If a parameter or the data are not allowed; the message names it and says what is.
        """
        return self._fit(X, y, sample_weight)

    def _partial_fit(self, X, y, sample_weight=None, **known):
        first = not self.__sklearn_is_fitted__()
        if first or self._may_have_changed():  # to look takes as long as thousands of values
            self._validate_params()
        with self._unless_it_fails():
            X, y = self._read(X, y, reset=first, **known)
            X, y = self._weigh(X, y, sample_weight, first)
            if first:
                self._begin(X.shape[1])
            self._refuse_changes()
            if X.shape[0]:  # unless all weights are 0
                vars(self).pop("held_out_", None)  # of the model as it was
                self._learn_more(X, y)
        return self

    def _weigh(self, X, y, sample_weight, first):
        weight = None if sample_weight is None else checked_weights(sample_weight, X.shape[0])
        if getattr(self, "class_weight", None) is not None:
            weight = weights_of_labels(self, y, weight)
        if weight is None:
            return X, y
        used = weight > 0
        if first and not used.any():
            raise ValueError("sample_weight, times class_weight, is zero for all rows")
        if not used.all():
            X, y, weight = X[used], y[used], weight[used]
        return X, weighted(y, weight)

    @property
    def _n_models(self) -> int:
        """Models that are learned from the same rows: one, or one for each of three or more
        classes, which tells it from all others."""
        classes = len(getattr(self, "classes_", ()))
        return classes if classes > 2 else 1

    def _models(self) -> tuple[np.ndarray, float | np.ndarray]:
        """Coefficients and intercept; of several models one row and one number each."""
        check_is_fitted(self)
        if isinstance(self._state, Kept):
            return np.array(self._state.coef), copy.copy(self._state.intercept)
        if self._joint:
            return self._joint_models()
        if type(self._state) is not tuple:
            return self._model(self._state)
        coefs, intercepts = zip(*map(self._model, self._state), strict=True)
        return np.array(coefs), np.array(intercepts)

    @property
    def coef_(self) -> np.ndarray:
        """ndarray of shape (n_features,)
        Coefficients of the model as it stands; if there is a `k`, at most k are not zero. With
        more than two classes a row of these for each class, shape (n_classes, n_features)."""
        return self._models()[0]

    @property
    def intercept_(self) -> float | np.ndarray:
        """float
        The model's constant; 0.0 without `fit_intercept`. With more than two classes one for each,
        shape (n_classes,)."""
        return self._models()[1]

    @property
    def support_(self) -> np.ndarray:
        """ndarray of int
        Features with a nonzero coefficient, of any class, in ascending order."""
        return np.flatnonzero(self._get_support_mask())

    def _get_support_mask(self) -> np.ndarray:
        return np.atleast_2d(self.coef_ != 0).any(axis=0)

    def _margins(self, X) -> np.ndarray:
        check_is_fitted(self)
        X = validated(self, X, reset=False, accept_sparse="csr", dtype=[np.float64, np.float32])
        coef, intercept = self._models()
        return safe_sparse_dot(X, coef.T) + intercept

    @available_if(is_classifier)
    def decision_function(self, X) -> np.ndarray:
        """x . coef_ + intercept_ for each row, shape (n_samples,), or (n_samples, n_classes)."""
        return self._margins(X)

    def predict(self, X) -> np.ndarray:
        """The prediction or the label of each row, shape (n_samples,)."""
        # Before the labels are looked up: it says so if nothing has been learned.
        margins = self._margins(X)
        if not hasattr(self, "classes_"):
            return margins
        places = (margins > 0).astype(int) if margins.ndim == 1 else margins.argmax(axis=1)
        return self.classes_[places]


def labels_and_signs(self, y, classes=None, several: bool = True) -> np.ndarray:
    """y as -1 and +1, or, of more than two labels, as their places; sets `classes_`.

    `classes` are the labels, if they are known; `several` says whether there may be more than two.
    """
    # All that is checked is true of numbers that are labels; it takes as long as a thousand values.
    if classes is None or not _are_numbers(y, classes) or not np.isin(y, classes).all():
        try:
            check_classification_targets(y)
            unknown = [] if classes is None else np.setdiff1d(y, classes)[:5].tolist()
        except TypeError as error:
            raise ValueError(f"y holds labels of several kinds: {error}") from None
        if classes is None:
            advice = " partial_fit can be told all by classes=[...]." if several else ""
            classes = labels_in(y, type(self).__name__, advice, several)
        elif unknown:
            raise ValueError(f"y holds labels {unknown}; allowed are {classes.tolist()}")
    self.classes_ = classes
    if len(classes) > 2:
        return np.searchsorted(classes, y).astype(np.float64)
    return np.where(y == classes[1], 1.0, -1.0)


def _are_numbers(*arrays) -> bool:
    return all(getattr(each, "dtype", np.dtype(object)).kind in "biuf" for each in arrays)


def labels_in(
    y, owner: str, advice: str = "", several: bool = False, name: str = "y"
) -> np.ndarray:
    """The labels in y, two or, if allowed, several; `advice`: what to do if there is one."""
    try:
        classes = np.unique(np.asarray(y))
    except TypeError as error:
        raise ValueError(f"{name} holds labels of several kinds: {error}") from None
    if (classes != classes).any():
        raise ValueError(f"{name} contains NaN: {classes.tolist()}")
    if len(classes) > 2 and not several:
        raise ValueError(
            "Only binary classification is supported. The type of the target is "
            f"{type_of_target(y)}: {owner} takes 2 classes, {name} has {len(classes)}."
        )
    if len(classes) < 2:
        raise ValueError(
            f"{owner} needs 2 classes, {name} has 1 class: {classes.tolist()}.{advice}"
        )
    if len(classes) > MANY and classes.dtype.kind in "iuf":
        warn(
            f"{name} holds {len(classes):,} different numbers, each of which {owner} learns as a "
            "label; if they are amounts, take regression"
        )
    return classes


def one_vs_rest(y: np.ndarray, n_models: int) -> np.ndarray:
    """A row of targets for each model: y itself, or of each label +1, and -1 of all others."""
    if n_models == 1:
        return y[None]
    places, weight = target_and_weight(y)
    signs = np.empty((n_models, len(y)), y.dtype)
    target, own = target_and_weight(signs)
    for c in range(n_models):  # one by one, as all at once would take half as much memory again
        target[c] = np.where(places == c, 1.0, -1.0)
    if own is not None:
        own[...] = weight
    return signs


def weighted(target: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
    """Targets with their weights as kernels read them."""
    if weight is None:
        return target
    y = np.empty(target.shape, WEIGHTED)
    y["target"], y["weight"] = target, weight
    return y


def target_and_weight(y: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
    """What `weighted` put together."""
    return (y["target"], y["weight"]) if y.dtype == WEIGHTED else (y, None)


def weights_of_labels(model, y, weight: np.ndarray | None) -> np.ndarray:
    """The weights of rows, times the `class_weight` of their labels."""
    given, labels = model.class_weight, model.classes_.tolist()
    places = y.astype(int) if len(labels) > 2 else (y > 0).astype(int)
    if given == "balanced":
        sums = np.bincount(places, weight, len(labels))
        of_label = sums.sum() / (len(labels) * np.where(sums > 0, sums, np.inf))
    else:
        if not given or not set(given) <= set(labels):
            raise ValueError(f"class_weight={given} must give weights to labels of {labels}")
        of_label = np.array([given.get(label, 1.0) for label in labels])
        are_numbers = of_label.dtype.kind in "iuf"
        if not (are_numbers and ((of_label >= 0) & (of_label < np.inf)).all()):
            raise ValueError(f"class_weight={given} must give weights of 0 or more")
    return of_label[places] * (1.0 if weight is None else weight)


CLASS_WEIGHT = param(
    "Weight of the rows of each label, {label: weight}, 1 where a label is not named; "
    "'balanced' (not in `partial_fit`): such that all labels have the same weight in sum, and "
    "the rows a mean weight of 1. It multiplies sample_weight.",
    dict,
    one_of("balanced"),
    None,
    default=None,
)


def partial_fit(self, X, y, classes=None, sample_weight=None):
    """Learn from more rows; the same as having shown all rows so far in one block.

    If it raises an error, nothing has been learned.

    Parameters
    ----------
    X, y, sample_weight
        Observations, labels and weights, as for `fit`.
    classes : array-like of shape (n_classes,), default=None
        The labels; needed in the first call if `y` does not hold all.
    """
    owner, own = type(self).__name__, {"several": True, "name": "classes"}
    given = None if classes is None else labels_in(classes, owner, **own)
    known = self.classes_ if self.__sklearn_is_fitted__() else given
    if given is not None and not np.array_equal(given, known):
        message = f"classes={given.tolist()} differs from earlier calls: {known.tolist()}"
        raise ValueError(message)
    if isinstance(self.class_weight, str):
        raise ValueError(
            f"class_weight={self.class_weight!r} is not for partial_fit, which does not know "
            "all labels: give {label: weight}."
        )
    return self._partial_fit(X, y, sample_weight, classes=known)


@estimator
class Classifier(ClassifierMixin):
    """Two classes, predicted by the sign of x . coef_ + intercept_; of more, by the largest.

    It stands before the `LinearModel`, as `Regressor` does.
    """

    class_weight: dict[Any, float] | str | None = CLASS_WEIGHT

    partial_fit, _targets = partial_fit, labels_and_signs


class Regressor(RegressorMixin):
    """A number, predicted by x . coef_ + intercept_."""

    def partial_fit(self, X, y, sample_weight=None):
        """Learn from more rows; the same as having shown all rows so far in one block.

        X, y and sample_weight are as for `fit`. If it raises an error, nothing has been learned.
        """
        return self._partial_fit(X, y, sample_weight)


def _learns_log_odds(model) -> bool:
    # The loss it has learned with, which the parameter may no longer be.
    loss = getattr(model, "_frozen", {}).get("loss", model.loss)
    if loss != "log_loss":
        raise AttributeError(
            f"loss={loss!r} gives no probabilities: take loss='log_loss', or scikit-learn's "
            "CalibratedClassifierCV"
        )
    return True


# Methods of models whose margins are log odds


@available_if(_learns_log_odds)
def predict_log_proba(self, X) -> np.ndarray:
    """The logarithm of `predict_proba`, also where that is too small for a number."""
    margins = self._margins(X)
    if margins.ndim == 1:
        return log_expit(np.column_stack([-margins, margins]))
    own = log_expit(margins)
    return own - logsumexp(own, axis=1, keepdims=True)


@available_if(_learns_log_odds)
def predict_proba(self, X) -> np.ndarray:
    """The probability of each label, shape (n_samples, n_classes); with loss='log_loss' only.

    That of the second of two labels is 1 / (1 + exp(-m)) with the margin m of
    `decision_function`; of more than two labels those of the margins, divided by their sum.
    """
    return np.exp(self.predict_log_proba(X))
