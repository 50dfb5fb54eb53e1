"""The site: `make site`, then open docs/_build/html/index.html. It needs the extra `docs`."""

import contextlib
import os
import re
import shutil
import sys
from collections import Counter
from importlib.metadata import version as installed
from pathlib import Path

DOCS = Path(__file__).resolve().parent
ROOT = DOCS.parent
sys.path.insert(0, str(ROOT))  # ofslib.reproduction is part of the checkout only

from ofslib.reproduction import overview  # noqa: E402
from ofslib.reproduction import project as projects  # noqa: E402
from ofslib.reproduction.tables import VERDICTS  # noqa: E402

project = "ofslib"
copyright = "the ofslib developers"
author = "the ofslib developers"
version = release = installed("ofslib")

extensions = [
    "myst_nb",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx-mathjax-offline",
]
exclude_patterns = ["_*", "**.ipynb_checkpoints"]
# No lexer has the name csv; cards are written so that older versions of sphinx-design read them.
suppress_warnings = ["misc.highlighting_failure", "design.card_legacy"]
templates_path = ["_templates"]
myst_enable_extensions = ["amsmath", "colon_fence", "dollarmath", "substitution"]
myst_heading_anchors = 4
nb_execution_mode = "off"  # stored outputs are shown
nb_render_markdown_format = "myst"  # with tables and formulas
nb_mime_priority_overrides = [("*", "application/vnd.jupyter.widget-view+json", None)]
nitpicky = False
linkcheck_ignore = [r"https?://", r"[\w/]+\.html"]  # tests/test_site.py follows links of pages

autosummary_generate = True
default_role = "code"
toc_object_entries_show_parents = "hide"
autodoc_typehints = "none"  # the sections of parameters have them
autodoc_member_order = "groupwise"
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False

html_theme = "pydata_sphinx_theme"
html_title = "ofslib"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_extra_path = ["../report.html"]
html_show_sourcelink = False
html_sidebars = {"index": [], "choose": [], "gallery": [], "glossary": []}
html_theme_options = {
    "navbar_align": "left",
    "navigation_with_keys": False,
    "secondary_sidebar_items": {"**": ["page-toc"], "index": []},
    "show_prev_next": False,
    "footer_start": ["copyright"],
    "footer_end": [],
}


# -------------------------------------------------- what is made of the repository

# Notebooks whose stored outputs are pages of the site; other links out of docs/ become downloads.
SHOWN = ("notebooks/papers", "notebooks/learn")
LINK = re.compile(r"(!?)\[([^][]*)\]\((?!\w+:|#|/)([^)#\s]+)(#[^)\s]*)?\)")

STAR = re.compile(r"^([\w/]+\*)\n", re.M)
CODE = re.compile(r"(?<![\[`<])`((?:ofslib\.)?(\w+)(?:\([^`\n]*\))?)`(?![]`])")
ANCHOR = re.compile(r'^<a id="([\w-]+)"></a>', re.M)


def copy_notebooks():
    """The notebooks of `SHOWN` in docs/, below which Sphinx finds its pages."""
    for folder in SHOWN:
        shutil.rmtree(DOCS / folder, ignore_errors=True)
        for file in sorted(ROOT.glob(f"{folder}/*.ipynb")):
            (DOCS / folder).mkdir(parents=True, exist_ok=True)
            shutil.copy2(file, DOCS / folder)  # with its date: nothing is read twice


