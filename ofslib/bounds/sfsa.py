"""Stochastic gradient descent without annealing (`sfsa`): Section 4."""

from math import exp, sqrt

import numpy as np
from numpy.typing import ArrayLike

from ofslib.bounds.statements import Recovery, Sides, check, is_printed, require


def sfsa_proposition_4_1(
    path: ArrayLike,
    gradients: ArrayLike,
    population_gradients: ArrayLike,
    truth: ArrayLike,
    eta: float,
    convexity: float,
    G: float,
) -> Sides:
    """The squared error after each step against that before it, with one entry per step.

    Applies if no gradient exceeds G, and the expected loss is as convex along the path.

    Parameters
    ----------
    path : array-like of shape (T + 1, p)
        beta_1 .. beta_(T+1).
    gradients, population_gradients : array-like of shape (T, p)
        Of the step's loss and of its expectation, at beta_1 .. beta_T.
    truth : array-like of shape (p,)
        Minimiser of the expected loss.
    convexity, G : float
        lambda, and the bound on the norms of the gradients.
    """
    before, gains, errors = _descent(path, gradients, population_gradients, truth, convexity, G)
    check(eta=eta)
    right = (1 - 2 * convexity * eta) * before[:-1] + (eta * G) ** 2 + 2 * eta * gains
    return Sides(errors, right)


def _descent(path, gradients, population_gradients, truth, convexity, G):
    """Squared errors before and after steps and the noise towards the truth; Assumptions 2, 3."""
    check(convexity=convexity, G=G)
    path, gradients, mean = (np.asarray(a, float) for a in (path, gradients, population_gradients))
    away = path - np.asarray(truth, float)
    squared = np.einsum("ij,ij->i", away, away)
    largest = np.max(np.linalg.norm(gradients, axis=1))
    require(largest <= G * (1 + 1e-9), f"a gradient has norm {largest:.4g} > G = {G:.4g}")
    slack = np.einsum("ij,ij->i", away[:-1], mean) - convexity * squared[:-1]
    require(np.min(slack) >= -1e-9, f"the loss is not {convexity:.4g}-strongly convex on the path")
    gains = -np.einsum("ij,ij->i", away[:-1], gradients - mean)
    return squared, gains, squared[1:]


def _sfsa_step(T, alpha, convexity, printed):
    """Step size T^-alpha and contraction 1 - 2 lambda eta, which must not be negative."""
    check({"T": T}, convexity=convexity)
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
) -> Sides:
    """Squared error after T steps of size T^-alpha from 0 (5).

    Applies if Proposition 4.1 does, 1/2 < alpha < 1 and (corrected) 2 lambda eta <= 1. The noise of
    step t counts (1 - 2 lambda eta)^(T - t) times, or (printed) fully.
    """
    squared, gains, _ = _descent(path, gradients, population_gradients, truth, convexity, G)
    T, printed = len(gains), is_printed(variant)
    eta, shrink = _sfsa_step(T, alpha, convexity, printed)
    weights = 1.0 if printed else shrink ** np.arange(T)[::-1]
    noise = 2 * eta * np.sum(weights * gains)
    right = shrink**T * squared[0] + eta * G**2 / (2 * convexity) + noise
    return Sides(float(squared[-1]), float(right))


def sfsa_limit_4_1(T: int, alpha: float, convexity: float, variant: str = "corrected") -> float:
    """Equivalent of (1 - 2 lambda / T^alpha)^T for large T, after Theorem 4.1.

    exp(-2 lambda T^(1 - alpha)), or (printed) exp(-T^(1 - alpha)).
    """
    _sfsa_step(T, alpha, convexity, printed=True)
    return exp(-(1.0 if is_printed(variant) else 2 * convexity) * T ** (1 - alpha))


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

    Applies if 1/2 < alpha < 1 and (corrected) 2 lambda eta <= 1.

    Parameters
    ----------
    convexity, G
        As in `sfsa_proposition_4_1`.
    R, norm : float
        Bound on ||beta_t - beta*||, and ||beta*||.
    variant
        sqrt(2 B), B the bound on the squared error, or (printed) B itself. The corrected B weights
        the noise as Theorem 4.1 does, and so is the smaller one.
    """
    check(G=G, R=R, norm=norm, omega=omega)
    printed = is_printed(variant)
    eta, shrink = _sfsa_step(T, alpha, convexity, printed)
    squares = T if printed else (1 - shrink ** (2 * T)) / (1 - shrink**2)
    noise = 4 * eta * G * R * sqrt(2 * omega * squares)
    bound = shrink**T * norm**2 + eta * G**2 / (2 * convexity) + noise
    return Recovery(bound if printed else sqrt(2 * bound), 1 - exp(-omega))
