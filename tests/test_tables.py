"""Results beside the published numbers: summaries, verdicts, and how tables are laid out."""

import numpy as np
import pandas as pd
import pytest

from ofslib.reproduction import entries, tables

NAN = float("nan")


# -------------------------------------------------- verdicts


def cells_of(rows):
    """Cells of (metric, ours, sd, n, paper), of which the paper averages 20 runs."""
    cells = pd.DataFrame(rows, columns=["metric", "ours", "sd", "replicates", "paper"])
    return cells.assign(se=cells["sd"] / np.sqrt(cells["replicates"]), runs=20)


@pytest.mark.parametrize(
    ("metric", "sd", "n", "words"),
    [
        # within the practical tolerance, at its edge, beyond it: paper -> verdict of ours
        ("DR", 0, 10, {(60, 55): "agrees", (60, 65): "agrees", (60, 54.9): "better"}),
        ("DR", 0, 10, {(60, 65.1): "worse", (0, 0): "agrees"}),
        ("AUC", 0, 10, {(0.9, 0.881): "agrees", (0.9, 0.879): "better", (0.9, 0.921): "worse"}),
        ("accuracy", 0, 10, {(90, 92): "agrees", (90, 92.1): "worse", (90, 87.9): "better"}),
        ("R2", 0, 10, {(0.9, 0.881): "agrees", (0.9, 0.879): "better"}),
        # of RMSE it is a share of the paper's value, and less is better
        ("RMSE", 0, 10, {(10.4, 10): "agrees", (10.6, 10): "worse", (9.4, 10): "better"}),
        ("RMSE", 0, 10, {(104, 100): "agrees", (94, 100): "better", (0.04, 0): "worse"}),
        # two standard errors of the difference, wider than the tolerance:
        # 2 * 10 * sqrt(1 / 20 + 1 / 20) = 6.32
        ("DR", 10, 20, {(60, 53.7): "unresolved", (60, 53.6): "better", (60, 60): "unresolved"}),
        ("DR", 10, 20, {(60, 66.3): "unresolved", (60, 66.4): "worse"}),
        # narrower than the tolerance: 2 * 7 * sqrt(1 / 20 + 1 / 20) = 4.43
        ("DR", 7, 20, {(60, 55): "agrees", (60, 54.9): "better"}),
        # of a rate below 20 the tolerance is a quarter
        ("DR", 0, 10, {(12.7, 10.2): "agrees", (14.25, 10.2): "better", (24.5, 19.5): "better"}),
        ("DR", 0.5, 20, {(1, 1.25): "unresolved", (5, 1.25): "better"}),
        # three runs, of which two select nothing; one run has no spread
        ("DR", 16.2, 3, {(9.3, 1.4): "unresolved"}),
        ("DR", NAN, 1, {(60, 60): "unresolved", (60, 10): "unresolved"}),
        # nothing to compare
        ("DR", 1, 20, {(NAN, 50): "not comparable", (50, NAN): "not comparable"}),
        ("time_s", 0, 20, {(1, 1): "not comparable"}),
        ("selected", 0, 20, {(1, 1): "not comparable"}),
    ],
)
def test_verdict(metric, sd, n, words):
    rows = [(metric, ours, sd, n, paper) for ours, paper in words]
    assert tables.verdict(cells_of(rows)).tolist() == [*words.values()]


