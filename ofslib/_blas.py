"""BLAS with one thread, where the bits of a product must not depend on the machine."""

import contextlib
import threading
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
        self.lock, self.users, self.limit = threading.Lock(), 0, None


_one_thread = _OneThread()


@contextlib.contextmanager
def one_blas_thread() -> Iterator[None]:
    """While it lasts, BLAS uses one thread: how it rounds may depend on the number of threads.

    Of several that overlap, in threads of Python, the last one to end takes the limit back.
    """
    with _one_thread.lock:
        if not _one_thread.users:
            _one_thread.limit = _blas().limit(limits=1)
        _one_thread.users += 1
    try:
        yield
    finally:
        with _one_thread.lock:
            _one_thread.users -= 1
            if not _one_thread.users:
                _one_thread.limit.restore_original_limits()
