"""The house rules that no tool has: import-linter's, what kernels may be, how deep classes are.

Ruff holds docstrings, complexity and what may not stay behind (pyproject.toml).
"""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import ofslib

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "ofslib"


def homes(pattern, *folders):
    """The files in which a line begins like this."""
    files = [file for folder in folders for file in sorted((ROOT / folder).rglob("*.py"))]
    found = re.compile(pattern, re.MULTILINE)
    return {file for file in files if found.search(file.read_text(encoding="utf-8"))}


def test_imports_keep_the_contracts():
    """Those of pyproject.toml: layers, two files that import numba, what starts without it."""
    linter = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run(
        [linter, "--no-cache", "--no-logo"], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout


def test_one_file_imports_private_parts_of_numba():
    """Public is what numba's manual documents: the module itself, its types, and extending."""
    private = r"^\s*(from|import) numba\.(?!types|extending)"
    assert homes(private, "ofslib", "workflow", "benchmarks") == {PACKAGE / "_fast_compile.py"}


def test_the_cache_key_covers_what_kernels_call():
    """Kernels stand in kernels/, whose sources are the key, and in the algorithms themselves."""
    found = homes(r"^from ofslib\._jit import .*\b(kernel|generic)\b", "ofslib")
    assert {file.relative_to(PACKAGE).parts[0] for file in found} == {"kernels", "algorithms"}


@pytest.mark.parametrize("name", [name for names in ofslib.ESTIMATORS.values() for name in names])
def test_few_classes_stand_above_an_estimator(name):
    """To know what it does, they have to be read."""
    above = [c for c in getattr(ofslib, name).__mro__[1:] if c.__module__.startswith("ofslib")]
    assert len(above) <= 6, above
