"""SFSA on many workers: what it loses, what it sends, and how much faster it is. Of our own."""

import importlib.util
import time
from functools import partial
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from ofslib import SFSAClassifier, SFSARegressor, fit_dask, fit_parts
from ofslib.beyond.parts import Common, InTurn
from ofslib.metrics import detection_rate
from ofslib.reproduction import machine
from ofslib.reproduction.studies import tidy
from ofslib.simulate import Equicorrelated

_MODELS = {"classification": SFSAClassifier, "regression": SFSARegressor}
# Parts with hardly a row, from which the costs of a round and of a task follow.
_PARTS, _FEW = (2, 8), 20


class Costs(NamedTuple):
    """What the model of the time is made of; seconds, bytes."""

    row: float  # to learn a row, in all passes
    round: float  # a round of one part with hardly a row
    task: float  # each part more
    rounds: int
    sent: float  # by a worker, and as much to it


class Counted(InTurn):
    """Counts rounds, and the bytes that workers send."""

    def __init__(self):
        self.rounds, self.sent = 0, 0

    def call(self, function, *arguments):
        """What the function returns."""
        found = super().call(function, *arguments)
        if isinstance(found, Common):
            pooled = isinstance(arguments[-1][0], Common)  # else its rows
            self.rounds += pooled
            self.sent += 0 if pooled else size(found)
        return found


def size(common: Common) -> int:
    """Bytes of its arrays."""
    models = [[model.index, *model.means, *model.sums] for model in common.models]
    return common.online.nbytes + sum(array.nbytes for arrays in models for array in arrays)


def predicted(n: int, n_workers: int, costs: Costs, latency: float, bandwidth: float) -> float:
    """Seconds that `n_workers` need for n rows, each with a core of its own.

    All messages of a round pass through the link of the worker that averages them.

    Parameters
    ----------
    n, n_workers : int
    costs : Costs
    latency : float
        Seconds that each message waits on the network, beyond those of `costs`.
    bandwidth : float
        Bytes a second of a link.
    """
    if n_workers == 1:
        return n * costs.row
    round_s = costs.round + (n_workers - 1) * costs.task + 2 * latency
    messages = 2 * n_workers * costs.sent / bandwidth
    return n * costs.row / n_workers + costs.rounds * round_s + messages


def on_workers(setting, seeds, data, *, p, k, beta, rows, workers, processes):
    """Accuracy by numbers of workers, which take turns; or times of processes, and the model.

    Parameters
    ----------
    p, k, beta
        Of the design, equicorrelated; `rows` of it are drawn.
    rows, workers : list of int
        Sizes of the data and numbers of parts that they are cut into.
    processes : dict, optional
        Instead of the accuracy, times: n rows in `n_passes` passes on each number of processes of
        dask in `measured` for which the machine has cores, and on two in any case; and for each
        number of rows in `modelled` those predicted for each number of `workers`, on this machine
        and with `latency` and `bandwidth` of a network.
    """
    if processes is None:
        yield from _accuracy(p, k, beta, rows, workers, seeds)
    elif importlib.util.find_spec("distributed") is None:
        yield {"metric": "speed-up", "method": "processes", "value": None, "note": "no dask"}
    else:
        (draw,) = seeds.generate_state(1)
        yield from _times(Equicorrelated(p, k, beta=beta), int(draw), workers, **processes)


def _accuracy(p, k, beta, rows, workers, seeds):
    for (task, cls), draw in zip(_MODELS.items(), seeds.spawn(len(_MODELS)), strict=True):
        design = Equicorrelated(p, k, beta=beta, task=task)
        X, y = design.sample(max(rows), np.random.default_rng(draw))
        for n in rows:
            for q in workers:
                counted = Counted()
                model = fit_parts(cls(k=k), _cut(X[:n], y[:n], q), scheduler=counted)
                found = {"DR": detection_rate(model.support_, design.support)}
                if task == "classification":
                    found["AUC"] = design.auc(model.coef_)
                else:
                    found["RMSE"] = design.rmse(model.coef_, model.intercept_)
                if q > 1:
                    found |= {"rounds": counted.rounds, "sent": counted.sent / q}
                yield from tidy(found, task=task, n=n, n_workers=q)


