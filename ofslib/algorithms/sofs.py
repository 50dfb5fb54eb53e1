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

from ofslib._jit import generic, kernel
from ofslib.kernels.hard_threshold import TOGETHER
from ofslib.kernels.heap import offer, sift, sink
from ofslib.kernels.losses import target, weight
from ofslib.kernels.rows import entry, is_sparse, length, row, within
from ofslib.streams.automatic import Unit
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
    heap: np.ndarray  # (k,) int32: features with a coefficient, the least sure one first
    place: np.ndarray  # (p,) int32: i + 1 at heap[i], 0 without a coefficient
    size: np.ndarray  # (1,) int64
    unit: np.ndarray  # (4,) what an automatic gamma is taken from

    def within(self, p: int) -> bool:
        """Whether kernels stay within the arrays, of p features."""
        places = (self.place >= 0) & (self.place <= len(self.heap))
        return within(self.heap, self.size, p) and bool(places.all())


@kernel(allocates=False)
def learn(j, v, alpha, w, gamma, mu, squares, sigma):
    """The step of one coefficient."""
    mu[j] += alpha * sigma[j] * v
    squares[j] += w * v * v
    sigma[j] = gamma / (gamma + squares[j])


@kernel(allocates=False)
def learn_all(x, alpha, w, gamma, mu, squares, sigma):
    """The steps of all entries of a row, as vectors."""
    for i in range(length(x)):
        j, v = entry(x, i)
        learn(j, v, alpha, w, gamma, mu, squares, sigma)


@generic
def left_out(x, start, stop, mu, sigma, place, most):
    """Whether these entries bring no feature among the kept ones; their coefficients are 0 then.

    Of dense rows, as vectors; of sparse ones that is not known.
    """
    return (lambda x, start, stop, mu, sigma, place, most: False) if is_sparse(x) else _left_out


def _left_out(x, start, stop, mu, sigma, place, most):
    count = 0
    for j in range(start, stop):
        count += (place[j] == 0) & (x[j] != 0.0) & (not sigma[j] > most)
    if count == 0:
        for j in range(start, stop):
            mu[j] = mu[j] if place[j] > 0 else 0.0
    return count == 0


@kernel
def fold(state, block, hp):
    """Show the rows of the block, as `RowStream` asks for."""
    X, y, order, margins = block
    mu, squares, sigma, heap, place = state.mu, state.squares, state.sigma, state.heap, state.place
    for r in range(len(order)):
        x, sign, w, m = row(X, order[r]), target(y[order[r]]), weight(y[order[r]]), state.size[0]
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
        # All at once is as fast as the processor divides; where few of those kept change, it costs
        # less to move these.
        if length(x) >= m:
            learn_all(x, alpha, w, hp.gamma, mu, squares, sigma)
            for i in range(m // 2 - 1, -1, -1):
                sink(heap, place, sigma, False, i, m)
        else:
            for i in range(length(x)):
                j, v = entry(x, i)
                learn(j, v, alpha, w, hp.gamma, mu, squares, sigma)
                if place[j] > 0:
                    sift(heap, place, sigma, False, place[j] - 1, m)
        most = sigma[heap[0]] if m == len(heap) else np.inf
        for start in range(0, length(x), TOGETHER):
            stop = min(start + TOGETHER, length(x))
            if left_out(x, start, stop, mu, sigma, place, most):
                continue
            for i in range(start, stop):
                j, v = entry(x, i)
                if place[j] > 0 or v == 0.0:
                    continue
                if sigma[j] > most:
                    mu[j] = 0.0
                    continue
                out = offer(heap, place, sigma, j, m, len(heap))
                m = min(m + 1, len(heap))
                most = sigma[heap[0]] if m == len(heap) else np.inf
                if out >= 0:
                    mu[out] = 0.0
        state.size[0] = m
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

    loss: str = param("The loss of AROW.", one_of("squared_hinge"), default="squared_hinge")
    gamma: float | str = param(
        "r: the larger, the smaller the steps. auto: the mean squared norm of the rows so far, "
        "which is 1 for rows of norm 1; the unit of X does not matter then.",
        POSITIVE,
        one_of("auto"),
        default="auto",
    )

    fold, step_parameter, hyper = fold, "gamma", Hyper
    unit = Unit(heavy=np.inf)
    frozen = ("k",)

    def _new_state(self, n_features):
        p, k = n_features, min(self.k, n_features)
        heap, place = np.zeros(k, np.int32), np.zeros(p, np.int32)
        size = np.zeros(1, np.int64)
        vectors = np.zeros(p + 1), np.zeros(p + 1), np.ones(p + 1)
        return State(*vectors, heap, place, size, np.zeros(4))

    def _read_hyper(self, n_rows):
        return super()._read_hyper(n_rows, own=1.0 if self.gamma == "auto" else self.gamma)

    def _in_units(self, hyper, mean, heaviest):
        return hyper._replace(gamma=mean)

    def _settle(self, state, mean):
        state.sigma[:-1] = mean / (mean + state.squares[:-1]) if mean > 0.0 else 1.0

    def _model(self, state):
        return coef_and_intercept(state.mu)
