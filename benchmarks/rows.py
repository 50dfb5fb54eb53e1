"""Methods that see row after row, beside others that do."""

import functools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.linear_model import SGDClassifier, SGDRegressor
from sklearn.metrics import roc_auc_score

import ofslib
from benchmarks.limits import bare_loop, read
from benchmarks.measure import Method, fitting, found, largest, megabytes, scratch
from ofslib.reproduction import peers
from ofslib.reproduction.performance import LOOP, READ
from ofslib.simulate import Equicorrelated

K = 100
BUDGETED = {"SFSA": "SFSA", "SFSA at any time": "AnytimeSFSA", "SGDT": "SGDT", "FOFS": "FOFS"}
BUDGETED |= {"SOFS": "SOFS", "B-ARDA": "BARDA", "B-AMD": "BAMD"}
PENALISED = {"OPG": "OPG", "RDA": "RDA", "l1-ARDA": "ARDA", "Ada-Fobos": "AdaFobos"}
L1 = {"k": None, "l1": 1e-3}
OWN = {"fit_intercept": False, "shuffle": False}
ONE_PASS = OWN | {"max_iter": 1, "tol": None, "random_state": 0}  # of scikit-learn
CONSTANT = {"learning_rate": 0.01}


def _drawn(n: int, p: int, nonzeros: int) -> tuple[sp.csr_matrix, np.ndarray, np.ndarray]:
    """Rows with standard normal values at random places, the sign of the sum of some, and these."""
    rng = np.random.default_rng(0)
    indices = rng.integers(0, p, n * nonzeros, np.int32)
    starts = (np.arange(n + 1) * nonzeros).astype(np.int32)
    X = sp.csr_matrix((rng.standard_normal(n * nonzeros), indices, starts), shape=(n, p))
    X.sum_duplicates()
    true = np.arange(9, min(p, 10 * K), 10)
    beta = np.zeros(p)
    beta[true] = rng.uniform(0, 1, len(true))
    return X, np.where(X @ beta > 0, 1.0, -1.0), true


