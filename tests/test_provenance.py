"""Which figures a PROVENANCE.json lacks: those that a run drew before it was killed."""

import hashlib
import json
import os
from pathlib import Path

import pytest
from threadpoolctl import threadpool_info

from ofslib.reproduction import provenance

COMMITTED = Path(__file__).parents[1] / "figures"
FILE, STAMP = "figures/PROVENANCE.json", "results/standard/one.drawn"
FIGURES = ["figures/one.csv", "figures/one.svg"]
FACTS = {"scale": "standard", "commit": "c", "with": {}, "missing": {}}
CONTENTS = {
    "one.csv": hashlib.sha256(b"a").hexdigest(),
    "one.svg": hashlib.sha256(b"b").hexdigest(),
}
OLD, DRAWN, NEW = (f"2026-01-0{day}T00:00:00+00:00" for day in (1, 2, 3))


def test_the_committed_figures_are_those_that_were_recorded():
    """What rewrote one of them later, or drew it elsewhere, has to have it drawn again."""
    found = provenance.read(COMMITTED / "PROVENANCE.json")
    recorded = {name: known for facts in found.values() for name, known in facts["figures"].items()}
    there = {name: hashlib.sha256((COMMITTED / name).read_bytes()).hexdigest() for name in recorded}
    assert len(recorded) > 150
    assert {name for name in recorded if recorded[name] != there[name]} == set()


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    """Two figures and their stamp, as a run that was killed leaves them."""
    monkeypatch.chdir(tmp_path)
    write(FIGURES[0], "a")
    write(FIGURES[1], "b")
    stamp()


def write(file, text):
    Path(file).parent.mkdir(parents=True, exist_ok=True)
    Path(file).write_text(text)


def stamp(without=(), **other):
    facts = FACTS | {"date": DRAWN, "figures": CONTENTS} | other
    write(STAMP, json.dumps({name: fact for name, fact in facts.items() if name not in without}))


def know(date, entry="one"):
    """A PROVENANCE.json that says when an entry was drawn."""
    write("known", json.dumps(FACTS | {"date": date, "scale": "paper"}))
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


def test_times_of_files_do_not_matter():
    """Copies have others, and `--touch` gives new ones."""
    os.utime(FIGURES[0], (4e9, 4e9))
    assert later() == {"one": STAMP}
    write(FIGURES[0], "of another commit")
    os.utime(STAMP, (4e9, 4e9))
    assert later() == {}


@pytest.mark.parametrize(
    "change",
    [
        lambda: write(FIGURES[0], "from git since"),
        lambda: [write(file, "standard") for file in FIGURES],
        lambda: stamp(figures=CONTENTS | {"one.pdf": "0"}),
        lambda: Path(FIGURES[1]).unlink(),
        lambda: Path(STAMP).unlink(),
        lambda: write(STAMP, ""),
        lambda: write(STAMP, '{"date": "2026-01'),
        lambda: write(STAMP, "[1]"),
        lambda: stamp(without=("date",)),
        lambda: stamp(without=("with", "missing")),
        lambda: stamp(without=("figures",)),
    ],
    ids=[
        "one file came from git since",
        "the stamp is of figures in another folder",
        "the entry had another file",
        "one file is gone",
        "a fresh checkout has no stamp",
        "empty stamp",
        "half a stamp",
        "a stamp that is a list",
        "a stamp without a date",
        "a stamp with a date only",
        "a stamp of an early version",
    ],
)
def test_what_is_not_surely_of_the_stamp_is_not_taken(change):
    change()
    assert later() == {}


def test_results_of_other_kernels_of_blas_are_told_apart(monkeypatch):
    """Their last digits differ; and of each the record says which they were, by OpenBLAS itself."""
    runs = []
    for kernels in ["Haswell", "SkylakeX"]:
        found = [{"user_api": "blas", "internal_api": "openblas", "architecture": kernels}]
        with monkeypatch.context() as patch:
            patch.setattr(provenance, "threadpool_info", lambda found=found: found * 2)
            runs.append(provenance.here() | {"seconds": 1800, "memory_mb": None})
    told = provenance.of_figure("paper", runs, {}, [])["runs"]
    assert [one["blas"] for one in told["with"]] == ["openblas Haswell", "openblas SkylakeX"]
    assert (told["number"], told["cpu_hours"], told["memory_mb"]) == (2, 1, 0)
    with monkeypatch.context() as patch:
        patch.setattr(provenance, "threadpool_info", list)
        assert provenance.here()["blas"] == "unknown"
    here = provenance.here()["blas"]
    for one in threadpool_info():
        if one["user_api"] == "blas":
            assert one["internal_api"] in here and (one.get("architecture") or "") in here
