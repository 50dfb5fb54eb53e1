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
HOMES = ["JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR", "IPYTHONDIR"]
HOMES += ["JUPYTERLAB_SETTINGS_DIR", "JUPYTERLAB_WORKSPACES_DIR", "MPLCONFIGDIR"]

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
# What a menu of JupyterLab calls; 'Run All' is done after the last cell.
EXECUTE = """name => { window.done = false;
    window.jupyterapp.commands.execute(name).finally(() => { window.done = true }); }"""


@contextmanager
def jupyterlab(folder):
    """JupyterLab in a clone, which nothing of the user's own reaches; its address."""
    own = {name: str(folder.with_name("home") / name.lower()) for name in HOMES}
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    options = [f"--ServerApp.port={port}", "--ServerApp.port_retries=0", "--ServerApp.ip=127.0.0.1"]
    options += ["--no-browser", "--allow-root", "--expose-app-in-browser"]
    options += ["--IdentityProvider.token=", f"--ServerApp.root_dir={folder}"]
    options += ["--LabApp.extension_manager=readonly"]  # which asks no registry
    quiet = Path(own["JUPYTERLAB_SETTINGS_DIR"], "@jupyterlab/apputils-extension")
    quiet.mkdir(parents=True)
    news = quiet / "notification.jupyterlab-settings"
    news.write_text('{"fetchNews": "false", "checkForUpdates": false}')
    server = subprocess.Popen(
        [sys.executable, "-m", "jupyterlab", *options],
        cwd=folder,
        env=os.environ | own | {"PYTHONPATH": str(folder)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    address, end = f"http://127.0.0.1:{port}", time.monotonic() + 90
    try:
        while True:
            try:
                urllib.request.urlopen(f"{address}/api/status", timeout=5).close()
                break
            except OSError:
                assert time.monotonic() < end, "JupyterLab does not answer"
                time.sleep(0.3)
        yield address
    finally:
        server.terminate()  # its kernels end with it
        server.wait(timeout=60)


def run_and_save(page, address, name):
    """'Run All' and save; returns the outputs that are seen afterwards without scrolling."""
    page.goto(f"{address}/lab/workspaces/{name}/tree/notebooks/{name}.ipynb")
    page.wait_for_selector(".jp-Notebook-ExecutionIndicator[data-status=idle]", timeout=120_000)
    page.wait_for_timeout(3000)  # what is run as soon as the kernel is there may be lost
    for command in ("notebook:run-all-cells", "docmanager:save"):
        page.evaluate(EXECUTE, command)
        page.wait_for_function("() => window.done")
    page.wait_for_timeout(1000)  # the view scrolls
    if folder := os.environ.get("OFSLIB_SCREENSHOTS"):
        page.screenshot(path=Path(folder, f"{name}.png"))
    return page.evaluate(SEEN)


def test_run_all_shows_results_and_no_error_and_changes_nothing_else(tmp_path):
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    folder, seen = tmp_path / "ofslib", {}
    subprocess.run(["git", "clone", "-q", str(ROOT), str(folder)], check=True)
    with jupyterlab(folder) as address, playwright.sync_playwright() as play:
        browser = play.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1400, "height": 900})
        page.set_default_timeout(MINUTES * 60_000)
        for name in NOTEBOOKS:
            seen[name] = run_and_save(page, address, name)
        browser.close()
    for name in NOTEBOOKS:
        cells = nbformat.read(folder / f"notebooks/{name}.ipynb", as_version=4).cells
        outputs = [output for cell in cells for output in cell.get("outputs", [])]
        assert [o for o in outputs if o.output_type == "error"] == []
        assert all(cell.execution_count for cell in cells if cell.cell_type == "code")
        assert "IProgress" not in json.dumps(outputs)
        assert seen[name], "no output on the screen"
    status = ["git", "status", "--porcelain"]
    done = subprocess.run(status, cwd=folder, capture_output=True, text=True, check=True)
    assert sorted(done.stdout.splitlines()) == sorted(f" M notebooks/{n}.ipynb" for n in NOTEBOOKS)
