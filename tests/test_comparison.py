"""Values made here beside those of an archive: which are comparable, and which are the same."""

import importlib.util
import json
from pathlib import Path

import numpy as np
import pytest
import small_project
import yaml

from ofslib import cli
from ofslib.reproduction import archive, comparison, experiment, project, provenance
from ofslib.reproduction.methods import installed

# -------------------------------------------------- what identifies a value

PART = {
    "experiment": "one",
    "name": "a",
    "axes": {"n": 100, "signal": None},
    "data": {"simulate": "equicorrelated", "n": 100, "p": 20},
    "methods": {"A": {"class": "SFSARegressor", "mu": 5}, "B": {"class": "SGDTRegressor"}},
    "study": {},
    "track": {},
    "tune": {},
    "sweep": {"k": [5, 10]},
    "passes": 1,
    "metrics": ["DR"],
    "test_rows": 1000,
    "seed": 1,
    "replicates": 2,
    "asked": 9,
    "run_values": 10,
    "tune_values": 10,
}
TABLE = """method,n,signal,k,replicate,metric,value
A,100,,5,0,DR,0.5
A,100,,10,0,DR,0.25
B,100,,5,0,DR,0.125
truth,100,,,0,DR,1
"""


def rows(part, table=TABLE, data=None):
    return comparison.identified(part, data or {}, table.encode())


def counts(part, other, **tables):
    """How many of the values of two settings are compared, and how many of these are equal."""
    found = comparison.compared(rows(part, **tables), rows(other))
    return found["compared"], found["equal"]


REAL = {"data": {"dataset": "ecml18_dexter"}, "tune": {"grid": {"mu": [1, 5]}}, "passes": 3}
STUDY = {"study": {"function": "a:b", "size": 1}}


@pytest.mark.parametrize(
    ("base", "change", "compared"),
    [
        # How often, under which name and for which scores: the same values
        ({}, {"replicates": 5, "first": 2, "asked": 5, "name": "b", "metrics": ["DR", "RMSE"]}, 4),
        ({}, {"sweep": {"k": [5]}}, 4),
        ({}, {"methods": {"A": PART["methods"]["A"] | {"replicates": 3, "timed": False}}}, 3),
        ({}, {"methods": {"A": PART["methods"]["A"] | {"sweep": {"k": [5]}}}}, 3),
        # Another method of a name, and the one that is not changed
        ({}, {"methods": PART["methods"] | {"A": {"class": "SFSARegressor", "mu": 7}}}, 2),
        # What changes the values, also of what is followed and is no method
        ({}, {"data": PART["data"] | {"p": 30}}, 0),
        ({}, {"seed": 2}, 0),
        ({}, {"test_rows": 10}, 0),
        ({}, {"track": {"first": 1}}, 0),
        ({}, {"passes": 2}, 0),
        # Limits, where they change something
        ({}, {"run_values": 20, "tune_values": 20, "tune_points": 3}, 4),
        (REAL, {"run_values": 20}, 0),
        (REAL, {"tune_values": 20}, 0),
        (REAL, {"tune_points": 3}, 0),
        (REAL | {"passes": 1}, {"run_values": 20, "tune_values": 20}, 4),
        (REAL | {"passes": 1}, {"tune_points": 3}, 0),
        # Of a study all methods, whatever is swept, and real data with their limit
        (STUDY, {"replicates": 5, "run_values": 20}, 4),
        (STUDY, {"study": {"function": "a:b", "size": 2}}, 0),
        (STUDY, {"methods": {"A": PART["methods"]["A"]}}, 0),
        (STUDY, {"sweep": {}}, 0),
        (STUDY | {"data": REAL["data"]}, {"run_values": 20}, 0),
    ],
)
def test_only_values_that_must_be_the_same_are_compared(base, change, compared):
    part = PART | base
    assert counts(part, part) == (4, 4)
    assert counts(part, part | change) == (compared, compared)


