"""Stochastic gradient descent without annealing (`sfsa`): Section 4."""

from math import exp, expm1, log1p, sqrt

import numpy as np
from numpy.typing import ArrayLike

from ofslib.bounds.statements import (
    Inequality,
    Recovery,
    check,
    check_numbers,
    is_printed,
    read,
    require,
)


def sfsa_proposition_4_1(
    path: ArrayLike,
    gradients: ArrayLike,
    population_gradients: ArrayLike,
    truth: ArrayLike,
    eta: float,
    convexity: float,
    G: float,
) -> Inequality:
    """The squared error after each step against that before it.

    Parameters
    ----------
    path : array-like of shape (T + 1, p)
        beta_1 .. beta_(T+1).
    gradients, population_gradients : array-like of shape (T, p)
        Of the step's loss and of its expectation, at beta_1 .. beta_T.
    truth : array-like of shape (p,)
        Minimiser of the expected loss.
    eta : float
        Step size.
    convexity, G : float
        lambda, and the bound on the norms of the gradients.

    Returns
    -------
    Inequality
        Arrays of shape (T,), in units of a squared coefficient.

    Raises
    ------
    DoesNotApply
        If a gradient exceeds G, or the expected loss is less convex along the path.
    ValueError, TypeError
        If an array has another shape; and as in `ofslib.bounds`.

    Examples
    --------
    A step of .1 on (b - 1)^2 / 2 from 0, where the gradient is -1, without noise:

    >>> sides = sfsa_proposition_4_1([[0.0], [0.1]], [[-1.0]], [[-1.0]], [1.0], 0.1, 1.0, 1.0)
    >>> sides.left.round(3), sides.right.round(3)
    (array([0.81]), array([0.81]))
    """
    squared, gains = _descent(path, gradients, population_gradients, truth, convexity, G)
    check(eta=eta)
    right = (1 - 2 * convexity * eta) * squared[:-1] + (eta * G) ** 2 + 2 * eta * gains
    return Inequality(squared[1:], right)


def _descent(path, gradients, population_gradients, truth, convexity, G):
    """Squared errors from the start on, and the noise towards the truth; Assumptions 2 and 3."""
    check(convexity=convexity, G=G)
    gradients = read("gradients", gradients, None, None)
    T, p = gradients.shape
    path, mean = (
        read("path", path, T + 1, p),
        read("population_gradients", population_gradients, T, p),
    )
    away = path - read("truth", truth, p)
    squared = np.einsum("ij,ij->i", away, away)
    largest = np.max(np.linalg.norm(gradients, axis=1))
    require(largest <= G * (1 + 1e-9), f"a gradient has norm {largest:.4g} > G = {G:.4g}")
    slack = np.einsum("ij,ij->i", away[:-1], mean) - convexity * squared[:-1]
    require(np.min(slack) >= -1e-9, f"the loss is not {convexity:.4g}-strongly convex on the path")
    return squared, -np.einsum("ij,ij->i", away[:-1], gradients - mean)


def _sfsa_step(T, alpha, convexity, printed):
    """Step size T^-alpha and contraction 1 - 2 lambda eta, which must not be negative."""
    check({"T": T}, convexity=convexity)
    check_numbers(alpha=alpha)
    require(0.5 < alpha < 1, f"alpha = {alpha} is not in (1/2, 1)")
    eta = T**-alpha
    shrink = 1 - 2 * convexity * eta
    if not printed:
        require(shrink >= 0, f"2 lambda eta = {1 - shrink:.4g} > 1")
    return eta, shrink


