"""Which figures a PROVENANCE.json lacks: those that a run drew before it was killed."""

import json
import os
from pathlib import Path

import pytest

from ofslib.reproduction import provenance

FILE, STAMP = "figures/PROVENANCE.json", "results/standard/one.drawn"
FIGURES = ["figures/one.csv", "figures/one.svg"]
FACTS = {"scale": "standard", "commit": "c", "with": {}, "missing": {}}
OLD, DRAWN, NEW = (f"2026-01-0{day}T00:00:00+00:00" for day in (1, 2, 3))
CLOCK = 1_000_000.0


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    """Two figures and their stamp, as a run that was killed leaves them."""
    monkeypatch.chdir(tmp_path)
    write(FIGURES[0], "a", CLOCK)
    write(FIGURES[1], "b", CLOCK + 1)
    write(STAMP, json.dumps(FACTS | {"date": DRAWN}), CLOCK + 2)


def write(file, text, at):
    Path(file).parent.mkdir(parents=True, exist_ok=True)
    Path(file).write_text(text)
    os.utime(file, (at, at))


def know(date, entry="one"):
    """A PROVENANCE.json that says when an entry was drawn."""
    write("known", json.dumps(FACTS | {"date": date, "scale": "paper"}), CLOCK)
    provenance.update(FILE, {entry: "known"})


def later():
    return provenance.later(FILE, {"one": STAMP}, {"one": FIGURES})


@pytest.mark.parametrize("known", [None, OLD], ids=["never known", "known from before"])
def test_what_a_killed_run_drew_is_taken_once(known):
    if known:
        know(known)
    know(NEW, "two")
    assert later() == {"one": STAMP}
    provenance.update(FILE, later())
    found = provenance.read(FILE)
    assert (found["one"]["date"], found["two"]["date"]) == (DRAWN, NEW)
    assert found["one"]["scale"] == "standard" and later() == {}


def test_what_was_drawn_later_elsewhere_stays():
    """As where a PROVENANCE.json came from git, with figures that this folder then drew alike."""
    know(NEW)
    assert later() == {}


def test_without_a_file_it_is_taken_too():
    assert not Path(FILE).exists() and later() == {"one": STAMP}


@pytest.mark.parametrize(
    "change",
    [
        lambda: os.utime(FIGURES[0], (CLOCK + 3, CLOCK + 3)),
        lambda: [os.utime(file, (CLOCK - 3600, CLOCK - 3600)) for file in FIGURES],
        lambda: Path(FIGURES[1]).unlink(),
        lambda: Path(STAMP).unlink(),
        lambda: write(STAMP, "", CLOCK + 2),
        lambda: write(STAMP, '{"date": "2026-01', CLOCK + 2),
        lambda: write(STAMP, "[1]", CLOCK + 2),
        lambda: write(STAMP, '{"scale": "standard"}', CLOCK + 2),
    ],
    ids=[
        "one file came from git since",
        "the stamp is of figures in another folder",
        "one file is gone",
        "a fresh checkout has no stamp",
        "empty stamp",
        "half a stamp",
        "a stamp that is a list",
        "a stamp without a date",
    ],
)
def test_what_is_not_surely_of_the_stamp_is_not_taken(change):
    change()
    assert later() == {}
