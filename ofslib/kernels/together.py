"""The states of several models as one: each array has a further axis first, of the models.

Their number is then no part of the type, and a kernel that goes through them is compiled once for
any number of models: a tuple of a hundred states is a type of its own, for which it takes an hour.
In a kernel `nth` gives one of them, of the very type of a state of its own.
"""

from collections.abc import Sequence

import numpy as np

from ofslib._jit import nth


def stack(states: Sequence[tuple]) -> tuple:
    """Nested named tuples of arrays as one, of the arrays on top of each other."""
    if isinstance(states[0], tuple):
        return type(states[0])(*map(stack, zip(*states, strict=True)))
    return np.stack(states)


def unstack(stacked: tuple) -> tuple[tuple, ...]:
    """Each of them: what is written to its arrays is written to those of the stack."""
    array = stacked
    while isinstance(array, tuple):
        array = array[0]
    return tuple(nth(stacked, c) for c in range(len(array)))
