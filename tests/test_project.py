"""The configuration: what it means, what is refused, and what is shipped."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
import shipped
import yaml

import ofslib
from ofslib.metrics import METRICS
from ofslib.reproduction import looks, project, strict, tables
from ofslib.reproduction.experiment import EXPECTED
from ofslib.reproduction.methods import build
from ofslib.reproduction.project import ConfigurationError
from ofslib.streams.row_stream import RowStream

ROOT = Path(__file__).parents[1]
SCALES = list(yaml.safe_load((ROOT / "config/scales.yaml").read_text(encoding="utf-8")))
SHIPPED = shipped.load()
ENTRIES = sorted(SHIPPED.entries)

SMALL = {"replicates": 2, "values": 1e6, "run_values": None, "tune_values": None}
SMALL |= {"timing_repeats": 1, "timing_values": 1e5}
FREE = SMALL | {"values": None, "replicates": 50}

TABLE = {
    "source": "Doe (2027), Table 1",
    "title": "What it shows",
    "form": "table",
    "notebook": "recovery_table",
    "data": {"simulate": "equicorrelated", "p": 100, "k": 5, "alpha": 1},
    "grid": {"n": [100, 200]},
    "methods": {
        "SFSA": {"class": "SFSARegressor", "warmup": 0},
        "SGDT": {"class": "SGDTRegressor"},
    },
    "readings": {"plain": {"note": "As it is."}},
    "metrics": ["DR", "RMSE"],
    "replicates": 20,
}
REAL = TABLE | {
    "form": "figure",
    "notebook": "accuracy_by_budget",
    "data": {},
    "grid": {"dataset": ["ecml18_dexter"]},
    "methods": {"OFS": {"class": "FOFSClassifier"}},
    "readings": {},
    "metrics": ["accuracy"],
}


@pytest.fixture
def write(tmp_path):
    """Return a function that makes a project of these entries and of the changes to other files."""
    for folder in ("workflow/schemas", "notebooks", "config"):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    shutil.rmtree(tmp_path / "config/experiments")

    def make(entries, file="tiny.yaml", **others):
        contents = {"scales": {"small": SMALL, "free": FREE}}
        contents["methods"] = {}
        contents["config"] = {"scale": "small", "real_data": "none", "seed": 1}
        contents[f"experiments/{file.removesuffix('.yaml')}"] = entries
        for name, content in (contents | others).items():
            path = tmp_path / f"config/{name}.yaml"
            path.parent.mkdir(exist_ok=True)
            text = content if isinstance(content, str) else yaml.safe_dump(content, sort_keys=False)
            path.write_text(text, encoding="utf-8")
        return tmp_path

    return make


def use(root, **changes):
    """What is read of a configuration; `strict` asks for more before the first job."""
    work = project.load(root, **changes)
    for name in work.datasets:
        work.row(name)
    return work


def changed(entry, place, value):
    """A copy of an entry with another value at `place`, as "data.p"."""
    entry = json.loads(json.dumps(entry))
    *path, last = place.split("/")
    inner = entry
    for key in path:
        inner = inner[key]
    inner[last] = value
    return entry


def settings_of(root, entry="one", **changes):
    return project.load(root, **changes).entries[entry].settings


# -------------------------------------------------- what is refused


@pytest.mark.parametrize(
    ("file", "content", "names"),
    [
        ("config", {"scale": "small", "real_data": "none", "sead": 1}, ["config.yaml", "sead"]),
        ("config", {"scale": "small", "real_data": "none"}, ["config.yaml", "seed"]),
        (
            "config",
            {"scale": "small", "real_data": "perhaps", "seed": 1},
            ["config.yaml", "real_data", "perhaps", "auto"],
        ),
        ("config", {"scale": "small", "real_data": "none", "seed": -1}, ["config.yaml", "seed"]),
        (
            "config",
            {"scale": "huge", "real_data": "none", "seed": 1},
            ["config.yaml", "scale", "huge", "small"],
        ),
        ("config", "scale: [", ["config.yaml"]),
        ("config", "", ["config.yaml"]),
        ("scales", {"small": SMALL | {"valeus": 1}}, ["scales.yaml", "small", "valeus"]),
        (
            "scales",
            {"small": {k: v for k, v in SMALL.items() if k != "run_values"}},
            ["scales.yaml", "small", "run_values"],
        ),
        ("scales", {"small": SMALL | {"replicates": 0}}, ["scales.yaml", "small", "replicates"]),
    ],
)
def test_wrong_settings_name_file_and_key(write, file, content, names):
    root = write({"one": TABLE}, **{file: content})
    with pytest.raises(ConfigurationError) as error:
        project.load(root)
    assert [n for n in names if n not in str(error.value)] == []


def test_a_wrong_change_is_refused_too(write):
    root = write({"one": TABLE})
    with pytest.raises(ConfigurationError, match="rael_data"):
        project.load(root, rael_data="none")
    with pytest.raises(ConfigurationError, match="seed"):
        project.load(root, seed="x")


@pytest.mark.parametrize(
    ("place", "value", "key"),
    [
        ("metric", ["DR"], "metric"),
        ("metrics", ["DR", "RSME"], "RSME"),
        ("form", "tabel", "tabel"),
        ("passes", "2d/m", "2d/m"),
        ("replicates", 0, "replicates"),
        ("tune", {"score": "online", "at": {}, "gird": {}}, "gird"),
        ("readings/plain/methds", {}, "methds"),
        ("readings/plain/methods", {"SFAS": {"mu": 1}}, "SFAS"),
        ("data/alhpa", 1, "alhpa"),
        ("data/simulate", "equicorelated", "equicorelated"),
        ("readings/plain/data", {"alhpa": 1}, "alhpa"),
        ("grid", {"n": [100], "signl": ["weak"]}, "signl"),
        ("methods/SFSA/warmup", {"by": "n", "100": 0}, "warmup"),
        ("methods/SFSA/warmup", {"by": "m", "100": 0}, "warmup"),
        ("methods/SFSA/warmup", {"axis": "m"}, "warmup"),
        ("data/beta", {"by": "n", "100": 1}, "beta"),
        ("time", "plian", "time='plian' must be one of ['plain']"),
        ("time", True, "time=True must be one of ['plain']"),
        ("time", 1, "time"),
        ("at_scale", {"smal": {"n": [100]}}, "smal"),
        ("at_scale", {"small": {"m": [100]}}, "at_scale: 'm' is none of the axes ['n', 'reading']"),
        ("at_scale", {"small": {"n": [1001]}}, "at_scale: n=1001 is none of 100, 200"),
        ("at_scale", {"small": {"n": ["100"]}}, "at_scale: n='100' is none of 100, 200"),
        ("unavailable", {"m": {"100": "lost"}}, "unavailable: 'm' is none of the axes"),
        ("unavailable", {"n": {"100": "lost"}}, "unavailable: n='100' is none of 100, 200"),
        ("weak_baselines", {"SFSAA": "why"}, "weak_baselines: 'SFSAA' is none of the methods"),
        ("discussed", [{"method": "SFSAA", "why": "x"}], "discussed: method='SFSAA' is none of"),
        ("discussed", [{"m": 1, "why": "x"}], "discussed: 'm' is none of the axes"),
        ("discussed", [{"why": "x"}], "one.discussed"),
        ("discussed", [{"n": 100, "why": " "}], "one.discussed.0.why"),
        ("discussed", [{"n": [], "why": "x"}], "one.discussed.0.n"),
        ("time_claims", [{"says": "x", "fast": "SGTD", "than": ["SFSA"]}], "time_claims: 'SGTD'"),
        ("time_claims", [{"says": "x", "grows": ["SFSA", "SGTD"]}], "time_claims: 'SGTD'"),
        ("grid", {"n": []}, "one.grid.n: []"),
        ("sweep", {"mu": []}, "one.sweep.mu: []"),
        ("only", {"n": []}, "one.only.n: []"),
        ("tune", {"score": "online", "at": {}, "grid": {"mu": []}}, "one.tune.grid.mu: []"),
        ("data/beta", {"by": "n", 100: 1, 200: 1, 300: 1}, "by: n: n=300 is none of 100, 200"),
        ("methods/SFSA/mu", {"by": "reading", "plain": 1, "plian": 2}, "reading='plian' is none"),
        ("parameters", {"measured": "rows.csv"}, "there is no rows.csv"),
        ("at_scale", {"small": {"methods": ["other"]}}, "no method 'other'"),
        ("results", "two", "two"),
        ("notebook", "recovery_tabel", "recovery_tabel"),
        ("published", "no_such_table", "no_such_table"),
        ("study", {"of": "ofslib.reproduction.tracking:drift"}, "function"),
        ("test_rows", 0, "test_rows"),
        ("data", {"simulate": "sparse_rows", "p": 9, "k": 2, "averages": "sampled"}, "averages"),
        ("data", {"simulate": "equicorrelated", "p": 9, "averages": "drawn"}, "averages"),
        ("track", {"every": 5, "last": 10}, "track.every"),
        ("data/task", "regresion", "regresion"),
        ("grid", {"alpha": [1]}, "n, the number of rows"),
        ("methods/mine", {"k": 3}, "class"),
        ("methods/mine", None, "mine"),
        ("replicates", {"by": "n", 100: 0, 200: 0}, "must be at least 1"),
        ("data", {"simulate": "equicorrelated"}, "'p' and 'k'"),
        ("data", {"simulate": "equicorrelated", "k": 2, "averages": "sampled"}, "'p'"),
        ("data", {"simulate": "sparse_rows", "p": 99, "nonzeros": 2}, "'k'"),
    ],
)
def test_wrong_entry_names_file_entry_and_key(write, place, value, key):
    root = write({"one": changed(TABLE, place, value)})
    with pytest.raises(ConfigurationError) as error:
        use(root)
    assert [n for n in ("tiny.yaml", "one", key) if n not in str(error.value)] == []


def test_what_other_entries_and_users_share_is_no_slip(write):
    """What a method of several entries is `by` n; the parameters of classes that are not ours."""
    mine = {"class": "sklearn.linear_model:SGDRegressor", "entries": ["one", "two"]}
    mine |= {"eta0": {"by": "n", 100: 1, 200: 1, 300: 1}}
    tuned = TABLE | {"tune": {"score": "online", "at": {}, "grid": {"eta0": [1]}}}
    entries = {"one": tuned, "two": TABLE | {"grid": {"n": [300]}}}
    assert len(use(write(entries, methods={"mine": mine})).entries) == 2
    with pytest.raises(ConfigurationError, match="one: by: n: n=400 is none of 100, 200, 300"):
        use(write(entries, methods={"mine": mine | {"eta0": mine["eta0"] | {400: 1}}}))


def test_values_that_are_numbers_may_be_unavailable(write):
    settings = settings_of(write({"one": TABLE | {"unavailable": {"n": {200: "lost"}}}}))
    assert [s.skipped for s in settings] == ["", "lost"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("m,method,metric,value,note\n100,SFSA,DR,1,\n", "'m' is wrong or missing"),
        ("n,method,value,note\n100,SFSA,1,\n", "'metric' is wrong or missing"),
        ("n,metric,value,note\n100,DR,1,\n", "'method' is wrong or missing"),
        (
            "n,method,metric,value,note\n100,SFSA,DR,1,\n100,SFSA,DR,2,x\n",
            "2 lines are of the cell 100, SFSA, DR",
        ),
        ("n,method,metric,value,note\n100,SFSB,DR,1,\n", "line 2: method 'SFSB' is none of"),
        (
            "n,method,metric,value,note\n100,SFSA,DR,1,\n110,SFSA,DR,1,\n",
            "line 3: n '110' is none of ['100', '200']",
        ),
        ('n,method,metric,value,note\n100,SFSA,DR,"0,9",\n', "line 2: value '0,9' is no number"),
        ("n,method,metric,value,note\n100,SFSA,DR,inf,\n", "line 2: value 'inf' is no number"),
    ],
)
def test_printed_numbers_say_of_which_cell_they_are(write, text, said):
    root = write({"one": TABLE | {"published": "mine"}})
    file = root / "config/published/mine.csv"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigurationError) as error:
        project.load(root)
    assert "tiny.yaml, one: config/published/mine.csv" in str(error.value)
    assert said in str(error.value)
    file.write_text("n,method,metric,value,note\n100,SFSA,DR,1,\n", encoding="utf-8-sig")
    project.load(root)


LABELS = [
    "1",
    "1.5",
    "0x1F",
    "null",
    "~",
    "yes",
    "off",
    "true",
    "2020-01-01",
    ".inf",
    "1e3",
    "12:30",
]
PLACES = {
    "tiny.yaml, one.methods": ("experiments/tiny", "    {label}: {{class: SGDTRegressor}}\n"),
    "tiny.yaml, one.readings.plain.methods": ("experiments/tiny", "        {label}: null\n"),
    "tiny.yaml, one.readings": ("experiments/tiny", "    {label}: {{note: x}}\n"),
    "tiny.yaml, top level": ("experiments/tiny", "{label}: {{source: x}}\n"),
    "methods.yaml, top level": ("methods", "{label}: {{class: SGDTRegressor, entries: [one]}}\n"),
    "scales.yaml, top level": ("scales", "{label}: {{replicates: 2}}\n"),
    "config.yaml, top level": ("config", "{label}: 2\n"),
}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("label", [one for one in LABELS if one not in ("1e3",)])
def test_a_name_that_yaml_takes_for_something_else_is_refused(write, place, label):
    file, line = PLACES[place]
    reading = {"plain": {"note": "As it is.", "methods": {"SGDT": None}}}
    root = write({"one": TABLE | {"readings": reading}})
    path = root / f"config/{file}.yaml"
    text = path.read_text(encoding="utf-8")
    depth = line.index("{") - 2
    key = "\n" + " " * depth + place.rpartition(".")[2] + ":\n"
    at = text.index(key) + len(key) if key in text else len(text)
    if text == "{}\n":
        text, at = "", 0
    for written, refused in ((label, True), (f"'{label}'", False)):
        changed_text = text[:at] + line.format(label=written) + text[at:]
        path.write_text(changed_text, encoding="utf-8")
        try:
            project.load(root)
        except ConfigurationError as error:
            told = f"config/{'experiments/' * ('exp' in file)}{place}: the name "
            assert (told in str(error)) == refused
            assert "quotes" in str(error) or not refused
        else:
            assert not refused


NUMBERS = [
    ("grid", {"n": ["five"]}, "n='five' must be a whole number"),
    ("grid", {"n": [100.5]}, "n=100.5 must be a whole number"),
    ("grid", {"n": [100.0]}, "n=100.0 must be a whole number"),
    ("grid", {"n": [True]}, "n=True must be a whole number"),
    ("grid", {"n": [None]}, "n=None must be a whole number"),
    ("grid", {"n": [[100]]}, "n=[100] must be a whole number"),
    ("grid", {"n": [0]}, "n=0 must be a whole number of at least 1"),
    ("grid", {"n": [-100]}, "n=-100 must be a whole number of at least 1"),
    ("grid", {"n": [{"a": 1}]}, "n={'a': 1} must be a whole number"),
    ("data/p", "many", "p='many' must be a whole number"),
    ("data/p", "1e4", "p='1e4' must be a whole number"),
    ("data/p", [100], "p=[100] must be a whole number"),
    ("data/k", "few", "k='few' must be a whole number"),
    ("data/alpha", "strong", "alpha='strong' must be a number"),
    ("data/alpha", [1, 2], "alpha=[1, 2] must be a number"),
    ("data/noise", False, "noise=False must be a number"),
    ("data/beta", "weak", "beta='weak' must be a number or a pair"),
    ("data/beta", [0.1, "b"], "beta=[0.1, 'b'] must be a number or a pair"),
    ("data/beta", [1, 2, 3], "beta=[1, 2, 3] must be a number or a pair"),
    ("data/simulate", ["equicorrelated"], "simulate=['equicorrelated']"),
    ("data/alpha", float("inf"), "data.alpha: inf is not allowed"),
    ("data/noise", float("nan"), "data.noise: nan is not allowed"),
    ("grid", {"n": [float("-inf")]}, "grid.n.0: -inf is not allowed"),
    ("methods/SFSA/mu", float("inf"), "methods.SFSA.mu: inf is not allowed"),
    ("replicates", 2.0, "replicates: 2.0 is not of type 'integer'"),
    ("replicates", True, "replicates: True is not of type 'integer'"),
    ("test_rows", 1e3, "test_rows: 1000.0 is not"),
    ("time_limit", 0.5, "time_limit: 0.5 is not of type 'integer'"),
    ("time_limit", 0, "time_limit: 0 is less than the minimum of 1"),
]


@pytest.mark.parametrize(("place", "value", "said"), NUMBERS)
def test_what_is_no_number_is_refused_before_anything_is_computed(write, place, value, said):
    with pytest.raises(ConfigurationError) as error:
        project.load(write({"one": changed(TABLE, place, value)}))
    message = str(error.value)
    assert "tiny.yaml, one" in message and said in message


@pytest.mark.parametrize("value", ["2020-01-01", "!!binary aGk=", "!!set {a, b}"])
def test_a_value_that_is_no_text_and_no_number_is_refused(write, value):
    root = write({"one": TABLE})
    file = root / "config/experiments/tiny.yaml"
    text = file.read_text(encoding="utf-8")
    file.write_text(text.replace("warmup: 0", f"warmup: {value}"), encoding="utf-8")
    with pytest.raises(
        ConfigurationError, match=r"tiny\.yaml, one\.methods\.SFSA\.warmup: .*is read as"
    ):
        project.load(root)


@pytest.mark.parametrize("name", ["os:system", "os:PathLike", "sklearn.base:clone", "sys:path"])
def test_what_is_no_class_of_a_method_is_not_called(name, monkeypatch, tmp_path):
    """What the source does not tell is found out when a run imports it."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(TypeError, match=f"class: {name} is no class of a method"):
        build({"class": name, "command": "touch was_run"})
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"seed": 1000.0}, "seed: 1000.0 is not of type 'integer'"),  # --config seed=1e3
        ({"seed": True}, "seed: True is not of type 'integer'"),
        ({"seed": None}, "seed: None is not of type 'integer'"),
        ({"scale": None}, "scale: None is not of type 'string'"),  # --config scale=
        ({"scale": ""}, "scale='' is none of"),
        ({"scale": 1}, "scale: 1 is not of type 'string'"),
        ({"real_data": None}, "real_data: None is not one of"),
        ({"real_data": False}, "real_data: False is not one of"),
        ({"time_limit": 1.5}, "time_limit: 1.5 is not of type 'integer'"),
    ],
)
def test_a_change_of_the_call_is_no_less_strict(write, change, said):
    with pytest.raises(ConfigurationError) as error:
        project.load(write({"one": TABLE}), **change)
    assert "config/config.yaml" in str(error.value) and said in str(error.value)


