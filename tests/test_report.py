"""The report: it says what the committed files say, in one file that a reader finds through."""

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

from ofslib.reproduction import errata, layout, overview, project, provenance, scoreboard, tables

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


def test_the_committed_report_is_that_of_the_committed_files(work, page):
    if project.load(ROOT, scale=work.scale).entries != work.entries:
        pytest.skip("a user has added methods or entries")
    committed = (ROOT / "report.html").read_text(encoding="utf-8")
    assert committed == page, "python workflow/scripts/report.py makes it anew"


@pytest.mark.parametrize("mark", layout.COUNTED)
def test_the_filter_counts_what_the_scoreboard_counts(work, read, mark):
    """In all and in each table: the cells of the page, the board, and what was found."""
    board = scoreboard.scoreboard(work)
    column = "verdict" if mark == layout.COUNTED[0] else tables.BY_THE_TEXT
    expected = board.groupby(["table", column])["cells"].sum()
    for entry, cells in read.cells.items():
        found = Counter(w for looks, _ in cells if mark in looks for w in JUDGED if w in looks)
        own = expected.get(entry, pd.Series(dtype=int))
        assert found == {word: own[word] for word in JUDGED if word in own}, entry


def test_what_was_found_says_the_numbers_of_the_files(work, page):
    cells, rows = scoreboard.published_cells(work), overview.overview(work)
    found = report.findings(cells, rows, errata.read(ROOT)["items"])
    assert found["judged"] == cells["verdict"].isin(JUDGED).sum()
    assert found["said"].total() == sum(
        sum(row["verdicts"].values()) for row in rows if row["entry"] not in set(cells["table"])
    )
    (said,) = re.findall(r'<ol class="found">(.*?)</ol>', page, re.S)
    for number in (*found["fitted"][[*JUDGED]], *found["text"][[*JUDGED]], found["weak"]):
        assert re.search(rf"\b{number}\b", said)
    assert said.count("<li>") == 10 and {row["entry"] for row in rows} >= {
        link for link in re.findall(r'href="#(\w+)"', said) if "_" in link
    } - {"bounds_overview"}


def test_each_comparison_of_a_figure_or_of_times_is_counted(work, read):
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


def test_what_explains_a_figure_stands_beside_it(work, page):
    for name, entry in work.entries.items():
        section = page[page.index(f'<section id="{name}"') :]
        section = section[: section.index("</section>")]
        assert report.emphasis(entry.spec["explanation"]) in section
        assert f"entry = &#34;{name}&#34;" in section
        if entry.spec["form"] == "figure":
            drawn = report.how_it_is_drawn(work.notebook(name))
            assert drawn and all(report.emphasis(part) in section for part in drawn)


def test_a_scale_that_is_not_the_papers_is_said(work, page):
    made = provenance.read(ROOT / "figures/PROVENANCE.json")
    for scale in {facts["scale"] for facts in made.values()}:
        assert (f"Scale: {scale}, not the papers" in page) == (scale != "paper")
    empty = {"papers": {}, "sections": [], "score": [], "methods": []}
    empty |= {"said": {}, "same": {}, "rule": "", "verdicts": []}
    template = report.ENVIRONMENT.from_string(report.TEMPLATE.read_text(encoding="utf-8"))
    assert 'class="banner"' not in template.render(scales={"paper": ["one"]}, **empty)
    mixed = template.render(scales={"paper": ["one"], "standard": ["two", "three"]}, **empty)
    (said,) = re.findall(r"Scale: .*", mixed)
    assert re.findall(r'href="#(\w+)"', said) == ["two", "three"]


def test_each_table_is_judged_at_the_scale_at_which_it_was_made(work, tmp_path):
    """Figures of two scales in one folder: as a run that goes from one to the other leaves them."""
    parts = ("config", "figures", "workflow", "notebooks", "docs", "benchmarks")
    shipped.copy(tmp_path, *parts, without=("*.pdf", "*.tex"))
    file = tmp_path / "figures/PROVENANCE.json"
    drawn = provenance.read(file)
    provenance.write(file, drawn | {"sfsa_table_2": drawn["sfsa_table_2"] | {"scale": "smoke"}})
    now = provenance.read(file)
    assert now.pop("sfsa_table_2")["scale"] == "smoke" and drawn.pop("sfsa_table_2")
    assert now == drawn, "the records of the others stay"
    mixed = replace(work, root=tmp_path)
    scoreboard.judge(mixed)
    reasons = scoreboard.published_cells(mixed).groupby("table")["why"].unique()
    assert [t for t, why in reasons.items() if "not run at scale smoke" in why] == ["sfsa_table_2"]
    other = (tmp_path / "figures/sfsa_table_1.csv").read_bytes()
    assert other == (ROOT / "figures/sfsa_table_1.csv").read_bytes(), "judged at its own scale"


def test_pictures_are_whole_and_of_their_own(work, read):
    figures = [n for n, e in work.entries.items() if e.spec["form"] == "figure"]
    assert len(read.images) == sum(bool(overview.drawn(work, name)) for name in figures)
    for image in read.images:
        svg = urllib.parse.unquote(image["src"].partition(",")[2])
        assert svg.startswith("<svg ") and svg.endswith("</svg>") and image["alt"]
        called = re.findall(r"(?:url\(|href=')#([^')]+)['\")]", svg)
        assert called and set(called) == set(re.findall(r" id='([^']+)'", svg))


