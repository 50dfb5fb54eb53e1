"""Running averages (Sun 2019, chapter 3): all that least squares needs to know of the rows.

Rows z = (x, y) are kept as the sum of their weights W, their mean m and the centred co-moments
C = sum w (z - m)(z - m)', from which the averages of the dissertation follow: S_xx = C_xx / W +
mu_x mu_x', and likewise S_xy and S_yy. Sums of raw squares, as printed, would lose all digits of
a variance where the mean is large: at a mean of 1e6 and unit variance float64 keeps 3 digits of
the raw form and 15 of this one.

The file is longer than others: its one class shares what it holds among all its methods, and a
third of the lines says what they promise.
"""

import copy
import json
import os
import struct
import tempfile
import zipfile
import zlib
from contextlib import contextmanager
from numbers import Integral, Real
from pathlib import Path
from typing import NamedTuple

import numpy as np
import psutil
import scipy.sparse as sp
from scipy.linalg.blas import dsyrk, ssyrk
from sklearn.utils.validation import check_array, check_X_y

from ofslib._files import whole_file
from ofslib._sparse import checked

# Co-moments of more bytes than this lie in a file of the system's temporary folder.
MAX_BYTES = psutil.virtual_memory().total * 2 // 3

_SYRK = {"float64": dsyrk, "float32": ssyrk}
# So many rows are folded in at a time that the product, not the reading and writing of the
# co-moments, takes the time; no more, so that the rows are still in the processor's cache by then.
_FEATURES_PER_ROW, _LEAST_ROWS = 8, 256
_BUFFER_BYTES = 64 << 20  # before _LEAST_ROWS
_THIN_ROWS, _THIN_PAIRS = 1024, 4000  # see _is_thin
_PANEL = 128  # columns of a matrix that are scaled and mirrored at a time
_FAN_IN = 8  # averages that one task of dask merges
_FORMAT, _VERSION = "ofslib.RunningAverages", 1
# What is saved as text, and what as arrays.
_FACTS = ("n_features", "block_rows", "n", "_weight", "_folded", "_rate", "_per")
_PENDING = ("_rows", "_weights", "_decays")
_MEAN = ("_mean", "_rest")
# What zipfile, zlib, json and numpy raise on bytes that are not theirs.
_DAMAGE = (zipfile.BadZipFile, zlib.error, struct.error, ValueError, TypeError, LookupError)
_DAMAGE += (EOFError, RuntimeError, OverflowError, OSError)


class Standardized(NamedTuple):
    """Running averages of standardised rows, (3.2) and (3.3)."""

    S_xx: np.ndarray  # (p, p) correlations of x, Fortran order; the dtype of the averages
    S_xy: np.ndarray  # (p,) float64, covariances of x / scale with y
    S_yy: float  # variance of y
    scale: np.ndarray  # (p,) float64, what x was divided by; inf where a feature is constant
    mean_x: np.ndarray  # (p,) float64, what was subtracted before
    mean_y: float
    n: int  # rows

    def intercept(self, coef: np.ndarray) -> float:
        """The constant that belongs to coefficients (p,) on the original scale."""
        return self.mean_y - float(self.mean_x @ coef)


