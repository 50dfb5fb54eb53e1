"""Regularization Annealed epoch Dual Averaging: Agarwal, Negahban and Wainwright 2012; in sfsa.

Dual averaging in epochs: within a ball of radius R around a centre, in the norm p of
p = 2 log d / (2 log d - 1), with the penalty l1 |w|. Each epoch begins at the mean of the last
one's iterates, takes twice as many steps, and divides R and l1 by the root of 2.
"""

from typing import NamedTuple

import numpy as np

from ofslib._jit import kernel
from ofslib.kernels.losses import Loss
from ofslib.kernels.minibatch import gather
from ofslib.kernels.rows import ROWS, Active, Batch, clear, new_active, new_batch, new_moments
from ofslib.kernels.selection import Importance, best_model
from ofslib.streams.parameters import AT_LEAST_ONE, NOT_NEGATIVE, POSITIVE, estimator, param
from ofslib.streams.row_stream import MiniBatches, RowRegressor


class Hyper(NamedTuple):
    k: int
    loss: Loss
    l1: float
    radius: float
    learning_rate: float
    epoch_size: int
    batch_size: int
    intercept: float  # 1.0 or 0.0


class State(NamedTuple):
    w: np.ndarray  # (p + 1,) the iterate; the last entry is the intercept
    centre: np.ndarray  # (p + 1,) of the epoch
    dual: np.ndarray  # (p + 1,) sum of the subgradients of the epoch
    total: np.ndarray  # (p + 1,) sum of the iterates of the epoch, the centre among them
    steps: np.ndarray  # (1,) int64: of the epoch
    epochs: np.ndarray  # (1,) int64: ended
    all_features: Active
    batch: Batch


@kernel
def descend(dual, w, gradient, rows, l1):
    """Take the subgradient at w into the dual; returns its largest coordinate."""
    last, share, largest = len(w) - 1, 1.0 / rows, 0.0
    for j in range(len(w)):
        dual[j] += gradient[j] * share + (l1 * np.sign(w[j]) if j < last else 0.0)
        largest = max(abs(dual[j]), largest)
    return largest


@kernel
def move(state, size, radius, largest, d):
    """w <- argmin of size <dual, w> + |w - centre|_p**2 / (2 (p-1) R**2) within the ball."""
    w, dual, centre, total = state.w, state.dual, state.centre, state.total
    q, norm = max(2.0 * np.log(d), 2.0), 0.0
    if largest == 0.0:
        total += w
        return
    # Of dual / largest, whose powers cannot overflow
    for j in range(len(w)):
        share = abs(dual[j]) / largest
        w[j] = share ** (q - 1.0)
        norm += share * w[j]
    norm **= 1.0 / q
    length = min(size * radius * norm * largest / (q - 1.0), 1.0) * radius
    length /= norm ** (q - 1.0)
    for j in range(len(w)):
        w[j] = centre[j] - np.copysign(length * w[j], dual[j])
        total[j] += w[j]


@kernel
def step(state, hp):
    """One step with the rows of the batch; ends the epoch if it was the last."""
    w, dual, batch, steps, epochs = state.w, state.dual, state.batch, state.steps, state.epochs
    shrink = 0.5 ** (0.5 * epochs[0])
    largest = descend(dual, w, batch.gradient, batch.count[ROWS], hp.l1 * shrink)
    clear(batch, state.all_features)
    steps[0] += 1
    size = hp.learning_rate / np.sqrt(steps[0])
    move(state, size, hp.radius * shrink, largest, len(w) - 1 + hp.intercept)
    if steps[0] == hp.epoch_size * 2 ** epochs[0]:
        for j in range(len(w)):
            mean = state.total[j] / (steps[0] + 1)
            w[j], state.centre[j], state.total[j], dual[j] = mean, mean, mean, 0.0
        steps[0], epochs[0] = 0, epochs[0] + 1


@kernel
def learn(state, block, hp):
    """Learn the rows of the block; returns how many, as `RowStream` asks for."""
    batch, all_features, i = state.batch, state.all_features, 0
    while i < len(block.order):
        i = gather(batch, block, i, hp, state.w, all_features, all_features)
        if batch.count[ROWS] < hp.batch_size:
            break
        step(state, hp)
    return i


@estimator
class RADARRegressor(RowRegressor, MiniBatches):
    """Regularization Annealed epoch Dual Averaging (Agarwal, Negahban and Wainwright 2012).

    The model is the mean of the iterates of the epoch, of which the k largest coefficients are
    shown. Cost: O(entries of the row + p / batch_size) per row.
    """

    sources = "agarwal2012stochastic"

    l1: float = param("Weight of the penalty |w| in the first epoch.", NOT_NEGATIVE, default=0.1)
    radius: float = param("Radius R of the first epoch.", POSITIVE, default=10.0)
    learning_rate: float = param("Step t of an epoch is eta / sqrt(t).", POSITIVE, default=0.1)
    epoch_size: int = param("Mini-batches of the first epoch.", AT_LEAST_ONE, default=50)

    learn, step, hyper = learn, step, Hyper
    frozen = ("epoch_size",)

    def _new_state(self, n_features):
        vectors, counts = np.zeros((4, n_features + 1)), np.zeros((2, 1), np.int64)
        return State(*vectors, *counts, new_active(n_features), new_batch(n_features))

    def _model(self, state):
        mean, unused = state.total / (state.steps[0] + 1), new_moments(1)
        return best_model(mean, state.all_features, unused, Importance.coef, self._hyper.k)
