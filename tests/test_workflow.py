"""The workflow as a stranger meets it: in a copy of the checkout, offline, killed, changed.

Nothing here may use the network: all https connections are sent to a port where nobody listens.
"""

import csv
import hashlib
import html
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
from datetime import datetime, timedelta
from html.parser import HTMLParser
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace

import nbformat
import numpy as np
import pandas as pd
import psutil
import pytest
import shipped
import yaml

from ofslib.reproduction import project, provenance, records

pytestmark = [
    pytest.mark.workflow,
    pytest.mark.slow,
    pytest.mark.skipif(os.name != "posix", reason="signals"),
    pytest.mark.skipif(not shutil.which("git"), reason="git tells which files are the project's"),
]

ROOT = Path(__file__).parents[1]
MIRROR = "OFSLIB_DATA_MIRROR"
BESIDE = ROOT.parent / "shared" / "data"
REAL = os.environ.get(MIRROR) or (str(BESIDE) if BESIDE.is_dir() else None)
CLOSED = "http://127.0.0.1:9"  # the discard port: nobody listens
PROXIES = {"http_proxy", "https_proxy", "all_proxy", "no_proxy"}
OLD = b"what an earlier run made\n"


# -------------------------------------------------- a copy of the project, and Snakemake in it


class Copy:
    """The files of the working tree that git does not ignore, in a folder of their own.

    What a user has added to the configuration is left out.
    """

    def __init__(self, folder, cache):
        self.folder, self.cache = folder, cache
        listed = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            cwd=ROOT,
            capture_output=True,
            check=True,
        ).stdout.decode()
        names = sorted(filter(None, listed.split("\0")))
        there = [name for name in names if (ROOT / name).is_file()]
        for name in there:  # in this order, as git writes them
            content = OLD if is_product(name) else (ROOT / name).read_bytes()
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(content)
        shipped.leave_out_what_is_added(folder)
        self.tracked = [name for name in there if self.path(name).is_file()]

    def path(self, name):
        return self.folder / name

    def environment(self, mirror):
        kept = {
            name: value
            for name, value in os.environ.items()
            if name.lower() not in PROXIES and name != MIRROR and not name.startswith("PYTEST")
        }
        # Not below the copy: what one test compiles, the next one need not.
        kept |= {"PYTHONPATH": str(self.folder), "NUMBA_CACHE_DIR": str(self.cache)}
        kept |= {"https_proxy": CLOSED, "HTTPS_PROXY": CLOSED}
        return kept | ({MIRROR: mirror} if mirror else {})

    def start(self, *words, mirror=None, **config):
        changes = [f"{name}={value}" for name, value in config.items()]
        return subprocess.Popen(
            [
                sys.executable,
                "-m",
                "snakemake",
                *words,
                *(["--config", *changes] if config else []),
            ],
            cwd=self.folder,
            env=self.environment(mirror),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            text=True,
        )

    def run(self, *words, seconds=600, **options):
        process = self.start(*words, **options)
        try:
            said, _ = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            process.terminate()
            said, _ = process.communicate()
            pytest.fail(f"more than {seconds} s: {words}\n{said[-3000:]}")
        return SimpleNamespace(code=process.returncode, said=said)

    def planned(self, *targets, **options):
        """Files that Snakemake would make now."""
        done = self.run("--summary", *targets, **options)
        assert done.code == 0, done.said[-3000:]
        lines = done.said[done.said.index("output_file\t") :].splitlines()
        rows = csv.DictReader([line for line in lines if "\t" in line], delimiter="\t")
        files = {row["output_file"] for row in rows if row["plan"] != "no update"}
        return {file for file in files if not is_record(file)}

    @contextmanager
    def edited(self, name, more="\n"):
        before, stamp = self.path(name).read_bytes(), self.path(name).stat()
        self.path(name).write_bytes(before + more.encode())
        try:
            yield
        finally:
            self.path(name).write_bytes(before)
            os.utime(self.path(name), ns=(stamp.st_atime_ns, stamp.st_mtime_ns))


