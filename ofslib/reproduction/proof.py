"""Show that no version of config/versions.yaml was forgotten.

A result is identified by versions, not by sources: whoever changes a number raises a version. Here
a small set of numbers is computed again and compared with config/proof.csv. What it is made of
stands in `proof_cases`.
"""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ofslib._files import write_whole
from ofslib.reproduction import identity, proof_cases

VERSIONS, STORED = identity.VERSIONS, "config/proof.csv"
COLUMNS = ["name", "version", "case", "quantity", "value"]
# Another processor or number of threads adds in another order; single precision has seven digits.
ROUNDING, ROUNDING_OF_SINGLE = 1e-9, 1e-4
# What is less is compared as if it were this large: it may be nothing but rounding.
LEAST = 1e-3


def prove(names: list[str] | None = None, accept: bool = False) -> pd.DataFrame:
    """Compute again what versions stand for, and compare it with what is stored.

    Run it in the folder of the project.

    Parameters
    ----------
    names : list of str, optional
        Each "section: name", or a part of it, as "SFSA" or "rows:". None: all.
    accept : bool, default=False
        Whether to store the new values of names that are new or have a raised version.

    Returns
    -------
    DataFrame
        A row for each name, with columns name, verdict, line, case, quantity, stored and found.
        The verdict is equal, rounding, different, raised, accepted or not installed. `line` says
        what to do; the columns after it show the largest difference.

    Raises
    ------
    ValueError
        If a name has no version or no stored values, if a version is lower than the stored one, or
        if nothing has one of `names`. With `accept` also if values differ without a raised version;
        nothing is written then.
    """
    versions, stored = read_versions(), _read_stored()
    chosen = _chosen(versions, names)
    kept = {name: own for name, own in stored.groupby("name", sort=False) if name in versions}
    if unknown := [] if accept else [name for name in chosen if name not in kept]:
        count = f"{len(unknown)} names, {unknown[0]!r} first" if unknown[1:] else repr(unknown[0])
        raise ValueError(f"{STORED} has no values of {count}. Type {_accepting(unknown)}")
    verdicts = []
    for name in chosen:
        section, _, own = name.partition(": ")
        if why := proof_cases.lacking(section, own):
            verdicts.append({"name": name, "verdict": "not installed", "line": why})
            continue
        try:
            found = tabled(name, versions[name], proof_cases.numbers(section, own))
        except Exception as error:
            error.add_note(f"This is of {name}.")
            raise
        verdict = judge(found, kept.get(name))
        if verdict["verdict"] == "raised":
            kept[name] = found if accept else kept[name]
            verdict |= {"verdict": "accepted", "line": ""} if accept else {}
        verdicts.append(verdict)
    if accept:
        if wrong := [each["line"] for each in verdicts if each["verdict"] == "different"]:
            raise ValueError("nothing is accepted. Raise first:\n" + "\n".join(wrong))
        whole = pd.concat([kept[name] for name in versions if name in kept])
        write_whole(STORED, whole.to_csv(index=False, float_format="%.17g", lineterminator="\n"))
    columns = ["name", "verdict", "line", "case", "quantity", "stored", "found"]
    return pd.DataFrame(verdicts, columns=columns)


def read_versions() -> dict[str, int]:
    """The versions of config/versions.yaml by "section: name".

    Raises
    ------
    ValueError
        If a name is missing there, or is none.
    """
    given, known, faults = identity.versions(), proof_cases.known(), []
    for section in {**known, **given}:
        names, own = known.get(section, []), given.get(section, {})
        faults += [f"add the line `{_key(n)}: 1` to {section}" for n in names if n not in own]
        faults += [f"remove `{_key(n)}` from {section}" for n in own if n not in names]
    if faults:
        raise ValueError(f"{VERSIONS}:\n" + "\n".join(faults))
    return {f"{section}: {name}": v for section in known for name, v in given[section].items()}


