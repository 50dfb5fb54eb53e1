"""Tables as LaTeX that fits the page of a default article.

``python -m ofslib.reproduction.latex`` writes the tables of the checkout anew from their CSV files.
"""

import hashlib
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from ofslib._files import write_whole
from ofslib.datasets.registry import registry
from ofslib.reproduction import layout, project, provenance

PREAMBLE = "% In the preamble: \\usepackage{booktabs}. This file is UTF-8. Keys: CITATION.bib.\n\n"
# What a table of each paper cites, beside ofslib itself: keys of CITATION.bib.
PAPERS = {"barda": "zhai2019online", "dissertation": "sun2019online", "ofs": "wang2018provable"}
PAPERS |= {"os": "yang2016online", "sfsa": "sun_stochastic"}
# A page of a default article in \footnotesize: letters of a line, lines of a table.
LETTERS, LINES = 80, 44
FOLDED = 40  # letters of a line of a cell
GAP = 1.5  # between two columns
_SIGNS = {sign: "\\" + sign for sign in "&%$#_{}"}
_SIGNS |= {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
_SIGNS |= {"–": "--", "±": r"$\pm$", "×": r"$\times$", "≤": r"$\leq$", "<": "$<$", ">": "$>$"}
_SIGNS |= {"|": "$|$", "ε": r"$\epsilon$", "δ": r"$\delta$", "‖": r"$\|$", "α": r"$\alpha$"}
_SIGNS |= {"⁺": "$^{+}$", "⁻": "$^{-}$", "˜": r"$^{\sim}$", "ˀ": "$^{?}$"}
_SIGNS |= {"ʳ": "$^{r}$", "ⁱ": "$^{i}$", "ᵘ": "$^{u}$"}
# What stands before a tabular: \\footnotesize and a smaller space between columns.
_COMMANDS = [{"selector": "footnotesize", "props": ":{}"}]
_COMMANDS += [{"selector": "setlength", "props": r":{\tabcolsep}{3pt}"}]


def save(blocks: Sequence[layout.Block], source: str, stem: str) -> None:
    """Write stem.tex: these blocks, labelled by the name of the file."""
    write_whole(stem + ".tex", written(blocks, source, Path(stem).name))


def remake(work: project.Project, name: str) -> list[str]:
    """Write the .tex of an entry anew from its CSV files; returns the files written."""
    made, spec = [], work.entries[name].spec
    titles = registry(work.root / "config/datasets.csv")["title"].to_dict()
    for stem in (f[:-4] for f in work.figures(name) if f.endswith(".tex")):
        if Path(f"{stem}.csv").is_file():
            table = pd.read_csv(f"{stem}.csv")
            save(layout.blocks(table, spec["title"], titles), spec["source"], stem)
            made.append(f"{stem}.tex")
    return made


def written(blocks: Sequence[layout.Block], source: str, label: str) -> str:
    """Booktabs tables, each with caption and label, in as many parts as fit the page.

    The labels are ``tab:label``, or ``tab:label:1`` and so on if there are several.
    """
    parts = [(block, part) for block in blocks for part in _parts(layout.wide(block))]
    texts = [PREAMBLE]
    keys = ["ofslib", *filter(None, [PAPERS.get(label.partition("_")[0])])]
    cite = rf" \cite{{{','.join(keys)}}}"
    for number, (block, part) in enumerate(parts, 1):
        said = [block.caption, *block.said, *layout.legend(block)]
        part = part.rename_axis(index=[_name(name) for name in part.index.names])
        styled = part.style.format(_tex).format_index(_tex, axis=0).format_index(_tex, axis=1)
        styled = styled.set_table_styles(_COMMANDS)
        texts.append(
            styled.to_latex(
                caption=". ".join([_tex(source) + cite, *map(_tex, said)]) + ".",
                label=f"tab:{label}" + f":{number}" * (len(parts) > 1),
                column_format="l" * part.index.nlevels + "".join(map(_column, _letters(part))),
                hrules=True,
                position="tbp",
                position_float="centering",
                multirow_align="naive",
            )
        )
    return "\n".join(texts)


def _name(name: str | None) -> str:
    """The name of an axis; a letter is a symbol."""
    return f"${name}$" if name and len(name) == 1 else _tex((name or "").capitalize())


def _tex(value) -> str:
    """A text as LaTeX shows it letter by letter; powers are raised."""
    parts = layout.POWER.split(layout.shown(value))
    texts = [part.translate(str.maketrans(_SIGNS)) if part else "" for part in parts]
    powers = [
        rf"\textsuperscript{{{a or b}}}" for a, b in zip(texts[1::3], texts[2::3], strict=True)
    ]
    return texts[0] + "".join(a + b for a, b in zip(powers, texts[3::3], strict=True))


def _parts(table: pd.DataFrame) -> Iterator[pd.DataFrame]:
    """Parts of a table that fit a page: by columns, and then by rows."""
    keys = table.index.to_frame(index=False).map(layout.shown)
    free = LETTERS - sum(keys[c].str.len().max() + GAP for c in keys)
    widths = [min(letters, FOLDED) + GAP for letters in _letters(table)]
    number, used = [0], 0.0
    for width in widths:
        number.append(number[-1] + (used > 0 and used + width > free))
        used = width if number[-1] > number[-2] else used + width
    for group in range(number[-1] + 1):
        part = table.loc[:, np.array(number[1:]) == group]
        part = part[part.ne("").any(axis=1)]
        rows = part.index.droplevel(-1) if part.index.nlevels > 1 else part.index
        place = pd.factorize(rows)[0]
        pages = -(-len(part) // LINES)
        for own in np.array_split(np.unique(place), max(pages, 1)):
            yield part[np.isin(place, own)]


def _letters(table: pd.DataFrame) -> list[int]:
    """Of each column the letters of the longest cell, or of its name."""
    return [max(len(name), int(own.str.len().max())) for name, own in table.items()]


def _column(letters: int) -> str:
    """Numbers stand at the right; what is longer than half a line is folded."""
    return "r" if letters <= FOLDED else rf"p{{{FOLDED / LETTERS:.2f}\linewidth}}"


def main() -> None:
    """What `python -m ofslib.reproduction.latex` does."""
    os.chdir(project.find_root())
    work = project.committed()
    recorded = provenance.read(work.provenance)
    for name in work.entries:
        for file in map(Path, remake(work, name)):
            sys.stdout.write(f"{file}\n")
            # The same numbers, written otherwise: only the checksum of the text is another.
            checksum = hashlib.sha256(file.read_bytes()).hexdigest()
            recorded.get(name, {}).get("figures", {})[file.name] = checksum
    provenance.write(work.provenance, recorded)


if __name__ == "__main__":
    main()
