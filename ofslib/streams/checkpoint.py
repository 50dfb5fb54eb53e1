"""Learning from a stream in one call, which goes on where it was killed."""

import inspect
import os
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.utils.multiclass import type_of_target
from tqdm import tqdm

from ofslib._model_files import class_of, read, write
from ofslib.streams.holdout import evaluate, split
from ofslib.streams.resources import refuse_memory
from ofslib.streams.selector import MANY, LinearModel

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

_DELAY = 0.5  # seconds until progress is shown


class Checkpoint:
    """A learner half-way, and what tells the stream that it learns from, and how far it is.

    In a file it is a saved model with this beside it.
    """

    def __init__(self, learner, stream: dict[str, Any], finished: bool = False, rows: int = 0):
        self.learner, self.stream, self.finished = learner, stream, finished
        self._last_block = rows, 0, self._learned(learner)

    def save(self, path) -> None:
        """Write the learner as a model file that only `read_checkpoint` reads."""
        kept = {"stream": self.stream, "finished": self.finished, "rows": self.rows}
        write(path, self.learner, checkpoint=kept)

    def refuse_other(self, path, model, stream: dict[str, Any], classes=None) -> None:
        """ValueError, naming what differs, unless `model` learning from `stream` made this."""
        asked = dict.fromkeys(self.stream) | stream  # what is no longer asked for differs, too
        pairs = [(self.stream, asked), (self.learner.get_params(), model.get_params())]
        if classes is not None and hasattr(self.learner, "classes_"):
            now, began = (np.unique(given).tolist() for given in (classes, self.learner.classes_))
            pairs.append(({"classes": began}, {"classes": now}))
        for old, new in pairs:
            for name in new:
                # These say in what order `fit` shows rows; here they come as they are.
                if name in ("random_state", "shuffle") or old.get(name) == new[name]:
                    continue
                what = f"{name}={new[name]!r} differs from {name}={old.get(name)!r}"
                if name == "holdout":  # None where no rows are held out
                    shares = [own.get(name) or 0 for own in (new, old)]
                    what = "holdout={} (--holdout) differs from holdout={}".format(*shares)
                if name == "content":
                    what = "the rows, or how they are read, differ from those"
                raise _other(path, what)

    @property
    def rows(self) -> int:
        """Rows shown so far, in all passes; those of weight 0 too, which no learner counts."""
        before, size, learned = self._last_block
        return before + size * (self._learned(self.learner) != learned)

    def show(self, size: int) -> None:
        """A block of so many rows is shown next: they count as soon as the learner has some of it.

        So an interruption finds the learner and the rows as they belong.
        """
        self._last_block = self.rows, size, self._learned(self.learner)

    def pass_over(self, size: int) -> None:
        """So many rows are not shown, as their weights are 0."""
        self._last_block = self.rows + size, 0, self._learned(self.learner)

    @staticmethod
    def _learned(learner) -> int:
        return getattr(learner, "n_samples_seen_", 0)


def _other(path, what: str) -> ValueError:
    return ValueError(
        f"checkpoint {os.fspath(path)}: {what} with which it began. Set it back, or remove the "
        "file to begin anew."
    )


def read_checkpoint(path, model) -> Checkpoint:
    """The learner half-way; ValueError if there is none of this class."""
    (name, half_way), own, where = class_of(path), type(model).__name__, os.fspath(path)
    if not half_way:
        what = f"it holds a {name}, no checkpoint: give another file"
        if name == Checkpoint.__name__:
            what = "it is of format 1, from which learning does not go on: remove it to begin anew"
        raise ValueError(f"checkpoint {where}: {what}")
    if name != own:
        raise _other(path, f"class={own!r} differs from class={name!r}")
    learner, kept = read(type(model), path, half_way=True)
    kinds = {name: type(value) for name, value in kept.items()}
    known = kinds == {"stream": dict, "finished": bool, "rows": int}
    if not known or kept["rows"] < Checkpoint._learned(learner):
        raise ValueError(f"checkpoint {where}: it is at {kept}")
    return Checkpoint(learner, **kept)


