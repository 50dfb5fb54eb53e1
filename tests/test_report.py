"""The report: it says what the committed files say, in one file; and how it reads the errata."""

import json
import re
import shutil
import urllib.parse
from collections import Counter
from dataclasses import replace
from html.parser import HTMLParser
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pandas as pd
import pytest
import shipped

from ofslib.reproduction import errata, overview, project, provenance, scoreboard, tables

ROOT = Path(__file__).parents[1]
SPEC = spec_from_file_location("report_script", ROOT / "workflow/scripts/report.py")
report = module_from_spec(SPEC)
SPEC.loader.exec_module(report)


@pytest.fixture(scope="module")
def work():
    return replace(shipped.load(scale=shipped.load().committed), root=ROOT)


@pytest.fixture(scope="module")
def page(work):
    return report.page(work)


class Sections(HTMLParser):
    """{entry: the verdicts of its cells}, each as (class, data-v, word)."""

    def __init__(self, text):
        super().__init__()
        self.found, self.links, self.entry, self.cell = {}, [], None, None
        self.ids, self.images, self.scripts = set(), [], 0
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        self.ids.add(given.get("id"))
        self.scripts += tag == "script"
        if tag == "section":
            self.entry = given["id"]
            self.found[self.entry] = []
        elif tag == "span" and "data-v" in given and self.entry:
            self.cell = [given["class"], given["data-v"], ""]
        elif tag == "i" and self.cell:
            self.cell.append("")
        elif tag == "a":
            self.links.append(given["href"])
        elif tag == "img":
            self.images.append(given)

    def handle_endtag(self, tag):
        if tag == "i" and self.cell:
            self.found[self.entry].append((*self.cell[:2], self.cell[-1]))
            self.cell = None

    def handle_data(self, data):
        if self.cell and len(self.cell) == 4:
            self.cell[-1] += data


@pytest.fixture(scope="module")
def read(page):
    return Sections(page)


def test_the_committed_report_is_that_of_the_committed_files(work, page):
    if project.load(ROOT, scale=work.scale).entries != work.entries:
        pytest.skip("a user has added methods or entries")
    committed = (ROOT / "report.html").read_text(encoding="utf-8")
    assert committed == page, "python workflow/scripts/report.py makes it anew"


def test_it_is_small_enough_to_be_mailed(page):
    assert len(page.encode()) < 4e6


def test_each_cell_has_its_verdict_as_colour_and_word(work, read):
    compared = forms = 0
    for name, entry in work.entries.items():
        if entry.spec["form"] != "table":
            continue
        drawn = overview.drawn(work, name).values()
        parts = [part for part in drawn if {"strict", "measured"} & {*part}]
        parts += [scoreboard.judged_sizes(part) for part in drawn if "same" in part]
        if not parts:
            continue
        forms += name in ("dissertation_table_3_1", "barda_table_1", "ofs_table_1")
        said = [p for p in drawn if "verdict" in p and not {"strict", "measured"} & {*p}]
        shown = read.found[name]
        for look, verdict, word in shown:
            assert look == "v " + verdict.replace(" ", "-")
            assert overview.SAME.get(word, word) == verdict
        expected = pd.concat(parts)["verdict"].value_counts()
        compared += expected.sum()
        # Beside the cells there is what is said of times: a word for each count.
        counts = [zip(c["words"], row, strict=True) for c in claims(said) for _, row in c["rows"]]
        expected = Counter(expected.to_dict()) + Counter(w for row in counts for w, n in row if n)
        assert Counter(word for _, _, word in shown) == expected, name
    assert compared > 1701 and forms == 3, "orders of growth are cells too"


def claims(parts):
    return [claim for part in parts for claim in report.claims(part)]


def test_every_entry_is_found_from_the_contents(work, read):
    assert set(read.found) == set(work.entries)
    assert {link[1:] for link in read.links if link[:1] == "#"} == {*work.entries, "top"}
    assert {link[1:] for link in read.links if link[:1] == "#"} <= read.ids


