"""The only place where numba is configured: for kernels, for dispatch on kinds, for instructions.

A compiled kernel is kept on disk under a key made of the sources of the modules that kernels call
into. numba alone checks only the file in which a kernel stands, so that after an edit of a shared
module it would go on running the old code of everything that calls into it.
"""

import gc
import hashlib
import os
import pickle
import sys
import threading
import time
import warnings
from collections.abc import Callable
from contextlib import contextmanager
from functools import cache, cached_property, partial
from pathlib import Path

import numba
import numpy as np
from numba.core import caching, cgutils, types
from numba.core.codegen import JITCodeLibrary, ll
from numba.core.compiler import Compiler, Flags
from numba.core.errors import TypingError
from numba.core.imputils import impl_ret_borrowed
from numba.core.registry import CPUDispatcher
from numba.core.targetconfig import ConfigStack
from numba.extending import intrinsic, lower_builtin, overload, type_callable
from numba.np.arrayobj import populate_array

# Sums may be reordered (vector units), but nan and inf keep their meaning.
REORDERED_SUMS = {"fastmath": {"reassoc", "contract"}}
llvm = cgutils.ir  # the module that writes LLVM's language


def source_key(folder: Path = Path(__file__).parent) -> str:
    """Digest of this file and of all shared kernels; it names the folder of compiled code.

    An algorithm calls these and itself, never another algorithm. numba watches its own file, which
    is why its tuples and its loop over the rows stand there, and are not handed to a shared loop.
    """
    digest = hashlib.sha256(numba.__version__.encode())
    for file in (folder / "_jit.py", *sorted(folder.glob("kernels/*.py"))):
        digest.update(file.read_bytes())
    return digest.hexdigest()[:16]


def cache_folder() -> Path:
    """Folder of compiled kernels: below NUMBA_CACHE_DIR, else below the user's cache folder."""
    user = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "ofslib"
    return Path(os.environ.get("NUMBA_CACHE_DIR") or user / "numba") / source_key()


@contextmanager
def _cache_in(folder: Path):
    before = numba.config.CACHE_DIR
    numba.config.CACHE_DIR = str(folder)
    try:
        yield
    finally:
        numba.config.CACHE_DIR = before


class _Cache(caching.FunctionCache):
    """numba's, but what cannot be kept or read is compiled again."""

    def load_overload(self, sig, target_context):
        found = None
        try:
            found = super().load_overload(sig, target_context)
        except OSError as error:
            _say_once(f"cannot be read ({error})")
        return found

    def save_overload(self, sig, data):
        try:
            super().save_overload(sig, data)
        except OSError as error:
            _say_once(f"cannot be written ({error})")


class _CheckedFiles(caching.IndexDataCacheFile):
    """numba's files, each behind a checksum: what is damaged is neither unpickled nor run."""

    def save(self, key, data):
        super().save(key, (key, data))

    def load(self, key):
        # A file may be left of what an index said that is lost.
        found, data = super().load(key) or (None, None)
        return data if found == key else None

    def _dump(self, content):
        content = super()._dump((self._source_stamp, content))
        return hashlib.sha256(content).digest() + content

    def _save_index(self, overloads):
        self._save_data(self._index_name, overloads)

    def _load_index(self):
        return self._load_data(self._index_name) or {}

    def _load_data(self, name):
        try:
            content = Path(self._data_path(name)).read_bytes()
        except FileNotFoundError:
            return None
        if hashlib.sha256(content[32:]).digest() != content[:32]:
            _say_once("is damaged")
            return None
        stamp, content = pickle.loads(content[32:])
        return content if stamp == self._source_stamp else None


@cache
def _say_compiling() -> None:
    if sys.stderr.isatty():
        sys.stderr.write("ofslib: compiling, once for each method and form of rows ...\n")


@cache
def _say_once(trouble: str) -> None:
    warnings.warn(f"compiled code in {_FOLDER} {trouble}: it is compiled again", stacklevel=2)


class _Part(JITCodeLibrary):
    """Code that only other code contains: as a part of that it is optimised and translated."""

    def _optimize_final_module(self):
        pass

    def _finalize_final_module(self):
        # What it shares with the code that contains it
        shared = self.codegen._create_empty_module("shared")
        for found in self._final_module.global_variables:
            if found.name.startswith("_ZN08NumbaEnv"):
                pointer = llvm.GlobalVariable(shared, cgutils.voidptr_t, found.name)
                pointer.linkage, pointer.initializer = "common", cgutils.voidptr_t(None)
        self._codegen._add_module(ll.parse_assembly(str(shared)))
        self._codegen._engine.finalize_object()
        self._finalized = True

    def get_pointer_to_function(self, name):
        self._ensure_finalized()
        return 0


