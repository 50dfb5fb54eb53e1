"""Data sets: from a row of `config/datasets.csv` to checked files, arrays, or blocks of rows.

`registry` reads the table, `fetch` brings the files of a row, `load` gives them as arrays, and
`open_stream` goes through a file of any size in blocks of rows, in constant memory.
"""

import hashlib
import os
import re
import shutil
import socket
import struct
import threading
import urllib.request
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

import numpy as np
import pandas as pd
import pooch
import scipy.io
import scipy.sparse as sp

from ofslib.blocks import (
    ArrayRows,
    CachedRows,
    CorruptFile,
    Stream,
    TextRows,
    numbers_of,
    open_text,
    whole_or_nothing,
)

REGISTRY = Path(__file__).parents[1] / "config" / "datasets.csv"
MIRROR = "OFSLIB_DATA_MIRROR"
SOURCE = "https://raw.githubusercontent.com"


class NotObtainable(Exception):
    """A file is in none of the places where it was looked for, or they do not answer."""


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


# -------------------------------------------------- readers: (paths, n_features) -> X, y


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
        held = scipy.io.loadmat(paths[0])
        return (held[features].T if transposed else held[features]), held[labels]

    return read


def _esl_text(paths, n_features):
    with open_text(paths[0]) as file:
        rows = numbers_of(file.read()).reshape(-1, 1 + n_features)
    return rows[:, 1:], rows[:, 0]


def _idx(paths, n_features):
    images, labels = (_idx_array(path) for path in paths)
    return images.reshape(len(images), -1), labels


def _idx_array(path):
    with open_text(path) as file:
        raw = file.read()
    axes = raw[3]
    shape = struct.unpack_from(f">{axes}I", raw, 4)
    return np.frombuffer(raw, np.uint8, offset=4 + 4 * axes).reshape(shape)


def _sparse_text(paths, n_features):
    X, y = zip(*TextRows(paths[0], False, n_features, np.float64).pieces(), strict=True)
    return sp.vstack(X), np.concatenate(y)


_READERS = {
    "ecml_mat": _ecml,
    "ecml_mat_sparse": _ecml_sparse,
    "skfeature_mat": _mat("X", "Y"),
    "ar_mat": _mat("DAT", "labels", transposed=True),
    "esl_text": _esl_text,
    "idx": _idx,
    "libsvm": _sparse_text,
    "vw": _sparse_text,
}

# -------------------------------------------------- the registry


def _several(pattern):
    return f"{pattern}( {pattern})*"


_PATH, _SUM = r"[\w-][\w./-]*", r"(sha256:[0-9a-f]{64}|git:[0-9a-f]{40})"
_SUMS_TEXT = "sha256:<64 digits> or git:<40 digits> for each file, single spaces between"
_SIZES = (f"({_several('[0-9]+')})?", "the size of each file, or nothing beside git: checksums")
_COLUMNS = {  # column: (pattern of the whole cell, what is allowed in words)
    "name": ("[a-z0-9_]+", "small letters, digits and _"),
    "title": (".+", "the name to show"),
    "reader": ("|".join(_READERS), "one of " + ", ".join(_READERS)),
    "repository": (r"[\w.-]+/[\w.-]+", "owner/repository"),
    "commit": ("[0-9a-f]{40}", "a commit of 40 hexadecimal digits"),
    "train": (_several(_PATH), "paths in the repository, single spaces between"),
    "train_checksum": (_several(_SUM), _SUMS_TEXT),
    "train_bytes": _SIZES,
    "test": (f"({_several(_PATH)})?", "paths in the repository, single spaces between, or nothing"),
    "test_checksum": (f"({_several(_SUM)})?", _SUMS_TEXT),
    "test_bytes": _SIZES,
    "n_train": ("[0-9]+", "a number of rows"),
    "n_test": ("[0-9]*", "a number of rows, or nothing"),
    "n_features": ("[0-9]+", "a number of columns without the label"),
    "task": ("classification|regression", "classification or regression"),
    "licence": (".+", "what is known of the licence"),
    "citation": (".+", "authors, title, venue, year"),
    "notes": (".*", "any words"),
}


