"""BLAS with one thread, where the bits of a product must not depend on the machine."""

import contextlib
import threading
import weakref
from collections.abc import Iterator
from functools import cache

from threadpoolctl import ThreadpoolController


@cache
def _blas() -> ThreadpoolController:
    """The loaded libraries, numpy's and scipy's among them; to find them takes 2 ms."""
    return ThreadpoolController().select(user_api="blas")


class _OneThread:
    """The limit of BLAS, which is one of the whole process, and who needs it now."""

    def __init__(self):
        # Weak: one that Ctrl-C kept from taking itself out holds the limit until the next use only.
        self.lock, self.users, self.limit = threading.Lock(), weakref.WeakSet(), None


class _User:
    """One that needs the limit."""


_one_thread = _OneThread()


@contextlib.contextmanager
def one_blas_thread() -> Iterator[None]:
    """While it lasts, BLAS uses one thread: how it rounds may depend on the number of threads.

    Of several that overlap, in threads of Python, the last one to end takes the limit back.
    """
    user = _User()
    try:
        with _one_thread.lock:
            _one_thread.users.add(user)
            if _one_thread.limit is None:
                _one_thread.limit = _blas().limit(limits=1)
        yield
    finally:
        with _one_thread.lock:
            _one_thread.users.discard(user)
            if not _one_thread.users and _one_thread.limit is not None:
                _one_thread.limit.restore_original_limits()
                _one_thread.limit = None
