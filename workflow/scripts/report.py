"""The report: every table and figure with its verdicts, in one file that opens offline.

`python workflow/scripts/report.py` makes it of the figures that are there, and runs nothing.
"""

import argparse
import json
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
from ofslib.datasets.registry import registry
from ofslib.reproduction import errata, layout, overview, project, tables
from ofslib.reproduction import scoreboard as board

TEMPLATE = Path(__file__).with_name("report.html.jinja")
SIDES = ("width", "height")
FEW = 12  # lines of a table of comparisons; a longer one is folded
JUDGED = tables.VERDICTS[:-1]
# Of the table of all statements, what stands in the page; the CSV file has the rest.
STATED = ["paper", "item", overview.TRUE, overview.SAYS, "printed", "corrected", "what is shown"]


# -------------------------------------------------- tables


def shown(style, caption: str, said: Iterable[str] = (), **more: Any) -> dict[str, Any]:
    """A table of the page."""
    table = style.to_html().partition("<table")[2]
    # Without names of the table, its rows and columns, which nothing here asks for.
    table = re.sub(r' id="T_\w+"|(data)? ?(row|col)\d+|\n *', "", table)
    table = layout.POWER.sub(lambda power: f"<sup>{power[1] or power[2]}</sup>", table)
    table = markupsafe.Markup("<table" + table)
    return {"caption": caption, "said": list(said), "html": table} | more


def plain(table: pd.DataFrame, caption: str) -> dict[str, Any]:
    """A table without verdicts, as it is."""
    return shown(layout.plain(table).hide(axis="index"), caption)


def blocks(work: project.Project, name: str, drawn: dict[str, pd.DataFrame]) -> list[dict]:
    """What the report shows of a table: its cells, those that the scoreboard counts marked."""
    spec = work.entries[name].spec
    titles = registry(work.root / "config/datasets.csv")["title"].to_dict()
    cells = board.judged(work, name)
    listed = [cells] if len(cells) else [t for t in drawn.values() if "verdict" not in t]
    found = []
    for table in listed:
        for block in layout.blocks(table, spec["title"], titles):
            more = {"reasons": list(layout.reasons(block)), "is_time": block.is_time}
            more |= {
                "marks": layout.legend(block),
                "cells": int((block.cells["side"] == "ours").sum()),
            }
            found.append(shown(layout.styled(block, flat=True), block.caption, block.said, **more))
    if "empty" in cells and len(known := cells[cells["metric"].isin(tables.TOLERANCE)]):
        by = [column for column in ("reading", "metric") if column in cells]
        tally = plain(tables.tally(known, by), "Verdicts, and how sharp they are")
        found.append(tally | {"folded": "By metric and reading"})
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
        words = [overview.SAME.get(word, word) for word in counts]
        words = [word.replace(" ", "-") if word in tables.VERDICTS else "" for word in words]
        classes = pd.DataFrame([[f"{w} said" for w in words]] * len(counts), columns=[*counts])
        texts = counts.astype(object).where(counts > 0, "").reset_index()
        style = layout.plain(texts.rename_axis(columns=None)).hide(axis="index")
        classes = classes.where((counts > 0).to_numpy(), "")
        style = style.set_td_classes(classes.reindex(columns=[*texts], fill_value=""))
        total = ", ".join(f"{n} {word}" for word, n in counts.sum().items())
        yield shown(style, says, folded=total if len(counts) > FEW else "")


# -------------------------------------------------- the scoreboard, and what was found


def score(counts: pd.DataFrame, by: str, caption: str) -> dict[str, Any]:
    """How many cells have which verdict, by the text and as reconstructed."""
    readings = {tables.BY_THE_TEXT: tables.BY_THE_TEXT, tables.RECONSTRUCTED: "verdict"}
    named = counts[by].fillna("in no table here").replace(overview.PAPERS)
    parts = [*counts.groupby(named, sort=False), *[("all", counts)] * (named.nunique() > 1)]
    rows = {
        (name, reading): part.groupby(column)["cells"].sum()
        for name, part in parts
        for reading, column in readings.items()
    }
    wide = pd.DataFrame(rows).T.reindex(columns=[*tables.VERDICTS, board.NO_TEXT])
    wide = wide.map("{:.0f}".format, na_action="ignore").astype(object).fillna("")
    wide = wide.rename_axis(index=[by, ""])
    looks = pd.DataFrame(
        [[w.replace(" ", "-") for w in wide]] * len(wide), wide.index, wide.columns
    )
    style = layout.plain(wide).set_td_classes(looks.where(wide != "", ""))
    return shown(style, caption)


