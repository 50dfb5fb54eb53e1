"""How figures look, what they draw, and that equal figures are equal files."""

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import matplotlib
import matplotlib.pyplot as plt
import pandas as pd
import pytest
from matplotlib.text import Text

from ofslib.reproduction import looks, plots, project

ROOT = Path(__file__).parents[1]
matplotlib.use("agg")


def test_methods_shown_together_are_told_apart():
    work = project.load(ROOT)
    for entry in work.entries.values():
        if entry.spec["form"] == "table":
            continue
        # What has a grid of its own is drawn in a panel of its own.
        grids = {str(method.get("sweep")) for method in entry.spec["methods"].values()}
        for grid in grids:
            together = [m for m, s in entry.spec["methods"].items() if str(s.get("sweep")) == grid]
            # Of these alone there are curves.
            curves = entry.spec["parameters"].get("shown", together)
            together = [method for method in together if method in curves]
            shown = [looks.look(method) for method in together]
            for sign in ("color", "marker"):
                assert len({look[sign] for look in shown}) == len(shown), entry.name


def test_methods_come_in_the_order_of_the_papers():
    shown = looks.in_order(["mine", "SGDT", "B-ARDA", "SFSA", "another", "SFSA"])
    assert shown == ["SFSA", "SGDT", "B-ARDA", "another", "mine"]


DRAW = """
import sys
import matplotlib.pyplot as plt, pandas as pd
from ofslib.reproduction import looks, plots
looks.style()
fig, axes = plt.subplots(1, 2, figsize=(looks.PAGE, 2))
rows = [(m, k, k * w, 0.1) for w, m in enumerate(["SFSA", "mine", "OFS"], 1) for k in (10, 50, 200)]
summary = pd.DataFrame(rows, columns=["method", "k", "ours", "se"])
plots.curves(axes[0], summary, "k")
plots.budget_axis(axes[0])
axes[0].set_ylabel("Features kept, $M_t$ (%)")
plots.empty_panel(axes[1], "not fetched (no network)")
plots.shared_legend(fig, axes)
plots.save_figure(fig, sys.argv[1])
print([looks.look(method) for method in ("mine", "SFSA")])
"""


def digests(stem):
    return [
        hashlib.sha256(Path(f"{stem}.{end}").read_bytes()).hexdigest() for end in ("svg", "pdf")
    ]


def test_equal_figures_are_equal_bytes(tmp_path):
    printed = set()
    for seed in ("1", "2"):
        env = {**os.environ, "PYTHONHASHSEED": seed, "MPLBACKEND": "agg"}
        words = [sys.executable, "-c", DRAW, str(tmp_path / f"made_{seed}")]
        printed.add(subprocess.run(words, env=env, stdout=subprocess.PIPE, check=True).stdout)
    assert len(printed) == 1, "a method looks different in another process"
    assert digests(tmp_path / "made_1") == digests(tmp_path / "made_2")
    svg = (tmp_path / "made_1.svg").read_text(encoding="utf-8")
    assert svg.startswith("<?xml") and svg.rstrip().endswith("</svg>")
    assert "<dc:date>" not in svg
    pdf = (tmp_path / "made_1.pdf").read_bytes()
    assert pdf.startswith(b"%PDF") and b"CreationDate" not in pdf


@pytest.mark.parametrize("label", ["a$b", "$a$b", "$x^$", "$_$", r"50$ or $\frac{1$", "$$"])
def test_a_name_with_a_dollar_is_shown_as_it_is(tmp_path, label):
    """matplotlib takes what stands between two of them for a formula, and may not understand it."""
    rows = [(label, k, float(k), 1.0) for k in (10, 20)]
    summary = pd.DataFrame(rows, columns=["method", "k", "ours", "se"])
    figure, drawn = plots.data_panels({"a": label, "b": label}, {"b": label}, "Accuracy")
    plots.curves(drawn["a"], summary, "k")
    plots.shared_legend(figure, figure.axes)
    plots.save_figure(figure, str(tmp_path / "one"))
    (legend,) = figure.legends[0].get_texts()
    parsed = [legend, drawn["a"].title, figure.axes[1].texts[0]]
    assert [text._preprocess_math(text.get_text()) for text in parsed] == [(label, False)] * 3
    plt.close(figure)


def test_so_are_the_names_of_what_changes():
    label = r"$\frac{1$"
    names = {"reading": label, "change": label, "method": label}
    rates = pd.DataFrame([{**names, "t": t, "ours": 50.0, "se": 1.0} for t in (1, 2, 3)])
    recovery = pd.DataFrame([{**names, "t": 2, "rows to recover": 80.0}])
    figure = plots.recovery_figure(rates, recovery, {(label, label): ""}, 50, 100)
    figure.canvas.draw()
    shown = [text for text in figure.findobj(Text) if "$" in text.get_text()]
    assert {text.get_text().count(label.replace("$", r"\$")) for text in shown} == {1, 2}
    assert not any(text._preprocess_math(text.get_text())[1] for text in shown)
    plt.close(figure)


def test_curves_draw_means_and_errors():
    rows = [(m, k, 10.0 * k + w, 1.0) for w, m in enumerate(["OFS", "mine"]) for k in (30, 10, 20)]
    summary = pd.DataFrame(rows, columns=["method", "k", "ours", "se"])
    fig, ax = plt.subplots()
    plots.curves(ax, summary, "k")
    lines = {line.get_label(): line.get_xydata().tolist() for line in ax.lines}
    assert lines["OFS"] == [[10, 100], [20, 200], [30, 300]]
    assert lines["mine"] == [[10, 101], [20, 201], [30, 301]]
    heights = ax.collections[0].get_paths()[0].vertices[:, 1]
    assert heights.min() == 99 and heights.max() == 301
    plots.shared_legend(fig, ax)
    assert [text.get_text() for text in fig.legends[0].get_texts()] == ["OFS", "mine"]
    plt.close(fig)
