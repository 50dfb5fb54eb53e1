"""Tables as they are: what inspect says of each column, and what select makes of it."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.compose import ColumnTransformer
from sklearn.datasets import dump_svmlight_file
from sklearn.feature_extraction import FeatureHasher
from sklearn.impute import SimpleImputer
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from test_cli import blocks
from test_datasets import whole

import ofslib
from ofslib import fit_stream
from ofslib.datasets import encoding, formats, open_stream

N = 300
USED = {"label": "y", "ignore": ["day"]}
ENCODED = USED | {"categorical": "onehot", "missing": "indicator", "standardize": True}


def messy():
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"city": rng.choice(["Rome", "Oslo", "Lima"], N)})
    table["day"] = pd.date_range("2024-01-01", periods=N, freq="h").astype(str)
    table["income"] = np.where(rng.random(N) < 0.1, np.nan, rng.lognormal(10, 1, N))
    table["rate"] = [f"{value:.1f}%" for value in 100 * rng.random(N)]
    table["member"] = rng.choice(["true", "false"], N)
    table["age"] = rng.integers(18, 90, N)
    table["y"] = np.where((table["city"] == "Oslo") + rng.random(N) > 1, "yes", "no")
    return table


TABLE = messy()


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """A folder with the messy table; tables are read some rows at a time."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(formats, "_VALUES", 250)
    TABLE.to_csv("t.csv", index=False)
    TABLE.assign(member=TABLE["member"] == "true", day=pd.to_datetime(TABLE["day"])).to_parquet(
        "t.parquet"
    )


@pytest.mark.parametrize("file", ["t.csv", "t.parquet"])
def test_inspect_reports_every_column_and_what_it_proposes_learns(ofs, file):
    code, data, err = ofs(f"inspect {file} --label y --json")
    columns = {column["name"]: column for column in data["columns"]}
    member = "truth values" if file == "t.csv" else "numbers"
    kinds = ["words", "dates", "numbers", "per cent", member, "numbers", "words"]
    assert (code, err) == (0, "") and [*columns] == [*TABLE]
    assert [column["type"] for column in columns.values()] == kinds
    assert columns["income"]["missing"] == TABLE["income"].isna().sum()
    assert columns["age"]["range"] == [TABLE["age"].min(), TABLE["age"].max()]
    assert columns["age"]["distinct"] == TABLE["age"].nunique()
    assert columns["city"]["use"] and not columns["age"]["use"]
    assert data["labels"] == TABLE["y"].value_counts().to_dict()
    assert data["needs"]["available_bytes"] > 1e6
    _, text, _ = ofs(f"inspect {file} --label y")
    assert all(f"\n{name} " in text for name in TABLE) and "free here" in text
    assert "--method renewable-fsa" in text, "incomes beside ages"
    assert ofs(f"inspect {file}")[1].count("--label COLUMN") == 1
    proposed = data["select"].removeprefix("ofslib ")
    assert "--ignore day --categorical onehot --missing mean --standardize" in proposed
    code, found, err = ofs(proposed.replace("-k 10", "-k 1 --json --model m.npz"))
    assert (code, err) == (0, "") and found["selected"][0]["feature"] == "city=Oslo"


def test_the_guides_table_is_learned_from(capsys):
    TABLE.rename(columns={"y": "label"}).to_csv("people.csv", index=False)
    exec(compile(blocks("python: table"), "using.md", "exec"), {})
    assert "city_Oslo" in capsys.readouterr().out


def test_three_commands_lead_from_a_messy_table_to_probabilities(ofs):
    """Those of docs/command_line.md, word for word; the new file has other columns."""
    table = TABLE.rename(columns={"y": "bought"})
    table[:200].to_csv("customers.csv", index=False)
    new = table[200:].drop(columns=["day", "bought"]).assign(new=1)
    new[new.columns[::-1]].to_csv("tomorrow.csv", index=False)
    lines = blocks("shell: messy table").splitlines()
    for line in lines:
        code, _, err = ofs(line.removeprefix("ofslib "))
        assert code == 0, err
    assert len(lines) == 3
    said = pd.read_csv("predictions.csv")
    assert roc_auc_score(table["bought"][200:], said["probability of yes"]) > 0.75