HEADER = (ROOT / "config/datasets.csv").read_text(encoding="utf-8").splitlines()[0]
REGISTRIES = {
    "semicolons": (HEADER.replace(",", ";").encode(), "commas between"),
    "tabs": (HEADER.replace(",", "\t").encode(), "commas between"),
    "UTF-16": (HEADER.encode("utf-16"), "UTF-8"),
    "latin-1": ((HEADER + "\n\xe9").encode("latin-1"), "UTF-8"),
    "zeros": (b"\0" * 100, "expected"),
    "empty": (b"", "expected columns"),
    "without the reader": (HEADER.replace(",reader", "", 1).encode(), "reader missing"),
    "a short row": ((HEADER + "\nmine,Mine\n").encode(), "row 1 (mine)"),
}


@pytest.mark.parametrize("case", REGISTRIES)
def test_a_wrong_table_of_data_sets_is_named_also_where_none_is_used(write, case):
    root = write({"one": TABLE})
    content, said = REGISTRIES[case]
    (root / "config/datasets.csv").write_bytes(content)
    with pytest.raises(ConfigurationError) as error:
        project.load(root)
    assert "config/datasets.csv" in str(error.value) and said in str(error.value)


def test_a_byte_order_mark_is_no_part_of_a_table_or_a_configuration(write):
    root = write({"one": TABLE})
    for file in ("config/datasets.csv", "config/experiments/tiny.yaml"):
        path = root / file
        path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    work = project.load(root)
    assert list(work.entries) == ["one"] and work.row("ecml18_dexter")["n_train"] == 300


