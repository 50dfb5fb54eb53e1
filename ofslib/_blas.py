"""BLAS with one thread, where the bits of a product must not depend on the machine."""

import contextlib
import threading
from collections.abc import Iterator
from functools import cache

from threadpoolctl import ThreadpoolController

# The limit is one of the whole process: of several users that overlap, in threads of Python, the
# last one to end takes it back.
_lock, _users, _limits = threading.Lock(), [], []


@cache
def _blas() -> ThreadpoolController:
    """The loaded libraries, numpy's and scipy's among them; to find them takes 2 ms."""
    return ThreadpoolController().select(user_api="blas")


@contextlib.contextmanager
def one_blas_thread() -> Iterator[None]:
    """While it lasts, BLAS uses one thread: how it rounds may depend on the number of threads."""
    with _lock:
        if not _users:
            _limits.append(_blas().limit(limits=1))
        _users.append(threading.get_ident())
    try:
        yield
    finally:
        with _lock:
            _users.pop()
            if not _users:
                _limits.pop().restore_original_limits()
