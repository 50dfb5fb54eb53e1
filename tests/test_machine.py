"""What the workflow knows of this machine, of other runs, and of data sets that are missing."""

import json
import os
import socket
import subprocess
import sys

import psutil
import pytest

from ofslib import datasets
from ofslib.reproduction import machine, records

# -------------------------------------------------- memory, and locks


@pytest.mark.parametrize("file", ["memory.max", "memory/memory.limit_in_bytes"])
def test_memory_is_that_of_the_container(tmp_path, file):
    (tmp_path / file).parent.mkdir(exist_ok=True)
    (tmp_path / file).write_text(f"{1000 * 2**20}\n")
    assert machine.memory_mb(tmp_path) == 800


@pytest.mark.parametrize("limit", [None, "max\n", f"{2**63}\n"])
def test_memory_without_a_limit_is_that_of_the_machine(tmp_path, limit):
    if limit:
        (tmp_path / "memory.max").write_text(limit)
    assert machine.memory_mb(tmp_path) == int(0.8 * psutil.virtual_memory().total / 2**20)


@pytest.fixture
def lock(tmp_path):
    """A locked folder; returns its owner's file and the folder of the lock."""
    owner, locks = tmp_path / "owner.json", tmp_path / "locks"
    locks.mkdir()
    (locks / "0.input.lock").write_text("a file\n")
    return owner, locks


def of_a_dead_process():
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    return [socket.gethostname(), ended.pid, 1.0]


def of_a_process_whose_number_is_used_again():
    return [socket.gethostname(), os.getpid(), psutil.Process().create_time() - 1000]


@pytest.mark.parametrize(
    "dead", [of_a_dead_process, of_a_process_whose_number_is_used_again], ids=lambda f: f.__name__
)
def test_the_lock_of_a_dead_run_is_removed(lock, dead):
    owner, locks = lock
    owner.write_text(json.dumps(dead()))
    machine.drop_stale_lock(*lock)
    assert not locks.exists() and list(owner.parent.iterdir()) == []


def test_the_lock_of_a_living_run_is_left_alone(lock):
    machine.remember_owner(lock[0])
    machine.drop_stale_lock(*lock)
    assert lock[0].exists() and any(lock[1].iterdir())


@pytest.mark.parametrize("content", [None, "", json.dumps(["elsewhere", 1, 1.0])])
def test_a_lock_whose_owner_cannot_be_asked_is_left_alone(lock, content):
    if content is not None:
        lock[0].write_text(content)
    machine.drop_stale_lock(*lock)
    assert lock[0].exists() == (content is not None) and any(lock[1].iterdir())


# -------------------------------------------------- data sets


@pytest.fixture
def fetched(tmp_path, monkeypatch):
    """Return a dict of what comes of the fetching of each data set: a content, or an error."""
    monkeypatch.chdir(tmp_path)
    outcomes = {}

    def fetch(name, folder, registry_path):
        if isinstance(outcomes[name], Exception):
            raise outcomes[name]
        (folder / name).mkdir(parents=True, exist_ok=True)
        (folder / name / "rows").write_text(outcomes[name])
        return [folder / name / "rows"]

    monkeypatch.setattr(datasets, "fetch", fetch)
    return outcomes


def test_a_failure_for_the_same_reason_leaves_the_record_as_it_is(fetched):
    fetched |= {"one": datasets.NotObtainable("no answer within 5 s"), "two": "here"}
    for name in fetched:
        records.write(records.obtain(name, "auto"))
    before = {name: os.stat(records.path(name)).st_mtime_ns for name in fetched}
    fetched |= {"one": datasets.NotObtainable("no answer within 6 s"), "two": "other"}
    records.try_again(["one", "two", "never tried"])
    assert {name: os.stat(records.path(name)).st_mtime_ns for name in fetched} == before
    (missing,) = records.missing(["one", "two", "never tried"])
    assert (missing["name"], missing["detail"]) == ("one", "no answer within 5 s")


@pytest.mark.parametrize("change", ["rows", datasets.CorruptFile("17 bytes")], ids=str)
def test_another_outcome_is_written_down_as_a_first_attempt_would(fetched, change):
    fetched["one"] = datasets.NotObtainable("no answer")
    records.write(records.obtain("one", "auto"))
    fetched["one"] = change
    records.try_again(["one"])
    with open(records.path("one"), encoding="utf-8") as file:
        assert json.load(file) == records.obtain("one", "auto")


def test_what_is_required_is_an_error_and_what_is_not_wanted_is_not_tried(fetched):
    fetched["one"] = datasets.NotObtainable("no answer")
    with pytest.raises(datasets.NotObtainable):
        records.obtain("one", "require")
    assert records.obtain("never asked for", "none")["reason"] == "real_data is none"
