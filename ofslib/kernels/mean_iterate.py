"""A mean of the last iterates. A feature that no row has touched need not be visited for it.

After each step the mean moves towards w by the `weight` of the new iterate. Where mini-batches
touch few features the mean is deferred. It is then w + scale * offset: a new iterate multiplies
`scale` by 1 - weight, and a step changes w and `offset` of the touched features only.
"""

from typing import NamedTuple

import numpy as np

from ofslib._jit import kernel


class MeanIterate(NamedTuple):
    """The mean, or what it follows from; the intercept's is never deferred."""

    mean: np.ndarray  # (p + 1,) as it was when last written
    offset: np.ndarray  # (p + 1,)
    scale: np.ndarray  # (1,)
    deferred: np.ndarray  # (1,) bool: whether the mean is w + scale * offset

    def up_to_date(self, w: np.ndarray, active) -> np.ndarray:
        """The mean, as `write` would have it."""
        left, mean = active.index[: active.size[0]], self.mean.copy()
        if self.deferred[0]:
            mean[left] = w[left] + self.scale[0] * self.offset[left]
        return mean


def new_mean(p: int) -> MeanIterate:
    """The mean before the first step; p = 0 for one that is not used."""
    return MeanIterate(np.zeros(p + 1), np.zeros(p + 1), np.ones(1), np.zeros(1, bool))


@kernel(allocates=False)
def write(iterates, w, active):
    """Write the mean, which is not deferred then."""
    for j in active.index[: active.size[0]]:
        iterates.mean[j] = w[j] + iterates.scale[0] * iterates.offset[j]
    iterates.deferred[0] = False


@kernel(allocates=False)
def defer(iterates, w, active):
    """Defer the mean from now on."""
    for j in active.index[: active.size[0]]:
        iterates.offset[j] = iterates.mean[j] - w[j]
    iterates.scale[0] = 1.0
    iterates.deferred[0] = True


@kernel(allocates=False)
def add_iterate(iterates, w, active, weight):
    """Add w, with this weight, to the mean."""
    mean = iterates.mean
    mean[-1] += weight * (w[-1] - mean[-1])
    if iterates.deferred[0]:
        iterates.scale[0] *= 1.0 - weight
    elif active.size[0] == len(active.index):
        for j in range(len(active.index)):
            mean[j] += weight * (w[j] - mean[j])
    else:
        for j in active.index[: active.size[0]]:
            mean[j] += weight * (w[j] - mean[j])