def test_values_of_other_data_are_not_compared():
    here, there = (rows(PART, data={"a": digest}) for digest in ("00", "11"))
    assert comparison.compared(here, there)["compared"] == 0
    assert comparison.compared(here, here)["compared"] == 4


def test_each_part_of_a_run_is_compared_by_itself():
    later = PART | {"axes": {"n": 200, "signal": None}, "data": PART["data"] | {"n": 200}}
    both = {**later, "parts": [PART, later]}
    table = TABLE + TABLE.partition("\n")[2].replace(",100,", ",200,")
    assert len(rows(both, table)) == 8
    found = comparison.compared(rows(both, table), rows(PART))
    assert (found["values"], found["compared"], found["equal"]) == (8, 4, 4)
    # A row of no part is of no setting
    assert len(rows(PART, table)) == 4


def test_axes_are_the_same_however_they_are_written():
    part = PART | {"axes": {"n": 100, "signal": "001"}, "methods": {"NA": PART["methods"]["A"]}}
    table = "method,n,signal,replicate,metric,value\nNA,{},001,0,DR,1\nNA,200,all,0,DR,1\n"
    here, there = (rows(part, table.format(n)) for n in ("100", "1e+02"))
    found = comparison.compared(here, there)
    assert (found["values"], found["compared"]) == (1, 1)


def test_a_method_that_is_not_installed_tells_nothing(monkeypatch):
    table = "method,n,signal,replicate,metric,value,note\nA,100,,0,DR,,{}\nB,100,,0,DR,1,\n"
    peer = {"class": "ofslib.reproduction.peers:VowpalWabbitRegressor"}
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    _, lacking = installed({"methods": {"A": peer}})
    for note, left in ((lacking["A"], 1), ("it diverged", 2)):
        assert len(rows(PART, table.format(note))) == left


# -------------------------------------------------- how far values are apart


def table_of(values, metric="DR"):
    lines = [f"A,100,,{i},{metric},{value}" for i, value in enumerate(values)]
    return "\n".join(["method,n,signal,replicate,metric,value", *lines])


def apart(here, there):
    return comparison.compared(rows(PART, table_of(here)), rows(PART, table_of(there)))


