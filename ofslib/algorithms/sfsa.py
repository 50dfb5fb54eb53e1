"""Stochastic Feature Selection with Annealing: sfsa, Algorithm 1; dissertation, Section 2.1.

Mini-batch gradient descent on the features that are still in the model; after step t only the
M_t most important ones stay, M_t falling from p to k.
"""

from enum import IntEnum
from typing import NamedTuple

import numpy as np

from ofslib import select
from ofslib._jit import kernel
from ofslib.base import (
    AT_LEAST_ONE,
    NOT_NEGATIVE,
    POSITIVE,
    WHOLE,
    RowClassifier,
    RowRegressor,
    RowStream,
    batches,
    estimator,
    one_of,
    param,
)
from ofslib.descent import gather
from ofslib.losses import CLASSIFICATION_LOSSES, Loss
from ofslib.rows import (
    Active,
    Batch,
    Moments,
    clear,
    in_batch,
    new_active,
    new_batch,
    new_moments,
    row,
    watch,
)
from ofslib.select import Importance, annealed, best_model, prune


class Optimizer(IntEnum):
    """Codes of the optimizers; the papers call nesterov SFSA-AG and adam SFSA-Adam."""

    sgd = 0
    momentum = 1
    nesterov = 2
    adam = 3


SGD, MOMENTUM, NESTEROV, ADAM = (int(code) for code in Optimizer)


class Hyper(NamedTuple):
    k: int
    loss: int
    optimizer: int
    learning_rate: float
    momentum: float
    batch_size: int
    importance: int
    mu: float
    warmup: int  # steps before pruning starts
    maturity: int  # steps until k features are left; 0: never prune
    intercept: float  # 1.0 or 0.0


class State(NamedTuple):
    w: np.ndarray  # (p + 1,) coefficients and intercept
    v: np.ndarray  # (p + 1,) velocity (Adam: mean gradient), or (1,) for sgd
    ahead: np.ndarray  # (p + 1,) w + momentum * v (Adam: mean squared gradient), or (0,)
    active: Active
    batch: Batch
    moments: Moments
    steps: np.ndarray  # (1,) gradient steps made
    room: np.ndarray  # (2, p + 1) scratch of the selection


@kernel
def adam(w, g, mean, square, t, rate):
    """One coordinate of Adam's step t: new coefficient, mean gradient, mean squared gradient."""
    mean = 0.9 * mean + 0.1 * g
    square = 0.999 * square + 0.001 * g * g
    root = np.sqrt(square / (1.0 - 0.999**t)) + 1e-8
    return w - rate * mean / (1.0 - 0.9**t) / root, mean, square


@kernel
def descend(state, hp):
    """Change the coefficients by the mean gradient of the batch."""
    w, v, ahead, batch, active = state.w, state.v, state.ahead, state.batch, state.active
    g, rate, m = batch.gradient, hp.learning_rate, hp.momentum
    g[-1] /= batch.count[1]
    if hp.optimizer == SGD:
        scale = rate / batch.count[1]
        for j in in_batch(batch, active):
            w[j] -= scale * g[j]
        w[-1] -= rate * g[-1]
        return
    coordinates = active.index[: active.size[0]]
    for j in coordinates:
        g[j] /= batch.count[1]
    for a in range(len(coordinates) + 1):
        j = len(w) - 1 if a == len(coordinates) else int(coordinates[a])
        if hp.optimizer == MOMENTUM:
            v[j] = m * v[j] - rate * g[j]
            w[j] += v[j]
        elif hp.optimizer == NESTEROV:
            # The form that reproduces SFSA-AG weighs the gradient by 1 - m: an average, no sum.
            v[j] = m * v[j] - (1.0 - m) * rate * g[j]
            w[j] += v[j]
            ahead[j] = w[j] + m * v[j]
        else:
            w[j], v[j], ahead[j] = adam(w[j], g[j], v[j], ahead[j], state.steps[0] + 1, rate)


@kernel
def anneal(state, hp):
    """Keep the M_t most important features, once the warm-up is over."""
    t, active, p = state.steps[0] - hp.warmup, state.active, len(state.active.index)
    if hp.maturity == 0 or t <= 0:
        return
    m = active.size[0]
    keep = annealed(t, hp.maturity - hp.warmup, p, min(hp.k, p), hp.mu)
    prune(state.w, active, state.moments, hp.importance, keep, state.room)
    if hp.optimizer != SGD:
        for j in active.index[keep:m]:
            state.v[j] = 0.0
            state.ahead[j] = 0.0


@kernel
def advance(state, hp):
    """One gradient step with the rows of the batch, and the pruning after it."""
    descend(state, hp)
    clear(state.batch, state.active)
    state.steps[0] += 1
    anneal(state, hp)


