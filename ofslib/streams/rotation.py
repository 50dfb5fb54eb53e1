"""Models that learn from the same rows and take turns in being the one that is exposed.

What is written here knows no algorithm. It copies states and changes the fields `warmup` and
`maturity` of hyper-parameters. Joint classes have one `Rotation` each, which turn at once.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ofslib.kernels.rows import Block


class Rotation(NamedTuple):
    """The states of three models."""

    start: NamedTuple  # where each model begins: keeps all features, or (forgetting) stays empty
    following: NamedTuple  # began there at the last hand-over, and is exposed from the next one on
    exposed: NamedTuple  # the model, once there was a hand-over
    seen: np.ndarray  # (1,) rows


class Anytime(NamedTuple):
    """Growing maturities: `following` matures at the next one, and is exposed from then on."""

    start: Any  # hyper-parameters of the model that keeps all features
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

    def next_turn(self, seen: int) -> int:
        """The rows at the hand-over after `seen` rows."""
        return self.around(seen)[1] * self.batch_size

    def learners(self, seen: int) -> list[tuple[str, Any]]:
        """The models that learn, each with its hyper-parameters; the last one is exposed."""
        last, following = self.around(seen)
        found = [
            ("start", self.start),
            ("following", self.start._replace(warmup=last, maturity=following)),
        ]
        return [*found, ("exposed", self.start._replace(maturity=last))] if last else found


class Forgetting(NamedTuple):
    """A new model begins every so many rows, and is exposed after as many."""

    hyper: Any  # hyper-parameters of each model, from its own first row on
    rows: int

    def next_turn(self, seen: int) -> int:
        """The rows at the hand-over after `seen` rows."""
        return (seen // self.rows + 1) * self.rows

    def learners(self, seen: int) -> list[tuple[str, Any]]:
        """The models that learn, each with its hyper-parameters; the last one is exposed."""
        names = ("following", "exposed") if seen >= self.rows else ("following",)
        return [(name, self.hyper) for name in names]


def forgetting(hyper, rows: int, **least: int) -> Forgetting:
    """The schedule that forgets; ValueError if a model is exposed before it has learned."""
    for name, needed in least.items():
        if needed > rows:
            raise ValueError(
                f"forget={rows} rows must be at least {name}={needed} rows: a new model has seen "
                "no more when it is shown."
            )
    return Forgetting(hyper, rows)


def new_rotation(new_state: Callable, n_features: int) -> Rotation:
    """A rotation before the first data."""
    return Rotation(*(new_state(n_features) for _ in range(3)), np.zeros(1, np.int64))


def learners(states: Sequence, hyper) -> list[tuple[Sequence, Any]]:
    """The models that learn, each of all classes, with its hyper-parameters; the last is exposed.

    `hyper` is a schedule, or the hyper-parameters of states that do not rotate.
    """
    if not isinstance(hyper, Anytime | Forgetting):
        return [(states, hyper)]
    found = hyper.learners(int(states[0].seen[0]))
    return [([getattr(state, name) for state in states], own) for name, own in found]


def learn(states: Sequence, block: Block, hyper, learn_models: Callable) -> int:
    """Learn a block by `learn_models(states, block, hyper)`; returns how many rows were learned.

    If the states rotate, each model learns in turn what comes before the next hand-over.
    """
    if not isinstance(hyper, Anytime | Forgetting):
        return learn_models(states, block, hyper)
    done = 0
    while done < len(block.order):
        seen = int(states[0].seen[0])
        turn = hyper.next_turn(seen)
        n = min(turn - seen, len(block.order) - done)
        part = np.s_[..., done : done + n]
        margins = np.ascontiguousarray(block.margins[part])  # else a type of its own for kernels
        piece = block._replace(order=block.order[part], margins=margins)
        for models, own in learners(states, hyper):
            learned = learn_models(models, piece, own)
            if learned < n:
                return done + learned
        block.margins[part] = margins
        done += n
        for state in states:
            state.seen[0] = seen + n
            if seen + n == turn:
                overwrite(state.exposed, state.following)
                overwrite(state.following, state.start)
    return done


def overwrite(target: tuple, source: tuple) -> None:
    """Copy all arrays of a state into another one."""
    for to, part in zip(target, source, strict=True):
        if isinstance(part, np.ndarray):
            to[...] = part
        else:
            overwrite(to, part)
