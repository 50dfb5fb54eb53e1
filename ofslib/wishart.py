"""Running averages of Gaussian designs, drawn from their exact law without generating rows.

The co-moments of n Gaussian rows follow a Wishart law, of which a triangle of p (p + 1) / 2 numbers
is a factor (Bartlett 1933). So a draw costs p^3 / 3 operations whatever n is, where n rows
cost n p^2. The designs are those of the dissertation, Section 5.1.
Derivations: docs/explain/averages.md.
"""

from numbers import Integral, Real
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import LinAlgError, cholesky, eigvalsh_tridiagonal, solve_triangular
from scipy.linalg.blas import dsymm, dsymv, dsyr, dsyr2k, dsyrk
from scipy.linalg.lapack import dlauum, dsygst
from sklearn.utils import check_array, check_scalar

from ofslib.averages import RunningAverages

# Few enough rows of (1, t, y) to stay in the cache.
ROWS = 8192

Seed: TypeAlias = int | np.random.Generator | np.random.SeedSequence | None


class LowRank(NamedTuple):
    """The covariance diag(diagonal) + factor factor'.

    Rows x = alpha z 1 + u of the papers have diagonal 1 and the factor alpha 1, shape (p, 1).
    """

    diagonal: np.ndarray  # (p,) positive
    factor: np.ndarray  # (p, r), r much smaller than p