def test_the_strict_verdict_knows_no_tolerance():
    """2 * 0.01 * sqrt(1 / 20 + 1 / 20) = 0.0063, and half a unit of the third digit."""
    rows = [
        ("AUC", 0.990, 0.01, 20, 0.997),
        ("AUC", 0.990, 0.01, 20, 0.996),
        ("AUC", 0.9904, 0.0, 20, 0.990),
        ("AUC", 0.9906, 0.0, 20, 0.990),
        ("AUC", 0.990, NAN, 1, 0.990),
        ("AUC", NAN, NAN, NAN, 0.990),
    ]
    words = ["worse", "agrees", "agrees", "better", "unresolved", "not comparable"]
    assert tables.verdict(cells_of(rows), strict=True).tolist() == words


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        # in the readings "as printed", "one rule", "reconstructed"; None: not in this reading
        ((0, 2, 4), "T-R"),
        ((1, 2, 4), "T-R"),  # fewer than in the last
        ((None, None, 0), "T"),  # the same as in the others
        ((None, None, 2), "R"),
        ((1, None, 1), "RR"),  # no reading without it
        ((0, None, 0), "TT"),
    ],
)
def test_by_the_text_is_the_reading_with_the_fewest_chosen_values(counts, expected):
    names = ("as printed", "one rule", "reconstructed")
    cells = [
        {"reading": name, "n": 100, "skipped": "", "runs": 20, "fitted": count, "method": "A"}
        for name, count in zip(names, counts, strict=True)
        if count is not None
    ]
    cells = pd.DataFrame(cells).assign(metric="DR")
    results = results_of({(name, 100, "A", "DR"): [1, 2] for name in names})
    table = tables.compare(results, PUBLISHED, cells)
    words = {"T": "by the text", "R": "reconstructed", "-": "reconstructed"}
    assert table["basis"].tolist() == [words[letter] for letter in expected]
    assert table["fitted"].tolist() == [count for count in counts if count is not None]


# -------------------------------------------------- results -> comparison


def results_of(cells, replicates=3):
    """Rows of these (reading, n, method, metric): values."""
    rows = [
        {"experiment": "one", "reading": r, "n": n, "method": m, "replicate": i, "metric": c}
        | {"value": v}
        for (r, n, m, c), values in cells.items()
        for i, v in enumerate(values)
    ]
    return pd.DataFrame(rows).assign(note=np.nan, empty=np.nan)


CELLS = {
    ("plain", 100, "SGDT", "DR"): [50, 52, 54],
    ("plain", 100, "SFSA", "DR"): [90, 90, 90],
    ("plain", 200, "SGDT", "DR"): [70, 70, 70],
    ("plain", 200, "SFSA", "DR"): [80, 81, 82],
    ("plain", 200, "mine", "DR"): [1, 2, 3],
}
SETTINGS = pd.DataFrame({"reading": "plain", "n": [100, 200, 300], "skipped": ""})
SETTINGS.loc[2, "skipped"] = "not run at this scale"
PUBLISHED = pd.DataFrame(
    {
        "n": [100, 100, 100, 200, 200, 300, 300],
        "method": ["SGDT", "SFSA", "OPG", "SGDT", "SFSA", "SGDT", "SFSA"],
        "metric": "DR",
        "value": [53.25, 70.10, 1.30, 99.95, NAN, 100.0, 98.0],
        "note": [*[None] * 4, "not readable in the paper", None, None],
    }
)


def compare(results, published, settings, *known):
    """Compare all cells that the methods of the results have in these settings."""
    cells = results[["method", "metric"]].drop_duplicates()
    cells = settings.assign(runs=20, fitted=0).merge(cells, how="cross")
    return tables.compare(results, published, cells, *known)


def test_of_a_sweep_the_point_with_the_best_mean_stands_in_a_cell():
    """Over all replicates, as dissertation Table 5.6: the best R2, the least RMSE."""
    rows = [
        ("it", rate, replicate, metric, value)
        for metric in ("R2", "RMSE")
        for rate, values in {0.1: (0.9, 0.1), 0.2: (0.6, 0.7), 0.3: (0.2, 0.2)}.items()
        for replicate, value in enumerate(values)
    ]
    columns = ["method", "learning_rate", "replicate", "metric", "value"]
    results = pd.DataFrame(rows, columns=columns).assign(n=100, note=NAN, empty=NAN)
    table = compare(results, PUBLISHED.iloc[:0], SETTINGS[["n", "skipped"]].head(1))
    assert table.set_index("metric")["ours"].to_dict() == pytest.approx({"R2": 0.65, "RMSE": 0.2})
    assert table["replicates"].tolist() == [2, 2]


def test_summary_by_hand():
    results = results_of(CELLS)
    lost = results.head(1).assign(replicate=3, value=np.nan, note="lost")
    results = pd.concat([results.astype({"note": object}), lost], ignore_index=True)
    row = tables.summarise(results).set_index(["n", "method"]).loc[100, "SGDT"]
    assert (row["ours"], row["sd"], row["median"], row["replicates"]) == (52, 2, 52, 3)
    assert row["se"] == pytest.approx(2 / np.sqrt(3))


