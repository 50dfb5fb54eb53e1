"""The papers' bounds by hand, what they refuse, and the exact law of OLSth.

That they hold in runs, and that printed forms fail, the witnesses show: test_statements.py.
"""

from math import exp, log, sqrt

import numpy as np
import pytest
from pytest import approx
from scipy.stats import norm

from ofslib import bounds
from ofslib.bounds import DoesNotApply, Inequality
from ofslib.wishart import LowRank, sample_ols


def test_sides_compare_every_entry_up_to_rounding():
    assert Inequality(1.0, 1.0 - 1e-12).holds and not Inequality(1.0, 1.0 - 1e-6).holds
    assert not Inequality(np.array([0, 2.0]), np.array([1.0, 1.0])).holds
    assert Inequality(-1.0, -1.0 + 1e-12).holds and not Inequality(1e-12, 0.0).holds


GOLDEN = (1 + sqrt(5)) / 2
COROLLARY_3 = 4 * 0.5 * 0.75 / 0.595 * sqrt(9 * log(9) / 100)
# m = M = 1, eta = 3/4: rho = 1/4, 1.62 rho = .405. Steps to 1/10 and to 1/20: [log(100) / .405] + 1
# = 12 and [log(20) / .405] + 1 = 8; log to the base 1 / .405, 6 and 4
SCHEDULE = (0.75, 1.0, 1.0, 10.0)
FOURTH = (1 - 0.75**32) / (1 - 0.75**2)
FIRST = 0.75**16 + 4 / 16
# B-ARDA and B-AMD: from 0 with gradient (1, 1), delta = 1, eta = 1: H_1 = 2, z = -(1/2, 1/2); the
# second is dropped, and the next gradient is (0, 1).
PLAYED = (
    [[1.0, 1], [0, 1]],
    [[0.0, 0], [-0.5, -0.5], [-0.5, -1]],
    [[0.0, 0], [-0.5, 0], [-0.5, -1]],
)
PLAYED = (*PLAYED, [1.0, 0], [1.0, 2], [0.0, 0], 1.0, 1.0)
TWO = 1 + sqrt(2)
# Name, arguments, what is printed (None: the same, or it has no other form), what is corrected
BY_HAND = [
    ("dissertation_lemma_3", (2.0, 1.0), None, 2 * exp(-2)),
    ("dissertation_lemma_5", (2.0, [1, 1, sqrt(2)]), None, 2 * exp(-4 / 8)),
    # sqrt(4) (1 - 1/2) - sqrt(25 / 100) = 1/2; exp(-100 / 4 / 2)
    ("dissertation_lemma_4", (100, 4.0, 25.0, 0.5, 10), None, (0.5, exp(-12.5))),
    # printed: 2 * 3 / 0.5 * sqrt(log 16 / 10); corrected: 2 * 3 * sqrt(2 * 2 * log 16 / (0.5 * 10))
    ("dissertation_proposition_3", (100, 16, 3.0, 0.5, 0.5),
     (12 * sqrt(log(16) / 10), 1, None), (6 * sqrt(4 * log(16) / 5), 1, None)),
    ("dissertation_corollary_2", (100, 16, 3.0, 0.5),
     (12 * sqrt(log(16) / 100), 1 - 2 / 16, None), (6 * sqrt(4 * log(16) / 50), 1 - 2 / 16, None)),
    # sqrt(lambda) = 0.8 * 1 - rho sqrt(1 / 16): rho = sqrt 1.5 corrected, 1.5 printed; C1 = 4 / 3
    ("dissertation_theorem_2", (160, 10, 1.0, 1.0, 1.5, 1.0, 4 / 3),
     (2 / 0.425**2 * sqrt(log(10) / 160), 1 - 2 * 10 ** (-1 / 3) - exp(-3.2), None),
     (2 / (0.8 - sqrt(1.5) / 4) * sqrt(8 / 3 * log(10) / 160),
      1 - 2 * 10 ** (-1 / 3) - exp(-3.2), None)),
    # n_0 = ceil(100 log n) = 1382; sqrt(lambda) = 0.8 - sqrt(10 / 1382)
    ("dissertation_theorem_4", (10**6, 10, 1.0, 1.0, 1.0),
     (2 / (0.8 - sqrt(10 / 1382)) ** 2 * sqrt(log(10) / 1000), 1 - 3e-6, 1382),
     (2 / (0.8 - sqrt(10 / 1382)) * sqrt(4 * log(10) / sqrt(1382)), 1 - 3e-6, 1382)),
    ("dissertation_theorem_4", (10**6, 10, 1.0, 1.0, 1.0, 2.0, 20_000), None,
     (2 / (0.8 - sqrt(1 / 2000)) * sqrt(4 * log(10) / sqrt(20_000)), 1 - 3e-6, 20_000)),
    ("dissertation_proposition_6", (100, 4, 2.0, 0.5, 1.5),
     (8 * sqrt(log(4) / 100), 1 - 2 * 4 ** (-1 / 3), None),
     (16 * sqrt(1.5 * 4 * log(4) / 100), 0.5, None)),
    # errors 0 and 2; S_xx = 1, S_xy = 2, S_yy = 5
    ("dissertation_proposition_2", ([[1.0], [1]], [1.0, 3], [1.0]), None, (1, 1 / 2 - 2 + 5 / 2)),
    # On feature 1 alone: 1 - 2 eta, and sqrt(1 - 2 eta + 4 eta^2), eta = 1/4
    ("dissertation_lemma_1", ([1.0, 0], [0, 0], [2.0, 5], [0, 0], 0.25, 1.0, 2.0),
     (sqrt(0.5**2 + 1.25**2), sqrt(0.75)), (0.5, sqrt(0.75))),
    ("dissertation_lemma_2", (1, 1, 2), None, GOLDEN),
    # gamma = 1 / (3 - 1 + 1) = 1/3: 1 + (1/3 + sqrt(13/9)) / 2
    ("dissertation_lemma_2", (3, 1, 9), None, sqrt(7 / 6 + sqrt(13) / 6)),
    ("dissertation_lemma_2", (4, 2, 4), None, 1),
    # rho = 1/4; kept or true are two of three features
    ("dissertation_proposition_1",
     ([1.0, 0, 2], [1.0, 0, 0], [1.0, 0, 0], [0.1, -0.2, 0], [True, False, True], 0.75, 1.0, 1.0),
     None, (0, 1.62 * (2 / 4 + 0.75 * sqrt(2) * 0.2))),
    ("dissertation_theorem_1", (2, 9, 2.0, 0.1, 0.75, 1.0, 1.0), None,
     0.405**2 * 2 + 1.62 * 0.75 * 3 * 0.1 / 0.595),
    ("dissertation_theorem_3", (2, 100, 9, 0.5, 2.0, 0.75, 1.0, 1.0), None,
     0.405**2 * 2 + 3.24 * 0.5 * 0.75 / 0.595 * sqrt(9 * log(9) / 100)),
    ("dissertation_corollary_1", (9, 0.1, *SCHEDULE),
     (2 * 0.75 * 3 * 0.1 / 0.595, 1, 8), (3.24 * 0.75 * 3 * 0.1 / 0.595, 1, 4)),
    ("dissertation_corollary_1", (9, 0.1, 1.0, 1.0, 1.0, 10.0), None, (3.24 * 0.3, 1, 1)),
    ("dissertation_corollary_3", (100, 9, 0.5, *SCHEDULE),
     (COROLLARY_3, 1 - 2 / 9, 12), (COROLLARY_3, 1 - 2 / 9, 6)),
    ("dissertation_proposition_7", (100, 9, 0.5, *SCHEDULE, 1.44),
     (COROLLARY_3, 1 - 2 * 9 ** (1 - 2 / 1.44), 12), (1.2 * COROLLARY_3, 1 - 2 / 9, 6)),
    # Fits 0, 0, 2/3; error -2; regret of row 3: 2 - 8/9 = 10/9. m = M = 1, G = 2, D = 2/3
    ("dissertation_proposition_5", (np.ones((3, 1)), [0.0, 0, 2], [[0], [0], [0], [2 / 3]], 2),
     None, (10 / 27, (4 * log(1.5) + 8 / 9) / 6)),
    # From 0, gradient -1 + .5, eta .1: error .95^2; (1 - .2) + .01 * 2.25 + .2 * 1 * .5
    ("sfsa_proposition_4_1", ([[0.0], [0.05]], [[-0.5]], [[-1.0]], [1.0], 0.1, 1.0, 1.5),
     None, (0.95**2, 0.8 + 0.0225 + 0.1)),
    # T = 16, alpha = 3/4: eta = 1/8, 1 - 2 lambda eta = 3/4
    ("sfsa_corollary_4_1", (16, 0.75, 1.0, 2.0, 3.0, 1.0, 0.5),
     (FIRST + 4 * 2 * 3 / 16**0.25, 1 - exp(-0.5), None),
     (sqrt(2 * (FIRST + 4 * 2 * 3 / 8 * sqrt(FOURTH))), 1 - exp(-0.5), None)),
    # Mean squared step 2 / .25; 2 * (4 / 2) / (.5 * (1 - .5) * .5)
    ("os_theorem_1", ([1.0, 3.0], [5.0, 3.0, 1.0], 0.5, 1.0, 0.5), None, (8, 32)),
    # 1 / (2 (2 + (1/8 + 1/8) 4 / (.5 * 2) * 9)); without staleness 1 / (2 L_F)
    ("os_theorem_2_step_size", (2.0, 2.0, 0.5, 2, 1, 5, 1, 3), None, 1 / 22),
    ("os_theorem_2_step_size", (2.0, 2.0, 0.5, 2, 1, 5, 1, 0), None, 1 / 4),
    # Delta = 1 / .08 - 11 = 1.5
    ("os_theorem_2", ([1.0], [1.0, 0], 0.04, 2.0, 2.0, 0.5, 2, 1, 5, 1, 3),
     (625, 1 / (1.5 * 0.0016)), (625, 1 / (0.5 * 1.5 * 0.0016))),
    # A selected feature has a gradient: 1 / (2 rho) or 2 / (2 rho) times 4
    ("os_lemma_4", (5.0, [0.0, 1], [-2.0, 1], 1, 0.5), 1, -3),
    # alpha = (.5 * .5)^-2 = 16: 16/17 * (2 - .5)
    ("os_theorem_3", ((2.0, 1.0, 0.5), [1.0, 0], [0.0, 1.5], 0.5, 0.5), None, (0.5, 24 / 17)),
    # x = e_2: 1.21 / 1 - 1
    ("ofs_theorem_1", (np.diag([2.0, 1]), np.diag([2.0, 1.1]), 0.3), None, (0.21, 0.3)),
    # One cluster: centre (1, .5), cost 2 + .5; sampled (1, .55), 2 + .605
    ("ofs_lemma_3", (np.diag([2.0, 1]), np.diag([2.0, 1.1]), [0, 0], 0.3), None, (0.105, 0.75)),
    ("ofs_theorem_2", (np.diag([2.0, 1]), np.diag([2.0, 1.1]), [0, 0], [0, 0], 0.3),
     None, (2.5, 2.5 * 1.3 / 0.7)),
    # x = .3 / (1.5 * .8) = 1/4: 1 - 4 / (5/4 * 7/6) = -61/35; no ridge: 1 - 4 / (7/6) = -17/7
    ("ofs_theorem_1_failure", (50, 0.5, 0.3, sqrt(0.8)), 0.02, 2 * 50 ** (-61 / 35)),
    ("ofs_theorem_1_failure", (50, 0.5), None, 2 * 50 ** (-17 / 7)),
    # c = 2 or 8 log(3) / .25
    ("ofs_lemma_1", ([0.01, 1.0], 3, 0.5), 1.02, 0.32 * log(3) + 1),
    # 16 + 16 log 4; 16 + 16 log(1 + 1.5 * 4 / .5)
    ("ofs_lemma_2", (2, 2.0, 0.5, 0.5), 16 + 16 * log(4), 16 + 16 * log(13)),
    ("ofs_selected_features", (2, 2.0, 0.5, 0.5, 10), 8 * log(10) * log(2),
     32 * log(2) * 16 * log(9)),
    ("ofs_lemma_4", (3.0, 3.0, 1.5, 4), 4 * exp(-1), 8 * exp(-1)),
    # delta / 2; (1/2 + 1) total; xi^2 = 2 / 4, T = 2
    ("barda_theorem_1", PLAYED, None, (3, 0.5 + 1.5 * TWO + sqrt(0.5 * 4 * TWO))),
    # |w*|_inf * 2 / 2; (1.5^2 / 2 + 1) total; delta / 2
    ("barda_theorem_2", PLAYED, (3, 1 + 2.125 * TWO), (3, 1 + 2.125 * TWO + 0.5)),
    ("barda_passes", (100, 10_000), None, 200),
    ("barda_passes", (2, 3), None, 3),
]  # fmt: skip


