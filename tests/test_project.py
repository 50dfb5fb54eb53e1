"""The configuration: what is refused, what an entry means, and what is shipped."""

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
from ofslib.reproduction import looks, project, tables
from ofslib.reproduction.configuration import EntryKeys
from ofslib.reproduction.experiment import EXPECTED
from ofslib.reproduction.project import ConfigurationError
from ofslib.streams.row_stream import RowStream

ROOT = Path(__file__).parents[1]
SCALES = project.scales(shipped.ROOT)
SHIPPED = shipped.load()
ENTRIES = sorted(SHIPPED.entries)

SMALL = {"replicates": 2, "values": 1e6, "run_values": None, "tune_values": None}
SMALL |= {"timing_repeats": 1, "timing_values": 1e5}
FREE = SMALL | {"values": None, "replicates": 50}
CONFIG = {"scale": "small", "real_data": "none", "seed": 1}

PAGE = {"source": "Doe (2027), Table 1", "title": "What it shows", "form": "table"}
PAGE |= {"notebook": "recovery_table"}
TABLE = PAGE | {
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
REAL = PAGE | {
    "form": "figure",
    "notebook": "accuracy_by_budget",
    "grid": {"dataset": ["ecml18_dexter"]},
    "methods": {"OFS": {"class": "FOFSClassifier"}},
    "metrics": ["accuracy"],
}
STUDY = {"function": "ofslib.reproduction.tracking:drift"}


@pytest.fixture
def write(tmp_path):
    """Return a function that makes a project of these entries and of the changes to other files."""
    shutil.copytree(ROOT / "notebooks", tmp_path / "notebooks")
    (tmp_path / "config/published").mkdir(parents=True)
    (tmp_path / "config/experiments").mkdir()
    (tmp_path / "config/datasets.csv").write_text("name,reader,train,task\n")

    def make(entries, **others):
        contents = {"scales": {"small": SMALL, "free": FREE}, "methods": {}, "config": CONFIG}
        for name, content in (contents | {"experiments/tiny": entries} | others).items():
            text = content if isinstance(content, str) else yaml.safe_dump(content, sort_keys=False)
            (tmp_path / f"config/{name}.yaml").write_text(text, encoding="utf-8")
        return tmp_path

    return make


def changed(entry, place, value):
    """A copy of an entry with another value at `place`, as "data/p"."""
    entry = json.loads(json.dumps(entry))
    *path, last = place.split("/")
    inner = entry
    for key in path:
        inner = inner[key]
    inner[last] = value
    return entry


def settings_of(root, entry="one", **changes):
    return project.load(root, **changes).entries[entry].settings


def refused(root, *names, **changes):
    """The message of the error that loading gives, in which all these names stand."""
    with pytest.raises(ConfigurationError) as error:
        project.load(root, **changes)
    message = str(error.value)
    assert [name for name in names if name not in message] == [], message
    return message


# -------------------------------------------------- what is refused


@pytest.mark.parametrize(
    ("file", "content", "names"),
    [
        ("config", CONFIG | {"sead": 1}, ["config.yaml", "'sead'", "did you mean 'seed'"]),
        ("config", {"scale": "small", "real_data": "none"}, ["config.yaml, seed: is missing"]),
        ("config", CONFIG | {"real_data": "perhaps"}, ["real_data", "'perhaps'", "'auto'"]),
        ("config", CONFIG | {"seed": -1}, ["config.yaml, seed", "-1"]),
        ("config", CONFIG | {"scale": "huge"}, ["config.yaml", "scale='huge'", "small"]),
        ("config", "scale: [", ["config.yaml"]),
        ("config", "", ["config.yaml, scale: is missing"]),
        ("scales", {"small": SMALL | {"valeus": 1}}, ["scales.yaml, small", "mean 'values'"]),
        ("scales", {"small": {"values": None}}, ["scales.yaml, small.run_values: is missing"]),
        ("scales", {"small": SMALL | {"replicates": 0}}, ["scales.yaml, small.replicates"]),
        ("scales", {"small": SMALL | {"values": float("inf")}}, ["scales.yaml, small.values"]),
        ("methods", {"mine": {"class": "A", "entries": ["oen"]}}, ["mine", "'oen' is none of"]),
        ("methods", {"SFSA": {"class": "A", "entries": ["one"]}}, ["SFSA: one has such"]),
        ("methods", {"mine": {"class": "A", "entries": []}}, ["methods.yaml, mine.entries"]),
        ("methods", {"mine": {"entries": ["one"]}}, ["methods.yaml, mine.class: is missing"]),
        ("experiments/two", {"Table 1": TABLE}, ["two.yaml, Table 1: ", "'Table 1'"]),
        ("experiments/two", {"one": TABLE}, ["two.yaml: entry one stands in", "tiny.yaml"]),
        ("experiments/two", yaml.safe_dump({"a": TABLE}) * 2, ["two.yaml", "'a' is there twice"]),
    ],
)  # fmt: skip
def test_wrong_settings_name_file_and_key(write, file, content, names):
    refused(write({"one": TABLE}, **{file: content}), *names)


NO_LOW_RANK = {"simulate": "sparse_rows", "p": 9, "k": 2}
WRONG = [
    ("metric", ["DR"], "there is no key 'metric'; did you mean 'metrics'?"),
    ("metrics", ["DR", "RSME"], "metrics.1: "),
    ("form", "tabel", "form: Input should be 'table' or 'figure', not 'tabel'"),
    ("passes", "2d/m", "passes: "),
    ("replicates", 0, "replicates: "),
    ("replicates", 2.0, "replicates: Input should be a valid integer, not 2.0"),
    ("replicates", True, "replicates: "),
    ("replicates", {"by": "n", 100: 0, 200: 1}, "replicates: "),
    ("time_limit", 0, "time_limit: "),
    ("test_rows", 1e3, "test_rows: "),
    ("tune", {"score": "online", "gird": {}}, "tune: there is no key 'gird'; did you mean 'grid'?"),
    ("tune", {"grid": {"mu": []}}, "tune.grid.mu: "),
    ("track", {"first": 3, "level": 2}, "track: give first and per_decade"),
    ("readings/plain/methds", {}, "readings.plain: there is no key 'methds'"),
    ("readings/plain/methods", {"SFAS": {"mu": 1}}, "readings.plain: method='SFAS' is none of"),
    ("readings/plain/data", {"alhpa": 1}, "data: there is no key 'alhpa'; did you mean 'alpha'?"),
    ("readings/plain/fitted", {"SFAS": 1}, "readings.plain.fitted: method='SFAS' is none of"),
    ("data/alhpa", 1, "'alhpa'"),
    ("data/simulate", "equicorelated", "data.simulate: "),
    ("data/simulate", ["equicorrelated"], "data.simulate: "),
    ("data/task", "regresion", "regresion"),
    ("data", {"simulate": "equicorrelated"}, "'p' and 'k'"),
    ("data", NO_LOW_RANK | {"averages": "sampled"}, "averages=sampled needs data with `simulate`"),
    ("data/averages", "drawn", "data.averages: "),
    ("data/p", "1e4", "p='1e4' must be a whole number"),
    ("data/alpha", [1, 2], "alpha=[1, 2] must be a number"),
    ("data/alpha", float("inf"), "alpha=inf must be a number"),
    ("data/beta", [1, 2, 3], "beta=[1, 2, 3] must be a number or a pair"),
    ("data/beta", {"by": "n", "100": 1}, "beta has no value for n=100"),
    ("data/beta", {"by": "n", 100: 1, 200: 1, 300: 1}, "by: n: n=300 is none of 100, 200"),
    ("grid", {"n": []}, "grid.n: "),
    ("grid", {"n": [100.0]}, "data.n: Input should be a valid integer, not 100.0"),
    ("grid", {"n": [0]}, "data.n: "),
    ("grid", {"n": [100], "signl": ["weak"]}, "data: there is no key 'signl'"),
    ("grid", {"alpha": [1]}, "data.n: is missing"),
    ("grid", [{"n": [100, 200]}, {"n": [200]}], "grid has 2 points that are called 'plain_200'"),
    ("methods/SFSA/warmup", {"by": "m", "100": 0}, "warmup: 'm' is none of the axes"),
    ("methods/SFSA/warmup", {"axis": "m"}, "warmup: 'm' is none of the axes"),
    ("methods/SFSA/mu", {"by": "reading", "plain": 1, "plian": 2}, "reading='plian' is none"),
    ("methods/mine", {"k": 3}, "methods.mine.class: is missing"),
    ("methods/mine", None, "methods.mine: "),
    ("methods/mine", {"class": "SGDTClassifier"}, "the data are for regression: SGDTRegressor"),
    ("time", "plian", "time='plian' must be one of ['plain']"),
    ("time", True, "time=True must be one of ['plain']"),
    ("at_scale", {"smal": {"n": [100]}}, "at_scale: 'smal' is none of"),
    ("at_scale", {"small": {"m": [100]}}, "at_scale: 'm' is none of the axes ['n', 'reading']"),
    ("at_scale", {"small": {"n": ["100"]}}, "at_scale: n='100' is none of 100, 200"),
    ("at_scale", {"small": {"methods": ["other"]}}, "at_scale.methods: method='other' is none"),
    ("at_scale", {"small": {"methods": {"other": None}}}, "method='other' is none of"),
    ("unavailable", {"m": {"100": "lost"}}, "unavailable: 'm' is none of the axes"),
    ("unavailable", {"n": {"100": "lost"}}, "unavailable: n='100' is none of 100, 200"),
    ("weak_baselines", {"SFSAA": "why"}, "weak_baselines: method='SFSAA' is none of"),
    ("discussed", [{"method": "SFSAA", "why": "x"}], "discussed: method='SFSAA' is none of"),
    ("discussed", [{"n": 100, "why": " "}], "discussed.0.why: "),
    ("discussed", [{"n": [], "why": "x"}], "discussed.0.n: "),
    ("time_claims", [{"says": "x", "grows": ["SGTD"]}], "time_claims.grows: method='SGTD'"),
    ("time_claims", [{"says": "x", "fast": "SGDT"}], "time_claims.0: give fast and than"),
    ("only", {"n": []}, "only.n: "),
    ("only", {"n": [100, 999]}, "only: n=999 is none of 100, 200"),
    ("parameters", {"measured": "rows.csv"}, "there is no rows.csv"),
    ("notebook", "recovery_tabel", "there is no notebooks/recovery_tabel.ipynb"),
    ("published", "no_such_table", "there is no config/published/no_such_table.csv"),
    ("results", "two", "results='two' is none of ['one']"),
    ("study", {"of": "ofslib.reproduction.tracking:drift"}, "study.function: is missing"),
    ("track", {"every": 5, "last": 10}, "track.every needs data with `simulate` one of"),
]  # fmt: skip


@pytest.mark.parametrize(("place", "value", "said"), WRONG, ids=lambda value: str(value)[:40])
def test_a_wrong_entry_names_file_entry_and_key(write, place, value, said):
    refused(write({"one": changed(TABLE, place, value)}), "config/experiments/tiny.yaml, one", said)


@pytest.mark.parametrize(
    "change",
    [
        {"replicates": "ten"},
        {"replicates": {"by": "n", 100: 3, 200: "ten"}},
        {"timed": "never"},
        {"sweep": 3},
        {"sweep": {"k": 5}},
        {"sweep": {"by": "n", 100: {"k": 5}}},
        {"at": 3},
    ],
    ids=str,
)
def test_a_methods_own_keys_are_checked_wherever_it_stands(write, change):
    ((key, _),) = change.items()
    mine = {"class": "SGDTRegressor"} | change
    reading = {"plain": {"note": ".", "methods": {"SGDT": change}}}
    scale = {"small": {"methods": {"SGDT": change}}}
    places = {
        "one.methods.mine": ({"methods": {"mine": mine}}, {}),
        "one.readings.plain.methods.SGDT": ({"readings": reading}, {}),
        "one.at_scale.small.methods.SGDT": ({"at_scale": scale}, {}),
        "methods.yaml, mine": ({}, {"mine": mine | {"entries": ["one"]}}),
    }
    for where, (entry, methods) in places.items():
        refused(write({"one": TABLE | entry}, methods=methods), f"{where}.{key}")


TINY = yaml.safe_dump({"one": TABLE})


@pytest.mark.parametrize("label", ["1", "1.5", "0x1F", "12:30", "null", "~", "yes", "off", "true"])
@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("experiments/tiny", TINY.replace("SGDT:", "LABEL:")),
        ("experiments/tiny", TINY.replace("plain:", "LABEL:")),
        ("experiments/other", "LABEL: {}"),
        ("methods", "LABEL: {class: SGDTRegressor, entries: [one]}"),
    ],
    ids=["method", "reading", "entry", "added method"],
)
def test_a_name_that_yaml_takes_for_something_else_is_refused(write, file, text, label):
    root = write({"one": TABLE}, **{file: text.replace("LABEL", label)})
    refused(root, f"config/{file}.yaml", "quote")
    if file != "experiments/other":
        project.load(write({"one": TABLE}, **{file: text.replace("LABEL", f"'{label}'")}))


