"""Which source files a run depends on, found by reading imports, not by running them."""

import ast
import importlib.util
import os
from functools import cache
from pathlib import Path

from ofslib import estimator_homes

PACKAGE = Path(__file__).parent


def sources(*names: str) -> list[str]:
    """Files of ofslib, and of the user, that the named modules or classes are made of.

    Parameters
    ----------
    *names : str
        "experiment" (a module of ofslib), "SFSARegressor" (a class of ofslib) or
        "package.module:name" (a class or function of a study, or of the user).

    Returns
    -------
    list of str
        Relative to the working folder, in order.

    Raises
    ------
    LookupError
        If a name stands for nothing.
    """
    todo, found = [home(name) for name in names], set()
    while todo:
        file = todo.pop()
        if file not in found:
            found.add(file)
            todo += _imports(file)
    return sorted(os.path.relpath(file) for file in found)


def home(name: str) -> Path:
    """The file that a module or class of `sources` stands in."""
    if ":" in name:
        module = name.partition(":")[0]
        try:
            spec = importlib.util.find_spec(module)
        except ModuleNotFoundError:
            spec = None
        if not (spec and spec.origin):
            raise LookupError(f"{name!r}: no module {module!r} can be imported")
        return Path(spec.origin)
    if (PACKAGE / f"{name}.py").exists():
        return PACKAGE / f"{name}.py"
    if name not in estimator_homes():
        raise LookupError(f"ofslib has no {name!r}; its classes are {sorted(estimator_homes())}")
    return PACKAGE.parent / f"{estimator_homes()[name].replace('.', '/')}.py"


@cache
def _imports(file: Path) -> list[Path]:
    """Modules of ofslib that a file imports by name."""
    modules = []
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("ofslib"):
            modules += [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        elif isinstance(node, ast.Import):
            modules += [alias.name for alias in node.names]
    paths = [PACKAGE.parent / f"{module.replace('.', '/')}.py" for module in modules]
    return [path for path in paths if path.is_file() and PACKAGE in path.parents]
