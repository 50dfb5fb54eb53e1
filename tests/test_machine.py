"""What the workflow knows of this machine, of other runs, and of data sets that are missing."""

import hashlib
import json
import re
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


@pytest.mark.parametrize("limit", ["1048576000\n", "max\n", f"{2**63}\n"])
@pytest.mark.parametrize("file", ["memory.max", "memory/memory.limit_in_bytes"])
def test_memory_is_that_of_the_container_if_it_has_a_limit(tmp_path, file, limit):
    (tmp_path / file).parent.mkdir(exist_ok=True)
    (tmp_path / file).write_text(limit)
    whole = int(0.8 * psutil.virtual_memory().total / 2**20)
    assert machine.memory_mb(tmp_path) == (800 if limit.startswith("10") else whole)


# -------------------------------------------------- one run at a time

RUN = """
import sys
from pathlib import Path
from ofslib.reproduction import machine
try:
    held = machine.claim(Path(sys.argv[1]))
except machine.FolderInUse as error:
    sys.exit(f"refused: {error}")
print("works", flush=True)
sys.stdin.readline()
"""


@contextmanager
def runs(folder, number):
    """Processes that work in the folder until they are told to end."""
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    words = [sys.executable, "-c", RUN, str(folder)]
    started = [subprocess.Popen(words, text=True, **pipes) for _ in range(number)]
    yield started
    for process in started:
        process.kill()
        process.communicate()


def test_of_many_runs_that_begin_at_once_one_works_and_the_lock_of_a_killed_one_goes(tmp_path):
    lock = tmp_path / "locks" / "0.input.lock"
    with runs(tmp_path, 3) as started:
        end = time.monotonic() + 60
        while sum(run.poll() is None for run in started) > 1 and time.monotonic() < end:
            time.sleep(0.1)
        [one] = [run for run in started if run.poll() is None]
        assert one.stdout.readline() == "works\n"
        for other in {*started} - {one}:
            known = rf"process {one.pid} on .+|of which nothing is known yet"
            told = f"refused: another run, ({known}), works"
            assert re.match(told, other.stderr.read())
        lock.parent.mkdir()
        lock.write_text("a file\n")
        with runs(tmp_path, 1) as [late]:
            assert "refused" in late.communicate()[1] and lock.exists()
    with runs(tmp_path, 1) as [next_one]:
        assert next_one.stdout.readline() == "works\n"
        assert not lock.exists() and lock.parent.exists()


@pytest.mark.parametrize("owner", ["", "process 1 on elsewhere", "\x00["])
def test_a_lock_whose_owner_cannot_be_asked_is_left_alone(tmp_path, owner):
    (tmp_path / "owner").write_text(owner)
    (tmp_path / "locks").mkdir()
    (tmp_path / "locks/0.input.lock").touch()
    for _ in range(2):
        machine.claim(tmp_path).close()
    assert any((tmp_path / "locks").iterdir())


def test_where_files_cannot_be_locked_snakemakes_own_locks_stay(tmp_path, monkeypatch):
    monkeypatch.setattr(machine, "fcntl", None)
    lock = tmp_path / "locks/0.input.lock"
    lock.parent.mkdir()
    lock.touch()
    (tmp_path / "owner").write_text(f"process 1 on {machine.socket.gethostname()}")
    with machine.claim(tmp_path), machine.claim(tmp_path), machine.locked(tmp_path / "file"):
        assert lock.exists(), "nothing says that its run has ended"


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


def obtain(name="one"):
    records.write(records.obtain(name, "auto"))
    return Path(records.path(name)).read_bytes()


def test_a_missing_set_is_tried_again_and_only_another_outcome_is_written_down(fetched):
    fetched["one"] = datasets.NotObtainable("no answer within 5 s")
    before = obtain()
    fetched["one"] = datasets.NotObtainable("no answer within 6 s")
    records.try_again(["one", "never tried"])
    assert Path(records.path("one")).read_bytes() == before
    [missing] = records.missing(["one", "never tried"])
    assert (missing["name"], missing["detail"]) == ("one", "no answer within 5 s")
    for outcome in (datasets.CorruptFile("17 bytes"), "rows"):
        fetched["one"] = outcome
        records.try_again(["one"])
        assert records.read(records.path("one")) == records.obtain("one", "auto")


def test_what_is_required_is_an_error_and_what_is_not_wanted_is_not_tried(fetched):
    fetched["one"] = datasets.NotObtainable("no answer")
    with pytest.raises(datasets.NotObtainable):
        records.obtain("one", "require")
    assert records.obtain("never asked for", "none")["reason"] == "real_data is none"


WHOLE = '{"name": "one", "status": "not fetched", "reason": "none", "detail": ""}'


@pytest.mark.parametrize("content", ["", WHOLE[:30], "[]", '{"status": "not fetched"}'])
def test_a_cut_record_is_named_and_made_again(fetched, content):
    file = Path(records.path("one"))
    file.parent.mkdir()
    file.write_text(content)
    with pytest.raises(datasets.CorruptFile, match=r"resources/one\.json is no whole record"):
        records.missing(["one"])
    [said] = records.mend(["one", "never fetched"])
    assert "resources/one.json" in said and not file.exists()
    assert records.missing(["one"]) == records.mend(["one"]) == []


@pytest.mark.parametrize("can", [True, False])
def test_a_data_file_that_was_damaged_is_fetched_again_or_named(fetched, can):
    fetched["one"] = "rows"
    record, data = obtain(), Path("resources/one/rows")
    assert json.loads(record)["sha256"] == {str(data): hashlib.sha256(b"rows").hexdigest()}
    assert records.mend(["one"]) == records.changed(["one", "never fetched"]) == []
    data.write_text("rowz")
    assert records.changed(["one", "never fetched"]) == [str(data)]
    fetched["one"] = "rows" if can else datasets.NotObtainable("one/rows: no answer")
    [said] = records.mend(["one"])
    assert said.startswith(f"{data}: ") and said.endswith("fetched again" if can else "no answer")
    assert Path(records.path("one")).read_bytes() == record, "what is made stays"
    assert (data.read_text() == "rows") == can


@pytest.mark.parametrize("look", [records.try_again, records.mend], ids=["missing", "changed"])
def test_a_file_of_ones_own_that_is_gone_is_the_fault_of_its_job_alone(fetched, look):
    """Nothing else stops; the job, which is made again for want of a record, says what is wrong."""
    missing = look is records.try_again
    fetched["one"] = datasets.NotObtainable("as the mode is none") if missing else "rows"
    obtain()
    if not missing:
        Path("resources/one/rows").write_text("other rows")
    fetched["one"] = NoSuchFile("one/rows: there is no file /x/rows")
    assert not look(["one"]) and not Path(records.path("one")).exists()
    for mode in ("auto", "require"):
        with pytest.raises(NoSuchFile, match=r"/x/rows: correct the path in config/datasets"):
            records.obtain("one", mode)
