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
import shipped

from ofslib.reproduction import looks, plots, tables

ROOT = Path(__file__).parents[1]
matplotlib.use("agg")
NAN, INF = float("nan"), float("inf")


@pytest.fixture(autouse=True)
def as_in_print():
    with plt.rc_context():
        looks.style()
        yield


def drawn(entry):
    """{label in a figure: the method's class}."""
    labels = {"OS by scans": "OS"} | entry.spec["parameters"].get("labels", {})
    methods = entry.spec["methods"]
    methods = {m: methods[m] for m in entry.spec["parameters"].get("shown", methods)}
    return {labels.get(m, m): s["class"].rpartition(":")[2] for m, s in methods.items()}


FIGURES = [e for e in shipped.load().entries.values() if e.spec["form"] == "figure"]


def test_methods_shown_together_are_told_apart():
    for entry in FIGURES:
        shown = [looks.look(method) for method in drawn(entry)]
        for sign in ("color", "marker"):
            # Of more methods than colours one line each has its name beside it.
            least = min(len(shown), 10) if entry.name == "growth_of_costs" else len(shown)
            assert len({look[sign] for look in shown}) >= least, entry.name


def test_a_name_is_that_of_one_algorithm():
    """Zhai et al. and Wang et al. both have an OFS."""
    meant = {}
    for entry in FIGURES:
        for label, cls in drawn(entry).items():
            kind = cls.removesuffix("Classifier").removesuffix("Regressor")
            assert meant.setdefault(label, kind) == kind, f"{entry.name}: {label}"


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
plots.note(fig, {"b": "not fetched (no network)"})
axes[1].plot([1, 2])
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
    parsed = [legend, drawn["a"].title]
    assert figure.get_supxlabel() == f"Not shown: {label}: {label}.".replace("$", r"\$")
    assert [text._preprocess_math(text.get_text()) for text in parsed] == [(label, False)] * 2
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


def test_points_of_runs_that_keep_nothing_or_too_much_are_open():
    rows = [
        ("a", 10, 50.0, 2, 0),
        ("a", 20, 60.0, 0, 0),
        ("b", 10, 70.0, 0, 1),
        ("b", 20, 80.0, 0, 0),
    ]
    summary = pd.DataFrame(rows, columns=["method", "k", "ours", "empty", "beyond"]).assign(se=1.0)
    figure, ax = plt.subplots()
    plots.curves(ax, summary, "k")
    plots.shared_legend(figure, ax)
    open_ones = [line for line in ax.lines if line.get_markerfacecolor() == "white"]
    shown = [(one.get_color(), one.get_marker(), one.get_xydata().tolist()) for one in open_ones]
    styles = [looks.look(method) for method in "ab"]
    points = [[[10, 50]], [[10, 70]]]
    for style, at in zip(styles, points, strict=True):
        assert (style["color"], style["marker"], at) in shown
    said = [text.get_text() for text in figure.legends[0].get_texts()]
    assert said == ["a", "b", "some run selects nothing or too many"]
    plt.close(figure)


# -------------------------------------------------- bounds and missing parts


def test_what_is_not_above_0_is_marked_on_the_edge_of_a_logarithmic_panel():
    heights = {1: 0.5, 10: -1.0, 100: 0.0, 1000: 0.2}
    rows = [("T", x, "printed", r, h) for x, h in heights.items() for r in range(3)]
    results = pd.DataFrame(rows, columns=["panel", "x", "method", "replicate", "value"])
    results["note"] = None
    fig, ax = plt.subplots()
    plots.bound_curves(ax, results, {})
    line, edge, _ = ax.lines
    assert line.get_xydata()[:, 1].tolist() == pytest.approx([0.5, NAN, NAN, 0.2], nan_ok=True)
    assert edge.get_xydata().tolist() == [[10, 0], [100, 0]] and edge.get_marker() == "v"
    plots.bound_curves(ax, results, {"height": "linear"})
    assert ax.lines[-1].get_xydata()[:, 1].tolist() == list(heights.values())
    plt.close(fig)


def test_what_is_above_a_panel_is_marked_on_its_upper_edge():
    rows = [(method, x, x) for method in "ab" for x in (1.0, 2.0, 4.0, 5.0)]
    results = pd.DataFrame(rows, columns=["method", "x", "value"]).assign(note=None)
    fig, ax = plt.subplots()
    plots.bound_curves(ax, results, {"highest": 3})
    marks = [line for line in ax.lines if line.get_marker() == "^" and len(line.get_xydata())]
    assert [mark.get_markerfacecolor() for mark in marks] == ["white", "white"]
    assert marks[0].get_xydata().tolist() == [[4, 1], [5, 1]]
    assert marks[1].get_xydata().tolist() == [[4, pytest.approx(0.93)], [5, pytest.approx(0.93)]]
    plt.close(fig)
    fig, ax = plt.subplots()
    plots.bound_curves(ax, results, {"highest": 5})
    assert not [line for line in ax.lines if line.get_marker() == "^"]
    plt.close(fig)