def relink(app, docname, source):
    """Links of a page as they hold in the site; names of methods and entries become links."""
    home = ROOT if docname.startswith(SHOWN) else DOCS
    here, page = (home / docname).parent, (DOCS / docname).parent

    def link(match):
        picture, text, path, anchor = match[1], match[2], match[3], match[4] or ""
        target = Path(os.path.normpath(here / path))
        if not target.is_relative_to(ROOT) or not target.exists():
            return match[0]
        inner = target.relative_to(ROOT)
        shown = inner.as_posix().startswith(SHOWN)
        if inner == Path("report.html"):
            # Single quotes: the source of a notebook is JSON.
            return f"<a href='{os.path.relpath(DOCS / inner, page)}{anchor}'>{text}</a>"
        new = os.path.relpath(DOCS / inner if shown else target, page)
        if target.is_relative_to(DOCS) or shown or picture:
            return f"{picture}[{text}]({new}{anchor})"
        if target.is_file() and "`" not in text:
            return f"{{download}}`{text} <{new}>`"
        return text

    def named(match):
        if match[2] in ENTRIES:
            return (
                f"<a href='{os.path.relpath(DOCS, page)}/report.html#{match[2]}'>`{match[1]}`</a>"
            )
        if (DOCS / f"generated/ofslib.{match[2]}.rst").is_file():
            to = os.path.relpath(DOCS / f"generated/ofslib.{match[2]}.rst", page)
            return f"[`{match[1]}`]({to})"
        return match[0]

    source[0] = LINK.sub(link, source[0])
    if not docname.startswith("generated"):
        source[0] = CODE.sub(named, source[0])
    source[0] = ANCHOR.sub(r"(\1)=\n", source[0])
    # What a toctree names with a star may be missing; to Sphinx an empty one is a warning.
    source[0] = STAR.sub(lambda m: m[0] if any(DOCS.glob(f"{m[1]}.*")) else "", source[0])


COLOURS = dict(zip(VERDICTS, ("#2f9e5b", "#3b82c4", "#d9572b", "#d9a900", "#c4c9ce"), strict=True))


def same_words(counts):
    """Counts of verdicts in the words of the tables."""
    words = Counter()
    for word, number in counts.items():
        words[overview.SAME.get(word, word)] += number
    return {word: words[word] for word in VERDICTS if words[word]}