@pytest.mark.parametrize("cache", [True, False])
def test_features_are_those_of_scikit_learn(cache):
    numbers, words = ["income", "rate", "age"], ["city", "member"]
    table = TABLE.assign(rate=TABLE["rate"].str[:-1].astype(float), member=TABLE["member"].str[0])
    table.drop(columns="day").to_csv("plain.csv", index=False)
    filled = make_pipeline(SimpleImputer(), StandardScaler())
    other = ColumnTransformer([("n", filled, numbers), ("w", OneHotEncoder(), words)])
    own = {"categorical": "onehot", "missing": "mean", "standardize": True}
    X, y = whole(stream := open_stream("plain.csv", label="y", cache=cache, **own))
    expected = other.fit_transform(table)
    # Scales are those of the values that are there.
    expected[:, 0] *= np.sqrt(1 - table["income"].isna().mean())
    np.testing.assert_allclose(X.toarray(), expected, atol=1e-12)
    levels = ["city=Lima", "city=Oslo", "city=Rome", "member=f", "member=t"]
    assert stream.feature_names.tolist() == [*numbers, *levels]
    assert y.tolist() == TABLE["y"].tolist()
    own = {"categorical": "hash", "missing": "mean", "n_features": 8}
    X, _ = whole(open_stream("plain.csv", label="y", cache=cache, **own))
    hasher = FeatureHasher(8, input_type="string", alternate_sign=False)
    rows = [
        [f"city={a}", f"member={b}"] for a, b in zip(table["city"], table["member"], strict=True)
    ]
    assert np.array_equal(X[:, 3:].toarray(), hasher.transform(rows).toarray())


def test_a_cache_is_that_of_its_encoding():
    found = {}
    for ignored in (["day"], ["day", "age"], ["day"]):
        own = ENCODED | {"ignore": ignored}
        for missing in ("mean", "indicator"):
            stream = open_stream("t.csv", **own | {"missing": missing})
            X, fresh = (
                whole(open_stream("t.csv", cache=cache, **own | {"missing": missing}))[0]
                for cache in (True, False)
            )
            assert np.array_equal(X.toarray(), fresh.toarray())
            found[str(stream.identity())] = X.shape
    assert sorted(found.values()) == [(N, 6), (N, 7), (N, 7), (N, 8)]


def test_a_model_keeps_its_encoding_and_needs_the_columns_of_its_features_only():
    stream = open_stream("t.csv", **ENCODED)
    model = fit_stream(ofslib.SFSAClassifier(k=2), stream, checkpoint="run.ckpt")
    model.save("m.npz")
    again = ofslib.SFSAClassifier.load("m.npz")
    again.save("again.npz")
    assert Path("m.npz").read_bytes() == Path("again.npz").read_bytes()
    resumed = fit_stream(ofslib.SFSAClassifier(k=2), open_stream("t.csv", **ENCODED), "run.ckpt")
    assert again._encoding.digest() == stream.encoding.digest() == resumed._encoding.digest()
    wanted = ["city=Rome", "income is missing", "age"]
    assert again._encoding.sources(wanted) == ["city", "income", "age"]
    new = TABLE[["age", "income", "city"]].assign(x="word")
    new.loc[0, "city"] = "Bonn"
    new.to_csv("new.csv", index=False)
    own = {"encoding": again._encoding, "columns": wanted, "cache": False, "label": False}
    ((X, _),) = open_stream("new.csv", **own)
    places = [stream.feature_names.tolist().index(name) for name in wanted]
    expected = whole(stream)[0].toarray()[:, places]
    expected[0, 0] = 0.0  # of a new word
    assert X.feature_names.tolist() == wanted and np.array_equal(X.toarray(), expected)
    new.drop(columns="city").to_csv("new.csv", index=False)
    with pytest.raises(ValueError, match=r"new\.csv: columns: there is no 'city', which is needed"):
        open_stream("new.csv", **own)
    text()
    fit_stream(again, open_stream("plain.svm", cache=False))
    assert again._encoding is None, "what it learned is forgotten"


