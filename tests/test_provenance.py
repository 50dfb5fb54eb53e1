"""Which run and which machine a figure is of."""

import hashlib
from pathlib import Path

import pytest
import small_project

from ofslib._files import CorruptFile
from ofslib.reproduction import project, provenance, records

COMMITTED = Path(__file__).parents[1] / "figures"


def test_the_committed_figures_are_those_that_were_recorded():
    """What rewrote one of them later, or drew it elsewhere, has to have it drawn again."""
    found = provenance.read(COMMITTED / "PROVENANCE.json")
    recorded = {name: known for facts in found.values() for name, known in facts["figures"].items()}
    there = {name: hashlib.sha256((COMMITTED / name).read_bytes()).hexdigest() for name in recorded}
    assert recorded == there and len(recorded) > 150


def test_of_each_drawn_entry_the_record_says_from_what_and_the_others_stay(tmp_path, monkeypatch):
    """BLAS has kernels that differ in the last digits: of each run the record says which."""
    small_project.build(tmp_path)
    monkeypatch.chdir(tmp_path)
    work, facts = project.load(scale="smoke"), {"seconds": 1800, "memory_mb": None}
    runs = [provenance.here() | facts | {"blas": blas} for blas in ("Haswell", "SkylakeX")]
    gone = {"name": small_project.DATA, "status": "not fetched", "reason": "offline", "detail": ""}
    records.write(gone)
    for entry in work.entries:
        for file in work.figures(entry):
            Path(file).parent.mkdir(parents=True, exist_ok=True)
            Path(file).write_text(file)
    provenance.note(work, "two", [])
    provenance.note(work, "one", runs)
    known = provenance.read(work.provenance)
    one, two = known["one"], known["two"]
    assert (one["scale"], one["seed"], one["missing"]) == ("smoke", work.seed, {})
    assert two["missing"] == {small_project.DATA: "not downloaded: offline"} and "runs" not in two
    assert [each["blas"] for each in one["runs"]["with"]] == ["Haswell", "SkylakeX"]
    assert (one["runs"]["number"], one["runs"]["cpu_hours"], one["runs"]["memory_mb"]) == (2, 1, 0)
    assert {*one["figures"]} == {Path(file).name for file in work.figures("one")}
    assert two["with"] == one["with"] and one["with"]["blas"] == provenance.here()["blas"] != ""
    Path(work.provenance).write_text('{"entries"')
    with pytest.raises(CorruptFile, match=r"PROVENANCE\.json does not say"):
        provenance.note(work, "one", runs)