class RunningAverages:
    """Weight, mean and co-moments of the rows of a stream; O(p^2) memory, whatever its length.

    Rows wait in a buffer of `block_rows` rows and are then folded in by one symmetric rank-k
    update; reading a mean or a moment, `merge` and `standardized` fold in what waits. The result
    hence does not depend, bit for bit, on how the rows are cut into calls of `update`.

    A method raises ValueError or TypeError if an argument is not allowed, and says what is; and
    RuntimeError if the object was given up by ``standardized(overwrite=True)``.

    Parameters
    ----------
    n_features : int
        Number p of features.
    dtype : {float64, float32}, default=float64
        Type of the co-moments and of waiting rows, which are kept as distances from the mean.
        After 1e6 rows standard deviations were right to 2e-15 in float64 and 1e-6 in float32
        (relative errors, measured; the same at a mean of 0 and of 1e6 standard deviations), and
        float32 is twice as fast. Means are float64 in any case.
    memory_map : path, default=None
        Folder of a file that holds the co-moments; it has no name and goes with the object. None:
        they are in memory, or, if they take more than `MAX_BYTES` (two thirds of the machine's
        memory), in such a file in the system's temporary folder.

    Attributes
    ----------
    n : int
        Rows of positive weight that were shown. A row of weight zero counts as not shown.
    weight : float
        Sum W of the weights of the rows; after `adapt` their effective number.
    mean_x, mean_y : ndarray of shape (p,), float
        Means.
    S_xx, S_xy, S_yy : ndarray of shape (p, p), ndarray of shape (p,), float
        Uncentred averages, as defined in section 3.1; computed anew each time they are read.
    """

    def __init__(self, n_features: int, dtype=np.float64, memory_map=None):
        if not isinstance(n_features, Integral) or n_features < 1:
            raise ValueError(f"n_features must be an int of 1 or more, got {n_features!r}.")
        if np.dtype(dtype).name not in _SYRK:
            raise ValueError(f"dtype must be float64 or float32, got {np.dtype(dtype).name}.")
        if memory_map is not None and not Path(memory_map).is_dir():
            raise ValueError(f"memory_map must be a folder that exists, got {str(memory_map)!r}.")
        self.n_features, self.dtype, self.memory_map = int(n_features), np.dtype(dtype), memory_map
        self.block_rows = _block_rows(self.n_features, self.dtype)
        self.n, self._weight, self._folded = 0, 0.0, 0.0  # _folded: the weight of _mean and _C
        self._rate, self._per = None, "observation"
        # The mean is the sum of these: float64, and what it was rounded by.
        self._mean, self._rest = np.zeros((2, self.n_features + 1))
        self._C = self._new_matrix(self.n_features + 1)
        self._new_buffer()

    @classmethod
    def from_moments(cls, n: int, mean, comoments, dtype=np.float64, memory_map=None):
        """Running averages of `n` rows of weight 1 whose moments are known.

        Parameters
        ----------
        n : int
            Number of rows, at least 1.
        mean : array-like of shape (p + 1,)
            Means of x, and last that of y; finite.
        comoments : array-like of shape (p + 1, p + 1)
            sum (z - mean)(z - mean)'; only the upper triangle is read. The diagonal is finite and
            not negative.
        dtype, memory_map
            As in `RunningAverages`.
        """
        mean, comoments = np.array(mean, dtype=np.float64), np.asarray(comoments)
        if not isinstance(n, Integral) or n < 1:
            raise ValueError(f"n must be an int of 1 or more, got {n!r}.")
        if mean.ndim != 1 or len(mean) < 2:
            raise ValueError(f"mean must have the shape (p + 1,), got {mean.shape}.")
        if comoments.shape != (shape := 2 * mean.shape):
            raise ValueError(f"comoments must have the shape {shape}, got {comoments.shape}.")
        if not np.isfinite(mean).all():
            raise ValueError("mean must be finite.")
        diagonal = np.diagonal(comoments)
        if not (np.isfinite(diagonal) & (diagonal >= 0)).all():
            raise ValueError("comoments must have finite diagonal entries of 0 or more.")
        new = cls(len(mean) - 1, dtype, memory_map)
        new.n, new._mean = int(n), mean
        new._weight = new._folded = float(n)
        new._C[:] = comoments
        return new

    # -------------------------------------------------- rows come in

    def update(self, X, y, sample_weight=None) -> "RunningAverages":
        """Take in rows; returns self. If they are refused, nothing has changed.

        Parameters
        ----------
        X : {ndarray, DataFrame, sparse matrix or array} of shape (b, p)
            Observations, at least one. Sparse rows give the same, bit for bit, as in dense form.
            Only of many rows that are nearly empty, shown in one call, X'X is made as a sparse
            product, and equal up to rounding. (Not after `adapt`.)
        y : array-like of shape (b,)
            Responses: numbers.
        sample_weight : array-like of shape (b,), default=None
            Weights, not negative; 1 each if None. Weight 2 is the same as showing the row twice,
            up to rounding (while equation (3.11) forgets: to first order in 2 * rate).
        """
        self._refuse_if_spent()
        X, y, weights = self._checked(X, y, sample_weight)
        if self._per == "block" and len(y):
            weights = weights / weights.sum()
        if sp.issparse(X) and self._rate is None and _is_thin(X, weights):
            self._add_thin(X, y, weights)
            return self
        start = 0
        while start < len(y):
            # As many as fit into the buffer as it is then.
            part = slice(start, start + self.block_rows - self._filled)
            self._append(X[part], y[part], weights[part], opens_call=start == 0)
            start = part.stop
        return self

    def _checked(self, X, y, sample_weight):
        """Finite X (float64, float32 or CSR), y and weights; rows of weight zero left out."""
        kinds = [np.float64, np.float32]
        X, y = check_X_y(
            checked(X),
            y,
            accept_sparse="csr",
            dtype=kinds,
            y_numeric=True,
            estimator="RunningAverages",
        )
        if X.shape[1] != self.n_features:
            raise ValueError(
                f"X has {X.shape[1]} features, but RunningAverages is expecting "
                f"{self.n_features} features as input."
            )
        y = y.astype(np.float64)
        if sample_weight is None:
            return X, y, np.ones(len(y))
        weights = check_array(
            sample_weight, dtype=np.float64, ensure_2d=False, input_name="sample_weight"
        )
        if weights.shape != y.shape:
            raise ValueError(f"sample_weight must have the shape {y.shape}, got {weights.shape}.")
        if (weights < 0).any():
            raise ValueError(f"sample_weight must be 0 or more, got {weights.min()}.")
        used = weights > 0
        return (X, y, weights) if used.all() else (X[used], y[used], weights[used])

    def _append(self, X, y, weights, opens_call: bool) -> None:
        X = X.toarray() if sp.issparse(X) else X
        if self._weight == 0:
            self._mean[:-1], self._mean[-1] = X[0], y[0]
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
        """Take the waiting rows into mean and co-moments (Chan, Golub and LeVeque 1983).

        The rows, as distances from the mean before, are centred by their own mean; one more row
        stands for the distance of the two means.
        """
        count = self._filled
        if count == 0:
            return
        rows = self._rows[: count + 1]
        # What is left, after the last row, of the weight before each row; then of its own.
        fading = np.append(np.cumprod(self._decays[:count][::-1])[::-1], 1.0)
        weights = self._weights[:count] * fading[1:]
        old, new = fading[0] * self._folded, float(weights.sum())
        share = new / (old + new)
        shift = np.einsum("i,ij->j", weights, rows[:count]) / new
        rows[:count] -= shift.astype(self.dtype)
        if (weights != 1).any():
            rows[:count] *= np.sqrt(weights).astype(self.dtype)[:, None]
        distance = shift - self._rest
        rows[count] = np.sqrt(old * share) * distance
        _SYRK[self.dtype.name](1.0, rows.T, beta=fading[0], c=self._C, overwrite_c=1)
        self._move_mean(share * distance, old + new)
        self._filled = 0

    def _add_thin(self, X, y, weights) -> None:
        """Take in nearly empty rows at once, without filling them up.

        Their uncentred products lose no digits, because no column is filled in more than half of
        the rows: a variance is then at least half of the mean square.
        """
        self._fold()
        if self._weight == 0:
            self._mean[-1] = y[0]
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
        self._folded = self._weight = weight

    def adapt(self, rate: float | None, per: str = "observation") -> "RunningAverages":
        """From now on let new rows count more than old ones, by equation (3.11); returns self.

        Parameters
        ----------
        rate : float in (0, 1] or None
            Adaptation rate: the least share alpha = max(rate, 1 / (W + 1)) of a new observation
            in the averages. None: all further rows have equal weights, beside the weight (at most
            1 / rate) of what is known by then.
        per : {"observation", "block"}, default="observation"
            What enters with that share: each row, or the average of all rows of one call of
            `update`, whatever their number. Then `weight` counts calls.
        """
        self._refuse_if_spent()
        if per not in ("observation", "block"):
            raise ValueError(f'per must be "observation" or "block", got {per!r}.')
        if rate is not None and (isinstance(rate, bool) or not isinstance(rate, Real)):
            raise TypeError(f"rate must be a number or None, got {rate!r}.")
        if rate is not None and not 0 < rate <= 1:
            raise ValueError(f"rate must be above 0 and at most 1, got {rate!r}.")
        self._rate, self._per = (None, "observation") if rate is None else (float(rate), per)
        return self

    # -------------------------------------------------- averages are read

    @property
    def weight(self) -> float:
        """Sum of the weights of the rows; after `adapt` their effective number."""
        return self._weight

    @property
    def mean_x(self) -> np.ndarray:
        """Means of the features, (p,) float64."""
        self._settle()
        return self._mean[:-1].copy()

    @property
    def mean_y(self) -> float:
        """Mean of the response."""
        self._settle()
        return float(self._mean[-1])

    @property
    def S_xx(self) -> np.ndarray:
        """(1 / W) sum w x x', (p, p), in the dtype of the averages, Fortran order."""
        self._settle()
        out, ones = self._new_matrix(self.n_features), np.ones(self.n_features)
        _symmetric(self._C[:-1, :-1], self._weight, self._mean[:-1], ones, out)
        return out

    @property
    def S_xy(self) -> np.ndarray:
        """(1 / W) sum w y x, (p,) float64."""
        self._settle()
        return self._C[:-1, -1] / self._weight + self._mean[:-1] * self._mean[-1]

    @property
    def S_yy(self) -> float:
        """(1 / W) sum w y^2."""
        self._settle()
        return float(self._C[-1, -1] / self._weight + self._mean[-1] ** 2)

    def standardized(self, centre: bool = True, overwrite: bool = False) -> Standardized:
        """The averages of standardised rows, equations (3.2) and (3.3), of at least 2 rows.

        A feature whose standard deviation is not above the rounding of its mean has the scale inf:
        its row, column and S_xy are zero, with 1 on the diagonal. OverflowError if the values were
        too large for their squares to be summed in the dtype.

        Parameters
        ----------
        centre : bool, default=True
            Subtract the means and divide x by its standard deviations (divisor W). If False,
            subtract nothing and divide x by its root mean squares.
        overwrite : bool, default=False
            Let S_xx take the memory of the co-moments. The object is then spent: any further use
            raises.
        """
        self._settle()
        if self.n < 2:
            raise ValueError(f"standardized needs at least 2 rows, got n={self.n}.")
        # What the moments have in addition to the centred ones.
        added = np.zeros_like(self._mean) if centre else self._mean.copy()
        square = np.diagonal(self._C) / self._weight + added**2
        if not np.isfinite(square).all():
            raise OverflowError(f"squares of the values shown do not fit into {self.dtype.name}.")
        scale = np.sqrt(square[:-1])
        scale[scale <= 10 * np.finfo(np.float64).eps * np.abs(self._mean[:-1])] = np.inf
        S_xy = (self._C[:-1, -1] / self._weight + added[:-1] * added[-1]) / scale
        if overwrite:
            matrix = out = _without_last(self._C)
            self._C = None
        else:
            matrix, out = self._C[:-1, :-1], self._new_matrix(self.n_features)
        _symmetric(matrix, self._weight, added[:-1], 1 / scale, out)
        np.fill_diagonal(out, 1.0)
        mean = self._mean - added
        return Standardized(out, S_xy, float(square[-1]), scale, mean[:-1], float(mean[-1]), self.n)

    def _settle(self) -> None:
        self._refuse_if_spent()
        if self.n == 0:
            raise ValueError("these RunningAverages have seen no rows: call update first.")
        self._fold()

    def _refuse_if_spent(self) -> None:
        if self._C is None:
            raise RuntimeError("these RunningAverages were spent by standardized(overwrite=True).")

    # -------------------------------------------------- objects are joined, copied and kept

    def merge(self, other: "RunningAverages") -> "RunningAverages":
        """Take in the rows of `other`, with their weights; returns self. `other` stays as it is.

        It must have the same number of features and the same dtype.
        """
        if not isinstance(other, RunningAverages):
            raise TypeError(f"other must be a RunningAverages, got {type(other).__name__}.")
        for name in ("n_features", "dtype"):
            mine, its = getattr(self, name), getattr(other, name)
            if mine != its:
                raise ValueError(f"other must have {name}={mine}, got {name}={its}.")
        for one in (self, other):
            one._refuse_if_spent()
            one._fold()
        if other.n == 0:
            return self
        total = self._folded + other._folded
        share = other._folded / total
        distance = (other._mean - self._mean) + (other._rest - self._rest)
        column = (np.sqrt(self._folded * share) * distance).astype(self.dtype)[:, None]
        self._C += other._C
        _SYRK[self.dtype.name](1.0, column, beta=1.0, c=self._C, overwrite_c=1)
        self._move_mean(share * distance, total)
        self.n += other.n
        return self

    def __add__(self, other):
        if not isinstance(other, RunningAverages):
            return NotImplemented
        return self.copy().merge(other)

    def __radd__(self, other):
        # `sum` begins with 0.
        return self.copy() if isinstance(other, int) and other == 0 else NotImplemented

    def copy(self) -> "RunningAverages":
        """An independent copy."""
        self._refuse_if_spent()
        new = copy.copy(self)
        new._mean, new._rest = self._mean.copy(), self._rest.copy()
        new._C = self._new_matrix(self.n_features + 1)
        new._C[:] = self._C
        return new

    def __deepcopy__(self, memo):
        return self.copy()

    def __getstate__(self):
        waiting = {name: getattr(self, name)[: self._filled] for name in _PENDING}
        return self.__dict__ | waiting

    def __setstate__(self, state):
        self.__dict__.update(state)
        # joblib may hand over a read-only map of a file: BLAS would write to it all the same.
        if self._C is not None and not (self._C.flags.writeable and self._C.flags.f_contiguous):
            self._C, given = self._new_matrix(self.n_features + 1), self._C
            self._C[:] = given
        self._new_buffer({name: state[name] for name in _PENDING})

    def save(self, path) -> None:
        """Write all that is known to one file, with the waiting rows as they are.

        To go on from the file equals never having stopped, bit for bit. The file is an npz, whole
        or not there at all; the name is used as given, and folders above it are made.
        """
        self._refuse_if_spent()
        facts = {name: getattr(self, name) for name in _FACTS}
        head = {"format": _FORMAT, "version": _VERSION, "dtype": self.dtype.name} | facts
        state = self.__getstate__()
        arrays = {name: state[name] for name in (*_MEAN, *_PENDING, "_C")}
        with whole_file(path) as file:
            np.savez(file, head=json.dumps(head), **arrays)

    @classmethod
    def load(cls, path, memory_map=None) -> "RunningAverages":
        """Read what `save` wrote; `memory_map` as in `RunningAverages`.

        Raises OSError if the file cannot be read, and ValueError if it is damaged, or of another
        format or a newer version.
        """
        with open(path, "rb") as file:
            with _damage_named(path):
                archive = zipfile.ZipFile(file)
                head = json.loads(str(_read_array(archive, "head")))
                if head["format"] != _FORMAT:
                    raise ValueError(f"its format is {head['format']!r}")
                if head["version"] != _VERSION:
                    raise ValueError(f"its version is {head['version']!r}, not {_VERSION}")
            new = cls(head["n_features"], head["dtype"], memory_map)
            with _damage_named(path):
                for name in _FACTS:
                    setattr(new, name, head[name])
                for name in _MEAN:
                    getattr(new, name)[:] = _read_array(archive, name)
                new._new_buffer({name: _read_array(archive, name) for name in _PENDING})
                _read_into(new._C, archive, "_C")
        return new

    def _new_buffer(self, waiting=None) -> None:
        """Space for waiting rows, their weights, and what they multiply the weights before by."""
        self._rows = np.empty((self.block_rows + 1, self.n_features + 1), self.dtype)
        self._weights, self._decays = np.empty((2, self.block_rows))
        self._filled = 0
        for name, values in (waiting or {}).items():
            self._filled = len(values)
            getattr(self, name)[: self._filled] = values

    def _new_matrix(self, order: int) -> np.ndarray:
        """Zeros, (order, order) in Fortran order, in memory or in a file that has no name."""
        folder, size = self.memory_map, order**2 * self.dtype.itemsize
        if folder is None and size <= MAX_BYTES:
            return np.zeros((order, order), self.dtype, order="F")
        with tempfile.TemporaryFile(dir=folder) as file:
            # Without space reserved, a full disk would end the process instead of raising.
            if hasattr(os, "posix_fallocate"):
                os.posix_fallocate(file.fileno(), 0, size)
            mapped = np.memmap(file, self.dtype, "w+", shape=(order, order), order="F")
        return np.asarray(mapped)

    @staticmethod
    def from_dask(X, y, dtype=np.float64) -> "RunningAverages":
        """Running averages of dask arrays: of each chunk of rows, then merged in a tree.

        Each takes O(p^2) memory of a worker; chunks of more than p rows are worth it. Needs dask,
        else raises ImportError.

        Parameters
        ----------
        X : dask array of shape (n, p)
            Observations, in chunks of known sizes; those that cut the columns are joined.
        y : dask array of shape (n,)
            Responses; cut into chunks as X.
        dtype
            As in `RunningAverages`.
        """
        try:
            import dask
        except ImportError as error:
            raise ImportError("from_dask needs dask: pip install 'ofslib[dask]'") from error
        X = X.rechunk({1: -1})
        y = y.rechunk((X.chunks[0],))
        learn, merge = dask.delayed(_averages_of), dask.delayed(sum)
        blocks = zip(X.to_delayed()[:, 0], y.to_delayed(), strict=True)
        parts = [learn(block, response, X.shape[1], dtype) for block, response in blocks]
        while len(parts) > 1:
            parts = [merge(parts[i : i + _FAN_IN]) for i in range(0, len(parts), _FAN_IN)]
        return parts[0].compute()


