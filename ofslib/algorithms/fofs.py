"""First-order Online Feature Selection: Wang et al. 2014; FOFS in sfsa, OFS in barda.

A gradient step with shrinkage, projection to a ball, and truncation to the k largest coefficients
after every step.
"""

import numpy as np

from ofslib.kernels.hard_threshold import Hyper, learn, new_state, step
from ofslib.kernels.losses import CLASSIFICATION_LOSSES
from ofslib.streams.automatic import RowScale
from ofslib.streams.parameters import AT_LEAST_ONE, NOT_NEGATIVE, POSITIVE, estimator, one_of, param
from ofslib.streams.row_stream import MiniBatches, RowClassifier


@estimator
class FOFSClassifier(RowClassifier, MiniBatches):
    """First-order Online Feature Selection for classification (Wang et al. 2014; OFS in barda).

    The coefficients lie in a ball of radius `radius_` = 1 / sqrt(alpha), and after each mini-batch
    the k largest are kept. Cost: O(entries of the row + k / batch_size) per row.
    """

    sources = "wang2014online"
    example = """
        >>> model = {name}(k=3, batch_size=100, n_passes=10, random_state=0)
        >>> model.fit(X, y).support_
        array([ 9, 19, 29])
    """

    loss: str = param("The papers use hinge.", one_of(*CLASSIFICATION_LOSSES), default="hinge")
    learning_rate: float | str = param(
        "Step size eta. auto: the paper's 0.2 for the hinge and rows of mean squared norm 1, "
        "divided by that of the rows so far; `alpha` is then for such rows too, and the unit of X "
        "does not matter.",
        POSITIVE,
        one_of("auto"),
        default="auto",
    )
    alpha: float = param("Weight lambda of the penalty lambda/2 |w|^2.", NOT_NEGATIVE, default=0.01)
    batch_size: int = param("Rows of a mini-batch; in sfsa 25.", AT_LEAST_ONE, default=1)

    learn, step, hyper = learn, step, Hyper
    _new_state, row_scale = staticmethod(new_state), RowScale()

    @property
    def radius_(self) -> float:
        """float
        Radius 1 / sqrt(alpha) of the ball that the coefficients lie in, in the unit of `alpha`."""
        return float("inf") if self.alpha == 0 else self.alpha**-0.5

    def _read_hyper(self, n_rows):
        return super()._read_hyper(n_rows, radius=self.radius_)

    def _scaled_hyper(self, hyper, mean, heaviest):
        step = 0.2 * super()._scaled_hyper(hyper, mean, heaviest).learning_rate
        scaled = {"alpha": hyper.alpha * mean, "radius": hyper.radius / np.sqrt(mean)}
        return hyper._replace(learning_rate=step, **scaled)
