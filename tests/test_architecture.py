"""The house rules: who may import whom (by import-linter), and what may not stay behind."""

import ast
import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import ofslib

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "ofslib"
LONGEST_FUNCTION = 60
LONGEST_FILE = 600
SOURCES = {file: file.read_text(encoding="utf-8") for file in sorted(PACKAGE.rglob("*.py"))}
every_source = pytest.mark.parametrize(
    "file", SOURCES, ids=lambda file: file.relative_to(PACKAGE).as_posix()
)


def test_imports_keep_the_contracts():
    """Those of pyproject.toml: layers, two files that import numba, what starts without it."""
    linter = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run(
        [linter, "--no-cache", "--no-logo"], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout


def test_one_file_imports_private_parts_of_numba():
    """Public is what numba's manual documents: the module itself, its types, and extending."""
    others = [
        file for folder in ("workflow", "benchmarks") for file in (ROOT / folder).rglob("*.py")
    ]
    private = re.compile(r"^\s*(from|import) numba\.(?!types|extending)", re.MULTILINE)
    homes = {f for f in [*SOURCES, *others] if private.search(f.read_text(encoding="utf-8"))}
    assert homes == {PACKAGE / "_fast_compile.py"}


def test_the_cache_key_covers_what_kernels_call():
    """Kernels stand in kernels/, whose sources are the key, and in the algorithms themselves."""
    decorated = re.compile(r"^from ofslib\._jit import .*\b(kernel|generic)\b", re.MULTILINE)
    homes = {
        file.relative_to(PACKAGE).parts[0]
        for file, text in SOURCES.items()
        if decorated.search(text)
    }
    assert homes == {"kernels", "algorithms"}


# Classes of ours that stand above an estimator: to know what it does, they have to be read.
MOST_BASES = 6
# Python functions of ours between `fit` and its kernels, compiled ones and comprehensions aside.
MOST_FUNCTIONS = 66


def test_few_classes_stand_above_an_estimator():
    for name in [name for names in ofslib.ESTIMATORS.values() for name in names]:
        above = [c for c in getattr(ofslib, name).__mro__[1:] if c.__module__.startswith("ofslib")]
        assert len(above) <= MOST_BASES, above


def test_few_functions_stand_between_fit_and_its_kernels():
    rng, ours = np.random.default_rng(0), set()
    X = rng.standard_normal((2000, 50))
    y = np.where(X[:, 0] + 0.1 * rng.standard_normal(2000) > 0, 1, -1)

    def note(frame, event, _):
        code = frame.f_code
        is_ours = event == "call" and code.co_filename.startswith(str(PACKAGE))
        # The globals of a compiled function have no name.
        if is_ours and "__name__" in frame.f_globals and code.co_name[0] != "<":
            ours.add(code)

    model = ofslib.SFSAClassifier(k=10).fit(X, y)
    sys.setprofile(note)
    model.fit(X, y)
    sys.setprofile(None)
    assert len(ours) <= MOST_FUNCTIONS, sorted(code.co_qualname for code in ours)


def functions(tree):
    return [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)]


@every_source
def test_no_function_is_long(file):
    long = [
        f"{f.name}: {f.end_lineno - f.lineno + 1} lines"
        for f in functions(ast.parse(SOURCES[file]))
        if f.end_lineno - f.lineno + 1 > LONGEST_FUNCTION
    ]
    assert not long


@every_source
def test_no_file_is_long_without_a_reason(file):
    """The reason stands in the docstring of the file: "The file is longer than others: ..."."""
    source = SOURCES[file]
    docstring = ast.get_docstring(ast.parse(source)) or ""
    assert len(source.splitlines()) <= LONGEST_FILE or "longer than others: " in docstring


@every_source
def test_nothing_is_left_behind(file):
    source = SOURCES[file]
    assert not re.findall(r"\b(TODO|FIXME|XXX|HACK)\b", source)
    calls = {
        n.func.id
        for n in ast.walk(ast.parse(source))
        if isinstance(n, ast.Call) and isinstance(n.func, ast.Name)
    }
    # A file that is run says something.
    said = {"print"} if "if __name__ ==" in source else set()
    assert not calls & ({"print", "breakpoint", "exec", "eval"} - said)


def undocumented(tree):
    """Public functions and methods without a docstring; the class explains its attributes, which
    are the names that end in _."""
    found = []
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_"):
            if isinstance(node, ast.FunctionDef) and not ast.get_docstring(node):
                found.append(node.name)
            for method in node.body if isinstance(node, ast.ClassDef) else ():
                public = isinstance(method, ast.FunctionDef) and not method.name.startswith("_")
                if public and not method.name.endswith("_") and not ast.get_docstring(method):
                    found.append(f"{node.name}.{method.name}")
    return found


@every_source
def test_public_functions_say_what_they_do(file):
    tree = ast.parse(SOURCES[file])
    assert ast.get_docstring(tree), "the file itself"
    assert undocumented(tree) == []


def test_an_undocumented_function_is_seen():
    source = "def f(): pass\ndef g(): 'x'\nclass A:\n def m(self): pass\n def a_(self): pass\n"
    assert undocumented(ast.parse(source)) == ["f", "A.m"]


# Notebooks


def faults(notebook):
    """What is wrong with a notebook as it is stored."""
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    found = []
    if any(cell["outputs"] or cell["execution_count"] is not None for cell in code):
        found.append("has stored outputs")
    tagged = [c for c in notebook["cells"] if "parameters" in c["metadata"].get("tags", ())]
    if len(tagged) != 1 or tagged[0] not in code:
        found.append(f"{len(tagged)} cells tagged parameters")
    return found


def test_notebooks_are_stored_clean():
    """Without outputs, and with one cell that papermill can set."""
    wrong = {}
    for file in sorted(ROOT.glob("notebooks/**/*.ipynb")):
        notebook = json.loads(file.read_text(encoding="utf-8"))
        wrong |= {file.name: faults(notebook)} if faults(notebook) else {}
    assert not wrong


def test_faults_of_a_notebook_are_seen():
    def cell(tags=(), outputs=(), count=None, kind="code"):
        both = {"cell_type": kind, "metadata": {"tags": list(tags)}, "source": []}
        return both | (
            {"outputs": list(outputs), "execution_count": count} if kind == "code" else {}
        )

    parameters = cell(["parameters"])
    assert faults({"cells": [parameters, cell()]}) == []
    assert faults({"cells": [cell()]}) and faults({"cells": [parameters, parameters]})
    assert faults({"cells": [parameters, cell(outputs=[{}])]})
    assert faults({"cells": [parameters, cell(count=3)]})
    assert faults({"cells": [cell(["parameters"], kind="markdown")]})
