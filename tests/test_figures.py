"""From results to tables and figures, and files that are whole or not there."""

import errno
import hashlib
import os
import re
import shutil
import signal
import stat
import subprocess
import sys
from pathlib import Path

import matplotlib
import matplotlib.pyplot as plt
import nbformat
import numpy as np
import pandas as pd
import pytest
import yaml

from ofslib import _files
from ofslib.reproduction import claims, experiment, looks, plots, project, tables

ROOT = Path(__file__).parents[1]
NAN = float("nan")
matplotlib.use("agg")


# -------------------------------------------------- verdicts


@pytest.mark.parametrize(
    ("metric", "ours", "sd", "n", "paper", "expected"),
    [
        # within the practical tolerance, at its edge, beyond it
        ("DR", 60.0, 0.0, 10, 57.0, "agrees"),
        ("DR", 60.0, 0.0, 10, 55.0, "agrees"),
        ("DR", 60.0, 0.0, 10, 65.0, "agrees"),
        ("DR", 60.0, 0.0, 10, 54.9, "better"),
        ("DR", 60.0, 0.0, 10, 65.1, "worse"),
        ("AUC", 0.90, 0.0, 10, 0.881, "agrees"),
        ("AUC", 0.90, 0.0, 10, 0.879, "better"),
        ("AUC", 0.90, 0.0, 10, 0.921, "worse"),
        ("accuracy", 90.0, 0.0, 10, 92.0, "agrees"),
        ("accuracy", 90.0, 0.0, 10, 92.1, "worse"),
        ("accuracy", 90.0, 0.0, 10, 87.9, "better"),
        # of RMSE it is a share of the paper's value, and less is better
        ("RMSE", 10.4, 0.0, 10, 10.0, "agrees"),
        ("RMSE", 10.6, 0.0, 10, 10.0, "worse"),
        ("RMSE", 9.4, 0.0, 10, 10.0, "better"),
        ("RMSE", 104.0, 0.0, 10, 100.0, "agrees"),
        ("RMSE", 94.0, 0.0, 10, 100.0, "better"),
        ("RMSE", 0.04, 0.0, 10, 0.0, "worse"),
        # two standard errors of the difference: 2 * 10 * sqrt(1 / 20 + 1 / 20) = 6.32
        ("DR", 60.0, 10.0, 20, 53.7, "agrees"),
        ("DR", 60.0, 10.0, 20, 53.6, "better"),
        ("DR", 60.0, 10.0, 20, 66.3, "agrees"),
        ("DR", 60.0, 10.0, 20, 66.4, "worse"),
        # one run has no spread: the tolerance alone counts
        ("DR", 60.0, NAN, 1, 55.0, "agrees"),
        ("DR", 60.0, NAN, 1, 54.0, "better"),
        # nothing to compare
        ("DR", NAN, NAN, NAN, 50.0, "not comparable"),
        ("DR", 50.0, 1.0, 20, NAN, "not comparable"),
        ("DR", NAN, NAN, NAN, NAN, "not comparable"),
        ("time_s", 1.0, 0.0, 20, 1.0, "not comparable"),
        ("selected", 1.0, 0.0, 20, 1.0, "not comparable"),
    ],
)
def test_verdict(metric, ours, sd, n, paper, expected):
    assert tables.verdict(metric, ours, sd, n, paper, runs=20) == expected


def test_more_runs_decide_more():
    assert tables.verdict("DR", 60.0, 10.0, 2, 50.0, runs=20) == "agrees"
    assert tables.verdict("DR", 60.0, 10.0, 200, 50.0, runs=200) == "better"
    assert tables.verdict("DR", 60.0, 10.0, 200, 50.0, runs=4) == "agrees"


def test_rule_in_words_has_the_tolerances():
    share = {"RMSE": "5 %", "DR": "5 points", "AUC": "0.02", "accuracy": "2 points"}
    for metric, (tolerance, relative) in tables.TOLERANCE.items():
        assert f"{metric} {share[metric]}" in tables.RULE
        number = float(share[metric].split()[0])
        assert number == pytest.approx(100 * tolerance if relative else tolerance)


