"""What data have to be before compiled code reads them: matrices whose parts fit together; weights.

scipy and the kernels trust them: an index beyond the width would be looked up, or written to,
anywhere in the memory of the process.
"""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_array, check_X_y, validate_data


class NamedRows(sp.csr_array):
    """Sparse rows that know what their columns are called; what is cut out of them does not.

    Attributes
    ----------
    feature_names : ndarray of shape (n_features,) of str, or None
        One name for each column.
    """

    feature_names: np.ndarray | None = None


def validated(estimator, X, *y, ascend=None, reset: bool = True, **form):
    """`validate_data` of scikit-learn, which is to take `NamedRows` as it takes data frames.

    Malformed sparse matrices are refused; `ascend` as in `checked`.
    """
    names = X.feature_names if isinstance(X, NamedRows) else None
    X = checked(X, ascend) if sp.issparse(X) else X
    refuse_misread(X=X)
    if names is None:
        with cells_named(X, *y):
            return validate_data(estimator, X, *map(plain_words, y), reset=reset, **form)
    import pandas as pd

    # A frame without rows has all of it that is compared: names, in their order.
    columns = pd.DataFrame(columns=names)
    validate_data(estimator, columns, *y, reset=reset, skip_check_array=True)
    if y:
        return check_X_y(X, *y, estimator=estimator, **form)
    return check_array(X, estimator=estimator, input_name="X", **form)


@contextmanager
def cells_named(X, y=None) -> Iterator[None]:
    """Where cells are no numbers: ValueError that names the column of X, or the row of y."""
    try:
        yield
    except (TypeError, ValueError) as error:
        if not re.match("could not convert|.*(NAType|value of NA )", str(error)):
            raise
        import pandas as pd

        for name in _of_words(X):
            raise ValueError(
                f"column {name!r} of X holds what is no number ({error}): code words as numbers, "
                "as OneHotEncoder of scikit-learn does, and fill in what is missing"
            ) from None
        if len(rows := np.flatnonzero(pd.isna(np.ravel(np.asarray(y, object))))):
            raise ValueError(f"y contains no value in row {rows[0]}: leave the row out") from None
        raise


def _of_words(X) -> Iterator[Any]:
    """The columns of a data frame or an array that cannot be read as numbers."""
    columns: Any = ((name, X[name]) for name in getattr(X, "columns", ()))
    if not (hasattr(X, "columns") or sp.issparse(X)) and np.ndim(X) == 2:
        columns = enumerate(np.asarray(X, object).T)
    for name, column in columns:
        try:
            np.asarray(column, dtype=np.float64)
        except (TypeError, ValueError):
            yield name


def plain_words(y):
    """The same labels; words of numpy's newer type in the older one, which scikit-learn reads."""
    return np.array(y.tolist()) if getattr(getattr(y, "dtype", None), "kind", "") == "T" else y


def checked(X, ascend: Callable[..., bool] | None = None):
    """X itself, unless it is sparse and malformed: then ValueError.

    What is not sparse passes. With `ascend(indptr, indices, width)`, which tells whether the
    indices of each row (CSR) or column (CSC) ascend from at least 0 to less than `width`,
    `has_canonical_format` of X then says so, whatever it said before; one pass tells both.
    """
    if sp.issparse(X):
        check = {"csr": _check_compressed, "csc": _check_compressed, "coo": _check_coordinates}
        # The other formats are lists and blocks that scipy can check, or cannot read out of.
        check.get(X.format, _check_other)(X, ascend)
    return X


def refuse_masked(**given) -> None:
    """ValueError for masked entries, whose masks numpy's functions leave out."""
    for name, values in given.items():
        if np.ma.is_masked(values):
            raise ValueError(f"{name} has masked entries: fill them, or leave their rows out")


