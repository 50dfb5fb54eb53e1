"""How many rows near the boundary between two classes a model has to keep."""

import numpy as np
from scipy.special import expit

from ofslib import RenewableFSAClassifier
from ofslib.metrics import detection_rate
from ofslib.reproduction.methods import build
from ofslib.reproduction.studies import tidy
from ofslib.simulate import Equicorrelated

_BLOCK = 1000


def rows_kept(setting, seeds, data, *, design, n, strength, shares, others):
    """Detection rates in one pass over n rows, by the share of them that may be kept.

    There are n / 10 features, n / 100 of them true. Rows have columns share (0 of methods that keep
    none), method, metric and value.

    Parameters
    ----------
    design : {"nearly separable", "noisy"}
        The papers' rows (equal correlations of 1/2, coefficients and noise of 1: most labels are
        beyond doubt), or independent features and labels by log odds of equal coefficients.
    n : int
        Rows.
    strength : float
        The coefficients of the noisy rows.
    shares : sequence of float
        Of the n rows.
    others : mapping
        Methods by their names, each with its class and parameters.
    """
    rng, p, k = np.random.default_rng(seeds), n // 10, n // 100
    law = Equicorrelated(p=p, k=k, task="classification")
    if design == "nearly separable":
        X, y = next(law.stream(n, rng, n))
    else:
        X = rng.standard_normal((n, p))
        odds = strength * X[:, law.support].sum(axis=1)
        y = np.where(rng.random(n) < expit(odds), 1.0, -1.0)
    models = {(name, 0.0): build(dict(spec), k=k, random_state=0) for name, spec in others.items()}
    for share in shares:
        model = RenewableFSAClassifier(k=k, max_rows=max(8, round(share * n)))
        models["RenewableFSA", share] = model
    for (name, share), model in models.items():
        for start in range(0, n, _BLOCK):
            model.partial_fit(X[start : start + _BLOCK], y[start : start + _BLOCK], [-1.0, 1.0])
        rate = detection_rate(model.support_, law.support)
        yield from tidy({"DR": rate}, share=share, method=name)
