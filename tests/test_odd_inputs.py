"""Odd inputs, and where the command runs: each gives a clear message or the right result."""

import csv
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import ofslib
from ofslib import datasets
from ofslib._files import CorruptFile
from ofslib.cli import main
from ofslib.reproduction import records

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


# -------------------------------------------------- the command

ESC = "\x1b[31mred"


@pytest.fixture
def table(tmp_path, monkeypatch):
    """A table whose names and labels would act on a terminal or in a spreadsheet."""
    monkeypatch.chdir(tmp_path)
    labels = np.where(Y > 0, "+yes", f"no{ESC}")
    rows = [[*x, label] for x, label in zip(X, labels, strict=True)]
    with open("t.csv", "w", newline="") as file:
        csv.writer(file).writerows([[ESC, "new\nline", "=cmd()", "-3", "y"], *rows])
    return ["t.csv", "--label", "y"]


def shell(command, *words):
    """What comes of the command in a shell, where `"$@"` stands for it."""
    line = [sys.executable, "-m", "ofslib.cli", *words]
    return subprocess.run(["sh", "-c", command, "sh", *line], capture_output=True, text=True)


def test_names_are_escaped_on_the_terminal_and_whole_in_files(table, capsys, monkeypatch):
    assert main(["select", *table, "-k", "4", "--out", "f.csv", "--model", "m.npz"]) == 0
    assert main(["inspect", *table]) == 0
    assert main(["predict", *table, "--model", "m.npz", "--out", "p.csv"]) == 0
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    assert main(["predict", *table, "--model", "m.npz"]) == 0
    assert main(["select", "t.csv", "--label", ESC, "-k", "4"]) == 1
    out, err = capsys.readouterr()
    assert "\x1b" not in out + err and "new\nline" not in out + err
    assert all(word in out for word in (r"\x1b[31mred", r"new\nline", r"no\x1b[31mred"))
    assert err.count("f.csv: a spreadsheet takes '=cmd()' for a formula") == 1
    assert err.count("p.csv: a spreadsheet takes '+yes' for a formula") == 1
    with open("f.csv", newline="") as file:
        assert {row[0] for row in csv.reader(file)} == {"feature", ESC, "new\nline", "=cmd()", "-3"}


def test_with_a_closed_stdout_files_are_written_and_named(table):
    done = shell('"$@" >&-', "select", *table, "-k", "2", "--out", "f.csv", "--model", "m.npz")
    assert done.returncode == 0 and "stdout is closed; written: f.csv, m.npz\n" in done.stderr
    done = shell('"$@" >&-', "predict", *table, "--model", "m.npz")
    assert done.returncode == 2 and done.stderr == "ofslib: stdout is closed: give --out\n"
    done = shell('"$@" 2>&-', "predict", *table, "--model", "m.npz", "--out", "p.csv")
    assert done.returncode == 0 and done.stdout.startswith("t.csv: 40 rows")


@pytest.mark.parametrize("option", ["--out", "--model", "--checkpoint"])
def test_a_name_too_long_for_its_temporary_file_is_refused_at_the_start(table, capsys, option):
    name = "x" * 249
    assert main(["select", *table, "-k", "2", option, name]) == 1
    out, err = capsys.readouterr()
    assert err == f"ofslib: {option}: the name {name} is too long\n" and not out
    assert main(["select", *table, "-k", "2", option, "x" * 240]) == 0


@pytest.mark.parametrize("module", ["numpy", "sklearn", "numba", "pandas"])
def test_ctrl_c_during_imports_shows_no_traceback(table, module):
    code = f"""
import sys

class Interrupted:
    def find_spec(name, *_):
        if name == {module!r}:
            raise KeyboardInterrupt

sys.meta_path.insert(0, Interrupted)
from ofslib.cli import main
sys.exit(main(["select", "t.csv", "--label", "y", "-k", "2"]))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 130 and "Traceback" not in done.stderr


@pytest.mark.parametrize("file", ["/proc/kmsg", "../../../etc/passwd"])
def test_an_archive_names_no_file_that_is_not_of_the_data_set(tmp_path, monkeypatch, file):
    monkeypatch.chdir(Path(__file__).parents[1])
    monkeypatch.setattr(records, "FOLDER", tmp_path)
    with pytest.raises(CorruptFile, match=f"{file}.* is not of ecml18_arcene"):
        records.of_archive("ecml18_arcene", {file: "0" * 64})
