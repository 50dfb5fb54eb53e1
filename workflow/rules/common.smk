# What the rules share: what is done before Snakemake plans, and what a job depends on.
import logging
import sys
from functools import cache

from snakemake.exceptions import WorkflowError

from ofslib.reproduction import identity, machine, plan, progress, records, strict

# More slots than any machine has: Snakemake then gives a job all that there are.
WHOLE_MACHINE = 1_000_000
CHANGES = {"scale": work.scale, "figures": work.committed}
CHANGES |= {"real_data": work.real_data, "seed": work.seed}
read = set()  # data sets that this run reads
dataset_of = {}  # file of results -> the data set that it is made of
held = []


def at_once():
    """How many jobs run at once on this machine, or on a cluster."""
    try:
        return min(workflow.cores, machine.cores())
    except WorkflowError:
        return 100


def missing():
    """What the files that were asked for lack."""
    for record in records.missing(sorted(read)):
        yield f"Missing data set {record['name']}: {records.why(record)}. {record['detail']}"


def without_data(files):
    """Those of some files of results whose data set could not be fetched."""
    lacking = {record["name"] for record in records.missing(sorted(read))}
    return [file for file in files if dataset_of.get(file) in lacking]


screen = progress.Screen(
    at_once(),
    ["all", *(f"figure_{alias}" for alias in work.shown_elsewhere)],
    missing,
    without_data,
)


@cache
def before_planning():
    """Do what has to be done before Snakemake decides which jobs to run.

    Functions that give the inputs of rules call this: only then are the options of the command
    line known. Returns the seconds that runs are expected to take, if jobs will be run.
    """
    if workflow.dryrun:
        for file in records.changed(work.datasets):
            print(f"{file} has changed: {records.WHAT_CHANGES}")
    only_asked = workflow.dryrun or workflow.touch or not workflow.executor_plugin
    if only_asked or not workflow.is_main_process:
        return {}
    try:
        held.append(machine.claim())  # until this process ends
    except machine.FolderInUse as error:
        sys.exit(f"Error: {error}")
    for said in records.mend(work.datasets):
        print(said)
    if work.real_data == "auto":
        # Not by a job: what depends on a job is made again even if its output is the same.
        records.try_again(work.datasets)
    log = logging.getLogger("snakemake.logging")
    for handler in [] if log.isEnabledFor(logging.DEBUG) else log.handlers:
        if handler.name == "DefaultStreamHandler":  # the log file has everything
            handler.addFilter(screen)
    try:
        return plan.expected(work)
    except Exception as error:  # of a result that is perhaps to be made anew just now
        print(f"How long the runs take is not known ({error}): they begin in any order.")
        return {}


def print_summary():
    """Say in the end what was made and what is missing."""
    made = {*screen.made}
    drawn = [name for name in work.entries if made & {*work.figures(name)}]
    named = [f"{len(drawn)} tables and figures in {work.folder}/"]
    if len(drawn) <= 3:
        named = [f"{work.folder}/{name}.*" for name in drawn]
    results = sum(file.startswith("results/") and file.endswith(".csv") for file in made)
    named += [f"{results} results in results/{work.scale}/"] * (results > 0)
    named += [work.report] * (work.report in made)
    made_here = [f"Made at scale {work.scale}: {', '.join(named)}"] if named else []
    print(*made_here, *missing(), sep="\n", flush=True)


# -------------------------------------------------- data sets


def all_records(wildcards):
    """What came of the attempts to fetch the real data sets."""
    before_planning()
    read.update(work.datasets)
    return [records.path(name) for name in work.datasets]


def fetch_script(wildcards):
    """What brings a data set; asking for its record alone tries again too."""
    before_planning()
    return "workflow/scripts/fetch.py"


# -------------------------------------------------- runs


def run_of(wildcards):
    """The setting of a run; `kind` is ".time" for what measures learning times."""
    return work.setting(wildcards.entry, wildcards.setting, wildcards.kind.strip("."))


def result_of(wildcards):
    """Its file of results."""
    return str(work.result(wildcards.entry, wildcards.setting, wildcards.kind.strip(".")))


def run_record(wildcards):
    """The record of the data set that a run reads, if any."""
    before_planning()
    name = run_of(wildcards).dataset
    read.update([name] if name else [])
    dataset_of[result_of(wildcards)] = name
    return [records.path(name)] if name else []


def run_parameters(wildcards):
    """Parameters of the notebook that runs a setting.

    They follow from the wildcards alone: Snakemake does not notice a change of parameters that are
    derived from the files of the job.
    """
    run = run_of(wildcards)
    return {
        "spec": identity.canonical(run.spec),
        "output": result_of(wildcards),
        "folder": str(records.FOLDER),
        "record": records.path(run.dataset) if run.dataset else None,
    }


def run_versions(wildcards):
    """The versions of all that takes part in a run: if one is raised it is put together anew."""
    found = identity.results(run_of(wildcards).spec)
    return dict(sorted(pair for each in found for pair in each.made_of["versions"].items()))


def run_memory(wildcards, attempt):
    """Twice as much when it is tried once more: a scheduler may have stopped it for its memory."""
    return attempt * work.mem_mb(run_of(wildcards))


def is_alone(wildcards):
    """Whether a run needs the machine to itself. Times are of the processor."""
    return work.entries[wildcards.entry].spec["alone"] and not wildcards.kind


def run_priority(wildcards):
    """The longest first: what begins last should not be what all others wait for."""
    seconds = before_planning().get(result_of(wildcards), 0)
    if seconds:
        screen.foreseen[result_of(wildcards)] = seconds
    return seconds


# -------------------------------------------------- tables and figures


def all_files(wildcards):
    """Everything that the configuration names."""
    figures = [file for entry in work.entries for file in (*work.figures(entry), drawn(entry))]
    return [work.report, *all_records(wildcards), *figures]


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
    """Stamp of a drawn entry: the figures of a fresh checkout are there, and are made again."""
    return f"results/{work.scale}/{entry}.drawn"


def figure_parameters(entry):
    """Parameters of a figure notebook."""
    changes = {"real_data": work.real_data, "seed": work.seed}
    output = f"{work.folder}/{entry}"
    return {"entry": entry, "scale": work.scale, "changes": changes, "output": output}


if workflow.is_main_process:
    strict.check(work)
