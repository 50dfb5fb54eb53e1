"""Scores that are added up block by block are those of all rows at once."""

import numpy as np
import pytest
from sklearn.metrics import r2_score, roc_auc_score

from ofslib.metrics import Scores


def added(y, said, margins, classes=None):
    scores = Scores(classes)
    for part in np.array_split(np.arange(len(y)), [1, 5, 5, 60]):
        scores.add(y[part], said[part], margins[part, None])
    return scores


@pytest.mark.parametrize("mean", [0.0, 1e8])
def test_r2_is_that_of_all_rows(mean):
    rng = np.random.default_rng(0)
    y = mean + rng.standard_normal(200)
    said = y + 0.5 * rng.standard_normal(200)
    assert added(y, said, said).found() == {"r2": pytest.approx(r2_score(y, said), rel=1e-9)}
    y = np.full(70, 0.1)  # as scikit-learn
    assert added(y, y, y).found() == {"r2": 1.0}
    assert added(y, y + 1, y).found() == {"r2": 0.0}


def test_accuracy_and_auc_are_those_of_all_rows():
    rng = np.random.default_rng(0)
    margins = rng.standard_normal(200).round(1)  # with ties
    y = np.where(margins + rng.standard_normal(200) > 0, 5, -5)
    said = np.where(margins > 0, 5, -5)
    scores = added(y, said, margins, [-5, 5])
    found = {"accuracy": (said == y).mean(), "auc": roc_auc_score(y, margins)}
    assert scores.found() == found
    kept = [array for block in scores._kept for array in block]
    assert sum(array.nbytes for array in kept) == 9 * len(y)
    assert all(array.base is None for array in kept)
    assert added(abs(y), said, margins, [-5, 5]).found() == {"accuracy": (said == abs(y)).mean()}


@pytest.mark.parametrize(
    ("y", "reason"),
    [
        (np.full(70, np.nan), "the file has no labels"),
        (np.arange(70), "the labels of the file are not those of the model"),
        (np.empty(0), "the file has no rows"),
    ],
)
def test_without_labels_that_are_known_nothing_is_kept(y, reason):
    said = np.zeros(len(y))
    scores = added(y, said, said, [0, 1])
    assert (scores.found(), scores.reason, scores._kept) == ({}, reason, [])
