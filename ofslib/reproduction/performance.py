"""What `python -m benchmarks` measured, as docs/performance.md and as a figure.

`python -m ofslib.reproduction.performance` writes the page, of benchmarks/performance.md.jinja.
"""

import json
import sys
from dataclasses import dataclass, field
from pathlib import Path

import jinja2
import pandas as pd
import yaml

from ofslib._files import write_whole
from ofslib.reproduction import project, provenance
from ofslib.reproduction.tables import spread

ROOT = Path(__file__).parents[2]  # of the checkout
RESULTS, PAGE = Path("benchmarks/results.csv"), Path("docs/performance.md")
TEMPLATE = Path("benchmarks/performance.md.jinja")
FACTS = "facts"  # the case of the lines that say where, when and how much
UNITS = {"ns": 1e9, "us": 1e6, "ms": 1e3, "s": 1.0}
HEADS = {"wall_s": "s by the clock", "score": "", "found": "true features found (%)", "mb": "MB"}
COLUMNS_HELD_AGAINST = ("1 penalty", "warm")
MEASURED = ("cost", "busy", "cpu_s", "wall_s", "score", "found", "mb")
_BUSY = 1.15  # processors, from which on a line says how many


@dataclass(frozen=True)
class Table:
    """How a case is shown, as benchmarks/tables.yaml says it."""

    unit: str
    reference: str
    instead: dict[str, str] = field(default_factory=dict)
    split: str = ""
    columns: tuple[str, ...] = ()
    score: str = ""


_SHOWN = yaml.safe_load((ROOT / "benchmarks/tables.yaml").read_text(encoding="utf-8"))
TABLES = {case: Table(**own) for case, own in _SHOWN.items()}
LOOP, READ = TABLES["sparse"].reference, TABLES["dense"].reference


def read(file: Path = RESULTS) -> pd.DataFrame:
    """What was measured, a row a turn; see `benchmarks/measure.py`."""
    return pd.read_csv(file)


def facts(results: pd.DataFrame) -> dict[str, str]:
    """Where, when, with which versions and sizes."""
    said = results[results["case"] == FACTS]
    return dict(zip(said["method"], said["note"], strict=True))


def compared(results: pd.DataFrame, case: str) -> pd.DataFrame:
    """The cost of each method, and its ratio to that of its reference in the same turn.

    Both are times by the clock: of the processor, what has threads of its own takes more.

    Returns
    -------
    DataFrame
        method, cost (in the unit of the case), turns, low, median and high of the ratio (missing
        where the reference is), busy (how many processors were) and medians of what else was
        measured; note, where a peer is missing. The cheapest comes first.
    """
    shown, own = TABLES[case], results[results["case"] == case]
    turns = own.dropna(subset="cpu_s")
    turns = turns.assign(
        cost=turns["wall_s"] / turns["values"], busy=turns["cpu_s"] / turns["wall_s"]
    )
    by = turns.groupby("method", sort=False)
    table = by[[name for name in MEASURED if name in turns]].median().assign(turns=by.size())
    costs, ratios = turns.pivot(index="turn", columns="method", values="cost"), {}
    for method in costs:
        for other in references(shown, method):
            if other in costs:
                ratios[method] = costs[method] / costs[other]
    held = pd.DataFrame(ratios, columns=[*ratios]).melt(var_name="method", value_name="ratio")
    table = table.reset_index().merge(spread(held, ["method"], "ratio"), "left", "method")
    table["cost"] *= UNITS[shown.unit.split()[0]]
    absent = own[~own["method"].isin(turns["method"])].reindex(columns=["method", "note"])
    table = table.sort_values("cost", kind="stable")
    return pd.concat([table, absent], ignore_index=True) if len(absent) else table


def references(shown: Table, method: str) -> tuple[str, ...]:
    """What a method is held against: the line of this name, or of the other; one is there."""
    row, split, column = method.rpartition(shown.split) if shown.split else (method, "", "")
    if shown.reference in COLUMNS_HELD_AGAINST:
        return (row + split + shown.reference,)
    other = shown.instead.get(row, shown.reference)
    return other + split + column, other


def markdown(results: pd.DataFrame, case: str) -> str:
    """A case as a table of the page, below its sizes."""
    shown, table = TABLES[case], compared(results, case)
    sizes = json.loads(facts(results)[f"sizes of {case}"])
    turns = sizes.pop("turns")
    said = [
        f"{name} = {' and '.join(map(str, value if isinstance(value, list) else [value]))}"
        for name, value in sizes.items()
    ]
    caption = f"{', '.join(said)}{'; ' * bool(said)}{turns} turn{'s' * (turns > 1)}"
    fewer = table.loc[table["turns"] < turns, ["method", "turns"]].itertuples(index=False)
    caption += "".join(f", {n:.0f} of *{name}*" for name, n in fewer) + "."
    return "\n".join([caption, "", *_lines(table, shown)])


