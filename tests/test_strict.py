"""What is known to be wrong before a run is said at its start, all of it in one message."""

import json
import re

import pytest
import shipped
import small_project
import yaml

from ofslib.reproduction import project, strict
from ofslib.reproduction.project import ConfigurationError

MINE = """
from pathlib import Path
from sklearn.linear_model import Lasso

Path(__file__).with_name("imported").open("a").write("once\\n")
print("not an answer")

class Mine(Lasso):
    def __init__(self, k=1, strength=1.0):
        super().__init__()

class Needs(Mine):
    def __init__(self, strength, k, random_state):
        super().__init__()

class TakesAll(Mine):
    def __init__(self, **parameters):
        super().__init__()

class Lacking(Mine):
    requires = "no_such_package"

class Shapeless:
    pass

def learn(X, y):
    pass

def study(setting, seeds, data, runs, size=1):
    pass

number = 1
"""

DATA = {"simulate": "equicorrelated", "p": 20, "k": 2, "alpha": 0.5}
ENTRY = {
    "source": "Doe, Table 1",
    "title": "A table",
    "form": "table",
    "notebook": "recovery_table",
    "data": DATA,
    "grid": {"n": [100, 200]},
    "methods": {"SFSA": {"class": "SFSARegressor"}, "mine": {"class": "mine:Mine"}},
    "metrics": ["DR", "RMSE"],
    "replicates": 2,
}
REAL = ENTRY | {
    "data": {},
    "grid": {"dataset": ["ecml18_dexter"]},
    "methods": {"SFSA": {"class": "SFSAClassifier"}, "mine": {"class": "mine:Mine"}},
    "metrics": ["accuracy"],
}
STUDY = {key: value for key, value in ENTRY.items() if key not in ("methods", "metrics")}
OWN = "name,reader,train,task,n_features,test\nwrong,mine:read,a.csv,regression,9,b.csv\n"


def with_method(*names, entry=ENTRY, **own):
    """An entry with one more method."""
    return entry | {"methods": entry["methods"] | {"it": {"class": names[0], **own}}}


def tuned(**grid):
    return {"tune": {"score": "final", "at": {}, "grid": grid}}


