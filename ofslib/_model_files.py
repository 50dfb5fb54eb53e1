"""Model files: arrays (npz) and JSON behind a checksum. Nothing of them is unpickled or run.

A file is an npz archive that is not compressed. Its member `head.json` names the class and holds
the attributes; arrays stand in members of their own. The archive's comment is the SHA-256 of all
bytes before it.
"""

import hashlib
import json
import math
import os
import struct
import sys
import zipfile
from collections import deque
from contextlib import contextmanager
from typing import Any

import numpy as np
import scipy.sparse as sp

import ofslib
from ofslib._files import refuse_device, whole_file

FORMAT, VERSION = "ofslib model", 1
_DIGITS = 64  # of the checksum
_PIECE = 1 << 20  # bytes that are read at a time
_ARRAYS = "biufcUS"  # kinds of arrays that are stored as they are
_GENERATORS = ("PCG64", "PCG64DXSM", "MT19937", "Philox", "SFC64")
# What zipfile, json and numpy raise on bytes that are not theirs.
_DAMAGE = (zipfile.BadZipFile, struct.error, ValueError, TypeError, LookupError, EOFError)
_DAMAGE += (RuntimeError, OverflowError, AttributeError, MemoryError)
# Arrays of a state that hold numbers of features; how many are in use says its `size` or `count`.
_INDICES = ("index", "heap", "support", "touched")


class Saved:
    """Base of what can be kept in a file."""

    def _parts(self) -> dict[str, Any]:
        """What is kept, by its names."""
        return dict(self.__dict__)

    def _restore(self, parts: dict[str, Any]) -> None:
        """Become what was kept; ValueError if that cannot be, whatever the parts are."""
        self.__dict__.update(parts)

    def _space(self, shape: tuple[int, ...], dtype: np.dtype, order: str) -> np.ndarray:
        """Memory for an array that is read."""
        return np.empty(shape, dtype, order=order)

    def save(self, path) -> None:
        """Write all that was set and learned to one file, without pickle; see `load`.

        To go on from the file equals never having stopped, bit for bit. The file is an npz with
        JSON and a checksum, whole or not there at all; the name is used as given, and folders above
        it are made. TypeError if an attribute is of a kind that such a file cannot hold.
        """
        written = _Writer(self)
        whole = {"format": FORMAT, "version": VERSION, "ofslib": ofslib.__version__}
        whole |= {"class": _reference(type(self)), "parts": written.parts}
        with whole_file(path) as file:
            with zipfile.ZipFile(file, "w") as archive:
                archive.writestr(zipfile.ZipInfo("head.json"), json.dumps(whole))
                for i, array in enumerate(written.arrays):
                    # A date of 1980, so that equal models are equal files.
                    info = zipfile.ZipInfo(f"{i}.npy")
                    with archive.open(info, "w", force_zip64=True) as stream:
                        np.lib.format.write_array(stream, array, (1, 0), allow_pickle=False)
                archive.comment = bytes(_DIGITS)
            checksum = _checksum(file)
            file.seek(-_DIGITS, os.SEEK_END)
            file.write(checksum)

    @classmethod
    def load(cls, path):
        """Read what `save` of this class wrote; nothing in the file is unpickled or run.

        OSError if the file cannot be read. ValueError if it is not whole, if a bit of it has
        changed, or if it holds another class or is of a newer version. Parameters that it lacks,
        as it is of an older version, have their defaults.
        """
        return read(cls, path)


def read(cls, path, **given):
    """An object of `cls` from a file; `given` are attributes that it has before it is read."""
    with _file(path) as file:
        with _named(path, " is damaged, cut short, or not written by save"):
            archive, head = _opened(file)
        other = f" (written by ofslib {head['ofslib']}, this is {ofslib.__version__})"
        other = other if head["ofslib"] != ofslib.__version__ else ""
        with _named(path, after=other):
            if head["version"] != VERSION:
                raise ValueError(f"its format is version {head['version']!r}, not {VERSION}")
            _refuse_other_class(cls, head["class"])
            reader = _Reader(archive, cls)
            new = reader.made(cls, head["parts"], given)
    # Errors of ours are not taken for damage.
    with _named(path, after=other, errors=(ValueError, MemoryError)):
        for part, parts in reader.objects:
            part._restore(parts)
    return new