# -------------------------------------------------- results -> comparison


def results_of(cells, replicates=3):
    """Rows of these (reading, n, method, metric): values."""
    rows = [
        {"experiment": "one", "reading": r, "n": n, "method": m, "replicate": i, "metric": c}
        | {"value": v}
        for (r, n, m, c), values in cells.items()
        for i, v in enumerate(values)
    ]
    return pd.DataFrame(rows).assign(note=np.nan)


CELLS = {
    ("plain", 100, "SGDT", "DR"): [50, 52, 54],
    ("plain", 100, "SFSA", "DR"): [90, 90, 90],
    ("plain", 200, "SGDT", "DR"): [70, 70, 70],
    ("plain", 200, "SFSA", "DR"): [80, 81, 82],
    ("plain", 200, "mine", "DR"): [1, 2, 3],
}
SETTINGS = pd.DataFrame(
    {
        "reading": ["plain"] * 3,
        "n": [100, 200, 300],
        "skipped": ["", "", "not run at this scale"],
    }
)
PUBLISHED = pd.DataFrame(
    [
        (100, "SGDT", "DR", 53.25, None),
        (100, "SFSA", "DR", 70.10, None),
        (100, "OPG", "DR", 1.30, None),
        (200, "SGDT", "DR", 99.95, None),
        (200, "SFSA", "DR", NAN, "not readable in the paper"),
        (300, "SGDT", "DR", 100.00, None),
        (300, "SFSA", "DR", 98.00, None),
    ],
    columns=["n", "method", "metric", "value", "note"],
)


def compare(results, published, settings, methods=None):
    """Compare all cells that the methods of the results have in these settings."""
    cells = results[["method", "metric"]].drop_duplicates() if methods is None else methods
    cells = settings.assign(runs=20).merge(cells, how="cross")
    return tables.compare(results, published, cells)


def compared():
    return compare(results_of(CELLS), PUBLISHED, SETTINGS)


def cell(table, n, method):
    (row,) = table[(table["n"] == n) & (table["method"] == method)].to_dict("records")
    return row


def test_summary_by_hand():
    results = results_of(CELLS)
    lost = results.head(1).assign(replicate=3, value=np.nan, note="lost")
    results = pd.concat([results.astype({"note": object}), lost], ignore_index=True)
    row = cell(tables.summarise(results), 100, "SGDT")
    assert (row["ours"], row["sd"], row["median"], row["replicates"]) == (52, 2, 52, 3)
    assert row["se"] == pytest.approx(2 / np.sqrt(3))
    single = tables.summarise(results_of({("plain", 100, "SGDT", "DR"): [5]})).iloc[0]
    assert single["ours"] == 5 and np.isnan(single["sd"]) and np.isnan(single["se"])


def test_compare_puts_our_cell_beside_the_papers():
    table = compared()
    assert len(table) == 3 * 3
    assert not table.duplicated(["reading", "n", "method", "metric"]).any()
    agreeing = cell(table, 100, "SGDT")
    assert (agreeing["ours"], agreeing["paper"], agreeing["verdict"]) == (52, 53.25, "agrees")
    assert agreeing["why"] == ""
    assert cell(table, 100, "SFSA")["verdict"] == "better"
    assert cell(table, 200, "SGDT")["verdict"] == "worse"


def test_compare_keeps_what_cannot_be_compared_with_its_reason():
    table = compared()
    gap = cell(table, 200, "SFSA")
    assert (gap["verdict"], gap["why"]) == ("not comparable", "not readable in the paper")
    own = cell(table, 200, "mine")
    assert (own["verdict"], own["why"]) == ("not comparable", "not in the paper's table")
    skipped = cell(table, 300, "SGDT")
    assert np.isnan(skipped["ours"]) and skipped["paper"] == 100
    assert (skipped["verdict"], skipped["why"]) == ("not comparable", "not run at this scale")
    lost = cell(table, 100, "mine")
    assert (lost["verdict"], np.isnan(lost["ours"])) == ("not comparable", True)


