"""ofslib select: the k best features of a file, and a model."""

import copy
import os
import time
from typing import Any

import numpy as np

from ofslib._options import OWN, Misused, estimator, text_table
from ofslib.cli.printing import SHOWN, Report, cell, csv_table, few, warn_formulas
from ofslib.cli.rows import AS_IT_IS, AVERAGES_UP_TO, model_rows, opened, refuse_written

_MANY = 2  # labels; with more, each could have features of its own
# What several k are compared by: of two labels, of several, of numbers.
_BEST_BY = ("auc", "accuracy", "r2")
_TOLD = {"auc": "AUC", "log_loss": "log loss", "r2": "R2", "rmse": "RMSE"}


def select(args) -> Report:
    """The k best features of a file, or as many as a bound on false ones allows, and a model."""
    from ofslib.streams.holdout import evaluate, split

    if args.method != "auto":
        model = _model(args, args.method)  # what it does not take is said before a file is read
    refuse_written(args, "out", "model", "checkpoint", "plot")
    holdout = (0.0 if args.test else 0.1) if args.holdout is None else args.holdout
    several = args.fdr is None and len(args.k) > 1
    if args.plot:
        _refuse_plot(args.plot, several and (args.test or holdout))
    if args.test:  # or what is wrong with it would be found when all is learned
        of_table = {"n_features": None} if args.categorical else {}
        opened(args, args.test, cache=False, **AS_IT_IS, **of_table)
    again = args.passes > 1 or args.checkpoint is not None or several
    stream = opened(args, cache=again if args.cache is None else args.cache)
    version = stream.version()
    if args.method == "auto":
        model = _model(args, _suited(args, stream))
    classes = _classes(args, model, stream)
    learned, held = split(stream, holdout) if holdout else (stream, None)
    began, made, resumed = time.monotonic(), [], 0
    for k in args.k if several and not _averages(model) else [None]:
        one = model if k is None else copy.copy(model).set_params(k=k)
        path = f"{args.checkpoint}.k{k}" if k and args.checkpoint else args.checkpoint
        resumed += _rows_learned(path, one)
        made.append(_learned(one, learned, args, path, classes))
    if several and _averages(model):
        made = _of_each_k(made[0], args.k)
    seconds = time.monotonic() - began
    if args.model and args.test and not several:
        made[0].save(args.model)  # the file of --test may not be as it should
    for one in made if args.test or held else ():
        rows = model_rows(one, args, args.test)[1] if args.test else held
        one.held_out_ = evaluate(one, rows)
    if stream.version() != version:
        raise ValueError(f"{args.file}: its rows changed while they were learned; begin anew")
    best = max(made, key=lambda one: _quality(one)[1]) if several else made[0]
    lines, data = _summary(args, best, stream)
    if args.plot:
        _draw(args, made)
    shown = stream.n_rows * args.passes * (1 if _averages(model) else len(made)) - resumed
    data |= {"resumed_at": resumed, "seconds": seconds, "rows_per_second": shown / seconds}
    lines.append(f"{seconds:,.1f} s, {shown / seconds:,.0f} rows a second")
    if several:
        head, rows = _path(made, best)
        lines = [*text_table(head, rows), *lines]
        data["path"] = [{"k": one.k, **getattr(one, "held_out_", {})} for one in made]
    if resumed:
        files = f"{args.checkpoint}{'.k...' * several}"
        lines.append(f"went on from {files}, with {resumed:,} rows learned before")
    return lines, data


# -------------------------------------------------- before anything is learned


def _suited(args, stream) -> str:
    """The method that suits the rows.

    Methods on averages do not depend on the scales of features, and need their square; of two
    labels renewable-fsa learns the log odds.
    """
    if stream.n_features > AVERAGES_UP_TO:
        return "sfsa"
    if args.task == "regression" or len(_labels(args, stream, "a classifier")) > _MANY:
        return "olsth"
    return "renewable-fsa"


def _labels(args, stream, owner: str) -> Any:
    from ofslib.streams.checkpoint import labels_of

    return labels_of(stream, owner) if args.classes is None else args.classes


def _model(args, method: str | None):
    """The estimator that the options ask for."""
    bounded = args.fdr is not None
    if bounded and method not in (None, "knockoffs"):
        raise Misused(f"--fdr: --method {method} keeps -k features; leave one out")
    given = {"fdr": args.fdr, "random_state": 0} if bounded else {"k": max(args.k, key=_number)}
    given["n_passes"] = args.passes
    if args.class_weight is not None:
        given["class_weight"] = args.class_weight
    if options := [OWN[name] for name, _ in args.set if name in OWN]:
        raise Misused(f"--set: give it by its own option, {options[0]}")
    method = method or ("knockoffs" if bounded else "sfsa")
    return estimator(method, args.task, given | dict(args.set))


