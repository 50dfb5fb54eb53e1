"""What open_stream reads beside LIBSVM text: the same rows, the same bits, the same model."""

import gzip
import re
import sys
import tracemalloc
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest
import scipy.sparse as sp
from sklearn.feature_extraction import FeatureHasher
from test_cli import learned
from test_datasets import assert_same, exact_text, whole

import ofslib
from ofslib import fit_stream
from ofslib.datasets import CorruptFile, formats, open_stream, text
from ofslib.datasets import cache as cache_module

N, P = 211, 6
NAMES = ["age", "bytes sent", 'a "b", c', "größe", "x", "y2"]
both_ways = pytest.mark.parametrize("cache", [True, False])


def random_table():
    """Rows with zeros, and doubles of many exponents, of which 17 digits matter."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N, P)) * 10.0 ** rng.integers(-300, 0, (N, P))
    X[:, :3] = rng.standard_normal((N, 3))
    X[rng.random((N, P)) < 0.4] = 0.0
    return X, np.where(X[:, 0] + X[:, 1] > 0.1, 1.0, -1.0)


X, Y = random_table()
FRAME = pd.DataFrame(X, columns=NAMES).assign(label=Y)
FRAME.insert(2, "w", np.arange(N) % 3 + 0.5)


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """An empty folder as the current one; tables are read some rows at a time."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(formats, "_VALUES", 5 * P)
    return tmp_path


def put(text, name):
    """Write a text, packed if its name says so."""
    opened = gzip.open if name.endswith(".gz") else open
    with opened(name, "wt", encoding="utf-8") as file:
        file.write(text)


PLAIN = FRAME.drop(columns="w")
TABLE = pa.Table.from_pandas(PLAIN, preserve_index=False)
WORDS = np.array(["no", "oui"])[(Y > 0).astype(int)]
WORDED = PLAIN.assign(label=WORDS)
BLOCKS = [(X[:100], Y[:100]), (sp.csr_array(X[100:105]), Y[100:105]), (X[105:], Y[105:])]
SPARSE = {"format": "csr", "shape": X.shape} | {
    part: getattr(sp.csr_array(X), part) for part in ("data", "indices", "indptr")
}


@pytest.fixture
def files():
    """The rows in all formats; with words as labels, and with weights."""
    put(PLAIN.to_csv(index=False), "rows.csv")
    put(PLAIN.to_csv(index=False, header=False), "bare.csv")
    put(PLAIN.to_csv(index=False), "csv.txt")
    put(PLAIN.to_csv(index=False, sep="\t"), "rows.tsv.gz")
    pa.parquet.write_table(TABLE, "rows.parquet", row_group_size=90)
    pa.feather.write_feather(TABLE, "rows.feather", chunksize=90)
    np.save("rows.npy", np.column_stack([Y, X]))
    np.savez("rows.npz", X=X, y=Y)
    np.savez("sparse.npz", **SPARSE, t=Y)
    lines = exact_text(sp.csr_array(X), Y).decode().splitlines(True)
    put("".join(lines), "rows.svm")
    put("".join(w + x[x.index(" ") :] for w, x in zip(WORDS, lines, strict=True)), "words.svm")
    put(WORDED.to_csv(index=False), "words.csv")
    put(FRAME.to_csv(index=False), "heavy.csv")
    np.save("heavy.npy", FRAME.to_numpy())
    np.savez("heavy.npz", X=X, y=Y, w=FRAME["w"])
    put(VW, "heavy.vw")


