"""Time of asynchronous substitution to a fixed training error: Yang et al. 2016 (`os`), Figure 3.

Measured with threads and processes on this machine; for more workers than it has cores modelled,
from costs that are measured in the same run. Each of the processes runs this file.
"""

import heapq
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ofslib import AsyncOnlineSubstitution, OnlineSubstitution, parallel
from ofslib._files import write_whole
from ofslib.kernels.working_set import Columns
from ofslib.reproduction.studies import tidy
from ofslib.reproduction.studies.columns import synthetic

TIME_LIMIT = 600  # seconds for the processes of one number of workers
_MESSAGES = 3000  # of which the median cost is taken
_COLUMNS = 1024  # of which the cost of a column is taken
# Columns of a trace
SECONDS, SHOWN, ERROR = range(3)


class Costs(NamedTuple):
    """Seconds that one change of u_C takes."""

    compute: float  # a worker, for the column and its change
    service: float  # the central machine, which serves one worker after the other
    delay: float  # under way, once to the central machine and once back


def added(n_changes: int, n_workers: int, costs: Costs) -> tuple[np.ndarray, float]:
    """When the central machine has added each of the changes, by a discrete-event model.

    A worker computes, sends its change, waits for u_C in return, and begins anew. The central
    machine serves in the order of arrival, one at a time. All workers begin at 0.

    Parameters
    ----------
    n_changes, n_workers : int
    costs : Costs
        In seconds; the same for all workers.

    Returns
    -------
    times : ndarray of shape (n_changes,)
        In seconds, ascending.
    staleness : float
        Changes by others that were added after a worker had read and before its own; the mean.
    """
    arrivals = [(costs.compute + costs.delay, t) for t in range(n_workers)]
    times, read, missed, now = np.empty(n_changes), [0] * n_workers, 0, 0.0
    for i in range(n_changes):
        arrived, t = arrivals[0]
        times[i] = now = max(now, arrived) + costs.service
        missed += i - read[t]
        read[t] = i + 1
        heapq.heapreplace(arrivals, (now + 2 * costs.delay + costs.compute, t))
    return times, missed / n_changes


def over_network(here: Costs, n: int, latency: float, bandwidth: float) -> Costs:
    """Costs if messages of n numbers go over a network instead.

    Parameters
    ----------
    here : Costs
        Within one machine.
    n : int
        Numbers of 8 bytes in a message.
    latency : float
        Of a message, in seconds.
    bandwidth : float
        Of the central machine in each direction, in bytes per second. The slower one of its
        network and its processor limits how many workers it can serve.
    """
    sending = 8 * n / bandwidth
    service = max(here.service, sending)
    # What one exchange takes in all, without a queue, is the sum of its parts.
    total = here.service + 2 * (sending + latency)
    return Costs(here.compute, service, (total - service) / 2)


def first_reached(at: np.ndarray, errors: np.ndarray, level: float) -> float | None:
    """Where errors seen at `at` first come down to the level, interpolated; None if never."""
    below = np.flatnonzero(errors <= level)
    if not len(below):
        return None
    i = below[0]
    if i == 0:
        return float(at[0])
    share = (errors[i - 1] - level) / (errors[i - 1] - errors[i])
    return float(at[i - 1] + share * (at[i] - at[i - 1]))


def training_error(loss: str, margins: np.ndarray, y: np.ndarray) -> float:
    """In percent: of the mean square of y, or wrong labels; a margin of 0 is half wrong."""
    if loss == "squared_error":
        return float(100.0 * np.mean((y - margins) ** 2) / np.mean(y**2))
    return float(50.0 * np.mean(1.0 - np.sign(margins * y)))


