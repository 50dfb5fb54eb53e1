"""Every warning of a fit on rows, and every reason why a model is refused.

A warning is given once while it lasts: `_warned` of a model holds the kinds that last.
"""

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import assert_all_finite

from ofslib.kernels.losses import Loss, losses, total, value
from ofslib.kernels.rows import Moments
from ofslib.streams.online import ALL, HALF, SINCE_ASKED, Sums, of_mean_one
from ofslib.streams.selector import one_vs_rest, target_and_weight, warn

# Rows after which a model is looked at again, and last rows by which a returned model is judged.
WINDOW = 1000
# A loss so many times that of no features says that steps are too large, whatever the score.
FAR = 10.0
# Standard errors beyond which a difference is not left to chance.
ERRORS = 3.0
# Rows of the rarer label from which on a share is no matter of chance; and how many times rarer
# than by chance something has to be.
RARER = 20
# Rows that tell the scales of features, and that do not yet; values that are read, and at most
# where rows are wide.
SCALE_ROWS, TOO_FEW, VALUES, MOST_VALUES = 1000, 20, 2**16, 2**20
# From 300 to 1000 times the others on, one feature of 200 keeps SFSA from learning; methods whose
# steps are larger, or given as a number, already at 30 times.
UNLIKE = 300.0


# ------------------------------------------------------------------------------ how warnings go


def warn_while(model, kind: str, messages: list[str]) -> None:
    """Warn, once while it lasts, by the messages of each model; without one it is over."""
    wrong = [place for place, message in enumerate(messages) if message]
    if wrong and kind not in model._warned:
        message = messages[wrong[0]]
        if model._n_models > 1:
            labels = model.classes_[wrong].tolist()
            message = f"Labels {labels} against the others, numbers of the first: {message}"
        warn(message, ConvergenceWarning)
    model._warned = (*(k for k in model._warned if k != kind), *([kind] if wrong else []))


def warn_once(model, kind: str, message: str) -> None:
    """Warn once, if there is a message."""
    if message and kind not in model._warned:
        model._warned = (*model._warned, kind)
        warn(message, ConvergenceWarning)


# --------------------------------------------------------------------------------- while it runs


def check_k(model) -> None:
    """Warn if `k` was raised and the features that it asks for were dropped."""
    k = getattr(model, "_learned_with", {}).get("k", model.k)
    if k != model.k and (left := model._left_for_good()) < min(model.k, model.n_features_in_):
        warn(
            f"k={model.k}, but {type(model).__name__} has only {left} features left, as it has "
            f"learned with k={k}, and none comes back: to have more, begin anew by fit.",
            ConvergenceWarning,
        )


