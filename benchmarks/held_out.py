"""python -m benchmarks.held_out: scores on held-out rows beside liblinear, SGD and LightGBM.

Four kinds of data, as practitioners have them: clicks (rare labels, sparse rows), a table with
words, gaps and unlike scales, and twenty classes. All methods see the same rows; those of them
that have a strength of penalty take the best of a few by the held-out rows, which ours do not.
"""

import importlib.util
import tempfile
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import scipy.sparse as sp
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.metrics import roc_auc_score
from sklearn.preprocessing import MaxAbsScaler

import ofslib
from ofslib.datasets import open_stream
from ofslib.streams.holdout import split

HELD = 0.25  # share of the rows


class Rows(NamedTuple):
    """Rows to learn and rows to score on, and the number of features to keep."""

    name: str
    k: int
    X: Any
    y: np.ndarray
    X_held: Any
    y_held: np.ndarray


def clicks(share: float, n: int = 120_000, p: int = 10_000, true: int = 200) -> Rows:
    """Sparse rows of ones, of which this share are clicks."""
    rng = np.random.default_rng(0)
    X = sp.random_array((n, p), density=30 / p, rng=rng, format="csr")
    X.data[:] = 1.0
    w = np.zeros(p)
    w[rng.choice(p, true, replace=False)] = 2.0 * rng.standard_normal(true)
    margin = X @ w + rng.logistic(size=n)
    y = (margin > np.quantile(margin, 1 - share)).astype(int)
    return _cut(f"clicks, {100 * share:g} %", true, X, y)


def twenty_classes(n: int = 20_000, p: int = 1000, true: int = 50) -> Rows:
    """Dense rows of twenty classes, all told apart by the same features."""
    rng = np.random.default_rng(0)
    X, W = rng.standard_normal((n, p)), np.zeros((p, 20))
    W[:true] = rng.standard_normal((true, 20)) / 2
    return _cut("20 classes", true, X, (X @ W + rng.gumbel(size=(n, 20))).argmax(axis=1))


def _cut(name: str, k: int, X, y) -> Rows:
    learned, held = split(open_stream((X, y.astype(float))), HELD)
    return Rows(name, k, *_joined(learned, sp.issparse(X)), *_joined(held, sp.issparse(X)))


def _joined(part, sparse: bool) -> tuple[Any, np.ndarray]:
    X, y = zip(*part, strict=True)
    X = sp.vstack(X, format="csr")
    return X if sparse else X.toarray(), np.concatenate(y)


def messy(n: int = 20_000) -> Rows:
    """A table with words, gaps and scales from 1e-3 to 1e6, through the options of `select`."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({f"n{j}": 10.0 ** (j % 10 - 3) * rng.lognormal(size=n) for j in range(60)})
    hidden = sum(np.log(frame[f"n{j}"]) * s for j, s in enumerate((1, -1, 1, -1, 1)))
    for j, levels in enumerate((3, 12, 40)):
        codes, effects = rng.integers(0, levels, n), rng.standard_normal(levels)
        frame[f"w{j}"] = np.array([f"level {c}" for c in range(levels)])[codes]
        hidden = hidden + effects[codes]
    frame = frame.mask(rng.random(frame.shape) < 0.05)
    frame["y"] = np.where(hidden - hidden.median() + rng.logistic(size=n) > 0, "yes", "no")
    with tempfile.TemporaryDirectory() as folder:
        frame.to_csv(path := Path(folder) / "messy.csv", index=False)
        options = {"missing": "indicator", "categorical": "onehot", "cache": False}
        learned, held = split(open_stream(path, label="y", **options), HELD)
        X, y = _joined(learned, False)
        return Rows("messy table", 30, X, y, *_joined(held, False))


def methods(rows: Rows) -> Iterator[tuple[str, list]]:
    """Ours, and others with a few strengths of their penalties."""
    k, n = rows.k, len(rows.y)
    joint = {"multiclass": "joint"} if len(np.unique(rows.y)) > 2 else {}
    yield "SFSA", [ofslib.SFSAClassifier(k=k, random_state=0, **joint)]
    yield "SFSA, 5 passes", [ofslib.SFSAClassifier(k=k, n_passes=5, random_state=0, **joint)]
    if not joint and rows.X.shape[1] <= 3000:
        yield "RenewableFSA", [ofslib.RenewableFSAClassifier(k=k)]
    if rows.X.shape[1] <= 3000:
        yield "OLSth", [ofslib.OLSthClassifier(k=k, **joint)]
    own = {"l1_ratio": 1.0, "solver": "saga" if joint else "liblinear", "max_iter": 100}
    yield "liblinear, l1", [LogisticRegression(C=C, **own) for C in (0.03, 0.1, 1.0)]
    yield (
        "scikit-learn SGD, l1, 5 passes",
        [SGDClassifier("log_loss", penalty="l1", alpha=a / n, max_iter=5, tol=None, random_state=0)
         for a in (0.3, 1.0, 3.0)],
    )  # fmt: skip
    if importlib.util.find_spec("lightgbm"):
        from lightgbm import LGBMClassifier

        yield "LightGBM", [LGBMClassifier(verbose=-1, random_state=0)]


def scores(rows: Rows) -> Iterator[dict[str, Any]]:
    """Of each method its largest held-out AUC, the features it used, and its time."""
    scaler = MaxAbsScaler().fit(rows.X)
    for name, models in methods(rows):
        # liblinear and SGD are lost on unlike scales; ours get the rows as they are.
        ours = type(models[0]).__module__.startswith(("ofslib", "lightgbm"))
        X, X_held = (rows.X, rows.X_held) if ours else map(scaler.transform, (rows.X, rows.X_held))
        found = []
        for model in models:
            began = time.perf_counter()
            model.fit(X, rows.y)
            seconds = time.perf_counter() - began
            said = model.predict_proba(X_held) if hasattr(model, "predict_proba") else None
            if said is None:
                said = np.atleast_2d(model.decision_function(X_held).T).T
            auc = _auc(rows.y_held, said, model.classes_)
            coef = np.atleast_2d(getattr(model, "coef_", np.ones((1, X.shape[1]))))
            found.append((auc, int((coef != 0).any(axis=0).sum()), seconds))
        auc, used, seconds = max(found)
        yield {"data": rows.name, "method": name, "AUC": auc, "features": used, "s": seconds}


def _auc(y, said, classes) -> float:
    """That of the second label, or the mean over those of each label against the others."""
    if len(classes) == 2:
        return float(roc_auc_score(y == classes[1], said[:, -1]))
    return float(np.mean([roc_auc_score(y == c, said[:, i]) for i, c in enumerate(classes)]))


def main() -> None:
    """Print the table."""
    makers = [lambda s=s: clicks(s) for s in (0.005, 0.01, 0.02)] + [messy, twenty_classes]
    with warnings.catch_warnings(action="ignore"):
        found = [line for make in makers for line in scores(make())]
    print(pd.DataFrame(found).to_string(index=False, float_format="{:.3f}".format))


if __name__ == "__main__":
    main()
