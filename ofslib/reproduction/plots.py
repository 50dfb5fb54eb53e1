"""Results as figures."""

import io
import math
import textwrap
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.ticker import LogLocator, NullFormatter

from ofslib._files import write_whole
from ofslib.reproduction.claims import NO_BOUND
from ofslib.reproduction.looks import COLOURS, COLUMN, PAGE, in_order, look


def curves(ax, summary: pd.DataFrame, x: str, markers: bool = True) -> None:
    """Mean over the replicates against x, one line a method, one standard error shaded.

    `markers`: whether the points are marked, too; not where they are many.
    """
    for method in in_order(summary["method"]):
        line = summary[summary["method"] == method].sort_values(x)
        low, high = line["ours"] - line["se"], line["ours"] + line["se"]
        style = look(method) if markers else {"color": look(method)["color"]}
        ax.plot(line[x], line["ours"], label=method, **style)
        ax.fill_between(line[x], low, high, color=look(method)["color"], alpha=0.2, lw=0)


def empty_panel(ax, reason: str) -> None:
    """Say in the panel, in short, why there is nothing to see."""
    text = textwrap.fill(textwrap.shorten(reason, 110, placeholder=" ..."), 34)
    ax.text(0.5, 0.5, text, ha="center", va="center", transform=ax.transAxes, fontsize=6)
    ax.set(xticks=[], yticks=[])


def save_figure(figure, stem: str) -> None:
    """Write stem.svg and stem.pdf; equal figures give equal bytes."""
    for ending, metadata in ((".svg", {"Date": None}), (".pdf", {"CreationDate": None})):
        content = io.BytesIO()
        figure.savefig(content, format=ending[1:], metadata=metadata)
        write_whole(stem + ending, content.getvalue())


def budget_axis(ax) -> None:
    """Numbers of features on a logarithmic scale, written out."""
    ax.set_xscale("log")
    ax.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    ax.xaxis.set_major_formatter("{x:.0f}")
    ax.xaxis.set_minor_formatter(NullFormatter())


def panels(n: int) -> tuple:
    """A figure of n panels, up to three a row, over the width of a page; the axes as a list."""
    columns = 2 if n == 4 else min(n, 3)
    rows = math.ceil(n / columns)
    width = PAGE if columns > 1 else COLUMN
    figure, axes = plt.subplots(rows, columns, figsize=(width, 0.3 + 1.75 * rows), squeeze=False)
    for ax in axes.flat[n:]:
        ax.remove()
    return figure, list(axes.flat[:n])


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


def bound_look(curve: str) -> dict[str, Any]:
    """Colour and line of a curve: what is seen black points, what is printed dashed."""
    if curve.startswith("experiment"):
        return {"color": "black", "fmt": "o" if curve == "experiment" else "s", "zorder": 3}
    family, _, variant = curve.rpartition(", ")
    if variant not in ("printed", "corrected"):
        return {"color": COLOURS[2], "linestyle": "-."}
    colour = COLOURS[3 if family == "(3.14)" else 0]
    return {"color": colour, "linestyle": "--" if variant == "printed" else "-"}


def bound_curves(ax, results: pd.DataFrame) -> None:
    """Median over the runs against x, one line a curve; the middle 80 % of the runs are marked."""
    for curve, own in results.groupby("method"):
        height = own.groupby("x")["value"]
        low, middle, high = (height.quantile(q).dropna() for q in (0.1, 0.5, 0.9))
        style = bound_look(curve)
        if "fmt" in style:
            ax.errorbar(
                middle.index, middle, [middle - low, high - middle], label=curve, lw=0.8, **style
            )
        else:
            ax.plot(middle.index, middle, label=curve, **style)
            ax.fill_between(middle.index, low, high, color=style["color"], alpha=0.2, lw=0)


def shade_bounds(ax, verdicts: pd.DataFrame) -> None:
    """Shade where a printed bound does not exist, and where it is violated in any run."""
    for curve, own in verdicts[verdicts["method"].astype(str).str.endswith("printed")].groupby(
        "method"
    ):
        own = own.sort_values("x")
        middle = np.sqrt(own["x"].to_numpy()[1:] * own["x"].to_numpy()[:-1])
        left, right = np.append(own["x"].iloc[0], middle), np.append(middle, own["x"].iloc[-1])
        for verdict, style in (
            (NO_BOUND, {"color": "0.88"}),
            ("is violated", {"color": COLOURS[8], "alpha": 0.3}),
        ):
            there = own["verdict"] == verdict
            for a, b in zip(left[there], right[there], strict=True):
                ax.axvspan(a, b, lw=0, zorder=0, label=f"{curve}: {verdict}", **style)
