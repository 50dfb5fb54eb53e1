"""A heap of features by a key that changes, so that the first one is at hand at any time."""

from ofslib._jit import kernel


@kernel
def comes_first(key, i, j, low_index):
    """Whether feature i comes before j: larger key; of equals the lower, or the higher, index."""
    return key[i] > key[j] or (key[i] == key[j] and (i < j) == low_index)


@kernel
def sift(heap, place, key, low_index, i, size):
    """Bring the feature at heap[i] to its place in heap[:size]; place[j] is i + 1 for heap[i] = j.

    Needed after a change of its key, up or down.
    """
    j = heap[i]
    while i > 0 and comes_first(key, j, heap[(i - 1) // 2], low_index):
        heap[i] = heap[(i - 1) // 2]
        place[heap[i]] = i + 1
        i = (i - 1) // 2
    heap[i] = j
    sink(heap, place, key, low_index, i, size)


@kernel
def sink(heap, place, key, low_index, i, size):
    """Bring the feature at heap[i] down to its place; from the last such i to 0: make a heap."""
    j = heap[i]
    while 2 * i + 1 < size:
        child = 2 * i + 1
        if child + 1 < size and comes_first(key, heap[child + 1], heap[child], low_index):
            child += 1
        if not comes_first(key, heap[child], j, low_index):
            break
        heap[i] = heap[child]
        place[heap[i]] = i + 1
        i = child
    heap[i] = j
    place[j] = i + 1