def sample_moments(
    n: int,
    covariance: LowRank | ArrayLike,
    beta: ArrayLike,
    noise: float = 1.0,
    task: str = "regression",
    random_state: Seed = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Draw the mean and the centred co-moments of n rows (x, y), x ~ N(0, covariance).

    Exactly in distribution, for every n >= 1, n <= p included. With `LowRank` it takes p^3 / 3
    operations and one (p + 1, p + 1) matrix; a full covariance p^3 more and two of them, and
    its Cholesky factorisation. Fewer than p / 3 rows are multiplied out, n p^2 operations and n p
    more numbers. Classification draws n scalars besides. All functions here raise TypeError or
    ValueError if an argument is of the wrong type, shape or range.

    Parameters
    ----------
    n : int
        Number of rows.
    covariance : LowRank or array-like of shape (p, p)
        Of the features; positive definite.
    beta : array-like of shape (p,)
        True coefficients.
    noise : float, default=1.0
        Standard deviation of the noise. In classification it and `beta` may not both be 0.
    task : {"regression", "classification"}, default="regression"
        Whether y is x . beta + noise * N(0, 1) or its sign, -1 or 1.
    random_state : int, Generator, SeedSequence or None, default=None
        Seed or generator. The same seed gives the same bits on the same BLAS and threads.

    Returns
    -------
    mean : ndarray of shape (p + 1,)
        Mean of (x, y).
    comoments : ndarray of shape (p + 1, p + 1)
        Sum of (z - mean)(z - mean)' over the rows z = (x, y), in Fortran order. Only the upper
        triangle is valid.
    """
    check_scalar(n, "n", Integral, min_val=1)
    if task not in ("regression", "classification"):
        raise ValueError(f"task={task!r} must be 'regression' or 'classification'")
    rng = _generator(random_state)
    beta, noise, root = _model(covariance, beta, noise, extra=1)
    weights = np.append(beta, noise)
    if task == "regression":
        return _numbered(n, root, weights, rng)
    if not weights.any():
        raise ValueError("beta and noise=0 leave no classes: one of them must not be 0")
    return _labelled(n, root, weights, rng)


def sample_averages(
    n: int,
    covariance: LowRank | ArrayLike,
    beta: ArrayLike,
    noise: float = 1.0,
    task: str = "regression",
    random_state: Seed = None,
) -> RunningAverages:
    """Draw the running averages of n rows: `sample_moments`, whose arguments these are."""
    mean, comoments = sample_moments(n, covariance, beta, noise, task, random_state)
    return RunningAverages.from_moments(n, mean, comoments, copy=False)


def sample_ols(
    n: int,
    covariance: LowRank | ArrayLike,
    beta: ArrayLike,
    noise: float = 1.0,
    random_state: Seed = None,
    size: int | None = None,
    fit_intercept: bool = True,
) -> np.ndarray:
    """Draw the least-squares estimate from n rows: a multivariate t, shape (p,) or (size, p).

    beta + noise R'^-1 g / sqrt(chi^2), covariance = R R', g ~ N(0, I), with n - p degrees of
    freedom, or n - p + 1 without intercept. O(p) per draw with `LowRank`, O(p^2) otherwise.

    Parameters
    ----------
    n, covariance, beta, noise, random_state
        As in `sample_moments`; n must exceed the number of fitted coefficients.
    size : int or None, default=None
        Number of independent draws; None is one, without the axis.
    fit_intercept : bool, default=True
        Whether an intercept was fitted, as by centring.
    """
    beta, noise, root = _model(covariance, beta, noise)
    fitted = len(beta) + bool(fit_intercept)
    check_scalar(n, "n", Integral, min_val=fitted + 1)
    draws = 1 if size is None else check_scalar(size, "size", Integral, min_val=0)
    rng = _generator(random_state)
    direction = rng.standard_normal((draws, len(beta)))
    length = np.sqrt(rng.chisquare(n - fitted + 1, draws))
    estimates = beta + noise * (root.inverse_transpose_times(direction.T) / length).T
    return estimates[0] if size is None else estimates


def sample_extreme_eigenvalues(
    n: int, p: int, spike: float = 0.0, random_state: Seed = None, centred: bool = True
) -> tuple[float, float]:
    """Draw the smallest and the largest eigenvalue of X'X, n rows of N(0, I + spike 11').

    From the bidiagonal form of X (Silverstein 1985), in O(p) memory.

    Parameters
    ----------
    n, p : int
        Number of rows and of features. Below p rows the smallest eigenvalue is 0.
    spike : float, default=0.0
        Covariance of any two features, at least 0; alpha^2 in the designs of the papers.
    random_state
        As in `sample_moments`.
    centred : bool, default=True
        Whether the mean is taken from the rows.
    """
    check_scalar(p, "p", Integral, min_val=1)
    check_scalar(n, "n", Integral, min_val=1 + bool(centred))
    _finite(spike, "spike")
    rng = _generator(random_state)
    freedom = n - bool(centred)
    rank = min(freedom, p)
    diagonal = np.sqrt(rng.chisquare(freedom - np.arange(rank)))
    diagonal[0] *= np.sqrt(1 + spike * p)
    above = np.sqrt(rng.chisquare(np.arange(p - 1, max(p - 1 - rank, 0), -1)))
    # Eigenvalues of the interleaved matrix are plus and minus the singular values: those of the
    # squared one would lose the smallest in the rounding of the largest.
    interleaved = np.empty(rank + len(above))
    interleaved[::2], interleaved[1::2] = diagonal, above
    size = len(interleaved) + 1
    # Bisection until neighbouring numbers: relative accuracy of the smallest, too.
    method = {"select": "i", "lapack_driver": "stebz", "tol": 4 * np.finfo(float).tiny}

    def squared(place):
        zeros, only = np.zeros(size), (place, place)
        return float(eigvalsh_tridiagonal(zeros, interleaved, select_range=only, **method)[0]) ** 2

    return squared(size // 2) if rank == p else 0.0, squared(size - 1)


# The two tasks. Classes: y depends on x through one normal t, and given all (t, y) the rest is
# Gaussian


def _numbered(n, root, weights, rng):
    """Mean and co-moments of (x, t), t = weights . (x, noise / its standard deviation)."""
    mean = root.times(rng.standard_normal(len(weights)) / np.sqrt(n))
    comoments = root.around(_white_wishart(len(weights) - 1, n - 1, rng, last=True))
    # Until here the last coordinate is the noise; y is a weighted sum of all of them.
    with_y = dsymv(1.0, comoments, weights)
    comoments[:, -1] = with_y
    comoments[-1, -1] = weights @ with_y
    mean[-1] = weights @ mean
    return mean, comoments


def _labelled(n, root, weights, rng):
    """Mean and co-moments of (x, sign(t)), t = weights . (x, noise / its standard deviation)."""
    h, noise = root.transpose_times(weights)[:, None], weights[-1]
    spread = np.linalg.norm(h)
    h[-1] = 0.0
    triangle = _class_coordinates(n, spread, rng)
    # A column of `known` is (x, y) along a direction in which (1, t, y) is known.
    # I + rest h h' is the root of the covariance I - h h' / spread^2 that white x has, given t.
    rest = np.array([-1 / (spread * (spread + noise))])
    known = _plus(h, rest, rng.standard_normal((len(h), len(triangle))))
    known += h / spread**2 * triangle[:, 1]
    known[-1] = triangle[:, 2]
    comoments = _white_wishart(len(h) - 1, n - len(triangle), rng, last=False)
    comoments = _plus_around(h, rest, comoments)
    for column in known[:, 1:].T:
        comoments = dsyr(1.0, column, a=comoments, overwrite_a=True)
    return root.times(known[:, 0] / triangle[0, 0]), root.around(comoments)


def _class_coordinates(n, spread, rng):
    """Triangle (min(n, 3), 3) of the QR decomposition of n rows (1, t, sign(t))."""
    triangle = np.empty((0, 3))
    for start in range(0, n, ROWS):
        t = spread * rng.standard_normal(min(ROWS, n - start))
        rows = np.column_stack([np.ones(len(t)), t, np.where(t > 0, 1.0, -1.0)])
        triangle = np.linalg.qr(np.vstack([triangle, rows]), mode="r")
    return triangle


# White Wishart matrices and what maps them to a covariance; matrices are upper triangles in
# Fortran order with a place for one more coordinate, so that BLAS works on them where they are


def _white_wishart(p, freedom, rng, last):
    """Wishart(freedom, I) matrix of p + 1 coordinates, of which the last is 0 if not `last`."""
    size = p + last
    if 3 * freedom < size:  # to multiply them out takes fewer operations
        factor = np.zeros((p + 1, freedom), order="F")
        factor[:size] = rng.standard_normal((freedom, size)).T
        return dsyrk(1.0, factor) if freedom else np.zeros((p + 1, p + 1), order="F")
    # Bartlett's triangle from the last row up, because its product LAPACK forms in place. With
    # fewer degrees of freedom than coordinates its first columns stay zero.
    factor = np.zeros((p + 1, p + 1), order="F")
    places = np.arange(max(size - freedom, 0), size)
    for j in places[places > 0]:
        rng.standard_normal(out=factor[:j, j])
    factor[places, places] = np.sqrt(rng.chisquare(freedom - size + 1 + places))
    return dlauum(factor, overwrite_c=True)[0]


def _plus(V, e, X):
    """(I + V diag(e) V') X."""
    return X + (V * e) @ (V.T @ X)


def _plus_around(V, e, W):
    """(I + V diag(e) V') W (I + V diag(e) V'), in place."""
    image = dsymm(1.0, W, V)
    half = image * e + (V * e) @ (V.T @ image * e) / 2
    return dsyr2k(1.0, V, half, beta=1.0, c=W, overwrite_c=True)


class _LowRankRoot:
    """R = D^1/2 (I + V diag(e) V') with R R' = D + F F'."""

    def __init__(self, diagonal, factor):
        self.scale = np.sqrt(diagonal)
        V = factor / self.scale[:, None]
        squares, rotation = np.linalg.eigh(V.T @ V)
        root = np.sqrt(1 + np.maximum(squares, 0))
        self.V, self.e = np.asfortranarray(V @ rotation), 1 / (1 + root)
        self.inverse_e = -self.e / root

    def times(self, x):
        return self.scale * _plus(self.V, self.e, x)

    def transpose_times(self, x):
        return _plus(self.V, self.e, self.scale * x)

    def inverse_transpose_times(self, X):
        return _plus(self.V, self.inverse_e, X) / self.scale[:, None]

    def around(self, W):
        """R W R', in place."""
        W = _plus_around(self.V, self.e, W)
        for j, scale in enumerate(self.scale):
            W[: j + 1, j] *= scale * self.scale[: j + 1]
        return W


class _TriangularRoot:
    """R upper triangular with R R' = covariance: what LAPACK can multiply around W in place."""

    def __init__(self, R):
        self.R = R

    def times(self, x):
        return self.R @ x

    def transpose_times(self, x):
        return self.R.T @ x

    def inverse_transpose_times(self, X):
        return solve_triangular(self.R, X, trans="T")

    def around(self, W):
        """R W R', in place."""
        return dsygst(W, self.R, itype=2, overwrite_a=True)[0]


# Arguments


def _model(covariance, beta, noise, extra=0):
    """Checked (beta, noise, root), the root with `extra` coordinates that are white."""
    read = _low_rank_root if isinstance(covariance, LowRank) else _triangular_root
    p, root = read(covariance, extra)
    beta = _numbers(beta, "beta", ensure_2d=False)
    if beta.shape != (p,):
        raise ValueError(f"beta has shape {beta.shape}, but covariance needs ({p},)")
    return beta, _finite(noise, "noise"), root


def _numbers(values, name, ensure_2d=True):
    try:
        return check_array(values, ensure_2d=ensure_2d, dtype=np.float64, input_name=name)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must be finite numbers: {error}") from None


def _low_rank_root(covariance, extra):
    diagonal = _numbers(covariance.diagonal, "covariance.diagonal", ensure_2d=False)
    factor = _numbers(covariance.factor, "covariance.factor")
    if diagonal.ndim != 1 or len(diagonal) != len(factor):
        raise ValueError(
            f"covariance.diagonal has shape {diagonal.shape} and covariance.factor {factor.shape}, "
            "but they must be (p,) and (p, r)"
        )
    if not diagonal.min() > 0:
        raise ValueError(f"covariance.diagonal must be positive, its least is {diagonal.min()}")
    more = np.zeros((extra, factor.shape[1]))
    root = _LowRankRoot(np.append(diagonal, np.ones(extra)), np.vstack([factor, more]))
    return len(diagonal), root


def _triangular_root(covariance, extra):
    covariance = _numbers(covariance, "covariance")
    p = len(covariance)
    if covariance.shape != (p, p):
        raise ValueError(f"covariance has shape {covariance.shape}, but it must be square")
    if np.abs(covariance - covariance.T).max() > 1e-10 * np.abs(covariance).max():
        raise ValueError("covariance must be symmetric")
    try:
        # Back to front, because only then is the factor that stands on the left upper triangular.
        reverse = cholesky(covariance[::-1, ::-1], lower=True, check_finite=False)
    except LinAlgError as error:
        raise ValueError(f"covariance must be positive definite: {error}") from error
    R = np.zeros((p + extra, p + extra), order="F")
    R[:p, :p] = reverse[::-1, ::-1]
    R[range(p, p + extra), range(p, p + extra)] = 1.0
    return p, _TriangularRoot(R)


def _finite(value, name):
    check_scalar(value, name, Real, min_val=0)
    if not np.isfinite(value):
        raise ValueError(f"{name}={value} must be finite")
    return float(value)


def _generator(random_state):
    try:
        return np.random.default_rng(random_state)
    except (TypeError, ValueError) as error:
        raise type(error)(
            f"random_state={random_state!r} must be None, an int >= 0, a Generator or a "
            "SeedSequence"
        ) from error