def test_a_file_that_is_no_utf8_is_named(write):
    root = write({"one": TABLE})
    (root / "config/methods.yaml").write_bytes(b"# \xe9\n")
    with pytest.raises(ConfigurationError, match=r"config/methods\.yaml: "):
        project.load(root)


def test_the_time_limit_is_that_of_the_entry_or_of_all(write):
    root = write({"one": TABLE, "two": TABLE | {"time_limit": 7}})
    work = project.load(root)
    assert [work.time_limit_of(name) for name in ("one", "two")] == [2880, 7]
    assert project.load(root, time_limit=60).time_limit_of("one") == 60
    assert shipped.load().time_limit_of("sfsa_table_1") == 2880
    same = [{**s.spec, "experiment": ""} for s in work.entries["two"].settings]
    assert [{**s.spec, "experiment": ""} for s in work.entries["one"].settings] == same


def test_unknown_data_set_names_the_file_and_the_known_ones(write):
    root = write({"one": changed(REAL, "grid/dataset", ["ecml18_dexter", "ecml18_dextre"])})
    with pytest.raises(ConfigurationError) as error:
        project.load(root)
    expected = ("tiny.yaml", "one", "ecml18_dextre", "datasets.csv", "ecml18_arcene")
    assert [n for n in expected if n not in str(error.value)] == []


@pytest.mark.parametrize("k", ["five", 0, 2.5, True])
def test_k_of_a_data_set_is_a_number(write, k):
    with pytest.raises(ConfigurationError, match=rf"one: data: k={k!r} must be a whole number"):
        project.load(write({"one": changed(REAL, "data/k", k)}))


@pytest.mark.parametrize("entry", [TABLE, REAL], ids=["simulated", "data set"])
def test_a_method_for_the_other_task_is_refused(write, entry):
    other = {"SGDTRegressor": "SGDTClassifier", "SGDTClassifier": "SGDTRegressor"}
    task = "classification" if entry is REAL else "regression"  # the usual one of the design
    wrong = "SGDTRegressor" if task == "classification" else "SGDTClassifier"
    methods = entry["methods"] | {"mine": {"class": wrong}}
    said = f"one: mine: the data are for {task}: {other[wrong]}, if any"
    with pytest.raises(ConfigurationError, match=said):
        project.load(write({"one": entry | {"methods": methods}}))


def test_entry_names_are_file_names(write):
    with pytest.raises(ConfigurationError, match="Table 1"):
        project.load(write({"Table 1": TABLE}))


def test_the_same_entry_in_two_files(write):
    root = write({"one": TABLE})
    write({"one": TABLE}, file="zweite.yaml")
    with pytest.raises(ConfigurationError, match=r"zweite\.yaml.*one"):
        project.load(root)


