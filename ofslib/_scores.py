"""How often predictions are right, added up block by block."""

from typing import Any

import numpy as np


class Scores:
    """Accuracy and AUC of a classifier, or R^2 of a regressor, of labels that come in blocks.

    Only the AUC of two classes needs all rows at its end: 9 bytes of each, its decision and
    whether it is of the second class.

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
        self._n, self._right = 0, 0
        self._kept: list[tuple[np.ndarray, np.ndarray]] = []
        # Of y: its first value, from which all are counted, their mean and squares around it.
        self._origin = self._mean = self._squares = self._left = 0.0

    def add(self, y, said, margins) -> None:
        """Take the labels of some rows, what was predicted, and decisions of shape (n, .)."""
        if not len(y) or (self._n and self.reason):
            return
        self.reason = self._no_score(y)
        self._n += len(y)
        if self.reason:
            self._kept.clear()
        elif self.classes is None:
            self._add_numbers(np.asarray(y, np.float64), said)
        else:
            self._right += int(np.count_nonzero(said == y))
            if len(self.classes) == 2:
                decisions = np.array(margins[:, 0], np.float64)  # not a view of more than is kept
                self._kept.append((decisions, y == self.classes[1]))

    def _no_score(self, y) -> str:
        if y.dtype.kind == "f" and np.isnan(y).any():
            return "the file has no labels"
        known = y.dtype.kind != "U" if self.classes is None else np.isin(y, self.classes).all()
        return "" if known else "the labels of the file are not those of the model"

    def _add_numbers(self, y, said):
        seen, size = self._n - len(y), len(y)
        self._origin = self._origin if seen else y[0]
        shifted = y - self._origin
        mean = shifted.mean()
        apart = mean - self._mean
        self._squares += np.square(shifted - mean).sum() + apart**2 * seen * size / self._n
        self._mean += apart * size / self._n
        self._left += np.square(y - said).sum()

    def found(self) -> dict[str, float]:
        """The scores, by their names."""
        if self.reason:
            return {}
        if self.classes is None:
            return self._r2()
        scores = {"accuracy": self._right / self._n}
        if self._kept:
            margins, second = map(np.concatenate, zip(*self._kept, strict=True))
            if 0 < np.count_nonzero(second) < self._n:
                from sklearn.metrics import roc_auc_score

                scores["auc"] = float(roc_auc_score(second, margins))
        return scores

    def _r2(self):
        if self._n < 2:
            self.reason = "one row has no R^2"
            return {}
        if not self._squares:  # as scikit-learn has it
            return {"r2": float(not self._left)}
        return {"r2": float(1 - self._left / self._squares)}
