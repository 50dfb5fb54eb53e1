"""The columns that a method keeps while it scans the features, and steps on their coefficients."""

from typing import NamedTuple

import numpy as np

from ofslib._jit import kernel
from ofslib.kernels.losses import curvature, slope
from ofslib.kernels.penalties import soft


class Columns(NamedTuple):
    """A block of features on arrival, each with mean square 1 and, if centred, mean 0."""

    index: np.ndarray  # (b,) int64, the numbers of the features
    values: np.ndarray  # (b, n) float64
    shift: np.ndarray  # (b,) what was subtracted from the columns
    scale: np.ndarray  # (b,) what they were then divided by; 0 for a constant column


class Kept(NamedTuple):
    """Columns that are kept, with their coefficients; those in use come first, in no order."""

    index: np.ndarray  # (room,) int64
    values: np.ndarray  # (room, n) float64
    shift: np.ndarray  # (room,)
    scale: np.ndarray  # (room,)
    w: np.ndarray  # (room,) coefficients of the values
    size: np.ndarray  # (2,) int64: columns in use, and the most that ever were


class Scan(NamedTuple):
    """What the simplest methods remember of a scan."""

    kept: Kept
    margins: np.ndarray  # (n,) X w and the constant
    slopes: np.ndarray  # (n,) scratch


def new_kept(room: int, n: int) -> Kept:
    """Room for so many columns of n rows, none of it used."""
    parts = np.zeros(room, np.int64), np.zeros((room, n)), *np.zeros((3, room))
    return Kept(*parts, np.zeros(2, np.int64))


def new_scan(room: int, n: int, offset: float) -> Scan:
    """No column is kept; all margins are `offset`."""
    return Scan(new_kept(room, n), np.full(n, offset), np.zeros(n))


def with_room(kept: Kept, more: int) -> Kept:
    """The same columns with room for `more` others at least."""
    room, used = len(kept.index), int(kept.size[0])
    if used + more <= room:
        return kept
    # Doubled, so that all the copying takes no longer than the filling.
    larger = new_kept(max(used + more, 2 * room), kept.values.shape[1])
    for old, new in zip(kept[:-1], larger[:-1], strict=True):
        new[:used] = old[:used]
    larger.size[:] = kept.size
    return larger


def append(kept: Kept, columns: Columns) -> Kept:
    """Keep all columns of a block that are not constant, with coefficient 0."""
    varies = columns.scale > 0
    start = int(kept.size[0])
    stop = start + np.count_nonzero(varies)
    kept = with_room(kept, stop - start)
    for part, new in zip(kept[:4], columns, strict=True):
        part[start:stop] = new[varies]
    kept.size[:] = stop
    return kept


def largest(kept: Kept, k: int | None) -> Kept:
    """The k columns in use with the largest coefficients, or all that are not zero, as copies."""
    used = np.flatnonzero(kept.w[: kept.size[0]])
    # Of two equal coefficients that of the feature with the lower number stays.
    order = used[np.lexsort((kept.index[used], -np.abs(kept.w[used])))][:k]
    return Kept(*(part[order] for part in kept[:-1]), np.array([len(order), kept.size[1]]))


@kernel
def slot_of(kept, j):
    """Where feature j is kept; -1 if it is not."""
    for slot in range(kept.size[0]):
        if kept.index[slot] == j:
            return slot
    return -1


@kernel
def put(kept, slot, columns, i):
    """Write column i of a block into a slot, with coefficient 0."""
    kept.index[slot] = columns.index[i]
    kept.values[slot] = columns.values[i]
    kept.shift[slot] = columns.shift[i]
    kept.scale[slot] = columns.scale[i]
    kept.w[slot] = 0.0


@kernel
def clear_of(kept, slot, margins):
    """Take the column of a slot out of the margins."""
    w, x = kept.w[slot], kept.values[slot]
    for i in range(len(margins)):
        margins[i] -= w * x[i]


@kernel
def accept(kept):
    """Take the slot behind those in use into use."""
    kept.size[0] += 1
    kept.size[1] = max(kept.size[1], kept.size[0])


@kernel
def move(kept, source, slot):
    """Let one slot take the place of another."""
    kept.index[slot] = kept.index[source]
    kept.values[slot] = kept.values[source]
    kept.shift[slot] = kept.shift[source]
    kept.scale[slot] = kept.scale[source]
    kept.w[slot] = kept.w[source]


@kernel
def drop(kept, slot):
    """Take a slot out of use; the last one in use moves there."""
    kept.size[0] -= 1
    if slot < kept.size[0]:
        move(kept, kept.size[0], slot)


@kernel
def mean_slopes(loss, margins, y, slopes):
    """Write the gradient of the mean loss by the margins."""
    n = len(y)
    for i in range(n):
        slopes[i] = slope(loss, margins[i], y[i]) / n


@kernel
def coordinate_step(kept, slot, loss, l1, margins, y, slopes):
    """Minimise mean loss + l1 |w| by one coefficient, the loss replaced by its majorant.

    The slopes are those of the margins before; the margins follow. Returns the change.
    """
    x, bend, w = kept.values[slot], curvature(loss), kept.w[slot]
    new = soft(w - np.dot(x, slopes) / bend, l1 / bend)
    kept.w[slot] = new
    for i in range(len(y)):
        margins[i] += (new - w) * x[i]
    return new - w
