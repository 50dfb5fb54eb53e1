"""Reading texts of numbers, beside others that read the same numbers as they like them."""

import functools
import importlib
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.datasets import load_svmlight_file

from benchmarks.measure import Method, calling, scratch
from ofslib.datasets import open_stream

FORMS = {
    "12345:0.123456": (10**5, "{:.6f}"),
    "12345:-0.12345678901234567": (10**5, "{!r}"),
    "17:1": (100, "1"),
}


def text(megabytes: float, nonzeros: int) -> list[Method]:
    """LIBSVM text: blocks of rows, and what others make of the same numbers.

    A value is a number of the text; others are given a table of two columns, or their own text.
    """
    return [each for form in FORMS for each in _reading(form, megabytes, nonzeros)]


def _reading(form: str, megabytes: float, nonzeros: int) -> list[Method]:
    folder = scratch()
    stem = folder / str(list(FORMS).index(form))
    svm, vw, csv = (stem.with_suffix(f".{end}") for end in ("svm", "vw", "csv"))
    values = _written(form, megabytes, nonzeros, svm, vw, csv)
    run = functools.partial(open_stream, svm, n_features=FORMS[form][0])
    caches = {name: folder / f"{stem.name}.{name}" for name in ("new", "kept")}

    def first_use():
        shutil.rmtree(caches["new"], ignore_errors=True)
        return lambda: _consumed(run(cache=caches["new"]))

    def kept():
        stream = run(cache=caches["kept"])
        _consumed(stream)
        return lambda: _consumed(stream)

    ours = {
        "blocks of rows": lambda: lambda: _consumed(run(cache=False)),
        "blocks of rows, 2 threads": lambda: lambda: _consumed(run(cache=False, n_jobs=2)),
        "rows and largest index only": lambda: lambda: open_stream(svm, cache=False).n_features,
        "first use of a cache": first_use,
        "from the cache": kept,
    }
    methods = [Method(f"{name}: {form}", make, values) for name, make in ours.items()]
    if form == "17:1":
        return methods
    peers = {
        "scikit-learn, load_svmlight_file": (lambda: load_svmlight_file(str(svm)), ""),
        "pandas, table": (lambda: pd.read_csv(csv, header=None), ""),
        "pyarrow, table": (lambda: _arrow(csv), "pyarrow"),
        "Vowpal Wabbit, --noop": (lambda: _wabbit(vw), "vowpalwabbit"),
    }
    return methods + [
        Method(f"{name}: {form}", calling(read), values, needs=needs)
        for name, (read, needs) in peers.items()
    ]


def _written(form: str, megabytes: float, nonzeros: int, svm: Path, vw: Path, csv: Path) -> int:
    """Write the same numbers in three forms; returns how many they are."""
    (width, digits), rng, rows = FORMS[form], np.random.default_rng(0), []
    for _ in range(1000):
        places = np.sort(rng.choice(width, nonzeros, replace=False)) + 1
        values = rng.random(nonzeros) if digits == "{:.6f}" else rng.standard_normal(nonzeros)
        pairs = zip(places.tolist(), values.tolist(), strict=True)
        rows.append([f"{j}:{digits.format(value)}" for j, value in pairs])
    lines = "".join(f"1 {' '.join(words)}\n" for words in rows)
    repeats = max(1, round(megabytes * 1e6 / len(lines)))
    table = "\n".join(word.replace(":", ",") for words in rows for word in words) + "\n"
    svm.write_text(lines * repeats)
    vw.write_text("".join(f"1 | {' '.join(words)}\n" for words in rows) * repeats)
    csv.write_text(table * repeats)
    return repeats * 1000 * nonzeros


def _consumed(stream) -> None:
    for _ in stream:
        pass


def _arrow(path) -> None:
    csv = importlib.import_module("pyarrow.csv")
    names = csv.ReadOptions(autogenerate_column_names=True, use_threads=False)
    csv.read_csv(path, names)


def _wabbit(path) -> None:
    import vowpalwabbit

    vowpalwabbit.Workspace(f"--noop --quiet -d {path}").finish()