def why(counts: pd.DataFrame) -> dict[str, Any]:
    """The reasons for verdicts, as reconstructed, and how many cells of each paper have them."""
    told = counts[counts["why"] != ""].assign(reason=lambda t: t["verdict"] + ": " + t["why"])
    told = told.sort_values("verdict", key=lambda words: words.map(overview.rank), kind="stable")
    wide = told.pivot_table("cells", "reason", "paper", "sum", fill_value=0, sort=False)
    wide = wide.assign(all=wide.sum(axis=1)).rename_axis(columns=None)
    return shown(layout.plain(wide), "Why, as reconstructed")


def findings(cells: pd.DataFrame, rows: list[dict[str, Any]], items: list[dict]) -> dict[str, Any]:
    """The numbers of what was found: of tables, figures, theorems and errata."""
    judged = cells[cells["verdict"].isin(JUDGED)]
    once = (
        board.evidence(cells).set_index(["reading", "rule"]).loc[tables.RECONSTRUCTED, "tolerant"]
    )
    agrees = judged["verdict"].eq("agrees").groupby(judged["table"]).agg(["sum", "size"])
    agrees = agrees[agrees["size"] >= 10].assign(share=lambda t: t["sum"] / t["size"])
    names = {row["entry"]: row["source"] for row in rows}
    ranked = [
        {"entry": table, "name": names[table], "agrees": int(own["sum"]), "of": int(own["size"])}
        for table, own in agrees.sort_values("share", ascending=False, kind="stable").iterrows()
    ]

    def methods(which) -> dict[str, int]:
        return cells.loc[which, "method"].value_counts().head(3).to_dict()

    weak = cells["why"] == "weaker baseline in the paper"
    same = {
        row["entry"]: sum(
            (Counter({overview.SAME.get(w, w): n}) for w, n in row["verdicts"].items()), Counter()
        )
        for row in rows
        if row["entry"] not in set(cells["table"])
    }
    fails = sorted((e for e in same if same[e]["worse"]), key=lambda e: -same[e]["worse"])
    stated = overview.statements(witnessed=False)
    answers = {
        question: stated[question].value_counts() for question in (overview.TRUE, overview.SAYS)
    }
    return {
        "cells": len(cells),
        "judged": len(judged),
        "text": cells[tables.BY_THE_TEXT].value_counts(),
        "fitted": cells["verdict"].value_counts(),
        "once": once[[*JUDGED]],
        "best": ranked[:3],
        "least": ranked[:-4:-1],
        "weak": int(weak.sum()),
        "weak_of": methods(weak),
        "worse_of": methods(cells["verdict"] == "worse"),
        "said": sum(same.values(), Counter()),
        "fails": [(e, names[e], same[e]["worse"]) for e in fails[:3]],
        "stated": len(stated),
        "true": answers[overview.TRUE],
        "informative": answers[overview.SAYS],
        "kinds": Counter(item["kind"] for item in items),
        "refused": cells.loc[~cells["verdict"].isin(JUDGED), "why"].value_counts(),
    }


# -------------------------------------------------- pictures and words


def picture(svg: str) -> dict[str, Any]:
    """A figure as an address that holds all of it, and its size in points."""
    width, height = (round(float(re.search(rf' {s}="([\d.]+)pt"', svg)[1])) for s in SIDES)
    svg = " ".join(svg[svg.index("<svg") :].replace('"', "'").split())
    # Without & and ", as it stands in an attribute.
    address = "data:image/svg+xml," + urllib.parse.quote(svg, safe=" !$'()*+,-./:;<=>?@[]_{|}~")
    return {"src": markupsafe.Markup(address), "width": width, "height": height}


def code(text: str) -> markupsafe.Markup:
    """Plain text with `code`."""
    return markupsafe.Markup(re.sub("`([^`]+)`", r"<code>\1</code>", str(markupsafe.escape(text))))


def emphasis(text: str) -> markupsafe.Markup:
    """A paragraph of a notebook: `code`, **bold** and *slanted* words; links are their words."""
    text = str(code(re.sub(r"\[([^]]+)\]\([^)]+\)", r"\1", text)))
    # A star with a space behind it multiplies.
    for pattern, tag in ((r"\*\*(.+?)\*\*", "b"), (r"\*(?!\s)(.+?)(?<!\s)\*", "i")):
        text = re.sub(pattern, rf"<{tag}>\1</{tag}>", text)
    return markupsafe.Markup(text)


def referring(text: str) -> markupsafe.Markup:
    """A reason, with links to the errata that it names."""
    link = r'<a href="#erratum-\1-\2">\1 \2</a>'
    text = re.sub(r"docs/errata\.md, ", "errata, ", str(markupsafe.escape(text)))
    papers = "|".join(overview.PAPERS)
    return markupsafe.Markup(re.sub(rf"\b({papers}) (\d+)\b", link, text))


