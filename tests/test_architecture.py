"""The house rules, read from the sources: who may import whom, and what may not stay behind."""

import ast
import functools
import json
import re
import sys
from pathlib import Path

import pytest

import ofslib

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "ofslib"
SCRIPTS = sorted(ROOT.glob("workflow/**/*.py"))
LONGEST_FUNCTION = 60
LONGEST_FILE = 600

# {part: what it may import of ofslib}, from the bottom up; docs/architecture.md draws it. A part is
# a module or a package. `ofslib` itself, which imports no part before it is asked, is open to all.
MAY_IMPORT = {
    "_jit": set(),
    "_files": set(),
    "_interrupts": set(),
    "_blas": set(),
    "_model_files": {"_files"},
    "_printing": {"_files"},
    "_options": set(),
    "_sparse": set(),
    "_dask": set(),
    "parallel": set(),
    "simulate": {"kernels"},
    "metrics": set(),
    "bounds": set(),
    "averages": {"_dask", "_interrupts", "_model_files", "_sparse"},
    "kernels": {"_jit"},
    "datasets": {"_files", "_sparse", "kernels"},
    "wishart": {"averages"},
    "streams": {"_blas", "_dask", "_interrupts", "_model_files", "_sparse", "kernels", "averages"},
}
MAY_IMPORT["algorithms"] = {"_blas", "_jit", "_model_files", "_sparse"}
MAY_IMPORT["algorithms"] |= {"kernels", "averages", "parallel", "streams"}
LIBRARY = set(MAY_IMPORT)
MAY_IMPORT["reproduction"] = LIBRARY
MAY_IMPORT["cli"] = LIBRARY | {"reproduction"}
WITH_NUMBA = {"_jit", "kernels", "streams", "algorithms"}
ONLY_NUMPY_AND_SCIPY = {"bounds"}
# What the extra "reproduction" brings, see pyproject.toml.
EXTRAS = {"snakemake", "papermill", "jupyter_client", "IPython", "matplotlib", "seaborn"}
EXTRAS |= {"jinja2", "jsonschema", "yaml", "dask", "distributed", "mpi4py", "vowpalwabbit", "river"}
EXTRAS |= {"pyarrow", "polars"}


def part_of(file):
    """The part of ofslib that a file belongs to: its package, or the module itself."""
    return file.relative_to(PACKAGE).parts[0].removesuffix(".py")


@functools.cache
def imports(source, anywhere=True):
    """Dotted names of what a source imports; `from a import b` gives a and a.b.

    Not `anywhere`: only what is imported when the module is.
    """
    found = set()
    tree = ast.parse(source)
    for node in ast.walk(tree) if anywhere else tree.body:
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports inside the package are absolute"
            found |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return frozenset(found)


def own_parts(source):
    """Parts of ofslib that a source imports; for a class that `ofslib` finds, where it stands."""
    parts = set()
    for name in imports(source):
        root, _, rest = name.partition(".")
        if root == "ofslib" and rest:
            first = (ofslib.home_of(rest) or name).split(".")[1]
            parts |= {first} & set(MAY_IMPORT)
    return parts


def outside_imports(source, anywhere=True):
    """Packages that a source imports, without ofslib and the standard library."""
    roots = {name.split(".")[0] for name in imports(source, anywhere)}
    return roots - {"ofslib"} - set(sys.stdlib_module_names)


SOURCES = {file: file.read_text(encoding="utf-8") for file in sorted(PACKAGE.rglob("*.py"))}
MODULES = {file: s for file, s in SOURCES.items() if file != PACKAGE / "__init__.py"}
every_source = pytest.mark.parametrize(
    "file", SOURCES, ids=lambda file: file.relative_to(PACKAGE).as_posix()
)
every_module = pytest.mark.parametrize(
    "file", MODULES, ids=lambda file: file.relative_to(PACKAGE).as_posix()
)


