"""Ctrl-C, where it has to wait: while something is changed that cannot be half changed."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager


class _Held:
    """What takes the place of Python's answer to Ctrl-C: it counts."""

    def __init__(self):
        self.came = []

    def __call__(self, number, frame):
        self.came.append(number)


@contextmanager
def interrupts_held() -> Iterator[list]:
    """Hold Ctrl-C back to the end of the block; gives the list of those that came meanwhile."""
    usual = signal.getsignal(signal.SIGINT)
    if isinstance(usual, _Held):
        yield usual.came
    elif usual is None or threading.current_thread() is not threading.main_thread():
        yield []  # Python interrupts no other thread
    else:
        held = _Held()
        signal.signal(signal.SIGINT, held)
        try:
            yield held.came
        finally:
            signal.signal(signal.SIGINT, usual)
            if held.came:
                signal.raise_signal(signal.SIGINT)
