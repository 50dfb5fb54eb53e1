"""Row streams."""

import copy
from collections.abc import Callable, Iterator
from typing import ClassVar, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import assert_all_finite, check_random_state
from sklearn.utils.validation import check_is_fitted

from ofslib.kernels.losses import CLASSIFICATION_LOSSES, LOSSES, Loss, total
from ofslib.kernels.rows import CSR, ROWS, Block, copy_rows, copy_run
from ofslib.streams import returned
from ofslib.streams.memory import copied, keep, too_large
from ofslib.streams.parameters import (
    AT_LEAST_ONE,
    POSITIVE,
    estimator,
    one_of,
    param,
    read_parameters,
)
from ofslib.streams.returned import least_of_constants
from ofslib.streams.scales import unlike
from ofslib.streams.selector import (
    Classifier,
    LinearModel,
    Probabilities,
    Regressor,
    one_vs_rest,
    target_and_weight,
    warn,
)

# Values of a block, between which a user can interrupt, and of one that is copied because the data
# are not in the layout that kernels read (the copy then stays in the processor's cache).
_VALUES_PER_BLOCK = 2**24
_VALUES_PER_COPY = 2**18
_ROWS_PER_COPY = 32  # at least, where columns lie together: of each a few lines of the cache
# A loss so many times that of no features says that steps are too large, whatever the score.
_FAR = 10.0
# Rows after which it is asked whether the model has been worse than nothing since.
_WINDOW = 1000


class Sums(NamedTuple):
    """Of rows, each under the model before it; regressors have no labels."""

    rows: float
    pairs: float  # of rows that follow each other
    changes: float  # of those with two targets, each by the product of the weights
    total: float  # of the weights; what follows is weighted
    loss: float
    score: float
    weight: float  # of the score
    positive: float  # labels +1
    negative: float
    predicted_positive: float
    predicted_negative: float


def _of_mean_one(sums: np.ndarray) -> Sums:
    """The same sums as if weights had a mean of one."""
    unit = sums[0] / sums[3] if sums[3] else 1.0
    return Sums(*sums[:2], sums[2] * unit * unit, *(sums[3:] * unit))


def _sum(values: np.ndarray, weight: np.ndarray | None):
    """The weighted sum."""
    return (values if weight is None else weight * values).sum()


