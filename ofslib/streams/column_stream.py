"""Streams of columns: all rows are known, and the features arrive.

`ColumnStream` is the base of the methods that see features one by one, or in blocks: a method adds
its hyper-parameters, its state, and how a block of columns becomes part of the state. `ColumnModel`
is the base of those that learn a linear model. `ScoredSelector` is the base of the batch methods
that they are compared with, which score all features at once.
"""

import copy
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, ClassVar, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.base import is_classifier, is_regressor
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import accuracy_score, r2_score
from sklearn.svm import LinearSVC
from sklearn.utils import check_array, check_random_state, check_X_y
from sklearn.utils._tags import ClassifierTags, RegressorTags
from sklearn.utils.validation import check_is_fitted

from ofslib._blas import one_blas_thread
from ofslib._model_files import filled
from ofslib._sparse import cells_named, checked, plain_words, refuse_misread
from ofslib.kernels.losses import Loss, total
from ofslib.kernels.working_set import (
    IN_USE,
    PEAK,
    Columns,
    WorkingSet,
    largest_coefficients,
    new_scan_state,
    with_capacity,
)
from ofslib.streams.parameters import (
    AT_LEAST_ONE,
    POSITIVE,
    estimator,
    one_of,
    param,
    read_parameters,
)
from ofslib.streams.selector import (
    LinearModel,
    Selector,
    labels_and_signs,
    predict_log_proba,
    predict_proba,
)

# Values that are copied at a time, so that a block of columns stays in the processor's cache.
_VALUES_PER_BLOCK = 2**18

# How selected features are fitted again: the paper's LIBLINEAR with C = 1 for the squared hinge.
REFITS = {
    "squared_error": LinearRegression,
    "squared_hinge": partial(LinearSVC, dual=False),
    "log_loss": partial(LogisticRegression, solver="newton-cholesky"),
}


# What an absolute value may be, if it is not 0: its square neither overflows nor vanishes.
MAGNITUDES = (1e-150, 1e150)


def refuse_columns(model: Selector, X, first: int) -> None:
    """ValueError if a column is not to be learned from; they are the features from `first`."""
    ends = [getattr(X, end)(axis=0) for end in ("min", "max")]
    low, high = (np.asarray(e.toarray().ravel() if sp.issparse(e) else e, float) for e in ends)
    largest = np.maximum(-low, high)
    refused = _is_outside(largest, model.magnitudes)
    if refused.any():
        j = int(np.argmax(refused))
        names = getattr(model, "feature_names_in_", ())
        name = f", {names[first + j]!r}," if len(names) else ""
        raise _another_unit(f"X: column {j}{name}", largest[j], model.magnitudes)


