"""Which source files a run depends on, found by reading imports, not by running them."""

import ast
import importlib.util
import json
import os
import sys
import sysconfig
from collections.abc import Iterator
from functools import cache
from itertools import product, takewhile
from pathlib import Path

from ofslib import ESTIMATORS, home_of

PACKAGE = Path(__file__).parents[1]


def sources(*names: str) -> list[str]:
    """Files of ofslib, and of the user, that the named things are made of.

    Parameters
    ----------
    *names : str
        "reproduction.experiment" (a module of ofslib), "SFSARegressor" (a class of ofslib),
        "package.module:name" (a class or function of a study, or of the user), or
        "notebooks/regret.ipynb" (a notebook: what its cells import, not the notebook itself).

    Returns
    -------
    list of str
        Relative to the working folder, in order.

    Raises
    ------
    LookupError
        If a name stands for nothing.
    """
    todo, found = [], set()
    for name in names:
        todo += _imports(Path(name)) if name.endswith(".ipynb") else [home(name)]
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
        if _is_pythons_own(module):
            raise LookupError(
                f"{name!r}: {module!r} is a part of Python; allowed are ofslib, a module of yours, "
                "and other packages"
            )
        try:
            spec = importlib.util.find_spec(module)
        except ModuleNotFoundError:
            spec = None
        if not (spec and spec.origin):
            raise LookupError(f"{name!r}: no module {module!r} can be imported")
        return Path(spec.origin)
    file = _module(f"ofslib.{name}") or _module(home_of(name) or "")
    if file is None:
        classes = sorted(name for names in ESTIMATORS.values() for name in names)
        place, _, own = name.rpartition(".")
        hint = f" (one of your own is written {place}:{own})" if place else ""
        raise LookupError(f"ofslib has no {name!r}{hint}; its classes are {classes}")
    return file


@cache
def _imports(file: Path) -> list[Path]:
    """Modules of ofslib that a file or a notebook imports by name, and those beside a user's."""
    found = _packages(file)
    for node in ast.walk(ast.parse(_code(file))):
        found += _beside(file, node)
        if isinstance(node, ast.ImportFrom) and node.module == "ofslib":
            found += [_module(home_of(a.name) or f"ofslib.{a.name}") for a in node.names]
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("ofslib."):
            found += _from(node.module, [alias.name for alias in node.names])
        elif isinstance(node, ast.Import):
            found += [_module(alias.name) for alias in node.names]
    return [path for path in found if path]


def _beside(file: Path, node: ast.AST) -> Iterator[Path]:
    """The modules that an import names in the folder of a user's module, or in that of its package.

    Packages that are installed are taken as they are: their files are not followed.
    """
    if not (_is_users(file) and isinstance(node, ast.Import | ast.ImportFrom)):
        return
    level, above = getattr(node, "level", 0), file.resolve().parents
    folders = [above[level - 1]] if level else [top for top in above if _is_searched(top)]
    names = [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        module = node.module or ""
        names = [module, *(f"{module}.{name}".strip(".") for name in names)]
    for name in filter(None, names):
        parts = name.split(".")
        for folder, i in product(folders, range(len(parts))):
            path = folder.joinpath(*parts[: i + 1])
            for found in (path.with_suffix(".py"), path / "__init__.py"):
                if found.is_file() and not found.is_relative_to(PACKAGE):
                    yield found


def _packages(file: Path) -> list[Path]:
    """What is run before a user's module: the packages that it stands in."""
    inits = [folder / "__init__.py" for folder in file.resolve().parents] if _is_users(file) else []
    return list(takewhile(Path.is_file, inits))


def _is_users(file: Path) -> bool:
    installed = file.is_relative_to(PACKAGE) or "site-packages" in file.parts
    return file.suffix == ".py" and not installed


def _is_searched(folder: Path) -> bool:
    """Whether Python looks for modules here."""
    return any(folder == Path(place).resolve() for place in ("", *sys.path))


def _is_pythons_own(module: str) -> bool:
    """Whether a module belongs to Python; one beside the Snakefile may have such a name."""
    top = module.partition(".")[0]
    if top not in sys.stdlib_module_names:
        return False
    origin = Path(getattr(importlib.util.find_spec(top), "origin", None) or "")
    beside = origin.is_file() and not origin.is_relative_to(sysconfig.get_path("stdlib"))
    return not (beside or "site-packages" in origin.parts)


def is_no_class(name: str) -> bool:
    """Whether "package.module:name" is something else than a class, as far as its source tells.

    What is imported there, or made otherwise, is not known before a run imports it.
    """
    module, _, member = name.rpartition(":")
    if not module:
        return not any(name in names for names in ESTIMATORS.values())
    file = home(name)
    if file.suffix != ".py":
        return False
    return not _may_be_classes(file.read_text(encoding="utf-8")).get(member, True)


@cache
def _may_be_classes(code: str) -> dict[str, bool]:
    """Names that a module defines, and whether what each names in the end may be a class."""
    return {
        name: isinstance(node, ast.ClassDef | ast.Assign)
        for node in ast.parse(code).body
        for name in (getattr(node, "name", None), *map(_target, getattr(node, "targets", ())))
        if name
    }


def _target(node: ast.expr) -> str | None:
    return getattr(node, "id", None)


def _from(module: str, names: list[str]) -> Iterator[Path | None]:
    """Where the names stand that are imported from a module or a package."""
    for name in names:
        yield _module(f"{module}.{name}") or _module(module)


def _module(name: str) -> Path | None:
    """The file of a module or package of ofslib; None if it is none, or ofslib itself."""
    if not name.startswith("ofslib."):
        return None
    path = PACKAGE.joinpath(*name.split(".")[1:])
    for file in (path.with_suffix(".py"), path / "__init__.py"):
        if file.is_file():
            return file
    return None


def _code(file: Path) -> str:
    # A package that imports its modules when they are asked for names them in its stub.
    stub = file.with_suffix(".pyi")
    text = (stub if stub.is_file() else file).read_text(encoding="utf-8")
    if file.suffix != ".ipynb":
        return text
    cells = [cell for cell in json.loads(text)["cells"] if cell["cell_type"] == "code"]
    lines = [line for cell in cells for line in "".join(cell["source"]).splitlines()]
    # Commands of IPython and of the shell are no Python.
    return "\n".join(line for line in lines if not line.lstrip().startswith(("%", "!")))
