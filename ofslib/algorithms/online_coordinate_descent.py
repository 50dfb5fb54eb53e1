"""Coordinate descent with projection: a naive baseline of Yang et al. 2016 (`os`), Section 5.

Each arrival minimises the loss by its own coefficient alone; then the k largest ones stay.
"""

from typing import NamedTuple

from ofslib._jit import kernel
from ofslib.kernels.losses import Loss
from ofslib.kernels.working_set import (
    accept,
    coordinate_step,
    move,
    new_scan_state,
    put,
    slot_of,
    smallest,
)
from ofslib.streams.column_stream import ColumnScan
from ofslib.streams.parameters import AT_LEAST_ONE, estimator, param


class Hyper(NamedTuple):
    loss: Loss
    k: int


@kernel
def learn(state, columns, y, hp):
    """Show a block of columns."""
    working_set, margins, slopes = state
    for i in range(len(columns.index)):
        if columns.scale[i] == 0.0:
            continue
        slot = slot_of(working_set, columns.index[i])
        if slot >= 0:
            coordinate_step(working_set, slot, hp.loss, 0.0, margins, y, slopes)
            continue
        slot = put(working_set, columns, i)
        coordinate_step(working_set, slot, hp.loss, 0.0, margins, y, slopes)
        if slot < hp.k:
            accept(working_set)
            continue
        worst = smallest(working_set.w)
        margins -= working_set.w[worst] * working_set.values[worst]
        if worst < slot:
            move(working_set, slot, worst)


@estimator
class OnlineCoordinateDescent(ColumnScan):
    """Coordinate descent on arrivals, projected on k features (Yang et al. 2016, Section 5).

    Cost: O(n + k) per column; memory O(n k).
    """

    sources = "yang2016online"

    k: int = param("Number of features kept.", AT_LEAST_ONE, default=10)

    learn, hyper = learn, Hyper
    frozen = (*ColumnScan.frozen, "k")

    def _new_state(self, n):
        return new_scan_state(int(self.k) + 1, n, self._offset)
