"""Sun (2019), dissertation, Chapter 3: running averages."""

from math import ceil, exp, log, sqrt

import numpy as np
from scipy.stats import norm, wishart

from ofslib import bounds
from ofslib.reproduction.statements.dissertation_2 import (
    CONDITION,
    ETA,
    ROWS,
    TRUTH,
    a_step_that_contracts,
    annealed,
    best_factor,
    removed_for_ever,
    steps_printed,
)
from ofslib.reproduction.statements.statement import Paper, Shown, applies, selects, shown

CHAPTER_3 = Paper("dissertation")
C_BELOW_2 = "Gaussian rows; the mean squares of the columns are at most C < 2, C1 = 2 / C"


def largest_mean_square() -> float:
    """Of 1000 columns of variance 2 (correlation 1/2), 100,000 rows: C of the experiments."""
    rng = np.random.default_rng(0)
    return float(2 * rng.chisquare(100_000, 1000).max() / 100_000)


def recovery(threshold: float, n: int, p: int, k: int, variance: float = 1.0, runs: int = 2000):
    """Share of the runs in which least squares on n independent Gaussian features finds all k.

    Its error is normal, of covariance I / variance, over the root of a chi-square of n - p + 1.
    """
    rng = np.random.default_rng(0)
    errors = rng.normal(size=(runs, p)) / np.sqrt(variance * rng.chisquare(n - p + 1, (runs, 1)))
    return float(np.mean(selects(errors + threshold * (np.arange(p) < k), k)))


@CHAPTER_3.states(
    "Running averages",
    "mu(n+1) = n mu(n) / (n+1) + x / (n+1); standardised S~_xx = Pi (S_xx - mu mu') Pi",
    true=True,
)
def running_averages():
    """After 50 rows they are the moments of the standardised rows, up to rounding."""
    rng = np.random.default_rng(0)
    X = rng.normal(3.0, [1.0, 5.0, 0.1], size=(50, 3))
    mu, S = np.zeros(3), np.zeros((3, 3))
    for n, x in enumerate(X):
        mu, S = n / (n + 1) * mu + x / (n + 1), n / (n + 1) * S + np.outer(x, x) / (n + 1)
    Pi = np.diag(1 / np.sqrt(np.diag(S) - mu**2))
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    gap = np.max(np.abs(Pi @ (S - np.outer(mu, mu)) @ Pi - Z.T @ Z / 50))
    return shown(true=gap < 1e-8, gap=gap)


