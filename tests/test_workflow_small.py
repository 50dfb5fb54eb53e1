"""A small project of one's own in the workflow: offline, edited, killed, called twice."""

import csv
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from copy import copy
from types import SimpleNamespace

import nbformat
import numpy as np
import pandas as pd
import psutil
import pytest
import yaml
from checkout import CLOSED, MARKS, MIRROR, Copy, is_record, record

from ofslib.reproduction import provenance

pytestmark = MARKS


# -------------------------------------------------- a small project of one's own

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

DRAW = """
import matplotlib.pyplot as plt
from ofslib.reproduction import looks, plots, project, tables
looks.style()
work = project.load(scale=scale, **changes)
results = tables.results(work, entry)
fig, ax = plt.subplots()
if results["value"].isna().any():
    plots.note(fig, {"tiny": results["note"].iloc[0]})
else:
    plots.curves(ax, tables.summarise(results), "k")
plots.save_figure(fig, output)
tables.save_csv(results, output)
"""

ENTRIES = {
    "tiny_table": {
        "source": "Doe (2027), Table 1",
        "title": "Own methods & others",
        "form": "table",
        "notebook": "recovery_table",
        "published": "tiny_table",
        "data": {"simulate": "equicorrelated", "p": 200, "k": 10, "alpha": 0.5},
        "grid": {"n": [300]},
        "methods": {
            "SGDT": {"class": "sklearn.linear_model:SGDRegressor", "eta0": 1e-4},
            "mine": {"class": "held:Held", "alpha": 0.1},
        },
        "readings": {"plain": {"note": "As it is."}},
        "metrics": ["DR", "RMSE"],
        "replicates": 2,
    },
    "tiny_figure": {
        "source": "Doe (2027), Figure 1",
        "title": "A data set of one's own",
        "form": "figure",
        "notebook": "tiny_figure",
        "grid": {"dataset": ["tiny"]},
        "methods": {"B-ARDA": {"class": "BARDAClassifier"}},
        "sweep": {"k": [2, 5]},
        "tune": {"score": "online", "at": {"k": 5}, "grid": {"learning_rate": [0.01, 1.0]}},
        "metrics": ["accuracy"],
        "replicates": 2,
    },
}
SCALE = {"replicates": 2, "values": None, "run_values": None, "tune_values": None}
SCALE |= {"timing_repeats": 1, "timing_values": 0}


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    copy = Copy(tmp_path_factory.mktemp("tiny"))
    shutil.rmtree(copy.path("config/experiments"))
    for name, content in {
        "config": {"scale": "tiny", "real_data": "auto", "seed": 1},
        "scales": {"tiny": SCALE},
        "experiments/tiny": ENTRIES,
    }.items():
        copy.path(f"config/{name}.yaml").parent.mkdir(exist_ok=True)
        copy.path(f"config/{name}.yaml").write_text(yaml.safe_dump(content, sort_keys=False))
    copy.path("config/published/tiny_table.csv").write_text(
        "n,method,metric,value,note\n300,SGDT,DR,50,\n300,SGDT,RMSE,,not readable\n"
    )
    copy.path("held.py").write_text(HELD)
    sys.path.append(str(copy.folder))  # as the Snakefile does
    notebook = nbformat.v4.new_notebook()
    notebook.cells = [
        nbformat.v4.new_code_cell("entry = scale = changes = output = None"),
        nbformat.v4.new_code_cell(DRAW),
    ]
    notebook.cells[0].metadata["tags"] = ["parameters"]
    nbformat.write(notebook, copy.path("notebooks/tiny_figure.ipynb"))
    copy.mirror = tmp_path_factory.mktemp("mirror")
    add_data_set(copy)
    return copy


