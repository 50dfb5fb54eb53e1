"""Results as figures."""

import io
import math
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.ticker import LogLocator, NullFormatter

from ofslib._files import write_whole
from ofslib.reproduction.claims import NO_BOUND
from ofslib.reproduction.looks import COLOURS, COLUMN, PAGE, TITLES, in_order, look, plain, shades

# -------------------------------------------------- figures and panels


def panels(n: int) -> tuple:
    """A figure of n panels, up to three a row, over the width of a page; the axes as a list."""
    columns = 2 if n == 4 else min(n, 3)
    rows = math.ceil(n / columns)
    width = PAGE if columns > 1 else COLUMN
    figure, axes = plt.subplots(rows, columns, figsize=(width, 0.3 + 1.75 * rows), squeeze=False)
    for ax in axes.flat[n:]:
        ax.remove()
    return figure, list(axes.flat[:n])


def data_panels(
    titles: Mapping[str, str], missing: Mapping[str, str], ylabel: str, xlabel: str = ""
) -> tuple:
    """A figure of a panel a data set; one that is missing has a panel that says why.

    Parameters
    ----------
    titles, missing : mapping
        Data set -> title of its panel, and -> why there is no result of it.
    ylabel, xlabel : str
        The former stands at the panels on the left only.

    Returns
    -------
    figure, dict
        Data set -> axes, without those that are missing.
    """
    figure, axes = panels(len(titles))
    drawn = {}
    for ax, (name, title) in zip(axes, titles.items(), strict=True):
        ax.set(title=plain(title), xlabel=xlabel)
        if ax.get_subplotspec().is_first_col():
            ax.set_ylabel(ylabel)
        if name in missing:
            empty_panel(ax, missing[name])
        else:
            drawn[name] = ax
    return figure, drawn


def empty_panel(ax, reason: str) -> None:
    """Say in the panel, in short, why there is nothing to see."""
    _say(ax, reason)
    ax.set(xticks=[], yticks=[])


def _say(ax, reason: str) -> None:
    text = textwrap.fill(textwrap.shorten(reason, 110, placeholder=" ..."), 34)
    ax.text(0.5, 0.5, plain(text), ha="center", va="center", transform=ax.transAxes, fontsize=6)


def budget_axis(ax) -> None:
    """Numbers of features on a logarithmic scale, written out."""
    ax.set_xscale("log")
    ax.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    ax.xaxis.set_major_formatter("{x:.0f}")
    ax.xaxis.set_minor_formatter(NullFormatter())


def shared_legend(figure, axes, columns: int | None = None) -> None:
    """One legend above all panels, of what any of them shows; None: in one line."""
    handles = {}
    for ax in np.ravel(axes):
        handles |= dict(zip(*reversed(ax.get_legend_handles_labels()), strict=True))
    if handles:
        figure.legend(
            handles.values(),
            handles.keys(),
            loc="outside upper center",
            ncols=columns or len(handles),
        )


def save_figure(figure, stem: str) -> None:
    """Write stem.svg and stem.pdf; equal figures give equal bytes."""
    for ending, metadata in ((".svg", {"Date": None}), (".pdf", {"CreationDate": None})):
        content = io.BytesIO()
        figure.savefig(content, format=ending[1:], metadata=metadata)
        write_whole(stem + ending, content.getvalue())


# -------------------------------------------------- curves


def mean_curve(ax, summary: pd.DataFrame, x: str, **style: Any) -> None:
    """Mean over the replicates of one method against x, one standard error shaded."""
    line = summary.sort_values(x)
    ax.plot(line[x], line["ours"], **style)
    _shade(ax, line[x], line["ours"] - line["se"], line["ours"] + line["se"], style["color"])


def curves(ax, summary: pd.DataFrame, x: str, markers: bool = True) -> None:
    """The `mean_curve` of each method.

    `markers`: whether the points are marked, too; not where they are many.
    """
    for method in in_order(summary["method"]):
        style = look(method) if markers else {"color": look(method)["color"]}
        mean_curve(ax, summary[summary["method"] == method], x, label=plain(method), **style)


def numbered_curves(ax, summary: pd.DataFrame, x: str) -> None:
    """The `curves` against numbers so few that each is written at the axis."""
    curves(ax, summary, x)
    ax.set_xticks(sorted(summary[x].unique()))


def mean_point(ax, x: pd.Series, y: pd.Series, method: str) -> None:
    """Means of two metrics of a method, one standard error in both directions."""
    ax.errorbar(x["ours"], y["ours"], y["se"], x["se"], ls="", label=plain(method), **look(method))