def test_the_same_entry_twice_in_one_file(write):
    text = yaml.safe_dump({"one": TABLE})
    root = write(text + text)
    with pytest.raises(ConfigurationError, match=r"tiny\.yaml.*one"):
        project.load(root)


@pytest.mark.parametrize("values", [["a b", "a-b"], [0.5, "0 5"], [1, -1], [1, "1"]], ids=str)
def test_settings_never_share_a_file(write, values):
    data = TABLE["data"] | {"beta": {"by": "group", **dict.fromkeys(values, 1)}}
    root = write({"one": TABLE | {"data": data, "grid": {"group": values, "n": [100]}}})
    try:
        names = [s.name for s in settings_of(root)]
    except ConfigurationError as error:
        assert "one" in str(error)
    else:
        assert len(set(names)) == len(names)


def test_a_point_that_is_there_twice_is_refused(write):
    grid = [{"n": [100, 200]}, {"n": [200, 300]}]
    with pytest.raises(ConfigurationError, match="one"):
        use(write({"one": TABLE | {"grid": grid}}))


def test_find_root_tells_what_it_looked_for(tmp_path):
    with pytest.raises(ConfigurationError, match=r"config/config\.yaml"):
        project.find_root(tmp_path)
    assert project.find_root(ROOT / "tests") == ROOT
    assert project.find_root(ROOT) == ROOT


# -------------------------------------------------- what an entry means


def test_grid_is_multiplied_in_its_order(write):
    settings = settings_of(write({"one": TABLE | {"grid": {"noise": [1, 2], "n": [100, 200]}}}))
    expected = [(1, 100), (1, 200), (2, 100), (2, 200)]
    assert [(s.spec["axes"]["noise"], s.spec["axes"]["n"]) for s in settings] == expected
    assert [(s.spec["data"]["noise"], s.spec["data"]["n"]) for s in settings] == expected
    assert all(TABLE["data"].items() <= s.spec["data"].items() for s in settings)


def test_list_of_grids_is_joined(write):
    grid = [{"noise": 1, "n": [100, 200]}, {"noise": [2], "n": [300]}]
    settings = settings_of(write({"one": TABLE | {"grid": grid}}))
    expected = [(1, 100), (1, 200), (2, 300)]
    assert [(s.spec["axes"]["noise"], s.spec["axes"]["n"]) for s in settings] == expected


def test_entry_without_grid_is_one_setting_with_a_name(write):
    data = TABLE["data"] | {"n": 100}
    root = write({"one": TABLE | {"grid": {}, "readings": {}, "data": data}})
    (setting,) = settings_of(root)
    assert setting.name
    assert setting.spec["data"]["n"] == 100


def test_by_picks_the_value_of_the_axis(write):
    betas, warmups = {"strong": 1, "weak": [0.05, 1]}, {100: 0, 200: 50}
    entry = TABLE | {
        "data": TABLE["data"] | {"beta": {"by": "signal", **betas}},
        "methods": {"SFSA": {"class": "SFSARegressor", "warmup": {"by": "n", **warmups}}},
        "grid": {"signal": list(betas), "n": list(warmups)},
    }
    settings = settings_of(write({"one": entry}))
    assert len(settings) == 4
    for spec in (s.spec for s in settings):
        assert spec["data"]["beta"] == betas[spec["axes"]["signal"]]
        assert spec["methods"]["SFSA"]["warmup"] == warmups[spec["axes"]["n"]]


def test_readings_change_data_and_methods_of_their_own_only(write):
    readings = {
        "as printed": {"note": "."},
        "other": {
            "note": ".",
            "data": {"alpha": 0},
            "methods": {"SFSA": {"warmup": 25, "importance": "scaled_root"}},
        },
    }
    settings = settings_of(write({"one": TABLE | {"readings": readings}}))
    assert [s.spec["axes"]["reading"] for s in settings] == ["as printed"] * 2 + ["other"] * 2
    plain, other = settings[0].spec, settings[2].spec
    assert plain["methods"] == TABLE["methods"]
    assert (plain["data"]["alpha"], other["data"]["alpha"]) == (1, 0)
    assert other["data"]["p"] == 100
    assert other["methods"]["SGDT"] == TABLE["methods"]["SGDT"]
    assert other["methods"]["SFSA"] == {
        "class": "SFSARegressor",
        "warmup": 25,
        "importance": "scaled_root",
    }
    assert "reading" not in plain["data"], "equal data must look equal in every reading"


def test_replicates_are_capped_by_the_scale(write):
    # 100 features: n = 100 makes 1e4 numbers a replicate, n = 20,000 makes 2e6.
    entry = TABLE | {"grid": {"n": [100, 4000, 5000, 5001, 20_000]}}
    root = write({"one": entry})
    small = {s.spec["axes"]["n"]: s for s in settings_of(root)}
    assert {n: s.spec["replicates"] for n, s in small.items() if not s.skipped} == {
        100: 2,
        4000: 2,
        5000: 2,
    }
    assert {n for n, s in small.items() if s.skipped} == {5001, 20_000}
    assert all("scale" in s.skipped for s in small.values() if s.skipped)
    free = settings_of(root, scale="free")
    assert {s.spec["replicates"] for s in free} == {20}, "an entry may ask for fewer"
    assert not any(s.skipped for s in free)
    values = write({"one": entry}, scales={"small": SMALL | {"replicates": 9}})
    counts = {s.spec["axes"]["n"]: s.spec["replicates"] for s in settings_of(values)}
    assert [counts[n] for n in (100, 4000, 5000)] == [9, 2, 2]


def test_a_scale_may_leave_out_what_would_get_few_replicates(write):
    entry = TABLE | {"grid": {"n": [100, 1000, 2000]}}  # within 1e6: 100, 10 and 5 replicates
    limited = {"small": SMALL | {"replicates": 20, "least_replicates": 8}}
    skipped = [s.skipped for s in settings_of(write({"one": entry}, scales=limited))]
    assert skipped == ["", "", "not run at this scale"]
    five = write({"one": entry | {"replicates": 5}}, scales=limited)
    assert not any(s.skipped for s in settings_of(five)), "an entry may ask for fewer"


def test_an_entry_may_have_fewer_replicates_at_a_scale(write):
    fewer = TABLE | {"replicates": 10, "at_scale": {"small": {"replicates": 5}}}
    scales = {name: SMALL | {"replicates": 20, "least_replicates": 8} for name in ("small", "free")}
    root = write({"one": fewer}, scales=scales)
    for scale, replicates in (("small", 5), ("free", 10)):
        found = settings_of(root, scale=scale)
        assert [(s.spec["replicates"], s.skipped) for s in found] == [(replicates, "")] * 2
    root = write({"one": fewer | {"at_scale": {"small": {"replicates": 30}}}}, scales=scales)
    assert {s.spec["replicates"] for s in settings_of(root)} == {10}, "not more than it asks for"


def test_replicates_may_depend_on_the_setting(write):
    entry = TABLE | {"replicates": {"by": "n", 100: 30, 200: 4}}
    settings = project.load(write({"one": entry}), scale="free").entries["one"].settings
    assert [s.spec["replicates"] for s in settings] == [30, 4]
    assert list(tables.cells(settings, ["DR"])["runs"]) == [30, 30, 4, 4]


def test_an_entry_that_asks_for_one_replicate_gets_it(write):
    root = write({"one": TABLE | {"replicates": 1}})
    assert [(s.spec["replicates"], s.skipped) for s in settings_of(root)] == [(1, "")] * 2