def flat(found):
    return np.ravel(np.array(found, float))


@pytest.mark.parametrize(("name", "args", "printed", "corrected"), BY_HAND)
def test_by_hand(name, args, printed, corrected):
    function = getattr(bounds, name)
    assert flat(function(*args)) == approx(flat(corrected), nan_ok=True)
    if printed is not None:
        assert flat(function(*args, variant="printed")) == approx(flat(printed), nan_ok=True)


STEP = ([[0.0], [0.05]], [[-0.5]], [[-1.0]], [1.0], 0.1)


@pytest.mark.parametrize(
    ("name", "args", "why"),
    [
        ("dissertation_lemma_4", (10, 1.0, 10.0, 0.1, 10), "n = 10 <= p = 10"),
        ("dissertation_proposition_6", (100, 10, 1.0, 0.5, 2.0, "printed"), "M = 2 >= 2"),
        ("dissertation_theorem_2", (150, 200, 1.0, 0.25, 0.25), "n = 150 <= p = 200"),
        ("os_theorem_2_step_size", (1.0, 3.0, 0.5, 0.5, 4, 50, 5, 4), "m = 0.5 < 1"),
        ("sfsa_theorem_4_1", ([[0.5], [0.6]], [[-0.5]], [[-0.5]], [1.0], 0.75, 0.5, 1.0),
         "beta_1 is not 0"),
        ("os_theorem_3", ((1.0, 0.5, 0.2), [1.0, 0], [0, 0], 2.0, 1.0), "rho eta = 2 > 1"),
        ("os_theorem_2", ([1.0], [1.0, 0], 0.2, 1.0, 1.0, 0.5, 3.74, 1, 9, 1, 1),
         r"m = 3.74 > 2 \+ sqrt\(3\)"),
        ("ofs_lemma_1", ([0.5], 1, 0.5), "n = 1 <= 1"),
        # rho = .9: 1.62 rho > 1, and 1 - 1.62 rho in the denominator
        ("dissertation_corollary_1", (9, 0.1, 0.1, 1.0, 1.0, 3.0, "printed"), "1.62 rho = 1.458"),
        ("dissertation_corollary_2", (100, 1, 1.0, 0.5), "p = 1 <= 1"),
        ("dissertation_proposition_3", (100, 10, 1.0, 0.5, 1.5), "alpha = 1.5"),
        ("dissertation_proposition_3", (100, 10, 1.0, 0.5, 1.0, 1.0), "C1 = 1 <= 1"),
        ("dissertation_theorem_2", (2000, 1000, 1.0, 1.0, 2.0), "n/p = 2 <= 3.125"),
        ("dissertation_theorem_4", (10**6, 1000, 1.0, 1.0, 1.0), "n/p = 1.382 <= 1.562"),
        ("dissertation_theorem_4", (10**6, 10, 1.0, 1.0, 1.0, 2.0, 99), r"n_0 = 99 .* \[1382"),
        ("olsth_beta_min", (100, 100, 3), "n = 100 <= 101 fitted"),
        ("olsth_beta_min", (20, 2, 1, 1.0, 0.0, 0.6), "chance level"),
        ("dissertation_lemma_2", (2, 3, 5), r"k\* = 3"),
        ("dissertation_theorem_1", (1, 5, 1.0, 1.0, 1e-4, 1.0, 1069.0), r"M/m = 1069 >= 1.26"),
        ("dissertation_theorem_1", (1, 5, 1.0, 1.0, 2.1, 1.0, 1.0), "eta = 2.1 >= 2 m / M"),
        ("dissertation_theorem_1", (1, 5, 1.0, 1.0, 0.1, 1.0, 1.0), r"1.62 rho = 1.458 >= 1"),
        ("dissertation_corollary_1", (3, 1.0, 1.0, 1.0, 1.0, 2.0, "printed"), "1.62 rho = 0 divid"),
        ("dissertation_theorem_2", (1600, 100, 1.0, 1.0, 2.0, 1.0, 2.0, "printed"), "C1 = 2 > 2 /"),
        ("sfsa_limit_4_1", (100, 0.5, 1.0), "alpha = 0.5"),
        ("sfsa_corollary_4_1", (100, 0.6, 10.0, 1.0, 1.0, 1.0, 1.0), "2 lambda eta = 1.26"),
        ("os_theorem_1", ([1.0], [1.0, 0.0], 0.5, 2.0, 1.0), "eta = 0.5 >= 1 / L_F"),
        ("os_theorem_1", ([1.0], [1.0, 0.0], 0.1, 2.0, 0.0), "c = 0.0"),
        ("os_theorem_2", ([1], [1, 0], 0.3, 2, 2, 1, 1, 1, 5, 1, 0), "eta = 0.3 >= 0.25"),
        ("os_lemma_4", (0.0, [1.0, 1.0], [0.0, 0.0], 1, 1.0), "2 nonzero weights > s = 1"),
        ("os_theorem_3", ((1.0, 0.5, 0.0), [1.0, 0], [0.1, 0], 0.5, 1.0), "gradient 0.1"),
        ("os_theorem_3", ((1.0, 0.5, 0.0), [1.0, 0], [0, 3.0], 0.5, 1.0), "step 1.5 > .* 1"),
        ("ofs_theorem_1", (np.eye(2), np.eye(2), 1.0), "epsilon = 1"),
        ("ofs_lemma_3", (np.eye(2), np.eye(2)[:, :1], [0, 1], 0.5), "deviation 1 > epsilon"),
        ("ofs_lemma_2", (1, 1.0, 0.5, 1.0), "n = 1 <= 1"),
        ("barda_theorem_1", ([[2.0]], [[0], [1]], [[0], [1]], [1.0], [0.0], [0.0], 1.0, 0.01),
         "g_t.* = 2 > delta = 0.01"),
        ("barda_theorem_2", ([[2.0]], [[1], [1]], [[0], [1]], [1.0], [0.0], [0.0], 1.0, 0.01),
         "untruncated does not start at 0"),
        ("dissertation_proposition_5", (np.eye(3), [0, 0, 0], np.zeros((4, 3)), 2), "2 rows is"),
        ("dissertation_theorem_4", (10**6, 1, 1.0, 1.0, 1.0), "p = 1 <= 1"),
        ("dissertation_theorem_3", (1, 100, 1, 1.0, 1.0, 0.75, 1.0, 1.0), "p = 1 <= 1"),
        ("sfsa_proposition_4_1", (*STEP, 1.0, 0.4), "norm 0.5 > G = 0.4"),
        ("sfsa_proposition_4_1", (*STEP, 1.1, 1.5), "not 1.1-strongly convex"),
        ("ofs_theorem_1_failure", (10, 0.5, 0.8, 1.0), "ridge.* 0.75"),
    ],
)  # fmt: skip
def test_a_violated_assumption_is_named(name, args, why):
    with pytest.raises(DoesNotApply, match=f"does not apply: .*{why}"):
        getattr(bounds, name)(*args)


