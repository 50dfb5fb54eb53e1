"""Tables of cells: nothing is lost between a file and what is shown, in HTML and in LaTeX."""

import re
import shutil
import subprocess
from functools import cache
from itertools import zip_longest
from pathlib import Path

import matplotlib
import numpy as np
import pandas as pd
import pytest
from matplotlib.font_manager import FontProperties
from matplotlib.textpath import TextToPath

from ofslib.reproduction import latex, layout, project

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


def block_of(*rows):
    (block,) = layout.blocks(cells_of(*rows), "title", {})
    return block


def blocks_of(file):
    return layout.blocks(pd.read_csv(file), "title", {})


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_each_number_of_a_file_is_shown_beside_the_papers(file):
    table = pd.read_csv(file)
    ours, paper, verdicts = [], [], []
    for block in blocks_of(file):
        wide = layout.wide(block)
        words = layout.wide(block, "verdict")
        for side, found in (("ours", ours), ("paper", paper)):
            here = wide.index.get_level_values(-1) == side
            rows = wide[here | (wide.index.nlevels == len(block.axes))].to_numpy().ravel()
            rows = rows if here.any() or side == "ours" else []
            found += [float(re.match(r"[\d.]+", text)[0]) for text in rows if text[:1].isdigit()]
        verdicts += [word for word in words.to_numpy().ravel() if word in layout.VERDICTS[:-1]]
        marks = {mark for mark in layout.MARKS.values() if mark} | {*layout.SOURCES.values()}
        used = {mark for mark in marks if mark in "".join(wide.to_numpy().ravel())}
        assert all(mark in " ".join(layout.legend(block)) for mark in used)
    centre = table["median"].where(table["metric"] == "time_s", table["ours"]).dropna()
    assert sorted(paper) == sorted(table["paper"].dropna())
    assert np.allclose(sorted(ours), sorted(centre), atol=0.051), "but for the digits shown"
    judged = table.loc[table["verdict"] != "not comparable", "verdict"]
    assert sorted(verdicts) == sorted(judged)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_each_reason_of_a_file_is_told_below_its_table(file):
    told = {why for block in blocks_of(file) for _, why, _ in layout.reasons(block)}
    for why in pd.read_csv(file)["why"].dropna():
        for part in why.split("; "):
            kind = re.sub(r"^\d+ of \d+ | are [\d.e+-]+$", "", part)
            assert kind in told or kind == "not in the paper's table"


def test_ours_stand_above_the_papers_with_mark_and_error():
    block = block_of(
        (100, "SGDT", 52.0, 1.15, 53.25, "agrees", ""),
        (100, "SFSA", 90.0, 1e-4, 70.1, "better", "weaker baseline: so"),
        (5000, "SGDT", NAN, NAN, 98.0, "not comparable", "not run at this scale"),
        (5000, "SFSA", 60.0, NAN, NAN, "not comparable", "dash: printed '-'"),
        (5000, "lost", NAN, NAN, NAN, "not comparable", "raised"),
    )
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


def test_where_a_table_has_no_axes_methods_are_rows():
    rows = [(0, "SFSA", 1.0, 0.1, 1.1, "agrees", ""), (0, "mine", 2.0, 0.1, NAN, "", "")]
    table = cells_of(*rows).drop(columns="n")
    table["verdict"] = ["agrees", "not comparable"]
    (block,) = layout.blocks(table, "title", {})
    assert layout.wide(block).index.tolist() == [
        ("SFSA", "ours"),
        ("SFSA", "paper"),
        ("mine", "ours"),
    ]


def test_a_sweep_by_budget_says_how_many_features_were_taken():
    rows = [("ours", 100, "AUC", 0.9, 0.01), ("ours", 10, "AUC", 0.8, NAN)]
    rows += [("free", NAN, "AUC", 0.95, 0.002), ("free", NAN, "selected", 231.4, 3.0)]
    columns = ["method", "k", "metric", "ours", "se"]
    summary = pd.DataFrame(rows, columns=columns).assign(dataset="one", replicates=2)
    (block,) = layout.blocks(summary, "", {"one": "First"})
    wide = layout.wide(block)
    assert block.caption.startswith("First") and wide.columns.tolist() == [
        *("k = 10", "k = 100", "any k")
    ]
    assert wide.loc["ours"].tolist() == ["0.800", "0.900 (0.010)", ""]
    assert wide.loc["free"].tolist() == ["", "", "0.950 (0.002), 231"]


def test_names_are_shown_letter_by_letter():
    """A method may be called anything: it is neither HTML nor a command of TeX."""
    block = block_of((1, HOSTILE, 1.0, 0.1, 1.0, "agrees", ""))
    block = block._replace(axes=[HOSTILE], cells=block.cells.rename(columns={"n": HOSTILE}))
    for flat in (True, False):
        page = layout.styled(block, flat).to_html()
        assert "<b>" not in page and page.count("&lt;b&gt;") == 2
    tex = latex.written([block], HOSTILE, "it")
    plain = re.sub(r"\\(textbackslash|textasciitilde|textasciicircum)\{\}|\\[&%$#_{}]", "", tex)
    assert not re.search(r"[%~^]", plain.partition("\n")[2].replace("%", "", 0))
    assert plain.count("{") == plain.count("}") and tex.count(r"50\% \& \$x\_\{1\}\$ \#2") == 3


