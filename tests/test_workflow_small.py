"""A small project of one's own in the workflow: offline, edited, killed, called twice."""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from contextlib import contextmanager, suppress
from copy import copy
from types import SimpleNamespace

import numpy as np
import pandas as pd
import psutil
import pytest
import yaml
from checkout import MARKS, MIRROR, Copy, is_record, record
from processes import is_over, wait_for
from sklearn.datasets import dump_svmlight_file

pytestmark = MARKS


HELD = '''
"""A user's own method, which waits while there is a file "hold"."""
import os, time
from pathlib import Path
from sklearn.linear_model import Lasso

class Held(Lasso):
    def fit(self, X, y):
        Path(f"started-{os.getpid()}").touch()
        while Path("hold").exists():
            time.sleep(0.05)
        return super().fit(X, y)
'''

ENTRIES = """
tiny_table:
  source: Doe (2027), Table 1
  title: Own methods & others
  form: table
  notebook: recovery_table
  published: tiny_table
  data: {simulate: equicorrelated, p: 200, k: 10, alpha: 0.5}
  grid: {n: [300]}
  methods:
    SGDT: {class: "sklearn.linear_model:SGDRegressor", eta0: 1.0e-4}
    mine: {class: "held:Held", alpha: 0.1}
  readings: {plain: {note: As it is.}}
  metrics: [DR, RMSE]
  replicates: 2
tiny_figure:
  source: Doe (2027), Figure 1
  title: A data set of one's own
  form: figure
  notebook: accuracy_by_budget
  grid: {dataset: [tiny]}
  methods: {B-ARDA: {class: BARDAClassifier}}
  sweep: {k: [2, 5]}
  tune: {score: online, at: {k: 5}, grid: {learning_rate: [0.01, 1.0]}}
  metrics: [accuracy]
  replicates: 2
"""
SCALE = {"replicates": 2, "values": None, "run_values": None, "tune_values": None}
SCALE |= {"timing_repeats": 1, "timing_values": 0}


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    copy = Copy(tmp_path_factory.mktemp("tiny"))
    shutil.rmtree(copy.path("config/experiments"))
    copy.path("config/experiments").mkdir()
    copy.path("config/experiments/tiny.yaml").write_text(ENTRIES)
    copy.path("config/config.yaml").write_text("{scale: tiny, real_data: auto, seed: 1}")
    copy.path("config/scales.yaml").write_text(yaml.safe_dump({"tiny": SCALE}))
    copy.path("config/published/tiny_table.csv").write_text(
        "n,method,metric,value,note\n300,SGDT,DR,50,\n300,SGDT,RMSE,,not readable\n"
    )
    copy.path("held.py").write_text(HELD)
    sys.path.append(str(copy.folder))  # as the Snakefile does
    copy.mirror = tmp_path_factory.mktemp("mirror")
    add_data_set(copy)
    return copy


def add_data_set(copy):
    rng = np.random.default_rng(0)
    (copy.mirror / "tiny").mkdir()
    facts = {"name": "tiny", "title": "Tiny", "reader": "libsvm", "n_features": 30}
    facts |= {"repository": "nobody/nothing", "commit": "0" * 40, "task": "classification"}
    for part, n in {"train": 60, "test": 40}.items():
        X, file = rng.integers(0, 3, (n, 30)), copy.mirror / "tiny" / f"{part}.svm"
        dump_svmlight_file(X, np.where(X[:, 0] > 0, 1, -1), str(file), zero_based=False)
        digest = hashlib.sha256(file.read_bytes()).hexdigest()
        facts |= {part: f"data/{part}.svm", f"n_{part}": n, f"{part}_checksum": f"sha256:{digest}"}
        facts[f"{part}_bytes"] = file.stat().st_size
    table = copy.path("config/datasets.csv")
    columns = table.read_text(encoding="utf-8").splitlines()[0].split(",")
    row = pd.DataFrame([facts], columns=columns)
    row.to_csv(table, mode="a", header=False, index=False)


def wipe(copy):
    for name in ("results", "figures", "resources", "logs", ".snakemake"):
        shutil.rmtree(copy.path(name), ignore_errors=True)
    for file in [copy.path("hold"), copy.path("report.html"), *copy.folder.glob("started-*")]:
        file.unlink(missing_ok=True)


def outcome(copy):
    """Every file of results and every figure, hidden ones too, without what is stored."""
    files = [f for top in ("results", "figures") for f in copy.path(top).rglob("*") if f.is_file()]
    files = [file for file in files if copy.path("results/store") not in file.parents]
    names = {str(file.relative_to(copy.folder)): file.read_bytes() for file in files}
    names.pop("figures/PROVENANCE.json", None)
    return {name: content for name, content in names.items() if not is_record(name)}


