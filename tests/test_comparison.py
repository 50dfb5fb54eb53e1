"""Values made here beside those of an archive: which are compared, and which are the same."""

from multiprocessing.pool import ThreadPool
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import small_project
import yaml

from ofslib.reproduction import comparison, experiment, identity, project, recheck, store
from ofslib.reproduction.__main__ import main

# -------------------------------------------------- how far values are apart


def table_of(values, **more):
    table = pd.DataFrame({"replicate": range(len(values)), "metric": "DR", "value": values} | more)
    return table.astype(str)


def apart(here, there):
    return comparison.compared(table_of(here), table_of(there))


@pytest.mark.parametrize(
    ("here", "there", "verdict", "largest"),
    [
        ("0.1", "0.10000000000000001", "equal", 0.0),
        ("0.1", "0.10000000000000002", "rounding", 1.4e-16),
        ("1", "1.0000005", "rounding", 5e-7),
        ("1", "1.000002", "differ", 2e-6),
        ("2", "1", "differ", 0.5),
        ("", "1", "differ", np.inf),
        ("", "", "equal", 0.0),
        ("1e-17", "-1e-17", "rounding", 2e-8),  # beside values of 1 they are nothing
        ("1e-7", "2e-7", "differ", 0.5),
    ],
)
def test_how_far_values_are_apart(here, there, verdict, largest):
    found = apart([here, "1"], [there, "1"])
    expected = dict.fromkeys(("equal", "rounding", "differ"), 0) | {"equal": 1}
    expected[verdict] += 1
    assert {name: found[name] for name in expected} == expected
    assert found["largest"] == pytest.approx(largest, rel=0.2)


def test_the_largest_difference_is_named():
    here = table_of([1, 2, 3], k=[5, 10, 15])
    found = comparison.compared(here, here.assign(value=["1", "2.2", "3.1"]))
    assert found["differ"] == 2 and found["where"] == "k 10, metric DR, replicate 1"


def test_values_of_other_replicates_are_not_compared_nor_are_times():
    found = apart([1, 2, 3], [1, 2])
    assert (found["values"], found["compared"], found["equal"]) == (3, 2, 2)
    both = table_of([1, 2], metric=["DR", "time_s"], replicate=0)
    assert comparison.compared(both, both)["values"] == 1
    assert comparison.compared(both, pd.DataFrame())["compared"] == 0


# -------------------------------------------------- whole results


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A table with a second one that measures times, and one that has the machine to itself."""
    small_project.build(tmp_path)
    entry = yaml.safe_load((tmp_path / "config/experiments/tiny.yaml").read_text())["one"]
    entry["replicates"] = 3
    timed = entry | {"metrics": ["time_s"]}
    small_project.write(tmp_path, {"one": entry, "times": timed, "other": entry | {"alone": True}})
    monkeypatch.chdir(tmp_path)
    return tmp_path


def make(scale, seconds=1.0):
    """Store all results of a scale; `seconds` tells one run from another."""
    work = project.load(scale=scale)
    for _, setting in work.runs():
        for result in identity.results(setting.spec):
            small_project.make(setting, result, seconds=seconds)
    return work


def compare(work):
    return comparison.compare(work, store.folder(), store.archive("all.zip"))


def test_a_scale_with_fewer_replicates_makes_some_of_the_values_of_one_with_more(place):
    work = make("paper")
    wanted = [r for _, s in work.runs() for r in identity.results(s.spec)]
    store.pack(wanted, "paper", "all.zip")
    found, left_out = compare(work)
    assert not len(found) and set(left_out) == {"it is the one in the archive"}
    found, left_out = compare(make("paper", seconds=2.0))
    assert found["entry"].tolist() == ["one"] and not left_out
    assert (found["values"] == found["equal"]).all() and found["values"].sum() == 2 * 3
    for file in store.FOLDER.glob("*.csv"):
        file.unlink()
    smoke, _ = compare(make("smoke", seconds=2.0))
    (row,) = smoke.to_dict("records")
    assert 0 < row["values"] == row["compared"] == row["equal"] < 6


# -------------------------------------------------- made again


def test_check_makes_what_is_shipped_again_and_names_what_differs(place, monkeypatch, capsys):
    """In threads of this process, that compile nothing twice."""
    monkeypatch.setattr(recheck, "get_context", lambda _: SimpleNamespace(Pool=ThreadPool))
    work = project.load(scale="paper")
    for _, setting in work.runs():
        experiment.run_stored(setting.spec)
    wanted = [r for _, setting in work.runs() for r in identity.results(setting.spec)]
    store.pack(wanted, "paper", work.archive_file)
    words = ["check", "--minutes", "10", "--seed", "1"]
    assert main(words) == 0
    told = capsys.readouterr().out
    assert "6 equal" in told, told
    _, forged = next(work.runs("one"))
    for result in identity.results(forged.spec):
        small_project.make(forged, result, seconds=2.0)
    store.pack(wanted, "paper", work.archive_file)
    assert main(words) == 1
    told = capsys.readouterr().out
    assert "3 differ" in told, told
