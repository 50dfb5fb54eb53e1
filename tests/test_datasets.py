"""Data sets: what is promised of the registry, of files, of readers and of streams."""

import bz2
import contextlib
import csv
import gzip
import hashlib
import io
import json
import lzma
import os
import re
import shutil
import signal
import struct
import subprocess
import sys
import threading
import time
import tracemalloc
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.io
import scipy.sparse as sp
from sklearn.datasets import dump_svmlight_file, load_svmlight_file

from ofslib import datasets
from ofslib.datasets import cache as cache_module
from ofslib.datasets import download, pieces, readers
from ofslib.datasets import text as text_module
from ofslib.datasets.registry import BY_BLOCKS, LABELLED, READERS, SHIPPED, read_rows, splits

CLOSED = "http://127.0.0.1:9"  # the discard port: nobody listens
BESIDE = Path(__file__).parents[2] / "shared" / "data"
REAL = os.environ.get(download.MIRROR) or (str(BESIDE) if BESIDE.is_dir() else None)


@pytest.fixture(autouse=True)
def no_network(monkeypatch):
    monkeypatch.setattr(download, "SOURCE", CLOSED)
    monkeypatch.delenv(download.MIRROR, raising=False)
    monkeypatch.setenv("no_proxy", "127.0.0.1")


# -------------------------------------------------- tools of the tests


def sha256(content):
    return "sha256:" + hashlib.sha256(content).hexdigest()


def cells(content=b"1 1:2\n", **changed):
    """A right row of the registry for one file of this content."""
    row = {
        "name": "tiny",
        "title": "Tiny",
        "reader": "libsvm",
        "label": "",
        "repository": "owner/repository",
        "commit": "0" * 40,
        "train": "data/tiny.svm",
        "train_checksum": sha256(content),
        "train_bytes": str(len(content)),
        "test": "",
        "test_checksum": "",
        "test_bytes": "",
        "n_train": "1",
        "n_test": "",
        "n_features": "1",
        "train_labels": "",
        "train_first": "",
        "task": "classification",
        "licence": "free",
        "citation": "Nobody, 2000",
        "notes": "",
    }
    return row | changed


def write_table(folder, *rows):
    path = folder / "datasets.csv"
    with open(path, "w", newline="") as file:
        writer = csv.DictWriter(
            file, fieldnames=list(dict.fromkeys(c for row in rows for c in row))
        )
        writer.writeheader()
        writer.writerows(rows)
    return path


def files_in(folder):
    return sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file())


class Server:
    """Answers as `answers[path]` says; counts what it was asked for."""

    def __init__(self):
        self.answers, self.asked, self.end, self.sent = {}, [], threading.Event(), 0
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                outer.asked.append(self.path)
                with contextlib.suppress(ConnectionError):
                    outer.answers.get(self.path, not_found)(self, outer)

            def log_message(self, *args):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.01,))
        self.thread.start()

    def stop(self):
        self.end.set()
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()


def not_found(handler, server):
    handler.send_error(404)


def hang(handler, server):
    server.end.wait(20)


def give(content, length=None):
    """Send `content`, saying that it is `length` bytes (0: say nothing)."""

    def answer(handler, server):
        handler.send_response(200)
        if length != 0:
            handler.send_header("Content-Length", str(length or len(content)))
        handler.end_headers()
        handler.wfile.write(content)

    return answer


def endless(handler, server):
    """Send 200 MiB, without saying how much there is, until nobody listens."""
    give(CONTENT, 0)(handler, server)
    for _ in range(200):
        handler.wfile.write(bytes(2**20))
        server.sent += 2**20


def begin_and_hang(content):
    def answer(handler, server):
        give(content[:1000], len(content))(handler, server)
        hang(handler, server)

    return answer


@pytest.fixture
def server():
    server = Server()
    yield server
    server.stop()


CONTENT = bytes(range(256)) * 40
LOCAL = "resources/tiny/tiny.svm"


@pytest.fixture
def place(tmp_path, monkeypatch, server):
    """A registry of one file whose public source is the local server."""

    class Place:
        table = write_table(tmp_path, cells(CONTENT))
        folder = tmp_path / "resources"
        public = f"/owner/repository/{'0' * 40}/data/tiny.svm"

        def fetch(self, timeout=3):
            return datasets.fetch("tiny", self.folder, self.table, timeout=timeout)

        def files(self):
            return files_in(self.folder)

    monkeypatch.setattr(download, "SOURCE", server.url)
    server.answers[Place.public] = give(CONTENT)
    return Place()


# -------------------------------------------------- the registry


def test_the_registry_of_the_project_is_right():
    rows = read_rows()
    assert {*FACTS, "ecml18_gisette"} <= set(rows)
    for name, row in rows.items():
        remotes = [r for part in splits(row) for r in download.remote_files(row, part)]
        assert len({r.name for r in remotes}) == len(remotes), name
        assert all(f"/{row['commit']}/" in r.url for r in remotes)
        assert row["repository"] or all(r.url.startswith("https://") for r in remotes)
        assert row["title"] and row["licence"] and row["citation"], name


def test_a_table_adds_to_the_data_sets_of_ofslib(tmp_path):
    header, *_ = SHIPPED.read_text(encoding="utf-8").splitlines()
    empty = tmp_path / "empty.csv"
    empty.write_text(header + "\n")
    shipped = datasets.registry()
    pd.testing.assert_frame_equal(datasets.registry(empty), shipped)
    both = datasets.registry(write_table(tmp_path, cells(), cells(name="other")))
    pd.testing.assert_frame_equal(both[:-2], shipped)
    assert list(both.index[-2:]) == ["tiny", "other"]
    # A user's own may be shorter.
    columns = (Path(__file__).parents[1] / "config/datasets.csv").read_text().splitlines()[0]
    assert {*columns.split(",")} <= {*header.split(",")}


