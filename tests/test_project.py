"""The configuration: what is refused, what an entry means, and what is shipped."""

import json
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
import shipped
import yaml

from ofslib.metrics import METRICS
from ofslib.reproduction import identity, looks, project, store, strict, tables
from ofslib.reproduction.configuration import EntryKeys
from ofslib.reproduction.experiment import EXPECTED
from ofslib.reproduction.project import ConfigurationError

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
OWN = "name,reader,train,task,n_train,n_features,label\n"
OWN += "mine,csv,rows.csv,classification,100,12,y\n"
MINE = """
class Mine:
    def __init__(self, k=1, strength=1.0): ...
    def fit(self, X, y): ...

class Needs(Mine):
    def __init__(self, strength, random_state): ...

class TakesAll(Mine):
    def __init__(self, **parameters): ...

class Shapeless: ...

def study(setting, seeds, data, runs, size=1): ...
"""


@pytest.fixture
def write(tmp_path, monkeypatch):
    """Return a function that makes a project of these entries and of the changes to other files.

    Of other kinds than entries a content is what is added to the usual one.
    """
    (tmp_path / "notebooks").mkdir()
    for name in ("run", "recovery_table", "accuracy_by_budget"):
        shutil.copy(ROOT / f"notebooks/{name}.ipynb", tmp_path / "notebooks")
    (tmp_path / "notebooks/untagged.ipynb").write_text("{}")
    (tmp_path / "config/published").mkdir(parents=True)
    (tmp_path / "config/experiments").mkdir()
    shutil.copy(ROOT / "config/versions.yaml", tmp_path / "config")
    (tmp_path / "config/datasets.csv").write_text(OWN)
    (tmp_path / "mine.py").write_text(MINE)
    (tmp_path / "exits.py").write_text("raise SystemExit(3)")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "mine", raising=False)

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


def refused(root, *names):
    """The message of the error that a run gives at its start, in which all these names stand."""
    with pytest.raises(ConfigurationError) as error:
        strict.check(project.load(root))
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
        ("config", CONFIG | {"scale": "huge"}, ["config.yaml", "scale='huge'", "small"]),
        ("config", "", ["config.yaml, scale: is missing"]),
        ("scales", {"small": SMALL | {"valeus": 1}}, ["scales.yaml, small", "mean 'values'"]),
        ("scales", {"small": SMALL | {"values": float("inf")}}, ["scales.yaml, small.values"]),
        ("methods", {"mine": {"class": "A", "entries": ["oen"]}}, ["mine", "'oen' is none of"]),
        ("methods", {"SFSA": {"class": "A", "entries": ["one"]}}, ["SFSA: one has such"]),
        ("methods", {"mine": {"class": "A:B", "entries": ["one"]}}, ["of config/methods.yaml"]),
        ("experiments/two", {"Table 1": TABLE}, ["two.yaml, Table 1: ", "'Table 1'"]),
        ("experiments/two", {"one": TABLE}, ["two.yaml: entry one stands in", "tiny.yaml"]),
        ("experiments/two", yaml.safe_dump({"a": TABLE}) * 2, ["two.yaml", "'a' is there twice"]),
    ],
)  # fmt: skip
def test_wrong_settings_name_file_and_key(write, file, content, names):
    refused(write({"one": TABLE}, **{file: content}), *names)


NO_LOW_RANK = {"simulate": "sparse_rows", "p": 9, "k": 2}


def it(name, **own):
    return {"class": name, **own}


