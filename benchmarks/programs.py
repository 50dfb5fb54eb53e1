"""Whole programs: from a file to a model, what an import costs, and the first call ever."""

import functools
from pathlib import Path

import numpy as np

from benchmarks.measure import Method, calling, program, scratch

IMPORTS = {
    "python": "pass",
    "numpy": "import numpy",
    "ofslib": "import ofslib",
    "ofslib, SFSAClassifier": "from ofslib import SFSAClassifier",
    "ofslib, OFSARegressor": "from ofslib import OFSARegressor",
    "scikit-learn, linear_model": "import sklearn.linear_model",
    "Vowpal Wabbit": "import vowpalwabbit",
    "river, linear_model": "import river.linear_model",
    "abess": "import abess",
    "skglm": "import skglm",
    "celer": "import celer",
    "glmnet": "import glmnet",
}
FIRST = {
    "SFSA": "SFSAClassifier(k=3)",
    "SFSA, constant step": "SFSAClassifier(k=3, learning_rate=0.01)",
    "SGDT": "SGDTClassifier(k=3)",
    "FOFS": "FOFSClassifier(k=3)",
    "B-ARDA": "BARDAClassifier(k=3)",
    "OFSA": "OFSARegressor(k=3)",
    "OS": "OnlineSubstitution(k=3)",
}


def imports() -> list[Method]:
    """A Python that imports this, and nothing else. A value is a program."""
    methods = []
    for name, code in IMPORTS.items():
        module = code.split()[1].partition(".")[0] if " " in code else ""
        needs = module if module not in ("", "numpy", "ofslib", "sklearn") else ""
        methods.append(Method(name, calling(program, code), 1, needs=needs))
    return methods


def compile(methods: list[str]) -> list[Method]:
    """The first fit of a method, where nothing has been compiled, and a later one.

    A value is a program.
    """
    start = "import numpy as np, ofslib; X = np.random.default_rng(0).standard_normal((60, 8))\n"
    data = start + "y = np.where(X[:, 0] + X[:, 5] > 0, 1.0, -1.0)\n"
    lines = []
    for name in methods:
        code = f"{data}ofslib.{FIRST[name]}.fit(X, y).coef_"
        for state in ("cold", "warm"):
            make = functools.partial(_begun, code, scratch() / name, state == "warm")
            lines.append(Method(f"{name}, {state}", make, 1, turns=1))
    return lines


def _begun(code: str, folder: Path, warm: bool):
    run = functools.partial(program, code, NUMBA_CACHE_DIR=f"{folder}, {warm}")
    if warm:
        run()
    return run


def select(rows: int, nonzeros: int) -> list[Method]:
    """From a text of 1e5 features to a model: `ofslib select`, beside Vowpal Wabbit's coin.

    A value is a number of the text.
    """
    svm, vw, model = (str(scratch() / name) for name in ("a.svm", "a.vw", "model"))
    _write(rows, nonzeros, svm, vw)
    ours = "import sys, ofslib.cli\nif ofslib.cli.main(sys.argv[1:]): sys.exit(1)"
    theirs = "import sys, vowpalwabbit as v; v.Workspace(sys.argv[1]).finish()"
    coin = f"--coin --loss_function logistic --quiet -d {vw} -f {model}"
    own = ["select", svm, "-k", "1000", "--quiet", "--model", model, "--out", model + ".csv"]
    programs = {"ofslib select": ((ours, *own), "")}
    programs["Vowpal Wabbit coin"] = ((theirs, coin), "vowpalwabbit")
    return [
        Method(name, calling(program, *command), rows * nonzeros, needs=needs)
        for name, (command, needs) in programs.items()
    ]


def _write(rows: int, nonzeros: int, svm: str, vw: str) -> None:
    rng, lines = np.random.default_rng(0), []
    effects = rng.standard_normal(10**5)
    for _ in range(min(rows, 20_000)):
        places = np.sort(rng.choice(10**5, nonzeros, replace=False))
        values = rng.random(nonzeros)
        label = 1 if effects[places] @ values > 0.0 else -1
        pairs = zip((places + 1).tolist(), values.tolist(), strict=True)
        lines.append((label, " ".join(f"{j}:{value:.6f}" for j, value in pairs)))
    for path, form in ((svm, "{} {}\n"), (vw, "{} | {}\n")):
        with open(path, "w") as file:
            for _ in range(rows // len(lines)):
                file.writelines(form.format(*line) for line in lines)
