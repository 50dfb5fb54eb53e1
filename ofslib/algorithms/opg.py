"""Online Proximal Gradient, also called FOBOS: Duchi and Singer 2009; OPG in sfsa, dissertation.

A gradient step, then shrinkage by the penalty l1 |w| + l2/2 w**2.
"""

import numpy as np

from ofslib.kernels.fobos import (
    Hyper,
    coefficients,
    fold,
    late,
    new_state,
    settle,
    step,
    step_all,
)
from ofslib.streams.automatic import STEP, Automatic
from ofslib.streams.parameters import NOT_NEGATIVE, estimator, param
from ofslib.streams.penalised import PenalisedBatches
from ofslib.streams.row_stream import RowClassifier, RowRegressor


@estimator
class OPG(Automatic, PenalisedBatches):
    """Online Proximal Gradient."""

    about = (
        "With a small `k` the features are those that the last mini-batch moved most, whatever the "
        "step: larger ones of `batch_size` help. "
    ) + PenalisedBatches.about

    l2: float = param("Weight of the penalty w**2 / 2.", NOT_NEGATIVE, default=0.0)
    learning_rate: float | str = STEP

    fold, step, step_all, late, hyper = fold, step, step_all, late, Hyper
    coefficients, _new_one = coefficients, staticmethod(new_state)
    frozen = ("l2", "learning_rate")

    def _read_hyper(self, n_rows):
        own = super()._read_hyper(n_rows, factor=1.0, theta=np.inf, period=1)
        return self._with_factor(own)

    def _with_factor(self, hyper):
        return hyper._replace(factor=1.0 / (1.0 + hyper.learning_rate * self.l2))

    def _in_units(self, hyper, mean, heaviest):
        return self._with_factor(super()._in_units(hyper, mean, heaviest))

    def _settle(self, state, mean):
        settle(state, self._hyper_at(state))


@estimator
class OPGClassifier(RowClassifier, OPG):
    """Online Proximal Gradient (FOBOS) for classification (Duchi and Singer 2009)."""


@estimator
class OPGRegressor(RowRegressor, OPG):
    """Online Proximal Gradient (FOBOS) for regression (Duchi and Singer 2009)."""