def test_a_picture_keeps_its_shapes():
    shape = '<path id="a" d="M 1.26 -20.04 \nL 3.999 4.0 \nz\n" style="fill: #ff0000"/>'
    moved = '<g id="b" transform="translate(1.234 5.678) scale(0.015625)"/><use x="1.5" href="#a"/>'
    svg = f'<?xml version="1.0"?><svg width="72pt" height="36.4pt">{shape}{moved}</svg>'
    found = report.picture(svg)
    assert (found["width"], found["height"]) == (72, 36)
    assert urllib.parse.unquote(found["src"].partition(",")[2]) == (
        "<svg width='72pt' height='36.4pt'><path id='n0' d='M1.3-20L4 4z' style='fill:#ff0000'/>"
        "<g transform='translate(1.2 5.7) scale(0.015625)'/><use x='1.5' href='#n0'/></svg>"
    )


def test_every_erratum_is_of_known_kind_paper_and_entries_and_linked_from_them(work, read):
    known = errata.read(ROOT)
    ids = [item["id"] for item in known["items"]]
    assert len(set(ids)) == len(ids)
    for item in known["items"]:
        assert item["kind"] in known["kinds"] and item["id"].split()[0] in known["papers"]
        assert set(item["entries"]) <= set(work.entries), item["id"]
        assert read.links.count(f"#erratum-{errata.anchor(item)}") >= len(item["entries"])
    written = (ROOT / errata.PAGE).read_text(encoding="utf-8")
    assert written == "\n".join(errata.lines(known)) + "\n", "python -m ofslib.reproduction.errata"


def test_a_committed_cell_that_does_not_agree_names_an_erratum(work):
    """And what an entry discusses is said of a cell: an item that fits none is a slip."""
    written = {item["id"] for item in errata.read(ROOT)["items"]}
    told = 0
    for name, entry in work.entries.items():
        if entry.spec["notebook"] == "recovery_table" and work.published(name):
            cells = pd.read_csv(ROOT / f"figures/{name}.csv")
            cells = cells[cells["verdict"].isin(["better", "worse"])]
            for why in cells["why"].fillna(""):
                named = re.findall(r"(?:errata.md,|and) (\w+ \d+)", why)
                assert named and written.issuperset(named), f"{name}: {why!r}"
                told += 1
            own = ~cells["why"].fillna("").str.startswith("weaker baseline")
            expected = tables._known_of(cells, entry.spec["discussed"])[own]
            assert cells.loc[own, "why"].tolist() == [f"discussed: {why}" for why in expected], name
            assert set(expected) == {item["why"] for item in entry.spec["discussed"]}, name
    assert told > 200


def test_words_are_set_as_a_notebook_means_them():
    assert report.emphasis("*x* is **y** in `z`") == "<i>x</i> is <b>y</b> in <code>z</code>"
    assert report.emphasis("a * 2 * b, [a](b) <i>") == "a * 2 * b, a &lt;i&gt;"
    linked = '<a href="#erratum-sfsa-8">sfsa 8</a>'
    assert report.referring("so (docs/errata.md, sfsa 8) <") == f"so (errata, {linked}) &lt;"


HOSTILE = '<script>alert("1")</script>&'


def test_every_name_is_escaped():
    """Of a user's own methods, data sets, entries and notes."""
    table = pd.DataFrame({HOSTILE: [HOSTILE], "verdict": HOSTILE, "says": HOSTILE})
    keys = ("entry", "source", "title", "notebook", "parameter", "command", "made", "log")
    section = dict.fromkeys(keys, HOSTILE) | {"paper": HOSTILE, "drawn": False}
    erratum = dict.fromkeys(("id", "kind", "title", "text"), HOSTILE) | {"entries": [HOSTILE]}
    reasons = [(HOSTILE, HOSTILE, [HOSTILE])]
    blocks = [report.plain(table, HOSTILE) | {"reasons": reasons, "marks": [HOSTILE]}]
    section |= {"readings": {HOSTILE: HOSTILE}, "verdicts": {HOSTILE: 1}, "errata": [erratum]}
    section |= {"links": {"notebook": [(HOSTILE, HOSTILE)]}, "explanation": HOSTILE}
    section |= {"blocks": blocks, "claims": list(report.claims(table)), "drawing": [HOSTILE]}
    row = dict.fromkeys(("paper", "table", "method", "why"), HOSTILE)
    row |= {"verdict": "agrees", "by the text": "agrees", "cells": 1}
    text = report.TEMPLATE.read_text(encoding="utf-8")
    page = report.ENVIRONMENT.from_string(text).render(
        rule=HOSTILE,
        missing={HOSTILE: HOSTILE},
        scales={HOSTILE: [HOSTILE], "paper": [HOSTILE]},
        environments=[HOSTILE],
        papers={HOSTILE: HOSTILE},
        names={HOSTILE: HOSTILE},
        errata={"kinds": {HOSTILE: HOSTILE}, "items": [erratum]},
        sections=[section],
        score=[report.score(pd.DataFrame([row]), "paper", HOSTILE)],
        methods=[report.why(pd.DataFrame([row]))],
        said={HOSTILE: {HOSTILE: 1}},
        same={},
        verdicts=["agrees"],
    )
    assert page.count("<script") == 1 and "alert(" not in page[page.index("<script") :]
    assert page.count("&lt;script&gt;") > 40


def test_the_list_of_notebooks_names_each_entry_once(work):
    rows = overview.overview(work)
    assert sorted(row["entry"] for row in rows) == sorted(work.entries)
    lines = overview.as_markdown(rows).splitlines()[2:]
    for row, line in zip(rows, lines, strict=True):
        name = row["notebook"].removeprefix("notebooks/")
        assert f"[{name}]({name})" in line and f'`entry = "{row["entry"]}"`' in line
