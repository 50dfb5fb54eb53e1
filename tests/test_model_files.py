"""Model files: whole or refused, going on bit for bit, and nothing in them is run."""

import hashlib
import io
import json
import pickle
import re
import shutil
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from estimators import every, public
from sklearn.base import is_classifier

import ofslib
from ofslib import _model_files
from ofslib.averages import RunningAverages
from ofslib.streams.column_stream import ColumnStream, ScoredSelector

N, P, K = 60, 12, 3
RNG = np.random.default_rng(0)
X = RNG.standard_normal((2 * N, P))
F = X[:, [1, 4, 8]] @ [1.0, -2.0, 1.5] + 0.1 * RNG.standard_normal(2 * N)


ROWS = (ofslib.SFSAClassifier, ofslib.OFSARegressor, ofslib.OnlineSubstitution)
ROWS += (ofslib.OnlineLeverageSelector,)
every_class, some_classes = every(public()), every(ROWS)


def made(cls):
    own = {"k": K, "random_state": 0}
    if cls is ofslib.OnlineLeverageSelector:
        own |= {"k": None, "rate": 1.0}  # a rate for k needs all columns at once
    names = cls().get_params()
    return cls(**{name: value for name, value in own.items() if name in names})


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
            rows = slice(N * part, N * (part + 1))
            model.partial_fit(X[rows], y[rows], **known)
    return model


def fitted(cls):
    model = made(cls)
    return model.fit(X, targets(model))


def facts(model):
    """All that is known of the model from outside; scratch memory may differ."""
    names = [name for name in dir(model) if name.endswith("_") and not name.startswith("_")]
    found = {name: getattr(model, name, None) for name in names}
    if "averages_" in found:
        found["averages_"] = found["averages_"].S_xx
    if "components_" in found:
        found["components_"] = found["components_"].toarray()
    return {name: pickle.dumps(value) for name, value in found.items()}


@every_class
def test_a_file_holds_all_that_is_known(cls, tmp_path):
    """Going on from one is never having stopped: test_any_stream.py, test_contract.py."""
    path, frame = tmp_path / "some folder" / "model", pd.DataFrame(X).add_prefix("column ")
    model = made(cls)
    model.fit(frame, targets(model)).save(path)
    again = cls.load(path)
    assert type(again) is cls and facts(again) == facts(model)
    assert again.get_params() == model.get_params()
    assert [file.name for file in path.parent.iterdir()] == ["model"]


# -------------------------------------------------- damage


@pytest.fixture(params=["rows", "averages", "columns", "moments"])
def saved(request, tmp_path):
    known = {
        "rows": lambda: fitted(ofslib.SFSAClassifier),
        "averages": lambda: fitted(ofslib.OFSARegressor),
        "columns": lambda: fitted(ofslib.OnlineSubstitution),
        "moments": lambda: RunningAverages(P).update(X, F),
    }
    model = known[request.param]()
    model.save(tmp_path / "model.npz")
    return type(model), tmp_path / "model.npz"


def refused(cls, path, because=""):
    with pytest.raises(ValueError, match=re.escape(str(path)) + ".*" + re.escape(because)):
        cls.load(path)


