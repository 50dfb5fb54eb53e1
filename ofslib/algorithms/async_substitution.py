"""Asynchronous online substitution: Yang et al. 2016 (`os`), Algorithms 2 and 3.

Each of q workers keeps its share of the k columns and learns from the margins u_C of all, which it
reads late; the check of Algorithm 1 is left out, as in the paper.
"""

from collections import deque
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from numbers import Real
from typing import NamedTuple

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from ofslib import parallel
from ofslib.kernels.losses import Loss
from ofslib.kernels.substitution import Hyper, lipschitz_constant, receive
from ofslib.kernels.working_set import IN_USE, PEAK, Columns, WorkingSet, new_working_set
from ofslib.parallel import Central
from ofslib.streams.column_stream import ColumnScan
from ofslib.streams.parameters import AT_LEAST_ONE, WHOLE, estimator, number, one_of, param


class State(NamedTuple):
    workers: tuple[WorkingSet, ...]  # S(t), with one more slot each, for the arrival
    margins: np.ndarray  # (n,) u_C, and the constant
    lipschitz: np.ndarray  # (q, 1) L_F as far as each worker knows it
    late: np.ndarray  # (2,) int64, as in Central
    recent: deque  # the last tau pairs (worker, change of u_C)
    rng: np.random.Generator  # draws the worker of each arrival


def selected(state: State) -> np.ndarray:
    """The features that the workers have selected."""
    return np.concatenate([worker.index[: worker.size[IN_USE]] for worker in state.workers])


def arrivals(state: State, columns: Columns, first: int = 0, every: int = 1) -> Iterator[int]:
    """The columns of a block that vary and that no worker keeps when their turn comes."""
    # A column is in one place of a block: only those kept before can be kept when it comes to them.
    before = set(selected(state).tolist())
    for i in range(first, len(columns.index), every):
        j = columns.index[i]
        if columns.scale[i] > 0 and not (j in before and j in selected(state)):
            yield i


