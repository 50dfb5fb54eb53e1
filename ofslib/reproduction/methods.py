"""The methods of a setting: found by their names, built, and shown a stream."""

import importlib.util
import inspect
import itertools
import time
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

import numpy as np
import scipy.sparse as sp
from tqdm import tqdm

import ofslib
from ofslib.metrics import NotFinite, read_only
from ofslib.reproduction.configuration import alike
from ofslib.streams.resources import free_bytes

# Keys of a method's entry that are no parameters of its class.
ABOUT_THE_METHOD = ("class", "first_replicate", "replicates", "sweep", "at", "timed")


def installed(setting: dict[str, Any]) -> tuple[dict[str, Any], dict[str, str]]:
    """The setting without the methods whose package is not installed, and why each is left out."""
    lacking = {}
    for label, spec in setting["methods"].items():
        package = getattr(_method(spec["class"]), "requires", None)
        if package and importlib.util.find_spec(package) is None:
            lacking[label] = f"{package} is not installed"
    methods = {label: s for label, s in setting["methods"].items() if label not in lacking}
    return {**setting, "methods": methods}, lacking


def find_class(path: str) -> Any:
    """What is named by "SFSARegressor" (a class of ofslib) or by "package.module:name"."""
    module, _, name = path.rpartition(":")
    if not module and name not in ofslib.__all__:
        hint = alike(name, ofslib.__all__)
        raise AttributeError(f"ofslib has no {name!r}{hint}; yours is written my_module:{name}")
    return getattr(import_module(module) if module else ofslib, name)


def _method(path: str) -> Any:
    """The class of a method, and nothing else that can be called."""
    cls = find_class(path)
    learns = any(hasattr(cls, name) for name in ("fit", "partial_fit", "fit_averages"))
    if not (isinstance(cls, type) and (learns or hasattr(cls, "standardized"))):
        raise TypeError(f"class: {path} is no class of a method: it needs fit or partial_fit")
    return cls


def build(spec: dict[str, Any], **defaults: Any) -> Any:
    """A model from {"class": ..., parameter: value, ...}, as `class_of` reads it."""
    cls, own = class_of(spec, **defaults)
    return cls(**own)


def class_of(spec: dict[str, Any], **defaults: Any) -> tuple[type, dict[str, Any]]:
    """The class and the parameters that {"class": ..., parameter: value, ...} stands for.

    `defaults` are used where the class has such a parameter and the spec does not give it.
    """
    cls = _method(spec["class"])
    own = {name: value for name, value in spec.items() if name not in ABOUT_THE_METHOD}
    known = inspect.signature(cls).parameters
    takes_all = any(p.kind == p.VAR_KEYWORD for p in known.values())
    for name in [] if takes_all else own.keys() - known.keys():
        raise ValueError(f"{spec['class']} has no parameter {name!r}{alike(name, known)}")
    return cls, {name: value for name, value in defaults.items() if name in known} | own


def models_of(setting: dict[str, Any], **defaults: Any) -> dict[tuple, tuple[type, dict]]:
    """Class and parameters of all models of a setting, by method and swept parameters.

    `defaults` as in `class_of`.
    """
    return {
        (label, tuple(point.items())): class_of({**spec, **point}, **defaults)
        for label, spec in setting["methods"].items()
        for point in points(spec.get("sweep", setting["sweep"]))
    }


def model_key(cls: type, own: dict[str, Any], n: int) -> tuple:
    """Equal for models that are one and the same after the first n rows of a stream.

    What learns row by row has its model of n rows on the way to that of more, unless a parameter
    says how many there are. What learns in the end from all rows, or from averages, has not.
    """
    by_rows = hasattr(cls, "partial_fit") and not hasattr(cls, "fit_averages")
    return cls, repr(sorted(own.items())), None if by_rows or _sums_up(cls) else n


def takes_all_rows(cls: type) -> bool:
    """Whether a method learns neither in parts nor from averages."""
    parts = ("partial_fit", "fit_averages", "standardized")
    return not any(hasattr(cls, name) for name in parts)


def points(sweep: dict[str, list]) -> Iterator[dict[str, Any]]:
    """The grid points of the swept parameters, or one empty point."""
    for values in itertools.product(*sweep.values()):
        yield dict(zip(sweep, values, strict=True))


class Diverged:
    """What stands for a model that diverged: asked for its coefficients, it gives the reason."""

    def __init__(self, reason: Exception):
        self.reason = str(reason)

    @property
    def coef_(self):
        raise NotFinite(self.reason)


def guarded(models: dict[Any, Any], key: Any, call: Callable, *arguments: Any) -> Any:
    """call(models[key], *arguments), unless the model diverges, or has diverged before.

    None then, and in its place `models` has the reason.
    """
    if isinstance(models[key], Diverged):
        return None
    try:
        return call(models[key], *arguments)
    except (FloatingPointError, NotFinite) as error:
        models[key] = Diverged(error)
        return None
    except Exception as error:
        error.add_note(f"This is of {named(models[key])} as it learned.")
        raise


