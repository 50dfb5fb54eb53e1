"""Online Proximal Gradient, also called FOBOS: Duchi and Singer 2009; OPG in sfsa, dissertation.

for mini-batch t = 1, 2, ...:
    w <- soft(w - eta * mean gradient, eta l1) / (1 + eta l2)        `fobos`, with period 1
"""

import numpy as np

from ofslib.kernels.fobos import Hyper, catch_up, learn, new_state, step
from ofslib.streams.automatic import STEP, RowScale
from ofslib.streams.parameters import NOT_NEGATIVE, estimator, param
from ofslib.streams.penalised import BATCH_SIZE, Penalised
from ofslib.streams.row_stream import RowClassifier, RowRegressor


@estimator
class OPG(Penalised):
    """Online Proximal Gradient."""

    sources = "duchi2009efficient"
    description = (
        "With a small `k` the features are those that the last mini-batch moved most, whatever the "
        "step: larger ones of `batch_size` help. "
    ) + Penalised.description
    example = """
        >>> model = {name}(k=3, batch_size=100, n_passes=10, random_state=0)
        >>> model.fit(X, y).support_
        array([ 9, 19, 29])
    """

    l2: float = param("Weight of the penalty w**2 / 2.", NOT_NEGATIVE, default=0.0)
    learning_rate: float | str = STEP
    batch_size: int = BATCH_SIZE

    learn, step, catch_up, hyper = learn, step, catch_up, Hyper
    ranks = False
    _state_of, row_scale = staticmethod(new_state), RowScale()
    frozen = ("l2", "learning_rate", "batch_size")

    def _read_hyper(self, n_rows):
        own = super()._read_hyper(n_rows, factor=1.0, theta=np.inf, period=1)
        return self._with_factor(own)

    def _with_factor(self, hyper):
        return hyper._replace(factor=1.0 / (1.0 + hyper.learning_rate * self.l2))

    def _scaled_hyper(self, hyper, mean, heaviest):
        return self._with_factor(super()._scaled_hyper(hyper, mean, heaviest))

    def _rescale(self, state, mean):
        self._catch_up_all(state)


@estimator
class OPGClassifier(RowClassifier, OPG):
    """Online Proximal Gradient (FOBOS) for classification (Duchi and Singer 2009)."""


@estimator
class OPGRegressor(RowRegressor, OPG):
    """Online Proximal Gradient (FOBOS) for regression (Duchi and Singer 2009)."""
