"""The experiments beside the bounds: facts known from the theory, in small."""

import numpy as np
import pytest
from pytest import approx

from ofslib import bounds
from ofslib.bounds import DoesNotApply
from ofslib.studies import annealing, descent, recovery, substitution
from ofslib.studies.curve import point


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
    for curve in ("(3.14), printed", "(3.14), corrected", "exact law"):
        assert by_n["p = 100", curve][3000] == by_p["n = 3,000", curve][100]
    assert by_n["p = 100", "(3.14), printed"][150] is None
    seen, exact = by_n["p = 100", "experiment"], by_n["p = 100", "exact law"]
    for n in (150, 3000):
        assert 0.8 * exact[n] < seen[n] < 1.5 * exact[n]
        assert seen[n] < by_n["p = 100", "(3.12), corrected"][n]


def test_printed_3_12_is_below_the_exact_law_for_many_rows():
    found = heights(recovery.least_squares, {"p": 100}, against="n", values=[300, 10**6], runs=20)
    printed, exact = found["p = 100", "(3.12), printed"], found["p = 100", "exact law"]
    assert printed[300] > exact[300] and printed[10**6] < 0.9 * exact[10**6]


def test_theorem_4_1_holds_and_its_printed_form_fails():
    found = [
        heights(descent.steps_by_length, alpha=0.75, values=[100, T], p=3, runs=20, omega=3)
        for T in (400, 800)
    ]
    panel, fails = "Theorem 4.1, α = 0.75", []
    for curves in found:
        for T, error in curves[panel, "experiment"].items():
            assert error <= curves[panel, "corrected"][T]
            fails.append(error > curves[panel, "printed"][T])
    assert any(fails)


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
    steps = found["Step size of Theorem 2", "printed"]
    assert steps[4] < steps[1] < 0.5
    missed, bound = (found["Theorem 3", c] for c in ("experiment", "printed"))
    assert all(-1e-9 <= missed[x] <= bound[x] for x in missed) and len(bound) == 2


def test_the_step_of_the_law_of_least_squares_is_exact():
    """The exact law of the study is that of `olsth_beta_min` at the probability 1 - 2 / p."""
    found = heights(recovery.least_squares, {"n": 500}, against="p", values=[40], runs=5)
    expected = bounds.olsth_beta_min(500, 40, 4, 1.0, 1.0, 2 / 40, False)
    assert found["n = 500", "exact law"][40] == expected
