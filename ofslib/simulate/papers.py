"""The papers' data generators. A design knows its true coefficients and yields rows in blocks.

What draws them is compiled code, imported where it is used: Snakemake reads the names of designs.

The rows depend on the generator only, not on the size of the blocks. A parameter of the wrong kind
or out of its range, among them k if 10 k exceeds p, is a ValueError that names it.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from numbers import Integral, Real
from types import NoneType
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias, get_args

import numpy as np

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

Blocks: TypeAlias = Iterator[tuple[np.ndarray, np.ndarray]]

# Blocks whose rows are not given end at multiples of so many rows, whatever the number of features,
# and have so many values at most: beyond 32 MB each block is new pages of memory, which may take as
# long as to fill them.
_WHOLE, _BLOCK = 1000, 4_000_000

_PAIR = tuple[float, float]
_WORDS = {
    int: "a whole number of at least 1",
    float: "a number",
    bool: "true or false",
    str: "a text",
    _PAIR: "a pair of numbers",
    NoneType: "None",
}


def check_kinds(design: type, given: Mapping[str, Any], **others: Any) -> None:
    """Raise ValueError, naming it, where a parameter is not of the kind that a design declares.

    A number is finite; a pair may be a tuple, a list or an array. `others` are further kinds.
    """
    for name, declared in ({f.name: f.type for f in fields(design)} | others).items():
        kinds = get_args(declared) or (declared,)
        if name in given and not any(_is_a(kind, given[name]) for kind in kinds):
            allowed = " or ".join(_WORDS[kind] for kind in kinds)
            raise ValueError(f"{name}={given[name]!r} must be {allowed}")


def _is_a(kind: Any, value: Any) -> bool:
    if kind == _PAIR:
        several = isinstance(value, tuple | list | np.ndarray) and np.shape(value)[:1] == (2,)
        return several and all(_is_a(float, v) for v in value)
    if isinstance(value, bool | np.bool_):
        return kind is bool
    if kind is int:
        return isinstance(value, Integral) and value >= 1
    if kind is float:
        return isinstance(value, Real) and -np.inf < value < np.inf
    return isinstance(value, kind)


def check_call(n: Any, rng: Any, block_rows: Any = 1) -> None:
    """Raise ValueError, naming it, where a stream cannot be drawn so."""
    for name, value in (("n", n), ("block_rows", block_rows)):
        if not _is_a(int, value):
            raise ValueError(f"{name}={value!r} must be {_WORDS[int]}")
    if not isinstance(rng, np.random.Generator):
        raise ValueError(f"rng={rng!r} must be a numpy.random.Generator")


def _scale(values: Any) -> float:
    """1, or a power of two by which values are divided whose squares could overflow."""
    exponent = int(np.frexp(np.max(np.abs(values)))[1]) - 1  # the largest is less than twice this
    return 2.0**exponent if exponent > 400 else 1.0


@dataclass(frozen=True)
class _EveryTenth:
    """p features, of which 10, 20, ..., 10 k have a nonzero coefficient."""

    p: int
    k: int

    def __post_init__(self):
        check_kinds(type(self), vars(self))
        if getattr(self, "noise", 0.0) < 0:
            raise ValueError(f"noise={self.noise} must be at least 0")
        if 10 * self.k > self.p:
            raise ValueError(f"k={self.k} needs p >= 10 k = {10 * self.k}, got p={self.p}")

    @property
    def support(self) -> np.ndarray:
        """Indices (from 0) of the nonzero coefficients, shape (k,)."""
        return np.arange(9, 10 * self.k, 10)

    def _check_coef(self, coef):
        if np.shape(coef) != (self.p,):
            raise ValueError(f"coef has shape {np.shape(coef)}, but it must be ({self.p},)")


@dataclass(frozen=True)
class _Correlated(_EveryTenth):
    """What the designs of equally correlated features share."""

    alpha: float = 1.0
    beta: float | tuple[float, float] = 1.0
    task: str = "regression"
    noise: float = 1.0

    def __post_init__(self):
        super().__post_init__()
        if self.task not in ("regression", "classification"):
            raise ValueError(f"task={self.task!r} must be 'regression' or 'classification'")

    def _values(self) -> np.ndarray:
        """The nonzero coefficients, shape (k,)."""
        return np.linspace(*np.broadcast_to(self.beta, 2), self.k)


def _rows_of_blocks(p: int) -> int:
    fitting = [rows for rows in range(1, _WHOLE + 1) if _WHOLE % rows == 0 and rows * p <= _BLOCK]
    return max(fitting, default=1)


@dataclass(frozen=True)
class Equicorrelated(_Correlated):
    """Equally correlated Gaussian features: sfsa, Section 5.1, (6) and (7); dissertation, 4.1.

    x = alpha z 1 + u with z and the entries of u standard normal, so that any two features have
    correlation alpha^2 / (1 + alpha^2); y = x . coef + noise, or its sign.

    Parameters
    ----------
    p, k : int
        Number of features, and of those with a nonzero coefficient: features 10, 20, ..., 10 k.
    alpha : float, default=1.0
        Weight of the common factor z; 0 makes the features independent.
    beta : float or pair of float, default=1.0
        The nonzero coefficients: all equal, or rising linearly from the first to the second.
    task : {"regression", "classification"}, default="regression"
        Whether y is a number or its sign.
    noise : float, default=1.0
        Standard deviation of the noise.

    Examples
    --------
    >>> import numpy as np
    >>> from ofslib.simulate import Equicorrelated
    >>> design = Equicorrelated(p=50, k=3)
    >>> X, y = design.sample(1000, np.random.default_rng(0))
    >>> X.shape, design.support.tolist()
    ((1000, 50), [9, 19, 29])
    """

    whole: ClassVar[int] = _WHOLE

    @property
    def coef(self) -> np.ndarray:
        """True coefficients, shape (p,)."""
        coef = np.zeros(self.p)
        coef[self.support] = self._values()
        return coef

    def stream(self, n: int, rng: np.random.Generator, block_rows: int | None = None) -> Blocks:
        """Yield n rows as blocks (X, y) of at most `block_rows` rows.

        None: of 1000, or of a part of these that has at most four million values.
        """
        from ofslib.kernels.draws import new_words, normals

        block_rows = _rows_of_blocks(self.p) if block_rows is None else block_rows
        check_call(n, rng, block_rows)
        features, factor, noise = rng.spawn(3)
        words, own = new_words(features), np.flatnonzero(self.coef)
        coef = self.coef[own]
        for start in range(0, n, block_rows):
            rows = min(block_rows, n - start)
            means = self.alpha * factor.standard_normal(rows)
            X, y = normals(words, means, self.p, own, coef)
            y += self.noise * noise.standard_normal(rows)
            yield X, y if self.task == "regression" else np.where(y > 0, 1.0, -1.0)

    def sample(self, n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Draw n rows at once."""
        return next(self.stream(n, rng, block_rows=n))

    def low_rank(self) -> tuple[np.ndarray, np.ndarray]:
        """Arrays diagonal (p,) and factor (p, 1): Sigma = diag(diagonal) + factor factor'."""
        return np.ones(self.p), np.full((self.p, 1), float(self.alpha))

    def rmse(self, coef: np.ndarray, intercept: float = 0.0) -> float:
        """Root of the expected squared error of x . coef + intercept on new rows, in O(p).

        sqrt(noise^2 + d' Sigma d + intercept^2) with d = coef - self.coef; regression only.
        """
        self._check("regression", coef)
        scale = _scale(np.append(coef, intercept))
        d, off, noise = (coef - self.coef) / scale, intercept / scale, self.noise / scale
        return float(np.sqrt(noise**2 + self._covariance(d, d) + off * off)) * scale

    def auc(self, coef: np.ndarray) -> float:
        """Expected area under the ROC curve of the score x . coef on new rows, in O(p).

        1/2 + (2 / pi) arcsin(rho / sqrt(2)), rho the correlation of the score with the number
        x . self.coef + noise whose sign is the label; 1/2 if the score is constant. Classification
        only.
        """
        self._check("classification", coef)
        coef = coef / _scale(coef)
        own, true = self._covariance(coef, coef), self._covariance(self.coef, self.coef)
        if own == 0:
            return 0.5
        rho = self._covariance(coef, self.coef) / np.sqrt(own * (true + self.noise**2))
        return float(0.5 + 2 / np.pi * np.arcsin(np.clip(rho, -1, 1) / np.sqrt(2)))

    def _covariance(self, a, b):
        """Of x . a and x . b."""
        return a @ b + self.alpha**2 * np.sum(a) * np.sum(b)

    def _check(self, task, coef):
        if self.task != task:
            raise ValueError(f"task={self.task!r} must be {task!r}")
        self._check_coef(coef)


