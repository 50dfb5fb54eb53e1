# What the rules share: limits of this machine, what a job depends on, and what is done beforehand.
import json
import logging
import sys
import time
from functools import cache
from pathlib import Path

from ofslib.reproduction import identity, machine, plan, progress, provenance, records, strict

OWNER, LOCKS = Path(".snakemake/owner.json"), Path(".snakemake/locks")
DURATIONS = Path(".snakemake/durations.json")
# More slots than any machine has: Snakemake then gives a job all that there are.
WHOLE_MACHINE = 1_000_000
BEGUN = time.time()
CHANGES = {"scale": work.scale, "figures": work.committed}
CHANGES |= {"real_data": work.real_data, "seed": work.seed}


def bound_by_machine():
    """Let no more jobs run at once than the machine has cores and memory for.

    `--cores 8` then does no harm on a small machine; `--resources slots=... mem_mb=...` overrides.
    """
    if workflow.nodes is None:
        cores = workflow.global_resources["_cores"].value
        if cores is not None and workflow.global_resources.get("slots").value is None:
            workflow.register_resource("_cores", min(cores, machine.cores()))
        for name, limit in {"slots": machine.cores(), "mem_mb": machine.memory_mb()}.items():
            if workflow.global_resources.get(name).value is None:
                workflow.register_resource(name, limit)


@cache
def before_planning():
    """Do what has to be done before Snakemake decides which jobs to run.

    Functions that give the inputs of rules call this: they are called when the options of the
    command line are known, and nothing is decided yet.
    """
    # Files that a kill left unfinished are made again, as --rerun-incomplete says. Snakemake reads
    # a default for it from a top-level folder `profiles` or `default` only.
    workflow.dag_settings.force_incomplete = True
    # A limit on jobs per second makes Snakemake look once a second for what to run, and once more a
    # second after each job that ends: by and by half a core did nothing else. A cluster may want it.
    if workflow.nodes is None and workflow.scheduling_settings:
        workflow.scheduling_settings.max_jobs_per_timespan = None
    to_run = workflow.executor_plugin and not (workflow.dryrun or workflow.touch)
    if workflow.dryrun:
        for file in records.changed(work.datasets):
            print(f"{file} has changed: {records.WHAT_CHANGES}")
    if not (to_run and workflow.is_main_process):
        return
    if workflow.execution_settings.lock:
        try:
            workflow.owner = machine.claim(OWNER)  # held until this process ends
        except machine.FolderInUse as error:
            sys.exit(f"Error: {error}")
    if any(LOCKS.glob("*")):
        return  # of another machine
    note_drawn_before()
    for said in records.mend(work.datasets):
        print(said)
    if work.real_data == "auto":
        # Not by a job: what depends on a job is made again even if its output is the same.
        records.try_again(work.datasets)


def all_files(wildcards):
    """Everything that the configuration names."""
    figures = [file for entry in work.entries for file in (*work.figures(entry), drawn(entry))]
    return [work.report, *all_records(wildcards), *figures]


def all_records(wildcards):
    """What came of the attempts to fetch the real data sets."""
    before_planning()
    return [records.path(name) for name in work.datasets]


def fetch_script(wildcards):
    """What brings a data set; asking for its record alone tries again too."""
    before_planning()
    return "workflow/scripts/fetch.py"


def run_inputs(kind):
    """The files that the results of a setting depend on."""

    def inputs(wildcards):
        before_planning()
        setting = work.setting(wildcards.entry, wildcards.setting, kind)
        return {"record": records.path(setting.dataset)} if setting.dataset else {}

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
        given = {"spec": identity.canonical(setting.spec), "output": output}
        given["folder"] = str(records.FOLDER)
        given["record"] = records.path(setting.dataset) if setting.dataset else None
        return given

    return parameters


def run_versions(kind):
    """The versions of all that takes part in a run: if one is raised it is put together anew."""

    def versions(wildcards):
        setting = work.setting(wildcards.entry, wildcards.setting, kind)
        made_of = [result.made_of["versions"] for result in identity.results(setting.spec)]
        return dict(sorted(pair for versions in made_of for pair in versions.items()))

    return versions


def run_memory(kind):
    """Twice as much when it is tried once more: a scheduler may have stopped it for its memory."""

    def memory(wildcards, attempt):
        return attempt * work.mem_mb(work.setting(wildcards.entry, wildcards.setting, kind))

    return memory


@cache
def expected():
    """Seconds that each result takes, where this process starts the jobs."""
    starts = workflow.is_main_process and workflow.executor_plugin and not workflow.dryrun
    try:
        return plan.expected(work) if starts else {}
    except Exception as error:  # of a result that is perhaps to be made anew just now
        print(f"How long the runs take is not known ({error}): they begin in any order.")
        return {}


