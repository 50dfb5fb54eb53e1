"""A page of each paper's statements: the registry, and config/theory.yaml, which adds proofs.

`python -m ofslib.reproduction.theory_pages` writes docs/theory/.
"""

import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from ofslib import bounds
from ofslib._files import write_whole
from ofslib.reproduction.overview import PAPERS, plain
from ofslib.reproduction.statements import STATEMENTS, Statement

ROOT = Path(__file__).parents[2]
EMPTY = "*Empty*: at the paper's sizes an assumption fails, or nothing possible is excluded."


def verdict(each: Statement) -> str:
    """Whether it holds, in words."""
    fails = "Fails as printed; a corrected form holds." if each.corrected else "Fails as printed."
    return {True: "Holds.", False: fails, None: "Assumed or quoted."}[each.true]


def section(each: Statement, more: dict[str, Any]) -> Iterator[str]:
    """A statement: what it says, when, the verdict, what holds instead, why, the code."""
    yield from ("", f"## {each.item}", "", more.get("says") or plain(each.printed))
    given = more.get("assumptions") or [plain(one) for one in each.applies.split("; ") if one]
    yield from ("", "**Assumptions**", "") * bool(given)
    yield from (f"{i}. {text[0].upper()}{text[1:].rstrip('.')}." for i, text in enumerate(given, 1))
    found = [f"**{more.get('verdict') or verdict(each)}**", "Empty." * (each.informative is False)]
    found += [more.get("witness") or plain(each.evidence)]
    yield from ("", " ".join(filter(None, found)))
    instead = more.get("holds") or plain(each.corrected)
    yield from ("", f"*Holds instead:* {instead.rstrip('.')}.") * bool(instead)
    yield from ("", "**Why**", "") * ("steps" in more)
    yield from (f"{i}. {text}" for i, text in enumerate(more.get("steps", ()), 1))
    yield from ("", f"*Beside experiments:* {more.get('seen')}") * ("seen" in more)
    code = {name: inspect.unwrap(getattr(bounds, name)) for name in each.by}
    code |= {"witness": each.witness} if each.witness else {}
    files = {name: Path(inspect.getfile(function)) for name, function in code.items()}
    links = [f"[`{name}`](../../{f.relative_to(ROOT).as_posix()})" for name, f in files.items()]
    links += [f"[figure](../../figures/{each.figure}.svg)"] if each.figure else []
    yield from ("", "Code: " + " · ".join(links)) * bool(links)


def lines(paper: str, known: dict[str, Any]) -> Iterator[str]:
    """The page of a paper in Markdown; of "own", of what is in none of them."""
    items = known["items"]
    made = [Statement("own", item, "", "", by=tuple(items[item].get("by", ()))) for item in items]
    own = [each for each in STATEMENTS if each.paper == paper] or made
    key, _, authors = PAPERS[paper].partition(": ")
    title = f"{authors} ({key})" if authors else "our own"
    yield from (f"# Theorems of {title}", "", "<!-- Made of statements and theory.yaml by")
    yield from ("python -m ofslib.reproduction.theory_pages -->", "", known["intro"])
    yield from ("", EMPTY) * (own is not made)
    decided = [each for each in own if each.witness or each.by]
    for each in decided:
        yield from section(each, items.get(each.item, {}))
    rest = [f"- {each.item}: {plain(each.printed)}." for each in own if each not in decided]
    yield from ("", "## Nothing to decide", "", *rest) if rest else ()


def pages() -> Iterator[tuple[Path, str]]:
    """Each file, and what belongs into it."""
    for paper, known in yaml.safe_load((ROOT / "config/theory.yaml").read_text("utf-8")).items():
        yield ROOT / f"docs/theory/{paper}.md", "\n".join(lines(paper, known)) + "\n"


if __name__ == "__main__":
    for file, text in pages():
        write_whole(file, text)
