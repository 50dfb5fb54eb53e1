"""ofslib select: the k best features of a file, and a model."""

import os
import time

import numpy as np

from ofslib._options import Misused, estimator
from ofslib.cli.printing import SHOWN, Report, cell, csv_table, few, warn_formulas
from ofslib.cli.rows import opened, refuse_written


def select(args) -> Report:
    """The k best features of a file, or as many as a bound on false ones allows, and a model."""
    bounded = args.fdr is not None
    if bounded and args.method not in (None, "knockoffs"):
        raise Misused(f"--fdr: --method {args.method} keeps -k features; leave one out")
    given = {"fdr": args.fdr, "random_state": 0} if bounded else {"k": args.k}
    given["n_passes"] = args.passes
    if options := [name for name, _ in args.set if name in given]:
        raise Misused(f"--set {options[0]}: give it by its own option")
    method = args.method or ("knockoffs" if bounded else "sfsa")
    model = estimator(method, args.task, given | dict(args.set))
    refuse_written(args, "out", "model", "checkpoint")
    from ofslib.streams.checkpoint import fit_stream, read_checkpoint

    again = args.passes > 1 or args.checkpoint is not None  # which is worth the disk
    cache, resumed = again if args.cache is None else args.cache, 0
    if args.checkpoint and os.path.exists(args.checkpoint):
        resumed = read_checkpoint(args.checkpoint, model).rows
    stream, began = opened(args, cache=cache), time.monotonic()
    fit_stream(model, stream, args.checkpoint, args.every, not args.quiet, args.classes)
    seconds = time.monotonic() - began
    labels, head, chosen = _chosen(model, int(not (args.zero_based or args.hashed)))
    if args.model:
        model.save(args.model)
    if args.out:
        warn_formulas(args.out, [name for name, *_ in chosen])
        with csv_table(args.out, *head) as writer:
            writer.writerows(chosen)
    speed = ((stream.n_rows - stream.start_row) * args.passes - resumed) / seconds
    data = {"file": args.file, "rows": stream.n_rows, "features": stream.n_features}
    data |= {"estimator": type(model).__name__, **given}
    data["intercept"] = np.asarray(model.intercept_).tolist()
    data["selected"] = [dict(zip(head, row, strict=True)) for row in chosen]
    data |= {"resumed_at": resumed, "seconds": seconds, "rows_per_second": speed}
    data |= {name: getattr(args, name) for name in ("out", "model", "checkpoint")}
    lines = [f"{args.file}: {stream.n_rows:,} rows of {stream.n_features:,} features"]
    if hasattr(model, "online_score_"):
        data |= {"online_score": float(model.online_score_), "online_loss": model.online_loss_}
        what = "of the mean square of y predicted (around 0, not around its mean)"
        if args.task == "classification":
            what = "of the labels predicted"
        lines.append(f"{100 * model.online_score_:.1f} % {what}, each row before it was learned")
    many = f" for the labels {few(labels)}" * bool(labels)
    count = f"{len(chosen):,} feature{'s' * (len(chosen) != 1)} selected{many}"
    lines.append(f"{type(model).__name__}: {count}")
    if chosen:
        largest = [f"{name} ({few(values, '+.3g')})" for name, *values in chosen[: SHOWN + 1]]
        lines.append(f"largest coefficients: {few(largest)}")
    lines.append(f"intercept: {few(np.atleast_1d(model.intercept_), '+.3g')}")
    lines.append(f"{seconds:,.1f} s, {speed:,.0f} rows a second")
    if condition := getattr(model, "fdr_condition", ""):
        data["fdr_condition"] = condition
        lines.append(f"false ones: a share of at most {model.fdr:g} is expected {condition}")
    if resumed:
        lines.append(f"went on from {args.checkpoint}, with {resumed:,} rows learned before")
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
