"""The scoreboard: each number of the papers has a place, and the committed tables keep the rule."""

from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
import shipped

from ofslib.reproduction import __main__ as command
from ofslib.reproduction import project, provenance, scoreboard, tables

ROOT = Path(__file__).parents[1]
PARTS = ("config", "figures", "workflow", "notebooks", "benchmarks")


@pytest.fixture(scope="module")
def work():
    return replace(shipped.load(scale=shipped.load().committed), root=ROOT)


def test_all_1701_cells_are_accounted_for(work):
    """The counts of the papers' tables, by paper, as they were counted cell by cell."""
    cells, board = scoreboard.count(work)
    papers = board.groupby("paper")["cells"].sum().to_dict()
    assert papers == {"sfsa": 361, "dissertation": 1256, "ofs": 57, "barda": 27}
    assert len(cells) == board["cells"].sum() and set(board["verdict"]) <= set(tables.VERDICTS)
    refused = board["verdict"] == "not comparable"
    assert (board.loc[refused, "why"] != "").all(), "each has a reason"
    # What the papers themselves lack: 152 cells are unreadable, 47 are dashes, and one is "N/A".
    lacking = board.groupby("why")["cells"].sum()
    assert lacking["unreadable in our text of the paper"] == 152
    assert lacking["dash in the paper"] == 48


def test_every_entry_with_published_numbers_is_in_the_list(work):
    listed = pd.read_csv(ROOT / scoreboard.LIST)
    published = {entry.spec.get("published") for entry in work.entries.values()} - {None}
    assert published <= set(listed["table"])


def test_the_committed_tables_are_judged_by_the_rule_at_their_own_scale(tmp_path):
    """Judging them anew changes no file but those of another scale."""
    shipped.copy(tmp_path, *PARTS, without=("*.svg", "*.pdf"))
    file = tmp_path / "figures/PROVENANCE.json"
    drawn = provenance.read(file)
    provenance.write(file, drawn | {"sfsa_table_2": drawn["sfsa_table_2"] | {"scale": "smoke"}})
    files = scoreboard.judge(project.committed(tmp_path))
    assert "figures/sfsa_table_1.csv" in files and "figures/ofs_table_3.csv" in files
    changed = [f for f in files if (tmp_path / f).read_text() != (ROOT / f).read_text()]
    assert {name.rpartition("/")[2].partition(".")[0] for name in changed} <= {
        *("sfsa_table_2", "sfsa_table_2_time", "sfsa_table_2_claims")
    }
    mixed = scoreboard.published_cells(project.committed(tmp_path)).groupby("table")["why"].unique()
    assert [t for t, why in mixed.items() if "not run at scale smoke" in why] == ["sfsa_table_2"]


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
    totals = [line.split() for line in said.splitlines() if line.startswith("all ")]
    assert len(totals) == 3, "by the text, reconstructed, in our text of the papers"
    for total in totals:
        assert int(total[-1]) == sum(map(int, total[1:-1])) == 1701


def test_a_table_with_more_cells_than_the_list_says_is_refused(tmp_path, work):
    shipped.copy(tmp_path, "config")
    here = replace(work, root=tmp_path)
    (tmp_path / "config/published.csv").write_text("table,paper,cells,why\none,Doe,1,\n")
    (tmp_path / "config/published/one.csv").write_text(
        "method,metric,value,note\nA,DR,1,\nB,DR,2,\n"
    )
    with pytest.raises(ValueError, match=r"2 cells, .* says 1"):
        scoreboard.count(here)
    (tmp_path / "config/published.csv").write_text("table,paper,cells,why\none,Doe,3,\n")
    assert scoreboard.count(here)[1].groupby("why")["cells"].sum().to_dict() == {"not yet run": 3}


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


def test_tables_that_show_the_same_runs_are_known_by_their_results(work):
    """Table 5.1 is within A.1, sfsa 1 is 4.1 but for RADAR, and sfsa 3 is 4.4."""
    cells = scoreboard.published_cells(work)
    cells = cells[cells["metric"].isin(tables.TOLERANCE) & (cells["verdict"] != "not comparable")]
    runs = {table: set(own["run"]) for table, own in cells.groupby("table")}
    assert runs["dissertation_table_5_1"] < runs["dissertation_table_a_1"]
    assert runs["dissertation_table_4_1"] < runs["sfsa_table_1"]
    assert runs["dissertation_table_4_4"] == runs["sfsa_table_3"]
    assert not runs["sfsa_table_1"] & runs["sfsa_table_2"], "other rows"
    assert not runs["sfsa_table_2"] & runs["dissertation_table_4_2"], "alpha is another"