def test_links_lead_to_files_of_the_checkout_or_to_logs(read):
    files = {link for link in read.links if link[:1] != "#"}
    lost = {f for f in files if not (f.startswith("logs/") or (ROOT / f).exists())}
    assert lost == set()
    assert {"notebooks/recovery_table.ipynb", "config/experiments/ofs.yaml"} <= files
    assert {"docs/errata.md", "config/published/sfsa_table_1.csv"} <= files
    made = provenance.read(ROOT / "figures/PROVENANCE.json")
    assert {f"logs/{facts['scale']}/{entry}.txt" for entry, facts in made.items()} <= files


def test_a_newcomer_finds_a_table_its_verdicts_and_its_notebook(page):
    section = page[page.index('<section id="dissertation_table_5_1"') :]
    section = section[: section.index("</section>")]
    for text in ("Tables 5.1 and 5.2", "notebooks/recovery_table.ipynb", "agrees"):
        assert text in section
    assert "entry = &#34;dissertation_table_5_1&#34;" in section


def test_what_explains_a_figure_stands_beside_it(work, page):
    for name, entry in work.entries.items():
        told = report.markdown(entry.spec["explanation"])
        section = page[page.index(f'<section id="{name}"') :]
        section = section[: section.index("</section>")]
        assert told in section
        drawn = report.how_it_is_drawn(work.notebook(name))
        assert (drawn and all(report.markdown(part) in section for part in drawn)) or (
            entry.spec["form"] == "table"
        )
    assert "<b>information floor</b>" in page
    # What shades are differs from figure to figure
    for said in ("one standard error shaded", "the middle 80 % of them shaded", "95 % intervals"):
        assert said in page
    assert "M_t = k +" in page and "$M_t" not in page


def test_a_scale_that_is_not_the_papers_is_said(work, page):
    made = provenance.read(ROOT / "figures/PROVENANCE.json")
    assert {row["entry"] for row in overview.overview(work) if row["drawn"]} == set(made)
    for scale in {facts["scale"] for facts in made.values()}:
        assert (f"Scale: {scale}, not the papers" in page) == (scale != "paper")
        assert f"<dd>scale {scale}; drawn 20" in page
    template = report.ENVIRONMENT.from_string(report.TEMPLATE.read_text(encoding="utf-8"))
    empty = {"papers": {}, "sections": [], "score": {"papers": [], "methods": {}}}
    empty |= {"said": {}, "same": {}, "rule": "", "verdicts": []}
    assert 'class="banner"' not in template.render(scales={"paper": ["one"]}, **empty)
    mixed = template.render(scales={"paper": ["one"], "standard": ["two", "three"]}, **empty)
    (said,) = re.findall(r"Scale: .*", mixed)
    assert re.findall(r'href="#(\w+)"', said) == ["two", "three"] and "Scale: standard" in said


def test_each_table_is_judged_at_the_scale_at_which_it_was_made(work, tmp_path):
    """Figures of two scales in one folder: as a run that goes from one to the other leaves them."""
    for name in ("config", "figures", "workflow", "notebooks", "docs", "benchmarks"):
        ignored = shutil.ignore_patterns("*.pdf", "*.tex")
        shutil.copytree(ROOT / name, tmp_path / name, ignore=ignored)
    file = tmp_path / "figures/PROVENANCE.json"
    drawn = provenance.read(file)
    (tmp_path / "stamp").write_text(json.dumps(drawn["sfsa_table_2"] | {"scale": "smoke"}))
    provenance.update(file, {"sfsa_table_2": tmp_path / "stamp"})
    now = provenance.read(file)
    assert now.pop("sfsa_table_2")["scale"] == "smoke" and drawn.pop("sfsa_table_2")
    assert now == drawn, "the records of the others stay"
    mixed = replace(work, root=tmp_path)
    scoreboard.judge(mixed)
    board = scoreboard.published_cells(mixed)
    reasons = board.groupby("table")["why"].unique()
    assert "not run at scale smoke" in reasons["sfsa_table_2"]
    assert not any("smoke" in why for table in drawn for why in reasons.get(table, []))
    rows = {row["entry"]: row for row in overview.overview(mixed)}
    assert rows["sfsa_table_2"]["made"]["scale"] == "smoke"
    section = report.section(mixed, rows["sfsa_table_2"], [])
    assert "logs/smoke/sfsa_table_2.txt" in dict(section["links"]["log"])
    other = (tmp_path / "figures/sfsa_table_1.csv").read_bytes()
    assert other == (ROOT / "figures/sfsa_table_1.csv").read_bytes(), "judged at its own scale"