def test_times_of_the_named_reading_within_the_limit(write):
    readings = {"plain": {"note": "."}, "other": {"note": "."}}
    entry = TABLE | {"readings": readings, "time": "other", "grid": {"n": [100, 1000, 1001]}}
    work = project.load(write({"one": entry}))
    timed = work.entries["one"].timed
    assert [s.name for s in timed] == ["other_100", "other_1000"]
    assert all(s.spec["metrics"] == ["time_s"] and s.spec["replicates"] == 1 for s in timed)
    assert work.setting("one", "other_100").spec["metrics"] == ["DR", "RMSE"]
    assert work.setting("one", "other_100", "time") == timed[0]
    assert "figures/one_time.csv" in work.figures("one")
    for entry in (TABLE, TABLE | {"readings": {}}):
        untimed = project.load(write({"one": entry}))
        assert untimed.figures("one") == ["figures/one.csv", "figures/one.tex"]
    said = [{"says": "it is", "fast": "SGDT", "than": ["SFSA"]}]
    assert "figures/one_claims.csv" in project.load(
        write({"one": TABLE | {"time_claims": said}})
    ).figures("one")


def test_an_axis_stands_for_its_value(write):
    """The same settings as with each value written twice: their seeds follow from the data."""
    grid = {"strength": [1, 0.5], "n": [100, 200]}
    twice = {"beta": {"by": "strength", 1: 1, 0.5: 0.5}, "alpha": 1}
    once = {"beta": {"axis": "strength"}, "alpha": 1}
    twice, once = (
        settings_of(write({"one": TABLE | {"grid": grid, "data": TABLE["data"] | data}}))
        for data in (twice, once)
    )
    assert once == twice
    assert [s.spec["data"]["beta"] for s in once] == [1, 1, 0.5, 0.5]
    method = {"class": "SFSARegressor", "replicates": {"by": "strength", 1: {"axis": "n"}, 0.5: 7}}
    entry = TABLE | {"grid": grid, "data": TABLE["data"] | {"beta": {"axis": "strength"}}}
    settings = settings_of(write({"one": entry | {"methods": {"SFSA": method}}}), scale="free")
    assert [s.spec["methods"]["SFSA"]["replicates"] for s in settings] == [100, 200, 7, 7]
    swept = {"class": "SFSARegressor", "sweep": {"axis": [1, 2]}}
    (one, *_) = settings_of(write({"one": TABLE | {"methods": {"SFSA": swept}}}))
    assert one.spec["methods"]["SFSA"] == swept, "a parameter of this name may be swept"


def test_a_scale_may_run_some_values_only(write):
    entry = TABLE | {"sweep": {"mu": [1, 5]}, "at_scale": {"small": {"n": [200], "mu": [5]}}}
    entry["at_scale"]["small"]["methods"] = ["SFSA"]
    root = write({"one": entry})
    small, free = (settings_of(root, scale=scale) for scale in ("small", "free"))
    assert [(s.name, s.skipped) for s in free] == [("plain_100", ""), ("plain_200", "")]
    assert [s.skipped for s in small] == ["not run at this scale", ""]
    assert [s.spec["sweep"]["mu"] for s in (small[1], free[1])] == [[5], [1, 5]]
    assert [[*s.spec["methods"]] for s in (small[1], free[1])] == [["SFSA"], ["SFSA", "SGDT"]]


def test_a_scale_may_leave_out_a_method_and_runs_those_that_users_add(write):
    left_out = {"small": {"methods": {"SGDT": None}}}
    root = write({"one": TABLE | {"at_scale": left_out}})
    mine = {"mine": {"class": "SIHTRegressor", "entries": ["one"]}}
    (root / "config/methods.yaml").write_text(yaml.safe_dump(mine))
    small, free = (settings_of(root, scale=scale)[0] for scale in ("small", "free"))
    assert [*small.spec["methods"]] == ["SFSA", "mine"]
    assert [*free.spec["methods"]] == ["SFSA", "SGDT", "mine"]
    unknown = TABLE | {"at_scale": {"small": {"methods": {"other": None}}}}
    with pytest.raises(ConfigurationError, match="no method 'other'"):
        project.load(write({"one": unknown}))


def test_a_scale_may_change_what_it_runs_of_a_method(write):
    few = {"replicates": {"by": "n", 100: 2, 200: 0}, "mu": 7}
    entry = TABLE | {"at_scale": {"small": {"methods": {"SFSA": few, "SGDT": None}}}}
    root = write({"one": entry})
    small, free = (settings_of(root, scale=scale) for scale in ("small", "free"))
    own = TABLE["methods"]["SFSA"]
    assert [s.spec["methods"] for s in small] == [
        {"SFSA": own | {"replicates": n, "mu": 7}} for n in (2, 0)
    ]
    assert all(s.spec["methods"]["SFSA"] == own for s in free)


def test_a_scale_may_run_some_readings_only(write):
    readings = {name: {"note": "As it is."} for name in ("plain", "other")}
    entry = TABLE | {"readings": readings, "at_scale": {"small": {"reading": ["other"]}}}
    skipped = [bool(s.skipped) for s in settings_of(write({"one": entry}), scale="small")]
    assert skipped == [True, True, False, False]


def test_a_scale_may_have_smaller_data_and_studies(write):
    named = {"function": "ofslib.reproduction.studies.shapes:shape", "size": {"axis": "n"}}
    study = named | {"size": 3}
    entry = TABLE | {
        "at_scale": {"small": {"data": {"p": 70}, "study": {"size": 3}}},
        "study": named,
    }
    root = write({"one": entry})
    small, free = (settings_of(root, scale=scale)[0].spec for scale in ("small", "free"))
    assert (small["data"]["p"], small["study"]) == (70, study)
    assert (free["data"]["p"], free["study"]["size"]) == (TABLE["data"]["p"], 100)


def test_only_the_committed_scale_replaces_the_figures_that_are_there(write):
    root = write({"one": TABLE})

    def places(scale):
        work = project.load(root, scale=scale)
        return [work.figures("one")[0], work.provenance, work.report]

    top = ["figures/one.csv", "figures/PROVENANCE.json", "report.html"]
    below = [f"figures/free/{name}" for name in ("one.csv", "PROVENANCE.json", "report.html")]
    assert (places("small"), places("free")) == (top, below), (
        "unless told: the scale of config.yaml"
    )
    config = root / "config/config.yaml"
    config.write_text(config.read_text() + "figures: free\n")
    assert places("free") == top
    assert places("small") == [name.replace("free", "small") for name in below]
    with pytest.raises(ConfigurationError, match="figures='huge' is none of"):
        project.load(root, figures="huge")


def test_a_wrong_row_of_the_table_of_data_sets_is_named(write):
    root = write({"one": REAL})
    table = root / "config/datasets.csv"
    table.write_text(table.read_text().replace("name,title", "name,titel", 1))
    with pytest.raises(ConfigurationError, match=r"config/datasets\.csv: .*'title'"):
        project.load(root)
    columns = table.read_text().splitlines()[0].replace("titel", "title")
    row = "mine,Mine,no_such_reader" + "," * (columns.count(",") - 2)
    table.write_text(f"{columns}\n{row}\n")
    with pytest.raises(ConfigurationError, match=r"datasets\.csv, row 1 \(mine\), column reader"):
        project.load(root)


