"""What the papers say, judged: the rule, and each form of a claim."""

import numpy as np
import pandas as pd
import pytest

from ofslib.reproduction import claims, tables

NAN = float("nan")


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
    table = claims.claim_highest(summary, "best", ["k"]).set_index(["k", "against"])
    words = ["holds", "unresolved", "fails", "unresolved", "unresolved"]
    assert table["verdict"].tolist() == words and table.index[-1] == (20, "level")
    below = table.loc[10, "clearly below"]
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
        {"says": "late everywhere", "better": ["A"], "than": ["C"], "least": 20},
    ]
    table = claims.claim_better(summary, said, ["dataset", "k"])
    made = table[["says", "dataset", "k", "method", "against", "verdict"]]
    assert set(made.itertuples(index=False, name=None)) == {
        *(("both", d, k, m, "B", "holds") for d, k in places for m in "AC"),
        ("later", "one", 20, "A", "C", "unresolved"),
        *(("late everywhere", d, 20, "A", "C", "unresolved") for d in ("one", "two")),
    }
    assert len(claims.claim_better(summary, [], ["dataset", "k"])) == 0
    assert set(claims.claim_better(summary, [], ["dataset", "k"])) == set(table)
    # As read from results without a single data set, of which the names are words all the same.
    nothing = summary.astype({"dataset": str, "k": int}).iloc[:0]
    assert len(claims.claim_better(nothing, said[:1], ["dataset", "k"])) == 0


# -------------------------------------------------- the rule


@pytest.mark.parametrize(
    ("difference", "se", "verdict"),
    [
        (2.1, 1.0, "holds"),
        (2.0, 1.0, "unresolved"),
        (-2.0, 1.0, "unresolved"),
        (-2.1, 1.0, "fails"),
        (0.0, 0.0, "unresolved"),
        (9.0, NAN, "unresolved"),
        (NAN, 1.0, "unresolved"),
    ],
)
def test_two_standard_errors_decide(difference, se, verdict):
    assert claims.judged(difference, se) == verdict
    words = dict(zip(claims.WORDS, claims.REPRODUCED, strict=True))
    low, high = difference - 2 * se, difference + 2 * se
    assert claims.judged_interval(low, high, claims.REPRODUCED) == words[verdict]


def test_claim_above_reads_the_curve_between_its_points():
    rows = [("best", 1, 50.0), ("best", 100, 70.0)]
    rows += [("other", x, y) for x, y in ((0.5, 0.0), (1, 50.0), (10, 50.0), (100, 90.0))]
    summary = pd.DataFrame(rows, columns=["method", "selected", "ours"])
    summary = summary.assign(dataset="one", se=1.0)
    table = claims.claim_above(summary, [("best", "other"), ("best", "absent")], "selected")
    # Half way on the logarithmic scale the curve is at 60; it says nothing below its first point.
    assert table["selected"].tolist() == [1, 10, 100]
    assert table["difference"].tolist() == pytest.approx([0.0, 10.0, -20.0])
    assert table["verdict"].tolist() == ["unresolved", "holds", "fails"]
    none = claims.claim_above(summary, [("best", "absent")], "selected")
    assert none.empty and list(none) == list(table)


# -------------------------------------------------- the same replicates


def replicates(**values):
    """Results of these methods in replicates 0, 1, ..., in reverse order."""
    rows = [(m, r, v) for m, several in values.items() for r, v in enumerate(several)]
    return pd.DataFrame(rows[::-1], columns=["method", "replicate", "value"])


def test_pairs_are_of_the_same_replicate():
    results = replicates(A=[1.0, 11.0, 21.0], B=[0.0, 10.1, 19.9], C=[5.0])
    pair = {"what": "A - B", "one": {"method": "A"}, "other": {"method": "B"}}
    said = [{**pair, "expected": expected} for expected in ("higher", "lower", "small")]
    table = claims.claim_pairs(results, said, tolerance=2.0)
    assert list(table) == ["what", "difference", "se", "verdict"]
    assert table["difference"].tolist() == pytest.approx([1.0] * 3)
    assert table["se"].tolist() == pytest.approx([0.1 / np.sqrt(3)] * 3)
    assert table["verdict"].tolist() == ["holds", "fails", "holds"]
    (lone,) = claims.claim_pairs(
        results, [{"one": {"method": "A"}, "other": {"method": "C"}, "expected": "higher"}]
    ).to_dict("records")
    assert lone["difference"] == -4.0 and lone["verdict"] == "unresolved"


# -------------------------------------------------- slopes


