"""Many rows: memory and speed stay what they were after the first tenth.

OFSLIB_ROWS says how many. Three methods learn the same rows, each of them new: 100 features, 5 of
them not zero in a row, one in each fifth of the features; 5 of the 100 decide the label. With
`pytest -s` the rows that each method learned in a second of processor time are shown, and the
memory of the process.
"""

import os
import statistics
import time

import numpy as np
import psutil
import pytest
import scipy.sparse as sp
from threadpoolctl import threadpool_limits

from ofslib import BARDAClassifier, OLSthClassifier, RunningAverages, SFSAClassifier

P, NONZEROS, BLOCK = 100, 5, 50_000
TRUE = np.arange(0, P, P // NONZEROS) + 7
COEF = np.zeros(P)
COEF[TRUE] = [1.0, -1.0, 2.0, -2.0, 1.5]


def block(rng):
    """Some rows and their labels."""
    indices = rng.integers(0, P // NONZEROS, (BLOCK, NONZEROS)) + np.arange(0, P, P // NONZEROS)
    values = rng.standard_normal((BLOCK, NONZEROS))
    pointer = np.arange(0, BLOCK * NONZEROS + 1, NONZEROS)
    X = sp.csr_array((values.ravel(), indices.ravel(), pointer), shape=(BLOCK, P))
    return X, np.where(X @ COEF + 0.5 * rng.standard_normal(BLOCK) > 0, 1.0, -1.0)


def learn(model, X, y):
    """Show a block; the seconds of processor time that it took."""
    start = time.process_time()
    if isinstance(model, RunningAverages):
        model.update(X, y)
    else:
        model.partial_fit(X, y, classes=[-1.0, 1.0])
    return time.process_time() - start


@pytest.mark.slow
def test_many_rows_leave_memory_and_speed_as_they_are():
    tenth = int(float(os.environ.get("OFSLIB_ROWS", 5e6)) / 10 / BLOCK)
    maturity = 5 * tenth * BLOCK
    models = {
        "SFSA": SFSAClassifier(k=5, maturity=maturity, learning_rate=0.01),
        "B-ARDA": BARDAClassifier(k=5),
        "averages": RunningAverages(P),
    }
    speeds, memory, rng = {name: [] for name in models}, [], np.random.default_rng(0)
    with threadpool_limits(1):
        for model in models.values():  # compiled before the clock runs
            learn(model, *block(rng))
        for _ in range(10):
            seconds = dict.fromkeys(models, 0.0)
            for _ in range(tenth):
                X, y = block(rng)
                for name, model in models.items():
                    seconds[name] += learn(model, X, y)
            memory.append(psutil.Process().memory_info().rss / 1e6)
            for name in models:
                speeds[name].append(tenth * BLOCK / seconds[name])
            print({name: f"{found[-1]:.3g}" for name, found in speeds.items()}, memory[-1])
    for rates in speeds.values():
        # But for one tenth, in which the check of a doubtful model may be compiled
        assert sorted(rates)[1] > statistics.median(rates) / 2
    assert memory[-1] - memory[0] < 16
    models["averages"] = OLSthClassifier(k=5).fit_averages(models["averages"], copy=False)
    for name, model in models.items():
        assert model.support_.tolist() == TRUE.tolist(), name
