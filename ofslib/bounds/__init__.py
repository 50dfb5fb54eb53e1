"""The theorems of the five papers as functions, and a bound for OLSth that is sharp.

A function is named after its paper and item. It takes the quantities that the statement names,
raises `DoesNotApply` where an assumption fails, and returns what the statement promises: a number,
a `Recovery`, a `Tail`, or, for an inequality along a run, the two `Sides` computed from the record
of the run. Where the printed form is wrong, `variant` is "printed" or "corrected". Derivations,
counterexamples, and what became of all 71 items: docs/bounds.md. Logarithms are natural.
"""

from ofslib.bounds.barda import barda_passes, barda_theorem_1, barda_theorem_2
from ofslib.bounds.descent import (
    dissertation_corollary_1,
    dissertation_corollary_3,
    dissertation_lemma_1,
    dissertation_lemma_2,
    dissertation_proposition_1,
    dissertation_proposition_7,
    dissertation_theorem_1,
    dissertation_theorem_3,
)
from ofslib.bounds.least_squares import (
    dissertation_corollary_2,
    dissertation_lemma_3,
    dissertation_lemma_4,
    dissertation_lemma_5,
    dissertation_proposition_2,
    dissertation_proposition_3,
    dissertation_proposition_5,
    dissertation_proposition_6,
    dissertation_theorem_2,
    dissertation_theorem_4,
)
from ofslib.bounds.leverage import (
    ofs_lemma_1,
    ofs_lemma_2,
    ofs_lemma_3,
    ofs_lemma_4,
    ofs_selected_features,
    ofs_theorem_1,
    ofs_theorem_1_failure,
    ofs_theorem_2,
)
from ofslib.bounds.olsth import (
    olsth_beta_min,
    olsth_beta_min_closed_form,
    olsth_recovery_probability,
)
from ofslib.bounds.sfsa import (
    sfsa_corollary_4_1,
    sfsa_limit_4_1,
    sfsa_proposition_4_1,
    sfsa_theorem_4_1,
)
from ofslib.bounds.statements import DoesNotApply, Recovery, Sides, Tail
from ofslib.bounds.substitution import (
    os_lemma_4,
    os_theorem_1,
    os_theorem_2,
    os_theorem_2_step_size,
    os_theorem_3,
)

__all__ = [
    "DoesNotApply",
    "Recovery",
    "Sides",
    "Tail",
    "barda_passes",
    "barda_theorem_1",
    "barda_theorem_2",
    "dissertation_corollary_1",
    "dissertation_corollary_2",
    "dissertation_corollary_3",
    "dissertation_lemma_1",
    "dissertation_lemma_2",
    "dissertation_lemma_3",
    "dissertation_lemma_4",
    "dissertation_lemma_5",
    "dissertation_proposition_1",
    "dissertation_proposition_2",
    "dissertation_proposition_3",
    "dissertation_proposition_5",
    "dissertation_proposition_6",
    "dissertation_proposition_7",
    "dissertation_theorem_1",
    "dissertation_theorem_2",
    "dissertation_theorem_3",
    "dissertation_theorem_4",
    "ofs_lemma_1",
    "ofs_lemma_2",
    "ofs_lemma_3",
    "ofs_lemma_4",
    "ofs_selected_features",
    "ofs_theorem_1",
    "ofs_theorem_1_failure",
    "ofs_theorem_2",
    "olsth_beta_min",
    "olsth_beta_min_closed_form",
    "olsth_recovery_probability",
    "os_lemma_4",
    "os_theorem_1",
    "os_theorem_2",
    "os_theorem_2_step_size",
    "os_theorem_3",
    "sfsa_corollary_4_1",
    "sfsa_limit_4_1",
    "sfsa_proposition_4_1",
    "sfsa_theorem_4_1",
]