def test_compare_has_one_row_for_a_cell_that_several_replicates_lack():
    lost = [{"n": 1, "method": "A", "metric": "DR", "replicate": r, "note": "lost"} for r in (0, 1)]
    settings = pd.DataFrame({"n": [1], "skipped": [""]})
    cells = compare(pd.DataFrame(lost).assign(value=np.nan), PUBLISHED, settings)
    assert list(cells["why"]) == ["lost"]


def test_compare_survives_a_file(tmp_path):
    for n in (100, 200):
        part = results_of({key: v for key, v in CELLS.items() if key[1] == n})
        part.drop(columns="note").to_csv(tmp_path / f"{n}.csv", index=False)
    read = tables.read_results([str(tmp_path / "100.csv"), str(tmp_path / "200.csv")])
    table = compare(read, PUBLISHED, SETTINGS)
    pd.testing.assert_frame_equal(table, compared())


def test_times_are_of_a_machine():
    results = results_of({("plain", 100, "SGDT", "time_s"): [1, 2, 9]})
    published = pd.DataFrame([(100, "SGDT", "time_s", 2.0, None)], columns=PUBLISHED.columns)
    table = compare(results, published, SETTINGS.head(1))
    (row,) = table.to_dict("records")
    assert (row["median"], row["paper"]) == (2, 2)
    assert (row["verdict"], row["why"]) == ("not comparable", "another machine")
    wide = tables.layout(table, "time_s", "plain")
    assert wide.iloc[0]["SGDT", "ours"] == "2.000", "a median has no standard error of the mean"
    assert tables.caption("time_s").endswith("median")
    assert tables.caption("DR").endswith("mean (standard error)")


def test_a_scale_that_runs_nothing_is_told_and_no_error():
    settings = SETTINGS.assign(skipped="not run at this scale")
    methods = pd.DataFrame({"method": ["SGDT"], "metric": ["DR"]})
    table = compare(tables.read_results([]), PUBLISHED, settings, methods)
    assert table["verdict"].tolist() == ["not comparable"] * 3
    assert table["why"].tolist() == ["not run at this scale"] * 3


def test_read_results_keeps_reasons(tmp_path):
    (tmp_path / "a.csv").write_text("method,metric,value\nx,DR,1\n")
    (tmp_path / "b.csv").write_text("method,metric,value,note\nx,DR,,not fetched (offline)\n")
    table = tables.read_results([str(tmp_path / "a.csv"), str(tmp_path / "b.csv")])
    assert table["note"].tolist()[1] == "not fetched (offline)"
    assert table["note"].isna().tolist() == [True, False]
    assert tables.summarise(table)["ours"].tolist() == [1]
    assert "note" in tables.read_results([str(tmp_path / "a.csv")])


def test_tally_shares_the_comparable_cells():
    verdicts = ["agrees"] * 3 + ["better", "worse"] + ["not comparable"] * 4
    table = pd.DataFrame({"reading": "plain", "metric": "DR", "verdict": verdicts})
    nothing = pd.DataFrame({"reading": "other", "metric": "DR", "verdict": ["not comparable"] * 2})
    counts = tables.tally(pd.concat([table, nothing]), ["reading", "metric"])
    first, second = counts.to_dict("records")
    assert [first[v] for v in ("agrees", "better", "worse", "not comparable")] == [3, 1, 1, 4]
    assert first["agreement (%)"] == 60
    assert second["not comparable"] == 2 and np.isnan(second["agreement (%)"])
    assert second["agrees"] == 0


# -------------------------------------------------- tables


def test_layout_has_ours_beside_the_paper():
    wide = tables.layout(compared(), "DR", "plain")
    sides = ("ours", "paper")
    assert list(wide.columns) == [(m, side) for m in ("SFSA", "SGDT", "mine") for side in sides]
    assert wide.index.names == ["n"]
    assert [key[0] for key in wide.index] == [100, 200, 300]
    first = wide.iloc[0]
    assert (first["SGDT", "ours"], first["SGDT", "paper"]) == ("52.0 (1.2)", "53.25")
    assert (first["SFSA", "ours"], first["SFSA", "paper"]) == ("90.0 (0.0)", "70.1+")
    assert wide.iloc[1]["SGDT", "paper"] == "99.95-"
    assert (wide.iloc[2]["SGDT", "ours"], wide.iloc[2]["SGDT", "paper"]) == ("–", "100?")
    assert (wide.iloc[0]["mine", "ours"], wide.iloc[0]["mine", "paper"]) == ("–", "–?")


