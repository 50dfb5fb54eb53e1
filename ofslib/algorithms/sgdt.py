"""Stochastic Gradient Descent with Truncation: sfsa, Algorithm 2; dissertation, Algorithm 2 (TSGD).

beta = 0; all p features are in the model
for each mini-batch t = 1, 2, ...:
    beta <- beta - eta * (mean gradient of the mini-batch)              `gather`, `descend`
    at t = T keep the k features with the largest |beta_j|              `truncate`
"""

from typing import NamedTuple

import numpy as np

from ofslib._jit import kernel
from ofslib.kernels import minibatch, rows, selection
from ofslib.kernels.losses import Loss
from ofslib.kernels.selection import Importance
from ofslib.streams import joint
from ofslib.streams.parameters import (
    AT_LEAST_ONE,
    POSITIVE,
    estimator,
    one_of,
    param,
)
from ofslib.streams.row_stream import JointClassifier, MiniBatches, RowRegressor


class Hyper(NamedTuple):
    k: int
    loss: Loss
    learning_rate: float
    batch_size: int
    importance: Importance
    maturity: int  # steps until truncation; 0: never
    every_step: bool  # truncate again after each later step
    different: int  # rows of the first pass: later ones tell nothing new of the noise
    intercept: float  # 1.0 or 0.0


class State(NamedTuple):
    w: np.ndarray  # (p + 1,) coefficients and intercept
    active: rows.Active
    batch: rows.Batch
    moments: rows.Moments  # of different rows, if features are ranked by them
    noise: np.ndarray  # (1, 3) of the coefficients
    steps: np.ndarray  # (1,) gradient steps made
    scratch: np.ndarray  # (2, p + 1) of the selection


@kernel
def learn(state, block, hp):
    """Algorithm 2 on the rows of a block, as `RowStream` asks for."""
    done, buffer = 0, np.empty(4)
    while done < len(block.order):
        done = gather(state, block, done, hp, buffer)
        if state.batch.count[rows.ROWS] < hp.batch_size:
            break
        step(state, hp)
    return done


@kernel
def gather(state, block, start, hp, buffer):
    """Add the gradients of rows from `start` on to the mini-batch, until it is full."""
    batch, active, squared_slopes = state.batch, state.active, state.batch.curvature[2]
    done = minibatch.gather_with(batch, block, start, hp, state.w, active, active, buffer)
    seen = block.order[start:done]
    if not selection.add_rows(state.moments, block.X, seen, block.y, hp, active):
        batch.curvature[2] = squared_slopes
    return done


@kernel
def descend(state, hp):
    """beta <- beta - eta * the mean gradient of the mini-batch."""
    batch, active = state.batch, state.active
    batch.gradient[-1] *= minibatch.pace(hp, state.steps[0] + 1, batch.curvature)
    state.noise[0, selection.PATH] += hp.learning_rate
    rows.descend(state.w, batch, active, hp.learning_rate)
    rows.clear(batch, active)
    state.steps[0] += 1


@kernel
def truncates(state, hp):
    """Whether features are dropped after this step."""
    t, T = state.steps[0], hp.maturity
    return hp.k < len(state.active.index) and (t > T > 0 if hp.every_step else t == T)


@kernel
def ranked_by(state, hp):
    """The coefficients that features are ranked by; updates their noise."""
    selection.update_noise(state, hp)
    return state.w


@kernel
def truncate(state, hp):
    """Keep the k features with the largest values in `scratch`, in the order of `active`."""
    active, m = state.active, state.active.size[0]
    selection.drop_least(state.w, active, hp.k, state.scratch)
    if hp.every_step:  # all features go on learning
        active.size[0] = m
        for j in range(m):
            active.index[j] = j
            active.untouched[j] = True


@kernel
def step(state, hp):
    """A step with the rows of the mini-batch, and the truncation after it."""
    descend(state, hp)
    if truncates(state, hp):
        coef, active, noise = ranked_by(state, hp), state.active, state.noise
        selection.rank(state.scratch[0], coef, active, state.moments, hp.importance, noise)
        truncate(state, hp)


@estimator
class SGDT(MiniBatches):
    """Stochastic Gradient Descent with Truncation."""

    sources = "sun_stochastic, sun2019online"
    description = "Cost: O(entries of the row) per row."

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
        "as printed), scaled_root sqrt(variance * |beta|), noise_aware |beta| without the noise in "
        "it.",
        one_of(*Importance.__members__),
        default="coef",
    )
    every_step: bool = param(
        "Truncate after every step beyond maturity, as sfsa lists Algorithm 2: all features go on "
        "learning, and one that was dropped may come back. False: once, at maturity; descent goes "
        "on with the features that are left.",
        "boolean",
        default=False,
    )

    learn, step, hyper = learn, step, Hyper
    lines = joint.Lines(gather, descend, truncates, ranked_by, truncate)
    frozen = ("importance", "every_step")

    def _new_state(self, n_features):
        return State(
            w=np.zeros(n_features + 1),
            active=rows.new_active(n_features),
            batch=rows.new_batch(n_features, dense_threshold=4),
            moments=selection.moments_for(self.importance, n_features),
            noise=np.zeros((1, 3)),
            steps=np.zeros(1, np.int64),
            scratch=np.zeros((2, n_features + 1)),
        )

    def _read_hyper(self, n_rows):
        maturity = (n_rows if self.maturity is None else self.maturity) or 0
        # Those of one pass; without an end all rows differ.
        different = 2**62 if n_rows is None else n_rows // int(self.n_passes)
        steps = -(-int(maturity) // int(self.batch_size))
        return super()._read_hyper(n_rows, different=different, maturity=steps)

    def _left_for_good(self):
        return min(int(state.active.size[0]) for state in self._states)

    def _remedy(self):
        return "try 1 / the mean of |x|^2 as learning_rate (SFSA finds its steps itself)"

    def _exposed(self, state):
        hp, state = self._hyper, state._replace(noise=state.noise.copy())
        selection.update_noise(state, hp)
        return state.w, state.active, state.moments, hp.importance, hp.k, None, state.noise

    def _model(self, state):
        return selection.best_model(*self._exposed(state))


@estimator
class SGDTClassifier(JointClassifier, SGDT):
    """Stochastic Gradient Descent with Truncation for classification (sfsa, Algorithm 2)."""


@estimator
class SGDTRegressor(RowRegressor, SGDT):
    """Stochastic Gradient Descent with Truncation for regression (sfsa, Algorithm 2)."""
