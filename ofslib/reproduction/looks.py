"""How figures look: type, sizes, and a colour and marker for each method."""

from collections.abc import Iterable
from typing import Any

# The palette that seaborn calls "colorblind". What draws is imported where it is needed only: each
# run shows a summary, few draw.
COLOURS = ["#0173b2", "#de8f05", "#029e73", "#d55e00", "#cc78bc"]
COLOURS += ["#ca9161", "#fbafe4", "#949494", "#ece133", "#56b4e9"]

# A method has the same colour, marker and place in every figure, and no name is that of two. The
# colours are told apart without full colour vision; the markers tell them apart in grey.
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
    "knockoffs": 3, "knockoffs, 10 draws": 4, "least squares, BH": 7, "OLSth, AIC": 2,
    "OLSth, BIC": 0, "OLSth, extended BIC": 9, "RenewableFSA": 4,
    # Rankings of SFSA
    "coef": 1, "scaled_coef": 2, "noise_aware": 0,
    # Streams of columns
    "LapS": 2, "LevS": 0, "Alpha": 5, "SEC": 9, "uniform": 7,
    "OFS (leverage)": 4, "OFS (leverage), unweighted": 3, "OS": 0, "Proj-GD": 2, "L1 batch": 7,
    "Grafting": 3, "naive, projected": 1, "naive, proximal": 4,
    "OS by scans": 0, "Asy-OS": 9, "Asy-OS, not stale": 5,
    "threads": 1, "processes": 0, "model": 2, "model, network": 3,
    # Streams that change
    "SFSA (spectral), forget": 4, "SGDT, never cut": 2, "OLSth, no adaptation": 6,
    "OLSth, adaptation": 1, "OFSA, no adaptation": 5, "OFSA, adaptation": 8, "river SGD": 9,
    "river SGD, ADWIN": 7,
}
# fmt: on
METHODS = tuple(_COLOUR_OF)
# One a colour.
_MARKERS = "osD^vXPpd*"

COLUMN, PAGE = 3.35, 6.9  # inches: one column, and the full width, of a journal page

TITLES = {
    "DR": "Detection rate (%)",
    "RMSE": "RMSE on new rows",
    "R2": "R2 on new rows",
    "AUC": "AUC on new rows",
    "accuracy": "Test accuracy (%)",
    "selected": "Features selected",
    "regret": "Regret per row",
    "time_s": "Learning time (s)",
}


def style() -> None:
    """Set matplotlib up for print: small sans-serif type, thin lines, reproducible files."""
    import matplotlib.pyplot as plt
    import seaborn as sns

    sns.set_theme(context="paper", style="ticks", palette=COLOURS)
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
            "hatch.linewidth": 0.5,
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
    number = _COLOUR_OF.get(method, sum(method.encode()) % len(COLOURS))
    return {"color": COLOURS[number], "marker": _MARKERS[number]}


def plain(text: str) -> str:
    """A name as matplotlib shows it letter by letter: a $ begins no formula."""
    return text.replace("$", r"\$")


def in_order(methods: Iterable[str]) -> list[str]:
    """Methods in the order of the papers' columns, unknown ones last."""
    known = {name: place for place, name in enumerate(METHODS)}
    return sorted(set(methods), key=lambda name: (known.get(name, len(known)), name))


def shades(n: int, palette: str = "crest") -> list:
    """n colours from light to dark, for a series of curves with an order; by seaborn's name."""
    import seaborn as sns

    return sns.color_palette(palette, n)
