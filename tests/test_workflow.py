"""The workflow as a stranger meets it: in a copy of the checkout, run and changed."""

import hashlib
import html
import json
import os
import re
import subprocess
import sys
import time
from datetime import datetime, timedelta
from html.parser import HTMLParser
from importlib.metadata import version
from pathlib import Path

import pandas as pd
import pytest
import yaml
from checkout import MARKS, MIRROR, ROOT, Copy, is_product, record, whole_log

from ofslib.reproduction import identity, plan, project, provenance, records

pytestmark = MARKS
BESIDE = ROOT.parent / "shared" / "data"
REAL = os.environ.get(MIRROR) or (str(BESIDE) if BESIDE.is_dir() else None)


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
def smoke(tmp_path_factory):
    """A clean checkout in which `snakemake` was called once."""
    copy = Copy(tmp_path_factory.mktemp("smoke"))
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
def untouched(tmp_path_factory):
    """A clean checkout in which nothing was run."""
    return Copy(tmp_path_factory.mktemp("untouched"))


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


def test_smoke_replaces_nothing_that_came_with_the_checkout(smoke):
    words = ["git", "status", "--porcelain"]
    assert subprocess.run(words, cwd=smoke.folder, capture_output=True, check=True).stdout == b""


def test_no_figure_is_tracked_that_is_never_made(untouched):
    work = project.load(untouched.folder)
    work = project.load(untouched.folder, scale=work.committed)
    made = products(work, *work.entries) | {work.archive_file}
    assert {f for f in untouched.tracked if is_product(f)} <= made


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


def test_the_longest_runs_begin_first(smoke, untouched):
    """So that many cores do not wait in the end for one of them."""
    told = plan.expected(project.load(untouched.folder, scale="smoke"))
    runs = {
        f"{e}: run {s.name}": told[smoke.work.result(e, s.name).as_posix()]
        for e, entry in smoke.work.entries.items()
        for s in entry.to_run
        if not (entry.spec["alone"] or s.dataset)  # others may have to wait
    }
    begun = re.findall(r"^Job \d+: (.*)", smoke.log, re.M)
    order = [runs[name] for name in begun if name in runs]
    assert len(order) >= len(runs) > 20 and max(order) > 3 * min(order)
    at_once = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    for place, seconds in enumerate(order):
        assert seconds >= max(order[place + at_once :], default=0), place


def test_smoke_uses_the_real_data_that_can_be_had(smoke):
    for name in smoke.work.datasets:
        found = record(smoke, name)
        files = sorted(path for path in smoke.path(f"resources/{name}").glob("*"))
        if found["status"] == "fetched":
            said = found["sha256"]
            sums = {f: hashlib.sha256(smoke.path(f).read_bytes()).hexdigest() for f in said}
            assert said == sums != {}
            assert {smoke.path(file) for file in sums} <= set(files)
        else:
            assert found["status"] == "not fetched" and found["reason"]
            assert f"Missing data set {name}: not downloaded" in smoke.first.said
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
            methods = [method for part in setting.parts for method in part["methods"].items()]
            shown = {n for n, m in methods if m.get("replicates") != 0}
            if setting.dataset in smoke.missing:
                assert table["value"].isna().all()
                assert table["note"].str.startswith("not downloaded").all()
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
        assert (f"<code>{name}</code>: not downloaded" in report) == (name in smoke.missing)


def test_the_screen_counts_the_steps_down(smoke):
    done = re.findall(r"^\[(\d+) of (\d+)[],]", smoke.first.said, re.M)
    total = int(done[-1][0])
    assert [(int(n), int(of)) for n, of in done] == [(n + 1, total) for n in range(total)]
    assert re.search(rf"^{total} steps, about \d+ (min|h \d+ min)$", smoke.first.said, re.M)
    dull = ("Building DAG", "Reason:", "Select jobs", "Finished jobid", "localrule all", "Job ")
    assert [line for line in smoke.first.said.splitlines() if line.startswith(dull)] == []
    assert f"{len(smoke.work.entries)} tables and figures in figures/smoke/" in smoke.first.said


