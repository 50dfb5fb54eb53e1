"""Tables as LaTeX that fits the page of a journal, at 9 points.

``python -m ofslib.reproduction.latex`` writes the tables of the checkout anew from their CSV files.
"""

import os
import re
import sys
import textwrap
from collections.abc import Mapping
from functools import cache, partial
from itertools import groupby, zip_longest
from pathlib import Path

import matplotlib
import numpy as np
import pandas as pd
from matplotlib.font_manager import FontProperties
from matplotlib.textpath import TextToPath

from ofslib._files import write_whole
from ofslib.datasets.registry import registry
from ofslib.reproduction import as_printed, formulas, orders, project, tables

# A text block of 6.5 by 9 inches, in points of TeX; of its height, what a caption leaves.
WIDTH, HEIGHT = 6.5 * 72.27, 7.5 * 72.27
SIZE, LINE, SEP, GAP = 9.0, 11.0, 3.0, 10.0
HEADING = 14  # letters of a line of a heading
LONGEST = 32  # letters of a line of a cell
SMALL = 0.8  # width of a letter that is raised beside one that is not

PREAMBLE = r"""% In the preamble: \usepackage{booktabs}. This file is UTF-8.
% Nine points on a text block of 6.5 in by 9 in; a table that is larger is in parts.
"""

