"""Results as figures.

The file is longer than others: what one figure needs, another one shares.
"""

import io
import math
import textwrap
import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.ticker import LogLocator, NullFormatter

from ofslib._files import write_whole
from ofslib.reproduction import tables
from ofslib.reproduction.claims import NO_BOUND
from ofslib.reproduction.legibility import HardToRead, faults
from ofslib.reproduction.looks import COLOURS, COLUMN, PAGE, TITLES, in_order, look, plain, shades

# -------------------------------------------------- figures and panels

LETTERS = 110  # of a legend as wide as a page, six for each sign
# What marks mean: on curves of methods one, on those of bounds the others.
SIGNS = ODD, MIDDLE, RARE, NEVER, ABOVE, BELOW = (
    "some run selects nothing or too many",
    "middle 80 % of the runs",
    "a tenth or more find nothing",
    "half or more find nothing",
    "median above the panel",
    "median below the panel",
)


def panels(n: int, columns: int | None = None) -> tuple:
    """A figure of n panels over the width of a page; the axes as a list.

    `columns`: panels a row; None: up to three.
    """
    if n == 0:  # a note only
        return plt.figure(figsize=(PAGE, 0.5)), []
    columns = columns or (2 if n == 4 else min(n, 3))
    rows = math.ceil(n / columns)
    width = PAGE if columns > 1 else COLUMN
    figure, axes = plt.subplots(rows, columns, figsize=(width, 0.3 + 1.75 * rows), squeeze=False)
    for ax in axes.flat[n:]:
        ax.remove()
    return figure, list(axes.flat[:n])


