"""Budgeted Adaptive Regularized Dual Averaging: barda, Algorithm 1 with phi = alpha/2 |w|^2.

After t rows the coefficients are z_j = -eta G_j / (alpha eta t + H_j), where G_j is the sum of the
gradients and H_j = delta + (sum of their squares)**(1/2), for the k features with the largest
H_j z_j**2. The iterates are exact, yet a row costs what its nonzeros cost: H_j z_j**2 falls with t
as long as feature j does not occur, so that a value computed earlier is an upper bound. The
features without a coefficient lie in a heap by such bounds, and only what comes to its top is
computed anew.
"""

from typing import NamedTuple

import numpy as np

from ofslib._jit import kernel
from ofslib.kernels.heap import comes_first, sift
from ofslib.kernels.losses import Loss, slope
from ofslib.kernels.rows import entry, length, row
from ofslib.streams.automatic import AutomaticAdaptive
from ofslib.streams.parameters import NOT_NEGATIVE, estimator, param
from ofslib.streams.row_stream import RowClassifier, RowStream, coef_and_intercept


class Hyper(NamedTuple):
    k: int
    loss: Loss
    learning_rate: float
    decay: float  # alpha * eta
    delta: float
    intercept: float  # 1.0 or 0.0
    own: float  # step size of the intercept over eta; 0.0 without one
    largest: float  # a row of a larger |x|_1 is learned from as if scaled down to it


# A value that rises gets a bound above it, so that as it goes on to rise the heap stays as it is:
# where many rise a little with each row, that saves a quarter to two fifths of the time.
_SLACK = 1.25
# How many times the mean of |x|_1 a row may be, where the step is automatic.
_HEAVY = 2.0

# Positions in `State.size` and `State.floor`
HEAP, SUPPORT = range(2)
BOUND, SHRINK = range(2)


class State(NamedTuple):
    G: np.ndarray  # (p + 1,) sum of gradients; the last entry is the intercept's
    squares: np.ndarray  # (p + 1,) sum of squared gradients
    H: np.ndarray  # (p + 1,) delta + squares ** 0.5
    bound: np.ndarray  # (p,) upper bound of H_j z_j**2 / eta**2
    heap: np.ndarray  # (p,) int32: features seen that have no coefficient, by bound
    support: np.ndarray  # (k,) int32: features with a coefficient
    place: np.ndarray  # (p,) int32: 0 not seen; i + 1 at heap[i]; -i - 1 at support[i]
    size: np.ndarray  # (2,) int64: of the heap, of the support
    rows: np.ndarray  # (1,) int64
    floor: np.ndarray  # (2,) lower bound of the values in the support, and `shrink` back then
    unit: np.ndarray  # (4,) what an automatic step is taken from

    def within(self, p: int) -> bool:
        """Whether kernels stay within the arrays, of p features."""
        heap, k = self.heap, len(self.support)
        indices = np.concatenate([heap, self.support])
        in_use = (self.size >= 0) & (self.size <= (len(heap), k))
        places = (self.place >= -k) & (self.place <= len(heap))
        return bool(((indices >= 0) & (indices < p)).all() and in_use.all() and places.all())


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
        if not exact < bound[j]:
            return j
        bound[j] = exact
        sift(heap, state.place, bound, True, 0, state.size[HEAP])


@kernel
def least_position(state, shrink):
    """Position in the support of the feature that would go first; takes the floor anew."""
    G, H, bound, support, worst = state.G, state.H, state.bound, state.support, 0
    for i in range(state.size[SUPPORT]):
        j = support[i]
        bound[j] = value(G[j], H[j], shrink)
        if comes_first(bound, support[worst], j, True):
            worst = i
    state.floor[BOUND] = bound[support[worst]]
    state.floor[SHRINK] = shrink
    return worst


@kernel
def floor_now(floor, shrink, delta):
    """The floor today: no value in the support has fallen by more since it was taken."""
    fallen = (floor[SHRINK] + delta) / (shrink + delta)
    return floor[BOUND] * fallen * fallen * (1.0 - 1e-12)


@kernel
def truncate(state, shrink, hp):
    """Let the k features with the largest values have a coefficient."""
    bound, heap, support = state.bound, state.heap, state.support
    place, size = state.place, state.size
    while size[HEAP] > 0:
        full = size[SUPPORT] == len(support)
        floor = floor_now(state.floor, shrink, hp.delta)
        if full and bound[heap[0]] < floor:
            return
        j = top(state, shrink)
        if full:
            if bound[j] < floor:
                return
            i = least_position(state, shrink)
            if not comes_first(bound, j, support[i], True):
                return
            heap[0] = support[i]
        else:
            i = size[SUPPORT]
            size[SUPPORT] += 1
            size[HEAP] -= 1
            heap[0] = heap[size[HEAP]]
            state.floor[BOUND] = 0.0
        support[i] = j
        place[j] = -i - 1
        if size[HEAP] > 0:
            sift(heap, place, bound, True, 0, size[HEAP])


@kernel
def begin_anew(state, hp):
    """Let the k features have a coefficient that have the largest values with another step."""
    heap, bound, size, shrink = state.heap, state.bound, state.size, hp.decay * state.rows[0]
    for i in range(size[HEAP]):
        j = heap[i]
        bound[j] = value(state.G[j], state.H[j], shrink)
        sift(heap, state.place, bound, True, i, i + 1)
    state.floor[BOUND] = 0.0
    truncate(state, shrink, hp)