def named(model: Any) -> str:
    """Where the class of a model is found."""
    return f"{type(model).__module__}:{type(model).__qualname__}"


def learn(
    models: dict[Any, Any],
    ends: dict[Any, set[int]],
    blocks: Iterator[tuple],
    averages: Callable[[int], Any] | None = None,
) -> Iterator[tuple[int, dict[Any, float]]]:
    """Show the same stream to many models, and stop on the way where they are asked for.

    Models that learn from running averages are given those that stand among the models and end
    at the same row, else `averages` of so many rows. A model without `partial_fit` gets all rows
    at its end. In the place of one that diverges, `models` has the reason afterwards. What has
    passed its last end is removed from `models`, so that the memory of the next ones is free.

    Parameters
    ----------
    models : dict
    ends : dict
        After how many rows each model is asked for: each number is the end of a block.
    blocks : iterator of (X, y)
    averages : callable, optional
        Of a number of rows.

    Yields
    ------
    tuple
        The number of rows, and the processor's seconds that each model has taken until then.
    """
    seconds = dict.fromkeys(models, 0.0)
    sums = {key for key, model in models.items() if _sums_up(model)}
    summed = set().union(*(ends[key] for key in sums))
    able = {key for key, model in models.items() if hasattr(model, "fit_averages")}
    later = able if averages else {key for key in able if ends[key] & summed}
    batch = {k for k, m in models.items() if not hasattr(m, "partial_fit")} - later - sums
    now = [key for key in models if key not in later | batch]
    last = max((max(ends[key]) for key in batch), default=0)
    shown, held, blocks = 0, [], iter(blocks)
    for n in sorted(set().union(*ends.values())):
        going = [key for key in now if max(ends[key]) >= n]
        hold = n <= last
        held = held if hold else []
        while shown < n and (going or hold):
            X, y = next(blocks)
            shown += len(y)
            for key in going:
                seconds[key] += _seconds(models, key, show, X, y)
            if hold:
                _hold(held, X, y, last, [models[key] for key in batch if key in models])
        if shown > n:
            raise ValueError(f"a block ends after row {shown}, and none after row {n}")
        here = [key for key in ends if n in ends[key]]
        for key in batch.intersection(here):
            seconds[key] = _seconds(models, key, fit, *stacked(held))
        if extracted := later.intersection(here):
            own = [models[key] for key in here if key in sums] or [averages(n)]
            for key in extracted:
                seconds[key] = _seconds(models, key, extract, own[0])
            own.clear()  # as large as what comes next
        yield n, seconds
        for key in here:
            if max(ends[key]) == n:
                del models[key]


def _hold(held: list[tuple], X, y, n_rows: int, batch: list) -> None:
    """Keep a block of rows for these models, if all n_rows and a copy of them fit into memory."""
    size = sum(part.nbytes for part in ((X.data, X.indices) if sp.issparse(X) else (X,)))
    needed, free = 2 * size * n_rows / X.shape[0], free_bytes()
    if not held and needed > free:
        needs, has = (tqdm.format_sizeof(n, "B") for n in (needed, free))
        raise MemoryError(
            f"{', '.join(map(named, batch))} without partial_fit gets all {n_rows:,} rows at once: "
            f"they need {needs}, and {has} are free"
        )
    held.append((X, y))


def stacked(blocks: list[tuple]) -> tuple[Any, np.ndarray]:
    """All rows of some blocks."""
    X, y = zip(*blocks, strict=True)
    return (sp.vstack(X) if sp.issparse(X[0]) else np.concatenate(X)), np.concatenate(y)


def _sums_up(model) -> bool:
    """Whether it is running averages; asked so that what needs none does not depend on them."""
    return hasattr(model, "standardized")


def show(model, X, y) -> None:
    """Let a model of any kind learn from a block of rows; labels are -1 and +1."""
    X, y = to_read(model, X, y)
    if _sums_up(model):
        model.update(X, y)
    elif hasattr(model, "decision_function"):
        model.partial_fit(X, y, classes=[-1.0, 1.0])
    else:
        model.partial_fit(X, y)


def fit(model, X, y) -> None:
    """Let a model learn from all rows."""
    model.fit(*to_read(model, X, y))


def to_read(model, X, y) -> tuple:
    """Rows that other methods are shown, too, which a method that is not ours may only read."""
    return (X, y) if is_ours(type(model)) else (read_only(X), read_only(y))


def is_ours(cls: type) -> bool:
    """Whether a class is one of ofslib's, peers included."""
    return cls.__module__.startswith(f"{ofslib.__name__}.")


def shuffles(cls: type) -> bool:
    """Whether `fit` of a class puts the rows in an order of the seed by itself."""
    known = inspect.signature(cls).parameters
    return is_ours(cls) or {"shuffle", "random_state"} <= known.keys()


def extract(model, averages) -> None:
    """Let a model learn from running averages, which may change afterwards."""
    # Coefficients are computed when they are read.
    np.asarray(model.fit_averages(averages, copy=False).coef_)


def _seconds(*known) -> float:
    start = time.process_time()
    guarded(*known)
    return time.process_time() - start
