"""What a scale will cost: the work of a setting by hand, rates from times that are known."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import shipped
import small_project
import yaml
from scipy import sparse

from ofslib._files import write_whole
from ofslib.reproduction import archive, experiment, papers, plan, project, provenance, records

FACTS = {"scale": "paper", "commit": "c", "date": "d", "with": {}, "missing": {}}


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
    assert averages["averages"] == 10 * 20**2
    assert averages["SFSAClassifier on averages"] == 10 * 20**2.5
    study = plan.work_of(spec | {"study": {"function": "a:b"}})
    assert study == {"start": 1, "one x": 10}
    # All penalties of a k at once, a tenth of a model each
    many = plan.work_of(spec | {"data": spec["data"] | {"k": 4}})
    assert many["OPGClassifier on dense rows"] == 3 * 2 * 300 * 20 * 200 / 10
    assert many["SFSAClassifier on dense rows"] == 10 * 300 * 20
    row = {"n_train": 400, "n_features": 50}
    study = spec | {"study": {"function": "a:b"}, "run_values": 5000}
    assert plan.work_of(study, row) == {"start": 1, "one x": 10 / 4}
    assert plan.work_of(study | {"run_values": None}, row) == {"start": 1, "one x": 10}


def test_passes_are_those_of_the_run():
    """Of data in memory, from the numbers of the registry: as the run counts them in its data."""
    data = shipped.ROOT, sparse.random(50, 400, 0.1, "csr", rng=np.random.default_rng(0))
    row = {"train_nonzeros": data[1].nnz, "n_train": 50, "n_features": 400}
    for asked in (3, "2d/n"):
        for cap in (None, 9000.0, 100.0):
            spec = {"passes": asked, "run_values": cap, "tune_values": 100.0, "study": {}}
            spec |= {"data": {"dataset": "x"}, "sweep": {}, "tune": {}, "replicates": 4}
            spec |= {"methods": {"OFS": {"class": "FOFSClassifier"}}}
            held = type("Data", (), {"X_train": data[1]})
            passes = experiment.number_of_passes(spec, held, cap)
            work = plan.work_of(spec, row)["FOFSClassifier on sparse rows in memory"]
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
    factor, ratio = plan.errors(known, [])
    assert 1.03 < factor < 1.15 and ratio == pytest.approx(1, abs=0.1)
    alike = [{"A on dense rows": v, "B on dense rows": v, "start": 1.0} for v in (1e8, 1e9, 4e9)]
    known = [plan.Measured(f"{i}", plan.seconds(w, true), 0, w) for i, w in enumerate(alike)]
    times = [plan.Measured("t", 2e-9 * v, 0, {"A on dense rows": v}) for v in (1e7, 1e8)]
    told = plan.rates(known, times)
    for kind in alike[0]:
        assert told[kind] == pytest.approx(true[kind], rel=0.1), "one is told by its own times"
    assert plan.rates(known)["A on dense rows"] > 5 * true["A on dense rows"]
    new = {"C on dense rows": 1e9}
    assert plan.is_known(new, rate) and plan.seconds(new, rate) > 0, "as others on such rows"
    assert not plan.is_known({"two x": 1.0}, rate)


def test_the_plan_says_what_is_there_and_what_is_not_known(place):
    with pytest.raises(ValueError, match="says what a run takes: run a part first"):
        papers.planned(project.load(scale="paper"))
    small_project.make_all("paper")
    rows, known, _ = plan.plan(project.load(scale="paper"))
    assert [(row["entry"], row["runs"], row["here"]) for row in rows] == [
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


@pytest.mark.parametrize("state", ["fetched", "never tried for", "not fetched"])
def test_what_needs_data_that_cannot_be_had_is_told_apart(place, state):
    """By the record of the last try to fetch them."""
    small_project.make_all("paper")
    (file, setting) = list(archive.results(project.load(scale="paper")))[-1]
    small_project.make(file, setting, cpu_s=3600.0)
    write_whole("stamp", json.dumps(FACTS | {"took": {file: [3600.0, 200]}}))
    provenance.update("figures/PROVENANCE.json", {"two": "stamp"})
    shutil.rmtree("results/paper/two")
    record = Path(records.path("ecml18_dexter"))
    record.unlink()
    if state != "never tried for":
        gone = {"reason": "offline", "detail": ""} if state == "not fetched" else {}
        records.write({"name": "ecml18_dexter", "status": state, **gone})
    lines, said = papers.planned(project.load(scale="paper"))
    (two,) = [row for row in said["entries"] if row["entry"] == "two"]
    hours, lacking = two["core_hours"], state == "not fetched"
    assert (two["runs"], two["here"]) == (1, 0) and two["left_hours"] == hours
    assert (hours, two["without_data"])[:: -1 if lacking else 1] == pytest.approx((1, 0), abs=0.01)
    assert said["total"]["missing"] == two["missing"] == ["ecml18_dexter"] * lacking
    assert said["total"]["left_hours"] == hours
    note = "Not counted: 1.00 core hours that need data which cannot be had here: ecml18_dexter."
    assert (note in lines) == lacking and any("Not counted" in line for line in lines) == lacking


def test_results_that_come_with_the_checkout_are_not_still_to_run(place):
    small_project.make_all("paper")
    work = project.load(scale="paper")
    Path("figures").mkdir()
    archive.pack(work, archive.shipped(work))
    Path("results/paper/one/100.csv").unlink()
    shutil.rmtree("results/paper/two")
    write_whole("stamp", json.dumps(FACTS | {"took": {"results/paper/one/100.csv": [60.0, 200]}}))
    provenance.update("figures/PROVENANCE.json", {"one": "stamp"})
    records.write({"name": "ecml18_dexter", "status": "not fetched", "reason": "r", "detail": ""})
    note = "Nor still to run: 2 results that come with the checkout, which ofslib papers --unpack "
    lines, said = papers.planned(work)
    assert note + "takes." in lines
    total = said["total"]
    assert (total["here"], total["shipped"], total["missing"]) == (1, 2, [])
    assert total["left_hours"] == total["without_data"] == 0
    lines, said = papers.planned(project.load(scale="smoke"))
    assert said["total"]["shipped"] == 0 and not any("Nor still" in line for line in lines)
    with Path(provenance.NOTEBOOK).open("a") as file:
        file.write("\n")
    archive._digest.cache_clear()
    _, said = papers.planned(work)
    assert said["total"]["shipped"] == 0, "made by another notebook"


def test_a_run_that_is_here_or_comes_along_counts_with_what_it_took(place):
    """The rates take two like runs of very different times to be alike."""
    small_project.make_all("paper")
    work = project.load(scale="paper")
    (first, setting), (second, _), *_ = archive.results(work)
    small_project.make(first, setting, cpu_s=7200.0)

    def hours():
        return {row["entry"]: row["core_hours"] for row in plan.plan(work)[0]}["one"]

    assert hours() == pytest.approx((7200 + 1) / 3600)
    Path("figures").mkdir()
    archive.pack(work, archive.shipped(work))
    write_whole("stamp", json.dumps(FACTS | {"took": {first: [7200.0, 200], second: [1.0, 200]}}))
    provenance.update("figures/PROVENANCE.json", {"one": "stamp"})
    shutil.rmtree("results/paper/one")
    assert hours() == pytest.approx((7200 + 1) / 3600)
    Path(archive.shipped(work)).unlink()
    assert hours() != pytest.approx((7200 + 1) / 3600, rel=0.01), "neither: at the rates"


def test_what_a_run_took_tells_of_its_own_work_not_of_the_setting_as_it_is_now(place):
    small_project.make_all("paper")
    before = {one.file: one.work for one in plan.measured(project.load())}
    entries = yaml.safe_load(Path("config/experiments/tiny.yaml").read_text())
    entries["one"]["data"]["p"] *= 50
    small_project.write(place, entries)
    assert {one.file: one.work for one in plan.measured(project.load())} == before


def test_a_damaged_archive_of_the_checkout_is_said_and_not_counted(place):
    small_project.make_all("paper")
    work = project.load(scale="paper")
    archive.pack(work, archive.shipped(work))
    assert archive.to_be_had(work)
    write_whole(archive.shipped(work), b"half of it")
    with pytest.warns(UserWarning, match=r"results-paper\.zip is no whole archive .* not counted"):
        rows, _, _ = plan.plan(work)
    assert rows and not any(row["shipped"] for row in rows)


def test_times_of_figures_that_came_with_the_checkout_count(place):
    took = {f"results/smoke/one/100{end}": [50.0, 300] for end in (".csv",)}
    took |= {"results/paper/two/ecml18-dexter.csv": [20.0, 400]}
    facts = {"scale": "smoke", "commit": "c", "date": "d", "with": {}, "missing": {}, "took": took}
    write_whole("stamp", json.dumps(facts))
    provenance.update("figures/PROVENANCE.json", {"one": "stamp"})
    known = plan.measured(project.load())
    assert {one.file: one.seconds for one in known} == {f: t for f, (t, _) in took.items()}
    lacking = facts | {"scale": "paper", "missing": {"ecml18_dexter": "not fetched"}, "took": {}}
    write_whole("stamp", json.dumps(lacking))
    provenance.update("figures/PROVENANCE.json", {"two": "stamp"})
    known = plan.measured(project.load())
    assert [one.file for one in known] == ["results/smoke/one/100.csv"], "one took no time"
    small_project.make_all("paper")
    known = {one.file for one in plan.measured(project.load())}
    assert "results/paper/two/ecml18-dexter.csv" in known, "run here since, with the data set"


def test_learning_times_of_results_and_else_of_figures_tell_of_single_methods(place):
    methods = {"SFSA": {"class": "SFSAClassifier"}, "OLSth": {"class": "OLSthClassifier"}}
    methods["RAVE"] = {"class": plan.SUMS, "timed": "only", "replicates": 1}
    entry = {"source": "Doe", "title": "A table", "form": "table", "notebook": "recovery_table"}
    entry |= {"methods": methods, "metrics": ["DR"], "readings": {"plain": {"note": "."}}}
    entry |= {"time": "plain", "grid": {"n": [100, 200]}, "test_rows": None}
    data = {"simulate": "equicorrelated", "task": "classification", "p": 20, "k": 2}
    small_project.write(place, {"one": entry | {"data": data | {"averages": "sampled"}}})
    rows = ["reading,n,method,replicate,metric,value", "plain,100,OLSth,0,time_s,0.25"]
    rows += ["plain,100,OLSth,1,time_s,0.75", "plain,100,RAVE,0,time_s,3"]
    rows += ["plain,100,another,0,time_s,9"]
    Path("results/standard/one").mkdir(parents=True)
    Path("results/standard/one/plain_100.time.csv").write_text("\n".join(rows))
    shown = ["reading,n,method,metric,ours,replicates", "plain,100,OLSth,time_s,7,3"]
    shown += ["plain,200,OLSth,time_s,0.5,4", "plain,200,RAVE,time_s,,"]
    Path("figures").mkdir()
    Path("figures/one_time.csv").write_text("\n".join(shown))
    facts = {"scale": "standard", "commit": "c", "date": "d", "with": {}, "missing": {}, "took": {}}
    write_whole("stamp", json.dumps(facts))
    provenance.update("figures/PROVENANCE.json", {"one": "stamp"})
    own = {Path(one.file).name: (one.seconds, one.work) for one in plan.times(project.load())}
    of_averages = "OLSthClassifier on averages"
    assert own == {
        "plain_100.time.csv OLSth": (1.0, {of_averages: 2 * 20**2.5}),
        "plain_100.time.csv RAVE": (3.0, {"averages of rows": 100 * 20**2}),
        "plain_200.time.csv OLSth": (2.0, {of_averages: 4 * 20**2.5}),
    }


def test_each_result_is_expected_to_take_what_the_plan_counts(place):
    assert plan.expected(project.load()) == {}, "nothing was measured"
    small_project.make_all("paper")
    work = project.load()
    rows, _, _ = plan.plan(work)
    told = plan.expected(work)
    assert told.keys() == {file for file, _ in archive.results(work)}
    assert min(told.values()) > 0
    hours = sum(row["core_hours"] + row["without_data"] for row in rows)
    assert sum(told.values()) / 3600 == pytest.approx(hours)
    # Without real data a run of them takes no longer than to start.
    without = plan.expected(project.load(real_data="none"))
    of_data = {f for f, s in archive.results(work) if s.dataset}
    assert {f for f in told if without[f] != told[f]} == of_data
    assert max(without[f] for f in of_data) <= min(told.values())
    entries = yaml.safe_load(Path("config/experiments/tiny.yaml").read_text())
    entries["one"]["data"] = {"simulate": "sparse_rows", "p": 20, "k": 2, "nonzeros": 3}
    small_project.write(place, entries)
    assert not [f for f in plan.expected(project.load()) if "/one/" in f], "nothing like it was run"


def test_a_run_without_its_data_set_tells_nothing(place):
    small_project.make_all("paper")
    records.write({"name": "ecml18_dexter", "status": "not fetched", "reason": "r", "detail": ""})
    file, setting = list(archive.results(project.load(scale="paper")))[-1]
    assert file in {one.file for one in plan.measured(project.load())}
    small_project.make(file, setting, cpu_s=0.5)
    assert file not in {one.file for one in plan.measured(project.load())}
    assert provenance.of_figure("paper", [file], [])["took"] == {}


def test_averages_of_a_split_set_are_summed_up_once_and_of_all_products():
    spec = {"experiment": "one", "name": "x", "study": {}, "replicates": 3, "passes": 1}
    spec |= {"data": {"dataset": "x", "split": {"train": 50}, "products": True}, "tune": {}}
    sweep, p = {"k": [1, 2]}, 4 + 10
    methods = {"OLSth": {"class": "OLSthRegressor"}, "OFSA": {"class": "OFSARegressor"}}
    spec |= {"methods": methods | {"SIHT": {"class": "SIHTRegressor"}}, "sweep": sweep}
    row = {"train_nonzeros": 4 * 60, "n_train": 60, "n_features": 4}
    work = plan.work_of(spec, row)
    assert work["averages of rows"] == 3 * 50 * p**2
    assert work["OFSARegressor on averages"] == 3 * 2 * p**2.5
    assert work["SIHTRegressor on dense rows"] == 3 * 2 * 50 * p and work["rows of x"] == 3 * 50 * p


def test_the_committed_plan_counts_every_entry_with_runs(monkeypatch):
    monkeypatch.chdir(shipped.ROOT)
    work = project.load(scale="paper")
    rows, known, times = plan.plan(work)
    assert [row["entry"] for row in rows] == [e for e in work.entries if work.entries[e].to_run]
    factor, ratio = plan.errors(known, times)
    assert len(known) > 100 and factor < 1.5 and 0.5 < ratio < 2
