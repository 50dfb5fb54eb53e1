"""Row streams of several classes whose models keep the same features."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from ofslib.kernels.rows import ROWS, Block
from ofslib.kernels.selection import rank
from ofslib.streams import rotation
from ofslib.streams.parameters import one_of, param


class Lines(NamedTuple):
    """The kernels of an algorithm that prunes: its lines, which each model of a class takes."""

    gather: Callable  # (state, block, start, hp, buffer): learn rows; the place that was reached
    descend: Callable  # (state, hp): a step with the rows of the mini-batch
    prunes: Callable  # (state, hp): whether features are dropped after it
    ranked_by: Callable  # (state, hp): the coefficients that features are ranked by
    drop: Callable  # (state, hp): keep the features with the largest values in `state.scratch[0]`


MULTICLASS = param(
    "With more than two classes: each has k features of its own (ovr), or all have the same k "
    "features (joint), ranked by the l2 norm over the classes of their coefficients.",
    one_of("ovr", "joint"),
    default="ovr",
)


def learn(model, block: Block) -> int:
    """Learn a block, which has targets and predictions of each class, by the model's `lines`."""

    def learn_models(states: Sequence, block: Block, hyper) -> int:
        done, n, buffer = 0, len(block.order), np.empty(4)
        own = [block._replace(y=y, margins=m) for y, m in zip(block.y, block.margins, strict=True)]
        while done < n:
            start = done
            for state, of_class in zip(states, own, strict=True):
                done = model.lines.gather(state, of_class, start, hyper, buffer)
                if done < n and state.batch.count[ROWS] < hyper.batch_size:
                    return done
            if states[0].batch.count[ROWS] == hyper.batch_size:
                step(model.lines, states, hyper)
        return n

    return rotation.learn(model._states, block, model._hyper, learn_models)


def finish(model) -> None:
    """Learn the rows of the last mini-batch."""
    for states, hyper in rotation.learners(model._states, model._hyper):
        if states[0].batch.count[ROWS]:
            step(model.lines, states, hyper)


def step(lines: Lines, states: Sequence, hyper) -> None:
    """A step of each model; all keep the same features."""
    for state in states:
        lines.descend(state, hyper)
    if lines.prunes(states[0], hyper):
        prune(lines, states, hyper)


def prune(lines: Lines, states: Sequence, hyper) -> None:
    """Keep the features whose coefficients have the largest l2 norms over the models."""
    first = states[0]
    norms = np.sqrt(sum(np.square(lines.ranked_by(state, hyper)) for state in states))
    noise = np.concatenate([state.noise for state in states])
    values = np.empty(len(norms))
    rank(values, norms, first.active, first.moments, hyper.importance, noise)
    for state in states:
        state.scratch[0] = values
        lines.drop(state, hyper)