class _Flags(Flags):
    """numba's, told apart by what a kernel hands on to what it calls.

    Else each lookup of an operation reads all options, and for a kernel that Python calls is
    compiled once more what is there for one that only kernels call.
    """

    __slots__ = ()
    handed_on = "nrt", "fastmath", "error_model", "boundscheck", "debuginfo", "forceinline"

    def __hash__(self):
        return hash(_Flags)

    def __eq__(self, other):
        same = (getattr(self, name) == getattr(other, name) for name in self.handed_on)
        return isinstance(other, Flags) and all(same)


class _Compiler(Compiler):
    """numba's, with flags that are compared fast."""

    def __init__(self, typingctx, targetctx, library, args, return_type, flags, locals):
        super().__init__(typingctx, targetctx, library, args, return_type, _Flags(flags), locals)


class _WholeCompiler(_Compiler):
    """Of what Python calls; who waits for long is told why."""

    patience = 2.0  # seconds left, of all that is compiled
    new_objects = 100_000  # after which it is searched for garbage; often, that takes an eighth

    def compile_extra(self, func):
        began, timer = time.monotonic(), threading.Timer(max(self.patience, 0.0), _say_compiling)
        timer.daemon = True
        timer.start()
        usual = gc.get_threshold()
        gc.set_threshold(usual[0] and max(usual[0], self.new_objects), *usual[1:])
        try:
            return super().compile_extra(func)
        finally:
            gc.set_threshold(*usual)
            timer.cancel()
            _WholeCompiler.patience -= time.monotonic() - began


class _PartCompiler(_Compiler):
    def compile_extra(self, func):
        self.state.library = _Part(self.state.targetctx.codegen(), func.__qualname__)
        return super().compile_extra(func)


class _Called(CPUDispatcher):
    """A kernel as other kernels call it: Python cannot, which is a quarter of the compilation."""

    def get_call_template(self, args, kws):
        # A literal would be a type of its own, for which all is compiled once more.
        named = {name: types.unliteral(arg) for name, arg in kws.items()}
        found = super().get_call_template(tuple(map(types.unliteral, args)), named)
        result = self.overloads[tuple(found[2])].signature.return_type
        has_arrays = self.targetctx.data_model_manager[result].contains_nrt_meminfo()
        if has_arrays and not (self.targetoptions["_nrt"] and ConfigStack().top().nrt):
            name = self.py_func.__name__
            message = (
                f"{name} returns arrays: it and what calls it have to be kernels that allocate"
            )
            raise TypingError(message)
        return found


class _Kernel(CPUDispatcher):
    """A kernel as Python calls it."""

    @cached_property
    def called(self):
        """The same as other kernels call it; what calls it is kept, and holds all of its code."""
        options = self.options | {"cache": False, "no_cpython_wrapper": True}
        called = numba.njit(self.py_func, **options | {"pipeline_class": _PartCompiler})
        called.__class__ = _Called
        return called

    @property
    def _numba_type_(self):
        return types.Dispatcher(self.called)


def kernel(
    function: Callable | None = None, *, inline: bool = False, allocates: bool = True
) -> Callable:
    """Compile `function` on first use; keep it on disk; release the interpreter lock inside.

    A call with an array counts references, which costs some 4 ns for each array that it hands over,
    also in a tuple. With `inline` the function becomes part of each kernel that calls it. Without
    `allocates` nothing is counted, as whoever calls it keeps the arrays; it can then make no array,
    nor copy one part of an array over another, nor return one.
    """
    if function is None:
        return partial(kernel, inline=inline, allocates=allocates)
    options = {"cache": _WRITABLE, "nogil": True, "error_model": "numpy"}
    options["inline"] = "always" if inline else "never"
    options["_nrt"] = allocates
    options["no_cfunc_wrapper"] = True  # nobody takes a kernel's address
    options["pipeline_class"] = _WholeCompiler
    # Without a folder of its own numba would write beside the sources, where the key is no guard.
    with _cache_in(_FOLDER):
        compiled = numba.njit(function, **options)
    if isinstance(compiled, CPUDispatcher):
        compiled.__class__, compiled.options = _Kernel, options
    kept = getattr(compiled, "_cache", None)
    if isinstance(kept, caching.FunctionCache):
        kept.__class__, kept._cache_file.__class__ = _Cache, _CheckedFiles
    return compiled


