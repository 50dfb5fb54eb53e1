"""Model files: arrays (npz) and JSON behind a checksum. Nothing of them is unpickled or run.

A file is an npz archive that is not compressed. Its member `head.json` names the class, and holds
the parameters, what was learned, and the coefficients by themselves; arrays stand in members of
their own. The archive's comment is the SHA-256 of all bytes before it. `preprocessing` of the head
is what the first look at a table learned (`Encoding` of `ofslib.datasets`), or null.

To load is to init and fill: the class makes its state from the parameters and the number of
features, and the file fills it with values of the same types and shapes.
"""

import hashlib
import json
import math
import os
import zipfile
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any, Self

import numpy as np

import ofslib
from ofslib._files import refuse_device, whole_file

FORMAT, VERSION = "ofslib model", 2
_DIGITS = 64  # of the checksum
_PIECE = 1 << 20  # bytes that are read at a time
_ARRAYS = "biufcUS"  # kinds of arrays that are stored as they are
_SECTIONS = ("parameters", "learned", "model", "checkpoint")  # of the head
_FORMAT_1 = "it is of format 1, from which a model predicts and does not go on learning"


class OtherState(ValueError):
    """The file is whole, but the class keeps what it learned in another way."""


class Saved:
    """Base of what can be kept in a file."""

    def save(self, path) -> None:
        """Write all that was set and learned to one file, without pickle; see `load`.

        To go on from the file equals never having stopped, bit for bit. The file is an npz with
        JSON and a checksum, whole or not there at all; the name is used as given, and folders above
        it are made. TypeError if an attribute is of a kind that such a file cannot hold.
        """
        write(path, self, model=self._model_alone())

    @classmethod
    def load(cls, path) -> Self:
        """Read what `save` of this class wrote; nothing in the file is unpickled or run.

        OSError if the file cannot be opened. ValueError if it is not whole, if a bit of it has
        changed, or if it holds another class or is of a newer version. Parameters that it lacks,
        as it is of an older version, have their defaults. If another version of ofslib wrote it,
        and kept there what it learned in another way, the model predicts, and raises ValueError
        when it is to go on learning.
        """
        return read(cls, path)

    def _parts(self) -> dict[str, Any]:
        """What is kept, by its names."""
        return dict(vars(self))

    def _model_alone(self) -> dict[str, Any] | None:
        """What is enough to predict or to transform."""
        return None

    def _restore(self, parts: dict[str, Any], model: dict[str, Any] | None = None) -> None:
        """Become what was kept; ValueError if that cannot be. Arrays come as `Stored`."""
        raise NotImplementedError

    def _restore_model(self, parts: dict[str, Any], model: dict[str, Any], reason: str) -> None:
        """Become a model that predicts, but does not learn, for this reason."""
        raise OtherState(reason)


def write(path, saved, model: dict | None = None, checkpoint: dict | None = None) -> None:
    """Write an object; with it what is enough to predict, or what a checkpoint needs beside it."""
    # Sorted, so that equal models are equal files.
    parts, cls, arrays = dict(sorted(saved._parts().items())), type(saved), []
    own = cls._get_param_names() if hasattr(cls, "_get_param_names") else ()
    parameters = {name: parts.pop(name) for name in own if name in parts}
    head = {"format": FORMAT, "version": VERSION, "ofslib": ofslib.__version__}
    head |= {"class": f"{cls.__module__}:{cls.__qualname__}"}
    own = (parts.pop("_encoding", None), parameters, parts, model, checkpoint)
    for section, values in zip(("preprocessing", *_SECTIONS), own, strict=True):
        head[section] = values and {n: _code(v, n, arrays) for n, v in values.items()}
    with whole_file(path) as file:
        with zipfile.ZipFile(file, "w") as archive:
            # ZipInfo is of 1980, for the same reason.
            archive.writestr(zipfile.ZipInfo("head.json"), json.dumps(head))
            for i, array in enumerate(arrays):
                with archive.open(zipfile.ZipInfo(f"{i}.npy"), "w", force_zip64=True) as stream:
                    np.lib.format.write_array(stream, array, (1, 0), allow_pickle=False)
            archive.comment = bytes(_DIGITS)
        checksum = _checksum(file)
        file.seek(-_DIGITS, os.SEEK_END)
        file.write(checksum)