FORMS = {  # a source, and how it is read
    "csv": ("rows.csv", {"label": "label"}),
    "csv by position": ("rows.csv", {"label": -1}),
    "csv without header": ("bare.csv", {"label": 6, "header": False}),
    "packed tsv": ("rows.tsv.gz", {"label": "label"}),
    "csv of another name": ("csv.txt", {"label": "label", "format": "csv"}),
    "parquet": ("rows.parquet", {"label": "label"}),
    "feather": ("rows.feather", {"label": "label"}),
    "npy": ("rows.npy", {"label": 0}),
    "npz": ("rows.npz", {}),
    "sparse npz": ("sparse.npz", {"label": "t"}),
    "pandas": (PLAIN, {"label": "label"}),
    "arrow": (TABLE, {"label": "label"}),
    "frame and labels": ((PLAIN[NAMES], PLAIN["label"]), {}),
    "columns first": ((np.asfortranarray(X), Y.tolist()), {}),
    "csc": ((sp.csc_matrix(X), Y), {}),
    "list of blocks": (BLOCKS, {}),
    "function": (lambda: iter(BLOCKS), {}),
}
NAMED = {"csv", "csv by position", "packed tsv", "csv of another name", "parquet", "feather"}
NAMED |= {"pandas", "arrow", "frame and labels"}


@pytest.mark.parametrize("form", FORMS)
def test_the_same_rows_are_the_same_bits_and_the_same_model(form, files):
    source, options = FORMS[form]
    stream, expected = open_stream(source, 50, **options), open_stream("rows.svm", 50)
    assert (stream.n_rows, stream.n_features) == (N, P)
    assert stream.identity() == open_stream(source, 50, **options).identity()
    assert [len(y) for _, y in stream] == [50] * 4 + [11]
    assert_same(whole(stream), whole(expected))
    for block, y in stream:
        assert block.indices.dtype == block.indptr.dtype == np.int32 and y.dtype == np.float64
        assert block.data.flags.writeable and y.flags.writeable
    for start in (90, 130):
        rest = open_stream(source, 50, start_row=start, **options)
        assert_same(whole(rest), (sp.csr_array(X[start:]), Y[start:]))
    models = [ofslib.SGDTClassifier(k=2, n_passes=2) for _ in range(2)]
    assert learned(fit_stream(models[0], stream)) == learned(fit_stream(models[1], expected))
    names = getattr(models[0], "feature_names_in_", None)
    assert (None if names is None else names.tolist()) == (NAMES if form in NAMED else None)


@both_ways
def test_rows_are_read_in_constant_memory(monkeypatch, cache):
    sizes = {
        (formats, "_VALUES"): 1 << 9,
        (text, "_CHUNK"): 10_000,
        (cache_module, "_PIECE"): 10_000,
    }
    for (module, name), size in sizes.items():
        monkeypatch.setattr(module, name, size)
    large = np.arange(1.0, 240_001).reshape(-1, 8) % 7
    frame = pd.DataFrame(large, columns=list("abcdefgh"))
    frame.to_csv("large.csv", index=False)
    frame.to_parquet("large.parquet", row_group_size=500)
    put("".join(f"1 {' '.join(f'{j}:{v}' for j, v in enumerate(x, 1))}\n" for x in large), "l.svm")
    for name, own in (
        ("large.csv", {"label": "a"}),
        ("large.parquet", {"label": "a"}),
        ("l.svm", {}),
    ):
        next(iter(open_stream(name, 100, cache=False, **own)))
        tracemalloc.start()
        for _ in range(2):
            assert sum(len(y) for _, y in open_stream(name, 100, cache=cache, **own)) == len(large)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < large.nbytes / 2, name


# -------------------------------------------------- names


def test_names_are_compared_as_those_of_a_frame():
    model = fit_stream(ofslib.SGDTClassifier(k=2), open_stream(PLAIN, 50, label="label"))
    other, y = next(iter(open_stream(PLAIN[[*NAMES[::-1], "label"]], label="label")))
    with pytest.raises(ValueError, match="same order"):
        model.partial_fit(other, y)
    other, _ = next(iter(open_stream(PLAIN.rename(columns={"x": "z"}), label="label")))
    with pytest.raises(ValueError, match="unseen at fit time:\n- z"):
        model.decision_function(other)
    assert model.n_samples_seen_ == N