def test_a_date_is_a_text(write):
    entry = yaml.safe_dump({"one": TABLE}).replace("warmup: 0", "warmup: 2020-01-01")
    assert settings_of(write(entry))[0].spec["methods"]["SFSA"]["warmup"] == "2020-01-01"


def test_all_faults_are_told_at_once(write):
    wrong = changed(TABLE, "results", "three") | {"time": "other"}
    message = refused(write({"one": changed(TABLE, "only", {"m": [1]}), "two": wrong}))
    assert [line.split(": ")[0] for line in message.splitlines()] == [
        f"config/experiments/tiny.yaml, {name}" for name in ("one", "two")
    ]


def test_what_is_by_an_axis_may_have_values_that_other_entries_have(write):
    mine = {"class": "sklearn.linear_model:SGDRegressor", "entries": ["one", "two"]}
    mine |= {"eta0": {"by": "n", 100: 1, 200: 1, 300: 1}}
    entries = {"one": TABLE, "two": TABLE | {"grid": {"n": [300]}}}
    assert len(project.load(write(entries, methods={"mine": mine})).entries) == 2
    mine["eta0"] |= {400: 1}
    refused(write(entries, methods={"mine": mine}), "one: by: n: n=400 is none of 100, 200, 300")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("m,method,metric,value,note\n100,SFSA,DR,1,\n", "the column 'm'"),
        ("n,method,value,note\n100,SFSA,1,\n", "the column 'metric'"),
        ("n,metric,value,note\n100,DR,1,\n", "the column 'method'"),
        ("n,method,metric,value,note\n100,A,DR,1,\n", "line 2: method 'A' is none of"),
        ("n,method,metric,value,note\n110,SFSA,DR,1,\n", "n '110' is none of ['100', '200']"),
        ('n,method,metric,value,note\n100,SFSA,DR,"0,9",\n', "value '0,9' is no number"),
        ("n,method,metric,value,note\n100,SFSA,DR,inf,\n", "value 'inf' is no number"),
        ("n,method,metric,value,note\n" + "100,SFSA,DR,1,\n" * 2, "2 lines are of the cell 100"),
    ],
)
def test_printed_numbers_say_of_which_cell_they_are(write, text, said):
    root = write({"one": TABLE | {"published": "mine"}})
    file = root / "config/published/mine.csv"
    file.write_text(text, encoding="utf-8")
    refused(root, "tiny.yaml, one: config/published/mine.csv", said)
    file.write_text("n,method,metric,value,note\n100,SFSA,DR,1,\n", encoding="utf-8-sig")
    project.load(root)