def is_product(name):
    made = name.startswith("figures/") or name == "report.html"
    return made and name != "figures/PROVENANCE.json"


def whole_log(copy):
    """All that Snakemake said in its last run; the screen shows less."""
    newest = max(copy.path(".snakemake/log").glob("*.log"))
    return newest.read_text(encoding="utf-8")


def record(copy, dataset):
    return json.loads(copy.path(f"resources/{dataset}.json").read_text(encoding="utf-8"))


class References(HTMLParser):
    """What a page loads or links to, and the places that it can be linked at."""

    def __init__(self, text):
        super().__init__()
        self.loaded, self.linked, self.places = [], [], set()
        self.feed(text)
        self.loaded += re.findall(r"@import\s+[\"']?([^\"');]+)", text)
        self.loaded += re.findall(r"\burl\(\s*[\"']?([^\"')]+)", text)

    def handle_starttag(self, tag, attributes):
        for name, value in attributes:
            if name in ("src", "srcset", "data", "poster", "action"):
                self.loaded.append(value)
            elif name in ("href", "xlink:href"):
                (self.linked if tag == "a" else self.loaded).append(value)
            elif name == "id":
                self.places.add(value)


# -------------------------------------------------- everything, at the smallest scale


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    return tmp_path_factory.mktemp("kernels")


@pytest.fixture(scope="module")
def smoke(tmp_path_factory, cache):
    """A clean checkout in which `snakemake` was called once."""
    copy = Copy(tmp_path_factory.mktemp("smoke"), cache)
    git = ["git", "-c", "user.name=x", "-c", "user.email=x@y", "-c", "commit.gpgsign=false"]
    for words in (["init", "-q"], ["add", "-A", "-f"], ["commit", "-q", "-m", "x"]):
        subprocess.run([*git, *words], cwd=copy.folder, check=True, stdout=subprocess.DEVNULL)
    copy.work = project.load(copy.folder, scale="smoke")
    copy.settings = {"scale": "smoke", "mirror": REAL}
    copy.first = copy.run("--cores", "8", **copy.settings, seconds=2400)
    assert copy.first.code == 0, copy.first.said[-5000:]
    copy.log = whole_log(copy)
    copy.missing = [
        name for name in copy.work.datasets if record(copy, name)["status"] != "fetched"
    ]
    return copy


def products(work, *entries):
    figures = {file for entry in entries for file in work.figures(entry)}
    return figures | {work.provenance, work.report}


@pytest.fixture(scope="module")
def untouched(tmp_path_factory, cache):
    """A clean checkout in which nothing was run."""
    return Copy(tmp_path_factory.mktemp("untouched"), cache)


def test_lint(untouched):
    done = untouched.run("--lint")
    assert done.code == 0, done.said


@pytest.mark.parametrize("newer", [False, True], ids=["clone", "figures_newer"])
def test_figures_that_came_with_the_checkout_are_made_again(untouched, newer):
    """The second case: `git pull` brought new ones, or someone removed results/ and .snakemake/."""
    if newer:
        for name in filter(is_product, untouched.tracked):
            untouched.path(name).touch()
    work = project.load(untouched.folder)
    work = project.load(untouched.folder, scale=work.committed)
    assert work.folder == "figures"
    expected = {f for e in work.entries for f in (*work.inputs(e), *work.figures(e))}
    assert expected - untouched.planned(scale=work.scale) == set()


def test_smoke_makes_every_file_anew(smoke):
    expected = products(smoke.work, *smoke.work.entries)
    assert {f for f in expected if not smoke.path(f).is_file()} == set()
    assert [f for f in expected if not smoke.path(f).stat().st_size] == []


def test_smoke_draws_no_figure_that_is_hard_to_read(smoke):
    logs = [smoke.path(f"logs/smoke/{entry}.ipynb") for entry in smoke.work.entries]
    assert [f.name for f in logs if "HardToRead" in f.read_text(encoding="utf-8")] == []


