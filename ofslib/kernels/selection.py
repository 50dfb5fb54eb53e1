"""Keeping the k most important features, and the schedules by which they become k.

Ties: of two equally important features the one with the lower index is kept.
"""

from enum import IntEnum

import numpy as np

from ofslib._jit import kernel
from ofslib.kernels.rows import (
    Active,
    Moments,
    new_moments,
    update_moments,
    update_squares,
    variance,
)


class Importance(IntEnum):
    """Codes of the importance measures, named as in the estimators' `importance` parameter."""

    coef = 0  # |beta_j|; the one that reproduces the papers' tables
    scaled_coef = 1  # sd_j |beta_j|; sfsa Section 3.2 and Algorithm 2
    scaled_root = 2  # sqrt(var_j |beta_j|); as sfsa Algorithm 1 is printed
    noise_aware = 3  # |beta_j| without its noise; `without_noise`


# Positions in a row of `noise`, which describes the coefficients of one model: the sum of the steps
# made, the mean curvature of the losses, and the mean squared slope over the number of different
# rows, times 2 log(p / k)
PATH, CURVATURE, VARIANCE = range(3)


def moments_for(importance: str, p: int) -> Moments:
    """What a ranking of this name needs to know of the rows."""
    moments = new_moments(1 if importance == "coef" else p)
    return moments._replace(total=np.zeros(1)) if importance == "noise_aware" else moments


@kernel(allocates=False)
def add_rows(moments, X, rows, y, hp, active):
    """Update what the importance asks for; returns whether it counts these rows.

    For the noise only different rows count. Those of later passes tell nothing new.
    """
    if hp.importance == Importance.noise_aware:
        if moments.rows[0] >= hp.different:
            return False
        update_squares(moments, X, rows, active)
    elif hp.importance != Importance.coef:
        update_moments(moments, X, rows, y, False, active)
    return True


@kernel(allocates=False)
def update_noise(state, hp):
    """Update the noise of a model of k features, if features are ranked by it."""
    if hp.importance == Importance.noise_aware:
        p, n, sums = len(state.active.index), state.moments.rows[0], state.batch.curvature
        state.noise[0, CURVATURE] = sums[0] / sums[1]
        state.noise[0, VARIANCE] = 2.0 * np.log(p / min(hp.k, p)) * sums[2] / n / n


@kernel(allocates=False)
def threshold(noise, m2):
    """The coefficient that k of p features would exceed by chance, if m2 is the mean of x_j^2.

    It is sqrt(2 log(p / k)) standard errors. After steps of sum T a coefficient is about that of
    ridge regression with the penalty 1 / T: the sum of its gradients over 1 / T + A m2, where A is
    the mean curvature. The mean gradient of n rows has the standard error sqrt(S m2 / n), where S
    is the mean squared slope. Of several models, one in each row, it is the l2 norm.
    """
    total = 0.0
    for c in range(len(noise)):
        path, a = noise[c, PATH], noise[c, CURVATURE]
        shrunk = path / (1.0 + path * a * m2)
        total += noise[c, VARIANCE] * m2 * shrunk * shrunk
    return np.sqrt(total)


@kernel(allocates=False)
def without_noise(coef, threshold):
    """The importance of a coefficient, given what it would exceed by chance.

    Above the threshold b it is |w| - b, a lower bound of the size without noise; below it
    |w| / b - 1, which is negative. A coefficient of 0 has the least importance, -1.
    """
    size = abs(coef)
    if size > threshold:
        return size - threshold
    return -1.0 if size == 0.0 else size / threshold - 1.0


@kernel(allocates=False)
def importance(measure, coef, moments, j):
    """Importance of feature j with coefficient `coef`, but for `noise_aware`."""
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
    n_dropped, low = m - k, 0
    for i in range(m):
        v = value[i]
        if np.isnan(v):
            v = value[i] = np.inf
        work[low] = v
        low += v <= guess
    if low < n_dropped:
        low = m
        for i in range(m):  # a slice would need the text of an error: two seconds of compilation
            work[i] = value[i]
    cut = kth_largest(work, low, low - n_dropped + 1)
    below, tied = 0, 0
    for i in range(low):
        below += work[i] < cut
        tied += work[i] == cut
    last = -1.0
    if tied > n_dropped - below:
        tied, ordered = 0, True
        for i in range(m):
            work[tied] = index[i]
            ordered = ordered and (tied == 0 or work[tied] >= work[tied - 1])
            tied += value[i] == cut
        if ordered:
            last = work[tied - (n_dropped - below)] - 1.0
        else:
            last = kth_largest(work, tied, n_dropped - below) - 1.0
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
def rank(values, w, active, moments, measure, noise):
    """Write the importance of each active feature to `values`, in the order of `active`."""
    n = moments.rows[0]
    for a in range(active.size[0]):
        j = active.index[a]
        if measure == Importance.noise_aware:
            values[a] = without_noise(w[j], threshold(noise, moments.square[j] / n))
        else:
            values[a] = importance(measure, w[j], moments, j)


@kernel(allocates=False)
def prune(w, active, moments, measure, keep, scratch, noise):
    """Drop all but the `keep` most important features; `scratch` is (2, p + 1)."""
    if keep < active.size[0]:
        rank(scratch[0], w, active, moments, measure, noise)
        drop_least(w, active, keep, scratch)


@kernel(allocates=False)
def drop_least(w, active, keep, scratch):
    """Drop all but the `keep` features, fewer than now, with the largest values in scratch[0]."""
    m, cut = active.size[0], active.cut[0]
    guess = cut + 0.5 * abs(cut)
    active.cut[0] = keep_top(active.index, scratch[0], m, keep, scratch[1], guess)
    for j in active.index[keep:m]:
        active.untouched[j] = False
        w[j] = 0.0
    active.size[0] = keep


def best_model(w, active, moments, measure, k, mean=None, noise=None):
    """Coefficients and intercept of w after keeping the k most important features; w stays.

    With the mean row the intercept gets what the other features say of that row. `noise` is needed
    by `noise_aware` only.
    """
    noise = np.zeros((1, 3)) if noise is None else noise
    kept, p = w.copy(), len(active.index)
    if min(k, p) < active.size[0]:  # else it would be loaded, or compiled, for nothing
        active = Active(*(part.copy() for part in active))
        prune(kept, active, moments, int(measure), min(k, p), np.empty((2, p + 1)), noise)
    others = 0.0 if mean is None else (w[:-1] - kept[:-1]) @ mean
    return kept[:-1], float(kept[-1] + others)


def best_models(parts):
    """Those of several models, given as for `best_model`, which keep the same k features.

    A feature is ranked by the l2 norm over the models of its coefficients.
    """
    W = np.array([w for w, *_ in parts])
    (_, *rest, mean, _), *_ = parts
    noise = np.concatenate([noise for *_, noise in parts])
    kept, _ = best_model(np.linalg.norm(W, axis=0), *rest, noise=noise)
    coef = np.where(kept != 0.0, W[:, :-1], 0.0)
    others = 0.0 if mean is None else (W[:, :-1] - coef) @ mean
    return coef, W[:, -1] + others
