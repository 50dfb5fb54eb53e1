"""What tests/test_parallel.py runs under mpiexec: python mpi_job.py what file"""

import json
import os
import signal
import sys

import numpy as np
from mpi4py import MPI
from test_parallel import RUNS, asynchronous, data, recall

from ofslib import parallel
from ofslib._files import write_whole

what, file = sys.argv[1:]
world = MPI.COMM_WORLD
n_workers = world.size - 1


def fails_at(count, fail):
    """Let worker 1 fail when it pushes for the so-many-th time."""
    push, pushed = parallel.push_and_read, []

    def push_or_fail(comm, change, margins):
        pushed.append(1)
        if world.rank == 2 and len(pushed) == count:
            fail()
        return push(comm, change, margins)

    parallel.push_and_read = push_or_fail


def fail():
    raise MemoryError("no room for another column")


if what == "differing data":
    X, y, _ = data(0)
    try:
        asynchronous("mpi", n_workers, 0).fit(X, y + (world.rank == 1))
    except ValueError as error:
        print(world.rank, error, flush=True)
    # The processes go on: one that fails for the same reason as all ends nothing.
    what = "recall"
elif what == "killed":
    fails_at(100, lambda: os.kill(os.getpid(), signal.SIGKILL))
elif what == "raises":
    fails_at(100, fail)

models = []
for seed in range(RUNS):
    X, y, _ = data(seed)
    # The seed of the central machine counts.
    models.append(asynchronous("mpi", n_workers, seed if world.rank == 0 else None).fit(X, y))
everywhere = world.gather([model.coef_.tobytes() for model in models])
if world.rank == 0:
    assert all(one == everywhere[0] for one in everywhere), "the processes have different models"
    X, y, _ = data(RUNS - 1)
    lost = np.abs(models[-1]._state.margins - X @ models[-1].coef_).max()
    found = {
        "recall": np.mean([recall(model, seed) for seed, model in enumerate(models)]),
        "staleness": np.mean([model.staleness_ for model in models]),
        "kept": [len(model.support_) for model in models],
        "lost": lost,
    }
    write_whole(file, json.dumps(found))
