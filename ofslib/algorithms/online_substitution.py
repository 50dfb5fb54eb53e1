"""Online substitution: Yang et al. 2016 (`os`), Algorithm 1.

At most k columns are kept. Each arrival makes a gradient step on their coefficients and on its own,
and takes the place of the column with the smallest one if that lowers the objective enough.
"""

from numbers import Real
from typing import NamedTuple

import numpy as np

from ofslib._jit import kernel
from ofslib.kernels.losses import Loss
from ofslib.kernels.substitution import Hyper, lipschitz_constant, propose, take
from ofslib.kernels.working_set import WorkingSet, new_working_set, slot_of
from ofslib.streams.column_stream import ColumnScan
from ofslib.streams.parameters import AT_LEAST_ONE, estimator, number, param


class State(NamedTuple):
    working_set: WorkingSet  # k + 1 slots: one for the arrival
    margins: np.ndarray  # (n,) u = X w, and the constant
    lipschitz: np.ndarray  # (1,) L_F as far as it is known
    slopes: np.ndarray  # (n,) scratch


@kernel
def learn(state, columns, y, hp):
    """Show a block of columns."""
    working_set, margins, lipschitz, slopes = state
    for i in range(len(columns.index)):
        # A constant column says nothing.
        if columns.scale[i] == 0.0 or slot_of(working_set, columns.index[i]) >= 0:
            continue
        proposal = propose(working_set, lipschitz, margins, y, slopes, columns, i, hp)
        take(working_set, proposal)
        margins += proposal.change


@estimator
class OnlineSubstitution(ColumnScan):
    """Online substitution (Yang et al. 2016, Algorithm 1).

    The paper's Lipschitz constant L_F is not known before the columns are. It starts as that of
    k + 1 independent columns, (1 + sqrt((k + 1) / n))^2 times the largest curvature of the loss,
    and grows to the largest curvature that a step meets, so that with `step` <= 1 the objective
    never rises, however the columns are correlated.

    Cost: O(n k) per column; memory O(n k).
    """

    sources = "yang2016online"

    k: int = param("Number s of features kept.", AT_LEAST_ONE, default=10)
    step: float = param(
        "Step size eta times L_F. Theorem 1 needs less than 1; from 2 on steps may diverge.",
        number(Real, 0, 2, closed="neither"),
        default=0.98,
    )
    m: float = param("Divisor of the steps of kept features.", number(Real, 1), default=1.0)
    c: float = param(
        "A substitution must lower the objective by c (1 / (2 eta) - L_F / 2) |change of w|^2.",
        number(Real, 0, 1, closed="right"),
        default=0.1,
    )

    learn, hyper = learn, Hyper
    frozen = (*ColumnScan.frozen, "k")

    def _new_state(self, n):
        lipschitz = lipschitz_constant(int(Loss[self.loss]), int(self.k), n)
        working_set = new_working_set(int(self.k) + 1, n)
        return State(working_set, np.full(n, self._offset), np.array([lipschitz]), np.zeros(n))