@pytest.mark.parametrize("entry", ["sfsa_table_1", "sfsa_table_2"])
def test_layout_loses_no_digit_that_the_paper_prints(entry):
    work = project.load(ROOT)
    published = pd.read_csv(ROOT / work.published(entry))
    points = [{**s.spec["axes"], "skipped": s.skipped} for s in work.entries[entry].settings]
    settings = pd.DataFrame(points)
    methods = [m for m in work.entries[entry].spec["methods"] if m in set(published["method"])]
    results = settings.drop(columns="skipped").merge(
        published[published["method"].isin(methods)][["method", "metric"]].drop_duplicates(),
        how="cross",
    )
    results = results.assign(experiment=entry, replicate=0, value=1.0, note=np.nan)
    table = compare(results, published, settings)
    for metric in work.entries[entry].spec["metrics"]:
        wide = tables.layout(table, metric, "reconstructed")
        shown = {
            (signal, n, method): wide.loc[(signal, n), (method, "paper")]
            for signal, n in wide.index
            for method in methods
        }
        cells = published[(published["metric"] == metric) & published["method"].isin(methods)]
        assert len(cells) == len(shown)
        for row in cells.itertuples():
            text = shown[row.signal, row.n, row.method].rstrip("+-?")
            assert text == "–" if np.isnan(row.value) else float(text) == row.value


def test_latex_is_booktabs():
    wide = tables.layout(compared(), "DR", "plain")
    text = tables.to_latex({"Doe (2027), Table 1, plain: Detection rate (%)": wide})
    environments = re.findall(r"\\(begin|end)\{(\w+)\}", text)
    assert environments == [
        ("begin", "table"), ("begin", "tabular"), ("end", "tabular"), ("end", "table"),
    ]  # fmt: skip
    assert text.count("{") == text.count("}")
    rules = [text.index(rf"\{rule}") for rule in ("toprule", "midrule", "bottomrule")]
    assert rules == sorted(rules) and r"\hline" not in text
    assert r"\caption{Doe (2027), Table 1, plain: Detection rate (\%)}" in text
    (columns,) = re.findall(r"\\begin\{tabular\}\{([lrc]+)\}", text)
    assert columns == "l" + "r" * 6
    lines = [line for line in text.splitlines() if line.endswith(r"\\")]
    assert len(lines) >= 2 + 3
    for line in lines:
        spans = [int(n) - 1 for n in re.findall(r"\\multicolumn\{(\d+)\}", line)]
        assert line.count("&") + sum(spans) == len(columns) - 1, line
    assert "53.25" in text and "70.1+" in text


@pytest.mark.parametrize(
    ("name", "written"),
    [("my_method", r"my\_method"), ("A&B", r"A\&B"), ("100%", r"100\%"), ("#1", r"\#1")],
)
def test_latex_escapes_names(name, written):
    table = compared().replace({"mine": name, "plain": name}).rename(columns={"n": f"n {name}"})
    wide = tables.layout(table, "DR", name)
    text = tables.to_latex({f"Doe, {name}": wide})
    caption = next(line for line in text.splitlines() if "caption" in line)
    methods = next(line for line in text.splitlines() if "SFSA" in line)
    axis = next(line for line in text.splitlines() if line.strip().startswith("n "))
    assert written in methods
    assert written in caption
    assert written in axis


def test_latex_of_two_blocks_is_two_tables():
    wide = tables.layout(compared(), "DR", "plain")
    text = tables.to_latex({"one": wide, "two": wide})
    assert text.count(r"\begin{table}") == text.count(r"\end{table}") == 2
    assert r"\caption{one}" in text and r"\caption{two}" in text


# -------------------------------------------------- figures