def test_smoke_replaces_nothing_that_came_with_the_checkout(smoke):
    words = ["git", "status", "--porcelain"]
    assert subprocess.run(words, cwd=smoke.folder, capture_output=True, check=True).stdout == b""


def test_no_figure_is_tracked_that_is_never_made(untouched):
    work = project.load(untouched.folder)
    work = project.load(untouched.folder, scale=work.committed)
    assert {f for f in untouched.tracked if is_product(f)} <= products(work, *work.entries)


def test_cores_that_the_machine_lacks_are_not_promised(smoke):
    there = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    assert int(re.search(r"^Provided cores: (\d+)", smoke.log, re.M)[1]) == min(8, there)


def test_what_measures_by_the_clock_has_the_machine_alone(smoke):
    """No job begins or ends between its beginning and its end: nor does one go on meanwhile."""
    events = re.findall(r"^(Job|Finished jobid:) (\d+)(?:: (.*))?", smoke.log, re.M)
    said = {job: message for event, job, message in events if event == "Job"}
    names = {
        f"{e}: run {s.name}"
        for e, entry in smoke.work.entries.items()
        if entry.spec["alone"]
        for s in entry.to_run
    }
    going_on, beside = set(), {}
    for event, job, _ in events:
        if event == "Job":
            going_on.add(job)
        for one in going_on:
            beside.setdefault(one, set()).update(going_on - {one})
        going_on -= {job} if event != "Job" else set()
    alone = {job for job, message in said.items() if message in names}
    assert len(alone) == len(names) > 0
    assert {said[job]: [said[other] for other in beside[job]] for job in alone if beside[job]} == {}


def test_smoke_uses_the_real_data_that_can_be_had(smoke):
    for name in smoke.work.datasets:
        found = record(smoke, name)
        files = sorted(path for path in smoke.path(f"resources/{name}").glob("*"))
        if found["status"] == "fetched":
            sums = {
                f: hashlib.sha256(smoke.path(f).read_bytes()).hexdigest() for f in found["sha256"]
            }
            assert found["sha256"] == sums != {}
            assert {smoke.path(file) for file in sums} <= set(files)
        else:
            assert found["status"] == "not fetched" and found["reason"]
            assert f"Missing data set {name}: not fetched" in smoke.first.said
    if not REAL:
        assert smoke.missing == smoke.work.datasets
    elif Path(REAL).is_dir():
        there = {name for name in smoke.work.datasets if complete(name)}
        assert set(smoke.missing) == set(smoke.work.datasets) - there


def complete(name):
    row = project.load(ROOT).row(name)
    wanted = {Path(path).name for path in f"{row['train']} {row['test']}".split()}
    return wanted <= {file.name for file in Path(REAL, name).glob("*")}


def test_smoke_marks_what_is_missing(smoke):
    for entry in smoke.work.entries.values():
        for setting in entry.to_run:
            table = pd.read_csv(smoke.path(smoke.work.result(entry.name, setting.name)))
            methods = setting.spec["methods"].items()
            shown = {n for n, m in methods if m.get("replicates") != 0}
            if setting.dataset in smoke.missing:
                assert table["value"].isna().all()
                assert table["note"].str.startswith("not fetched").all()
            elif setting.spec["study"]:
                # Its methods may be curves; a bound that does not apply has no value but a reason.
                noted = table["note"].notna() if "note" in table else False
                assert (table["value"].isna() <= noted).all()
            else:
                assert set(table["method"]) - {"truth"} == shown
                absent = table["note"].str.endswith("not installed") if "note" in table else False
                assert (table["value"].isna() == absent).all()
    report = smoke.path(smoke.work.report).read_text(encoding="utf-8")
    for name in smoke.work.datasets:
        assert (f"<code>{name}</code>: not fetched" in report) == (name in smoke.missing)