def add_data_set(copy):
    rng = np.random.default_rng(0)
    (copy.mirror / "tiny").mkdir()
    facts = {}
    for part, n in {"train": 60, "test": 40}.items():
        X = rng.integers(0, 3, (n, 30))
        lines = [
            " ".join([f"{1 if row[0] else -1}", *(f"{j + 1}:{v}" for j, v in enumerate(row) if v)])
            for row in X
        ]
        content = "\n".join(lines).encode() + b"\n"
        (copy.mirror / "tiny" / f"{part}.svm").write_bytes(content)
        facts |= {part: f"data/{part}.svm", f"n_{part}": n, f"{part}_bytes": len(content)}
        facts[f"{part}_checksum"] = "sha256:" + hashlib.sha256(content).hexdigest()
    facts |= {"name": "tiny", "title": "Tiny", "reader": "libsvm", "n_features": 30}
    facts |= {"repository": "nobody/nothing", "commit": "0" * 40, "task": "classification"}
    facts |= {"licence": "free", "citation": "Doe, 2027", "notes": ""}
    table = copy.path("config/datasets.csv")
    columns = table.read_text(encoding="utf-8").splitlines()[0].split(",")
    with table.open("a", encoding="utf-8", newline="") as file:
        csv.DictWriter(file, columns).writerow(facts)


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


@pytest.fixture(scope="module")
def story(tiny):
    """The small project offline, then with a mirror; one core; nothing goes wrong."""
    wipe(tiny)
    told = SimpleNamespace(offline=tiny.run("--cores", "1"))
    assert told.offline.code == 0, told.offline.said[-5000:]
    told.files_offline, told.record_offline = outcome(tiny), record(tiny, "tiny")
    told.report_offline = tiny.path("report.html").read_text(encoding="utf-8")
    told.again = tiny.run("--cores", "1")
    told.files_again, told.record_again = outcome(tiny), record(tiny, "tiny")
    told.plan = tiny.planned(mirror=str(tiny.mirror))
    told.online = tiny.run("--cores", "1", mirror=str(tiny.mirror))
    assert told.online.code == 0, told.online.said[-5000:]
    told.files, told.record = outcome(tiny), record(tiny, "tiny")
    told.report = tiny.path("report.html").read_text(encoding="utf-8")
    told.plan_after = tiny.planned(mirror=str(tiny.mirror))
    return told


REAL_PART = {"resources/tiny.json", "results/tiny/tiny_figure/tiny.csv"}
REAL_PART |= {f"figures/tiny_figure.{end}" for end in ("csv", "svg", "pdf")}
TABLE_RUNS = {"results/tiny/tiny_table/plain_300.csv"}
TABLE = {f"figures/tiny_table.{end}" for end in ("csv", "tex")}
END = {"figures/PROVENANCE.json", "report.html"}


def test_offline_the_rest_is_made_and_the_gap_is_marked(story):
    assert set(story.files_offline) == (REAL_PART | TABLE_RUNS | TABLE) - {"resources/tiny.json"}
    assert story.record_offline["status"] == "not fetched"
    assert "Missing data set tiny: not downloaded" in story.offline.said
    assert MIRROR in story.offline.said, "the summary does not say what to do"
    assert "<code>tiny</code>: not downloaded" in story.report_offline
    rows = story.files_offline["results/tiny/tiny_figure/tiny.csv"].decode().splitlines()
    assert len(rows) == 1 + 2 and all("not downloaded" in row for row in rows[1:])


def test_offline_again_nothing_is_made(story):
    assert story.again.code == 0 and "Nothing to be done" in story.again.said
    assert "Missing data set tiny: not downloaded" in story.again.said
    assert (story.files_again, story.record_again) == (story.files_offline, story.record_offline)


def test_a_data_set_that_was_missing_is_fetched_when_it_can_be(story):
    assert story.plan == set(), "a plan does not try whether the data are there now"
    assert story.record["status"] == "fetched"
    assert "not downloaded" not in story.report
    jobs = set(re.findall(r"^\[\d of 4.*?\] (.*): [\d:]+$", story.online.said, re.M))
    end = {"Write down where the figures come from", "Write report.html"}
    assert jobs == {"tiny_figure: run tiny", "tiny_figure: draw"} | end
    for name in TABLE_RUNS | TABLE:
        assert story.files[name] == story.files_offline[name]
    for name in REAL_PART - {"resources/tiny.json"}:
        assert story.files[name] != story.files_offline[name]
    assert story.plan_after == set()


