"""What a run of the workflow says: a line a step, how many remain, and about how long."""

import json
import logging
import math
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

from tqdm import tqdm

from ofslib._files import write_whole

# How messages of Snakemake begin that say nothing of this run.
DULL = ("Assuming unrestricted", "Building DAG", "Using shell", "Conda environments: ignored")
DULL += ("Select jobs", "Complete log", "Elapsed time", "Touching output file", "host: ")
DULL_EVENTS = {"workflow_started", "run_info", "resources_info", "job_info", "job_started"}
DULL_EVENTS |= {"progress", "shellcmd"}


class Step(NamedTuple):
    """A job of a run."""

    number: int  # Snakemake's
    file: str  # what it makes
    rule: str
    share: float  # of the machine, while it goes on
    expected: float | None = None  # seconds that the plan tells, if it was never made


def about(seconds: float) -> str:
    """A time that is not known better than to the minute."""
    minutes = math.ceil(seconds / 60)
    return f"{minutes // 60} h {minutes % 60} min" if minutes >= 60 else f"{minutes} min"


class ShortLog(logging.Formatter):
    """Formatter and filter of Snakemake's messages on the screen; its own log file has them all.

    Parameters
    ----------
    usual : Formatter
        For what is shown as it is: warnings, failures.
    file : Path
        What each step took when it was last made, in seconds; kept up to date, unless `measures`
        is false.
    closing : callable
        Lines that are said after that nothing is to be done.
    clock : callable
        Seconds.
    """

    def __init__(
        self,
        usual: logging.Formatter,
        file: Path,
        closing: Callable[[], Iterable[str]] = tuple,
        clock: Callable[[], float] = time.monotonic,
    ):
        super().__init__()
        self.usual, self.file, self.closing, self.clock = usual, Path(file), closing, clock
        self.steps: dict[int, Step] = {}  # those of this run
        self.begun: dict[int, tuple[float, str]] = {}  # when, and what is done
        self.done: set[int] = set()
        self.measures = True  # whether it keeps what the steps of this run take
        try:
            self.took = dict(json.loads(self.file.read_text(encoding="utf-8")))
        except (OSError, ValueError):
            self.took = {}

    def begin(self, steps: Iterable[Step]) -> str:
        """Take these steps as those of the run: how many, and about how long they take."""
        self.steps = {step.number: step for step in steps}
        number = f"{len(self.steps)} step" + "s" * (len(self.steps) != 1)
        return ", ".join([number, *self._left("about {}")])

    def _left(self, text: str) -> list[str]:
        """About how long the steps take that remain; nothing if none remains or nothing tells."""
        planned = [step.expected for step in self.steps.values() if step.expected is not None]
        if not (self.took or planned) or self.done >= self.steps.keys():
            return []
        # By rule; None: of a rule of which none was ever made, at least what a notebook takes.
        alike = {None: [min(planned)] if planned else list(self.took.values())}
        for step in self.steps.values():
            if step.file in self.took:
                alike.setdefault(step.rule, []).append(self.took[step.file])
        seconds = 0.0
        for step in self.steps.values():
            if step.number not in self.done:
                usual = fmean(alike.get(step.rule, alike[None]))
                usual = usual if step.expected is None else step.expected
                begun, _ = self.begun.get(step.number, (self.clock(), ""))
                expected = self.took.get(step.file, usual) - (self.clock() - begun)
                seconds += step.share * max(expected, 0.0)
        return [text.format(about(seconds))]

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether a message is shown; notes when a step begins."""
        event = str(getattr(record, "event", None))
        if event == "job_info" and record.rule_msg:
            self.begun[record.jobid] = self.clock(), record.rule_msg
        if event == "job_finished":
            return record.job_id in self.begun
        dull = event in DULL_EVENTS or record.getMessage().startswith(DULL)
        return record.levelno >= logging.WARNING or not dull

    def format(self, record: logging.LogRecord) -> str:
        """A line for a step that is done; what else is shown, as usual."""
        if str(getattr(record, "event", None)) != "job_finished":
            idle = record.getMessage().startswith("Nothing to be done")
            return "\n".join([self.usual.format(record), *(self.closing() if idle else ())])
        begun, what = self.begun[record.job_id]
        seconds = self.clock() - begun
        self.done.add(record.job_id)
        head = f"{len(self.done)} of {len(self.steps)}"
        if self.measures and (step := self.steps.get(record.job_id)):
            self.took[step.file] = round(seconds, 1)
            write_whole(self.file, json.dumps(self.took, indent=0))
        head = ", ".join([head, *self._left("about {} left")])
        return f"[{head}] {what}: {tqdm.format_interval(seconds)}"