def sparse(n: int, p: int, nonzeros: int, few: int, fewer: int) -> list[Method]:
    """CSR rows, two classes, one pass; AUC of the K largest coefficients on other rows.

    `few` and `fewer` rows are shown to peers that take a Python object for each row, or number.
    """
    rows, labels, true = _drawn(n + n // 10, p, nonzeros)
    X, y, new = rows[:n], labels[:n], rows[n:]

    def score(model):
        chosen, coef = largest(model, K)
        auc = roc_auc_score(labels[n:], new[:, chosen] @ coef[chosen])
        memory = {"mb": megabytes(model)} if type(model).__module__.startswith("ofslib.a") else {}
        return {"score": auc, "found": found(chosen, true)} | memory

    models = {label: _classifier(name, k=K) for label, name in BUDGETED.items()}
    models |= {label: _classifier(name, **L1) for label, name in PENALISED.items()}
    models["SFSA, constant step"] = _classifier("SFSA", k=K, **CONSTANT)
    shuffled = {"shuffle": True, "random_state": 0}
    models["SFSA, constant step, shuffled"] = _classifier("SFSA", k=K, **CONSTANT, **shuffled)
    models["FOFS, mini-batches of 25"] = _classifier("FOFS", k=K, batch_size=25)
    methods = [Method(name, fitting(m, X, y), X.nnz, score) for name, m in models.items()]
    pair = _in_threads([_classifier("SFSA", k=K, **CONSTANT) for _ in range(2)], X, y)
    name = "SFSA, constant step, two fits in 2 threads"
    methods.append(Method(name, pair, 2 * X.nnz, threads=2))
    for penalty in ("l2", "l1", "elasticnet"):
        for passes in (1, 5) if penalty == "l1" else (1,):
            model = SGDClassifier(loss="log_loss", penalty=penalty, **ONE_PASS)
            model.set_params(max_iter=passes)
            name = f"scikit-learn SGD, {penalty}" + f", {passes} passes" * (passes > 1)
            methods.append(Method(name, fitting(model, X, y), X.nnz, score))
    methods += _limits(X, y)
    for name in ("LogisticRegression", "PAClassifier"):
        nnz = X.indptr[fewer]
        make = _learning(peers.RiverClassifier, {"model": name}, X[:fewer], y[:fewer] > 0)
        methods.append(Method(f"river {name}, {fewer} rows", make, nnz, needs="river", turns=2))
    for name, options in {"coin": "--coin", "FTRL": "--ftrl"}.items():
        needs = {"needs": "vowpalwabbit"}
        make = _learning(peers.VowpalWabbitClassifier, {"options": options}, X[:few], y[:few])
        line = f"Vowpal Wabbit {name}, from memory, {few} rows"
        methods.append(Method(line, make, X.indptr[few], **needs))
        make = functools.partial(_cached, options, X, y)
        line = f"Vowpal Wabbit {name}, from its cache"
        methods.append(Method(line, make, X.nnz, score, **needs))
    return methods


def budgets(n: int, p: int, nonzeros: int) -> list[Method]:
    """The same rows, with budgets from 10 to 1000 features."""
    X, y, _ = _drawn(n, p, nonzeros)
    ks = [k for k in (10, 100, 1000) if k < p]
    each = [(label, name, k) for label, name in BUDGETED.items() for k in ks]
    models = {f"{label}, k = {k}": _classifier(name, k=k) for label, name, k in each}
    methods = [Method(name, fitting(m, X, y), X.nnz) for name, m in models.items()]
    return methods + _limits(X, y)


def _classifier(name: str, **own) -> Any:
    return getattr(ofslib, f"{name}Classifier")(**OWN | own)


def _limits(X, y) -> list[Method]:
    sizes = {"values": X.nnz if sp.issparse(X) else X.size}
    arrays = (X.data, X.indices) if sp.issparse(X) else (X.ravel(),)
    return [
        Method(READ, lambda: lambda: [read(each) for each in arrays], **sizes),
        Method(LOOP, lambda: bare_loop(X, y), **sizes),
    ]


def _learning(cls: type, parameters: dict, X, y) -> Callable[[], Callable[[], Any]]:
    """A peer of ofslib.reproduction.peers learns rows that were made its own before."""

    def make():
        model = cls(k=K, **parameters)
        examples = list(model.examples(X, y))
        return lambda: model.learn(examples)

    return make


def _in_threads(models: list, X, y) -> Callable[[], Callable[[], Any]]:
    """Each model is fitted in a thread of its own."""

    def run():
        with ThreadPoolExecutor(len(models)) as pool:
            list(pool.map(lambda model: model.fit(X, y), models))

    return lambda: run


def _cached(options: str, X, y) -> Callable[[], Any]:
    """Vowpal Wabbit learns rows from its own cache on the disk."""
    from vowpalwabbit import Workspace

    text = scratch() / "rows.vw"
    if not text.exists():
        with open(text, "w") as file:
            for i, label in enumerate(y.astype(int).tolist()):
                part = slice(X.indptr[i], X.indptr[i + 1])
                pairs = zip(X.indices[part].tolist(), X.data[part].tolist(), strict=True)
                file.write(f"{label} | {' '.join(f'{j}:{x:.6f}' for j, x in pairs)}\n")
        Workspace(f"--noop --quiet -d {text} --cache_file {text}.cache -k").finish()
    call = f"--quiet --noconstant --loss_function logistic {options}"
    call += f" -d {text} --cache_file {text}.cache"

    def run():
        model = peers.VowpalWabbitClassifier(k=K)
        model.workspace, model.p = Workspace(call), X.shape[1]
        return model

    return run


def dense(n: int, p: int) -> list[Method]:
    """Dense rows, regression, one pass."""
    X, y = Equicorrelated(p, p // 100).sample(n, np.random.default_rng(0))
    step = {"learning_rate": 1e-4, "maturity": n}
    cases = {
        "SFSA": {"maturity": n},
        "SFSA, constant step": step,
        "SFSA-AG, constant step": step | {"optimizer": "nesterov"},
        "SFSA, importance as printed": step | {"importance": "scaled_root"},
    }
    models = {name: ofslib.SFSARegressor(k=p // 100, **OWN | own) for name, own in cases.items()}
    models["SGDT"] = ofslib.SGDTRegressor(k=p // 100, **OWN | step)
    methods = [Method(name, fitting(m, X, y), X.size) for name, m in models.items()]
    held = models["SFSA, constant step"]
    forms = {"float32": X.astype(np.float32), "Fortran order": np.asfortranarray(X)}
    for name, form in forms.items():
        methods.append(Method(f"SFSA, constant step, {name}", fitting(held, form, y), X.size))
    for penalty in ("l2", "l1", "elasticnet"):
        model = SGDRegressor(penalty=penalty, eta0=1e-4, learning_rate="constant", **ONE_PASS)
        methods.append(Method(f"scikit-learn SGD, {penalty}", fitting(model, X, y), X.size))
    return methods + _limits(X, y)


def one_row(p: int, calls: int) -> list[Method]:
    """`partial_fit` of one dense row after the other.

    Peers are given the row as an array, as a user has it; what they make of it is timed.
    """
    X, y = Equicorrelated(p, p // 10).sample(calls, np.random.default_rng(0))
    y = np.where(y > 0, 1.0, -1.0)
    known = {"classes": [-1.0, 1.0]}
    own = {"k": p // 10, "maturity": calls, "batch_size": 25}
    models = {
        "SFSA": lambda: _classifier("SFSA", **own),
        "SFSA, constant step": lambda: _classifier("SFSA", **own, **CONSTANT),
        "SGDT": lambda: _classifier("SGDT", **own),
        "FOFS": lambda: _classifier("FOFS", k=p // 10),
        "scikit-learn SGD, l2": lambda: SGDClassifier(loss="log_loss", **ONE_PASS),
        "river LogisticRegression": lambda: peers.RiverClassifier(p, model="LogisticRegression"),
        "Vowpal Wabbit coin": lambda: peers.VowpalWabbitClassifier(p),
    }
    needs = {name: "river" for name in models if "river" in name}
    needs |= {name: "vowpalwabbit" for name in models if "Vowpal" in name}

    def begun(make):
        model = make().partial_fit(X[:2], y[:2], **known)

        def run():
            for i in range(calls):
                model.partial_fit(X[i : i + 1], y[i : i + 1], **known)

        return run

    return [
        Method(name, functools.partial(begun, make), X.size, needs=needs.get(name, ""))
        for name, make in models.items()
    ]


def penalties(n: int, p: int, sparse_n: int, nonzeros: int) -> list[Method]:
    """200 penalties in one pass, and one penalty, of which it would be 200 passes."""
    dense_rows, y = Equicorrelated(p, p // 100).sample(n, np.random.default_rng(0))
    forms = {"dense": (dense_rows, np.where(y > 0, 1.0, -1.0))}
    forms["sparse"] = _drawn(sparse_n, p, nonzeros)[:2]
    methods = []
    for form, (X, target) in forms.items():
        values = X.size if form == "dense" else X.nnz
        for name in ("OPG", "RDA", "l1-ARDA"):
            own = {} if name == "l1-ARDA" else {"batch_size": 25}
            one = _classifier(PENALISED[name], **L1, **own)
            double, single = (
                _classifier(PENALISED[name], k=K, n_penalties=200, dtype=dtype, **own)
                for dtype in ("float64", "float32")
            )
            for model, times, what in (
                (one, 1, "1 penalty"),
                (double, 200, "200 penalties"),
                (single, 200, "200 penalties in float32"),
            ):
                line = f"{name}, {form}, {what}"
                methods.append(Method(line, fitting(model, X, target), values * times))
    return methods
