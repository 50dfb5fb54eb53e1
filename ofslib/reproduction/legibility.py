"""What a reader of a figure would stumble over."""

from itertools import combinations
from typing import Any

import numpy as np
from matplotlib.backends.backend_agg import RendererAgg
from matplotlib.colors import to_hex
from matplotlib.legend import Legend

SLACK = 1.0  # pixels by which boxes of text may overlap, or leave the figure


class HardToRead(UserWarning):
    """A figure has text or colours that a reader takes for others, or cannot read."""


class _Recorder(RendererAgg):
    """Keeps what is written, and where: one (text, left, bottom, right, top) a line of text."""

    def __init__(self, *size):
        super().__init__(*size)
        self.boxes = []

    def draw_text(self, gc, x, y, s, prop, angle, ismath=False, mtext=None):
        width, height, descent = self.get_text_width_height_descent(s, prop, ismath)
        corners = np.array([[0, -descent], [width, -descent], [0, height - descent]])
        corners = np.vstack([corners, [width, height - descent]])
        turn = np.deg2rad(angle)
        corners = corners @ [[np.cos(turn), np.sin(turn)], [-np.sin(turn), np.cos(turn)]]
        corners += [x, self.height - y]
        self.boxes.append((s, *corners.min(axis=0), *corners.max(axis=0)))


def faults(figure) -> list[str]:
    """Say what is hard to read in a figure.

    Text that leaves the figure or overlaps other text; panels without anything drawn; labels that
    share a colour, in a panel or a legend (of greys: also line and marker), unless they are "name"
    and "name, law": what was seen and what it should be.

    Returns
    -------
    list of str
        One line a fault; no fault, no line.
    """
    size = figure.bbox.width, figure.bbox.height
    page = _Recorder(*size, figure.dpi)
    figure.draw(page)
    found = []
    for text, left, bottom, right, top in page.boxes:
        if min(left, bottom) < -SLACK or right > size[0] + SLACK or top > size[1] + SLACK:
            found.append(f"{text!r} leaves the figure")
    for (one, *a), (other, *b) in combinations(page.boxes, 2):
        across, up = min(a[2], b[2]) - max(a[0], b[0]), min(a[3], b[3]) - max(a[1], b[1])
        if across > SLACK and up > SLACK:
            found.append(f"{one!r} and {other!r} overlap")
    for ax in figure.axes:
        if ax.axison and not ax.has_data():
            found.append(f"nothing is drawn in the panel {ax.get_title()!r}")
    for handles, labels in _keys(figure):
        own = dict(zip(labels, map(_sign, handles), strict=True))
        for one, other in combinations(own, 2):
            if own[one] == own[other] and {f"{one}, law", f"{other}, law"}.isdisjoint((one, other)):
                found.append(f"{one!r} and {other!r} have the same colour, {own[one][0]}")
    return list(dict.fromkeys(found))


def _keys(figure):
    """Handles and labels of each panel, and of each legend."""
    for ax in figure.axes:
        yield ax.get_legend_handles_labels()
    for legend in figure.findobj(Legend):
        yield legend.legend_handles, [text.get_text() for text in legend.get_texts()]


def _sign(handle: Any) -> tuple:
    """By what a reader tells a handle of a legend from others."""
    first = next(filter(None, handle)) if isinstance(handle, tuple) else handle
    if not hasattr(first, "get_color"):
        return to_hex(np.ravel(first.get_facecolor())[:4], keep_alpha=True), first.get_hatch()
    colour = first.get_color()
    colour = to_hex(colour if isinstance(colour, str) else np.ravel(colour)[:3])
    is_grey = colour[1:3] == colour[3:5] == colour[5:7]
    if is_grey and hasattr(first, "get_marker"):
        face = first.get_markerfacecolor()
        return colour, first.get_linestyle(), first.get_marker(), face == "white"
    return (colour,)
