"""Row streams."""

import copy
from collections.abc import Callable, Iterator
from typing import ClassVar, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from ofslib.kernels.losses import CLASSIFICATION_LOSSES, LOSSES
from ofslib.kernels.rows import CSR, ROWS, Block
from ofslib.streams import diagnostics, online
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


def _longest(state) -> int:
    """The longest axis of the arrays of a state."""
    parts = map(_longest, state) if isinstance(state, tuple) else np.shape(state)
    return max(parts, default=0)


def _blocks(X, targets: np.ndarray, order) -> Iterator[Block]:
    """The rows of validated data in their order, in the layout that kernels read.

    Each block has a row of targets and one of predictions for each model: see `_of_each`.
    """
    ready, size = True, _VALUES_PER_BLOCK
    if isinstance(X, np.ndarray):
        ready = X.flags.c_contiguous and X.flags.writeable
        size = (size if ready else _VALUES_PER_COPY) // X.shape[1]
    else:
        X = X if isinstance(X, CSR) else kernel_csr(X)
        size = size * len(order) // max(1, len(X.data))
    for part in np.split(order, range(max(1, size), len(order), max(1, size))):
        margins = np.empty((len(targets), len(part)))
        if ready:
            yield Block(X, targets, part, margins)
        else:
            copied, own = np.ascontiguousarray(X[part]), np.ascontiguousarray(targets[:, part])
            yield Block(copied, own, np.arange(len(part)), margins)


def _of_each(block: Block) -> list[Block]:
    """The block as each model reads it."""
    pairs = zip(block.y, block.margins, strict=True)
    return [block._replace(y=y, margins=margins) for y, margins in pairs]


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
        self._online = online.new_sums(self._n_models)
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
        diagnostics.judge(self, X, y, order)

    def _learn_more(self, X, y) -> None:
        # It stays as it stands, for who predicts or saves meanwhile, and should rows be refused.
        learner = copy.copy(self)
        diagnostics.check_k(self)
        learner._state, learner._online = copy.deepcopy(self._state), self._online.copy()
        learner._plan(self._n_rows_in_all)
        learner._learn_rows(X, y, np.arange(X.shape[0]))
        if learner._watch(at_end=False):
            diagnostics.judge(learner, X, y, np.arange(X.shape[0]))
        vars(self).update(vars(learner))

    def _end(self):
        self._finish_all()
        self._watch(at_end=True)

    def _learn_rows(self, X, y, order) -> None:
        diagnostics.check_scales(self, X, order)
        for block in _blocks(X, one_vs_rest(y, self._n_models), order):
            done = self._learn_all(block)
            if done < len(block.order):
                diagnostics.refuse_row(self, block.X, block.order[done])
            each = _of_each(block)
            online.add_rows(self, [(own.margins, own.y[own.order]) for own in each])

    def _watch(self, at_end: bool) -> bool:
        """Warn of what is wrong; returns whether enough rows have come to judge the model."""
        return diagnostics.watch(self, at_end)

    def _remedy(self) -> str:
        """Where steps come from that fit the rows."""
        if getattr(self, self.step_parameter) == "auto":
            return f"give {self.step_parameter} as a number"
        return "take SFSA, which finds its steps itself"

    def _advice_if_empty(self, state: NamedTuple) -> str:
        return "X or y may be zero in every row, or X so small that its squares are."

    @property
    def online_loss_(self) -> float:
        """float
        (Weighted) mean loss of each row under the model that stood before that row was shown; with
        more than two classes the mean over their models."""
        check_is_fitted(self)
        whole = online.Sums._make(self._online[online.ALL, -1])
        return whole.loss / whole.total

    @property
    def online_score_(self) -> float:
        """float
        Share of rows that this model classified rightly (classifiers), or the share of the
        variance around zero that it explained (regressors)."""
        check_is_fitted(self)
        whole = online.Sums._make(self._online[online.ALL, -1])
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
        squares, left = (
            online.weighted_sum(part, weight) for part in (np.square(y), np.square(margins - y))
        )
        return squares - left, squares, 0.0, 0.0, 0.0, 0.0

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        # One pass over the few hundred rows of scikit-learn's checks is no time to converge.
        tags.regressor_tags.poor_score = True
        return tags