def test_every_flipped_bit_and_every_cut_is_noticed(saved):
    cls, path = saved
    right = path.read_bytes()
    for bit in np.random.default_rng(0).choice(8 * len(right), 300, replace=False):
        wrong = bytearray(right)
        wrong[bit // 8] ^= 1 << (bit % 8)
        path.write_bytes(wrong)
        refused(cls, path, "checksum")
    for content in (b"", right[:1], right[:70], right[: len(right) // 2], right[:-1], right + b"0"):
        path.write_bytes(content)
        refused(cls, path, "checksum")
    path.write_bytes(right)
    cls.load(path)


def test_other_classes_and_files_are_refused(saved, tmp_path):
    cls, path = saved
    refused(
        ofslib.SGDTClassifier, path, f"expected a saved SGDTClassifier, got a saved {cls.__name__}"
    )
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


def npy(shape, dtype="<f8", fortran=False):
    text = io.BytesIO()
    described = {"shape": shape, "fortran_order": fortran, "descr": dtype}
    np.lib.format.write_array_header_1_0(text, described)
    return text.getvalue()


def as_bytes(array):
    text = io.BytesIO()
    np.save(text, array)
    return text.getvalue()


FORGED = {  # a change of the head, one of the arrays, and what is said
    "a newer version": (lambda h: h.update(version=3, ofslib="9.0"), None, "ofslib 9.0"),
    "no class": (lambda h: h.pop("class") and None, None, "class"),
    "parts that are none": (lambda h: h.update(learned=7), None, ""),
    "no such array": (lambda h: h["learned"].update(_frozen={"array": 999}), None, ""),
    "an unknown kind": (lambda h: h["learned"].update(_x={"pickle": "os:x"}), None, "os:x"),
    "preprocessing": (lambda h: h.update(preprocessing={}), None, "preprocessing"),
    "depth": (lambda h: h["learned"].update(_x=json.loads("[" * 900 + "]" * 900)), None, ""),
    "huge": (None, lambda c: {"0.npy": npy((10**9, 10**9)) + c["0.npy"][128:]}, ""),
    "short": (None, lambda c: {n: t[:-8] for n, t in c.items() if n != "head.json"}, ""),
    "objects": (None, lambda c: {"0.npy": npy((3,), "|O") + c["0.npy"][128:]}, ""),
    "pickled": (None, lambda c: {"0.npy": pickle.dumps([1])}, ""),
    "an empty part": (lambda h: h["learned"].update(_x={}), None, ""),
}
for header in (b"{'descr': ((((", b"'''", b"{(}", b"\0\0\0", b"(" * 60_000, b"{'descr': []}"):
    begun = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header
    FORGED[f"header {header[:14]}"] = (None, lambda c, begun=begun: {"0.npy": begun}, "")


@pytest.mark.parametrize("what", FORGED)
def test_what_is_forged_is_refused_before_memory_is_taken(saved, what):
    (cls, path), (change, members, because) = saved, FORGED[what]
    forged(path)
    cls.load(path)  # what is made again is read
    forged(path, change or (lambda head: None), members)
    refused(cls, path, because)


PARTS = [
    ("n", -3), ("n", 2.5), ("n_features", 10**9), ("n_features", P + 1), ("_weight", -1.0),
    ("_weight", float("nan")), ("_folded", "1"), ("_rate", 2.0), ("_per", "row"),
    ("block_rows", 10**12), ("_C", {"array": 1}), ("_spent", "x"), ("_rows", [1.0]),
]  # fmt: skip


@pytest.mark.parametrize("cls", [RunningAverages, ofslib.OFSARegressor])
def test_forged_averages_are_refused(tmp_path, cls):
    path = tmp_path / "a"
    model = cls(P).update(X, F) if cls is RunningAverages else fitted(cls)
    model.save(tmp_path / "whole")
    for name, value in PARTS:
        shutil.copy(tmp_path / "whole", path)

        def change(head, name=name, value=value):
            own = head["learned"]
            (own if cls is RunningAverages else own["_state"]["fields"])[name] = value

        forged(path, change)
        refused(cls, path)
    for place, value in (((0, 0), -1.0), ((2, 5), np.nan), ((P, P), np.inf), ((2, 5), np.inf)):
        a = RunningAverages(P).update(X, F)._settled(spend=True)
        a._C[place] = value
        a.save(path)
        refused(RunningAverages, path, "upper triangle")


def assign(place, value):
    return lambda array: array.__setitem__(place, value)


BEYOND = {  # the class, an array of its state, a wrong value in it
    "SFSA index": ("SFSAClassifier", lambda s: s.active.index, assign(0, 10**6)),
    "SFSA touched": ("SFSAClassifier", lambda s: s.batch.touched, assign(-1, P)),
    "SFSA count": ("SFSAClassifier", lambda s: s.batch.count, assign(0, P + 2)),
    "SOFS place": ("SOFSClassifier", lambda s: s.place, assign(0, K + 1)),
    "B-ARDA heap": ("BARDAClassifier", lambda s: s.heap, assign(0, P)),
    "B-AMD support": ("BAMDClassifier", lambda s: s.support, assign(2, 2**32 - 1)),
    "OPG touched": ("OPGRegressor", lambda s: s.grid.n_touched, assign(0, 10**6)),
    "column": ("OnlineSubstitution", lambda s: s.working_set.index, assign(0, P)),
    "a worker's": ("AsyncOnlineSubstitution", lambda s: s.workers[1].size, assign(0, -1)),
}


@pytest.mark.parametrize("what", BEYOND)
def test_indices_beyond_the_arrays_and_short_arrays_are_refused(tmp_path, what):
    """Compiled code would read and write there."""
    name, find, change = BEYOND[what]
    path, model = tmp_path / "model", fitted(getattr(ofslib, name))
    arrays: list = []  # in the order of the file
    for part, value in sorted(model._parts().items()):
        _model_files._code(value, part, arrays)
    place = next(i for i, array in enumerate(arrays) if array is find(model._state))
    wrong = arrays[place].copy()
    change(wrong)
    short = [(i, a[:0]) for i, a in enumerate(arrays) if a.shape == (1,)]
    for i, array in [(place, wrong), (place, arrays[place][:-1]), *short]:
        model.save(path)
        forged(path, members=lambda content, i=i, a=array: {f"{i}.npy": as_bytes(a)})
        refused(type(model), path, "has an index out of bounds" if array is wrong else "")


def test_hyper_parameters_are_made_anew(tmp_path):
    """Another optimizer than that of the state would write beyond its arrays."""
    path, model = tmp_path / "model", ofslib.SFSARegressor(k=K, learning_rate=0.01).fit(X, F)
    model.save(path)

    def change(head):
        for name in ("_learned_with", "_frozen"):
            for pair in head["learned"][name]["dict"]:
                pair[1] = "adam" if pair[0] == "optimizer" else pair[1]

    forged(path, change)
    refused(ofslib.SFSARegressor, path, "_state.memory.mean is float64 of the shape (1,)")
    model.set_params(k=1).save(path)
    again = ofslib.SFSARegressor.load(path)
    assert again._hyper == model._hyper and again._hyper.k == K and again.k == 1
    model._n_rows = -5
    model.save(path)
    refused(ofslib.SFSARegressor, path, "-5 rows")


# -------------------------------------------------- files of other versions


@some_classes
def test_a_file_of_an_older_version_lacks_new_parameters(tmp_path, cls):
    """They have their defaults; a parameter that is gone is named."""
    path, model = tmp_path / "model", shown(made(cls), 0, 1)
    default = cls().get_params()
    lacking = [n for n, value in model.get_params().items() if value == default[n]]
    model.save(path)

    def older(head):
        for name in lacking:
            del head["parameters"][name]
        for known in {"_frozen", "_learned_with"} & set(head["learned"]):
            pairs = head["learned"][known]["dict"]
            pairs[:] = [pair for pair in pairs if pair[0] not in lacking]

    forged(path, older)
    again = cls.load(path)
    assert again.get_params() == model.get_params()
    assert facts(shown(again, 1, 2)) == facts(shown(model, 1, 2))
    fitted(ofslib.SFSARegressor).save(path)
    forged(path, lambda h: h["learned"]["_learned_with"]["dict"].append(["step", "spectral"]))
    refused(ofslib.SFSARegressor, path, "parameters that are not known: step")


def of_format_1(head):
    """Its head had all parts together, and the classes of named tuples."""

    def older(code):
        if isinstance(code, list):
            return [older(item) for item in code]
        if not isinstance(code, dict):
            return code
        code = {name: older(item) for name, item in code.items()}
        return {"named_tuple": "somewhere:State"} | code if "fields" in code else code

    parts = older(head["parameters"] | head["learned"])
    return {n: head[n] for n in ("format", "ofslib", "class")} | {"version": 1, "parts": parts}


@pytest.mark.parametrize("which", ["another state", "format 1"])
@some_classes
def test_a_file_of_another_version_predicts_and_does_not_learn(tmp_path, cls, which):
    path, model = tmp_path / "model", shown(made(cls), 0, 1)
    model.save(path)
    if which == "format 1":
        forged(path, of_format_1)
    else:

        def other(head):
            fields = head["learned"]["_state"]["fields"]
            fields["former"] = fields.pop(list(fields)[-1])

        forged(path, other)
        refused(cls, path, "has the parts")  # of this version it cannot be
        forged(path, lambda head: head.update(ofslib="0.0.7"))
    again, rows = cls.load(path), X[:, : model.n_features_in_]
    for _ in range(2):
        assert np.array_equal(again.transform(rows), model.transform(rows))
        if hasattr(model, "predict"):
            assert np.array_equal(again.predict(rows), model.predict(rows))
        with pytest.raises(ValueError, match=r"does not go on learning: .*(former|format 1)"):
            shown(again, 1, 2)
        pickle.loads(pickle.dumps(again)).save(path)
        again = cls.load(path)
    new = cls(**model.get_params())
    assert facts(again.fit(X, targets(again))) == facts(new.fit(X, targets(again)))


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
@pytest.mark.parametrize("count", [30, pytest.param(2000, marks=pytest.mark.slow)])
def test_changed_at_random_it_is_read_or_a_value_error(tmp_path, cls, count):
    """Some changes, as of a parameter, leave a file that is one."""
    if cls is RunningAverages:
        RunningAverages(P).update(X, F).save(tmp_path / "whole")
    else:
        shown(made(cls), 0, 1).save(tmp_path / "whole")
    rng = np.random.default_rng(count)
    for _ in range(count):
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


@pytest.mark.parametrize("value", [object(), len, {1, 2}, np.array([object()]), Path])
def test_what_a_file_cannot_hold_is_said_and_the_old_file_stays(tmp_path, value):
    path, model = tmp_path / "model", ofslib.OLSRegressor().fit(X, F)
    model.save(path)
    with np.load(path) as archive:  # an npz that numpy reads
        assert json.loads(archive["head.json"])["class"] == "ofslib.algorithms.ols:OLSRegressor"
    before = path.read_bytes()
    model.extra_ = value
    with pytest.raises(TypeError, match="extra_ is of the type"):
        model.save(path)
    with pytest.raises(ValueError, match="'k' parameter"):
        fitted(ofslib.OFSARegressor).set_params(k=-1).save(path)
    assert path.read_bytes() == before and [f.name for f in tmp_path.iterdir()] == ["model"]