def test_names_are_in_the_model_file_its_features_and_what_is_inspected(files, ofs):
    line = "select rows.csv --label label -k 3 --out features.csv --model m.npz --checkpoint c"
    assert ofs(line)[0] == ofs(line)[0] == 0  # the second time from the checkpoint
    model = ofslib.SFSAClassifier.load("m.npz")
    assert model.feature_names_in_.tolist() == NAMES
    chosen = pd.read_csv("features.csv")["feature"].tolist()
    assert sorted(chosen) == sorted(model.get_feature_names_out())
    put(FRAME[NAMES].to_csv(index=False), "new.csv")  # without labels
    code, out, err = ofs("predict new.csv --model m.npz --out said.csv")
    assert code == 0 and "no score" in out and err == ""
    said = pd.read_csv("said.csv")["prediction"]
    assert np.array_equal(said, model.predict(PLAIN[NAMES]))
    assert ofs("predict rows.csv --model m.npz")[0] == 0  # its labels are a column like others
    labels = ofs("inspect words.csv --label label --json")[1]["labels"]
    assert labels == pd.Series(WORDS).value_counts().to_dict()
    put(PLAIN.to_csv(index=False).replace("age", "agf"), "rows.csv")
    code, _, err = ofs(line)
    assert code == 1 and "the rows, or how they are read, differ" in err


# -------------------------------------------------- labels, weights, queries


@both_ways
@pytest.mark.parametrize(
    ("source", "options"),
    [
        ("words.csv", {"label": "label"}),
        ("words.svm", {"word_labels": True}),
        (PLAIN.assign(label=pd.Categorical(WORDS)), {"label": "label"}),
        ((X, WORDS.tolist()), {}),
    ],
)
def test_labels_may_be_words(source, options, cache, files):
    expected = fit_stream(ofslib.SGDTClassifier(k=2), open_stream("rows.svm", 50))
    stream = open_stream(source, 50, cache=cache, **options)
    for _ in range(2):
        got, labels = whole(stream)
        assert labels.tolist() == WORDS.tolist()
        assert (got != sp.csr_array(X)).nnz == 0
    model = fit_stream(ofslib.SGDTClassifier(k=2), stream, "run.ckpt")
    assert model.classes_.tolist() == ["no", "oui"] and learned(model) == learned(expected)


VW = "".join(
    f"{y:g}{f' {w}' if w != 1 else ''}{' ' if i % 2 else ''} 'tag{i}|f {i % 5 + 1}:{y!r} 9:2\n"
    for i, (y, w) in enumerate(zip(Y.tolist(), (np.arange(N) % 3 + 0.5).tolist(), strict=True))
)


class Unweighted(ofslib.SGDTClassifier):
    def partial_fit(self, X, y, classes=None):
        return super().partial_fit(X, y, classes=classes)


@both_ways
@pytest.mark.parametrize(
    ("source", "options"),
    [
        ("heavy.csv", {"label": "label", "weight": "w"}),
        ("heavy.npy", {"label": -1, "weight": 2}),
        ("heavy.npz", {"weight": "w"}),
        ("heavy.vw", {"weight": True}),
        (FRAME, {"label": "label", "weight": "w"}),
        ((X, Y, FRAME["w"]), {}),
    ],
)
def test_weights_are_read_and_refused_where_none_are_learned(source, options, cache, files):
    """Where they are, they are handed on: test_cli.py, of weights of zero."""
    stream = open_stream(source, 50, cache=cache, **options)
    for _ in range(2):
        *_, weights = zip(*stream, strict=True)
        assert np.concatenate(weights).tolist() == FRAME["w"].tolist()
    with pytest.raises(TypeError, match="rows have weights, and Unweighted has no sample_weight"):
        fit_stream(Unweighted(k=2), stream)


# -------------------------------------------------- hashed names


