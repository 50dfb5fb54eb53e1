"""This machine as the workflow sees it: its cores, its memory, and who works in a folder."""

import json
import os
import platform
import shutil
import socket
from pathlib import Path
from typing import BinaryIO

import psutil

try:
    import fcntl
except ImportError:  # Windows: the record alone says who is there
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


def claim(owner: Path) -> BinaryIO:
    """Be the one run of this folder, as long as the file that is returned is open.

    Snakemake locks files, not the folder: it lets two runs of different files begin, and the first
    that ends removes the locks of both.

    Raises
    ------
    FolderInUse
        If another process has it; what that has written down stays as it is.
    """
    owner.parent.mkdir(parents=True, exist_ok=True)
    file = open(owner, "a+b")
    host, pid, created = _owner(file) or (None, 0, 0.0)
    here = host == socket.gethostname() and pid != os.getpid()
    if not _lock(file) or (here and _is_alive(pid, created)):
        file.close()
        raise FolderInUse(
            f"another run, process {pid} on {host}, works in this folder; let it end ({owner})"
        )
    me = psutil.Process()
    # In place: another file would not be locked.
    file.truncate(0)
    file.write(json.dumps([socket.gethostname(), me.pid, me.create_time()]).encode())
    file.flush()
    return file


def drop_stale_lock(owner: Path, locks: Path) -> None:
    """Remove the lock of a run on this machine that was killed and could not do so itself."""
    try:
        file = open(owner, "r+b")
    except FileNotFoundError:
        return
    with file:
        found = _owner(file)
        if found is None or found[0] != socket.gethostname():
            return
        if _lock(file) and not _is_alive(*found[1:]):
            shutil.rmtree(locks, ignore_errors=True)


def _owner(file: BinaryIO) -> list | None:
    """Host, process and its time of creation; None if that is not to be read."""
    file.seek(0)
    try:
        host, pid, created = json.loads(file.read())
        return [str(host), int(pid), float(created)]
    except (ValueError, TypeError):
        return None


def _lock(file: BinaryIO) -> bool:
    """Whether no other process holds the file; it is given back when closed, or with a kill."""
    try:
        if fcntl:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a file system without locks
        pass
    return True


def _is_alive(pid: int, created: float) -> bool:
    # Another process may have got the number of one that is gone.
    try:
        return psutil.Process(pid).create_time() == created
    except psutil.NoSuchProcess:
        return False
