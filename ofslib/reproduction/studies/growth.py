"""How the time and the memory of each method grow with the sizes of the data."""

import copy
import itertools
import pickle
import time
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp

from ofslib import RunningAverages
from ofslib.reproduction.methods import build, extract, find_class
from ofslib.reproduction.studies import leaves_k, tidy
from ofslib.streams.column_stream import ColumnStream, ScoredSelector

# The size that is varied -> its name in the sizes, and whether the rows are sparse.
VARIED = {
    "n": ("n", False),
    "p": ("p", False),
    "k": ("k", False),
    "nonzeros": ("nonzeros", True),
    "p, sparse rows": ("p", True),
}
_REPEATS, _ENOUGH = 5, 0.2  # times that are taken, unless they last so many seconds together


def growth(setting, seeds, data, sizes):
    """Processor time and memory of each method while one size of the data is multiplied.

    Features are standard normal, in sparse rows where they are not zero; labels are the signs of
    the sum of k features with noise of the same size. The time of a method on running averages is
    that of the extraction, that of `RunningAverages` is of the update. Memory is that of the
    model's arrays, and of the averages that it was extracted from.

    All methods of a kind get the same rows. Results have columns method, varied, size, and metric:
    time_s, the least of a few, or bytes.

    Parameters
    ----------
    sizes : dict
        Of rows, averages and columns, each n, p and k, of rows nonzeros, too; the swept `factor`
        multiplies them.
    """
    for kind, (varied, (size, sparse)) in itertools.product(sizes, VARIED.items()):
        asked = {
            label: spec
            for label, spec in setting["methods"].items()
            if _kind(find_class(spec["class"])) == kind and (size != "k" or leaves_k(spec))
        }
        if not asked or (sparse and kind != "rows"):
            continue
        (draw,) = seeds.spawn(1)
        for factor in setting["sweep"]["factor"]:
            own = sizes[kind] | {size: max(1, round(factor * sizes[kind][size]))}
            X, y = _drawn(own, sparse, np.random.default_rng(draw))
            averages = RunningAverages(own["p"]).update(X, y) if kind == "averages" else None
            for label, spec in asked.items():
                learn = _learner(spec, own["k"], X, y, averages)
                yield from tidy(_measured(learn), method=label, varied=varied, size=own[size])


def _kind(cls: type) -> str:
    if issubclass(cls, ColumnStream | ScoredSelector):
        return "columns"
    averages = cls is RunningAverages or hasattr(cls, "fit_averages")
    return "averages" if averages else "rows"


def _drawn(sizes: dict[str, int], sparse: bool, rng: np.random.Generator) -> tuple:
    n, p, k = (sizes[name] for name in "npk")
    if sparse:
        z = sizes["nonzeros"]
        # One in each of as many equal parts of the features: in order, and none twice
        indices = np.arange(z, dtype=np.int32) * (p // z)
        indices = indices + rng.integers(0, p // z, (n, z), np.int32)
        ends = np.arange(0, n * z + 1, z, np.int32)
        X = sp.csr_array((rng.standard_normal(n * z), indices.ravel(), ends), shape=(n, p))
    else:
        X = rng.standard_normal((n, p))
    margins = X[:, :k].sum(axis=1)
    return X, np.where(margins + margins.std() * rng.standard_normal(n) > 0, 1.0, -1.0)


def _learner(spec: dict[str, Any], k: int, X, y, averages) -> Callable[[], Callable[[], Any]]:
    """What gives, each time anew, what learns and returns the model."""
    if find_class(spec["class"]) is RunningAverages:
        return lambda: partial(RunningAverages(X.shape[1]).update, X, y)

    def begin():
        model = build(spec, k=k, random_state=0)
        if averages is None:
            return lambda: model.fit(X, y)
        own = copy.deepcopy(averages)
        return lambda: (extract(model, own), model)[1]

    return begin


def _measured(begin: Callable[[], Callable[[], Any]]) -> dict[str, float]:
    """Processor time of one thread, the least of a few, and bytes of the model's arrays."""
    seconds = []
    with warnings.catch_warnings(action="ignore"):  # what is learned does not matter here
        begin()()  # what is compiled or loaded at the first use is not to count
        while len(seconds) < _REPEATS and sum(seconds) < _ENOUGH:
            learn = begin()
            start = time.process_time()
            model = learn()
            seconds.append(time.process_time() - start)
    arrays: list[pickle.PickleBuffer] = []
    pickle.dumps(model, protocol=5, buffer_callback=arrays.append)
    return {"time_s": min(seconds), "bytes": sum(array.raw().nbytes for array in arrays)}