@estimator
class AsyncOnlineSubstitution(ColumnScan):
    """Asynchronous online substitution (Yang et al. 2016, Algorithms 2 and 3).

    With backend "simulate" one thread plays the workers: each arrival goes to a random one, which
    does not know yet what the others did in the last `tau` arrivals. The result depends on
    `random_state` only. With "threads" each worker is a thread, with "mpi" a process. Then the
    operating system decides how late it reads, and no two runs are equal. No change of u_C is lost.

    A program with "mpi" is started by `mpiexec -n`, one process more than there are workers: the
    first is the central machine. All of them call `fit` with the same data, of which each scales
    and keeps only its share, and have the same model afterwards.

    Cost: O(n k / q) per column; memory O(n (k + tau + q)).
    """

    k: int = param("Number s of features kept, by all workers together.", AT_LEAST_ONE, default=10)
    n_workers: int = param("Number q of workers; at most k.", AT_LEAST_ONE, default=2)
    backend: str = param(
        "What the workers are.", one_of("simulate", "threads", "mpi"), default="simulate"
    )
    tau: int | None = param(
        "Staleness of what the workers of the simulation know of each other. None: n_workers, as "
        "in the paper. 0: only the capacity is split.",
        WHOLE,
        None,
        default=None,
    )
    step: float = param(
        "Step size eta times L_F, as in OnlineSubstitution; Theorem 2 needs less than 1/2.",
        number(Real, 0, 2, closed="neither"),
        default=0.98,
    )
    m: float = param("Divisor of the steps of kept features.", number(Real, 1), default=1.0)

    frozen = (*ColumnScan.frozen, "k", "n_workers", "backend", "tau")

    def _new_state(self, n):
        k, q = int(self.k), int(self.n_workers)
        if q > k:
            raise ValueError(f"n_workers={q} must be at most k={k}")
        seed = check_random_state(self.random_state).randint(2**31)
        return State(
            # The first workers keep one more each if there is a remainder.
            workers=tuple(new_working_set(k // q + (t < k % q) + 1, n) for t in range(q)),
            margins=np.full(n, self._offset),
            lipschitz=np.full((q, 1), lipschitz_constant(int(Loss[self.loss]), k, n)),
            late=np.zeros(2, np.int64),
            recent=deque(maxlen=q if self.tau is None else int(self.tau)),
            rng=np.random.default_rng(seed),
        )

    def _learn_block(self, state, block):
        hp = Hyper(int(Loss[self.loss]), float(self.step), float(self.m), c=0.0)

        def change(t: int, known: np.ndarray, slopes: np.ndarray, i: int) -> np.ndarray:
            worker, lipschitz = state.workers[t], state.lipschitz[t]
            return receive(worker, lipschitz, known, self._y, slopes, block, i, hp)

        runs = {"simulate": self._simulate, "threads": self._run_threads, "mpi": self._run_process}
        runs[self.backend](state, block, change)
        return state

    def _receive(self, X, order, index):
        if self.backend == "mpi":
            self._receive_share(X, order, index)
        else:
            super()._receive(X, order, index)
        if not np.isfinite(self._state.margins).all():
            raise FloatingPointError(
                f"{type(self).__name__} has diverged; a smaller step than {self.step} may help."
            )

    def _simulate(self, state, columns, change) -> None:
        slopes = np.empty(len(state.margins))
        for i in arrivals(state, columns):
            t, known = int(state.rng.integers(self.n_workers)), state.margins.copy()
            late = [new for other, new in state.recent if other != t]
            for new in late:
                known -= new
            new = change(t, known, slopes, i)
            state.margins[:] += new
            state.late[:] += 1, len(late)
            state.recent.append((t, new))

    def _run_threads(self, state, columns, change) -> None:
        q = int(self.n_workers)
        shared = Central(state.margins, state.late, q)

        def work(t: int) -> None:
            slopes = np.empty(len(state.margins))
            # Its share and no more: a worker that starts late would find no column left.
            for i in arrivals(state, columns, t, q):
                shared.add(t, change(t, shared.read(t), slopes, i))

        with ThreadPoolExecutor(q) as pool:
            # To list the results is to raise what a thread raised.
            list(pool.map(work, range(q)))

    def _receive_share(self, X, order, index) -> None:
        """As one of several processes."""
        state, q = self._state, int(self.n_workers)
        comm = parallel.communicator(q)
        order, index = parallel.agreed(comm, X.shape, self._y, order, index)
        with parallel.all_or_none(comm):
            # A share is fixed here, so that no two workers keep the same column.
            share = np.flatnonzero(~np.isin(index, selected(state)))[max(comm.rank - 1, 0) :: q]
            if comm.rank == 0:
                parallel.serve(comm, Central(state.margins, state.late, q))
                share = share[:0]
            super()._receive(X, order[share], index[share])
            if comm.rank > 0:
                parallel.stop_pushing(comm)
            workers = zip(state.workers, state.lipschitz, strict=True)
            parts = [(state.margins, state.late), *workers]
            (margins, late), *workers = parallel.from_each(comm, parts)
        working_sets, lipschitz = zip(*workers, strict=True)
        self._state = state._replace(
            workers=working_sets, margins=margins, lipschitz=np.array(lipschitz), late=late
        )

    def _run_process(self, state, columns, change) -> None:
        comm = parallel.communicator(int(self.n_workers))
        slopes = np.empty(len(state.margins))
        for i in arrivals(state, columns):
            new = change(comm.rank - 1, state.margins, slopes, i)
            parallel.push_and_read(comm, new, state.margins)

    @property
    def staleness_(self) -> float:
        """float
        Changes by other workers that a worker had not read when it added its own, on average."""
        check_is_fitted(self)
        changes, missed = self._state.late
        return missed / max(changes, 1)

    def _model_columns(self, state):
        used = [[part[: w.size[IN_USE]] for part in w[:-1]] for w in state.workers]
        size = sum(w.size for w in state.workers)
        return WorkingSet(*(np.concatenate(parts) for parts in zip(*used, strict=True)), size)

    def _peak(self, state):
        return sum(int(w.size[PEAK]) for w in state.workers)
