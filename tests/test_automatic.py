"""Steps that follow the size of the rows: the unit of X, and of y, does not matter."""

import itertools

import naive
import numpy as np
import pytest
import scipy.sparse as sp
import shipped
from numpy.testing import assert_allclose, assert_array_equal

import ofslib
from ofslib.kernels.losses import CLASSIFICATION_LOSSES, Loss, value
from ofslib.reproduction.methods import find_class
from ofslib.simulate import Equicorrelated
from ofslib.streams.automatic import PER_FEATURE

METHODS = [cls for name in dir(ofslib) if isinstance(cls := getattr(ofslib, name), type)]
METHODS = [cls for cls in METHODS if getattr(cls, "row_scale", None)]
every_method = pytest.mark.parametrize("cls", METHODS, ids=lambda cls: cls.__name__)


def rows(cls, n=300, p=50):
    """Rows of which some are much larger than those before, and a target."""
    X, y = Equicorrelated(p, 5).sample(n, np.random.default_rng(2))
    X *= np.random.default_rng(1).lognormal(0, 0.7, n)[:, None]
    return X, y > 0 if cls.__name__.endswith("Classifier") else y


@every_method
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


@pytest.mark.parametrize("cls", [m for m in METHODS if m.__name__.endswith("Regressor")])
def test_the_unit_of_the_target_does_not_matter(cls):
    X, y = rows(cls)
    one, other = (cls(k=5, random_state=0).fit(X, unit * y) for unit in (1.0, 1e5))
    assert_array_equal(other.support_, one.support_)
    assert_allclose(other.coef_, 1e5 * one.coef_, rtol=1e-6)


@pytest.mark.parametrize("loss", ["squared_error", *CLASSIFICATION_LOSSES])
def test_no_row_overshoots(loss):
    """With all features kept, no step raises the loss of its own row."""
    cls = ofslib.SIHTRegressor if loss == "squared_error" else ofslib.SIHTClassifier
    X, y = rows(cls)
    known = {} if loss == "squared_error" else {"classes": [False, True]}
    model = cls(k=50, loss=loss, fit_intercept=False)
    model.partial_fit(X[:1], y[:1], **known)
    for x, target in zip(X[1:], y[1:], strict=True):
        before = x @ model.coef_
        model.partial_fit(x[None], [target])
        t = target if loss == "squared_error" else 2.0 * target - 1.0
        losses = [value(int(Loss[loss]), m, t) for m in (before, x @ model.coef_)]
        assert losses[1] <= losses[0] + 1e-12


@pytest.mark.parametrize("loss", ["squared_error", *CLASSIFICATION_LOSSES])
def test_it_is_the_inverse_of_curvature_and_mean_square(loss):
    """Where all rows are of one size it is a number."""
    cls = ofslib.OPGRegressor if loss == "squared_error" else ofslib.OPGClassifier
    X, y = rows(cls)
    X *= 3.0 / np.linalg.norm(X, axis=1, keepdims=True)
    eta = {"squared_error": 1.0, "log_loss": 4.0, "hinge": 1.0, "squared_hinge": 0.5}[loss] / 9.0
    for own in ({"k": 5}, {"l1": 0.01, "l2": 0.1}):
        own |= {"loss": loss, "fit_intercept": False, "shuffle": False}
        auto, number = (cls(**own, learning_rate=step).fit(X, y) for step in ("auto", eta))
        assert_allclose(auto.coef_, number.coef_, rtol=1e-9)


@pytest.mark.parametrize("batch_size", [1, 7])
def test_it_is_its_definition(batch_size):
    """The mean at the last power of two; in a mini-batch with a heavy row the step of that row."""
    X, y = rows(ofslib.SIHTRegressor, n=299)
    X[-1] *= 5
    sizes, w, steps = (X**2).sum(axis=1), np.zeros(50), []
    for start in range(0, len(X), batch_size):
        batch = slice(start, start + batch_size)
        seen = len(X[batch]) + start - 1  # when the last of its rows came
        mean = sizes[: 2 ** (seen.bit_length() - 1) if seen else 1].mean()
        heaviest = sizes[batch].max() / (2 * len(X[batch]))  # the last one has fewer
        steps.append(heaviest if heaviest > mean else mean)
        w -= (X[batch] @ w - y[batch]) @ X[batch] / len(X[batch]) / steps[-1]
    model = ofslib.SIHTRegressor(k=50, batch_size=batch_size, fit_intercept=False, shuffle=False)
    assert_allclose(model.fit(X, y).coef_, w, rtol=1e-9)
    assert len(set(steps)) > 8


