"""Workers that are threads or processes: no change is lost, all end as the simulation does."""

import importlib.util
import json
import subprocess
import sys
import sysconfig
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import ofslib
from ofslib.parallel import Central

JOB = Path(__file__).with_name("mpi_job.py")
MPIEXEC = Path(sysconfig.get_path("scripts"), "mpiexec")
RUNS = 30  # over which the recall is averaged
SELECTED = 24
# Of two mean recalls: one and a half features, five times the standard error of the difference
ALIKE = 1.5 / SELECTED

needs_mpi = pytest.mark.skipif(
    importlib.util.find_spec("mpi4py") is None or not MPIEXEC.exists(),
    reason="the group mpi is not installed",
)


def data(seed):
    """The os paper's regression (Section 5), small."""
    rng = np.random.default_rng(seed)
    X, support = rng.standard_normal((400, 400)), rng.permutation(400)[:SELECTED]
    y = X[:, support] @ rng.standard_normal(SELECTED) + 0.1 * rng.standard_normal(400)
    return X, y, support


def asynchronous(backend, n_workers, seed, tau=None, c=0.1):
    own = {"backend": backend, "n_workers": n_workers, "random_state": seed, "tau": tau, "c": c}
    known = {"k": SELECTED, "n_scans": 3, "fit_intercept": False, "refit": False}
    return ofslib.AsyncOnlineSubstitution(**known, **own)


def recall(model, seed):
    return float(np.isin(data(seed)[2], model.support_).mean())


def averaged(backend, n_workers, runs, tau=None):
    """Mean recall and staleness."""
    models = [asynchronous(backend, n_workers, s, tau) for s in range(runs)]
    scores = [recall(model.fit(*data(s)[:2]), s) for s, model in enumerate(models)]
    return np.mean(scores), np.mean([model.staleness_ for model in models])


@pytest.fixture
def often_interrupted():
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def test_no_change_is_lost_in_a_million(often_interrupted):
    """Of more numbers than those for which numpy holds the interpreter lock."""
    margins, late, one = np.zeros(1024), np.zeros(2, np.int64), np.ones(1024)
    shared = Central(margins, late, 4)

    def work(t):
        for _ in range(250_000):
            shared.add(t, one)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))
    assert margins.min() == margins.max() == late[0] == 1_000_000


def test_a_late_change_that_raises_the_objective_is_refused():
    margins, late = np.zeros(3), np.zeros(2, np.int64)
    shared = Central(margins, late, 2, objective=np.sum)
    shared.read(0), shared.read(1)
    # Nothing was missed: it has been checked by who sends it.
    assert shared.add(0, np.ones(3))
    assert not shared.add(1, np.ones(3))
    assert shared.add(1, -np.ones(3))
    assert margins.tolist() == [0, 0, 0] and late.tolist() == [2, 1]


@pytest.mark.parametrize(("n_workers", "tau", "expected"), [(1, 3, 0.0), (2, 4, 2.0), (3, 0, 0.0)])
def test_the_simulation_is_as_late_as_asked(n_workers, tau, expected):
    """Of the last tau changes, (q - 1) / q are others'."""
    # Of those that are not refused
    model = asynchronous("simulate", n_workers, 0, tau, c=0).fit(*data(0)[:2])
    assert abs(model.staleness_ - expected) < 0.1


def test_threads_find_what_the_simulation_finds():
    found, staleness = averaged("threads", 4, RUNS)
    expected, _ = averaged("simulate", 4, RUNS, tau=round(staleness * 4 / 3))
    assert abs(found - expected) <= ALIKE


# Processes


def job(n, what, file):
    command = [MPIEXEC, "-n", str(n), "-host", "localhost", sys.executable, JOB, what, file]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


@pytest.mark.slow
@needs_mpi
@pytest.mark.parametrize(("n", "what"), [(3, "differing data"), (5, "recall")])
def test_processes_find_what_the_simulation_finds(n, what, tmp_path):
    done = job(n, what, tmp_path / "found.json")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("differs between the MPI processes") == (n if n == 3 else 0)
    found = json.loads((tmp_path / "found.json").read_text())
    q = n - 1
    expected, _ = averaged("simulate", q, RUNS, tau=round(found["staleness"] * q / (q - 1)))
    assert abs(found["recall"] - expected) <= ALIKE
    assert found["lost"] < 1e-9
    assert set(found["kept"]) == {SELECTED}


@pytest.mark.slow
@needs_mpi
@pytest.mark.parametrize(
    ("what", "says"),
    [("killed", "Killed (signal 9)"), ("raises", "worker 1 (process 2) has")],
)
def test_a_worker_that_fails_ends_the_job(what, says, tmp_path):
    start = time.monotonic()
    done = job(3, what, tmp_path / "found.json")
    assert time.monotonic() - start < 60
    assert done.returncode != 0
    assert says in done.stdout + done.stderr
    assert list(tmp_path.iterdir()) == []
