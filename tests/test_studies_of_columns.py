"""The experiments on streams of columns: their data, their batch method, what they report."""

from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose

import ofslib
from ofslib.reproduction.studies.columns import BatchL1, on_images, on_synthetic, synthetic

LOSSES = ["squared_error", "squared_hinge"]
OS = {"class": "OnlineSubstitution"}
BATCH = {"class": "ofslib.reproduction.studies.columns:BatchL1"}


def drawn(loss, p=60, n=400, s=12, seed=0):
    return synthetic(p, n, s, loss, np.random.default_rng(seed))


def slopes(loss, X, y, w):
    """Gradient of the mean loss: of half the squared error, or of the squared hinge."""
    if loss == "squared_error":
        return X.T @ (X @ w - y) / len(y)
    return X.T @ (-2.0 * y * np.maximum(0.0, 1.0 - y * (X @ w))) / len(y)


@pytest.mark.parametrize("loss", LOSSES)
def test_the_batch_penalty_is_the_largest_of_the_path_that_leaves_k(loss):
    X, y, _ = drawn(loss)
    X = X * np.geomspace(0.01, 100, 60)
    model = BatchL1(k=9, loss=loss).fit(X, y)
    Z = X / np.sqrt(np.mean(X**2, axis=0))
    path = model._lasso if loss == "squared_error" else model._hinge
    l1, w = path(np.asfortranarray(Z), y)
    assert l1 == model.l1_ and np.count_nonzero(w) == model.n_selected_ >= 9
    # It is the minimum of mean loss + l1 |w|: the gradient is -l1 sign(w), and smaller elsewhere.
    g = slopes(loss, Z, y, w)
    assert_allclose(g[w != 0], -l1 * np.sign(w[w != 0]), rtol=0.01)
    assert np.abs(g[w == 0]).max() <= 1.01 * l1
    # All of w is 0 at the largest gradient; the penalty is on the path from there.
    steps = np.log(np.abs(slopes(loss, Z, y, np.zeros(60))).max() / l1) / -np.log(0.93)
    assert_allclose(steps, round(steps), atol=1e-6)
    assert fewer_one_step_before(loss, Z, y, l1 / 0.93) < 9


def fewer_one_step_before(loss, Z, y, l1):
    """Features that the penalty before leaves, by another solver: proximal gradients."""
    w, bend = np.zeros(Z.shape[1]), (1 if loss == "squared_error" else 2)
    step = len(y) / (bend * np.linalg.norm(Z, 2) ** 2)
    for _ in range(3000):
        w = w - step * slopes(loss, Z, y, w)
        w = np.sign(w) * np.maximum(np.abs(w) - step * l1, 0.0)
    return np.count_nonzero(np.abs(w) > 1e-9)


@pytest.mark.parametrize("loss", LOSSES)
def test_l1_methods_get_the_penalty_of_the_batch_method(loss):
    setting = {"axes": {"p": 60}, "methods": {"L1": BATCH, "Grafting": {"class": "Grafting"}}}
    rows = on_synthetic(setting, np.random.SeedSequence(3), None, loss, n=400, s=12)
    rows = {row["metric"]: row["value"] for row in rows if row["method"] == "Grafting"}
    draw, order = np.random.SeedSequence(3).spawn(2)
    X, y, w = synthetic(60, 400, 12, loss, np.random.default_rng(draw))
    l1 = BatchL1(k=12, loss=loss).fit(X[:400], y[:400]).l1_
    own = {"random_state": int(order.generate_state(1)[0]), "fit_intercept": False, "loss": loss}
    model = ofslib.Grafting(k=12, l1=l1, **own).fit(X[:400], y[:400])
    assert_allclose(rows["recall"], 100 * np.isin(np.flatnonzero(w), model.support_).mean())
    if loss == "squared_error":
        error = np.sqrt(((model.coef_ - w) ** 2).sum() / (w**2).sum())
        assert_allclose(rows["recovery error"], error, rtol=1e-12)
    else:
        wrong = 100 * np.mean(np.sign(X[400:] @ model.coef_) != y[400:])
        assert_allclose(rows["test error"], wrong)
    assert rows["features kept"] == model.peak_features_


def images(shift=0.0, n=120, p=30):
    """Three classes, of which 0 and 2 differ in one feature."""
    rng = np.random.default_rng(1)
    y = np.repeat([0, 1, 2], n)
    X = rng.standard_normal((3 * n, p))
    X[:, 7] += 6.0 * (y == 2)
    X[y == 1] = 1e6
    order = rng.permutation(3 * n)
    X, y = X[order] + shift, y[order]
    return SimpleNamespace(X_train=X[:200], y_train=y[:200], X_test=X[200:], y_test=y[200:])


METHODS = {"OS": OS, "Asy-OS": {"class": "AsyncOnlineSubstitution", "sweep": {"n_workers": [1, 3]}}}


def errors(data, **own):
    rows = on_images(
        {"methods": METHODS}, np.random.SeedSequence(5), data, [1, 4], 6, 100, [0, 2], **own
    )
    return [(row["method"], row["s"], row.get("n_workers"), row["value"]) for row in rows]


def test_images_are_of_the_two_classes_and_sweeps_of_one_size():
    rows = errors(images())
    assert [row[:3] for row in rows] == [
        ("OS", 1, None),
        ("OS", 4, None),
        ("Asy-OS", 6, 1),
        ("Asy-OS", 6, 3),
    ]
    # One feature tells the classes apart; rows of the third class would spoil it.
    assert all(error < 3.0 for *_, error in rows)
    assert_allclose([r[-1] for r in errors(images(8.0))], [r[-1] for r in rows])  # centred