def class_of(path, part: str = "") -> str:
    """Name of the class that a file, or a part of it, holds; ValueError if it is not whole.

    It is empty if the file has no such part, or the part is no object.
    """
    with _file(path) as file, _named(path, " is damaged, cut short, or not written by save"):
        head = _opened(file)[1]
        code = head["parts"].get(part) if part else {"object": head["class"]}
        found = code.get("object", "") if isinstance(code, dict) else ""
        return found.rpartition(":")[2]


def _file(path):
    refuse_device(path)
    return open(path, "rb")


def _opened(file) -> tuple[zipfile.ZipFile, dict]:
    """The archive and its head."""
    if file.seek(0, os.SEEK_END) < _DIGITS or _checksum(file) != file.read(_DIGITS):
        raise ValueError("its checksum is wrong")
    archive = zipfile.ZipFile(file)
    members = archive.infolist()
    # What is read takes no more memory than the file does.
    if sum(member.file_size for member in members) > file.seek(0, os.SEEK_END):
        raise ValueError("its members overlap")
    if any(member.compress_type for member in members):
        raise ValueError("its members are compressed")
    head = json.loads(archive.read("head.json"))
    if head["format"] != FORMAT:
        raise ValueError(f"its format is {head['format']!r}")
    return archive, {name: head[name] for name in ("version", "ofslib", "class", "parts")}


def _refuse_other_class(cls, found: str) -> None:
    module, _, name = found.rpartition(":")
    # A class of a script has another module where the script is imported.
    if name != cls.__qualname__ or len({module, cls.__module__} - {"__main__"}) > 1:
        where = f" of {module}, not of {cls.__module__}" if name == cls.__qualname__ else ""
        raise ValueError(
            f"expected a saved {cls.__qualname__}, got a saved {name}{where}: call {name}.load"
        )


@contextmanager
def _named(path, what: str = "", after: str = "", errors: tuple = _DAMAGE):
    """Say which file it is that cannot be read, and why."""
    try:
        yield
    except errors as error:
        raise ValueError(f"{os.fspath(path)}{what}: {error}{after}") from error


def refuse_unlike(found, fresh, p: int, name: str = "it") -> None:
    """ValueError if what was read is not of the kind of the same part of a fresh object.

    Types, and types and shapes of arrays, are to be the same; where a fresh array has the length 0
    or 1 it may have grown, not shrunk. Kernels check no index: those of features are to be below
    `p`, and no more in use than there are.
    """
    both_numbers = isinstance(found, float) and isinstance(fresh, float)
    if type(found) is not type(fresh) and not both_numbers:
        raise ValueError(f"{name} is a {type(found).__name__}, not a {type(fresh).__name__}")
    fresh = fresh.grown(found) if hasattr(fresh, "grown") else fresh
    if isinstance(fresh, np.ndarray):
        lengths = zip(found.shape, fresh.shape, strict=False)
        same = found.dtype == fresh.dtype and found.ndim == fresh.ndim
        if not same or any(a < b or (a > b > 1) for a, b in lengths):
            kinds = [f"{array.dtype} of the shape {array.shape}" for array in (found, fresh)]
            raise ValueError(f"{name} is {kinds[0]}, not {kinds[1]}")
    elif isinstance(fresh, tuple) and fresh:
        if len(found) != len(fresh):
            raise ValueError(f"{name} has {len(found)} parts, not {len(fresh)}")
        names = getattr(fresh, "_fields", range(len(fresh)))
        for field, part, new in zip(names, found, fresh, strict=True):
            refuse_unlike(part, new, p, f"{name}.{field}")
        if hasattr(fresh, "_fields"):
            _refuse_indices(found._asdict(), p, name)


