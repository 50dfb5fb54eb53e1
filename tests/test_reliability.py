"""docs/reliability.md tells the truth: each promise has its test, which may stand here."""

import ast
import errno
import hashlib
import os
import pickle
import re
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from test_bad_input import IN_A_FOLDER, TABLE
from threadpoolctl import threadpool_limits

import ofslib
from ofslib import _files
from ofslib.datasets import download
from ofslib.datasets.registry import _PATH, read_rows

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "docs/reliability.md").read_text(encoding="utf-8")
NAMED = re.findall(r"`(test_\w+\.py)::(test_\w+)`", TEXT)

# -------------------------------------------------- the document


def test_each_promise_names_a_test_that_exists():
    promises = TEXT[TEXT.index("## The workflow") :]
    rows = re.findall(r"^\| (?!promise)(.*) \|$", promises, re.M)
    assert len(rows) > 40 and all(re.search(r"`test_\w+\.py::test_\w+`", row) for row in rows)
    for file, name in NAMED:
        tree = ast.parse((ROOT / "tests" / file).read_text(encoding="utf-8"))
        assert name in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}, name


def test_the_number_of_bad_inputs_is_the_stated_one():
    count = sum(map(len, TABLE.values())) + len(IN_A_FOLDER)
    assert count >= 120 and f"{count} bad inputs" in TEXT


# -------------------------------------------------- files


def killed_at_line(number, path):
    """Write a file in a process that is killed before it runs this line of `_files`.

    Whether there was such a line.
    """
    process = os.fork()
    if process == 0:
        left = number

        def trace(frame, event, _):
            nonlocal left
            if frame.f_code.co_filename == _files.__file__ and event == "line":
                left -= 1
                if left < 0:
                    os.kill(os.getpid(), signal.SIGKILL)
            return trace

        sys.settrace(trace)
        _files.write_whole(path, "new" * 1000)
        os._exit(0)
    return os.WIFSIGNALED(os.waitpid(process, 0)[1])


@pytest.mark.skipif(not hasattr(os, "fork"), reason="kills and forks")
def test_a_kill_before_any_line_leaves_the_old_file_or_the_new_one(tmp_path):
    path, found = tmp_path / "file.csv", []
    path.write_text("old")
    while killed_at_line(len(found), path):
        found.append(path.read_text())
    new = "new" * 1000
    assert found == ["old"] * found.count("old") + [new] * found.count(new)
    assert found.count("old") >= 10 and f"{len(found)} kills" in TEXT
    assert path.read_text() == new
    assert list(tmp_path.iterdir()) == [path]  # the last one removed what the killed ones left


@pytest.mark.parametrize("number", [errno.EROFS, errno.EACCES, errno.ENOSPC, errno.EDQUOT])
def test_a_folder_that_takes_no_file_is_named_and_stays_as_it_is(tmp_path, monkeypatch, number):
    path = tmp_path / "results.csv"
    path.write_text("old")

    def refuse(name, mode="r"):
        raise OSError(number, os.strerror(number), str(name))

    monkeypatch.setattr(_files, "open", refuse, raising=False)
    with pytest.raises(OSError, match=r"results\.csv"):
        _files.write_whole(path, "new")
    assert [file.read_text() for file in tmp_path.iterdir()] == ["old"]


def test_a_file_of_a_data_set_stays_in_its_folder(tmp_path, monkeypatch):
    """Whatever path the table names."""
    outside = tmp_path / "mirror" / "one" / "rows.svm"
    outside.parent.mkdir(parents=True)
    outside.write_bytes(b"1 1:2\n")
    digest = "sha256:" + hashlib.sha256(b"1 1:2\n").hexdigest()
    row = next(iter(read_rows().values())) | {"name": "one", "test": ""}
    row |= {"train": "data/../../rows.svm", "train_checksum": digest, "train_bytes": "6"}
    monkeypatch.setattr(download, "find_row", lambda *given: row)
    monkeypatch.setenv(download.MIRROR, str(tmp_path / "mirror"))
    (path,) = download.fetch("one", tmp_path / "here")
    assert path.resolve() == tmp_path.resolve() / "here" / "one" / "rows.svm"
    wrong = ["/etc/passwd", "../x", "a b|c", "a\\b", ".hidden", ""]
    assert [name for name in wrong if re.fullmatch(_PATH, name)] == []


# -------------------------------------------------- nothing is executed

LOADERS = {"load", "loads", "Unpickler", "read_pickle", "load_all", "unsafe_load", "full_load"}
LOADERS |= {"eval", "exec", "system", "popen", "extractall", "unpack_archive", "import_string"}
HARMLESS = ("json.", "project.", "datasets.", "records.", "np.", "platform.")
# Where one of them stands, and why it may.
ALLOWED = {
    ("ofslib/_fast_compile.py", "pickle.loads"): "compiled code of our own, behind a checksum",
    ("ofslib/averages.py", "super().load"): "a model file of ours",
    ("ofslib/kernels/words.py", "builder.load"): "an instruction that reads bytes of an array",
    ("ofslib/reproduction/configuration.py", "yaml.load"): "with a subclass of SafeLoader",
}


