"""Is a change of a line noticed? Mutants of the library, each shown to the tests of its module.

    python tests/mutants.py                              # 300 mutants: hours
    python tests/mutants.py -n 20 --seed 3 ofslib/kernels ofslib/algorithms/sfsa.py

A mutant has one operator, number, condition or statement changed. It is *killed* if a test fails;
those that survive are listed, and those whose tests take too long. Which mutants are drawn depends
on the seed and on the lines themselves, so that an edit elsewhere changes no draw. `--tests` takes
other tests for all.
"""

import argparse
import ast
import copy
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from fnmatch import fnmatch
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
MUTATED = ["ofslib/kernels", "ofslib/algorithms", "ofslib/bounds", "ofslib/streams"]
MUTATED += ["ofslib/reproduction/tables.py", "ofslib/reproduction/claims.py"]
SWAPS = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq, ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult, ast.Mod: ast.FloorDiv, ast.Pow: ast.Mult, ast.And: ast.Or,
    ast.Or: ast.And,
}  # fmt: skip
# The tests of a module, quick ones first. The first pattern that fits counts.
ROWS = ["test_rows_and_losses", "test_algorithms", "test_sfsa_by_the_page"]
ROWS += ["test_grids_by_the_page", "test_automatic", "test_everyday", "test_contract"]
COLUMNS = ["test_columns*", "test_leverage*"]
AVERAGES = ["test_averages*", "test_joint_averages*", "test_criteria*"]
TESTS = {
    "ofslib/bounds/*": ["test_bounds*", "test_statements*", "test_limits*", "test_studies*"],
    "ofslib/reproduction/tables.py": ["test_tables*", "test_claims*", "test_scoreboard*"],
    "ofslib/reproduction/claims.py": ["test_claims*", "test_tables*", "test_scoreboard*"],
    "*/gram.py": AVERAGES,
    "*/draws.py": ["test_draws*", "test_simulate*", "test_shapes*", "test_wishart*"],
    "*/kernels/[tnw]*.py": ["test_text*", "test_formats*"],
    "*/automatic_step.py": ["test_sfsa_by_the_page", "test_automatic", *ROWS],
    "*/mean_iterate.py": ["test_sfsa_by_the_page", *ROWS],
    "*/grid.py": ["test_grids_by_the_page", *ROWS],
    "*/selection.py": ["test_select", "test_sfsa_by_the_page", *ROWS],
    "*/pruning_queue.py": ["test_pruning_queue", *ROWS],
    "*/substitution.py": COLUMNS,
    "*/working_set.py": COLUMNS,
    "*/async_substitution.py": [*COLUMNS, "test_parallel*"],
    "*/algorithms/o[lf]*.py": AVERAGES,
    "*/algorithms/penalised.py": AVERAGES,
    **{f"*/algorithms/{name}*.py": COLUMNS for name in ("al", "g", "lap", "onl", "pro", "ri", "u")},
    "*/sparse_embedding.py": COLUMNS,
    "*/average_stream.py": AVERAGES,
    "*/column_stream.py": [*COLUMNS, "test_contract"],
    "*/checkpoint.py": ["test_cli*", "test_trust*"],
    "*/restored.py": ["test_model_files*", "test_malformed*", "test_contract"],
    "*/diagnostics.py": ["test_divergence", "test_everyday", "test_contract"],
    "*/selector.py": ["test_everyday", "test_contract", "test_bad_input", "test_model_files*"],
    "*/parameters.py": ["test_typing", "test_bad_input", "test_contract"],
    "*": [*ROWS, "test_select", "test_pruning_queue", "test_drift", "test_divergence",
          "test_partial_fit", "test_ranking", "test_bad_input"],
}  # fmt: skip


class Mutant(NamedTuple):
    """Bytes `start` to `stop` of a file become `new`."""

    file: str
    line: int
    start: int
    stop: int
    old: str
    new: str
    place: int  # among equal ones of the file

    def draw(self, seed):
        """A number that other lines of the file do not change."""
        told = f"{seed} {self.file} {self.old} {self.new} {self.place}"
        return hashlib.sha256(told.encode()).digest()