def test_the_screen_counts_the_steps_down(smoke):
    done = re.findall(r"^\[(\d+) of (\d+)[],]", smoke.first.said, re.M)
    total = int(done[-1][0])
    assert [(int(n), int(of)) for n, of in done] == [(n + 1, total) for n in range(total)]
    assert re.search(rf"^{total} steps$", smoke.first.said, re.M)
    dull = ("Building DAG", "Reason:", "Select jobs", "Finished jobid", "localrule all", "Job ")
    assert [line for line in smoke.first.said.splitlines() if line.startswith(dull)] == []
    assert f"{len(smoke.work.entries)} tables and figures in figures/smoke/" in smoke.first.said


def test_report_opens_offline(smoke):
    report = smoke.path(smoke.work.report)
    page = References(report.read_text(encoding="utf-8"))
    outside = [where for where in page.loaded if not where.startswith(("#", "%23", "data:"))]
    assert outside == []
    anchors = {where[1:] for where in page.linked if where.startswith("#")}
    assert anchors <= page.places and anchors == {*smoke.work.entries, "top"}
    files = {where for where in page.linked if not where.startswith("#")}
    assert {where for where in files if ":" in where or where.startswith("/")} == set()
    there = {(report.parent / file).resolve() for file in files}
    assert {file for file in there if not file.exists()} == set()
    figures = {file for entry in smoke.work.entries for file in smoke.work.figures(entry)}
    assert {smoke.path(file).resolve() for file in figures} <= there


def test_report_shows_every_entry(smoke):
    report = smoke.path(smoke.work.report).read_text(encoding="utf-8")
    assert "Not drawn yet" not in report and "Scale: smoke" in report
    for entry in smoke.work.entries.values():
        assert f'<section id="{entry.name}"' in report
        assert entry.spec["title"] in html.unescape(report)
    figures = [e for e in smoke.work.entries.values() if e.spec["form"] == "figure"]
    assert report.count("<img src=") == len(figures)
    assert str(smoke.folder) not in report and str(ROOT) not in report


def test_provenance(smoke):
    """Each entry says of which scale, when, where and from which commit; its runs, too.

    The sources were not changed since; that the run made the figures anew is no change.
    """
    file = smoke.path(smoke.work.provenance)
    found = provenance.read(file)
    assert found.keys() == smoke.work.entries.keys()
    expected = yaml.safe_load((ROOT / "config/config.yaml").read_text(encoding="utf-8"))
    head = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=smoke.folder, capture_output=True, text=True, check=True
    )
    for entry, facts in found.items():
        assert (facts["scale"], facts["real_data"]) == ("smoke", expected["real_data"])
        assert (facts["seed"], facts["commit"]) == (expected["seed"], head.stdout.strip())
        made = datetime.fromisoformat(facts["date"])
        assert made.utcoffset() == timedelta(0)
        assert abs(made.timestamp() - time.time()) < 3600
        for name in provenance.PACKAGES:
            assert facts["with"][name] == version(name)
        assert facts["with"]["python"] == ".".join(map(str, sys.version_info[:3]))
        assert facts["with"]["machine"] and facts["with"]["system"]
        runs = {*smoke.work.inputs(entry), *smoke.work.inputs(entry, "time")}
        assert facts.get("runs", {"number": 0})["number"] == len(runs)
        if runs:
            assert facts["runs"]["commit"] == [head.stdout.strip()]
            assert facts["runs"]["to"] <= facts["date"]
            assert facts["runs"]["cpu_hours"] > 0 and facts["runs"]["memory_mb"] > 50
    text = file.read_text(encoding="utf-8")
    assert str(smoke.folder) not in text and str(Path.home()) + "/" not in text


def test_smoke_once_more_does_nothing(smoke):
    assert smoke.planned(**smoke.settings) == set()
    once_more = smoke.run("--cores", "8", **smoke.settings)
    assert "Nothing to be done" in once_more.said
    for name in smoke.missing:
        assert f"Missing data set {name}: not fetched" in once_more.said


# -------------------------------------------------- what an edit makes run again