def data_panels(
    titles: Mapping[str, str], missing: Mapping[str, str], ylabel: str, xlabel: str = ""
) -> tuple:
    """A figure of a panel a data set; of those that are missing a line says why.

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
    there = [name for name in titles.keys() if name not in missing]
    figure, axes = panels(len(there))
    note(figure, {title: missing[name] for name, title in titles.items() if name in missing})
    for name, ax in zip(there, axes, strict=True):
        ax.set(title=plain(titles[name]), xlabel=xlabel)
        if ax.get_subplotspec().is_first_col():
            ax.set_ylabel(ylabel)
    return figure, dict(zip(there, axes, strict=True))


def note(figure, missing: Mapping[str, str]) -> None:
    """Say below a figure what it does not show -> why."""
    reasons: dict[str, list[str]] = {}
    for what, reason in missing.items():
        reasons.setdefault(reason, []).append(what)
    said = [f"{', '.join(what)}: {reason}." for reason, what in reasons.items()]
    if said:
        say_below(figure, f"Not shown: {' '.join(said)}")


def say_below(figure, text: str) -> None:
    """A text below a figure, in lines as long as it is wide."""
    letters = int(22 * figure.bbox.width / figure.dpi)
    figure.supxlabel(plain(textwrap.fill(text, letters)), fontsize=6)


def budget_axis(ax) -> None:
    """Numbers of features on a logarithmic scale, written out."""
    ax.set_xscale("log")
    ax.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    ax.xaxis.set_major_formatter("{x:.0f}")
    ax.xaxis.set_minor_formatter(NullFormatter())


def shared_legend(figure, axes, columns: int | None = None) -> None:
    """One legend above all panels, of what any of them shows; None: in one line, if it fits.

    What was seen and its law ("name" and "name, law") are one entry.
    """
    handles = {}
    for ax in np.ravel(axes):
        handles |= dict(zip(*reversed(ax.get_legend_handles_labels()), strict=True))
    for name in [name for name in handles if f"{name}, law" in handles]:
        handles[name] = (handles.pop(f"{name}, law"), handles[name])
    # What marks mean follows what curves are.
    handles = dict(sorted(handles.items(), key=lambda pair: pair[0] in SIGNS))
    if handles:
        letters = sum(len(handle) + 6 for handle in handles)
        columns = columns or math.ceil(len(handles) / math.ceil(letters / LETTERS))
        if figure.bbox.width < 0.9 * PAGE * figure.dpi:  # letters of a line, and of a label
            columns = min(columns, max(1, 50 // (max(map(len, handles)) + 6)))
            lines = math.ceil(len(handles) / columns)
            figure.set_figheight(figure.get_figheight() + 0.17 * (lines - 1))
        place = "outside upper center"
        figure.legend(handles.values(), handles.keys(), loc=place, ncols=columns)


def save_figure(figure, stem: str) -> None:
    """Write stem.svg and stem.pdf; equal figures give equal bytes.

    Warns
    -----
    HardToRead
        For what `legibility.faults` finds.
    """
    for fault in faults(figure):
        warnings.warn(f"{stem}: {fault}", HardToRead, stacklevel=2)
    for ending, metadata in ((".svg", {"Date": None}), (".pdf", {"CreationDate": None})):
        content = io.BytesIO()
        figure.savefig(content, format=ending[1:], metadata=metadata)
        write_whole(stem + ending, content.getvalue())


# -------------------------------------------------- curves


def mean_curve(ax, summary: pd.DataFrame, x: str, **style: Any) -> None:
    """Mean over the replicates of one method against x, one standard error shaded.

    Points are open where a replicate selects nothing, or more than it may.
    """
    line = summary.sort_values(x)
    ax.plot(line[x], line["ours"], **style)
    _shade(ax, line[x], line["ours"] - line["se"], line["ours"] + line["se"], style["color"])
    marked = line.reindex(columns=["empty", "beyond"]).gt(0).any(axis=1)
    if marked.any():
        own = {**style, "ls": "", "mfc": "white", "label": None, "markevery": None}
        ax.plot(line[x][marked], line["ours"][marked], zorder=2.1, **own)
        ax.plot([], [], "o", color="0.4", mfc="white", label=ODD)


def curves(ax, summary: pd.DataFrame, x: str, many: bool = False) -> None:
    """The `mean_curve` of each method.

    `many`: points so dense that a few of them are marked only, those of each method elsewhere.
    """
    methods = in_order(summary["method"])
    for place, method in enumerate(methods):
        own, style = summary[summary["method"] == method], look(method)
        if many:
            every = max(len(own) // 3, 1)
            style |= {"markevery": (place * every // len(methods), every)}
        mean_curve(ax, own, x, label=plain(method), **style)
        if "own_passes" in own and own["own_passes"].gt(0).any():
            ax.plot([], [], " ", label=f"{plain(method)}: its own number of passes")


def numbered_curves(ax, summary: pd.DataFrame, x: str) -> None:
    """The `curves` against numbers so few that each is written at the axis."""
    curves(ax, summary, x)
    ax.set_xticks(sorted(summary[x].unique()))


def mean_point(ax, x: pd.Series, y: pd.Series, method: str) -> None:
    """Means of two metrics of a method, one standard error in both directions."""
    ax.errorbar(x["ours"], y["ours"], y["se"], x["se"], ls="", label=plain(method), **look(method))


def coefficients(ax, summary: pd.DataFrame) -> None:
    """The `mean_curve` of each coefficient against time, in a shade of its own."""
    names = sorted(summary["metric"].unique(), key=lambda name: int(name.split()[1]))
    for name, colour in zip(names, shades(len(names)), strict=True):
        mean_curve(ax, summary[summary["metric"] == name], "t", color=colour, lw=0.8)


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
    there = [key for key, reason in skipped.items() if not reason]
    kinds: dict[str, list[str]] = {}
    for reading, kind in there:
        kinds.setdefault(reading, []).append(kind)
    if not there:
        figure, _ = panels(0)
        note(figure, {f"{key[0]} ({key[1]})": reason for key, reason in skipped.items()})
        return figure
    names = recovery.groupby("reading")["method"].nunique().max()
    heights = [0.4 + 1.7 * len(kinds), 0.8 + 0.14 * names]  # a line of text for each method
    figure = plt.figure(figsize=(PAGE, sum(heights)))
    above, below = figure.subfigures(2, 1, height_ratios=heights)
    grid = {"sharex": True, "squeeze": False}
    axes = above.subplots(len(kinds), max(map(len, kinds.values())), sharey=True, **grid)
    (points,) = below.subplots(1, len(kinds), **grid)
    for row, point, (reading, shown) in zip(axes, points, kinds.items(), strict=True):
        for ax in row[len(shown) :]:
            ax.remove()
        for ax, kind in zip(row, shown, strict=False):
            ax.set(title=plain(f"{reading}, {kind}"), ylim=(40, 103))
            ax.set(xlabel="Rows (thousands)", ylabel=TITLES["DR"])
            ax.label_outer()
            own, changes = (
                table[(table["reading"] == reading) & (table["change"] == kind)]
                for table in (rates, recovery)
            )
            for t in sorted(changes["t"].unique()):
                ax.axvline((t - 1) * step_rows, color="0.5", lw=0.6, ls=":")
            curves(ax, own.assign(rows=own["t"] * step_rows), "rows", many=True)
            ax.xaxis.set_major_formatter(_thousands)
        own = recovery[recovery["reading"] == reading].groupby(["change", "method"], sort=False)
        _recovery_points(point, own["rows to recover"].median(), edge)
        point.set_title(plain(reading), loc="left")
    shared_legend(above, axes, columns=4)
    shared_legend(below, points)
    note(below, {f"{key[0]} ({key[1]})": reason for key, reason in skipped.items() if reason})
    return figure


def _recovery_points(ax, middle: pd.Series, edge: float) -> None:
    """The height of each method is named at the axis; kinds of change stand above each other."""
    ax.axvline(edge, color="0.5", lw=0.6, ls=":")
    small = {"ha": "right", "va": "bottom", "fontsize": 6}
    ax.set(xlim=(0, edge), xlabel="Thousands of rows to recover")
    until = "not before the next change"
    ax.text(edge, 1, until, transform=ax.get_xaxis_transform(), **small)
    ax.xaxis.set_major_formatter(_thousands)
    methods = in_order(middle.index.unique("method"))[::-1]
    for place, kind in enumerate(middle.index.unique("change")):
        heights = [row + 0.25 * (1 - place) for row in range(len(methods))]
        style = {"color": COLOURS[place], "marker": "os^"[place], "ls": "", "clip_on": False}
        ax.plot(middle[kind][methods], heights, label=plain(kind), **style)
    ax.set_yticks(range(len(methods)), [plain(method) for method in methods])
    ax.grid(axis="y", color="0.9", lw=0.5)


def _thousands(rows: float, _) -> str:
    return f"{rows / 1000:g}"


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
        height, of the axes, and lowest and highest, where the vertical one begins and ends. In the
        order of the panels; other panels are not drawn. `curves`: which curves are drawn, and
        their names in the legend. `ratio`: two curves, whose ratio is written into the panel.
    """
    shown = results["panel"].dropna().unique()
    own = {name: next(filter(name.startswith, given), None) for name in shown}
    names = [name for start in given for name in shown if own[name] == start]
    figure, axes = panels(len(names))
    before = {"y": None}
    for ax, panel in zip(axes, names, strict=True):
        form = given[own[panel]]
        drawn = results[results["panel"] == panel]
        if "curves" in form:
            labels = drawn["method"].map(form["curves"])
            drawn = drawn.assign(method=labels)[labels.notna()]
        bound_curves(ax, drawn, form)
        shade_bounds(ax, verdicts[verdicts["panel"] == panel])
        ax.set_title(plain(_folded(panel, 28 if len(axes) not in (1, 2, 4) else 45)))
        _bound_axes(ax, form)
        if "ratio" in form:
            _write_ratio(ax, drawn, *form["ratio"])
        if before["y"] == form["y"] and not ax.get_subplotspec().is_first_col():
            ax.set_ylabel("")
        before = form
    if not names:
        note(figure, {"all": results["note"].dropna().iloc[0]})
    shared_legend(figure, axes, columns=4)
    return figure


