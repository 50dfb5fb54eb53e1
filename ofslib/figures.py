"""How results become tables and figures: style, comparison with the published numbers, files."""

import io
import math
import re
import textwrap
from collections.abc import Iterable, Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.ticker import LogLocator, NullFormatter
from scipy.stats import t as student

from ofslib.files import write_whole

# The palette that seaborn calls "colorblind". seaborn brings scipy.stats with it and is imported
# where it is needed only: each run shows a summary, few draw.
_COLOURS = ["#0173b2", "#de8f05", "#029e73", "#d55e00", "#cc78bc"]
_COLOURS += ["#ca9161", "#fbafe4", "#949494", "#ece133", "#56b4e9"]
# A method has the same colour, marker and place in every figure. The colours are told apart
# without full colour vision; the markers tell them apart in grey.
# fmt: off
_COLOUR_OF = {
    # Streams of rows
    "SFSA": 0, "SFSA-AG": 9, "SFSA-Adam": 4, "SGDT": 2, "FOFS": 1, "OFS": 1, "SOFS": 3, "OPG": 7,
    "RDA": 6, "RADAR": 8, "B-ARDA": 0, "B-AMD": 2, "l1-ARDA": 4, "Ada-Fobos": 5,
    "SFSA (spectral)": 3, "scikit-learn SGD, l1": 7, "scikit-learn SGD, elastic net": 8,
    "Vowpal Wabbit, coin": 5, "Vowpal Wabbit, FTRL": 6,
    # Running averages
    "Lasso": 7, "OLasso": 7, "SIHT": 1, "SADMM": 5, "OLSth": 0, "OFSA": 3, "OMCP": 2, "OElnet": 4,
    "RAVE": 8, "with adaptation": 0, "without adaptation": 3, "with adaptation, OFSA": 9,
    "without adaptation, OFSA": 1,
    # Streams of columns
    "LapS": 2, "LevS": 0, "Alpha": 5, "SEC": 9, "uniform": 7,
    "OFS, unweighted": 3, "OS": 0, "Proj-GD": 2, "L1 batch": 7, "Grafting": 3,
    "naive, projected": 1, "naive, proximal": 4,
    "OS by scans": 0, "Asy-OS": 9, "Asy-OS, not stale": 1,
    "threads": 1, "processes": 0, "model": 2, "model, network": 3,
}
# fmt: on
METHODS = tuple(_COLOUR_OF)
_MARKERS = (*"osD^vP*XhpdH<>8.,1234+x|_", *range(4, 12))

COLUMN, PAGE = 3.35, 6.9  # inches: one column, and the full width, of a journal page

# Differences without practical meaning, and whether they are a share of the published value.
TOLERANCE = {"DR": (5.0, False), "RMSE": (0.05, True), "AUC": (0.02, False)}
TOLERANCE |= {"accuracy": (2.0, False)}
LOWER_IS_BETTER = {"RMSE", "time_s"}
TITLES = {
    "DR": "Detection rate (%)",
    "RMSE": "RMSE on test data",
    "AUC": "AUC on test data",
    "accuracy": "Test accuracy (%)",
    "selected": "Features selected",
    "regret": "Regret per row",
    "time_s": "Learning time (s)",
}
_SUMMARY = ("ours", "sd", "median", "replicates", "se")
_DIGITS = {"DR": 1, "RMSE": 2, "AUC": 3, "accuracy": 1, "selected": 1, "time_s": 3}
_MARKS = {"agrees": "", "better": "+", "worse": "-", "not comparable": "?"}

RULE = (
    "A cell agrees if it differs from the paper's by no more than the practical tolerance "
    "(DR 5 points, RMSE 5 %, AUC 0.02, accuracy 2 points) or by no more than two standard errors "
    "of the difference, where the paper's runs are taken to vary as ours do; else it is better "
    "(+) or worse (-). Without a number on either side, or for times, which belong to a machine, "
    "it is not comparable (?)."
)


