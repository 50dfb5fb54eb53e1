"""Tables as LaTeX: what they hold, and that they fit the page."""

import re
import shutil
import subprocess
from itertools import zip_longest
from pathlib import Path

import matplotlib
import pandas as pd
import pytest
import shipped
from matplotlib.font_manager import FontProperties
from matplotlib.mathtext import MathTextParser
from matplotlib.textpath import TextToPath

from ofslib.reproduction import formulas, latex, orders, project

ROOT = Path(__file__).parents[1]
COMMITTED = sorted((ROOT / "figures").glob("*.tex"))
PAGE = 6.5 * 72  # points of which an inch has 72


def wide(methods=("SFSA", "mine"), rows=2, text="90.00⁺ (1.00)", axes=("signal", "n")):
    index = pd.MultiIndex.from_tuples([("strong", 1000 * i) for i in range(rows)], names=axes)
    columns = pd.MultiIndex.from_product([methods, ["ours", "paper"]], names=["", ""])
    return pd.DataFrame(text, index=index, columns=columns)


def tabulars(text):
    """The rows of each tabular, each a list of (text, columns that it spans)."""
    found = []
    for body in re.findall(r"\\begin\{tabular\}.*?\n(.*?)\\end\{tabular\}", text, re.S):
        body = re.sub(
            r"\\(toprule|midrule|bottomrule|addlinespace|cmidrule\(lr\)\{[\d-]+\})", "", body
        )
        rows = [row for row in re.split(r" \\\\\n?", body) if row.strip()]
        found.append([[cell_of(cell) for cell in re.split(r"(?<!\\)&", row)] for row in rows])
    return found


def cell_of(cell):
    span = re.fullmatch(r"\s*\\multicolumn\{(\d+)\}\{c\}\{(.*)\}\s*", cell)
    return (span[2], int(span[1])) if span else (cell.strip(), 1)


# -------------------------------------------------- what is written


def test_a_table_is_booktabs_with_caption_label_and_preamble():
    text = latex.written({"Doe (2027), Table 1: Detection rate (%)": wide()}, "doe_table_1")
    environments = re.findall(r"\\(begin|end)\{(\w+)\}", text)
    assert environments == [
        ("begin", "table"), ("begin", "tabular"), ("end", "tabular"), ("end", "table"),
    ]  # fmt: skip
    assert text.startswith("% In the preamble: \\usepackage{booktabs}.")
    assert r"\caption{Doe (2027), Table 1: Detection rate (\%).}" in text
    assert text.count(r"\label{tab:doe_table_1}") == 1
    assert text.count("{") == text.count("}") and r"\hline" not in text
    (rows,) = tabulars(text)
    assert {sum(span for _, span in row) for row in rows} == {6}
    assert rows[0] == [("", 1), ("", 1), ("SFSA", 2), ("mine", 2)]
    assert rows[1] == [(name, 1) for name in ("Signal", "$n$", *["ours", "paper"] * 2)]
    cells = [("90.00$^{+}$ (1.00)", 1)] * 4
    assert rows[2:] == [[("strong", 1), ("0", 1), *cells], [("", 1), ("1,000", 1), *cells]]


def test_a_table_of_one_level_has_one_line_of_headings():
    flat = pd.DataFrame({"k = 10": ["1"], "any k": ["2"]}, index=pd.Index(["SFSA"], name="method"))
    (rows,) = tabulars(latex.written({"one": flat}, "it"))
    assert rows == [
        [("Method", 1), ("k = 10", 1), ("any k", 1)],
        [("SFSA", 1), ("1", 1), ("2", 1)],
    ]


