"""Row streams."""

import copy
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, ClassVar, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import assert_all_finite, check_random_state
from sklearn.utils.validation import check_is_fitted

from ofslib.kernels.losses import CLASSIFICATION_LOSSES, LOSSES, Loss, total, value
from ofslib.kernels.rows import CSR, ROWS, Block, is_canonical
from ofslib.streams.parameters import (
    AT_LEAST_ONE,
    POSITIVE,
    estimator,
    one_of,
    param,
    read_parameters,
)
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


def batches(rows: int | None, batch_size: int) -> int:
    """Mini-batches that so many rows make, the last one perhaps not full; 0 if not known."""
    return -(-int(rows or 0) // int(batch_size))


def coef_and_intercept(w: np.ndarray) -> tuple[np.ndarray, float]:
    """Coefficients and intercept, which is the last entry of w; the caller's own."""
    return w[:-1].copy(), float(w[-1])


def _form(state) -> list[tuple[type, tuple[int, ...], Any]]:
    """Types of the parts of a state, and what else a kernel knows of its arrays."""
    if isinstance(state, tuple):
        found = [(type(state), (), None)]
        return found + [form for part in state for form in _form(part)]
    return [(type(state), np.shape(state), getattr(state, "dtype", None))]


def _blocks(X, targets: list[np.ndarray], order) -> Iterator[list[Block]]:
    """The rows of validated data in their order, in the layout that kernels read.

    Of each part of them a block with the targets of each model.
    """
    ready = True
    if sp.issparse(X):
        X = _kernel_csr(X)
        size = _VALUES_PER_BLOCK * len(order) // max(1, len(X.data))
    else:
        ready = X.dtype == np.float64 and X.flags.c_contiguous and X.flags.writeable
        size = (_VALUES_PER_BLOCK if ready else _VALUES_PER_COPY) // X.shape[1]
    size = max(1, size)
    for i in range(0, len(order), size):
        part = order[i : i + size]
        if ready:
            yield [Block(X, y, part, np.empty(len(part))) for y in targets]
        else:
            copied, rows = np.array(X[part], dtype=np.float64, order="C"), np.arange(len(part))
            yield [Block(copied, y[part], rows, np.empty(len(part))) for y in targets]


def _kernel_csr(X) -> CSR:
    if X.shape[1] > np.iinfo(np.int32).max:
        raise ValueError(f"X has {X.shape[1]} features; sparse rows may have at most 2**31 - 1")
    # X.has_canonical_format is what somebody once said of these arrays; they may have changed.
    if not is_canonical(X.indptr, X.indices):
        X = sp.csr_array((X.data, X.indices, X.indptr), shape=X.shape, copy=True)
        X.sum_duplicates()
    data = np.require(X.data, np.float64, "CW")
    indices = np.require(X.indices, np.int32, "CW").view(np.uint32)
    return CSR(data, indices, np.require(X.indptr, np.int64, "CW"))


def _all_finite(state) -> bool:
    """Whether all numbers of a state are."""
    if isinstance(state, np.ndarray):
        return state.dtype.kind != "f" or bool(np.isfinite(state).all())
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
        "Whether `fit` shows them in random order, new in each pass.", "boolean", default=True
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
        return type(self).fold(state, block, self._hyper)

    def _model(self, state: NamedTuple) -> tuple[np.ndarray, float]:
        """Coefficients, at most k of them not zero, and intercept; the caller's own."""
        return coef_and_intercept(state.w)

    def _finish(self, state: NamedTuple) -> None:
        """Take in what is still held back when the stream of `fit` ends."""

    def _learn_blocks(self, blocks: list[Block]) -> int:
        """Take in a block of each model; returns how many rows all have shown."""
        for state, block in zip(self._states, blocks, strict=True):
            done = self._learn_block(state, block)
            if done < len(block.order):
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

    def _start(self, n_features: int) -> None:
        self._state = self._new_states(n_features, self._n_models)
        # Sums of weights, and so weighted of loss, of score, of what this can be at most; of rows
        # of each label, and of predictions of each
        self._online = np.zeros(4 + 2 * max(self._n_models, 2))
        self._warned = ()
        self.n_samples_seen_ = 0

    def _refuse_if_wrong(self):
        # Kernels rely on the arrays that the state began with: they are changed in place.
        p, found = self.n_features_in_, _form(self._state)
        if not 1 <= p <= max((shape[0] for _, shape, _ in found if shape), default=0):
            raise ValueError(f"its arrays are not those of {p} features")
        fresh = type(self)(**self.get_params() | self._frozen)
        if _form(fresh._new_states(p, self._n_models)) != found:
            raise ValueError(f"its arrays are not those of {p} features and its parameters")

    def _learn(self, X, y) -> None:
        n, rng = X.shape[0], check_random_state(self.random_state)
        self._hyper = self._read_hyper(n * self.n_passes)
        for _ in range(self.n_passes):
            order = rng.permutation(n) if self.shuffle else np.arange(n)
            self._learn_rows(X, y, order)
        self._finish_all()
        self._watch(at_end=True)

    def _learn_more(self, X, y) -> None:
        # What stood before stays, should the rows be refused.
        self._state, self._online = copy.deepcopy((self._state, self._online))
        self._hyper = self._read_hyper(None)
        self._learn_rows(X, y, np.arange(X.shape[0]))
        self._watch(at_end=False)

    def _learn_rows(self, X, y, order) -> None:
        loss = int(Loss[self.loss])
        for blocks in _blocks(X, one_vs_rest(y, self._n_models), order):
            n, margins = len(blocks[0].order), [block.margins for block in blocks]
            done = self._learn_blocks(blocks)
            if done < n:
                self._refuse(blocks[0].X, blocks[0].order[done])
            shown = [block.y[block.order] for block in blocks]
            targets, (weight, *_) = zip(*map(target_and_weight, shown), strict=True)
            with np.errstate(over="ignore", invalid="ignore"):
                mean = sum(map(partial(total, loss), margins, shown)) / len(shown)
                scored = self._scored(margins, targets, weight)
                self._online += (n if weight is None else weight.sum(), mean, *scored)
            self.n_samples_seen_ += n

    def _watch(self, at_end: bool) -> None:
        """Refuse a model that is not finite; warn, once each, of what makes one worthless.

        It sees the whole state, so that what the next rows would make of it is no surprise either.
        """
        if not _all_finite(self._state):
            raise self._diverged()
        rows, loss, score, weight = self._online[:4]
        labels, said = self._online[4:].reshape(2, -1)
        empty, constant = rows * value(int(Loss[self.loss]), 0.0, 1.0), labels.max()
        # The mean of so few losses may be that much off by chance.
        margin = 1.0 + 3.0 / np.sqrt(self.n_samples_seen_)
        if loss > margin * empty and score < constant:
            self._warn_once(
                "worse than nothing",
                f"{type(self).__name__} predicts worse than a model without features: over the "
                f"{self.n_samples_seen_} rows online_loss_ is {self.online_loss_:.3g} against "
                f"{empty / rows:.3g}, online_score_ {self.online_score_:.3g} "
                f"against {constant / weight:.3g}. {self._advice()}",
            )
        # As if rows had a mean weight of 1
        mean = rows / self.n_samples_seen_
        others, unlike = ((counts.sum() - counts.max()) / mean for counts in (labels, said))
        if at_end and len(empty := self._empty_models()):
            of = f" for the labels {self.classes_[empty].tolist()}" if self._n_models > 1 else ""
            self._warn_once(
                "empty",
                f"{type(self).__name__} has selected no feature{of}. "
                + self._advice_if_empty(self._states[empty[0]]),
            )
        elif 20 <= others > 20 * unlike:
            self._warn_once(
                "one class",
                f"{type(self).__name__} has predicted the same label for all but {unlike:.0f} of "
                f"{self.n_samples_seen_} rows, though {others:.0f} have not the most frequent one. "
                "Its coefficients may still be too small to tell: take larger steps "
                f"than with {self._step()}, more rows or n_passes, or let SFSA find the step by "
                "step='spectral'; and do not sort rows by label.",
            )

    def _warn_once(self, kind: str, message: str) -> None:
        if kind not in self._warned:
            self._warned += (kind,)
            warn(message, ConvergenceWarning)

    def _refuse(self, X, i: int) -> None:
        """Say why row i of X has no finite prediction."""
        values = X[i] if isinstance(X, np.ndarray) else X.data[X.indptr[i] : X.indptr[i + 1]]
        assert_all_finite(values, estimator_name=type(self).__name__, input_name="X")
        raise self._diverged()

    def _diverged(self) -> FloatingPointError:
        return FloatingPointError(
            f"{type(self).__name__} diverged after {self.n_samples_seen_} rows or soon after. "
            + self._advice()
        )

    def _step(self) -> str:
        return f"{self.step_parameter}={getattr(self, self.step_parameter)}"

    def _advice(self) -> str:
        smaller = "smaller" if self.step_parameter == "learning_rate" else "larger"
        return (
            f"Its steps may be too large for these data with {self._step()}: take a {smaller} one, "
            "standardise the features, or let SFSA find the step by step='spectral'."
        )

    def _empty_models(self) -> np.ndarray:
        """Places of the models that have no coefficient."""
        return np.flatnonzero(~np.atleast_2d(self.coef_).any(axis=1))

    def _advice_if_empty(self, state) -> str:
        return "X may be zero."

    @property
    def online_loss_(self) -> float:
        """float
        (Weighted) mean loss of each row under the model that stood before that row was shown; with
        more than two classes the mean over their models."""
        check_is_fitted(self)
        return self._online[1] / self._online[0]

    @property
    def online_score_(self) -> float:
        """float
        Share of rows that this model classified rightly (classifiers), or the share of the
        variance around zero that it explained (regressors)."""
        check_is_fitted(self)
        return self._online[2] / self._online[3]

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_state")


@estimator
class MiniBatches(RowStream):
    """Base of the methods that learn in mini-batches, which their state gathers in `batch`.

    A subclass sets `step`, a kernel `step(state, hyper)` that learns the rows of the mini-batch.
    """

    batch_size: int = param("Rows of a mini-batch.", AT_LEAST_ONE, default=25)

    step: ClassVar[Callable]

    def _finish(self, state):
        if state.batch.count[ROWS]:
            type(self).step(state, self._hyper)


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
    learning_rate: float = param("Step size eta.", POSITIVE, default=0.1)
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
        if len(y) > 1:
            true, said = np.argmax(y, axis=0), np.argmax(margins, axis=0)
            counts = [np.bincount(places, weight, len(y)) for places in (true, said)]
            return count(true == said), counts[0].sum(), *np.concatenate(counts)
        (margins,), (y,) = margins, y
        labels, said = ((count(part > 0), count(part < 0)) for part in (y, margins))
        return count((margins > 0) == (y > 0)), sum(labels), *labels, *said


@estimator
class RowRegressor(Regressor):
    """A number, learned from rows; stands before the `RowStream`."""

    loss: str = param("Half the squared error.", one_of("squared_error"), default="squared_error")

    def _scored(self, margins, y, weight):
        """What was explained of the squares of y, and these."""
        (margins,), (y,) = margins, y
        squares, left = (
            (part if weight is None else weight * part).sum()
            for part in (np.square(y), np.square(margins - y))
        )
        return squares - left, squares, 0.0, 0.0, 0.0, 0.0

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        # One pass over the few hundred rows of scikit-learn's checks is no time to converge.
        tags.regressor_tags.poor_score = True
        return tags
