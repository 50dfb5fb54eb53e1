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
from ofslib.streams.average_stream import MULTICLASS, AverageSelector
from ofslib.streams.parameters import AT_LEAST_ONE, NOT_NEGATIVE, POSITIVE, estimator, number, param
from ofslib.streams.selector import Classifier, Regressor

# Moments are moved together when the features have become fewer by this factor.
_COMPACTION = 0.9


# A rate that is too large may overflow; it is reported at the end.
@np.errstate(over="ignore", invalid="ignore")
def anneal(S, b, k: int, mu: float, rate: float, n_iter: int) -> np.ndarray:
    """The loop of Algorithm 4: features that it keeps, ascending, shape (k,).

    b are the covariances with y, shape (p,), or with that of several models, shape (p, m): these
    keep the same features, ranked by the norm of their coefficients.

    An iteration costs at most (M_t / 0.9)^2 products. They are in single precision once the first
    features have gone: they are limited by memory, and decide only which features stay.
    """
    p = m = len(b)
    # The unit of y decides nothing; in single precision it could be too large or too small.
    b = np.ldexp(b, -np.frexp(np.abs(b).max())[1])
    w, b = np.zeros_like(b, S.dtype, order="F"), b.astype(S.dtype, order="F")
    alive, product = np.ones((p,) + (1,) * (b.ndim - 1), bool), "symv" if b.ndim == 1 else "symm"
    times = get_blas_funcs(product, (S,))
    features, index, size = np.arange(p), np.arange(p, dtype=np.uint32), p
    value, work, memory, cut = np.empty(p), np.empty(p), None, 0.0
    for t in range(1, n_iter + 1):
        w -= rate * (times(1.0, S, w) - b)
        keep = annealed(t, n_iter, p, k, mu)
        if keep < size:
            left = w[index[:size]]
            value[:size] = np.abs(left) if w.ndim == 1 else np.linalg.norm(left, axis=1)
            cut = keep_top(index, value, size, keep, work, 1.5 * cut)
            alive[index[keep:size]] = False
            size = keep
        w *= alive
        if size < _COMPACTION * m:
            left, m = index[:size].copy(), size
            memory = np.empty(m * m, np.float32) if memory is None else memory
            compact(S, left, memory)
            S = memory[: m * m].reshape(m, m, order="F")
            times = get_blas_funcs(product, (S,))
            features, alive = features[left], np.ones((m, *alive.shape[1:]), bool)
            w, b = w[left].astype(S.dtype, order="F"), b[left].astype(S.dtype, order="F")
            index[:m] = np.arange(m)
    if not np.isfinite(w).all():
        raise FloatingPointError(f"OFSA diverged: its steps are too large with a rate of {rate}")
    return features[np.sort(index[:size])]


@estimator
class OFSA(AverageSelector):
    """Online feature selection with annealing."""

    sources = "sun2019online, sun2024novel"
    description = (
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
        supports = self._supports(standard.S_xx, standard.S_xy, ks)
        return np.array([self._refit(standard, support) for support in supports])

    def _joint_support(self, standards, k):
        B = np.column_stack([standard.S_xy for standard in standards])
        return self._supports(standards[0].S_xx, B, [k])[0]

    def _supports(self, S, b, ks):
        p, rate = len(b), self.learning_rate
        if rate is None and min(ks) < p:
            rate = self.step / largest_eigenvalue(S)
        own = {"mu": float(self.mu), "rate": rate, "n_iter": int(self.n_iter)}
        return [anneal(S, b, k, **own) if k < p else np.arange(p) for k in ks]


@estimator
class OFSAClassifier(Classifier, OFSA):
    """Online feature selection with annealing for classification (dissertation, Algorithm 4)."""

    multiclass: str = MULTICLASS


@estimator
class OFSARegressor(Regressor, OFSA):
    """Online feature selection with annealing for regression (dissertation, Algorithm 4)."""
