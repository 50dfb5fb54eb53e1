"""Row streams of several classes whose models keep the same features."""

from collections.abc import Callable
from typing import ClassVar

from ofslib.kernels.rows import ROWS
from ofslib.kernels.selection import best_models
from ofslib.kernels.together import stack, unstack
from ofslib.streams.parameters import estimator, one_of, param
from ofslib.streams.restored import Kept
from ofslib.streams.row_stream import RowClassifier


@estimator
class JointClassifier(RowClassifier):
    """Classes whose models may keep the same features; stands before the `RowStream`.

    A family defines `_learners(state)`, the models that learn, each with its hyper-parameters, and
    `_shown(state)`, what `best_model` makes the model of. It sets `fold_together` and
    `step_together`: as `fold` and `step`, with the states of all classes stacked, as `_state` then
    holds them, and a block that has a row of targets and one of predictions for each class.
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

    def _new_states(self, n_features, n_models):
        if not self._joint:
            return super()._new_states(n_features, n_models)
        return stack([self._new_state(n_features)] * n_models)

    @property
    def _states(self):
        return unstack(self._state) if self._joint else super()._states

    def _models(self):
        fitted = self.__sklearn_is_fitted__() and not isinstance(self._state, Kept)
        if not fitted or not self._joint:
            return super()._models()
        return best_models([self._shown(state) for state in self._states])

    def _learn_all(self, block):
        if not self._joint:
            return super()._learn_all(block)
        return type(self).fold_together(self._state, block, self._hyper)

    def _finish_all(self):
        if not self._joint:
            return super()._finish_all()
        for models, hyper in self._learners(self._state):
            if models.batch.count[0, ROWS]:
                type(self).step_together(models, hyper)
