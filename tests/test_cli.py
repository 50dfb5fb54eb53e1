"""The command ofslib, and fit_stream: what they say, what they write, and how they go on."""

import os
import random
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from test_datasets import cells, whole, write_table

import ofslib
from ofslib import _options, cli, fit_stream
from ofslib.datasets import download, open_stream
from ofslib.streams import checkpoint as checkpoint_module

ROOT = Path(__file__).parents[1]
N, P = 2000, 60


def text(n=N, seed=0, width=P):
    """Rows of which the first ten features decide the label."""
    rng, lines = np.random.default_rng(seed), []
    for _ in range(n):
        index = np.unique([*rng.integers(0, 10, 3), *rng.integers(0, width, 6)])
        values = rng.standard_normal(len(index)).round(3)
        label = 1 if values[index < 10].sum() + 0.3 * rng.standard_normal() > 0 else -1
        row = " ".join(f"{j + 1}:{v}" for j, v in zip(index, values, strict=True))
        lines.append(f"{label} {row}\n")
    return "".join(lines)


TEXT = text()


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """A folder with a file of rows, as the current one."""
    (tmp_path / "rows.svm").write_text(TEXT)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv(download.MIRROR, raising=False)
    return tmp_path


def learned(model):
    """What two equal models have in common to the last bit."""
    coef, online = model.coef_.tobytes(), getattr(model, "online_loss_", 0.0)
    return coef, model.intercept_, online, model.n_samples_seen_


# -------------------------------------------------- fit_stream

ON_ROWS = [
    ofslib.SFSAClassifier(k=5, batch_size=7),
    ofslib.SFSAClassifier(k=5, n_passes=3, learning_rate=0.01),
    ofslib.SGDTClassifier(k=5, n_passes=2),
    ofslib.BARDAClassifier(k=5),
]


@pytest.mark.parametrize("model", ON_ROWS, ids=lambda model: type(model).__name__)
@pytest.mark.parametrize("cache", [True, False])
def test_it_is_fit_on_all_rows_in_their_order(model, cache):
    stream = open_stream("rows.svm", block_rows=171, cache=cache)
    expected = model.__sklearn_clone__().set_params(shuffle=False).fit(*whole(stream))
    assert fit_stream(model, stream) is model
    # The mean online loss is one of blocks: their cuts decide how it is rounded.
    assert model.online_loss_ == pytest.approx(expected.online_loss_, rel=1e-12)
    assert model.coef_.tobytes() == expected.coef_.tobytes()
    assert model.intercept_ == expected.intercept_ and len(model.support_) == 5


class Stopped:
    """A stream whose reader is interrupted before a block."""

    def __init__(self, stream, blocks):
        self.stream, self.left = stream, [blocks]

    def __getattr__(self, name):
        return getattr(self.stream, name)

    def skip(self, rows):
        other = Stopped(self.stream.skip(rows), 0)
        other.left = self.left
        return other

    def __iter__(self):
        for block in self.stream:
            if self.left[0] == 0:
                raise KeyboardInterrupt
            self.left[0] -= 1
            yield block


@pytest.mark.parametrize("cache", [True, False])
@pytest.mark.parametrize(
    "model",
    [ofslib.SFSAClassifier(k=5, n_passes=np.int64(2)), ofslib.OLSthClassifier(k=5)],
    ids=lambda model: type(model).__name__,
)
def test_stopped_before_any_block_it_goes_on_to_the_same_bits(model, cache, folder):
    stream = open_stream("rows.svm", block_rows=300, cache=cache)
    undisturbed = model.__sklearn_clone__()
    fit_stream(undisturbed, stream, classes=[-1, 1])
    sizes = ([300] * 6 + [200]) * getattr(model, "n_passes", 1)
    for stop in range(1, len(sizes)):
        stopped, path = model.__sklearn_clone__(), folder / f"{stop}.ckpt"
        with pytest.raises(KeyboardInterrupt):
            fit_stream(stopped, Stopped(stream, stop), path, classes=[-1, 1])
        assert not hasattr(stopped, "n_features_in_"), "the model is as it was"
        assert checkpoint_module.read_checkpoint(path, model).rows == sum(sizes[:stop])
        fit_stream(stopped, stream, path)
        assert learned(stopped) == learned(undisturbed)
        # The file says that all is learned: nothing is shown again.
        again = model.__sklearn_clone__()
        fit_stream(again, Stopped(stream, 0), path)
        assert learned(again) == learned(undisturbed)


