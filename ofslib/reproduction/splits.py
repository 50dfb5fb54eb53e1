"""Rows of a data set as an entry wants them: split by a rule, scaled, with products of pairs."""

import os
from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp

from ofslib import datasets
from ofslib.datasets.registry import find_row
from ofslib.reproduction.methods import stacked

BLOCK_ROWS = 1000


def read(
    data: dict[str, Any],
    folder: str | os.PathLike = "resources",
    registry_path: str | os.PathLike | None = "config/datasets.csv",
) -> Any:
    """What `experiment.run` takes of the data set that the `data` of a setting name.

    Without a rule `split` the `datasets.Dataset`, as its paper splits it; with one a `Split`.
    """
    if "split" not in data:
        return datasets.load(data["dataset"], folder, registry_path=registry_path)
    return Split(data, folder, registry_path)


class Split:
    """Training and test rows of a data set in blocks, by the rule of an entry.

    Of the rows that the registry lists for training, in the order of the file, the first `train`
    are learned and the `test` after them, or all, are predicted: read block by block, in constant
    memory. With `order: random` the rows are held in memory and permuted by the replicate's seed
    first. The larger of two labels becomes +1, the other -1.

    Parameters
    ----------
    data : dict
        As `configuration.RealData`.
    folder, registry_path
        As in `datasets.fetch`.
    """

    design = None
    averages: dict[str, Any] = {"class": "ofslib.averages:RunningAverages"}  # for all methods

    def __init__(self, data, folder="resources", registry_path=None):
        self.dataset = data["dataset"]
        rule, row = data["split"], find_row(self.dataset, registry_path)
        given = {"folder": folder, "registry_path": registry_path, "cache": False}
        self.stream = datasets.open_stream(self.dataset, BLOCK_ROWS, **given)
        self.train_rows, self.test_rows = rule["train"], rule.get("test")
        self.products, self.standardized = (
            data.get(n, False) for n in ("products", "standardized")
        )
        self.classes = self._labels() if row["task"] == "classification" else None
        self._held = None
        if rule.get("order", "file") == "random":
            X, y = stacked([block[:2] for block in self.stream])
            self._held = (X.toarray() if 2 * X.nnz > np.prod(X.shape) else X), y
        p = self.stream.n_features
        self.sizes = {"n": self.train_rows, "p": p + self.products * p * (p + 1) // 2}

    def train(self, seeds) -> Iterator[tuple]:
        """The rows to learn from, for the seeds of a replicate."""
        yield from self._scaled(seeds, 0, self.train_rows)

    def tests(self, seeds) -> Iterator[tuple]:
        """The rows to predict."""
        end = None if self.test_rows is None else self.train_rows + self.test_rows
        yield from self._scaled(seeds, self.train_rows, end)

    def _scaled(self, seeds, start, stop):
        if not self.standardized:
            yield from self._wide(seeds, start, stop)
            return
        (mean, scale), (y_mean, y_scale) = self._moments(seeds)
        for X, y in self._wide(seeds, start, stop):
            yield (_dense(X) - mean) / scale, (y - y_mean) / y_scale

    def _moments(self, seeds):
        """Mean and standard deviation of columns and target over the training rows."""
        shift, n, sums = None, 0, 0.0
        for X, y in self._wide(seeds, 0, self.train_rows):
            Z = np.column_stack([_dense(X), y if self.classes is None else np.zeros(len(y))])
            shift = Z.mean(axis=0) if shift is None else shift  # against cancellation
            Z -= shift
            n, sums = n + len(y), sums + np.array([Z.sum(axis=0), (Z * Z).sum(axis=0)])
        first = sums[0] / n
        scale = np.sqrt(sums[1] / n - first**2)
        mean, scale = shift + first, np.where(scale > 0, scale, 1.0)
        return (mean[:-1], scale[:-1]), (mean[-1], scale[-1])

    def _wide(self, seeds, start, stop):
        """The rows from one on up to another, with products if they are asked for."""
        at = start
        for X, y in self._permuted(seeds, start, stop) if self._held else self._read(start, stop):
            at += len(y)
            if self.products:
                dense = _dense(X)
                i, j = np.triu_indices(dense.shape[1])
                X = np.hstack([dense, dense[:, i] * dense[:, j]])
            yield X, y if self.classes is None else self._signs(y)
        if at == start or at < (stop or 0):
            rows = f"{start} to {stop or 'the end'}"
            raise ValueError(f"split: expected rows {rows} of {self.dataset}, got {at} rows")

    def _permuted(self, seeds, start, stop):
        X, y = self._held
        order = np.random.default_rng(seeds[0]).permutation(len(y))[start:stop]
        for a in range(0, len(order), BLOCK_ROWS):
            rows = order[a : a + BLOCK_ROWS]
            yield X[rows], y[rows]

    def _read(self, start, stop):
        for X, y, *_ in self.stream.skip(start):
            rows = len(y) if stop is None else min(len(y), stop - start)
            if rows <= 0:
                return
            start += rows
            yield X[:rows], y[:rows]

    def _labels(self):
        """The two labels, the larger one last."""
        found = set()
        for _, y, *_ in self.stream:
            found |= set(np.unique(y).tolist())
            if len(found) > 1:
                break
        return sorted(found)

    def _signs(self, y):
        if len(self.classes) != 2 or not np.isin(y, self.classes).all():
            found = sorted({*self.classes, *np.unique(y).tolist()})
            raise ValueError(f"split: {self.dataset} must have two labels, got {found}")
        return np.where(y == self.classes[1], 1.0, -1.0)


def _dense(X):
    return X.toarray() if sp.issparse(X) else X
