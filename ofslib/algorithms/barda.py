"""Budgeted Adaptive Regularized Dual Averaging: barda, Algorithm 1 with phi = alpha/2 |w|^2.

    G = squares = 0
    for row t = 1, 2, ...:
        predict with w                                                                `predict`
        G <- G + gradient, squares <- squares + gradient**2                      `add_gradient`
        H = delta + squares**(1/2)                                               `add_gradient`
        z <- -eta G / (alpha eta t + H)                                      (1), `shrink + H`
        w <- z of the k features with the largest H z**2, else 0             (2), `truncate`

The intercept has no penalty: its own z is -eta G / H, and it is not counted in k.

The iterates are exact, yet a row costs what its nonzeros cost: H_j z_j**2 falls with t as long as
feature j does not occur, so that a value computed earlier is an upper bound. The features without
a coefficient lie in a heap by such bounds, and only what comes to its top is computed anew.
"""

from typing import NamedTuple

import numpy as np

from ofslib._jit import kernel
from ofslib.kernels.heap import comes_first, sift
from ofslib.kernels.losses import Loss, slope
from ofslib.kernels.rows import entry, length, row
from ofslib.streams.automatic import AUTOMATIC_STEP_PER_FEATURE, PER_FEATURE
from ofslib.streams.parameters import NOT_NEGATIVE, estimator, param
from ofslib.streams.row_stream import DELTA, SQUARED_HINGE, RowClassifier, RowStream


class Hyper(NamedTuple):
    k: int
    loss: Loss
    learning_rate: float
    decay: float  # alpha * eta
    delta: float
    intercept: float  # 1.0 or 0.0
    own: float  # step size of the intercept over eta; 0.0 without one
    largest: float  # a row of a larger |x|_1 is learned from as if scaled down to it


# How many times the mean of |x|_1 a row may be, where the step is automatic.
_CLIP_FACTOR = 2.0
# Of features with equal values the one with the lower index comes first.
LOW_INDEX = True


class State(NamedTuple):
    G: np.ndarray  # (p + 1,) sum of gradients; the last entry is the intercept's
    squares: np.ndarray  # (p + 1,) sum of squared gradients
    H: np.ndarray  # (p + 1,) delta + squares ** 0.5
    bound: np.ndarray  # (p,) upper bound of H_j z_j**2 / eta**2
    support: np.ndarray  # (k,) int32: features with a coefficient, which may be 0
    heap: np.ndarray  # (p - k,) int32: the others, the one with the largest bound on top
    place: np.ndarray  # (p,) int32: i + 1 at heap[i]; -i - 1 at support[i]
    rows: np.ndarray  # (1,) int64
    row_scale: np.ndarray  # (4,) `RowSizes`, for an automatic step

    def within(self, p: int) -> bool:
        """Whether kernels stay within the arrays, of p features."""
        order = np.concatenate([self.support, self.heap])
        known = ((order >= 0) & (order < p)).all()
        return bool(known and np.array_equal(self.place[order], places(len(self.support), p)))


def places(k: int, p: int) -> np.ndarray:
    """`State.place` of the k features of the support, then of those of the heap."""
    return np.concatenate([-1 - np.arange(k), 1 + np.arange(p - k)])


@kernel
def value(G, H, shrink):
    """H z**2 / eta**2 of one coordinate; shrink = alpha eta t."""
    return G * G * H / ((shrink + H) * (shrink + H))


@kernel
def top(state, shrink):
    """The feature with the largest value in the heap; its bound is then exact."""
    G, H, bound, heap = state.G, state.H, state.bound, state.heap
    while True:
        j = heap[0]
        exact = value(G[j], H[j], shrink)
        if not exact < bound[j]:  # also where it is no number
            return j
        bound[j] = exact
        sift(heap, state.place, bound, LOW_INDEX, 0, len(heap))


@kernel
def least(state, shrink):
    """Place in the support of the feature with the least value; all bounds there are then exact."""
    bound, support, worst = state.bound, state.support, 0
    for i in range(len(support)):
        j = support[i]
        bound[j] = value(state.G[j], state.H[j], shrink)
        if comes_first(bound, support[worst], j, LOW_INDEX):
            worst = i
    return worst


@kernel
def truncate(state, shrink):
    """Let the k features with the largest values have a coefficient."""
    bound, heap, support = state.bound, state.heap, state.support
    while len(heap) > 0:
        i = least(state, shrink)
        if bound[heap[0]] < bound[support[i]]:
            return
        j = top(state, shrink)
        if not comes_first(bound, j, support[i], LOW_INDEX):
            return
        heap[0], support[i], state.place[j] = support[i], j, -i - 1
        sift(heap, state.place, bound, LOW_INDEX, 0, len(heap))


@kernel
def truncate_anew(state, hp):
    """`truncate` after a change of the step, with which the bounds no longer hold."""
    heap, bound, shrink = state.heap, state.bound, hp.decay * state.rows[0]
    for i in range(len(heap)):
        j = heap[i]
        bound[j] = value(state.G[j], state.H[j], shrink)
        sift(heap, state.place, bound, LOW_INDEX, i, i + 1)  # heap[:i] is a heap already
    truncate(state, shrink)