def _cut(X, y, n_parts: int) -> list[tuple[np.ndarray, np.ndarray]]:
    ends = [len(y) * i // n_parts for i in range(n_parts + 1)]
    return [(X[i:j], y[i:j]) for i, j in pairwise(ends)]


def _times(design, seed, workers, *, n, n_passes, repeats, measured, modelled, latency, bandwidth):
    measured = sorted({2, *(q for q in measured if q <= machine.cores())})
    shares = {q: [(n // q, seed + i) for i in range(q)] for q in measured}
    counted, expected = Counted(), SFSARegressor(k=design.k, n_passes=n_passes)
    fit_parts(expected, [_drawn(design, *one) for one in shares[2]], scheduler=counted)
    few = Counted()
    fit_parts(SFSARegressor(k=design.k), [_drawn(design, _FEW, seed)] * 2, scheduler=few)
    seconds, found = _on_processes(design, seed, shares, n_passes, repeats)
    small = [np.median(seconds["few", q]) for q in _PARTS]
    task = max(0.0, small[1] - small[0]) / (_PARTS[1] - _PARTS[0]) / few.rounds
    costs = Costs(
        row=np.median(seconds["alone", 1]) / (n * n_passes),
        round=small[0] / few.rounds - task,
        task=task,
        rounds=counted.rounds,
        sent=counted.sent / 2,
    )
    same = float(np.array_equal(found.coef_, expected.coef_))
    yield from tidy({"cores": machine.cores(), "same bits": same, **costs._asdict()})
    for q in measured:
        ratio = np.median(seconds["alone", 1]) / np.median(seconds["rows", q])
        yield from tidy({"speed-up": ratio}, method="processes", n=n * n_passes, n_workers=q)
    networks = {"model": (0.0, np.inf), "model, network": (latency, bandwidth)}
    for method, network in networks.items():
        for rows in (n * n_passes, *modelled):
            one, *several = (predicted(rows, q, costs, *network) for q in (1, *workers))
            for q, all_of_them in zip(workers, several, strict=True):
                yield from tidy({"speed-up": one / all_of_them}, method=method, n=rows, n_workers=q)


def _on_processes(design, seed, shares, n_passes, repeats):
    """Seconds of one process, of several, and of parts with hardly a row; the model of two."""
    import dask
    from distributed import Client, LocalCluster

    def lying(drawn: list[tuple[int, int]], n_workers: int) -> list[list]:
        """Blocks of rows and of targets, which the workers draw in turn, each for itself."""
        draw, blocks = dask.delayed(_drawn, nout=2), []
        for i, (rows, its_seed) in enumerate(drawn):
            # The scheduler may put all on one, as it does not know yet how long these take.
            with dask.annotate(workers=[workers[i % n_workers]]):
                blocks += dask.persist(tuple(draw(design, rows, its_seed)))
        return [list(block) for block in zip(*blocks, strict=True)]

    X, y = map(np.concatenate, zip(*(_drawn(design, *one) for one in shares[2]), strict=True))
    model, seconds, found = partial(SFSARegressor, k=design.k), {}, {}
    own = {"threads_per_worker": 1, "host": "127.0.0.1", "dashboard_address": None}
    many = max(shares)
    with LocalCluster(n_workers=many, processes=True, **own) as cluster, Client(cluster) as client:
        client.wait_for_workers(many)
        workers = [*client.nthreads()]
        cases = {("rows", q): (lying(drawn, q), q, n_passes) for q, drawn in shares.items()}
        for q in _PARTS:
            hardly = [(_FEW, seed + i) for i in range(q)]
            cases["few", q] = lying(hardly, _PARTS[0]), q, 1
        for turn in range(1 + repeats):
            alone = model(n_passes=n_passes, shuffle=False)
            took = {("alone", 1): _timed(alone.fit, X, y)}
            for case, (blocks, q, passes) in cases.items():
                found[case] = model(n_passes=passes)
                took[case] = _timed(fit_dask, found[case], *blocks, q)
            if turn:  # the first compiles
                for case, each in took.items():
                    seconds.setdefault(case, []).append(each)
    return seconds, found["rows", 2]


def _timed(function, *arguments) -> float:
    start = time.perf_counter()
    function(*arguments)
    return time.perf_counter() - start


def _drawn(design: Equicorrelated, n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    return design.sample(n, np.random.default_rng(seed))