BARDA = ([[1.0]], [[0], [1]], [[0], [1]], [1.0], [0.0], [0.0], 1.0, 1.0)


@pytest.mark.parametrize(
    ("name", "args", "match"),
    [
        ("dissertation_proposition_5", ([[1.0]] * 3, [0, 0, 1], [[0], [0], [0]], 2),
         r"path has shape \(3, 1\), must have \(4, 1\)"),
        ("barda_theorem_1", (*BARDA[:4], [1.0, 2.0], *BARDA[5:]), r"losses has shape \(2,\)"),
        ("barda_theorem_1", ([[np.nan]], *BARDA[1:]), "gradients must be finite"),
        ("os_theorem_1", ([-1.0], [1.0, 0.0], 0.5, 1.0, 1.0), "squared_steps must not be neg"),
        ("os_theorem_3", ((1.0, 0.2, 0.5), [1.0, 0], [0, 0], 0.5, 1.0), "the best, 0.5, is above"),
        ("os_theorem_3", ((1.0, 0.5, 0.2), [0.0, 0], [0, 0], 0.5, 1.0), "weights must have a nonz"),
        ("ofs_lemma_1", ([0.5, -0.1], 3, 0.5), "scores must not be negative"),
        ("ofs_theorem_1", (np.zeros((2, 2)), np.eye(2), 0.5), "A is 0"),
        ("dissertation_lemma_1", ([1.0], [1.0, 2], [1.0], [1.0], 0.1, 1.0, 1.0), "other has shape"),
        ("dissertation_theorem_1", (1, 5, 1.0, 1.0, 0.1, 2.0, 1.0), "m=2.0 exceeds M=1.0"),
        ("dissertation_theorem_2", (150, 20, 1.0, 4.0, 1.0), "smallest=4.0 must be at most"),
        ("dissertation_corollary_1", (9, 0.1, 0.75, 1.0, 1.0, 0.5), "norm_ratio=0.5 must be at le"),
        ("dissertation_proposition_5", (np.eye(3), [0, 0, 0], np.zeros((4, 3)), 3), "start=3"),
        ("ofs_theorem_1_failure", (10, 0.5, 0.1), r"smallest must be given with ridge=0\.1"),
        ("olsth_beta_min", (50, 5, 2, 1.0, 0.0, 1.0), "delta"),
        ("olsth_beta_min", (50, 5, 2, 1.0, -1.0), "spike"),
    ],
)  # fmt: skip
def test_records_that_cannot_be_are_refused(name, args, match):
    with pytest.raises(ValueError, match=match) as caught:
        getattr(bounds, name)(*args)
    assert not isinstance(caught.value, DoesNotApply)


