"""Sun and Barbu, Stochastic Feature Selection with Annealing (`sfsa`)."""

from math import exp, log, sqrt

import numpy as np

from ofslib import bounds
from ofslib.reproduction.statements.statement import Paper, shown

SFSA = Paper("sfsa")
# Section 5: features, true features, step size, rows of a mini-batch.
P, K, STEP, BATCH = 10_000, 100, 1e-4, 25


def best_in_units(importance, scale: float) -> int:
    """The more important of two features, the second in units of one over `scale`.

    Both have coefficient times standard deviation 1 and 1.5, whatever the scale is.
    """
    deviation, beta = np.array([1.0, scale]), np.array([1.0, 1.5 / scale])
    return int(np.argmax(importance(deviation**2, beta)))


def depends_on_units(importance) -> bool:
    """Whether a change of the units of a feature changes which one is more important."""
    return len({best_in_units(importance, scale) for scale in (0.01, 1.0, 100.0)}) > 1


def standardized(variance, beta):
    """The importance of Section 3.1, which has no unit."""
    return np.sqrt(variance) * np.abs(beta)


@SFSA.states(
    "Algorithm 1 (SFSA)",
    "keeps the features of largest v_j = sqrt((s_j - mean_j^2) |beta_j|), for data in any units",
    true=False,
    corrected="v_j = sqrt(s_j - mean_j^2) |beta_j|, as in Section 3.2 and Algorithm 2",
)
def algorithm_1():
    """With |beta_j| inside the root the order is that of variance times |beta_j|: it depends on
    the units of the features, contrary to Section 3.1."""
    return shown(
        true=not depends_on_units(lambda variance, beta: np.sqrt(variance * np.abs(beta))),
        corrected=not depends_on_units(standardized),
    )


@SFSA.states(
    "Algorithm 2 (SGDT)",
    "keeps the features of largest v_j = sqrt(s_j - mean_j^2) |beta_j|, for data in any units",
    true=True,
)
def algorithm_2():
    """The order is that of standard deviation times |beta_j|, which has no unit of the feature.
    (The listing truncates again at each step after T, the text once.)"""
    return shown(true=not depends_on_units(standardized))


@SFSA.states(
    "Eq. (3) loss",
    "(1 / n) sum (y_i - x_i'beta)^2, learned with steps of 1e-4 at p = 10,000, alpha = 1",
    true=False,
    corrected="half of it, whose gradient is x (x'beta - y)",
)
def equation_3():
    """A step multiplies the error along the first eigenvector of Sigma, p + 1 = 10,001, by
    1 - c chi^2_m / m, c = 2 eta (p + 1) = 2.0002, m = 25 rows: its mean square by
    1 - 2 c + c^2 (1 + 2 / m) = 1.32, which diverges; with the half, c = 1.0001, by .08."""

    def growth(c):
        return 1 - 2 * c + c**2 * (1 + 2 / BATCH)

    printed, half = growth(2 * STEP * (1 + P)), growth(STEP * (1 + P))
    return shown(true=printed < 1, corrected=half < 1, printed=printed, half=half)


@SFSA.states(
    "Section 5.1 generator",
    "features x = alpha z 1 + u have correlation alpha^2 / (1 + alpha^2)",
    true=True,
)
def generator():
    """In 200,000 rows, for alpha = 1 and 2: within 5 standard errors."""
    rng, gaps = np.random.default_rng(0), []
    for alpha in (1.0, 2.0):
        x = alpha * rng.normal(size=(200_000, 1)) + rng.normal(size=(200_000, 2))
        claimed = alpha**2 / (1 + alpha**2)
        error = (1 - claimed**2) / sqrt(len(x))
        gaps.append(abs(np.corrcoef(x.T)[0, 1] - claimed) / error)
    return shown(true=max(gaps) < 5, standard_errors=max(gaps))


SFSA.skips("Assumption 1", "||beta*|| <= R_1, ||beta|| <= R_2; no step projects on that")
SFSA.skips("Assumption 2", "the expected loss is lambda-strongly convex")


