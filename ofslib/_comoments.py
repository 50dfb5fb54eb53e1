"""Arithmetic on co-moments: sums of centred products of rows z = (x, y), (p + 1, p + 1).

They are kept in Fortran order, of which the upper triangle counts.
"""

import numpy as np
import psutil
import scipy.sparse as sp
from scipy.linalg.blas import dsyrk, ssyrk
from sklearn.utils import assert_all_finite
from sklearn.utils.extmath import row_norms

_MEMORY = psutil.virtual_memory().total
_SYRK = {"float64": dsyrk, "float32": ssyrk}
DTYPES = tuple(map(np.dtype, _SYRK))
PENDING = ("_rows", "_weights", "_decays")  # of rows that wait
# So many rows are folded in at a time that the product, not the reading and writing of the
# co-moments, takes the time; no more, so that the rows are still in the processor's cache by then.
_FEATURES_PER_ROW, _LEAST_ROWS = 8, 256
_BUFFER_BYTES = 64 << 20  # before _LEAST_ROWS
_THIN_ROWS, _THIN_PAIRS = 1024, 4000  # see _is_thin
_PANEL = 128  # columns of a matrix that are scaled and mirrored at a time


class CoMoments:
    """Weight, mean and co-moments of rows, the last of which wait in a buffer; nothing is checked.

    See `RunningAverages`, which is what others use.
    """

    def __init__(self, n_features: int, dtype: np.dtype):
        self.n_features, self.dtype = n_features, dtype
        fitting = max(1, _BUFFER_BYTES // ((n_features + 1) * dtype.itemsize))
        self.block_rows = min(fitting, max(_LEAST_ROWS, n_features // _FEATURES_PER_ROW))
        self._rate, self._per = None, "observation"
        self.n, self._weight, self._folded = 0, 0.0, 0.0  # _folded: the weight of _mean and _C
        self._C = _zeros(n_features, dtype)
        # Sum of w |z|^2 over all rows: as long as it fits into dtype, so do the co-moments.
        self._raw = 0.0
        # The mean is the sum of these: float64, and what it was rounded by.
        self._mean, self._rest = np.zeros((2, n_features + 1))
        self._new_buffer()

    def _new_buffer(self, waiting=()) -> None:
        """Space for waiting rows, their weights, and what they multiply the weights before by."""
        self._rows = np.empty((self.block_rows + 1, self.n_features + 1), self.dtype)
        self._weights, self._decays = np.empty((2, self.block_rows))
        self._filled = len(waiting[0]) if waiting else 0
        for name, values in zip(PENDING, waiting, strict=False):
            getattr(self, name)[: self._filled] = values

    @property
    def _limit(self) -> float:
        """What no sum of squares may exceed, so that none of their sums is infinite."""
        return float(np.finfo(self.dtype).max) / 4

    def _squares(self) -> np.ndarray:
        """The diagonal of the co-moments, float64."""
        return np.diagonal(self._C).astype(np.float64)

    @staticmethod
    def _first(X, y) -> np.ndarray:
        first = X[:1].toarray()[0] if sp.issparse(X) else X[0]
        return np.append(first, y[0]).astype(np.float64)

    def _fitting(self, X, y, weights) -> float:
        """What `_raw` will be; ValueError if X is not finite, or the co-moments would not be.

        One pass over X. Only if its squares, which a mean makes larger, do not fit, those of the
        distances from the mean are summed up: no co-moment can be larger.
        """
        with np.errstate(over="ignore", invalid="ignore"):
            raw = self._raw + float((weights * y * y).sum()) + _sum_of_squares(X, weights)
            if raw <= self._limit:
                return raw
            assert_all_finite(X, estimator_name="RunningAverages", input_name="X")
            waiting = np.square(self._rows[: self._filled], dtype=np.float64)
            squares = self._squares() + self._weights[: self._filled] @ waiting
            mean = self._mean if self._weight else self._first(X, y)
            for start in range(0, len(y), self.block_rows):
                part = slice(start, start + self.block_rows)
                block = X[part].toarray() if sp.issparse(X) else X[part]
                squares += weights[part] @ (np.column_stack([block, y[part]]) - mean) ** 2
        self._refuse_too_large(squares, "X")
        return raw

    def _refuse_too_large(self, squares, owner: str) -> None:
        if not (squares <= self._limit).all():
            j = int(np.argmax(~(squares <= self._limit)))
            name = "y" if j == self.n_features else f"feature {j}"
            raise ValueError(
                f"{owner} is too large for {self.dtype.name}: weighted squares of distances from "
                f"the mean of {name} sum up to more than {self._limit:.0e}."
            )

    def _take_rows(self, X, y, weights, raw: float) -> None:
        self._raw, start = raw, 0
        thin = sp.issparse(X) and self._rate is None and raw <= self._limit
        if thin and _is_thin(X, weights):
            self._add_thin(X, y, weights)
            return
        while start < len(y):
            # As many as fit into the buffer as it is then.
            part = slice(start, start + self.block_rows - self._filled)
            self._append(X[part], y[part], weights[part], opens_call=start == 0)
            start = part.stop

    def _append(self, X, y, weights, opens_call: bool) -> None:
        X = X.toarray() if sp.issparse(X) else X
        if self._weight == 0:
            self._mean = self._first(X, y)
        start, stop = self._filled, self._filled + len(y)
        rows = self._rows[start:stop]
        # What is kept in float32 is the distance from the mean: of a large mean nothing is lost.
        np.subtract(X, self._mean[:-1], out=rows[:, :-1], casting="same_kind")
        np.subtract(y, self._mean[-1], out=rows[:, -1], casting="same_kind")
        self._weights[start:stop], self._decays[start:stop] = self._enter(weights, opens_call)
        self._filled = stop
        if stop == self.block_rows:
            self._fold()

    def _enter(self, weights, opens_call: bool):
        """The weight of each row, and by what it multiplies that of all before it, as in (3.11).

        A row of weight w becomes the share max(w * rate, w / (W + w)), at most 1: hence W
        never exceeds 1 / rate. With adaptation per block the rows of one call, whose
        weights sum to 1, take that share at once.
        """
        limit = np.inf if self._rate is None else 1 / self._rate
        decays, old = np.ones(len(weights)), self._weight
        if self._per == "block":
            if opens_call and old > limit - 1:
                decays[0], old = (limit - 1) / old, limit - 1
            after = np.cumsum(np.append(old, weights))[1:]
        else:
            weights = np.minimum(weights, limit)
            after = np.minimum(np.cumsum(np.append(old, weights))[1:], limit)
            before, left = np.append(old, after[:-1]), limit - weights
            np.divide(left, before, out=decays, where=before > left)
        self._weight, self.n = float(after[-1]), self.n + len(weights)
        return weights, decays

    def _fold(self) -> None:
        """Take the waiting rows into mean and co-moments (Chan, Golub, LeVeque 1983).

        The rows, as distances from the mean before, are centred by their own mean; one more row
        stands for the distance of the two means.
        """
        if self._filled == 0:
            return
        rows, last = self._rows[: self._filled], self._rows[self._filled]
        # What is left, after the last row, of the weight before each row; then of its own.
        fading = np.append(np.cumprod(self._decays[: self._filled][::-1])[::-1], 1.0)
        weights = self._weights[: self._filled] * fading[1:]
        old, new = fading[0] * self._folded, float(weights.sum())
        share = new / (old + new)
        shift = np.einsum("i,ij->j", weights, rows) / new
        rows -= shift.astype(self.dtype)
        if (weights != 1).any():
            rows *= np.sqrt(weights).astype(self.dtype)[:, None]
        distance = shift - self._rest
        last[:] = np.sqrt(old * share) * distance
        self._add_products(self._rows[: self._filled + 1], fading[0])
        self._move_mean(share * distance, old + new)
        self._filled = 0

    def _add_products(self, rows, fading=1.0) -> None:
        _SYRK[self.dtype.name](1.0, rows.T, beta=fading, c=self._C, overwrite_c=1)

    def _add_thin(self, X, y, weights) -> None:
        """Take in nearly empty rows at once, without filling them up.

        Their uncentred products lose no digits, because no column is filled in more than half of
        the rows: a variance is then at least half of the mean square.
        """
        self._fold()
        if self._weight == 0:
            self._mean = np.append(np.zeros(self.n_features), y[0])
        old, new = self._folded, float(weights.sum())
        share = new / (old + new)
        response = y - self._mean[-1]
        shift = np.append(X.T @ weights, weights @ response) / new
        response -= shift[-1]
        centre = np.append(shift[:-1], 0.0)
        shift[:-1] -= self._mean[:-1]
        distance = shift - self._rest
        Z = sp.hstack([X, sp.csr_array(response[:, None])], format="csc", dtype=self.dtype)
        weighted = (sp.diags_array(weights) @ Z).astype(self.dtype).tocsc()
        for start in range(0, len(centre), _PANEL):
            part = slice(start, start + _PANEL)
            stop = min(start + _PANEL, len(centre))
            panel = (Z[:, :stop].T @ weighted[:, part]).toarray()
            panel -= centre[:stop, None] * (new * centre[part])
            panel += distance[:stop, None] * (old * share * distance[part])
            self._C[:stop, part] += panel
        self._move_mean(share * distance, old + new)
        self.n += len(y)

    def _move_mean(self, step, weight: float) -> None:
        """Add to the mean, set its weight, and keep the rounding error (Knuth's two-sum).

        Else the co-moments would belong to another mean: an error of its rounding per block.
        """
        step = step + self._rest
        mean = self._mean + step
        taken = mean - self._mean
        self._rest = (self._mean - (mean - taken)) + (step - taken)
        self._mean = mean
        self._folded = self._weight = float(weight)

    def _take_averages(self, its: "CoMoments", raw: float) -> None:
        self._fold()
        if not self._folded:
            self._mean, self._rest = its._mean, its._rest
        total = self._folded + its._folded
        share = its._folded / total
        distance = (its._mean - self._mean) + (its._rest - self._rest)
        row = (np.sqrt(self._folded * share) * distance).astype(self.dtype)[None]
        self._C += its._C
        self._add_products(row)
        self._move_mean(share * distance, total)
        self.n, self._raw = self.n + its.n, raw


def _zeros(n_features: int, dtype: np.dtype) -> np.ndarray:
    """Co-moments of no rows; MemoryError if they take more than two thirds of the memory."""
    size = (n_features + 1) ** 2 * dtype.itemsize
    if size > _MEMORY * 2 // 3:
        raise MemoryError(
            f"n_features={n_features}: running averages take {size / 10**9:,.1f} GB, more than two "
            f"thirds of the {_MEMORY / 10**9:,.1f} GB of this machine: take a method on rows, such "
            "as SFSA"
        )
    return np.zeros((n_features + 1, n_features + 1), dtype, order="F")


def _sum_of_squares(X, weights) -> float:
    """sum of w |x|^2"""
    squares = row_norms(X, squared=True) if sp.issparse(X) else np.einsum("ij,ij->i", X, X)
    return float(weights @ squares)


def _is_thin(X, weights) -> bool:
    """Whether a sparse product is faster than filling up the rows, and as accurate.

    Per row it takes some 10 ns for each pair of entries, the dense product p^2 / 70 ns; and each
    call passes through the co-moments some times.
    """
    n, p = X.shape
    entries = np.diff(X.indptr)
    if n < _THIN_ROWS or np.square(entries, dtype=np.float64).sum() > n * p**2 / _THIN_PAIRS:
        return False
    filled = np.bincount(X.indices, weights=np.repeat(weights, entries), minlength=p)
    return bool(filled.max() <= weights.sum() / 2)


def symmetric(matrix, weight, mean, factor, out) -> None:
    """out <- D (matrix / weight + mean mean') D, D = diag(factor), both triangles.

    `out` may be the same memory as `matrix`.
    """
    for start in range(0, len(matrix), _PANEL):
        part = slice(start, start + _PANEL)
        # In squares, which stay in the processor's cache.
        for first in range(0, start + 1, _PANEL):
            rows = slice(first, first + _PANEL)
            tile = matrix[rows, part] * (factor[part] / weight)
            if mean.any():
                tile += mean[rows, None] * (mean[part] * factor[part])
            tile *= factor[rows, None]
            if first == start:
                tile = np.triu(tile) + np.triu(tile, 1).T
            out[rows, part] = tile
            out[part, rows] = tile.T


def without_last(matrix) -> np.ndarray:
    """The upper triangle of all but the last row and column, moved together in the same memory."""
    p = len(matrix) - 1
    flat = matrix.reshape(-1, order="F")
    for j in range(1, p):
        flat[j * p : j * p + j + 1] = flat[j * (p + 1) : j * (p + 1) + j + 1]
    return flat[: p * p].reshape((p, p), order="F")


def not_finite(matrix) -> tuple[int, int] | None:
    """Row and column of an entry of the upper triangle that is not finite; None: all are."""
    for start in range(0, len(matrix), _PANEL):
        part = slice(start, start + _PANEL)
        upper = np.triu(matrix[: part.stop, part], -start)
        if not np.isfinite(upper).all():
            i, j = np.argwhere(~np.isfinite(upper))[0]
            return int(i), int(start + j)
    return None