def test_nothing_that_executes_what_it_reads_is_called():
    found = set()
    for folder in ("ofslib", "workflow"):
        for file in (ROOT / folder).rglob("*.py"):
            for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Call):
                    words = ast.unparse(node.func)
                    named = words.rpartition(".")[2] in LOADERS
                    if named and not words.startswith(HARMLESS) and words != "load":
                        found.add((file.relative_to(ROOT).as_posix(), words))
                    asked = {k.arg: ast.unparse(k.value) for k in node.keywords}
                    assert asked.get("allow_pickle", "False") == "False", file
                    assert asked.get("shell", "False") == "False", file
    assert found == set(ALLOWED)


READ_ALL = """
import sys
from pathlib import Path

WATCHED = ("pickle.find_class", "os.system", "os.exec", "subprocess.Popen", "exec.ran")
import numpy, pandas, scipy.io, yaml
from ofslib import RunningAverages, datasets
from ofslib.datasets import readers
from ofslib.reproduction import project, records

def watch(event, args):
    if event in WATCHED:
        print("RAN", event, args, flush=True)

Path("rows.svm").write_text("1 1:2")
list(datasets.open_stream("rows.svm", cache=False))  # compiled code is loaded before the watch

sys.addaudithook(watch)
for call in (
    lambda: RunningAverages.load("model.npz"),
    lambda: RunningAverages.load("model.pkl"),
    lambda: list(datasets.open_stream("model.pkl", cache=False)),
    lambda: readers._ecml(["rows.mat"], 1),
    lambda: readers._idx(["model.pkl", "model.pkl"], 1),
    lambda: datasets.registry("model.pkl"),
    lambda: project._read(Path("."), "one.yaml", "config"),
    lambda: records.read("model.pkl"),
):
    try:
        call()
    except Exception as error:
        print("refused", type(error).__name__)
    else:
        print("taken")
"""


class Evil:
    """What an unpickler would run."""

    def __reduce__(self):
        return os.system, ("touch was_run",)


def test_crafted_files_of_models_data_and_configuration_are_refused_and_run_nothing(tmp_path):
    (tmp_path / "model.pkl").write_bytes(pickle.dumps(Evil()))
    (tmp_path / "rows.mat").write_bytes(pickle.dumps(Evil()) * 20)
    (tmp_path / "one.yaml").write_text("scale: !!python/object/apply:os.system ['touch was_run']")
    np.savez(tmp_path / "model.npz", head=np.array([Evil()], dtype=object))
    done = subprocess.run(
        [sys.executable, "-c", READ_ALL],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), *filter(None, sys.path)])},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert [line.split()[0] for line in done.stdout.splitlines()] == ["refused"] * 8, done.stdout
    assert not (tmp_path / "was_run").exists()


# -------------------------------------------------- threads


# The streams of rows and columns that multiply matrices; no other has a thread to share.
WITH_BLAS = ["OPGClassifier", "RDAClassifier", "TruncatedGradientClassifier", "SADMMRegressor"]
WITH_BLAS += ["ARDAClassifier", "AdaFobosClassifier", "OnlineSubstitution", "Grafting"]
WITH_BLAS += ["AsyncOnlineSubstitution", "OnlineProximal", "OnlineCoordinateDescent"]
WITH_BLAS += ["ProjectedGradientSelector", "OnlineLeverageSelector", "AlphaInvesting"]


# So large that two threads sum the products in another order: without `one_blas_thread` in the
# module of its products each of these fails where there are two cores.
LARGE = [("OPGClassifier", 600, 4000), ("SADMMRegressor", 600, 4000)]
LARGE += [("OnlineLeverageSelector", 20_000, 150), ("AlphaInvesting", 20_000, 150)]


def numbers_of(model):
    """All numbers that a model is made of, or that a selector has learned."""
    if hasattr(model, "coef_"):
        return model.coef_.tobytes()
    parts = [part for part in model._state if isinstance(part, np.ndarray | list)]
    return b"".join(np.ravel(part).tobytes() for part in parts)


@pytest.mark.parametrize("name, n, p", [(name, 300, 400) for name in WITH_BLAS] + LARGE)
def test_the_number_of_threads_changes_no_bit(name, n, p):
    """Of rows and columns; those of running averages depend on the BLAS where p is large."""
    X = np.random.default_rng(0).standard_normal((n, p))
    y = (X[:, :3].sum(axis=1) > 0).astype(int)
    own = {"k": 5, "random_state": 0} | ({"batch_size": 200} if (name, n, p) in LARGE else {})
    cls = getattr(ofslib, name)
    own = {key: value for key, value in own.items() if key in cls().get_params()}
    seen = set()
    for threads in (1, 2, 4):
        with threadpool_limits(threads):
            model = cls(**own).fit(X, y)
            seen.add((numbers_of(model), model.support_.tobytes()))
    assert len(seen) == 1
