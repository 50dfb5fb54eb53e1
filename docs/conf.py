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

from ofslib.reproduction import overview, project as projects  # noqa: E402

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
]
exclude_patterns = ["_build", "**.ipynb_checkpoints"]
templates_path = ["_templates"]
# Pages that a toctree names with a star may be missing.
suppress_warnings = ["toc.empty_glob"]
myst_enable_extensions = ["amsmath", "colon_fence", "dollarmath", "substitution"]
myst_heading_anchors = 4
nb_execution_mode = "off"  # stored outputs are shown
nb_mime_priority_overrides = [("*", "application/vnd.jupyter.widget-view+json", None)]
nitpicky = False
linkcheck_ignore = [r"https?://", r".*report\.html"]  # no network; tests/test_site.py has the rest

autosummary_generate = True
default_role = "code"
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
    "secondary_sidebar_items": ["page-toc"],
    "show_prev_next": False,
    "footer_start": ["copyright"],
    "footer_end": [],
}


# -------------------------------------------------- what is made of the repository

# Notebooks whose stored outputs are pages of the site; other links out of docs/ become downloads.
SHOWN = ("notebooks/papers", "notebooks/learn")
LINK = re.compile(r"(!?)\[([^][]*)\]\((?!\w+:|#|/)([^)#\s]+)(#[^)\s]*)?\)")


def copy_notebooks():
    """The notebooks of `SHOWN` in docs/, below which Sphinx finds its pages."""
    for folder in SHOWN:
        shutil.rmtree(DOCS / folder, ignore_errors=True)
        for file in sorted(ROOT.glob(f"{folder}/*.ipynb")):
            (DOCS / folder).mkdir(parents=True, exist_ok=True)
            shutil.copy2(file, DOCS / folder)  # with its date: nothing is read twice


def relink(app, docname, source):
    """Links of a page or notebook, which hold in the repository, as links that hold in the site."""
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

    source[0] = LINK.sub(link, source[0])


def verdict_bar(counts):
    """How often each verdict was given, as a bar; its numbers stand below it as text."""
    words = Counter()
    for word, number in counts.items():
        words[overview.SAME.get(word, word)] += number
    parts = (
        f'<span class="{word.replace(" ", "-")}" style="flex-grow: {number}"></span>'
        for word, number in words.items()
    )
    return f'<div class="verdicts" aria-hidden="true">{"".join(parts)}</div>'


def gallery(rows):
    """The page of all tables and figures: a card each, with its verdicts."""
    lines = [
        "# Gallery",
        "",
        "All tables and figures of the five papers, then those of our own. A card opens the table",
        "or figure in the report, with the paper's numbers. Each bar shows how many numbers have",
        "which verdict:",
        '<span class="key agrees">agrees</span> <span class="key better">better</span>',
        '<span class="key worse">worse</span> <span class="key unresolved">unresolved</span>',
        '<span class="key not-comparable">not comparable</span>.',
        "The verdicts count the reconstructed readings; [the glossary](glossary.md) explains both.",
    ]
    for paper, name in overview.PAPERS.items():
        lines += ["", f"## {name}", "", "::::{grid} 1 2 3 3", ":gutter: 3", ""]
        for row in (row for row in rows if row["paper"] == paper):
            lines += [f":::{{grid-item-card}} {row['source']}"]
            lines += [f":link: report.html#{row['entry']}", ":class-card: sd-h-100"]
            picture = ROOT / "figures" / f"{row['entry']}.svg"
            if picture.is_file():
                lines += [f":img-top: ../figures/{picture.name}"]
                lines += [f":img-alt: Thumbnail of {row['title']}"]
            told = ", ".join(f"{n:,} {word}" for word, n in row["verdicts"].items())
            lines += ["", row["title"], "+++", verdict_bar(row["verdicts"]), ""]
            lines += [told or "no number of a paper to compare", ":::", ""]
        lines += ["::::"]
    return "\n".join(lines) + "\n"


def write_gallery(rows):
    """docs/gallery.md, if it is another than before."""
    page, text = DOCS / "gallery.md", gallery(rows)
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
write_gallery(_rows)
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


def only_ours(app, what, name, obj, skip, options):
    """Leave out what an estimator inherits from scikit-learn."""
    home = getattr(obj, "__module__", None) or getattr(getattr(obj, "fget", obj), "__module__", "")
    return True if (home or "").startswith("sklearn") or name.endswith("_request") else None


def setup(app):
    """What Sphinx calls before it reads the pages."""
    app.connect("source-read", relink)
    app.connect("autodoc-process-docstring", plain_words, priority=400)  # before numpydoc
    app.connect("autodoc-skip-member", only_ours)
