"""Classes whose models keep the same features."""

import naive
import numba
import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_equal
from sklearn.base import clone

from ofslib import AnytimeSFSAClassifier, SFSAClassifier, SGDTClassifier

compiled = pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="nothing is compiled")


def parts(nested):
    return [a for part in nested for a in parts(part)] if isinstance(nested, tuple) else [nested]


X = np.random.default_rng(0).standard_normal((350, 12))
LABELS = np.argmax(X[:, :7] + 0.5 * np.random.default_rng(1).standard_normal((350, 7)), axis=1)
FAMILIES = [
    SFSAClassifier(learning_rate=0.05, batch_size=9),
    SFSAClassifier(),
    SFSAClassifier(learning_rate=0.01, optimizer="adam", importance="scaled_coef"),
    SFSAClassifier(forget=100),
    AnytimeSFSAClassifier(first_maturity=60),
    SGDTClassifier(maturity=200),
]
every_family = pytest.mark.parametrize("model", FAMILIES, ids=str)


@every_family
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("weight", [None, np.linspace(0.5, 2.0, 350)])
def test_classes_that_keep_all_features_learn_as_if_each_were_alone(model, form, weight):
    """Bit for bit, as nothing is left of what they do together."""
    own = {"k": 12, "random_state": 0}
    together, alone = (
        clone(model).set_params(multiclass=multiclass, **own).fit(form(X), LABELS, weight)
        for multiclass in ("joint", "ovr")
    )
    for name in ("coef_", "intercept_", "online_loss_", "online_score_"):
        assert_equal(getattr(together, name), getattr(alone, name))
    for one, other in zip(together._states, alone._states, strict=True):
        assert_equal(parts(one), parts(other))


@compiled
@every_family
def test_another_number_of_classes_compiles_nothing(model):
    def compiled_by(n_classes):
        one = clone(model).set_params(k=3, multiclass="joint", random_state=0)
        one.fit(X, LABELS % n_classes)
        return [len(line.compiled.signatures) for line in one.lines]

    first = compiled_by(3)
    assert first[0] > 0 and compiled_by(7) == compiled_by(5) == first


@pytest.mark.parametrize("importance", ["coef", "scaled_coef", "scaled_root"])
@pytest.mark.parametrize("cls", [SFSAClassifier, SGDTClassifier])
def test_features_are_ranked_by_their_norm_over_the_classes(cls, importance):
    """Equal to the slow transcription of the definition."""
    own = {"learning_rate": 0.05, "batch_size": 9, "loss": "log_loss", "importance": importance}
    model = cls(k=4, multiclass="joint", shuffle=False, maturity=300, **own)
    targets = np.where(LABELS == np.arange(7)[:, None], 1.0, -1.0)

    def left(t):
        if cls is SFSAClassifier:
            return naive.schedule(t, 34, 0, 12, 4, model.mu)
        return 12 if t < 34 else 4

    # Of several scales: else their squares, times those, would rank features as norms do.
    rows = X * np.linspace(0.3, 1.5, 12)
    coef, intercept = naive.joint(rows, targets, left, **own)
    for form in (np.asarray, sp.csr_array):
        model.fit(form(rows), LABELS)
        assert_allclose(model.coef_, coef, rtol=0, atol=1e-12)
        assert_allclose(model.intercept_, intercept, rtol=1e-11)
        assert model.support_.tolist() == np.flatnonzero(coef.any(axis=0)).tolist()
        assert len(model.support_) == 4
