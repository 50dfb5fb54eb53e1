"""The central machine of asynchronous methods: Yang et al. 2016 (`os`), Algorithm 2.

Its workers are threads of this process, or processes under MPI, one of which is then the central
machine. mpi4py is imported when it is needed, not before.
"""

import sys
import threading
import time
import traceback
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from mpi4py.MPI import Comm, Request, Status

_CHANGE, _LAST, _REFUSED = range(3)  # tags of messages

# MPI itself waits by asking all the time. With more processes than cores those who wait would then
# keep the processor from those who work: after so many questions they sleep in between.
_QUESTIONS, _SLEEP = 20, 1e-6


class Central:
    """The margins u_C, to which the workers add, and how late they have read them.

    Both arrays are changed in place. `late`, (2,) int64, counts the changes that were added, and
    sums up how many changes by others their workers had not read. With an `objective` of the
    margins, a change that is late is refused if it would raise it.
    """

    def __init__(
        self,
        margins: np.ndarray,
        late: np.ndarray,
        n_workers: int,
        objective: Callable[[np.ndarray], float] | None = None,
    ):
        self._margins, self._late, self._objective = margins, late, objective
        self._lock = threading.Lock()
        self._value: float | None = None  # objective of the margins, where it is known
        self._added = 0
        self._added_when_read = [0] * n_workers

    def read(self, t: int) -> np.ndarray:
        """u_C as it is now, for worker t; shape (n,)."""
        with self._lock:
            self._added_when_read[t] = self._added
            return self._margins.copy()

    def add(self, t: int, change: np.ndarray) -> bool:
        """Add the change, shape (n,), that worker t has computed from what it read last.

        Returns whether it was added.
        """
        # Of two threads that add at once one would undo what the other did.
        with self._lock:
            return self.accept(change, self._added - self._added_when_read[t])

    def accept(self, change: np.ndarray, missed: int) -> bool:
        """`add` for one that is alone; `missed` changes are not known to whom it is from."""
        changed, value = self._margins + change, None
        # One that nobody was quicker than has been checked by its worker.
        if self._objective and missed:
            if self._value is None:
                self._value = self._objective(self._margins)
            value = self._objective(changed)
            if not value <= self._value:
                return False
        self._margins[:], self._value = changed, value
        self._late += 1, missed
        self._added += 1
        return True


def communicator(n_workers: int) -> "Comm":
    """All processes of the job: rank 0 is the central machine, rank t + 1 worker t.

    Raises ModuleNotFoundError without mpi4py, ValueError if there are not n_workers + 1 processes.
    """
    try:
        from mpi4py import MPI
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "backend='mpi' needs mpi4py and an MPI: pip install 'ofslib[mpi]'"
        ) from error
    world = MPI.COMM_WORLD
    if world.size != n_workers + 1:
        raise ValueError(
            f"backend='mpi' with n_workers={n_workers} needs {n_workers + 1} processes, one of "
            f"which is the central machine, and there are {world.size}: begin the command with "
            f"mpiexec -n {n_workers + 1}"
        )
    return world


def agreed(comm: "Comm", shape: tuple, y: np.ndarray, *own: np.ndarray) -> list[np.ndarray]:
    """What process 0 has of its `own`; in all a ValueError if X or y differs."""
    _wait(comm.Ibarrier())
    if len(set(comm.allgather((shape, zlib.crc32(y.tobytes()))))) > 1:
        raise ValueError("X or y differs between the MPI processes: give each of them all the data")
    return comm.bcast(own)


def serve(comm: "Comm", central: Central) -> None:
    """Algorithm 2, for worker processes: add what they push, until the last push of each."""
    from mpi4py import MPI

    working, change, status = comm.size - 1, central.read(0), MPI.Status()
    while working:
        _wait(comm.Irecv(change), status)
        if status.tag == _LAST:
            working -= 1
        else:
            tag = _CHANGE if central.add(status.source - 1, change) else _REFUSED
            comm.Send(central.read(status.source - 1), dest=status.source, tag=tag)


def push_and_read(comm: "Comm", change: np.ndarray, margins: np.ndarray) -> bool:
    """Lines 13 and 4 of Algorithm 3, for a worker process: `margins` becomes u_C after the push.

    Returns whether the change was added.
    """
    from mpi4py import MPI

    answer, status = comm.Irecv(margins, source=0), MPI.Status()
    comm.Send(change, dest=0, tag=_CHANGE)
    _wait(answer, status)
    return status.tag != _REFUSED


def stop_pushing(comm: "Comm") -> None:
    """Tell the central machine that nothing follows from this worker process."""
    comm.Send(np.empty(0), dest=0, tag=_LAST)


def from_each(comm: "Comm", parts: list) -> list:
    """parts[r] as process r has it, in all processes."""
    _wait(comm.Ibarrier())
    return [comm.bcast(part, root=r) for r, part in enumerate(parts)]


@contextmanager
def all_or_none(comm: "Comm") -> Iterator[None]:
    """End the whole job if this process fails within: the others would wait for it for ever."""
    try:
        yield
    except BaseException:
        who = f"worker {comm.rank - 1}" if comm.rank else "the central machine"
        said = f"The MPI job ends, since {who} (process {comm.rank}) has failed.\n"
        # In one piece: the job may end before a second one is passed on.
        sys.stderr.write(traceback.format_exc() + said)
        sys.stderr.flush()
        comm.Abort(1)
        raise


def _wait(request: "Request", status: "Status | None" = None) -> None:
    asked = 0
    while not request.Test(status):
        asked += 1
        if asked > _QUESTIONS:
            time.sleep(_SLEEP)
