"""The experiments beside the bounds: facts known from the theory, in small."""

import numpy as np
import pytest
from pytest import approx

from ofslib import BAMDClassifier, BARDAClassifier, bounds
from ofslib.datasets import Dataset
from ofslib.reproduction.theory import budgets, leverage, limits, recovery, steps, substitution


def heights(study, data=None, seed=7, setting=None, **parameters):
    """{(panel, curve): {x: height}} of a study."""
    curves = {}
    for row in study(setting or {}, np.random.SeedSequence([seed]), data, **parameters):
        assert (row["note"] is None) == (row["value"] is not None)
        curves.setdefault((row["panel"], row["method"]), {})[row["x"]] = row["value"]
    return curves


def test_the_exact_law_is_where_all_runs_of_the_experiment_succeed_in_half_of_the_cases():
    """At the probability of the dots; on a grid of tenths, which only rounds up."""
    ratios, own = [], {"setting": {"data": {"p": 50}}, "against": "n", "values": [1000]}
    for seed in range(30):
        found = heights(recovery.least_squares, seed=seed, runs=100, **own)
        ratios.append(found["Over the law, p = 50", "experiment"][1000])
        law = found["p = 50", "exact law, all runs"][1000]
        assert found["p = 50", "experiment"][1000] / law == approx(ratios[-1])
    found = bounds.olsth_recovery_probability(law, 1000, 50, 5, 1.0, 1.0, False)
    assert found == approx(0.5**0.01, abs=1e-6)
    assert 1.0 < np.median(ratios) < 1.12


_RNG = np.random.default_rng(1)
COUNTS = _RNG.poisson(0.3, (60, 30)).astype(float)
WORDS = Dataset("words", COUNTS, np.where(COUNTS[:, 0] > COUNTS[:, 1], 2, 1))
# Study, data, parameters, panels with curves that are above the experiment, and that are not
STUDIES = {
    "os": (
        substitution.theorems, None, {"p": 60, "workers": [1, 4], "steps": [0.3, 0.9]},
        [("Theorem 1", "printed"), ("Theorem 2", "printed"), ("Theorem 2", "corrected"),
         ("Theorem 3", "printed")],
        [("Step size of Theorem 2", "admissible")],
    ),
    "ofs": (
        leverage.sampling, None,
        {"n": 4, "epsilon": 0.9, "ridge": 0.1, "values": [50, 2000], "clusters": 2},
        [("Theorem 1", "printed"), ("Theorem 2", "printed"), ("Lemma 2", "corrected"),
         ("Number of selected features", "corrected")],
        [("Theorem 1, orthogonal features", "printed")],
    ),
    "barda": (
        budgets.regret, WORDS,
        {"k": 5, "alpha": 0.01, "learning_rates": [0.1], "values": [10, 50]},
        [("Theorem 1, B-ARDA, δ = 10 max |x|", "corrected"),
         ("Theorem 2, B-AMD, δ = 0.01", "corrected")],
        [("Theorem 1, B-ARDA, δ = 0.01", "corrected")],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", STUDIES)
def test_theorems_hold_beside_their_experiments(name):
    study, data, parameters, hold, fail = STUDIES[name]
    found = heights(study, data, **parameters)
    for panel, curve in hold:
        seen, bound = found[panel, "experiment"], found[panel, curve]
        assert len(bound) > 1 and all(seen[x] <= bound[x] for x in seen)
    for panel, curve in fail:
        last = max(found[panel, curve])
        bound = found[panel, curve][last]
        assert bound is None or bound < found[panel, "experiment"][last]


@pytest.mark.parametrize("method", [BARDAClassifier, BAMDClassifier])
def test_what_the_barda_study_infers_is_what_was_played(method):
    """Untruncated iterates are inferred from gradients: the truncated ones are parts of them."""
    y = np.where(WORDS.y_train == 2, 1.0, -1.0)
    parameters = {"k": 5, "alpha": 0.01, "delta": 0.5, "learning_rate": 0.1}
    run = budgets._Run(method, WORDS.X_train, y, parameters)
    played, kept = run.played, run.played != 0
    assert kept.sum(axis=1).max() == 5 and kept[-1].any()
    assert played[kept] == approx(run.untruncated[kept], rel=1e-9)


def test_the_study_of_limits_has_every_curve_above_the_floor():
    sizes = {"against": "n", "fixed": 20, "values": [22, 500], "runs": 15}
    found = heights(limits.recovery, seed=4, **sizes)
    floor = found["p = 20", "information floor"][500]
    for name in ("OFSA", "Lasso", "MCP", "SFSA", "SGDT", "OLSth"):
        height = found["p = 20", name][500]
        assert height > 0.8 * floor, name  # which 15 runs tell so well
        assert found["Over the floor, p = 20", name][500] == approx(height / floor)
    assert found["p = 20", "SFSA"][22] is None


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