def dotted(file):
    """The name by which a file is imported."""
    return ".".join(file.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


@functools.cache
def graph():
    """{module: modules of ofslib that it imports}, each by its dotted name.

    Of a design only what it imports before it draws rows: Snakemake reads the names of designs.
    """
    known, edges = {dotted(file) for file in MODULES}, {}
    for file, source in MODULES.items():
        names = imports(source, anywhere=part_of(file) != "simulate")
        edges[dotted(file)] = {
            ofslib.home_of(n.removeprefix("ofslib.")) or n for n in names
        } & known
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
    source = (
        "import a.b\ndef f():\n    from ofslib.kernels.rows import x\n"
        "    from ofslib import bounds, SFSAClassifier"
    )
    assert imports(source) >= {"a.b", "ofslib.kernels.rows", "ofslib.bounds"}
    assert imports(source, anywhere=False) == {"a.b"}
    assert own_parts(source) == {"kernels", "bounds", "algorithms"}
    assert outside_imports("import os\nimport numpy.linalg\nfrom scipy import x") == {
        "numpy",
        "scipy",
    }
    assert reach("a", {"a": {"b"}, "b": {"c"}, "d": {"a"}}) == {"a", "b", "c"}


@every_module
def test_imports_go_down(file):
    part = part_of(file)
    assert part in MAY_IMPORT, f"say in MAY_IMPORT what {part} may import"
    assert own_parts(MODULES[file]) - {part} <= MAY_IMPORT[part]


def test_no_algorithm_imports_another():
    for file, source in MODULES.items():
        if part_of(file) == "algorithms":
            assert "algorithms" not in own_parts(source), file.name


def test_nothing_imports_itself_in_a_circle():
    edges = graph()
    for name in edges:
        below = edges[name] - {name}
        assert all(name not in reach(b, edges) for b in below), name


@every_source
def test_numba_is_imported_in_one_place(file):
    packages = outside_imports(SOURCES[file])
    assert ("numba" in packages) == (file == PACKAGE / "_jit.py")
    assert "llvmlite" not in packages


@every_module
def test_the_library_needs_no_extra(file):
    """What of the library needs another package imports it when it is asked to."""
    if part_of(file) in LIBRARY:
        assert not outside_imports(MODULES[file], anywhere=False) & EXTRAS


def test_what_the_workflow_reads_needs_no_numba():
    edges = graph()
    heavy = WITH_NUMBA | {"datasets", "reproduction", "cli"}
    light = {name for name in edges if name.split(".")[1] not in heavy}
    light |= {f"ofslib.datasets.{m}" for m in ("registry", "download")} | {"ofslib.datasets"}
    light |= {f"ofslib.reproduction.{m}" for m in ("project", "identity", "store", "tables")}
    for name in light:
        parts = {below.split(".")[1] for below in reach(name, edges)}
        assert not parts & WITH_NUMBA, name


@pytest.mark.parametrize("part", sorted(ONLY_NUMPY_AND_SCIPY))
def test_mathematics_needs_numpy_and_scipy_only(part):
    for file, source in MODULES.items():
        if part_of(file) == part:
            assert outside_imports(source) <= {"numpy", "scipy"}


@pytest.mark.parametrize("file", SCRIPTS, ids=lambda file: file.name)
def test_scripts_of_the_workflow_start_fast(file):
    source = file.read_text(encoding="utf-8")
    assert not outside_imports(source) & {"numba", "sklearn"}
    for name in imports(source) & set(graph()):
        parts = {below.split(".")[1] for below in reach(name, graph())}
        assert not parts & WITH_NUMBA


def test_the_cache_key_covers_what_kernels_call():
    """All that algorithms call into and that has kernels stands in kernels/, which is the key."""
    decorated = {"ofslib._jit.kernel", "ofslib._jit.generic"}
    with_kernels = {
        part_of(file) for file, source in MODULES.items() if imports(source) & decorated
    }
    assert with_kernels == {"kernels", "algorithms"}


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
