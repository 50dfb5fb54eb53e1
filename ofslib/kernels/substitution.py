"""The step of online substitution, which its sequential and its asynchronous form share."""

from typing import NamedTuple

import numpy as np

from ofslib._jit import kernel
from ofslib.kernels.losses import Loss, curvature, total
from ofslib.kernels.working_set import IN_USE, accept, mean_slopes, move, put, smallest


class Hyper(NamedTuple):
    """Hyper-parameters of the step."""

    loss: Loss
    step: float  # eta times the Lipschitz constant L_F
    m: float
    c: float  # 0: a substitution need not lower the objective (Algorithm 1, line 12)


def lipschitz_constant(loss: int, k: int, n: int) -> float:
    """L_F of k + 1 independent columns of n rows with mean square 1, as n and k grow.

    The largest eigenvalue of their second moments tends to (1 + sqrt((k + 1) / n))^2 (Marchenko
    and Pastur 1967).
    """
    return float(curvature(loss)) * (1.0 + np.sqrt((k + 1) / n)) ** 2


@kernel
def curvature_along(loss, change, d):
    """Bound on the curvature of the mean loss along a step d that changes the margins so."""
    length = np.dot(d, d)
    if length == 0.0:
        return 0.0
    return curvature(loss) * np.dot(change, change) / (len(change) * length)


@kernel
def substitute(working_set, lipschitz, margins, y, slopes, hp):
    """Algorithm 1, lines 6-17, for the column in the slot behind those in use.

    `slopes` is the gradient of the mean loss by the margins, as the method knows it; `margins`,
    which only the check reads, are not changed. Returns by how much they have to change.
    """
    size, loss = working_set.size[IN_USE], hp.loss
    A, w = working_set.values[: size + 1], working_set.w
    g = np.dot(A, slopes)
    eta = hp.step / lipschitz[0]
    d = -(eta / hp.m) * g
    d[size] = -eta * g[size]
    own = np.dot(d[:size], A[:size])
    both = own + d[size] * A[size]
    # L_F grows to what is met: then the step without substitution never raises the objective.
    met = max(lipschitz[0], curvature_along(loss, own, d[:size]), curvature_along(loss, both, d))
    shrink = lipschitz[0] / met
    lipschitz[0] = met
    d, own, both = shrink * d, shrink * own, shrink * both
    w[:size] += d[:size]
    w[size] = d[size]
    if size < len(w) - 1:
        accept(working_set)
        return both
    worst = smallest(working_set)
    if worst == size:
        return own
    change = both - w[worst] * A[worst]
    d[worst] -= w[worst]
    if hp.c > 0.0:
        # (L_F / 2 - 1 / (2 eta)) with eta = step / L_F
        rate = 0.5 * met * (1.0 - 1.0 / hp.step)
        lower = total(loss, margins + change, y) - total(loss, margins, y)
        if not lower <= len(y) * hp.c * rate * np.dot(d, d):
            return own
    move(working_set, size, worst)
    return change


@kernel
def receive(working_set, lipschitz, margins, y, slopes, columns, i, hp):
    """Show column i of a block, which is not selected; how the margins then have to change."""
    put(working_set, columns, i)
    mean_slopes(hp.loss, margins, y, slopes)
    return substitute(working_set, lipschitz, margins, y, slopes, hp)
