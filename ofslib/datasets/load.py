"""Data sets as arrays, and files of any size as blocks of rows."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from ofslib.datasets.download import fetch
from ofslib.datasets.readers import READERS, sparse_text
from ofslib.datasets.registry import row_of, splits_of
from ofslib.datasets.stream import ArrayRows, CachedRows, Stream
from ofslib.datasets.text import TextRows


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


def load(name, folder="resources", split=None, registry_path=None):
    """Read a data set into memory, split as its paper splits it.

    Parameters
    ----------
    name, folder, split, registry_path
        As in `fetch`. With a split, the other one is neither brought nor read.

    Returns
    -------
    Dataset
    """
    row = row_of(name, registry_path)
    held = {}
    for part in splits_of(row, split):
        paths = fetch(name, folder, registry_path, split=part)
        X, y = READERS[row["reader"]](paths, int(row["n_features"]))
        expected = row[f"n_{part}"], row["n_features"]
        if X.shape != expected or y.size != expected[0]:
            raise ValueError(
                f"{name}, {part}: expected {expected[0]} x {expected[1]} as in the registry, got "
                f"{X.shape[0]} x {X.shape[1]} and {y.size} labels; correct the registry"
            )
        kind = np.int64 if row["task"] == "classification" else np.float64
        held |= {f"X_{part}": _as_float(X), f"y_{part}": y.ravel().astype(kind)}
    return Dataset(name, **held)


def _as_float(X):
    if not sp.issparse(X):
        return np.ascontiguousarray(X, dtype=np.float64)
    X = sp.csr_array(X, dtype=np.float64)
    X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)
    X.sort_indices()
    return X


def open_stream(
    path_or_name,
    block_rows=10_000,
    cache=True,
    n_features=None,
    folder="resources",
    dtype=np.float64,
    start_row=0,
    zero_based=False,
    split="train",
    registry_path=None,
):
    """Go through a LIBSVM or Vowpal Wabbit text in blocks of rows, in constant memory.

    The text may be compressed (.gz, .bz2, .xz). A bar in its first line means Vowpal Wabbit's: one
    namespace, `index:value`, no importance weights.

    Parameters
    ----------
    path_or_name : path-like
        A text file, or a data set of the registry (one that is not a text is held in memory).
    block_rows : int
        Rows per block; the last block may have fewer.
    cache : bool or path-like
        Parse once, at the first use, into a binary file from which all passes read:
        `<file>.ofscache` beside the text or in the folder given (12 bytes per nonzero). It is made
        anew if text or options change, or if it is damaged. With False each pass parses.
    n_features : int, optional
        Width of every block; else the largest index, from the cache or from one more pass.
    folder, split, registry_path
        As in `fetch`, for a data set of the registry.
    dtype : float64 or float32
        Of the values; labels are float64.
    start_row : int
        Begin here, to go on where an earlier run stopped.
    zero_based : bool
        Whether the smallest index is 0. It is never guessed; an unexpected 0 is an error.

    Returns
    -------
    Stream
        Iterating yields `(X_block, y_block)`: a CSR array with int32 indices, an array.

    Raises
    ------
    ValueError, CorruptFile
        While iterating: a wrong line, with file and number; a text that is cut short.
    """
    path, dtype = Path(path_or_name), _float_type(dtype)
    if not path.is_file():
        row = row_of(str(path_or_name), registry_path, "no file and no data set")
        if READERS[row["reader"]] is not sparse_text:
            held = vars(load(row.name, folder, split, registry_path))
            source = ArrayRows(held[f"X_{split}"], held[f"y_{split}"], dtype)
            return Stream(source, block_rows, n_features, start_row)
        [path] = fetch(row.name, folder, registry_path, split=split)
        n_features = n_features or int(row["n_features"])
    source = _text_rows(path, cache, n_features, dtype, zero_based)
    return Stream(source, block_rows, n_features, start_row)


def _float_type(dtype):
    if np.dtype(dtype) not in (np.float32, np.float64):
        raise ValueError(f"expected dtype float32 or float64, got {np.dtype(dtype)}")
    return np.dtype(dtype)


def _text_rows(path, cache, n_features, dtype, zero_based):
    if not cache:
        return TextRows(path, zero_based, n_features, dtype)
    folder = path.parent if cache is True else Path(cache)
    return CachedRows(TextRows(path, zero_based, None, dtype), folder / f"{path.name}.ofscache")