def test_a_dry_run_tells_of_a_data_file_that_has_changed(tiny, story):
    record = tiny.path("resources/tiny.json").read_bytes()
    name = next(file for file in json.loads(record)["sha256"] if tiny.path(file).is_file())
    with tiny.edited(name):
        done = tiny.run("-n", mirror=str(tiny.mirror))
        said = (
            f"{name} has changed: it is fetched again or, if it is your own, what reads it is made"
        )
        assert done.code == 0 and done.said.count(said) == 1
        assert f"Changed since it came: {name}; it is fetched again or" in reproduction(
            tiny, "plan"
        )
    assert "has changed" not in tiny.run("-n", mirror=str(tiny.mirror)).said
    assert tiny.path("resources/tiny.json").read_bytes() == record


def test_what_a_killed_run_drew_is_noted_by_the_next_one(tiny, story):
    """Though nothing is to be made; not a figure that was changed since."""
    file, table = tiny.path("figures/PROVENANCE.json"), tiny.path("figures/tiny_table.csv")
    before = {path: (path.read_bytes(), path.stat()) for path in (file, table)}
    made = provenance.read(file)
    try:
        file.write_text('{"environments": [], "entries": {}}')
        for entries in ({"tiny_figure"}, {"tiny_figure", "tiny_table"}):
            table.write_bytes(b"changed" if len(entries) == 1 else before[table][0])
            restore(table, before[table][1])
            done = tiny.run("figure_tiny_figure", "--cores", "1", mirror=str(tiny.mirror))
            assert done.code == 0 and "Nothing to be done" in done.said, done.said[-3000:]
            assert provenance.read(file) == {entry: made[entry] for entry in entries}
    finally:
        for path, (content, stamp) in before.items():
            path.write_bytes(content)
            restore(path, stamp)


def restore(path, stamp):
    os.utime(path, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))


def reproduction(copy, *words):
    """What `python -m ofslib.reproduction` says in a copy."""
    command = [sys.executable, "-m", "ofslib.reproduction", *words]
    settings = {"env": copy.environment(str(copy.mirror)), "cwd": copy.folder}
    return subprocess.run(command, capture_output=True, text=True, check=True, **settings).stdout


def stored(copy):
    """The stored results, with the records that say when each was made."""
    return {file.name: file.read_bytes() for file in copy.path("results/store").glob("*.csv")}


@pytest.fixture
def other(tiny, story, tmp_path):
    """Another checkout, with the results of the first from an archive, and that archive."""
    other = copy(tiny)
    other.folder = tmp_path / "other"
    shutil.copytree(tiny.folder, other.folder)
    wipe(other)
    other.archive = str(tmp_path / "tiny.zip")
    assert reproduction(tiny, "pack", other.archive).startswith("3 of 3 results of scale tiny")
    assert reproduction(other, "unpack", other.archive).startswith("3 of 3 results of ")
    return other


RUNS = {"results/tiny/tiny_figure/tiny.csv", "results/tiny/tiny_table/plain_300.csv"}


def test_results_of_another_checkout_are_taken_as_made(other, story):
    """Only figures are made, whatever the times of files."""
    # What was taken as made in no time says nothing of how long it takes
    assert not other.path(".snakemake/durations.json").exists()
    assert outcome(other) == {file: story.files[file] for file in RUNS}
    for name in other.tracked:
        if other.path(name).exists() and not name.startswith("workflow/scripts/"):
            other.path(name).touch()
    mirror = {"mirror": str(other.mirror)}
    assert not other.planned(**mirror) & {*RUNS, "resources/tiny.json"}
    with other.edited("held.py", "another = 1\n"):
        assert other.planned(**mirror) & RUNS == TABLE_RUNS
        other.path("figures").mkdir(exist_ok=True)
        shutil.copy(other.archive, other.path("figures/results-tiny.zip"))
        said = reproduction(other, "unpack")  # of the archive that comes with the checkout
        assert said.startswith("2 of 3 results of ") and "figures/results-tiny.zip are here" in said
        assert "1 not: no result of this checkout: other versions or settings" in said
    assert other.planned(seed=2, **mirror) >= RUNS