@SFSA.states(
    "Assumption 3",
    "no gradient exceeds G, as rows and labels are bounded",
    informative=False,
)
def assumption_3():
    """Gaussian rows, as in Section 5, have no largest one: that of 10,000 gradients at the truth
    (p = 10) exceeds that of the first 100, and goes on to grow."""
    x = np.random.default_rng(0).normal(size=(10_000, 10))
    noise = np.random.default_rng(1).normal(size=10_000)
    sizes = np.maximum.accumulate(np.abs(noise) * np.linalg.norm(x, axis=1))
    return shown(informative=sizes[-1] <= sizes[99], first=sizes[99], all=sizes[-1])


def steady_error() -> float:
    """eta G^2 / (2 lambda) of Theorem 4.1 over ||beta*||^2, in the strong setting of Section 5.

    Conservative: G is the norm of one gradient, the first, lambda the smallest eigenvalue of Sigma.
    """
    rng = np.random.default_rng(0)
    x = rng.normal(size=(BATCH, 1)) + rng.normal(size=(BATCH, P))
    y = x[:, 10 :: P // K].sum(axis=1) + rng.normal(size=BATCH)
    gradient = x.T @ y / BATCH
    return float(STEP * gradient @ gradient / 2 / K)


@SFSA.states(
    "Proposition 4.1",
    "||b' - b*||^2 <= (1 - 2 lambda eta) ||b - b*||^2 + eta^2 G^2 + 2 eta <b* - b, noise>",
    true=True,
    informative=False,
    applies="Assumptions 1 to 3",
)
def proposition_4_1():
    """Holds at each of 2000 steps on (b - 1)^2 / 2 with noise +-1/2, eta = .1. At the papers' sizes
    eta G^2 / (2 lambda) alone, its fixed point, is many times ||beta*||^2, the error of doing
    nothing (G at least the first gradient)."""
    rng, b, worst = np.random.default_rng(4), 0.0, -np.inf
    for _ in range(2000):
        noise = rng.choice([-0.5, 0.5])
        after = b - 0.1 * (b - 1 + noise)
        right = (1 - 0.2) * (b - 1) ** 2 + 0.01 * 1.5**2 + 0.2 * (1 - b) * noise
        b, worst = after, max(worst, (after - 1) ** 2 - right)
    return shown(worst <= 1e-12, steady_error() < 1, largest_gap=worst, over_zero=steady_error())


def lucky_descent(T, alpha):
    """(b - 1)^2 / 2 from 0, the noise equal to each gradient: path, gradients, their means."""
    path = [0.0]
    for _ in range(T):
        path.append(path[-1] - 2 * T**-alpha * (path[-1] - 1))
    path = np.reshape(path, (-1, 1))
    return path, 2 * (path[:-1] - 1), path[:-1] - 1


@SFSA.states(
    "Theorem 4.1",
    "||b_(T+1) - b*||^2 <= (1 - 2 lambda eta)^T ||b*||^2 + eta G^2 / (2 lambda) + 2 eta sum of "
    "<b* - b_t, noise_t>, eta = T^-alpha",
    true=False,
    informative=False,
    applies="Assumptions 1 to 3, b_1 = 0, 1/2 < alpha < 1; corrected: 2 lambda eta <= 1",
    corrected="the noise of step t counts (1 - 2 lambda eta)^(T - t) times",
    figure="bounds_sfsa_theorem_4_1",
)
def theorem_4_1():
    """T = 60, alpha = 3/4, (b - 1)^2 / 2, noise that doubles every gradient (or cancels it, equally
    likely), G = 4 on all of |b| <= 1: the right side is -.15."""
    T, alpha, G = 60, 0.75, 4.0
    eta, (path, gradients, mean) = T**-alpha, lucky_descent(T, alpha)
    error = float((path[-1, 0] - 1) ** 2)
    gains = -(path[:-1, 0] - 1) * (gradients - mean)[:, 0]
    right = (1 - 2 * eta) ** T + eta * G**2 / 2 + 2 * eta * gains.sum()
    ours = bounds.sfsa_theorem_4_1(path, gradients, mean, [1.0], alpha, 1.0, G)
    return shown(
        true=error <= right,
        informative=steady_error() < 1,
        corrected=error <= ours.right,
        error=error,
        printed=right,
        corrected_side=ours.right,
    )


@SFSA.states(
    "Limit after Theorem 4.1",
    "(1 - 2 lambda / T^alpha)^T tends to exp(-T^(1 - alpha))",
    kind="remark",
    true=False,
    corrected="exp(-2 lambda T^(1 - alpha))",
    by=("sfsa_limit_4_1",),
)
def limit_after_theorem_4_1():
    """lambda = .2, alpha = 3/4, T = 10^9: the ratio to the printed limit is above 10^40."""
    T, alpha, convexity = 10**9, 0.75, 0.2
    exact = T * np.log1p(-2 * convexity * T**-alpha)
    ours = log(bounds.sfsa_limit_4_1(T, alpha, convexity))
    gap = exact + T ** (1 - alpha)
    return shown(
        true=abs(gap) < 1, corrected=abs(exact - ours) < 1e-3, log_of_ratio=gap, ours=exact - ours
    )


@SFSA.states(
    "Remark 4.1",
    "the 'standard error' s - mean^2 in Theta_k(sigma beta), for data that are not normalised",
    true=False,
    corrected="sqrt(s - mean^2)",
)
def remark_4_1():
    """s - mean^2 is the variance: the order of variance times |beta_j| depends on the units."""
    return shown(
        true=not depends_on_units(lambda variance, beta: variance * np.abs(beta)),
        corrected=not depends_on_units(standardized),
    )


def own_promise(p, noise, threshold):
    """The coefficient that equals its own threshold, which R and G make grow with it.

    Rows are signs; R_2, within which the path has to stay, is twice the coefficient and
    noise sqrt(p).
    """
    norm = 0.0
    for _ in range(200):
        R = norm + (2 * norm + noise * sqrt(p))
        norm = threshold(sqrt(p) * (sqrt(p) * R + noise), R, max(norm, 1e-12)) * 1.001
    return norm


@SFSA.states(
    "Corollary 4.1",
    "all true features are found with probability 1 - exp(-omega) if beta_min exceeds the right "
    "side of Theorem 4.1, its noise bounded by 4 G R sqrt(2 omega) / T^(alpha - 1/2)",
    true=False,
    informative=False,
    applies="as Theorem 4.1",
    corrected="beta_min > sqrt(2 B), B that bound on the squared error",
    figure="bounds_sfsa_theorem_4_1",
)
def corollary_4_1():
    """B bounds a squared error. In units in which squares are small (rows of signs, noise of sign
    1e-4, one true feature of five, alpha = .7, T = 10^4) the promise is .95: the printed threshold
    finds the feature in a fourth of 200 runs, the corrected one in all."""
    T, p, alpha, noise, omega, runs = 10_000, 5, 0.7, 1e-4, 3.0, 200
    eta = T**-alpha

    def printed(G, R, norm):
        steady = (1 - 2 * eta) ** T * norm**2 + eta * G**2 / 2
        return steady + 4 * G * R * sqrt(2 * omega) / T ** (alpha - 0.5)

    def ours(G, R, norm):
        return bounds.sfsa_corollary_4_1(T, alpha, 1.0, G, R, norm, omega).beta_min

    truth = np.zeros((2, 1, p))
    truth[:, 0, 0] = [own_promise(p, noise, each) for each in (printed, ours)]
    within = 2 * truth[:, 0, 0] + noise * sqrt(p)
    rng, beta, largest = np.random.default_rng(5), np.zeros((2, runs, p)), np.zeros(2)
    for _ in range(T):
        x, sign = (rng.integers(0, 2, shape) * 2.0 - 1 for shape in ((runs, p), (runs, 1)))
        slope = np.sum(x * (beta - truth), axis=2, keepdims=True) + noise * sign
        beta -= eta * slope * x
        largest = np.maximum(largest, np.linalg.norm(beta, axis=2).max(axis=1))
    rate = np.mean(np.argmax(np.abs(beta), axis=2) == 0, axis=1)
    claimed = 1 - exp(-omega)
    return shown(
        true=rate[0] >= claimed or largest[0] > within[0],
        informative=steady_error() * K < 1,
        corrected=rate[1] >= claimed and largest[1] <= within[1],
        claimed=claimed,
        printed=rate[0],
        corrected_rate=rate[1],
    )
