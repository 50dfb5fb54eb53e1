"""Stochastic Gradient Descent with Truncation: sfsa, Algorithm 2; dissertation, Algorithm 2 (TSGD).

Mini-batch gradient descent on all features; at maturity the k most important ones are kept, and
descent goes on with these.
"""

from typing import NamedTuple

import numpy as np

from ofslib._jit import kernel, nth
from ofslib.kernels import rows
from ofslib.kernels.losses import Loss
from ofslib.kernels.minibatch import gather, pace
from ofslib.kernels.selection import Importance, add_squares, best_model, prune
from ofslib.streams.joint import JointClassifier
from ofslib.streams.parameters import AT_LEAST_ONE, POSITIVE, estimator, one_of, param
from ofslib.streams.row_stream import MiniBatches, RowRegressor, batches


class Hyper(NamedTuple):
    k: int
    loss: Loss
    learning_rate: float
    batch_size: int
    importance: Importance
    maturity: int  # steps until truncation; 0: never
    intercept: float  # 1.0 or 0.0


class State(NamedTuple):
    w: np.ndarray  # (p + 1,) coefficients and intercept
    active: rows.Active
    batch: rows.Batch
    moments: rows.Moments
    steps: np.ndarray  # (1,) gradient steps made
    scratch: np.ndarray  # (2, p + 1) of the selection


@kernel
def descend(state, hp):
    """One gradient step with the rows of the batch."""
    w, batch, active = state.w, state.batch, state.active
    batch.gradient[-1] *= pace(hp, state.steps[0] + 1, batch.curvature)
    rows.descend(w, batch, active, hp.learning_rate)
    rows.clear(batch, active)
    state.steps[0] += 1


@kernel
def truncate(state, ranked, hp):
    """Keep the k most important features."""
    w, active = state.w, state.active
    m, keep = active.size[0], min(hp.k, len(w) - 1)
    prune(ranked, active, state.moments, hp.importance, keep, state.scratch)
    for j in active.index[keep:m]:
        w[j] = 0.0


@kernel
def step(state, hp):
    """One gradient step with the rows of the batch; truncation at maturity."""
    descend(state, hp)
    if state.steps[0] == hp.maturity:
        truncate(state, state.w, hp)


@kernel
def step_together(states, hp):
    """A step of each of the stacked models; all keep the same features."""
    n, p = states.w.shape
    for c in range(n):
        descend(nth(states, c), hp)
    if states.steps[0, 0] == hp.maturity:
        norms = np.zeros(p)
        for c in range(n):
            state = nth(states, c)
            add_squares(norms, state.w, state.active)
        norms = np.sqrt(norms)
        for c in range(n):
            truncate(nth(states, c), norms, hp)


@kernel
def take(state, block, i, hp):
    """Take rows of the block from i on into the batch, as `gather`."""
    start = i
    i = gather(state.batch, block, i, hp, state.w, state.active, state.active)
    if hp.importance != Importance.coef:
        seen = block.order[start:i]
        rows.update_moments(state.moments, block.X, seen, block.y, False, state.active)
    return i


@kernel
def fold(state, block, hp):
    """Show the rows of the block, as `RowStream` asks for."""
    i = 0
    while i < len(block.order):
        i = take(state, block, i, hp)
        if state.batch.count[rows.ROWS] < hp.batch_size:
            break
        step(state, hp)
    return i


@kernel
def fold_together(states, block, hp):
    """The same for stacked models, which keep the same features."""
    X, y, order, margins = block
    done, n, count = 0, len(order), states.batch.count
    while done < n:
        start = done
        for c in range(len(y)):
            own = rows.Block(X, nth(y, c), order, nth(margins, c))
            done = take(nth(states, c), own, start, hp)
            if done < n and count[c, rows.ROWS] < hp.batch_size:
                return done
        if count[0, rows.ROWS] == hp.batch_size:
            step_together(states, hp)
    return n


@estimator
class SGDT(MiniBatches):
    """Stochastic Gradient Descent with Truncation."""

    about = "Cost: O(entries of the row) per row."

    learning_rate: float = param(
        "Step size eta of the mean gradient. With the inverse of the mean squared norm of the rows "
        "no row overshoots, unless it is far larger than most: begin there.",
        POSITIVE,
        default=0.01,
    )
    maturity: int | None = param(
        "Rows until truncation. None: all rows of `fit`; in `partial_fit`, where the end is not "
        "known, no feature is dropped for good and coef_ shows the k most important.",
        AT_LEAST_ONE,
        None,
        default=None,
    )
    importance: str = param(
        "What features are ranked by: coef is |beta|, scaled_coef sd * |beta| (sfsa, Algorithm 2 "
        "as printed), scaled_root sqrt(variance * |beta|).",
        one_of(*Importance.__members__),
        default="coef",
    )

    fold, step, hyper = fold, step, Hyper
    fold_together, step_together = fold_together, step_together
    frozen = ("importance",)

    def _new_state(self, n_features):
        return State(
            w=np.zeros(n_features + 1),
            active=rows.new_active(n_features),
            batch=rows.new_batch(n_features, reach=4),
            moments=rows.new_moments(1 if self.importance == "coef" else n_features),
            steps=np.zeros(1, np.int64),
            scratch=np.zeros((2, n_features + 1)),
        )

    def _read_hyper(self, n_rows):
        maturity = n_rows if self.maturity is None else self.maturity
        return super()._read_hyper(n_rows, maturity=batches(maturity, self.batch_size))

    def _left_for_good(self):
        return min(int(state.active.size[0]) for state in self._states)

    def _remedy(self):
        return "try 1 / the mean of |x|^2 as learning_rate (SFSA finds its steps itself)"

    def _learners(self, state):
        return [(state, self._hyper)]

    def _shown(self, state):
        hp = self._hyper
        return state.w, state.active, state.moments, hp.importance, hp.k, None

    def _model(self, state):
        return best_model(*self._shown(state))


@estimator
class SGDTClassifier(JointClassifier, SGDT):
    """Stochastic Gradient Descent with Truncation for classification (sfsa, Algorithm 2)."""


@estimator
class SGDTRegressor(RowRegressor, SGDT):
    """Stochastic Gradient Descent with Truncation for regression (sfsa, Algorithm 2)."""