def test_each_reader_that_a_row_may_name_is_there():
    assert set(READERS) == set(readers.READERS) | BY_BLOCKS
    assert not set(readers.READERS) & BY_BLOCKS


def test_the_registry_is_read_without_what_reads_files():
    program = "import sys, ofslib.datasets.registry as r; print(*sys.modules)"
    modules = set(subprocess.check_output([sys.executable, "-c", program], text=True).split())
    assert "ofslib.datasets.registry" in modules
    assert not {"numba", "numpy", "pandas", "pooch", "scipy"} & modules


@pytest.mark.parametrize(
    "column, value, expected",
    [
        ("name", "Big Name", "small letters"),
        ("reader", "excel", "one of ar_mat"),
        ("commit", "master", "40 hexadecimal digits"),
        ("train", "/etc/passwd", "paths in the repository"),
        ("train_checksum", "md5:" + "0" * 32, "sha256:"),
        ("train_checksum", sha256(b"") + " " + sha256(b"1"), "expected 1, got 2"),
        ("train_bytes", "", "expected 1, got 0"),
        ("train_bytes", "many", "the size of each file"),
        ("test", "data/other.svm", "expected 1, got 0"),
        ("n_test", "5", "exactly where there are files"),
        ("n_features", "", "number of columns"),
        ("task", "classificaton", "classification or regression"),
        ("reader", "os:system", "a function of your own"),
        ("reader", "csv", "column label: expected the column"),
        ("label", "y", "column label: expected nothing, libsvm knows it"),
        ("commit", "", "exactly where there is a repository"),
        ("train_labels", "1=3", "label:count"),
        ("train_first", "1 a:2", "how the first row begins"),
    ],
)
def test_a_wrong_cell_is_named(tmp_path, column, value, expected):
    table = write_table(tmp_path, cells(name="first"), cells(**{column: value}))
    with pytest.raises(ValueError) as error:
        datasets.registry(table)
    assert "row 2" in str(error.value) and expected in str(error.value)
    assert f", column {column.split('_')[0]}" in str(error.value) or "column label" in expected


OWN = {"repository": "", "commit": "", "train_checksum": "", "train_bytes": "", "n_train": ""}


@pytest.mark.parametrize(
    "changed, expected",
    [
        ({"train": "https://host"}, "column train: expected a path, or an address"),
        ({"train": "ftp://host/file"}, "column train: expected a path, or an address"),
        ({"train": "my rows.csv"}, "column train: expected one file for libsvm; got 2"),
        ({"train": "a/x b/x", "reader": "idx"}, "column train: expected files of different names"),
        ({"train_bytes": "1 2"}, "column train_bytes: expected 1, got 2"),
        ({"train": "a.csv", "reader": "csv", "label": ""}, "column label: expected the column"),
    ],
)
def test_a_wrong_cell_of_a_file_of_ones_own_is_named(tmp_path, changed, expected):
    with pytest.raises(ValueError, match=re.escape(expected)):
        datasets.registry(write_table(tmp_path, cells(**OWN | changed)))


def test_a_table_has_the_columns_that_it_needs(tmp_path):
    """Four are enough for a file of one's own, and the data can then be read by name."""
    path = tmp_path / "mine.csv"
    path.write_text("price,size,sold\n1.5,2,0\n0,7,1\n")
    table = tmp_path / "datasets.csv"
    table.write_text(f"name,reader,label,train,task\nmine,csv,sold,{path},classification\n")
    assert datasets.registry(table).loc["mine", "title"] == "mine"
    data = datasets.load("mine", tmp_path / "here", registry_path=table)
    np.testing.assert_array_equal(data.X_train, [[1.5, 2], [0, 7]])
    assert data.y_train.tolist() == [0, 1] and data.y_train.dtype == np.int64
    [(X, _)] = datasets.open_stream("mine", registry_path=table, cache=False)
    np.testing.assert_array_equal(X.toarray(), data.X_train)
    assert list(X.feature_names) == ["price", "size"]
    assert not (tmp_path / "here").exists(), "a file of one's own is used where it lies"
    table.write_text("name,reader,train\nmine,libsvm,x\n")
    with pytest.raises(ValueError, match="task missing"):
        datasets.registry(table)
    path.unlink()
    table.write_text(f"name,reader,label,train,task\nmine,csv,sold,{path},classification\n")
    with pytest.raises(datasets.NotObtainable, match=f"there is no file {path}"):
        datasets.load("mine", registry_path=table)


def test_a_table_with_other_columns_twice_a_name_or_no_table(tmp_path):
    with pytest.raises(ValueError, match=r"row 2 \(tiny\), column name: another data set"):
        datasets.registry(write_table(tmp_path, cells(), cells()))
    shipped = cells(name="ecml18_arcene")
    with pytest.raises(ValueError, match=r"row 1 \(ecml18_arcene\), column name: another data set"):
        datasets.registry(write_table(tmp_path, shipped))
    row = cells()
    row["license"] = row.pop("licence")
    with pytest.raises(ValueError, match="expected columns"):
        datasets.registry(write_table(tmp_path, row))
    with pytest.raises(FileNotFoundError, match="give its path"):
        datasets.registry(tmp_path / "none.csv")


def test_an_unknown_name_or_split_lists_the_known(place):
    for call in (datasets.fetch, datasets.load):
        with pytest.raises(ValueError, match=r"no data set 'tinny'.*tiny"):
            call("tinny", place.folder, registry_path=place.table)
    for name in ("tinny", "folder/mistyped.svm"):
        with pytest.raises(
            FileNotFoundError, match=f"no file .*{name}, and no data set '{name}'.*tiny"
        ):
            datasets.open_stream(name, registry_path=place.table)
    with pytest.raises(ValueError, match="expected split None, train; got 'test'"):
        datasets.load("tiny", place.folder, "test", place.table)


# -------------------------------------------------- files


def test_a_file_is_brought_once_checked_and_kept(place, server):
    assert [p.read_bytes() for p in place.fetch()] == [CONTENT]
    assert place.fetch() == [place.folder / "tiny" / "tiny.svm"]
    assert server.asked == [place.public]
    assert place.files() == ["tiny/tiny.svm"]


