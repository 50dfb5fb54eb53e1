"""What the papers measure of a fitted model, under the names that their tables use."""

from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.optimize import linear_sum_assignment
from sklearn.metrics import (
    accuracy_score,
    average_precision_score,
    confusion_matrix,
    r2_score,
    roc_auc_score,
    root_mean_squared_error,
)


class NotFinite(ValueError):
    """A model has numbers that are not finite, and thus no score."""


def detection_rate(selected: np.ndarray, support: np.ndarray) -> float:
    """Share of the true features that were selected, in percent (sfsa, Section 5.1).

    Parameters
    ----------
    selected, support : ndarray of int
        Indices of the selected and of the true features, of which there is at least one.

    Raises
    ------
    ValueError
        If one of them is no list of indices; a mask is none.
    """
    selected, support = _indices("selected", selected), _indices("support", support)
    if not support.size:
        raise ValueError("support holds no feature, and so there is none to detect")
    return 100.0 * np.isin(support, selected).mean()


def clustering_accuracy(labels: np.ndarray, clusters: np.ndarray) -> float:
    """Share of rows with the right label, in percent, if each cluster stands for one label.

    The best such assignment counts; a cluster too many stands for none. (`ofs`, Figure 1, which
    shows it as a share and does not define it.)

    Parameters
    ----------
    labels, clusters : ndarray of shape (n,)
        Class and cluster of each row, by any names.

    Raises
    ------
    ValueError
        If they are not of one length, at least 1.
    """
    if np.ndim(labels) != 1 or np.shape(labels) != np.shape(clusters) or not len(labels):
        shapes = f"{np.shape(labels)} and {np.shape(clusters)}"
        raise ValueError(f"labels and clusters must have the shape (n,), n > 0; got {shapes}")
    _, labels = np.unique(labels, return_inverse=True)
    _, clusters = np.unique(clusters, return_inverse=True)
    counts = confusion_matrix(labels, clusters)
    return 100.0 * counts[linear_sum_assignment(counts, maximize=True)].sum() / len(labels)


def selected_features(model: Any) -> np.ndarray:
    """Indices of the features that a fitted model uses: `support_`, else nonzero `coef_`.

    Raises
    ------
    NotFinite
        If a coefficient is not finite.
    """
    check_finite(model)
    if hasattr(model, "support_"):
        return _indices("support_", model.support_)
    return np.flatnonzero(np.ravel(model.coef_))


def _indices(name: str, values: Any) -> np.ndarray:
    found = np.asarray(values)
    # A list of no index is one of floats.
    whole = found.dtype.kind in "iu" or not found.size
    if found.ndim != 1 or not whole or found.min(initial=0) < 0:
        raise ValueError(f"{name} must be indices of features, got {str(values)[:50]}")
    return found


def read_only(values: Any) -> Any:
    """The same numbers, dense or sparse, without a copy; to change them is an error."""
    if sp.issparse(values):
        same = type(values)(values)
        for name in ("data", "indices", "indptr"):
            setattr(same, name, read_only(getattr(values, name)))
        return same
    same = np.asarray(values).view()
    same.flags.writeable = False
    return same


def check_finite(model: Any) -> None:
    """Raise NotFinite, naming it, if `coef_` or `intercept_` of a model (if any) is not finite."""
    for name in ("coef_", "intercept_"):
        wrong = ~np.isfinite(np.ravel(getattr(model, name, 0.0)))
        if wrong.any():
            count = f"{wrong.sum()} of {wrong.size} values"
            raise NotFinite(f"{name} of {type(model).__name__} is not finite ({count})")


def said(model: Any, method: str, X: Any) -> np.ndarray:
    """What a method of a model says of rows.

    Raises
    ------
    NotFinite
        If that, or a coefficient, is not finite.
    """
    check_finite(model)
    found = np.asarray(getattr(model, method)(read_only(X)))
    if found.dtype.kind == "f" and not np.isfinite(found).all():
        raise NotFinite(f"{method} of {type(model).__name__} is not finite")
    return found


def _accuracy(y, found) -> float:
    if np.isin(y, (-1, 1)).all() and not np.isin(found, (-1, 1)).all():
        said = np.unique(found)[:5].tolist()
        raise ValueError(f"predict must say the labels, -1 and 1, and says {said}")
    return 100.0 * accuracy_score(y, found)


# Of the targets of rows, and of what a model says of them by the method of `SAID`.
SCORES = {
    "RMSE": root_mean_squared_error,
    "R2": r2_score,
    "AUC": roc_auc_score,
    "accuracy": _accuracy,
}
SAID = {"RMSE": "predict", "R2": "predict", "AUC": "decision_function", "accuracy": "predict"}
TASKS = {"RMSE": "regression", "R2": "regression"}
TASKS |= {"AUC": "classification", "accuracy": "classification"}


