"""The experiments beside the bounds: facts known from the theory, in small."""

from itertools import pairwise

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from pytest import approx

from ofslib import BAMDClassifier, BARDAClassifier, bounds
from ofslib.averages import RunningAverages
from ofslib.bounds import DoesNotApply
from ofslib.datasets import Dataset
from ofslib.reproduction import claims, plots
from ofslib.reproduction.theory import (
    annealing,
    budgets,
    descent,
    leverage,
    recovery,
    regret,
    substitution,
)
from ofslib.reproduction.theory.curve import point
from ofslib.wishart import LowRank, sample_averages

matplotlib.use("agg")


def heights(study, data=None, real=None, **parameters):
    """{(panel, curve): {x: height}} of a study with a fixed seed."""
    curves = {}
    seeds = np.random.SeedSequence([7, 7])
    for row in study({"data": data or {}}, seeds, real, **parameters):
        assert (row["note"] is None) == (row["value"] is not None)
        curves.setdefault((row["panel"], row["method"]), {})[row["x"]] = row["value"]
    return curves


def test_a_point_says_why_it_has_no_height():
    def fails():
        raise DoesNotApply("does not apply: p = 3")

    assert point("a", 1, "b", lambda: 2.5)["value"] == 2.5
    assert point("a", 1, "b", 2.5)["note"] is None
    row = point("a", 1, "b", fails)
    assert (row["value"], row["note"]) == (None, "does not apply: p = 3")


def test_least_beta_is_the_edge_of_success():
    errors = np.array([[0.5, -0.2, 0.3, -0.7], [0.0, 0.1, -0.1, 0.2]])
    least = recovery.least_beta(errors, 2)
    assert least == approx(0.7 + 0.2)
    for beta, all_found in ((1.001 * least, True), (0.999 * least, False)):
        size = np.abs(errors + beta * np.array([1, 1, 0, 0]))
        assert np.all(size[:, :2].min(axis=1) > size[:, 2:].max(axis=1)) == all_found


def test_the_grid_of_the_figures_goes_down_by_a_tenth():
    assert recovery.on_grid(0.81, 1.0) == approx(0.81)
    assert recovery.on_grid(0.82, 1.0) == approx(0.9)
    assert recovery.on_grid(0.02, 0.5) / 0.02 < 1 / 0.9


def test_figures_5_2_and_5_3_share_their_points():
    by_n = heights(recovery.least_squares, {"p": 100}, against="n", values=[150, 3000], runs=50)
    by_p = heights(recovery.least_squares, {"n": 3000}, against="p", values=[100], runs=50)
    for curve in ("(3.14), literal", "(3.14), corrected", "exact law, all runs"):
        assert by_n["p = 100", curve][3000] == by_p["n = 3,000", curve][100]
    assert by_n["p = 100", "(3.14), literal"][150] is None
    seen = by_n["p = 100", "experiment"]
    for n in (150, 3000):
        assert seen[n] < by_n["p = 100", "(3.12), corrected"][n]
    # The panel of linear axes has the same points, from 6 to 100 rows a feature
    assert by_n["Linear, p = 100", "experiment"] == {3000: seen[3000]}
    assert not any(panel.startswith("Linear") for panel, _ in by_p)


def test_the_exact_law_is_where_all_runs_of_the_experiment_succeed_in_half_of_the_cases():
    """At the probability of the dots; on a grid of tenths, which only rounds up."""
    ratios = []
    for seed in range(30):
        seeds = np.random.SeedSequence([seed])
        rows = recovery.least_squares(
            {"data": {"p": 50}}, seeds, None, against="n", values=[1000], runs=100
        )
        found = {(row["panel"], row["method"]): row["value"] for row in rows}
        ratios.append(found["Over the law, p = 50", "experiment"])
        law = found["p = 50", "exact law, all runs"]
        assert found["p = 50", "experiment"] / law == approx(ratios[-1])
    assert bounds.olsth_recovery_probability(law, 1000, 50, 5, 1.0, 1.0, False) == approx(
        0.5**0.01, abs=1e-6
    )
    assert 1.0 < np.median(ratios) < 1.12