# The exact law of OLSth


@pytest.mark.parametrize(
    ("n", "p", "k", "spike", "fit_intercept"),
    [
        (30, 10, 3, 0.0, False),
        (12, 10, 9, 1.0, True),
        (12, 10, 1, 1.0, True),
        (100, 50, 5, 5.0, False),
        (4, 2, 1, 0.0, True),
    ],
)
@pytest.mark.parametrize("delta", [0.4, 0.02])
def test_olsth_beta_min_is_sharp(n, p, k, spike, fit_intercept, delta):
    """In 20,000 draws of the estimate, as many miss a feature as should."""
    least = bounds.olsth_beta_min(n, p, k, 1.0, spike, delta, fit_intercept)
    beta = least * (np.arange(p) < k)
    covariance = LowRank(np.ones(p), sqrt(spike) * np.ones((p, 1)))
    drawn = np.abs(sample_ols(n, covariance, beta, 1.0, 3, 20_000, fit_intercept))
    missed = np.mean(drawn[:, :k].min(axis=1) <= drawn[:, k:].max(axis=1))
    assert missed == approx(delta, abs=4 * sqrt(delta * (1 - delta) / 20_000))
    assert least <= bounds.olsth_beta_min_closed_form(n, p, k, 1.0, 1.0, delta, fit_intercept)


