"""Losses of a margin m (the prediction) and a target y (a number, or a label -1 or +1).

A kernel receives a loss as its code: one compiled kernel then serves all of them. A target may have
a weight, by which its loss is multiplied: it is then a record.
"""

from enum import IntEnum

import numpy as np

from ofslib._jit import generic, kernel, static_type

WEIGHTED = np.dtype([("target", np.float64), ("weight", np.float64)])


class Loss(IntEnum):
    """Codes of the losses, named as in the estimators' `loss` parameter."""

    squared_error = 0  # (y - m)**2 / 2; the papers' (3) is twice this
    log_loss = 1  # log(1 + exp(-y m))
    hinge = 2  # max(0, 1 - y m)
    squared_hinge = 3  # max(0, 1 - y m)**2


LOSSES = tuple(code.name for code in Loss)
CLASSIFICATION_LOSSES = tuple(name for name in LOSSES if name != "squared_error")


@generic
def target(y):
    """The target itself."""
    return (lambda y: y["target"]) if static_type(y) is np.void else (lambda y: y)


@generic
def weight(y):
    """The weight of a target; 1 if it has none."""
    return (lambda y: y["weight"]) if static_type(y) is np.void else (lambda y: np.float64(1.0))


@kernel(allocates=False)
def value(loss, m, y):
    """The loss at margin m."""
    if loss == Loss.squared_error:
        return 0.5 * ((y - m) * (y - m))  # a power would be compiled as one of any exponent
    if loss == Loss.log_loss:
        # log(1 + exp(-t)) without overflow for t << 0
        return max(-y * m, 0.0) + np.log1p(np.exp(-abs(m)))
    gap = 1.0 - y * m
    if gap <= 0.0:
        return 0.0
    return gap if loss == Loss.hinge else gap * gap


@kernel(allocates=False)
def slope(loss, m, y):
    """The derivative of the weighted loss by m (0 where the hinge has a kink)."""
    return weight(y) * derivative(loss, m, target(y))


@kernel(allocates=False)
def derivative(loss, m, y):
    """That of the loss itself."""
    if loss == Loss.squared_error:
        return m - y
    if loss == Loss.log_loss:
        return -y / (1.0 + np.exp(y * m))
    gap = 1.0 - y * m
    if gap <= 0.0:
        return 0.0
    return -y if loss == Loss.hinge else -2.0 * y * gap


@kernel(allocates=False)
def curvature(loss):
    """The largest second derivative by m; the hinge, which has none, counts as 1."""
    if loss == Loss.log_loss:
        return 0.25
    return 2.0 if loss == Loss.squared_hinge else 1.0


@kernel(allocates=False)
def curvature_at(loss, slope):
    """The second derivative where the loss has that slope; of the others the largest there is."""
    return abs(slope) * (1.0 - abs(slope)) if loss == Loss.log_loss else curvature(loss)


@kernel(allocates=False)
def majorant(loss, m):
    """The curvature of a parabola that touches the loss at margin m and lies nowhere below it.

    For the log_loss that of the flattest one, tanh(m / 2) / (2 m) (Jaakkola and Jordan, Bayesian
    parameter estimation via variational methods, Statistics and Computing 10, 2000); for the
    others the largest curvature of the loss.
    """
    if loss == Loss.log_loss and abs(m) > 1e-3:
        return np.tanh(0.5 * m) / (2.0 * m)
    return curvature(loss)


@kernel
def losses(loss, margins, y):
    """The loss of each row, without weights."""
    result = np.empty(len(y))
    for i in range(len(y)):
        result[i] = value(loss, margins[i], y[i])
    return result


@kernel(allocates=False)
def total(loss, margins, y):
    """Sum of the weighted losses of many rows."""
    result = 0.0
    for i in range(margins.shape[0]):
        result += weight(y[i]) * value(loss, margins[i], target(y[i]))
    return result


@kernel
def rise(loss, margins, change, y):
    """By how much the sum of the weighted losses rises with a change of the margins."""
    before, after = 0.0, 0.0
    # Both in one loop: neither waits for the other.
    for i in range(len(y)):
        w, t = weight(y[i]), target(y[i])
        before += w * value(loss, margins[i], t)
        after += w * value(loss, margins[i] + change[i], t)
    return after - before
