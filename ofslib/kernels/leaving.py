"""Features that leave the model a few at a time, where steps change the coefficients of few.

To rank all features after each step would cost more than the step. The least important ones wait
in a heap instead: the next to leave is at hand, and a step tells the heap what it has changed.

With momentum all coefficients move in each step. Of those that a step does not touch the motion is
made up for later (`coast`), and they wait by the least importance that they can come to meanwhile.
"""

from typing import NamedTuple

import numpy as np

from ofslib._jit import generic, kernel, kind
from ofslib.kernels import rows
from ofslib.kernels.heap import sift, sink
from ofslib.kernels.selection import kth_largest

# Less than one of so many features of the model is few; at least one of so many waits.
SHARE = 16
# Features coast where a mini-batch has at most one entry for so many of them: to make up for a step
# takes longer than to make it with those of all, by 1.3 to 1.9 times up to one in 120.
RARE = 150
# Positions in `Queue.count`, and the place of a feature that has left
WAITING, LEFT, COASTING, LOOKED_AT = range(4)
GONE = -1
# Rounding takes a coefficient past the sum of its motion by at most this share of it and of that
# sum, times 1 / (1 - momentum): some 37 / (1 - momentum) steps change it, by 1e-16 too much each.
_ROUNDED = 1e-14
# A velocity below it, without a gradient, is none: the least numbers times 0.9 are themselves.
_REST = 1e-290


class Queue(NamedTuple):
    """The features that leave next, by |coefficient|.

    Those that have left stand among the active ones, at 0, until `close`.
    """

    heap: np.ndarray  # (p,) uint32; `count[WAITING]` features, the first to leave on top
    place: np.ndarray  # (p,) int32: 0 does not wait; i + 1 at heap[i]; GONE has left
    key: np.ndarray  # (p + 1,) minus the importance of those that wait, or the least to come
    # (4,) int64: of those that wait, of those that have left, whether some coast, of those that
    # wait by the importance that they have now though they coast
    count: np.ndarray
    bound: np.ndarray  # (1,) all with an importance up to it wait; below 0 none does
    had: np.ndarray  # (p,) int64 the steps that a feature has made, while some coast; or (0,)
    looked_at: np.ndarray  # (p,) uint32: those `count[LOOKED_AT]`; or (0,)


class Still(NamedTuple):
    """Coefficients of which a step moves those that it touches."""

    w: np.ndarray  # (p + 1,)


class Moving(NamedTuple):
    """Coefficients that have momentum."""

    w: np.ndarray  # (p + 1,)
    v: np.ndarray  # (p + 1,) velocity: a step without a gradient adds momentum * v
    ahead: np.ndarray  # (p + 1,) w + momentum * v, if `looks_ahead`
    steps: np.ndarray  # (1,) made so far
    momentum: float
    looks_ahead: bool


@kernel
def new_queue(p, key, moving):
    """None waits; p = 0 for one that is not used. `key` is memory for as many numbers."""
    heap, place, m = np.empty(p, np.uint32), np.zeros(p, np.int32), p if moving else 0
    own = np.empty(m, np.int64), np.empty(m, np.uint32)
    return Queue(heap, place, key, np.zeros(4, np.int64), np.full(1, -1.0), *own)


@kernel(allocates=False)
def pushed(w, v, push, momentum):
    """A coefficient after a step with this push, and its velocity.

    A velocity that does not change the coefficient any more has come to rest.
    """
    v = momentum * v - push
    new = w + v
    # Without branches: a processor could not foresee which features have a push.
    rests = (push == 0.0) & _is_rest(w, new, v)
    return new, 0.0 if rests else v


@kernel(allocates=False)
def _is_rest(w, new, v):
    """Whether the velocity v, which has moved w to `new` without a push, is none."""
    return (new == w) | (abs(v) < _REST)


