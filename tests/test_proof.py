"""No version of config/versions.yaml was forgotten; the proof of that sees broken code."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
import shipped
import yaml

from ofslib.reproduction import proof, proof_cases

SECTIONS = ("methods", "rows", "metrics", "studies", "statements")


@pytest.mark.parametrize("section", SECTIONS)
def test_no_version_was_forgotten(section, monkeypatch):
    monkeypatch.chdir(shipped.ROOT)
    found = proof.prove([f"{section}: "])
    wrong = found[~found["verdict"].isin(["equal", "rounding", "not installed"])]
    assert wrong.empty, wrong.to_string()


# --------------------------------------------------------------------------- what the verdicts are


class World(NamedTuple):
    """A project of the methods A and B: what A gives, and its file of versions."""

    values: dict
    versions: Path

    def raise_to(self, version):
        self.versions.write_text(f"methods: {{A: {version}, B: 1}}\n")


@pytest.fixture
def world(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "config").mkdir()
    made = World({"coef_": np.array([1.0, -2.0, 0.0]), "n": 5}, tmp_path / proof.VERSIONS)
    given = {"A": made.values, "B": {"n": 3}}
    monkeypatch.setattr(proof_cases, "known", lambda: {"methods": ["A", "B"]})
    monkeypatch.setattr(proof_cases, "lacking", lambda section, name: "")
    monkeypatch.setattr(proof_cases, "numbers", lambda section, name: [("dense", given[name])])
    made.raise_to(1)
    proof.prove(accept=True)
    return made


def verdict(names=None, accept=False):
    found = proof.prove(names, accept)
    return found.set_index("name").loc["methods: A"]


@pytest.mark.parametrize(
    ("coef", "expected"),
    [
        ([1.0, -2.0, 0.0], "equal"),
        ([1.0, -2.0 - 1e-11, 0.0], "rounding"),
        ([1.0, -2.0 - 1e-8, 0.0], "different"),
        ([0.0, -2.0, 1.0], "different"),
        ([1.0, 2.0, 0.0], "different"),
        ([1.0, -2.0, np.nan], "different"),
    ],
)
def test_a_change_of_any_entry_or_place_or_sign_shows(world, coef, expected):
    world.values["coef_"] = np.array(coef)
    assert verdict()["verdict"] == expected


def test_what_differs_names_the_line_and_is_not_accepted(world):
    world.values["n"] = 6
    found, before = verdict(), open(proof.STORED).read()
    assert found["line"] == "config/versions.yaml, methods: A: 1 -> 2"
    assert found[["case", "quantity", "stored", "found"]].tolist() == ["dense", "n", 5.0, 6.0]
    with pytest.raises(ValueError, match=r"Raise first:\nconfig/versions.yaml, methods: A: 1 -> 2"):
        proof.prove(accept=True)
    assert open(proof.STORED).read() == before


def test_a_raised_version_is_accepted(world):
    world.values["n"] = 6
    world.raise_to(2)
    assert verdict()["verdict"] == "raised"
    assert verdict()["line"] == 'python -m ofslib.reproduction prove --accept "methods: A"'
    assert verdict(["methods: A"], accept=True)["verdict"] == "accepted"
    assert proof.prove()["verdict"].tolist() == ["equal", "equal"]
    world.raise_to(1)
    with pytest.raises(ValueError, match="methods: A: 1 is lower than 2"):
        proof.prove()


def test_missing_names_say_what_to_type(world, monkeypatch):
    world.versions.write_text("methods: {A: 1, C: 0}\n")
    with pytest.raises(ValueError, match="add the line `B: 1` to methods\nremove `C`"):
        proof.prove()
    world.versions.write_text("methods: {A: 1, B: 1, C: 1}\n")
    monkeypatch.setattr(proof_cases, "known", lambda: {"methods": ["A", "B", "C"]})
    with pytest.raises(ValueError, match=r"no values of 'methods: C'.*--accept \"methods: C\""):
        proof.prove()
    with pytest.raises(ValueError, match="no name with"):
        proof.prove(["methods: Q"])


# ------------------------------------------------------------------- that the proof sees a mutant


with open(shipped.ROOT / "tests/mutants.yaml") as file:
    MUTANTS = yaml.safe_load(file)


@pytest.fixture(scope="module")
def copied(tmp_path_factory):
    """The package and its configuration where they may be broken."""
    folder = tmp_path_factory.mktemp("mutants")
    shipped.copy(folder, "config")
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(shipped.ROOT / "ofslib", folder / "ofslib", ignore=ignored)
    return folder


def proved(folder, names):
    """Verdicts by name, of a process of its own."""
    program = (
        "import sys; from ofslib.reproduction.proof import prove\n"
        "prove(sys.argv[1:]).to_json('verdicts.json', orient='records')"
    )
    environment = os.environ | {"PYTHONPATH": str(folder), "NUMBA_CACHE_DIR": str(folder / "cache")}
    command = [sys.executable, "-c", program, *names]
    subprocess.run(command, cwd=folder, env=environment, check=True)
    found = json.loads((folder / "verdicts.json").read_text())
    return {row["name"]: row["verdict"] for row in found}


@pytest.mark.slow
@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: f"{mutant['file']}, {mutant['new']}")
def test_a_broken_line_is_named(copied, mutant):
    path = copied / "ofslib" / mutant["file"]
    stat, text = path.stat(), path.read_text()
    assert mutant["old"] in text
    path.write_text(text.replace(mutant["old"], mutant["new"]))
    try:
        found = proved(copied, [mutant[key] for key in ("named", "silent") if key in mutant])
    finally:
        path.write_text(text)
        os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))  # what is compiled stays so
    assert [name for name, verdict in found.items() if verdict == "different"] == [mutant["named"]]