def coefficients(ax, results: pd.DataFrame) -> None:
    """Each coefficient of one run against time, in a shade of its own."""
    names = sorted(results["metric"].unique(), key=lambda name: int(name.split()[1]))
    for name, colour in zip(names, shades(len(names)), strict=True):
        line = results[results["metric"] == name]
        ax.plot(line["t"], line["value"], color=colour, lw=0.8)


def recovery_figure(
    rates: pd.DataFrame,
    recovery: pd.DataFrame,
    skipped: Mapping[tuple[str, str], str],
    step_rows: int,
    edge: float,
):
    """A figure of how methods follow true features that change.

    Parameters
    ----------
    rates : DataFrame
        Summary of the detection rate; columns reading, change, t.
    recovery : DataFrame
        One row a change of true features and run: columns reading, change, method, t, and
        "rows to recover", `edge` if there was no recovery.
    skipped : mapping
        Reading and kind of change -> why it was not run; of all panels, in their order.
    step_rows : int
        Rows of a step t.
    edge : float
        Where the axis of the rows to recover ends.
    """
    readings, kinds = (list(dict.fromkeys(names)) for names in zip(*skipped, strict=True))
    figure = plt.figure(figsize=(PAGE, 6.4))
    above, below = figure.subfigures(2, 1, height_ratios=[1.45, 1])
    grid = {"sharex": True, "squeeze": False}
    axes = above.subplots(len(readings), len(kinds), sharey=True, **grid)
    for ax, ((reading, kind), reason) in zip(axes.flat, skipped.items(), strict=True):
        ax.set(title=plain(f"{reading}, {kind}"), ylim=(40, 103))
        ax.set(xlabel="Rows (thousands)", ylabel=TITLES["DR"])
        ax.label_outer()
        own, changes = (
            table[(table["reading"] == reading) & (table["change"] == kind)]
            for table in (rates, recovery)
        )
        if own.empty:
            _say(ax, reason)
            continue
        for t in sorted(changes["t"].unique()):
            ax.axvline((t - 1) * step_rows, color="0.5", lw=0.6, ls=":")
        curves(ax, own.assign(rows=own["t"] * step_rows), "rows", markers=False)
        ax.xaxis.set_major_formatter(_thousands)
    shared_legend(above, axes, columns=4)
    (points,) = below.subplots(1, len(readings), **grid)
    for ax, reading in zip(points, readings, strict=True):
        own = recovery[recovery["reading"] == reading].groupby(["change", "method"], sort=False)
        _recovery_points(ax, own["rows to recover"].median(), edge)
        ax.set(title=plain(reading), xlim=(0, edge), xlabel="Thousands of rows to recover")
    shared_legend(below, points)
    return figure


def _recovery_points(ax, middle: pd.Series, edge: float) -> None:
    """The height of each method is named at the axis; kinds of change stand above each other."""
    ax.axvline(edge, color="0.5", lw=0.6, ls=":")
    small = {"ha": "right", "va": "bottom", "fontsize": 6}
    ax.text(edge, 1, "never", transform=ax.get_xaxis_transform(), **small)
    ax.xaxis.set_major_formatter(_thousands)
    methods = in_order(middle.index.unique("method"))[::-1]
    for place, kind in enumerate(middle.index.unique("change")):
        heights = [row + 0.25 * (1 - place) for row in range(len(methods))]
        style = {"color": COLOURS[place], "marker": "os^"[place], "ls": "", "clip_on": False}
        ax.plot(middle[kind][methods], heights, label=plain(kind), **style)
    ax.set_yticks(range(len(methods)), [plain(method) for method in methods])
    ax.grid(axis="y", color="0.9", lw=0.5)


def _thousands(rows: float, _) -> str:
    return f"{rows / 1000:.0f}"


def _shade(ax, x, low, high, colour) -> None:
    ax.fill_between(x, low, high, color=colour, alpha=0.2, lw=0)


# -------------------------------------------------- bounds


def bound_panels(
    results: pd.DataFrame, verdicts: pd.DataFrame, given: Mapping[str, Mapping[str, Any]]
):
    """A figure of bounds beside what is seen.

    Parameters
    ----------
    results : DataFrame
        Columns panel, x, method, value, note; one row a run.
    verdicts : DataFrame
        From `claims.bound_verdicts`.
    given : mapping
        How the titles of panels begin -> x, y, their labels; and, if not the usual ones, scale and
        height, of the axes, and lowest, where the vertical one begins. In the order of the panels.
    """
    shown = results["panel"].dropna().unique()
    own = {name: next(start for start in given if name.startswith(start)) for name in shown}
    names = [name for start in given for name in shown if own[name] == start]
    figure, axes = panels(max(1, len(names)))
    for ax, panel in zip(axes, names, strict=False):
        shade_bounds(ax, verdicts[verdicts["panel"] == panel])
        bound_curves(ax, results[results["panel"] == panel])
        ax.set_title(plain(panel))
        _bound_axes(ax, **given[own[panel]])
    if not names:
        empty_panel(axes[0], results["note"].dropna().iloc[0])
    shared_legend(figure, axes, columns=4)
    return figure


