"""The papers' data generators. A design knows its true coefficients and yields rows in blocks.

The rows depend on the generator only, not on the size of the blocks.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Equicorrelated:
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

    Raises
    ------
    ValueError
        If a parameter is out of its range, among them k if 10 k exceeds p.
    """

    p: int
    k: int
    alpha: float = 1.0
    beta: float | tuple[float, float] = 1.0
    task: str = "regression"
    noise: float = 1.0

    def __post_init__(self):
        for name, least in (("k", 1), ("noise", 0)):
            if not getattr(self, name) >= least:
                raise ValueError(f"{name}={getattr(self, name)} must be at least {least}")
        if np.ndim(self.beta) > 1 or np.size(self.beta) not in (1, 2):
            raise ValueError(f"beta={self.beta} must be a number or a pair of numbers")
        if 10 * self.k > self.p:
            raise ValueError(f"k={self.k} needs p >= 10 k = {10 * self.k}, got p={self.p}")
        if self.task not in ("regression", "classification"):
            raise ValueError(f"task={self.task!r} must be 'regression' or 'classification'")

    @property
    def support(self) -> np.ndarray:
        """Indices (from 0) of the nonzero coefficients, shape (k,)."""
        return np.arange(9, 10 * self.k, 10)

    @property
    def coef(self) -> np.ndarray:
        """True coefficients, shape (p,)."""
        coef, (first, last) = np.zeros(self.p), np.broadcast_to(self.beta, 2)
        coef[self.support] = np.linspace(first, last, self.k)
        return coef

    def stream(
        self, n: int, rng: np.random.Generator, block_rows: int = 1000
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield n rows as blocks (X, y) of at most `block_rows` rows."""
        features, factor, noise = rng.spawn(3)
        coef = self.coef[self.support]
        for start in range(0, n, block_rows):
            rows = min(block_rows, n - start)
            X = features.standard_normal((rows, self.p))
            if self.alpha != 0:
                X += self.alpha * factor.standard_normal((rows, 1))
            # Row by row: a product of matrices would round by the number of rows.
            y = (np.ascontiguousarray(X[:, self.support]) * coef).sum(axis=1)
            y += self.noise * noise.standard_normal(rows)
            yield X, y if self.task == "regression" else np.where(y > 0, 1.0, -1.0)

    def sample(self, n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Draw n rows at once."""
        return next(self.stream(n, rng, block_rows=n))


DESIGNS = {"equicorrelated": Equicorrelated}