def test_a_wrong_table_of_data_sets_is_named_also_where_none_is_used(write):
    root = write({"one": TABLE})
    for content in (b"", b"name;reader", "name,reader".encode("utf-16"), b"name,reader\nmine,no\n"):
        (root / "config/datasets.csv").write_bytes(content)
        refused(root, "config/datasets.csv")


def test_files_are_utf8_with_or_without_a_mark(write):
    root = write({"one": TABLE})
    for file in ("config/datasets.csv", "config/experiments/tiny.yaml"):
        (root / file).write_bytes(b"\xef\xbb\xbf" + (root / file).read_bytes())
    assert list(project.load(root).entries) == ["one"]
    (root / "config/methods.yaml").write_bytes(b"# \xe9\n")
    refused(root, "config/methods.yaml: ")


OWN = "name,reader,train,task,n_train,label\nmine,csv,rows.csv,classification,100,y\n"


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ({}, "has no test rows; say how to split it"),
        ({"split": {"train": 100}}, "data.split: train and test are 101 rows, and mine has 100"),
        ({"split": {"train": 90, "test": 11}}, "data.split: train and test are 101 rows"),
        ({"split": {"test": 10}}, "data.split.train: is missing"),
        ({"split": {"train": 9, "tset": 1}}, "data.split: there is no key 'tset'"),
        ({"split": {"train": 0.9}}, "data.split.train: "),
        ({"split": {"train": 9, "order": "shuffled"}}, "data.split.order: "),
        ({"products": True}, "data: products and standardized need split"),
        ({"splitt": {"train": 9}}, "data: there is no key 'splitt'; did you mean 'split'?"),
        ({"split": {"train": 9}, "k": 0}, "data.k: "),
        ({"split": {"train": 9}, "k": True}, "data.k: "),
        ({"dataset": "dextre"}, "config/datasets.csv has no 'dextre', only"),
    ],
)
def test_data_of_a_data_set_that_cannot_be_are_refused(write, data, said):
    entry = REAL | {"grid": {}, "data": {"dataset": "mine"} | data}
    root = write({"one": entry})
    (root / "config/datasets.csv").write_text(OWN)
    refused(root, "tiny.yaml, one", said)
    write({"one": REAL | {"grid": {"dataset": ["mine"]}, "data": {"split": {"train": 90}}}})
    assert [s.name for s in settings_of(root)] == ["mine"]


