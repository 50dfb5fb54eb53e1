"""Penalties: soft thresholding, and the proximal map and the parabolas of each penalty."""

from enum import IntEnum

import numpy as np

from ofslib._jit import kernel


class Penalty(IntEnum):
    """Codes of the penalties of level L; each has a shape."""

    elastic_net = 0  # L |w| + shape/2 w**2; the Lasso has shape 0
    mcp = 1  # the minimax concave penalty (Zhang 2010), flat from shape L on
    scad = 2  # the smoothly clipped absolute deviation (Fan and Li 2001), flat from shape L on


@kernel
def soft(v, threshold):
    """argmin_w (w - v)**2 / 2 + threshold |w|."""
    return v - min(max(v, -threshold), threshold)


@kernel
def proximal(penalty, shape, v, level, step):
    """argmin_w (w - v)**2 / 2 + step P(w; level), for step < shape (MCP) or shape - 1 (SCAD).

    With step 1 it is what coordinate descent asks of a standardised feature, and for MCP the
    operator Theta(v; level) that the dissertation prints as (3.10).
    """
    if penalty == Penalty.elastic_net:
        return soft(v, step * level) / (1.0 + step * shape)
    if abs(v) > shape * level:
        return v
    if penalty == Penalty.mcp:
        return soft(v, step * level) / (1.0 - step / shape)
    if abs(v) <= (1.0 + step) * level:
        return soft(v, step * level)
    return soft(v, step * shape * level / (shape - 1.0)) / (1.0 - step / (shape - 1.0))


@kernel
def piece(penalty, shape, w, level):
    """Slope and curvature of P at w != 0, and the least and largest |w| of that parabola."""
    size, sign = abs(w), 1.0 if w > 0.0 else -1.0
    if penalty == Penalty.elastic_net:
        return sign * level + shape * w, shape, 0.0, np.inf
    if size >= shape * level:
        return 0.0, 0.0, shape * level, np.inf
    if penalty == Penalty.mcp:
        return sign * (level - size / shape), -1.0 / shape, 0.0, shape * level
    if size <= level:
        return sign * level, 0.0, 0.0, level
    slope = sign * (shape * level - size) / (shape - 1.0)
    return slope, -1.0 / (shape - 1.0), level, shape * level
