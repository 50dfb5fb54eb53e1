# What type checkers see of __init__.py, which imports little before it is asked for.
from ofslib._files import CorruptFile as CorruptFile
from ofslib.datasets.download import NotObtainable as NotObtainable
from ofslib.datasets.download import fetch as fetch
from ofslib.datasets.readers import Dataset as Dataset
from ofslib.datasets.readers import load as load
from ofslib.datasets.registry import registry as registry
from ofslib.datasets.stream import Stream as Stream
from ofslib.datasets.stream import open_stream as open_stream
