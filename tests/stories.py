"""Notebooks that are stored with their outputs: the stories of the papers and the tutorials.

    python tests/stories.py [NOTEBOOK ...]

runs them, all if none is named, and stores what they show. Sliders are not stored: without a kernel
they would be an error box.
"""

import json
import sys
import tempfile
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from traitlets.config import Config

ROOT = Path(__file__).parents[1]
STORIES = sorted(file for part in ("papers", "learn") for file in ROOT.glob(f"notebooks/{part}/*"))
STORIES = [file for file in STORIES if file.suffix == ".ipynb"]
WIDGET = "application/vnd.jupyter.widget-view+json"
SECONDS = 600  # that a cell may take


def run(file: Path) -> nbformat.NotebookNode:
    """The notebook after 'Run All', sliders included; raises what a cell raises."""
    notebook = nbformat.read(file, as_version=4)
    known = {"timeout": SECONDS, "kernel_name": "python3"}
    known["resources"] = {"metadata": {"path": str(file.parent)}}
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        # Sockets are files: of kernels that start at once, none takes the port of another.
        kernel = {"transport": "ipc", "ip": f"{folder}/k", "connection_file": f"{folder}/k.json"}
        config = Config({"KernelManager": kernel})
        NotebookClient(notebook, config=config, **known).execute()
    return notebook


def outputs(notebook) -> list:
    return [output for cell in notebook.cells for output in cell.get("outputs", [])]


def in_sliders(notebook) -> list:
    """What the functions behind sliders show: an error there stops no cell."""
    states = notebook.metadata.get("widgets", {}).values()
    models = [model for one in states for model in one["state"].values()]
    return [output for model in models for output in model["state"].get("outputs", [])]


def storable(notebook) -> nbformat.NotebookNode:
    """Without sliders and times of execution."""
    notebook.metadata.pop("widgets", None)
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)
        if cell.cell_type == "code":
            cell.outputs = [o for o in cell.outputs if WIDGET not in o.get("data", {})]
    return notebook


if __name__ == "__main__":
    for name in map(Path, sys.argv[1:]) if sys.argv[1:] else STORIES:
        made = run(name)
        largest = max((len(json.dumps(output)) for output in outputs(made)), default=0)
        nbformat.write(storable(made), name)
        print(f"{name}: largest output {largest / 1000:.0f} kB")