def fit_stream(
    model,
    stream,
    checkpoint: str | os.PathLike | None = None,
    every: float = 30.0,
    progress: bool = False,
    classes: Iterable | None = None,
    holdout: float = 0.0,
    test: Iterable | None = None,
):
    """`fit` on the rows of a stream, in constant memory; after a kill, the same call goes on.

    The rows are shown in their order, `n_passes` times: the model is that of `fit` with
    shuffle=False, bit for bit (running averages: up to rounding); rows with weights are counted in
    a pass before, as steps go by the number of those above 0. What the model had learned before
    is forgotten. If an error is raised, the model is as it was. Returns the model.

    Parameters
    ----------
    model : estimator
        Of rows or of running averages.
    stream : ofslib.datasets.Stream
        From `ofslib.datasets.open_stream`. Without a cache, to go on parses again what was shown.
        Weights are handed on as `sample_weight`, names of columns become `feature_names_in_`.
    checkpoint : path-like, optional
        A file of the learner half-way: a model file, whole or as it was before. If it is there,
        learning goes on from it, and ends in the same bits as never having stopped. It stays: when
        all is learned, the same call gives the same model at once.
    every : float
        Seconds between two checkpoints; 0: after each block. Ctrl-C writes one more.
    progress : bool
        Show rows, MB/s and the time left on stderr, where that is a terminal.
    classes : array-like, optional
        The labels of a classifier; else those up to the first block with a second one.
    holdout : float
        Share of the rows that is not learned, in no pass; a hash of a row's number chooses. The
        finished model is scored on these rows: `held_out_`, a dict, has rows, accuracy and
        majority (that of always the commonest label), log_loss where there are probabilities, of
        two labels auc and average_precision, of numbers r2 and rmse; per_class has the precision
        and recall of each label.
    test : iterable of blocks, optional
        Other rows, (X, y) or (X, y, weight), on which to score the finished model in place of
        those held out.

    Raises
    ------
    TypeError
        If the model does not learn from rows or averages, or knows no weights, which rows have.
    ValueError
        If a parameter or the stream is not allowed, if the rows change while they are learned,
        or if the checkpoint is one of another model or stream, or of a job that still runs.
    MemoryError
        If what is learned needs more memory than is free; before any is taken.
    """
    if holdout:
        stream, held = split(stream, holdout)
        test = held if test is None else test
    before = dict(vars(model))
    with _alone(checkpoint):
        version = _fit(model, stream, checkpoint, every, progress, classes)
    if test is not None:
        try:
            with reading(stream, progress):
                found = evaluate(model, test)
            _refuse_changed(stream, version, checkpoint)
        except BaseException:
            model.__dict__ = before
            raise
        model.held_out_ = found
    return model


def _fit(given, stream, checkpoint, every, progress, classes) -> Any:
    """Learn; returns the version of the stream."""
    model = given
    _refuse_others(model, stream)
    if not every >= 0:
        raise ValueError(f"every (--every): expected at least 0 seconds, got {every}")
    model._validate_params()
    with reading(stream, progress):
        version = stream.version()
        n = _rows_to_show(stream)
        if getattr(model, "class_weight", None) == "balanced":
            model = _balanced(model, stream)
        work = _begun(model, stream, checkpoint, classes)
        if not work.rows:
            if classes is None and is_classifier(model):
                classes = labels_of(stream, type(model).__name__)
            refuse_memory(model, stream, 0 if classes is None else len(classes))
        if not (work.finished or work.rows):
            work.learner._n_rows_in_all = _passes(model) * _used_rows(model, stream, n)
    if not work.finished:
        total = n * _passes(model)
        with _memory_for(stream), _bar(total, " rows", "learning", progress, work.rows) as bar:
            _learn(work, stream, n, total, checkpoint, every, classes, bar, version)
    given.__dict__ = dict(vars(work.learner))
    if known := getattr(stream, "numbering", None):
        given._numbering = known
    if known := getattr(stream, "encoding", None):
        given._encoding = known
    return version


