"""What `python -m benchmarks` writes down, and docs/performance.md, which is made of it."""

import json
import re
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import yaml

import benchmarks.__main__ as command
from benchmarks import batch, limits, measure
from benchmarks.measure import Method
from ofslib.reproduction import peers, performance

ROOT = Path(__file__).parents[1]
SIZES = yaml.safe_load((ROOT / "benchmarks/sizes.yaml").read_text(encoding="utf-8"))


def test_each_case_has_its_sizes_at_each_scale_and_its_table():
    for scale in SIZES.values():
        assert list(scale) == list(command.CASES) == list(performance.TABLES)


def turns(costs, case="select", **more):
    """Lines of two turns, the second twice as slow as the first; each has 10 values."""
    return pd.DataFrame(
        [
            {"case": case, "method": name, "turn": turn, "values": 10.0}
            | {"cpu_s": cost * turn, "wall_s": 3 * cost * turn}
            | more
            for name, cost in costs.items()
            for turn in (1, 2)
        ]
    )


def test_a_ratio_is_to_the_reference_of_the_same_turn_by_the_clock():
    """What has threads of its own, as Vowpal Wabbit's parser, takes more of the processors."""
    lines = turns({"ofslib select": 3.0, "Vowpal Wabbit coin": 2.0})
    lines.loc[lines["method"] == "Vowpal Wabbit coin", "cpu_s"] *= 6  # twice the clock
    table = performance.compared(lines, "select")
    assert table["method"].tolist() == ["Vowpal Wabbit coin", "ofslib select"]
    assert table["median"].tolist() == table["low"].tolist() == table["high"].tolist()
    assert table["median"].tolist() == pytest.approx([1.0, 1.5])
    # ns per value of the median turn
    assert table["cost"].tolist() == pytest.approx([0.9e9, 1.35e9])
    text = performance.markdown(with_sizes(lines, "select", turns=2), "select")
    assert "| Vowpal Wabbit coin (2.0 processors) |" in text and "| ofslib select |" in text


def with_sizes(results, case, **sizes):
    facts = {"case": performance.FACTS, "method": f"sizes of {case}", "note": json.dumps(sizes)}
    return pd.concat([results, pd.DataFrame([facts])])


def test_the_committed_results_are_of_the_methods_that_are_measured_today():
    """But for their sizes; those of `compile` stand in sizes.yaml."""
    results = performance.read(ROOT / performance.RESULTS)
    for case in set(command.CASES) - {"compile"}:
        own = {name: value for name, value in SIZES["smoke"][case].items() if name != "turns"}
        try:
            today = {re.sub(r"\d+", "#", method.name) for method in command.CASES[case](**own)}
        finally:
            measure.remove_scratch()
        names = results.loc[results["case"] == case, "method"]
        assert set(names.str.replace(r"\d+", "#", regex=True)) == today, case


def test_a_peer_that_is_missing_is_a_line_that_says_so(monkeypatch):
    here = Method("Vowpal Wabbit coin", lambda: lambda: None, 1.0)
    absent = Method("ofslib select", lambda: lambda: None, 1.0, needs="no_such_module")
    lines = list(measure.turns([here, absent], 2))
    assert lines[0] == {"method": "ofslib select", "note": "no_such_module is not installed"}
    assert [line["turn"] for line in lines[1:]] == [1, 2]
    results = pd.DataFrame([{"case": "select", **line} for line in lines])
    text = performance.markdown(with_sizes(results, "select", rows=5, turns=2), "select")
    assert "rows = 5; 2 turns." in text
    assert "| ofslib select | no_such_module is not installed |" in text


def test_methods_take_turns_and_what_prepares_them_is_not_timed():
    seen = []

    def method(name, **own):
        def make():
            seen.append(f"make {name}")
            return lambda: seen.append(name) or name

        return Method(name, make, 1.0, lambda result: {"score": len(result)}, **own)

    lines = list(measure.turns([method("a"), method("bb"), method("once", turns=1)], 3))
    runs = seen[1::2]
    assert seen[::2] == [f"make {name}" for name in runs]
    assert sorted(runs) == ["a"] * 4 + ["bb"] * 4 + ["once"]
    # One of each before any has its next turn
    plain = [name for name in runs if name != "once"]
    assert all(sorted(plain[i : i + 2]) == ["a", "bb"] for i in range(0, 8, 2))
    scores = {line["method"]: line["score"] for line in lines if "score" in line}
    assert (scores, len(lines)) == ({"a": 1, "bb": 2, "once": 4}, 7)