OWN = "name,reader,train,task,n_train,label\nmine,csv,rows.csv,classification,100,y\n"


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ({}, "has no test rows; say how to split it"),
        ({"split": {"train": 100}}, "data.split: train and test are 101 rows, and mine has 100"),
        ({"split": {"train": 90, "test": 11}}, "data.split: train and test are 101 rows"),
        ({"split": {"test": 10}}, "must have train"),
        ({"split": {"train": 9, "tset": 1}}, "must have train, and may have test and order"),
        ({"split": {"train": 0.9}}, "train=0.9 must be a number of rows"),
        ({"split": {"train": 9, "order": "shuffled"}}, "order='shuffled' must be file or random"),
        ({"products": True}, "products: needs split"),
        ({"splitt": {"train": 9}}, "'splitt' is no part of the data"),
    ],
)
def test_a_split_that_cannot_be_is_refused(write, data, said):
    entry = changed(REAL, "grid/dataset", ["mine"])
    root = write({"one": {**entry, "data": data}})
    (root / "config/datasets.csv").write_text(OWN)
    with pytest.raises(ConfigurationError, match=re.escape(said)) as error:
        project.load(root)
    assert "tiny.yaml, one" in str(error.value)
    (root / "config/experiments/tiny.yaml").write_text(
        yaml.safe_dump({"one": {**entry, "data": {"split": {"train": 90, "test": 10}}}})
    )
    assert [s.name for s in settings_of(root)] == ["mine"]


def test_what_cannot_be_had_says_why_and_is_not_run(write):
    why = {"dataset": {"ecml18_dexter": "is lost"}}
    root = write({"one": changed(REAL, "grid/dataset", ["ecml18_arcene", "ecml18_dexter"])})
    whole = yaml.safe_load((root / "config/experiments/tiny.yaml").read_text())
    whole["one"]["unavailable"] = why
    (root / "config/experiments/tiny.yaml").write_text(yaml.safe_dump(whole))
    assert [(s.name, s.skipped) for s in settings_of(root)] == [
        ("ecml18-arcene", ""),
        ("ecml18-dexter", "is lost"),
    ]
    assert project.load(root).datasets == ["ecml18_arcene"]


def test_an_entry_may_show_the_runs_of_another(write):
    second = {k: v for k, v in REAL.items() if k in ("source", "title", "form", "notebook")}
    work = use(write({"one": REAL, "two": second | {"results": "one"}}))
    assert work.inputs("two") == work.inputs("one") != []
    assert work.entries["two"].settings == []
    assert work.figures("two") == [f"figures/two.{end}" for end in ("csv", "svg", "pdf")]


def test_changes_override_the_file(write):
    root = write({"one": TABLE})
    work = project.load(root, scale="free", seed=7)
    assert (work.scale, work.seed, work.real_data) == ("free", 7, "none")
    assert settings_of(root, seed=7)[0].spec["seed"] == 7


def test_names_do_not_change_with_scale_seed_or_neighbours(write):
    alone = settings_of(write({"one": TABLE}))
    beside = settings_of(write({"zero": REAL, "one": TABLE}), scale="free", seed=9)
    assert [s.name for s in alone] == [s.name for s in beside] == ["plain_100", "plain_200"]


def test_specs_are_plain_data(write):
    for setting in settings_of(write({"one": TABLE})):
        assert json.loads(json.dumps(setting.spec)) == setting.spec


# -------------------------------------------------- the configuration that we ship


@pytest.fixture(scope="module", params=SCALES)
def work(request):
    return shipped.load(scale=request.param)


def test_shipped_configuration_can_be_used(work):
    assert set(work.entries) == set(ENTRIES)
    strict.check(work)


def test_shipped_setting_names_are_unique_and_harmless(work):
    files = [
        str(work.result(entry.name, setting.name)).casefold()
        for entry in work.entries.values()
        for setting in entry.settings
    ]
    assert len(set(files)) == len(files)
    names = {s.name for e in work.entries.values() for s in e.settings}
    assert not [n for n in names if not n or set(n) - set(re.sub("[^A-Za-z0-9_-]", "", n))]


def test_shipped_settings_are_the_same_at_every_scale():
    names = {
        scale: [(e.name, s.name) for e in shipped.load(scale=scale).entries.values()
                for s in e.settings]
        for scale in SCALES
    }  # fmt: skip
    assert len({tuple(n) for n in names.values()}) == 1


def test_some_setting_of_every_entry_is_run_at_every_scale(work):
    empty = {n for n, e in work.entries.items() if e.settings and not e.to_run}
    # Their smallest setting is more than the smallest scale generates twice.
    large = {"dissertation_table_4_2", "dissertation_figure_5_5"}
    assert empty <= (large if work.scale == "smoke" else set())


def test_what_is_compared_untuned_are_all_classifiers_of_rows_by_their_defaults():
    given = SHIPPED.entries["untuned_one_pass"].spec["methods"].values()
    ours = [method for method in given if ":" not in method["class"]]
    public = [getattr(ofslib, name) for name in dir(ofslib) if name.endswith("Classifier")]
    rows = {cls.__name__ for cls in public if issubclass(cls, RowStream)}
    assert all(set(method) <= {"class", "replicates"} for method in ours)
    assert {method["class"] for method in ours} == rows


@pytest.mark.parametrize("name", ENTRIES)
def test_shipped_entry_has_its_files(name):
    entry = SHIPPED.entries[name]
    assert (ROOT / f"notebooks/{entry.spec['notebook']}.ipynb").is_file()
    published = SHIPPED.published(name)
    assert published is None or (ROOT / published).is_file()


# Tables of words; their parameters name the methods that are measured for them.
WORDS = [n for n in ENTRIES if SHIPPED.entries[n].spec["notebook"] == "complexities"]


@pytest.mark.parametrize("name", WORDS)
def test_published_words_belong_to_the_entry(name):
    table, given = pd.read_csv(ROOT / SHIPPED.published(name)), SHIPPED.entries[name].spec
    measured = SHIPPED.source(name).spec["methods"]
    assert given["parameters"]["ours"].keys() <= set(table["method"])
    assert {ours for labels in given["parameters"]["ours"].values() for ours in labels} <= {
        *measured
    }
    columns, elsewhere = (given["parameters"][key].keys() for key in ("columns", "elsewhere"))
    assert set(table["metric"]) == columns | elsewhere and not columns & elsewhere
    assert not table.duplicated(["method", "metric"]).any()
    assert table.loc[table["value"].isna(), "note"].astype(str).str.match("dash|unreadable").all()


def test_the_page_for_users_methods_lists_all_tables_that_compare_methods():
    text = (ROOT / "docs/extending.md").read_text(encoding="utf-8")
    lists = re.findall(r"  entries:\s+\[(.*?)\]", text, re.S)[1:]  # the first is an example
    tables = {"Regressor": set(), "Classifier": set()}
    for name, entry in SHIPPED.entries.items():
        spec = entry.spec
        if spec["form"] == "table" and spec["methods"] and not spec["study"]:
            classes = {method["class"] for method in spec["methods"].values() if method}
            (task,) = [task for task in tables if any(cls.endswith(task) for cls in classes)]
            tables[task].add(name)
    assert [set(re.findall(r"\w+", names)) for names in lists] == [*tables.values()]


def test_the_growth_of_every_estimator_is_measured():
    classes = {m["class"] for m in SHIPPED.entries["growth_of_costs"].spec["methods"].values()}
    bare = {re.sub("Classifier$|Regressor$", "", name) for name in classes}
    ours = {n for names in ofslib.ESTIMATORS.values() for n in names}
    # Knockoffs need more rows than twice the features; the averages there have fewer. For thousands
    # of features the other is not made.
    others = {"Knockoffs", "RenewableFSA"}
    assert {re.sub("Classifier$|Regressor$", "", name) for name in ours} - others <= bare


