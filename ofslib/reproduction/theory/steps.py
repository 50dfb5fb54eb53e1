"""What the step and the warm-up do to the smallest coefficient that SGDT and SFSA find."""

from functools import cache, partial
from math import sqrt

import numpy as np

from ofslib import SFSARegressor, SGDTRegressor, bounds
from ofslib.bounds import DoesNotApply
from ofslib.reproduction.theory.curve import point
from ofslib.reproduction.theory.limits import least_found, within


def descent(setting, seeds, data, *, correlation, n, p, rates, shares):
    """The coefficient with which one pass finds all true features in half of the runs.

    Features whose own part has variance 1, a tenth of them true with the same coefficient; noise 1.
    A run keeps its rows while the coefficient is bisected; in half of the runs the least one is
    below their median. Beside the runs the laws of SGDT and SFSA, and the information floor.

    Parameters
    ----------
    correlation : float
        Of any two features, in [0, 1).
    n, p : int
        Rows and features.
    rates : sequence of float
        Steps eta of mini-batches of 25 rows.
    shares : sequence of float
        Of the rows that pass before the first feature goes, in [0, 1). With the step that is best
        by the law of SGDT.
    """
    k, spike = p // 10, correlation / (1 - correlation)
    law, runs = partial(_law, n, p, k, spike), _Run(n, p, k, spike, seeds)
    floor = bounds.information_floor(n, p, k, delta=0.5)
    warmups = {"SGDT": None, "SFSA, no warm-up": 0, "SFSA, warm-up of half": n // 2}
    panel = f"Step, correlation {correlation:g}"
    for rate in rates:
        yield point(panel, rate, "information floor", floor)
        for curve, warmup in warmups.items():
            yield point(panel, rate, f"{curve}, law", partial(law, rate, warmup))
            yield point(panel, rate, curve, partial(runs.least, rate, warmup))
    panel = f"Warm-up, correlation {correlation:g}"
    best = min(rates, key=lambda rate: _computed(n, p, k, spike, rate, None)[0])
    for share in shares:
        yield point(panel, share, "information floor", floor)
        yield point(panel, share, "SGDT, law", partial(law, best, None))
        warmup = round(share * n)
        yield point(panel, share, "SFSA, step of SGDT, law", partial(law, best, warmup))
        yield point(panel, share, "SFSA, step of SGDT", partial(runs.least, best, warmup))


def _law(*size):
    """Of SGDT, or of SFSA if there is a warm-up."""
    height, why = _computed(*size)
    if why:
        raise DoesNotApply(why)
    return height


@cache
def _computed(n, p, k, spike, rate, warmup):
    """The law, which is that of all runs; or infinity, and why it does not apply."""
    own = {"spike": spike, "delta": 0.5}
    try:
        if warmup is None:
            return bounds.sgdt_beta_min(n, p, k, rate, **own), ""
        return bounds.sfsa_beta_min(n, p, k, rate, warmup=warmup, **own), ""
    except DoesNotApply as reason:
        return np.inf, str(reason)


class _Run:
    """The rows of a run, which all methods see."""

    def __init__(self, n, p, k, spike, seeds):
        rng = np.random.default_rng(seeds)
        self.X = rng.standard_normal((n, p)) + sqrt(spike) * rng.standard_normal((n, 1))
        self.signal, self.noise = self.X[:, :k].sum(axis=1), rng.standard_normal(n)
        self.size, self.truth = (n, p, k), np.arange(p) < k

    def least(self, rate, warmup):
        """Of SGDT, or of SFSA if there is a warm-up."""
        own = {"k": self.size[2], "learning_rate": rate, "fit_intercept": False, "shuffle": False}
        if warmup is None:
            model = SGDTRegressor(**own, batch_size=25)
        else:
            model = SFSARegressor(**own, batch_size=25, mu=10.0, warmup=warmup)
        start = bounds.information_floor_asymptotic(*self.size) / 2

        def learn(beta):
            try:
                return model.fit(self.X, beta * self.signal + self.noise).coef_
            except FloatingPointError:  # it diverges: nothing is found
                return np.zeros(len(self.truth))

        return within(least_found(learn, self.truth, start), *self.size, "this run")
