"""The runner of notebooks: right interpreter, nothing from the user's set-up, nothing left over."""

import importlib.util
import json
import os
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import nbformat
import psutil
import pytest
from nbclient.exceptions import DeadKernelError
from papermill.exceptions import PapermillExecutionError

SCRIPT = Path(__file__).parents[1] / "workflow" / "scripts" / "run_notebook.py"
HAS_SOCKETS = hasattr(socket, "AF_UNIX") and sys.platform != "win32"
needs_posix = pytest.mark.skipif(os.name != "posix", reason="signals")

REPORT = """
import json, os, sys
from pathlib import Path
from ipykernel import get_connection_info
facts = {
    "python": sys.executable,
    "numbers": numbers,
    "threads": [os.environ[n] for n in ("NUMBA_NUM_THREADS", "OMP_NUM_THREADS",
                                        "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")],
    "folder": os.getcwd(),
    "transport": get_connection_info(unpack=True)["transport"],
    "rogue": "rogue" in globals(),
}
Path(out).write_text(json.dumps(facts))
"""

READY = "open(out, 'w').close()"
WAIT = "import time; time.sleep(60)"

# What Snakemake does: it puts an object named snakemake before the script.
AS_SNAKEMAKE = """
import json, runpy, sys
from types import SimpleNamespace as N
from ofslib.reproduction import store
store.put_together = lambda *known: False  # nothing is stored
notebook, executed, text, parameters, script = sys.argv[1:]
parameters = {"spec": {"experiment": "tiny_table", "name": "plain_300"}} | json.loads(parameters)
minutes = parameters.pop("minutes", 60)
job = N(output=["made.csv"], threads=1, log=N(notebook=executed, text=text),
        params=N(parameters=parameters, notebook=notebook), resources=N(runtime=minutes))
runpy.run_path(script, init_globals={"snakemake": job})
"""


@pytest.fixture(scope="module")
def runner():
    spec = importlib.util.spec_from_file_location("run_notebook", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(autouse=True)
def scratch(monkeypatch, tmp_path):
    """Give every test a temporary folder of its own, short as on most machines, and left empty."""
    folder = tempfile.mkdtemp(prefix="t")
    monkeypatch.setattr(tempfile, "tempdir", folder)
    monkeypatch.setenv("TMPDIR", folder)
    yield Path(folder)
    left = os.listdir(folder)
    shutil.rmtree(folder)
    assert left == []


@pytest.fixture
def write(tmp_path):
    """Return a function that makes a notebook of a parameters cell and the given cells."""

    def write_notebook(*cells, name="source"):
        notebook = nbformat.v4.new_notebook()
        notebook.cells = [
            nbformat.v4.new_code_cell(cell) for cell in ("numbers = 0\nout = 0", *cells)
        ]
        notebook.cells[0].metadata["tags"] = ["parameters"]
        path = tmp_path / f"{name}.ipynb"
        nbformat.write(notebook, path)
        return path

    return write_notebook


def facts_of(runner, notebook, folder, **options):
    out = folder / "facts.json"
    parameters = {"numbers": {"a": [1, 2.5, None, True], "b": "x"}, "out": str(out)}
    runner.execute(notebook, folder / "logs" / "executed.ipynb", parameters, **options)
    return json.loads(out.read_text())


def command(notebook, folder, name, **parameters):
    """Return the command that runs the script in a process of its own, as Snakemake does."""
    files = [notebook, folder / f"{name}.ipynb", folder / f"{name}.log"]
    words = [sys.executable, "-c", AS_SNAKEMAKE, *files, json.dumps(parameters), SCRIPT]
    return [str(word) for word in words]


def start(*args, **parameters):
    return subprocess.Popen(command(*args, **parameters), stderr=subprocess.PIPE, text=True)


def wait_for(condition, seconds=15):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.05)


def is_over(process):
    return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE


