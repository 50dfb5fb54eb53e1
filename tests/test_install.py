"""The wheel by itself: it needs neither the repository nor what an extra brings."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow
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


def unpacked_wheel(folder):
    """Built of a copy of the sources."""
    shutil.copytree(ROOT / "ofslib", folder / "source/ofslib")
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, folder / "source")
    build = "from setuptools import build_meta; build_meta.build_wheel('../wheel')"
    (folder / "wheel").mkdir()
    run(sys.executable, "-c", build, cwd=folder / "source")
    [wheel] = (folder / "wheel").iterdir()
    shutil.unpack_archive(wheel, folder / "unpacked", "zip")
    return folder / "unpacked"


def test_a_wheel_alone_fits_and_reads_and_imports_nothing_of_an_extra(tmp_path):
    """In a folder with a file of rows, and a table of data sets that has it."""
    wheel = unpacked_wheel(tmp_path)
    (tmp_path / "rows.svm").write_text("1 1:2 2:1\n-1 1:-2 3:1\n" * 150)
    table = "name,reader,train,task\ntiny,libsvm,rows.svm,classification\n"
    (tmp_path / "datasets.csv").write_text(table)
    there = os.environ | {"PYTHONPATH": str(wheel)}
    file, loaded = run(sys.executable, "-c", PROGRAM, cwd=tmp_path, env=there).splitlines()
    assert Path(file).is_relative_to(wheel) and {"numba", "scipy"} <= set(loaded.split())
    assert not EXTRAS & set(loaded.split())
    command = [sys.executable, "-c", "from ofslib.cli import main; raise SystemExit(main())"]
    told = run(*command, *"select rows.svm -k 1 --json".split(), cwd=tmp_path, env=there)
    assert [row["feature"] for row in json.loads(told)["selected"]] == ["1"]
    [entry_points] = wheel.glob("*.dist-info/entry_points.txt")
    assert "ofslib = ofslib.cli:main" in entry_points.read_text()
    assert not (wheel / "ofslib/reproduction").exists(), "that is in the sdist only"