WRONG = [
    ("metric", ["DR"], "there is no key 'metric'; did you mean 'metrics'?"),
    ("metrics", ["DR", "RSME"], "metrics.1: "),
    ("form", "tabel", "form: Input should be 'table' or 'figure', not 'tabel'"),
    ("replicates", 2.0, "replicates: Input should be a valid integer, not 2.0"),
    ("replicates", {"by": "n", 100: 0, 200: 1}, "replicates: "),
    ("tune", {"score": "online", "gird": {}}, "tune: there is no key 'gird'; did you mean 'grid'?"),
    ("track", {"first": 3, "level": 2}, "track: give first and per_decade"),
    ("readings/plain/methods", {"SFAS": {"mu": 1}}, "readings.plain: method='SFAS' is none of"),
    ("readings/plain/data", {"alhpa": 1}, "data: there is no key 'alhpa'; did you mean 'alpha'?"),
    ("readings/plain/fitted", {"SFAS": 1}, "readings.plain.fitted: method='SFAS' is none of"),
    ("data/simulate", "equicorelated", "data.simulate: "),
    ("data", {"simulate": "equicorrelated"}, "'p' and 'k'"),
    ("data", NO_LOW_RANK | {"averages": "sampled"}, "averages=sampled needs data with `simulate`"),
    ("data/p", "1e4", "p='1e4' must be a whole number"),
    ("data/beta", {"by": "n", "100": 1}, "beta has no value for n=100"),
    ("grid", {"n": []}, "grid.n: "),
    ("grid", {"n": [100.0]}, "data.n: Input should be a valid integer, not 100.0"),
    ("grid", {"n": [100], "signl": ["weak"]}, "data: there is no key 'signl'"),
    ("grid", {"alpha": [1]}, "data.n: is missing"),
    ("grid", [{"n": [100, 200]}, {"n": [200]}], "grid has 2 points that are called 'plain_200'"),
    ("methods/SFSA/warmup", {"axis": "m"}, "warmup: 'm' is none of the axes"),
    ("methods/mine", {"k": 3}, "methods.mine.class: is missing"),
    ("time", "plian", "time='plian' is none of None, 'plain'"),
    ("at_scale", {"smal": {"n": [100]}}, "at_scale: 'smal' is none of"),
    ("at_scale", {"small": {"m": [100]}}, "at_scale: 'm' is none of the axes ['n', 'reading']"),
    ("at_scale", {"small": {"n": ["100"]}}, "at_scale: n='100' is none of 100, 200"),
    ("at_scale", {"small": {"methods": ["other"]}}, "at_scale.methods: method='other' is none"),
    ("unavailable", {"n": {"100": "lost"}}, "unavailable: n='100' is none of 100, 200"),
    ("weak_baselines", {"SFSAA": "why"}, "weak_baselines: method='SFSAA' is none of"),
    ("discussed", [{"method": "SFSAA", "why": "x"}], "discussed: method='SFSAA' is none of"),
    ("discussed", [{"n": 100, "why": " "}], "discussed.0.why: "),
    ("time_claims", [{"says": "x", "grows": ["SGTD"]}], "time_claims.grows: method='SGTD'"),
    ("time_claims", [{"says": "x", "fast": "SGDT"}], "time_claims.0: give fast and than"),
    ("only", {"n": [100, 999]}, "only: n=999 is none of 100, 200"),
    ("parameters", {"measured": "rows.csv"}, "there is no rows.csv"),
    ("notebook", "recovery_tabel", "there is no notebooks/recovery_tabel.ipynb"),
    ("published", "no_such_table", "there is no config/published/no_such_table.csv"),
    ("results", "two", "results='two' is none of ['one']"),
    ("study", {"of": "ofslib.reproduction.tracking:drift"}, "study.function: is missing"),
    ("track", {"every": 5, "last": 10}, "track.every needs data with `simulate` one of"),
    # What is found by importing what an entry names
    ("methods/SFSA/warmpu", 3, "SFSA: SFSARegressor has no parameter 'warmpu'; did you mean 'war"),
    ("readings/plain/methods", {"SGDT": {"mue": 1}}, "methods.SGDT: SGDTRegressor has no parame"),
    ("sweep", {"importanc": [1]}, "has no parameter 'importanc'"),
    ("methods/SFSA/k", 101, "methods.SFSA: k=101 is more than the 100 columns of the data"),
    ("methods/mine", it("mine:Mine", sweep={"mu": [1]}), "mine: mine:Mine has no parameter 'mu'"),
    ("tune", {"grid": {"ku": [1]}}, "tune.grid: no method has the parameter 'ku'; did you mean 'k"),
    ("methods/mine", it("mine:Needs"), "methods.mine: missing a required argument: 'strength'"),
    ("methods/mine", it("SFSARegresor"), "ofslib has no 'SFSARegresor'; did you mean 'SFSARegr"),
    ("methods/mine", it("no_such:Mine"), "methods.mine: No module named 'no_such'"),
    ("methods/mine", it("exits:Mine"), "methods.mine: 3 (SystemExit)"),
    ("methods/mine", it("mine:Shapeless"), "mine:Shapeless is no class of a method"),
    ("metrics", ["AUC"], "metrics: AUC is for classification, and the data are for regression"),
    ("test_rows", None, "metrics: R2 is not known of these data; allowed are"),
    ("notebook", "untagged", "no cell has the tag `parameters`"),
    ("study", {"function": "mine:studdy"}, "study: module 'mine' has no attribute 'studdy'"),
    ("study", {"function": "mine:study", "runs": 1, "sise": 2}, "study: got an unexpected"),
    ("study", {"function": "mine:study", "runs": it("Lasso")}, "study: ofslib has no 'Lasso'"),
]  # fmt: skip


@pytest.mark.parametrize(("place", "value", "said"), WRONG, ids=lambda value: str(value)[:40])
def test_a_wrong_entry_names_file_entry_and_key(write, place, value, said):
    table = TABLE | {"metrics": ["R2"]} if place == "test_rows" else TABLE
    root = write({"one": changed(table, place, value)})
    message = refused(root, "config/experiments/tiny.yaml, one", said)
    assert len(message.splitlines()) <= 2, "nothing else is said"