def test_only_what_is_new_or_of_another_version_is_run(other):
    """A method that is added, and one whose version is raised; what is stored stays as it is."""
    before = stored(other)
    [target] = TABLE_RUNS
    held = target, "--cores", "1"
    added = {"new": {"class": "SGDTRegressor", "entries": ["tiny_table"]}}
    other.path("config/methods.yaml").write_text(yaml.safe_dump(added))
    assert other.run(*held, mirror=str(other.mirror)).code == 0
    [new] = stored(other).keys() - before.keys()
    assert not list(other.folder.glob("started-*")), "the user's own method ran again"
    first = stored(other)
    assert {name: first[name] for name in before} == before
    versions = other.path("config/versions.yaml")
    text = versions.read_text(encoding="utf-8")
    versions.write_text(text.replace("  SGDTRegressor: 1\n", "  SGDTRegressor: 2\n"))
    assert other.planned(mirror=str(other.mirror)) & RUNS == TABLE_RUNS
    assert other.run(*held, mirror=str(other.mirror)).code == 0
    last = stored(other)
    assert len(last) == len(first) + 1 and {name: last[name] for name in first} == first
    assert not list(other.folder.glob("started-*"))
    [again] = last.keys() - first.keys()
    rows = [content.partition(b"\n")[2] for content in (last[new], last[again])]
    assert rows[0] == rows[1], "the same rows, the same numbers"


def test_a_data_set_of_ones_own_runs_nothing_else(tiny, story):
    """One row of the table, and an entry that names it: a CSV file where it lies."""
    header = tiny.path("config/datasets.csv").read_text(encoding="utf-8").splitlines()[0]
    given = {"name": "mine", "reader": "csv", "label": "y", "train": "mine.csv"}
    given |= {"task": "classification"}
    row = ",".join(given.get(column, "") for column in header.split(","))
    more = ENTRIES["tiny_figure"] | {"grid": {"dataset": ["mine"]}}
    more |= {"data": {"split": {"train": 60}}}
    entry = tiny.path("config/experiments/more.yaml")
    entry.write_text(yaml.safe_dump({"mine_figure": more}))
    own = {"resources/mine.json", "results/tiny/mine_figure/mine.csv"}
    own |= {f"figures/mine_figure.{end}" for end in ("csv", "svg", "pdf")}
    try:
        with tiny.edited("config/datasets.csv", row + "\n"):
            assert tiny.planned(mirror=str(tiny.mirror)) == own | END
            # Nothing is drawn that would replace what was made when the path was right.
            done = tiny.run("figure_mine_figure", "--cores", "1", mirror=str(tiny.mirror))
            assert done.code != 0 and "Traceback" not in done.said
            assert f"there is no file {tiny.path('mine.csv')}: correct the path in" in done.said
            assert not any(tiny.path(file).exists() for file in own)
            done = tiny.run("resources/mine.json", "--cores", "1", real_data="none")
            assert done.code == 0 and record(tiny, "mine")["status"] == "not fetched"
            done = tiny.run("resources/mine.json", "--cores", "1", mirror=str(tiny.mirror))
            assert done.code != 0 and "mine.csv: correct the path in" in done.said
    finally:
        entry.unlink()
        tiny.path("resources/mine.json").unlink(missing_ok=True)


def test_a_users_method_is_a_column_of_the_table(story):
    for name in TABLE_RUNS:
        table = pd.read_csv(pd.io.common.BytesIO(story.files[name]))
        assert set(table["method"]) == {"mine", "SGDT"}
        assert table["value"].notna().all()
    compared = pd.read_csv(pd.io.common.BytesIO(story.files["figures/tiny_table.csv"]))
    mine = compared[compared["method"] == "mine"]
    assert len(mine) == 2
    # It has no k, and all of its coefficients count.
    beyond = "2 of 2 runs keep more than k features"
    assert set(mine["why"]) == {f"not in the paper's table; {beyond}"}
    printed = story.files["figures/tiny_table.tex"].decode()
    assert "More than k features, in some runs: SGDT, mine." in printed
    assert "{mine}" in printed
    assert '<th scope="col">mine</th>' in story.report
    assert "Own methods &amp; others" in story.report