def registry(path=None):
    """Read and check the table of data sets.

    Parameters
    ----------
    path : path-like, optional
        The table; `config/datasets.csv` of the source checkout when not given.

    Returns
    -------
    pandas.DataFrame
        One row per data set, indexed by its name.

    Raises
    ------
    ValueError
        Naming the row and column of a wrong cell and what is allowed there.
    """
    path = Path(path or REGISTRY)
    if not path.is_file():
        raise FileNotFoundError(f"{path}: no table of data sets; give its path (registry_path)")
    table = pd.read_csv(path, dtype=str, keep_default_na=False)
    if list(table.columns) != list(_COLUMNS):
        raise ValueError(f"{path}: expected columns {list(_COLUMNS)}, got {list(table.columns)}")
    seen = set()
    for number, row in enumerate(table.to_dict("records"), start=1):
        _check_row(f"{path}, row {number} ({row['name']}), column", row)
        if row["name"] in seen:
            raise ValueError(f"{path}, row {number}, column name: {row['name']!r} is there twice")
        seen.add(row["name"])
    counts = ["n_train", "n_test", "n_features"]
    table[counts] = table[counts].replace("", "0").astype(np.int64)
    return table.set_index("name")


def _check_row(where, row):
    for column, (pattern, allowed) in _COLUMNS.items():
        if not re.fullmatch(pattern, row[column]):
            raise ValueError(f"{where} {column}: expected {allowed}; got {row[column]!r}")
    for split in ("train", "test"):
        files, sums, sizes = (row[split + end].split() for end in ("", "_checksum", "_bytes"))
        if len(sums) != len(files):
            raise ValueError(f"{where} {split}_checksum: expected {len(files)}, got {len(sums)}")
        if len(sizes) != len(files) and (sizes or "sha256:" in row[f"{split}_checksum"]):
            raise ValueError(f"{where} {split}_bytes: expected {len(files)}, got {len(sizes)}")
        if bool(files) != (row[f"n_{split}"] not in ("", "0")):
            raise ValueError(f"{where} n_{split}: expected rows exactly where there are files")


def _row(name, registry_path, what="no data set"):
    table = registry(registry_path)
    if name not in table.index:
        raise ValueError(f"{what} {name!r}; the registry knows {', '.join(table.index)}")
    return table.loc[name]


def _splits(row, split):
    there = ["train", "test"] if row["test"] else ["train"]
    if split not in (None, *there):
        raise ValueError(f"{row.name}: expected split None, {' or '.join(there)}; got {split!r}")
    return [split] if split else there


# -------------------------------------------------- files: checked and whole, or not there


class _Remote(NamedTuple):
    name: str  # <data set>/<file>: in mirrors and in the local folder alike
    url: str
    checksum: str
    size: int | None


def _remotes(row, split):
    base = f"{SOURCE}/{row['repository']}/{row['commit']}"
    paths, sums = row[split].split(), row[f"{split}_checksum"].split()
    sizes = [int(s) for s in row[f"{split}_bytes"].split()] or [None] * len(paths)
    for path, checksum, size in zip(paths, sums, sizes, strict=True):
        yield _Remote(f"{row.name}/{Path(path).name}", f"{base}/{path}", checksum, size)


def _verify(path, remote):
    size = path.stat().st_size
    kind, _, expected = remote.checksum.partition(":")
    digest = hashlib.sha256() if kind == "sha256" else hashlib.sha1(b"blob %d\0" % size)
    with open(path, "rb") as file:
        while piece := file.read(1 << 20):
            digest.update(piece)
    if remote.size not in (None, size) or digest.hexdigest() != expected:
        wanted = "" if remote.size is None else f"{remote.size} bytes, "
        raise CorruptFile(
            f"{remote.name}: expected {wanted}{remote.checksum}; got {size} bytes, "
            f"{kind}:{digest.hexdigest()}. Nothing was kept: run it again, and if that does not "
            f"help, look whether {MIRROR} or a proxy gives another file"
        )


