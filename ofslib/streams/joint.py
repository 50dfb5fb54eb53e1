"""Row streams of several classes whose models keep the same features."""

from collections.abc import Callable
from typing import ClassVar

from ofslib.kernels.rows import ROWS
from ofslib.kernels.selection import best_models
from ofslib.streams.parameters import estimator, one_of, param
from ofslib.streams.row_stream import RowClassifier


@estimator
class JointClassifier(RowClassifier):
    """Classes whose models may keep the same features; stands before the `RowStream`.

    A family defines `_learners(state)`, the models that learn, each with its hyper-parameters, and
    `_shown(state)`, what `best_model` makes the model of. It sets `fold_together` and
    `step_together`: as `fold` and `step`, with tuples of states and of blocks.
    """

    multiclass: str = param(
        "With more than two classes: each has k features of its own (ovr), or all have the same k "
        "features (joint), ranked by the l2 norm over the classes of their coefficients.",
        one_of("ovr", "joint"),
        default="ovr",
    )

    frozen = ("multiclass",)
    fold_together: ClassVar[Callable]
    step_together: ClassVar[Callable]
    _learners: ClassVar[Callable]
    _shown: ClassVar[Callable]

    @property
    def _joint(self) -> bool:
        return self._n_models > 1 and self._frozen["multiclass"] == "joint"

    def _models(self):
        if not self.__sklearn_is_fitted__() or not self._joint:
            return super()._models()
        return best_models([self._shown(state) for state in self._states])

    def _learn_blocks(self, blocks):
        if not self._joint:
            return super()._learn_blocks(blocks)
        return type(self).fold_together(self._states, tuple(blocks), self._hyper)

    def _finish_all(self):
        if not self._joint:
            return super()._finish_all()
        for learners in zip(*map(self._learners, self._states), strict=True):
            models, (hyper, *_) = zip(*learners, strict=True)
            if models[0].batch.count[ROWS]:
                type(self).step_together(models, hyper)
