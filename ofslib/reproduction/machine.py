"""This machine as the workflow sees it: its cores, its memory, and who works in a folder."""

import json
import os
import shutil
import socket
from pathlib import Path

import psutil

from ofslib._files import write_whole

CGROUP = Path(os.sep, "sys", "fs", "cgroup")


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()


def memory_mb(cgroup: Path = CGROUP) -> int:
    """Four fifths of the memory that this machine or container has."""
    limits = [psutil.virtual_memory().total]
    for name in ("memory.max", "memory/memory.limit_in_bytes"):
        try:
            limits.append(int((cgroup / name).read_text()))
        except (OSError, ValueError):
            pass
    return int(0.8 * min(limits) / 2**20)


def remember_owner(owner: Path) -> None:
    """Write down that this process holds the lock of the working directory."""
    me = psutil.Process()
    write_whole(owner, json.dumps([socket.gethostname(), me.pid, me.create_time()]))


def drop_stale_lock(owner: Path, locks: Path) -> None:
    """Remove the lock of a run on this machine that was killed and could not do so itself."""
    try:
        host, pid, created = json.loads(owner.read_text())
    except (FileNotFoundError, ValueError):
        return
    if host != socket.gethostname() or _is_alive(pid, created):
        return
    claimed = owner.with_suffix(f".{os.getpid()}")
    try:
        owner.rename(claimed)  # only one of two processes that start now succeeds
    except FileNotFoundError:
        return
    shutil.rmtree(locks, ignore_errors=True)
    claimed.unlink()


def _is_alive(pid: int, created: float) -> bool:
    # Another process may have got the number of one that is gone.
    try:
        return psutil.Process(pid).create_time() == created
    except psutil.NoSuchProcess:
        return False
