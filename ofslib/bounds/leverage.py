"""Online leverage scores: Wang et al. 2018 (`ofs`), Theorems 1, 2, Lemmas 1 to 4, Section 3.1.

Scores have no unit: they stay the same if all features, and the root of a ridge, are in other ones.
"""

from math import exp, log, log1p

import numpy as np
from numpy.typing import ArrayLike

from ofslib.bounds.statements import Inequality, check, is_printed, read, require


def ofs_theorem_1(A: ArrayLike, sampled: ArrayLike, epsilon: float) -> Inequality:
    """How well the scaled sample approximates the spectrum of all features.

    Parameters
    ----------
    A, sampled : array-like of shape (n, d) and (n, selected)
        All features as columns, and the selected ones over the roots of their probabilities.
    epsilon : float
        Accuracy.

    Returns
    -------
    Inequality
        The largest |x'(sampled sampled' - A A')x| over x'A A'x, and epsilon; without a unit.

    Raises
    ------
    DoesNotApply
        Unless epsilon < 1.
    ValueError, TypeError
        If the arrays have not as many rows, or A is 0; and as in `ofslib.bounds`.

    Examples
    --------
    >>> sides = ofs_theorem_1([[2.0, 0.0], [0.0, 1.0]], [[2.0, 0.0], [0.0, 1.1]], epsilon=0.3)
    >>> round(sides.left, 3), sides.right
    (0.21, 0.3)
    """
    _check_epsilon(epsilon)
    A = read("A", A, None, None)
    sampled = read("sampled", sampled, len(A), None)
    if not A.any():
        raise ValueError("A is 0")
    U, singular, _ = np.linalg.svd(A, full_matrices=False)
    rank = np.count_nonzero(singular > singular[0] * max(A.shape) * np.finfo(float).eps)
    white = (U[:, :rank] / singular[:rank]).T @ sampled
    deviation = white @ white.T - np.eye(rank)
    return Inequality(float(np.max(np.abs(np.linalg.eigvalsh(deviation)))), epsilon)


def _check_epsilon(epsilon):
    check(epsilon=epsilon)
    require(epsilon < 1, f"epsilon = {epsilon:g} is not in (0, 1)")


def _check_size(n, epsilon):
    check({"n": n})
    _check_epsilon(epsilon)
    require(n > 1, f"n = {n} <= 1")