def test_methods_shown_together_are_told_apart():
    work = project.load(ROOT)
    for entry in work.entries.values():
        if entry.spec["form"] == "table":
            continue
        # What has a grid of its own is drawn in a panel of its own.
        grids = {str(method.get("sweep")) for method in entry.spec["methods"].values()}
        for grid in grids:
            together = [m for m, s in entry.spec["methods"].items() if str(s.get("sweep")) == grid]
            looks = [looks.look(method) for method in together]
            assert len({look["color"] for look in looks}) == len(looks), entry.name
            assert len({look["marker"] for look in looks}) == len(looks), entry.name


def test_methods_come_in_the_order_of_the_papers():
    shown = looks.in_order(["mine", "SGDT", "B-ARDA", "SFSA", "another", "SFSA"])
    assert shown == ["SFSA", "SGDT", "B-ARDA", "another", "mine"]


DRAW = """
import sys
import matplotlib.pyplot as plt, pandas as pd
from ofslib import figures
looks.style()
fig, axes = plt.subplots(1, 2, figsize=(looks.PAGE, 2))
rows = [(m, k, k * w, 0.1) for w, m in enumerate(["SFSA", "mine", "OFS"], 1) for k in (10, 50, 200)]
summary = pd.DataFrame(rows, columns=["method", "k", "ours", "se"])
plots.curves(axes[0], summary, "k")
plots.budget_axis(axes[0])
axes[0].set_ylabel("Features kept, $M_t$ (%)")
plots.empty_panel(axes[1], "not fetched (no network)")
plots.shared_legend(fig, axes)
plots.save_figure(fig, sys.argv[1])
print([looks.look(method) for method in ("mine", "SFSA")])
"""


def digests(stem):
    return [
        hashlib.sha256(Path(f"{stem}.{end}").read_bytes()).hexdigest() for end in ("svg", "pdf")
    ]


def test_equal_figures_are_equal_bytes(tmp_path):
    looks = set()
    for seed in ("1", "2"):
        env = {**os.environ, "PYTHONHASHSEED": seed, "MPLBACKEND": "agg"}
        words = [sys.executable, "-c", DRAW, str(tmp_path / f"made_{seed}")]
        looks.add(subprocess.run(words, env=env, stdout=subprocess.PIPE, check=True).stdout)
    assert len(looks) == 1, "a method looks different in another process"
    assert digests(tmp_path / "made_1") == digests(tmp_path / "made_2")
    svg = (tmp_path / "made_1.svg").read_text(encoding="utf-8")
    assert svg.startswith("<?xml") and svg.rstrip().endswith("</svg>")
    assert "<dc:date>" not in svg
    pdf = (tmp_path / "made_1.pdf").read_bytes()
    assert pdf.startswith(b"%PDF") and b"CreationDate" not in pdf


def test_curves_draw_means_and_errors():
    rows = [(m, k, 10.0 * k + w, 1.0) for w, m in enumerate(["OFS", "mine"]) for k in (30, 10, 20)]
    summary = pd.DataFrame(rows, columns=["method", "k", "ours", "se"])
    fig, ax = plt.subplots()
    plots.curves(ax, summary, "k")
    lines = {line.get_label(): line.get_xydata().tolist() for line in ax.lines}
    assert lines["OFS"] == [[10, 100], [20, 200], [30, 300]]
    assert lines["mine"] == [[10, 101], [20, 201], [30, 301]]
    heights = ax.collections[0].get_paths()[0].vertices[:, 1]
    assert heights.min() == 99 and heights.max() == 301
    plots.shared_legend(fig, ax)
    assert [text.get_text() for text in fig.legends[0].get_texts()] == ["OFS", "mine"]
    plt.close(fig)


