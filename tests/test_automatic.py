"""Steps that follow the size of the rows: the unit of X, and of y, does not matter."""

import numpy as np
import pytest
import scipy.sparse as sp
import shipped
from numpy.testing import assert_allclose, assert_array_equal

import ofslib
from ofslib.kernels.losses import CLASSIFICATION_LOSSES, Loss, value
from ofslib.reproduction.methods import find_class
from ofslib.simulate import Equicorrelated
from ofslib.streams.automatic import Automatic

METHODS = [cls for name in dir(ofslib) if isinstance(cls := getattr(ofslib, name), type)]
METHODS = [cls for cls in METHODS if issubclass(cls, Automatic)]
every_method = pytest.mark.parametrize("cls", METHODS, ids=lambda cls: cls.__name__)


def rows(cls, n=300, p=50):
    """Rows of which some are much larger than those before, and a target."""
    X, y = Equicorrelated(p, 5).sample(n, np.random.default_rng(0))
    X *= np.random.default_rng(1).lognormal(0, 0.7, n)[:, None]
    return X, y > 0 if cls.__name__.endswith("Classifier") else y


@every_method
@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
def test_the_unit_of_the_features_does_not_matter(cls, fit_intercept, form):
    X, y = rows(cls)
    # B-AMD has two parameters with a unit of their own, of which one counts for its intercept too.
    powers = {"delta": 1, "alpha": 2} if cls is ofslib.BAMDClassifier else {}
    own = {"k": 5, "fit_intercept": fit_intercept and not powers, "random_state": 0}
    one = cls(**own).fit(form(X), y)
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
    X, y = rows(ofslib.SIHTRegressor)
    sizes, w, steps = (X**2).sum(axis=1), np.zeros(50), []
    for start in range(0, len(X), batch_size):
        batch = slice(start, start + batch_size)
        seen = len(X[batch]) + start - 1  # when the last of its rows came
        mean = sizes[: 2 ** (seen.bit_length() - 1) if seen else 1].mean()
        heaviest = sizes[batch].max() / (2 * batch_size)
        steps.append(heaviest if heaviest > mean else mean)
        w -= (X[batch] @ w - y[batch]) @ X[batch] / len(X[batch]) / steps[-1]
    model = ofslib.SIHTRegressor(k=50, batch_size=batch_size, fit_intercept=False, shuffle=False)
    assert_allclose(model.fit(X, y).coef_, w, rtol=1e-9)
    assert len(set(steps)) > 8


@pytest.mark.parametrize("cls", [ofslib.OPGRegressor, ofslib.TruncatedGradientRegressor])
def test_shrinkages_that_wait_are_those_of_the_steps_that_were(cls):
    """Sparse rows, of which each feature has few; the steps change at every larger row."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 30)) * (rng.random((200, 30)) < 0.2)
    X *= np.geomspace(1, 9, 200)[:, None]
    y = X[:, :3].sum(axis=1)
    path = cls(k=9, n_penalties=3, l1_range=(0.03, 3.0), shuffle=False).fit(X, y)
    for l1, coef in zip(*path.path_, strict=True):
        single = cls(l1=l1, shuffle=False).fit(sp.csr_matrix(X), y)
        assert_allclose(single.coef_, coef, rtol=0, atol=1e-12)


def test_the_papers_entries_name_their_steps():
    """What a default becomes does not change a number of theirs."""
    for entry in shipped.load().entries.values():
        for setting in entry.settings:
            tuned = setting.spec["tune"].get("grid", {}).keys()
            for label, method in setting.spec["methods"].items():
                cls = find_class(method["class"])
                if issubclass(cls, Automatic) and entry.spec["source"] != "Of our own":
                    assert cls.step_parameter in method.keys() | tuned, (entry.name, label)
