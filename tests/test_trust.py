"""From a file to a model one can trust: what is promised of scores, k, jobs and memory."""

import csv
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, log_loss, roc_auc_score
from sklearn.utils import murmurhash3_32
from test_datasets import whole

import ofslib
from ofslib import fit_stream
from ofslib.cli import selecting
from ofslib.datasets import open_stream
from ofslib.streams import checkpoint, holdout, resources
from ofslib.streams.holdout import held_out, split

N, P = 3000, 30


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """rows.svm, in which every sixth feature counts, and the same rows as the table rows.csv."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N, P)).round(3)
    y = (X[:, 2::6].sum(axis=1) + rng.standard_normal(N) > 0).astype(int)
    write(tmp_path / "rows.svm", X, y)
    frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(P)])
    frame.assign(y=y).to_csv(tmp_path / "rows.csv", index=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(path, X, y):
    lines = (" ".join(f"{j + 1}:{v}" for j, v in enumerate(row)) for row in X)
    path.write_text("".join(f"{label} {line}\n" for label, line in zip(y, lines, strict=True)))


# -------------------------------------------------- rows held out


def test_a_share_of_the_rows_is_held_out_whatever_the_cuts():
    mask = held_out(0, 200_000, 0.1)
    assert abs(mask.mean() - 0.1) < 4 * np.sqrt(0.09 / len(mask))
    cuts = [held_out(first, 777, 0.1) for first in range(0, 7770, 777)]
    assert np.array_equal(np.concatenate(cuts), mask[:7770])
    lags = [np.mean(mask[lag:] & mask[:-lag]) for lag in (1, 2, 7, 100)]
    assert np.allclose(lags, 0.01, atol=0.002)  # as if drawn one by one


@pytest.mark.parametrize("cache", [True, False])
@pytest.mark.parametrize("block_rows", [1, 333, N])
def test_parts_are_the_rows_of_the_stream(cache, block_rows):
    X, y = whole(open_stream("rows.svm"))
    stream = open_stream("rows.svm", block_rows=block_rows, cache=cache).skip(100)
    mask = held_out(100, N - 100, 0.2)
    learned, held = split(stream, 0.2)
    for part, rows in ((learned, ~mask), (held, mask), (held, mask)):  # the last time from a file
        found = whole(part)
        assert part.n_rows == rows.sum() and (found[0] != X[100:][rows]).nnz == 0
        assert np.array_equal(found[1], y[100:][rows])
    for rows in (0, 1, 500, learned.n_rows - 1):
        assert np.array_equal(whole(learned.skip(rows))[1], y[100:][~mask][rows:])


@pytest.mark.parametrize("model", [ofslib.SFSAClassifier(k=5), ofslib.OLSthClassifier(k=5)])
def test_the_scores_are_those_of_the_model_on_rows_that_it_did_not_learn(model):
    stream = open_stream("rows.svm", block_rows=700)
    (X, y), mask = whole(stream), held_out(0, N, 0.1)
    fit_stream(model, stream, holdout=0.1)
    alike = type(model)(k=5)
    alike.set_params(**{"shuffle": False} if "shuffle" in alike.get_params() else {})
    alike.fit(X[~mask], y[~mask])
    assert np.allclose(model.coef_, alike.coef_, rtol=1e-9)
    X, y, scores = X[mask], y[mask], model.held_out_
    assert scores["rows"] == len(y)
    assert scores["accuracy"] == accuracy_score(y, model.predict(X))
    assert scores["auc"] == pytest.approx(roc_auc_score(y, model.decision_function(X)))
    if hasattr(model, "predict_proba"):
        assert scores["log_loss"] == pytest.approx(log_loss(y, model.predict_proba(X)))
    model.save("model.npz")
    assert type(model).load("model.npz").held_out_ == scores
    model.partial_fit(X, y)  # what was held out is learned now
    assert not hasattr(model, "held_out_")


def test_a_job_goes_on_only_with_the_rows_it_held_out(ofs):
    first = ofs("select rows.svm -k 5 --checkpoint run.ckpt --json")[1]
    again = ofs("select rows.svm -k 5 --checkpoint run.ckpt --json")[1]
    assert first["held_out"] == again["held_out"]
    for other in ("0", "0.2"):
        code, _, err = ofs(f"select rows.svm -k 5 --checkpoint run.ckpt --holdout {other}")
        assert code == 1 and f"holdout={other} (--holdout) differs from holdout=0.1" in err


# -------------------------------------------------- k features are the contract


@pytest.mark.parametrize("method", ["sfsa", "ofsa"])
def test_several_k_are_the_models_of_each(ofs, method):
    command = f"select rows.svm --method {method} --json"
    code, data, _ = ofs(f"{command} -k 2,5,9 --model model.npz --plot k.png")
    each = [{"k": k, **ofs(f"{command} -k {k}")[1]["held_out"]} for k in (2, 5, 9)]
    assert data["path"] == each
    best = max(each, key=lambda one: one["auc"])
    written = getattr(ofslib, data["estimator"]).load("model.npz")
    assert (code, written.k) == (0, best["k"])
    assert Path("k.png").read_bytes().startswith(b"\x89PNG")


def test_k_is_that_of_all_labels(ofs):
    rng = np.random.default_rng(2)
    X = rng.standard_normal((1500, 20)).round(2)
    write(Path("six.svm"), X, (X[:, :8] @ rng.standard_normal((8, 6))).argmax(axis=1))
    assert len(ofs("select six.svm -k 7 --json")[1]["selected"]) == 7
    code, _, err = ofs("select six.svm -k 7 --method arda")
    assert code == 2 and "--per-class" in err
    found = ofs("select six.svm -k 7 --method arda --per-class --json")[1]
    assert len(found["selected"]) > 7


def test_a_model_finds_its_columns_by_name(ofs, folder):
    assert ofs("select rows.csv --label y -k 5 --model model.npz")[0] == 0
    assert ofs("predict rows.csv --model model.npz --out said.csv")[0] == 0
    frame, model = pd.read_csv("rows.csv"), ofslib.SFSAClassifier.load("model.npz")
    own = [f"x{j}" for j in model.support_]
    frame.assign(new=1.5)[["new", *own[::-1]]].to_csv("other.csv", index=False)
    assert ofs("predict other.csv --model model.npz --out other_said.csv")[0] == 0
    assert Path("other_said.csv").read_text() == Path("said.csv").read_text()
    frame.drop(columns=own[0]).to_csv("other.csv", index=False)
    code, _, err = ofs("predict other.csv --model model.npz")
    assert code == 1 and f"there is no '{own[0]}', which is needed" in err


def test_probabilities_are_those_of_the_model(ofs):
    ofs("select rows.csv --label y -k 5 --model model.npz")
    ofs("predict rows.csv --label y --model model.npz --proba --out said.csv")
    frame, model = pd.read_csv("rows.csv"), ofslib.SFSAClassifier.load("model.npz")
    said = pd.read_csv("said.csv")
    assert list(said) == ["prediction", "probability of 0", "probability of 1"]
    proba = model.predict_proba(frame.drop(columns="y"))
    np.testing.assert_allclose(said.iloc[:, 1:], proba, rtol=1e-9)
    ofs("select rows.csv --label y -k 5 --method olsth --model averages.npz")
    assert ofs("predict rows.csv --model averages.npz --proba")[0] == 2


def test_hashed_columns_come_back_as_words(ofs):
    """Every word that shares the column of a selected one is named."""
    words = [f"word{j}" for j in range(40)]
    lines = [f"{i % 2} |t {words[i % 2]}:2.5 {words[i % 37 + 3]} |{words[2]}" for i in range(600)]
    Path("words.vw").write_text("\n".join(lines) + "\n")
    out = "select words.vw --hashed --n-features 31 -k 3 --out features.csv"
    assert ofs(out)[0] == 0
    names = {f"t^{word}" for word in [*words[:2], *words[3:]]} & {
        f"t^{word}" for line in lines for word in words if f"{word} " in line or f"{word}:" in line
    }
    with open("features.csv") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        column = int(row["feature"])
        alike = sorted(n for n in names if abs(murmurhash3_32(n.encode())) % 31 == column)
        assert row["words"].split(" or ") == alike


# -------------------------------------------------- rare classes


def test_weights_of_labels_are_those_of_the_estimator(ofs):
    stream = open_stream("rows.svm")
    (_, y), given = whole(stream), {1.0: 9.0, 0.0: 1.0}
    counts = np.bincount(y.astype(int))
    balanced = {label: len(y) / 2 / count for label, count in enumerate(counts)}
    for word, weights in (("1:9,0:1", given), ("balanced", balanced)):
        line = f"select rows.svm -k 5 --holdout 0 --class-weight {word} --model model.npz"
        assert ofs(line)[0] == 0
        model = ofslib.SFSAClassifier.load("model.npz")
        assert model.class_weight == pytest.approx(weights)
        expected = fit_stream(ofslib.SFSAClassifier(k=5, class_weight=weights), stream)
        assert np.allclose(model.coef_, expected.coef_, rtol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("share", [0.005, 0.01, 0.02])
def test_rare_clicks_are_ranked_as_by_liblinear(share):
    """200 of 2,000 features count; a threshold sets how many rows are clicks."""
    rng = np.random.default_rng(4)
    X = sp.random_array((60_000, 2000), density=0.02, rng=rng, format="csr")
    X.data[:] = 1.0
    w = np.where(np.arange(2000) < 200, rng.standard_normal(2000), 0.0)
    margin = X @ w + rng.logistic(size=60_000) * 0.5
    y = (margin > np.quantile(margin, 1 - share)).astype(int)
    train, test = slice(0, 45_000), slice(45_000, None)
    ours = ofslib.SFSAClassifier(k=200, random_state=0, n_passes=3).fit(X[train], y[train])
    theirs = max(
        roc_auc_score(
            y[test],
            LogisticRegression(l1_ratio=1.0, C=C, solver="liblinear")
            .fit(X[train], y[train])
            .decision_function(X[test]),
        )
        for C in (0.1, 1.0)
    )
    assert roc_auc_score(y[test], ours.decision_function(X[test])) > theirs - 0.03


# -------------------------------------------------- one input for the whole job


@pytest.mark.parametrize("checkpoint", [None, "run.ckpt"])
@pytest.mark.parametrize("cache", [True, False])
@pytest.mark.parametrize("at", [0, 4, 9])
def test_a_file_that_is_replaced_makes_no_model(monkeypatch, at, cache, checkpoint):
    """During the first pass of two, at its end, or in the second; also one written over in place.

    It has as many rows, of as many bytes, as before: neither number tells.
    """
    other, model = Path("rows.svm").read_text().replace("1 1:", "0 1:", 5), ofslib.SFSAClassifier
    learn, seen = model.partial_fit, []

    def partial_fit(self, *args, **kwargs):
        seen.append(1)
        if len(seen) == at + 1:
            Path("new").write_text(other)
            shutil.copyfile("new", "rows.svm") if checkpoint else Path("new").replace("rows.svm")
        return learn(self, *args, **kwargs)

    monkeypatch.setattr(model, "partial_fit", partial_fit)
    new = model(k=5, n_passes=2)
    remove = f"remove {checkpoint} and " if checkpoint else ""
    said = rf"rows\.svm: its rows changed while they were learned; {remove}begin anew"
    with pytest.raises(ValueError, match=said):
        fit_stream(new, open_stream("rows.svm", block_rows=600, cache=cache), checkpoint)
    assert not hasattr(new, "coef_")


def test_a_second_job_with_a_checkpoint_is_refused(monkeypatch):
    program = "import ofslib, sys; from ofslib.datasets import open_stream as o\n"
    program += "ofslib.fit_stream(ofslib.SFSAClassifier(k=9), o('rows.svm'), 'run.ckpt')"
    model, said = ofslib.SFSAClassifier, []
    learn = model.partial_fit

    def partial_fit(self, *args, **kwargs):
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
        said.append(done.stderr)
        return learn(self, *args, **kwargs)

    monkeypatch.setattr(model, "partial_fit", partial_fit)
    fit_stream(model(k=5), open_stream("rows.svm"), "run.ckpt")
    assert len(said) == 1 and "another job learns with it" in said[0]
    assert not list(Path().glob("*.lock"))


# -------------------------------------------------- the machine is known before work


@pytest.mark.parametrize(
    ("lines", "command", "way"),
    [
        ("1 1:1\n0 2:1 200000000:1\n", "-k 1", "--hashed --n-features"),
        ("1 1:1\n0 2:1 50000:1\n", "-k 1 --method ofsa", "--method sfsa"),
        ("1 1:1\n0 2:1 50000:1\n", "--fdr 0.1", "--method sfsa"),
        (
            "".join(f"{i % 400} {i + 1}:1\n" for i in range(40_000)),
            "-k 1 --block-rows 40000",
            "--task regression",
        ),
    ],
)
def test_too_much_memory_is_refused_before_it_is_taken(ofs, monkeypatch, lines, command, way):
    monkeypatch.setattr(resources, "free_bytes", lambda: 2e9)
    Path("wide.svm").write_text(lines)
    code, _, err = ofs(f"select wide.svm {command}")
    assert code == 1 and "needs about" in err and way in err


def test_the_estimate_is_what_learning_takes():
    """Twice the state, which is what is kept while a block is learned."""
    import tracemalloc

    stream = open_stream([(sp.csr_array(([1.0], ([0], [10**6 - 1])), (2, 10**6)), [0, 1])])
    model = ofslib.SFSAClassifier(k=5)
    fit_stream(ofslib.SFSAClassifier(k=5), stream)  # compiles
    tracemalloc.start()
    fit_stream(model, stream)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert 0.5 < resources.state_bytes(model, 10**6) / peak < 2


# -------------------------------------------------- nothing learned is lost at the end


@pytest.mark.parametrize(
    "options",
    [
        "-k 2 --plot k.png",
        "-k 2,3 --holdout 0 --plot k.png",
        "-k 2,3 --plot k.xyz",
        "--fdr 0.2 --plot k.png",
        "-k 2 --test missing.svm",
    ],
)
def test_what_would_fail_at_the_end_is_said_before_a_row_is_learned(ofs, monkeypatch, options):
    monkeypatch.setattr(selecting, "_learned", None)
    code, _, err = ofs(f"select rows.svm {options}")
    assert code in (1, 2) and ("--plot: " in err or "no file" in err)


def test_columns_that_are_ignored_need_not_be_in_a_later_file(ofs):
    frame = pd.read_csv("rows.csv")
    frame.assign(id=[f"n{i}" for i in range(N)]).to_csv("ids.csv", index=False)
    line = "select ids.csv --label y --ignore id -k 3 --model model.npz --json --test rows.csv"
    code, data, _ = ofs(line)
    assert code == 0 and data["held_out"]["rows"] == N
    assert ofs("predict rows.csv --label y --ignore id --model model.npz --out said.csv")[0] == 0


@pytest.mark.parametrize("options", ["", "--no-cache"])
def test_several_k_are_of_one_file(ofs, monkeypatch, options):
    learned = selecting._learned

    def replaces(*args):
        model = learned(*args)
        lines = Path("rows.svm").read_text().splitlines(keepends=True)
        Path("rows.svm").write_text("".join(lines[1:] + lines[:1]))
        return model

    monkeypatch.setattr(selecting, "_learned", replaces)
    code, _, err = ofs(f"select rows.svm -k 2,3 --model model.npz {options}")
    assert code == 1 and "its rows changed" in err and not Path("model.npz").exists()


def test_without_a_score_no_model_is_called_the_best(ofs):
    code, out, _ = ofs("select rows.svm -k 2,3 --holdout 0 --model model.npz")
    assert code == 0 and "the first, as there is no score: written" in out


def test_without_room_for_held_out_rows_the_text_is_parsed_again(monkeypatch):
    stream = open_stream("rows.svm", cache=False, block_rows=500)
    fitted = fit_stream(ofslib.SFSAClassifier(k=5), stream, holdout=0.1)
    full = partial(open, "/dev/full", "r+b")
    for no_room in (full, Mock(side_effect=FileNotFoundError("no temporary folder"))):
        monkeypatch.setattr(holdout.tempfile, "TemporaryFile", no_room)
        model = fit_stream(ofslib.SFSAClassifier(k=5), stream, holdout=0.1)
        assert model.held_out_ == fitted.held_out_


def test_no_lock_is_left_of_a_job_that_failed(ofs):
    assert ofs("select rows.svm -k 2 --class-weight 7:2 --checkpoint run.ckpt")[0] == 1
    assert not list(Path().glob("*.lock"))


def test_a_model_that_could_not_be_scored_is_as_it_was(monkeypatch):
    model, stream = ofslib.SFSAClassifier(k=3), open_stream("rows.svm")
    with pytest.raises(ValueError, match="X has 3 features"):
        fit_stream(model, stream, test=[(np.ones((2, 3)), np.zeros(2))])
    text = Path("rows.svm").read_text()
    monkeypatch.setattr(checkpoint, "evaluate", lambda *_: Path("rows.svm").write_text(text + text))
    with pytest.raises(ValueError, match="its rows changed"):
        fit_stream(model, stream, holdout=0.1)
    assert not hasattr(model, "coef_") and vars(model) == vars(ofslib.SFSAClassifier(k=3))
