"""Streams of rows of which only the running averages are kept: dissertation, chapter 3."""

from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from functools import partial
from numbers import Integral, Real

import numpy as np
import scipy.sparse as sp
from scipy.special import gammaln
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from ofslib._interrupts import interrupts_held
from ofslib.averages import RunningAverages, Standardized
from ofslib.kernels.gram import least_squares
from ofslib.streams.parameters import AT_LEAST_ONE, POSITIVE, estimator, number, one_of, param
from ofslib.streams.selector import (
    LinearModel,
    one_vs_rest,
    target_and_weight,
    warn,
)


@estimator
class AverageStream(LinearModel):
    """Base of the methods that learn from running averages: dissertation, chapter 3.

    Rows only update the averages; the model is extracted when it is first asked for. A subclass
    defines `_coefs`.
    """

    fit_intercept: bool = param(
        "Centre the averages; else the model has no constant.", "boolean", default=True
    )
    adaptation: float | None = param(
        "Least weight alpha_n of a new row in the averages, by which old rows are forgotten "
        "(3.11). None: all rows have the same weight.",
        number(Real, 0, 1, closed="neither"),
        None,
        default=None,
    )
    dtype: str = param(
        "Precision of the second moments.", one_of("float32", "float64"), default="float64"
    )
    ridge: float = param(
        "Added to the diagonal of the standardised second moments wherever least squares has no "
        "unique solution, as with too few rows.",
        POSITIVE,
        default=1e-5,
    )

    frozen = ("dtype",)

    def _coefs(self, standard: Standardized, ks: Sequence[int]) -> np.ndarray:
        """Coefficients of the standardised features for each k, shape (len(ks), p)."""
        raise NotImplementedError

    def _compute(self, state):
        standard = state.standardized(centre=self.fit_intercept)
        of_each = self._of_each_label(standard)
        coefs = self._chosen_coefs(of_each, state.weight) / standard.scale[: self.n_features_in_]
        empty = ~coefs.any(axis=1)
        if state.n > 1 and empty.any():
            of = f" for the labels {self.classes_[empty].tolist()}" if len(empty) > 1 else ""
            related = any(one.S_xy.any() for one, none in zip(of_each, empty, strict=True) if none)
            why = "" if related else ": none is correlated with y, as if X or y were constant"
            warn(f"{type(self).__name__} has selected no feature{of}{why}.")
        pairs = zip(of_each, coefs, strict=True)
        intercepts = [one.intercept(coef) if self.fit_intercept else 0.0 for one, coef in pairs]
        return (coefs, np.array(intercepts)) if len(coefs) > 1 else (coefs[0], intercepts[0])

    def _chosen_coefs(self, standards: list[Standardized], weight: float) -> np.ndarray:
        """The coefficients of each model, of the standardised features."""
        if len(standards) == 1 or getattr(self, "multiclass", "ovr") == "ovr":
            return np.array([self._chosen_coef(standard, weight) for standard in standards])
        p = len(standards[0].scale)
        support = self._joint_support(standards, self.k) if self.k < p else np.arange(p)
        return np.array([self._refit(standard, support) for standard in standards])

    def _of_each_label(self, standard: Standardized) -> list[Standardized]:
        """The averages of each model: they share the features, and have labels of their own."""
        p = self.n_features_in_
        if len(standard.scale) == p:
            return [standard]
        S, scale, mean = standard.S_xx, standard.scale, standard.mean_x
        # S_xx of a label that is always the same is zero, its scale infinite.
        spread = np.where(np.isfinite(scale[p:]), scale[p:], 0.0)
        shared = standard._replace(
            S_xx=np.asfortranarray(S[:p, :p]),
            S_xy=standard.S_xy[:p],
            scale=scale[:p],
            mean_x=mean[:p],
        )
        return [
            shared._replace(
                S_xy=spread[c] * S[:p, p + c].astype(np.float64),
                S_yy=float(spread[c] ** 2),
                mean_y=float(mean[p + c]),
            )
            for c in range(len(spread))
        ] + [shared]

    def _chosen_coef(self, standard: Standardized, weight: float) -> np.ndarray:
        """The model's coefficients of the standardised features."""
        return self._coefs(standard, [len(standard.scale)])[0]

    def _refit(self, standard: Standardized, support) -> np.ndarray:
        """Least squares on some features: (3.6)."""
        coef = np.zeros(len(standard.scale))
        if len(support) == 0:
            return coef
        S, b = standard.S_xx, standard.S_xy[support]
        if len(support) < len(coef):
            S = S[np.ix_(support, support)]
        coef[support] = least_squares(S, b, standard.n - self.fit_intercept, self.ridge)
        return coef

    def fit_averages(self, averages: RunningAverages, copy: bool = True):
        """Learn from averages instead of rows; returns self.

        TypeError if these are no running averages, ValueError if they or a parameter do not suit.

        Parameters
        ----------
        averages : RunningAverages
            For a classifier y is -1 or +1, which are then `classes_`.
        copy : bool, default=True
            Learn from a copy. If False, later rows of either are rows of both.
        """
        self._validate_params()
        with self._unless_it_fails():
            self._accept(averages)
            self.n_features_in_ = averages.n_features
            self.__dict__.pop("feature_names_in_", None)
            if isinstance(self, ClassifierMixin):
                self.classes_ = np.array([-1, 1])
            self._begin(self.n_features_in_)
            self._state = averages.copy() if copy else averages
            self._end_block()
        return self

    def path(self, averages: RunningAverages, ks: Sequence[int]) -> np.ndarray:
        """The models of several sizes from the same averages; the estimator stays as it is.

        Parameters
        ----------
        averages : RunningAverages
            As for `fit_averages`, which says what is raised; not copied.
        ks : sequence of int
            Numbers of features, from 1 to n_features; each takes the place of the parameter k.

        Returns
        -------
        ndarray of shape (len(ks), n_features)
            Coefficients in the units of the rows. With an intercept that of the model `coef` is
            `averages.standardized().intercept(coef)`.
        """
        self._validate_params()
        self._accept(averages)
        p, ks = averages.n_features, list(ks) if isinstance(ks, Iterable) else ks
        if not isinstance(ks, list):
            raise TypeError(f"ks={ks!r} must be a sequence of whole numbers")
        if not ks or not all(isinstance(k, Integral) and 1 <= k <= p for k in ks):
            raise ValueError(f"ks={ks} must be whole numbers from 1 to n_features={p}")
        standard = averages.standardized(centre=self.fit_intercept)
        return self._coefs(standard, [int(k) for k in ks]) / standard.scale

    def _accept(self, averages: RunningAverages) -> None:
        if not isinstance(averages, RunningAverages):
            raise TypeError(f"averages must be RunningAverages, not {type(averages).__name__}")
        if averages.n == 0:
            raise ValueError("averages have seen no rows: call update first")
        if isinstance(self, ClassifierMixin) and abs(averages.S_yy - 1.0) > 1e-3:
            raise ValueError(f"averages have S_yy={averages.S_yy}; a classifier's y is -1 or +1")

    def _new_state(self, n_features: int) -> RunningAverages:
        """The state before the first row."""
        return RunningAverages(self._n_averaged(n_features), dtype=np.dtype(self.dtype))

    def _n_averaged(self, n_features: int) -> int:
        """Features of the averages: the labels of all models but the last stand behind."""
        return n_features + self._n_models - 1

    def _learn_block(self, state: RunningAverages, block: tuple) -> RunningAverages:
        """The state after a block of rows, X and y; it is the same one, changed."""
        X, y = block
        y, weight = target_and_weight(y)
        *others, last = one_vs_rest(y, self._n_models)
        if others:
            stack = partial(sp.hstack, format="csr") if sp.issparse(X) else np.hstack
            X = stack([X, np.transpose(others).astype(X.dtype)])
        return state.adapt(self.adaptation).update(X, last, weight)

    def _start(self, n_features):
        self._state = self._new_state(n_features)

    def _learn(self, X, y):
        self._state = self._learn_block(self._state, (X, y))
        self._end_block()

    _learn_more = _learn

    def _partial_fit(self, X, y, sample_weight=None, **known):
        # The averages are changed in place: they and what else is known of the rows go together.
        with interrupts_held() if self.__sklearn_is_fitted__() else nullcontext():
            return super()._partial_fit(X, y, sample_weight, **known)

    def _end_block(self) -> None:
        self._defer()
        self.n_samples_seen_ = self._state.n

    @property
    def averages_(self) -> RunningAverages:
        """RunningAverages
        The averages of the rows so far; to be read, not to be updated. With more than two classes
        y is +1 for the last one and else -1, and the same of all others stands behind the
        features."""
        check_is_fitted(self)
        return self._state

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_state")