@pytest.mark.parametrize("values", [["a b", "a-b"], [0.5, "0 5"], [1, "1"]], ids=str)
def test_settings_never_share_a_file(write, values):
    data = TABLE["data"] | {"beta": {"by": "group", **dict.fromkeys(values, 1)}}
    refused(write({"one": TABLE | {"data": data, "grid": {"group": values, "n": [100]}}}), "one")


def test_find_root_tells_what_it_looked_for(tmp_path):
    with pytest.raises(ConfigurationError, match=r"config/config\.yaml"):
        project.find_root(tmp_path)
    assert project.find_root(ROOT / "tests") == project.find_root(ROOT) == ROOT


# -------------------------------------------------- what an entry means


def test_grids_are_multiplied_in_their_order_and_joined(write):
    grid = [{"noise": [1, 2], "n": [100, 200]}, {"noise": 3, "n": [300]}]
    settings = settings_of(write({"one": TABLE | {"grid": grid}}))
    expected = [(1, 100), (1, 200), (2, 100), (2, 200), (3, 300)]
    for part in ("axes", "data"):
        assert [(s.spec[part]["noise"], s.spec[part]["n"]) for s in settings] == expected
    assert all(TABLE["data"].items() <= s.spec["data"].items() for s in settings)
    plain = TABLE | {"grid": {}, "readings": {}, "data": TABLE["data"] | {"n": 100}}
    (setting,) = settings_of(write({"one": plain}))
    assert setting.name and setting.spec["data"]["n"] == 100
    assert json.loads(json.dumps(setting.spec)) == setting.spec


