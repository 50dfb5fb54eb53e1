"""Selectors from model files: a fresh one makes the state, the file fills it."""

import copy
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import is_classifier
from sklearn.utils import get_tags

from ofslib._model_files import OtherState, filled, plain
from ofslib.datasets.encoding import Encoding

# What a file fills of an object that has just begun to learn.
_FILLED = {"_state", "_online", "_warned"}
# What follows from the rest, and is in no file.
_DERIVED = {"_hyper", "_offset", "_computed"}
# What a model that only predicts has of a file, beside its parameters.
_FACTS = ("n_features_in_", "feature_names_in_", "classes_", "_numbering", "_encoding")
_FACTS += ("held_out_", "n_samples_seen_", "_frozen", "_learned_with")

_NUMBERINGS = ("from 1", "from 0", "hashed")


class Kept(NamedTuple):
    """The state of a model from a file that does not fit this version: it predicts only."""

    coef: np.ndarray | None
    intercept: Any
    index: np.ndarray  # the selected features
    reason: str  # why it does not learn


def parts_of(selector) -> dict[str, Any]:
    """What a file keeps of a selector, by the names of attributes."""
    selector._validate_params()
    parts = {name: part for name, part in vars(selector).items() if name not in _DERIVED}
    # Sorted, so that equal models are equal files.
    for name in {"_frozen", "_learned_with"} & parts.keys():
        parts[name] = dict(sorted(parts[name].items()))
    if isinstance(kept := parts.get("_state"), Kept):
        parts |= {"_state": (), "_kept": kept.reason}
    if encoding := parts.pop("_encoding", None):
        parts["_encoding"] = encoding._asdict()
    return parts


def model_alone(selector) -> dict[str, Any] | None:
    """What is enough to predict or to transform; None if there is no model."""
    if not hasattr(selector, "_state"):
        return None
    try:
        if not hasattr(selector, "_models"):
            return {"support_": selector.support_}
        coef, intercept = selector._models()
    except (ValueError, ArithmeticError):  # as of too few rows
        return None
    support = np.flatnonzero(np.atleast_2d(coef != 0).any(axis=0))
    return {"coef_": coef, "intercept_": intercept, "support_": support}


def restore(selector, parts: dict[str, Any], model: dict[str, Any] | None = None) -> None:
    """Init and fill: a fresh object makes the state, the file gives its values."""
    default = _restore_facts(selector, parts, parts.keys() - _FILLED - _DERIVED)
    if "_state" not in parts:
        if model:
            raise ValueError("it lacks what it learned")
        return
    learned = getattr(selector, "_learned_with", {}) | selector._frozen
    if unknown := [str(name) for name in learned if name not in default]:
        raise OtherState(f"it has parameters that are not known: {', '.join(unknown)}")
    if "_kept" in parts:
        raise OtherState(str(parts["_kept"]))
    learned = selector.get_params(deep=False) | learned
    # A copy, as a random generator may be used.
    fresh, p = type(selector)(**copy.deepcopy(learned)), selector.n_features_in_
    fresh._validate_params()
    if hasattr(selector, "classes_"):  # which say how many models there are
        fresh.classes_ = selector.classes_
    fresh._begin_like(parts)
    for name, value in vars(fresh).items():
        if name in _FILLED:
            setattr(selector, name, filled(parts.get(name), value, p, name))
        elif name in _DERIVED or name == "_frozen":
            setattr(selector, name, value)
    if not all(isinstance(word, str) for word in getattr(selector, "_warned", ())):
        raise ValueError("it has warnings that are no words")
    if missing := sorted(vars(fresh).keys() - vars(selector).keys()):
        raise ValueError(f"it lacks {missing[0]}")
    if hasattr(selector, "_learned_with"):
        selector._learned_with |= learned


def _restore_facts(selector, parts: dict, names) -> dict[str, Any]:
    """Take the parameters and these other parts; ValueError if they cannot be.

    Returns the default parameters.
    """
    default = type(selector)().get_params(deep=False)
    given = {name: plain(parts[name]) for name in parts if name in names or name in default}
    if "_encoding" in given:
        given["_encoding"] = Encoding.restored(given["_encoding"])
    if wrong := [name for name in given if callable(getattr(type(selector), name, None))]:
        raise ValueError(f"it has a {wrong[0]}")
    vars(selector).clear()
    vars(selector).update(default | given)
    selector._validate_params()
    p, n = (given.get(name, 0) for name in ("n_features_in_", "n_samples_seen_"))
    named = given.get("feature_names_in_")
    right = {
        f"{p} features and {n} rows": all(type(count) is int and count >= 0 for count in (p, n)),
        f"{p} features, and names of the shape {np.shape(named)}": named is None
        or (np.shape(named) == (p,) and all(isinstance(name, str) for name in named)),
        f"columns {selector._numbering!r}, not {', '.join(_NUMBERINGS)}": selector._numbering
        in (None, *_NUMBERINGS),
    }
    if is_classifier(selector) and ("classes_" in given or "_state" in parts):
        several, classes = get_tags(selector).classifier_tags.multi_class, selector.classes_
        two = np.shape(classes) == (2,) or (several and np.ndim(classes) == 1 and len(classes) > 2)
        right[f"the classes {classes}"] = two and isinstance(classes, np.ndarray)
    if wrong := [what for what, holds in right.items() if not holds]:
        raise ValueError(f"it has {wrong[0]}")
    return default


def restore_model(selector, parts: dict[str, Any], model: dict[str, Any], reason: str) -> None:
    """A selector of a file that does not fit this version predicts only, for this reason."""
    _restore_facts(selector, parts, _FACTS)
    p, support = selector.n_features_in_, np.asarray(model["support_"])
    if support.dtype.kind not in "iu" or not ((support >= 0) & (support < p)).all():
        raise ValueError(f"it has selected features that are none of {p}")
    selector._state = Kept(None, None, support, reason)
