"""The only place where numba is configured: kernels, and functions that choose a body by type.

Compiled kernels are kept on disk, in a folder named by a digest of the modules that kernels call
into. numba alone checks only the file in which a kernel stands: after an edit of a shared module it
would go on running the old code of everything that calls into it.

This module needs nothing but public numba. `_fast_compile` makes the first fit of a method two to
three times faster; without it the same kernels are compiled, only more slowly.
"""

import hashlib
import os
import sys
import tempfile
import warnings
from collections.abc import Callable
from functools import cache, partial, wraps
from pathlib import Path

import numba
import numpy as np
from llvmlite import ir as llvm  # noqa: F401 (for those who write an `instruction`)
from numba import types
from numba.extending import intrinsic, overload

# Sums may be reordered (vector units), but nan and inf keep their meaning.
REORDERED_SUMS = {"fastmath": {"reassoc", "contract"}}


def source_key(folder: Path = Path(__file__).parent) -> str:
    """Digest of the compiler's settings and of all shared kernels; it names the cache folder.

    An algorithm calls these and itself, never another algorithm. numba watches its own file, which
    is why its tuples and its loop over the rows stand there, and are not handed to a shared loop.
    """
    digest = hashlib.sha256(numba.__version__.encode())
    for name in ("_jit.py", "_fast_compile.py", "kernels/*.py"):
        for file in sorted(folder.glob(name)):
            digest.update(file.read_bytes())
    return digest.hexdigest()[:16]


def cache_folder() -> Path | None:
    """Folder of compiled kernels: below NUMBA_CACHE_DIR, else below the user's cache folder.

    None, with a warning, where nothing can be written, or where the user has no home.
    """
    try:
        folder = Path(os.environ.get("NUMBA_CACHE_DIR") or _user_folder()) / source_key()
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except (OSError, RuntimeError) as error:  # a RuntimeError says that there is no home
        warnings.warn(f"compiled code is not kept, set NUMBA_CACHE_DIR ({error})", stacklevel=2)
        return None
    return folder


def _user_folder() -> Path:
    user = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(user) / "ofslib" / "numba"


def _load_fast_compile(folder: Path | None):
    """The module that compiles faster, or None where plain numba is wanted or needed."""
    if numba.config.DISABLE_JIT or os.environ.get("OFSLIB_PLAIN_NUMBA") == "1":
        return None
    try:
        from ofslib import _fast_compile

        _fast_compile.test_once(folder)
    except Exception as error:  # whatever has changed in numba
        warnings.warn(
            f"first fits take two to three times as long: {error}. OFSLIB_PLAIN_NUMBA=1 does the "
            "same without this warning",
            stacklevel=2,
        )
        return None
    return _fast_compile


@cache
def _say_compiling() -> None:
    if sys.stderr.isatty():
        sys.stderr.write("ofslib: compiling, once for each method and form of rows ...\n")


def kernel(
    function: Callable | None = None, *, inline: bool = False, allocates: bool = True
) -> Callable:
    """Compile `function` on first use; keep it on disk; release the interpreter lock inside.

    Where another kernel calls it, it is compiled as a part of that, without an interface to Python.
    With `inline` it is copied to where it is called before anything is compiled. A call with an
    array counts references, which costs some 4 ns for each array that it hands over, also in a
    tuple. Without `allocates` nothing is counted, as whoever calls it keeps the arrays; it can then
    make no array, nor copy one part of an array over another, nor return one. (Plain numba counts
    all the same.)
    """
    if function is None:
        return partial(kernel, inline=inline, allocates=allocates)
    if numba.config.DISABLE_JIT:
        return function
    # numba reads its setting here. Without it numba would write beside the sources, where the key
    # is no guard.
    before, numba.config.CACHE_DIR = numba.config.CACHE_DIR, str(_FOLDER)
    try:
        is_kept = _FOLDER is not None
        compiled = numba.njit(function, cache=is_kept, **_options(allocates, is_part=False))
    finally:
        numba.config.CACHE_DIR = before
    if _FAST is not None and is_kept:
        _FAST.check_files(compiled)

    @wraps(function)
    def run(*args):
        return compiled(*args)

    run.compiled = compiled
    _compile_as_part(run, lambda *args, **named: function, inline, allocates)
    return run


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

    @wraps(choose)
    def run(*args):
        return choose(*args)(*args)

    _compile_as_part(run, choose, inline, allocates, **jit_options)
    return run


def _options(allocates: bool, is_part: bool) -> dict:
    # Nobody takes the address of a kernel (no_cfunc_wrapper).
    options = {"error_model": "numpy", "nogil": True, "no_cfunc_wrapper": True}
    return options if _FAST is None else options | _FAST.options(allocates, is_part)


def _compile_as_part(function, choose, inline, allocates, **jit_options):
    """Let kernels that call `function` contain what `choose` returns for the types of arguments."""

    @wraps(choose)
    def choose_and_say(*args, **named):
        _say_compiling()
        return choose(*args, **named)

    # What is copied is compiled to find its types only: the references are counted by the other.
    options = _options(allocates or inline, is_part=not inline) | jit_options
    how = {"inline": "always" if inline else "never", "strict": False}
    overload(function, jit_options=options, **how)(choose_and_say)


def instruction(build: Callable) -> Callable:
    """Where it is compiled, let a function of one or two arguments be what `build` writes for LLVM.

    `build` is given LLVM's builder and the arguments: numbers of type uint64, as is the result, and
    arrays of bytes as the address of the first one. The function itself is what Python does.
    """

    def generate(context, builder, signature, values):
        address = (
            context.make_array(static_type)(context, builder, value).data
            if isinstance(static_type, types.Array)
            else value
            for static_type, value in zip(signature.args, values, strict=True)
        )
        return build(builder, *address)

    def decorate(function):
        if numba.config.DISABLE_JIT:
            return function
        if function.__code__.co_argcount == 1:
            return intrinsic(lambda context, a: (types.uint64(a), generate))
        return intrinsic(lambda context, a, b: (types.uint64(a, b), generate))

    return decorate


def static_type(value) -> type:
    """The class of a value, or the class that a numba type stands for."""
    if isinstance(value, types.Record):
        return np.void
    return getattr(value, "instance_class", type(value))


_FOLDER = None if numba.config.DISABLE_JIT else cache_folder()
_FAST = _load_fast_compile(_FOLDER)
