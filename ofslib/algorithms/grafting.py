"""Grafting: Perkins and Theiler 2003, Online feature selection using grafting, Section 3.

An arrival whose gradient is larger than the l1 penalty joins the model, which is then optimised
anew; what has a coefficient of 0 then leaves. What was refused comes back in the next scan only.
"""

from numbers import Real
from typing import NamedTuple

import numpy as np

from ofslib._jit import kernel
from ofslib.kernels.losses import Loss
from ofslib.kernels.working_set import (
    IN_USE,
    accept,
    coordinate_step,
    drop,
    mean_slopes,
    put,
    slot_of,
)
from ofslib.streams.column_stream import PenalisedScan
from ofslib.streams.parameters import AT_LEAST_ONE, estimator, number, param


class Hyper(NamedTuple):
    loss: Loss
    l1: float
    tol: float
    max_sweeps: int


@kernel
def optimise(state, y, hp):
    """Minimise the mean loss + l1 |w|_1 of the selected columns by coordinate descent."""
    working_set, margins, slopes = state
    for _ in range(hp.max_sweeps):
        largest, moved = 0.0, 0.0
        for slot in range(working_set.size[IN_USE]):
            change = coordinate_step(working_set, slot, hp.loss, hp.l1, margins, y, slopes)
            moved, largest = max(moved, abs(change)), max(largest, abs(working_set.w[slot]))
        if moved <= hp.tol * largest:
            break
    # Backwards: the last one takes the place of what goes.
    for slot in range(working_set.size[IN_USE] - 1, -1, -1):
        if working_set.w[slot] == 0.0:
            drop(working_set, slot)


@kernel
def learn(state, columns, y, hp):
    """Show a block of columns."""
    working_set, margins, slopes = state
    for i in range(len(columns.index)):
        if columns.scale[i] == 0.0 or slot_of(working_set, columns.index[i]) >= 0:
            continue
        mean_slopes(hp.loss, margins, y, slopes)
        if abs(np.dot(columns.values[i], slopes)) > hp.l1:
            put(working_set, columns, i)
            accept(working_set)
            optimise(state, y, hp)


@estimator
class Grafting(PenalisedScan):
    """Grafting of arrivals (Perkins and Theiler 2003).

    Cost: O(n) per column that is refused, O(n columns kept) per sweep for one that is tried;
    memory O(n columns kept), which nothing bounds.
    """

    sources = "perkins2003online"

    tol: float = param(
        "Sweeps end when no coefficient changes by more than this share of the largest.",
        number(Real, 0, closed="neither"),
        default=1e-4,
    )
    max_sweeps: int = param("Most sweeps after one arrival.", AT_LEAST_ONE, default=1000)

    learn, hyper = learn, Hyper
