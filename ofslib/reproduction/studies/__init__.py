"""Experiments of their own: what a table or figure shows that is no score of a trained model.

An entry of config/experiments names a function in `study`. It is called with the setting, a
`numpy.random.SeedSequence` of the replicate, the data set or None, and the entry's own parameters.
It yields dicts, the rows of a table, with the keys metric and value and what tells rows apart.
"""

import inspect

from ofslib.reproduction.methods import find_class


def tidy(values, **where):
    """Rows of a table: one for each metric of `values`, all with the columns `where`."""
    return [{**where, "metric": metric, "value": value} for metric, value in values.items()]


def leaves_k(spec):
    """Whether an entry leaves the number of features of a method to the study."""
    return "k" in inspect.signature(find_class(spec["class"])).parameters and "k" not in spec