MULTICLASS = param(
    "With more than two classes: each has k features of its own (ovr), or all have the same k "
    "features (joint), ranked by the l2 norm over the classes of their coefficients; k is then "
    "a number.",
    one_of("ovr", "joint"),
    default="ovr",
)


@estimator
class AverageSelector(AverageStream):
    """Base of those that keep k features, or as many as a criterion says.

    With weight n of the averages (the number of rows, unless old rows are forgotten), m features
    and the residual sum of squares RSS of a Gaussian model, AIC is n log(RSS / n) + 2 m and BIC is
    n log(RSS / n) + m log n; hence weights should have a mean of 1. A model of no feature is not
    among those compared. Both are for many more rows than features: where n is near p, RSS goes
    to zero faster than they grow. The extended BIC (Chen and Chen 2008, gamma = 1) adds
    2 log C(p, m) to BIC, as so many sets of m features were looked at.
    """

    k: int | str = param(
        "Number of features kept, or the criterion by which it is chosen from 1, ..., max_k: ebic, "
        "the extended BIC, also holds with more features than rows; aic and bic need many more "
        "rows than features.",
        AT_LEAST_ONE,
        one_of("aic", "bic", "ebic"),
        default=10,
    )
    max_k: int = param(
        "Most features that a criterion chooses; always fewer than rows, for ebic at most half as "
        "many.",
        AT_LEAST_ONE,
        default=100,
    )

    # The criterion finds how many there are, too.
    example = """
        >>> {name}(k="ebic").partial_fit(X, y).support_
        array([ 9, 19, 29])
    """

    def _validate_params(self):
        super()._validate_params()
        if getattr(self, "multiclass", "ovr") == "joint" and isinstance(self.k, str):
            raise ValueError(f"k={self.k!r} must be a number with multiclass='joint'")

    def _joint_support(self, standards: list[Standardized], k: int) -> np.ndarray:
        """The k features for several models, where `multiclass` may be joint."""
        raise NotImplementedError

    def _chosen_coef(self, standard, weight):
        p = len(standard.scale)
        if not isinstance(self.k, str):
            return self._coefs(standard, [min(int(self.k), p)])[0]
        if weight < 2:
            raise ValueError(
                f"k={self.k!r} takes sample_weight for numbers of rows, and they sum up to "
                f"{weight:.3g}: give weights with a mean of 1, or k as a number."
            )
        half, wanted = int(min(standard.n, weight) // 2), min(int(self.max_k), p)
        most = half if self.k == "ebic" else standard.n - 1 - self.fit_intercept
        coefs = self._coefs(standard, range(1, max(1, min(wanted, most)) + 1))
        some = coefs.any(axis=1)  # a path may leap from no feature to several
        coefs = coefs[some] if some.any() else coefs
        best = coefs[int(np.argmin([self._criterion(standard, weight, coef) for coef in coefs]))]
        chosen = np.count_nonzero(best)
        if wanted <= chosen < p and wanted <= most:
            warn(
                f"k={self.k!r} chose {chosen} features, as many as max_k={self.max_k} allows; more "
                "may be better: give a larger max_k."
            )
        if chosen >= half and chosen > 1:
            other = "give k a number" if self.k == "ebic" else "k='ebic' is made for few rows"
            warn(
                f"k={self.k!r} chose {chosen} features with a weight of {weight:.6g} rows: so near "
                f"to the number of rows no criterion tells signal from noise; {other}."
            )
        return best

    def _criterion(self, standard: Standardized, weight: float, coef: np.ndarray) -> float:
        support = np.flatnonzero(coef)
        w, S = coef[support], standard.S_xx[np.ix_(support, support)]
        variance = standard.S_yy - 2 * w @ standard.S_xy[support] + w @ S @ w
        # What rounding leaves of a perfect fit, up to 1.4 times the precision of the terms and as
        # likely below zero, tells nothing of models: its logarithm let features of noise in.
        terms = standard.S_yy + 2 * abs(w) @ abs(standard.S_xy[support]) + abs(w) @ abs(S) @ abs(w)
        of_moments = np.finfo(standard.S_xx.dtype).eps * standard.S_yy
        least = max(of_moments, 4 * np.finfo(float).eps * terms)
        m, p = len(support), len(coef)
        price = 2.0 * m if self.k == "aic" else np.log(weight) * m
        if self.k == "ebic":
            price += 2.0 * (gammaln(p + 1) - gammaln(m + 1) - gammaln(p - m + 1))
        return weight * np.log(max(variance, least, np.finfo(float).tiny)) + price