def watch(model, at_end: bool) -> bool:
    """Refuse a model that is not finite; warn of what makes one worthless.

    All of the state is looked at, so that what the next rows would make of it is no surprise
    either. Returns whether enough rows have come to judge the model.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        finite = all_finite(model._state)
    if not finite:
        raise diverged(model)
    n, online = model._n_models, model._online
    whole = [*map(of_mean_one, online[ALL, :n])]
    recent = [*map(of_mean_one, online[SINCE_ASKED, :n])]
    lasted = bool(recent[0].rows >= WINDOW)
    worse = [
        (lasted and worse_than_nothing(model, last)) or worse_than_nothing(model, sums)
        for last, sums in zip(recent, whole, strict=True)
    ]
    if lasted or any(worse):
        warn_while(model, "worse than nothing", worse)
    if lasted:
        online[SINCE_ASKED] = 0.0
    if at_end:
        warn_while(model, "empty", without_features(model))
    if "empty" not in model._warned:
        second = map(of_mean_one, (online[ALL] - online[HALF])[:n])
        warn_while(model, "one class", [one_class(model, sums) for sums in second])
    warn_while(model, "sorted", [sorted_by_label(model, sums) for sums in whole])
    return lasted


def only_observed(model, rows: int) -> None:
    """Warn, when a model is asked for, that so many rows only tell how large the steps may be."""
    message = (
        f"{type(model).__name__} has no features yet: with learning_rate='auto' the first {rows} "
        f"rows tell how large the steps may be, and {model.n_samples_seen_} were shown. A smaller "
        "`batch_size` needs fewer, and a number as `learning_rate` none."
    )
    warn_once(model, "only observed", message)


def worse_than_nothing(model, sums: Sums) -> str:
    """The message if the model was worse than none over these rows, or nothing."""
    empty = sums.weight * total(int(Loss[model.loss]), np.zeros(1), np.ones(1))
    constant = max(sums.positive, sums.negative)
    # The mean of so few losses, or the score of a constant, may be that much off by chance.
    chance = ERRORS * np.sqrt(constant * (1.0 - constant / sums.weight)) if constant else 0.0
    tells = sums.score >= constant + chance
    if sums.loss <= (FAR if tells else 1.0 + ERRORS / np.sqrt(sums.rows)) * empty:
        return ""
    what = "has a far larger loss" if tells else "predicts worse"
    return (
        f"{type(model).__name__} {what} than a model without features: over the last "
        f"{sums.rows:.0f} of {model.n_samples_seen_} rows online_loss_ is "
        f"{sums.loss / sums.rows:.3g} against {empty / sums.rows:.3g}, online_score_ "
        f"{sums.score / sums.weight:.3g} against {constant / sums.weight:.3g}. {advice(model)}"
    )


def without_features(model) -> list[str]:
    """The message for each model that has no feature, or nothing."""
    none = f"{type(model).__name__} has selected no feature. "
    pairs = zip(np.atleast_2d(model._models()[0]), model._states, strict=True)
    return ["" if coef.any() else none + model._advice_if_empty(state) for coef, state in pairs]


def one_class(model, sums: Sums) -> str:
    """The message if it predicts one class without having learned to, or nothing."""
    rarer = min(sums.positive, sums.negative)
    predicted = min(sums.predicted_positive, sums.predicted_negative)
    if rarer < RARER or rarer <= RARER * predicted:
        return ""
    least = least_of_constants(model.loss, sums.positive, sums.negative)
    # The best model of a rare class may do so, too, and hardly tell more than its share.
    if sums.loss <= (1.0 + 1.0 / np.sqrt(rarer)) * least:
        return ""
    return (
        f"{type(model).__name__} has predicted the same label for all but {predicted:.0f} of "
        f"the last {sums.rows:.0f} rows, though {rarer:.0f} have the rarer one, and is no "
        f"better than a constant: their mean loss is {sums.loss / sums.rows:.3g} against "
        f"{least / sums.rows:.3g}. Its coefficients may still be too small to tell: take "
        f"larger steps than with {step(model)}, more rows or n_passes, or {model._remedy()}."
    )


def sorted_by_label(model, sums: Sums) -> str:
    """The message if the rows are sorted by label, or nothing."""
    expected = 2.0 * sums.pairs * sums.positive * sums.negative / sums.rows**2
    if expected < RARER or expected <= RARER * sums.changes:
        return ""
    return (
        f"Rows seem to be sorted by label: {sums.changes:.0f} of {sums.pairs:.0f} rows have "
        f"another one than the row before, where {expected:.0f} would by chance. What "
        f"{type(model).__name__} predicts follows the last ones: show rows in random order."
    )


def best_constant(loss: str, positive: float, negative: float) -> float:
    """The constant margin of the least loss, of so many labels +1 and -1."""
    if loss == "log_loss":
        return float(np.log(positive / negative))
    balance = (positive - negative) / (positive + negative)
    return balance if loss == "squared_hinge" else float(np.sign(balance))


def least_of_constants(loss: str, positive: float, negative: float) -> float:
    """The sum of its losses."""
    code, m = int(Loss[loss]), best_constant(loss, positive, negative)
    return positive * value(code, m, 1.0) + negative * value(code, m, -1.0)


# ------------------------------------------------------------------------ a model that is refused


def all_finite(state) -> bool:
    """Whether all numbers of a state are finite."""
    if isinstance(state, np.ndarray):
        # A sum takes no memory; too large a one may be of numbers that are finite.
        return state.dtype.kind != "f" or bool(np.isfinite(state.sum()) or np.isfinite(state).all())
    return all(map(all_finite, state))


def squares_overflow(state) -> bool:
    """Whether a sum of squares of X is not finite."""
    if isinstance(state, Moments):
        return not np.isfinite(state.square).all()
    return isinstance(state, tuple) and any(map(squares_overflow, state))


def diverged(model) -> FloatingPointError:
    """The error of a model that is not finite."""
    seen = model.n_samples_seen_
    after = f"after {seen} rows or soon after" if seen else "in the first rows"
    if squares_overflow(model._state):
        return FloatingPointError(f"The squares of X overflow {after}: scale the features.")
    return FloatingPointError(f"{type(model).__name__} diverged {after}. {advice(model)}")


def refuse_row(model, X, i: int) -> None:
    """Raise the error for row i of X, which has no finite prediction."""
    values = X[i] if isinstance(X, np.ndarray) else X.data[X.indptr[i] : X.indptr[i + 1]]
    assert_all_finite(values, estimator_name=type(model).__name__, input_name="X")
    raise diverged(model)


def step(model) -> str:
    """The parameter that sets how large the steps are, and its value."""
    return f"{model.step_parameter}={getattr(model, model.step_parameter)!r}"


def advice(model) -> str:
    """What to do if steps are too large."""
    smaller = ""
    if getattr(model, model.step_parameter) != "auto":
        size = "smaller" if model.step_parameter == "learning_rate" else "larger"
        smaller = f"give a {size} one, "
    return (
        f"Its steps may be too large for these data with {step(model)}: {smaller}"
        "standardise dense features (of 0/1 features leave out the most frequent, and take "
        f"weights less unequal, if any), or {model._remedy()}."
    )


# ----------------------------------------------------------------------- a model that is returned


def judge(model, X, y, order) -> None:
    """Warn if the model that is returned is no better than a constant on the last rows.

    The losses that `watch` sees are those of the model in the making, with all features.
    """
    if model._warned:
        return
    rows = order[-WINDOW:]
    coef, intercept = model._models()
    coef = np.atleast_2d(coef)
    kept = np.flatnonzero(coef.any(axis=0))
    # Of an array only what counts is read: all of it may take as long as to learn from it.
    seen = X[rows][:, kept] if sp.issparse(X) else X[np.ix_(rows, kept)]
    margins = (seen @ coef[:, kept].T).T + np.reshape(intercept, (-1, 1))
    pairs = zip(margins, one_vs_rest(y[rows], model._n_models), strict=True)
    found = [no_better_than_constant(model.loss, *pair) for pair in pairs]
    if any(found):
        start = f"{type(model).__name__} returns a model that is no better than a constant: over "
        start += f"the last {len(rows)} rows "
        end = f". Take larger steps than with {step(model)}, more rows or n_passes, or a larger k."
        warn_while(model, "returned", [start + lacks + end if lacks else "" for lacks in found])


def no_better_than_constant(loss: str, margins: np.ndarray, y: np.ndarray) -> str:
    """What the predictions of these rows lack, or nothing.

    `margins` are those of the returned model; y holds numbers, or labels -1 and +1, or records of
    them with weights. The share of correct labels decides; where no threshold is better, a clearly
    larger loss: the best model of a rare label may never predict it.
    """
    y, weight = target_and_weight(y)
    n = len(y)
    weight = np.ones(n) if weight is None else weight * (n / weight.sum())
    if loss == "squared_error":
        left = weight @ np.square(y - margins)
        constant = weight @ np.square(y - np.average(y, weights=weight))
        if n < RARER or left < constant or constant == 0.0:
            return ""
        return f"mean squared errors are {left / n:.3g}, and {constant / n:.3g} with the mean of y"
    positive = weight @ (y > 0)
    constant = max(positive, n - positive)
    if min(np.sum(y > 0), np.sum(y < 0)) < RARER:
        return ""
    right = weight @ ((margins > 0) == (y > 0))
    chance = ERRORS * np.sqrt(constant * (1.0 - constant / n))
    if right >= constant + chance:
        return ""
    best, gain = best_threshold(margins, y, weight), weight * gains(loss, margins, y, weight)
    if best < right + chance and gain.sum() > -ERRORS * np.sqrt(gain @ gain):
        return ""
    found = f"{right / n:.3g} of the labels are right, and {constant / n:.3g} with a constant"
    return found + f" ({best / n:.3g} with the same coefficients and the best intercept)"


def best_threshold(margins, y, weight) -> float:
    """The largest weight of correct labels that any threshold of the margins gives."""
    order = np.argsort(margins)
    change = np.cumsum((weight * y)[order])  # of the correct ones, as the threshold rises
    last = np.append(np.diff(margins[order]) > 0.0, True)
    return weight @ (y > 0) - min(0.0, change[last].min())


def gains(loss: str, margins, y, weight) -> np.ndarray:
    """By how much the loss of each row is below that of the best constant margin."""
    code = int(Loss[loss])
    constant = best_constant(loss, weight @ (y > 0), weight @ (y < 0))
    return losses(code, np.full(len(y), constant), y) - losses(code, margins, y)


# ------------------------------------------------------------------------------ scales of features


class Scales(NamedTuple):
    """Sizes of features: the root of the mean square of their values that are not zero."""

    usual: float  # not more than half of the features have a larger one
    largest: float
    feature: int  # which has it

    @property
    def unlike(self) -> bool:
        """Whether the largest is so much larger that no steps suit it and the others."""
        return self.largest > UNLIKE * self.usual

    def message(self, names=None, first: int = 0) -> str:
        """How unlike they are; without names features are counted from `first`."""
        j = self.feature
        name = f"{j + first} (counted from {first:d})" if names is None else repr(str(names[j]))
        return (
            f"values of feature {name} are about {self.largest:.3g} in size, those of half of the "
            f"features at most {self.usual:.3g}"
        )


def scales(X, order) -> Scales | None:
    """Those in the first of these rows of an array or of sparse rows.

    None if all values are zero, or a square is not finite.
    """
    width = X.shape[1] if isinstance(X, np.ndarray) else len(X.data) / max(1, len(X.indptr) - 1)
    width = max(width, 1)
    few = min(TOO_FEW, MOST_VALUES / width)
    rows = order[: int(min(SCALE_ROWS, max(VALUES / width, few, 1)))]
    with np.errstate(over="ignore", invalid="ignore"):
        if isinstance(X, np.ndarray):
            data = X[rows].astype(np.float64)
            count, square = np.count_nonzero(data, axis=0), np.square(data).sum(axis=0)
        else:
            spans = [slice(X.indptr[i], X.indptr[i + 1]) for i in rows]
            data = np.concatenate([X.data[:0], *(X.data[span] for span in spans)], dtype=float)
            indices = np.concatenate([X.indices[:0], *(X.indices[span] for span in spans)])
            count, square = np.bincount(indices, data != 0), np.bincount(indices, np.square(data))
        features = np.flatnonzero(count)
        sizes = np.sqrt(square[features] / count[features])
    if not len(features) or not np.isfinite(sizes).all():
        return None
    largest = int(np.argmax(sizes))
    usual = np.sort(sizes)[(len(sizes) - 1) // 2]
    return Scales(float(usual), float(sizes[largest]), int(features[largest]))


def check_scales(model, X, order) -> None:
    """Warn of a feature far larger than the others in the first rows, unless these are few."""
    early = len(order) >= TOO_FEW and model.n_samples_seen_ < SCALE_ROWS
    found = scales(X, order) if early else None
    if found and found.unlike:
        message = found.message(getattr(model, "feature_names_in_", None))
        warn_once(
            model,
            "scales",
            f"{type(model).__name__}: {message}. Steps small enough for the one may be too small "
            "to learn the others: standardise the features, or leave it out.",
        )
