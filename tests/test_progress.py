"""What the screen shows of a run: the steps that remain, how long they take, what went wrong."""

import logging

import pytest

from ofslib.reproduction import progress


class Screen:
    """A run of two runs and a drawing, at times that the test gives."""

    def __init__(self, monkeypatch, capsys, foreseen=(600.0, 60.0), cores=2, lacking=()):
        self.now, self.capsys = 0.0, capsys
        monkeypatch.setattr(progress.time, "monotonic", lambda: self.now)
        self.log = progress.Screen(
            cores, ["all"], lambda: ["Missing data set a"], {*lacking}.intersection
        )
        for number, seconds in enumerate(foreseen, 1):
            self.log.foreseen[f"{number}.csv"] = seconds
        counts = {"run": 2, "figure_x": 1, "all": 1, "total": 4}
        self.begins = self.say("Job stats", event="run_info", stats=counts)

    def say(self, text="", event=None, level=logging.INFO, at=None, **more):
        """What is printed for a message, or itself if it is shown as it is."""
        self.now = self.now if at is None else at
        record = logging.LogRecord("snakemake", level, "", 0, text, None, None)
        record.__dict__.update(more, event=event)
        shown = self.log.filter(record)
        return self.capsys.readouterr().err + text * shown

    def step(self, number, begin, end):
        files = [f"{number}.csv"]
        self.say(event="job_info", at=begin, jobid=number, rule_msg=f"run {number}", output=files)
        return self.say("Finished", event="job_finished", at=end, job_id=number).strip()


@pytest.fixture
def screen(monkeypatch, capsys):
    return lambda **options: Screen(monkeypatch, capsys, **options)


def test_the_plan_tells_how_long_a_run_takes_and_what_was_seen_how_long_its_entry_takes(screen):
    # The longest run takes 10 minutes, and all that is left at least that.
    assert screen().begins == "3 steps, about 10 min\n"
    assert screen(cores=1).begins == "3 steps, about 12 min\n"
    slow = screen()
    # Twice as long as foreseen for the first: so is the second, on half of the machine.
    assert slow.step(1, 0, 1230) == "[1 of 3, about 2 min left] run 1: 20:30"
    assert slow.step(2, 1230, 1350) == "[2 of 3, about 1 min left] run 2: 02:00"
    assert slow.step(3, 1350, 1355) == "[3 of 3] run 3: 00:05"
    assert slow.log.made == ["1.csv", "2.csv", "3.csv"]


def test_an_entry_that_is_faster_than_foreseen_says_nothing_of_others(screen):
    two = screen(foreseen=(600.0,))
    two.log.foreseen["other/1.csv"] = 600.0
    assert two.step(1, 0, 60) == "[1 of 3, about 10 min left] run 1: 01:00"


def test_without_any_record_no_time_is_guessed(screen):
    new = screen(foreseen=())
    assert new.begins == "3 steps\n"
    assert new.step(1, 0, 600) == "[1 of 3] run 1: 10:00"


def test_a_data_set_that_is_there_does_not_tell_how_fast_the_machine_is(screen):
    assert screen().step(3, 0, 0) == "[1 of 3, about 10 min left] run 3: 00:00"


def test_a_run_whose_data_cannot_be_had_is_foreseen_to_take_no_time(screen):
    lacks = screen(lacking=["1.csv"])
    assert lacks.begins == "3 steps, about 1 min\n"
    assert lacks.step(2, 0, 60) == "[1 of 3, about 1 min left] run 2: 01:00"
    assert lacks.step(1, 60, 62) == "[2 of 3, about 1 min left] run 1: 00:02"


def test_failures_and_warnings_are_shown_as_usual_and_chatter_is_not(screen):
    said = screen().say
    assert said("Building DAG of jobs...") == said("Provided cores: 2", "resources_info") == ""
    assert said("Building DAG failed", level=logging.ERROR) == "Building DAG failed"
    assert said("RuleException:\nCalledProcessError in file", "error", logging.ERROR) == ""
    job = {"jobid": 7, "rule_name": "run", "log": ["a.txt"], "aux": {"external_jobid": 7}}
    told = said("Error in rule run", "job_error", logging.ERROR, **job)
    assert told == "Failed: run; see a.txt, external_jobid 7\n"
    assert said("Trying to restart job 3.") == "Trying to restart job 3."
    assert said("Nothing to be done").startswith("Missing data set a\n")
