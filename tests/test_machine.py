"""What the workflow knows of this machine, of other runs, and of data sets that are missing."""

import hashlib
import json
import os
import re
import socket
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from ofslib import datasets
from ofslib.datasets.download import NoSuchFile
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
    assert not locks.exists() and list(owner.parent.iterdir()) == [owner]


RUN = """
import sys
from pathlib import Path
from ofslib.reproduction import machine
owner, locks = map(Path, sys.argv[1:])
machine.drop_stale_lock(owner, locks)
try:
    held = machine.claim(owner)
except machine.FolderInUse as error:
    sys.exit(f"refused: {error}")
print("works", flush=True)
sys.stdin.readline()
"""


@contextmanager
def a_run(lock):
    """A process that works in the folder until it is told to end."""
    words = [sys.executable, "-c", RUN, *map(str, lock)]
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    with subprocess.Popen(words, text=True, **pipes) as process:
        yield process
        process.kill()


def test_a_run_beside_a_living_one_is_refused_and_changes_nothing(lock):
    """However many try and end: a record of theirs would have the next one take A for dead."""
    owner, locks = lock
    with a_run(lock) as first:
        assert first.stdout.readline() == "works\n"
        record = owner.read_bytes()
        for _ in range(3):
            with a_run(lock) as other:
                _, said = other.communicate()
                assert other.returncode == 1
                assert re.search(rf"refused: .*process {first.pid} .* works in this folder", said)
            machine.drop_stale_lock(*lock)
            assert owner.read_bytes() == record and any(locks.iterdir())
        first.kill()
        first.wait()
        with a_run(lock) as next_one:
            assert next_one.stdout.readline() == "works\n"
            assert not locks.exists()
            assert json.loads(owner.read_text())[1] == next_one.pid


def test_of_many_that_begin_at_once_one_works(lock):
    lock[0].write_text(json.dumps(of_a_dead_process()))
    words = [sys.executable, "-c", RUN, *map(str, lock)]
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    runs = [subprocess.Popen(words, text=True, **pipes) for _ in range(4)]
    try:
        end = time.monotonic() + 60
        while sum(run.poll() is None for run in runs) > 1 and time.monotonic() < end:
            time.sleep(0.1)
        (one,) = [run for run in runs if run.poll() is None]
        assert one.stdout.readline() == "works\n"
        assert json.loads(lock[0].read_text())[1] == one.pid
    finally:
        for run in runs:
            run.communicate("\n")


def test_where_files_cannot_be_locked_the_record_says_who_is_there(lock, monkeypatch):
    monkeypatch.setattr(machine, "fcntl", None)
    with a_run(lock) as first:
        assert first.stdout.readline() == "works\n"
        with pytest.raises(machine.FolderInUse, match=f"process {first.pid} "):
            machine.claim(lock[0])
        machine.drop_stale_lock(*lock)
        assert any(lock[1].iterdir())
    machine.claim(lock[0]).close()


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


RECORD = {"name": "one", "status": "not fetched", "reason": "none", "detail": ""}
WHOLE = json.dumps(RECORD)
CUT = ["", WHOLE[:30], "null", "[]", "{}", '{"status": "not fetched"}', '"fetched"', "\x00" * 40]


@pytest.mark.parametrize("content", CUT)
def test_a_cut_record_is_named_and_made_again(fetched, content):
    file = Path(records.path("one"))
    file.parent.mkdir()
    file.write_text(content)
    for call in (lambda: records.read(file), lambda: records.missing(["one"])):
        with pytest.raises(datasets.CorruptFile, match=r"resources/one\.json is no whole record"):
            call()
    (said,) = records.mend(["one", "never fetched"])
    assert "resources/one.json" in said and not file.exists()
    assert records.missing(["one"]) == records.mend(["one"]) == []


@pytest.mark.parametrize("can", [True, False])
def test_a_data_file_that_was_damaged_is_fetched_again_or_named(fetched, can):
    fetched["one"] = "rows"
    records.write(records.obtain("one", "auto"))
    record = Path(records.path("one")).read_bytes()
    data = Path("resources/one/rows")
    assert json.loads(record)["sha256"] == {str(data): hashlib.sha256(b"rows").hexdigest()}
    assert records.mend(["one"]) == records.changed(["one", "never fetched"]) == []
    data.write_text("rowz")
    assert records.changed(["one", "never fetched"]) == [str(data)]
    fetched["one"] = "rows" if can else datasets.NotObtainable("one/rows: no answer")
    (said,) = records.mend(["one"])
    assert said.startswith(f"{data}: not what was fetched any more; ")
    assert said.endswith("fetched again" if can else "one/rows: no answer")
    assert Path(records.path("one")).read_bytes() == record, "what is made stays"
    assert (data.read_text() == "rows") == can


@pytest.mark.parametrize("look", [records.try_again, records.mend], ids=["missing", "changed"])
def test_a_file_of_ones_own_that_is_gone_is_the_fault_of_its_job_alone(fetched, look):
    """Nothing else stops; the job, which is made again for want of a record, says what is wrong."""
    missing = look is records.try_again
    fetched["one"] = datasets.NotObtainable("as the mode is none") if missing else "rows"
    records.write(records.obtain("one", "auto"))
    if not missing:
        Path("resources/one/rows").write_text("other rows")
    fetched["one"] = NoSuchFile("one/rows: there is no file /x/rows")
    assert not look(["one"]) and not Path(records.path("one")).exists()
    for mode in ("auto", "require"):
        with pytest.raises(
            NoSuchFile, match=r"no file /x/rows: correct the path in config/datasets"
        ):
            records.obtain("one", mode)
