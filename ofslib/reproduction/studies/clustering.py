"""Clustering on selected features: the experiments of Wang, Shen and Li 2018 (`ofs`), Section 4.

Each replicate shows the features in another random order. All features are divided by one number,
so that the mean square of the matrix's singular values is 1 (more than min(n, p) are not counted)
and a ridge means the same in all data sets; k-means does not notice.
"""

import json
import time
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
from sklearn.cluster import KMeans
from threadpoolctl import threadpool_limits

from ofslib.metrics import clustering_accuracy
from ofslib.reproduction.methods import build
from ofslib.reproduction.studies import leaves_k, tidy
from ofslib.streams.column_stream import ScoredSelector

# Rows of a data set are left out where it is too large for the scale; so many a class stay.
_ROWS_PER_CLASS = 5

# By data set and method: scores of its features on all rows, where nothing is drawn. In another
# order of the features they are the same, and those of MNIST's neighbours take minutes.
_SCORES: WeakKeyDictionary[Any, dict[str, np.ndarray]] = WeakKeyDictionary()


class Task(NamedTuple):
    X: np.ndarray  # (n, p)
    labels: np.ndarray  # (n,)
    order: np.ndarray  # (p,) places of the features in the data set
    seed: int


def accuracy(setting, seeds, data, k):
    """Accuracy of k-means on k features by each method, and on all features (Figure 1).

    Where the method weighs its features, k-means gets them weighed, as Algorithm 1 returns them,
    and in rows of another method, "<its label>, unweighted", as they are. k-means starts once, by
    k-means++, as Matlab's does.

    Also the size of the whole data set (Table 2), and how many rows the scale has left of it.
    """
    task = _task(setting, seeds, data, len(k))
    points, features = _all_rows(data)[0].shape
    yield from tidy({"points": points, "features": features, "rows": len(task.X)})
    yield from tidy({"accuracy": _clustered(task, task.X)}, method="k-means")
    known = _SCORES.setdefault(data, {}) if setting["run_values"] is None else {}
    for label, spec in setting["methods"].items():
        name = json.dumps(spec, sort_keys=True)
        # They are the same for all k.
        scores = known[name][task.order] if name in known else None
        for wanted in k if leaves_k(spec) else [None]:
            if (wanted or 0) > task.X.shape[1]:
                continue
            model = _fitted(spec, task, wanted, scores)
            scores = getattr(model, "scores_", None)
            if scores is not None and "random_state" not in model.get_params():
                known[name] = scores[np.argsort(task.order)]
            chosen = model.transform(task.X)
            size = wanted or chosen.shape[1]
            yield from tidy({"selected": chosen.shape[1]}, method=label, k=size)
            if not chosen.shape[1]:
                continue
            if hasattr(model, "weights_"):
                plain = {"accuracy": _clustered(task, chosen)}
                yield from tidy(plain, method=f"{label}, unweighted", k=size)
                chosen = chosen * model.weights_
            yield from tidy({"accuracy": _clustered(task, chosen)}, method=label, k=size)


def seconds(setting, seeds, data, k):
    """CPU time of one thread that each method takes to select k features (Table 3)."""
    task = _task(setting, seeds, data, 1)
    few = task._replace(X=task.X[:50, :50], labels=task.labels[:50])
    for label, spec in setting["methods"].items():
        # What is loaded at the first use is not to count.
        _fitted(spec, few, 5)
        start = time.process_time()
        _fitted(spec, task, k)
        yield from tidy({"time_s": time.process_time() - start}, method=label)


def _all_rows(data) -> tuple[np.ndarray, np.ndarray]:
    parts = [(data.X_train, data.y_train), (data.X_test, data.y_test)]
    X, y = zip(*(part for part in parts if part[0] is not None), strict=True)
    return np.concatenate(X), np.concatenate(y)


def _task(setting, seeds, data, runs):
    """The rows that the scale allows, so many `runs` on them being one, and the features' order."""
    drawn, order, methods = seeds.spawn(3)
    X, labels = _all_rows(data)
    n, p = X.shape
    if setting["run_values"] is not None:
        least = _ROWS_PER_CLASS * len(np.unique(labels))
        most = max(least, int(setting["run_values"] / (runs * p)))
        kept = np.sort(np.random.default_rng(drawn).permutation(n)[:most])
        X, labels = X[kept], labels[kept]
    places = np.random.default_rng(order).permutation(p)
    X = X[:, places]
    X /= np.sqrt(np.sum(X**2) / min(X.shape))
    return Task(X, labels, places, int(methods.generate_state(1)[0]))


def _fitted(spec: dict[str, Any], task: Task, k: int | None, scores: np.ndarray | None = None):
    """The model of a method; `scores` are those of its features where they are known."""
    model = build(spec, k=k, random_state=task.seed)
    if isinstance(model, ScoredSelector) and scores is not None:
        model._scores = lambda X: scores
    return model.fit(task.X, task.labels)


def _clustered(task: Task, X: np.ndarray) -> float:
    """Accuracy in percent of as many clusters as there are classes."""
    n_clusters = len(np.unique(task.labels))
    # Elkan's bounds leave out distances that decide nothing: half of the time with many features.
    model = KMeans(n_clusters, n_init=1, random_state=task.seed, algorithm="elkan")
    with threadpool_limits(1):
        clusters = model.fit_predict(X)
    return clustering_accuracy(task.labels, clusters)