def sfsa_theorem_4_1(
    path: ArrayLike,
    gradients: ArrayLike,
    population_gradients: ArrayLike,
    truth: ArrayLike,
    alpha: float,
    convexity: float,
    G: float,
    variant: str = "corrected",
) -> Inequality:
    """Squared error after T steps of size T^-alpha from 0 (5).

    The other arguments are those of `sfsa_proposition_4_1`.

    Parameters
    ----------
    alpha : float
        Exponent of the step size.
    variant : {"corrected", "printed"}, default="corrected"
        Whether the noise of step t counts (1 - 2 lambda eta)^(T - t) times, or fully.

    Returns
    -------
    Inequality
        In units of a squared coefficient.

    Raises
    ------
    DoesNotApply
        Unless Proposition 4.1 does, beta_1 = 0, 1/2 < alpha < 1 and (corrected) 2 lambda eta <= 1.
    ValueError, TypeError
        As `sfsa_proposition_4_1`.

    Examples
    --------
    >>> sides = sfsa_theorem_4_1([[0.0], [1.0]], [[-1.0]], [[-1.0]], [1.0], 0.75, 0.5, 1.0)
    >>> sides.left, sides.right
    (0.0, 1.0)
    """
    squared, gains = _descent(path, gradients, population_gradients, truth, convexity, G)
    require(not np.any(np.asarray(path, float)[0]), "beta_1 is not 0")
    T, printed = len(gains), is_printed(variant)
    eta, shrink = _sfsa_step(T, alpha, convexity, printed)
    weights = 1.0 if printed else shrink ** np.arange(T)[::-1]
    noise = 2 * eta * np.sum(weights * gains)
    right = shrink**T * squared[0] + eta * G**2 / (2 * convexity) + noise
    return Inequality(float(squared[-1]), float(right))


def sfsa_limit_4_1(T: int, alpha: float, convexity: float, variant: str = "corrected") -> float:
    """Equivalent of (1 - 2 lambda / T^alpha)^T for large T, after Theorem 4.1.

    Parameters
    ----------
    T : int
        Steps.
    alpha, convexity : float
        Exponent of the step size, and lambda.
    variant : {"corrected", "printed"}, default="corrected"
        exp(-2 lambda T^(1 - alpha)) or exp(-T^(1 - alpha)).

    Returns
    -------
    float
        Without a unit.

    Raises
    ------
    DoesNotApply
        Unless 1/2 < alpha < 1.
    ValueError, TypeError
        As in `ofslib.bounds`.

    Examples
    --------
    >>> round(sfsa_limit_4_1(10**4, 0.75, 0.1), 4)
    0.1353
    """
    printed = is_printed(variant)
    _sfsa_step(T, alpha, convexity, printed=True)
    return exp(-(1.0 if printed else 2 * convexity) * T ** (1 - alpha))


def sfsa_corollary_4_1(
    T: int,
    alpha: float,
    convexity: float,
    G: float,
    R: float,
    norm: float,
    omega: float,
    variant: str = "corrected",
) -> Recovery:
    """Coefficients that T steps of size T^-alpha find, with probability 1 - exp(-omega).

    For `SGDTRegressor(importance="coef")`, which ranks by |beta| after the last step.

    Parameters
    ----------
    T : int
        Steps.
    alpha, convexity, G : float
        As in `sfsa_theorem_4_1`.
    R, norm : float
        Bound on ||beta_t - beta*||, and ||beta*||.
    omega : float
        Sets the probability.
    variant : {"corrected", "printed"}, default="corrected"
        sqrt(2 B), B the bound on the squared error, or B itself. The corrected B weights the noise
        as Theorem 4.1 does, and so is the smaller one.

    Returns
    -------
    Recovery
        `beta_min` in units of a coefficient; printed, of its square: it is another promise in
        other units.

    Raises
    ------
    DoesNotApply
        Unless 1/2 < alpha < 1 and (corrected) 2 lambda eta <= 1.
    ValueError, TypeError
        As in `ofslib.bounds`.

    Examples
    --------
    >>> found = sfsa_corollary_4_1(10**6, 0.75, 1.0, G=2.0, R=1.0, norm=1.0, omega=3.0)
    >>> round(found.beta_min, 3), round(found.probability, 3)
    (0.332, 0.95)
    """
    check(G=G, R=R, norm=norm, omega=omega)
    printed = is_printed(variant)
    eta, shrink = _sfsa_step(T, alpha, convexity, printed)
    decay = 2 * convexity * eta  # 1 - shrink, exactly
    sums = -expm1(2 * T * log1p(-decay)) if decay < 1 else 1.0
    squares = T if printed else sums / (decay * (2 - decay))
    noise = 4 * eta * G * R * sqrt(2 * omega * squares)
    bound = shrink**T * norm**2 + eta * G**2 / (2 * convexity) + noise
    return Recovery(bound if printed else sqrt(2 * bound), 1 - exp(-omega))
