"""Keeping the k most important features, and the schedules by which they become k.

Ties: of two equally important features the one with the lower index is kept.
"""

from enum import IntEnum

import numpy as np

from ofslib._jit import kernel
from ofslib.kernels.rows import Active, variance


class Importance(IntEnum):
    """Codes of the importance measures, named as in the estimators' `importance` parameter."""

    coef = 0  # |beta_j|; the one that reproduces the papers' tables
    scaled_coef = 1  # sd_j |beta_j|; sfsa Section 3.2 and Algorithm 2
    scaled_root = 2  # sqrt(var_j |beta_j|); as sfsa Algorithm 1 is printed


@kernel(allocates=False)
def importance(measure, coef, moments, j):
    """Importance of feature j with coefficient `coef`."""
    if measure == Importance.coef:
        return abs(coef)
    if measure == Importance.scaled_coef:
        return np.sqrt(variance(moments, j)) * abs(coef)
    return np.sqrt(variance(moments, j) * abs(coef))


@kernel(allocates=False)
def annealed(t, maturity, p, k, mu):
    """Features kept after step t: k + (p-k) max(0, (T-t)/(t mu + T)) (sfsa, Section 3.1)."""
    if t >= maturity:
        return k
    return k + round((p - k) * (maturity - t) / (t * mu + maturity))


@kernel(allocates=False)
def kth_largest(v, m, k):
    """The k-th largest of v[:m], 1 <= k <= m; reorders v[:m]."""
    low, high, target, random = 0, m - 1, m - k, 1
    while low < high:
        # Median of three at places without a pattern: then no input is slow.
        random = (random * 1103515245 + 12345) % 2147483648
        first, middle = v[low + random % (high - low + 1)], v[(low + high) // 2]
        last = v[low + (random >> 8) % (high - low + 1)]
        pivot = max(min(first, middle), min(max(first, middle), last))
        if np.isnan(pivot):
            return pivot
        # Without branches, which a processor could not foresee here.
        boundary = low
        for i in range(low, high + 1):
            x = v[i]
            v[i] = v[boundary]
            v[boundary] = x
            boundary += not x >= pivot
        if target < boundary:
            high = boundary - 1
        elif boundary > low:
            low = boundary
        else:
            for i in range(low, high + 1):
                x = v[i]
                v[i] = v[boundary]
                v[boundary] = x
                boundary += x == pivot
            if target < boundary:
                return pivot
            low = boundary
    return v[target]


@kernel(allocates=False)
def keep_top(index, value, m, k, work, guess):
    """Move the k most valued of index[:m] to its front, the others behind them, each in order.

    `value[i]` is the value of feature `index[i]`; `work` takes m numbers. A value that is
    not a number counts as infinite, so that a diverged coefficient stays visible. Returns the
    largest value dropped. `guess` changes the speed only: the selection is fast if it is a
    little above that.
    """
    leaving, low = m - k, 0
    for i in range(m):
        v = value[i]
        if np.isnan(v):
            v = value[i] = np.inf
        work[low] = v
        low += v <= guess
    if low < leaving:
        low = m
        for i in range(m):  # a slice would need the text of an error: two seconds of compilation
            work[i] = value[i]
    cut = kth_largest(work, low, low - leaving + 1)
    below, tied = 0, 0
    for i in range(low):
        below += work[i] < cut
        tied += work[i] == cut
    last = -1.0
    if tied > leaving - below:
        tied, ordered = 0, True
        for i in range(m):
            work[tied] = index[i]
            ordered = ordered and (tied == 0 or work[tied] >= work[tied - 1])
            tied += value[i] == cut
        if ordered:
            last = work[tied - (leaving - below)] - 1.0
        else:
            last = kth_largest(work, tied, leaving - below) - 1.0
    kept, dropped = 0, 0
    for i in range(m):
        j, v = index[i], value[i]
        keep = v > cut or (v == cut and last >= 0.0 and j <= last)
        index[kept] = j
        work[dropped] = j
        kept += keep
        dropped += not keep
    for i in range(dropped):
        index[kept + i] = int(work[i])
    return cut


@kernel(allocates=False)
def prune(w, active, moments, measure, keep, scratch):
    """Drop all but the `keep` most important features; `scratch` is (2, p + 1)."""
    m = active.size[0]
    if keep >= m:
        return
    values, work = scratch[0], scratch[1]
    for a in range(m):
        j = active.index[a]
        values[a] = importance(measure, w[j], moments, j)
    active.cut[0] = keep_top(active.index, values, m, keep, work, 1.5 * active.cut[0])
    for j in active.index[keep:m]:
        active.fresh[j] = False
        w[j] = 0.0
    active.size[0] = keep


@kernel(allocates=False)
def add_squares(squares, w, active):
    """squares += w**2 on the active features."""
    for j in active.index[: active.size[0]]:
        squares[j] += w[j] * w[j]


def best_model(w, active, moments, measure, k, mean=None):
    """Coefficients and intercept of w after keeping the k most important features; w stays.

    With the mean row the intercept gets what the other features say of that row.
    """
    kept, p = w.copy(), len(active.index)
    if min(k, p) < active.size[0]:  # else it would be loaded, or compiled, for nothing
        active = Active(*(part.copy() for part in active))
        prune(kept, active, moments, int(measure), min(k, p), np.empty((2, p + 1)))
    others = 0.0 if mean is None else (w[:-1] - kept[:-1]) @ mean
    return kept[:-1], float(kept[-1] + others)


def best_models(parts):
    """Those of several models, given as for `best_model`, which keep the same k features.

    A feature is ranked by the l2 norm over the models of its coefficients.
    """
    W = np.array([w for w, *_ in parts])
    (_, *rest, mean), *_ = parts
    kept, _ = best_model(np.linalg.norm(W, axis=0), *rest)
    coef = np.where(kept != 0.0, W[:, :-1], 0.0)
    others = 0.0 if mean is None else (W[:, :-1] - coef) @ mean
    return coef, W[:, -1] + others
