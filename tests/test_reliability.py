"""Promises of docs/promises.md that belong to no single module: safe files, threads."""

import os
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

import ofslib

ROOT = Path(__file__).parents[1]
READ_ALL = """
import sys
from pathlib import Path

WATCHED = ("pickle.find_class", "os.system", "os.exec", "subprocess.Popen", "exec.ran")
import numpy, pandas, scipy.io, yaml
from ofslib import RunningAverages, datasets
from ofslib.datasets import readers

def watch(event, args):
    if event in WATCHED:
        print("RAN", event, args, flush=True)

Path("rows.svm").write_text("1 1:2")
list(datasets.open_stream("rows.svm", cache=False))  # compiled code is loaded before the watch

sys.addaudithook(watch)
for call in (
    lambda: RunningAverages.load("model.npz"),
    lambda: RunningAverages.load("model.pkl"),
    lambda: list(datasets.open_stream("model.pkl", cache=False)),
    lambda: readers._ecml(["rows.mat"], 1),
    lambda: readers._idx(["model.pkl", "model.pkl"], 1),
    lambda: datasets.registry("model.pkl"),
):
    try:
        call()
    except Exception as error:
        print("refused", type(error).__name__)
    else:
        print("taken")
"""


class Evil:
    """What an unpickler would run."""

    def __reduce__(self):
        return os.system, ("touch was_run",)


def test_crafted_files_of_models_and_data_are_refused_and_run_nothing(tmp_path):
    """That no such function is called anywhere, ruff says (S301, S506, S602 and others)."""
    (tmp_path / "model.pkl").write_bytes(pickle.dumps(Evil()))
    (tmp_path / "rows.mat").write_bytes(pickle.dumps(Evil()) * 20)
    np.savez(tmp_path / "model.npz", head=np.array([Evil()], dtype=object))
    path = os.pathsep.join([str(ROOT), *filter(None, sys.path)])
    done = subprocess.run(
        [sys.executable, "-c", READ_ALL],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": path},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert [line.split()[0] for line in done.stdout.splitlines()] == ["refused"] * 6, done.stdout
    assert not (tmp_path / "was_run").exists()


# So large that two threads sum the products in another order: without `one_blas_thread` in the
# module of its products each of these fails where there are two cores.
@pytest.mark.parametrize(
    "name, n, p",
    [
        ("OPGClassifier", 600, 4000),
        ("SADMMRegressor", 600, 4000),
        ("OnlineSubstitution", 300, 400),
        ("OnlineLeverageSelector", 20_000, 150),
        ("AlphaInvesting", 20_000, 150),
    ],
)
def test_the_number_of_threads_changes_no_bit(name, n, p):
    """Of rows and columns; those of running averages depend on the BLAS where p is large."""
    X = np.random.default_rng(0).standard_normal((n, p))
    y = (X[:, :3].sum(axis=1) > 0).astype(int)
    cls, own = getattr(ofslib, name), {"k": 5, "random_state": 0, "batch_size": 200}
    own = {key: value for key, value in own.items() if key in cls().get_params()}
    seen = set()
    for threads in (1, 2, 4):
        with threadpool_limits(threads):
            model = cls(**own).fit(X, y)
        numbers = [model.coef_] if hasattr(model, "coef_") else model._state
        numbers = [np.ravel(part) for part in numbers if isinstance(part, np.ndarray | list)]
        seen.add((b"".join(part.tobytes() for part in numbers), model.support_.tobytes()))
    assert len(seen) == 1
