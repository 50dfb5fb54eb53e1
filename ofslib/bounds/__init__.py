"""The theorems of the five papers as functions, laws of single methods, and a floor for all.

A function is named after its paper and item. It takes the quantities that the statement names, and
returns what the statement promises: a number, a `Recovery`, a `TailBound`, or, for an inequality
along a run, an `Inequality` with both sides computed from the record of the run. Where the
printed form is wrong, `variant` is "corrected" or "printed", and the docstring has both forms.
docs/theory/ has the derivations, `ofslib.reproduction.statements` all 71 items of the papers and
what became of each, with a check. Logarithms are natural.

*Errors.* `DoesNotApply`, a ValueError, where an assumption fails. ValueError where an argument
cannot be: a count below 1, a number that is not positive and finite, an array that is empty, not
finite, or of another shape than is said, an unknown `variant`. TypeError where one is no number (a
bool is none), no integer, no array of numbers. Each names the argument.

*Units.* A coefficient is in units of label over feature, `sigma` and the noise in that of the
labels, variances and eigenvalues of features in that of a squared feature, a step size in one over
that of a curvature. A result says its own.

What a docstring does not explain is explained by the statement that it names, or is the same
everywhere:

n, p, k : int
    Rows, features, and true features.
T, s : int
    Steps, and features kept.
sigma : float
    Standard deviation of the noise.
eta : float
    Step size.
m, M : float
    Restricted convexity and smoothness of the loss (dissertation).
alpha : float
    Exponent of T in the step size (sfsa).
epsilon, ridge : float
    Accuracy in (0, 1); lambda in a'(sampled sampled' + lambda I)^-1 a (ofs).
"""

import importlib
import warnings
from typing import TYPE_CHECKING

from ofslib.bounds.barda import barda_passes as barda_passes
from ofslib.bounds.barda import barda_theorem_1 as barda_theorem_1
from ofslib.bounds.barda import barda_theorem_2 as barda_theorem_2
from ofslib.bounds.descent import dissertation_corollary_1 as dissertation_corollary_1
from ofslib.bounds.descent import dissertation_corollary_3 as dissertation_corollary_3
from ofslib.bounds.descent import dissertation_lemma_1 as dissertation_lemma_1
from ofslib.bounds.descent import dissertation_lemma_2 as dissertation_lemma_2
from ofslib.bounds.descent import dissertation_proposition_1 as dissertation_proposition_1
from ofslib.bounds.descent import dissertation_proposition_7 as dissertation_proposition_7
from ofslib.bounds.descent import dissertation_theorem_1 as dissertation_theorem_1
from ofslib.bounds.descent import dissertation_theorem_3 as dissertation_theorem_3
from ofslib.bounds.least_squares import dissertation_corollary_2 as dissertation_corollary_2
from ofslib.bounds.least_squares import dissertation_lemma_3 as dissertation_lemma_3
from ofslib.bounds.least_squares import dissertation_lemma_4 as dissertation_lemma_4
from ofslib.bounds.least_squares import dissertation_lemma_5 as dissertation_lemma_5
from ofslib.bounds.least_squares import dissertation_proposition_2 as dissertation_proposition_2
from ofslib.bounds.least_squares import dissertation_proposition_3 as dissertation_proposition_3
from ofslib.bounds.least_squares import dissertation_proposition_5 as dissertation_proposition_5
from ofslib.bounds.least_squares import dissertation_proposition_6 as dissertation_proposition_6
from ofslib.bounds.least_squares import dissertation_theorem_2 as dissertation_theorem_2
from ofslib.bounds.least_squares import dissertation_theorem_4 as dissertation_theorem_4
from ofslib.bounds.leverage import ofs_lemma_1 as ofs_lemma_1
from ofslib.bounds.leverage import ofs_lemma_2 as ofs_lemma_2
from ofslib.bounds.leverage import ofs_lemma_3 as ofs_lemma_3
from ofslib.bounds.leverage import ofs_lemma_4 as ofs_lemma_4
from ofslib.bounds.leverage import ofs_selected_features as ofs_selected_features
from ofslib.bounds.leverage import ofs_theorem_1 as ofs_theorem_1
from ofslib.bounds.leverage import ofs_theorem_1_failure as ofs_theorem_1_failure
from ofslib.bounds.leverage import ofs_theorem_2 as ofs_theorem_2
from ofslib.bounds.limits import information_floor as information_floor
from ofslib.bounds.limits import information_floor_asymptotic as information_floor_asymptotic
from ofslib.bounds.limits import information_floor_probability as information_floor_probability
from ofslib.bounds.limits import lasso_rows as lasso_rows
from ofslib.bounds.olsth import olsth_beta_min as olsth_beta_min
from ofslib.bounds.olsth import olsth_recovery_probability as olsth_recovery_probability
from ofslib.bounds.sfsa import sfsa_corollary_4_1 as sfsa_corollary_4_1
from ofslib.bounds.sfsa import sfsa_limit_4_1 as sfsa_limit_4_1
from ofslib.bounds.sfsa import sfsa_proposition_4_1 as sfsa_proposition_4_1
from ofslib.bounds.sfsa import sfsa_theorem_4_1 as sfsa_theorem_4_1
from ofslib.bounds.statements import DoesNotApply as DoesNotApply
from ofslib.bounds.statements import Inequality as Inequality
from ofslib.bounds.statements import Recovery as Recovery
from ofslib.bounds.statements import TailBound as TailBound
from ofslib.bounds.substitution import os_lemma_4 as os_lemma_4
from ofslib.bounds.substitution import os_theorem_1 as os_theorem_1
from ofslib.bounds.substitution import os_theorem_2 as os_theorem_2
from ofslib.bounds.substitution import os_theorem_2_step_size as os_theorem_2_step_size
from ofslib.bounds.substitution import os_theorem_3 as os_theorem_3