@pytest.mark.parametrize(
    "model",
    [
        ofslib.SFSARegressor(k=2, n_passes=2),
        ofslib.SFSAClassifier(k=2, class_weight={1: 0.0, 2: 3.0}),
        ofslib.OFSAClassifier(k=2),
    ],
    ids=lambda model: type(model).__name__,
)
def test_rows_of_weight_zero_are_passed_over_wherever_it_stops(model, folder):
    """Also blocks of such rows alone, the first, one in the middle and the last of which are."""
    rng = np.random.default_rng(0)
    X, weight = rng.normal(size=(180, 6)), rng.integers(0, 3, 180).astype(float)
    weight[:20] = weight[100:120] = weight[170:] = 0
    y = (X[:, 0] + rng.normal(size=180) > 0) + (X[:, 3] > 1).astype(float)
    if "Regressor" in type(model).__name__:
        y = X[:, 0] - X[:, 3]
    frame = pd.DataFrame(X, columns=[*"abcdef"]).assign(label=y, w=weight)
    stream = open_stream(frame, 20, label="label", weight="w")
    expected = model.__sklearn_clone__()
    if "shuffle" in expected.get_params():
        expected.set_params(shuffle=False)
    expected.fit(sp.csr_array(X), y, sample_weight=weight)
    classes = None if "Regressor" in type(model).__name__ else np.unique(y)
    for stop in range(1, 9 * getattr(model, "n_passes", 1)):
        stopped, path = model.__sklearn_clone__(), folder / f"{stop}.ckpt"
        interrupted = Stopped(stream, stop)
        # Steps go by the number of rows, which is found in a pass of its own.
        interrupted.left[0] += 9
        with pytest.raises(KeyboardInterrupt):
            fit_stream(stopped, interrupted, path, classes=classes)
        fit_stream(stopped, stream, path)
        assert stopped.n_samples_seen_ == expected.n_samples_seen_
        np.testing.assert_allclose(stopped.coef_, expected.coef_, rtol=1e-9)
        if not hasattr(model, "averages_"):
            assert stopped.coef_.tobytes() == expected.coef_.tobytes()


@pytest.mark.parametrize(
    "other, named",
    [
        ({"k": 6}, "k=6 differs from k=5"),
        ({"cls": ofslib.SGDTClassifier}, "class='SGDTClassifier' differs from class='SFSA"),
        ({"block_rows": 301}, "block_rows=301 differs from block_rows=300"),
        ({"n_features": 70}, "n_features=70 differs from n_features=60"),
        ({"dtype": np.float32}, "the rows, or how they are read"),
        ({"change": TEXT.replace("1:", "2:", 1)}, "the rows, or how they are read"),
    ],
)
def test_a_checkpoint_of_something_else_is_refused_by_name(other, named, folder):
    path = folder / "run.ckpt"
    fit_stream(ofslib.SFSAClassifier(k=5), open_stream("rows.svm", 300), path)
    before = path.read_bytes()
    if "change" in other:
        Path("rows.svm").write_text(other["change"])
    own = {name: other[name] for name in ("n_features", "dtype") if name in other}
    stream = open_stream("rows.svm", other.get("block_rows", 300), **own)
    model = other.get("cls", ofslib.SFSAClassifier)(k=other.get("k", 5))
    with pytest.raises(ValueError, match=f"run.ckpt: {re.escape(named)}"):
        fit_stream(model, stream, path)
    assert path.read_bytes() == before and not hasattr(model, "n_features_in_")


