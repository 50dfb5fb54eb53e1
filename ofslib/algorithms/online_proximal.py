"""Proximal coordinate descent: a naive baseline of Yang et al. 2016 (`os`), Section 5.

Each arrival minimises loss and l1 penalty by its own coefficient alone; it stays if that is not 0.
"""

from typing import NamedTuple

from ofslib._jit import kernel
from ofslib.kernels.losses import Loss
from ofslib.kernels.working_set import IN_USE, accept, coordinate_step, drop, put, slot_of
from ofslib.streams.column_stream import PenalisedScan
from ofslib.streams.parameters import estimator


class Hyper(NamedTuple):
    loss: Loss
    l1: float


@kernel
def learn(state, columns, y, hp):
    """Show a block of columns."""
    working_set, margins, slopes = state
    for i in range(len(columns.index)):
        if columns.scale[i] == 0.0:
            continue
        slot = slot_of(working_set, columns.index[i])
        if slot < 0:
            slot = put(working_set, columns, i)
        coordinate_step(working_set, slot, hp.loss, hp.l1, margins, y, slopes)
        if slot == working_set.size[IN_USE]:
            if working_set.w[slot] != 0.0:
                accept(working_set)
        elif working_set.w[slot] == 0.0:
            drop(working_set, slot)


@estimator
class OnlineProximal(PenalisedScan):
    """Proximal coordinate descent on arrivals (Yang et al. 2016, Section 5).

    Cost: O(n + columns kept) per column; memory O(n columns kept), which nothing bounds.
    """

    sources = "yang2016online"
    learn, hyper = learn, Hyper
