"""What the screen shows of a run: the steps that remain, how long they take, what went wrong."""

import json
import logging

import pytest

from ofslib.reproduction.progress import ShortLog, Step


class Screen:
    """A log of one run, at times that the test gives."""

    def __init__(self, file, **options):
        self.now = 0.0
        usual = logging.Formatter("usual: %(message)s")
        self.log = ShortLog(usual, file, clock=lambda: self.now, **options)

    def say(self, text=None, event=None, level=logging.INFO, at=None, **more):
        self.now = self.now if at is None else at
        record = logging.LogRecord("snakemake", level, "", 0, text, None, None)
        record.__dict__.update(more, event=event)
        return self.log.format(record) if self.log.filter(record) else None

    def step(self, number, begin, end, text="a: run b"):
        assert self.say(event="job_info", at=begin, jobid=number, rule_msg=text) is None
        return self.say("Finished", event="job_finished", at=end, job_id=number)


STEPS = [
    Step(1, "one.csv", "run", 0.5),
    Step(2, "two.csv", "run", 0.5),
    Step(3, "x.svg", "draw", 1),
]


@pytest.fixture
def file(tmp_path):
    return tmp_path / "durations.json"


def test_without_an_earlier_run_only_what_was_seen_is_the_guess(file):
    screen = Screen(file)
    assert screen.log.begin(STEPS) == "3 steps"
    # One run took 600 s: the other, on half of the machine, counts 300, the drawing 600.
    assert screen.step(1, 0, 600) == "[1 of 3, about 15 min left] a: run b: 10:00"


def test_the_last_run_tells_how_long_this_one_takes(file):
    file.write_text(json.dumps({"one.csv": 7200.0, "two.csv": 3600.0, "x.svg": 90.0, "y": 9e9}))
    screen = Screen(file)
    assert screen.log.begin(STEPS) == "3 steps, about 1 h 32 min"
    screen.say(event="job_info", at=0, jobid=2, rule_msg="b")
    # 1800 of the 3600 s of the second have passed: half of the machine for 1800 s, and the drawing.
    assert screen.step(1, 0, 1800).startswith("[1 of 3, about 17 min left]")
    assert screen.say("", event="job_finished", at=1900, job_id=2).startswith(
        "[2 of 3, about 2 min"
    )
    assert screen.step(3, 1900, 1910, "draw") == "[3 of 3] draw: 00:10"
    took = json.loads(file.read_text())
    assert took == {"one.csv": 1800.0, "two.csv": 1900.0, "x.svg": 10.0, "y": 9e9}


def test_a_step_that_was_never_made_takes_as_long_as_others_of_its_kind(file):
    file.write_text(json.dumps({"one.csv": 1200.0, "x.svg": 60.0}))
    assert Screen(file).log.begin(STEPS) == "3 steps, about 21 min"


def test_where_nothing_was_made_the_plan_tells(file):
    planned = [Step(1, "one.csv", "run", 0.5, 1200), Step(2, "two.csv", "run", 0.5, 60), STEPS[2]]
    screen = Screen(file)
    # A drawing takes at least as long as the shortest run: 600 + 30 + 60 s.
    assert screen.log.begin(planned) == "3 steps, about 12 min"
    # What was expected of the second stays, whatever the first took.
    assert screen.step(1, 0, 10).startswith("[1 of 3, about 2 min left]")
    file.write_text(json.dumps({"one.csv": 240.0, "x.svg": 10.0}))
    assert Screen(file).log.begin(planned) == "3 steps, about 3 min", "what was made tells more"


def test_a_damaged_file_of_durations_is_no_obstacle(file):
    file.write_text("{")
    assert Screen(file).log.begin(STEPS[:1]) == "1 step"


def test_failures_and_warnings_are_shown_as_usual_and_chatter_is_not(file):
    screen = Screen(file)
    assert screen.say("Building DAG of jobs...") is None
    assert screen.say("Provided cores: 2", event="resources_info") is None
    assert screen.say("Building DAG failed", level=logging.ERROR) == "usual: Building DAG failed"
    assert screen.say("Error in rule x", event="job_error", level=logging.ERROR).startswith("usual")
    assert screen.say("Trying to restart job 3.") == "usual: Trying to restart job 3."


def test_a_step_that_is_tried_again_counts_from_its_second_beginning(file):
    screen = Screen(file)
    screen.log.begin(STEPS[:1])
    screen.say(event="job_info", at=0, jobid=1, rule_msg="a")
    assert screen.step(1, 100, 130) == "[1 of 1] a: run b: 00:30"


def test_where_nothing_is_to_be_done_what_is_missing_is_said(file):
    screen = Screen(file, closing=lambda: ["Missing data set a"])
    said = screen.say("Nothing to be done (all requested files are present and up to date).")
    assert said.splitlines()[1:] == ["Missing data set a"]
