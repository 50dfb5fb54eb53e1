"""Row streams."""

import copy
from collections.abc import Callable, Iterator
from typing import Any, ClassVar, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.utils import assert_all_finite, check_random_state
from sklearn.utils.validation import check_is_fitted

from ofslib.kernels.losses import LOSSES, Loss, total
from ofslib.kernels.rows import CSR
from ofslib.streams.parameters import AT_LEAST_ONE, estimator, one_of, param, read_parameters
from ofslib.streams.selector import Classifier, LinearModel, Regressor

# Values read between two looks at the keyboard, and values copied at a time when the data are not
# in the layout that kernels read (the copy then stays in the processor's cache).
_VALUES_PER_FOLD = 2**24
_VALUES_PER_COPY = 2**18


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


@estimator
class RowStream(LinearModel):
    """Base of the methods that learn from rows, all features of which are known.

    A subclass sets `fold`, a kernel `fold(state, X, y, order, hyper, margins)` that shows the rows
    `order` of X to the state, writes the prediction made before each of them into `margins`, and
    returns how many it showed: it stops before a row whose prediction is not finite. A row with a
    value that is not finite must give such a prediction. It also sets `hyper`, and defines `_init`
    and `_model`.
    """

    k: int = param("Number of features kept.", AT_LEAST_ONE, default=10)
    loss: str = param("Name of the loss.", one_of(*LOSSES), default="squared_error")
    fit_intercept: bool = param(
        "Learn a constant, which is not counted among the k features.", "boolean", default=True
    )
    n_passes: int = param("Times that `fit` shows the rows.", AT_LEAST_ONE, default=1)
    shuffle: bool = param(
        "Whether `fit` shows them in random order, new in each pass.", "boolean", default=True
    )
    random_state: int | np.random.RandomState | None = param(
        "Seed or generator (as in scikit-learn) of that order.", "random_state", default=None
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
