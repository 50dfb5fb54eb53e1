"""Online substitution against Theorems 1, 2 and 3 of os, on independent columns."""

from functools import partial
from itertools import combinations

import numpy as np

from ofslib import AsyncOnlineSubstitution, OnlineSubstitution, bounds
from ofslib.reproduction.theory.curve import VARIANTS, number, point, points

# The share c of the decrease that a substitution must bring, the default of OnlineSubstitution.
SHARE = 0.1
SELECTED = 10
STEPS = (0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.7, 1.0, 1.4)


def theorems(setting, seeds, data, *, p, workers, steps):
    """Theorems 1 and 2 along a run, the step size of Theorem 2 and of experiment, and Theorem 3.

    Rows, noise and coefficients are those of the paper's experiments, with 10 features to keep.
    Theorem 2 is that of one worker without staleness. The step size of the experiment is the one
    with the least objective in the end. Theorem 3 is about 3 of 12 features, for which the best are
    known.

    Parameters
    ----------
    p : int
        Columns.
    workers : list of int
        Numbers of workers, which are the staleness, too.
    steps : list of float
        Step sizes of Theorem 3, times L_F.
    """
    runs, local = (np.random.default_rng(child) for child in seeds.spawn(2))
    X, y = _data(int(1.2 * SELECTED * np.log2(p)), p, SELECTED, 0.1, runs)
    yield from _along_a_run(X, y)
    yield from _step_sizes(X, y, workers, int(runs.integers(2**31)))
    X, y = _data(40, 12, 6, 1.0, local)
    yield from _local_optima(X, y, 3, steps, int(local.integers(2**31)))


def _data(n, p, k, noise, rng):
    """Columns of mean square 1, of which k have a normal coefficient."""
    X = rng.standard_normal((n, p))
    X /= np.sqrt(np.mean(X**2, axis=0))
    used = rng.permutation(p)[:k]
    return X, X[:, used] @ rng.standard_normal(k) + noise * rng.standard_normal(n)


def _along_a_run(X, y):
    for which, step in ((1, 0.5), (2, 0.25)):
        model = OnlineSubstitution(k=SELECTED, step=step, c=SHARE, refit=False, fit_intercept=False)
        before, squared, losses = np.zeros(0), [], [np.mean(y**2) / 2]
        for j in range(X.shape[1]):
            model.partial_fit_columns(X[:, j : j + 1], y)
            after = model.coef_
            squared.append(np.sum((after - np.append(before, 0)) ** 2))
            losses.append(model.objective_)
            before = after
        L_F = float(model._state.lipschitz[0])
        eta = step / L_F
        for K in np.unique(np.geomspace(10, len(squared), 12).astype(int)):
            run = squared[:K], losses[: K + 1], eta, L_F
            panel = f"Theorem {which}"
            if which == 1:
                sides = {"printed": bounds.os_theorem_1(*run, SHARE)}
            else:
                alone = {"L_f": L_F, "c": SHARE, "m": 1, "q": 1, "p": X.shape[1], "s": SELECTED}
                theorem = partial(bounds.os_theorem_2, *run, **alone, staleness=0)
                sides = {variant: theorem(variant=variant) for variant in VARIANTS}
            right = {variant: both.right for variant, both in sides.items()}
            yield from points(panel, int(K), **right, experiment=sides["printed"].left)


def _step_sizes(X, y, workers, seed):
    n, p = X.shape
    L_F = (1 + np.sqrt((SELECTED + 1) / n)) ** 2
    L_f = float(np.linalg.norm(X, 2) ** 2 / n)
    for q in workers:
        # c = 1 allows the largest step; the check that c is about is left out in Asy-OS.
        limit = bounds.os_theorem_2_step_size(L_F, L_f, 1.0, 1, q, p, SELECTED, q)
        yield point("Step size of Theorem 2", q, "admissible", limit * L_F)
        ends = {step: _end(X, y, q, step, seed) for step in STEPS}
        yield point("Step size of Theorem 2", q, "experiment", min(ends, key=ends.get))


def _end(X, y, q, step, seed):
    """The objective in the end; steps diverge where the staleness is too much for them."""
    model = AsyncOnlineSubstitution(
        k=SELECTED, n_workers=q, step=step, c=0.0, refit=False, fit_intercept=False,
        random_state=seed,
    )  # fmt: skip
    try:
        return model.fit(X, y).objective_
    except FloatingPointError:
        return np.inf


def _local_optima(X, y, s, steps, seed):
    n, p = X.shape

    def loss(w):
        return np.mean((X @ w - y) ** 2) / 2

    sets = [list(chosen) for chosen in combinations(range(p), s)]
    best = min(np.linalg.lstsq(X[:, chosen], y)[1][0] / (2 * n) for chosen in sets)
    # Not above the restricted one of Assumption 3.
    convexity = float(np.linalg.eigvalsh(X.T @ X / n)[0])
    at_zero = loss(np.zeros(p))
    for step in steps:
        model = OnlineSubstitution(
            k=s, step=step, c=SHARE, n_scans=150, refit=False, fit_intercept=False,
            random_state=seed,
        ).fit(X, y)  # fmt: skip
        w, eta = model.coef_, step / float(model._state.lipschitz[0])
        gradient = X.T @ (X @ w - y) / n
        losses = at_zero, loss(w), best
        theorem = partial(bounds.os_theorem_3, losses, w, gradient, eta, convexity, 1e-6)
        # As shares of what there is to gain.
        gain = at_zero - best
        # The best set itself, but for rounding, is not below 0.
        missed = max(loss(w) - best, 0.0) / gain
        right = number(theorem, "right", gain)
        yield from points("Theorem 3", step, printed=right, experiment=missed)
