"""The report: every table and figure with its verdicts, in one file that opens offline.

`python workflow/scripts/report.py` makes it of the figures that are there, and runs nothing.
"""

import argparse
import json
import math
import os
import re
import urllib.parse
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import jinja2
import markupsafe
import pandas as pd

from ofslib._files import write_whole
from ofslib.reproduction import as_printed, errata, looks, overview, project, tables
from ofslib.reproduction import scoreboard as board
from ofslib.reproduction.scoreboard import judged_sizes

TEMPLATE = Path(__file__).with_name("report.html.jinja")
NOT_AXES = {"reading", "method", "metric"}
SIDES = ("width", "height")
LONG = 40  # letters of a reason that are shown; more of them when pointed at
NO_READING = "values chosen in its only reading"


# -------------------------------------------------- tables


def block(table: pd.DataFrame, caption: str) -> dict[str, Any]:
    """The cells of one metric and reading: a row of the paper's table a row, a method a column."""
    if table["paper"].isna().all():  # of no paper, which need not be said in each cell
        table = table.assign(why=table["why"].replace(tables.NOT_PRINTED, ""))
    axes = [c for c in table.columns[: table.columns.get_loc("method")] if c not in NOT_AXES]
    methods, rows = looks.in_order(table["method"]), {}
    for cell in table.to_dict("records"):
        row = rows.setdefault(tuple(cell[a] for a in axes), {})
        row[cell["method"]] = shown_cell(cell)
    shown = [(", ".join(map(str, key)), [row.get(m) for m in methods]) for key, row in rows.items()]
    return {"caption": caption, "axes": ", ".join(axes), "methods": methods, "rows": shown}


def shown_cell(cell: dict[str, Any]) -> dict[str, str]:
    """Our number with its verdict, and below the paper's with the reason for the verdict."""
    metric, is_time = cell["metric"], cell["metric"] == "time_s"
    ours, se = cell["median" if is_time else "ours"], cell["se"]
    digits = as_printed.DIGITS[metric]
    own = "–" if math.isnan(ours) else f"{ours:.{digits}f}"
    own += "" if is_time or math.isnan(se) else f" ({se:.{digits}f})"
    why = cell["why"] if isinstance(cell["why"], str) else ""
    paper = "" if math.isnan(cell["paper"]) else f"paper {cell['paper']:g}"
    paper += f" ({cell['printed']})" if paper and cell["printed"] != "printed" else ""
    below = [paper, why if len(why) <= LONG else tables.reason(why)]
    shown = {"ours": own, "verdict": cell["verdict"], "paper": "; ".join(filter(None, below))}
    return shown | {"why": why if len(why) > LONG else ""}


def unlike(table: pd.DataFrame, caption: str) -> dict[str, Any]:
    """Cells each of which is of a kind of its own, as orders of growth or sizes of data sets: what
    they are of a row, the kind a column."""
    key = "method" if "method" in table else "title"
    rows = {name: {} for name in table[key]}
    for cell in table.astype(object).fillna("").astype(str).to_dict("records"):
        why, paper = cell["why"], cell["paper"] and f"paper {cell['paper']}"
        source = cell.get("printed", "printed")
        paper += f" ({source})" if paper and source != "printed" else ""
        below = [paper, why if len(why) <= LONG else tables.reason(why)]
        shown = {"ours": cell["ours"] or "–", "verdict": cell["verdict"]}
        shown |= {"paper": "; ".join(filter(None, below)), "why": why if len(why) > LONG else ""}
        rows[cell[key]][cell["metric"]] = shown
    kinds = [*dict.fromkeys(table["metric"])]
    shown = [(name, [row.get(kind) for kind in kinds]) for name, row in rows.items()]
    return {"caption": caption, "axes": key, "methods": kinds, "rows": shown}


def plain(table: pd.DataFrame, caption: str) -> dict[str, Any]:
    """A table without verdicts, as it is."""
    return {"caption": caption, "html": table.to_html(index=False, border=0, na_rep="")}


