"""Steps that follow the rows: the unit of X, and of y, does not matter; what SFSA finds out.

What they are, step by step: test_algorithms.py, test_sfsa_by_the_page.py.
"""

import itertools
import warnings

import naive
import numpy as np
import pytest
import scipy.sparse as sp
from estimators import every, public
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import ConvergenceWarning

import ofslib
from ofslib import AnytimeSFSAClassifier, SFSAClassifier, SFSARegressor
from ofslib.simulate import Equicorrelated
from ofslib.streams.automatic import PER_FEATURE
from ofslib.streams.row_stream import RowStream

METHODS = [cls for cls in public(RowStream) if cls.row_scale]
every_method = every(METHODS)
also_sfsa = every([*METHODS, SFSAClassifier, SFSARegressor])


def rows(cls, n=300, p=50):
    """Rows of which some are much larger than those before, and a target."""
    X, y = Equicorrelated(p, 5).sample(n, np.random.default_rng(2))
    X *= np.random.default_rng(1).lognormal(0, 0.7, n)[:, None]
    return X, y > 0 if cls.__name__.endswith("Classifier") else y


@also_sfsa
@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
def test_the_unit_of_the_features_does_not_matter(cls, fit_intercept, form):
    X, y = rows(cls)
    # Two parameters with a unit of their own, of which one counts for the intercept too: hardly.
    powers = {"delta": 1, "alpha": 2} if cls.row_scale == PER_FEATURE else {}
    own = {"k": 5, "fit_intercept": fit_intercept, "random_state": 0}
    one = cls(**own, **({"delta": 1e-12} if powers else {})).fit(form(X), y)
    assert len(one.support_) > 1
    for unit in (2.0**-10, 0.3, 1e4):
        scaled = {name: getattr(one, name) * unit**power for name, power in powers.items()}
        other = cls(**own, **scaled).fit(form(unit * X), y)
        assert_array_equal(other.support_, one.support_)
        assert_allclose(other.coef_ * unit, one.coef_, rtol=1e-6)
        assert_allclose(other.intercept_, one.intercept_, rtol=1e-6)


@every_method
def test_rows_of_zeros_tell_no_unit(cls):
    """Nothing is known before the first row that is not zero."""
    X, y = rows(cls)
    X[:3], target = 0.0, y[:4] if cls.__name__.endswith("Regressor") else [0, 1, 0, 1]
    own = {"k": 5, "fit_intercept": False, "shuffle": False}
    own |= {"delta": 1e-12, "alpha": 0.0} if cls.row_scale == PER_FEATURE else {}
    one, other = (cls(**own).fit(unit * X[:4], target) for unit in (1.0, 1e-3))
    assert_allclose(other.coef_ * 1e-3, one.coef_, rtol=1e-6)


@pytest.mark.parametrize(
    ("before", "after", "ends"),
    [(25, 7, [0, 20, *range(27, 80, 7)]), (7, 25, [0, 7, 14, 39, 64])],
)
def test_a_mini_batch_may_become_another_while_it_is_open(before, after, ends):
    """Rows that are more than a mini-batch has now are one of their own."""
    X, y = rows(ofslib.SIHTRegressor, n=80)
    X[[5, 18]] *= 30
    model = ofslib.SIHTRegressor(k=50, batch_size=before, fit_intercept=False)
    model.partial_fit(X[:20], y[:20])
    model.set_params(batch_size=after).partial_fit(X[20:], y[20:])
    sizes, w = (X**2).sum(axis=1), np.zeros(50)
    for start, stop in itertools.pairwise(ends):
        batch, n = slice(start, stop), stop - start
        mean = sizes[: 2 ** ((stop - 1).bit_length() - 1)].mean()
        step = max(mean, sizes[batch].max() / (2 * n))
        w -= (X[batch] @ w - y[batch]) @ X[batch] / n / step
    assert_allclose(model.coef_, w, rtol=1e-9)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