def test_what_is_no_checkpoint_is_refused_and_the_place_of_the_text_does_not_matter(folder):
    stream = open_stream("rows.svm")
    model = fit_stream(ofslib.SFSAClassifier(k=5), stream, "run.ckpt")
    model.save("model.npz")
    content = bytearray(Path("run.ckpt").read_bytes())
    content[len(content) // 2] ^= 1
    Path("bad.ckpt").write_bytes(content)
    for path in ("model.npz", "bad.ckpt", "rows.svm"):
        with pytest.raises(ValueError, match=path):
            fit_stream(ofslib.SFSAClassifier(k=5), stream, path)
    with pytest.raises(ValueError, match=r"run\.ckpt: classes=\[-1, 1, 7\] differs from classes="):
        fit_stream(ofslib.SFSAClassifier(k=5), stream, "run.ckpt", classes=[-1, 1, 7])
    Path("elsewhere").mkdir()
    Path("rows.svm").rename("elsewhere/moved.svm")
    model = fit_stream(ofslib.SFSAClassifier(k=5), open_stream("elsewhere/moved.svm"), "run.ckpt")
    assert model.n_samples_seen_ == N


def test_what_it_cannot_do_is_refused():
    stream = open_stream("rows.svm")
    frame = pd.DataFrame({"a": [1.0, 2.0], "b": [2.0, 1.0], "y": [0, 1], "w": [0.0, 0.0]})
    weightless = open_stream(frame, label="y", weight="w")
    Path("numbers.svm").write_text("".join(f"{i / 7} 1:{i}\n" for i in range(1500)))
    model = ofslib.SFSAClassifier(k=1)
    for wrong, source, own, error, said in (
        (model, "rows.svm", {}, TypeError, "expected what open_stream returns, got str"),
        (model, open_stream(frame, label=False), {}, ValueError, "the rows have none"),
        (ofslib.Grafting(), stream, {}, TypeError, "Grafting"),
        (model, stream, {"every": -1}, ValueError, "every"),
        (model, stream.skip(N), {}, ValueError, "expected a row"),
        (model, open_stream("numbers.svm"), {}, ValueError, "continuous"),
        (model, weightless, {}, ValueError, "is zero for all rows"),
    ):
        with pytest.raises(error, match=said):
            fit_stream(wrong, source, **own)
        assert not hasattr(model, "n_features_in_")


# -------------------------------------------------- kill -9

KILLS = int(os.environ.get("OFSLIB_KILLS", 2))


def written(path):
    """When, or 0 if it is not there."""
    return path.stat().st_mtime_ns if path.exists() else 0


@pytest.mark.slow
def test_killed_at_any_moment_the_same_command_ends_in_the_same_bytes(folder):
    Path("many.svm").write_text(text(6_000))
    command = [sys.executable, "-m", "ofslib.cli"]
    line = "select many.svm -k 5 --passes 2 --block-rows 200 --every 0 --no-cache".split()
    files = [("--out", "features.csv"), ("--model", "model.npz"), ("--checkpoint", "run.ckpt")]
    expected = {}
    for place in ("undisturbed", "killed"):
        (folder / place).mkdir()
        options = [word for option, name in files for word in (option, f"{place}/{name}")]
        path, rng = folder / place / "run.ckpt", random.Random(0)
        for number in range(KILLS if place == "killed" else 0):
            before = written(path)
            process = subprocess.Popen([*command, *line, *options], stderr=subprocess.DEVNULL)
            # One that finds all learned, as the last was killed after that, writes no checkpoint.
            while written(path) == before and process.poll() is None:
                time.sleep(0.001)
            time.sleep(rng.uniform(0, 0.1) if number else 0)
            process.send_signal(signal.SIGKILL)
            if process.wait() != -signal.SIGKILL:
                assert process.returncode == 0, "it failed"
                assert number, "it was done before it was ever killed"
                break
        assert cli.main([*line, *options]) == 0
        found = {name: (folder / place / name).read_bytes() for _, name in files}
        expected = expected or found
        assert found == expected
    assert not list(folder.glob("**/.*.part"))


# -------------------------------------------------- commands


def test_select_writes_the_features_and_the_model(ofs):
    line = "select rows.svm -k 5 --out features.csv --model model.npz"
    code, out, err = ofs(line)
    assert (code, err) == (0, "") and "5 features selected" in out
    head, *rows = Path("features.csv").read_text().splitlines()
    chosen = [(int(name), float(value)) for name, value in (row.split(",") for row in rows)]
    model = ofslib.SFSAClassifier.load("model.npz")
    assert head == "feature,coefficient" and len(chosen) == 5
    # As the text numbers them, from 1; and numbers that are read as the same again.
    assert all(model.coef_[j - 1] == value for j, value in chosen)
    sizes = [abs(value) for _, value in chosen]
    assert sizes == sorted(map(abs, model.coef_[model.support_]))[::-1]
    code, data, err = ofs(line + " --json")
    assert (code, err) == (0, "") and data["rows"] == N and data["warnings"] == []
    assert [(int(row["feature"]), row["coefficient"]) for row in data["selected"]] == chosen


def test_select_takes_methods_tasks_passes_and_parameters(ofs):
    code, data, _ = ofs("select rows.svm -k 3 --method olsth --task regression --json")
    assert code == 0 and data["estimator"] == "OLSthRegressor"
    line = "select rows.svm -k 3 --holdout 0 --passes 2 --set learning_rate=0.3 --model m.npz"
    code, _, _ = ofs(line)
    model = ofslib.SFSAClassifier.load("m.npz")
    assert (model.n_passes, model.learning_rate, model.n_samples_seen_) == (2, 0.3, 2 * N)
    code, data, err = ofs("select rows.svm -k 100 --json")
    assert data["warnings"] == [err.strip().removeprefix("ofslib: warning: ")] != [""]
    data = ofs("select rows.svm --fdr 0.2 --task regression --json")[1]
    assert data["fdr_condition"] and data["selected"]


SAME = [
    ("select rows.svm -k 5 --out rows.svm", "FILE and --out"),
    ("select rows.svm -k 5 --out linked.svm", "FILE and --out"),
    ("select rows.svm -k 5 --checkpoint new --model x/../new", "--model and --checkpoint"),
    ("select rows.svm -k 5 --out rows.svm.ofscache", "the cache of FILE and --out"),
    ("predict rows.svm --model model.npz --out model.npz", "--model and --out"),
]


@pytest.mark.parametrize(("line", "named"), SAME, ids=lambda text: text)
def test_no_file_is_written_over_what_is_read_or_written_beside_it(line, named, ofs, folder):
    Path("model.npz").write_text("")
    Path("linked.svm").symlink_to("rows.svm")
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    code, out, err = ofs(line)
    assert (code, out) == (1, "") and err.startswith(f"ofslib: {named}: both are the file ")
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_devices_stay_what_they_are_and_pipes_are_not_read(ofs):
    """A process that waited for a writer would never end."""
    Path("sink").symlink_to("/dev/zero")
    code, _, err = ofs("select rows.svm -k 5 --no-cache --out sink --model sink")
    assert (code, err) == (0, "") and Path("sink").is_symlink()
    null = os.stat(os.devnull).st_ino
    assert ofs(f"predict rows.svm --model {os.devnull} --out {os.devnull}")[0] == 1
    assert os.stat(os.devnull).st_ino == null
    os.mkfifo("pipe")
    lines = ["select pipe -k 5", "inspect -", "predict rows.svm --model pipe"]
    for line in [*lines, "select rows.svm -k 5 --checkpoint pipe"]:
        code, out, err = ofs(line)
        assert (code, out) == (1, "") and ": a pipe or device is not read" in err
    code, out, err = ofs("select rows.svm -k 5 --out -")
    assert (code, out) == (1, "") and err.startswith("ofslib: --out -: expected a file")
    assert not Path("-").exists()


def test_select_goes_on_from_a_checkpoint_and_says_so(ofs):
    first = ofs("select rows.svm -k 5 --checkpoint run.ckpt --model model.npz --json")[1]
    code, data, err = ofs("select rows.svm -k 5 --checkpoint run.ckpt --json")
    assert (code, err, data["resumed_at"]) == (0, "", 1804)  # a tenth is held out
    assert data["selected"] == first["selected"]
    lines = [ofs(f"select rows.svm -k 5{own}")[1] for own in ("", " --checkpoint run.ckpt")]
    assert ["learned before" in line for line in lines] == [False, True]
    code, _, err = ofs("select rows.svm -k 6 --checkpoint run.ckpt")
    assert code == 1 and "k=6 differs from k=5" in err and len(err.splitlines()) == 1
    code, _, err = ofs("select rows.svm -k 5 --checkpoint model.npz")
    assert code == 1 and "model.npz: it holds a SFSAClassifier, no checkpoint" in err


def test_predict_gives_what_the_model_says(ofs):
    ofs("select rows.svm -k 5 --model model.npz")
    model, (X, y) = ofslib.SFSAClassifier.load("model.npz"), whole(open_stream("rows.svm"))
    code, out, err = ofs("predict rows.svm --model model.npz --out said.csv --block-rows 77")
    assert (code, err) == (0, "")
    head, *rows = Path("said.csv").read_text().splitlines()
    said, margins = np.array([row.split(",") for row in rows], float).T
    assert head == "prediction,decision" and rows[0].split(",")[0] in ("-1", "1")
    assert np.array_equal(said, model.predict(X))
    np.testing.assert_allclose(margins, model.decision_function(X), rtol=1e-12)
    assert f"accuracy {(said == y).mean():.4f}" in out
    # Without a file, stdout is for the predictions.
    code, out, err = ofs("predict rows.svm --model model.npz")
    assert out == Path("said.csv").read_text() and "accuracy" in err
    data = ofs("predict rows.svm --model model.npz --json")[1]
    assert data["accuracy"] == (said == y).mean() and 0.5 < data["auc"] < 1


def shifted(text):
    """The same rows, numbered from 0."""
    return re.sub(r"(\d+):", lambda found: f"{int(found[1]) - 1}:", text)


def test_predict_counts_columns_as_the_model_learned_them(ofs):
    Path("zero.svm").write_text(shifted(TEXT))
    ofs("select zero.svm -k 5 --zero-based --model zero.npz --out zero.csv")
    ofs("select rows.svm -k 5 --model one.npz")
    expected = ofs("predict rows.svm --model one.npz")[1]
    assert ofs("predict zero.svm --model zero.npz")[1] == expected
    stream = open_stream("zero.svm", zero_based=True)
    fit_stream(ofslib.SFSAClassifier(k=5), stream, holdout=0.1).save("python.npz")
    assert ofs("predict zero.svm --model python.npz")[1] == expected
    assert ofs("predict zero.svm --model zero.npz --zero-based")[1] == expected
    ofs("select rows.svm -k 5 --hashed --n-features 512 --no-cache --model hashed.npz")
    hashed = ofs("predict rows.svm --model hashed.npz --hashed")[1]
    assert ofs("predict rows.svm --model hashed.npz")[1] == hashed != expected
    for file, model, option, learned in (
        ("zero.svm", "one.npz", "--zero-based", "numbered from 1"),
        ("rows.svm", "hashed.npz", "--zero-based", "hashed"),
        ("rows.svm", "zero.npz", "--hashed", "numbered from 0"),
    ):
        code, out, err = ofs(f"predict {file} --model {model} {option}")
        assert (code, out) == (2, "")
        assert err.startswith(f"ofslib: {option}: {model} learned from columns {learned}")
    code, out, err = ofs("predict rows.svm --model hashed.npz --n-features 511")
    assert (code, out) == (2, "") and err.startswith("ofslib: --n-features 511: hashed.npz")


def test_more_than_two_classes_have_columns_of_their_own(ofs):
    """Label 3 where the sum over the first three features is large."""
    X, y = whole(open_stream("rows.svm", cache=False))
    three = np.where(X[:, :3].sum(axis=1) > 1, 3, y).astype(int)
    rows = (line.split(" ", 1)[1] for line in TEXT.splitlines())
    Path("three.svm").write_text("\n".join(map("{} {}".format, three, rows)) + "\n")
    expected = ofslib.SFSAClassifier(k=4, shuffle=False, multiclass="joint").fit(X, three)
    command = "select three.svm -k 4 --holdout 0 --model m --out features.csv"
    assert ofs(command)[::2] == (0, "")
    head, *rows = Path("features.csv").read_text().splitlines()
    assert head == "feature,coefficient of -1,coefficient of 1,coefficient of 3"
    found = np.array([row.split(",") for row in rows], float)
    assert np.array_equal(found[:, 1:], expected.coef_[:, found[:, 0].astype(int) - 1].T)
    assert (np.diff(np.linalg.norm(found[:, 1:], axis=1)) <= 0).all() and len(found) == 4
    assert ofs("predict three.svm --model m --out said.csv --block-rows 77")[0] == 0
    head, *rows = Path("said.csv").read_text().splitlines()
    assert head == "prediction,decision of -1,decision of 1,decision of 3"
    found = np.array([row.split(",") for row in rows], float)
    assert np.array_equal(found[:, 0], expected.predict(X))
    np.testing.assert_allclose(found[:, 1:], expected.decision_function(X), rtol=1e-9, atol=1e-12)


def test_inspect_counts(ofs):
    (_, y), before = whole(open_stream("rows.svm", cache=False)), sorted(os.listdir())
    code, data, err = ofs("inspect rows.svm --json")
    assert (code, err) == (0, "") and sorted(os.listdir()) == before
    assert (data["rows"], data["features"]) == (N, P)
    assert data["values"] == sum(map(bool, map(float, re.findall(r":(\S+)", TEXT))))
    assert data["labels"] == {"-1": int((y < 0).sum()), "1": int((y > 0).sum())}
    assert data["needs"]["averages_bytes"] >= 2 * 8 * P**2, "S_xx, and a copy"
    kept = open_stream("rows.svm")
    list(kept)
    cache = ofs("inspect rows.svm --json")[1]["cache"]
    assert cache == {"path": str(kept.cache_path), "bytes": kept.cache_bytes}


def test_methods_are_all_there_and_those_of_rows_can_be_made(ofs):
    code, data, _ = ofs("methods --json")
    found = data["methods"].values()
    named = {name for method in found for name in method["classes"].values()}
    assert code == 0 and named == {name for names in ofslib.ESTIMATORS.values() for name in names}
    for name, method in _options.known_methods().items():
        for task in method.classes if method.stream in ("rows", "averages") else ():
            model = _options.estimator(name, task, {"n_passes": 1})
            assert type(model).__name__ == method.classes[task]


def test_datasets_are_listed_fetched_and_verified(ofs, folder, monkeypatch):
    (folder / "mirror/tiny").mkdir(parents=True)
    (folder / "mirror/tiny/tiny.svm").write_text(TEXT)
    table = write_table(folder, cells(TEXT.encode(), n_train=str(N), n_features=str(P)))
    monkeypatch.setenv(download.MIRROR, str(folder / "mirror"))
    own = f" --registry {table} --folder here"
    assert ofs("datasets verify tiny" + own)[0] == 1
    assert ofs("datasets fetch tiny" + own)[:2] == (0, f"{Path('here/tiny/tiny.svm')}\n")
    code, out, _ = ofs("datasets verify" + own)
    assert code == 0 and out.startswith(f"whole    {Path('here/tiny/tiny.svm')}")
    assert ofs("select tiny -k 5" + own)[0] == 0
    Path("here/tiny/tiny.svm").write_text(TEXT[:-5])
    code, data, _ = ofs("datasets verify --json" + own)
    assert code == 1 and set(data["files"].values()) == {"damaged"}
    assert Path("here/tiny/tiny.svm").read_text() == TEXT[:-5], "nothing is fetched or removed"


# -------------------------------------------------- errors and progress


@pytest.mark.parametrize(
    "line, code, said",
    [
        ("select none.svm -k 5", 1, "none.svm"),
        ("select wrong.svm -k 5", 1, "wrong.svm, line 2"),
        ("select rows.svm -k 5 --set learning_rate=-1", 1, "ofslib: The 'learning_rate' parameter"),
        ("select rows.svm -k 5 --set k=4", 2, "give it by its own option, -k"),
        ("select rows.svm -k 5 --out missing.csv/x/y", 1, "missing.csv is no folder"),
        ("select rows.svm -k 5 --model place", 1, "place is a folder"),
        ("select rows.svm -k 5 --cache missing.csv", 1, "(--cache): missing.csv is a file"),
        ("select ones.svm -k 5", 1, "ones.svm: SFSAClassifier needs 2 classes, and all rows have"),
        ("select numbers.svm -k 5", 1, "numbers.svm: the labels are continuous, such as 0.25"),
        ("select amounts.svm -k 1", 1, "--task regression"),
        ("select rows.svm -k 2 --class-weight 1:2,1:5", 2, "a label is given twice"),
        ("select words.csv --label y -k 1 --task regression", 1, "y must be numbers"),
        ("select rows.svm -k 5 --passes 2 --n-features 7", 1, "n_features (--n-features)"),
        ("select nothing --registry none.csv -k 5", 1, "none.csv: no table of data sets"),
        ("select rows.svm -k 5 --method nothing", 2, "--method nothing: it does not exist"),
        ("select rows.svm --fdr 0.1 --method sfsa", 2, "--fdr: --method sfsa"),
        ("select rows.svm --fdr 1", 1, "'fdr' parameter"),
        ("select rows.svm -k 5 --method grafting", 2, "--method grafting: it reads columns"),
        ("select rows.svm -k 5 --method barda --task regression", 2, "--task regression"),
        ("select rows.svm -k 5 --method ols", 2, "-k: OLSClassifier does not choose"),
        ("select rows.svm -k 5 --method olsth --passes 2", 2, "--passes: OLSth"),
        ("select rows.svm -k 5 --set nonsense=1", 2, "--set nonsense"),
        ("select empty.svm -k 5", 1, "empty.svm: expected a row, got none"),
        ("predict rows.svm --model rows.svm", 1, "rows.svm is damaged"),
        ("datasets fetch", 2, "datasets fetch"),
        *((f"select rows.svm -k {k}", 2, "-k") for k in ("x", "0", "-5", "2.5", "5 --fdr 0.1")),
        ("select rows.svm -k bic", 2, "-k bic: SFSAClassifier keeps a number of features"),
        ("select rows.svm", 2, "-k"),
        ("datasets fetch nothing", 2, "'nothing'"),
        ("select rows.svm -k 5 --set k_=1 --set k_=2", 2, "k_ is given twice"),
        ("select rows.svm -k 5 --set a=BRACKETS", 2, "the value of a has too many brackets"),
        ("select rows.svm -k 5 --set nothing", 2, "expected NAME=VALUE, got 'nothing'"),
        ("select rows.svm -k NINES", 2, "expected a whole number from 1, got '999"),
        ("select rows.svm -k 5 --passes NINES", 2, "expected a whole number from 1, got '999"),
        ("select rows.svm -k 5 --set learning_rate=NINES", 1, "Got '999"),
        ("select words.csv --label NINES -k 1", 1, "(--label) is no column"),
    ],
)
def test_an_error_is_one_line_and_a_code(line, code, said, ofs, capsys):
    Path("wrong.svm").write_text("1 1:2\n1 1:x\n")
    Path("empty.svm").write_text("")
    Path("missing.csv").write_text("")
    Path("place").mkdir()
    Path("ones.svm").write_text("1 1:2\n1 1:3\n")
    Path("numbers.svm").write_text("0.5 1:2\n0.25 1:3\n")
    Path("words.csv").write_text("a,y\n1,no\n2,yes\n")
    Path("amounts.svm").write_text("".join(f"{y} 1:{y}\n" for y in range(0, 1000, 2)))
    line = line.replace("NINES", "9" * 5000).replace("BRACKETS", "[" * 100_000)
    try:
        found, out, err = ofs(line)
    except SystemExit as stopped:  # of argparse
        found, (out, err) = stopped.code, capsys.readouterr()
    assert (found, out) == (code, "")
    assert said in err and len(err.splitlines()) == 1 and "Traceback" not in err
    assert len(err) < 1000


def test_ctrl_c_says_how_to_go_on(ofs, monkeypatch):
    def interrupted(*given):
        raise KeyboardInterrupt

    monkeypatch.setattr(checkpoint_module, "_learn", interrupted)
    code, _, err = ofs("select rows.svm -k 5 --checkpoint run.ckpt")
    assert code == 130 and "goes on from run.ckpt" in err


# -------------------------------------------------- README


PAGES = ("README.md", "docs/using.md", "docs/command_line.md")


def blocks(kind):
    readme = "".join((ROOT / n).read_text("utf-8") for n in PAGES)
    [block] = re.findall(rf"<!-- {kind} -->\n```\w+\n(.*?)```", readme, re.S)
    return block


def test_the_readmes_own_data_give_features_and_predictions(folder, ofs):
    rng = np.random.default_rng(0)
    for name in ("clicks", "tomorrow"):
        cells = rng.integers(-2, 3, (400, 1201))
        cells[:, 1:6] *= 9
        cells[:, 0] = cells[:, 1:6].sum(axis=1) > 0
        names = ["clicked", *(f"ad {j}" for j in range(1200))]
        pd.DataFrame(cells, columns=names).to_csv(f"{name}.csv.gz", index=False)
    for line in filter(str.strip, blocks("shell: own data").splitlines()):
        name, *words = line.split()
        code, _, err = ofs(words)
        assert (name, code) == ("ofslib", 0), err
    assert pd.read_csv("features.csv")["feature"].str.startswith("ad ").all()
    assert len(pd.read_csv("predictions.csv")) == 400
    names: dict = {}
    exec(compile(blocks("python: own data"), "README.md", "exec"), names)
    assert np.mean(names["predicted"] == names["y"]) > 0.7
