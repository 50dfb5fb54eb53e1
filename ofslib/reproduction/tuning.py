"""How often a run reads its rows, and which parameters of a grid it takes."""

import inspect
import math
import warnings
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.exceptions import ConvergenceWarning

from ofslib import datasets
from ofslib.reproduction.methods import build, find_class, guarded, points, to_read

# Points of a tuning grid of which one is looked at first.
_NEIGHBOURS = 7


def passes(setting: dict[str, Any], row: Mapping[str, Any]) -> dict[str, int]:
    """The passes over the training rows in a run, in one of its tuning, and as the entry asks.

    `row` is the data set's in the registry. A scale without limits needs no data for it.
    """
    caps = {"run": setting["run_values"], "tuning": setting["tune_values"], "entry": None}
    shape = row["n_train"], row["n_features"]
    if all(shape) and not any(caps.values()):
        data = SimpleNamespace(X_train=SimpleNamespace(shape=shape))
    else:
        name = setting["data"]["dataset"]
        data = datasets.load(name, split="train", registry_path="config/datasets.csv")
    return {f"passes, {which}": number_of_passes(setting, data, cap) for which, cap in caps.items()}


def number_of_passes(setting: dict[str, Any], data, cap: float | None) -> int:
    """The entry's number of passes, or "2d/n" of them, within `cap` values read in all."""
    (n, d), passes = data.X_train.shape, setting["passes"]
    passes = math.ceil(2 * d / n) if passes == "2d/n" else passes
    if cap is None:
        return passes
    values = data.X_train.nnz if hasattr(data.X_train, "nnz") else np.count_nonzero(data.X_train)
    return max(1, min(passes, int(cap / values)))


def tuned(setting: dict[str, Any], data, spec: dict[str, Any], seed: int) -> tuple[dict, Any]:
    """The method with the parameters that scored best on the training rows, and these.

    Why there are none, if no point has a score.
    """
    tune, known = setting["tune"], inspect.signature(find_class(spec["class"])).parameters
    grid = {name: values for name, values in tune.get("grid", {}).items() if name in known}
    if not grid:
        return spec, {}
    passes = number_of_passes(setting, data, setting["tune_values"])
    grid = list(points(grid))
    grid = grid[:: math.ceil(len(grid) / setting.get("tune_points", len(grid)))]
    best = -np.inf, 0  # the score, and minus the place in the grid: of equals the first is chosen
    given = {"k": setting["data"]["k"]} if "k" in setting["data"] else {}

    def scored(model, X, y):
        X, y = to_read(model, X, y)
        if tune.get("score") == "final":
            return model.fit(X, y).score(X, y)
        if is_classifier(model) and hasattr(model, "_learn_rows"):
            _stop_below(model, best[0], passes * len(y))
        if not hasattr(model.fit(X, y), "online_score_"):
            raise TypeError(
                f"tune: score: online is the largest online_score_, which {spec['class']} does not "
                "have after fit; score: final is the largest score(X, y)"
            )
        return model.online_score_

    # One of a few neighbours first, so that a good score is known soon.
    for i in sorted(range(len(grid)), key=lambda i: i % _NEIGHBOURS):
        own = {**spec, **grid[i], **spec.get("at", tune.get("at", {}))}
        models = {None: build(own, n_passes=passes, random_state=seed, **given)}
        # A point that is worse than nothing is not chosen: no need to say so of each.
        with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
            score = guarded(models, None, scored, data.X_train, data.y_train)
        if score is not None and np.isfinite(score):
            best = max(best, (score, -i))
    if best[0] == -np.inf:
        return spec, f"tuning: all {len(grid)} points diverged, or have no finite score"
    chosen = grid[-best[1]]
    return {**spec, **chosen}, chosen


def _stop_below(model, score: float, rows: int) -> None:
    """Let `fit` stop, between two passes, where no further mistake would leave it below a score.

    `rows` are those that all passes show. What it could reach at best falls with each mistake.
    """
    learn = model._learn_rows

    def learn_rows(*known):
        if seen := model.n_samples_seen_:
            # Less what sums may be off by: an equal score is not below.
            if (model.online_score_ * seen + rows - seen) / rows < score - 1e-9:
                raise FloatingPointError("worse than another point")
        learn(*known)

    model._learn_rows = learn_rows