def test_a_row_may_be_heavy_for_fewer_rows_only():
    """Of the last nine rows, among which the mean is taken anew, one binds; of 25 it would not."""
    X, y = rows(ofslib.SIHTRegressor, n=134)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    X[126] *= 6
    w, sizes = np.zeros(50), (X**2).sum(axis=1)
    for start, known in zip(range(0, 134, 25), (16, 32, 64, 64, 64, 128), strict=True):
        batch, T = slice(start, start + 25), sizes[:known].mean()
        A, step = X[batch], max(T, sizes[batch].max() / (2 * len(X[batch])))
        assert (step > T) == (start == 125) and sizes[batch].max() < 2 * 25
        w -= (A @ w - y[batch]) @ A / len(A) / step
    model = ofslib.SIHTRegressor(k=50, batch_size=25, fit_intercept=False, shuffle=False)
    assert_allclose(model.fit(X, y).coef_, w, rtol=1e-9)


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
@pytest.mark.parametrize("unit", [1e-3, 1e3])
def test_by_how_much_the_margin_of_the_first_row_moves(cls, moves, unit):
    x = unit * np.random.default_rng(0).standard_normal((1, 20))
    model = cls(k=20, alpha=0.0, delta=1e-12, fit_intercept=False)
    model.partial_fit(x, [1], classes=[0, 1])
    assert_allclose(model.decision_function(x), moves)


@every_method
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


@pytest.mark.parametrize("cls", [m for m in METHODS if m.__name__.endswith("Regressor")])
def test_a_row_of_weight_w_is_that_times_its_root(cls):
    """The squared error knows no difference, and neither does the step."""
    X, y = rows(cls)
    weight = np.random.default_rng(3).lognormal(0, 1, len(X))
    root, own = np.sqrt(weight), {"k": 5, "fit_intercept": False, "random_state": 0}
    weighted = cls(**own).fit(X, y, sample_weight=weight)
    scaled = cls(**own).fit(root[:, None] * X, root * y)
    assert_allclose(weighted.coef_, scaled.coef_, rtol=1e-9)


@pytest.mark.parametrize("cls", [ofslib.OPGRegressor, ofslib.TruncatedGradientRegressor])
def test_shrinkages_that_wait_are_those_of_the_steps_that_were(cls):
    """Sparse rows, of which half of the features have few; the steps change at every larger row.

    The last mini-batch is of three rows, which are heavy for so few.
    """
    rng = np.random.default_rng(0)
    X = rng.standard_normal((203, 30)) * (rng.random((203, 30)) < np.repeat([0.2, 0.02], 15))
    X *= np.geomspace(1, 9, 203)[:, None]
    y = X[:, :3].sum(axis=1)
    own = {"shuffle": False, "batch_size": 25}
    path = cls(k=9, n_penalties=3, l1_range=(0.03, 3.0), **own).fit(X, y)
    for l1, coef in zip(*path.path_, strict=True):
        single = cls(l1=l1, **own).fit(sp.csr_matrix(X), y)
        assert_allclose(single.coef_, coef, rtol=0, atol=1e-12)


def test_the_papers_entries_name_their_steps():
    """What a default becomes does not change a number of theirs."""
    for entry in shipped.load().entries.values():
        for setting in entry.settings:
            tuned = setting.spec["tune"].get("grid", {}).keys()
            for label, method in setting.spec["methods"].items():
                cls = find_class(method["class"])
                if getattr(cls, "row_scale", None) and not entry.spec["source"].startswith(
                    "Of our own"
                ):
                    named = method.keys() | method.get("sweep", {}).keys() | tuned
                    assert cls.step_parameter in named, (entry.name, label)