def blocks(work: project.Project, name: str, drawn: dict[str, pd.DataFrame]) -> list[dict]:
    """What the report shows of a table."""
    spec, found = work.entries[name].spec, []
    for table in drawn.values():
        if "strict" in table:
            by = [column for column in ("reading", "metric") if column in table]
            if set(table["metric"]) & tables.TOLERANCE.keys():
                found.append(plain(tables.tally(table, by), "Verdicts, and how sharp they are"))
            for (*reading, metric), part in table.groupby(by, sort=False):
                caption = ": ".join([*reading, as_printed.caption(metric)])
                found.append(block(part, ". ".join([caption, *as_printed.fitted(part)])))
        elif "measured" in table:
            found.append(unlike(table.rename(columns={"measured": "ours"}), spec["title"]))
        elif "same" in table:
            found.append(unlike(judged_sizes(table), spec["title"]))
        elif "verdict" in table:
            continue
        elif "k" in table and "dataset" in table:
            for dataset, part in table.groupby("dataset", sort=False):
                shown = as_printed.by_budget(part, "AUC", spec["methods"]).rename_axis("method")
                caption = f"{dataset}: {as_printed.caption('AUC')}"
                found.append(plain(shown.reset_index(), caption))
        else:
            found.append(plain(table, spec["title"]))
    return found


def claims(table: pd.DataFrame) -> Iterator[dict[str, Any]]:
    """How often each verdict was given on what is said of a figure, or of the times of a table."""
    table = table.dropna(subset="verdict").dropna(axis="columns", how="all")
    if "says" not in table:
        table = table.assign(says="What is said of it")
    axes = ("reading", "dataset", "panel", "method", "against", "claim", "what")
    by = [axis for axis in axes if axis in table] or ["says"]
    for says, told in table.groupby("says", sort=False):
        counts = told.groupby(by, sort=False, dropna=False)["verdict"].value_counts()
        counts = counts.unstack(fill_value=0)
        counts = counts[sorted(counts, key=overview.rank)]
        head = counts.index.to_frame(index=False).fillna("").astype(str).to_numpy().tolist()
        rows = list(zip(head, counts.to_numpy().tolist(), strict=True))
        yield {"caption": says, "axes": by, "words": list(counts), "rows": rows}


def score(counts: pd.DataFrame) -> dict[str, Any]:
    """The scoreboard by paper, and of each paper by method: by the text and as reconstructed."""

    def row(part: pd.DataFrame, **named: str) -> dict[str, Any]:
        reasons = part[part["why"] != ""].groupby(["verdict", "why"])["cells"].sum()
        why = {word: reasons.get(word, pd.Series()).to_dict() for word in tables.VERDICTS}
        text = part.groupby(tables.BY_THE_TEXT)["cells"].sum().to_dict()
        if without := text.pop(board.NO_TEXT, 0):
            text[tables.NO_VERDICT] = text.get(tables.NO_VERDICT, 0) + without
        readings = [
            (
                tables.BY_THE_TEXT,
                text,
                {tables.NO_VERDICT: {NO_READING: without} if without else {}},
            ),
            (tables.RECONSTRUCTED, part.groupby("verdict")["cells"].sum().to_dict(), why),
        ]
        return {**named, "cells": part["cells"].sum(), "readings": readings}

    named = counts.assign(method=counts["method"].fillna("in no table here"))
    papers = [row(part, paper=paper) for paper, part in counts.groupby("paper", sort=False)]
    methods = {
        paper: [row(own[own["method"] == m], method=m) for m in looks.in_order(own["method"])]
        for paper, own in named.groupby("paper", sort=False)
    }
    return {"papers": [*papers, row(counts, paper="all")], "methods": methods}


def said_of_figures(rows: list[dict[str, Any]]) -> dict[str, dict[str, int]]:
    """Of each paper, how often each verdict was given in these rows of the overview."""
    found = {}
    for row in rows:
        if row["verdicts"]:
            found.setdefault(row["paper"], Counter()).update(row["verdicts"])
    return {p: {w: found[p][w] for w in sorted(found[p], key=overview.rank)} for p in found}


# -------------------------------------------------- pictures and words


