"""Compile kernels two to three times faster than numba alone, by private parts of numba.

`_jit` imports this module only where numba's version is one of `TESTED`, and uses it only after
`test_once`. Nothing else of the library imports private parts of numba.

- What only kernels call has no interface to Python, and is optimised and translated as a part of
  the kernels that contain it, not once more for itself.
- The compiler's options are compared by those that matter for what is called.
- Compiled code on disk stands behind a checksum: numba would unpickle and run a damaged file.
"""

import gc
import hashlib
import pickle
import sys
import warnings
from functools import cache
from pathlib import Path

import numba
import numpy as np
from numba.core import caching, cgutils, codegen, compiler, errors, targetconfig
from numba.extending import register_jitable

# The versions of numba, from the first to below the second, that all tests have passed with.
# CONTRIBUTING.md says how the second is raised.
TESTED = (0, 61), (0, 69)


class _CheckedFiles(caching.IndexDataCacheFile):
    """A file for each kernel and types of arguments, behind a checksum, without numba's index."""

    def _path(self, key):
        named = hashlib.sha256(repr((self._source_stamp, key)).encode()).hexdigest()[:16]
        return Path(f"{self._index_path.removesuffix('nbi')}{named}.nbc")

    def save(self, key, data):
        content = self._dump((key, data))
        try:
            with self._open_for_write(self._path(key)) as file:
                file.write(hashlib.sha256(content).digest() + content)
        except OSError as error:
            _warn_once(f"cannot be written to {self._cache_path} ({error})")

    def load(self, key):
        try:
            content = self._path(key).read_bytes()
        except OSError:  # not there, or not to be read
            return None
        if hashlib.sha256(content[32:]).digest() != content[:32]:
            _warn_once(f"in {self._cache_path} is damaged")
            return None
        found, data = pickle.loads(content[32:])
        return data if found == key else None


@cache
def _warn_once(trouble: str) -> None:
    warnings.warn(f"compiled code {trouble}: it is compiled again", stacklevel=2)


class _Part(codegen.JITCodeLibrary):
    """Code that only other code contains: it is optimised and translated as a part of that."""

    def _optimize_final_module(self):
        pass

    def _finalize_final_module(self):
        # What it shares with the code that contains it: where its environment will stand
        shared = self.codegen._create_empty_module("shared")
        for found in self._final_module.global_variables:
            if found.name.startswith("_ZN08NumbaEnv"):
                pointer = cgutils.ir.GlobalVariable(shared, cgutils.voidptr_t, found.name)
                pointer.linkage, pointer.initializer = "common", cgutils.voidptr_t(None)
        self._codegen._add_module(codegen.ll.parse_assembly(str(shared)))
        self._codegen._engine.finalize_object()
        self._finalized = True


class _Flags(compiler.Flags):
    """numba's, told apart by the options that a kernel hands on to what it calls.

    Otherwise each lookup of an operation compares all options, and a body that both a kernel of
    Python's and a part call is compiled twice.
    """

    __slots__ = ()
    handed_on = "nrt", "fastmath", "error_model", "boundscheck", "debuginfo", "forceinline"

    def __hash__(self):
        return hash(_Flags)

    def __eq__(self, other):
        same = (getattr(self, name) == getattr(other, name) for name in self.handed_on)
        return isinstance(other, compiler.Flags) and all(same)


class _WholeCompiler(compiler.Compiler):
    """Compiles what Python calls."""

    new_objects = 100_000  # after which garbage is looked for; an eighth of the time otherwise

    def __init__(self, typingctx, targetctx, library, args, return_type, flags, locals):
        super().__init__(typingctx, targetctx, library, args, return_type, _Flags(flags), locals)

    def compile_extra(self, func):
        usual = gc.get_threshold()
        gc.set_threshold(usual[0] and max(usual[0], self.new_objects), *usual[1:])
        try:
            return super().compile_extra(func)
        finally:
            gc.set_threshold(*usual)


class _PartCompiler(_WholeCompiler):
    """Compiles what kernels call."""

    def compile_extra(self, func):
        self.state.library = _Part(self.state.targetctx.codegen(), func.__qualname__)
        found = super().compile_extra(func)
        result = self.state.targetctx.data_model_manager[found.signature.return_type]
        caller = targetconfig.ConfigStack().top()
        # One of them would count a reference that the other does not know of.
        if result.contains_nrt_meminfo() and caller.nrt != self.state.flags.nrt:
            raise errors.TypingError(
                f"{func.__name__} returns arrays: either it and what calls it allocate, or neither"
            )
        return found


def options(allocates: bool, is_part: bool) -> dict:
    """Options for `numba.njit`, and for parts those for `numba.extending.overload`."""
    return {"_nrt": allocates, "pipeline_class": _PartCompiler if is_part else _WholeCompiler}


def check_files(compiled) -> None:
    """Put what is kept of a compiled function behind checksums."""
    compiled._cache._cache_file.__class__ = _CheckedFiles


def test_once(folder: Path | None) -> None:
    """Raise an error if numba is none of the tested ones, or compiles otherwise than it should.

    It takes half a second. A file in `folder` says for which Python it has succeeded.
    """
    version = tuple(map(int, numba.__version__.split(".")[:2]))
    if not TESTED[0] <= version < TESTED[1]:
        raise ImportError(f"numba {numba.__version__} is not tested")
    passed = folder and folder / f"tested-{sys.hexversion:x}"
    if passed and passed.exists():
        return

    @register_jitable(**options(allocates=False, is_part=True))
    def doubled(x):
        if x < 0.0:
            raise ValueError("negative")
        return 2.0 * x

    @numba.njit(**options(allocates=True, is_part=False))
    def summed(x):
        return doubled(x[0]) + doubled(x[1])

    if summed(np.array([1.0, 2.0])) != 6.0:
        raise RuntimeError("its test computes something else")
    np.testing.assert_raises(ValueError, summed, np.array([1.0, -2.0]))
    if passed:
        passed.touch()