def style() -> None:
    """Set matplotlib up for print: small sans-serif type, thin lines, reproducible files."""
    import seaborn as sns

    sns.set_theme(context="paper", style="ticks", palette=_COLOURS)
    plt.rcParams.update(
        {
            "figure.dpi": 120,
            "figure.constrained_layout.use": True,
            "font.size": 8,
            "axes.titlesize": 8,
            "axes.labelsize": 8,
            "legend.fontsize": 7,
            "xtick.labelsize": 7,
            "ytick.labelsize": 7,
            "lines.linewidth": 1.2,
            "lines.markersize": 3.5,
            "axes.spines.top": False,
            "axes.spines.right": False,
            "legend.frameon": False,
            "svg.hashsalt": "ofslib",
            "svg.fonttype": "path",
            "pdf.fonttype": 42,
        }
    )


def look(method: str) -> dict[str, Any]:
    """Colour and marker of a method; one that is not known here gets them by its name."""
    if method in METHODS:
        place = METHODS.index(method)
        return {"color": _COLOURS[_COLOUR_OF[method]], "marker": _MARKERS[place % len(_MARKERS)]}
    place = sum(method.encode())
    return {"color": _COLOURS[place % 10], "marker": _MARKERS[place % len(_MARKERS)]}


def in_order(methods: Iterable[str]) -> list[str]:
    """Methods in the order of the papers' columns, unknown ones last."""
    known = {name: place for place, name in enumerate(METHODS)}
    return sorted(set(methods), key=lambda name: (known.get(name, len(known)), name))


# --- results


def read_results(files: Sequence[str]) -> pd.DataFrame:
    """All results in one table; a column `note` tells why a value is missing."""
    if not files:
        return pd.DataFrame(columns=["method", "replicate", "metric", "value", "note"])
    table = pd.concat([pd.read_csv(file) for file in files], ignore_index=True)
    return table if "note" in table else table.assign(note=np.nan)


def missing(results: pd.DataFrame) -> pd.Series:
    """The data sets of which there is no result at all -> why."""
    known = results.groupby("dataset")["value"].transform("count") > 0
    return results[~known].groupby("dataset")["note"].first()


def summarise(results: pd.DataFrame) -> pd.DataFrame:
    """Mean, standard deviation, median, standard error and number over the replicates."""
    results = results[results["value"].notna()]
    by = [c for c in results if c not in ("experiment", "replicate", "value", "note")]
    groups = results.groupby(by, dropna=False, sort=False)["value"]
    table = groups.agg(ours="mean", sd="std", median="median", replicates="count").reset_index()
    return table.assign(se=table["sd"] / np.sqrt(table["replicates"]))


def verdict(metric: str, ours: float, sd: float, n: int, paper: float, runs: int) -> str:
    """`RULE` for one cell: our mean and standard deviation over n runs, the paper's over `runs`."""
    if metric not in TOLERANCE or np.isnan(ours) or np.isnan(paper):
        return "not comparable"
    tolerance, relative = TOLERANCE[metric]
    noise = 2.0 * sd * np.sqrt(1.0 / n + 1.0 / runs) if n > 1 else 0.0
    difference = ours - paper
    if abs(difference) <= max(tolerance * (abs(paper) if relative else 1.0), noise):
        return "agrees"
    return "better" if (difference < 0) == (metric in LOWER_IS_BETTER) else "worse"


def read_published(file: str | None) -> pd.DataFrame:
    """The numbers that a paper prints; no rows if there are none."""
    if file is None:
        return pd.DataFrame(columns=["method", "metric", "value", "note"]).astype({"value": float})
    return pd.read_csv(file)


def cells(settings: Iterable, metrics: Sequence[str]) -> pd.DataFrame:
    """The cells of a table, one a row: axes, skipped, runs, method, metric.

    `settings` are those of an entry (`entries.Setting`); `skipped` says why one was not run, `runs`
    over how many the paper averages.
    """
    return pd.DataFrame(
        {
            **s.spec["axes"],
            "skipped": s.skipped,
            "runs": s.spec["asked"],
            "method": method,
            "metric": metric,
        }
        for s in settings
        for metric in metrics
        for method in s.spec["methods"]
    )


