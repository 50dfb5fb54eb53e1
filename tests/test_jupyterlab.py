"""Notebooks in JupyterLab, in a real browser: opened in a fresh clone, run and saved.

Needs playwright and Debian's chromium: `.ci/nightly` installs both. Chromium downloads nothing, and
the server listens on the loopback only, with settings of its own.
"""

import json
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from contextlib import contextmanager
from pathlib import Path

import nbformat
import pytest

ROOT = Path(__file__).parents[1]
BROWSER = shutil.which("chromium") or shutil.which("chromium-browser")
NOTEBOOKS = ["run", "recovery_table", "accuracy_by_budget"]
MINUTES = 10  # that a notebook may take; the kernels of the library are compiled in the first

# What a reader's saved notebooks must not change; `python` is this interpreter.
COMMANDS = [
    ["python", "-m", "ofslib.reproduction", "plan", "--scale", "paper"],
    ["python", "-m", "ofslib.reproduction", "unpack"],
]

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not BROWSER, reason="chromium is not installed"),
    pytest.mark.skipif(not shutil.which("git"), reason="git makes the clone"),
]

# The outputs that stand in the part of the notebook below the toolbar: 30 pixels of each at least.
SEEN = """() => {
    const inside = node => {
        const box = node.getBoundingClientRect();
        const view = node.closest('.jp-WindowedPanel-outer').getBoundingClientRect();
        return Math.min(box.bottom, view.bottom) - Math.max(box.top, view.top) > 30;
    };
    const outputs = document.querySelectorAll('.jp-Notebook .jp-OutputArea-output');
    return [...outputs].filter(inside).map(node => node.innerText.slice(0, 100));
}"""


def clone(folder):
    """What git has of the checkout, in a new folder."""
    subprocess.run(["git", "clone", "-q", str(ROOT), str(folder)], check=True)
    return folder


def surroundings(folder):
    """Environment variables: Python finds the clone, and nothing of the user's own is found."""
    homes = ["JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR", "IPYTHONDIR"]
    homes += ["JUPYTERLAB_SETTINGS_DIR", "JUPYTERLAB_WORKSPACES_DIR", "MPLCONFIGDIR"]
    own = {name: str(folder.with_name("home") / name.lower()) for name in homes}
    return os.environ | own | {"PYTHONPATH": str(folder)}


def state(folder):
    """What COMMANDS say in a clone."""
    said = []
    for _, *words in COMMANDS:
        done = subprocess.run(
            [sys.executable, *words],
            cwd=folder,
            env=surroundings(folder),
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        said.append(done.stdout.replace(str(folder), "."))
    return said


@contextmanager
def jupyterlab(folder):
    """JupyterLab in a clone; its address."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    options = [f"--ServerApp.port={port}", "--ServerApp.port_retries=0", "--ServerApp.ip=127.0.0.1"]
    options += ["--no-browser", "--allow-root", "--expose-app-in-browser"]
    options += ["--IdentityProvider.token=", f"--ServerApp.root_dir={folder}"]
    options += ["--LabApp.extension_manager=readonly"]  # which asks no registry
    quiet = Path(surroundings(folder)["JUPYTERLAB_SETTINGS_DIR"], "@jupyterlab/apputils-extension")
    quiet.mkdir(parents=True)
    quiet /= "notification.jupyterlab-settings"
    quiet.write_text('{"fetchNews": "false", "checkForUpdates": false}')
    log = folder.with_name("jupyterlab.log")
    with log.open("w") as text:
        server = subprocess.Popen(
            [sys.executable, "-m", "jupyterlab", *options],
            cwd=folder,
            env=surroundings(folder),
            stdin=subprocess.DEVNULL,
            stdout=text,
            stderr=text,
        )
    address = f"http://127.0.0.1:{port}"
    try:
        wait_until(lambda: answers(f"{address}/api/status"), log)
        yield address
    finally:
        server.terminate()  # its kernels end with it
        server.wait(timeout=60)


def answers(address):
    try:
        with urllib.request.urlopen(address, timeout=5):
            return True
    except OSError:
        return False


def wait_until(condition, log, seconds=90):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, log.read_text()[-2000:]
        time.sleep(0.3)


def execute(page, command):
    """What a menu of JupyterLab calls; returns when it is done, 'Run All' after the last cell."""
    page.evaluate(
        "name => { window.done = false;"
        " window.jupyterapp.commands.execute(name).finally(() => { window.done = true }); }",
        command,
    )
    page.wait_for_function("() => window.done")


def run_and_save(page, address, name):
    """'Run All' and save; returns the outputs that are seen afterwards without scrolling."""
    page.goto(f"{address}/lab/workspaces/{name}/tree/notebooks/{name}.ipynb")
    page.wait_for_selector(".jp-Notebook-ExecutionIndicator[data-status=idle]", timeout=120_000)
    page.wait_for_timeout(3000)  # what is run as soon as the kernel is there may be lost
    execute(page, "notebook:run-all-cells")
    execute(page, "docmanager:save")
    page.wait_for_timeout(1000)  # the view scrolls
    if folder := os.environ.get("OFSLIB_SCREENSHOTS"):
        page.screenshot(path=Path(folder, f"{name}.png"))
    return page.evaluate(SEEN)


@pytest.fixture(scope="module")
def opened(tmp_path_factory):
    """A clone in which the notebooks were run and saved; what was seen of each."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    folder, seen = clone(tmp_path_factory.mktemp("opened") / "ofslib"), {}
    with jupyterlab(folder) as address, playwright.sync_playwright() as play:
        browser = play.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1400, "height": 900})
        page.set_default_timeout(MINUTES * 60_000)
        for name in NOTEBOOKS:
            seen[name] = run_and_save(page, address, name)
        browser.close()
    return folder, seen


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_run_all_shows_results_and_no_error(opened, name):
    folder, seen = opened
    cells = nbformat.read(folder / f"notebooks/{name}.ipynb", as_version=4).cells
    outputs = [output for cell in cells for output in cell.get("outputs", [])]
    assert [o for o in outputs if o.output_type == "error"] == []
    assert all(cell.execution_count for cell in cells if cell.cell_type == "code")
    assert "IProgress" not in json.dumps(outputs)
    assert seen[name], "no output on the screen"


def test_saved_notebooks_change_nothing_else(opened, tmp_path):
    folder, _ = opened
    status = ["git", "status", "--porcelain"]
    done = subprocess.run(status, cwd=folder, capture_output=True, text=True, check=True)
    assert sorted(done.stdout.splitlines()) == sorted(f" M notebooks/{n}.ipynb" for n in NOTEBOOKS)
    assert state(folder) == state(clone(tmp_path / "ofslib"))