def test_printed_3_12_is_drawn_literally_and_as_remark_2_has_it():
    """Of standardised features: the eigenvalue is half as large, the coefficients sqrt(2) times."""
    sizes = [6000, 30_000, 10**7]
    found = heights(recovery.least_squares, {"p": 1000}, against="n", values=sizes, runs=5)
    printed, literal, corrected = (
        found["p = 1,000", curve]
        for curve in ("Remark 2, printed", "(3.12), literal", "(3.12), corrected")
    )
    over = found["Over the law, p = 1,000", "Remark 2, printed"]
    assert over[30_000] > 1.3 and over[10**7] < 0.98
    for n in sizes:
        assert printed[n] == approx(np.sqrt(2) * literal[n])
    # The smallest eigenvalue of X'X / n is (1 - sqrt(p / n))^2, nearly: literal is 2 over it.
    assert literal[10**7] == approx(2 * np.sqrt(np.log(1000) / 10**7) / 0.98, rel=0.01)
    # Corrected over printed is 2 sqrt(lambda), and crosses 1 at lambda = 1/4
    assert corrected[6000] < printed[6000] and corrected[30_000] > printed[30_000]
    assert corrected[10**7] / printed[10**7] == approx(2 * np.sqrt(0.98 / 2), rel=0.01)


def test_theorem_4_1_holds_and_its_printed_form_fails():
    found = [
        heights(descent.steps_by_length, alpha=0.9, values=[T], p=3, runs=2, omega=3)
        for T in (9000, 10_000, 11_000, 12_000)
    ]
    panel, fails = "Theorem 4.1, α = 0.9", []
    for curves in found:
        for T, error in curves[panel, "experiment"].items():
            assert error <= curves[panel, "corrected"][T]
            fails.append(error > curves[panel, "printed"][T])
    assert any(fails)


def test_theorem_4_1_is_drawn_with_the_largest_gradient_that_rows_can_have():
    """Not with that of the path. In the mean the noise adds nothing to (1 - 2 eta)^T + eta G^2 / 2;
    G = sqrt(p) (sqrt(p) R + 1) for rows and noise of signs, and R is 1, where the path begins."""
    steps = np.arange(100, 130)
    found = heights(descent.steps_by_length, alpha=0.9, values=steps.tolist(), p=3, runs=2, omega=3)
    bounds_drawn = [*found["Theorem 4.1, α = 0.9", "corrected"].values()]
    eta, G = steps**-0.9, 3 + np.sqrt(3)
    expected = (1 - 2 * eta) ** steps + eta * G**2 / 2
    assert np.mean(bounds_drawn) == approx(np.mean(expected), rel=0.12)


def test_least_coefficient_of_descent_falls_with_more_steps():
    found = heights(descent.steps_by_length, alpha=0.9, values=[100, 3000], p=3, runs=50, omega=3)
    seen = found["Corollary 4.1, α = 0.9", "experiment"]
    needed = found["Corollary 4.1, α = 0.9", "corrected"]
    assert seen[3000] < seen[100] / 2
    assert needed[100] is None and needed[3000] > seen[3000]


def test_what_is_removed_early_is_lost_whatever_theorem_3_prints():
    found = heights(
        annealing.convergence, values=[30_000], p=10, k=1, steps=15, runs=10, fresh=False
    )
    at_once = "Theorem 3, p = 3, removal at once"
    assert found[at_once, "experiment"][80] == approx(0.05)
    assert found[at_once, "printed"][80] < 0.01
    late, bound = (found["Theorem 3, p = 3, removal late", c] for c in ("experiment", "corrected"))
    assert all(late[t] <= bound[t] for t in late)


