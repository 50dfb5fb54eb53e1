"""A queue of the features that are pruned next, for plain steps that touch few features.

To rank all features after each step would take longer than the step. The least important ones wait
in a heap instead. A step updates the keys of the features that it touched, and the next one to be
pruned is on top.
"""

from typing import NamedTuple

import numpy as np

from ofslib._jit import generic, kernel
from ofslib.kernels.heap import sift, sink
from ofslib.kernels.optimizers import Optimizer
from ofslib.kernels.rows import ENTRIES_BEFORE, is_sparse
from ofslib.kernels.selection import Importance, kth_largest

# A queue is of use where a mini-batch has at most one entry for so many features of the model. It
# is filled with one of so many of them, at least. It changes the speed only.
SHARE = 16
DROPPED = -1  # the place of a feature that was dropped


class Queue(NamedTuple):
    """The least important features by |w|, the first to be dropped on top of a heap.

    Dropped features stand among the active ones, with w = 0, until `close`.
    """

    heap: np.ndarray  # (p,) uint32; the first `queued[0]` are in the queue
    place: np.ndarray  # (p,) int32: i + 1 for the feature at heap[i], 0 if not queued, or DROPPED
    key: np.ndarray  # (p + 1,) minus the importance of a queued feature
    queued: np.ndarray  # (1,) int64
    dropped: np.ndarray  # (1,) int64: features dropped since the last `close`
    bound: np.ndarray  # (1,) all features of at most this importance are queued; -1 if none is


@kernel
def new_queue(p, key):
    """An empty queue; p = 0 for one that is not used. `key` is a buffer of p + 1 numbers."""
    counts = np.zeros(1, np.int64), np.zeros(1, np.int64), np.full(1, -1.0)
    return Queue(np.empty(p, np.uint32), np.zeros(p, np.int32), key, *counts)


@generic(allocates=True)
def queue_for(state, X, n, hp):
    """A queue for the features that n rows of X prune; unused where it is of no use."""
    return _queue_for if is_sparse(X) else lambda state, X, n, hp: new_queue(0, state.scratch[1])


def _queue_for(state, X, n, hp):
    t, steps, p = state.steps[0], n // hp.batch_size, len(state.active.index)
    plain = hp.optimizer == Optimizer.sgd and not hp.automatic
    some_go = hp.maturity > 0 and t + steps > hp.warmup and hp.k < state.active.size[0]
    # To fill and to close a queue takes as long as some steps without one.
    used = plain and hp.importance == Importance.coef and some_go and steps >= SHARE
    return new_queue(p if used else 0, state.scratch[1])


@kernel(allocates=False)
def prunes(queue, state, touched, keep):
    """Prune to `keep` features after a step that touched some, if the queue is of use.

    Else it is closed. Where a mini-batch has few entries, the next one lists the features that it
    touches (`rows.add`). Else it would move the dropped ones, too, which stand among the active.
    """
    active = state.active
    m = active.size[0] - queue.dropped[0]
    few = len(queue.heap) > 0 and SHARE * state.batch.count[ENTRIES_BEFORE] < keep
    if few and SHARE * (m - keep) <= m:
        update_keys(queue, state.w, touched)
        prune(queue, state.w, active, keep, state.scratch[0])
        return True
    close(queue, active)
    return False


@kernel(allocates=False)
def importance(w, j):
    """|w_j|; what is not a number counts as infinite, as in `keep_top`."""
    return np.inf if np.isnan(w[j]) else abs(w[j])


@kernel(allocates=False)
def update_keys(queue, w, changed):
    """Queue these features, whose coefficients are new, by their importance now."""
    heap, place, queued = queue.heap, queue.place, queue.queued
    for j in changed:
        i, value = place[j] - 1, importance(w, j)
        if i >= 0 or value <= queue.bound[0]:
            queue.key[j] = -value
            if i < 0:
                i = queued[0]
                heap[i] = j
                queued[0] += 1
            sift(heap, place, queue.key, False, i, queued[0])


@kernel(allocates=False)
def prune(queue, w, active, keep, work):
    """Drop all but the `keep` most important features; `work` is a buffer of p numbers."""
    heap, place, key, queued = queue.heap, queue.place, queue.key, queue.queued
    while active.size[0] - queue.dropped[0] > keep:
        if queued[0] == 0 or -key[heap[0]] > queue.bound[0]:
            close(queue, active)
            fill(queue, w, active, keep, work)
        j = heap[0]
        active.cut[0] = -key[j]
        active.untouched[j] = False
        w[j] = 0.0
        place[j] = DROPPED
        queue.dropped[0] += 1
        queued[0] -= 1
        if queued[0] > 0:
            heap[0] = heap[queued[0]]
            sink(heap, place, key, False, 0, queued[0])


@kernel(allocates=False)
def fill(queue, w, active, keep, work):
    """Queue the least important features, those to be dropped now among them."""
    m, n = active.size[0], 0
    for a in range(m):
        work[a] = importance(w, active.index[a])
    cut = kth_largest(work, m, m - max(m - keep, m // SHARE) + 1)
    # Backwards: equals, as all those without a coefficient, then form a heap as they come.
    for a in range(m - 1, -1, -1):
        j = active.index[a]
        value = importance(w, j)
        if value <= cut:
            queue.heap[n], queue.key[j], queue.place[j] = j, -value, n + 1
            n += 1
    for i in range(n // 2, -1, -1):
        sink(queue.heap, queue.place, queue.key, False, i, n)
    queue.queued[0], queue.bound[0] = n, cut


@kernel(allocates=False)
def close(queue, active):
    """Empty the queue, and take the dropped features out of the active ones."""
    heap, place = queue.heap, queue.place
    for i in range(queue.queued[0]):
        place[heap[i]] = 0
    kept, dropped = 0, 0
    for a in range(active.size[0] if queue.dropped[0] > 0 else 0):
        j = active.index[a]
        active.index[kept] = heap[dropped] = j
        kept += place[j] != DROPPED
        dropped += place[j] == DROPPED
    for i in range(dropped):
        active.index[kept + i] = heap[i]
        place[heap[i]] = 0
    active.size[0] -= queue.dropped[0]
    queue.queued[0] = queue.dropped[0] = 0
    queue.bound[0] = -1.0
