"""What a scale will cost: the work of a setting by hand, rates from times that are known."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import shipped
import small_project
from scipy import sparse

from ofslib._files import write_whole
from ofslib.reproduction import archive, experiment, papers, plan, project, provenance


@pytest.fixture
def place(tmp_path, monkeypatch):
    small_project.build(tmp_path)
    monkeypatch.chdir(tmp_path)
    archive._digest.cache_clear()
    return tmp_path


def test_the_work_of_a_simulated_setting_by_hand():
    """Rows of 20 numbers: ten times 300 for SFSA, three times for OPG with two parameters."""
    sweep = {"l1": [1.0, 2.0]}
    spec = {
        "experiment": "one",
        "name": "x",
        "study": {},
        "data": {"simulate": "equicorrelated", "n": 300, "p": 20},
        "methods": {
            "SFSA": {"class": "SFSAClassifier"},
            "OPG": {"class": "OPGClassifier", "replicates": 3, "sweep": sweep},
        },
        "replicates": 10,
        "sweep": {},
        "tune": {},
        "passes": 1,
    }
    assert plan.work_of(spec) == {
        "start": 1,
        "fit": 10 + 6,
        "SFSAClassifier on dense rows": 10 * 300 * 20,
        "OPGClassifier on dense rows": 3 * 2 * 300 * 20,
        "rows of equicorrelated": 10 * 300 * 20,
    }
    averages = plan.work_of(spec | {"data": spec["data"] | {"averages": "sampled"}})
    assert averages["averages"] == averages["SFSAClassifier on averages"] == 10 * 20**2
    study = plan.work_of(spec | {"study": {"function": "a:b"}})
    assert study == {"start": 1, "one x": 10}


def test_passes_are_those_of_the_run():
    """Of data in memory, from the numbers of the registry: as the run counts them in its data."""
    data = shipped.ROOT, sparse.random(50, 400, 0.1, "csr", rng=np.random.default_rng(0))
    row = {"train_nonzeros": data[1].nnz, "n_train": 50, "n_features": 400}
    for asked in (3, "2d/n"):
        for cap in (None, 9000.0, 100.0):
            spec = {"passes": asked, "run_values": cap, "tune_values": 100.0, "study": {}}
            spec |= {"data": {"dataset": "x"}, "sweep": {}, "tune": {}, "replicates": 4}
            spec |= {"methods": {"OFS": {"class": "OFSClassifier"}}}
            held = type("Data", (), {"X_train": data[1]})
            passes = experiment.number_of_passes(spec, held, cap)
            work = plan.work_of(spec, row)["OFSClassifier on sparse rows in memory"]
            assert work == pytest.approx(4 * passes * data[1].nnz)


def test_rates_are_found_again():
    """Times that follow from rates, with noise of a tenth; methods that always run together too."""
    rng = np.random.default_rng(0)
    true = {"start": 3.0, "A on dense rows": 2e-9, "B on dense rows": 5e-8, "one x": 7.0}
    works = []
    for _ in range(60):
        values = 10.0 ** rng.uniform(7, 10)
        work = {"start": 1.0, "A on dense rows": values, "B on dense rows": values / 10}
        works.append(work | ({"one x": float(rng.integers(1, 9))} if rng.random() < 0.3 else {}))
    took = [plan.seconds(work, true) * rng.lognormal(0, 0.1) for work in works]
    known = [
        plan.Measured(f"{i}", t, 0, w) for i, (t, w) in enumerate(zip(took, works, strict=True))
    ]
    rate = plan.rates(known)
    for scale in (1e8, 1e11):
        work = {"start": 1.0, "A on dense rows": scale, "B on dense rows": scale / 10}
        assert plan.seconds(work, rate) == pytest.approx(plan.seconds(work, true), rel=0.15)
    factor, ratio = plan.errors(known)
    assert 1.03 < factor < 1.15 and ratio == pytest.approx(1, abs=0.1)
    new = {"C on dense rows": 1e9}
    assert plan.is_known(new, rate) and plan.seconds(new, rate) > 0, "as others on such rows"
    assert not plan.is_known({"two x": 1.0}, rate)


def test_the_plan_says_what_is_there_and_what_is_not_known(place):
    with pytest.raises(ValueError, match="says what a run takes: run a part first"):
        papers.planned(project.load(scale="paper"))
    small_project.make_all("paper")
    rows, known = plan.plan(project.load(scale="paper"))
    assert [(row["entry"], row["settings"], row["here"]) for row in rows] == [
        ("one", 2, 2),
        ("two", 1, 1),
    ]
    assert len(known) == 3 and all(row["left_hours"] == 0 for row in rows)
    assert sum(row["core_hours"] for row in rows) == pytest.approx(3 / 3600, rel=0.1)
    assert {row["memory_mb"] for row in rows} == {200}
    Path("results/paper/one/100.csv").unlink()
    lines, said = papers.planned(project.load(scale="paper"))
    assert said["total"]["here"] == 2 and said["total"]["left_hours"] > 0
    assert any(line.split()[:3] == ["one", "2", "1"] for line in lines)
    shutil.rmtree("results/paper/two")
    (row,) = [r for r in plan.plan(project.load(scale="paper"))[0] if r["entry"] == "two"]
    assert row["unknown"] == 1, "rows in memory were not measured"


def test_times_of_figures_that_came_with_the_checkout_count(place):
    took = {f"results/smoke/one/100{end}": [50.0, 300] for end in (".csv",)}
    took |= {"results/paper/two/ecml18-dexter.csv": [20.0, 400]}
    facts = {"scale": "smoke", "commit": "c", "date": "d", "with": {}, "missing": {}, "took": took}
    write_whole("stamp", json.dumps(facts))
    provenance.update("figures/PROVENANCE.json", {"one": "stamp"})
    known = plan.measured(project.load())
    assert {one.file: one.seconds for one in known} == {f: t for f, (t, _) in took.items()}


def test_the_committed_plan_counts_every_entry_with_runs(monkeypatch):
    monkeypatch.chdir(shipped.ROOT)
    work = project.load(scale="paper")
    rows, known = plan.plan(work)
    assert [row["entry"] for row in rows] == [e for e in work.entries if work.entries[e].to_run]
    factor, ratio = plan.errors(known)
    assert len(known) > 100 and factor < 1.5 and 0.5 < ratio < 2
