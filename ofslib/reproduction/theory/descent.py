"""Stochastic gradient descent with steps T^-alpha against Theorem 4.1 and Corollary 4.1 of sfsa.

Rows, noise and so gradients are bounded, as the paper assumes: features and noise are 1 or -1,
equally likely, and half the squared error is minimised, which is 1-strongly convex. One
coefficient is not 0.
"""

from functools import partial
from math import sqrt

import numpy as np

from ofslib import bounds
from ofslib.reproduction.theory.curve import VARIANTS, point
from ofslib.reproduction.theory.recovery import GRID

# Rows drawn at once.
BLOCK = 1000


def _signs(rng, shape):
    return 2.0 * rng.integers(0, 2, shape) - 1


def _errors(rng, start, noise, T, eta):
    """Yield x, the noise and the error b - beta* before each of T steps, then the last error.

    `start` (starts, runs, p) are errors at first; with `noise` (starts,) times that of the rows.
    """
    error = start.copy()
    for t in range(T):
        if t % BLOCK == 0:
            X = _signs(rng, (min(BLOCK, T - t), *start.shape[1:]))
            signs = _signs(rng, X.shape[:2])
        x, e = X[t % BLOCK], noise[:, None] * signs[t % BLOCK]
        slope = np.einsum("rj,srj->sr", x, error) - e
        yield x, slope, error
        error = error - eta * slope[:, :, None] * x
    yield None, None, error


def _largest_gradient(R, p, noise):
    """Of x (x'error - noise) with |error| <= R and entries 1 or -1 of x (p,)."""
    return sqrt(p) * (sqrt(p) * R + noise)


def steps_by_length(setting, seeds, data, *, alpha, values, p, runs, omega):
    """Both sides of Theorem 4.1 in a run; Corollary 4.1 and the smallest coefficient that is found.

    The latter is that on a grid that is found in each of many runs. R is the largest distance from
    the truth in the runs, G the largest gradient that rows can have within it.

    Parameters
    ----------
    alpha : float
        Exponent of the step size T^-alpha.
    values : sequence of int
        Numbers of steps T.
    p, runs : int
        Features, and runs all of which must find the feature.
    omega : float
        The corollary holds with probability 1 - exp(-omega).
    """
    one, many = (np.random.default_rng(child) for child in seeds.spawn(2))
    for T in values:
        yield from _theorem(T, alpha, p, one)
        yield from _corollary(T, alpha, p, runs, omega, many)


def _theorem(T, alpha, p, rng):
    truth = np.eye(p)[0]
    steps = list(_errors(rng, -truth[None, None], np.ones(1), T, T**-alpha))
    errors = np.array([error[0, 0] for _, _, error in steps])
    gradients = np.array([slope[0, 0] * x[0] for x, slope, _ in steps[:-1]])
    G = float(_largest_gradient(np.max(np.linalg.norm(errors, axis=1)), p, 1.0))
    panel = f"Theorem 4.1, α = {alpha}"
    for variant in VARIANTS:
        sides = bounds.sfsa_theorem_4_1(
            errors + truth, gradients, errors[:-1], truth, alpha, 1.0, G, variant
        )
        yield point(panel, T, variant, sides.right)
    yield point(panel, T, "experiment", sides.left)


def _corollary(T, alpha, p, runs, omega, rng):
    # The error is linear in the coefficient: per unit of it without noise, and of noise alone.
    start = np.zeros((2, runs, p))
    start[0, :, 0] = -1
    R, noise = np.zeros(2), np.array([0.0, 1.0])
    for _, _, error in _errors(rng, start, noise, T, T**-alpha):
        R = np.maximum(R, np.linalg.norm(error, axis=2).max(axis=1))
    G = _largest_gradient(R, p, noise)
    grid = GRID ** np.arange(80.0, -80, -1)
    panel = f"Corollary 4.1, α = {alpha}"
    for variant in VARIANTS:
        need = partial(_smallest, grid, T, alpha, R, G, omega, variant)
        yield point(panel, T, variant, need)
    last = (error[0] + np.eye(p)[0]) * grid[:, None, None] + error[1]
    found = (np.abs(last[:, :, 0]) > np.abs(last[:, :, 1:]).max(axis=2)).all(axis=1)
    yield point(panel, T, "experiment", float(grid[found].min()))


def _smallest(grid, T, alpha, R, G, omega, variant):
    """The smallest coefficient that the corollary says is found; R and G grow with it."""
    for beta in grid:
        reach, steepest = beta * R[0] + R[1], beta * G[0] + G[1]
        found = bounds.sfsa_corollary_4_1(
            T, alpha, 1.0, steepest, reach, beta, omega, variant=variant
        )
        if beta > found.beta_min:
            return beta
    raise bounds.DoesNotApply("does not apply: no coefficient is large enough, as G grows with it")