def test_interpreter_parameters_threads_and_folder(runner, write, tmp_path):
    work = tmp_path / "work"
    work.mkdir()
    log = tmp_path / "logs" / "run.log"
    facts = facts_of(runner, write(REPORT), tmp_path, threads=3, log=log, cwd=work)
    assert facts == {
        "python": sys.executable,
        "numbers": {"a": [1, 2.5, None, True], "b": "x"},
        "threads": ["3"] * 4,
        "folder": str(work.resolve()),
        "transport": "ipc" if HAS_SOCKETS else "tcp",
        "rogue": False,
    }
    assert "Executing Cell 3" in log.read_text()


def test_personal_kernels_and_start_up_files_take_no_part(runner, write, tmp_path, monkeypatch):
    kernel = tmp_path / "share" / "jupyter" / "kernels" / "python3" / "kernel.json"
    kernel.parent.mkdir(parents=True)
    kernel.write_text(json.dumps({"argv": ["no-such-program"], "display_name": "rogue"}))
    startup = tmp_path / "ipython" / "profile_default" / "startup" / "00.py"
    startup.parent.mkdir(parents=True)
    startup.write_text("rogue = 1")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(tmp_path / "share" / "jupyter"))
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path / "share" / "jupyter"))
    monkeypatch.setenv("JUPYTER_PREFER_ENV_PATH", "0")
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    monkeypatch.setenv("PYTHONSTARTUP", str(startup))
    facts = facts_of(runner, write(REPORT), tmp_path)
    assert facts["python"] == sys.executable
    assert not facts["rogue"]


@pytest.mark.skipif(not HAS_SOCKETS, reason="Unix sockets")
def test_deep_temporary_folder(runner, write, tmp_path, monkeypatch):
    deep = tmp_path / ("d" * 100)
    deep.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(deep))
    assert facts_of(runner, write(REPORT), tmp_path)["transport"] == "ipc"
    assert os.listdir(deep) == []


def test_tcp_where_sockets_do_not_work(runner, write, tmp_path, monkeypatch):
    monkeypatch.setattr(runner, "_holds_sockets", lambda folder: False)
    assert facts_of(runner, write(REPORT), tmp_path)["transport"] == "tcp"


def test_failing_cell_is_shown(runner, write, tmp_path):
    executed, log = tmp_path / "executed.ipynb", tmp_path / "run.log"
    with pytest.raises(PapermillExecutionError, match="ZeroDivisionError"):
        runner.execute(write("1 / 0", "never = 1"), executed, {}, log=log)
    cells = nbformat.read(executed, as_version=4).cells
    status = [c.metadata.papermill.status for c in cells if "papermill" in c.metadata]
    assert status == ["completed", "failed", "pending"]
    assert any(o.get("ename") == "ZeroDivisionError" for c in cells for o in c.get("outputs", []))
    assert "ZeroDivisionError: division by zero" in log.read_text()


NOTED = """
error = RuntimeError("what the method says")
error.add_note("This is of mine:Method as it learned.")
raise error
"""


def test_what_was_raised_in_a_cell_is_told_with_its_notes(runner, write, tmp_path):
    with pytest.raises(PapermillExecutionError) as raised:
        runner.execute(write(NOTED), tmp_path / "executed.ipynb", {})
    told = ["RuntimeError: what the method says", "This is of mine:Method as it learned."]
    assert runner.last_said(raised.value) == told
    assert runner.last_said(ValueError("one\ntwo")) == ["two"]


SLEEPER = """
import subprocess, sys, time
from pathlib import Path
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
Path(out).write_text(f"{os.getpid()} {child.pid}")
class Sleeper:
    def fit(self, X, y): time.sleep(600)
"""


@pytest.mark.parametrize("busy", ["Sleeper().fit(0, 0)", "while True: pass"])
def test_what_does_not_end_is_stopped_after_its_time(write, tmp_path, busy):
    """The message names entry, setting and limit, and nothing that it started lives on."""
    notebook, out = write("import os\n" + SLEEPER, busy, "never = 1"), tmp_path / "pids"
    given = {"out": str(out), "minutes": 0.2}
    begun = time.monotonic()
    job = start(notebook, tmp_path, "x", **given)
    message = job.communicate(timeout=120)[1]
    assert 12 <= time.monotonic() - begun < 60 and job.returncode == 1
    assert message.startswith("tiny_table, plain_300: ") and "Traceback" not in message
    for part in ("0.2 minutes", "time_limit", "config/config.yaml", "x.log"):
        assert part in message
    assert "Killed: it took longer than 12 s" in (tmp_path / "x.log").read_text()
    cells = nbformat.read(tmp_path / "x.ipynb", as_version=4).cells
    assert [c.source for c in cells][-1] == "never = 1"
    for pid in map(int, out.read_text().split()):
        wait_for(lambda pid=pid: not psutil.pid_exists(pid) or is_over(psutil.Process(pid)))


