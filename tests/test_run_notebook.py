"""The runner of notebooks: right interpreter, nothing from the user's set-up, nothing left over."""

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import nbformat
import psutil
import pytest
from processes import is_over, wait_for

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals")
SCRIPT = Path(__file__).parents[1] / "workflow" / "scripts" / "run_notebook.py"

# What Snakemake does: it puts an object named snakemake before the script.
AS_SNAKEMAKE = """
import json, runpy, sys
from types import SimpleNamespace as N
from ofslib.reproduction import store
store.put_together = lambda *known: False  # nothing is stored
folder, minutes, script = sys.argv[1:]
parameters = {"spec": {"experiment": "tiny_table", "name": "plain_300"}, "out": folder + "/out"}
job = N(output=[""], log=N(notebook=folder + "/executed.ipynb", text=folder + "/log.txt"),
        params=N(parameters=parameters, notebook=folder + "/source.ipynb"),
        resources=N(runtime=float(minutes), mem_mb=700))
runpy.run_path(script, init_globals={"snakemake": job})
"""

FACTS = """
import json, os, sys
from ipykernel import get_connection_info
names = ["NUMBA_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"]
facts = [sys.executable, spec, os.getcwd(), [os.environ[name] for name in names]]
facts += [get_connection_info(unpack=True)["transport"], "rogue" in globals()]
json.dump(facts, open(out, "w"))
"""
BUSY = """
import os, subprocess, sys
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
with open(out + "~", "w") as file:
    file.write(f"{os.getpid()} {child.pid}")
os.rename(out + "~", out)
while True: pass
"""
RAISES = """
error = RuntimeError("what the method says")
error.add_note("This is of mine:Method as it learned.")
raise error
"""


def command(folder, cell, minutes=60):
    """What runs a notebook with this cell as Snakemake does."""
    notebook = nbformat.v4.new_notebook()
    notebook.cells = [nbformat.v4.new_code_cell(text) for text in ("out = 0", cell, "never = 1")]
    notebook.cells[0].metadata["tags"] = ["parameters"]
    nbformat.write(notebook, folder / "source.ipynb")
    return [sys.executable, "-c", AS_SNAKEMAKE, str(folder), str(minutes), str(SCRIPT)]


def test_interpreter_parameters_and_folder_are_those_of_the_job_and_nothing_is_the_users(tmp_path):
    kernel = tmp_path / "share/jupyter/kernels/python3/kernel.json"
    kernel.parent.mkdir(parents=True)
    kernel.write_text(json.dumps({"argv": ["no-such-program"], "display_name": "rogue"}))
    startup = tmp_path / "ipython/profile_default/startup/00.py"
    startup.parent.mkdir(parents=True)
    startup.write_text("rogue = 1")
    folders = {"HOME": ".", "JUPYTER_PATH": "share/jupyter", "IPYTHONDIR": "ipython"}
    rogue = {name: str(tmp_path / folder) for name, folder in folders.items()}
    rogue |= {"JUPYTER_PREFER_ENV_PATH": "0", "PYTHONSTARTUP": str(startup)}
    subprocess.run(command(tmp_path, FACTS), env=os.environ | rogue, check=True)
    spec = {"experiment": "tiny_table", "name": "plain_300"}
    facts = [sys.executable, spec, os.getcwd(), ["1"] * 4, "ipc", False]
    assert json.loads((tmp_path / "out").read_text()) == facts
    assert "Executing Cell 3" in (tmp_path / "log.txt").read_text()


@pytest.mark.parametrize(
    ("cell", "minutes", "said"),
    [
        (RAISES, 60, "RuntimeError: what the method says\nThis is of mine:Method as it learned."),
        (
            "import os; os.kill(os.getpid(), 9)",
            60,
            "the kernel died, perhaps of too little memory: 700 MB were foreseen",
        ),
        (BUSY, 0.2, "not ended after 0.2 minutes, the time_limit of config/config.yaml"),
    ],
    ids=["raises", "dies", "does not end"],
)
def test_a_failure_is_told_in_a_few_lines_and_the_executed_copy_is_kept(
    tmp_path, cell, minutes, said
):
    done = subprocess.run(command(tmp_path, cell, minutes), stderr=subprocess.PIPE, text=True)
    assert done.returncode == 1
    head, _, rest = done.stderr.strip().partition("\n")
    assert head.startswith("tiny_table, plain_300: ") and head.endswith("/log.txt:")
    assert said in rest and len(rest.splitlines()) < 4
    assert "Error" in (tmp_path / "log.txt").read_text()
    cells = nbformat.read(tmp_path / "executed.ipynb", as_version=4).cells
    assert cells[-1].source == "never = 1" and not cells[-1].outputs
    shown = [one.get("ename") for each in cells for one in each.get("outputs", [])]
    assert (cell == RAISES) == ("RuntimeError" in shown)
    if cell == BUSY:
        pids = map(int, (tmp_path / "out").read_text().split())
        wait_for(lambda: not any(psutil.pid_exists(pid) for pid in pids))


@pytest.mark.slow
@pytest.mark.parametrize("how", ["terminated", "killed", "workflow killed"])
def test_nothing_lives_on_when_the_script_or_the_workflow_ends(tmp_path, how):
    words = command(tmp_path, BUSY)
    if how == "workflow killed":  # which starts the script through a shell
        call = f"true; {shlex.join(words)}; true"
        words = [sys.executable, "-c", f"import subprocess; subprocess.run({call!r}, shell=True)"]
    first = subprocess.Popen(words, stderr=subprocess.DEVNULL)
    wait_for((tmp_path / "out").exists)
    family = psutil.Process(first.pid).children(recursive=True)
    kernel = [p for p in family if "ipykernel_launcher" in " ".join(p.cmdline())]
    first.terminate() if how == "terminated" else first.kill()
    first.wait()
    wait_for(lambda: all(map(is_over, kernel if how == "killed" else family)))