# Entry -> what its line in the message holds, after file and entry
WRONG = {
    "unknown_ours": (
        with_method("SFSARegressor", warmpu=3),
        "methods.it: SFSARegressor has no parameter 'warmpu'; did you mean 'warmup'?",
    ),
    "unknown_mine": (
        with_method("mine:Mine", alpha=3),
        "methods.it: mine:Mine has no parameter 'alpha'; known are ['k', 'strength']",
    ),
    "in_a_reading": (
        ENTRY | {"readings": {"a": {"note": ".", "methods": {"mine": {"strenght": 1}}}}},
        "methods.mine: mine:Mine has no parameter 'strenght'; did you mean 'strength'?",
    ),
    "at_a_scale": (
        ENTRY | {"at_scale": {"smoke": {"methods": {"mine": {"strenght": 1}}}}},
        "methods.mine: mine:Mine has no parameter 'strenght'; did you mean 'strength'?",
    ),
    "in_a_sweep": (ENTRY | {"sweep": {"mu": [1]}}, "mine:Mine has no parameter 'mu'"),
    "in_its_sweep": (with_method("mine:Mine", sweep={"mu": [1]}), "methods.it: mine:Mine has no"),
    "in_a_grid": (
        ENTRY | tuned(mu=[1], strenghts=[1]),
        "tune.grid: no method has the parameter 'strenghts'; did you mean 'strength'?",
    ),
    "lacks": (with_method("mine:Needs"), "methods.it: mine:Needs: missing a required argument"),
    "not_ours": (
        with_method("SFSARegresor"),
        "methods.it.class: ofslib has no 'SFSARegresor'; did you mean 'SFSARegressor'?",
    ),
    "with_a_dot": (
        with_method("mymeth.Mine"),
        "methods.it.class: ofslib has no 'mymeth.Mine'; one of your own is written mymeth:Mine",
    ),
    "no_module": (
        with_method("no_such_module:Mine"),
        "methods.it.class: 'no_such_module:Mine' cannot be used (ModuleNotFoundError: No module "
        "named 'no_such_module')",
    ),
    "no_member": (with_method("mine:Mien"), "'mine:Mien' cannot be used (AttributeError"),
    "left_out": (
        with_method("mine:Mien") | {"at_scale": {"smoke": {"methods": ["SFSA"]}}},
        "'mine:Mien' cannot be used (AttributeError",
    ),
    "a_function": (with_method("mine:learn"), "class: mine:learn is no class of a method"),
    "no_method": (with_method("mine:Shapeless"), "mine:Shapeless is no class of a method"),
    "exits": (with_method("exits:Mine"), "'exits:Mine' cannot be used (SystemExit: 3)"),
    "of_python": (with_method("os:system"), "'os' is a part of Python; give a module of yours"),
    "of_python_2": (with_method("antigravity:fly"), "'antigravity' is a part of Python"),
    "k": (with_method("mine:Mine", k=21), "methods.it.k: k=21 is above the 20 columns of the data"),
    "swept_k": (
        ENTRY | {"sweep": {"k": [2, 30]}, "methods": {"it": {"class": "mine:Mine"}}},
        "methods.it.k: k=30 is above the 20 columns of the data",
    ),
    "k_of_data": (
        REAL | {"data": {"k": 20_001}, "methods": {"it": {"class": "mine:Mine"}}},
        "methods.it.k: k=20001 is above the 19999 columns of the data",
    ),
    "tuned_k": (
        REAL
        | {"tune": {"score": "final", "at": {"k": 20_001}, "grid": {"k": [1]}}}
        | {"methods": {"it": {"class": "mine:Mine"}}},
        "methods.it.k: k=20001 is above the 19999 columns of the data",
    ),
    "of_labels": (
        ENTRY | {"metrics": ["DR", "AUC"]},
        "metrics: AUC is for classification, and the data are for regression",
    ),
    "of_numbers": (
        REAL | {"metrics": ["RMSE"]},
        "metrics: RMSE is for regression, and the data are for classification",
    ),
    "of_sparse_rows": (
        ENTRY
        | {"data": {"simulate": "sparse_rows", "p": 300, "k": 2}, "metrics": ["R2"]}
        | {"methods": {"mine": {"class": "mine:Mine"}}},
        "metrics: R2 is for regression, and the data are for classification",
    ),
    "of_the_truth": (REAL | {"metrics": ["DR"]}, "metrics: DR is not known of a data set; allowed"),
    "without_test_rows": (
        ENTRY | {"metrics": ["R2"], "test_rows": None},
        "metrics: R2 is not known without test rows; allowed are",
    ),
    "notebook": (
        ENTRY | {"notebook": "untagged"},
        "notebook: notebooks/untagged.ipynb is no notebook with a cell of the tag `parameters`",
    ),
    "no_study": (
        STUDY | {"study": {"function": "mine:studdy"}},
        "study.function: 'mine:studdy' cannot be used (AttributeError",
    ),
    "no_function": (STUDY | {"study": {"function": "mine:number"}}, "'mine:number' is no function"),
    "study_parameter": (
        STUDY | {"study": {"function": "mine:study", "runs": 1, "sizes": 2}},
        "study: mine:study: got an unexpected keyword argument 'sizes'",
    ),
    "study_lacks": (
        STUDY | {"study": {"function": "mine:study"}},
        "study: mine:study: missing a required argument: 'runs'",
    ),
    "class_in_study": (
        STUDY | {"study": {"function": "mine:study", "runs": [{"class": "SFSARegresor"}]}},
        "study.class: ofslib has no 'SFSARegresor'; did you mean 'SFSARegressor'?",
    ),
}
RIGHT = {
    "plain": ENTRY,
    "real": REAL,
    "takes_all": with_method("mine:TakesAll", whatever=1) | tuned(anything=[1]),
    "given": with_method("mine:Needs", strength=1),
    "tuned_by_one": ENTRY | tuned(strength=[1]),
    "without_its_package": with_method("mine:Lacking"),
    "own_sweep": with_method("mine:Needs", sweep={"strength": [1]}),
    "a_study": STUDY | {"study": {"function": "mine:study", "runs": 1}},
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("strict")
    small_project.build(folder)
    (folder / "mine.py").write_text(MINE)
    (folder / "exits.py").write_text("raise SystemExit(3)")
    notebook = json.loads((folder / "notebooks/run.ipynb").read_text())
    for cell in notebook["cells"]:
        cell["metadata"] = {}
    (folder / "notebooks/untagged.ipynb").write_text(json.dumps(notebook))
    return folder


def message(folder, entries, methods="", **changes):
    """What is said of a project with these entries."""
    small_project.write(folder, entries)
    text = yaml.safe_dump(methods) if methods else ""
    (folder / "config/methods.yaml").write_text(text)
    try:
        strict.check(project.load(folder, **{"scale": "smoke", **changes}))
    except ConfigurationError as error:
        return str(error).splitlines()
    return []


@pytest.fixture(scope="module")
def told(folder):
    """The one message of a project with all these faults, and with entries that have none."""
    wrong = {name: entry for name, (entry, _) in WRONG.items()}
    return message(folder, wrong | RIGHT)


@pytest.mark.parametrize("name", WRONG)
def test_a_fault_is_said_with_its_file_entry_and_key(told, name):
    lines = [line for line in told if line.startswith(f"config/experiments/tiny.yaml, {name}, ")]
    assert len(lines) == 1 and WRONG[name][1] in lines[0]


def test_nothing_else_is_said_and_a_module_is_imported_once(told, folder):
    assert len(told) == len(WRONG)
    assert (folder / "imported").read_text() == "once\n"


def test_an_added_method_is_said_once_with_its_own_file(folder):
    methods = {"it": {"class": "mine:Mine", "strenght": 1, "entries": ["one", "two"]}}
    (line,) = message(folder, {"one": ENTRY, "two": ENTRY}, methods)
    assert line.startswith("config/methods.yaml, it: mine:Mine has no parameter 'strenght'")


def test_a_wrong_reader_is_said(folder):
    table = folder / "config/datasets.csv"
    before = table.read_text()
    try:
        table.write_text(OWN)
        (line,) = message(folder, {"one": ENTRY})
    finally:
        table.write_text(before)
    assert line.startswith("config/datasets.csv, wrong, reader: 'mine:read' cannot be used")


def test_a_notebook_that_runs_all_settings_needs_its_cell_too(folder):
    file = folder / "notebooks/run.ipynb"
    before = file.read_text()
    try:
        for text in ("{", (folder / "notebooks/untagged.ipynb").read_text()):
            file.write_text(text)
            (line,) = message(folder, {"one": ENTRY})
            assert line.startswith("notebooks/run.ipynb is no notebook with a cell of the tag")
    finally:
        file.write_text(before)


@pytest.mark.parametrize(
    ("text", "end"),
    [
        ("import os\nos._exit(7)", "ends Python with status 7"),
        pytest.param("import time\ntime.sleep(60)", "takes more than 30 s", marks=pytest.mark.slow),
    ],
)
def test_a_module_that_crashes_or_hangs_is_named(folder, monkeypatch, text, end):
    monkeypatch.setattr(strict, "LIMIT_S", 30)
    (folder / "ends.py").write_text(text)
    entry = ENTRY | {"methods": {"it": {"class": "ends:Mine"}}}
    assert message(folder, {"one": entry}) == [f"importing ends:Mine {end}"]


@pytest.mark.parametrize("scale", project.scales(shipped.ROOT))
def test_the_shipped_configuration_has_no_fault(scale):
    strict.check(shipped.load(scale=scale))


def test_reading_the_project_imports_no_class(folder):
    """Notebooks read it often; a run has been checked before it starts."""
    (folder / "imported").unlink(missing_ok=True)
    small_project.write(folder, {"one": with_method("mine:Mien")})
    project.load(folder)
    assert not (folder / "imported").exists()
    assert re.search("strict.check", (shipped.ROOT / "workflow/rules/common.smk").read_text())
