"""Features that leave the model a few at a time, where steps change the coefficients of few.

To rank all features after each step would cost more than the step. The least important ones wait
in a heap instead: the next to leave is at hand, and a step tells the heap what it has changed.
"""

from typing import NamedTuple

import numpy as np

from ofslib._jit import kernel
from ofslib.kernels.heap import sift, sink
from ofslib.kernels.selection import kth_largest

# Less than one of so many features of the model is few; at least one of so many waits.
SHARE = 16
# Positions in `Queue.count`, and the place of a feature that has left
WAITING, LEFT = range(2)
GONE = -1


class Queue(NamedTuple):
    """The features that leave next, by |coefficient|.

    Those that have left stand among the active ones, at 0, until `close`.
    """

    heap: np.ndarray  # (p,) uint32; `count[WAITING]` features, the first to leave on top
    place: np.ndarray  # (p,) int32: 0 does not wait; i + 1 at heap[i]; GONE has left
    key: np.ndarray  # (p + 1,) minus the importance of those that wait
    count: np.ndarray  # (2,) int64: of those that wait, of those that have left
    bound: np.ndarray  # (1,) all with an importance up to it wait; below 0 none does


@kernel
def new_queue(p, key):
    """None waits; p = 0 for one that is not used. `key` is memory for as many numbers."""
    heap, place = np.empty(p, np.uint32), np.zeros(p, np.int32)
    return Queue(heap, place, key, np.zeros(2, np.int64), np.full(1, -1.0))


@kernel(allocates=False)
def _importance(w, j):
    """|w_j|; what is not a number counts as infinite, as in `keep_top`."""
    return np.inf if np.isnan(w[j]) else abs(w[j])


@kernel(allocates=False)
def tell(queue, w, changed):
    """The coefficients of these features are new."""
    heap, place, key, count = queue.heap, queue.place, queue.key, queue.count
    for j in changed:
        i, value = place[j] - 1, _importance(w, j)
        if i >= 0 or value <= queue.bound[0]:
            key[j] = -value
            if i < 0:
                i = count[WAITING]
                heap[i] = j
                count[WAITING] += 1
            sift(heap, place, key, False, i, count[WAITING])


@kernel(allocates=False)
def leave(queue, w, active, keep, work):
    """All but the `keep` most important features leave; `work` takes a number for each."""
    heap, place, key, count = queue.heap, queue.place, queue.key, queue.count
    while active.size[0] - count[LEFT] > keep:
        if count[WAITING] == 0 or -key[heap[0]] > queue.bound[0]:
            close(queue, active)
            _open(queue, w, active, keep, work)
        j = heap[0]
        active.cut[0] = -key[j]
        active.fresh[j], w[j] = False, 0.0
        place[j] = GONE
        count[LEFT] += 1
        count[WAITING] -= 1
        if count[WAITING] > 0:
            heap[0] = heap[count[WAITING]]
            sink(heap, place, key, False, 0, count[WAITING])


@kernel(allocates=False)
def _open(queue, w, active, keep, work):
    """Have the least important features wait, those that leave now among them."""
    m, n = active.size[0], 0
    for a in range(m):
        work[a] = _importance(w, active.index[a])
    cut = kth_largest(work, m, m - max(m - keep, m // SHARE) + 1)
    # Backwards: equals, as all those without a coefficient, then form a heap as they come.
    for a in range(m - 1, -1, -1):
        j = active.index[a]
        value = _importance(w, j)
        if value <= cut:
            queue.heap[n], queue.key[j], queue.place[j] = j, -value, n + 1
            n += 1
    for i in range(n // 2, -1, -1):
        sink(queue.heap, queue.place, queue.key, False, i, n)
    queue.count[WAITING], queue.bound[0] = n, cut


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
    count[:], queue.bound[0] = 0, -1.0
