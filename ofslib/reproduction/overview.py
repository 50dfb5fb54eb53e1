"""Every table and figure: of which paper, drawn from what, and what its verdicts are."""

import json
import re
import time
from collections import Counter
from collections.abc import Mapping
from typing import Any

import pandas as pd

from ofslib._files import write_whole
from ofslib.reproduction import provenance
from ofslib.reproduction.project import Project
from ofslib.reproduction.scoreboard import count
from ofslib.reproduction.statements import STATEMENTS
from ofslib.reproduction.tables import BY_THE_TEXT, VERDICTS

PAPERS = {
    "sfsa": "sfsa: Sun and Barbu",
    "dissertation": "dissertation: Sun (2019)",
    "os": "os: Yang et al. (2016)",
    "ofs": "ofs: Wang et al. (2018)",
    "barda": "barda: Zhai et al. (2018)",
    "own": "Of our own",
}
# Words of the figures' claims that mean the same as one of the tables' verdicts.
SAME = {"holds": "agrees", "reproduced": "agrees", "fails": "worse", "not reproduced": "worse"}
SAME |= {"is violated": "worse", "does not apply": "not comparable"}


def paper_of(entry: str) -> str:
    """The paper that an entry belongs to, by its name; "own" if to none."""
    first = entry.removeprefix("bounds_").partition("_")[0]
    return first if first in PAPERS else "own"


def in_order(work: Project) -> list[str]:
    """The entries by paper: tables, figures, theorems, each by its number."""

    def place(entry: str) -> tuple:
        kinds = ["table" in entry, "figure" in entry, True]
        parts = [(word.zfill(3), entry) for word in re.findall(r"[a-z]+|\d+", entry)]
        return list(PAPERS).index(paper_of(entry)), kinds.index(True), parts

    return sorted(work.entries, key=place)


def drawn(work: Project, entry: str) -> dict[str, pd.DataFrame]:
    """The tables that stand behind an entry as it is drawn, by their files; none if it is not."""
    names = [file for file in work.figures(entry) if file.endswith(".csv")]
    there = [file for file in names if (work.root / file).is_file()]
    return {file: pd.read_csv(work.root / file, low_memory=False) for file in there}


def rank(word: str) -> int:
    """The place of a verdict among others: as those of tables, in the order of the rule."""
    return VERDICTS.index(SAME.get(word, word)) if SAME.get(word, word) in VERDICTS else -1


def ranked(counts: Mapping[str, int]) -> dict[str, int]:
    """Counts of verdicts, in the order of `rank`."""
    return {word: counts[word] for word in sorted(counts, key=rank)}


def overview(work: Project) -> list[dict[str, Any]]:
    """What there is of each table and figure, in the order of `in_order`.

    Keys: entry, paper, source, title, notebook, parameter (the line that makes the notebook show
    it), command (that makes it), drawn, made (the record of its figures in PROVENANCE.json, None
    if it has none), runs and runs_made (files of results, at this scale), verdicts (of a paper's
    table as in `scoreboard`, reconstructed, else all that are given), by_the_text (those of a
    paper's table).
    """
    made = provenance.read(work.root / work.provenance)
    board, rows = count(work)[1], []
    known = {c: board.groupby(["table", c])["cells"].sum() for c in ("verdict", BY_THE_TEXT)}
    for name in in_order(work):
        spec, tables = work.entries[name].spec, drawn(work, name)
        runs = len([*work.inputs(name), *work.inputs(name, "time")])
        row = {"entry": name, "paper": paper_of(name)}
        row |= {key: spec[key] for key in ("source", "title")}
        row |= {"notebook": work.notebook(name), "parameter": f'entry = "{name}"'}
        row |= {"command": work.command(name), "drawn": bool(tables)}
        row |= {"made": made.get(name) if tables else None}
        row |= {"runs": runs, "runs_made": runs - len(work.lacks(name))}
        found = {c: sums[name].to_dict() if name in sums else {} for c, sums in known.items()}
        told = (table["verdict"].dropna() for table in tables.values() if "verdict" in table)
        row["verdicts"] = ranked(found["verdict"] or Counter(word for own in told for word in own))
        row["by_the_text"] = ranked(found[BY_THE_TEXT])
        rows.append(row)
    return rows


def own_notebook(work: Project, entry: str) -> str:
    """Copy the notebook of an entry, so that it opens this entry; the path from notebooks/.

    All code but the parameters is folded, so that results are on the first screen. A copy that is
    there stays, unless the notebook has changed since: it is then kept under its date.
    """
    source = work.root / work.notebook(entry)
    copy = source.parent / "opened" / f"{entry}.ipynb"
    if not copy.is_file() or copy.stat().st_mtime < source.stat().st_mtime:
        notebook = json.loads(source.read_text(encoding="utf-8"))
        for cell in notebook["cells"]:
            if "parameters" in cell["metadata"].get("tags", []):
                line = re.compile("^entry = .*$", re.M)
                cell["source"] = line.sub(f'entry = "{entry}"', "".join(cell["source"]))
            elif cell["cell_type"] == "code":
                cell["metadata"]["jupyter"] = {"source_hidden": True}
        copy.parent.mkdir(exist_ok=True)
        if copy.is_file():
            made = time.strftime("%Y-%m-%d-%H%M%S", time.localtime(copy.stat().st_mtime))
            copy.replace(copy.with_suffix(f".{made}.ipynb"))
        write_whole(copy, json.dumps(notebook, ensure_ascii=False, indent=1))
    return f"opened/{copy.name}"


# -------------------------------------------------- the papers' statements

ANSWERS = {True: "yes", False: "no", None: "-"}
TRUE, SAYS = "true as printed?", "says anything at the papers' sizes?"


def statements(witnessed: bool = True) -> pd.DataFrame:
    """What became of each item of the papers that states something, one a row, in their order.

    Columns: paper, item, kind, printed, the two questions (`TRUE`, `SAYS`), applies, corrected,
    computed by, what is shown; with `witnessed`, the answers are those that the witnesses find now,
    and the column numbers has what they are about; theory and experiment, the figure.
    """
    rows = []
    for each in STATEMENTS:
        answers, numbers = (each.true, each.informative), {}
        if witnessed and each.witness:
            true, informative, _, numbers = each.witness()
            answers = (true, informative)
        row = {"paper": each.paper, "item": each.item, "kind": each.kind, "printed": each.printed}
        row |= dict(zip((TRUE, SAYS), (ANSWERS[answer] for answer in answers), strict=True))
        row |= {"applies": each.applies, "corrected": each.corrected}
        row |= {"computed by": ", ".join(each.by), "what is shown": each.evidence}
        if witnessed:
            row["numbers"] = ", ".join(f"{name} {value:.4g}" for name, value in numbers.items())
        row["theory and experiment"] = f"figures/{each.figure}.svg" if each.figure else ""
        rows.append(row)
    return pd.DataFrame(rows)


def plain(text: str) -> str:
    """Words of the registry as Markdown: what would be markup there is escaped."""
    return re.sub(r"([\\*_<|~`[\]])", r"\\\1", text)


def statements_as_markdown(table: pd.DataFrame) -> str:
    """The rows of `statements`, a table for each paper."""
    columns = ["item", TRUE, SAYS, "printed", "corrected", "what is shown"]
    parts = []
    for paper, own in table.groupby("paper", sort=False):
        rows = [columns, ["---"] * len(columns), *own[columns].to_numpy().tolist()]
        lines = ["| " + " | ".join(map(plain, row)) + " |" for row in rows]
        parts.append("\n".join([f"**{PAPERS[paper]}**", "", *lines]))
    return "\n\n".join(parts)
