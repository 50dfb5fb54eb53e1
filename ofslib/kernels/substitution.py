"""The step of online substitution, which its sequential and its asynchronous form share."""

from typing import NamedTuple

import numpy as np

from ofslib._jit import kernel
from ofslib.kernels.losses import Loss, curvature, rise
from ofslib.kernels.rows import overwrite
from ofslib.kernels.working_set import IN_USE, accept, mean_slopes, move, put, smallest


class Hyper(NamedTuple):
    """Hyper-parameters of the step."""

    loss: Loss
    step: float  # eta times the Lipschitz constant L_F
    m: float
    c: float  # 0: a substitution need not lower the objective (Algorithm 1, line 12)


class Proposal(NamedTuple):
    """A step, before it is made."""

    w: np.ndarray  # coefficients of the columns in use and of the arrival
    slot: int  # which the arrival is to have; that behind those in use if it is to go
    change: np.ndarray  # (n,) of the margins


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
def propose(working_set, lipschitz, margins, y, slopes, columns, i, hp):
    """Algorithm 1, lines 3-17, for column i of a block, which is not selected.

    It is written behind the columns in use; nothing else of the working set changes. `margins` are
    X w as the method knows it, `slopes` are scratch.
    """
    arrival, loss = put(working_set, columns, i), hp.loss
    mean_slopes(loss, margins, y, slopes)
    A, full = working_set.values[: arrival + 1], arrival == len(working_set.w) - 1
    g = np.dot(A, slopes)
    eta = hp.step / lipschitz[0]
    d = -(eta / hp.m) * g
    d[arrival] = -eta * g[arrival]
    own = np.dot(d[:arrival], A[:arrival])
    both = own + d[arrival] * A[arrival]
    # L_F grows to what is met: then the step without substitution never raises the objective.
    met = max(lipschitz[0], curvature_along(loss, own, d[:arrival]), curvature_along(loss, both, d))
    shrink = lipschitz[0] / met
    lipschitz[0] = met
    if shrink != 1.0:
        d, own, both = shrink * d, shrink * own, shrink * both
    w = working_set.w[: arrival + 1] + d
    if not full:
        return Proposal(w, arrival, both)
    worst = smallest(w)
    if worst == arrival:
        return Proposal(w, arrival, own)
    change = both - w[worst] * A[worst]
    d[worst] -= w[worst]
    if hp.c > 0.0:
        # (L_F / 2 - 1 / (2 eta)) with eta = step / L_F
        rate = 0.5 * met * (1.0 - 1.0 / hp.step)
        if not rise(loss, margins, change, y) <= len(y) * hp.c * rate * np.dot(d, d):
            return Proposal(w, arrival, own)
    return Proposal(w, worst, change)


@kernel
def take(working_set, proposal):
    """Make the step that was proposed last."""
    arrival = working_set.size[IN_USE]
    overwrite(working_set.w[: arrival + 1], proposal.w)
    if arrival < len(working_set.w) - 1:
        accept(working_set)
    elif proposal.slot < arrival:
        move(working_set, arrival, proposal.slot)
