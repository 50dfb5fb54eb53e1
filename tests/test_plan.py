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


def change(edit):
    """Change the entries of the small project."""
    entries = yaml.safe_load(Path("config/experiments/tiny.yaml").read_text())
    edit(entries)
    small_project.write(Path(), entries)


def seconds_of(scale, entry, replicates=1):
    """What the plan expects of so many replicates of each result of an entry."""
    work = project.load(scale=scale)
    known = plan.Seconds(work)
    return [
        known.of(result, store.place_of(setting.spec, result), replicates)
        for _, setting in work.runs(entry)
        for result in identity.results(setting.spec)
    ]


def planned(entry, *columns):
    rows = plan.plan(project.load(scale="paper")).set_index("entry")
    return rows.loc[entry, list(columns)].to_list()


def ship():
    """Everything that is here becomes the archive that comes with the checkout."""
    work = project.load(scale="paper")
    Path("figures").mkdir(exist_ok=True)
    results = [result for _, run in work.runs() for result in identity.results(run.spec)]
    store.pack(results, "paper", work.archive_file)
    shutil.rmtree("results")


def test_a_result_takes_what_it_took_else_what_is_like_it_in_proportion_to_its_values():
    """Here, or in the archive of another scale; first the method, then others of the entry."""
    small_project.make_all("paper", seconds=6.0)
    assert seconds_of("paper", "one") == [3.0, 3.0]
    assert set(seconds_of("smoke", "one", replicates=4)) == {12.0}
    ship()
    assert set(seconds_of("smoke", "one", replicates=4)) == {12.0}

    def edit(entries):
        entries["one"]["data"]["p"] *= 5
        entries["one"]["methods"]["new"] = {"class": "SGDTClassifier"}
        entries["three"] = entries["one"]

    change(edit)
    # Two results of 100 and of 200 rows took 3 s each for a replicate.
    rate = (3 / (100 * 20) + 3 / (200 * 20)) / 2
    known = [15.0, rate * 100 * 100, 15.0, rate * 200 * 100]
    assert seconds_of("paper", "one") == pytest.approx(known)
    assert seconds_of("paper", "three") == [None] * 4
    assert planned("three", "unknown", "core_hours") == [4, 0]


def test_the_plan_tells_what_is_here_what_is_shipped_and_what_is_left():
    counts = ("results", "here", "shipped", "core_hours", "left_hours")
    small_project.make_all("paper", seconds=3600.0)
    assert planned("one", *counts, "memory_mb") == [2, 2, 0, 2.0, 0.0, 200]
    change(lambda entries: entries["one"].update(replicates=6))
    assert planned("one", *counts, "fewest", "most") == [2, 0, 0, 6.0, 4.0, 6, 6]
    change(lambda entries: entries["one"].update(replicates=2))
    ship()
    assert planned("one", *counts) == [2, 0, 2, 2.0, 0.0]
    archive = Path(project.load(scale="paper").archive_file)
    archive.write_bytes(b"half of it")
    with pytest.warns(UserWarning, match=r"results-paper\.zip is no whole archive .* not counted"):
        assert planned("one", "shipped", "unknown") == [0, 2]


@pytest.mark.parametrize("state", ["fetched", "never tried", "not fetched"])
def test_what_needs_data_that_could_not_be_had_is_counted_apart(state):
    """By the record of the last try; how long it takes is told by another data set."""
    small_project.make_all("paper", seconds=3600.0)
    more = {"dataset": [small_project.DATA, "ecml18_gisette"]}
    change(lambda entries: entries["two"].update(grid=more))
    if state != "never tried":
        gone = {"reason": "offline", "detail": ""} if state == "not fetched" else {}
        records.write({"name": "ecml18_gisette", "status": state, **gone})
    lacking = state == "not fetched"
    assert planned("two", "missing", "unknown") == ["ecml18_gisette" * lacking, 0]
    without, left, all_of_it = planned("two", "without_data", "left_hours", "core_hours")
    assert (without > 0, left > 0, all_of_it > 1) == (lacking, not lacking, not lacking)


def test_what_needs_a_machine_alone_takes_time_in_proportion_to_its_cores(monkeypatch):
    monkeypatch.setattr(plan.machine, "cores", lambda: 8)  # the records are of 2
    small_project.make_all("paper", seconds=6.0)
    assert seconds_of("paper", "one") == [3.0, 3.0]
    change(lambda entries: entries["one"].update(alone=True))
    assert seconds_of("paper", "one") == [12.0, 12.0]


def test_runs_are_expected_to_take_what_lacks_of_them():
    work = project.load(scale="paper")
    assert plan.expected(work) == {}, "nothing is known"
    small_project.make_all("paper", seconds=6.0)
    assert set(plan.expected(work).values()) == {plan.START}, "all is stored"
    ship()
    told = plan.expected(project.load(scale="paper"))
    assert told.keys() == {file for file, _ in work.runs()}
    assert set(told.values()) == {plan.START + 6.0}, "shipped or not, they are to be run"


def test_only_what_needs_real_data_was_never_run_at_the_shipped_scale(monkeypatch):
    work = shipped.load(scale=shipped.load().committed)
    monkeypatch.chdir(work.root)
    Path("figures").mkdir(exist_ok=True)
    shutil.copy(shipped.ROOT / work.archive_file, "figures")
    rows = plan.plan(work)
    assert set(rows["entry"]) == {e for e in work.entries if work.entries[e].to_run}
    assert rows["shipped"].sum() > 500
    for name in rows.loc[rows["unknown"] > 0, "entry"]:
        assert all(run.dataset for run in work.entries[name].to_run)
