"""Asynchronous online substitution: Yang et al. 2016 (`os`), Algorithms 2 and 3.

Each of q workers keeps its share of the k columns and learns from the margins u_C of all, which it
reads late. Unless c = 0 the objective never rises (step <= 1): the central machine's check is ours,
weaker than what Theorem 2 needs, so that no rate is proved; the paper's experiments have none.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial, reduce
from numbers import Real
from typing import NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from ofslib import parallel
from ofslib.kernels.losses import Loss, total
from ofslib.kernels.substitution import Hyper, lipschitz_constant, propose, take
from ofslib.kernels.working_set import IN_USE, PEAK, Columns, WorkingSet, new_working_set
from ofslib.parallel import Central
from ofslib.streams.column_stream import ColumnScan
from ofslib.streams.parameters import AT_LEAST_ONE, WHOLE, estimator, number, one_of, param
from ofslib.streams.selector import warn


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

    sources = "yang2016online"
    example = """
        >>> {name}(k=3, random_state=0).fit(X, y).support_
        array([ 9, 19, 29])
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
        "Step size eta times L_F, as in OnlineSubstitution. The rate of Theorem 2 is "
        "proved for less than 1/2, with a stricter check than `c` makes.",
        number(Real, 0, 2, closed="neither"),
        default=0.98,
    )
    m: float = param("Divisor of the steps of kept features.", number(Real, 1), default=1.0)
    c: float = param(
        "As in OnlineSubstitution, for what the worker knows; and the central machine refuses late "
        "changes that would raise the objective: with `step` <= 1 it never rises. Who is refused "
        "reads and tries once more. 0: no check, as in the paper's experiments; steps may diverge.",
        number(Real, 0, 1, closed="both"),
        default=0.1,
    )

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
        hp = Hyper(int(Loss[self.loss]), float(self.step), float(self.m), float(self.c))

        def work(t: int, i: int, tries: Iterable[tuple[np.ndarray, Callable]]):
            """Algorithm 3, lines 5-13, for worker t: the change, or None if no try was accepted."""
            worker, lipschitz, slopes = state.workers[t], state.lipschitz[t], np.empty(len(self._y))
            for known, push in tries:
                proposal = propose(worker, lipschitz, known, self._y, slopes, block, i, hp)
                if push(proposal.change):
                    take(worker, proposal)
                    return proposal.change
            return None

        runs = {"simulate": self._simulate, "threads": self._run_threads, "mpi": self._run_process}
        runs[self.backend](state, block, work)
        return state

    def _objective(self, margins: np.ndarray) -> float:
        return total(int(Loss[self.loss]), margins, self._y)

    def _central(self, state: State) -> Central:
        check = self._objective if self.c else None
        return Central(state.margins, state.late, int(self.n_workers), check)

    def _receive(self, X, order, index):
        if self.backend == "mpi":
            self._receive_share(X, order, index)
        else:
            super()._receive(X, order, index)
        if not self.converged_:
            own = f"c={self.c:g}, step={self.step:g}"
            why = f"{type(self).__name__} has diverged ({own}): with c > 0 and step <= 1 it cannot."
            if not np.isfinite(self._objective(self._state.margins)):
                raise FloatingPointError(why)
            warn(why, ConvergenceWarning)

    def _learn(self, X, y):
        super()._learn(X, y)
        if (kept := len(selected(self._state))) < min(self.k, X.shape[1]):
            warn(
                f"k={self.k}, but {kept} features were kept: too few columns came to some "
                "workers; more scans, or fewer workers, may keep more."
            )

    def _simulate(self, state, columns, work) -> None:
        central = self._central(state)

        def read(late):
            for missed in (late, []):  # who reads once more has missed nothing
                known = reduce(np.subtract, missed, state.margins)
                yield known, partial(central.accept, missed=len(missed))

        for i in arrivals(state, columns):
            t = int(state.rng.integers(self.n_workers))
            late = [new for other, new in state.recent if new is not None and other != t]
            state.recent.append((t, work(t, i, read(late))))

    def _run_threads(self, state, columns, work) -> None:
        q, central = int(self.n_workers), self._central(state)

        def run(t: int) -> None:
            # Its share and no more: a worker that starts late would find no column left.
            for i in arrivals(state, columns, t, q):
                work(t, i, ((central.read(t), partial(central.add, t)) for _ in range(2)))

        with ThreadPoolExecutor(q) as pool:
            # To list the results is to raise what a thread raised.
            list(pool.map(run, range(q)))

    def _receive_share(self, X, order, index) -> None:
        """As one of several processes."""
        state, q = self._state, int(self.n_workers)
        comm = parallel.communicator(q)
        order, index = parallel.agreed(comm, X.shape, self._y, order, index)
        with parallel.all_or_none(comm):
            # A share is fixed here, so that no two workers keep the same column.
            share = np.flatnonzero(~np.isin(index, selected(state)))[max(comm.rank - 1, 0) :: q]
            if comm.rank == 0:
                parallel.serve(comm, self._central(state))
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

    def _run_process(self, state, columns, work) -> None:
        comm = parallel.communicator(int(self.n_workers))
        push = partial(parallel.push_and_read, comm, margins=state.margins)
        for i in arrivals(state, columns):
            work(comm.rank - 1, i, [(state.margins, push)] * 2)

    @property
    def staleness_(self) -> float:
        """float
        Changes by other workers that a worker had not read when it added its own, on average."""
        check_is_fitted(self)
        changes, missed = self._state.late
        return missed / max(changes, 1)

    @property
    def converged_(self) -> bool:
        """bool
        Whether the objective is at most that of a model without features; always with c > 0 and
        step <= 1."""
        check_is_fitted(self)
        empty = np.full(len(self._y), self._offset)
        return self._objective(self._state.margins) <= self._objective(empty)

    def _model_columns(self, state):
        used = [[part[: w.size[IN_USE]] for part in w[:-1]] for w in state.workers]
        size = sum(w.size for w in state.workers)
        return WorkingSet(*(np.concatenate(parts) for parts in zip(*used, strict=True)), size)

    def _peak(self, state):
        return sum(int(w.size[PEAK]) for w in state.workers)
