"""Ctrl-C, where it has to wait: while something is changed that cannot be half changed."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def interrupts_held() -> Iterator[None]:
    """Hold Ctrl-C back to the end of the block, and raise its signal then, however many came."""
    usual, came = signal.getsignal(signal.SIGINT), []
    # Python interrupts no other thread; and who lets it end the process loses what is half changed.
    if threading.current_thread() is not threading.main_thread() or not callable(usual):
        yield
        return
    signal.signal(signal.SIGINT, lambda number, frame: came.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, usual)
        if came:
            signal.raise_signal(signal.SIGINT)
