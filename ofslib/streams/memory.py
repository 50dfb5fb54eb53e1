"""Memory for the copy of a state in which a learner learns: found once, not in each call."""

import copy
import sys
from weakref import WeakKeyDictionary

import numpy as np

from ofslib.kernels.rows import Moments
from ofslib.streams.relay import overwrite

# Of each learner the state before the last: to find as much memory anew takes longer than to write
# to it. It is no attribute, which would be copied and kept with the others.
_unused: WeakKeyDictionary = WeakKeyDictionary()


def copied(learner, state: tuple) -> tuple:
    """A copy of the state, in the memory that was kept if that fits and nobody else reads it."""
    memory = [_unused.pop(learner, None)]
    if _used_by_others(memory) or not _fits(state, memory[0]):
        return copy.deepcopy(state)
    overwrite(memory[0], state)
    return memory[0]


def keep(learner, state: tuple) -> None:
    """Keep the memory of a state that the learner no longer has, for its next copy."""
    _unused[learner] = state


def _fits(state, memory) -> bool:
    """Whether the arrays of a state can be copied into others."""
    if type(state) is not type(memory):
        return False
    if isinstance(state, np.ndarray):
        return state.shape == memory.shape and state.dtype == memory.dtype
    return len(state) == len(memory) and all(map(_fits, state, memory))


def _references(held, place: int) -> int:
    return sys.getrefcount(held[place])


_NO_OTHERS = _references([object()], 0)


def _used_by_others(held) -> bool:
    """Whether more than this refers to what it holds: to states, or to arrays, as views do.

    So does a copy of the learner, and who predicts or saves meanwhile.
    """
    for place in range(len(held)):
        inner = isinstance(held[place], tuple)
        if inner and not held[place]:  # the empty tuple is one and the same everywhere
            continue
        if _references(held, place) > _NO_OTHERS or (inner and _used_by_others(held[place])):
            return True
    return False


def too_large(state) -> bool:
    """Whether a sum of squares of X is not finite."""
    if isinstance(state, Moments):
        return not np.isfinite(state.square).all()
    return isinstance(state, tuple) and any(map(too_large, state))
