"""Execute one notebook for a Snakemake rule.

papermill runs it. The kernel is the interpreter of this process and talks over Unix sockets in a
private folder: nothing that a user has installed or configured for Jupyter or IPython takes part,
and many notebooks can start at once without a fight for ports.
"""
# Snakemake puts code of its own before this file, so imports from __future__ cannot be used.

import logging
import os
import signal
import sys
import tempfile
import threading
import time
from contextlib import suppress
from itertools import takewhile

import papermill
import psutil
from jupyter_client.kernelspec import KernelSpec
from jupyter_client.manager import AsyncKernelManager
from traitlets.config import Config

from ofslib.reproduction import project, provenance, store

THREADS = ("NUMBA_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
# For glibc: a block of rows that was freed is used again by the next one, where each would else be
# given back and asked for page by page, which takes as long as to draw half of its numbers.
MEMORY = ("MALLOC_MMAP_THRESHOLD_", "MALLOC_TRIM_THRESHOLD_")
# A user's habits for interactive work, which would change what a notebook does.
PERSONAL = ("PYTHONSTARTUP", "MPLBACKEND")
# prctl(PR_SET_PDEATHSIG, SIGKILL). ipykernel looks for its parent too, but in a Python thread,
# which has to wait while compiled code holds the interpreter.
DIE_WITH_PARENT = "__import__('ctypes').CDLL(None).prctl(1, 9);"


class Kernel(AsyncKernelManager):
    """Start this interpreter, whatever kernelspecs are installed."""

    @property
    def kernel_spec(self) -> KernelSpec:
        argv = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
        if sys.platform == "linux":
            argv.append(f"--IPKernelApp.exec_lines={DIE_WITH_PARENT}")
        return KernelSpec(argv=argv, display_name="Python 3", language="python")


def execute(notebook: str, executed: str, parameters: dict) -> None:
    """Run a notebook; `executed` is kept up to date cell by cell, also if one of them fails."""
    short = "/tmp" if os.access("/tmp", os.W_OK) else None  # paths of sockets have a limit
    with tempfile.TemporaryDirectory(prefix="nb-", dir=short, ignore_cleanup_errors=True) as folder:
        for name in PERSONAL:
            os.environ.pop(name, None)
        os.environ |= dict.fromkeys(THREADS, "1") | dict.fromkeys(MEMORY, str(2**30))
        # An own IPython folder keeps out the user's profile and its start-up files.
        os.environ["IPYTHONDIR"] = f"{folder}/ipython"
        kernel = {"connection_file": f"{folder}/kernel.json"}
        if os.name == "posix":
            kernel |= {"transport": "ipc", "ip": f"{folder}/k"}  # the sockets are k-1, k-2, ...
        papermill.execute_notebook(
            notebook,
            executed,
            parameters,
            kernel_name="python3",
            language="python",
            progress_bar=False,
            log_output=True,
            iopub_timeout=60,  # the default of 4 s is short on a busy machine
            kernel_manager_class=Kernel,
            config=Config({"Kernel": kernel}),
        )


def main(job) -> None:
    """Run the notebook of a Snakemake job; its log has all that is said meanwhile."""
    given, notebook, log = dict(job.params.parameters), job.params.notebook, job.log.text
    minutes, begun = job.resources.runtime, time.monotonic()
    if "spec" in given and store.put_together(given["spec"], job.output[0], store.folder()):
        return  # all of it is stored
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped from outside"))
    threading.Thread(target=end_with_snakemake, daemon=True).start()
    seconds = min(60 * minutes, threading.TIMEOUT_MAX)
    limit = threading.Timer(seconds, signal.raise_signal, [signal.SIGTERM])
    limit.daemon = True
    limit.start()
    screen = os.dup(2)
    with open(log, "wb") as file:  # a crash of the kernel is told there only
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    logging.basicConfig(format="%(asctime)s %(levelname)s %(message)s")
    logging.getLogger("papermill").setLevel(logging.INFO)
    try:
        execute(notebook, job.log.notebook, given)
    except (Exception, SystemExit) as error:
        logging.error("%s: %s", type(error).__name__, error)
        spec = given.get("spec", {})
        names = filter(None, [spec.get("experiment"), spec.get("name"), given.get("entry")])
        why = [f"{', '.join(names)}: {notebook} failed, see {log}:", *last_said(error)]
        if type(error).__name__ == "DeadKernelError":  # of nbclient, on which papermill rests
            mb = job.resources.mem_mb
            why[1:] = [f"the kernel died, perhaps of too little memory: {mb} MB were foreseen"]
        if time.monotonic() - begun >= 60 * minutes:
            why[1:] = [f"not ended after {minutes:g} minutes, the time_limit of config/config.yaml"]
        os.write(screen, "\n".join([*why, ""]).encode())
        sys.exit(1)
    if "entry" in given:
        work = project.load(scale=given["scale"], **given["changes"])
        provenance.note(work, given["entry"], store.shown(work, given["entry"], store.folder()))


def last_said(error: BaseException) -> list[str]:
    """The last line of an error; of one in a cell what was raised there, and the notes on it."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    raised = [line.startswith(f"{getattr(error, 'ename', '')}: ") for line in lines]
    return lines[max((i for i, it in enumerate(raised) if it), default=-1) :][:5]


def end_with_snakemake() -> None:
    """End this process soon after Snakemake, which starts it through a shell, was killed."""
    me = psutil.Process()
    shells = takewhile(lambda p: p.name() in ("sh", "bash", "dash", "zsh"), me.parents())
    family = [me, *shells]
    parents = [process.ppid() for process in family]
    with suppress(psutil.NoSuchProcess):
        while [process.ppid() for process in family] == parents:
            time.sleep(1)
    signal.raise_signal(signal.SIGTERM)  # the main thread shuts the kernel down and cleans up
    time.sleep(15)
    os._exit(1)


if "snakemake" in globals():
    main(snakemake)  # noqa: F821
