"""Least squares and OLSth: Sun (2019), dissertation, what they find and their regret.

Lemmas 3 to 5, Propositions 2, 3, 5 and 6, Corollary 2, Theorems 2 and 4.

Features that are counted in a unit half as large have variances and eigenvalues four times, and
coefficients half as large. The corrected thresholds follow; the printed ones of (3.12) to (3.14)
are divided by four, and so are no thresholds of coefficients but where variances are 1.

The coefficients are ranked as they are: by `OLSthRegressor(ranking="raw")`. For its default,
standardised ranking, Remark 2 (`dissertation_corollary_2`) and `ofslib.beyond.union_bounds` have
bounds.
"""

from math import ceil, exp, log, sqrt

import numpy as np
from numpy.typing import ArrayLike

from ofslib.bounds.statements import (
    Inequality,
    Recovery,
    TailBound,
    check,
    check_numbers,
    is_printed,
    read,
    require,
)


def dissertation_lemma_3(t: float, sigma: float) -> float:
    """Bound 2 exp(-t^2 / (2 sigma^2)) on P(|X| >= t), X ~ N(0, sigma^2).

    Parameters
    ----------
    t, sigma : float
        In the unit of X.

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
    >>> round(dissertation_lemma_3(2.0, 1.0), 4)
    0.2707
    """
    check(t=t, sigma=sigma)
    return 2 * exp(-(t**2) / (2 * sigma**2))


def dissertation_lemma_4(n: int, smallest: float, trace: float, t: float, p: int) -> TailBound:
    """Lower tail of the smallest singular value of n Gaussian rows, over sqrt(n).

    Parameters
    ----------
    n, p : int
        Rows and features.
    smallest, trace : float
        Smallest eigenvalue and trace of the covariance, in units of a squared feature.
    t : float
        Share that is given away.

    Returns
    -------
    Tail
        It is below sqrt(smallest) (1 - t) - sqrt(trace / n), which may be negative, in the unit of
        a feature, with probability exp(-n t^2 / 2).

    Raises
    ------
    DoesNotApply
        Unless n > p.
    ValueError, TypeError
        As in `ofslib.bounds`.

    Examples
    --------
    >>> dissertation_lemma_4(100, smallest=4.0, trace=25.0, t=0.5, p=10).threshold
    0.5
    """
    check({"n": n, "p": p}, smallest=smallest, trace=trace, t=t)
    require(n > p, f"n = {n} <= p = {p}")
    return TailBound(sqrt(smallest) * (1 - t) - sqrt(trace / n), exp(-n * t**2 / 2))


def dissertation_proposition_3(
    n: int,
    p: int,
    sigma: float,
    eigenvalue: float,
    alpha: float = 1.0,
    C1: float = 2.0,
    variant: str = "corrected",
) -> Recovery:
    """Coefficients that OLSth finds: the k largest least-squares estimates are the true features.

    Given the rows, for `OLSthRegressor(ranking="raw")`. For its default, `ranking="standardized"`,
    use Remark 2: see `dissertation_corollary_2`.

    Parameters
    ----------
    n, p : int
        Rows and features.
    sigma : float
        Standard deviation of the noise.
    eigenvalue : float
        lambda, at most the smallest eigenvalue of X'X / n, in units of a squared feature.
    alpha : float, default=1.0
        Exponent of n.
    C1 : float, default=2.0
        Exponent in the probability 1 - 2 p^(1 - C1 n^(1 - alpha)). Printed: 2 / C, where every
        column has a mean square of at most C (2 if standardised); corrected: free.
    variant : {"corrected", "printed"}, default="corrected"
        2 sigma sqrt(2 C1 log(p) / (lambda n^alpha)), or (2 sigma / lambda) sqrt(log(p) / n^alpha)
        of (3.12), which has no factor 2 for separation and bounds the inverse by its 2-norm.

    Returns
    -------
    Recovery
        `beta_min` in units of a coefficient, label over feature; printed, of label over squared
        feature: it is meant for features of variance 1.

    Raises
    ------
    DoesNotApply
        Unless p >= 2, 0 < alpha <= 1 and C1 > 1.
    ValueError, TypeError
        As in `ofslib.bounds`.

    Examples
    --------
    >>> found = dissertation_proposition_3(10_000, 100, sigma=1.0, eigenvalue=0.8)
    >>> round(found.beta_min, 4), round(found.probability, 2)
    (0.096, 0.98)
    """
    check({"n": n, "p": p}, sigma=sigma, eigenvalue=eigenvalue)
    check_numbers(alpha=alpha, C1=C1)
    require(p > 1, f"p = {p} <= 1")
    require(0 < alpha <= 1, f"alpha = {alpha} is not in (0, 1]")
    require(C1 > 1, f"C1 = {C1:g} <= 1")
    if is_printed(variant):
        beta_min = 2 * sigma / eigenvalue * sqrt(log(p) / n**alpha)
    else:
        beta_min = 2 * sigma * sqrt(2 * C1 * log(p) / (eigenvalue * n**alpha))
    return Recovery(beta_min, 1 - 2 * float(p) ** (1 - C1 * n ** (1 - alpha)))