def test_a_criterion_may_choose_how_many_features(write):
    strict.check(
        project.load(
            write({"one": changed(TABLE, "methods/OLSth", it("OLSthRegressor", k="ebic"))})
        )
    )


def test_a_methods_own_keys_are_checked_wherever_it_stands(write):
    change = {"replicates": {"by": "n", 100: "ten"}}
    mine = it("SGDTRegressor", **change)
    reading = {"plain": {"note": ".", "methods": {"SGDT": change}}}
    scale = {"small": {"methods": {"SGDT": change}}}
    places = {
        "one.methods.mine": ({"methods": {"mine": mine}}, {}),
        "one.readings.plain.methods.SGDT": ({"readings": reading}, {}),
        "one.at_scale.small.methods.SGDT": ({"at_scale": scale}, {}),
        "methods.yaml, mine": ({}, {"mine": mine | {"entries": ["one"]}}),
    }
    for where, (entry, methods) in places.items():
        refused(write({"one": TABLE | entry}, methods=methods), f"{where}.replicates")


def test_what_is_right_is_not_refused(write):
    study = {key: value for key, value in TABLE.items() if key not in ("methods", "metrics")}
    right = {
        "takes_all": changed(TABLE, "methods/it", it("mine:TakesAll", whatever=1))
        | {"tune": {"grid": {"anything": [1]}}},
        "given": changed(TABLE, "methods/it", it("mine:Needs", strength=1)),
        "tuned_by_one": changed(TABLE, "methods/it", it("mine:Mine"))
        | {"tune": {"grid": {"strength": [1]}}},
        "swept": changed(TABLE, "methods/it", it("mine:Needs", sweep={"strength": [1]})),
        "a_study": study | {"study": {"function": "mine:study", "runs": 1}},
        "other_values": changed(TABLE, "methods/SFSA/mu", {"by": "n", 100: 1, 200: 1, 300: 1}),
    }
    strict.check(project.load(write(right)))


@pytest.mark.parametrize("scale", SCALES)
def test_the_shipped_configuration_has_no_fault(scale, monkeypatch):
    work = shipped.load(scale=scale)
    monkeypatch.chdir(work.root)
    strict.check(work)


def test_reading_the_project_imports_no_class(write):
    """Notebooks read it often; a run has been checked before it starts."""
    work = project.load(write({"one": changed(TABLE, "methods/it", it("mine:Mine"))}))
    assert work.entries["one"].settings and "mine" not in sys.modules


TINY = yaml.safe_dump({"one": TABLE})


@pytest.mark.parametrize("label", ["1", "null", "yes"])
@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("experiments/tiny", TINY.replace("SGDT:", "LABEL:")),
        ("experiments/other", "LABEL: {}"),
        ("methods", "LABEL: {class: SGDTRegressor, entries: [one]}"),
    ],
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


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("m,method,metric,value,note\n100,SFSA,DR,1,\n", "the column 'm' is missing, or none"),
        ("n,method,value,note\n100,SFSA,1,\n", "the column 'metric' is missing"),
        ("n,method,metric,value,note\n100,A,DR,1,\n", "method ['A'] is none of"),
        ("n,method,metric,value,note\n110,SFSA,DR,1,\n", "n ['110'] is none of ['100', '200']"),
        ('n,method,metric,value,note\n100,SFSA,DR,"0,9",\n', "value '0,9' is no number"),
        ("n,method,metric,value,note\n" + "100,SFSA,DR,1,\n" * 2, "several lines are of the cell"),
    ],
)  # fmt: skip
def test_printed_numbers_say_of_which_cell_they_are(write, text, said):
    root = write({"one": TABLE | {"published": "mine"}})
    file = root / "config/published/mine.csv"
    file.write_text(text, encoding="utf-8")
    refused(root, "tiny.yaml, one: config/published/mine.csv", said)
    file.write_text("n,method,metric,value,note\n100,SFSA,DR,,lost\n", encoding="utf-8-sig")
    strict.check(project.load(root))


def test_a_wrong_table_of_data_sets_is_named_also_where_none_is_used(write):
    root = write({"one": TABLE})
    table = root / "config/datasets.csv"
    for content in (b"name;reader", "name,reader".encode("utf-16"), b"name,reader\nmine,no\n"):
        table.write_bytes(content)
        refused(root, "config/datasets.csv")
    table.write_text("name,reader,train,task\nwrong,mine:read,a.csv,regression\n")
    refused(root, "config/datasets.csv, wrong, reader: module 'mine' has no attribute 'read'")


