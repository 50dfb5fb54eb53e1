"""Execute one notebook for a Snakemake rule.

papermill runs the notebook in this process; the kernel runs the interpreter of this process and
talks over Unix sockets in a private folder. Nothing that a user has installed or configured for
Jupyter or IPython takes part, and many notebooks can start at once without a fight for ports.
"""
# Snakemake puts code of its own before this file, so imports from __future__ cannot be used.

import json
import logging
import math
import os
import shutil
import signal
import socket
import sys
import tempfile
import threading
import time
from contextlib import ExitStack, contextmanager, suppress
from itertools import pairwise
from pathlib import Path

import papermill
import psutil
import zmq
from jupyter_client.kernelspec import KernelSpec
from jupyter_client.manager import AsyncKernelManager
from nbclient.exceptions import DeadKernelError
from papermill.exceptions import PapermillExecutionError
from traitlets import Float, Integer, Unicode
from traitlets.config import Config

from ofslib._files import write_whole
from ofslib.reproduction import project, provenance, records, store

THREAD_VARIABLES = (
    "NUMBA_NUM_THREADS",
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
)
# For glibc: a block of rows that was freed is used again by the next one, where each would else be
# given back and asked for page by page, which takes as long as to draw half of its numbers.
MEMORY_VARIABLES = dict.fromkeys(["MALLOC_MMAP_THRESHOLD_", "MALLOC_TRIM_THRESHOLD_"], str(2**30))
# A user's habits for interactive work, which would change what a notebook does.
PERSONAL_VARIABLES = ("PYTHONSTARTUP", "MPLBACKEND")
# prctl(PR_SET_PDEATHSIG, SIGKILL). ipykernel looks for its parent too, but in a Python thread,
# which has to wait while compiled code holds the interpreter.
DIE_WITH_PARENT = "__import__('ctypes').CDLL(None).prctl(1, 9);"
SHELLS = ("sh", "bash", "dash", "zsh")
logger = logging.getLogger("papermill")


class TimeLimit(Exception):
    """A notebook took longer than it may."""


class NotebookKernelManager(AsyncKernelManager):
    """Start this interpreter as the kernel, whatever kernelspecs are installed."""

    folder = Unicode(help="private folder of this kernel").tag(config=True)
    directory = Unicode(help="working directory of the kernel").tag(config=True)
    text_log = Unicode(help="file for what compiled code prints, if any").tag(config=True)
    threads = Integer(1, help="threads the kernel may use").tag(config=True)
    seconds = Float(math.inf, help="time after which the kernel is killed").tag(config=True)

    @property
    def kernel_spec(self) -> KernelSpec:
        argv = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
        if sys.platform == "linux":
            argv.append(f"--IPKernelApp.exec_lines={DIE_WITH_PARENT}")
        return KernelSpec(argv=argv, display_name="Python 3", language="python")

    async def start_kernel(self, **kwargs) -> None:
        kwargs["env"] = self._environment()
        kwargs["cwd"] = self.directory
        with ExitStack() as stack:
            if self.text_log:
                # A crash of the interpreter is told here only.
                stream = stack.enter_context(open(self.text_log, "ab"))
                kwargs["stdout"] = kwargs["stderr"] = stream
            await super().start_kernel(**kwargs)
        if self.seconds < math.inf:
            kernel = psutil.Process(self.provisioner.pid)
            timer = threading.Timer(min(self.seconds, threading.TIMEOUT_MAX), _kill, [kernel])
            timer.daemon = True
            timer.start()

    def _environment(self) -> dict[str, str]:
        kept = {k: v for k, v in os.environ.items() if k not in PERSONAL_VARIABLES}
        threads = dict.fromkeys(THREAD_VARIABLES, str(self.threads))
        # An own IPython folder keeps out the user's profile and its start-up files.
        return {
            **kept,
            **threads,
            **MEMORY_VARIABLES,
            "IPYTHONDIR": str(Path(self.folder, "ipython")),
        }


def execute(
    notebook, executed, parameters, threads=1, log=None, cwd=None, seconds=math.inf
) -> None:
    """Run `notebook` with `parameters`; write it as run to `executed` and its progress to `log`.

    `executed` is kept up to date cell by cell, so that after an exception it shows the failing
    cell. `cwd` is the working directory of the kernel, `seconds` the time that it has: then it is
    killed, with what it has started. One call at a time per process.
    """
    begun = time.monotonic()
    Path(executed).parent.mkdir(parents=True, exist_ok=True)
    with _text_log(log), _private_folder() as folder:
        try:
            papermill.execute_notebook(
                str(notebook),
                str(executed),
                parameters,
                kernel_name="python3",
                language="python",
                progress_bar=False,
                log_output=True,
                iopub_timeout=60,  # the default of 4 s is short on a busy machine
                kernel_manager_class=NotebookKernelManager,
                config=_kernel_config(folder, threads, log, cwd, seconds),
            )
        except PapermillExecutionError as error:
            logger.error("%s", error)  # the traceback of the cell; ours would only hide it
            raise
        except DeadKernelError as error:
            if time.monotonic() - begun < seconds:
                logger.exception("The kernel died")
                raise
            logger.error("Killed: it took longer than %g s", seconds)
            raise TimeLimit(f"not ended after {seconds:g} s") from error
        except (KeyboardInterrupt, SystemExit):
            logger.error("Stopped from outside")
            raise
        except Exception:
            logger.exception("Failed outside the notebook's code")
            raise


