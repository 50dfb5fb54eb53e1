"""Every number that the papers print, by table and verdict, from the committed files alone.

python -m ofslib.reproduction scoreboard           # counts them
python -m ofslib.reproduction scoreboard --judge   # judges the committed tables by the rule first
"""

import textwrap
from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd

from ofslib._options import text_table
from ofslib.reproduction import claims, entries, identity, project, provenance, tables
from ofslib.reproduction.layout import COUNTED

# The papers' cells, how many there are in each table, and why some are in no file.
LIST = "config/published.csv"
# Per cent of wrong pairs: where more of them would agree, a column cannot tell methods apart.
BLUNT = 50
VERDICT = ["verdict", "strict", "fitted", "run", "why"]
BY = " by the text"
EVIDENCE = (
    f"Distinct evidence: each run once, without the columns in which more than {BLUNT} % of wrong "
    "pairs (our number and that of another method) would agree"
)
NO_TEXT, ONE_RULE = "no reading", "one rule"
JUDGE = "first give the tables the verdicts of the rule anew"


# -------------------------------------------------- the cells


def published_cells(work: project.Project) -> pd.DataFrame:
    """The published cells, one a row, with their verdicts by the text and as reconstructed.

    Returns
    -------
    DataFrame
        Columns paper, table, method (missing for cells that are in no file), metric, printed (as
        `tables.compare` has it), and of the last reading of the table verdict, strict, fitted, why
        (the kind of the reason, see `tables.reason`; of what was not run the scale of its table)
        and run, which is equal where the results are the same. `by the text`, with strict, fitted
        and run of its own, is the verdict of the reading that is by the text, missing without one.
        `sharp`: whether the column of the cell can discriminate, see `agreement`.

    Raises
    ------
    ValueError
        If a table has more cells than config/published.csv says.
    """
    listed = pd.read_csv(work.root / LIST, dtype={"why": str}).fillna({"why": "not yet run"})
    cells = pd.concat([_cells(work, row) for row in listed.itertuples()], ignore_index=True)
    made = provenance.read(work.root / work.provenance)
    scale = cells["table"].map({entry: facts["scale"] for entry, facts in made.items()})
    own = cells["why"].eq(entries.NOT_RUN) & scale.notna()
    cells["why"] = cells["why"].mask(own, "not run at scale " + scale.astype(str))
    shares = agreement(work).drop_duplicates(["table", "metric"], keep="last")
    shares = shares.reindex(columns=["table", "metric", "wrong pairs that agree (%)"])
    shares = cells[["table", "metric"]].merge(shares, "left").iloc[:, -1]
    return cells.assign(sharp=~shares.astype(float).gt(BLUNT))


def _cells(work: project.Project, listed) -> pd.DataFrame:
    cells = _printed(work, listed.table)
    if len(cells) > listed.cells:
        raise ValueError(f"{listed.table}: {len(cells)} cells, and {LIST} says {listed.cells}")
    made = judged(work, listed.table)
    key = _key(cells, made)
    cells["printed"] = tables.printed(cells["value"], cells["note"])
    if len(cells) and key:
        last, text = (made.loc[made[mark], [*key, *VERDICT]] for mark in COUNTED)
        cells = cells.merge(last, "left", key).merge(text, "left", key, suffixes=("", BY))
    columns = ["printed", *VERDICT, *(column + BY for column in VERDICT)]
    cells = cells.reindex(columns=["method", "metric", *columns]).astype(object)
    cells = cells.drop(columns="why" + BY).rename(columns={"verdict" + BY: tables.BY_THE_TEXT})
    cells.loc[cells["verdict"].isna(), ["verdict", "why"]] = tables.NO_VERDICT, "not yet run"
    others = {"verdict": tables.NO_VERDICT, "why": listed.why}
    others = pd.DataFrame([others] * (listed.cells - len(cells)))
    cells = pd.concat([cells, others], ignore_index=True)
    why = cells["why"].map(tables.reason)
    return cells.assign(paper=listed.paper, table=listed.table, why=why)


def _printed(work: project.Project, table: str) -> pd.DataFrame:
    file = work.root / f"config/published/{table}.csv"
    return pd.read_csv(file) if file.is_file() else tables.read_published(None)


def _key(printed: pd.DataFrame, made: pd.DataFrame) -> list[str]:
    return [column for column in printed if column in made and column not in ("value", "note")]


