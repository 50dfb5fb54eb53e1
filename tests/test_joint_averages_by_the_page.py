"""OLSth and OFSA with the same features for all classes are what the page says, on the rows.

The pages are docs/explain/weights_and_classes.md ("wherever the method drops
features, they are ranked by the l2 norm over the classes of their coefficients", standardised), and
the dissertation: (3.6), Algorithms 3 and 4 with (3.8), M_t of 3.2.4, and (3.11). [code] marks what,
when this was written, only the code or another test told.
"""

import naive
import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

from ofslib import OFSAClassifier, OLSthClassifier


def reference(X, T, weight, k, centre, descent=None):
    """Features, and coefficients and intercepts of each class in units of the rows."""
    X, T, weight = X[weight > 0], T[weight > 0], weight[weight > 0]
    S, C, scale, mean, level = naive.moments(X, T, weight, centre)
    free = len(X) - centre
    if descent is None:
        every = naive.solved(S, C, np.arange(len(S)), free)
        features = naive.top(np.linalg.norm(every, axis=1), k)
    else:
        features = naive.ofsa(S, C, k=k, **descent)
    coef = (naive.solved(S, C, features, free) / scale[:, None]).T
    return features, coef, centre * (level - coef @ mean)


def drawn(seed, kind):
    draw = np.random.default_rng(seed)
    p, classes = int(draw.integers(3, 30)), int(draw.integers(3, 6))
    n = p - 1 + 10 * (p < 9) if kind == "few" else int(draw.integers(2 * p + 40, 300))
    labels = draw.permutation(np.arange(n) % classes)
    if kind == "late":
        labels = labels[np.argsort(labels == classes - 1 - seed % 2, kind="stable")]
    if kind == "never":
        labels[labels == 1] = 0
    X = draw.standard_normal((n, p)) @ (np.eye(p) + 0.4 * draw.random((p, p)))
    X = X * draw.uniform(0.1, 10, p) + draw.choice([0, 3])
    X = (X + 0.7 * (draw.standard_normal((classes, p)) * X.std(axis=0))[labels]) * (
        draw.random((n, p)) < 0.8
    )
    if kind == "constant":
        X[:, 1] = 3.0 * (seed % 2)
    return X, labels, classes, draw


KINDS = ["plain", "late", "never", "few", "constant", "weights", "faded"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("descends", [False, True])
@pytest.mark.parametrize("centre", [False, True])
def test_all_classes_have_the_features_of_the_largest_norms(kind, descends, centre):
    """Rows in one block or in three, dense and CSR, models read in between; late: one in the last.

    never: a label of `classes` without a row, for which y is -1 throughout.
    """
    for seed in range(8):
        X, labels, classes, draw = drawn(seed, kind)
        n, p = X.shape
        k = int(draw.integers(1, p + 1 - (kind == "constant")))
        T = np.where(labels[:, None] == np.arange(classes), 1.0, -1.0)
        shown, by_label, own = np.ones(n), None, {}
        if kind == "weights":
            shown, by_label = draw.choice([0, 0.5, 1, 3], n), {0: 2.5, classes - 1: 0.5}
        weight = shown * np.array([(by_label or {}).get(c, 1.0) for c in labels])
        if kind == "faded":
            own["adaptation"] = 0.004
            weight = naive.fading(weight, 0.004)
        descent = None
        if descends:
            S = naive.moments(X[weight > 0], T[weight > 0], weight[weight > 0], centre)[0]
            eta = 1.2 / np.linalg.eigvalsh(S).max()
            told = {"n_iter": 60, "mu": float(draw.choice([0, 5, 50]))}
            descent, own = told | {"rate": eta}, own | told | {"learning_rate": eta}
        cls = OFSAClassifier if descends else OLSthClassifier
        model = cls(k=k, multiclass="joint", fit_intercept=centre, class_weight=by_label, **own)
        rows = sp.csr_array(X) if seed % 2 else X
        ends = [n] if kind in ("plain", "weights") and seed % 3 == 0 else [n // 3, n - n // 9, n]
        for i, j in zip([0, *ends], ends, strict=False):
            model.partial_fit(rows[i:j], labels[i:j], np.arange(classes), shown[i:j])
            assert model.coef_.shape == (classes, p)
        features, coef, intercept = reference(X, T, weight, k, centre, descent)
        assert_array_equal(model.support_, features)
        size = np.abs(X).max(axis=0)
        tol = 1e-8 * max(1, np.abs(coef * size).max())
        assert_allclose(model.coef_ * size, coef * size, rtol=0, atol=tol)
        assert_allclose(model.intercept_, intercept, rtol=0, atol=tol)
