"""The experiments beside the bounds: facts known from the theory, in small."""

import numpy as np
import pytest
from pytest import approx

from ofslib import BAMDClassifier, BARDAClassifier, bounds
from ofslib.datasets import Dataset
from ofslib.reproduction.theory import (
    budgets,
    leverage,
    limits,
    recovery,
    steps,
    substitution,
)


def heights(study, data=None, real=None, **parameters):
    """{(panel, curve): {x: height}} of a study with a fixed seed."""
    curves = {}
    seeds = np.random.SeedSequence([7, 7])
    for row in study({"data": data or {}}, seeds, real, **parameters):
        assert (row["note"] is None) == (row["value"] is not None)
        curves.setdefault((row["panel"], row["method"]), {})[row["x"]] = row["value"]
    return curves


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


def test_the_study_has_every_curve_above_the_floor():
    sizes = {"against": "n", "fixed": 20, "values": [22, 500], "runs": 15}
    rows = list(limits.recovery({}, np.random.SeedSequence(4), None, **sizes))
    found = {(row["method"], row["x"]): row for row in rows if row["panel"] == "p = 20"}
    curves = {name for name, _ in found}
    assert curves >= {"OFSA", "Lasso", "MCP", "SFSA", "SGDT", "OLSth", "information floor"}
    floor = found["information floor", 500]["value"]
    for name in curves - {"information floor"}:
        assert found[name, 500]["value"] > 0.8 * floor, name  # which 15 runs tell so well
    over = [row for row in rows if (row["method"], row["x"]) == ("OFSA", 500)]
    assert over[1]["panel"] == "Over the floor, p = 20"
    assert over[1]["value"] == approx(over[0]["value"] / floor)
    missing = found["SFSA", 22]
    assert missing["value"] is None and "not found in half of the runs" in missing["note"]


def test_a_step_that_diverges_finds_nothing():
    sizes = {"n": 500, "p": 20, "rates": [0.01, 1.5], "shares": [0.5]}
    rows = list(steps.descent({}, np.random.SeedSequence(0), None, correlation=0.5, **sizes))
    found = {(row["x"], row["method"]): row for row in rows}
    assert "not found in this run" in found[1.5, "SGDT"]["note"]
    assert "grows" in found[1.5, "SGDT, law"]["note"]
    assert found[0.01, "SGDT"]["value"] > 0


def test_bisection_finds_where_a_method_begins_to_succeed():
    truth = np.array([True, False])
    found = limits.least_found(lambda beta: truth * (beta > 0.37), truth, 0.1)
    assert 0.37 < found < 0.37 * limits.ACCURACY
    assert limits.least_found(lambda beta: ~truth, truth, 0.1) == np.inf
