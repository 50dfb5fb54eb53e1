"""Second-order Online Feature Selection: Wu et al. 2017, Algorithm 2; SOFS in sfsa and barda.

AROW with a diagonal covariance: where y m < 1, with v = x' Sigma x before the step,
mu += (1 - y m) / (v + gamma) y Sigma x and 1 / sigma_j += x_j**2 / gamma. A weight of the row
divides its gamma. Then the k features with
the smallest variance, those that the model is surest of, keep their coefficient. Variances only
fall, so that the k smallest are kept in a heap with the largest of them on top. The intercept makes
a step of its own, with its own variance for v: among all features of a row it would hardly move.
"""

from typing import NamedTuple

import numpy as np

from ofslib._jit import kernel
from ofslib.kernels.heap import comes_first, sift
from ofslib.kernels.losses import target, weight
from ofslib.kernels.rows import entry, length, row, within
from ofslib.streams.automatic import RowScale
from ofslib.streams.parameters import POSITIVE, estimator, one_of, param
from ofslib.streams.row_stream import RowClassifier, RowStream, coef_and_intercept


class Hyper(NamedTuple):
    gamma: float
    own: float  # gamma of the intercept
    intercept: float  # 1.0 or 0.0


class State(NamedTuple):
    mu: np.ndarray  # (p + 1,) mean of the coefficients; the last entry is the intercept's
    squares: np.ndarray  # (p + 1,) sum of the squares of what the model stepped on
    sigma: np.ndarray  # (p + 1,) variance gamma / (gamma + squares): equal counts tie exactly
    heap: np.ndarray  # (k,) int32: features that may have a coefficient, the least sure one first
    place: np.ndarray  # (p,) int32: i + 1 at heap[i], 0 without a coefficient
    row_scale: np.ndarray  # (4,) `RowSizes`, for an automatic gamma

    def within(self, p: int) -> bool:
        """Whether kernels stay within the arrays, of p features."""
        places = (self.place >= 0) & (self.place <= len(self.heap))
        return within(self.heap, len(self.heap), p) and bool(places.all())


@kernel
def learn(state, block, hp):
    """Learn the rows of the block; returns how many, as `RowStream` asks for."""
    X, y, order, margins = block
    mu, squares, sigma, heap, place = state.mu, state.squares, state.sigma, state.heap, state.place
    for r in range(len(order)):
        x, sign, w = row(X, order[r]), target(y[order[r]]), weight(y[order[r]])
        margin, spread = hp.intercept * mu[-1], 0.0
        for i in range(length(x)):
            j, v = entry(x, i)
            margin += v * mu[j]
            spread += v * v * sigma[j]
        margins[r] = margin if np.isfinite(spread) else spread
        if not np.isfinite(margins[r]):
            return r
        if sign * margin >= 1.0:
            continue
        alpha = (1.0 - sign * margin) / (spread + hp.gamma / w) * sign
        for i in range(length(x)):
            j, v = entry(x, i)
            mu[j] += alpha * sigma[j] * v
            squares[j] += w * v * v
            sigma[j] = hp.gamma / (hp.gamma + squares[j])
            if place[j] > 0:
                sift(heap, place, sigma, False, place[j] - 1, len(heap))
        for i in range(length(x)):
            j, _ = entry(x, i)
            if place[j] > 0:
                continue
            out = heap[0]
            if comes_first(sigma, out, j, False):
                heap[0], place[out] = j, 0
                sift(heap, place, sigma, False, 0, len(heap))
                mu[out] = 0.0
            else:
                mu[j] = 0.0
        own = sigma[-1] / (sigma[-1] + hp.own / w)
        mu[-1] += hp.intercept * own * (1.0 - sign * margin) * sign
        squares[-1] += w * hp.intercept
        sigma[-1] = hp.own / (hp.own + squares[-1])
    return len(order)


@estimator
class SOFSClassifier(RowClassifier, RowStream):
    """Second-order Online Feature Selection for classification (Wu et al. 2017, Algorithm 2).

    The step size of a feature falls with what has been seen of it; the k features that have been
    seen best are kept, whatever their coefficient: frequent ones, or the largest of dense ones, so
    that a small k takes no account of the labels. Cost: O(entries of the row * log k) per row.
    """

    sources = "wu2017large"
    example = """
        >>> X[:, design.support] *= 5
        >>> {name}(k=3, random_state=0).fit(X, y).support_
        array([ 9, 19, 29])
    """

    loss: str = param("The loss of AROW.", one_of("squared_hinge"), default="squared_hinge")
    gamma: float | str = param(
        "r: the larger, the smaller the steps. auto: the mean squared norm of the rows so far, "
        "which is 1 for rows of norm 1; the unit of X does not matter then.",
        POSITIVE,
        one_of("auto"),
        default="auto",
    )

    learn, step_parameter, hyper = learn, "gamma", Hyper
    ranks = False
    row_scale = RowScale(clip_factor=np.inf)
    frozen = ("k",)

    def _new_state(self, n_features):
        p, k = n_features, min(self.k, n_features)
        # All are unseen: of equals the higher index is on top.
        heap, place = np.arange(k, dtype=np.int32)[::-1].copy(), np.zeros(p, np.int32)
        place[heap] = np.arange(1, k + 1)
        vectors = np.zeros(p + 1), np.zeros(p + 1), np.ones(p + 1)
        return State(*vectors, heap, place, np.zeros(4))

    def _read_hyper(self, n_rows):
        return super()._read_hyper(n_rows, own=1.0 if self.gamma == "auto" else self.gamma)

    def _scaled_hyper(self, hyper, mean, heaviest):
        return hyper._replace(gamma=mean)

    def _rescale(self, state, mean):
        state.sigma[:-1] = mean / (mean + state.squares[:-1]) if mean > 0.0 else 1.0

    def _model(self, state):
        return coef_and_intercept(state.mu)