def test_the_error_of_times_is_that_of_their_median():
    normal = np.random.default_rng(0).normal(size=(3000, 12))
    for n in (3, 5, 12):
        keys = {("plain", i, "SGDT", "time_s"): 5 + row[:n] for i, row in enumerate(normal)}
        table = tables.summarise(results_of(keys))
        # With three it is a tenth too large
        assert table["se"].mean() == pytest.approx(table["median"].std(), rel=0.15)
    n, factor = np.array([2, 3, 9, 10]), np.array([1.196, 1.495, 1.107, 10 / 9.2])
    by_hand = np.sqrt(np.pi / 2 / n) * 1.4826 * factor
    assert tables.median_error(1.0, n) == pytest.approx(by_hand)
    # Of each group its own, whatever the order of the rows; one slow run makes none of them large
    mixed = {
        ("plain", 100, "SGDT", "time_s"): [1, 2, 90],
        ("plain", np.nan, "SGDT", "DR"): [10, 20, 90],
        ("plain", np.nan, "SFSA", "time_s"): [10, 30, 50],
        ("plain", np.nan, "OPG", "time_s"): [5],
    }
    table = tables.summarise(results_of(mixed).sort_values(["replicate", "value"]))
    errors = table.set_index("median")["se"]
    assert errors[2] == pytest.approx(by_hand[1]) and errors[30] == pytest.approx(20 * by_hand[1])
    assert errors[20] == pytest.approx(np.std([10, 20, 90], ddof=1) / np.sqrt(3))
    assert np.isnan(errors[5])


def test_compare_puts_our_cell_beside_the_papers():
    """What cannot be compared stays, with its reason."""
    table = compare(results_of(CELLS), PUBLISHED, SETTINGS)
    assert not table.duplicated(["reading", "n", "method", "metric"]).any()
    found = table.set_index(["n", "method"])[["ours", "paper", "verdict", "strict", "why"]]
    no = "not comparable"
    assert found.fillna(-1).T.to_dict("list") == {
        (100, "SGDT"): [52.0, 53.25, "agrees", "agrees", ""],
        (100, "SFSA"): [90.0, 70.1, "better", "better", ""],
        (100, "mine"): [-1, -1, no, no, "not in the paper's table"],
        (200, "SGDT"): [70.0, 99.95, "worse", "worse", ""],
        (200, "SFSA"): [81.0, -1, no, no, "not readable in the paper"],
        (200, "mine"): [2.0, -1, no, no, "not in the paper's table"],
        (300, "SGDT"): [-1, 100.0, no, no, "not run at this scale"],
        (300, "SFSA"): [-1, 98.0, no, no, "not run at this scale"],
        (300, "mine"): [-1, -1, no, no, "not run at this scale"],
    }
    assert set(table["runs"]) == {20} and (table["empty"].dropna() == 0).all()


def test_a_cell_that_does_not_agree_names_the_first_discussion_that_fits_it():
    discussed = [
        {"method": "SGDT", "n": [100, 300], "why": "other rows"},
        {"method": ["SGDT", "SFSA"], "metric": "DR", "why": "docs/errata.md, sfsa 8"},
        {"reading": "plain", "why": "too late"},
    ]
    weak = {"SFSA": "a wrong formula"}
    table = compare(results_of(CELLS), PUBLISHED, SETTINGS, weak, discussed)
    why = table.set_index(["n", "method"])["why"]
    assert why[100, "SGDT"] == "" and why[100, "SFSA"] == "weaker baseline: a wrong formula"
    assert why[200, "SGDT"] == "discussed: docs/errata.md, sfsa 8"
    assert tables.reason(why[200, "SGDT"]) == "see the errata"


@pytest.mark.parametrize("mark", tables.MARKS)
def test_runs_that_tell_less_than_others_are_counted_and_told(mark):
    results = results_of({("plain", 100, "SGDT", "DR"): [0.0, 100.0, 100.0, 0.0]})
    assert mark not in tables.summarise(results)
    results[mark] = np.where(results["value"] == 100, 1, np.nan)
    (row,) = compare(results, PUBLISHED, SETTINGS.head(1)).to_dict("records")
    assert row[mark] == 2 and f"; 2 of 4 {tables._COUNTED[mark]}" in row["why"]
    kind = tables.reason(row["why"].partition("; ")[2])
    assert kind == ("runs that select nothing" if mark == "empty" else tables._COUNTED[mark])