def dissertation_corollary_2(
    n: int, p: int, sigma: float, eigenvalue: float, C1: float = 2.0, variant: str = "corrected"
) -> Recovery:
    """Proposition 3 with alpha = 1 (3.13), whose arguments these are.

    For `OLSthRegressor(ranking="raw")`. With the eigenvalue of the correlations of the rows it is
    Remark 2, for the default `ranking="standardized"`. Then `beta_min` is that of the coefficients
    times the standard deviations of their features in these rows.

    Returns
    -------
    Recovery
        As `dissertation_proposition_3`; for Remark 2 in the unit of the labels.

    Raises
    ------
    DoesNotApply, ValueError, TypeError
        As `dissertation_proposition_3`.

    Examples
    --------
    >>> round(dissertation_corollary_2(10_000, 100, 1.0, 0.8, variant="printed").beta_min, 4)
    0.0536
    """
    return dissertation_proposition_3(n, p, sigma, eigenvalue, 1.0, C1, variant)


def dissertation_proposition_2(X: ArrayLike, y: ArrayLike, beta: ArrayLike) -> Inequality:
    """Half the mean squared error of all rows, and the same from their averages.

    ||y - X beta||^2 / (2 n) and beta'S_xx beta / 2 - beta'S_xy + S_yy / 2, which are equal. The
    printed right side has no S_yy / 2, which does not depend on beta.

    Parameters
    ----------
    X, y, beta : array-like of shape (n, p), (n,) and (p,)
        The rows, and coefficients.

    Returns
    -------
    Inequality
        In units of a squared label.

    Raises
    ------
    ValueError, TypeError
        If the shapes do not fit; and as in `ofslib.bounds`.

    Examples
    --------
    >>> dissertation_proposition_2([[1.0], [1.0]], [1.0, 3.0], [1.0])
    Inequality(left=1.0, right=1.0)
    """
    X = read("X", X, None, None)
    n, p = X.shape
    y, beta = read("y", y, n), read("beta", beta, p)
    left = np.sum((y - X @ beta) ** 2) / (2 * n)
    right = beta @ (X.T @ X / n) @ beta / 2 - beta @ (X.T @ y / n) + y @ y / (2 * n)
    return Inequality(float(left), float(right))


def _check_covariance(n, p, sigma, smallest, variance):
    check({"n": n, "p": p}, sigma=sigma, smallest=smallest, variance=variance)
    if smallest > variance:
        raise ValueError(
            f"smallest={smallest} must be at most variance={variance}: the smallest eigenvalue of "
            "a covariance is not above its diagonal entries"
        )


def _eigenvalue_bound(n, p, smallest, spread):
    """lambda of Theorem 2: (0.8 sqrt(smallest) - spread sqrt(p / n))^2."""
    require(n > p, f"n = {n} <= p = {p}")
    root = 0.8 * sqrt(smallest) - spread * sqrt(p / n)
    least = (spread / (0.8 * sqrt(smallest))) ** 2
    require(root > 0, f"n/p = {n / p:.4g} <= {least:.4g}, where the bound on the eigenvalue is 0")
    return root**2


