"""What several figures share; a figure that is like no other is drawn in its notebook."""

import io
import math
import textwrap
from collections import Counter
from collections.abc import Mapping
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.ticker import LogLocator, NullFormatter

from ofslib._files import write_whole
from ofslib.reproduction import tables
from ofslib.reproduction.looks import COLOURS, COLUMN, PAGE, in_order, look, plain

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
    """Write stem.svg and stem.pdf; equal figures give equal bytes."""
    for ending, metadata in ((".svg", {"Date": None}), (".pdf", {"CreationDate": None})):
        content = io.BytesIO()
        figure.savefig(content, format=ending[1:], metadata=metadata)
        write_whole(stem + ending, content.getvalue())


# -------------------------------------------------- curves


def curves(ax, summary: pd.DataFrame, x: str, many: bool = False) -> None:
    """Mean over the replicates of each method against x, one standard error shaded.

    Points are open where a replicate selects nothing, or more than it may. `many`: points so dense
    that a few of them are marked only, those of each method elsewhere.
    """
    methods = in_order(summary["method"])
    for place, method in enumerate(methods):
        line, style = summary[summary["method"] == method].sort_values(x), look(method)
        if many:
            every = max(len(line) // 3, 1)
            style |= {"markevery": (place * every // len(methods), every)}
        mean, se = line["ours"], line["se"]
        ax.plot(line[x], mean, label=plain(method), **style)
        _shade(ax, line[x], mean - se, mean + se, style["color"])
        marked = line.reindex(columns=["empty", "beyond"]).gt(0).any(axis=1)
        if marked.any():
            own = {**style, "ls": "", "mfc": "white", "markevery": None}
            ax.plot(line[x][marked], mean[marked], zorder=2.1, **own)
            ax.plot([], [], "o", color="0.4", mfc="white", label=ODD)
        if "own_passes" in line and line["own_passes"].gt(0).any():
            ax.plot([], [], " ", label=f"{plain(method)}: its own number of passes")


def numbered_curves(ax, summary: pd.DataFrame, x: str) -> None:
    """The `curves` against numbers so few that each is written at the axis."""
    curves(ax, summary, x)
    ax.set_xticks(sorted(summary[x].unique()))


def _shade(ax, x, low, high, colour) -> None:
    ax.fill_between(x, low, high, color=colour, alpha=0.2, lw=0)


# -------------------------------------------------- bounds


def bound_curves(ax, results: pd.DataFrame, form: Mapping[str, Any]) -> None:
    """Median over the runs against x, one line a curve; the middle 80 % of the runs are marked.

    What a run did not find is larger than all that was found: there is no median where half of the
    runs did not, and no upper end of the band where a tenth did not: points are open there, and a
    mark on the upper edge stands for a median.
    `form` is that of a panel: what is more than its `highest` stands as an open mark on the upper
    edge, what is less than its `lowest`, or no more than 0 where the axis is logarithmic (its
    `height`), as one on the lower edge.
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


_HUGE = 1e300  # stands for infinity
