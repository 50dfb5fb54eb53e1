"""What to cite for a method: CITATION.bib, read by the keys that the class names."""

import re
from functools import cache
from pathlib import Path

from ofslib import home_of

_NO_PAPER = "% {} is a method of ofslib: no paper has it.{}\n"
_PARTS = " What it is built on follows."


def citation(method=None) -> str:
    """The BibTeX entries of ofslib and of a method.

    Parameters
    ----------
    method : estimator or class, default=None
        Its class names keys of CITATION.bib as `sources`. None: the entry of the package only.

    Returns
    -------
    str
        BibTeX. A comment says if the method itself is of ofslib and no paper has it.

    Examples
    --------
    >>> import ofslib
    >>> "Sun, Lizhe and Barbu, Adrian" in ofslib.citation(ofslib.SFSAClassifier(k=5))
    True
    """
    if method is None:
        return _entries()["ofslib"]
    cls = method if isinstance(method, type) else type(method)
    sources = getattr(cls, "sources", None)
    if not isinstance(sources, str):
        raise TypeError(
            f"{cls.__name__} does not say what to cite: give the class an attribute `sources`, "
            "keys of CITATION.bib with commas between them, or '' if no paper has the method."
        )
    keys = [key.strip() for key in sources.split(",") if key.strip()]
    if unknown := [key for key in keys if key not in _entries()]:
        raise ValueError(f"CITATION.bib has no {unknown[0]}, which {cls.__name__} names as source")
    found = [_entries()[key] for key in ("ofslib", *keys)]
    if not keys or (home_of(cls.__name__) or "").startswith("ofslib.beyond"):
        found.insert(1, _NO_PAPER.format(cls.__name__, _PARTS * bool(keys)))
    return "\n".join(found)


@cache
def _entries() -> dict[str, str]:
    """The entries of CITATION.bib by their keys."""
    text = Path(__file__).with_name("CITATION.bib").read_text(encoding="utf-8")
    return {entry[1]: entry[0] for entry in re.finditer(r"(?ms)^@\w+\{(\S+),$.*?^\}\n", text)}
