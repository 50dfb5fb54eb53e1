"""How figures look, what they draw, and that equal figures are equal files."""

from pathlib import Path

import matplotlib
import matplotlib.pyplot as plt
import pandas as pd
import pytest
import shipped

from ofslib.reproduction import looks, plots, tables

matplotlib.use("agg")
NAN, INF = float("nan"), float("inf")


@pytest.fixture(autouse=True)
def as_in_print():
    with plt.rc_context():
        looks.style()
        yield
    plt.close("all")


def test_methods_shown_together_are_told_apart_and_a_name_is_that_of_one_algorithm():
    """Zhai et al. and Wang et al. both have an OFS."""
    meant = {}
    for entry in shipped.load().entries.values():
        given, methods = entry.spec["parameters"], entry.spec["methods"]
        if entry.spec["form"] != "figure":
            continue
        labels = {"OS by scans": "OS"} | given.get("labels", {})
        shown = {labels.get(m, m): methods[m] for m in given.get("shown", methods)}
        for sign in ("color", "marker"):
            # Of more methods than colours one line each has its name beside it.
            least = min(len(shown), 10) if entry.name == "growth_of_costs" else len(shown)
            assert len({looks.look(name)[sign] for name in shown}) >= least, entry.name
        for label, spec in shown.items():
            kind = spec["class"].rpartition(":")[2].removesuffix("Classifier")
            kind = kind.removesuffix("Regressor")
            assert meant.setdefault(label, kind) == kind, f"{entry.name}: {label}"


def summary_of(*rows, columns=("method", "k", "ours"), **more):
    return pd.DataFrame(rows, columns=columns).assign(**({"se": 1.0} | more))


@pytest.mark.parametrize("label", ["a$b", r"50$ or $\frac{1$"])
def test_a_name_with_a_dollar_is_shown_as_it_is_and_equal_figures_are_equal_bytes(tmp_path, label):
    """matplotlib takes what stands between two of them for a formula, and may not understand it."""
    for name in ("one", "two"):
        figure, drawn = plots.data_panels({"a": label, "b": label}, {"b": label}, "Accuracy")
        plots.curves(drawn["a"], summary_of((label, 10, 10.0), (label, 20, 20.0)), "k")
        plots.budget_axis(drawn["a"])
        plots.shared_legend(figure, figure.axes)
        plots.save_figure(figure, str(tmp_path / name))
    (legend,) = figure.legends[0].get_texts()
    assert figure.get_supxlabel() == f"Not shown: {label}: {label}.".replace("$", r"\$")
    for text in (legend, drawn["a"].title):
        assert text._preprocess_math(text.get_text()) == (label, False)
    for end in (".svg", ".pdf"):
        one, two = (Path(tmp_path, name + end).read_bytes() for name in ("one", "two"))
        assert one == two and b"CreationDate" not in one and b"<dc:date>" not in one


def test_curves_draw_means_and_errors():
    rows = [(m, k, 10.0 * k + w) for w, m in enumerate(["OFS", "mine"]) for k in (30, 10, 20)]
    _, ax = plt.subplots()
    plots.curves(ax, summary_of(*rows), "k")
    lines = {line.get_label(): line.get_xydata().tolist() for line in ax.lines}
    assert lines["OFS"] == [[10, 100], [20, 200], [30, 300]]
    assert lines["mine"] == [[10, 101], [20, 201], [30, 301]]
    heights = ax.collections[0].get_paths()[0].vertices[:, 1]
    assert heights.min() == 99 and heights.max() == 301


def test_points_of_runs_that_keep_nothing_or_too_much_are_open():
    rows = [("a", 10, 50.0, 2, 0), ("a", 20, 60.0, 0, 0), ("b", 10, 70.0, 0, 1)]
    columns = ["method", "k", "ours", "empty", "beyond"]
    figure, ax = plt.subplots()
    plots.curves(ax, summary_of(*rows, ("b", 20, 80.0, 0, 0), columns=columns), "k")
    plots.shared_legend(figure, ax)
    shown = [
        (line.get_color(), line.get_marker(), line.get_xydata().tolist())
        for line in ax.lines
        if line.get_markerfacecolor() == "white"
    ]
    for method, point in {"a": [10, 50], "b": [10, 70]}.items():
        style = looks.look(method)
        assert (style["color"], style["marker"], [point]) in shown
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["a", "b", plots.ODD]


