"""Model files: whole or refused, going on bit for bit, and nothing in them is run."""

import hashlib
import io
import json
import os
import pickle
import re
import shutil
import subprocess
import sys
import zipfile
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import is_classifier
from sklearn.exceptions import NotFittedError

import ofslib
from ofslib import _model_files
from ofslib.averages import RunningAverages
from ofslib.streams.average_stream import AverageSelector
from ofslib.streams.column_stream import ColumnScan, ColumnStream, ScoredSelector
from ofslib.streams.parameters import POSITIVE, estimator, param
from ofslib.streams.row_stream import RowRegressor, RowStream
from ofslib.streams.selector import Regressor

ROOT = Path(__file__).parents[1]
N, P, K = 60, 12, 3
RNG = np.random.default_rng(0)
X = RNG.standard_normal((2 * N, P))
F = X[:, [1, 4, 8]] @ [1.0, -2.0, 1.5] + 0.1 * RNG.standard_normal(2 * N)


# Methods of a user


class Sums(NamedTuple):
    w: np.ndarray  # (p + 1,)
    rows: np.ndarray  # (1,) int64


@estimator
class OwnRows(RowRegressor, RowStream):
    """Covariances with y."""

    learning_rate: float = param("Step.", POSITIVE, default=0.01)

    def _new_state(self, n_features):
        return Sums(np.zeros(n_features + 1), np.zeros(1, np.int64))

    def _read_hyper(self, n_rows, **own):
        return None

    def _learn_block(self, state, block):
        for r, i in enumerate(block.order):
            block.margins[r] = block.X[i] @ state.w[:-1]
            state.w[:-1] += self.learning_rate * block.y[i] * block.X[i]
            state.rows[0] += 1
        return len(block.order)


@estimator
class OwnAverages(Regressor, AverageSelector):
    """The k features with the largest covariances."""

    def _coefs(self, standard, ks):
        order = np.argsort(-np.abs(standard.S_xy), kind="stable")
        return np.array([self._refit(standard, np.sort(order[:k])) for k in ks])


class Seen(NamedTuple):
    index: list[int]
    best: dict[int, float]


@estimator
class OwnColumns(ColumnStream):
    """Columns with a large mean square."""

    def _new_state(self, n):
        return Seen([], {})

    def _learn_block(self, state, block):
        for values, j in zip(block.values, block.index, strict=True):
            if (square := float(np.square(values).mean())) > 1:
                state.index.append(int(j))
                state.best[int(j)] = square
        return state


OWN = (OwnRows, OwnAverages, OwnColumns)
CLASSES = [getattr(ofslib, n) for names in ofslib.ESTIMATORS.values() for n in names] + [*OWN]
every_class = pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)


def variants(cls):
    """Parameters under which the state differs in kind."""
    names = set(cls().get_params())
    seed = {"random_state": 0} if "random_state" in names else {}
    found = [{"k": K} if "k" in names else {}]
    if cls is ofslib.OnlineLeverageSelector:
        found = [{"k": None, "rate": 1.0}]  # a rate for k needs all columns at once
    elif None in cls._parameter_constraints.get("k", ()):
        found.append({"k": None})  # one penalty, not a grid
    if "optimizer" in names:
        found += [{"optimizer": "adam", "learning_rate": 0.01}, {"learning_rate": 0.01}]
    return [own | seed for own in found]


def targets(model):
    return np.where(F > 0, "up", "down") if is_classifier(model) else F


def shown(model, first, last):
    """The model after rows, or columns, from `first` to `last` of two parts."""
    y = targets(model)
    if isinstance(model, ColumnStream):
        half = P // 2
        for part in range(first, last):
            X_new = X[:N, half * part : half * (part + 1)]
            model.partial_fit_columns(X_new, y[:N] if part == 0 else None)
    elif isinstance(model, ScoredSelector) or not hasattr(model, "partial_fit"):
        if first == 0:
            model.fit(X, y)
    else:
        known = {"classes": ["down", "up"]} if is_classifier(model) else {}
        for part in range(first, last):
            model.partial_fit(X[N * part : N * (part + 1)], y[N * part : N * (part + 1)], **known)
    return model


