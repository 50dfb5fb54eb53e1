"""Scores that are added up block by block are those of all rows at once."""

import numpy as np
import pytest
from scipy.special import log_softmax
from sklearn.metrics import (
    accuracy_score,
    average_precision_score,
    log_loss,
    precision_recall_fscore_support,
    r2_score,
    roc_auc_score,
    root_mean_squared_error,
)

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
    found = added(y, said, said).found()
    rmse = root_mean_squared_error(y, said)
    assert found == pytest.approx({"r2": r2_score(y, said), "rmse": rmse}, rel=1e-9)


def test_r2_of_equal_labels_is_scikit_learns():
    y = np.full(70, 0.1)
    assert added(y, y, y).found() == {"r2": 1.0, "rmse": 0.0}
    assert added(y, y + 1, y).found() == {"r2": 0.0, "rmse": pytest.approx(1.0)}


@pytest.mark.parametrize("labels", [[-5, 5], ["no", "yes"], [1, 2, 7]])
def test_scores_of_labels_are_those_of_all_rows(labels):
    rng, labels = np.random.default_rng(0), np.array(labels)
    margins = rng.standard_normal((200, len(labels))).round(1)  # with ties
    places = (margins + rng.standard_normal(margins.shape)).argmax(axis=1)
    y, said = labels[places], labels[margins.argmax(axis=1)]
    log_proba = log_softmax(margins, axis=1)
    scores = Scores(labels)
    for part in np.array_split(np.arange(200), [1, 5, 5, 60]):
        scores.add(y[part], said[part], margins[part, -1:], log_proba[part])
    found = {
        "accuracy": accuracy_score(y, said),
        "majority": np.bincount(places).max() / 200,
        "log_loss": log_loss(y, np.exp(log_proba), labels=labels),
    }
    if len(labels) == 2:
        found["auc"] = roc_auc_score(places, margins[:, 1])
        found["average_precision"] = average_precision_score(places, margins[:, 1])
    assert scores.found() == pytest.approx(found, rel=1e-12)
    precision, recall, _, rows = precision_recall_fscore_support(y, said)
    for c, of_label in enumerate(scores.per_class()):
        expected = {"label": labels[c], "rows": rows[c]}
        expected |= {"precision": precision[c], "recall": recall[c]}
        assert of_label == expected
    kept = [array for block in scores._kept for array in block]
    assert sum(array.nbytes for array in kept) == (9 * 200 if len(labels) == 2 else 0)
    assert all(array.base is None for array in kept)


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