@estimator
class ColumnStream(Selector):
    """Base of the methods that are shown columns, all rows of which are known.

    A subclass defines `_new_state` and `_learn_block`; `index` of its state are the numbers of the
    selected features.
    """

    supervised: ClassVar[bool] = False
    example = """
        >>> model = {name}(k=3).partial_fit_columns(X[:, :25], y)
        >>> model.partial_fit_columns(X[:, 25:]).support_
        array([ 9, 19, 29])
    """
    sparse_form: ClassVar[str] = "csc"
    magnitudes: ClassVar[tuple[float, float]] = MAGNITUDES

    def _read(self, X, y, reset: bool, **known):
        X, y = super()._read(X, y, reset, **known)
        refuse_columns(self, X, 0)
        return X, y

    def _targets(self, y, **known):
        y = super()._targets(y, **known)
        largest = np.abs(y).max()
        if _is_outside(largest, MAGNITUDES):
            raise _another_unit("y", largest, MAGNITUDES)
        return y

    def _new_state(self, n: int) -> NamedTuple:
        """The state before the first column, of n rows; the targets are `self._y`."""
        raise NotImplementedError

    def _learn_block(self, state: NamedTuple, block: Columns) -> NamedTuple:
        """The state after a block of columns; it may be the same one, changed."""
        raise NotImplementedError

    def _as_block(self, values: np.ndarray, index: np.ndarray) -> Columns:
        """The features `index`, the rows of `values`, as they are learned from."""
        return Columns(index, values, np.zeros(len(index)), np.ones(len(index)))

    def _open(self, n: int, y) -> None:
        self._y, self.n_samples_seen_ = y, n
        self._state = self._new_state(n)

    def _begin_like(self, parts):
        n = parts.get("n_samples_seen_", 0)
        if n < 1:
            raise ValueError(f"it has {n} rows")
        y = filled(parts.get("_y"), np.broadcast_to(0.0, n) if self.supervised else None, n, "y")
        self.n_features_in_ = 0
        self._begin(0, warns=False)
        self._open(n, y)

    def _learn(self, X, y):
        self._open(X.shape[0], y)
        self._receive(X, np.arange(X.shape[1]), np.arange(X.shape[1]))

    def _receive(self, X, order, index) -> None:
        """Show the columns `order` of X as the features `index`."""
        with one_blas_thread():
            for values, numbers in _blocks(X, order, index):
                self._state = self._learn_block(self._state, self._as_block(values, numbers))

    def partial_fit_columns(self, X_new, y=None, names=None):
        """Show new columns, once, in their order; the same as all columns so far in one block.

        Returns self. A ValueError says what is not allowed; nothing has been learned then.

        Parameters
        ----------
        X_new : {ndarray, DataFrame, sparse matrix or array} of shape (n_samples, n_new)
            The same rows as in all calls; the columns are features n_features_in_, ...
        y : array-like of shape (n_samples,), default=None
            Targets; needed in the first call, and in no call different from it. Not read by a
            method that needs none.
        names : sequence of str of length n_new, default=None
            Names of the columns, in all calls or in none; None: those of the DataFrame.
        """
        self._validate_params()
        first = not self.__sklearn_is_fitted__()
        if self.supervised and first and y is None:
            raise ValueError("y=None: the first call of partial_fit_columns needs the targets")
        with self._unless_it_fails():
            if not first:
                self._refuse_changes()
            X, y = self._read_columns(X_new, y, first)
            if first:
                self.n_features_in_ = 0
                self._begin(0, warns=False)
                self._open(X.shape[0], y)
            self._name(X.shape[1], _names_of(X_new) if names is None else names)
            refuse_columns(self, X, self.n_features_in_)
            # What stood before stays, should the columns be refused.
            self._state = copy.deepcopy(self._state)
            new = np.arange(X.shape[1])
            self._receive(X, new, self.n_features_in_ + new)
            self.n_features_in_ += X.shape[1]
        return self

    def _read_columns(self, X, y, first: bool):
        refuse_misread(X=X, y=y)
        form = self._form()
        if first and self.supervised:
            with cells_named(X, y):
                X, y = check_X_y(checked(X), plain_words(y), **form, estimator=self)
            return X, self._targets(y)
        with cells_named(X):
            X = check_array(checked(X), **form, estimator=self, input_name="X")
        if first:
            return X, None
        n = self.n_samples_seen_
        if X.shape[0] != n:
            raise ValueError(f"X_new has {X.shape[0]} rows; earlier columns have {n}")
        if y is None or not self.supervised:
            return X, self._y
        known = {"classes": self.classes_} if is_classifier(self) else {}
        if not np.array_equal(self._targets(np.asarray(y), **known), self._y):
            raise ValueError("y differs from that of the first call; the rows stay the same")
        return X, self._y

    def _name(self, n_new: int, names) -> None:
        """Append the names of new columns."""
        before = list(getattr(self, "feature_names_in_", ()))
        if names is None and not before:
            return
        if names is None or len(before) < self.n_features_in_:
            raise ValueError("names: columns have names in all calls, or in none")
        if isinstance(names, str) or not isinstance(names, Iterable):
            raise TypeError(f"names={names!r} must be {n_new} strings, one for each column")
        names = list(names)
        if len(names) != n_new or not all(isinstance(name, str) for name in names):
            raise ValueError(f"names={names} must be {n_new} strings, one for each column")
        if twice := [name for name, count in Counter(before + names).items() if count > 1]:
            raise ValueError(f"names: a name is given to one column only, and {twice[0]!r} to more")
        self.feature_names_in_ = np.array(before + names, dtype=object)

    @property
    def support_(self) -> np.ndarray:
        """ndarray of int
        Selected features, in ascending order."""
        check_is_fitted(self)
        return np.sort(np.array(self._state.index, np.int64))

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_state")


