"""Odd inputs, and where the command runs: each gives a clear message or the right result."""

import time

import numpy as np
import pandas as pd
import pytest
from test_datasets import CONTENT, give, place, server  # noqa: F401 (fixtures)

import ofslib
from ofslib import datasets
from ofslib.datasets import download

# -------------------------------------------------- downloads


@pytest.mark.parametrize("status", [203, 299, 999])
def test_a_mirror_with_an_odd_status_falls_back_to_the_source(place, server, monkeypatch, status):  # noqa: F811
    def odd(handler, server):
        handler.send_response(status)
        handler.send_header("Content-Length", str(len(CONTENT)))
        handler.end_headers()
        handler.wfile.write(CONTENT)

    server.answers["/mirror/tiny/tiny.svm"] = odd
    monkeypatch.setenv(download.MIRROR, f"{server.url}/mirror")
    with pytest.warns(UserWarning, match=f"status {status}.*; trying"):
        [path] = place.fetch()
    assert path.read_bytes() == CONTENT and server.asked[-1] == place.public


@pytest.mark.parametrize("head", [b"", b"HTTP/1.1 200 OK\r\nContent-Length: 10240\r\n\r\n"])
def test_a_server_that_sends_a_byte_now_and_then_is_given_up(place, server, monkeypatch, head):  # noqa: F811
    def trickle(handler, server):
        handler.wfile.write(head)
        while not server.end.wait(0.05):
            handler.wfile.write(b"H")

    monkeypatch.setattr(download, "PATIENCE", 0.5)
    server.answers[place.public] = trickle
    began = time.monotonic()
    with pytest.raises(datasets.NotObtainable, match=r"tiny.* less than 2000 bytes a second"):
        place.fetch()
    assert time.monotonic() - began < 5 and place.files() == []


# -------------------------------------------------- arrays

X = np.random.default_rng(0).standard_normal((40, 4))
Y = np.where(X[:, 0] > 0, 1, -1)
ESTIMATORS = sorted(name for names in ofslib.ESTIMATORS.values() for name in names)


def with_na(array):
    array = array.astype(object)
    array[3, 3] = pd.NA
    return array


def estimator(name):
    model = getattr(ofslib, name)()
    own = {"k": 2, "random_state": 0}
    return model.set_params(**{n: v for n, v in own.items() if n in model.get_params()})


@pytest.mark.parametrize("name", ESTIMATORS)
def test_every_estimator_refuses_masked_entries_and_names_missing_ones(name):
    hole = X == X[3, 2]
    frame = pd.DataFrame(with_na(X), columns=list("abcd"))
    cases = {"X has masked entries": np.ma.array(X, mask=hole)}
    cases |= {"column 3 of X .*fill in": with_na(X), "column 'd' of X .*fill in": frame}
    for said, given in cases.items():
        with pytest.raises(ValueError, match=said):
            estimator(name).fit(given, Y)


def test_masked_targets_are_refused_and_missing_ones_named():
    masked = np.ma.array(Y, mask=np.arange(40) == 3)
    na = Y.astype(object)
    na[3] = pd.NA
    for name in ("SFSAClassifier", "OFSARegressor", "OnlineSubstitution"):
        with pytest.raises(ValueError, match="y has masked entries"):
            estimator(name).fit(X, masked)
        with pytest.raises(ValueError, match="y contains no value in row 3"):
            estimator(name).fit(X, na)
    with pytest.raises(ValueError, match="y has masked entries"):
        next(iter(datasets.open_stream((X, masked))))
    model = estimator("SFSAClassifier").fit(np.ma.array(X, mask=X > 9), Y)  # none is masked
    for call in (model.predict, model.transform):
        with pytest.raises(ValueError, match="X has masked entries"):
            call(np.ma.array(X, mask=X > 1))


def test_words_of_numpys_newer_type_are_labels():
    words = np.where(Y > 0, "yes", "no")
    newer = words.astype(np.dtypes.StringDType())
    for name in ("SFSAClassifier", "OFSAClassifier"):
        model = estimator(name).fit(X, newer)
        np.testing.assert_array_equal(model.predict(X), estimator(name).fit(X, words).predict(X))
        assert model.classes_.tolist() == ["no", "yes"]
    with pytest.raises(ValueError, match="y must be numbers"):
        estimator("SFSARegressor").fit(X, newer)
    assert next(iter(datasets.open_stream((X, newer))))[1].tolist() == words.tolist()


# -------------------------------------------------- texts

WORDED = {"word_labels": True}
TEXTS = [
    ("0:1 1:.5", {}, r"LIBSVM has no weights.*`0 1 \| ...`.*--format vw --weight"),
    ("1:.5 2:1", {}, "has no label: write its label, or any number if it is only predicted"),
    ("|f 1:.5", {"format": "vw"}, "has no label: write its label"),
    ("1,3,5 1:.5", {}, "'1,3,5' is several labels, or a number with a comma"),
    ("1,3,5 1:.5", WORDED, "'1,3,5' is several labels, or a number with a comma"),
    ("-1,5 1:.5", WORDED, "'-1,5' is several labels"),
    ("x" * 1001 + " 1:1", WORDED, "the label has 1001 bytes, more than 1000"),
    (f"1 {2**40}:1", {}, r"from 1 to 2147483647; .* \(--hashed --n-features 1048576\)"),
    (f"1 {2**40}:1", {"n_features": 5}, r"from 1 to 5; .* \(--hashed --n-features 1048576\)"),
    ("1 6:1", {"n_features": 5}, r"from 1 to 5; see n_features"),
]


@pytest.mark.parametrize("line, options, said", TEXTS)
def test_what_a_line_of_text_is_refused_for(tmp_path, line, options, said):
    file = tmp_path / "rows.svm"
    bar = "| " * (options.get("format") == "vw")
    file.write_text(f"0 {bar}1:1\n{line}\n1 {bar}1:2\n")
    with pytest.raises(ValueError, match=f"rows.svm, line 2: .*{said}"):
        list(datasets.open_stream(file, cache=False, **options))


def test_a_very_long_label_of_a_table_is_refused_with_its_row(tmp_path):
    file = tmp_path / "rows.csv"
    file.write_text("x,y\n1,a\n2," + "b" * 20_000 + "\n")
    with pytest.raises(ValueError, match="row 2: expected a label of at most 1000 letters"):
        list(datasets.open_stream(file, label="y", cache=False))