@dataclass(frozen=True)
class SparseRows(_EveryTenth):
    """Sparse rows with standard normal entries; y = sign(x . coef): sfsa, Section 5.2.

    The text has `nonzeros` entries at random places, those of the k true features among them
    (`dense_support` False); a row without one, whose x . coef is 0, has y = -1. The other form,
    which gives the paper's numbers, has the true features in every row and `nonzeros` of the
    others.

    Parameters
    ----------
    p, k : int
        As in `Equicorrelated`.
    nonzeros : int
        Entries of a row at random places.
    dense_support : bool, default=False
        Whether the true features occur in every row, besides these entries.
    equal_when_training : bool, default=False
        Whether the labels of `stream` come from coefficients that are all 1; those of `sample` come
        from `coef` in any case.

    Examples
    --------
    >>> import numpy as np
    >>> from ofslib.simulate import SparseRows
    >>> design = SparseRows(p=1000, k=3, nonzeros=20)
    >>> X, y = design.sample(500, np.random.default_rng(0))
    >>> X.nnz, design.support.tolist()
    (10000, [9, 19, 29])
    """

    task: ClassVar[str] = "classification"
    whole: ClassVar[int] = _WHOLE
    nonzeros: int = 200
    dense_support: bool = False
    equal_when_training: bool = False

    def __post_init__(self):
        super().__post_init__()
        free = self.p - self.k * self.dense_support
        if not 1 <= self.nonzeros <= free:
            raise ValueError(f"nonzeros={self.nonzeros} must be from 1 to {free}")

    @property
    def coef(self) -> np.ndarray:
        """True coefficients, shape (p,): uniform on (0, 1), always the same for these p and k."""
        coef = np.zeros(self.p)
        coef[self.support] = np.random.default_rng([self.p, self.k]).uniform(0, 1, self.k)
        return coef

    def stream(
        self, n: int, rng: np.random.Generator, block_rows: int = 1000
    ) -> Iterator[tuple["csr_matrix", np.ndarray]]:
        """Yield n rows as blocks (X, y) of at most `block_rows` rows."""
        coef = (self.coef > 0).astype(float) if self.equal_when_training else self.coef
        yield from self._blocks(n, rng, block_rows, coef)

    def sample(self, n: int, rng: np.random.Generator) -> tuple["csr_matrix", np.ndarray]:
        """Draw n rows at once, labelled by `coef`."""
        return next(self._blocks(n, rng, n, self.coef))

    def _blocks(self, n, rng, block_rows, coef):
        # Here, because Snakemake reads the names of the designs and should start at once.
        from scipy.sparse import csr_matrix

        from ofslib.kernels.draws import new_words, normals, places

        check_call(n, rng, block_rows)
        where, values = map(new_words, rng.spawn(2))
        always = self.support if self.dense_support else np.array([], int)
        others = np.setdiff1d(np.arange(self.p), always)
        width = self.nonzeros + len(always)
        for start in range(0, n, block_rows):
            rows = min(block_rows, n - start)
            indices = np.empty((rows, width), np.int32)
            indices[:, : len(always)] = always
            indices[:, len(always) :] = others[places(where, rows, self.nonzeros, len(others))]
            indices.sort(axis=1)
            shape, starts = (rows, self.p), np.arange(rows + 1) * width
            entries, _ = normals(values, np.zeros(rows), width)
            X = csr_matrix((entries.ravel(), indices.ravel(), starts), shape=shape)
            yield X, np.where(X @ coef > 0, 1.0, -1.0)