@pytest.mark.parametrize(
    ("values", "word"), [([53, 54, NAN], "agrees"), ([53, NAN, NAN, 54], "not comparable")]
)
def test_runs_without_a_value_are_counted_and_a_few_values_are_no_verdict(values, word):
    results = results_of({("plain", 100, "SGDT", "DR"): values}).astype({"note": object})
    results.loc[results["value"].isna(), "note"] = "DR is not finite (nan)"
    (row,) = compare(results, PUBLISHED, SETTINGS.head(1)).to_dict("records")
    lost = f"{np.isnan(values).sum()} of {len(values)} runs without a value"
    assert row["verdict"] == word and row["why"].endswith(lost)
    assert (row["strict"] == "not comparable") == (word == "not comparable")
    assert tables.reason(row["why"]) == "runs without a value"
    assert row["no_value"] + row["replicates"] == len(values)


def test_what_is_judged_anew_is_told_once():
    results = results_of({("plain", 100, "mine", "DR"): [0, 3, 5, NAN, NAN, NAN]})
    results["beyond"] = np.where(results["value"] == 0, 1, np.nan)
    first = compare(results, PUBLISHED, SETTINGS.head(1))
    assert first["why"].tolist() == [
        "not in the paper's table; 3 of 6 runs without a value; "
        "1 of 3 runs keep more than k features"
    ]
    again = first.drop(columns="paper").assign(note=first["why"], skipped="", own_passes=NAN)
    again = tables.beside_paper(again, PUBLISHED, ["reading", "n", "method", "metric"])
    pd.testing.assert_frame_equal(again, first)


def sweep_of(**points):
    """Results of these replicates at each point of a sweep, counted in `beyond` where odd."""
    parts = [
        results_of({("plain", 100, "SGDT", "DR"): values}).assign(rate=rate)
        for rate, values in points.items()
    ]
    results = pd.concat(parts, ignore_index=True)
    return results.assign(beyond=(results["value"] % 2 == 1).astype(float))


def test_of_a_sweep_a_point_that_lost_runs_is_not_chosen_and_only_its_own_are_counted():
    points = {"a": [99.0, 99.0, *[NAN] * 18], "b": [60.0, 71.0] * 10}
    (row,) = compare(sweep_of(**points), PUBLISHED, SETTINGS.head(1)).to_dict("records")
    assert (row["ours"], row["replicates"], row["verdict"]) == (65.5, 20, "better")
    assert row["beyond"] == 10
    lost = sweep_of(a=points["a"])
    (row,) = compare(lost, PUBLISHED, SETTINGS.head(1)).to_dict("records")
    assert (row["ours"], row["no_value"], row["verdict"]) == (99, 18, "not comparable")


def test_wrong_pairs_tell_how_sharp_a_table_is():
    """A and B may be exchanged, C not: of the six wrong pairs two agree."""
    results = results_of(
        {("plain", 100, m, "DR"): [v, v] for m, v in zip("ABC", (50, 52, 90), strict=True)}
    )
    rows = [(100, m, "DR", v, None) for m, v in zip("ABC", (51, 53, 90), strict=True)]
    table = compare(results, pd.DataFrame(rows, columns=PUBLISHED.columns), SETTINGS.head(1))
    assert tables.tally(table, ["reading"])["wrong pairs that agree (%)"].tolist() == [33.3]


@pytest.mark.parametrize(
    ("why", "kind"),
    [
        ("unreadable: cell missing in extracted text", "unreadable in our text of the paper"),
        ("not in the paper's table", "our own method"),
        (
            "not downloaded: no network where the figures were made (snakemake figure_a fills it)",
            "not downloaded: no network where the figures were made",
        ),
        ("2 of 3 runs select nothing", "runs that select nothing"),
        ("not in the paper's table; 2 of 3 runs without a value", "our own method"),
        ("RMSE is not finite (inf); 2 of 3 runs without a value", "runs without a value"),
        (NAN, ""),
    ],
)
def test_reasons_are_kept_apart(why, kind):
    assert tables.reason(why) == kind