def _averages_of(X, y, n_features, dtype) -> RunningAverages:
    averages = RunningAverages(n_features, dtype)
    return averages.update(X, y) if len(y) else averages


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


def _block_rows(n_features, dtype) -> int:
    fitting = max(1, _BUFFER_BYTES // ((n_features + 1) * dtype.itemsize))
    return min(fitting, max(_LEAST_ROWS, n_features // _FEATURES_PER_ROW))


def _symmetric(matrix, weight, mean, factor, out) -> None:
    """out <- D (matrix / weight + mean mean') D, D = diag(factor), both triangles.

    Of `matrix` the upper triangle is read; `out` may be the same memory.
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


def _without_last(matrix) -> np.ndarray:
    """The upper triangle of all but the last row and column, moved together in the same memory."""
    p = len(matrix) - 1
    flat = matrix.reshape(-1, order="F")
    for j in range(1, p):
        flat[j * p : j * p + j + 1] = flat[j * (p + 1) : j * (p + 1) + j + 1]
    return flat[: p * p].reshape((p, p), order="F")


@contextmanager
def _damage_named(path):
    """Say which file it is that cannot be understood."""
    try:
        yield
    except _DAMAGE as error:
        raise ValueError(
            f"{os.fspath(path)} is not a whole file of {_FORMAT}, version {_VERSION}: {error}"
        ) from error


def _read_array(archive, name) -> np.ndarray:
    with archive.open(f"{name}.npy") as stream:
        return np.lib.format.read_array(stream, allow_pickle=False)


def _read_into(target, archive, name) -> None:
    """Read a matrix in Fortran order piece by piece, as it may be larger than the memory."""
    with archive.open(f"{name}.npy") as stream:
        np.lib.format.read_magic(stream)
        found = np.lib.format.read_array_header_1_0(stream)
        if found != (target.shape, True, target.dtype):
            raise ValueError(f"{name} has shape, order and type {found}")
        rest = memoryview(target.reshape(-1, order="F")).cast("B")
        while rest:
            count = stream.readinto(rest[: 1 << 24])
            if not count:
                raise EOFError(f"{name} is cut short")
            rest = rest[count:]