def _on_rows(metric):
    return lambda model, X, y, support: SCORES[metric](y, said(model, SAID[metric], X))


# Of a model, test rows and targets, and the true support (None where it is not known); NotFinite of
# a model that has none.
METRICS = {
    "DR": lambda model, X, y, support: detection_rate(selected_features(model), support),
    "selected": lambda model, X, y, support: len(selected_features(model)),
    **{metric: _on_rows(metric) for metric in SCORES},
}


class Scores:
    """How right a model is about labels that come in blocks.

    Of two labels at most 9 bytes a row are kept: the decision, and whether it is the second label.
    Of others nothing is kept.

    Parameters
    ----------
    classes : array-like, optional
        The labels that a classifier knows; None for a regressor.

    Attributes
    ----------
    reason : str
        Why there is no score; empty where there is one.
    """

    def __init__(self, classes: Any = None):
        self.classes, self.reason = classes, "the file has no rows"
        self._n, self._left = 0, 0.0
        self._first, self._mean, self._around = 0.0, 0.0, 0.0  # of labels; squares around the mean
        self._confused = np.zeros(2 * (0 if classes is None else len(classes),), np.int64)
        self._log_loss: float | None = 0.0  # a sum; None if the model gives no probabilities
        self._kept: list[tuple[np.ndarray, ...]] = []

    def add(self, y, said, margins, log_proba=None) -> None:
        """Take the labels of some rows, and what was said: predictions, decisions of shape (n, .),
        and logarithms of probabilities of shape (n, number of labels), if there are any."""
        if not len(y) or (self._n and self.reason):
            return
        known = y.dtype.kind != "U" if self.classes is None else np.isin(y, self.classes).all()
        self.reason = "" if known else "the labels of the file are not those of the model"
        if y.dtype.kind == "f" and np.isnan(y).any():
            self.reason = "the file has no labels"
        n, self._n = self._n, self._n + len(y)
        if self.reason:
            self._kept.clear()
        elif self.classes is None:
            self._left += np.square(y - said).sum()
            self._first = self._first if n else y[0]  # less it, equal labels are exactly 0
            centred = y - self._first
            mean = centred.mean()
            apart = mean - self._mean
            self._around += np.square(centred - mean).sum() + apart**2 * n * len(y) / self._n
            self._mean += apart * len(y) / self._n
        else:
            places = np.searchsorted(self.classes, y)
            np.add.at(self._confused, (places, np.searchsorted(self.classes, said)), 1)
            if log_proba is None:
                self._log_loss = None
            elif self._log_loss is not None:
                self._log_loss -= float(log_proba[np.arange(len(y)), places].sum())
            if len(self.classes) == 2:
                decisions = np.array(margins[:, 0], np.float64)  # not a view of more than is kept
                self._kept.append((decisions, places == 1))

    def found(self) -> dict[str, float]:
        """The scores, by their names; `majority` is the accuracy of always the commonest label."""
        if self.classes is None and self._n == 1:
            self.reason = "one row has no R^2"
        if self.reason:
            return {}
        if self.classes is None:  # as scikit-learn has it, if all labels are the same
            r2 = 1 - self._left / self._around if self._around else not self._left
            return {"r2": float(r2), "rmse": float(np.sqrt(self._left / self._n))}
        rows = self._confused.sum(axis=1)
        scores = {"accuracy": float(np.trace(self._confused) / self._n)}
        scores["majority"] = float(rows.max() / self._n)
        if self._log_loss is not None:
            scores["log_loss"] = self._log_loss / self._n
        kept = [np.concatenate(parts) for parts in zip(*self._kept, strict=True)]
        if kept and 0 < rows[1] < self._n:
            scores["auc"] = float(roc_auc_score(kept[1], kept[0]))
            scores["average_precision"] = float(average_precision_score(kept[1], kept[0]))
        return scores

    def per_class(self) -> list[dict[str, Any]]:
        """Rows, precision and recall of each label; None where nothing can be divided by."""
        if self.reason or self.classes is None:
            return []
        right = np.diag(self._confused)
        rows, said = self._confused.sum(axis=1), self._confused.sum(axis=0)
        labels = np.asarray(self.classes).tolist()
        return [
            {
                "label": label,
                "rows": int(rows[c]),
                "precision": float(right[c] / said[c]) if said[c] else None,
                "recall": float(right[c] / rows[c]) if rows[c] else None,
            }
            for c, label in enumerate(labels)
        ]