@CHAPTER_3.states(
    "Proposition 2",
    "||y - X b||^2 / (2 n) and b'S_xx b / 2 - b'S_xy have the same minimisers, with any penalty",
    true=True,
    informative=True,
)
def proposition_2():
    """They differ by S_yy / 2, whatever b is: at 10 of them, by less than 1e-12."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 4)), rng.normal(size=30)
    gaps, ours = [], True
    for b in rng.normal(size=(10, 4)):
        rows = np.sum((y - X @ b) ** 2) / 60
        gaps.append(rows - (b @ X.T @ X @ b / 60 - b @ X.T @ y / 30) - y @ y / 60)
        ours &= bounds.dissertation_proposition_2(X, y, b).holds
    gap = np.max(np.abs(gaps))
    return shown(true=gap < 1e-12, informative=gap < 1e-12, corrected=ours, gap=gap)


CHAPTER_3.skips("Algorithm 3 (OLSth)", "its ridge penalty at p > n is not printed")
CHAPTER_3.skips("Algorithm 4 (OFSA)", "its step, mu and length are not printed")


@CHAPTER_3.states(
    "Algorithm 5 and Eq. (3.10)",
    "after a step of eta, Theta(t; eta lambda) = (t - eta lambda sign t) / (1 - 1 / b) for MCP",
    true=False,
    corrected="(t - eta lambda sign t) / (1 - eta / b), up to b lambda",
)
def equation_3_10():
    """eta = .2, b = 3, lambda = 1, t = .5: (x - t)^2 / 2 + eta MCP(x) is least at .321; printed
    .45. Its fixed points are those of MCP with eta b for b."""
    eta, b, size, t = 0.2, 3.0, 1.0, 0.5
    x = np.linspace(0, 4, 400_001)
    penalty = np.where(x <= b * size, size * x - x**2 / (2 * b), b * size**2 / 2)
    least = x[np.argmin((x - t) ** 2 / 2 + eta * penalty)]
    printed, ours = (t - eta * size) / (1 - 1 / b), (t - eta * size) / (1 - eta / b)
    return shown(
        abs(printed - least) < 1e-4, None, abs(ours - least) < 1e-4, least=least, printed=printed
    )


CHAPTER_3.skips("Eq. (3.11) adaptation", "per row or per time step is not said")


@CHAPTER_3.states(
    "Lemma 3",
    "P(|X| >= t) <= 2 exp(-t^2 / (2 sigma^2)), X normal",
    true=True,
    informative=True,
)
def lemma_3():
    """Against the normal law for t up to 8: the bound is never below it, and below 1 from 1.18."""
    t = np.linspace(0.01, 8, 800)
    tail, bound = 2 * norm.sf(t), 2 * np.exp(-(t**2) / 2)
    ours = bounds.dissertation_lemma_3(3.0, 1.0)
    return shown(
        np.all(tail <= bound), bound[-1] < 1, abs(ours - 2 * exp(-4.5)) < 1e-12, at_8=bound[-1]
    )


@CHAPTER_3.states(
    "Lemma 4",
    "the smallest singular value of X over sqrt(n) is at most "
    "lambda_min(sqrt(Sigma)) (1 - t) - sqrt(tr(Sigma) / n) with probability exp(-n t^2 / 2)",
    true=True,
    informative=True,
    applies="n > p, Gaussian rows",
)
def lemma_4():
    """60 rows of 20 independent features, t = .15: in no more than .51 of 400 draws. At p = 1000,
    n = 10,000, correlation 1/2, the threshold is .35 at t = 1/5."""
    n, p, t = 60, 20, 0.15
    X = np.random.default_rng(0).normal(size=(400, n, p))
    smallest = np.linalg.svd(X, compute_uv=False)[:, -1] / sqrt(n)
    share = np.mean(smallest <= 1 - t - sqrt(p / n))
    ours = bounds.dissertation_lemma_4(n, 1.0, p, t, p)
    large = 0.8 - sqrt(2000 / 10_000)
    return shown(
        share <= exp(-n * t**2 / 2),
        large > 0,
        abs(ours.threshold - (1 - t - sqrt(p / n))) < 1e-12,
        share=share,
        claimed=exp(-n * t**2 / 2),
        at_papers_size=large,
    )


def many_rows(theorem, informative: bool) -> Shown:
    """(3.12) at p = 100, k = 10, n = 10^7, independent features: lambda = .99, C = 1."""
    n, p, k = 10**7, 100, 10
    printed = 2 / 0.99 * sqrt(log(p) / n)
    ours = theorem(n, p, 1.0, 0.99)
    found = [recovery(each, n, p, k, runs=20_000) for each in (printed, ours.beta_min)]
    return shown(
        true=found[0] >= 1 - 2 / p,
        informative=informative,
        corrected=found[1] >= ours.probability,
        claimed=1 - 2 / p,
        found=found[0],
        corrected_finds=found[1],
        largest_mean_square=largest_mean_square(),
    )


@CHAPTER_3.states(
    "Proposition 3 (Eq. 3.12)",
    "beta_min > (2 sigma / lambda) sqrt(log(p) / n^alpha) suffices, lambda at most the smallest "
    "eigenvalue of X'X / n, with probability 1 - 2 p^(1 - C1 n^(1 - alpha))",
    true=False,
    informative=False,
    applies=C_BELOW_2,
    corrected="raw coefficients are ranked; beta_min > 2 sigma sqrt(2 C1 log(p) / (lambda n^alpha))"
    " suffices, for any C1 > 1",
    figure="dissertation_figure_5_3",
)
def proposition_3():
    """p = 100 independent features, k = 10, n = 10^7, alpha = 1, lambda = .99: found in .57 of the
    runs (.547 exactly at lambda = 1), .98 claimed. There is no factor 2 for separation, and
    |A^-1 v|_j <= ||v||_inf / lambda_min(A) is wrong: A = [[1, -1], [-1, 2]], v = (1, 1) gives
    3 > 2.618. The features of the experiments have variance 2, so that C > 2."""
    return many_rows(bounds.dissertation_proposition_3, largest_mean_square() < 2)


@CHAPTER_3.states(
    "Corollary 2",
    "Proposition 3 with alpha = 1 (3.13): probability 1 - 2 p^(1 - C1)",
    true=False,
    informative=False,
    applies=C_BELOW_2,
    corrected="raw coefficients are ranked; beta_min > 2 sigma sqrt(2 C1 log(p) / (lambda n)) "
    "suffices",
    figure="dissertation_figure_5_3",
)
def corollary_2():
    """As Proposition 3."""
    return many_rows(bounds.dissertation_corollary_2, largest_mean_square() < 2)


@CHAPTER_3.states(
    "Remark 2",
    "Corollary 2 for sigma_x beta and the eigenvalue of the standardised features",
    true=False,
    informative=True,
    corrected="standardised coefficients are ranked; the threshold is that of Corollary 2; "
    "standard deviations and correlations are those of the rows",
    by=("dissertation_corollary_2",),
    figure="dissertation_figure_5_2",
)
def remark_2():
    """The example of Proposition 3 has standardised features. It does say something: C = 1, with
    probability 1 - 2 / p."""
    return many_rows(bounds.dissertation_corollary_2, 1 - 2 / 1000 > 0)


@CHAPTER_3.states(
    "Theorem 2 (Eq. 3.14)",
    "(3.12) with sqrt(lambda) <= 0.8 lambda_min(sqrt(Sigma)) - rho sqrt(p / n), rho the largest "
    "variance; probability less exp(-n / 50)",
    true=False,
    informative=False,
    applies=C_BELOW_2 + "; n > p (rho / (0.8 lambda_min(sqrt(Sigma))))^2",
    corrected="raw coefficients are ranked; rho is the largest standard deviation; the threshold "
    "is that of Proposition 3",
    figure="dissertation_figure_5_2",
)
def theorem_2():
    """Sigma = 1.5 I, p = 10,000, k = 5000, n = 10^10: misses .267 by the exact law, .24 of 300
    runs, .093 claimed (C1 = 2 / 1.5). With Sigma = 4 I, p = 100, k = 10, n = 10^7 it misses .9, but
    there C1 = 1/2 claims nothing. The threshold falls as 1 over the variance, the coefficients that
    are needed as its root."""
    n, p, k, variance = 10**10, 10_000, 5000, 1.5
    root = 0.8 * sqrt(variance) - variance * sqrt(p / n)
    missed = 1 - recovery(2 / root**2 * sqrt(log(p) / n), n, p, k, variance, 300)
    claimed = 2 * p ** (1 - 2 / variance) + exp(-n / 50)
    ours = bounds.dissertation_theorem_2(n, p, 1.0, variance, variance, C1=2 / variance)
    found = recovery(ours.beta_min, n, p, k, variance, 300)
    root = 0.8 * 2 - 4 * sqrt(100 / 10**7)
    large = 1 - recovery(2 / root**2 * sqrt(log(100) / 10**7), 10**7, 100, 10, 4.0)
    return shown(
        true=missed <= claimed,
        informative=largest_mean_square() < 2,
        corrected=found >= ours.probability,
        claimed=claimed,
        missed=missed,
        missed_at_variance_4=large,
    )


@CHAPTER_3.states(
    "Eq. (3.15) RIP",
    "restricted convexity of least squares is m_s ||d||^2 <= ||X d||^2 / n <= M_s ||d||^2",
    true=True,
    informative=False,
    applies="Theorem 3 asks for M_s / m_s < 1.26 at any s from k on",
)
def equation_3_15():
    """An identity, up to rounding. With correlation 1/2 and unit variances the covariance of s
    features has the eigenvalues 1/2 and (1 + s) / 2: their ratio is 3 at s = 2, 101 at k = 100."""
    rng = np.random.default_rng(0)
    X, y, b, other = (rng.normal(size=size) for size in ((20, 3), 20, 3, 3))

    def f(b):
        return np.sum((y - X @ b) ** 2) / 40

    slope = X.T @ (X @ other - y) / 20
    gap = f(b) - f(other) - slope @ (b - other) - np.sum((X @ (b - other)) ** 2) / 40
    values = [np.linalg.eigvalsh((np.eye(s) + 1) / 2) for s in (2, 100)]
    ratios = [each[-1] / each[0] for each in values]
    return shown(abs(gap) < 1e-12, max(ratios) < 1.26, ratio_at_2=ratios[0], ratio_at_k=ratios[1])


@CHAPTER_3.states(
    "Proposition 4",
    "Proposition 1 with the loss of all rows",
    true=False,
    informative=False,
    applies="as Proposition 1",
    corrected="as Proposition 1",
    by=("dissertation_proposition_1",),
)
def proposition_4():
    """The example of Proposition 1 has the loss of all rows."""
    left, right = removed_for_ever()
    holds = a_step_that_contracts()
    return shown(left <= right, best_factor() < 1, holds, left=left, right=right)


# Gaussian rows whose moments have all eigenvalues between m and M, M / m < 1.26.
GAUSSIAN_ROWS = 2_000_000
BETWEEN = {"eta": ETA, "m": 0.89, "M": 1.11}
RHO_BETWEEN = sqrt(1 - 2 * ETA * BETWEEN["m"] + (ETA * BETWEEN["M"]) ** 2)


def gaussian_rows(runs: int):
    """Moments of Gaussian rows of covariance Q, and of their noise, of deviation 1e-4: their laws.

    Q is I but for .1 between features 1 and 3.
    """
    law = wishart(GAUSSIAN_ROWS, ROWS.T @ ROWS / len(ROWS) / GAUSSIAN_ROWS)
    rng = np.random.default_rng(1)
    for _ in range(runs):
        S = law.rvs(random_state=rng)
        ends = np.linalg.eigvalsh(S)
        if not BETWEEN["m"] <= ends[0] <= ends[-1] <= BETWEEN["M"]:
            raise AssertionError(f"the theorems do not apply: eigenvalues {ends}")
        yield S, 1e-4 * np.linalg.cholesky(S) @ rng.normal(size=3) / sqrt(GAUSSIAN_ROWS)


def runs_of_ofsa(moments, T, **schedule):
    """beta(T) of OFSA for each run."""
    return [
        annealed(lambda beta, S=S, noise=noise: S @ (beta - TRUTH) - noise, T, **schedule)
        for S, noise in moments
    ]


def shares_found(moments, steps, iterations):
    """Shares of runs that find both features: by the paper's schedule, and if removal waits."""
    late = runs_of_ofsa(moments, iterations + 1, mu=1e9, keep=iterations)
    return [np.mean(selects(np.array(b), 2)) for b in (runs_of_ofsa(moments, steps), late)]


