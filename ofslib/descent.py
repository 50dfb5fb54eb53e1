"""What the mini-batch methods share: learning a row, and a gradient step that truncates."""

from typing import NamedTuple

import numpy as np

from ofslib._jit import kernel
from ofslib.losses import slope
from ofslib.rows import Active, Batch, add, clear, dot, in_batch, new_active, new_batch
from ofslib.select import keep_top


@kernel
def gather(batch, x, y, point, support, active, loss, intercept):
    """Add the gradient at `point` of one row to the batch; returns the prediction for it.

    A row without a finite prediction is not added.

    `point` is zero outside the features of `support`; the gradient is taken on those of `active`.
    """
    margin = dot(x, point, support) + intercept * point[-1]
    if not np.isfinite(margin):
        return margin
    s = slope(loss, margin, y)
    add(batch, x, s, active)
    batch.gradient[-1] += s * intercept
    return margin


class Truncated(NamedTuple):
    """A model that has k coefficients after every step."""

    w: np.ndarray  # (p + 1,) coefficients and intercept
    kept: Active  # features with a coefficient
    every: Active  # all features
    batch: Batch
    candidates: np.ndarray  # (p + 1,) uint32
    room: np.ndarray  # (2, p + 1) scratch of the selection


def new_truncated(p: int) -> Truncated:
    """The model without coefficients."""
    return Truncated(
        w=np.zeros(p + 1),
        kept=new_active(p, size=0),
        every=new_active(p),
        batch=new_batch(p),
        candidates=np.empty(p + 1, np.uint32),
        room=np.empty((2, p + 1)),
    )


@kernel
def candidates_of(model):
    """List the features that can have a coefficient after the step; returns how many."""
    batch, candidates, m = model.batch, model.candidates, 0
    for j in in_batch(batch, model.every):
        candidates[m] = j
        m += 1
    if batch.count[2] == 0:
        for j in model.kept.index[: model.kept.size[0]]:
            if model.every.fresh[j]:
                candidates[m] = j
                m += 1
    return m


@kernel
def truncated_step(model, k, learning_rate, alpha, radius):
    """w <- the k largest of the projection to the ball of (1 - eta alpha) w - eta gradient."""
    w, kept, batch, candidates = model.w, model.kept, model.batch, model.candidates
    rate, k = learning_rate / batch.count[1], min(k, len(w) - 1)
    m, norm = candidates_of(model), 0.0
    for i in range(m):
        j = candidates[i]
        w[j] = (1.0 - learning_rate * alpha) * w[j] - rate * batch.gradient[j]
        norm += w[j] * w[j]
    w[-1] -= rate * batch.gradient[-1]
    clear(batch, model.every)
    shrink = min(1.0, radius / max(np.sqrt(norm), 1e-300))
    for i in range(m):
        j = candidates[i]
        w[j] *= shrink
        model.room[0, i] = abs(w[j])
    if m > k:
        keep_top(candidates, model.room[0], m, k, model.room[1], np.inf)
    for j in candidates[k:m]:
        w[j] = 0.0
    kept.size[0] = min(k, m)
    kept.index[: kept.size[0]] = candidates[: kept.size[0]]
