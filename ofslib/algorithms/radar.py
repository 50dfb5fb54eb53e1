"""Regularization Annealed epoch Dual Averaging: Agarwal, Negahban and Wainwright 2012; in sfsa.

Dual averaging in epochs: within a ball of radius R around a centre, in the norm p of
p = 2 log d / (2 log d - 1), with the penalty l1 |w|. Each epoch begins at the mean of the last
one's iterates, takes twice as many steps, and divides R and l1 by the root of 2.
"""

import math
from typing import NamedTuple

import numpy as np

from ofslib._jit import REORDERED_SUMS, generic, kernel
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


# 2 atanh(s) / log 2 = s (LOG2[0] + LOG2[1] s^2 + ...), and 2^f = EXP2[0] + EXP2[1] f + ...
LOG2 = tuple(2.0 / ((2 * i + 1) * math.log(2)) for i in range(10))
EXP2 = tuple(math.log(2) ** i / math.factorial(i) for i in range(13))
# Of a number as it lies in memory: bits of the fraction; that of 1.0; how far 1.0 is from the
# root of 1/2; and of 2^52, to which whole numbers are added to be read as numbers.
SHIFT, FRACTION, ONE, HALF_WAY, WHOLE = map(
    np.uint64,
    (52, 0x000FFFFFFFFFFFFF, 0x3FF0000000000000, 0x00095F619980C433, 0x4330000000000000),
)
ROUND = 1.5 * 2.0**52  # that rounds to whole numbers what is added to it
TINY = 2.0**-1022  # the least number that has all its digits


@kernel
def logarithm(v):
    """e and log2(m) of v = m 2^e, 1/2 < m^2 < 2."""
    bits = np.float64(v).view(np.uint64)
    place = bits + HALF_WAY
    m = np.uint64(bits - ((place & ~FRACTION) - ONE)).view(np.float64)
    s = (m - 1.0) / (m + 1.0)
    z, total = s * s, LOG2[9]
    for i in (8, 7, 6, 5, 4, 3, 2, 1, 0):
        total = total * z + LOG2[i]
    return np.uint64((place >> SHIFT) | WHOLE).view(np.float64) - (1023.0 + 2.0**52), s * total


@kernel
def power_of_two(n):
    """2^n, for a whole number n from -1022 to 1023."""
    return np.uint64(np.float64(n + (1023.0 + 2.0**52)).view(np.uint64) << SHIFT).view(np.float64)


@generic(fastmath={"contract"})
def powers(v, largest, c, out):
    """out = (|v| / largest)^c for c >= 1, largest the largest |v|; right to some 1e-15 of each.

    Without calls and branches, so that several numbers are computed at once: a tenth of the time
    of `pow`. A |v| below TINY counts as 0, a power below it as about TINY.
    """
    return _powers


def _powers(v, largest, c, out):
    # c = coarse + fine, so that whole numbers times coarse have no rounding error.
    coarse = float(np.float32(c))
    fine, (top, top_log) = c - coarse, logarithm(largest)
    for i in range(len(v)):
        size = abs(v[i])
        e, log = logarithm(size)
        e -= top
        log = e * fine + c * (log - top_log)
        n = (e * coarse + log + ROUND) - ROUND
        f, power = (e * coarse - n) + log, EXP2[12]
        for t in (11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0):
            power = power * f + EXP2[t]
        out[i] = power * power_of_two(max(n, -1022.0)) if size >= TINY else 0.0


@generic(**REORDERED_SUMS)
def weighted_size(v, weights):
    """The sum of weights |v|."""
    return _weighted_size


def _weighted_size(v, weights):
    total = 0.0
    for j in range(len(v)):
        total += weights[j] * abs(v[j])
    return total


@kernel
def descend(dual, w, gradient, rows, l1):
    """Take the subgradient at w into the dual; returns its largest coordinate."""
    last, share, largest = len(w) - 1, 1.0 / rows, np.uint64(0)
    for j in range(last):
        sign = (1.0 if w[j] > 0.0 else 0.0) - (1.0 if w[j] < 0.0 else 0.0)
        dual[j] += gradient[j] * share + l1 * sign
        # Whole numbers are in the same order, and compared several at once.
        largest = max(largest, np.float64(abs(dual[j])).view(np.uint64))
    dual[last] += gradient[last] * share
    largest = max(largest, np.float64(abs(dual[last])).view(np.uint64))
    return np.uint64(largest).view(np.float64)


@kernel
def move(state, size, radius, largest, d):
    """w <- argmin of size <dual, w> + |w - centre|_p**2 / (2 (p-1) R**2) within the ball."""
    w, dual, centre, total = state.w, state.dual, state.centre, state.total
    q = max(2.0 * np.log(d), 2.0)
    if largest > 0.0 or np.isnan(largest):
        powers(dual, largest, q - 1.0, w)
        norm = (weighted_size(dual, w) / largest) ** (1.0 / q)  # of dual / largest
        length = min(size * radius * norm * largest / (q - 1.0), 1.0) * radius
        length /= norm ** (q - 1.0)
        for j in range(len(w)):
            w[j] = centre[j] - np.copysign(length * w[j], dual[j])
            total[j] += w[j]
    else:
        total += w


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
def fold(state, block, hp):
    """Show the rows of the block, as `RowStream` asks for."""
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

    l1: float = param("Weight of the penalty |w| in the first epoch.", NOT_NEGATIVE, default=0.1)
    radius: float = param("Radius R of the first epoch.", POSITIVE, default=10.0)
    learning_rate: float = param("Step t of an epoch is eta / sqrt(t).", POSITIVE, default=0.1)
    epoch_size: int = param("Mini-batches of the first epoch.", AT_LEAST_ONE, default=50)

    fold, step, hyper = fold, step, Hyper
    frozen = ("epoch_size",)

    def _new_state(self, n_features):
        vectors, counts = np.zeros((4, n_features + 1)), np.zeros((2, 1), np.int64)
        return State(*vectors, *counts, new_active(n_features), new_batch(n_features))

    def _model(self, state):
        mean, unused = state.total / (state.steps[0] + 1), new_moments(1)
        return best_model(mean, state.all_features, unused, Importance.coef, self._hyper.k)
