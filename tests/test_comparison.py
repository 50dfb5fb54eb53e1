"""Values made here beside those of an archive: which are comparable, and which are the same."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import small_project
import yaml

from ofslib.reproduction import archive, comparison, experiment, project, provenance


def write_entries(place):
    """A table of two methods with two numbers of rows."""
    small_project.build(place)
    text = Path(place, "config/experiments/tiny.yaml").read_text()
    entry = yaml.safe_load(text)["one"]
    entry |= {"replicates": 3, "metrics": ["DR", "RMSE"], "data": {**entry["data"]}}
    entry["data"] |= {"task": "regression"}
    entry["grid"] = {"n": [1000, 2000]}
    entry["methods"] = {"SFSA": {"class": "SFSARegressor"}, "SGDT": {"class": "SGDTRegressor"}}
    small_project.write(place, {"one": entry})


def run(scale, change=None):
    """Run all settings of a scale; `change` is done to the values of each."""
    work = project.load(scale=scale)
    for result, setting in archive.results(work):
        found = experiment.run(setting.spec, progress=False)
        save(result, setting, found if change is None else change(found))
    return work


def save(result, setting, table):
    small_project.make(result, setting)
    Path(result).write_text(table.to_csv(index=False, float_format="%.17g"))
    files = [*project.sources(*setting.needs), provenance.NOTEBOOK]
    facts = provenance.of_result(result, setting.spec, files, None, cpu_s=1.0, memory_mb=200)
    Path(provenance.record_of(result)).write_text(json.dumps(facts))


@pytest.fixture
def place(tmp_path, monkeypatch):
    write_entries(tmp_path)
    monkeypatch.chdir(tmp_path)
    archive._digest.cache_clear()
    return tmp_path


def found_in(work, file="all.zip"):
    (row,) = comparison.compare(work, file).to_dict("records")
    return row


def test_a_scale_with_fewer_replicates_makes_some_of_the_values_of_one_with_more(place):
    """Also where one runs a setting alone and the other two of them at once."""
    archive.pack(run("standard"), "all.zip")
    (both,) = project.load(scale="standard").entries["one"].to_run
    work = run("smoke")
    (alone,) = work.entries["one"].to_run
    assert (len(both.parts), len(alone.parts)) == (2, 1)
    row = found_in(work)
    assert row["values"] == row["compared"] == row["equal"] == 2 * 2 * 2  # replicates
    assert (row["rounding"], row["differ"], row["largest"], row["where"]) == (0, 0, 0.0, "")
    row = found_in(project.load(scale="standard"))
    assert row["values"] == row["equal"] == 3 * 2 * 2 * 2


def test_how_far_values_are_apart_is_said_and_where(place):
    def changed(found):
        own = (found["metric"] == "RMSE") & (found["method"] == "SGDT")
        factor = found["replicate"].map({0: 1 + 1e-9, 1: 1 + 1e-3, 2: 1.0}).where(own, 1.0)
        return found.assign(value=found["value"].astype(float) * factor)

    archive.pack(run("standard", changed), "all.zip")
    row = found_in(run("standard"))
    assert [row[c] for c in ("compared", "equal", "rounding", "differ")] == [24, 20, 2, 2]
    assert row["largest"] == pytest.approx(1e-3, rel=2e-3)
    assert row["where"] in [f"method SGDT, metric RMSE, n {n}, replicate 1" for n in (1000, 2000)]


def test_a_value_beside_none_differs_and_none_beside_none_is_the_same(place):
    archive.pack(run("standard", lambda found: found.assign(value=np.nan)), "none.zip")
    assert found_in(project.load(scale="standard"), "none.zip")["equal"] == 24
    row = found_in(run("standard"), "none.zip")
    assert (row["differ"], row["largest"]) == (24, np.inf)


@pytest.mark.parametrize(
    ("changes", "compared"),
    [
        ({"methods": {"SFSA": {"class": "SFSARegressor", "mu": 7}}}, 0),
        ({"methods": {"SFSA": {"class": "SFSARegressor", "replicates": 2}}}, 8),
        ({"data": {"simulate": "equicorrelated", "p": 20, "k": 2, "alpha": 0.25}}, 0),
        ({"grid": {"n": [2000, 3000]}}, 12),
        ({"metrics": ["RMSE"]}, 12),
        ({"alone": True}, None),
    ],
)
def test_only_what_is_made_by_the_same_setting_is_compared(place, changes, compared):
    archive.pack(run("standard"), "all.zip")
    write_entries_again(place, changes)
    work = run("standard")
    if compared is None:
        with pytest.raises(ValueError, match="no results of scale standard to compare"):
            comparison.compare(work, "all.zip")
    else:
        row = found_in(work)
        assert (row["compared"], row["equal"]) == (compared, compared)


def write_entries_again(place, changes):
    file = Path(place, "config/experiments/tiny.yaml")
    entries = yaml.safe_load(file.read_text())
    entries["one"] |= changes
    small_project.write(place, entries)


def test_times_are_not_compared(place):
    write_entries_again(place, {"metrics": ["DR", "time_s"]})
    work = run("standard")
    archive.pack(work, "all.zip")
    assert found_in(work)["values"] == 3 * 2 * 2


def test_lines_end_with_the_sums():
    rows = [
        {"entry": "a", "values": 5, "compared": 4, "equal": 3, "rounding": 0, "differ": 1},
        {"entry": "b", "values": 2, "compared": 2, "equal": 1, "rounding": 1, "differ": 0},
    ]
    found = pd.DataFrame(rows).assign(largest=[0.25, 0.0], where=["n 1", ""])
    assert list(comparison.lines(found)) == [
        ["a", 5, 4, 3, 0, 1, "2.5e-01", "n 1"],
        ["b", 2, 2, 1, 1, 0, "", ""],
        ["all", 7, 6, 4, 1, 1, "", ""],
    ]
