"""The house rules, read from the sources: who may import whom, and what may not stay behind."""

import ast
import json
import re
import sys
from pathlib import Path

import pytest

from ofslib._jit import SHARED_KERNEL_MODULES

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "ofslib"
SCRIPTS = sorted(ROOT.glob("workflow/**/*.py"))
LONGEST_FUNCTION = 60

# {module: what it may import of ofslib}, from the bottom up. `ofslib` itself, which finds the
# estimators by name and imports none, and `files`, which only writes files, are open to all.
KERNEL_MODULES = {"rows", "select", "losses", "penalties", "descent", "heap", "path", "spectrum"}
KERNEL_MODULES |= {"proximal", "gram", "kept", "substitution"}
MAY_IMPORT = {
    "__init__": set(),
    "files": set(),
    "_jit": set(),
    "rows": {"_jit"},
    "losses": {"_jit"},
    "penalties": {"_jit"},
    "select": {"_jit", "rows"},
    "descent": {"_jit", "rows", "losses", "select"},
    "heap": {"_jit"},
    "path": {"_jit", "rows", "losses"},
    "spectrum": {"_jit", "rows", "losses"},
    "proximal": {"_jit", "rows", "losses", "descent", "path", "penalties"},
    "gram": {"_jit", "penalties", "select"},
    "kept": {"_jit", "losses", "penalties"},
    "substitution": {"_jit", "kept", "losses"},
    "wishart": {"averages"},
    "averages": set(),
    "base": {"_jit", "averages", *KERNEL_MODULES},
    "columns": {"base", "kept", "losses"},
    "central": set(),
    "algorithms": {"_jit", "averages", "base", "central", "columns", *KERNEL_MODULES},
    "simulate": set(),
    "metrics": set(),
    "bounds": set(),
    "peers": set(),
    "blocks": set(),
    "datasets": {"blocks"},
    "dependencies": set(),
    "entries": {"dependencies", "simulate"},
    "project": {"dependencies", "entries"},
    "figures": {"project"},
}
# These may import each other and all that is free of numba.
ABOVE = {"experiment", "tracking", "studies"}
WITHOUT_NUMBA = {
    "averages",
    "wishart",
    "simulate",
    "metrics",
    "bounds",
    "peers",
    "blocks",
    "datasets",
    "dependencies",
    "entries",
    "project",
    "figures",
    "files",
}
ONLY_NUMPY_AND_SCIPY = {"simulate", "bounds"}


def module_name(file):
    """`algorithms` for each algorithm, else the name of the file."""
    first = file.relative_to(PACKAGE).parts[0]
    return first.removesuffix(".py")


def imports(source):
    """Dotted names of what a source imports, anywhere in it; `from a import b` gives a and a.b."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports inside the package are absolute"
            found |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def own_imports(source):
    """Modules of ofslib that a source imports."""
    modules = {file.stem for file in PACKAGE.glob("*.py")} | {"algorithms", "studies"}
    parts = [name.split(".") for name in imports(source)]
    return {p[1] for p in parts if p[0] == "ofslib" and len(p) > 1 and p[1] in modules}


def outside_imports(source):
    """Packages that a source imports, without ofslib and the standard library."""
    roots = {name.split(".")[0] for name in imports(source)}
    return roots - {"ofslib"} - set(sys.stdlib_module_names)


SOURCES = {file: file.read_text(encoding="utf-8") for file in sorted(PACKAGE.rglob("*.py"))}
every_source = pytest.mark.parametrize(
    "file", SOURCES, ids=lambda file: file.relative_to(PACKAGE).as_posix()
)


def graph():
    """{module: modules of ofslib that it imports}, the algorithms as one module."""
    edges = {}
    for file, source in SOURCES.items():
        edges.setdefault(module_name(file), set()).update(own_imports(source))
    return edges


def reach(start, edges):
    """All that is imported by importing `start`."""
    seen, todo = set(), [start]
    while todo:
        name = todo.pop()
        if name not in seen:
            seen.add(name)
            todo += edges.get(name, ())
    return seen


def test_the_readers_of_imports_see_them():
    source = "import a.b\ndef f():\n    from ofslib.base import x\n    from ofslib import rows, y"
    assert imports(source) >= {"a.b", "ofslib.base", "ofslib.rows"}
    assert own_imports(source) == {"base", "rows"}
    assert outside_imports("import os\nimport numpy.linalg\nfrom scipy import x") == {
        "numpy",
        "scipy",
    }
    assert reach("a", {"a": {"b"}, "b": {"c"}, "d": {"a"}}) == {"a", "b", "c"}


@every_source
def test_imports_go_down(file):
    name = module_name(file)
    imported = own_imports(SOURCES[file]) - {"files", "__init__"}
    if name == "algorithms":
        assert "algorithms" not in imported, "no import between algorithms"
    if name in ABOVE:
        allowed = WITHOUT_NUMBA | ABOVE
        if name == "studies":
            allowed |= {"algorithms", "columns", "central"}
    else:
        assert name in MAY_IMPORT, f"say in MAY_IMPORT what {name} may import"
        allowed = MAY_IMPORT[name]
    assert imported <= allowed


def test_nothing_imports_itself_in_a_circle():
    edges = graph()
    for name in edges:
        assert all(name not in reach(below, edges) for below in edges[name] - {name}), name


@every_source
def test_numba_is_imported_in_one_place(file):
    packages = outside_imports(SOURCES[file])
    assert ("numba" in packages) == (file.name == "_jit.py")
    assert "llvmlite" not in packages


@pytest.mark.parametrize("name", sorted(WITHOUT_NUMBA | {"__init__"}))
def test_what_the_workflow_reads_needs_no_numba(name):
    assert not reach(name, graph()) & {"_jit", "base", "algorithms", "experiment"}


@pytest.mark.parametrize("name", sorted(ONLY_NUMPY_AND_SCIPY))
def test_mathematics_needs_numpy_and_scipy_only(name):
    source = SOURCES.get(PACKAGE / f"{name}.py", "")
    assert outside_imports(source) <= {"numpy", "scipy"}


@pytest.mark.parametrize("file", SCRIPTS, ids=lambda file: file.name)
def test_scripts_of_the_workflow_start_fast(file):
    source = file.read_text(encoding="utf-8")
    assert not outside_imports(source) & {"numba", "sklearn"}
    for name in own_imports(source):
        assert not reach(name, graph()) & {"_jit", "base", "algorithms"}


def test_the_cache_key_covers_what_kernels_call():
    """Every module below the algorithms that has kernels, and what these import in turn."""
    with_kernels = {
        file.name
        for file, source in SOURCES.items()
        if file.parent == PACKAGE
        and imports(source) & {"ofslib._jit.kernel", "ofslib._jit.generic"}
    }
    needed = {"_jit", *(file.removesuffix(".py") for file in with_kernels)}
    needed |= {below for name in needed for below in reach(name, graph())}
    assert {f"{name}.py" for name in needed} == set(SHARED_KERNEL_MODULES)
    assert all((PACKAGE / name).is_file() for name in SHARED_KERNEL_MODULES)


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
def test_nothing_is_left_behind(file):
    source = SOURCES[file]
    assert not re.findall(r"\b(TODO|FIXME|XXX|HACK)\b", source)
    calls = {
        n.func.id
        for n in ast.walk(ast.parse(source))
        if isinstance(n, ast.Call) and isinstance(n.func, ast.Name)
    }
    assert not calls & {"print", "breakpoint", "exec", "eval"}


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