def dissertation_theorem_2(
    n: int,
    p: int,
    sigma: float,
    smallest: float,
    variance: float,
    alpha: float = 1.0,
    C1: float = 2.0,
    variant: str = "corrected",
) -> Recovery:
    """Proposition 3 in terms of the covariance of the features (3.14).

    For `OLSthRegressor(ranking="raw")`, whose rows are Gaussian.

    Parameters
    ----------
    n, p : int
        Rows and features.
    sigma : float
        Standard deviation of the noise.
    smallest, variance : float
        Smallest eigenvalue of the covariance, and its largest diagonal entry, in units of a squared
        feature.
    alpha, C1 : float
        As in `dissertation_proposition_3`.
    variant : {"corrected", "printed"}, default="corrected"
        The spread rho of the features is the root of `variance`, or (printed) `variance` itself;
        and as in Proposition 3. Printed, C1 is 2 / C, where C is at least `variance`.

    Returns
    -------
    Recovery
        As `dissertation_proposition_3`.

    Raises
    ------
    DoesNotApply
        Unless Proposition 3 does, n > p and n / p > (rho / (0.8 sqrt(smallest)))^2; printed, if
        C1 > 2 / variance.
    ValueError, TypeError
        If smallest > variance; and as in `ofslib.bounds`.

    Examples
    --------
    >>> found = dissertation_theorem_2(10_000, 1000, sigma=1.0, smallest=1.0, variance=2.0)
    >>> round(found.beta_min, 4), round(found.probability, 3)
    (0.298, 0.998)
    """
    _check_covariance(n, p, sigma, smallest, variance)
    printed = is_printed(variant)
    most = 2 / variance
    require(not printed or C1 <= most, f"C1 = {C1:g} > 2 / variance = {most:g}, as printed")
    eigenvalue = _eigenvalue_bound(n, p, smallest, variance if printed else sqrt(variance))
    found = dissertation_proposition_3(n, p, sigma, eigenvalue, alpha, C1, variant)
    return Recovery(found.beta_min, found.probability - exp(-n / 50))


def dissertation_theorem_4(
    n: int,
    p: int,
    sigma: float,
    smallest: float,
    variance: float,
    C1: float = 2.0,
    start: int | None = None,
    variant: str = "corrected",
) -> Recovery:
    """Coefficients for which OLSth keeps the true features at all sample sizes from n_0 to n.

    For `OLSthRegressor(ranking="raw")`. By that the proof of Theorem 4 (3.28) gives OLSth the
    regret of least squares on the true features, O(n_0 / n + log(n) / n). (The regret is of the
    order printed without it, see docs/theory/dissertation.md.)

    Parameters
    ----------
    n, p : int
        Rows and features.
    sigma, smallest, variance, C1
        As in `dissertation_theorem_2`.
    start : int or None, default=None
        n_0, at least max(p + 1, 100 log(n), ((2 log(n) / log(p) + 1) / C1)^2), which None takes.
    variant : {"corrected", "printed"}, default="corrected"
        Printed: n in place of n_0 in the threshold, no rho beside sqrt(p / n_0), and as
        Proposition 3.

    Returns
    -------
    Recovery
        As `dissertation_proposition_3`, but with probability 1 - 3 / n, from `iterations`, n_0, on.

    Raises
    ------
    DoesNotApply
        Unless p >= 2, C1 > 1, n_0 is between the least one and n, and suffices for the eigenvalue
        bound.
    ValueError, TypeError
        If smallest > variance; and as in `ofslib.bounds`.

    Examples
    --------
    >>> found = dissertation_theorem_4(10**6, 10, sigma=1.0, smallest=1.0, variance=1.0)
    >>> round(found.beta_min, 3), found.iterations
    (1.392, 1382)
    """
    _check_covariance(n, p, sigma, smallest, variance)
    check_numbers(C1=C1)
    check({} if start is None else {"start": start})
    require(C1 > 1, f"C1 = {C1:g} <= 1")
    require(p > 1, f"p = {p} <= 1")
    printed = is_printed(variant)
    least = ceil(max(p + 1, 100 * log(n), ((2 * log(n) / log(p) + 1) / C1) ** 2))
    start = least if start is None else start
    require(least <= start <= n, f"n_0 = {start} is not in [{least}, n = {n}]")
    eigenvalue = _eigenvalue_bound(start, p, smallest, 1.0 if printed else sqrt(variance))
    rows = n if printed else start
    found = dissertation_proposition_3(rows, p, sigma, eigenvalue, 0.5, C1, variant)
    return Recovery(found.beta_min, 1 - 3 / n, start)


def dissertation_lemma_5(t: float, sigmas: ArrayLike) -> float:
    """Bound 2 exp(-t^2 / (2 sum sigma_i^2)) on P(|sum of D_i| >= t) (Azuma).

    Parameters
    ----------
    t : float
        In the unit of D_i.
    sigmas : array-like of shape (n,)
        The sub-Gaussian parameters of the martingale differences D_i, positive.

    Returns
    -------
    float
        A probability, or more than 1.

    Raises
    ------
    ValueError, TypeError
        If a sigma is not positive; and as in `ofslib.bounds`.

    Examples
    --------
    >>> round(dissertation_lemma_5(4.0, [1.0, 1.0]), 4)
    0.0366
    """
    sigmas = read("sigmas", sigmas, None)
    check(t=t)
    if not np.all(sigmas > 0):
        raise ValueError("sigmas must be positive")
    return 2 * exp(-(t**2) / (2 * float(sigmas @ sigmas)))