def ofs_theorem_1_failure(
    n: int,
    epsilon: float,
    ridge: float = 0.0,
    smallest: float | None = None,
    variant: str = "corrected",
) -> float:
    """Bound on the probability that Theorem 1 fails, with c = 8 log(n) / epsilon^2.

    For scores that are not too small: those of Algorithm 1 if its first matrix has full row rank,
    those that are 1 outside the span of the sampled features, and those with a small ridge.

    Parameters
    ----------
    n : int
        Rows.
    epsilon : float
        Accuracy.
    ridge : float, default=0
        lambda, in units of a squared feature; 0 is none.
    smallest : float or None, default=None
        Smallest singular value of all features that is not 0; needed if there is a ridge.
    variant : {"corrected", "printed"}, default="corrected"
        2 n^(1 - 4 / ((1 + x) (1 + epsilon / 3))), x = lambda / ((1 + epsilon) smallest^2), if
        x <= 1 / 2: without a ridge at most 2 / n^2; or 1 / n, which takes no ridge into account.

    Returns
    -------
    float
        A probability, or more than 1.

    Raises
    ------
    DoesNotApply
        Unless epsilon < 1, n >= 2 and (corrected) x <= 1 / 2.
    ValueError, TypeError
        If `smallest` is missing; and as in `ofslib.bounds`.

    Examples
    --------
    >>> round(ofs_theorem_1_failure(50, 0.5), 6)
    0.00015
    """
    _check_size(n, epsilon)
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
        Leverage scores or more; not negative.
    n : int
        Rows.
    epsilon : float
        Accuracy.
    variant : {"corrected", "printed"}, default="corrected"
        c = 8 log(n) / epsilon^2 as in Algorithm 1, or 1 / epsilon.

    Returns
    -------
    float
        A number of features, at most d.

    Raises
    ------
    DoesNotApply
        Unless epsilon < 1 and n >= 2.
    ValueError, TypeError
        If a score is negative; and as in `ofslib.bounds`.

    Examples
    --------
    >>> ofs_lemma_1([0.01, 1.0], 3, 0.5, variant="printed")
    1.02
    """
    _check_size(n, epsilon)
    c = 1 / epsilon if is_printed(variant) else 8 * log(n) / epsilon**2
    scores = read("scores", scores, None)
    if np.any(scores < 0):
        raise ValueError("scores must not be negative")
    return float(np.minimum(c * scores, 1).sum())


def ofs_lemma_2(
    n: int, norm: float, epsilon: float, ridge: float, variant: str = "corrected"
) -> float:
    """Bound on the sum of the online leverage scores.

    Parameters
    ----------
    n : int
        Rows.
    norm : float
        Largest singular value of the features, in their unit.
    epsilon : float
        Accuracy.
    ridge : float
        lambda, in units of a squared feature.
    variant : {"corrected", "printed"}, default="corrected"
        8 n + 8 n log(1 + (1 + epsilon) norm^2 / ridge), where Theorem 1 holds, else with
        probability at most exp(-n) exceeded; or 8 n + 8 n log(norm^2), which depends on the unit.

    Returns
    -------
    float
        Without a unit; printed it may be negative.

    Raises
    ------
    DoesNotApply
        Unless epsilon < 1 and n >= 2.
    ValueError, TypeError
        As in `ofslib.bounds`.

    Examples
    --------
    >>> round(ofs_lemma_2(2, 2.0, 0.5, 0.5), 2)
    57.04
    """
    _check_size(n, epsilon)
    check(norm=norm, ridge=ridge)
    growth = norm**2 if is_printed(variant) else 1 + (1 + epsilon) * norm**2 / ridge
    return 8 * n + 8 * n * log(growth)


def ofs_selected_features(
    n: int, norm: float, epsilon: float, ridge: float, d: int, variant: str = "corrected"
) -> float:
    """Bound on the expected number of d features that are selected (Section 3.1).

    Parameters
    ----------
    n, norm, epsilon, ridge
        As in `ofs_lemma_2`.
    d : int
        Features.
    variant : {"corrected", "printed"}, default="corrected"
        64 n log(n) / epsilon^2 log(1 + norm^2 / ridge); or n log(d) log(norm) / epsilon^2, an order
        of growth that is printed with log(n) too.

    Returns
    -------
    float
        A number of features; it may exceed d and, printed, be 0 or negative.

    Raises
    ------
    DoesNotApply
        Unless epsilon < 1, n >= 2 and d >= 2.
    ValueError, TypeError
        As in `ofslib.bounds`.

    Examples
    --------
    >>> round(ofs_selected_features(2, 2.0, 0.5, 0.5, 10, variant="printed"), 2)
    12.77
    """
    _check_size(n, epsilon)
    check({"d": d}, norm=norm, ridge=ridge)
    require(d > 1, f"d = {d} <= 1")
    if is_printed(variant):
        return n * log(d) * log(norm) / epsilon**2
    # E exp(sum of scores / 8) det(A'A'^T + ridge)^-1 <= ridge^-n, of which Jensen takes the mean.
    return 8 * log(n) / epsilon**2 * 8 * n * log1p(norm**2 / ridge)


def _read_clusters(A, sampled, **labels):
    """Both matrices, and what clusters their rows are in."""
    A = read("A", A, None, None)
    found = [A, read("sampled", sampled, len(A), None)]
    for name, given in labels.items():
        found.append(np.asarray(given))
        if found[-1].shape != (len(A),):
            raise ValueError(f"{name} has shape {found[-1].shape}, must have ({len(A)},)")
    return found


def _cluster_cost(A, labels):
    residual = A.copy()
    for label in np.unique(labels):
        members = labels == label
        residual[members] -= A[members].mean(axis=0)
    return float(np.sum(residual**2))


def ofs_lemma_3(A: ArrayLike, sampled: ArrayLike, labels: ArrayLike, epsilon: float) -> Inequality:
    """Change of the k-means cost of a clustering by the selection of features.

    Parameters
    ----------
    A, sampled, epsilon
        As in `ofs_theorem_1`.
    labels : array-like of shape (n,)
        Clusters of the rows.

    Returns
    -------
    Inequality
        The change, and epsilon times the cost; in units of a squared feature.

    Raises
    ------
    DoesNotApply
        If the inequality of Theorem 1 does not hold.
    ValueError, TypeError
        As `ofs_theorem_1`, and if there is not a label for each row.

    Examples
    --------
    >>> A, sampled = [[2.0, 0.0], [0.0, 1.0]], [[2.0, 0.0], [0.0, 1.1]]
    >>> sides = ofs_lemma_3(A, sampled, [0, 0], epsilon=0.3)
    >>> round(sides.left, 3), sides.right
    (0.105, 0.75)
    """
    deviation, _ = theorem = ofs_theorem_1(A, sampled, epsilon)
    A, sampled, labels = _read_clusters(A, sampled, labels=labels)
    require(theorem.holds, f"deviation {deviation:.4g} > epsilon = {epsilon:g} in Theorem 1")
    cost = _cluster_cost(A, labels)
    return Inequality(abs(_cluster_cost(sampled, labels) - cost), epsilon * cost)


def ofs_theorem_2(
    A: ArrayLike, sampled: ArrayLike, labels: ArrayLike, best_labels: ArrayLike, epsilon: float
) -> Inequality:
    """k-means cost of the clustering that is best for the selected features.

    Parameters
    ----------
    A, sampled, epsilon
        As in `ofs_theorem_1`.
    labels, best_labels : array-like of shape (n,)
        The best clusterings by the selected features and by all.

    Returns
    -------
    Inequality
        The cost of `labels`, and (1 + epsilon) / (1 - epsilon) times that of `best_labels`; in
        units of a squared feature.

    Raises
    ------
    DoesNotApply
        If Lemma 3 does not apply, or by the selected features `labels` is the worse one.
    ValueError, TypeError
        As `ofs_lemma_3`.

    Examples
    --------
    >>> A, sampled = [[2.0, 0.0], [0.0, 1.0]], [[2.0, 0.0], [0.0, 1.1]]
    >>> sides = ofs_theorem_2(A, sampled, [0, 0], [0, 0], epsilon=0.3)
    >>> sides.left, round(sides.right, 3)
    (2.5, 4.643)
    """
    A, sampled, labels, best_labels = _read_clusters(
        A, sampled, labels=labels, best_labels=best_labels
    )
    costs = [_cluster_cost(sampled, each) for each in (labels, best_labels)]
    require(costs[0] <= costs[1], f"labels cost {costs[0]:.4g} > {costs[1]:.4g} = best_labels")
    ofs_lemma_3(A, sampled, labels, epsilon)
    factor = (1 + epsilon) / (1 - epsilon)
    return Inequality(_cluster_cost(A, labels), factor * _cluster_cost(A, best_labels))


def ofs_lemma_4(
    epsilon: float, variation: float, size: float, d: int, variant: str = "corrected"
) -> float:
    """Matrix Freedman inequality: bound on the probability that a martingale's norm is large.

    Parameters
    ----------
    epsilon, variation, size : float
        Norm of the martingale, any positive number; bounds on its predictable quadratic variation
        (in units of a squared norm) and on its steps.
    d : int
        Rows of the matrices.
    variant : {"corrected", "printed"}, default="corrected"
        2 d or d times exp(-(epsilon^2 / 2) / (variation + size epsilon / 3)).

    Returns
    -------
    float
        A probability, or more than 1.

    Raises
    ------
    ValueError, TypeError
        As in `ofslib.bounds`.

    Examples
    --------
    >>> round(ofs_lemma_4(1.0, 1.0, 1.0, 1, variant="printed"), 3)
    0.687
    """
    check({"d": d}, epsilon=epsilon, variation=variation, size=size)
    factor = d if is_printed(variant) else 2 * d
    return factor * exp(-(epsilon**2) / 2 / (variation + size * epsilon / 3))
