"""Data sets: what is promised of the registry, of downloads and of readers."""

import bz2
import contextlib
import gzip
import hashlib
import io
import json
import re
import shutil
import struct
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import scipy.io
import scipy.sparse as sp
from sklearn.datasets import dump_svmlight_file

from ofslib import datasets
from ofslib.datasets import download, readers
from ofslib.datasets.registry import _PATH, BY_BLOCKS, LABELLED, READERS, read_rows, splits
from ofslib.reproduction import records

CLOSED = "http://127.0.0.1:9"  # the discard port: nobody listens


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
    return {
        "name": "tiny",
        "reader": "libsvm",
        "repository": "owner/repository",
        "commit": "0" * 40,
        "train": "data/tiny.svm",
        "train_checksum": sha256(content),
        "train_bytes": str(len(content)),
        "n_train": "1",
        "n_features": "1",
        "task": "classification",
    } | changed


def write_table(folder, *rows):
    path = folder / "datasets.csv"
    pd.DataFrame(rows).to_csv(path, index=False)
    return path


def files_in(folder):
    return sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file())


class Handler(BaseHTTPRequestHandler):
    """Answers as `answers[path]` of its server says; notes what it was asked for."""

    def do_GET(self):
        self.server.asked.append(self.path)
        with contextlib.suppress(ConnectionError):
            self.server.answers.get(self.path, not_found)(self)

    def log_message(self, *args):
        pass


@pytest.fixture
def server():
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.answers, server.asked, server.end, server.sent = {}, [], threading.Event(), 0
        server.url = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server
        server.end.set()
        server.shutdown()
        thread.join()


def not_found(handler):
    handler.send_error(404)


def hang(handler):
    handler.server.end.wait(20)


def give(content, length=None, status=200):
    """Send `content`, saying that it is `length` bytes (0: say nothing)."""

    def answer(handler):
        handler.send_response(status)
        if length != 0:
            handler.send_header("Content-Length", str(length or len(content)))
        handler.end_headers()
        handler.wfile.write(content)

    return answer


def endless(handler):
    """Send 200 MiB, without saying how much there is, until nobody listens."""
    give(CONTENT, 0)(handler)
    for _ in range(200):
        handler.wfile.write(bytes(2**20))
        handler.server.sent += 2**20


def begin_and_hang(handler):
    give(CONTENT[:1000], len(CONTENT))(handler)
    hang(handler)


CONTENT = bytes(range(256)) * 40
PUBLIC = f"/owner/repository/{'0' * 40}/data/tiny.svm"


@pytest.fixture
def place(tmp_path, monkeypatch, server):
    """A registry of one file whose public source is the local server."""
    table, folder = write_table(tmp_path, cells(CONTENT)), tmp_path / "resources"
    monkeypatch.setattr(download, "SOURCE", server.url)
    server.answers[PUBLIC] = give(CONTENT)

    def fetch(timeout=3):
        return datasets.fetch("tiny", folder, table, timeout=timeout)

    return SimpleNamespace(table=table, folder=folder, fetch=fetch)


# -------------------------------------------------- the registry

OWN = {"repository": "", "commit": "", "train_checksum": "", "train_bytes": "", "n_train": ""}


def test_the_registry_of_the_project_is_right():
    rows = read_rows()
    for name, row in rows.items():
        remotes = [r for part in splits(row) for r in download.remote_files(row, part)]
        assert len({r.name for r in remotes}) == len(remotes), name
        assert all(f"/{row['commit']}/" in r.url for r in remotes)
        assert row["repository"] or all(r.url.startswith("https://") for r in remotes)
        assert row["title"] and row["licence"] and row["citation"], name
    assert set(READERS) == set(readers.READERS) | BY_BLOCKS