def test_edit_of_a_users_method_runs_its_table(tiny, story):
    """Of its code, not of a comment."""
    with tiny.edited("held.py", "# a comment\n"):
        assert tiny.planned(mirror=str(tiny.mirror)) == set()
    with tiny.edited("held.py", "another = 1\n"):
        assert tiny.planned(mirror=str(tiny.mirror)) == TABLE_RUNS | TABLE | END


def test_real_data_required_but_out_of_reach(tiny, story):
    data = tiny.path("resources/tiny")
    kept = data.rename(data.with_name("elsewhere"))
    before = tiny.path("resources/tiny.json").read_bytes()
    try:
        done = tiny.run("--cores", "2", mirror=CLOSED, real_data="require", seconds=60)
        assert done.code != 0
        assert "tiny/train.svm could not be had" in done.said
        assert "Traceback" not in done.said
    finally:
        shutil.rmtree(data, ignore_errors=True)
        kept.rename(data)
        tiny.path("resources/tiny.json").write_bytes(before)


def test_without_real_data_on_purpose(tiny, story):
    """Also where they could be had."""
    options = {"mirror": str(tiny.mirror), "real_data": "none"}
    done = tiny.run("resources/tiny.json", "--cores", "1", **options)
    assert done.code == 0, done.said[-3000:]
    assert record(tiny, "tiny")["status"] == "not fetched"
    assert "none" in record(tiny, "tiny")["reason"]
    planned = tiny.planned(**options)
    assert planned >= (REAL_PART | END) - {"resources/tiny.json"}
    assert not planned & TABLE_RUNS
    assert "resources/tiny.json" not in planned, "not wanted, yet to be tried again in each call"


# -------------------------------------------------- accidents


def wait_for(condition, process, seconds=300):
    end = time.monotonic() + seconds
    while not condition():
        assert process.poll() is None, process.communicate()[0][-3000:]
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.1)


def is_over(process):
    try:
        return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


@contextmanager
def held(copy, cores, *targets):
    """Snakemake, in the middle of a run that waits to be released."""
    wipe(copy)
    copy.path("hold").touch()
    process = copy.start(*targets, "--cores", cores, mirror=str(copy.mirror))
    try:
        wait_for(lambda: any(copy.folder.glob("started-*")), process)
        yield process
    finally:
        copy.path("hold").unlink(missing_ok=True)
        if process.poll() is None:
            process.terminate()
        process.communicate()


def test_killed_and_called_again(tiny, story):
    with held(tiny, "8") as process:
        second = tiny.run("--cores", "1", mirror=str(tiny.mirror), seconds=60)
        assert second.code != 0 and "works in this folder" in second.said, (
            "two at once in one folder"
        )
        assert process.poll() is None
        family = psutil.Process(process.pid).children(recursive=True)
        process.send_signal(signal.SIGKILL)
        process.wait()
        end = time.monotonic() + 20
        while not all(map(is_over, family)):
            assert time.monotonic() < end, "jobs live on"
            time.sleep(0.1)
    left = outcome(tiny)
    assert {name for name in left if left[name] != story.files.get(name)} == set()
    assert set(left) < set(story.files)
    again = tiny.run("--cores", "8", mirror=str(tiny.mirror))
    assert again.code == 0, again.said[-3000:]
    assert outcome(tiny) == story.files


def test_killed_at_any_moment(tiny, story):
    """Snakemake, a script or a kernel: what is there is right after each kill, and all at the end.

    OFSLIB_KILLS says how often.
    """
    rng, kills = np.random.default_rng(0), 0
    wipe(tiny)
    while kills < int(os.environ.get("OFSLIB_KILLS", 2)):
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
        end = time.monotonic() + 20
        while not all(map(is_over, family)):
            assert time.monotonic() < end, "jobs live on"
            time.sleep(0.1)
        left = whole(outcome(tiny))
        assert {name for name in left if left[name] != story.files.get(name)} == set()
    again = tiny.run("--cores", "2", mirror=str(tiny.mirror))
    assert again.code == 0, again.said[-3000:]
    assert whole(outcome(tiny)) == story.files


