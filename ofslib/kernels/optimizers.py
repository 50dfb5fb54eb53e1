"""Steps of gradient descent: plain, with momentum, Nesterov's (the papers' SFSA-AG), and Adam."""

from enum import IntEnum
from typing import NamedTuple

import numpy as np

from ofslib._jit import kernel
from ofslib.kernels.rows import ROWS, descend

# A velocity below it counts as none: numbers so small slow a processor down, and the least ones
# times 0.9 are themselves.
AT_REST = 1e-290


class Optimizer(IntEnum):
    """Codes of the optimizers; the papers call nesterov SFSA-AG and adam SFSA-Adam."""

    sgd = 0
    momentum = 1
    nesterov = 2
    adam = 3


class Memory(NamedTuple):
    """What an optimizer remembers of earlier gradients; an array that it does not use is (1,)."""

    velocity: np.ndarray  # (p + 1,) of momentum and nesterov: the last step
    lookahead: np.ndarray  # (p + 1,) of nesterov: w + momentum * velocity
    mean: np.ndarray  # (p + 1,) of adam: the mean gradient
    square: np.ndarray  # (p + 1,) of adam: the mean squared gradient


def new_memory(optimizer: str, p: int) -> Memory:
    """That of an optimizer of this name before the first step."""
    uses = {"momentum": (1, 0, 0, 0), "nesterov": (1, 1, 0, 0), "adam": (0, 0, 1, 1)}
    sizes = 1 + p * np.array(uses.get(optimizer, (0, 0, 0, 0)))
    return Memory(*map(np.zeros, sizes))


@kernel(allocates=False)
def step(w, memory, batch, active, t, rate, hp):
    """Step t, by the mean gradient of the mini-batch."""
    if hp.optimizer == Optimizer.sgd:
        descend(w, batch, active, rate)
        return
    g, n, left = batch.gradient, batch.count[ROWS], active.index[: active.size[0]]
    w[-1] -= rate * g[-1] / n  # the intercept has a step of its own, without memory
    if hp.optimizer == Optimizer.adam:
        mean, square = memory.mean, memory.square
        for j in left:
            gradient = g[j] / n
            mean[j] = 0.9 * mean[j] + 0.1 * gradient
            square[j] = 0.999 * square[j] + 0.001 * gradient * gradient
            root = np.sqrt(square[j] / (1.0 - 0.999**t)) + 1e-8
            w[j] -= rate * mean[j] / (1.0 - 0.9**t) / root
        return
    velocity, m = memory.velocity, hp.momentum
    for j in left:
        # The form that reproduces SFSA-AG weighs the gradient by 1 - m: an average, no sum.
        push = (1.0 - m) * rate * (g[j] / n)
        v = m * velocity[j] - push
        moved = w[j] + v
        # Without branches: a processor could not foresee which features have a push.
        rests = (push == 0.0) & ((moved == w[j]) | (abs(v) < AT_REST))
        w[j], velocity[j] = moved, 0.0 if rests else v
    if hp.optimizer == Optimizer.nesterov:
        memory.lookahead[-1] = w[-1]
        for j in left:
            memory.lookahead[j] = w[j] + m * velocity[j]


@kernel(allocates=False)
def forget(memory, dropped, hp):
    """Features that were dropped have no memory."""
    for j in dropped:
        if hp.optimizer == Optimizer.adam:
            memory.mean[j] = memory.square[j] = 0.0
        elif hp.optimizer != Optimizer.sgd:
            memory.velocity[j] = 0.0
            if hp.optimizer == Optimizer.nesterov:
                memory.lookahead[j] = 0.0
