"""Sampling by online ridge leverage scores against the bounds of ofs, as features are seen."""

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import product
from math import log
from typing import Any

import numpy as np

from ofslib import bounds
from ofslib.studies.curve import point


def sampling(
    setting: dict[str, Any],
    seeds: np.random.SeedSequence,
    data: None,
    *,
    n: int,
    epsilon: float,
    ridge: float,
    values: Sequence[int],
    clusters: int,
) -> Iterator[dict[str, Any]]:
    """Theorems 1 and 2, Lemma 2 and the number of selected features after so many features.

    Normal features with log-normal sizes. So few rows that the best clusterings are known.

    Parameters
    ----------
    n : int
        Rows.
    epsilon, ridge : float
        Accuracy, and lambda of the scores a'(A~A~' + lambda I)^-1 a.
    values : sequence of int
        Numbers of features seen.
    clusters : int
        Clusters of the k-means cost.
    """
    rng = np.random.default_rng(seeds)
    A = rng.standard_normal((n, max(values))) * rng.lognormal(size=max(values))
    sampled, scores, seen = _sample(A, epsilon, ridge, rng)
    labels = [each for each in product(range(clusters), repeat=n) if each[0] == 0]
    for d in values:
        A_d, S_d = A[:, :d], sampled[:, : seen[d - 1]]
        norm = float(np.linalg.norm(A_d, 2))
        deviation = bounds.ofs_theorem_1(A_d, S_d, epsilon)
        yield point("Theorem 1", d, "printed", epsilon)
        yield point("Theorem 1", d, "experiment", deviation.left)
        best, found = (_best(part @ part.T, labels) for part in (A_d, S_d))
        theorem = partial(bounds.ofs_theorem_2, A_d, S_d, found, best, epsilon)
        least = bounds.ofs_theorem_2(A_d, A_d, best, best, epsilon).left
        yield point("Theorem 2", d, "printed", partial(_share, theorem, 1, least))
        yield point("Theorem 2", d, "experiment", partial(_share, theorem, 0, least))
        for variant in ("printed", "corrected"):
            bound = bounds.ofs_lemma_2(n, norm, epsilon, ridge, variant)
            yield point("Lemma 2", d, variant, bound)
        yield point("Lemma 2", d, "experiment", float(scores[:d].sum()))
        name = "Number of selected features"
        yield point(name, d, "printed", bounds.ofs_selected_features(n, norm, epsilon, ridge))
        yield point(name, d, "experiment", int(seen[d - 1]))


def _share(theorem, side, least):
    return theorem()[side] / least


def _sample(A, epsilon, ridge, rng):
    """Scaled selected features, the scores, and how many are selected after each feature."""
    n, d = A.shape
    inverse, sampled, scores, seen = np.eye(n) / ridge, [], np.empty(d), np.empty(d, int)
    c = 8 * log(n) / epsilon**2
    for j, a in enumerate(A.T):
        image = inverse @ a
        scores[j] = min((1 + epsilon) * (a @ image), 1)
        probability = min(c * scores[j], 1)
        if rng.random() < probability:
            sampled.append(a / np.sqrt(probability))
            # Sherman and Morrison
            inverse -= np.outer(image, image) / (probability + a @ image)
        seen[j] = len(sampled)
    return np.transpose(sampled), scores, seen


def _best(gram, labels):
    """The labels with the least k-means cost, of the rows with this Gram matrix."""

    def cost(each):
        each = np.array(each)
        groups = [np.flatnonzero(each == label) for label in np.unique(each)]
        return np.trace(gram) - sum(gram[np.ix_(g, g)].sum() / len(g) for g in groups)

    return min(labels, key=cost)