def called(copy, **options):
    """A call of snakemake on one core: what it says and leaves, and what would then be made."""
    done = copy.run("--cores", "1", **options)
    assert done.code == 0, done.said[-5000:]
    done.files, done.record = outcome(copy), record(copy, "tiny")
    done.report = copy.path("report.html").read_text(encoding="utf-8")
    done.plan = copy.planned(mirror=str(copy.mirror))
    return done


@pytest.fixture(scope="module")
def story(tiny):
    """The small project offline, once more, then with a mirror; nothing goes wrong."""
    wipe(tiny)
    offline, again = called(tiny), called(tiny)
    online = called(tiny, mirror=str(tiny.mirror))
    return SimpleNamespace(offline=offline, again=again, online=online, files=online.files)


TABLE_RUN = "results/tiny/tiny_table/plain_300.csv"
RUNS = {"results/tiny/tiny_figure/tiny.csv", TABLE_RUN}
FIGURE = {f"figures/tiny_figure.{end}" for end in ("csv", "svg", "pdf")}
REAL_PART = {"resources/tiny.json", "results/tiny/tiny_figure/tiny.csv", *FIGURE}
TABLE = {f"figures/tiny_table.{end}" for end in ("csv", "tex")}


def test_offline_the_rest_is_made_and_the_gap_is_marked(story):
    offline, again = story.offline, story.again
    assert {*offline.files} == (REAL_PART | {TABLE_RUN} | TABLE) - {"resources/tiny.json"}
    assert offline.record["status"] == "not fetched"
    assert "<code>tiny</code>: not downloaded" in offline.report
    rows = offline.files["results/tiny/tiny_figure/tiny.csv"].decode().splitlines()
    assert len(rows) == 1 + 2 and all("not downloaded" in row for row in rows[1:])
    for done in (offline, again):
        assert "Missing data set tiny: not downloaded" in done.said
        assert MIRROR in done.said, "it is not said what to do"
    assert "Nothing to be done" in again.said
    assert (again.files, again.record) == (offline.files, offline.record)


def test_a_data_set_that_was_missing_is_fetched_when_it_can_be(story):
    assert story.again.plan == set(), "a plan does not try whether the data are there now"
    assert story.online.record["status"] == "fetched"
    assert "not downloaded" not in story.online.report
    jobs = re.findall(r"^\[\d of 3.*?\] (.*): \d\d:\d\d$", story.online.said, re.M)
    assert jobs == ["tiny_figure: run tiny", "tiny_figure: draw", "Write report.html"]
    for name, before in story.offline.files.items():
        assert (story.files[name] == before) == (name not in REAL_PART), name
    assert story.online.plan == set()


def test_the_screen_counts_the_steps_down(story):
    done = re.findall(r"^\[(\d+) of (\d+)[],]", story.offline.said, re.M)
    assert [(int(n), int(of)) for n, of in done] == [(n, 6) for n in range(1, 7)]
    assert not re.search(r"^(Reason:|Select jobs|Finished jobid|Job )", story.offline.said, re.M)
    assert "Made at scale tiny: figures/tiny_table.*, figures/tiny_figure.*, " in story.offline.said


def test_a_users_method_is_a_column_of_the_table(story):
    table = pd.read_csv(pd.io.common.BytesIO(story.files[TABLE_RUN]))
    assert set(table["method"]) == {"mine", "SGDT"} and table["value"].notna().all()
    compared = pd.read_csv(pd.io.common.BytesIO(story.files["figures/tiny_table.csv"]))
    assert len(compared[compared["method"] == "mine"]) == 2
    assert "mine" in story.files["figures/tiny_table.tex"].decode()
    assert "Own methods &amp; others" in story.online.report


def test_what_an_edit_makes_again(tiny, story):
    """The code of a user's method counts, not a comment; and no change of times of files."""
    mirror = {"mirror": str(tiny.mirror)}
    for name in tiny.tracked:
        if not name.startswith("workflow/scripts/") and tiny.path(name).exists():
            tiny.path(name).touch()
    with tiny.edited("held.py", "# a comment\n"):
        assert tiny.planned(**mirror) == set()
    with tiny.edited("held.py", "another = 1\n"):
        assert tiny.planned(**mirror) == {TABLE_RUN, *TABLE, "report.html"}
    assert tiny.planned(seed=2, **mirror) >= RUNS
    name = next(iter(story.online.record["sha256"]))
    with tiny.edited(name):
        done = tiny.run("-n", **mirror)
        assert done.code == 0 and done.said.count(f"{name} has changed: it is fetched again") == 1