def compare(results: pd.DataFrame, published: pd.DataFrame, table: pd.DataFrame) -> pd.DataFrame:
    """One row a cell: ours, the paper's, and the verdict with its reason.

    Parameters
    ----------
    results : DataFrame
        From `read_results`.
    published : DataFrame
        From `read_published`; its columns name cells, except value and note.
    table : DataFrame
        From `cells`.
    """
    axes = [c for c in table if c not in ("skipped", "runs", "method", "metric")]
    key = [*axes, "method", "metric"]
    missing = results[results["value"].isna()]
    for part, columns in ((summarise(results), _SUMMARY), (missing, ["note"])):
        # A reason may be given by several replicates; there is one cell.
        part = part.reindex(columns=[*key, *columns]).drop_duplicates(key)
        if part.empty:
            part = part.astype(table.dtypes[key].to_dict())
        table = table.merge(part, "left", key)
    paper = published.rename(columns={"value": "paper", "note": "paper_note"})
    on = [c for c in paper if c in key]
    table = table.merge(paper[[*on, "paper", "paper_note"]], "left", on)
    table["verdict"] = [
        verdict(r.metric, r.ours, r.sd, r.replicates, r.paper, r.runs) for r in table.itertuples()
    ]
    table["why"] = [_why(r) for r in table.itertuples()]
    columns = [*key, "ours", "se", "median", "replicates", "paper", "verdict", "why"]
    return table[columns]


def _why(cell) -> str:
    if cell.verdict != "not comparable":
        return ""
    for reason in (cell.skipped, cell.note):
        if isinstance(reason, str) and reason:
            return reason
    if np.isnan(cell.paper):
        return cell.paper_note if isinstance(cell.paper_note, str) else "not in the paper's table"
    return "another machine" if cell.metric == "time_s" else "no result at this scale"


