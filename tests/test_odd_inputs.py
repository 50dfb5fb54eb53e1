"""Odd inputs, and where the command runs: each gives a clear message or the right result."""

import contextlib
import os
import signal
import subprocess
import sys
import time

import pytest
from test_datasets import CONTENT, give, place, server  # noqa: F401 (fixtures)

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
