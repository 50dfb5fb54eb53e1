"""Projected gradient descent on k features: the batch baseline Proj-GD of Yang et al. 2016 (`os`).

Iterative hard thresholding: a gradient step on all coefficients, of which the k largest stay.
"""

from numbers import Real
from typing import NamedTuple

import numpy as np

from ofslib.kernels.losses import Loss
from ofslib.kernels.substitution import curvature_along, lipschitz_constant
from ofslib.kernels.working_set import (
    IN_USE,
    WorkingSet,
    append,
    largest_coefficients,
    mean_slopes,
    new_working_set,
)
from ofslib.streams.column_stream import ColumnModel
from ofslib.streams.parameters import AT_LEAST_ONE, NOT_NEGATIVE, estimator, number, param


class State(NamedTuple):
    working_set: WorkingSet  # all columns


@estimator
class ProjectedGradientSelector(ColumnModel):
    """Projected gradient descent on k features (Yang et al. 2016, Section 3; Proj-GD).

    A batch method: it keeps all columns and learns when the model is first asked for. The
    Lipschitz constant starts as in `OnlineSubstitution` and grows to the largest curvature that a
    step meets; such a step is made again, so that with `step` <= 1 no step raises the objective.

    Cost: O(n p) per step; memory O(n p).
    """

    sources = "yang2016online"

    k: int = param("Number of features kept.", AT_LEAST_ONE, default=10)
    step: float = param(
        "Step size times Lipschitz constant.", number(Real, 0, 2, closed="neither"), default=0.98
    )
    n_iter: int = param("Most steps.", AT_LEAST_ONE, default=200)
    tol: float = param(
        "Steps end when one is no longer than this share of |w|.", NOT_NEGATIVE, default=1e-6
    )

    def _new_state(self, n):
        return State(new_working_set(self.n_features_in_, n))

    def _learn_block(self, state, block):
        return State(append(state.working_set, block))

    def _model_columns(self, state):
        y, used = self._y, state.working_set.size[IN_USE]
        A, loss = state.working_set.values[:used], int(Loss[self.loss])
        w, margins, slopes = np.zeros(used), np.full(len(y), self._offset), np.zeros(len(y))
        lipschitz = lipschitz_constant(loss, int(self.k), len(y))
        for _ in range(self.n_iter):
            mean_slopes(loss, margins, y, slopes)
            d, change, lipschitz = self._step(A, loss, w, A @ slopes, lipschitz)
            w, margins = w + d, margins + change
            if np.linalg.norm(d) <= self.tol * np.linalg.norm(w):
                break
        return largest_coefficients(state.working_set._replace(w=w), self.k)

    def _step(self, A, loss: int, w, g, lipschitz: float):
        """The change of w and of the margins, and the Lipschitz constant after it."""
        while True:
            new = w - self.step / lipschitz * g
            # Stable: of two equal coefficients that of the earlier column stays.
            new[np.argsort(-np.abs(new), kind="stable")[self.k :]] = 0.0
            d = new - w
            moved = np.flatnonzero(d)
            change = d[moved] @ A[moved]
            met = curvature_along(loss, change, d)
            if met <= lipschitz * (1 + 1e-9):
                return d, change, lipschitz
            lipschitz = met
