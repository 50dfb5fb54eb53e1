"""Row streams of several classes whose models keep the same features."""

from collections.abc import Callable, Sequence
from typing import ClassVar, NamedTuple

import numpy as np

from ofslib.kernels.rows import ROWS, Block
from ofslib.kernels.selection import best_models, rank
from ofslib.streams import rotation
from ofslib.streams.parameters import estimator, one_of, param
from ofslib.streams.restored import Kept
from ofslib.streams.row_stream import RowClassifier


class Lines(NamedTuple):
    """The kernels of an algorithm that prunes: its lines, which each model of a class takes."""

    gather: Callable  # (state, block, start, hp, buffer): learn rows; the place that was reached
    descend: Callable  # (state, hp): a step with the rows of the mini-batch
    prunes: Callable  # (state, hp): whether features are dropped after it
    ranked_by: Callable  # (state, hp): the coefficients that features are ranked by
    drop: Callable  # (state, hp): keep the features with the largest values in `state.scratch[0]`


@estimator
class JointClassifier(RowClassifier):
    """Classes whose models may keep the same features; stands before the `RowStream`.

    A family sets `lines`, and defines `_exposed(state)`, what `best_model` makes the model of.
    """

    multiclass: str = param(
        "With more than two classes: each has k features of its own (ovr), or all have the same k "
        "features (joint), ranked by the l2 norm over the classes of their coefficients.",
        one_of("ovr", "joint"),
        default="ovr",
    )

    frozen = ("multiclass",)
    lines: ClassVar[Lines]
    _exposed: ClassVar[Callable]

    @property
    def _joint(self) -> bool:
        return self._n_models > 1 and self._frozen["multiclass"] == "joint"

    def _models(self):
        fitted = self.__sklearn_is_fitted__() and not isinstance(self._state, Kept)
        if not fitted or not self._joint:
            return super()._models()
        return best_models([self._exposed(state) for state in self._states])

    def _learn_all(self, block):
        if not self._joint:
            return super()._learn_all(block)
        return rotation.learn(self._states, block, self._hyper, self._learn_jointly)

    def _finish_all(self):
        if not self._joint:
            return super()._finish_all()
        for models, hyper in rotation.learners(self._states, self._hyper):
            if models[0].batch.count[ROWS]:
                self._step_jointly(models, hyper)

    def _learn_jointly(self, models: Sequence, block: Block, hyper) -> int:
        """Learn the rows of a block, which has targets and predictions of each class."""
        done, n, buffer = 0, len(block.order), np.empty(4)
        own = [block._replace(y=y, margins=m) for y, m in zip(block.y, block.margins, strict=True)]
        while done < n:
            start = done
            for state, of_class in zip(models, own, strict=True):
                done = self.lines.gather(state, of_class, start, hyper, buffer)
                if done < n and state.batch.count[ROWS] < hyper.batch_size:
                    return done
            if models[0].batch.count[ROWS] == hyper.batch_size:
                self._step_jointly(models, hyper)
        return n

    def _step_jointly(self, models: Sequence, hyper) -> None:
        """A step of each model; all keep the same features."""
        for state in models:
            self.lines.descend(state, hyper)
        if self.lines.prunes(models[0], hyper):
            self._prune_jointly(models, hyper)

    def _prune_jointly(self, models: Sequence, hyper) -> None:
        """Keep the features whose coefficients have the largest l2 norms over the models."""
        first = models[0]
        norms = np.sqrt(sum(np.square(self.lines.ranked_by(state, hyper)) for state in models))
        noise = np.concatenate([state.noise for state in models])
        values = np.empty(len(norms))
        rank(values, norms, first.active, first.moments, hyper.importance, noise)
        for state in models:
            state.scratch[0] = values
            self.lines.drop(state, hyper)