def test_several_tables_have_labels_of_their_own():
    text = latex.written({"one": wide(), "two": wide()}, "it")
    assert re.findall(r"\\caption\{(\w+)\.\}", text) == ["one", "two"]
    assert re.findall(r"\\label\{(.*?)\}", text) == ["tab:it:1", "tab:it:2"]


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("my_method", r"my\_method"),
        ("A&B", r"A\&B"),
        ("100%", r"100\%"),
        ("#1", r"\#1"),
        ("a$b", r"a\$b"),
        ("a\\b", r"a\textbackslash{}b"),
        ("a^b", r"a\textasciicircum{}b"),
        ("SGD, l1", r"SGD, $\ell_1$"),
        ("l1-ARDA, nl2", r"$\ell_1$-ARDA, nl2"),
        ("a~b", r"a\textasciitilde{}b"),
        ("a<b", "a$<$b"),
        ("±: a", r"$\pm$: a"),
        ("55.0⁺ (0.1)", "55.0$^{+}$ (0.1)"),
        ("55.0⁽⁺⁾", "55.0$^{(+)}$"),
        ("˜ unresolved", r"$^{\sim}$~unresolved"),
    ],
)
def test_names_and_marks_are_shown_as_they_are(name, written):
    assert latex.escaped(name) == written
    text = latex.written({name: wide([name, "b"], text=name, axes=(name, "n"))}, "it")
    assert text.count(written) >= 4, "caption, method, axis, cells"


def test_a_wide_table_is_split_between_methods():
    methods = [f"method {i}" for i in range(9)]
    text = latex.written({"one": wide(methods)}, "it")
    parts = tabulars(text)
    assert len(parts) > 1 and text.count(r"\begin{table}") == 1
    assert [cell for part in parts for cell, span in part[0] if span == 2] == methods
    assert all(row[:2] == [("strong", 1), ("0", 1)] for part in parts for row in part[2:3])


def test_a_long_table_goes_on_on_the_next_page():
    text = latex.written({"one": wide(rows=100)}, "it")
    captions = re.findall(r"\\caption\{(.*?)\}", text)
    assert captions[0] == "one." and set(captions[1:]) == {"one. Continued."}
    assert sum(len(rows) - 2 for rows in tabulars(text)) == 100


def test_what_is_wider_than_a_page_is_refused():
    with pytest.raises(ValueError, match=r"wider than a page .*'SFSA'"):
        latex.written({"one": wide(text="long" * 50)}, "it")


def test_long_words_are_folded_and_what_a_part_lacks_is_left_out():
    rows = pd.MultiIndex.from_product(
        [["A", "Doe, Roe and Moe & others (2027)!"], ["paper", "ours"]]
    )
    table = pd.DataFrame({f"kind {i}": ["a" * 30, "", "b", ""] for i in range(6)}, index=rows)
    table.loc[("A", "ours"), "kind 0"] = "c"
    text = latex.written({"one": table}, "it")
    first, *others = tabulars(text)
    names = [[row[0][0] for row in part[1:]] for part in (first, *others)]
    folded = ["Doe, Roe and Moe", r"\& others (2027)!"]
    assert others and names == [["A", "", *folded]] + [["A", *folded]] * len(others)
    assert text.count(r"\addlinespace") == 1, "between what has several rows"
    assert latex._lines("O(max(n^2 log(n) log(p), k p) + d)") == [
        "O(max(n^2 log(n) log(p),",
        "k p) + d)",
    ]


@pytest.mark.parametrize(
    ("words", "tex"),
    [
        ("O(n p)", "$O(n p)$"),
        ("n^1.21 p^-1.29", "$n^{1.21} p^{-1.29}$"),
        ("n^1.21±0.10 p^1.00", r"$n^{1.21\pm 0.10} p^{1.00}$"),
        ("O(n^(alpha-1))", r"$O(n^{\alpha-1})$"),
        ("O(eps^-2)", r"$O(\epsilon^{-2})$"),
        ("O(n log(||A||_2))", r"$O(n \log\|A\|_2)$"),
        ("O(log(n)/n)", r"$O(\log(n)/n)$"),
        ("O(nnz(A))", r"$O(\mathrm{nnz}(A))$"),
        ("2+eps", r"$2+\epsilon$"),
        ("n^1.21⁺", r"$n^{1.21}$\,$^{+}$"),
    ],
)
def test_formulas_are_set_as_such(words, tex):
    assert latex.escaped(words) == tex


@pytest.mark.parametrize(
    "name",
    ["No", "Slow", "[2,5]", "eps", "log", "90.00 (1.00)", "n^2^3", "O(a__b)", "O(n%)", "SFSA"],
)
def test_names_are_no_formulas(name):
    assert not formulas.is_formula(name)