@pytest.mark.parametrize("name", [n for n in ENTRIES if SHIPPED.published(n) and n not in WORDS])
def test_published_numbers_belong_to_the_entry(name):
    table = pd.read_csv(ROOT / SHIPPED.published(name))
    axes = [c for c in table if c not in ("method", "metric", "value", "note")]
    ours = pd.DataFrame([s.spec["axes"] for s in SHIPPED.shown(name)])
    same = {axis for axis in ours if ours[axis].nunique() == 1}
    assert set(ours) - {"reading"} - same <= set(axes) <= set(ours) - {"reading"}
    for axis in axes:
        assert set(ours[axis]) == set(table[axis]), axis
    shapes = {"points", "features", "n_train", "n_test", "n_features", "density"}
    assert set(table["metric"]) <= {*METRICS, "time_s", *shapes}
    assert set(SHIPPED.source(name).spec["metrics"]) <= set(table["metric"])
    # A table of data sets has no methods.
    methods = set(SHIPPED.source(name).spec["methods"]) if "method" in table else set()
    assert set(table.get("method", ())) <= methods <= set(looks.METHODS)
    assert not table.duplicated(table.columns.drop(["value", "note"])).any()
    assert table.loc[table["value"].isna(), "note"].notna().all(), "a gap needs its reason"


def test_no_published_file_is_forgotten():
    here = project.load(ROOT)
    named = {here.published(name) for name in here.entries}
    there = {f"config/published/{f.name}" for f in (ROOT / "config/published").glob("*")}
    assert there == named - {None}


def test_every_notebook_is_used():
    used = {entry.spec["notebook"] for entry in project.load(ROOT).entries.values()}
    there = {file.stem for file in (ROOT / "notebooks").glob("*.ipynb")}
    assert there == used | {"run", "index"}


def test_every_metric_of_the_schema_can_be_measured_and_shown():
    schema = yaml.safe_load((ROOT / "workflow/schemas/entries.schema.yaml").read_text("utf-8"))
    metrics = schema["additionalProperties"]["properties"]["metrics"]["items"]["enum"]
    # What is seen of models while they learn has no function of a fitted model.
    assert set(metrics) - {"regret", "time_s"} == set(METRICS)
    assert set(EXPECTED) <= set(METRICS)
    assert set(metrics) <= set(looks.TITLES)


# -------------------------------------------------- what is imported


def test_importing_the_project_imports_no_numba():
    code = "import sys; from ofslib.reproduction import project as p; p.load(); print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT
    )
    loaded = set(done.stdout.split())
    assert "ofslib.reproduction.project" in loaded
    heavy = {"numba", "ofslib._jit", "sklearn", "scipy", "matplotlib", "pooch"}
    assert not loaded & heavy


def test_a_run_imports_nothing_that_draws():
    """Each setting is a process of its own."""
    cells = json.loads((ROOT / "notebooks/run.ipynb").read_text(encoding="utf-8"))["cells"]
    sources = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    (code,) = [source for source in sources if "from ofslib.reproduction import" in source]
    code = f"import sys\n{code}\nprint(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert "ofslib.reproduction.tables" in loaded and not loaded & {"matplotlib", "seaborn"}


# -------------------------------------------------- what an entry shows, times, and leaves out


@pytest.mark.parametrize(
    ("key", "change"), [("test_rows=null", {"test_rows": None}), ("track.first", {"track": 1})]
)
def test_what_a_design_cannot_do_names_those_that_can(write, key, change):
    if "track" in change:
        change = {"track": {"first": 10, "per_decade": 2}}
    with pytest.raises(ConfigurationError, match=rf"{key} needs data .*\['equicorrelated'\]"):
        use(write({"one": TABLE | {"data": {"simulate": "sparse_rows", "p": 9, "k": 2}} | change}))


def test_a_method_of_ones_own_joins_the_entries_that_it_names(write):
    mine = {"class": "SGDTRegressor", "entries": ["one", "three"], "learning_rate": 0.5}
    part = {key: TABLE[key] for key in ("source", "title", "form", "notebook")}
    entries = {name: TABLE for name in ("one", "two", "three")}
    work = use(write(entries | {"four": part | {"results": "one"}}, methods={"mine": mine}))
    has = {name: "mine" in entry.spec["methods"] for name, entry in work.entries.items()}
    assert has == {"one": True, "two": False, "three": True, "four": False}
    added = {s.spec["methods"]["mine"]["learning_rate"] for s in work.shown("four")}
    assert added == {0.5}
    plain = use(write(entries, methods={}))
    assert plain.entries["two"].settings == work.entries["two"].settings


@pytest.mark.parametrize(
    ("change", "wrong"),
    [
        ({"timed": "never"}, "timed: 'never' is not one of"),
        ({"replicates": "ten"}, "replicates: 'ten' is not of type 'integer'"),
        ({"replicates": {"by": "n", 100: 3, 200: "ten"}}, "replicates.200: 'ten' is not"),
        ({"sweep": 3}, "sweep: 3 is not of type 'object'"),
        ({"sweep": {"k": 5}}, "sweep.k: 5 is not of type 'array'"),
        ({"sweep": {"by": "n", 100: {"k": 5}}}, "sweep.100.k: 5 is not of type 'array'"),
        ({"at": 3}, "at: 3 is not of type 'object'"),
    ],
)
def test_a_methods_own_keys_are_checked_wherever_it_stands(write, change, wrong):
    mine = {"class": "SGDTRegressor"} | change
    reading = {"plain": {"note": ".", "methods": {"SGDT": change}}}
    places = {
        "one.methods.mine": ({"methods": {"mine": mine}}, {}),
        "one.readings.plain.methods.SGDT": ({"readings": reading}, {}),
        "methods.yaml, mine": ({}, {"mine": mine | {"entries": ["one"]}}),
    }
    for where, (entry, methods) in places.items():
        root = write({"one": TABLE | entry}, methods=methods)
        with pytest.raises(ConfigurationError, match=re.escape(f"{where}.{wrong}")):
            project.load(root)


def test_keys_of_a_method_may_depend_on_axes(write):
    inner = {"by": "n", 100: 3, 200: 0}
    mine = {"class": "SGDTRegressor", "replicates": {"by": "m", "a": inner, "b": 5}}
    mine |= {"sweep": {"by": "n", 100: {"k": [1, 2]}, 200: {"k": []}}}
    entry = TABLE | {"methods": {"mine": mine}, "grid": {"m": ["a", "b"], "n": [100, 200]}}
    methods = [s.spec["methods"]["mine"] for s in settings_of(write({"one": entry}), scale="free")]
    assert [m["replicates"] for m in methods] == [3, 0, 5, 5]
    assert [m["sweep"]["k"] for m in methods] == [[1, 2], []] * 2


def test_the_commented_example_may_be_copied_below_the_comments(write):
    lines = (ROOT / "config/methods.yaml").read_text(encoding="utf-8").splitlines(True)
    comments = "".join(line for line in lines if line.startswith("#"))
    assert "mine" not in use(write({"one": TABLE}, methods=comments)).entries["one"].spec["methods"]
    mine = "mine:\n  class: SGDTRegressor\n  entries: [one]\n"
    work = use(write({"one": TABLE}, methods=comments + mine))
    assert work.entries["one"].spec["methods"]["mine"] == {"class": "SGDTRegressor"}


@pytest.mark.parametrize(
    ("label", "change", "wrong"),
    [
        ("mine", {"entries": ["oen"]}, "'oen' is none of .'one'."),
        ("SFSA", {}, "one has such a method already"),
        ("mine", {"entries": []}, "methods.yaml, mine.entries"),
    ],
)
def test_a_method_that_cannot_join_is_named(write, label, change, wrong):
    mine = {"class": "SGDTRegressor", "entries": ["one"]} | change
    with pytest.raises(ConfigurationError, match=wrong) as error:
        use(write({"one": TABLE}, methods={label: mine}))
    assert label in str(error.value)


def test_a_study_is_a_run_with_its_parameters(write):
    study = {"function": "ofslib.reproduction.tracking:drift", "runs": {"by": "n", 100: 3, 200: 4}}
    entry = {key: value for key, value in TABLE.items() if key not in ("methods", "metrics")}
    settings = use(write({"one": entry | {"study": study}})).entries["one"].settings
    assert [s.spec["study"]["runs"] for s in settings] == [3, 4]