def _connect(url, seconds):
    """Fail within `seconds` where nobody answers.

    In a thread, because the system's resolver knows no time limit, and each of a host's many
    addresses would be given the whole of it.
    """
    parts = urlsplit(url)
    host, port = parts.hostname, parts.port or {"http": 80, "https": 443}[parts.scheme]
    if parts.scheme in urllib.request.getproxies() and not urllib.request.proxy_bypass(host):
        return
    outcome = []

    def attempt():
        try:
            socket.create_connection((host, port), seconds).close()
            outcome.append("")
        except OSError as error:
            outcome.append(str(error))

    thread = threading.Thread(target=attempt, daemon=True)
    thread.start()
    thread.join(seconds)
    if reason := "".join(outcome) if outcome else f"no answer within {seconds:g} s":
        raise NotObtainable(f"{url} ({reason})")


def _copy(source, part, timeout):
    web = source.startswith(("http://", "https://"))
    connecting = min(5, timeout)
    try:
        if web:
            _connect(source, connecting)
            get = pooch.HTTPDownloader(timeout=(connecting, timeout), chunk_size=1 << 16)
            get(source, str(part), None)
        else:
            shutil.copyfile(source, part)
    except OSError as error:  # also what requests raises
        if "IncompleteRead" in str(error):
            message = f"{source}: cut short ({error}). Nothing was kept: run it again"
            raise CorruptFile(message) from error
        raise NotObtainable(f"{source} ({error if web else error.strerror})") from error


def _obtain(remote, target, timeout):
    if target.is_file():
        try:
            return _verify(target, remote)
        except CorruptFile:
            target.unlink()
    mirror, failures = os.environ.get(MIRROR, "").rstrip("/"), []
    for source in [f"{mirror}/{remote.name}", remote.url] if mirror else [remote.url]:
        try:
            with whole_or_nothing(target) as part:
                _copy(source, part, timeout)
                return _verify(part, remote)
        except NotObtainable as error:
            failures.append(str(error))
            if source != remote.url:
                warnings.warn(f"not in the mirror: {error}; trying {remote.url}", stacklevel=3)
    raise NotObtainable(
        f"{remote.name} could not be had from {' nor from '.join(failures)}. Connect to the "
        f"network, or set {MIRROR} to a folder or an address that holds {remote.name}"
    )


def fetch(name, folder="resources", registry_path=None, timeout=10, split=None):
    """Bring the files of a data set, each checked against the registry before it is kept.

    A file already there is checked and kept. Otherwise it comes from the mirror named by the
    environment variable `OFSLIB_DATA_MIRROR` (a folder or an http address that holds
    `<name>/<file>`) or, with a warning if the mirror lacks it, from the public source.

    Parameters
    ----------
    name : str
        A name of the registry.
    folder : path-like
        Files are kept as `<folder>/<name>/<file>`.
    registry_path : path-like, optional
        Another table than `config/datasets.csv`.
    timeout : float
        Seconds to wait for the next bytes; a connection is given at most 5.
    split : {"train", "test"}, optional
        Bring the files of this split only.

    Returns
    -------
    list of pathlib.Path
        In the order of the registry, train before test.

    Raises
    ------
    NotObtainable
        Neither mirror nor source gives the file.
    CorruptFile
        What came is not what the registry pins.
    """
    row = _row(name, registry_path)
    paths = []
    for remote in [r for part in _splits(row, split) for r in _remotes(row, part)]:
        paths.append(Path(folder) / remote.name)
        _obtain(remote, paths[-1], timeout)
    return paths


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
    row = _row(name, registry_path)
    held = {}
    for part in _splits(row, split):
        paths = fetch(name, folder, registry_path, split=part)
        X, y = _READERS[row["reader"]](paths, int(row["n_features"]))
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
        row = _row(str(path_or_name), registry_path, "no file and no data set")
        if _READERS[row["reader"]] is not _sparse_text:
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