def _refuse_changed(stream, version, path) -> None:
    if stream.version() != version:
        remove = f"remove {os.fspath(path)} and " if path is not None else ""
        raise ValueError(
            f"{stream.name}: its rows changed while they were learned; {remove}begin anew"
        )


def _balanced(model, stream):
    """The model with the weights of labels that 'balanced' stands for: these are counted first."""
    counts: dict[Any, float] = {}
    for _, y, *weight in stream:
        labels, places = np.unique(y, return_inverse=True)
        sums = np.bincount(places, weight[0] if weight else None)
        for label, rows in zip(labels.tolist(), sums.tolist(), strict=True):
            counts[label] = counts.get(label, 0.0) + rows
    mean = sum(counts.values()) / len(counts)
    weights = {label: mean / rows for label, rows in sorted(counts.items()) if rows}
    return clone(model).set_params(class_weight=weights)


@contextmanager
def _alone(path) -> Iterator[None]:
    """Refuse a second job with the same checkpoint; the lock ends with the process that has it."""
    if path is None or fcntl is None:
        yield
        return
    lock = f"{os.path.realpath(path)}.lock"
    os.makedirs(os.path.dirname(lock), exist_ok=True)
    with open(lock, "w") as file:
        busy = False
        with suppress(OSError):  # a file system without locks
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                busy = True
        if busy or not os.fstat(file.fileno()).st_nlink:  # or its holder is about to end
            raise ValueError(
                f"checkpoint {os.fspath(path)}: another job learns with it: wait until that has "
                "ended, or give another file"
            )
        try:
            yield
        finally:
            os.unlink(lock)


@contextmanager
def _memory_for(stream) -> Iterator[None]:
    """Say what takes the memory, where there is too little."""
    try:
        yield
    except MemoryError as error:
        raise MemoryError(
            f"{stream.name}: {error}: it has {stream.n_features:,} features, as many as its "
            "largest index says (or n_features (--n-features)); a single stray index makes "
            "them so many"
        ) from error


def _rows_to_show(stream) -> int:
    """Rows of one pass; ValueError if there is none."""
    if (n := stream.n_rows - stream.start_row) < 1:
        where = f" from row {stream.start_row} on" * bool(stream.start_row)
        raise ValueError(f"{stream.name}: expected a row{where}, got none")
    return n


def _refuse_others(model, stream) -> None:
    """TypeError if the model takes no rows, or takes no weights where they have some."""
    name = type(model).__name__
    if not (isinstance(model, LinearModel) and hasattr(model, "partial_fit")):
        raise TypeError(f"model: expected one that learns from rows or averages, got {name}")
    if not hasattr(stream, "weighted"):
        given = type(stream).__name__
        raise TypeError(f"stream: expected what open_stream returns, got {given}")
    taken = inspect.signature(model.partial_fit).parameters
    if stream.weighted and "sample_weight" not in taken:
        raise TypeError(f"stream: its rows have weights, and {name} has no sample_weight")