def test_hashed_names_are_where_scikit_learn_puts_them():
    rng, expected, lines = np.random.default_rng(0), [], []
    for _ in range(300):
        row, line = [], "1"
        for space in ("", "a", "längerer-Name"):
            line += f" |{space}"
            for _ in range(rng.integers(0, 6)):
                word = "".join(rng.choice(list("aä€𝄞z0_^/-."), rng.integers(1, 9)))
                value = rng.choice([1.0, round(float(rng.standard_normal()), 3)])
                line += f" {word}" if value == 1 else f" {word}:{value}"
                row.append((f"{space}^{word}" if space else word, value))
        lines.append(f"{line}\n")
        expected.append(row)
    put("".join(lines), "words.vw")
    for width in (1, 37, 2**20):
        hasher = FeatureHasher(width, input_type="pair", alternate_sign=False)
        got, _ = whole(open_stream("words.vw", 70, n_features=width, hashed=True))
        assert got.has_canonical_format and got.shape == (300, width)
        assert abs(got - sp.csr_array(hasher.transform(expected))).max() < 1e-12


def test_names_of_a_libsvm_text_are_hashed_too_and_numbers_are_names():
    put("1 word:2 7:3 # rest\n-1 7:1\n", "a.svm")
    got, y = whole(open_stream("a.svm", n_features=1000, hashed=True))
    hasher = FeatureHasher(1000, alternate_sign=False)
    assert (got != hasher.transform([{"word": 2, "7": 3}, {"7": 1}])).nnz == 0
    assert y.tolist() == [1, -1]
    put("1 |f a:2 a:-2 b\n1 |f c:0\n", "a.vw")  # what adds up to zero is no entry
    ((block, _),) = open_stream("a.vw", n_features=2**31 - 1, hashed=True)
    assert (block.data.tolist(), block.indptr.tolist()) == ([1], [0, 1, 1])
    assert block.indices.dtype == np.int32
    with pytest.raises(ValueError, match=r"n_features \(--n-features\): expected at most"):
        open_stream("a.vw", n_features=2**31, hashed=True)


# -------------------------------------------------- what is wrong


def table(text, said, name="bad.csv", error=ValueError, **options):
    label = {} if name.endswith(("svm", "vw")) else {"label": "y"}
    return pytest.param(text, said, name, error, label | options, id=said)


HASHED = {"hashed": True, "n_features": 8}