@pytest.mark.parametrize(("number", "fresh"), [(1, True), (3, False)])
def test_corollaries_1_and_3_are_safe_where_they_apply(number, fresh):
    found = heights(
        annealing.convergence, values=[300, 30_000], p=10, k=1, steps=15, runs=10, fresh=fresh
    )
    needed = found[f"Corollary {number}", "corrected"]
    seen = found[f"Corollary {number}", "experiment"]
    assert needed[300] is None and needed[30_000] > 2 * seen[30_000]
    errors, bound = (found[f"Theorem {number}, p = 10", c] for c in ("experiment", "corrected"))
    assert all(errors[t] <= bound[t] for t in errors) and len(errors) == 15


def test_os_theorems_hold_along_a_run():
    found = heights(substitution.theorems, p=60, workers=[1, 4], steps=[0.3, 0.9])
    for number, variants in ((1, ["printed"]), (2, ["printed", "corrected"])):
        seen = found[f"Theorem {number}", "experiment"]
        assert len(seen) > 5
        for variant in variants:
            assert all(seen[K] <= found[f"Theorem {number}", variant][K] for K in seen)
    steps = found["Step size of Theorem 2", "admissible"]
    assert steps[4] < steps[1] < 0.5
    missed, bound = (found["Theorem 3", c] for c in ("experiment", "printed"))
    assert all(0 <= missed[x] <= bound[x] for x in missed) and len(bound) == 2


def test_the_step_of_the_law_of_least_squares_is_exact():
    """Bounds are divided by `olsth_beta_min` at the probability 1 - 2 / p."""
    found = heights(recovery.least_squares, {"n": 500}, against="p", values=[40], runs=5)
    expected = bounds.olsth_beta_min(500, 40, 4, 1.0, 1.0, 2 / 40, False)
    bound, ratio = (
        found[f"{panel}n = 500", "Remark 2, printed"][40] for panel in ("", "Over the law, ")
    )
    assert bound / ratio == approx(expected, rel=1e-9)


def test_regret_of_least_squares_stays_below_its_bound_and_falls():
    found = heights(regret.least_squares, rows=[100, 1000], sizes=[3000], p=10, k=1, runs=2)
    seen, bound = (found["Proposition 5", c] for c in ("experiment", "corrected"))
    assert all(0 < seen[n] <= bound[n] for n in seen) and seen[1000] < seen[100]
    assert found["Proposition 5", "log(n) / n"][100] == approx(seen[100])


def test_theorem_4_as_printed_falls_below_what_n_0_rows_allow():
    """The features have to be right at 100 log(n) rows already; printed is a threshold in n."""
    sizes = [3000, 10**8]
    found = heights(regret.least_squares, rows=[100], sizes=sizes, p=20, k=2, runs=20)
    needed, printed, corrected = (
        found[regret.FOUND, c] for c in ("experiment", "printed", "corrected")
    )
    assert needed[3000] < printed[3000] and needed[10**8] > printed[10**8]
    assert all(needed[n] < corrected[n] for n in sizes)


def test_the_regret_of_theorem_4_is_of_its_order_although_features_are_lost():
    """Coefficients at the printed threshold, for n = 10^4 to 10^8: excess loss of all rows."""
    p, k, runs, lost, shares = 20, 2, 6, 0, []
    design = LowRank(np.ones(p), np.zeros((p, 1)))
    rng = np.random.default_rng(2)
    for n in (10**4, 10**8):
        promise = bounds.dissertation_theorem_4(n, p, 1.0, 1.0, 1.0, variant="printed")
        truth = np.where(np.arange(p) < k, promise.beta_min, 0.0)
        ends, regret = (
            np.unique(np.geomspace(promise.iterations, n, 25).astype(int)),
            np.zeros(runs),
        )
        for run in range(runs):
            averages = RunningAverages(p)
            for end, after in pairwise([*ends, n]):
                averages.merge(
                    sample_averages(end - averages.n, design, truth, 1.0, "regression", rng)
                )
                S, b = averages.S_xx, averages.S_xy
                kept = np.sort(np.argsort(-np.abs(np.linalg.solve(S, b)))[:k])
                lost += kept.tolist() != [0, 1]
                fit = np.zeros(p)
                fit[kept] = np.linalg.solve(S[np.ix_(kept, kept)], b[kept])
                regret[run] += (after - end) * np.sum((fit - truth) ** 2) / 2
        shares.append(regret.max() / np.log(n) ** 2)
    assert lost > 2
    # For ever without one of them it would be hundreds.
    assert max(shares) < 0.3