def _code(value, name: str, arrays: list[np.ndarray]) -> Any:
    """The JSON that stands for a value; its arrays are added to `arrays`."""

    def each(values) -> list:
        return [_code(item, name, arrays) for item in values]

    kind = type(value)
    if isinstance(value, np.generic):
        value, kind = value.item(), type(value.item())
    if value is None or kind in (bool, int, float, str):
        return value
    if kind in (list, deque):
        return each(value)
    if kind is tuple:
        return {"tuple": each(value)}
    if kind is dict:
        return {"dict": [each(pair) for pair in value.items()]}
    if kind is np.ndarray and value.dtype.kind in _ARRAYS:
        arrays.append(value)
        return {"array": len(arrays) - 1}
    if kind is np.ndarray and value.dtype == object and value.ndim == 1:
        return {"objects": each(value)}
    if kind is np.random.RandomState:
        return {"random_state": _code(value.get_state(legacy=False), name, arrays)}
    if name.startswith("_state"):  # of which a fresh object knows the classes
        if kind is np.random.Generator:
            return _code(value.bit_generator.state, name, arrays)
        if isinstance(value, Saved) or hasattr(value, "_fields"):
            fields = value._parts() if isinstance(value, Saved) else value._asdict()
            return {"fields": {f: _code(part, f"{name}.{f}", arrays) for f, part in fields.items()}}
    raise TypeError(
        f"{name} is of the type {kind.__qualname__}, which a model file cannot hold: only "
        "numbers, text, arrays of these, lists, tuples, dicts, RandomState, and, in the state, "
        "named tuples and generators."
    )


# -------------------------------------------------- reading


class Stored:
    """An array of a file: what its head says, and that it is as long, before memory is taken."""

    def __init__(self, archive: zipfile.ZipFile, place: int):
        self._stream = stream = archive.open(f"{place}.npy")
        if np.lib.format.read_magic(stream) != (1, 0):
            raise ValueError("an array is not of this format")
        self.shape, fortran, self.dtype = np.lib.format.read_array_header_1_0(stream)
        self.order, self._start = "F" if fortran else "C", stream.tell()
        self.size, width = math.prod(self.shape), self.dtype.itemsize
        left = archive.getinfo(f"{place}.npy").file_size - self._start
        known = self.dtype.kind in _ARRAYS and width > 0 and min(self.shape, default=0) >= 0
        if not known or self.size * width != left:
            raise ValueError(f"an array has not the size of {self.dtype} {self.shape}")

    def read(self, into: np.ndarray | None = None) -> np.ndarray:
        """The array; `into` is memory for it, of its order."""
        array = np.empty(self.shape, self.dtype, self.order) if into is None else into
        left = memoryview(array.reshape(-1, order="A").view(np.uint8))
        self._stream.seek(self._start)
        while left:  # in pieces, as the archive reads a piece to memory of its own first
            if not (count := self._stream.readinto(left[:_PIECE])):
                raise EOFError("an array is cut short")
            left = left[count:]
        return array


