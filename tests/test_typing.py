"""What type checkers see of ofslib: the names there are, and the parameters of each estimator."""

import ast
import inspect
import os
import re
import subprocess
import sys
import typing
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest
from sklearn.utils._param_validation import Interval, StrOptions

import ofslib

ROOT = Path(__file__).parents[1]
CLASSES = {name: getattr(ofslib, name) for names in ofslib.ESTIMATORS.values() for name in names}
FUNCTIONS = {"citation", "fit_dask", "fit_parts", "fit_stream", "select_by_knockoffs"}
PUBLIC = {*CLASSES, "RunningAverages", *FUNCTIONS, *ofslib.MODULES}


def test_the_table_of_names_is_what_the_files_define():
    """An estimator is a class with the decorator from which no other class of its file inherits."""
    defined = {}
    for path in sorted(ROOT.glob("ofslib/[ab]*/*.py"), key=lambda path: path.stem):
        module = ast.parse(path.read_text(encoding="utf-8"))
        classes = [node for node in module.body if isinstance(node, ast.ClassDef)]
        bases = {ast.unparse(base) for node in classes for base in node.bases}
        decorated = {c.name for c in classes if "estimator" in map(ast.unparse, c.decorator_list)}
        if decorated - bases:
            defined[path.stem] = tuple(sorted(decorated - bases))
    assert ofslib.ESTIMATORS == defined


@pytest.mark.parametrize("module", [ofslib, ofslib.datasets], ids=lambda m: m.__name__)
def test_the_stubs_name_what_the_packages_have(module):
    """With the module that each comes from."""
    stub = ast.parse(Path(module.__file__).with_suffix(".pyi").read_text(encoding="utf-8"))
    shown = {
        alias.name: node.module
        for node in stub.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if alias.asname == alias.name  # without it, the name is not there for others
    }
    homes = {n: ofslib.home_of(n) or "ofslib" for n in PUBLIC}
    if module is not ofslib:
        homes = {name: getattr(module, name).__module__ for name in module.__all__}
    assert shown == homes and set(module.__all__) == set(homes) <= set(dir(module))


def test_names_of_the_package():
    names: dict = {}
    exec("from ofslib import *", names)
    assert names.keys() >= PUBLIC
    assert set(re.findall(r"\w+", inspect.getdoc(ofslib))) >= set(CLASSES)
    with pytest.raises(AttributeError, match="SFSAClasifier"):
        ofslib.SFSAClasifier  # noqa: B018


@pytest.mark.parametrize("name", CLASSES)
def test_annotations_are_what_fit_accepts(name):
    for field in fields(CLASSES[name]):
        accepted = set()
        for kind in field.metadata.get("allowed", ()):
            if isinstance(kind, StrOptions):
                accepted.add(str)
            elif isinstance(kind, Interval):
                accepted.add(float if kind.type.__name__ == "Real" else int)
            elif kind == "random_state":
                accepted |= {int, np.random.RandomState, type(None)}
            else:
                accepted.add({"boolean": bool, None: type(None)}.get(kind, kind))
        union = typing.get_args(field.type) if not isinstance(field.type, type) else [field.type]
        annotated = {typing.get_origin(kind) or kind for kind in union}
        assert annotated == accepted or not accepted, (name, field.name)


RIGHT = """
import numpy as np
import ofslib
from ofslib import OFSARegressor, OnlineSubstitution, RunningAverages, SFSAClassifier
from ofslib.datasets import Dataset, load, open_stream

model = SFSAClassifier(k=5, learning_rate=0.1, random_state=np.random.RandomState(0))
for X, y in open_stream("rows.svm", block_rows=100):
    model.partial_fit(X, y, classes=[-1, 1])
print(model.coef_, model.support_, model.classes_, model.k, model.score(X, y), model.get_params())
data: Dataset = load("mnist_idx")
print(OFSARegressor(k="aic").path(RunningAverages(n_features=3), ks=[1, 2]), ofslib.bounds)
print(OnlineSubstitution(k=3).fit(X, y).transform(X), ofslib.bounds, ofslib.wishart)


class Mine(SFSAClassifier):
    sources = "sun_stochastic"
    shift: float = 0.0

    def shifted(self, X):
        return self.decision_function(X) + self.shift


Mine(k=5).save("mine.npz")
print(Mine.load("mine.npz").shifted(X), RunningAverages.load("averages.npz").n)
print(ofslib.citation(Mine), ofslib.testing.check_method(Mine, stream="rows"))
"""
WRONG = """from ofslib import OFSARegressor, SFSAClassifier
from ofslib import SFSAClasifier
from ofslib.datasets import opn_stream
SFSAClassifier(kk=5)
SFSAClassifier(k="five")
SFSAClassifier(5)
OFSARegressor(k=3, kk=5)
SFSAClassifier(k=5).suport_
SFSAClassifier.load("model.npz").suport_
"""


@pytest.mark.slow
def test_a_right_program_is_accepted_and_each_line_of_a_wrong_one_is_not(tmp_path):
    (tmp_path / "right.py").write_text(RIGHT)
    (tmp_path / "wrong.py").write_text(WRONG)
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--follow-imports=silent", "--cache-dir", ".mypy", "."],
        cwd=tmp_path,
        env=os.environ | {"MYPYPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    errors = re.findall(r"(\w+)\.py:(\d+): error: ", done.stdout)
    after_first = range(2, 1 + len(WRONG.splitlines()))
    assert set(errors) == {("wrong", str(line)) for line in after_first}, done.stdout
