"""Promises of docs/promises.md that belong to no single module: safe files, threads."""

import os
import pickle
from pathlib import Path

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

import ofslib
from ofslib import datasets
from ofslib.datasets import readers


class Evil:
    """What an unpickler would run."""

    def __reduce__(self):
        return os.system, ("touch was_run",)


@pytest.mark.parametrize(
    "call",
    [
        lambda: ofslib.RunningAverages.load("model.npz"),
        lambda: ofslib.RunningAverages.load("model.pkl"),
        lambda: list(datasets.open_stream("model.pkl", cache=False)),
        lambda: list(datasets.open_stream("objects.npz", cache=False)),
        lambda: readers._ecml(["rows.mat"], 1),
        lambda: readers._idx(["model.pkl", "model.pkl"], 1),
        lambda: datasets.registry("model.pkl"),
    ],
)
def test_crafted_files_of_models_and_data_are_refused_and_run_nothing(call, tmp_path, monkeypatch):
    """That no such function is called anywhere, ruff says (S301, S506, S602 and others)."""
    monkeypatch.chdir(tmp_path)
    Path("model.pkl").write_bytes(pickle.dumps(Evil()))
    Path("rows.mat").write_bytes(pickle.dumps(Evil()) * 20)
    np.savez("model.npz", head=np.array([Evil()], dtype=object))
    np.savez("objects.npz", X=np.array([[Evil()]], dtype=object), y=[1])
    with pytest.raises((ValueError, OSError, datasets.CorruptFile)):
        call()
    assert not Path("was_run").exists()


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