def bound_curves(ax, results: pd.DataFrame) -> None:
    """Median over the runs against x, one line a curve; the middle 80 % of the runs are marked."""
    for curve, own in results.groupby("method"):
        height = own.groupby("x")["value"]
        low, middle, high = (height.quantile(q).dropna() for q in (0.1, 0.5, 0.9))
        style = _bound_style(curve)
        if "fmt" in style:
            error = [middle - low, high - middle]
            ax.errorbar(middle.index, middle, error, label=plain(curve), lw=0.8, **style)
        else:
            ax.plot(middle.index, middle, label=plain(curve), **style)
            _shade(ax, middle.index, low, high, style["color"])


def shade_bounds(ax, verdicts: pd.DataFrame) -> None:
    """Shade where a printed bound does not exist, and where it is violated in any run."""
    printed = verdicts[verdicts["method"].astype(str).str.endswith("printed")]
    for curve, own in printed.groupby("method"):
        own = own.sort_values("x")
        middle = np.sqrt(own["x"].to_numpy()[1:] * own["x"].to_numpy()[:-1])
        left, right = np.append(own["x"].iloc[0], middle), np.append(middle, own["x"].iloc[-1])
        for verdict, style in (
            (NO_BOUND, {"color": "0.88"}),
            ("is violated", {"color": COLOURS[8], "alpha": 0.3}),
        ):
            there = own["verdict"] == verdict
            for a, b in zip(left[there], right[there], strict=True):
                ax.axvspan(a, b, lw=0, zorder=0, label=plain(f"{curve}: {verdict}"), **style)


def _bound_style(curve: str) -> dict[str, Any]:
    """Colour and line of a curve: what is seen black points, what is printed dashed."""
    if curve.startswith("experiment"):
        return {"color": "black", "fmt": "o" if curve == "experiment" else "s", "zorder": 3}
    family, _, variant = curve.rpartition(", ")
    if variant not in ("printed", "corrected"):
        return {"color": COLOURS[2], "linestyle": "-."}
    colour = COLOURS[3 if family == "(3.14)" else 0]
    return {"color": colour, "linestyle": "--" if variant == "printed" else "-"}


def _bound_axes(ax, x, y, scale="log", height="log", lowest=None) -> None:
    ax.set(xscale=scale, yscale=height, xlabel=x, ylabel=y)
    ax.set_ylim(bottom=lowest)
    low, high = ax.get_ylim()
    if height == "log" and high > 10 * low:
        ax.yaxis.set_minor_formatter("")


# -------------------------------------------------- times and speed-up

_MARKERS = {"processes": "o", "threads": "s", "model": "D", "model, network": "^"}
_TASKS = {
    "squared_error": ("Regression", {"ls": "-"}),
    "squared_hinge": ("Classification", {"ls": ":", "markerfacecolor": "white"}),
}


def error_in_time(ax, times: pd.DataFrame, fixed: float, missing: str = "") -> None:
    """Levels of the training error against the seconds to them, of OS and of processes.

    Parameters
    ----------
    times : DataFrame
        From `tables.spread`; columns loss (one only), method, n_workers, level, and the spread.
    fixed : float
        The level at which speed-up is measured.
    missing : str
        Why there are no processes, if so.
    """
    name, _ = _TASKS[times["loss"].iloc[0]]
    ax.set(title=f"{name}: training error, measured", xlabel="Time (s)", xscale="log")
    if missing:
        empty_panel(ax, missing)
        return
    curves = times.sort_values("level").groupby(["method", "n_workers"])
    for ((method, q), one), colour in zip(curves, ["black", *shades(len(curves) - 1)], strict=True):
        workers = "1 worker" if q == 1 else f"{q:.0f} workers"
        label, line = ("OS", "--") if method == "OS" else (workers, "-")
        ax.plot(one["median"], one["level"], line, color=colour, label=label)
        ax.fill_betweenx(one["level"], one["low"], one["high"], color=colour, alpha=0.2, lw=0)
    ax.axhline(fixed, color="0.5", lw=0.6, ls=":")
    ax.set_ylim(0, None)
    if ax.get_subplotspec().is_first_col():
        ax.legend(loc="upper right", fontsize=6)