def main(job) -> None:
    """Run the notebook of a Snakemake job; see the log files for what went wrong."""
    signal.signal(signal.SIGTERM, _exit)
    threading.Thread(target=_stop_with_workflow, args=(_chain(),), daemon=True).start()
    parameters, notebook = dict(job.params.parameters), job.params.notebook
    log, minutes = job.log, job.resources.runtime
    options = {"threads": job.threads, "log": log.text, "seconds": 60 * minutes}
    spec = parameters.get("spec")
    if spec and store.put_together(spec, job.output[0], store.folder()):
        return  # all of it is stored
    try:
        execute(notebook, log.notebook, parameters, **options)
    except TimeLimit:
        spec = spec or {}
        names = [spec.get("experiment"), spec.get("name"), parameters.get("entry")]
        sys.exit(
            f"{', '.join(filter(None, names))}: {notebook} had not ended after "
            f"{minutes:g} minutes, its time_limit (its own or config/config.yaml's), see {log.text}"
        )
    except Exception as error:
        sys.exit("\n".join([f"{notebook} failed, see {log.text}:", *last_said(error)]))
    if not spec:
        write_down(job, parameters)


def last_said(error: Exception) -> list[str]:
    """The last line of an error; of one in a cell what was raised there, and the notes on it."""
    lines = str(error).strip().splitlines()
    raised = [line.startswith(f"{getattr(error, 'ename', '')}: ") for line in lines]
    return lines[max((i for i, it in enumerate(raised) if it), default=-1) :][:5]


def write_down(job, given: dict) -> None:
    """Write the stamp of a drawn entry: the record of its figures."""
    work = project.load(scale=given["scale"], **given["changes"])
    lacking = {
        record["name"]: records.why(record)
        for record in records.missing(
            run.dataset
            for run in (*work.shown(given["entry"]), *work.shown(given["entry"], "time"))
            if run.dataset
        )
    }
    runs = store.shown(work, given["entry"], store.folder())
    figures = [figure for figure in job.output if figure != job.output.drawn]
    facts = provenance.of_figure(given["scale"], runs, lacking, figures, **given["changes"])
    write_whole(job.output.drawn, json.dumps(facts, indent=1) + "\n")


def _kill(kernel: psutil.Process) -> None:
    """End a kernel and what it has started."""
    with suppress(psutil.NoSuchProcess):
        for process in [*kernel.children(recursive=True), kernel]:
            with suppress(psutil.NoSuchProcess):
                process.kill()


def _kernel_config(folder: Path, threads: int, log, cwd, seconds: float) -> Config:
    config = Config()
    kernel = config.NotebookKernelManager
    kernel.folder = str(folder)
    kernel.directory = os.path.abspath(cwd or ".")
    kernel.text_log = os.path.abspath(log) if log else ""
    kernel.threads, kernel.seconds = int(threads), float(seconds)
    kernel.connection_file = str(folder / "kernel.json")
    if _holds_sockets(folder):
        kernel.transport = "ipc"
        kernel.ip = str(folder / "k")  # the sockets are k-1, k-2, ...
    return config


@contextmanager
def _private_folder():
    folder = Path(tempfile.mkdtemp(prefix="nb-"))
    if not _holds_sockets(folder) and Path("/tmp").is_dir():
        folder.rmdir()  # TMPDIR is too deep for the path of a socket
        folder = Path(tempfile.mkdtemp(prefix="nb-", dir="/tmp"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _holds_sockets(folder: Path) -> bool:
    """Tell whether Unix sockets work here; the length of paths and some file systems forbid."""
    if not (hasattr(socket, "AF_UNIX") and zmq.has("ipc")):
        return False
    path = folder / "k-0"
    try:
        with socket.socket(socket.AF_UNIX) as probe:
            probe.bind(str(path))
    except OSError:
        return False
    path.unlink()
    return True


@contextmanager
def _text_log(log):
    if log is None:
        yield
        return
    Path(log).parent.mkdir(parents=True, exist_ok=True)
    Path(log).write_bytes(b"")
    handler = logging.FileHandler(log, mode="a", encoding="utf-8")  # the kernel appends too
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        logger.setLevel(level)
        logger.removeHandler(handler)
        handler.close()


def _chain() -> list[psutil.Process]:
    """Return this process and its ancestors up to Snakemake, which starts it through a shell."""
    chain = [psutil.Process()]
    for ancestor in chain[0].parents():
        chain.append(ancestor)
        if ancestor.name() not in SHELLS:
            break
    return chain


def _stop_with_workflow(chain: list[psutil.Process]) -> None:
    """End this process soon after one of `chain` is gone, as after `kill -9` of Snakemake."""
    while _unbroken(chain):
        time.sleep(1)
    os.kill(os.getpid(), signal.SIGTERM)  # the main thread shuts the kernel down and cleans up
    time.sleep(15)
    os._exit(1)


def _unbroken(chain: list[psutil.Process]) -> bool:
    # A dead parent may linger as a zombie, but its children have another parent at once.
    try:
        return all(child.ppid() == parent.pid for child, parent in pairwise(chain))
    except psutil.NoSuchProcess:
        return False


def _exit(signum, _frame) -> None:
    sys.exit(128 + signum)


if "snakemake" in globals():
    main(snakemake)  # noqa: F821
