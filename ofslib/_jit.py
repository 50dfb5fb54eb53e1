"""The only place where numba is configured: one decorator for kernels, one for dispatch on kinds.

A compiled kernel is kept on disk under a key made of the sources of the modules that kernels call
into. numba alone checks only the file in which a kernel stands, so that after an edit of a shared
module it would go on running the old code of everything that calls into it.
"""

import hashlib
import os
from collections.abc import Callable
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import numba
from numba.extending import overload

# Sums may be reordered (vector units), but nan and inf keep their meaning.
REORDERED_SUMS = {"fastmath": {"reassoc", "contract"}}


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


def kernel(function: Callable) -> Callable:
    """Compile `function` on first use; keep it on disk; release the interpreter lock inside."""
    # Without a folder of its own numba would write beside the sources, where the key is no guard.
    with _cache_in(_FOLDER):
        return numba.njit(function, cache=_WRITABLE, nogil=True, error_model="numpy")


def generic(choose: Callable | None = None, **jit_options) -> Callable:
    """Make a function that picks its body by the kinds of its arguments.

    `choose` receives numba types while a kernel is compiled, and plain values when the function
    runs in Python, and returns the body. Kernels and Python thus share one definition, also with
    NUMBA_DISABLE_JIT=1.
    """
    if choose is None:
        return partial(generic, **jit_options)

    def function(*args):
        return choose(*args)(*args)

    function.__name__, function.__doc__ = choose.__name__, choose.__doc__
    overload(function, strict=False, jit_options=jit_options)(choose)
    return function


def kind(value) -> type:
    """The class of a value, or the class that a numba type stands for."""
    return getattr(value, "instance_class", type(value))


def _can_write(folder: Path) -> bool:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return False
    return os.access(folder, os.W_OK)


_FOLDER = cache_folder()
_WRITABLE = _can_write(_FOLDER)