def test_a_value_may_be_an_axis_or_by_one_or_both(write):
    inner = {"by": "n", 100: 3, 200: {"axis": "n"}}
    method = {"class": "SGDTRegressor", "replicates": {"by": "m", "a": inner, "b": 5}}
    method |= {"k": {"axis": "n"}, "sweep": {"by": "n", 100: {"mu": [1, 2]}, 200: {"mu": []}}}
    entry = TABLE | {"methods": {"it": method}, "grid": {"m": ["a", "b"], "n": [100, 200]}}
    entry |= {"replicates": {"by": "n", 100: 30, 200: 4}}
    settings = settings_of(write({"one": entry}), scale="free")
    found = [s.spec["methods"]["it"] for s in settings]
    assert [m["replicates"] for m in found] == [3, 200, 5, 5]
    assert [m["sweep"]["mu"] for m in found] == [[1, 2], []] * 2
    assert [m["k"] for m in found] == [100, 200] * 2
    assert [s.spec["replicates"] for s in settings] == [30, 4] * 2
    assert list(tables.cells(settings[:2], ["DR"])["runs"]) == [30, 4]
    swept = {"class": "SFSARegressor", "sweep": {"axis": [1, 2]}}
    (one, *_) = settings_of(write({"one": TABLE | {"methods": {"SFSA": swept}}}))
    assert one.spec["methods"]["SFSA"] == swept, "a parameter of this name may be swept"


def test_readings_change_data_methods_and_tuning_of_their_own_only(write):
    tune = {"score": "online", "at": {"k": 5}, "grid": {"learning_rate": [0.1]}}
    change = {"data": {"alpha": 0}, "methods": {"SFSA": {"warmup": 25}}, "tune": {"at": {"k": 9}}}
    readings = {"as printed": {"note": "."}, "other": {"note": ".", **change}}
    settings = settings_of(write({"one": TABLE | {"readings": readings, "tune": tune}}))
    assert [s.spec["axes"]["reading"] for s in settings] == ["as printed"] * 2 + ["other"] * 2
    plain, other = settings[0].spec, settings[2].spec
    assert plain["methods"] == TABLE["methods"] and plain["tune"] == tune
    assert other["methods"] == changed(TABLE, "methods/SFSA/warmup", 25)["methods"]
    assert plain["data"] == TABLE["data"] | {"n": 100}, "equal data look equal in every reading"
    assert other["data"] == plain["data"] | {"alpha": 0}
    assert other["tune"] == tune | {"at": {"k": 9}}


def test_replicates_are_capped_by_the_scale(write):
    # 100 features: n = 100 makes 1e4 numbers a replicate, n = 20,000 makes 2e6.
    entry = TABLE | {"grid": {"n": [100, 4000, 5000, 5001, 20_000]}}

    def counts(scale, entry=entry):
        found = settings_of(write({"one": entry}, scales={"small": SMALL | scale, "free": FREE}))
        return [None if s.skipped else s.spec["replicates"] for s in found]

    assert counts({}) == [2, 2, 2, None, None]
    assert counts({"replicates": 9}) == [9, 2, 2, None, None]
    assert counts({"replicates": 20, "least_replicates": 3}) == [20, None, None, None, None]
    assert counts({"replicates": 1}) == [1, 1, 1, 1, None], "one may be all that a scale wants"
    assert counts({}, entry | {"replicates": 1}) == [1, 1, 1, 1, None], "and an entry"
    assert counts({"values": None, "replicates": 50}) == [20] * 5
    study = {"study_replicates": 7, "replicates": 50}
    assert counts(study, entry | {"study": STUDY})[0] == 7 and counts(study)[0] == 20
    fewer = entry | {"at_scale": {"small": {"replicates": 1}}}
    assert counts({}, fewer)[:3] == [1, 1, 1], "as an entry has at this scale"
    more = entry | {"at_scale": {"small": {"replicates": 30}}}
    assert counts({"values": None, "replicates": 50}, more) == [20] * 5, "not more than it asks for"