@pytest.fixture(scope="module")
def made(tmp_path_factory, cache):
    """A checkout in which all is made, as far as Snakemake knows: files of any content."""
    copy = Copy(tmp_path_factory.mktemp("made"), cache)
    copy.work = work = project.load(copy.folder, scale="smoke")
    stamps = {f"results/{work.scale}/{entry}.drawn" for entry in work.entries}
    for file in products(work, *work.entries) | results_of(work) | stamps:
        copy.path(file).parent.mkdir(parents=True, exist_ok=True)
        copy.path(file).write_text(file)
    for name in work.datasets:
        copy.path(records.path(name)).parent.mkdir(exist_ok=True)
        copy.path(records.path(name)).write_text('{"status": "fetched"}')
    copy.settings = {"scale": "smoke"}
    done = copy.run("--touch", "--forceall", "--cores", "1", **copy.settings)
    assert done.code == 0, done.said[-3000:]
    assert copy.planned(**copy.settings) == set()
    return copy


def results_of(work):
    found = {f for e in work.entries for f in (*work.inputs(e), *work.inputs(e, "time"))}
    return found | {provenance.record_of(file) for file in found}


def runs_with(work, module):
    return {
        str(work.result(entry.name, setting.name, kind))
        for entry in work.entries.values()
        for kind, settings in {"": entry.to_run, "time": entry.timed}.items()
        for setting in settings
        if any(file.endswith(module) for file in project.sources(*setting.needs))
    }


def test_edit_of_an_algorithm_runs_what_uses_it(made):
    runs = runs_with(made.work, "algorithms/barda.py")
    users = {"barda_figure_1", "barda_figure_3", "bounds_barda_theorems", "drift_recovery"}
    users |= {"untuned_one_pass", "growth_of_costs"}
    assert {Path(run).parent.name for run in runs} == users
    with made.edited("ofslib/algorithms/barda.py", "# a comment\n"):
        planned = made.planned(**made.settings)
    tables = {"barda_table_1", "dissertation_table_3_1", "ofs_table_1"}
    assert planned == runs | products(made.work, *users, *tables, "barda_figure_2")
    assert made.planned(**made.settings) == set(), "restored, but not as before"


def test_edit_of_a_solver_of_averages_runs_nothing_of_rows(made):
    with made.edited("ofslib/kernels/gram.py", "# a comment\n"):
        rows = made.run("-n", "figure_sfsa_table_1", "figure_barda_figure_1", **made.settings)
        planned = made.planned(**made.settings)
    assert "Nothing to be done" in rows.said
    assert runs_with(made.work, "kernels/gram.py") < planned


def test_edit_of_the_style_runs_no_experiment(made):
    with made.edited("ofslib/reproduction/looks.py", "# a comment\n"):
        planned = made.planned(**made.settings)
    assert {file for file in planned if file.startswith("results/")} == set()
    assert planned >= products(made.work, "sfsa_table_1", "barda_figure_1", "os_figure_1")


def test_edit_of_a_figure_notebook_draws_its_figure(made):
    with made.edited("notebooks/annealing_schedules.ipynb"):
        planned = made.planned(**made.settings)
    drawn = (products(made.work, n) for n in ("sfsa_figure_1", "dissertation_figure_2_1"))
    assert planned == set().union(*drawn)


def test_edit_of_a_parameter_runs_its_entry(made):
    name = "config/experiments/sfsa.yaml"
    text = made.path(name).read_text(encoding="utf-8")
    more = text.replace("mu: 5\n", "mu: 6\n")[len(text) :]
    assert more == "" and text.count("mu: 5\n") == 1
    with made.edited(name):
        made.path(name).write_text(text.replace("mu: 5\n", "mu: 6\n"), encoding="utf-8")
        planned = made.planned(**made.settings)
    runs = {*made.work.inputs("sfsa_table_2"), *made.work.inputs("sfsa_table_2", "time")}
    assert planned == runs | products(made.work, "sfsa_table_2")


