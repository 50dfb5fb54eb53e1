"""The notebooks in JupyterLab, in a real browser, as a reader of a fresh clone sees them.

    python tests/browser.py [--screenshots FOLDER] [NOTEBOOK ...]

opens each notebook (all of `NOTEBOOKS` if none is named), chooses 'Run All Cells', and ends with an
error if a cell fails, a warning is shown, or the picture does not follow a slider. It needs
playwright and a chromium; only loopback is used.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parents[1]
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
STORIES = [f"papers/{name}" for name in ("sfsa", "dissertation", "os", "ofs", "barda", "theory")]
# Of the tables and figures, with their kinds of notebook.
ENTRIES = {
    "dissertation_table_5_1": "recovery_table",
    "barda_table_2": "data_sets",
    "barda_figure_1": "accuracy_by_budget",
    "dissertation_figure_5_3": "bound_curves",
}
NOTEBOOKS = ["index", *STORIES, *(f"opened/{entry}" for entry in ENTRIES), "run"]
SECONDS = 60  # that 'Run All' may take on a quiet machine
PATIENCE = 240
# No news from the network, and all cells in the page, also those out of sight.
SETTINGS = {
    "apputils-extension/notification": {"fetchNews": "false", "checkForUpdates": False},
    "notebook-extension/tracker": {"windowingMode": "none"},
}
WRONG = ".jp-Cell [data-mime-type='application/vnd.jupyter.{}']"
CURRENT = "window.jupyterapp.shell.currentWidget"
CELLS = f"{CURRENT}.content.model.toJSON().cells"
# The server's kernel is there before JupyterLab knows of it.
READY = """name => { const now = window.jupyterapp?.shell.currentWidget;
    return now?.context?.path === name && now.sessionContext.session?.kernel?.status === 'idle' }"""
RUN_ALL = """window.ran = false; window.jupyterapp.commands.execute('notebook:run-all-cells')
    .then(() => { window.ran = true }); null"""
PICTURE = ".jupyter-widgets.widget-interact img"


@contextmanager
def jupyter_lab(clone, scratch):
    """The address of a server of its own, without the user's settings."""
    for name, settings in SETTINGS.items():
        file = scratch / f"settings/@jupyterlab/{name}.jupyterlab-settings"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(settings))
    own = {"PYTHONPATH": str(clone), "JUPYTERLAB_SETTINGS_DIR": str(scratch / "settings")}
    for name in ("CONFIG_DIR", "DATA_DIR", "RUNTIME_DIR"):
        own[f"JUPYTER_{name}"] = str(scratch / name)
    own["JUPYTERLAB_WORKSPACES_DIR"] = str(scratch / "workspaces")
    words = "-m jupyterlab --no-browser --ip 127.0.0.1 --port 0 --allow-root".split()
    words += ["--LabApp.expose_app_in_browser=True"]
    with open(scratch / "log.txt", "w") as log:
        server = subprocess.Popen(
            [sys.executable, *words], cwd=clone, env=os.environ | own, stdout=log, stderr=log
        )
    try:
        while not (found := [*(scratch / "RUNTIME_DIR").glob("jpserver-*.json")]):
            if server.poll() is not None:
                sys.exit((scratch / "log.txt").read_text())
            time.sleep(0.1)
        yield json.loads(found[0].read_text())
    finally:
        server.terminate()
        server.wait()


def wait_for(page, condition, arg=None):
    page.wait_for_function(condition, arg=arg, timeout=1000 * PATIENCE)


def run_all(page):
    """'Run All Cells'; returns the code cells and the seconds it took."""
    start = time.monotonic()
    page.evaluate(RUN_ALL)
    wait_for(page, "window.ran")
    seconds = time.monotonic() - start
    cells = [cell for cell in page.evaluate(CELLS) if cell["cell_type"] == "code"]
    for kind in ("error", "stderr"):  # those of sliders, too
        assert not (said := page.locator(WRONG.format(kind)).all_inner_texts()), said
    assert all(cell["execution_count"] for cell in cells if cell["source"]), "a cell did not run"
    return cells, seconds


def move_slider(page):
    """One step of the first slider, by the keyboard."""
    before = page.locator(PICTURE).first.get_attribute("src")
    handle = page.locator(".widget-interact .noUi-handle").first
    now, last = (handle.get_attribute(f"aria-value{which}") for which in ("now", "max"))
    handle.press("ArrowLeft" if now == last else "ArrowRight")
    changed = "([query, before]) => (document.querySelector(query) || {src: before}).src != before"
    wait_for(page, changed, [PICTURE, before])


def links(page):
    """Each table's link, clicked, opens the notebook of this table."""
    for entry in ENTRIES:
        page.get_by_role("link", name=entry, exact=True).click()
        wait_for(page, READY, f"notebooks/opened/{entry}.ipynb")
        first = next(c for c in page.evaluate(CELLS) if c["cell_type"] == "code")
        assert f'entry = "{entry}"' in "".join(first["source"])
        page.get_by_role("tab", name="index.ipynb").click()
        wait_for(page, READY, "notebooks/index.ipynb")


def check(page, server, name, screenshots):
    path = f"notebooks/{name}.ipynb"
    page.goto(f"{server['url']}lab/tree/{path}?reset&token={server['token']}")
    wait_for(page, READY, path)
    cells, seconds = run_all(page)
    page.locator(".jp-Cell").first.scroll_into_view_if_needed()
    file = screenshots / f"{name.replace('/', '_')}.png"
    page.screenshot(path=file)
    if name in STORIES:
        move_slider(page)
        page.locator(PICTURE).first.scroll_into_view_if_needed()
        page.screenshot(path=file.with_suffix(".slider.png"))
    if name == "index":
        links(page)
    print(f"{name}: {len(cells)} cells, {seconds:.1f} s", flush=True)
    assert seconds < SECONDS * max(1, os.getloadavg()[0] / os.cpu_count()), "too slow"


def main():
    from playwright.sync_api import TimeoutError, sync_playwright

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--screenshots", type=Path, help="folder for a picture of each notebook")
    parser.add_argument("notebooks", nargs="*", default=NOTEBOOKS, metavar="NOTEBOOK")
    given = parser.parse_args()
    browser = next(filter(None, map(shutil.which, BROWSERS)))
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        scratch, clone = Path(folder), Path(folder, "clone")
        screenshots = given.screenshots or scratch / "screenshots"
        screenshots.mkdir(parents=True, exist_ok=True)
        subprocess.run(["git", "clone", "-q", ROOT, clone], check=True)
        with jupyter_lab(clone, scratch) as server:
            chromium = playwright.chromium.launch(executable_path=browser, args=["--no-sandbox"])
            page = chromium.new_page(viewport={"width": 1280, "height": 900})
            page.set_default_timeout(1000 * PATIENCE)
            failed = []
            for name in given.notebooks:
                try:
                    check(page, server, name, screenshots)
                except (AssertionError, TimeoutError) as error:
                    failed.append(f"{name}: {error}")
            chromium.close()
    sys.exit("\n".join(failed) or 0)


if __name__ == "__main__":
    main()