def test_a_scale_may_run_some_values_and_methods_only(write):
    small = {"n": [200], "mu": [5], "methods": ["SFSA"], "data": {"p": 70}}
    entry = TABLE | {"sweep": {"mu": [1, 5]}, "at_scale": {"small": small}}
    root = write({"one": entry})
    few, all_ = (settings_of(root, scale=scale) for scale in ("small", "free"))
    assert [s.skipped for s in few] == ["not run at this scale", ""]
    assert [(s.name, s.skipped) for s in all_] == [("plain_100", ""), ("plain_200", "")]
    assert [s.spec["sweep"]["mu"] for s in (few[1], all_[1])] == [[5], [1, 5]]
    assert [[*s.spec["methods"]] for s in (few[1], all_[1])] == [["SFSA"], ["SFSA", "SGDT"]]
    assert [s.spec["data"]["p"] for s in (few[1], all_[1])] == [70, 100]
    other = {"methods": {"SFSA": {"mu": {"by": "n", 100: 7, 200: 8}}, "SGDT": None}}
    mine = {"mine": {"class": "SIHTRegressor", "entries": ["one"]}}
    entry = TABLE | {"at_scale": {"small": other}}
    found = settings_of(write({"one": entry}, methods=mine))
    assert [s.spec["methods"]["SFSA"]["mu"] for s in found] == [7, 8]
    assert [*found[0].spec["methods"]] == ["SFSA", "mine"], "users' methods are not left out"


def test_a_scale_may_run_the_first_settings_only(write):
    entry = TABLE | {"grid": {"n": [10, 20, 30]}, "readings": {"a": {}, "b": {}}}
    for settings, expected in ((2, [10, 20] * 2), (None, [10, 20, 30] * 2)):
        scales = {"small": SMALL | {"settings": settings}}
        (entry_,) = project.load(write({"one": entry}, scales=scales)).entries.values()
        assert [s.spec["data"]["n"] for s in entry_.to_run] == expected
        assert {s.skipped for s in entry_.settings} <= {"", "not run at this scale"}


def test_only_the_committed_scale_replaces_the_figures_that_are_there(write):
    def places(scale, config=CONFIG):
        work = project.load(write({"one": TABLE}, config=config), scale=scale)
        return [work.figures("one")[0], work.provenance, work.report]

    top = ["figures/one.csv", "figures/PROVENANCE.json", "report.html"]
    below = [f"figures/free/{name}" for name in ("one.csv", "PROVENANCE.json", "report.html")]
    assert (places("small"), places("free")) == (top, below), "else the scale of config.yaml"
    assert places("free", CONFIG | {"figures": "free"}) == top


def test_what_cannot_be_had_says_why_and_is_not_run(write):
    two = ["ecml18_arcene", "ecml18_dexter"]
    entry = REAL | {"grid": {"dataset": two}, "unavailable": {"dataset": {two[1]: "is lost"}}}
    root = write({"one": entry, "two": TABLE | {"unavailable": {"n": {200: "lost"}}}})
    assert [s.skipped for s in settings_of(root)] == ["", "is lost"]
    assert [s.skipped for s in settings_of(root, "two")] == ["", "lost"]
    assert project.load(root).datasets == two[:1]


def test_an_entry_may_show_some_runs_of_another(write):
    grid = {"n": [100, 200], "signal": ["strong", "weak"]}
    data = TABLE["data"] | {"beta": {"by": "signal", "strong": 1, "weak": 0.1}}
    two = PAGE | {"results": "one", "only": {"n": [200]}}
    root = write({"one": TABLE | {"grid": grid, "data": data}, "two": two})
    work = project.load(root)
    assert [s.name for s in work.shown("two")] == ["plain_200_strong", "plain_200_weak"]
    names = ["plain_200_strong.csv", "plain_200_weak.csv"]
    assert [Path(file).name for file in work.inputs("two")] == names
    assert work.entries["two"].settings == []
    wrong = changed(TABLE, "data/beta", {"by": "n", "100": 1})
    message = refused(write({"one": PAGE | {"results": "two"}, "two": wrong}))
    assert message.splitlines()[0].endswith("two: beta has no value for n=100")


def test_a_method_of_ones_own_joins_the_entries_that_it_names(write):
    mine = {"class": "SGDTRegressor", "entries": ["one", "three"], "learning_rate": 0.5}
    entries = {name: TABLE for name in ("one", "two", "three")}
    work = project.load(
        write(entries | {"four": PAGE | {"results": "one"}}, methods={"mine": mine})
    )
    has = {name: "mine" in entry.spec["methods"] for name, entry in work.entries.items()}
    assert has == {"one": True, "two": False, "three": True, "four": False}
    assert {s.spec["methods"]["mine"]["learning_rate"] for s in work.shown("four")} == {0.5}
    plain = project.load(write(entries))
    assert plain.entries["two"].settings == work.entries["two"].settings
    comments = (ROOT / "config/methods.yaml").read_text(encoding="utf-8")
    comments = "".join(line for line in comments.splitlines(True) if line.startswith("#"))
    text = comments + "mine: {class: SGDTRegressor, entries: [one]}\n"
    assert project.load(write(entries, methods=text)).entries["one"].spec["methods"]["mine"]