@dataclass(frozen=True)
class Drifting(_EveryTenth):
    """Coefficients that drift from one time step to the next: dissertation, Section 5.4.

    At step t = 1, 2, ... come `step_rows` rows of equally correlated features. The j-th of the k
    nonzero coefficients is a sin(2 pi (t - 100 j) / period) + b (5.1). With `price` the first
    feature is a price, uniform between two numbers, with a constant coefficient (5.2).

    Parameters
    ----------
    p, k : int
        As in `Equicorrelated`; with `price` feature 10 is replaced by feature 1, the price.
    a, b : float
        Amplitude and mean of the coefficients.
    period, step_rows : int
        Their period T, in steps, and the rows of a step.
    alpha, noise : float, default=1.0
        Weight of the common factor of the features, and standard deviation of the noise.
    price : pair of float, default=None
        Range of the price.
    price_coef, constant : float, default=0.0
        Coefficient of the price, and the intercept.

    Examples
    --------
    >>> import numpy as np
    >>> from ofslib.simulate import Drifting
    >>> design = Drifting(p=50, k=3, a=1.0, b=1.0, period=1000, step_rows=20)
    >>> steps = list(design.stream(100, np.random.default_rng(0)))
    >>> len(steps), bool((design.coef_at(1) == design.coef_at(2)).all())
    (5, False)
    """

    task: ClassVar[str] = "regression"
    a: float
    b: float
    period: int
    step_rows: int
    alpha: float = 1.0
    noise: float = 1.0
    price: tuple[float, float] | None = None
    price_coef: float = 0.0
    constant: float = 0.0

    def __post_init__(self):
        super().__post_init__()
        if self.price is not None and self.price[0] > self.price[1]:
            raise ValueError(f"price={self.price} must be the lesser number first")

    @property
    def support(self) -> np.ndarray:
        """Indices (from 0) of the nonzero coefficients, shape (k,), in the order of j."""
        support = super().support
        if self.price is not None:
            support[0] = 0
        return support

    def coef_at(self, t: int) -> np.ndarray:
        """True coefficients at step t, shape (p,)."""
        coef, j = np.zeros(self.p), np.arange(1, self.k + 1)
        angle = 2.0 * np.pi * (t - 100.0 * j) / self.period
        coef[self.support] = self.a * np.sin(angle) + self.b
        if self.price is not None:
            coef[0] = self.price_coef
        return coef

    def stream(self, n: int, rng: np.random.Generator) -> Blocks:
        """Yield n rows as blocks (X, y), one a time step."""
        from ofslib.kernels.draws import new_words, normals

        check_call(n, rng)
        words = new_words(rng)
        for t, start in enumerate(range(0, n, self.step_rows), 1):
            rows = min(self.step_rows, n - start)
            X, _ = normals(words, self.alpha * rng.standard_normal(rows), self.p)
            if self.price is not None:
                X[:, 0] = rng.uniform(*self.price, rows)
            y = self.constant + X @ self.coef_at(t) + self.noise * rng.standard_normal(rows)
            yield X, y

    def rmse(self, coef: np.ndarray, intercept: float, t: int) -> float:
        """Root of the expected squared error of x . coef + intercept on the rows of step t."""
        self._check_coef(coef)
        d, off = coef - self.coef_at(t), intercept - self.constant
        square = self.noise**2
        if self.price is not None:
            low, high = self.price
            off += d[0] * (low + high) / 2.0
            square += d[0] ** 2 * (high - low) ** 2 / 12.0
            d = d[1:]
        square += d @ d + self.alpha**2 * d.sum() ** 2 + off * off
        return float(np.sqrt(square))