def text():
    rng = np.random.default_rng(0)
    X = sp.random_array((N, 5), density=0.5, rng=rng).multiply([1, 10, 100, 1e3, 1e4]).tocsr()
    dump_svmlight_file(X, rng.integers(0, 2, N), "plain.svm", zero_based=False)
    return X


@pytest.mark.parametrize("file", ["t.csv", "t.parquet"])
def test_only_chosen_columns_are_read_in_their_order(file):
    ((X, y),) = open_stream(file, label="y", columns=["age", "income"][:1], cache=False)
    assert X.feature_names.tolist() == ["age"] and X.toarray()[:, 0].tolist() == [*TABLE["age"]]
    assert y.tolist() == TABLE["y"].tolist()
    with pytest.raises(ValueError, match="there is no 'fame'"):
        open_stream(file, label="y", columns=["age", "fame"])
    Path("long.csv").write_text("a,b,y\n1,x,0\n2,x,5,1\n")
    with pytest.raises(ValueError, match="row 2: expected 3 cells, got 4"):
        list(open_stream("long.csv", label="y", columns=["a"], cache=False))


def test_texts_are_standardised_without_centering(ofs):
    X = text()
    expected = StandardScaler(with_mean=False).fit_transform(X)
    stream = open_stream("plain.svm", standardize=True, block_rows=70)
    np.testing.assert_allclose(whole(stream)[0].toarray(), expected.toarray(), rtol=1e-5)
    assert stream.skip(70).identity() != open_stream("plain.svm").skip(70).identity()
    assert ofs("select plain.svm --standardize -k 2 --model m.npz")[0] == 0
    known = ofslib.SFSAClassifier.load("m.npz")._encoding
    again = open_stream("plain.svm", encoding=known, cache=False)
    assert np.array_equal(whole(again)[0].toarray(), whole(stream)[0].toarray())
    with pytest.raises(ValueError, match="encoding: it is of a text, not of a table"):
        open_stream("t.csv", encoding=known, label="y")
    with pytest.raises(ValueError, match="encoding: it is of a table with the columns 'city'"):
        open_stream("plain.svm", encoding=open_stream("t.csv", **ENCODED).encoding)


@pytest.mark.parametrize("mark", [",", ";", "\t", "|"])
def test_what_separates_cells_is_found_or_said(ofs, mark):
    Path("s.csv").write_text(f"a{mark}b{mark}y\n" + f"1{mark}2{mark}0\n3{mark}1{mark}1\n" * 20)
    assert ofs("select s.csv --label y -k 1 --json")[1]["features"] == 2
    Path("s.csv").write_text(Path("s.csv").read_text().replace(mark, "^"))
    assert ofs("select s.csv --label y -k 1 --delimiter ^ --json")[1]["features"] == 2


@pytest.mark.parametrize("distinct, classes", [(11, 11), (250, 250), (400, None)])
@pytest.mark.parametrize("name", ["rows.svm", "rows.csv"])
def test_whole_numbers_as_labels_are_classes(ofs, name, distinct, classes):
    rows = [(i % distinct, i % 7) for i in range(3 * distinct)]
    line = "{} {}:1\n" if name == "rows.svm" else "{},{}\n"
    head = "" if name == "rows.svm" else "y,a\n"
    Path(name).write_text(head + "".join(line.format(y, j + 1) for y, j in rows))
    label = "" if name == "rows.svm" else " --label y"
    data, said = ofs(f"inspect {name} --json{label}")[1], ofs(f"inspect {name}{label}")[1]
    assert (data["labels"] and len(data["labels"])) == classes
    assert (f"{classes} classes: " in said) if classes else "numbers from 0 to 399" in said