def test_what_half_of_the_runs_do_not_find_has_no_median():
    """By what is left, the method that finds the features once in ten runs would be the best."""
    never, law = "does not apply: not found in half of the runs up to 4", "does not apply: no law"
    found = {1: 10, 2: 6, 3: 5, 4: 1, 5: 0}  # of ten runs
    rows = [(x, r, 1.0 if r < n else NAN, never) for x, n in found.items() for r in range(10)]
    rows += [(6, r, NAN, law) for r in range(10)]
    results = pd.DataFrame(rows, columns=["x", "replicate", "value", "note"]).assign(method="a")
    fig, ax = plt.subplots()
    plots.bound_curves(ax, results, {})
    line, edge, _ = ax.lines
    assert line.get_xydata().tolist() == [[1, 1], [2, 1]]
    assert edge.get_xydata().tolist() == [[3, 1], [4, 1], [5, 1]] and edge.get_marker() == "^"
    heights = tables.summarise(tables.never_found(results)).groupby("x")["median"].first()
    assert heights.to_dict() == {1: 1, 2: 1, 3: INF, 4: INF, 5: INF}
    plt.close(fig)


def test_a_point_that_a_tenth_of_the_runs_do_not_reach_is_open_and_has_a_lower_end():
    """Without any bar it would look like the most certain one."""
    never = "not found in half of the runs up to 4"
    found = {1: 10, 2: 8}  # of ten runs
    rows = [
        ("OLSth", x, r, 1.0 + r / 10 if r < n else NAN, never)
        for x, n in found.items()
        for r in range(10)
    ]
    results = pd.DataFrame(rows, columns=["method", "x", "replicate", "value", "note"])
    fig, ax = plt.subplots()
    plots.bound_curves(ax, results, {"height": "linear"})
    (points,) = ax.containers
    (bars,) = points[2]
    ends = [segment[:, 1].tolist() for segment in bars.get_segments()]
    assert ends == [pytest.approx([1.09, 1.81]), pytest.approx([1.09, 1.45])]
    open_ones = [line for line in ax.lines if line.get_markerfacecolor() == "white"]
    shown = [point for line in open_ones for point in line.get_xydata().tolist()]
    assert [point for point in shown if point[1] == point[1]] == [pytest.approx([2, 1.45])]
    plt.close(fig)


def test_a_panel_shows_the_curves_that_are_given_and_the_ratio_of_two():
    rows = [
        (panel, x, method, height * x)
        for panel in ("Theorem", "Other")
        for method, height in (("a", 1.0), ("b", 2.0), ("c", 3.0))
        for x in (1.0, 2.0)
    ]
    results = pd.DataFrame(rows, columns=["panel", "x", "method", "value"]).assign(note="")
    verdicts = pd.DataFrame(columns=["panel", "x", "method", "verdict"])
    form = {"x": "x", "y": "y", "curves": {"a": "a", "b": "bound"}, "ratio": ["a", "bound"]}
    fig = plots.bound_panels(results, verdicts, {"Theorem": form})
    (ax,) = fig.axes
    assert set(ax.get_legend_handles_labels()[1]) == {"a", "bound"}
    assert [text.get_text() for text in ax.texts] == ["a / bound: 0.50 to 0.50"]
    plt.close(fig)


def test_a_stretch_where_a_bound_is_violated_is_one_area():
    columns = ["method", "x", "verdict"]
    words = ["is violated", "is violated", "holds", "is violated"]
    rows = [("printed", 10.0**i, word) for i, word in enumerate(words)]
    fig, ax = plt.subplots()
    plots.shade_bounds(ax, pd.DataFrame(rows, columns=columns))
    areas = [patch.get_extents().transformed(ax.transData.inverted()) for patch in ax.patches]
    edges = [(area.x0, area.x1) for area in areas]
    assert edges == [pytest.approx((1, 10**1.5)), pytest.approx((10**2.5, 1000))]
    plt.close(fig)


@pytest.mark.parametrize("missing", [["a"], ["a", "b"]])
def test_what_is_missing_is_a_line_of_text(missing):
    figure, axes = plots.data_panels({"a": "A", "b": "B"}, dict.fromkeys(missing, "lost"), "y")
    assert set(axes) == {"a", "b"} - set(missing) and len(figure.axes) == len(axes)
    for ax in axes.values():
        ax.plot([1, 2])
    assert figure.get_supxlabel() == f"Not shown: {', '.join(missing).upper()}: lost."
    plt.close(figure)
