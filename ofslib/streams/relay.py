"""Models that learn from the same rows, of which one takes over from another."""

from typing import Any, NamedTuple

import numpy as np


class Relay(NamedTuple):
    """Models that learn from the same rows, of which one takes over from another."""

    start: NamedTuple  # where the next one begins: keeps all features, or (forget) stays empty
    following: NamedTuple  # has begun there at the last takeover and is shown from the next one on
    shown: NamedTuple  # is shown, once there was a takeover
    seen: np.ndarray  # (1,) rows; of several stacked ones all the same


class AnytimeHyper(NamedTuple):
    start: Any  # of the model that keeps all features
    batch_size: int
    first: int  # mini-batches until the first maturity
    growth: float

    def around(self, seen: int) -> tuple[int, int]:
        """The last maturity (0: none yet) and the next one after `seen` rows, in mini-batches."""
        last, following, place = 0, self.first, 0
        while following * self.batch_size <= seen:
            place += 1
            last, following = following, max(following + 1, round(self.first * self.growth**place))
        return last, following

    def takeover(self, seen: int) -> int:
        """The next one after `seen` rows."""
        return self.around(seen)[1] * self.batch_size

    def learners(self, state: Relay) -> list[tuple[NamedTuple, Any]]:
        """The models that learn, each with its schedule; the last one is shown."""
        last, following = self.around(state.seen.flat[0])
        branch = self.start._replace(warmup=last, maturity=following)
        shown = self.start._replace(maturity=last)
        learning = zip(state[:3], (self.start, branch, shown), strict=True)
        return list(learning)[: 3 if last else 2]


class ForgetHyper(NamedTuple):
    schedule: Any  # of each model, from its own first row on
    rows: int  # between two takeovers

    def takeover(self, seen: int) -> int:
        """The next one after `seen` rows."""
        return (seen // self.rows + 1) * self.rows

    def learners(self, state: Relay) -> list[tuple[NamedTuple, Any]]:
        """The models that learn, each with its schedule; the last one is shown."""
        models = (state.following, state.shown)[: 1 + (state.seen.flat[0] >= self.rows)]
        return [(model, self.schedule) for model in models]


def show(state, block, hp, fold):
    """Show the rows of the block by `fold` to a model, or in turn to those of a relay.

    With stacked states the block has a row of targets and one of predictions for each.
    """
    if not hasattr(hp, "takeover"):
        return fold(state, block, hp)
    i = 0
    while i < len(block.order):
        seen = state.seen.flat[0]
        takeover = hp.takeover(seen)
        n = min(takeover - seen, len(block.order) - i)
        part = np.s_[..., i : i + n]
        margins = np.ascontiguousarray(block.margins[part])  # else a type of its own for kernels
        piece = block._replace(order=block.order[part], margins=margins)
        for model, own in hp.learners(state):
            done = fold(model, piece, own)
            if done < n:
                return i + done
        block.margins[part] = margins
        i += n
        state.seen[...] += n
        if seen + n == takeover:
            overwrite(state.shown, state.following)
            overwrite(state.following, state.start)
    return i


def overwrite(target: tuple, source: tuple) -> None:
    """Copy all arrays of a state into another one."""
    for to, part in zip(target, source, strict=True):
        if isinstance(part, np.ndarray):
            to[...] = part
        else:
            overwrite(to, part)


def new_relay(new_state, n_features: int) -> Relay:
    """A relay before the first data."""
    return Relay(*(new_state(n_features) for _ in range(3)), np.zeros(1, np.int64))
