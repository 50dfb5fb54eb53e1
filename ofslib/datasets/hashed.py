"""Which words of a text were hashed to some columns."""

from collections import defaultdict
from collections.abc import Iterable

from sklearn.utils import murmurhash3_32

from ofslib.datasets.compressed import open_text

_LINES = 1 << 26  # bytes of lines that are looked at together, as many names occur often


def words_of(path, n_features: int, columns: Iterable[int]) -> dict[int, list[str]]:
    """The words of a LIBSVM or Vowpal Wabbit text that share a column, for some of the columns.

    Words after a namespace are written with it: `namespace^word`.
    """
    found: dict[int, set[bytes]] = {column: set() for column in columns}
    with open_text(path) as file:
        while lines := file.readlines(_LINES):
            for name in _names(lines):
                column = abs(murmurhash3_32(name)) % n_features
                if column in found:
                    found[column].add(name)
    return {
        column: sorted(name.decode(errors="replace") for name in names)
        for column, names in found.items()
    }


def _names(lines: list[bytes]) -> set[bytes]:
    """The different names of features in some lines."""
    words: dict[bytes, set[bytes]] = defaultdict(set)  # of each namespace
    for line in lines:
        label, *spaces = line.split(b"|")
        if not spaces:  # LIBSVM
            words[b""].update(label.partition(b"#")[0].split()[1:])
        for space in spaces:
            names = space.split()
            prefix = b"" if space[:1].isspace() or not names else names.pop(0) + b"^"
            words[prefix].update(names)
    return {prefix + name.partition(b":")[0] for prefix, names in words.items() for name in names}