def changed(node):
    """What an expression becomes, or "pass" for a statement; None where it stays as it is."""
    other = copy.copy(node)
    if isinstance(node, ast.Compare):
        other.ops = [SWAPS[type(node.ops[0])](), *node.ops[1:]]
    elif isinstance(node, ast.BinOp | ast.BoolOp) and type(node.op) in SWAPS:
        other.op = SWAPS[type(node.op)]()
    elif isinstance(node, ast.Constant) and type(node.value) in (int, float):
        other = ast.Constant(node.value + 1)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        other = node.operand
    elif isinstance(node, ast.AugAssign | ast.Raise) or (
        isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)
    ):
        return "pass"
    elif isinstance(node, ast.Assign) and not isinstance(node.targets[0], ast.Name | ast.Tuple):
        return "pass"
    else:
        return None
    return f"({ast.unparse(other)})"


def parts(node):
    """All of a tree that runs: no annotation, decorator or text with values in it."""
    yield node
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list", "keywords") and isinstance(
            node, ast.FunctionDef | ast.arg | ast.AnnAssign | ast.ClassDef
        ):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST) and not isinstance(child, ast.JoinedStr):
                yield from parts(child)


def mutants_of(file):
    text = (ROOT / file).read_bytes()
    begins, seen = [0], Counter()
    for line in text.splitlines(keepends=True):
        begins.append(begins[-1] + len(line))
    for node in parts(ast.parse(text)):
        new = changed(node) if isinstance(node, ast.expr | ast.stmt) else None
        if new:
            start = begins[node.lineno - 1] + node.col_offset
            stop = begins[node.end_lineno - 1] + node.end_col_offset
            old = text[start:stop].decode()
            yield Mutant(file, node.lineno, start, stop, old, new, seen[old, new])
            seen[old, new] += 1


def tests_of(file, given):
    patterns = given or next(tests for pattern, tests in TESTS.items() if fnmatch(file, pattern))
    found = [path for each in patterns for path in sorted(ROOT.glob(f"tests/{each}.py"))]
    files = list(dict.fromkeys(str(path.relative_to(ROOT)) for path in found))
    # Of a method on rows the tests with its name
    name = Path(file).stem.replace("_", "")
    return [*files, "-k", name] if patterns[0] == ROWS[0] and "/algorithms/" in file else files


def outcome(folder, tests, seconds):
    command = [sys.executable, "-m", "pytest", "-x", "-q", "--no-header", "-p", "no:cacheprovider"]
    settings = {"PYTHONPATH": str(folder), "NUMBA_CACHE_DIR": str(folder / "numba")}
    try:
        done = subprocess.run(
            [*command, *tests], cwd=folder, env=os.environ | settings, timeout=seconds,
            capture_output=True, text=True, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return "timed out", "perhaps it does not end"
    failed = [line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    return ("killed" if done.returncode else "survived"), " ".join(failed)[:150]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("under", nargs="*", default=MUTATED, help="files or folders to change")
    parser.add_argument("-n", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=900, help="a mutant's tests may take")
    parser.add_argument("--tests", nargs="*", help="patterns of files, without .py")
    given = parser.parse_args()
    files = [str(f.relative_to(ROOT)) for each in given.under for f in sorted(ROOT.rglob("*.py"))
             if str(f.relative_to(ROOT)).startswith(each)]  # fmt: skip
    drawn = sorted((m for f in files for m in mutants_of(f)), key=lambda m: m.draw(given.seed))
    count = Counter()
    with tempfile.TemporaryDirectory() as scratch:
        skip = shutil.ignore_patterns(".git", ".venv", "results", "__pycache__", ".snakemake")
        folder = Path(shutil.copytree(ROOT, Path(scratch) / "main", ignore=skip))
        for mutant in sorted(drawn[: given.n]):
            path, start = folder / mutant.file, time.time()
            text = path.read_bytes()
            path.write_bytes(text[: mutant.start] + mutant.new.encode() + text[mutant.stop :])
            told = outcome(folder, tests_of(mutant.file, given.tests), given.seconds)
            path.write_bytes(text)
            count[told[0]] += 1
            old = " ".join(mutant.old.split())[:60]
            print(f"{told[0]:9}{time.time() - start:5.0f} s  {mutant.file}:{mutant.line}: "
                  f"{old} -> {mutant.new[:60]}  {told[1]}", flush=True)  # fmt: skip
    print(", ".join(f"{n} {name}" for name, n in sorted(count.items())))


if __name__ == "__main__":
    main()