@pytest.mark.parametrize("alpha", [0.0, 3.0])
def test_barda_is_its_definition_with_the_unit_of_each_row(form, alpha):
    """Rows shrink a hundredfold: bounds of what was seen with smaller steps are no longer any.

    One of more than twice the mean counts as scaled down to that.
    """
    X, y = rows(ofslib.BARDAClassifier)
    X *= np.geomspace(1, 0.01, len(X))[:, None] * np.random.default_rng(2).random(X.shape)
    X[::7] *= 20
    sizes = np.abs(X).sum(axis=1)
    known = [1 << max(seen.bit_length() - 1, 0) for seen in range(len(X))]
    own = {"k": 5, "alpha": alpha, "delta": 1e-4, "loss": "squared_hinge"}
    means = np.array([sizes[:n].mean() for n in known])
    heavy = np.maximum(1, sizes / (2 * means))
    assert np.sum(heavy > 1) > 5
    own_rows, labels = X / heavy[:, None], np.where(y, 1, -1)
    coef, _, margins = naive.barda(
        own_rows, labels, **own, learning_rate=2 / means, intercept=False
    )
    model = ofslib.BARDAClassifier(**own, fit_intercept=False, shuffle=False).fit(form(X), y)
    assert_allclose(model.coef_, coef, rtol=1e-9)
    assert model.online_score_ == np.mean((np.array(margins) > 0) == y)


@pytest.mark.parametrize(
    ("cls", "moves"), [(ofslib.BARDAClassifier, 2), (ofslib.BAMDClassifier, 1)]
)
def test_by_how_much_the_margin_of_the_first_row_moves(cls, moves):
    x = 1e3 * np.random.default_rng(0).standard_normal((1, 20))
    model = cls(k=20, alpha=0.0, delta=1e-12, fit_intercept=False)
    assert_allclose(model.partial_fit(x, [1], classes=[0, 1]).decision_function(x), moves)


@also_sfsa
def test_the_scale_of_the_weights_does_not_matter(cls):
    X, y = rows(cls)
    weight = np.random.default_rng(3).lognormal(0, 1, len(X))
    # What is weighed against the losses is not scaled by them.
    own = {"alpha": 0.0, "delta": 1e-12}.items()
    own = {name: value for name, value in own if name in cls().get_params()}
    one, other = (cls(k=5, fit_intercept=False, random_state=0, **own) for _ in range(2))
    one.fit(X, y, sample_weight=weight)
    other.fit(X, y, sample_weight=1000 * weight)
    assert len(one.support_) > 1
    assert_allclose(other.coef_, one.coef_, rtol=1e-6)


# The step of SFSA


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_features_of_any_scale_do_not_make_it_diverge(scale):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((3000, 50)) * scale * np.geomspace(1, 100, 50) + scale
    y = X[:, 40] / scale + rng.standard_normal(3000)
    model = SFSARegressor(k=5, random_state=0).fit(X, y)
    assert 40 in model.support_ and model.score(X, y) > 0.9
    SFSAClassifier(k=5, random_state=0).fit(X, y > 0)


@pytest.mark.parametrize("multiclass", ["ovr", "joint"])
@pytest.mark.parametrize(
    ("kind", "own", "rows"),
    [
        (SFSAClassifier, {}, 225),
        (SFSAClassifier, {"batch_size": 3}, 27),
        (AnytimeSFSAClassifier, {"first_maturity": 800}, 75),
    ],
)
def test_who_asks_too_early_is_told_once(kind, own, rows, multiclass):
    """What is shown first tells how large the steps may be; only a model that is asked for says."""
    X, y = np.random.default_rng(0).standard_normal((rows, 9)), np.arange(rows) % 3
    model = kind(k=2, multiclass=multiclass, **own)
    with warnings.catch_warnings(action="error"):
        model.partial_fit(X[:20], y[:20])
    with pytest.warns(ConvergenceWarning, match=f"first {rows} rows .* and 20 were shown"):
        assert not model.coef_.any()
    with warnings.catch_warnings(action="error"):
        model.predict(X)
        assert not model.partial_fit(X[20:-1], y[20:-1]).coef_.any()
        assert model.partial_fit(X[-1:], y[-1:]).coef_.any()


@pytest.mark.parametrize("kind", [SFSAClassifier, AnytimeSFSAClassifier])
def test_it_begins_and_ends_by_fit_only(kind):
    """Another constant step may be taken at any time."""
    X, y = np.random.default_rng(0).standard_normal((300, 5)), np.arange(300) % 2
    model = kind(k=2).fit(X, y)
    assert model.get_params()["learning_rate"] == "auto"
    with pytest.raises(ValueError, match=r"learning_rate=0\.1 differs from learning_rate='auto'"):
        model.set_params(learning_rate=0.1).partial_fit(X, y)
    model.fit(X, y).set_params(learning_rate=0.2).partial_fit(X, y)
    with pytest.raises(ValueError, match=r"learning_rate='auto' differs from learning_rate=0\.2"):
        model.set_params(learning_rate="auto").partial_fit(X, y)
