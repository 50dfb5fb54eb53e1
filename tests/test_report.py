"""The report: it says what the committed files say, in one file that a reader finds through."""

import contextlib
import re
import urllib.parse
from collections import Counter
from dataclasses import replace
from html.parser import HTMLParser
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pandas as pd
import pytest
import shipped

from ofslib.reproduction import (
    errata,
    latex,
    layout,
    overview,
    performance,
    project,
    scoreboard,
    tables,
)

ROOT = Path(__file__).parents[1]
SPEC = spec_from_file_location("report_script", ROOT / "workflow/scripts/report.py")
report = module_from_spec(SPEC)
SPEC.loader.exec_module(report)
JUDGED = tables.VERDICTS[:-1]


@pytest.fixture(scope="module")
def work():
    return replace(shipped.load(scale=shipped.load().committed), root=ROOT)


@pytest.fixture(scope="module")
def page(work):
    return report.page(work)


class Read(HTMLParser):
    """The links, ids and pictures of a page, and {entry: the classes of each cell and its text}."""

    def __init__(self, text):
        super().__init__()
        self.links, self.ids, self.images, self.cells = [], [], [], {}
        self.entry, self.looks = None, None
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        self.ids += [given["id"]] if "id" in given else []
        self.links += [given["href"]] if tag == "a" else []
        self.images += [given] * (tag == "img")
        if tag == "section":
            self.entry = given["id"]
            self.cells[self.entry] = []
        self.looks = given.get("class", "").split() if tag == "td" and self.entry else None

    def handle_endtag(self, tag):
        self.entry = None if tag == "section" else self.entry

    def handle_data(self, data):
        if self.looks:
            self.cells[self.entry].append((self.looks, data))
            self.looks = None


@pytest.fixture(scope="module")
def read(page):
    return Read(page)


def test_what_is_committed_is_what_its_commands_make_of_the_files(work, page, tmp_path):
    if project.load(ROOT, scale=work.scale).entries != work.entries:
        pytest.skip("a user has added methods or entries")
    made = {"report.html": page, str(performance.PAGE): performance.page(ROOT)}
    made[str(errata.PAGE)] = "\n".join(errata.lines(errata.read(ROOT))) + "\n"
    shipped.copy(tmp_path, "figures", "config", without=("*.svg", "*.pdf", "*.zip"))
    with contextlib.chdir(tmp_path):
        tex = [file for name in work.entries for file in latex.remake(work, name)]
        made |= {file: Path(file).read_text(encoding="utf-8") for file in tex}
    assert {*tex} == {f"figures/{file.name}" for file in (ROOT / "figures").glob("*.tex")}
    for file, text in made.items():
        assert (ROOT / file).read_text(encoding="utf-8") == text, file


def test_the_page_counts_what_the_scoreboard_counts(work, read):
    """In each table as the filter does, and each comparison of a figure or of times."""
    board = scoreboard.count(work)[1]
    for mark, column in zip(layout.COUNTED, ("verdict", tables.BY_THE_TEXT), strict=True):
        expected = board.groupby(["table", column])["cells"].sum()
        for entry, cells in read.cells.items():
            found = Counter(w for looks, _ in cells if mark in looks for w in JUDGED if w in looks)
            own = expected.get(entry, pd.Series(dtype=int))
            assert found == {word: own[word] for word in JUDGED if word in own}, entry
    for name in work.entries:
        drawn = overview.drawn(work, name).values()
        said = [p for p in drawn if "verdict" in p and not {"strict", "measured"} & {*p}]
        expected = sum(part["verdict"].notna().sum() for part in said)
        found = sum(int(text) for looks, text in read.cells[name] if "said" in looks)
        assert found == expected, name


def test_every_link_leads_somewhere_and_every_entry_is_linked(work, read):
    """In a checkout, in which nothing was run."""
    assert not [link for link in read.links if link[:1] != "#" and not (ROOT / link).exists()]
    inside = {link[1:] for link in read.links if link[:1] == "#"}
    assert inside <= set(read.ids) and set(work.entries) <= inside
    assert len(read.ids) == len(set(read.ids))
    files = set(read.links)
    assert {"notebooks/recovery_table.ipynb", "config/published/sfsa_table_1.csv"} <= files


