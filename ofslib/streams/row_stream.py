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
from ofslib.kernels.selection import best_models
from ofslib.streams import automatic, diagnostics, joint, online
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
    Regressor,
    one_vs_rest,
    predict_log_proba,
    predict_proba,
)

# Values in a block: a user can interrupt between two blocks. A block has fewer if it is copied,
# because the data are not in the layout that kernels read: the copy then fits in the cache.
_VALUES_PER_BLOCK = 2**24
_VALUES_PER_COPY = 2**18


def coef_and_intercept(w: np.ndarray) -> tuple[np.ndarray, float]:
    """Coefficients and intercept, which is the last entry of w; the caller's own."""
    return w[:-1].copy(), float(w[-1])


def _blocks(X, targets: np.ndarray, order) -> Iterator[Block]:
    """The rows of validated data in their order, in the layout that kernels read.

    Each block has a row of targets and one of predictions for each model.
    """
    ready, size = True, _VALUES_PER_BLOCK  # whether kernels can read X; rows of a block
    if isinstance(X, np.ndarray):
        ready = X.flags.c_contiguous and X.flags.writeable
        size = (size if ready else _VALUES_PER_COPY) // X.shape[1]
    else:
        X = X if isinstance(X, CSR) else kernel_csr(X)
        size = size * len(order) // max(1, len(X.data))  # of the mean length
    for part in np.split(order, range(max(1, size), len(order), max(1, size))):
        margins = np.empty((len(targets), len(part)))
        if ready:
            yield Block(X, targets, part, margins)
        else:
            copied, own = np.ascontiguousarray(X[part]), np.ascontiguousarray(targets[:, part])
            yield Block(copied, own, np.arange(len(part)), margins)


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
    and `learn`, which `_learn_block` calls: a kernel `learn(state, block, hyper)` that learns the
    rows of the block, writes the prediction made before each of them, and returns how many it
    learned. It stops before a row whose prediction is not finite; a row with a value that is not
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

    example = """
        >>> {name}(k=3, random_state=0).fit(X, y).support_
        array([ 9, 19, 29])
    """
    frozen = ("loss",)
    learn: ClassVar[Callable]
    # NamedTuple of the hyper-parameters that `learn` reads.
    hyper: ClassVar[type]
    # The parameter that sets how large the steps are.
    step_parameter: ClassVar[str] = "learning_rate"
    # What the size of a row is, if an automatic step follows from the rows: see `automatic`.
    row_scale: ClassVar[automatic.RowScale | None] = None
    # The kernels find values that are not finite.
    ensure_all_finite: ClassVar[bool] = False
    # Whether the features kept are those with the largest effects, where these stand out. A rule
    # that keeps what the last rows moved most, or what was seen most often, does not promise it.
    ranks: ClassVar[bool] = True
    # Whether a step on sparse rows takes as long as these have entries, and not as features.
    sparse_steps: ClassVar[bool] = True
    deferred: ClassVar[bool] = False

    def _new_state(self, n_features: int) -> NamedTuple:
        """The state before the first data."""
        raise NotImplementedError

    def _learn_block(self, state: NamedTuple, block: Block) -> int:
        """Learn a block; returns how many of its rows were learned."""
        if self._automatic:
            return automatic.learn(self, state, block)
        return type(self).learn(state, block, self._hyper)

    @property
    def _automatic(self) -> bool:
        # The parameter as it was when the model last learned: it may have changed since.
        return self.row_scale is not None and self._learned_with[self.step_parameter] == "auto"

    _hyper_at, _scaled_hyper = automatic.hyper_at, automatic.scaled_hyper

    def _rescale(self, state: NamedTuple, mean: float) -> None:
        """Prepare the state for a new automatic step, at this mean size of a row."""

    def _model(self, state: NamedTuple) -> tuple[np.ndarray, float]:
        """Coefficients, at most k of them not zero, and intercept; the caller's own."""
        return coef_and_intercept(state.w)

    def _finish(self, state: NamedTuple) -> None:
        """Process the last, incomplete mini-batch."""

    def _held(self, state: NamedTuple) -> int:
        """How many rows wait until their mini-batch is full."""
        return 0

    @property
    def _rows_of_a_batch(self) -> int:
        return int(getattr(self, "batch_size", 1) or 1)  # None: found as the stream runs

    def _left_for_good(self) -> int:
        """How many features can still be selected."""
        return self.n_features_in_

    def _read_hyper(self, n_rows: int | None, **own) -> NamedTuple:
        """The hyper-parameters as the kernel reads them; `n_rows`: the stream's length if known.

        `own` are fields of `hyper` that are not parameters; other names are ignored.
        """
        if self.row_scale is not None:  # the least step of the intercept, over the step eta
            own = {"least": 0.0 if self._automatic else 1.0} | own
        if self._automatic:
            own[self.step_parameter] = 0.0  # `_scaled_hyper` sets it
        return read_parameters(self, self.hyper, intercept=self.fit_intercept, **own)

    @property
    def _states(self) -> tuple:
        """The state of each model."""
        return self._state if type(self._state) is tuple else (self._state,)

    @property
    def _joint(self) -> bool:
        return self._n_models > 1 and self._frozen.get("multiclass") == "joint"

    def _joint_models(self):
        return best_models([self._exposed(state) for state in self._states])

    def _may_have_changed(self):
        own, before = vars(self), self._learned_with.items()
        return any(own.get(name) is not value for name, value in before)

    def _start(self, n_features: int) -> None:
        m = self._n_models
        states = tuple(map(self._new_state, m * [n_features]))
        self._state = states if m > 1 else states[0]
        # ALL, SINCE_ASKED, HALF and POWER of `online`, for each model and for several together
        self._online = np.zeros((4, m + (m > 1), len(online.Sums._fields)))
        self._warned = ()
        self.n_samples_seen_ = 0

    def _begin_like(self, parts):
        n_rows = parts.get("_n_rows")
        if n_rows is not None and (type(n_rows) is not int or n_rows < 1):
            raise ValueError(f"it was told of {n_rows} rows")
        super()._begin_like(parts)
        self._plan(n_rows)

    def _plan(self, n_rows: int | None) -> None:
        """Set the hyper-parameters of the kernels, and keep the parameters they follow from."""
        # Not by get_params, which takes as long as learning some rows.
        own = self._parameter_constraints
        self._learned_with = {name: value for name, value in vars(self).items() if name in own}
        self._n_rows = n_rows
        self._hyper = self._read_hyper(n_rows)

    def _learn(self, X, y) -> None:
        n, rng = X.shape[0], check_random_state(self.random_state)
        self._plan(n * int(self.n_passes))  # int: a model file holds no numbers of numpy
        for _ in range(self.n_passes):
            # A method that forgets learns the rows in their order: the last ones count.
            shuffles = self.shuffle and getattr(self, "forget", None) is None
            order = rng.permutation(n) if shuffles else np.arange(n)
            self._learn_rows(X, y, order)
        self._end()
        diagnostics.judge(self, X, y, order)

    def _learn_more(self, X, y) -> None:
        # A copy learns: other threads can predict or save meanwhile, and if a row is refused, the
        # model is as it was.
        learner = copy.copy(self)
        diagnostics.check_k(self)
        learner._state, learner._online = copy.deepcopy(self._state), self._online.copy()
        learner._plan(self._n_rows_in_all)
        learner._learn_rows(X, y, np.arange(X.shape[0]))
        if learner._watch(at_end=False):
            diagnostics.judge(learner, X, y, np.arange(X.shape[0]))
        vars(self).update(vars(learner))

    def _finish_all(self) -> None:
        if self._joint:
            joint.finish(self)
            return
        for state in self._states:
            if self._automatic:
                automatic.prepare_last(self, state)
            self._finish(state)

    def _end(self):
        self._finish_all()
        self._watch(at_end=True)

    def _learn_rows(self, X, y, order) -> None:
        diagnostics.check_scales(self, X, order)
        for block in _blocks(X, one_vs_rest(y, self._n_models), order):
            if self._joint:
                done = joint.learn(self, block)
            else:
                each = zip(self._states, block.y, block.margins, strict=True)
                for state, targets, margins in each:
                    done = self._learn_block(state, block._replace(y=targets, margins=margins))
                    if done < len(block.order):
                        break
            if done < len(block.order):
                diagnostics.refuse_row(self, block.X, block.order[done])
            online.add_rows(self, block)

    _watch = diagnostics.watch

    def _remedy(self) -> str:
        """What to do about steps that do not fit the rows."""
        if getattr(self, self.step_parameter) == "auto":
            return f"give {self.step_parameter} as a number"
        if self.row_scale is not None:
            return f"take {self.step_parameter}='auto'"
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


