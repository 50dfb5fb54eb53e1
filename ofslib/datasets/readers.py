"""Data sets as arrays, and the readers of their files: (paths, n_features) -> X, y."""

import os
from dataclasses import dataclass

import numpy as np
import scipy.io
import scipy.sparse as sp

from ofslib.datasets.download import fetch
from ofslib.datasets.registry import find_row, splits
from ofslib.datasets.text import TextRows, as_matrix, joined, open_text


@dataclass(frozen=True, eq=False)
class Dataset:
    """Rows and labels as the paper splits them; what a set lacks is None.

    X is a CSR array (float64, int32 indices) where the data are sparse, else a C-ordered float64
    array, with the values of the file (MNIST: 0 to 255). Class labels are int64.
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
        n, p = row[f"n_{part}"], row["n_features"]
        X, y = READERS[row["reader"]](paths, p)
        if X.shape != (n, p) or y.size != n:
            raise ValueError(
                f"{name}, {part}: expected {n} x {p} as in the registry, got "
                f"{X.shape[0]} x {X.shape[1]} and {y.size} labels; correct the registry"
            )
        kind = np.int64 if row["task"] == "classification" else np.float64
        arrays |= {f"X_{part}": _as_float(X), f"y_{part}": y.ravel().astype(kind)}
    return Dataset(name, **arrays)


def _as_float(X):
    if not sp.issparse(X):
        return np.ascontiguousarray(X, dtype=np.float64)
    X = sp.csr_array(X, dtype=np.float64)
    X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)
    X.sort_indices()
    return X


def _ecml(paths, n_features):
    """One variable; the label is its last column."""
    table = next(v for k, v in scipy.io.loadmat(paths[0]).items() if not k.startswith("__"))
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
        arrays = scipy.io.loadmat(paths[0])
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


def _sparse_text(paths, n_features):
    pieces = list(TextRows(paths[0], False, n_features, np.float64).pieces())
    if not pieces:
        raise ValueError(f"{paths[0]}: expected rows, got a text without any")
    return as_matrix(joined(pieces), n_features)


READERS = {
    "ar_mat": _mat("DAT", "labels", transposed=True),
    "ecml_mat": _ecml,
    "ecml_mat_sparse": _ecml_sparse,
    "esl_text": _esl_text,
    "idx": _idx,
    "libsvm": _sparse_text,
    "skfeature_mat": _mat("X", "Y"),
    "vw": _sparse_text,
}