def judged(work: project.Project, table: str) -> pd.DataFrame:
    """The cells of a table that has been made, its times among them.

    With `run`, what they are runs of, and of each reading (`COUNTED`) whether a cell is the one
    that is counted of a published number: of the readings the last, or the first by the text.
    """
    files = [work.root / work.folder / f"{table}{end}.csv" for end in ("", "_time")]
    parts = [pd.read_csv(file) for file in files if file.is_file()]
    made = pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()
    if "same" in made:
        made["verdict"] = np.where(made["same"].eq(True), "agrees", tables.NO_VERDICT)
        made["why"] = made["why"].where(made["same"].ne(False), "another data set")
    if "verdict" not in made:
        return pd.DataFrame()
    # Of words and sizes nothing is chosen, and they have one verdict.
    usual = {"basis": tables.BY_THE_TEXT, "fitted": 0, "strict": made["verdict"]}
    known = "strict" in made
    made = made.assign(**{column: usual[column] for column in usual if column not in made})
    printed = _printed(work, table)
    key = _key(printed, made)
    there = made[key].merge(printed[key].drop_duplicates(), "left", key, indicator=True)["_merge"]
    text = made["basis"] == tables.BY_THE_TEXT
    first = ~made[text].duplicated(key).reindex(made.index, fill_value=True)
    last = ~made.duplicated(key, keep="last")
    there = there.eq("both").to_numpy() & bool(len(printed))
    made = made.assign(**dict(zip(COUNTED, (there & last, there & first), strict=True)))
    own = [f"{table} {place}" for place in made.index]
    if not known or table not in work.entries:
        return made.assign(run=own)
    runs = _runs(work, table)
    axes = [*made.columns[: made.columns.get_loc("metric")]]
    found = [runs.get(tuple(map(str, cell))) for cell in made[axes].itertuples(index=False)]
    return made.assign(run=[key or place for key, place in zip(found, own, strict=True)])


def _runs(work: project.Project, entry: str) -> dict[tuple[str, ...], str]:
    """What a cell of an entry is called, its axes and method -> the result that it shows.

    Of real data each is taken for one of its own: what pins the files may not be here.
    """
    return {
        (*map(str, setting.spec["axes"].values()), str(one.label)): identity.digest(one.made_of)
        for setting in work.shown(entry)
        if not setting.dataset
        for one in identity.results(setting.spec, versioned=False)
    }