@pytest.mark.parametrize(
    ("published", "said"),
    [
        (PUBLISHED.rename(columns={"n": "m"}), r"\['m'\].* allowed .*'reading', 'n', 'method'"),
        (PUBLISHED[["n", "method", "value", "note"]], "'metric'.*needed"),
        (pd.concat([PUBLISHED, PUBLISHED.tail(2)]), "several numbers of n 300, method SGDT"),
    ],
)
def test_a_published_number_is_of_one_cell(published, said):
    with pytest.raises(ValueError, match=said):
        compare(results_of(CELLS), published, SETTINGS)


def test_tally_shares_the_resolved_cells():
    verdicts = ["agrees"] * 3 + ["better", "worse", "unresolved"] + ["not comparable"] * 6
    strict = ["agrees"] + ["better"] * 3 + ["unresolved"] * 2 + ["not comparable"] * 6
    table = pd.DataFrame({"reading": ["plain"] * 10 + ["other"] * 2, "method": "A", "metric": "DR"})
    numbers = dict.fromkeys(["empty", "ours", "paper", "se", "replicates"], NAN)
    table = table.assign(verdict=verdicts, strict=strict, runs=20, **numbers)
    first, second = tables.tally(table, ["reading", "metric"]).to_dict("records")
    assert [first[v] for v in tables.VERDICTS] == [3, 1, 1, 1, 4]
    assert (first["agreement (%)"], first["agreement, strict (%)"]) == (60, 25)
    assert second["not comparable"] == 2 and np.isnan(second["agreement (%)"])
    assert np.isnan(first["select nothing"]), "not counted is not none"


def test_a_data_set_is_missing_if_it_has_no_result_at_all():
    """A note on one method of a user's says nothing of the others."""
    rows = [("a", 1.0, None), ("a", None, "accuracy needs predict"), ("b", None, "not fetched")]
    results = pd.DataFrame(rows, columns=["dataset", "value", "note"])
    # Of a data set that one setting of several shows there is a result.
    settings = [
        entries.Setting("", {"data": {"dataset": name}}, skipped)
        for name, skipped in [("a", ""), ("a", "not run"), ("b", ""), ("c", "not run")]
    ]
    assert tables.missing(results, settings).to_dict() == {"b": "not fetched", "c": "not run"}
    # Of those shown none is run, though another is.
    assert tables.missing(results[:0], settings[1::-1]).to_dict() == {"a": "not run"}


# -------------------------------------------------- columns and workers


def test_a_run_that_does_not_get_so_far_takes_for_ever():
    """Left out it would make a method faster, the fewer of its runs arrive."""
    times = pd.DataFrame({"method": "a", "value": [1.0, 2.0] + [np.nan] * 3, "note": ""})
    times.loc[2:, "note"] = "not reached"
    table = tables.spread(tables.never_found(times), ["method"], "value")
    assert table.loc[0, ["median", "high", "replicates"]].tolist() == [np.inf, np.inf, 5]
    assert tables.spread(times, ["method"], "value").loc[0, "median"] == 1.5
    ratios = tables.times_as_fast(tables.never_found(times), times.assign(value=1.0), ["method"])
    assert ratios["ratio"].iloc[-1] == 0


def test_times_are_compared_within_a_replicate():
    times = pd.DataFrame({"replicate": [0, 1, 2], "value": [2.0, 5.0, 1.0]})
    reference = pd.DataFrame({"replicate": [1, 0], "value": [10.0, 8.0]})
    ratio = tables.times_as_fast(times, reference, ["replicate"])["ratio"]
    assert ratio.tolist()[:2] == [4.0, 2.0] and np.isnan(ratio[2])
    again = tables.times_as_fast(times.assign(ratio=7.0), times, ["replicate"])
    assert again["ratio"].tolist() == [1.0, 1.0, 1.0]


def test_a_summary_is_divided_by_what_varies():
    rows = [("OS", NAN, NAN), ("OS by scans", 2, NAN), ("Asy-OS", NAN, 4)]
    summary = pd.DataFrame(rows, columns=["method", "n_scans", "n_workers"]).assign(p=10)
    parts = tables.varied(summary, "p")
    assert {axis: part["method"].tolist() for axis, part in parts.items()} == {
        "p": ["OS"], "n_scans": ["OS"], "n_workers": ["Asy-OS"],
    }  # fmt: skip
