"""The stories of the papers and the tutorials run, and what is stored of them can be shown."""

import json
import re

import nbformat
import pytest
from stories import STORIES, WIDGET, in_sliders, outputs, run

# The two quickest; the others are for .ci/nightly.
QUICK = ("sfsa", "dissertation")
PATH = re.compile(r"(?<![\w.])/(?:tmp|home|root|work|usr|Users|opt|var)/|site-packages|[A-Z]:\\\\")


@pytest.mark.workflow
@pytest.mark.parametrize(
    "file",
    [
        pytest.param(f, marks=[] if f.stem in QUICK else pytest.mark.slow, id=f.stem)
        for f in STORIES
    ],
)
def test_it_runs(file):
    """Each cell, and what is behind its sliders."""
    notebook = run(file)
    shown = in_sliders(notebook)
    assert [o for o in outputs(notebook) + shown if o["output_type"] == "error"] == []
    if "interact(" in file.read_text(encoding="utf-8"):
        assert any("image/png" in o.get("data", {}) for o in shown)


@pytest.mark.parametrize("file", STORIES, ids=lambda file: file.stem)
def test_what_is_stored_can_be_shown(file):
    """Without a kernel, on any machine; `python tests/stories.py` stores it."""
    notebook = nbformat.read(file, as_version=4)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in code] == [*range(1, len(code) + 1)]
    assert "widgets" not in notebook.metadata and outputs(notebook)
    for output in outputs(notebook):
        text = json.dumps({key: value for key, value in output.items() if key != "metadata"})
        assert output.output_type != "error" and WIDGET not in output.get("data", {})
        without_pictures = re.sub(r'"image/png": "[^"]*"', "", text)
        assert not PATH.search(without_pictures), PATH.search(without_pictures)
        assert len(text) < 100_000
