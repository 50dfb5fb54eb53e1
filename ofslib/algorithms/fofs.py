"""First-order Online Feature Selection: Wang et al. 2014; FOFS in sfsa, OFS in barda.

A gradient step with shrinkage, projection to a ball, and truncation to the k largest coefficients
after every step.
"""

from typing import NamedTuple

from ofslib._jit import kernel
from ofslib.kernels.hard_threshold import new_truncated, truncated_step
from ofslib.kernels.losses import CLASSIFICATION_LOSSES, Loss
from ofslib.kernels.minibatch import gather
from ofslib.streams.parameters import AT_LEAST_ONE, NOT_NEGATIVE, POSITIVE, estimator, one_of, param
from ofslib.streams.row_stream import RowClassifier


class Hyper(NamedTuple):
    k: int
    loss: Loss
    learning_rate: float
    alpha: float
    radius: float
    batch_size: int
    intercept: float  # 1.0 or 0.0


@kernel
def fold(state, X, y, order, hp, margins):
    """Show the rows `order` of X, as `RowStream` asks for."""
    w, kept, every, batch, i = state.w, state.kept, state.every, state.batch, 0
    while i < len(order):
        i = gather(batch, X, y, order, i, hp.batch_size, w, kept, every, hp, margins)
        if batch.count[1] >= hp.batch_size:
            truncated_step(state, hp.k, hp.learning_rate, hp.alpha, hp.radius)
        elif i < len(order):
            break
    return i


@estimator
class FOFSClassifier(RowClassifier):
    """First-order Online Feature Selection for two classes (Wang et al. 2014; OFS in barda).

    The coefficients lie in a ball of radius `radius_` = 1 / sqrt(alpha), and after each mini-batch
    the k largest are kept. Cost: O(entries of the row + k / batch_size) per row.
    """

    loss: str = param("The papers use hinge.", one_of(*CLASSIFICATION_LOSSES), default="hinge")
    learning_rate: float = param("Step size eta.", POSITIVE, default=0.2)
    alpha: float = param("Weight lambda of the penalty lambda/2 |w|^2.", NOT_NEGATIVE, default=0.01)
    batch_size: int = param(
        "Rows of a mini-batch; the sfsa paper uses 25.", AT_LEAST_ONE, default=1
    )

    fold, hyper = fold, Hyper

    @property
    def radius_(self) -> float:
        """float
        Radius 1 / sqrt(alpha) of the ball that the coefficients lie in."""
        return float("inf") if self.alpha == 0 else self.alpha**-0.5

    def _init(self, n_features):
        return new_truncated(n_features)

    def _hyper(self, n_rows):
        return super()._hyper(n_rows, radius=self.radius_)

    def _finish(self, state, hp):
        if state.batch.count[1]:
            truncated_step(state, hp.k, hp.learning_rate, hp.alpha, hp.radius)

    def _model(self, state, hyper):
        return state.w[:-1].copy(), float(state.w[-1])
