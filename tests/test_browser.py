"""The notebooks in JupyterLab, as tests/browser.py opens them in a browser."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from browser import BROWSERS


@pytest.mark.slow
@pytest.mark.workflow
@pytest.mark.skipif(not any(map(shutil.which, BROWSERS)), reason="no chromium here")
def test_each_notebook_runs_in_jupyterlab_without_error_or_warning(tmp_path):
    pytest.importorskip("playwright", reason="pip install playwright")
    words = [sys.executable, Path(__file__).with_name("browser.py"), "--screenshots", tmp_path]
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
