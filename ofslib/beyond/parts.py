"""One model of rows that lie in several parts, each of which a worker learns where it lies.

The schedule by which features leave is cut into rounds. In a round each worker descends from the
common model on the next rows of its part. Then the coefficients are averaged, weighted by the rows
of the parts, and features leave: all workers go on with the same ones, and what is sent shrinks
with their number. Of one part the model is that of the method itself, which waits for nobody.

Workers keep nothing from round to round, and what they answer is taken in the order of the parts.
The result hence depends on the model and the parts only: not on where, in what order or how often
workers compute. `fit_parts`, one after the other in this process, gives the same bits as threads,
processes and machines of dask, `fit_dask`.
"""

import copy
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import cycle, pairwise
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone, is_classifier
from sklearn.utils import _safe_indexing

from ofslib.beyond.dask_blocks import Dask, alike, blocks_of, columns_of, lying_together
from ofslib.kernels.selection import annealed
from ofslib.streams import joint
from ofslib.streams.checkpoint import has_weight
from ofslib.streams.row_stream import kernel_csr
from ofslib.streams.selector import LinearModel, labels_in

# The share of its features that leave a model of several parts at a time, at least: until k of p
# are left there are log(k / p) / log(1 - SHARE) rounds, in which p / SHARE numbers are sent of each
# array.
SHARE = 0.25
_NEVER = 2**62  # mini-batches


class Message(NamedTuple):
    """What is sent of one model: of its arrays what belongs to the features that are left."""

    index: np.ndarray  # (m,) uint32: these features
    means: list[np.ndarray]  # coefficients and the like: to be averaged
    sums: list[np.ndarray]  # over rows: to be added
    cut: float  # as in `Active`


class Common(NamedTuple):
    """What the workers have learned together."""

    models: list[Message]
    online: np.ndarray  # sums over the rows shown, as in `RowStream`
    rows: int


class InTurn:
    """Computes at once, one after the other, in this process; `Dask` does so elsewhere."""

    def call(self, function: Callable, *arguments) -> Any:
        """What the function returns."""
        return function(*arguments)

    def keep(self, found: list) -> list:
        """The same."""
        return found

    get = keep


def fit_parts(model, parts: Iterable[tuple[Any, Any]], classes=None, scheduler=None):
    """`fit` on rows in several parts, as by so many workers, one after the other.

    What the model had learned before is forgotten. If an error is raised, it is as it was.

    Parameters
    ----------
    model : SFSAClassifier or SFSARegressor
        Rows are shown in their order, `n_passes` times; `maturity` and `warmup` are rows of all
        parts together. Of one part it may be any that learns from rows or averages: it becomes
        that of `fit` with shuffle=False, bit for bit (running averages: up to rounding).
    parts : iterable of (X, y)
        The rows of each worker, at least one; X and y as for `fit`. Each part should look like a
        sample of all rows: averages over parts with one label each mean little.
    classes : array-like, default=None
        The labels of a classifier; None: those in y.
    scheduler : object, default=None
        With the methods of `InTurn`, which None stands for.

    Returns
    -------
    model

    Raises
    ------
    TypeError
        If the model does not learn from rows, or not from several parts.
    ValueError
        If a parameter or the data are not allowed; the message names it and says what is.
    """
    parts = list(parts)
    for i, part in enumerate(parts):
        if not isinstance(part, tuple | list):
            raise TypeError(f"parts[{i}] must be a pair (X, y), got {type(part).__name__}")
        if len(part) != 2:
            items = f"{len(part)} items: weights are not taken"
            raise TypeError(f"parts[{i}] must be a pair (X, y), got {items}")
    return _fit(model, [[part] for part in parts], classes, scheduler or InTurn())


