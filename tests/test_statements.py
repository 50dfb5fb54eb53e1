"""The 71 items of the papers: each witness finds what is registered."""

import doctest
import inspect
from collections import Counter
from functools import partial
from importlib import import_module
from math import isfinite

import pytest
import yaml

from ofslib import bounds
from ofslib.reproduction import theory_pages
from ofslib.reproduction.statements import STATEMENTS

PAPERS = {"sfsa": 12, "dissertation": 35, "os": 9, "ofs": 10, "barda": 5}
FUNCTIONS = sorted(
    name
    for name in dir(bounds)
    if not name.startswith("_") and inspect.isfunction(getattr(bounds, name))
)  # the public ones
# Of our own, in none of the papers
OWN = ("olsth_", "ofsa_", "information_", "lasso_", "sgdt_", "sfsa_recovery_", "sfsa_beta_min")
WITNESSED = [each for each in STATEMENTS if each.witness]


def test_every_item_of_the_papers_is_registered_once():
    assert Counter(each.paper for each in STATEMENTS) == PAPERS
    assert len({(each.paper, each.item) for each in STATEMENTS}) == sum(PAPERS.values()) == 71
    assert [each.paper for each in STATEMENTS] == list(Counter(PAPERS).elements())


@pytest.mark.parametrize("statement", WITNESSED, ids=lambda each: f"{each.paper}: {each.item}")
def test_a_witness_finds_what_is_registered(statement):
    true, informative, corrected, numbers = statement.witness()
    assert (true, informative) == (statement.true, statement.informative)
    # Where there is another form, it holds where the printed one fails.
    assert corrected or (corrected is None and not statement.corrected)
    assert all(isfinite(value) for value in numbers.values())


# Their corrected form asks for more, and promises the same, or less, where that is given.
STRICTER = {"Proposition 1", "Proposition 4", "Theorem 3", "Corollary 3", "Proposition 7"}
STRICTER = {("dissertation", item) for item in STRICTER} | {("ofs", "Theorem 1")}
MISTAKEN = [each for each in WITNESSED if each.true is False and each.by]
MISTAKEN = [each for each in MISTAKEN if (each.paper, each.item) not in STRICTER]


@pytest.mark.parametrize("statement", MISTAKEN, ids=lambda each: f"{each.paper}: {each.item}")
def test_a_witness_does_not_take_the_printed_form_for_the_corrected_one(statement, monkeypatch):
    """It judges our functions: with the printed form in their place it says so."""
    for name in statement.by:
        if "variant" in inspect.signature(getattr(bounds, name)).parameters:
            monkeypatch.setattr(bounds, name, partial(printed_form, getattr(bounds, name)))
    assert statement.witness().corrected is False


def printed_form(function, *args, **kwargs):
    return function(*args, **{**kwargs, "variant": "printed"})


def test_functions_and_statements_name_each_other():
    named = [name for each in STATEMENTS for name in each.by]
    assert set(named) == {name for name in FUNCTIONS if not name.startswith(OWN)}
    assert all(name.startswith(f"{each.paper}_") for each in STATEMENTS for name in each.by)


@pytest.mark.parametrize(
    "module",
    [f"ofslib.bounds.{name}" for name in (
        "barda", "descent", "least_squares", "leverage", "limits", "olsth", "sfsa", "substitution",
    )] + ["ofslib.reproduction.statements"] + [f"ofslib.beyond.{name}" for name in (
        "ofsa_law", "sfsa_law", "sgdt_law", "union_bounds",
    )],
)  # fmt: skip
def test_examples_of_docstrings_give_what_they_show(module):
    found = doctest.testmod(import_module(module))
    assert found.attempted > 0 == found.failed


def test_the_pages_of_theory_are_those_of_the_statements():
    """And what config/theory.yaml adds is about items that there are."""
    items = {(each.paper, each.item) for each in STATEMENTS}
    added = yaml.safe_load((theory_pages.ROOT / "config/theory.yaml").read_text("utf-8"))
    own = {("own", item) for item in added["own"]["items"]}
    named = {(paper, item) for paper, known in added.items() for item in known["items"]}
    assert named <= items | own
    for file, text in theory_pages.pages():
        again = "python -m ofslib.reproduction.theory_pages"
        assert file.read_text("utf-8") == text, again