def bits(model):
    """All that the model is, as bytes."""
    text, arrays = encoded(model)
    return repr(text), [array.tobytes() for array in arrays]


def facts(model):
    """All that is known of the model from outside; scratch memory may differ."""
    names = [name for name in dir(model) if name.endswith("_") and not name.startswith("_")]
    found = {name: getattr(model, name, None) for name in names}
    if "averages_" in found:
        found["averages_"] = found["averages_"].S_xx
    if "components_" in found:
        found["components_"] = found["components_"].toarray()
    return {name: pickle.dumps(value) for name, value in found.items()}


def encoded(model):
    """What the file holds of the model: the head's parts, and the arrays."""
    arrays = []
    return [_model_files._code(v, n, arrays) for n, v in sorted(model._parts().items())], arrays


@every_class
def test_going_on_from_a_file_is_never_having_stopped(cls, tmp_path):
    path = tmp_path / "some folder" / "model"
    for own in variants(cls):
        whole = shown(cls(**own), 0, 2)
        model = shown(cls(**own), 0, 1)
        model.save(path)
        again = cls.load(path)
        assert bits(again) == bits(model) and type(again) is cls
        assert [file.name for file in path.parent.iterdir()] == ["model"]
        assert facts(shown(again, 1, 2)) == facts(whole)
        if hasattr(model, "predict"):
            assert np.array_equal(again.predict(X), whole.predict(X))