@pytest.mark.parametrize("missing", [["a"], ["a", "b"]])
def test_what_is_missing_is_a_line_of_text(missing):
    figure, axes = plots.data_panels({"a": "A", "b": "B"}, dict.fromkeys(missing, "lost"), "y")
    assert set(axes) == {"a", "b"} - set(missing) and len(figure.axes) == len(axes)
    assert figure.get_supxlabel() == f"Not shown: {', '.join(missing).upper()}: lost."


# -------------------------------------------------- bounds


def bounds_of(heights, form, method="T", note=None):
    """The axes with the curve of runs {x: height or heights of the runs}."""
    _, ax = plt.subplots()
    rows = [
        (method, x, float(value))
        for x, several in heights.items()
        for value in (several if isinstance(several, list) else [several])
    ]
    results = pd.DataFrame(rows, columns=["method", "x", "value"])
    results["note"] = pd.Series(note, results.index, dtype=object)
    plots.bound_curves(ax, results, form)
    return ax, results


def marks_of(ax, sign):
    """Where a panel has these marks on its edges."""
    lines = [line for line in ax.lines if line.get_marker() == sign and len(line.get_xydata())]
    return [line.get_xydata().tolist() for line in lines]


def test_what_is_not_above_0_is_marked_on_the_edge_of_a_logarithmic_panel():
    heights = {1: 0.5, 10: -1.0, 100: 0.0, 1000: 0.2}
    ax, _ = bounds_of(heights, {})
    assert ax.lines[0].get_ydata() == pytest.approx([0.5, NAN, NAN, 0.2], nan_ok=True)
    assert marks_of(ax, "v") == [[[10, 0], [100, 0]]]
    ax, _ = bounds_of(heights, {"height": "linear"})
    assert ax.lines[-1].get_ydata().tolist() == [*heights.values()] and not marks_of(ax, "v")


def test_what_is_above_a_panel_is_marked_on_its_upper_edge():
    rising = {x: x for x in (1.0, 2.0, 4.0, 5.0)}
    ax, results = bounds_of(rising, {"highest": 3})
    assert marks_of(ax, "^") == [[[4, 1], [5, 1]]]
    assert ax.lines[1].get_markerfacecolor() == "white"
    assert not marks_of(bounds_of(rising, {"highest": 5})[0], "^")
    both = pd.concat([results, results.assign(method="U")])
    plots.bound_curves(ax, both, {"highest": 3})  # the second below the first
    assert marks_of(ax, "^")[-1] == [[4, pytest.approx(0.93)], [5, pytest.approx(0.93)]]


def test_what_half_of_the_runs_do_not_find_has_no_median():
    """By what is left, the method that finds the features once in ten runs would be the best."""
    found = {1: 10, 2: 6, 3: 5, 4: 1, 5: 0}  # of ten runs
    runs = {x: [1.0] * n + [NAN] * (10 - n) for x, n in found.items()}
    ax, results = bounds_of(runs, {}, note="does not apply: not found in half of the runs up to 4")
    assert ax.lines[0].get_xydata().tolist() == [[1, 1], [2, 1]]
    assert marks_of(ax, "^") == [[[3, 1], [4, 1], [5, 1]]]
    heights = tables.summarise(tables.never_found(results)).groupby("x")["median"].first()
    assert heights.to_dict() == {1: 1, 2: 1, 3: INF, 4: INF, 5: INF}
    ax, _ = bounds_of(runs, {}, note="does not apply: no law")
    assert ax.lines[0].get_xydata().tolist() == [[1, 1], [2, 1], [3, 1], [4, 1]]


def test_a_point_that_a_tenth_of_the_runs_do_not_reach_is_open_and_has_a_lower_end():
    """Without any bar it would look like the most certain one."""
    runs = {
        x: [1.0 + r / 10 if r < n else NAN for r in range(10)] for x, n in {1: 10, 2: 8}.items()
    }
    ax, _ = bounds_of(runs, {"height": "linear"}, "OLSth", "not found in half of the runs")
    ((bars,),) = (container[2] for container in ax.containers)
    ends = [segment[:, 1].tolist() for segment in bars.get_segments()]
    assert ends == [pytest.approx([1.09, 1.81]), pytest.approx([1.09, 1.45])]
    open_ones = [line for line in ax.lines if line.get_markerfacecolor() == "white"]
    shown = [point for line in open_ones for point in line.get_xydata().tolist()]
    assert [point for point in shown if point[1] == point[1]] == [pytest.approx([2, 1.45])]
