"""What the papers measure of a fitted model, under the names that their tables use."""

from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment
from sklearn.metrics import accuracy_score, confusion_matrix, roc_auc_score, root_mean_squared_error


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
    """Indices of the features that a fitted model uses: `support_`, else nonzero `coef_`."""
    if hasattr(model, "support_"):
        return np.asarray(model.support_)
    return np.flatnonzero(np.ravel(model.coef_))


# Of a model, test rows and targets, and the true support (None where it is not known).
METRICS = {
    "DR": lambda model, X, y, support: detection_rate(selected_features(model), support),
    "RMSE": lambda model, X, y, support: root_mean_squared_error(y, model.predict(X)),
    "AUC": lambda model, X, y, support: roc_auc_score(y, model.decision_function(X)),
    "accuracy": lambda model, X, y, support: 100.0 * accuracy_score(y, model.predict(X)),
    "selected": lambda model, X, y, support: len(selected_features(model)),
}
