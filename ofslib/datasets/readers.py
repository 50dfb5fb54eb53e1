"""Data sets as arrays, and the readers of their files: (paths, n_features) -> X, y."""

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from ofslib.datasets.compressed import open_text
from ofslib.datasets.download import fetch
from ofslib.datasets.formats import ArrayRows, BlockRows, as_rows
from ofslib.datasets.pieces import as_matrix, joined
from ofslib.datasets.registry import LABELLED, find_row, splits
from ofslib.datasets.tables import TEXTS, open_table
from ofslib.datasets.text import TextRows


@dataclass(frozen=True, eq=False)
class Dataset:
    """Rows and labels as the paper splits them; what a set lacks is None.

    X is a CSR array (float64, int32 indices) where the data are sparse, else a C-ordered float64
    array, with the values of the file (MNIST: 0 to 255). Class labels are int64, or what they are.

    Examples
    --------
    >>> import numpy as np
    >>> from ofslib.datasets import Dataset
    >>> mine = Dataset("mine", X_train=np.eye(3), y_train=np.array([1, 0, 1]))
    >>> mine.X_train.shape, mine.X_test is None
    ((3, 3), True)
    """

    name: str
    X_train: np.ndarray | sp.csr_array | None = None
    y_train: np.ndarray | None = None
    X_test: np.ndarray | sp.csr_array | None = None
    y_test: np.ndarray | None = None


def load(
    name: str,
    folder: str | os.PathLike = "resources",
    split: str | None = None,
    registry_path: str | os.PathLike | None = None,
) -> Dataset:
    """Read a data set into memory, split as its paper splits it.

    The parameters are those of `fetch`. With a split, the other one is neither brought nor read.
    """
    row = find_row(name, registry_path)
    arrays = {}
    for part in splits(row, split):
        paths = fetch(name, folder, registry_path, split=part)
        X, y = _arrays(row, paths)
        n, p = row[f"n_{part}"] or X.shape[0], row["n_features"] or X.shape[1]
        if X.shape != (n, p) or y.size != n:
            raise ValueError(
                f"{name}, {part}: expected {n} x {p} as in the registry, got "
                f"{X.shape[0]} x {X.shape[1]} and {y.size} labels; correct the registry"
            )
        y = y.ravel()
        whole = row["task"] == "classification" and y.dtype.kind in "biuf"
        kind = np.int64 if whole and (y == np.round(y)).all() else y.dtype
        arrays |= {f"X_{part}": _as_float(X), f"y_{part}": y.astype(kind)}
    return Dataset(name, **arrays)


def rows_of(row: dict[str, Any], paths: Sequence[Path], dtype: npt.DTypeLike = np.float64) -> Any:
    """The rows of the files of a split as a source of pieces, read by blocks if the reader can."""
    reader, width = row["reader"], row["n_features"] or None
    if reader in TEXTS:
        return TextRows(paths[0], dtype, width, reader)
    if reader in READERS:
        X, y = READERS[reader](paths, width)
        return ArrayRows(_as_float(X), y.ravel(), dtype, where=row["name"])
    if ":" in reader:
        module, _, name = reader.partition(":")
        function = getattr(import_module(module), name)
        found = function(list(paths))
        if isinstance(found, tuple):
            return as_rows(*found, dtype, where=row["name"])
        return BlockRows(lambda: function(list(paths)), dtype)
    return open_table(paths[0], reader, label_of(row), None, True, dtype)


def label_of(row: dict[str, Any]) -> str | int | None:
    """The column that holds the labels, by name or position, as the registry says it."""
    label = row["label"]
    return int(label) if re.fullmatch("-?[0-9]+", label) else label or None


def _arrays(row, paths):
    if row["reader"] in READERS:
        return READERS[row["reader"]](paths, row["n_features"])
    rows = rows_of(row, paths)
    pieces = list(rows.pieces())
    if not pieces:
        raise ValueError(f"{paths[0]}: expected rows, got a text without any")
    whole = joined(pieces)
    width = row["n_features"] or rows.columns or whole.columns
    X, y = as_matrix(whole, width)
    dense = row["reader"] in LABELLED or not sp.issparse(getattr(rows, "X", X))
    return (X.toarray() if dense else X), y


def _as_float(X):
    if not sp.issparse(X):
        return np.ascontiguousarray(X, dtype=np.float64)
    X = sp.csr_array(X, dtype=np.float64)
    X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)
    X.sort_indices()
    return X


def _loadmat(path):
    from scipy.io import loadmat  # who reads texts needs none of it

    return loadmat(path)


def _ecml(paths, n_features):
    """One variable; the label is its last column."""
    table = next(v for k, v in _loadmat(paths[0]).items() if not k.startswith("__"))
    return table[:, :-1], table[:, -1]


def _ecml_sparse(paths, n_features):
    X, y = _ecml(paths, n_features)
    if sp.issparse(X):
        return X, y.toarray()
    # Some of the columns at a time, as MATLAB stores them: finding the nonzeros of all at once
    # would take several times the 364 MB of farm_ads.
    return sp.vstack([sp.csr_array(X.T[j : j + 2048]) for j in range(0, X.shape[1], 2048)]).T, y


def _mat(features, labels, transposed=False):
    def read(paths, n_features):
        arrays = _loadmat(paths[0])
        return (arrays[features].T if transposed else arrays[features]), arrays[labels]

    return read


def _esl_text(paths, n_features):
    with open_text(paths[0]) as file:
        rows = np.array([float(word) for word in file.read().split()]).reshape(-1, 1 + n_features)
    return rows[:, 1:], rows[:, 0]


def _idx(paths, n_features):
    images, labels = (_idx_array(path) for path in paths)
    return images.reshape(len(images), -1), labels


def _idx_array(path):
    with open_text(path) as file:
        raw = file.read()
    axes = raw[3]
    shape = np.frombuffer(raw, ">u4", axes, offset=4)
    return np.frombuffer(raw, np.uint8, offset=4 + 4 * axes).reshape(shape)


READERS = {
    "ar_mat": _mat("DAT", "labels", transposed=True),
    "ecml_mat": _ecml,
    "ecml_mat_sparse": _ecml_sparse,
    "esl_text": _esl_text,
    "idx": _idx,
    "skfeature_mat": _mat("X", "Y"),
}