@pytest.mark.parametrize(
    "own, said",
    [
        ({"ignore": None}, r"row 1, column 'city': .*'(Rome|Oslo|Lima)'; `ofslib inspect FILE`.*"
                           r"--categorical, --missing, --ignore"),
        ({"missing": "mean"}, r"words in 'city': see .*--categorical onehot.*`ofslib"),
        ({"missing": "mean", "ignore": None}, r"'city': .*; dates in 'day': see ignore"),
        ({"categorical": "onehot"}, r"missing values in 'income': see missing \(--missing mean\)"),
        ({"categorical": "onehot", "ignore": None}, "another word in each row of 'day'"),
        ({"ignore": ["no"]}, r"ignore='no' \(--ignore\) is no column"),
        ({"ignore": ["y"]}, r"ignore \(--ignore\) has the column of labels"),
        ({"ignore": "day"}, "ignore: expected a list of columns, got 'day'"),
        ({"missing": "drop"}, r"missing \(--missing\): expected one of .*, got 'drop'"),
        ({"categorical": "yes"}, r"categorical \(--categorical\): expected one of"),
        ({"delimiter": ",,"}, r"delimiter \(--delimiter\): expected a character, got ',,'"),
    ],
)  # fmt: skip
def test_one_error_names_what_cannot_be_learned_from_and_what_to_type(own, said):
    with pytest.raises(ValueError, match=f"(?s){said}"):
        list(open_stream("t.csv", cache=False, **USED | own))


@pytest.mark.parametrize(
    "cell, said", [("old", "expected numbers, got old"), ("", "a missing value")]
)
def test_a_later_file_that_does_not_fit_is_refused_by_its_cell(cell, said):
    known = open_stream("t.csv", **ENCODED | {"missing": "mean"}).encoding
    known = known._replace(missing="refuse")
    new = TABLE.assign(income=1.0, age=TABLE["age"].astype(object))
    new.loc[77, "age"] = cell
    new.to_csv("new.csv", index=False)
    with pytest.raises(ValueError, match=f"row 78, column 'age': .*{said}"):
        list(open_stream("new.csv", encoding=known, label="y", cache=False))


def test_other_sources_refuse_what_is_of_tables():
    text()
    for source in ("plain.svm", (np.ones((2, 2)), [0, 1])):
        for own in ({"missing": "mean"}, {"categorical": "onehot"}, {"ignore": ["a"]}):
            with pytest.raises(ValueError, match=f"{next(iter(own))}=.* is not for"):
                open_stream(source, **own)


def test_rows_of_any_length_and_cells_of_any_kind_stop_no_inspection(ofs):
    lines = ["a,b,c,y", "1,2,x,0", "3,,y", "5,inf,1e5,1,9", "NA,7,1_000,1", "1,2,?,0"]
    Path("odd.csv").write_text("\n".join(lines))
    code, data, _ = ofs("inspect odd.csv --label y --json")
    assert (code, data["rows"], data["ragged"]) == (0, 5, [2, 3])
    assert [column["missing"] for column in data["columns"]] == [1, 1, 1, 1]
    assert "rows 2, 3 have another number of cells" in ofs("inspect odd.csv --label y")[1]


def test_an_encoding_of_a_model_file_that_is_none_is_refused():
    parts = open_stream("t.csv", **ENCODED).encoding._asdict()
    assert encoding.Encoding.restored(parts).digest()
    for change in ({"names": [1]}, {"mean": [0.0]}, {"scale": np.ones(3)}, {"more": 1}):
        with pytest.raises(ValueError, match="its preprocessing is none of this version"):
            encoding.Encoding.restored(parts | change)