def how_it_is_drawn(notebook: str) -> list[str]:
    """The paragraphs below the title of a notebook: what lines, shades and marks are."""
    first, *_ = json.loads(Path(notebook).read_text(encoding="utf-8"))["cells"]
    _, _, text = "".join(first["source"]).partition("\n\n")
    paragraphs = re.split(r"\n\n|\n(?=- )", text.replace("$", "`"))
    return [" ".join(part.removeprefix("- ").split()) for part in paragraphs if part.strip()]


# -------------------------------------------------- the page

ENVIRONMENT = jinja2.Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
ENVIRONMENT.filters |= {"code": code, "emphasis": emphasis, "referring": referring}


def section(work: project.Project, row: dict[str, Any], items: list[dict]) -> dict[str, Any]:
    """What the report shows of one entry, a row of `overview`."""
    name = row["entry"]
    spec, source = work.entries[name].spec, work.source(name)

    def link(*files: str | None) -> list[tuple[str, str]]:
        """Those that are there; a log is not in a checkout, and where it will be is only said."""
        there = [file for file in files if file and (work.root / file).exists()]
        folder = Path(work.report).parent
        return [(file, Path(os.path.relpath(file, folder)).as_posix()) for file in there]

    links = {"notebook": link(row["notebook"]), "entry": link(work.files[name])}
    links |= {"files": link(*work.figures(name)), "paper's numbers": link(work.published(name))}
    chosen, used = board.named(work, name), spec["only"].get("reading", source.spec["readings"])
    drawn = overview.drawn(work, name)
    cells = {"strict", "measured"}  # of tables, which are shown one by one
    said = [table for table in drawn.values() if "verdict" in table and not cells & {*table}]
    content = row | {
        "links": links,
        "log": f"logs/{row['made']['scale'] if row['made'] else work.scale}/{name}.txt",
        "readings": {
            reading: f"{own.get('note', '')} Values chosen to match: {chosen[reading]}."
            for reading, own in source.spec["readings"].items()
            if reading in used
        },
        "errata": [item for item in items if name in item["entries"]],
        "explanation": spec["explanation"],
        "drawing": how_it_is_drawn(row["notebook"]) if spec["form"] == "figure" else [],
        "made": told(row["made"]) if row["made"] else "",
        "claims": [claim for table in said for claim in claims(table)],
        "blocks": blocks(work, name, drawn) if drawn and spec["form"] == "table" else [],
    }
    if drawn and spec["form"] == "figure":
        svg = (work.root / work.folder / f"{name}.svg").read_text(encoding="utf-8")
        listed = [table[STATED] for table in drawn.values() if {*STATED} <= {*table}]
        content["picture"] = picture(svg)
        content["blocks"] = [plain(table, "Statement by statement") for table in listed]
    return content


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
    known = errata.read(work.root)
    # In a project with other entries those of papers that it does not show say nothing.
    known["items"] = [i for i in known["items"] if not {*i["entries"]}.isdisjoint(work.entries)]
    template = ENVIRONMENT.from_string(TEMPLATE.read_text(encoding="utf-8"))
    rows, cells, counts = overview.overview(work), *board.count(work)
    made = {row["entry"]: row["made"] for row in rows if row["made"]}
    said: dict[str, Counter] = {}
    for row in rows:
        if row["verdicts"] and row["entry"] not in set(counts["table"]):
            said.setdefault(row["paper"], Counter()).update(row["verdicts"])
    return template.render(
        found=findings(cells, rows, known["items"]),
        missing={name: why for facts in made.values() for name, why in facts["missing"].items()},
        command=f"snakemake --cores 8 --config scale={work.scale}",
        scales={
            scale: [entry for entry, facts in made.items() if facts["scale"] == scale]
            for scale in dict.fromkeys(facts["scale"] for facts in made.values())
        },
        environments=environments(made.values()),
        papers=overview.PAPERS,
        names={row["entry"]: row["source"] for row in rows},
        sections=[section(work, row, known["items"]) for row in rows],
        errata=known,
        score=[score(counts, "paper", "Cells by paper"), why(counts)],
        methods=[
            score(own, "method", f"By method: {overview.PAPERS[paper]}")
            for paper, own in counts.groupby("paper", sort=False)
        ],
        evidence=plain(board.evidence(cells), board.EVIDENCE),
        chosen=plain(board.chosen(work), "Values that were chosen to match the cells, by method"),
        said={paper: overview.ranked(own) for paper, own in said.items()},
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
