"""Data sets: from a row of the registry to checked files, arrays, or blocks of rows.

`registry` reads the table, `fetch` brings the files of a row, `load` gives them as arrays, and
`open_stream` goes through a file of any size in blocks of rows, in constant memory.
"""

from importlib import import_module

from ofslib._files import CorruptFile
from ofslib.datasets.registry import registry

# Imported when first asked for: each start of the workflow reads the registry, and to import what
# reads files would cost it a second. Type checkers read __init__.pyi instead.
_HOMES = {
    "Dataset": "readers",
    "NotObtainable": "download",
    "Stream": "stream",
    "fetch": "download",
    "load": "readers",
    "open_stream": "stream",
}

__all__ = ["CorruptFile", "registry", *_HOMES]


def __getattr__(name: str):
    if name in _HOMES:
        return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__():
    return sorted({*globals(), *__all__})
