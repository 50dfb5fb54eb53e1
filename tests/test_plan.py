"""What a scale will cost, by the seconds of what was stored."""

import shutil
from pathlib import Path

import pytest
import shipped
import small_project
import yaml

from ofslib.reproduction import identity, plan, project, records, store


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    small_project.build(tmp_path)
    monkeypatch.chdir(tmp_path)


def wanted(work):
    return [
        (setting, result) for _, setting in work.runs() for result in identity.results(setting.spec)
    ]


def seconds_of(work, entry, replicates=1):
    """What the plan expects of so many replicates of each result of an entry."""
    known = plan.Seconds(work)
    return [
        known.of(result, store.place_of(setting.spec, result), replicates)
        for setting, result in wanted(work)
        if setting.spec["experiment"] == entry
    ]


def planned(scale="paper"):
    return {row["entry"]: row for row in plan.plan(project.load(scale=scale))}


def pack(scale="paper"):
    """Everything that is here as the archive that comes with the checkout."""
    work = project.load(scale=scale)
    Path("figures").mkdir(exist_ok=True)
    store.pack([result for _, result in wanted(work)], scale, work.archive_file)


def test_a_stored_result_takes_what_it_took_by_the_replicate():
    """Here, or in the archive of another scale: the key is the same."""
    small_project.make_all("paper", seconds=6.0)
    assert seconds_of(project.load(scale="paper"), "one", replicates=1) == [3.0, 3.0]
    assert set(seconds_of(project.load(scale="smoke"), "one", replicates=4)) == {12.0}
    pack()
    shutil.rmtree("results")
    assert set(seconds_of(project.load(scale="smoke"), "one", replicates=4)) == {12.0}


def test_what_was_never_run_takes_as_long_as_what_is_like_it():
    """In proportion to the values that are read: first the method, then the other methods."""
    small_project.make_all("paper", seconds=6.0)
    entries = yaml.safe_load(Path("config/experiments/tiny.yaml").read_text())
    entries["one"]["data"]["p"] *= 5
    entries["one"]["methods"]["new"] = {"class": "SGDTClassifier"}
    entries["three"] = entries["one"]
    small_project.write(Path(), entries)
    work = project.load(scale="paper")
    # Two results of 100 and of 200 rows took 3 s each for a replicate.
    rate = (3 / (100 * 20) + 3 / (200 * 20)) / 2
    known = [15.0, rate * 100 * 100, 15.0, rate * 200 * 100]
    assert seconds_of(work, "one") == pytest.approx(known)
    assert seconds_of(work, "three") == [None] * 4
    assert [row["unknown"] for row in planned().values()] == [0, 0, 4]


def test_the_plan_tells_what_is_here_what_is_shipped_and_what_is_left():
    small_project.make_all("paper", seconds=3600.0)
    row = planned()["one"]
    assert (row["results"], row["here"], row["shipped"], row["memory_mb"]) == (2, 2, 0, 200)
    assert (row["core_hours"], row["left_hours"], row["replicates"]) == (2.0, 0.0, [2, 2])
    pack()
    shutil.rmtree("results")
    rows = planned()
    assert [(r["here"], r["shipped"], r["left_hours"]) for r in rows.values()] == [
        (0, 2, 0.0),
        (0, 1, 0.0),
    ]
    Path(project.load(scale="paper").archive_file).unlink()
    assert sum(row["unknown"] for row in planned().values()) == 3, "nothing tells of them"
    small_project.make_all("paper", seconds=3600.0)
    _, one = wanted(project.load(scale="paper"))[0]
    [file] = Path("results/store").glob(f"{one.key}.*")
    file.unlink()
    row = planned()["one"]
    assert row["here"] == 1 and 0 < row["left_hours"] < row["core_hours"] < 2.0


def test_replicates_that_lack_are_left():
    small_project.make_all("paper", seconds=3600.0)
    entries = yaml.safe_load(Path("config/experiments/tiny.yaml").read_text())
    entries["one"]["replicates"] = 6
    small_project.write(Path(), entries)
    row = planned()["one"]
    assert (row["here"], row["core_hours"], row["left_hours"]) == (0, 6.0, 4.0)


@pytest.mark.parametrize("state", ["fetched", "never tried", "not fetched"])
def test_what_needs_data_that_could_not_be_had_is_counted_apart(state):
    """By the record of the last try; how long it takes is told by another data set."""
    small_project.make_all("paper", seconds=3600.0)
    entries = yaml.safe_load(Path("config/experiments/tiny.yaml").read_text())
    entries["two"]["grid"]["dataset"] = [small_project.DATA, "ecml18_gisette"]
    small_project.write(Path(), entries)
    if state != "never tried":
        gone = {"reason": "offline", "detail": ""} if state == "not fetched" else {}
        records.write({"name": "ecml18_gisette", "status": state, **gone})
    row, lacking = planned()["two"], state == "not fetched"
    assert row["missing"] == ["ecml18_gisette"] * lacking and row["unknown"] == 0
    assert (row["without_data"] > 0, row["left_hours"] > 0) == (lacking, not lacking)
    assert (row["core_hours"] > 1) == (not lacking)


def test_runs_are_expected_to_take_what_lacks_of_them():
    work = project.load(scale="paper")
    assert plan.expected(work) == {}, "nothing is known"
    small_project.make_all("paper", seconds=6.0)
    assert set(plan.expected(work).values()) == {plan.START}, "all is stored"
    pack()
    shutil.rmtree("results")
    told = plan.expected(project.load(scale="paper"))
    assert told.keys() == {file for file, _ in work.runs()}
    assert set(told.values()) == {plan.START + 6.0}, "shipped or not, they are to be run"


def test_a_damaged_archive_of_the_checkout_is_said_and_not_counted():
    small_project.make_all("paper")
    Path("figures").mkdir()
    Path(project.load(scale="paper").archive_file).write_bytes(b"half of it")
    with pytest.warns(UserWarning, match=r"results-paper\.zip is no whole archive .* not counted"):
        rows = planned()
    assert rows and not any(row["shipped"] for row in rows.values())


def test_only_what_needs_real_data_was_never_run_at_the_shipped_scale(monkeypatch, tmp_path):
    shipped.copy(tmp_path / "all", "config", "notebooks", "benchmarks")
    (tmp_path / "all/figures").mkdir()
    work = project.committed(tmp_path / "all")
    shutil.copy(shipped.ROOT / work.archive_file, tmp_path / "all/figures")
    monkeypatch.chdir(tmp_path / "all")
    rows = plan.plan(project.committed())
    assert [row["entry"] for row in rows] == [e for e in work.entries if work.entries[e].to_run]
    assert sum(row["shipped"] for row in rows) > 500
    unknown = [row["entry"] for row in rows if row["unknown"]]
    assert all(run.dataset for entry in unknown for run in work.entries[entry].to_run)