def test_claim_highest():
    rows = [
        (10, "best", 80.0, 1.0),
        (10, "clearly below", 75.0, 1.0),
        (10, "level", 79.0, 1.0),
        (10, "clearly above", 85.0, 1.0),
        (10, "one run", 10.0, NAN),
        (20, "best", 50.0, 0.0),
        (20, "level", 50.0, 0.0),
    ]
    summary = pd.DataFrame(rows, columns=["k", "method", "ours", "se"])
    claims = claims.claim_highest(summary, "best", ["k"])
    verdicts = {(row.k, row.against): row.verdict for row in claims.itertuples()}
    assert verdicts == {
        (10, "clearly below"): "holds",
        (10, "level"): "unresolved",
        (10, "clearly above"): "fails",
        (10, "one run"): "unresolved",
        (20, "level"): "unresolved",
    }
    below = claims[claims["against"] == "clearly below"].iloc[0]
    assert below["difference"] == 5 and below["se"] == pytest.approx(np.sqrt(2))


def test_claim_better_compares_what_the_words_name():
    places = [("one", 10), ("one", 20), ("two", 20)]
    rows = [
        (data, k, method, ours, 1.0)
        for data, k in places
        for method, ours in (("A", 80.0), ("B", 70.0), ("C", 79.0 if k == 20 else 90.0))
    ]
    summary = pd.DataFrame(rows, columns=["dataset", "k", "method", "ours", "se"])
    said = [
        {"says": "both", "better": ["A", "C"], "than": ["B"]},
        {"says": "later", "better": ["A"], "than": ["C"], "least": {"one": 15}},
    ]
    table = claims.claim_better(summary, said, ["dataset", "k"])
    made = table[["says", "dataset", "k", "method", "against", "verdict"]]
    assert set(made.itertuples(index=False, name=None)) == {
        *(("both", d, k, m, "B", "holds") for d, k in places for m in "AC"),
        ("later", "one", 20, "A", "C", "unresolved"),
    }
    assert len(claims.claim_better(summary, [], ["dataset", "k"])) == 0
    assert set(claims.claim_better(summary, [], ["dataset", "k"])) == set(table)


def test_a_data_set_is_missing_if_it_has_no_result_at_all():
    """A note on one method of a user's says nothing of the others."""
    rows = [("a", 1.0, None), ("a", None, "accuracy needs predict"), ("b", None, "not fetched")]
    results = pd.DataFrame(rows, columns=["dataset", "value", "note"])
    assert tables.missing(results).to_dict() == {"b": "not fetched"}


def test_claim_whole_is_as_strong_as_its_weakest_comparison():
    verdicts = {
        10: ["holds", "holds"],
        20: ["holds", "unresolved"],
        30: ["unresolved", "fails", "holds"],
    }
    rows = [(k, v) for k, several in verdicts.items() for v in several]
    table = claims.claim_whole(pd.DataFrame(rows, columns=["k", "verdict"]), ["k"])
    assert table.set_index("k")["verdict"].to_dict() == {10: "holds", 20: "unresolved", 30: "fails"}


def test_claim_less_compares_the_first_and_the_last():
    rows = [("shrinks", 9, 1), ("grows", 2, 1), ("stays", 5, 1)]
    rows += [("shrinks", 50, 1), ("shrinks", 4, 1), ("grows", 8, 1), ("stays", 4, 1)]
    gaps = pd.DataFrame(rows, columns=["against", "difference", "se"])
    table = claims.claim_less(gaps, ["against"]).set_index("against")
    assert table["verdict"].to_dict() == {
        "shrinks": "holds", "grows": "fails", "stays": "unresolved",
    }  # fmt: skip
    assert table.loc["shrinks", "difference"] == 5
    assert table.loc["shrinks", "se"] == pytest.approx(np.sqrt(2))


def test_save_csv_has_ten_digits(tmp_path):
    table = pd.DataFrame({"n": [300_000], "value": [1 / 3], "why": [None]})
    tables.save_csv(table, str(tmp_path / "t"))
    assert (tmp_path / "t.csv").read_text() == "n,value,why\n300000,0.3333333333,\n"


# -------------------------------------------------- notebooks, in this process


