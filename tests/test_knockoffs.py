"""Knockoffs from running averages: their law, their filter, and what they promise."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats
from sklearn.utils.estimator_checks import check_estimator

import ofslib
from ofslib import RunningAverages, SFSARegressor, select_by_knockoffs
from ofslib.beyond import knockoffs
from ofslib.beyond.knockoffs import (
    KnockoffCopies,
    doubled,
    knockoff_filter,
    largest_distances,
)
from ofslib.reproduction.studies.knockoffs import benjamini_hochberg, shares

TRUE = np.arange(0, 100, 4)


def drawn(n, p, rho, beta, rng):
    X = np.sqrt(rho) * rng.standard_normal((n, 1)) + np.sqrt(1 - rho) * rng.standard_normal((n, p))
    return X, beta * X[:, TRUE].sum(axis=1) + rng.standard_normal(n)


def selection_by_rows(X, y, rng):
    """z of the fixed-X copies of Barber and Candes (2015), (1.3) and (1.4), made of the rows."""
    n, p = X.shape
    X = (X - X.mean(axis=0)) / X.std(axis=0) / np.sqrt(n)
    S = X.T @ X
    s = largest_distances(S)
    # Orthonormal columns that are orthogonal to X and to the constant
    fixed = np.column_stack([X, np.ones(n)])
    noise = rng.standard_normal((n, p))
    noise -= fixed @ np.linalg.lstsq(fixed, noise, rcond=None)[0]
    U, R = np.linalg.qr(noise)
    U *= np.sign(np.diagonal(R))  # without it they are not uniform (Mezzadri 2007)
    D = np.diag(s)
    root = np.linalg.cholesky(2 * D - D @ np.linalg.solve(S, D)).T
    copies = X @ (np.eye(p) - np.linalg.solve(S, D)) + U @ root
    assert_allclose(copies.T @ copies, S, atol=1e-9)
    assert_allclose(X.T @ copies, S - D, atol=1e-9)
    return copies.T @ (y - y.mean()) / np.sqrt(n)


def test_moments_are_drawn_from_the_law_of_copies_made_of_rows():
    n, p = 30, 4
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, p)) @ rng.standard_normal((p, p))
    y = X[:, 0] + rng.standard_normal(n)
    standard = RunningAverages(p).update(X, y).standardized()
    S, z = standard.S_xx, standard.S_xy
    rest = standard.S_yy - z @ np.linalg.solve(S, z)
    copies, draw = knockoffs._copies_of(S), np.random.RandomState(1)
    seen = [knockoffs._of_copies(copies, z, rest, n - 1 - p, draw)[0] for _ in range(600)]
    by_rows = np.array([selection_by_rows(X, y, rng) for _ in range(600)])
    seen = np.array(seen)
    for direction in (*np.eye(p), np.ones(p)):
        assert stats.ks_2samp(seen @ direction, by_rows @ direction).pvalue > 0.001
    assert_allclose(np.cov(seen.T), np.cov(by_rows.T), atol=0.15 * np.cov(by_rows.T).max())


@pytest.mark.parametrize("rho", [0.0, 0.5, 0.9])
def test_of_equal_correlations_the_distances_are_known(rho):
    p = 40
    S = (1 - rho) * np.eye(p) + rho
    # d/ds of p log s + (p - 1) log(2 (1 - rho) - s) + log(2 (1 - rho) - s + 2 p rho)
    s = largest_distances(S)
    assert_allclose(s, s[0], rtol=1e-6)
    a, b = 2 * (1 - rho) - s[0], 2 * (1 - rho) - s[0] + 2 * p * rho
    assert abs(p / s[0] - (p - 1) / a - 1 / b) < 0.05 * p / s[0]


def test_distances_are_the_best_of_all():
    rng = np.random.default_rng(3)
    A = rng.standard_normal((12, 6))
    S = np.corrcoef(A.T)

    def entropy(s):
        _, value = np.linalg.slogdet(2 * S - np.diag(s))
        return np.log(s).sum() + value if np.linalg.eigvalsh(2 * S - np.diag(s))[0] > 0 else -np.inf

    s = largest_distances(S)
    assert (s > 0).all() and (s <= 1).all() and np.linalg.eigvalsh(2 * S - np.diag(s))[0] > 0
    others = [entropy(np.clip(s * np.exp(0.3 * rng.standard_normal(6)), 0, 1)) for _ in range(300)]
    assert entropy(s) > max(others) - 1e-3


@pytest.mark.parametrize("fdr", [0.1, 0.2, 0.5])
def test_the_filter_is_that_of_the_paper(fdr):
    rng = np.random.default_rng(4)
    for _ in range(50):
        W = np.round(rng.standard_normal(40) + rng.choice([0, 2], 40), 1)
        fitting = [
            t
            for t in np.abs(W[W != 0])
            if (1 + (W <= -t).sum()) / max(1, (W >= t).sum()) <= fdr + 1e-12
        ]
        expected = np.flatnonzero(W >= min(fitting)) if fitting else []
        assert_array_equal(knockoff_filter(W, fdr), expected)
        # Of one draw the e-values choose the same (Ren and Barber 2024, Section 3).
        assert_array_equal(knockoffs._discoveries(knockoffs._e_values(W, fdr), fdr), expected)


@pytest.mark.parametrize(("rho", "draws"), [(0.0, 1), (0.5, 1), (0.5, 4)])
def test_the_bound_is_held_and_what_is_true_is_found(rho, draws):
    rng, p, found = np.random.default_rng(5), 100, []
    for run in range(20):
        X, y = drawn(400, p, rho, 0.35, rng)
        found.append(
            shares(
                select_by_knockoffs(RunningAverages(p).update(X, y), 0.2, draws, run).support, TRUE
            )
        )
    false, power = np.array(found).T
    assert false.mean() <= 0.2 + 2 * false.std() / np.sqrt(20)
    assert power.mean() > 0.8


def test_of_noise_nothing_is_chosen_but_for_the_allowed_share_of_runs():
    rng, p = np.random.default_rng(6), 30
    some = [
        len(
            select_by_knockoffs(
                RunningAverages(p).update(rng.standard_normal((100, p)), rng.standard_normal(100)),
                0.2,
                random_state=run,
            ).support
        )
        > 0
        for run in range(100)
    ]
    assert np.mean(some) <= 0.2 + 2 * np.sqrt(0.2 * 0.8 / 100)


@pytest.mark.parametrize(("n", "p"), [(3, 1), (13, 5)])
def test_a_false_feature_is_as_often_better_than_its_copy_as_worse(n, p):
    """With as few rows as can be, and two more. (Not so if the penalty knew the features alone.)"""
    rng, won = np.random.default_rng(14), []
    for run in range(600):
        X, y = rng.standard_normal((n, p)), rng.standard_normal(n)
        chosen = select_by_knockoffs(RunningAverages(p).update(X, y), random_state=run)
        won.extend(chosen.statistics[chosen.statistics != 0] > 0)
    assert len(won) > 300 and abs(np.mean(won) - 0.5) < 3.5 * 0.5 / np.sqrt(len(won))


def test_of_one_draw_the_filter_chooses_and_of_several_their_mean_e_values():
    X, y = drawn(400, 100, 0.5, 0.25, np.random.default_rng(15))
    averages, some = RunningAverages(100).update(X, y), []
    for seed in range(5):
        one = select_by_knockoffs(averages, 0.2, random_state=seed)
        assert_array_equal(one.support, knockoff_filter(one.statistics[0], 0.2))
        some.append(len(one.support))
    assert 5 <= min(some) < max(some)
    many = select_by_knockoffs(averages, 0.2, 3, 0)
    expected = [knockoffs._e_values(W, 0.1) for W in many.statistics]
    assert_array_equal(many.e_values, np.mean(expected, axis=0))


def test_units_and_what_is_constant_change_nothing():
    rng = np.random.default_rng(7)
    X, y = drawn(400, 100, 0.5, 0.35, rng)
    chosen = select_by_knockoffs(RunningAverages(100).update(X, y), random_state=0)
    other = np.insert(1e3 * X + 5, 50, 2.0, axis=1)
    again = select_by_knockoffs(RunningAverages(101).update(other, 2 * y), random_state=0)
    assert_array_equal(again.support, chosen.support + (chosen.support >= 50))
    assert again.statistics.shape == (1, 101) and again.e_values[50] == 0


def test_copies_of_rows_have_the_law_that_they_promise():
    rng = np.random.default_rng(8)
    A = rng.standard_normal((5, 5))
    S, mean = A @ A.T + np.eye(5), np.arange(5.0)
    copies = KnockoffCopies(mean, S)
    X = rng.multivariate_normal(mean, S, 200_000)
    both = np.hstack([X, copies.draw(X, 1)])
    D = np.diag(largest_distances(S))
    assert_allclose(both.mean(axis=0), np.tile(mean, 2), atol=0.03)
    assert_allclose(np.cov(both.T), np.block([[S, S - D], [S - D, S]]), atol=0.12)


def test_copies_by_averages_are_those_of_their_covariance():
    rng = np.random.default_rng(16)
    X = rng.standard_normal((50, 3)) @ rng.standard_normal((3, 3)) * [1e-3, 1.0, 50.0] + 7.0
    known = KnockoffCopies(X.mean(axis=0), np.cov(X.T, bias=True)).draw(X, 0)
    learned = KnockoffCopies.from_averages(RunningAverages(3).update(X, X[:, 0])).draw(X, 0)
    assert_allclose(learned - X.mean(axis=0), known - X.mean(axis=0), rtol=1e-6)


@pytest.mark.parametrize("learned", [False, True])
def test_rows_with_copies_show_a_method_what_is_false(learned):
    rng, p, false, power = np.random.default_rng(9), 100, [], []
    S = np.full((p, p), 0.5) + 0.5 * np.eye(p)
    for run in range(10):
        X, y = drawn(2000, p, 0.5, 0.3, rng)
        averages = RunningAverages(p).update(X, y)
        copies = (
            KnockoffCopies.from_averages(averages) if learned else KnockoffCopies(np.zeros(p), S)
        )
        model = SFSARegressor(k=60, random_state=0)
        blocks = ((X[i : i + 500], y[i : i + 500]) for i in range(0, 2000, 500))
        for block in doubled(blocks, copies, run):
            model.partial_fit(*block)
        size = np.abs(model.coef_)
        share, found = shares(knockoff_filter(size[:p] - size[p:], 0.2), TRUE)
        false.append(share)
        power.append(found)
    assert np.mean(false) <= 0.2 + 2 * np.std(false) / np.sqrt(10)
    assert np.mean(power) > 0.6


def test_shuffled_rows_stay_sparse_and_keep_their_columns():
    X = sp.random_array((40, 7), density=0.3, format="csr", rng=np.random.default_rng(0))
    ((both, _, weight),) = doubled([(X, np.arange(40), np.ones(40))], random_state=0)
    assert sp.issparse(both) and both.shape == (40, 14) and len(weight) == 40
    assert_array_equal(both[:, :7].toarray(), X.toarray())
    copies, rows = both[:, 7:].toarray().tolist(), X.toarray().tolist()
    assert copies != rows and sorted(copies) == sorted(rows)


# The estimators


def test_the_model_is_least_squares_on_what_is_chosen():
    X, y = drawn(400, 100, 0.5, 0.35, np.random.default_rng(10))
    model = ofslib.KnockoffsRegressor(random_state=3).fit(X, y)
    chosen = select_by_knockoffs(RunningAverages(100).update(X, y), random_state=3).support
    assert_array_equal(model.support_, chosen)
    Z = np.column_stack([X[:, chosen], np.ones(400)])
    *coef, intercept = np.linalg.lstsq(Z, y, rcond=None)[0]
    assert_allclose(model.coef_[chosen], coef)
    assert_allclose(model.intercept_, intercept)


def test_a_model_of_nothing_says_so():
    rng = np.random.default_rng(11)
    model = ofslib.KnockoffsRegressor(random_state=0)
    model.fit(rng.standard_normal((100, 5)), rng.standard_normal(100))
    with pytest.warns(UserWarning, match="no feature stands out at fdr=0.1") as told:
        assert not model.coef_.any()
    # Some correlation there is: a reason that is not so is not given.
    assert [str(each.message) for each in told][1:] == [
        "KnockoffsRegressor has selected no feature."
    ]


def by_weight(name):
    names = ["weight_equivalence_on_dense_data", "weight_equivalence_on_sparse_data"]
    names += ["weights_list", "weights_not_overwritten"]
    names = [f"check_sample_{word}" for word in names]
    if name.endswith("Classifier"):
        names += ["check_class_weight_classifiers", "check_classifiers_one_label_sample_weights"]
    return dict.fromkeys(names, "weights are refused")


@pytest.mark.filterwarnings("ignore:no feature stands out")
@pytest.mark.parametrize("cls", [ofslib.KnockoffsClassifier, ofslib.KnockoffsRegressor])
def test_scikit_learn_accepts_it(cls):
    kind = "classifiers" if cls.__name__.endswith("Classifier") else "regressors"
    few = {f"check_{kind}_train": "fewer than 1 / fdr features: none is chosen"}
    known = by_weight(cls.__name__) | few
    results = check_estimator(cls(), on_skip=None, on_fail="raise", expected_failed_checks=known)
    assert {r["check_name"] for r in results if r["status"] == "xfail"} == set(known)


# What is not allowed

X, Y = drawn(300, 100, 0.2, 0.3, np.random.default_rng(12))


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda a: select_by_knockoffs(a, 0), "fdr=0 must be"),
        (lambda a: select_by_knockoffs(a, True), "fdr=True must be"),
        (lambda a: select_by_knockoffs(a, draws=0), "draws=0 must be"),
        (lambda a: select_by_knockoffs(a, draws=True), "draws=True must be"),
        (lambda a: knockoff_filter([[1.0]]), "statistics must be finite and of shape"),
        (lambda a: knockoff_filter([np.nan]), "statistics must be finite"),
        (lambda a: KnockoffCopies([0, 0], np.eye(3)), r"covariance must have the shape \(p, p\)"),
        (lambda a: KnockoffCopies([0, 0], [[1, 1], [1, 1]]), "depend on each other linearly"),
        (lambda a: KnockoffCopies([0], [[0]]), "leave out what is constant"),
        (lambda a: KnockoffCopies([0], [[1]]).draw(np.ones((2, 2))), "X must have 1 features"),
        (lambda a: KnockoffCopies([], np.zeros((0, 0))), "p at least 1"),
        (lambda a: KnockoffCopies([0, 0], [[1e-9, 5e-10], [0, 1e-9]]), "must be symmetric"),
        (lambda a: KnockoffCopies([0], [[1j]]), "covariance must be an array of numbers"),
        (lambda a: KnockoffCopies(["a"], [[1]]), "mean must be an array of numbers"),
        (lambda a: KnockoffCopies([0], [[1]]).draw([[np.nan]]), "X must be finite"),
        (lambda a: KnockoffCopies([0], [[1]]).draw([[1]], "a"), "random_state='a' must be"),
        (lambda a: select_by_knockoffs(a, random_state=-1), "random_state=-1 must be"),
        (lambda a: doubled([], random_state="a"), "random_state='a' must be"),
        (lambda a: next(doubled([(np.ones(3), 0)])), "X must be of shape"),
        (lambda a: ofslib.KnockoffsRegressor(adaptation=0.1).fit(X, Y), "adaptation=0.1 must be 0"),
        (
            lambda a: select_by_knockoffs(RunningAverages(100).update(X[:200], Y[:200])),
            "n_samples=200 is too few for knockoffs of 100 features: at least 201",
        ),
        (
            lambda a: select_by_knockoffs(
                RunningAverages(5).update(X[:, [0, 1, 2, 3, 0]], Y),
            ),
            "features depend on each other linearly",
        ),
        (
            lambda a: select_by_knockoffs(RunningAverages(5).update(X[:, :5], Y, 2 * np.ones(300))),
            "sample_weight sums up to 600 for 300 rows",
        ),
        (
            lambda a: ofslib.KnockoffsRegressor().fit(X, Y, sample_weight=2 * np.ones(300)),
            "sample_weight and class_weight must be 1",
        ),
    ],
)
def test_what_is_not_allowed_is_said(call, said):
    with pytest.raises(ValueError, match=said):
        call(RunningAverages(100).update(X, Y))


def test_other_things_than_averages_are_refused():
    with pytest.raises(TypeError, match="averages must be RunningAverages, not ndarray"):
        select_by_knockoffs(X)
    with pytest.raises(TypeError, match="averages must be RunningAverages, not ndarray"):
        KnockoffCopies.from_averages(X)
    with pytest.raises(TypeError, match="copies must be KnockoffCopies or None, not str"):
        doubled([], "x")


def test_units_far_apart_are_no_linear_dependence():
    for scale in ([1.0, 1e-300], [1e300, 1.0]):
        copies = KnockoffCopies([0, 0], np.diag(scale)).draw(np.zeros((2, 2)), 0)
        assert np.isfinite(copies).all() and copies.all()


# What the entry compares with


def test_benjamini_hochberg_is_that_of_the_rows():
    rng = np.random.default_rng(13)
    X, y = drawn(400, 100, 0.5, 0.2, rng)
    Z = np.column_stack([X, np.ones(400)])
    coef, rss, *_ = np.linalg.lstsq(Z, y, rcond=None)
    error = np.sqrt(rss[0] / (400 - 101) * np.diagonal(np.linalg.inv(Z.T @ Z)))
    p = 2 * stats.t.sf(np.abs(coef / error), 400 - 101)[:-1]
    order = np.sort(p)
    last = np.flatnonzero(order <= 0.1 * np.arange(1, 101) / 100).max()
    found = benjamini_hochberg(RunningAverages(100).update(X, y).standardized(), 0.1)
    assert_array_equal(found, np.flatnonzero(p <= order[last]))