# -------------------------------------------------- times


def test_times_are_those_of_the_named_reading_within_the_limit(write):
    readings = {"plain": {}, "other": {}}
    slow = {"class": "SGDTRegressor", "replicates": 3}
    methods = {"slow": slow, "not": slow | {"timed": False}, "only": slow | {"timed": "only"}}
    entry = TABLE | {"readings": readings, "time": "other", "methods": methods}
    work = project.load(write({"one": entry | {"grid": {"n": [100, 1000, 1001]}}}))
    timed = work.entries["one"].timed
    assert [s.name for s in timed] == ["other_100", "other_1000"]
    assert all(s.spec["metrics"] == ["time_s"] and s.spec["replicates"] == 1 for s in timed)
    assert [*timed[0].spec["methods"]] == ["slow", "only"], "each may be left out of one of both"
    assert [*work.setting("one", "other_100").spec["methods"]] == ["slow", "not"]
    assert timed[0].spec["methods"]["slow"]["replicates"] == 1, "a slow method is timed once"
    assert work.setting("one", "other_100", "time") == timed[0]
    assert [bool(s.skipped) for s in work.shown("one", "time")] == [False, False, True]
    assert len(work.inputs("one", "time")) == 2
    assert {"figures/one_time.csv", "figures/one_time.tex"} <= set(work.figures("one"))


def test_an_entry_without_readings_is_timed_if_it_asks_for_it(write):
    entry = TABLE | {"readings": {}, "time": True}
    work = project.load(write({"one": entry}))
    assert len(work.shown("one", "time")) == 2 and len(work.figures("one")) == 4
    said = {"time_claims": [{"says": "it is", "fast": "SGDT", "than": ["SFSA"]}]}
    untimed = {key: value for key, value in entry.items() if key != "time"}
    work = project.load(write({"one": untimed, "two": untimed | said}))
    assert not work.shown("one", "time")
    assert work.figures("one") == ["figures/one.csv", "figures/one.tex"]
    assert "figures/two_claims.csv" in work.figures("two")
    # What would be shown nowhere is not measured.
    for other in (entry | {"form": "figure"}, entry | {"results": "one"}):
        refused(write({"one": entry, "two": other}), "two: ", "time=True must be one of []")


def test_times_are_of_the_averages_that_are_sampled_but_limited_by_the_rows(write):
    data = TABLE["data"] | {"averages": "sampled"}
    for most, skipped in ((1e9, ""), (10, "not timed at this scale")):
        scales = {"small": SMALL | {"timing_values": most}}
        root = write({"one": TABLE | {"data": data, "time": "plain"}}, scales=scales)
        (one, *_) = project.load(root).entries["one"].times
        assert one.spec["data"]["averages"] == "sampled" and one.skipped == skipped


def test_a_slow_method_is_kept_near_the_limit(write):
    slow = {"class": "SGDTClassifier", "replicates": 3}
    data = {"simulate": "sparse_rows", "p": 100, "k": 5, "nonzeros": 5}
    grid = {"n": [1000, 5000, 20_000]}  # of 100 features: 10, 2 and not one within 1e6
    settings = settings_of(
        write({"one": TABLE | {"methods": {"slow": slow}, "data": data, "grid": grid}})
    )
    assert [s.spec["methods"]["slow"]["replicates"] for s in settings] == [3, 2, 1]


def test_the_time_limit_is_that_of_the_entry_or_of_all(write):
    root = write({"one": TABLE, "two": TABLE | {"time_limit": 7}})
    work = project.load(root, scale="free", seed=7)
    assert [work.time_limit_of(name) for name in ("one", "two")] == [2880, 7]
    assert project.load(root, time_limit=60).time_limit_of("one") == 60
    assert (work.scale, work.seed, work.real_data) == ("free", 7, "none")
    assert settings_of(root, seed=7)[0].spec["seed"] == 7


# -------------------------------------------------- the configuration that we ship


@pytest.fixture(scope="module", params=SCALES)
def work(request):
    return shipped.load(scale=request.param)


def test_shipped_settings_have_names_of_their_own_that_are_the_same_at_every_scale(work):
    names = [(e.name, s.name) for e in work.entries.values() for s in e.settings]
    assert names == [(e.name, s.name) for e in SHIPPED.entries.values() for s in e.settings]
    assert len({str(work.result(*name)).casefold() for name in names}) == len(names)
    assert all(re.fullmatch("[A-Za-z0-9_-]+", name) for _, name in names)


def test_some_setting_of_every_entry_is_run_at_every_scale(work):
    empty = {n for n, e in work.entries.items() if e.settings and not e.to_run}
    # Their smallest setting is more than the smallest scale generates twice.
    large = {"dissertation_table_4_2", "dissertation_figure_5_5"}
    assert empty <= (large if work.scale == "smoke" else set())