# Of the methods that have a step size per feature (AdaGrad): frequent features learn slowly and
# rare ones fast.
SQUARED_HINGE = param(
    "The barda paper's is squared_hinge.",
    one_of(*CLASSIFICATION_LOSSES),
    default="squared_hinge",
)
STEP_PER_FEATURE = param(
    "Step size eta, by which a coefficient moves when its feature is first seen: one over the "
    "mean of |x|_1 is a first value to try.",
    POSITIVE,
    default=0.1,
)
DELTA = param("What the paper adds to the adaptive scale H.", POSITIVE, default=0.01)


@estimator
class RowClassifier(Classifier):
    """Classes, learned from rows; stands before the `RowStream`.

    A model of two classes predicts by the sign of x . coef_ + intercept_, of more by the largest.
    """

    loss: str = param(
        "Name of the loss; the sfsa paper's is log_loss.",
        one_of(*CLASSIFICATION_LOSSES),
        default="log_loss",
    )

    predict_log_proba, predict_proba = predict_log_proba, predict_proba


@estimator
class JointClassifier(RowClassifier):
    """Of the methods whose classes may all have the same features: see `joint`."""

    multiclass: str = joint.MULTICLASS

    frozen = ("multiclass",)


@estimator
class RowRegressor(Regressor):
    """A number, learned from rows; stands before the `RowStream`."""

    loss: str = param("Half the squared error.", one_of("squared_error"), default="squared_error")

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        # One pass over the few hundred rows of scikit-learn's checks is too short to converge.
        tags.regressor_tags.poor_score = True
        return tags