@CHAPTER_3.states(
    "Theorem 3",
    "||b(t) - b*|| <= (1.62 rho)^t ||b*|| + 3.24 sigma eta sqrt(p log(p) / n) / (1 - 1.62 rho)",
    true=False,
    informative=False,
    applies="M_s / m_s < 1.26, eta < 2 m_s / M_s^2; corrected: 1.62 rho < 1",
    corrected="the same, as long as no true feature is removed",
    figure="bounds_dissertation_theorem_3",
)
def theorem_3():
    """The example of Proposition 1 with 2,000,000 Gaussian rows, noise 1e-4, removal at once: the
    error is .05 in 10 of 10 runs, after 200 steps .0018 is claimed with probability 1/3."""
    moments, rate, size = list(gaussian_rows(10)), 1.62 * RHO_BETWEEN, float(np.linalg.norm(TRUTH))
    printed = rate**200 * size + 3.24e-4 * ETA / (1 - rate) * sqrt(3 * log(3) / GAUSSIAN_ROWS)
    errors = np.array(runs_of_ofsa(moments, 200, mu=1e9)) - TRUTH
    late = np.array(runs_of_ofsa(moments, 200, mu=1e9, keep=150)) - TRUTH
    ours = bounds.dissertation_theorem_3(200, GAUSSIAN_ROWS, 3, 1e-4, size, **BETWEEN)
    held = np.mean(np.linalg.norm(errors, axis=1) <= printed)
    kept = np.mean(np.linalg.norm(late, axis=1) <= ours)
    large = 1, 10**6, 1000, 1.0, 1.0, 1e-6, 1.0, CONDITION
    return shown(
        true=held >= 1 - 2 / 3,
        informative=applies(bounds.dissertation_theorem_3, *large),
        corrected=kept >= 1 - 2 / 3,
        claimed=1 - 2 / 3,
        printed=printed,
        printed_holds=held,
        corrected_holds=kept,
    )