def test_leverage_sampling_keeps_the_spectrum():
    found = heights(leverage.sampling, n=4, epsilon=0.9, ridge=0.1, values=[50, 2000], clusters=2)
    assert found["Number of selected features", "experiment"][2000] < 500
    for panel, form in (
        ("Theorem 1", "printed"),
        ("Theorem 2", "printed"),
        ("Number of selected features", "corrected"),
    ):
        seen, bound = (found[panel, c] for c in ("experiment", form))
        assert all(seen[d] <= bound[d] for d in seen)
    lost = found["Theorem 1, orthogonal features", "experiment"]
    assert lost[50] < 0.9 and lost[2000] == approx(1)
    scores = found["Lemma 2", "experiment"]
    assert 4 < scores[50] < scores[2000] < found["Lemma 2", "corrected"][2000]


def test_scores_of_the_study_are_those_of_the_definition():
    A = np.random.default_rng(0).standard_normal((3, 60))
    sampled, seen, scores = leverage._sample(A, 0.9, 1, variant="ridge", ridge=0.1)
    known = sampled[:, : seen[50]]
    exact = 1.9 * A[:, 50] @ np.linalg.solve(known @ known.T + 0.1 * np.eye(3), A[:, 50])
    assert scores[50] == approx(exact) and scores[50] < 1
    assert seen[-1] == sampled.shape[1]


def rows_of_words(n=60, p=30):
    rng = np.random.default_rng(1)
    X = rng.poisson(0.3, (n, p)).astype(float)
    return Dataset("words", X_train=X, y_train=np.where(X[:, 0] > X[:, 1], 2, 1))


@pytest.mark.parametrize("method", [BARDAClassifier, BAMDClassifier])
def test_what_the_barda_study_infers_is_what_was_played(method):
    """Untruncated iterates are inferred from gradients: the truncated ones are parts of them."""
    data = rows_of_words()
    y = np.where(data.y_train == 2, 1.0, -1.0)
    parameters = {"k": 5, "alpha": 0.01, "delta": 0.5, "learning_rate": 0.1}
    run = budgets._Run(method, data.X_train, y, parameters)
    played, kept = run.played, run.played != 0
    assert kept.sum(axis=1).max() == 5 and kept[-1].any()
    assert played[kept] == approx(run.untruncated[kept], rel=1e-9)


def test_barda_theorems_hold_on_a_stream_of_words():
    found = heights(
        budgets.regret,
        None,
        rows_of_words(),
        k=5,
        alpha=0.01,
        learning_rates=[0.1],
        values=[10, 50],
    )
    for panel, applies in (
        ("Theorem 1, B-ARDA, δ = 0.01", False),
        ("Theorem 1, B-ARDA, δ = 10 max |x|", True),
        ("Theorem 2, B-AMD, δ = 0.01", True),
    ):
        seen, bound = (found[panel, c] for c in ("experiment", "corrected"))
        assert (bound[50] is not None) == applies
        assert not applies or all(seen[T] <= bound[T] for T in seen)


def test_the_comparator_is_not_worse_than_the_truth_it_can_reach():
    data = rows_of_words()
    y = np.where(data.y_train == 2, 1.0, -1.0)
    w = budgets._best(data.X_train, y, 2, 0.01)
    truth = np.zeros(30)
    truth[:2] = 1, -1
    assert np.count_nonzero(w) <= 2
    losses = [budgets._losses(data.X_train, y, each, 0.01).sum() for each in (w, truth, 0 * w)]
    assert losses[0] <= min(losses[1:])