_LETTERS = {"–": "--", "×": r"$\times$", "≤": r"$\leq$", "≥": r"$\geq$", "−": "$-$"}
_LETTERS |= {"<": "$<$", ">": "$>$", "|": "$|$", "±": r"$\pm$"}
_LETTERS |= {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
_LETTERS |= {sign: "\\" + sign for sign in "&%$#_{}"}
_MARK = re.compile(f"([{''.join(map(chr, as_printed.RAISED.values()))}]+)")
_LOWERED = {raised: chr(plain) for plain, raised in as_printed.RAISED.items()}


# -------------------------------------------------- files


def save(layouts: Mapping[str, pd.DataFrame], stem: str) -> None:
    """Write stem.tex: these layouts, labelled by the name of the file."""
    write_whole(stem + ".tex", written(layouts, Path(stem).name))


def remake(work: project.Project, name: str) -> list[str]:
    """Write the .tex of an entry anew from its CSV files, where these say all that it shows.

    Returns
    -------
    list of str
        The files written.
    """
    made, spec = [], work.entries[name].spec
    for stem in (f[:-4] for f in work.figures(name) if f.endswith(".tex")):
        table = pd.read_csv(f"{stem}.csv") if Path(f"{stem}.csv").is_file() else pd.DataFrame()
        title = f"{spec['source']}. {spec['title']}"
        if spec["notebook"] == "complexities" and len(table):
            save({orders.caption(title, table): orders.layout(table)}, stem)
        elif {"method", "verdict"} <= set(table):
            save(cells(work, name, table), stem)
        elif spec["notebook"] == "data_sets" and len(table):
            save({title: as_printed.sizes(table)}, stem)
        else:
            continue
        made.append(f"{stem}.tex")
    return made


def cells(work: project.Project, name: str, table: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """The `as_printed.blocks` of an entry, data sets by their titles."""
    printed = work.published(name)
    printed = None if printed is None else str(work.root / printed)
    blocks = as_printed.blocks(tables.as_saved(table), work.entries[name].spec["source"], printed)
    titles = registry(work.root / "config/datasets.csv")["title"].to_dict()
    return {caption: _titled(wide, titles) for caption, wide in blocks.items()}


def _titled(wide: pd.DataFrame, titles: Mapping[str, str]) -> pd.DataFrame:
    return wide.rename(index=titles, level="dataset") if "dataset" in wide.index.names else wide


# -------------------------------------------------- text


def written(layouts: Mapping[str, pd.DataFrame], label: str) -> str:
    """Booktabs tables, each with its caption and label, in as many parts as fit the page.

    Parameters
    ----------
    layouts : mapping
        Caption -> table of texts. Columns may have two levels; those of one name on the first, a
        method's, stay together. Formulas in words are set as such (`formulas`), long texts are
        folded, and rows that are blank in a part are left out of it.
    label : str
        The labels are ``tab:label``, or ``tab:label:1`` and so on if there are several tables.

    Raises
    ------
    ValueError
        If the columns of one name are wider than the page.
    """
    floats = [
        (caption + ". Continued" * (part > 0), page)
        for caption, wide in layouts.items()
        for part, page in enumerate(_pages(wide))
    ]
    texts = [PREAMBLE]
    for number, (caption, page) in enumerate(floats, 1):
        own = f"tab:{label}:{number}" if len(floats) > 1 else f"tab:{label}"
        lines = [r"\begin{table}[tbp]", r"\centering\fontsize{9}{11}\selectfont"]
        lines += [rf"\setlength{{\tabcolsep}}{{{SEP:g}pt}}\setlength{{\belowcaptionskip}}{{4pt}}"]
        lines += [rf"\caption{{{escaped(caption)}.}}", rf"\label{{{own}}}"]
        lines += ["\n\\par\\medskip\n".join(map(_tabular, page)), r"\end{table}", ""]
        texts.append("\n".join(lines))
    return "\n".join(texts)


def escaped(text: str) -> str:
    """A text as LaTeX shows it letter by letter; marks of verdicts are raised, formulas are set."""
    parts = _MARK.split(str(text))
    plain = [_plain(part) for part in parts[::2]]
    marks = [mark.translate(_LOWERED).replace("~", r"\sim") for mark in parts[1::2]]
    after = [re.sub("^ (?=[^(])", "~", part) for part in plain[1:]]
    # Else it reads as a part of the exponent before it.
    apart = [r"\," if part.endswith("$") else "" for part in plain[:-1]]
    marked = zip(apart, marks, after, strict=True)
    return plain[0] + "".join(rf"{space}$^{{{mark}}}${a}" for space, mark, a in marked)


def _plain(text: str) -> str:
    if formulas.is_formula(text):
        return formulas.typeset(text)
    # Two hyphens, as before an option of a command, would become a dash.
    parts = ["".join(_LETTERS.get(letter, letter) for letter in part) for part in text.split("--")]
    shown = "-{}-".join(parts)
    return re.sub(r"\bl([0-2])\b", r"$\\ell_\1$", shown)


def _lines(text: str) -> list[str]:
    """A long text in as few lines as it takes, of even length; a formula is cut after commas."""
    if len(text) <= LONGEST:
        return [text]
    if formulas.is_formula(_MARK.sub("", text)):
        return re.split("(?<=,) ", text)
    cut = partial(textwrap.wrap, text, break_long_words=False, break_on_hyphens=False)
    few = len(cut(LONGEST))
    return next(lines for width in range(1, LONGEST + 1) if len(lines := cut(width)) == few)


def _tabular(wide: pd.DataFrame) -> str:
    levels, columns = wide.index.nlevels, [_pair(column) for column in wide]
    names = " & ".join(_axis(name) for name in wide.index.names)
    is_flat = not any(side for _, side in columns)
    above = names if is_flat else "&" * (levels - 1)
    rules, form, at = "", "l" * levels, levels
    for method, own in groupby(columns, key=lambda column: column[0]):
        wide_by = len(list(own))
        stack = r"\\".join(escaped(line) for line in _heading(method))
        stack = rf"\shortstack{{{stack}}}" if r"\\" in stack else stack
        above += rf" & \multicolumn{{{wide_by}}}{{c}}{{{stack}}}"
        rules += rf"\cmidrule(lr){{{at + 1}-{at + wide_by}}}" if wide_by > 1 else ""
        sides = "".join(_aligned(wide.iloc[:, i - levels]) for i in range(at, at + wide_by))
        form += rf"@{{\hspace{{{GAP:g}pt}}}}{sides}"
        at += wide_by
    lines = [rf"\begin{{tabular}}{{@{{}}{form}@{{}}}}", r"\toprule"]
    below = " & ".join([names, *(escaped(side) for _, side in columns)])
    lines += [rf"{above} \\{rules}"] * any(method for method, _ in columns)
    lines += [rf"{below} \\"] * (not is_flat) + [r"\midrule", *_rows(wide)]
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}"])


def _rows(wide: pd.DataFrame) -> list[str]:
    """The rows line by line; what stands before a row is said where it changes."""
    lines, before, levels, keys = [], None, wide.index.nlevels, _keys(wide)
    is_grouped = levels > 1 and len({key[0] for key in keys}) < len(keys)
    for key, row in zip(keys, wide.itertuples(index=False), strict=True):
        if before is not None and is_grouped and key[0] != before[0]:
            lines.append(r"\addlinespace")
        new = next((i for i in range(levels) if before is None or key[i] != before[i]), levels - 1)
        shown = ["" if i < new else part for i, part in enumerate(key)]
        for line in zip_longest(*map(_lines, [*shown, *row]), fillvalue=""):
            lines.append(" & ".join(map(escaped, line)) + r" \\")
        before = key
    return lines


def _aligned(column: pd.Series) -> str:
    """Numbers stand at the right, words and formulas at the left."""
    is_words = any(cell[:1].isalpha() or formulas.is_formula(cell) for cell in column)
    return "l" if is_words else "r"


def _pair(column) -> tuple[str, str]:
    return column if isinstance(column, tuple) else (column, "")


def _keys(wide: pd.DataFrame) -> list[tuple[str, ...]]:
    """What stands before the rows, as texts."""
    keys = [key if isinstance(key, tuple) else (key,) for key in wide.index]
    integers = int, np.integer
    return [tuple(f"{k:,}" if isinstance(k, integers) else str(k) for k in key) for key in keys]


def _axis(name: str | None) -> str:
    """Numbers such as n are formulas; other names begin with a capital."""
    name = name or ""
    return f"${name}$" if re.fullmatch("[A-Za-z]", name) else escaped(name[:1].upper() + name[1:])


def _heading(method: str) -> list[str]:
    return textwrap.wrap(method, HEADING, break_long_words=False) or [""]


# -------------------------------------------------- what fits the page


def _pages(wide: pd.DataFrame) -> list[list[pd.DataFrame]]:
    """Parts of a table that fit the page, as many on each as fit it one above the other."""
    pages, left = [[]], HEIGHT
    for part in _parts(wide):
        top = LINE * (3 + max(len(_heading(_pair(column)[0])) for column in part))
        tall = _heights(part)
        fits = int((HEIGHT - top) / LINE) - tall.max(initial=1) + 1
        lines = np.array_split(np.arange(tall.sum()), max(1, -(-tall.sum() // fits)))
        cuts = np.searchsorted(tall.cumsum() - tall, [own[0] for own in lines[1:]])
        for rows in np.split(np.arange(len(part)), np.unique(cuts[cuts < len(part)])):
            height = top + LINE * tall[rows].sum()
            if height > left and pages[-1]:
                pages.append([])
                left = HEIGHT
            pages[-1].append(part.iloc[rows])
            left -= height
    return pages


def _heights(wide: pd.DataFrame) -> np.ndarray:
    """Of each row, how many lines it takes."""
    rows = zip(_keys(wide), wide.itertuples(index=False), strict=True)
    return np.array([max(len(_lines(text)) for text in (*key, *row)) for key, row in rows], int)


def _parts(wide: pd.DataFrame) -> list[pd.DataFrame]:
    """A table in parts by columns: first those of the paper and those of others, then evenly."""
    if _table_width(wide) <= WIDTH:
        return [wide]
    own = [_pair(column)[0] for column in wide]
    methods = list(dict.fromkeys(own))
    kinds = [list(group) for _, group in groupby(methods, key=own.count)]
    parts = []
    for kind in kinds:
        for n in range(1, len(kind) + 1):
            chosen = np.array_split(np.array(kind, dtype=object), n)
            tried = [wide.loc[:, [method in set(some) for method in own]] for some in chosen]
            if all(_table_width(part) <= WIDTH for part in tried):
                break
        else:
            raise ValueError(f"columns wider than a page at 9 points: one of {kind}")
        parts += tried
    return [part[(part != "").any(axis=1)] for part in parts]


def _table_width(wide: pd.DataFrame) -> float:
    """Width of a table in points."""
    labels = list(zip(*_keys(wide), strict=True)) or [()] * wide.index.nlevels
    names = [name or "" for name in wide.index.names]
    widths = [max(map(_width, [name, *own])) for name, own in zip(names, labels, strict=True)]
    between = 2 * SEP * (len(widths) - 1)
    columns = [_pair(column) for column in wide]
    texts = [max(map(_width, [side, *wide.iloc[:, i]])) for i, (_, side) in enumerate(columns)]
    pairs = zip(columns, texts, strict=True)
    for method, own in groupby(pairs, key=lambda pair: pair[0][0]):
        inner = [width for _, width in own]
        widths.append(max(sum(inner) + 2 * SEP * (len(inner) - 1), *map(_width, _heading(method))))
        between += GAP
    return sum(widths) + between


def _width(text: str) -> float:
    """Width of a text in points, of the longest of its lines."""
    return max(map(_line_width, _lines(text)))


def _line_width(line: str) -> float:
    plain = _MARK.sub("", line)
    if not formulas.is_formula(plain):
        return _letters_width(line)
    base, raised = formulas.outline(plain)
    return _letters_width(base) + SMALL * _letters_width(raised + line.removeprefix(plain))


@cache
def _letters_width(text: str) -> float:
    """Width in points, in Computer Modern at 9: 3 % wider than that at 10, scaled."""
    font = Path(matplotlib.get_data_path(), "fonts/ttf/cmr10.ttf")
    # The font has letters of ASCII where they are looked for, and a digit is as wide as a dash.
    shown = re.sub("[^ -~]", "0", text)
    size = FontProperties(fname=font, size=SIZE)
    return 1.03 * 72.27 / 72 * TextToPath().get_text_width_height_descent(shown, size, False)[0]


def main() -> None:
    """What `python -m ofslib.reproduction.latex` does."""
    os.chdir(project.find_root())
    work = project.committed()
    for name in work.entries:
        sys.stdout.writelines(f"{file}\n" for file in remake(work, name))


if __name__ == "__main__":
    main()
