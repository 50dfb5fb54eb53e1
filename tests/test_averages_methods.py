"""The methods on running averages: what OFSA computes, their solvers, and what all promise.

Of OLSth, the penalised methods and the criteria: the files *_by_the_page.py.
"""

import numpy as np
import pytest
from estimators import AVERAGES, accepted, every, said
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import is_classifier

import ofslib
from ofslib.averages import RunningAverages
from ofslib.kernels.gram import largest_eigenvalue, least_squares
from ofslib.simulate import Equicorrelated
from ofslib.streams.average_stream import AverageSelector

K = 4
CLASSES = {cls.__name__: cls for cls in AVERAGES}
METHODS = sorted({name.removesuffix("Regressor").removesuffix("Classifier") for name in CLASSES})
every_class = every(AVERAGES)


def rows(n=120, p=15, seed=0):
    """Correlated features in many units, four of which matter."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p)) + 0.7 * rng.standard_normal((n, 1))
    y = X[:, [1, 4, 8, 11]] @ [1.0, -1.5, 0.8, 1.2] + 0.5 * rng.standard_normal(n) + 3.0
    return X * np.geomspace(0.01, 100, p) + np.linspace(-5, 5, p), y


def target(cls, y):
    return np.where(y > np.median(y), 1.0, -1.0) if is_classifier(cls()) else y


def averages(X, y, weight=None):
    return RunningAverages(X.shape[1]).update(X, y, weight)


def budget(cls, k=K):
    return {"k": k} if "k" in cls().get_params() else {}


def fitted(cls, X, y, **own):
    return cls(**budget(cls) | own).fit(X, target(cls, y))


def assert_same(one, two, rtol=1e-9):
    assert_array_equal(one.support_, two.support_)
    assert_allclose(two.coef_, one.coef_, rtol=rtol)
    assert_allclose(two.intercept_, one.intercept_, rtol=rtol)


@pytest.mark.filterwarnings("ignore:k=.*is greater than n_features")
@every_class
def test_scikit_learn_accepts_it(cls):
    # 9 rows, and up to 10 features: whether least squares needs its ridge goes by the number of
    # rows, whatever their weights.
    ridged = {f"check_sample_weight_equivalence_on_{form}_data" for form in ("dense", "sparse")}
    accepted(cls(), may=ridged if "penalty_ratio" in cls().get_params() else ())


def test_ofsa_takes_its_step_from_the_spectrum():
    X, y = rows()
    top = np.linalg.eigvalsh(np.corrcoef(X.T)).max()
    own = {"k": 3, "n_iter": 40}
    same = ofslib.OFSARegressor(**own, learning_rate=1.2 / top).fit(X, y)
    assert_same(ofslib.OFSARegressor(**own, step=1.2).fit(X, y), same)
    with pytest.raises(FloatingPointError, match="diverged"):
        _ = ofslib.OFSARegressor(k=3, learning_rate=9.0).fit(X, y).coef_


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_largest_eigenvalue(dtype):
    rng = np.random.default_rng(0)
    for n, p, alpha in ((50, 1, 0.0), (30, 60, 0.0), (900, 300, 1.0)):
        X = rng.standard_normal((n, p)) + alpha * rng.standard_normal((n, 1))
        S = np.asfortranarray(np.corrcoef(X.T).reshape(p, p), dtype)
        top = np.linalg.eigvalsh(S.astype(float)).max()
        assert 0.99 * top <= largest_eigenvalue(S) <= top * (1 + 1e-5)
    flipped = np.array([[1.0, -0.9], [-0.9, 1.0]], dtype, order="F")
    assert_allclose(largest_eigenvalue(flipped), 1.9, rtol=1e-5)


def test_a_matrix_that_rounding_made_regular_gets_the_ridge_and_an_indefinite_one_is_refused():
    S, b = np.array([[1.0, 1 - 2**-53], [1 - 2**-53, 1.0]], order="F"), np.array([1.0, 0.2])
    assert_allclose(least_squares(S, b, 100, 0.5), np.linalg.solve(S + 0.5 * np.eye(2), b))
    with pytest.raises(np.linalg.LinAlgError, match="negative"):
        least_squares(np.array([[1.0, 2.0], [2.0, 1.0]], order="F"), np.ones(2), 9, 0.1)


# What a user is told


def support(model):
    """Its size, and what is said of it."""
    told = said(lambda: model.support_)
    return len(model.support_), " ".join(told)


@pytest.mark.parametrize("name", ["OFSA", "OnlineLasso"])
def test_where_a_criterion_tells_little_it_is_said(name):
    """Chen and Chen 2008; aic and bic take nearly as many features as rows."""
    rng, cls = np.random.default_rng(0), CLASSES[f"{name}Regressor"]
    X = rng.standard_normal((60, 200))
    y = X[:, :4] @ [1.5, -1.5, 1.5, 1.5] + rng.standard_normal(60)
    size, told = support(cls(k="ebic").fit(X, y))
    assert told == "" and 4 <= size <= 6
    for k in ("aic", "bic"):
        size, told = support(cls(k=k).fit(X, y))
        assert size > 50 and f"k='{k}' chose {size} features with a weight of 60 rows" in told
    X, y = Equicorrelated(p=60, k=5, beta=1.0).sample(2000, rng)
    for max_k, size in ((3, 3), (8, 5)):
        found, told = support(cls(k="bic", max_k=max_k).fit(X, y))
        assert (found, "as many as max_k=3 allows" in told) == (size, max_k == 3)
    shares = averages(X, y, np.full(2000, 1 / 2000))  # no numbers of rows
    with pytest.raises(ValueError, match="and they sum up to 1"):
        _ = cls(k="aic").fit_averages(shares).coef_
    X = X[:30, :20]
    size, told = support(cls(k="ebic").fit(X, X @ np.ones(20)))
    assert size == 15 and "k='ebic' chose 15" in told and "no criterion" in told


@pytest.mark.parametrize("name", ["OLSth", "OFSA", "OnlineLasso", "OLS"])
@pytest.mark.parametrize("still", ["X", "y"])
def test_a_model_without_a_feature_says_so(name, still):
    X = np.random.default_rng(0).standard_normal((50, 4))
    X, y = (np.ones((50, 4)), X[:, 0]) if still == "X" else (X, np.zeros(50))
    model = CLASSES[f"{name}Regressor"]().fit(X, y)
    size, told = support(model)
    assert size == 0 and "has selected no feature" in told and not model.coef_.any()
    assert model.intercept_ == pytest.approx(y.mean())


# What all promise


@every_class
def test_a_path_holds_the_models_of_each_k(cls):
    X, y = rows()
    y = target(cls, y)
    moments, ks = averages(X, y), [3, 1, 7, 15, 3]
    model = cls(**budget(cls, 2)).fit(X, y)
    before = model.coef_
    path = model.path(moments, ks)
    assert path.shape == (5, 15) and path.dtype == np.float64
    for k, coef in zip(ks, path, strict=True):
        assert_array_equal(coef, cls(**budget(cls, k)).fit_averages(moments).coef_)
        if issubclass(cls, AverageSelector):
            size = np.count_nonzero(coef)
            assert size == k if cls.__name__.startswith(("OLSth", "OFSA")) else size <= k
    assert_array_equal(model.coef_, before)


@every_class
def test_averages_that_are_given_are_the_rows_and_go_their_own_way(cls):
    X, y = rows()
    y = target(cls, y)
    whole, moments = cls(**budget(cls)).fit(X, y), averages(X, y)
    same = cls(**budget(cls)).fit_averages(moments)
    assert_same(whole, same, rtol=1e-12)
    assert same.n_features_in_ == 15 and same.n_samples_seen_ == same.averages_.n == 120
    assert_allclose(same.predict(X), whole.predict(X))
    moments.update(X[:30], -y[:30])
    assert_same(whole, same, rtol=1e-12)
    same.coef_[:] = 7.0
    assert_same(whole, same, rtol=1e-12)
    same.partial_fit(X, y)
    assert moments.n == 150 and same.n_samples_seen_ == 240


@every_class
def test_a_parameter_acts_when_rows_come(cls):
    X, y = rows()
    y = target(cls, y)
    model = cls(**budget(cls)).fit(X, y)
    model.set_params(ridge=7.0, fit_intercept=False, **budget(cls, 2))
    assert_same(model, cls(**budget(cls)).fit(X, y))
    model.partial_fit(X, y)
    twice = [np.concatenate([part, part]) for part in (X, y)]
    assert_same(model, cls(**model.get_params()).fit(*twice), rtol=1e-8)
    with pytest.raises(ValueError, match="dtype='float32' differs"):
        model.set_params(dtype="float32").partial_fit(X, y)


@every_class
def test_units_order_and_precision_do_not_matter(cls):
    X, y = rows(400)
    y, rng = target(cls, y), np.random.default_rng(3)
    model = cls(**budget(cls)).fit(X, y)
    units, order = rng.choice([-1, 1], 15) * rng.uniform(1e-3, 1e3, 15), rng.permutation(15)
    other = cls(**budget(cls)).fit((X * units + rng.standard_normal(15))[:, order], y)
    assert_array_equal(np.sort(order[other.support_]), model.support_)
    assert_allclose((other.coef_ * units[order]), model.coef_[order], rtol=1e-6)
    single = cls(**budget(cls), dtype="float32").fit(X, y)
    assert_array_equal(single.support_, model.support_)
    assert_allclose(single.coef_, model.coef_, rtol=2e-3)
    assert single.coef_.dtype == np.float64


@pytest.mark.parametrize("method", METHODS)
def test_a_shift_of_y_moves_the_intercept_its_unit_all_and_labels_are_numbers(method):
    X, y = rows()
    cls = CLASSES[f"{method}Regressor"]
    model, moved = fitted(cls, X, y), fitted(cls, X, -100.0 * y + 7.0)
    assert_array_equal(moved.support_, model.support_)
    assert_allclose(moved.coef_, -100.0 * model.coef_, rtol=1e-7)
    assert_allclose(moved.intercept_, -100.0 * model.intercept_ + 7.0, rtol=1e-7)
    y = np.where(y > 3, "up", "down")
    labels = CLASSES[f"{method}Classifier"](**budget(cls)).fit(X, y)
    same = fitted(cls, X, np.where(y == "up", 1.0, -1.0))
    assert_same(same, labels, rtol=1e-12)
    assert labels.classes_.tolist() == ["down", "up"] and labels.score(X, y) > 0.85
    assert_allclose(labels.decision_function(X), same.predict(X))


@pytest.mark.parametrize("classes", [1, 3])
def test_olsth_ranks_raw_or_standardised_coefficients(classes):
    """Of one model their size, of a joint choice for several labels their norm."""
    rng, k = np.random.default_rng(0), 3
    X = rng.standard_normal((400, 8)) * np.geomspace(0.1, 10, 8)
    y = np.digitize((X / X.std(axis=0))[:, :4] @ np.ones(4) + rng.standard_normal(400), [-1, 1])
    if classes == 1:
        cls, own, targets = ofslib.OLSthRegressor, {}, [y]
    else:
        cls, own = ofslib.OLSthClassifier, {"multiclass": "joint"}
        targets = [np.where(y == c, 1, -1) for c in range(3)]
    coefs = np.array([ofslib.OLSRegressor().fit(X, target).coef_ for target in targets])
    chosen = []
    for ranking, unit in (("raw", 1.0), ("standardized", X.std(axis=0))):
        order = np.argsort(-np.linalg.norm(coefs * unit, axis=0))
        chosen.append(cls(k=k, ranking=ranking, **own).fit(X, y).support_.tolist())
        assert chosen[-1] == sorted(order[:k].tolist())
    assert chosen[0] != chosen[1]


def test_the_step_of_ofsa_is_that_of_the_largest_eigenvalue():
    """The first direction is nearly an eigenvector of a smaller one."""
    X = [[0.34558419, 2, 0], [0.90535587, 1, 0], [0.3645724, 1, 0], [-0.73645409, 0, 0]]
    assert ofslib.OFSAClassifier(k=2).fit(X, [0, 1, 1, 0]).support_.tolist() == [0, 1]
