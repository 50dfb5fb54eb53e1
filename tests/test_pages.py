"""Tables of docs/ that are made of results."""

from pathlib import Path

import pandas as pd
import pytest

from ofslib.datasets import registry
from ofslib.reproduction import pages

ROOT = Path(__file__).parent.parent


def test_the_page_holds_the_table_of_the_committed_figures():
    """An edit of a number is undone: the page is made of the figures, and of nothing else."""
    text, shown = (ROOT / pages.PAGE).read_text(), pd.read_csv(ROOT / pages.UNTUNED)
    made = {"untuned": lambda: pages.untuned(shown)}
    assert pages.filled(text, made) == text
    wrong = text.replace("\n| SFSA | ", "\n| SFSA | 1")
    assert wrong != text
    assert pages.filled(wrong, made) == text
    changed = shown.assign(ours=shown["ours"] / 2)
    assert pages.filled(text, {"untuned": lambda: pages.untuned(changed)}) != text


def test_a_line_a_method_with_its_numbers_of_features():
    rows = registry()
    small, large = "ecml18_dexter", "ecml18_pcmac"
    said = [
        {"dataset": name, "method": "m", "k": k, "metric": "AUC", "ours": value}
        for name, values in {small: (0.5, 0.25), large: (1.0, 0.12349)}.items()
        for k, value in zip((100, 10), values, strict=True)
    ]
    for name in (small, large):
        said.append({"dataset": name, "method": "all", "metric": "AUC", "ours": 0.75})
        said.append({"dataset": name, "method": "all", "metric": "selected", "ours": 1234.4})
    assert pages.untuned(pd.DataFrame(said)).split("\n") == [
        f"| AUC, k = 10, 100 | pcmac, {rows.n_train[large]:,} rows "
        f"| dexter, {rows.n_train[small]:,} rows |",
        "| --- | --- | --- |",
        "| all | .750 (1,234) | .750 (1,234) |",
        "| m | .123 1.000 | .250 .500 |",
    ]


@pytest.mark.parametrize("marks", ["", "<!-- measured: b -->\n<!-- end -->"])
def test_marks_and_tables_must_agree(marks):
    with pytest.raises(ValueError, match="marks and tables differ"):
        pages.filled(f"text\n{marks}", {"a": lambda: "| |"})
