"""Every number that the papers print, by table and verdict, from the committed files alone.

python -m ofslib.reproduction.scoreboard           # counts them
python -m ofslib.reproduction.scoreboard --judge   # judges the committed tables by the rule first
"""

import argparse
import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from ofslib._printing import text_table
from ofslib.reproduction import claims, entries, project, provenance, tables

# The papers' cells, how many there are in each table, and why some are in no file.
LIST = "config/published.csv"


# -------------------------------------------------- the cells


def published_cells(work: project.Project | None = None) -> pd.DataFrame:
    """The published cells, one a row, with the verdicts of the last reading of each table.

    Parameters
    ----------
    work : Project, optional
        Whose figures are read; by default the committed ones of the project at or above the working
        folder.

    Returns
    -------
    DataFrame
        Columns paper, table, method (missing for cells that are in no file), metric, verdict, why
        (the kind of the reason, see `tables.reason`; of what was not run the scale of its table).

    Raises
    ------
    ValueError
        If a table has more cells than config/published.csv says.
    """
    root, figures = _folders(work)
    listed = pd.read_csv(root / LIST, dtype={"why": str}).fillna({"why": "not yet run"})
    tables_of = [_cells(root, figures, row) for row in listed.itertuples()]
    cells = pd.concat(tables_of, ignore_index=True)
    made = provenance.read(figures / "PROVENANCE.json")
    scale = cells["table"].map({entry: facts["scale"] for entry, facts in made.items()})
    own = cells["why"].eq(entries.NOT_RUN) & scale.notna()
    cells["why"] = cells["why"].mask(own, "not run at scale " + scale.astype(str))
    return cells


def _folders(work: project.Project | None) -> tuple[Path, Path]:
    """The root of a project, by default the one around the working folder, and its figures."""
    root = work.root if work else project.find_root()
    return root, Path(root, work.folder if work else "figures")


def _cells(root: Path, figures: Path, listed) -> pd.DataFrame:
    file = root / f"config/published/{listed.table}.csv"
    cells = pd.read_csv(file) if file.is_file() else pd.DataFrame({"metric": []})
    if len(cells) > listed.cells:
        raise ValueError(f"{file} has {len(cells)} cells, and {LIST} says {listed.cells}")
    made = _judged(figures, listed.table)
    key = [column for column in cells if column in made and column not in ("value", "note")]
    if len(cells) and key:
        cells = cells.merge(made.drop_duplicates(key)[[*key, "verdict", "why"]], "left", key)
    cells = cells.reindex(columns=["method", "metric", "verdict", "why"]).astype(object)
    cells.loc[cells["verdict"].isna(), ["verdict", "why"]] = tables.NO_VERDICT, "not yet run"
    others = {"verdict": tables.NO_VERDICT, "why": listed.why}
    others = pd.DataFrame([others] * (listed.cells - len(cells)))
    cells = pd.concat([cells, others], ignore_index=True)
    why = cells["why"].map(tables.reason)
    return cells.assign(paper=listed.paper, table=listed.table, why=why)


def _judged(figures: Path, table: str) -> pd.DataFrame:
    """The cells of the last reading of a table that has been made, its times among them."""
    files = [figures / f"{table}{end}.csv" for end in ("", "_time")]
    parts = [pd.read_csv(file) for file in files if file.is_file()]
    made = pd.concat(parts) if parts else pd.DataFrame()
    if "same" in made:
        made = judged_sizes(made)
        made["why"] = made["why"].where(made["same"].ne(False), "another data set")
    if "verdict" not in made:
        return pd.DataFrame()
    return made[made["reading"] == made["reading"].iloc[-1]] if "reading" in made else made


def judged_sizes(table: pd.DataFrame) -> pd.DataFrame:
    """Sizes of data sets with their verdicts: the same, or not to be compared."""
    same = table["same"].eq(True)
    return table.assign(verdict=np.where(same, "agrees", tables.NO_VERDICT))


def scoreboard(work: project.Project | None = None) -> pd.DataFrame:
    """How many of the papers' cells have which verdict, from the files of the figures.

    Parameters
    ----------
    work : Project, optional
        As in `published_cells`.

    Returns
    -------
    DataFrame
        Columns paper, table, method, verdict, why, cells.
    """
    by = ["paper", "table", "method", "verdict", "why"]
    groups = published_cells(work).groupby(by, sort=False, dropna=False)
    return groups.size().rename("cells").reset_index()


