"""Sums over the rows of a stream, each under the model that stood before the row was learned."""

from typing import NamedTuple

import numpy as np

from ofslib.kernels.losses import Loss, total
from ofslib.kernels.rows import Block
from ofslib.streams.selector import target_and_weight

# Sums that are kept, each for every model and, last, for several together: over all rows; over
# those since it was last asked; and over the first half of the largest power of two, and over this
# power, that are not more than all.
ALL, SINCE_ASKED, HALF, POWER = range(4)


class Sums(NamedTuple):
    """Sums over rows; regressors have no labels."""

    rows: float
    pairs: float  # of rows that follow each other
    changes: float  # of those with two targets, each by the product of the weights
    total: float  # of the weights; what follows is weighted
    loss: float
    score: float
    weight: float  # of the score
    positive: float  # labels +1
    negative: float
    predicted_positive: float
    predicted_negative: float


def of_mean_one(sums: np.ndarray) -> Sums:
    """The same sums as if weights had a mean of one."""
    unit = sums[0] / sums[3] if sums[3] else 1.0
    return Sums(*sums[:2], sums[2] * unit * unit, *(sums[3:] * unit))


def weighted_sum(values: np.ndarray, weight: np.ndarray | None):
    """The sum of the values, each times its weight if there are weights."""
    return (values if weight is None else weight * values).sum()


def add_rows(model, block: Block) -> None:
    """Add the rows of a block, which has targets and predictions of each model."""
    n, online = len(block.order), model._online
    before, model.n_samples_seen_ = model.n_samples_seen_, model.n_samples_seen_ + n
    power = 1 << model.n_samples_seen_.bit_length() - 1
    for mark in (power // 2, power):
        if before < mark:
            sums = sums_of(model, block, mark - before)
            online[HALF:] = online[POWER], online[ALL] + sums
    online[:HALF] += sums_of(model, block, n)


def sums_of(model, block: Block, n: int) -> np.ndarray:
    """The sums over the first n rows: of each model, and of several together."""
    loss, found, pairs = int(Loss[model.loss]), [], []
    with np.errstate(over="ignore", invalid="ignore"):
        for margins, y in zip(block.margins[:, :n], block.y, strict=True):
            y = y[block.order[:n]]
            targets, weight = target_and_weight(y)
            whole, change = n if weight is None else weight.sum(), np.diff(targets) != 0
            changes = change.sum() if weight is None else change @ (weight[1:] * weight[:-1])
            if hasattr(model, "classes_"):  # rows that were predicted rightly, and of each label
                count = np.count_nonzero if weight is None else weight.dot
                labels = count(targets > 0), count(targets < 0)
                predictions = count(margins > 0), count(margins < 0)
                own = count((margins > 0) == (targets > 0)), sum(labels), *labels, *predictions
            else:  # what was explained of the squares
                squares = weighted_sum(np.square(targets), weight)
                left = weighted_sum(np.square(margins - targets), weight)
                own = squares - left, squares, 0.0, 0.0, 0.0, 0.0
            found.append((n, n - 1, changes, whole, total(loss, margins, y), *own))
            pairs.append((margins, targets))
    if len(found) > 1:
        predicted, true = np.argmax(pairs, axis=0)
        score = weighted_sum(predicted == true, weight)
        found.append(Sums(*np.mean(found, axis=0))._replace(score=score))
    return np.array(found)
