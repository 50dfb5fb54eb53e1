"""The report: every table and figure with its verdicts, in one file that opens offline."""

import json
import os
from pathlib import Path
from typing import Any

import jinja2
import pandas as pd

from ofslib._files import write_whole
from ofslib.reproduction import looks, project, records, tables

TEMPLATE = Path(__file__).with_name("report.html.jinja")


def section(work: project.Project, name: str) -> dict[str, Any]:
    """What the report shows of one entry."""
    spec, runs = work.entries[name].spec, work.source(name).spec
    links = [os.path.relpath(file, Path(work.report).parent) for file in work.figures(name)]
    content = {"name": name, "files": links, **spec, "readings": runs["readings"]}
    table = pd.read_csv(f"{work.folder}/{name}.csv")
    if spec["form"] == "figure":
        svg = Path(f"{work.folder}/{name}.svg").read_text(encoding="utf-8")
        content["svg"] = svg[svg.index("<svg") :]
        content["verdicts"] = _claims(table)
    elif "verdict" not in table:
        content["blocks"] = {spec["title"]: _html(table)}
    else:
        by = [axis for axis in ("reading", "metric") if axis in table]
        content["verdicts"] = _html(tables.tally(table, by))
        content["blocks"] = {
            ": ".join(filter(None, (reading, looks.TITLES[metric]))): _html(
                tables.layout(table, metric, reading), index=True
            )
            for reading in runs["readings"] or [None]
            for metric in runs["metrics"]
            if metric in set(table["metric"])
        }
    return content


def _claims(table: pd.DataFrame) -> str:
    if "verdict" not in table or table["verdict"].isna().all():
        return ""
    claims = table.dropna(subset="verdict").dropna(axis="columns", how="all")
    axes = ("reading", "dataset", "panel", "method", "against", "claim", "what")
    by = [axis for axis in axes if axis in claims]
    counts = claims.groupby(by)["verdict"].value_counts()
    return _html(counts.unstack(fill_value=0).reset_index().rename_axis(columns=None))


def _html(table: pd.DataFrame, index: bool = False) -> str:
    return table.to_html(index=index, border=0, na_rep="", escape=True)


def make(work: project.Project, files: list[str], output: str) -> None:
    """Write the report of a project whose figures are made."""
    fetched = [records.read(file) for file in files]
    template = jinja2.Template(TEMPLATE.read_text(encoding="utf-8"), autoescape=True)
    html = template.render(
        provenance=json.loads(Path(work.provenance).read_text(encoding="utf-8")),
        sections=[section(work, name) for name in work.entries],
        missing=[record for record in fetched if record["status"] != "fetched"],
        rule=tables.RULE,
    )
    write_whole(output, html)


if "snakemake" in globals():
    call = globals()["snakemake"]
    loaded = project.load(".", **call.params.changes)
    make(loaded, list(call.input.records), call.output[0])
