"""Budgeted Adaptive Mirror Descent: barda, Algorithm 2 with phi = alpha/2 |w|^2.

A gradient step with a step size per feature, after which the k features with the largest
H_j |w_j| keep their coefficient; H_j = delta + (sum of squared gradients)**(1/2).
"""

from typing import NamedTuple

import numpy as np

from ofslib._jit import kernel
from ofslib.kernels.hard_threshold import keep_largest
from ofslib.kernels.losses import Loss, slope
from ofslib.kernels.rows import entry, length, row, within
from ofslib.streams.automatic import AUTOMATIC_STEP_PER_FEATURE, PER_FEATURE
from ofslib.streams.parameters import NOT_NEGATIVE, estimator, param
from ofslib.streams.row_stream import DELTA, SQUARED_HINGE, RowClassifier, RowStream


class Hyper(NamedTuple):
    k: int
    loss: Loss
    learning_rate: float
    alpha: float
    delta: float
    own: float  # step size of the intercept
    intercept: float  # 1.0 or 0.0


class State(NamedTuple):
    w: np.ndarray  # (p + 1,) coefficients and intercept
    squares: np.ndarray  # (p + 1,) sum of squared gradients; the last entry is the intercept's
    value: np.ndarray  # (p,) H_j |w_j| of the features with a coefficient
    last: np.ndarray  # (p,) int64: the last row in which the feature had a coefficient and occurred
    support: np.ndarray  # (p,) uint32: features with a coefficient
    inside: np.ndarray  # (p,) bool: whether the feature has one
    size: np.ndarray  # (1,) int64: how many have one
    rows: np.ndarray  # (1,) int64
    scratch: np.ndarray  # (2, p + 1) of the selection
    row_scale: np.ndarray  # (4,) `RowSizes`, for an automatic step

    def within(self, p: int) -> bool:
        """Whether kernels stay within the arrays, of p features."""
        return within(self.support, self.size, p)


@kernel
def move(w, squares, value, j, g, hp):
    """Gradient step of one coefficient, the squares of whose gradients are known."""
    H = hp.delta + np.sqrt(squares[j])
    w[j] -= hp.learning_rate * g / H
    value[j] = H * abs(w[j])


@kernel
def learn(state, block, hp):
    """Learn the rows of the block; returns how many, as `RowStream` asks for."""
    X, y, order, margins = block
    w, squares, value, last = state.w, state.squares, state.value, state.last
    support, inside, size, rows = state.support, state.inside, state.size, state.rows
    for r in range(len(order)):
        x, margin = row(X, order[r]), 0.0
        for i in range(length(x)):
            j, v = entry(x, i)
            margin += v * w[j]
        margins[r] = margin + hp.intercept * w[-1]
        if not np.isfinite(margins[r]):
            return r
        s = slope(hp.loss, margins[r], y[order[r]])
        rows[0] += 1
        for i in range(length(x)):
            j, v = entry(x, i)
            g = s * v + hp.alpha * w[j]
            squares[j] += g * g
            if inside[j]:
                last[j] = rows[0]
                move(w, squares, value, j, g, hp)
        for j in support[: size[0]]:
            if last[j] < rows[0]:
                g = hp.alpha * w[j]
                squares[j] += g * g
                move(w, squares, value, j, g, hp)
        # What is less than all of k features cannot be among the k largest.
        least = 0.0 if size[0] < hp.k else np.inf
        for j in support[: size[0]]:
            least = min(least, value[j])
        m = size[0]
        for i in range(length(x)):
            j, v = entry(x, i)
            g = s * v
            # The value of a new coefficient is eta |g|, but for rounding.
            large = not hp.learning_rate * abs(g) < (1.0 - 1e-12) * least
            if large and not inside[j] and g != 0.0:
                move(w, squares, value, j, g, hp)
                support[m] = j
                m += 1
        keep_largest(w, value, support, inside, size, m, hp.k, state.scratch)
        g = s * hp.intercept
        squares[-1] += g * g
        w[-1] -= hp.own * g / (hp.delta + np.sqrt(squares[-1]))
    return len(order)


@estimator
class BAMDClassifier(RowClassifier, RowStream):
    """Budgeted Adaptive Mirror Descent for classification (barda, Algorithm 2).

    Frequent features learn slowly and rare ones fast. Cost: O(entries of the row + k) per row.
    """

    sources = "zhai2019online"
    example = """
        >>> {name}(k=3, learning_rate=0.5, random_state=0).fit(X, y).support_
        array([ 9, 19, 29])
    """

    loss: str = SQUARED_HINGE
    learning_rate: float | str = AUTOMATIC_STEP_PER_FEATURE
    delta: float = DELTA
    alpha: float = param("Weight lambda of the penalty lambda/2 |w|^2.", NOT_NEGATIVE, default=1e-5)

    learn, hyper, row_scale = learn, Hyper, PER_FEATURE
    ranks = False
    frozen = ("delta",)

    def _new_state(self, n_features):
        p = n_features
        return State(
            *np.zeros((2, p + 1)),
            value=np.zeros(p),
            last=np.zeros(p, np.int64),
            support=np.zeros(p, np.uint32),
            inside=np.zeros(p, bool),
            size=np.zeros(1, np.int64),
            rows=np.zeros(1, np.int64),
            scratch=np.zeros((2, p + 1)),
            row_scale=np.zeros(4),
        )

    def _read_hyper(self, n_rows):
        own = 1.0 if self.learning_rate == "auto" else self.learning_rate
        return super()._read_hyper(n_rows, own=own)