@estimator
class ColumnModel(LinearModel, ColumnStream):
    """Base of the methods that learn a linear model of columns.

    Each column is scaled on arrival to mean square 1, after its mean was subtracted if there is an
    intercept: no later column is needed for that, and step sizes need not know the units. The loss
    decides the task: a number is learned by squared_error, two classes by the others.

    The state holds the `working_set` in place of `index`. `_new_state` finds the constant in
    `self._offset`.
    """

    # Columns are scaled before anything is squared; one over a smaller number would lose digits.
    magnitudes: ClassVar[tuple[float, float]] = (1e-290, float(np.finfo(float).max))

    loss: str = param(
        "Half the squared error, for regression; or a loss for two classes.",
        one_of("squared_error", "squared_hinge", "log_loss"),
        default="squared_error",
    )
    fit_intercept: bool = param(
        "Learn a constant, which is not counted among the features.", "boolean", default=True
    )
    refit: bool = param(
        "Fit the kept features again, as in the paper's experiments: by least squares, or by the "
        "loss with penalty |w|^2 / 2 on its sum over the rows. Else the coefficients are those "
        "that the scan left.",
        "boolean",
        default=True,
    )

    frozen = ("loss", "fit_intercept")
    supervised: ClassVar[bool] = True
    # Rows have no weights.
    fit = Selector.fit
    predict_log_proba, predict_proba = predict_log_proba, predict_proba

    def _model_columns(self, state: NamedTuple) -> WorkingSet:
        """The columns of the model and their coefficients."""
        return state.working_set

    def _peak(self, state: NamedTuple) -> int:
        """The most columns that were kept at once."""
        return int(state.working_set.size[PEAK])

    def _start(self, n_features):
        self._defer()

    def _open(self, n, y):
        # The constant of the least loss: the mean, for the squared hinge too, or the log odds. It
        # stays while the scan goes on, as the columns are centred; the refit has its own.
        self._offset = 0.0
        if self.fit_intercept:
            mean = float(y.mean())
            self._offset = 2 * float(np.arctanh(mean)) if self.loss == "log_loss" else mean
        super()._open(n, y)

    def _as_block(self, values, index):
        return standardised(values, index, self.fit_intercept)

    def _receive(self, X, order, index):
        super()._receive(X, order, index)
        self._defer()

    def _targets(self, y, classes=None):
        if is_regressor(self):
            return super()._targets(y)
        return labels_and_signs(self, y, classes, several=False)

    def _compute(self, state):
        columns = self._model_columns(state)
        used = columns.size[IN_USE]
        w, intercept = columns.w[:used], self._offset
        if self.refit and used:
            model = REFITS[self.loss](fit_intercept=self.fit_intercept)
            model.fit(columns.values[:used].T, self._y)
            w = model.coef_.ravel()
            intercept = float(np.ravel(model.intercept_)[0]) if self.fit_intercept else 0.0
        coef, index = np.zeros(self.n_features_in_), columns.index[:used]
        with np.errstate(over="ignore"):
            coef[index] = w / columns.scale[:used]
        if not np.isfinite(coef).all():
            raise FloatingPointError(
                f"the coefficient of column {np.argmax(~np.isfinite(coef))} is too large for a "
                "number: give the column, or y, in another unit."
            )
        return coef, float(intercept - columns.shift[:used] @ coef[index])

    @property
    def objective_(self) -> float:
        """float
        Mean loss of the coefficients that the scan left, without a penalty."""
        check_is_fitted(self)
        learned = self._as_learned()
        columns = learned._model_columns(self._state)
        used = columns.size[IN_USE]
        margins = self._offset + columns.w[:used] @ columns.values[:used]
        return total(int(Loss[learned.loss]), margins, self._y) / len(self._y)

    @property
    def peak_features_(self) -> int:
        """int
        The most columns that were kept at once."""
        check_is_fitted(self)
        return self._peak(self._state)

    def score(self, X, y, sample_weight=None) -> float:
        """The share of rows with the right label, or R^2 for regression."""
        measure = accuracy_score if is_classifier(self) else r2_score
        return float(measure(y, self.predict(X), sample_weight=sample_weight))

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        # A value that is not allowed is refused later, by its name.
        if self.loss == "squared_error":
            tags.estimator_type, tags.regressor_tags = "regressor", RegressorTags()
        else:
            tags.estimator_type = "classifier"
            tags.classifier_tags = ClassifierTags(multi_class=False)
        return tags


@estimator
class ColumnScan(ColumnModel):
    """Base of the methods that have learned from a column once they have seen it.

    They may scan all columns again, in another order. A subclass sets `learn`, a kernel
    `learn(state, columns, y, hyper)` that shows a block of columns to the state, and `hyper`; or it
    defines `_learn_block`.
    """

    n_scans: int = param("Times that `fit` scans all columns.", AT_LEAST_ONE, default=2)
    shuffle: bool = param(
        "Whether `fit` scans them in random order, new in each scan.", "boolean", default=True
    )
    random_state: int | np.random.RandomState | None = param(
        "Seed or generator (as in scikit-learn) of all draws.", "random_state", default=None
    )

    learn: ClassVar[Callable]
    # NamedTuple of the hyper-parameters that `learn` reads.
    hyper: ClassVar[type]

    def _learn_block(self, state, block):
        type(self).learn(state, block, self._y, read_parameters(self, self.hyper))
        return state

    def _learn(self, X, y):
        rng, p = check_random_state(self.random_state), X.shape[1]
        scans = range(self.n_scans)
        orders = [rng.permutation(p) if self.shuffle else np.arange(p) for _ in scans]
        self._open(X.shape[0], y)
        for order in orders:
            self._receive(X, order, order)