@CHAPTER_3.states(
    "Corollary 3",
    "beta_min > 4 sigma eta sqrt(p log(p) / n) / (1 - 1.62 rho) is found after "
    "[log(10 ||b*|| / beta_min) / (1.62 rho)] + 1 steps, with probability 1 - 2 p^(1 - C1)",
    true=False,
    informative=False,
    applies="Theorem 3",
    corrected="log to the base 1 / (1.62 rho), and nothing is removed before",
    figure="bounds_dissertation_theorem_3",
)
def corollary_3():
    """The example of Theorem 3, by the paper's schedule (mu = 10) in the printed 6 steps: the
    features are found in 0 of 20 runs, 1/3 claimed; by the corrected one in all."""
    ratio = float(np.linalg.norm(TRUTH)) / 0.05
    ours = bounds.dissertation_corollary_3(GAUSSIAN_ROWS, 3, 1e-4, **BETWEEN, norm_ratio=ratio)
    moments = list(gaussian_rows(20))
    found = shares_found(moments, steps_printed(10 * ratio, RHO_BETWEEN), ours.iterations)
    large = 10**6, 1000, 1.0, 1e-6, 1.0, CONDITION, 10.0
    return shown(
        true=found[0] >= 1 - 2 / 3,
        informative=applies(bounds.dissertation_corollary_3, *large),
        corrected=found[1] >= ours.probability and 0.05 > ours.beta_min,
        claimed=1 - 2 / 3,
        found=found[0],
        corrected_finds=found[1],
    )


