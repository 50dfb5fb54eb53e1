"""python -m benchmarks [case ...] [--scale smoke] [--out FILE]

Measures all cases, or these; a case is a function below, and its sizes stand in sizes.yaml. What is
measured goes to a CSV, a line for each turn of each method; the last lines say on which machine,
when, and with which versions. Then `python -m ofslib.reproduction.performance` makes the tables of
docs/performance.md of it.
"""

import argparse
import datetime
import importlib.metadata
import inspect
import json
import os
import re
import sys
from pathlib import Path

import pandas as pd
import yaml
from threadpoolctl import threadpool_limits

from benchmarks import batch, files, measure, programs, rows
from ofslib._files import write_whole
from ofslib.reproduction import machine, performance, provenance

HERE = Path(__file__).parent
PART = Path("results/benchmarks.csv")
CASES = {
    function.__name__: function
    for function in (
        *(rows.sparse, rows.budgets, rows.dense, rows.one_row, rows.penalties),
        *(batch.averages, batch.regression, batch.path, batch.columns, batch.leverage),
        *(files.text, programs.select, programs.imports, programs.compile),
    )
}
_REST = 0.5  # load of a machine that does nothing else
PACKAGES = ("ofslib", "numpy", "scipy", "numba", "scikit-learn", "pandas")


def facts(scale: str, sizes: dict) -> list[dict[str, str]]:
    """The machine by its kind, the date, and what was measured."""
    now, here = datetime.datetime.now(datetime.UTC), provenance.here()
    said = {
        "scale": scale,
        "date": now.isoformat(timespec="minutes"),
        "machine": machine.kind(),
        "load": f"{os.getloadavg()[0]:.1f} on {machine.cores()} cores",
        "commit": here["commit"],
        "blas": here["blas"],
        "python": sys.version.split()[0],
    }
    pinned = re.findall(r"^([\w-]+)==", (HERE / "requirements.txt").read_text(), re.M)
    for name in (*PACKAGES, *pinned):
        try:
            said[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            said[name] = "not installed"
    said |= {f"sizes of {case}": json.dumps(own) for case, own in sizes.items()}
    return [{"case": performance.FACTS, "method": key, "note": said[key]} for key in said]


def measured(case: str, own: dict) -> list[dict]:
    """The lines of a case."""
    own = dict(own)
    repeats = own.pop("turns")
    try:
        methods = CASES[case](**own)
        return [{"case": case, **row} for row in measure.turns(methods, repeats, threadpool_limits)]
    finally:
        measure.remove_scratch()


def main(argv: list[str] | None = None) -> None:
    """Measure, and write the file."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("cases", nargs="*", metavar="case", help=", ".join(CASES))
    scales = yaml.safe_load((HERE / "sizes.yaml").read_text())
    parser.add_argument("--scale", choices=scales, default="standard")
    parser.add_argument("--out", help="default: benchmarks/results.csv for all at scale standard")
    given = parser.parse_args(argv)
    if wrong := set(given.cases) - set(CASES):
        parser.error(f"no case {', '.join(sorted(wrong))}; there are {', '.join(CASES)}")
    sizes = {case: scales[given.scale][case] for case in given.cases or CASES}
    whole = given.scale == "standard" and set(sizes) == set(CASES)
    out = Path(given.out or (HERE / "results.csv" if whole else PART))
    PART.parent.mkdir(exist_ok=True)
    said, lines = facts(given.scale, sizes), []
    if os.getloadavg()[0] > _REST:
        sys.stderr.write("something else is running: what is measured beside it says little\n")
    for case, own in sizes.items():
        sys.stdout.write(f"{case}: {inspect.getdoc(CASES[case]).splitlines()[0]}\n")
        new = measured(case, own)
        lines += new
        shown = performance.compared(pd.DataFrame(new), case)
        sys.stdout.write(shown.to_string(index=False, float_format="{:.3g}".format) + "\n\n")
        sys.stdout.flush()
        text = pd.DataFrame(lines + said).to_csv(index=False, float_format="%.6g")
        write_whole(PART, text)  # should a later case fail
    write_whole(out, text)
    sys.stdout.write(f"{out}\n")


if __name__ == "__main__":
    main()