# -------------------------------------------------- LaTeX


@cache
def width(text):
    """Points of what TeX sets in Computer Modern at 8."""
    text = re.sub(r"\\textsuperscript\{(.*?)\}", lambda m: m[1][: -(-3 * len(m[1]) // 4)], text)
    text = re.sub(r"\$\^\{.*?\}\$|\$\\?\w*\$|\\(text\w+\{\})?|[${}]", "+", text).replace("++", "+")
    font = FontProperties(fname=Path(matplotlib.get_data_path(), "fonts/ttf/cmr10.ttf"), size=8.2)
    return TextToPath().get_text_width_height_descent(re.sub("[^ -~]", "0", text), font, False)[0]


def tabulars(text):
    """The rows of each tabular, each a list of texts."""
    for body in re.findall(r"\\begin\{tabular\}\{[^\n]*\}\n(.*?)\\end\{tabular\}", text, re.S):
        rows = re.sub(r"\\(top|mid|bottom)rule", "", body).split("\\\\\n")
        yield [[c.strip() for c in re.split(r"(?<!\\)&", row)] for row in rows if row.strip()]


@pytest.mark.parametrize("file", sorted((ROOT / "figures").glob("*.tex")), ids=lambda f: f.stem)
def test_committed_tables_fit_a_page_of_a_default_article(file):
    """345 by 550 points: a column has 6 beside it, a line 9.5, and a caption up to 9 lines."""
    text = file.read_text(encoding="utf-8")
    tables = list(tabulars(text))
    assert tables and text.count(r"\begin{table}") == text.count(r"\label{") == len(tables)
    assert len(set(re.findall(r"\\label\{.*?\}", text))) == len(tables)
    for rows in tables:
        # What is longer than half of a line is folded.
        widths = [max(map(width, column)) for column in zip_longest(*rows, fillvalue="")]
        widths = [min(own, 345 / 2) for own in widths]
        assert sum(widths) + 6 * (len(widths) - 1) < 345
        assert 9.5 * len(rows) + 110 < 550


def test_each_cell_of_a_table_that_is_cut_is_in_one_part():
    methods = [f"method {i}" for i in range(20)]
    rows = [(n, m, n + 0.5, 0.1, n + 0.25, "agrees", "") for n in range(1, 60) for m in methods]
    block = block_of(*rows)
    parts = list(latex._parts(layout.wide(block)))
    assert len(parts) > 4
    shown = [cell for part in parts for cell in part.stack().items()]
    assert sorted(shown) == sorted(layout.wide(block).stack().items())


@pytest.mark.parametrize(
    ("words", "tex"),
    [
        ("n^1.21±0.10", r"n\textsuperscript{1.21$\pm$0.10}"),
        ("O(n^(-1/2))", r"O(n\textsuperscript{-1/2})"),
        ("55.0⁺ (0.1)", "55.0$^{+}$ (0.1)"),
        ("a_b & 5%", r"a\_b \& 5\%"),
    ],
)
def test_powers_and_marks_are_raised(words, tex):
    assert latex._tex(words) == tex


def test_the_command_writes_the_tables_of_the_checkout(tmp_path, monkeypatch):
    """All of them, from the committed numbers alone."""
    (tmp_path / "figures").mkdir()
    for file in (ROOT / "figures").glob("*.csv"):
        shutil.copy(file, tmp_path / "figures")
    monkeypatch.chdir(tmp_path)
    work = project.committed(ROOT)
    made = {file for name in work.entries for file in latex.remake(work, name)}
    assert {Path(f).name for f in made} == {f.name for f in (ROOT / "figures").glob("*.tex")}
    for file in made:
        assert Path(file).read_bytes() == (ROOT / file).read_bytes(), file


@pytest.mark.skipif(not shutil.which("pdflatex"), reason="no pdflatex on this machine")
def test_committed_tables_compile_without_an_overfull_box(tmp_path):
    head = r"\documentclass{article}\usepackage{booktabs}\extrafloats{200}\begin{document}"
    tables = [rf"\input{{{file}}}\clearpage" for file in sorted((ROOT / "figures").glob("*.tex"))]
    (tmp_path / "all.tex").write_text("\n".join([head, *tables, r"\end{document}"]))
    words = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "all.tex"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, errors="replace")
    assert done.returncode == 0, done.stdout[-2000:]
    assert "Overfull" not in done.stdout and "too large" not in done.stdout


def test_methods_that_keep_more_than_k_features_are_named_in_the_caption():
    table = cells_of(
        (1, "SGDT", 1.0, 0.1, 1.0, "agrees", ""), (1, "mine", 1.0, 0.1, 1.0, "agrees", "")
    )
    (block,) = layout.blocks(table.assign(beyond=[2, 1]), "title", {})
    assert "More than k features, in some runs: SGDT, mine." in latex.written([block], "Doe", "it")
    (block,) = layout.blocks(table.assign(beyond=0), "title", {})
    assert "More than k" not in latex.written([block], "Doe", "it")