@kernel
def step(state, x, y, hp):
    """Show one observation; returns the prediction made before it."""
    point = state.ahead if hp.optimizer == NESTEROV else state.w
    active, batch = state.active, state.batch
    margin = gather(batch, x, y, point, active, active, hp.loss, hp.intercept)
    if hp.importance != select.COEF and np.isfinite(margin):
        watch(state.moments, x)
    if batch.count[1] >= hp.batch_size:
        advance(state, hp)
    return margin


@kernel
def fold(state, X, y, order, hp, margins):
    """Show the rows `order` of X, as `RowStream` asks for."""
    for i in range(len(order)):
        margins[i] = step(state, row(X, order[i]), y[order[i]], hp)
        if not np.isfinite(margins[i]):
            return i
    return len(order)


@estimator
class SFSA(RowStream):
    """Stochastic Feature Selection with Annealing."""

    learning_rate: float = param(0.01, "Step size eta of a mini-batch's mean gradient.", POSITIVE)
    batch_size: int = param(25, "Rows of a mini-batch.", AT_LEAST_ONE)
    optimizer: str = param(
        "sgd",
        "nesterov is the papers' SFSA-AG, adam (with decay rates 0.9 and 0.999) SFSA-Adam.",
        one_of(*Optimizer.__members__),
    )
    momentum: float = param(0.9, "Of the optimizers momentum and nesterov.", NOT_NEGATIVE)
    mu: float = param(10.0, "Annealing: the larger, the earlier features go.", NOT_NEGATIVE)
    maturity: int | None = param(
        None,
        "Rows until only k features are left. None: all rows of `fit`; in `partial_fit`, where the "
        "end is not known, no feature is dropped for good and coef_ shows the k most important.",
        AT_LEAST_ONE,
        None,
    )
    warmup: int = param(0, "Rows before pruning starts.", WHOLE)
    importance: str = param(
        "coef",
        "What features are ranked by: coef is |beta|, scaled_coef sd * |beta| (sfsa, Algorithm 2), "
        "scaled_root sqrt(variance * |beta|) (sfsa, Algorithm 1 as printed).",
        one_of(*Importance.__members__),
    )

    fold = fold
    frozen = ("optimizer", "importance")

    def _init(self, n_features):
        p, sgd = n_features, self.optimizer == "sgd"
        return State(
            w=np.zeros(p + 1),
            v=np.zeros(1 if sgd else p + 1),
            ahead=np.zeros(1 if sgd else p + 1),
            active=new_active(p),
            batch=new_batch(p),
            moments=new_moments(1 if self.importance == "coef" else p),
            steps=np.zeros(1, np.int64),
            room=np.empty((2, p + 1)),
        )

    def _hyper(self, n_rows):
        maturity = n_rows if self.maturity is None else self.maturity
        if maturity is not None and self.warmup >= maturity:
            raise ValueError(
                f"warmup={self.warmup} rows must be less than maturity={maturity} rows, "
                "by which only k features are left."
            )
        return Hyper(
            k=int(self.k),
            loss=int(Loss[self.loss]),
            optimizer=int(Optimizer[self.optimizer]),
            learning_rate=float(self.learning_rate),
            momentum=float(self.momentum),
            batch_size=int(self.batch_size),
            importance=int(Importance[self.importance]),
            mu=float(self.mu),
            warmup=int(self.warmup // self.batch_size),
            maturity=batches(maturity, self.batch_size),
            intercept=float(self.fit_intercept),
        )

    def _finish(self, state, hyper):
        if state.batch.count[1]:
            advance(state, hyper)

    def _model(self, state, hyper):
        return best_model(state.w, state.active, state.moments, hyper.importance, hyper.k)


@estimator
class SFSAClassifier(RowClassifier, SFSA):
    """Stochastic Feature Selection with Annealing for two classes (sfsa, Algorithm 1).

    Mini-batch gradient descent, in the course of which the number of features falls from all of
    them to `k`. Cost: O(entries of the row) per row and O(features left) per mini-batch.
    """

    loss: str = param("log_loss", "The paper uses log_loss.", one_of(*CLASSIFICATION_LOSSES))
    mu: float = param(5.0, "Annealing: the larger, the earlier features go.", NOT_NEGATIVE)


@estimator
class SFSARegressor(RowRegressor, SFSA):
    """Stochastic Feature Selection with Annealing for regression (sfsa, Algorithm 1).

    Mini-batch gradient descent on half the squared error, in the course of which the number of
    features falls from all of them to `k`. Cost: O(entries of the row) per row and O(features
    left) per mini-batch.
    """

    loss: str = param("squared_error", "Half the squared error.", one_of("squared_error"))
