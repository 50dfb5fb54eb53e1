"""Shrinkage: the proximal maps of the penalties l1 |w| and l1 |w| + l2/2 w**2."""

from ofslib._jit import kernel


@kernel
def soft(v, threshold):
    """argmin_w (w - v)**2 / 2 + threshold |w|."""
    return v - min(max(v, -threshold), threshold)


@kernel
def shrunk(w, times, threshold, factor):
    """w after `times` repetitions of w <- factor * soft(w, threshold)."""
    power, total = 1.0, times * threshold
    if factor < 1.0:
        power = factor**times
        total = threshold * factor * (1.0 - power) / (1.0 - factor)
    size = max(abs(w) * power - total, 0.0)
    return size if w > 0.0 else -size