def read(cls, path, new: Any = None, half_way: bool = False) -> Any:
    """An object of the class; `new` is one that is made already, to be restored.

    If it is to be half-way, that is a checkpoint, also what `write` was given as `checkpoint`.
    """
    with _opened(path) as (archive, head):
        other = head["ofslib"] != ofslib.__version__
        written = f" (written by ofslib {head['ofslib']}, this is {ofslib.__version__})" * other
        try:
            _refuse_other(cls, head, half_way)
            before, parameters, learned, model, checkpoint = (
                None if (section := head[name]) is None else _value({"fields": section}, archive)
                for name in ("preprocessing", *_SECTIONS)
            )
            parts = parameters | learned | ({} if before is None else {"_encoding": before})
            model, new = plain(model), cls.__new__(cls) if new is None else new
            try:
                new._restore(parts, model)
                if head["version"] == 1 and (model := new._model_alone()):
                    raise OtherState(_FORMAT_1)
            except OtherState as error:
                if model is None or not (other or head["version"] == 1 or "_kept" in parts):
                    raise
                new._restore_model(parts, model, f"{error}{written}")
            return (new, plain(checkpoint)) if half_way else new
        except Exception as error:
            raise ValueError(f"{os.fspath(path)}: {error}{written}") from error


def class_of(path) -> tuple[str, bool]:
    """Name of the class that a file holds, and whether it is a checkpoint of it."""
    with _opened(path) as (_, head):
        return head["class"].rpartition(":")[2], head["checkpoint"] is not None


@contextmanager
def _opened(path) -> Iterator[tuple[zipfile.ZipFile, dict]]:
    """The archive and its head; ValueError if they are not whole."""
    refuse_device(path)
    with open(path, "rb") as file:
        try:
            if file.seek(0, os.SEEK_END) < _DIGITS or _checksum(file) != file.read(_DIGITS):
                raise ValueError("its checksum is wrong")
            archive = zipfile.ZipFile(file)
            head = _head_of(archive, file.seek(0, os.SEEK_END))
        except Exception as error:
            what = "is damaged, cut short, or not written by save"
            raise ValueError(f"{os.fspath(path)} {what}: {error}") from error
        yield archive, head


def _head_of(archive: zipfile.ZipFile, size: int) -> dict[str, Any]:
    """The head, with all its sections."""
    # What is read takes no more memory than the file does.
    members = archive.infolist()
    if sum(m.file_size for m in members) > size or any(m.compress_type for m in members):
        raise ValueError("its members overlap or are compressed")
    head = json.loads(archive.read("head.json"))
    if head["format"] != FORMAT:
        raise ValueError(f"its format is {head['format']!r}")
    if head["version"] == 1:
        head |= {"parameters": {}, "learned": head["parts"], "model": None, "checkpoint": None}
    if not (isinstance(head["class"], str) and isinstance(head["ofslib"], str)):
        raise ValueError("its class, or its version, is no text")
    return {"preprocessing": None} | head | {name: head[name] for name in ("version", *_SECTIONS)}


def _refuse_other(cls, head: dict[str, Any], half_way: bool) -> None:
    if head["version"] not in (1, VERSION):
        raise ValueError(f"its format is version {head['version']!r}, not {VERSION}")
    if head["preprocessing"] is not None and not hasattr(cls, "_encoding"):
        raise ValueError(f"it has preprocessing, which {cls.__qualname__} does not know")
    module, _, name = head["class"].rpartition(":")
    # A class of a script has another module where the script is imported; ours may move.
    ours = module.startswith("ofslib.") and cls.__module__.startswith("ofslib.")
    alike = ours or len({module, cls.__module__} - {"__main__"}) <= 1
    if name != cls.__qualname__ or not alike:
        where = f" of {module}, not of {cls.__module__}" if name == cls.__qualname__ else ""
        raise ValueError(
            f"expected a saved {cls.__qualname__}, got a saved {name}{where}: call {name}.load"
        )
    if head["checkpoint"] is not None and not half_way:
        raise ValueError(f"it is a checkpoint of {name}, no saved model")


def _checksum(file) -> bytes:
    """The SHA-256, as text, of all but what stands in its place; the file is read up to there."""
    left, digest = file.seek(0, os.SEEK_END) - _DIGITS, hashlib.sha256()
    file.seek(0)
    while left > 0:
        piece = file.read(min(_PIECE, left))
        left -= len(piece)
        digest.update(piece)
    return digest.hexdigest().encode()