def bare(classes):
    return {re.sub("Classifier$|Regressor$", "", name) for name in classes}


def test_entries_of_our_own_have_all_methods():
    """Untuned: all classifiers of rows by their defaults. Growth of costs: every estimator."""
    given = SHIPPED.entries["untuned_one_pass"].spec["methods"].values()
    ours = [method for method in given if ":" not in method["class"]]
    public = [getattr(ofslib, name) for name in dir(ofslib) if name.endswith("Classifier")]
    assert all(set(method) <= {"class", "replicates"} for method in ours)
    rows = {cls.__name__ for cls in public if issubclass(cls, RowStream)}
    assert {method["class"] for method in ours} == rows
    measured = {m["class"] for m in SHIPPED.entries["growth_of_costs"].spec["methods"].values()}
    # Knockoffs need more rows than twice the features; the other is not made for thousands.
    others = {"Knockoffs", "RenewableFSA"}
    classes = {name for names in ofslib.ESTIMATORS.values() for name in names}
    assert bare(classes) - others <= bare(measured)


def test_the_page_for_users_methods_lists_all_tables_that_compare_methods():
    text = (ROOT / "docs/howto/add_method.md").read_text(encoding="utf-8")
    lists = re.findall(r"  entries:\s+\[(.*?)\]", text, re.S)[1:]  # the first is an example
    tables = {"Regressor": set(), "Classifier": set()}
    for name, entry in SHIPPED.entries.items():
        spec = entry.spec
        if spec["form"] == "table" and spec["methods"] and not spec["study"]:
            classes = {method["class"] for method in spec["methods"].values()}
            (task,) = [task for task in tables if any(cls.endswith(task) for cls in classes)]
            tables[task].add(name)
    assert [set(re.findall(r"\w+", names)) for names in lists] == [*tables.values()]


PUBLISHED = [name for name in ENTRIES if SHIPPED.published(name)]


@pytest.mark.parametrize(
    "name", [n for n in PUBLISHED if SHIPPED.entries[n].spec["notebook"] != "complexities"]
)
def test_published_numbers_are_of_all_cells_of_the_entry(name):
    table = pd.read_csv(ROOT / SHIPPED.published(name))
    axes = [c for c in table if c not in ("method", "metric", "value", "note")]
    ours = pd.DataFrame([s.spec["axes"] for s in SHIPPED.shown(name)])
    same = {axis for axis in ours if ours[axis].nunique() == 1}
    assert set(ours) - {"reading"} - same <= set(axes) <= set(ours) - {"reading"}
    assert all(set(ours[axis]) == set(table[axis]) for axis in axes)
    assert set(SHIPPED.source(name).spec["metrics"]) <= set(table["metric"])
    assert set(table.get("method", ())) <= set(looks.METHODS)
    assert table.loc[table["value"].isna(), "note"].notna().all(), "a gap needs its reason"


def test_no_published_file_and_no_notebook_is_forgotten():
    here = project.load(ROOT)
    named = {here.published(name) for name in here.entries} - {None}
    assert {f"config/published/{f.name}" for f in (ROOT / "config/published").glob("*")} == named
    used = {entry.spec["notebook"] for entry in here.entries.values()} | {"run", "index"}
    assert {file.stem for file in (ROOT / "notebooks").glob("*.ipynb")} == used


def test_every_metric_that_an_entry_may_name_can_be_measured_and_shown():
    schema = EntryKeys.model_json_schema()["properties"]
    metrics, keys = set(schema["metrics"]["items"]["enum"]), set(schema)
    # What is seen of models while they learn has no function of a fitted model.
    assert metrics - {"regret", "time_s"} == set(METRICS) >= set(EXPECTED)
    assert metrics <= set(looks.TITLES)
    assert {key for entry in SHIPPED.entries.values() for key in entry.spec} == keys


# -------------------------------------------------- what is imported


def imported(code):
    done = subprocess.run(
        [sys.executable, "-c", f"import sys\n{code}\nprint(*sys.modules)"],
        capture_output=True, text=True, check=True, cwd=ROOT,
    )  # fmt: skip
    return set(done.stdout.split())


def test_importing_the_project_imports_no_numba():
    loaded = imported("from ofslib.reproduction import project as p; p.load()")
    assert "ofslib.reproduction.project" in loaded
    assert not loaded & {"numba", "ofslib._jit", "sklearn", "scipy", "matplotlib", "pooch"}


def test_a_run_imports_nothing_that_draws():
    """Each setting is a process of its own."""
    cells = json.loads((ROOT / "notebooks/run.ipynb").read_text(encoding="utf-8"))["cells"]
    sources = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    (code,) = [source for source in sources if "from ofslib.reproduction import" in source]
    loaded = imported(code)
    assert "ofslib.reproduction.tables" in loaded and not loaded & {"matplotlib", "seaborn"}