def _number(k: int | str) -> int:
    return k if isinstance(k, int) else 0


def _averages(model) -> bool:
    return hasattr(type(model), "averages_") and hasattr(model, "k")


def _classes(args, model, stream) -> Any:
    """The labels that were given; with more than two all are to have the same k features.

    Misused if the method cannot do so, unless it was asked for k features of each label.
    """
    from sklearn.base import is_classifier

    if not is_classifier(model):
        return None
    classes = _labels(args, stream, type(model).__name__)
    if len(classes) > _MANY and args.fdr is None and not args.per_class:
        own = dict(args.set).get("multiclass", "joint")
        if own != "joint" or "multiclass" not in model.get_params() or isinstance(model.k, str):
            raise Misused(
                f"-k: with {len(classes):,} labels {type(model).__name__} keeps k features of each "
                "label: --per-class asks for that; --method sfsa, anytime-sfsa, sgdt, ofsa or "
                "olsth keep k in all, if it is a number"
            )
        model.set_params(multiclass="joint")
    return args.classes


def _rows_learned(path: str | None, model) -> int:
    from ofslib.streams.checkpoint import read_checkpoint

    return read_checkpoint(path, model).rows if path and os.path.exists(path) else 0


# -------------------------------------------------- learning


def _learned(model, stream, args, path, classes):
    from ofslib.streams.checkpoint import fit_stream

    return fit_stream(model, stream, path, args.every, not args.quiet, classes)


def _of_each_k(model, ks) -> list:
    """The models of several k that the same averages give."""
    made = []
    for k in ks:
        one = copy.copy(model).set_params(k=k)
        one._end_block()
        made.append(one)
    return made


def _quality(model) -> tuple[str, float]:
    """The score that models are compared by."""
    scores = getattr(model, "held_out_", {})
    name = next((name for name in _BEST_BY if name in scores), "")
    return name, scores.get(name, -np.inf)


# -------------------------------------------------- what is said


def told(scores: dict[str, Any]) -> str:
    """Scores in a line."""
    words = []
    for name, value in scores.items():
        if isinstance(value, float) and name != "majority":
            words.append(f"{_title(name)} {value:.4f}")
            if name == "accuracy":
                words[-1] += f" (the commonest label: {scores['majority']:.4f})"
    return ", ".join(words)


def _title(name: str) -> str:
    return _TOLD.get(name, name.replace("_", " "))


def by_label(scores: dict[str, Any]) -> list[str]:
    """A table of the scores of each label."""
    found = scores.get("per_class", [])
    rows = [
        [cell(one["label"]), f"{one['rows']:,}"]
        + ["-" if (v := one[name]) is None else f"{v:.3f}" for name in ("precision", "recall")]
        for one in found[:SHOWN]
    ]
    more = [f"... and {len(found) - SHOWN:,} more labels"] * (len(found) > SHOWN)
    return [*text_table(["label", "rows", "precision", "recall"], rows), *more] if found else []


def _path(made, best) -> tuple[list[str], list[list[str]]]:
    """Head and rows of a table of the models of several k."""
    names = [n for n, v in getattr(best, "held_out_", {}).items() if isinstance(v, float)]
    names = [name for name in names if name != "majority"]
    rows = []
    for one in made:
        scores = [f"{one.held_out_[name]:.4f}" if name in one.held_out_ else "-" for name in names]
        why = (
            f"the best {_title(_quality(best)[0])}" if names else "the first, as there is no score"
        )
        mark = f"{why}: written" if one is best else ""
        rows.append([f"{one.k}", *scores, mark])
    return ["k", *(_title(name) for name in names), ""], rows


def _refuse_plot(path: str, several) -> None:
    """Misused, before any row is read, if no picture could be drawn."""
    from matplotlib.backend_bases import FigureCanvasBase

    if not several:
        raise Misused("--plot: give several numbers as -k, and rows to score on")
    form = os.path.splitext(path)[1].removeprefix(".").lower() or "png"
    if form not in (known := FigureCanvasBase.get_supported_filetypes()):
        raise Misused(f"--plot: expected the ending of a picture ({', '.join(known)}), got .{form}")


