"""Whether a model that is returned predicts better than a constant."""

import numpy as np
import scipy.sparse as sp

from ofslib.kernels.losses import Loss, losses, value
from ofslib.streams.selector import one_vs_rest, target_and_weight

# Rows that are judged, and rows of the rarer label that are needed for it.
ROWS, RARER = 1000, 20
# Standard errors beyond which a difference is not left to chance.
_ERRORS = 3.0


def faults(model, X, y, order) -> list[str]:
    """What to say of each model that is returned, by the last of these rows of X; or nothing."""
    rows = order[-ROWS:]
    coef, intercept = model._models()
    coef = np.atleast_2d(coef)
    kept = np.flatnonzero(coef.any(axis=0))
    # Of an array only what counts is read: all of it may take as long as to learn from it.
    seen = X[rows][:, kept] if sp.issparse(X) else X[np.ix_(rows, kept)]
    margins = (seen @ coef[:, kept].T).T + np.reshape(intercept, (-1, 1))
    found = [
        no_better_than_constant(model.loss, *pair)
        for pair in zip(margins, one_vs_rest(y[rows], model._n_models), strict=True)
    ]
    start = f"{type(model).__name__} returns a model that is no better than a constant: over "
    start += f"the last {len(rows)} rows "
    end = f". Take larger steps than with {model._step()}, more rows or n_passes, or a larger k."
    return [start + lacks + end if lacks else "" for lacks in found]


def no_better_than_constant(loss: str, margins: np.ndarray, y: np.ndarray) -> str:
    """What the predictions of these rows lack, or nothing.

    `margins` are those of the returned model; y holds numbers, or labels -1 and +1, or records of
    them with weights.
    """
    targets, weight = target_and_weight(y)
    weight = np.ones(len(targets)) if weight is None else weight * (len(weight) / weight.sum())
    if loss == "squared_error":
        return _of_numbers(margins, targets, weight)
    return _of_labels(Loss[loss], margins, targets, weight)


def _of_numbers(margins, y, weight) -> str:
    left = weight @ np.square(y - margins)
    constant = weight @ np.square(y - np.average(y, weights=weight))
    if len(y) < RARER or left < constant or constant == 0.0:
        return ""
    n = len(y)
    return f"mean squared errors are {left / n:.3g}, and {constant / n:.3g} with the mean of y"


def _of_labels(loss, margins, y, weight) -> str:
    """The share of correct labels decides; where no threshold is better, a clearly larger loss.

    The best model of a rare label may never predict it.
    """
    n, positive = len(y), weight @ (y > 0)
    constant = max(positive, n - positive)
    if min(np.sum(y > 0), np.sum(y < 0)) < RARER:
        return ""
    right = weight @ ((margins > 0) == (y > 0))
    chance = _ERRORS * np.sqrt(constant * (1.0 - constant / n))
    if right >= constant + chance:
        return ""
    best, gain = _best_threshold(margins, y, weight), weight * _gains(loss, margins, y, weight)
    if best < right + chance and gain.sum() > -_ERRORS * np.sqrt(gain @ gain):
        return ""
    found = f"{right / n:.3g} of the labels are right, and {constant / n:.3g} with a constant"
    return found + f" ({best / n:.3g} with the same coefficients and the best intercept)"


def _best_threshold(margins, y, weight) -> float:
    """The largest weight of correct labels that any threshold of the margins gives."""
    order = np.argsort(margins)
    change = np.cumsum((weight * y)[order])  # of the correct ones, as the threshold rises
    last = np.append(np.diff(margins[order]) > 0.0, True)
    return weight @ (y > 0) - min(0.0, change[last].min())


def _gains(loss, margins, y, weight) -> np.ndarray:
    """By how much the loss of each row is below that of the best constant margin."""
    constant = best_constant(loss, weight @ (y > 0), weight @ (y < 0))
    return losses(loss, np.full(len(y), constant), y) - losses(loss, margins, y)


def best_constant(loss: Loss, positive: float, negative: float) -> float:
    """The constant margin of the least loss, of so many labels +1 and -1."""
    if loss == Loss.log_loss:
        return float(np.log(positive / negative))
    balance = (positive - negative) / (positive + negative)
    return balance if loss == Loss.squared_hinge else float(np.sign(balance))


def least_of_constants(loss: str, positive: float, negative: float) -> float:
    """The sum of its losses."""
    m = best_constant(Loss[loss], positive, negative)
    code = int(Loss[loss])
    return positive * value(code, m, 1.0) + negative * value(code, m, -1.0)
