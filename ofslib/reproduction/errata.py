"""Where the papers and their own numbers part: config/errata.yaml, and the page made of it.

`python -m ofslib.reproduction.errata` writes docs/errata.md.
"""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from ofslib._files import write_whole

FILE, PAGE = Path("config/errata.yaml"), Path("docs/errata.md")


def read(root: Path = Path()) -> dict[str, Any]:
    """The intro, the kinds, the papers, and the items: id, kind, title, entries and text."""
    return yaml.safe_load((root / FILE).read_text(encoding="utf-8"))


def anchor(item: dict[str, Any]) -> str:
    """Where an item stands in the page."""
    return item["id"].replace(" ", "-")


def lines(known: dict[str, Any]) -> Iterator[str]:
    """The page in Markdown: by paper, by kind."""
    yield from ("# Where a paper and its own numbers part", "")
    yield from ("<!-- Made of config/errata.yaml: python -m ofslib.reproduction.errata -->", "")
    yield from (known["intro"], "")
    yield from (f"- *{kind}*. {meaning}".strip() for kind, meaning in known["kinds"].items())
    for paper, authors in known["papers"].items():
        yield from ("", f"## {paper} ({authors})")
        own = [item for item in known["items"] if item["id"].split()[0] == paper]
        for kind in known["kinds"]:
            shown = [item for item in own if item["kind"] == kind]
            yield from ("", f"### {kind}") * bool(shown)
            for item in shown:
                head = f'<a id="{anchor(item)}"></a>**{item["id"]}. {item["title"]}.**'
                yield from ("", f"{head} {item['text']}")


if __name__ == "__main__":
    write_whole(PAGE, "\n".join(lines(read())) + "\n")
    sys.stdout.write(f"{PAGE}\n")