def speedups(ax, ratios: pd.DataFrame, title: str, missing: str = "") -> None:
    """Times as fast against the number of workers, one curve a task and method, and the ideal.

    Parameters
    ----------
    ratios : DataFrame
        From `tables.spread`; columns loss, method, n_workers, and the spread.
    title : str
    missing : str
        Why there is none, if so.
    """
    if ratios.empty:
        empty_panel(ax, missing)
        return
    for (loss, method), one in ratios.groupby(["loss", "method"]):
        one = one.sort_values("n_workers")
        ax.errorbar(
            one["n_workers"],
            one["median"],
            [one["median"] - one["low"], one["high"] - one["median"]],
            label=plain(method) if loss == "squared_error" else None,
            color=look(method)["color"],
            marker=_MARKERS[method],
            elinewidth=0.8,
            **_TASKS[loss][1],
        )
    ends = [ratios["n_workers"].min(), ratios["n_workers"].max()]
    ax.plot(ends, ends, color="0.5", lw=0.8, ls="--", label="ideal")
    ax.set(title=plain(title), xlabel="Workers", ylabel="Speed-up", xscale="log", yscale="log")
    ax.set_xticks(sorted(ratios["n_workers"].unique()))
    ax.xaxis.set_major_formatter("{x:.0f}")
    ax.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    ax.yaxis.set_major_formatter("{x:g}")
    ax.minorticks_off()
    if ax.get_subplotspec().is_first_col():
        for name, style in _TASKS.values():
            ax.plot([], [], marker="o", color="0.4", label=name.lower(), **style)


# -------------------------------------------------- orders of growth


def exponent_panels(exponents: pd.DataFrame, titles: Mapping[tuple[str, str], str]):
    """A figure of measured exponents and their intervals, one line a method.

    Parameters
    ----------
    exponents : DataFrame
        From `orders.exponents`.
    titles : mapping
        Metric and varied size -> title of the panel.
    """
    methods = list(dict.fromkeys(exponents["method"]))[::-1]
    size = (PAGE, 0.7 + 0.145 * len(methods))
    figure, axes = plt.subplots(1, len(titles), figsize=size, sharey=True)
    for ax, ((metric, varied), title) in zip(axes, titles.items(), strict=True):
        own = exponents[(exponents["metric"] == metric) & (exponents["varied"] == varied)]
        own = own.set_index("method").reindex(methods)
        for power in range(4):
            ax.axvline(power, color="0.85", lw=0.6, zorder=0)
        heights = range(len(methods))
        error = [own["slope"] - own["low"], own["high"] - own["slope"]]
        ax.errorbar(own["slope"], heights, xerr=error, fmt="o", color=COLOURS[0], lw=0.8)
        ax.set(title=plain(title), xlim=(-0.6, 3.4), xticks=range(4))
    axes[0].set_yticks(heights, [plain(method) for method in methods])
    axes[0].set_ylim(-0.7, len(methods) - 0.3)
    figure.supxlabel("Exponent, with its 95 % interval", fontsize=8)
    return figure


# -------------------------------------------------- diagrams


def stacked_bars(ax, counts: pd.DataFrame, colours: Mapping[str, str]) -> None:
    """One bar a row, from bottom to top, of as many parts as there are colours, with its number."""
    left = pd.Series(0, index=counts.index)
    for part, colour in colours.items():
        width = counts.get(part, 0 * left)
        bars = ax.barh(counts.index, width, left=left, color=colour, label=part, edgecolor="white")
        ax.bar_label(bars, [n or "" for n in width], label_type="center", fontsize=7)
        left = left + width


def flow_chart(ax, boxes: Sequence[str], arrows: Sequence[str], loops: Mapping[int, str]) -> None:
    """Boxes from left to right, what goes along the arrow after each, and arrows back below."""
    ax.set(xlim=(-0.5, 100.5), ylim=(-1, 16.5))
    ax.axis("off")
    width, gap = 14.4, 7.0
    arrow = {"arrowstyle": "-|>", "lw": 0.8, "color": "0.3"}
    for place, (text, along) in enumerate(zip(boxes, arrows, strict=True)):
        left = place * (width + gap)
        right, middle = left + width, left + width / 2
        box = plt.Rectangle((left, 5), width, 11, fc="0.95", ec="0.3", lw=0.8, clip_on=False)
        ax.add_patch(box)
        ax.text(middle, 10.5, text, ha="center", va="center", fontsize=6.5)
        if place < len(boxes) - 1:
            ax.annotate("", xy=(right + gap, 10.5), xytext=(right, 10.5), arrowprops=arrow)
            ax.text(right + gap / 2, 12, along, ha="center", va="bottom", fontsize=5.5)
    back = {**arrow, "connectionstyle": "arc3,rad=-0.7"}
    for place, text in loops.items():
        left = place * (width + gap)
        start, end = left + 0.7 * width, left + 0.3 * width
        ax.annotate("", xy=(end, 5), xytext=(start, 5), arrowprops=back)
        ax.text(left + width / 2, 1.2, text, ha="center", va="top", fontsize=5.5)