def _lines(table: pd.DataFrame, shown: Table) -> list[str]:
    """A line a method: the cost and its ratio, in each column of a split case, and what else."""
    parts = table["method"].str.rpartition(shown.split or "\n")
    of_all = parts[1] == ""  # of no column, shown in the first
    columns = sorted(parts[2][~of_all].unique(), key=lambda c: (len(c), c)) or [""]
    rows = parts[0].mask(of_all, table["method"])
    texts = [_cell(cell) for cell in table.to_dict("records")]
    table = table.assign(row=rows, column=parts[2].mask(of_all, columns[0]), text=texts)
    wide = table.pivot_table("text", "row", "column", "first", sort=False)[columns].fillna("")
    others = sorted({f"*{name}*" for name in (shown.reference, *shown.instead.values())})
    head, name = f"{shown.unit}, times {' or '.join(others)}", shown.split.strip(", :")
    wide.columns = [f"{name} {column}".strip() for column in columns] if shown.split else [head]
    heads = HEADS | {"score": shown.score, "cpu_s": "s of the processor"}
    for extra in (extra for extra in shown.columns if extra in table):
        wide[heads[extra]] = table.set_index("row")[extra].map(short)
    busy = table.groupby("row")["busy"].max()
    first = [head if shown.split else "", *wide.columns]
    said = {row: f" ({n:.1f} processors)" for row, n in busy.items() if n > _BUSY}
    rows = ([row + said.get(row, ""), *cells] for row, *cells in wide.itertuples(name=None))
    return table_lines([first, *rows])


def _cell(cell: dict) -> str:
    """The cost, and of its ratio the median and the middle, or its only one."""
    if pd.isna(cell["cost"]):
        return cell["note"]
    if pd.isna(cell["median"]):
        return short(cell["cost"])
    middle = f" ({short(cell['low'])}–{short(cell['high'])})" * (cell["replicates"] > 1)
    return f"{short(cell['cost'])}, ×{short(cell['median'])}{middle}"


def short(value: float) -> str:
    """A number with three digits, or none if it is not known."""
    if pd.isna(value):
        return ""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def choice(results: pd.DataFrame) -> str:
    """What 1e6 dense rows of p features take by SFSA and by running averages, from the rates.

    Memory is that of the model, as measured: so much a feature, or a pair of features.
    """
    lines = [["p", "SFSA, s", "SFSA, MB", "running averages, s", "running averages, MB"]]
    rows = 10**6
    one = compared(results, "dense").set_index("method").at["SFSA", "cost"] * 1e-9
    memory = compared(results, "regression").set_index("method")["mb"]
    p = json.loads(facts(results)["sizes of regression"])["p"]
    per_feature, per_pair = memory["SFSA"] / p, memory["OFSA"] / p**2
    all_pairs = compared(results, "averages").set_index("method")["cost"] * 1e-9
    for p in json.loads(facts(results)["sizes of averages"])["p"]:
        formed = rows * p**2 / 2 * all_pairs[f"update, p = {p}"]
        cells = [rows * p * one, per_feature * p, formed, per_pair * p**2]
        lines.append([f"{p:,}", *map(short, cells)])
    return "\n".join(table_lines(lines))


def where(results: pd.DataFrame) -> str:
    """On which machine, when, with what."""
    said = facts(results)
    first = [f"{said['date'][:10]}, {said['machine']}, load average before {said['load']}"]
    first += [f"scale {said['scale']}", f"commit {said['commit']}"]
    skipped = {"date", "machine", "load", "scale", "commit"}
    versions = [
        f"{name} {version}"
        for name, version in said.items()
        if name not in skipped and not name.startswith("sizes of ")
    ]
    return "; ".join(first) + ".\n" + ", ".join(versions) + "."


def job(root: Path) -> str:
    """What the results of the committed figures took, each once."""
    work = project.committed(root)
    made = provenance.read(work.root / work.provenance)
    own = {name for name in made if work.source(name).name == name and made[name].get("runs")}
    hours = {name: made[name]["runs"]["cpu_hours"] for name in sorted(own)}
    longest = sorted(hours, key=hours.get, reverse=True)[:8]
    rows = [["entry", "core hours"], *([f"`{name}`", short(hours[name])] for name in longest)]
    told = f"The runs behind the committed figures took {short(sum(hours.values()))} core hours."
    told += " These took most; `python -m ofslib.reproduction plan` tells what is left to run here."
    return "\n".join([told, "", *table_lines(rows)])


def page(root: Path = Path()) -> str:
    """The page as the results give it."""
    results = read(root / RESULTS)
    shown = {case: markdown(results, case) for case in TABLES}
    shown |= {FACTS: where(results), "choice": choice(results)}
    shown["job"] = job(root)
    template = jinja2.Environment(undefined=jinja2.StrictUndefined, keep_trailing_newline=True)
    text = (root / TEMPLATE).read_text(encoding="utf-8")
    return template.from_string(text).render(tables=shown)


def table_lines(rows: list[list[str]]) -> list[str]:
    """A table in Markdown; the first row is its head."""
    rows = [rows[0], ["---"] * len(rows[0]), *rows[1:]]
    return ["| " + " | ".join(row) + " |" for row in rows]


if __name__ == "__main__":
    write_whole(PAGE, page())
    sys.stdout.write(f"{PAGE}\n")
