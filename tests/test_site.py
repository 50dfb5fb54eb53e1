"""The site as its readers find it: no warning, a page for every public name, links that lead on."""

import csv
import importlib
import inspect
import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"


class Links(HTMLParser):
    """What a page links, and what can be linked in it."""

    def __init__(self, page):
        super().__init__()
        self.links, self.ids = set(), set()
        self.feed(page.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        self.ids |= {attrs[key] for key in ("id", "name") if attrs.get(key)}
        self.links |= {attrs[key] for key in ("href", "src") if attrs.get(key)}


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The site, built anew from a copy of the docs: generated pages of before are not in it."""
    pytest.importorskip("myst_nb", reason="needs the extra docs")
    folder = tmp_path_factory.mktemp("site")
    for made in ("generated", "notebooks"):
        shutil.rmtree(DOCS / made, ignore_errors=True)
    command = [sys.executable, "-m", "sphinx", "--fail-on-warning", "-q", "-b", "html"]
    done = subprocess.run([*command, DOCS, folder], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.mark.slow
def test_every_public_name_has_a_page(site):
    import ofslib

    names = [f"ofslib.{name}" for name in ofslib.__all__ if name not in ofslib.MODULES]
    for module in ("bounds", "datasets", "simulate"):
        home = importlib.import_module(f"ofslib.{module}")
        for name in getattr(home, "__all__", vars(home)):
            value = getattr(home, name)
            ours = getattr(value, "__module__", "").startswith(home.__name__)
            if ours and not name.startswith("_") and (inspect.isclass(value) or callable(value)):
                names.append(f"{home.__name__}.{name}")
    hidden = {"ofslib.simulate.check_kinds"}  # of other modules of ours
    lack = [n for n in names if not (site / f"generated/{n}.html").is_file()]
    assert {*lack} == hidden, "docs/api.md does not list them"


@pytest.mark.slow
def test_internal_links_lead_to_what_they_name(site):
    pages = {page: Links(page) for page in site.rglob("*.html") if "_static" not in page.parts}
    dead = []
    for page, found in pages.items():
        for link in found.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (page.parent / unquote(parts.path)).resolve() if parts.path else page
            there = pages.get(target)
            lost = parts.fragment and there and unquote(parts.fragment) not in there.ids
            if not target.exists() or lost:
                dead.append(f"{page.relative_to(site)}: {link}")
    assert not dead, "\n".join(sorted(dead))


@pytest.mark.slow
def test_tables_that_a_notebook_prints_are_tables(site):
    raw = [page for page in site.rglob("*.html") if "<p>| " in page.read_text(encoding="utf-8")]
    assert not raw


@pytest.mark.slow
def test_the_gallery_shows_every_entry(site):
    from ofslib.reproduction import project

    links = Links(site / "gallery.html").links
    entries = project.load(ROOT).entries
    assert {f"report.html#{entry}" for entry in entries} <= links


def test_the_map_of_methods_rests_on_measurements():
    """Each leaf names a case of benchmarks/results.csv, with its numbers, or a committed figure."""
    with open(ROOT / "benchmarks/results.csv", encoding="utf-8") as file:
        cases = {row["case"] for row in csv.DictReader(file)}
    shown = (DOCS / "performance.md").read_text(encoding="utf-8")
    text = (DOCS / "choose.md").read_text(encoding="utf-8")
    leaves = re.findall(r"^:::\{dropdown\} (.*?)\n(.*?)^:::$", text, re.M | re.S)
    assert len(leaves) > 20
    for title, leaf in leaves:
        assert title.count("→") == 1, title
        measured = leaf.partition("*Measured:*")[2]
        named = re.findall(r"`(\w+)`", measured)
        assert named, title
        for name in named:
            assert name in cases or (ROOT / f"figures/{name}.csv").is_file(), name
        if {*named} <= cases:  # all its numbers are on the page of performance
            units = r"([\d.]+) (?:ns|µs|MB|s) |AUC ([\d.]+\d)"
            for number in filter(None, (a or b for a, b in re.findall(units, measured))):
                assert re.search(rf"(?<![\d.]){re.escape(number)}(?!\d)", shown), (title, number)


def test_the_front_page_keeps_its_word(capsys):
    text = (DOCS / "index.md").read_text(encoding="utf-8")
    shown = (DOCS / "performance.md").read_text(encoding="utf-8")
    part = shown.split("## Sparse rows")[1].split("\n### ")[0]
    sparse = dict(re.findall(r"^\| ([^|]+) \| (\S+), .*$", part, re.M))
    assert f"{sparse['SFSA']} ns a nonzero value" in text
    assert f"takes {sparse['scikit-learn SGD, l1']} ns" in text
    code = re.search(r"```python\n(.*?)```", text, re.S)[1]
    exec(code, {})
    said = re.findall(r"^print.*  # (.*)$", code, re.M)
    assert capsys.readouterr().out.splitlines() == said
