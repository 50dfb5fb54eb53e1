"""Measure the speeds that docs/performance.md states: python tests/speed.py [dense sparse ...]

One core (the kernels use one thread); the median of several runs; learning only, in nanoseconds
per number of a dense row or per nonzero of a sparse one. Time is that of the processor; other
programs slow it down all the same, by the memory that they use.
"""

import functools
import importlib
import os
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd
import psutil
import scipy.sparse as sp
from scipy.linalg.blas import dgemm
from sklearn.datasets import load_svmlight_file
from threadpoolctl import threadpool_limits

from ofslib import (
    AdaFobosClassifier,
    ARDAClassifier,
    BAMDClassifier,
    BARDAClassifier,
    FOFSClassifier,
    Grafting,
    OFSARegressor,
    OnlineLeverageSelector,
    OnlineSubstitution,
    OPGRegressor,
    RDARegressor,
    SFSAClassifier,
    SFSARegressor,
    SGDTClassifier,
    SGDTRegressor,
    SOFSClassifier,
)
from ofslib.averages import RunningAverages
from ofslib.datasets import open_stream
from ofslib.simulate import Equicorrelated
from ofslib.wishart import LowRank, sample_averages

REPEATS = 5
P, K = 10_000, 100


def dense(n: int = 20_000) -> None:
    """A stream in blocks of 1000 rows, each learned right after it was generated."""
    own = {"k": K, "learning_rate": 1e-4, "maturity": n, "fit_intercept": False}
    cases = {
        "SFSA": lambda: SFSARegressor(**own),
        "SFSA-AG": lambda: SFSARegressor(**own, optimizer="nesterov"),
        "SFSA, importance as printed": lambda: SFSARegressor(**own, importance="scaled_root"),
        "SGDT": lambda: SGDTRegressor(**own),
    }
    times = {name: [] for name in cases}
    for repeat in range(REPEATS + 1):  # the first one compiles
        models, seconds = {name: make() for name, make in cases.items()}, dict.fromkeys(cases, 0.0)
        for X, y in Equicorrelated(P, K).stream(n, np.random.default_rng(repeat)):
            for name, model in models.items():
                start = time.process_time()
                model.partial_fit(X, y)
                seconds[name] += time.process_time() - start
        for name in cases:
            times[name].append(seconds[name])
    report("dense rows, n = 20,000, p = 10,000", times, n * P)


def sparse(n: int = 100_000, nonzeros: int = 200) -> None:
    """Rows with 200 standard normal entries at random places; the sign of 100 of the features."""
    rng = np.random.default_rng(0)
    indices = rng.integers(0, P, n * nonzeros)
    values, starts = rng.standard_normal(n * nonzeros), np.arange(n + 1) * nonzeros
    X = sp.csr_matrix((values, indices, starts), shape=(n, P))
    X.sum_duplicates()
    beta = np.zeros(P)
    beta[9 : 10 * K : 10] = rng.uniform(0, 1, K)
    y = np.where(X @ beta > 0, 1, -1)
    times = {}
    budgeted = (SFSAClassifier, SGDTClassifier, FOFSClassifier, SOFSClassifier)
    budgeted += (BARDAClassifier, BAMDClassifier)
    for cls in (*budgeted, ARDAClassifier, AdaFobosClassifier):
        budget = {"k": K} if cls in budgeted else {"l1": 1e-3}
        for step in ({"learning_rate": 0.01}, {}) if cls is SFSAClassifier else ({},):
            model = cls(**budget, **step, fit_intercept=False, shuffle=False)
            name = cls.__name__ + ", own step" * (cls is SFSAClassifier and not step)
            times[name] = [timed(model.fit, X, y) for _ in range(REPEATS + 1)]
    report("sparse rows, n = 100,000, p = 10,000, 200 nonzeros", times, X.nnz)


