"""Online leverage scores: Wang et al. 2018 (`ofs`), Theorems 1, 2, Lemmas 1 to 4, Section 3.1."""

from math import exp, log

import numpy as np
from numpy.typing import ArrayLike

from ofslib.bounds.statements import Sides, check, is_printed, require


def ofs_theorem_1(A: ArrayLike, sampled: ArrayLike, epsilon: float) -> Sides:
    """How well the scaled sample approximates the spectrum of all features.

    The largest |x'(sampled sampled' - A A')x| over x'A A'x, and epsilon.

    Parameters
    ----------
    A, sampled : array-like of shape (n, d) and (n, selected)
        All features as columns, and the selected ones over the roots of their probabilities.
    """
    A, sampled = np.asarray(A, float), np.asarray(sampled, float)
    _epsilon(epsilon)
    U, singular, _ = np.linalg.svd(A, full_matrices=False)
    rank = np.count_nonzero(singular > singular[0] * max(A.shape) * np.finfo(float).eps)
    white = (U[:, :rank] / singular[:rank]).T @ sampled
    deviation = white @ white.T - np.eye(rank)
    return Sides(float(np.max(np.abs(np.linalg.eigvalsh(deviation)))), epsilon)


def _epsilon(epsilon):
    check(epsilon=epsilon)
    require(epsilon < 1, f"epsilon = {epsilon:g} is not in (0, 1)")


def ofs_theorem_1_failure(
    n: int,
    epsilon: float,
    ridge: float = 0.0,
    smallest: float | None = None,
    variant: str = "corrected",
) -> float:
    """Bound on the probability that Theorem 1 fails, with c = 8 log(n) / epsilon^2; if n >= 2.

    For scores that are not too small: those of Algorithm 1 if its first matrix has full row rank,
    those that are 1 outside the span of the sampled features, and those with a small ridge.

    Parameters
    ----------
    smallest : float or None, default=None
        Smallest singular value of all features that is not 0; needed if there is a ridge.
    variant
        2 n^(1 - 4 / ((1 + x) (1 + epsilon / 3))), x = lambda / ((1 + epsilon) smallest^2), if
        x <= 1 / 2: without a ridge at most 2 / n^2; or 1 / n, which takes no ridge into account.
    """
    check({"n": n})
    _epsilon(epsilon)
    require(n > 1, f"n = {n} <= 1")
    if is_printed(variant):
        return 1 / n
    x = 0.0
    if ridge != 0:
        if smallest is None:
            raise ValueError(f"smallest must be given with ridge={ridge}")
        check(ridge=ridge, smallest=smallest)
        most = (1 + epsilon) * smallest**2 / 2
        require(ridge <= most, f"ridge = {ridge:g} > (1 + epsilon) smallest^2 / 2 = {most:.4g}")
        x = ridge / (2 * most)
    return 2 * float(n) ** (1 - 4 / ((1 + x) * (1 + epsilon / 3)))


def ofs_lemma_1(scores: ArrayLike, n: int, epsilon: float, variant: str = "corrected") -> float:
    """Expected number of features that are sampled with probabilities min(c scores, 1).

    Parameters
    ----------
    scores : array-like of shape (d,)
        Leverage scores or more.
    variant
        c = 8 log(n) / epsilon^2 as in Algorithm 1, or 1 / epsilon.
    """
    check({"n": n})
    _epsilon(epsilon)
    c = 1 / epsilon if is_printed(variant) else 8 * log(n) / epsilon**2
    return float(np.minimum(c * np.asarray(scores, float), 1).sum())


def ofs_lemma_2(
    n: int, norm: float, epsilon: float, ridge: float, variant: str = "corrected"
) -> float:
    """Bound on the sum of the online leverage scores; if n >= 2.

    Parameters
    ----------
    norm : float
        Largest singular value of the features.
    variant
        8 n + 8 n log(1 + (1 + epsilon) norm^2 / ridge), where Theorem 1 holds, else with
        probability at most exp(-n) exceeded; or 8 n + 8 n log(norm^2).
    """
    check({"n": n}, norm=norm, ridge=ridge)
    _epsilon(epsilon)
    require(n > 1, f"n = {n} <= 1")
    growth = norm**2 if is_printed(variant) else 1 + (1 + epsilon) * norm**2 / ridge
    return 8 * n + 8 * n * log(growth)


def ofs_selected_features(
    n: int, norm: float, epsilon: float, ridge: float, d: int, variant: str = "corrected"
) -> float:
    """Bound on the expected number of d features that are selected (Section 3.1); if n, d >= 2.

    8 log(n) / epsilon^2 times Lemma 2; or (printed) n log(d) log(norm) / epsilon^2, an order of
    growth that is printed with log(n) too.
    """
    check({"n": n, "d": d}, norm=norm, ridge=ridge)
    _epsilon(epsilon)
    require(min(n, d) > 1, f"n = {n} or d = {d} is below 2")
    if is_printed(variant):
        return n * log(d) * log(norm) / epsilon**2
    return 8 * log(n) / epsilon**2 * ofs_lemma_2(n, norm, epsilon, ridge)


def _cluster_cost(A, labels):
    A = np.asarray(A, float)
    residual = A.copy()
    for label in np.unique(labels):
        members = np.asarray(labels) == label
        residual[members] -= A[members].mean(axis=0)
    return float(np.sum(residual**2))


def ofs_lemma_3(A: ArrayLike, sampled: ArrayLike, labels: ArrayLike, epsilon: float) -> Sides:
    """Relative change of the k-means cost of a clustering by the selection of features.

    Applies if the inequality of Theorem 1, whose arguments these are, holds; `labels`, shape (n,),
    are the clusters of the rows.
    """
    deviation, _ = theorem = ofs_theorem_1(A, sampled, epsilon)
    require(theorem.holds, f"deviation {deviation:.4g} > epsilon = {epsilon:g} in Theorem 1")
    cost = _cluster_cost(A, labels)
    return Sides(abs(_cluster_cost(sampled, labels) - cost), epsilon * cost)


def ofs_theorem_2(
    A: ArrayLike, sampled: ArrayLike, labels: ArrayLike, best_labels: ArrayLike, epsilon: float
) -> Sides:
    """k-means cost of the clustering that is best for the selected features.

    Applies if Lemma 3 does, and `labels` is the better one by the selected features.

    Parameters
    ----------
    labels, best_labels : array-like of shape (n,)
        The best clusterings by the selected features and by all.
    """
    costs = [_cluster_cost(sampled, each) for each in (labels, best_labels)]
    require(costs[0] <= costs[1], f"labels cost {costs[0]:.4g} > {costs[1]:.4g} = best_labels")
    ofs_lemma_3(A, sampled, labels, epsilon)
    factor = (1 + epsilon) / (1 - epsilon)
    return Sides(_cluster_cost(A, labels), factor * _cluster_cost(A, best_labels))


def ofs_lemma_4(
    epsilon: float, variation: float, size: float, d: int, variant: str = "corrected"
) -> float:
    """Matrix Freedman inequality: bound on the probability that a martingale's norm is large.

    2 d, or (printed) d, times exp(-(epsilon^2 / 2) / (variation + size epsilon / 3)).

    Parameters
    ----------
    epsilon, variation, size : float
        Norm of the martingale; bounds on its predictable quadratic variation and on its steps.
    d : int
        Rows of the matrices.
    """
    check({"d": d}, epsilon=epsilon, variation=variation, size=size)
    factor = d if is_printed(variant) else 2 * d
    return factor * exp(-(epsilon**2) / 2 / (variation + size * epsilon / 3))