def test_olsth_closed_form_is_near_the_sharp_one_and_below_the_papers():
    """p = 1000 features of correlation 1/2, k = 100; Theorem 2 is the paper's at (3.14)."""
    for n in (10_000, 100_000):
        sharp = bounds.olsth_beta_min(n, 1000, 100, 1.0, 1.0, 0.002)
        size = n, 1000, 100, 1.0, 1.0, 0.002
        closed = bounds.olsth_beta_min_closed_form(*size, ranking="raw")
        paper = bounds.dissertation_theorem_2(n, 1000, 1.0, 1.0, 2.0)
        assert paper.probability <= 0.998 + 1e-9
        assert sharp < closed < 1.02 * sharp
        assert closed < paper.beta_min


@pytest.mark.parametrize("spike", [0.0, 1.0, 100.0, 1e6])
def test_olsth_of_two_features_is_exact_for_any_correlation(spike):
    """(b + w_1 + w_2)(b + w_1 - w_2) > 0, whose factors are independent, and 1e-6 is promised."""
    beta = 1.3
    add, subtract = norm.cdf(beta / sqrt(2 / (1 + 2 * spike))), norm.cdf(beta / sqrt(2))
    expected = add * subtract + (1 - add) * (1 - subtract)
    n = 10**12
    found = bounds.olsth_recovery_probability(beta / sqrt(n), n, 2, 1, 1.0, spike, False)
    assert found == approx(expected, abs=1e-6)
    least = bounds.olsth_beta_min(n, 2, 1, 1.0, spike, 1 - expected, False)
    assert least == approx(beta / sqrt(n), rel=1e-5)


@pytest.mark.parametrize(("old", "new"), [("Sides", "Inequality"), ("Tail", "TailBound")])
def test_an_old_name_warns_and_is_the_new_one(old, new):
    with pytest.warns(FutureWarning, match=f"{old} is now {new}"):
        assert getattr(bounds, old) is getattr(bounds, new)