@both_ways
@pytest.mark.parametrize(
    "text, said, name, error, options",
    [
        table("a,y\n1,2\n,3\n", r"row 2, column 'a': .*a missing value"),
        table("a,y\n1,2\ninf,3\n", r"row 2, column 'a': .*inf"),
        table("a,y\n1,2\n4,\n", r"row 2, column of labels: .*missing"),
        table("a,b,y\n1,2\n", r"row 1: expected 3 cells, got 2"),
        table("a,y\n" + "1,2\n" * 200 + "1,2;\n", r"row 201, column of labels: .*'2;'"),
        table("\n \ny,a\n1,3\n\n  \n0,x\n", r"row 2, column 'a': .*'x'"),
        table("y,a\n1,3\n0,1_000\n", r"row 2, column 'a': .*'1_000'"),
        table("y,a\n1,3\n0,\uff11\n".encode().decode("latin-1"), r"row 2, column 'a': .*'\uff11'"),
        table("f,y\n1,spam\n2,5\n3,\n", r"row 3: expected a word as label"),
        table("f,w,y\n1,1,5\n2,-6,5\n", r"row 2: expected a weight from 0 on, got -6", weight="w"),
        table("", r"expected rows, got an empty file"),
        table("a,b\n1,2\n", r"label='y' \(--label\) is no column; there are 'a', 'b'"),
        table("a,a,y\n1,2,3\n", r"two columns have the name 'a'"),
        table("1,2\n2,3\n", r"header=False \(--no-header\)", label=0),
        table("a,y\n1,2\n", r"label \(--label\): say which column", label=None),
        table("a,y\n1,2\n", r"label \(--label\): expected .* from -2 to 1, got 2", label=2),
        table("a,y\n1,2\n", r"header: expected True or False", header="yes"),
        table("a,y\n1,2\n", r"hashed=True \(--hashed\) is not for", hashed=True),
        table("a,y\n1,2\n", r"n_features=7 \(--n-features\): there are 1", n_features=7),
        table("a,y\n1,2\n", r"format \(--format\): expected one of libsvm, .*'xls'", format="xls"),
        table("a,y\n1,\xff\n", r"bad\.csv: expected UTF-8"),
        table("no gzip", r"expected a whole file", "bad.csv.gz", CorruptFile),
        table("no parquet", r"expected a whole file of the format", "bad.parquet", CorruptFile),
        table("no array", r"expected arrays as numpy saves", "bad.npy", CorruptFile, label=0),
        table("spam 1:1\n", r"line 1: .*'spam' is not.*see word_labels", "bad.svm"),
        table("\xff 1:1\n", r"line 1: the label b'.xff' is not UTF-8", "bad.svm", word_labels=True),
        table("1 1:1\n", r"hashed \(--hashed\): say to how many", "bad.svm", hashed=True),
        table("1 1:1\n2 qid:7 1:1\n", r"line 2: 'qid:7' names a query", "bad.svm", **HASHED),
        table("1 1.5|f 1:1\n1 -2 |f 1:1\n", r"line 2: the weight -2\.0", "bad.vw", weight=True),
        table("1 1.5|f 1:1\n", r"line 1: '1\.5\|f'.*see weight \(--weight\)", "bad.vw"),
        table("1 2 0.5 |f 3:4\n", r"'0\.5' is an initial prediction", "bad.vw", weight=True),
        table("1 2 |f:3 1:1\n", r"line 1: '\|f:3'", "bad.vw", weight=True),
        table("1 |f a:inf\n", r"'a:inf' is not `index:value`", "bad.vw", **HASHED),
        table("1\n0:1 1:.5\n", r"line 2: .*LIBSVM has no weights.*--format vw --weight", "bad.svm"),
        table("1:.5 2:1\n", r"line 1: .* has no label: write its label, or any number", "bad.svm"),
        table("1 | 1:1\n|f 1:.5\n", r"line 2: .*has no label: write its label", "bad.vw"),
        table("1,3,5 1:.5\n", r"'1,3,5' is several labels, or a number with a comma", "bad.svm"),
        table("-1,5 1:.5\n", r"'-1,5' is several labels", "bad.svm", word_labels=True),
        table(f"{'x' * 1001} 1:1\n", r"has 1001 bytes, more than", "bad.svm", word_labels=True),
        table(f"1 {2**40}:1\n", r"line 1: .*from 1 to 2147483647; .*1048576\)", "bad.svm"),
        table(f"a,y\n1,x\n2,{'b' * 20_000}\n", r"row 2: expected a label of at most 1000"),
    ],
)
def test_a_wrong_table_or_text_is_named(text, said, name, error, options, cache):
    Path(name).write_bytes(text.encode("latin-1"))
    with pytest.raises(error, match=f"(?s){re.escape(name)}.*{said}|^{said}"):
        list(open_stream(name, cache=cache, **options))
    assert [path.name for path in Path().iterdir()] == [name], "no cache is left"


@pytest.mark.parametrize("blank", ["\n", "\n\t\r\n  \n", "\ufeff\n", "\r"])
@pytest.mark.parametrize("header", [True, False])
def test_blank_lines_are_no_rows_wherever_they_stand(blank, header):
    names = "y,1,2\n" if header else ""
    for labels in ("ab", "34"):
        put(blank + names + f"{labels[0]},3,4\n \n{labels[1]},5,6\n\n", "a.csv")
        stream = open_stream("a.csv", cache=False, label=0, header=header)
        block, y = whole(stream)
        assert block.toarray().tolist() == [[3, 4], [5, 6]] and stream.n_rows == 2
        assert [str(label)[0] for label in y.tolist()] == list(labels)
    Path("a.csv").write_text("a,y\n")
    stream = open_stream("a.csv", label="y")
    assert (list(stream), stream.n_rows, stream.n_features) == ([], 0, 1)