def thumbnail(work, entry):
    """The picture of an entry in docs/: a figure, or of a table a square for each verdict."""
    if (ROOT / f"figures/{entry}.svg").is_file():
        return f"../figures/{entry}.svg"
    table = overview.drawn(work, entry).get(f"figures/{entry}.csv")
    if table is None or "verdict" not in table:
        return ""
    if "reading" in table:  # the last is the one whose verdicts are counted
        table = table[table["reading"] == table["reading"].iloc[-1]]
    rows = [*table.columns[: list(table.columns).index("metric") + 1].drop("method")]
    x, y = table["method"].factorize()[0], table.groupby(rows, sort=False, dropna=False).ngroup()
    if max(y) > max(x):  # the longer side lies
        x, y = y, x
    squares = "".join(
        f'<rect x="{10 * i}" y="{10 * j}" width="9" height="9" fill="{COLOURS[word]}"/>'
        for i, j, word in zip(x, y, table["verdict"], strict=True)
    )
    file = DOCS / "generated" / f"{entry}.svg"
    file.parent.mkdir(exist_ok=True)
    size = f"{10 * max(x) + 9} {10 * max(y) + 9}"
    file.write_text(f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {size}">{squares}</svg>')
    return f"generated/{entry}.svg"


def gallery(work, rows):
    """The page of all tables and figures: a card each, with its verdicts."""
    key = (f'<span class="key" style="--key: {c}">{word}</span>' for word, c in COLOURS.items())
    lines = [
        "# Gallery",
        "",
        "Every table and figure, by paper. A card opens it in the report, beside the paper's.",
        "The picture of a table has a line for each method and a square for each number:",
        "",
        *key,
        "",
        "Verdicts count reconstructed settings. The [glossary](glossary.md) explains the words.",
    ]
    for paper, name in overview.PAPERS.items():
        lines += ["", f"## {name}", "", "::::{grid} 1 2 3 3", ":gutter: 3", ""]
        for row in (row for row in rows if row["paper"] == paper):
            lines += [f":::{{grid-item-card}} {row['source']}"]
            lines += [f":link: report.html#{row['entry']}"]
            if picture := thumbnail(work, row["entry"]):
                lines += [f":img-top: {picture}", f":img-alt: Thumbnail of {row['title']}"]
            words = same_words(row["verdicts"])
            bar = (f'<i style="flex-grow: {n}; --key: {COLOURS[w]}"></i>' for w, n in words.items())
            told = ", ".join(f"{n:,} {word}" for word, n in row["verdicts"].items())
            lines += ["", row["title"], "+++", f'<div class="verdicts">{"".join(bar)}</div>', ""]
            lines += [told or "no number of a paper to compare", ":::", ""]
        lines += ["::::"]
    return "\n".join(lines) + "\n"


def write_gallery(work, rows):
    """docs/gallery.md, if it is another than before."""
    page, text = DOCS / "gallery.md", gallery(work, rows)
    if not page.is_file() or page.read_text(encoding="utf-8") != text:
        page.write_text(text, encoding="utf-8")


def numbers(work, rows):
    """Numbers for the pages, `{{ name }}` there."""
    counts, text = Counter(), Counter()
    for row in rows:
        if row["by_the_text"]:  # the tables whose cells are counted
            counts.update(row["verdicts"])
            text.update(row["by_the_text"])
    items = overview.statements(witnessed=False)
    return {
        "cells": f"{sum(counts.values()):,}",
        "compared": f"{sum(counts.values()) - counts['not comparable']:,}",
        "agree": f"{counts['agrees']:,}",
        "agree_by_the_text": f"{text['agrees']:,}",
        "worse": f"{counts['worse']:,}",
        "entries": len(rows),
        "statements": len(items),
        "claims": int((items[overview.TRUE] != "-").sum()),
        "false": int((items[overview.TRUE] == "no").sum()),
    }


copy_notebooks()
with contextlib.chdir(ROOT):  # Sphinx runs this file in docs/
    _work = projects.committed(ROOT)
    _rows = overview.overview(_work)
ENTRIES = {row["entry"] for row in _rows}
write_gallery(_work, _rows)
myst_substitutions = numbers(_work, _rows)


# In a docstring `coef_` is no link and |beta| no substitution; code and names before colons stay.
PROSE = re.compile(r"``.+?``|`[^`]+`|(?P<name>\b\w+_\b(?![`(]))|(?P<bar>\|)")


def plain_words(app, what, name, obj, options, lines):
    """Names that end in an underscore, and bars, as they are meant in a docstring."""

    def word(match):
        return f"``{match[0]}``" if match["name"] else "\\|" if match["bar"] else match[0]

    for i, line in enumerate(lines):
        if not re.match(r"\s*(>>>|\.\.\.|[\w, ]+ : )", line):
            lines[i] = PROSE.sub(word, line)


# What scikit-learn does for each selector of ours
OF_SELECTORS = {"get_support", "inverse_transform", "get_feature_names_out"}


def only_ours(app, what, name, obj, skip, options):
    """Leave out what an estimator inherits from scikit-learn, unless it is of selectors."""
    if name in OF_SELECTORS:
        return None
    home = getattr(obj, "__module__", None) or getattr(getattr(obj, "fget", obj), "__module__", "")
    return True if (home or "").startswith("sklearn") or name.endswith("_request") else None


def copy_linked(app, exception):
    """The files of the repository that the report links, beside it."""
    if exception or app.builder.format != "html":
        return
    for link in {*re.findall(r'href="([\w/.-]+)"', (ROOT / "report.html").read_text("utf-8"))}:
        if (ROOT / link).is_file():
            (Path(app.outdir) / link).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / link, Path(app.outdir) / link)


def setup(app):
    """What Sphinx calls before it reads the pages."""
    app.connect("source-read", relink)
    app.connect("autodoc-process-docstring", plain_words, priority=400)  # before numpydoc
    app.connect("autodoc-skip-member", only_ours)
    app.connect("build-finished", copy_linked)