def run_priority(kind):
    """The longest first: what begins last should not be what all others wait for."""

    def priority(wildcards):
        return expected().get(work.result(wildcards.entry, wildcards.setting, kind).as_posix(), 0)

    return priority


def run_minutes(wildcards):
    """A resource, not a parameter: what is made is not made again because the limit is another."""
    return work.time_limit_of(wildcards.entry)


def run_slots(wildcards):
    """One, or all if the run needs the machine to itself."""
    return WHOLE_MACHINE if work.entries[wildcards.entry].spec["alone"] else 1


def run_exclusive(wildcards):
    """Under Slurm the whole node, as all slots of a single machine."""
    return "--exclusive" if run_slots(wildcards) > 1 else ""


def figure_inputs(entry):
    """The results that a table or figure shows, and the sources that draw it."""

    def inputs(wildcards):
        before_planning()
        return {
            "results": work.inputs(entry),
            "times": work.inputs(entry, "time"),
            "library": project.drawing_sources(),
            "published": work.published(entry) or [],
            "measured": work.entries[entry].spec["parameters"].get("measured", []),
        }

    return inputs


def drawn(entry):
    """Stamp of a drawn entry: the figures of a fresh checkout are there, and are made again.

    It holds the record of what they were made from.
    """
    return f"results/{work.scale}/{entry}.drawn"


def figure_parameters(entry):
    """Parameters of a figure notebook."""
    changes = {"real_data": work.real_data, "seed": work.seed}
    output = f"{work.folder}/{entry}"
    return {"entry": entry, "scale": work.scale, "changes": changes, "output": output}


def short_log():
    """What the screen shows, unless `--verbose` asks for all: see ofslib.reproduction.progress."""
    settings = workflow.output_settings
    if settings.dryrun or settings.verbose:
        return None
    for handler in logging.getLogger("snakemake.logging").handlers:
        if handler.name == "DefaultStreamHandler":
            short = progress.ShortLog(handler.formatter, DURATIONS, closing)
            handler.addFilter(short)
            handler.setFormatter(short)
            return short


def steps():
    """The jobs that this run has to do."""
    cores = workflow.global_resources.get("slots").value or 1
    for job in workflow.dag.needrun_jobs(exclude_finished=False):
        if job.output:
            share = min(job.resources.get("slots", 1), cores) / cores
            number = workflow.dag.jobid(job)
            file, rule = str(job.output[0]), job.rule.name.partition("_")[0]
            yield progress.Step(number, file, rule, share, expected().get(file))


def closing():
    """What the files that were asked for lack."""
    read = {str(file) for job in workflow.dag.jobs for file in (*job.input, *job.output)}
    concerned = [name for name in work.datasets if records.path(name) in read]
    for record in records.missing(concerned):
        yield f"Missing data set {record['name']}: {records.why(record)}. {record['detail']}"


def note_drawn_before():
    """Take what an earlier run has drawn into PROVENANCE.json, if it was killed before it could.

    Not by a job, nor in the end: where nothing is to be made neither takes place.
    """
    stamps = {entry: Path(drawn(entry)) for entry in work.entries}
    figures = {entry: work.figures(entry) for entry in stamps}
    if new := provenance.later(work.provenance, stamps, figures):
        provenance.update(work.provenance, new)


def note_drawn():
    """Take what this run has drawn into PROVENANCE.json, also if it was asked for nothing more."""
    made = {str(f) for j in workflow.dag.needrun_jobs(exclude_finished=False) for f in j.output}
    stamps = {entry: Path(drawn(entry)) for entry in work.entries if drawn(entry) in made}
    new = {e: s for e, s in stamps.items() if s.exists() and s.stat().st_mtime >= BEGUN}
    if new and not workflow.touch:
        provenance.update(work.provenance, new)


def print_summary():
    """Say in the end what was made and what is missing."""
    made = {str(f) for j in workflow.dag.needrun_jobs(exclude_finished=False) for f in j.output}
    if not made:
        return
    drawn = [name for name in work.entries if made & set(work.figures(name))]
    named = [f"{len(drawn)} tables and figures in {work.folder}/"]
    if len(drawn) <= 3:
        named = [f"{work.folder}/{name}.*" for name in drawn]
    results = sum(file.startswith("results/") and file.endswith(".csv") for file in made)
    named += [f"{results} results in results/{work.scale}/"] * (results > 0)
    made_here = f"Made at scale {work.scale}: " + ", ".join([*named, *({work.report} & made)])
    print(made_here, *closing(), sep="\n", flush=True)


shown = None
if workflow.is_main_process:
    strict.check(work)
    bound_by_machine()
    machine.drop_stale_lock(OWNER, LOCKS)
    shown = short_log()