def labels_of(stream, owner) -> np.ndarray:
    """The labels up to the first block in which there is a second one.

    ValueError if they are none that a classifier could learn.
    """
    found, rows = np.empty(0), 0
    for _, y, *_ in stream:
        found = np.unique(np.concatenate([found, y]) if len(found) else y)
        rows += len(y)
        if len(found) > 1:
            break
    if not rows:
        raise ValueError(f"{stream.name}: expected a row, got none")
    if found[0] != found[0]:
        raise ValueError(f"{stream.name}: {owner} learns labels, and the rows have none")
    if len(found) < 2:
        raise ValueError(
            f"{stream.name}: {owner} needs 2 classes, and all rows have the label {found[0]}; "
            "classes (--classes) can name labels of rows to come"
        )
    if type_of_target(found) == "continuous":
        odd = found[found != np.round(found)][0]
        raise ValueError(
            f"{stream.name}: the labels are continuous, such as {odd}, and {owner} "
            "takes classes: numbers are for a regressor (--task regression)"
        )
    if found.dtype.kind == "f" and len(found) > max(MANY, rows // 2):
        raise ValueError(
            f"{stream.name}: {len(found):,} different numbers in {rows:,} rows are more likely "
            f"amounts than labels, each of which {owner} would learn: numbers are for a regressor "
            "(--task regression); classes (--classes) says that they are labels"
        )
    return found


def _passes(model) -> int:
    return int(getattr(model, "n_passes", 1))


def has_weight(model, y, sample_weight=None) -> np.ndarray:
    """Whether the weight of each row is not 0."""
    given = getattr(model, "class_weight", None)
    zero = [label for label, weight in given.items() if not weight] if type(given) is dict else []
    used = np.isin(y, zero, invert=True) if zero else np.ones(len(y), bool)
    return used if sample_weight is None else used & (np.asarray(sample_weight) > 0)


def _used_rows(model, stream, n: int) -> int:
    """Rows of which the weight is not 0; ValueError if there is none."""
    if not stream.weighted and all(
        has_weight(model, [*(getattr(model, "class_weight", None) or [])])
    ):
        return n
    used = int(sum(np.sum(has_weight(model, *rest)) for _, *rest in stream))
    if not used:
        raise ValueError(f"{stream.name}: sample_weight, times class_weight, is zero for all rows")
    return used


def _begun(model, stream, path, classes) -> Checkpoint:
    """What is learned already."""
    if path is None:
        return Checkpoint(clone(model), {})
    identity = stream.identity()
    if not os.path.exists(path):
        return Checkpoint(clone(model), identity)
    work = read_checkpoint(path, model)
    work.refuse_other(path, model, identity, classes)
    return work


def _learn(work, stream, n, total, path, every, classes, bar, version):
    learner, began, first = work.learner, time.monotonic(), work.rows
    known = {"classes": classes} if is_classifier(learner) and classes is not None else {}
    next_save = began + every
    try:
        while work.rows < total:
            last = work.rows
            for X, y, *weight in stream.skip(last % n):
                weights = {"sample_weight": weight[0]} if weight else {}
                if has_weight(learner, y, *weight).any():
                    work.show(len(y))
                    learner.partial_fit(X, y, **known, **weights)
                else:
                    work.pass_over(len(y))
                del X, y, weight, weights  # before there is memory for the next block
                bar.update(work.rows - bar.n)
                now = time.monotonic()
                speed = stream.text_bytes * (work.rows - first) / n / max(now - began, 1e-9)
                bar.set_postfix_str(f"{speed / 1e6:.1f} MB/s", refresh=False)
                if path is not None and now >= next_save and work.rows < total:
                    work.save(path)
                    next_save = time.monotonic() + every
            if work.rows - last != n - last % n:
                got = work.rows - last + last % n
                raise ValueError(f"stream: expected {n} rows in each pass, got {got}")
            _refuse_changed(stream, version, path)
    except KeyboardInterrupt:
        if path is not None and work.rows:
            work.save(path)
        raise
    learner._end()
    del learner._n_rows_in_all
    work.finished = True
    if path is not None:
        work.save(path)


@contextmanager
def reading(stream, shown: bool) -> Iterator[None]:
    """Meanwhile, show on stderr, if that is a terminal, how much of the stream's text is read."""
    with _bar(stream.text_bytes, "B", "reading", shown) as bar:

        def saw(at, rows):
            bar.set_postfix_str(f"{rows:,} rows", refresh=False)
            bar.update(at - bar.n)

        with stream.watched(saw):
            yield


def _bar(total, unit, what, shown, begin=0):
    return tqdm(
        total=total,
        initial=begin,
        desc=what,
        unit=unit,
        unit_scale=True,
        leave=False,
        delay=_DELAY,
        disable=None if shown else True,  # None: where stderr is no terminal
    )
