"""The scoreboard: each number of the papers has a place, and the committed tables keep the rule."""

from pathlib import Path

import pandas as pd
import pytest
import shipped

from ofslib.reproduction import __main__ as command
from ofslib.reproduction import project, scoreboard, tables

ROOT = Path(__file__).parents[1]
PARTS = ("config", "figures", "workflow", "notebooks", "benchmarks")


@pytest.fixture
def at_root(monkeypatch):
    monkeypatch.chdir(ROOT)


def test_all_1701_cells_are_accounted_for(at_root):
    """The counts of the papers' tables, by paper, as they were counted cell by cell."""
    board = scoreboard.scoreboard()
    columns = ["paper", "table", "method", "verdict", "why", "by the text", "cells"]
    assert list(board) == columns
    papers = board.groupby("paper")["cells"].sum().to_dict()
    assert papers == {"sfsa": 361, "dissertation": 1256, "ofs": 57, "barda": 27}
    assert set(board["verdict"]) <= set(tables.VERDICTS)
    refused = board["verdict"] == "not comparable"
    assert (board.loc[refused, "why"] != "").all(), "each has a reason"
    # What the papers themselves lack: 152 cells are unreadable, 47 are dashes, and one is "N/A".
    kinds = {"unreadable in our text of the paper": "lost", "dash in the paper": "dash"}
    lost = board["why"].map(kinds)
    lacking = board.groupby(lost)["cells"].sum()
    assert (lacking["lost"], lacking["dash"]) == (152, 48)


def test_every_entry_with_published_numbers_is_in_the_list():
    work = shipped.load()
    listed = pd.read_csv(ROOT / scoreboard.LIST)
    published = {work.entries[name].spec.get("published") for name in work.entries} - {None}
    assert published <= set(listed["table"])


def test_the_committed_tables_are_judged_by_the_rule(tmp_path):
    """Judging them anew changes no file."""
    shipped.copy(tmp_path, *PARTS, without=("*.svg", "*.pdf"))
    files = scoreboard.judge(project.committed(tmp_path))
    assert "figures/sfsa_table_1.csv" in files and "figures/ofs_table_3.csv" in files
    for file in files:
        assert (tmp_path / file).read_text() == (ROOT / file).read_text(), file


def test_the_command_judges_the_figures_of_the_committed_scale(tmp_path, monkeypatch, capsys):
    """Not those of the usual scale, which stand in a folder of their own."""
    shipped.copy(tmp_path, *PARTS, without=("*.svg", "*.pdf"))
    shipped.at_smoke(tmp_path)
    table = tmp_path / "figures/sfsa_table_1.csv"
    right = table.read_text(encoding="utf-8")
    assert right.count(",better,") and right.count(",worse,")
    for place in (table, tmp_path / "figures/smoke/sfsa_table_1.csv"):
        place.parent.mkdir(exist_ok=True)
        place.write_text(right.replace(",better,", ",worse,"), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    assert command.main(["scoreboard", "--judge"]) == 0
    assert table.read_text(encoding="utf-8") == right
    assert place.read_text(encoding="utf-8") != right
    said = capsys.readouterr().out
    monkeypatch.chdir(ROOT)
    assert command.main(["scoreboard"]) == 0
    assert capsys.readouterr().out == said, "judged before it was counted"


def test_a_table_with_more_cells_than_the_list_says_is_refused(tmp_path, monkeypatch):
    shipped.copy(tmp_path, "config")
    for folder in ("notebooks", "benchmarks"):
        (tmp_path / folder).symlink_to(ROOT / folder)
    (tmp_path / "config/published.csv").write_text("table,paper,cells,why\none,Doe,1,\n")
    (tmp_path / "config/published/one.csv").write_text(
        "method,metric,value,note\nA,DR,1,\nB,DR,2,\n"
    )
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match=r"2 cells, .* says 1"):
        scoreboard.scoreboard()
    (tmp_path / "config/published.csv").write_text("table,paper,cells,why\none,Doe,3,\n")
    (board,) = scoreboard.scoreboard().groupby("why")["cells"].sum().items()
    assert board == ("not yet run", 3)


