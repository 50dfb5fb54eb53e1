"""The experiments of the five papers: needed to make them again, not to use a method."""

from importlib.util import find_spec

_missing = [name for name in ("matplotlib", "pydantic", "seaborn", "yaml") if not find_spec(name)]
if _missing:
    raise ModuleNotFoundError(
        f"{__name__} needs {', '.join(_missing)}: pip install -e '.[reproduction]' in the checkout"
    )
