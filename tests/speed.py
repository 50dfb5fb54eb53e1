"""Measure the speeds that docs/performance.md states: python tests/speed.py

One core (the kernels use one thread); the median of several runs; learning only, in nanoseconds
per number of a dense row or per nonzero of a sparse one. Time is that of the processor; other
programs slow it down all the same, by the memory that they use.
"""

import statistics
import sys
import time

import numpy as np
import scipy.sparse as sp

from ofslib import (
    AdaFobosClassifier,
    ARDAClassifier,
    BAMDClassifier,
    BARDAClassifier,
    FOFSClassifier,
    OPGRegressor,
    RDARegressor,
    SFSAClassifier,
    SFSARegressor,
    SGDTClassifier,
    SGDTRegressor,
    SOFSClassifier,
)
from ofslib.simulate import Equicorrelated

REPEATS = 5
P, K = 10_000, 100


def dense(n: int = 20_000) -> None:
    """A stream in blocks of 1000 rows, each learned right after it was generated."""
    own = {"k": K, "learning_rate": 1e-4, "maturity": n, "fit_intercept": False}
    cases = {
        "SFSA": lambda: SFSARegressor(**own),
        "SFSA-AG": lambda: SFSARegressor(**own, optimizer="nesterov"),
        "SFSA, importance as printed": lambda: SFSARegressor(**own, importance="scaled_root"),
        "SGDT": lambda: SGDTRegressor(**own),
    }
    times = {name: [] for name in cases}
    for repeat in range(REPEATS + 1):  # the first one compiles
        models, seconds = {name: make() for name, make in cases.items()}, dict.fromkeys(cases, 0.0)
        for X, y in Equicorrelated(P, K).stream(n, np.random.default_rng(repeat)):
            for name, model in models.items():
                start = time.process_time()
                model.partial_fit(X, y)
                seconds[name] += time.process_time() - start
        for name in cases:
            times[name].append(seconds[name])
    report("dense rows, n = 20,000, p = 10,000", times, n * P)


def sparse(n: int = 100_000, nonzeros: int = 200) -> None:
    """Rows with 200 standard normal entries at random places; the sign of 100 of the features."""
    rng = np.random.default_rng(0)
    indices = rng.integers(0, P, n * nonzeros)
    values, starts = rng.standard_normal(n * nonzeros), np.arange(n + 1) * nonzeros
    X = sp.csr_matrix((values, indices, starts), shape=(n, P))
    X.sum_duplicates()
    beta = np.zeros(P)
    beta[9 : 10 * K : 10] = rng.uniform(0, 1, K)
    y = np.where(X @ beta > 0, 1, -1)
    times = {}
    budgeted = (SFSAClassifier, SGDTClassifier, FOFSClassifier, SOFSClassifier)
    budgeted += (BARDAClassifier, BAMDClassifier)
    for cls in (*budgeted, ARDAClassifier, AdaFobosClassifier):
        budget = {"k": K} if cls in budgeted else {"l1": 1e-3}
        model = cls(**budget, fit_intercept=False, shuffle=False)
        times[cls.__name__] = [timed(model.fit, X, y) for _ in range(REPEATS + 1)]
    report("sparse rows, n = 100,000, p = 10,000, 200 nonzeros", times, X.nnz)


def path(n: int = 10_000) -> None:
    """200 penalties in one pass over dense rows, against 200 passes with one penalty."""
    X, y = Equicorrelated(P, K).sample(n, np.random.default_rng(0))
    own = {"batch_size": 25, "fit_intercept": False, "shuffle": False}
    for cls, pace in ((OPGRegressor, {"learning_rate": 1e-4}), (RDARegressor, {"gamma": 5e3})):
        one, all_of_them = cls(l1=1.0, **pace, **own), cls(k=K, **pace, **own)
        times = {}
        for name, model in {"one penalty": one, "200 penalties": all_of_them}.items():
            model.fit(X[:100], y[:100])  # compiles
            times[name] = statistics.median(timed(model.fit, X, y) for _ in range(3))
        gain = 200 * times["one penalty"] / times["200 penalties"]
        sys.stdout.write(f"\n{cls.__name__}: seconds {times}; 200 passes / one pass: {gain:.1f}\n")


def timed(function, *args) -> float:
    start = time.process_time()
    function(*args)
    return time.process_time() - start


def report(title: str, times: dict[str, list[float]], numbers: int) -> None:
    sys.stdout.write(f"\n{title}: ns per number, and seconds in all\n")
    for name, seconds in times.items():
        median = statistics.median(seconds[1:])
        sys.stdout.write(f"  {name:30s} {1e9 * median / numbers:6.2f} {median:8.3f}\n")


if __name__ == "__main__":
    dense()
    sparse()
    path()