def _refuse_indices(parts: dict[str, Any], p: int, name: str) -> None:
    """ValueError if kernels could leave their arrays: by the parts of one named tuple."""
    given = [part for field, part in parts.items() if field in _INDICES]
    # A named tuple of one of these names has been looked at.
    indices = [np.asarray(part) for part in given if not hasattr(part, "_fields")]
    used = [*zip(indices, parts.get("size", parts.get("count", ())), strict=False)]
    used += [(parts["rows"], parts["held"][0])] if "held" in parts else []
    room, place = len(indices[0]) if indices else 0, parts.get("place", np.zeros(0))
    if not (
        all(index.dtype.kind in "iu" or not index.size for index in indices)
        and all(((0 <= index) & (index < p)).all() for index in indices)
        and all(0 <= size <= len(array) for array, size in used)
        and ((-room <= place) & (place <= room)).all()
    ):
        raise ValueError(f"{name} has an index out of bounds, for {p} features")


def _checksum(file) -> bytes:
    """The SHA-256, as text, of all but what stands in its place; the file is read up to there."""
    left, digest = file.seek(0, os.SEEK_END) - _DIGITS, hashlib.sha256()
    file.seek(0)
    while left > 0:
        piece = file.read(min(_PIECE, left))
        left -= len(piece)
        digest.update(piece)
    return digest.hexdigest().encode()


def _reference(cls: type) -> str:
    return f"{cls.__module__}:{cls.__qualname__}"


def _found(reference: str, owner: type) -> Any:
    """The class of this name, of a module that is imported already; else None.

    Its module may have been run as a script, as that of `owner` then was.
    """
    module, _, name = reference.partition(":")
    for place in (sys.modules.get(module), sys.modules[owner.__module__]):
        for part in name.split("."):
            # Not by getattr, which may import or compute something.
            place = getattr(place, "__dict__", {}).get(part)
        if isinstance(place, type):
            return place
    return None


class _Writer:
    """Turns values into JSON and a list of arrays."""

    def __init__(self, owner: Saved):
        self.owner = type(owner)
        self.arrays: list[np.ndarray] = []
        self.places: dict[int, int] = {}
        self.parts = self.all_of(owner)

    def all_of(self, value: Saved, prefix: str = "") -> dict[str, Any]:
        """The parts of an object, by their names."""
        return {name: self.code(part, prefix + name) for name, part in value._parts().items()}

    def code(self, value, name: str) -> Any:
        """What stands for a value in the JSON."""
        kind = type(value)
        if value is None or kind in (bool, int, float, str):
            return value
        if kind is list:
            return self.items(value, name)
        if kind is tuple:
            return {"tuple": self.items(value, name)}
        if kind is deque:
            return {"deque": self.items(value, name), "maxlen": value.maxlen}
        if kind is dict:
            pairs = [[self.code(k, name), self.code(v, f"{name}[{k!r}]")] for k, v in value.items()]
            return {"dict": pairs}
        if kind is np.ndarray and value.dtype.kind in _ARRAYS:
            return {"array": self.place(value)}
        if kind is np.ndarray and value.dtype == object:
            return {"objects": self.items(value.ravel(), name), "shape": list(value.shape)}
        if isinstance(value, np.generic) and value.dtype.kind in _ARRAYS:
            return {"scalar": self.place(np.asarray(value))}
        if kind is sp.csr_array:
            parts = (value.data, value.indices, value.indptr)
            return {"csr": self.items(parts, name), "shape": list(value.shape)}
        if kind is np.random.RandomState:
            return {"random_state": self.code(value.get_state(legacy=False), name)}
        if kind is np.random.Generator:
            return {"generator": self.code(value.bit_generator.state, name)}
        if _found(_reference(kind), self.owner) is kind:
            if isinstance(value, tuple) and hasattr(kind, "_fields"):
                fields = zip(kind._fields, value, strict=True)
                parts = {field: self.code(item, f"{name}.{field}") for field, item in fields}
                return {"named_tuple": _reference(kind), "fields": parts}
            if isinstance(value, Saved):
                return {"object": _reference(kind), "fields": self.all_of(value, f"{name}.")}
        raise TypeError(
            f"{name} is of the type {kind.__qualname__}, which a model file cannot hold: only "
            "numbers, text, arrays of these, lists, tuples, dicts, random generators, and named "
            "tuples that are defined at the top of a module."
        )

    def items(self, values, name: str) -> list:
        return [self.code(value, name) for value in values]

    def place(self, array: np.ndarray) -> int:
        """The number of an array; one array under two names stays one."""
        if id(array) not in self.places:
            self.places[id(array)] = len(self.arrays)
            self.arrays.append(array)
        return self.places[id(array)]