@pytest.mark.parametrize(
    "changed, expected",
    [
        ({"name": "Big Name"}, "column name"),
        ({"name": "ecml18_arcene"}, "column name: another data set"),
        ({"reader": "os:system"}, "column reader"),
        ({"reader": "csv"}, "column label"),
        ({"commit": "master"}, "column commit"),
        ({"train": "/etc/passwd"}, "column train"),
        ({"train_checksum": "md5:" + "0" * 32}, "column train_checksum"),
        ({"train_bytes": ""}, "expected 1, got 0"),
        ({"n_features": ""}, "column n_features"),
        ({"task": "classificaton"}, "column task"),
        (OWN | {"train": "https://host"}, "column train: expected a path, or an address"),
        (OWN | {"train": "my rows.csv"}, "column train: expected one file for libsvm; got 2"),
        (OWN | {"train": "a/x b/x", "reader": "idx"}, "column train: expected files of different"),
    ],
)
def test_a_wrong_cell_is_named(tmp_path, changed, expected):
    table = write_table(tmp_path, cells(name="first"), cells(**changed))
    with pytest.raises(ValueError, match=f"row 2 .*{re.escape(expected)}"):
        datasets.registry(table)


def test_a_file_of_ones_own_needs_few_columns_and_is_read_where_it_lies(tmp_path):
    path, table = tmp_path / "mine.csv", tmp_path / "datasets.csv"
    path.write_text("price,size,sold\n1.5,2,0\n0,7,1\n")
    table.write_text(f"name,reader,label,train,task\nmine,csv,sold,{path},classification\n")
    data = datasets.load("mine", tmp_path / "here", registry_path=table)
    np.testing.assert_array_equal(data.X_train, [[1.5, 2], [0, 7]])
    assert data.y_train.tolist() == [0, 1] and data.y_train.dtype == np.int64
    [(X, _)] = datasets.open_stream("mine", registry_path=table, cache=False)
    np.testing.assert_array_equal(X.toarray(), data.X_train)
    assert list(X.feature_names) == ["price", "size"] and not (tmp_path / "here").exists()
    path.unlink()
    with pytest.raises(datasets.NotObtainable, match=f"there is no file {path}"):
        datasets.load("mine", registry_path=table)
    table.write_text("name,reader,train\nmine,libsvm,x\n")
    with pytest.raises(ValueError, match=r"expected columns .*task missing"):
        datasets.registry(table)


def test_a_file_of_a_data_set_stays_in_its_folder(tmp_path):
    """Whatever path the table names."""
    row = next(iter(read_rows().values())) | cells(train="data/../../rows.svm")
    (remote,) = download.remote_files(row, "train")
    assert remote.path(tmp_path) == tmp_path / "tiny" / "rows.svm"
    wrong = ["/etc/passwd", "../x", "a b|c", "a\\b", ".hidden", ""]
    assert [name for name in wrong if re.fullmatch(_PATH, name)] == []


# -------------------------------------------------- downloads


def test_a_file_is_brought_once_checked_and_kept_and_brought_anew_if_damaged(place, server):
    assert [p.read_bytes() for p in place.fetch()] == [CONTENT]
    [path] = place.fetch()
    assert path == place.folder / "tiny" / "tiny.svm" and server.asked == [PUBLIC]
    path.write_bytes(CONTENT[:-1] + b"x")
    place.fetch()
    assert path.read_bytes() == CONTENT and len(server.asked) == 2
    path.write_bytes(b"damaged")
    server.answers.clear()
    with pytest.raises(datasets.NotObtainable):
        place.fetch()
    assert files_in(place.folder) == []


WRONG = CONTENT[:5000] + b"x" + CONTENT[5001:]
FAILURES = {
    "one byte wrong": (give(WRONG), datasets.CorruptFile, sha256(WRONG)),
    "cut short": (give(CONTENT[:5000], len(CONTENT)), datasets.NotObtainable, "5240 more expected"),
    "cut short, no length": (give(CONTENT[:5000], 0), datasets.CorruptFile, "got 5000 bytes"),
    "too long": (give(CONTENT + b"x"), datasets.CorruptFile, "got more than 10240 bytes"),
    "endless": (endless, datasets.CorruptFile, "got more than 10240 bytes"),
    "stops in the middle": (begin_and_hang, datasets.NotObtainable, "timed out"),
    "missing": (not_found, datasets.NotObtainable, "404"),
    "hangs": (hang, datasets.NotObtainable, "timed out"),
}


@pytest.mark.parametrize("case", FAILURES)
def test_a_failure_says_what_was_expected_and_keeps_nothing(place, server, case):
    server.answers[PUBLIC], kind, said = FAILURES[case]
    begun = time.monotonic()
    with pytest.raises(kind) as error:
        place.fetch(timeout=0.3 if said == "timed out" else 20)
    assert time.monotonic() - begun < 10
    message = str(error.value)
    assert "tiny.svm" in message and said in message
    if "got" in message:
        assert f"expected 10240 bytes, {sha256(CONTENT)}; got" in message
    assert files_in(place.folder) == []
    assert server.sent < 32 * 2**20, "only what the sockets hold"