def generic(
    choose: Callable | None = None, *, inline: bool = False, allocates: bool = False, **jit_options
) -> Callable:
    """Make a function that picks its body by the kinds of its arguments; options as for kernels.

    `choose` receives numba types while a kernel is compiled, and plain values when the function
    runs in Python, and returns the body. Kernels and Python thus share one definition, also with
    NUMBA_DISABLE_JIT=1.
    """
    if choose is None:
        return partial(generic, inline=inline, allocates=allocates, **jit_options)

    def function(*args):
        return choose(*args)(*args)

    function.__name__, function.__doc__ = choose.__name__, choose.__doc__
    jit_options |= {"_nrt": allocates, "no_cfunc_wrapper": True, "pipeline_class": _PartCompiler}
    how = {"inline": "always" if inline else "never", "strict": False}
    overload(function, jit_options=jit_options, **how)(choose)
    return function


def instruction(build: Callable) -> Callable:
    """Where it is compiled, let a function of one or two arguments be what `build` writes for LLVM.

    `build` is given LLVM's builder and the arguments: numbers of type uint64, as is the result, and
    arrays of bytes as the address of the first one. The function itself is what Python does.
    """

    def typed(*kinds):
        def generate(context, builder, signature, values):
            pairs = zip(signature.args, values, strict=True)
            values = [
                context.make_array(kind)(context, builder, value).data
                if isinstance(kind, types.Array)
                else value
                for kind, value in pairs
            ]
            return build(builder, *values)

        return types.uint64(*kinds), generate

    def decorate(function):
        if numba.config.DISABLE_JIT:
            return function
        numbers = {1: lambda context, a: typed(a), 2: lambda context, a, b: typed(a, b)}
        return intrinsic(numbers[function.__code__.co_argcount])

    return decorate


def nth(stacked, c):
    """What stands at place c of each array of a nested named tuple, as the same kind of tuple.

    Nothing is copied, and kernels do not test c. It is no `generic`: that would type and compile
    an index for each array wherever it is used.
    """
    if isinstance(stacked, tuple):
        return type(stacked)(*(nth(part, c) for part in stacked))
    return stacked[c]


@type_callable(nth)
def _type_of_nth(context):
    return lambda stacked, c: _nth_type(stacked)


def _nth_type(stacked):
    if isinstance(stacked, types.Array):
        return stacked.copy(ndim=stacked.ndim - 1)
    return types.BaseTuple.from_types(map(_nth_type, stacked.types), stacked.instance_class)


@lower_builtin(nth, types.Array, types.Integer)
@lower_builtin(nth, types.BaseNamedTuple, types.Integer)
def _generate_nth(context, builder, signature, values):
    stacked, place = values
    c = context.cast(builder, place, signature.args[1], types.intp)
    found = _built_nth(context, builder, signature.args[0], stacked, c)
    return impl_ret_borrowed(context, builder, signature.return_type, found)


def _built_nth(context, builder, stacked, value, c):
    if not isinstance(stacked, types.Array):
        parts = zip(stacked.types, cgutils.unpack_tuple(builder, value), strict=True)
        parts = [_built_nth(context, builder, *part, c) for part in parts]
        return context.make_tuple(builder, _nth_type(stacked), parts)
    array = context.make_array(stacked)(context, builder, value)
    one = context.make_array(_nth_type(stacked))(context, builder)
    shape, strides = (cgutils.unpack_tuple(builder, part) for part in (array.shape, array.strides))
    first = cgutils.pointer_add(builder, array.data, builder.mul(c, strides[0]), array.data.type)
    own = {"shape": shape[1:], "strides": strides[1:], "itemsize": array.itemsize}
    populate_array(one, data=first, meminfo=array.meminfo, parent=array.parent, **own)
    return one._getvalue()


def kind(value) -> type:
    """The class of a value, or the class that a numba type stands for."""
    if isinstance(value, types.Record):
        return np.void
    return getattr(value, "instance_class", type(value))


def _can_write(folder: Path) -> bool:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return False
    return os.access(folder, os.W_OK)


_FOLDER = cache_folder()
_WRITABLE = _can_write(_FOLDER)