class _Reader:
    """Makes the values again that `_Writer` wrote."""

    def __init__(self, archive: zipfile.ZipFile, owner: type):
        self.archive, self.owner = archive, owner
        self.arrays: dict[int, np.ndarray] = {}
        # What they are to be restored from; an object comes after its parts.
        self.objects: list[tuple[Saved, dict[str, Any]]] = []

    def made(self, cls, parts: dict[str, Any], given: dict[str, Any]):
        """A new object of the class, not yet restored."""
        new = object.__new__(cls)
        new.__dict__.update(given)
        self.objects.append((new, {name: self.value(part, new) for name, part in parts.items()}))
        return new

    def value(self, code, of: Saved) -> Any:
        """What a piece of JSON stands for; arrays get the memory that `of` gives them."""
        if isinstance(code, list):
            return self.items(code, of)
        if not isinstance(code, dict):
            return code
        kind, content = next(iter(code.items()))
        if kind == "tuple":
            return tuple(self.items(content, of))
        if kind == "deque":
            return deque(self.items(content, of), code["maxlen"])
        if kind == "dict":
            return {self.value(key, of): self.value(item, of) for key, item in content}
        if kind == "array":
            if content not in self.arrays:
                self.arrays[content] = self.array(content, of)
            return self.arrays[content]
        if kind == "objects":
            items = np.empty(len(content), object)
            items[:] = self.items(content, of)
            return items.reshape(code["shape"])
        if kind == "scalar":
            return self.array(content, of)[()]
        if kind == "csr":
            made = sp.csr_array(tuple(self.items(content, of)), shape=tuple(code["shape"]))
            made.check_format(full_check=True)
            return made
        if kind == "random_state":
            generator = np.random.RandomState(0)
            generator.set_state(self.value(content, of))
            return generator
        if kind == "generator":
            state = self.value(content, of)
            if state["bit_generator"] not in _GENERATORS:
                raise ValueError(f"it has a generator {state['bit_generator']!r}")
            bits = getattr(np.random, state["bit_generator"])()
            bits.state = state
            return np.random.Generator(bits)
        if kind not in ("named_tuple", "object"):
            raise ValueError(f"it has a {kind} {content}")
        cls, fields = _found(content, self.owner), code["fields"]
        if cls is None:
            raise ValueError(f"it has a {content}, which is in no module that was imported")
        if kind == "named_tuple" and issubclass(cls, tuple):
            if list(fields) != list(cls._fields):
                raise ValueError(f"its {content} has the fields {', '.join(fields)}")
            return tuple.__new__(cls, [self.value(item, of) for item in fields.values()])
        if kind == "object" and issubclass(cls, Saved):
            return self.made(cls, fields, {})
        raise ValueError(f"it has a {kind} {content}")

    def items(self, codes, of: Saved) -> list:
        return [self.value(code, of) for code in codes]

    def array(self, place: int, of: Saved) -> np.ndarray:
        """One member. How long it is has to be what its head says, before memory is taken."""
        member = self.archive.getinfo(f"{place}.npy")
        with self.archive.open(member) as stream:
            if np.lib.format.read_magic(stream) != (1, 0):
                raise ValueError(f"{member.filename} is no array of this format")
            shape, fortran, dtype = np.lib.format.read_array_header_1_0(stream)
            left = math.prod(shape) * dtype.itemsize
            if dtype.kind not in _ARRAYS or min(shape, default=0) < 0 or not dtype.itemsize:
                raise ValueError(f"{member.filename} has the type {dtype} and the shape {shape}")
            if left != member.file_size - stream.tell():
                raise ValueError(f"{member.filename} has not the size that its shape {shape} needs")
            found = of._space(shape, dtype, "F" if fortran else "C")
            flat = memoryview(found.reshape(-1, order="A").view(np.uint8))
            while left:
                count = stream.readinto(flat[-left:][:_PIECE])
                if not count:
                    raise EOFError(f"{member.filename} is cut short")
                left -= count
        return found