def judge(found: pd.DataFrame, stored: pd.DataFrame | None) -> dict[str, Any]:
    """The verdict on a name, from two tables with the columns of config/proof.csv."""
    name, version = found["name"].iloc[0], int(found["version"].iloc[0])
    if stored is None:
        return {"name": name, "verdict": "raised", "line": _accepting([name])}
    before = int(stored["version"].iloc[0])
    if version < before:
        raise ValueError(f"{VERSIONS}, {name}: {version} is lower than {before}, which is stored")
    verdict, worst = compare(found, stored)
    line = ""
    if version > before:
        verdict, line = "raised", _accepting([name])
    elif verdict == "different":
        section, _, own = name.partition(": ")
        line = f"{VERSIONS}, {section}: {_key(own)}: {version} -> {version + 1}"
    return {"name": name, "verdict": verdict, "line": line, **worst}


def compare(found: pd.DataFrame, stored: pd.DataFrame) -> tuple[str, dict[str, Any]]:
    """Whether numbers are equal, or rounded, or different; and the one that differs most."""
    columns = ["case", "quantity", "value"]
    both = stored[columns].merge(found[columns], on=columns[:2], how="outer").fillna(0.0)
    old, new = both["value_x"], both["value_y"]
    # Both signs of an array have one scale.
    array = both["quantity"].str.removesuffix(" +").str.removesuffix(" -")
    scale = old.abs().groupby([both["case"], array]).transform("max").clip(lower=LEAST)
    single = both["case"].str.contains("float32")
    off = (new - old).abs() / scale / np.where(single, ROUNDING_OF_SINGLE, ROUNDING)
    if (old == new).all():
        return "equal", {}
    case, quantity, *values = both.loc[off.idxmax()]
    verdict = "different" if off.max() > 1.0 else "rounding"
    shown = dict(zip(("stored", "found"), values, strict=True))
    return verdict, {"case": case, "quantity": quantity, **shown}


def tabled(name: str, version: int, cases) -> pd.DataFrame:
    """The rows of config/proof.csv of a name, from the numbers and arrays of its cases."""
    rows = [
        (name, version, case, quantity, value)
        for case, found in cases
        for whole, values in found.items()
        for quantity, value in summary(whole, values).items()
    ]
    return pd.DataFrame(rows, columns=COLUMNS)


def summary(quantity: str, values: Any) -> dict[str, float]:
    """A number as it is; an array as weighted sums, which a change of any entry changes."""
    values = np.ravel(values).astype(float)
    counts = {" not finite": np.count_nonzero(~np.isfinite(values))}
    if quantity == "coef_":
        counts[" nonzero"] = np.count_nonzero(values)
    values = np.where(np.isfinite(values), values, 0.0)
    sums = {"": values.sum()}
    if len(values) != 1:
        weights = np.random.default_rng(1).uniform(1, 2, len(values))
        # Signs apart, so that nothing cancels.
        sums = {" +": weights @ np.maximum(values, 0), " -": weights @ np.maximum(-values, 0)}
    parts = sums | {part: count for part, count in counts.items() if count}
    return {quantity + part: float(value) for part, value in parts.items()}


def _chosen(versions, names) -> list[str]:
    if lost := [name for name in names or () if not any(name in full for full in versions)]:
        raise ValueError(f"{VERSIONS} has no name with {lost}; names begin {[*versions][:3]} ...")
    exact = [name for name in names or () if name in versions]
    parts = [name for name in names or [""] if name not in versions]
    return [n for n in versions if n in exact or any(part in n for part in parts)]


def _read_stored() -> pd.DataFrame:
    if not Path(STORED).is_file():  # before the first values are accepted
        return pd.DataFrame(columns=COLUMNS)
    # Python reads all digits of a number.
    return pd.read_csv(STORED, dtype={"value": str}).astype({"value": float})


def _accepting(names: list[str]) -> str:
    own = [f'"{name}"' for name in names] if len(names) < 4 else []  # else all
    return " ".join(["python -m ofslib.reproduction prove --accept", *own])


def _key(name: str) -> str:
    """A key of YAML; with quotes where one needs them."""
    return name if re.fullmatch(r"\w+", name) else f'"{name}"'
