"""How methods take turns on the clock, and what is written down of each turn."""

import contextlib
import functools
import gc
import importlib
import os
import pickle
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

# Idle threads of BLAS wait for work at full speed for some time, which is on the processor's clock.
_IDLE = 0.3  # s


class Usage(NamedTuple):
    """What a program took."""

    cpu_s: float
    wall_s: float
    mb: float


@dataclass(frozen=True)
class Method:
    """One line of a table.

    Parameters
    ----------
    name : str
    make : callable
        Called before each turn, without being timed; what it returns is timed. If that returns a
        `Usage`, this is the time.
    values : float
        How many nonzeros, values, columns, ... it goes through.
    score : callable, optional
        What the timed call returned in the first turn -> `score`, `found`, `mb`, what there is.
    needs : str
        The module of a peer, without which there is a line that says so.
    threads : int
        Of BLAS and OpenMP, while it is timed.
    turns : int, optional
        At most so many, else as many as the case has. Of a single one the first counts.
    """

    name: str
    make: Callable[[], Callable[[], Any]]
    values: float
    score: Callable[[Any], dict[str, float]] | None = None
    needs: str = ""
    threads: int = 1
    turns: int | None = None


def turns(methods: list[Method], repeats: int, limit=contextlib.nullcontext) -> Iterator[dict]:
    """Let the methods take turns, in another order each time.

    A first turn is not counted: code is compiled and memory found in it. `limit` is given the
    threads, as `threadpoolctl.threadpool_limits`.

    Yields
    ------
    dict
        method, turn, values, cpu_s, wall_s; mb, score and found, where they are known; or note.
    """
    here = []
    for method in methods:
        try:
            if method.needs:  # which is then no part of the only turn of a method
                importlib.import_module(method.needs)
        except ImportError as error:
            absent = isinstance(error, ModuleNotFoundError) and error.name == method.needs
            note = "is not installed" if absent else f"cannot be imported: {error}"
            yield {"method": method.name, "note": f"{method.needs} {note}"}
        else:
            here.append(method)
    rng = np.random.default_rng(0)
    gc.freeze()  # what is there by now is not looked through before each turn
    try:
        for turn in range(repeats + 1):
            for place in rng.permutation(len(here)):
                method = here[place]
                most = repeats if method.turns is None else method.turns
                if turn > most or (turn == 0 and method.turns == 1):
                    continue
                row = _timed(method, limit, scored=turn == 1)
                if turn:
                    yield {"method": method.name, "turn": turn, "values": method.values} | row
    finally:
        gc.unfreeze()


def _timed(method: Method, limit, scored: bool) -> dict[str, float]:
    with warnings.catch_warnings(action="ignore"), limit(method.threads):
        run = method.make()
        gc.collect()
        wall, cpu = time.perf_counter(), time.process_time()
        result = run()
        cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
        if method.threads > 1:
            time.sleep(_IDLE)
        if isinstance(result, Usage):
            return result._asdict()
        own = method.score(result) if method.score and scored else {}
    return {"cpu_s": cpu, "wall_s": wall} | own


def fitting(model: Any, X, y) -> Callable[[], Callable[[], Any]]:
    """What fits a model with these parameters, a new one in each turn."""

    def make():
        fresh = clone(model)

        def run():
            fresh.fit(X, y)
            # What is selected is known when it is asked for.
            return fresh if fresh.coef_ is not None else None

        return run

    return make


def calling(function: Callable, *arguments: Any) -> Callable[[], Callable[[], Any]]:
    """What calls a function with these, and prepares nothing."""
    return lambda: functools.partial(function, *arguments)


def largest(model: Any, k: int) -> tuple[np.ndarray, np.ndarray]:
    """The features of the k largest coefficients of a model, but for zeros, and all coefficients.

    The model may be the coefficients themselves.
    """
    coef = np.asarray(getattr(model, "coef_", model)).ravel()
    chosen = np.argsort(-np.abs(coef), kind="stable")[:k]
    return chosen[coef[chosen] != 0.0], coef


def found(chosen: np.ndarray, true: np.ndarray) -> float:
    """How many of the true features are among the chosen, in percent."""
    return 100.0 * np.isin(true, chosen).mean()


def megabytes(model: Any) -> float:
    """Memory of the arrays of a model."""
    arrays: list[pickle.PickleBuffer] = []
    pickle.dumps(model, protocol=5, buffer_callback=arrays.append)
    return sum(array.raw().nbytes for array in arrays) / 1e6


@functools.cache
def _scratch() -> tempfile.TemporaryDirectory:
    return tempfile.TemporaryDirectory()


def scratch() -> Path:
    """A folder for what a case writes."""
    return Path(_scratch().name)


def remove_scratch() -> None:
    """Remove that folder."""
    _scratch().cleanup()
    _scratch.cache_clear()


# What of the memory of its parent a process says to have had is not its own: it says so itself.
_MEMORY = """
try:
    with open("/proc/self/status") as file:
        print(*(int(line.split()[1]) / 1e3 for line in file if line.startswith("VmHWM")))
except OSError:
    pass
"""


def program(code: str, *arguments: str, **environment: str) -> Usage:
    """Run a program in a Python of its own. Where the system does not tell its memory, it is nan.

    Raises
    ------
    RuntimeError
        If it fails.
    """
    start = time.perf_counter()
    own = os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"} | environment
    command = [sys.executable, "-c", code + _MEMORY, *arguments]
    with subprocess.Popen(command, env=own, stdout=subprocess.PIPE, text=True) as process:
        said = process.stdout.read().split()
        _, process.returncode, usage = os.wait4(process.pid, 0)
    if process.returncode:
        raise RuntimeError(f"{code!r}: status {process.returncode}")
    seconds = usage.ru_utime + usage.ru_stime
    return Usage(seconds, time.perf_counter() - start, float(said[-1]) if said else np.nan)