def test_a_file_that_was_damaged_here_is_brought_anew(place, server):
    [path] = place.fetch()
    path.write_bytes(CONTENT[:-1] + b"x")
    place.fetch()
    assert path.read_bytes() == CONTENT
    assert len(server.asked) == 2
    path.write_bytes(b"damaged")
    server.answers.clear()
    with pytest.raises(datasets.NotObtainable):
        place.fetch()
    assert place.files() == []


WRONG = CONTENT[:5000] + b"x" + CONTENT[5001:]
FAILURES = {
    "one byte wrong": (give(WRONG), datasets.CorruptFile, sha256(WRONG)),
    "cut short": (give(CONTENT[:5000], len(CONTENT)), datasets.NotObtainable, "5240 more expected"),
    "cut short, no length": (give(CONTENT[:5000], 0), datasets.CorruptFile, "got 5000 bytes"),
    "too long": (give(CONTENT + b"x"), datasets.CorruptFile, "got more than 10240 bytes"),
    "endless": (endless, datasets.CorruptFile, "got more than 10240 bytes"),
    "stops in the middle": (begin_and_hang(CONTENT), datasets.NotObtainable, "timed out"),
    "empty": (give(b"", 0), datasets.CorruptFile, "got 0 bytes"),
    "missing": (not_found, datasets.NotObtainable, "404"),
    "hangs": (hang, datasets.NotObtainable, "timed out"),
}


@pytest.mark.parametrize("case", FAILURES)
def test_a_failure_says_what_was_expected_and_keeps_nothing(place, server, case):
    server.answers[place.public], kind, said = FAILURES[case]
    begun = time.monotonic()
    with pytest.raises(kind) as error:
        place.fetch(timeout=0.3)
    assert time.monotonic() - begun < 3
    message = str(error.value)
    assert "tiny.svm" in message and said in message
    assert ("run it again" if kind is datasets.CorruptFile else download.MIRROR) in message
    if "got" in message:
        assert f"expected 10240 bytes, {sha256(CONTENT)}; got" in message
    assert place.files() == []
    assert server.sent < 32 * 2**20, "only what the sockets hold"


def test_where_no_size_is_pinned_there_is_a_limit(place, server, monkeypatch, tmp_path):
    assert download.MOST_BYTES == 100 * 2**20
    monkeypatch.setattr(download, "MOST_BYTES", 2**20)
    server.answers[place.public] = endless
    table = write_table(tmp_path, cells(CONTENT, train_checksum=f"git:{'0' * 40}", train_bytes=""))
    said = "tiny.svm.*more than 1048576 bytes, the limit where no size is pinned"
    with pytest.raises(datasets.CorruptFile, match=said):
        datasets.fetch("tiny", place.folder, table)
    assert place.files() == [] and server.sent < 32 * 2**20


def test_nobody_listens(place, monkeypatch):
    monkeypatch.setattr(download, "SOURCE", CLOSED)
    begun = time.monotonic()
    with pytest.raises(datasets.NotObtainable, match="Connection refused"):
        place.fetch()
    assert time.monotonic() - begun < 3
    assert place.files() == []


def test_a_git_checksum_is_what_git_says(tmp_path, monkeypatch):
    known = {b"": "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"}
    known[b"hello\n"] = "ce013625030ba8dba906f756967f9e9ca394464a"
    if git := shutil.which("git"):
        said = subprocess.run([git, "hash-object", "--stdin"], input=CONTENT, capture_output=True)
        known[CONTENT] = said.stdout.decode().strip()
    monkeypatch.setenv(download.MIRROR, str(tmp_path))
    source = tmp_path / "tiny" / "tiny.svm"
    source.parent.mkdir()
    for content, blob in known.items():
        row = cells(content, train_checksum=f"git:{blob}", train_bytes="")
        table = write_table(tmp_path, row)
        source.write_bytes(content)
        [path] = datasets.fetch("tiny", tmp_path / "here", table)
        assert path.read_bytes() == content
        source.write_bytes(content + b"\n")
        path.unlink()
        with pytest.raises(datasets.CorruptFile, match=f"expected git:{blob}; got .* git:"):
            datasets.fetch("tiny", tmp_path / "here", table)
        assert files_in(tmp_path / "here") == []


@pytest.mark.parametrize("as_url", [False, True])
def test_a_mirror_is_asked_first(place, server, monkeypatch, tmp_path, as_url):
    (tmp_path / "mirror" / "tiny").mkdir(parents=True)
    (tmp_path / "mirror" / "tiny" / "tiny.svm").write_bytes(CONTENT)
    server.answers["/mirror/tiny/tiny.svm"] = give(CONTENT)
    mirror = f"{server.url}/mirror/" if as_url else str(tmp_path / "mirror")
    monkeypatch.setenv(download.MIRROR, mirror)
    assert [p.read_bytes() for p in place.fetch()] == [CONTENT]
    assert server.asked == ["/mirror/tiny/tiny.svm"] * as_url


MIRRORS = ["{folder}", "{server}/mirror", CLOSED, "http://127.0.0.1:99999", "http://127.0.0.1:abc"]
MIRRORS += ["http://[::1", "http://a..b"]


@pytest.mark.parametrize("mirror", MIRRORS)
def test_a_mirror_without_the_file_is_said_and_passed_over(
    place, server, monkeypatch, tmp_path, mirror
):
    mirror = mirror.format(folder=tmp_path, server=server.url)
    monkeypatch.setenv(download.MIRROR, mirror)
    said = r"not in the mirror \(OFSLIB_DATA_MIRROR\): .*trying http"
    with pytest.warns(UserWarning, match=said) as told:
        assert [p.read_bytes() for p in place.fetch()] == [CONTENT]
    warning = told.pop(UserWarning)
    assert mirror in str(warning.message) and warning.filename == __file__
    server.answers.clear()
    shutil.rmtree(place.folder)
    with pytest.warns(UserWarning), pytest.raises(datasets.NotObtainable) as error:
        place.fetch()
    assert f"{mirror}/tiny/tiny.svm" in str(error.value) and place.public in str(error.value)