@every_class
def test_what_was_fitted_transforms_as_before(cls, tmp_path):
    frame = pd.DataFrame(X).add_prefix("column ")
    model = cls(**variants(cls)[0])
    model.fit(frame, targets(model)).save(tmp_path / "model")
    again = cls.load(tmp_path / "model")
    assert again.feature_names_in_.tolist() == list(frame.columns)
    assert again.get_params() == model.get_params()
    again.save(tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == (tmp_path / "model").read_bytes()
    one, two = (m.transform(frame) for m in (model, again))
    one, two = (a.toarray() if sp.issparse(a) else np.asarray(a) for a in (one, two))
    assert np.array_equal(one, two)


def test_a_model_of_nothing_is_kept(tmp_path):
    ofslib.SFSARegressor(k=7, random_state=np.random.RandomState(3)).save(tmp_path / "model")
    again = ofslib.SFSARegressor.load(tmp_path / "model")
    assert again.k == 7 and again.random_state.rand() == np.random.RandomState(3).rand()
    with pytest.raises(NotFittedError):
        _ = again.coef_


def test_parameters_may_be_numbers_of_numpy(tmp_path):
    model = OwnRows(n_passes=np.int64(2)).fit(X, F)
    model.save(tmp_path / "model")
    assert bits(OwnRows.load(tmp_path / "model")) == bits(model)


@pytest.mark.parametrize("labels", [["a", "b"], [3, 7], [False, True], [-1.0, 1.0]])
@pytest.mark.parametrize("dtype", [None, object])
def test_labels_are_kept(tmp_path, labels, dtype):
    y = np.where(F > 0, *np.array(labels, dtype=dtype)[::-1])
    model = ofslib.BARDAClassifier(k=K).fit(X, y)
    model.save(tmp_path / "model")
    again = ofslib.BARDAClassifier.load(tmp_path / "model")
    assert again.classes_.tolist() == labels and again.classes_.dtype == model.classes_.dtype
    assert again.predict(X).tolist() == model.predict(X).tolist()


def test_the_file_is_an_npz_that_numpy_reads(tmp_path):
    ofslib.OLSRegressor().fit(X, F).save(tmp_path / "model.npz")
    with np.load(tmp_path / "model.npz") as archive:
        head = json.loads(archive["head.json"])
        assert head["class"] == "ofslib.algorithms.ols:OLSRegressor"
        assert head["ofslib"] == ofslib.__version__ and head["version"] == 2
        assert any(archive[name].shape == (P + 1, P + 1) for name in archive if name != "head.json")


# -------------------------------------------------- damage


@pytest.fixture(
    params=["rows", "averages", "columns", "moments"],
)
def saved(request, tmp_path):
    made = {
        "rows": lambda: ofslib.SFSAClassifier(k=K).fit(X, targets(ofslib.SFSAClassifier())),
        "averages": lambda: ofslib.OFSARegressor(k=K).fit(X, F),
        "columns": lambda: ofslib.OnlineSubstitution(k=K).fit(X, F),
        "moments": lambda: RunningAverages(P).update(X, F),
    }
    model = made[request.param]()
    model.save(tmp_path / "model.npz")
    return type(model), tmp_path / "model.npz"


def refused(cls, path, because=""):
    with pytest.raises(ValueError, match=re.escape(str(path)) + ".*" + re.escape(because)):
        cls.load(path)


def test_every_flipped_bit_is_noticed(saved):
    cls, path = saved
    whole = bytearray(path.read_bytes())
    for bit in np.random.default_rng(0).choice(8 * len(whole), 300, replace=False):
        whole[bit // 8] ^= 1 << (bit % 8)
        path.write_bytes(whole)
        refused(cls, path, "is damaged, cut short, or not written by save: its checksum is wrong")
        whole[bit // 8] ^= 1 << (bit % 8)
    path.write_bytes(whole)
    cls.load(path)


def test_a_file_that_is_cut_or_longer_is_refused(saved):
    cls, path = saved
    whole = path.read_bytes()
    for content in (b"", whole[:1], whole[:70], whole[: len(whole) // 2], whole[:-1], whole + b"0"):
        path.write_bytes(content)
        refused(cls, path, "checksum")


def test_other_classes_and_files_are_refused(saved, tmp_path):
    cls, path = saved
    own = f"expected a saved SGDTClassifier, got a saved {cls.__name__}: call {cls.__name__}.load"
    refused(ofslib.SGDTClassifier, path, own)
    for content in (pickle.dumps([1]), b"label,feature\n" * 20):
        path.write_bytes(content)
        refused(cls, path, "not written by save")
    np.savez(path, a=np.zeros(3))
    refused(cls, path, "not written by save")
    with pytest.raises(FileNotFoundError):
        cls.load(tmp_path / "missing")


# -------------------------------------------------- files made by hand, with a right checksum


def forged(path, change=lambda head: None, members=None):
    """The file with another head and other members."""
    with zipfile.ZipFile(path) as archive:
        content = {name: archive.read(name) for name in archive.namelist()}
    head = json.loads(content["head.json"])
    content["head.json"] = json.dumps(change(head) or head).encode()
    content |= members(content) if members else {}
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in content.items():
            archive.writestr(name, text)
        archive.comment = bytes(64)
    whole = path.read_bytes()[:-64]
    path.write_bytes(whole + hashlib.sha256(whole).hexdigest().encode())


def test_a_file_made_again_is_read(saved):
    cls, path = saved
    forged(path)
    cls.load(path)


def npy(shape, dtype="<f8", fortran=False):
    text = io.BytesIO()
    described = {"shape": shape, "fortran_order": fortran, "descr": dtype}
    np.lib.format.write_array_header_1_0(text, described)
    return text.getvalue()


HEADS = {
    "a newer version": (
        lambda h: h.update(version=3, ofslib="9.0"),
        f"(written by ofslib 9.0, this is {ofslib.__version__})",
    ),
    "another format": (lambda h: h.update(format="x"), "its format is 'x'"),
    "no class": (lambda h: h.pop("class") and None, "class"),
    "a list": (lambda h: [1], ""),
    "parts that are none": (lambda h: h.update(learned=7), ""),
    "an array that is not there": (lambda h: h["learned"].update(_frozen={"array": 999}), ""),
    "an unknown kind": (lambda h: h["learned"].update(_x={"pickle": "os:system"}), "os:system"),
    "preprocessing": (lambda h: h.update(preprocessing={}), "it has preprocessing, which this"),
    "nothing but depth": (
        lambda h: h["learned"].update(_x=json.loads("[" * 900 + "]" * 900)),
        "",
    ),
}


@pytest.mark.parametrize("what", HEADS)
def test_a_forged_head_is_refused(saved, what):
    (cls, path), (change, because) = saved, HEADS[what]
    forged(path, change)
    refused(cls, path, because)


MEMBERS = {
    "huge": lambda c: {n: npy((10**9, 10**9)) + t[128:] for n, t in c.items() if n == "0.npy"},
    "negative": lambda c: {"0.npy": npy((-1, -1)) + c["0.npy"][128:]},
    "short": lambda c: {n: t[:-8] for n, t in c.items() if n != "head.json"},
    "objects": lambda c: {"0.npy": npy((3,), "|O") + c["0.npy"][128:]},
    "pickled": lambda c: {"0.npy": pickle.dumps([1])},
    "text of no width": lambda c: {"0.npy": npy((10**9,), "<U0")},
    "empty": lambda c: {"0.npy": b""},
}


@pytest.mark.parametrize("what", MEMBERS)
def test_a_forged_array_is_refused_before_memory_is_taken(saved, what):
    cls, path = saved
    forged(path, members=MEMBERS[what])
    refused(cls, path)


def part(owner, name):
    """Where a part of the averages stands in the head."""
    return (
        (lambda h: h["learned"])
        if owner is RunningAverages
        else (lambda h: h["learned"]["_state"]["fields"])
    )


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("n", -3), ("n", 2.5), ("n", 0), ("n_features", 10**9), ("n_features", P + 1),
        ("n_features", -1), ("_weight", -1.0), ("_weight", float("nan")), ("_folded", "1"),
        ("_rate", 2.0), ("_per", "row"), ("block_rows", 10**12), ("block_rows", 0),
        ("block_rows", 2.0), ("_C", {"array": 1}), ("_mean", {"array": 4}), ("_spent", "x"),
        ("_rows", [1.0]),
    ],
)  # fmt: skip
@pytest.mark.parametrize("cls", [RunningAverages, ofslib.OFSARegressor])
def test_forged_averages_are_refused(tmp_path, cls, name, value):
    model = cls(P).update(X, F) if cls is RunningAverages else cls(k=K).fit(X, F)
    model.save(tmp_path / "a")
    where = part(cls, name)
    forged(tmp_path / "a", lambda head: where(head).update({name: value}))
    refused(cls, tmp_path / "a")


@pytest.mark.parametrize("place", [(0, 0), (2, 5), (P, P)])
@pytest.mark.parametrize("value", [-1.0, np.nan, np.inf])
def test_forged_comoments_are_refused(tmp_path, place, value):
    a = RunningAverages(P).update(X, F)._settled(spend=True)
    a._C[place] = value
    if value == -1 and place[0] != place[1]:
        return
    a.save(tmp_path / "a")
    refused(RunningAverages, tmp_path / "a", "upper triangle")


@pytest.mark.parametrize("n", [-1, 0, P - 1, P + 1, 10**12, 2.5, "x"])
@pytest.mark.parametrize("cls", [ofslib.SFSARegressor, ofslib.OLSRegressor, OwnRows])
def test_a_forged_number_of_features_is_refused(tmp_path, cls, n):
    cls().fit(X, F).save(tmp_path / "model")
    forged(tmp_path / "model", lambda head: head["learned"].update(n_features_in_=n))
    refused(cls, tmp_path / "model")


def test_forged_arrays_of_kernels_are_refused(tmp_path):
    """They would read and write beyond them."""
    for cls, name in ((ofslib.BARDAClassifier, "support"), (ofslib.OnlineSubstitution, "index")):
        model = cls(k=K).fit(X, targets(cls()))
        state = model._state if cls is ofslib.BARDAClassifier else model._state.working_set
        model.save(tmp_path / "model")
        place = encoded(model)[1]
        place = next(i for i, a in enumerate(place) if a is getattr(state, name))
        short = io.BytesIO()
        np.save(short, getattr(state, name)[:-1])
        forged(tmp_path / "model", members=lambda c, i=place, s=short: {f"{i}.npy": s.getvalue()})
        refused(cls, tmp_path / "model", f"{name} is ")


def changed_arrays(path, model, find, change):
    """The file, with other values in some arrays of the model's state."""

    def members(content):
        arrays = encoded(model)[1]
        place = next(i for i, array in enumerate(arrays) if array is find(model._state))
        array, text = arrays[place].copy(), io.BytesIO()
        change(array)
        np.save(text, array)
        return {f"{place}.npy": text.getvalue()}

    model.save(path)
    forged(path, members=members)


@pytest.mark.parametrize(
    "cls", [ofslib.SFSAClassifier, ofslib.OPGRegressor, ofslib.BARDAClassifier]
)
def test_an_array_without_the_one_element_it_has_is_refused(tmp_path, cls):
    """Compiled code would write where it should be; of any array of one element."""
    model = cls(k=K).fit(X, targets(cls()))
    model.save(tmp_path / "whole")
    arrays = encoded(model)[1]
    places = [i for i, array in enumerate(arrays) if array.shape == (1,)]
    assert places
    for place in places:
        empty = io.BytesIO()
        np.save(empty, arrays[place][:0])
        path = shutil.copy(tmp_path / "whole", tmp_path / "model")
        forged(path, members=lambda content, i=place, a=empty: {f"{i}.npy": a.getvalue()})
        refused(cls, path, "of the shape (0,)")


def assign(place, value):
    return lambda array: array.__setitem__(place, value)


BEYOND = {
    "SFSA index": ("SFSAClassifier", lambda s: s.active.index, assign(0, 10**6)),
    "SFSA size": ("SFSAClassifier", lambda s: s.active.size, assign(0, P + 1)),
    "SFSA touched": ("SFSAClassifier", lambda s: s.batch.touched, assign(-1, P)),
    "SFSA count": ("SFSAClassifier", lambda s: s.batch.count, assign(0, P + 2)),
    "SOFS heap": ("SOFSClassifier", lambda s: s.heap, assign(0, -1)),
    "SOFS place": ("SOFSClassifier", lambda s: s.place, assign(0, K + 1)),
    "B-ARDA heap": ("BARDAClassifier", lambda s: s.heap, assign(0, P)),
    "B-ARDA place": ("BARDAClassifier", lambda s: s.place, assign(0, -(2**31))),
    "B-AMD support": ("BAMDClassifier", lambda s: s.support, assign(2, 2**32 - 1)),
    "OPG touched": ("OPGRegressor", lambda s: s.grid.n_touched, assign(0, 10**6)),
    "column": ("OnlineSubstitution", lambda s: s.working_set.index, assign(0, P)),
    "columns in use": ("OnlineSubstitution", lambda s: s.working_set.size, assign(0, K + 2)),
    "a worker's": ("AsyncOnlineSubstitution", lambda s: s.workers[1].size, assign(0, -1)),
}


@pytest.mark.parametrize("what", BEYOND)
def test_indices_beyond_the_arrays_are_refused(tmp_path, what):
    """Compiled code would read and write there."""
    name, find, change = BEYOND[what]
    cls = getattr(ofslib, name)
    model = cls(**variants(cls)[0])
    model.fit(X, targets(model))
    changed_arrays(tmp_path / "model", model, find, lambda array: None)
    cls.load(tmp_path / "model")
    changed_arrays(tmp_path / "model", model, find, change)
    refused(cls, tmp_path / "model", "has an index out of bounds")


def test_hyper_parameters_are_made_anew(tmp_path):
    """Another optimizer than that of the state would write beyond its arrays."""
    path, model = tmp_path / "model", ofslib.SFSARegressor(k=K, learning_rate=0.01).fit(X, F)
    model.save(path)

    def change(head):
        for name in ("_learned_with", "_frozen"):
            for pair in head["learned"][name]["dict"]:
                pair[1] = "adam" if pair[0] == "optimizer" else pair[1]

    forged(path, change)
    refused(
        ofslib.SFSARegressor, path, "_state.memory.mean is float64 of the shape (1,), not float64"
    )
    model.set_params(k=1).save(path)
    again = ofslib.SFSARegressor.load(path)
    assert again._hyper == model._hyper and again._hyper.k == K and again.k == 1
    model._n_rows = -5
    model.save(path)
    refused(ofslib.SFSARegressor, path, "it was told of -5 rows")


WITH_DEFAULTS = [cls for cls in CLASSES if cls().get_params().keys() - variants(cls)[0].keys()]


@pytest.mark.parametrize("cls", WITH_DEFAULTS, ids=lambda cls: cls.__name__)
def test_a_file_of_an_older_version_lacks_new_parameters(tmp_path, cls):
    """They have their defaults."""
    path, model = tmp_path / "model", shown(cls(**variants(cls)[0]), 0, 1)
    default = cls().get_params()
    lacking = [n for n, value in model.get_params().items() if value == default[n]]
    model.save(path)

    def older(head):
        for name in lacking:
            del head["parameters"][name]
        for known in ("_frozen", "_learned_with"):
            if known in head["learned"]:
                pairs = head["learned"][known]["dict"]
                pairs[:] = [pair for pair in pairs if pair[0] not in lacking]

    forged(path, older)
    again = cls.load(path)
    assert again.get_params() == model.get_params()
    assert facts(shown(again, 1, 2)) == facts(shown(model, 1, 2))


def test_a_file_with_a_parameter_that_is_gone_is_refused_by_its_name(tmp_path):
    """As what was learned until then may not be gone on with."""
    path = tmp_path / "model"
    ofslib.SFSARegressor(k=K).fit(X, F).save(path)
    forged(path, lambda h: h["learned"]["_learned_with"]["dict"].append(["step", "spectral"]))
    refused(ofslib.SFSARegressor, path, "it has parameters that are not known: step")


def test_another_version_is_named_whatever_else_is_wrong(tmp_path):
    ofslib.OLSRegressor().fit(X, F).save(tmp_path / "model")
    forged(tmp_path / "model", lambda head: head.update(ofslib="0.0.7"))
    ofslib.OLSRegressor.load(tmp_path / "model")
    version = f"(written by ofslib 0.0.7, this is {ofslib.__version__})"
    refused(ofslib.SFSARegressor, tmp_path / "model", version)
    forged(tmp_path / "model", lambda head: head["learned"].update(n_features_in_=3))
    refused(ofslib.OLSRegressor, tmp_path / "model", version)


# -------------------------------------------------- files of other versions


ROWS = (ofslib.SFSAClassifier, ofslib.OFSARegressor, ofslib.OnlineSubstitution)
ROWS += (ofslib.OnlineLeverageSelector,)


def only_predicts(cls, path, whole, because):
    """What is read predicts as before, and says why it does not go on learning."""
    again, rows = cls.load(path), X[:, : whole.n_features_in_]
    for _ in range(2):
        assert np.array_equal(again.transform(rows), whole.transform(rows))
        if hasattr(whole, "predict"):
            assert np.array_equal(again.predict(rows), whole.predict(rows))
        with pytest.raises(ValueError, match=f"does not go on learning: .*{because}"):
            shown(again, 1, 2)
        again = pickle.loads(pickle.dumps(again))
        again.save(path)
        again = cls.load(path)
    assert facts(again.fit(X, targets(again))) == facts(
        type(again)(**whole.get_params()).fit(X, targets(again))
    )


@pytest.mark.parametrize("cls", ROWS, ids=lambda cls: cls.__name__)
def test_a_state_of_another_version_predicts_and_does_not_learn(tmp_path, cls):
    path, model = tmp_path / "model", shown(cls(**variants(cls)[0]), 0, 1)
    model.save(path)

    def other(head):
        fields = head["learned"]["_state"]["fields"]
        fields["former"] = fields.pop(list(fields)[-1])

    forged(path, other)
    refused(cls, path, "has the parts")  # of this version it cannot be
    forged(path, lambda head: head.update(ofslib="0.0.7"))
    only_predicts(cls, path, model, "former")


@pytest.mark.parametrize("cls", ROWS, ids=lambda cls: cls.__name__)
def test_a_file_of_format_1_predicts_and_does_not_learn(tmp_path, cls):
    """Its head had all parts together, and the classes of named tuples."""
    path, model = tmp_path / "model", shown(cls(**variants(cls)[0]), 0, 1)
    model.save(path)

    def older(code):
        if isinstance(code, list):
            return [older(item) for item in code]
        if not isinstance(code, dict):
            return code
        code = {name: older(item) for name, item in code.items()}
        return {"named_tuple": "somewhere:State"} | code if "fields" in code else code

    def first(head):
        parts = older(head["parameters"] | head["learned"])
        kept = {name: head[name] for name in ("format", "ofslib", "class")}
        return kept | {"version": 1, "parts": parts}

    forged(path, first)
    only_predicts(cls, path, model, "format 1")


# -------------------------------------------------- a fuzzer


ODD = (None, True, 0, -1, 10**9, 2.5, float("nan"), "", "x", [], {}, [[1]], {"array": 0})
ODD += ({"tuple": []}, {"dict": [[1, 2]]}, {"fields": {}}, {"random_state": 1}, {"objects": [1]})


def mutated(head, rng):
    """The head with one value, key or item changed, at random."""
    places, stack = [], [head]
    while stack:
        node = stack.pop()
        for key in list(node) if isinstance(node, dict) else range(len(node)):
            places.append((node, key))
            if isinstance(node[key], dict | list):
                stack.append(node[key])
    node, key = places[rng.integers(len(places))]
    how = rng.integers(4)
    if how == 0:
        del node[key]
    elif how == 1 and isinstance(node, dict):
        node[f"{key}_"] = node.pop(key)
    elif how == 2:
        other, place = places[rng.integers(len(places))]
        node[key] = json.loads(json.dumps(other[place]))
    else:
        node[key] = ODD[rng.integers(len(ODD))]
    return head


@pytest.mark.parametrize("cls", [*ROWS, ofslib.LaplacianScoreSelector, RunningAverages])
def test_changed_at_random_with_a_right_checksum_it_is_read_or_a_value_error(tmp_path, cls):
    """`OFSLIB_FUZZ` is how many; some changes, as of a parameter, leave a file that is one."""
    if cls is RunningAverages:
        RunningAverages(P).update(X, F).save(tmp_path / "whole")
    else:
        shown(cls(**variants(cls)[0]), 0, 1).save(tmp_path / "whole")
    rng = np.random.default_rng(0)
    for _ in range(int(os.environ.get("OFSLIB_FUZZ", 60))):
        path = shutil.copy(tmp_path / "whole", tmp_path / "model")
        forged(path, lambda head: mutated(head, rng))
        try:
            again = cls.load(path)
            if cls is RunningAverages:
                again.standardized()
            elif hasattr(again, "n_features_in_") and hasattr(again, "predict"):
                again.predict(X[:, : again.n_features_in_])
        except ValueError as error:
            assert str(path) in str(error), error


# -------------------------------------------------- what cannot be kept, and safety


class Local:
    pass


@pytest.mark.parametrize("value", [Local(), len, {1, 2}, np.array([Local()]), Local])
def test_what_a_file_cannot_hold_is_said(tmp_path, value):
    model = ofslib.OLSRegressor().fit(X, F)
    model.extra_ = value
    with pytest.raises(TypeError, match=r"extra_ is of the type .*, which a model"):
        model.save(tmp_path / "model")
    assert not (tmp_path / "model").exists()


def test_a_wrong_parameter_is_noticed_before_it_is_too_late(tmp_path):
    model = ofslib.OFSARegressor(k=K).fit(X, F).set_params(k=-1)
    with pytest.raises(ValueError, match="'k' parameter"):
        model.save(tmp_path / "model")


def test_nothing_is_imported_or_unpickled(tmp_path, monkeypatch):
    """Of a class that stands in a file only the name is compared."""
    (tmp_path / "evil.py").write_text("raise SystemExit('was run')")
    monkeypatch.syspath_prepend(tmp_path)
    path = tmp_path / "model"
    ofslib.OLSRegressor().fit(X, F).save(path)
    forged(path, lambda h: h["learned"].update(_x={"object": "evil:Evil", "fields": {}}))
    assert ofslib.OLSRegressor.load(path)._x == {}
    forged(path, lambda h: h.update({"class": "evil:Evil"}))
    refused(ofslib.OLSRegressor, path, "expected a saved OLSRegressor, got a saved Evil")
    assert "evil" not in sys.modules
    source = (ROOT / "ofslib/_model_files.py").read_text(encoding="utf-8")
    assert not {"pickle", "marshal", "importlib", "import_module"} & set(source.split())


SCRIPT = """
from ofslib.streams.average_stream import AverageSelector
from ofslib.streams.parameters import estimator
from ofslib.streams.selector import Regressor

@estimator
class Own(Regressor, AverageSelector):
    "Least squares on the first k features."

    def _coefs(self, standard, ks):
        return [self._refit(standard, range(k)) for k in ks]

if __name__ == "__main__":
    import numpy as np
    data = np.load("data.npz")
    Own(k=3).partial_fit(data["X"][:60], data["y"][:60]).save("model")
"""


def test_a_class_of_a_script_is_found_where_it_is_imported(tmp_path, monkeypatch):
    """Also by another process."""
    (tmp_path / "own_script.py").write_text(SCRIPT)
    np.savez(tmp_path / "data.npz", X=X, y=F)
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    words = [sys.executable, "own_script.py"]
    subprocess.run(words, check=True, cwd=tmp_path, env=environment, timeout=120)
    monkeypatch.syspath_prepend(tmp_path)
    own = import_module("own_script").Own
    again = own.load(tmp_path / "model").partial_fit(X[60:], F[60:])
    whole = own(k=3).partial_fit(X[:60], F[:60]).partial_fit(X[60:], F[60:])
    assert again.coef_.tobytes() == whole.coef_.tobytes()
    refused(OwnAverages, tmp_path / "model", "expected a saved OwnAverages, got a saved Own")


def test_a_failed_save_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "model"
    model = ofslib.OLSRegressor().fit(X, F)
    model.save(path)
    before = path.read_bytes()
    monkeypatch.setattr(os, "fsync", lambda number: (_ for _ in ()).throw(OSError("disk")))
    with pytest.raises(OSError, match="disk"):
        model.fit(X[:30], F[:30]).save(path)
    assert path.read_bytes() == before and [f.name for f in tmp_path.iterdir()] == ["model"]


def test_every_public_estimator_is_there():
    listed = {cls.__name__ for cls in CLASSES} - {cls.__name__ for cls in OWN}
    assert listed == {n for n in dir(ofslib) if hasattr(getattr(ofslib, n), "get_params")}
    assert all(hasattr(import_module(cls.__module__), cls.__name__) for cls in CLASSES)
    assert issubclass(ofslib.OnlineSubstitution, ColumnScan)