def fit_dask(model, X, y, n_parts: int | None = 1, classes=None):
    """`fit` on the rows of dask collections, where they lie.

    With one part the model goes from block to block, in their order. With several each part is
    learned by a worker, and they average: the same bits as `fit_parts`, on each of dask's
    schedulers (but `online_loss_` and `online_score_` are sums by blocks). If a worker dies, others
    learn its part again, on rows that dask loads or computes again; of rows that were scattered to
    it alone dask raises an error.

    Parameters
    ----------
    model : estimator
        As in `fit_parts`.
    X : dask array (n, p), dask data frame, or list of delayed blocks
        Rows; those of several parts have to fit into the memory of all workers together.
    y : dask array (n,), dask series, or list of delayed blocks
        Numbers or labels, in as many blocks as X.
    n_parts : int or None, default=1
        Parts, each of blocks that follow each other, as equal in number as can be; the rows of a
        part are brought to one worker. None: each worker of the current `distributed.Client` learns
        the blocks of X that it holds, or has computed, and the result depends on which.
    classes : array-like, default=None
        As in `fit_parts`.

    Returns
    -------
    model

    Raises
    ------
    ImportError
        Without dask: ``pip install 'ofslib[dask]'``.
    TypeError, ValueError
        As `fit_parts`; and if X, y or `n_parts` is not as above.
    """
    scheduler, blocks = Dask("fit_dask"), blocks_of(X, y)
    if n_parts is None:
        return _fit(model, lying_together(blocks), classes, scheduler)
    wrong = isinstance(n_parts, bool) or not isinstance(n_parts, Integral)
    if wrong or not 1 <= n_parts <= len(blocks):
        allowed = f"None or an int of 1 to {len(blocks)} (blocks)"
        raise ValueError(f"n_parts must be {allowed}, got {n_parts!r}")
    ends = [len(blocks) * i // n_parts for i in range(n_parts + 1)]
    return _fit(model, [blocks[i:j] for i, j in pairwise(ends)], classes, scheduler)


def _fit(model, parts, classes, scheduler):
    _refuse_others(model, len(parts))
    model._validate_params()
    learn = _learn_alone if len(parts) == 1 else _learn_together
    learner = learn(clone(model), parts, classes, scheduler)
    vars(model).clear()
    vars(model).update(vars(learner))
    return model


def _refuse_others(model, n_parts: int) -> None:
    name = type(model).__name__
    if not n_parts:
        raise ValueError("parts must be one or more, got none")
    if not (isinstance(model, LinearModel) and hasattr(model, "partial_fit")):
        raise TypeError(f"model: expected one that learns from rows or averages, got {name}")
    if n_parts > 1 and not hasattr(model, "anneal"):
        raise TypeError(f"model: SFSAClassifier and SFSARegressor learn in parts, got {name}")
    if n_parts > 1 and model.forget is not None:
        raise ValueError(f"forget={model.forget}: what forgets must have its rows in one part")
    if isinstance(getattr(model, "class_weight", None), str):
        raise ValueError(f"class_weight={model.class_weight!r}: give {{label: weight}}")


def _refuse_empty(rows: Sequence[int], which: str = "a row") -> None:
    if not all(rows):
        raise ValueError(f"parts: each needs {which}, part {np.argmin(rows)} has none")


_WEIGHED = "a row whose class_weight is not 0"


# -------------------------------------------------- one part


def _learn_alone(learner, parts, classes, scheduler):
    """The learner goes from block to block."""
    (blocks,) = parts
    known, passes = {}, int(getattr(learner, "n_passes", 1))
    rows = scheduler.get([scheduler.call(len, y) for _, y in blocks])
    columns = _columns_without(rows, blocks, scheduler)
    _refuse_empty([sum(rows)])
    if is_classifier(learner):
        found = scheduler.get([scheduler.call(_distinct, y) for _, y in blocks])
        known["classes"] = _labels(learner, found, classes)
    rows = scheduler.get([scheduler.call(partial(_weighed, learner), y) for _, y in blocks])
    columns = alike([columns, _columns_without(rows, blocks, scheduler)])
    _refuse_empty([sum(rows)], _WEIGHED)
    learner._n_rows_in_all = passes * sum(rows)
    for _ in range(passes):
        for block, n in zip(blocks, rows, strict=True):
            if n:
                learner = scheduler.call(partial(_shown, columns, **known), learner, *block)
    (learner,) = scheduler.get([learner])
    learner._end()
    del learner._n_rows_in_all
    return learner


def _columns_without(rows, blocks, scheduler):
    """What the columns of the blocks are that have no rows; of others X is read in learning."""
    passed_over = [block for block, n in zip(blocks, rows, strict=True) if not n]
    return alike(scheduler.get([scheduler.call(columns_of, *block) for block in passed_over]))


def _shown(columns, learner, X, y, **known):
    """A learner that has seen these rows, too; the one that is given stays."""
    alike([columns, columns_of(X, y)])
    return copy.deepcopy(learner).partial_fit(X, y, **known)


def _weighed(learner, y) -> int:
    """Rows of which the weight is not 0."""
    return int(np.sum(has_weight(learner, np.asarray(y))))


def _distinct(*targets) -> np.ndarray:
    try:
        return np.unique(np.concatenate([np.ravel(np.asarray(y)) for y in targets]))
    except TypeError as error:
        raise ValueError(f"y holds labels of several kinds: {error}") from None


def _labels(learner, found: list[np.ndarray], classes) -> np.ndarray:
    """All labels: those that are given, or else those found in y."""
    name = "y" if classes is None else "classes"
    labels = _distinct(*found) if classes is None else classes
    return labels_in(labels, type(learner).__name__, several=True, name=name)


# -------------------------------------------------- several parts


def _learn_together(learner, parts, classes, scheduler):
    """All that is computed is a graph of pure functions: what is lost can be made again."""
    parts, known = scheduler.keep([scheduler.call(list, blocks) for blocks in parts]), {}
    rows = np.array(scheduler.get([scheduler.call(_count, part) for part in parts]))
    _refuse_empty(rows)
    heads = scheduler.get([scheduler.call(_head, part) for part in parts])
    if is_classifier(learner):
        found = scheduler.get([scheduler.call(_labels_of, part) for part in parts])
        known["classes"] = _labels(learner, found, classes)
    # Without weights: the label of this row may have none.
    learner._read(*heads[0], reset=True, **known)
    learner._begin(learner.n_features_in_)
    parts = scheduler.keep([scheduler.call(partial(_checked, learner, **known), p) for p in parts])
    # Those that are left: without the rows that weigh nothing.
    rows = np.array(scheduler.get([scheduler.call(_length, part) for part in parts]))
    _refuse_empty(rows, _WEIGHED)
    rows *= int(learner.n_passes)
    mean = round(rows.mean())
    total = int(rows.sum())
    learner._plan(total)  # refuses what cannot be
    _share(learner, mean, len(parts))
    del learner._state  # each task begins its own
    common, size = Common([], learner._online[0], 0), learner._hyper.batch_size
    for start, stop in pairwise(_rounds(learner)):
        shown = np.minimum([start * size, stop * size], mean)  # of a part of mean length
        stretches = rows[:, None] * shown // mean
        told = [
            scheduler.call(partial(_descend, learner, start, *stretch), common, part)
            for stretch, part in zip(stretches.tolist(), parts, strict=True)
        ]
        common = scheduler.call(partial(_pooled, learner, stop, rows / rows.sum()), common, told)
    (common,) = scheduler.get([common])
    learner, learner.n_samples_seen_ = _at(learner, stop, common), common.rows
    learner._n_rows = total  # for who loads it from a file
    learner._online[:2] = common.online
    learner._end()
    return learner


def _head(blocks) -> tuple[Any, Any]:
    """The first row of a part."""
    first = next(block for block in blocks if len(block[1]))
    return tuple(_safe_indexing(values, slice(1)) for values in first)


def _labels_of(blocks) -> np.ndarray:
    return _distinct(*(y for _, y in blocks))


def _count(blocks) -> int:
    """Rows of a part; ValueError if its blocks cannot be of the same rows."""
    alike(columns_of(*block) for block in blocks)
    return _length(blocks)


def _length(blocks) -> int:
    return sum(len(y) for _, y in blocks)


def _checked(learner, blocks, **known) -> list[tuple[Any, np.ndarray]]:
    """The rows as they are learned; sparse ones in the layout that kernels read, once for all."""
    learner, found = copy.copy(learner), []
    for X, y in blocks:
        if len(y):
            X, y = learner._read(X, y, reset=False, **known)
            X, y = learner._weigh(X, y, None, first=False)
            found.append((kernel_csr(X) if sp.issparse(X) else X, y))
    return [block for block in found if len(block[1])]


def _share(learner, rows: int, n_parts: int) -> None:
    """Give the learner the schedule of a worker with so many rows."""
    own = copy.copy(learner)
    if own.maturity is not None:
        own.maturity = -(-own.maturity // n_parts)
    if own.warmup is not None:
        # Less than the maturity still, which may have been rounded down.
        own.warmup = min(own.warmup // n_parts, max(own.rows_until_mature(rows) - 1, 0))
    # What is known of the rows is known of those of all workers.
    hyper = own._read_hyper(rows)._replace(different=learner._hyper.different)
    learner._n_rows, learner._hyper = rows, hyper


def _rounds(learner) -> list[int]:
    """Mini-batches of a worker after which it stops; the first one is 0."""
    hp, p = learner._hyper, learner.n_features_in_
    ends, left, k, last = [0], p, min(hp.k, p), -(-learner._n_rows // hp.batch_size)

    def left_after(t: int) -> int:
        if t <= max(hp.warmup, hp.burn_in):
            return p
        return annealed(t - hp.warmup, hp.maturity - hp.warmup, p, k, hp.mu)

    while ends[-1] < last:
        begin, goal = ends[-1] + 1, max(k, int((1.0 - SHARE) * left))
        later = range(begin, last) if left > k else ()
        ends.append(begin + bisect_left(later, True, key=lambda t: left_after(t) <= goal))
        if left == k:
            ends[-1] = last
        left = left_after(ends[-1])
    return ends


def _descend(learner, step: int, start: int, stop: int, common: Common, blocks) -> Common:
    """A worker's round from a step on: rows `start` to `stop` of its blocks, pass after pass."""
    learner = _at(learner, step, common)
    learner.n_samples_seen_ = start
    learner._hyper = learner._hyper._replace(warmup=_NEVER)  # no feature leaves
    for X, y, order in _rows(blocks, start, stop):
        learner._learn_rows(X, y, order)
    learner._finish_all()
    return _told(learner, stop - start)


def _rows(blocks, start: int, stop: int) -> Iterator[tuple[Any, np.ndarray, np.ndarray]]:
    """Blocks, and which of their rows are rows `start` to `stop` of all, pass after pass."""
    end = 0
    for X, y in cycle(blocks):
        begin, end = end, end + len(y)
        order = np.arange(max(start - begin, 0), min(stop - begin, len(y)))
        if len(order):
            yield X, y, order
        if end >= stop:
            return


def _pooled(learner, step: int, weights, common: Common, told: list[Common]) -> Common:
    """The workers' models as one, from which features have left as they do after this step."""
    learner = _at(learner, step, common)
    for c, state in enumerate(learner._states):
        models = [one.models[c] for one in told]
        _average(state, [model.means for model in models], weights)
        _add(state, [model.sums for model in models])
        _measure(state)
    hp = learner._hyper
    if learner._joint:
        joint.prune(learner.lines, learner._states, hp)
    else:
        for state in learner._states:
            type(learner).anneal(state, hp)
    learner._online[0] = common.online + sum(one.online for one in told)
    return _told(learner, common.rows + sum(one.rows for one in told))


# -------------------------------------------------- states and messages


def _means(state: NamedTuple) -> list[np.ndarray]:
    known, memory = state.step_size, state.memory
    # Each optimizer uses at most one of these; an array that is not used has one number.
    first = max(memory.velocity, memory.mean, key=len)
    second = max(memory.lookahead, memory.square, state.iterates.mean, key=len)
    return [state.w, first, second, known.direction, known.norm, state.noise[0, :1]]


def _sums(state: NamedTuple) -> list[np.ndarray]:
    known, own, losses = state.step_size, state.moments, state.batch.curvature
    of_known = [known.moments.total, known.moments.square, known.moments.rows]
    of_known += [known.curvature, known.weight, known.weight_squares, known.batches]
    # Each of one number: an array of more could be one of features.
    return [*of_known, own.total, own.square, own.rows, losses[:1], losses[1:2], losses[2:]]


def _places(array: np.ndarray, state: NamedTuple) -> np.ndarray | slice:
    """What belongs to the features in the model, and to the intercept, of such an array."""
    active, p = state.active, len(state.active.index)
    index = active.index[: active.size[0]]
    return {p: index, p + 1: np.append(index, p)}.get(len(array), slice(None))


def _told(learner, rows: int) -> Common:
    """What is sent of a learner."""
    models = []
    for state in learner._states:
        type(learner).ranked_by(state, learner._hyper)  # writes the mean of the iterates
        active = state.active
        means, sums = ([a[_places(a, state)] for a in part(state)] for part in (_means, _sums))
        models.append(Message(active.index[: active.size[0]].copy(), means, sums, active.cut[0]))
    return Common(models, learner._online[0], rows)


def _at(learner, step: int, common: Common):
    """A learner of its own that knows what was learned together before this step."""
    learner = copy.copy(learner)
    learner._start(learner.n_features_in_)
    for state, message in zip(learner._states, common.models, strict=False):  # none at first
        _take(state, message)
    for state in learner._states:
        state.steps[0] = step
    return learner


def _take(state: NamedTuple, message: Message) -> None:
    active, known, p = state.active, state.step_size, len(state.active.index)
    inside = np.zeros(p, bool)
    inside[message.index] = True
    active.index[:] = np.append(message.index, np.flatnonzero(~inside))
    active.size[0], active.cut[0], active.untouched[:] = len(message.index), message.cut, inside
    known.inside[:] = inside[: len(known.inside)]
    for part, values in ((_means, message.means), (_sums, message.sums)):
        for array, value in zip(part(state), values, strict=True):
            array[_places(array, state)] = value
    _measure(state)


def _measure(state: NamedTuple) -> None:
    """What follows from the sums: as `automatic_step.measure`."""
    known = state.step_size
    if rows := known.moments.rows[0]:
        index = state.active.index[: state.active.size[0]]
        known.energy[0] = known.moments.square[index].sum()
        known.trace[0] = known.energy[0] / rows


def _average(state: NamedTuple, models: list[list[np.ndarray]], weights: np.ndarray) -> None:
    """The weighted means."""
    for array, values in zip(_means(state), zip(*models, strict=True), strict=True):
        if array is state.step_size.direction:
            first = next((v for v in values if v.any()), values[0])  # a part without rows has none
            values = [v if v @ first >= 0.0 else -v for v in values]
        mean = sum(weight * v for weight, v in zip(weights, values, strict=True))
        if array is state.step_size.direction and (length := np.linalg.norm(mean)) > 0.0:
            mean /= length
        array[_places(array, state)] = mean


def _add(state: NamedTuple, models: list[list[np.ndarray]]) -> None:
    """What the workers have added to the sums since they were told them."""
    for array, values in zip(_sums(state), zip(*models, strict=True), strict=True):
        place = _places(array, state)
        before = array[place]
        array[place] = before + sum(value - before for value in values)
