"""Malformed sparse matrices are refused by name and place, before compiled code reads them."""

from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp

from ofslib import (
    LaplacianScoreSelector,
    OLSRegressor,
    OnlineSubstitution,
    RunningAverages,
    SFSARegressor,
    SOFSClassifier,
    SparseEmbedding,
)

N, P = 6, 5
y = np.arange(float(N))
SOUND = sp.csr_array(np.eye(N, P))
CALLS = {
    "fit": lambda X: SFSARegressor(k=2).fit(X, y),
    "partial_fit": lambda X: SFSARegressor(k=2).partial_fit(X, y),
    "predict": lambda X: SFSARegressor(k=2).fit(SOUND, y).predict(X),
    "transform": lambda X: SFSARegressor(k=2).fit(SOUND, y).transform(X),
    "averages": lambda X: OLSRegressor().fit(X, y),
    "update": lambda X: RunningAverages(P).update(X, y),
    "columns": lambda X: OnlineSubstitution(k=2).fit(X, y),
    "partial_fit_columns": lambda X: OnlineSubstitution(k=2).partial_fit_columns(X, y),
    "scores": lambda X: LaplacianScoreSelector(k=2).fit(X),
    "embedding": lambda X: SparseEmbedding().fit(X),
}


def made(form, **parts):
    """A matrix of these parts, whatever they are: as scipy makes it where nobody checks."""
    X = (sp.csr_array if form == "csr" else sp.csc_array)((N, P))
    for name, part in parts.items():
        setattr(X, name, part)
    return X


def parts(form):
    X = sp.random_array((N, P), density=0.5, rng=np.random.default_rng(0), format=form)
    return {name: getattr(X, name).copy() for name in ("data", "indices", "indptr")}


def put(which, place, value, dtype=None):
    def change(given):
        array = given[which] if dtype is None else given[which].astype(dtype)
        array[place] = value
        return given | {which: array}

    return change


def cut(which):
    return lambda given: given | {which: given[which][:-2]}


FAULTS = [
    *((put("indices", 3, value), str(value)) for value in (10**6, -1, -(2**31))),
    (put("indices", 3, 2**32 + 3, np.int64), "4294967299"),  # it would wrap
    *((put("indptr", *where), "indptr must be") for where in ((0, 1), (0, -1), (2, 14), (2, -4))),
    (put("indptr", -1, 16), "indptr must be"),
    (put("indptr", -1, 2**40, np.int64), "indptr must be"),
    *((cut(which), "indptr must be") for which in ("indptr", "data", "indices")),
    *((put(which, 0, 0, float), "must be vectors") for which in ("indices", "indptr")),
    (lambda given: given | {"data": given["data"].reshape(3, 5)}, "must be vectors"),
]


@pytest.mark.parametrize("form, length", [("csr", P), ("csc", N)])
def test_malformed_parts_are_refused_and_what_was_learned_stays(form, length):
    """All faults where the check stands; one at every call shows that it is asked."""
    model = SFSARegressor(k=2).partial_fit(SOUND, y)
    before = model.coef_
    for change, says in FAULTS:
        with pytest.raises(ValueError, match=f"X is a malformed sparse matrix: .*{says}"):
            model.partial_fit(made(form, **change(parts(form))), y)
        assert model.n_samples_seen_ == N and (model.coef_ == before).all()
    for call in CALLS.values():
        with pytest.raises(ValueError, match=f"malformed sparse matrix: .* {length}, of {length} "):
            call(made(form, **put("indices", 3, length)(parts(form))))


@pytest.mark.parametrize("call", CALLS)
def test_coordinates_out_of_the_matrix_are_refused(call):
    X = sp.coo_array((N, P))
    X.data, X.coords = np.ones(2), (np.array([0, 1]), np.array([0, P]))
    with pytest.raises(ValueError, match=f"entry 1 is in column {P}, of {P}"):
        CALLS[call](X)


@pytest.mark.parametrize("order", ["unsorted", "twice"])
def test_a_flag_that_lies_changes_nothing(order):
    """Rows whose entries do not ascend, or stand twice, learn as the same rows in order."""
    given = parts("csr")
    data, indices, indptr = given.values()
    if order == "unsorted":
        for line in (slice(*ends) for ends in pairwise(indptr)):
            data[line], indices[line] = data[line][::-1].copy(), indices[line][::-1].copy()
    else:
        indices[indptr[2]] = indices[indptr[2] + 1]
    X = made("csr", **given)
    X.has_canonical_format = X.has_sorted_indices = True
    plain = np.zeros((N, P))
    np.add.at(plain, (np.repeat(np.arange(N), np.diff(indptr)), indices), data)
    model, label = SOFSClassifier(k=2, random_state=0), y > 2  # what it keeps is of squares
    expected = model.fit(sp.csr_array(plain), label).coef_
    assert (model.fit(X, label).coef_ == expected).all()
    assert X.indices is indices and X.data is data
