"""Models watched while they learn: their regret, and how they follow what changes."""

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np

from ofslib.averages import RunningAverages
from ofslib.metrics import check_finite, detection_rate, selected_features
from ofslib.reproduction.methods import extract, guarded, show
from ofslib.simulate import Changing, Drifting, Equicorrelated
from ofslib.wishart import LowRank, sample_averages


def checkpoints(first: int, last: int, per_decade: int) -> list[int]:
    """Whole numbers from first to last, evenly spaced in the logarithm."""
    count = round(np.log10(last / first) * per_decade) + 1
    return np.unique(np.geomspace(first, last, count).round().astype(int)).tolist()


def drift(
    design: Drifting, models: dict[Any, Any], n: int, rng, every: int, last: int
) -> Iterator[dict]:
    """Show n rows of a drifting design to all models.

    After each `every`-th time step yields dicts with key, step, t, metric and value: "RMSE at t" is
    what is expected on the rows of the next step; "coef 1", ..., "coef k" are the learned
    coefficients of the true features, and those of key None the true ones. In the end RMSE: the
    root of the mean square of what was expected after each of the `last` time steps.
    """
    late = {key: [] for key in models}
    for t, (X, y) in enumerate(design.stream(n, rng), 1):
        shown = t % every == 0
        if shown:
            for j, value in enumerate(design.coef_at(t)[design.support], 1):
                yield {"key": None, "step": t, "t": t, "metric": f"coef {j}", "value": value}
        for key in models:
            guarded(models, key, show, X, y)
            if not shown and t <= n / design.step_rows - last:
                continue
            coef, intercept = _coefficients(models, key, design.p)
            rmse = design.rmse(coef, intercept, t + 1)
            late[key].append(rmse)
            if shown:
                at = {"key": key, "step": t, "t": t}
                yield {**at, "metric": "RMSE at t", "value": rmse}
                for j, value in enumerate(coef[design.support], 1):
                    yield {**at, "metric": f"coef {j}", "value": value}
    for key, values in late.items():
        value = np.sqrt(np.mean(np.square(values[-last:])))
        yield {"key": key, "step": n, "metric": "RMSE", "value": value}


