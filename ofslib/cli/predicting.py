"""ofslib predict: what a model says of the rows of a file."""

import time
from contextlib import nullcontext

import ofslib
from ofslib._options import Misused
from ofslib.cli.printing import Report, cell, csv_table, say, warn_formulas
from ofslib.cli.rows import opened, read_once, refuse_written


def _numbered_as(model, args):
    """The rows to predict, with the columns numbered or hashed as the model learned them."""
    learned, p = model._numbering, model.n_features_in_
    if args.hashed:
        args.n_features = args.n_features or p
    if learned and opened(args, cache=False).numbering:  # a text
        option = "--hashed" * args.hashed or "--zero-based" * args.zero_based
        if option and learned != {"--hashed": "hashed"}.get(option, "from 0"):
            how = "numbered " * (learned != "hashed") + f"{learned}: give a file of such"
            raise Misused(f"{option}: {args.model} learned from columns {how}")
        args.hashed, args.zero_based = learned == "hashed", learned == "from 0"
        if args.hashed and (args.n_features or p) != p:
            message = f"{args.model} learned from names hashed to {p} columns"
            raise Misused(f"--n-features {args.n_features}: {message}")
        if args.hashed:
            args.n_features = p
    return read_once(args)


def predict(args) -> Report:
    """What a model says of the rows of a file, and how often it is right."""
    from sklearn.base import is_classifier

    from ofslib._model_files import class_of, read
    from ofslib.datasets.formats import refuse_columns
    from ofslib.metrics import Scores
    from ofslib.streams.checkpoint import reading

    refuse_written(args, "out")
    name, _ = class_of(args.model)
    if ofslib.home_of(name) is None or not hasattr(getattr(ofslib, name), "predict"):
        raise ValueError(f"{args.model}: it holds a {name}, which predicts nothing")
    model = read(getattr(ofslib, name), args.model)
    p = model.n_features_in_
    stream, began = _numbered_as(model, args), time.monotonic()
    refuse_columns(stream.name, stream.feature_names, getattr(model, "feature_names_in_", None))
    labels = model.classes_.tolist() if is_classifier(model) else []
    decisions = [f"decision of {cell(label)}" for label in labels] if len(labels) > 2 else []
    head = ["prediction", *(decisions or ["decision"] * bool(labels))]
    warn_formulas(args.out, labels)
    unknown, n, scores = 0, 0, Scores(model.classes_ if labels else None)
    shown = nullcontext() if args.json and not args.out else csv_table(args.out, *head)
    with shown as writer, reading(stream, not args.quiet):
        for X, y, *_ in stream:
            known = X
            if X.shape[1] != p and stream.feature_names is None:
                known = X[:, :p]
                known.resize(len(y), p)
            unknown += X.nnz - known.nnz
            predicted = model.predict(known)
            margins = model.decision_function(known) if labels else predicted
            margins = margins.reshape(len(y), -1)
            if writer:
                columns = [map(cell, predicted.tolist()), *margins.T.tolist()][: len(head)]
                writer.writerows(zip(*columns, strict=True))
            n += len(y)
            scores.add(y, predicted, margins)
    found, seconds = scores.found(), time.monotonic() - began
    data = {"file": args.file, "rows": n, "estimator": name, "seconds": seconds}
    data |= {"unknown_values": unknown, "out": args.out, **found}
    lines = [f"{args.file}: {n:,} rows, {seconds:,.1f} s"]
    told = [f"{score} {value:.4f}" for score, value in found.items()]
    lines.append(", ".join(told) or f"no score: {scores.reason}")
    if unknown:
        lines.append(f"not read: {unknown:,} values of features beyond the {p:,} of the model")
    if not (args.out or args.json):  # stdout is for the predictions
        say("\nofslib: ".join(lines))
        lines = []
    return lines, data