@pytest.mark.parametrize("kind", [lambda frame: frame, pa.table], ids=["pandas", "arrow"])
@pytest.mark.parametrize(
    "column, said",
    [
        (pd.array([1, None], dtype="Int64"), "row 2, column 'a': .*a missing value"),
        ([1.0, np.inf], "row 2, column 'a': .*inf"),
        (["x", "y"], "row 1, column 'a': .*'x'"),
        (pd.to_datetime(["2020-01-01"] * 2), "row 1, column 'a'"),
        ([True, False], None),
        (pd.array([1, 2], dtype="Int8"), None),
    ],
)
def test_cells_of_a_frame_are_numbers_or_named(kind, column, said):
    frame = pd.DataFrame({"a": column, "y": [True, False]})
    frame.to_parquet("rows.parquet")
    for source in (kind(frame), "rows.parquet"):
        if said:
            with pytest.raises(ValueError, match=said):
                list(open_stream(source, label="y"))
        else:
            block, y = whole(open_stream(source, label="y"))
            assert block.toarray().ravel().tolist() == [float(v) for v in column]
            assert y.tolist() == [1, 0]


@pytest.mark.parametrize(
    "source, said, error",
    [
        (([[1, 2]], [1, 2]), r"expected y of shape \(1,\), got \(2,\)", ValueError),
        (([1, 2], [1, 2]), "two axes", ValueError),
        (X, "source must be .*not ndarray", TypeError),
        ([], "expected at least one block", ValueError),
        ([X], r"block 1: expected \(X, y\)", ValueError),
        ([(X, Y), (X[:, 1:], Y)], "block 2: columns: expected 6 as in block 1, got 5", ValueError),
        ([(X, Y), (X, WORDS)], "block 2: worded", ValueError),
        (([[1, np.nan]], [1]), "X, row 1, column 2: .*missing", ValueError),
        ((sp.csr_array([[np.nan]]), [1]), "X, row 1: .*not a finite", ValueError),
        ((X, Y, -abs(Y)), "X, row 1: expected a weight from 0 on", ValueError),
    ],
)
def test_wrong_rows_in_memory_are_named(source, said, error):
    """Also where blocks without rows come first."""
    with pytest.raises(error, match=said):
        list(open_stream(source))


def test_an_iterator_is_gone_through_once_and_blocks_without_rows_say_nothing():
    stream = open_stream(iter(BLOCKS), 50)
    assert_same(whole(stream), (sp.csr_array(X), Y))
    with pytest.raises(ValueError, match="for a second pass"):
        list(stream)
    with pytest.raises(ValueError, match="gives its blocks once"):
        fit_stream(ofslib.SGDTClassifier(k=2), open_stream(iter(BLOCKS)))
    none = (np.empty((0, 0)), np.array([]))
    own = [none, none, (X[:100], WORDS[:100]), none, (X[100:], WORDS[100:])]
    for source in (own, lambda: iter(own), iter(own)):
        got, labels = whole(open_stream(source, 50))
        assert labels.tolist() == WORDS.tolist() and (got != sp.csr_array(X)).nnz == 0
    with pytest.raises(ValueError, match="block 4: worded: expected True as in block 3, got False"):
        list(open_stream([*own[:3], (X, Y)]))


def test_a_package_that_is_lacking_is_named(monkeypatch):
    pa.parquet.write_table(TABLE, "rows.parquet")
    monkeypatch.setitem(sys.modules, "pyarrow.dataset", None)
    with pytest.raises(ImportError, match=r"rows\.parquet: .*pip install 'ofslib\[arrow\]'"):
        open_stream("rows.parquet", label="label")
