"""The 71 items of the papers: each witness finds what is registered, and the documents say it."""

import doctest
import inspect
from collections import Counter
from functools import partial
from importlib import import_module
from math import isfinite

import pandas as pd
import pytest
import shipped

from ofslib import bounds
from ofslib.reproduction import overview
from ofslib.reproduction.statements import STATEMENTS

REFERENCE = shipped.ROOT / "docs/bounds.md"
ENTRIES = shipped.load().entries
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


def test_the_table_that_comes_along_has_the_statements_as_they_are_registered():
    """It has no runs of which an edit would have it drawn again."""
    now = overview.statements(witnessed=False)
    shown = pd.read_csv(shipped.ROOT / "figures/bounds_overview.csv", keep_default_na=False)
    pd.testing.assert_frame_equal(shown[now.columns], now)


@pytest.mark.parametrize("statement", WITNESSED, ids=lambda each: f"{each.paper}: {each.item}")
def test_a_witness_finds_what_is_registered(statement):
    true, informative, corrected, numbers = statement.witness()
    assert (true, informative) == (statement.true, statement.informative)
    # Where there is another form, it holds where the printed one fails.
    assert corrected or (corrected is None and not statement.corrected)
    assert all(isfinite(value) for value in numbers.values())
    assert statement.evidence and statement.evidence[-1] in ".)"


# Their corrected form asks for more, and promises the same, or less, where that is given.
STRICTER = {"Proposition 1", "Proposition 4", "Theorem 3", "Corollary 3", "Proposition 7"}
STRICTER = {("dissertation", item) for item in STRICTER} | {("ofs", "Theorem 1")}
MISTAKEN = [each for each in WITNESSED if each.true is False and each.by]
MISTAKEN = [each for each in MISTAKEN if (each.paper, each.item) not in STRICTER]


@pytest.mark.parametrize("statement", MISTAKEN, ids=lambda each: f"{each.paper}: {each.item}")
def test_a_witness_does_not_take_the_printed_form_for_the_corrected_one(statement, monkeypatch):
    """It judges our functions: with the printed form in their place it says so."""
    module = import_module(statement.witness.__module__)
    for name in statement.by:
        if "variant" in inspect.signature(getattr(bounds, name)).parameters:
            monkeypatch.setattr(module, name, partial(printed_form, getattr(bounds, name)))
    assert statement.witness().corrected is False


def printed_form(function, *args, **kwargs):
    return function(*args, **{**kwargs, "variant": "printed"})


def test_a_statement_without_a_witness_answers_nothing():
    for each in STATEMENTS:
        if each.witness is None:
            assert each[4:] == ((None, None, "", "", (), "", None)), each.item
        else:
            assert (each.true, each.informative) != (None, None), each.item
        # What is false has a corrected form, or is a matter of fact.
        facts = ("Time and memory", "Eq. (5.1)")
        assert each.true is not False or each.corrected or each.item in facts, each.item


def test_functions_and_statements_name_each_other():
    named = [name for each in STATEMENTS for name in each.by]
    assert set(named) == {name for name in FUNCTIONS if not name.startswith(OWN)}
    for each in STATEMENTS:
        assert all(name.startswith(f"{each.paper}_") for name in each.by), each.item
        if each.figure:
            assert ENTRIES[each.figure].spec["notebook"] == "bound_curves", each.item


def test_the_documents_have_the_table_as_it_is_registered(tmp_path):
    text = REFERENCE.read_text(encoding="utf-8")
    copy = tmp_path / "bounds.md"
    start = text.index(overview.BEGIN) + len(overview.BEGIN)
    copy.write_text(text[:start] + text[text.index(overview.END) :], encoding="utf-8")
    overview.write_statements(copy)
    assert copy.read_text(encoding="utf-8") == text
    copy.write_text("no marks", encoding="utf-8")
    with pytest.raises(ValueError, match="statements: begin"):
        overview.write_statements(copy)
    assert copy.read_text(encoding="utf-8") == "no marks"


def test_the_overview_answers_what_the_witnesses_find(monkeypatch):
    """Not what is registered: a witness that finds the contrary changes the table."""
    first = WITNESSED[0]
    other = first._replace(witness=lambda: (True, None, None, {"a": 0.25}))
    monkeypatch.setattr(overview, "STATEMENTS", (other, STATEMENTS[4]))
    table = overview.statements()
    assert table[overview.TRUE].tolist() == ["yes", "-"] and first.true is False
    assert table["numbers"].tolist() == ["a 0.25", ""]
    cells = overview.statements_as_markdown(pd.concat([table]))
    assert cells.startswith("**sfsa: Sun and Barbu**") and "\\|beta\\_j\\|" in cells


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_says_what_it_returns_and_raises_and_has_an_example(name):
    text = inspect.getdoc(getattr(bounds, name))
    for part in ("Returns", "Raises", "Examples"):
        assert f"\n{part}\n{'-' * len(part)}\n" in text, part
    assert f">>> {name}(" in text or f"{name}(" in text.partition(">>>")[2]
    signature = inspect.signature(getattr(bounds, name))
    if "variant" in signature.parameters:
        assert "corrected" in text.lower() or "As `" in text or "as `" in text


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