@estimator
class PenalisedScan(ColumnScan):
    """Base of the scans that select features by an l1 penalty; how many are kept is not bounded."""

    l1: float = param(
        "Weight of the penalty |w| of the scaled columns' coefficients.", POSITIVE, default=0.1
    )
    k: int | None = param(
        "Largest number of features in the model: those with the largest coefficients of the "
        "scaled columns. None: all that are not zero.",
        AT_LEAST_ONE,
        None,
        default=None,
    )

    frozen = ("l1",)

    def _new_state(self, n):
        return new_scan_state(16, n, self._offset)

    def _learn_block(self, state, block):
        working_set = with_capacity(state.working_set, len(block.index))
        return super()._learn_block(state._replace(working_set=working_set), block)

    def _model_columns(self, state):
        return largest_coefficients(state.working_set, self.k)


@estimator
class ScoredSelector(Selector):
    """Base of the batch methods that score all features and keep the k with the highest scores.

    A subclass defines `_scores`.
    """

    k: int = param("Number of features kept.", AT_LEAST_ONE, default=10)

    example = """
        >>> X[:, design.support] *= 5
        >>> {name}(k=3).fit(X).support_
        array([ 9, 19, 29])
    """
    supervised: ClassVar[bool] = False
    magnitudes: ClassVar[tuple[float, float]] = MAGNITUDES

    def _read(self, X, y, reset: bool, **known):
        X, y = super()._read(X, y, reset, **known)
        refuse_columns(self, X, 0)
        return X, y

    def _scores(self, X) -> np.ndarray:
        """A number for each feature, the larger the better; of two equal ones the first is."""
        raise NotImplementedError

    def _restore(self, parts, model=None):
        super()._restore(parts, model)
        scores, support = (np.asarray(vars(self).get(n, ())) for n in ("scores_", "support_"))
        p, k = (self.n_features_in_, min(self.k, self.n_features_in_)) if len(scores) else (0, 0)
        kinds = scores.dtype.kind, support.dtype.kind
        within = kinds == ("f", "i") and ((support >= 0) & (support < p)).all()
        if (scores.shape, support.shape) != ((p,), (k,)) or not (within or not p):
            raise ValueError(f"its scores are not those of {p} features")

    def _ranks(self, scores: np.ndarray) -> np.ndarray:
        """What decides; the scores themselves, if nothing else is said."""
        return scores

    def _learn(self, X, y):
        self.n_samples_seen_ = X.shape[0]
        with one_blas_thread():
            self.scores_ = self._scores(X)
        best = np.argsort(-self._ranks(self.scores_), kind="stable")[: self.k]
        self.support_ = np.sort(best)


def _is_outside(largest, allowed: tuple[float, float]):
    """Whether absolute values are neither 0 nor allowed; NaN is."""
    return ~((largest == 0) | ((largest >= allowed[0]) & (largest <= allowed[1])))


def _another_unit(what: str, largest: float, allowed: tuple[float, float]) -> ValueError:
    return ValueError(
        f"{what} has the largest absolute value {largest:.3g}; allowed are 0 and {allowed[0]:.3g} "
        f"to {allowed[1]:.3g}: give it in another unit."
    )


def _names_of(X) -> Any:
    """Names of the columns of a DataFrame, if all are strings."""
    names = list(getattr(X, "columns", ()))
    return names if names and all(isinstance(name, str) for name in names) else None


def _blocks(X, order, index) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Some columns of X in their order, as rows and in handy pieces, with their numbers."""
    size = max(1, _VALUES_PER_BLOCK // X.shape[0])
    for i in range(0, len(order), size):
        values = X[:, order[i : i + size]]
        values = values.toarray() if sp.issparse(X) else values
        yield np.array(values.T, np.float64, order="C"), index[i : i + size]


def standardised(values: np.ndarray, index, centre: bool) -> Columns:
    """Scale each row to mean square 1, in place, after its mean was subtracted if asked for."""
    largest = np.maximum(-values.min(axis=1), values.max(axis=1))
    # By a power of two, which changes no digit, lest the sum, or the smallest of squares, be lost.
    unit = np.ldexp(1.0, np.clip(np.frexp(largest)[1], -1000, 1000))
    largest /= unit
    values *= (1.0 / unit)[:, None]
    mean = values.mean(axis=1) if centre else np.zeros(len(values))
    values -= mean[:, None]
    values /= np.where(largest > 0, largest, 1.0)[:, None]
    root = np.sqrt(np.square(values).mean(axis=1))
    root[root <= 16 * np.finfo(float).eps] = 0.0  # what rounding leaves of a constant
    values /= np.where(root > 0, root, 1.0)[:, None]
    return Columns(np.asarray(index, np.int64), values, mean * unit, root * largest * unit)
