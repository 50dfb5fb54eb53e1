"""The workflow as a stranger meets it: in a copy of the checkout, run and changed."""

import hashlib
import os
import re
import subprocess
from pathlib import Path

import pandas as pd
import pytest
from checkout import MARKS, MIRROR, ROOT, Copy, is_product, record, whole_log

from ofslib.reproduction import machine, project, provenance

pytestmark = MARKS
BESIDE = ROOT.parent / "shared" / "data"
REAL = os.environ.get(MIRROR) or (str(BESIDE) if BESIDE.is_dir() else None)


@pytest.fixture(scope="module")
def untouched(tmp_path_factory):
    """A clean checkout in which nothing was run."""
    return Copy(tmp_path_factory.mktemp("untouched"))


def test_no_figure_is_tracked_that_is_never_made(untouched):
    work = project.committed(untouched.folder)
    made = {*products(work, *work.entries), work.provenance, work.archive_file}
    assert {f for f in untouched.tracked if is_product(f)} <= made


def products(work, *entries):
    return {file for entry in entries for file in work.figures(entry)} | {work.report}


@pytest.mark.slow
def test_figures_that_came_with_the_checkout_are_made_again_also_if_they_are_newer(untouched):
    for name in filter(is_product, untouched.tracked):
        untouched.path(name).touch()
    work = project.committed(untouched.folder)
    expected = {f for e in work.entries for f in (*work.inputs(e), *work.figures(e))}
    assert expected - untouched.planned(scale=work.scale) == set()


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
    copy.first = copy.run("--cores", "8", **copy.settings, seconds=3600)
    assert copy.first.code == 0, copy.first.said[-5000:]
    copy.log = whole_log(copy)
    copy.missing = [
        name for name in copy.work.datasets if record(copy, name)["status"] != "fetched"
    ]
    return copy


@pytest.mark.slow
def test_smoke_makes_every_file_anew_and_replaces_none_of_the_checkout(smoke):
    expected = products(smoke.work, *smoke.work.entries) | {smoke.work.provenance}
    assert {f for f in expected if not smoke.path(f).is_file()} == set()
    words = ["git", "status", "--porcelain"]
    assert subprocess.run(words, cwd=smoke.folder, capture_output=True, check=True).stdout == b""
    assert f"{len(smoke.work.entries)} tables and figures in figures/smoke/" in smoke.first.said


@pytest.mark.slow
def test_no_more_runs_at_once_than_the_machine_has_cores_and_what_measures_is_alone(smoke):
    events = re.findall(r"^(Job|Finished jobid:) (\d+)(?:: (.*))?", smoke.log, re.M)
    said = {job: message for event, job, message in events if event == "Job"}
    names = {f"{e}: run {s.name}" for e, s in of_entries(smoke.work) if is_alone(smoke.work, e)}
    alone = {job for job, message in said.items() if message in names}
    assert len(alone) == len(names) > 0
    going_on, most = set(), 0
    for _, job, _ in events:
        going_on ^= {job}
        most = max(most, len(going_on))
        assert not (going_on & alone and len(going_on) > 1), [said[job] for job in going_on]
    assert 1 <= most <= machine.cores()


def of_entries(work):
    return [(name, setting) for name, entry in work.entries.items() for setting in entry.to_run]


def is_alone(work, entry):
    return work.entries[entry].spec["alone"]


@pytest.mark.slow
def test_smoke_uses_the_real_data_that_can_be_had_and_marks_what_is_missing(smoke):
    for name in smoke.work.datasets:
        found = record(smoke, name)
        if found["status"] == "fetched":
            for file, digest in found["sha256"].items():
                assert hashlib.sha256(smoke.path(file).read_bytes()).hexdigest() == digest
        else:
            assert found["status"] == "not fetched" and found["reason"]
            assert f"Missing data set {name}: not downloaded" in smoke.first.said
    for entry, setting in of_entries(smoke.work):
        table = pd.read_csv(smoke.path(smoke.work.result(entry, setting.name)))
        noted = table["note"].notna() if "note" in table else False
        if setting.dataset in smoke.missing:
            assert table["value"].isna().all()
            assert table["note"].str.startswith("not downloaded").all()
        else:  # no value without a reason
            assert (table["value"].isna() <= noted).all()
    report = smoke.path(smoke.work.report).read_text(encoding="utf-8")
    for name in smoke.work.datasets:
        assert (f"<code>{name}</code>: not downloaded" in report) == (name in smoke.missing)


@pytest.mark.slow
def test_each_entry_says_of_which_scale_and_commit_it_is(smoke):
    """From a commit that was not changed since; no file names a folder of this machine."""
    found = provenance.read(smoke.path(smoke.work.provenance))
    assert found.keys() == smoke.work.entries.keys()
    words = ["git", "rev-parse", "HEAD"]
    head = subprocess.run(words, cwd=smoke.folder, capture_output=True, text=True, check=True)
    for entry, facts in found.items():
        assert (facts["scale"], facts["commit"]) == ("smoke", head.stdout.strip())
        if smoke.work.inputs(entry) and not facts["missing"]:
            runs = facts["runs"]
            assert runs["commit"] == [facts["commit"]] and runs["to"] <= facts["date"]
            assert runs["number"] > 0 < runs["cpu_hours"] and runs["memory_mb"] > 50
    for file in (smoke.work.provenance, smoke.work.report):
        text = smoke.path(file).read_text(encoding="utf-8")
        places = map(str, (smoke.folder, ROOT, f"{Path.home()}/"))
        assert not [place for place in places if place in text]


@pytest.mark.slow
def test_smoke_once_more_does_nothing(smoke):
    assert smoke.planned(**smoke.settings) == set()
    once_more = smoke.run("--cores", "8", **smoke.settings)
    assert "Nothing to be done" in once_more.said
    for name in smoke.missing:
        assert f"Missing data set {name}: not downloaded" in once_more.said
