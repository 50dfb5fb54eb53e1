"""Adaptive FOBOS: Duchi, Hazan and Singer 2011, (25); Ada-Fobos in barda.

    w = squares = 0
    for row t = 1, 2, ...:
        squares <- squares + gradient**2
        H = delta + squares**(1/2)
        w <- soft(w - eta gradient / H, eta l1 / H)                             `move`

The shrinkage of a feature waits until the feature occurs again, so that a row costs what its
nonzeros cost. The intercept is a coefficient without a penalty.
"""

from typing import NamedTuple

import numpy as np

from ofslib._jit import kernel
from ofslib.kernels import grid
from ofslib.kernels.grid import AdaptiveHyper, Grid, like
from ofslib.kernels.penalties import soft
from ofslib.streams.parameters import estimator
from ofslib.streams.penalised import Penalised
from ofslib.streams.row_stream import (
    DELTA,
    SQUARED_HINGE,
    STEP_PER_FEATURE,
    RowClassifier,
)


class State(NamedTuple):
    grid: Grid
    squares: np.ndarray  # (p + 1, m) sum of squared gradients, for each penalty


@kernel(allocates=False)
def move(w, squares, g, l1, eta, delta, penalty):
    """Let one feature learn its gradients; `penalty` is 1.0, or 0.0 for the intercept."""
    eta, delta, penalty, zero = like(w, eta), like(w, delta), like(w, penalty), like(w, 0.0)
    for q in range(len(w)):
        squares[q] += g[q] * g[q]
        rate = eta / (delta + np.sqrt(squares[q]))
        # Small parts first, as in `fobos.move`
        part, cut = rate * g[q], penalty * rate * l1[q]
        moved = w[q] - part
        shrunk = w[q] - (part + (cut if moved > zero else -cut))
        w[q] = shrunk if abs(moved) > cut else zero


@kernel(allocates=False)
def shrink(w, squares, l1, times, eta, delta):
    """Shrink the coefficients of one feature so many times."""
    total, delta = like(w, times * eta), like(w, delta)
    for q in range(len(w)):
        w[q] = soft(w[q], total / (delta + np.sqrt(squares[q])) * l1[q])


@kernel(allocates=False)
def catch_up(state, features, hp):
    """Make up for the shrinkages of these features since they last occurred."""
    models, squares, eta = state.grid, state.squares, hp.learning_rate
    W, last_update, t = models.W, models.last_update, models.steps[0]
    for j in features:
        if last_update[j] < t:
            shrink(W[j], squares[j], models.l1, t - last_update[j], eta, hp.delta)
            last_update[j] = t


@kernel(allocates=False)
def step(state, hp):
    """Learn a row; returns whether all is finite."""
    models, squares, eta = state.grid, state.squares, hp.learning_rate
    if not grid.begin_step(models, hp):
        return False
    W, g = models.W, models.gradient
    for j in grid.in_step(models):
        move(W[j], squares[j], g[j], models.l1, eta, hp.delta, 1.0)
        models.last_update[j] = models.steps[0]
    move(W[-1], squares[-1], g[-1], models.l1, eta, hp.delta, 0.0)
    if grid.end_step(models, hp):
        catch_up(state, grid.known_features(models), hp)
        grid.choose(models, W, hp.k)
    return True


@kernel
def learn(state, block, hp):
    """Learn the rows of the block; returns how many, as `RowStream` asks for."""
    return grid.learn(state, block, hp, catch_up, step)


@estimator
class AdaFobosClassifier(RowClassifier, Penalised):
    """Adaptive FOBOS, with an l1 penalty, for classification (Duchi et al. 2011).

    Frequent features learn slowly and rare ones fast. With a small `k` the features are those that
    the last rows moved most, whatever the step: `ARDAClassifier` shrinks the mean of all gradients
    instead. Cost: O(entries of the row) per row with one penalty; O(entries * n_penalties + p)
    with `k`.
    """

    sources = "duchi2011adaptive"
    example = """
        >>> coef = {name}(l1=0.01, random_state=0).fit(X, y).coef_
        >>> np.sort(np.abs(coef).argsort()[-3:])
        array([ 9, 19, 29])
    """

    loss: str = SQUARED_HINGE
    learning_rate: float = STEP_PER_FEATURE
    delta: float = DELTA

    learn, step, catch_up, hyper, state = learn, step, catch_up, AdaptiveHyper, State
    ranks = False
    frozen = ("learning_rate", "delta")
