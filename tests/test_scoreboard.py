"""The scoreboard: each number of the papers has a place, and the committed tables keep the rule."""

import shutil
from pathlib import Path

import pandas as pd
import pytest
import shipped

from ofslib.reproduction import project, scoreboard, tables

ROOT = Path(__file__).parents[1]


@pytest.fixture
def at_root(monkeypatch):
    monkeypatch.chdir(ROOT)


def test_all_1701_cells_are_accounted_for(at_root):
    """The counts of the papers' tables, by paper, as they were counted cell by cell."""
    board = scoreboard.scoreboard()
    assert list(board) == ["paper", "table", "method", "verdict", "why", "cells"]
    papers = board.groupby("paper")["cells"].sum().to_dict()
    assert papers == {"sfsa": 361, "dissertation": 1256, "ofs": 57, "barda": 27}
    assert set(board["verdict"]) <= set(tables.VERDICTS)
    refused = board["verdict"] == "not comparable"
    assert (board.loc[refused, "why"] != "").all(), "each has a reason"
    # What the papers themselves lack: 152 cells that are lost, 47 dashes and an "N/A".
    lost = board["why"].map({"lost in the paper": "lost", "dash in the paper": "dash"})
    lacking = board.groupby(lost)["cells"].sum()
    assert (lacking["lost"], lacking["dash"]) == (152, 48)


def test_every_entry_with_published_numbers_is_in_the_list():
    work = project.load(ROOT)
    listed = pd.read_csv(ROOT / scoreboard.LIST)
    published = {work.entries[name].spec.get("published") for name in work.entries} - {None}
    assert published <= set(listed["table"])


def test_the_committed_tables_are_judged_by_the_rule(tmp_path):
    """Judging them anew changes no file."""
    for name in ("config", "figures", "workflow", "notebooks", "benchmarks"):
        shutil.copytree(
            ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("*.svg", "*.pdf")
        )
    files = scoreboard.judge(project.committed(tmp_path))
    assert "figures/sfsa_table_1.csv" in files and "figures/ofs_table_3.csv" in files
    for file in files:
        assert (tmp_path / file).read_text() == (ROOT / file).read_text(), file


def test_the_command_judges_the_figures_of_the_committed_scale(tmp_path, monkeypatch, capsys):
    """Not those of the usual scale, which stand in a folder of their own."""
    for name in ("config", "figures", "workflow", "notebooks", "benchmarks"):
        shutil.copytree(
            ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("*.svg", "*.pdf")
        )
    shipped.at_smoke(tmp_path)
    table = tmp_path / "figures/sfsa_table_1.csv"
    right = table.read_text(encoding="utf-8")
    assert right.count(",better,") and right.count(",worse,")
    for place in (table, tmp_path / "figures/smoke/sfsa_table_1.csv"):
        place.parent.mkdir(exist_ok=True)
        place.write_text(right.replace(",better,", ",worse,"), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    scoreboard.main(["--judge"])
    assert table.read_text(encoding="utf-8") == right
    assert place.read_text(encoding="utf-8") != right
    said = capsys.readouterr().out
    monkeypatch.chdir(ROOT)
    scoreboard.main([])
    assert capsys.readouterr().out == said, "judged before it was counted"


def test_a_table_with_more_cells_than_the_list_says_is_refused(tmp_path, monkeypatch):
    (tmp_path / "config/published").mkdir(parents=True)
    (tmp_path / "config/config.yaml").touch()
    (tmp_path / "config/published.csv").write_text("table,paper,cells,why\none,Doe,1,\n")
    (tmp_path / "config/published/one.csv").write_text("method,metric,value\nA,DR,1\nB,DR,2\n")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match=r"2 cells, .* says 1"):
        scoreboard.scoreboard()
    (tmp_path / "config/published.csv").write_text("table,paper,cells,why\none,Doe,3,\n")
    (board,) = scoreboard.scoreboard().groupby("why")["cells"].sum().items()
    assert board == ("not yet run", 3)


def test_the_command_prints_the_sum(at_root, capsys):
    scoreboard.main([])
    lines = capsys.readouterr().out.splitlines()
    (sharp,) = [line.split() for line in lines if line.startswith("dissertation_table_4_2  AUC")]
    # Of pairs of ours and another method's printed value nearly all would agree (audited: 97 %).
    assert float(sharp[-2]) == pytest.approx(97, abs=1)
    (total,) = [line.split() for line in lines if line.startswith("all ")]
    assert int(total[-1]) == sum(map(int, total[1:-1])) == 1701