def test_a_wrong_file_in_the_mirror_is_an_error(place, server, monkeypatch, tmp_path):
    (tmp_path / "tiny").mkdir()
    (tmp_path / "tiny" / "tiny.svm").write_bytes(WRONG)
    monkeypatch.setenv(download.MIRROR, str(tmp_path))
    with pytest.raises(datasets.CorruptFile):
        place.fetch()
    assert place.files() == [] and server.asked == []


# -------------------------------------------------- files to be trusted


@pytest.fixture
def address(tmp_path, monkeypatch, server):
    """A data set at an address without checksum: 20,000 rows, packed."""

    class Address:
        content = bz2.compress(b"".join(b"%d 1:%d 3:1\n" % (i % 2, i + 1) for i in range(20_000)))
        folder, table = tmp_path / "resources", tmp_path / "datasets.csv"
        lock = tmp_path / "datasets.lock" / "tiny.json"

        def say(self, **changed):
            given = OWN | {"train": f"{server.url}/a/rows.bz2", "n_features": "3"}
            write_table(tmp_path, cells(**given | changed))

        def fetch(self, timeout=2):
            return datasets.fetch("tiny", self.folder, self.table, timeout=timeout)

    here = Address()
    here.say()
    server.answers["/a/rows.bz2"] = give(here.content)
    return here


def test_what_came_first_is_counted_recorded_and_enforced(address, server):
    published = {"n_train": "20000", "train_nonzeros": "40000", "train_first": "0 1:1 3:1"}
    address.say(**published, train_labels="0:10000 1:10000")
    assert download.verify("tiny", address.folder, address.table) == {
        address.folder / "tiny/rows.bz2": "missing"
    }
    [path] = address.fetch()
    found = json.loads(address.lock.read_text())
    digest = sha256(address.content)
    assert found["files"]["tiny/rows.bz2"]["checksum"] == digest
    assert found["train"] == {
        "rows": 20_000, "columns": 3, "nonzeros": 40_000, "first": "0 1:1 3:1",
        "labels": {"0": 10_000, "1": 10_000},
    }  # fmt: skip
    assert download.pins("tiny", address.folder, address.table)[path].startswith(digest)
    path.unlink()
    server.answers["/a/rows.bz2"] = give(bz2.compress(b"1 1:1\n"))
    with pytest.raises(datasets.CorruptFile, match=f"expected .*{digest}; got"):
        address.fetch()
    assert files_in(address.folder) == []
    path.write_bytes(address.content[:-1])
    assert download.verify("tiny", address.folder, address.table) == {path: "damaged"}
    address.lock.write_text("{}")
    with pytest.raises(datasets.CorruptFile, match="no lock of a data set"):
        address.fetch()


@pytest.mark.parametrize(
    "published, said",
    [
        ({"n_train": "19999"}, "rows: expected 19999, got 20000"),
        ({"train_nonzeros": "7"}, "nonzeros: expected 7, got 40000"),
        ({"train_labels": "0:1 1:19999"}, "labels: expected"),
        ({"train_first": "0 1:2"}, "first: expected 0 1:2, got 0 1:1 3:1"),
        ({"n_features": "2"}, "index 3 is not a whole number from 1 to 2"),
    ],
)
def test_what_is_not_what_is_published_is_refused(address, published, said):
    address.say(**published)
    with pytest.raises((datasets.CorruptFile, ValueError), match=said):
        address.fetch()
    assert not address.lock.exists()


