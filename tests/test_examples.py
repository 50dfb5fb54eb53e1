"""Every public class has an example, and all examples give what they show.

Those of `ofslib.bounds` are run in test_statements.py.
"""

import doctest

import pytest

import ofslib
from ofslib import averages, datasets, simulate, testing

SHOWN = {
    f"{home.__name__}.{name}": getattr(home, name)
    for home in (ofslib, datasets, simulate)
    for name in home.__all__
}
CLASSES = {
    name: each
    for name, each in SHOWN.items()
    if isinstance(each, type) and not issubclass(each, Exception)
}


def examples_of(each):
    return [test for test in doctest.DocTestFinder().find(each, "it") if test.examples]


@pytest.mark.filterwarnings("error::UserWarning")
@pytest.mark.parametrize("name", CLASSES)
def test_the_example_of_a_class_gives_what_it_shows(name):
    found, runner = examples_of(CLASSES[name]), doctest.DocTestRunner()
    assert "it" in {test.name for test in found}, "no example, but perhaps of a method"
    for test in found:
        runner.run(test)
    assert runner.failures == 0


@pytest.mark.parametrize(
    "module",
    [ofslib._citation, testing, averages],
    ids=lambda module: module.__name__,
)
def test_the_examples_of_functions_give_what_they_show(module):
    found = doctest.testmod(module)
    assert found.attempted and not found.failed


def test_all_classes_are_looked_at():
    estimators = {f"ofslib.{name}" for names in ofslib.ESTIMATORS.values() for name in names}
    assert estimators | {"ofslib.RunningAverages"} <= set(CLASSES)
    assert {name for name in CLASSES if name.startswith("ofslib.simulate.")} == {
        f"ofslib.simulate.{design.__name__}" for design in simulate.DESIGNS.values()
    }