def dissertation_proposition_6(
    n: int, p: int, sigma: float, eigenvalue: float, square_bound: float, variant: str = "corrected"
) -> Recovery:
    """Proposition 3 for rows that need not be independent or Gaussian (Appendix B).

    For `OLSthRegressor(ranking="raw")`, as there.

    Parameters
    ----------
    n, p : int
        Rows and features.
    sigma, eigenvalue : float
        As in `dissertation_proposition_3`.
    square_bound : float
        M: features are below sqrt(M) in size, and feature times noise is sub-Gaussian with
        parameter sqrt(M) sigma.
    variant : {"corrected", "printed"}, default="corrected"
        4 (sigma / lambda) sqrt(M p log(p) / n) with probability 1 - 2 / p, or
        2 (sigma / lambda) sqrt(log(p) / n) with 1 - 2 p^(1 - 2 / M).

    Returns
    -------
    Recovery
        As `dissertation_proposition_3`.

    Raises
    ------
    DoesNotApply
        Unless p >= 2 and (printed) M < 2.
    ValueError, TypeError
        As in `ofslib.bounds`.

    Examples
    --------
    >>> found = dissertation_proposition_6(100, 4, sigma=2.0, eigenvalue=0.5, square_bound=1.5)
    >>> round(found.beta_min, 3), found.probability
    (4.614, 0.5)
    """
    check({"n": n, "p": p}, sigma=sigma, eigenvalue=eigenvalue, square_bound=square_bound)
    require(p > 1, f"p = {p} <= 1")
    if is_printed(variant):
        require(square_bound < 2, f"M = {square_bound:g} >= 2")
        beta_min = 2 * sigma / eigenvalue * sqrt(log(p) / n)
        return Recovery(beta_min, 1 - 2 * float(p) ** (1 - 2 / square_bound))
    beta_min = 4 * sigma / eigenvalue * sqrt(square_bound * p * log(p) / n)
    return Recovery(beta_min, 1 - 2 / p)


def dissertation_proposition_5(
    X: ArrayLike, y: ArrayLike, path: ArrayLike, start: int
) -> Inequality:
    """Regret of least squares after `start` rows, per row, in half the square loss.

    Its bound is (G^2 log(n / n_0) / m + M n_0 D^2) / (2 n), where the printed proof has log(n).

    Parameters
    ----------
    X, y : array-like of shape (n, p) and (n,)
        The rows.
    path : array-like of shape (n + 1, p)
        path[i] is the least-squares fit to the first i rows; the first `start` are not used.
    start : int
        n_0.

    Returns
    -------
    Inequality
        In units of a squared label.

    Raises
    ------
    DoesNotApply
        If X'X of the first n_0 rows is singular.
    ValueError, TypeError
        If the shapes do not fit, or n_0 >= n; and as in `ofslib.bounds`.

    Examples
    --------
    >>> path = [[0.0], [0.0], [0.0], [2 / 3]]
    >>> sides = dissertation_proposition_5([[1.0]] * 3, [0.0, 0.0, 2.0], path, start=2)
    >>> round(sides.left, 4), round(sides.right, 4)
    (0.3704, 0.4185)
    """
    check({"start": start})
    X = read("X", X, None, None)
    n, p = X.shape
    y, path = read("y", y, n), read("path", path, n + 1, p)
    if start >= n:
        raise ValueError(f"start={start} must be below the number of rows, {n}")
    gram = X[:start].T @ X[:start]
    ends = np.linalg.eigvalsh(gram / start)
    M, smallest = ends[-1], []
    require(ends[0] > 1e-12 * M, f"X'X of the first n_0 = {start} rows is singular")
    for i in range(start, n):
        gram += np.outer(X[i], X[i])
        smallest.append(np.linalg.eigvalsh(gram)[0] / (i + 1))
    used = path[start:]
    errors = np.einsum("ij,ij->i", X[start:], used[:-1]) - y[start:]
    regret = errors @ errors / 2 - np.sum((X[start:] @ used[-1] - y[start:]) ** 2) / 2
    G = np.max(np.abs(errors) * np.linalg.norm(X[start:], axis=1))
    D = max(np.max(np.linalg.norm(used - row, axis=1)) for row in used)
    bound = (G**2 * log(n / start) / min(smallest) + M * start * D**2) / (2 * n)
    return Inequality(float(regret / n), float(bound))
