"""Sampling by online ridge leverage scores against the bounds of ofs, as features are seen."""

from functools import partial
from itertools import product

import numpy as np

from ofslib import OnlineLeverageSelector, bounds
from ofslib.reproduction.theory.curve import VARIANTS, number, points


def sampling(setting, seeds, data, *, n, epsilon, ridge, values, clusters):
    """Theorems 1 and 2, Lemma 2 and the number of selected features after so many features.

    Normal features with log-normal sizes; the scores have a ridge, but for the panel of orthogonal
    features, where Algorithm 1 is as printed. So few rows that the best clusterings are known.

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
    seed = int(rng.integers(2**31))
    sampled, seen, scores = _sample(A, epsilon, seed, variant="ridge", ridge=ridge)
    yield from _orthogonal(A, epsilon, values, seed)
    labels = [each for each in product(range(clusters), repeat=n) if each[0] == 0]
    for d in values:
        A_d, S_d = A[:, :d], sampled[:, : seen[d]]
        norm = float(np.linalg.norm(A_d, 2))
        deviation = bounds.ofs_theorem_1(A_d, S_d, epsilon)
        yield from points("Theorem 1", d, printed=epsilon, experiment=deviation.left)
        best, found = (_best(part @ part.T, labels) for part in (A_d, S_d))
        theorem = partial(bounds.ofs_theorem_2, A_d, S_d, found, best, epsilon)
        least = bounds.ofs_theorem_2(A_d, A_d, best, best, epsilon).left
        sides = {"printed": "right", "experiment": "left"}
        sides = {curve: number(theorem, side, least) for curve, side in sides.items()}
        yield from points("Theorem 2", d, **sides)
        lemma = {v: bounds.ofs_lemma_2(n, norm, epsilon, ridge, v) for v in VARIANTS}
        yield from points("Lemma 2", d, **lemma, experiment=float(scores[:d].sum()))
        # The printed one is an order of growth, without its constant.
        most = bounds.ofs_selected_features(n, norm, epsilon, ridge, d)
        yield from points("Number of selected features", d, corrected=most, experiment=int(seen[d]))


def _orthogonal(A, epsilon, values, seed):
    """Algorithm 1 as printed: from 50 features on they differ from 0 in the other rows."""
    n, d = A.shape
    early, upper = np.arange(d) < 50, np.arange(n)[:, None] < n // 2
    A = np.where(early == upper, A, 0)
    sampled, seen, _ = _sample(A, epsilon, seed, variant="printed", n_initial=1)
    for d in values:
        gap = bounds.ofs_theorem_1(A[:, :d], sampled[:, : seen[d]], epsilon).left
        yield from points("Theorem 1, orthogonal features", d, printed=epsilon, experiment=gap)


def _sample(A, epsilon, seed, **parameters):
    """The scaled sampled features, how many are among the first ones, and the scores."""
    model = OnlineLeverageSelector(eps=epsilon, random_state=seed, **parameters).fit(A)
    chosen = model.support_
    seen = np.searchsorted(chosen, np.arange(A.shape[1] + 1))
    return A[:, chosen] * model.weights_, seen, model.scores_


def _best(gram, labels):
    """The labels with the least k-means cost, of the rows with this Gram matrix."""

    def cost(each):
        each = np.array(each)
        groups = [np.flatnonzero(each == label) for label in np.unique(each)]
        return np.trace(gram) - sum(gram[np.ix_(g, g)].sum() / len(g) for g in groups)

    return min(labels, key=cost)