def test_another_seed_runs_everything(made):
    planned = made.planned(**made.settings, seed=1)
    assert planned >= {file for file in results_of(made.work) if not is_record(file)}
    assert {file for file in planned if file.startswith("resources/")} == set()


def test_touching_files_runs_nothing(made):
    """As a checkout of another branch and back does (of scripts Snakemake goes by the time)."""
    touched = [
        made.path(name)
        for name in made.tracked
        if not is_product(name) and not name.startswith("workflow/scripts/")
    ]
    stamps = {path: path.stat() for path in touched}
    for path in touched:
        path.touch()
    try:
        assert made.planned(**made.settings) == set()
    finally:
        for path, stamp in stamps.items():
            os.utime(path, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))


def test_what_is_known_of_other_figures_outlives_a_failure(made):
    """PROVENANCE.json is neither removed nor lost when it is written anew."""
    file = made.path(made.work.provenance)
    words = [made.work.provenance, "--cores", "1", "--forcerun", "provenance"]
    words += ["--allowed-rules", "provenance"]
    facts = {"scale": "smoke", "commit": "c", "date": "d", "with": {}, "missing": {}}
    stamps = [made.path(f"results/smoke/{entry}.drawn") for entry in made.work.entries]
    before = {path: path.read_bytes() for path in (file, *stamps)}
    for stamp in stamps:
        stamp.write_text(json.dumps(facts))
    known = {"environments": [{}], "entries": {"old": facts | {"with": 0}}}
    try:
        file.write_text(json.dumps(known))
        with made.edited("workflow/scripts/provenance.py", "raise SystemExit('out of order')\n"):
            assert made.run(*words, **made.settings).code != 0
        assert "old" in provenance.read(file)
        done = made.run(*words, **made.settings)
        assert done.code == 0, done.said[-3000:]
        assert provenance.read(file) == {e: facts for e in ("old", *made.work.entries)}
    finally:
        for path, content in before.items():
            path.write_bytes(content)


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
results = tables.read_results(work.inputs(entry))
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
def tiny(tmp_path_factory, cache):
    copy = Copy(tmp_path_factory.mktemp("tiny"), cache)
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
    """Every file of results and every figure, hidden ones too."""
    files = [f for top in ("results", "figures") for f in copy.path(top).rglob("*") if f.is_file()]
    names = {str(file.relative_to(copy.folder)): file.read_bytes() for file in files}
    names.pop("figures/PROVENANCE.json", None)
    return {name: content for name, content in names.items() if not is_record(name)}


def is_record(name):
    """Whether a file says when something was made, and what it took."""
    return name.endswith(".drawn") or (name.startswith("results/") and name.endswith(".json"))


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
    assert "Missing data set tiny: not fetched" in story.offline.said
    assert MIRROR in story.offline.said, "the summary does not say what to do"
    assert "<code>tiny</code>: not fetched" in story.report_offline
    rows = story.files_offline["results/tiny/tiny_figure/tiny.csv"].decode().splitlines()
    assert len(rows) == 1 + 2 and all("not fetched" in row for row in rows[1:])


def test_offline_again_nothing_is_made(story):
    assert story.again.code == 0 and "Nothing to be done" in story.again.said
    assert "Missing data set tiny: not fetched" in story.again.said
    assert (story.files_again, story.record_again) == (story.files_offline, story.record_offline)


def test_a_data_set_that_was_missing_is_fetched_when_it_can_be(story):
    assert story.plan == set(), "a plan does not try whether the data are there now"
    assert story.record["status"] == "fetched"
    assert "not fetched" not in story.report
    jobs = set(re.findall(r"^\[\d of 4.*?\] (.*): [\d.]+ (?:s|min .*)$", story.online.said, re.M))
    end = {"Write down where the figures come from", "Write report.html"}
    assert jobs == {"tiny_figure: run tiny", "tiny_figure: draw"} | end
    for name in TABLE_RUNS | TABLE:
        assert story.files[name] == story.files_offline[name]
    for name in REAL_PART - {"resources/tiny.json"}:
        assert story.files[name] != story.files_offline[name]
    assert story.plan_after == set()