def traced(model: Any, X: np.ndarray, y: np.ndarray, pieces: int = 1) -> np.ndarray:
    """Fit, and note the training error of the margins each time that a block is done.

    Parameters
    ----------
    model : OnlineSubstitution or AsyncOnlineSubstitution
    X, y : ndarrays
    pieces : int, default=1
        Parts of a block, after each of which it is noted.

    Returns
    -------
    ndarray of shape (times noted, 3)
        `SECONDS` by a clock that is the same for all processes of a machine, columns `SHOWN` by
        this process since the row before, training `ERROR` in percent. The first row is before the
        first column. Reading, checking and dividing the data before that is not counted.
    """
    trace, as_block, learn_block = [], model._as_block, model._learn_block

    def note_start(values, index):
        if not trace:
            start = training_error(model.loss, np.zeros(len(y)), y)
            trace.append((time.perf_counter(), 0, start))
        return as_block(values, index)

    def note_after(state, block):
        ends = [len(block.index) * part // pieces for part in range(pieces + 1)]
        for i, stop in pairwise(ends):
            state = learn_block(state, Columns(*(part[i:stop] for part in block)))
            error = training_error(model.loss, state.margins, y)
            trace.append((time.perf_counter(), stop - i, error))
        return state

    model._as_block, model._learn_block = note_start, note_after
    try:
        model.fit(X, y)
    except FloatingPointError:
        # It has diverged: the errors that were seen tell it.
        pass
    return np.array(trace).reshape(-1, 3)


def time_to_error(setting, seeds, data, *, n, p, n_scans, tasks, measured, modelled, network):
    """Figure 3: seconds to each level of the training error.

    Rows of metric time_s have columns loss, method, n_workers and level (percent, see
    `training_error`); value is None, with a note, if the level is not reached, or if there is no
    MPI. Other rows: the costs of the model, its staleness, and the cores of this machine.

    Parameters
    ----------
    n, p, n_scans : int
        Rows, columns, and times that the columns are scanned.
    tasks : dict
        {loss: {s: features kept, levels: percents}}.
    measured, modelled : list of int
        Numbers of workers; of a task those up to s.
    network : dict
        latency and bandwidth, as in `over_network`.
    """
    draws = seeds.spawn(len(tasks) + 1)
    job = {"n_scans": n_scans, "seed": int(draws.pop().generate_state(1)[0])}
    job["sizes"] = {loss: task["s"] for loss, task in tasks.items()}
    yield {"metric": "cores", "value": os.cpu_count()}
    with tempfile.TemporaryDirectory() as folder:
        for (loss, s), draw in zip(job["sizes"].items(), draws, strict=True):
            X, y, _ = synthetic(p, n, s, loss, np.random.default_rng(draw))
            # Column by column, as they are read.
            np.save(Path(folder, f"{loss}.X.npy"), np.asfortranarray(X[:n]))
            np.save(Path(folder, f"{loss}.y.npy"), y[:n])
        write_whole(Path(folder, "job.json"), json.dumps(job))
        lacking = _lacking()
        found = {} if lacking else {q: _processes(folder, q) for q in sorted({1, *measured})}
        for loss, task in tasks.items():
            X, y = _load(folder, loss)
            for where, trace in _measured(job, loss, X, y, found, measured):
                yield from _rows({"loss": loss, **where}, trace, task["levels"], lacking)
            for q in (q for q in modelled if q <= task["s"]):
                for where, trace, facts in _modelled(job, loss, X, y, q, found, network):
                    where = {"loss": loss, "n_workers": q, **where}
                    yield from _rows(where, trace, task["levels"], lacking)
                    yield from tidy(facts, **where)


def _rows(where, trace, levels, lacking):
    """The time to each level; there is no trace if there is no MPI."""
    for level in levels:
        seconds, note = None, lacking
        if trace is not None:
            seconds = first_reached(trace[:, SECONDS], trace[:, ERROR], level)
            note = "not reached" if seconds is None else None
        row = {**where, "level": level, "metric": "time_s"}
        yield {**row, "value": seconds, "note": note}


# As in the paper: without the check.
_UNCHECKED = partial(AsyncOnlineSubstitution, c=0.0)


def _untrained(job, loss, cls=_UNCHECKED, **own):
    known = {"k": job["sizes"][loss], "n_scans": job["n_scans"], "random_state": job["seed"]}
    return cls(loss=loss, fit_intercept=False, refit=False, **known | own)


def _measured(job, loss, X, y, found, workers):
    """Method and workers, and the trace, which begins at time 0; None without MPI."""
    few = X[:, : 2 * job["sizes"][loss]]
    # Compile before times are measured.
    _untrained(job, loss, OnlineSubstitution).fit(few, y)
    _untrained(job, loss, backend="threads").fit(few, y)
    trace = traced(_untrained(job, loss, OnlineSubstitution), X, y)
    yield {"method": "OS", "n_workers": 1}, _in_time(trace)
    for q in workers:
        trace = traced(_untrained(job, loss, backend="threads", n_workers=q), X, y)
        yield {"method": "threads", "n_workers": q}, _in_time(trace)
        trace = _in_time(np.array(found[q][loss])) if found else None
        yield {"method": "processes", "n_workers": q}, trace


def _modelled(job, loss, X, y, q, found, network):
    """The same for one number of workers by the model; and what it was made of."""
    if not found:
        yield from (({"method": method}, None, {}) for method in ("model", "model, network"))
        return
    here = Costs(_compute(job, loss, X, y, q), **found[1]["messages"])
    simulated = {}
    there = over_network(here, len(y), **network)
    for method, costs in {"model": here, "model, network": there}.items():
        times, staleness = added(job["n_scans"] * X.shape[1], q, costs)
        # Of the last tau changes (q - 1) / q are those of others.
        tau = round(staleness * q / max(q - 1, 1))
        if tau not in simulated:
            simulated[tau] = traced(_untrained(job, loss, n_workers=q, tau=tau), X, y)
        trace = simulated[tau].copy()
        trace[0, SECONDS] = 0.0
        trace[1:, SECONDS] = times[np.cumsum(trace[1:, SHOWN]).astype(int) - 1]
        facts = {f"{cost}_s": seconds for cost, seconds in costs._asdict().items()}
        yield {"method": method}, trace, {"staleness": staleness, **facts}


def _compute(job, loss, X, y, q):
    """Seconds that a worker of q needs for a column, once it has as many features as it may."""
    each = []
    for _ in range(3):
        model = _untrained(job, loss, n_workers=q, tau=0, n_scans=1)
        trace = traced(model, X[:, :_COLUMNS], y, pieces=8)
        trace = trace[len(trace) // 4 :]
        each.append((trace[-1, SECONDS] - trace[0, SECONDS]) / trace[1:, SHOWN].sum())
    return float(np.median(each))


def _in_time(trace: np.ndarray) -> np.ndarray:
    """Trace of one or of many processes in the order of time, which begins with the first."""
    trace = trace[np.argsort(trace[:, SECONDS], kind="stable")]
    trace[:, SECONDS] -= trace[0, SECONDS]
    return trace


def _load(folder, loss):
    return tuple(np.load(Path(folder, f"{loss}.{part}.npy"), mmap_mode="r") for part in "Xy")


# -------------------------------------------------- processes


def _mpiexec() -> str | None:
    scripts = sysconfig.get_path("scripts")
    return shutil.which("mpiexec", path=os.pathsep.join([scripts, os.environ.get("PATH", "")]))


def _lacking() -> str | None:
    """What keeps this machine from running processes under MPI; None: nothing does."""
    if importlib.util.find_spec("mpi4py") is None:
        return "mpi4py is not installed"
    return None if _mpiexec() else "there is no mpiexec"


def _processes(folder: str, n_workers: int) -> dict[str, Any]:
    """{loss: traces of all workers}, and the costs of messages if there is one worker."""
    program = [sys.executable, "-m", "mpi4py", "-m", __name__, folder]
    command = [_mpiexec(), "-n", str(n_workers + 1), "-host", "localhost", *program]
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=TIME_LIMIT
    )
    if done.returncode:
        raise RuntimeError(
            f"{n_workers} workers under MPI have failed:\n{done.stderr}{done.stdout}"
        )
    return json.loads(Path(folder, f"{n_workers}.json").read_text("utf-8"))


def _process(folder: str) -> None:
    """What each process of `mpiexec` runs."""
    from mpi4py import MPI

    world = MPI.COMM_WORLD
    q = world.size - 1
    job = json.loads(Path(folder, "job.json").read_text("utf-8"))
    found = {}
    for loss, s in job["sizes"].items():
        X, y = _load(folder, loss)
        model = _untrained(job, loss, n_workers=q, backend="mpi")
        model.fit(X[:, : 2 * s], y)
        # q times as many rows as blocks, as q processes together do one block in that time.
        traces = parallel.from_each(world, world.size * [traced(model, X, y, pieces=q)])
        found[loss] = np.concatenate(traces).tolist()
    if q == 1:
        found["messages"] = _cost_of_messages(world, len(y))
    if world.rank == 0:
        write_whole(Path(folder, f"{q}.json"), json.dumps(found))


def _cost_of_messages(world: Any, n: int) -> dict[str, float]:
    """Service and delay of messages of n numbers, without a queue; the same in both processes."""
    here, change, margins = [], np.zeros(n), np.zeros(n)
    shared = parallel.Central(margins.copy(), np.zeros(2, np.int64), 1)
    if world.rank == 0:
        parallel.serve(world, shared)
        for _ in range(_MESSAGES):
            start = time.perf_counter()
            # One message received and one sent: here to itself, that nobody is waited for.
            answer = world.Irecv(change, source=0)
            world.Send(margins, dest=0)
            answer.Wait()
            shared.add(0, change)
            shared.read(0)
            here.append(time.perf_counter() - start)
    else:
        for _ in range(_MESSAGES):
            start = time.perf_counter()
            parallel.push_and_read(world, change, margins)
            here.append(time.perf_counter() - start)
        parallel.stop_pushing(world)
    service, both = parallel.from_each(world, 2 * [float(np.median(here))])
    return {"service": service, "delay": max(both - service, 0.0) / 2}


if __name__ == "__main__":
    _process(sys.argv[1])