def batches(rows: int | None, batch_size: int) -> int:
    """Mini-batches that so many rows make, the last one perhaps not full; 0 if not known."""
    return -(-int(rows or 0) // int(batch_size))


def coef_and_intercept(w: np.ndarray) -> tuple[np.ndarray, float]:
    """Coefficients and intercept, which is the last entry of w; the caller's own."""
    return w[:-1].copy(), float(w[-1])


def _longest(state) -> int:
    """The longest axis of the arrays of a state."""
    parts = map(_longest, state) if isinstance(state, tuple) else np.shape(state)
    return max(parts, default=0)


def _blocks(X, targets: np.ndarray, order) -> Iterator[Block]:
    """The rows of validated data in their order, in the layout that kernels read.

    Each block has a row of targets and one of predictions for each model: see `_of_each`.
    """
    ready, by_columns, size = True, False, _VALUES_PER_BLOCK
    if not isinstance(X, np.ndarray):
        X = X if isinstance(X, CSR) else kernel_csr(X)
        size = size * len(order) // max(1, len(X.data))
    else:
        ready = X.flags.c_contiguous and X.flags.writeable
        by_columns = not ready and abs(X.strides[0]) < abs(X.strides[1])
        size //= X.shape[1]
        # Of columns that lie together a row takes a line of the cache for each value: most rows
        # are read at once, but for those that follow each other.
        if not ready and not by_columns:
            size = _VALUES_PER_COPY // X.shape[1]
        elif by_columns and _is_run(X, order):
            size = min(size, max(_VALUES_PER_COPY // X.shape[1], _ROWS_PER_COPY))
    size = max(1, size)
    # One for all blocks: to get new memory takes about as long as to copy the rows.
    space = np.empty((min(size, len(order)), X.shape[1]), X.dtype) if by_columns else None
    for i in range(0, len(order), size):
        part = order[i : i + size]
        margins = np.empty((len(targets), len(part)))
        if ready:
            yield Block(X, targets, part, margins)
        else:
            copied, rows, places = _copied(X, part, space)
            yield Block(copied, targets.take(rows, axis=1), places, margins)


def _of_each(block: Block) -> list[Block]:
    """The block as each model reads it."""
    pairs = zip(block.y, block.margins, strict=True)
    return [block._replace(y=y, margins=margins) for y, margins in pairs]


def _is_run(X, rows) -> bool:
    """Whether the values of a column in these rows follow each other in memory."""
    return X.strides[0] == X.itemsize and bool((np.diff(rows) == 1).all())


def _copied(X, part, space) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows of X in C order; which they are; each one's place.

    With `space`, of columns that lie together, they ascend, and lie there until the next call.
    """
    if space is None:
        return np.ascontiguousarray(X[part]), part, np.arange(len(part))
    copied = space[: len(part)]
    if _is_run(X, part):
        copy_run(X.T, part[0], copied)
        return copied, part, np.arange(len(part))
    ascending, places = np.argsort(part), np.empty_like(part)
    places[ascending] = np.arange(len(part))
    copy_rows(X.T, part[ascending], copied)
    return copied, part[ascending], places


def kernel_csr(X) -> CSR:
    """Validated sparse rows in the layout that kernels read; ValueError if they are too wide."""
    if X.shape[1] > np.iinfo(np.int32).max:
        raise ValueError(f"X has {X.shape[1]} features; sparse rows may have at most 2**31 - 1")
    if not X.has_canonical_format:  # which `checked` has set
        X = sp.csr_array((X.data, X.indices, X.indptr), shape=X.shape, copy=True)
        X.sum_duplicates()
    data = np.require(X.data, requirements="CW")
    indices = np.require(X.indices, np.int32, "CW").view(np.uint32)
    return CSR(data, indices, np.require(X.indptr, np.int64, "CW"))


def _all_finite(state) -> bool:
    """Whether all numbers of a state are."""
    if isinstance(state, np.ndarray):
        # A sum takes no memory; too large a one may be of numbers that are not.
        return state.dtype.kind != "f" or bool(np.isfinite(state.sum()) or np.isfinite(state).all())
    return all(map(_all_finite, state))


@estimator
class RowStream(LinearModel):
    """Base of the methods that learn from rows, all features of which are known.

    A subclass defines `_new_state`, and `_model` unless this is `w` of the state. It sets `hyper`,
    and `fold`, which `_learn_block` calls: a kernel `fold(state, block, hyper)` that shows the rows
    of the block to the state, writes the prediction made before each of them, and returns how many
    it showed. It stops before a row whose prediction is not finite; a row with a value that is not
    finite must give such a prediction.
    """

    k: int = param("Number of features kept.", AT_LEAST_ONE, default=10)
    loss: str = param("Name of the loss.", one_of(*LOSSES), default="squared_error")
    fit_intercept: bool = param("Learn a constant, not counted in k.", "boolean", default=True)
    n_passes: int = param("Times that `fit` shows the rows.", AT_LEAST_ONE, default=1)
    shuffle: bool = param(
        "Whether `fit` shows them in random order, new in each pass; a method that forgets shows "
        "them in their own.",
        "boolean",
        default=True,
    )
    random_state: int | np.random.RandomState | None = param(
        "Seed or generator (as in scikit-learn) of that order.", "random_state", default=None
    )

    frozen = ("loss",)
    fold: ClassVar[Callable]
    # NamedTuple of the hyper-parameters that `fold` reads.
    hyper: ClassVar[type]
    # The parameter that sets how large the steps are.
    step_parameter: ClassVar[str] = "learning_rate"
    # The kernels see each value anyway.
    ensure_all_finite: ClassVar[bool] = False

    def _new_state(self, n_features: int) -> NamedTuple:
        """The state before the first data."""
        raise NotImplementedError

    def _learn_block(self, state: NamedTuple, block: Block) -> int:
        """Take in a block; returns how many of its rows were shown."""
        return type(self).fold(state, block, self._hyper_at(state))

    def _hyper_at(self, state: NamedTuple) -> NamedTuple:
        """The hyper-parameters as the kernel reads them in this state."""
        return self._hyper

    def _model(self, state: NamedTuple) -> tuple[np.ndarray, float]:
        """Coefficients, at most k of them not zero, and intercept; the caller's own."""
        return coef_and_intercept(state.w)

    def _finish(self, state: NamedTuple) -> None:
        """Take in what is still held back when the stream of `fit` ends."""

    def _held(self, state: NamedTuple) -> int:
        """How many rows wait until their mini-batch is full."""
        return 0

    def _forgets(self) -> bool:
        """Whether the order of the rows says which of them count."""
        return False

    def _left_for_good(self) -> int:
        """How many features may be selected from now on."""
        return self.n_features_in_

    def _learn_all(self, block: Block) -> int:
        """Take in a block of all models; returns how many rows all have shown."""
        for state, own in zip(self._states, _of_each(block), strict=True):
            done = self._learn_block(state, own)
            if done < len(own.order):
                return done
        return done

    def _finish_all(self) -> None:
        for state in self._states:
            self._finish(state)

    def _read_hyper(self, n_rows: int | None, **own) -> NamedTuple:
        """The hyper-parameters as the kernel reads them; `n_rows`: the stream's length if known.

        A subclass hands over as `own` what is no parameter.
        """
        return read_parameters(self, self.hyper, intercept=self.fit_intercept, **own)

    def _new_states(self, n_features: int, n_models: int):
        """The state of one model, or the tuple of those of several."""
        if n_models == 1:
            return self._new_state(n_features)
        return tuple(self._new_state(n_features) for _ in range(n_models))

    @property
    def _states(self) -> tuple:
        """The state of each model."""
        return self._state if type(self._state) is tuple else (self._state,)

    def _may_have_changed(self):
        own, before = vars(self), self._learned_with.items()
        return any(own.get(name) is not value for name, value in before)

    def _start(self, n_features: int) -> None:
        self._state = self._new_states(n_features, self._n_models)
        # Of all rows, of those since it was last asked, and of the first half of the largest power
        # of two, and of this power, that are not more than all; each time the sums of each model,
        # and last those of several together
        n_sums = self._n_models + (self._n_models > 1)
        self._online = np.zeros((4, n_sums, len(Sums._fields)))
        self._warned = ()
        self.n_samples_seen_ = 0

    def _begin_like(self, parts):
        n_rows = parts.get("_n_rows")
        if n_rows is not None and (type(n_rows) is not int or n_rows < 1):
            raise ValueError(f"it was told of {n_rows} rows")
        super()._begin_like(parts)
        self._plan(n_rows)

    def _plan(self, n_rows: int | None) -> None:
        """Take the hyper-parameters from the parameters, and keep what they were made of."""
        # get_params takes as long as some rows.
        own = self._parameter_constraints
        self._learned_with = {name: value for name, value in vars(self).items() if name in own}
        self._n_rows = n_rows
        self._hyper = self._read_hyper(n_rows)

    def _learn(self, X, y) -> None:
        n, rng = X.shape[0], check_random_state(self.random_state)
        self._plan(n * int(self.n_passes))  # numpy's own are no numbers of JSON
        for _ in range(self.n_passes):
            order = rng.permutation(n) if self.shuffle and not self._forgets() else np.arange(n)
            self._learn_rows(X, y, order)
        self._end()
        self._judge(X, y, order)

    def _learn_more(self, X, y) -> None:
        # It stays as it stands, for who predicts or saves meanwhile, and should rows be refused.
        learner, before = copy.copy(self), self._state
        k = getattr(self, "_learned_with", {}).get("k", self.k)
        if k != self.k and (left := self._left_for_good()) < min(self.k, self.n_features_in_):
            warn(
                f"k={self.k}, but {type(self).__name__} has only {left} features left, as it has "
                f"learned with k={k}, and none comes back: to have more, begin anew by fit.",
                ConvergenceWarning,
            )
        learner._state, learner._online = copied(self, before), self._online.copy()
        learner._plan(self._n_rows_in_all)
        learner._learn_rows(X, y, np.arange(X.shape[0]))
        if learner._watch(at_end=False):
            learner._judge(X, y, np.arange(X.shape[0]))
        vars(self).update(vars(learner))
        keep(self, before)

    def _end(self):
        self._finish_all()
        self._watch(at_end=True)

    def _learn_rows(self, X, y, order) -> None:
        if said := unlike(self, X, order):
            self._say_once("scales", said)
        for block in _blocks(X, one_vs_rest(y, self._n_models), order):
            done, n = self._learn_all(block), len(block.order)
            if done < n:
                self._refuse(block.X, block.order[done])
            shown = [(own.margins, own.y[own.order]) for own in _of_each(block)]
            before, self.n_samples_seen_ = self.n_samples_seen_, self.n_samples_seen_ + n
            power = 1 << self.n_samples_seen_.bit_length() - 1
            for mark in (power // 2, power):
                if before < mark:
                    sums = self._sums(shown, mark - before)
                    self._online[2:] = self._online[3], self._online[0] + sums
            self._online[:2] += self._sums(shown, n)

    def _sums(self, shown: list[tuple[np.ndarray, np.ndarray]], n: int) -> np.ndarray:
        """Those of the first n predictions and targets of each model, and of several together."""
        loss, found, pairs = int(Loss[self.loss]), [], []
        with np.errstate(over="ignore", invalid="ignore"):
            for margins, y in shown:
                margins, y, (targets, weight) = margins[:n], y[:n], target_and_weight(y[:n])
                whole, change = _sum(np.ones(n), weight), np.diff(targets) != 0
                changes = change.sum() if weight is None else change @ (weight[1:] * weight[:-1])
                own = total(loss, margins, y), *self._scored(margins, targets, weight)
                found.append((n, n - 1, changes, whole, *own))
                pairs.append((margins, targets))
        if len(found) > 1:
            said, true = np.argmax(pairs, axis=0)
            found.append(Sums(*np.mean(found, axis=0))._replace(score=_sum(said == true, weight)))
        return np.array(found)

    def _judge(self, X, y, order) -> None:
        """Warn, once while it lasts, if the model that is returned is no better than a constant.

        The losses that `_watch` sees are those of the model in the making, with all features.
        """
        if not self._warned:
            self._say("returned", returned.faults(self, X, y, order))

    def _watch(self, at_end: bool) -> bool:
        """Refuse a model that is not finite; warn, once each, of what makes one worthless.

        It sees the whole state, so that what the next rows would make of it is no surprise either.
        Returns whether enough rows have come to ask again.
        """
        with np.errstate(over="ignore", invalid="ignore"):
            finite = _all_finite(self._state)
        if not finite:
            raise self._diverged()
        n = self._n_models
        whole, late = (list(map(_of_mean_one, sums[:n])) for sums in self._online[:2])
        lasted = bool(late[0].rows >= _WINDOW)
        worse = [lasted and self._worse_than_nothing(sums) for sums in late]
        worse = [w or self._worse_than_nothing(sums) for w, sums in zip(worse, whole, strict=True)]
        if lasted or any(worse):
            self._say("worse than nothing", worse)
        if lasted:
            self._online[1] = 0.0
        if at_end:
            self._say("empty", self._empty())
        if "empty" not in self._warned:
            later = map(_of_mean_one, (self._online[0] - self._online[2])[:n])
            self._say("one class", list(map(self._one_class, later)))
        self._say("sorted", list(map(self._sorted, whole)))
        return lasted

    def _worse_than_nothing(self, sums: Sums) -> str:
        """What to say if it was over these rows, or nothing."""
        empty = sums.weight * total(int(Loss[self.loss]), np.zeros(1), np.ones(1))
        constant = max(sums.positive, sums.negative)
        # The mean of so few losses, or the score of a constant, may be that much off by chance.
        chance = 3.0 * np.sqrt(constant * (1.0 - constant / sums.weight)) if constant else 0.0
        tells = sums.score >= constant + chance
        too_large = (_FAR if tells else 1.0 + 3.0 / np.sqrt(sums.rows)) * empty
        if sums.loss <= too_large:
            return ""
        what = "has a far larger loss" if tells else "predicts worse"
        return (
            f"{type(self).__name__} {what} than a model without features: over the last "
            f"{sums.rows:.0f} of {self.n_samples_seen_} rows online_loss_ is "
            f"{sums.loss / sums.rows:.3g} against {empty / sums.rows:.3g}, online_score_ "
            f"{sums.score / sums.weight:.3g} against {constant / sums.weight:.3g}. {self._advice()}"
        )

    def _empty(self) -> list[str]:
        """What to say of each model if it has no feature, or nothing."""
        none = f"{type(self).__name__} has selected no feature. "
        pairs = zip(np.atleast_2d(self.coef_), self._states, strict=True)
        return ["" if coef.any() else none + self._advice_if_empty(state) for coef, state in pairs]

    def _one_class(self, sums: Sums) -> str:
        """What to say if it predicts one class without having learned to, or nothing."""
        rarer = min(sums.positive, sums.negative)
        predicted = min(sums.predicted_positive, sums.predicted_negative)
        if rarer < 20 or rarer <= 20 * predicted:
            return ""
        least = least_of_constants(self.loss, sums.positive, sums.negative)
        # Of a rare class the best model may do so too, and hardly tell more than its share.
        if sums.loss <= (1.0 + 1.0 / np.sqrt(rarer)) * least:
            return ""
        return (
            f"{type(self).__name__} has predicted the same label for all but {predicted:.0f} of "
            f"the last {sums.rows:.0f} rows, though {rarer:.0f} have the rarer one, and is no "
            f"better than a constant: their mean loss is {sums.loss / sums.rows:.3g} against "
            f"{least / sums.rows:.3g}. Its coefficients may still be too small to tell: take "
            f"larger steps than with {self._step()}, more rows or n_passes, or {self._remedy()}."
        )

    def _sorted(self, sums: Sums) -> str:
        """What to say if the rows are sorted by label, or nothing."""
        expected = 2.0 * sums.pairs * sums.positive * sums.negative / sums.rows**2
        if expected < 20 or expected <= 20 * sums.changes:
            return ""
        return (
            f"Rows seem to be sorted by label: {sums.changes:.0f} of {sums.pairs:.0f} rows have "
            f"another one than the row before, where {expected:.0f} would by chance. What "
            f"{type(self).__name__} predicts follows the last ones: show rows in random order."
        )

    def _say(self, kind: str, messages: list[str]) -> None:
        """Warn, once while it lasts, of what is to say of each model; of none: it is over."""
        wrong = [place for place, message in enumerate(messages) if message]
        if wrong and kind not in self._warned:
            message = messages[wrong[0]]
            if self._n_models > 1:
                labels = self.classes_[wrong].tolist()
                message = f"Labels {labels} against the others, numbers of the first: {message}"
            warn(message, ConvergenceWarning)
        self._warned = (*(k for k in self._warned if k != kind), *([kind] if wrong else []))

    def _say_once(self, kind: str, message: str) -> None:
        """Warn of what ends by itself, when a model is asked for too early."""
        if kind not in self._warned:
            self._warned = (*self._warned, kind)
            warn(message, ConvergenceWarning)

    def _refuse(self, X, i: int) -> None:
        """Say why row i of X has no finite prediction."""
        values = X[i] if isinstance(X, np.ndarray) else X.data[X.indptr[i] : X.indptr[i + 1]]
        assert_all_finite(values, estimator_name=type(self).__name__, input_name="X")
        raise self._diverged()

    def _diverged(self) -> FloatingPointError:
        seen = self.n_samples_seen_
        after = f"after {seen} rows or soon after" if seen else "in the first rows"
        if too_large(self._state):
            return FloatingPointError(f"The squares of X overflow {after}: scale the features.")
        return FloatingPointError(f"{type(self).__name__} diverged {after}. {self._advice()}")

    def _step(self) -> str:
        return f"{self.step_parameter}={getattr(self, self.step_parameter)!r}"

    def _remedy(self) -> str:
        """Where steps come from that fit the rows."""
        if getattr(self, self.step_parameter) == "auto":
            return f"give {self.step_parameter} as a number"
        return "take SFSA, which finds its steps itself"

    def _advice(self) -> str:
        smaller = ""
        if getattr(self, self.step_parameter) != "auto":
            size = "smaller" if self.step_parameter == "learning_rate" else "larger"
            smaller = f"give a {size} one, "
        return (
            f"Its steps may be too large for these data with {self._step()}: {smaller}"
            "standardise dense features (of 0/1 features leave out the most frequent, and take "
            f"weights less unequal, if any), or {self._remedy()}."
        )

    def _advice_if_empty(self, state: NamedTuple) -> str:
        return "X or y may be zero in every row, or X so small that its squares are."

    @property
    def online_loss_(self) -> float:
        """float
        (Weighted) mean loss of each row under the model that stood before that row was shown; with
        more than two classes the mean over their models."""
        check_is_fitted(self)
        whole = Sums._make(self._online[0, -1])
        return whole.loss / whole.total

    @property
    def online_score_(self) -> float:
        """float
        Share of rows that this model classified rightly (classifiers), or the share of the
        variance around zero that it explained (regressors)."""
        check_is_fitted(self)
        whole = Sums._make(self._online[0, -1])
        return whole.score / whole.weight

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_state")


@estimator
class MiniBatches(RowStream):
    """Base of the methods that learn in mini-batches, which their state gathers in `batch`.

    A subclass sets `step`, a kernel `step(state, hyper)` that learns the rows of the mini-batch.
    """

    batch_size: int = param("Rows of a mini-batch.", AT_LEAST_ONE, default=25)

    step: ClassVar[Callable]

    def _held(self, state):
        return int(state.batch.count[ROWS])

    def _finish(self, state):
        if self._held(state):
            type(self).step(state, self._hyper_at(state))


@estimator
class Adaptive:
    """What the methods share that have a step size per feature (AdaGrad).

    Frequent features learn slowly and rare ones fast.
    """

    loss: str = param(
        "The barda paper's is squared_hinge.",
        one_of(*CLASSIFICATION_LOSSES),
        default="squared_hinge",
    )
    learning_rate: float = param(
        "Step size eta, by which a coefficient moves when its feature is first seen: one over the "
        "mean of |x|_1 is a first value to try.",
        POSITIVE,
        default=0.1,
    )
    delta: float = param("What the paper adds to the adaptive scale H.", POSITIVE, default=0.01)


@estimator
class RowClassifier(Probabilities, Classifier):
    """Classes, learned from rows; stands before the `RowStream`."""

    loss: str = param(
        "Name of the loss; the sfsa paper's is log_loss.",
        one_of(*CLASSIFICATION_LOSSES),
        default="log_loss",
    )

    def _scored(self, margins, y, weight):
        """Rows that were predicted rightly, and rows; those of each label, and said to be of it."""
        count = np.count_nonzero if weight is None else weight.dot
        labels, said = ((count(part > 0), count(part < 0)) for part in (y, margins))
        return count((margins > 0) == (y > 0)), sum(labels), *labels, *said


@estimator
class RowRegressor(Regressor):
    """A number, learned from rows; stands before the `RowStream`."""

    loss: str = param("Half the squared error.", one_of("squared_error"), default="squared_error")

    def _scored(self, margins, y, weight):
        """What was explained of the squares of y, and these."""
        squares, left = (_sum(part, weight) for part in (np.square(y), np.square(margins - y)))
        return squares - left, squares, 0.0, 0.0, 0.0, 0.0

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        # One pass over the few hundred rows of scikit-learn's checks is no time to converge.
        tags.regressor_tags.poor_score = True
        return tags