@kernel
def predict(state, x, hp):
    """w . x + intercept after the rows seen."""
    G, H, place, shrink, total = state.G, state.H, state.place, hp.decay * state.rows[0], 0.0
    for i in range(length(x)):
        j, v = entry(x, i)
        # The others add 0.0 v, which is no number if v is not finite: `learn` then stops.
        total += v * (G[j] / (shrink + H[j]) if place[j] < 0 else 0.0)
    return -hp.learning_rate * (total + hp.own * G[-1] / H[-1])


@kernel
def scale_down(x, largest):
    """The factor, at most 1, by which |x|_1 is at most `largest`."""
    size = 0.0
    if largest < np.inf:
        for i in range(length(x)):
            _, v = entry(x, i)
            size += abs(v)
    return largest / size if size > largest else 1.0


@kernel
def add_gradient(state, x, s, shrink, hp):
    """Add the gradient s * x."""
    G, H, squares, bound = state.G, state.H, state.squares, state.bound
    heap, place = state.heap, state.place
    for i in range(length(x)):
        j, v = entry(x, i)
        g = s * v
        G[j] += g
        squares[j] += g * g
        H[j] = hp.delta + np.sqrt(squares[j])
        exact = value(G[j], H[j], shrink)
        # A value that has become smaller leaves its bound valid and the heap as it is.
        if place[j] > 0 and exact > bound[j]:
            bound[j] = exact
            sift(heap, place, bound, LOW_INDEX, place[j] - 1, len(heap))
    G[-1] += s * hp.intercept
    squares[-1] += s * s * hp.intercept
    H[-1] = hp.delta + np.sqrt(squares[-1])


@kernel
def learn(state, block, hp):
    """Learn the rows of the block; returns how many, as `RowStream` asks for."""
    X, y, order, margins = block
    for i in range(len(order)):
        x = row(X, order[i])
        margins[i] = predict(state, x, hp)
        # The square: scaled down, a row would hide that its loss overflows.
        if not np.isfinite(margins[i] * margins[i]):
            return i
        c = scale_down(x, hp.largest)
        s = c * slope(hp.loss, c * margins[i], y[order[i]])
        state.rows[0] += 1
        shrink = hp.decay * state.rows[0]
        if s != 0.0:
            add_gradient(state, x, s, shrink, hp)
        truncate(state, shrink)
    return len(order)


@estimator
class BARDAClassifier(RowClassifier, RowStream):
    """Budgeted Adaptive Regularized Dual Averaging for classification (barda, Algorithm 1).

    Frequent features learn slowly and rare ones fast; the k features with the largest
    H_j z_j^2, which weighs magnitude by frequency, have a coefficient (of equals the lower index).
    An automatic step is 2 over the mean of |x|_1: a row of this size whose features are all new
    moves its own margin by 2. A longer row than twice the mean is scaled down to twice the mean:
    else a few long rows would decide, as the squared hinge does not bound their slopes.
    Cost: O(nonzeros of the row * log(features seen) + k) per row at most, mostly less.
    """

    sources = "zhai2019online"

    loss: str = SQUARED_HINGE
    learning_rate: float | str = AUTOMATIC_STEP_PER_FEATURE
    delta: float = DELTA
    alpha: float = param("Weight lambda of the penalty lambda/2 |w|^2.", NOT_NEGATIVE, default=1e-5)

    learn, hyper, row_scale = learn, Hyper, PER_FEATURE
    frozen = ("k", "learning_rate", "alpha", "delta")

    def _new_state(self, n_features):
        p, k = n_features, min(self.k, n_features)
        return State(
            *np.zeros((2, p + 1)),
            H=np.full(p + 1, float(self.delta)),
            bound=np.zeros(p),
            support=np.arange(k, dtype=np.int32),
            heap=np.arange(k, p, dtype=np.int32),
            place=places(k, p).astype(np.int32),
            rows=np.zeros(1, np.int64),
            row_scale=np.zeros(4),
        )

    def _read_hyper(self, n_rows):
        own = {"own": float(self.fit_intercept), "largest": np.inf}
        # alpha eta; `_scaled_hyper` multiplies by an automatic eta
        own["decay"] = self.alpha * (1.0 if self._automatic else self.learning_rate)
        return super()._read_hyper(n_rows, **own)

    def _scaled_hyper(self, hyper, mean, heaviest):
        step, own = 2.0 / mean, hyper.intercept * mean / 2.0
        scaled = {"decay": hyper.decay * step, "own": own, "largest": _CLIP_FACTOR * mean}
        return hyper._replace(learning_rate=step, **scaled)

    def _rescale(self, state, mean):
        if mean > 0.0:
            truncate_anew(state, self._scaled_hyper(self._hyper, mean, 0.0))

    def _model(self, state):
        hp, G, H, w = self._hyper_at(state), state.G, state.H, np.zeros(len(state.G))
        j = state.support[G[state.support] != 0.0]  # the coefficients of others would be -0.0
        w[j] = -hp.learning_rate * G[j] / (hp.decay * state.rows[0] + H[j])
        return w[:-1], float(-hp.learning_rate * G[-1] / H[-1] * hp.own)
