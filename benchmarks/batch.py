"""Methods on running averages, on all rows at once and on columns, beside others that are."""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.linalg.blas import dgemm, dgemv, dsyrk, sgemm
from sklearn.base import clone
from sklearn.linear_model import (
    LinearRegression,
    SGDRegressor,
    lasso_path,
    orthogonal_mp,
    orthogonal_mp_gram,
)

import ofslib
from benchmarks.measure import Method, calling, fitting, found, largest, megabytes
from ofslib.averages import RunningAverages
from ofslib.simulate import Equicorrelated
from ofslib.wishart import LowRank, sample_averages

DRAWN = 10**6  # rows, of averages that are drawn
PENALTIES = 50  # of a path
LASSO, MCP = 0.5, 0.01  # the last penalty as a part of the first
GAMMA = 3.0  # of MCP


def averages(p: list[int], rows: int) -> list[Method]:
    """Running averages, beside one product of matrices of as many rows.

    Values are products of two numbers that have to be added up: dgemm does all pairs twice.
    """
    return [method for each in p for method in _averages(each, rows)]


def _averages(p: int, rows: int) -> list[Method]:
    rng = np.random.default_rng(0)
    block = RunningAverages(p).block_rows
    rows = max(1, rows // block) * block  # so that none of them waits
    X, y = rng.standard_normal((rows, p)), rng.standard_normal(rows)
    pairs = rows * p * p / 2
    A = X.T  # Fortran order, as BLAS likes it
    product = {"trans_b": True, "overwrite_c": True, "beta": 1.0}
    # Given memory: that of a new matrix has to be found first.
    C = np.zeros((p, p), order="F")

    def forming(dtype=np.float64):
        held = RunningAverages(p, dtype=dtype)
        rows_of_it = X.astype(dtype)
        held.update(rows_of_it, y)
        return lambda: held.update(rows_of_it, y)

    def drawing():
        design = Equicorrelated(p, p // 10)
        own = (LowRank(*design.low_rank()), design.coef, 1.0, "regression", 0)
        return lambda: sample_averages(DRAWN, *own)

    single = np.zeros((p, p), np.float32, order="F")
    A32 = A.astype(np.float32)
    cases = {
        "update": (forming, pairs, 1),
        "update, float32": (lambda: forming(np.float32), pairs, 1),
        "update, 2 threads": (forming, pairs, 2),
        "limit: dsyrk": (lambda: lambda: dsyrk(1.0, A, c=C, beta=1.0, overwrite_c=True), pairs, 1),
        "limit: dgemm": (lambda: lambda: dgemm(1.0, A, A, c=C, **product), 2 * pairs, 1),
        "limit: dgemm, 2 threads": (lambda: lambda: dgemm(1.0, A, A, c=C, **product), 2 * pairs, 2),
        "limit: sgemm": (lambda: lambda: sgemm(1.0, A32, A32, c=single, **product), 2 * pairs, 1),
        f"drawn from their law, {DRAWN} rows": (drawing, DRAWN * p * p / 2, 1),
    }
    return [
        Method(f"{name}, p = {p}", make, values, threads=threads)
        for name, (make, values, threads) in cases.items()
    ]


def regression(n: int, p: int, k: int) -> list[Method]:
    """From dense rows to k features: time, true features found (%), and RMSE on new rows.

    The features of a path are refitted. The noise is 1, and all features correlate by 1/2. The
    columns are standardised beforehand: a Lasso of ours and glmnet's do so, others' do not. A value
    is a number of the rows.
    """
    design, X, y, scale = _standardised(n, p, k)

    def score(model):
        kept, coef = largest(model, k)
        few = np.zeros(p)
        few[kept] = coef[kept] / scale[kept]
        own = type(model).__module__.startswith("ofslib")
        memory = {"mb": megabytes(model)} if own else {}
        return {"score": design.rmse(few), "found": found(kept, design.support)} | memory

    own, step = {"k": k, "maturity": n, "shuffle": False}, {"learning_rate": 1e-4}
    models: dict[str, Any] = {
        "SFSA": ofslib.SFSARegressor(**own),
        "SFSA, constant step": ofslib.SFSARegressor(**own, **step),
        "SGDT, constant step": ofslib.SGDTRegressor(**own, **step),
        "OFSA": ofslib.OFSARegressor(k=k),
        "OLSth": ofslib.OLSthRegressor(k=k),
        "Online Lasso": ofslib.OnlineLassoRegressor(k=k),
        "Online MCP": ofslib.OnlineMCPRegressor(k=k),
    }
    for penalty, passes in (("l2", 1), ("l1", 1), ("elasticnet", 1), ("l1", 5)):
        model = SGDRegressor(penalty=penalty, eta0=1e-4, learning_rate="constant", random_state=0)
        model.set_params(max_iter=passes, tol=None, shuffle=False)
        models[f"scikit-learn SGD, {penalty}" + f", {passes} passes" * (passes > 1)] = model
    methods = [Method(name, fitting(m, X, y), X.size, score) for name, m in models.items()]
    for name in ("SFSA", "scikit-learn SGD, l1"):
        make = calling(_refitted, models[name], X, y, k)
        methods.append(Method(f"{name}, refitted", make, X.size, score))
    held = functools.cache(lambda: RunningAverages(p).update(X, y))
    for label in ("OFSA", "Online MCP"):
        make = functools.partial(_extracting, models[label], held)
        methods.append(Method(f"{label}, averages there", make, X.size, score))
    methods.append(Method("abess", calling(_abess, X, y, k), X.size, score, needs="abess"))
    by_columns = np.asfortranarray(X)
    for name, (solve, needs) in PATHS.items():
        if name != "skglm, MCP":  # minutes; see `path`
            make = calling(_selected, solve, by_columns, y, k)
            methods.append(Method(f"{name} path", make, X.size, score, needs=needs, turns=1))
    return methods


def _standardised(n: int, p: int, k: int):
    """A design, rows of it with standardised columns, y, and the units of the columns."""
    design = Equicorrelated(p, k, beta=0.5)
    X, y = design.sample(n, np.random.default_rng(0))
    scale = X.std(axis=0)
    X -= X.mean(axis=0)
    X /= scale
    return design, X, y, scale


def _least_squares(kept: np.ndarray, X, y) -> np.ndarray:
    coef = np.zeros(X.shape[1])
    coef[kept] = LinearRegression().fit(X[:, kept], y).coef_ if len(kept) else 0.0
    return coef


def _refitted(model, X, y, k: int) -> np.ndarray:
    """Least squares on the k largest coefficients."""
    coef = np.abs(clone(model).fit(X, y).coef_)
    return _least_squares(np.argsort(-coef, kind="stable")[:k], X, y)


def _selected(solve, X, y, k: int) -> np.ndarray:
    """Of a path, shape (p, penalties), the last model of at most k features, refitted."""
    coefs = solve(X, y)
    sizes = np.count_nonzero(coefs, axis=0)
    return _least_squares(
        np.flatnonzero(coefs[:, max(np.flatnonzero(sizes <= k), default=0)]), X, y
    )


def _extracting(model, held):
    averages, fresh = held(), clone(model)

    def run():
        fresh.fit_averages(averages, copy=False)
        return fresh if fresh.coef_ is not None else None

    return run


def _abess(X, y, k):
    from abess.linear import LinearRegression

    return LinearRegression(support_size=k, thread=1).fit(X, y)


def _celer(X, y):
    from celer import celer_path

    return celer_path(X, y - y.mean(), "lasso", eps=LASSO, n_alphas=PENALTIES)[1]


def _glmnet(X, y):
    from glmnet import ElasticNet

    own = {"n_splits": 0, "n_lambda": PENALTIES, "min_lambda_ratio": LASSO}
    return ElasticNet(alpha=1.0, **own).fit(X, y).coef_path_


def _sklearn_lasso(X, y):
    return lasso_path(X, y - y.mean(), eps=LASSO, alphas=PENALTIES)[1]


def _skglm(X, y):
    from skglm.datafits import Quadratic
    from skglm.penalties import MCPenalty
    from skglm.solvers import AndersonCD

    X = np.asfortranarray(X)
    target = y - y.mean()
    alphas = np.abs(X.T @ target).max() / len(y) * np.geomspace(1.0, MCP, PENALTIES)
    solver = AndersonCD(fit_intercept=False, ws_strategy="fixpoint")
    return solver.path(X, target, Quadratic(), MCPenalty(alphas[0], GAMMA), alphas)[1]


PATHS = {
    "celer, Lasso": (_celer, "celer"),
    "glmnet, Lasso": (_glmnet, "glmnet"),
    "scikit-learn, Lasso": (_sklearn_lasso, ""),
    "skglm, MCP": (_skglm, "skglm"),
}


def path(n: int, p: int, k: int) -> list[Method]:
    """A path of 50 penalties: ours from averages that are there, others from rows.

    Others are given the rows column by column, as they like them. Of a Lasso the largest duality
    gap of the path, relative to the objective, says how accurate it is. A value is a penalty.
    """
    _, X, y, _ = _standardised(n, p, k)
    by_columns = np.asfortranarray(X)
    held = RunningAverages(p).update(X, y)
    own = {"n_penalties": PENALTIES, "k": p}
    ours = {"Online Lasso": ofslib.OnlineLassoRegressor(**own, penalty_ratio=LASSO)}
    ours["Online MCP"] = ofslib.OnlineMCPRegressor(**own, penalty_ratio=MCP, b=GAMMA)
    methods = []
    for name, model in ours.items():
        own = {"score": _gap_of(X, y, lambda path: path[1].T) if "Lasso" in name else None}
        there = calling(model.solution_path, held)
        methods.append(Method(f"{name}, from averages", there, PENALTIES, **own))
        formed = calling(_formed_path, model, X, y)
        methods.append(Method(f"{name}, from rows", formed, PENALTIES, **own))
    for name, (solve, needs) in PATHS.items():
        own = {"score": _gap_of(X, y, np.asarray) if "Lasso" in name else None}
        make = calling(solve, by_columns, y)
        methods.append(Method(name, make, PENALTIES, needs=needs, **own))
    return methods


def _gap_of(X, y, coefs_of: Callable) -> Callable[[Any], dict[str, float]]:
    """The score of the path of a Lasso: its largest relative duality gap."""

    def score(result):
        coefs, target = coefs_of(result), y - y.mean()
        top = np.abs(X.T @ target).max() / len(y)
        alphas = np.geomspace(top, LASSO * top, PENALTIES)
        pairs = zip(alphas, coefs.T, strict=False)  # who sees no gain any more ends sooner
        return {"score": max(_duality_gap(X, target, alpha, coef) for alpha, coef in pairs)}

    return score


def _duality_gap(X, y, alpha: float, coef: np.ndarray) -> float:
    """Of |y - X b|^2 / (2 n) + alpha |b|_1 at these coefficients, as a part of it."""
    n, rest = len(y), y - X @ coef
    primal = rest @ rest / (2 * n) + alpha * np.abs(coef).sum()
    feasible = rest * min(1.0, alpha * n / np.abs(X.T @ rest).max())
    dual = (y @ y - (y - feasible) @ (y - feasible)) / (2 * n)
    return (primal - dual) / primal


def _formed_path(model, X, y):
    return model.solution_path(RunningAverages(X.shape[1]).update(X, y))


def columns(n: int, p: int, k: int, gram: int) -> list[Method]:
    """Columns one after the other, beside matching pursuit that sees all of them.

    A value is a column. `gram`: how many columns are shown where all products of two are formed.
    """
    rng = np.random.default_rng(0)
    X = np.asfortranarray(rng.standard_normal((n, p)))
    true = np.sort(rng.choice(gram, k, replace=False))
    y = X[:, true].sum(axis=1) + rng.standard_normal(n)

    def score(model):
        return {"found": found(largest(model, k)[0], true)}

    models = {"OS": ofslib.OnlineSubstitution(k=k)}
    models |= {"OS, one scan": ofslib.OnlineSubstitution(k=k, n_scans=1)}
    models |= {f"Grafting, l1 = {l1}": ofslib.Grafting(k=k, l1=l1) for l1 in (0.15, 0.5)}
    methods = [Method(name, fitting(m, X, y), p, score) for name, m in models.items()]
    pursuit = {"n_nonzero_coefs": k}
    few = X[:, :gram]

    def of_gram(products=None):
        G = few.T @ few if products is None else products
        return orthogonal_mp_gram(G, few.T @ y, **pursuit)

    made = few.T @ few
    others = {
        f"OMP, {p} columns": (lambda: orthogonal_mp(X, y, **pursuit), p),
        f"OMP, {gram} columns, Gram": (of_gram, gram),
        f"OMP, {gram} columns, Gram there": (functools.partial(of_gram, made), gram),
    }
    for name, (run, values) in others.items():
        methods.append(Method(f"scikit-learn {name}", calling(run), values, score))
    kept, w, u = np.asfortranarray(X[:, :k]), np.ones(k), np.ones(n)

    def steps():
        for _ in range(p):
            dgemv(1.0, kept, u, trans=1)
            dgemv(1.0, kept, w)

    line = "limit: two products of the kept columns and a vector"
    return [*methods, Method(line, lambda: steps, p)]


def leverage(n: list[int], p: int) -> list[Method]:
    """Online leverage: one feature more, beside the pseudo-inverse of the moments anew.

    That is what a feature that is kept would cost without it; of those that are not, neither
    changes anything. A value is a feature.
    """
    methods = []
    for rows in n:
        X = np.random.default_rng(0).standard_normal((rows, p))
        model = ofslib.OnlineLeverageSelector(rate=1.0, k=None, random_state=0)
        invert = functools.partial(np.linalg.pinv, hermitian=True)
        methods.append(Method(f"online leverage, n = {rows}", calling(model.fit, X), p))
        methods.append(Method(f"numpy, one pinv, n = {rows}", calling(invert, X @ X.T), 1))
    return methods