def test_results_of_another_checkout_are_taken_as_made(tiny, story, tmp_path):
    """Only figures are made, whatever the times of files; and what is changed from then on makes
    the results again as if they had been made here."""
    other = copy(tiny)
    other.folder = tmp_path / "other"
    shutil.copytree(tiny.folder, other.folder)
    wipe(other)

    def papers(where, *words):
        command = [sys.executable, "-m", "ofslib.cli", "papers", *words]
        settings = {"env": where.environment(str(tiny.mirror)), "cwd": where.folder}
        done = subprocess.run(command, capture_output=True, text=True, check=True, **settings)
        return done.stdout

    runs = {file for file in story.files if file.startswith("results/")}
    file = str(tmp_path / "tiny.zip")
    assert papers(tiny, "--pack", file).startswith(f"{len(runs)} of {len(runs)} results of scale")
    assert f"{len(runs)} of {len(runs)} results" in papers(other, "--unpack", file)
    assert outcome(other) == {file: story.files[file] for file in runs}
    for name in other.tracked:
        if other.path(name).exists() and not name.startswith("workflow/scripts/"):
            other.path(name).touch()
    mirror = {"mirror": str(tiny.mirror)}
    assert not other.planned(**mirror) & {*runs, "resources/tiny.json"}
    with other.edited("held.py", "# edited\n"):
        assert other.planned(**mirror) & runs == TABLE_RUNS
        assert "made by another held.py" in papers(other, "--unpack", file)
    assert other.planned(seed=2, **mirror) >= runs


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
    finally:
        entry.unlink()


def test_a_users_method_is_a_column_of_the_table(story):
    for name in TABLE_RUNS:
        table = pd.read_csv(pd.io.common.BytesIO(story.files[name]))
        assert set(table["method"]) == {"mine", "SGDT"}
        assert table["value"].notna().all()
    compared = pd.read_csv(pd.io.common.BytesIO(story.files["figures/tiny_table.csv"]))
    mine = compared[compared["method"] == "mine"]
    assert len(mine) == 2
    assert set(mine["why"]) == {"not in the paper's table"}
    assert b"{mine}" in story.files["figures/tiny_table.tex"]
    assert '<th scope="col">mine</th>' in story.report
    assert "Own methods &amp; others" in story.report


def test_edit_of_a_users_method_runs_its_table(tiny, story):
    with tiny.edited("held.py", "# a comment\n"):
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
        assert len(locks) == 2 and json.loads(owner)[1] == process.pid
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


def test_an_empty_scale_is_no_scale(tiny):
    done = tiny.run("-n", mirror=str(tiny.mirror), scale="")
    assert done.code != 0 and "config/config.yaml" in done.said and "scale: None" in done.said


def test_a_cut_record_is_made_again(tiny):
    wipe(tiny)
    words = ["resources/tiny.json", "--cores", "1"]
    assert tiny.run(*words, mirror=str(tiny.mirror)).code == 0
    before = tiny.path("resources/tiny.json").read_bytes()
    tiny.path("resources/tiny.json").write_bytes(before[:50])
    again = tiny.run(*words, mirror=str(tiny.mirror))
    assert again.code == 0 and "resources/tiny.json is no whole record" in again.said, again.said
    assert tiny.path("resources/tiny.json").read_bytes() == before


def test_killed_kernel_is_started_again(tiny, story):
    with held(tiny, "2") as process:
        (started,) = tiny.folder.glob("started-*")
        kernel = psutil.Process(int(started.name.partition("-")[2]))
        assert "ipykernel_launcher" in " ".join(kernel.cmdline())
        kernel.kill()
        wait_for(lambda: is_over(kernel), process)
        tiny.path("hold").unlink()
        said, _ = process.communicate(timeout=300)
    assert process.returncode == 0, said[-3000:]
    assert len(list(tiny.folder.glob("started-*"))) == 2, "one run, and once more"
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