@pytest.fixture
def own_project(tmp_path, monkeypatch):
    """Return a function that runs these entries and then the notebook of the first of them."""
    for folder in ("workflow/schemas", "notebooks", "config"):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    shutil.rmtree(tmp_path / "config/experiments")
    (tmp_path / "config/experiments").mkdir()
    scale = {"replicates": 2, "values": 1e6, "run_values": None, "tune_values": None}
    scales = {"tiny": scale | {"timing_repeats": 1, "timing_values": 0}}
    (tmp_path / "config/scales.yaml").write_text(yaml.safe_dump(scales))
    (tmp_path / "config/config.yaml").write_text("{scale: tiny, real_data: none, seed: 1}")
    monkeypatch.chdir(tmp_path)

    def make(**entries):
        (tmp_path / "config/experiments/own.yaml").write_text(yaml.safe_dump(entries))
        work, (name, spec) = project.load(), next(iter(entries.items()))
        for setting in work.entries[name].to_run:
            if setting.dataset:
                table = experiment.absent(setting.spec, "not fetched (offline)")
            else:
                table = experiment.run(setting.spec, progress=False)
            _files.write_whole(work.result(name, setting.name), table.to_csv(index=False))
        show(spec["notebook"], entry=name, scale="tiny", output=f"figures/{name}")
        assert sorted(only(tmp_path / "figures")) == sorted(
            Path(f).name for f in work.figures(name)
        )
        return tmp_path / "figures" / name

    return make


def show(notebook, **parameters):
    """Execute the cells, as papermill does with these parameters."""
    known, width = {}, pd.get_option("display.max_colwidth")
    with plt.rc_context():
        for cell in nbformat.read(f"notebooks/{notebook}.ipynb", as_version=4).cells:
            if cell.cell_type == "code":
                exec(compile(cell.source, notebook, "exec"), known)
                if "parameters" in cell.metadata.get("tags", []):
                    assert set(parameters) <= set(known)
                    known |= parameters
    plt.close("all")
    pd.set_option("display.max_colwidth", width)


OWN = {
    "source": "Doe (2027), Table 1",
    "title": "One's own",
    "form": "table",
    "notebook": "recovery_table",
    "published": "own",
    "data": {"simulate": "equicorrelated", "p": 100, "k": 5},
    "grid": {"n": [100, 300]},
    "methods": {"mine": {"class": "sklearn.linear_model:Lasso"}},
    "readings": {"plain": {"note": "As it is."}},
    "metrics": ["DR", "RMSE"],
    "replicates": 20,
}
OWN_PAPER = "n,method,metric,value,note\n100,mine,DR,77.25,\n300,mine,DR,99.5,\n"


def test_table_of_ones_own(own_project):
    Path("config/published/own.csv").write_text(OWN_PAPER)
    stem = own_project(own=OWN)
    table = pd.read_csv(f"{stem}.csv")
    assert table[table["metric"] == "DR"]["paper"].tolist() == [77.25, 99.5]
    assert table["ours"].notna().all() and len(table) == 4
    assert r"\toprule" in Path(f"{stem}.tex").read_text()


def test_table_without_readings(own_project):
    """As the example of docs/extending.md."""
    Path("config/published/own.csv").write_text(OWN_PAPER)
    stem = own_project(own={key: value for key, value in OWN.items() if key != "readings"})
    assert pd.read_csv(f"{stem}.csv")["ours"].notna().all()
    assert r"\toprule" in Path(f"{stem}.tex").read_text()


def test_table_of_a_paper_without_numbers(own_project):
    stem = own_project(own={key: value for key, value in OWN.items() if key != "published"})
    assert set(pd.read_csv(f"{stem}.csv")["verdict"]) == {"not comparable"}


def test_table_with_every_metric(own_project):
    Path("config/published/own.csv").write_text(OWN_PAPER)
    stem = own_project(own=OWN | {"metrics": ["DR", "selected"]})
    assert set(pd.read_csv(f"{stem}.csv")["metric"]) == {"DR", "selected"}


def test_table_of_which_this_scale_runs_nothing(own_project):
    Path("config/published/own.csv").write_text(OWN_PAPER)
    stem = own_project(own=OWN | {"grid": {"n": [100_000, 300_000]}})
    assert pd.read_csv(f"{stem}.csv")["why"].tolist() == ["not run at this scale"] * 4


