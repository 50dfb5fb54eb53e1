"""Data sets: from a row of the registry to checked files, arrays, or blocks of rows.

`registry` reads the table, `fetch` brings the files of a row, `load` gives them as arrays, and
`open_stream` goes through a file of any size in blocks of rows, in constant memory.
"""

from ofslib._files import CorruptFile
from ofslib.datasets.download import NotObtainable, fetch
from ofslib.datasets.load import Dataset, load, open_stream
from ofslib.datasets.registry import registry
from ofslib.datasets.stream import Stream

__all__ = [
    "CorruptFile",
    "Dataset",
    "NotObtainable",
    "Stream",
    "fetch",
    "load",
    "open_stream",
    "registry",
]
