"""Coordinate descent with projection: a naive baseline of Yang et al. 2016 (`os`), Section 5.

Each arrival minimises the loss by its own coefficient alone; then the k largest ones stay.
"""

from ofslib._jit import kernel
from ofslib.kernels.losses import Loss
from ofslib.kernels.working_set import (
    accept,
    clear_of,
    coordinate_step,
    mean_slopes,
    move,
    new_scan,
    put,
    slot_of,
)
from ofslib.streams.column_stream import ColumnScan
from ofslib.streams.parameters import AT_LEAST_ONE, estimator, param


@kernel
def fold(scan, columns, y, k, loss):
    """Show a block of columns."""
    kept, margins, slopes = scan.kept, scan.margins, scan.slopes
    for i in range(len(columns.index)):
        if columns.scale[i] == 0.0:
            continue
        mean_slopes(loss, margins, y, slopes)
        slot, size = slot_of(kept, columns.index[i]), kept.size[0]
        if slot >= 0:
            coordinate_step(kept, slot, loss, 0.0, margins, y, slopes)
            continue
        put(kept, size, columns, i)
        coordinate_step(kept, size, loss, 0.0, margins, y, slopes)
        if size < k:
            accept(kept)
            continue
        # Of equals the arrival goes.
        worst = size
        for slot in range(size):
            if abs(kept.w[slot]) < abs(kept.w[worst]):
                worst = slot
        clear_of(kept, worst, margins)
        if worst < size:
            move(kept, size, worst)


@estimator
class OnlineCoordinateDescent(ColumnScan):
    """Coordinate descent on arrivals, projected on k features (Yang et al. 2016, Section 5).

    Cost: O(n + k) per column; memory O(n k).
    """

    k: int = param("Number of features kept.", AT_LEAST_ONE, default=10)

    frozen = (*ColumnScan.frozen, "k")

    def _new(self, n, offset):
        return new_scan(int(self.k) + 1, n, offset)

    def _show(self, state, columns, y):
        fold(state, columns, y, int(self.k), int(Loss[self.loss]))
        return state