def test_report_opens_offline(smoke):
    report = smoke.path(smoke.work.report)
    page = References(report.read_text(encoding="utf-8"))
    outside = [where for where in page.loaded if not where.startswith(("#", "%23", "data:"))]
    assert outside == []
    anchors = {where[1:] for where in page.linked if where.startswith("#")}
    assert anchors <= page.places and anchors >= {*smoke.work.entries, "top"}
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
        # Each shows results, but where all its data sets could not be had.
        if runs and not facts["missing"]:
            assert facts["runs"]["number"] > 0
        if "runs" in facts:
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
        assert f"Missing data set {name}: not downloaded" in once_more.said


# -------------------------------------------------- what an edit makes run again


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A checkout in which all is made, as far as Snakemake knows: files of any content."""
    copy = Copy(tmp_path_factory.mktemp("made"))
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
    return {f for e in work.entries for f in (*work.inputs(e), *work.inputs(e, "time"))}


def test_code_that_moves_or_is_explained_runs_nothing(made):
    """Of what makes numbers the versions decide, and of a notebook its code cells."""
    for name in ("ofslib/algorithms/barda.py", "ofslib/kernels/gram.py", "ofslib/_files.py"):
        with made.edited(name, "# a comment\n"):
            assert made.planned(**made.settings) == set(), name
    for name in ("notebooks/run.ipynb", "notebooks/annealing_schedules.ipynb"):
        before = made.path(name).read_text(encoding="utf-8")
        notebook = json.loads(before)
        notebook["metadata"]["kernelspec"] = {"name": "mine", "display_name": "opened here"}
        for cell in notebook["cells"]:
            if cell["cell_type"] == "code":
                cell |= {"execution_count": 1, "outputs": []}
        try:
            made.path(name).write_text(json.dumps(notebook), encoding="utf-8")
            assert made.planned(**made.settings) == set(), name
        finally:
            made.path(name).write_text(before, encoding="utf-8")


def test_a_raised_version_of_a_method_runs_what_uses_it(made):
    runs = {
        file
        for file, setting in made.work.runs()
        if any(
            "methods: BARDAClassifier" in result.made_of["versions"]
            for result in identity.results(setting.spec)
        )
    }
    users = {"barda_figure_1", "barda_figure_3", "drift_recovery"}
    users |= {"untuned_one_pass", "growth_of_costs"}
    assert {Path(run).parent.name for run in runs} == users
    name = "config/versions.yaml"
    text = made.path(name).read_text(encoding="utf-8")
    with made.edited(name):
        raised = text.replace("  BARDAClassifier: 1\n", "  BARDAClassifier: 2\n")
        made.path(name).write_text(raised, encoding="utf-8")
        planned = made.planned(**made.settings)
    tables = {"barda_table_1", "dissertation_table_3_1", "ofs_table_1"}
    assert planned == runs | products(made.work, *users, *tables, "barda_figure_2")
    assert made.planned(**made.settings) == set(), "restored, but not as before"


def test_edit_of_the_style_runs_no_experiment(made):
    with made.edited("ofslib/reproduction/looks.py", "# a comment\n"):
        planned = made.planned(**made.settings)
    assert {file for file in planned if file.startswith("results/")} == set()
    assert planned >= products(made.work, "sfsa_table_1", "barda_figure_1", "os_figure_1")


def test_edit_of_the_code_of_a_figure_notebook_draws_its_figure(made):
    name = "notebooks/annealing_schedules.ipynb"
    with made.edited(name):
        notebook = json.loads(made.path(name).read_text(encoding="utf-8"))
        notebook["cells"][-1]["source"] = ["another = 1"]
        made.path(name).write_text(json.dumps(notebook), encoding="utf-8")
        planned = made.planned(**made.settings)
    drawn = (products(made.work, n) for n in ("sfsa_figure_1", "dissertation_figure_2_1"))
    assert planned == set().union(*drawn)


def test_edit_of_a_parameter_runs_its_entry(made):
    name = "config/experiments/sfsa.yaml"
    text = made.path(name).read_text(encoding="utf-8")
    assert text.count("mu: 5\n") == 1, "that of sfsa_table_2, and of no other entry"
    with made.edited(name):
        made.path(name).write_text(text.replace("mu: 5\n", "mu: 6\n"), encoding="utf-8")
        planned = made.planned(**made.settings)
    runs = {*made.work.inputs("sfsa_table_2"), *made.work.inputs("sfsa_table_2", "time")}
    assert planned == runs | products(made.work, "sfsa_table_2")


def test_another_seed_runs_everything(made):
    planned = made.planned(**made.settings, seed=1)
    assert planned >= results_of(made.work)
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