def tally(table: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    """Number of cells per verdict, and the share of the comparable ones that agree (%)."""
    counts = table.groupby(list(by), sort=False)["verdict"].value_counts().unstack(fill_value=0)
    counts = counts.reindex(columns=list(_MARKS), fill_value=0)
    comparable = counts.drop(columns="not comparable").sum(axis=1)
    counts["agreement (%)"] = (100.0 * counts["agrees"] / comparable).round(1)
    return counts.reset_index().rename_axis(columns=None)


# --- tables


def caption(metric: str) -> str:
    """What `layout` shows of a metric; few times, of which one may be an outlier, have a median."""
    return f"{TITLES[metric]}, {'median' if metric == 'time_s' else 'mean (standard error)'}"


def layout(table: pd.DataFrame, metric: str, reading: str | None = None) -> pd.DataFrame:
    """The cells of one metric and reading as the paper prints them, ours beside the paper's."""
    part = table[table["metric"] == metric]
    if reading is not None:
        part = part[part["reading"] == reading]
    axes = [c for c in part.columns[: part.columns.get_loc("method")] if c != "reading"]
    digits, is_time = _DIGITS[metric], metric == "time_s"
    centre = "median" if is_time else "ours"
    rows = {}
    for cell in part.to_dict("records"):
        row = rows.setdefault(tuple(cell[a] for a in axes), {})
        own = "–" if np.isnan(cell[centre]) else f"{cell[centre]:.{digits}f}"
        spread = "" if is_time or np.isnan(cell["se"]) else f" ({cell['se']:.{digits}f})"
        paper = "–" if np.isnan(cell["paper"]) else f"{cell['paper']:g}"
        row[cell["method"], "ours"] = own + spread
        row[cell["method"], "paper"] = paper + _MARKS[cell["verdict"]]
    wide = pd.DataFrame.from_dict(rows, orient="index")
    wide.index = pd.MultiIndex.from_tuples(wide.index, names=axes) if axes else [""]
    columns = [(m, side) for m in in_order(part["method"]) for side in ("ours", "paper")]
    return wide[columns].rename_axis(columns=["", ""])


def to_latex(layouts: dict[str, pd.DataFrame]) -> str:
    """Booktabs tables, each with its caption."""
    tables = []
    for caption, wide in layouts.items():
        wide = wide.rename_axis(index=[_escaped(name or "") for name in wide.index.names])
        shown = wide.style.format(escape="latex")
        shown = shown.format_index(escape="latex").format_index(escape="latex", axis=1)
        tables.append(
            shown.to_latex(
                hrules=True,
                caption=_escaped(caption),
                multicol_align="c",
                column_format="l" * wide.index.nlevels + "r" * wide.shape[1],
                position="tbp",
            )
        )
    return "\n".join(tables)


def _escaped(text: str) -> str:
    return re.sub(r"([&%$#_{}])", r"\\\1", str(text))


# --- figures


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


def save_csv(table: pd.DataFrame, stem: str) -> None:
    """Write stem.csv with ten significant digits."""
    write_whole(stem + ".csv", table.to_csv(index=False, float_format="%.10g"))


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


def shades(n: int) -> list:
    """n colours from light to dark, for a series of curves with an order."""
    import seaborn as sns

    return sns.color_palette("crest", n)


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


def claim_highest(summary: pd.DataFrame, best: str, by: Sequence[str]) -> pd.DataFrame:
    """Check at each point of `by` that method `best` has a higher mean than each other method.

    Columns: `by`, against, difference, se, verdict (holds, fails, unresolved).
    """
    columns = [*by, "ours", "se"]
    winner = summary.loc[summary["method"] == best, columns]
    others = summary.loc[summary["method"] != best, [*columns, "method"]]
    table = others.merge(winner, on=list(by), suffixes=("_other", "_best"))
    table["difference"] = table["ours_best"] - table["ours_other"]
    table["se"] = np.hypot(table["se_best"], table["se_other"])
    table["verdict"] = judged(table)
    return table.rename(columns={"method": "against"})[
        [*by, "against", "difference", "se", "verdict"]
    ]


def claim_better(
    summary: pd.DataFrame, claims: Sequence[dict[str, Any]], by: Sequence[str]
) -> pd.DataFrame:
    """Check claims of a text at each point of `by`, which names dataset and k.

    Each claim is a dict: `says`, the words; `better`, methods each of which is said to have a
    higher mean than each of the methods `than`; `least`, if given, data set -> the least k that
    it is about, and then of no other data set.

    Columns: says, `by`, method, and those of `claim_highest`; one row a comparison.
    """
    tables = [claim_highest(summary.iloc[:0], "", by).assign(says="", method="")]
    for claim in claims:
        least = claim.get("least", dict.fromkeys(summary["dataset"], 0))
        about = summary[summary["k"] >= summary["dataset"].map(least)]
        for best in claim["better"]:
            pairs = about[about["method"].isin([best, *claim["than"]])]
            table = claim_highest(pairs, best, by).assign(says=claim["says"], method=best)
            tables.append(table)
    tables = [table for table in tables if len(table)] or tables
    columns = ["says", *by, "method", "against", "difference", "se", "verdict"]
    return pd.concat(tables, ignore_index=True)[columns]


def claim_whole(comparisons: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    """One verdict at each point of `by`: fails if any comparison does, holds if all do."""

    def whole(verdicts):
        told = set(verdicts)
        return "fails" if "fails" in told else "unresolved" if "unresolved" in told else "holds"

    return comparisons.groupby(list(by), sort=False)["verdict"].agg(whole).reset_index()


def claim_less(gaps: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    """Check that the differences of `claim_highest` are less in the last row of each group.

    Columns: `by`, difference (how much less than in the first row), se, verdict.
    """
    groups = gaps.groupby(list(by))[["difference", "se"]]
    first, last = groups.first(), groups.last()
    table = first[["difference"]] - last[["difference"]]
    table["se"] = np.hypot(first["se"], last["se"])
    return table.assign(verdict=judged(table)).reset_index()


def judged(table: pd.DataFrame) -> np.ndarray:
    """Whether a difference is above 0, by two standard errors: holds, fails, unresolved."""
    clear = table["difference"].abs() > 2.0 * table["se"]
    return np.where(clear, np.where(table["difference"] > 0, "holds", "fails"), "unresolved")


# --- bounds: rows of ofslib.studies.curve, columns panel, x, method, replicate, value, note

NO_BOUND = "does not apply"


def bound_look(curve: str) -> dict[str, Any]:
    """Colour and line of a curve: what is seen black points, what is printed dashed."""
    if curve.startswith("experiment"):
        return {"color": "black", "fmt": "o" if curve == "experiment" else "s", "zorder": 3}
    family, _, variant = curve.rpartition(", ")
    if variant not in ("printed", "corrected"):
        return {"color": _COLOURS[2], "linestyle": "-."}
    colour = _COLOURS[3 if family == "(3.14)" else 0]
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


def bound_verdicts(results: pd.DataFrame, reference: str) -> pd.DataFrame:
    """Each bound at each x: whether it exists, and is not below the reference of the same run.

    Returns
    -------
    DataFrame
        Columns panel, x, method; applies, the share of the runs, and holds, of those where it
        applies; ratio, the smallest of bound and reference; note, why it does not apply; verdict.
    """
    on = ["panel", "x", "replicate"]
    seen = results.loc[results["method"] == reference, [*on, "value"]]
    named = results["method"].astype(str).str
    sides = results[named.endswith(("printed", "corrected"))]
    sides = sides.merge(seen, on=on, suffixes=("", "_seen"))
    # Up to rounding, as bounds.Sides.
    holds = sides["value"] >= sides["value_seen"] - 1e-9 * sides["value_seen"].abs()
    sides = sides.assign(
        applies=sides["value"].notna(),
        holds=holds.where(sides["value"].notna()).astype(float),
        ratio=sides["value"] / sides["value_seen"],
    )
    wanted = {"applies": "mean", "holds": "mean", "ratio": "min", "note": "first"}
    table = sides.groupby(["panel", "x", "method"], sort=False)[[*wanted]].agg(wanted)
    fails = np.where(table["holds"] < 1, "is violated", "holds")
    return table.assign(verdict=np.where(table["applies"] < 1, NO_BOUND, fails)).reset_index()


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
            ("is violated", {"color": _COLOURS[8], "alpha": 0.3}),
        ):
            there = own["verdict"] == verdict
            for a, b in zip(left[there], right[there], strict=True):
                ax.axvspan(a, b, lw=0, zorder=0, label=f"{curve}: {verdict}", **style)


def bound_slopes(results: pd.DataFrame, decades: float = 2) -> pd.DataFrame:
    """Slope of log(value) against log(x) over the last decades of x, with its 95 % interval.

    Least squares for each run, then Student's interval of the mean over the runs.
    """
    rows = []
    for (panel, curve), own in results[results["value"] > 0].groupby(["panel", "method"]):
        late = own[own["x"] >= own["x"].max() / 10**decades * (1 - 1e-9)]
        runs = [np.polyfit(np.log(r["x"]), np.log(r["value"]), 1)[0]
                for _, r in late.groupby("replicate") if r["x"].nunique() > 1]  # fmt: skip
        if len(runs) > 1:
            half = student.ppf(0.975, len(runs) - 1) * np.std(runs, ddof=1) / np.sqrt(len(runs))
            slope = np.mean(runs)
            rows.append([panel, curve, slope, slope - half, slope + half])
    return pd.DataFrame(rows, columns=["panel", "method", "slope", "low", "high"])
