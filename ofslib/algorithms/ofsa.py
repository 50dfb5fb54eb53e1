"""Online feature selection with annealing: dissertation, Algorithm 4.

Gradient descent on the running averages. After step t only the M_t standardised features with the
largest coefficients stay, M_t falling from p to k, and the moments of the others are dropped. Least
squares on the last k is the model.
"""

from numbers import Real

import numpy as np
from scipy.linalg.blas import get_blas_funcs

from ofslib.kernels.gram import compact, largest_eigenvalue
from ofslib.kernels.selection import annealed, keep_top
from ofslib.streams.average_stream import AverageSelector
from ofslib.streams.parameters import AT_LEAST_ONE, NOT_NEGATIVE, POSITIVE, estimator, number, param
from ofslib.streams.selector import Classifier, Regressor

# Moments are moved together when the features have become fewer by this factor.
_COMPACTION = 0.9


def anneal(S, b, k: int, mu: float, rate: float, n_iter: int) -> np.ndarray:
    """The loop of Algorithm 4: features that it keeps, ascending, shape (k,).

    An iteration costs at most (M_t / 0.9)^2 products. They are in single precision once the first
    features have gone: they are limited by memory, and decide only which features stay.
    """
    p = m = len(b)
    # The unit of y decides nothing; in single precision it could be too large or too small.
    b = np.ldexp(b, -np.frexp(np.abs(b).max())[1])
    w, b, alive = np.zeros(p, S.dtype), b.astype(S.dtype), np.ones(p, bool)
    symv = get_blas_funcs("symv", (S,))
    features, index, size = np.arange(p), np.arange(p, dtype=np.uint32), p
    value, work, memory, cut = np.empty(p), np.empty(p), None, 0.0
    for t in range(1, n_iter + 1):
        # A rate that is too large may overflow here; it is reported below.
        with np.errstate(over="ignore", invalid="ignore"):
            w -= rate * (symv(1.0, S, w) - b)
        keep = annealed(t, n_iter, p, k, mu)
        if keep < size:
            value[:size] = np.abs(w[index[:size]])
            cut = keep_top(index, value, size, keep, work, 1.5 * cut)
            alive[index[keep:size]] = False
            size = keep
        w *= alive
        if size < _COMPACTION * m:
            left, m = index[:size].copy(), size
            memory = np.empty(m * m, np.float32) if memory is None else memory
            compact(S, left, memory)
            S = memory[: m * m].reshape(m, m, order="F")
            symv = get_blas_funcs("symv", (S,))
            features, alive = features[left], np.ones(m, bool)
            with np.errstate(over="ignore", invalid="ignore"):
                w, b = w[left].astype(S.dtype), b[left].astype(S.dtype)
            index[:m] = np.arange(m)
    if not np.isfinite(w).all():
        raise FloatingPointError(f"OFSA diverged: its steps are too large with a rate of {rate}")
    return features[np.sort(index[:size])]


@estimator
class OFSA(AverageSelector):
    """Online feature selection with annealing."""

    about = (
        "Cost: O(n_iter M^2) per model, M^2 the mean of M_t^2; p^2 n_iter / 15 with k << p and "
        "mu = 10."
    )

    n_iter: int = param("Steps of gradient descent per model.", AT_LEAST_ONE, default=500)
    mu: float = param(
        "How early the annealing drops features: M_t falls with it.", NOT_NEGATIVE, default=10.0
    )
    step: float = param(
        "Step size eta in units of 1 / lambda, lambda the largest eigenvalue of the standardised "
        "second moments. Descent is stable below 2.",
        number(Real, 0, 2, closed="neither"),
        default=1.5,
    )
    learning_rate: float | None = param(
        "Step size eta itself; None: by `step`.", POSITIVE, None, default=None
    )

    def _coefs(self, standard, ks):
        S, b, p = standard.S_xx, standard.S_xy, len(standard.scale)
        rate = self.learning_rate
        if rate is None and min(ks) < p:
            rate = self.step / largest_eigenvalue(S)
        own = {"mu": float(self.mu), "rate": rate, "n_iter": int(self.n_iter)}
        supports = [anneal(S, b, k, **own) if k < p else np.arange(p) for k in ks]
        return np.array([self._refit(standard, support) for support in supports])


@estimator
class OFSAClassifier(Classifier, OFSA):
    """Online feature selection with annealing for two classes (dissertation, Algorithm 4)."""


@estimator
class OFSARegressor(Regressor, OFSA):
    """Online feature selection with annealing for regression (dissertation, Algorithm 4)."""