def test_a_function_of_ones_own_reads_files_too(tmp_path, monkeypatch):
    (tmp_path / "reader_of_mine.py").write_text(
        "import numpy as np\n"
        "def whole(paths):\n    rows = np.loadtxt(paths[0])\n    return rows[:, 1:], rows[:, 0]\n"
        "def blocks(paths):\n    X, y = whole(paths)\n"
        "    yield X[:2], y[:2]\n    yield X[2:], y[2:]\n"
    )
    (tmp_path / "rows.txt").write_text("1 2 3\n-1 0 5\n1 1 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    for function in ("whole", "blocks"):
        row = OWN | {"train": str(tmp_path / "rows.txt"), "n_features": ""}
        table = write_table(tmp_path, cells(**row, reader=f"reader_of_mine:{function}"))
        X, y = whole(datasets.open_stream("tiny", 2, registry_path=table))
        np.testing.assert_array_equal(X.toarray(), [[2, 3], [0, 5], [1, 1]])
        assert y.tolist() == [1, -1, 1]


# -------------------------------------------------- readers, on files made here


def mirror_of(tmp_path, monkeypatch, reader, X, y, split=None, **files):
    """Make a mirror and a registry of these files; returns the table's path."""
    folder = tmp_path / "mirror" / "tiny"
    folder.mkdir(parents=True)
    for name, content in files.items():
        (folder / name).write_bytes(content)
    row = cells(
        reader=reader,
        train=" ".join(files),
        train_checksum=" ".join(map(sha256, files.values())),
        train_bytes=" ".join(str(len(c)) for c in files.values()),
        n_train=str(len(y)),
        n_features=str(X.shape[1]),
        label="-1" if reader in LABELLED else "",
    )
    monkeypatch.setenv(download.MIRROR, str(tmp_path / "mirror"))
    return write_table(tmp_path, row)


def mat(**arrays):
    file = io.BytesIO()
    scipy.io.savemat(file, arrays, do_compression=True)
    return file.getvalue()


def made(reader, X, y):
    labelled = np.column_stack([X, y])
    frame = pd.DataFrame(labelled, columns=[f"c{j}" for j in range(labelled.shape[1])])
    text = "".join(f"{a} {' '.join(map(str, row))} \n" for a, row in zip(y, X, strict=True))
    images = X.reshape(len(X), 2, -1).astype(np.uint8)
    idx = struct.pack(">4B3I", 0, 0, 8, 3, *images.shape) + images.tobytes()
    labels = struct.pack(">4BI", 0, 0, 8, 1, len(y)) + (y + 1).astype(np.uint8).tobytes()
    return {
        "ecml_mat": lambda: {"a.mat": mat(data=labelled.astype(np.int16))},
        "ecml_mat_sparse": lambda: {"a.mat": mat(testData=sp.csc_matrix(labelled))},
        "skfeature_mat": lambda: {"a.mat": mat(X=X, Y=y[:, None])},
        "ar_mat": lambda: {"a.mat": mat(DAT=X.T.astype(np.uint8), labels=y[None])},
        "esl_text": lambda: {"a.gz": gzip.compress(text.encode())},
        "idx": lambda: {"a.gz": gzip.compress(idx), "b.gz": gzip.compress(labels)},
        "libsvm": lambda: {"a.svm": libsvm_text(X, y)},
        "vw": lambda: {"a.dat": vw_text(X, y)},
        "csv": lambda: {"a.gz": gzip.compress(frame.to_csv(index=False).encode())},
        "tsv": lambda: {"a.txt": frame.to_csv(index=False, sep="\t").encode()},
        "parquet": lambda: {"a": frame.to_parquet()},
        "arrow": lambda: {"a": written(frame.to_feather)},
        "npy": lambda: {"a": written(lambda file: np.save(file, labelled))},
        "npz": lambda: {"a": written(lambda file: np.savez(file, X=X, y=y))},
    }[reader]()


def written(write):
    file = io.BytesIO()
    write(file)
    return file.getvalue()


def libsvm_text(X, y):
    file = io.BytesIO()
    dump_svmlight_file(X, y, file, zero_based=False)
    return file.getvalue()


def vw_text(X, y, name="f"):
    lines = libsvm_text(X, y).decode().splitlines()
    return "".join(line.replace(" ", f" |{name} ", 1) + "\n" for line in lines).encode()


@pytest.mark.parametrize("reader", READERS)
def test_each_reader_gives_back_what_was_written(tmp_path, monkeypatch, reader):
    rng = np.random.default_rng(0)
    X = rng.integers(0, 3, (600, 30)) * (rng.random((600, 30)) < 0.3)
    X[:, -1] = 1
    y = rng.choice([-1, 1], 600)
    table = mirror_of(tmp_path, monkeypatch, reader, X, y, **made(reader, X, y))
    data = datasets.load("tiny", tmp_path / "here", registry_path=table)
    assert data.name == "tiny" and data.X_test is None and data.y_test is None
    assert data.y_train.dtype == np.int64 and data.X_train.dtype == np.float64
    np.testing.assert_array_equal(data.y_train, y + (reader == "idx"))
    if reader in ("ecml_mat_sparse", "libsvm", "vw"):
        assert data.X_train.format == "csr" and data.X_train.has_canonical_format
        assert data.X_train.indices.dtype == data.X_train.indptr.dtype == np.int32
        np.testing.assert_array_equal(data.X_train.toarray(), X)
    else:
        assert data.X_train.flags.c_contiguous and data.X_train.flags.writeable
        np.testing.assert_array_equal(data.X_train, X)
    blocks = list(datasets.open_stream("tiny", 250, folder=tmp_path / "here", registry_path=table))
    assert [len(b) for _, b in blocks] == [250, 250, 100]
    np.testing.assert_array_equal(sp.vstack([b for b, _ in blocks]).toarray(), X)


def test_sparse_data_that_are_stored_dense(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    X = (rng.random((700, 40)) < 0.05).astype(np.int16)
    y = rng.choice([-1, 1], 700)
    content = mat(data=np.asfortranarray(np.column_stack([X, y]).astype(np.int16)))
    table = mirror_of(tmp_path, monkeypatch, "ecml_mat_sparse", X, y, **{"a.mat": content})
    data = datasets.load("tiny", tmp_path / "here", registry_path=table)
    assert sp.issparse(data.X_train) and data.X_train.nnz == X.sum()
    np.testing.assert_array_equal(data.X_train.toarray(), X)


def test_a_file_of_another_shape_than_registered(tmp_path, monkeypatch):
    X, y = np.ones((3, 4)), np.ones(3)
    table = mirror_of(tmp_path, monkeypatch, "skfeature_mat", X[:, :2], y, a=mat(X=X, Y=y))
    with pytest.raises(ValueError, match="expected 3 x 2 as in the registry, got 3 x 4"):
        datasets.load("tiny", tmp_path / "here", registry_path=table)


# -------------------------------------------------- readers, on the real files

needs_files = pytest.mark.skipif(REAL is None, reason=f"{download.MIRROR} names no mirror")
DIGITS = [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949]
ZIPS = [1194, 1005, 731, 658, 652, 556, 664, 645, 542, 644]
FACTS = {  # sparse, shapes, numbers of the classes in train, most nonzeros in a training row
    "ecml18_arcene": (False, (100, 10000), (100, 10000), [56, 44], 7125),
    "ecml18_dexter": (True, (300, 19999), (300, 19999), [150, 150], 329),
    "ecml18_basehock": (True, (1197, 26214), (796, 26214), [600, 597], 1698),
    "ecml18_pcmac": (True, (1168, 26214), (777, 26214), [578, 590], 1179),
    "ecml18_farm_ads": (True, (3313, 54877), (830, 54877), [1542, 1771], 2300),
    "skfeature_coil20": (False, (1440, 1024), None, [72] * 20, None),
    "skfeature_orl": (False, (400, 1024), None, [10] * 40, None),
    "usps_esl": (False, (7291, 256), (2007, 256), ZIPS, None),
    "mnist_idx": (False, (60000, 784), (10000, 784), DIGITS, None),
    "rcv1_vw_sample": (True, (1000, 47236), (500, 47236), [541, 459], None),
}


@pytest.fixture(scope="module")
def resources(tmp_path_factory):
    return tmp_path_factory.mktemp("resources")


@needs_files
@pytest.mark.parametrize("name", FACTS)
def test_the_real_sets_are_those_of_the_papers(name, resources, monkeypatch):
    monkeypatch.setenv(download.MIRROR, REAL)
    sparse, train, test, classes, most = FACTS[name]
    data = datasets.load(name, resources)
    assert data.X_train.shape == train and (data.X_test is None) == (test is None)
    assert test is None or data.X_test.shape == test
    assert sp.issparse(data.X_train) == sparse
    assert np.unique(data.y_train, return_counts=True)[1].tolist() == classes
    if most is not None:
        assert set(data.y_train) == set(data.y_test) == {-1, 1}
        assert (data.X_train != 0).sum(axis=1).max() == most
    if name == "rcv1_vw_sample":
        np.testing.assert_allclose(sp.linalg.norm(data.X_train, axis=1), 1, atol=1e-6)


@needs_files
def test_half_of_gisette_is_had_without_the_other(resources, monkeypatch):
    monkeypatch.setenv(download.MIRROR, REAL)
    if (Path(REAL) / "ecml18_gisette" / "gisette.mat").exists():
        pytest.skip("this mirror has both halves")
    data = datasets.load("ecml18_gisette", resources, split="test")
    assert data.X_train is None and data.X_test.shape == (1000, 5000)
    assert np.unique(data.y_test, return_counts=True)[1].tolist() == [500, 500]
    with pytest.warns(UserWarning), pytest.raises(datasets.NotObtainable, match=r"gisette\.mat"):
        datasets.load("ecml18_gisette", resources)


# -------------------------------------------------- streams


@pytest.fixture
def small_pieces(monkeypatch):
    """Let files of a few kilobytes be many pieces."""
    monkeypatch.setattr(text_module, "_CHUNK", 3000)
    monkeypatch.setattr(cache_module, "_PIECE", 3000)


def random_rows(n=403, p=900, density=0.02, seed=0):
    rng = np.random.default_rng(seed)
    X = sp.random_array((n, p), density=density, rng=rng, format="csr")
    X = sp.hstack([X[:, :-1], np.ones((n, 1))], format="csr")  # a known largest index
    X.data = rng.standard_normal(X.nnz) * 10.0 ** rng.integers(-12, 12, X.nnz)
    return X, rng.choice([-1.0, 1.0, 2.5], n)


def exact_text(X, y):
    """LIBSVM lines with the shortest digits that give back the very same doubles."""
    lines = []
    for i in range(X.shape[0]):
        row = X[[i]]
        words = (f"{j + 1}:{v!r}" for j, v in zip(row.indices, row.data.tolist(), strict=True))
        lines.append(f"{y[i]:g} {' '.join(words)}\n")
    return "".join(lines).encode()


def whole(stream):
    X, y = zip(*stream, strict=True)
    return sp.vstack(X, format="csr"), np.concatenate(y)


def assert_same(got, expected):
    np.testing.assert_array_equal(got[1], expected[1])
    assert got[0].shape == expected[0].shape
    for part in ("indptr", "indices", "data"):
        np.testing.assert_array_equal(getattr(got[0], part), getattr(expected[0], part))


@pytest.fixture
def rows(tmp_path):
    X, y = random_rows()
    path = tmp_path / "rows.svm"
    path.write_bytes(exact_text(X, y))
    return path, X, y


def end_of_bases(array):
    """What the memory of an array belongs to."""
    while isinstance(array, np.ndarray) and array.base is not None:
        array = array.base
    return array.obj if isinstance(array, memoryview) else array


@pytest.mark.parametrize("cache", [True, False])
@pytest.mark.parametrize("block_rows", [1, 7, 100, 403, 10_000])
def test_blocks_of_any_size_are_the_file(rows, small_pieces, block_rows, cache):
    path, X, y = rows
    stream = datasets.open_stream(path, block_rows, cache=cache)
    for _ in range(2):
        blocks = list(stream)
        assert [len(b) for _, b in blocks[:-1]] == [block_rows] * (len(blocks) - 1)
        for block, labels in blocks:
            assert block.format == "csr" and block.dtype == labels.dtype == np.float64
            assert block.indices.dtype == block.indptr.dtype == np.int32
            assert block.shape == (len(labels), X.shape[1])
            assert block.data.flags.writeable and labels.flags.writeable
            for array in (block.data, block.indices, labels):  # nothing larger is kept in memory
                assert end_of_bases(array).nbytes == array.nbytes
        assert_same(whole(blocks), (X, y))
    assert (stream.n_rows, stream.n_features) == X.shape


def test_the_parsed_doubles_are_those_of_python_and_of_scikit_learn(rows):
    path, X, y = rows
    theirs = load_svmlight_file(str(path), zero_based=False)
    got = whole(datasets.open_stream(path, cache=False))
    assert_same(got, (X, y))
    assert_same(got, (sp.csr_array(theirs[0]), theirs[1]))


@pytest.mark.parametrize("end, pack", [(".gz", gzip), (".bz2", bz2), (".xz", lzma)])
@pytest.mark.parametrize("vw", [False, True])
def test_compressed_and_vowpal_wabbit_texts(tmp_path, small_pieces, end, pack, vw):
    X, y = random_rows()
    text = exact_text(X, y)
    if vw:
        lines = text.splitlines(keepends=True)
        text = b"".join(line.replace(b" ", b" |words ", 1) for line in lines)
    path = tmp_path / f"rows.dat{end}"
    path.write_bytes(pack.compress(text))
    assert_same(whole(datasets.open_stream(path, 50)), (X, y))
    path.write_bytes(path.read_bytes()[:-200])
    with pytest.raises(datasets.CorruptFile, match=rf"rows\.dat\{end}: expected a whole file"):
        list(datasets.open_stream(path, 50))
    assert not list(tmp_path.glob(".*"))


@pytest.mark.parametrize(
    "text",
    [
        b"1 1:2 3:4\n-1 2:5\n",
        b"+1 1:2 3:4\r\n-1.0 2:5\r\n",
        b"\n1 1:2 3:4 # first\n\n# nothing\n-1 2:5e0",
        b"1  3:4\t1:2 \n-1 2:.5e1\n\n",
        b"1 | 1:2 3:4\n-1 |f 2:5\n",
        b"1 |f 1:2 3:4\n\n-1 |f  2:5 ",
    ],
)
@pytest.mark.parametrize("cache", [True, False])
def test_ways_to_write_the_same_rows(tmp_path, text, cache):
    path = tmp_path / "a.txt"
    path.write_bytes(text)
    X, y = whole(datasets.open_stream(path, cache=cache))
    np.testing.assert_array_equal(X.toarray(), [[2, 0, 4], [0, 5, 0]])
    np.testing.assert_array_equal(y, [1, -1])


def test_rows_without_features_and_files_without_rows(tmp_path):
    path = tmp_path / "a.svm"
    path.write_bytes(b"1\n-1 2:1\n1\n")
    X, _ = whole(datasets.open_stream(path, 2))
    np.testing.assert_array_equal(X.toarray(), [[0, 0], [0, 1], [0, 0]])
    path.write_bytes(b"# nothing\n\n")
    stream = datasets.open_stream(path)
    assert list(stream) == [] and stream.n_rows == 0


WRONG_LINES = {
    b"1 3:4 5": "'5' is not `index:value`",
    b"1 3:4:5": "'3:4:5' is not `index:value`",
    b"1 3: 4:5": "'3:' is not `index:value`",
    b"1 a:4": "'a:4' is not `index:value`",
    b"1 3:4x": "'3:4x' is not `index:value`",
    b"1 3:nan": "'3:nan' is not `index:value`",
    b"1 3.5:1": "'3.5:1' is not `index:value`",
    b"1 -3:1": "'-3:1' is not `index:value`",
    b"spam 3:4": "the label 'spam' is not a number",
    b"3:4": "the row has no label",
    b"1 0:4": "feature index 0 is not a whole number from 1",
    b"1 9999999999:4": "feature index 9999999999 is not a whole number",
    b"1 3:4 3:5": "occurs twice",
    b"1 3:1e999": "not a finite number",
    b"\0\0\0": "is not a number",
}


@pytest.mark.parametrize("line", WRONG_LINES)
@pytest.mark.parametrize("cache", [True, False])
def test_a_wrong_line_is_named(rows, small_pieces, line, cache):
    path, _, _ = rows
    lines = path.read_bytes().splitlines()
    lines[300:300] = [b"", line]
    path.write_bytes(b"\n".join(lines))
    with pytest.raises(ValueError) as error:
        list(datasets.open_stream(path, cache=cache))
    assert f"{path}, line 302: " in str(error.value) and WRONG_LINES[line] in str(error.value)
    assert files_in(path.parent) == ["rows.svm"]


@pytest.mark.parametrize("line", [b"1 2.0 |f 3:4", b"1 |f 3:4 |g 5:6", b"1 |f:2 3:4", b"1 |f word"])
def test_vowpal_wabbit_lines_that_are_more_than_rows(tmp_path, line):
    path = tmp_path / "a.vw"
    path.write_bytes(b"1 |f 1:2\n" + line + b"\n")
    with pytest.raises(ValueError, match=r"a\.vw, line 2: .* is (not|a)"):
        list(datasets.open_stream(path))


def test_indices_from_zero_are_asked_for(tmp_path):
    path = tmp_path / "a.svm"
    path.write_bytes(b"1 0:7 2:8\n")
    with pytest.raises(ValueError, match="see zero_based"):
        list(datasets.open_stream(path))
    X, _ = whole(datasets.open_stream(path, zero_based=True))
    np.testing.assert_array_equal(X.toarray(), [[7, 0, 8]])


@pytest.mark.parametrize("cache", [True, False])
def test_the_width_that_is_given(rows, small_pieces, cache):
    path, _, _ = rows
    stream = datasets.open_stream(path, 50, cache, n_features=1000)
    assert {block.shape[1] for block, _ in stream} == {1000} and stream.n_features == 1000
    with pytest.raises(ValueError, match="n_features"):
        list(datasets.open_stream(path, 50, cache, n_features=899))


def test_single_precision_and_impossible_options(rows):
    path, X, _ = rows
    got, _ = whole(datasets.open_stream(path, dtype=np.float32))
    assert got.dtype == np.float32
    np.testing.assert_array_equal(got.data, X.data.astype(np.float32))
    for wrong in ({"dtype": int}, {"block_rows": 0}, {"start_row": -1}):
        with pytest.raises(ValueError, match=f"{next(iter(wrong))}.*got"):
            datasets.open_stream(path, **wrong)


@pytest.mark.parametrize("cache", [True, False])
@pytest.mark.parametrize("start", [0, 1, 100, 250, 402, 403, 1000])
def test_going_on_where_one_stopped(rows, small_pieces, cache, start):
    path, X, y = rows
    for stream in (
        datasets.open_stream(path, 60, cache, start_row=start),
        datasets.open_stream(path, 60, cache).skip(start),
        datasets.open_stream(path, 60, cache).skip(start // 2).skip(start - start // 2),
    ):
        assert stream.start_row == start
        if start >= len(y):
            assert list(stream) == []
        else:
            assert_same(whole(stream), (X[start:], y[start:]))


# -------------------------------------------------- the cache


def cache_of(path):
    return path.with_name(path.name + ".ofscache")


@pytest.fixture
def parses(monkeypatch):
    """How often text was parsed."""
    calls = []
    parse = text_module.parse_rows
    monkeypatch.setattr(text_module, "parse_rows", lambda *a: calls.append(1) or parse(*a))
    return calls


def test_text_is_parsed_once(rows, small_pieces, parses, tmp_path):
    path, X, y = rows
    for _ in range(3):
        assert_same(whole(datasets.open_stream(path)), (X, y))
    pieces = len(parses)
    assert pieces > 2
    list(datasets.open_stream(path, cache=tmp_path / "elsewhere"))
    assert len(parses) == 2 * pieces
    elsewhere, *beside = files_in(tmp_path)
    assert re.fullmatch(r"elsewhere/rows\.svm\.[0-9a-f]{12}\.ofscache", elsewhere)
    assert beside == ["rows.svm", "rows.svm.ofscache"]


def test_the_cache_of_another_text_or_of_other_options_is_not_used(rows, small_pieces, parses):
    path, X, y = rows
    list(datasets.open_stream(path))
    before = path.stat()
    path.write_bytes(exact_text(X, -y).replace(b"--", b"-"))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns + 1))
    assert_same(whole(datasets.open_stream(path)), (X, -y))
    count = len(parses)
    list(datasets.open_stream(path, dtype=np.float32))
    assert len(parses) > count
    assert_same(whole(datasets.open_stream(path)), (X, -y))


def flip(content, at):
    return content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :]