def test_a_program_is_measured_by_itself():
    busy = "total = 0\nfor i in range(3_000_000): total += i\nkept = bytearray(50_000_000)"
    idle, usage = measure.program("pass"), measure.program(busy)
    assert usage.cpu_s > idle.cpu_s
    if sys.platform == "linux":
        assert 40 < usage.mb - idle.mb < 60  # and nothing of the memory of this process
    with pytest.raises(RuntimeError, match="status"):
        measure.program("raise SystemExit(3)")


def test_the_bare_loops_are_stochastic_gradient_descent():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((50, 7)), rng.standard_normal(50)
    w = np.zeros(7)
    for x, target in zip(X, y, strict=True):
        w += 0.01 * (target - w @ x) * x
    assert limits.bare_loop(X, y, 0.01)() == pytest.approx(w)
    assert limits.bare_loop(sp.csr_matrix(X), y, 0.01)() == pytest.approx(w)
    assert limits.read(X.ravel()) == pytest.approx(X.sum())


def test_the_command_measures_a_case_and_writes_it_down(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    command.main(["leverage", "--scale", "smoke", "--out", "out.csv"])
    results = performance.read(Path("out.csv"))
    assert set(results["case"]) == {"leverage", performance.FACTS}
    said = performance.facts(results)
    assert said["scale"] == "smoke" and re.match(r"\d{4}-\d\d-\d\dT", said["date"])
    assert json.loads(said["sizes of leverage"]) == SIZES["smoke"]["leverage"]
    assert {"numba", "machine", "blas", "python-glmnet"} <= {*said}
    with pytest.raises(SystemExit):
        command.main(["no_case"])


def test_peers_that_are_locked_are_pinned_alike():
    pinned = (ROOT / "benchmarks/requirements.txt").read_text(encoding="utf-8")
    lock = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    known = re.findall(r"^([\w-]+==\S+)", pinned, re.M)
    locked = {f"{name}==" for name in re.findall(r"^([\w-]+)==", lock, re.M)}
    for line in known:
        name = line.partition("==")[0] + "=="
        assert name not in locked or re.search(rf"^{re.escape(line)}\s", lock, re.M), line


@pytest.mark.parametrize("cls", ["RiverClassifier", "VowpalWabbitClassifier"])
def test_peers_learn_the_same_from_sparse_rows_and_from_examples_made_before(cls):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 5))
    y, known = np.where(X[:, 0] > 0, 1.0, -1.0), {"classes": [-1.0, 1.0]}
    own = {"model": "LogisticRegression"} if cls == "RiverClassifier" else {}
    dense, sparse, before = (getattr(peers, cls)(k=3, **own) for _ in range(3))
    dense.partial_fit(X, y, **known)
    sparse.partial_fit(sp.csr_matrix(X), y, **known)
    targets = y > 0 if cls == "RiverClassifier" else y
    before.p = 5
    before.learn(list(before.examples(X, targets)))
    assert (dense.coef_ != 0).sum() == 3
    assert (dense.coef_ == sparse.coef_).all() and (dense.coef_ == before.coef_).all()


def test_what_is_found_is_a_share_of_all_true_features():
    """Not of those that a method keeps: one true feature alone is no complete answer."""
    chosen, coef = measure.largest(np.array([0.0, 3.0, 0.0, -4.0, 0.5]), 2)
    assert chosen.tolist() == [3, 1] and coef[4] == 0.5
    alone, _ = measure.largest(np.array([0.0, 3.0, 0.0, 0.0, 0.0]), 2)
    assert alone.tolist() == [1]  # a coefficient of 0 keeps nothing
    true = np.array([1, 3, 0, 2])
    assert (measure.found(chosen, true), measure.found(alone, true)) == (50.0, 25.0)


def test_the_duality_gap_is_zero_at_the_solution_of_the_lasso_only():
    """Of orthogonal columns with |x|^2 = n it is soft thresholding of X'y / n."""
    rng = np.random.default_rng(0)
    X = np.linalg.qr(rng.standard_normal((50, 6)))[0] * np.sqrt(50)
    y, alpha = rng.standard_normal(50) + X[:, 0], 0.1
    moments = X.T @ y / 50
    solution = np.sign(moments) * np.maximum(np.abs(moments) - alpha, 0.0)
    assert batch._duality_gap(X, y, alpha, solution) == pytest.approx(0.0, abs=1e-12)
    assert batch._duality_gap(X, y, alpha, 0.9 * solution) > 1e-4
    assert batch._duality_gap(X, y, 1.1 * alpha, solution) > 1e-4