def test_a_scale_that_is_not_the_papers_is_said():
    empty = {"papers": {}, "sections": [], "score": [], "methods": []}
    empty |= {"said": {}, "same": {}, "rule": "", "verdicts": []}
    template = report.ENVIRONMENT.from_string(report.TEMPLATE.read_text(encoding="utf-8"))
    assert 'class="banner"' not in template.render(scales={"paper": ["one"]}, **empty)
    mixed = template.render(scales={"paper": ["one"], "standard": ["two", "three"]}, **empty)
    (said,) = re.findall(r"Scale: .*", mixed)
    assert re.findall(r'href="#(\w+)"', said) == ["two", "three"]


def test_pictures_are_whole_and_of_their_own(work, read):
    figures = [n for n, e in work.entries.items() if e.spec["form"] == "figure"]
    assert len(read.images) == sum(bool(overview.drawn(work, name)) for name in figures)
    for image in read.images:
        svg = urllib.parse.unquote(image["src"].partition(",")[2])
        assert svg.startswith("<svg ") and svg.endswith("</svg>") and image["alt"]


def test_every_erratum_is_of_known_kind_paper_and_entries_and_linked_from_them(work, read):
    known = errata.read(ROOT)
    ids = [item["id"] for item in known["items"]]
    assert len(set(ids)) == len(ids)
    for item in known["items"]:
        assert item["kind"] in known["kinds"] and item["id"].split()[0] in known["papers"]
        assert set(item["entries"]) <= set(work.entries), item["id"]
        assert read.links.count(f"#erratum-{errata.anchor(item)}") >= len(item["entries"])


def test_a_committed_cell_that_does_not_agree_names_an_erratum(work):
    """And what an entry discusses is said of a cell: an item that fits none is a slip."""
    written = {item["id"] for item in errata.read(ROOT)["items"]}
    for name, entry in work.entries.items():
        if entry.spec["notebook"] == "recovery_table" and work.published(name):
            cells = pd.read_csv(ROOT / f"figures/{name}.csv")
            told = cells.loc[cells["verdict"].isin(["better", "worse"]), "why"].fillna("")
            for why in told:
                named = re.findall(r"(?:errata.md,|and) (\w+ \d+)", why)
                assert named and written.issuperset(named), f"{name}: {why!r}"
            known = {f"discussed: {item['why']}" for item in entry.spec["discussed"]}
            assert set(told[~told.str.startswith("weaker baseline")]) == known, name


def test_words_are_set_as_a_notebook_means_them():
    assert report.emphasis("*x* is **y** in `z`") == "<i>x</i> is <b>y</b> in <code>z</code>"
    assert report.emphasis("a * 2 * b, [a](b) <i>") == "a * 2 * b, a &lt;i&gt;"
    linked = '<a href="#erratum-sfsa-8">sfsa 8</a>'
    assert report.referring("so (docs/errata.md, sfsa 8) <") == f"so (errata, {linked}) &lt;"


HOSTILE = '<script>alert("1")</script>&'


def test_every_name_is_escaped():
    """Of a user's own methods, data sets, entries and notes: the template escapes what is text."""
    table = pd.DataFrame({HOSTILE: [HOSTILE], "verdict": HOSTILE, "says": HOSTILE})
    row = dict.fromkeys(("paper", "table", "method", "why"), HOSTILE)
    board = pd.DataFrame([row | {"verdict": "agrees", "by the text": "agrees", "cells": 1}])
    made = [report.plain(table, ""), *report.claims(table), report.why(board)]
    made = [one["html"] for one in (*made, report.score(board, "paper", ""))]
    made += [tell(HOSTILE) for tell in (report.code, report.emphasis, report.referring)]
    assert not [one for one in made if "<script" in one or "&lt;script&gt;" not in one]
    assert report.ENVIRONMENT.autoescape
    assert "safe" not in report.TEMPLATE.read_text(encoding="utf-8").partition("<script>")[0]