def test_files_are_utf8_with_or_without_a_mark(write):
    root = write({"one": TABLE})
    for file in ("config/datasets.csv", "config/experiments/tiny.yaml"):
        (root / file).write_bytes(b"\xef\xbb\xbf" + (root / file).read_bytes())
    assert list(project.load(root).entries) == ["one"]
    (root / "config/methods.yaml").write_bytes(b"# \xe9\n")
    refused(root, "config/methods.yaml: ")


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ({}, "has no test rows; say how to split it"),
        ({"split": {"train": 9, "tset": 1}}, "data.split: there is no key 'tset'"),
        ({"products": True}, "data: products and standardized need split"),
        ({"split": {"train": 9}, "k": True}, "data.k: "),
        ({"dataset": "dextre"}, "config/datasets.csv has no 'dextre', only"),
        ({"split": {"train": 90}, "metrics": "RMSE"}, "RMSE is for regression, and the"),
        ({"split": {"train": 90}, "metrics": "DR"}, "metrics: DR is not known of these"),
        ({"split": {"train": 90, "test": 11}}, "mine has 100 rows, and the split asks for 101"),
        ({"split": {"train": 90}, "k": 13}, "k=13 is more than the 12 columns of the data"),
    ],
)  # fmt: skip
def test_data_of_a_data_set_that_cannot_be_are_refused(write, data, said):
    metrics = [data.pop("metrics")] if "metrics" in data else ["accuracy"]
    entry = REAL | {"grid": {}, "data": {"dataset": "mine"} | data, "metrics": metrics}
    refused(write({"one": entry}), "tiny.yaml, one", said)
    right = {"grid": {"dataset": ["mine"]}, "data": {"split": {"train": 90}}}
    root = write({"one": REAL | right})
    strict.check(project.load(root))
    assert [s.name for s in settings_of(root)] == ["mine"]


@pytest.mark.parametrize("values", [["a b", "a-b"], [0.5, "0 5"]], ids=str)
def test_settings_never_share_a_file(write, values):
    data = TABLE["data"] | {"beta": {"by": "group", **dict.fromkeys(values, 1)}}
    refused(write({"one": TABLE | {"data": data, "grid": {"group": values, "n": [100]}}}), "one")


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
        refused(write({"one": entry, "two": other}), "two: time: time=True is none of None")


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


def test_every_metric_that_an_entry_may_name_can_be_measured_and_shown():
    schema = EntryKeys.model_json_schema()["properties"]
    metrics, keys = set(schema["metrics"]["items"]["enum"]), set(schema)
    # What is seen of models while they learn has no function of a fitted model.
    assert metrics - {"regret", "time_s"} == set(METRICS) >= set(EXPECTED)
    assert metrics <= set(looks.TITLES)
    assert {key for entry in SHIPPED.entries.values() for key in entry.spec} == keys


def test_no_shipped_run_took_more_memory_than_is_reserved(monkeypatch):
    monkeypatch.chdir(ROOT)
    work = shipped.load(scale="paper")
    archive, wrong = store.archive(ROOT / work.archive_file), {}
    for file, setting in work.runs():
        records = [r for one in identity.results(setting.spec) for r in archive.records_of(one)]
        took = max((record["memory_mb"] or 0 for record in records), default=0)
        wrong |= {file: took} if took > work.mem_mb(setting) else {}
    assert not wrong


def test_memory_is_reserved_for_all_rows_where_a_users_class_cannot_learn_in_parts():
    work = shipped.load(scale="standard")
    setting = next(one for _, one in work.runs() if one.spec["experiment"] == "sfsa_table_1")
    n = max(part["data"]["n"] for part in setting.parts)
    whole, parts = (
        work.mem_mb(replace(setting, spec=setting.spec | {"methods": {"mine": {"class": name}}}))
        for name in ("sklearn.linear_model:Lasso", "sklearn.linear_model:SGDRegressor")
    )
    assert abs(whole - parts - 2 * 8 * n * setting.spec["data"]["p"] / 2**20) <= 1


STARTS = """
import sys
from ofslib.reproduction import project
project.load()
assert not {*sys.modules} & {"numba", "sklearn", "scipy", "matplotlib", "pooch"}
%s
assert not {*sys.modules} & {"matplotlib", "seaborn"}
"""


def test_what_starts_often_starts_soon():
    """Snakemake and notebooks read the project; each run is a process of its own."""
    cells = json.loads((ROOT / "notebooks/run.ipynb").read_text(encoding="utf-8"))["cells"]
    sources = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    [imports] = [source for source in sources if "from ofslib.reproduction import" in source]
    subprocess.run([sys.executable, "-c", STARTS % imports], check=True, cwd=ROOT)
