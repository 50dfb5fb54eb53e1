"""The law of what OFSA selects, nearly: docs/theory.

As OLSth where k + 1 coefficients are fitted, of which it finds the one that goes.
"""

from ofslib.bounds.olsth import least_selected, probability_selected
from ofslib.bounds.statements import check, check_delta, check_sizes, degrees_of_freedom


def ofsa_recovery_probability(
    beta: float, n: int, p: int, k: int, sigma: float = 1.0, fit_intercept: bool = True
) -> float:
    """Probability that OFSA finds the k true features: an approximation, that of its last step.

    That of OLSth on independent features, if not p but k + 1 coefficients were fitted. For rows
    N(0, I + spike 11'), whatever the spike; docs/theory says why, and how far off it was found.
    `OFSARegressor` standardises: the features may have any units, if `beta` is the coefficient
    times the standard deviation of the feature's own part. With a spike all coefficients must have
    the same sign: with mixed signs OFSA fails far more often.

    Parameters
    ----------
    beta : float
        True coefficient, equal and of one sign on all k features, positive; label over feature. The
        part of a feature that is its own has variance 1.
    n, p, k : int
        Rows, features, true features; k < p. p may exceed n.
    sigma : float, default=1.0
        Standard deviation of the noise, in the unit of the labels.
    fit_intercept : bool, default=True
        Whether an intercept was fitted, as by centring.

    Returns
    -------
    float
        In [0, 1].

    Raises
    ------
    DoesNotApply
        Unless n exceeds k + 1 and the intercept.
    ValueError, TypeError
        If k >= p; and as in `ofslib.bounds`.

    Examples
    --------
    >>> round(ofsa_recovery_probability(0.3, 300, 200, 20), 3)
    0.639
    """
    check_sizes(n, p, k)
    freedom = degrees_of_freedom(n, k + 1, fit_intercept)
    check(beta=beta, sigma=sigma)
    return probability_selected(beta / sigma, freedom, p, k, 0.0)


def ofsa_beta_min(
    n: int,
    p: int,
    k: int,
    sigma: float = 1.0,
    delta: float = 0.05,
    fit_intercept: bool = True,
) -> float:
    """Smallest coefficient, equal on k features, with which OFSA finds all k: an approximation.

    With probability 1 - `delta`, by `ofsa_recovery_probability`, whose other arguments and
    conditions these are.

    Parameters
    ----------
    delta : float, default=0.05
        Probability of missing a feature, in (0, 1).

    Returns
    -------
    float
        In units of a coefficient, label over feature.

    Raises
    ------
    DoesNotApply
        Unless n exceeds k + 1 and the intercept; if 1 - `delta` is near the level of chance.
    ValueError, TypeError
        If k >= p or delta >= 1; and as in `ofslib.bounds`.

    Examples
    --------
    >>> round(ofsa_beta_min(300, 200, 20, delta=0.5), 3)
    0.285
    """
    check_sizes(n, p, k)
    freedom = degrees_of_freedom(n, k + 1, fit_intercept)
    check(sigma=sigma)
    check_delta(delta)
    return sigma * least_selected(freedom, p, k, 0.0, delta)
