"""Odd inputs, and where the command runs: each gives a clear message or the right result."""

import contextlib
import os
import signal
import subprocess
import sys
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
    return model.set_params(k=2) if "k" in model.get_params() else model


@pytest.mark.parametrize("name", ESTIMATORS)
def test_every_estimator_refuses_masked_entries_and_names_missing_ones(name):
    hole = np.zeros(X.shape, bool)
    estimator(name).fit(np.ma.array(X, mask=hole), Y)  # a mask of nothing
    hole[3, 2] = True
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
    model = estimator("SFSAClassifier").fit(X, Y)
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
    with pytest.raises(ValueError, match="y must be numbers .* labels"):
        estimator("SFSARegressor").fit(X, newer)
    assert next(iter(datasets.open_stream((X, newer))))[1].tolist() == words.tolist()
