"""Online Proximal Gradient, also called FOBOS: Duchi and Singer 2009; OPG in sfsa, dissertation.

A gradient step, then shrinkage by the penalty l1 |w| + l2/2 w**2.
"""

import numpy as np

from ofslib.kernels.fobos import Hyper, coefficients, fold, new_state, step, step_all
from ofslib.streams.parameters import NOT_NEGATIVE, POSITIVE, estimator, param
from ofslib.streams.penalised import PenalisedBatches
from ofslib.streams.row_stream import RowClassifier, RowRegressor


@estimator
class OPG(PenalisedBatches):
    """Online Proximal Gradient."""

    l2: float = param("Weight of the penalty w**2 / 2.", NOT_NEGATIVE, default=0.0)
    learning_rate: float = param("Step size eta of the mean gradient.", POSITIVE, default=0.01)

    fold, step, step_all, hyper = fold, step, step_all, Hyper
    coefficients, _new_one = coefficients, staticmethod(new_state)
    frozen = ("l2", "learning_rate")

    def _read_hyper(self, n_rows):
        factor = 1.0 / (1.0 + self.learning_rate * self.l2)
        return super()._read_hyper(n_rows, factor=factor, theta=np.inf, period=1)


@estimator
class OPGClassifier(RowClassifier, OPG):
    """Online Proximal Gradient (FOBOS) for classification (Duchi and Singer 2009)."""


@estimator
class OPGRegressor(RowRegressor, OPG):
    """Online Proximal Gradient (FOBOS) for regression (Duchi and Singer 2009)."""
