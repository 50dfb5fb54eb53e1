"""Whether features are on scales so unlike that steps cannot suit all of them."""

from typing import NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from ofslib.streams.selector import warn

# Rows and values that tell.
_ROWS, _VALUES = 1000, 2**20
# From 300 to 1000 times the others on, one feature of 200 keeps SFSA from learning; methods whose
# steps are larger, or given as a number, already at 30 times.
_UNLIKE = 300.0


class Scales(NamedTuple):
    """Sizes of features: the root of the mean square of their values that are not zero."""

    usual: float  # not more than half of the features have a larger one
    largest: float
    feature: int  # which has it

    @property
    def unlike(self) -> bool:
        """Whether the largest is so much larger that no steps suit it and the others."""
        return _UNLIKE * self.usual < self.largest < np.inf

    def said(self, names=None) -> str:
        """How unlike they are."""
        j = self.feature
        name = f"{j} (counted from 0)" if names is None else repr(str(names[j]))
        return (
            f"values of feature {name} are about {self.largest:.3g} in size, those of half of the "
            f"features at most {self.usual:.3g}"
        )


def scales(X, order) -> Scales | None:
    """Those in the first of these rows of an array or of sparse rows; None: all values are zero."""
    dense = isinstance(X, np.ndarray)
    width = X.shape[1] if dense else len(X.data) / max(1, len(X.indptr) - 1)
    rows = order[: min(_ROWS, max(1, int(_VALUES / max(width, 1))))]
    if dense:
        data = X[rows].astype(np.float64)
        features, count = np.arange(X.shape[1]), np.count_nonzero(data, axis=0)
        square = np.square(data, out=data).sum(axis=0)
    else:
        spans = [slice(X.indptr[i], X.indptr[i + 1]) for i in rows]
        data = np.concatenate([X.data[:0], *(X.data[span] for span in spans)], dtype=np.float64)
        indices = np.concatenate([X.indices[:0], *(X.indices[span] for span in spans)])
        features, places = np.unique(indices[data != 0], return_inverse=True)
        count, square = np.bincount(places), np.bincount(places, np.square(data[data != 0]))
    if not count.any():
        return None
    features, sizes = features[count > 0], np.sqrt(square[count > 0] / count[count > 0])
    largest = int(np.argmax(sizes))
    usual = np.sort(sizes)[(len(sizes) - 1) // 2]
    return Scales(float(usual), float(sizes[largest]), int(features[largest]))


def warn_if_unlike(model, block) -> None:
    """Warn of a feature far larger than the others: no steps suit it and them."""
    with np.errstate(over="ignore", invalid="ignore"):
        found = scales(block.X, block.order)
    if found and found.unlike:
        said = found.said(getattr(model, "feature_names_in_", None))
        warn(
            f"{type(model).__name__}: {said}. Steps small enough for the one may be too small to "
            "learn the others: standardise the features, or leave it out.",
            ConvergenceWarning,
        )