@pytest.mark.parametrize(
    ("here", "there", "verdict", "largest"),
    [
        ("0.1", "0.10000000000000001", "equal", 0.0),
        ("0.1", "0.10000000000000002", "rounding", 1.4e-16),
        ("1", "1.0000005", "rounding", 5e-7),
        ("1", "1.000002", "differ", 2e-6),
        ("2", "1", "differ", 0.5),
        ("1", "2", "differ", 0.5),
        ("", "1", "differ", np.inf),
        ("1", "", "differ", np.inf),
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
    found = apart(["1", "2", "3"], ["1", "2.2", "3.1"])
    assert found["differ"] == 2
    assert found["where"] == "method A, metric DR, n 100, replicate 1"


def test_values_of_one_name_are_compared_in_their_order():
    twice = "method,n,signal,replicate,metric,value\nA,100,,0,DR,1\nA,100,,0,DR,2\n"
    found = comparison.compared(rows(PART, twice), rows(PART, twice))
    assert (found["compared"], found["equal"]) == (2, 2)


def test_a_mark_of_one_side_is_no_key():
    """A result that was made before its models were marked is of the same runs."""
    marked = "method,n,signal,replicate,metric,beyond,value\nA,100,,0,DR,1.0,100\n"
    plain = "method,n,signal,replicate,metric,value\nA,100,,0,DR,100\n"
    for here, there in ((marked, plain), (plain, marked)):
        found = comparison.compared(rows(PART, here), rows(PART, there))
        assert (found["compared"], found["equal"]) == (1, 1)


# -------------------------------------------------- whole results


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A table of two methods with two numbers of rows, of a small project."""
    small_project.build(tmp_path)
    entry = yaml.safe_load((tmp_path / "config/experiments/tiny.yaml").read_text())["one"]
    entry |= {"replicates": 3, "metrics": ["DR", "RMSE"], "grid": {"n": [1000, 2000]}}
    entry["data"] |= {"task": "regression"}
    entry["methods"] = {"SFSA": {"class": "SFSARegressor"}, "SGDT": {"class": "SGDTRegressor"}}
    timed = entry | {"metrics": ["time_s"], "grid": {"n": [1000]}}
    # Its name begins like another's; and what has the machine to itself is never the same
    write = {"one": entry, "one_more": timed, "other": entry | {"alone": True}}
    small_project.write(tmp_path, write)
    monkeypatch.chdir(tmp_path)
    archive._digest.cache_clear()
    return tmp_path


def run(scale, cpu_s=1.0):
    """Make all results of a scale; `cpu_s` tells one run from another."""
    work = project.load(scale=scale)
    for result, setting in archive.results(work):
        found = experiment.run(setting.spec, progress=False)
        Path(result).parent.mkdir(parents=True, exist_ok=True)
        save(result, setting, found.to_csv(index=False, float_format="%.17g"), cpu_s)
    return work


def save(result, setting, text, cpu_s=1.0):
    Path(result).write_text(text)
    sources = provenance.digests([*archive.sources_of(setting), provenance.NOTEBOOK])
    took = {"cpu_s": cpu_s, "memory_mb": 200}
    facts = provenance.of_result(str(result), setting.spec, sources, None, **took)
    Path(provenance.record_of(str(result))).write_text(json.dumps(facts))


def test_a_scale_with_fewer_replicates_makes_some_of_the_values_of_one_with_more(place, capsys):
    """Also where one runs two settings at once; and a file that was edited is left out."""
    archive.pack(run("standard"), "all.zip")
    with pytest.raises(ValueError, match="; 2 left out: it is the one in the archive"):
        comparison.compare(project.load(scale="standard"), "all.zip")
    work = run("standard", cpu_s=2.0)
    found, left_out = comparison.compare(work, "all.zip")
    (row,) = found.to_dict("records")
    assert row["entry"] == "one" and not left_out
    assert row["values"] == row["equal"] == 2 * 3 * 2 * 2  # n, replicates, methods, metrics
    smoke = run("smoke")
    found, _ = comparison.compare(smoke, "all.zip")
    (row,) = found.to_dict("records")
    assert row["values"] == row["compared"] == row["equal"] < 24

    assert cli.main(["papers", "--compare", "all.zip", "--scale", "standard"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("Scale standard, made here, beside ") and "all    24" in out
    (setting,) = work.entries["one"].to_run
    result = work.result("one", setting.name)
    text = Path(result).read_text().splitlines()
    empty = text[1].rsplit(",", 1)[0] + ","
    save(result, setting, "\n".join([text[0], empty, *text[2:]]))
    assert cli.main(["papers", "--compare", "all.zip", "--json"]) == 0
    said = json.loads(capsys.readouterr().out, parse_constant=pytest.fail)
    assert said["scale"] == "standard" and said["entries"][0]["differ"] == 1
    assert said["entries"][0]["largest"] is None
    Path(result).write_text("anything")
    assert cli.main(["papers", "--compare", "all.zip"]) == 1
    assert "1 left out: changed after it was made" in capsys.readouterr().err
    assert cli.main(["papers", "--compare", "all.zip", "--scale", "smoke"]) == 0
    (setting,) = smoke.entries["one"].to_run
    Path(provenance.record_of(str(smoke.result("one", setting.name)))).write_text("[]")
    with pytest.raises(ValueError, match="no results of scale smoke"):
        comparison.compare(smoke, "all.zip")


def test_one_thing_at_a_time_is_done(capsys):
    with pytest.raises(SystemExit):
        cli.main(["papers", "--compare", "--plan"])
    assert "not allowed with argument" in capsys.readouterr().err