def test_the_command_prints_the_sum(at_root, capsys):
    assert command.main(["scoreboard"]) == 0
    said = capsys.readouterr().out
    lines = said.splitlines()
    sharp = [line.split() for line in lines if line.startswith("dissertation_table_4_2 ")]
    (sharp,) = [words for words in sharp if words[1:3] == ["reconstructed", "AUC"]]
    # Of pairs of ours and another method's printed value nearly all would agree (audited: 97 %).
    assert float(sharp[-2]) == pytest.approx(97, abs=1)
    totals = [line.split() for line in lines if line.startswith("all ")]
    assert len(totals) == 3, "by the text, reconstructed, in our text of the papers"
    for total in totals:
        assert int(total[-1]) == sum(map(int, total[1:-1])) == 1701


# -------------------------------------------------- what counts


def cell(run, verdict, text=None, fitted=0, metric="DR", sharp=True, strict=None):
    """A published cell: the same run in both readings."""
    own = {"run": run, "verdict": verdict, "strict": strict or verdict, "sharp": sharp}
    own |= {"metric": metric, "printed": "printed", "by the text": text}
    own |= {"strict by the text": text, "fitted by the text": fitted}
    return own | {"run by the text": run if text else None}


def counted(cells, reading, rule="tolerant"):
    table = scoreboard.evidence(pd.DataFrame(cells))
    (row,) = table[(table["reading"] == reading) & (table["rule"] == rule)].to_dict("records")
    return tuple(row[word] for word in tables.VERDICTS[:-1])


def test_a_run_is_evidence_once_by_its_worst_verdict():
    cells = [cell("a", "agrees"), cell("a", "worse"), cell("b", "agrees"), cell("b", "agrees")]
    cells += [cell("b", "agrees", metric="RMSE"), cell("c", "not comparable"), cell("c", "better")]
    assert counted(cells, "reconstructed") == (2, 1, 1, 0)


def test_what_cannot_discriminate_and_what_is_no_result_is_no_evidence():
    cells = [cell("a", "agrees"), cell("b", "agrees", sharp=False)]
    cells += [cell("c", "agrees", metric="points"), cell("d", "agrees", metric="memory")]
    assert counted(cells, "reconstructed") == (1, 0, 0, 0)


def test_both_readings_and_both_rules_are_counted():
    cells = [cell("a", "agrees", "worse", fitted=1), cell("b", "agrees", "agrees", strict="better")]
    cells += [cell("c", "agrees")]
    assert counted(cells, "reconstructed") == (3, 0, 0, 0)
    assert counted(cells, "reconstructed", "strict") == (2, 1, 0, 0)
    assert counted(cells, "by the text") == (1, 0, 1, 0)
    assert counted(cells, "by the text, nothing chosen") == (1, 0, 0, 0)


def test_tables_that_show_the_same_runs_are_known_by_their_results(at_root):
    """Table 5.1 is within A.1, sfsa 1 is 4.1 but for RADAR, and sfsa 3 is 4.4."""
    cells = scoreboard.published_cells()
    cells = cells[cells["metric"].isin(tables.TOLERANCE) & (cells["verdict"] != "not comparable")]
    runs = {table: set(own["run"]) for table, own in cells.groupby("table")}
    assert runs["dissertation_table_5_1"] < runs["dissertation_table_a_1"]
    assert runs["dissertation_table_4_1"] < runs["sfsa_table_1"]
    assert runs["dissertation_table_4_4"] == runs["sfsa_table_3"]
    assert not runs["sfsa_table_1"] & runs["sfsa_table_2"], "other rows"
    assert not runs["sfsa_table_2"] & runs["dissertation_table_4_2"], "alpha is another"


def test_every_reading_counts_the_values_that_were_chosen(at_root):
    """The warm-up of SFSA: one for each n; by one rule it is one."""
    work = project.committed(ROOT)
    for name, rows in {"sfsa_table_1": 6, "sfsa_table_2": 4, "dissertation_table_4_2": 4}.items():
        fitted, spec = work.fitted(name), work.entries[name].spec
        assert len({point["n"] for point in work.entries[name].points}) == rows
        assert fitted["reconstructed"]["SFSA"] - fitted["one rule"]["SFSA"] == rows - 1
        warmup = spec["readings"]["one rule"]["methods"]["SFSA"]["warmup"]
        assert all(rows == n / 4 for n, rows in warmup.items() if n != "by")