def test_slopes_are_those_of_the_last_decades():
    x = np.array([1, 10, 100, 1000.0])
    rows = [("A", r, n, (1 + r) * (1000.0 if n < 10 else n**-0.5)) for r in (0, 1) for n in x]
    rows += [("B", 0, n, n) for n in x[:2]] + [("B", 1, 10.0, 1.0)]
    results = pd.DataFrame(rows, columns=["method", "replicate", "n", "value"])
    found = claims.slopes(results, ["method"], "n", decades=2)
    assert found["method"].tolist() == ["A", "A", "B"]
    assert found["slope"].tolist() == pytest.approx([-0.5, -0.5, 1.0])
    assert claims.bound_slopes(results, ["method"], "n")["method"].tolist() == ["A"]


# -------------------------------------------------- times


def timed(rows):
    """Times of these (n, method, median, se, paper)."""
    table = pd.DataFrame(rows, columns=["n", "method", "median", "se", "paper"])
    table.insert(0, "reading", "plain")
    return table.assign(metric="time_s", replicates=np.where(table["se"].isna(), 1, 4))


TIMES = timed(
    [
        (100, "A", 1.0, 0.01, 5.0),
        (100, "B", 2.0, 0.02, 1.0),
        (100, "C", 1.01, 0.01, 10.0),
        (100, "D", 30.0, NAN, 50.0),
        (10_000, "A", 100.0, 1.0, 5.0),
        (10_000, "B", 2.1, 0.02, 100.0),
        (10_000, "C", NAN, NAN, 10.0),
        (10_000, "D", 3000.0, NAN, NAN),
    ]
)


def test_times_are_judged_by_ratios_of_the_same_run():
    said = [{"says": "A is fast", "fast": "A", "than": ["B", "C", "D"]}]
    table = claims.claim_times(TIMES, said).set_index(["what", "n"])
    assert table["verdict"].to_dict() == {
        ("B / A", 100): "holds",
        ("B / A", 10_000): "fails",
        ("C / A", 100): "unresolved",
        # Timed once: as much error as one run of the others, twice that of four.
        ("D / A", 100): "holds",
        ("D / A", 10_000): "holds",
    }
    first = table.loc[("B / A", 100)]
    assert first["ours"] == pytest.approx(2.0) and first["paper"] == pytest.approx(0.2)
    assert first["se"] == pytest.approx(np.hypot(0.01, 0.01), rel=0.02)
    assert table.loc[("D / A", 100), "se"] == pytest.approx(np.hypot(0.01, 0.02), rel=0.02)
    # Of few runs that happen to lie together the error is not believed.
    lucky = TIMES.assign(se=TIMES["se"].where(TIMES["n"] > 100, TIMES["se"] / 1000))
    again = claims.claim_times(lucky, said).set_index(["what", "n"])
    assert again.loc[("C / A", 100), "verdict"] == "unresolved"
    faster_machine = TIMES.assign(median=TIMES["median"] / 3, se=TIMES["se"] / 3)
    again = claims.claim_times(faster_machine, said).set_index(["what", "n"])
    pd.testing.assert_frame_equal(again, table)


def test_growth_is_an_exponent_in_n():
    said = [
        {"says": "grow", "grows": ["A", "B", "C"], "note": "why"},
        {"says": "stay", "constant": ["A", "B"]},
    ]
    table = claims.claim_times(TIMES, said)
    found = table[["what", "verdict"]].to_numpy().tolist()
    assert found == [
        ["exponent in n of A", "holds"],
        ["exponent in n of B", "fails"],
        ["exponent in n of A", "fails"],
        ["exponent in n of B", "holds"],
    ]
    assert table["ours"].round(2).tolist() == [1.0, 0.01, 1.0, 0.01]
    assert table["paper"].round(2).tolist() == [0.0, 1.0, 0.0, 1.0]
    assert table["note"].tolist() == ["why", "why", "", ""]
    assert len(claims.claim_times(TIMES, [])) == 0
    # As at a small scale: no column of times is a number then.
    nothing = TIMES.assign(median=None, se=None, replicates=None)
    said += [{"says": "A is fast", "fast": "A", "than": ["B", "C"]}]
    table = claims.claim_times(nothing, said)
    assert len(table) == 0 and "verdict" in table


def test_a_table_says_the_same_of_times_once_it_is_saved(tmp_path):
    """To the last digit, so that what is judged anew is the file that was drawn."""
    draw = np.random.default_rng(0)
    times = TIMES.assign(median=TIMES["median"] * draw.uniform(0.9, 1.1, len(TIMES)))
    said = [{"says": "so it is", "fast": "A", "than": ["B", "C"]}]
    tables.save_csv(times, str(tmp_path / "times"))
    saved = pd.read_csv(tmp_path / "times.csv")
    drawn, judged = (claims.claim_times(table, said) for table in (times, saved))
    pd.testing.assert_frame_equal(drawn, judged, check_exact=True)
