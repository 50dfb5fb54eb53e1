"""Tables of cells: nothing is lost between a file and what is shown, in HTML and in LaTeX."""

import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from ofslib.reproduction import latex, layout

ROOT = Path(__file__).parents[1]
NAN = float("nan")
FILES = sorted((ROOT / "figures").glob("*_table_*.csv"))
FILES = [file for file in FILES if "strict" in pd.read_csv(file, nrows=1)]
HOSTILE = "<b>50% & $x_{1}$ #2~^\\</b>"
COLUMNS = ["n", "method", "metric", "ours", "se", "median", "replicates", "fitted", "basis"]
COLUMNS += ["paper", "printed", "verdict", "strict", "why"]


def cells_of(*rows):
    """A file of cells: (n, method, ours, se, paper, verdict, why)."""
    usual = {"metric": "DR", "replicates": 3, "fitted": 0, "basis": "by the text"}
    usual |= {"printed": "printed", "strict": "", "median": NAN}
    names = ["n", "method", "ours", "se", "paper", "verdict", "why"]
    return pd.DataFrame([usual | dict(zip(names, row, strict=True)) for row in rows])[COLUMNS]


def block_of(table):
    (block,) = layout.blocks(table, "title", {})
    return block


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_each_number_and_reason_of_a_file_is_shown(file):
    table, found, verdicts, told = pd.read_csv(file), {"ours": [], "paper": []}, [], set()
    for block in layout.blocks(table, "title", {}):
        wide = layout.wide(block)
        for key, texts in wide.iterrows():
            side = key[-1] if wide.index.nlevels > len(block.axes) else "ours"
            numbers = (re.match(r"[\d.]+", text) for text in texts)
            found[side] += [float(number[0]) for number in numbers if number]
        words = layout.wide(block, "verdict").to_numpy().ravel()
        verdicts += [word for word in words if word in layout.VERDICTS[:-1]]
        marks = {mark for mark in (*layout.MARKS.values(), *layout.SOURCES.values()) if mark}
        used = marks.intersection("".join(wide.to_numpy().ravel()))
        assert all(mark in " ".join(layout.legend(block)) for mark in used)
        told.update(why for _, why, _ in layout.reasons(block))
    centre = table["median"].where(table["metric"] == "time_s", table["ours"]).dropna()
    assert sorted(found["paper"]) == sorted(table["paper"].dropna())
    assert np.allclose(sorted(found["ours"]), sorted(centre), atol=0.051), "but for the digits"
    assert sorted(verdicts) == sorted(table["verdict"][table["verdict"] != "not comparable"])
    for part in table["why"].dropna().str.split("; ").explode():
        kind = re.sub(r"^\d+ of \d+ | are [\d.e+-]+$", "", part)
        assert kind in told or kind == "not in the paper's table"


def test_ours_stand_above_the_papers_with_mark_and_error():
    table = cells_of(
        (100, "SGDT", 52.0, 1.15, 53.25, "agrees", ""),
        (100, "SFSA", 90.0, 1e-4, 70.1, "better", "weaker baseline: so"),
        (5000, "SGDT", NAN, NAN, 98.0, "not comparable", "not run at this scale"),
        (5000, "SFSA", 60.0, NAN, NAN, "not comparable", "dash: printed '-'"),
        (5000, "lost", NAN, NAN, NAN, "not comparable", "raised"),
    )
    block = block_of(table.assign(beyond=[0, 2, 0, 0, 0]))
    wide = layout.wide(block)
    assert wide.columns.tolist() == ["SFSA", "SGDT"], "in the papers' order; none without numbers"
    assert wide.loc[100, "ours"].tolist() == ["90.00⁺ (<0.01)", "52.00 (1.15)"]
    assert wide.loc[5000].to_numpy().tolist() == [["60.00", "–"], ["–", "98"]]
    assert list(layout.reasons(block)) == [
        ("better", "weaker baseline: so", ["SFSA"]),
        ("not comparable", "not run at this scale", ["SGDT"]),
        ("not comparable", "dash: printed '-'", ["SFSA"]),
        ("not comparable", "raised", ["lost"]),
    ]
    said = "More than k features, in some runs: SFSA"
    assert said in block.said and said in latex.written([block], "Doe", "it")


def test_names_are_shown_letter_by_letter():
    """A method may be called anything: it is neither HTML nor a command of TeX."""
    block = block_of(cells_of((1, HOSTILE, 1.0, 0.1, 1.0, "agrees", "")))
    block = block._replace(axes=[HOSTILE], cells=block.cells.rename(columns={"n": HOSTILE}))
    for flat in (True, False):
        page = layout.styled(block, flat).to_html()
        assert "<b>" not in page and page.count("&lt;b&gt;") == 2
    tex = latex.written([block], HOSTILE, "it")
    shown = r"50\% \& \$x\_\{1\}\$ \#2\textasciitilde{}\textasciicircum{}\textbackslash{}"
    assert tex.count(shown) == 3 and HOSTILE not in tex


# -------------------------------------------------- LaTeX


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_each_cell_of_a_table_that_is_cut_is_in_one_part_that_fits_a_page(file):
    for block in layout.blocks(pd.read_csv(file), "title", {}):
        wide, shown = layout.wide(block), []
        for part in latex._parts(wide):
            shown += part.stack()[lambda texts: texts != ""].items()
            columns = [part.index.get_level_values(level) for level in range(part.index.nlevels)]
            columns += [[name, *own] for name, own in part.items()]
            letters = [max(len(layout.shown(text)) for text in own) for own in columns]
            assert sum(min(n, latex.FOLDED) for n in letters) <= latex.LETTERS
            assert len(part) <= latex.LINES + 3  # those of one row of the paper stay together
        assert sorted(shown) == sorted(wide.stack()[lambda texts: texts != ""].items())


@pytest.mark.parametrize(
    ("words", "tex"),
    [
        ("n^1.21±0.10", r"n\textsuperscript{1.21$\pm$0.10}"),
        ("O(n^(-1/2))", r"O(n\textsuperscript{-1/2})"),
        ("55.0⁺ (0.1)", "55.0$^{+}$ (0.1)"),
    ],
)
def test_powers_and_marks_are_raised(words, tex):
    assert latex._tex(words) == tex


@pytest.mark.skipif(not shutil.which("pdflatex"), reason="no pdflatex on this machine")
def test_committed_tables_compile_without_an_overfull_box(tmp_path):
    head = r"\documentclass{article}\usepackage{booktabs}\extrafloats{200}\begin{document}"
    tables = [rf"\input{{{file}}}\clearpage" for file in sorted((ROOT / "figures").glob("*.tex"))]
    (tmp_path / "all.tex").write_text("\n".join([head, *tables, r"\end{document}"]))
    words = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "all.tex"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, errors="replace")
    assert done.returncode == 0, done.stdout[-2000:]
    assert "Overfull" not in done.stdout and "too large" not in done.stdout