@pytest.mark.parametrize("number", [1, 2, 6, 7])
def test_figure_of_any_number_of_data_sets(own_project, number):
    names = pd.read_csv("config/datasets.csv")["name"].tolist()[:number]
    entry = {key: OWN[key] for key in ("source", "title", "replicates")}
    entry |= {"form": "figure", "notebook": "accuracy_by_budget", "metrics": ["accuracy"]}
    entry |= {"grid": {"dataset": names}, "sweep": {"k": [10, 20]}, "needs": ["datasets"]}
    entry |= {"parameters": {"budgets": [10, 20]}, "methods": {"OFS": {"class": "FOFSClassifier"}}}
    entry |= {"tune": {"score": "online", "at": {"k": 10}, "grid": {"learning_rate": [1.0]}}}
    stem = own_project(own=entry)
    svg = Path(f"{stem}.svg").read_text(encoding="utf-8")
    assert svg.count('id="axes_') >= number


# -------------------------------------------------- whole files


def only(folder):
    return sorted(file.name for file in folder.iterdir())


@pytest.mark.parametrize("content", ["new ä", b"\x00new"])
def test_write_whole(tmp_path, content):
    target = tmp_path / "a" / "b" / "file.csv"
    _files.write_whole(target, content)
    expected = content if isinstance(content, bytes) else content.encode("utf-8")
    assert target.read_bytes() == expected
    _files.write_whole(str(target), "x")
    assert target.read_text() == "x"
    assert only(target.parent) == ["file.csv"]


@pytest.mark.parametrize("call", ["replace", "fsync", "chmod", "fdopen"])
@pytest.mark.parametrize(
    "error", [OSError(errno.ENOSPC, "No space left on device"), KeyboardInterrupt()]
)
@pytest.mark.parametrize("before", [None, "old"])
def test_a_failure_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch, call, error, before):
    target = tmp_path / "file.csv"
    if before:
        target.write_text(before)

    def fail(*args, **kwargs):
        raise error

    monkeypatch.setattr(os, call, fail)
    with pytest.raises(type(error)):
        _files.write_whole(target, "new")
    monkeypatch.undo()
    assert only(tmp_path) == (["file.csv"] if before else [])
    assert not before or target.read_text() == before


IN_TROUBLE = """
import os, resource, signal, sys
from ofslib import files
if sys.argv[2] == "full":
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
else:
    os.fsync = lambda number: os.kill(os.getpid(), signal.SIGKILL)
_files.write_whole(sys.argv[1], "new" * 100_000)
"""


@pytest.mark.skipif(os.name != "posix", reason="limits and signals")
@pytest.mark.parametrize("trouble", ["full", "kill"])
def test_a_full_disk_or_a_kill_leaves_the_old_file(tmp_path, trouble):
    target = tmp_path / "file.csv"
    target.write_text("old")
    words = [sys.executable, "-c", IN_TROUBLE, str(target), trouble]
    done = subprocess.run(words, capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == (-signal.SIGKILL if trouble == "kill" else 1)
    assert target.read_text() == "old"
    if trouble == "full":
        assert "OSError" in done.stderr
        assert only(tmp_path) == ["file.csv"]


def test_order_is_write_flush_rename(tmp_path, monkeypatch):
    """Renamed before it is on the disk, a file could be empty after a crash."""
    done = []
    for name in ("fsync", "replace"):
        real = getattr(os, name)
        note = lambda *args, name=name, real=real: (done.append(name), real(*args))  # noqa: E731
        monkeypatch.setattr(os, name, note)
    _files.write_whole(tmp_path / "file.csv", "new")
    assert done == ["fsync", "replace"]


@pytest.mark.skipif(os.name != "posix", reason="modes")
@pytest.mark.parametrize(("mask", "mode"), [(0o022, 0o644), (0o027, 0o640), (0o077, 0o600)])
def test_mode_honours_the_umask(tmp_path, mask, mode):
    before = os.umask(mask)
    try:
        _files.write_whole(tmp_path / "file.csv", "new")
        assert os.umask(mask) == mask, "the mask was changed"
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "file.csv").stat().st_mode) == mode