@kernel
def predict(state, x, hp):
    """w . x + intercept after the rows seen."""
    G, H, place, shrink, total = state.G, state.H, state.place, hp.decay * state.rows[0], 0.0
    for i in range(length(x)):
        j, v = entry(x, i)
        # The other features count for nothing, unless a value is not finite.
        total += v * (G[j] / (shrink + H[j]) if place[j] < 0 else 0.0)
    return -hp.learning_rate * (total + hp.own * G[-1] / H[-1])


@kernel
def within(x, largest):
    """What the row is to be multiplied by for |x|_1 to be at most this."""
    size = 0.0
    if largest < np.inf:
        for i in range(length(x)):
            _, v = entry(x, i)
            size += abs(v)
    return largest / size if size > largest else 1.0


@kernel
def learn(state, x, s, shrink, hp):
    """Take in the gradient s * x."""
    G, H, squares, bound = state.G, state.H, state.squares, state.bound
    heap, place, size, floor = state.heap, state.place, state.size, state.floor
    lowest = floor_now(floor, shrink, hp.delta)
    for i in range(length(x)):
        j, v = entry(x, i)
        g = s * v
        G[j] += g
        squares[j] += g * g
        H[j] = hp.delta + np.sqrt(squares[j])
        exact = value(G[j], H[j], shrink)
        if place[j] < 0:
            lowest = min(lowest, exact)
        elif exact > bound[j] or (place[j] == 0 and g != 0.0):
            # A value that has become smaller leaves its bound valid and the heap as it is.
            bound[j] = _SLACK * exact
            if place[j] == 0:
                size[HEAP] += 1
                heap[size[HEAP] - 1] = j
                place[j] = size[HEAP]
            sift(heap, place, bound, True, place[j] - 1, size[HEAP])
    floor[BOUND], floor[SHRINK] = lowest, shrink
    G[-1] += s * hp.intercept
    squares[-1] += s * s * hp.intercept
    H[-1] = hp.delta + np.sqrt(squares[-1])


@kernel
def fold(state, block, hp):
    """Show the rows of the block, as `RowStream` asks for."""
    X, y, order, margins = block
    for i in range(len(order)):
        x = row(X, order[i])
        margins[i] = predict(state, x, hp)
        # A row that is scaled down would hide that its loss is no number.
        if not np.isfinite(margins[i] * margins[i]):
            return i
        c = within(x, hp.largest)
        s = c * slope(hp.loss, c * margins[i], y[order[i]])
        state.rows[0] += 1
        shrink = hp.decay * state.rows[0]
        if s != 0.0:
            learn(state, x, s, shrink, hp)
        truncate(state, shrink, hp)
    return len(order)


@estimator
class BARDAClassifier(AutomaticAdaptive, RowClassifier, RowStream):
    """Budgeted Adaptive Regularized Dual Averaging for classification (barda, Algorithm 1).

    Frequent features learn slowly and rare ones fast; the k features with the largest
    H_j z_j^2, which weighs magnitude by frequency, have a coefficient (of equals the lower index).
    An automatic step is 2 over the mean of |x|_1: a row of this size whose features are all new is
    then just not made worse. A row of more than twice the mean is learned from as if scaled down to
    that: else the slopes of a few long rows, which the squared hinge does not bound, would decide.
    Cost: O(nonzeros of the row * log(features seen) + k) per row at most, mostly less.
    """

    alpha: float = param("Weight lambda of the penalty lambda/2 |w|^2.", NOT_NEGATIVE, default=1e-5)

    fold, hyper = fold, Hyper
    frozen = ("k", "learning_rate", "alpha", "delta")

    def _new_state(self, n_features):
        p, k = n_features, min(self.k, n_features)
        return State(
            *np.zeros((2, p + 1)),
            H=np.full(p + 1, float(self.delta)),
            bound=np.zeros(p),
            heap=np.zeros(p, np.int32),
            support=np.zeros(k, np.int32),
            place=np.zeros(p, np.int32),
            size=np.zeros(2, np.int64),
            rows=np.zeros(1, np.int64),
            floor=np.zeros(2),
            unit=np.zeros(4),
        )

    def _read_hyper(self, n_rows):
        own = {"own": float(self.fit_intercept), "largest": np.inf}
        # Of an automatic step times it: `_in_units`.
        own["decay"] = self.alpha * (1.0 if self._automatic else self.learning_rate)
        return super()._read_hyper(n_rows, **own)

    def _in_units(self, hyper, mean, heaviest):
        step, own = 2.0 / mean, hyper.intercept * mean / 2.0
        scaled = {"decay": hyper.decay * step, "own": own, "largest": _HEAVY * mean}
        return hyper._replace(learning_rate=step, **scaled)

    def _settle(self, state, mean):
        if mean > 0.0:
            begin_anew(state, self._in_units(self._hyper, mean, 0.0))

    def _model(self, state):
        hp, inside = self._hyper_at(state), np.zeros(len(state.G), bool)
        shrink = np.full(len(state.G), hp.decay * state.rows[0])
        inside[state.support[: state.size[SUPPORT]]] = inside[-1] = True
        shrink[-1] = 0.0  # The penalty is not on the intercept.
        w = -hp.learning_rate * state.G / (shrink + state.H)
        w[-1] *= hp.own
        return coef_and_intercept(np.where(inside, w, 0.0))