def agreement(work: project.Project | None = None) -> pd.DataFrame:
    """How many cells of each table agree, and how sharply: `tables.tally` of its last reading.

    Columns table, metric, and those of `tables.tally`.
    """
    root, figures = _folders(work)
    found = []
    for table in pd.read_csv(root / LIST)["table"]:
        made = _judged(figures, table)
        if "strict" in made:
            known = made[made["metric"].isin(tables.TOLERANCE)]
            found.append(tables.tally(known, ["metric"]).assign(table=table))
    found = pd.concat(found, ignore_index=True)
    return found[["table", *found.columns.drop("table")]]


# -------------------------------------------------- judged anew


def judge(work: project.Project) -> list[str]:
    """Give the tables that have been made the verdicts of the rule as it is now.

    Each at the scale at which it was made, from its own columns: what these do not know (before it
    was counted, how many runs select nothing) stays missing. Nothing is run.

    Returns
    -------
    list of str
        The files, relative to the root of the project.
    """
    done, made_at = [], provenance.read(work.root / work.provenance)
    scales = {facts["scale"] for facts in made_at.values()} | {work.scale}
    at = {scale: project.load(work.root, scale=scale, seed=work.seed) for scale in scales}
    for name, entry in work.entries.items():
        own = at[made_at.get(name, {"scale": work.scale})["scale"]]
        kinds = {"": work.source(name).spec["metrics"], "time": ["time_s"]}
        for kind, metrics in kinds.items():
            stem = f"{work.folder}/{name}" + (f"_{kind}" if kind else "")
            file = work.root / f"{stem}.csv"
            if entry.spec["notebook"] != "recovery_table" or not file.is_file():
                continue
            made = pd.read_csv(file)
            key = [*made.columns[: made.columns.get_loc("metric") + 1]]
            made["note"] = made["why"].where(made["verdict"] == tables.NO_VERDICT)
            made = made.reindex(columns=[*key, *tables.SUMMARY, *tables.MARKS, "note"])
            cells = tables.cells(own.shown(name, kind), metrics).merge(made, "left", key)
            printed = work.published(name)
            published = tables.read_published(printed and str(work.root / printed))
            known = entry.spec["weak_baselines"], entry.spec["discussed"]
            table = tables.beside_paper(cells, published, key, *known)
            tables.save_csv(table, str(work.root / stem))
            done.append(f"{stem}.csv")
            if entry.spec["time_claims"] and "time_s" in metrics:
                said = claims.claim_times(table, entry.spec["time_claims"])
                tables.save_csv(said, str(work.root / work.folder / f"{name}_claims"))
                done.append(f"{work.folder}/{name}_claims.csv")
    return done


# -------------------------------------------------- the command


def _shown(counts: pd.DataFrame) -> list[str]:
    """The scoreboard as lines of text, verdicts in the order of the rule."""
    words = counts["verdict"] + counts["why"].map(lambda why: f": {why}" if why else "")
    order = {word: place for place, word in enumerate(tables.VERDICTS)}
    columns = sorted(set(words), key=lambda word: (order[word.partition(":")[0]], word))
    wide = counts.assign(word=words).pivot_table(
        index="table", columns="word", values="cells", aggfunc="sum", fill_value=0, sort=False
    )
    wide = wide[columns].assign(cells=wide.sum(axis=1))
    wide.loc["all"] = wide.sum()
    head = ["table", *range(1, len(columns) + 1), "cells"]
    lines = text_table(head, wide.reset_index().itertuples(index=False))
    return [*lines, "", *(f"{number}: {word}" for number, word in enumerate(columns, 1))]


def _sharp(shares: pd.DataFrame) -> list[str]:
    """How sharp the verdicts are, as lines of text."""
    columns = ["table", "metric", "agreement (%)", "agreement, strict (%)"]
    columns += ["wrong pairs that agree (%)", "select nothing"]
    rows = shares[columns].astype(object).fillna("–")
    return text_table(columns, rows.itertuples(index=False))


def main(arguments: Sequence[str] | None = None) -> None:
    """What `python -m ofslib.reproduction.scoreboard` does."""
    parser = argparse.ArgumentParser(
        prog="python -m ofslib.reproduction.scoreboard",
        description="The papers' numbers, counted by table and verdict, from the committed files.",
    )
    parser.add_argument(
        "--judge", action="store_true", help="first give the tables the verdicts of the rule anew"
    )
    if parser.parse_args(arguments).judge:
        judge(project.committed(project.find_root()))
    rule = textwrap.wrap(tables.RULE, 100)
    lines = [*_shown(scoreboard()), "", *rule, "", *_sharp(agreement())]
    sys.stdout.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
