"""The rows of a file, as the options of the command say to read them."""

from inspect import signature
from pathlib import Path

from ofslib._files import refuse_places

ANY_WIDTH = 2**31 - 1  # with it, no pass over the file looks for its largest index


def opened(args, **own):
    """The stream that the options ask for; `own` are options of `open_stream` that go before."""
    from ofslib.datasets import open_stream
    from ofslib.datasets.tables import TABLES, format_of

    names = signature(open_stream).parameters
    given = {name: getattr(args, name) for name in names if hasattr(args, name)}
    table = format_of(Path(args.file), args.format) in TABLES
    if table and args.label is None and args.command.__name__ != "select":
        given["label"] = False
    return open_stream(args.file, **given | own)


def read_once(args, **own):
    """The blocks of a file that is read once; without a known width any index is allowed."""
    stream = opened(args, cache=False, **own)
    return stream if stream.n_columns else opened(args, cache=False, n_features=ANY_WIDTH, **own)


def refuse_written(args, *options: str) -> None:
    """Say, before any row is read, which files could not be written or would undo each other."""
    from ofslib.datasets.cache import cache_of

    cache = cache_of(Path(args.file), getattr(args, "cache", None) or True)
    read = {"FILE": args.file, "the cache of FILE": cache, "--registry": args.registry_path}
    read |= {"--model": args.model}
    refuse_places({f"--{name}": getattr(args, name) for name in options}, read)
