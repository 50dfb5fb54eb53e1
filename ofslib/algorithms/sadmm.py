"""Stochastic ADMM: Ouyang et al. 2013, Suzuki 2013 (OPG-ADMM); SADMM in dissertation, chapter 5.

Minimises loss(b) + l1 |w| subject to b = w with a linearised step for b:
b = (rho (w + u) + b / eta - gradient) / (rho + 1 / eta), w = soft(b - u, l1 / rho), u += w - b.
"""

from typing import NamedTuple

import numpy as np

from ofslib._jit import kernel
from ofslib.kernels.losses import Loss
from ofslib.kernels.minibatch import pace
from ofslib.kernels.penalties import soft
from ofslib.kernels.penalty_grid import TILE, begin_step, choose, gradient, new_grid
from ofslib.streams.parameters import POSITIVE, estimator, param
from ofslib.streams.penalised import PenalisedBatches
from ofslib.streams.row_stream import RowRegressor


class Hyper(NamedTuple):
    k: int
    loss: Loss
    learning_rate: float
    rho: float
    batch_size: int
    intercept: float  # 1.0 or 0.0


# Positions in `PenaltyGrid.memory`, whose W holds b: the sparse coefficients, and the sum of w - b
SPARSE, DUAL = range(2)


@kernel
def step_all(grid, hp):
    """One step for each penalty; returns whether all is finite."""
    eta, rho, l1, nonzeros = hp.learning_rate, hp.rho, grid.l1, grid.nonzeros
    W, U = grid.memory[SPARSE], grid.memory[DUAL]
    if not begin_step(grid, hp.loss, False):
        return False
    for start in range(0, grid.n_features[0], TILE):
        features, gradients = gradient(grid, start)
        for i, j in enumerate(features):
            b, w, u, g = grid.W[j], W[j], U[j], gradients[i]
            if j == len(grid.W) - 1:
                b -= eta * pace(hp, grid.steps[0], grid.curvature[:, 0]) * g
                w[:] = b
                continue
            for q in range(len(l1)):
                b[q] = (rho * (w[q] + u[q]) + b[q] / eta - g[q]) / (rho + 1.0 / eta)
                w[q] = soft(b[q] - u[q], l1[q] / rho)
                u[q] += w[q] - b[q]
                nonzeros[q] += w[q] != 0.0
    choose(grid, W, hp.k)
    return True


@estimator
class SADMMRegressor(RowRegressor, PenalisedBatches):
    """Stochastic ADMM for regression (OPG-ADMM, Suzuki 2013)."""

    about = "Cost: O(p) per row with one penalty; O(p * n_penalties) per row with `k`."

    learning_rate: float = param("Step size eta of the mean gradient.", POSITIVE, default=1e-3)
    rho: float = param("Weight of the difference between b and w.", POSITIVE, default=1.0)

    step_all, arrays, hyper = step_all, 2, Hyper
    frozen = ("learning_rate", "rho")

    def _new_one(self, n_features):
        one = float(self.l1) or np.finfo(float).tiny
        return new_grid(n_features, int(self.batch_size), 1, (one, one), self.arrays)

    def _read_hyper(self, n_rows):
        return super()._read_hyper(n_rows, k=self.k or self.n_features_in_)

    def _columns(self, grid):
        return grid.memory[SPARSE]
