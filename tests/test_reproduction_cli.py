"""`python -m ofslib.reproduction` where it is called: in a checkout, anywhere in it, and elsewhere.

What pack, unpack, compare and check do stands in test_store.py and test_comparison.py.
"""

import os
import re
import shutil
import sys
from pathlib import Path

import pytest
import shipped
import small_project

from ofslib.reproduction import overview, project, provenance
from ofslib.reproduction.__main__ import main


def test_elsewhere_it_says_in_a_line_that_it_needs_a_checkout(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["list"]) == 2
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith("error: no config/config.yaml in ")


def test_all_tables_and_figures_are_listed(tmp_path, monkeypatch, capsys):
    folder = shipped.copy(tmp_path, "config", "notebooks", "benchmarks", "figures")
    monkeypatch.chdir(folder / "notebooks")
    assert main(["list"]) == 0
    lines = {
        line.split("figure_", 1)[1].split()[0]: line
        for line in capsys.readouterr().out.splitlines()[1:]
    }
    assert lines.keys() == shipped.load().entries.keys()
    one = lines["sfsa_table_1"]
    drawn = provenance.read(shipped.ROOT / "figures/PROVENANCE.json")["sfsa_table_1"]["scale"]
    assert "notebooks/recovery_table.ipynb" in one and f"drawn ({drawn})" in one
    here, of_archive, number = map(int, one.split()[-3:])
    assert here + of_archive == number > 100


def test_a_readers_copy_of_a_notebook_is_kept_when_the_notebook_changes(tmp_path):
    work = project.load(shipped.copy(tmp_path, "config", "notebooks"))
    copy = work.root / "notebooks" / overview.own_notebook(work, "sfsa_table_1")
    copy.write_text("edited")
    overview.own_notebook(work, "sfsa_table_1")
    assert copy.read_text() == "edited"
    os.utime(work.root / work.notebook("sfsa_table_1"), (2**32, 2**32))
    overview.own_notebook(work, "sfsa_table_1")
    [kept] = set(copy.parent.iterdir()) - {copy}
    assert kept.read_text() == "edited" != copy.read_text()


def test_a_table_is_shown_in_a_terminal(monkeypatch, capsys):
    """Also by the name of a table that is shown with another."""
    monkeypatch.chdir(shipped.ROOT / "docs")
    assert main(["show", "dissertation_table_5_2"]) == 0
    said = capsys.readouterr().out
    assert re.search(r"strong\s+1000\s+ours .* 100\.00⁺ \(0\.00\).*\n\s+paper .* 73\.71 ", said)
    for name in ("os_figure_1", "dissertation_tabel_5_1"):
        assert main(["show", name]) == 2 and name in capsys.readouterr().err


def test_a_method_that_stands_beside_the_snakefile_is_known(tmp_path, monkeypatch, capsys):
    """As docs/howto/add_method.md says; the folder of the call is not on the path of a module."""
    small_project.build(tmp_path)
    (tmp_path / "config/methods.yaml").write_text("mine: {class: my_method:Mine, entries: [one]}")
    (tmp_path / "my_method.py").write_text("class Mine:\n    def fit(self, X, y): pass\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [path for path in sys.path if path])
    assert main(["list"]) == 0 and "figure_one" in capsys.readouterr().out


def test_the_plan_is_a_table_with_its_sum(tmp_path, monkeypatch, capsys):
    small_project.build(tmp_path)
    monkeypatch.chdir(tmp_path)
    small_project.make_all("paper", seconds=3600.0)
    assert main(["plan", "--scale", "paper"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("Scale paper: hours of one core")
    assert [line.split()[:4] for line in lines[-2:]] == [
        ["two", "1", "1", "0"],
        ["all", "3", "3", "0"],
    ]
    shutil.rmtree("results")
    assert main(["plan", "--scale", "paper"]) == 0
    assert "nothing alike was ever run of 3 results" in capsys.readouterr().out
    assert not Path("results").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["plan", "--scale", "huge"], "'huge' is none of"),
        (["unpack", "none.zip"], "none.zip"),
        (["unpack"], "results-paper.zip"),
        (["compare"], "results-paper.zip"),
        (["check", "--seed", "1"], "there is no figures/results-paper.zip to check"),
    ],
)
def test_an_error_is_a_line_and_code_2(tmp_path, monkeypatch, capsys, words, said):
    small_project.build(tmp_path)
    monkeypatch.chdir(tmp_path)
    assert main(words) == 2
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith("error: ") and said in line


def test_check_asks_for_a_seed_of_the_readers(capsys):
    with pytest.raises(SystemExit):
        main(["check"])
    assert "--seed" in capsys.readouterr().err