def test_where_no_size_is_pinned_there_is_a_limit(place, server, monkeypatch, tmp_path):
    monkeypatch.setattr(download, "MOST_BYTES", 2**20)
    server.answers[PUBLIC] = endless
    table = write_table(tmp_path, cells(CONTENT, train_checksum=f"git:{'0' * 40}", train_bytes=""))
    with pytest.raises(datasets.CorruptFile, match=r"tiny\.svm.*more than 1048576 bytes"):
        datasets.fetch("tiny", place.folder, table)
    assert files_in(place.folder) == [] and server.sent < 32 * 2**20
    monkeypatch.setattr(download, "SOURCE", CLOSED)
    with pytest.raises(datasets.NotObtainable, match=r"\(Connection refused\)"):
        place.fetch()


@pytest.mark.parametrize("as_url", [False, True])
def test_a_mirror_is_asked_first(place, server, monkeypatch, tmp_path, as_url):
    file = tmp_path / "mirror" / "tiny" / "tiny.svm"
    file.parent.mkdir(parents=True)
    file.write_bytes(CONTENT)
    server.answers["/mirror/tiny/tiny.svm"] = give(CONTENT)
    mirror = f"{server.url}/mirror/" if as_url else str(tmp_path / "mirror")
    monkeypatch.setenv(download.MIRROR, mirror)
    assert [p.read_bytes() for p in place.fetch()] == [CONTENT]
    assert server.asked == ["/mirror/tiny/tiny.svm"] * as_url
    shutil.rmtree(place.folder)
    file.write_bytes(WRONG)
    server.answers["/mirror/tiny/tiny.svm"] = give(WRONG)
    with pytest.raises(datasets.CorruptFile):
        place.fetch()
    assert files_in(place.folder) == [] and PUBLIC not in server.asked


@pytest.mark.parametrize("mirror", ["{folder}", "{server}/mirror", CLOSED, "http://[::1"])
def test_a_mirror_without_the_file_is_said_and_passed_over(
    place, server, monkeypatch, tmp_path, mirror
):
    mirror = mirror.format(folder=tmp_path, server=server.url)
    monkeypatch.setenv(download.MIRROR, mirror)
    with pytest.warns(UserWarning, match=r"not in the mirror \(OFSLIB_DATA_MIRROR\)") as told:
        assert [p.read_bytes() for p in place.fetch()] == [CONTENT]
    warning = told.pop(UserWarning)
    assert mirror in str(warning.message) and warning.filename == __file__
    server.answers.clear()
    shutil.rmtree(place.folder)
    with pytest.warns(UserWarning), pytest.raises(datasets.NotObtainable) as error:
        place.fetch()
    assert f"{mirror}/tiny/tiny.svm" in str(error.value) and PUBLIC in str(error.value)


@pytest.mark.parametrize("status", [203, 299, 999])
def test_a_mirror_with_an_odd_status_falls_back_to_the_source(place, server, monkeypatch, status):
    server.answers["/mirror/tiny/tiny.svm"] = give(CONTENT, status=status)
    monkeypatch.setenv(download.MIRROR, f"{server.url}/mirror")
    with pytest.warns(UserWarning, match=f"status {status}.*; trying"):
        [path] = place.fetch()
    assert path.read_bytes() == CONTENT and server.asked[-1] == PUBLIC


@pytest.mark.parametrize("head", [b"", b"HTTP/1.1 200 OK\r\nContent-Length: 10240\r\n\r\n"])
def test_a_server_that_sends_a_byte_now_and_then_is_given_up(place, server, monkeypatch, head):
    def trickle(handler):
        handler.wfile.write(head)
        while not server.end.wait(0.05):
            handler.wfile.write(b"H")

    monkeypatch.setattr(download, "PATIENCE", 0.5)
    server.answers[PUBLIC] = trickle
    began = time.monotonic()
    with pytest.raises(datasets.NotObtainable, match=r"tiny.* less than 2000 bytes a second"):
        place.fetch()
    assert time.monotonic() - began < 30 and files_in(place.folder) == []


