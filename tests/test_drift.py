"""Streams that change: SFSA that forgets, the design, and how models are seen to recover."""

import pickle

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

from ofslib import AnytimeSFSAClassifier, AnytimeSFSARegressor, SFSAClassifier, SFSARegressor
from ofslib.reproduction import peers, tracking
from ofslib.simulate import Changing

CHANGING = Changing(p=60, k=6, period=4, step_rows=500)


def stream(classify=False, n=2000):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, 20)) * (rng.random((n, 20)) < 0.5)
    y = X[:, :4].sum(axis=1) + rng.standard_normal(n)
    return X, np.where(y > 0, 1.0, -1.0) if classify else y


# -------------------------------------------------- SFSA that forgets


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("rate", [0.01, "auto"])
@pytest.mark.parametrize("classify", [False, True])
def test_what_is_shown_has_learned_from_the_last_rows_alone(classify, rate, sparse):
    """Of 300 to 600 rows, bit for bit, wherever blocks end; 300 is no whole number of batches."""
    X, y = stream(classify)
    cls, known = (SFSAClassifier, {"classes": [-1, 1]}) if classify else (SFSARegressor, {})
    own, shown, cuts = {"k": 4, "learning_rate": rate, "batch_size": 7}, 0, np.random.default_rng(1)
    # As in a `fit` of 300 rows
    maturity = 225 if rate == "auto" and not classify else 300
    rows = sp.csr_matrix(X) if sparse else X
    model = cls(**own, forget=300)
    while shown < len(y):
        stop = min(len(y), shown + int(cuts.integers(1, 400)))
        model.partial_fit(rows[shown:stop], y[shown:stop], **known)
        model, shown = pickle.loads(pickle.dumps(model)), stop
        last = slice(max(0, shown // 300 - 1) * 300, shown)
        alone = cls(**own, maturity=maturity).partial_fit(rows[last], y[last], **known)
        assert_array_equal(model.coef_, alone.coef_)
        assert model.intercept_ == alone.intercept_


@pytest.mark.parametrize(
    ("rate", "first", "growth"),
    [(0.01, 300, 2.0), (0.01, 450, 1.3), (0.01, 10, 1.05), ("auto", 900, 2.0), ("auto", 900, 1.3)],
)
@pytest.mark.parametrize("classify", [False, True])
def test_a_set_at_any_time_is_that_of_sfsa_with_its_maturity(classify, rate, first, growth):
    """Each begins to prune where the one before matured; in mini-batches, rounded.

    By its own step, too, if it observes as many mini-batches before the first one.
    """
    (X, y), b, whole = stream(classify), 7, -(-first // 7)
    own, known = {"k": 4, "batch_size": b, "learning_rate": rate}, {}
    anytime, single = AnytimeSFSARegressor, SFSARegressor
    if classify:
        anytime, single, known = AnytimeSFSAClassifier, SFSAClassifier, {"classes": [-1, 1]}
    model = anytime(**own, first_maturity=first, growth=growth)
    shown, before, due, place = 0, 0, whole, 0
    while due * b < len(y) and place < 6:
        for stop in (max(shown + 1, due * b - 3), due * b):
            model.partial_fit(X[shown:stop], y[shown:stop], **known)
            shown = stop
        alone = single(**own, warmup=before * b, maturity=due * b)
        alone.partial_fit(X[:shown], y[:shown], **known)
        assert_array_equal(model.coef_, alone.coef_)
        assert model.intercept_ == alone.intercept_
        place, before = place + 1, due
        due = max(due + 1, round(whole * growth**place))
    assert place > 1


def test_fit_that_forgets_keeps_the_order_of_the_rows():
    """The true feature changes in the middle; in random order it would forget at random."""
    X = np.random.default_rng(0).standard_normal((2000, 8))
    y = np.where(np.arange(2000) < 1000, X[:, 0], X[:, 5])
    for own in ({}, {"shuffle": True, "random_state": 0}):
        model = SFSARegressor(k=1, forget=300, learning_rate=0.1, **own).fit(X, y)
        assert_array_equal(model.support_, [5])


def test_a_model_that_could_not_mature_or_forgets_otherwise_than_before_is_refused():
    for own in ({"batch_size": 25}, {"maturity": 25}):
        with pytest.raises(ValueError, match=rf"forget=24 .* at least {next(iter(own))}=25 rows"):
            SFSARegressor(k=4, forget=24, **own).fit(*stream())
    model = SFSARegressor(k=4).partial_fit(*stream())
    with pytest.raises(ValueError, match="forget=300 differs from forget=None"):
        model.set_params(forget=300).partial_fit(*stream())


# -------------------------------------------------- the design


def test_half_of_the_true_features_change_and_all_coefficients():
    """Features from 1: concept 0 has 10, 20, ..., concept 1 has 9, 20, 29, ..."""
    first, second, third = (CHANGING.at(t) for t in (4, 5, 9))
    assert_array_equal(first.support + 1, [10, 20, 30, 40, 50, 60])
    assert_array_equal(second.support + 1, [9, 20, 29, 40, 49, 60])
    assert_array_equal(third.support + 1, [8, 20, 28, 40, 48, 60])
    assert_array_equal(first.coef[first.support], [0.5, 1, 0.5, 1, 0.5, 1])
    assert_array_equal(second.coef[second.support], [1, 0.5, 1, 0.5, 1, 0.5])


def test_a_gradual_change_is_a_straight_line_and_a_recurring_one_comes_back():
    kinds = {
        kind: Changing(**{**vars(CHANGING), "change": kind}) for kind in ("gradual", "recurring")
    }
    gradual, recurring = kinds["gradual"], kinds["recurring"]
    old, new = CHANGING.at(4).coef, CHANGING.at(5).coef
    assert_array_equal(gradual.at(4).coef, old)
    assert_allclose(gradual.at(5).coef, (old + new) / 2)
    for t in (6, 8):
        assert_array_equal(gradual.at(t).coef, new)
    assert_array_equal(recurring.at(5).coef, new)
    assert_array_equal(recurring.at(9).coef, old)


# -------------------------------------------------- how models recover


class Late:
    """Knows the true coefficients of so many steps before, or of the first."""

    intercept_ = 0.0

    def __init__(self, steps):
        self.steps, self.t = steps, 0

    def partial_fit(self, X, y):
        self.t += 1

    @property
    def coef_(self):
        return CHANGING.at(max(1, self.t - self.steps)).coef


def test_rows_to_recover_are_counted_from_the_change():
    """Changes at steps 5 and 9; the stream ends in step 10, the second of the third concept."""
    models = {steps: Late(steps) for steps in (0, 1, 99)}
    seen = tracking.recovery(CHANGING, models, 5000, np.random.default_rng(0), every=1, level=90)
    table = pd.DataFrame(seen)
    named = table[table["metric"].isin(["rows to recover", "recovered"])]
    found = {
        (key, t): tuple(own.set_index("metric")["value"][["rows to recover", "recovered"]])
        for (key, t), own in named.groupby(["key", "t"])
    }
    assert found == {
        (0, 5): (500, 1), (0, 9): (500, 1), (1, 5): (1000, 1), (1, 9): (1000, 1),
        (99, 5): (2000, 0), (99, 9): (1000, 0),
    }  # fmt: skip
    rates = table[(table["key"] == 99) & (table["metric"] == "DR at t")]["value"]
    assert list(rates) == [100] * 4 + [50] * 6
    errors = table[(table["key"] == 0) & (table["metric"] == "RMSE at t")]["value"]
    assert_allclose(errors, 1.0)


# -------------------------------------------------- river's models


@pytest.mark.parametrize(
    ("cls", "name"),
    [
        ("RiverRegressor", "PARegressor"),
        ("RiverRegressor", "BayesianLinearRegression"),
        ("RiverClassifier", "LogisticRegression"),
        ("RiverClassifier", "ALMAClassifier"),
    ],
)
def test_rivers_models_predict_by_the_coefficients_that_they_show(cls, name):
    classify = cls == "RiverClassifier"
    X, y = stream(classify, n=300)
    model = getattr(peers, cls)(k=20, model=name)
    model.partial_fit(X, y, **({"classes": [-1, 1]} if classify else {}))
    for row, margin in zip(X.tolist(), X @ model.coef_ + model.intercept_, strict=True):
        own = model.inner.predict_one(dict(enumerate(row)))
        assert own == (margin > 0) if classify else own == pytest.approx(margin)