def test_the_time_counts_from_the_beginning_of_each_notebook(runner, write, tmp_path):
    for name in ("one", "two"):
        runner.execute(write("1", name=name), tmp_path / f"{name}.ipynb", {}, seconds=60)


@needs_posix
def test_killed_kernel_is_an_error(runner, write, tmp_path):
    executed, log = tmp_path / "executed.ipynb", tmp_path / "run.log"
    notebook = write("import os, signal; os.kill(os.getpid(), signal.SIGKILL)")
    with pytest.raises(DeadKernelError):
        runner.execute(notebook, executed, {}, log=log)
    assert executed.exists()
    assert "DeadKernelError" in log.read_text()


def test_two_at_once(write, tmp_path):
    # Each notebook waits until the other one runs too.
    notebook = write(
        "import time; from pathlib import Path\n"
        "Path(out[0]).touch()\n"
        "end = time.monotonic() + 15\n"
        "while not Path(out[1]).exists(): assert time.monotonic() < end; time.sleep(0.05)"
    )
    one, two = str(tmp_path / "1"), str(tmp_path / "2")
    jobs = [
        start(notebook, tmp_path, "x", out=[one, two]),
        start(notebook, tmp_path, "y", out=[two, one]),
    ]
    messages = [job.communicate()[1] for job in jobs]
    assert [job.returncode for job in jobs] == [0, 0], messages


def test_script_reports_a_failure(write, tmp_path):
    job = start(write("1 / 0"), tmp_path, "x")
    message = job.communicate()[1]
    assert job.returncode == 1
    assert "ZeroDivisionError: division by zero" in message
    assert "x.log" in message
    assert "Traceback" not in message


@needs_posix
def test_kernel_goes_with_a_killed_script(write, tmp_path, scratch):
    ready = tmp_path / "ready"
    job = start(write(READY, "while True: pass"), tmp_path, "x", out=str(ready))
    wait_for(ready.exists)
    (kernel,) = psutil.Process(job.pid).children()
    job.kill()
    job.communicate()
    wait_for(lambda: is_over(kernel))
    for folder in scratch.iterdir():  # sockets only; nobody was left to remove them
        shutil.rmtree(folder)


@needs_posix
def test_script_and_kernel_go_with_a_killed_workflow(write, tmp_path):
    ready = tmp_path / "ready"
    words = command(write(READY, WAIT), tmp_path, "x", out=str(ready))
    call = f"import subprocess; subprocess.run({f'true; {shlex.join(words)}; true'!r}, shell=True)"
    workflow = subprocess.Popen([sys.executable, "-c", call])
    wait_for(ready.exists)
    family = psutil.Process(workflow.pid).children(recursive=True)
    assert len(family) == 3  # shell, script, kernel
    workflow.kill()
    workflow.wait()
    wait_for(lambda: all(map(is_over, family)))
    assert "Stopped from outside" in (tmp_path / "x.log").read_text()


@needs_posix
def test_termination_cleans_up(write, tmp_path):
    ready = tmp_path / "ready"
    job = start(write(READY, WAIT), tmp_path, "x", out=str(ready))
    wait_for(ready.exists)
    (kernel,) = psutil.Process(job.pid).children()
    job.terminate()
    job.communicate()
    assert job.returncode == 128 + signal.SIGTERM
    assert is_over(kernel)


def test_code_may_come_before_the_script():
    compile("import sys\n" + SCRIPT.read_text(encoding="utf-8"), str(SCRIPT), "exec")