def recovery(
    design: Changing, models: dict[Any, Any], n: int, rng, every: int, level: float
) -> Iterator[dict]:
    """Show n rows of a changing design to all models.

    After each `every`-th time step yields dicts with key, t, metric and value: "DR at t", and what
    is expected on rows of this step, "RMSE at t" or "AUC at t". For each step t whose true features
    are other ones than a step before "rows to recover", from its first row until DR is next seen to
    be `level` or more; all rows until the next such step if it is not, and "recovered" is 0.
    """
    # Rows are ordered by twice the step: what is known before its rows are learned comes first.
    # Of each model: the first step of the present true features, and whether it has found them.
    since, found, true = 1, set(models), design.at(1).support
    last = -(-n // design.step_rows)
    for t, (X, y) in enumerate(design.stream(n, rng), 1):
        law = design.at(t)
        if not np.array_equal(law.support, true):
            for key in models.keys() - found:
                yield from _recovered(key, 2 * t, since, t - since, design, False)
            since, found, true = t, set(), law.support
        for key in models:
            guarded(models, key, show, X, y)
            if t % every:
                continue
            selected = guarded(models, key, selected_features)
            rate = np.nan if selected is None else detection_rate(selected, true)
            coef, intercept = _coefficients(models, key, design.p)
            at = {"key": key, "step": 2 * t + 1, "t": t}
            yield {**at, "metric": "DR at t", "value": rate}
            if design.task == "regression":
                expected = {"metric": "RMSE at t", "value": law.rmse(coef, intercept)}
            else:
                expected = {"metric": "AUC at t", "value": law.auc(coef)}
            yield {**at, **expected}
            if rate >= level and key not in found:
                found.add(key)
                yield from _recovered(key, 2 * t + 1, since, t + 1 - since, design, True)
    for key in models.keys() - found:
        yield from _recovered(key, 2 * last + 2, since, last + 1 - since, design, False)


def _recovered(key, step: int, since: int, steps: int, design, found: bool) -> Iterator[dict]:
    row = {"key": key, "step": step, "t": since}
    yield {**row, "metric": "rows to recover", "value": steps * design.step_rows}
    yield {**row, "metric": "recovered", "value": int(found)}


def _regret(losses: dict[Any, float], best: RunningAverages) -> Iterator[dict]:
    """Regret (3.16) per row of the models of a stream, against least squares on the true features.

    The best k* features of (3.16) are taken to be the true ones: to search all sets is infeasible.
    `losses` are squared errors, summed over all rows; `best` are the averages of the true features.
    """
    least = np.linalg.lstsq(best.S_xx, best.S_xy, rcond=None)[0]
    least_loss = best.S_yy - least @ best.S_xy
    for key, loss in losses.items():
        row = {"key": key, "step": best.n, "rows": best.n, "metric": "regret"}
        yield row | {"value": loss / best.n - least_loss}


def regret_from_averages(
    design: Equicorrelated, models: dict[Any, Any], ends: list[int], rng
) -> Iterator[dict]:
    """Regret of models that learn from running averages, which are drawn block by block.

    Between two of `ends` (numbers of rows) a model stays as it is; before the first it predicts 0.
    The loss of a fixed model over a block follows from the block's averages: no rows are needed.
    """
    losses, best = dict.fromkeys(models, 0.0), RunningAverages(design.k)
    averages = RunningAverages(design.p)
    law = LowRank(*design.low_rank()), design.coef, design.noise, design.task
    for start, end in pairwise([0, *ends]):
        block = sample_averages(end - start, *law, rng)
        S_xx, S_xy, S_yy = block.S_xx, block.S_xy, block.S_yy
        for key in models:
            w, b = _coefficients(models, key, design.p) if start else (np.zeros(design.p), 0.0)
            used = np.flatnonzero(w)
            w = w[used]
            square = S_yy - 2 * (w @ S_xy[used]) + w @ S_xx[np.ix_(used, used)] @ w
            shifted = b * b - 2 * b * (block.mean_y - w @ block.mean_x[used])
            losses[key] += (end - start) * (square + shifted)
        best.merge(_on_true_features(design, block))
        averages.merge(block)
        for key in models:
            guarded(models, key, extract, averages)
        yield from _regret(losses, best)


def regret_from_rows(
    design: Equicorrelated, models: dict[Any, Any], ends: list[int], rng
) -> Iterator[dict]:
    """Regret of models that learn row by row: of each row under the model before it."""
    losses, best, shown = dict.fromkeys(models, 0.0), RunningAverages(design.k), 0
    for X, y in design.stream(ends[-1], rng):
        cuts = [0, *(end - shown for end in ends if 0 < end - shown < len(y)), len(y)]
        for start, stop in pairwise(cuts):
            part = X[start:stop], y[start:stop]
            for key in models:
                loss = guarded(models, key, _squared_errors, *part)
                losses[key] += np.nan if loss is None else loss
            best.merge(RunningAverages(design.k).update(part[0][:, design.support], part[1]))
            if shown + stop in ends:
                yield from _regret(losses, best)
        shown += len(y)


def _coefficients(models: dict[Any, Any], key: Any, p: int) -> tuple[np.ndarray, float]:
    """Coefficients and intercept; not numbers if the model diverged."""

    def read(model):
        check_finite(model)
        return model.coef_, model.intercept_

    return guarded(models, key, read) or (np.full(p, np.nan), np.nan)


def _squared_errors(model, X, y) -> float:
    """The sum of those of the rows, each before it is learned."""
    seen = getattr(model, "n_samples_seen_", 0)
    before = 2.0 * model.online_loss_ * seen if seen else 0.0
    model.partial_fit(X, y)
    return 2.0 * model.online_loss_ * model.n_samples_seen_ - before


def _on_true_features(design: Equicorrelated, averages: RunningAverages) -> RunningAverages:
    """What is known of the true features and y only."""
    own = design.support
    mean = np.append(averages.mean_x[own], averages.mean_y)
    S = np.empty((len(mean), len(mean)))
    S[:-1, :-1] = averages.S_xx[np.ix_(own, own)]
    S[-1, :-1] = S[:-1, -1] = averages.S_xy[own]
    S[-1, -1] = averages.S_yy
    S -= np.outer(mean, mean)
    return RunningAverages.from_moments(averages.n, mean, averages.n * S)
