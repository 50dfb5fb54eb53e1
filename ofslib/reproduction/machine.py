"""This machine as the workflow sees it: its cores, its memory, and who works in a folder."""

import os
import platform
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TextIO

import psutil

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

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


def kind() -> str:
    """What machine this is, without its name."""
    return f"{platform.machine()}, {os.cpu_count()} cores, {_processor()}"


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or "processor unknown"
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else "processor unknown"


class FolderInUse(Exception):
    """Another run works in this folder."""


def claim(folder: Path = Path(".snakemake")) -> TextIO:
    """Be the one run of a project, as long as the file that is returned is open.

    Snakemake locks files, not the project: it lets two runs of different files begin, and the first
    that ends removes the locks of both. The locks of a run that was killed stay. The file that this
    function locks is unlocked by the system when the run ends, however it ends. Snakemake's own
    locks are removed if it was a run of this machine that left them.

    Raises
    ------
    FolderInUse
        If another process has it.
    """
    folder.mkdir(exist_ok=True)
    owner, locks, here = folder / "owner", folder / "locks", socket.gethostname()
    file = open(owner, "a+", encoding="utf-8")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        other = owner.read_text(encoding="utf-8") or "of which nothing is known yet"
        file.close()
        raise FolderInUse(f"another run, {other}, works in this folder; let it end") from None
    except (AttributeError, OSError):  # Windows, or a file system without locks
        return file
    last = owner.read_text(encoding="utf-8")
    for lock in locks.glob("*"):
        if not last.endswith(f" on {here}"):  # of another machine
            return file
        lock.unlink()
    file.truncate(0)
    file.write(f"process {os.getpid()} on {here}")
    file.flush()
    return file


@contextmanager
def locked(file: Path) -> Iterator[None]:
    """Wait until no other process holds a file locked, and hold it."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with open(file, "a") as lock:
        with suppress(AttributeError, OSError):  # Windows, or a file system without locks
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield
