"""Online Lasso, elastic net, MCP and SCAD: dissertation, Section 3.2.5 and Algorithm 5.

A path of penalties, of which the one with the most features, but not more than k, tells the
features. Least squares on these is the model.
"""

from numbers import Real
from typing import ClassVar

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from ofslib.averages import RunningAverages
from ofslib.kernels.gram import coordinate_path, largest_eigenvalue, threshold_path
from ofslib.kernels.penalties import Penalty
from ofslib.streams.average_stream import AverageSelector
from ofslib.streams.parameters import (
    AT_LEAST_ONE,
    NOT_NEGATIVE,
    POSITIVE,
    estimator,
    number,
    one_of,
    param,
)
from ofslib.streams.selector import Classifier, Regressor, warn


@estimator
class OnlinePenalised(AverageSelector):
    """Base of the penalised methods; a subclass sets `penalty` and its `shape`."""

    description = (
        "Cost: about O(k p) per penalty and model; of all moments only those with the active "
        "features are read."
    )

    n_penalties: int = param("Number of penalties on the path.", AT_LEAST_ONE, default=200)
    penalty_ratio: float = param(
        "The last penalty, as a part of the first, which is the least that leaves no feature. They "
        "fall exponentially; the path ends early when it has more than k features.",
        number(Real, 0, 1, closed="neither"),
        default=1e-3,
    )
    refit: bool = param(
        "Whether the model is least squares on the selected features.", "boolean", default=True
    )
    solver: str = param(
        "How a penalty is solved: by coordinate descent that begins with the penalty before it, or "
        "by the printed Algorithm 5 (tisp), which begins at zero.",
        one_of("coordinate", "tisp"),
        default="coordinate",
    )
    n_iter: int = param(
        "Most sweeps, or gradient steps (tisp), per penalty.", AT_LEAST_ONE, default=1000
    )
    tol: float = param(
        "A penalty is solved when no coefficient changes by more than this part of the largest "
        "covariance of a standardised feature with y.",
        POSITIVE,
        default=1e-7,
    )
    learning_rate: float | None = param(
        "Step size eta (tisp), to be below 2 / lambda, lambda the largest eigenvalue of the "
        "standardised second moments. None: 1 / lambda, up to a percent that lambda is taken too "
        "small by.",
        number(Real, 0, 1, closed="right"),
        None,
        default=None,
    )

    penalty: ClassVar[Penalty]
    # The parameter that gives the penalty its shape, as `Penalty` explains it; "": that is 0.
    shape: ClassVar[str] = ""
    threshold: ClassVar[str] = "proper"

    def _shape(self) -> float:
        return float(getattr(self, self.shape)) if self.shape else 0.0

    def _coefs(self, standard, ks):
        W = self._path(standard, max(ks))
        sizes = np.count_nonzero(W, axis=1)
        # A path that was made for the largest k goes on where that of a lesser one has ended.
        ends = [np.argmax(sizes > k) if (sizes > k).any() else len(sizes) for k in ks]
        chosen = [end - 1 - np.argmax(sizes[:end][::-1]) for end in ends]
        if not self.refit:
            return W[chosen]
        models = {q: self._refit(standard, np.flatnonzero(W[q])) for q in set(chosen)}
        return np.array([models[q] for q in chosen])

    def solution_path(self, averages: RunningAverages) -> tuple[np.ndarray, np.ndarray]:
        """The models of the penalties, without refit; the estimator stays as it is.

        Parameters
        ----------
        averages : RunningAverages
            As for `fit_averages`, which says what is raised; not copied. `k` is not a criterion.

        Returns
        -------
        penalties : ndarray of shape (m,)
            Descending from the least that leaves no feature to the first with more than k, or to
            the end of the path.
        coefs : ndarray of shape (m, n_features)
            In the units of the rows.
        """
        self._validate_params()
        self._accept(averages)
        if isinstance(self.k, str):
            raise ValueError(f"k={self.k!r} must be a number: it says where the path ends")
        standard = averages.standardized(centre=self.fit_intercept)
        W = self._path(standard, int(self.k))
        return self._levels(standard)[: len(W)], W / standard.scale

    def _levels(self, standard) -> np.ndarray:
        top = np.abs(standard.S_xy).max()
        return top * np.geomspace(1.0, self.penalty_ratio, int(self.n_penalties))

    def _path(self, standard, most: int) -> np.ndarray:
        """The models of the first penalties, shape (m, p); the first model is zero."""
        S, b = standard.S_xx, standard.S_xy.astype(np.float64)
        levels = self._levels(standard)
        top = levels[0]
        if top == 0.0:
            return np.zeros((1, len(b)))
        own = (levels, int(self.penalty), self._shape(), most, self.tol * top, int(self.n_iter))
        if self.solver == "tisp":
            curvature = max(1.0, largest_eigenvalue(S))
            rate = self.learning_rate or 1.0 / curvature
            W, converged = threshold_path(S, b, *own, rate, self.threshold == "printed")
            if not (converged or rate * curvature < 2.0) or not np.isfinite(W).all():
                raise FloatingPointError(
                    f"{type(self).__name__} diverged: its steps are too large with "
                    f"learning_rate={rate:.3g}, which has to be below {2.0 / curvature:.3g}, "
                    "2 / lambda"
                )
        else:
            W, converged = coordinate_path(S, b, *own)
        if not converged:
            few = f"n_iter={self.n_iter} was too few to solve each penalty to tol={self.tol}"
            warn(few, ConvergenceWarning)
        return W


# Of the penalties that do not shrink large coefficients
THRESHOLD = param(
    "The map after a step of gradient descent (tisp): the proximal map of eta times the "
    "penalty (proper), or Theta(w; eta level) as in Algorithm 5 (printed).",
    one_of("proper", "printed"),
    default="proper",
)


@estimator
class OnlineLasso(OnlinePenalised):
    """Online Lasso."""

    sources = "sun2019online, sun2024novel, tibshirani1996regression"
    penalty = Penalty.elastic_net


@estimator
class OnlineLassoClassifier(Classifier, OnlineLasso):
    """Online Lasso for classification (dissertation, 3.2.5)."""


@estimator
class OnlineLassoRegressor(Regressor, OnlineLasso):
    """Online Lasso for regression (dissertation, 3.2.5)."""


@estimator
class OnlineElasticNet(OnlinePenalised):
    """Online elastic net."""

    sources = "sun2019online, sun2024novel, zou2005regularization"

    l2: float = param(
        "Weight of the penalty l2/2 w**2, w of a standardised feature.", NOT_NEGATIVE, default=0.01
    )
    penalty, shape = Penalty.elastic_net, "l2"


@estimator
class OnlineElasticNetClassifier(Classifier, OnlineElasticNet):
    """Online elastic net for classification (dissertation, 3.2.5)."""


@estimator
class OnlineElasticNetRegressor(Regressor, OnlineElasticNet):
    """Online elastic net for regression (dissertation, 3.2.5)."""


@estimator
class OnlineMCP(OnlinePenalised):
    """Online minimax concave penalty."""

    sources = "sun2019online, sun2024novel, zhang2010nearly"

    b: float = param(
        "The penalty is flat above b times its level.",
        number(Real, 1, closed="neither"),
        default=3.0,
    )
    threshold: str = THRESHOLD
    penalty, shape = Penalty.mcp, "b"


@estimator
class OnlineMCPClassifier(Classifier, OnlineMCP):
    """Online minimax concave penalty for classification (dissertation, 3.2.5)."""


@estimator
class OnlineMCPRegressor(Regressor, OnlineMCP):
    """Online minimax concave penalty for regression (dissertation, 3.2.5)."""


@estimator
class OnlineSCAD(OnlinePenalised):
    """Online smoothly clipped absolute deviation."""

    sources = "sun2019online, sun2024novel, fan2001variable"

    a: float = param(
        "The penalty is flat above a times its level.",
        number(Real, 2, closed="neither"),
        default=3.7,
    )
    threshold: str = THRESHOLD
    penalty, shape = Penalty.scad, "a"


@estimator
class OnlineSCADClassifier(Classifier, OnlineSCAD):
    """Online smoothly clipped absolute deviation for classification (dissertation, 3.2.5)."""


@estimator
class OnlineSCADRegressor(Regressor, OnlineSCAD):
    """Online smoothly clipped absolute deviation for regression (dissertation, 3.2.5)."""