def whole(files):
    """Without what a killed process was about to write, under a name that nobody reads."""
    return {name: content for name, content in files.items() if not name.endswith(".part")}


def test_other_files_beside_a_living_run(tiny):
    """Snakemake locks files, and the end of a run of other files removes the locks of all."""
    (target,), other = TABLE_RUNS, "resources/tiny.json"
    with held(tiny, "2", target) as process:
        locks = sorted(tiny.path(".snakemake/locks").iterdir())
        owner = tiny.path(".snakemake/owner.json").read_bytes()
        assert locks and json.loads(owner)[1] == process.pid
        for wanted in (other, target):
            beside = tiny.run(wanted, "--cores", "1", mirror=str(tiny.mirror), seconds=60)
            assert beside.code != 0 and f"process {process.pid} " in beside.said, beside.said
            assert "works in this folder" in beside.said and "Traceback" not in beside.said
            assert sorted(tiny.path(".snakemake/locks").iterdir()) == locks
            assert tiny.path(".snakemake/owner.json").read_bytes() == owner
        assert process.poll() is None and len(list(tiny.folder.glob("started-*"))) == 1
        tiny.path("hold").unlink()
        said, _ = process.communicate(timeout=300)
    assert process.returncode == 0 and tiny.path(target).is_file(), said[-3000:]


def test_snakemake_rests_while_jobs_run(tiny):
    """With a limit on jobs per second it looked for what to run once a second, and more."""
    (target,) = TABLE_RUNS
    with held(tiny, "1", "--verbose", "--prioritize", target) as process:
        time.sleep(3.5)
        tiny.path("hold").unlink()
        process.terminate()
        said, _ = process.communicate(timeout=300)
    looked = re.findall(r"Ready jobs: (\d+)", said)
    assert looked == ["2"]


def test_an_empty_scale_is_no_scale(tiny):
    done = tiny.run("-n", mirror=str(tiny.mirror), scale="")
    assert done.code != 0 and "config/config.yaml" in done.said and "scale: " in done.said


def test_a_cut_record_is_made_again(tiny):
    wipe(tiny)
    words = ["resources/tiny.json", "--cores", "1"]
    assert tiny.run(*words, mirror=str(tiny.mirror)).code == 0
    before = tiny.path("resources/tiny.json").read_bytes()
    tiny.path("resources/tiny.json").write_bytes(before[:50])
    again = tiny.run(*words, mirror=str(tiny.mirror))
    assert again.code == 0 and "resources/tiny.json is no whole record" in again.said, again.said
    assert tiny.path("resources/tiny.json").read_bytes() == before


def test_a_killed_kernel_is_told_and_the_next_call_goes_on(tiny, story):
    with held(tiny, "2") as process:
        (started,) = tiny.folder.glob("started-*")
        kernel = psutil.Process(int(started.name.partition("-")[2]))
        assert "ipykernel_launcher" in " ".join(kernel.cmdline())
        kernel.kill()
        said, _ = process.communicate(timeout=300)
    assert process.returncode != 0 and "notebooks/run.ipynb failed" in said, said[-3000:]
    assert len(list(tiny.folder.glob("started-*"))) == 1
    again = tiny.run("--cores", "2", mirror=str(tiny.mirror))
    assert again.code == 0, again.said[-3000:]
    assert outcome(tiny) == story.files


def test_a_lock_without_a_readable_owner_is_no_dead_end(tiny, story):
    """What a kill leaves that came while the owner of the lock was written down."""
    owner = tiny.path(".snakemake/owner.json")
    before = owner.read_bytes() if owner.exists() else None
    owner.parent.mkdir(exist_ok=True)
    owner.write_bytes(b"")
    try:
        done = tiny.run("-n", mirror=str(tiny.mirror))
        assert done.code == 0, done.said[-2000:]
    finally:
        owner.unlink(missing_ok=True)
        if before:
            owner.write_bytes(before)
