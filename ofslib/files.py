"""Writing files so that they are whole or not there."""

import os
import tempfile
from pathlib import Path


def write_whole(path: str | os.PathLike, content: str | bytes) -> None:
    """Write a file under a temporary name beside it, flush it to the disk, then rename it.

    Whoever reads `path` sees the old file or the new one, even if the machine stops in between.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    data = content.encode("utf-8") if isinstance(content, str) else content
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o666 & ~_umask())
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
