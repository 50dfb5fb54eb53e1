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
from ofslib.kernels.selection import (
    PATH,
    Importance,
    add_squares,
    best_model,
    drop_least,
    measure_noise,
    moments_for,
    new_noise,
    rank,
)
from ofslib.streams.joint import JointClassifier
from ofslib.streams.parameters import (
    AT_LEAST_ONE,
    POSITIVE,
    different_rows,
    estimator,
    one_of,
    param,
)
from ofslib.streams.row_stream import MiniBatches, RowRegressor, batches


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
def descend(state, hp):
    """One gradient step with the rows of the batch."""
    w, batch, active = state.w, state.batch, state.active
    batch.gradient[-1] *= pace(hp, state.steps[0] + 1, batch.curvature)
    state.noise[0, PATH] += hp.learning_rate
    rows.descend(w, batch, active, hp.learning_rate)
    rows.clear(batch, active)
    state.steps[0] += 1


@kernel
def is_due(t, p, hp):
    """Whether features are dropped after step t."""
    return hp.k < p and (hp.maturity < t and hp.maturity > 0 if hp.every_step else t == hp.maturity)


@kernel
def update_noise(state, hp):
    """Update the noise of the coefficients, if features are ranked by it."""
    if hp.importance == Importance.noise_aware:
        p, n = len(state.active.index), state.moments.rows[0]
        measure_noise(state.noise, state.batch.curvature, n, p, hp.k)


@kernel
def truncate(state, hp):
    """Keep the k features with the largest values in `scratch`, in the order of `active`."""
    w, active, m = state.w, state.active, state.active.size[0]
    drop_least(w, active, hp.k, state.scratch)
    if hp.every_step:  # all features go on learning
        active.size[0] = m
        for j in range(m):
            active.index[j] = j
            active.fresh[j] = True


@kernel
def step(state, hp):
    """One gradient step with the rows of the batch, and truncation where it is due."""
    descend(state, hp)
    if is_due(state.steps[0], len(state.active.index), hp):
        update_noise(state, hp)
        rank(state.scratch[0], state.w, state.active, state.moments, hp.importance, state.noise)
        truncate(state, hp)


@kernel
def step_together(states, hp):
    """A step of each of the stacked models; all keep the same features."""
    n, p = states.w.shape
    for c in range(n):
        descend(nth(states, c), hp)
    if is_due(states.steps[0, 0], p - 1, hp):
        norms, values, first = np.zeros(p), np.empty(p), nth(states, 0)
        for c in range(n):
            state = nth(states, c)
            add_squares(norms, state.w, state.active)
            update_noise(state, hp)
        noise = states.noise[:, 0]
        rank(values, np.sqrt(norms), first.active, first.moments, hp.importance, noise)
        for c in range(n):
            state = nth(states, c)
            rows.overwrite(state.scratch[0], values)
            truncate(state, hp)


@kernel
def take(state, block, i, hp):
    """Take rows of the block from i on into the batch, as `gather`."""
    start, squared_slopes = i, state.batch.curvature[2]
    i = gather(state.batch, block, i, hp, state.w, state.active, state.active)
    seen = block.order[start:i]
    if hp.importance == Importance.noise_aware:
        if state.moments.rows[0] < hp.different:
            rows.update_squares(state.moments, block.X, seen, state.active)
        else:
            state.batch.curvature[2] = squared_slopes
    elif hp.importance != Importance.coef:
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

    fold, step, hyper = fold, step, Hyper
    fold_together, step_together = fold_together, step_together
    frozen = ("importance", "every_step")

    def _new_state(self, n_features):
        return State(
            w=np.zeros(n_features + 1),
            active=rows.new_active(n_features),
            batch=rows.new_batch(n_features, reach=4),
            moments=moments_for(self.importance, n_features),
            noise=new_noise(),
            steps=np.zeros(1, np.int64),
            scratch=np.zeros((2, n_features + 1)),
        )

    def _read_hyper(self, n_rows):
        maturity = n_rows if self.maturity is None else self.maturity
        own = {"maturity": batches(maturity, self.batch_size)}
        return super()._read_hyper(n_rows, different=different_rows(self, n_rows), **own)

    def _left_for_good(self):
        return min(int(state.active.size[0]) for state in self._states)

    def _remedy(self):
        return "try 1 / the mean of |x|^2 as learning_rate (SFSA finds its steps itself)"

    def _learners(self, state):
        return [(state, self._hyper)]

    def _shown(self, state):
        hp, state = self._hyper, state._replace(noise=state.noise.copy())
        update_noise(state, hp)
        return state.w, state.active, state.moments, hp.importance, hp.k, None, state.noise

    def _model(self, state):
        return best_model(*self._shown(state))


@estimator
class SGDTClassifier(JointClassifier, SGDT):
    """Stochastic Gradient Descent with Truncation for classification (sfsa, Algorithm 2)."""


@estimator
class SGDTRegressor(RowRegressor, SGDT):
    """Stochastic Gradient Descent with Truncation for regression (sfsa, Algorithm 2)."""
