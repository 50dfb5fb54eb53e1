"""Whoever uses a method, a table or a figure can cite it."""

import os
import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest
import yaml

import ofslib
from ofslib.reproduction.latex import PAPERS

ROOT = Path(__file__).parents[1]
NAMES = [name for names in ofslib.ESTIMATORS.values() for name in names]
BIB = (ROOT / "ofslib/CITATION.bib").read_text(encoding="utf-8")
KEYS = re.findall(r"^@\w+\{(\S+),$", BIB, re.M)


@pytest.mark.parametrize("name", NAMES)
def test_every_method_has_its_sources_and_they_are_in_the_file(name):
    cls = getattr(ofslib, name)
    found = ofslib.citation(cls)  # says what an added method lacks
    [home] = {c.__module__ for c in cls.__mro__ if "sources" in vars(c)}
    assert home == cls.__module__, "sources stand in the method's own file"
    assert found == ofslib.citation(cls()) and found.startswith(ofslib.citation())
    keys = [key for key in cls.sources.split(", ") if key]
    assert re.findall(r"^@\w+\{(\S+),$", found, re.M) == ["ofslib", *keys]
    own = ".beyond." in cls.__module__ or not keys
    assert ("no paper has it" in found) == own


def test_a_class_that_names_no_source_or_an_unknown_one_is_told_so():
    with pytest.raises(TypeError, match=r"int does not say what to cite.*`sources`"):
        ofslib.citation(int)
    with pytest.raises(ValueError, match=r"CITATION.bib has no doe2030, which Mine names"):
        ofslib.citation(type("Mine", (), {"sources": "yang2016online, doe2030"}))


def test_the_file_has_what_is_cited_once_and_nothing_else():
    assert (ROOT / "CITATION.bib").read_text(encoding="utf-8") == BIB, "copy ofslib/CITATION.bib"
    entries = re.findall(r"(?ms)^@\w+\{\S+,$.*?^\}$", BIB)
    assert len(entries) == len(KEYS) == len({*KEYS}) == BIB.count("\n@")
    for entry in entries:
        assert {"author", "title"} <= {*re.findall(r"^  (\w+) = \{.*\},$", entry, re.M)}
        assert entry.count("{") == entry.count("}") and entry.isascii()
    cited = {key for name in NAMES for key in getattr(ofslib, name).sources.split(", ")} - {""}
    from ofslib.beyond.knockoffs import KnockoffCopies

    assert {*KEYS} == {"ofslib", KnockoffCopies.sources, *PAPERS.values()} | cited
    assert f"Version {ofslib.__version__}" in ofslib.citation()


def test_every_caption_of_a_table_cites_keys_of_the_file():
    for file in (ROOT / "figures").glob("*.tex"):
        captions = re.findall(r"\\caption\{.*", file.read_text(encoding="utf-8"))
        paper = [PAPERS[key] for key in PAPERS if file.name.startswith(f"{key}_")]
        for caption in captions:
            assert re.search(r"\\cite\{(.*?)\}", caption)[1].split(",") == ["ofslib", *paper], file


def test_the_address_is_the_same_wherever_it_stands():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    cff, check = (
        yaml.safe_load((ROOT / name).read_text(encoding="utf-8"))
        for name in ("CITATION.cff", "codecheck.yml")
    )
    preferred = cff["preferred-citation"]
    addresses = {cff["repository-code"], preferred["repository-code"], check["repository"]}
    assert addresses == {project["urls"]["Repository"]}
    for name in ("title", "version", "authors"):
        assert preferred[name] == cff[name]
    assert preferred.get("date-released") == cff.get("date-released")
    assert check["paper"]["title"] == cff["title"]


@pytest.mark.skipif(not shutil.which("bibtex"), reason="no pdflatex and bibtex on this machine")
def test_two_tables_and_two_figures_compile_with_their_sources(tmp_path):
    latex = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error"]
    latex += ["-output-directory", str(tmp_path), "docs/citing/example"]
    bibtex = {"cwd": tmp_path, "env": os.environ | {"BIBINPUTS": f"{ROOT}{os.pathsep}"}}
    for command, where in ((latex, {}), (["bibtex", "example"], bibtex), (latex, {}), (latex, {})):
        options = {"cwd": ROOT} | where
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", **options)
        assert done.returncode == 0, done.stdout[-2000:]
    assert not re.findall(r"undefined|Overfull|multiply", done.stdout)
