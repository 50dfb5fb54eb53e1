"""The rows of a file, as the options of the command say to read them."""

from collections.abc import Iterator
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np

from ofslib._files import refuse_places
from ofslib._options import Misused
from ofslib._sparse import NamedRows

AVERAGES_UP_TO = 3000  # features: their averages take 72 MB, and p^2 operations a row
ANY_WIDTH = 2**31 - 1  # with it, no pass over the file looks for its largest index
# A table as it is, whatever options say that `select` makes of it.
AS_IT_IS = {"ignore": None, "missing": "refuse", "categorical": None, "standardize": False}


def opened(args, file: str | None = None, **own):
    """The stream that the options ask for; `own` are options of `open_stream` that go before."""
    from ofslib.datasets import open_stream
    from ofslib.datasets.tables import TABLES, format_of

    names = signature(open_stream).parameters
    given = {name: getattr(args, name) for name in names if hasattr(args, name)}
    file = file or args.file
    table = format_of(Path(file), args.format) in TABLES
    if table and args.label is None and args.command.__name__ != "select":
        given["label"] = False
    return open_stream(file, **given | own)


def read_once(args, file=None, **own):
    """The stream of a file that is read once; without a known width any index is allowed."""
    stream = opened(args, file, cache=False, **own)
    own |= {} if stream.n_columns else {"n_features": ANY_WIDTH}
    return opened(args, file, cache=False, **own)


def model_rows(model, args, file: str) -> tuple[Any, Iterator[tuple]]:
    """The stream of a file, and its blocks with the columns as a model knows them.

    A block is (X, y, number of values left out). Columns with names are found by these, and only
    those of selected features are needed; of a text those beyond the model's are left out.
    """
    from ofslib.datasets.tables import ARROW, DELIMITED, format_of

    names, p = getattr(model, "feature_names_in_", None), model.n_features_in_
    own: dict[str, Any] = {}
    if model._encoding is not None:  # in place of the options of a first look
        own = dict.fromkeys(("ignore", "categorical")) | {"missing": "refuse", "standardize": False}
        own |= {"encoding": model._encoding}
    if names is None or format_of(Path(file), args.format) not in (*DELIMITED, *ARROW):
        stream = _numbered_as(model, args, file, own)
        return stream, _cut(stream, p)
    support = model.support_ if len(model.support_) else np.arange(1)
    own |= {"columns": names[support].tolist(), "ignore": None}  # which need not be there
    stream = opened(args, file, cache=False, **own)
    return stream, _by_names(stream, support, names)


def _cut(stream, p: int) -> Iterator[tuple]:
    for X, y, *_ in stream:
        known = X
        if X.shape[1] != p and stream.feature_names is None:
            known = X[:, :p]
            known.resize(len(y), p)
        yield known, y, X.nnz - known.nnz


def _by_names(stream, support, names) -> Iterator[tuple]:
    for X, y, *_ in stream:
        shape = (len(y), len(names))
        known = NamedRows((X.data, support[X.indices].astype(np.int32), X.indptr), shape)
        known.feature_names = names
        yield known, y, 0


def _numbered_as(model, args, file: str, own: dict[str, Any]):
    """The rows to predict, with the columns numbered or hashed as the model learned them."""
    learned, p = model._numbering, model.n_features_in_
    if args.hashed:
        args.n_features = args.n_features or p
    if learned and opened(args, file, cache=False, **own).numbering:  # a text
        option = "--hashed" * args.hashed or "--zero-based" * args.zero_based
        if option and learned != {"--hashed": "hashed"}.get(option, "from 0"):
            how = "numbered " * (learned != "hashed") + f"{learned}: give a file of such"
            raise Misused(f"{option}: {args.model} learned from columns {how}")
        args.hashed, args.zero_based = learned == "hashed", learned == "from 0"
        if args.hashed and (args.n_features or p) != p:
            message = f"{args.model} learned from names hashed to {p} columns"
            raise Misused(f"--n-features {args.n_features}: {message}")
        if args.hashed:
            args.n_features = p
    return read_once(args, file, **own)


def refuse_written(args, *options: str) -> None:
    """Say, before any row is read, which files could not be written or would undo each other."""
    from ofslib.datasets.cache import cache_of

    cache = cache_of(Path(args.file), getattr(args, "cache", None) or True)
    read = {"FILE": args.file, "the cache of FILE": cache, "--registry": args.registry_path}
    read |= {"--model": args.model, "--test": getattr(args, "test", None)}
    refuse_places({f"--{name}": getattr(args, name) for name in options}, read)