def grid(n: int = 10_000) -> None:
    """200 penalties in one pass over dense rows, against 200 passes with one penalty."""
    X, y = Equicorrelated(P, K).sample(n, np.random.default_rng(0))
    own = {"batch_size": 25, "fit_intercept": False, "shuffle": False}
    for cls, step in ((OPGRegressor, {"learning_rate": 1e-4}), (RDARegressor, {"gamma": 5e3})):
        one, all_of_them = cls(l1=1.0, **step, **own), cls(k=K, **step, **own)
        times = {}
        for name, model in {"one penalty": one, "200 penalties": all_of_them}.items():
            model.fit(X[:100], y[:100])  # compiles
            times[name] = statistics.median(timed(model.fit, X, y) for _ in range(3))
        gain = 200 * times["one penalty"] / times["200 penalties"]
        sys.stdout.write(f"\n{cls.__name__}: seconds {times}; 200 passes / one pass: {gain:.1f}\n")


def averages() -> None:
    """Forming the averages against dgemm, drawing them, and what OFSA takes in comparison."""
    rng = np.random.default_rng(0)
    gram = {}
    for p, n in ((1000, 20_000), (P, 2048)):
        A = np.asfortranarray(rng.standard_normal((p, 1000)))
        # Given memory: that of a new matrix has to be found first.
        own = {"c": np.zeros((p, p), order="F"), "overwrite_c": True, "trans_b": True}
        held = RunningAverages(p)
        n -= n % held.block_rows  # so that none of them waits
        X, y = rng.standard_normal((n, p)), rng.standard_normal(n)
        held.update(X, y)
        times = {"dgemm": [], "update": []}
        for _ in range(REPEATS):
            times["dgemm"].append(timed(lambda A=A, own=own: dgemm(1.0, A, A, **own)) / A.shape[1])
            times["update"].append(timed(held.update, X, y) / n)
        each = {name: statistics.median(seconds) for name, seconds in times.items()}
        # dgemm computes both triangles.
        share = each["dgemm"] / 2 / each["update"]
        gram[p] = each["update"]
        sys.stdout.write(f"\nupdate, p = {p}: {share:.2f} of the rate of dgemm\n")
    for p in (1000, P):
        design = Equicorrelated(p, K)
        own = (LowRank(*design.low_rank()), design.coef, 1.0, "regression", 0)
        drawn = statistics.median(timed(sample_averages, 10**6, *own) for _ in range(3))
        gain = 10**6 * gram[p] / drawn
        sys.stdout.write(f"averages of 10^6 rows, p = {p}: streaming / drawing: {gain:.0f}\n")
    design = Equicorrelated(P, P // 10)
    own = (LowRank(*design.low_rank()), design.coef, 1.0, "regression", 0)
    held = sample_averages(10**6, *own)
    for mu in (5, 10):
        model = OFSARegressor(k=P // 10, mu=mu)
        times = [
            timed(lambda m=model: m.fit_averages(held, copy=False).coef_) for _ in range(REPEATS)
        ]
        share = statistics.median(times) / (10_000 * gram[P])
        sys.stdout.write(
            f"standardise, OFSA (mu = {mu}) and refit / averages of 10^4 rows: {share:.2f}\n"
        )


def columns(p: int = 200_000, n: int = 1000, block: int = 500) -> None:
    """Columns that are made while they are shown; 100 have the coefficient 1, the noise is 1."""
    rng = np.random.default_rng(0)
    true = np.sort(rng.choice(p, K, replace=False))

    def made(start):
        return np.random.default_rng([1, start]).standard_normal((block, n)).T

    y = rng.standard_normal(n)
    for start in np.unique(true // block * block):
        y += made(start)[:, true[true // block * block == start] - start].sum(axis=1)
    cases = {"OS": OnlineSubstitution(k=K)}
    cases |= {f"Grafting, l1 = {l1}": Grafting(k=K, l1=l1) for l1 in (0.15, 0.5)}
    sys.stdout.write(f"\n{p} columns of {n} rows\n")
    for name, model in cases.items():
        seconds, memory = 0.0, []
        for start in range(0, p, block):
            X = made(start)
            seconds += timed(
                lambda m=model, X=X, s=start: m.partial_fit_columns(X, None if s else y)
            )
            memory.append(psutil.Process().memory_info().rss / 2**20)
        sys.stdout.write(
            f"  {name:30s} {p / seconds:9.0f} columns/s, {model.peak_features_} kept at most; "
            f"MB from the 10,000th column on: {min(memory[20:]):.0f} to {max(memory[20:]):.0f}\n"
        )


def leverage(p: int = 2000) -> None:
    """One feature more, against the pseudo-inverse of the moments computed anew."""
    for n in (100, 200, 400):
        X = np.random.default_rng(0).standard_normal((n, p))
        model = OnlineLeverageSelector(rate=1.0, k=None)
        each = min(timed(model.fit, X) for _ in range(3)) / p
        pinv = min(timed(np.linalg.pinv, X @ X.T) for _ in range(3))
        sys.stdout.write(f"leverage, n = {n}: one pinv / one feature: {pinv / each:.0f}\n")


def text(megabytes: int = 200, nonzeros: int = 60) -> None:
    """Reading LIBSVM text, ns per value: the least of five times, of the clock with two threads.

    Other readers are given the same numbers as they like them: a table, Vowpal Wabbit's text.
    """
    forms = {"12345:0.123456": (10**5, "{:.6f}"), "12345:-0.12345678901234567": (10**5, "{!r}")}
    with tempfile.TemporaryDirectory() as folder:
        svm, vw, csv = (Path(folder) / f"a.{end}" for end in ("svm", "vw", "csv"))
        others = {
            "scikit-learn, load_svmlight_file": lambda: load_svmlight_file(str(svm)),
            "pandas, C parser, table": lambda: pd.read_csv(csv, header=None),
            "pyarrow, one thread, table": lambda: arrow(csv),
            "Vowpal Wabbit, noop": lambda: wabbit(vw),
        }
        for example, (width, form) in {**forms, "17:1": (100, "1")}.items():
            rng, rows = np.random.default_rng(0), []
            for _ in range(2000):
                places = np.sort(rng.choice(width, nonzeros, replace=False)) + 1
                values = rng.random(nonzeros) if form == "{:.6f}" else rng.standard_normal(nonzeros)
                pairs = zip(places.tolist(), values.tolist(), strict=True)
                rows.append([f"{j}:{form.format(value)}" for j, value in pairs])
            lines = "".join(f"1 {' '.join(words)}\n" for words in rows)
            repeats = megabytes * 10**6 // len(lines)
            svm.write_text(lines * repeats)
            vw.write_text(lines.replace("\n1 ", "\n1 | ").replace("1 ", "1 | ", 1) * repeats)
            csv.write_text(
                lines.replace("\n1 ", "\n")[2:].replace(" ", "\n").replace(":", ",") * repeats
            )
            nnz = repeats * 2000 * nonzeros
            run = functools.partial(open_stream, svm, n_features=width)
            cases = {
                "blocks of rows": lambda run=run: consumed(run(cache=False)),
                "rows and largest index": lambda: open_stream(svm, cache=False).n_features,
                "first use of a cache": lambda run=run: consumed(run(cache=fresh(folder))),
                **(others if form != "1" else {}),
            }
            sys.stdout.write(f"\n{example}, {megabytes} MB, ns per value\n")
            for name, case in cases.items():
                case()
                least = min(timed(case) for _ in range(REPEATS))
                sys.stdout.write(f"  {name:33s} {1e9 * least / nnz:6.1f}\n")
            clock = {1: [], 2: []}
            for n_jobs in list(clock) * REPEATS:
                start = time.perf_counter()
                consumed(run(cache=False, n_jobs=n_jobs))
                clock[n_jobs].append(time.perf_counter() - start)
            gain = min(clock[1]) / min(clock[2])
            sys.stdout.write(f"  two threads: {gain:.2f} times faster\n")
            stream = run(cache=folder)
            consumed(stream)
            least = min(timed(consumed, stream) for _ in range(REPEATS))
            sys.stdout.write(f"  from the cache: {12e-9 * nnz / least:.1f} GB/s\n")


def select(rows: int = 10**6, nonzeros: int = 60) -> None:
    """`ofslib select` on a text of 1e5 features, and Vowpal Wabbit's coin on the same rows.

    Processor seconds, also in units of the values at 25 ns, and the largest memory; a first
    run fills the caches of compiled code and of the disk.
    """
    with tempfile.TemporaryDirectory() as folder:
        svm, vw, model = (str(Path(folder) / name) for name in ("a.svm", "a.vw", "model"))
        rng, lines = np.random.default_rng(0), []
        effects = rng.standard_normal(10**5)
        for _ in range(20_000):
            places = np.sort(rng.choice(10**5, nonzeros, replace=False))
            values = rng.random(nonzeros)
            label = 1 if effects[places] @ values > 0.0 else -1
            pairs = zip((places + 1).tolist(), values.tolist(), strict=True)
            lines.append((label, " ".join(f"{j}:{value:.6f}" for j, value in pairs)))
        for path, form in ((svm, "{} {}\n"), (vw, "{} | {}\n")):
            with open(path, "w") as file:
                for _ in range(rows // len(lines)):
                    file.writelines(form.format(*line) for line in lines)
        ours = "import sys, ofslib.cli; sys.exit(ofslib.cli.main(sys.argv[1:]))"
        theirs = "import sys, vowpalwabbit as v; v.Workspace(sys.argv[1]).finish()"
        coin = f"--coin --loss_function logistic --quiet -d {vw} -f {model}"
        own = ["select", svm, "-k", "1000", "--quiet", "--model", model, "--out", model + ".csv"]
        sys.stdout.write(f"\nselect, {rows} rows of {nonzeros} values\n")
        for name, program, arguments in (("ofslib", ours, own), ("coin", theirs, [coin])):
            runs = [child([sys.executable, "-c", program, *arguments]) for _ in range(4)][1:]
            seconds, memory = (statistics.median(part) for part in zip(*runs, strict=True))
            units = seconds / (25e-9 * rows * nonzeros)
            sys.stdout.write(f"  {name:8s} {seconds:6.2f} s {units:5.2f} {memory / 1e6:6.0f} MB\n")


def child(command: list[str]) -> tuple[float, float]:
    """Processor seconds and largest memory in bytes of a command."""
    pid = os.posix_spawn(command[0], command, os.environ | {"OMP_NUM_THREADS": "1"})
    _, status, usage = os.wait4(pid, 0)
    if status:
        raise RuntimeError(f"{command[:4]}: status {status}")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024.0


def consumed(stream) -> None:
    for _ in stream:
        pass


def fresh(folder) -> Path:
    """A folder without a cache of an earlier run."""
    shutil.rmtree(Path(folder) / "cache", ignore_errors=True)
    return Path(folder) / "cache"


def arrow(path) -> None:
    csv = importlib.import_module("pyarrow.csv")  # to be installed by who measures
    names = csv.ReadOptions(autogenerate_column_names=True, use_threads=False)
    csv.read_csv(path, names)


def wabbit(path) -> None:
    import vowpalwabbit

    vowpalwabbit.Workspace(f"--noop --quiet -d {path}").finish()


def timed(function, *args) -> float:
    start = time.process_time()
    function(*args)
    return time.process_time() - start


def report(title: str, times: dict[str, list[float]], numbers: int) -> None:
    sys.stdout.write(f"\n{title}: ns per number, and seconds in all\n")
    for name, seconds in times.items():
        median = statistics.median(seconds[1:])
        sys.stdout.write(f"  {name:30s} {1e9 * median / numbers:6.2f} {median:8.3f}\n")


if __name__ == "__main__":
    cases = (dense, sparse, grid, averages, columns, leverage, text, select)
    with threadpool_limits(1):
        for case in cases:
            if case.__name__ in sys.argv[1:] or not sys.argv[1:]:
                case()
