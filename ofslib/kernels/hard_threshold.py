"""A model that keeps its k largest coefficients after every step."""

from typing import NamedTuple

import numpy as np

from ofslib._jit import kernel
from ofslib.kernels.rows import Active, Batch, clear, in_batch, new_active, new_batch
from ofslib.kernels.selection import keep_top


class Truncated(NamedTuple):
    """A model that has k coefficients after every step."""

    w: np.ndarray  # (p + 1,) coefficients and intercept
    value: np.ndarray  # (p,) what the features with a coefficient are ranked by
    kept: Active  # features with a coefficient; `fresh` tells them from the others
    every: Active  # all features
    batch: Batch
    room: np.ndarray  # (2, p + 1) scratch of the selection


def new_truncated(p: int) -> Truncated:
    """The model without coefficients."""
    return Truncated(
        w=np.zeros(p + 1),
        value=np.zeros(p),
        kept=new_active(p, size=0),
        every=new_active(p),
        batch=new_batch(p),
        room=np.empty((2, p + 1)),
    )


@kernel
def truncated_step(model, k, learning_rate, alpha, radius):
    """w <- the k largest of the projection to the ball of (1 - eta alpha) w - eta gradient."""
    w, value, batch, g = model.w, model.value, model.batch, model.batch.gradient
    kept, inside, size = model.kept.index, model.kept.fresh, model.kept.size
    touched, rate = in_batch(batch, model.every), learning_rate / batch.count[1]
    norm, room = 0.0, model.room
    for j in kept[: size[0]]:
        w[j] = (1.0 - learning_rate * alpha) * w[j] - rate * g[j]
        norm += w[j] * w[j]
    for j in touched:
        if not inside[j]:
            norm += (rate * g[j]) ** 2
    w[-1] -= rate * g[-1]
    shrink = 1.0 if norm <= radius * radius else radius / np.sqrt(norm)
    for j in kept[: size[0]]:
        w[j] *= shrink
        value[j] = abs(w[j])
    least = least_kept(value, kept, size[0], k)
    m = size[0]
    for j in touched:
        if not inside[j]:
            new = -rate * g[j] * shrink
            # What is not a number stays, so that it is seen.
            if not abs(new) < least and new != 0.0:
                kept[m], value[j], w[j] = j, abs(new), new
                m += 1
    keep(w, value, kept, inside, size, m, k, room)
    clear(batch, model.every)


@kernel
def least_kept(value, kept, m, k):
    """Features of a smaller value than this cannot be among the k that are kept."""
    if m < k:
        return 0.0
    least = value[kept[0]]
    for j in kept[1:m]:
        least = min(least, value[j])
    return least


@kernel
def keep(w, value, kept, inside, size, m, k, room):
    """Keep the k most valued features of kept[:m]; of equals the lower index."""
    if m > k:
        for i in range(m):
            room[0, i] = value[kept[i]]
        keep_top(kept, room[0], m, k, room[1], np.inf)
        for j in kept[k:m]:
            w[j] = 0.0
            inside[j] = False
    for j in kept[: min(m, k)]:
        inside[j] = True
    size[0] = min(m, k)
