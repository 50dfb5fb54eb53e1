"""Fifty million rows: memory and speed stay what they were after the first five.

    python tests/soak.py [--rows N]

Three methods learn the same rows, each of them new: 100 features, 5 of them not zero in a row, one
in each fifth of the features; 5 of the 100 decide the label. After each tenth it prints the rows
that each method learned in a second of processor time, and the memory of the process. It ends with
an error if a tenth is less than half as fast as the median of all, if memory grew by more than
16 MB after the first tenth, or if a method has not found the five features.
"""

import argparse
import statistics
import time

import numpy as np
import psutil
import scipy.sparse as sp
from threadpoolctl import threadpool_limits

from ofslib import BARDAClassifier, OLSthClassifier, RunningAverages, SFSAClassifier

P, NONZEROS, BLOCK = 100, 5, 50_000
STRATUM = P // NONZEROS
TRUE = np.arange(0, P, STRATUM) + 7


def blocks(n, seed=0):
    """n rows as blocks (X, y), the same for each seed."""
    rng = np.random.default_rng(seed)
    coef = np.zeros(P)
    coef[TRUE] = [1.0, -1.0, 2.0, -2.0, 1.5]
    for start in range(0, n, BLOCK):
        rows = min(BLOCK, n - start)
        indices = rng.integers(0, STRATUM, (rows, NONZEROS), np.int32)
        indices += np.arange(0, P, STRATUM, dtype=np.int32)
        values = rng.standard_normal((rows, NONZEROS))
        pointer = np.arange(0, rows * NONZEROS + 1, NONZEROS, np.int32)
        X = sp.csr_array((values.ravel(), indices.ravel(), pointer), shape=(rows, P))
        yield X, np.where(X @ coef + 0.5 * rng.standard_normal(rows) > 0, 1.0, -1.0)


def learn(model, X, y):
    """Show a block; the seconds of processor time that it took."""
    start = time.process_time()
    if isinstance(model, RunningAverages):
        model.update(X, y)
    else:
        model.partial_fit(X, y, classes=[-1.0, 1.0])
    return time.process_time() - start


def soak(n):
    """Rows per second, {method: one of each tenth}, memory in MB after each tenth, the models."""
    models = {
        "SFSA": SFSAClassifier(k=5, maturity=n // 2, learning_rate=0.01),
        "B-ARDA": BARDAClassifier(k=5),
        "averages": RunningAverages(P),
    }
    for model in models.values():  # compiled before the clock runs
        learn(model, *next(blocks(1000, seed=1)))
    speeds, memory = {name: [] for name in models}, []
    for tenth in range(10):
        seconds, rows = dict.fromkeys(models, 0.0), 0
        for X, y in blocks(n // 10, seed=2 + tenth):
            rows += len(y)
            for name, model in models.items():
                seconds[name] += learn(model, X, y)
        memory.append(psutil.Process().memory_info().rss / 1e6)
        for name in models:
            speeds[name].append(rows / seconds[name])
        shown = "  ".join(f"{name} {speeds[name][-1]:.3g} rows/s" for name in models)
        print(f"{rows * (tenth + 1):>11,} rows  {shown}  {memory[-1]:.0f} MB", flush=True)
    return speeds, memory, models


def faults(speeds, memory, models):
    """What is not as it was promised."""
    found = []
    for name, rates in speeds.items():
        if min(rates) < statistics.median(rates) / 2:
            found.append(f"{name}: a tenth had {min(rates):.3g} rows/s")
    if memory[-1] - memory[0] > 16:
        found.append(f"memory grew from {memory[0]:.0f} to {memory[-1]:.0f} MB")
    averages = models.pop("averages")
    models["averages"] = OLSthClassifier(k=5).fit_averages(averages, copy=False)
    for name, model in models.items():
        if not np.array_equal(model.support_, TRUE):
            found.append(f"{name}: selected {model.support_.tolist()}, not {TRUE.tolist()}")
    return found


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, default=50_000_000)
    with threadpool_limits(1):
        wrong = faults(*soak(parser.parse_args().rows))
    raise SystemExit("; ".join(wrong) or None)