def count(work: project.Project) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The published cells, and the scoreboard: how many of them have which verdict.

    Columns of the latter: paper, table, method, verdict, why, by the text, cells.
    """
    cells = published_cells(work)
    by = ["paper", "table", "method", "verdict", "why", tables.BY_THE_TEXT]
    groups = cells.fillna({tables.BY_THE_TEXT: NO_TEXT}).groupby(by, sort=False, dropna=False)
    return cells, groups.size().rename("cells").reset_index()


def evidence(cells: pd.DataFrame) -> pd.DataFrame:
    """What `published_cells` show for distinct runs, in columns that can discriminate.

    Neither orders of growth nor sizes of data sets, and no times. A run that is compared with
    several printed numbers is counted once, by the worst of its verdicts.

    Returns
    -------
    DataFrame
        Columns reading (by the text, the part of it in which nothing was chosen, reconstructed),
        rule (tolerant, strict), the verdicts but the last, and how many of the agreeing cells have
        a number that is not printed so in our text of the paper.
    """
    rows, order = [], ["worse", "better", "unresolved", "agrees", tables.NO_VERDICT]
    text, every = tables.BY_THE_TEXT, pd.Series(True, cells.index)
    known = cells["sharp"] & cells["metric"].isin(tables.TOLERANCE)
    readings = {text: (BY, every), f"{text}, nothing chosen": (BY, cells["fitted" + BY] == 0)}
    readings[tables.RECONSTRUCTED] = ("", every)
    for reading, (end, which) in readings.items():
        for rule, column in {"tolerant": "verdict", "strict": "strict"}.items():
            column = text if end and rule == "tolerant" else column + end
            own = cells[which & known].dropna(subset=column)
            own = own.sort_values(column, key=lambda words: words.map(order.index), kind="stable")
            own = own.drop_duplicates(["run" + end, "metric"])
            counts = own[column].value_counts().reindex(tables.VERDICTS[:-1], fill_value=0)
            unsure = own["printed"].isin(["repaired", "inferred"]) & (own[column] == "agrees")
            row = {"reading": reading, "rule": rule, **counts}
            rows.append(row | {"agrees, repaired or inferred": unsure.sum()})
    return pd.DataFrame(rows)


def agreement(
    work: project.Project, by: Sequence[str] = ("reading", "metric"), alike: str = ""
) -> pd.DataFrame:
    """How many cells of each table and reading agree, and how sharply: see `tables.tally`.

    With `alike` of the methods that have a reading of this name, in their other readings too.
    """
    found = [pd.DataFrame(columns=["table", *by])]
    for table in pd.read_csv(work.root / LIST)["table"]:
        made = judged(work, table)
        if "empty" in made:
            made = made.assign(reading=made.get("reading", ""))
            known = made[made["metric"].isin(tables.TOLERANCE) & made["paper"].notna()]
            if alike:
                known = known[known["method"].isin(known[known["reading"] == alike]["method"])]
            if len(known):
                found.append(tables.tally(known, by).assign(table=table))
    found = pd.concat([part for part in found if len(part)] or found, ignore_index=True)
    return found[["table", *found.columns.drop("table")]]


def chosen(work: project.Project) -> pd.DataFrame:
    """How many values were chosen to match: columns table, reading, values (by method)."""
    rows = [
        {"table": table, "reading": reading, "values": values}
        for table in pd.read_csv(work.root / LIST)["table"]
        if table in work.entries
        for reading, values in named(work, table).items()
        if reading in work.entries[table].spec["only"].get("reading", [reading])
    ]
    return pd.DataFrame(rows)


def named(work: project.Project, entry: str) -> dict[str, str]:
    """Reading of an entry -> how many values were chosen, by method."""
    return {
        reading: ", ".join(f"{method} {n}" for method, n in counts.items()) or "none"
        for reading, counts in work.fitted(entry).items()
    }


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
            cells = tables.cells(own.shown(name, kind), metrics, own.fitted(name))
            cells = cells.merge(made, "left", key)
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


def report(work: project.Project, anew: bool = False) -> Iterator[str]:
    """The scoreboard as lines of text.

    Parameters
    ----------
    work : Project
        Whose figures are read.
    anew : bool, default=False
        Whether the tables are first given the verdicts of the rule as it is now.
    """
    if anew:
        judge(work)
    cells, shares = published_cells(work), agreement(work)
    yield from textwrap.wrap(EVIDENCE, 100)
    yield from _table(evidence(cells))
    yield ""
    yield from _shown(cells)
    yield ""
    yield "The papers' numbers in our text of them"
    words = cells["printed"].replace("", "in no file").fillna("in no file")
    yield from _table(_counts(cells, words))
    yield ""
    yield "Values that were chosen to match the cells, by method"
    yield from _table(chosen(work))
    yield ""
    yield from textwrap.wrap(tables.RULE, 100)
    yield ""
    yield "What one parameter explains: the methods that have a reading by one rule"
    counts = agreement(work, ["reading"], ONE_RULE)
    yield from _table(counts[["table", "reading", *tables.VERDICTS]])
    yield ""
    columns = ["table", "reading", "metric", *tables.VERDICTS[:-1], "agreement (%)"]
    columns += ["agreement, strict (%)", "wrong pairs that agree (%)", "select nothing"]
    yield from _table(shares[columns])


def _table(rows: pd.DataFrame) -> list[str]:
    shown = rows.astype(object).where(rows.notna(), "–")
    return text_table([*shown], shown.itertuples(index=False))


def _counts(cells: pd.DataFrame, words: pd.Series) -> pd.DataFrame:
    """Cells of each table by a word, those with the same in a column, and of all tables."""
    wide = pd.crosstab(pd.Categorical(cells["table"], cells["table"].unique()), words.to_numpy())
    wide = wide.rename_axis(index="table", columns=None).assign(cells=wide.sum(axis=1))
    wide.index = wide.index.astype(str)
    wide.loc["all"] = wide.sum()
    return wide.reset_index()


def _shown(cells: pd.DataFrame) -> Iterator[str]:
    """Both verdicts of all cells by table, those as reconstructed with the kind of their reason."""
    yield "By the text: of the readings of a method that in which the fewest values were chosen"
    words = cells[tables.BY_THE_TEXT].fillna(NO_TEXT)
    counts = _counts(cells, words)
    order = [word for word in (*tables.VERDICTS, NO_TEXT) if word in counts]
    yield from _table(counts[["table", *order, "cells"]])
    yield ""
    yield "Reconstructed: the last reading"
    words = cells["verdict"] + cells["why"].map(lambda why: f": {why}" if why else "")
    order = {word: place for place, word in enumerate(tables.VERDICTS)}
    columns = sorted(set(words), key=lambda word: (order[word.partition(":")[0]], word))
    numbers = {word: str(number) for number, word in enumerate(columns, 1)}
    yield from _table(_counts(cells, words)[["table", *columns, "cells"]].rename(columns=numbers))
    yield ""
    yield from (f"{number}: {word}" for word, number in numbers.items())
