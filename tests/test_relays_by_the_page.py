"""SFSA at any time, with `forget` and in parts is what the page says, in slow steps.

The step is constant. The pages are docs/algorithms.md, docs/parallel.md, the docstrings and sfsa,
Algorithm 1 and Figure 1. [code] marks what, when this was written, only the code or a test told.
"""

import naive
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import ofslib
from ofslib import fit_parts


def stream(n, loss):
    draw = np.random.default_rng(n)
    X = draw.standard_normal((n, 12)) * draw.uniform(0.5, 2, 12)
    y = X[:, :4] @ [1, -1, 0.5, 2] + draw.standard_normal(n) + 1
    regression = loss == "squared_error"
    cls = ("Classifier", "Regressor")[regression]
    return X, y if regression else np.where(y > 0, 1.0, -1.0), cls


class Descent:
    """Mini-batches of 10 rows; `left`: the features that stay."""

    def __init__(self, p, loss):
        self.w, self.alive = np.zeros(p + 1), np.arange(p)
        self.loss, self.t, self.margins = loss, 0, []

    def copy(self):
        other = Descent(len(self.w) - 1, self.loss)
        vars(other).update(w=self.w, alive=self.alive, t=self.t, margins=[*self.margins])
        return other

    def step(self, X, y, left=None):
        self.t += 1
        m = X @ self.w[:-1] + self.w[-1]
        self.margins.extend(m)
        slopes, w = naive.slope(self.loss, m, y) / len(y), self.w.copy()
        w[self.alive] -= 0.02 * (slopes @ X)[self.alive]
        w[-1] -= naive.own_step(self.loss, 0.02, self.t, self.margins) * slopes.sum()
        self.w = w
        self.keep(len(self.alive) if left is None else left)

    def keep(self, left):
        self.alive = self.alive[naive.top(np.abs(self.w[self.alive]), left)]
        gone = np.setdiff1d(np.arange(len(self.w) - 1), self.alive)
        self.w = np.where(np.isin(np.arange(len(self.w)), gone), 0, self.w)


def assert_shown(model, own):
    own.keep(min(3, len(own.alive)))
    assert_allclose(model.coef_, own.w[:-1], rtol=1e-9, atol=1e-12)
    assert_allclose(model.intercept_, own.w[-1], rtol=1e-9, atol=1e-12)


by_loss = pytest.mark.parametrize("loss", ["squared_error", "log_loss", "squared_hinge"])
GIVEN = {"k": 3, "learning_rate": 0.02, "batch_size": 10, "mu": 4.0}


