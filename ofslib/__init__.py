"""Online feature selection: the algorithms, the bounds and the experiments of five papers.

Every estimator is found by its name: ``from ofslib import SFSAClassifier``.
"""

import ast
from functools import cache
from importlib import import_module
from pathlib import Path

__version__ = "0.1.0"

# A class that derives from one of these is complete.
_COMPLETE = {"RowClassifier", "RowRegressor", "AverageClassifier", "AverageRegressor"}
_COMPLETE |= {"ColumnStream", "ColumnModel", "ColumnScan", "PenalisedScan", "ScoredSelector"}
_COMPLETE |= {"TransformerMixin"}


@cache
def estimator_homes() -> dict[str, str]:
    """Public estimators and their modules, read from the sources without importing them."""
    homes = {}
    for file in sorted(Path(__file__).with_name("algorithms").glob("[!_]*.py")):
        for node in ast.parse(file.read_text(encoding="utf-8")).body:
            # The families that Classifier and Regressor share are not for use by themselves.
            if isinstance(node, ast.ClassDef) and _is_public(node):
                homes[node.name] = f"ofslib.algorithms.{file.stem}"
    return homes


def _is_public(node: ast.ClassDef) -> bool:
    decorators = {d.id for d in node.decorator_list if isinstance(d, ast.Name)}
    bases = {base.id for base in node.bases if isinstance(base, ast.Name)}
    return "estimator" in decorators and not bases.isdisjoint(_COMPLETE)


def __getattr__(name: str):
    if name in estimator_homes():
        return getattr(import_module(estimator_homes()[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__():
    return sorted({*globals(), *estimator_homes()})