def test_all_formulas_of_the_papers_can_be_set():
    """By matplotlib, which is there where no TeX is."""
    parse = MathTextParser("path").parse
    shown = []
    for file in sorted((ROOT / "config/published").glob("*_table_*1.csv")):
        words = pd.read_csv(file, dtype=str)["value"].dropna()
        shown += [formulas.typeset(text) for text in words if formulas.is_formula(text)]
    assert len(shown) > 35 and not re.search(r"\^\(|(?<!\\)eps", " ".join(shown))
    for text in shown:
        parse(text)


# -------------------------------------------------- what is committed


def width(text):
    """Width in points, at 9 points, of what TeX sets in Computer Modern, from its metrics at 10."""
    text = re.sub(r"(?:\\,)?\$\^\{\\?(.*?)\}\$", lambda mark: mark[1][:1], text)
    # What is raised is smaller, at most four fifths.
    text = re.sub(r"\^\{(.*?)\}", lambda power: power[1][: -(-4 * len(power[1]) // 5)], text)
    text = re.sub(r"\\(epsilon|delta|alpha|pm )", "+", text).replace(r"\|", "|")
    text = re.sub(r"\\(log|min|max|mathrm)|\{(nnz)\}", lambda name: name[1] or name[2], text)
    text = text.replace("mathrm", "").replace(r"\ell_", "l")
    text = text.replace(r"\textasciicircum{}", "^")
    text = re.sub(r"\\([&%$#_{}])", r"\1", text).replace("$", "").replace("~", " ")
    lines = re.sub(r"\\shortstack\{(.*)\}", r"\1", text).split(r"\\")
    assert "\\" not in "".join(lines), text
    font = FontProperties(fname=Path(matplotlib.get_data_path(), "fonts/ttf/cmr10.ttf"), size=9.3)
    sizes = [TextToPath().get_text_width_height_descent(line, font, False)[0] for line in lines]
    return max(sizes, default=0)


def table_width(rows):
    """Of the single columns; a heading over several counts where it is wider than these."""
    flat = [[c for cell, span in row for c in [cell if span == 1 else ""] * span] for row in rows]
    columns = [max(map(width, own)) for own in zip_longest(*flat, fillvalue="")]
    more, at = 0.0, 0
    for cell, span in rows[0]:
        if span > 1:
            more += max(0.0, width(cell) - sum(columns[at : at + span]) - 6 * (span - 1))
        at += span
    between = sum((10 if cell else 6) + 6 * (span - 1) for cell, span in rows[0]) - 6
    return sum(columns) + more + between


@pytest.mark.parametrize("file", COMMITTED, ids=lambda file: file.stem)
def test_committed_tables_fit_a_page_and_say_what_they_show(file):
    text = file.read_text(encoding="utf-8")
    tables = tabulars(text)
    assert tables and text.count(r"\begin{table}") == text.count(r"\label{")
    for rows in tables:
        assert table_width(rows) < PAGE * 1.01  # as the metrics are those at 10 points
        cells = list(zip(*(row for row in rows if len(row) == len(rows[-1])), strict=True))
        empty = [column for column in cells[1:] if {cell for cell, _ in column[1:]} <= {"--", ""}]
        assert not empty and "nan" not in text
    marks = {mark for rows in tables for row in rows for c, _ in row for mark in MARK.findall(c)}
    captions = " ".join(re.findall(r"\\caption\{(.*)\}", text))
    assert marks <= set(MARK.findall(captions))


MARK = re.compile(r"(?:\\,)?\$\^\{(.*?)\}\$")
ORDERS = ("barda_table_1", "dissertation_table_3_1", "ofs_table_1")


@pytest.mark.parametrize("name", ORDERS)
def test_orders_of_growth_stand_below_the_papers_as_formulas(name):
    text = (ROOT / f"figures/{name}.tex").read_text(encoding="utf-8")
    assert not re.search(r"textasciicircum|(?<!\\)eps|\|\||\$\$\|", text)
    for rows in tabulars(text):
        assert all(any(cell for cell, _ in row) for row in rows), "no row is empty"
    table = pd.read_csv(ROOT / f"figures/{name}.csv")
    shown = [cell for part in tabulars(text) for row in part for cell, _ in row]
    for words in table["measured"].dropna():
        for own in words.split("; "):
            ours = formulas.typeset(own.rpartition(": ")[2])
            assert any(cell.startswith(ours) for cell in shown), own
    for words in table["paper"].dropna():
        first = latex.escaped(latex._lines(words)[0])
        assert any(cell.startswith(first) for cell in shown)

    # Wider by their intervals, they are cut to parts that all say something.
    power = r"(\^-?\d\.\d\d)(±\d\.\d\d)?"
    table["measured"] = table["measured"].str.replace(power, r"\1±0.12", regex=True)
    caption, wide = orders.caption("it", table), orders.layout(table)
    text = latex.written({caption: wide}, "it")
    assert "±: half of the 95 % interval" in caption and r"\pm 0.12}" in text
    for rows in tabulars(text):
        assert table_width(rows) < PAGE * 1.01
        told = [row[2:] for row in rows if row[1][0]]  # others are the rest of a folded name
        assert all(any(cell for cell, _ in row) for row in told)


def test_committed_tables_are_those_of_the_committed_numbers(tmp_path, monkeypatch):
    shutil.copytree(
        ROOT / "figures", tmp_path / "figures", ignore=shutil.ignore_patterns("*.svg", "*.pdf")
    )
    monkeypatch.chdir(tmp_path)
    work = project.committed(ROOT)
    made = {file for name in work.entries for file in latex.remake(work, name)}
    # Only its notebook lays it out: the CSV file has other columns.
    other = {"untuned_one_pass.tex"}
    assert {Path(file).name for file in made} == {file.name for file in COMMITTED} - other
    for file in COMMITTED:
        assert Path("figures", file.name).read_bytes() == file.read_bytes(), file.name


def test_the_command_writes_those_of_the_committed_scale(tmp_path, monkeypatch, capsys):
    """From any folder of the checkout; `figures/<scale>/` of the usual scale is another matter."""
    shipped.copy(tmp_path, "config", "notebooks", "benchmarks")
    shipped.at_smoke(tmp_path)
    for folder, stems in (("figures", ["sfsa_table_1"]), ("figures/smoke", ["sfsa_table_2"])):
        (tmp_path / folder).mkdir()
        for stem in stems:
            shutil.copy(ROOT / f"figures/{stem}.csv", tmp_path / folder)
    monkeypatch.chdir(tmp_path / "notebooks")
    latex.main()
    assert capsys.readouterr().out.splitlines() == ["figures/sfsa_table_1.tex"]
    assert [file.name for file in tmp_path.rglob("*.tex")] == ["sfsa_table_1.tex"]
    made = (tmp_path / "figures/sfsa_table_1.tex").read_bytes()
    assert made == (ROOT / "figures/sfsa_table_1.tex").read_bytes()


@pytest.mark.skipif(not shutil.which("pdflatex"), reason="no pdflatex on this machine")
def test_committed_tables_compile_without_an_overfull_box(tmp_path):
    sizes = r"\textwidth6.5in \textheight9in \oddsidemargin0in \topmargin-.5in \extrafloats{200}"
    head = r"\documentclass[10pt]{article}\usepackage{booktabs}" + sizes + r"\begin{document}"
    tables = [rf"\input{{{file}}}\clearpage" for file in COMMITTED]
    (tmp_path / "all.tex").write_text("\n".join([head, *tables, r"\end{document}"]))
    words = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "all.tex"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, errors="replace")
    assert done.returncode == 0, done.stdout[-2000:]
    assert "Overfull" not in done.stdout and "too large" not in done.stdout


def test_a_table_made_from_its_csv_is_the_one_made_before():
    """A CSV file has ten digits, which round to others than all of them may."""
    work = project.committed(ROOT)
    table = pd.read_csv(ROOT / "figures/dissertation_table_5_5.csv")
    exact = table.assign(ours=1.0005 + 1e-15)
    saved = table.assign(ours=float(f"{1.0005 + 1e-15:.10g}"))
    made = [latex.cells(work, "dissertation_table_5_5", one) for one in (exact, saved)]
    assert [wide.to_dict() for wide in made[0].values()] == [w.to_dict() for w in made[1].values()]