def _value(code, archive) -> Any:
    """What a piece of JSON stands for: plain data, and arrays that are not yet read."""
    if isinstance(code, list):
        return [_value(item, archive) for item in code]
    if not isinstance(code, dict):
        return code
    kind, content = next(iter(code.items()))
    if kind in ("fields", "named_tuple", "object"):  # the last two of format 1, with their class
        return {name: _value(part, archive) for name, part in code["fields"].items()}
    if kind == "array":
        return Stored(archive, content)
    content = _value(content, archive)
    if kind in ("tuple", "csr"):
        return tuple(content)
    if kind == "dict":
        return dict(content)
    if kind == "objects":
        items = np.empty(len(content), object)
        items[:] = content
        return items
    if kind == "random_state":
        generator = np.random.RandomState(0)
        generator.set_state(plain(content))
        return generator
    if kind in ("deque", "generator"):  # of format 1
        return content
    if kind == "scalar":
        return Stored(archive, content).read().item()
    raise ValueError(f"it has a {kind} {content}")


def plain(value) -> Any:
    """The same with its arrays."""
    if isinstance(value, Stored):
        return value.read()
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    return type(value)(map(plain, value)) if isinstance(value, list | tuple) else value


def longest(value) -> int:
    """The largest length of the arrays in what was found in a file."""
    if isinstance(value, Stored):
        return max(value.shape, default=0)
    parts = value.values() if isinstance(value, dict) else value
    return max(map(longest, parts), default=0) if isinstance(value, dict | tuple) else 0


def filled(found, fresh, p: int, name: str = "it") -> Any:
    """What was found in a file, in the form of the same part of a fresh object of p features.

    OtherState if types, fields, or shapes of arrays differ; where a fresh array has the length 0
    or 1 it may have grown, not shrunk. Kernels check no index: a named tuple that holds some says
    by a method `within(p)` whether all are below p, and no more in use than there are.
    """
    if isinstance(fresh, Saved) and type(found) is dict:
        fresh._restore(found)
        return fresh
    if isinstance(fresh, np.random.Generator):
        fresh.bit_generator.state = plain(found)
        return fresh
    if isinstance(fresh, deque) and type(found) is list:
        return deque(plain(found), fresh.maxlen)
    if isinstance(fresh, np.ndarray) and isinstance(found, Stored):
        lengths = zip(found.shape, fresh.shape, strict=False)
        same = found.dtype == fresh.dtype and len(found.shape) == fresh.ndim
        if not same or any(a < b or (a > b > 1) for a, b in lengths):
            kinds = [f"{array.dtype} of the shape {array.shape}" for array in (found, fresh)]
            raise OtherState(f"{name} is {kinds[0]}, not {kinds[1]}")
        return found.read()
    if isinstance(fresh, tuple) and fresh:
        is_named = hasattr(fresh, "_fields")
        names = list(fresh._fields if is_named else range(len(fresh)))
        parts = dict(enumerate(found)) if type(found) is tuple and not is_named else found
        there = list(parts) if type(parts) is dict else [type(parts).__name__]
        if there != names:
            has, needs = (", ".join(map(str, given)) for given in (there, names))
            raise OtherState(f"{name} has the parts {has}, not {needs}")
        fresh = fresh.grown(SimpleNamespace(**parts)) if hasattr(fresh, "grown") else fresh
        pairs = zip(names, fresh, strict=True)
        values = [filled(parts[part], own, p, f"{name}.{part}") for part, own in pairs]
        new = type(fresh)(*values) if is_named else tuple(values)
        if hasattr(new, "within") and not new.within(p):
            raise ValueError(f"{name} has an index out of bounds, for {p} features")
        return new
    both_numbers = isinstance(found, float) and isinstance(fresh, float)
    # An array of a state stands in a member of its own: one of objects is another thing.
    if isinstance(fresh, np.ndarray) or (type(found) is not type(fresh) and not both_numbers):
        raise OtherState(f"{name} is a {type(found).__name__}, not a {type(fresh).__name__}")
    return plain(found)
