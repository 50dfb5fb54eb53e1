"""Asynchronous online substitution: Yang et al. 2016 (`os`), Algorithms 2 and 3.

Each of q workers keeps its share of the k columns and learns from the margins u_C of all, which it
reads late; the check of Algorithm 1 is left out, as in the paper.
"""

import threading
from collections import deque
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from numbers import Real
from typing import NamedTuple

import numpy as np
from sklearn.utils import check_random_state

from ofslib.base import AT_LEAST_ONE, WHOLE, estimator, number, one_of, param
from ofslib.columns import ColumnScan
from ofslib.kept import Columns, Kept, new_kept
from ofslib.losses import Loss
from ofslib.substitution import Hyper, edge, receive


class State(NamedTuple):
    workers: tuple[Kept, ...]  # S(t), with one more slot each, for the arrival
    margins: np.ndarray  # (n,) u_C, and the constant
    lipschitz: np.ndarray  # (q, 1) L_F as far as each worker knows it
    recent: deque  # the last tau pairs (worker, change of u_C)
    rng: np.random.Generator  # draws the worker of each arrival


def arrivals(state: State, columns: Columns, first: int = 0, every: int = 1) -> Iterator[int]:
    """The columns of a block that vary and that no worker keeps when their turn comes."""
    for i in range(first, len(columns.index), every):
        j = columns.index[i]
        kept = any(j in worker.index[: worker.size[0]] for worker in state.workers)
        if columns.scale[i] > 0 and not kept:
            yield i


@estimator
class AsyncOnlineSubstitution(ColumnScan):
    """Asynchronous online substitution (Yang et al. 2016, Algorithms 2 and 3).

    With backend "simulate" one thread plays the workers: each arrival goes to a random one, which
    does not know yet what the others did in the last `tau` arrivals. The result depends on
    `random_state` only. With backend "threads" each worker is a thread, and the operating system
    decides how late it reads: no two runs are equal. No change of u_C is lost in either.

    Cost: O(n k / q) per column; memory O(n (k + tau + q)).
    """

    k: int = param(10, "Number s of features kept, by all workers together.", AT_LEAST_ONE)
    n_workers: int = param(2, "Number q of workers; at most k.", AT_LEAST_ONE)
    backend: str = param("simulate", "What the workers are.", one_of("simulate", "threads"))
    tau: int | None = param(
        None,
        "Staleness of what the workers of the simulation know of each other. None: n_workers, as "
        "in the paper. 0: only the capacity is split.",
        WHOLE,
        None,
    )
    step: float = param(
        0.98,
        "Step size eta times L_F, as in OnlineSubstitution; Theorem 2 needs less than 1/2.",
        number(Real, 0, 2, closed="neither"),
    )
    m: float = param(1.0, "Kept features make steps smaller by this factor.", number(Real, 1))

    frozen = (*ColumnScan.frozen, "k", "n_workers", "backend", "tau")

    def _new(self, n, offset):
        k, q = int(self.k), int(self.n_workers)
        if q > k:
            raise ValueError(f"n_workers={q} must be at most k={k}")
        seed = check_random_state(self.random_state).randint(2**31)
        return State(
            workers=tuple(new_kept(self._capacity(t) + 1, n) for t in range(q)),
            margins=np.full(n, offset),
            lipschitz=np.full((q, 1), edge(int(Loss[self.loss]), k, n)),
            recent=deque(maxlen=q if self.tau is None else int(self.tau)),
            rng=np.random.default_rng(seed),
        )

    def _capacity(self, t: int) -> int:
        """s / q; the first workers keep one more each if there is a remainder."""
        k, q = int(self.k), int(self.n_workers)
        return k // q + (t < k % q)

    def _show(self, state, columns, y):
        hp = Hyper(int(Loss[self.loss]), float(self.step), float(self.m), 0.0, False)

        def change(t: int, known: np.ndarray, slopes: np.ndarray, i: int) -> np.ndarray:
            worker, capacity, lipschitz = state.workers[t], self._capacity(t), state.lipschitz[t]
            return receive(worker, capacity, lipschitz, known, y, slopes, columns, i, hp)

        run = self._simulate if self.backend == "simulate" else self._run_threads
        run(state, columns, change)
        if not np.isfinite(state.margins).all():
            raise FloatingPointError(
                f"{type(self).__name__} has diverged; a smaller step than {self.step} may help."
            )
        return state

    def _simulate(self, state, columns, change) -> None:
        slopes = np.empty(len(state.margins))
        for i in arrivals(state, columns):
            t, known = int(state.rng.integers(self.n_workers)), state.margins.copy()
            for other, late in state.recent:
                if other != t:
                    known -= late
            new = change(t, known, slopes, i)
            state.margins[:] += new
            state.recent.append((t, new))

    def _run_threads(self, state, columns, change) -> None:
        lock, q = threading.Lock(), int(self.n_workers)

        def work(t: int) -> None:
            slopes = np.empty(len(state.margins))
            # Its share and no more: a worker that starts late would find no column left.
            for i in arrivals(state, columns, t, q):
                with lock:
                    known = state.margins.copy()
                new = change(t, known, slopes, i)
                # Two workers at once would lose changes.
                with lock:
                    state.margins[:] += new

        with ThreadPoolExecutor(q) as pool:
            # To list the results is to raise what a thread raised.
            list(pool.map(work, range(q)))

    def _chosen(self, state, y):
        used = [[part[: w.size[0]] for part in w[:-1]] for w in state.workers]
        size = sum(w.size for w in state.workers)
        return Kept(*(np.concatenate(parts) for parts in zip(*used, strict=True)), size)

    def _peak(self, state):
        return int(self._chosen(state, self._y).size[1])