def test_only_shows_some_settings_of_another_entry(write):
    grid = {"n": [100, 200], "signal": ["strong", "weak"]}
    data = TABLE["data"] | {"beta": {"by": "signal", "strong": 1, "weak": 0.1}}
    part = {key: TABLE[key] for key in ("source", "title", "form", "notebook")}
    part |= {"results": "one", "only": {"n": [200]}}
    work = project.load(write({"one": TABLE | {"grid": grid, "data": data}, "two": part}))
    assert [s.name for s in work.shown("two")] == ["plain_200_strong", "plain_200_weak"]
    names = ["plain_200_strong.csv", "plain_200_weak.csv"]
    assert [Path(file).name for file in work.inputs("two")] == names
    with pytest.raises(ConfigurationError, match=r"two: only: 'm' is none of the axes \['n'"):
        use(write({"one": TABLE, "two": part | {"only": {"m": [1]}}}))
    with pytest.raises(ConfigurationError, match="two: only: n=999 is none of 100, 200"):
        use(write({"one": TABLE, "two": part | {"only": {"n": [100, 999]}}}))


def test_a_fault_is_that_of_the_entry_that_it_stands_in(write):
    part = {key: TABLE[key] for key in ("source", "title", "form", "notebook")}
    wrong = changed(TABLE, "data/beta", {"by": "n", "100": 1})
    with pytest.raises(ConfigurationError, match=r"tiny\.yaml, two: beta has no value for n=100"):
        project.load(write({"one": part | {"results": "two"}, "two": wrong}))


def test_results_are_those_of_an_entry_that_runs_something(write):
    part = {key: TABLE[key] for key in ("source", "title", "form", "notebook")}
    entries = {"one": TABLE, "two": part | {"results": "one"}, "three": part | {"results": "two"}}
    with pytest.raises(ConfigurationError, match=r"three: results='two' is none of \['one'\]"):
        project.load(write(entries))


@pytest.mark.parametrize(
    ("timed", "in_results", "in_times"),
    [(True, True, True), (False, True, False), ("only", False, True)],
)
def test_a_method_may_be_left_out_of_times_or_of_all_else(write, timed, in_results, in_times):
    methods = TABLE["methods"] | {"mine": {"class": "SGDTRegressor", "timed": timed}}
    work = project.load(write({"one": TABLE | {"methods": methods, "time": "plain"}}))
    entry = work.entries["one"]
    assert ("mine" in entry.settings[0].spec["methods"]) == in_results
    assert ("mine" in entry.times[0].spec["methods"]) == in_times


def test_times_are_measured_of_the_averages_that_are_sampled_but_limited_by_the_rows(write):
    data = TABLE["data"] | {"averages": "sampled"}
    for most, skipped in ((1e9, ""), (10, "not timed at this scale")):
        scales = {"small": SMALL | {"timing_values": most}}
        root = write({"one": TABLE | {"data": data, "time": "plain"}}, scales=scales)
        (one, *_) = project.load(root).entries["one"].times
        assert one.spec["data"]["averages"] == "sampled" and one.skipped == skipped


def test_a_value_may_depend_on_two_axes(write):
    inner = {"by": "n", 100: 3, 200: 4}
    methods = {"SGDT": {"class": "SGDTRegressor", "k": {"by": "m", "a": inner, "b": 5}}}
    entry = TABLE | {"methods": methods, "grid": {"m": ["a", "b"], "n": [100, 200]}}
    work = project.load(write({"one": entry}))
    found = [s.spec["methods"]["SGDT"]["k"] for s in work.entries["one"].settings]
    assert found == [3, 4, 5, 5]


def test_a_reading_may_change_the_tuning(write):
    tune = {"score": "online", "at": {"k": 5}, "grid": {"learning_rate": [0.1]}}
    readings = {"one": {"note": "."}, "two": {"note": ".", "tune": {"at": {"k": 9}}}}
    work = project.load(write({"one": REAL | {"tune": tune, "readings": readings}}))
    one, two = (s.spec["tune"] for s in work.entries["one"].settings)
    assert one == tune
    assert two == tune | {"at": {"k": 9}}


def test_a_scale_may_run_fewer_replicates_of_studies(write):
    study = {"study": {"function": "ofslib.reproduction.tracking:drift"}}
    root = write(
        {"one": TABLE, "two": TABLE | study}, scales={"small": FREE | {"study_replicates": 7}}
    )
    entries = project.load(root).entries
    assert [entries[name].settings[0].spec["replicates"] for name in ("one", "two")] == [20, 7]


def test_a_scale_may_run_the_first_settings_only(write):
    grid = {"n": [10, 20, 30, 40]}
    readings = {"plain": {"note": "."}, "other": {"note": "."}}
    root = write({"one": TABLE | {"grid": grid, "readings": readings}})
    scales = yaml.safe_load((root / "config/scales.yaml").read_text())
    name = next(iter(scales))
    for settings, expected in ((2, [10, 20] * 2), (None, [10, 20, 30, 40] * 2)):
        scales[name]["settings"] = settings
        (root / "config/scales.yaml").write_text(yaml.safe_dump(scales))
        entry = project.load(root, scale=name).entries["one"]
        assert [s.spec["data"]["n"] for s in entry.to_run] == expected
        assert {s.skipped for s in entry.settings} <= {"", "not run at this scale"}


def test_what_a_scale_leaves_out_is_neither_read_nor_timed(write):
    scales = {"small": SMALL | {"timing_values": 1e9}}
    entry = TABLE | {"grid": {"n": [100, 5001]}, "time": "plain"}
    work = project.load(write({"one": entry}, scales=scales))
    for kind in ("", "time"):
        assert [bool(s.skipped) for s in work.shown("one", kind)] == [False, True]
        assert len(work.inputs("one", kind)) == 1
    assert [s.spec["metrics"] for s in work.shown("one", "time")] == [["time_s"]] * 2


def test_an_entry_without_readings_is_timed_if_it_asks_for_it(write):
    entry = TABLE | {"readings": {}, "time": True}
    work = project.load(write({"one": entry}))
    assert [s.spec["metrics"] for s in work.shown("one", "time")] == [["time_s"]] * 2
    assert {"figures/one_time.csv", "figures/one_time.tex"} <= set(work.figures("one"))
    untimed = {key: value for key, value in entry.items() if key != "time"}
    assert not project.load(write({"one": untimed})).shown("one", "time")
    with pytest.raises(ConfigurationError, match=r"time='plain' must be one of \[True\]"):
        project.load(write({"one": entry | {"time": "plain"}}))
    # What would be shown nowhere is not measured
    for other in (entry | {"form": "figure"}, entry | {"results": "one"}):
        with pytest.raises(ConfigurationError, match=r"two: .*time=True must be one of \[\]"):
            project.load(write({"one": entry, "two": other}))


def test_one_replicate_may_be_all_that_a_scale_wants(write):
    root = write({"one": TABLE}, scales={"small": SMALL | {"replicates": 1}})
    assert [(s.spec["replicates"], s.skipped) for s in settings_of(root)] == [(1, "")] * 2


def test_a_slow_method_is_timed_once_and_kept_near_the_limit(write):
    slow = {"class": "SGDTClassifier", "replicates": 3}
    data = {"simulate": "sparse_rows", "p": 100, "k": 5, "nonzeros": 5}
    grid = {"n": [1000, 5000, 20_000]}  # of 100 features: 10, 2 and not one within 1e6
    entry = TABLE | {"methods": {"slow": slow}, "data": data, "grid": grid, "time": "plain"}
    entry = project.load(write({"one": entry})).entries["one"]
    assert [s.spec["methods"]["slow"]["replicates"] for s in entry.settings] == [3, 2, 1]
    assert {s.spec["methods"]["slow"]["replicates"] for s in entry.timed} == {1}