def _write_ratio(ax, results: pd.DataFrame, one: str, other: str) -> None:
    """Write between which numbers the ratio of the medians of two curves lies."""
    medians = results.pivot_table("value", "x", "method", "median").reindex(columns=[one, other])
    ratio = (medians[one] / medians[other]).dropna()
    if len(ratio):
        text = f"{one} / {other}: {ratio.min():.2f} to {ratio.max():.2f}"
        ax.text(0.02, 0.97, plain(text), transform=ax.transAxes, va="top", fontsize=7)


def _folded(title: str, letters: int) -> str:
    """A title in as many lines as it needs, of about the same length."""
    lines = math.ceil(len(title) / letters)
    return textwrap.fill(title, len(title) // lines + 6) if lines > 1 else title


def bound_curves(ax, results: pd.DataFrame, form: Mapping[str, Any]) -> None:
    """Median over the runs against x, one line a curve; the middle 80 % of the runs are marked.

    What a run did not find is larger than all that was found: there is no median where half of the
    runs did not, and no upper end of the band where a tenth did not: points are open there, and a
    mark on the upper edge stands for a median.
    `form` is that of a panel (`bound_panels`): what is more than its `highest` stands as an open
    mark on the upper edge, what is less than its `lowest`, or no more than 0 where the axis is
    logarithmic, as one on the lower edge.
    """
    lowest = form.get("lowest", -np.inf if form.get("height") == "linear" else 0.0)
    highest = form.get("highest", np.inf)
    on_edge = Counter()  # marks below each other, so that none hides another
    for curve, own in tables.never_found(results).groupby("method"):
        # Between a number and infinity there is none.
        height = own["value"].clip(upper=_HUGE).groupby(own["x"])
        spread = pd.DataFrame({q: height.quantile(q) for q in (0.1, 0.5, 0.9)}).dropna()
        never = spread.index[spread[0.5] >= _HUGE / 1e6]
        spread = spread.drop(never)
        low, middle, high = (spread[q].where(spread[q] < _HUGE / 1e6) for q in spread)
        style, seen = _bound_style(curve), middle.where(middle > lowest)
        few = len(middle) <= 20  # points that can be told from each other
        if "marker" in style and few:
            error = [middle - low, (high - middle).fillna(0.0)]
            ax.errorbar(middle.index, seen, error, label=plain(curve), lw=0.8, ls="", **style)
            if (lost := seen[high.isna()]).notna().any():
                ax.plot(lost, ls="", mfc="white", **{"zorder": 2.1, **style})
                ax.plot([], [], "o", color="0.4", mfc="white", label=RARE)
        else:
            style = {"linestyle": "-", **style, "marker": "." if few else ""}
            ax.plot(middle.index, seen, label=plain(curve), **style)
            _shade(ax, middle.index, low, high, style["color"])
            if (high - low > 0.05 * middle.abs()).any():  # else the band is not seen
                ax.fill_between([], [], color="0.6", alpha=0.5, lw=0, label=MIDDLE)
        out = {NEVER: never, ABOVE: seen.index[seen > highest], BELOW: seen.index[seen.isna()]}
        _mark_edges(ax, out, style["color"], on_edge)


def _mark_edges(ax, out: Mapping[str, pd.Index], colour, taken: Counter) -> None:
    """Marks at what has no median at all, or none in the panel; `taken`: marks above so far."""
    edge = {"transform": ax.get_xaxis_transform(), "clip_on": False, "in_layout": False}
    for label, at in out.items():
        # Of those that the curve shows, too, a few
        at = at if label == NEVER else at[:: math.ceil(len(at) / 10) or 1]
        if not len(at):
            continue
        heights = [0.0 if label == BELOW else 1.0 - 0.07 * taken[x] for x in at]
        taken.update(() if label == BELOW else at)
        shape = {"marker": "v" if label == BELOW else "^", "ls": ""}
        shape |= {"mfc": "white"} if label == ABOVE else {}
        ax.plot(at, heights, color=colour, **shape, **edge)
        ax.plot([], [], color="0.4", label=label, **shape)


# A violation is a strip above the panel, which hides no curve and is not hidden by grey.
_SHADED = {
    NO_BOUND: {"facecolor": "0.9", "zorder": 0},
    "is violated": {
        **{"ymin": 1.0, "ymax": 1.035, "clip_on": False, "hatch": "//////"},
        **{"facecolor": "white", "edgecolor": "0.3", "zorder": 0.1},
    },
}


def shade_bounds(ax, verdicts: pd.DataFrame) -> None:
    """Grey where a printed bound does not exist; a hatched strip where any run violates it."""
    printed = verdicts[verdicts["method"].astype(str).str.endswith("printed")]
    for curve, own in printed.groupby("method"):
        own = own.sort_values("x")
        middle = np.sqrt(own["x"].to_numpy()[1:] * own["x"].to_numpy()[:-1])
        left, right = np.append(own["x"].iloc[0], middle), np.append(middle, own["x"].iloc[-1])
        for verdict, style in _SHADED.items():
            said = f"{curve}: {verdict}" + " in some run" * (verdict == "is violated")
            # A stretch of x is drawn as one.
            step = np.diff((own["verdict"] == verdict).to_numpy(int), prepend=0, append=0)
            for a, b in zip(left[step[:-1] > 0], right[step[1:] < 0], strict=True):
                ax.axvspan(a, b, lw=0, label=plain(said), **style)


_BOUNDS = {
    "printed": {"color": COLOURS[3], "linestyle": "--", "zorder": 2.5},
    # Wide, so that it is seen below the printed one where they coincide.
    "corrected": {"color": COLOURS[0], "linestyle": "-", "lw": 2.2},
    "at any time": {"color": COLOURS[4], "linestyle": "-"},
    "(3.12), literal": {"color": COLOURS[4], "linestyle": ":", "zorder": 2.5},
    # Above the points, which lie on it.
    "exact law": {"color": COLOURS[2], "linestyle": "-", "zorder": 3.5},
    "exact law, all runs": {"color": COLOURS[7], "linestyle": "-."},
    "(3.14), literal": {"color": COLOURS[1], "linestyle": ":", "zorder": 2.5},
    "(3.14), corrected": {"color": COLOURS[9], "linestyle": "-"},
    # Of recovery_limits and step_and_warmup: where there is a law it is the line, and runs are
    # points of its colour.
    "information floor": {"color": "black", "linestyle": "-", "lw": 2.0},
    "floor, asymptotic": {"color": "black", "linestyle": ":"},
    "OLSth, law": {"color": look("OLSth")["color"], "linestyle": "-"},
    "OLSth": look("OLSth"),
    "SGDT, law": {"color": look("SGDT")["color"], "linestyle": "-"},
    "SGDT": look("SGDT"),
    # The colour of SFSA is that of OLSth, which is not with it elsewhere.
    "SFSA": {"color": COLOURS[1], "linestyle": "--"},
    "SFSA, no warm-up, law": {"color": COLOURS[1], "linestyle": "-"},
    "SFSA, no warm-up": {"color": COLOURS[1], "marker": "s"},
    "SFSA, warm-up of half, law": {"color": COLOURS[9], "linestyle": "-"},
    "SFSA, warm-up of half": {"color": COLOURS[9], "marker": "P"},
    "SFSA, step of SGDT, law": {"color": COLOURS[5], "linestyle": "-"},
    "SFSA, step of SGDT": {"color": COLOURS[5], "marker": "v"},
    "OFSA, law": {"color": look("OFSA")["color"], "linestyle": "-"},
    "OFSA": look("OFSA"),
    "Lasso": {"color": look("Lasso")["color"], "linestyle": "--"},
    "MCP": {"color": COLOURS[4], "linestyle": "--"},
}


def _bound_style(curve: str) -> dict[str, Any]:
    """Colour and line of a curve: what is seen black points, what is printed dashed."""
    if curve.startswith("experiment"):
        return {"color": "black", "marker": "o" if curve == "experiment" else "s", "zorder": 3}
    variant = curve.rpartition(", ")[2]
    return _BOUNDS.get(curve, _BOUNDS.get(variant, {"color": COLOURS[2], "linestyle": "-."}))


def _bound_axes(ax, form: Mapping[str, Any]) -> None:
    scale, height = form.get("scale", "log"), form.get("height", "log")
    ax.set(xscale=scale, yscale=height, xlabel=form["x"], ylabel=form["y"])
    ax.set_ylim(bottom=form.get("lowest"), top=form.get("highest"))
    for axis, kind in ((ax.xaxis, scale), (ax.yaxis, height)):
        if kind == "log":
            log_ticks(axis)


def log_ticks(axis) -> None:
    """Few ticks, each with its number: 1, 2, 5 below two decades, else powers of ten."""
    low, high = axis.get_view_interval()
    decades = math.log10(high / low)
    axis.set_minor_formatter(NullFormatter())
    if decades < 2:
        axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axis.set_major_formatter("{x:g}")
    else:
        every = math.ceil(decades / 5)
        axis.set_major_locator(LogLocator(base=10.0**every))
        axis.set_minor_locator(LogLocator(subs="all" if every == 1 else (1,), numticks=99))


# -------------------------------------------------- times and speed-up

_HUGE = 1e300  # stands for infinity
_MARKERS = {"processes": "o", "threads": "s", "model": "D", "model, network": "^"}
_TASKS = {
    "squared_error": ("Regression", {"ls": "-"}, "mean $y^2$"),
    "squared_hinge": ("Classification", {"ls": ":", "markerfacecolor": "white"}, "labels"),
}


def speedup_figure(
    times: pd.DataFrame, ratios: pd.DataFrame, fixed: Mapping[str, float], cores: int, missing: str
):
    """A figure of the times to errors, and of how many times as fast as OS asynchronous OS is.

    Parameters
    ----------
    times : DataFrame
        From `tables.spread`; columns loss, method ("OS", "processes"), n_workers, level, and the
        spread.
    ratios : DataFrame
        From `tables.spread`; columns loss, method, n_workers, and the spread.
    fixed : mapping
        Loss -> the level at which speed-up is measured.
    cores : int
        Of the machine.
    missing : str
        Why there are no processes, if so.
    """
    is_model = ratios["method"].str.startswith("model")
    parts = {f"Measured, {cores} cores": ratios[~is_model], "Modelled": ratios[is_model]}
    parts = {title: part for title, part in parts.items() if len(part)}
    figure = plt.figure(figsize=(PAGE, 4.6))
    above, below = figure.subfigures(2, 1)
    axes = above.subplots(1, len(fixed), squeeze=False)[0]
    for ax, (loss, level) in zip(axes, fixed.items(), strict=True):
        error_in_time(ax, times[times["loss"] == loss], level)
    shared_legend(above, axes)
    axes = below.subplots(1, max(1, len(parts)), squeeze=False)[0]
    for ax, (title, part) in zip(axes, parts.items(), strict=False):
        speedups(ax, part, title)
    shared_legend(below, axes)
    note(below, {"processes": missing} if missing else {})
    return figure


def error_in_time(ax, times: pd.DataFrame, fixed: float) -> None:
    """Levels of the training error against the seconds to them: OS, then by numbers of workers."""
    loss = times["loss"].iloc[0]
    curves = times.sort_values("level").groupby(["method", "n_workers"])
    for ((method, q), one), colour in zip(curves, ["black", *shades(len(curves) - 1)], strict=True):
        workers = "1 process" if q == 1 else f"{q:.0f} processes"
        label, line = ("OS", "--") if method == "OS" else (workers, "-")
        ax.plot(one["median"], one["level"], line, color=colour, label=label)
        ax.fill_betweenx(one["level"], one["low"], one["high"], color=colour, alpha=0.2, lw=0)
    ax.axhline(fixed, color="0.5", lw=0.6, ls=":")
    ax.set(title=_TASKS[loss][0], xlabel="Time (s), measured", xscale="log", ylim=(0, None))
    ax.set_ylabel(f"Training error\n(% of {_TASKS[loss][2]})")


def speedups(ax, ratios: pd.DataFrame, title: str) -> None:
    """Times as fast against the number of workers, one curve a task and method, and the ideal."""
    for (loss, method), one in ratios.groupby(["loss", "method"]):
        one = one.sort_values("n_workers")
        task, style, _ = _TASKS[loss]
        ax.errorbar(
            one["n_workers"],
            one["median"],
            [one["median"] - one["low"], one["high"] - one["median"]],
            label=plain(method) if task == "Regression" else None,
            color=look(method)["color"],
            marker=_MARKERS[method],
            elinewidth=0.8,
            **style,
        )
    ends = [ratios["n_workers"].min(), ratios["n_workers"].max()]
    ax.plot(ends, ends, color="0.5", lw=0.8, ls="--", label="ideal")
    ax.set(title=plain(title), xlabel="Workers", xscale="log", yscale="log")
    ax.set_xticks(sorted(ratios["n_workers"].unique()))
    ax.xaxis.set_major_formatter("{x:.0f}")
    log_ticks(ax.yaxis)
    ax.minorticks_off()
    if ax.get_subplotspec().is_first_col():
        ax.set_ylabel("Times as fast as OS")
        for name, style, _ in _TASKS.values():
            ax.plot([], [], marker="o", color="0.4", label=name.lower(), **style)


def workers_figure(rates: pd.DataFrame, ratios: pd.DataFrame, cores: int, missing: str):
    """A figure of what is found by many workers together, and how many times as fast they are.

    Parameters
    ----------
    rates : DataFrame
        From `tables.spread`, detection rates; columns task, n, n_workers, and the spread.
    ratios : DataFrame
        From `tables.spread`, times as fast as one; columns method ("processes", "model", "model,
        network"), n, n_workers, and the spread. It may be empty.
    cores : int
        Of the machine.
    missing : str
        Why there are no ratios, if so.
    """
    figure, axes = plt.subplots(1, 3 if len(ratios) else 2, figsize=(PAGE, 2.9))
    for ax, (task, part) in zip(axes, rates.groupby("task"), strict=False):
        sizes = part.groupby("n")
        for (n, one), colour in zip(sizes, shades(len(sizes)), strict=True):
            ax.plot(one["n_workers"], one["median"], "o-", color=colour, label=f"{n:,.0f} rows")
            _shade(ax, one["n_workers"], one["low"], one["high"], colour)
        ax.set(title=task.capitalize(), xscale="log", ylabel=TITLES["DR"], ylim=(0, 103))
        ax.set_xticks(sorted(part["n_workers"].unique()))
    shared_legend(figure, axes[:2], columns=4)
    sizes = ratios.groupby("n")
    lines = {"processes": "o", "model": "-", "model, network": ":"}
    for (n, part), colour in zip(sizes, shades(len(sizes), "flare"), strict=True):
        for method, one in part.groupby("method"):
            axes[2].plot(one["n_workers"], one["median"], lines[method], color=colour)
        end = part[part["method"] == "model"].iloc[-1]
        where = {"xy": (end["n_workers"], end["median"]), "xytext": (4, 0), "va": "center"}
        axes[2].annotate(
            f"{n / 1e6:,.0f} million rows", **where, textcoords="offset points", fontsize=6
        )
    if len(ratios):
        ticks = sorted(ratios["n_workers"].unique())
        lines["ideal"] = "--"
        axes[2].plot(ticks, ticks, lines["ideal"], color="0.5", lw=0.8)
        axes[2].set(title=f"On {cores} cores, and modelled", xscale="log", yscale="log")
        axes[2].set(ylabel="Times as fast as one", xticks=ticks)
        for name, form in lines.items():
            axes[2].plot([], [], form, color="0.3", label=name)
        axes[2].legend(fontsize=6)
        log_ticks(axes[2].yaxis)
    for ax in axes:
        ax.set_xlabel("Workers")
        ax.xaxis.set_major_formatter("{x:.0f}")
        ax.minorticks_off()
    note(figure, {"processes": missing} if missing else {})
    return figure


# -------------------------------------------------- orders of growth


def exponent_panels(exponents: pd.DataFrame, titles: Mapping[tuple[str, str], str]):
    """A figure of measured exponents and their intervals, one line a method.

    Parameters
    ----------
    exponents : DataFrame
        From `orders.exponents`, and `expected`.
    titles : mapping
        Metric and varied size -> title of the panel.
    """
    methods = list(dict.fromkeys(exponents["method"]))[::-1]
    size = (PAGE, max(1.8, 0.7 + 0.145 * len(methods)))
    figure, axes = plt.subplots(1, len(titles), figsize=size, sharey=True)
    for ax, ((metric, varied), title) in zip(axes, titles.items(), strict=True):
        own = exponents[(exponents["metric"] == metric) & (exponents["varied"] == varied)]
        own = own.set_index("method").reindex(methods)
        for power in range(4):
            ax.axvline(power, color="0.85", lw=0.6, zorder=0)
        heights = range(len(methods))
        error = [own["slope"] - own["low"], own["high"] - own["slope"]]
        ax.plot(own["expected"], heights, "|", color="0.3", ms=8, mew=1.5, label="expected")
        measured = {"fmt": "o", "color": COLOURS[0], "lw": 0.8, "label": "measured, 95 % interval"}
        ax.errorbar(own["slope"], heights, xerr=error, **measured)
        ax.set(title=plain(title), xticks=range(4))
    # Of two runs an interval is so wide that it would hide all others: it ends at the edge.
    low = np.clip(exponents["low"].min() - 0.1, -1.5, -0.6)
    high = np.clip(exponents["high"].max() + 0.1, 3.4, 4.5)
    for ax in axes:
        ax.set_xlim(low, high)
    axes[0].set_yticks(heights, [plain(method) for method in methods])
    axes[0].set_ylim(-0.7, len(methods) - 0.3)
    figure.supxlabel("Exponent", fontsize=8)
    shared_legend(figure, axes)
    return figure


# -------------------------------------------------- costs

POOR = "AUC or RMSE more than 10 % from the best"


def cost_panels(parts: Mapping[str, pd.DataFrame], labels: Mapping[str, Mapping[str, str]]):
    """A figure of the width of a column: one panel below the other, one line a method.

    Parameters
    ----------
    parts : mapping
        Panel -> method, median, low, high and kind, the first at the top; `said` stands at the
        right; points of the `poor` are open.
    labels : mapping
        Panel -> its `title`, what goes `across`, and the head of what is said `beside` the lines.
    """
    lines = [len(part) + 5 for part in parts.values()]
    figure, axes = plt.subplots(
        len(parts), 1, figsize=(COLUMN, 0.125 * sum(lines)), height_ratios=lines, squeeze=False
    )
    for ax, (panel, part) in zip(axes[:, 0], parts.items(), strict=True):
        _cost_panel(ax, part[::-1])
        ax.set_title(plain(labels[panel]["title"]), loc="right")
        # Names take most of the width: the middle of the panel is not that of the figure.
        ax.set_xlabel(plain(labels[panel]["across"]), loc="right")
        place = {"transform": ax.get_yaxis_transform(), "va": "center", "fontsize": 6.5}
        said = [*part["said"][::-1], labels[panel].get("beside", "")]
        for height, text in enumerate(said):
            ax.text(1.02, height, plain(text), **place)
    axes[0, 0].plot([], [], "o", color="0.3", mfc="white", ms=3, label=POOR)
    shared_legend(figure, axes[0, 0])
    return figure


def _cost_panel(ax, part: pd.DataFrame) -> None:
    """One line a method, from the bottom up."""
    colours = dict(zip(("ofslib", "others", "limit"), [*COLOURS[:2], "0.5"], strict=True))
    heights = range(len(part))
    for kind, colour in colours.items():
        own = part.assign(height=heights)[part["kind"] == kind]
        error = [own["median"] - own["low"], own["high"] - own["median"]]
        style = {"fmt": "o", "color": colour, "label": kind, "lw": 0.8, "ms": 3}
        ax.errorbar(own["median"], own["height"], xerr=error, **style)
        own = own[own["poor"]]
        ax.plot(own["median"], own["height"], "o", color=colour, mfc="white", ms=3, zorder=2.1)
    ax.set(xscale="log", ylim=(-0.7, len(part) - 0.3))
    ax.set_yticks(heights, [plain(method) for method in part["method"]], fontsize=6.5)
    ax.grid(axis="x", color="0.9", lw=0.6)
    log_ticks(ax.xaxis)
    ax.minorticks_off()


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
            ax.text(right + gap / 2, 12, along, ha="center", va="bottom", fontsize=6.5)
    back = {**arrow, "connectionstyle": "arc3,rad=-0.7"}
    for place, text in loops.items():
        left = place * (width + gap)
        start, end = left + 0.7 * width, left + 0.3 * width
        ax.annotate("", xy=(end, 5), xytext=(start, 5), arrowprops=back)
        ax.text(left + width / 2, 1.2, text, ha="center", va="top", fontsize=6.5)
