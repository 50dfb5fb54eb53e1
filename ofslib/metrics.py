"""What the papers measure of a fitted model, under the names that their tables use."""

from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment
from sklearn.metrics import accuracy_score, confusion_matrix, roc_auc_score, root_mean_squared_error


class NotFinite(ValueError):
    """A model has numbers that are not finite, and thus no score."""


def detection_rate(selected: np.ndarray, support: np.ndarray) -> float:
    """Share of the true features that were selected, in percent (sfsa, Section 5.1).

    Parameters
    ----------
    selected, support : ndarray of int
        Indices of the selected and of the true features.
    """
    return 100.0 * np.isin(support, selected).mean()


def clustering_accuracy(labels: np.ndarray, clusters: np.ndarray) -> float:
    """Share of rows with the right label, in percent, if each cluster stands for one label.

    The best such assignment counts; a cluster too many stands for none. (`ofs`, Figure 1, which
    shows it as a share and does not define it.)

    Parameters
    ----------
    labels, clusters : ndarray of shape (n,)
        Class and cluster of each row, by any names.
    """
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
        return np.asarray(model.support_)
    return np.flatnonzero(np.ravel(model.coef_))


def check_finite(model: Any) -> None:
    """Raise NotFinite, naming it, if `coef_` or `intercept_` of a model (if any) is not finite."""
    for name in ("coef_", "intercept_"):
        wrong = ~np.isfinite(np.ravel(getattr(model, name, 0.0)))
        if wrong.any():
            count = f"{wrong.sum()} of {wrong.size} values"
            raise NotFinite(f"{name} of {type(model).__name__} is not finite ({count})")


def _finite(model, method, X):
    """What a model says of rows."""
    check_finite(model)
    said = np.asarray(getattr(model, method)(X))
    if said.dtype.kind == "f" and not np.isfinite(said).all():
        raise NotFinite(f"{method} of {type(model).__name__} is not finite")
    return said


# Of a model, test rows and targets, and the true support (None where it is not known); NotFinite of
# a model that has none.
METRICS = {
    "DR": lambda model, X, y, support: detection_rate(selected_features(model), support),
    "RMSE": lambda model, X, y, support: root_mean_squared_error(y, _finite(model, "predict", X)),
    "AUC": lambda model, X, y, support: roc_auc_score(y, _finite(model, "decision_function", X)),
    "accuracy": lambda model, X, y, support: (
        100.0 * accuracy_score(y, _finite(model, "predict", X))
    ),
    "selected": lambda model, X, y, support: len(selected_features(model)),
}