@dataclass(frozen=True)
class _Given(Equicorrelated):
    """Coefficients that are given; true features are the k largest, of equals the first."""

    given: np.ndarray | None = None

    @property
    def coef(self) -> np.ndarray:
        return self.given

    @property
    def support(self) -> np.ndarray:
        return np.sort(np.argsort(-np.abs(self.given), kind="stable")[: self.k])


@dataclass(frozen=True, kw_only=True)
class Changing(_Correlated):
    """True features and coefficients that change: of our own, in the terms of Gama et al. 2014.

    At step t = 1, 2, ... come `step_rows` rows of `Equicorrelated`, but for the coefficients. Every
    `period` steps another concept c = 0, 1, ... begins. Its j-th true feature is 10 j, or
    10 j - (c mod 10) if j is odd, and its coefficient that of `Equicorrelated`, or half of it if
    j + c is odd: half of the true features change, and all coefficients.

    Parameters
    ----------
    p, k, alpha, beta, task, noise
        As in `Equicorrelated`.
    period, step_rows : int
        Steps of a concept, and rows of a step.
    change : {"abrupt", "gradual", "recurring"}, default="abrupt"
        abrupt: concepts begin at once. gradual: the coefficients move to those of the next one on
        a straight line, in the first half of its steps. recurring: as abrupt, but concepts 0 and 1
        take turns.

    Examples
    --------
    >>> from ofslib.simulate import Changing
    >>> design = Changing(p=50, k=3, period=10, step_rows=20)
    >>> design.at(1).support.tolist(), design.at(11).support.tolist()
    ([9, 19, 29], [8, 19, 28])
    """

    period: int
    step_rows: int
    change: str = "abrupt"

    def __post_init__(self):
        super().__post_init__()
        if self.change not in ("abrupt", "gradual", "recurring"):
            raise ValueError(f"change={self.change!r} must be 'abrupt', 'gradual' or 'recurring'")
        self.at(1)

    def _coef(self, concept: int) -> np.ndarray:
        c, j = concept % 2 if self.change == "recurring" else concept, np.arange(1, self.k + 1)
        coef = np.zeros(self.p)
        coef[self.support - j % 2 * (c % 10)] = self._values() / (1 + (j + c) % 2)
        return coef

    def at(self, t: int) -> Equicorrelated:
        """The design of the rows of step t, with its true features, `rmse` and `auc`."""
        if not _is_a(int, t):
            raise ValueError(f"t={t!r} must be {_WORDS[int]}")
        concept, steps = divmod(t - 1, self.period)
        coef = self._coef(concept)
        if self.change == "gradual" and concept > 0:
            new = min(1.0, 2.0 * (steps + 1) / self.period)
            coef = (1.0 - new) * self._coef(concept - 1) + new * coef
        return _Given(self.p, self.k, self.alpha, self.beta, self.task, self.noise, coef)

    def stream(self, n: int, rng: np.random.Generator) -> Blocks:
        """Yield n rows as blocks (X, y), one a time step."""
        check_call(n, rng)
        for t, start in enumerate(range(0, n, self.step_rows), 1):
            yield self.at(t).sample(min(self.step_rows, n - start), rng)
