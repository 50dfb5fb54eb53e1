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
from ofslib._sparse import checked
from ofslib.kernels.rows import ascend

N, P = 6, 5


def parts(form):
    X = sp.random_array((N, P), density=0.5, rng=np.random.default_rng(0), format=form)
    return X.data.copy(), X.indices.copy(), X.indptr.copy()


def made(form, data, indices, indptr):
    """A matrix of these parts, whatever they are: as scipy makes it where nobody checks."""
    X = (sp.csr_array if form == "csr" else sp.csc_array)((N, P))
    X.data, X.indices, X.indptr = data, indices, indptr
    return X


def changed(which, place, value, dtype=None):
    def change(*given):
        given = dict(zip(("data", "indices", "indptr"), given, strict=True))
        array = given[which] if dtype is None else given[which].astype(dtype)
        array[place] = value
        return [*(given | {which: array}).values()]

    return change


def cut(which):
    def change(*given):
        given = dict(zip(("data", "indices", "indptr"), given, strict=True))
        return [*(given | {which: given[which][:-2]}).values()]

    return change


LENGTH = {"csr": P, "csc": N}
FAULTS = {
    "an index of p": lambda f: (changed("indices", 3, LENGTH[f]), f" {LENGTH[f]}, of {LENGTH[f]} "),
    "a large index": lambda f: (changed("indices", 3, 10**6), "1000000"),
    "a negative index": lambda f: (changed("indices", 3, -1), "in .* -1, of"),
    "an index that would wrap": lambda f: (
        changed("indices", 3, 2**32 + 3, np.int64),
        "4294967299",
    ),
    "the least of all indices": lambda f: (changed("indices", 3, -(2**31)), "-2147483648"),
    "indptr does not begin at 0": lambda f: (changed("indptr", 0, 1), "indptr must be"),
    "indptr begins below 0": lambda f: (changed("indptr", 0, -1), "indptr must be"),
    "indptr falls": lambda f: (changed("indptr", 2, 14), "indptr must be"),
    "indptr below 0": lambda f: (changed("indptr", 2, -4), "indptr must be"),
    "indptr ends too late": lambda f: (changed("indptr", -1, 16), "indptr must be"),
    "indptr ends far out": lambda f: (changed("indptr", -1, 2**40, np.int64), "indptr must be"),
    "indptr too short": lambda f: (cut("indptr"), "indptr must be"),
    "too few values": lambda f: (cut("data"), "indptr must be"),
    "too few indices": lambda f: (cut("indices"), "indptr must be"),
    "indices are numbers": lambda f: (changed("indices", 0, 0, float), "must be vectors"),
    "indptr is numbers": lambda f: (changed("indptr", 0, 0, float), "must be vectors"),
    "indices in two dimensions": lambda f: (
        lambda d, i, s: (d, i.reshape(3, 5), s),
        "must be vectors",
    ),
    "values in two dimensions": lambda f: (
        lambda d, i, s: (d.reshape(3, 5), i, s),
        "must be vectors",
    ),
}
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


# All faults where the check stands; elsewhere one shows that it is asked.
CASES = [(fault, form, "fit") for fault in FAULTS for form in ("csr", "csc")]
CASES += [("an index of p", form, call) for form in ("csr", "csc") for call in CALLS]


@pytest.mark.parametrize("fault, form, call", CASES)
def test_malformed_parts_are_refused(fault, form, call):
    change, says = FAULTS[fault](form)
    X = made(form, *change(*parts(form)))
    with pytest.raises(ValueError, match=f"X is a malformed sparse matrix: .*{says}"):
        CALLS[call](X)


@pytest.mark.parametrize("call", CALLS)
def test_coordinates_out_of_the_matrix_are_refused(call):
    X = sp.coo_array((N, P))
    X.data, X.coords = np.ones(2), (np.array([0, 1]), np.array([0, P]))
    with pytest.raises(ValueError, match=f"entry 1 is in column {P}, of {P}"):
        CALLS[call](X)


def test_what_was_learned_before_stays():
    model = SFSARegressor(k=2).partial_fit(SOUND, y)
    before, seen = model.coef_, model.n_samples_seen_
    with pytest.raises(ValueError, match="malformed"):
        model.partial_fit(made("csr", *changed("indices", 3, P)(*parts("csr"))), y)
    assert model.n_samples_seen_ == seen and (model.coef_ == before).all()


@pytest.mark.parametrize("form", ["csr", "csc"])
def test_it_tells_whether_the_indices_ascend(form):
    """Whatever the flag said, and with empty lines."""
    rng, seen = np.random.default_rng(0), set()
    for _ in range(300):
        lines = [rng.permutation(N)[: rng.integers(0, 4)] for _ in range(N)]
        lines = [np.sort(line) if rng.random() < 0.9 else line for line in lines]
        if rng.random() < 0.2:
            lines[2] = np.repeat(lines[2], 2)
        expected = all((np.diff(line) > 0).all() for line in lines)
        indices, indptr = np.concatenate(lines), np.cumsum([0, *map(len, lines)])
        X = (sp.csr_array if form == "csr" else sp.csc_array)((N, N))
        X.data, X.indices, X.indptr = np.ones(len(indices)), indices, indptr
        X.has_canonical_format = not expected
        assert checked(X, ascend).has_canonical_format == expected
        seen.add(expected)
    assert len(seen) == 2


@pytest.mark.parametrize("order", ["unsorted", "twice"])
def test_a_flag_that_lies_changes_nothing(order):
    """Rows whose entries do not ascend, or stand twice, learn as the same rows in order."""
    data, indices, indptr = parts("csr")
    if order == "unsorted":
        for start, stop in pairwise(indptr):
            data[start:stop], indices[start:stop] = (
                data[start:stop][::-1].copy(),
                indices[start:stop][::-1].copy(),
            )
    else:
        indices[indptr[2]] = indices[indptr[2] + 1]
    X = made("csr", data, indices, indptr)
    X.has_canonical_format = X.has_sorted_indices = True
    plain = np.zeros((N, P))
    np.add.at(plain, (np.repeat(np.arange(N), np.diff(indptr)), indices), data)
    model, label = SOFSClassifier(k=2, random_state=0), y > 2  # what it keeps is of squares
    expected = model.fit(sp.csr_array(plain), label).coef_
    assert (model.fit(X, label).coef_ == expected).all()
    assert X.indices is indices and X.data is data
