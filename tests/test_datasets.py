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

import numpy as np
import pandas as pd
import pytest
import scipy.io
import scipy.sparse as sp
from sklearn.datasets import dump_svmlight_file

from ofslib import datasets
from ofslib.datasets import download, readers
from ofslib.datasets.registry import _PATH, BY_BLOCKS, LABELLED, READERS, read_rows, splits

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
    names = "label test test_checksum test_bytes n_test train_labels train_first notes".split()
    return (
        dict.fromkeys(names, "")
        | {
            "name": "tiny",
            "title": "Tiny",
            "reader": "libsvm",
            "repository": "owner/repository",
            "commit": "0" * 40,
            "train": "data/tiny.svm",
            "train_checksum": sha256(content),
            "train_bytes": str(len(content)),
            "n_train": "1",
            "n_features": "1",
            "task": "classification",
            "licence": "free",
            "citation": "Nobody, 2000",
        }
        | changed
    )


def write_table(folder, *rows):
    path = folder / "datasets.csv"
    pd.DataFrame(rows).to_csv(path, index=False)
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
        ({"name": "first"}, "column name: another data set"),
        ({"name": "ecml18_arcene"}, "column name: another data set"),
        ({"reader": "os:system"}, "column reader"),
        ({"reader": "csv"}, "column label"),
        ({"label": "y"}, "column label"),
        ({"commit": "master"}, "column commit"),
        ({"train": "/etc/passwd"}, "column train"),
        ({"train_checksum": "md5:" + "0" * 32}, "column train_checksum"),
        ({"train_bytes": ""}, "expected 1, got 0"),
        ({"test": "data/other.svm"}, "expected 1, got 0"),
        ({"n_features": ""}, "column n_features"),
        ({"task": "classificaton"}, "column task"),
        ({"train_labels": "1=3"}, "column train_labels"),
        (OWN | {"train": "https://host"}, "column train: expected a path, or an address"),
        (OWN | {"train": "my rows.csv"}, "column train: expected one file for libsvm; got 2"),
        (OWN | {"train": "a/x b/x", "reader": "idx"}, "column train: expected files of different"),
        (OWN | {"train": "a.csv", "reader": "csv"}, "column label"),
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
    for columns, said in (("name,reader,train", "task"), ("name,license", "expected columns")):
        table.write_text(f"{columns}\nmine,libsvm,x\n")
        with pytest.raises(ValueError, match=said):
            datasets.registry(table)
    with pytest.raises(FileNotFoundError, match="give its path"):
        datasets.registry(tmp_path / "none.csv")


def test_an_unknown_name_or_split_lists_the_known(place):
    for call in (datasets.fetch, datasets.load):
        with pytest.raises(ValueError, match=r"no data set 'tinny'.*tiny"):
            call("tinny", place.folder, registry_path=place.table)
    for name in ("tinny", "folder/mistyped.svm"):
        with pytest.raises(FileNotFoundError, match=f"no data set '{name}'.*tiny"):
            datasets.open_stream(name, registry_path=place.table)
    with pytest.raises(ValueError, match="expected split None, train; got 'test'"):
        datasets.load("tiny", place.folder, "test", place.table)


def test_a_file_of_a_data_set_stays_in_its_folder(tmp_path, monkeypatch):
    """Whatever path the table names."""
    outside = tmp_path / "mirror" / "tiny" / "rows.svm"
    outside.parent.mkdir(parents=True)
    outside.write_bytes(b"1 1:2\n")
    row = next(iter(read_rows().values())) | cells(train="data/../../rows.svm")
    monkeypatch.setattr(download, "find_row", lambda *given: row)
    monkeypatch.setenv(download.MIRROR, str(tmp_path / "mirror"))
    (path,) = download.fetch("tiny", tmp_path / "here")
    assert path.resolve() == tmp_path.resolve() / "here" / "tiny" / "rows.svm"
    wrong = ["/etc/passwd", "../x", "a b|c", "a\\b", ".hidden", ""]
    assert [name for name in wrong if re.fullmatch(_PATH, name)] == []


# -------------------------------------------------- downloads


def test_a_file_is_brought_once_checked_and_kept_and_brought_anew_if_damaged(place, server):
    assert [p.read_bytes() for p in place.fetch()] == [CONTENT]
    [path] = place.fetch()
    assert path == place.folder / "tiny" / "tiny.svm" and server.asked == [place.public]
    path.write_bytes(CONTENT[:-1] + b"x")
    place.fetch()
    assert path.read_bytes() == CONTENT and len(server.asked) == 2
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
    if "got" in message:
        assert f"expected 10240 bytes, {sha256(CONTENT)}; got" in message
    assert place.files() == []
    assert server.sent < 32 * 2**20, "only what the sockets hold"


def test_where_no_size_is_pinned_there_is_a_limit(place, server, monkeypatch, tmp_path):
    monkeypatch.setattr(download, "MOST_BYTES", 2**20)
    server.answers[place.public] = endless
    table = write_table(tmp_path, cells(CONTENT, train_checksum=f"git:{'0' * 40}", train_bytes=""))
    with pytest.raises(datasets.CorruptFile, match=r"tiny\.svm.*more than 1048576 bytes"):
        datasets.fetch("tiny", place.folder, table)
    assert place.files() == [] and server.sent < 32 * 2**20
    monkeypatch.setattr(download, "SOURCE", CLOSED)
    with pytest.raises(datasets.NotObtainable, match="Connection refused"):
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
    assert place.files() == [] and place.public not in server.asked


MIRRORS = ["{folder}", "{server}/mirror", CLOSED, "http://[::1"]


@pytest.mark.parametrize("mirror", MIRRORS)
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
    assert f"{mirror}/tiny/tiny.svm" in str(error.value) and place.public in str(error.value)


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