if TYPE_CHECKING:
    from ofslib.beyond.ofsa_law import ofsa_beta_min as ofsa_beta_min
    from ofslib.beyond.ofsa_law import ofsa_recovery_probability as ofsa_recovery_probability
    from ofslib.beyond.sfsa_law import sfsa_beta_min as sfsa_beta_min
    from ofslib.beyond.sfsa_law import sfsa_recovery_probability as sfsa_recovery_probability
    from ofslib.beyond.sgdt_law import sgdt_beta_min as sgdt_beta_min
    from ofslib.beyond.sgdt_law import sgdt_recovery_probability as sgdt_recovery_probability
    from ofslib.beyond.union_bounds import ofsa_last_step_beta_min as ofsa_last_step_beta_min
    from ofslib.beyond.union_bounds import (
        olsth_beta_min_any_covariance as olsth_beta_min_any_covariance,
    )
    from ofslib.beyond.union_bounds import olsth_beta_min_closed_form as olsth_beta_min_closed_form
    from ofslib.beyond.union_bounds import olsth_failure_bound as olsth_failure_bound

# File of ofslib/beyond -> its functions that are found here, imported when they are asked for.
_BEYOND = {
    "ofsa_law": ("ofsa_beta_min", "ofsa_recovery_probability"),
    "sfsa_law": ("sfsa_beta_min", "sfsa_recovery_probability"),
    "sgdt_law": ("sgdt_beta_min", "sgdt_recovery_probability"),
    "union_bounds": (
        "ofsa_last_step_beta_min",
        "olsth_beta_min_any_covariance",
        "olsth_beta_min_closed_form",
        "olsth_failure_bound",
    ),
}
_HOMES = {name: file for file, names in _BEYOND.items() for name in names}
_RENAMED = {"Sides": "Inequality", "Tail": "TailBound"}


def __getattr__(name: str):
    if name in _RENAMED:
        new = _RENAMED[name]
        warnings.warn(f"ofslib.bounds.{name} is now {new}", FutureWarning, stacklevel=2)
        return globals()[new]
    if name in _HOMES:
        return getattr(importlib.import_module(f"ofslib.beyond.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__():
    return sorted({*globals(), *_HOMES})