def picture(svg: str) -> dict[str, Any]:
    """A figure as an address that holds all of it, and its size in points.

    A picture of its own: names within one figure are not mistaken for those of another. Each is
    short, as letters are called by name wherever they stand.
    """
    svg = svg[svg.index("<svg") :].replace('"', "'")
    svg = re.sub(r"<metadata>.*?</metadata>|<!--.*?-->", "", svg, flags=re.S)
    named = set(re.findall(r" id='([\w.-]+)'", svg)).intersection(re.findall(r"#([\w.-]+)", svg))
    short = {name: f"n{i}" for i, name in enumerate(sorted(named))}
    svg = re.sub(r" id='([\w.-]+)'", lambda m: f" id='{short[m[1]]}'" if m[1] in short else "", svg)
    svg = re.sub(r"#([\w.-]+)", lambda m: f"#{short.get(m[1], m[1])}", svg)
    svg = re.sub(r" [dxy]='[^']*'|translate\([^)]*\)", lambda m: _short(m[0]), svg)
    svg = re.sub(r"([>;:])\s+", r"\1", re.sub(r"\s+", " ", svg))
    width, height = (round(float(re.search(rf" {s}='([\d.]+)pt'", svg)[1])) for s in SIDES)
    # Without & and ", as it stands in an attribute.
    address = "data:image/svg+xml," + urllib.parse.quote(svg, safe=" !$'()*+,-./:;<=>?@[]_{|}~")
    return {"src": markupsafe.Markup(address), "width": width, "height": height}


def _short(numbers: str) -> str:
    """Places to a tenth of a point, which is less than anyone sees."""
    numbers = re.sub(r"\d+\.\d+", lambda m: f"{float(m[0]):.1f}".removesuffix(".0"), numbers)
    return re.sub(r"(?<!^)\s*([A-Za-z=-])\s*", r"\1", numbers)


def markdown(text: str) -> markupsafe.Markup:
    """A paragraph with `code`, **bold** and *slanted* words; links are their words."""
    escaped = str(markupsafe.escape(re.sub(r"\[([^]]+)\]\([^)]+\)", r"\1", text)))
    # A star with a space behind it multiplies.
    slanted = r"\*(?!\s)(.+?)(?<!\s)\*"
    for pattern, tag in ((r"`([^`]+)`", "code"), (r"\*\*(.+?)\*\*", "b"), (slanted, "i")):
        escaped = re.sub(pattern, rf"<{tag}>\1</{tag}>", escaped)
    return markupsafe.Markup(escaped)


def code(text: str) -> markupsafe.Markup:
    """Plain text with `code`."""
    return markupsafe.Markup(re.sub("`([^`]+)`", r"<code>\1</code>", str(markupsafe.escape(text))))


def how_it_is_drawn(notebook: str) -> list[str]:
    """The paragraphs below the title of a notebook: what lines, shades and marks are."""
    first, *_ = json.loads(Path(notebook).read_text(encoding="utf-8"))["cells"]
    _, _, text = "".join(first["source"]).partition("\n\n")
    paragraphs = re.split(r"\n\n|\n(?=- )", text.replace("$", "`"))
    return [" ".join(part.removeprefix("- ").split()) for part in paragraphs if part.strip()]


# -------------------------------------------------- the page

ENVIRONMENT = jinja2.Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
ENVIRONMENT.filters |= {"markdown": markdown, "code": code}


