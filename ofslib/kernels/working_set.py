"""The working set: the columns that a method has selected, and steps on their coefficients."""

from typing import NamedTuple

import numpy as np

from ofslib._jit import kernel
from ofslib.kernels.losses import curvature, slope
from ofslib.kernels.penalties import soft
from ofslib.kernels.rows import overwrite, within

# Positions in WorkingSet.size: columns in use, and the most that ever were.
IN_USE, PEAK = range(2)


class Columns(NamedTuple):
    """A block of features on arrival."""

    index: np.ndarray  # (b,) int64, the numbers of the features
    values: np.ndarray  # (b, n) float64
    shift: np.ndarray  # (b,) what was subtracted from the columns
    scale: np.ndarray  # (b,) what they were then divided by; 0 for a constant column


class WorkingSet(NamedTuple):
    """Selected columns and their coefficients; the slots in use come first, in no order."""

    index: np.ndarray  # (capacity,) int64
    values: np.ndarray  # (capacity, n) float64
    shift: np.ndarray  # (capacity,)
    scale: np.ndarray  # (capacity,)
    w: np.ndarray  # (capacity,) coefficients of the values
    size: np.ndarray  # (2,) int64: IN_USE, PEAK

    def grown(self, other: "WorkingSet") -> "WorkingSet":
        """Empty slots for as many columns as another one has slots for, and no fewer than here."""
        return new_working_set(max(len(self.index), np.size(other.index)), self.values.shape[1])

    def within(self, p: int) -> bool:
        """Whether kernels stay within the arrays, of p features."""
        return within(self.index, self.size[IN_USE], p)


class ScanState(NamedTuple):
    """The state of the simplest methods."""

    working_set: WorkingSet
    margins: np.ndarray  # (n,) X w and the constant
    slopes: np.ndarray  # (n,) scratch


def new_working_set(capacity: int, n: int) -> WorkingSet:
    """Slots for so many columns of n rows, none in use."""
    if capacity * n > np.iinfo(np.intp).max // 8:
        raise ValueError(f"k={capacity - 1}: so many columns are more than a machine holds")
    parts = np.zeros(capacity, np.int64), np.zeros((capacity, n)), *np.zeros((3, capacity))
    return WorkingSet(*parts, np.zeros(2, np.int64))


def new_scan_state(capacity: int, n: int, offset: float) -> ScanState:
    """No column is selected; all margins are `offset`."""
    return ScanState(new_working_set(capacity, n), np.full(n, offset), np.zeros(n))


def with_capacity(working_set: WorkingSet, more: int) -> WorkingSet:
    """The same columns with capacity for `more` others at least."""
    capacity, used = len(working_set.index), int(working_set.size[IN_USE])
    if used + more <= capacity:
        return working_set
    # Doubled, so that all the copying takes no longer than the filling.
    larger = new_working_set(max(used + more, 2 * capacity), working_set.values.shape[1])
    for old, new in zip(working_set[:-1], larger[:-1], strict=True):
        new[:used] = old[:used]
    larger.size[:] = working_set.size
    return larger


def append(working_set: WorkingSet, columns: Columns) -> WorkingSet:
    """Add all columns of a block that are not constant, with coefficient 0."""
    varies = columns.scale > 0
    start = int(working_set.size[IN_USE])
    stop = start + np.count_nonzero(varies)
    working_set = with_capacity(working_set, stop - start)
    for part, new in zip(working_set[:4], columns, strict=True):
        part[start:stop] = new[varies]
    working_set.size[:] = stop
    return working_set


def largest_coefficients(working_set: WorkingSet, k: int | None) -> WorkingSet:
    """The k columns with the largest coefficients, or all that are not zero, as copies."""
    index, w = working_set.index, working_set.w
    used = np.flatnonzero(w[: working_set.size[IN_USE]])
    # Of two equal coefficients that of the feature with the lower number stays.
    order = used[np.lexsort((index[used], -np.abs(w[used])))][:k]
    size = np.array([len(order), working_set.size[PEAK]])
    return WorkingSet(*(part[order] for part in working_set[:-1]), size)


@kernel
def slot_of(working_set, j):
    """The slot of feature j; -1 if it has none."""
    for slot in range(working_set.size[IN_USE]):
        if working_set.index[slot] == j:
            return slot
    return -1


@kernel
def write(working_set, slot, columns, i, w):
    """Write column i, of a block or of the working set, into a slot, with coefficient w."""
    working_set.index[slot] = columns.index[i]
    overwrite(working_set.values[slot], columns.values[i])
    working_set.shift[slot] = columns.shift[i]
    working_set.scale[slot] = columns.scale[i]
    working_set.w[slot] = w


@kernel
def put(working_set, columns, i):
    """Write column i of a block, with coefficient 0, into the slot behind those in use."""
    slot = working_set.size[IN_USE]
    write(working_set, slot, columns, i, 0.0)
    return slot


@kernel
def smallest(w):
    """The slot of the smallest coefficient; the last one is that of the arrival."""
    # Of equals the arrival goes.
    found = len(w) - 1
    for slot in range(found):
        if abs(w[slot]) < abs(w[found]):
            found = slot
    return found


@kernel
def accept(working_set):
    """Take the slot behind those in use into use."""
    working_set.size[IN_USE] += 1
    working_set.size[PEAK] = max(working_set.size[PEAK], working_set.size[IN_USE])


@kernel
def move(working_set, source, slot):
    """Let one slot take the place of another."""
    write(working_set, slot, working_set, source, working_set.w[source])


@kernel
def drop(working_set, slot):
    """Take a slot out of use; the last one in use moves there."""
    working_set.size[IN_USE] -= 1
    if slot < working_set.size[IN_USE]:
        move(working_set, working_set.size[IN_USE], slot)


@kernel
def mean_slopes(loss, margins, y, slopes):
    """Write the gradient of the mean loss by the margins."""
    n = len(y)
    for i in range(n):
        slopes[i] = slope(loss, margins[i], y[i]) / n


@kernel
def coordinate_step(working_set, slot, loss, l1, margins, y, slopes):
    """Minimise mean loss + l1 |w| by one coefficient, the loss replaced by its majorant.

    The margins follow; the slopes are scratch. Returns the change.
    """
    mean_slopes(loss, margins, y, slopes)
    x, L, w = working_set.values[slot], curvature(loss), working_set.w[slot]
    new = soft(w - np.dot(x, slopes) / L, l1 / L)
    working_set.w[slot] = new
    for i in range(len(y)):
        margins[i] += (new - w) * x[i]
    return new - w