def refuse_misread(**given) -> None:
    """ValueError for what would be read as other numbers: masked entries, dates and durations.

    Dates as numbers depend on the unit they are kept in.
    """
    refuse_masked(**given)
    for name, values in given.items():
        if _holds_times(values):
            raise ValueError(f"{name} holds dates or durations: give numbers, in a unit you choose")


def _holds_times(values) -> bool:
    """Whether any number of a data frame, an array or lists of these is a date or a duration."""
    if isinstance(values, np.ndarray) and values.dtype == object:
        values = values.ravel().tolist()
    if isinstance(values, (list, tuple)):
        return any(map(_holds_times, values))
    if hasattr(values, "dtypes"):  # those of a column, or of each column
        return any(getattr(kind, "kind", "") in ("m", "M") for kind in np.atleast_1d(values.dtypes))
    return getattr(getattr(values, "dtype", None), "kind", "") in ("m", "M")


def checked_targets(y) -> np.ndarray:
    """Targets as float64 in one piece, which may be written to; ValueError if not all are numbers.

    Infinite ones pass.
    """
    try:
        y = np.require(y, np.float64, "CW")
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(
            f"y must be numbers ({error}): words are labels, which a classifier takes"
        ) from None
    if np.isnan(y).any():  # None, until now
        raise ValueError(f"y contains no number in row {np.flatnonzero(np.isnan(y))[0]}")
    return y


def checked_weights(sample_weight, n: int) -> np.ndarray:
    """The weights of n rows, float64; ValueError if they are no numbers of 0 or more."""
    refuse_misread(sample_weight=sample_weight)
    sample_weight = np.asarray(sample_weight)
    if sample_weight.shape != (n,):
        found = sample_weight.shape
        raise ValueError(f"sample_weight must have the shape {(n,)}, got {found}.")
    weights = check_array(
        sample_weight, dtype=np.float64, ensure_2d=False, input_name="sample_weight"
    )
    if (weights < 0).any():
        raise ValueError(f"sample_weight must be 0 or more, got {weights.min()}.")
    return weights


def _check_compressed(X, ascend):
    lines, width = X.shape if X.format == "csr" else X.shape[::-1]
    indptr, indices, data = X.indptr, X.indices, X.data
    vectors = all(part.ndim == 1 for part in (indptr, indices, data))
    if not vectors or indptr.dtype.kind not in "iu" or indices.dtype.kind not in "iu":
        raise _malformed("indptr, indices and data must be vectors, the first two of integers")
    stored = min(len(indices), len(data))
    fits = len(indptr) == lines + 1 and indptr[0] == 0 and indptr[-1] <= stored
    if not fits or (indptr[1:] < indptr[:-1]).any():
        raise _malformed(
            f"indptr must be {lines + 1} numbers that ascend from 0 to {stored} at most"
        )
    if ascend is not None:
        X.has_canonical_format = ascend(indptr, indices, width)
        if X.has_canonical_format:
            return
    _refuse_outside(indices[: indptr[-1]], width, "column" if X.format == "csr" else "row")


def _check_coordinates(X, _):
    if len({len(X.data), *map(len, X.coords)}) > 1:
        raise _malformed("rows, columns and values are not as many")
    for coordinates, size, what in zip(X.coords, X.shape, ("row", "column"), strict=True):
        _refuse_outside(coordinates, size, what)


def _check_other(X, _):
    if X.format == "bsr":
        try:
            X.check_format(full_check=True)
        except ValueError as error:
            raise _malformed(str(error)) from error


def _refuse_outside(indices, size, what) -> None:
    """ValueError for the first index that is not from 0 to size - 1."""
    # Seen as unsigned, a negative one is beyond any size: one pass finds both.
    unsigned = indices.view(f"u{indices.dtype.itemsize}")
    if unsigned.size and unsigned.max() >= size:
        place = int(np.argmax(unsigned >= size))
        raise _malformed(f"entry {place} is in {what} {indices[place]}, of {size} {what}s")


def _malformed(why) -> ValueError:
    return ValueError(f"X is a malformed sparse matrix: {why}.")
