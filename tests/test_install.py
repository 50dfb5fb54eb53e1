"""The wheel in an environment that has only what the library itself depends on."""

import json
import os
import shutil
import subprocess
import sys
import tomllib
from importlib.metadata import distribution, requires
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from test_datasets import cells, write_table

ROOT = Path(__file__).parents[1]
# Not yaml: numba reads its settings with it where it is installed.
EXTRAS = {"snakemake", "papermill", "IPython", "ipykernel", "jupyter_client", "jupyterlab"}
EXTRAS |= {"matplotlib", "seaborn", "jinja2", "pydantic"}
EXTRAS |= {"dask", "distributed", "mpi4py", "vowpalwabbit", "river"}

ROWS = "1 1:2 2:1\n-1 1:-2 3:1\n" * 150

PROGRAM = """
import sys

import numpy as np
import ofslib
from ofslib import RunningAverages, SFSAClassifier
from ofslib.datasets import load, open_stream, registry

modules = [getattr(ofslib, name) for name in ofslib.MODULES]
estimators = [getattr(ofslib, name) for name in ofslib.__all__ if name not in ofslib.MODULES]
assert len(modules) == 6 and len(estimators) == 56
model, averages = SFSAClassifier(k=1), RunningAverages(3)
for X, y in open_stream("rows.svm", block_rows=60):
    model.partial_fit(X, y, classes=[-1, 1])
    averages.update(X, y)
assert model.n_samples_seen_ == averages.n == 300 and list(model.support_) == [0]
data = load("tiny", registry_path="datasets.csv")
assert (model.fit(data.X_train, data.y_train).predict(X) == y).all()
assert {"mnist_idx", "tiny"} <= set(registry("datasets.csv").index)
try:
    open_stream("mistyped.svm")
except FileNotFoundError as error:
    assert "mistyped.svm" in str(error) and "mnist_idx" in str(error)
print(ofslib.__file__)
print(*{name.partition(".")[0] for name in sys.modules})
"""


def run(*command, **options):
    done = subprocess.run(command, capture_output=True, text=True, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def brought():
    """The distributions that the library needs without any extra, and those that these need."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    names, todo = set(), project["dependencies"]
    while todo:
        requirement = Requirement(todo.pop())
        name = canonicalize_name(requirement.name)
        if requirement.marker and not requirement.marker.evaluate({"extra": ""}):
            continue
        if name not in names:
            names.add(name)
            todo += requires(name) or []
    return names


def top_level(name):
    """The files and folders of site-packages that a distribution put there."""
    found = distribution(name)
    names = {file.parts[0] for file in found.files} - {"..", "__pycache__"}
    return [Path(found.locate_file(entry)) for entry in names]


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """A Python with the wheel, outside the repository."""
    folder = tmp_path_factory.mktemp("install")
    unwanted = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "ofslib", folder / "source/ofslib", ignore=unwanted)
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, folder / "source")
    build = "from setuptools import build_meta; build_meta.build_wheel('../wheel')"
    (folder / "wheel").mkdir()
    run(sys.executable, "-c", build, cwd=folder / "source")
    run(sys.executable, "-m", "venv", folder / "venv")
    python = folder / "venv" / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    [wheel] = (folder / "wheel").iterdir()
    run(python, "-m", "pip", "install", "--no-index", "--no-deps", wheel)
    # What it needs is lent by this environment, whose versions the lock pins: no network is asked.
    where = "import sysconfig; print(sysconfig.get_path('purelib'))"
    site = Path(run(python, "-c", where).strip())
    for name in brought():
        for path in top_level(name):
            (site / path.name).symlink_to(path, target_is_directory=path.is_dir())
    return python, folder


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A folder with a file of rows, and a mirror that holds a data set of the same rows."""
    (tmp_path / "tiny").mkdir()
    for name in ("rows.svm", "tiny/tiny.svm"):
        (tmp_path / name).write_text(ROWS)
    write_table(tmp_path, cells(ROWS.encode(), n_train="300", n_features="3"))
    monkeypatch.setenv("OFSLIB_DATA_MIRROR", str(tmp_path))
    monkeypatch.delenv("PYTHONPATH", raising=False)
    return tmp_path


@pytest.mark.slow
def test_a_wheel_alone_fits_and_reads(installed, project):
    python, folder = installed
    file, loaded = run(python, "-c", PROGRAM, cwd=project).splitlines()
    assert Path(file).is_relative_to(folder / "venv")
    assert {"numba", "scipy"} <= set(loaded.split())
    command = Path(python).with_name("ofslib.exe" if os.name == "nt" else "ofslib")
    assert run(command, "--version").startswith("ofslib ")
    selected = json.loads(run(command, *"select rows.svm -k 1 --json".split(), cwd=project))
    assert [row["feature"] for row in selected["selected"]] == ["1"]
    run(python, "-m", "pip", "check")
    for words in (["-c", "import ofslib.reproduction.project"], ["-m", "ofslib.reproduction"]):
        done = subprocess.run([python, *words], capture_output=True, text=True, cwd=project)
        assert done.returncode == 1 and "pip install 'ofslib[reproduction]'" in done.stderr


@pytest.mark.slow
def test_nothing_of_an_extra_is_imported_where_it_is_installed(project):
    here = os.environ | {"PYTHONPATH": str(ROOT)}
    _, loaded = run(sys.executable, "-c", PROGRAM, cwd=project, env=here).splitlines()
    assert not EXTRAS & set(loaded.split())


def test_what_is_installed_is_small():
    names = brought()
    assert len(names) <= 25, sorted(names)
    files = [
        file
        for name in names
        for path in top_level(name)
        for file in (path.rglob("*") if path.is_dir() else [path])
    ]
    block = 4096  # as `du` counts
    size = sum(-(-file.stat().st_size // block) * block for file in files if file.is_file())
    assert size <= 600 * 2**20, size / 2**20
