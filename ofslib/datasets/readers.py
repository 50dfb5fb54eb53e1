"""Readers of the files of data sets: (paths, n_features) -> X, y."""

import struct

import numpy as np
import scipy.io
import scipy.sparse as sp

from ofslib.datasets.text import TextRows, numbers_of, open_text


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


def sparse_text(paths, n_features):
    X, y = zip(*TextRows(paths[0], False, n_features, np.float64).pieces(), strict=True)
    return sp.vstack(X), np.concatenate(y)


READERS = {
    "ecml_mat": _ecml,
    "ecml_mat_sparse": _ecml_sparse,
    "skfeature_mat": _mat("X", "Y"),
    "ar_mat": _mat("DAT", "labels", transposed=True),
    "esl_text": _esl_text,
    "idx": _idx,
    "libsvm": sparse_text,
    "vw": sparse_text,
}
