"""ofslib predict: what a model says of the rows of a file."""

import time
from contextlib import nullcontext

import numpy as np

import ofslib
from ofslib._options import Misused
from ofslib.cli.printing import Report, cell, csv_table, say, warn_formulas
from ofslib.cli.rows import model_rows, refuse_written
from ofslib.cli.selecting import by_label, told


def predict(args) -> Report:
    """What a model says of the rows of a file, and how often it is right."""
    from ofslib.metrics import Scores
    from ofslib.streams.checkpoint import reading
    from ofslib.streams.holdout import said_of

    refuse_written(args, "out")
    model = _loaded(args.model)
    name, labels = type(model).__name__, getattr(model, "classes_", np.empty(0)).tolist()
    if args.proba and not hasattr(model, "predict_log_proba"):
        raise Misused(f"--proba: {name} gives no probabilities; sfsa with its log loss does")
    warn_formulas(args.out, labels)
    head = ["prediction", *_columns(labels, args.proba)]
    (stream, blocks), began = model_rows(model, args, args.file), time.monotonic()
    unknown, n, scores = 0, 0, Scores(model.classes_ if labels else None)
    shown = nullcontext() if args.json and not args.out else csv_table(args.out, *head)
    with shown as writer, reading(stream, not args.quiet):
        for X, y, left_out in blocks:
            predicted, margins, log_proba = said_of(model, X)
            if writer:
                numbers = np.exp(log_proba) if args.proba else margins
                columns = [map(cell, predicted.tolist()), *numbers.T.tolist()][: len(head)]
                writer.writerows(zip(*columns, strict=True))
            n, unknown = n + len(y), unknown + left_out
            scores.add(y, predicted, margins, log_proba)
    found, seconds = scores.found(), time.monotonic() - began
    data = {"file": args.file, "rows": n, "estimator": name, "seconds": seconds}
    data |= {"unknown_values": unknown, "out": args.out, **found, "per_class": scores.per_class()}
    lines = [f"{args.file}: {n:,} rows, {seconds:,.1f} s"]
    lines.append(told(found) or f"no score: {scores.reason}")
    lines += by_label(data)
    if unknown:
        p = model.n_features_in_
        lines.append(f"not read: {unknown:,} values of features beyond the {p:,} of the model")
    if not (args.out or args.json):  # stdout is for the predictions
        say("\nofslib: ".join(lines))
        lines = []
    return lines, data


def _loaded(path: str):
    """The model of a file."""
    from ofslib._model_files import class_of, read

    name, _ = class_of(path)
    if ofslib.home_of(name) is None or not hasattr(getattr(ofslib, name), "predict"):
        raise ValueError(f"{path}: it holds a {name}, which predicts nothing")
    return read(getattr(ofslib, name), path)


def _columns(labels: list, proba: bool) -> list[str]:
    """The head of what stands beside the predictions."""
    if proba:
        return [f"probability of {cell(label)}" for label in labels]
    if len(labels) > 2:
        return [f"decision of {cell(label)}" for label in labels]
    return ["decision"] * bool(labels)
