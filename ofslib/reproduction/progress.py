"""What a run of the workflow says: a line a step, how many remain, and about how long."""

import logging
import math
import os
import sys
import time
from collections.abc import Callable, Iterable, Mapping

from tqdm import tqdm

# How messages of Snakemake begin that say nothing of this run; its own log file has them all.
DULL = ("Building DAG", "Using shell", "Conda environments: ignored", "Select jobs")
DULL += ("Complete log", "Elapsed time", "Touching output file", "host: ", "Assuming unrestricted")
# How those begin that repeat what a failed step has said of itself.
REPEATED = ("RuleException:\nCalledProcessError", "WorkflowError:\nAt least one job did not")
DULL_EVENTS = {"run_info", "resources_info", "job_info", "job_started", "job_finished"}
DULL_EVENTS |= {"progress", "shellcmd", "workflow_started"}
DRAWING = 6.0  # seconds that are foreseen of a step that is no run
ENOUGH = 30.0  # foreseen seconds of finished runs of an entry that tell how long its others take


def about(seconds: float) -> str:
    """A time that is not known better than to the minute."""
    minutes = math.ceil(seconds / 60)
    return f"{minutes // 60} h {minutes % 60} min" if minutes >= 60 else f"{minutes} min"


class Screen(logging.Filter):
    """A filter of Snakemake's messages that says in one line what each step was.

    Parameters
    ----------
    cores : int
        How many steps run at once.
    without_files : iterable of str
        Rules that make no file: they are no steps.
    closing : callable
        Lines that are said where nothing is to be done.
    without_data : callable
        Those of some files whose data cannot be had, which are made in no time.
    """

    def __init__(
        self, cores: int, without_files: Iterable[str], closing: Callable[[], Iterable[str]],
        without_data: Callable[[Iterable[str]], Iterable[str]],
    ):  # fmt: skip
        super().__init__()
        self.cores, self.without_files, self.closing = cores, set(without_files), closing
        self.without_data = without_data
        self.steps = self.done = 0
        self.made: list[str] = []  # files
        self.foreseen: dict[str, float] = {}  # seconds of each run that is to do, by its file
        self.running: dict[int, tuple[float, str, list[str]]] = {}  # begin, message, files
        # Seconds that the finished runs of an entry took, and that were foreseen of them. They say
        # nothing of other entries: the longest are run first, and often were foreseen too long.
        self.seen: dict[str, tuple[float, float]] = {}

    def begin(self, counts: Mapping[str, int]) -> str:
        """Take up a run with so many jobs of each rule."""
        self.steps = counts["total"] - sum(counts.get(name, 0) for name in self.without_files)
        number = f"{self.steps} step" + "s" * (self.steps != 1)
        return ", ".join([number, *self._left("about {}")])

    def finish(self, begun: float, message: str, files: list[str]) -> str:
        """The line of a step that is done."""
        seconds = time.monotonic() - begun
        self.done, self.made = self.done + 1, self.made + files
        if expected := self.foreseen.pop(files[0], 0.0):
            entry = os.path.dirname(files[0])
            took, was_foreseen = self.seen.get(entry, (ENOUGH, ENOUGH))
            self.seen[entry] = took + seconds, was_foreseen + expected
        head = ", ".join([f"{self.done} of {self.steps}", *self._left("about {} left")])
        return f"[{head}] {message}: {tqdm.format_interval(seconds)}"

    def _left(self, text: str) -> list[str]:
        """About how long the steps take that remain; nothing if none remains or nothing tells."""
        for file in self.without_data(self.foreseen):
            del self.foreseen[file]  # and counts as what is no run
        others = self.steps - self.done - len(self.foreseen)
        if not self.foreseen and (not self.seen or others < 1):
            return []
        now = time.monotonic()
        gone = {files[0]: now - begun for begun, _, files in self.running.values()}
        pace = {entry: took / was_foreseen for entry, (took, was_foreseen) in self.seen.items()}
        left = [
            max(pace.get(os.path.dirname(file), 1.0) * s - gone.get(file, 0.0), 0.0)
            for file, s in self.foreseen.items()
        ]
        total = (sum(left) + max(others, 0) * DRAWING) / self.cores
        return [text.format(about(max(total, *left, 1.0)))]

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether a message is shown as it is."""
        event, text = str(getattr(record, "event", None)), record.getMessage()
        said: Iterable[str] = ()
        if event == "run_info":
            said = [self.begin(record.stats)]
        elif event == "job_info" and record.rule_msg:
            self.running[record.jobid] = time.monotonic(), record.rule_msg, [*record.output]
        elif event == "job_finished" and record.job_id in self.running:
            said = [self.finish(*self.running.pop(record.job_id))]
        elif event == "job_error":
            # On a cluster aux has the number of the job.
            where = [*record.log, *(f"{name} {value}" for name, value in record.aux.items())]
            _, message, _ = self.running.get(record.jobid, (0.0, record.rule_name, []))
            said = [f"Failed: {message}; see {', '.join(where)}"]
        elif text.startswith("Nothing to be done"):
            said = self.closing()
        for line in said:
            tqdm.write(line, file=sys.stderr)
        if record.levelno >= logging.WARNING:
            return event != "job_error" and not text.startswith(REPEATED)
        return event not in DULL_EVENTS and not text.startswith(DULL)