def section(work: project.Project, row: dict[str, Any], items: list[dict]) -> dict[str, Any]:
    """What the report shows of one entry, a row of `overview`."""
    name = row["entry"]
    spec, source = work.entries[name].spec, work.source(name)

    def link(*files: str | None) -> list[tuple[str, str]]:
        folder = Path(work.report).parent
        return [(file, Path(os.path.relpath(file, folder)).as_posix()) for file in files if file]

    logs = f"logs/{row['made']['scale'] if row['made'] else work.scale}"
    links = {"notebook": link(row["notebook"]), "entry": link(work.files[name])}
    files = work.figures(name) if row["drawn"] else []
    links |= {"files": link(*files), "paper's numbers": link(work.published(name))}
    links |= {"log": link(f"{logs}/{name}.txt", f"{logs}/{name}.ipynb")}
    if row["runs"]:
        links["log"] += link(f"{logs}/{source.name}/")
    own = [item for item in items if name in item["entries"]]
    links |= {"errata": link("docs/errata.md")} if own else {}
    fitted, shown = work.fitted(name), spec["only"].get("reading", source.spec["readings"])
    readings = {
        reading: f"{own.get('note', '')} {chosen_values(fitted[reading])}"
        for reading, own in source.spec["readings"].items()
        if reading in shown
    }
    content = row | {"links": links, "readings": readings, "errata": own}
    content["explanation"] = spec["explanation"]
    content["drawing"] = how_it_is_drawn(row["notebook"]) if spec["form"] == "figure" else []
    content["made"] = told(row["made"]) if row["made"] else ""
    drawn = overview.drawn(work, name)
    cells = {"strict", "measured"}  # of tables, which are shown one by one
    said = [table for table in drawn.values() if "verdict" in table and not cells & {*table}]
    content["claims"] = [claim for table in said for claim in claims(table)]
    if not drawn:
        return content
    if spec["form"] == "table":
        return content | {"blocks": blocks(work, name, drawn)}
    svg = (work.root / work.folder / f"{name}.svg").read_text(encoding="utf-8")
    listed = [table for table in drawn.values() if "printed form" in table]
    return content | {
        "picture": picture(svg),
        "blocks": [plain(table, "Statement by statement") for table in listed],
    }


def chosen_values(counts: dict[str, int]) -> str:
    """How many values of a reading were chosen to match, by method."""
    named = ", ".join(f"{method} {n}" for method, n in counts.items())
    return f"Values chosen to match: {named or 'none'}."


def by_scale(work: project.Project, made: dict[str, dict]) -> dict[str, list[str]]:
    """The drawn entries by the scale that they are of, the largest first."""
    scales = dict.fromkeys(
        [*reversed(project.scales(work.root)), *(f["scale"] for f in made.values())]
    )
    found = {scale: [e for e, facts in made.items() if facts["scale"] == scale] for scale in scales}
    return {scale: names for scale, names in found.items() if names}


def environments(made: Iterable[dict[str, Any]]) -> list[str]:
    """On what machines and with which packages the figures and their runs were made."""
    found = [one for f in made for one in [f["with"], *f.get("runs", {}).get("with", [])]]
    return list(dict.fromkeys(", ".join(f"{k} {v}" for k, v in one.items()) for one in found))


def told(facts: dict[str, Any]) -> str:
    """Of which scale the figures of an entry are, and when and where they were made."""
    said = [
        f"scale {facts['scale']}",
        f"drawn {facts['date'][:10]} at commit {facts['commit'][:12]}",
    ]
    if runs := facts.get("runs"):
        days = " to ".join(dict.fromkeys([runs["from"][:10], runs["to"][:10]]))
        commits = ", ".join(commit[:12] for commit in runs["commit"])
        said += [f"{runs['number']} results of {days} at commit {commits}"]
        said += [f"{runs['cpu_hours']:.2g} core hours", f"at most {runs['memory_mb']} MB"]
        said += dict.fromkeys(one["machine"] for one in runs["with"])
    return "; ".join(said)


def page(work: project.Project) -> str:
    """The report of a project whose figures are made."""
    items = errata.read(work.root)["items"]
    template = ENVIRONMENT.from_string(TEMPLATE.read_text(encoding="utf-8"))
    rows, cells, counts = overview.overview(work), *board.count(work)
    made = {row["entry"]: row["made"] for row in rows if row["made"]}
    return template.render(
        missing={name: why for facts in made.values() for name, why in facts["missing"].items()},
        command=f"snakemake --cores 8 --config scale={work.scale}",
        scales=by_scale(work, made),
        environments=environments(made.values()),
        papers=overview.PAPERS,
        sections=[section(work, row, items) for row in rows],
        score=score(counts),
        evidence=plain(board.evidence(cells), board.EVIDENCE),
        chosen=plain(board.chosen(work), "Values that were chosen to match the cells, by method"),
        said=said_of_figures([row for row in rows if row["entry"] not in set(counts["table"])]),
        same=overview.SAME,
        rule=tables.RULE,
        verdicts=tables.VERDICTS,
    )


if "snakemake" in globals():
    call = globals()["snakemake"]
    loaded = project.load(".", **call.params.changes)
    write_whole(call.output[0], page(loaded))
elif __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__).parse_args()
    loaded = project.committed()
    write_whole(loaded.report, page(loaded))