def test_the_comparator_is_the_same_in_every_run():
    """scikit-learn draws from numpy's global numbers if it is given no seed."""
    rng, found = np.random.default_rng(1), []
    X = np.tile(rng.poisson(0.3, (300, 600)), 2).astype(float)
    y = np.where(X[:, :20] @ rng.normal(size=20) + 2 * rng.normal(size=300) > 0, 1.0, -1.0)
    before = np.random.get_state()  # noqa: NPY002
    for seed in (0, 1):
        np.random.seed(seed)  # noqa: NPY002
        found.append(budgets._best(X, y, 20, 0.01))
    np.random.set_state(before)  # noqa: NPY002
    assert np.array_equal(*found)


# What the notebook shows of them


def results(**curves):
    rows = [
        {"panel": "a", "x": x, "method": method, "replicate": r, "value": value, "note": None}
        for method, values in curves.items()
        for (x, r), value in values.items()
    ]
    return pd.DataFrame(rows)


def test_verdicts_compare_within_each_run():
    table = results(
        printed={(1, 0): 2.0, (1, 1): 3.0, (10, 0): 1.0, (10, 1): 5.0, (100, 0): np.nan},
        experiment={(1, 0): 1.0, (1, 1): 3.0, (10, 0): 2.0, (10, 1): 1.0, (100, 0): 1.0},
        reference={(1, 0): 0.0},
    )
    table.loc[table["value"].isna(), "note"] = "does not apply: p = 3"
    found = claims.bound_verdicts(table, "experiment").set_index("x")
    assert list(found["verdict"]) == ["holds", "is violated", "does not apply"]
    assert list(found["holds"][:2]) == [1.0, 0.5] and found["ratio"][10] == 0.5
    assert found["note"][100] == "does not apply: p = 3" and set(found["method"]) == {"printed"}


def test_slopes_are_those_of_the_last_decades_with_an_interval():
    rng = np.random.default_rng(2)
    x = [1, 10, 100, 1000]
    heights = {(x, r): x**-0.5 * (1 + 0.01 * rng.normal()) for x in x for r in range(8)}
    heights |= {(1, r): 1e9 for r in range(8)}
    (row,) = claims.bound_slopes(results(experiment=heights)).to_dict("records")
    assert row["low"] < -0.5 < row["high"] and row["high"] - row["low"] < 0.02


def test_shading_names_the_curve_and_what_is_wrong():
    table = results(
        printed={(1, 0): 2.0, (10, 0): 1.0, (100, 0): np.nan},
        experiment={(1, 0): 1.0, (10, 0): 2.0, (100, 0): 1.0},
    )
    _, ax = plt.subplots()
    plots.shade_bounds(ax, claims.bound_verdicts(table, "experiment"))
    assert set(ax.get_legend_handles_labels()[1]) == {
        "printed: does not apply",
        "printed: is violated in some run",
    }
    # From and to the middles between the points, on a logarithmic axis.
    spans = {p.get_label(): (p.get_x(), p.get_x() + p.get_width()) for p in ax.patches}
    assert len(ax.patches) == 2
    assert spans["printed: is violated in some run"] == approx((10**0.5, 10**1.5))
    assert spans["printed: does not apply"] == approx((10**1.5, 100))
    plt.close()


def test_moments_of_mini_batches_are_about_zero_not_about_their_mean():
    """Of two rows: the diagonal has the law of chi^2_2 / 2, where about the mean it is halved."""
    squares, noise = annealing._moments(2, 3, 4000, np.random.default_rng(0))
    diagonal = squares[:, range(3), range(3)]
    assert np.abs(diagonal.mean(axis=0) - 1.0).max() < 5 * diagonal.std() / np.sqrt(4000)
    assert diagonal.var() == approx(1.0, rel=0.15)
    assert np.abs(noise.mean(axis=0)).max() < 5 * noise.std() / np.sqrt(4000)
    assert noise.var() == approx(0.5, rel=0.1)