@kernel(allocates=False)
def _importance(w, j):
    """|w_j|; what is not a number counts as infinite, as in `keep_top`."""
    return np.inf if np.isnan(w[j]) else abs(w[j])


@generic
def least(coefs, j):
    """The least importance that feature j can have until it is touched."""
    return _least if kind(coefs) is Moving else lambda coefs, j: _importance(coefs.w, j)


def _least(coefs, j):
    now, v = _importance(coefs.w, j), abs(coefs.v[j])
    if not v > 0.0:
        return now
    if coefs.momentum >= 1.0:
        return 0.0
    slower = 1.0 - coefs.momentum
    reach = v * coefs.momentum / slower
    # Not max(0, it), which lets what is not a number pass.
    low = now - reach - _ROUNDED / slower * (now + reach)
    return low if low > 0.0 else 0.0


@generic
def coast(queue, coefs, j):
    """Make up for the steps in which feature j had no push, if any coasts."""
    return _coast if kind(coefs) is Moving else lambda queue, coefs, j: None


def _coast(queue, coefs, j):
    # While none coasts `had` says nothing, nor ever of features outside the model: these rest.
    if not queue.count[COASTING] or coefs.v[j] == 0.0:
        return
    w, v, steps = coefs.w[j], coefs.v[j], coefs.steps[0] - queue.had[j]
    queue.had[j] = coefs.steps[0]
    # As `pushed`; here, where steps depend on each other, a branch that is foreseen is faster.
    for _ in range(steps):
        v *= coefs.momentum
        old, w = w, w + v
        if _is_rest(old, w, v):
            v = 0.0
            break
    coefs.w[j], coefs.v[j] = w, v
    if coefs.looks_ahead:
        coefs.ahead[j] = w + coefs.momentum * v


@generic
def vanish(coefs, j):
    """Feature j leaves."""
    return _vanish if kind(coefs) is Moving else _vanish_still


def _vanish(coefs, j):
    coefs.w[j] = coefs.v[j] = coefs.ahead[j] = 0.0


def _vanish_still(coefs, j):
    coefs.w[j] = 0.0


@generic
def settle(queue, coefs, active):
    """No feature coasts any longer."""
    return _settle if kind(coefs) is Moving else lambda queue, coefs, active: None


def _settle(queue, coefs, active):
    for j in active.index[: active.size[0] * queue.count[COASTING]]:
        coast(queue, coefs, j)
    queue.count[COASTING] = 0


@generic
def may_coast(queue, coefs, batch, active):
    """Whether features coast that the mini-batch does not touch; if not, none does from now on."""
    return _may_coast if kind(coefs) is Moving else lambda queue, coefs, batch, active: False


def _may_coast(queue, coefs, batch, active):
    if len(queue.had) == 0 or rows.swept(batch):
        settle(queue, coefs, active)
        return False
    if not queue.count[COASTING]:
        for j in active.index[: active.size[0]]:
            queue.had[j] = coefs.steps[0]
    queue.count[COASTING] = 1
    return True


@generic
def have_moved(queue, coefs, touched):
    """These features have made the last step; if others coast, they have not."""
    return _have_moved if kind(coefs) is Moving else lambda queue, coefs, touched: None


def _have_moved(queue, coefs, touched):
    for j in touched[: len(touched) * queue.count[COASTING]]:
        queue.had[j] = coefs.steps[0]


@generic
def catch_up(queue, coefs, X, order):
    """No feature coasts that occurs in these rows of X."""
    if kind(coefs) is Moving and rows.is_sparse(X):
        return _catch_up
    return lambda queue, coefs, X, order: None


def _catch_up(queue, coefs, X, order):
    for r in order[: len(order) * queue.count[COASTING]]:
        for j in rows.row(X, r).indices:
            coast(queue, coefs, j)


