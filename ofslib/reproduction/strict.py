"""Faults of a configuration that are known before a run: all of them, in one message.

`project.load` checks what the files say. What they name is imported by `dry_run`, in a process of
its own: a module that crashes or hangs harms nothing.
"""

import json
import os
import subprocess
import sys

from ofslib.reproduction.configuration import ConfigurationError
from ofslib.reproduction.project import Project

LIMIT_S = 120  # that importing all classes may take


def check(work: Project) -> None:
    """Raise ConfigurationError if a run of the project would fail for what is known before it.

    Raises
    ------
    ConfigurationError
        All faults, one a line: the file, the entry, the key, and what is wrong with it.
    """
    changes = {"scale": work.scale, "figures": work.committed, "real_data": work.real_data}
    # A user's own modules may stand beside the Snakefile.
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-m", "ofslib.reproduction.dry_run", json.dumps(changes)]
    options = {"cwd": work.root, "env": environment, "stdout": subprocess.PIPE}
    try:
        child = subprocess.run(command, timeout=LIMIT_S, check=False, **options)
        told, end = child.stdout, f"ends Python with status {child.returncode}"
    except subprocess.TimeoutExpired as late:
        told, end = late.stdout or b"", f"takes more than {LIMIT_S} s"
    *_, last = told.decode().splitlines() or ["ofslib.reproduction"]
    # Names, each before it is imported, and then the faults.
    faults = json.loads(last) if last.startswith("[") else [f"importing {last} {end}"]
    if faults:
        raise ConfigurationError("\n".join(faults))
