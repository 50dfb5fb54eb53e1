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

pytestmark = [pytest.mark.slow, pytest.mark.skipif(os.name != "posix", reason="links")]
ROOT = Path(__file__).parents[1]
# Not yaml: numba reads its settings with it where it is installed.
EXTRAS = {"snakemake", "papermill", "IPython", "ipykernel", "jupyter_client", "jupyterlab"}
EXTRAS |= {"matplotlib", "seaborn", "jinja2", "pydantic"}
EXTRAS |= {"dask", "distributed", "mpi4py", "vowpalwabbit", "river"}

PROGRAM = """
import sys

import ofslib
from ofslib import RunningAverages, SFSAClassifier
from ofslib.datasets import load, open_stream, registry

for name in ofslib.__all__:
    getattr(ofslib, name)
model, averages = SFSAClassifier(k=1), RunningAverages(3)
for X, y in open_stream("rows.svm", block_rows=60):
    model.partial_fit(X, y, classes=[-1, 1])
    averages.update(X, y)
assert model.n_samples_seen_ == averages.n == 300 and list(model.support_) == [0]
data = load("tiny", registry_path="datasets.csv")
assert (model.fit(data.X_train, data.y_train).predict(X) == y).all()
assert "Sun, Lizhe" in ofslib.citation(model)
assert {"mnist_idx", "tiny"} <= set(registry("datasets.csv").index)
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


@pytest.fixture(scope="module")
def python(tmp_path_factory):
    """A Python with the wheel, outside the repository."""
    folder = tmp_path_factory.mktemp("install")
    shutil.copytree(ROOT / "ofslib", folder / "source/ofslib")
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, folder / "source")
    build = "from setuptools import build_meta; build_meta.build_wheel('../wheel')"
    (folder / "wheel").mkdir()
    run(sys.executable, "-c", build, cwd=folder / "source")
    run(sys.executable, "-m", "venv", folder / "venv")
    python = folder / "venv/bin/python"
    [wheel] = (folder / "wheel").iterdir()
    run(python, "-I", "-m", "pip", "install", "--no-index", "--no-deps", wheel)
    # What it needs is lent by this environment, whose versions the lock pins: no network is asked.
    where = "import sysconfig; print(sysconfig.get_path('purelib'))"
    site = Path(run(python, "-c", where).strip())
    for name in brought():
        found = distribution(name)
        for entry in {file.parts[0] for file in found.files} - {"..", "__pycache__"}:
            (site / entry).symlink_to(found.locate_file(entry))
    return python


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A folder with a file of rows, and a table of data sets that has it."""
    (tmp_path / "rows.svm").write_text("1 1:2 2:1\n-1 1:-2 3:1\n" * 150)
    table = "name,reader,train,task\ntiny,libsvm,rows.svm,classification\n"
    (tmp_path / "datasets.csv").write_text(table)
    monkeypatch.delenv("PYTHONPATH", raising=False)
    return tmp_path


def test_a_wheel_alone_fits_and_reads(python, project):
    file, loaded = run(python, "-c", PROGRAM, cwd=project).splitlines()
    assert Path(file).is_relative_to(python.parents[1])
    assert {"numba", "scipy"} <= set(loaded.split())
    command = python.with_name("ofslib")
    assert run(command, "--version").startswith("ofslib ")
    selected = json.loads(run(command, *"select rows.svm -k 1 --json".split(), cwd=project))
    assert [row["feature"] for row in selected["selected"]] == ["1"]
    run(python, "-m", "pip", "check")
    done = subprocess.run([python, "-c", "import ofslib.reproduction"], capture_output=True)
    assert done.returncode == 1, "what makes the papers' tables is in the sdist only"


def test_nothing_of_an_extra_is_imported_where_it_is_installed(project):
    here = os.environ | {"PYTHONPATH": str(ROOT)}
    _, loaded = run(sys.executable, "-c", PROGRAM, cwd=project, env=here).splitlines()
    assert not EXTRAS & set(loaded.split())