@by_loss
@pytest.mark.parametrize("first, growth", [(50, 2.0), (47, 1.7), (1, 1.05)])
def test_at_any_time_a_set_has_matured_and_a_better_one_is_in_the_making(loss, first, growth):
    """Maturity i is the first in mini-batches, rounded up, times growth^i, rounded [code]."""
    for n in (7, 60, 99, 100, 399, 400):
        X, y, task = stream(n, loss)
        last, following, place = 0, -(-first // 10), 0
        base, making, ready = Descent(12, loss), Descent(12, loss), None
        for i, (x, target) in enumerate(naive.minibatches(X, y, 10), 1):
            base.step(x, target)
            making.step(x, target, naive.schedule(i, following, last, 12, 3, 4.0))
            if ready:
                ready.step(x, target)
            if i == following and len(y) >= 10 * i:  # The last mini-batch is full [code]
                place, last, ready, making = place + 1, i, making, base.copy()
                following = max(i + 1, round(-(-first // 10) * growth**place))
        own = {"first_maturity": first, "growth": growth, "shuffle": False}
        cls = getattr(ofslib, f"AnytimeSFSA{task}")
        assert_shown(cls(**GIVEN, **own, loss=loss).fit(X, y), ready or making)


@by_loss
@pytest.mark.parametrize("forget", [40, 73])
def test_what_is_shown_with_forget_is_sfsa_on_the_last_rows(loss, forget):
    for n in (17, forget, 2 * forget - 1, 2 * forget, 3 * forget + 5):
        X, y, task = stream(n, loss)
        own, start = Descent(12, loss), max(0, n // forget - 1) * forget
        for i, (x, target) in enumerate(naive.minibatches(X[start:], y[start:], 10), 1):
            own.step(x, target, naive.schedule(i, -(-forget // 10), 0, 12, 3, 4.0))
        cls = getattr(ofslib, f"SFSA{task}")
        assert_shown(cls(**GIVEN, loss=loss, forget=forget).fit(X, y), own)


@by_loss
def test_parts_descend_apart_and_are_averaged_where_a_quarter_leaves(loss):
    """Of n_i rows those up to n_i s / S are learned by the end of step s [code]; sums add up."""
    X, y, task = stream(600, loss)
    parts = [(X[i:j], y[i:j]) for i, j in ((0, 150), (150, 320), (320, 600))]
    common, t = Descent(12, loss), 0
    while t < 20:
        left = len(common.alive)
        goal, found = max(3, 0.75 * left) if left > 3 else -1, []
        numbers = [naive.schedule(s, 20, 3, 12, 3, 4.0) for s in range(21)]
        end = next(s for s in range(t + 1, 21) if s == 20 or numbers[s] <= goal)
        for x, target in parts:
            found.append(common.copy())
            a, b = (len(x) * s // 20 for s in (t, end))
            for rows in naive.minibatches(x[a:b], target[a:b], 10):
                found[-1].step(*rows)
        common.w = sum(len(x) / 600 * own.w for (x, _), own in zip(parts, found, strict=True))
        known = len(common.margins)
        common.margins = sum([own.margins[known:] for own in found], common.margins)
        common.t = t = end
        common.keep(numbers[t])
    cls = getattr(ofslib, f"SFSA{task}")
    assert_shown(fit_parts(cls(**GIVEN, loss=loss, warmup=90), parts), common)


def test_a_warmup_counts_the_rows_of_all_parts_also_by_default(tmp_path):
    X, y, _ = stream(600, "squared_error")
    parts = [(X[i : i + 120], y[i : i + 120]) for i in range(0, 600, 120)]
    own = {"k": 3, "learning_rate": 0.02, "warmup": 150}
    given = fit_parts(ofslib.SFSARegressor(**own, maturity=600), parts)
    model = fit_parts(ofslib.SFSARegressor(**own), parts)
    assert_array_equal(model.coef_, given.coef_)
    # A file holds the parameters, of all parts, and how many rows these had.
    model.save(tmp_path / "model.ofs")
    again = ofslib.SFSARegressor.load(tmp_path / "model.ofs")
    assert_array_equal(again.partial_fit(X, y).coef_, model.partial_fit(X, y).coef_)


def test_a_warmup_may_take_all_rows_but_one_whatever_the_parts():
    X, y, _ = stream(5, "squared_error")
    model = ofslib.SFSARegressor(k=3, learning_rate=0.02, warmup=4)
    assert len(fit_parts(model, [(X[:2], y[:2]), (X[2:], y[2:])]).support_) == 3
    with pytest.raises(ValueError, match="warmup=5 rows must be less than maturity=5 rows"):
        fit_parts(model.set_params(warmup=5), [(X[:2], y[:2]), (X[2:], y[2:])])


@pytest.mark.filterwarnings("error")
def test_a_model_of_few_rows_a_part_is_loaded_without_a_word(tmp_path):
    X, y, _ = stream(240, "log_loss")
    parts = [(X[i : i + 6], y[i : i + 6]) for i in range(0, 240, 6)]
    model = fit_parts(ofslib.SFSAClassifier(k=2), parts, classes=[-1, 1])
    model.save(tmp_path / "model.ofs")
    assert_array_equal(ofslib.SFSAClassifier.load(tmp_path / "model.ofs").coef_, model.coef_)
