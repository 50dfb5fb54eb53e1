"""Rows that lie in collections of dask, and their running averages.

The only file that imports dask, when it is asked for.
"""

from collections.abc import Callable, Iterable
from types import ModuleType
from typing import Any, NamedTuple

from ofslib.averages import RunningAverages

_FAN_IN = 8  # averages that one task merges


def dask_for(caller: str) -> ModuleType:
    """The package; ImportError, naming who needs it, where it is not installed."""
    try:
        import dask
    except ImportError as error:
        raise ImportError(f"{caller} needs dask: pip install 'ofslib[dask]'") from error
    return dask


def blocks_of(X: Any, y: Any) -> list[tuple[Any, Any]]:
    """Delayed blocks of rows and of their targets, in order.

    Parameters
    ----------
    X : dask array (n, p), dask data frame, or list of delayed blocks
        Of an array the chunks of rows; those that cut the columns are joined.
    y : dask array (n,), dask series or data frame of one column, or list of delayed blocks
        In as many blocks as X. One array is cut as the other, where their chunks are known.

    Raises
    ------
    TypeError
        If X or y is nothing of this.
    ValueError
        If there is no block, if X and y have different numbers of them, or an array other axes.
    """
    of_array = hasattr(y, "rechunk")
    if of_array and y.ndim != 1:
        raise ValueError(f"y must have the shape (n,), got {y.ndim} axes: take one column, y[:, 0]")
    if hasattr(X, "rechunk"):
        if X.ndim != 2:
            raise ValueError(f"X must have the shape (n, p), got {X.ndim} axes")
        X = X.rechunk({1: -1})
        if of_array and sum(X.chunks[0]) == sum(y.chunks[0]):  # not if unknown
            y = y.rechunk((X.chunks[0],))
    X, y = _listed("X", X), _listed("y", y)
    if len(X) != len(y) or not X:
        raise ValueError(
            f"X and y must be cut alike, into one block at least: they have {len(X)} and {len(y)}"
        )
    return list(zip(X, y, strict=True))


def _listed(name: str, given: Any) -> list:
    if hasattr(given, "to_delayed"):
        found = given.to_delayed()
        return found.ravel().tolist() if hasattr(found, "ravel") else list(found)
    if isinstance(given, list | tuple) and all(hasattr(block, "dask") for block in given):
        return list(given)
    raise TypeError(
        f"{name} must be a dask array or data frame, or a list of delayed blocks, not "
        f"{type(given).__name__}"
    )


class Columns(NamedTuple):
    """Of a block of rows; None: not known."""

    width: int | None
    names: list[str] | None


def columns_of(X: Any, y: Any) -> Columns:
    """Those of a block; ValueError if X and y do not have as many rows."""
    n, *width = getattr(X, "shape", None) or [len(X)]
    if n != len(y):
        raise ValueError(f"X and y must have as many rows in each block, got {n} and {len(y)}")
    names = getattr(X, "feature_names", None)
    names = list(getattr(X, "columns", ()) if names is None else names)
    named = names and all(isinstance(name, str) for name in names)
    return Columns(width[0] if len(width) == 1 else None, names if named else None)


def alike(blocks: Iterable[Columns]) -> Columns:
    """What is known of the columns of all blocks; ValueError if two have others."""
    width, names = None, None
    for own in blocks:
        if None not in (width, own.width) and own.width != width:
            raise ValueError(f"X must have as many columns in each block, got {width}, {own.width}")
        if None not in (names, own.names) and own.names != names:
            pair = next(pair for pair in zip(names, own.names, strict=True) if len(set(pair)) > 1)
            raise ValueError(
                "X must have the same columns in the same order in each block, got "
                f"{pair[0]!r} and {pair[1]!r} in one place"
            )
        width = own.width if width is None else width
        names = own.names if names is None else names
    return Columns(width, names)


def lying_together(blocks: list[tuple[Any, Any]]) -> list[list[tuple[Any, Any]]]:
    """The blocks, computed, by the worker of the current client that holds their rows.

    ValueError if there is no client; the error of a block that cannot be computed.
    """
    from dask import compute, delayed, persist
    from distributed import default_client, wait

    try:
        client = default_client()
    except ValueError:
        raise ValueError("n_parts=None asks where blocks lie: open a distributed.Client") from None
    lying = persist(*(rows for rows, _ in blocks))
    wait(lying)
    holders, found = client.who_has(), {}
    while lost := [rows for rows in lying if not holders.get(rows.key)]:
        compute(*map(delayed(type), lost))  # once more, or raises why not; nothing large comes here
        holders = client.who_has()
    for rows, (_, targets) in zip(lying, blocks, strict=True):
        found.setdefault(min(holders[rows.key]), []).append((rows, targets))
    return list(found.values())


class Dask:
    """What `fit_parts` computes by, on the scheduler that dask uses at the time."""

    def __init__(self, caller: str):
        self._dask = dask_for(caller)

    def call(self, function: Callable, *arguments) -> Any:
        """What the function returns, later and elsewhere."""
        return self._dask.delayed(function, pure=False)(*arguments)

    def keep(self, later: list) -> list:
        """The same, begun now, and held where it is computed."""
        return list(self._dask.persist(*later))

    def get(self, later: list) -> list:
        """What these are."""
        return list(self._dask.compute(*later))


# -------------------------------------------------- running averages


def averages_of_blocks(X, y, dtype) -> RunningAverages:
    """What `RunningAverages.from_dask` returns: averages of each block, merged in a tree."""
    dask, blocks = dask_for("from_dask"), blocks_of(X, y)
    learn, merge = dask.delayed(_averages_of), dask.delayed(_merged)
    parts = [learn(*block, dtype) for block in blocks]
    while len(parts) > 1:
        parts = [merge(parts[i : i + _FAN_IN]) for i in range(0, len(parts), _FAN_IN)]
    averages, _ = parts[0].compute()
    return averages


def _averages_of(X, y, dtype) -> tuple[RunningAverages, Columns]:
    columns, averages = columns_of(X, y), RunningAverages(X.shape[1], dtype)
    # Merged rows do not wait: a copy would be made of all co-moments to add them.
    return averages.update(X, y)._settled(spend=True) if len(y) else averages, columns


def _merged(parts: list[tuple[RunningAverages, Columns]]) -> tuple[RunningAverages, Columns]:
    averages, columns = zip(*parts, strict=True)
    columns = alike(columns)
    return sum(averages), columns