DAMAGES = {
    "first byte": lambda c: flip(c, 0),
    "in the middle": lambda c: flip(c, len(c) // 2),
    "in the list of pieces": lambda c: flip(c, len(c) - 30),
    "in the length": lambda c: flip(c, len(c) - 8),
    "last byte": lambda c: flip(c, len(c) - 1),
    "cut short": lambda c: c[:-1000],
    "begins later": lambda c: c[1000:],
    "longer": lambda c: c + b"\0" * 64,
    "empty": lambda c: b"",
    "foreign": lambda c: b"SQLite format 3\0" * 100,
}


def test_a_text_without_rows_and_one_of_too_many_entries_are_named(tmp_path):
    (tmp_path / "a.svm").write_bytes(b"# none\n")
    table = write_table(tmp_path, cells(**OWN | {"train": str(tmp_path / "a.svm")}))
    with pytest.raises(ValueError, match=r"a\.svm: expected rows, got a text without any"):
        datasets.load("tiny", registry_path=table)
    ends, none = np.array([0, 2**31 - 1], np.int32), np.empty(0)
    with pytest.raises(ValueError, match=r"a block has 4294967294 entries.*read fewer rows"):
        pieces.joined([pieces.Piece(none, none, ends, np.zeros(1))] * 2)


def replace_cache(path, content):
    """As all that writes it does: by another file, so that number or times differ."""
    other = path.with_name("other")
    other.write_bytes(content)
    os.replace(other, cache_of(path))


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_cache_is_made_anew(rows, small_pieces, damage, parses):
    path, X, y = rows
    stream = datasets.open_stream(path, 50)
    list(stream)
    right = cache_of(path).read_bytes()
    replace_cache(path, DAMAGES[damage](right))
    pieces = len(parses)
    assert_same(whole(stream), (X, y))
    assert len(parses) == 2 * pieces
    assert cache_of(path).read_bytes() == right
    replace_cache(path, DAMAGES[damage](right))
    assert_same(whole(stream.skip(111)), (X[111:], y[111:]))


def test_a_disk_that_never_gives_back_what_was_written(rows, small_pieces, monkeypatch):
    zeros = staticmethod(lambda file, at, length: np.zeros(length, np.uint8))
    monkeypatch.setattr(cache_module.CachedRows, "_read", zeros)
    with pytest.raises(datasets.CorruptFile, match="damaged as soon as written"):
        list(datasets.open_stream(rows[0]))


def test_a_process_killed_while_it_writes_leaves_no_cache_to_trust(rows, small_pieces):
    path, X, y = rows
    program = (
        "import sys, time\n"
        "from ofslib import datasets\n"
        "from ofslib.datasets import text\n"
        "text._CHUNK = 3000\n"
        "parse, calls = text.parse_rows, []\n"
        "def slow(*a):\n"
        "    calls.append(1)\n"
        "    if len(calls) == 3:\n"
        "        sys.stdout.write('writing\\n'); sys.stdout.flush(); time.sleep(60)\n"
        "    return parse(*a)\n"
        "text.parse_rows = slow\n"
        "list(datasets.open_stream(sys.argv[1]))\n"
    )
    root = str(Path(datasets.__file__).parents[1])
    child = subprocess.Popen(
        [sys.executable, "-c", program, str(path)],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": root},
    )
    with child:
        assert child.stdout.readline() == b"writing\n"
        child.send_signal(signal.SIGKILL)
    assert any(name.endswith(".part") for name in files_in(path.parent))
    assert not cache_of(path).exists()
    assert_same(whole(datasets.open_stream(path)), (X, y))


def test_many_readers_at_once_make_one_right_cache(rows, small_pieces):
    path, X, y = rows
    results = []
    threads = [
        threading.Thread(target=lambda: results.append(whole(datasets.open_stream(path, 50))))
        for _ in range(6)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 6
    for result in results:
        assert_same(result, (X, y))
    assert files_in(path.parent) == ["rows.svm", "rows.svm.ofscache"]


@pytest.mark.parametrize("cache", [True, False])
def test_memory_does_not_grow_with_the_file(tmp_path, monkeypatch, cache):
    monkeypatch.setattr(text_module, "_CHUNK", 100_000)
    monkeypatch.setattr(cache_module, "_PIECE", 100_000)
    X, y = random_rows(n=400, p=5000)
    text, peaks = exact_text(X, y), []
    for times in (2, 10):
        path = tmp_path / f"{times}.svm"
        path.write_bytes(text * times)
        tracemalloc.start()
        for _, labels in datasets.open_stream(path, 100, cache):
            assert len(labels) == 100
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.15 * peaks[0]
    assert peaks[1] < 0.5 * path.stat().st_size