def test_a_source_that_refuses_a_file_is_told_from_no_network(place, server, monkeypatch):
    monkeypatch.setattr(records, "TABLE", place.table)
    monkeypatch.setattr(records, "FOLDER", place.folder)
    server.answers.clear()
    assert records.obtain("tiny", "auto")["reason"] == "its sources refuse it"
    monkeypatch.setattr(download, "SOURCE", CLOSED)
    assert records.obtain("tiny", "auto")["reason"].startswith("no network")


# -------------------------------------------------- files to be trusted


@pytest.fixture
def address(tmp_path, server):
    """A data set at an address without checksum: 20,000 rows, packed."""
    content = bz2.compress(b"".join(b"%d 1:%d 3:1\n" % (i % 2, i + 1) for i in range(20_000)))
    folder, lock = tmp_path / "resources", tmp_path / "datasets.lock" / "tiny.json"
    server.answers["/a/rows.bz2"] = give(content)

    def say(**changed):
        given = OWN | {"train": f"{server.url}/a/rows.bz2", "n_features": "3"}
        return write_table(tmp_path, cells(**given | changed))

    def fetch():
        return datasets.fetch("tiny", folder, table, timeout=2)

    table = say()
    return SimpleNamespace(
        content=content, folder=folder, table=table, lock=lock, say=say, fetch=fetch
    )


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


# -------------------------------------------------- readers, on files made here


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
        "reader_of_mine:whole": lambda: {"a.txt": text.encode()},
        "reader_of_mine:blocks": lambda: {"a.txt": text.encode()},
        "idx": lambda: {"a.gz": gzip.compress(idx), "b.gz": gzip.compress(labels)},
        "libsvm": lambda: {"a.svm": libsvm_text(X, y)},
        "vw": lambda: {"a.dat": re.sub(rb"(?m)^(\S+)", rb"\1 |f", libsvm_text(X, y))},
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


MINE = """
import numpy as np
def whole(paths):
    rows = np.loadtxt(paths[0])
    return rows[:, 1:], rows[:, 0]
def blocks(paths):
    X, y = whole(paths)
    yield X[:2], y[:2]
    yield X[2:], y[2:]
"""


@pytest.mark.parametrize("reader", [*READERS, "reader_of_mine:whole", "reader_of_mine:blocks"])
def test_each_reader_gives_back_what_was_written(tmp_path, monkeypatch, reader):
    """Also a function of one's own."""
    (tmp_path / "reader_of_mine.py").write_text(MINE)
    monkeypatch.syspath_prepend(tmp_path)
    rng = np.random.default_rng(0)
    X = rng.integers(0, 3, (600, 30)) * (rng.random((600, 30)) < 0.3)
    X[:, -1] = 1
    y, paths = rng.choice([-1, 1], 600), []
    for name, content in made(reader, X, y).items():
        paths.append(tmp_path / name)
        paths[-1].write_bytes(content)
    own = {"train": " ".join(map(str, paths)), "reader": reader, "n_features": "30"}
    own["label"] = "-1" if reader in LABELLED else ""
    table = write_table(tmp_path, cells(**OWN | own))
    data = datasets.load("tiny", registry_path=table)
    assert data.name == "tiny" and data.X_test is None and data.y_test is None
    assert data.y_train.dtype == np.int64 and data.X_train.dtype == np.float64
    np.testing.assert_array_equal(data.y_train, y + (reader == "idx"))
    if reader in ("ecml_mat_sparse", "libsvm", "vw", "reader_of_mine:blocks"):
        assert data.X_train.format == "csr" and data.X_train.has_canonical_format
        assert data.X_train.indices.dtype == data.X_train.indptr.dtype == np.int32
        np.testing.assert_array_equal(data.X_train.toarray(), X)
    else:
        assert data.X_train.flags.c_contiguous and data.X_train.flags.writeable
        np.testing.assert_array_equal(data.X_train, X)
    blocks = list(datasets.open_stream("tiny", 250, registry_path=table))
    assert [len(b) for _, b in blocks] == [250, 250, 100]
    np.testing.assert_array_equal(sp.vstack([b for b, _ in blocks]).toarray(), X)


# -------------------------------------------------- rows of texts, for other tests too


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