def saved(text, code=""):
    """A notebook as Jupyter saves it after it was run, with other code or the same."""
    notebook = json.loads(text)
    notebook["metadata"]["kernelspec"] = {"name": "mine", "display_name": "opened here"}
    for cell in notebook["cells"]:
        cell |= {"execution_count": 1, "outputs": []} if cell["cell_type"] == "code" else {}
    notebook["cells"][-1]["source"].append(code)
    return json.dumps(notebook)


EDITS = {
    "notebooks/run.ipynb": (saved, set()),
    "notebooks/accuracy_by_budget.ipynb": (lambda text: saved(text, "\nx = 1"), FIGURE),
    "ofslib/algorithms/barda.py": (lambda text: text + "# x\n", set()),
    "ofslib/reproduction/looks.py": (lambda text: text + "# x\n", FIGURE | TABLE),
    "config/experiments/tiny.yaml": (
        lambda text: text.replace("alpha: 0.1", "alpha: 0.2"),
        TABLE | {TABLE_RUN},
    ),
    "config/versions.yaml": (
        lambda text: text.replace("  BARDAClassifier: 1\n", "  BARDAClassifier: 2\n"),
        FIGURE | RUNS - {TABLE_RUN},
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", EDITS)
def test_an_edit_makes_again_what_depends_on_it(tiny, story, name):
    (edit, expected), text = EDITS[name], tiny.path(name).read_text(encoding="utf-8")
    with tiny.edited(name):
        tiny.path(name).write_text(edit(text), encoding="utf-8")
        planned = tiny.planned(mirror=str(tiny.mirror))
    assert planned - {"report.html"} == expected and ("report.html" in planned) == bool(expected)
    assert tiny.planned(mirror=str(tiny.mirror)) == set(), "restored, but not as before"


# -------------------------------------------------- results of another checkout, and own data


def reproduction(copy, *words):
    """What `python -m ofslib.reproduction` says in a copy."""
    command = [sys.executable, "-m", "ofslib.reproduction", *words]
    settings = {"env": copy.environment(str(copy.mirror)), "cwd": copy.folder}
    return subprocess.run(command, capture_output=True, text=True, check=True, **settings).stdout


def stored(copy):
    """The stored results, with the records that say when each was made."""
    return {file.name: file.read_bytes() for file in copy.path("results/store").glob("*.csv")}


@pytest.mark.slow
def test_what_comes_from_another_checkout_is_taken_as_made_and_only_what_is_new_is_run(
    tiny, story, tmp_path
):
    other, archive = copy(tiny), str(tmp_path / "tiny.zip")
    other.folder = tmp_path / "other"
    shutil.copytree(tiny.folder, other.folder)
    wipe(other)
    mirror = {"mirror": str(other.mirror)}
    assert reproduction(tiny, "pack", archive).startswith("3 of 3 results of scale tiny")
    assert reproduction(other, "unpack", archive).startswith("3 of 3 results of ")
    assert outcome(other) == {file: story.files[file] for file in RUNS}
    assert not other.planned(**mirror) & {*RUNS, "resources/tiny.json"}
    with other.edited("held.py", "another = 1\n"):
        said = reproduction(other, "unpack", archive)
        assert "1 not: no result of this checkout: other versions or settings" in said
    # A method that is added, and one whose version is raised; what is stored stays as it is.
    before = stored(other)
    added = {"new": {"class": "SGDTRegressor", "entries": ["tiny_table"]}}
    other.path("config/methods.yaml").write_text(yaml.safe_dump(added))
    versions = other.path("config/versions.yaml")
    for edit in ("  SGDTRegressor: 1\n", "  SGDTRegressor: 2\n"):
        text = versions.read_text(encoding="utf-8")
        versions.write_text(text.replace("  SGDTRegressor: 1\n", edit))
        assert other.run(TABLE_RUN, "--cores", "1", **mirror).code == 0
        now = stored(other)
        assert len(now) == len(before) + 1
        assert {name: now[name] for name in before} == before, "what was stored is made again"
        assert not list(other.folder.glob("started-*")), "the user's own method ran again"
        before = now


@pytest.mark.slow
def test_a_data_set_of_ones_own_runs_nothing_else(tiny, story):
    """One row of the table, and an entry that names it. The path is wrong: nothing is drawn."""
    header = tiny.path("config/datasets.csv").read_text(encoding="utf-8").splitlines()[0]
    given = {"name": "mine", "reader": "csv", "label": "y", "train": "mine.csv"}
    given |= {"task": "classification"}
    row = ",".join(given.get(column, "") for column in header.split(","))
    more = yaml.safe_load(ENTRIES)["tiny_figure"] | {"grid": {"dataset": ["mine"]}}
    entry, mirror = tiny.path("config/experiments/more.yaml"), {"mirror": str(tiny.mirror)}
    entry.write_text(yaml.safe_dump({"mine_figure": more | {"data": {"split": {"train": 60}}}}))
    own = {"resources/mine.json", "results/tiny/mine_figure/mine.csv"}
    own |= {f"figures/mine_figure.{end}" for end in ("csv", "svg", "pdf")}
    try:
        with tiny.edited("config/datasets.csv", row + "\n"):
            assert tiny.planned(**mirror) == own | {"report.html"}
            done = tiny.run("figure_mine_figure", "--cores", "1", **mirror)
            assert done.code != 0 and "Traceback" not in done.said
            assert f"there is no file {tiny.path('mine.csv')}: correct the path in" in done.said
            assert not any(tiny.path(file).exists() for file in own)
    finally:
        entry.unlink()
        tiny.path("resources/mine.json").unlink(missing_ok=True)


# -------------------------------------------------- accidents


@contextmanager
def held(copy, cores, *targets):
    """Snakemake, in the middle of a run that waits to be released."""
    wipe(copy)
    copy.path("hold").touch()
    process = copy.start(*targets, "--cores", cores, mirror=str(copy.mirror))
    try:
        wait_for(lambda: any(copy.folder.glob("started-*")) or process.poll() is not None)
        yield process
    finally:
        copy.path("hold").unlink(missing_ok=True)
        process.terminate()
        process.communicate()


def finish(copy, story, cores):
    """Call it again: the same files as if nothing had happened."""
    again = copy.run("--cores", cores, mirror=str(copy.mirror))
    assert again.code == 0, again.said[-3000:]
    assert whole(outcome(copy)) == story.files


def whole(files):
    """Without what a killed process was about to write, under a name that nobody reads."""
    return {name: content for name, content in files.items() if not name.endswith(".part")}


@pytest.mark.slow
@pytest.mark.parametrize("victim", ["workflow", "kernel"])
def test_killed_and_called_again(tiny, story, victim):
    """And until then no second run works in the folder, whatever it is asked for."""
    with held(tiny, "8") as process:
        [started] = tiny.folder.glob("started-*")
        family = psutil.Process(process.pid).children(recursive=True)
        for wanted in ([], [TABLE_RUN], ["resources/tiny.json"]):
            second = tiny.run(*wanted, "--cores", "1", mirror=str(tiny.mirror), seconds=60)
            assert second.code != 0 and f"process {process.pid} on " in second.said
            assert "works in this folder" in second.said and "Traceback" not in second.said
        if victim == "workflow":
            process.kill()
            process.wait()
            wait_for(lambda: all(map(is_over, family)), 60)
        else:
            psutil.Process(int(started.name.partition("-")[2])).kill()
            said, _ = process.communicate(timeout=300)
            assert process.returncode != 0 and "notebooks/run.ipynb failed" in said, said[-3000:]
    left = outcome(tiny)
    assert {name for name in left if left[name] != story.files.get(name)} == set()
    assert set(left) < set(story.files)
    finish(tiny, story, "8")


@pytest.mark.slow
def test_killed_at_any_moment(tiny, story):
    """Snakemake, a script or a kernel: what is there is right after each kill, and all at the end.

    OFSLIB_KILLS says how often.
    """
    rng, kills = np.random.default_rng(0), 0
    wipe(tiny)
    while kills < int(os.environ.get("OFSLIB_KILLS", 5)):
        process = tiny.start("--cores", "2", mirror=str(tiny.mirror))
        try:
            process.communicate(timeout=rng.uniform(1, 20))
            wipe(tiny)  # it was done before
            continue
        except subprocess.TimeoutExpired:
            family = [psutil.Process(process.pid)]
            family += family[0].children(recursive=True)
        with suppress(psutil.NoSuchProcess):
            family[rng.integers(len(family))].kill()
            kills += 1
        process.communicate(timeout=300)
        wait_for(lambda family=family: all(map(is_over, family)), 60)
        left = whole(outcome(tiny))
        assert {name for name in left if left[name] != story.files.get(name)} == set()
    finish(tiny, story, "2")
