# What the rules share: limits of this machine, what a run depends on, and tidying up after a kill.
import json
import os
import shutil
import socket
from pathlib import Path

import psutil

from ofslib._files import write_whole

OWNER = Path(".snakemake/owner.json")
# More slots than any machine has: Snakemake then gives a job all that there are.
WHOLE_MACHINE = 1_000_000
CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
CHANGES = {"scale": work.scale, "real_data": work.real_data, "seed": work.seed}


def memory_mb():
    """Four fifths of the memory that this machine or container has."""
    limits = [psutil.virtual_memory().total]
    for name in ("memory.max", "memory/memory.limit_in_bytes"):
        try:
            limits.append(int(Path(os.sep, "sys", "fs", "cgroup", name).read_text()))
        except (OSError, ValueError):
            pass
    return int(0.8 * min(limits) / 2**20)


def bound_by_machine():
    """Let no more jobs run at once than the machine has cores and memory for.

    `--cores 8` then does no harm on a small machine; `--resources slots=... mem_mb=...` overrides.
    """
    if workflow.is_main_process and workflow.nodes is None:
        cores = workflow.global_resources["_cores"].value
        if cores is not None and workflow.global_resources.get("slots").value is None:
            # Without slots left, Snakemake would solve a program for what to run every second, as
            # long as it believes in idle cores.
            workflow.register_resource("_cores", min(cores, CORES))
        for name, limit in {"slots": CORES, "mem_mb": memory_mb()}.items():
            if workflow.global_resources.get(name).value is None:
                workflow.register_resource(name, limit)


def remember_owner():
    """Write down who holds the lock of the working directory."""
    me = psutil.Process()
    write_whole(OWNER, json.dumps([socket.gethostname(), me.pid, me.create_time()]))


def drop_stale_lock():
    """Remove the lock of a run on this machine that was killed and could not do so itself."""
    if not (workflow.is_main_process and OWNER.exists()):
        return
    try:
        host, pid, created = json.loads(OWNER.read_text())
    except ValueError:
        return
    if host != socket.gethostname() or is_alive(pid, created):
        return
    claimed = OWNER.with_suffix(f".{os.getpid()}")
    try:
        OWNER.rename(claimed)  # only one of two processes that start now succeeds
    except FileNotFoundError:
        return
    shutil.rmtree(OWNER.with_name("locks"), ignore_errors=True)
    claimed.unlink()


def is_alive(pid, created):
    try:
        return psutil.Process(pid).create_time() == created
    except psutil.NoSuchProcess:
        return False


def make_again_what_a_kill_left():
    """Do as --rerun-incomplete says; Snakemake has no place to set it in a Snakefile."""
    workflow.dag_settings.force_incomplete = True


def all_files(wildcards):
    """Everything that the configuration names."""
    make_again_what_a_kill_left()
    records = [f"resources/{name}.json" for name in work.datasets]
    figures = [file for entry in work.entries for file in (*work.figures(entry), drawn(entry))]
    return ["report.html", *records, *figures]


def attempt(record):
    """Number of this attempt to fetch: it grows after a failed one, so that the job runs again."""
    try:
        last = json.loads(Path(record).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return 1
    again = last["status"] != "fetched" and work.real_data != "none"
    return last["attempt"] + again


def run_inputs(kind):
    """What the result of a setting depends on, besides its notebook."""

    def inputs(wildcards):
        make_again_what_a_kill_left()
        setting = work.setting(wildcards.entry, wildcards.setting, kind)
        inputs = {"library": project.sources(*setting.needs)}
        if setting.dataset:
            inputs["record"] = f"resources/{setting.dataset}.json"
        return inputs

    return inputs


def run_parameters(kind):
    """Parameters of the notebook that runs a setting.

    They follow from the wildcards alone: Snakemake does not notice a change of parameters that are
    derived from the files of the job.
    """

    def parameters(wildcards):
        entry, name = wildcards.entry, wildcards.setting
        setting = work.setting(entry, name, kind)
        output = str(work.result(entry, name, kind))
        given = {"spec": setting.spec, "output": output, "folder": "resources"}
        given["record"] = f"resources/{setting.dataset}.json" if setting.dataset else None
        # In a fixed order of the keys, so that equal settings are recognised as such.
        return json.loads(json.dumps(given, sort_keys=True))

    return parameters


def run_memory(wildcards):
    return work.setting(wildcards.entry, wildcards.setting).mem_mb


def run_slots(wildcards):
    """One, or all if the run itself measures times."""
    metrics = work.setting(wildcards.entry, wildcards.setting).spec["metrics"]
    return WHOLE_MACHINE if "time_s" in metrics else 1


def figure_inputs(entry):
    """The results that a table or figure shows, and the sources that draw it."""
    return {
        "notebook": work.notebook(entry),
        "results": work.inputs(entry),
        "times": work.inputs(entry, "time"),
        "library": project.sources(work.notebook(entry)),
        "published": work.published(entry) or [],
    }


def drawn(entry):
    """Stamp of a drawn entry: the figures of a fresh checkout are there, and are made again."""
    return f"results/{work.scale}/{entry}.drawn"


def figure_parameters(entry):
    """Parameters of a figure notebook."""
    changes = {"real_data": work.real_data, "seed": work.seed}
    output = f"figures/{entry}"
    return {"entry": entry, "scale": work.scale, "changes": changes, "output": output}


def print_summary():
    """Say in the end what was made and what is missing."""
    print(f"Made at scale {work.scale}: figures/ and report.html")
    for name in work.datasets:
        record = Path(f"resources/{name}.json")
        found = json.loads(record.read_text(encoding="utf-8")) if record.exists() else {}
        if found.get("status") == "not fetched":
            print(f"Missing data set {name}: not fetched ({found['reason']}) {found['detail']}")


bound_by_machine()
drop_stale_lock()