def test_pictures_are_whole_and_of_their_own(work, read):
    figures = [n for n, e in work.entries.items() if e.spec["form"] == "figure"]
    figures = [name for name in figures if overview.drawn(work, name)]
    assert len(read.images) == len(figures) and read.scripts == 1
    for image in read.images:
        svg = urllib.parse.unquote(image["src"].partition(",")[2])
        assert svg.startswith("<svg ") and svg.endswith("</svg>") and image["alt"]
        called = re.findall(r"(?:url\(|href=')#([^')]+)['\")]", svg)
        assert called and set(called) == set(re.findall(r" id='([^']+)'", svg))


def test_a_picture_keeps_its_shapes():
    shape = '<path id="a" d="M 1.26 -20.04 \nL 3.999 4.0 \nz\n" style="fill: #ff0000"/>'
    moved = '<g id="b" transform="translate(1.234 5.678) scale(0.015625)"/><use x="1.5" href="#a"/>'
    size = 'width="72pt" height="36.4pt"'
    svg = f'<?xml version="1.0"?><svg {size}><metadata>who</metadata>{shape}{moved}</svg>'
    found = report.picture(svg)
    assert (found["width"], found["height"]) == (72, 36)
    assert urllib.parse.unquote(found["src"].partition(",")[2]) == (
        "<svg width='72pt' height='36.4pt'><path id='n0' d='M1.3-20L4 4z' style='fill:#ff0000'/>"
        "<g transform='translate(1.2 5.7) scale(0.015625)'/><use x='1.5' href='#n0'/></svg>"
    )


def test_every_erratum_is_of_known_kind_paper_and_entries_and_stands_beside_them(work, page):
    known = errata.read(ROOT)
    ids = [item["id"] for item in known["items"]]
    assert len(set(ids)) == len(ids)
    for item in known["items"]:
        assert item["kind"] in known["kinds"] and item["id"].split()[0] in known["papers"]
        assert set(item["entries"]) <= set(work.entries), item["id"]
        assert page.count(f"<summary>Erratum {item['id']} ") == len(item["entries"])
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
            discussed = entry.spec["discussed"]
            own = ~cells["why"].fillna("").str.startswith("weaker baseline")
            expected = tables._known_of(cells, discussed)[own]
            assert cells.loc[own, "why"].tolist() == [f"discussed: {why}" for why in expected], name
            assert set(expected) == {item["why"] for item in discussed}, name
    assert told > 200


def test_a_star_between_spaces_multiplies():
    assert report.markdown("*x* is **y** in `z`") == "<i>x</i> is <b>y</b> in <code>z</code>"
    assert report.markdown("a * 2 * b is *small*") == "a * 2 * b is <i>small</i>"


def test_the_list_of_notebooks_names_each_entry_once(work):
    rows = overview.overview(work)
    assert sorted(row["entry"] for row in rows) == sorted(work.entries)
    lines = overview.as_markdown(rows).splitlines()[2:]
    for row, line in zip(rows, lines, strict=True):
        name = row["notebook"].removeprefix("notebooks/")
        assert f"[{name}]({name})" in line and f'`entry = "{row["entry"]}"`' in line
    assert [row["paper"] for row in rows] == sorted(
        (row["paper"] for row in rows), key=list(overview.PAPERS).index
    )