def _draw(args, made) -> None:
    """A picture of the score by k."""
    from matplotlib.figure import Figure

    from ofslib._files import whole_file

    name = _quality(made[0])[0]
    if not name:
        raise ValueError(f"--plot: no score: {made[0].held_out_['reason']}")
    figure = Figure(figsize=(5, 3.4), layout="constrained")
    axes = figure.add_subplot()
    made = sorted(made, key=lambda one: one.k)
    axes.plot([one.k for one in made], [_quality(one)[1] for one in made], "o-")
    where = args.test or "rows held out"
    axes.set(xscale="log", xlabel="features k", ylabel=f"{_title(name)} on {where}")
    axes.set_xticks([one.k for one in made], [f"{one.k:,}" for one in made])
    axes.minorticks_off()
    axes.grid(alpha=0.3)
    form = os.path.splitext(args.plot)[1].removeprefix(".") or "png"
    with whole_file(args.plot) as file:
        figure.savefig(file, format=form)


def _summary(args, model, stream) -> Report:
    """What is said of a model, after it is written with its features."""
    labels, head, chosen = _chosen(model, int(not (args.zero_based or args.hashed)))
    if args.hashed:
        head, chosen = _in_words(args, head, chosen)
    if args.model:
        model.save(args.model)
    if args.out:
        warn_formulas(args.out, [name for name, *_ in chosen])
        with csv_table(args.out, *head) as writer:
            writer.writerows(chosen)
    data = {"file": args.file, "rows": stream.n_rows, "features": stream.n_features}
    own = ("fdr", "k", "n_passes")
    data |= {"estimator": type(model).__name__}
    data |= {name: getattr(model, name) for name in own if hasattr(model, name)}
    data["intercept"] = np.asarray(model.intercept_).tolist()
    data["selected"] = [dict(zip(head, row, strict=True)) for row in chosen]
    data |= {name: getattr(args, name) for name in ("out", "model", "checkpoint", "plot", "test")}
    lines = [f"{args.file}: {stream.n_rows:,} rows of {stream.n_features:,} features"]
    many = f" for the labels {few(labels)}" * bool(labels)
    count = f"{len(chosen):,} feature{'s' * (len(chosen) != 1)} selected{many}"
    lines.append(f"{type(model).__name__}: {count}")
    if chosen:
        own = "" if labels else " ({:+.3g})"  # of several labels there are too many to be read
        largest = [f"{row[0]}{own.format(row[-1])}" for row in chosen[: SHOWN + 1]]
        lines.append(f"largest coefficients: {few(largest)}")
    if not labels:
        lines.append(f"intercept: {model.intercept_:+.3g}")
    if scores := getattr(model, "held_out_", None):
        data["held_out"] = scores
        where = args.test or "rows held out, which no pass learned"
        found = told(scores) or f"no score: {scores.get('reason', 'one label only')}"
        lines.append(f"on {scores['rows']:,} {'rows of ' * bool(args.test)}{where}: {found}")
        lines += by_label(scores)
    if hasattr(model, "online_score_") and args.passes == 1:
        data |= {"online_score": float(model.online_score_), "online_loss": model.online_loss_}
        what = "of the mean square of y around 0"
        if args.task == "classification":
            what = "of the labels"
        lines.append(
            f"progressive: {100 * model.online_score_:.1f} % {what}, each row predicted before it "
            "was learned, by all features that were left then"
        )
    if condition := getattr(model, "fdr_condition", ""):
        data["fdr_condition"] = condition
        lines.append(f"false ones: a share of at most {model.fdr:g} is expected {condition}")
    return lines, data


def _chosen(model, first: int) -> tuple[list[str], list[str], list[tuple]]:
    """The labels, if there are several models; the head and lines of a table of the features."""
    coef, support = np.atleast_2d(model.coef_), model.support_
    names = getattr(model, "feature_names_in_", range(first, coef.shape[1] + first))
    size = np.abs(coef[0]) if len(coef) == 1 else np.linalg.norm(coef, axis=0)
    order = support[np.lexsort((support, -size[support]))]
    labels = list(map(cell, model.classes_.tolist())) if len(coef) > 1 else []
    head = [f"coefficient of {label}" for label in labels] or ["coefficient"]
    return labels, ["feature", *head], [(str(names[j]), *coef[:, j].tolist()) for j in order]


def _in_words(args, head: list[str], chosen: list[tuple]) -> tuple[list[str], list[tuple]]:
    """The same table with the words that were hashed to each column, found in a second look."""
    from ofslib.datasets.hashed import words_of

    words = words_of(args.file, args.n_features, [int(row[0]) for row in chosen])
    rows = [(" or ".join(words[int(row[0])]), *row) for row in chosen]
    return ["words", *head], rows