CHAPTER_3.skips("Eq. (3.16) regret", "regret against the best k*-sparse vector")
CHAPTER_3.skips("Assumption 1 (Section 3.3)", "0 < m < eigenvalues of X'X / n < M")
CHAPTER_3.skips("Assumption 2 (Section 3.3)", "fits after n rows differ by at most D; n is n_0")


def least_squares_path(n: int, p: int, start: int):
    """Rows, labels, and the fits to the first i of them, i from `start` on."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(n, p))
    y = X[:, 0] - X[:, 1] + rng.normal(size=n)
    path = np.zeros((n + 1, p))
    for i in range(start, n + 1):
        path[i] = np.linalg.lstsq(X[:i], y[:i])[0]
    return X, y, path


@CHAPTER_3.states(
    "Proposition 5",
    "the regret of least squares after n_0 rows is O(log(n) / n)",
    true=True,
    informative=True,
    applies="Assumptions 1 and 2 of Section 3.3",
    figure="bounds_dissertation_theorem_4",
)
def proposition_5():
    """n = 400, p = 3: the regret is below (G^2 log(n / n_0) / m + M n_0 D^2) / (2 n), which follows
    from an identity. At p = 1000, k = 100, beta = 1, n = 10^6, n_0 = 20,000 that bound is
    about 2.6, and the regret of predicting 0 is 5050."""
    X, y, path = least_squares_path(400, 3, 20)
    losses = (y[20:] - np.sum(X[20:] * path[20:-1], axis=1)) ** 2 / 2
    best = np.sum((y[20:] - X[20:] @ path[-1]) ** 2) / 2
    regret = (losses.sum() - best) / 400
    sides = bounds.dissertation_proposition_5(X, y, path, 20)
    # Rows of norm^2 about p (1 + z^2), errors normal; the moments of a fit to n_0 rows.
    rng = np.random.default_rng(0)
    z, error = rng.normal(size=(2, 10**6))
    G2 = 1000 * np.max((1 + z**2) * error**2)
    large = (G2 * log(50) / (1 - sqrt(0.05)) ** 2 + 1001 * 20_000 * 4 * 0.05) / (2 * 10**6)
    return shown(
        true=regret <= sides.right,
        informative=large < 5050,
        corrected=abs(regret - sides.left) < 1e-9,
        regret=regret,
        bound=sides.right,
        bound_at_papers_size=large,
    )


def olsth_regret(n: int, start: int, beta: float, p: int = 20, k: int = 2, runs: int = 8):
    """Regret of OLSth after `start` rows, per run, and how often it selected wrong features.

    Independent features; moments of blocks of rows by Bartlett's decomposition.
    """
    rng, truth = np.random.default_rng(2), beta * (np.arange(p) < k)
    ends = np.unique(np.geomspace(start, n, 25).astype(int))
    regret, lost = np.zeros(runs), 0
    for run in range(runs):
        S, b, seen = np.zeros((p, p)), np.zeros(p), 0
        for end, after in zip(ends, [*ends[1:], n], strict=True):
            L = np.tril(rng.normal(size=(p, p)), -1)
            L += np.diag(np.sqrt(rng.chisquare(end - seen - np.arange(p))))
            S, b, seen = S + L @ L.T, b + L @ (L.T @ truth + rng.normal(size=p)), end
            kept = np.sort(np.argsort(-np.abs(np.linalg.solve(S, b)))[:k])
            lost += kept.tolist() != list(range(k))
            fit = np.zeros(p)
            fit[kept] = np.linalg.solve(S[np.ix_(kept, kept)], b[kept])
            regret[run] += (after - end) * np.sum((fit - truth) ** 2) / 2
    return regret, lost


@CHAPTER_3.states(
    "Theorem 4 (Eq. 3.28)",
    "OLSth has the regret O(log(n)^2 / n) if beta_min > (2 sigma / lambda) sqrt(log(p) / "
    "sqrt(n)), sqrt(lambda) < 0.8 lambda_min(sqrt(Sigma)) - sqrt(p / n_0)",
    true=True,
    informative=False,
    applies="n_0 = max(p + 1, 100 log(n), (2 log(n) / log(p) + 1)^2 / C1^2) leaves lambda > 0",
    corrected="raw coefficients are ranked; the threshold of Proposition 3 with n_0 for n keeps "
    "all features from n_0 on",
    figure="bounds_dissertation_theorem_4",
)
def theorem_4():
    """As an order of growth it is true, but not by its proof: with p = 20, k = 2 and the printed
    coefficient features are lost, and the regret over log(n)^2 stays below .3 from n = 10^4 to
    10^8. A seventh of what the corrected form asks for keeps them at all sizes (docs/theory).
    At p = 1000 there is no lambda > 0 up to n = 6e6, and the experiments end at 10^6."""
    shares, lost, p = [], 0, 20
    for n in (10**4, 10**8):
        start = ceil(max(p + 1, 100 * log(n), ((2 * log(n) / log(p) + 1) / 2) ** 2))
        root = 0.8 - sqrt(p / start)
        regret, wrong = olsth_regret(n, start, 2 / root**2 * sqrt(log(p) / sqrt(n)))
        shares.append(regret.max() / log(n) ** 2)
        lost += wrong
    large = bounds.dissertation_theorem_4(10**8, p, 1.0, 1.0, 1.0)
    _, by_corrected = olsth_regret(10**8, large.iterations, large.beta_min)
    anytime = {"delta": 1 - large.probability, "fit_intercept": False, "anytime": True}
    enough = bounds.olsth_beta_min_closed_form(large.iterations, p, 2, **anytime, ranking="raw")
    _, by_anytime = olsth_regret(10**8, large.iterations, enough)
    return shown(
        true=max(shares) < 0.3,
        informative=applies(bounds.dissertation_theorem_4, 6 * 10**6, 1000, 1.0, 1.0, 2.0),
        corrected=by_corrected == by_anytime == 0 < lost,
        anytime_over_corrected=enough / large.beta_min,
        regret_over_log_n_squared=max(shares),
        times_features_were_lost=lost,
    )


@CHAPTER_3.states(
    "Theorem 5",
    "the least squares Lasso recovers the support for single index models; quoted, its "
    "assumptions are not listed",
    informative=True,
    applies="Sigma satisfies the irrepresentable condition",
)
def theorem_5():
    """With correlation 1/2 the condition holds by 1 / (1 + k) for equal signs: .0099 at k = 100."""
    k = 100
    Sigma = np.eye(k + 1) + 1
    margin = 1 - abs(Sigma[k, :k] @ np.linalg.solve(Sigma[:k, :k], np.ones(k)))
    return shown(informative=margin > 0, margin=margin)