@kernel(allocates=False)
def tell(queue, coefs, changed):
    """The coefficients of these features are new."""
    heap, place, key, count = queue.heap, queue.place, queue.key, queue.count
    for j in changed:
        i, value = place[j] - 1, least(coefs, j)
        if i >= 0 or value <= queue.bound[0]:
            key[j] = -value
            if i < 0:
                i = count[WAITING]
                heap[i] = j
                count[WAITING] += 1
            sift(heap, place, key, False, i, count[WAITING])


@kernel(allocates=False)
def leave(queue, coefs, active, keep, work):
    """All but the `keep` most important features leave; `work` takes a number for each."""
    heap, place, key, count = queue.heap, queue.place, queue.key, queue.count
    while active.size[0] - count[LEFT] > keep:
        if count[WAITING] == 0 or -key[heap[0]] > queue.bound[0]:
            close(queue, active)
            _open(queue, coefs, active, keep, work)
        j = heap[0]
        if look_at(queue, coefs, j):
            sink(heap, place, key, False, 0, count[WAITING])
            continue
        active.cut[0] = -key[j]
        active.fresh[j] = False
        vanish(coefs, j)
        place[j] = GONE
        count[LEFT] += 1
        count[WAITING] -= 1
        if count[WAITING] > 0:
            heap[0] = heap[count[WAITING]]
            sink(heap, place, key, False, 0, count[WAITING])
    look_away(queue, coefs)


@generic
def look_at(queue, coefs, j):
    """Write how important feature j is now; returns whether its key said less."""
    return _look_at if kind(coefs) is Moving else lambda queue, coefs, j: False


def _look_at(queue, coefs, j):
    coast(queue, coefs, j)
    now = _importance(coefs.w, j)
    if -queue.key[j] == now:
        return False
    queue.key[j] = -now
    queue.looked_at[queue.count[LOOKED_AT]] = j
    queue.count[LOOKED_AT] += 1
    return True


@generic
def look_away(queue, coefs):
    """Those that were looked at wait by their least importance again."""
    return _look_away if kind(coefs) is Moving else lambda queue, coefs: None


def _look_away(queue, coefs):
    heap, place, key, count = queue.heap, queue.place, queue.key, queue.count
    for j in queue.looked_at[: count[LOOKED_AT]]:
        if place[j] > 0:
            key[j] = -least(coefs, j)
            sift(heap, place, key, False, place[j] - 1, count[WAITING])
    count[LOOKED_AT] = 0


@kernel(allocates=False)
def _open(queue, coefs, active, keep, work):
    """Have the least important features wait, those that leave now among them."""
    m, n = active.size[0], 0
    for a in range(m):
        coast(queue, coefs, active.index[a])
        work[a] = _importance(coefs.w, active.index[a])
    cut = kth_largest(work, m, m - max(m - keep, m // SHARE) + 1)
    # Backwards: equals, as all those without a coefficient, then form a heap as they come.
    for a in range(m - 1, -1, -1):
        j = active.index[a]
        value = least(coefs, j)
        if value <= cut:
            queue.heap[n], queue.key[j], queue.place[j] = j, -value, n + 1
            n += 1
    for i in range(n // 2, -1, -1):
        sink(queue.heap, queue.place, queue.key, False, i, n)
    queue.count[WAITING], queue.count[LOOKED_AT], queue.bound[0] = n, 0, cut


@kernel(allocates=False)
def close(queue, active):
    """None waits any longer; those that have left are no longer among the active ones."""
    heap, place, count = queue.heap, queue.place, queue.count
    for i in range(count[WAITING]):
        place[heap[i]] = 0
    kept, left = 0, 0
    for a in range(active.size[0] if count[LEFT] > 0 else 0):
        j = active.index[a]
        active.index[kept] = heap[left] = j
        kept += place[j] != GONE
        left += place[j] == GONE
    for i in range(left):
        active.index[kept + i] = heap[i]
        place[heap[i]] = 0
    active.size[0] -= count[LEFT]
    count[WAITING] = count[LEFT] = 0
    queue.bound[0] = -1.0
