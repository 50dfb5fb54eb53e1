"""Whether features are on scales so unlike that steps cannot suit all of them."""

from typing import NamedTuple

import numpy as np

# Rows that tell, and that do not yet; values that are read, and the most of few wide rows.
_ROWS, _FEW, _VALUES, _MOST = 1000, 20, 2**16, 2**20
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
        return self.largest > _UNLIKE * self.usual

    def said(self, names=None, first: int = 0) -> str:
        """How unlike they are; without names features are counted from `first`."""
        j = self.feature
        name = f"{j + first} (counted from {first:d})" if names is None else repr(str(names[j]))
        return (
            f"values of feature {name} are about {self.largest:.3g} in size, those of half of the "
            f"features at most {self.usual:.3g}"
        )


def scales(X, order) -> Scales | None:
    """Those in the first of these rows of an array or of sparse rows.

    None if all values are zero, or a square is not finite.
    """
    width = X.shape[1] if isinstance(X, np.ndarray) else len(X.data) / max(1, len(X.indptr) - 1)
    width = max(width, 1)
    rows = order[: int(min(_ROWS, max(_VALUES / width, min(_FEW, _MOST / width), 1)))]
    with np.errstate(over="ignore", invalid="ignore"):
        features, count, square = _squares(X, rows)
    if not count.any() or not np.isfinite(square.sum()):
        return None
    features, sizes = features[count > 0], np.sqrt(square[count > 0] / count[count > 0])
    largest = int(np.argmax(sizes))
    usual = np.sort(sizes)[(len(sizes) - 1) // 2]
    return Scales(float(usual), float(sizes[largest]), int(features[largest]))


def _squares(X, rows) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Features, how many of their values in these rows are not zero, and the sums of squares."""
    if isinstance(X, np.ndarray):
        data = X[rows].astype(np.float64)
        count = np.count_nonzero(data, axis=0)
        return np.arange(X.shape[1]), count, np.square(data, out=data).sum(axis=0)
    spans = [slice(X.indptr[i], X.indptr[i + 1]) for i in rows]
    data = np.concatenate([X.data[:0], *(X.data[span] for span in spans)], dtype=np.float64)
    indices = np.concatenate([X.indices[:0], *(X.indices[span] for span in spans)])
    features, places = np.unique(indices[data != 0], return_inverse=True)
    return features, np.bincount(places), np.bincount(places, np.square(data[data != 0]))


def unlike(model, X, order) -> str:
    """What to say of a feature far larger than the others in the first rows, or nothing.

    Of few rows nothing: their sizes are a matter of chance.
    """
    found = scales(X, order) if len(order) >= _FEW and model.n_samples_seen_ < _ROWS else None
    if not (found and found.unlike):
        return ""
    said = found.said(getattr(model, "feature_names_in_", None))
    return (
        f"{type(model).__name__}: {said}. Steps small enough for the one may be too small to learn "
        "the others: standardise the features, or leave it out."
    )
